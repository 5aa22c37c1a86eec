/*
 * blosc_zlib.cu: blocks of zlib streams in Blosc1 containers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/kernels/blosc_units.cuh"
#include "codec/deflate/kernels/deflate_chunk.cuh"

struct lade_blosc_deflate {
	static constexpr uint32_t W = 2;
	static constexpr bool SHUFFLES = false;
	lade_deflate_team<2> *t;
	lade_deflate_memory m;

	__device__ __forceinline__ uint32_t stream(const lade_gpu_chunk &c, uint32_t *size,
	                                           uint32_t warp, uint32_t lane)
	{
		lade_deflate_me me = {warp, lane, threadIdx.x};
		if (threadIdx.x == 0)
			t->job.c = c;
		__syncthreads();
		lade_deflate_sum total;
		m.now = m.words;
		total.format = LADE_DEFLATE_ZLIB;
		return lade_deflate_chunk<true>(t, m, &total, size, me);
	}
};

/* Map: block = one block of a container at a time, its two warps in step.  Shared: a team, and a
 * job. */
extern "C" __global__ void __launch_bounds__(64, 10)
	lade_blosc_zlib_team(lade_blosc_plan p, lade_deflate_room room)
{
	LADE_SHARED(lade_deflate_team<2>, team);
	LADE_SHARED(lade_blosc_job, job);
	uint8_t *memory = room.memory + (uint64_t)blockIdx.x * team.LANES * room.lane;
	lade_blosc_deflate d = {&team, {}};
	d.m.lanes = memory;
	d.m.lane = room.lane;
	d.m.words = room.words;
	uint32_t warp = __shfl_sync(LADE_FULL, threadIdx.x / 32, 0);
	lade_blosc_units(d, p, LADE_BLOSC_ZLIB, &job, warp, lade_lane());
}
