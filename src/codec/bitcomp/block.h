/*
 * block.h: sub-blocks of bitcomp (docs/format/bitcomp.md, sections 2 and 3) for one instruction
 * set.  The including file defines TARGET (a function attribute), VEC (bytes of a vector) and,
 * where there are such instructions, BZHI, PEXT and PDEP; it uses BITCOMP_KERNELS(cpu).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/bitcomp.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#ifndef RANKS
#define RANKS lade__bitcomp_ranks
#endif

#define INLINE static inline TARGET __attribute__((always_inline, unused))

INLINE uint64_t load64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}

INLINE void store64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

INLINE unsigned bits_of(uint64_t v)
{
#ifdef LZCNT
	return 64 - (unsigned)LZCNT(v);
#else
	return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
#endif
}

INLINE uint64_t low_bits(unsigned count)
{
#ifdef BZHI
	return BZHI(UINT64_MAX, count);
#else
	return count ? UINT64_MAX >> (64 - count) : 0;
#endif
}

/* The lowest 'width' bits of each field of 'field' bits. */
INLINE uint64_t fields(unsigned width, unsigned field)
{
	return low_bits(width) * (UINT64_MAX / (UINT64_MAX >> (64 - field)));
}

/* The fields' values side by side, and back: 'width' bits each, 64 / field of them. */
INLINE uint64_t squeeze(uint64_t v, unsigned width, unsigned field)
{
#ifdef PEXT
	return PEXT(v, fields(width, field));
#else
	uint64_t out = 0;
	for (unsigned i = 0; i < 64 / field; i++)
		out |= (v >> i * field & low_bits(width)) << i * width;
	return out;
#endif
}

INLINE uint64_t spread(uint64_t v, unsigned width, unsigned field)
{
#ifdef PDEP
	return PDEP(v, fields(width, field));
#else
	uint64_t out = 0;
	for (unsigned i = 0; i < 64 / field; i++)
		out |= (v >> i * width & low_bits(width)) << i * field;
	return out;
#endif
}

/* A sub-block to encode. */
typedef struct subblock {
	const uint8_t *src;
	size_t len;
	const uint8_t *next; /* the next one's bytes: asked for */
} subblock;

/* What packing as 'mode' says makes: all parts but the payload. */
INLINE size_t parts_size(unsigned log, unsigned mode, unsigned words, unsigned units)
{
	return LADE_BITCOMP_HEADER + (log == 3 && (mode & LADE_BITCOMP_DELTA) ? 16u : 0u) +
	       lade__bitcomp_up(mode & LADE_BITCOMP_DICT ? words : 0) +
	       lade__bitcomp_up(mode & LADE_BITCOMP_WIDTHS ? (units + 1) / 2 : 0);
}

/* Units' numbers of bits, a vector of bytes at once; arrays of them end with zeros up to one. */
typedef uint8_t bvec __attribute__((vector_size(VEC)));
typedef uint16_t pairs __attribute__((vector_size(VEC)));
typedef uint8_t half_bytes __attribute__((vector_size(VEC / 2)));

INLINE bvec bvec_load(const uint8_t *p)
{
	bvec b;
	memcpy(&b, p, VEC);
	return b;
}

INLINE void bvec_store(uint8_t *p, bvec b)
{
	memcpy(p, &b, VEC);
}

INLINE bvec bvec_least(bvec a, bvec b)
{
#ifdef MIN_OF
	return (bvec)MIN_OF(0, a, b);
#else
	bvec m = (bvec)(a < b);
	return (a & m) | (b & ~m);
#endif
}

/* How much less than 'width' bits codes can say for units that need 'n', of those not 0. */
INLINE bvec less_of(bvec n, unsigned width, unsigned step)
{
	bvec less = ((bvec){0} + (uint8_t)width - n) & (uint8_t)(0xFF << step);
	return bvec_least(less, (bvec){0} + (uint8_t)(14 << step));
}

/* The widths that codes can say for units that need 'n' bits. */
INLINE bvec widths_of(bvec n, unsigned width, unsigned step)
{
	return ((bvec){0} + (uint8_t)width - less_of(n, width, step)) & (bvec)(n != 0);
}

/*
 * The sum of all units' widths as codes can say them, and the step with which it is least.
 */
INLINE size_t widths_sum(const uint8_t *need, size_t units, unsigned width, unsigned *step)
{
	unsigned best = UINT_MAX;
	pairs all[3] = {{0}};
	/* 14 less than 'width' can be said with step 0: then other steps would only lose. */
	unsigned steps = width > 14 ? 3 : 1;
	for (size_t u = 0; u < units; u += VEC) {
		bvec n = bvec_load(need + u);
		for (unsigned s = 0; s < steps; s++) {
			pairs w = (pairs)(steps == 1 ? n : widths_of(n, width, s));
			all[s] += (w & 0xFF) + (w >> 8);
		}
	}
	for (unsigned s = 0; s < steps; s++) {
		uint16_t sum = 0; /* at most the bits of 1 KiB */
		for (unsigned i = 0; i < VEC / 2; i++)
			sum = (uint16_t)(sum + all[s][i]);
		if (sum < best) {
			best = sum;
			*step = s;
		}
	}
	return best;
}

/* The units' widths as their codes say them, and the codes, two a byte. */
INLINE void widths_put(const uint8_t *need, size_t units, unsigned width, unsigned step,
                       uint8_t *widths, uint8_t *codes)
{
	for (size_t u = 0; u < units; u += VEC) {
		bvec n = bvec_load(need + u), none = (bvec)(n == 0);
		pairs code = (pairs)((less_of(n, width, step) >> step & ~none) | (none & 15));
		half_bytes out =
			__builtin_convertvector((code & 15) | (code >> 4 & 0xF0), half_bytes);
		bvec_store(widths + u, widths_of(n, width, step));
		memcpy(codes + u / 2, &out, VEC / 2);
	}
}

/* The largest of bytes. */
INLINE unsigned most_of(const uint8_t *p, size_t count)
{
	bvec least = ~(bvec){0};
	unsigned last = 255;
	for (size_t i = 0; i < count; i += VEC)
		least = bvec_least(least, ~bvec_load(p + i));
#ifdef LEAST_IN
	last = (unsigned)LEAST_IN(0, least);
#else
	for (unsigned i = 0; i < VEC; i++)
		last = least[i] < last ? least[i] : last;
#endif
	return 255 - last;
}

/* to[i] = table[from[i]], where these are below 'words'; may do whole vectors. */
INLINE void look_up_all(const uint8_t table[256], unsigned words, const uint8_t *from, size_t count,
                        uint8_t *to)
{
#ifdef LOOK_UP
	LOOK_UP(table, words, from, count, to);
#else
	(void)words;
	for (size_t i = 0; i < count; i++)
		to[i] = table[from[i]];
#endif
}

/* The numbers of byte values among 'size' bytes, fewer than 2^16; gives how many there are. */
INLINE unsigned count_bytes(const uint8_t *from, size_t size, uint16_t count[256])
{
	/* Several tables, so that equal bytes in a row do not wait for one another. */
	uint16_t part[4][256];
	unsigned words = 0;
	memset(part, 0, sizeof part);
	for (size_t i = 0; i < size; i += 8) {
		uint64_t v = load64(from + i);
		for (unsigned k = 0; k < 8; k++)
			part[k % 4][v >> 8 * k & 0xFF]++;
	}
	for (unsigned i = 0; i < 256; i++) {
		count[i] = (uint16_t)(part[0][i] + part[1][i] + part[2][i] + part[3][i]);
		words += count[i] != 0;
	}
	return words;
}

/* ---- the sizes of elements ------------------------------------------------------------------- */

#define ELEM uint8_t
#define WORD int8_t
#define LOG 0
#include "codec/bitcomp/block_size.h"

#define ELEM uint16_t
#define WORD int16_t
#define LOG 1
#include "codec/bitcomp/block_size.h"

#define ELEM uint32_t
#define WORD int32_t
#define REAL_TYPE float
#define LOG 2
#include "codec/bitcomp/block_size.h"

#define ELEM uint64_t
#define WORD int64_t
#define REAL_TYPE double
#define LOG 3
#include "codec/bitcomp/block_size.h"

#define BITCOMP_KERNELS(CPU) \
	{ \
		.cpu = CPU, .encode = {encode_0, encode_1, encode_2, encode_3}, \
		.decode = {decode_0, decode_1, decode_2, decode_3}, \
		.quantise = {NULL, quantise_1, quantise_2, quantise_3}, \
		.restore = {NULL, restore_1, restore_2, restore_3}, \
	}
