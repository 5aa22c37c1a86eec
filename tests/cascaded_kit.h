/*
 * cascaded_kit.h: for the tests of the cascaded codec: a decoder written from
 * docs/format/cascaded.md in the plainest way, and data that each of its layers suits.
 *
 * The decoder shares nothing with the library, so that the one checks the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_CASCADED_KIT_H
#define LADE_TESTS_CASCADED_KIT_H

#include "bitcomp_block_kit.h"

#include <lade/status.h>

#include <stdbool.h>

#define KIT_MOST 8192 /* elements of a block */

static inline uint64_t kit_number(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

/* Entry i of an array of bits. */
static inline uint64_t kit_entry(const uint8_t *array, unsigned width, size_t i)
{
	uint64_t v = 0;
	for (unsigned k = 0; k < width; k++) {
		size_t bit = i * width + k;
		v |= (uint64_t)(array[bit / 8] >> (bit % 8) & 1) << k;
	}
	return v;
}

/* Repeats 'v' in place as the counts say; false: they do not give 'want'. */
static inline bool kit_expand(uint64_t *v, const uint8_t *counts, unsigned width, size_t runs,
                              size_t want)
{
	static __thread uint64_t out[KIT_MOST];
	size_t n = 0;
	for (size_t r = 0; r < runs; r++) {
		uint64_t count = kit_entry(counts, width, r) + 1;
		if (count > want - n)
			return false;
		for (; count; count--)
			out[n++] = v[r];
	}
	memcpy(v, out, n * sizeof *v);
	return n == want;
}

static inline size_t kit_bytes(size_t entries, unsigned width)
{
	return 4 * ((entries * width + 31) / 32);
}

static inline size_t kit_room(size_t elements, size_t size)
{
	return (elements * size + 15) / 16 * 16;
}

/* A coded block of 'stored' bytes; 'n' elements of 'size' bytes go to 'out'. */
static inline bool kit_block(const uint8_t *p, size_t stored, size_t n, size_t size, size_t block,
                             uint8_t *out)
{
	static __thread uint64_t v[KIT_MOST];
	if (p[0] & 128) {
		uint8_t block_of_bitcomp[8192];
		unsigned log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
		memcpy(block_of_bitcomp, p, stored);
		block_of_bitcomp[0] &= 127;
		return kit_sub_block(log, block_of_bitcomp, stored, n * size, out);
	}
	bool outer = p[0] & 1, delta = p[0] & 2, inner = p[0] & 4, parts = p[0] & 8;
	size_t n1 = parts ? 0 : kit_number(p + 4, 2), n2 = parts ? 0 : kit_number(p + 6, 2);
	if (p[0] > 31 || (inner && !delta) || (parts && (outer || inner)) || p[1] > 8 * size ||
	    p[2] > 13 || p[3] > 13 || (!outer && (p[2] || n1)) || (!inner && (p[3] || n2)))
		return false;
	n1 = outer ? n1 : n;
	n2 = inner ? n2 : n1;
	if (n2 == 0 || n2 > n1 || n1 > n)
		return false;
	size_t at_outer = delta ? 24 : 16;
	size_t at_inner = at_outer + (outer ? kit_bytes(n1, p[2]) : 0);
	size_t at_values = at_inner + (inner ? kit_bytes(n2, p[3]) : 0);
	size_t all = at_values + (parts ? 0 : kit_bytes(n2, p[1]));
	/* A part is 1024 bytes of elements; without parts, all are one. */
	size_t each = parts ? 1024 / size : n2;
	unsigned widths[8] = {p[1]};
	for (size_t k = 0; parts && k * each < n2; k++) {
		unsigned less = p[4 + k / 2] >> (k % 2 * 4) & 15;
		widths[k] = p[1] > less ? p[1] - less : 0;
		all += kit_bytes(n2 - k * each < each ? n2 - k * each : each, widths[k]);
	}
	if ((all + 15) / 16 * 16 != stored)
		return false;
	if ((outer || inner) &&
	    stored + kit_room(n2, size) + (outer && inner ? kit_room(n1, size) : 0) > block / 2)
		return false;
	uint64_t base = kit_number(p + 8, 8);
	for (size_t i = 0, at = at_values; i < n2; i++) {
		v[i] = base + kit_entry(p + at, widths[i / each], i % each);
		if (p[0] & 16) {
			v[i] &= ~0ull >> (64 - 8 * size);
			v[i] = v[i] >> 1 | v[i] << (8 * size - 1);
		}
		if (i % each == each - 1)
			at += kit_bytes(each, widths[i / each]);
	}
	if (inner && !kit_expand(v, p + at_inner, p[3], n2, n1))
		return false;
	uint64_t sum = delta ? kit_number(p + 16, 8) : 0;
	for (size_t i = 0; delta && i < n1; i++)
		v[i] = sum += v[i];
	if (outer && !kit_expand(v, p + at_outer, p[2], n1, n))
		return false;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < size; k++)
			out[i * size + k] = (uint8_t)(v[i] >> (8 * k));
	return true;
}

/* What the header says alone. */
static inline lade_status kit_size(const uint8_t *in, size_t size, size_t *total)
{
	*total = 0;
	if (size < 16)
		return LADE_E_TRUNCATED;
	if (in[0] != 1 || in[1] > 3 || in[2] < 12 || in[2] > 13 || in[3] ||
	    kit_number(in + 4, 4) >> 31)
		return LADE_E_CORRUPT;
	*total = kit_number(in + 4, 4);
	return LADE_OK;
}

static inline lade_status kit_decode(const uint8_t *in, size_t size, uint8_t *out, size_t cap,
                                     size_t *made)
{
	size_t total;
	lade_status status = kit_size(in, size, &total);
	*made = 0;
	if (status != LADE_OK)
		return status;
	if (total > cap)
		return LADE_E_NOSPACE;
	size_t elem = (size_t)1 << in[1], block = (size_t)1 << in[2];
	size_t body = total / elem * elem, blocks = (body + block - 1) / block;
	size_t first = 1 + (blocks + 3) / 4;
	if (size < 16 * first)
		return LADE_E_TRUNCATED;
	size_t last = blocks ? kit_number(in + 16 + 4 * (blocks - 1), 4) : 1;
	if (size != 16 * last)
		return size < 16 * last ? LADE_E_TRUNCATED : LADE_E_CORRUPT;
	for (size_t i = 0; i < blocks; i++) {
		size_t begin = i ? kit_number(in + 16 + 4 * (i - 1), 4) : first;
		size_t end = kit_number(in + 16 + 4 * i, 4);
		size_t bytes = body - i * block < block ? body - i * block : block;
		size_t raw = (bytes + 15) / 16;
		if (end <= begin || end - begin > raw || end > last)
			return LADE_E_CORRUPT;
		if (end - begin == raw)
			memcpy(out + i * block, in + 16 * begin, bytes);
		else if (!kit_block(in + 16 * begin, 16 * (end - begin), bytes / elem, elem, block,
		                    out + i * block))
			return LADE_E_CORRUPT;
	}
	memcpy(out + body, in + 8, total - body);
	*made = total;
	return LADE_OK;
}

/* What elements are like, from one place in the data to another. */
enum {
	KIT_CONSTANT,
	KIT_NOISE,
	KIT_NARROW, /* of any number of bits */
	KIT_LINE,
	KIT_WALK,
	KIT_RUNS,  /* of any values */
	KIT_KEYS,  /* sorted, repeated, mostly one apart */
	KIT_LINES, /* of different slopes */
	KIT_SPARSE,
	KIT_SIGNED, /* reals of both signs, by their bits */
	KIT_STEPS,  /* of a size that changes from part to part */
	KIT_KINDS,
};

/* Elements of 'elem' bytes; the rest of 'size' is noise. */
static inline void kit_fill(uint8_t *p, size_t size, size_t elem, int kind, rng *r)
{
	uint64_t x = rng_next(r), step = rng_below(r, 1000), mask = ~0ull >> rng_below(r, 64);
	uint64_t most = 1 + rng_below(r, rng_below(r, 2) ? 8 : 300);
	size_t left = 0, at = 0;
	for (; at + elem <= size; at += elem) {
		uint64_t v = x;
		if (kind == KIT_NOISE)
			v = rng_next(r);
		else if (kind == KIT_NARROW)
			v = x + (rng_next(r) & mask);
		else if (kind == KIT_LINE)
			x += step;
		else if (kind == KIT_WALK)
			x += rng_below(r, step + 1) - step / 2;
		else if (kind == KIT_SIGNED)
			v = (rng_next(r) & mask & ~0ull >> (66 - 8 * elem)) |
			    rng_below(r, 2) << (8 * elem - 1);
		else if (kind == KIT_STEPS)
			x += rng_next(r) & ~0ull >> (63 - (at >> 10) % 6);
		else if (kind == KIT_SPARSE)
			v = rng_below(r, 20) ? 0 : rng_next(r) & mask;
		else if (kind != KIT_CONSTANT && left-- == 0) {
			left = rng_below(r, most);
			if (kind == KIT_KEYS)
				v = x += rng_below(r, 8) ? 1 : 25;
			else if (kind == KIT_RUNS)
				v = x = rng_next(r) & mask;
			else
				step = rng_below(r, 50) - 25;
		}
		if (kind == KIT_LINES)
			v = x += step;
		memcpy(p + at, &v, elem);
	}
	for (; at < size; at++)
		p[at] = (uint8_t)rng_next(r);
}

/* Stretches of all kinds. */
static inline void kit_fill_mixed(uint8_t *p, size_t size, size_t elem, rng *r)
{
	for (size_t at = 0, n; at < size; at += n) {
		n = elem * (1 + rng_below(r, 20000 / elem));
		n = n < size - at ? n : size - at;
		kit_fill(p + at, n, elem, (int)rng_below(r, KIT_KINDS), r);
	}
}

#endif
