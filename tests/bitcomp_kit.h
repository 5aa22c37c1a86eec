/*
 * bitcomp_kit.h: a decoder of bitcomp that follows docs/format/bitcomp.md value by value, chunks
 * of any modes made at random, and data of several kinds.  For C and C++.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_BITCOMP_KIT_H
#define LADE_TESTS_BITCOMP_KIT_H

#include <lade/status.h>

#include "bitcomp_block_kit.h"

#define KIT_BLOCK ((size_t)8192)

/* ---- the decoder ------------------------------------------------------------------------ */

/* Section 5: the float's bits of c. */
static inline uint64_t kit_float(unsigned quant, unsigned bits, int E, uint64_t c)
{
	int m = bits == 16 ? 10 : bits == 32 ? 23 : 52, e = (int)bits - 1 - m;
	int b = (1 << (e - 1)) - 1, L = E + m < b ? E + m : b;
	uint64_t top = (uint64_t)1 << (bits - 1), one = (uint64_t)1 << m;
	uint64_t s = c >> (bits - 1), q = quant == 1 && s ? (0 - c) & kit_low(bits) : c & (top - 1);
	if (q > one)
		return s * top | ((q - one - 1 + ((uint64_t)(L + b) << m)) & (top - 1));
	if (q == 0)
		return quant == 1 ? 0 : s * top;
	int high = 63;
	while (!(q >> high))
		high--;
	if (high + E + b <= 0)
		return s * top | (q << (E + b + m - 1) & (top - 1));
	return s * top |
	       ((((uint64_t)(high + E + b) << m) + ((q - ((uint64_t)1 << high)) << (m - high))) &
	        (top - 1));
}

/* Section 5: c of the float's bits. */
static inline uint64_t kit_code(unsigned quant, unsigned bits, int E, uint64_t v)
{
	int m = bits == 16 ? 10 : bits == 32 ? 23 : 52, e = (int)bits - 1 - m;
	int b = (1 << (e - 1)) - 1, L = E + m < b ? E + m : b;
	uint64_t top = (uint64_t)1 << (bits - 1), one = (uint64_t)1 << m;
	uint64_t M = v & (top - 1), s = v >> (bits - 1), q;
	if (M >= (uint64_t)(L + b) << m) {
		q = M - ((uint64_t)(L + b) << m) + one + 1;
	} else {
		int exponent = M >> m ? (int)(M >> m) : 1;
		uint64_t whole = M >> m ? (M & (one - 1)) | one : M;
		/* 'whole' times 2^(exponent - b - m), in steps of 2^E: a shift to the right. */
		int shift = E - (exponent - b - m);
		uint64_t left = shift > 63 ? whole : whole & kit_low((unsigned)shift);
		uint64_t half = shift > 63 ? UINT64_MAX : (uint64_t)1 << (shift - 1);
		q = shift > 63 ? 0 : whole >> shift;
		q += left > half || (left == half && (q & 1));
	}
	return quant == 2 ? q | s * top : (s ? 0 - q : q) & kit_low(bits);
}

/* Section 4, and all of it; 'dst' is written as far as it goes. */
static inline lade_status kit_decode(const uint8_t *src, size_t size, uint8_t *dst, size_t cap,
                                     size_t *got)
{
	*got = 0;
	if (size < 16)
		return LADE_E_TRUNCATED;
	unsigned kind = src[2], log = kind & 3, quant = kind >> 3 & 3;
	int E = (int16_t)kit_get(src + 4, 2), b = log == 1 ? 15 : log == 2 ? 127 : 1023;
	int m = log == 1 ? 10 : log == 2 ? 23 : 52;
	uint64_t decoded = kit_get(src + 8, 8), want;
	if (src[0] != 0xBC || src[1] != 1 || (kind & 0xE0) || src[3] || src[6] || src[7] ||
	    decoded > (uint64_t)1 << 34 || quant == 3 || (quant == 0 && E) ||
	    (quant && (log == 0 || (kind & 4) || E < 2 - b - m || E > b)))
		return LADE_E_CORRUPT;
	if (decoded > cap)
		return LADE_E_NOSPACE;
	uint64_t n = (decoded + KIT_BLOCK - 1) / KIT_BLOCK, begin = 16 + (4 * n + 15) / 16 * 16;
	want = kind & 4 || !decoded ? 16 + decoded
	       : size < begin       ? begin
	                            : 16 * kit_get(src + 16 + 4 * (n - 1), 4);
	if (size != want)
		return size < want ? LADE_E_TRUNCATED : LADE_E_CORRUPT;
	*got = decoded;
	if (kind & 4)
		memcpy(dst, src + 16, decoded);
	for (uint64_t i = 0; !(kind & 4) && i < n; i++) {
		uint64_t end = 16 * kit_get(src + 16 + 4 * i, 4);
		size_t len =
			decoded - KIT_BLOCK * i < KIT_BLOCK ? decoded - KIT_BLOCK * i : KIT_BLOCK;
		uint8_t *to = dst + KIT_BLOCK * i;
		bool good = begin < end && end <= size && end - begin <= kit_up(len);
		if (good && end - begin == kit_up(len))
			memcpy(to, src + begin, len);
		else if (good)
			good = kit_sub_block(log, src + begin, end - begin, len, to);
		if (!good) {
			*got = 0;
			return LADE_E_CORRUPT;
		}
		for (size_t k = 0; quant && k < len >> log; k++)
			kit_put(to + (k << log),
			        kit_float(quant, 8u << log, E, kit_get(to + (k << log), 1u << log)),
			        1u << log);
		begin = end;
	}
	return LADE_OK;
}

/* ---- chunks of any modes ---------------------------------------------------------------- */

/* A chunk that decodes to 'size' bytes; 'p' has room for the codec's bound. */
static inline size_t kit_any_chunk(unsigned log, unsigned quant, size_t size, uint8_t *p, rng *r)
{
	size_t n = (size + KIT_BLOCK - 1) / KIT_BLOCK, at = 16 + kit_up(4 * n);
	int b = log == 1 ? 15 : log == 2 ? 127 : 1023, m = log == 1 ? 10 : log == 2 ? 23 : 52;
	memset(p, 0, size ? at : 16);
	p[0] = 0xBC;
	p[1] = 1;
	p[2] = (uint8_t)(log | quant << 3);
	if (quant)
		kit_put(p + 4, (uint64_t)(2 - b - m + (int)rng_below(r, (uint64_t)(2 * b + m - 1))),
		        2);
	kit_put(p + 8, size, 8);
	for (size_t i = 0; i < n; i++) {
		size_t len = size - KIT_BLOCK * i < KIT_BLOCK ? size - KIT_BLOCK * i : KIT_BLOCK;
		size_t coded = rng_below(r, 5) ? kit_any_sub_block(log, len, p + at, r) : 0;
		if (!coded) {
			coded = kit_up(len);
			for (size_t k = 0; k < coded; k++)
				p[at + k] = (uint8_t)(rng_next(r) >> 20);
		}
		at += coded;
		kit_put(p + 16 + 4 * i, at / 16, 4);
	}
	return size ? at : 16;
}

/* Changes an encoded chunk somewhere, most often where it matters; gives the new size. */
static inline size_t kit_damage(uint8_t *p, size_t size, rng *r)
{
	unsigned changes = 1 + (unsigned)rng_below(r, 3);
	if (rng_below(r, 6) == 0)
		size = (size_t)rng_below(r, size + 1);
	/* Half of them in headers: the chunk's, or a sub-block's, where small numbers hurt. */
	size_t blocks = size < 16 ? 0 : (kit_get(p + 8, 4) + KIT_BLOCK - 1) / KIT_BLOCK;
	size_t first = 16 + kit_up(4 * blocks);
	for (unsigned k = 0; size && k < changes; k++) {
		size_t at = (size_t)rng_below(r, size);
		if (rng_below(r, 2))
			at = (size_t)rng_below(r, 8) +
			     (rng_below(r, 2) ? first : 16 * rng_below(r, 2));
		if (at >= size)
			at = size - 1;
		if (rng_below(r, 2))
			p[at] ^= (uint8_t)(1u << rng_below(r, 8));
		else
			p[at] = (uint8_t)(rng_next(r) >> (rng_below(r, 2) ? 20 : 61));
	}
	return size;
}

/* ---- data ------------------------------------------------------------------------------- */

/* Of elements of 1 << log bytes, for each mode of the encoder something it is good for. */
enum { KIT_KINDS = 14 };

static inline void kit_fill(unsigned log, unsigned kind, uint8_t *p, size_t size, rng *r)
{
	unsigned elem = 1u << log, bits = 8 * elem;
	uint64_t walk = rng_next(r), v = 0;
	for (size_t i = 0; i * elem < size; i++) {
		uint64_t x = rng_next(r) >> 7;
		unsigned rare = (unsigned)rng_below(r, 40);
		switch (kind) {
		case 0: /* a narrow range, far from zero */
			v = walk + x % (1u << bits / 3);
			break;
		case 1: /* around zero */
			v = (x & 1 ? 0 - (x >> 1) % 9 : x % 9) << (rare ? 0 : bits / 3);
			break;
		case 2: /* steps */
			v = walk += 3 + x % 4;
			break;
		case 3: /* steps to both sides, some large */
			v = walk += (x & 1 ? 0 - (x >> 1) % 5 : x % 5) << (rare ? 0 : bits / 2);
			break;
		case 4: /* floats of both signs, most of one size */
			v = (kit_low(bits / 4) << (bits * 3 / 4 - 2)) -
			    ((uint64_t)__builtin_ctzll(x | 1u << 20) << bits / 2);
			v = (v + (x >> 20) % (1u << bits / 2 % 31)) | (x & 1) << (bits - 1);
			break;
		case 5: /* mostly zero */
			v = rare < 3 ? x % 1000 : 0;
			break;
		case 6: /* few different ones, some often */
			v = 0x6120 + (x % 7 ? x % 5 : x % 60) * 3;
			break;
		case 7: /* noise */
			v = x;
			break;
		case 8: /* one value */
			v = walk;
			break;
		case 9: /* runs */
			v = walk = rare < 2 ? x % 3000 : walk % 3000;
			break;
		case 10: /* three channels, each near its own value before */
			v = (i % 3 * 1000 + (i / 50) + x % 4) & kit_low(bits);
			break;
		case 11: /* most are one value that is not 0 */
			v = rare < 4 ? x % 100 : walk;
			break;
		case 12:
		case 13: { /* decimals, all or most: of bytes and pairs of them others */
			double d = rare ? (double)(int64_t)(x % 100000 - 5000) / 100 : -0.0;
			float f = (float)d;
			uint32_t narrow;
			memcpy(&v, &d, 8);
			memcpy(&narrow, &f, 4);
			v = elem == 8 ? v : elem == 4 ? narrow : x % 7 * 3;
			v = kind == 13 && i * 7 % 61 == 3 ? walk : v;
		}
		}
		for (unsigned k = 0; k < elem && i * elem + k < size; k++)
			p[i * elem + k] = (uint8_t)(v >> 8 * k);
	}
}

#endif
