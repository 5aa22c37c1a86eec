/*
 * deflate_decode.cu: Deflate, zlib and gzip, in batches (docs/performance/log/gpu-deflate.md).
 *
 * A block of W warps has a chunk at a time (deflate_chunk.cuh).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/deflate/kernels/deflate_chunk.cuh"

/* Finds the next chunk, by one thread. */
template <bool KEEP>
static __device__ __forceinline__ void lade_deflate_next(const lade_gpu_batch &batch,
                                                         lade_deflate_job *j)
{
	j->i = batch.next ? lade_turn_next(batch, j->i) : blockIdx.x;
	j->status = LADE_GPU_OK;
	if (j->i < batch.count)
		j->status = KEEP ? lade_chunk_get_now(batch, j->i, &j->c)
		                 : lade_source_get(batch, j->i, &j->c);
}

template <bool KEEP, int W>
static __device__ __forceinline__ void lade_deflate_batch(const lade_gpu_batch &batch,
                                                          const lade_deflate_room &room)
{
	LADE_SHARED(lade_deflate_team<W>, shared);
	lade_deflate_team<W> *t = &shared;
	lade_deflate_me me = {W == 1 ? 0 : __shfl_sync(LADE_FULL, threadIdx.x / 32, 0), lade_lane(),
	                      threadIdx.x};
	uint8_t *memory =
		KEEP ? room.memory + (uint64_t)blockIdx.x * t->LANES * room.lane : nullptr;
	lade_deflate_memory m = {memory, room.lane, room.words, room.words, 0, 0};
	lade_deflate_sum total;
	total.format = room.format;
	if (threadIdx.x == 0)
		t->job.i = ~0u;
	for (;;) {
		if (threadIdx.x == 0)
			lade_deflate_next<KEEP>(batch, &t->job);
		lade_team_sync<W>();
		uint32_t i = t->job.i, status = t->job.status, size = 0;
		if (i >= batch.count)
			break;
		if (status == LADE_GPU_OK)
			status = lade_deflate_chunk<KEEP>(t, m, &total, &size, me);
		lade_team_sync<W>();
		if (threadIdx.x == 0)
			lade_chunk_put(batch, i, status, size);
		if (!batch.next)
			break;
		lade_team_sync<W>();
	}
}

/* Map: block = one chunk at a time, its one warp all of it.  Shared: a team. */
extern "C" __global__ void __launch_bounds__(32, 20)
	lade_deflate_decode_solo(lade_gpu_batch batch, lade_deflate_room room)
{
	lade_deflate_batch<true, 1>(batch, room);
}

/* Map: block = one chunk at a time, its two warps in step.  Shared: a team. */
extern "C" __global__ void __launch_bounds__(64, 10)
	lade_deflate_decode_team2(lade_gpu_batch batch, lade_deflate_room room)
{
	lade_deflate_batch<true, 2>(batch, room);
}

/* Map: block = one chunk at a time, its four warps in step.  Shared: a team. */
extern "C" __global__ void __launch_bounds__(128, 5)
	lade_deflate_decode_team4(lade_gpu_batch batch, lade_deflate_room room)
{
	lade_deflate_batch<true, 4>(batch, room);
}

/* Map: block = one chunk at a time, its eight warps in step.  Shared: a team. */
extern "C" __global__ void __launch_bounds__(256, 2)
	lade_deflate_decode_team8(lade_gpu_batch batch, lade_deflate_room room)
{
	lade_deflate_batch<true, 8>(batch, room);
}

/* Map: block = one chunk at a time: what it decodes to, and whether it does; checksums of output
 * are not looked at.  'dst', 'dst_cap' and room.memory are not read.  Shared: a team. */
extern "C" __global__ void __launch_bounds__(32, 20)
	lade_deflate_size(lade_gpu_batch batch, lade_deflate_room room)
{
	lade_deflate_batch<false, 1>(batch, room);
}
