/*
 * deflate_decode.cu: Deflate, zlib and gzip, in batches (docs/performance/log/gpu-deflate.md).
 *
 * A block of W warps has a chunk at a time, and does all in step: a block's header and its tables,
 * then tiles of its symbols (deflate_tile.cuh), each of which the executor of LZ formats makes
 * bytes of before the next one is read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/deflate/kernels/deflate_frame.cuh"
#include "codec/deflate/kernels/deflate_tile.cuh"
#include "gpu/kernels/bytes.cuh"

/* Bytes a lane that are copied at once. */
#define LADE_DEFLATE_COPY 512u

/* Copies the stored block at job.at, or a part of it; all threads.  *stop: LADE_DEFLATE_STOP_END,
 * where it was the last. */
template <bool KEEP, int W>
static __device__ __forceinline__ uint32_t lade_deflate_stored(lade_deflate_team<W> *t,
                                                               uint32_t *done, uint32_t *stop,
                                                               lade_deflate_me me)
{
	const lade_gpu_chunk &c = t->job.c;
	uint32_t at = (uint32_t)(t->job.at / 8) - ((uint32_t)(uintptr_t)c.src & 3);
	uint32_t size = t->job.size, have = c.src_size - at;
	uint32_t room = (KEEP ? c.dst_cap : LADE_CHUNK_MAX) - *done;
	if (size > room && room < have)
		return KEEP ? LADE_GPU_NOSPACE : LADE_GPU_LIMIT;
	if (size > have)
		return LADE_GPU_TRUNCATED;
	uint32_t most = KEEP ? t->LANES * LADE_DEFLATE_COPY : size;
	*stop = size > most ? (uint32_t)LADE_DEFLATE_GO : (uint32_t)LADE_DEFLATE_STOP_END;
	size = size < most ? size : most;
	if (KEEP) {
		/* Parts of whole lines, one a warp. */
		uint32_t part = (size / W + 128) & ~127u, from = me.warp * part;
		uint32_t end = from + part < size ? from + part : size;
		if (from < end)
			lade_bytes_copy(c.dst + *done + from, c.src + at + from, end - from,
			                me.lane);
	}
	*done += size;
	lade_team_sync<W>();
	if (me.thread == 0) {
		t->job.at += 8 * (uint64_t)size;
		t->job.size -= size;
	}
	lade_team_sync<W>();
	return LADE_GPU_OK;
}

/* Decodes the stream at job.at; all threads. */
template <bool KEEP, int W>
static __device__ __forceinline__ uint32_t lade_deflate_stream(lade_deflate_team<W> *t,
                                                               lade_deflate_memory &m,
                                                               lade_deflate_sum *total,
                                                               uint32_t *done, lade_deflate_me me)
{
	bool last = false;
	while (!last) {
		uint32_t status = lade_deflate_block(t, me), kind = t->job.kind;
		uint32_t stop = LADE_DEFLATE_GO;
		if (status != LADE_GPU_OK)
			return status;
		last = t->job.last;
		uint64_t begin = t->job.at;
		m.rest = m.block + m.block / 64;
		while (kind != LADE_DEFLATE_EMPTY && stop != LADE_DEFLATE_STOP_END) {
			if (kind == LADE_DEFLATE_STORED)
				status = lade_deflate_stored<KEEP>(t, done, &stop, me);
			else
				status = lade_deflate_tile<KEEP>(t, m, done, &stop, me);
			if (status != LADE_GPU_OK)
				return status;
			if (KEEP)
				lade_deflate_sum_up(t, total, *done, false, me);
		}
		if (!last)
			m.block = (uint32_t)(t->job.at - begin) & LADE_DEFLATE_AT;
	}
	return LADE_GPU_OK;
}

/* Decodes the chunk of the job; all threads.  A status, and *size. */
template <bool KEEP, int W>
static __device__ __forceinline__ uint32_t lade_deflate_chunk(lade_deflate_team<W> *t,
                                                              lade_deflate_memory &m,
                                                              lade_deflate_sum *total,
                                                              uint32_t *size, lade_deflate_me me)
{
	uint32_t at = 0, done = 0, over = (uint32_t)(uintptr_t)t->job.c.src & 3;
	bool more = true;
	while (more) {
		uint32_t status = lade_deflate_open(t, total, &at, me);
		if (status != LADE_GPU_OK)
			return status;
		lade_team_sync<W>();
		if (me.thread == 0) {
			t->job.at = 8 * ((uint64_t)over + at);
			t->job.begin = done;
		}
		lade_team_sync<W>();
		lade_deflate_sum_begin(total);
		status = lade_deflate_stream<KEEP>(t, m, total, &done, me);
		if (status != LADE_GPU_OK)
			return status;
		at = (uint32_t)((t->job.at + 7) / 8) - over;
		status = lade_deflate_close<KEEP>(t, total, &at, done, &more, me);
		if (status != LADE_GPU_OK)
			return status;
	}
	*size = done;
	return LADE_GPU_OK;
}

/* A kernel of another format that has such streams leaves out what is of batches. */
#ifndef LADE_DEFLATE_STREAMS_ONLY

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

#endif
