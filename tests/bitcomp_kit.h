/*
 * bitcomp_kit.h: a decoder of bitcomp that follows docs/format/bitcomp.md value by value, chunks
 * of any modes made at random, and data of several kinds.  For C and C++.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_BITCOMP_KIT_H
#define LADE_TESTS_BITCOMP_KIT_H

#include <lade/status.h>

#include "guard.h"

#define KIT_BLOCK ((size_t)8192)

static inline uint64_t kit_get(const uint8_t *p, size_t size)
{
	uint64_t v = 0;
	for (size_t i = 0; i < size; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static inline void kit_put(uint8_t *p, uint64_t v, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static inline size_t kit_up(size_t size)
{
	return (size + 15) / 16 * 16;
}

static inline uint64_t kit_low(unsigned bits)
{
	return bits == 0 ? 0 : UINT64_MAX >> (64 - bits);
}

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

/* Section 3, step 5: integers of 4 or 8 bytes to decimals. */
static inline void kit_decimals(unsigned log, unsigned ten, uint8_t *p, size_t len)
{
	int64_t most = (int64_t)1 << (log == 3 ? 51 : 22);
	double by = 1;
	for (unsigned i = 0; i < ten; i++)
		by *= 10;
	for (size_t i = 0; i < len >> log; i++) {
		int64_t c = log == 3 ? (int64_t)kit_get(p + 8 * i, 8)
		                     : (int32_t)(uint32_t)kit_get(p + 4 * i, 4);
		double d = (double)c / by;
		float f = (float)c / (float)by;
		if (c > -most && c < most)
			memcpy(p + (i << log), log == 3 ? (void *)&d : (void *)&f, 1u << log);
	}
}

/* Whether section 2 allows 'more' of a sub-block without a dictionary. */
static inline bool kit_more(unsigned log, unsigned mode, unsigned more)
{
	unsigned ten = more >> 3;
	if (more & 3 && (!(mode & 1) || mode & 64))
		return false;
	return more & 4 ? log >= 2 && ten <= (log == 3 ? 22u : 10u) : ten == 0;
}

/* The mask of a sub-block whose mode has one, a byte a value; gives where it ends, 0: it does not
 * fit. */
static inline size_t kit_mask(const uint8_t *p, size_t size, size_t at, size_t values,
                              uint8_t *present)
{
	size_t bytes = (values + 7) / 8, from = at + (bytes + 7) / 8;
	if (p[0] & 16 && size < from)
		return 0;
	for (size_t i = 0; i < bytes; i++) {
		bool is = !(p[0] & 16) || p[at + i / 8] >> i % 8 & 1;
		size_t place = p[0] & 16 ? from : at + i;
		from += is;
		if (is && place >= size)
			return 0;
		for (size_t k = 0; k < 8 && 8 * i + k < values; k++)
			present[8 * i + k] = is && p[place] >> k & 1;
	}
	if (p[0] & 1)
		present[0] = 1;
	return p[0] & 16 ? at + kit_up(from - at) : at + kit_up(bytes);
}

/* Sections 2 and 3, of one sub-block; false: corrupt. */
static inline bool kit_block_bits(unsigned log, const uint8_t *p, size_t size, size_t len,
                                  uint8_t *out)
{
	unsigned elem = 1u << log, bits = 8 * elem, each = log ? 8 : 16, most = bits;
	size_t values = (len + elem - 1) / elem, units = (values + each - 1) / each, at = 16,
	       sum = 0;
	if (size < 16 || (p[0] & 0x80) || p[3] > 2 || p[1] > most)
		return false;
	bool delta = p[0] & 1, above = p[0] & 8, own = p[0] & 16, dict = p[0] & 32;
	unsigned fold = p[0] >> 1 & 3, width = p[1];
	if (fold == 3 || (dict && (log || delta || fold || above)))
		return false;
	uint64_t base = kit_get(p + 4, elem < 4 ? elem : 4), reference = kit_get(p + 8, elem);
	if (!dict && !kit_more(log, p[0], p[2]))
		return false;
	unsigned lag = dict ? 1 : (p[2] & 3) + 1u;
	if (p[0] & 64) {
		static uint8_t present[8192];
		if (p[0] & ~(64 | 1 | 8 | 16) || (p[0] & 8 && (log < 3 || p[0] & 1)))
			return false;
		if (p[0] & 8 && size < 32)
			return false;
		uint64_t v = p[0] & 8 ? kit_get(p + 16, 8) : log < 3 ? base : 0;
		size_t set = 0, to = kit_mask(p, size, p[0] & 8 ? 32 : 16, values, present);
		if (!to || to > size)
			return false;
		for (size_t i = 0; i < values; i++) {
			uint64_t x = 0;
			for (unsigned k = 0; present[i] && k < width; k++) {
				size_t bit = 8 * to + set * width + k;
				if (bit < 8 * size)
					x |= (uint64_t)(p[bit / 8] >> bit % 8 & 1) << k;
			}
			set += present[i];
			x = present[i] ? (reference + x) & kit_low(bits) : v;
			v = p[0] & 1 ? x : v;
			for (unsigned k = 0; k < elem && i * elem + k < len; k++)
				out[i * elem + k] = (uint8_t)(x >> 8 * k);
		}
		return to + kit_up((set * width + 7) / 8) == size;
	}
	if (!delta)
		base = 0;
	if (delta && log == 3) {
		if (size < 32)
			return false;
		base = kit_get(p + 16, 8);
		at = 32;
	}
	const uint8_t *words = p + at;
	at += dict ? kit_up(p[2] + 1u) : 0;
	const uint8_t *codes = p + at;
	at += own ? kit_up((units + 1) / 2) : 0;
	if (at > size)
		return false;
	unsigned *w = (unsigned *)malloc((units + 1) * sizeof *w);
	for (size_t u = 0; u < units; u++) {
		unsigned code = own ? codes[u / 2] >> (u % 2 * 4) & 15 : 0;
		unsigned less = code << p[3];
		w[u] = own && code == 15 ? 0 : width > less ? width - less : 0;
		sum += w[u] * each / 8;
	}
	if (at + kit_up(sum) != size) {
		free(w);
		return false;
	}
	uint64_t sums[4] = {base, base, base, base};
	for (size_t i = 0; i < values; i++) {
		uint64_t x = 0, u, t, *before = &sums[i % lag];
		for (unsigned k = 0; k < w[i / each]; k++) {
			size_t bit = at * 8 + i % each * w[i / each] + k;
			x |= (uint64_t)(p[bit / 8] >> bit % 8 & 1) << k;
		}
		if (i % each == each - 1)
			at += w[i / each] * each / 8;
		u = (above ? reference - x : reference + x) & kit_low(bits);
		t = fold == 1   ? (u >> 1 ^ (0 - (u & 1))) & kit_low(bits)
		    : fold == 2 ? u >> 1 | (u & 1) << (bits - 1)
		                : u;
		if (delta)
			t = *before = (*before + t) & kit_low(bits);
		if (dict)
			t = x <= p[2] ? words[x] : 0;
		for (unsigned k = 0; k < elem && i * elem + k < len; k++)
			out[i * elem + k] = (uint8_t)(t >> 8 * k);
	}
	free(w);
	return true;
}

static inline bool kit_block(unsigned log, const uint8_t *p, size_t size, size_t len, uint8_t *out)
{
	if (!kit_block_bits(log, p, size, len, out))
		return false;
	if (!(p[0] & 32) && p[2] & 4)
		kit_decimals(log, p[2] >> 3, out, len);
	return true;
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
			good = kit_block(log, src + begin, end - begin, len, to);
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

/* A sub-block that decodes to 'len' bytes, of any kind that there is; gives its size, which is less
 * than raw. */
static inline size_t kit_any_block(unsigned log, size_t len, uint8_t *p, rng *r)
{
	unsigned elem = 1u << log, bits = 8 * elem, each = log ? 8 : 16;
	size_t values = (len + elem - 1) / elem, units = (values + each - 1) / each;
	for (unsigned tries = 0;; tries++) {
		size_t at = 16, sum = 0;
		uint8_t mode =
			(uint8_t)(rng_below(r, 3) << 1 | rng_below(r, 2) | rng_below(r, 2) << 3);
		if (log == 0 && rng_below(r, 3) == 0)
			mode = 32;
		mode |= (uint8_t)(rng_below(r, 2) << 4);
		if (rng_below(r, 4) == 0)
			mode = (uint8_t)(64 | rng_below(r, 2) | rng_below(r, 2) << 4);
		if (mode & 64 && log == 3 && !(mode & 1))
			mode |= (uint8_t)(rng_below(r, 2) << 3);
		unsigned width = (unsigned)rng_below(r, bits + 1);
		if (tries > 20)
			width = 0;
		for (size_t i = 0; i < 32; i++)
			p[i] = (uint8_t)rng_next(r);
		p[0] = mode;
		p[1] = (uint8_t)width;
		p[3] = (uint8_t)rng_below(r, 3);
		if (!(mode & 32)) {
			unsigned lag = (mode & 65) == 1 ? (unsigned)rng_below(r, 4) : 0;
			unsigned ten = (unsigned)rng_below(r, log == 3 ? 23 : 11);
			bool decimal = log >= 2 && rng_below(r, 3) == 0;
			p[2] = (uint8_t)(lag | (decimal ? 4 | ten << 3 : 0));
		}
		if (mode & 64) {
			/* Few bits, many, or any. */
			static uint8_t present[8192];
			size_t mask = (values + 7) / 8, set = 0, heads = (mask + 7) / 8;
			uint64_t few = rng_below(r, 3);
			at += mode & 8 ? 16 : 0;
			if (at + kit_up(heads + mask) >= kit_up(len))
				continue;
			for (size_t i = 0; i < kit_up(heads + mask); i++) {
				uint64_t x = rng_next(r);
				p[at + i] = (uint8_t)(few == 0   ? x & x >> 8 & x >> 16
				                      : few == 1 ? x | x >> 8
				                                 : x);
			}
			at = kit_mask(p, at + kit_up(heads + mask), at, values, present);
			for (size_t i = 0; i < values; i++)
				set += present[i];
			sum = kit_up((set * width + 7) / 8);
			if (at + sum >= kit_up(len))
				continue;
			for (size_t i = 0; i < sum; i++)
				p[at + i] = (uint8_t)(rng_next(r) >> 20);
			return at + sum;
		}
		at += (mode & 1) && log == 3 ? 16 : 0;
		size_t dict = mode & 32 ? kit_up(p[2] + 1u) : 0;
		size_t codes = mode & 16 ? kit_up((units + 1) / 2) : 0;
		if (at + dict + codes >= kit_up(len)) {
			if (tries > 20)
				return 0;
			continue;
		}
		for (size_t i = 0; i < dict + codes; i++)
			p[at + i] = (uint8_t)(rng_next(r) >> 20);
		const uint8_t *code = p + at + dict;
		for (size_t u = 0; u < units; u++) {
			unsigned c = mode & 16 ? code[u / 2] >> (u % 2 * 4) & 15 : 0;
			unsigned less = c << p[3];
			sum += (mode & 16 && c == 15 ? 0
			        : width > less       ? width - less
			                             : 0) *
			       each / 8;
		}
		at += dict + codes;
		if (at + kit_up(sum) >= kit_up(len))
			continue;
		for (size_t i = 0; i < kit_up(sum); i++)
			p[at + i] = (uint8_t)(rng_next(r) >> 20);
		return at + kit_up(sum);
	}
}

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
		size_t coded = rng_below(r, 5) ? kit_any_block(log, len, p + at, r) : 0;
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
			double d = (double)(int64_t)(x % 100000 - 5000) / 100;
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
