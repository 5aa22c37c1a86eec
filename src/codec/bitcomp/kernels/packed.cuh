/*
 * packed.cuh: elements of 1, 2, 4 or 8 bytes from bits in shared memory, by a warp, for the
 * decoders of bitcomp and cascaded; and the memory that their warps write.
 *
 * A warp decodes groups of 512 bytes: a lane unpacks 16 bytes of elements from at most five
 * adjacent words and stores them together.  Where units have their own widths (sections 2 and 3 of
 * docs/format/bitcomp.md, whose terms are used here), a table says where a lane's bits begin; with
 * delta, a scan over the lanes gives the prefix sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_PACKED_CUH
#define LADE_CUDA_PACKED_CUH

#include "codec/bitcomp/layout.h"
#include "gpu/kernels/bytes.cuh"

/* ---- a chunk's first words ------------------------------------------------------------------ */

/* Four bytes at any address. */
LADE_DEVICE uint32_t lade_le32(const uint8_t *p)
{
	if (!((uintptr_t)p & 3))
		return __ldg((const uint32_t *)p);
	return (uint32_t)__ldg(p) | (uint32_t)__ldg(p + 1) << 8 | (uint32_t)__ldg(p + 2) << 16 |
	       (uint32_t)__ldg(p + 3) << 24;
}

/* The first 128 bytes of a chunk, a word a lane, in one load: a header, and the start of a
 * directory. */
struct lade_front {
	const uint8_t *src;
	uint32_t word;
};

LADE_DEVICE lade_front lade_front_get(const lade_gpu_chunk &c, uint32_t lane)
{
	return {c.src, 4 * lane + 4 <= c.src_size ? lade_le32(c.src + 4 * lane) : 0};
}

/* The word at 4 * i, which is in the chunk; all lanes pass the same 'i'. */
LADE_DEVICE uint32_t lade_front_word(const lade_front &f, uint32_t i)
{
	return i < 32 ? __shfl_sync(LADE_FULL, f.word, i) : lade_le32(f.src + 4 * (size_t)i);
}

/* ---- a warp's turns ------------------------------------------------------------------------- */

/*
 * Decoders keep no state in registers while they decode a sub-block: a register that is spilled
 * costs as much traffic as 128 bytes of the chunk.  A warp's state is in shared memory, or computed
 * again.
 */

/* A warp's state and results. */
struct lade_warp_report {
	uint32_t status, size;
	uint32_t turn;      /* number of its current sub-block */
	uint32_t staged;    /* how many were copied to shared memory */
	uint32_t more;      /* whether there is another one */
	uint32_t quantised; /* of bitcomp: whether the chunk is */
	uint32_t unused[2];
};

/* A thread's place in a block of 8 warps: its lane, its warp, its chunk 'i', and its warp's first
 * sub-block 'k', where a chunk has 2^team_log warps of a block or, with 8, 'spans' blocks. */
struct lade_thread_place {
	uint32_t lane, warp, i, k;
};

LADE_DEVICE lade_thread_place lade_thread_place_of(uint32_t team_log, uint32_t spans)
{
	uint32_t thread = threadIdx.x, block = blockIdx.x, span = 0;
#if LADE_ON_GPU
	/* Read again, so that the compiler does not keep earlier values in registers. */
	asm volatile("mov.u32 %0, %%tid.x; mov.u32 %1, %%ctaid.x;" : "=r"(thread), "=r"(block));
#endif
	if (spans > 1) {
		span = block;
		block /= spans;
		span -= block * spans;
	}
	uint32_t warp = thread / 32;
	return {thread & 31, warp, block * (8 >> team_log) + (warp >> team_log),
	        (span << team_log) + (warp & ((1u << team_log) - 1))};
}

/* ---- elements in words ------------------------------------------------------------------- */

/* By log2 of the size: the lowest and the highest bits of the elements in a word, and all but the
 * highest; an element in each place. */
template <int LOG> struct lade_packed_word {
	static constexpr uint32_t LOW = LOG == 0 ? 0x01010101u : LOG == 1 ? 0x00010001u : 1u;
	static constexpr uint32_t TOP = LOG == 0 ? 0x80808080u : LOG == 1 ? 0x80008000u : 1u << 31;
	static constexpr uint32_t BITS = 8u << LOG;

	static __device__ __forceinline__ uint32_t all(uint32_t v)
	{
		return LOG == 0 ? v * 0x01010101u : LOG == 1 ? v * 0x00010001u : v;
	}

	static __device__ __forceinline__ uint32_t add(uint32_t a, uint32_t b)
	{
#if LADE_ON_GPU && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
		if (LOG == 1) {
			asm("add.u16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
			return a;
		}
#endif
		return LOG == 2 ? a + b : ((a & ~TOP) + (b & ~TOP)) ^ ((a ^ b) & TOP);
	}

	static __device__ __forceinline__ uint32_t sub(uint32_t a, uint32_t b)
	{
		return LOG == 2 ? a - b : ((a | TOP) - (b & ~TOP)) ^ ((a ^ ~b) & TOP);
	}

	/* All ones in each element whose lowest bit is set. */
	static __device__ __forceinline__ uint32_t ones(uint32_t v)
	{
		v &= LOW;
		return LOG == 2 ? 0 - v : v * ((1u << (BITS & 31)) - 1);
	}
};

/* ---- memory ------------------------------------------------------------------------------ */

/* lade_packed_store() where 'to' is not aligned to 16 or less than 512 bytes are there. */
static __device__ __noinline__ void lade_packed_store_some(uint8_t *to, uint4 v, uint32_t left,
                                                           uint32_t lane)
{
	uint32_t over = (uint32_t)(uintptr_t)to & 3, w[4] = {v.x, v.y, v.z, v.w};
	uint8_t *mine = to + 16 * lane;
	uint32_t *words = (uint32_t *)lade_global(mine - over);
	uint32_t before = __shfl_up_sync(LADE_FULL, w[3], 1);
	if (left < 512) {
#pragma unroll
		for (uint32_t i = 0; i < 16; i++)
			if (16 * lane + i < left)
				mine[i] = (uint8_t)(w[i / 4] >> 8 * (i & 3));
		return;
	}
	/* Aligned words; the first lane's first one and the last lane's end in bytes. */
	for (uint32_t i = over; over && lane == 0 && i < 4; i++)
		mine[i - over] = (uint8_t)(w[0] >> 8 * (i - over));
	if (!over || lane)
		words[0] = __funnelshift_l(before, w[0], 8 * over);
#pragma unroll
	for (uint32_t k = 1; k < 4; k++)
		words[k] = __funnelshift_l(w[k - 1], w[k], 8 * over);
	for (uint32_t i = 0; lane == 31 && i < over; i++)
		mine[16 - over + i] = (uint8_t)(w[3] >> 8 * (4 - over + i));
}

/* Stores a lane's 16 bytes at to + 16 lane, of the 'left' that there are from 'to' on: all lanes of
 * a warp together, at any address. */
LADE_DEVICE void lade_packed_store(uint8_t *to, const uint32_t *w, uint32_t left, uint32_t lane)
{
	uint4 v = make_uint4(w[0], w[1], w[2], w[3]);
	if (!((uintptr_t)to & 15) && left >= 512)
		((uint4 *)lade_global(to))[lane] = v;
	else
		lade_packed_store_some(to, v, left, lane);
}

/* Copies between any addresses, a warp. */
[[maybe_unused]] static __device__ __noinline__ void
lade_packed_copy(uint8_t *to, const uint8_t *from, uint32_t size, uint32_t lane)
{
	if (((uintptr_t)to | (uintptr_t)from) & 15) {
		lade_bytes_copy(to, from, size, lane);
		return;
	}
	const uint4 *a = (const uint4 *)lade_global(from);
	uint4 *b = (uint4 *)lade_global(to);
	uint32_t count = size / 16, i = lane;
	/* 4 KiB at a time are asked for before any of them is stored. */
#pragma unroll 1
	for (; i + 224 < count; i += 256) {
		uint4 v[8];
#pragma unroll
		for (uint32_t k = 0; k < 8; k++)
			v[k] = __ldg(a + i + 32 * k);
#pragma unroll
		for (uint32_t k = 0; k < 8; k++)
			b[i + 32 * k] = v[k];
	}
	for (; i < count; i += 32)
		b[i] = __ldg(a + i);
	for (i = 16 * count + lane; i < size; i += 32)
		to[i] = __ldg(from + i);
}

/* ---- what is packed ---------------------------------------------------------------------- */

/* Widths of what is packed: one; one a unit; one for each two groups (of cascaded), which is
 * 'width' less the lowest four bits of 'step', then less the next four. */
enum lade_packed_widths { LADE_PACKED_ONE, LADE_PACKED_UNITS, LADE_PACKED_PARTS };

/* Packed elements in shared memory, aligned to 16 bytes; places are in bytes from its begin.
 * 'words' is of the dictionary; 'places' says where each unit's bits begin, and where the last
 * one's end, for LADE_PACKED_UNITS: as many units as whole steps have, those that are not there
 * with no bits.  'lag' is above 1 where differences are of values so far apart, for
 * LADE_PACKED_UNITS and LADE_PACKED_ONE. */
struct lade_packed {
	uint32_t mode, width, step, payload, dict, words, lag;
	const uint16_t *places;
	uint64_t base, reference;
};

/* ---- a lane's elements ------------------------------------------------------------------- */

/* The lowest 'count' bits, of up to 32. */
LADE_DEVICE uint32_t lade_packed_mask(uint32_t count)
{
	return __funnelshift_rc(LADE_FULL, 0, 32 - count);
}

/* 32 bits from bit 'at' on. */
LADE_DEVICE uint32_t lade_packed_bits(const uint32_t *s, uint32_t at)
{
	return __funnelshift_r(s[at / 32], s[at / 32 + 1], at & 31);
}

/* 128 bits from bit 'at' on, and the word that the last of them are in. */
LADE_DEVICE void lade_packed_window(const uint32_t *s, uint32_t at, uint32_t q[5])
{
#pragma unroll
	for (uint32_t k = 0; k < 5; k++)
		q[k] = s[at / 32 + k];
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		q[k] = __funnelshift_r(q[k], q[k + 1], at & 31);
}

/*
 * The lane's values, 'width' bits each from bit 'at' on, in their places in 16 bytes.
 */
template <int LOG>
LADE_DEVICE void lade_packed_unpack(const uint32_t *s, uint32_t at, uint32_t width, uint32_t *w)
{
	if (LOG == 3) {
		uint32_t low = lade_packed_mask(min(width, 32u));
		uint32_t high = lade_packed_mask(width < 32 ? 0 : width - 32);
#pragma unroll
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t bit = at + i * width;
			w[2 * i] = lade_packed_bits(s, bit) & low;
			w[2 * i + 1] = lade_packed_bits(s, bit + 32) & high;
		}
		return;
	}
	/* 4 >> LOG values are in a word's place: word k begins k * fields bits on. */
	constexpr uint32_t EACH = 4 >> LOG;
	uint32_t q[5], fields = width * EACH, mask = lade_packed_mask(width);
	lade_packed_window(s, at, q);
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t v = q[0];
		if (LOG == 2) {
			w[k] = v & mask;
		} else if (LOG == 1) {
			w[k] = (v & mask) | (v << (16 - width) & mask << 16);
		} else {
			uint32_t two = lade_packed_mask(2 * width);
			v = (v & two) | (v << (16 - 2 * width) & two << 16);
			mask = lade_packed_mask(width) * 0x00010001u;
			w[k] = (v & mask) | (v << (8 - width) & mask << 8);
		}
#pragma unroll
		for (uint32_t j = 0; j < 3; j++)
			if (j + k < 3)
				q[j] = __funnelshift_rc(q[j], q[j + 1], fields);
	}
}

/* Steps 2 and 3 of section 3: what does not depend on the value. */
struct lade_packed_undo {
	uint32_t flip;           /* all ones from above: reference - x = reference + 1 + ~x */
	uint32_t reference, low; /* in each place; of size 8 the low and the high half */
	uint32_t high;
	uint32_t fold, keep, keep_high; /* t = u >> 1 ^ (ones where u is odd & keep) */
};

template <int LOG> LADE_DEVICE lade_packed_undo lade_packed_undo_of(const lade_packed &p)
{
	lade_packed_undo u;
	uint32_t above = p.mode & LADE_BITCOMP_ABOVE ? 1 : 0;
	uint64_t reference = p.reference + above;
	u.flip = 0 - above;
	uint32_t mask = LOG == 0 ? 0xFFu : LOG == 1 ? 0xFFFFu : LADE_FULL;
	u.reference = lade_packed_word<LOG == 3 ? 2 : LOG>::all((uint32_t)reference & mask);
	u.low = (uint32_t)reference;
	u.high = (uint32_t)(reference >> 32);
	u.fold = p.mode >> LADE_BITCOMP_FOLD & 3;
	bool zigzag = u.fold == LADE_BITCOMP_ZIGZAG;
	u.keep = zigzag ? LADE_FULL : LOG == 3 ? 0 : lade_packed_word<LOG == 3 ? 2 : LOG>::TOP;
	u.keep_high = zigzag ? LADE_FULL : 1u << 31;
	return u;
}

/* Of G groups. */
template <int LOG, int G>
LADE_DEVICE void lade_packed_unfold(const lade_packed_undo &u, uint32_t (*groups)[4])
{
	typedef lade_packed_word<LOG == 3 ? 2 : LOG> word;
	uint32_t *w = groups[0];
	if constexpr (LOG == 3) {
#pragma unroll
		for (uint32_t k = 0; k < 4 * G; k += 2) {
			uint64_t v = ((uint64_t)(w[k + 1] ^ u.flip) << 32 | (w[k] ^ u.flip)) +
			             ((uint64_t)u.high << 32 | u.low);
			w[k] = (uint32_t)v;
			w[k + 1] = (uint32_t)(v >> 32);
			if (u.fold) {
				uint32_t odd = 0 - (w[k] & 1);
				w[k] = __funnelshift_r(w[k], w[k + 1], 1) ^ (odd & u.keep);
				w[k + 1] = w[k + 1] >> 1 ^ (odd & u.keep_high);
			}
		}
	} else {
#pragma unroll
		for (uint32_t k = 0; k < 4 * G; k++)
			w[k] = word::add(w[k] ^ u.flip, u.reference);
		if (u.fold)
#pragma unroll
			for (uint32_t k = 0; k < 4 * G; k++)
				w[k] = (w[k] >> 1 & ~word::TOP) ^ (word::ones(w[k]) & u.keep);
	}
}

/* Inclusive sum over the lanes, and the sum of all. */
LADE_DEVICE uint64_t lade_packed_scan64(uint64_t v, uint32_t lane)
{
#pragma unroll
	for (uint32_t d = 1; d < 32; d *= 2) {
		uint64_t before = __shfl_up_sync(LADE_FULL, (unsigned long long)v, d);
		v += lane >= d ? before : 0;
	}
	return v;
}

/* Step 4: sums up; 'sum' is what is before the group, and then what is before the next. */
template <int LOG> LADE_DEVICE void lade_packed_sum(uint32_t *w, uint64_t *sum, uint32_t lane)
{
	typedef lade_packed_word<LOG == 3 ? 2 : LOG> word;
	if (LOG == 3) {
		uint64_t a = (uint64_t)w[1] << 32 | w[0], b = ((uint64_t)w[3] << 32 | w[2]) + a;
		uint64_t all = lade_packed_scan64(b, lane), before = all - b + *sum;
		a += before;
		b += before;
		w[0] = (uint32_t)a;
		w[1] = (uint32_t)(a >> 32);
		w[2] = (uint32_t)b;
		w[3] = (uint32_t)(b >> 32);
		*sum += __shfl_sync(LADE_FULL, (unsigned long long)all, 31);
		return;
	}
	/* Within each word first; the last element of a word then has its sum. */
	constexpr uint32_t LAST = LOG == 3 ? 0 : 32 - (8u << LOG);
	uint32_t total = 0, before[4];
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		if (LOG == 0)
			w[k] = word::add(w[k], w[k] << 8);
		if (LOG <= 1)
			w[k] = word::add(w[k], w[k] << 16);
		before[k] = total;
		total += w[k] >> LAST;
	}
	uint32_t all = lade_warp_scan(total, lane), base = all - total + (uint32_t)*sum;
	constexpr uint32_t MASK = LOG == 0 ? 0xFFu : LOG == 1 ? 0xFFFFu : LADE_FULL;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		w[k] = word::add(w[k], word::all((before[k] + base) & MASK));
	*sum += __shfl_sync(LADE_FULL, all, 31);
}

/* The type of a sum of elements. */
template <int LOG> struct lade_packed_total {
	typedef uint32_t type;
};
template <> struct lade_packed_total<3> {
	typedef unsigned long long type;
};

/*
 * The same of differences of values LAG apart.  Sum j is of a lane's elements j, j + LAG, ...; the
 * lane d before has these from its element j + d * V on.  'before' has what is before the group's
 * first LAG elements.
 */
template <int LOG, int LAG>
LADE_DEVICE void lade_packed_sum_apart(uint32_t *w, typename lade_packed_total<LOG>::type *before,
                                       uint32_t lane)
{
	typedef typename lade_packed_total<LOG>::type total;
	constexpr int V = 16 >> LOG, BITS = 8 << LOG;
	total v[V], sum[LAG];
#pragma unroll
	for (int k = 0; k < V; k++)
		v[k] = LOG == 3 ? (total)w[2 * k & 3] |
		                          (total)w[(2 * k + 1) & 3] << (LOG == 3 ? 32 : 0)
		                : (total)(w[k * BITS / 32 & 3] >> (k * BITS & 31));
#pragma unroll
	for (int j = 0; j < LAG; j++)
		v[j % V] += lane == (uint32_t)(j / V) ? before[j] : 0;
#pragma unroll
	for (int k = LAG; k < V; k++)
		v[k] += v[k - LAG >= 0 ? k - LAG : 0];
#pragma unroll
	for (int j = 0; j < LAG; j++)
		sum[j] = j < V ? v[V - 1 - (V - 1 - j % V) % LAG] : 0;
#pragma unroll
	for (int d = 1; d < 32; d *= 2) {
		total other[LAG];
#pragma unroll
		for (int j = 0; j < LAG; j++)
			other[j] = __shfl_up_sync(LADE_FULL, sum[(j + d * V) % LAG], d);
#pragma unroll
		for (int j = 0; j < LAG; j++)
			sum[j] += lane >= (uint32_t)d ? other[j] : 0;
	}
	uint32_t out[4] = {};
#pragma unroll
	for (int j = 0; j < LAG; j++) {
		total last = sum[(j + V) % LAG], more = __shfl_up_sync(LADE_FULL, last, 1);
		before[j] = __shfl_sync(LADE_FULL, last, 31);
#pragma unroll
		for (int k = j; k < V; k += LAG)
			v[k] += lane ? more : 0;
	}
#pragma unroll
	for (int k = 0; k < V; k++)
		if (LOG == 3) {
			out[2 * k & 3] = (uint32_t)v[k];
			out[(2 * k + 1) & 3] = (uint32_t)(v[k] >> (LOG == 3 ? 32 : 0));
		} else {
			uint32_t one = (uint32_t)v[k] & LADE_FULL >> (LOG == 3 ? 0 : 32 - BITS);
			out[k * BITS / 32 & 3] |= one << (k * BITS & 31);
		}
#pragma unroll
	for (int k = 0; k < 4; k++)
		w[k] = out[k];
}

/* The lane's values in their places: words of the dictionary at once (step 1). */
LADE_DEVICE void lade_packed_look_up(const uint8_t *dict, const uint32_t *s, uint32_t at,
                                     uint32_t width, uint32_t *w)
{
	uint32_t q[5], fields = 4 * width, mask = lade_packed_mask(width);
	lade_packed_window(s, at, q);
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t v = q[0];
		uint32_t a = dict[v & mask], b = dict[v >> width & mask];
		uint32_t c = dict[v >> 2 * width & mask], d = dict[v >> 3 * width & mask];
		w[k] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
#pragma unroll
		for (uint32_t j = 0; j < 3; j++)
			if (j + k < 3)
				q[j] = __funnelshift_rc(q[j], q[j + 1], fields);
	}
}

/* ---- where a lane's bits are -------------------------------------------------------------- */

/*
 * A warp makes G groups at a time, an even number, so that the one's loads, shuffles and shifts
 * need not wait for one another alone.
 */
template <int LOG, int G> struct lade_packed_place {
	static constexpr uint32_t BITS_LOG = 4 - LOG;               /* log2 of a lane's values */
	static constexpr uint32_t UNITS = LOG < 2 ? 32 : 64 >> LOG; /* of a group */
	static constexpr uint32_t SHARE = LOG < 2 ? 0 : LOG - 1;    /* log2 of a unit's lanes */
	static constexpr uint32_t EACH = LOG ? 8u << LOG : 16;      /* bytes of a unit */

	const uint16_t *places;
	uint32_t at, none, width, step, len;
	uint32_t begin[G], own[G]; /* the lane's first bits and widths */

	__device__ __forceinline__ void open(const lade_packed &p, uint32_t bytes, uint32_t lane)
	{
		/* NULL where no table was made, and nothing is read from it. */
		places = (const uint16_t *)((uintptr_t)p.places +
		                            sizeof(*places) * (lane >> SHARE));
		at = none = 8 * p.payload;
		width = p.width;
		step = p.step;
		len = bytes;
#pragma unroll
		for (uint32_t g = 0; g < G; g++)
			own[g] = width;
	}

	/* Of the groups from byte 'off' on.  Lanes behind the sub-block's end have no bits. */
	template <int WIDTHS> __device__ __forceinline__ void next(uint32_t off, uint32_t lane)
	{
		if constexpr (WIDTHS != LADE_PACKED_UNITS) {
			uint32_t wide = width;
			if (WIDTHS == LADE_PACKED_PARTS) {
				static_assert(WIDTHS != LADE_PACKED_PARTS || G == 2, "a part");
				wide -= min(step & 15, wide);
				step >>= 4;
			}
			uint32_t group = wide << (5 + BITS_LOG);
#pragma unroll
			for (uint32_t g = 0; g < G; g++) {
				uint32_t bit = at + ((wide * lane) << BITS_LOG) + g * group;
				own[g] = wide;
				begin[g] =
					off + g * LADE_BITCOMP_GROUP + 16 * lane < len ? bit : none;
			}
			at += G * group;
		} else {
			uint32_t part = lane & ((1u << SHARE) - 1);
#pragma unroll
			for (uint32_t g = 0; g < G; g++) {
				uint32_t from = places[g * UNITS];
				own[g] = places[g * UNITS + 1] - from;
				own[g] >>= LOG == 0 ? 1 : 0;
				begin[g] = 8 * from + ((part * own[g]) << BITS_LOG);
			}
			places += G * UNITS;
		}
	}
};

/* Stores G groups, 'left' bytes: to shared memory that is aligned to 16 and has room for whole
 * units of 16, or to global memory of any alignment.  'fast': all are there, and 'to' is
 * aligned. */
template <bool SHARED, int G>
LADE_DEVICE void lade_packed_store_all(uint8_t *to, const uint32_t (*w)[4], uint32_t left,
                                       bool fast, uint32_t lane)
{
	if (SHARED || fast) {
		uint4 *mine = (uint4 *)(SHARED ? to : lade_global(to)) + lane;
#pragma unroll
		for (uint32_t g = 0; g < G; g++)
			if (!SHARED || g * LADE_BITCOMP_GROUP + 16 * lane < left)
				mine[32 * g] = make_uint4(w[g][0], w[g][1], w[g][2], w[g][3]);
	} else {
#pragma unroll
		for (uint32_t g = 0; g < G; g++)
			if (g * LADE_BITCOMP_GROUP < left)
				lade_packed_store(to + g * LADE_BITCOMP_GROUP, w[g],
				                  left - g * LADE_BITCOMP_GROUP, lane);
	}
}

/* ---- all of it ---------------------------------------------------------------------------- */

/*
 * Elements of 8 bytes of at most 32 bits: without delta and fold, also from above; or with delta,
 * where all sums of a sub-block's t, without the reference if there is no fold, fit 32 bits.
 */
LADE_DEVICE bool lade_packed_is_short(const lade_packed &p)
{
	uint32_t fold = p.mode >> LADE_BITCOMP_FOLD & 3;
	if (!(p.mode & LADE_BITCOMP_DELTA))
		return fold == LADE_BITCOMP_PLAIN && p.width <= 32;
	/* 1024 values below 2^22, or from -2^21 to 2^21 - 1. */
	if (p.mode & LADE_BITCOMP_ABOVE || p.lag > 1)
		return false;
	return fold == LADE_BITCOMP_PLAIN
	               ? p.width <= 22
	               : fold == LADE_BITCOMP_ZIGZAG && p.width <= 21 && p.reference <= 1u << 21;
}

/* The 'len' bytes of a sub-block that was checked and is short (see above), to 'dst'. */
template <bool DELTA, int WIDTHS, bool SHARED, int G>
LADE_DEVICE void lade_packed_make_short(const uint32_t *s, const lade_packed &p, uint8_t *dst,
                                        uint32_t len, bool fast, uint32_t lane)
{
	uint32_t above = p.mode & LADE_BITCOMP_ABOVE ? LADE_FULL : 0;
	uint32_t zigzag = p.mode >> LADE_BITCOMP_FOLD & 3 ? LADE_FULL : 0, sum = 0;
	uint32_t low = zigzag ? (uint32_t)p.reference : 0;
	uint64_t step = zigzag ? 0 : p.reference;
	/* What is to be added to the lane's first value of a group. */
	uint64_t more = DELTA ? p.base + (2 * lane + 1) * step : p.reference + (above & 1);
	lade_packed_place<3, G> place;
	place.open(p, len, lane);
#pragma unroll 1
	for (uint32_t off = 0; off < len; off += G * LADE_BITCOMP_GROUP) {
		uint32_t x[G][2], w[G][4];
		place.template next<WIDTHS>(off, lane);
#pragma unroll
		for (uint32_t g = 0; g < G; g++) {
			const uint32_t *from = s + place.begin[g] / 32;
			uint32_t by = place.begin[g] & 31, width = place.own[g];
			uint32_t mask = lade_packed_mask(width);
			uint32_t a = __funnelshift_r(from[0], from[1], by);
			uint32_t b = __funnelshift_r(from[1], from[2], by);
			x[g][0] = a & mask;
			x[g][1] = __funnelshift_rc(a, b, width) & mask;
		}
		if (DELTA) {
			uint32_t all[G];
#pragma unroll
			for (uint32_t g = 0; g < G; g++) {
				if (zigzag)
#pragma unroll
					for (uint32_t k = 0; k < 2; k++) {
						uint32_t u = x[g][k] + low;
						x[g][k] = u >> 1 ^ (0 - (u & 1));
					}
				uint32_t two = x[g][0] + x[g][1];
				uint32_t end = lade_warp_scan(two, lane);
				all[g] = __shfl_sync(LADE_FULL, end, 31);
				x[g][0] += end - two;
				x[g][1] = end;
			}
#pragma unroll
			for (uint32_t g = 0; g < G; g++) {
				x[g][0] += sum;
				x[g][1] += sum;
				sum += all[g];
			}
		}
#pragma unroll
		for (uint32_t g = 0; g < G; g++) {
#pragma unroll
			for (uint32_t k = 0; k < 2; k++) {
				uint32_t v = x[g][k] ^ above;
				uint32_t high =
					DELTA ? (uint32_t)((int32_t)v >> 31) & zigzag : above;
				uint64_t e = ((uint64_t)high << 32 | v) + more;
				e += DELTA && k ? step : 0;
				w[g][2 * k] = (uint32_t)e;
				w[g][2 * k + 1] = (uint32_t)(e >> 32);
			}
			if (DELTA)
				more += 64 * step;
		}
		lade_packed_store_all<SHARED, G>(dst + off, w, len - off, fast, lane);
	}
}

/* The 'len' bytes of a sub-block that was checked, to 'dst'; 'fast': they are whole pairs of
 * groups, and 'dst' is aligned to 16.  LAG: 0 where there are no differences. */
template <int LOG, int LAG, int WIDTHS, bool SHARED, int G>
LADE_DEVICE void lade_packed_make(const uint32_t *s, const lade_packed &p, uint8_t *dst,
                                  uint32_t len, bool fast, uint32_t lane)
{
	lade_packed_undo undo = lade_packed_undo_of<LOG>(p);
	uint64_t sum = p.base;
	typename lade_packed_total<LOG>::type before[LAG > 1 ? LAG : 1];
#pragma unroll
	for (int j = 0; LAG > 1 && j < LAG; j++)
		before[j] = (typename lade_packed_total<LOG>::type)p.base;
	lade_packed_place<LOG, G> place;
	place.open(p, len, lane);
#pragma unroll 1
	for (uint32_t off = 0; off < len; off += G * LADE_BITCOMP_GROUP) {
		uint32_t w[G][4];
		place.template next<WIDTHS>(off, lane);
#pragma unroll
		for (uint32_t g = 0; g < G; g++)
			lade_packed_unpack<LOG>(s, place.begin[g], place.own[g], w[g]);
		lade_packed_unfold<LOG, G>(undo, w);
		if constexpr (LAG > 1) {
#pragma unroll
			for (uint32_t g = 0; g < G; g++)
				lade_packed_sum_apart<LOG, LAG>(w[g], before, lane);
		} else if (LAG) {
#pragma unroll
			for (uint32_t g = 0; g < G; g++)
				lade_packed_sum<LOG>(w[g], &sum, lane);
		}
		lade_packed_store_all<SHARED, G>(dst + off, w, len - off, fast, lane);
	}
}

/* Whether what goes to 'dst' is whole steps of G groups and aligned to 16. */
template <int G> LADE_DEVICE bool lade_packed_fast(const uint8_t *dst, uint32_t len)
{
	return !((uintptr_t)dst & 15) && len % (G * LADE_BITCOMP_GROUP) == 0;
}

/* The 'len' bytes of what is packed at 's', to 'dst'. */
template <int LOG, int WIDTHS, bool SHARED>
LADE_DEVICE void lade_packed_get(const uint32_t *s, const lade_packed &p, uint8_t *dst,
                                 uint32_t len, uint32_t lane)
{
	constexpr int G = 2;
	bool delta = p.mode & LADE_BITCOMP_DELTA, fast = lade_packed_fast<G>(dst, len);
	if constexpr (LOG == 3)
		if (lade_packed_is_short(p)) {
			if (delta)
				lade_packed_make_short<true, WIDTHS, SHARED, G>(s, p, dst, len,
				                                                fast, lane);
			else
				lade_packed_make_short<false, WIDTHS, SHARED, G>(s, p, dst, len,
				                                                 fast, lane);
			return;
		}
	if (!delta)
		lade_packed_make<LOG, 0, WIDTHS, SHARED, G>(s, p, dst, len, fast, lane);
	else
		lade_packed_make<LOG, 1, WIDTHS, SHARED, G>(s, p, dst, len, fast, lane);
}

/* The same of differences with a lag above 1, to global memory. */
template <int LOG, int WIDTHS>
LADE_DEVICE void lade_packed_get_apart(const uint32_t *s, const lade_packed &p, uint8_t *dst,
                                       uint32_t len, uint32_t lane)
{
	constexpr int G = 2;
	bool fast = lade_packed_fast<G>(dst, len);
	if (p.lag == 2)
		lade_packed_make<LOG, 2, WIDTHS, false, G>(s, p, dst, len, fast, lane);
	else if (p.lag == 3)
		lade_packed_make<LOG, 3, WIDTHS, false, G>(s, p, dst, len, fast, lane);
	else
		lade_packed_make<LOG, 4, WIDTHS, false, G>(s, p, dst, len, fast, lane);
}

/* The same of bytes that are words of a dictionary. */
template <int WIDTHS>
LADE_DEVICE void lade_packed_get_words(const uint32_t *s, const uint8_t *dict, const lade_packed &p,
                                       uint8_t *dst, uint32_t len, uint32_t lane)
{
	constexpr int G = 2;
	bool fast = lade_packed_fast<G>(dst, len);
	lade_packed_place<0, G> place;
	place.open(p, len, lane);
#pragma unroll 1
	for (uint32_t off = 0; off < len; off += G * LADE_BITCOMP_GROUP) {
		uint32_t w[G][4];
		place.template next<WIDTHS>(off, lane);
#pragma unroll
		for (uint32_t g = 0; g < G; g++)
			lade_packed_look_up(dict, s, place.begin[g], place.own[g], w[g]);
		lade_packed_store_all<false, G>(dst + off, w, len - off, fast, lane);
	}
}

#endif
