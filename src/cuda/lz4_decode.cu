/*
 * lz4_decode.cu: LZ4 blocks, in batches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/lz4_parse.cuh"

extern "C" __global__ void __launch_bounds__(128) lade_lz4_decode_solo(lade_gpu_batch batch)
{
	lade_lz_solo_batch<lade_lz4, 4>(batch);
}

extern "C" __global__ void __launch_bounds__(128) lade_lz4_decode_team4(lade_gpu_batch batch)
{
	lade_lz_team_batch<lade_lz4, 4>(batch);
}

extern "C" __global__ void __launch_bounds__(256) lade_lz4_decode_team8(lade_gpu_batch batch)
{
	lade_lz_team_batch<lade_lz4, 8>(batch);
}
