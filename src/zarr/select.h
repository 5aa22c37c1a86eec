/*
 * select.h: a selection made ready, and the walk over the chunks that it touches.
 *
 *     lade_zarr_selection --(select.c)--> picks, one for each axis --(walk.c)--> chunks
 *                                         or points                            with boxes
 *
 * A pick is kept in ascending order of the array's indices, so that a chunk's part of it is a range
 * of entries, which a division or a binary search finds: nothing grows with the number of chunks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_SELECT_H
#define LADE_ZARR_SELECT_H

#include "zarr/zarr.h"

#include <lade/zarr_read.h>

/* ---- what is selected ------------------------------------------------------------------ */

/*
 * The indices that are selected along an axis: first + i * step for i < count; with 'at', at[i].
 * Entry i is element i of the result's axis, or count - 1 - i if reversed; with 'at', to[i].
 */
typedef struct lade__pick {
	uint64_t count, first, step;
	bool reversed;
	bool dropped; /* the result lacks the axis */
	uint64_t *at; /* ascending; NULL: by first and step */
	uint64_t *to;
} lade__pick;

static inline uint64_t lade__pick_at(const lade__pick *pick, uint64_t i)
{
	return pick->at ? pick->at[i] : pick->first + i * pick->step;
}

/* Bytes of an element that go to the result: a field, or numbers of one byte order. */
typedef struct lade__piece_of {
	size_t off, size; /* in the stored element */
	size_t to;        /* in the result's element */
	size_t swap;      /* 0: none */
} lade__piece_of;

typedef struct lade__selected {
	const lade_zarr_array *array;
	size_t ndim; /* the array's */
	lade__pick pick[LADE_DIMS_MAX];
	size_t axis_of[LADE_DIMS_MAX]; /* of the result, by axis of the array, unless dropped */
	bool listed;                   /* a pick has 'at' */
	/*
	 * Points: 'at' has ndim indices for each; point i is element i of the result.  A walk puts
	 * the points of a chunk together in 'order'; 'key' and 'other' are room for that.
	 */
	bool points;
	uint64_t *at, *order, *key, *other;
	lade_zarr_shape result;
	uint64_t field_off;
	void *memory[LADE_DIMS_MAX + 1]; /* of the lists, and of the points */
} lade__selected;

/* 'given' NULL: the whole array.  Fails: as lade_zarr_selection_shape(); then nothing is kept */
lade_status lade__select(const lade_zarr *node, const lade_zarr_selection *given,
                         lade__selected *out, lade_error *err);
void lade__selected_free(lade__selected *selected);

/* ---- chunks in chunks ------------------------------------------------------------------- */

/* The deepest nesting of shards. */
#define LADE__LEVELS_MAX 8

/* The chunks of the grid are level 0; the chunks in shards are the next. */
typedef struct lade__level {
	const lade_zarr_chain *chain;
	uint64_t size[LADE_DIMS_MAX];  /* of a chunk along the array's axes; level 0: not set */
	size_t stored[LADE_DIMS_MAX];  /* by axis of the array: which axis of the stored chunk */
} lade__level;

typedef struct lade__levels {
	size_t count;
	lade__level level[LADE__LEVELS_MAX];
} lade__levels;

/* Fails: LADE_E_LIMIT */
lade_status lade__levels_make(const lade_zarr_array *array, lade__levels *out, lade_error *err);

/*
 * index.c: the words of a shard's index, two for each chunk in C order of the stored shard's axes;
 * and their bytes in the order of axes and the byte order of the index's chain.  'grid' has the
 * chunks along each axis of the stored shard, both arrays two words for each of them.
 */
void lade__index_load(const lade_zarr_chain *index, size_t ndim, const size_t *grid,
                      const uint8_t *bytes, uint64_t *words);
void lade__index_store(const lade_zarr_chain *index, size_t ndim, const size_t *grid,
                       const uint64_t *words, uint8_t *bytes);

/* A chunk along one axis, and the entries of the pick that it has. */
typedef struct lade__cut {
	uint64_t chunk;       /* its index: in the grid, or in its shard */
	uint64_t start, size; /* its elements in the array; the last ones may be beyond its end */
	uint64_t from, count; /* entries; not of points */
} lade__cut;

/* Some of the points, by their places in 'order'. */
typedef struct lade__points {
	uint64_t from, count;
} lade__points;

/*
 * Goes through the chunks of a level that a selection touches, in C order: all of the array's, or
 * those in one chunk of the level above.
 *
 *	lade__walk walk;
 *	lade__walk_begin(&walk, selected, level, NULL, lade__all_points(selected));
 *	while (lade__walk_next(&walk))
 *		... walk.cut[axis] ...
 */
typedef struct lade__walk {
	const lade__selected *selected;
	const lade__level *level;
	bool begun, outer;               /* 'outer': level 0 */
	lade__cut cut[LADE_DIMS_MAX];    /* the chunk */
	lade__points points;             /* and those in it */
	lade__cut within[LADE_DIMS_MAX]; /* the chunk of the level above; or the array */
	lade__points points_within;
} lade__walk;

/* 'within' has one for each axis; NULL: the whole array, at level 0.  Of points, it sorts those in
 * 'points_within', which is not looked at otherwise. */
void lade__walk_begin(lade__walk *walk, const lade__selected *selected, const lade__level *level,
                      const lade__cut *within, lade__points points_within);
bool lade__walk_next(lade__walk *walk);

static inline lade__points lade__all_points(const lade__selected *selected)
{
	return (lade__points){0, selected->points ? selected->result.count : 0};
}

/* Sorts the entries of order[0..count) by the values that they have in 'at'; equal ones keep their
 * order.  'other' is room for as many. */
void lade__sort_by(const uint64_t *at, uint64_t *order, uint64_t *other, size_t count);

/* ---- from a chunk to the result --------------------------------------------------------- */

/* Tables of a lade_layout. */
typedef struct lade__fit {
	size_t shape[LADE_DIMS_MAX], start[LADE_DIMS_MAX], step[LADE_DIMS_MAX];
	size_t count[LADE_DIMS_MAX], order[LADE_DIMS_MAX];
	ptrdiff_t strides[LADE_DIMS_MAX];
	lade_layout layout; /* without part and swap, for all bytes of the element */
	bool whole;         /* all of the chunk */
} lade__fit;

/* Where the result is in a span: its strides by axis, and the offset of element (0, 0, ...). */
typedef struct lade__goal {
	const ptrdiff_t *strides;
	size_t offset;
} lade__goal;

/* The layout from a chunk to the result.  No pick has a list. */
void lade__fit_make(lade__fit *fit, const lade__selected *selected, const lade__level *level,
                    const lade__cut *cut, const lade__goal *goal);

#endif
