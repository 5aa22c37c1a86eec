/*
 * bitcomp_block_kit.h: a decoder of bitcomp's sub-blocks that follows docs/format/bitcomp.md value
 * by value, and sub-blocks of any modes made at random; for the tests of bitcomp and cascaded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_BITCOMP_BLOCK_KIT_H
#define LADE_TESTS_BITCOMP_BLOCK_KIT_H

#include "guard.h"

#include <stdbool.h>

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
static inline bool kit_sub_block_bits(unsigned log, const uint8_t *p, size_t size, size_t len,
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
		static __thread uint8_t present[8192];
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

static inline bool kit_sub_block(unsigned log, const uint8_t *p, size_t size, size_t len,
                                 uint8_t *out)
{
	if (!kit_sub_block_bits(log, p, size, len, out))
		return false;
	if (!(p[0] & 32) && p[2] & 4)
		kit_decimals(log, p[2] >> 3, out, len);
	return true;
}

/* A sub-block that decodes to 'len' bytes, of any kind that there is; gives its size, which is less
 * than raw. */
static inline size_t kit_any_sub_block(unsigned log, size_t len, uint8_t *p, rng *r)
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
			static __thread uint8_t present[8192];
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

#endif
