/*
 * ans_wide.cuh: chunks of elements of 2, 4 and 8 bytes to the ANS format (docs/format/ans.md,
 * section 7), by a block of G warps, 4 or 8, that holds them in shared memory, or a part of them.
 *
 * A warp has one or two sub-blocks of 4 KiB, which only it touches: it counts them, puts their
 * planes apart where they stand, raw ones below, and writes the columns of the others from the top
 * down over the symbols that they are made of.  The planes that some elements show to be noise are
 * not counted.  While a chunk is coded the next one is brought to the second-level cache, and each
 * warp asks for its part of that as soon as its sub-blocks are written.  Chunks that are larger are
 * counted where they lie, and coded part by part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_WIDE_CUH
#define LADE_CUDA_ANS_WIDE_CUH

#include "codec/ans/kernels/ans_hold.cuh"
#include "codec/ans/kernels/ans_put.cuh"

/* ---- tables ----------------------------------------------------------------------------- */

/* What warps tell each other of planes, and of numbers that they sum up; and what the lanes of a
 * warp keep of its sub-blocks. */
template <int W, int G> struct lade_ans_told {
	uint4 plane[W][G];
	uint32_t sum[2][G];
	uint8_t halves[G][2][32];
};
#define LADE_ANS_IS_STORED 255 /* in place of halves, of which a sub-block of 16 KiB has 252 */

/* The sum of a number that is below the thread's, with what all have in 'all', by a whole block.
 * Two calls in a row use two of the sums. */
template <int G>
LADE_DEVICE uint32_t lade_ans_below(uint32_t (&sum)[G], uint32_t mine, uint32_t *all, uint32_t lane)
{
	uint32_t upto = lade_warp_scan(mine, lane), warp = lade_ans_thread() / 32;
	if (lane == 31)
		sum[warp] = upto;
	__syncthreads();
	uint32_t got = lane < G ? sum[lane] : 0;
	*all = lade_ans_sum(got);
	return lade_ans_sum(lane < warp ? got : 0) + upto - mine;
}

/* Counts are taken in so many, so that their sum is below 2^17. */
LADE_DEVICE uint32_t lade_ans_shift(uint32_t total)
{
	return total >> 16 ? 16 - (uint32_t)__clz((int)total) : 0;
}

LADE_DEVICE uint32_t lade_ans_scaled(uint32_t count, uint32_t shift)
{
	return (count >> shift) + (shift && count);
}

/* Symbols of a thread, which lie together. */
template <int G> struct lade_ans_symbols {
	static constexpr int COUNT = 8 / G;
};

/* A warp's part of a plane's verdict; the threads have counts, which sum to about 'total'. */
template <int G>
LADE_DEVICE void lade_ans_judge_part(uint4 (&part)[G], const uint32_t *counts, uint32_t shift,
                                     uint32_t total, uint32_t lane)
{
	lade_ans_verdict v = {0, 0, 0, 0};
	uint32_t present = 0, all = lade_ans_log2(total), thread = lade_ans_thread();
#pragma unroll
	for (int j = 0; j < lade_ans_symbols<G>::COUNT; j++) {
		uint32_t count = lade_ans_scaled(counts[j], shift);
		if (count) {
			v.value = (uint32_t)lade_ans_symbols<G>::COUNT * thread + j;
			lade_ans_judge_one(count, total, all, &v);
		}
		present += (uint32_t)__popc((int)__ballot_sync(LADE_FULL, count > 0));
	}
	uint4 mine = {lade_ans_sum(v.least), lade_ans_sum(v.extra), present,
	              __reduce_max_sync(LADE_FULL, v.value)};
	if (lane == 0)
		part[thread / 32] = mine;
}

/* The verdict, of the parts of all warps. */
template <int G>
LADE_DEVICE lade_ans_verdict lade_ans_judge_parts(const uint4 (&part)[G], uint32_t total,
                                                  uint32_t lane)
{
	uint4 got = {0, 0, 0, 0};
	if (lane < G)
		got = part[lane];
	lade_ans_verdict v = {0, __reduce_max_sync(LADE_FULL, got.w), lade_ans_sum(got.x),
	                      lade_ans_sum(got.y)};
	return lade_ans_verdict_of(v, lade_ans_sum(got.z), total);
}

/* The k-th coded plane's table and its description, by a whole block; gives the words of that. */
template <int G>
LADE_DEVICE uint32_t lade_ans_table_group(const lade_ans_memory &r, uint32_t (&sum)[2][G],
                                          const uint32_t *counts, uint32_t shift, uint32_t total,
                                          uint32_t k, const lade_ans_choice &c, uint32_t lane)
{
	constexpr int COUNT = lade_ans_symbols<G>::COUNT;
	uint32_t thread = lade_ans_thread(), all, mine = 0, above[COUNT], freq[COUNT], q[COUNT];
	uint32_t *text = lade_ans_text(r, (uint32_t)__popc((int)c.coded), k);
	uint32_t *symbol = (uint32_t *)(r.dynamic + 1024 * k) + COUNT * thread;
#pragma unroll
	for (int j = 0; j < COUNT; j++) {
		uint32_t count = lade_ans_scaled(counts[j], shift);
		freq[j] = count > 0;
		above[j] = lade_ans_above(count, total, c.bits);
		mine += above[j] | freq[j] << 20;
	}
	/* Counts below, of less than 2^18, and symbols, as in lade_ans_normalise(). */
	uint32_t below = lade_ans_below(sum[0], mine, &all, lane);
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
	below = lade_ans_below(sum[1], mine, &all, lane);
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

/*
 * Counts, chooses the planes' modes and the states, and makes the tables, by a whole block, of
 * which the last thread takes the next chunk.  Gives the choice, and the words of all descriptions.
 * The counts are 0 before and afterwards.
 */
template <int W, int G>
LADE_DEVICE lade_ans_choice lade_ans_prepare(const lade_gpu_batch &batch, const lade_ans_memory &r,
                                             lade_ans_hold<G> &h, uint32_t have, uint32_t cross,
                                             lade_ans_told<W, G> *told, uint32_t bits,
                                             uint32_t *words)
{
	constexpr uint32_t ALL = (1u << W) - 1, LAST = 1u << (W - 1);
	constexpr int COUNT = lade_ans_symbols<G>::COUNT;
	uint32_t thread = lade_ans_thread(), lane = thread & 31, warp = thread / 32;
	const lade_ans_plan &p = lade_ans_hold_now(h).plan;
	uint32_t turn = 0, bytes = p.size - p.tail;
	if (thread == 32 * G - 1)
		turn = batch.next ? lade_turn_next(batch, lade_ans_hold_now(h).i) : batch.count;
	uint32_t *counts = (uint32_t *)(r.dynamic + r.bytes - 1024 * W);
	lade_ans_at count = lade_ans_at_of(counts);
	/* Whole tiles for all warps to look at. */
	bool held = bytes <= G * h.own;
	bool look = held ? bytes >= LADE_ANS_TILE * ((G - 1) * lade_ans_hold_tiles(h, p, 0) + 1)
	                 : !((uintptr_t)p.src & 15);
	uint32_t judged = !look ? ALL : held ? LAST : 0, wanted = ALL;
	if (look && held)
		lade_ans_look<W>(h, p, cross, count, lane);
	else if (look)
		lade_ans_look_far<W, G>(&p, cross, count);
	if (held)
		lade_ans_count_planes<W>(h.bytes, have, judged, cross, count, lane);
	else if (judged)
		lade_ans_count_chunk<W, G>(&p, judged, cross, count);
	__syncthreads();
	uint32_t total = bytes / W, shift = lade_ans_shift(total);
	total >>= shift;
	counts += COUNT * thread;
	for (;;) {
#pragma unroll 1
		for (uint32_t m = judged; m; m &= m - 1) {
			uint32_t n = (uint32_t)__ffs((int)m) - 1;
			lade_ans_judge_part<G>(told->plane[n], counts + 256 * n, shift, total,
			                       lane);
		}
		if (look) {
#pragma unroll
			for (uint32_t n = 0; n < W - 1; n++) {
				uint32_t some = 0;
#pragma unroll
				for (int j = 0; j < COUNT; j++) {
					uint32_t one = counts[256 * n + j];
					counts[256 * n + j] = 0;
					some += one * one;
				}
				some = lade_ans_sum(some);
				if (lane == 0)
					told->plane[n][warp].x = some;
			}
		}
		__syncthreads();
		if (!look)
			break;
		wanted = LAST;
#pragma unroll
		for (uint32_t n = 0; n < W - 1; n++) {
			uint32_t some = lane < G ? told->plane[n][lane].x : 0;
			wanted |= (uint32_t)(lade_ans_sum(some) >= lade_ans_look_of<W, G>::NOISE)
			          << n;
		}
		judged ^= wanted;
		if (!judged)
			break;
		look = false;
		if (held)
			lade_ans_count_planes<W>(h.bytes, have, judged, cross, count, lane);
		else
			lade_ans_count_chunk<W, G>(&p, judged, cross, count);
		__syncthreads();
	}
	lade_ans_choice c = {0, ALL & ~wanted, bits};
	uint32_t least = 0, extra = 0;
	if (thread < W && !(wanted >> thread & 1))
		r.facts->mode[thread] = ANS_PLANE_RAW, r.facts->word[thread] = 0;
#pragma unroll 1
	for (uint32_t m = wanted; m; m &= m - 1) {
		uint32_t n = (uint32_t)__ffs((int)m) - 1;
		lade_ans_verdict v = lade_ans_judge_parts<G>(told->plane[n], total, lane);
		c.coded |= (uint32_t)(v.mode == ANS_PLANE_CODED) << n;
		c.raw |= (uint32_t)(v.mode == ANS_PLANE_RAW) << n;
		least += v.least;
		extra += v.extra;
		if (thread == 0) {
			r.facts->mode[n] = v.mode;
			r.facts->word[n] = v.value;
		}
	}
	c.bits = lade_ans_bits_of(bits, (uint32_t)__popc((int)c.coded), least, extra);
	*words = 0;
	uint32_t k = 0;
#pragma unroll 1
	for (uint32_t m = c.coded; m; m &= m - 1, k++) {
		uint32_t n = (uint32_t)__ffs((int)m) - 1;
		uint32_t some = lade_ans_table_group<G>(r, told->sum, counts + 256 * n, shift,
		                                        total, k, c, lane);
		if (thread == 0)
			r.facts->word[n] = some;
		*words += some;
	}
#pragma unroll
	for (uint32_t n = 0; n < W; n++)
#pragma unroll
		for (int j = 0; j < COUNT; j++)
			counts[256 * n + j] = 0;
	if (thread == 0)
		r.facts->choice = c;
	if (thread == 32 * G - 1) {
		lade_ans_taken *next = lade_ans_hold_next(h);
		next->i = turn;
		lade_ans_take<W>(batch, lade_ans_hold_now(h).plan.block_log, next);
		lade_stage_ahead(next->plan.src,
		                 next->plan.size < G * h.own ? next->plan.size : G * h.own);
	}
	__syncthreads();
	return c;
}

/* ---- sub-blocks ------------------------------------------------------------------------- */

/*
 * A sub-block's memory: planes that are raw, from its begin on, and at its end those that are
 * coded, which have rows of 32 words in turn.  A row of these lies so that a lane's units are in
 * its column.
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

/* Puts the planes of a tile apart, by a whole warp. */
template <int W>
LADE_DEVICE void lade_ans_apart(uint8_t *tile, const lade_ans_choice &c, uint32_t cross,
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
			uint32_t mine = lade_ans_anew(4 * lane);
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

/* The tables of words' planes, from the last one on, in turn. */
template <bool ONE> struct lade_ans_in_turn {
	lade_ans_at symbol;
	uint32_t count, k;

	__device__ __forceinline__ lade_ans_at next()
	{
		lade_ans_at at = symbol + (ONE ? 0 : (lade_ans_at)(1024 * k));
		if (!ONE)
			k = k ? k - 1 : count - 1;
		return at;
	}
};

/*
 * Encodes a sub-block's coded planes, of which there are 'count', into the columns, for a whole
 * warp; gives the lane's halves.  'own' is the first of the lane's words.  A lane that needs more
 * rows than the columns have has more halves than they hold, and so has one that came to a word
 * which had not been read.
 */
template <bool ONE>
LADE_DEVICE uint32_t lade_ans_put_words(uint32_t count, uint32_t bits, const lade_ans_desk &desk,
                                        const uint32_t *own, uint32_t units, uint32_t lane)
{
	lade_ans_writer me;
	uint32_t rows = units / 32, left = rows * count & ~3u, next[4];
	rows += ((lane + rows) & 31) < units % 32;
	uint32_t words = rows * count;
	if (!words)
		return 0;
	lade_ans_at begin = lade_ans_at_of(desk.top + lane), first = lade_ans_at_of(own);
	lade_ans_at end = begin - (lade_ans_at)(128 * desk.rows);
	lade_ans_in_turn<ONE> turn = {desk.symbol, count, count - 1};
	lade_ans_at from = first + (lade_ans_at)(128 * left);
	if (left) {
#pragma unroll
		for (int j = 0; j < 4; j++)
			next[j] = lade_ans_load(from - 128 * (j + 1));
	}
	lade_ans_at last = first + (lade_ans_at)(128 * (words - 1));
	me.to = begin;
	me.open(lade_ans_load(desk.symbol + (lade_ans_at)(1024 * (count - 1)) +
	                      (lade_ans_at)(lade_ans_load(last) >> 24 << 2)),
	        1u << bits);
	/* What is more than fours of words. */
	bool over = false;
#pragma unroll 1
	for (; words > left; words--, last -= 128) {
		lade_ans_put_one(&me, turn.next(), end, lade_ans_load(last));
		over |= words > left + 1 && me.to < last - 128;
	}
	for (from -= 512 + 128; left; left -= 4, from -= 512) {
		uint32_t word[4];
		lade_ans_at symbol[4];
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
	uint32_t halves = me.close(begin, bits, desk.rows);
	return over ? 2 * desk.rows + 2 : halves;
}

/* ---- a chunk ---------------------------------------------------------------------------- */

/* Encodes a sub-block into the columns, for a whole warp; gives the lane's halves. */
LADE_DEVICE uint32_t lade_ans_make(const lade_ans_choice &c, const lade_ans_desk &desk,
                                   const uint32_t *own, uint32_t units, uint32_t lane)
{
	uint32_t count = (uint32_t)__popc((int)c.coded);
	return count > 1   ? lade_ans_put_words<false>(count, c.bits, desk, own, units, lane)
	       : count > 0 ? lade_ans_put_words<true>(1, c.bits, desk, own, units, lane)
			   : 0;
}

/* Which sub-blocks: tiles of which shared memory holds all, or a part at a time, where source and
 * destination are aligned to 16; or any. */
enum lade_ans_which { LADE_ANS_HELD, LADE_ANS_TILES, LADE_ANS_ANY };

/* Writes it where it belongs, for a whole warp.  HELD: what of 'from' is raw is to stay until
 * lade_stage_out_end(), and nothing is to be written there afterwards. */
template <int W, lade_ans_which WHICH>
LADE_DEVICE void lade_ans_put_block(uint8_t *dst, const lade_ans_choice &c,
                                    const lade_ans_made &made, const uint8_t *from, uint32_t block,
                                    uint32_t units, uint32_t lane)
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
		                          (const uint32_t *)(from + block) - 32, made, lane);
}

/* Copies words from global memory, by a whole warp: few sub-blocks are stored. */
LADE_DEVICE void lade_ans_put_stored_words(uint8_t *dst, const uint8_t *src, uint32_t size,
                                           uint32_t lane)
{
#pragma unroll 1
	for (uint32_t at = 4 * lane; at < size; at += 128)
		*(uint32_t *)(dst + at) = __ldg((const uint32_t *)(src + at));
}

/* Encodes and writes the chunk's sub-blocks, from 'at' on, in 16 bytes; gives where they end, 0:
 * that would pass the limit.  By a whole block. */
template <int W, lade_ans_which WHICH, int G>
LADE_DEVICE uint32_t lade_ans_put_parts(const lade_ans_memory &r, lade_ans_hold<G> &h,
                                        const lade_ans_plan *all, lade_ans_told<W, G> *told,
                                        uint32_t at)
{
	constexpr bool HELD = WHICH == LADE_ANS_HELD, WHOLE = WHICH != LADE_ANS_ANY;
	const lade_ans_plan &plan = HELD ? lade_ans_hold_now(h).plan : *all;
	uint32_t warp = lade_ans_thread() / 32, lane = lade_ans_thread() & 31;
	uint32_t block_log = WHOLE ? 12 : plan.block_log, block = 1u << block_log;
	bool tiles = WHOLE || block == LADE_ANS_TILE;
	/* Larger sub-blocks than tiles take the memory of several warps. */
	uint32_t active = tiles ? G : G * h.own >> block_log;
	active = active < G ? active : G;
	uint8_t *own = tiles ? h.bytes : h.bytes - warp * h.own + warp * block;
	uint32_t high = 0;
	for (uint32_t base = 0, q = 0; base < plan.block_count; q++) {
		uint32_t per = tiles ? lade_ans_hold_tiles(h, plan, q) : 1;
		if (!HELD && tiles) {
			if (q)
				lade_ans_hold_wait(h, plan, q, lane);
			lade_ans_hold_ahead(h, plan, q + 1, lane);
		}
		uint32_t i = base + per * warp, end = warp < active ? i + per : i;
		end = end < plan.block_count ? end : plan.block_count;
		uint32_t size = 0;
		uint8_t *from = own, *halves = told->halves[warp][0] + lane;
#pragma unroll 1
		for (uint32_t b = i; b < end; b++, from += block) {
			/* Read anew, here and below, as registers are few. */
			const lade_ans_choice c = r.facts->choice;
			const lade_ans_plan &p = HELD ? lade_ans_hold_now(h).plan : *all;
			uint32_t units = lade_ans_units<W>(p, b, block_log);
			uint32_t cross = W == 2 && p.crossed ? LADE_ANS_SIGNS : 0;
			if (tiles)
				lade_ans_apart<W>(from, c, cross, lane);
			else
				lade_ans_fetch<W>(from, p.src + ((size_t)b << block_log), c, cross,
				                  block, units, lane);
			/* Columns have the coded planes' rows, and three more below. */
			uint32_t count = (uint32_t)__popc((int)c.coded), most = block / 128 - 3;
			uint32_t rows = count * (block / W) / 128;
			lade_ans_desk desk = {lade_ans_at_of(r.dynamic),
			                      (const uint32_t *)(from + block) - 32,
			                      rows < most ? rows : most};
			const uint32_t *first =
				(const uint32_t *)(from + (W - count) * (block / W)) + lane;
			uint32_t some = lade_ans_make(c, desk, first, units, lane);
			lade_ans_made made = {ANS_NARROW, 0, 0, 0, 0};
			if (count)
				made = lade_ans_measure(some);
			uint32_t s = lade_ans_settle<W>(desk, c, &made, units);
			high = high < (made.most + 1) / 2 ? (made.most + 1) / 2 : high;
			size += (s + 15) / 16;
			halves[32 * (b - i)] =
				(uint8_t)(made.kind == ANS_STORED ? LADE_ANS_IS_STORED : some);
		}
		uint32_t off = lade_ans_place(r, &at, &high, size);
		const lade_ans_plan &same = HELD ? lade_ans_hold_now(h).plan : *all;
		if (!lade_ans_fits(same, at))
			return 0;
		if (HELD || base + per * active >= same.block_count)
			lade_ans_put_head<W>(r, same, high, at);
		from = own;
#pragma unroll 1
		for (uint32_t b = i; b < end; b++, from += block) {
			const lade_ans_choice c = r.facts->choice;
			const lade_ans_plan &p = HELD ? lade_ans_hold_now(h).plan : *all;
			uint32_t units = lade_ans_units<W>(p, b, block_log);
			uint32_t some = halves[32 * (b - i)], s = 4 * units;
			/* Measured again, which takes fewer registers than to keep it. */
			lade_ans_made made = {ANS_NARROW, 0, 0, 0, 0};
			if (c.coded && some != LADE_ANS_IS_STORED)
				made = lade_ans_measure(some);
			if (some == LADE_ANS_IS_STORED)
				made.kind = ANS_STORED, s *= W;
			else
				s = s * (uint32_t)__popc((int)c.raw) + made.size;
			uint8_t *dst = lade_ans_put_entry<W>(p, b, off, made.kind, lane);
			if (WHOLE && made.kind == ANS_STORED)
				lade_ans_put_stored_words(dst, p.src + ((size_t)b << block_log), s,
				                          lane);
			else if (made.kind == ANS_STORED)
				lade_ans_copy(dst, p.src + ((size_t)b << block_log), s, lane);
			else
				lade_ans_put_block<W, WHICH>(dst, c, made, from, block, units,
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
		if (tiles && base < plan.block_count)
			lade_ans_hold_begin(h, plan, q + 1, lane);
		__syncthreads();
	}
	return at;
}

/* The same of larger chunks, and of other addresses and sub-blocks, out of line. */
template <int W, lade_ans_which WHICH, int G>
LADE_ANS_APART uint32_t lade_ans_put_others(lade_ans_memory r, lade_ans_hold<G> h,
                                            const lade_ans_plan *p, lade_ans_told<W, G> *told,
                                            uint32_t at)
{
	uint32_t phase = h.way.phase;
	r.facts = lade_shared(r.facts);
	r.dynamic = lade_shared(r.dynamic);
	h.bytes = lade_shared(h.bytes);
	p = lade_shared(p);
	told = lade_shared(told);
	at = lade_ans_put_parts<W, WHICH>(r, h, p, told, at);
	lade_ans_hold_phase(h, phase, lade_lane());
	return at;
}

/* The chunk, coded; gives its size, 0: it would pass the limit.  By a whole block. */
template <int W, int G>
LADE_DEVICE uint32_t lade_ans_put_coded(const lade_gpu_batch &batch, const lade_ans_memory &r,
                                        lade_ans_hold<G> &h, uint32_t have, uint32_t cross,
                                        lade_ans_told<W, G> *told, uint32_t bits)
{
	uint32_t words;
	const lade_ans_choice c = lade_ans_prepare<W>(batch, r, h, have, cross, told, bits, &words);
	const lade_ans_plan &p = lade_ans_hold_now(h).plan;
	if (!c.coded && !c.raw) {
		uint32_t size = lade_ans_put_constant<W>(r, p);
		if (size)
			return size;
	}
	uint32_t at = (lade_ans_tables<W>(p) + 4 * words + 15) / 16;
	if (c.raw == (1u << W) - 1 || !lade_ans_fits(p, at))
		return 0;
	if (p.block_log != 12 || ((uintptr_t)p.src | (uintptr_t)p.dst) & 15)
		at = lade_ans_put_others<W, LADE_ANS_ANY>(r, h, &p, told, at);
	else if (p.size - p.tail > G * h.own)
		at = lade_ans_put_others<W, LADE_ANS_TILES>(r, h, &p, told, at);
	else
		at = lade_ans_put_parts<W, LADE_ANS_HELD>(r, h, nullptr, told, at);
	return at ? 16 * at + lade_ans_hold_now(h).plan.tail : 0;
}

/* The kernels' body, for elements of W bytes and blocks of G warps; 'signs': of bfloat16, which is
 * crossed where these vary. */
template <int W, int G>
LADE_DEVICE void lade_ans_encode_wide(const lade_gpu_batch &batch, uint32_t block_log,
                                      uint32_t bits, uint32_t bytes, uint32_t hold, bool signs)
{
	LADE_SHARED(lade_ans_taken, taken, [2]);
	LADE_SHARED(lade_ans_facts, facts);
	LADE_SHARED(unsigned long long, barrier, [G]);
	typedef lade_ans_told<W, G> told_of;
	LADE_SHARED(told_of, told);
	LADE_SHARED_DYNAMIC(uint4, dynamic);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32, own = hold / G;
	lade_ans_memory r = {(uint8_t *)dynamic + hold, bytes - hold, &facts};
	lade_ans_hold<G> h = {(uint8_t *)dynamic + own * warp, own, {nullptr, 0}, taken};
	lade_stage_open(&h.way, &barrier[warp], lane);
	if (threadIdx.x == 0) {
		taken[0].i = batch.next ? atomicAdd(batch.next, 1u) : blockIdx.x;
		lade_ans_take<W>(batch, block_log, &taken[0]);
	}
	uint32_t *counts = (uint32_t *)(r.dynamic + r.bytes - 1024 * W);
#pragma unroll
	for (uint32_t i = 0; i < 256 * W; i += 32 * G)
		counts[i + threadIdx.x] = 0;
	__syncthreads();
	while (lade_ans_hold_next(h)->i < batch.count) {
		/* Nobody else touches the warp's memory now. */
		lane = lade_ans_thread() & 31;
		lade_ans_hold_begin(h, lade_ans_hold_next(h)->plan, 0, lane);
		bool negative =
			W == 2 && signs && lade_ans_hold_sign(h, lade_ans_hold_next(h)->plan, lane);
		uint32_t done = 0,
			 have = lade_ans_hold_wait(h, lade_ans_hold_next(h)->plan, 0, lane);
		uint32_t cross = (uint32_t)__popc((int)__ballot_sync(LADE_FULL, negative));
		const lade_ans_taken &t = lade_ans_hold_now(h);
		cross = cross >= 8 && cross <= 24 ? LADE_ANS_SIGNS : 0;
		if (W == 2 && cross && threadIdx.x == 0)
			h.taken[h.way.phase ^ 1].plan.crossed = true;
		if (t.status == LADE_GPU_OK && t.plan.block_count) {
			done = lade_ans_put_coded<W>(batch, r, h, have, cross, &told, bits);
		} else {
			/* Its place is that of the chunk before, which warps may still be at. */
			__syncthreads();
			if (threadIdx.x == 0) {
				lade_ans_taken *next = lade_ans_hold_next(h);
				next->i = batch.next ? lade_turn_next(batch, lade_ans_hold_now(h).i)
				                     : batch.count;
				lade_ans_take<W>(batch, block_log, next);
			}
			__syncthreads();
		}
		lade_ans_finish<W>(batch, lade_ans_hold_now(h), done);
	}
}

#endif
