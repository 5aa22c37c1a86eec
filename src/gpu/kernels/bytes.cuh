/*
 * bytes.cuh: runs of bytes, copied by a warp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BYTES_CUH
#define LADE_CUDA_BYTES_CUH

#include "gpu/kernels/batch.cuh"

/*
 * Copies 'size' bytes from 'src' to 'dst', by a warp.  'src' may be before 'dst' in one output, at
 * least 'size' bytes off.  Stores are whole words; a word of the source is read only where all four
 * bytes belong to the run.
 */
static __device__ __forceinline__ void lade_bytes_copy(uint8_t *dst, const uint8_t *src,
                                                       uint32_t size, uint32_t lane)
{
	uint32_t head = (uint32_t)(0 - (uintptr_t)dst) & 3;
	if (head > size)
		head = size;
	if (lane < head)
		dst[lane] = src[lane];
	dst += head;
	src += head;
	size -= head;
	/* Output word i is made of source words i and i + 1, counted from the one that holds
	 * src[0].  That one may begin before the run: then the first four bytes go one by one, as
	 * the last ones do. */
	uint32_t before = (uint32_t)(uintptr_t)src & 3, shift = 8 * before;
	const uint32_t *from = (const uint32_t *)lade_global(src - before);
	uint32_t *to = (uint32_t *)lade_global(dst);
	uint32_t begin = before ? 1 : 0;
	uint32_t whole = (size + before) / 4; /* source words that end within the run */
	uint32_t end = whole > begin ? whole - 1 : begin;
	if (end == begin)
		end = begin = 0;
	if (begin && lane < 4)
		dst[lane] = src[lane];
	uint32_t i = begin + lane;
#pragma unroll 1
	for (; i + 96 < end; i += 128) {
		uint32_t w[4], v[4];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			w[k] = from[i + 32 * k];
			v[k] = from[i + 32 * k + 1];
		}
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			to[i + 32 * k] = __funnelshift_r(w[k], v[k], shift);
	}
#pragma unroll 1
	for (; i < end; i += 32)
		to[i] = __funnelshift_r(from[i], from[i + 1], shift);
	for (uint32_t k = 4 * end + lane; k < size; k += 32)
		dst[k] = src[k];
}

/*
 * Like lade_bytes_copy(), but 16 bytes a lane where both sides stand alike to words of 16: what
 * crosses the link then goes in its largest packets.  The two do not overlap.
 */
static __device__ __forceinline__ void lade_bytes_copy_wide(uint8_t *dst, const uint8_t *src,
                                                            uint32_t size, uint32_t lane)
{
	uint32_t head = (uint32_t)(0 - (uintptr_t)dst) & 15;
	if ((((uintptr_t)dst ^ (uintptr_t)src) & 15) || size < 1024) {
		lade_bytes_copy(dst, src, size, lane);
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
