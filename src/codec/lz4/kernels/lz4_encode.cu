/*
 * lz4_encode.cu: LZ4 blocks, in batches.  A sequence is
 *
 *     | literals 4, match 4 | more literals | literals | distance 2 | more match |
 *
 * where 15 in a half of the first byte says that bytes follow which are added, up to and with the
 * first that is not 255; matches count from 4.  The last sequence is literals only.  (LZ4 Block
 * Format Description: the last 5 bytes are literals, and a match begins at least 12 bytes before
 * the end.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/kernels/lz_encode.cuh"

struct lade_lz4_writer {
	static const uint32_t END = 5; /* bytes at the end that no match covers */
	static const uint32_t MOST = 0x7E000000; /* liblz4's limit of a block, decoded */
	static const bool TOKEN_AT_END = true;

	/*
	 * No n bytes of the source take more, the end of a stream aside: a sequence adds its
	 * token and its distance, 3 bytes, and a byte for each 255 literals, and leaves out 4 or
	 * more.
	 */
	static __device__ __forceinline__ uint32_t bound(uint32_t n)
	{
		return n + n / 255 + 16;
	}

	static __device__ __forceinline__ uint32_t prefix_size(uint32_t)
	{
		return 0;
	}

	static __device__ __forceinline__ void prefix(uint8_t *, uint32_t)
	{
	}

	static __device__ __forceinline__ uint32_t more(uint32_t n)
	{
		return n < 15 ? 0 : 1 + (n - 15) / 255;
	}

	static __device__ __forceinline__ uint32_t head_size(uint32_t literals)
	{
		return 1 + more(literals);
	}

	static __device__ __forceinline__ uint32_t match_size(uint32_t length, uint32_t)
	{
		return 2 + more(length - 4);
	}

	static __device__ __forceinline__ bool match_is_long(uint32_t length)
	{
		return length > 4 + 15 + 4 * 255;
	}

	/* What of a length does not fit the token; thread 'lane' of 'lanes'. */
	static __device__ __forceinline__ void write_more(uint8_t *to, uint32_t n, uint32_t lane,
	                                                  uint32_t lanes)
	{
		if (n < 15)
			return;
		uint32_t full = (n - 15) / 255;
		for (uint32_t i = lane; i < full; i += lanes)
			to[i] = 255;
		if (lane == 0)
			to[full] = (uint8_t)(n - 15 - 255 * full);
	}

	/* The token, and where its literals go; a length of 0 is that of the last sequence. */
	static __device__ __forceinline__ uint8_t *head(uint8_t *to, uint32_t literals,
	                                                uint32_t length, uint32_t lane,
	                                                uint32_t lanes)
	{
		uint32_t high = literals < 15 ? literals : 15;
		uint32_t low = length < 4 ? 0 : length - 4 < 15 ? length - 4 : 15;
		if (lane == 0)
			to[0] = (uint8_t)(high << 4 | low);
		write_more(to + 1, literals, lane, lanes);
		return to + head_size(literals);
	}

	static __device__ __forceinline__ void match(uint8_t *to, uint32_t length, uint32_t dist,
	                                             uint32_t lane, uint32_t lanes)
	{
		if (lane == 0) {
			to[0] = (uint8_t)dist;
			to[1] = (uint8_t)(dist >> 8);
		}
		write_more(to + 2, length - 4, lane, lanes);
	}
};

extern "C" __global__ void __launch_bounds__(160, 4)
	lade_lz4_encode(lade_gpu_batch batch, uint32_t elem)
{
	lade_lz_encode_solo_batch<lade_lz4_writer>(batch, elem);
}

extern "C" __global__ void __launch_bounds__(256, 3)
	lade_lz4_encode_team8(lade_gpu_batch batch, uint32_t elem)
{
	lade_lz_encode_team_batch<lade_lz4_writer>(batch, elem);
}

extern "C" __global__ void __launch_bounds__(512, 1)
	lade_lz4_encode_team16(lade_gpu_batch batch, uint32_t elem)
{
	lade_lz_encode_team_batch<lade_lz4_writer>(batch, elem);
}
