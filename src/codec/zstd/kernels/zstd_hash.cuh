/*
 * zstd_hash.cuh: the checksum of a Zstandard frame's content, by a warp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_HASH_CUH
#define LADE_CUDA_ZSTD_HASH_CUH

#include "checksum/kernels/xxh64.cuh"
#include "codec/zstd/kernels/zstd_frame.cuh"

static __device__ __forceinline__ uint64_t lade_zstd_long(const uint8_t *p)
{
	if (!((uintptr_t)p & 7))
		return *(const uint64_t *)lade_global(p);
	uint64_t value = 0;
	for (uint32_t k = 0; k < 8; k++)
		value |= (uint64_t)p[k] << (8 * k);
	return value;
}

/* The low half of XXH64 of 'size' bytes, by a warp: four lanes have an accumulator each. */
static __device__ __noinline__ uint32_t lade_zstd_hash(const uint8_t *p, uint32_t size,
                                                       uint32_t lane)
{
	uint32_t k = lane & 3, stripes = size / 32, at = 32 * stripes;
	uint64_t v = k == 0   ? LADE_XXH_1 + LADE_XXH_2
	             : k == 1 ? LADE_XXH_2
	             : k == 2 ? 0
	                      : 0 - LADE_XXH_1;
#pragma unroll 4
	for (uint32_t i = 0; i < stripes; i++)
		v = lade_xxh_round(v, lade_zstd_long(p + 32 * i + 8 * k));
	uint64_t h = LADE_XXH_5, all[4];
#pragma unroll
	for (uint32_t i = 0; i < 4; i++)
		all[i] = __shfl_sync(LADE_FULL, v, i);
	if (stripes) {
		h = lade_xxh_turn(all[0], 1) + lade_xxh_turn(all[1], 7) +
		    lade_xxh_turn(all[2], 12) + lade_xxh_turn(all[3], 18);
		for (uint32_t i = 0; i < 4; i++)
			h = (h ^ lade_xxh_round(0, all[i])) * LADE_XXH_1 + LADE_XXH_4;
	}
	h += size;
	for (; size - at >= 8; at += 8)
		h = lade_xxh_word(h, lade_zstd_long(p + at));
	if (size - at >= 4) {
		h ^= lade_zstd_le(p, at, 4) * LADE_XXH_1;
		h = lade_xxh_turn(h, 23) * LADE_XXH_2 + LADE_XXH_3;
		at += 4;
	}
	for (; at < size; at++) {
		h ^= p[at] * LADE_XXH_5;
		h = lade_xxh_turn(h, 11) * LADE_XXH_1;
	}
	return (uint32_t)lade_xxh_end(h);
}

#endif
