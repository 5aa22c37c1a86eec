/*
 * block.h: sub-blocks of bitcomp (docs/format/bitcomp.md, sections 2 and 3) for one instruction
 * set.  The including file defines TARGET (a function attribute), VEC (bytes of a vector) and,
 * where there are such instructions, BZHI, PEXT and PDEP; it uses BITCOMP_KERNELS(cpu).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/bitcomp.h"

#include <string.h>

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

/* What packing as 'mode' says makes: all parts but the payload. */
INLINE size_t parts_size(unsigned log, unsigned mode, unsigned words, unsigned units)
{
	return LADE_BITCOMP_HEADER + (log == 3 && (mode & LADE_BITCOMP_DELTA) ? 16u : 0u) +
	       lade__bitcomp_up(mode & LADE_BITCOMP_DICT ? words : 0) +
	       lade__bitcomp_up(mode & LADE_BITCOMP_WIDTHS ? (units + 1) / 2 : 0);
}

/* 8 units' widths, and numbers of their size. */
typedef uint16_t counts __attribute__((vector_size(16)));
typedef uint8_t bytes8 __attribute__((vector_size(8)));

INLINE counts counts_load(const uint8_t *p)
{
	bytes8 b;
	memcpy(&b, p, 8);
	return __builtin_convertvector(b, counts);
}

INLINE void counts_store(uint8_t *p, counts n)
{
	bytes8 b = __builtin_convertvector(n, bytes8);
	memcpy(p, &b, 8);
}

/* The codes of units that need 'n' bits: of the least widths that can be said. */
INLINE counts codes_of(counts n, unsigned width, unsigned step)
{
	counts code = ((counts){0} + (uint16_t)width - n) >> step;
	counts large = (counts)(code > 14), none = (counts)(n == 0);
	return (((code & ~large) | (large & 14)) & ~none) | (none & 15);
}

/* What codes say. */
INLINE counts widths_of(counts code, unsigned width, unsigned step)
{
	return ((counts){0} + (uint16_t)width - (code << step)) & (counts)(code != 15);
}

/*
 * The sum of all units' widths as codes can say them, and the step with which it is least.  'need'
 * has the units' bits, and zeros up to a multiple of 8.
 */
INLINE size_t widths_sum(const uint8_t *need, size_t units, unsigned width, unsigned *step)
{
	size_t best = SIZE_MAX;
	counts all[3] = {{0}};
	/* 14 less than 'width' can be said with step 0: then other steps would only lose. */
	unsigned steps = width > 14 ? 3 : 1;
	for (size_t u = 0; u < units; u += 8) {
		counts n = counts_load(need + u);
		if (steps == 1)
			all[0] += n;
		for (unsigned s = 0; steps == 3 && s < 3; s++)
			all[s] += widths_of(codes_of(n, width, s), width, s);
	}
	for (unsigned s = 0; s < steps; s++) {
		size_t sum = 0;
		for (unsigned i = 0; i < 8; i++)
			sum += all[s][i];
		if (sum < best) {
			best = sum;
			*step = s;
		}
	}
	return best;
}

/* The largest of bytes, of which there is a multiple of 8, or zeros up to one. */
INLINE unsigned most_of(const uint8_t *p, size_t count)
{
	counts most = {0};
	unsigned last = 0;
	for (size_t i = 0; i < count; i += 8) {
		counts n = counts_load(p + i), m = (counts)(n > most);
		most = (n & m) | (most & ~m);
	}
	for (unsigned i = 0; i < 8; i++)
		last = most[i] > last ? most[i] : last;
	return last;
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
#define LOG 2
#include "codec/bitcomp/block_size.h"

#define ELEM uint64_t
#define WORD int64_t
#define LOG 3
#include "codec/bitcomp/block_size.h"

#define BITCOMP_KERNELS(CPU) \
	{ \
		.cpu = CPU, .encode = {encode_0, encode_1, encode_2, encode_3}, \
		.decode = {decode_0, decode_1, decode_2, decode_3}, \
	}
