/*
 * lz4_unshuffle.cu: LZ4 blocks, in batches, of what was shuffled by bytes: the kernels of
 * lz4_decode.cu, which then undo the shuffle.  The batch's destinations are scratch memory, those
 * of 'u' the chunks'.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/kernels/unshuffle.cuh"

#include "codec/lz4/kernels/lz4_parse.cuh"

/* Map: a warp a chunk, 4 warps a block. */
extern "C" __global__ void __launch_bounds__(128, 8)
	lade_lz4_unshuffle_solo(lade_gpu_batch batch, lade_lz_unshuffle u)
{
	lade_lz_solo_batch<lade_lz4, 4>(batch, u);
}

/* Map: a block of 4 warps a chunk. */
extern "C" __global__ void __launch_bounds__(128, 8)
	lade_lz4_unshuffle_team4(lade_gpu_batch batch, lade_lz_unshuffle u)
{
	typedef lade_lz_team<lade_lz4, 4> team;
	LADE_SHARED(team, t);
	lade_lz_team_batch(&t, batch, u);
}

/* Map: a block of 8 warps a chunk. */
extern "C" __global__ void __launch_bounds__(256, 4)
	lade_lz4_unshuffle_team8(lade_gpu_batch batch, lade_lz_unshuffle u)
{
	typedef lade_lz_team<lade_lz4, 8> team;
	LADE_SHARED(team, t);
	lade_lz_team_batch(&t, batch, u);
}

/* Map: a block of 16 warps a chunk.  Shared: a team, dynamic (codec/lz/args.h has its size). */
extern "C" __global__ void __launch_bounds__(512, 2)
	lade_lz4_unshuffle_team16(lade_gpu_batch batch, lade_lz_unshuffle u)
{
	typedef lade_lz_team<lade_lz4, 16> team;
	LADE_SHARED_DYNAMIC(team, t);
	lade_lz_team_batch(t, batch, u);
}
