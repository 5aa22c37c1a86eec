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

struct lade_snappy {
	static constexpr uint32_t SPAN = 128; /* an element takes 2 bytes at least */
	static constexpr int TOKENS = 2;
	static constexpr uint32_t FULL = LADE_GPU_CORRUPT; /* it passes the size that is told */

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

	/*
	 * The next elements; of a literal with length bytes for teams alone, and with one below 64.
	 * 'bytes' are at 'places' in the segment, 'nexts' one further on.  No byte of the sums
	 * carries into the next one: 127 + 1 + 64, or 127 + 3 + 63.
	 */
	template <bool TEAM>
	static __device__ __forceinline__ uint32_t jumps(uint32_t bytes, uint32_t nexts,
	                                                 uint32_t places)
	{
		/* A copy takes 2, 3 or 5 bytes, by the tag's low bits. */
		uint32_t low = bytes & LADE_LZ_BYTES, high = bytes >> 1 & LADE_LZ_BYTES;
		uint32_t literal = ~(low | high) & LADE_LZ_BYTES;
		uint32_t length = bytes >> 2 & 63 * LADE_LZ_BYTES & literal * 255;
		uint32_t to =
			places + LADE_LZ_BYTES + low + 2 * high + (low & high) + literal + length;
		uint32_t more =
			((length >> 2 & 15 * LADE_LZ_BYTES) + LADE_LZ_BYTES) >> 4 & LADE_LZ_BYTES;
		to |= more * 255;
		if (TEAM) {
			uint32_t one = more & ~(length | length >> 1 | nexts >> 7 | nexts >> 6);
			to = (to & ~(one * 255)) |
			     ((places + 3 * LADE_LZ_BYTES + (nexts & 63 * LADE_LZ_BYTES)) &
			      one * 255);
		}
		return to;
	}

	/* The element at 'p' < n, which becomes piece 'k'; 'tag', 'low', 'high': its bytes. */
	static __device__ __forceinline__ uint32_t element(const uint8_t *src, uint32_t n,
	                                                   uint32_t p, uint32_t tag, uint32_t low,
	                                                   uint32_t high, lade_lz_sequence *q,
	                                                   uint32_t k, uint32_t *next)
	{
		uint32_t kind = tag & 3, size = (tag >> 2) + 1, bytes = kind;
		uint32_t from = low | (kind == 1 ? tag >> 5 : high) << 8;
		if (kind == 1)
			size = 4 + (tag >> 2 & 7);
		if (kind == 0) {
			bytes = size;
			from = p + 1;
		}
		if (kind == 3) {
			bytes = 4;
			from = number(src, n, p + 1, 4);
		} else if (kind == 0 && size > 60) {
			size = literal(src, n, p, tag, &bytes);
			from = p + 1 + bytes;
			bytes += size;
		}
		q->match[k] = kind != 0;
		q->size[k] = size;
		q->from[k] = from;
		*next = p + 1 + bytes; /* the source's end is as good as LADE_LZ_STOP */
		return bytes > n - p - 1 ? LADE_GPU_TRUNCATED : LADE_GPU_OK;
	}

	/* The element at 'p' < n, and the one behind it where that is at 'second' < n.  Where the
	 * first is cut, the second stays empty. */
	static __device__ __forceinline__ uint32_t take(const uint8_t *src, uint32_t n, uint32_t p,
	                                                uint32_t second, lade_lz_sequence *q,
	                                                uint32_t *next, bool *)
	{
		/* All loads are unconditional; one behind the end is of the last byte. */
		uint32_t end = n - 1, byte[2][3];
#pragma unroll
		for (uint32_t k = 0; k < 3; k++) {
			byte[0][k] = src[p + k < end ? p + k : end];
			byte[1][k] = src[second < end - k ? second + k : end];
		}
		uint32_t status =
			element(src, n, p, byte[0][0], byte[0][1], byte[0][2], q, 0, next);
		if (status == LADE_GPU_OK && second < n)
			status = element(src, n, second, byte[1][0], byte[1][1], byte[1][2], q, 1,
			                 next);
		return status;
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
				return v > 0xFFFFFFFFu          ? LADE_GPU_CORRUPT
				       : v > LADE_GPU_CHUNK_MAX ? LADE_GPU_LIMIT
				                                : LADE_GPU_OK;
			}
		}
		return LADE_GPU_CORRUPT;
	}

	/* The stream gives as many bytes as it tells; not more, which is seen before. */
	static __device__ __forceinline__ uint32_t end(uint32_t, uint32_t size, uint32_t told)
	{
		return size == told ? LADE_GPU_OK : LADE_GPU_TRUNCATED;
	}
};

#endif
