/*
 * checksum.cu: CRCs of 32 bits, Adler-32 and XXH64 of chunks: alone, put around chunks, and
 * compared with what stands around them (docs/format/checksums.md).
 *
 * CRCs and Adler-32 are sums over bytes with weights that depend on the distance from the end.  A
 * chunk is cut into units, each a warp's, counted from its end on: unit k has the bytes whose
 * distance is above k * unit and not above (k + 1) * unit, where the end is the first address
 * behind the chunk that is a multiple of 16.  So units, and their rows of 512 bytes, are read in
 * vectors of 16 bytes each at its own alignment, and only the first row and the last one are not
 * whole.  XXH64 is one chain from the first byte to the last, in four strands: four lanes make a
 * chunk.
 *
 *     units   a warp each, or four lanes a chunk for XXH64, to partial[unit * count + chunk]
 *     finish  a block for each chunk: partial results to the checksum, and what is done with it
 *     copy    where the chunk does not stand where its result is wanted
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/kernels/bytes.cuh"
#include "checksum/args.h"
#include "checksum/kernels/adler32.cuh"
#include "checksum/kernels/xxh64.cuh"

#define LADE_SUM_ROW 512u /* bytes that a warp reads at once */

/* The bytes of chunk 'i' that are summed; anything but LADE_GPU_OK means that they are not. */
static __device__ __forceinline__ uint32_t lade_sum_get(const lade_gpu_sums &s, uint32_t i,
                                                        lade_gpu_chunk *c)
{
	if (s.use == LADE_SUM_TELL)
		return lade_source_get(s.batch, i, c);
	if (s.use >= LADE_SUM_DECODE && !s.copy) {
		uint32_t status = lade_source_get(s.batch, i, c);
		c->dst_cap = LADE_CHUNK_MAX;
		if (status != LADE_GPU_OK)
			return status;
	} else {
		uint32_t status = lade_chunk_get(s.batch, i, c);
		if (status != LADE_GPU_OK)
			return status;
	}
	if (s.use == LADE_SUM_ENCODE) {
		if (c->src_size > LADE_CHUNK_MAX - s.extra)
			return LADE_GPU_LIMIT;
		return c->dst_cap < c->src_size + s.extra ? LADE_GPU_NOSPACE : LADE_GPU_OK;
	}
	if (c->src_size < s.extra)
		return LADE_GPU_TRUNCATED;
	c->src += s.first;
	c->src_size -= s.extra;
	return LADE_GPU_OK;
}

/* Whether a copied chunk fits its destination; reported only if its checksum is right. */
static __device__ __forceinline__ bool lade_sum_fits(const lade_gpu_sums &s,
                                                     const lade_gpu_chunk &c)
{
	return s.use < LADE_SUM_DECODE || c.dst_cap >= c.src_size;
}

/* ---- units ------------------------------------------------------------------------------ */

/*
 * The vector at 'at', a multiple of 16, of which only bytes of the chunk count: others are 0.  To
 * the first four bytes 'init' is added, if the chunk has four.
 */
static __device__ __forceinline__ uint4 lade_sum_edge(const uint8_t *src, uint32_t size,
                                                      const uint8_t *at, uint32_t init)
{
	uint32_t w[4] = {0, 0, 0, 0};
	int64_t from = at - src; /* where the chunk's bytes are counted from */
	if (from >= 4 && from + 16 <= (int64_t)size)
		return __ldg((const uint4 *)at);
	if (from <= -16 || from >= (int64_t)size)
		return make_uint4(0, 0, 0, 0);
	init = size < 4 ? 0 : init;
#pragma unroll
	for (int32_t k = 0; k < 16; k++) {
		int64_t i = from + k;
		uint32_t byte = i >= 0 && i < (int64_t)size ? __ldg(at + k) : 0;
		if (i >= 0 && i < 4)
			byte ^= init >> (8 * (uint32_t)i) & 0xFF;
		w[k / 4] |= byte << (8 * (k % 4));
	}
	return make_uint4(w[0], w[1], w[2], w[3]);
}

/* The units of a chunk. */
static __device__ __forceinline__ uint32_t lade_sum_count(const uint8_t *src, uint32_t size,
                                                          uint32_t unit)
{
	uint32_t end = ((uint32_t)(uintptr_t)src & 15) + size + 15; /* at most 2^31 + 29 */
	return size ? ((end & ~15u) + (unit - 1)) / unit : 0;
}

/* Hands the rows of unit 'k', which there is, to 'work', first to last, as the lane's vectors.  By
 * a whole warp. */
template <typename T>
static __device__ __forceinline__ void lade_sum_rows(T &work, const uint8_t *src, uint32_t size,
                                                     uint32_t unit, uint32_t k, uint32_t lane,
                                                     uint32_t init)
{
	/* Positions are counted from the multiple of 16 at or before the chunk's first byte. */
	uint32_t before = (uint32_t)(uintptr_t)src & 15;
	uint32_t stop = ((before + size + 15) & ~15u) - k * unit;
	uint32_t rows = ((stop < unit ? stop : unit) + (LADE_SUM_ROW - 1)) / LADE_SUM_ROW;
	/* A first row may begin before the chunk. */
	const uint8_t *row = src - before + (int64_t)stop - (int64_t)(rows * LADE_SUM_ROW);
	row += 16 * lane;
	/* Rows [first, last) are whole, and have none of the first four bytes, which may be in two
	 * rows. */
	uint32_t edge = rows * LADE_SUM_ROW + before + 4;
	uint32_t first = stop >= edge ? 0 : stop + LADE_SUM_ROW >= edge ? 1 : 2;
	uint32_t last = stop > before + size ? rows - 1 : rows;
#pragma unroll 1
	for (uint32_t r = 0; r < rows;) {
		if (r < first || r + 4 > last) {
			work.row(lade_sum_edge(src, size, row + r * LADE_SUM_ROW, init));
			r++;
			continue;
		}
		uint4 v[4];
#pragma unroll
		for (uint32_t n = 0; n < 4; n++)
			v[n] = __ldg((const uint4 *)(row + (r + n) * LADE_SUM_ROW));
#pragma unroll
		for (uint32_t n = 0; n < 4; n++)
			work.row(v[n]);
		r += 4;
	}
}

/* The parts 'k' of chunks 'i' that a warp makes: first ones of all chunks, then the second ones,
 * and so on; the warps take turns.  So they get like shares of those that have anything to do. */
struct lade_sum_turn {
	uint32_t k, i, warps;

	__device__ __forceinline__ explicit lade_sum_turn(const lade_gpu_sums &s)
	{
		uint32_t warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
		warps = gridDim.x * (blockDim.x / 32);
		k = warp / s.batch.count;
		i = warp % s.batch.count;
	}

	__device__ __forceinline__ void next(const lade_gpu_sums &s)
	{
		k += warps / s.batch.count;
		i += warps % s.batch.count;
		if (i >= s.batch.count) {
			i -= s.batch.count;
			k++;
		}
	}
};

/*
 * All units of a batch, to 'partial'.  Of a chunk with more than 'parts' units the warp of unit k
 * makes unit k + parts too, and so on, and joins them.
 */
template <typename T>
static __device__ __forceinline__ void lade_sum_units(const lade_gpu_sums &s, T &work,
                                                      uint32_t init)
{
	uint32_t lane = lade_lane();
	for (lade_sum_turn t(s); t.k < s.parts; t.next(s)) {
		uint32_t k = t.k, i = t.i;
		lade_gpu_chunk c;
		if (lade_sum_get(s, i, &c) != LADE_GPU_OK)
			continue;
		uint32_t units = lade_sum_count(c.src, c.src_size, s.unit);
		if (k >= units)
			continue;
		uint64_t sum = 0;
		for (uint32_t u = k + (units - 1 - k) / s.parts * s.parts;; u -= s.parts) {
			work.begin();
			lade_sum_rows(work, c.src, c.src_size, s.unit, u, lane, init);
			auto near = work.end(lane);
			sum = u + s.parts < units ? work.join(sum, near) : near;
			if (u == k)
				break;
		}
		if (lane == 0)
			s.partial[(uint64_t)k * s.batch.count + i] = sum;
	}
}

/* ---- CRCs ------------------------------------------------------------------------------- */

/* Five tables, by 7, 7, 6, 6 and 6 bits of a word, with an entry for each bank of shared memory: a
 * lane reads its own. */

/* The word's bits, reflected or not, between memory's order and bit i for x^i. */
static __device__ __forceinline__ uint32_t lade_crc_turn(uint32_t word, bool reflected)
{
	return reflected ? __brev(word) : __byte_perm(word, 0, 0x0123);
}

/* a times b. */
static __device__ uint32_t lade_crc_times(uint32_t a, uint32_t b, uint32_t poly)
{
	uint32_t r = 0;
#pragma unroll 1
	for (uint32_t i = 0; i < 32; i++, a <<= 1) {
		r = (r << 1) ^ ((uint32_t)((int32_t)r >> 31) & poly);
		r ^= (uint32_t)((int32_t)a >> 31) & b;
	}
	return r;
}

/* The lane has four words of each row, and of the rows so far a remainder at the place of each. */
struct lade_crc_work {
	const char *table;
	uint32_t bank; /* the lane's, in bytes */
	const lade_gpu_crc *crc;
	uint32_t weight[4], state[4];

	__device__ __forceinline__ void begin()
	{
		state[0] = state[1] = state[2] = state[3] = 0;
	}

	/* A word times x^4096: a row further. */
	__device__ __forceinline__ uint32_t next(uint32_t w, uint32_t add)
	{
		uint32_t a = *(const uint32_t *)(table + ((w << 7 & 0x3F80) | bank));
		uint32_t b = *(const uint32_t *)(table + 16384 + ((w & 0x3F80) | bank));
		uint32_t c = *(const uint32_t *)(table + 32768 + ((w >> 7 & 0x1F80) | bank));
		uint32_t d = *(const uint32_t *)(table + 40960 + ((w >> 13 & 0x1F80) | bank));
		uint32_t e = *(const uint32_t *)(table + 49152 + ((w >> 19 & 0x1F80) | bank));
		return (a ^ b ^ c) ^ (d ^ e ^ add);
	}

	__device__ __forceinline__ void row(uint4 v)
	{
		state[0] = next(state[0], v.x);
		state[1] = next(state[1], v.y);
		state[2] = next(state[2], v.z);
		state[3] = next(state[3], v.w);
	}

	/* The remainder of all words, times x^32 as CRCs have it; in every lane. */
	__device__ __forceinline__ uint32_t end(uint32_t lane)
	{
		uint32_t r = 0, s[4];
		(void)lane;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			s[k] = lade_crc_turn(state[k], crc->reflected);
#pragma unroll 4
		for (uint32_t i = 0; i < 32; i++) {
			r = (r << 1) ^ ((uint32_t)((int32_t)r >> 31) & crc->poly);
#pragma unroll
			for (uint32_t k = 0; k < 4; k++)
				r ^= (uint32_t)((int32_t)(s[k] << i) >> 31) & weight[k];
		}
		return __reduce_xor_sync(LADE_FULL, r);
	}

	/* That of two units, 'parts' units apart. */
	__device__ __forceinline__ uint32_t join(uint64_t far, uint32_t other)
	{
		return lade_crc_times((uint32_t)far, crc->hop, crc->poly) ^ other;
	}
};

/*
 * Map: a block is 512 threads, warp = units, lane = columns of four words.  Shared memory:
 * LADE_CRC_SHARED bytes, dynamic.
 */
extern "C" __global__ void __launch_bounds__(LADE_CRC_THREADS, 2)
	lade_crc32_units(lade_gpu_sums s, lade_gpu_crc crc)
{
	LADE_SHARED_DYNAMIC(uint32_t, table);
	uint32_t lane = lade_lane();
	for (uint32_t e = threadIdx.x / 32; e < 448; e += blockDim.x / 32) {
		uint32_t bits = e < 256 ? 7 : 6, entry = e < 256 ? e & 127 : e & 63;
		uint32_t place = e < 256 ? e / 128 * 7 : 14 + (e - 256) / 64 * 6, value = 0;
		for (uint32_t b = 0; b < bits; b++)
			value ^= entry >> b & 1 ? crc.basis[place + b] : 0;
		table[32 * e + lane] = value;
	}
	__syncthreads();
	lade_crc_work work;
	work.table = (const char *)table;
	work.bank = 4 * lane;
	work.crc = &crc;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		work.weight[k] = crc.weight[4 * lane + k];
	lade_sum_units(s, work, crc.first);
}

/* ---- Adler-32 --------------------------------------------------------------------------- */

/* The sum of bytes, and of bytes times their distance from the unit's end: 512 rows at most. */
struct lade_adler_work : lade_adler_lane {
	uint32_t hop; /* from a unit to one 'parts' further, modulo LADE_ADLER */

	/* | by distance 32 | plain 32 |, both below LADE_ADLER, in every lane. */
	__device__ __forceinline__ uint64_t end(uint32_t lane)
	{
		uint64_t far = by(LADE_SUM_ROW, 16 * (31 - lane));
		uint32_t plain = __reduce_add_sync(LADE_FULL, a % LADE_ADLER) % LADE_ADLER;
		uint32_t by =
			__reduce_add_sync(LADE_FULL, (uint32_t)(far % LADE_ADLER)) % LADE_ADLER;
		return (uint64_t)by << 32 | plain;
	}

	/* Those of two units, 'hop' bytes apart. */
	__device__ __forceinline__ uint64_t join(uint64_t far, uint64_t other)
	{
		uint32_t plain = (uint32_t)far;
		uint64_t by = (far >> 32) + (other >> 32) + (uint64_t)hop * plain;
		return by % LADE_ADLER << 32 | (plain + (uint32_t)other) % LADE_ADLER;
	}
};

/* Map: a block is whole warps, warp = units, lane = columns of 16 bytes.  No shared memory. */
extern "C" __global__ void __launch_bounds__(LADE_ADLER_THREADS) lade_adler32_units(lade_gpu_sums s)
{
	lade_adler_work work;
	work.hop = (uint32_t)((uint64_t)s.parts * s.unit % LADE_ADLER);
	lade_sum_units(s, work, 0);
}

/* ---- XXH64 ------------------------------------------------------------------------------ */

/* The 8 bytes at 'at', any address; those from 'low' to before 'high' may be read. */
static __device__ __forceinline__ uint64_t lade_xxh_load(const uint8_t *at, const uint8_t *low,
                                                         const uint8_t *high)
{
	uint32_t over = (uint32_t)(uintptr_t)at & 3;
	if (!((uintptr_t)at & 7))
		return __ldg((const uint64_t *)at);
	if (at - over >= low && at + 12 - over <= high) {
		const uint32_t *w = (const uint32_t *)(at - over);
		uint32_t a = __ldg(w), b = __ldg(w + 1), c = __ldg(w + 2);
		return (uint64_t)__funnelshift_r(b, c, 8 * over) << 32 |
		       __funnelshift_r(a, b, 8 * over);
	}
	uint64_t word = 0;
#pragma unroll
	for (uint32_t k = 0; k < 8; k++)
		word |= (uint64_t)__ldg(at + k) << (8 * k);
	return word;
}

/* Stripes at once: the loads of the next ones are on their way while these are worked in. */
#define LADE_XXH_AHEAD 8u

/* One of the four strands over all stripes of 32 bytes; 'at' is the strand's first word. */
template <bool ALIGNED>
static __device__ __forceinline__ uint64_t lade_xxh_strand(uint64_t acc, const uint8_t *at,
                                                           uint32_t stripes, const uint8_t *low,
                                                           const uint8_t *high)
{
	uint64_t now[LADE_XXH_AHEAD], next[LADE_XXH_AHEAD];
	uint32_t left = stripes;
	if (left >= LADE_XXH_AHEAD) {
#pragma unroll
		for (uint32_t k = 0; k < LADE_XXH_AHEAD; k++)
			now[k] = ALIGNED ? __ldg((const uint64_t *)(at + 32 * k))
					 : lade_xxh_load(at + 32 * k, low, high);
#pragma unroll 2
		for (; left >= 2 * LADE_XXH_AHEAD; left -= LADE_XXH_AHEAD) {
			at += 32 * LADE_XXH_AHEAD;
#pragma unroll
			for (uint32_t k = 0; k < LADE_XXH_AHEAD; k++)
				next[k] = ALIGNED ? __ldg((const uint64_t *)(at + 32 * k))
						  : lade_xxh_load(at + 32 * k, low, high);
#pragma unroll
			for (uint32_t k = 0; k < LADE_XXH_AHEAD; k++)
				acc = lade_xxh_round(acc, now[k]);
#pragma unroll
			for (uint32_t k = 0; k < LADE_XXH_AHEAD; k++)
				now[k] = next[k];
		}
#pragma unroll
		for (uint32_t k = 0; k < LADE_XXH_AHEAD; k++)
			acc = lade_xxh_round(acc, now[k]);
		at += 32 * LADE_XXH_AHEAD;
		left -= LADE_XXH_AHEAD;
	}
#pragma unroll 1
	for (; left > 0; left--, at += 32)
		acc = lade_xxh_round(acc, lade_xxh_load(at, low, high));
	return acc;
}

/* The bytes behind the stripes, and the last mixing. */
static __device__ __forceinline__ uint64_t lade_xxh_tail(uint64_t h, const uint8_t *at,
                                                         const uint8_t *high)
{
	for (; high - at >= 8; at += 8)
		h = lade_xxh_word(h, lade_xxh_load(at, at, high));
	if (high - at >= 4) {
		uint32_t word = 0;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			word |= (uint32_t)__ldg(at + k) << (8 * k);
		h ^= word * LADE_XXH_1;
		h = lade_xxh_turn(h, 23) * LADE_XXH_2 + LADE_XXH_3;
		at += 4;
	}
	for (; at < high; at++) {
		h ^= __ldg(at) * LADE_XXH_5;
		h = lade_xxh_turn(h, 11) * LADE_XXH_1;
	}
	return lade_xxh_end(h);
}

/* XXH64, seed 0, by the four lanes of 'mask'; 'strand' is the lane's number among them. */
static __device__ __forceinline__ uint64_t lade_xxh_chunk(const uint8_t *src, uint32_t size,
                                                          uint32_t strand, uint32_t mask)
{
	const uint8_t *high = src + size;
	uint64_t h = LADE_XXH_5, acc = 0;
	if (size >= 32) {
		uint32_t stripes = size / 32;
		acc = strand == 0   ? LADE_XXH_1 + LADE_XXH_2
		      : strand == 1 ? LADE_XXH_2
		      : strand == 2 ? 0
				    : 0 - LADE_XXH_1;
		acc = (uintptr_t)src & 7
		              ? lade_xxh_strand<false>(acc, src + 8 * strand, stripes, src, high)
		              : lade_xxh_strand<true>(acc, src + 8 * strand, stripes, src, high);
		src += (size_t)32 * stripes;
		uint64_t v[4];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			v[k] = __shfl_sync(mask, (unsigned long long)acc, (int)k, 4);
		h = lade_xxh_turn(v[0], 1) + lade_xxh_turn(v[1], 7) + lade_xxh_turn(v[2], 12) +
		    lade_xxh_turn(v[3], 18);
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			h = (h ^ lade_xxh_round(0, v[k])) * LADE_XXH_1 + LADE_XXH_4;
	}
	return lade_xxh_tail(h + size, src, high);
}

/* Map: a block is 64 threads and takes 16 chunks, four lanes each.  No shared memory. */
extern "C" __global__ void __launch_bounds__(LADE_XXH64_THREADS) lade_xxh64_units(lade_gpu_sums s)
{
	uint32_t mask = 0xFu << (threadIdx.x & 28), step = gridDim.x * 16;
	/* Below 2^31 + 2^31. */
	for (uint32_t i = blockIdx.x * 16 + threadIdx.x / 4; i < s.batch.count; i += step) {
		lade_gpu_chunk c;
		if (lade_sum_get(s, i, &c) != LADE_GPU_OK)
			continue;
		uint64_t sum = lade_xxh_chunk(c.src, c.src_size, threadIdx.x & 3, mask);
		if ((threadIdx.x & 3) == 0)
			s.partial[i] = sum;
	}
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Adds up what the block's threads have, by exclusive or or by sums of values below LADE_ADLER; in
 * every thread. */
template <bool XOR>
static __device__ __forceinline__ uint32_t lade_sum_block(uint32_t v, uint32_t *shared)
{
	v = XOR ? __reduce_xor_sync(LADE_FULL, v) : __reduce_add_sync(LADE_FULL, v) % LADE_ADLER;
	if (blockDim.x == 32)
		return v;
	__syncthreads();
	if (lade_lane() == 0)
		shared[threadIdx.x / 32] = v;
	__syncthreads();
	v = 0;
	for (uint32_t w = 0; w < blockDim.x / 32; w++)
		v = XOR ? v ^ shared[w] : (v + shared[w]) % LADE_ADLER;
	return v;
}

/* The CRC from 'units' partial results. */
static __device__ __forceinline__ uint32_t lade_crc_finish(const lade_gpu_sums &s,
                                                           const lade_gpu_crc &crc, uint32_t i,
                                                           const lade_gpu_chunk &c,
                                                           uint32_t units, uint32_t *shared)
{
	uint32_t r = 0, t = threadIdx.x, n = blockDim.x;
	for (uint32_t k = t < units ? (units - 1 - t) / n * n + t : units; k < units; k -= n) {
		r = lade_crc_times(r, crc.stride, crc.poly);
		r ^= (uint32_t)s.partial[(uint64_t)k * s.batch.count + i];
		if (k < n)
			break;
	}
	if (units > 1)
		r = lade_crc_times(r, crc.step[t & 31], crc.poly);
	if (units > 32)
		r = lade_crc_times(r, crc.leap[t / 32], crc.poly);
	r = lade_sum_block<true>(r, shared);
	uint32_t pad = (uint32_t)(0 - ((uintptr_t)c.src + c.src_size)) & 15;
	if (pad && c.src_size)
		r = lade_crc_times(r, crc.undo[pad], crc.poly);
	if (c.src_size < 4) {
		uint32_t init = crc.init;
		for (uint32_t b = 0; b < 8 * c.src_size; b++)
			init = (init << 1) ^ ((uint32_t)((int32_t)init >> 31) & crc.poly);
		r ^= init;
	}
	return (crc.mirrored ? __brev(r) : r) ^ crc.xor_out;
}

static __device__ __forceinline__ uint32_t lade_adler_finish(const lade_gpu_sums &s, uint32_t i,
                                                             const lade_gpu_chunk &c,
                                                             uint32_t units, uint32_t *shared)
{
	uint32_t a = 0, b = 0;
	for (uint32_t k = threadIdx.x; k < units; k += blockDim.x) {
		uint64_t part = s.partial[(uint64_t)k * s.batch.count + i];
		uint32_t plain = (uint32_t)part,
			 far = (uint32_t)((uint64_t)k * s.unit % LADE_ADLER);
		a = (a + plain) % LADE_ADLER;
		b = (uint32_t)((b + (part >> 32) + (uint64_t)far * plain) % LADE_ADLER);
	}
	a = lade_sum_block<false>(a, shared);
	b = lade_sum_block<false>(b, shared);
	/* Distances were counted from the multiple of 16 behind the chunk. */
	uint32_t pad = (uint32_t)(0 - ((uintptr_t)c.src + c.src_size)) & 15;
	b = (uint32_t)(((uint64_t)b + c.src_size + (uint64_t)(LADE_ADLER - pad) * a) % LADE_ADLER);
	return b << 16 | (a + 1) % LADE_ADLER;
}

/* What is done with the checksum of a chunk; by one thread. */
static __device__ __forceinline__ uint32_t lade_sum_use(const lade_gpu_sums &s, uint32_t i,
                                                        const lade_gpu_chunk &c, uint64_t sum)
{
	if (s.use == LADE_SUM_TELL) {
		s.sums[i] = sum;
	} else if (s.use == LADE_SUM_ENCODE) {
		uint8_t *to = c.dst + (s.first ? 0 : c.src_size);
		for (uint32_t k = 0; k < s.extra; k++)
			to[k] = (uint8_t)(sum >> (8 * k));
	} else {
		const uint8_t *from = s.first ? c.src - s.extra : c.src + c.src_size;
		uint64_t stored = 0;
		for (uint32_t k = 0; k < s.extra; k++)
			stored |= (uint64_t)from[k] << (8 * k);
		if (stored != sum)
			return LADE_GPU_CHECKSUM;
	}
	return LADE_GPU_OK;
}

/*
 * Map: block = chunks in turn, thread = its parts in turn.  A block is 32 or 256
 * threads; 256 where 'parts' is above 32.  Shared memory: 32 bytes.
 */
extern "C" __global__ void __launch_bounds__(LADE_SUM_FINISH_THREADS)
	lade_checksum_finish(lade_gpu_sums s, lade_gpu_crc crc)
{
	LADE_SHARED(uint32_t, shared, [8]);
	for (uint32_t i = blockIdx.x; i < s.batch.count; i += gridDim.x) {
		lade_gpu_chunk c;
		uint32_t status = lade_sum_get(s, i, &c), units = 0;
		uint64_t sum = 0;
		/* Where 'before' and 'status' are one table, no thread reads it after the first
		 * wrote there. */
		__syncthreads();
		if (status == LADE_GPU_OK && s.use != LADE_SUM_STRIP) {
			if (s.kind != LADE_SUM_XXH64)
				units = lade_sum_count(c.src, c.src_size, s.unit);
			units = units < s.parts ? units : s.parts;
			sum = s.kind == LADE_SUM_CRC ? lade_crc_finish(s, crc, i, c, units, shared)
			      : s.kind == LADE_SUM_ADLER ? lade_adler_finish(s, i, c, units, shared)
			                                 : s.partial[i];
			if (threadIdx.x == 0)
				status = lade_sum_use(s, i, c, sum);
		}
		if (status == LADE_GPU_OK && !lade_sum_fits(s, c))
			status = LADE_GPU_NOSPACE;
		if (threadIdx.x == 0)
			lade_chunk_put(s.batch, i, status,
			               s.use == LADE_SUM_ENCODE ? c.src_size + s.extra
			                                        : c.src_size);
	}
}

/*
 * Chunks to where they are wanted: between the stored checksums when encoding, alone when decoding.
 * Map: a block is whole warps, warp = pieces of 'unit' bytes.  No shared memory.
 */
extern "C" __global__ void __launch_bounds__(LADE_SUM_COPY_THREADS)
	lade_checksum_copy(lade_gpu_sums s)
{
	uint32_t lane = lade_lane();
	for (lade_sum_turn t(s); t.k < s.parts; t.next(s)) {
		uint32_t k = t.k, i = t.i;
		lade_gpu_chunk c;
		if (lade_sum_get(s, i, &c) != LADE_GPU_OK || !lade_sum_fits(s, c))
			continue;
		uint8_t *to = c.dst + (s.use == LADE_SUM_ENCODE ? s.first : 0);
		for (uint64_t from = (uint64_t)k * s.unit; from < c.src_size;
		     from += (uint64_t)s.parts * s.unit) {
			uint32_t n = c.src_size - (uint32_t)from;
			lade_bytes_copy(to + from, c.src + from, n < s.unit ? n : s.unit, lane);
		}
	}
}
