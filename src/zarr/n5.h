/*
 * n5.h: the header of a block of N5, and blocks that are smaller or larger than their chunk.
 *
 *	| mode 2 | axes 2 | size 4 of each axis | elements, the first axis fastest |    big-endian
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_N5_H
#define LADE_ZARR_N5_H

#include <lade/status.h>

#include <stdint.h>

/* The header's bytes. */
static inline size_t lade__n5_size(size_t ndim)
{
	return 4 + 4 * ndim;
}

/* Reads the sizes by axis.  Fails: LADE_E_TRUNCATED, LADE_E_CORRUPT, LADE_E_UNSUPPORTED */
lade_status lade__n5_read(const uint8_t *block, size_t size, size_t ndim, uint64_t *shape,
                          lade_error *err);
void lade__n5_write(uint8_t *block, size_t ndim, const uint64_t *shape);

/* Copies the elements of 'from' that 'to' has, too; both shapes by axis of the header. */
void lade__n5_copy(const uint8_t *from, const uint64_t *from_shape, uint8_t *to,
                   const uint64_t *to_shape, size_t ndim, size_t elem_size);

#endif
