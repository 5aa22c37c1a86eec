/*
 * snappy_decode.cu: raw Snappy streams, in batches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/snappy_parse.cuh"

extern "C" __global__ void __launch_bounds__(128) lade_snappy_decode_solo(lade_gpu_batch batch)
{
	lade_lz_solo_batch<lade_snappy, 4>(batch);
}

extern "C" __global__ void __launch_bounds__(128) lade_snappy_decode_team4(lade_gpu_batch batch)
{
	lade_lz_team_batch<lade_snappy, 4>(batch);
}

extern "C" __global__ void __launch_bounds__(256) lade_snappy_decode_team8(lade_gpu_batch batch)
{
	lade_lz_team_batch<lade_snappy, 8>(batch);
}
