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
#pragma unroll 1
		for (uint32_t i = count; i-- > 0;)
			v = v << 8 | (at + i < n ? (uint32_t)src[at + i] : 255);
		return v;
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

	/* The element at 'p' < n, which becomes piece 'k'; 'near': its first bytes. */
	static __device__ __forceinline__ uint32_t element(const uint8_t *src, uint32_t n,
	                                                   uint32_t p, uint32_t near,
	                                                   lade_lz_sequence *q, uint32_t k,
	                                                   uint32_t *next)
	{
		uint32_t kind = near & 3, size = (near >> 2 & 63) + 1;
		bool literal = kind == 0, longer = literal && size > 60;
		uint32_t from = near >> 8 & 0xFFFF, bytes = literal ? size : kind;
		if (kind == 1) {
			size = 4 + (near >> 2 & 7);
			from = (near >> 8 & 255) | (near << 3 & 0x700);
		}
		from = literal ? p + 1 : from;
		if (longer || kind == 3) {
			bytes = longer ? size - 60 : 4;
			uint32_t v = number(src, n, p + 1, bytes);
			from = longer ? p + 1 + bytes : v;
			if (longer) {
				size = v < LADE_GPU_CHUNK_MAX ? v + 1 : LADE_GPU_CHUNK_MAX + 1;
				bytes += size;
			}
		}
		q->match[k] = !literal;
		q->size[k] = size;
		q->from[k] = from;
		*next = p + 1 + bytes; /* the source's end is as good as LADE_LZ_STOP */
		return bytes > n - p - 1 ? LADE_GPU_TRUNCATED : LADE_GPU_OK;
	}

	/* The element at 'position', and the one behind it where that is at 'second', not
	 * LADE_LZ_STOP.  Where the first is cut, the second stays empty. */
	static __device__ __forceinline__ uint32_t
	take(const uint8_t *src, uint32_t n, uint32_t begin, uint32_t position, uint32_t second,
	     const uint32_t *words, uint32_t shift, lade_lz_sequence *q, uint32_t *next, bool *)
	{
		bool two = second != LADE_LZ_STOP;
		uint32_t near[2] = {lade_lz_near(words, shift, position),
		                    lade_lz_near(words, shift, two ? second : 0)};
		uint32_t then, status = element(src, n, begin + position, near[0], q, 0, next);
		two = two && status == LADE_GPU_OK;
		uint32_t other = element(src, n, begin + (two ? second : 0), near[1], q, 1, &then);
		q->size[1] = two ? q->size[1] : 0;
		*next = two ? then : *next;
		return two ? other : status;
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
