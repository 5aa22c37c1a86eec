/*
 * shuffle.h: byte shuffle and bit shuffle of host memory, for the filters and for formats that
 * shuffle inside (Blosc).  The layouts: docs/format/filters.md, sections 1 and 2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FILTER_SHUFFLE_H
#define LADE_FILTER_SHUFFLE_H

#include <lade/codec.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whole buffers.  'elem' is from 1 to 255 bytes; 'size' bytes are read from 'src' and written to
 * 'dst', which do not overlap and may be of any alignment.  'cpu' is the highest level to use.
 *
 * Byte shuffle: the trailing size % elem bytes are copied as they are.  Bit shuffle: the largest
 * multiple of 8 elements is transposed and all bytes after it are copied as they are.  (Blosc1
 * copies a whole block whose number of elements is no multiple of 8: its caller must see to that.)
 */
void lade__shuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu);
void lade__unshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu);
void lade__bitshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu);
void lade__bitunshuffle(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu);

/*
 * A tile of a buffer of tile->total bytes; 'carry' may be NULL.  The plain side ('src' of a
 * shuffle, 'dst' of an unshuffle) points at the tile, the shuffled side at its whole.  The bytes
 * after the last whole element go with the tile that ends there.
 */
void lade__shuffle_tile(size_t elem, const lade_elements *tile, lade_cpu cpu);
void lade__unshuffle_tile(size_t elem, const lade_elements *tile, lade_cpu cpu);

/* A form of the bit shuffle; the functions above know the one that is lowest bit first, in one
 * block. */
typedef struct lade__bit_form {
	size_t elem;  /* bytes an element, 1 to 255 */
	bool msb;     /* the highest bit's row comes first */
	size_t block; /* bytes that are shuffled on their own, a multiple of 8 * elem; 0: all */
} lade__bit_form;

/* Likewise.  Tiles may begin and end anywhere, but those that are not at a multiple of 8 elements
 * are slow there, and a shuffle (not the unshuffle) needs them in increasing order. */
void lade__bitshuffle_tile(const lade__bit_form *form, const lade_elements *tile, lade_cpu cpu);
void lade__bitunshuffle_tile(const lade__bit_form *form, const lade_elements *tile, lade_cpu cpu);

/*
 * The kernels of one instruction set.  A plane is byte j of all elements, 'pitch' bytes after the
 * plane of byte j - 1; a row is one bit of all bytes of a plane.
 *
 * to_planes:   dst[j * pitch + i] = src[i * elem + j]      for i < count, j < elem
 * from_planes: dst[i * elem + j] = src[j * pitch + i]
 * to_rows:     bit i % 8 of dst[k * pitch + i / 8] = bit k of src[i]   for i < count, k < 8
 * from_rows:   bit k of dst[i] = bit i % 8 of src[k * pitch + i / 8]
 * join_planes: dst[i * elem + j] = planes[j][i]; 'past': past the caches, for results that are
 *              larger than these, if 'dst' is aligned to 16 bytes
 *
 * 'count' is a multiple of 8 for rows; the pitch of from_rows may be below 0.  'src' and 'dst' do
 * not overlap.
 */
typedef struct lade__shuffle_kernels {
	lade_cpu cpu;
	void (*to_planes)(const uint8_t *src, uint8_t *dst, size_t count, size_t elem,
	                  size_t pitch);
	void (*from_planes)(const uint8_t *src, uint8_t *dst, size_t count, size_t elem,
	                    size_t pitch);
	void (*to_rows)(const uint8_t *src, uint8_t *dst, size_t count, size_t pitch);
	void (*from_rows)(const uint8_t *src, uint8_t *dst, size_t count, ptrdiff_t pitch);
	void (*join_planes)(const uint8_t *const *planes, uint8_t *dst, size_t count, size_t elem,
	                    bool past);
} lade__shuffle_kernels;

extern const lade__shuffle_kernels lade__shuffle_plain;
#if defined(__x86_64__)
extern const lade__shuffle_kernels lade__shuffle_sse42, lade__shuffle_avx2, lade__shuffle_avx512;
extern const lade__shuffle_kernels lade__shuffle_gfni;
#endif

/* The best ones of a level. */
const lade__shuffle_kernels *lade__shuffle_kernels_of(lade_cpu cpu);

#endif
