/*
 * filters.cu: several filters in one pass, for elements of 1, 2, 4 and 8 bytes: in the order of
 * encoding byteswap, delta, zigzag, and one of shuffle (or split) and bitshuffle, each or not
 * (docs/format/filters.md).
 *
 * Between a tile's loads and stores, which are those of the shuffles where one is there (rows.cuh),
 * and else lines, its words are worked on in shared memory (words.cuh).  Sums are a block's work
 * (sums.cuh).  The filters alone have kernels of their own, which are a few percent faster.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/kernels/sums.cuh"

/* A chunk of elements of 2, 4 or 8 bytes, whose rows are bytes. */
template <bool ENCODE>
static __device__ __forceinline__ void lade_filters_bytes(uint32_t *s, const lade_gpu_chunk &c,
                                                          const lade_filters &f, uint32_t part,
                                                          uint32_t parts, uint32_t lane)
{
	uint32_t count = c.src_size / f.size, ops = lade_filter_ops<ENCODE>(f.ops);
	if (f.size == 2)
		lade_bytes_chunk<2, ENCODE>(s, c, ops, count, part, parts, lane);
	else if (f.size == 4)
		lade_bytes_chunk<4, ENCODE>(s, c, ops, count, part, parts, lane);
	else
		lade_bytes_chunk<8, ENCODE>(s, c, ops, count, part, parts, lane);
}

template <bool ENCODE>
static __device__ __forceinline__ void lade_filters_batch(const lade_gpu_batch &batch,
                                                          const lade_filters &f)
{
	LADE_SHARED(uint32_t, words, [LADE_TILE_WARPS][LADE_TILE_SHARED]);
	uint32_t lane = lade_lane(), *s = words[threadIdx.x / 32];
	lade_tile_batch(batch, [=](uint32_t i, uint32_t part, uint32_t parts) {
		lade_gpu_chunk c;
		uint32_t status = lade_tile_chunk(batch, i, f, &c);
		if (status != LADE_GPU_OK)
			;
		else if (f.rows == LADE_ROWS_BYTES)
			lade_filters_bytes<ENCODE>(s, c, f, part, parts, lane);
		else if (f.rows == LADE_ROWS_BITS)
			lade_bits_all<ENCODE>(s, c, f, part, parts, lane);
		else
			lade_stream_chunk<LADE_FILTER_LINES>(s, c, lade_filter_ops<ENCODE>(f.ops),
			                                     f.size, part, parts, lane);
		lade_tile_verdict(batch, i, part, status, c.src_size, lane);
	});
}

/*
 * Map: a block is 128 threads, each warp of it on its own; the grid has less than 2^28 blocks, best
 * a warp for each tile.  Elements have 1, 2, 4 or 8 bytes, 2 at least where there are rows of
 * bytes.  Sources and destinations have any alignment and do not overlap.  'next' is not used.
 * Shared memory: 16.5 KiB, a tile a warp.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS, 7)
	lade_filters_encode(lade_gpu_batch batch, lade_filters f)
{
	lade_filters_batch<true>(batch, f);
}

/* Likewise; not delta. */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_filters_decode(lade_gpu_batch batch, lade_filters f)
{
	lade_filters_batch<false>(batch, f);
}

/* As lade_sum_batch(): delta, and others with it. */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_filters_sum(lade_gpu_batch batch, lade_filters f, uint32_t parts, uint64_t *partial,
                         uint32_t ranges)
{
	lade_sum_batch(batch, f, parts, partial, ranges != 0);
}
