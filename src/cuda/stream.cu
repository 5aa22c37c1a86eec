/*
 * stream.cu: the filters that go from element to element, for elements of 1, 2, 4 and 8 bytes: zigzag
 * and byteswap both ways, delta of integers (docs/format/filters.md, sections 3, 4 and 12).
 *
 * A warp brings a tile (tile.cuh) to shared memory, works on its words, and takes it back.  Sums are
 * a block's work: each of its warps adds up a tile, a lane 128 bytes that lie together, and then
 * knows where the lane's sums begin.  Where chunks are few, each is cut into ranges, whose sums
 * another kernel makes first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/tile.cuh"

constexpr uint32_t LADE_STREAM_ZIG = 0, LADE_STREAM_ZAG = 1, LADE_STREAM_SWAP = 2,
		   LADE_STREAM_DIFF = 3;

#define LADE_STREAM_SLAB (LADE_TILE_WARPS * LADE_TILE_BYTES) /* a block's tiles */

/* ---- words of several elements ---------------------------------------------------------- */

/* The highest bit of each element of SIZE bytes, 1, 2 or 4; and the lowest. */
template <uint32_t SIZE> struct lade_lanes {
	static constexpr uint32_t HIGH = SIZE == 1 ? 0x80808080u : SIZE == 2 ? 0x80008000u : 0x80000000u;
	static constexpr uint32_t LOW = SIZE == 1 ? 0x01010101u : SIZE == 2 ? 0x00010001u : 1;
	static constexpr uint32_t FULL = SIZE == 1 ? 0xFF : SIZE == 2 ? 0xFFFF : 0xFFFFFFFFu;

	static __device__ __forceinline__ uint32_t add(uint32_t a, uint32_t b)
	{
		if (SIZE == 4)
			return a + b;
		return ((a & ~HIGH) + (b & ~HIGH)) ^ ((a ^ b) & HIGH);
	}

	static __device__ __forceinline__ uint32_t sub(uint32_t a, uint32_t b)
	{
		if (SIZE == 4)
			return a - b;
		return ((a | HIGH) - (b & ~HIGH)) ^ ((a ^ ~b) & HIGH);
	}

	/* Sums of a word's elements up to each. */
	static __device__ __forceinline__ uint32_t sums(uint32_t w)
	{
		if (SIZE == 1)
			w = add(w, w << 8);
		if (SIZE <= 2)
			w = add(w, w << 16);
		return w;
	}

	/* The last element in the place of all, and the first. */
	static __device__ __forceinline__ uint32_t last(uint32_t w)
	{
		return SIZE == 4 ? w : __byte_perm(w, 0, SIZE == 1 ? 0x3333 : 0x3232);
	}
	static __device__ __forceinline__ uint32_t first(uint32_t w)
	{
		return SIZE == 4 ? w : __byte_perm(w, 0, SIZE == 1 ? 0x0000 : 0x1010);
	}
};

/*
 * What becomes of a word.  'other' is the other word of an element of 8 bytes, of which odd lanes
 * have the upper one; 'before' is the word before this one, or two words before it where elements
 * have 8 bytes, and 'other_before' the other word of that.
 */
template <uint32_t OP, uint32_t SIZE>
static __device__ __forceinline__ uint32_t lade_stream_word(uint32_t w, uint32_t other,
                                                            uint32_t before, uint32_t other_before,
                                                            uint32_t lane)
{
	typedef lade_lanes<SIZE < 8 ? SIZE : 4> lanes;
	constexpr uint32_t SIGN = SIZE < 8 ? 8 * SIZE - 1 : 31;
	bool upper = lane & 1;
	if (OP == LADE_STREAM_SWAP)
		return SIZE == 1   ? w
		       : SIZE == 2 ? __byte_perm(w, 0, 0x2301)
				   : __byte_perm(SIZE == 8 ? other : w, 0, 0x0123);
	if (OP == LADE_STREAM_ZIG && SIZE == 8) {
		uint32_t sign = (uint32_t)((int32_t)(upper ? w : other) >> 31);
		return (upper ? __funnelshift_l(other, w, 1) : w << 1) ^ sign;
	}
	if (OP == LADE_STREAM_ZAG && SIZE == 8) {
		uint32_t sign = 0 - ((upper ? other : w) & 1);
		return (upper ? w >> 1 : __funnelshift_r(w, other, 1)) ^ sign;
	}
	if (OP == LADE_STREAM_ZIG)
		return ((w & ~lanes::HIGH) << 1) ^ (w >> SIGN & lanes::LOW) * lanes::FULL;
	if (OP == LADE_STREAM_ZAG)
		return (w >> 1 & ~lanes::HIGH) ^ (w & lanes::LOW) * lanes::FULL;
	if (SIZE == 8)
		return w - before - (upper && other < other_before ? 1 : 0);
	return lanes::sub(w, SIZE == 4 ? before : __funnelshift_l(before, w, 8 * SIZE));
}

/* ---- from word to word ------------------------------------------------------------------ */

/* A tile in shared memory.  'edge' is what stands before it: the first lane's word of that, or the
 * first two lanes' where elements have 8 bytes. */
template <uint32_t OP, uint32_t SIZE>
static __device__ __forceinline__ void lade_stream_tile(uint32_t *s, uint32_t edge, uint32_t lane)
{
	constexpr uint32_t BACK = SIZE == 8 ? 2 : 1; /* words from an element to the one before */
	uint32_t w[32];
#pragma unroll
	for (uint32_t k = 0; k < 32; k++) {
		uint32_t word = s[33 * k + lane], other = 0, before = 0, other_before = 0;
		if (SIZE == 8)
			other = __shfl_xor_sync(LADE_FULL, word, 1);
		if (OP == LADE_STREAM_DIFF) {
			before = edge;
			if (k || lane >= BACK)
				before = s[33 * k + lane - (lane < BACK ? BACK + 1 : BACK)];
			if (SIZE == 8)
				other_before = __shfl_xor_sync(LADE_FULL, before, 1);
		}
		w[k] = lade_stream_word<OP, SIZE>(word, other, before, other_before, lane);
	}
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		s[33 * k + lane] = w[k];
}

template <uint32_t OP>
static __device__ __forceinline__ void lade_stream_sizes(uint32_t log2, uint32_t *s, uint32_t edge,
                                                         uint32_t lane)
{
	if (log2 == 0)
		lade_stream_tile<OP, 1>(s, edge, lane);
	else if (log2 == 1)
		lade_stream_tile<OP, 2>(s, edge, lane);
	else if (log2 == 2)
		lade_stream_tile<OP, 4>(s, edge, lane);
	else
		lade_stream_tile<OP, 8>(s, edge, lane);
}

/* Every 'parts'-th tile of a chunk, from 'part' on. */
static __device__ __forceinline__ void lade_stream_chunk(uint32_t *s, const lade_gpu_chunk &c,
                                                         uint32_t op, uint32_t log2, uint32_t part,
                                                         uint32_t parts, uint32_t lane)
{
	uint32_t tiles = (c.src_size + LADE_TILE_BYTES - 1) / LADE_TILE_BYTES;
	uint32_t bytes = c.src_size < LADE_TILE_BYTES ? c.src_size : LADE_TILE_BYTES;
	for (uint32_t at = part; at < tiles; at += parts) {
		/* The last tile reaches back over elements that another warp does too, with the
		 * same result, rather than have fewer. */
		uint32_t first = at * LADE_TILE_BYTES, back = log2 == 3 ? 2 : 1, edge = 0;
		first = c.src_size - first < bytes ? c.src_size - bytes : first;
		/* The element before the tile, and no byte before that one: there may be none. */
		uint32_t size = log2 < 2 ? 1u << log2 : 4;
		if (op == LADE_STREAM_DIFF && first && lane < back)
			edge = lade_tile_load_some(c.src + first - size * (back - lane),
						   (int32_t)size)
			       << (32 - 8 * size);
		lade_tile_get_plain<32>(s, c.src + first, bytes, lane);
		__syncwarp();
		if (op == LADE_STREAM_ZIG)
			lade_stream_sizes<LADE_STREAM_ZIG>(log2, s, edge, lane);
		else if (op == LADE_STREAM_ZAG)
			lade_stream_sizes<LADE_STREAM_ZAG>(log2, s, edge, lane);
		else if (op == LADE_STREAM_SWAP)
			lade_stream_sizes<LADE_STREAM_SWAP>(log2, s, edge, lane);
		else
			lade_stream_sizes<LADE_STREAM_DIFF>(log2, s, edge, lane);
		__syncwarp();
		lade_tile_put_plain<32>(s, c.dst + first, bytes, lane);
		__syncwarp();
	}
}

/*
 * Map: a block is 128 threads, each warp of it on its own; the grid has less than 2^28 blocks, best
 * a warp for each tile.  'op' is one of LADE_STREAM_..., elements have 2^log2 bytes, 8 at most;
 * 'partial' is the status of chunks that end with a part of one.  Sources and destinations have any
 * alignment and do not overlap.  'next' is not used.  Shared memory: 16.5 KiB, a tile a warp.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_stream(lade_gpu_batch batch, uint32_t op, uint32_t log2, uint32_t partial)
{
	LADE_SHARED(uint32_t, words, [LADE_TILE_WARPS][LADE_TILE_SHARED]);
	uint32_t lane = lade_lane(), *s = words[threadIdx.x / 32];
	lade_tile_batch(batch, [=](uint32_t i, uint32_t part, uint32_t parts) {
		lade_gpu_chunk c;
		uint32_t status = lade_tile_chunk(batch, i, 1u << log2, partial, &c);
		if (status == LADE_GPU_OK)
			lade_stream_chunk(s, c, op, log2, part, parts, lane);
		lade_tile_verdict(batch, i, part, status, c.src_size, lane);
	});
}

/* ---- sums ------------------------------------------------------------------------------- */

/* A chunk's range of a block: bytes [begin, end), 'begin' a multiple of a slab. */
struct lade_sum_range {
	uint32_t begin, end;
};

static __device__ __forceinline__ lade_sum_range lade_sum_part(uint32_t size, uint32_t part,
                                                               uint32_t parts)
{
	uint32_t slabs = (size + LADE_STREAM_SLAB - 1) / LADE_STREAM_SLAB;
	uint32_t each = (slabs + parts - 1) / parts; /* at most 2^16 */
	uint64_t begin = (uint64_t)each * part * LADE_STREAM_SLAB;
	uint64_t end = begin + (uint64_t)each * LADE_STREAM_SLAB;
	lade_sum_range r = {(uint32_t)(begin < size ? begin : size),
	                    (uint32_t)(end < size ? end : size)};
	return r;
}

/* The sum of the lane's words of a tile, 32 that lie together; bits above an element's are not 0. */
static __device__ __forceinline__ uint64_t lade_sum_total(uint32_t log2, const uint32_t *w)
{
	uint64_t wide = 0;
	uint32_t sum = 0;
	if (log2 == 3) {
#pragma unroll
		for (uint32_t k = 0; k < 32; k += 2)
			wide += (uint64_t)w[k + 1] << 32 | w[k];
		return wide;
	}
#pragma unroll
	for (uint32_t k = 0; k < 32; k++)
		sum = log2 == 0   ? __dp4a(w[k], 0x01010101u, sum)
		      : log2 == 1 ? sum + (w[k] & 0xFFFF) + (w[k] >> 16)
				  : sum + w[k];
	return sum;
}

/* The lane's words become sums, from 'before' on. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_sum_lane(uint32_t *w, uint64_t before)
{
	typedef lade_lanes<SIZE < 8 ? SIZE : 4> lanes;
	uint32_t sum = lanes::first((uint32_t)before);
#pragma unroll
	for (uint32_t k = 0; k < 32; k += SIZE == 8 ? 2 : 1) {
		if (SIZE == 8) {
			before += (uint64_t)w[k + 1] << 32 | w[k];
			w[k] = (uint32_t)before;
			w[k + 1] = (uint32_t)(before >> 32);
		} else {
			w[k] = lanes::add(lanes::sums(w[k]), sum);
			sum = lanes::last(w[k]);
		}
	}
}

/* The sum over the lanes before this one; '*total' that over all. */
static __device__ __forceinline__ uint64_t lade_sum_warp(uint64_t v, uint32_t lane, uint64_t *total)
{
	unsigned long long all = v;
#pragma unroll
	for (uint32_t d = 1; d < 32; d *= 2) {
		unsigned long long below = __shfl_up_sync(LADE_FULL, all, d);
		all += lane >= d ? below : 0;
	}
	*total = __shfl_sync(LADE_FULL, all, 31);
	return all - v;
}

/*
 * Bytes [begin, end) of a chunk, by a whole block: sums from 'before' on to the same bytes of 'dst', or,
 * where that is NULL, only their sum, which is returned.  'totals' are the warps' sums, of the slab at
 * hand and of the one before, which warps may still look at.
 */
static __device__ __forceinline__ uint64_t
lade_sum_run(uint32_t log2, uint32_t *s, uint64_t (*totals)[LADE_TILE_WARPS], const uint8_t *src,
             uint8_t *dst, lade_sum_range r, uint64_t before, uint32_t lane)
{
	uint32_t warp = threadIdx.x / 32, turn = 0;
	for (uint32_t slab = r.begin; slab < r.end; slab += LADE_STREAM_SLAB, turn ^= 1) {
		uint32_t at = slab + warp * LADE_TILE_BYTES, w[32];
		uint32_t bytes = at < r.end ? r.end - at : 0;
		bytes = bytes < LADE_TILE_BYTES ? bytes : LADE_TILE_BYTES;
		uint64_t total = 0, mine = 0;
		if (bytes) {
			lade_tile_get_plain<32>(s, src + at, bytes, lane);
			__syncwarp();
#pragma unroll
			for (uint32_t k = 0; k < 32; k++)
				w[k] = s[33 * lane + k];
			mine = lade_sum_warp(lade_sum_total(log2, w), lane, &total);
		}
		if (lane == 0)
			totals[turn][warp] = total;
		__syncthreads();
#pragma unroll
		for (uint32_t k = 0; k < LADE_TILE_WARPS; k++) {
			uint64_t one = totals[turn][k];
			mine += k < warp ? one : 0;
			total = k ? total + one : one;
		}
		if (bytes && dst) {
#pragma unroll
			for (uint32_t k = 0; k < 32; k++)
				w[k] = s[33 * lane + k];
			if (log2 == 0)
				lade_sum_lane<1>(w, before + mine);
			else if (log2 == 1)
				lade_sum_lane<2>(w, before + mine);
			else if (log2 == 2)
				lade_sum_lane<4>(w, before + mine);
			else
				lade_sum_lane<8>(w, before + mine);
#pragma unroll
			for (uint32_t k = 0; k < 32; k++)
				s[33 * lane + k] = w[k];
			__syncwarp();
			lade_tile_put_plain<32>(s, dst + at, bytes, lane);
			__syncwarp();
		}
		before += total;
	}
	return before;
}

/* The sums of all ranges but the last of each chunk, to partial[part * count + chunk].
 * Map: block = ranges in turn; else as below. */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_delta_ranges(lade_gpu_batch batch, uint32_t log2, uint32_t parts, uint64_t *partial)
{
	LADE_SHARED(uint32_t, words, [LADE_TILE_WARPS][LADE_TILE_SHARED]);
	LADE_SHARED(uint64_t, totals, [2][LADE_TILE_WARPS]);
	uint32_t lane = lade_lane(), *s = words[threadIdx.x / 32];
	uint64_t all = (uint64_t)batch.count * (parts - 1);
	for (uint64_t at = blockIdx.x; at < all; at += gridDim.x) {
		uint32_t part = (uint32_t)(at / batch.count), i = (uint32_t)(at % batch.count);
		lade_gpu_chunk c;
		uint64_t sum = 0;
		__syncthreads();
		if (lade_tile_chunk(batch, i, 1, LADE_GPU_OK, &c) == LADE_GPU_OK)
			sum = lade_sum_run(log2, s, totals, c.src, nullptr,
			                   lade_sum_part(c.src_size, part, parts), 0, lane);
		if (threadIdx.x == 0)
			partial[at] = sum;
	}
}

/*
 * Map: block = ranges in turn, 'parts' of a chunk; a block is 128 threads, warp = a tile of the slab
 * at hand.  Elements have 2^log2 bytes; 'partial' are the sums of ranges, where 'parts' is above 1;
 * 'corrupt' is the status of chunks that end with a part of an element.  Sources and destinations
 * have any alignment and do not overlap.  'next' is not used.  Shared memory: 16.6 KiB.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_delta_decode(lade_gpu_batch batch, uint32_t log2, uint32_t parts,
                          const uint64_t *partial, uint32_t corrupt)
{
	LADE_SHARED(uint32_t, words, [LADE_TILE_WARPS][LADE_TILE_SHARED]);
	LADE_SHARED(uint64_t, totals, [2][LADE_TILE_WARPS]);
	uint32_t lane = lade_lane(), *s = words[threadIdx.x / 32];
	uint64_t all = (uint64_t)batch.count * parts;
	for (uint64_t at = blockIdx.x; at < all; at += gridDim.x) {
		uint32_t part = (uint32_t)(at / batch.count), i = (uint32_t)(at % batch.count);
		lade_gpu_chunk c;
		uint32_t status = lade_tile_chunk(batch, i, 1u << log2, corrupt, &c);
		/* All have done with 'totals'. */
		__syncthreads();
		if (status == LADE_GPU_OK) {
			uint64_t sum = 0, before;
			for (uint32_t p = lane; p < part; p += 32)
				sum += partial[(uint64_t)p * batch.count + i];
			lade_sum_warp(sum, lane, &before);
			lade_sum_run(log2, s, totals, c.src, c.dst,
			             lade_sum_part(c.src_size, part, parts), before, lane);
		}
		if (part == 0 && threadIdx.x == 0)
			lade_chunk_put(batch, i, status, c.src_size);
	}
}
