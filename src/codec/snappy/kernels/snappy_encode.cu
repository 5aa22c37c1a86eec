/*
 * snappy_encode.cu: raw Snappy, in batches.  A stream is the decoded size as a varint and then
 * elements, distinguished by the low two bits of their first byte:
 *
 *     00: literals    | length - 1 below 60, or 59 + number of length bytes | length - 1 | ... |
 *     01: copy        | distance 3 bits, length - 4 3 bits | distance 8 bits |    4 to 11 bytes
 *     10: copy        | length - 1 6 bits | distance 16 bits |                    1 to 64 bytes
 *
 * (Snappy's format_description.txt, sections 1 and 2.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/kernels/lz_encode.cuh"

struct lade_snappy_writer {
	static const uint32_t END = 0;
	static const uint32_t MOST = LADE_CHUNK_MAX;
	static const bool TOKEN_AT_END = false;

	/*
	 * No n bytes of the source take more, the prefix aside: up to 60 literals and a copy add
	 * 4 bytes and leave out 4 or more; longer runs add at most 2 for 65 and 4 for 2^16.
	 */
	static __device__ __forceinline__ uint32_t bound(uint32_t n)
	{
		return 32 + n + n / 6;
	}

	static __device__ __forceinline__ uint32_t prefix_size(uint32_t size)
	{
		return size < 1u << 7    ? 1
		       : size < 1u << 14 ? 2
		       : size < 1u << 21 ? 3
		       : size < 1u << 28 ? 4
		                         : 5;
	}

	static __device__ __forceinline__ void prefix(uint8_t *to, uint32_t size)
	{
		for (; size >= 128; size >>= 7)
			*to++ = (uint8_t)(size | 128);
		*to = (uint8_t)size;
	}

	static __device__ __forceinline__ uint32_t head_size(uint32_t literals)
	{
		return literals == 0          ? 0
		       : literals <= 60       ? 1
		       : literals <= 1u << 8  ? 2
		       : literals <= 1u << 16 ? 3
		       : literals <= 1u << 24 ? 4
		                              : 5;
	}

	static __device__ __forceinline__ uint8_t *head(uint8_t *to, uint32_t literals, uint32_t,
	                                                uint32_t lane, uint32_t)
	{
		uint32_t size = head_size(literals);
		if (lane == 0 && size == 1)
			to[0] = (uint8_t)((literals - 1) << 2);
		if (lane == 0 && size > 1) {
			to[0] = (uint8_t)((58 + size) << 2);
			for (uint32_t i = 1; i < size; i++)
				to[i] = (uint8_t)((literals - 1) >> (8 * (i - 1)));
		}
		return to + size;
	}

	/* Copies of 64 bytes; what they leave is 4 to 67, as a copy of less than 4 has no
	 * short form. */
	static __device__ __forceinline__ uint32_t full(uint32_t length)
	{
		return (length - 4) / 64;
	}

	static __device__ __forceinline__ uint32_t match_size(uint32_t length, uint32_t dist)
	{
		uint32_t n = full(length), rest = length - 64 * n;
		if (rest > 64) {
			n++;
			rest -= 60;
		}
		return 3 * n + (rest < 12 && dist < 2048 ? 2 : 3);
	}

	static __device__ __forceinline__ bool match_is_long(uint32_t length)
	{
		return length >= 68 + 4 * 64;
	}

	static __device__ __forceinline__ void copy(uint8_t *to, uint32_t length, uint32_t dist)
	{
		to[0] = (uint8_t)((length - 1) << 2 | 2);
		to[1] = (uint8_t)dist;
		to[2] = (uint8_t)(dist >> 8);
	}

	static __device__ __forceinline__ void match(uint8_t *to, uint32_t length, uint32_t dist,
	                                             uint32_t lane, uint32_t lanes)
	{
		uint32_t n = full(length), rest = length - 64 * n;
		for (uint32_t i = lane; i < n; i += lanes)
			copy(to + 3 * i, 64, dist);
		if (lane != 0)
			return;
		to += 3 * n;
		if (rest > 64) {
			copy(to, 60, dist);
			rest -= 60;
			to += 3;
		}
		if (rest < 12 && dist < 2048) {
			to[0] = (uint8_t)(dist >> 8 << 5 | (rest - 4) << 2 | 1);
			to[1] = (uint8_t)dist;
		} else {
			copy(to, rest, dist);
		}
	}
};

extern "C" __global__ void __launch_bounds__(160, 4)
	lade_snappy_encode(lade_gpu_batch batch, uint32_t elem)
{
	lade_lz_encode_solo_batch<lade_snappy_writer>(batch, elem);
}

extern "C" __global__ void __launch_bounds__(256, 3)
	lade_snappy_encode_team8(lade_gpu_batch batch, uint32_t elem)
{
	lade_lz_encode_team_batch<lade_snappy_writer>(batch, elem);
}

extern "C" __global__ void __launch_bounds__(512, 1)
	lade_snappy_encode_team16(lade_gpu_batch batch, uint32_t elem)
{
	lade_lz_encode_team_batch<lade_snappy_writer>(batch, elem);
}
