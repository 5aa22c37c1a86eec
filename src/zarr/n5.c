/*
 * n5.c: blocks of N5: their header, and what is in both a block and its chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/n5.h"

#include "base/support.h"

#include <string.h>

static unsigned be16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

lade_status lade__n5_read(const uint8_t *block, size_t size, size_t ndim, uint64_t *shape,
                          lade_error *err)
{
	if (size < lade__n5_size(ndim))
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "the header of an N5 block: want %zu bytes, have %zu",
		                 lade__n5_size(ndim), size);
	if (be16(block) != 0)
		return lade_fail(err, LADE_E_UNSUPPORTED, 0, "N5 block of mode %u, want 0",
		                 be16(block));
	if (be16(block + 2) != ndim)
		return lade_fail(err, LADE_E_CORRUPT, 2, "N5 block with %u axes, want %zu",
		                 be16(block + 2), ndim);
	for (size_t i = 0; i < ndim; i++)
		shape[i] = (uint64_t)be16(block + 4 + 4 * i) << 16 | be16(block + 6 + 4 * i);
	return LADE_OK;
}

static void put_be(uint8_t *p, uint64_t value, size_t size)
{
	while (size-- > 0) {
		p[size] = (uint8_t)value;
		value >>= 8;
	}
}

void lade__n5_write(uint8_t *block, size_t ndim, const uint64_t *shape)
{
	put_be(block, 0, 2);
	put_be(block + 2, ndim, 2);
	for (size_t i = 0; i < ndim; i++)
		put_be(block + 4 + 4 * i, shape[i], 4);
}

void lade__n5_copy(const uint8_t *from, const uint64_t *from_shape, uint8_t *to,
                   const uint64_t *to_shape, size_t ndim, size_t elem_size)
{
	size_t from_step = elem_size, to_step = elem_size;
	uint64_t both = from_shape[ndim - 1] < to_shape[ndim - 1] ? from_shape[ndim - 1]
	                                                          : to_shape[ndim - 1];
	if (ndim == 1) {
		memcpy(to, from, (size_t)both * elem_size);
		return;
	}
	for (size_t i = 0; i + 1 < ndim; i++) {
		from_step *= (size_t)from_shape[i];
		to_step *= (size_t)to_shape[i];
	}
	for (uint64_t i = 0; i < both; i++)
		lade__n5_copy(from + i * from_step, from_shape, to + i * to_step, to_shape,
		              ndim - 1, elem_size);
}
