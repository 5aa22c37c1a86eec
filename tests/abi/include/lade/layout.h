/*
 * layout.h: where the elements of one chunk lie in a larger array.
 *
 * A chunk of 100 x 200 floats becomes rows 300 to 399, columns 0 to 199 of an array of
 * 1000 x 1000 floats:
 *
 *	size_t shape[2] = {100, 200};
 *	ptrdiff_t strides[2] = {1000 * 4, 4};
 *	lade_layout layout = {.struct_size = sizeof layout, .elem_size = 4, .ndim = 2,
 *	                      .shape = shape, .offset = 300 * 1000 * 4, .strides = strides};
 *	lade_item item = {.src = &segment, .src_count = 1,
 *	                  .dst = lade_host_span(array, 1000 * 1000 * 4), .layout = &layout};
 *	lade_decode_into(engine, spec, &item, 1, NULL, NULL, &err);
 *
 * The same layout with lade_encode_into() and the array as the source encodes that part of it.
 * docs/layouts.md has the model and what is refused.
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
 * How the elements of a chunk and the bytes of a span belong together.  Zero-initialise, set
 * struct_size, elem_size, ndim and shape, then what is wanted.  The tables have 'ndim' entries
 * each; a call reads the layout and its tables before it returns and keeps neither.
 *
 * The chunk is in C order: its last axis is contiguous.  "Source" and "destination" are meant for
 * decoding, where the chunk is the source.  Encoding uses the same fields the other way round.
 */
typedef struct lade_layout {
	size_t struct_size;  /* sizeof(lade_layout) */
	size_t elem_size;    /* bytes of an element in the chunk; not 0 */
	size_t ndim;         /* 0 (one element) to LADE_DIMS_MAX */
	const size_t *shape; /* elements of the whole chunk along each source axis */

	/* The box, by source axis: indices start + i * step for i < count.  NULL: 0, 1 and as many
	 * as there are.  An index must be below the shape. */
	const size_t *start, *step, *count;

	/* The source axis that each destination axis is: a permutation.  NULL: the same order. */
	const size_t *order;

	/* By destination axis: bytes from one index to the next, of any sign.  NULL: C order of the
	 * box without gaps.  0 on an axis of two or more repeats an element when encoding, and is
	 * refused when decoding. */
	const ptrdiff_t *strides;
	size_t offset; /* bytes from the start of the span to index (0, 0, ...) */

	/* The bytes of each element that are wanted: a field of a record.  part_size 0: all from
	 * part_off on. */
	size_t part_off, part_size;

	/* Reverses the bytes of each unit of this size within the part: the half of the part for a
	 * complex number.  It divides the part.  0 or 1: nothing is reversed. */
	size_t swap_size;
} lade_layout;

/* What a layout comes to; lade_layout_measure() fills it.  It stays as it is for ever. */
typedef struct lade_layout_sizes {
	size_t chunk_size; /* bytes of the whole chunk */
	size_t size;       /* bytes of the box's parts: what a call writes, gaps not counted */
	size_t first, end; /* the bytes [first, end) of the span are all that it can touch; equal
	                    * when 'size' is 0 */
} lade_layout_sizes;

/*
 * Checks a layout against a span of 'span_size' bytes, as a call of that direction does, and fills
 * '*sizes' unless that is NULL.  With SIZE_MAX it tells how large a span must be.
 * Fails: LADE_E_ARG, LADE_E_RANGE; docs/layouts.md lists what
 */
LADE_API lade_status lade_layout_measure(const lade_layout *layout, lade_direction direction,
                                         size_t span_size, lade_layout_sizes *sizes,
                                         lade_error *err);

/*
 * lade_layout_scatter() writes a decoded chunk to the span, lade_layout_gather() makes a chunk of
 * the span; by the calling thread, in memory that the host can touch.
 *
 * 'chunk_size' must be the whole chunk's.  Chunk and span must not overlap.  When gathering, the
 * box and the part must be the whole chunk.
 * Fails:   LADE_E_ARG, LADE_E_RANGE; LADE_E_NO_DEVICE for a device's memory
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
