/*
 * ints_simple.h: the kernels of ints.h as loops that compilers turn into vectors, written once.
 * Included by the file of each instruction set, which defines TARGET, the function attribute that
 * selects it, and adds the sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/ints.h"

#include <string.h>

/* Elements of any alignment, that may alias anything. */
typedef uint8_t __attribute__((may_alias)) any8;
typedef uint16_t __attribute__((may_alias, aligned(1))) any16;
typedef uint32_t __attribute__((may_alias, aligned(1))) any32;
typedef uint64_t __attribute__((may_alias, aligned(1))) any64;

/* In place, an element is overwritten before the next one needs it: blocks are copied first. */
#define BLOCK_BYTES 4096

#define ARITHMETIC(bits) \
	static TARGET void diff_apart##bits(const any##bits *restrict src, \
	                                    any##bits *restrict dst, size_t count) \
	{ \
		for (size_t i = 1; i < count; i++) \
			dst[i] = (uint##bits##_t)(src[i] - src[i - 1]); \
	} \
	static TARGET void diff##bits(const void *src, void *dst, size_t count, uint64_t before) \
	{ \
		const any##bits *from = src; \
		any##bits *to = dst; \
		uint##bits##_t last = (uint##bits##_t)before, block[BLOCK_BYTES / (bits / 8)]; \
		size_t step = src == dst ? sizeof block / sizeof *block : count, n; \
		for (size_t i = 0; i < count; i += n) { \
			const any##bits *at = from + i; \
			n = count - i < step ? count - i : step; \
			if (src == dst) \
				at = memcpy(block, from + i, n * sizeof *block); \
			uint##bits##_t end = at[n - 1]; \
			diff_apart##bits(at, to + i, n); \
			to[i] = (uint##bits##_t)(at[0] - last); \
			last = end; \
		} \
	} \
	static TARGET void zig##bits(const void *src, void *dst, size_t count) \
	{ \
		const any##bits *from = src; \
		any##bits *to = dst; \
		for (size_t i = 0; i < count; i++) { \
			uint##bits##_t x = from[i]; \
			to[i] = (uint##bits##_t)((x << 1) ^ (0 - (x >> (bits - 1)))); \
		} \
	} \
	static TARGET void zag##bits(const void *src, void *dst, size_t count) \
	{ \
		const any##bits *from = src; \
		any##bits *to = dst; \
		for (size_t i = 0; i < count; i++) { \
			uint##bits##_t x = from[i]; \
			to[i] = (uint##bits##_t)((x >> 1) ^ (0 - (x & 1))); \
		} \
	}

ARITHMETIC(8)
ARITHMETIC(16)
ARITHMETIC(32)
ARITHMETIC(64)

#define SWAP(bits, reverse)                                                        \
	static TARGET void swap##bits(const void *src, void *dst, size_t count)  \
	{                                                                        \
		const any##bits *from = src;                                     \
		any##bits *to = dst;                                             \
		for (size_t i = 0; i < count; i++)                               \
			to[i] = reverse(from[i]);                                 \
	}

SWAP(16, __builtin_bswap16)
SWAP(32, __builtin_bswap32)
SWAP(64, __builtin_bswap64)

static TARGET void swap8(const void *src, void *dst, size_t count)
{
	if (count)
		memmove(dst, src, count);
}

/* The last elements of a sum, or all of them. */
#define SUM_LOOP(bits)                                                                        \
	static inline TARGET uint64_t sum_loop##bits(const any##bits *src, any##bits *dst,    \
	                                             size_t count, uint64_t before)           \
	{                                                                                     \
		uint##bits##_t x = (uint##bits##_t)before;                                    \
		for (size_t i = 0; i < count; i++) {                                          \
			x = (uint##bits##_t)(x + src[i]);                                     \
			dst[i] = x;                                                           \
		}                                                                             \
		return x;                                                                     \
	}

SUM_LOOP(8)
SUM_LOOP(16)
SUM_LOOP(32)
SUM_LOOP(64)

#define INT_KERNELS(level)                              \
	{                                                  \
		level,                                     \
		{diff8, diff16, diff32, diff64},           \
		{sum8, sum16, sum32, sum64},               \
		{zig8, zig16, zig32, zig64},               \
		{zag8, zag16, zag32, zag64},               \
		{swap8, swap16, swap32, swap64},           \
	}
