/*
 * bitcomp_make.cuh: a sub-block of bitcomp (docs/format/bitcomp.md, sections 2 and 3) from elements
 * in shared memory, made by a warp in their place; for bitcomp and cascaded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BITCOMP_MAKE_CUH
#define LADE_CUDA_BITCOMP_MAKE_CUH

#include "codec/bitcomp/kernels/bitcomp_choose.cuh"
#include "codec/bitcomp/kernels/bitcomp_decimals.cuh"
#include "codec/bitcomp/kernels/bitcomp_masks.cuh"

/* The bytes before the payload. */
LADE_DEVICE uint32_t lade_bitcomp_fixed(uint32_t log, uint32_t mode, uint32_t words, uint32_t units)
{
	return LADE_BITCOMP_HEADER + (log == 3 && mode & LADE_BITCOMP_DELTA ? 16 : 0) +
	       lade_bitcomp_up(mode & LADE_BITCOMP_DICT ? words : 0) +
	       lade_bitcomp_up(mode & LADE_BITCOMP_WIDTHS ? (units + 1) / 2 : 0);
}

/* The minimum of the transformed elements and the maxima of the lane's units, as
 * lade_bitcomp_tops() returns them; for elements of 8 bytes, of their low halves. */
template <int LOG> struct lade_bitcomp_range {
	static constexpr uint32_t TOPS = LOG < 2 ? 8 : 16, FOUR = TOPS / 4;
	uint32_t low, all_high, any_high, top[TOPS];

	/* Called before each four groups, from the last four to the first. */
	__device__ __forceinline__ void shift()
	{
#pragma unroll
		for (uint32_t i = TOPS; i-- > FOUR;)
			top[i] = top[i - FOUR];
	}

	/* Two groups, the first or second (j) of the first four. */
	__device__ __forceinline__ void take(const uint32_t (*w)[4], uint32_t j)
	{
		if constexpr (LOG < 3) {
			lade_bitcomp_low<LOG> least = {low};
			least.take(w[0]);
			least.take(w[1]);
			low = least.low;
			lade_bitcomp_tops<LOG>(w, top + j * FOUR / 2);
		} else {
#pragma unroll
			for (uint32_t k = 0; k < 2; k++) {
				low = min(low, min(w[k][0], w[k][2]));
				top[2 * j + k] = max(w[k][0], w[k][2]);
				all_high &= w[k][1] & w[k][3];
				any_high |= w[k][1] | w[k][3];
			}
		}
	}
};

/* Sets the needs of units behind the last one to 0. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_present(uint32_t *four, uint32_t units, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	if (units == 16 * shape::IN_GROUP)
		return;
#pragma unroll
	for (uint32_t k = 0; k < 16; k++) {
		uint32_t unit = k * shape::IN_GROUP + lane / shape::LANES;
		four[k / 4] &= unit < units ? LADE_FULL : ~(0xFFu << 8 * (k & 3));
	}
}

/* The minimum of elements of 8 bytes whose high halves differ, and what units need. */
LADE_DEVICE uint64_t lade_bitcomp_survey_long(const lade_bitcomp_warp_smem *own_smem,
                                              uint32_t groups, uint32_t lane, uint32_t *four)
{
	uint32_t w[4];
	lade_bitcomp_low<3> low = {~(uint64_t)0};
#pragma unroll 1
	for (uint32_t g = 0; g < groups; g++) {
		lade_bitcomp_get(own_smem, g, lane, w);
		low.take(w);
	}
	uint64_t least = low.get();
#pragma unroll
	for (uint32_t q = 0; q < 4; q++) {
		four[q] = 0;
#pragma unroll 1
		for (uint32_t k = 0; k < 4 && 4 * q + k < groups; k++) {
			lade_bitcomp_get(own_smem, 4 * q + k, lane, w);
			lade_bitcomp_refer<3>(w, least);
			four[q] |= lade_bitcomp_need<3>(w) << 8 * k;
		}
	}
	return least;
}

/* Transforms all elements in place as 'mode' says; returns their minimum, and in 'four' the bits
 * that units then need. */
template <int LOG>
LADE_DEVICE uint64_t lade_bitcomp_survey(lade_bitcomp_warp_smem *own_smem, uint32_t groups,
                                         uint32_t units, uint32_t mode, uint2 flip, uint32_t lane,
                                         uint32_t *four)
{
	constexpr uint32_t FOUR = lade_bitcomp_range<LOG>::FOUR;
	lade_bitcomp_range<LOG> range = {LADE_FULL, LADE_FULL, 0, {}};
	/* Backwards, because differences need the untransformed elements before. */
#pragma unroll 1
	for (uint32_t q = 4; q-- > 0;) {
		range.shift();
		if (4 * q >= groups)
			continue;
#pragma unroll
		for (uint32_t j = 2; j-- > 0;) {
			uint32_t g = 4 * q + 2 * j, at[2], w[2][4];
			const uint2 *before[2];
#pragma unroll
			for (uint32_t k = 0; k < 2; k++) {
				at[k] = 32 * min(g + k, groups - 1) + lane;
				before[k] = at[k] ? (const uint2 *)(own_smem->units + at[k]) - 1
				                  : &own_smem->last;
				uint4 v = own_smem->units[at[k]];
				w[k][0] = v.x;
				w[k][1] = v.y;
				w[k][2] = v.z;
				w[k][3] = v.w;
			}
			lade_bitcomp_turn<LOG>(w, before[0], before[1], mode, flip);
			__syncwarp();
#pragma unroll
			for (uint32_t k = 0; k < 2; k++)
				if (g + k < groups)
					own_smem->units[at[k]] =
						make_uint4(w[k][0], w[k][1], w[k][2], w[k][3]);
			range.take(w, j);
		}
	}
	uint64_t least = 0;
	bool is_long = false;
	if constexpr (LOG == 3) {
		uint32_t all = __reduce_and_sync(LADE_FULL, range.all_high);
		is_long = all != __reduce_or_sync(LADE_FULL, range.any_high);
		if (is_long)
			least = lade_bitcomp_survey_long(own_smem, groups, lane, four);
		else
			least = (uint64_t)all << 32 | __reduce_min_sync(LADE_FULL, range.low);
	} else {
		lade_bitcomp_low<LOG> low = {range.low};
		least = low.get();
	}
#pragma unroll
	for (uint32_t q = 0; q < 4; q++) {
		if (!is_long) {
			uint32_t *top = range.top + FOUR * q;
			uint32_t a = lade_bitcomp_top_needs<LOG>(top, (uint32_t)least);
			uint32_t b = lade_bitcomp_top_needs<LOG>(top + FOUR / 2, (uint32_t)least);
			four[q] = __byte_perm(a, b, 0x6420);
		}
	}
	lade_bitcomp_present<LOG>(four, units, lane);
	return least;
}

/* Replaces bytes by their ranks in place; returns the number of dictionary entries. */
LADE_DEVICE uint32_t lade_bitcomp_rank_all(lade_bitcomp_warp_smem *own_smem, uint32_t groups,
                                           uint32_t units, uint32_t lane, uint32_t *four)
{
	const uint8_t *rank = lade_bitcomp_rank_of(own_smem);
	uint32_t most = 0;
#pragma unroll 1
	for (uint32_t q = 0; q < 4; q++) {
		uint32_t need[2] = {};
#pragma unroll
		for (uint32_t j = 0; j < 2; j++) {
			uint32_t g = 4 * q + 2 * j, at[2], w[2][4], top;
			if (g >= groups)
				break;
#pragma unroll
			for (uint32_t k = 0; k < 2; k++) {
				at[k] = 32 * min(g + k, groups - 1) + lane;
				uint4 v = own_smem->units[at[k]];
				w[k][0] = v.x;
				w[k][1] = v.y;
				w[k][2] = v.z;
				w[k][3] = v.w;
				lade_bitcomp_rank(rank, w[k]);
			}
#pragma unroll
			for (uint32_t k = 0; k < 2; k++)
				if (g + k < groups)
					own_smem->units[at[k]] =
						make_uint4(w[k][0], w[k][1], w[k][2], w[k][3]);
			lade_bitcomp_tops<0>(w, &top);
			most = lade_bitcomp_max2(most, top);
			need[j] = lade_bitcomp_top_needs<0>(&top, 0);
		}
		four[0] = four[1];
		four[1] = four[2];
		four[2] = four[3];
		four[3] = __byte_perm(need[0], need[1], 0x6420);
	}
	lade_bitcomp_present<0>(four, units, lane);
	return __reduce_max_sync(LADE_FULL, max(most & 0xFFFF, most >> 16)) + 1;
}

/* Replaces all elements by their zigzag differences to those LAG before. */
template <int LOG, int LAG>
LADE_DEVICE void lade_bitcomp_apart(lade_bitcomp_warp_smem *own_smem, uint32_t groups,
                                    uint32_t lane)
{
#pragma unroll 1
	for (uint32_t g = groups; g-- > 0;) {
		uint32_t at = 32 * g + lane, w[4];
		lade_bitcomp_get(own_smem, g, lane, w);
		lade_bitcomp_differ_apart<LOG, LAG>(w, lade_bitcomp_before<LOG>(own_smem, at));
		lade_bitcomp_fold<LOG>(w, LADE_BITCOMP_ZIGZAG);
		__syncwarp();
		own_smem->units[at] = make_uint4(w[0], w[1], w[2], w[3]);
		__syncwarp();
	}
}

/* The same as the mode of a plan says.  Not inlined, to save registers. */
template <int LOG>
static __device__ __noinline__ void lade_bitcomp_apart_as(lade_bitcomp_warp_smem *there,
                                                          uint32_t groups, uint32_t mode,
                                                          uint32_t lane)
{
	lade_bitcomp_warp_smem *own_smem = lade_shared(there);
#define LADE_X(lag) \
	if (mode >> 8 == (lag)-1) \
		lade_bitcomp_apart<LOG, lag>(own_smem, groups, lane);
	LADE_BITCOMP_LAGS(LADE_X)
#undef LADE_X
}

/* Plans a sub-block in a mode.  The transformed elements, or with a dictionary their ranks, replace
 * the elements. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_make(lade_bitcomp_warp_smem *own_smem, uint32_t len, uint32_t mode,
                                   bool is_signed, lade_bitcomp_plan *p, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	uint32_t groups = (len + 511) / 512, units = (len + shape::EACH - 1) / shape::EACH;
	p->reference = 0;
	p->words = 0;
	if (LOG == 0 && mode & LADE_BITCOMP_DICT) {
		p->words = lade_bitcomp_rank_all(own_smem, groups, units, lane, p->need);
	} else {
		uint2 flip = lade_bitcomp_flip<LOG>(mode, is_signed);
		uint32_t left = mode; /* to do */
		if (LOG < 3 && mode >> 8) {
			lade_bitcomp_apart_as<LOG < 3 ? LOG : 0>(own_smem, groups, mode, lane);
			left = 0;
		}
		uint64_t least = lade_bitcomp_survey<LOG>(own_smem, groups, units, left, flip, lane,
		                                          p->need);
		p->reference = lade_bitcomp_flipped<LOG>(least, flip);
	}
	uint32_t most = 0;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		most = lade_bitcomp_max2(most, p->need[k] & 0x00FF00FF);
		most = lade_bitcomp_max2(most, p->need[k] >> 8 & 0x00FF00FF);
	}
	uint32_t width = p->width = __reduce_max_sync(LADE_FULL, max(most & 0xFFFF, most >> 16));
	uint32_t own = lade_bitcomp_widths<LOG>(p->need, width, lane, &p->step) * shape::BYTES;
	uint32_t fixed = lade_bitcomp_fixed(LOG, mode, p->words, units);
	uint32_t fixed_own = lade_bitcomp_fixed(LOG, mode | LADE_BITCOMP_WIDTHS, p->words, units);
	uint32_t size = fixed + lade_bitcomp_up(width * units * shape::BYTES);
	uint32_t size_own = fixed_own + lade_bitcomp_up(own);
	bool widths = size_own < size;
	p->mode = widths ? mode | LADE_BITCOMP_WIDTHS : mode;
	p->step = widths ? p->step : 0;
	p->fixed = widths ? fixed_own : fixed;
	p->size = widths ? size_own : size;
}

/* Packs a lane's 16 >> LOG elements of 'width' bits each, side by side, in place. */
template <int LOG> LADE_DEVICE void lade_bitcomp_squeeze(uint32_t *w, uint32_t width)
{
	if (LOG == 3) {
		/* The second half is moved down by 64 - width bits. */
		uint32_t v0 = w[2], v1 = w[3], by = width & 31;
		uint32_t a = __funnelshift_l(0, v0, by), b = __funnelshift_l(v0, v1, by);
		uint32_t c = __funnelshift_l(v1, 0, by);
		w[2] = w[3] = 0;
		if (width < 32) {
			w[0] |= a;
			w[1] |= b;
			w[2] = c;
		} else if (width < 64) {
			w[1] |= a;
			w[2] = b;
			w[3] = c;
		} else {
			w[2] = v0;
			w[3] = v1;
		}
		return;
	}
	uint32_t fields = width * (4 >> LOG), q[4] = {};
	uint32_t bytes = (1u << (width & 31)) - (1u << 8);
	uint32_t halves = (1u << (LOG == 0 ? 2 * width : width & 31)) - (1u << 16);
#pragma unroll
	for (uint32_t k = 4; k-- > 0;) {
		uint32_t v = w[k];
		/* a | b << n = (a | b << 16) - b * (2^16 - 2^n): the multiplier is otherwise
		 * idle. */
		if (LOG == 0)
			v += __byte_perm(v, 0, 0x4341) * bytes;
		if (LOG <= 1)
			v += (v >> 16) * halves;
		/* All of 'q' up by a field, and the word below. */
#pragma unroll
		for (uint32_t j = 3; j > 0; j--)
			q[j] = __funnelshift_lc(q[j - 1], q[j], fields);
		q[0] = __funnelshift_lc(0, q[0], fields) | v;
	}
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		w[k] = q[k];
}

/* Stores 16 bytes at any address. */
LADE_DEVICE void lade_bitcomp_put(uint8_t *to, uint4 v)
{
	uint32_t w[4] = {v.x, v.y, v.z, v.w};
	if (!((uintptr_t)to & 15)) {
		*(uint4 *)lade_global(to) = v;
	} else if (!((uintptr_t)to & 3)) {
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			((uint32_t *)lade_global(to))[k] = w[k];
	} else {
#pragma unroll
		for (uint32_t k = 0; k < 16; k++)
			to[k] = (uint8_t)(w[k / 4] >> 8 * (k & 3));
	}
}

/* Writes the bytes before the payload to own_smem->fixed. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_begin(lade_bitcomp_warp_smem *own_smem, const lade_bitcomp_plan &p,
                                    uint32_t units, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	constexpr uint32_t LANES = shape::LANES, COUNT = 4 / LANES;
	uint32_t at = 1;
	lade_bitcomp_clear(own_smem, lane);
	uint2 base = p.mode & LADE_BITCOMP_DELTA ? own_smem->last : make_uint2(0, 0);
	if (lane == 0) {
		uint32_t words = p.words ? p.words - 1
		                         : p.mode >> 8 | lade_bitcomp_more_ten(own_smem);
		uint32_t first = (p.mode & 0xFF) | p.width << 8 | words << 16 | p.step << 24;
		own_smem->fixed[0] =
			make_uint4(first, LOG == 3 ? 0 : base.y >> shape::OVER,
		                   (uint32_t)p.reference, (uint32_t)(p.reference >> 32));
	}
	if (LOG == 3 && p.mode & LADE_BITCOMP_DELTA) {
		if (lane == 0)
			own_smem->fixed[1] = make_uint4(base.x, base.y, 0, 0);
		at = 2;
	}
	if (LOG == 0 && p.words) {
		uint8_t *words = (uint8_t *)(own_smem->fixed + at);
		const uint8_t *rank = lade_bitcomp_rank_of(own_smem) + lane;
#pragma unroll
		for (uint32_t v = 0; v < 256; v += 32) {
			uint32_t r = rank[v];
			if (r < p.words)
				words[r] = (uint8_t)(v + lane);
		}
		at += lade_bitcomp_up(p.words) / 16;
	}
	if (p.mode & LADE_BITCOMP_WIDTHS) {
		/* A byte has the codes of two units, of lanes side by side. */
		uint8_t *codes = (uint8_t *)(own_smem->fixed + at);
		uint32_t own[COUNT], said;
		lade_bitcomp_own<LOG>(p.need, lane, own);
#pragma unroll
		for (uint32_t k = 0; k < COUNT; k++) {
			uint32_t code = lade_bitcomp_codes(own[k], p.width, p.step, &said);
			uint32_t next = __shfl_down_sync(LADE_FULL, code, LANES);
			uint32_t group = 4 * COUNT * (lane % LANES) + 4 * k;
			uint32_t unit = group * shape::IN_GROUP + lane / LANES;
#pragma unroll
			for (uint32_t i = 0; i < 4; i++) {
				/* What is behind the last unit is 0. */
				uint32_t u = unit + i * shape::IN_GROUP;
				uint32_t high = u + 1 < units ? next >> 8 * i << 4 : 0;
				if (lane / LANES % 2 == 0 && u < units)
					codes[u / 2] = (uint8_t)((code >> 8 * i & 15) | high);
			}
		}
	}
	__syncwarp();
}

/* Sets bits of a word; THIN: if there are any. */
template <bool THIN> LADE_DEVICE void lade_bitcomp_or(uint32_t *to, uint32_t bits)
{
	if (!THIN || bits)
		atomicOr(to, bits);
}

/*
 * Sets the lane's bits of two groups in words that were 0, from bits 'begin' on; no lane has more
 * than 'most' bits of a group.  A lane without bits may OR 0 into any word of own_smem up to
 * 'fixed'.  THIN: many lanes have few bits, so atomics on the same word would collide.
 */
template <int LOG, bool THIN>
LADE_DEVICE void lade_bitcomp_set(uint32_t *words, const uint32_t *begin, uint32_t (*w)[4],
                                  const uint32_t *width, uint32_t most)
{
	uint32_t *to[2], by[2];
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		to[k] = words + begin[k] / 32;
		by[k] = begin[k] & 31;
		lade_bitcomp_squeeze<LOG>(w[k], width[k]);
		lade_bitcomp_or<THIN>(to[k], w[k][0] << by[k]);
		lade_bitcomp_or<THIN>(to[k] + 1, __funnelshift_l(w[k][0], w[k][1], by[k]));
	}
#pragma unroll
	for (uint32_t i = 2; i < 5; i++) {
		if (most + 30 < 32 * i)
			break;
#pragma unroll
		for (uint32_t k = 0; k < 2; k++)
			lade_bitcomp_or<THIN>(to[k] + i,
			                      __funnelshift_l(w[k][i - 1], i < 4 ? w[k][i & 3] : 0,
			                                      by[k]));
	}
}

/*
 * Packs the payload in place of the elements: the packed bits never go past the elements already
 * read.  Two groups are in registers when their words are cleared; all bits so far then fit in
 * cleared words.
 */
template <int LOG, bool WIDTHS, bool THIN>
LADE_DEVICE void lade_bitcomp_pack(lade_bitcomp_warp_smem *own_smem, const lade_bitcomp_plan &p,
                                   uint64_t least, uint32_t pairs, uint32_t lane)
{
	constexpr uint32_t BITS_LOG = 4 - LOG;
	uint32_t said[4], group = p.width << (BITS_LOG + 5);
	uint32_t have = WIDTHS ? 0 : (p.width * lane) << BITS_LOG;
	if (WIDTHS)
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			lade_bitcomp_codes(p.need[k], p.width, p.step, &said[k]);
	uint4 *at = own_smem->units + lane, *end = at + 64 * pairs;
#pragma unroll 1
	for (; at != end; at += 64) {
		uint32_t w[2][4], own[2] = {p.width, p.width}, begin[2];
#pragma unroll
		for (uint32_t k = 0; k < 2; k++) {
			uint4 v = at[32 * k];
			w[k][0] = v.x;
			w[k][1] = v.y;
			w[k][2] = v.z;
			w[k][3] = v.w;
			lade_bitcomp_refer<LOG>(w[k], least);
		}
		begin[0] = have;
		begin[1] = have + group;
		if (WIDTHS) {
			own[0] = said[0] & 0xFF;
			own[1] = said[0] >> 8 & 0xFF;
			said[0] = __funnelshift_r(said[0], said[1], 16);
			said[1] = __funnelshift_r(said[1], said[2], 16);
			said[2] = __funnelshift_r(said[2], said[3], 16);
			said[3] >>= 16;
			uint32_t mine = own[0] << BITS_LOG | own[1] << (BITS_LOG + 16);
			uint32_t sum = lade_warp_scan(mine, lane);
			uint32_t all = __shfl_sync(LADE_FULL, sum, 31);
			sum -= mine;
			begin[0] += sum & 0xFFFF;
			begin[1] = have + (all & 0xFFFF) + (sum >> 16);
			have += (all & 0xFFFF) + (all >> 16);
		} else {
			have += 2 * group;
		}
		__syncwarp();
		at[0] = at[32] = make_uint4(0, 0, 0, 0);
		__syncwarp();
		lade_bitcomp_set<LOG, THIN>((uint32_t *)own_smem->units, begin, w, own,
		                            p.width << BITS_LOG);
	}
	__syncwarp();
}

/* Packs the transformed elements or ranks. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_payload(lade_bitcomp_warp_smem *own_smem, const lade_bitcomp_plan &p,
                                      uint32_t units, bool is_signed, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	uint32_t pairs = (units + 2 * shape::IN_GROUP - 1) / (2 * shape::IN_GROUP);
	uint2 flip =
		LOG == 0 && p.words ? make_uint2(0, 0) : lade_bitcomp_flip<LOG>(p.mode, is_signed);
	uint64_t least = lade_bitcomp_flipped<LOG>(p.reference, flip);
	/* Elements behind the last unit are then packed as 0, whatever their width. */
	uint32_t low = lade_packed_word<LOG == 3 ? 2 : LOG>::all((uint32_t)least);
	uint32_t high = LOG == 3 ? (uint32_t)(least >> 32) : low;
#pragma unroll 1
	for (uint32_t at = units * shape::LANES + lane; at < 64 * pairs; at += 32)
		own_smem->units[at] = make_uint4(low, high, low, high);
	__syncwarp();
	/* THIN pays below a quarter of the size: a lane then has fewer than 32 bits of a group. */
	if (!(p.mode & LADE_BITCOMP_WIDTHS))
		lade_bitcomp_pack<LOG, false, false>(own_smem, p, least, pairs, lane);
	else if (4 * (p.size - p.fixed) < units * shape::EACH)
		lade_bitcomp_pack<LOG, true, true>(own_smem, p, least, pairs, lane);
	else
		lade_bitcomp_pack<LOG, true, false>(own_smem, p, least, pairs, lane);
}

/* Stores 'size' bytes, a multiple of 16, at any address, a warp. */
LADE_DEVICE void lade_bitcomp_out(uint8_t *to, const uint4 *from, uint32_t size, uint32_t lane)
{
	if (!((uintptr_t)to & 15)) {
		lade_stage_out(to, from, size, lane);
		return;
	}
	for (uint32_t i = lane; i < size / 16; i += 32)
		lade_bitcomp_put(to + 16 * i, from[i]);
}

/* Quantises the sub-block's bytes in 'units', and fills up the last group with the last value. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_prepare(lade_bitcomp_warp_smem *own_smem, uint32_t lane)
{
	uint8_t *bytes = (uint8_t *)own_smem->units;
	uint32_t len = own_smem->len;
	if (LOG && own_smem->quant)
		lade_bitcomp_rescale<true>(bytes, own_smem->quant, LOG, own_smem->exponent,
		                           len >> LOG, lane);
	uint32_t pairs = (len + 1023) & ~1023u;
	/* lade_bitcomp_set() touches words behind the last pair of groups. */
	if (lane < 2 && pairs < LADE_BITCOMP_BLOCK)
		own_smem->units[pairs / 16 + lane] = make_uint4(0, 0, 0, 0);
	lade_bitcomp_fill_up<LOG>(own_smem, lane);
}

/* Loads the elements again after they were overwritten. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_again(lade_bitcomp_warp_smem *own_smem, uint32_t lane)
{
	const uint8_t *from = own_smem->from;
	uint32_t len = own_smem->len, whole = (uintptr_t)from & 15 ? 0 : len & ~1023u;
	__syncwarp();
	/* Independent loads, so that they overlap. */
#pragma unroll 4
	for (uint32_t at = 16 * lane; at < whole; at += 512)
		own_smem->units[at / 16] = __ldg((const uint4 *)lade_global(from + at));
	lade_stage_shifted(own_smem->units + whole / 16, from + whole, len - whole, lane);
	__syncwarp();
	lade_bitcomp_prepare<LOG>(own_smem, lane);
	if (LOG >= 2 && own_smem->ten)
		lade_bitcomp_decimals_to<LOG < 2 ? 2 : LOG>(own_smem, lane);
}

/* Sets own_smem->ten, and makes integers of decimals.  Not inlined, to save registers. */
template <int LOG>
static __device__ __noinline__ void lade_bitcomp_decimals(lade_bitcomp_warp_smem *there,
                                                          uint32_t lane)
{
	lade_bitcomp_warp_smem *own_smem = lade_shared(there);
	uint32_t ten = lade_bitcomp_decimal_try<LOG>(own_smem, (own_smem->len + 511) / 512, lane);
	if (!ten)
		return;
	__syncwarp();
	if (lane == 0)
		own_smem->ten = ten;
	__syncwarp();
	if (lade_bitcomp_decimals_to<LOG>(own_smem, lane))
		return;
	__syncwarp();
	if (lane == 0)
		own_smem->ten = 0;
	__syncwarp();
	lade_bitcomp_again<LOG>(own_smem, lane);
}

/* The base that makes the first difference equal to the second, to own_smem->last. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_base(lade_bitcomp_warp_smem *own_smem, uint32_t lane)
{
	constexpr uint32_t OVER = lade_bitcomp_shape<LOG>::OVER;
	const uint32_t *v = (const uint32_t *)own_smem->units;
	uint64_t base;
	if (LOG == 3) {
		const uint64_t *wide = (const uint64_t *)own_smem->units;
		base = 2 * wide[0] - wide[1];
	} else {
		uint32_t second = LOG == 2 ? v[1] : v[0] >> (LOG == 0 ? 8 : 16);
		base = (2 * v[0] - second) & LADE_FULL >> OVER;
	}
	if (lane == 0)
		own_smem->last = LOG == 3 ? make_uint2((uint32_t)base, (uint32_t)(base >> 32))
		                          : make_uint2(0, (uint32_t)base << OVER);
	__syncwarp();
}

/* Whether a mask is better than 'size' bytes without one. */
LADE_DEVICE bool lade_bitcomp_masks_better(const lade_bitcomp_warp_smem *own_smem, uint32_t size)
{
	uint32_t masked = own_smem->marks.size;
	return masked &&
	       masked + LADE_BITCOMP_MASK_LEAST < min(size, lade_bitcomp_up(own_smem->len));
}

/* Encodes the sub-block with a mask, or not at all, where other modes need 'size' bytes or more;
 * 'changed': the elements were overwritten.  Returns what lade_bitcomp_made() does. */
template <int LOG>
static __device__ __noinline__ uint32_t lade_bitcomp_unmade(lade_bitcomp_warp_smem *there,
                                                            uint32_t size, bool changed,
                                                            uint32_t lane)
{
	lade_bitcomp_warp_smem *own_smem = lade_shared(there);
	bool masked = lade_bitcomp_masks_better(own_smem, size);
	changed = changed || (!masked && own_smem->ten);
	__syncwarp();
	if (!masked && lane == 0)
		own_smem->ten = 0;
	__syncwarp();
	if (changed)
		lade_bitcomp_again<LOG>(own_smem, lane);
	return masked ? lade_bitcomp_marks_pack<LOG>(own_smem, lane) : 0;
}

/*
 * Encodes the sub-block in own_smem->units: the bytes before the payload to own_smem->fixed, the
 * payload to own_smem->units.  Returns the whole size, and from bit 16 on the size of the first
 * part; 0: the sub-block is raw, and own_smem->units has its elements.  Not inlined, so that the
 * kernel's variables take no registers here.
 */
template <int LOG>
static __device__ __noinline__ uint32_t lade_bitcomp_made(lade_bitcomp_warp_smem *there,
                                                          uint32_t flags, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	lade_bitcomp_warp_smem *own_smem = lade_shared(there);
	bool is_signed = flags & 1, sparse = flags & 2;
	uint32_t len = own_smem->len, units = (len + shape::EACH - 1) / shape::EACH, expected;
	lade_bitcomp_prepare<LOG>(own_smem, lane);
	if (lane == 0)
		own_smem->ten = 0;
	__syncwarp();
	if (LOG >= 2 && flags & 4 && !sparse) {
		lade_bitcomp_decimals<LOG < 2 ? 2 : LOG>(own_smem, lane);
		is_signed |= own_smem->ten != 0;
	}
	lade_bitcomp_base<LOG>(own_smem, lane);
	uint32_t mode = lade_bitcomp_choose<LOG>(own_smem, (len + 511) / 512, is_signed, sparse,
	                                         &expected, lane);
	__syncwarp();
	lade_bitcomp_marks_make<LOG>(own_smem, expected, is_signed, lane);
	if (expected >= LADE_BITCOMP_SAMPLE)
		return lade_bitcomp_unmade<LOG>(own_smem, lade_bitcomp_up(len), false, lane);
	lade_bitcomp_plan p;
	/* The sample may miss outliers.  If the size is far above the estimate, the second mode is
	 * tried; if that is no better, the first one is used. */
	uint32_t size = 0, now = mode;
	for (bool may = !sparse && mode != LADE_BITCOMP_SECOND_MODE;;) {
		lade_bitcomp_make<LOG>(own_smem, len, now, is_signed, &p, lane);
		if (may && p.size > LADE_BITCOMP_SECOND(expected, units, 2 * shape::IN_GROUP)) {
			now = LADE_BITCOMP_SECOND_MODE;
			size = p.size;
		} else if (now != mode && p.size >= size) {
			now = mode;
		} else {
			break;
		}
		may = false;
		lade_bitcomp_again<LOG>(own_smem, lane);
	}
	if (p.size >= lade_bitcomp_up(len) || lade_bitcomp_masks_better(own_smem, p.size))
		return lade_bitcomp_unmade<LOG>(own_smem, p.size, true, lane);
	__syncwarp();
	lade_bitcomp_begin<LOG>(own_smem, p, units, lane);
	lade_bitcomp_payload<LOG>(own_smem, p, units, is_signed, lane);
	return p.size | p.fixed << 16;
}

#endif
