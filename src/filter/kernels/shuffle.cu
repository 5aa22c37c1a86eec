/*
 * shuffle.cu: the byte shuffle of chunks and back (docs/format/filters.md, sections 1 and 5),.
 *
 * A warp makes a tile (tile.cuh) of elements of 2, 3, 4, 6, 8, 12 and 16 bytes (rows.cuh).
 * Elements of other sizes go byte by byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/kernels/filter.cuh"

template <bool ENCODE>
static __device__ __forceinline__ void lade_bytes_batch(const lade_gpu_batch &batch,
                                                        lade_filters f)
{
	LADE_SHARED(uint32_t, words, [LADE_TILE_WARPS][LADE_TILE_SHARED]);
	uint32_t lane = lade_lane(), *s = words[threadIdx.x / 32];
	f.ops = f.late = 0;
	lade_tile_batch(batch, [=](uint32_t i, uint32_t part, uint32_t parts) {
		lade_gpu_chunk c;
		uint32_t status = lade_tile_chunk(batch, i, f, &c);
		if (status == LADE_GPU_OK)
			lade_bytes_all<ENCODE>(s, c, f, part, parts, lane);
		lade_tile_verdict(batch, i, part, status, c.src_size, lane);
	});
}

/*
 * Map: a block is 128 threads, each warp of it on its own; the grid has less than 2^28 blocks, best
 * a warp for each tile.  Elements have 1 to 255 bytes.  Sources and destinations have any alignment
 * and do not overlap.  'next' is not used.  Shared memory: 16.5 KiB, a tile a warp.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS, 7)
	lade_shuffle_encode(lade_gpu_batch batch, lade_filters f)
{
	lade_bytes_batch<true>(batch, f);
}

/* Likewise. */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_shuffle_decode(lade_gpu_batch batch, lade_filters f)
{
	lade_bytes_batch<false>(batch, f);
}
