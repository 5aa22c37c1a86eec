/*
 * ans_encode.cu: makes chunks of the ANS format (docs/format/ans.md, section 7).
 *
 * A block makes a chunk: it counts the bytes of each position, makes tables, and then each warp
 * encodes a sub-block into shared memory, from its last symbols to its first, until it is known
 * where the sub-blocks go.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/ans_count.cuh"

#ifndef LADE_ANS_BLOCKS
#define LADE_ANS_BLOCKS 2
#endif
#define LADE_ANS_WARPS 16 /* of a block at most */

/* ---- lanes ------------------------------------------------------------------------------ */

/*
 * A lane: 'last' has the 32 newest bits of its string, the newest one highest; the low 6 bits of
 * 'at' are their number's.  'to' is where the next word goes.
 */
struct lade_ans_writer {
	lade_ans_at to;
	uint32_t state, last, at;

	/* Goes through a symbol; gives the bits taken, and multiples of 64. */
	__device__ __forceinline__ uint32_t step(uint32_t entry)
	{
		uint32_t t = entry + state, nb = t >> 12;
		last = __funnelshift_r(last, state, nb);
		state = __funnelshift_r(state, 0, nb) + (t >> 18);
		return nb;
	}

	/* After 'more' bits: puts the word that they fill up.  'before' is what 'last' was. */
	__device__ __forceinline__ void flush(uint32_t before, uint32_t more)
	{
		uint32_t now = at + more;
		uint32_t word = __funnelshift_l(__funnelshift_r(0, before, more), last, now);
		if ((now ^ at) & 32) {
			lade_ans_save(to, word);
			to += 128;
		}
		at = now;
	}

	/*
	 * The lane's last symbol only chooses the state, its first one.  The lowest state that the
	 * symbol takes all its bits from leads there, and the bits are 0: they are taken back.  So
	 * the first flush puts a word, in the row before the first.
	 */
	__device__ __forceinline__ void open(uint32_t entry, uint32_t states)
	{
		uint32_t v = entry << 14, most = ((v >> 14) + 2 * states - 1) >> 12 & 15;
		state = (most << 12) - (v >> 14);
		last = 0;
		at = 0 - most;
	}
};

/* The entries of a word's four symbols, from the last to the first. */
LADE_DEVICE void lade_ans_entries(lade_ans_at symbol, uint32_t word, uint32_t entry[4])
{
#pragma unroll
	for (int i = 0; i < 4; i++)
		entry[i] = lade_ans_load(symbol + 4 * (lade_ans_at)__byte_perm(word, 0, 0x4443 - i));
}

/* Four symbols of a plane, from the last to the first: at most two words, the first one no later than
 * at 'end'. */
LADE_DEVICE void lade_ans_put_four(lade_ans_writer *me, lade_ans_at end, const uint32_t entry[4])
{
	uint32_t before = me->last, more = me->step(entry[0]);
	more += me->step(entry[1]);
	me->flush(before, more);
	before = me->last;
	more = me->step(entry[2]);
	more += me->step(entry[3]);
	me->flush(before, more);
	me->to = me->to < end ? me->to : end;
}

/* The same of four words of single bytes, for symbols that take at most 10 bits: three of these fit
 * between flushes. */
LADE_DEVICE void lade_ans_put_sixteen(lade_ans_writer *me, lade_ans_at symbol, lade_ans_at end,
                                      const uint32_t word[4])
{
	uint32_t entry[16], before = me->last, more = 0;
	lade_ans_entries(symbol, word[0], entry);
#pragma unroll
	for (int i = 0; i < 16; i++) {
		/* The next word's, four symbols ahead. */
		if (i % 4 == 0 && i < 12)
			lade_ans_entries(symbol, word[i / 4 + 1], entry + i + 4);
		more += me->step(entry[i]);
		if (i % 3 == 2 || i == 15) {
			me->flush(before, more);
			before = me->last;
			more = 0;
		}
		if (i == 8)
			me->to = me->to < end ? me->to : end;
	}
	me->to = me->to < end ? me->to : end;
}

/*
 * A unit: the coded planes' symbols, from the last to the first, and the raw ones' words, at 'raw' for
 * the last and 'pitch' apart.
 */
template <int W>
LADE_DEVICE void lade_ans_put_unit(const lade_ans_choice &c, lade_ans_writer *me, lade_ans_at symbol,
                                   lade_ans_at end, lade_ans_at raw, lade_ans_at pitch,
                                   const uint32_t *word)
{
	uint32_t plane[W];
	lade_ans_planes_of<W>(word, plane);
#pragma unroll
	for (int n = W - 1; n >= 0; n--) {
		uint32_t mode = W > 1 ? lade_ans_mode(c, (uint32_t)n) : (uint32_t)ANS_PLANE_CODED;
		if (mode == ANS_PLANE_CODED) {
			uint32_t entry[4];
			lade_ans_entries(symbol, plane[n], entry);
			lade_ans_put_four(me, end, entry);
			symbol -= 1024;
		} else if (mode == ANS_PLANE_RAW) {
			lade_ans_save(raw, plane[n]);
			raw -= pitch;
		}
	}
}

/* Where a warp works: tables, columns and raw planes in shared memory. */
struct lade_ans_desk {
	lade_ans_at symbol, columns, raw;
	uint32_t cap; /* rows of the columns, before which there is one more, and behind which 3 */
};

/*
 * Encodes a sub-block's 'units' into the columns, for a whole warp; gives the lane's halves.  A lane
 * that needs more rows than 'cap' has more halves than they hold.
 */
template <int W, bool WHOLE>
LADE_DEVICE uint32_t lade_ans_put_units(const lade_ans_choice &c, const lade_ans_desk &desk,
                                        const uint8_t *src, uint32_t units, uint32_t lane)
{
	constexpr uint32_t AHEAD = !WHOLE || W > 2 ? 1 : W == 2 ? 2 : 4;
	lade_ans_writer me;
	uint32_t rows = units / 32, last = 4 * W - 1;
	if (((lane + rows) & 31) < units % 32)
		rows++;
	if (!rows)
		return 0;
	lade_ans_at begin = desk.columns + (lade_ans_at)(4 * lane);
	lade_ans_at end = begin + (lade_ans_at)(128 * desk.cap);
	/* The last planes' tables and words. */
	lade_ans_at symbol = desk.symbol + (lade_ans_at)(1024 * (c.coded - 1));
	lade_ans_at pitch = (lade_ans_at)(4 * units), raw = desk.raw + pitch * ((lade_ans_at)c.raw - 1);
	me.to = begin - 128;
	/* The last coded plane's byte of the lane's last element. */
#pragma unroll
	for (int n = 0; n < W; n++)
		last = W == 1 || lade_ans_mode(c, (uint32_t)n) == ANS_PLANE_CODED ? (uint32_t)(3 * W + n)
		                                                                 : last;
	/* Of row g the lane has the unit at turn + g, which counts to 32. */
	const uint8_t *row = src + (size_t)(128 * W) * (rows - 1);
	uint32_t turn = lane + rows - 1, next[AHEAD][W];
	const uint8_t *late = row - 128 * W * (rows % AHEAD);
	uint32_t later = turn - rows % AHEAD, byte = __ldg(row + 4 * W * (turn & 31) + last);
	if (rows >= AHEAD) {
#pragma unroll
		for (uint32_t j = 0; j < AHEAD; j++)
			lade_ans_unit_get<W, WHOLE>(late - 128 * W * j + 4 * W * ((later - j) & 31),
			                            next[j]);
	}
	me.open(lade_ans_load(symbol + (lade_ans_at)(4 * byte)), 1u << c.bits);
	raw += (lade_ans_at)(128 * (rows - 1));
	for (; rows % AHEAD; rows--, turn--, row -= 128 * W, raw -= 128) {
		uint32_t word[W];
		lade_ans_unit_get<W, WHOLE>(row + 4 * W * (turn & 31), word);
		lade_ans_put_unit<W>(c, &me, symbol, end, raw + (lade_ans_at)(4 * (turn & 31)), pitch,
		                     word);
	}
	bool three = W == 1 && WHOLE && c.bits <= 10;
	for (; three && rows; rows -= AHEAD, turn -= AHEAD, row -= 128 * AHEAD) {
		uint32_t all[4];
#pragma unroll
		for (uint32_t j = 0; j < AHEAD; j++) {
			all[j] = next[j][0];
			if (rows > AHEAD)
				lade_ans_unit_get<W, WHOLE>(
					row - 128 * (j + AHEAD) + 4 * ((turn - j - AHEAD) & 31),
					next[j]);
		}
		lade_ans_put_sixteen(&me, symbol, end, all);
	}
	for (; rows; rows -= AHEAD, turn -= AHEAD, row -= 128 * W * AHEAD, raw -= 128 * AHEAD) {
#pragma unroll
		for (uint32_t j = 0; j < AHEAD; j++) {
			uint32_t word[W];
#pragma unroll
			for (int k = 0; k < W; k++)
				word[k] = next[j][k];
			if (rows > AHEAD)
				lade_ans_unit_get<W, WHOLE>(row - 128 * W * (j + AHEAD) +
				                                    4 * W * ((turn - j - AHEAD) & 31),
				                            next[j]);
			lade_ans_put_unit<W>(c, &me, symbol, end,
			                     raw - 128 * j + (lade_ans_at)(4 * ((turn - j) & 31)),
			                     pitch, word);
		}
	}
	uint32_t before = me.last;
	me.last = __funnelshift_r(me.last, me.state, c.bits + 1);
	me.flush(before, c.bits + 1);
	uint32_t full = (uint32_t)(me.to - begin) / 128, have = me.at & 31;
	if (have)
		lade_ans_save(me.to, me.last >> (32 - have));
	return 2 * full + (have + 15) / 16 + (full >= desk.cap ? 2 : 0);
}

/* ---- sub-blocks ------------------------------------------------------------------------- */

/* From shared memory, aligned to 16, by a whole warp. */
LADE_DEVICE void lade_ans_put_shared(uint8_t *dst, const uint8_t *from, uint32_t size, uint32_t lane)
{
	if (!((uintptr_t)dst & 15)) {
		for (uint32_t i = lane; i < size / 16; i += 32)
			((uint4 *)dst)[i] = ((const uint4 *)from)[i];
		for (uint32_t i = (size & ~15u) + lane; i < size; i += 32)
			dst[i] = from[i];
	} else if (!((uintptr_t)dst & 3)) {
		for (uint32_t i = lane; i < size / 4; i += 32)
			((uint32_t *)dst)[i] = ((const uint32_t *)from)[i];
		for (uint32_t i = (size & ~3u) + lane; i < size; i += 32)
			dst[i] = from[i];
	} else {
		for (uint32_t i = lane; i < size; i += 32)
			dst[i] = from[i];
	}
}

/* What a warp has of its sub-block: a lane's halves in its column, and all lanes' numbers. */
struct lade_ans_made {
	uint32_t kind, size; /* in bytes, without raw planes */
	uint32_t halves, least, most;
};

/* What the lanes' halves come to, for a whole warp. */
LADE_DEVICE lade_ans_made lade_ans_measure(uint32_t halves)
{
	lade_ans_made made;
	made.halves = halves;
	made.least = __reduce_min_sync(LADE_FULL, halves) & ~1u;
	made.most = __reduce_max_sync(LADE_FULL, halves);
	made.kind = made.most - made.least < 16 ? ANS_NARROW : ANS_WIDE;
	made.size = 2 * lade_ans_sum(halves) + (made.kind == ANS_NARROW ? 16 : 32);
	return made;
}

/*
 * Writes lengths, full rows, and ragged rows, by a whole warp.  'columns' are the warp's.
 */
LADE_DEVICE void lade_ans_put_lanes(uint8_t *dst, const uint32_t *columns,
                                       const lade_ans_made made, uint32_t lane)
{
	uint32_t d = made.halves - made.least, below = (1u << lane) - 1;
	uint32_t next = __shfl_down_sync(LADE_FULL, d, 1);
	if (made.kind == ANS_WIDE)
		dst[lane] = (uint8_t)d;
	else if (!(lane & 1))
		dst[lane / 2] = (uint8_t)(d | next << 4);
	dst += made.kind == ANS_WIDE ? 32 : 16;
	lade_ans_put_shared(dst, (const uint8_t *)columns, 64 * made.least, lane);
	dst += 64 * made.least;
	bool even = !((uintptr_t)dst & 1);
	for (uint32_t r = made.least; r < made.most; r += 2) {
		bool some = made.halves > r, both = made.halves > r + 1;
		uint32_t low = __ballot_sync(LADE_FULL, some), high = __ballot_sync(LADE_FULL, both);
		uint32_t at = (uint32_t)__popc(low & below) + (uint32_t)__popc(high & below);
		uint32_t word = some ? columns[16 * r + lane] : 0;
		uint8_t *to = dst + 2 * at;
		if (even) {
			if (some)
				*(uint16_t *)to = (uint16_t)word;
			if (both)
				*(uint16_t *)(to + 2) = (uint16_t)(word >> 16);
		} else {
			for (uint32_t b = 0; b < (both ? 4u : some ? 2u : 0u); b++)
				to[b] = (uint8_t)(word >> 8 * b);
		}
		dst += 2 * (__popc(low) + __popc(high));
	}
}

/* Brings the raw planes of a sub-block without coded ones, as lade_ans_put_units() does. */
template <int W>
LADE_DEVICE void lade_ans_put_raw(const lade_ans_choice &c, const uint8_t *src, uint32_t units,
                                  lade_ans_at raw, uint32_t lane)
{
	for (uint32_t u = lane; u < units; u += 32) {
		uint32_t word[W], plane[W];
		lade_ans_at to = raw + (lade_ans_at)(4 * u);
		if (lade_ans_whole<W>(src))
			lade_ans_unit_get<W, true>(src + (size_t)4 * W * u, word);
		else
			lade_ans_unit_get<W, false>(src + (size_t)4 * W * u, word);
		lade_ans_planes_of<W>(word, plane);
#pragma unroll
		for (int n = 0; n < W; n++) {
			if (lade_ans_mode(c, (uint32_t)n) != ANS_PLANE_RAW)
				continue;
			lade_ans_save(to, plane[n]);
			to += (lade_ans_at)(4 * units);
		}
	}
}

/* A word at any address. */
LADE_DEVICE void lade_ans_put_word(uint8_t *dst, uint32_t value)
{
	for (int b = 0; b < 4; b++)
		dst[b] = (uint8_t)(value >> 8 * b);
}

/* ---- a chunk's plan --------------------------------------------------------------------- */

/* The shared memory of a block. */
struct lade_ans_memory {
	uint8_t *dynamic;
	uint32_t bytes;          /* of it */
	uint32_t *mode, *word;   /* of the planes; values or words of tables */
	uint32_t *least, *extra; /* of the coded planes, in 1/16 bits a count */
	uint32_t *size;          /* of the warps' sub-blocks, in 16 bytes */
	uint32_t *rows;
};

/* Where the parts of the dynamic memory are: symbols, descriptions, desks; or, at its end, counts. */
LADE_DEVICE uint32_t *lade_ans_counts(const lade_ans_memory &r)
{
	return (uint32_t *)(r.dynamic + r.bytes - 8192);
}

LADE_DEVICE uint32_t *lade_ans_text(const lade_ans_memory &r, uint32_t coded, uint32_t k)
{
	return (uint32_t *)(r.dynamic + 1024 * coded + 256 * k);
}

/*
 * A plane's counts, summed over the copies and scaled to a sum below 2^17, by a whole warp: lane l has
 * symbols 8l to 8l + 7.  Gives the sum.
 */
template <int W>
LADE_DEVICE uint32_t lade_ans_gather(const uint32_t *counts, uint32_t count[8], uint32_t lane)
{
	uint32_t total = 0;
#pragma unroll
	for (uint32_t c = 0; c < 8 / W; c++) {
		const uint4 *two = (const uint4 *)(counts + 256 * W * c) + 2 * lane;
		uint4 low = two[0], high = two[1];
		uint32_t more[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
		for (int k = 0; k < 8; k++)
			count[k] = c ? count[k] + more[k] : more[k];
	}
#pragma unroll
	for (int k = 0; k < 8; k++)
		total += count[k];
	total = lade_ans_sum(total);
	uint32_t shift = total >> 16 ? 16 - (uint32_t)__clz((int)total) : 0;
	if (shift) {
		total = 0;
#pragma unroll
		for (int k = 0; k < 8; k++)
			total += count[k] = (count[k] >> shift) + (count[k] > 0);
		total = lade_ans_sum(total);
	}
	return total;
}

/* What a plane is worth: its mode, its value if constant, what it takes, and what 10 bits of states
 * take more, in 1/16 bits a count. */
struct lade_ans_verdict {
	uint32_t mode, value, least, extra;
};

LADE_DEVICE lade_ans_verdict lade_ans_judge(const uint32_t count[8], uint32_t total, uint32_t lane)
{
	lade_ans_verdict v = {ANS_PLANE_RAW, 0, 0, 0};
	uint32_t present = 0, all = lade_ans_log2(total);
#pragma unroll
	for (int k = 0; k < 8; k++) {
		if (!count[k])
			continue;
		uint32_t log = (all - lade_ans_log2(count[k])) >> 8;
		present++;
		v.value = 8 * lane + k;
		v.least += count[k] * log >> 4;
		/* Symbols that are rarer than one state get one, and the others lose it. */
		if (1024 * count[k] < total)
			v.extra += ((total - 1024 * count[k]) * 23 >> 10) -
				   (log > 2560 ? count[k] * (log - 2560) >> 4 : 0);
	}
	present = lade_ans_sum(present);
	v.least = lade_ans_sum(v.least);
	v.extra = lade_ans_sum(v.extra);
	/* A plane is coded where that saves 1/64 of it, and more, about its table's bits included. */
	if (present == 1)
		v = {ANS_PLANE_CONSTANT, __reduce_max_sync(LADE_FULL, v.value), 0, 0};
	else if (v.least + 16 * (256 + 7 * present) < total * 126)
		v = {ANS_PLANE_CODED, 0, v.least, v.extra};
	else
		v = {ANS_PLANE_RAW, 0, 0, 0};
	return v;
}

LADE_DEVICE uint32_t lade_ans_bits_of(uint32_t wanted, uint32_t coded, uint32_t least,
                                      uint32_t extra)
{
	uint32_t bits = wanted ? wanted : extra > least / 200 ? 11 : 10;
	while (coded << bits > ANS_ENTRIES_MAX)
		bits--;
	return bits;
}

/* The k-th coded plane's table, or its description, by a whole warp. */
LADE_DEVICE void lade_ans_table(const lade_ans_memory &r, const uint32_t count[8], uint32_t total,
                                uint32_t k, const lade_ans_choice &c, uint32_t *words, uint32_t lane)
{
	uint32_t freq[8], first = 0;
	lade_ans_normalise(count, total, c.bits, freq, lane);
	if (words) {
		uint32_t n = lade_ans_describe(lade_ans_text(r, c.coded, k), freq, lane);
		if (lane == 0)
			*words = n;
		return;
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
		first += freq[i];
	first = lade_warp_scan(first, lane) - first;
#pragma unroll
	for (int i = 0; i < 8; i++) {
		uint32_t f = freq[i];
		freq[i] = f ? lade_ans_symbol(f, first, c.bits) : 0;
		first += f;
	}
	uint4 *two = (uint4 *)(r.dynamic + 1024 * k) + 2 * lane;
	two[0] = {freq[0], freq[1], freq[2], freq[3]};
	two[1] = {freq[4], freq[5], freq[6], freq[7]};
}

/* The planes' modes and the states, when all verdicts are there. */
template <int W>
LADE_DEVICE lade_ans_choice lade_ans_choose(const lade_ans_memory &r, uint32_t wanted)
{
	lade_ans_choice c = {0, 0, 0, 0};
	uint32_t least = 0, extra = 0;
#pragma unroll
	for (uint32_t n = 0; n < W; n++) {
		uint32_t mode = r.mode[n];
		c.modes |= mode << 4 * n;
		c.coded += mode == ANS_PLANE_CODED;
		c.raw += mode == ANS_PLANE_RAW;
		least += r.least[n];
		extra += r.extra[n];
	}
	c.bits = lade_ans_bits_of(wanted, c.coded, least, extra);
	return c;
}

/*
 * Counts, chooses the planes' modes and the states, and makes the tables, by a whole block: a warp for
 * each table and one for each description.
 */
template <int W>
LADE_DEVICE lade_ans_choice lade_ans_prepare(const lade_ans_memory &r, const lade_ans_plan &p,
                                             uint32_t wanted)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane(), count[8];
	uint32_t *counts = lade_ans_counts(r);
	for (uint32_t i = threadIdx.x; i < 8192 / 16; i += blockDim.x)
		((uint4 *)counts)[i] = {0, 0, 0, 0};
	__syncthreads();
	if (lade_ans_whole<4>(p.src))
		lade_ans_count<W, true>(p, counts);
	else
		lade_ans_count<W, false>(p, counts);
	__syncthreads();
	/* Of a single plane two warps judge alike, and go on at once. */
	for (uint32_t n = warp; n < (W == 1 ? 2 : W); n += blockDim.x / 32) {
		uint32_t total = lade_ans_gather<W>(counts + 256 * (n % W), count, lane);
		lade_ans_verdict v = lade_ans_judge(count, total, lane);
		if (lane == 0 && n < W) {
			r.mode[n] = v.mode;
			r.least[n] = v.least;
			r.extra[n] = v.extra;
		}
		/* The table's warp leaves the words of a coded plane to the description's. */
		if (lane == 0 && (v.mode == ANS_PLANE_CODED ? false : n < W))
			r.word[n] = v.value;
		if (W == 1 && v.mode == ANS_PLANE_CODED) {
			lade_ans_choice c = {ANS_PLANE_CODED, 1, 0,
			                     lade_ans_bits_of(wanted, 1, v.least, v.extra)};
			lade_ans_table(r, count, total, 0, c, n ? &r.word[0] : nullptr, lane);
		}
	}
	__syncthreads();
	lade_ans_choice c = lade_ans_choose<W>(r, wanted);
	for (uint32_t i = warp; W > 1 && i < 2 * W; i += blockDim.x / 32) {
		uint32_t n = i % W, k = 0;
		if (lade_ans_mode(c, n) != ANS_PLANE_CODED)
			continue;
		for (uint32_t m = 0; m < n; m++)
			k += lade_ans_mode(c, m) == ANS_PLANE_CODED;
		uint32_t total = lade_ans_gather<W>(counts + 256 * n, count, lane);
		lade_ans_table(r, count, total, k, c, i < W ? nullptr : &r.word[n], lane);
	}
	if (W > 1)
		__syncthreads();
	return c;
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* Writes what stands before the sub-blocks, but for the directory, by a whole block. */
template <int W>
LADE_DEVICE void lade_ans_put_head(const lade_ans_memory &r, const lade_ans_plan &p,
                                   const lade_ans_choice &c, uint32_t directory, uint32_t tables,
                                   uint32_t end)
{
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	uint32_t at = tables, k = 0;
	uint8_t *dst = p.dst;
	for (uint32_t n = 0; n < W; n++) {
		if (lade_ans_mode(c, n) != ANS_PLANE_CODED)
			continue;
		const uint32_t *text = lade_ans_text(r, c.coded, k++);
		for (uint32_t i = threadIdx.x; i < r.word[n]; i += blockDim.x)
			lade_ans_put_word(dst + at + 4 * i, text[i]);
		at += 4 * r.word[n];
	}
	if (threadIdx.x < (16 - (at & 15)) % 16)
		dst[at + threadIdx.x] = 0;
	if (threadIdx.x < p.tail)
		dst[16 * end + threadIdx.x] = p.src[p.size - p.tail + threadIdx.x];
	if (threadIdx.x != 0)
		return;
	lade_ans_put_word(dst, ANS_VERSION | ANS_CODED << 8 | width_log << 16 | p.block_log << 24);
	lade_ans_put_word(dst + ANS_AT_SIZE, p.size);
	dst[ANS_AT_ROWS] = (uint8_t)*r.rows;
	dst[ANS_AT_BITS] = (uint8_t)c.bits;
	for (uint32_t n = ANS_AT_PLANES; n < directory; n++)
		dst[n] = 0;
	for (uint32_t n = 0; n < W; n++) {
		dst[ANS_AT_PLANES + 2 * n] = (uint8_t)r.mode[n];
		dst[ANS_AT_PLANES + 2 * n + 1] = (uint8_t)r.word[n];
	}
	lade_ans_put_word(dst + tables - 4, end);
}

/* Encodes a sub-block on the warp's desk; 'kind' ANS_STORED: that is no smaller. */
template <int W>
LADE_DEVICE lade_ans_made lade_ans_make(const lade_ans_choice &c, const lade_ans_desk &desk,
                                        const uint8_t *src, uint32_t units, uint32_t *rows,
                                        uint32_t lane)
{
	lade_ans_made made = {ANS_NARROW, 0, 0, 0, 0};
	if (!c.coded)
		lade_ans_put_raw<W>(c, src, units, desk.raw, lane);
	else if (lade_ans_whole<W>(src))
		made = lade_ans_measure(lade_ans_put_units<W, true>(c, desk, src, units, lane));
	else
		made = lade_ans_measure(lade_ans_put_units<W, false>(c, desk, src, units, lane));
	if (made.most > 2 * desk.cap || c.raw * 4 * units + made.size >= 4 * W * units)
		made.kind = ANS_STORED;
	else if (lane == 0)
		atomicMax(rows, (made.most + 1) / 2);
	return made;
}

/* A chunk that repeats one element, whose bytes are the planes' values; 0: its tail does not, or it
 * would pass the limit. */
template <int W>
LADE_DEVICE uint32_t lade_ans_put_constant(const lade_ans_memory &r, const lade_ans_plan &p)
{
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	uint32_t at = p.size - p.tail + threadIdx.x;
	bool other = threadIdx.x < p.tail && p.src[at] != r.word[at % W];
	if (__syncthreads_or(other) || p.limit < ANS_HEADER)
		return 0;
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_CONSTANT << 8 | width_log << 16);
		lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
		for (uint32_t n = 0; n < 8; n++)
			p.dst[ANS_AT_VALUE + n] = n < W ? (uint8_t)r.word[n % W] : 0;
	}
	return ANS_HEADER;
}

/* The chunk, coded; gives its size, 0: it would pass the limit.  By a whole block. */
template <int W>
LADE_DEVICE uint32_t lade_ans_put_coded(const lade_ans_memory &r, const lade_ans_plan &p,
                                        uint32_t bits)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane();
	lade_ans_choice c = lade_ans_prepare<W>(r, p, bits);
	if (!c.coded && !c.raw) {
		uint32_t size = lade_ans_put_constant<W>(r, p);
		if (size)
			return size;
	}
	uint32_t directory = (ANS_AT_PLANES + 2 * W + 3) & ~3u, words = 0;
	uint32_t tables = directory + 4 * (p.block_count + 1);
	for (uint32_t n = 0; n < W; n++)
		words += lade_ans_mode(c, n) == ANS_PLANE_CODED ? r.word[n] : 0;
	uint32_t at = (tables + 4 * words + 15) / 16;
	/* Less than the raw chunk. */
	uint32_t limit = p.limit - (p.limit == ANS_HEADER + p.size);
	if (c.raw == W || limit < 16 * at + p.tail)
		return 0;
	/* Rows for symbols of 8 bits, and one more: what needs more of these is stored in the end.  Not
	 * so where other planes take less: a quarter more. */
	uint32_t plane = (1u << p.block_log) / W, rows = c.coded * plane / 128;
	uint32_t cap = rows + (W > 1 ? rows / 4 + 2 : 1), room = 128 * (cap + 4) + c.raw * plane;
	uint32_t active = (r.bytes - 1280 * c.coded) / room;
	active = active < blockDim.x / 32 ? active : blockDim.x / 32;
	uint8_t *own = r.dynamic + 1280 * c.coded + warp * room;
	lade_ans_desk desk = {lade_ans_at_of(r.dynamic), lade_ans_at_of(own + 128), 0, cap};
	desk.raw = desk.columns + (lade_ans_at)(128 * (cap + 3));
	for (uint32_t base = 0; base < p.block_count; base += active) {
		uint32_t i = base + warp, units = 0, size = 0;
		bool has = warp < active && i < p.block_count;
		lade_ans_made made = {ANS_STORED, 0, 0, 0, 0};
		if (has) {
			uint32_t left = p.size - p.tail - (i << p.block_log);
			units = (left < 1u << p.block_log ? left : 1u << p.block_log) / (4 * W);
			made = lade_ans_make<W>(c, desk, p.src + ((size_t)i << p.block_log), units,
			                        r.rows, lane);
			size = made.kind == ANS_STORED ? 4 * W * units
						       : c.raw * 4 * units + made.size;
		}
		if (lane == 0)
			r.size[warp] = (size + 15) / 16;
		__syncthreads();
		uint32_t mine = lane < blockDim.x / 32 ? r.size[lane] : 0;
		uint32_t off = at + lade_ans_sum(lane < warp ? mine : 0);
		at += lade_ans_sum(mine);
		if (16 * (uint64_t)at + p.tail > limit)
			return 0;
		if (has) {
			uint8_t *dst = p.dst + (size_t)16 * off;
			uint32_t raw = c.raw * 4 * units;
			if (lane == 0)
				lade_ans_put_word(p.dst + directory + 4 * i,
				                  off | made.kind << ANS_OFF_BITS);
			if (made.kind == ANS_STORED) {
				lade_ans_copy(dst, p.src + ((size_t)i << p.block_log), size, lane);
			} else {
				__syncwarp();
				lade_ans_put_shared(dst, own + 128 * (cap + 4), raw, lane);
				if (c.coded)
					lade_ans_put_lanes(dst + raw, (const uint32_t *)(own + 128),
					                   made, lane);
			}
			if (lane < (16 - (size & 15)) % 16)
				dst[size + lane] = 0;
		}
		__syncthreads();
	}
	lade_ans_put_head<W>(r, p, c, directory, tables, at);
	return 16 * at + p.tail;
}

/* The chunk as it is, by a whole block. */
template <int W> LADE_DEVICE void lade_ans_put_stored(const lade_ans_plan &p)
{
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	uint32_t warps = blockDim.x / 32;
	uint32_t share = ((p.size + warps - 1) / warps + 127) & ~127u;
	uint64_t begin = (uint64_t)share * (threadIdx.x / 32);
	if (begin < p.size)
		lade_ans_copy(p.dst + ANS_HEADER + begin, p.src + begin,
		              p.size - begin < share ? p.size - (uint32_t)begin : share, lade_lane());
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_RAW << 8 | width_log << 16);
		lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
		lade_ans_put_word(p.dst + ANS_AT_VALUE, 0);
		lade_ans_put_word(p.dst + ANS_AT_VALUE + 4, 0);
	}
}

/* The kernels' body, for elements of W bytes. */
template <int W>
LADE_DEVICE void lade_ans_encode_batch(const lade_gpu_batch &batch, uint32_t block_log,
                                       uint32_t bits, uint32_t bytes)
{
	LADE_SHARED(lade_ans_plan, plan);
	LADE_SHARED(uint32_t, mode, [8]);
	LADE_SHARED(uint32_t, word, [8]);
	LADE_SHARED(uint32_t, least, [8]);
	LADE_SHARED(uint32_t, extra, [8]);
	LADE_SHARED(uint32_t, size, [LADE_ANS_WARPS]);
	LADE_SHARED(uint32_t, rows);
	LADE_SHARED(uint32_t, turn);
	LADE_SHARED(uint32_t, verdict);
	LADE_SHARED_DYNAMIC(uint4, dynamic);
	lade_ans_memory r = {(uint8_t *)dynamic, bytes, mode, word, least, extra, size, &rows};
	do {
		if (threadIdx.x == 0) {
			uint32_t i = batch.next ? atomicAdd(batch.next, 1u) : blockIdx.x;
			turn = i;
			rows = 0;
			lade_gpu_chunk c = {nullptr, nullptr, 0, 0};
			uint32_t status = i < batch.count ? lade_chunk_get(batch, i, &c) : LADE_GPU_ARG;
			if (status == LADE_GPU_OK && c.src_size > ANS_SIZE_MAX)
				status = LADE_GPU_LIMIT;
			verdict = status;
			uint32_t most = ANS_HEADER + c.src_size;
			plan.src = c.src;
			plan.dst = c.dst;
			plan.size = c.src_size;
			plan.limit = most <= c.dst_cap ? most : c.dst_cap;
			plan.tail = c.src_size & (ANS_UNIT * W - 1);
			plan.block_log = block_log;
			plan.block_count =
				(c.src_size - plan.tail + (1u << block_log) - 1) >> block_log;
		}
		__syncthreads();
		if (turn >= batch.count)
			return;
		uint32_t done = 0, status = verdict;
		if (status == LADE_GPU_OK) {
			uint32_t most = ANS_HEADER + plan.size;
			if (plan.block_count)
				done = lade_ans_put_coded<W>(r, plan, bits);
			if (!done && most <= plan.limit)
				lade_ans_put_stored<W>(plan);
			if (!done)
				status = most <= plan.limit ? LADE_GPU_OK : LADE_GPU_NOSPACE;
			done = done ? done : most;
		}
		__syncthreads();
		if (threadIdx.x == 0)
			lade_chunk_put(batch, turn, status, done);
	} while (batch.next);
}

/*
 * For elements of 1, 2, 4 and 8 bytes.
 *
 * map:    block = a chunk; warp = a sub-block in turn; lane = every 32nd unit of 4 elements
 * shared: 'bytes' of dynamic memory, at least 27,136, or 32,768 for sub-blocks of 16 KiB
 * block:  128 to 512 threads
 *
 * 'block_log' is log2 of a sub-block's bytes, 'bits' of the states, or 0.  With batch.next blocks
 * take chunks from it; else block i takes the i-th.
 */
extern "C" __global__ void __launch_bounds__(512, LADE_ANS_BLOCKS)
	lade_ans_encode_1(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes)
{
	lade_ans_encode_batch<1>(batch, block_log, bits, bytes);
}

extern "C" __global__ void __launch_bounds__(512, LADE_ANS_BLOCKS)
	lade_ans_encode_2(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes)
{
	lade_ans_encode_batch<2>(batch, block_log, bits, bytes);
}

extern "C" __global__ void __launch_bounds__(512, LADE_ANS_BLOCKS)
	lade_ans_encode_4(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes)
{
	lade_ans_encode_batch<4>(batch, block_log, bits, bytes);
}

extern "C" __global__ void __launch_bounds__(512, LADE_ANS_BLOCKS)
	lade_ans_encode_8(lade_gpu_batch batch, uint32_t block_log, uint32_t bits, uint32_t bytes)
{
	lade_ans_encode_batch<8>(batch, block_log, bits, bytes);
}
