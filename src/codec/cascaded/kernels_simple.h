/*
 * kernels_simple.h: the kernels of kernels.h as plain loops, written once.  Included by the file of
 * each instruction set, which defines TARGET, the function attribute that selects it, and puts
 * faster ones in some places.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/support.h"
#include "codec/cascaded/kernels.h"

#include <string.h>

/* Elements of any alignment, that may alias anything. */
typedef uint8_t __attribute__((may_alias)) any8;
typedef uint16_t __attribute__((may_alias, aligned(1))) any16;
typedef uint32_t __attribute__((may_alias, aligned(1))) any32;
typedef uint64_t __attribute__((may_alias, aligned(1))) any64;

static inline TARGET uint64_t mask_of(unsigned width)
{
	return width < 64 ? ((uint64_t)1 << width) - 1 : UINT64_MAX;
}

/* Entry i, where the 9 bytes from its first one on may not all be there. */
static TARGET uint64_t entry_slow(const uint8_t *src, const uint8_t *end, size_t i, unsigned width)
{
	size_t bit = i * width;
	uint8_t bytes[9] = {0};
	const uint8_t *p = src + bit / 8;
	memcpy(bytes, p, (size_t)(end - p) < 9 ? (size_t)(end - p) : 9);
	uint64_t v = lade__le64(bytes) >> (bit & 7);
	if (bit & 7)
		v |= (uint64_t)bytes[8] << (64 - (bit & 7));
	return v & mask_of(width);
}

/* How many of the first entries have 9 bytes from their first one on. */
static inline TARGET size_t entries_fast(const uint8_t *src, const uint8_t *end, size_t count,
                                         unsigned width)
{
	size_t have = (size_t)(end - src);
	size_t fast = have < 9 ? 0 : (have - 9) * 8 / width + 1;
	return fast < count ? fast : count;
}

/* Entries of 'width' bits, which is not 0; elements are 'base' more. */
typedef struct packed {
	const uint8_t *src, *end;
	unsigned width;
	uint64_t base;
} packed;

/* Elements from 'i' on. */
#define UNPACK_FROM(bits) \
	static inline TARGET void unpack_from##bits(packed p, any##bits *to, size_t i, \
	                                            size_t count) \
	{ \
		const uint8_t *src = p.src, *end = p.end; \
		const unsigned width = p.width; \
		const uint64_t base = p.base; \
		size_t fast = entries_fast(src, end, count, width); \
		uint64_t mask = mask_of(width); \
		if (width <= 57) { \
			for (; i < fast; i++) { \
				size_t bit = i * width; \
				uint64_t v = lade__le64(src + bit / 8) >> (bit & 7); \
				to[i] = (uint##bits##_t)((v & mask) + base); \
			} \
		} \
		for (; i < fast; i++) { \
			size_t bit = i * width; \
			uint64_t v = lade__le64(src + bit / 8) >> (bit & 7); \
			v |= (uint64_t)src[bit / 8 + 8] << 1 << (63 - (bit & 7)); \
			to[i] = (uint##bits##_t)((v & mask) + base); \
		} \
		for (; i < count; i++) \
			to[i] = (uint##bits##_t)(entry_slow(src, end, i, width) + base); \
	} \
	static inline TARGET void fill##bits(any##bits *to, size_t count, uint64_t base) \
	{ \
		for (size_t i = 0; i < count; i++) \
			to[i] = (uint##bits##_t)base; \
	}

UNPACK_FROM(8)
UNPACK_FROM(16)
UNPACK_FROM(32)
UNPACK_FROM(64)

/* 64 bytes are written at each run's start where there is room; the next run writes over them. */
#define EXPAND(bits) \
	static TARGET void expand##bits(const void *values, const uint16_t *counts, size_t runs, \
	                                void *dst, size_t n) \
	{ \
		enum { WIDE = 512 / bits }; \
		const any##bits *from = values; \
		any##bits *to = dst; \
		size_t at = 0, wide = n >= WIDE ? n - WIDE + 1 : 0; \
		for (size_t r = 0; r < runs; r++) { \
			size_t end = at + counts[r]; \
			uint##bits##_t v = from[r]; \
			while (at < end && at < wide) { \
				uint##bits##_t many[WIDE]; \
				for (size_t k = 0; k < WIDE; k++) \
					many[k] = v; \
				memcpy(to + at, many, sizeof many); \
				at += WIDE; \
			} \
			for (; at < end; at++) \
				to[at] = v; \
			at = end; \
		} \
	}

EXPAND(8)
EXPAND(16)
EXPAND(32)
EXPAND(64)

#define RANGE(bits) \
	static TARGET lade__cascaded_range range##bits(const void *values, size_t count, \
	                                               uint64_t flip) \
	{ \
		const any##bits *v = values; \
		uint##bits##_t f = (uint##bits##_t)flip, low = (uint##bits##_t)(v[0] ^ f), \
			       high = low; \
		for (size_t i = 1; i < count; i++) { \
			uint##bits##_t x = (uint##bits##_t)(v[i] ^ f); \
			low = x < low ? x : low; \
			high = x > high ? x : high; \
		} \
		return (lade__cascaded_range){low, high}; \
	}

RANGE(8)
RANGE(16)
RANGE(32)
RANGE(64)

#define RUNS(bits) \
	static TARGET size_t runs##bits(const void *src, size_t count, void *values, \
	                                uint16_t *counts, size_t most) \
	{ \
		const any##bits *v = src; \
		any##bits *to = values; \
		size_t runs = 0; \
		for (size_t i = 0, end; i < count; i = end) { \
			if (runs == most) \
				return 0; \
			for (end = i + 1; end < count && v[end] == v[i];) \
				end++; \
			to[runs] = v[i]; \
			counts[runs++] = (uint16_t)(end - i); \
		} \
		return runs; \
	}

RUNS(8)
RUNS(16)
RUNS(32)
RUNS(64)

#define TURN(bits) \
	static TARGET void turn##bits(const void *src, void *dst, size_t count, unsigned by) \
	{ \
		const any##bits *v = src; \
		any##bits *to = dst; \
		for (size_t i = 0; i < count; i++) \
			to[i] = (uint##bits##_t)(v[i] >> by | \
			                         (uint##bits##_t)(v[i] << (bits - by))); \
	}

TURN(8)
TURN(16)
TURN(32)
TURN(64)

/* 'held' keeps the bits that are not written yet, less than 64. */
#define PACK(bits) \
	static TARGET void pack##bits(const void *values, size_t count, unsigned width, \
	                              uint64_t base, uint8_t *dst) \
	{ \
		const any##bits *v = values; \
		uint64_t held = 0, mask = mask_of(width); \
		unsigned have = 0; \
		if (width == 0) \
			return; \
		for (size_t i = 0; i < count; i++) { \
			uint64_t x = (uint##bits##_t)(v[i] - base) & mask; \
			held |= x << have; \
			have += width; \
			if (have >= 64) { \
				lade__le_put(dst, held, 8); \
				dst += 8; \
				have -= 64; \
				held = have ? x >> (width - have) : 0; \
			} \
		} \
		if (have) \
			lade__le_put(dst, held, 8); \
	}

PACK(8)
PACK(16)
PACK(32)
PACK(64)

#define CASCADED_KERNELS \
	{ \
		{unpack8, unpack16, unpack32, unpack64}, {expand8, expand16, expand32, expand64}, \
			{range8, range16, range32, range64}, {runs8, runs16, runs32, runs64}, \
			{turn8, turn16, turn32, turn64}, {pack8, pack16, pack32, pack64}, \
	}
