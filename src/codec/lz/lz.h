/*
 * lz.h: what the library's own decoders of LZ formats share: wide copies of runs and matches.
 *
 * The copies work in steps and go past the end of what is asked for, by less than LADE__LZ_SLACK
 * bytes on the source's side and on the destination's; the callers keep that much room.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_LZ_H
#define LADE_CODEC_LZ_H

#include "base/limits.h"
#include "base/support.h"

#include <string.h>

/* Bytes read or written behind a run or a match, at most. */
#define LADE__LZ_SLACK 32

/* The largest chunk, encoded or decoded, that the strict decoders take; the kernels' own. */
#define LADE__LZ_CHUNK_MAX ((size_t)LADE_CHUNK_MAX)

static inline void lade__lz_copy8(uint8_t *dst, const uint8_t *src)
{
	uint64_t v;
	memcpy(&v, src, sizeof v);
	memcpy(dst, &v, sizeof v);
}

static inline void lade__lz_copy16(uint8_t *dst, const uint8_t *src)
{
	uint64_t v[2];
	memcpy(v, src, sizeof v);
	memcpy(dst, v, sizeof v);
}

/* Copies a run whose source does not begin less than 16 bytes before 'dst'. */
static inline void lade__lz_run(uint8_t *dst, const uint8_t *src, size_t size)
{
	uint8_t *end = dst + size;
	do {
		lade__lz_copy16(dst, src);
		lade__lz_copy16(dst + 16, src + 16);
		dst += 32;
		src += 32;
	} while (dst < end);
}

/*
 * A match of an offset below 8: its first 8 bytes are made in a register, and stored at each
 * multiple of the offset that is near 8.
 */
static inline void lade__lz_pattern(uint8_t *dst, size_t offset, size_t size)
{
	/* By offset: the bytes of one period, what repeats them over 8 bytes, and the step. */
	static const struct {
		uint64_t mask, repeat;
		size_t step;
	} by[8] = {
		{0, 0, 8},
		{0xFF, 0x0101010101010101, 8},
		{0xFFFF, 0x0001000100010001, 8},
		{0xFFFFFF, 0x0001000001000001, 6},
		{0xFFFFFFFF, 0x0000000100000001, 8},
		{0xFFFFFFFFFF, 0x0000010000000001, 5},
		{0xFFFFFFFFFFFF, 0x0001000000000001, 6},
		{0xFFFFFFFFFFFFFF, 0x0100000000000001, 7},
	};
	uint8_t *end = dst + size;
	uint64_t v = (lade__le64(dst - offset) & by[offset].mask) * by[offset].repeat;
	do {
		lade__le_put(dst, v, 8);
		dst += by[offset].step;
	} while (dst < end);
}

/* Copies 'size' bytes from 'offset' before 'dst', where the output has as many. */
static inline void lade__lz_match(uint8_t *dst, size_t offset, size_t size)
{
	if (offset >= 16) {
		uint8_t *end = dst + size;
		do {
			lade__lz_copy16(dst, dst - offset);
			dst += 16;
		} while (dst < end);
	} else if (offset >= 8) {
		uint8_t *end = dst + size;
		do {
			lade__lz_copy8(dst, dst - offset);
			dst += 8;
		} while (dst < end);
	} else if (offset == 1 && size > 32) {
		memset(dst, dst[-1], size);
	} else {
		lade__lz_pattern(dst, offset, size);
	}
}

/* Copies just 'size' bytes from 'offset' before 'dst', one after the other where they overlap. */
static inline void lade__lz_match_exact(uint8_t *dst, size_t offset, size_t size)
{
	if (offset == 1) {
		memset(dst, dst[-1], size);
		return;
	}
	/* Each step doubles what may be copied at once, as the period repeats. */
	const uint8_t *src = dst - offset;
	while (size > 0) {
		size_t step = (size_t)(dst - src) < size ? (size_t)(dst - src) : size;
		memcpy(dst, src, step);
		dst += step;
		size -= step;
	}
}

#endif
