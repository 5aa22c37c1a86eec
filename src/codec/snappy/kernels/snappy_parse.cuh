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

#include "codec/lz/kernels/lz_decode.cuh"

struct lade_snappy {
	static constexpr uint32_t SPAN = 128; /* an element takes 2 bytes at least */
	static constexpr int TOKENS = 2;
	static constexpr bool SLOW = false, STATES_SIZE = true;
	static constexpr uint32_t FULL = LADE_GPU_CORRUPT; /* it passes the size that is stated */

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

	/* The element at 'p', which becomes piece 'k', by its first bytes, 'near'; but for one that
	 * is 'rare'.  It takes '*bytes' behind its tag. */
	static __device__ __forceinline__ void element(uint32_t p, uint32_t near,
	                                               lade_lz_sequence *q, uint32_t k,
	                                               uint32_t *bytes, bool *rare)
	{
		uint32_t kind = near & 3, size = (near >> 2 & 63) + 1;
		uint32_t from = near >> 8 & 0xFFFF;
		bool literal = kind == 0;
		*bytes = literal ? size : kind;
		*rare = kind == 3 || (literal && size > 60);
		if (kind == 1) {
			size = 4 + (near >> 2 & 7);
			from = (near >> 8 & 255) | (near << 3 & 0x700);
		}
		q->match[k] = !literal;
		q->size[k] = size;
		q->from[k] = literal ? p + 1 : from;
	}

	/* What is rare: a literal with length bytes, or an offset of four.  Length bytes past the
	 * source's end may be anything, as the literal passes it, too. */
	static __device__ __forceinline__ void other(const uint8_t *src, uint32_t n, uint32_t p,
	                                             uint32_t near, lade_lz_sequence *q, uint32_t k,
	                                             uint32_t *bytes)
	{
		*bytes = q->match[k] ? 4 : q->size[k] - 60;
		q->from[k] = *bytes < 4 ? near >> 8 & (0xFFFFFFu >> (24 - 8 * *bytes))
		                        : number(src, n, p + 1, 4);
		if (!q->match[k]) {
			uint32_t v = q->from[k];
			q->size[k] = v < LADE_CHUNK_MAX ? v + 1 : LADE_CHUNK_MAX + 1;
			q->from[k] = p + 1 + *bytes;
			*bytes += q->size[k];
		}
	}

	/* The element at 'position', and the one behind it where that is at 'second', not
	 * LADE_LZ_STOP: then the first one ends in the source. */
	static __device__ __forceinline__ uint32_t
	take(const uint8_t *src, uint32_t n, uint32_t begin, uint32_t position, uint32_t second,
	     const uint32_t *words, uint32_t shift, lade_lz_sequence *q, uint32_t *next, bool *)
	{
		bool two = second != LADE_LZ_STOP, rare[2];
		second = two ? second : position;
		uint32_t near[2] = {lade_lz_segment_word(words, shift, position),
		                    lade_lz_segment_word(words, shift, second)};
		uint32_t bytes[2];
		element(begin + position, near[0], q, 0, &bytes[0], &rare[0]);
		element(begin + second, near[1], q, 1, &bytes[1], &rare[1]);
		if (rare[0] || rare[1]) {
			if (rare[0])
				other(src, n, begin + position, near[0], q, 0, &bytes[0]);
			if (rare[1])
				other(src, n, begin + second, near[1], q, 1, &bytes[1]);
		}
		/* Where there is no second one it is the first once more. */
		q->size[1] = two ? q->size[1] : 0;
		*next = begin + second + 1 + bytes[1]; /* the source's end is as good as STOP */
		/* This may wrap if it passes the end, but for lanes without an element. */
		return bytes[1] >= n - (begin + second) ? LADE_GPU_TRUNCATED : LADE_GPU_OK;
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
		if (n == 0)
			return LADE_GPU_TRUNCATED;
		/* All five are asked for at once; one behind the end is the last one again. */
		uint32_t byte[5], last = 5;
#pragma unroll
		for (uint32_t i = 0; i < 5; i++)
			byte[i] = lade_ld_global_byte(src + (i < n ? i : n - 1));
		uint64_t v = 0;
#pragma unroll
		for (uint32_t i = 5; i-- > 0;) {
			v = v << 7 | (byte[i] & 127);
			last = byte[i] < 128 ? i : last;
		}
		if (last == 5)
			return n < 5 ? LADE_GPU_TRUNCATED : LADE_GPU_CORRUPT;
		v &= ((uint64_t)128 << (7 * last)) - 1;
		*entry = last + 1;
		*size = (uint32_t)v;
		return v > 0xFFFFFFFFu          ? LADE_GPU_CORRUPT
		       : v > LADE_CHUNK_MAX ? LADE_GPU_LIMIT
		                                : LADE_GPU_OK;
	}

	/* The stream gives as many bytes as it states; not more, which is seen before. */
	static __device__ __forceinline__ uint32_t end(uint32_t, uint32_t size, uint32_t stated)
	{
		return size == stated ? LADE_GPU_OK : LADE_GPU_TRUNCATED;
	}
};

#endif
