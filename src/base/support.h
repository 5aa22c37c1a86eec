/*
 * support.h: what codecs and filters share: costs, memory that knows its size, checks,
 * little-endian numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_SUPPORT_H
#define LADE_BASE_SUPPORT_H

#include <lade/codec.h>

#include <string.h>

/* ---- costs ------------------------------------------------------------------------------ */

/*
 * Nanoseconds for a workload: 'chunk_ns' a chunk and one for each 'rate' bytes, spread over
 * the threads, but never less than the largest chunk alone.  The rates in the cost functions
 * are decoded bytes a nanosecond (GB/s) of one core of a 2023 server, rounded; they only have to
 * order the candidates.
 */
double lade__codec_cost(const lade_workload *workload, double chunk_ns, double rate);

/* ---- memory ----------------------------------------------------------------------------- */

/* 64-byte aligned memory; alloc gives NULL when there is none, and free(NULL) is fine. */
void *lade__host_alloc(const lade_allocator *host, size_t size);
void lade__host_free(const lade_allocator *host, void *ptr, size_t size);

/*
 * Memory for a library that frees without saying the size: the size stands in front.  64-byte
 * aligned.  Alloc gives NULL when there is none; free(NULL) is fine.
 */
void *lade__sized_alloc(const lade_allocator *host, size_t size);
void lade__sized_free(const lade_allocator *host, void *ptr);

/*
 * Whether the host may touch 'place'; 'what' is there.
 * Fails: LADE_E_ARG for a kind that is none, LADE_E_NO_DEVICE for a device's
 */
lade_status lade__place_check(lade_place place, const char *what, lade_error *err);

/* What stages whose elements are little-endian say of a type.  Fails: LADE_E_DTYPE */
lade_status lade__little_check(const lade_stage *stage, lade_dtype dtype, lade_error *err);

/* ---- bytes ------------------------------------------------------------------------------ */

/* Libraries want pointers even to nothing: these never give NULL. */
static inline const uint8_t *lade__bytes(lade_cspan src)
{
	return src.data ? (const uint8_t *)src.data : (const uint8_t *)"";
}

static inline uint8_t *lade__room(lade_span dst, uint8_t *nothing)
{
	return dst.data ? (uint8_t *)dst.data : nothing;
}

static inline uint16_t lade__le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t lade__le32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap32(v);
#endif
	return v;
}

static inline uint64_t lade__le64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

/* The low 'size' bytes of 'value', little-endian. */
static inline void lade__le_put(uint8_t *p, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)(value >> 8 * i);
}

static inline uint32_t lade__be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

#endif
