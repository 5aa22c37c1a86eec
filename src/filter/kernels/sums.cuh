/*
 * sums.cuh: the way back from differences, by blocks: each warp adds up a tile, a lane 128 bytes
 * that are adjacent, and then knows where the lane's sums begin.  Where chunks are few, each is cut
 * into ranges, whose sums another kernel makes first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_SUMS_CUH
#define LADE_CUDA_SUMS_CUH

#include "filter/kernels/filter.cuh"

#define LADE_STREAM_SLAB (LADE_TILE_WARPS * LADE_TILE_BYTES) /* a block's tiles */

struct lade_sum_job {
	lade_gpu_chunk c;
	uint32_t status;
};

/* A chunk's range of a block: bytes [begin, end), 'begin' a multiple of a slab. */
struct lade_sum_range {
	uint32_t begin, end;
};

static __device__ __forceinline__ lade_sum_range lade_sum_part(uint32_t size, uint32_t part,
                                                               uint32_t parts)
{
	uint32_t slabs = (size + LADE_STREAM_SLAB - 1) / LADE_STREAM_SLAB;
	uint32_t each = (slabs + parts - 1) / parts; /* at most 2^16 */
	uint64_t begin = (uint64_t)each * part * LADE_STREAM_SLAB;
	uint64_t end = begin + (uint64_t)each * LADE_STREAM_SLAB;
	lade_sum_range r = {(uint32_t)(begin < size ? begin : size),
	                    (uint32_t)(end < size ? end : size)};
	return r;
}

/* A tile of a chunk to shared memory: the differences. */
static __device__ __forceinline__ void lade_sum_get(uint32_t *s, const lade_filters &f,
                                                    const lade_gpu_chunk &c, uint32_t at,
                                                    uint32_t bytes, uint32_t lane)
{
	bool msb = f.msb != 0;
	if (f.rows == LADE_ROWS_NONE)
		lade_tile_get_plain<32>(s, c.src + at, bytes, lane);
	else if (f.rows == LADE_ROWS_BYTES && f.size == 2)
		lade_bytes_get<2>(s, c, at, bytes, lane);
	else if (f.rows == LADE_ROWS_BYTES && f.size == 4)
		lade_bytes_get<4>(s, c, at, bytes, lane);
	else if (f.rows == LADE_ROWS_BYTES)
		lade_bytes_get<8>(s, c, at, bytes, lane);
	else if (f.size == 1)
		lade_bits_get<1>(s, c, msb, f.block, at, bytes, lane);
	else if (f.size == 2)
		lade_bits_get<2>(s, c, msb, f.block, at, bytes, lane);
	else if (f.size == 4)
		lade_bits_get<4>(s, c, msb, f.block, at, bytes, lane);
	else
		lade_bits_get<8>(s, c, msb, f.block, at, bytes, lane);
	__syncwarp();
	if (f.ops & LADE_WORDS_ZAG)
		lade_words_any<LADE_FILTER_LINES>(LADE_WORDS_ZAG, f.size, s, 0, lane);
}

/* The sum of the lane's words of a tile, 32 adjacent ones; bits above an element's are not
 * 0. */
static __device__ __forceinline__ uint64_t lade_sum_total(uint32_t size, const uint32_t *w)
{
	uint64_t wide = 0;
	uint32_t sum = 0;
	if (size == 8) {
#pragma unroll
		for (uint32_t k = 0; k < 32; k += 2)
			wide += (uint64_t)w[k + 1] << 32 | w[k];
		return wide;
	}
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		sum = size == 1   ? __dp4a(w[k], 0x01010101u, sum)
		      : size == 2 ? sum + (w[k] & 0xFFFF) + (w[k] >> 16)
				  : sum + w[k];
	return sum;
}

/* The lane's words become sums, from 'before' on. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_sum_lane(uint32_t *w, uint64_t before)
{
	typedef lade_lanes<SIZE < 8 ? SIZE : 4> lanes;
	uint32_t sum = lanes::first((uint32_t)before);
#pragma unroll
	for (uint32_t k = 0; k < 32; k += SIZE == 8 ? 2 : 1) {
		if (SIZE == 8) {
			before += (uint64_t)w[k + 1] << 32 | w[k];
			w[k] = (uint32_t)before;
			w[k + 1] = (uint32_t)(before >> 32);
		} else {
			w[k] = lanes::add(lanes::sums(w[k]), sum);
			sum = lanes::last(w[k]);
		}
	}
}

/* The sum over the lanes before this one; '*total' that over all. */
static __device__ __forceinline__ uint64_t lade_sum_warp(uint64_t v, uint32_t lane, uint64_t *total)
{
	unsigned long long all = v;
#pragma unroll
	for (uint32_t d = 1; d < 32; d *= 2) {
		unsigned long long below = __shfl_up_sync(LADE_FULL, all, d);
		all += lane >= d ? below : 0;
	}
	*total = __shfl_sync(LADE_FULL, all, 31);
	return all - v;
}

/*
 * Bytes [begin, end) of a chunk, by a whole block: sums from 'before' on to the same bytes of the
 * destination, or, unless 'store', only their sum, which is returned.  'totals' are the warps'
 * sums, of the slab at hand and of the one before, which warps may still look at.
 */
static __device__ __forceinline__ uint64_t
lade_sum_run(const lade_filters &f, uint32_t *s, uint64_t (*totals)[LADE_TILE_WARPS],
             const lade_gpu_chunk &c, bool store, lade_sum_range r, uint64_t before, uint32_t lane)
{
	uint32_t warp = threadIdx.x / 32, turn = 0;
	for (uint32_t slab = r.begin; slab < r.end; slab += LADE_STREAM_SLAB, turn ^= 1) {
		uint32_t at = slab + warp * LADE_TILE_BYTES, w[32];
		uint32_t bytes = at < r.end ? r.end - at : 0;
		bytes = bytes < LADE_TILE_BYTES ? bytes : LADE_TILE_BYTES;
		uint64_t total = 0, mine = 0;
		if (bytes) {
			lade_sum_get(s, f, c, at, bytes, lane);
#pragma unroll
			for (uint32_t k = 0; k < 32; k++)
				w[k] = s[33 * lane + k];
			mine = lade_sum_warp(lade_sum_total(f.size, w), lane, &total);
		}
		if (lane == 0)
			totals[turn][warp] = total;
		__syncthreads();
#pragma unroll
		for (uint32_t k = 0; k < LADE_TILE_WARPS; k++) {
			uint64_t one = totals[turn][k];
			mine += k < warp ? one : 0;
			total = k ? total + one : one;
		}
		if (bytes && store) {
#pragma unroll
			for (uint32_t k = 0; k < 32; k++)
				w[k] = s[33 * lane + k];
			if (f.size == 1)
				lade_sum_lane<1>(w, before + mine);
			else if (f.size == 2)
				lade_sum_lane<2>(w, before + mine);
			else if (f.size == 4)
				lade_sum_lane<4>(w, before + mine);
			else
				lade_sum_lane<8>(w, before + mine);
#pragma unroll
			for (uint32_t k = 0; k < 32; k++)
				s[33 * lane + k] = w[k];
			__syncwarp();
			if (f.ops & LADE_WORDS_SWAP)
				lade_words_any<LADE_FILTER_LINES>(LADE_WORDS_SWAP, f.size, s, 0,
				                                  lane);
			lade_tile_put_plain<32>(s, c.dst + at, bytes, lane);
			__syncwarp();
		}
		before += total;
	}
	return before;
}

/*
 * With 'ranges' the sums of all ranges but the last of each chunk, to partial[part * count +
 * chunk]; else the chunks, 'partial' being these sums, where 'parts' is above 1.
 *
 * Map: block = ranges in turn, 'parts' of a chunk; a block is 128 threads, warp = a tile of the
 * slab at hand.  Elements have 1, 2, 4 or 8 bytes, 2 at least where there are rows of bytes, and
 * blocks of rows of bits are whole tiles.  Sources and destinations have any alignment and do not
 * overlap.  'next' is not used.  Shared memory: 16.6 KiB.
 */
static __device__ __forceinline__ void lade_sum_batch(const lade_gpu_batch &batch,
                                                      const lade_filters &f, uint32_t parts,
                                                      uint64_t *partial, bool ranges)
{
	LADE_SHARED(uint32_t, words, [LADE_TILE_WARPS][LADE_TILE_SHARED]);
	LADE_SHARED(uint64_t, totals, [2][LADE_TILE_WARPS]);
	/* Of the range at hand and the one before: one thread reads the tables, which may change at
	 * any time, so that the warps stay in step. */
	LADE_SHARED(lade_sum_job, jobs, [2]);
	uint32_t lane = lade_lane(), *s = words[threadIdx.x / 32], turn = 0;
	uint64_t all = (uint64_t)batch.count * (ranges ? parts - 1 : parts);
	for (uint64_t at = blockIdx.x; at < all; at += gridDim.x, turn ^= 1) {
		uint32_t part = (uint32_t)(at / batch.count), i = (uint32_t)(at % batch.count);
		if (threadIdx.x == 0) {
			lade_sum_job job = {};
			job.status = lade_tile_chunk(batch, i, f, &job.c);
			jobs[turn] = job;
		}
		uint64_t sum = 0, before = 0;
		/* All have done with 'totals'. */
		__syncthreads();
		lade_gpu_chunk c = jobs[turn].c;
		uint32_t status = jobs[turn].status;
		if (status == LADE_GPU_OK) {
			for (uint32_t p = lane; !ranges && p < part; p += 32)
				sum += partial[(uint64_t)p * batch.count + i];
			if (!ranges)
				lade_sum_warp(sum, lane, &before);
			sum = lade_sum_run(f, s, totals, c, !ranges,
			                   lade_sum_part(c.src_size, part, parts), before, lane);
		}
		if (threadIdx.x == 0 && ranges)
			partial[at] = sum;
		else if (threadIdx.x == 0 && part == 0)
			lade_chunk_put(batch, i, status, c.src_size);
	}
}

#endif
