/*
 * batch.cuh: what every batched kernel is called with, and how its warps take chunks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BATCH_CUH
#define LADE_CUDA_BATCH_CUH

#include "gpu/args.h"
#include "gpu/kernels/device.cuh"

/* One chunk, checked. */
struct lade_gpu_chunk {
	const uint8_t *src;
	uint8_t *dst;
	uint32_t src_size, dst_cap;
};

/* The status that chunk 'i' has already. */
static __device__ __forceinline__ uint32_t lade_before_get(const lade_gpu_batch &batch, uint32_t i)
{
	return batch.before ? batch.before[i] : LADE_GPU_OK;
}

/* What the tables say of the source of a chunk that has no status yet. */
static __device__ __forceinline__ uint32_t lade_source_look(const lade_gpu_batch &batch, uint32_t i,
                                                            lade_gpu_chunk *chunk)
{
	uint64_t src_size = batch.src_size[i];
	chunk->src = batch.src[i];
	chunk->dst = nullptr;
	chunk->dst_cap = 0;
	if (!chunk->src && src_size)
		return LADE_GPU_ARG;
	if (src_size > LADE_CHUNK_MAX)
		return LADE_GPU_LIMIT;
	chunk->src_size = (uint32_t)src_size;
	return LADE_GPU_OK;
}

/* Reads the source of chunk 'i'; anything but LADE_GPU_OK means that it must not be touched. */
static __device__ __forceinline__ uint32_t lade_source_get(const lade_gpu_batch &batch, uint32_t i,
                                                           lade_gpu_chunk *chunk)
{
	uint32_t before = lade_before_get(batch, i);
	return before != LADE_GPU_OK ? before : lade_source_look(batch, i, chunk);
}

/* And its destination.  All entries are asked for before one is used. */
static __device__ __forceinline__ uint32_t lade_chunk_get(const lade_gpu_batch &batch, uint32_t i,
                                                          lade_gpu_chunk *chunk)
{
	uint32_t before = lade_before_get(batch, i);
	uint64_t dst_cap = batch.dst_cap[i];
	uint8_t *dst = batch.dst[i];
	uint32_t status = lade_source_look(batch, i, chunk);
	if (before != LADE_GPU_OK)
		return before;
	if (status != LADE_GPU_OK && status != LADE_GPU_LIMIT)
		return status;
	chunk->dst = dst;
	if (!dst && dst_cap)
		return LADE_GPU_ARG;
	chunk->dst_cap = dst_cap > LADE_CHUNK_MAX ? LADE_CHUNK_MAX : (uint32_t)dst_cap;
	return status;
}

/* An entry of a batch's table, loaded where this stands: compilers put loads behind the tests that
 * precede their use, and each such test is one more wait for memory. */
static __device__ __forceinline__ uint64_t lade_entry_get(const uint64_t *from)
{
#if LADE_ON_GPU
	uint64_t value;
	asm volatile("ld.global.u64 %0, [%1];" : "=l"(value) : "l"(from));
	return value;
#else
	return *from;
#endif
}

/* lade_chunk_get() in one wait, where it is the first thing that a block does. */
static __device__ __forceinline__ uint32_t lade_chunk_get_now(const lade_gpu_batch &batch,
                                                              uint32_t i, lade_gpu_chunk *chunk)
{
	uint64_t src = lade_entry_get((const uint64_t *)batch.src + i);
	uint64_t src_size = lade_entry_get(batch.src_size + i);
	uint64_t dst = lade_entry_get((const uint64_t *)batch.dst + i);
	uint64_t dst_cap = lade_entry_get(batch.dst_cap + i);
	uint32_t before = lade_before_get(batch, i);
	bool small = src_size <= LADE_CHUNK_MAX;
	chunk->src = (const uint8_t *)(uintptr_t)src;
	chunk->dst = (uint8_t *)(uintptr_t)dst;
	chunk->src_size = small ? (uint32_t)src_size : 0;
	chunk->dst_cap = dst_cap > LADE_CHUNK_MAX ? LADE_CHUNK_MAX : (uint32_t)dst_cap;
	if (before != LADE_GPU_OK)
		return before;
	if ((!src && src_size) || (!dst && dst_cap))
		return LADE_GPU_ARG;
	return small ? LADE_GPU_OK : LADE_GPU_LIMIT;
}

/* The number of the next chunk from the counter, behind 'i', which is ~0 before the first.  The
 * counter is only trusted to grow, so that there is an end. */
static __device__ __forceinline__ uint32_t lade_turn_next(const lade_gpu_batch &batch, uint32_t i)
{
	uint32_t next = atomicAdd(batch.next, 1u);
	return next < i + 1 ? batch.count : next;
}

/* Called by one lane when a chunk is done. */
static __device__ __forceinline__ void lade_chunk_put(const lade_gpu_batch &batch, uint32_t i,
                                                      uint32_t status, uint32_t size)
{
	if (batch.dst_size)
		batch.dst_size[i] = status == LADE_GPU_OK ? size : 0;
	if (batch.status)
		batch.status[i] = status;
}

/* The same of a chunk that was encoded: its destination may have room for more than a chunk is. */
static __device__ __forceinline__ void lade_encoded_put(const lade_gpu_batch &batch, uint32_t i,
                                                        uint32_t status, uint32_t size)
{
	if (status == LADE_GPU_NOSPACE && batch.dst_cap[i] > LADE_CHUNK_MAX)
		status = LADE_GPU_LIMIT;
	lade_chunk_put(batch, i, status, size);
}

#define LADE_FULL 0xFFFFFFFFu

/* The pointer, which is to global memory: the compiler cannot prove that itself. */
template <typename T> static __device__ __forceinline__ T *lade_global(T *p)
{
#if LADE_ON_GPU
	__builtin_assume(__isGlobal(p));
#endif
	return p;
}

/* The same of one to shared memory, for functions that are not inlined.  It is no promise: nvcc
 * 13.0 takes __builtin_assume(__isShared(p)) for false where callers have two variables, and leaves
 * out all that follows.  The asm keeps it from undoing the way to the address and back. */
template <typename T> static __device__ __forceinline__ T *lade_shared(T *p)
{
#if LADE_ON_GPU
	uint32_t address = (uint32_t)__cvta_generic_to_shared(p);
	asm("" : "+r"(address));
	return (T *)__cvta_shared_to_generic(address);
#else
	return p;
#endif
}

static __device__ __forceinline__ uint32_t lade_lane()
{
	return threadIdx.x & 31;
}

/* Inclusive sum over the warp's lanes. */
static __device__ __forceinline__ uint32_t lade_warp_scan(uint32_t v, uint32_t lane)
{
#pragma unroll
	for (uint32_t d = 1; d < 32; d *= 2) {
#if LADE_ON_GPU
		/* The shuffle says itself whether there is such a lane. */
		asm volatile("{ .reg .u32 t; .reg .pred p;"
		             " shfl.sync.up.b32 t|p, %0, %1, 0, 0xffffffff;"
		             " @p add.u32 %0, %0, t; }"
		             : "+r"(v)
		             : "r"(d));
#else
		uint32_t before = __shfl_up_sync(LADE_FULL, v, d);
		v += lane >= d ? before : 0;
#endif
	}
	return v;
}

/* The same of 64 bits. */
static __device__ __forceinline__ uint64_t lade_warp_scan_wide(uint64_t v, uint32_t lane)
{
#pragma unroll
	for (uint32_t d = 1; d < 32; d *= 2) {
		uint64_t before = __shfl_up_sync(LADE_FULL, v, d);
		v += lane >= d ? before : 0;
	}
	return v;
}

/*
 * What stands before 'mine' where the 1024 threads of a block have one each, for the whole block;
 * all of them together are added to '*all'.  'sum' is shared memory of 32 words, which no thread
 * may use again before the block's next barrier.
 */
static __device__ __forceinline__ uint64_t lade_block_before(uint64_t *sum, uint64_t mine,
                                                             uint64_t *all)
{
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	uint64_t end = lade_warp_scan_wide(mine, lane);
	if (lane == 31)
		sum[warp] = end;
	__syncthreads();
	uint64_t warps = lade_warp_scan_wide(sum[lane], lane);
	uint64_t before = __shfl_sync(LADE_FULL, warps, warp ? warp - 1 : 0);
	*all += __shfl_sync(LADE_FULL, warps, 31);
	return (warp ? before : 0) + end - mine;
}

#endif
