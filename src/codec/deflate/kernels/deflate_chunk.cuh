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

/* Bytes a lane that are copied at once. */
#define LADE_DEFLATE_COPY 512u

/* The header of a stored block that follows at byte 'at' of the source, by one thread: whether it
 * is the last one, and its size; *size 0: something else follows. */
static __device__ __forceinline__ uint32_t lade_deflate_follows(const lade_gpu_chunk &c,
                                                                uint32_t at, uint32_t *size)
{
	*size = 0;
	if (c.src_size - at < 5)
		return 0;
	uint32_t head = c.src[at], n = lade_deflate_le(c.src, at + 1, 2);
	if (head & 6 || (n ^ lade_deflate_le(c.src, at + 3, 2)) != 0xFFFF)
		return 0;
	*size = n;
	return head & 1;
}

/* Copies the stored block at job.at, or a part of it; all threads.  If a stored block follows, it
 * is the job's then.  *stop: LADE_DEFLATE_STOP_END, where none does. */
template <bool KEEP, int W>
static __device__ __forceinline__ uint32_t lade_deflate_stored(lade_deflate_team<W> *t,
                                                               uint32_t *done, uint32_t *stop,
                                                               lade_deflate_me me)
{
	const lade_gpu_chunk &c = t->job.c;
	uint32_t at = (uint32_t)(t->job.at / 8) - ((uint32_t)(uintptr_t)c.src & 3);
	uint32_t size = t->job.size, have = c.src_size - at, then = 0, last = 0;
	uint32_t room = (KEEP ? c.dst_cap : LADE_CHUNK_MAX) - *done;
	if (size > room && room < have)
		return KEEP ? LADE_GPU_NOSPACE : LADE_GPU_LIMIT;
	if (size > have)
		return LADE_GPU_TRUNCATED;
	uint32_t most = KEEP ? t->LANES * LADE_DEFLATE_COPY : size;
	bool whole = size <= most;
	size = whole ? size : most;
	if (me.thread == 0 && whole && !t->job.last)
		last = lade_deflate_follows(c, at + size, &then);
	/* With few chunks, the next block's bytes are asked for; with many, that takes a fourth of
	 * the rate. */
	uint32_t ahead = have - size < size ? have - size : size;
	for (uint32_t k = 128 * me.thread; KEEP && W == 8 && k < ahead; k += 128 * t->LANES)
		lade_prefetch(c.src + at + size + k);
	if (KEEP)
		lade_lz_copy_any<W>(c.dst + *done, c.src + at, size, me.thread);
	*done += size;
	lade_team_sync<W>();
	if (me.thread == 0) {
		t->job.at += 8 * (uint64_t)(size + (then ? 5 : 0));
		t->job.size = whole ? then : t->job.size - size;
		t->job.last = then ? last : t->job.last;
	}
	lade_team_sync<W>();
	*stop = t->job.size ? (uint32_t)LADE_DEFLATE_GO : (uint32_t)LADE_DEFLATE_STOP_END;
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
				lade_deflate_sum_grow(t, total, *done,
				                      stop == LADE_DEFLATE_STOP_END, me);
		}
		last = t->job.last;
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
