/*
 * unshuffle.cuh: the byte shuffle behind an LZ decoder, in its own kernel: the team that has
 * decoded a chunk to scratch memory takes it from there to its destination, while others decode.
 *
 * A lane takes a word of each row, four elements; nothing goes by shared memory, and the code is
 * short: it shares the caches with the decoder's (docs/performance/gpu-filters.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_UNSHUFFLE_CUH
#define LADE_CUDA_UNSHUFFLE_CUH

#include "codec/lz/kernels/lz_decode.cuh"
#include "filter/kernels/rows.cuh"

/* The word at 'from', whose aligned words may be read; EVEN: it is one.  The same kernel has
 * written it: it must not come from the cache of what is constant. */
template <bool EVEN>
static __device__ __forceinline__ uint32_t lade_unshuffle_word(const uint8_t *from)
{
	if (EVEN)
		return __ldcg((const uint32_t *)from);
	uint32_t over = (uint32_t)(uintptr_t)from & 3;
	const uint32_t *word = (const uint32_t *)(from - over);
	uint32_t low = __ldcg(word), high = over ? __ldcg(word + 1) : 0;
	return __funnelshift_r(low, high, 8 * over);
}

/* SIZE words to any address. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_unshuffle_put(uint8_t *to, const uint32_t *w)
{
	uint32_t over = (uint32_t)(uintptr_t)to;
	if (SIZE == 2 && !(over & 7)) {
		*(uint2 *)to = make_uint2(w[0], w[1]);
	} else if (SIZE > 2 && !(over & 15)) {
#pragma unroll
		for (uint32_t k = 0; k + 3 < SIZE; k += 4)
			((uint4 *)to)[k / 4] = make_uint4(w[k], w[k + 1], w[k + 2], w[k + 3]);
	} else if (!(over & 3)) {
#pragma unroll
		for (uint32_t k = 0; k < SIZE; k++)
			((uint32_t *)to)[k] = w[k];
	} else {
#pragma unroll
		for (uint32_t k = 0; k < 4 * SIZE; k++)
			to[k] = (uint8_t)(w[k / 4] >> 8 * (k % 4));
	}
}

/* A chunk of 'size' bytes, by each of 'parts' warps its part. */
template <uint32_t SIZE, bool EVEN>
static __device__ __forceinline__ void lade_unshuffle(const uint8_t *src, uint8_t *dst,
                                                      uint32_t size, uint32_t part, uint32_t parts,
                                                      uint32_t lane)
{
	constexpr uint32_t TURN = 16 / SIZE; /* groups of four elements of a lane at once */
	uint32_t n = size / SIZE, groups = n / 4;
#pragma unroll 1
	for (uint32_t first = 32 * TURN * part; first < groups; first += 32 * TURN * parts) {
		uint32_t w[16];
#pragma unroll
		for (uint32_t k = 0; k < TURN; k++) {
			uint32_t g = first + 32 * k + lane;
#pragma unroll
			for (uint32_t j = 0; j < SIZE; j++)
				w[SIZE * k + j] = g < groups ? lade_unshuffle_word<EVEN>(
								       src + j * n + 4 * g)
				                             : 0;
		}
#pragma unroll
		for (uint32_t k = 0; k < TURN; k++) {
			uint32_t g = first + 32 * k + lane;
			lade_bytes<SIZE>::from_rows(w + SIZE * k);
			if (g < groups)
				lade_unshuffle_put<SIZE>(dst + 4 * SIZE * g, w + SIZE * k);
		}
	}
	if (part)
		return;
	for (uint32_t k = 4 * SIZE * groups + lane; k < size; k += 32)
		dst[k] = __ldcg(src + (k < n * SIZE ? k % SIZE * n + k / SIZE : k));
}

/* What the batches of lz_decode.cuh do with a decoded chunk. */
template <int W>
static __device__ __forceinline__ uint32_t lade_lz_after_decode(const lade_lz_unshuffle &u,
                                                                const lade_gpu_chunk &c, uint32_t i,
                                                                uint32_t bytes, uint32_t warp,
                                                                uint32_t lane)
{
	const uint8_t *src = lade_global((const uint8_t *)c.dst);
	uint8_t *to = lade_global(u.dst[i]);
	bool even = !(((uintptr_t)src | bytes / u.size) & 3);
	if (!to && c.dst_cap)
		return LADE_GPU_ARG;
	if (u.partial != LADE_GPU_OK && bytes % u.size)
		return u.partial;
	lade_team_sync<W>();
	if (u.size == 2 && even)
		lade_unshuffle<2, true>(src, to, bytes, warp, W, lane);
	else if (u.size == 2)
		lade_unshuffle<2, false>(src, to, bytes, warp, W, lane);
	else if (u.size == 4 && even)
		lade_unshuffle<4, true>(src, to, bytes, warp, W, lane);
	else if (u.size == 4)
		lade_unshuffle<4, false>(src, to, bytes, warp, W, lane);
	else if (even)
		lade_unshuffle<8, true>(src, to, bytes, warp, W, lane);
	else
		lade_unshuffle<8, false>(src, to, bytes, warp, W, lane);
	return LADE_GPU_OK;
}

#endif
