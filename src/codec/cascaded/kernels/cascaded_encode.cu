/*
 * cascaded_encode.cu: encodes chunks for the cascaded codec (docs/format/cascaded.md), to the bytes
 * that the host's encoder gives (codec/cascaded/encode.c).
 *
 * A block of threads has a chunk, a warp a block of the format at a time.  The warp goes over the
 * elements once for their range, the range of their differences and the numbers of runs of both;
 * where there are few runs, it lists their starts, and measures what is left in the same way.  All
 * cascades are then known to the bit, without any having been made.  Eight blocks' sizes are summed
 * up, and each warp packs its own to its place.  Without runs a lane sets the bits of 16 bytes of
 * elements in shared memory, from which words are stored; with runs it makes a word of the entries
 * that are in it, each found through the lists of starts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/kernels/bitcomp_make.cuh"
#include "codec/cascaded/kernels/cascaded.cuh"

#define LADE_CAS_LIST LADE_CASCADED_RUNS_TRIED

/* A warp's shared memory: the first elements of the outer runs, or of a block's runs of
 * differences; and of the runs of differences that outer runs leave, at most half as many. */
struct lade_cas_lists {
	uint16_t first[LADE_CAS_LIST], second[LADE_CAS_LIST / 2];
};
/* They take the place of the elements of bitcomp's encoder. */
static_assert(sizeof(lade_cas_lists) <= LADE_BITCOMP_BLOCK, "");
static_assert(LADE_CAS_WARPS == 1u << LADE_CAS_WARPS_LOG, "");

/* Elements of a block: x[0], x[1], ... at any address; or, through a list, x[via[0]], x[via[1]],
 * ... */
template <typename T> struct lade_cas_elements {
	const uint8_t *x;
	const uint16_t *via; /* or NULL */
	uint32_t count;

	__device__ __forceinline__ T at(uint32_t i) const
	{
		const uint8_t *p = x + (via ? via[i] : i) * (uint32_t)sizeof(T);
		if (!((uintptr_t)p & (sizeof(T) - 1)))
			return __ldg((const T *)lade_global(p));
		unsigned long long v = 0;
		for (uint32_t k = 0; k < sizeof(T); k++)
			v |= (unsigned long long)__ldg(p + k) << (8 * k);
		return (T)v;
	}

	/* Difference i; the first is the second. */
	__device__ __forceinline__ T delta(uint32_t i) const
	{
		if (count < 2)
			return 0;
		i = i ? i : 1;
		return (T)(at(i) - at(i - 1));
	}
};

/* What elements are like; the ranges are of numbers after '^ flip', or '^ sign' for differences. */
template <typename T> struct lade_cas_measured {
	T low, high, delta_low, delta_high;
	uint32_t runs, delta_runs;
};

/* A way to write a block. */
template <typename T> struct lade_cas_plan {
	lade_cascaded_block b;
	T base, start;
};

/* ---- looking at elements ---------------------------------------------------------------- */

/* What a lane sees of a step of 32 elements; made by lade_cas_look() for all lanes. */
template <typename T> struct lade_cas_view {
	T v, d;
	bool starts, delta_starts; /* a run, or one of differences */
};

/* 'before' has the last element of the step before and its difference. */
template <typename T>
static __device__ __forceinline__ lade_cas_view<T>
lade_cas_look(const lade_cas_elements<T> &e, uint32_t i, lade_cas_view<T> *before, uint32_t lane)
{
	lade_cas_view<T> s;
	s.v = i < e.count ? e.at(i) : 0;
	T last = (T)__shfl_up_sync(LADE_FULL, s.v, 1);
	s.d = (T)(s.v - (lane ? last : before->v));
	T last_d = (T)__shfl_up_sync(LADE_FULL, s.d, 1);
	last_d = lane ? last_d : before->d;
	s.starts = i == 0 || (i < e.count && s.d != 0);
	s.delta_starts = i == 0 || (i < e.count && i > 1 && s.d != last_d);
	before->v = (T)__shfl_sync(LADE_FULL, s.v, 31);
	before->d = (T)__shfl_sync(LADE_FULL, s.d, 31);
	return s;
}

template <typename T> static __device__ __forceinline__ T lade_cas_least(T v)
{
	if (sizeof(T) < 8)
		return (T)__reduce_min_sync(LADE_FULL, (uint32_t)v);
	unsigned long long all = v;
	uint32_t high = __reduce_min_sync(LADE_FULL, (uint32_t)(all >> 32));
	uint32_t mine = high == (uint32_t)(all >> 32) ? (uint32_t)all : LADE_FULL;
	return (T)((unsigned long long)high << 32 | __reduce_min_sync(LADE_FULL, mine));
}

template <typename T> static __device__ __forceinline__ T lade_cas_most(T v)
{
	return (T)~lade_cas_least((T)~v);
}

/* What a lane has seen so far. */
template <typename T>
static __device__ __forceinline__ lade_cas_measured<T> lade_cas_measured_none()
{
	return {(T)~(T)0, 0, (T)~(T)0, 0, 0, 0};
}

template <typename T>
static __device__ __forceinline__ void lade_cas_measure_one(lade_cas_measured<T> *m, T v, T d)
{
	m->low = v < m->low ? v : m->low;
	m->high = v > m->high ? v : m->high;
	m->delta_low = d < m->delta_low ? d : m->delta_low;
	m->delta_high = d > m->delta_high ? d : m->delta_high;
}

/* What all lanes have seen. */
template <typename T>
static __device__ __forceinline__ void lade_cas_measure_join(lade_cas_measured<T> *m)
{
	m->low = lade_cas_least(m->low);
	m->high = lade_cas_most(m->high);
	m->delta_low = lade_cas_least(m->delta_low);
	m->delta_high = lade_cas_most(m->delta_high);
}

/* A lane's step of elements from x[first] on; those behind the last one are 0. */
template <typename T>
static __device__ __forceinline__ void lade_cas_load(const lade_cas_elements<T> &e, uint32_t first,
                                                     T *v)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP;
	const uint8_t *p = e.x + first * (uint32_t)sizeof(T);
	if (!((uintptr_t)e.x & 15) && first + STEP <= e.count) {
		uint4 all = __ldg((const uint4 *)lade_global(p));
		uint32_t w[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			uint32_t bit = 8 * (uint32_t)sizeof(T) * k;
			v[k] = (T)(w[bit / 32] >> (bit & 31));
			if (sizeof(T) == 8)
				v[k] = (T)(v[k] | (T)w[bit / 32 + 1] << (4 * sizeof(T)));
		}
		return;
	}
#pragma unroll
	for (uint32_t k = 0; k < STEP; k++)
		v[k] = first + k < e.count ? e.at(first + k) : 0;
}

template <typename T> static __device__ __forceinline__ T lade_cas_turned(T v)
{
	return (T)(v << 1 | v >> (8 * sizeof(T) - 1));
}

/*
 * A block's elements, at least two: a lane has 16 bytes of them at a time.  The first difference is
 * made equal to the second, as when the block is written, and so starts no run.
 */
template <typename T>
static __device__ __forceinline__ lade_cas_measured<T>
lade_cas_measure_block(const lade_cas_elements<T> &e, T flip, uint32_t lane)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP, GROUP = lade_cas<T>::GROUP;
	const T sign = (T)((T)1 << (8 * sizeof(T) - 1));
	lade_cas_measured<T> m = lade_cas_measured_none<T>();
	T before = 0, before_d = 0;
	for (uint32_t group = 0; group < e.count; group += GROUP) {
		uint32_t first = group + lane * STEP;
		T v[STEP], d[STEP];
		lade_cas_load(e, first, v);
		T last = (T)__shfl_up_sync(LADE_FULL, v[STEP - 1], 1);
		last = lane ? last : before;
		d[0] = (T)(v[0] - last);
#pragma unroll
		for (uint32_t k = 1; k < STEP; k++)
			d[k] = (T)(v[k] - v[k - 1]);
		if (first == 0)
			d[0] = d[1];
		T last_d = (T)__shfl_up_sync(LADE_FULL, d[STEP - 1], 1);
		last_d = lane ? last_d : before_d;
		last_d = first ? last_d : d[0];
		before = (T)__shfl_sync(LADE_FULL, v[STEP - 1], 31);
		before_d = (T)__shfl_sync(LADE_FULL, d[STEP - 1], 31);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			if (first + k >= e.count)
				break;
			lade_cas_measure_one(&m, (T)(v[k] ^ flip), (T)(d[k] ^ sign));
			m.runs += d[k] != 0 && first + k > 0;
			m.delta_runs += d[k] != last_d;
			last_d = d[k];
		}
	}
	lade_cas_measure_join(&m);
	m.runs = 1 + __shfl_sync(LADE_FULL, lade_warp_scan(m.runs, lane), 31);
	m.delta_runs = 1 + __shfl_sync(LADE_FULL, lade_warp_scan(m.delta_runs, lane), 31);
	return m;
}

/* The least of a block's elements when these are rotated left by one bit, and the most. */
template <typename T>
static __device__ __forceinline__ T lade_cas_rotated(const lade_cas_elements<T> &e, T *high,
                                                     uint32_t lane)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP, GROUP = lade_cas<T>::GROUP;
	T low = (T)~(T)0, most = 0;
	for (uint32_t first = lane * STEP; first < e.count; first += GROUP) {
		T v[STEP];
		lade_cas_load(e, first, v);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			/* Behind the last element is the step's first one. */
			T t = lade_cas_turned(first + k < e.count ? v[k] : v[0]);
			low = t < low ? t : low;
			most = t > most ? t : most;
		}
	}
	*high = lade_cas_most(most);
	return lade_cas_least(low);
}

/* What the widths of a block's parts are below 'width', which is that of all differences less
 * 'low'. */
template <typename T>
static __device__ __forceinline__ uint32_t lade_cas_parts(const lade_cas_elements<T> &e, T low,
                                                          uint32_t width, uint32_t lane)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP, GROUP = lade_cas<T>::GROUP;
	uint32_t all = 0;
	T before = 0, bits = 0;
	for (uint32_t group = 0; group < e.count; group += GROUP) {
		uint32_t first = group + lane * STEP;
		T v[STEP];
		lade_cas_load(e, first, v);
		T last = (T)__shfl_up_sync(LADE_FULL, v[STEP - 1], 1);
		last = lane ? last : before;
		before = (T)__shfl_sync(LADE_FULL, v[STEP - 1], 31);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			/* The first difference is the second. */
			T d = (T)(v[k] - (k ? v[k - 1] : last) - low);
			bits |= first + k < e.count && first + k ? d : 0;
		}
		/* Two groups are a part. */
		if (group & GROUP || group + GROUP >= e.count) {
			uint32_t high =
				sizeof(T) < 8 ? 0 : (uint32_t)((unsigned long long)bits >> 32);
			high = sizeof(T) < 8 ? 0 : __reduce_or_sync(LADE_FULL, high);
			uint32_t rest = __reduce_or_sync(LADE_FULL, (uint32_t)bits);
			uint32_t need = high ? 64 - __clz((int)high) : 32 - __clz((int)rest);
			all |= min(width - need, 15u) << 4 * (group / (2 * GROUP));
			bits = 0;
		}
	}
	return all;
}

/* Any elements, at least one. */
template <typename T>
static __device__ __forceinline__ lade_cas_measured<T>
lade_cas_measure(const lade_cas_elements<T> &e, T flip, uint32_t lane)
{
	const T sign = (T)((T)1 << (8 * sizeof(T) - 1));
	lade_cas_measured<T> m = lade_cas_measured_none<T>();
	lade_cas_view<T> before = {};
	for (uint32_t from = 0; from < e.count; from += 32) {
		uint32_t i = from + lane;
		lade_cas_view<T> s = lade_cas_look(e, i, &before, lane);
		if (i < e.count)
			lade_cas_measure_one(&m, (T)(s.v ^ flip),
			                     (T)((i ? s.d : e.delta(0)) ^ sign));
		m.runs += __popc(__ballot_sync(LADE_FULL, s.starts));
		m.delta_runs += __popc(__ballot_sync(LADE_FULL, s.delta_starts));
	}
	lade_cas_measure_join(&m);
	return m;
}

/* Lists the starts of runs, or of runs of differences, of adjacent elements, 'want' at
 * most: a lane has 16 bytes of them at a time.  Gives their number. */
template <typename T>
static __device__ __forceinline__ uint32_t lade_cas_list_block(const lade_cas_elements<T> &e,
                                                               bool of_deltas, uint32_t want,
                                                               uint16_t *list, uint32_t lane)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP, GROUP = lade_cas<T>::GROUP;
	uint32_t runs = 0;
	T before = 0, before_d = 0;
	for (uint32_t group = 0; group < e.count; group += GROUP) {
		uint32_t first = group + lane * STEP, starts = 0;
		T v[STEP], d[STEP];
		lade_cas_load(e, first, v);
		T last = (T)__shfl_up_sync(LADE_FULL, v[STEP - 1], 1);
		d[0] = (T)(v[0] - (lane ? last : before));
		before = (T)__shfl_sync(LADE_FULL, v[STEP - 1], 31);
#pragma unroll
		for (uint32_t k = 1; k < STEP; k++)
			d[k] = (T)(v[k] - v[k - 1]);
		T last_d = 0;
		if (of_deltas) {
			last_d = (T)__shfl_up_sync(LADE_FULL, d[STEP - 1], 1);
			last_d = lane ? last_d : before_d;
			before_d = (T)__shfl_sync(LADE_FULL, d[STEP - 1], 31);
		}
		/* The first element starts one; the second one starts none of differences. */
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			bool is = d[k] != last_d && !(of_deltas && first + k == 1);
			starts |= first + k < e.count && (is || first + k == 0) ? 1u << k : 0;
			last_d = of_deltas ? d[k] : 0;
		}
		uint32_t mine = __popc(starts), end = lade_warp_scan(mine, lane);
		uint32_t at = runs + end - mine;
		runs += __shfl_sync(LADE_FULL, end, 31);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++)
			if (starts >> k & 1 && at < want)
				list[at++] = (uint16_t)(first + k);
	}
	return runs;
}

/* The same for the elements of a list. */
template <typename T>
static __device__ __forceinline__ uint32_t lade_cas_list_via(const lade_cas_elements<T> &e,
                                                             bool of_deltas, uint32_t want,
                                                             uint16_t *list, uint32_t lane)
{
	lade_cas_view<T> before = {};
	uint32_t runs = 0;
	for (uint32_t from = 0; from < e.count; from += 32) {
		lade_cas_view<T> s = lade_cas_look(e, from + lane, &before, lane);
		bool starts = of_deltas ? s.delta_starts : s.starts;
		uint32_t all = __ballot_sync(LADE_FULL, starts);
		uint32_t at = runs + __popc(all & ((1u << lane) - 1));
		if (starts && at < want)
			list[at] = (uint16_t)(from + lane);
		runs += __popc(all);
	}
	return runs;
}

/* Lists the starts of runs, or of runs of differences, of which 'want' were counted, no more than
 * the list has room for.  Gives the longest.  The source may have changed since: where there are
 * others now, the list has 'want' entries all the same, and all of them are elements. */
template <typename T>
static __device__ __forceinline__ uint32_t lade_cas_list(const lade_cas_elements<T> &e,
                                                         bool of_deltas, uint32_t want,
                                                         uint16_t *list, uint32_t lane)
{
	uint32_t longest = 0;
	__syncwarp();
	/* Sixteen bytes a lane would cost registers on the stack. */
	uint32_t runs = e.via || sizeof(T) == 1
	                        ? lade_cas_list_via(e, of_deltas, want, list, lane)
	                        : lade_cas_list_block(e, of_deltas, want, list, lane);
	for (uint32_t run = runs + lane; run < want; run += 32)
		list[run] = (uint16_t)(e.count - 1);
	__syncwarp();
	for (uint32_t run = lane; run < want; run += 32) {
		uint32_t end = run + 1 < want ? list[run + 1] : e.count, size = end - list[run];
		longest = size > longest ? size : longest;
	}
	return lade_cas_most(longest);
}

/* ---- choosing --------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t lade_cas_bits(unsigned long long v)
{
	return v ? 64 - (uint32_t)__clzll((long long)v) : 0;
}

/* Takes a cascade if it is better than 'best'. */
template <typename T>
static __device__ __forceinline__ void
lade_cas_consider(const lade_cas_choice &choice, lade_cas_plan<T> p, uint32_t layers,
                  lade_cas_plan<T> *best)
{
	p.b.layers = layers;
	lade_cascaded_block_fill(&p.b, choice.log2);
	if (choice.tried >> layers & 1 && lade_cascaded_fits(&p.b, choice.log2, choice.block) &&
	    p.b.units < best->b.units)
		*best = p;
}

static __device__ __forceinline__ uint32_t lade_cas_runs_most(uint32_t count)
{
	return count / 2 < LADE_CAS_LIST ? count / 2 : LADE_CAS_LIST;
}

/* Tries the cascades that begin with 'layers', whose counts are known, on the elements 'e'.  Runs
 * of differences are listed in 'list'. */
template <typename T>
static __device__ __forceinline__ void
lade_cas_try(const lade_cas_choice &choice, const lade_cas_elements<T> &e,
             const lade_cas_measured<T> &m, lade_cas_plan<T> p, uint32_t layers, uint16_t *list,
             lade_cas_plan<T> *best, uint32_t lane)
{
	constexpr uint32_t WHOLE = 8 * sizeof(T);
	const T sign = (T)((T)1 << (WHOLE - 1)), flip = choice.is_signed ? sign : 0;
	uint32_t with_inner = layers | LADE_CASCADED_DELTA | LADE_CASCADED_INNER;
	p.b.n1 = p.b.n2 = e.count;
	p.b.inner_width = 0;
	p.base = (T)(m.low ^ flip);
	p.start = 0;
	p.b.width = choice.bitpack ? lade_cas_bits((T)(m.high - m.low)) : WHOLE;
	lade_cas_consider(choice, p, layers, best);
	if (choice.tried >> (layers | LADE_CASCADED_ROTATED) & 1 &&
	    lade_cascaded_may_rotate(choice.log2, choice.is_signed, m.low, m.high)) {
		T high, low = lade_cas_rotated(e, &high, lane);
		p.base = low;
		p.b.width = choice.bitpack ? lade_cas_bits((T)(high - low)) : WHOLE;
		lade_cas_consider(choice, p, layers | LADE_CASCADED_ROTATED, best);
	}
	p.base = (T)(m.delta_low ^ sign);
	p.start = (T)(e.at(0) - e.delta(0));
	p.b.width = choice.bitpack ? lade_cas_bits((T)(m.delta_high - m.delta_low)) : WHOLE;
	lade_cas_consider(choice, p, layers | LADE_CASCADED_DELTA, best);
	if (choice.bitpack && !layers && best->b.layers == LADE_CASCADED_DELTA) {
		p.b.less = lade_cas_parts(e, p.base, p.b.width, lane);
		lade_cas_consider(choice, p, LADE_CASCADED_DELTA | LADE_CASCADED_PARTS, best);
	}
	if (!(choice.tried >> with_inner & 1) || m.delta_runs > lade_cas_runs_most(e.count))
		return;
	uint32_t longest = lade_cas_list(e, true, m.delta_runs, list, lane);
	p.b.n2 = m.delta_runs;
	p.b.inner_width =
		choice.bitpack ? lade_cas_bits(longest - 1) : LADE_CASCADED_COUNT_WIDTH;
	lade_cas_consider(choice, p, with_inner, best);
}

/* The best way to write the 'n' elements at 'x', and the lists that it wants, but for runs of
 * differences alone; as many units as a raw block has if there is none. */
template <typename T>
static __device__ __noinline__ void lade_cas_choose(const lade_cas_choice &choice, const uint8_t *x,
                                                    uint32_t n, lade_cas_lists *lists,
                                                    lade_cas_plan<T> *out, uint32_t lane)
{
	const uint32_t outer = 1u << 1 | 1u << 3 | 1u << 7; /* cascades with outer runs */
	const T flip = choice.is_signed ? (T)((T)1 << (8 * sizeof(T) - 1)) : 0;
	lade_cas_elements<T> e = {x, nullptr, n};
	lade_cas_plan<T> p = {}, best = {};
	p.b.n = n;
	best.b.units = lade_cascaded_units(n * (uint32_t)sizeof(T));
	lade_cas_measured<T> m = n > 1 ? lade_cas_measure_block(e, flip, lane)
	                               : lade_cas_measure(e, flip, lane);
	lade_cas_try(choice, e, m, p, 0, lists->first, &best, lane);
	if (choice.tried & outer && m.runs <= lade_cas_runs_most(n)) {
		uint32_t longest = lade_cas_list(e, false, m.runs, lists->first, lane);
		lade_cas_elements<T> runs = {x, lists->first, m.runs};
		p.b.outer_width =
			choice.bitpack ? lade_cas_bits(longest - 1) : LADE_CASCADED_COUNT_WIDTH;
		m = lade_cas_measure(runs, flip, lane);
		lade_cas_try(choice, runs, m, p, LADE_CASCADED_OUTER, lists->second, &best, lane);
	}
	*out = best;
}

/* Makes the lists of the runs that 'p' has, where others have taken their place. */
template <typename T>
static __device__ __noinline__ void lade_cas_list_again(const lade_cas_plan<T> &p, const uint8_t *x,
                                                        lade_cas_lists *lists, uint32_t lane)
{
	lade_cas_elements<T> e = {x, nullptr, p.b.n};
	uint16_t *list = lists->first;
	if (p.b.layers & LADE_CASCADED_OUTER) {
		lade_cas_list(e, false, p.b.n1, lists->first, lane);
		e.via = lists->first;
		e.count = p.b.n1;
		list = lists->second;
	}
	if (p.b.layers & LADE_CASCADED_INNER)
		lade_cas_list(e, true, p.b.n2, list, lane);
}

/* ---- writing ---------------------------------------------------------------------------- */

static __device__ __forceinline__ void lade_cas_store_word(uint8_t *to, uint32_t word)
{
	to = lade_global(to);
	if (!((uintptr_t)to & 3)) {
		*(uint32_t *)to = word;
		return;
	}
	for (uint32_t k = 0; k < 4; k++)
		to[k] = (uint8_t)(word >> (8 * k));
}

/*
 * Packs 'entries' of 'width' bits, which get(i) returns, to words from 'to' on.  A word's first
 * entry is its first bit over the width: by the rounded reciprocal, which is exact, as bits times
 * width are below 2^32.
 */
template <typename F>
static __device__ __forceinline__ void lade_cas_pack(uint32_t entries, uint32_t width, uint8_t *to,
                                                     uint32_t lane, F get)
{
	uint32_t words = lade_cascaded_words(entries, width);
	uint32_t reciprocal = width > 1 ? 0xFFFFFFFFu / width + 1 : 0;
	unsigned long long mask = lade_cas_mask(width);
	for (uint32_t word = lane; word < words; word += 32) {
		uint32_t i = width > 1 ? __umulhi(32 * word, reciprocal) : 32 * word, made = 0;
		uint32_t skip = 32 * word - i * width;
		made = (uint32_t)((get(i) & mask) >> skip);
		for (uint32_t at = width - skip; at < 32 && ++i < entries; at += width)
			made |= (uint32_t)((get(i) & mask) << at);
		lade_cas_store_word(to + 4 * word, made);
	}
}

/* The lane's elements less the base, as up to 128 bits from bit 'over' of r[0] on. */
template <typename T>
static __device__ __forceinline__ void lade_cas_gather(const T *v, T base, uint32_t have,
                                                       uint32_t width, uint32_t over, uint32_t *r)
{
	constexpr uint32_t HALF = lade_cas<T>::STEP / 2;
	unsigned long long mask = lade_cas_mask(width), low = 0, high = 0;
	uint32_t half = HALF * width; /* at most 64 */
#pragma unroll
	for (uint32_t k = 0; k < HALF; k++) {
		low |= k < have ? ((T)(v[k] - base) & mask) << (k * width) : 0;
		high |= HALF + k < have ? ((T)(v[HALF + k] - base) & mask) << (k * width) : 0;
	}
	if (half < 64) {
		low |= high << half;
		high = high >> 1 >> (63 - half);
	}
	r[0] = (uint32_t)low << over;
	r[1] = __funnelshift_l((uint32_t)low, (uint32_t)(low >> 32), over);
	r[2] = __funnelshift_l((uint32_t)(low >> 32), (uint32_t)high, over);
	r[3] = __funnelshift_l((uint32_t)high, (uint32_t)(high >> 32), over);
	r[4] = __funnelshift_l((uint32_t)(high >> 32), 0, over);
}

/*
 * Packs a block's elements or their differences, without lists: a lane takes 16 bytes of elements
 * at a time, and sets their bits in 'buffer', shared memory of 129 words, from which whole words go
 * to 'to'.  A group's bits are STEP words for each bit of its width.
 */
template <typename T>
static __device__ __forceinline__ void
lade_cas_pack_block(const lade_cas_elements<T> &e, const lade_cascaded_block &b, T base,
                    uint8_t *to, uint32_t *buffer, uint32_t lane)
{
	constexpr uint32_t STEP = lade_cas<T>::STEP, GROUP = lade_cas<T>::GROUP;
	uint32_t words = lade_cascaded_values_words(&b, lade_cas<T>::LOG2), each, done = 0;
	bool delta = b.layers & LADE_CASCADED_DELTA, rotated = b.layers & LADE_CASCADED_ROTATED;
	uint32_t less = b.layers & LADE_CASCADED_PARTS ? b.less : 0, most = b.width;
	T before = 0;
	for (uint32_t group = 0; done < words; group += GROUP, done += each) {
		uint32_t first = group + lane * STEP, r[5];
		uint32_t width = most - min(less & 15, most);
		less = group & GROUP ? less >> 4 : less;
		each = STEP * width;
		T v[STEP];
		lade_cas_load(e, first, v);
		if (delta) {
			T last = (T)__shfl_up_sync(LADE_FULL, v[STEP - 1], 1);
			last = lane ? last : before;
			before = (T)__shfl_sync(LADE_FULL, v[STEP - 1], 31);
#pragma unroll
			for (uint32_t k = STEP - 1; k > 0; k--)
				v[k] = (T)(v[k] - v[k - 1]);
			v[0] = first ? (T)(v[0] - last) : e.delta(0);
		}
		if (rotated)
#pragma unroll
			for (uint32_t k = 0; k < STEP; k++)
				v[k] = lade_cas_turned(v[k]);
		for (uint32_t i = lane; i <= each; i += 32)
			buffer[i] = 0;
		__syncwarp();
		lade_cas_gather(v, base, first < e.count ? e.count - first : 0, width,
		                lane * each & 31, r);
#pragma unroll
		for (uint32_t k = 0; k < 5; k++)
			if (r[k])
				atomicOr(&buffer[lane * each / 32 + k], r[k]);
		__syncwarp();
		for (uint32_t i = lane; i < each && done + i < words; i += 32)
			lade_cas_store_word(to + 4 * (done + i), buffer[i]);
		__syncwarp();
	}
}

/* Counts less one of the runs that start at 'list'. */
static __device__ __forceinline__ void lade_cas_pack_counts(const uint16_t *list, uint32_t runs,
                                                            uint32_t count, uint32_t width,
                                                            uint8_t *to, uint32_t lane)
{
	lade_cas_pack(runs, width, to, lane, [=](uint32_t i) -> unsigned long long {
		return (i + 1 < runs ? list[i + 1] : count) - list[i] - 1;
	});
}

template <typename T>
static __device__ __noinline__ void lade_cas_write(const lade_cas_plan<T> &p, const uint8_t *x,
                                                   lade_cas_lists *lists, uint8_t *to,
                                                   uint32_t lane)
{
	const lade_cascaded_block &b = p.b;
	bool outer = b.layers & LADE_CASCADED_OUTER, inner = b.layers & LADE_CASCADED_INNER;
	bool delta = b.layers & LADE_CASCADED_DELTA;
	unsigned long long base = p.base, start = p.start;
	lade_cas_elements<T> e = {x, outer ? lists->first : nullptr, b.n1};
	const uint16_t *list = outer ? lists->second : lists->first;
	/* Header and the zeros behind the last array. */
	uint32_t head[6] = {b.layers | b.width << 8 | b.outer_width << 16 | b.inner_width << 24,
	                    b.layers & LADE_CASCADED_PARTS
	                            ? b.less
	                            : (outer ? b.n1 : 0) | (inner ? b.n2 : 0) << 16,
	                    (uint32_t)base,
	                    (uint32_t)(base >> 32),
	                    (uint32_t)start,
	                    (uint32_t)(start >> 32)};
	uint32_t end = b.values + lade_cascaded_values_words(&b, lade_cas<T>::LOG2);
#pragma unroll
	for (uint32_t k = 0; k < 6; k++)
		if (k == lane && k < b.outer)
			lade_cas_store_word(to + 4 * k, head[k]);
	if (end + lane < 4 * b.units)
		lade_cas_store_word(to + 4 * (end + lane), 0);
	if (outer)
		lade_cas_pack_counts(lists->first, b.n1, b.n, b.outer_width, to + 4 * b.outer,
		                     lane);
	if (inner)
		lade_cas_pack_counts(list, b.n2, b.n1, b.inner_width, to + 4 * b.inner, lane);
	if (!outer && !inner) {
		lade_cas_pack_block(e, b, p.base, to + 4 * b.values, (uint32_t *)lists, lane);
		return;
	}
	lade_cas_pack(b.n2, b.width, to + 4 * b.values, lane,
	              [=](uint32_t i) -> unsigned long long {
		              i = inner ? list[i] : i;
		              return (T)((delta ? e.delta(i) : e.at(i)) - (T)base);
	              });
}

/* A raw block of 'bytes', with zeros up to a whole unit. */
static __device__ __forceinline__ void lade_cas_write_raw(const uint8_t *x, uint32_t bytes,
                                                          uint8_t *to, uint32_t lane)
{
	bool aligned = !(((uintptr_t)x | (uintptr_t)to) & 15);
	uint32_t whole = aligned ? bytes & ~15u : 0;
	for (uint32_t at = 16 * lane; at < whole; at += 512)
		*(uint4 *)lade_global(to + at) = __ldg((const uint4 *)lade_global(x + at));
	for (uint32_t at = whole + 4 * lane; at < ((bytes + 15) & ~15u); at += 128) {
		uint32_t word = 0;
		if (at + 4 <= bytes) {
			word = lade_cas_word(x + at);
		} else {
			for (uint32_t k = 0; k < 4; k++)
				if (at + k < bytes)
					word |= (uint32_t)__ldg(x + at + k) << (8 * k);
		}
		lade_cas_store_word(to + at, word);
	}
}

/* ---- sub-blocks of bitcomp -------------------------------------------------------------- */

/* Makes one of the 'bytes' at 'x', as lade_bitcomp_made() does.  Lists are lost. */
template <int LOG>
static __device__ __noinline__ uint32_t lade_cas_bitcomp(const lade_cas_choice &choice,
                                                         lade_bitcomp_warp_smem *there,
                                                         const uint8_t *x, uint32_t bytes,
                                                         uint32_t lane)
{
	lade_bitcomp_warp_smem *own_smem = lade_shared(there);
	uint32_t flags = (choice.is_signed ? 1 : 0) | (choice.real ? 4 : 0);
	__syncwarp();
	if (lane == 0) {
		own_smem->from = x;
		own_smem->len = bytes;
		own_smem->quant = 0;
		own_smem->ten = 0;
	}
	__syncwarp();
	lade_bitcomp_again<LOG>(own_smem, lane);
	return lade_bitcomp_made<LOG>(own_smem, flags, lane);
}

/* Writes what lade_cas_bitcomp() made. */
static __device__ __forceinline__ void lade_cas_write_bitcomp(lade_bitcomp_warp_smem *own_smem,
                                                              uint32_t made, uint8_t *to,
                                                              uint32_t lane)
{
	uint32_t size = made & 0xFFFF, fixed = made >> 16;
	if (lane == 0)
		own_smem->fixed[0].x |= LADE_CASCADED_BITCOMP;
	__syncwarp();
	lade_bitcomp_out(to, own_smem->fixed, fixed, lane);
	lade_bitcomp_out(to + fixed, own_smem->units, size - fixed, lane);
	__syncwarp();
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* The chunk's header, and the zeros behind its directory. */
static __device__ __forceinline__ void lade_cas_write_header(const lade_gpu_chunk &chunk,
                                                             const lade_cascaded_chunk &c)
{
	uint32_t at = threadIdx.x;
	if (at == 0) {
		lade_cas_store_word(chunk.dst, LADE_CASCADED_VERSION | c.log2 << 8 | c.block << 16);
		lade_cas_store_word(chunk.dst + 4, c.size);
	}
	if (at < 8)
		chunk.dst[LADE_CASCADED_TAIL + at] =
			at < c.size - c.body ? chunk.src[c.body + at] : 0;
	if (c.blocks + at < 4 * (c.first - 1))
		lade_cas_store_word(chunk.dst + LADE_CASCADED_HEADER + 4 * (c.blocks + at), 0);
}

/* What a block of threads is at. */
struct lade_cas_job {
	/* As one thread finds it in the tables, which may change at any time: all warps must go by
	 * the same. */
	lade_gpu_chunk chunk;
	uint32_t item, status, units[LADE_CAS_WARPS];
};
static_assert(sizeof(lade_bitcomp_encode_smem) + sizeof(lade_cas_job) ==
                      LADE_CAS_ENCODE_SHARED(LADE_CAS_WARPS),
              "");

/* Encodes a chunk; gives its units, or 0 where it does not fit.  For all threads. */
template <typename T>
static __device__ __forceinline__ uint32_t
lade_cas_encode(lade_cas_job *job, lade_bitcomp_warp_smem *own_smem,
                const lade_cas_choice &choice, const lade_gpu_chunk &chunk,
                const lade_cascaded_chunk &c, uint32_t warp, uint32_t lane)
{
	constexpr int LOG = lade_cas<T>::LOG2;
	lade_cas_lists *lists = (lade_cas_lists *)own_smem->units;
	uint32_t cap = chunk.dst_cap / 16, at = c.first;
	if (at > cap)
		return 0;
	lade_cas_write_header(chunk, c);
	for (uint32_t from = 0; from < c.blocks; from += blockDim.x / 32) {
		uint32_t i = from + warp, bytes = 0, before = 0, all = 0, made = 0;
		const uint8_t *x = chunk.src + ((size_t)i << c.block);
		lade_cas_plan<T> p;
		p.b.units = 0;
		if (i < c.blocks) {
			bytes = lade_cascaded_block_bytes(&c, i);
			lade_cas_choose<T>(choice, x, bytes / (uint32_t)sizeof(T), lists, &p, lane);
			if (choice.bitcomp)
				made = lade_cas_bitcomp<LOG>(choice, own_smem, x, bytes, lane);
			made = (made & 0xFFFF) / 16 < p.b.units ? made : 0;
			if (made)
				p.b.units = (made & 0xFFFF) / 16;
			else if (choice.bitcomp ||
			         p.b.layers == (LADE_CASCADED_DELTA | LADE_CASCADED_INNER))
				lade_cas_list_again(p, x, lists, lane);
		}
		if (lane == 0)
			job->units[warp] = p.b.units;
		__syncthreads();
		for (uint32_t k = 0; k < LADE_CAS_WARPS; k++) {
			before += k < warp ? job->units[k] : 0;
			all += job->units[k];
		}
		if (all > cap - at)
			return 0;
		if (i < c.blocks) {
			uint8_t *to = chunk.dst + 16 * (size_t)(at + before);
			if (made)
				lade_cas_write_bitcomp(own_smem, made, to, lane);
			else if (p.b.units == lade_cascaded_units(bytes))
				lade_cas_write_raw(x, bytes, to, lane);
			else
				lade_cas_write(p, x, lists, to, lane);
			if (lane == 0)
				lade_cas_store_word(chunk.dst + LADE_CASCADED_HEADER + 4 * i,
				                    at + before + p.b.units);
		}
		at += all;
		__syncthreads();
	}
	return at;
}

/*
 * Map: a block of 32 to 256 threads a chunk; with 'next' blocks take chunks from it, else block i
 * has the i-th.  Sources and destinations have any alignment and do not overlap.  Shared: a
 * lade_bitcomp_encode_smem with as many warps as there are, and a lade_cas_job, dynamic.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_CAS_WARPS, 3)
	lade_cascaded_encode(lade_gpu_batch batch, lade_cas_choice choice)
{
	LADE_SHARED_DYNAMIC_AT(256, lade_bitcomp_encode_smem, smem);
	/* Behind the warps that there are, as static memory would be aligned to 256 bytes. */
	lade_cas_job &job = *(lade_cas_job *)(smem->warps + blockDim.x / 32);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	/* Of warps that there are not, too. */
	if (threadIdx.x < LADE_CAS_WARPS)
		job.units[threadIdx.x] = 0;
	if (threadIdx.x == 0)
		job.item = ~0u;
	for (bool again = true; again; again = batch.next != nullptr) {
		__syncthreads();
		if (threadIdx.x == 0) {
			job.item = batch.next ? lade_turn_next(batch, job.item) : blockIdx.x;
			job.chunk = lade_gpu_chunk{};
			if (job.item < batch.count)
				job.status = lade_chunk_get(batch, job.item, &job.chunk);
		}
		__syncthreads();
		if (job.item >= batch.count)
			return;
		uint32_t units = 0, status = job.status;
		const lade_gpu_chunk &chunk = job.chunk;
		if (status == LADE_GPU_OK) {
			lade_cascaded_chunk c = {
				choice.log2, choice.block, chunk.src_size, 0, 0, 0};
			lade_bitcomp_warp_smem *l = &smem->warps[warp];
			lade_cascaded_chunk_fill(&c);
			if (c.log2 == 0)
				units = lade_cas_encode<uint8_t>(&job, l, choice, chunk, c, warp,
				                                 lane);
			else if (c.log2 == 1)
				units = lade_cas_encode<uint16_t>(&job, l, choice, chunk, c, warp,
				                                  lane);
			else if (c.log2 == 2)
				units = lade_cas_encode<uint32_t>(&job, l, choice, chunk, c, warp,
				                                  lane);
			else
				units = lade_cas_encode<unsigned long long>(&job, l, choice, chunk,
				                                            c, warp, lane);
			status = units ? LADE_GPU_OK : LADE_GPU_NOSPACE;
		}
		if (threadIdx.x == 0)
			lade_encoded_put(batch, job.item, status, 16 * units);
	}
}
