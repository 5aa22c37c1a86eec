/*
 * xxh64.cuh: the steps of XXH64, and the hash of words by one thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_XXH64_CUH
#define LADE_CUDA_XXH64_CUH

#include "gpu/kernels/device.cuh"

#define LADE_XXH_1 0x9E3779B185EBCA87ull
#define LADE_XXH_2 0xC2B2AE3D27D4EB4Full
#define LADE_XXH_3 0x165667B19E3779F9ull
#define LADE_XXH_4 0x85EBCA77C2B2AE63ull
#define LADE_XXH_5 0x27D4EB2F165667C5ull

static __device__ __forceinline__ uint64_t lade_xxh_turn(uint64_t v, uint32_t n)
{
	return v << n | v >> (64 - n);
}

static __device__ __forceinline__ uint64_t lade_xxh_round(uint64_t acc, uint64_t word)
{
	return lade_xxh_turn(acc + word * LADE_XXH_2, 31) * LADE_XXH_1;
}

/* A word behind the stripes of four. */
static __device__ __forceinline__ uint64_t lade_xxh_word(uint64_t h, uint64_t word)
{
	h ^= lade_xxh_round(0, word);
	return lade_xxh_turn(h, 27) * LADE_XXH_1 + LADE_XXH_4;
}

/* The last mixing. */
static __device__ __forceinline__ uint64_t lade_xxh_end(uint64_t h)
{
	h ^= h >> 33;
	h *= LADE_XXH_2;
	h ^= h >> 29;
	h *= LADE_XXH_3;
	return h ^ h >> 32;
}

/* The hash of 'count' words from a seed. */
static __device__ __forceinline__ uint64_t lade_xxh_words(const uint64_t *word, uint32_t count,
                                                          uint64_t seed)
{
	uint64_t h = seed + LADE_XXH_5;
	uint32_t i = 0;
	if (count >= 4) {
		uint64_t v[4] = {seed + LADE_XXH_1 + LADE_XXH_2, seed + LADE_XXH_2, seed,
		                 seed - LADE_XXH_1};
#pragma unroll 4
		for (; i + 4 <= count; i += 4)
#pragma unroll
			for (uint32_t k = 0; k < 4; k++)
				v[k] = lade_xxh_round(v[k], word[i + k]);
		h = lade_xxh_turn(v[0], 1) + lade_xxh_turn(v[1], 7) + lade_xxh_turn(v[2], 12) +
		    lade_xxh_turn(v[3], 18);
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			h = (h ^ lade_xxh_round(0, v[k])) * LADE_XXH_1 + LADE_XXH_4;
	}
	h += (uint64_t)8 * count;
	for (; i < count; i++)
		h = lade_xxh_word(h, word[i]);
	return lade_xxh_end(h);
}

#endif
