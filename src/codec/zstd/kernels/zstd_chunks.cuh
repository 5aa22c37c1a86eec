/*
 * zstd_chunks.cuh: Zstandard chunks, one after the other (docs/performance/log/gpu-zstd.md).
 *
 * Two warps have a chunk at a time, and take its blocks one after the other:
 *
 *     warp 0  makes the tables of sequences, reads these, and hands them over in rounds of 32
 *     warp 1  makes the Huffman table, and decodes literals to memory for them; then it takes the
 *             rounds, finds the offsets, and has the executor of LZ formats make the output
 *
 * Both copy a block that is not coded.  Thread 0 reads headers while the others wait.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_CHUNKS_CUH
#define LADE_CUDA_ZSTD_CHUNKS_CUH

#include "codec/zstd/kernels/zstd_dict.cuh"
#include "codec/zstd/kernels/zstd_hash.cuh"

/* The chunk that a block is at. */
struct lade_zstd_job {
	lade_gpu_chunk c;
	uint32_t turn, i, status; /* 'i': the chunk's number */
	uint32_t at, done; /* bytes read and made; of whole frames */
	lade_zstd_frame frame;
	lade_zstd_block block;
	uint32_t made; /* bytes of the frame */
	uint32_t room; /* bytes that the frame may have */
	uint32_t full; /* the status of one that has more */
	uint32_t said; /* warp 1's status */
};

/* Begins the chunk 'j->c', by one thread. */
static __device__ __forceinline__ void lade_zstd_begin(const lade_zstd_room &room, lade_zstd_job *j)
{
	j->at = j->done = 0;
	if (j->status == LADE_GPU_OK && j->c.src_size == 0)
		j->status = LADE_GPU_TRUNCATED;
	if (room.cap < LADE_ZSTD_LITERALS_MAX && j->c.dst_cap > room.cap)
		j->c.dst_cap = room.cap;
}

/* Finds the next chunk, by one thread. */
static __device__ __forceinline__ void lade_zstd_open(const lade_gpu_batch &batch,
                                                      const lade_zstd_room &room,
                                                      lade_zstd_job *j)
{
	j->turn = batch.next ? lade_turn_next(batch, j->turn) : blockIdx.x;
	j->i = j->turn;
	if (room.list)
		j->i = j->turn < *room.listed ? room.list[j->turn] : batch.count;
	j->status = LADE_GPU_OK;
	if (j->i >= batch.count)
		return;
	j->status = lade_chunk_get_now(batch, j->i, &j->c);
	lade_zstd_begin(room, j);
}

/* Reads the next frame's header. */
template <bool DICT>
static __device__ __forceinline__ void lade_zstd_frame_open(const lade_zstd_dict &dict,
                                                            lade_zstd_job *j)
{
	uint32_t left = j->c.dst_cap - j->done;
	j->status = lade_zstd_frame_read(j->c.src, j->c.src_size, &j->at, &j->frame);
	if (j->status == LADE_GPU_OK && j->frame.there) {
		if (DICT)
			j->status = dict.prepared->status;
		if (j->frame.id && (!DICT || j->frame.id != dict.prepared->id))
			j->status = LADE_GPU_DICT;
	}
	j->made = 0;
	j->room = left;
	j->full = LADE_GPU_NOSPACE;
	if (j->status != LADE_GPU_OK || !j->frame.there || j->frame.content == ~(uint64_t)0)
		return;
	if (j->frame.content > left)
		j->status = LADE_GPU_NOSPACE;
	else
		j->room = (uint32_t)j->frame.content;
	j->full = LADE_GPU_CORRUPT;
}

/* Reads the headers of the block at '*at', which may have 'most' bytes, and of its sections; '*at'
 * is then behind its content. */
static __device__ __noinline__ uint32_t lade_zstd_block_read(const uint8_t *src, uint32_t n,
                                                             uint32_t most, uint32_t *at,
                                                             lade_zstd_block *b)
{
	uint32_t status = lade_zstd_block_skip(src, n, at, b);
	if (status != LADE_GPU_OK)
		return status;
	if (b->size > most)
		return LADE_GPU_CORRUPT;
	if (b->kind != LADE_ZSTD_CODED)
		return LADE_GPU_OK;
	status = lade_zstd_literals_read(src, *at, most, b);
	return status != LADE_GPU_OK ? status : lade_zstd_sequences_read(src, *at, b);
}

/* Reads the next block's header. */
static __device__ __forceinline__ void lade_zstd_block_open(const lade_zstd_room &room,
                                                            lade_zstd_job *j)
{
	const lade_zstd_block &b = j->block;
	j->status = lade_zstd_block_read(j->c.src, j->c.src_size, j->frame.block_max, &j->at,
	                                 &j->block);
	if (j->status != LADE_GPU_OK)
		return;
	bool coded = b.kind == LADE_ZSTD_CODED;
	if (coded ? b.lit_kind != LADE_ZSTD_RAW && b.lit_size > room.cap
	          : b.size > j->room - j->made)
		j->status = j->full;
}

/* ---- a chunk ------------------------------------------------------------------------------- */

/* What the two warps work with: a walker's memory, and that of the other, which decodes literals
 * and then executes.  Weights stay. */
struct lade_zstd_team {
	lade_zstd_walker walker;
	union {
		lade_zstd_huffman huffman;
		lade_zstd_exec exec;
	};
	lade_zstd_job job;
};
static_assert(sizeof(lade_zstd_exec) <= offsetof(lade_zstd_huffman, weight), "weights stay");

/* Begins a frame's output, by warp 1.  Literals may be anywhere, too: lade_lz_out_of() says why
 * addresses that are alike matter. */
template <bool DICT>
static __device__ __forceinline__ void lade_zstd_run_begin(const lade_zstd_job &j, lade_zstd_run *r,
                                                           const lade_zstd_room &room,
                                                           const lade_zstd_dict &dict,
                                                           const uint8_t *literals)
{
	r->out = lade_lz_out_of(j.c.src, j.c.src_size, j.c.dst + j.done, j.room);
	uint32_t apart = (uint32_t)(uintptr_t)literals - (uint32_t)(uintptr_t)r->out.base;
	if (apart < r->out.end + j.room || 0 - apart < room.cap)
		r->out.full = LADE_FULL;
	r->begin = r->out.end;
	r->last = lade_zstd_map{{1, 4, 8}};
	if (DICT) {
		const lade_zstd_prepared *p = dict.prepared;
		const uint8_t *before = dict.bytes + p->at;
		apart = (uint32_t)(uintptr_t)before - (uint32_t)(uintptr_t)r->out.base;
		if (apart < r->out.end + j.room || 0 - apart < p->size)
			r->out.full = LADE_FULL;
		r->last = lade_zstd_map{{p->repeat[0], p->repeat[1], p->repeat[2]}};
	}
}

/* Decodes a block's literals to 'to', where they are not in the source as they are, by warp 1. */
static __device__ __forceinline__ uint32_t lade_zstd_block_literals(lade_zstd_team *t, uint8_t *to,
                                                                    uint32_t lane)
{
	const lade_zstd_job &j = t->job;
	const lade_zstd_block &b = j.block;
	bool right = true;
	if (b.lit_kind == LADE_ZSTD_RLE) {
		uint8_t value = j.c.src[b.lit_at];
		for (uint32_t i = lane; i < b.lit_size; i += 32)
			to[i] = value;
	} else if (b.lit_kind != LADE_ZSTD_RAW) {
		right = lade_zstd_literals(&t->huffman, j.c.src, b, to, lane);
	}
	__syncwarp();
	return right ? LADE_GPU_OK : LADE_GPU_CORRUPT;
}

/* Warp 1's part of a coded block. */
template <bool DICT>
static __device__ __forceinline__ uint32_t lade_zstd_block_make(lade_zstd_team *t,
                                                                lade_zstd_run *r,
                                                                const lade_zstd_dict &dict,
                                                                uint8_t *literals, uint32_t lane)
{
	const lade_zstd_job &j = t->job;
	const lade_zstd_block &b = j.block;
	lade_zstd_exec *x = &t->exec;
	uint32_t status = lade_zstd_block_literals(t, literals, lane);
	r->from = b.lit_kind == LADE_ZSTD_RAW ? j.c.src + b.lit_at : literals;
	if (lane == 0) {
		x->room = j.room;
		x->block_max = j.frame.block_max;
		x->full = j.full;
		if (DICT) {
			x->before = dict.bytes + dict.prepared->at;
			x->before_size = dict.prepared->size;
		}
	}
	lade_zstd_resume(x, r, lane);
	return lade_zstd_execute<DICT>(x, r, t->walker.flow.ring, b, status, lane);
}

/* Makes a block that is not coded, by all threads. */
static __device__ __forceinline__ void lade_zstd_block_copy(const lade_zstd_job &j)
{
	const lade_zstd_block &b = j.block;
	uint8_t *dst = j.c.dst + j.done + j.made;
	const uint8_t *src = j.c.src + b.at;
	uint32_t n = b.size, i = threadIdx.x, head = (uint32_t)(0 - (uintptr_t)dst) & 15;
	bool same = b.kind == LADE_ZSTD_RLE;
	uint32_t step = same ? 0 : 1, body = n < head + 32 ? 0 : (n - head) & ~15u;
	head = body ? head : 0;
	for (uint32_t k = i; k < head; k += LADE_ZSTD_THREADS)
		dst[k] = src[step * k];
	for (uint32_t k = head + body + i; k < n; k += LADE_ZSTD_THREADS)
		dst[k] = src[step * k];
	if (body && same) {
		uint32_t all = 0x01010101u * src[0];
		for (uint32_t k = 16 * i; k < body; k += 16 * LADE_ZSTD_THREADS)
			*(uint4 *)lade_global(dst + head + k) = make_uint4(all, all, all, all);
	} else if (body) {
		lade_lz_copy<LADE_ZSTD_THREADS / 32>(dst + head, src + head, body, i);
	}
}

/* What warp 1 says; all threads. */
static __device__ __forceinline__ uint32_t lade_zstd_agree(lade_zstd_team *t, uint32_t status,
                                                           uint32_t warp, uint32_t lane)
{
	if (warp == 1 && lane == 0)
		t->job.said = status;
	__syncthreads();
	return t->job.said;
}

/* Checks a frame at its end, by warp 1. */
static __device__ __forceinline__ uint32_t lade_zstd_frame_end(lade_zstd_job *j, uint32_t lane)
{
	uint32_t size = j->made, status = LADE_GPU_OK, n = j->c.src_size;
	const uint8_t *made = j->c.dst + j->done;
	if (j->frame.content != ~(uint64_t)0 && size != j->room)
		status = LADE_GPU_CORRUPT;
	if (j->frame.checksum && status == LADE_GPU_OK) {
		if (n - j->at < 4)
			status = LADE_GPU_TRUNCATED;
		else if (lade_zstd_hash(made, size, lane) != lade_zstd_le(j->c.src, j->at, 4))
			status = LADE_GPU_CHECKSUM;
	}
	__syncwarp();
	if (lane == 0) {
		j->done += size;
		if (j->frame.checksum && status == LADE_GPU_OK)
			j->at += 4;
	}
	return status;
}

/* Decodes the frame whose header has been read; all threads. */
template <bool DICT>
static __device__ __forceinline__ uint32_t lade_zstd_frame_make(lade_zstd_team *t,
                                                                const lade_zstd_room &room,
                                                                const lade_zstd_dict &dict,
                                                                uint8_t *literals, uint32_t warp,
                                                                uint32_t lane)
{
	lade_zstd_job *j = &t->job;
	lade_zstd_run r = {};
	bool last = false;
	uint32_t status = LADE_GPU_OK;
	if (warp == 1)
		lade_zstd_run_begin<DICT>(*j, &r, room, dict, literals);
	if (warp == 0 && lane < 3)
		t->walker.log[lane] = LADE_ZSTD_NO_TABLE;
	if (warp == 1 && lane == 0)
		t->huffman.log = 0;
	if (DICT && warp == 0)
		lade_zstd_dict_tables(*dict.prepared, &t->walker, lane);
	if (DICT && warp == 1)
		lade_zstd_dict_weights(*dict.prepared, &t->huffman, lane);
	while (!last) {
		__syncthreads();
		if (threadIdx.x == 0)
			lade_zstd_block_open(room, j);
		__syncthreads();
		status = j->status;
		if (status != LADE_GPU_OK)
			return status;
		last = j->block.last;
		if (j->block.kind != LADE_ZSTD_CODED) {
			lade_zstd_block_copy(*j);
			r.out.end += j->block.size;
		} else if (warp == 1) {
			status = lade_zstd_block_make<DICT>(t, &r, dict, literals, lane);
		} else if (j->block.seq_count) {
			lade_zstd_read(&t->walker, j->c.src, j->c.src_size, j->block, room.few,
			               lane);
		}
		status = lade_zstd_agree(t, status, warp, lane);
		if (status != LADE_GPU_OK)
			return status;
		if (warp == 1 && lane == 0)
			j->made = r.out.end - r.begin;
	}
	__syncthreads();
	if (warp == 1)
		status = lade_zstd_frame_end(j, lane);
	return lade_zstd_agree(t, status, warp, lane);
}

/* Decodes the frames of the job's chunk, which has begun; all threads. */
template <bool DICT>
static __device__ __forceinline__ uint32_t lade_zstd_frames(lade_zstd_team *t,
                                                            const lade_zstd_room &room,
                                                            const lade_zstd_dict &dict,
                                                            uint8_t *literals, uint32_t warp,
                                                            uint32_t lane)
{
	uint32_t status = t->job.status;
	while (status == LADE_GPU_OK) {
		__syncthreads();
		if (threadIdx.x == 0)
			lade_zstd_frame_open<DICT>(dict, &t->job);
		__syncthreads();
		status = t->job.status;
		if (status != LADE_GPU_OK || !t->job.frame.there)
			break;
		status = lade_zstd_frame_make<DICT>(t, room, dict, literals, warp, lane);
	}
	return status;
}

/*
 * What the thread's warp does: 0 or 1; all threads.  A multiprocessor's warps have its four
 * schedulers in turn, so that the first warps of blocks of two have two of these alone; and walkers
 * have most instructions.  So the warps of every second pair of blocks change places.
 */
static __device__ __forceinline__ uint32_t lade_zstd_warp(lade_zstd_team *t)
{
	uint32_t place = 4 * blockIdx.x;
#if LADE_ON_GPU
	asm volatile("mov.u32 %0, %%warpid;" : "=r"(place));
#endif
	if (threadIdx.x == 0)
		t->job.said = place / 4 & 1;
	__syncthreads();
	return __shfl_sync(LADE_FULL, threadIdx.x / 32 ^ t->job.said, 0);
}

/* Decodes chunk after chunk.  DICT: with a dictionary. */
template <bool DICT>
static __device__ __forceinline__ void lade_zstd_chunks(const lade_gpu_batch &batch,
                                                        const lade_zstd_room &room,
                                                        const lade_zstd_dict &dict)
{
	LADE_SHARED(lade_zstd_team, shared);
	lade_zstd_team *t = &shared;
	uint32_t lane = lade_lane(), warp = lade_zstd_warp(t);
	uint8_t *literals = room.literals + (uint64_t)blockIdx.x * room.cap;
	if (threadIdx.x == 0)
		t->job.turn = ~0u;
	for (;;) {
		if (threadIdx.x == 0)
			lade_zstd_open(batch, room, &t->job);
		__syncthreads();
		uint32_t i = t->job.i;
		if (i >= batch.count)
			break;
		uint32_t status = lade_zstd_frames<DICT>(t, room, dict, literals, warp, lane);
		if (threadIdx.x == 0)
			lade_chunk_put(batch, i, status, t->job.done);
		if (!batch.next)
			break;
		__syncthreads();
	}
}

#endif
