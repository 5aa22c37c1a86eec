/*
 * blosc_lz.cuh: blocks of LZ formats in Blosc1 containers, by the decoders of lz_decode.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BLOSC_LZ_CUH
#define LADE_CUDA_BLOSC_LZ_CUH

#include "codec/blosc/kernels/blosc_units.cuh"

template <class F, int WARPS> struct lade_blosc_lz {
	static constexpr uint32_t W = WARPS;
	static constexpr bool SHUFFLES = true;
	lade_lz_team<F, WARPS> *t;

	__device__ __forceinline__ uint32_t stream(const lade_gpu_chunk &c, uint32_t *size,
	                                           uint32_t warp, uint32_t lane)
	{
		uint32_t at = 0, stated = 0, status = F::begin(c.src, c.src_size, &at, &stated);
		if (F::STATES_SIZE && WARPS > 1) {
			/* Each lane has read the header, which may change meanwhile: one counts. */
			LADE_SHARED(uint32_t, said, [3]);
			if (threadIdx.x == 0) {
				said[0] = status;
				said[1] = at;
				said[2] = stated;
			}
			__syncthreads();
			status = said[0];
			at = said[1];
			stated = said[2];
		}
		return status == LADE_GPU_OK
		               ? lade_lz_chunk<F, WARPS>(t, c, at, stated, warp, lane, size)
		               : status;
	}

	__device__ __forceinline__ uint32_t *tile()
	{
		static_assert(sizeof *t >= W * 4 * LADE_TILE_SHARED, "a tile for each warp");
		return (uint32_t *)t;
	}

	__device__ __forceinline__ void again(uint32_t warp, uint32_t lane)
	{
		lade_lz_tables_init(&t->tables[warp], lane);
	}
};

/* Map: block = 4 warps, warp = one block of a container at a time.  Shared: a team of one and a job
 * for each. */
template <class F>
static __device__ __forceinline__ void lade_blosc_lz_solo(const lade_blosc_plan &p, uint32_t list)
{
	typedef lade_lz_team<F, 1> team;
	LADE_SHARED(team, teams, [4]);
	LADE_SHARED(lade_blosc_job, jobs, [4]);
	uint32_t lane = lade_lane(), warp = lade_lz_warp();
	lade_blosc_lz<F, 1> d = {&teams[warp]};
	d.again(0, lane);
	lade_blosc_units(d, p, list, &jobs[warp], 0, lane);
}

/* Map: block = WARPS warps, which have one block of a container at a time.  Shared: the team's, at
 * 't', and a job. */
template <class F, int WARPS>
static __device__ __forceinline__ void lade_blosc_lz_team(lade_lz_team<F, WARPS> *t,
                                                          const lade_blosc_plan &p, uint32_t list)
{
	LADE_SHARED(lade_blosc_job, job);
	uint32_t lane = lade_lane(), warp = lade_lz_warp();
	lade_blosc_lz<F, WARPS> d = {lade_lz_uniform(t)};
	d.again(warp, lane);
	lade_blosc_units(d, p, list, &job, warp, lane);
}

#endif
