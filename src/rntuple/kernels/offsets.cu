/*
 * offsets.cu: offsets that add up over clusters, in place (src/rntuple/offsets.c has the same for
 * the host).
 *
 *     stored        0 | 2 5 | 1 4 4      the end before, then two runs of ends
 *     bases             0     5
 *     becomes       0   2 5   6 9 9
 *
 * Three kernels, one behind the other: bases of all runs; a look whether ends decrease, overflow or
 * are too large, while they are as they were; and the sums, of columns without a fault.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/kernels/batch.cuh"
#include "rntuple/args.h"

/*
 * The first base takes back the end before, which counts from the start of the same cluster.
 * Numbers wrap: what is wrong behind a fault does not matter.
 * Map: a block of 1024 a column, in turns; thread = run, 1024 at a time.  Shared: a sum a warp.
 */
extern "C" __global__ void __launch_bounds__(LADE_ENDS_BASE_THREADS) lade_ends_bases(lade_ends e)
{
	LADE_SHARED(uint64_t, sum, [32]);
	for (uint32_t k = blockIdx.x; k < e.column_count; k += gridDim.x) {
		lade_ends_column c = e.column[k];
		lade_ends_run *run = e.run + c.run;
		uint64_t before = 0 - (uint64_t)c.end[0];
		for (uint32_t first = 0; first < c.run_count; first += LADE_ENDS_BASE_THREADS) {
			uint32_t i = first + threadIdx.x;
			uint64_t last = i + 1 < c.run_count ? (uint64_t)c.end[run[i + 1].first] : 0;
			uint64_t base = before;
			base += lade_block_before(sum, last, &before);
			if (i < c.run_count)
				run[i].base = (int64_t)base;
			__syncthreads();
		}
	}
}

/* The column of a slab. */
static __device__ __forceinline__ uint32_t lade_ends_column_of(const lade_ends &e, uint64_t slab)
{
	uint32_t low = 0, high = e.column_count;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (e.column[middle].slab <= slab)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The run of end 'i'. */
static __device__ __forceinline__ uint32_t lade_ends_run_of(const lade_ends_run *run,
                                                            uint32_t count, uint64_t i)
{
	uint32_t low = 0, high = count;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (run[middle].first <= i)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Calls each(column, run, i, last) for the ends of slabs, which blocks take in turns; 'last': end
 * 'i' is the last of its run. */
template <typename F>
static __device__ __forceinline__ void lade_ends_slabs(const lade_ends &e, F each)
{
	for (uint64_t slab = blockIdx.x; slab < e.slab_count; slab += gridDim.x) {
		lade_ends_column *c = e.column + lade_ends_column_of(e, slab);
		const lade_ends_run *run = e.run + c->run;
		uint64_t begin = (slab - c->slab) * LADE_ENDS_SLAB;
		uint64_t left = c->count - begin;
		uint64_t end = begin + (left < LADE_ENDS_SLAB ? left : LADE_ENDS_SLAB);
		for (uint64_t i = begin + threadIdx.x; i < end; i += LADE_ENDS_THREADS) {
			uint32_t k = lade_ends_run_of(run, c->run_count, i);
			uint64_t next = k + 1 < c->run_count ? run[k + 1].first : c->count;
			each(c, run + k, i, i + 1 == next);
		}
	}
}

/* Map: a block is 256 threads and takes slabs of 4096 ends in turns; thread = end. */
extern "C" __global__ void __launch_bounds__(LADE_ENDS_THREADS) lade_ends_check(lade_ends e)
{
	lade_ends_slabs(e, [](lade_ends_column *c, const lade_ends_run *run, uint64_t i,
	                      bool last) {
		int64_t here = c->end[i + 1], before = i && i == run->first ? 0 : c->end[i];
		uint64_t base = (uint64_t)run->base, sum = base + (uint64_t)here;
		bool over = (int64_t)((base ^ sum) & ((uint64_t)here ^ sum)) < 0;
		bool wrong = here < before || over || (i == 0 && before < 0);
		if (wrong || (last && here > run->most))
			atomicMin((unsigned long long *)&c->fault,
			          (unsigned long long)(2 * i + !wrong));
	});
}

/* Likewise. */
extern "C" __global__ void __launch_bounds__(LADE_ENDS_THREADS) lade_ends_add(lade_ends e)
{
	lade_ends_slabs(e, [](lade_ends_column *c, const lade_ends_run *run, uint64_t i, bool) {
		if (c->fault != LADE_ENDS_NO_FAULT)
			return;
		c->end[i + 1] = (int64_t)((uint64_t)c->end[i + 1] + (uint64_t)run->base);
		if (i == 0)
			c->end[0] = 0;
	});
}
