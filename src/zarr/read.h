/*
 * read.h: a read while it runs: its leaves, their bytes, and where they go.
 *
 *     selected --(walk.c)--> shards --(read_feed.c)--> leaves --(read_bytes.c)--> encoded
 *                            --(read_chunk.c)--> the target
 *
 * A leaf is a chunk that has no chunks in it.  Threads take leaves in turn from a feed.  Shards are
 * opened some at a time: their indexes are read, and feed the leaves that are in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_READ_INTERNAL_H
#define LADE_ZARR_READ_INTERNAL_H

#include "base/cancel.h"
#include "batch/host/item.h"
#include "zarr/select.h"

/* The most numbers that have byte orders of their own in an element: fields of structs. */
#define LADE__PARTS_MAX 64

/* A chain of the leaves, ready to run; the last step first. */
typedef struct lade__coding {
	size_t count;             /* steps; a chain without any has the spec "copy" */
	const lade_zarr_step *step;
	const lade_spec *spec[LADE__LEVELS_MAX];
	lade__route route[LADE__LEVELS_MAX]; /* on the host */
	size_t bound[LADE__LEVELS_MAX]; /* bytes that a step's result has, or may have */
} lade__coding;

struct lade_zarr_plan {
	lade_zarr *node;
	const lade_zarr_array *array;
	lade__selected selected;
	lade__levels levels;
	lade_zarr_read_options options;
	lade_engine *engine, *given_engine;
	lade_allocator pinned; /* of the engine; some of it is kept from read to read */
	lade__job_options job;
	lade_zarr_target target;
	ptrdiff_t strides[LADE_DIMS_MAX]; /* by axis of the result */
	size_t part_count;
	lade__piece_of parts[LADE__PARTS_MAX];
	lade_spec *copy;   /* the spec "copy" */
	uint8_t *fill;     /* the fill value as it is in the result, elem_size bytes */
	bool fill_same;    /* all its bytes are equal */
	bool device;       /* the target is on a device */
	bool raw;          /* chunks have no codecs: parts of them can be read */
	bool local;        /* small reads are cheap, and the target is on the host */
	bool fed;          /* or on a device, where one batch decodes what threads read */
	size_t chunk_max;  /* bytes of the largest decoded leaf */
	lade__coding coding;
	size_t encoded_cap; /* bytes that an encoded leaf may have at first */
	uint64_t encoded_most; /* and at all */
	struct lade__blank *blanks; /* encoded fill values, for devices */
	struct lade__texts *texts;  /* elements of any length; NULL: they have a size */
	bool apart; /* runs on a thread of its own */
	uint64_t leaf_count, shard_count; /* that have elements of the selection */
	uint64_t leaf_bytes;              /* decoded ones, of all of them */
	uint64_t whole_count;             /* leaves that are wanted whole */
	size_t group_leaves;              /* that a thread takes at a time */
	/* While it runs. */
	lade__stop stop;
	lade_cancel quiet;     /* of calls on all threads */
	atomic_bool failed; /* 'status' is not LADE_OK */
	pthread_mutex_t mutex; /* guards what follows */
	lade_status status;
	lade_error error;
	lade_zarr_report report;
};
typedef struct lade_zarr_plan lade__zread;

/* A chunk that holds chunks, while they are read. */
typedef struct lade__shard {
	lade__cut cut[LADE_DIMS_MAX];
	lade__points points;
	uint64_t chunk[LADE_DIMS_MAX]; /* of the grid */
	char key[LADE_KEY_MAX + 1];
	struct lade__shard *top; /* of level 0; itself */
	/* Its bytes in the object, from 'base' on.  Where codecs are around it, or around a shard
	 * that has it, they are all in memory. */
	uint64_t base, size;
	const uint8_t *bytes;
	uint8_t *own; /* its memory for them */
	uint64_t *index; /* two numbers for each chunk in it */
	size_t index_count;
	bool missing; /* its chunks are, too */
	bool failed;  /* its chunks are left out */
	/* Of level 0. */
	lade_object_version version; /* what all ranges must have, unless its size is 0 */
	atomic_bool changed; /* it has another version than that, and is left out */
} lade__shard;

/* What the index of a shard says of a chunk. */
typedef struct lade__entry_of {
	bool missing;
	uint64_t off, size; /* 'off' is the object's; or that of shard->bytes, if it has them */
} lade__entry_of;

typedef struct lade__spot lade__spot;

/* The bytes of a stored chunk without codecs that are read: ranges of 'size' bytes, one for each
 * index of the stored axes before 'axis' that is wanted. */
typedef struct lade__runs {
	size_t count; /* 0: the chunk is read whole */
	size_t size, off; /* 'off': of the first one, in the chunk */
	size_t axis;
	bool straight; /* to their places */
	bool whole;    /* one range, which is all of the chunk; 'straight' is set */
} lade__runs;

/* The most ranges that a chunk is read by; a call to the store has up to twice as many. */
#define LADE__RUNS_MOST 4096

/* A chunk that holds no chunks. */
typedef struct lade__leaf {
	lade__cut cut[LADE_DIMS_MAX];
	lade__points points;
	uint64_t chunk[LADE_DIMS_MAX]; /* of the grid */
	const char *key; /* &own_key, or the shard's */
	char own_key[LADE_KEY_MAX + 1];
	lade__shard *shard; /* that has it; NULL: none */
	/* Its bytes: all of the object's, or a range of it. */
	bool missing;
	uint64_t off, size; /* of a shard's; 'size' also if 'looked' */
	bool looked;        /* the store was asked for the size */
	lade__runs runs;
	/* The result of reading. */
	const uint8_t *data;
	size_t data_size;
	bool staged;    /* 'data' is in the buffer that it was read to */
	const lade__spot *spot; /* NULL: it has not been made yet */
	uint8_t *large; /* memory of its own, for lade__leaf_reset() */
	size_t large_size;
	lade_status status;
	lade_error error;
} lade__leaf;

/* Who hands out the leaves of some shards, or of the grid. */
typedef struct lade__feed {
	struct lade_zarr_plan *r;
	const lade__level *level;
	lade__shard *shards; /* NULL: the grid */
	size_t shard_count;
	pthread_mutex_t mutex; /* guards what follows */
	size_t at;             /* the shard of the walk */
	bool walking;
	lade__walk walk;
} lade__feed;

/* read_feed.c: what is next, up to 'most' leaves; 0: nothing, or the call has failed.  A leaf may
 * come with a bad status. */
size_t lade__feed_take(lade__feed *feed, lade__leaf *leaves, size_t most);

/* Where a leaf goes. */
struct lade__spot {
	lade__fit fit;
	lade_span span;
	size_t offset; /* of the result's element (0, 0, ...), if the leaf were all of it */
	ptrdiff_t strides[LADE_DIMS_MAX]; /* by axis of the result */
	bool direct; /* contiguous, as a whole, from fit.layout.offset on */
	size_t size; /* bytes that it gives to the result */
	/* Of leaf->runs, by stored axis: how many, and bytes to the next in the chunk and in the
	 * result. */
	size_t counts[LADE_DIMS_MAX], from[LADE_DIMS_MAX];
	ptrdiff_t to[LADE_DIMS_MAX];
};

/* The device that decodes, or may. */
static inline int32_t lade__zread_device(const lade__zread *r)
{
	lade_place place = r->target.span.place;
	bool there = place.kind == LADE_DEVICE || place.kind == LADE_MANAGED;
	return there ? place.device : r->options.device;
}

static inline unsigned lade__zread_threads(const lade__zread *r)
{
	return r->options.threads ? r->options.threads : r->engine->threads;
}

/* read_place.c: the box and the span of a leaf.  Fails: as the callback; LADE_E_RANGE */
lade_status lade__spot_make(lade__zread *r, const lade__leaf *leaf, lade__spot *spot,
                            lade_error *err);

/* Copies a spot, with the tables of its layout. */
void lade__spot_copy(lade__spot *to, const lade__spot *from);

/* read_part.c: of an array without codecs: makes the leaf's spot, and decides which bytes of the
 * chunk are read, and whether the store writes them to their places.  Where it reads a part, the
 * spot's layout is that of the part. */
void lade__leaf_runs(lade__zread *r, lade__leaf *leaf, lade__spot *spot);

/* Makes the ranges of leaf->runs, 'like' another one; 'buffer' is used unless they are straight. */
void lade__leaf_ranges(const lade__leaf *leaf, uint8_t *buffer, lade_range like, lade_range *out);

/* Whether a leaf that is wanted whole is contiguous in the target. */
bool lade__spot_direct(const lade__zread *r, const lade__fit *fit);

/* The box of a part of the leaf that the spot was made for. */
void lade__spot_part(const lade__zread *r, const lade__leaf *leaf, lade__spot *spot);

/* Whether elements of a shape are inside a span.  Of 'shape' it takes ndim, shape and elem_size.
 * Fails: LADE_E_RANGE; LADE_E_ARG: a stride of 0 */
lade_status lade__place_fits(const lade_zarr_shape *shape, const ptrdiff_t *strides, lade_span span,
                             size_t offset, lade_error *err);

/* Fills a leaf's place in host memory with the fill value. */
void lade__spot_fill(const lade__zread *r, const lade__spot *spot);

/* read_chunk.c: decodes leaf->data into its place, or fills that. */
lade_status lade__leaf_decode(lade__zread *r, lade__leaf *leaf, lade_worker *worker,
                              lade_error *err);

/* One range with all elements that lists and points want of a chunk; 'count' is 0 if that is all of
 * it. */
void lade__leaf_window(const lade__zread *r, const lade__leaf *leaf, lade__runs *out);

/* Undoes all steps but the last to be undone; 'src' gets what that one decodes. */
lade_status lade__leaf_segment(lade__zread *r, lade__leaf *leaf, lade_segment *src,
                               lade_error *err);

/* Sets the destination of an item: a span, a layout, or an output for each part, for which
 * 'layouts' and 'outputs' have room. */
void lade__spot_outputs(const lade__zread *r, const lade__spot *spot, lade_layout *layouts,
                        lade_item_output *outputs, lade_item *item);

/* read_text.c: elements of any length. */
lade_status lade__texts_new(lade__zread *r, lade_error *err);
void lade__texts_clear(lade__zread *r); /* before a run */
void lade__texts_done(lade__zread *r);  /* after one that did not fail */
void lade__texts_free(lade__zread *r);
lade_status lade__leaf_texts(lade__zread *r, lade__leaf *leaf, lade_error *err);
/* The most bytes that these many encoded ones may decode to. */
uint64_t lade__texts_most(const lade__zread *r, uint64_t encoded);

/* Adds a leaf that is done to a report; to the read's. */
void lade__report_add(lade_zarr_report *report, const lade__zread *r, const lade__leaf *leaf,
                      const lade__spot *spot, bool copied);
void lade__zread_note(lade__zread *r, const lade__leaf *leaf, const lade__spot *spot, bool copied);

/* Makes the specs and routes of a chain.  Fails: LADE_E_UNSUPPORTED, and as the router */
lade_status lade__coding_make(const lade__zread *r, const lade_zarr_chain *chain, size_t size,
                              lade__coding *out, lade_error *err);

/* The bytes of a chunk; SIZE_MAX: too many. */
size_t lade__cut_bytes(const lade__zread *r, const lade__cut *cut);

/* A failure of a leaf, which the call returns: the first one that is noted. */
void lade__zread_fail(lade__zread *r, const lade__leaf *leaf, lade_status status,
                      const lade_error *err);
bool lade__zread_failed(lade__zread *r);

/* read.c: decodes a leaf that was read, unless that failed, and notes what became of it. */
void lade__leaf_finish(lade__zread *r, lade__leaf *leaf, lade_worker *worker);
void lade__leaf_failed(lade__zread *r, lade__leaf *leaf);

/* read_waves.c: does the leaves of a feed.  Fails: LADE_E_NOMEM */
lade_status lade__leaves_in_waves(lade__zread *r, lade__feed *feed, lade_error *err);

/* Copies a leaf; 'spot' is for the copy's. */
void lade__leaf_move(lade__leaf *to, const lade__leaf *from, lade__spot *spot);

/* read_fed.c: likewise, if the read is one that can. */
lade_status lade__leaves_fed(lade__zread *r, lade__feed *feed, lade_error *err);
bool lade__leaves_can_be_fed(const lade__zread *r);
uint64_t lade__fed_memory(const lade__zread *r); /* pinned */

/* read_device.c: decodes leaves, whose places may be on devices; 'from' is where staged bytes are.
 * Fails: LADE_E_NOMEM */
lade_status lade__leaves_to_device(lade__zread *r, lade__leaf *leaves, size_t count,
                                   lade_place from, lade_error *err);
void lade__blanks_free(lade__zread *r);

/* The options of a batch for a device; 'errors': one for each item. */
lade_batch_options lade__zread_batch(const lade__zread *r, lade_error *errors);

/* read_bytes.c: reads ranges of the chunk store on any thread, and adds to the report. */
lade_status lade__zread_ranges(lade__zread *r, lade_range *ranges, size_t count, unsigned threads,
                               lade_error *errors, lade_error *err);

/* Reads the bytes of leaves into 'buffer', which has lade__leaf_room() bytes for each; the leaves'
 * statuses say what became of them. */
void lade__leaves_read(lade__zread *r, lade__leaf *leaves, size_t count, uint8_t *buffer,
                       unsigned threads);
size_t lade__leaf_room(const lade__zread *r, const lade__leaf *leaf);

/* Asks the store for the size of a leaf that would need much memory, so that a missing one takes
 * none. */
void lade__leaf_look(lade__zread *r, lade__leaf *leaf);
void lade__leaf_reset(lade__zread *r, lade__leaf *leaf);

/* read_shard.c: reads the indexes of shards.  Their failures are noted. */
lade_status lade__shards_open(lade__zread *r, size_t level, lade__shard *shards, size_t count,
                              lade_error *err);
void lade__shards_close(lade__shard *shards, size_t count);

/* What a shard's index says of a chunk of 'level'.  Fails: LADE_E_CORRUPT */
lade_status lade__shard_entry(const lade__zread *r, const lade__shard *shard, size_t level,
                              const lade__cut *cut, lade__entry_of *out, lade_error *err);

/* Where a leaf is in its shard: its range, or that it is missing.  Fails: LADE_E_CORRUPT,
 * LADE_E_LIMIT */
lade_status lade__shard_find(const lade__zread *r, lade__leaf *leaf, lade_error *err);

#endif
