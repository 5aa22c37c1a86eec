/*
 * args.h: what the host gives to the kernels that copy boxes (layout.cu).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ARRAY_ARGS_H
#define LADE_ARRAY_ARGS_H

#include "gpu/args.h"

/* Threads of a block that copy, besides a warp that finds what; blocks of a multiprocessor. */
#define LADE_BOX_THREADS 128u
#define LADE_BOX_BLOCKS 4u

/* Selected bytes that a block copies at a time. */
#define LADE_BOX_PIECE 16384u

/* Division by 'number', of a number below 2^31: (n * magic / 2^32 + n) >> shift. */
typedef struct lade_divisor {
	uint32_t number, magic, shift, zero;
} lade_divisor;

/* One axis: bytes from an index to the next on both sides. */
typedef struct lade_box_axis {
	lade_divisor count;
	int64_t src, dst;
} lade_box_axis;
LADE_ARGS(lade_box_axis, 32);

/*
 * The copy of a box.  'size' bytes are selected; byte b of them is byte b % run of run b / run,
 * whose place is 'src' + src_off and 'dst' + dst_off plus what its indices add: the last axis runs
 * fastest.  Of the source only bytes [from, end), counted from 'src', are there.
 */
typedef struct lade_box {
	LADE_ADDRESS(const uint8_t *) src;
	LADE_ADDRESS(uint8_t *) dst;
	int64_t src_off, dst_off;
	uint64_t from, end;
	LADE_ADDRESS(const lade_box_axis *) axes;
	uint64_t wanted; /* the bytes that the unit must have made; 0: whatever it made */
	lade_divisor run;
	uint32_t size;
	uint32_t swap;  /* 0: none */
	uint32_t align; /* all strides and the run, by or */
	uint32_t ndim;
	uint32_t unit;  /* in the tables of sizes and statuses */
	uint32_t first; /* the number of its first piece, among those of all boxes */
} lade_box;
LADE_ARGS(lade_box, 104);

/* What a launch is given.  'sizes' and 'statuses' may be NULL: then all boxes are copied. */
typedef struct lade_boxes {
	LADE_ADDRESS(const lade_box *) list;
	LADE_ADDRESS(const uint64_t *) sizes;
	LADE_ADDRESS(const uint32_t *) statuses;
	uint32_t count, pieces;
} lade_boxes;
LADE_ARGS(lade_boxes, 32);

/* One axis of the layout of a batch of arrays, in the order of the boxes' axes. */
typedef struct lade_grid_axis {
	uint64_t shape, start, count, step;
	int64_t chunk, span; /* bytes from an index to the next, steps not counted in the chunk */
	uint64_t source;     /* the source axis that it is */
} lade_grid_axis;
LADE_ARGS(lade_grid_axis, 56);

/*
 * A batch of arrays with one layout, whose chunks are decoded to slots, or encoded from there.
 * Made of it are: the tables of the slots, a list of boxes with 'ndim' axes each, and what is wrong
 * with an item: LADE_GPU_OK, LADE_GPU_ARG or LADE_GPU_RANGE.
 */
typedef struct lade_grid {
	LADE_ADDRESS(const lade_grid_axis *) axes;
	LADE_ADDRESS(const uint64_t *) boxes; /* by chunk: starts, counts; NULL: the axes' */
	LADE_ADDRESS(const uint64_t *) span;  /* addresses, and bytes */
	LADE_ADDRESS(const uint64_t *) span_size;
	LADE_ADDRESS(uint64_t *) slot;
	LADE_ADDRESS(uint64_t *) slot_size;
	LADE_ADDRESS(lade_box *) list;
	LADE_ADDRESS(lade_box_axis *) box_axes;
	LADE_ADDRESS(uint32_t *) wrong;
	uint64_t slots, stride, chunk; /* the first slot, bytes to the next, bytes of a chunk */
	uint64_t offset, part_off;
	uint32_t part, swap, ndim, count, pieces, encode;
} lade_grid;
LADE_ARGS(lade_grid, 136);

/* What became of its items.  'size' and 'status' may be NULL. */
typedef struct lade_grid_results {
	LADE_ADDRESS(const lade_box *) list;
	LADE_ADDRESS(const uint32_t *) wrong;
	LADE_ADDRESS(const uint64_t *) made_size;
	LADE_ADDRESS(const uint32_t *) made_status;
	LADE_ADDRESS(uint64_t *) size;
	LADE_ADDRESS(uint32_t *) status;
	uint64_t chunk;
	uint32_t count, encode;
} lade_grid_results;
LADE_ARGS(lade_grid_results, 64);

#endif
