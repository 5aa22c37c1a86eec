/*
 * cascaded_decode.cu: decodes chunks of the cascaded codec (docs/format/cascaded.md).
 *
 * A warp has a block of the format at a time.  It stages the block in shared memory and unpacks it
 * in groups of 512 decoded bytes: a lane makes 16 bytes of adjacent elements, whose bits lie in at
 * most five words, and stores them at once.  Differences are summed up in the lane, over the warp by
 * shuffles, and from group to group.  Runs: the counts are summed up, 32 at a time, and each sets the
 * bit of its run's first element in a bitmap; a lane counts the bits up to its elements, which is the
 * number of their run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cascaded.cuh"
#include "cuda/stage.cuh"

/* Zeros behind what is staged: a lane's last elements may have bits of up to 5 words there. */
#define LADE_CAS_PAD 2

/* What is staged of a block at once.  Packed arrays that are longer go in two halves. */
#define LADE_CAS_STAGED LADE_CASCADED_ROOM_MAX

/* A warp's shared memory. */
struct lade_cas_warp {
	/* The block's bytes, zeros, and its arrays of elements: the format's "room". */
	uint4 units[LADE_CAS_STAGED / 16 + LADE_CAS_PAD];
	uint32_t starts[LADE_CASCADED_BLOCK_BYTES / 32]; /* a bit an element: a run starts there */
	uint16_t before[LADE_CASCADED_BLOCK_BYTES / 64]; /* starts before each pair of words */
	unsigned long long barrier;
};

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
 * anything. */
template <typename T>
static __device__ __forceinline__ void lade_cas_sum(T *v, T *carry, uint32_t lane)
{
	typedef typename lade_cas_sum_of<T>::type sum;
	constexpr uint32_t STEP = lade_cas<T>::STEP;
#pragma unroll
	for (uint32_t k = 1; k < STEP; k++)
		v[k] = (T)(v[k] + v[k - 1]);
	sum own = v[STEP - 1], all = lade_cas_scan(own, lane);
	sum before = (sum)*carry + all - own;
#pragma unroll
	for (uint32_t k = 0; k < STEP; k++)
		v[k] = (T)(v[k] + before);
	*carry = (T)(*carry + __shfl_sync(LADE_FULL, all, 31));
}

/* ---- packed arrays ---------------------------------------------------------------------- */

/*
 * The elements from 'from' on of a packed array; 'words' begins with the bits of the first of them.
 * The lane's elements are halves of 64 bits at most: 128 bits are aligned by funnel shifts, and each
 * half is shifted for each of its elements.
 */
template <typename T>
static __device__ __forceinline__ void lade_cas_take(const uint32_t *words, uint32_t from,
                                                     uint32_t width, T base, T *v)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP;
	uint32_t bit = from * width, over = bit & 31, span = over + STEP * width, q[5];
	const uint32_t *p = words + bit / 32;
#pragma unroll
	for (uint32_t k = 0; k < 5; k++)
		q[k] = 32 * k < span ? p[k] : 0;
	unsigned long long low = __funnelshift_r(q[0], q[1], over) |
	                         (unsigned long long)__funnelshift_r(q[1], q[2], over) << 32;
	unsigned long long high = __funnelshift_r(q[2], q[3], over) |
	                          (unsigned long long)__funnelshift_r(q[3], q[4], over) << 32;
	uint32_t half = STEP / 2 * width; /* at most 64 */
	high = half == 64 ? high : low >> half | high << 1 << (63 - half);
	if (sizeof(T) == 8) {
		unsigned long long mask = lade_cas_mask(width);
		v[0] = (T)(base + (low & mask));
		v[1] = (T)(base + (high & mask));
		return;
	}
	uint32_t mask = (uint32_t)lade_cas_mask(width);
#pragma unroll
	for (uint32_t k = 0; k < STEP / 2; k++) {
		v[k] = (T)(base + ((uint32_t)(low >> (k * width)) & mask));
		v[STEP / 2 + k] = (T)(base + ((uint32_t)(high >> (k * width)) & mask));
	}
}

/* Elements 'from', a multiple of a group, to 'n'; summed up onto 'carry' with 'delta'. */
template <typename T, bool GLOBAL>
static __device__ __forceinline__ void
lade_cas_unpack(const uint32_t *words, uint32_t from, uint32_t n, uint32_t width, T base,
                bool delta, T *carry, uint8_t *to, uint32_t lane)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP, GROUP = lade_cas<T>::GROUP;
	for (uint32_t group = from; group < n; group += GROUP) {
		uint32_t first = group + lane * STEP;
		T v[STEP] = {};
		if (first < n)
			lade_cas_take(words, first - from, width, base, v);
		if (delta)
			lade_cas_sum(v, carry, lane);
		lade_cas_put<T, GLOBAL>(to, first, n, v);
	}
}

/* ---- runs ------------------------------------------------------------------------------- */

/* Marks the first element of each run in w->starts, and counts the marks; false: the runs do not
 * have 'n' elements. */
static __device__ __forceinline__ bool lade_cas_mark(lade_cas_warp *w, const uint32_t *counts,
                                                     uint32_t runs, uint32_t width, uint32_t n,
                                                     uint32_t lane)
{
	uint32_t pairs = (n + 63) / 64, at = 0, mask = (1u << width) - 1;
	for (uint32_t i = lane; i < 2 * pairs; i += 32)
		w->starts[i] = 0;
	__syncwarp();
	for (uint32_t from = 0; from < runs; from += 32) {
		uint32_t run = from + lane, count = 0;
		if (run < runs) {
			uint32_t bit = run * width, over = bit & 31;
			uint32_t low = counts[bit / 32];
			uint32_t high = over + width > 32 ? counts[bit / 32 + 1] : 0;
			count = (__funnelshift_r(low, high, over) & mask) + 1;
		}
		uint32_t all = lade_warp_scan(count, lane), start = at + all - count;
		if (run < runs && start < n)
			atomicOr(&w->starts[start / 32], 1u << (start & 31));
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

/*
 * Repeats 'runs' values as the counts say: 'n' elements, summed up onto 'start' with 'delta'; false:
 * they are not so many.  As many bits are set as there are runs, and the first element has one, so
 * that the numbers of runs are below 'runs'.
 */
template <typename T, bool GLOBAL>
static __device__ __forceinline__ bool
lade_cas_expand(lade_cas_warp *w, const uint32_t *counts, uint32_t runs, uint32_t width,
                const T *values, uint32_t n, bool delta, T start, uint8_t *to, uint32_t lane)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP, GROUP = lade_cas<T>::GROUP;
	if (!lade_cas_mark(w, counts, runs, width, n, lane))
		return false;
	for (uint32_t group = 0; group < n; group += GROUP) {
		uint32_t first = group + lane * STEP;
		T v[STEP] = {};
		if (first < n) {
			uint32_t word = first / 32, at = first & 31, bits = w->starts[word];
			uint32_t run = w->before[word / 2] + __popc(bits & ((2u << at) - 1)) - 1;
			if (word & 1)
				run += __popc(w->starts[word - 1]);
			bits >>= at;
			v[0] = values[run];
#pragma unroll
			for (uint32_t k = 1; k < STEP; k++) {
				run += bits >> k & 1;
				v[k] = values[run];
			}
		}
		if (delta)
			lade_cas_sum(v, &start, lane);
		lade_cas_put<T, GLOBAL>(to, first, n, v);
	}
	__syncwarp();
	return true;
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* Stages 'size' bytes, at most LADE_CAS_STAGED, and zeros behind them. */
static __device__ __forceinline__ void lade_cas_bring(lade_cas_warp *w, lade_stager *s,
                                                      const uint8_t *from, uint32_t size,
                                                      uint32_t lane)
{
	lade_stage_begin(s, w->units, from, size, lane);
	lade_stage_wait<0>(s);
	if (lane < LADE_CAS_PAD)
		w->units[size / 16 + lane] = make_uint4(0, 0, 0, 0);
	__syncwarp();
}

/* Copies a raw block. */
static __device__ __forceinline__ void lade_cas_raw(lade_cas_warp *w, lade_stager *s,
                                                    const uint8_t *from, uint8_t *to,
                                                    uint32_t bytes, uint32_t lane)
{
	if (!(((uintptr_t)from | (uintptr_t)to) & 15)) {
		const uint4 *units = (const uint4 *)lade_global(from);
#pragma unroll 4
		for (uint32_t at = 16 * lane; at < bytes; at += 512)
			lade_cas_store(lade_global(to + at), __ldg(units + at / 16), bytes - at);
		return;
	}
	for (uint32_t done = 0; done < bytes; done += LADE_CAS_STAGED) {
		uint32_t size = bytes - done < LADE_CAS_STAGED ? bytes - done : LADE_CAS_STAGED;
		lade_cas_bring(w, s, from + done, (size + 15) & ~15u, lane);
		for (uint32_t at = 16 * lane; at < size; at += 512)
			lade_cas_store(lade_global(to + done + at), w->units[at / 16], size - at);
		__syncwarp();
	}
}

/*
 * A coded block of 'units', 'n' elements; false: it cannot be.
 *
 * Without runs, where it is longer than what is staged at once: its width is less than a whole one,
 * so that the header and the first half of its elements are in what is staged first, and the rest in
 * what is staged then.  With runs it has room.
 */
template <typename T>
static __device__ __noinline__ bool
lade_cas_coded(lade_cas_warp *w, lade_stager *s, const lade_cascaded_chunk &c, const uint8_t *from,
               uint32_t units, uint32_t n, uint8_t *to, uint32_t lane)
{
	constexpr uint32_t HALF = LADE_CAS_STAGED / sizeof(T);
	const uint32_t *words = (const uint32_t *)w->units;
	uint32_t stored = 16 * units;
	uint32_t staged = stored < LADE_CAS_STAGED ? stored : LADE_CAS_STAGED;
	lade_cascaded_block b;
	lade_cas_bring(w, s, from, staged, lane);
	if (!lade_cascaded_block_read(words[0], words[1], n, units, lade_cas<T>::LOG2, c.block, &b))
		return false;
	bool delta = b.layers & LADE_CASCADED_DELTA, inner = b.layers & LADE_CASCADED_INNER;
	bool outer = b.layers & LADE_CASCADED_OUTER;
	T base = (T)(words[2] | (unsigned long long)words[3] << 32);
	T start = delta ? (T)(words[4] | (unsigned long long)words[5] << 32) : 0;
	if (!inner && !outer) {
		uint32_t now = stored > staged && n > HALF ? HALF : n;
		lade_cas_unpack<T, true>(words + b.values, 0, now, b.width, base, delta, &start, to,
		                         lane);
		if (now == n)
			return true;
		uint32_t word = b.values + HALF / 32 * b.width, skip = word & ~3u;
		lade_cas_bring(w, s, from + 4 * skip, stored - 4 * skip, lane);
		lade_cas_unpack<T, true>(words + (word - skip), HALF, n, b.width, base, delta,
		                         &start, to, lane);
		return true;
	}
	uint8_t *values = (uint8_t *)(w->units + units + LADE_CAS_PAD);
	lade_cas_unpack<T, false>(words + b.values, 0, b.n2, b.width, base, delta && !inner, &start,
	                          values, lane);
	__syncwarp();
	if (inner && outer) {
		uint8_t *more = values + lade_cascaded_array(b.n2, lade_cas<T>::LOG2);
		if (!lade_cas_expand<T, false>(w, words + b.inner, b.n2, b.inner_width,
		                               (const T *)values, b.n1, true, start, more, lane))
			return false;
		values = more;
	} else if (inner) {
		return lade_cas_expand<T, true>(w, words + b.inner, b.n2, b.inner_width,
		                                (const T *)values, n, true, start, to, lane);
	}
	return lade_cas_expand<T, true>(w, words + b.outer, b.n1, b.outer_width, (const T *)values,
	                                n, false, 0, to, lane);
}

/* Block i of a chunk; false: it cannot be. */
static __device__ __forceinline__ bool lade_cas_block(lade_cas_warp *w, lade_stager *s,
                                                      const lade_gpu_chunk &chunk,
                                                      const lade_cascaded_chunk &c, uint32_t i,
                                                      uint32_t lane)
{
	const uint8_t *ends = chunk.src + LADE_CASCADED_HEADER;
	uint32_t begin = i ? lade_cas_word(ends + 4 * (i - 1)) : c.first;
	uint32_t end = lade_cas_word(ends + 4 * i);
	uint32_t bytes = lade_cascaded_block_bytes(&c, i), raw = lade_cascaded_units(bytes);
	if (begin < c.first || begin >= end || end - begin > raw || end > chunk.src_size / 16)
		return false;
	const uint8_t *from = chunk.src + 16 * (size_t)begin;
	uint8_t *to = chunk.dst + ((size_t)i << c.block);
	uint32_t units = end - begin, n = bytes >> c.log2;
	if (units == raw) {
		lade_cas_raw(w, s, from, to, bytes, lane);
		return true;
	}
	if (c.log2 == 0)
		return lade_cas_coded<uint8_t>(w, s, c, from, units, n, to, lane);
	if (c.log2 == 1)
		return lade_cas_coded<uint16_t>(w, s, c, from, units, n, to, lane);
	if (c.log2 == 2)
		return lade_cas_coded<uint32_t>(w, s, c, from, units, n, to, lane);
	return lade_cas_coded<unsigned long long>(w, s, c, from, units, n, to, lane);
}

/* ---- chunks ----------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t lade_cas_header(const lade_gpu_chunk &chunk,
                                                           lade_cascaded_chunk *c)
{
	if (chunk.src_size < LADE_CASCADED_HEADER)
		return LADE_GPU_TRUNCATED;
	return lade_cascaded_chunk_read(lade_cas_word(chunk.src), lade_cas_word(chunk.src + 4), c)
	               ? LADE_GPU_OK
	               : LADE_GPU_CORRUPT;
}

/* What the format's table of checks says before blocks are looked at. */
static __device__ __forceinline__ uint32_t lade_cas_open(const lade_gpu_batch &batch, uint32_t i,
                                                         lade_gpu_chunk *chunk,
                                                         lade_cascaded_chunk *c)
{
	uint32_t status = lade_chunk_get(batch, i, chunk);
	if (status == LADE_GPU_OK)
		status = lade_cas_header(*chunk, c);
	if (status != LADE_GPU_OK)
		return status;
	if (chunk->dst_cap < c->size)
		return LADE_GPU_NOSPACE;
	uint64_t want = 16 * (uint64_t)c->first;
	if (chunk->src_size >= want && c->blocks)
		want = 16 * (uint64_t)lade_cas_word(chunk->src + LADE_CASCADED_HEADER +
		                                    4 * (c->blocks - 1));
	return chunk->src_size < want   ? LADE_GPU_TRUNCATED
	       : chunk->src_size > want ? LADE_GPU_CORRUPT
	                                : LADE_GPU_OK;
}

/* What a block of threads is at. */
struct lade_cas_item {
	lade_gpu_chunk chunk;
	lade_cascaded_chunk c;
	uint32_t item, status, fault;
};

/*
 * Map: a block is 256 threads; a warp takes each eighth block of its part of a chunk.  A chunk has
 * 'parts' of these blocks, and 'joined', a word a chunk that is 0 when the kernel starts, gathers
 * their verdicts (NULL where 'parts' is 1).  Part p of chunk i is item i * parts + p, below 2^32;
 * with 'next' blocks take items from it, else block b has the b-th.  Shared: 42.5 KiB.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_CAS_WARPS, 4)
	lade_cascaded_decode(lade_gpu_batch batch, uint32_t parts, uint32_t *joined)
{
	LADE_SHARED(lade_cas_warp, warps, [LADE_CAS_WARPS]);
	LADE_SHARED(lade_cas_item, at);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	lade_cas_warp *w = &warps[warp];
	lade_stager s;
	lade_stage_open(&s, &w->barrier, lane);
	for (bool again = true; again; again = batch.next != nullptr) {
		if (threadIdx.x == 0) {
			at.item = batch.next ? atomicAdd(batch.next, 1) : blockIdx.x;
			at.fault = 0;
			if (at.item < batch.count * parts)
				at.status = lade_cas_open(batch, at.item / parts, &at.chunk, &at.c);
		}
		__syncthreads();
		if (at.item >= batch.count * parts)
			return;
		uint32_t part = at.item % parts;
		if (at.status == LADE_GPU_OK) {
			uint32_t tail = at.c.size - at.c.body;
			bool good = true;
			for (uint32_t k = part * LADE_CAS_WARPS + warp; k < at.c.blocks && good;
			     k += parts * LADE_CAS_WARPS)
				good = lade_cas_block(w, &s, at.chunk, at.c, k, lane);
			if (part == 0 && threadIdx.x < tail)
				at.chunk.dst[at.c.body + threadIdx.x] =
					at.chunk.src[LADE_CASCADED_TAIL + threadIdx.x];
			if (!good && lane == 0)
				at.fault = 1;
		}
		__syncthreads();
		if (threadIdx.x == 0) {
			/* The last part to come knows of all others; none looks at 'before', which
			 * may be the same table, after that. */
			uint32_t own = at.fault ? 0x10001 : 1, all = own, i = at.item / parts;
			if (parts > 1)
				all += atomicAdd(&joined[i], own);
			if (at.status == LADE_GPU_OK && all >> 16)
				at.status = LADE_GPU_CORRUPT;
			if ((all & 0xFFFF) == parts)
				lade_chunk_put(batch, i, at.status,
				               at.status == LADE_GPU_OK ? at.c.size : 0);
		}
	}
}

/* Writes the sizes that chunks tell; 'dst' and 'dst_cap' are not looked at.  Map: a thread a
 * chunk. */
extern "C" __global__ void lade_cascaded_size(lade_gpu_batch batch)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	lade_gpu_chunk chunk;
	lade_cascaded_chunk c = {};
	if (i >= batch.count)
		return;
	uint32_t status = lade_source_get(batch, i, &chunk);
	if (status == LADE_GPU_OK)
		status = lade_cas_header(chunk, &c);
	lade_chunk_put(batch, i, status, c.size);
}
