/*
 * lz4_parse.cuh: reads the sequences of an LZ4 block (lz4_Block_format.md).
 *
 *     | token 1 | more literal length 0.. | literals | offset 2 | more match length 0.. |
 *
 * A length with a further byte of 255 is left to the whole warp.
 *
 * Bounds: no byte is read at or past 'n', the source's size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_LZ4_PARSE_CUH
#define LADE_CUDA_LZ4_PARSE_CUH

#include "codec/lz/kernels/lz_decode.cuh"

struct lade_lz4 {
	static constexpr uint32_t SPAN = 96; /* a token takes 3 bytes at least */
	static constexpr int TOKENS = 1;
	static constexpr bool SLOW = true, STATES_SIZE = false;
	static constexpr uint32_t FULL = LADE_GPU_NOSPACE;

	/*
	 * The next tokens, as if no length had a further byte of 255.  'bytes' are at 'places' in
	 * the segment, 'nexts' one further on.  No byte of the sums carries into the next one: 127
	 * + 3 + 15 + 1 and a length byte below 64 + 1, or 95 + 3 + 15 + 1 and one below 128 + 1.
	 */
	template <bool TEAM>
	static __device__ __forceinline__ uint32_t jumps(uint32_t bytes, uint32_t nexts,
	                                                 uint32_t places)
	{
		constexpr uint32_t SHORT = (TEAM ? 127 : 63) * LADE_LZ_BYTES;
		uint32_t literals = bytes >> 4 & 15 * LADE_LZ_BYTES;
		uint32_t match = (bytes & 15 * LADE_LZ_BYTES) + LADE_LZ_BYTES;
		uint32_t more = (literals + LADE_LZ_BYTES) >> 4 & LADE_LZ_BYTES;
		uint32_t length = nexts & more * 255;
		uint32_t far = length >> 7;
		if (!TEAM)
			far |= length >> 6;
		return (places + 3 * LADE_LZ_BYTES + literals + (match >> 4 & LADE_LZ_BYTES) +
		        more + (length & SHORT)) |
		       (far & LADE_LZ_BYTES) * 255;
	}

	/* The sequence at 'p' < n.  '*slow': it is another one, as a length goes on. */
	static __device__ __forceinline__ uint32_t
	take(const uint8_t *src, uint32_t n, uint32_t begin, uint32_t position, uint32_t,
	     const uint32_t *words, uint32_t shift, lade_lz_sequence *q, uint32_t *next, bool *slow)
	{
		/* All loads are unconditional; one behind the end is of the last byte. */
		uint32_t near = lade_lz_segment_word(words, shift, position), p = begin + position;
		uint32_t end = n - 1, token = near & 255, byte = near >> 8 & 255;
		bool more = token >= 0xF0;
		uint32_t from = p + (more ? 2 : 1), literals = (token >> 4) + (more ? byte : 0);
		bool far = more && byte == 255; /* nothing is known of what is behind it */
		uint32_t at = far ? p : from + literals;
		uint32_t low = src[at < end ? at : end], high = src[at + 1 < end ? at + 1 : end];
		uint32_t then = src[at + 2 < end ? at + 2 : end];
		bool longer = (token & 15) == 15, last = at == n;
		uint32_t behind = at + (longer ? 3 : 2);
		*slow = (more && byte == 255) || (longer && then == 255 && at < n);
		*next = last ? LADE_LZ_STOP : behind;
		q->match[0] = false;
		q->match[1] = true;
		q->size[0] = literals;
		q->from[0] = from;
		q->size[1] = last ? 0 : (token & 15) + 4 + (longer ? then : 0);
		q->from[1] = low | high << 8;
		return last || behind <= n || *slow ? LADE_GPU_OK : LADE_GPU_TRUNCATED;
	}

	/* Reads length bytes from '*at' on, 128 at a time; false where the source ends first.  A
	 * length above a chunk's is cut to that or up to 32,640 more: it is too much still, and
	 * with a token before and 4 behind it does not wrap. */
	static __device__ __forceinline__ bool more(const uint8_t *src, uint32_t n, uint32_t lane,
	                                            uint32_t *at, uint32_t *length)
	{
		for (;;) {
			uint32_t p = *at + 4 * lane, k = 4, byte = 255;
#pragma unroll
			for (uint32_t j = 4; j-- > 0;) {
				uint32_t b = p + j < n ? src[p + j] : 0;
				k = b != 255 ? j : k;
				byte = b != 255 ? b : byte;
			}
			uint32_t ends = __ballot_sync(LADE_FULL, k < 4);
			if (*length > LADE_CHUNK_MAX)
				*length = LADE_CHUNK_MAX;
			if (!ends) {
				*length += 128 * 255;
				*at += 128;
				continue;
			}
			uint32_t first = __ffs(ends) - 1;
			k = 4 * first + __shfl_sync(LADE_FULL, k, first);
			*length += 255 * k + __shfl_sync(LADE_FULL, byte, first);
			*at += k + 1;
			return *at <= n;
		}
	}

	/* Reads the token at 'p' < n, whatever its lengths; all lanes get the same. */
	static __device__ __forceinline__ uint32_t slow(const uint8_t *src, uint32_t n, uint32_t p,
	                                                uint32_t lane, lade_lz_sequence *q,
	                                                uint32_t *next)
	{
		uint32_t t = src[p], at = p + 1;
		q->match[0] = false;
		q->match[1] = true;
		q->size[0] = t >> 4;
		q->size[1] = t & 15;
		q->from[1] = 0;
		if (q->size[0] == 15 && !more(src, n, lane, &at, &q->size[0]))
			return LADE_GPU_TRUNCATED;
		q->from[0] = at;
		if (at > n || q->size[0] > n - at)
			return LADE_GPU_TRUNCATED;
		at += q->size[0];
		*next = LADE_LZ_STOP;
		if (at == n) {
			q->size[1] = 0;
			return LADE_GPU_OK;
		}
		if (n - at < 2)
			return LADE_GPU_TRUNCATED;
		q->from[1] = src[at] | (uint32_t)src[at + 1] << 8;
		at += 2;
		if (q->size[1] == 15 && !more(src, n, lane, &at, &q->size[1]))
			return LADE_GPU_TRUNCATED;
		/* No more than 2^31 bytes together, which no output has room for. */
		uint32_t most = LADE_CHUNK_MAX + 1 - q->size[0];
		q->size[1] = q->size[1] + 4 < most ? q->size[1] + 4 : most;
		*next = at;
		return LADE_GPU_OK;
	}

	/* Nothing stands before the first token. */
	static __device__ __forceinline__ uint32_t begin(const uint8_t *src, uint32_t n,
	                                                 uint32_t *entry, uint32_t *size)
	{
		(void)src, (void)n;
		*entry = 0;
		*size = LADE_LZ_STOP;
		return LADE_GPU_OK;
	}

	/* A block ends behind literals, never behind a match, and is not empty. */
	static __device__ __forceinline__ uint32_t end(uint32_t next, uint32_t, uint32_t)
	{
		return next == LADE_LZ_STOP ? LADE_GPU_OK : LADE_GPU_TRUNCATED;
	}
};

#endif
