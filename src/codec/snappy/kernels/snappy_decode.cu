/*
 * snappy_decode.cu: raw Snappy streams, in batches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/snappy/kernels/snappy_parse.cuh"

static_assert(sizeof(lade_lz_team<lade_snappy, 16>) == LADE_SNAPPY_TEAM16_SHARED, "");

/* Map: solo, a warp a chunk, 4 warps a block; teams, a block of 4, 8 or 16 warps a chunk.
 * A team of 16 has its shared memory as dynamic memory (codec/lz/args.h has its size). */
extern "C" __global__ void __launch_bounds__(128, 8) lade_snappy_decode_solo(lade_gpu_batch batch)
{
	lade_lz_solo_batch<lade_snappy, 4>(batch);
}

extern "C" __global__ void __launch_bounds__(128, 8) lade_snappy_decode_team4(lade_gpu_batch batch)
{
	typedef lade_lz_team<lade_snappy, 4> team;
	LADE_SHARED(team, t);
	lade_lz_team_batch(&t, batch);
}

extern "C" __global__ void __launch_bounds__(256, 4) lade_snappy_decode_team8(lade_gpu_batch batch)
{
	typedef lade_lz_team<lade_snappy, 8> team;
	LADE_SHARED(team, t);
	lade_lz_team_batch(&t, batch);
}

extern "C" __global__ void __launch_bounds__(512, 2) lade_snappy_decode_team16(lade_gpu_batch batch)
{
	typedef lade_lz_team<lade_snappy, 16> team;
	LADE_SHARED_DYNAMIC(team, t);
	lade_lz_team_batch(t, batch);
}

/* Writes the decoded sizes that streams begin with; 'dst' and 'dst_cap' are not read.  Map: a
 * thread a chunk. */
extern "C" __global__ void lade_snappy_size(lade_gpu_batch batch)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, entry = 0, size = 0;
	lade_gpu_chunk c;
	if (i >= batch.count)
		return;
	uint32_t status = lade_source_get(batch, i, &c);
	if (status == LADE_GPU_OK)
		status = lade_snappy::begin(c.src, c.src_size, &entry, &size);
	lade_chunk_put(batch, i, status, size);
}
