/*
 * bitcomp_encode.cu: chunks to bitcomp (docs/format/bitcomp.md), a warp a sub-block.
 *
 * A warp brings its 8 KiB to shared memory and picks a mode by what the sample, two groups of 512
 * bytes, would cost in each; the same modes, sample and costs as the host's encoder, so that both
 * make the same bytes.  Two passes then leave what is to be packed in place and the bits that each
 * unit needs beside it; from these the size follows, and from the sizes of a chunk's sub-blocks
 * where each is to be.  A third pass packs: lanes set their bits in a window of one group in shared
 * memory, whose whole units of 16 bytes are stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/bitcomp.cuh"

#define LADE_BITCOMP_UNITS_MAX 512 /* of a sub-block */

/* Shared memory of a warp. */
struct lade_bitcomp_desk {
	uint4 units[LADE_BITCOMP_BLOCK / 16]; /* the elements; then what is packed */
	union {
		struct {
			uint8_t need[LADE_BITCOMP_UNITS_MAX]; /* bits, by unit */
			uint4 window[34];                     /* a group's bits, and a rest */
		};
		uint32_t count[256]; /* of bytes in the sample */
	};
	uint8_t rank[256];
	unsigned long long barrier;
	uint32_t size[2]; /* of the warp's sub-block, by turn */
};
static_assert(sizeof(lade_bitcomp_desk) == 9520, "bitcomp/gpu.c and kernels.h have this number");

/* How a sub-block is to be written. */
struct lade_bitcomp_plan {
	uint32_t mode, words, width, step;
	uint64_t base, reference;
	uint32_t fixed, size; /* bytes before the payload, and in all */
};

/* ---- values ------------------------------------------------------------------------------ */

/* Elements are compared as numbers of 32 bits, or 64. */
template <int LOG> struct lade_bitcomp_number {
	typedef uint32_t type;
	static constexpr uint32_t BITS = 8u << LOG;
	static constexpr uint32_t TOP = 1u << (BITS - 1);

	static __device__ __forceinline__ uint32_t low(uint32_t v)
	{
		return __reduce_min_sync(LADE_FULL, v);
	}

	static __device__ __forceinline__ uint32_t high(uint32_t v)
	{
		return __reduce_max_sync(LADE_FULL, v);
	}
};

template <> struct lade_bitcomp_number<3> {
	typedef uint64_t type;
	static constexpr uint64_t TOP = (uint64_t)1 << 63;

	static __device__ __forceinline__ uint64_t low(uint64_t v)
	{
		return ~high(~v);
	}

	static __device__ __forceinline__ uint64_t high(uint64_t v)
	{
		uint32_t upper = __reduce_max_sync(LADE_FULL, (uint32_t)(v >> 32));
		uint32_t lower = upper == (uint32_t)(v >> 32) ? (uint32_t)v : 0;
		return (uint64_t)upper << 32 | __reduce_max_sync(LADE_FULL, lower);
	}
};

/* A range of elements, whose highest bits are turned where they are signed. */
template <int LOG> struct lade_bitcomp_range {
	typename lade_bitcomp_number<LOG>::type low, high;
};

/* Takes the elements of a lane into a range; 'flip' turns their highest bits. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_widen(lade_bitcomp_range<LOG> *r, const uint32_t *w, bool flip)
{
	if constexpr (LOG == 3) {
		uint64_t turn = flip ? lade_bitcomp_number<3>::TOP : 0;
#pragma unroll
		for (uint32_t k = 0; k < 4; k += 2) {
			uint64_t v = ((uint64_t)w[k + 1] << 32 | w[k]) ^ turn;
			r->low = v < r->low ? v : r->low;
			r->high = v > r->high ? v : r->high;
		}
	} else {
		constexpr uint32_t BITS = 8u << LOG, MASK = LADE_FULL >> (32 - BITS);
		uint32_t turn = flip ? lade_bitcomp_word<LOG>::TOP : 0;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t v = w[k] ^ turn;
#pragma unroll
			for (uint32_t i = 0; i < 32; i += BITS) {
				uint32_t e = v >> i & MASK;
				r->low = min(r->low, e);
				r->high = max(r->high, e);
			}
		}
	}
}

template <int LOG> LADE_DEVICE lade_bitcomp_range<LOG> lade_bitcomp_none()
{
	typedef typename lade_bitcomp_number<LOG>::type T;
	return {(T) ~(T)0, 0};
}

/* Whether elements are compared as signed ones in a mode. */
LADE_DEVICE bool lade_bitcomp_flips(uint32_t mode, bool is_signed)
{
	return !(mode >> LADE_BITCOMP_FOLD & 3) && (mode & LADE_BITCOMP_DELTA || is_signed);
}

/* The lane's t (section 3, step 3 undone) of group 'g'; 'base' is the value before the first. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_turn(const uint4 *units, uint32_t g, uint32_t mode, uint64_t base,
                                   uint32_t lane, uint32_t *w)
{
	typedef lade_bitcomp_word<LOG == 3 ? 2 : LOG> word;
	uint32_t at = 32 * g + lane, fold = mode >> LADE_BITCOMP_FOLD & 3;
	uint4 v = units[at];
	w[0] = v.x;
	w[1] = v.y;
	w[2] = v.z;
	w[3] = v.w;
	if (mode & LADE_BITCOMP_DELTA) {
		const uint32_t *before = (const uint32_t *)(units + at);
		if (LOG == 3) {
			uint64_t a = (uint64_t)w[1] << 32 | w[0], b = (uint64_t)w[3] << 32 | w[2];
			uint64_t o = at ? ((const uint64_t *)before)[-1] : base;
			b -= a;
			a -= o;
			w[0] = (uint32_t)a;
			w[1] = (uint32_t)(a >> 32);
			w[2] = (uint32_t)b;
			w[3] = (uint32_t)(b >> 32);
		} else {
			constexpr uint32_t BITS = LOG == 3 ? 32 : 8u << LOG;
			/* The element before stands highest in a word. */
			uint32_t o = at ? before[-1] : (uint32_t)base << (32 - BITS);
#pragma unroll
			for (uint32_t k = 4; k-- > 0;) {
				uint32_t left = k ? w[k ? k - 1 : 0] : o;
				left = BITS == 32 ? left : __funnelshift_l(left, w[k], BITS);
				w[k] = word::sub(w[k], left);
			}
		}
	}
	if (LOG == 3 && fold) {
#pragma unroll
		for (uint32_t k = 0; k < 4; k += 2) {
			uint32_t top = w[k + 1] >> 31, all = 0 - top;
			w[k + 1] = __funnelshift_l(w[k], w[k + 1], 1);
			w[k] <<= 1;
			if (fold == LADE_BITCOMP_ZIGZAG) {
				w[k] ^= all;
				w[k + 1] ^= all;
			} else {
				w[k] |= top;
			}
		}
	} else if (fold) {
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t top = w[k] >> (word::BITS - 1) & word::LOW;
			w[k] = w[k] << 1 & ~word::LOW;
			w[k] ^= fold == LADE_BITCOMP_ZIGZAG ? word::ones(top) : top;
		}
	}
}

/* The x from the t. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_refer(uint32_t *w, bool above, uint64_t reference)
{
	typedef lade_bitcomp_word<LOG == 3 ? 2 : LOG> word;
	if (LOG == 3) {
#pragma unroll
		for (uint32_t k = 0; k < 4; k += 2) {
			uint64_t v = ((uint64_t)w[k + 1] << 32 | w[k]) - reference;
			v = above ? 0 - v : v;
			w[k] = (uint32_t)v;
			w[k + 1] = (uint32_t)(v >> 32);
		}
		return;
	}
	uint32_t all = word::all((uint32_t)reference);
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		w[k] = above ? word::sub(all, w[k]) : word::sub(w[k], all);
}

/* The bits that the unit's values need; all lanes of a unit give the same. */
template <int LOG> LADE_DEVICE uint32_t lade_bitcomp_need(const uint32_t *w)
{
	if (LOG == 3) {
		uint32_t high = w[1] | w[3], low = w[0] | w[2];
		uint32_t n = high ? 64 - (uint32_t)__clz((int)high) : 32 - (uint32_t)__clz((int)low);
		n = max(n, __shfl_xor_sync(LADE_FULL, n, 1));
		return max(n, __shfl_xor_sync(LADE_FULL, n, 2));
	}
	uint32_t v = w[0] | w[1] | w[2] | w[3];
	if (LOG <= 1)
		v = (v | v >> 16) & 0xFFFF;
	if (LOG == 0)
		v = (v | v >> 8) & 0xFF;
	uint32_t n = 32 - (uint32_t)__clz((int)v);
	return LOG == 2 ? max(n, __shfl_xor_sync(LADE_FULL, n, 1)) : n;
}

/* ---- widths ------------------------------------------------------------------------------ */

LADE_DEVICE uint32_t lade_bitcomp_code(uint32_t width, uint32_t need, uint32_t step)
{
	return need == 0 ? 15 : min((width - need) >> step, 14u);
}

/* What the code says: at least 'need'. */
LADE_DEVICE uint32_t lade_bitcomp_said(uint32_t width, uint32_t need, uint32_t step)
{
	return need == 0 ? 0 : width - (lade_bitcomp_code(width, need, step) << step);
}

/* Sums of widths by steps, kept side by side: of a lane at most 64 * 16 each. */
struct lade_bitcomp_sums {
	uint32_t sum[3];
};

LADE_DEVICE void lade_bitcomp_weigh(lade_bitcomp_sums *s, uint32_t width, uint32_t need)
{
#pragma unroll
	for (uint32_t k = 0; k < 3; k++)
		s->sum[k] += lade_bitcomp_said(width, need, k);
}

/* The least sum of all lanes and its step. */
LADE_DEVICE uint32_t lade_bitcomp_least(const lade_bitcomp_sums &s, uint32_t width, uint32_t *step)
{
	uint32_t best = __reduce_add_sync(LADE_FULL, s.sum[0]);
	*step = 0;
	if (width <= 14)
		return best;
#pragma unroll
	for (uint32_t k = 1; k < 3; k++) {
		uint32_t sum = __reduce_add_sync(LADE_FULL, s.sum[k]);
		if (sum < best) {
			best = sum;
			*step = k;
		}
	}
	return best;
}

/* ---- choosing a mode --------------------------------------------------------------------- */

template <int LOG> struct lade_bitcomp_shape {
	static constexpr uint32_t EACH = LOG ? 8u << LOG : 16; /* bytes of a unit */
	static constexpr uint32_t LANES = EACH / 16;           /* of a unit */
	static constexpr uint32_t IN_GROUP = 512 / EACH;       /* units */
	static constexpr uint32_t BYTES = LOG ? 1 : 2;         /* of a unit, for a bit of width */
};

/* What a sample of two groups costs, in half bytes, from the lane's units' needs. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_cost(uint32_t first, uint32_t second, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	constexpr uint32_t UNITS = 2 * shape::IN_GROUP;
	uint32_t width = __reduce_max_sync(LADE_FULL, max(first, second)), step;
	lade_bitcomp_sums s = {};
	if (lane % shape::LANES == 0) {
		lade_bitcomp_weigh(&s, width, first);
		lade_bitcomp_weigh(&s, width, second);
	}
	uint32_t own = lade_bitcomp_least(s, width, &step) * 2 * shape::BYTES + UNITS;
	return min(own, width * UNITS * 2 * shape::BYTES);
}

/* The reference from a range of all lanes. */
template <int LOG>
LADE_DEVICE uint64_t lade_bitcomp_reference(const lade_bitcomp_range<LOG> &r, uint32_t mode,
                                            bool flip)
{
	typedef lade_bitcomp_number<LOG> number;
	uint64_t v = mode & LADE_BITCOMP_ABOVE ? number::high(r.high) : number::low(r.low);
	return flip ? v ^ number::TOP : v;
}

/* plain.c, bucket_of() */
LADE_DEVICE uint32_t lade_bitcomp_bucket(uint32_t count)
{
	uint32_t log = 32 - (uint32_t)__clz((int)count);
	return count < 2 ? count : 2 * log - 2 + (count >> (log - 2) & 1);
}

/* Counts the sample's bytes and ranks all by that (lade__bitcomp_ranks()); gives how many there
 * are. */
LADE_DEVICE uint32_t lade_bitcomp_ranks(lade_bitcomp_desk *desk, const uint32_t *sample,
                                        uint32_t lane)
{
#pragma unroll
	for (uint32_t j = 0; j < 8; j++)
		desk->count[32 * j + lane] = 0;
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < 8; k++)
#pragma unroll
		for (uint32_t i = 0; i < 32; i += 8)
			atomicAdd(&desk->count[sample[k] >> i & 0xFF], 1u);
	__syncwarp();
	/* Rank by bucket, from the last on, then by value. */
	uint32_t bucket[8], words = 0;
#pragma unroll
	for (uint32_t j = 0; j < 8; j++) {
		uint32_t count = desk->count[32 * j + lane];
		bucket[j] = 31 - lade_bitcomp_bucket(count);
		words += (uint32_t)__popc(__ballot_sync(LADE_FULL, count != 0));
	}
	__syncwarp();
	/* The counts are done with; the first of them become those of buckets. */
	desk->count[lane] = 0;
	__syncwarp();
#pragma unroll
	for (uint32_t j = 0; j < 8; j++)
		atomicAdd(&desk->count[bucket[j]], 1u);
	__syncwarp();
	uint32_t mine = desk->count[lane];
	__syncwarp();
	desk->count[lane] = lade_warp_scan(mine, lane) - mine;
	__syncwarp();
#pragma unroll
	for (uint32_t j = 0; j < 8; j++) {
		uint32_t alike = __match_any_sync(LADE_FULL, bucket[j]);
		uint32_t below = (uint32_t)__popc(alike & ((1u << lane) - 1));
		uint32_t first = desk->count[bucket[j]];
		desk->rank[32 * j + lane] = (uint8_t)(first + below);
		__syncwarp();
		if (below == 0)
			desk->count[bucket[j]] = first + (uint32_t)__popc(alike);
		__syncwarp();
	}
	return words;
}

/* Bytes to ranks. */
LADE_DEVICE void lade_bitcomp_rank(const uint8_t *rank, uint32_t *w)
{
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t a = rank[w[k] & 0xFF], b = rank[w[k] >> 8 & 0xFF];
		uint32_t c = rank[w[k] >> 16 & 0xFF], d = rank[w[k] >> 24];
		w[k] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
	}
}

/* The sample's groups: a quarter and three quarters of the way. */
LADE_DEVICE uint32_t lade_bitcomp_sample(uint32_t groups, uint32_t k)
{
	return (2 * k + 1) * groups / 4;
}

/* What a mode costs for the sample. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_try(const uint4 *units, uint32_t groups, uint32_t mode,
                                      bool is_signed, uint64_t base, uint32_t lane)
{
	uint32_t w[2][4], need[2];
	bool flip = lade_bitcomp_flips(mode, is_signed);
	lade_bitcomp_range<LOG> r = lade_bitcomp_none<LOG>();
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		lade_bitcomp_turn<LOG>(units, lade_bitcomp_sample(groups, k), mode, base, lane,
		                       w[k]);
		lade_bitcomp_widen<LOG>(&r, w[k], flip);
	}
	uint64_t reference = lade_bitcomp_reference<LOG>(r, mode, flip);
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		lade_bitcomp_refer<LOG>(w[k], mode & LADE_BITCOMP_ABOVE, reference);
		need[k] = lade_bitcomp_need<LOG>(w[k]);
	}
	return lade_bitcomp_cost<LOG>(need[0], need[1], lane);
}

/* The mode that does best for the sample; '*expected' is its cost.  Leaves the ranks in 'desk'. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_choose(lade_bitcomp_desk *desk, uint32_t groups, bool is_signed,
                                         bool sparse, uint64_t base, uint32_t *expected,
                                         uint32_t lane)
{
	uint32_t best = LADE_FULL, chosen = 0, count = sparse ? 2 : LOG == 0 ? 4 : 6;
#pragma unroll 1
	for (uint32_t i = 0; i < count; i++) {
		uint32_t mode = 0;
#define LADE_X(number, value) mode = i == number ? value : mode;
		LADE_BITCOMP_TRIES(LADE_X)
#undef LADE_X
		uint32_t cost = lade_bitcomp_try<LOG>(desk->units, groups, mode, is_signed, base,
		                                      lane);
		if (cost < best) {
			best = cost;
			chosen = mode;
		}
	}
	if (LOG == 0 && !sparse) {
		uint32_t w[8], need[2];
#pragma unroll
		for (uint32_t k = 0; k < 2; k++) {
			uint4 v = desk->units[32 * lade_bitcomp_sample(groups, k) + lane];
			w[4 * k] = v.x;
			w[4 * k + 1] = v.y;
			w[4 * k + 2] = v.z;
			w[4 * k + 3] = v.w;
		}
		if (lade_bitcomp_ranks(desk, w, lane) <= LADE_BITCOMP_DICT_MOST) {
#pragma unroll
			for (uint32_t k = 0; k < 2; k++) {
				lade_bitcomp_rank(desk->rank, w + 4 * k);
				need[k] = lade_bitcomp_need<0>(w + 4 * k);
			}
			uint32_t cost = lade_bitcomp_cost<0>(need[0], need[1], lane);
			if (cost < best) {
				best = cost;
				chosen = LADE_BITCOMP_DICT;
			}
		}
	}
	*expected = best;
	return chosen;
}

/* ---- a sub-block ------------------------------------------------------------------------- */

/* All parts but the payload. */
LADE_DEVICE uint32_t lade_bitcomp_fixed(uint32_t log, uint32_t mode, uint32_t words, uint32_t units)
{
	return LADE_BITCOMP_HEADER + (log == 3 && mode & LADE_BITCOMP_DELTA ? 16 : 0) +
	       lade_bitcomp_up(mode & LADE_BITCOMP_DICT ? words : 0) +
	       lade_bitcomp_up(mode & LADE_BITCOMP_WIDTHS ? (units + 1) / 2 : 0);
}

/*
 * Makes the x of all groups in place, and the needs.  Groups are taken from the last on, since the
 * first value of each needs the one before it as it was.
 */
template <int LOG>
LADE_DEVICE void lade_bitcomp_make(lade_bitcomp_desk *desk, uint32_t len, uint32_t mode,
                                   bool is_signed, uint64_t base, lade_bitcomp_plan *p,
                                   uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	uint32_t groups = (len + 511) / 512, units = (len + shape::EACH - 1) / shape::EACH;
	bool flip = lade_bitcomp_flips(mode, is_signed), dict = mode & LADE_BITCOMP_DICT;
	p->base = mode & LADE_BITCOMP_DELTA ? base : 0;
	p->reference = 0;
	p->words = 0;
	if (!dict) {
		lade_bitcomp_range<LOG> r = lade_bitcomp_none<LOG>();
		for (uint32_t g = 0; g < groups; g++) {
			uint32_t w[4];
			lade_bitcomp_turn<LOG>(desk->units, g, mode, base, lane, w);
			lade_bitcomp_widen<LOG>(&r, w, flip);
		}
		p->reference = lade_bitcomp_reference<LOG>(r, mode, flip);
	}
	uint32_t width = 0, most = 0;
	for (uint32_t g = groups; g-- > 0;) {
		uint32_t w[4];
		lade_bitcomp_turn<LOG>(desk->units, g, mode, base, lane, w);
		if (LOG == 0 && dict) {
			lade_bitcomp_rank(desk->rank, w);
			lade_bitcomp_range<0> r = {LADE_FULL, most};
			lade_bitcomp_widen<0>(&r, w, false);
			most = r.high;
		} else {
			lade_bitcomp_refer<LOG>(w, mode & LADE_BITCOMP_ABOVE, p->reference);
		}
		__syncwarp();
		desk->units[32 * g + lane] = make_uint4(w[0], w[1], w[2], w[3]);
		uint32_t need = lade_bitcomp_need<LOG>(w);
		uint32_t unit = g * shape::IN_GROUP + lane / shape::LANES;
		if (unit < units) {
			width = max(width, need);
			if (lane % shape::LANES == 0)
				desk->need[unit] = (uint8_t)need;
		}
	}
	__syncwarp();
	p->width = width = __reduce_max_sync(LADE_FULL, width);
	if (dict)
		p->words = __reduce_max_sync(LADE_FULL, most) + 1;
	lade_bitcomp_sums sums = {};
	for (uint32_t u = lane; u < units; u += 32)
		lade_bitcomp_weigh(&sums, width, desk->need[u]);
	uint32_t own = lade_bitcomp_least(sums, width, &p->step) * shape::BYTES;
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

/* Writes what lade_bitcomp_make() planned to 'dst'. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_write(lade_bitcomp_desk *desk, const lade_bitcomp_plan &p,
                                    uint32_t len, uint8_t *dst, uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	constexpr uint32_t BITS_LOG = 4 - LOG;
	uint32_t groups = (len + 511) / 512, units = (len + shape::EACH - 1) / shape::EACH;
	uint32_t *window = (uint32_t *)desk->window, at = LADE_BITCOMP_HEADER;
	bool widths = p.mode & LADE_BITCOMP_WIDTHS;
	if (lane == 0) {
		uint32_t words = p.words ? p.words - 1 : 0;
		uint32_t first = p.mode | p.width << 8 | words << 16 | p.step << 24;
		lade_bitcomp_put(dst, make_uint4(first, LOG == 3 ? 0 : (uint32_t)p.base,
		                                 (uint32_t)p.reference,
		                                 (uint32_t)(p.reference >> 32)));
	}
	if (LOG == 3 && p.mode & LADE_BITCOMP_DELTA) {
		if (lane == 0)
			lade_bitcomp_put(dst + at, make_uint4((uint32_t)p.base,
			                                      (uint32_t)(p.base >> 32), 0, 0));
		at += 16;
	}
	desk->window[lane] = make_uint4(0, 0, 0, 0);
	if (lane < 2)
		desk->window[32 + lane] = make_uint4(0, 0, 0, 0);
	__syncwarp();
	if (LOG == 0 && p.words) {
		uint8_t *words = (uint8_t *)window;
		for (uint32_t v = lane; v < 256; v += 32)
			if (desk->rank[v] < p.words)
				words[desk->rank[v]] = (uint8_t)v;
		__syncwarp();
		if (16 * lane < p.words)
			lade_bitcomp_put(dst + at + 16 * lane, desk->window[lane]);
		__syncwarp();
		if (lane < 16)
			desk->window[lane] = make_uint4(0, 0, 0, 0);
		at += lade_bitcomp_up(p.words);
	}
	if (widths) {
		/* A lane makes the codes of 32 units at a time. */
		for (uint32_t first = 32 * lane; first < units; first += 1024) {
			uint32_t w[4] = {};
#pragma unroll
			for (uint32_t k = 0; k < 4; k++)
#pragma unroll
				for (uint32_t i = 0; i < 8; i++) {
					uint32_t u = first + 8 * k + i;
					if (u < units)
						w[k] |= lade_bitcomp_code(p.width, desk->need[u],
						                          p.step)
						        << 4 * i;
				}
			lade_bitcomp_put(dst + at + first / 2, make_uint4(w[0], w[1], w[2], w[3]));
		}
	}
	__syncwarp();
	/* 'have' bits are in the window already, less than 128. */
	uint32_t have = 0, width = p.width;
	uint8_t *to = dst + p.fixed;
	for (uint32_t g = 0; g < groups; g++) {
		uint4 v = desk->units[32 * g + lane];
		uint32_t w[4] = {v.x, v.y, v.z, v.w}, unit = g * shape::IN_GROUP + lane / shape::LANES;
		uint32_t begin, total;
		if (widths) {
			width = unit < units ? lade_bitcomp_said(p.width, desk->need[unit], p.step) : 0;
			uint32_t mine = width << BITS_LOG, end = lade_warp_scan(mine, lane);
			begin = have + end - mine;
			total = __shfl_sync(LADE_FULL, end, 31);
		} else {
			width = unit < units ? p.width : 0;
			begin = have + ((p.width * lane) << BITS_LOG);
			uint32_t there = min(units - g * shape::IN_GROUP, shape::IN_GROUP);
			total = (p.width * there * shape::LANES) << BITS_LOG;
		}
		if (width) {
			uint32_t by = begin & 31, *bits = window + begin / 32;
			lade_bitcomp_squeeze<LOG>(w, width);
			atomicOr(bits, w[0] << by);
#pragma unroll
			for (uint32_t k = 0; k < 4; k++) {
				uint32_t more = __funnelshift_l(w[k], k < 3 ? w[k < 3 ? k + 1 : 3] : 0,
				                                by);
				if (more)
					atomicOr(bits + k + 1, more);
			}
		}
		__syncwarp();
		/* Whole units of 16 bytes go out, the rest to the window's begin. */
		have += total;
		uint32_t whole = g + 1 < groups ? have / 128 : (have + 127) / 128;
		uint4 zero = make_uint4(0, 0, 0, 0), rest = desk->window[have / 128];
#pragma unroll
		for (uint32_t i = lane; i < 33; i += 32) {
			if (i < whole)
				lade_bitcomp_put(to + 16 * i, desk->window[i]);
		}
		__syncwarp();
		desk->window[lane] = zero;
		if (lane < 2)
			desk->window[32 + lane] = zero;
		__syncwarp();
		if (lane == 0)
			desk->window[0] = rest;
		__syncwarp();
		to += 16 * whole;
		have &= 127;
	}
}

/* ---- chunks ------------------------------------------------------------------------------ */

/* What the host gives. */
struct lade_bitcomp_how {
	uint32_t log, is_signed, sparse, quant;
	int32_t exponent;
};

/* Brings 'len' bytes to 'units', quantised, filled up to whole groups with the last value. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_fetch(lade_bitcomp_desk *desk, lade_stager *stager,
                                    const uint8_t *from, uint32_t len, const lade_bitcomp_how &how,
                                    uint32_t lane)
{
	lade_stage_begin(stager, desk->units, from, len, lane);
	lade_stage_wait<0>(stager);
	if (LOG && how.quant)
		lade_bitcomp_rescale<true>((uint8_t *)desk->units, how.quant, LOG, how.exponent,
		                           len >> LOG, lane);
	if (len % 512) {
		/* Bytes behind 'len' are 0 as far as its last 16, and so those of its element. */
		uint8_t *bytes = (uint8_t *)desk->units;
		constexpr uint32_t SIZE = 1u << LOG;
		uint32_t end = (len + SIZE - 1) & ~(SIZE - 1), whole = (len + 511) & ~511u;
		__syncwarp();
		for (uint32_t i = end + lane; i < whole; i += 32)
			bytes[i] = bytes[end - SIZE + (i & (SIZE - 1))];
	}
	__syncwarp();
}

/* Plans the sub-block at 'from'; false: it is raw. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_plan_of(lade_bitcomp_desk *desk, lade_stager *stager,
                                      const uint8_t *from, uint32_t len,
                                      const lade_bitcomp_how &how, lade_bitcomp_plan *p,
                                      uint32_t lane)
{
	typedef lade_bitcomp_shape<LOG> shape;
	uint32_t units = (len + shape::EACH - 1) / shape::EACH, expected;
	lade_bitcomp_fetch<LOG>(desk, stager, from, len, how, lane);
	/* The base that makes the first difference equal to the second. */
	uint64_t base;
	if (LOG == 3) {
		const uint64_t *v = (const uint64_t *)desk->units;
		base = 2 * v[0] - v[1];
	} else {
		const uint32_t *v = (const uint32_t *)desk->units;
		constexpr uint32_t MASK = LADE_FULL >> (LOG == 3 ? 0 : 32 - (8 << LOG));
		uint32_t second = LOG == 2 ? v[1] : v[0] >> (LOG == 0 ? 8 : 16);
		base = (2 * v[0] - second) & MASK;
	}
	uint32_t mode = lade_bitcomp_choose<LOG>(desk, (len + 511) / 512, how.is_signed != 0,
	                                         how.sparse != 0, base, &expected, lane);
	lade_bitcomp_make<LOG>(desk, len, mode, how.is_signed != 0, base, p, lane);
	if (p->size > LADE_BITCOMP_SECOND(expected, units, 2 * shape::IN_GROUP) && !how.sparse) {
		/* Values far out that are not in the sample: the elements are wanted again. */
		uint32_t size = p->size;
		lade_bitcomp_fetch<LOG>(desk, stager, from, len, how, lane);
		lade_bitcomp_make<LOG>(desk, len, LADE_BITCOMP_SECOND_MODE, how.is_signed != 0, base,
		                       p, lane);
		if (p->size >= size) {
			lade_bitcomp_fetch<LOG>(desk, stager, from, len, how, lane);
			lade_bitcomp_make<LOG>(desk, len, mode, how.is_signed != 0, base, p, lane);
		}
	}
	return p->size < lade_bitcomp_up(len);
}

/* The sub-block as it is, rounded up. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_raw(lade_bitcomp_desk *desk, lade_stager *stager,
                                  const uint8_t *from, uint32_t len, uint8_t *to,
                                  const lade_bitcomp_how &how, uint32_t lane)
{
	if (!how.quant) {
		lade_bitcomp_copy(to, from, len, lane);
	} else {
		lade_bitcomp_fetch<LOG>(desk, stager, from, len, how, lane);
		const uint8_t *bytes = (const uint8_t *)desk->units;
		for (uint32_t i = lane; i < len; i += 32)
			to[i] = bytes[i];
	}
	for (uint32_t i = len + lane; i < lade_bitcomp_up(len); i += 32)
		to[i] = 0;
}

/*
 * A chunk, by warp 'rank' of a crew of 'team' whose desks are from 'desks' on.  A turn is a
 * sub-block a warp; the chunk is stored only where that is known after the first one.
 */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_chunk(lade_bitcomp_desk *desks, lade_stager *stager,
                                        const lade_gpu_chunk &c, const lade_bitcomp_how &how,
                                        uint32_t rank, uint32_t team, uint32_t barrier,
                                        uint32_t lane, uint32_t *done)
{
	lade_bitcomp_desk *desk = desks + rank;
	uint32_t blocks = (c.src_size + LADE_BITCOMP_BLOCK - 1) / LADE_BITCOMP_BLOCK;
	uint64_t at = lade_bitcomp_first(blocks);
	bool stored = false;
	for (uint32_t turn = 0; turn * team < blocks; turn++) {
		uint32_t i = turn * team + rank, off = i * LADE_BITCOMP_BLOCK;
		uint32_t len = i < blocks ? min(c.src_size - off, (uint32_t)LADE_BITCOMP_BLOCK) : 0;
		lade_bitcomp_plan p;
		bool coded = len && lade_bitcomp_plan_of<LOG>(desk, stager, c.src + off, len, how, &p,
		                                              lane);
		uint32_t size = coded ? p.size : lade_bitcomp_up(len);
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
		if (stored && LADE_BITCOMP_HEADER + (uint64_t)c.src_size <= c.dst_cap && len)
			lade_bitcomp_copy(c.dst + LADE_BITCOMP_HEADER + off, c.src + off, len, lane);
		if (stored || at > c.dst_cap || !len)
			continue;
		uint8_t *to = c.dst + mine;
		if (coded)
			lade_bitcomp_write<LOG>(desk, p, len, to, lane);
		else
			lade_bitcomp_raw<LOG>(desk, stager, c.src + off, len, to, how, lane);
		uint8_t *end = c.dst + LADE_BITCOMP_HEADER + 4 * i;
		if (lane < 4)
			end[lane] = (uint8_t)((mine + size) / 16 >> 8 * lane);
	}
	if (stored)
		at = (uint64_t)LADE_BITCOMP_HEADER + c.src_size;
	if (at > c.dst_cap)
		return LADE_GPU_NOSPACE;
	if (rank == 0) {
		uint32_t kind = LOG | (stored ? LADE_BITCOMP_STORED : 0) |
		                how.quant << LADE_BITCOMP_QUANT;
		uint32_t word = lane == 0   ? LADE_BITCOMP_MAGIC | LADE_BITCOMP_VERSION << 8 | kind << 16
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
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_WARPS, 2)
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
	if (status != LADE_GPU_OK)
		size = 0;
	else if (how.log == 0)
		status = lade_bitcomp_chunk<0>(own, &stager, c, how, rank, team, 1 + crew, lane, &size);
	else if (how.log == 1)
		status = lade_bitcomp_chunk<1>(own, &stager, c, how, rank, team, 1 + crew, lane, &size);
	else if (how.log == 2)
		status = lade_bitcomp_chunk<2>(own, &stager, c, how, rank, team, 1 + crew, lane, &size);
	else
		status = lade_bitcomp_chunk<3>(own, &stager, c, how, rank, team, 1 + crew, lane, &size);
	/* All warps of a chunk find the same; where 'before' is 'status', they find this. */
	if (rank == 0 && lane == 0)
		lade_chunk_put(batch, i, status, size);
}
