/*
 * blosc_plan.cu: Blosc1 containers in batches: their headers, lists of their blocks, their sizes;
 * and the blocks that no other kernel decodes: BloscLZ, and what is stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/kernels/blosc_units.cuh"

/* Reads the header of chunk 'i'. */
static __device__ __forceinline__ uint32_t lade_blosc_look(const lade_gpu_batch &batch, uint32_t i,
                                                           lade_blosc_chunk *b)
{
	lade_gpu_chunk c;
	uint32_t status = lade_chunk_get_now(batch, i, &c);
	*b = lade_blosc_chunk{};
	b->counter = LADE_BLOSC_WHOLE;
	if (status == LADE_GPU_OK)
		status = lade_blosc_header(c.src, c.src_size, b);
	if (status == LADE_GPU_OK && b->nbytes > c.dst_cap)
		status = LADE_GPU_NOSPACE;
	b->dst = c.dst;
	return status;
}

/* Bytes of scratch memory of a chunk, so that each begins at a word. */
static __device__ __forceinline__ uint64_t lade_blosc_room(const lade_blosc_chunk &b)
{
	bool shuffled = b.flags & (LADE_BLOSC_SHUFFLE | LADE_BLOSC_BITSHUFFLE);
	return b.blocks && shuffled && !(b.flags & LADE_BLOSC_IS_STORED)
	               ? (b.nbytes + 31ull) & ~15ull
	               : 0;
}

/* Map: one block of 1024 threads; thread = every 1024th chunk.  Fills 'p', and writes sizes and
 * statuses as if all blocks were right.  Shared: sums of warps. */
extern "C" __global__ void __launch_bounds__(1024)
	lade_blosc_find_blocks(lade_gpu_batch batch, lade_blosc_plan p)
{
	LADE_SHARED(uint64_t, sums, [LADE_BLOSC_LISTS + 2][32]);
	uint64_t all[LADE_BLOSC_LISTS] = {}, used = 0, counters = 0;
	for (uint32_t k = threadIdx.x; k < p.counters; k += LADE_BLOSC_PLAN_THREADS)
		p.counter[k] = 0;
	for (uint32_t begin = 0; begin < batch.count; begin += LADE_BLOSC_PLAN_THREADS) {
		uint32_t i = begin + threadIdx.x, status = LADE_GPU_OK;
		bool there = i < batch.count;
		lade_blosc_chunk b = {};
		if (there)
			status = lade_blosc_look(batch, i, &b);
		if (status == LADE_GPU_OK && b.nbytes > p.largest)
			status = LADE_GPU_LIMIT;
		if (status != LADE_GPU_OK)
			b.blocks = 0;
		uint64_t room = lade_blosc_room(b), at = used;
		at += lade_block_before(sums[LADE_BLOSC_LISTS], room, &used);
		if (room && (at > p.scratch_size || room > p.scratch_size - at)) {
			status = LADE_GPU_NOSPACE;
			b.blocks = 0;
		}
		b.scratch = p.scratch + (room && b.blocks ? at : 0);
		uint32_t units = b.blocks;
		if (p.counters) {
			uint32_t want = b.streams > 1 ? b.blocks : 0;
			uint64_t counter = counters;
			counter += lade_block_before(sums[LADE_BLOSC_LISTS + 1], want, &counters);
			if (want && counter + want <= p.counters) {
				b.counter = (uint32_t)counter;
				units *= b.streams;
			}
		}
#pragma unroll
		for (uint32_t list = 0; list < LADE_BLOSC_LISTS; list++) {
			uint32_t mine = b.list == list ? units : 0;
			uint64_t before = all[list];
			before += lade_block_before(sums[list], mine, &all[list]);
			if (before + mine > LADE_BLOSC_UNITS_MAX) {
				status = mine ? LADE_GPU_LIMIT : status;
				b.blocks = mine ? 0 : b.blocks;
			}
			if (there)
				p.first[(uint64_t)list * batch.count + i] =
					(uint32_t)(before < LADE_BLOSC_UNITS_MAX
				                           ? before
				                           : LADE_BLOSC_UNITS_MAX);
		}
		if (there) {
			p.chunk[i] = b;
			lade_chunk_put(batch, i, status, b.nbytes);
		}
		__syncthreads();
	}
	if (threadIdx.x == 0)
		for (uint32_t list = 0; list < LADE_BLOSC_LISTS; list++) {
			p.units[list] =
				(uint32_t)(all[list] < LADE_BLOSC_UNITS_MAX ? all[list]
			                                                    : LADE_BLOSC_UNITS_MAX);
			p.next[list] = 0;
		}
}

/* Map: thread = a chunk.  Writes sizes and statuses; 'dst' and 'dst_cap' are not read. */
extern "C" __global__ void __launch_bounds__(128) lade_blosc_size(lade_gpu_batch batch)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= batch.count)
		return;
	lade_gpu_chunk c;
	lade_blosc_chunk b = {};
	uint32_t status = lade_source_get(batch, i, &c);
	if (status == LADE_GPU_OK)
		status = lade_blosc_header(c.src, c.src_size, &b);
	if (status == LADE_GPU_OK && b.nbytes > LADE_CHUNK_MAX)
		status = LADE_GPU_LIMIT;
	lade_chunk_put(batch, i, status, b.nbytes);
}

/* BloscLZ (docs/format/blosc.md), by a warp whose lanes all read the same. */
struct lade_blosclz {
	static constexpr uint32_t W = 1;

	/* Reads the match whose first byte is 'ctrl', the next byte at *ip; 0: it is wrong. */
	static __device__ __forceinline__ uint32_t match(const lade_gpu_chunk &c, uint32_t ctrl,
	                                                 uint32_t *ip, uint32_t *distance)
	{
		uint32_t length = (ctrl >> 5) + 2, n = c.src_size, more = 255;
		while (ctrl >= 7u << 5 && more == 255) {
			if (*ip == n || length > c.dst_cap)
				return 0;
			more = c.src[(*ip)++];
			length += more;
		}
		if (*ip == n)
			return 0;
		*distance = ((ctrl & 31) << 8) + c.src[(*ip)++] + 1;
		if (*distance == 8192) {
			if (n - *ip < 2)
				return 0;
			*distance += (uint32_t)c.src[*ip] << 8 | c.src[*ip + 1];
			*ip += 2;
		}
		return length;
	}

	/* Every turn takes a byte of the source at least. */
	__device__ __forceinline__ uint32_t stream(const lade_gpu_chunk &c, uint32_t *size,
	                                           uint32_t, uint32_t lane)
	{
		uint32_t ip = 1, op = 0, n = c.src_size;
		if (n == 0)
			return LADE_GPU_CORRUPT;
		uint32_t ctrl = c.src[0] & 31;
		for (;;) {
			uint32_t length = ctrl + 1, distance = 0;
			if (ctrl >= 32)
				length = match(c, ctrl, &ip, &distance);
			if (length == 0 || length > c.dst_cap - op || distance > op ||
			    (distance ? ip == n : length > n - ip))
				return LADE_GPU_CORRUPT;
			if (distance == 0) {
				if (lane < length)
					c.dst[op + lane] = c.src[ip + lane];
				ip += length;
			}
			for (uint32_t k = lane; distance && k < length; k += 32)
				c.dst[op + k] = c.dst[op - distance + k % distance];
			__syncwarp();
			op += length;
			if (ip == n)
				break;
			ctrl = c.src[ip++];
		}
		*size = op;
		return LADE_GPU_OK;
	}
};

/* Map: block = 4 warps, warp = one block of a container at a time.  Shared: a job a warp. */
extern "C" __global__ void __launch_bounds__(128) lade_blosc_plain(lade_blosc_plan p)
{
	LADE_SHARED(lade_blosc_job, jobs, [4]);
	uint32_t warp = threadIdx.x / 32;
	lade_blosclz d;
	lade_blosc_units(d, p, LADE_BLOSC_PLAIN, &jobs[warp], 0, lade_lane());
}
