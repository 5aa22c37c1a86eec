/*
 * lz4_parse.cuh: reads the sequences of an LZ4 block (lz4_Block_format.md).
 *
 *     | token 1 | more literal length 0.. | literals | offset 2 | more match length 0.. |
 *
 *
 *
 * A length with a further byte of 255 is left to the whole warp: such a token ends its batch.
 *
 * Bounds: no byte is read at or past 'n', the source's size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_LZ4_PARSE_CUH
#define LADE_CUDA_LZ4_PARSE_CUH

#include "cuda/lz_decode.cuh"

/*
 * What a position read as a token says, packed for the list:
 * | match 9 | literals 9 | literal length has a further byte 1 | 0 7 | slow 1 |
 */
struct lade_lz4 {
	static constexpr uint32_t SPAN = 96;       /* a token takes 3 bytes at least */
	static constexpr bool TOKEN_AT_END = true; /* a block never ends behind a match */

	/* 'bytes' are those at 'p' and behind it; 'stage' holds LADE_LZ_STAGE bytes from 'begin'
	 * on. */
	static __device__ __forceinline__ uint32_t jump(const uint8_t *src, uint32_t n,
	                                                uint32_t begin, const uint8_t *stage,
	                                                uint32_t p, uint32_t bytes, uint32_t *token)
	{
		uint32_t literals = bytes >> 4 & 15, match = bytes & 15, next = bytes >> 8 & 255;
		bool more = literals == 15, slow = more && next == 255;
		uint32_t at = p + 3 + literals + (more ? next + 1 : 0);
		literals += more ? next : 0;
		bool last = at >= n + 2; /* its literals end the source, or pass its end */
		if (match == 15 && !last) {
			uint32_t byte = 255;
			if (at - begin < LADE_LZ_STAGE)
				byte = at < n ? stage[at - begin] : 255;
			else if (at < n)
				byte = src[at];
			slow |= byte == 255;
			match += byte;
			at++;
		}
		slow &= p < n;
		*token = (match + 4) << 18 | literals << 9 | (more ? 256u : 0) |
		         (slow ? LADE_LZ_SLOW : 0);
		return last || slow || p >= n ? LADE_LZ_STOP : at;
	}

	/* A lane's sequence, at 'p'; not for slow ones. */
	static __device__ __forceinline__ uint32_t take(const uint8_t *src, uint32_t n, uint32_t p,
	                                                uint32_t token, lade_lz_sequence *q)
	{
		if (p >= n)
			return LADE_GPU_TRUNCATED;
		q->literals = token >> 9 & 511;
		q->from = p + 1 + (token >> 8 & 1);
		if (q->from > n || q->literals > n - q->from)
			return LADE_GPU_TRUNCATED;
		uint32_t at = q->from + q->literals;
		q->match = q->offset = 0;
		if (at == n)
			return LADE_GPU_OK;
		if (n - at < 2)
			return LADE_GPU_TRUNCATED;
		q->offset = src[at] | (uint32_t)src[at + 1] << 8;
		q->match = token >> 18;
		return LADE_GPU_OK;
	}

	/* Reads length bytes from '*at' on, 32 at a time; false where the source ends first or the
	 * length is more than a chunk's. */
	static __device__ __forceinline__ bool more(const uint8_t *src, uint32_t n, uint32_t lane,
	                                            uint32_t *at, uint32_t *length)
	{
		for (;;) {
			uint32_t p = *at + lane;
			uint32_t byte = p < n ? src[p] : 0;
			uint32_t ends = __ballot_sync(LADE_FULL, byte != 255);
			if (*length > LADE_GPU_CHUNK_MAX)
				return false;
			if (!ends) {
				*length += 32 * 255;
				*at += 32;
				continue;
			}
			uint32_t k = __ffs(ends) - 1;
			*length += 255 * k + __shfl_sync(LADE_FULL, byte, k);
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
		q->literals = t >> 4;
		q->match = t & 15;
		q->offset = 0;
		if (q->literals == 15 && !more(src, n, lane, &at, &q->literals))
			return LADE_GPU_TRUNCATED;
		q->from = at;
		if (at > n || q->literals > n - at)
			return LADE_GPU_TRUNCATED;
		at += q->literals;
		*next = LADE_LZ_STOP;
		if (at == n) {
			q->match = 0;
			return LADE_GPU_OK;
		}
		if (n - at < 2)
			return LADE_GPU_TRUNCATED;
		q->offset = src[at] | (uint32_t)src[at + 1] << 8;
		at += 2;
		if (q->match == 15 && !more(src, n, lane, &at, &q->match))
			return LADE_GPU_TRUNCATED;
		q->match += 4;
		*next = at;
		return LADE_GPU_OK;
	}

	/* Nothing stands before the first token. */
	static __device__ __forceinline__ uint32_t begin(const uint8_t *src, uint32_t n,
	                                                 uint32_t *entry, uint32_t *size)
	{
		(void)src;
		*entry = 0;
		*size = LADE_LZ_STOP;
		return n ? LADE_GPU_OK : LADE_GPU_TRUNCATED;
	}
};

#endif
