/*
 * read.h: a read while it is planned and runs.
 *
 *     targets --(plan.c)--> pieces, in the order of the file --(waves.c)--> waves, by lanes
 *     wave --(wave.c)--> ranges, checksums, one batch --(offsets.c)--> offsets that add up
 *
 * A piece is the part of one page that goes to one target.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_RNTUPLE_READ_H
#define LADE_RNTUPLE_READ_H

#include "base/cancel.h"
#include "rntuple/rntuple.h"

#include <pthread.h>

typedef struct rnt_piece {
	const rnt_page *page;
	uint32_t physical;
	size_t target;
	size_t skip, take; /* elements of the page */
	size_t at;         /* byte in the target's buffer */
} rnt_piece;

/* Bytes of a target that get zeros. */
typedef struct rnt_blank {
	size_t target, at, size;
} rnt_blank;

/* A target, and the buffer that its pages are decoded to. */
typedef struct rnt_goal {
	lade_rntuple_target target;
	lade_span to; /* the caller's span, or a buffer of the call's */
	int64_t *own; /* that buffer, for offsets that do not add up on their device; or NULL */
	bool adds_up; /* offsets: a first number, and sums */
	bool there;   /* they add up on their device */
	size_t size;  /* bytes of the result */
} rnt_goal;

/* A spec that pages have in common. */
typedef struct rnt_coding {
	uint16_t type, bits;
	double min, max;
	lade_dtype dtype;  /* of the result */
	rnt_method method; /* RNT_METHODS: none, only what is done to elements */
	lade_spec *spec;   /* NULL: nothing is done */
} rnt_coding;

typedef struct rnt_read {
	lade_rntuple *tuple;
	rnt_file file; /* the tuple's, with 'quiet' */
	pthread_t caller;
	lade_cancel quiet; /* the call's token, for other threads than the caller's */
	lade_rntuple_read_options options;
	lade_engine *engine;
	rnt_goal *goal;
	size_t goal_count;
	rnt_piece *piece;
	size_t piece_count, piece_cap;
	rnt_blank *blank;
	size_t blank_count, blank_cap;
	rnt_coding *coding;
	size_t coding_count, coding_cap;
	bool device; /* a target is on one */
	int32_t device_number;
	bool fed;           /* batches take pages as threads read them: fed.c */
	size_t lanes;       /* waves at once */
	unsigned threads;   /* that read; 0: as few as the source wants */
	uint64_t wave_size; /* stored bytes of a wave, at most */
	uint64_t page_most; /* bytes of the largest page, stored or decoded */
	pthread_mutex_t mutex;   /* guards 'coding' */
	pthread_mutex_t reading; /* held by who reads, where the source takes one reader */
	lade_rntuple_report report;
	uint64_t began_ns;
} rnt_read;

enum { RNT_LANES_MAX = 4, RNT_SLOTS_MAX = 512 };

/* The largest buffer of a lane's that the tuple keeps for the next read. */
#define RNT_SPARE_MAX ((size_t)16 << 20)

/* Who does one wave after the other, with memory for stored pages. */
typedef struct rnt_lane {
	rnt_read *r;
	uint8_t *data;
	size_t size;
	lade_place place;
	rnt_buffer *buffer; /* that has 'data'; NULL: it is pinned, or there is none */
} rnt_lane;

/* The call's token, for what the calling thread calls: only the caller's thread is asked. */
lade_cancel *lade__rnt_cancel(const rnt_read *r);

/* The options of batches, for the calling thread. */
lade_batch_options lade__rnt_reading(const rnt_read *r);

/* Makes room for 'size' bytes.  False: there is no memory. */
bool lade__rnt_lane_room(rnt_lane *lane, size_t size);

/* Reads and decodes pieces [first, end), a wave of 'bytes' stored ones. */
lade_status lade__rnt_run_wave(rnt_lane *lane, size_t first, size_t end, size_t bytes,
                               lade_error *err);

/* Runs all waves.  Fails: as the first one that does */
lade_status lade__rnt_run_waves(rnt_read *r, lade_error *err);

/* Likewise, to a device; '*all': all pieces were done, or it failed.  Else they are to be done by
 * lade__rnt_run_waves(). */
lade_status lade__rnt_run_fed(rnt_read *r, bool *all, lade_error *err);

/* Checks the targets, and cuts them into pieces. */
lade_status lade__rnt_plan(rnt_read *r, lade_rntuple *tuple, const lade_rntuple_target *targets,
                           size_t count, const lade_rntuple_read_options *options, lade_error *err);
void lade__rnt_plan_free(rnt_read *r);

/* The end of the wave that begins with 'piece': the first piece that is not in it.  '*bytes' gets
 * the stored bytes of its pages, '*distinct' their number, '*ranges' that of adjacent ranges. */
size_t lade__rnt_wave(const rnt_read *r, size_t piece, uint64_t *bytes, size_t *distinct,
                      size_t *ranges);

/* The spec of a coding, as text; "": nothing is done. */
enum { RNT_CODING_TEXT = 256 };
void lade__rnt_coding_text(char text[RNT_CODING_TEXT], const rnt_coding *coding);

/* The spec of a page's elements, with or without a method.  '*out' stays the read's; NULL: nothing
 * is done. */
lade_status lade__rnt_coding(rnt_read *r, const rnt_piece *piece, rnt_method method,
                             const lade_spec **out, lade_error *err);
/* The spec of a method alone: blocks, whose elements have a tail. */
lade_status lade__rnt_method(rnt_read *r, rnt_method method, const lade_spec **out,
                             lade_error *err);

/* Adds up a target's offsets on the host, and brings them to the caller. */
lade_status lade__rnt_add_up(rnt_read *r, rnt_goal *goal, lade_error *err);

/* Checks the alternatives and indices of a variant's column, in host memory. */
lade_status lade__rnt_check_switches(const rnt_read *r, const rnt_goal *goal, lade_error *err);

/* Whether offsets on a device can add up there; adds up those that do; the bytes of device memory
 * that this takes. */
bool lade__rnt_ends_kernels(int32_t device);
lade_status lade__rnt_ends_add_up(const rnt_read *r, lade_error *err);
size_t lade__rnt_ends_memory(const rnt_read *r);

/* The most that offsets of a cluster may be: each column that they count has the elements. */
uint64_t lade__rnt_ends_most(const lade_rntuple *t, const rnt_column *column, size_t cluster);

/* Says that collection 'i', the last one of its cluster, ends at 'here', which is too much. */
lade_status lade__rnt_ends_beyond(const rnt_read *r, const rnt_goal *goal, uint64_t i, int64_t here,
                                  lade_error *err);

/* Says that collection 'i' ends at 'here', behind 'before'; the first of a target: or that 'before'
 * is none. */
lade_status lade__rnt_ends_fault(const rnt_read *r, const rnt_goal *goal, uint64_t i, int64_t here,
                                 int64_t before, lade_error *err);

/* Pieces whose pages are the same bytes in the file. */
static inline bool lade__rnt_same_page(const rnt_piece *a, const rnt_piece *b)
{
	return a->page->off == b->page->off && a->page->size == b->page->size &&
	       a->page->sum == b->page->sum;
}

static inline uint64_t lade__rnt_page_bytes(const rnt_page *page)
{
	return page->size + (page->sum ? 8 : 0);
}

#endif
