/*
 * flip.cu: chunks of flip (flip.c), both ways.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/flip/args.h"
#include "gpu/kernels/batch.cuh"

/* Map: block = a chunk, thread = bytes of it.  No shared memory; any block. */
extern "C" __global__ void __launch_bounds__(LADE_FLIP_THREADS)
	lade_flip_encode(lade_gpu_batch batch)
{
	lade_gpu_chunk c;
	uint32_t i = blockIdx.x, status = lade_chunk_get(batch, i, &c);
	if (status == LADE_GPU_OK && c.src_size > c.dst_cap)
		status = LADE_GPU_NOSPACE;
	if (status == LADE_GPU_OK && c.dst_cap - c.src_size < LADE_FLIP_HEADER)
		status = LADE_GPU_NOSPACE;
	if (status == LADE_GPU_OK) {
		for (uint32_t k = threadIdx.x; k < LADE_FLIP_HEADER; k += blockDim.x)
			c.dst[k] = k ? (uint8_t)(c.src_size >> 8 * (k - 1)) : LADE_FLIP_MARK;
		for (uint32_t k = threadIdx.x; k < c.src_size; k += blockDim.x)
			c.dst[LADE_FLIP_HEADER + k] = (uint8_t)~c.src[k];
	}
	if (threadIdx.x == 0)
		lade_chunk_put(batch, i, status, c.src_size + LADE_FLIP_HEADER);
}

/* What is wrong with a chunk. */
LADE_DEVICE uint32_t lade_flip_look(const lade_gpu_chunk &c)
{
	uint32_t size = 0;
	if (c.src_size < LADE_FLIP_HEADER)
		return LADE_GPU_TRUNCATED;
	for (uint32_t k = 1; k < LADE_FLIP_HEADER; k++)
		size |= (uint32_t)c.src[k] << 8 * (k - 1);
	if (c.src[0] != LADE_FLIP_MARK || size != c.src_size - LADE_FLIP_HEADER)
		return LADE_GPU_CORRUPT;
	return size > c.dst_cap ? LADE_GPU_NOSPACE : LADE_GPU_OK;
}

/* Likewise. */
extern "C" __global__ void __launch_bounds__(LADE_FLIP_THREADS)
	lade_flip_decode(lade_gpu_batch batch)
{
	lade_gpu_chunk c;
	uint32_t i = blockIdx.x, status = lade_chunk_get(batch, i, &c);
	if (status == LADE_GPU_OK)
		status = lade_flip_look(c);
	uint32_t size = status == LADE_GPU_OK ? c.src_size - LADE_FLIP_HEADER : 0;
	for (uint32_t k = threadIdx.x; k < size; k += blockDim.x)
		c.dst[k] = (uint8_t)~c.src[LADE_FLIP_HEADER + k];
	if (threadIdx.x == 0)
		lade_chunk_put(batch, i, status, size);
}
