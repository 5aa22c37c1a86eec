/*
 * ans_encode.cu: makes chunks of the ANS format (docs/format/ans.md, section 7).
 *
 * A block makes a chunk: it counts the bytes of each position, makes tables, and then each warp
 * encodes a sub-block into shared memory, from its last symbols to its first, until it is known
 * where the sub-blocks go.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/ans.cuh"

#ifndef LADE_ANS_BLOCKS
#define LADE_ANS_BLOCKS 2
#endif
#define LADE_ANS_WARPS 16 /* of a block at most; at least as many as planes, 8 */

/* What a block encodes a chunk by, the same for all of its threads. */
struct lade_ans_plan {
	const uint8_t *src;
	uint8_t *dst;
	uint32_t size, limit; /* decoded bytes; the most encoded ones */
	uint32_t width_log, block_log, bits, block_count, tail;
	uint32_t modes; /* of the planes, 4 bits each */
	uint32_t coded, raw, slot;
};

/* ---- bytes ------------------------------------------------------------------------------ */

/* A word at any address. */
LADE_ANS_APART uint32_t lade_ans_word_at(const uint8_t *from)
{
	uint32_t value = 0;
	for (int b = 0; b < 4; b++)
		value |= (uint32_t)__ldg(from + b) << 8 * b;
	return value;
}

/* The words of the unit at 'from'; WHOLE: it is aligned to its size, or to 16. */
template <int W, bool WHOLE>
LADE_DEVICE void lade_ans_unit_get(const uint8_t *from, uint32_t *word)
{
	if (!WHOLE) {
#pragma unroll
		for (int k = 0; k < W; k++)
			word[k] = lade_ans_word_at(from + 4 * k);
	} else if (W == 1) {
		word[0] = __ldg((const uint32_t *)from);
	} else if (W == 2) {
		uint2 two = __ldg((const uint2 *)from);
		word[0] = two.x;
		word[1 % W] = two.y;
	} else {
#pragma unroll
		for (int k = 0; k < W; k += 4) {
			uint4 four = __ldg((const uint4 *)(from + 4 * k));
			word[k % W] = four.x;
			word[(k + 1) % W] = four.y;
			word[(k + 2) % W] = four.z;
			word[(k + 3) % W] = four.w;
		}
	}
}

template <int W> LADE_DEVICE bool lade_ans_whole(const uint8_t *src)
{
	return !((uintptr_t)src & (W < 4 ? 4 * W - 1 : 15));
}

/* The planes of a unit: word p has byte p of the 4 elements. */
template <int W> LADE_DEVICE void lade_ans_planes_of(const uint32_t *word, uint32_t *plane)
{
	if (W == 1)
		plane[0] = word[0];
	if (W == 2) {
		plane[0] = __byte_perm(word[0], word[1 % W], 0x6420);
		plane[1 % W] = __byte_perm(word[0], word[1 % W], 0x7531);
	}
	/* Four planes of 4 elements, whose words lie 'step' apart. */
	constexpr int step = W / 4 ? W / 4 : 1;
#pragma unroll
	for (int h = 0; h < W / 4; h++) {
		uint32_t a = __byte_perm(word[h], word[(h + step) % W], 0x5140);
		uint32_t b = __byte_perm(word[h], word[(h + step) % W], 0x7362);
		uint32_t c = __byte_perm(word[(h + 2 * step) % W], word[(h + 3 * step) % W], 0x5140);
		uint32_t d = __byte_perm(word[(h + 2 * step) % W], word[(h + 3 * step) % W], 0x7362);
		plane[(4 * h) % W] = __byte_perm(a, c, 0x5410);
		plane[(4 * h + 1) % W] = __byte_perm(a, c, 0x7632);
		plane[(4 * h + 2) % W] = __byte_perm(b, d, 0x5410);
		plane[(4 * h + 3) % W] = __byte_perm(b, d, 0x7632);
	}
}

/* Counts a unit's bytes; or, with MARKS, only marks that they occur, but for raw planes. */
template <int W, bool MARKS>
LADE_DEVICE void lade_ans_count_unit(const uint32_t *word, uint32_t modes, uint32_t *count,
                                     uint8_t *seen)
{
	uint32_t plane[W];
	lade_ans_planes_of<W>(word, plane);
#pragma unroll
	for (int k = 0; k < W; k++) {
		if (MARKS && W > 1 && (modes >> 4 * k & 15) == ANS_PLANE_RAW)
			continue;
#pragma unroll
		for (int b = 0; b < 4; b++) {
			uint32_t at = 256 * k + __byte_perm(plane[k], 0, 0x4440 + b);
			if (MARKS)
				seen[at] = 1;
			else
				atomicAdd(&count[at], 1u);
		}
	}
}

/*
 * Counts bytes, of all planes, or marks them.  8 KiB of counts are 8 / W copies, of which each warp
 * has one.  A warp takes every n-th row of 32 pieces of 16 bytes or a unit.  The first of each
 * 'sample' + 1, a power of two, is counted, and the others are marked.
 */
template <int W, bool WHOLE, bool MARKS>
LADE_DEVICE void lade_ans_count(const lade_ans_plan &p, uint32_t sample, uint32_t *count,
                                uint8_t *seen)
{
	constexpr uint32_t PIECE = W == 8 ? 32 : 16, WORDS = PIECE / 4;
	constexpr uint32_t DEEP = !WHOLE ? 1 : W == 8 ? 2 : 4;
	uint32_t bytes = p.size - p.tail, warp = threadIdx.x / 32, step = MARKS ? 1 : sample + 1;
	uint32_t pieces = bytes / PIECE, rest = bytes % PIECE / (4 * W);
	count += 256 * W * (warp % (8 / W));
	/* Of row n of a warp, n + warp decides. */
	for (uint32_t n = MARKS ? 0 : (0 - warp) & sample;; n += DEEP * step) {
		uint32_t word[DEEP][WORDS], at = threadIdx.x + n * blockDim.x;
		if (at >= pieces)
			break;
#pragma unroll
		for (uint32_t j = 0; j < DEEP; j++) {
			uint32_t piece = at + j * step * blockDim.x;
			if (piece < pieces && (!MARKS || ((n + j + warp) & sample)))
				lade_ans_unit_get<WORDS, WHOLE>(p.src + (size_t)PIECE * piece,
				                                word[j]);
		}
#pragma unroll
		for (uint32_t j = 0; j < DEEP; j++) {
			uint32_t piece = at + j * step * blockDim.x;
			if (piece >= pieces || (MARKS && !((n + j + warp) & sample)))
				continue;
#pragma unroll
			for (uint32_t k = 0; k < WORDS; k += W)
				lade_ans_count_unit<W, MARKS>(word[j] + k, p.modes, count, seen);
		}
	}
	if (!MARKS && threadIdx.x < rest) {
		uint32_t word[W];
		lade_ans_unit_get<W, false>(p.src + (size_t)PIECE * pieces + 4 * W * threadIdx.x,
		                            word);
		lade_ans_count_unit<W, false>(word, 0, count, seen);
	}
}

/* ---- frequencies ------------------------------------------------------------------------ */

/* log2 in 1/65536, to 0.001: a cubic between the powers of two. */
LADE_DEVICE uint32_t lade_ans_log2(uint32_t v)
{
	uint32_t q = 31 - (uint32_t)__clz((int)v);
	uint32_t m = (q < 16 ? v << (16 - q) : v >> (q - 16)) - 65536;
	return (q << 16) + m + ((m * (65536 - m) >> 16) * (27584 - (m * 10191 >> 16)) >> 16);
}

/* Sums over the warp, of numbers whose sum fits. */
LADE_DEVICE uint32_t lade_ans_sum(uint32_t v)
{
	return __reduce_add_sync(LADE_FULL, v);
}

/*
 * Frequencies that sum to 1 << bits, in proportion to the counts, whose sum is 'total' < 2^17: lane l
 * has symbols 8l to 8l + 7; bit k of 'there' says that the k-th occurs.  For a whole warp.
 */
LADE_DEVICE void lade_ans_normalise(const uint32_t count[8], uint32_t there, uint32_t total,
                                    uint32_t bits, uint32_t freq[8], uint32_t lane)
{
	uint32_t left = total, room = 1u << bits, small = 0;
	for (bool again = true; again;) {
		uint32_t lost = 0, mark = 0;
#pragma unroll
		for (int k = 0; k < 8; k++) {
			bool less = (there & ~small) >> k & 1 && count[k] * room < left;
			mark |= (uint32_t)less << k;
			lost += less ? count[k] : 0;
		}
		small |= mark;
		left -= lade_ans_sum(lost);
		lost = lade_ans_sum((uint32_t)__popc(mark));
		room -= lost;
		again = lost > 0;
	}
	/* The others have at least one part: differences of rounded sums, which add up. */
	uint32_t sum = 0;
#pragma unroll
	for (int k = 0; k < 8; k++)
		sum += small >> k & 1 ? 0 : count[k];
	sum = lade_warp_scan(sum, lane) - sum;
	uint32_t before = (sum * room + left / 2) / left;
#pragma unroll
	for (int k = 0; k < 8; k++) {
		bool one = small >> k & 1;
		sum += one ? 0 : count[k];
		uint32_t upto = (sum * room + left / 2) / left;
		freq[k] = one ? 1 : upto - before;
		before = upto;
	}
}

/* ---- tables ----------------------------------------------------------------------------- */

/*
 * A symbol, packed.  With t = the entry + state X, the state gives its low nb = t >> 12 & 15 bits
 * away and becomes (X >> nb) + (t >> 18).  Bits 16 and 17 of t are 0.
 */
LADE_DEVICE uint32_t lade_ans_symbol(uint32_t freq, uint32_t first, uint32_t bits)
{
	uint32_t most = bits - 31 + (uint32_t)__clz((int)freq);
	return (((1u << bits) + first - freq) << 18) + (most << 12) - (freq << most);
}

/* Puts the low 'size' <= 11 bits of 'value' at bit 'at' of zeroed words. */
LADE_DEVICE void lade_ans_put_bits(uint32_t *words, uint32_t at, uint32_t value, uint32_t size)
{
	if (!size)
		return;
	atomicOr(&words[at / 32], value << (at & 31));
	if ((at & 31) + size > 32)
		atomicOr(&words[at / 32 + 1], value >> (32 - (at & 31)));
}

/* A table's description (section 3), for a whole warp; gives its words. */
LADE_DEVICE uint32_t lade_ans_describe(uint32_t *words, const uint32_t freq[8], uint32_t lane)
{
	uint32_t there = 0, taken = 0;
	words[lane] = 0;
	words[lane + 32] = 0;
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		there |= (uint32_t)(freq[k] > 0) << k;
		taken += freq[k] ? 31 - (uint32_t)__clz((int)freq[k]) : 0;
	}
	uint32_t count = (uint32_t)__popc(there), upto = lade_warp_scan(count, lane);
	uint32_t end = lade_warp_scan(taken, lane);
	uint32_t begin = 8 * (32 + (__shfl_sync(LADE_FULL, upto, 31) + 1) / 2);
	uint32_t nth = upto - count, at = begin + end - taken;
	lade_ans_put_bits(words, 8 * lane, there, 8);
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		if (!freq[k])
			continue;
		uint32_t q = 31 - (uint32_t)__clz((int)freq[k]);
		lade_ans_put_bits(words, 256 + 4 * nth, q, 4);
		lade_ans_put_bits(words, at, freq[k] - (1u << q), q);
		nth++;
		at += q;
	}
	__syncwarp();
	return (begin + __shfl_sync(LADE_FULL, end, 31) + 31) / 32;
}

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

/* Four symbols of a plane, from the last to the first: at most two words, the first one no later than
 * at 'end'. */
LADE_DEVICE void lade_ans_put_four(lade_ans_writer *me, lade_ans_at symbol, lade_ans_at end,
                                   uint32_t word)
{
	uint32_t e3 = lade_ans_load(symbol + 4 * (lade_ans_at)__byte_perm(word, 0, 0x4443));
	uint32_t e2 = lade_ans_load(symbol + 4 * (lade_ans_at)__byte_perm(word, 0, 0x4442));
	uint32_t e1 = lade_ans_load(symbol + 4 * (lade_ans_at)__byte_perm(word, 0, 0x4441));
	uint32_t e0 = lade_ans_load(symbol + 4 * (lade_ans_at)__byte_perm(word, 0, 0x4440));
	uint32_t before = me->last;
	uint32_t more = me->step(e3);
	more += me->step(e2);
	me->flush(before, more);
	before = me->last;
	more = me->step(e1);
	more += me->step(e0);
	me->flush(before, more);
	me->to = me->to < end ? me->to : end;
}

/* The symbols of a unit, from the last to the first. */
template <int W>
LADE_DEVICE void lade_ans_put_unit(const lade_ans_plan &p, lade_ans_writer *me, lade_ans_at symbol,
                                   lade_ans_at end, const uint32_t *word)
{
	uint32_t plane[W];
	lade_ans_planes_of<W>(word, plane);
	if (W > 1)
		symbol += 1024 * (lade_ans_at)(p.coded - 1);
#pragma unroll
	for (int n = W - 1; n >= 0; n--) {
		if (W > 1 && (p.modes >> 4 * n & 15) != ANS_PLANE_CODED)
			continue;
		lade_ans_put_four(me, symbol, end, plane[n]);
		symbol -= 1024;
	}
}

/*
 * Encodes a sub-block's 'units' into the columns, for a whole warp; gives the lane's halves.  There
 * is room for a row before the columns, and for 'cap' + 2 rows; a lane that needs more than 'cap' has
 * more than they hold.
 */
template <int W, bool WHOLE>
LADE_DEVICE uint32_t lade_ans_put_units(const lade_ans_plan &p, lade_ans_at symbol,
                                        const uint8_t *src, uint32_t units, lade_ans_at columns,
                                        uint32_t cap, uint32_t lane)
{
	constexpr uint32_t AHEAD = !WHOLE ? 1 : W == 1 ? 4 : W == 2 ? 2 : 1;
	lade_ans_writer me;
	uint32_t rows = units / 32, last = 4 * W - 1;
	if (((lane + rows) & 31) < units % 32)
		rows++;
	if (!rows)
		return 0;
	lade_ans_at begin = columns + (lade_ans_at)(4 * lane);
	lade_ans_at end = begin + (lade_ans_at)(128 * cap);
	me.to = begin - 128;
	/* The last coded plane's byte of the lane's last element. */
#pragma unroll
	for (int n = 0; n < W; n++)
		last = (p.modes >> 4 * n & 15) == ANS_PLANE_CODED ? (uint32_t)(3 * W + n) : last;
	/* Of row g the lane has the unit at turn + g, which counts to 32. */
	const uint8_t *row = src + (size_t)(128 * W) * (rows - 1);
	uint32_t turn = lane + rows - 1;
	uint32_t byte = __ldg(row + 4 * W * (turn & 31) + last);
	me.open(lade_ans_load(symbol + (lade_ans_at)(1024 * (p.coded - 1) + 4 * byte)), 1u << p.bits);
	for (; rows % AHEAD; rows--, turn--, row -= 128 * W) {
		uint32_t word[W];
		lade_ans_unit_get<W, WHOLE>(row + 4 * W * (turn & 31), word);
		lade_ans_put_unit<W>(p, &me, symbol, end, word);
	}
	uint32_t next[AHEAD][W];
	if (rows) {
#pragma unroll
		for (uint32_t j = 0; j < AHEAD; j++)
			lade_ans_unit_get<W, WHOLE>(row - 128 * W * j + 4 * W * ((turn - j) & 31),
			                            next[j]);
	}
	for (; rows; rows -= AHEAD) {
		uint32_t word[AHEAD][W];
#pragma unroll
		for (uint32_t j = 0; j < AHEAD; j++)
#pragma unroll
			for (int k = 0; k < W; k++)
				word[j][k] = next[j][k];
		if (rows > AHEAD) {
			turn -= AHEAD;
			row -= 128 * W * AHEAD;
#pragma unroll
			for (uint32_t j = 0; j < AHEAD; j++)
				lade_ans_unit_get<W, WHOLE>(
					row - 128 * W * j + 4 * W * ((turn - j) & 31), next[j]);
		}
#pragma unroll
		for (uint32_t j = 0; j < AHEAD; j++)
			lade_ans_put_unit<W>(p, &me, symbol, end, word[j]);
	}
	uint32_t before = me.last;
	me.last = __funnelshift_r(me.last, me.state, p.bits + 1);
	me.flush(before, p.bits + 1);
	uint32_t full = (uint32_t)(me.to - begin) / 128, have = me.at & 31;
	if (have)
		lade_ans_save(me.to, me.last >> (32 - have));
	return 2 * full + (have + 15) / 16 + (full >= cap ? 2 : 0);
}

/* ---- sub-blocks ------------------------------------------------------------------------- */

/* From shared memory, aligned to 16, by a whole warp. */
LADE_ANS_APART void lade_ans_put_shared(uint8_t *dst, const uint8_t *from, uint32_t size, uint32_t lane)
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
LADE_ANS_APART void lade_ans_put_lanes(uint8_t *dst, const uint32_t *columns,
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

/* Writes the raw planes of a sub-block, by a whole warp. */
template <int W>
LADE_DEVICE void lade_ans_put_raw(const lade_ans_plan &p, const uint8_t *src, uint32_t units,
                                  uint8_t *dst, uint32_t lane)
{
	bool whole = lade_ans_whole<W>(p.src);
#pragma unroll 2
	for (uint32_t u = lane; u < units; u += 32) {
		uint32_t word[W], plane[W];
		uint8_t *to = dst + 4 * u;
		if (whole)
			lade_ans_unit_get<W, true>(src + (size_t)4 * W * u, word);
		else
			lade_ans_unit_get<W, false>(src + (size_t)4 * W * u, word);
		lade_ans_planes_of<W>(word, plane);
#pragma unroll
		for (int n = 0; n < W; n++) {
			if ((p.modes >> 4 * n & 15) != ANS_PLANE_RAW)
				continue;
			if (!((uintptr_t)to & 3))
				*(uint32_t *)to = plane[n];
			else
				for (int b = 0; b < 4; b++)
					to[b] = (uint8_t)(plane[n] >> 8 * b);
			to += 4 * units;
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
	uint32_t bytes; /* of it */
	uint32_t *mode, *word;     /* of the planes; values or words of tables */
	uint32_t *least, *extra;   /* of the coded planes, in 1/16 bits a count */
	uint32_t *size;            /* of the warps' sub-blocks, in 16 bytes */
	uint32_t *rows;
};

LADE_DEVICE uint32_t *lade_ans_counts(const lade_ans_memory &r)
{
	return (uint32_t *)(r.dynamic + r.bytes - 8192);
}

/* 256 bytes for each plane: which of its bytes occur. */
LADE_DEVICE uint8_t *lade_ans_seen(const lade_ans_memory &r)
{
	return r.dynamic + r.bytes - 8192 - 2048;
}

/* Lane l's 8 of 256 numbers in shared memory, aligned to 16 bytes. */
LADE_DEVICE void lade_ans_eight(const uint32_t *from, uint32_t lane, uint32_t eight[8])
{
	const uint4 *two = (const uint4 *)from + 2 * lane;
	uint4 low = two[0], high = two[1];
	eight[0] = low.x, eight[1] = low.y, eight[2] = low.z, eight[3] = low.w;
	eight[4] = high.x, eight[5] = high.y, eight[6] = high.z, eight[7] = high.w;
}

/*
 * Adds up the copies of a plane's counts in the first one, scaled to a sum below 2^17, by a whole
 * warp.
 */
template <int W>
LADE_DEVICE void lade_ans_merge(uint32_t *counts, uint32_t lane)
{
	uint32_t count[8], more[8], total = 0;
	lade_ans_eight(counts, lane, count);
#pragma unroll
	for (uint32_t c = 1; c < 8 / W; c++) {
		lade_ans_eight(counts + 256 * W * c, lane, more);
#pragma unroll
		for (int k = 0; k < 8; k++)
			count[k] += more[k];
	}
#pragma unroll
	for (int k = 0; k < 8; k++)
		total += count[k];
	total = lade_ans_sum(total);
	uint32_t shift = total >> 16 ? 16 - (uint32_t)__clz((int)total) : 0;
#pragma unroll
	for (int k = 0; k < 8; k++)
		count[k] = shift ? (count[k] >> shift) + (count[k] > 0) : count[k];
	uint4 *two = (uint4 *)counts + 2 * lane;
	two[0] = {count[0], count[1], count[2], count[3]};
	two[1] = {count[4], count[5], count[6], count[7]};
	__syncwarp();
}

/*
 * A plane's mode, by a whole warp, and what it takes; one count stands for 1 << shift elements.  Gives
 * which of the lane's symbols occur, a bit each.
 */
LADE_DEVICE void lade_ans_judge(const lade_ans_memory &r, uint32_t n, const uint32_t *counts,
                                const uint8_t *seen, uint32_t shift, uint32_t lane)
{
	uint32_t count[8], there = 0, total = 0, least = 0, extra = 0;
	lade_ans_eight(counts, lane, count);
	uint2 marks = ((const uint2 *)seen)[lane];
#pragma unroll
	for (int k = 0; k < 8; k++) {
		uint32_t mark = (k < 4 ? marks.x : marks.y) >> 8 * (k & 3) & 1;
		there |= (count[k] ? 1u : mark) << k;
		total += count[k];
	}
	uint32_t any = there ? 8 * lane + 31 - (uint32_t)__clz((int)there) : 0;
	any = __reduce_max_sync(LADE_FULL, any);
	uint32_t present = lade_ans_sum((uint32_t)__popc(there));
	total = lade_ans_sum(total);
	/* In 1/16 bits.  What 10 bits of states take more: symbols that are rarer than one state get
	 * one, and the others lose it. */
	uint32_t all = lade_ans_log2(total);
#pragma unroll
	for (int k = 0; k < 8; k++) {
		uint32_t log = (all - lade_ans_log2(count[k] ? count[k] : 1)) >> 8;
		least += count[k] * log >> 4;
		if ((there >> k & 1) && 1024 * count[k] < total)
			extra += ((total - 1024 * count[k]) * 23 >> 10) -
				 (log > 2560 ? count[k] * (log - 2560) >> 4 : 0);
	}
	least = lade_ans_sum(least);
	extra = lade_ans_sum(extra);
	/* A plane is coded where that saves 1/64 of it, and more, about its table's bits included. */
	uint32_t mode = present == 1 ? ANS_PLANE_CONSTANT
			: least + (16 * (256 + 7 * present) >> shift) < total * 126 ? ANS_PLANE_CODED
										    : ANS_PLANE_RAW;
	if (lane == 0) {
		r.mode[n] = mode;
		r.word[n] = mode == ANS_PLANE_CONSTANT ? any : 0;
		r.least[n] = mode == ANS_PLANE_CODED ? least : 0;
		r.extra[n] = mode == ANS_PLANE_CODED ? extra : 0;
	}
}

/* A coded plane's table and its description, by a whole warp; gives the description's words. */
LADE_ANS_APART uint32_t lade_ans_table(uint32_t *symbol, uint32_t *text, const uint32_t *counts,
                                       const uint8_t *seen, uint32_t bits, uint32_t lane)
{
	uint32_t count[8], freq[8], there = 0, total = 0, first = 0;
	lade_ans_eight(counts, lane, count);
	uint2 marks = ((const uint2 *)seen)[lane];
#pragma unroll
	for (int k = 0; k < 8; k++) {
		uint32_t mark = (k < 4 ? marks.x : marks.y) >> 8 * (k & 3) & 1;
		there |= (count[k] ? 1u : mark) << k;
		total += count[k];
	}
	lade_ans_normalise(count, there, lade_ans_sum(total), bits, freq, lane);
#pragma unroll
	for (int k = 0; k < 8; k++)
		first += freq[k];
	first = lade_warp_scan(first, lane) - first;
#pragma unroll
	for (int k = 0; k < 8; k++) {
		count[k] = freq[k] ? lade_ans_symbol(freq[k], first, bits) : 0;
		first += freq[k];
	}
	uint4 *two = (uint4 *)symbol + 2 * lane;
	two[0] = {count[0], count[1], count[2], count[3]};
	two[1] = {count[4], count[5], count[6], count[7]};
	return lade_ans_describe(text, freq, lane);
}

/* Where the parts of the dynamic memory are, for a plan: symbols, descriptions, columns. */
LADE_DEVICE uint32_t lade_ans_texts_at(const lade_ans_plan &p)
{
	return 1024 * p.coded;
}

LADE_DEVICE uint32_t lade_ans_columns_at(const lade_ans_plan &p)
{
	return 1280 * p.coded;
}

/* How many elements are counted at least, where there are so many, and the fewest of all, a power of
 * two: one in how many. */
#ifndef LADE_ANS_SAMPLE
#define LADE_ANS_SAMPLE 2048
#endif
#ifndef LADE_ANS_SPARSE
#define LADE_ANS_SPARSE 8
#endif

/*
 * Counts, chooses the planes' modes and the states, and makes the tables, by a whole block.  The
 * n-th warp sees to the n-th plane.
 */
template <int W> LADE_DEVICE void lade_ans_prepare(const lade_ans_memory &r, lade_ans_plan *p)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane();
	uint32_t *counts = lade_ans_counts(r);
	uint8_t *seen = lade_ans_seen(r);
	uint32_t elements = (p->size - p->tail) / W, wanted = p->bits, shift = 0;
	while (2 << shift <= LADE_ANS_SPARSE && elements >> (shift + 1) >= LADE_ANS_SAMPLE)
		shift++;
	uint32_t sample = (1u << shift) - 1;
	bool whole = lade_ans_whole<4>(p->src);
	/* The marks are in front of the counts. */
	for (uint32_t i = threadIdx.x; i < (8192 + 2048) / 16; i += blockDim.x)
		((uint4 *)seen)[i] = {0, 0, 0, 0};
	__syncthreads();
	if (whole)
		lade_ans_count<W, true, false>(*p, sample, counts, seen);
	else
		lade_ans_count<W, false, false>(*p, sample, counts, seen);
	__syncthreads();
	if (warp < W)
		lade_ans_merge<W>(counts + 256 * warp, lane);
	for (bool last = !sample;; last = true) {
		if (warp < W && (p->modes >> 4 * warp & 15) != ANS_PLANE_RAW)
			lade_ans_judge(r, warp, counts + 256 * warp, seen + 256 * warp, shift, lane);
		__syncthreads();
		uint32_t open = 0;
		p->modes = 0;
#pragma unroll
		for (uint32_t n = 0; n < W; n++) {
			p->modes |= r.mode[n] << 4 * n;
			open += r.mode[n] != ANS_PLANE_RAW;
		}
		if (last || !open)
			break;
		if (whole)
			lade_ans_count<W, true, true>(*p, sample, counts, seen);
		else
			lade_ans_count<W, false, true>(*p, sample, counts, seen);
		__syncthreads();
	}
	uint32_t least = 0, extra = 0, mine = 0; /* coded planes before this warp's */
#pragma unroll
	for (uint32_t n = 0; n < W; n++) {
		uint32_t mode = p->modes >> 4 * n & 15;
		mine += n < warp && mode == ANS_PLANE_CODED;
		p->coded += mode == ANS_PLANE_CODED;
		p->raw += mode == ANS_PLANE_RAW;
		least += r.least[n];
		extra += r.extra[n];
	}
	p->bits = wanted ? wanted : extra > least / 200 ? 11 : 10;
	while (p->coded << p->bits > ANS_ENTRIES_MAX)
		p->bits--;
	if (warp < W && (p->modes >> 4 * warp & 15) == ANS_PLANE_CODED) {
		uint32_t *text = (uint32_t *)(r.dynamic + lade_ans_texts_at(*p)) + 64 * mine;
		uint32_t *symbol = (uint32_t *)r.dynamic + 256 * mine;
		uint32_t words = lade_ans_table(symbol, text, counts + 256 * warp,
		                                seen + 256 * warp, p->bits, lane);
		if (lane == 0)
			r.word[warp] = words;
	}
	__syncthreads();
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* Writes what stands before the sub-blocks, but for the directory, by a whole block. */
LADE_DEVICE void lade_ans_put_head(const lade_ans_memory &r, const lade_ans_plan &p, uint32_t directory,
                                   uint32_t tables, uint32_t end)
{
	uint32_t width = 1u << p.width_log, at = tables, k = 0;
	for (uint32_t n = 0; n < width; n++) {
		if ((p.modes >> 4 * n & 15) != ANS_PLANE_CODED)
			continue;
		const uint32_t *text = (const uint32_t *)(r.dynamic + lade_ans_texts_at(p)) + 64 * k++;
		for (uint32_t i = threadIdx.x; i < r.word[n]; i += blockDim.x)
			lade_ans_put_word(p.dst + at + 4 * i, text[i]);
		at += 4 * r.word[n];
	}
	if (threadIdx.x < (16 - (at & 15)) % 16)
		p.dst[at + threadIdx.x] = 0;
	if (threadIdx.x < p.tail)
		p.dst[16 * end + threadIdx.x] = p.src[p.size - p.tail + threadIdx.x];
	if (threadIdx.x != 0)
		return;
	lade_ans_put_word(p.dst, ANS_VERSION | ANS_CODED << 8 | p.width_log << 16 |
					 p.block_log << 24);
	lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
	p.dst[ANS_AT_ROWS] = (uint8_t)*r.rows;
	p.dst[ANS_AT_BITS] = (uint8_t)p.bits;
	for (uint32_t n = ANS_AT_PLANES; n < directory; n++)
		p.dst[n] = 0;
	for (uint32_t n = 0; n < width; n++) {
		p.dst[ANS_AT_PLANES + 2 * n] = (uint8_t)r.mode[n];
		p.dst[ANS_AT_PLANES + 2 * n + 1] = (uint8_t)r.word[n];
	}
	lade_ans_put_word(p.dst + tables - 4, end);
}

/* Encodes sub-block 'i' into the warp's columns; 'kind' ANS_STORED: that is no smaller. */
template <int W>
LADE_DEVICE lade_ans_made lade_ans_make(const lade_ans_memory &r, const lade_ans_plan &p, uint32_t i,
                                        uint32_t units, lade_ans_at columns, uint32_t lane)
{
	lade_ans_made made = {ANS_NARROW, 0, 0, 0, 0};
	uint32_t bytes = 4 * W * units, cap = p.slot / 128 - 3;
	if (p.coded) {
		const uint8_t *src = p.src + ((size_t)i << p.block_log);
		lade_ans_at symbol = lade_ans_at_of(r.dynamic);
		made = lade_ans_measure(
			lade_ans_whole<W>(p.src)
				? lade_ans_put_units<W, true>(p, symbol, src, units, columns, cap, lane)
				: lade_ans_put_units<W, false>(p, symbol, src, units, columns, cap,
		                                               lane));
		if (made.most > 2 * cap)
			made.kind = ANS_STORED;
	}
	if (p.raw * 4 * units + made.size >= bytes)
		made.kind = ANS_STORED;
	if (lane == 0 && made.kind != ANS_STORED)
		atomicMax(r.rows, (made.most + 1) / 2);
	return made;
}

/* A chunk that repeats one element, whose bytes are the planes' values; 0: its tail does not, or it
 * would pass the limit. */
LADE_DEVICE uint32_t lade_ans_put_constant(const lade_ans_memory &r, const lade_ans_plan &p)
{
	uint32_t at = p.size - p.tail + threadIdx.x, mask = (1u << p.width_log) - 1;
	uint64_t value = 0;
	for (uint32_t n = 0; n <= mask; n++)
		value |= (uint64_t)r.word[n] << 8 * n;
	bool other = threadIdx.x < p.tail &&
		     p.src[at] != (uint8_t)(value >> 8 * (at & mask));
	if (__syncthreads_or(other) || p.limit < ANS_HEADER)
		return 0;
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_CONSTANT << 8 | p.width_log << 16);
		lade_ans_put_word(p.dst + ANS_AT_SIZE, p.size);
		lade_ans_put_word(p.dst + ANS_AT_VALUE, (uint32_t)value);
		lade_ans_put_word(p.dst + ANS_AT_VALUE + 4, (uint32_t)(value >> 32));
	}
	return ANS_HEADER;
}

/* The chunk, coded; gives its size, 0: it would pass the limit.  By a whole block. */
template <int W> LADE_DEVICE uint32_t lade_ans_put_coded(const lade_ans_memory &r, lade_ans_plan p)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane();
	lade_ans_prepare<W>(r, &p);
	if (!p.coded && !p.raw) {
		uint32_t size = lade_ans_put_constant(r, p);
		if (size)
			return size;
	}
	uint32_t directory = (ANS_AT_PLANES + 2 * W + 3) & ~3u, words = 0;
	uint32_t tables = directory + 4 * (p.block_count + 1);
	for (uint32_t n = 0; n < W; n++)
		words += (p.modes >> 4 * n & 15) == ANS_PLANE_CODED ? r.word[n] : 0;
	uint32_t at = (tables + 4 * words + 15) / 16, columns = lade_ans_columns_at(p);
	if (p.raw == W || p.limit < 16 * at + p.tail)
		return 0;
	/* Rows for symbols of 8 bits, and one more: what needs more of these is stored in the end.  Not
	 * so where other planes take less: a quarter more.  And a row that takes what is too much. */
	uint32_t rows = ((p.coded << p.block_log) / W) / 128;
	p.slot = 128 * (rows + (W > 1 ? rows / 4 + 2 : 1) + 3);
	uint32_t active = (r.bytes - columns) / p.slot;
	active = active < blockDim.x / 32 ? active : blockDim.x / 32;
	uint32_t *room = (uint32_t *)(r.dynamic + columns + warp * p.slot + 128);
	for (uint32_t base = 0; base < p.block_count; base += active) {
		uint32_t i = base + warp, units = 0, size = 0;
		bool has = warp < active && i < p.block_count;
		lade_ans_made made = {ANS_STORED, 0, 0, 0, 0};
		if (has) {
			uint32_t left = p.size - p.tail - (i << p.block_log);
			units = (left < 1u << p.block_log ? left : 1u << p.block_log) / (4 * W);
			made = lade_ans_make<W>(r, p, i, units, lade_ans_at_of(room), lane);
			size = made.kind == ANS_STORED ? 4 * W * units
						       : p.raw * 4 * units + made.size;
		}
		if (lane == 0)
			r.size[warp] = (size + 15) / 16;
		__syncthreads();
		uint32_t off = at, end = at;
		for (uint32_t w = 0; w < blockDim.x / 32; w++) {
			off += w < warp ? r.size[w] : 0;
			end += r.size[w];
		}
		if (16 * (uint64_t)end + p.tail > p.limit)
			return 0;
		if (has) {
			const uint8_t *src = p.src + ((size_t)i << p.block_log);
			uint8_t *dst = p.dst + (size_t)16 * off;
			uint32_t raw = p.raw * 4 * units;
			if (lane == 0)
				lade_ans_put_word(p.dst + directory + 4 * i,
				                  off | made.kind << ANS_OFF_BITS);
			if (made.kind == ANS_STORED) {
				lade_ans_copy(dst, src, size, lane);
			} else {
				if (raw)
					lade_ans_put_raw<W>(p, src, units, dst, lane);
				if (p.coded)
					lade_ans_put_lanes(dst + raw, room, made, lane);
			}
			if (lane < (16 - (size & 15)) % 16)
				dst[size + lane] = 0;
		}
		at = end;
		__syncthreads();
	}
	lade_ans_put_head(r, p, directory, tables, at);
	return 16 * at + p.tail;
}

/* The chunk as it is, by a whole block. */
LADE_DEVICE void lade_ans_put_stored(const lade_ans_plan &p)
{
	uint32_t warps = blockDim.x / 32;
	uint32_t share = ((p.size + warps - 1) / warps + 127) & ~127u;
	uint32_t begin = (uint64_t)share * (threadIdx.x / 32) < p.size
				 ? share * (threadIdx.x / 32)
				 : p.size;
	uint32_t end = p.size - begin < share ? p.size : begin + share;
	if (begin < end)
		lade_ans_copy(p.dst + ANS_HEADER + begin, p.src + begin, end - begin, lade_lane());
	if (threadIdx.x == 0) {
		lade_ans_put_word(p.dst, ANS_VERSION | ANS_RAW << 8 | p.width_log << 16);
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
	LADE_SHARED(uint32_t, mode, [8]);
	LADE_SHARED(uint32_t, word, [8]);
	LADE_SHARED(uint32_t, least, [8]);
	LADE_SHARED(uint32_t, extra, [8]);
	LADE_SHARED(uint32_t, size, [LADE_ANS_WARPS]);
	LADE_SHARED(uint32_t, rows);
	LADE_SHARED(uint32_t, turn);
	LADE_SHARED_DYNAMIC(uint4, dynamic);
	lade_ans_memory r = {(uint8_t *)dynamic, bytes, mode, word, least, extra, size, &rows};
	constexpr uint32_t width_log = W == 1 ? 0 : W == 2 ? 1 : W == 4 ? 2 : 3;
	do {
		if (threadIdx.x == 0) {
			turn = batch.next ? atomicAdd(batch.next, 1u) : blockIdx.x;
			rows = 0;
		}
		__syncthreads();
		uint32_t i = turn, done = 0;
		if (i >= batch.count)
			return;
		lade_gpu_chunk c;
		uint32_t status = lade_chunk_get(batch, i, &c);
		if (status == LADE_GPU_OK && c.src_size > ANS_SIZE_MAX)
			status = LADE_GPU_LIMIT;
		if (status == LADE_GPU_OK) {
			lade_ans_plan p = {lade_global(c.src), lade_global(c.dst), c.src_size, 0,
			                   width_log, block_log, bits};
			uint32_t most = ANS_HEADER + c.src_size;
			p.tail = p.size & (ANS_UNIT * W - 1);
			p.block_count = (p.size - p.tail + (1u << block_log) - 1) >> block_log;
			p.limit = most - 1 < c.dst_cap ? most - 1 : c.dst_cap;
			if (p.block_count)
				done = lade_ans_put_coded<W>(r, p);
			if (!done && most <= c.dst_cap)
				lade_ans_put_stored(p);
			if (!done)
				status = most <= c.dst_cap ? LADE_GPU_OK : LADE_GPU_NOSPACE;
			done = done ? done : most;
		}
		__syncthreads();
		if (threadIdx.x == 0)
			lade_chunk_put(batch, i, status, done);
	} while (batch.next);
}

/*
 * For elements of 1, 2, 4 and 8 bytes.
 *
 * map:    block = a chunk; warp = a sub-block in turn; lane = every 32nd unit of 4 elements
 * shared: 'bytes' of dynamic memory, at least 40,960: tables, and the sub-blocks' columns
 * block:  256 to 512 threads
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
