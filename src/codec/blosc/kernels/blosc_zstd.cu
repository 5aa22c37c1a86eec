/*
 * blosc_zstd.cu: blocks of Zstandard streams in Blosc1 containers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/kernels/blosc_units.cuh"
#include "codec/zstd/kernels/zstd_chunks.cuh"

struct lade_blosc_zstd {
	static constexpr uint32_t W = LADE_ZSTD_THREADS / 32;
	static constexpr bool SHUFFLES = false;
	lade_zstd_team *t;
	lade_zstd_room room;
	uint8_t *literals;
	uint32_t own; /* what the warp does there: zstd_chunks.cuh */

	__device__ __forceinline__ uint32_t stream(const lade_gpu_chunk &c, uint32_t *size,
	                                           uint32_t warp, uint32_t lane)
	{
		(void)warp;
		if (threadIdx.x == 0) {
			t->job.c = c;
			t->job.status = LADE_GPU_OK;
			lade_zstd_begin(room, &t->job);
		}
		__syncthreads();
		uint32_t status =
			lade_zstd_frames<false>(t, room, lade_zstd_dict{}, literals, own, lane);
		__syncthreads();
		*size = t->job.done;
		return status;
	}
};

/* Map: block = one block of a container at a time, warps: zstd_chunks.cuh.  Shared: a team, and
 * a job. */
extern "C" __global__ void __launch_bounds__(LADE_ZSTD_THREADS, 14)
	lade_blosc_zstd_team(lade_blosc_plan p, lade_zstd_room room)
{
	LADE_SHARED(lade_zstd_team, team);
	LADE_SHARED(lade_blosc_job, job);
	lade_blosc_zstd d = {&team, room, room.literals + (uint64_t)blockIdx.x * room.cap,
	                     lade_zstd_warp(&team)};
	uint32_t warp = __shfl_sync(LADE_FULL, threadIdx.x / 32, 0);
	lade_blosc_units(d, p, LADE_BLOSC_ZSTD, &job, warp, lade_lane());
}
