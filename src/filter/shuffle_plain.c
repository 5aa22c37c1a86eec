/*
 * shuffle_plain.c: the shuffle kernels without any instruction set in particular.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/shuffle.h"

#include <string.h>

/* 'elem' is a constant where these are inlined below, so that compilers unroll the inner loop. */
static inline __attribute__((always_inline)) void planes_of(const uint8_t *restrict src,
                                                            uint8_t *restrict dst, size_t count,
                                                            size_t elem, size_t pitch)
{
	for (size_t j = 0; j < elem; j++)
		for (size_t i = 0; i < count; i++)
			dst[j * pitch + i] = src[i * elem + j];
}

static inline __attribute__((always_inline)) void elements_of(const uint8_t *restrict src,
                                                              uint8_t *restrict dst,
                                                              size_t count, size_t elem,
                                                              size_t pitch)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < elem; j++)
			dst[i * elem + j] = src[j * pitch + i];
}

#define BY_SIZE(call, elem)     \
	switch (elem) {         \
	case 2:                 \
		call(2);        \
		break;          \
	case 4:                 \
		call(4);        \
		break;          \
	case 8:                 \
		call(8);        \
		break;          \
	case 16:                \
		call(16);       \
		break;          \
	default:                \
		call(elem);     \
		break;          \
	}

static void to_planes(const uint8_t *src, uint8_t *dst, size_t count, size_t elem, size_t pitch)
{
#define CALL(n) planes_of(src, dst, count, n, pitch)
	BY_SIZE(CALL, elem)
#undef CALL
}

static void from_planes(const uint8_t *src, uint8_t *dst, size_t count, size_t elem, size_t pitch)
{
#define CALL(n) elements_of(src, dst, count, n, pitch)
	BY_SIZE(CALL, elem)
#undef CALL
}

/*
 * Transposes the 8 x 8 bits of a word: bit 8r + c goes to bit 8c + r.  Each step swaps the two
 * off-diagonal squares of 1, 2, then 4 bits a side.
 */
static inline uint64_t transpose_bits(uint64_t x)
{
	uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AAULL;
	x ^= t ^ (t << 7);
	t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCCULL;
	x ^= t ^ (t << 14);
	t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0ULL;
	return x ^ t ^ (t << 28);
}

static void to_rows(const uint8_t *src, uint8_t *dst, size_t count, size_t pitch)
{
	for (size_t q = 0; q < count / 8; q++) {
		uint64_t x = 0;
		for (unsigned m = 0; m < 8; m++)
			x |= (uint64_t)src[8 * q + m] << (8 * m);
		x = transpose_bits(x);
		for (unsigned k = 0; k < 8; k++)
			dst[k * pitch + q] = (uint8_t)(x >> (8 * k));
	}
}

static void from_rows(const uint8_t *src, uint8_t *dst, size_t count, ptrdiff_t pitch)
{
	for (size_t q = 0; q < count / 8; q++) {
		uint64_t x = 0;
		for (unsigned k = 0; k < 8; k++)
			x |= (uint64_t)src[(ptrdiff_t)k * pitch + (ptrdiff_t)q] << (8 * k);
		x = transpose_bits(x);
		for (unsigned m = 0; m < 8; m++)
			dst[8 * q + m] = (uint8_t)(x >> (8 * m));
	}
}

static void join_planes(const uint8_t *const *planes, uint8_t *dst, size_t count, size_t elem,
                        bool past)
{
	(void)past;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < elem; j++)
			dst[i * elem + j] = planes[j][i];
}

const lade__shuffle_kernels lade__shuffle_plain = {
	LADE_CPU_PLAIN, to_planes, from_planes, to_rows, from_rows, join_planes,
};
