/*
 * lz4_decode.cu: LZ4 blocks, in batches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz4/kernels/lz4_parse.cuh"

static_assert(sizeof(lade_lz_team<lade_lz4, 16>) == LADE_LZ4_TEAM16_SHARED, "");

/* Map: solo, a warp a chunk, 4 warps a block; teams, a block of 4, 8 or 16 warps a chunk.
 * A team of 16 has its shared memory as dynamic memory (codec/lz/args.h has its size). */
extern "C" __global__ void __launch_bounds__(128, 8) lade_lz4_decode_solo(lade_gpu_batch batch)
{
	lade_lz_solo_batch<lade_lz4, 4>(batch);
}

extern "C" __global__ void __launch_bounds__(128, 8) lade_lz4_decode_team4(lade_gpu_batch batch)
{
	typedef lade_lz_team<lade_lz4, 4> team;
	LADE_SHARED(team, t);
	lade_lz_team_batch(&t, batch);
}

extern "C" __global__ void __launch_bounds__(256, 4) lade_lz4_decode_team8(lade_gpu_batch batch)
{
	typedef lade_lz_team<lade_lz4, 8> team;
	LADE_SHARED(team, t);
	lade_lz_team_batch(&t, batch);
}

extern "C" __global__ void __launch_bounds__(512, 2) lade_lz4_decode_team16(lade_gpu_batch batch)
{
	typedef lade_lz_team<lade_lz4, 16> team;
	LADE_SHARED_DYNAMIC(team, t);
	lade_lz_team_batch(t, batch);
}

/* Map: a warp a chunk, 4 warps a block.  Writes sizes and statuses; 'dst' and 'dst_cap' are not
 * read. */
extern "C" __global__ void __launch_bounds__(128) lade_lz4_size(lade_gpu_batch batch)
{
	lade_lz_size_batch<lade_lz4, 4>(batch);
}
