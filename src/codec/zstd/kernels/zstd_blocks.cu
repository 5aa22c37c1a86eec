/*
 * zstd_blocks.cu: blocks of Zstandard chunks are found, and read side by side.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/zstd/kernels/zstd_blocks.cuh"

/* Map: warp = a chunk, 4 warps a block.  Shared: a head a warp. */
extern "C" __global__ void __launch_bounds__(128)
	lade_zstd_find(lade_gpu_batch batch, lade_zstd_plan plan)
{
	LADE_SHARED(lade_zstd_head, head, [4]);
	uint32_t warp = threadIdx.x / 32, i = 4 * blockIdx.x + warp;
	if (i < batch.count)
		lade_zstd_find_chunk(batch, plan, i, &head[warp], lade_lane());
}

/* Map: block = one warp, which reads one unit after the other.  Shared: what it reads with. */
extern "C" __global__ void __launch_bounds__(32, 26) lade_zstd_read_blocks(lade_zstd_plan plan)
{
	LADE_SHARED(lade_zstd_reading, reading);
	lade_zstd_read_sequences<1>(&reading.chains, plan, lade_lane());
	__syncwarp();
	lade_zstd_read_literals(&reading.spelling, plan, lade_lane());
}

/* The same of sequences alone, of CHAINS units at once: half the instructions or less. */
#ifndef CHAINS
#define CHAINS 2
#endif
extern "C" __global__ void __launch_bounds__(32, 28 / CHAINS)
	lade_zstd_read_block_sequences(lade_zstd_plan plan)
{
	LADE_SHARED(lade_zstd_chains<CHAINS>, chains);
	lade_zstd_read_sequences<CHAINS>(&chains, plan, lade_lane());
}

/* And of literals alone, by more warps. */
extern "C" __global__ void __launch_bounds__(32, 30)
	lade_zstd_read_block_literals(lade_zstd_plan plan)
{
	LADE_SHARED(lade_zstd_spelling, spelling);
	lade_zstd_read_literals(&spelling, plan, lade_lane());
}
