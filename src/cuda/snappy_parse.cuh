/*
 * snappy_parse.cuh: reads the elements of a raw Snappy stream (format_description.txt).
 *
 *     | decoded size, a varint | tag 1 | length 0..4, offset 0..4 or literals | tag 1 | ..
 *
 * An element is a literal run or a copy, and takes 2 bytes at least, so 64 bytes hold 32.
 *
 * Bounds: no byte is read at or past 'n', the source's size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_SNAPPY_PARSE_CUH
#define LADE_CUDA_SNAPPY_PARSE_CUH

#include "cuda/lz_decode.cuh"

/* A packed token: | tag 8 | 0 1 |; no element is slow. */
struct lade_snappy {
	static constexpr uint32_t SPAN = 64; /* a token takes 2 bytes at least */
	static constexpr bool TOKEN_AT_END = false;

	/* 'count' bytes from 'at' on, little-endian; those past the end count as 255. */
	static __device__ __forceinline__ uint32_t number(const uint8_t *src, uint32_t n,
	                                                  uint32_t at, uint32_t count)
	{
		uint32_t v = 0;
		for (uint32_t i = 0; i < count; i++)
			v |= (at + i < n ? (uint32_t)src[at + i] : 255) << (8 * i);
		return v;
	}

	/* A literal's length, and how many bytes behind the tag it takes. */
	static __device__ __forceinline__ uint32_t literal(const uint8_t *src, uint32_t n,
	                                                   uint32_t p, uint32_t tag,
	                                                   uint32_t *bytes)
	{
		uint32_t v = tag >> 2;
		*bytes = v < 60 ? 0 : v - 59;
		if (*bytes)
			v = number(src, n, p + 1, *bytes);
		return v < LADE_GPU_CHUNK_MAX ? v + 1 : LADE_GPU_CHUNK_MAX + 1;
	}

	/* 'bytes' are those at 'p' and behind it. */
	static __device__ __forceinline__ uint32_t jump(const uint8_t *src, uint32_t n,
	                                                uint32_t begin, const uint8_t *stage,
	                                                uint32_t p, uint32_t bytes, uint32_t *token)
	{
		(void)begin;
		(void)stage;
		uint32_t tag = bytes & 255, kind = bytes & 3, at;
		*token = tag << 1;
		if (kind) {
			at = p + (kind == 3 ? 5 : kind + 1);
		} else {
			/* Up to three length bytes are at hand; a literal of four is longer than
			 * 2^24. */
			uint32_t v = tag >> 2, extra = v < 60 ? 0 : v - 59;
			if (extra == 4)
				v = number(src, n, p + 1, 4);
			else if (extra)
				v = bytes >> 8 & ((1u << (8 * extra)) - 1);
			at = p + 1 + extra +
			     (v < LADE_GPU_CHUNK_MAX ? v + 1 : LADE_GPU_CHUNK_MAX + 1);
		}
		return at >= n ? LADE_LZ_STOP : at;
	}

	static __device__ __forceinline__ uint32_t take(const uint8_t *src, uint32_t n, uint32_t p,
	                                                uint32_t token, lade_lz_sequence *q)
	{
		uint32_t tag = token >> 1, bytes;
		q->literals = q->match = q->offset = q->from = 0;
		if (!(tag & 3)) {
			q->literals = literal(src, n, p, tag, &bytes);
			q->from = p + 1 + bytes;
			return q->from > n || q->literals > n - q->from ? LADE_GPU_TRUNCATED
			                                                : LADE_GPU_OK;
		}
		bytes = (tag & 3) == 3 ? 4 : tag & 3;
		if (n - p - 1 < bytes)
			return LADE_GPU_TRUNCATED;
		q->offset = number(src, n, p + 1, bytes);
		if ((tag & 3) == 1) {
			q->match = 4 + (tag >> 2 & 7);
			q->offset |= (tag >> 5) << 8;
		} else {
			q->match = (tag >> 2) + 1;
		}
		return LADE_GPU_OK;
	}

	static __device__ __forceinline__ uint32_t slow(const uint8_t *, uint32_t, uint32_t,
	                                                uint32_t, lade_lz_sequence *, uint32_t *)
	{
		return LADE_GPU_CORRUPT; /* never called */
	}

	/* The decoded size before the first element; of at most 32 bits. */
	static __device__ __forceinline__ uint32_t begin(const uint8_t *src, uint32_t n,
	                                                 uint32_t *entry, uint32_t *size)
	{
		uint64_t v = 0;
		for (uint32_t i = 0; i < 5; i++) {
			if (i >= n)
				return LADE_GPU_TRUNCATED;
			v |= (uint64_t)(src[i] & 127) << (7 * i);
			if (src[i] < 128) {
				*entry = i + 1;
				*size = (uint32_t)v;
				return v > 0xFFFFFFFEu          ? LADE_GPU_CORRUPT
				       : v > LADE_GPU_CHUNK_MAX ? LADE_GPU_LIMIT
				                                : LADE_GPU_OK;
			}
		}
		return LADE_GPU_CORRUPT;
	}
};

#endif
