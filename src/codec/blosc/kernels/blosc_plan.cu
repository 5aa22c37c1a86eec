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

/* Bytes of scratch memory of a chunk: each begins a line of memory, with a word behind it. */
static __device__ __forceinline__ uint64_t lade_blosc_room(const lade_blosc_chunk &b)
{
	bool shuffled = b.flags & (LADE_BLOSC_SHUFFLE | LADE_BLOSC_BITSHUFFLE);
	return b.blocks && shuffled && !(b.flags & LADE_BLOSC_IS_STORED)
	               ? (b.nbytes + LADE_BLOSC_ROOM - 1ull) & ~127ull
	               : 0;
}

/* Chunks of a thread at once, so that it waits for their headers together. */
#define LADE_BLOSC_AT_ONCE 4u

/* What the plan's sums need of a chunk; the rest is in p.chunk. */
struct lade_blosc_seen {
	uint32_t status, nbytes, list, units, blocks, room, counters;
};

/* Reads the header of chunk 'i', if there is one, and notes it in p.chunk. */
static __device__ __forceinline__ lade_blosc_seen lade_blosc_see(const lade_gpu_batch &batch,
                                                                 const lade_blosc_plan &p,
                                                                 uint32_t i)
{
	lade_blosc_seen s = {};
	if (i >= batch.count)
		return s;
	lade_blosc_chunk b;
	s.status = lade_blosc_look(batch, i, &b);
	if (s.status == LADE_GPU_OK && b.nbytes > p.largest)
		s.status = LADE_GPU_LIMIT;
	if (s.status != LADE_GPU_OK)
		b.blocks = 0;
	s.nbytes = b.nbytes;
	s.list = b.list;
	s.blocks = s.units = b.blocks;
	s.room = (uint32_t)lade_blosc_room(b);
	s.counters = p.counters && b.streams > 1 ? b.blocks : 0;
	p.chunk[i] = b;
	return s;
}

/* Gives the chunk scratch memory from 'at' on, and counters, if there are enough. */
static __device__ __forceinline__ void lade_blosc_give(const lade_blosc_plan &p, uint32_t i,
                                                       lade_blosc_seen *s, uint64_t at,
                                                       uint64_t counter)
{
	lade_blosc_chunk *b = &p.chunk[i];
	if (s->room && (at > p.scratch_size || s->room > p.scratch_size - at)) {
		s->status = LADE_GPU_NOSPACE;
		s->blocks = s->units = b->blocks = 0;
	} else if (s->room) {
		b->scratch = p.scratch + at;
	}
	if (s->units && s->counters && counter + s->counters <= p.counters) {
		b->counter = (uint32_t)counter;
		s->units *= b->streams;
	}
}

/* Map: one block of 1024 threads; thread = four chunks of 4096 in turn.  Fills 'p', and writes
 * sizes and statuses as if all blocks were right.  Shared: sums of warps. */
extern "C" __global__ void __launch_bounds__(1024)
	lade_blosc_find_blocks(lade_gpu_batch batch, lade_blosc_plan p)
{
	LADE_SHARED(uint64_t, sums, [LADE_BLOSC_LISTS + 2][32]);
	uint64_t all[LADE_BLOSC_LISTS] = {}, used = 0, counters = 0;
	lade_begin_early();
	for (uint32_t k = threadIdx.x; k < p.counters; k += LADE_BLOSC_PLAN_THREADS)
		p.counter[k] = 0;
	for (uint64_t begin = 0; begin < batch.count;
	     begin += LADE_BLOSC_AT_ONCE * LADE_BLOSC_PLAN_THREADS) {
		/* Below 2^31 + 2^12. */
		uint32_t i = (uint32_t)begin + LADE_BLOSC_AT_ONCE * threadIdx.x;
		lade_blosc_seen s[LADE_BLOSC_AT_ONCE];
		uint64_t room = 0, wanted = 0, at = used, counter = counters;
#pragma unroll
		for (uint32_t k = 0; k < LADE_BLOSC_AT_ONCE; k++) {
			s[k] = lade_blosc_see(batch, p, i + k);
			room += s[k].room;
			wanted += s[k].counters;
		}
		at += lade_block_before(sums[LADE_BLOSC_LISTS], room, &used);
		counter += lade_block_before(sums[LADE_BLOSC_LISTS + 1], wanted, &counters);
#pragma unroll
		for (uint32_t k = 0; k < LADE_BLOSC_AT_ONCE; k++) {
			if (i + k < batch.count)
				lade_blosc_give(p, i + k, &s[k], at, counter);
			at += s[k].room;
			counter += s[k].counters;
		}
#pragma unroll
		for (uint32_t list = 0; list < LADE_BLOSC_LISTS; list++) {
			uint64_t mine = 0, before = all[list];
#pragma unroll
			for (uint32_t k = 0; k < LADE_BLOSC_AT_ONCE; k++)
				mine += s[k].list == list ? s[k].units : 0;
			before += lade_block_before(sums[list], mine, &all[list]);
#pragma unroll
			for (uint32_t k = 0; k < LADE_BLOSC_AT_ONCE; k++) {
				uint32_t its = s[k].list == list ? s[k].units : 0;
				if (i + k < batch.count)
					p.first[(uint64_t)list * batch.count + i + k] =
						(uint32_t)(before < LADE_BLOSC_UNITS_MAX
					                           ? before
					                           : LADE_BLOSC_UNITS_MAX);
				before += its;
				if (its && before > LADE_BLOSC_UNITS_MAX) {
					s[k].status = LADE_GPU_LIMIT;
					p.chunk[i + k].blocks = 0;
				}
			}
		}
#pragma unroll
		for (uint32_t k = 0; k < LADE_BLOSC_AT_ONCE; k++)
			if (i + k < batch.count)
				lade_chunk_put(batch, i + k, s[k].status, s[k].nbytes);
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
	static constexpr bool SHUFFLES = true;
	uint32_t *words;

	__device__ __forceinline__ uint32_t *tile()
	{
		return words;
	}

	__device__ __forceinline__ void again(uint32_t, uint32_t)
	{
	}

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

/* Map: block = 4 warps, warp = one block of a container at a time.  Shared: a job and a tile a
 * warp. */
extern "C" __global__ void __launch_bounds__(128) lade_blosc_plain(lade_blosc_plan p)
{
	LADE_SHARED(lade_blosc_job, jobs, [4]);
	LADE_SHARED(uint32_t, tiles, [4][LADE_TILE_SHARED]);
	uint32_t warp = threadIdx.x / 32;
	lade_blosclz d = {tiles[warp]};
	lade_blosc_units(d, p, LADE_BLOSC_PLAIN, &jobs[warp], 0, lade_lane());
}

/* Unshuffles the part-th of 'parts' of a chunk, by a warp: whole blocks, or parts of one. */
static __device__ __forceinline__ void lade_blosc_part(const lade_blosc_chunk &b, uint32_t part,
                                                       uint32_t parts, lade_blosc_job *j,
                                                       uint32_t *tile, uint32_t lane)
{
	uint32_t each = parts <= b.blocks ? 1 : parts / b.blocks; /* warps of a block */
	if (part >= each * b.blocks)
		return;
	for (uint32_t k = part / each; k < b.blocks; k += parts) {
		uint32_t off = k * b.blocksize, rest = b.nbytes - off;
		__syncwarp();
		if (lane == 0) {
			j->size = rest < b.blocksize ? rest : b.blocksize;
			j->typesize = b.typesize;
			j->scratch = b.scratch + off;
			j->dst = b.dst + off;
		}
		__syncwarp();
		uint32_t filter = lade_blosc_filter(b.flags, b.typesize, j->size), of = part % each;
		if (filter == LADE_BLOSC_SHUFFLE)
			lade_blosc_unshuffle(j, of, each, lane);
		else if (filter)
			lade_blosc_unshuffle_bits(j, tile, {32 * of + lane, 32 * each});
	}
}

/* Map: block = 4 warps, warp = a part of a chunk at a time.  Takes what the teams that do not
 * unshuffle have decoded to its place.  Shared: a job and a tile a warp. */
extern "C" __global__ void __launch_bounds__(128, 6) lade_blosc_unshuffle_all(lade_blosc_plan p)
{
	LADE_SHARED(lade_blosc_job, jobs, [4]);
	LADE_SHARED(uint32_t, tiles, [4][LADE_TILE_SHARED]);
	lade_begin_early();
	if (p.units[LADE_BLOSC_ZLIB] + p.units[LADE_BLOSC_ZSTD] == 0)
		return;
	uint32_t warp = threadIdx.x / 32, warps = 4 * gridDim.x;
	uint32_t parts = warps < p.count ? 4 : warps / p.count;
	uint64_t all = (uint64_t)p.count * parts;
	for (uint64_t at = 4 * (uint64_t)blockIdx.x + warp; at < all; at += warps) {
		lade_blosc_chunk b = p.chunk[at / parts];
		bool here = b.list == LADE_BLOSC_ZLIB || b.list == LADE_BLOSC_ZSTD;
		if (here && b.blocks && b.scratch)
			lade_blosc_part(b, (uint32_t)(at % parts), parts, &jobs[warp], tiles[warp],
			                lade_lane());
	}
}
