/*
 * deflate_chunk.cuh: decodes a chunk of Deflate, zlib or gzip, by all warps of a block.
 *
 * They do all in step: a block's header and its tables, then tiles of its symbols
 * (deflate_tile.cuh), each of which the executor of LZ formats makes bytes of before the next one
 * is read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_DEFLATE_CHUNK_CUH
#define LADE_CUDA_DEFLATE_CHUNK_CUH

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

#endif
