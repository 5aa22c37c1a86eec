/*
 * block.h: sub-blocks of bitcomp (docs/format/bitcomp.md, sections 2 and 3) for one instruction
 * set.  The including file defines TARGET (a function attribute), VEC (bytes of a vector) and,
 * where there are such instructions, PEXT and PDEP; it uses BITCOMP_KERNELS(cpu).
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
	return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

INLINE uint64_t low_bits(unsigned count)
{
	return count ? UINT64_MAX >> (64 - count) : 0;
}

/* The lowest 'width' bits of each field of 'field' bits. */
INLINE uint64_t fields(unsigned width, unsigned field)
{
	return low_bits(width) * (UINT64_MAX / low_bits(field));
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

/* The code of a unit that needs 'need' bits, of the least width that can be said. */
INLINE unsigned code_of(unsigned width, unsigned need, unsigned step)
{
	unsigned code = (width - need) >> step;
	return need == 0 ? 15 : code < 14 ? code : 14;
}

/* What packing as 'mode' says makes: all parts but the payload. */
INLINE size_t parts_size(unsigned log, unsigned mode, unsigned words, unsigned units)
{
	return LADE_BITCOMP_HEADER + (log == 3 && (mode & LADE_BITCOMP_DELTA) ? 16u : 0u) +
	       lade__bitcomp_up(mode & LADE_BITCOMP_DICT ? words : 0) +
	       lade__bitcomp_up(mode & LADE_BITCOMP_WIDTHS ? (units + 1) / 2 : 0);
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
