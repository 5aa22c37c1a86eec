/*
 * layout.h: where the elements of one chunk go in a larger array.
 *
 * This puts a chunk of 64 x 256 floats into rows 300 to 363, columns 0 to 255 of a larger array:
 *
 *	static float array[1000][1000];
 *	size_t shape[2] = {64, 256};
 *	ptrdiff_t strides[2] = {sizeof array[0], sizeof array[0][0]};
 *	lade_layout layout = {.struct_size = sizeof layout, .elem_size = 4, .ndim = 2,
 *	                      .shape = shape, .offset = 300 * sizeof array[0], .strides = strides};
 *	lade_segment chunk = {.data = packed, .size = size};
 *	lade_item item = {.src = &chunk, .src_count = 1, .layout = &layout,
 *	                  .dst = lade_host_span(array, sizeof array)};
 *	if (lade_decode_into(engine, spec, &item, 1, NULL, NULL, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *
 * With lade_encode_into() and the array as source, the same layout encodes that part of it.
 * docs/layouts.md explains the model and lists what is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_LAYOUT_H
#define LADE_LAYOUT_H

#include <lade/codec.h>
#include <lade/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_DIMS_MAX 32

/*
 * Maps the elements of a chunk to the bytes of a span.  Zero-initialise, set struct_size,
 * elem_size, ndim and shape, then the fields you need.  Each table has 'ndim' entries.  A call
 * reads the layout and its tables before it returns and keeps no pointer to them.
 *
 * The chunk is in C order: its last axis is contiguous.  Below, "source" is the chunk and
 * "destination" the array, as when decoding.  Encoding uses the same fields in the other direction.
 */
typedef struct lade_layout {
	size_t struct_size;  /* sizeof(lade_layout) */
	size_t elem_size;    /* bytes of an element in the chunk; not 0 */
	size_t ndim;         /* 0 (one element) to LADE_DIMS_MAX */
	const size_t *shape; /* elements of the whole chunk along each source axis */

	/* The box: along each source axis, indices start + i * step for i < count.  NULL: 0, 1 and
	 * as many as fit.  Every index must be below the shape. */
	const size_t *start, *step, *count;

	/* For each destination axis, the source axis that it is: a permutation.  NULL: same
	 * order. */
	const size_t *order;

	/* For each destination axis, the bytes from one index to the next, of any sign.  NULL: the
	 * box in C order without gaps.  On an axis of two or more, 0 repeats an element when
	 * encoding and is refused when decoding. */
	const ptrdiff_t *strides;
	size_t offset; /* bytes from the start of the span to index (0, 0, ...) */

	/* The bytes of each element to use, such as a field of a record.  part_size 0: all bytes
	 * from part_off on. */
	size_t part_off, part_size;

	/* Reverse the bytes of each unit of this size in the part.  It must divide the part; for a
	 * complex number it is half of the part.  0 or 1: reverse nothing. */
	size_t swap_size;
} lade_layout;

/* The sizes of a layout, from lade_layout_measure().  The struct never changes. */
typedef struct lade_layout_sizes {
	size_t chunk_size; /* bytes of the whole chunk */
	size_t size;       /* bytes that a call reads or writes in the span, without gaps */
	size_t first, end; /* it touches no byte of the span outside [first, end); equal if 'size'
	                    * is 0 */
} lade_layout_sizes;

/*
 * Checks a layout against a span of 'span_size' bytes, as a call in that direction does, and fills
 * in '*sizes' unless it is NULL.  To find out how large a span must be, pass SIZE_MAX.
 *
 * Fails: LADE_E_ARG, LADE_E_RANGE (docs/layouts.md lists the cases)
 */
LADE_API lade_status lade_layout_measure(const lade_layout *layout, lade_direction direction,
                                         size_t span_size, lade_layout_sizes *sizes,
                                         lade_error *err);

/*
 * lade_layout_scatter() copies a decoded chunk to the span; lade_layout_gather() copies a chunk
 * from the span.  The calling thread does it, in memory that the host can touch.
 *
 * 'chunk_size' is the size of the whole chunk.  Chunk and span must not overlap.  When gathering,
 * the box and the part must be the whole chunk.
 *
 * Fails:   LADE_E_ARG, LADE_E_RANGE; LADE_E_NO_DEVICE for a device's memory
 * Threads: any number
 * Owns:    nothing
 */
LADE_API lade_status lade_layout_scatter(const lade_layout *layout, const void *chunk,
                                         size_t chunk_size, lade_span dst, lade_error *err);
LADE_API lade_status lade_layout_gather(const lade_layout *layout, lade_cspan src, void *chunk,
                                        size_t chunk_size, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
