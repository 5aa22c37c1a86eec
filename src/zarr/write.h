/*
 * write.h: a write while it runs.
 *
 *     selection --(walk.c)--> chunks of the grid --(write_chunk.c, write_shard.c)--> values
 *
 * A thread takes a chunk of the grid and makes its new value from the source; if that is not all of
 * it, also from the old value.  Then it writes the value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_WRITE_INTERNAL_H
#define LADE_ZARR_WRITE_INTERNAL_H

#include "base/cancel.h"
#include "batch/host/item.h"
#include "zarr/select.h"

#include <lade/zarr_write.h>

#include <pthread.h>

#define LADE__PIECES_MAX 64
#define LADE__STEPS_MAX 8

/* The steps of a chain, or the spec "copy" for a chain without steps. */
typedef struct lade__steps {
	size_t count;
	const lade_spec *spec[LADE__STEPS_MAX];
	size_t header[LADE__STEPS_MAX];
	bool n5; /* the one step has the header of N5 */
	const lade_zarr_step *step; /* NULL: the spec "copy" */
	bool skipped[LADE__STEPS_MAX]; /* of 'conditional': where it makes nothing smaller */
	bool masked[LADE__STEPS_MAX];  /* it has a bit in the header */
	lade__route encode[LADE__STEPS_MAX], decode[LADE__STEPS_MAX];
} lade__steps;

typedef struct lade__zwrite {
	lade_zarr *node;
	const lade_zarr_array *array;
	lade__selected selected;
	lade__levels levels;
	lade_zarr_write_options options;
	lade_engine *engine, *given_engine;
	lade__job_options job;
	lade_zarr_source source;
	ptrdiff_t strides[LADE_DIMS_MAX]; /* of the source, by axis of the result */
	size_t elem;                      /* bytes of a stored element; 0: of any length */
	size_t piece_count;
	lade__piece_of pieces[LADE__PIECES_MAX];
	bool plain;     /* the source's elements are the stored ones, but for a swap of all */
	uint8_t *fill;  /* a stored element */
	lade_spec *copy;
	lade__steps steps[LADE__LEVELS_MAX]; /* by level; of shards those behind the index */
	lade__steps index[LADE__LEVELS_MAX];
	size_t largest[LADE__LEVELS_MAX]; /* bytes of a decoded chunk, by level */
	lade__stop stop;
	pthread_mutex_t mutex; /* guards what follows */
	lade__walk walk;
	bool ended;
	lade_status status;
	lade_error error;
	lade_zarr_write_report report;
} lade__zwrite;

/* Bytes of a value or a chunk.  'data' NULL: there is none, all is fill. */
typedef struct lade__encoded {
	uint8_t *data;
	size_t size;
	bool owned; /* to be freed; else the worker's scratch memory, until it encodes again */
} lade__encoded;

/* A chunk that is written, of any level. */
typedef struct lade__target {
	const lade__cut *cut; /* by axis */
	size_t level;
	bool whole; /* all its elements are written: the old ones do not matter */
	lade__points points;
} lade__target;

/*
 * Makes the new bytes of a chunk from its old ones; 'old.data' NULL: it had none.  The result has
 * no data if all is fill and that is not to be stored.
 */
lade_status lade__write_chunk(lade__zwrite *w, const lade__target *t, lade__encoded old,
                              lade__encoded *out, lade_worker *worker, lade_error *err);
/* Counts a chunk in the report. */
void lade__note_chunk(lade__zwrite *w, const lade__target *t, bool partial);
lade_status lade__write_shard(lade__zwrite *w, const lade__target *t, lade__encoded old,
                              lade__encoded *out, lade_worker *worker, lade_error *err);

/* write_steps.c: makes the specs and routes of steps, for chunks of at most 'largest' bytes. */
lade_status lade__steps_make(const lade__zwrite *w, const lade_zarr_step *steps, size_t count,
                             size_t largest, lade__steps *out, lade_error *err);

/* What runs steps. */
typedef struct lade__coder {
	const lade__zwrite *w;
	const lade__steps *steps;
	lade_worker *worker;
} lade__coder;

lade_status lade__steps_encode(const lade__coder *coder, lade_segment src,
                               const lade_layout *layout, lade__encoded *out, lade_error *err);
/* Decodes to 'dst' and stores the size; 'exact': it must be dst.size. */
lade_status lade__steps_decode(const lade__coder *coder, lade_segment src, lade_span dst,
                               bool exact, size_t *size, lade_error *err);
/* The most bytes that 'size' encode to. */
size_t lade__steps_bound(const lade__steps *steps, size_t size);

/* The elements of the source on the host: element (0, 0, ...) would be at 'base'. */
typedef struct lade__view {
	uintptr_t base;
	ptrdiff_t strides[LADE_DIMS_MAX]; /* by axis of the result */
	uint8_t *memory;                  /* to be freed */
} lade__view;

/* write_place.c: the elements of the source that a chunk has go to their places in 'chunk', as they
 * are stored.  It has the bytes of t->cut. */
void lade__place_elements(const lade__zwrite *w, const lade__target *t, const lade__view *view,
                          uint8_t *chunk);
/* 'count' elements of fill. */
void lade__place_fill(const lade__zwrite *w, uint8_t *chunk, size_t count);
bool lade__is_fill(const lade__zwrite *w, const uint8_t *chunk, size_t count);
/* Elements of a chunk; SIZE_MAX: too many. */
size_t lade__cut_count(const lade__zwrite *w, const lade__cut *cut);
/* Visits the elements of the source that a chunk has: their numbers in the stored chunk, and in the
 * result in C order. */
void lade__each_element(const lade__zwrite *w, const lade__target *t,
                        void (*visit)(void *ctx, uint64_t in_chunk, uint64_t in_result), void *ctx);

/* write_device.c: copies the elements that a chunk needs to the host. */
lade_status lade__fetch_elements(const lade__zwrite *w, const lade__target *t, lade__view *view,
                                 lade_error *err);

/* Chunks of one level that are encoded straight from a device, in one call. */
typedef struct lade__wave lade__wave;
bool lade__wave_fits(const lade__zwrite *w, size_t level);
lade_status lade__wave_new(const lade__zwrite *w, size_t level, lade__wave **out, lade_error *err);
void lade__wave_free(lade__wave *wave); /* NULL is fine */
/* Adds a chunk that is written whole; false: that was the last one that it holds. */
bool lade__wave_add(lade__wave *wave, const lade__cut *cut);
lade_status lade__wave_encode(lade__wave *wave, lade_error *err);
size_t lade__wave_count(const lade__wave *wave);
/* Chunk number i and its bytes, until the wave is freed or encodes again; the last one empties
 * it. */
const lade__cut *lade__wave_take(lade__wave *wave, size_t i, lade__encoded *out);

/* write_strings.c: as lade__write_chunk(), for elements of any length. */
lade_status lade__write_strings(lade__zwrite *w, const lade__target *t, lade__encoded old,
                                lade__encoded *out, lade_worker *worker, lade_error *err);

/* Whether all elements of a chunk are written.  Not one at the array's edge: if the array grows
 * meanwhile, others may write the elements that are outside now. */
bool lade__is_whole(const lade__zwrite *w, const lade__cut *cut);
/* Also one at the edge, if all elements in the array are written. */
bool lade__is_covered(const lade__zwrite *w, const lade__cut *cut);

#endif
