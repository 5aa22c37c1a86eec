/*
 * stream.cu: the filters that go from element to element, for elements of 1, 2, 4 and 8 bytes:
 * zigzag and byteswap both ways, delta of integers (docs/format/filters.md, sections 3, 4 and 12).
 *
 * A warp brings a tile (tile.cuh) to shared memory, works on its words (words.cuh), and takes it
 * back.  Sums are a block's work (sums.cuh).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/kernels/sums.cuh"

/*
 * Map: a block is 128 threads, each warp of it on its own; the grid has less than 2^28 blocks, best
 * a warp for each tile.  Elements have 1, 2, 4 or 8 bytes.  Sources and destinations have any
 * alignment and do not overlap.  'next' is not used.  Shared memory: 16.5 KiB, a tile a warp.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS, 7)
	lade_stream(lade_gpu_batch batch, lade_filters f)
{
	LADE_SHARED(uint32_t, words, [LADE_TILE_WARPS][LADE_TILE_SHARED]);
	uint32_t lane = lade_lane(), *s = words[threadIdx.x / 32];
	lade_tile_batch(batch, [=](uint32_t i, uint32_t part, uint32_t parts) {
		lade_gpu_chunk c;
		uint32_t status = lade_tile_chunk(batch, i, f, &c);
		if (status == LADE_GPU_OK)
			lade_stream_chunk<32>(s, c, f.ops, f.size, part, parts, lane);
		lade_tile_verdict(batch, i, part, status, c.src_size, lane);
	});
}

/* As lade_sum_batch() with 'ranges', of delta alone. */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_delta_ranges(lade_gpu_batch batch, lade_filters f, uint32_t parts, uint64_t *partial)
{
	f.ops = f.rows = f.late = 0;
	lade_sum_batch(batch, f, parts, partial, true);
}

/* And without. */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_delta_decode(lade_gpu_batch batch, lade_filters f, uint32_t parts, uint64_t *partial)
{
	f.ops = f.rows = f.late = 0;
	lade_sum_batch(batch, f, parts, partial, false);
}
