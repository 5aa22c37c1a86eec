/*
 * lz_data.h: what the tests of LZ kernels encode: bytes between random and very regular.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_LZ_DATA_H
#define LADE_TESTS_LZ_DATA_H

#include "guard.h"
#include "lz_scalar.h"

static inline bytes make_data(rng *r, size_t size)
{
	bytes v(size);
	uint64_t kind = rng_below(r, 8), period = 1 + rng_below(r, 300);
	for (size_t i = 0; i < size; i++) {
		if (kind == 0)
			v[i] = (uint8_t)rng_next(r);
		else if (kind == 1)
			v[i] = (uint8_t)(i % period);
		else if (kind == 2)
			v[i] = (uint8_t)((i / 8 * 40 + rng_below(r, 3)) >> (8 * (i % 8)));
		else if (kind == 3)
			v[i] = "the quick brown fox jumps"[rng_below(r, 25) % (1 + i % 25)];
		else if (kind == 4)
			v[i] = rng_below(r, 40) ? 0 : (uint8_t)rng_next(r);
		else if (kind == 5)
			v[i] = i < period || rng_below(r, 20) == 0 ? (uint8_t)rng_next(r)
			                                           : v[i - period];
		else if (kind == 6)
			v[i] = i % 4096 < 900 ? (uint8_t)(i % 13) : (uint8_t)rng_next(r);
		else
			v[i] = 7;
	}
	return v;
}

#endif
