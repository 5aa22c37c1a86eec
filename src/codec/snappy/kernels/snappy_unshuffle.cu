/*
 * snappy_unshuffle.cu: decodes raw Snappy streams of byte-shuffled data in batches, and undoes the
 * shuffle.  The batch's destinations are scratch memory; 'u' has the chunks' own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/kernels/unshuffle.cuh"

#include "codec/snappy/kernels/snappy_parse.cuh"

/* Map: solo, a warp a chunk, 4 warps a block; teams, a block of 4, 8 or 16 warps a chunk.
 * A team of 16 has its shared memory as dynamic memory (codec/lz/args.h has its size). */
extern "C" __global__ void __launch_bounds__(128, 8)
	lade_snappy_unshuffle_solo(lade_gpu_batch batch, lade_lz_unshuffle u)
{
	lade_lz_solo_batch<lade_snappy, 4>(batch, u);
}

extern "C" __global__ void __launch_bounds__(128, 8)
	lade_snappy_unshuffle_team4(lade_gpu_batch batch, lade_lz_unshuffle u)
{
	typedef lade_lz_team<lade_snappy, 4> team;
	LADE_SHARED(team, t);
	lade_lz_team_batch(&t, batch, u);
}

extern "C" __global__ void __launch_bounds__(256, 4)
	lade_snappy_unshuffle_team8(lade_gpu_batch batch, lade_lz_unshuffle u)
{
	typedef lade_lz_team<lade_snappy, 8> team;
	LADE_SHARED(team, t);
	lade_lz_team_batch(&t, batch, u);
}

extern "C" __global__ void __launch_bounds__(512, 2)
	lade_snappy_unshuffle_team16(lade_gpu_batch batch, lade_lz_unshuffle u)
{
	typedef lade_lz_team<lade_snappy, 16> team;
	LADE_SHARED_DYNAMIC(team, t);
	lade_lz_team_batch(t, batch, u);
}
