/*
 * bitcomp_encode.cu: chunks to bitcomp (docs/format/bitcomp.md), a warp a sub-block.
 *
 * A warp brings its 8 KiB to shared memory and picks a mode by what the sample, two groups of 512
 * bytes, would cost in each; the same modes, sample and estimates as the host's encoder, so that both
 * make the same bytes.  Two passes find the least of what the mode makes of the elements, and the
 * bits that each unit needs, which stay in registers; from these the size follows.  A third packs, in
 * place of the elements: lanes set their bits in words that have become 0.  From the sizes of a
 * chunk's sub-blocks follows where each is to be, and bulk copies bring it there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/bitcomp_choose.cuh"

/* ---- a sub-block ------------------------------------------------------------------------- */

/* All parts but the payload. */
LADE_DEVICE uint32_t lade_bitcomp_fixed(uint32_t log, uint32_t mode, uint32_t words, uint32_t units)
{
	return LADE_BITCOMP_HEADER + (log == 3 && mode & LADE_BITCOMP_DELTA ? 16 : 0) +
	       lade_bitcomp_up(mode & LADE_BITCOMP_DICT ? words : 0) +
	       lade_bitcomp_up(mode & LADE_BITCOMP_WIDTHS ? (units + 1) / 2 : 0);
}

/* What units need, by lane, as a plan has it. */
struct lade_bitcomp_needs {
	uint32_t most, four[4];

	/* After each four groups, of which there are four. */
	__device__ __forceinline__ void take(const uint32_t *need)
	{
		four[0] = four[1];
		four[1] = four[2];
		four[2] = four[3];
		four[3] = need[0] | need[1] << 8 | need[2] << 16 | need[3] << 24;
		most = max(max(most, max(need[0], need[1])), max(need[2], need[3]));
	}
};

/* Finds the least of all elements, turned as 'mode' says, and what units need then. */
template <int LOG>
LADE_DEVICE uint64_t lade_bitcomp_survey(const lade_bitcomp_desk *desk, uint32_t groups,
                                         uint32_t units, uint32_t mode, uint2 flip, uint32_t lane,
                                         lade_bitcomp_needs *needs)
{
	typedef lade_bitcomp_shape<LOG> shape;
	lade_bitcomp_low<LOG> low;
	low.low = ~(decltype(low.low))0;
#pragma unroll 1
	for (uint32_t g = 0; g < groups; g += 2)
#pragma unroll
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t w[4];
			lade_bitcomp_turn<LOG>(desk->units, &desk->last, min(g + k, groups - 1),
			                       mode, flip, lane, w);
			low.take(w);
		}
	uint64_t least = low.get();
#pragma unroll 1
	for (uint32_t g = 0; g < 16; g += 4) {
		uint32_t need[4] = {};
		if (g < groups)
#pragma unroll
			for (uint32_t k = 0; k < 4; k++) {
				uint32_t w[4],
					unit = (g + k) * shape::IN_GROUP + lane / shape::LANES;
				lade_bitcomp_turn<LOG>(desk->units, &desk->last,
				                       min(g + k, groups - 1), mode, flip, lane, w);
				lade_bitcomp_refer<LOG>(w, least);
				uint32_t n = lade_bitcomp_need<LOG>(w);
				need[k] = unit < units ? n : 0;
			}
		needs->take(need);
	}
	return least;
}

/* Bytes become ranks in place; gives how many words the dictionary has. */
LADE_DEVICE uint32_t lade_bitcomp_rank_all(lade_bitcomp_desk *desk, uint32_t groups, uint32_t units,
                                           uint32_t lane, lade_bitcomp_needs *needs)
{
	uint32_t most = 0;
#pragma unroll 1
	for (uint32_t g = 0; g < 16; g += 4) {
		uint32_t need[4] = {};
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t w[4], at = 32 * (g + k) + lane;
			if (g + k >= groups)
				break;
			uint4 v = desk->units[at];
			w[0] = v.x;
			w[1] = v.y;
			w[2] = v.z;
			w[3] = v.w;
			lade_bitcomp_rank(desk->rank, w);
			desk->units[at] = make_uint4(w[0], w[1], w[2], w[3]);
#pragma unroll
			for (uint32_t i = 0; i < 4; i++) {
				most = lade_bitcomp_max2(most, w[i] & 0x00FF00FF);
				most = lade_bitcomp_max2(most, w[i] >> 8 & 0x00FF00FF);
			}
			uint32_t n = lade_bitcomp_need<0>(w);
			need[k] = at < units ? n : 0;
		}
		needs->take(need);
	}
	return __reduce_max_sync(LADE_FULL, max(most & 0xFFFF, most >> 16)) + 1;
}

/* How many of the 'n' elements are not 0. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_some(const lade_bitcomp_desk *desk, uint32_t n, uint32_t lane)
{
	uint32_t some = 0;
#pragma unroll 2
	for (uint32_t at = lane; at << (4 - LOG) < n; at += 32) {
		uint4 v = desk->units[at];
		uint32_t w[4] = {v.x, v.y, v.z, v.w}, left = n - (at << (4 - LOG)), bits = 0;
#pragma unroll
		for (uint32_t k = 0; k < 16 >> LOG; k++) {
			uint32_t x = LOG == 3   ? w[2 * (k & 1)] | w[2 * (k & 1) + 1]
			             : LOG == 2 ? w[k & 3]
			                        : w[k / 2 & 3] >> 16 * (k & 1) & 0xFFFF;
			bits += x != 0 && k < left;
		}
		some += bits;
	}
	return __reduce_add_sync(LADE_FULL, some);
}

/* Plans a sub-block in a mode.  Elements stay as they are, but where ranks of a dictionary take their
 * places. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_make(lade_bitcomp_desk *desk, uint32_t len, uint32_t mode,
                                   bool is_signed, uint64_t base, lade_bitcomp_plan *p,
                                   uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	uint32_t groups = (len + 511) / 512, units = (len + shape::EACH - 1) / shape::EACH;
	lade_bitcomp_needs needs = {};
	p->base = mode & LADE_BITCOMP_DELTA ? base : 0;
	p->reference = 0;
	p->words = 0;
	if (LOG == 0 && mode & LADE_BITCOMP_DICT) {
		p->words = lade_bitcomp_rank_all(desk, groups, units, lane, &needs);
	} else {
		uint2 flip = lade_bitcomp_flip<LOG>(mode, is_signed);
		uint64_t least =
			lade_bitcomp_survey<LOG>(desk, groups, units, mode, flip, lane, &needs);
		p->reference = lade_bitcomp_turned<LOG>(least, flip);
	}
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		p->need[k] = needs.four[k];
	uint32_t width = p->width = __reduce_max_sync(LADE_FULL, needs.most);
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
	if (LOG && !((mode | LADE_BITCOMP_MASK) & ~LADE_BITCOMP_MASKED) && p->reference == 0) {
		uint32_t n = (len + (1u << LOG) - 1) >> LOG;
		uint32_t bits = lade_bitcomp_some<LOG>(desk, n, lane) * width;
		fixed = LADE_BITCOMP_HEADER + lade_bitcomp_up((n + 7) / 8);
		size = fixed + lade_bitcomp_up((bits + 7) / 8);
		if (size + LADE_BITCOMP_MASK_LEAST < p->size) {
			p->mode = mode | LADE_BITCOMP_MASK;
			p->step = 0;
			p->fixed = fixed;
			p->size = size;
		}
	}
}

/* The words that a lane's elements make as bits side by side: 16 >> LOG of 'width' bits. */
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
#pragma unroll
	for (uint32_t k = 4; k-- > 0;) {
		uint32_t v = w[k];
		if (LOG == 0) {
			v = (v & 0x00FF00FF) | (v >> 8 & 0x00FF00FF) << width;
			v = (v & 0xFFFF) | v >> 16 << 2 * width;
		} else if (LOG == 1) {
			v = (v & 0xFFFF) | v >> 16 << width;
		}
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

/* The parts before the payload, to desk->fixed. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_begin(lade_bitcomp_desk *desk, const lade_bitcomp_plan &p,
                                    uint32_t units, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	constexpr uint32_t LANES = shape::LANES, COUNT = 4 / LANES;
	uint32_t at = 1;
	desk->fixed[lane] = make_uint4(0, 0, 0, 0);
	if (lane < LADE_BITCOMP_FIXED - 32)
		desk->fixed[32 + lane] = make_uint4(0, 0, 0, 0);
	__syncwarp();
	if (lane == 0) {
		uint32_t words = p.words ? p.words - 1 : 0;
		uint32_t first = p.mode | p.width << 8 | words << 16 | p.step << 24;
		desk->fixed[0] = make_uint4(first, LOG == 3 ? 0 : (uint32_t)p.base,
		                            (uint32_t)p.reference, (uint32_t)(p.reference >> 32));
	}
	if (LOG == 3 && p.mode & LADE_BITCOMP_DELTA) {
		if (lane == 0)
			desk->fixed[1] =
				make_uint4((uint32_t)p.base, (uint32_t)(p.base >> 32), 0, 0);
		at = 2;
	}
	if (LOG == 0 && p.words) {
		uint8_t *words = (uint8_t *)(desk->fixed + at);
#pragma unroll
		for (uint32_t v = lane; v < 256; v += 32)
			if (desk->rank[v] < p.words)
				words[desk->rank[v]] = (uint8_t)v;
		at += lade_bitcomp_up(p.words) / 16;
	}
	if (p.mode & LADE_BITCOMP_WIDTHS) {
		/* A byte has the codes of two units, of lanes side by side. */
		uint8_t *codes = (uint8_t *)(desk->fixed + at);
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

/*
 * The lane's bits of two groups into words that were 0, from bits 'begin' on; no lane has more than
 * 'most' bits of a group.  Where there are none a word becomes what it is: it may be any of the
 * desk's up to 'fixed'.
 */
template <int LOG>
LADE_DEVICE void lade_bitcomp_set(uint32_t *words, const uint32_t *begin, uint32_t (*w)[4],
                                  const uint32_t *width, uint32_t most)
{
	uint32_t *to[2], by[2];
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		to[k] = words + begin[k] / 32;
		by[k] = begin[k] & 31;
		lade_bitcomp_squeeze<LOG>(w[k], width[k]);
		atomicOr(to[k], w[k][0] << by[k]);
		atomicOr(to[k] + 1, __funnelshift_l(w[k][0], w[k][1], by[k]));
	}
#pragma unroll
	for (uint32_t i = 2; i < 5; i++) {
		if (most + 30 < 32 * i)
			break;
#pragma unroll
		for (uint32_t k = 0; k < 2; k++)
			atomicOr(to[k] + i,
			         __funnelshift_l(w[k][i - 1], i < 4 ? w[k][i & 3] : 0, by[k]));
	}
}

/*
 * The payload, in place of the elements: the bits of a group never reach behind it.  Two groups are
 * in registers when what is theirs becomes 0 and then their bits.
 */
template <int LOG>
LADE_DEVICE void lade_bitcomp_pack(lade_bitcomp_desk *desk, const lade_bitcomp_plan &p,
                                   uint32_t len, bool is_signed, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	constexpr uint32_t BITS_LOG = 4 - LOG;
	uint32_t groups = (len + 511) / 512, units = (len + shape::EACH - 1) / shape::EACH;
	bool widths = p.mode & LADE_BITCOMP_WIDTHS;
	uint2 flip =
		LOG == 0 && p.words ? make_uint2(0, 0) : lade_bitcomp_flip<LOG>(p.mode, is_signed);
	uint64_t least = lade_bitcomp_turned<LOG>(p.reference, flip);
	uint32_t said[4], have = 0;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		lade_bitcomp_codes(p.need[k], p.width, p.step, &said[k]);
#pragma unroll 1
	for (uint32_t g = 0; g < groups; g += 2) {
		uint32_t w[2][4], own[2], begin[2], all;
		uint2 last = {};
#pragma unroll
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t group = min(g + k, groups - 1), at = 32 * group + lane;
			uint4 v = desk->units[at];
			w[k][0] = v.x;
			w[k][1] = v.y;
			w[k][2] = v.z;
			w[k][3] = v.w;
			if (p.mode & LADE_BITCOMP_DELTA) {
				const uint2 *before = (const uint2 *)(desk->units + at) - 1;
				lade_bitcomp_differ<LOG>(
					w[k], *(group == g && lane == 0 ? &desk->last : before));
				last = make_uint2(v.z, v.w);
			}
			lade_bitcomp_fold<LOG>(w[k], p.mode >> LADE_BITCOMP_FOLD & 3, flip);
			lade_bitcomp_refer<LOG>(w[k], least);
			own[k] = widths ? said[0] & 0xFF : p.width;
			said[0] >>= 8;
			/* What is behind the last unit makes no bits. */
			uint32_t unit = (g + k) * shape::IN_GROUP + lane / shape::LANES;
			if ((g + 2) * shape::IN_GROUP > units)
#pragma unroll
				for (uint32_t i = 0; i < 4; i++)
					w[k][i] = unit < units ? w[k][i] : 0;
		}
		if (g & 2) {
			said[0] = said[1];
			said[1] = said[2];
			said[2] = said[3];
		}
		if (widths) {
			uint32_t mine = own[0] << BITS_LOG | own[1] << (BITS_LOG + 16);
			uint32_t end = lade_warp_scan(mine, lane);
			all = __shfl_sync(LADE_FULL, end, 31);
			end -= mine;
			begin[0] = have + (end & 0xFFFF);
			begin[1] = have + (all & 0xFFFF) + (end >> 16);
			all = (all & 0xFFFF) + (all >> 16);
		} else {
			uint32_t there = min(units - g * shape::IN_GROUP, 2 * shape::IN_GROUP);
			begin[0] = have + ((p.width * lane) << BITS_LOG);
			begin[1] = begin[0] + (g + 1 < groups ? p.width << (BITS_LOG + 5) : 0);
			all = (p.width * there * shape::LANES) << BITS_LOG;
		}
		__syncwarp();
		if (lane == 31)
			desk->last = last;
		uint32_t end = (have + all + 127) / 128;
#pragma unroll
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t unit = (have + 127) / 128 + 32 * k + lane;
			if (unit < end)
				desk->units[unit] = make_uint4(0, 0, 0, 0);
		}
		__syncwarp();
		lade_bitcomp_set<LOG>((uint32_t *)desk->units, begin, w, own, p.width << BITS_LOG);
		have += all;
	}
	__syncwarp();
}

/*
 * The same with a mask, which goes behind the header in desk->fixed, where there is 0.  A
 * function of its own, for the registers' sake.
 */
template <int LOG>
static __device__ __noinline__ void lade_bitcomp_pack_masked(lade_bitcomp_desk *there,
                                                             uint32_t width, bool zigzag,
                                                             uint32_t len, uint32_t lane)
{
	constexpr uint32_t VALUES = 16 >> LOG;
	lade_bitcomp_desk *desk = lade_shared(there);
	uint32_t n = (len + (1u << LOG) - 1) >> LOG, have = 0;
	uint32_t *words = (uint32_t *)desk->units, *mask = (uint32_t *)(desk->fixed + 1);
#pragma unroll 1
	for (uint32_t at = lane; (at - lane) << (4 - LOG) < n; at += 32) {
		uint4 v = desk->units[at];
		uint32_t w[4] = {v.x, v.y, v.z, v.w}, i = at << (4 - LOG), bits = 0;
		lade_bitcomp_fold<LOG>(w, zigzag ? LADE_BITCOMP_ZIGZAG : LADE_BITCOMP_PLAIN,
		                       make_uint2(0, 0));
#pragma unroll
		for (uint32_t k = 0; k < VALUES; k++) {
			uint32_t x = LOG == 3   ? w[2 * (k & 1)] | w[2 * (k & 1) + 1]
			             : LOG == 2 ? w[k & 3]
			                        : w[k / 2 & 3] >> 16 * (k & 1) & 0xFFFF;
			bits |= (x != 0 && i + k < n ? 1u : 0) << k;
		}
		uint32_t mine = __popc(bits) * width, end = lade_warp_scan(mine, lane);
		uint32_t all = __shfl_sync(LADE_FULL, end, 31), bit = have + end - mine;
		/* What was read becomes 0 as far as bits come to it. */
		__syncwarp();
		uint32_t unit = (have + 127) / 128 + lane;
		if (unit < (have + all + 127) / 128)
			desk->units[unit] = make_uint4(0, 0, 0, 0);
		__syncwarp();
		if (bits)
			atomicOr(&mask[i / 32], bits << (i & 31));
#pragma unroll
		for (uint32_t k = 0; k < VALUES; k++) {
			if (!(bits >> k & 1))
				continue;
			uint32_t *to = words + bit / 32, by = bit & 31;
			uint32_t x = LOG == 3   ? w[2 * (k & 1)]
			             : LOG == 2 ? w[k & 3]
			                        : w[k / 2 & 3] >> 16 * (k & 1) & 0xFFFF;
			uint32_t y = LOG == 3 ? w[2 * (k & 1) + 1] : 0;
			atomicOr(to, x << by);
			if (by + width > 32)
				atomicOr(to + 1, __funnelshift_l(x, y, by));
			if (LOG == 3 && by + width > 64)
				atomicOr(to + 2, __funnelshift_l(y, 0, by));
			bit += width;
		}
		have += all;
		__syncwarp();
	}
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

/* ---- chunks ------------------------------------------------------------------------------ */

/* What the host gives. */
struct lade_bitcomp_how {
	uint32_t log, is_signed, sparse, quant;
	int32_t exponent;
};

/* The 'len' bytes in 'units' are quantised, and filled up to whole groups with the last value. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_prepare(lade_bitcomp_desk *desk, uint32_t len, uint32_t quant,
                                      int32_t exponent, uint32_t lane)
{
	uint8_t *bytes = (uint8_t *)desk->units;
	if (LOG && quant)
		lade_bitcomp_rescale<true>(bytes, quant, LOG, exponent, len >> LOG, lane);
	uint32_t whole = (len + 511) & ~511u;
	/* lade_bitcomp_set() touches words behind the last group. */
	if (lane < 2 && whole < LADE_BITCOMP_BLOCK)
		desk->units[whole / 16 + lane] = make_uint4(0, 0, 0, 0);
	if (len % 512) {
		/* Bytes behind 'len' are 0 as far as its last 16, and so those of its element. */
		constexpr uint32_t SIZE = 1u << LOG;
		uint32_t end = (len + SIZE - 1) & ~(SIZE - 1);
		__syncwarp();
		for (uint32_t i = end + lane; i < whole; i += 32)
			bytes[i] = bytes[end - SIZE + (i & (SIZE - 1))];
	}
	__syncwarp();
}

/* Brings bytes that are no more there, and are not quantised, once more. */
LADE_DEVICE void lade_bitcomp_again(lade_bitcomp_desk *desk, const uint8_t *from, uint32_t len,
                                    uint32_t lane)
{
	__syncwarp();
	lade_stage_shifted(desk->units, from, len, lane);
	__syncwarp();
	lade_bitcomp_prepare<0>(desk, len, 0, 0, lane);
}

/* The base that makes the first difference equal to the second, also to desk->last. */
template <int LOG> LADE_DEVICE uint64_t lade_bitcomp_base(lade_bitcomp_desk *desk, uint32_t lane)
{
	constexpr uint32_t OVER = LOG == 3 ? 0 : 32 - (8 << LOG);
	const uint32_t *v = (const uint32_t *)desk->units;
	uint64_t base;
	if (LOG == 3) {
		const uint64_t *wide = (const uint64_t *)desk->units;
		base = 2 * wide[0] - wide[1];
	} else {
		uint32_t second = LOG == 2 ? v[1] : v[0] >> (LOG == 0 ? 8 : 16);
		base = (2 * v[0] - second) & LADE_FULL >> OVER;
	}
	if (lane == 0)
		desk->last = LOG == 3 ? make_uint2((uint32_t)base, (uint32_t)(base >> 32))
		                      : make_uint2(0, (uint32_t)base << OVER);
	__syncwarp();
	return base;
}

/*
 * Makes the sub-block of the 'len' bytes in desk->units, which were brought from 'from': its parts
 * before the payload to desk->fixed, the payload to desk->units.  Gives its size, and the size of
 * the former from bit 16 on; 0: it is raw, and the elements are there.  A function of its own, so
 * that what the kernel keeps takes no registers here.
 */
template <int LOG>
static __device__ __noinline__ uint32_t lade_bitcomp_made(lade_bitcomp_desk *there,
                                                          const uint8_t *from, uint32_t len,
                                                          uint32_t flags, uint32_t quant,
                                                          int32_t exponent, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	lade_bitcomp_desk *desk = lade_shared(there);
	bool is_signed = flags & 1, sparse = flags & 2;
	uint32_t units = (len + shape::EACH - 1) / shape::EACH, expected;
	lade_bitcomp_prepare<LOG>(desk, len, quant, exponent, lane);
	uint64_t base = lade_bitcomp_base<LOG>(desk, lane);
	uint32_t mode = lade_bitcomp_choose<LOG>(desk, (len + 511) / 512, is_signed, sparse,
	                                         &expected, lane);
	if (expected >= LADE_BITCOMP_SAMPLE)
		return 0;
	lade_bitcomp_plan p;
	lade_bitcomp_make<LOG>(desk, len, mode, is_signed, base, &p, lane);
	if (p.size > LADE_BITCOMP_SECOND(expected, units, 2 * shape::IN_GROUP) && !sparse &&
	    mode != LADE_BITCOMP_SECOND_MODE) {
		/* Values far out that are not in the sample. */
		uint32_t size = p.size;
		bool words = LOG == 0 && p.words;
		if (words)
			lade_bitcomp_again(desk, from, len, lane);
		lade_bitcomp_make<LOG>(desk, len, LADE_BITCOMP_SECOND_MODE, is_signed, base, &p,
		                       lane);
		if (p.size >= size)
			lade_bitcomp_make<LOG>(desk, len, mode, is_signed, base, &p, lane);
	}
	if (p.size >= lade_bitcomp_up(len)) {
		if (LOG == 0 && p.words)
			lade_bitcomp_again(desk, from, len, lane);
		return 0;
	}
	__syncwarp();
	lade_bitcomp_begin<LOG>(desk, p, units, lane);
	if (LOG && p.mode & LADE_BITCOMP_MASK)
		lade_bitcomp_pack_masked<LOG ? LOG : 1>(
			desk, p.width, p.mode >> LADE_BITCOMP_FOLD & 3, len, lane);
	else
		lade_bitcomp_pack<LOG>(desk, p, len, is_signed, lane);
	return p.size | p.fixed << 16;
}

/* What is behind the elements of a raw sub-block is 0. */
LADE_DEVICE void lade_bitcomp_raw(lade_bitcomp_desk *desk, uint32_t len, uint32_t lane)
{
	uint32_t at = len + lane;
	if (at < lade_bitcomp_up(len))
		((uint8_t *)desk->units)[at] = 0;
	__syncwarp();
}

/*
 * A chunk, by warp 'rank' of a crew of 'team' whose desks are from 'desks' on.  A turn is a
 * sub-block a warp; the chunk is stored only where that is known after the first one.
 */
LADE_DEVICE uint32_t lade_bitcomp_chunk(lade_bitcomp_desk *desks, lade_stager *stager,
                                        const lade_gpu_chunk &c, const lade_bitcomp_how &how,
                                        uint32_t rank, uint32_t team, uint32_t barrier,
                                        uint32_t lane, uint32_t *done)
{
	lade_bitcomp_desk *desk = desks + rank;
	uint32_t flags = (how.is_signed ? 1 : 0) | (how.sparse ? 2 : 0);
	uint32_t blocks = (c.src_size + LADE_BITCOMP_BLOCK - 1) / LADE_BITCOMP_BLOCK;
	uint64_t at = lade_bitcomp_first(blocks);
	bool stored = false;
	for (uint32_t turn = 0; turn * team < blocks; turn++) {
		uint32_t i = turn * team + rank, off = i * LADE_BITCOMP_BLOCK;
		uint32_t len = i < blocks ? min(c.src_size - off, (uint32_t)LADE_BITCOMP_BLOCK) : 0;
		const uint8_t *from = c.src + off;
		uint32_t made = 0;
		if (len) {
			lade_stage_begin(stager, desk->units, from, len, lane);
			lade_stage_wait<0>(stager);
#define LADE_MADE(LOG) lade_bitcomp_made<LOG>(desk, from, len, flags, how.quant, how.exponent, lane)
			made = how.log == 0   ? LADE_MADE(0)
			       : how.log == 1 ? LADE_MADE(1)
			       : how.log == 2 ? LADE_MADE(2)
			                      : LADE_MADE(3);
#undef LADE_MADE
		}
		uint32_t size = made ? made & 0xFFFF : lade_bitcomp_up(len), fixed = made >> 16;
		if (lane == 0)
			desk->size[turn & 1] = size;
		if (team > 1)
			lade_bar_sync(barrier, 32 * team);
		else
			__syncwarp();
		uint64_t mine = at;
		for (uint32_t k = 0; k < team; k++) {
			uint32_t one = desks[k].size[turn & 1];
			mine += k < rank ? one : 0;
			at += one;
		}
		stored = !how.quant && blocks <= team &&
		         at >= (uint64_t)LADE_BITCOMP_HEADER + c.src_size;
		if (stored && LADE_BITCOMP_HEADER + (uint64_t)c.src_size <= c.dst_cap && len) {
			uint8_t *to = c.dst + LADE_BITCOMP_HEADER + off;
			if (made || ((uintptr_t)to | len) & 15)
				lade_packed_copy(to, from, len, lane);
			else
				lade_stage_out(to, desk->units, len, lane);
		}
		if (stored || at > c.dst_cap || !len)
			continue;
		uint8_t *to = c.dst + mine;
		if (!made)
			lade_bitcomp_raw(desk, len, lane);
		lade_bitcomp_out(to, desk->fixed, fixed, lane);
		lade_bitcomp_out(to + fixed, desk->units, size - fixed, lane);
		uint8_t *end = c.dst + LADE_BITCOMP_HEADER + 4 * i;
		if (lane < 4)
			end[lane] = (uint8_t)((mine + size) / 16 >> 8 * lane);
	}
	if (stored)
		at = (uint64_t)LADE_BITCOMP_HEADER + c.src_size;
	if (at > c.dst_cap)
		return LADE_GPU_NOSPACE;
	if (rank == 0) {
		uint32_t kind = how.log | (stored ? LADE_BITCOMP_STORED : 0) |
		                how.quant << LADE_BITCOMP_QUANT;
		uint32_t word =
			lane == 0   ? LADE_BITCOMP_MAGIC | LADE_BITCOMP_VERSION << 8 | kind << 16
			: lane == 1 ? (uint32_t)how.exponent & 0xFFFF
			: lane == 2 ? c.src_size
				    : 0;
		for (uint32_t k = 0; lane < 4 && k < 4; k++)
			c.dst[4 * lane + k] = (uint8_t)(word >> 8 * k);
		uint32_t first = stored ? 0 : lade_bitcomp_first(blocks);
		for (uint32_t k = LADE_BITCOMP_HEADER + 4 * blocks + lane; k < first; k += 32)
			c.dst[k] = 0;
	}
	*done = (uint32_t)at;
	return LADE_GPU_OK;
}

/*
 * Map: a block is 256 threads, 8 warps; a chunk has 'team' warps of a block (1, 2, 4 or 8), which
 * take its sub-blocks in turns; a lane works on 16 bytes of 512.  Shared memory: 8 of
 * lade_bitcomp_desk, dynamic.  'next' is not used: the grid has all teams.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_WARPS, 3)
	lade_bitcomp_encode(lade_gpu_batch batch, lade_bitcomp_how how, uint32_t team)
{
	LADE_SHARED_DYNAMIC(lade_bitcomp_desk, desks);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	uint32_t crew = warp / team, rank = warp % team;
	uint32_t i = blockIdx.x * (LADE_BITCOMP_WARPS / team) + crew, size = 0;
	if (i >= batch.count)
		return;
	lade_stager stager;
	lade_stage_open(&stager, &desks[warp].barrier, lane);
	lade_gpu_chunk c;
	uint32_t status = lade_chunk_get(batch, i, &c);
	lade_bitcomp_desk *own = desks + warp - rank;
	if (status == LADE_GPU_OK)
		status =
			lade_bitcomp_chunk(own, &stager, c, how, rank, team, 1 + crew, lane, &size);
	/* All warps of a chunk find the same; where 'before' is 'status', they find this. */
	if (rank == 0 && lane == 0)
		lade_chunk_put(batch, i, status, size);
}
