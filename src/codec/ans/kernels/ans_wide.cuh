/*
 * ans_wide.cuh: encodes chunks of elements of 2, 4 and 8 bytes to the ANS format
 * (docs/format/ans.md, section 7), by a block of G warps, 4 or 8, that has the chunk or a part of
 * it in shared memory.
 *
 * A warp has one or two sub-blocks of 4 KiB, which only it touches: it counts them, splits their
 * planes in place, raw ones first, and writes the coded columns from the top down over the symbols
 * that they encode.  Planes that a sample shows to be noise are not counted.  While a chunk is
 * coded the next one is prefetched to the L2 cache, and each warp starts to copy its part of that
 * as soon as its sub-blocks are written.  Chunks that do not fit are counted in global memory, and
 * coded part by part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_WIDE_CUH
#define LADE_CUDA_ANS_WIDE_CUH

#include "codec/ans/kernels/ans_staging.cuh"
#include "codec/ans/kernels/ans_put.cuh"

/* ---- tables ----------------------------------------------------------------------------- */

/* What warps exchange: costs of planes, and parts of sums; and the halves of each lane of a warp's
 * sub-blocks. */
template <int W, int G> struct lade_ans_reports {
	uint4 plane[W][G];
	uint32_t sum[2][G];
	uint8_t halves[G][2][32];
};
#define LADE_ANS_IS_STORED 255 /* in place of halves, of which a sub-block of 16 KiB has 252 */

/* Exclusive prefix sum over a block's threads; '*all' is the whole sum.  Two calls in a row must
 * use different 'sum's. */
template <int G>
LADE_DEVICE uint32_t lade_ans_block_scan(uint32_t (&sum)[G], uint32_t mine, uint32_t *all,
                                         uint32_t lane)
{
	uint32_t upto = lade_warp_scan(mine, lane), warp = lade_ans_thread() / 32;
	if (lane == 31)
		sum[warp] = upto;
	__syncthreads();
	uint32_t got = lane < G ? sum[lane] : 0;
	*all = lade_ans_sum(got);
	return lade_ans_sum(lane < warp ? got : 0) + upto - mine;
}

/* Counts are shifted right by this, so that their sum is below 2^17. */
LADE_DEVICE uint32_t lade_ans_shift(uint32_t total)
{
	return total >> 16 ? 16 - (uint32_t)__clz((int)total) : 0;
}

LADE_DEVICE uint32_t lade_ans_scaled(uint32_t count, uint32_t shift)
{
	return (count >> shift) + (shift && count);
}

/* Each thread has COUNT adjacent symbols. */
template <int G> struct lade_ans_symbols {
	static constexpr int COUNT = 8 / G;
};

/* A warp's part of a plane's cost; 'counts' are the thread's, and all sum to about 'total'. */
template <int G>
LADE_DEVICE void lade_ans_cost_part(uint4 (&part)[G], const uint32_t *counts, uint32_t shift,
                                    uint32_t total, uint32_t lane)
{
	lade_ans_cost v = {0, 0, 0, 0};
	uint32_t present = 0, all = lade_ans_log2(total), thread = lade_ans_thread();
#pragma unroll
	for (int j = 0; j < lade_ans_symbols<G>::COUNT; j++) {
		uint32_t count = lade_ans_scaled(counts[j], shift);
		if (count) {
			v.value = (uint32_t)lade_ans_symbols<G>::COUNT * thread + j;
			lade_ans_cost_add(count, total, all, &v);
		}
		present += (uint32_t)__popc((int)__ballot_sync(LADE_FULL, count > 0));
	}
	uint4 mine = {lade_ans_sum(v.least), lade_ans_sum(v.extra), present,
	              __reduce_max_sync(LADE_FULL, v.value)};
	if (lane == 0)
		part[thread / 32] = mine;
}

/* The cost, from the parts of all warps. */
template <int G>
LADE_DEVICE lade_ans_cost lade_ans_cost_join(const uint4 (&part)[G], uint32_t total, uint32_t lane)
{
	uint4 got = {0, 0, 0, 0};
	if (lane < G)
		got = part[lane];
	lade_ans_cost v = {0, __reduce_max_sync(LADE_FULL, got.w), lade_ans_sum(got.x),
	                   lade_ans_sum(got.y)};
	return lade_ans_mode_by_cost(v, lade_ans_sum(got.z), total);
}

/* Writes the k-th coded plane's table and its description, by a whole block; returns the words of
 * the description. */
template <int G>
LADE_DEVICE uint32_t lade_ans_table_group(const lade_ans_memory &r, uint32_t (&sum)[2][G],
                                          const uint32_t *counts, uint32_t shift, uint32_t total,
                                          uint32_t k, const lade_ans_choice &c, uint32_t lane)
{
	constexpr int COUNT = lade_ans_symbols<G>::COUNT;
	uint32_t thread = lade_ans_thread(), all, mine = 0, above[COUNT], freq[COUNT], q[COUNT];
	uint32_t *text = lade_ans_description(r, (uint32_t)__popc((int)c.coded), k);
	uint32_t *symbol = (uint32_t *)(r.dynamic + 1024 * k) + COUNT * thread;
#pragma unroll
	for (int j = 0; j < COUNT; j++) {
		uint32_t count = lade_ans_scaled(counts[j], shift);
		freq[j] = count > 0;
		above[j] = lade_ans_above(count, total, c.bits);
		mine += above[j] | freq[j] << 20;
	}
	/* Counts below, of less than 2^18, and symbols, as in lade_ans_normalise(). */
	uint32_t below = lade_ans_block_scan(sum[0], mine, &all, lane);
	if (thread < 64)
		text[thread] = 0;
	float scale = (float)((1u << c.bits) - (all >> 20)) / (float)(all & 0xFFFFF);
	float under = (float)(below & 0xFFFFF);
	uint32_t before = (uint32_t)(under * scale + 0.5f);
	mine = 0;
#pragma unroll
	for (int j = 0; j < COUNT; j++) {
		uint32_t first = before + (below >> 20);
		under += (float)above[j];
		before = (uint32_t)(under * scale + 0.5f);
		below += freq[j] << 20;
		freq[j] = freq[j] ? before - first + (below >> 20) : 0;
		q[j] = freq[j] ? 31 - (uint32_t)__clz((int)freq[j]) : 0;
		symbol[j] = freq[j] ? lade_ans_symbol(freq[j], first, c.bits) : 0;
		mine += freq[j] ? q[j] << 10 | 1 : 0;
	}
	/* Symbols below, and the bits of their mantissas. */
	below = lade_ans_block_scan(sum[1], mine, &all, lane);
	uint32_t begin = 8 * (32 + ((all & 1023) + 1) / 2), there = 0;
#pragma unroll
	for (int j = 0; j < COUNT; j++) {
		if (!freq[j])
			continue;
		there |= 1u << j;
		lade_ans_put_bits(text, 256 + 4 * (below & 1023), q[j], 4);
		lade_ans_put_bits(text, begin + (below >> 10), freq[j] - (1u << q[j]), q[j]);
		below += q[j] << 10 | 1;
	}
	if (COUNT > 1)
		lade_ans_put_bits(text, COUNT * thread, there, COUNT);
	there = __ballot_sync(LADE_FULL, there);
	if (COUNT == 1 && lane == 0)
		text[thread / 32] = there;
	return (begin + (all >> 10) + 31) / 32;
}

/* Counts 'planes' of the chunk, by a whole block. */
template <int W, int G>
LADE_DEVICE void lade_ans_count_wanted(const lade_ans_staging<G> &h, const lade_ans_chunk &p,
                                       uint32_t have, uint32_t planes, uint32_t cross,
                                       lade_ans_address count)
{
	if (p.size - p.tail <= G * h.own)
		lade_ans_count_planes<W>(h.bytes, have, planes, cross, count,
		                         lade_ans_thread() & 31);
	else if (planes)
		lade_ans_count_chunk<W, G>(&p, planes, cross, count);
}

/* A warp's part of the sampled planes' sums of squared counts, which separate noise from data.
 * Clears the counts. */
template <int W, int G>
LADE_DEVICE void lade_ans_square_part(lade_ans_reports<W, G> *reports, uint32_t *counts,
                                      uint32_t lane)
{
#pragma unroll
	for (uint32_t n = 0; n < W - 1; n++) {
		uint32_t some = 0;
#pragma unroll
		for (int j = 0; j < lade_ans_symbols<G>::COUNT; j++) {
			uint32_t one = counts[256 * n + j];
			counts[256 * n + j] = 0;
			some += one * one;
		}
		some = lade_ans_sum(some);
		if (lane == 0)
			reports->plane[n][lade_ans_thread() / 32].x = some;
	}
}

/* The sampled planes that are not noise, and the last one, a bit each. */
template <int W, int G>
LADE_DEVICE uint32_t lade_ans_square_join(const lade_ans_reports<W, G> *reports, uint32_t lane)
{
	uint32_t wanted = 1u << (W - 1);
#pragma unroll
	for (uint32_t n = 0; n < W - 1; n++) {
		uint32_t some = lane < G ? reports->plane[n][lane].x : 0;
		wanted |= (uint32_t)(lade_ans_sum(some) >= lade_ans_sample_of<W, G>::NOISE) << n;
	}
	return wanted;
}

/*
 * Counts the planes that a sample does not show to be noise, and computes their costs, by a whole
 * block; returns them, a bit each.  A chunk that is too small for a sample is counted whole.
 * 'counts' are the block's, 'total' is their scaled sum.
 */
template <int W, int G>
LADE_DEVICE uint32_t lade_ans_count_costs(const lade_ans_staging<G> &h, uint32_t have,
                                          uint32_t cross, lade_ans_reports<W, G> *reports,
                                          uint32_t *counts, uint32_t shift, uint32_t total)
{
	constexpr uint32_t ALL = (1u << W) - 1, LAST = 1u << (W - 1);
	uint32_t thread = lade_ans_thread(), lane = thread & 31;
	const lade_ans_chunk &p = lade_ans_staged_now(h).chunk;
	uint32_t bytes = p.size - p.tail;
	lade_ans_address count = lade_ans_address_of(counts);
	/* All warps need whole tiles to sample. */
	bool held = bytes <= G * h.own;
	bool sample = held ? bytes >= LADE_ANS_TILE * ((G - 1) * lade_ans_staged_tiles(h, p, 0) + 1)
	                   : !((uintptr_t)p.src & 15);
	uint32_t planes = !sample ? ALL : held ? LAST : 0, wanted = ALL;
	if (sample && held)
		lade_ans_sample<W>(h, p, cross, count, lane);
	else if (sample)
		lade_ans_sample_global<W, G>(&p, cross, count);
	lade_ans_count_wanted<W>(h, p, have, planes, cross, count);
	__syncthreads();
	counts += lade_ans_symbols<G>::COUNT * thread;
	for (;;) {
#pragma unroll 1
		for (uint32_t m = planes; m; m &= m - 1) {
			uint32_t n = (uint32_t)__ffs((int)m) - 1;
			lade_ans_cost_part<G>(reports->plane[n], counts + 256 * n, shift, total,
			                      lane);
		}
		if (sample)
			lade_ans_square_part(reports, counts, lane);
		__syncthreads();
		if (!sample)
			return wanted;
		wanted = lade_ans_square_join(reports, lane);
		planes ^= wanted;
		if (!planes)
			return wanted;
		sample = false;
		lade_ans_count_wanted<W>(h, p, have, planes, cross, count);
		__syncthreads();
	}
}

/* The modes of the planes and the number of states, from the costs, by a whole block.  Planes that
 * are not 'wanted' are raw. */
template <int W, int G>
LADE_DEVICE lade_ans_choice lade_ans_choose_wide(const lade_ans_memory &r,
                                                 const lade_ans_reports<W, G> *reports,
                                                 uint32_t wanted, uint32_t total, uint32_t bits)
{
	uint32_t thread = lade_ans_thread(), least = 0, extra = 0;
	lade_ans_choice c = {0, ((1u << W) - 1) & ~wanted, bits};
	if (thread < W && !(wanted >> thread & 1))
		r.state->mode[thread] = ANS_PLANE_RAW, r.state->word[thread] = 0;
#pragma unroll 1
	for (uint32_t m = wanted; m; m &= m - 1) {
		uint32_t n = (uint32_t)__ffs((int)m) - 1;
		lade_ans_cost v = lade_ans_cost_join<G>(reports->plane[n], total, thread & 31);
		c.coded |= (uint32_t)(v.mode == ANS_PLANE_CODED) << n;
		c.raw |= (uint32_t)(v.mode == ANS_PLANE_RAW) << n;
		least += v.least;
		extra += v.extra;
		if (thread == 0) {
			r.state->mode[n] = v.mode;
			r.state->word[n] = v.value;
		}
	}
	c.bits = lade_ans_bits_of(bits, (uint32_t)__popc((int)c.coded), least, extra);
	return c;
}

/*
 * Counts, chooses the planes' modes and the states, and builds the tables, by a whole block, whose
 * last thread takes the next chunk.  Returns the choice, and in '*words' the words of all
 * descriptions.  The counts are 0 before and afterwards.
 */
template <int W, int G>
LADE_DEVICE lade_ans_choice lade_ans_prepare(const lade_gpu_batch &batch, const lade_ans_memory &r,
                                             lade_ans_staging<G> &h, uint32_t have, uint32_t cross,
                                             lade_ans_reports<W, G> *reports, uint32_t bits,
                                             uint32_t *words)
{
	constexpr int COUNT = lade_ans_symbols<G>::COUNT;
	uint32_t thread = lade_ans_thread(), lane = thread & 31;
	const lade_ans_chunk &p = lade_ans_staged_now(h).chunk;
	uint32_t turn = 0, total = (p.size - p.tail) / W, shift = lade_ans_shift(total);
	if (thread == 32 * G - 1)
		turn = batch.next ? lade_turn_next(batch, lade_ans_staged_now(h).i) : batch.count;
	uint32_t *counts = (uint32_t *)(r.dynamic + r.bytes - 1024 * W);
	total >>= shift;
	uint32_t wanted = lade_ans_count_costs<W, G>(h, have, cross, reports, counts, shift, total);
	lade_ans_choice c = lade_ans_choose_wide(r, reports, wanted, total, bits);
	counts += COUNT * thread;
	*words = 0;
	uint32_t k = 0;
#pragma unroll 1
	for (uint32_t m = c.coded; m; m &= m - 1, k++) {
		uint32_t n = (uint32_t)__ffs((int)m) - 1;
		uint32_t some = lade_ans_table_group<G>(r, reports->sum, counts + 256 * n, shift,
		                                        total, k, c, lane);
		if (thread == 0)
			r.state->word[n] = some;
		*words += some;
	}
#pragma unroll
	for (uint32_t n = 0; n < W; n++)
#pragma unroll
		for (int j = 0; j < COUNT; j++)
			counts[256 * n + j] = 0;
	if (thread == 0)
		r.state->choice = c;
	if (thread == 32 * G - 1) {
		lade_ans_current *next = lade_ans_staged_next(h);
		next->i = turn;
		lade_ans_take<W>(batch, lade_ans_staged_now(h).chunk.block_log, next);
		lade_stage_ahead(next->chunk.src,
		                 next->chunk.size < G * h.own ? next->chunk.size : G * h.own);
	}
	__syncthreads();
	return c;
}

/* ---- sub-blocks ------------------------------------------------------------------------- */

/*
 * Stores a row of planes in a sub-block's memory: raw planes at its start, coded ones at its end,
 * in alternating rows of 32 words.  A coded row is rotated so that a lane's units are in its
 * column.
 */
template <int W>
LADE_DEVICE void lade_ans_put_row(uint8_t *to, const lade_ans_choice &c, const uint32_t *plane,
                                  uint32_t g, uint32_t block, uint32_t lane)
{
	uint32_t *raw = (uint32_t *)to + 32 * g + lane;
	uint32_t count = (uint32_t)__popc((int)c.coded);
	uint32_t *coded = (uint32_t *)to + (W - count) * (block / 4 / W) + 32 * g * count +
	                  ((lane - g) & 31);
#pragma unroll
	for (uint32_t n = 0; n < W; n++) {
		if (c.raw >> n & 1) {
			*raw = plane[n];
			raw += block / 4 / W;
		} else if (c.coded >> n & 1) {
			*coded = plane[n];
			coded += 32;
		}
	}
}

/* Splits a tile into its planes in place, by a whole warp. */
template <int W>
LADE_DEVICE void lade_ans_split_planes(uint8_t *tile, const lade_ans_choice &c, uint32_t cross,
                                       uint32_t lane)
{
	constexpr uint32_t ROWS = 32 / W, PLANE = LADE_ANS_TILE / W;
	uint32_t word[32];
	uint8_t *at = tile + 4 * lane;
#pragma unroll
	for (uint32_t g = 0; g < ROWS; g++) {
		uint32_t unit[W];
		lade_ans_unit_get<W>(tile + 128 * W * g + 4 * W * lane, unit);
		lade_ans_planes_of<W>(unit, word + W * g, cross);
	}
	__syncwarp();
	uint32_t count = (uint32_t)__popc((int)c.coded);
	uint8_t *coded = tile + (W - count) * PLANE;
#pragma unroll
	for (uint32_t n = 0; n < W; n++) {
		if (c.raw >> n & 1) {
#pragma unroll
			for (uint32_t g = 0; g < ROWS; g++)
				*(uint32_t *)(at + 128 * g) = word[W * g + n];
			at += PLANE;
		} else if (c.coded >> n & 1) {
			uint8_t *row = coded;
			uint32_t mine = lade_ans_opaque(4 * lane);
#pragma unroll
			for (uint32_t g = 0; g < ROWS; g++, row += 128 * count)
				*(uint32_t *)(row + ((mine - 4 * g) & 124)) = word[W * g + n];
			coded += 128;
		}
	}
	__syncwarp();
}

/* The same of a sub-block of any size, from global memory at any address. */
template <int W>
LADE_DEVICE void lade_ans_fetch(uint8_t *to, const uint8_t *src, const lade_ans_choice &c,
                                uint32_t cross, uint32_t block, uint32_t units, uint32_t lane)
{
	for (uint32_t g = 0; 32 * g < units; g++) {
		uint32_t unit[W], plane[W], u = 32 * g + lane;
#pragma unroll
		for (uint32_t k = 0; k < W; k++) {
			const uint8_t *from = src + 4 * (W * u + k);
			unit[k] = 0;
			if (u < units)
				unit[k] = (uintptr_t)from & 3 ? lade_ans_word_at<false>(from)
							      : lade_ans_word_at<true>(from);
		}
		lade_ans_planes_of<W>(unit, plane, cross);
		lade_ans_put_row<W>(to, c, plane, g, block, lane);
	}
	__syncwarp();
}

/* The tables of the planes, from the last one to the first, again and again. */
template <bool ONE> struct lade_ans_plane_tables {
	lade_ans_address symbol;
	uint32_t count, k;

	__device__ __forceinline__ lade_ans_address next()
	{
		lade_ans_address at = symbol + (ONE ? 0 : (lade_ans_address)(1024 * k));
		if (!ONE)
			k = k ? k - 1 : count - 1;
		return at;
	}
};

/*
 * Encodes a sub-block's 'count' coded planes into the columns, by a whole warp; returns the lane's
 * halves. 'own' is the first of the lane's words.  If a lane needs more rows than the columns have,
 * or reaches a word that was not read yet, it returns more halves than the columns can hold.
 */
template <bool ONE>
LADE_DEVICE uint32_t lade_ans_put_words(uint32_t count, uint32_t bits,
                                        const lade_ans_columns &columns, const uint32_t *own,
                                        uint32_t units, uint32_t lane)
{
	lade_ans_writer me;
	uint32_t rows = units / 32, left = rows * count & ~3u, next[4];
	rows += ((lane + rows) & 31) < units % 32;
	uint32_t words = rows * count;
	if (!words)
		return 0;
	lade_ans_address begin = lade_ans_address_of(columns.top + lane),
			 first = lade_ans_address_of(own);
	lade_ans_address end = begin - (lade_ans_address)(128 * columns.rows);
	lade_ans_plane_tables<ONE> turn = {columns.symbol, count, count - 1};
	lade_ans_address from = first + (lade_ans_address)(128 * left);
	if (left) {
#pragma unroll
		for (int j = 0; j < 4; j++)
			next[j] = lade_ans_load(from - 128 * (j + 1));
	}
	lade_ans_address last = first + (lade_ans_address)(128 * (words - 1));
	me.to = begin;
	me.open(lade_ans_load(columns.symbol + (lade_ans_address)(1024 * (count - 1)) +
	                      (lade_ans_address)(lade_ans_load(last) >> 24 << 2)),
	        1u << bits);
	/* The words beyond a multiple of four. */
	bool over = false;
#pragma unroll 1
	for (; words > left; words--, last -= 128) {
		lade_ans_put_one(&me, turn.next(), end, lade_ans_load(last));
		over |= words > left + 1 && me.to < last - 128;
	}
	for (from -= 512 + 128; left; left -= 4, from -= 512) {
		uint32_t word[4];
		lade_ans_address symbol[4];
#pragma unroll
		for (int j = 0; j < 4; j++) {
			word[j] = next[j];
			symbol[j] = turn.next();
			if (left > 4)
				next[j] = lade_ans_load(from - 128 * j);
		}
		if (bits <= 10) {
			lade_ans_put_sixteen(&me, symbol, end, word);
		} else {
#pragma unroll
			for (int j = 0; j < 4; j++)
				lade_ans_put_one(&me, symbol[j], end, word[j]);
		}
		/* The words above 'from' - 512 are read. */
		over |= left > 8 && me.to < from - 512;
	}
	uint32_t halves = me.close(begin, bits, columns.rows);
	return over ? 2 * columns.rows + 2 : halves;
}

/* ---- a chunk ---------------------------------------------------------------------------- */

/* Encodes a sub-block into the columns, by a whole warp; returns the lane's halves. */
LADE_DEVICE uint32_t lade_ans_encode_block(const lade_ans_choice &c,
                                           const lade_ans_columns &columns, const uint32_t *own,
                                           uint32_t units, uint32_t lane)
{
	uint32_t count = (uint32_t)__popc((int)c.coded);
	return count > 1   ? lade_ans_put_words<false>(count, c.bits, columns, own, units, lane)
	       : count > 0 ? lade_ans_put_words<true>(1, c.bits, columns, own, units, lane)
	                   : 0;
}

/* Kinds of chunks: all in shared memory, or a part at a time, both in tiles and with source and
 * destination aligned to 16; or any other. */
enum lade_ans_which { LADE_ANS_HELD, LADE_ANS_TILES, LADE_ANS_ANY };

/* Stores the sub-block at 'dst', by a whole warp.  HELD: the raw planes are copied from 'from'
 * asynchronously, so 'from' must not change until lade_stage_out_end(). */
template <int W, lade_ans_which WHICH>
LADE_DEVICE void lade_ans_put_block(uint8_t *dst, const lade_ans_choice &c,
                                    const lade_ans_encoded &encoded, const uint8_t *from,
                                    uint32_t block, uint32_t units, uint32_t lane)
{
	constexpr bool WORDS = WHICH != LADE_ANS_ANY;
	uint32_t raw = (uint32_t)__popc((int)c.raw), size = raw * (block / W);
	if (4 * W * units == block && WHICH == LADE_ANS_HELD) {
		lade_stage_out_begin(dst, (const uint4 *)from, size, lane);
	} else if (4 * W * units == block) {
		lade_ans_put_rows<WORDS>(dst, (const uint32_t *)from, 32, size, lane);
	} else {
		for (uint32_t n = 0; n < raw; n++)
			lade_ans_put_rows<WORDS>(dst + n * 4 * units,
			                         (const uint32_t *)(from + n * (block / W)), 32,
			                         4 * units, lane);
	}
	if (c.coded)
		lade_ans_put_lanes<WORDS>(dst + raw * 4 * units,
		                          (const uint32_t *)(from + block) - 32, encoded, lane);
}

/* Copies a stored sub-block's words from global memory, by a whole warp. */
LADE_DEVICE void lade_ans_put_stored_words(uint8_t *dst, const uint8_t *src, uint32_t size,
                                           uint32_t lane)
{
#pragma unroll 1
	for (uint32_t at = 4 * lane; at < size; at += 128)
		*(uint32_t *)(dst + at) = __ldg((const uint32_t *)(src + at));
}

/* Encodes and writes the chunk's sub-blocks from 'at' on, in 16 bytes, by a whole block; returns
 * where they end, 0: that would exceed the limit. */
template <int W, lade_ans_which WHICH, int G>
LADE_DEVICE uint32_t lade_ans_put_parts(const lade_ans_memory &r, lade_ans_staging<G> &h,
                                        const lade_ans_chunk *all, lade_ans_reports<W, G> *reports,
                                        uint32_t at)
{
	constexpr bool HELD = WHICH == LADE_ANS_HELD, WHOLE = WHICH != LADE_ANS_ANY;
	const lade_ans_chunk &chunk = HELD ? lade_ans_staged_now(h).chunk : *all;
	uint32_t warp = lade_ans_thread() / 32, lane = lade_ans_thread() & 31;
	uint32_t block_log = WHOLE ? 12 : chunk.block_log, block = 1u << block_log;
	bool tiles = WHOLE || block == LADE_ANS_TILE;
	/* Sub-blocks that are larger than tiles take the memory of several warps. */
	uint32_t active = tiles ? G : G * h.own >> block_log;
	active = active < G ? active : G;
	uint8_t *own = tiles ? h.bytes : h.bytes - warp * h.own + warp * block;
	uint32_t high = 0;
	for (uint32_t base = 0, q = 0; base < chunk.block_count; q++) {
		uint32_t per = tiles ? lade_ans_staged_tiles(h, chunk, q) : 1;
		if (!HELD && tiles) {
			if (q)
				lade_ans_stage_wait(h, chunk, q, lane);
			lade_ans_stage_prefetch(h, chunk, q + 1, lane);
		}
		uint32_t i = base + per * warp, end = warp < active ? i + per : i;
		end = end < chunk.block_count ? end : chunk.block_count;
		uint32_t size = 0;
		uint8_t *from = own, *halves = reports->halves[warp][0] + lane;
#pragma unroll 1
		for (uint32_t b = i; b < end; b++, from += block) {
			/* Read again, here and below, to save registers. */
			const lade_ans_choice c = r.state->choice;
			const lade_ans_chunk &p = HELD ? lade_ans_staged_now(h).chunk : *all;
			uint32_t units = lade_ans_units<W>(p, b, block_log);
			uint32_t cross = W == 2 && p.crossed ? LADE_ANS_SIGNS : 0;
			if (tiles)
				lade_ans_split_planes<W>(from, c, cross, lane);
			else
				lade_ans_fetch<W>(from, p.src + ((size_t)b << block_log), c, cross,
				                  block, units, lane);
			/* Columns have the coded planes' rows, and three more below. */
			uint32_t count = (uint32_t)__popc((int)c.coded), most = block / 128 - 3;
			uint32_t rows = count * (block / W) / 128;
			lade_ans_columns columns = {lade_ans_address_of(r.dynamic),
			                            (const uint32_t *)(from + block) - 32,
			                            rows < most ? rows : most};
			const uint32_t *first =
				(const uint32_t *)(from + (W - count) * (block / W)) + lane;
			uint32_t some = lade_ans_encode_block(c, columns, first, units, lane);
			lade_ans_encoded encoded = {ANS_NARROW, 0, 0, 0, 0};
			if (count)
				encoded = lade_ans_measure(some);
			uint32_t s = lade_ans_size_or_store<W>(columns, c, &encoded, units);
			high = high < (encoded.most + 1) / 2 ? (encoded.most + 1) / 2 : high;
			size += (s + 15) / 16;
			halves[32 * (b - i)] =
				(uint8_t)(encoded.kind == ANS_STORED ? LADE_ANS_IS_STORED : some);
		}
		uint32_t off = lade_ans_place(r, &at, &high, size);
		const lade_ans_chunk &same = HELD ? lade_ans_staged_now(h).chunk : *all;
		if (!lade_ans_fits(same, at))
			return 0;
		if (HELD || base + per * active >= same.block_count)
			lade_ans_put_head<W>(r, same, high, at);
		from = own;
#pragma unroll 1
		for (uint32_t b = i; b < end; b++, from += block) {
			const lade_ans_choice c = r.state->choice;
			const lade_ans_chunk &p = HELD ? lade_ans_staged_now(h).chunk : *all;
			uint32_t units = lade_ans_units<W>(p, b, block_log);
			uint32_t some = halves[32 * (b - i)], s = 4 * units;
			/* Computed again rather than kept, to save registers. */
			lade_ans_encoded encoded = {ANS_NARROW, 0, 0, 0, 0};
			if (c.coded && some != LADE_ANS_IS_STORED)
				encoded = lade_ans_measure(some);
			if (some == LADE_ANS_IS_STORED)
				encoded.kind = ANS_STORED, s *= W;
			else
				s = s * (uint32_t)__popc((int)c.raw) + encoded.size;
			uint8_t *dst = lade_ans_put_entry<W>(p, b, off, encoded.kind, lane);
			if (WHOLE && encoded.kind == ANS_STORED)
				lade_ans_put_stored_words(dst, p.src + ((size_t)b << block_log), s,
				                          lane);
			else if (encoded.kind == ANS_STORED)
				lade_ans_copy(dst, p.src + ((size_t)b << block_log), s, lane);
			else
				lade_ans_put_block<W, WHICH>(dst, c, encoded, from, block, units,
				                             lane);
			if (lane < (16 - (s & 15)) % 16)
				dst[s + lane] = 0;
			off += (s + 15) / 16;
		}
		if (HELD) {
			lade_stage_out_end(lane);
			return at;
		}
		base += per * active;
		if (tiles && base < chunk.block_count)
			lade_ans_stage_begin(h, chunk, q + 1, lane);
		__syncthreads();
	}
	return at;
}

/* The same for larger chunks, other alignments and other sub-blocks; not inlined. */
template <int W, lade_ans_which WHICH, int G>
LADE_ANS_NOINLINE uint32_t lade_ans_put_others(lade_ans_memory r, lade_ans_staging<G> h,
                                               const lade_ans_chunk *p,
                                               lade_ans_reports<W, G> *reports, uint32_t at)
{
	uint32_t phase = h.stager.phase;
	r.state = lade_shared(r.state);
	r.dynamic = lade_shared(r.dynamic);
	h.bytes = lade_shared(h.bytes);
	p = lade_shared(p);
	reports = lade_shared(reports);
	at = lade_ans_put_parts<W, WHICH>(r, h, p, reports, at);
	lade_ans_stage_phase(h, phase, lade_lane());
	return at;
}

/* Writes the coded chunk, by a whole block; returns its size, 0: it would exceed the limit. */
template <int W, int G>
LADE_DEVICE uint32_t lade_ans_put_coded(const lade_gpu_batch &batch, const lade_ans_memory &r,
                                        lade_ans_staging<G> &h, uint32_t have, uint32_t cross,
                                        lade_ans_reports<W, G> *reports, uint32_t bits)
{
	uint32_t words;
	const lade_ans_choice c =
		lade_ans_prepare<W>(batch, r, h, have, cross, reports, bits, &words);
	const lade_ans_chunk &p = lade_ans_staged_now(h).chunk;
	if (!c.coded && !c.raw) {
		uint32_t size = lade_ans_put_constant<W>(r, p);
		if (size)
			return size;
	}
	uint32_t at = (lade_ans_tables<W>(p) + 4 * words + 15) / 16;
	if (c.raw == (1u << W) - 1 || !lade_ans_fits(p, at))
		return 0;
	if (p.block_log != 12 || ((uintptr_t)p.src | (uintptr_t)p.dst) & 15)
		at = lade_ans_put_others<W, LADE_ANS_ANY>(r, h, &p, reports, at);
	else if (p.size - p.tail > G * h.own)
		at = lade_ans_put_others<W, LADE_ANS_TILES>(r, h, &p, reports, at);
	else
		at = lade_ans_put_parts<W, LADE_ANS_HELD>(r, h, nullptr, reports, at);
	return at ? 16 * at + lade_ans_staged_now(h).chunk.tail : 0;
}

/* The kernels' body, for elements of W bytes and blocks of G warps; 'signs': elements are bfloat16,
 * and are crossed if their signs vary. */
template <int W, int G>
LADE_DEVICE void lade_ans_encode_wide(const lade_gpu_batch &batch, uint32_t block_log,
                                      uint32_t bits, uint32_t bytes, uint32_t staging, bool signs)
{
	LADE_SHARED(lade_ans_current, taken, [2]);
	LADE_SHARED(lade_ans_chunk_state, state);
	LADE_SHARED(unsigned long long, barrier, [G]);
	typedef lade_ans_reports<W, G> reports_of;
	LADE_SHARED(reports_of, reports);
	LADE_SHARED_DYNAMIC(uint4, dynamic);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32, own = staging / G;
	lade_ans_memory r = {(uint8_t *)dynamic + staging, bytes - staging, &state};
	lade_ans_staging<G> h = {(uint8_t *)dynamic + own * warp, own, {nullptr, 0}, taken};
	lade_stage_open(&h.stager, &barrier[warp], lane);
	if (threadIdx.x == 0) {
		taken[0].i = batch.next ? atomicAdd(batch.next, 1u) : blockIdx.x;
		lade_ans_take<W>(batch, block_log, &taken[0]);
	}
	uint32_t *counts = (uint32_t *)(r.dynamic + r.bytes - 1024 * W);
#pragma unroll
	for (uint32_t i = 0; i < 256 * W; i += 32 * G)
		counts[i + threadIdx.x] = 0;
	__syncthreads();
	while (lade_ans_staged_next(h)->i < batch.count) {
		/* No other warp uses this warp's staging memory now. */
		lane = lade_ans_thread() & 31;
		lade_ans_stage_begin(h, lade_ans_staged_next(h)->chunk, 0, lane);
		bool negative = W == 2 && signs &&
		                lade_ans_sign_sample(h, lade_ans_staged_next(h)->chunk, lane);
		uint32_t done = 0,
			 have = lade_ans_stage_wait(h, lade_ans_staged_next(h)->chunk, 0, lane);
		uint32_t cross = (uint32_t)__popc((int)__ballot_sync(LADE_FULL, negative));
		const lade_ans_current &t = lade_ans_staged_now(h);
		cross = cross >= 8 && cross <= 24 ? LADE_ANS_SIGNS : 0;
		if (W == 2 && cross && threadIdx.x == 0)
			h.taken[h.stager.phase ^ 1].chunk.crossed = true;
		if (t.status == LADE_GPU_OK && t.chunk.block_count) {
			done = lade_ans_put_coded<W>(batch, r, h, have, cross, &reports, bits);
		} else {
			/* The next entry is the previous chunk's: other warps may still read it. */
			__syncthreads();
			if (threadIdx.x == 0) {
				lade_ans_current *next = lade_ans_staged_next(h);
				next->i = batch.next
				                  ? lade_turn_next(batch, lade_ans_staged_now(h).i)
				                  : batch.count;
				lade_ans_take<W>(batch, block_log, next);
			}
			__syncthreads();
		}
		lade_ans_finish<W>(batch, lade_ans_staged_now(h), done);
	}
}

#endif
