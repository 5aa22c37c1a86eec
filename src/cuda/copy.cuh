/*
 * copy.cuh: one run of bytes, copied by a warp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_COPY_CUH
#define LADE_CUDA_COPY_CUH

#include "cuda/lz_exec.cuh"

/* What a warp copies at a time. */
#define LADE_COPY_PIECE 16384u

/*
 * Copies 'size' bytes, 16 a lane where both sides stand alike to words of 16: what crosses the
 * link then goes in its largest packets.  The two do not overlap.
 */
static __device__ __forceinline__ void lade_copy_run(uint8_t *dst, const uint8_t *src,
                                                     uint32_t size, uint32_t lane)
{
	uint32_t head = (uint32_t)(0 - (uintptr_t)dst) & 15;
	if ((((uintptr_t)dst ^ (uintptr_t)src) & 15) || size < 1024) {
		lade_lz_run(dst, src, size, lane);
		return;
	}
	if (lane < head)
		dst[lane] = src[lane];
	const uint4 *from = (const uint4 *)(src + head);
	uint4 *to = (uint4 *)(dst + head);
	uint32_t count = (size - head) / 16, i = lane;
	for (; i + 96 < count; i += 128) {
		uint4 w[4];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			w[k] = from[i + 32 * k];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			to[i + 32 * k] = w[k];
	}
	for (; i < count; i += 32)
		to[i] = from[i];
	for (i = head + 16 * count + lane; i < size; i += 32)
		dst[i] = src[i];
}

#endif
