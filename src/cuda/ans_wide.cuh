/*
 * ans_wide.cuh: chunks of elements of 2, 4 and 8 bytes to the ANS format (docs/format/ans.md, section
 * 7), by a block that holds 64 KiB of them in shared memory.
 *
 * The planes that 1,024 elements show to be noise are not counted.  While a chunk is coded the next
 * one is brought to the second-level cache, and each warp asks for its part of that as soon as its
 * sub-block is written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_WIDE_CUH
#define LADE_CUDA_ANS_WIDE_CUH

#include "cuda/ans_put.cuh"
#include "cuda/stage.cuh"

/* ---- the chunk in shared memory --------------------------------------------------------- */

/* A block's part of a chunk. */
struct lade_ans_hold {
	uint8_t *bytes;
	uint32_t size;    /* of the memory */
	lade_stager *way; /* the warp's */
};

/* log2 of a warp's share. */
LADE_DEVICE uint32_t lade_ans_hold_log(const lade_ans_hold &h)
{
	return 5 + (uint32_t)__clz((int)blockDim.x) - (uint32_t)__clz((int)h.size);
}

/* Begins to bring the warp's share of the chunk's q-th part, and with it what was there goes. */
template <int W>
LADE_DEVICE void lade_ans_hold_begin(const lade_ans_hold &h, const lade_ans_plan &p, uint32_t q,
                                     uint32_t lane)
{
	/* Either is spilt elsewhere. */
	uint32_t share = W == 2 ? 1u << lade_ans_hold_log(h) : h.size / (blockDim.x / 32), own = share * (threadIdx.x / 32);
	uint32_t at = q * h.size + own, end = p.size - p.tail, left = at < end ? end - at : 0;
	lade_stage_begin(h.way, (uint4 *)(h.bytes + own), p.src + at, left < share ? left : share,
	                 lane);
}

/*
 * Whether the elements of 2 bytes of the chunk's first part are to be crossed: a quarter and more of
 * those that are looked at, 32 of each warp's share, are negative, and a quarter and more are not.
 * By a whole block, in place of its __syncthreads().
 */
LADE_DEVICE bool lade_ans_hold_signs(const lade_ans_hold &h, const lade_ans_plan &p, uint32_t lane)
{
	uint32_t log = lade_ans_hold_log(h), own = threadIdx.x / 32 << log;
	uint32_t at = own + (lane << (log - 5)) + 4 * (lane & 7), end = p.size - p.tail;
	uint32_t looked = end < h.size ? (end + (1u << log) - 1) >> log << 5 : blockDim.x;
	at = at < end ? at : end - 2;
	uint32_t negative = (uint32_t)__syncthreads_count(own < end && h.bytes[at + 1] >> 7);
	return 4 * negative >= looked && 4 * (looked - negative) >= looked;
}

/* Exchanges bits 7 and 15 of the elements in the warp's share of the q-th part. */
LADE_DEVICE void lade_ans_hold_cross(const lade_ans_hold &h, const lade_ans_plan &p, uint32_t q,
                                    uint32_t lane)
{
	uint32_t log = lade_ans_hold_log(h), share = 1u << log, own = threadIdx.x / 32 << log;
	uint32_t at = q * h.size + own, end = p.size - p.tail, left = at < end ? end - at : 0;
	uint4 *bytes = (uint4 *)(h.bytes + own);
	left = left < share ? left : share;
#pragma unroll 1
	for (uint32_t i = lane; 16 * i < left; i += 32) {
		uint4 v = bytes[i];
		v.x = lade_ans_cross(v.x, __byte_perm(v.x, 0, 0x2301));
		v.y = lade_ans_cross(v.y, __byte_perm(v.y, 0, 0x2301));
		v.z = lade_ans_cross(v.z, __byte_perm(v.z, 0, 0x2301));
		v.w = lade_ans_cross(v.w, __byte_perm(v.w, 0, 0x2301));
		bytes[i] = v;
	}
}

/* Another part than the one that is there, by a whole block. */
template <int W>
LADE_DEVICE void lade_ans_hold_other(const lade_ans_hold &h, const lade_ans_plan &p, uint32_t q,
                                     uint32_t lane)
{
	__syncthreads();
	lade_ans_hold_begin<W>(h, p, q, lane);
	lade_stage_wait<0>(h.way);
	if (W == 2 && p.crossed)
		lade_ans_hold_cross(h, p, q, lane);
	__syncthreads();
}

/* A unit. */
template <int W> LADE_DEVICE void lade_ans_unit_get(const uint8_t *from, uint32_t *word)
{
	if (W == 2) {
		uint2 two = *(const uint2 *)from;
		word[0] = two.x;
		word[1] = two.y;
	}
#pragma unroll
	for (int k = 0; k < W / 4 * 4; k += 4) {
		uint4 four = ((const uint4 *)from)[k / 4];
		word[k % W] = four.x;
		word[(k + 1) % W] = four.y;
		word[(k + 2) % W] = four.z;
		word[(k + 3) % W] = four.w;
	}
}

/* Plane n of a unit: byte n of the 4 elements. */
template <int W> LADE_DEVICE uint32_t lade_ans_plane_of(const uint32_t *word, uint32_t n)
{
	if (W == 2)
		return __byte_perm(word[0], word[1], 0x6420 + 0x1111 * n);
	uint32_t four[4], pair = 0x40 + 0x11 * (n & 3);
#pragma unroll
	for (int j = 0; j < 4; j++)
		four[j] = W == 4 ? word[j % W] : n & 4 ? word[(2 * j + 1) % W] : word[2 * j % W];
	return __byte_perm(__byte_perm(four[0], four[1], pair), __byte_perm(four[2], four[3], pair),
	                   0x5410);
}

/* All planes of a unit. */
template <int W> LADE_DEVICE void lade_ans_planes_of(const uint32_t *word, uint32_t *plane)
{
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

/* The word of plane n of the unit that the lane has in row g, where turn is lane + g. */
template <int W>
LADE_DEVICE uint32_t lade_ans_row_word(const uint8_t *row, uint32_t turn, uint32_t n)
{
	uint32_t word[W];
	lade_ans_unit_get<W>(row + 4 * W * (turn & 31), word);
	return lade_ans_plane_of<W>(word, n);
}

/* ---- counts ----------------------------------------------------------------------------- */

#define LADE_ANS_LOOK 1024 /* elements that show noise, of at least eight times as many */

/* Memory of a block for counts, and for those of what it looks at. */
template <int W> struct lade_ans_counters {
	static constexpr uint32_t BYTES = 8192, ALL = BYTES + 1024 * W;
};

/* Counts the planes of these elements, which are spread over the chunk in 8 rows. */
template <int W>
LADE_DEVICE void lade_ans_look(const uint8_t *held, uint32_t units, lade_ans_at count, uint32_t lane)
{
	constexpr uint32_t ROWS = LADE_ANS_LOOK / 128;
	for (uint32_t row = threadIdx.x / 32; row < ROWS; row += blockDim.x / 32) {
		uint32_t u = units / ROWS * row + 32 * (3 * row & 7) + lane, word[W];
		lade_ans_unit_get<W>(held + 4 * W * u, word);
#pragma unroll
		for (int k = 0; k < 4 * W; k++)
			lade_ans_bump(count + 1024 * (k % W) +
			              4 * (lade_ans_at)__byte_perm(word[k / 4], 0, 0x4440 + k % 4));
	}
}

/* The planes that are not noise by these counts, for a whole warp: the sum of c (c - 1) would be 4,092
 * for even chances, and is below 4,700 where the entropy is above 7.8 bits. */
template <int W> LADE_DEVICE uint32_t lade_ans_worth(const uint32_t *count, uint32_t lane)
{
	uint32_t worth = 0;
#pragma unroll
	for (uint32_t n = 0; n < W; n++) {
		const uint4 *two = (const uint4 *)(count + 256 * n);
		uint4 a = two[lane], b = two[lane + 32];
		uint32_t sum = a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w + b.x * b.x + b.y * b.y +
			       b.z * b.z + b.w * b.w;
		worth |= (uint32_t)(lade_ans_sum(sum) >= LADE_ANS_LOOK + 4700) << n;
	}
	return worth;
}

/* Counts plane n in 16 bytes. */
template <int W>
LADE_DEVICE void lade_ans_count_piece(const uint8_t *from, uint32_t n, lade_ans_at count)
{
	uint32_t word[4], byte = 0x4440 + (n & 3);
	lade_ans_unit_get<4>(from, word);
#pragma unroll
	for (int j = 0; j < (W == 8 ? 2 : 4); j++) {
		uint32_t w = W < 8 ? word[j] : n & 4 ? word[(2 * j + 1) % 4] : word[2 * j % 4];
		lade_ans_bump(count + 4 * (lade_ans_at)__byte_perm(w, 0, byte));
		if (W == 2)
			lade_ans_bump(count + 4 * (lade_ans_at)__byte_perm(w, 0, byte + 2));
	}
}

/* Counts the wanted planes of 'bytes' of whole units, by a whole block: 8 KiB of counts are 8 / W
 * copies, of which each warp has one. */
template <int W>
LADE_DEVICE void lade_ans_count_planes(const uint8_t *held, uint32_t bytes, uint32_t wanted,
                                       uint32_t *counts)
{
	uint32_t pieces = bytes / 16, step = 16 * blockDim.x;
	lade_ans_at count = lade_ans_at_of(counts + 256 * W * (threadIdx.x / 32 % (8 / W)));
	for (uint32_t m = wanted; m; m &= m - 1) {
		uint32_t n = (uint32_t)__ffs((int)m) - 1, at = threadIdx.x;
		lade_ans_at plane = count + (lade_ans_at)(1024 * n);
		const uint8_t *from = held + 16 * at;
#pragma unroll 1
		for (; at + 3 * blockDim.x < pieces; at += 4 * blockDim.x, from += 4 * step) {
			lade_ans_count_piece<W>(from, n, plane);
			lade_ans_count_piece<W>(from + step, n, plane);
			lade_ans_count_piece<W>(from + 2 * step, n, plane);
			lade_ans_count_piece<W>(from + 3 * step, n, plane);
		}
#pragma unroll 1
		for (; at < pieces; at += blockDim.x, from += step)
			lade_ans_count_piece<W>(from, n, plane);
		/* Half a piece. */
		if (W == 2 && bytes % 16 && threadIdx.x < 4)
			lade_ans_bump(plane + 4 * (lade_ans_at)held[16 * pieces + 2 * threadIdx.x + n]);
	}
}

/* ---- sub-blocks ------------------------------------------------------------------------- */

/*
 * Encodes a sub-block of which plane n alone is coded into the columns, for a whole warp; gives the
 * lane's halves.  A lane that needs more rows than these have has more halves than they hold.
 */
template <int W>
LADE_DEVICE uint32_t lade_ans_put_plane(uint32_t n, uint32_t bits, const lade_ans_desk &desk,
                                        const uint8_t *src, uint32_t units, uint32_t lane)
{
	constexpr uint32_t ROW = 128 * W;
	lade_ans_writer me;
	uint32_t rows = units / 32, left = rows & ~3u, next[4], first = 0;
	const uint8_t *row = src + ROW * left;
	if (left) {
#pragma unroll
		for (uint32_t j = 0; j < 4; j++)
			next[j] = lade_ans_row_word<W>(row - ROW * (j + 1), lane + left - 1 - j, n);
		first = next[0];
	}
	rows += ((lane + rows) & 31) < units % 32;
	if (!rows)
		return 0;
	if (rows != left)
		first = lade_ans_row_word<W>(src + ROW * (rows - 1), lane + rows - 1, n);
	lade_ans_at begin = desk.columns + (lade_ans_at)(4 * lane);
	lade_ans_at end = begin + (lade_ans_at)(128 * desk.rows);
	me.to = begin - 128;
	me.open(lade_ans_load(desk.symbol + (lade_ans_at)(first >> 24 << 2)), 1u << bits);
	/* What is more than fours of rows. */
#pragma unroll 1
	for (; rows > left; rows--)
		lade_ans_put_one(&me, desk.symbol, end,
		                 lade_ans_row_word<W>(src + ROW * (rows - 1), lane + rows - 1, n));
	for (uint32_t turn = lane + left - 5; left; left -= 4, turn -= 4, row -= 4 * ROW) {
		uint32_t word[4];
#pragma unroll
		for (uint32_t j = 0; j < 4; j++) {
			word[j] = next[j];
			if (left > 4)
				next[j] = lade_ans_row_word<W>(row - ROW * (j + 5), turn - j, n);
		}
		if (bits <= 10) {
			lade_ans_put_sixteen(&me, desk.symbol, end, word);
			continue;
		}
#pragma unroll
		for (uint32_t j = 0; j < 4; j++)
			lade_ans_put_one(&me, desk.symbol, end, word[j]);
	}
	return me.close(begin, bits, desk.rows);
}

/* The same of some coded planes. */
template <int W>
LADE_DEVICE uint32_t lade_ans_put_planes(uint32_t coded, uint32_t bits, const lade_ans_desk &desk,
                                         const uint8_t *src, uint32_t units, uint32_t lane)
{
	lade_ans_writer me;
	uint32_t rows = units / 32;
	rows += ((lane + rows) & 31) < units % 32;
	if (!rows)
		return 0;
	lade_ans_at begin = desk.columns + (lade_ans_at)(4 * lane);
	lade_ans_at end = begin + (lade_ans_at)(128 * desk.rows);
	lade_ans_at symbol = desk.symbol + (lade_ans_at)(1024 * ((uint32_t)__popc((int)coded) - 1));
	const uint8_t *row = src + 128 * W * (rows - 1);
	uint32_t turn = lane + rows - 1, next[W];
	uint32_t byte = lade_ans_row_word<W>(row, turn, 31 - (uint32_t)__clz((int)coded)) >> 24;
	me.to = begin - 128;
	me.open(lade_ans_load(symbol + (lade_ans_at)(4 * byte)), 1u << bits);
	lade_ans_unit_get<W>(row + 4 * W * (turn & 31), next);
	for (; rows; rows--, row -= 128 * W) {
		uint32_t plane[W];
		lade_ans_at table = symbol;
		lade_ans_planes_of<W>(next, plane);
		turn--;
		if (rows > 1)
			lade_ans_unit_get<W>(row - 128 * W + 4 * W * (turn & 31), next);
#pragma unroll
		for (int n = W - 1; n >= 0; n--) {
			if (!(coded >> n & 1))
				continue;
			lade_ans_put_one(&me, table, end, plane[n]);
			table -= 1024;
		}
	}
	return me.close(begin, bits, desk.rows);
}

/* Writes a sub-block's raw planes, to words or at any address, by a whole warp. */
template <int W, bool WORDS>
LADE_DEVICE void lade_ans_put_raw(uint8_t *dst, uint32_t raw, const uint8_t *src, uint32_t units,
                                  uint32_t lane)
{
	dst = lade_global(dst) + 4 * lane;
	src += 4 * W * lane;
#pragma unroll 1
	for (uint32_t m = raw; m; m &= m - 1, dst += 4 * units) {
		uint32_t n = (uint32_t)__ffs((int)m) - 1, u = lane, word[W];
		const uint8_t *from = src;
		uint8_t *to = dst;
#pragma unroll 1
		for (; WORDS && u + 96 < units; u += 128, from += 512 * W, to += 512) {
#pragma unroll
			for (int j = 0; j < 4; j++) {
				lade_ans_unit_get<W>(from + 128 * W * j, word);
				*(uint32_t *)(to + 128 * j) = lade_ans_plane_of<W>(word, n);
			}
		}
#pragma unroll 1
		for (; u < units; u += 32, from += 128 * W, to += 128) {
			lade_ans_unit_get<W>(from, word);
			if (WORDS)
				*(uint32_t *)to = lade_ans_plane_of<W>(word, n);
			else
				lade_ans_put_word(to, lade_ans_plane_of<W>(word, n));
		}
	}
}

/*
 * Counts the planes that need not be kept as they are, by a whole block; gives these.  The last one is
 * always counted, while others are looked at: in floats it is the one that is coded.
 */
template <int W>
LADE_DEVICE uint32_t lade_ans_count_wanted(const lade_ans_hold &h, const lade_ans_plan &p,
                                           uint32_t *looked, uint32_t lane)
{
	uint32_t bytes = p.size - p.tail, all = (1u << W) - 1, last = 1u << (W - 1);
	uint32_t *counts = looked + 256 * W;
	if (bytes <= h.size && bytes >= 8 * LADE_ANS_LOOK * W) {
		lade_ans_look<W>(h.bytes, bytes / (4 * W), lade_ans_at_of(looked), lane);
		lade_ans_count_planes<W>(h.bytes, bytes, last, counts);
		__syncthreads();
		all = lade_ans_worth<W>(looked, lane) | last;
		if (all == last)
			return all;
		lade_ans_count_planes<W>(h.bytes, bytes, all & ~last, counts);
	} else {
		for (uint32_t at = 0; at < bytes; at += h.size) {
			if (at)
				lade_ans_hold_other<W>(h, p, at / h.size, lane);
			lade_ans_count_planes<W>(h.bytes, bytes - at < h.size ? bytes - at : h.size,
			                         all, counts);
		}
	}
	__syncthreads();
	return all;
}

/* ---- tables ----------------------------------------------------------------------------- */

/*
 * Eight warps make a plane's verdict and table, a symbol a thread.  The functions are for the whole
 * group.
 */
struct lade_ans_group {
	uint4 *part; /* in shared memory: two times what its warps tell each other */
	uint32_t turn, id, warp;
};

/* What the warps have: the one of lane 31 of warp l to lane l, and zeros to lanes from 8 on. */
LADE_DEVICE uint4 lade_ans_gathered(lade_ans_group *g, uint4 mine, uint32_t lane)
{
	uint4 *part = g->part + 8 * g->turn, got = {0, 0, 0, 0};
	g->turn ^= 1;
	if (lane == 31)
		part[g->warp] = mine;
	lade_bar_sync(1 + g->id, 256);
	if (lane < 8)
		got = part[lane];
	return got;
}

/* The sum of a number that is below the thread's, with what all have in 'all'. */
LADE_DEVICE uint32_t lade_ans_below(lade_ans_group *g, uint32_t mine, uint32_t *all, uint32_t lane)
{
	uint32_t upto = lade_warp_scan(mine, lane);
	uint4 got = lade_ans_gathered(g, {upto, 0, 0, 0}, lane);
	*all = lade_ans_sum(got.x);
	return lade_ans_sum(lane < g->warp ? got.x : 0) + upto - mine;
}

/* The thread's count of a plane, scaled so that the sum, 'total', is below 2^17. */
template <int W>
LADE_DEVICE uint32_t lade_ans_count_of(lade_ans_group *g, const uint32_t *counts, uint32_t *total,
                                       uint32_t lane)
{
	uint32_t count = 0, shift = *total >> 16 ? 16 - (uint32_t)__clz((int)*total) : 0;
#pragma unroll
	for (uint32_t c = 0; c < 8 / W; c++)
		count += counts[256 * W * c + 32 * g->warp + lane];
	if (shift) {
		count = (count >> shift) + (count > 0);
		lade_ans_below(g, count, total, lane);
	}
	return count;
}

LADE_DEVICE lade_ans_verdict lade_ans_judge_group(lade_ans_group *g, uint32_t count, uint32_t total,
                                                  uint32_t lane)
{
	lade_ans_verdict v = {ANS_PLANE_RAW, count ? 32 * g->warp + lane : 0, 0, 0};
	uint32_t present = (uint32_t)__popc((int)__ballot_sync(LADE_FULL, count > 0));
	if (count)
		lade_ans_judge_one(count, total, lade_ans_log2(total), &v);
	uint4 got = lade_ans_gathered(g, {lade_ans_sum(v.least), lade_ans_sum(v.extra), present,
	                                  __reduce_max_sync(LADE_FULL, v.value)}, lane);
	v.least = lade_ans_sum(got.x);
	v.extra = lade_ans_sum(got.y);
	v.value = __reduce_max_sync(LADE_FULL, got.w);
	return lade_ans_verdict_of(v, lade_ans_sum(got.z), total);
}

/* The thread's symbol's frequency, as lade_ans_normalise() makes it, and the sum of those below. */
LADE_DEVICE uint32_t lade_ans_frequency(lade_ans_group *g, uint32_t count, uint32_t total,
                                        uint32_t bits, uint32_t *first, uint32_t lane)
{
	uint32_t left = total, room = 1u << bits, all;
	bool small = false;
	for (bool again = true; again;) {
		bool less = count && !small && count * room < left + left / 64;
		uint32_t some = (uint32_t)__popc((int)__ballot_sync(LADE_FULL, less));
		uint4 got = lade_ans_gathered(g, {lade_ans_sum(less ? count : 0), some, 0, 0}, lane);
		small |= less;
		left -= lade_ans_sum(got.x);
		some = lade_ans_sum(got.y);
		room -= some;
		again = some > 0;
	}
	/* Counts below, and small ones among them. */
	uint32_t below = lade_ans_below(g, small ? 1u << 20 : count, &all, lane);
	uint32_t sum = below & 0xFFFFF;
	float scale = (float)room / (float)left;
	uint32_t before = (uint32_t)((float)sum * scale + 0.5f);
	*first = before + (below >> 20);
	return small ? 1 : (uint32_t)((float)(sum + count) * scale + 0.5f) - before;
}

/* The k-th coded plane's table and its description; gives the words of that. */
LADE_DEVICE uint32_t lade_ans_table_group(const lade_ans_memory &r, lade_ans_group *g, uint32_t count,
                                          uint32_t total, uint32_t k, const lade_ans_choice &c,
                                          uint32_t lane)
{
	uint32_t s = 32 * g->warp + lane, first, all;
	uint32_t *text = lade_ans_text(r, (uint32_t)__popc((int)c.coded), k);
	uint32_t freq = lade_ans_frequency(g, count, total, c.bits, &first, lane);
	uint32_t q = freq ? 31 - (uint32_t)__clz((int)freq) : 0;
	((uint32_t *)(r.dynamic + 1024 * k))[s] = freq ? lade_ans_symbol(freq, first, c.bits) : 0;
	if (s < 64)
		text[s] = 0;
	/* Symbols below, and the bits of their mantissas. */
	uint32_t below = lade_ans_below(g, freq ? q << 10 | 1 : 0, &all, lane);
	uint32_t there = __ballot_sync(LADE_FULL, freq > 0);
	uint32_t begin = 8 * (32 + ((all & 1023) + 1) / 2);
	if (lane == 0)
		text[g->warp] = there;
	if (freq) {
		lade_ans_put_bits(text, 256 + 4 * (below & 1023), q, 4);
		lade_ans_put_bits(text, begin + (below >> 10), freq - (1u << q), q);
	}
	return (begin + (all >> 10) + 31) / 32;
}

/* Writes down a plane's verdict, by one lane. */
LADE_DEVICE void lade_ans_note(const lade_ans_memory &r, uint32_t n, const lade_ans_verdict &v)
{
	r.facts->mode[n] = v.mode;
	r.facts->least[n] = v.least;
	r.facts->extra[n] = v.extra;
	r.facts->word[n] = v.value;
}

/* The n-th bit that is set, or 32. */
LADE_DEVICE uint32_t lade_ans_nth(uint32_t set, uint32_t n)
{
	for (; n; n--)
		set &= set - 1;
	return set ? (uint32_t)__ffs((int)set) - 1 : 32;
}

/*
 * Counts, chooses the planes' modes and the states, and makes the tables, by a whole block, of which
 * the last warp takes the next chunk.
 */
template <int W>
LADE_DEVICE void lade_ans_prepare(const lade_gpu_batch &batch, const lade_ans_memory &r,
                                             const lade_ans_hold &h, const lade_ans_plan &p,
                                             lade_ans_taken *next, uint4 *part, uint32_t bits)
{
	uint32_t warp = threadIdx.x / 32, groups = blockDim.x / 256, lane = lade_lane(), turn = 0;
	bool taker = threadIdx.x == blockDim.x - 1;
	if (taker)
		turn = batch.next ? atomicAdd(batch.next, 1u) : batch.count;
	uint32_t *looked = (uint32_t *)(r.dynamic + r.bytes - lade_ans_counters<W>::ALL);
	uint32_t *counts = looked + 256 * W, wanted = lade_ans_count_wanted<W>(h, p, looked, lane);
	lade_ans_group g = {part + 16 * (warp / 8), 0, warp / 8, warp % 8};
	if (threadIdx.x < W && !(wanted >> threadIdx.x & 1))
		lade_ans_note(r, threadIdx.x, {ANS_PLANE_RAW, 0, 0, 0});
	for (uint32_t i = g.id; i < (uint32_t)__popc((int)wanted); i += groups) {
		uint32_t n = lade_ans_nth(wanted, i), total = (p.size - p.tail) / W;
		uint32_t count = lade_ans_count_of<W>(&g, counts + 256 * n, &total, lane);
		lade_ans_verdict v = lade_ans_judge_group(&g, count, total, lane);
		if (g.warp == 0 && lane == 0)
			lade_ans_note(r, n, v);
	}
	__syncthreads();
	lade_ans_choice c = lade_ans_choose<W>(r, bits, lane);
	if (threadIdx.x == 0)
		r.facts->choice = c;
	for (uint32_t k = g.id; k < (uint32_t)__popc((int)c.coded); k += groups) {
		uint32_t n = lade_ans_nth(c.coded, k), total = (p.size - p.tail) / W;
		uint32_t count = lade_ans_count_of<W>(&g, counts + 256 * n, &total, lane);
		uint32_t words = lade_ans_table_group(r, &g, count, total, k, c, lane);
		if (g.warp == 0 && lane == 0)
			r.facts->word[n] = words;
	}
	if (taker) {
		next->i = turn;
		lade_ans_take<W>(batch, p.block_log, next);
		lade_stage_ahead(next->plan.src,
		                 next->plan.size < h.size ? next->plan.size : h.size);
	}
	__syncthreads();
}

/* ---- a chunk ---------------------------------------------------------------------------- */

/* Encodes a sub-block into the columns, for a whole warp. */
template <int W>
LADE_DEVICE lade_ans_made lade_ans_make(const lade_ans_choice &c, const lade_ans_desk &desk,
                                        const uint8_t *src, uint32_t units, uint32_t lane)
{
	lade_ans_made made = {ANS_NARROW, 0, 0, 0, 0};
	if (c.coded & (c.coded - 1))
		made = lade_ans_measure(
			lade_ans_put_planes<W>(c.coded, c.bits, desk, src, units, lane));
	else if (c.coded)
		made = lade_ans_measure(lade_ans_put_plane<W>((uint32_t)__ffs((int)c.coded) - 1, c.bits,
		                                              desk, src, units, lane));
	return made;
}

/* Writes it where it belongs, for a whole warp. */
template <int W>
LADE_DEVICE void lade_ans_put_block(uint8_t *dst, const lade_ans_choice &c,
                                    const lade_ans_made &made, const uint32_t *columns,
                                    const uint8_t *src, uint32_t units, uint32_t lane)
{
	if (c.raw && !((uintptr_t)dst & 3))
		lade_ans_put_raw<W, true>(dst, c.raw, src, units, lane);
	else if (c.raw)
		lade_ans_put_raw<W, false>(dst, c.raw, src, units, lane);
	if (c.coded)
		lade_ans_put_lanes(dst + (uint32_t)__popc((int)c.raw) * 4 * units, columns, made, lane);
}

/*
 * The chunk, coded; gives its size, 0: it would pass the limit.  By a whole block.  'ahead': the warp
 * has begun to bring its share of the next chunk.
 */
template <int W>
LADE_DEVICE uint32_t lade_ans_put_coded(const lade_gpu_batch &batch, const lade_ans_memory &r,
                                        const lade_ans_hold &h, const lade_ans_plan &p,
                                        lade_ans_taken *next, uint4 *part, uint32_t bits,
                                        bool *ahead)
{
	uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = lade_lane();
	lade_ans_prepare<W>(batch, r, h, p, next, part, bits);
	const lade_ans_choice &c = r.facts->choice;
	if (!c.coded && !c.raw) {
		uint32_t size = lade_ans_put_constant<W>(r, p);
		if (size)
			return size;
	}
	uint32_t at = lade_ans_body<W>(r, p, lane);
	if (c.raw == (1u << W) - 1 || !lade_ans_fits(p, at))
		return 0;
	/* Columns for symbols of 8 bits, and one row more: what needs more of these is stored in the
	 * end.  Not so where other coded planes take less: a quarter more. */
	uint32_t block = 1u << p.block_log, coded = (uint32_t)__popc((int)c.coded);
	uint32_t rows = coded * (block / W) / 128, active = warps, per = h.size >> p.block_log;
	rows += coded > 1 ? rows / 4 + 2 : 1;
	uint8_t *own = r.dynamic + 1280 * coded + warp * 128 * (rows + 4) + 128;
	if (active * 128 * (rows + 4) > r.bytes - 1280 * coded)
		active = (r.bytes - 1280 * coded) / (128 * (rows + 4));
	lade_ans_desk desk = {lade_ans_at_of(r.dynamic), lade_ans_at_of(own), rows};
	for (uint32_t base = 0, held = 0; base < p.block_count;) {
		uint32_t end = held + per < p.block_count ? held + per : p.block_count;
		if (base == held && p.block_count > per)
			lade_ans_hold_other<W>(h, p, held / per, lane);
		uint32_t i = base + warp, units = 0, size = 0;
		bool has = warp < active && i < end;
		const uint8_t *src = h.bytes + ((i - held) << p.block_log);
		lade_ans_made made = {ANS_NARROW, 0, 0, 0, 0};
		if (has) {
			uint32_t left = p.size - p.tail - (i << p.block_log);
			units = (left < block ? left : block) / (4 * W);
			made = lade_ans_make<W>(c, desk, src, units, lane);
			size = lade_ans_settle<W>(r, desk, c, &made, units, lane);
		}
		uint32_t off = lade_ans_place(r, &at, size);
		if (!lade_ans_fits(p, at))
			return 0;
		if (has) {
			uint8_t *dst = lade_ans_put_entry<W>(p, i, off, made.kind, lane);
			if (made.kind == ANS_STORED)
				lade_ans_copy(dst, p.src + ((size_t)i << p.block_log), size, lane);
			else
				lade_ans_put_block<W>(dst, c, made, (const uint32_t *)own, src, units,
				                      lane);
			if (lane < (16 - (size & 15)) % 16)
				dst[size + lane] = 0;
		}
		base += active;
		if (base >= end)
			base = held = end;
		if (active == warps && per == warps && p.block_count <= per) {
			/* Nobody else reads the warp's part. */
			lade_ans_hold_begin<W>(h, next->plan, 0, lane);
			*ahead = true;
		} else {
			__syncthreads();
		}
	}
	lade_ans_put_head<W>(r, p, at);
	return 16 * at + p.tail;
}

/* The kernels' body, for elements of W bytes; 'signs': of bfloat16, which is crossed where these vary. */
template <int W>
LADE_DEVICE void lade_ans_encode_wide(const lade_gpu_batch &batch, uint32_t block_log, uint32_t bits,
                                      uint32_t bytes, uint32_t hold, bool signs)
{
	LADE_SHARED(lade_ans_taken, taken, [2]);
	LADE_SHARED(lade_ans_facts, facts);
	LADE_SHARED(unsigned long long, barrier, [LADE_ANS_WARPS]);
	LADE_SHARED(uint4, part, [32]);
	LADE_SHARED_DYNAMIC(uint4, dynamic);
	constexpr uint32_t COUNTS = lade_ans_counters<W>::ALL;
	uint32_t lane = lade_lane();
	lade_stager way;
	lade_stage_open(&way, &barrier[threadIdx.x / 32], lane);
	lade_ans_memory r = {(uint8_t *)dynamic + hold, bytes - hold, &facts};
	lade_ans_hold h = {(uint8_t *)dynamic, hold, &way};
	bool ahead = false;
	if (threadIdx.x == 0) {
		taken[0].i = batch.next ? atomicAdd(batch.next, 1u) : blockIdx.x;
		lade_ans_take<W>(batch, block_log, &taken[0]);
	}
	__syncthreads();
	for (uint32_t k = 0;; k ^= 1) {
		const lade_ans_taken &t = taken[k];
		if (t.i >= batch.count)
			return;
		if (!ahead)
			lade_ans_hold_begin<W>(h, t.plan, 0, lane);
		ahead = false;
		if (threadIdx.x == 0)
			facts.rows = 0;
		uint4 *counts = (uint4 *)(r.dynamic + r.bytes - COUNTS);
		for (uint32_t i = threadIdx.x; i < COUNTS / 16; i += blockDim.x)
			counts[i] = {0, 0, 0, 0};
		lade_stage_wait<0>(&way);
		if (W != 2 || !signs) {
			__syncthreads();
		} else if (lade_ans_hold_signs(h, t.plan, lane)) {
			lade_ans_hold_cross(h, t.plan, 0, lane);
			if (threadIdx.x == 0)
				taken[k].plan.crossed = true;
			__syncthreads();
		}
		uint32_t done = 0;
		if (t.status == LADE_GPU_OK && t.plan.block_count) {
			done = lade_ans_put_coded<W>(batch, r, h, t.plan, &taken[k ^ 1], part, bits,
			                             &ahead);
		} else if (threadIdx.x == 0) {
			taken[k ^ 1].i = batch.next ? atomicAdd(batch.next, 1u) : batch.count;
			lade_ans_take<W>(batch, block_log, &taken[k ^ 1]);
		}
		lade_ans_finish<W>(batch, t, done);
	}
}

#endif
