/*
 * block_size.h: units of elements of one size, and sub-blocks of them; block.h includes it for each
 * size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define NAME_(name, log) name##_##log
#define NAME__(name, log) NAME_(name, log)
#define NAME(name) NAME__(name, LOG)
#define SIZE (1u << LOG)
#define BITS (8u * SIZE)
#define EACH (SIZE == 1 ? 16u : 8u) /* values of a unit */
#define UNIT_BYTES (EACH * SIZE)
#define SAMPLE_UNITS (2 * LADE_BITCOMP_GROUP / UNIT_BYTES)
#define IN_VEC (VEC / SIZE)
#define vec NAME(vec)
#define wec NAME(wec)

typedef ELEM vec __attribute__((vector_size(VEC)));
typedef WORD wec __attribute__((vector_size(VEC)));

INLINE vec NAME(load)(const void *p)
{
	vec v;
	memcpy(&v, p, VEC);
	return v;
}

INLINE void NAME(store)(void *p, vec v)
{
	memcpy(p, &v, VEC);
}

INLINE vec NAME(all)(ELEM v)
{
	return (vec){0} + v;
}

#if LOG > 0
#include "codec/bitcomp/quantise.h"
#endif

#if LOG >= 2
#define REAL NAME(real)
#define rec NAME(rec)
typedef REAL_TYPE REAL;
typedef REAL rec __attribute__((vector_size(VEC)));
#endif

/* ---- units ----------------------------------------------------------------------------------- */

/* The values of a unit from its bits; reads 16 bytes behind these at most. */
INLINE void NAME(unpack)(const uint8_t *from, unsigned width, uint8_t *to)
{
#ifdef UNPACK_WORDS
	if (LOG >= 2 && width <= 32) {
		UNPACK_WORDS(LOG, from, width, to);
		return;
	}
#endif
	if (LOG == 0) {
		store64(to, spread(load64(from), width, 8));
		store64(to + 8, spread(load64(from + width), width, 8));
	} else if (LOG == 1) {
		/* 4 * width is at most 64 and begins at bit 0 or 4, which leaves room. */
		store64(to, spread(load64(from), width, 16));
		store64(to + 8, spread(load64(from + width / 2) >> (4 * width & 7), width, 16));
	} else if (LOG == 2) {
		for (unsigned i = 0; i < 8; i++) {
			uint32_t v = (uint32_t)(load64(from + (i * width >> 3)) >> (i * width & 7) &
			                        low_bits(width));
			memcpy(to + 4 * i, &v, 4);
		}
	} else {
		for (unsigned i = 0; i < 8; i++) {
			unsigned shift = i * width & 7;
			const uint8_t *at = from + (i * width >> 3);
			uint64_t v = load64(at) >> shift;
			if (width > 57)
				v |= (uint64_t)at[8] << 1 << (63 - shift);
			store64(to + 8 * i, v & low_bits(width));
		}
	}
}

/*
 * Stores 'bits' bits of 'v', which begin 'have' bits, 0 to 7, behind 'to'; 'acc' has these in its
 * lowest ones.  have + bits < 64.
 */
INLINE uint8_t *NAME(append)(uint8_t *to, uint64_t v, unsigned bits, uint64_t *acc, unsigned *have)
{
	*acc |= v << *have;
	store64(to, *acc);
	*have += bits;
	to += *have / 8;
	*acc >>= *have & 0x38;
	*have &= 7;
	return to;
}

/* The bits of a unit from its values; writes up to 16 bytes behind these. */
INLINE void NAME(pack)(const uint8_t *from, unsigned width, uint8_t *to)
{
#ifdef PACK_WORDS
	if (LOG >= 1 && width <= PACKED_MOST) {
		PACK_WORDS(LOG, from, width, to);
		return;
	}
#endif
	uint64_t acc = 0;
	unsigned have = 0;
	if (LOG == 0) {
		store64(to, squeeze(load64(from), width, 8));
		store64(to + width, squeeze(load64(from + 8), width, 8));
	} else if (LOG == 1) {
		/* Each half is 4 * width bits; of the first, 0 or 4 stand in the second's byte. */
		uint64_t a = squeeze(load64(from), width, 16);
		uint64_t b = squeeze(load64(from + 8), width, 16);
		unsigned whole = 4 * width & 0x78;
		store64(to, a);
		store64(to + whole / 8, b << (4 * width & 7) | a >> whole / 2 >> whole / 2);
	} else if (LOG == 2 && width <= 28) {
		for (unsigned i = 0; i < 32; i += 8)
			to = NAME(append)(to, squeeze(load64(from + i), width, 32), 2 * width, &acc,
			                  &have);
	} else if (LOG == 2 || width <= 56) {
		for (unsigned i = 0; i < 8; i++) {
			ELEM v;
			memcpy(&v, from + SIZE * i, SIZE);
			to = NAME(append)(to, v, width, &acc, &have);
		}
	} else {
		for (unsigned i = 0; i < 8; i++) {
			uint64_t v = load64(from + 8 * i);
			acc |= v << have;
			if (have + width >= 64) {
				store64(to, acc);
				to += 8;
				acc = v >> 1 >> (63 - have);
				have += width - 64;
			} else {
				have += width;
			}
		}
		store64(to, acc);
	}
}

/* The bits of all units, of a width each, or of one width; gives their end. */
INLINE uint8_t *NAME(pack_all)(const uint8_t *x, size_t units, const uint8_t *widths, uint8_t *to)
{
#ifdef PACK_ALL
	return PACK_ALL(LOG, x, units, widths, to);
#else
	for (size_t u = 0; u < units; u++, x += UNIT_BYTES) {
		NAME(pack)(x, widths[u], to);
		to += widths[u] * (EACH / 8);
	}
	return to;
#endif
}

INLINE uint8_t *NAME(pack_same)(const uint8_t *x, size_t units, unsigned width, uint8_t *to)
{
#ifdef PACK_SAME
	return PACK_SAME(LOG, x, units, width, to);
#else
	for (size_t u = 0; u < units; u++, x += UNIT_BYTES, to += width * (EACH / 8))
		NAME(pack)(x, width, to);
	return to;
#endif
}

/* The bits that the largest of a unit's values needs. */
INLINE unsigned NAME(need)(const uint8_t *from)
{
	uint64_t w = load64(from) | load64(from + 8);
	for (unsigned i = 16; i < UNIT_BYTES; i += 8)
		w |= load64(from + i);
	if (LOG <= 2)
		w |= w >> 32;
	if (LOG <= 1)
		w |= w >> 16;
	if (LOG == 0)
		w |= w >> 8;
	return bits_of((ELEM)w);
}

#include "codec/bitcomp/block_decode.h"
#include "codec/bitcomp/block_encode.h"

#undef NAME
#undef NAME_
#undef NAME__
#undef SIZE
#undef BITS
#undef EACH
#undef UNIT_BYTES
#undef SAMPLE_UNITS
#undef IN_VEC
#undef vec
#undef wec
#undef ELEM
#undef WORD
#undef REAL
#undef REAL_TYPE
#undef rec
#undef LOG
