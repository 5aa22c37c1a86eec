/*
 * elements.h: copies parts of elements, and repeats an element.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_ELEMENTS_H
#define LADE_ZARR_ELEMENTS_H

#include "zarr/select.h"

#include <string.h>

/* Copies the bytes of a piece, from or to the stored element, in the other byte order if it has
 * one. */
static inline void lade__piece_copy(const lade__piece_of *piece, uint8_t *dst, const uint8_t *src)
{
	if (piece->swap <= 1) {
		memcpy(dst, src, piece->size);
		return;
	}
	for (size_t k = 0; k < piece->size; k += piece->swap)
		for (size_t b = 0; b < piece->swap; b++)
			dst[k + b] = src[k + piece->swap - 1 - b];
}

/* Fills 'size' bytes with an element, a multiple of whose 'elem' bytes they are; elem > 0. */
static inline void lade__repeat(uint8_t *to, size_t size, const uint8_t *element, size_t elem)
{
	if (size == 0)
		return;
	memcpy(to, element, elem);
	for (size_t done = elem; done < size; done += done)
		memcpy(to + done, to, done < size - done ? done : size - done);
}

#endif
