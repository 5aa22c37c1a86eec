/*
 * cascaded_decode.cu: decodes chunks of the cascaded codec (docs/format/cascaded.md).
 *
 * A warp has a block of the format at a time.  It stages the block in shared memory and unpacks it
 * in groups of 512 decoded bytes: a lane makes 16 bytes of adjacent elements, whose bits are in at
 * most five words, and stores them at once.  Differences are summed up in the lane, over the warp
 * by shuffles, and from group to group.  Runs: the counts are summed up, 32 at a time, and each
 * sets the bit of its run's first element in a bitmap; a lane counts the bits up to its elements,
 * which is the number of their run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/cascaded/kernels/cascaded.cuh"
#include "codec/bitcomp/kernels/bitcomp_block.cuh"
#include "gpu/kernels/stage.cuh"

/* Zeros behind what is staged: a lane's last elements may have bits of up to 5 words there. */
#define LADE_CAS_PAD 2

/* Which element of a block begins a run. */
struct lade_cas_marks {
	uint32_t starts[LADE_CASCADED_BLOCK_BYTES / 32]; /* a bit an element: a run starts there */
	uint16_t before[LADE_CASCADED_BLOCK_BYTES / 64]; /* starts before each pair of words */
};

/*
 * A warp's shared memory: a block's bytes and zeros.  A block with runs has its arrays of elements
 * behind these, in all no more than the format's "room", and the marks behind that.
 */
struct lade_cas_warp {
	union {
		uint4 units[LADE_CASCADED_BLOCK_BYTES / 16 + LADE_CAS_PAD];
		struct {
			uint4 room[LADE_CASCADED_ROOM_MAX / 16 + LADE_CAS_PAD];
			lade_cas_marks marks;
		};
	};
	unsigned long long barrier;
	uint64_t unused;
	lade_bitcomp_tables tables; /* of a sub-block of bitcomp */
};
static_assert(sizeof(lade_cas_warp) == LADE_CAS_DECODE_SHARED, "");

/* Where elements go: shared memory that is aligned to 16 bytes and has room for whole units, or
 * global memory of any alignment. */
template <typename T, bool GLOBAL>
static __device__ __forceinline__ void lade_cas_put(uint8_t *to, uint32_t first, uint32_t n,
                                                    const T *v)
{
	if (first >= n)
		return;
	uint32_t left = (n - first) * (uint32_t)sizeof(T);
	uint8_t *at = to + first * (uint32_t)sizeof(T);
	if (GLOBAL)
		lade_cas_store(lade_global(at), lade_cas_join(v), left);
	else
		*(uint4 *)at = lade_cas_join(v);
}

/* Sums a group up; 'carry' is the sum so far.  For all lanes; elements behind the last one may be
 * anything.  'small': the sums of a group fit 32 bits, as signed numbers. */
template <typename T>
static __device__ __forceinline__ void lade_cas_sum(T *v, T *carry, bool small, uint32_t lane)
{
	typedef typename lade_cas_sum_of<T>::type sum;
	constexpr uint32_t STEP = lade_cas<T>::STEP;
#pragma unroll
	for (uint32_t k = 1; k < STEP; k++)
		v[k] = (T)(v[k] + v[k - 1]);
	sum own = v[STEP - 1], before, last;
	if (sizeof(T) == 8 && small) {
		uint32_t all = lade_warp_scan((uint32_t)own, lane);
		before = (sum)*carry + (sum)(long long)(int32_t)(all - (uint32_t)own);
		last = (sum)(long long)(int32_t)__shfl_sync(LADE_FULL, all, 31);
	} else {
		sum all = lade_cas_scan(own, lane);
		before = (sum)*carry + all - own;
		last = __shfl_sync(LADE_FULL, all, 31);
	}
#pragma unroll
	for (uint32_t k = 0; k < STEP; k++)
		v[k] = (T)(v[k] + before);
	*carry = (T)(*carry + last);
}

/* ---- runs ------------------------------------------------------------------------------- */

/* A packed list of runs' lengths. */
struct lade_cas_runs {
	const uint32_t *counts;
	uint32_t runs, width;
};

/* Marks the first element of each run in w->starts, and counts the marks; false: the runs do not
 * have 'n' elements.  A lane has four adjacent runs, of 52 bits at most. */
static __device__ __forceinline__ bool lade_cas_mark(lade_cas_marks *w, const lade_cas_runs &r,
                                                     uint32_t n, uint32_t lane)
{
	uint32_t pairs = (n + 63) / 64, at = 0, mask = (1u << r.width) - 1;
	for (uint32_t i = lane; i < 2 * pairs; i += 32)
		w->starts[i] = 0;
	__syncwarp();
	for (uint32_t from = 0; from < r.runs; from += 128) {
		uint32_t run = from + 4 * lane, count[4] = {}, sum = 0;
		if (run < r.runs) {
			uint32_t bit = run * r.width;
			const uint32_t *p = r.counts + bit / 32;
			uint64_t bits = __funnelshift_r(p[0], p[1], bit & 31) |
			                (uint64_t)__funnelshift_r(p[1], p[2], bit & 31) << 32;
#pragma unroll
			for (uint32_t k = 0; k < 4; k++) {
				uint32_t one = ((uint32_t)(bits >> k * r.width) & mask) + 1;
				count[k] = run + k < r.runs ? one : 0;
				sum += count[k];
			}
		}
		uint32_t all = lade_warp_scan(sum, lane), start = at + all - sum;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			if (count[k] && start < n)
				atomicOr(&w->starts[start / 32], 1u << (start & 31));
			start += count[k];
		}
		at += __shfl_sync(LADE_FULL, all, 31);
	}
	__syncwarp();
	if (at != n)
		return false;
	at = 0;
	for (uint32_t from = 0; from < pairs; from += 32) {
		uint32_t pair = from + lane, own = 0;
		if (pair < pairs)
			own = __popc(w->starts[2 * pair]) + __popc(w->starts[2 * pair + 1]);
		uint32_t all = lade_warp_scan(own, lane);
		if (pair < pairs)
			w->before[pair] = (uint16_t)(at + all - own);
		at += __shfl_sync(LADE_FULL, all, 31);
	}
	__syncwarp();
	return true;
}

/* The elements from 'first' on, STEP of them. */
template <typename T>
static __device__ __forceinline__ void lade_cas_repeat(const lade_cas_marks *w, const T *values,
                                                       uint32_t first, T *v)
{
	uint32_t word = first / 32, at = first & 31, bits = w->starts[word];
	uint32_t other = word & 1 ? w->starts[word & ~1u] : 0;
	uint32_t run = w->before[word / 2] + __popc(bits & ((2u << at) - 1)) + __popc(other) - 1;
	bits >>= at;
	v[0] = values[run];
#pragma unroll
	for (uint32_t k = 1; k < lade_cas<T>::STEP; k++) {
		run += bits >> k & 1;
		v[k] = values[run];
	}
}

/*
 * Repeats values as the counts say: 'n' elements, summed up onto 'start' with 'delta' ('small': see
 * lade_cas_sum()); false: their number is another.  As many bits are set as there are runs, and the
 * first element has one, so that the numbers of runs are below r.runs.  Two groups at a time where
 * registers allow, so that their loads and shuffles need not wait for one another alone.
 */
template <typename T, bool GLOBAL>
static __device__ __forceinline__ bool
lade_cas_expand(lade_cas_marks *w, const lade_cas_runs &r, const T *values, uint32_t n, bool delta,
                bool small, T start, uint8_t *to, uint32_t lane)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP, GROUP = lade_cas<T>::GROUP;
	constexpr uint32_t G = STEP <= 4 ? 2 : 1;
	if (!lade_cas_mark(w, r, n, lane))
		return false;
#pragma unroll 1
	for (uint32_t group = 0; group < n; group += G * GROUP) {
		uint32_t first = group + lane * STEP;
		T v[G][STEP];
		/* Lanes behind the last element take the first ones, for nothing. */
#pragma unroll
		for (uint32_t g = 0; g < G; g++)
			lade_cas_repeat(w, values, first + g * GROUP < n ? first + g * GROUP : 0,
			                v[g]);
		if (delta)
#pragma unroll
			for (uint32_t g = 0; g < G; g++)
				lade_cas_sum(v[g], &start, small, lane);
#pragma unroll
		for (uint32_t g = 0; g < G; g++)
			lade_cas_put<T, GLOBAL>(to, first + g * GROUP, n, v[g]);
	}
	__syncwarp();
	return true;
}

/* ---- blocks ----------------------------------------------------------------------------- */

static __device__ __forceinline__ uint64_t lade_cas_base(const uint32_t *words)
{
	return words[2] | (uint64_t)words[3] << 32;
}

/* The values of a block; 'start' is what differences are summed up onto. */
template <bool SHARED, int LOG>
static __device__ __forceinline__ void lade_cas_values(const lade_cas_warp *w,
                                                       const lade_cascaded_block &b, bool delta,
                                                       uint64_t start, uint8_t *to, uint32_t lane)
{
	const uint32_t *words = (const uint32_t *)w->units;
	uint32_t len = b.n2 << LOG;
	lade_packed p = {};
	p.mode = delta ? LADE_BITCOMP_DELTA : 0;
	if (b.layers & LADE_CASCADED_ROTATED)
		p.mode |= LADE_BITCOMP_ROTATED << LADE_BITCOMP_FOLD;
	p.width = b.width;
	p.step = b.less;
	p.payload = 4 * b.values;
	p.base = start;
	p.reference = lade_cas_base(words);
	lade_packed_get<LOG, LADE_PACKED_PARTS, SHARED>(words, p, to, len, lane);
}

/* A coded block of 'units' in shared memory, 'n' elements, with the chunk's 'block' from bit 16 of
 * 'units' on; false: it cannot be.  With runs it has room.  A function of its own, so that what the
 * kernel keeps takes no registers here; with more arguments some would be on the stack. */
template <typename T>
static __device__ __noinline__ bool lade_cas_coded(lade_cas_warp *there, uint32_t units_block,
                                                   uint32_t n, uint8_t *to)
{
	uint32_t lane = lade_lane(), units = units_block & 0xFFFF, block = units_block >> 16;
	constexpr uint32_t LOG = lade_cas<T>::LOG2;
	lade_cas_warp *w = lade_shared(there);
	const uint32_t *words = (const uint32_t *)w->units;
	lade_cascaded_block b;
	b.n = n;
	b.units = units;
	if (!lade_cascaded_block_read(words[0], words[1], LOG, block, &b))
		return false;
	bool delta = b.layers & LADE_CASCADED_DELTA, inner = b.layers & LADE_CASCADED_INNER;
	bool outer = b.layers & LADE_CASCADED_OUTER;
	uint64_t first = delta ? words[4] | (uint64_t)words[5] << 32 : 0;
	T start = (T)first;
	if (!inner && !outer) {
		lade_cas_values<false, LOG>(w, b, delta, first, to, lane);
		return true;
	}
	uint8_t *values = (uint8_t *)(w->units + units + LADE_CAS_PAD);
	lade_cas_values<true, LOG>(w, b, delta && !inner, first, values, lane);
	__syncwarp();
	/* A group has 64 differences at most, from -2^25 on and less than 2^25; not so where a bit
	 * of these is turned to the top. */
	bool small = b.width <= 24 && lade_cas_base(words) + (1u << 24) < 1u << 25 &&
	             !(b.layers & LADE_CASCADED_ROTATED);
	lade_cas_runs in = {words + b.inner, b.n2, b.inner_width};
	lade_cas_runs out = {words + b.outer, b.n1, b.outer_width};
	if (inner) {
		uint8_t *more = outer ? values + lade_cascaded_array(b.n2, LOG) : to;
		bool good = outer ? lade_cas_expand<T, false>(&w->marks, in, (const T *)values,
		                                              b.n1, true, small, start, more, lane)
		                  : lade_cas_expand<T, true>(&w->marks, in, (const T *)values, n,
		                                             true, small, start, more, lane);
		if (!outer || !good)
			return good;
		values = more;
	}
	return lade_cas_expand<T, true>(&w->marks, out, (const T *)values, n, false, false, 0, to,
	                                lane);
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* What the format's table of checks says before blocks are read. */
static __device__ __forceinline__ uint32_t lade_cas_open(const lade_gpu_chunk &chunk,
                                                         const lade_front &front,
                                                         lade_cascaded_chunk *c)
{
	if (chunk.src_size < LADE_CASCADED_HEADER)
		return LADE_GPU_TRUNCATED;
	if (!lade_cascaded_chunk_read(lade_front_word(front, 0), lade_front_word(front, 1), c))
		return LADE_GPU_CORRUPT;
	if (chunk.dst_cap < c->size)
		return LADE_GPU_NOSPACE;
	uint64_t want = 16 * (uint64_t)c->first;
	if (chunk.src_size >= want && c->blocks)
		want = 16 * (uint64_t)lade_front_word(front, c->blocks + 3);
	return chunk.src_size < want   ? LADE_GPU_TRUNCATED
	       : chunk.src_size > want ? LADE_GPU_CORRUPT
	                               : LADE_GPU_OK;
}

/* Block k of a chunk; false: it cannot be. */
static __device__ __forceinline__ bool
lade_cas_one(lade_cas_warp *w, lade_warp_report *report, const lade_gpu_chunk &chunk,
             const lade_front &front, const lade_cascaded_chunk &c, uint32_t k, uint32_t lane)
{
	uint32_t begin = k ? lade_front_word(front, k + 3) : c.first;
	uint32_t end = lade_front_word(front, k + 4);
	uint32_t bytes = lade_cascaded_block_bytes(&c, k), raw = lade_cascaded_units(bytes);
	if (begin < c.first || begin >= end || end - begin > raw || end > chunk.src_size / 16)
		return false;
	const uint8_t *from = chunk.src + 16 * (size_t)begin;
	uint8_t *to = chunk.dst + ((size_t)k << c.block);
	uint32_t units = end - begin, n = bytes >> c.log2;
	if (units == raw && ((uintptr_t)to | (uintptr_t)from | bytes) & 15) {
		lade_packed_copy(to, from, bytes, lane);
		return true;
	}
	lade_stager stager = {&w->barrier, report->staged & 1};
	__syncwarp();
	if (lane == 0)
		report->staged++;
	lade_stage_begin(&stager, w->units, from, 16 * units, lane);
	if (lane < LADE_CAS_PAD)
		w->units[units + lane] = make_uint4(0, 0, 0, 0);
	lade_stage_wait<0>(&stager);
	if (units == raw) {
		lade_stage_out(to, w->units, bytes, lane);
		return true;
	}
	if (w->units[0].x & LADE_CASCADED_BITCOMP) {
		/* The rest of the byte is the mode. */
		__syncwarp();
		if (lane == 0)
			w->units[0].x &= ~LADE_CASCADED_BITCOMP;
		__syncwarp();
#define LADE_ONE(LOG) \
	lade_bitcomp_block<LOG>(w->units, &w->tables, to, 16 * units, bytes, lane)
		return c.log2 == 0   ? LADE_ONE(0)
		       : c.log2 == 1 ? LADE_ONE(1)
		       : c.log2 == 2 ? LADE_ONE(2)
		                     : LADE_ONE(3);
#undef LADE_ONE
	}
	units |= c.block << 16;
	return c.log2 == 0   ? lade_cas_coded<uint8_t>(w, units, n, to)
	       : c.log2 == 1 ? lade_cas_coded<uint16_t>(w, units, n, to)
	       : c.log2 == 2 ? lade_cas_coded<uint32_t>(w, units, n, to)
	                     : lade_cas_coded<unsigned long long>(w, units, n, to);
}

/* Finds the chunk, and makes the warp's block whose turn it is, if there is one; gives the chunk's
 * status as far as it is known then. */
static __device__ __forceinline__ uint32_t lade_cas_turn(lade_cas_warp *w,
                                                         const lade_gpu_batch &batch,
                                                         const lade_thread_place &at,
                                                         uint32_t ranks, lade_warp_report *report)
{
	lade_gpu_chunk chunk;
	lade_cascaded_chunk c;
	uint32_t k = at.k + report->turn * ranks, status = lade_chunk_get_now(batch, at.i, &chunk);
	if (status != LADE_GPU_OK)
		return status;
	lade_front front = lade_front_get(chunk, at.lane);
	status = lade_cas_open(chunk, front, &c);
	if (status != LADE_GPU_OK)
		return status;
	if (at.lane == 0) {
		report->size = c.size;
		report->more = k < c.blocks && c.blocks - k > ranks;
	}
	/* The last bytes, less than an element. */
	if (k == 0 && at.lane < c.size - c.body)
		chunk.dst[c.body + at.lane] = chunk.src[LADE_CASCADED_TAIL + at.lane];
	if (k >= c.blocks)
		return LADE_GPU_OK;
	return lade_cas_one(w, report, chunk, front, c, k, at.lane) ? LADE_GPU_OK
	                                                            : LADE_GPU_CORRUPT;
}

/*
 * Map: a block is 256 threads, in teams of 2^team_log warps; a warp takes its part of a chunk's
 * blocks in turn.  A chunk has a team, or, where that is all 8 warps, 'parts' of them: part p of
 * chunk i is block i * parts + p, below 2^32, and 'joined', a word a chunk that is 0 when the
 * kernel starts, gathers their verdicts (NULL where 'parts' is 1).  'next' is not used: the grid
 * has all parts.  Shared: 8 of lade_cas_warp, dynamic.
 *
 * Warps do not wait for one another before the chunk is done: all of them read its header.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_CAS_WARPS, 3)
	lade_cascaded_decode(lade_gpu_batch batch, uint32_t parts, uint32_t *joined,
	                      uint32_t team_log)
{
	LADE_SHARED_DYNAMIC(lade_cas_warp, warps);
	LADE_SHARED(lade_warp_report, report, [LADE_CAS_WARPS]);
	lade_thread_place at = lade_thread_place_of(team_log, parts);
	if (at.lane == 0)
		report[at.warp] = {};
	lade_stager stager;
	lade_stage_open(&stager, &warps[at.warp].barrier, at.lane);
	__syncwarp();
	for (bool more = at.i < batch.count; more;) {
		uint32_t ranks = parts << team_log;
		uint32_t status =
			lade_cas_turn(&warps[at.warp], batch, at, ranks, &report[at.warp]);
		/* What was known before is found again, for the registers' sake. */
		at = lade_thread_place_of(team_log, parts);
		__syncwarp();
		more = status == LADE_GPU_OK && report[at.warp].more;
		__syncwarp();
		if (at.lane == 0) {
			report[at.warp].status = status;
			report[at.warp].turn++;
		}
		__syncwarp();
	}
	__syncthreads();
	at = lade_thread_place_of(team_log, parts);
	uint32_t team = 1u << team_log;
	if (at.lane || at.warp & (team - 1) || at.i >= batch.count)
		return;
	/* All warps of a chunk find the same, unless some block is corrupt. */
	uint32_t status = report[at.warp].status;
	for (uint32_t k = 1; k < team; k++)
		if (status == LADE_GPU_OK)
			status = report[at.warp + k].status;
	if (parts > 1) {
		/* The last part to come knows of all others. */
		uint32_t all = atomicAdd(&joined[at.i], 1u | (status ? 1u << 16 : 0));
		if ((all & 0xFFFF) + 1 < parts)
			return;
		if (status == LADE_GPU_OK && all >> 16)
			status = LADE_GPU_CORRUPT;
	}
	lade_chunk_put(batch, at.i, status, status == LADE_GPU_OK ? report[at.warp].size : 0);
}

/* Writes the sizes that chunks state; 'dst' and 'dst_cap' are not read.  Map: a thread a
 * chunk. */
extern "C" __global__ void lade_cascaded_size(lade_gpu_batch batch)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	lade_gpu_chunk chunk;
	lade_cascaded_chunk c = {};
	if (i >= batch.count)
		return;
	uint32_t status = lade_source_get(batch, i, &chunk);
	if (status == LADE_GPU_OK && chunk.src_size < LADE_CASCADED_HEADER)
		status = LADE_GPU_TRUNCATED;
	if (status == LADE_GPU_OK &&
	    !lade_cascaded_chunk_read(lade_le32(chunk.src), lade_le32(chunk.src + 4), &c))
		status = LADE_GPU_CORRUPT;
	lade_chunk_put(batch, i, status, c.size);
}
