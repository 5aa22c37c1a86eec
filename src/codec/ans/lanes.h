/*
 * lanes.h: what the loops of all instruction sets share.  Included by the file of each, which
 * defines TARGET, the function attribute that selects it.  (docs/format/ans.md, section 5)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/ans/ans.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline)) TARGET

INLINE void store_64(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	memcpy(p, &v, 8);
}

/*
 * Rows of 32 halves, for decoders that have rows instead of strings; where they are in the room for
 * strings: at its end, so that 19 before them can be read.
 */
#define ROW_SIZE 64
#define ROWS_AT (ANS_LANES * ANS_PITCH - 2 * ANS_ROWS_MAX * ROW_SIZE)
_Static_assert(ANS_SLACK + ROWS_AT >= 19 * ROW_SIZE && ROWS_AT % ROW_SIZE == 0, "room for rows");

static TARGET void cross(const uint8_t *restrict from, uint8_t *restrict to, size_t pitch,
                         size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t low = from[i], high = from[pitch + i];
		to[i] = (uint8_t)((low & 0x7F) | (high & 0x80));
		to[pitch + i] = (uint8_t)((high & 0x7F) | (low & 0x80));
	}
}

/* Bytes of which no table's number passes 2^16. */
#define PART_MAX ((size_t)1 << 18)

/* Eight tables, so that equal bytes, and zeros of long elements, do not wait for one another. */
static TARGET void count_by_tables(const uint8_t *plane, size_t size, uint32_t sum[256])
{
	uint16_t part[8][256];
	const uint8_t *end = plane + size;
	while (plane < end) {
		size_t left = (size_t)(end - plane);
		const uint8_t *stop = plane + (left < PART_MAX ? left : PART_MAX);
		memset(part, 0, sizeof part);
		for (; stop - plane >= 8; plane += 8) {
			uint64_t v = lade__le64(plane);
#pragma GCC unroll 8
			for (unsigned k = 0; k < 8; k++)
				part[k][v >> 8 * k & 0xFF]++;
		}
		for (; plane < stop; plane++)
			part[0][*plane]++;
		for (unsigned s = 0; s < 256; s++)
			for (unsigned k = 0; k < 8; k++)
				sum[s] += part[k][s];
	}
}
