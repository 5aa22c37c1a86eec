/*
 * bitcomp_choose.cuh: bitcomp's encoder: its shared memory, the transforms of elements, the bits
 * that units need, and the choice of a mode by a sample of two groups.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BITCOMP_CHOOSE_CUH
#define LADE_CUDA_BITCOMP_CHOOSE_CUH

#include "codec/bitcomp/kernels/bitcomp.cuh"

#define LADE_BITCOMP_FIXED 65 /* units of 16 bytes: header, base, and a mask of bytes */

/* A sub-block as it would be written with a mask. */
struct lade_bitcomp_marks {
	uint64_t absent, reference;
	uint32_t mode, width, fixed, size; /* 'size' is 0 where no mask is tried */
};

/* Shared memory of a warp. */
struct lade_bitcomp_warp_smem {
	uint4 units[LADE_BITCOMP_BLOCK / 16]; /* the elements; then their bits */
	union {
		uint4 fixed[LADE_BITCOMP_FIXED]; /* what is before the payload */
		uint32_t count[256];             /* of bytes in the sample */
		lade_bitcomp_marks marks;
	};
	uint2 last; /* the 8 bytes before the elements that come next */
	unsigned long long barrier;
	uint32_t size[2]; /* of the warp's sub-block, by turn */
	lade_gpu_chunk chunk;
	uint64_t end; /* bytes that the earlier turns have encoded, from the chunk's start */
	uint32_t turn;
	/* The current sub-block. */
	uint32_t len, quant;
	int32_t exponent;
	const uint8_t *from;
	uint32_t ten;    /* of decimals, the power of ten and 1; 0: the elements are none */
	uint32_t status; /* of the team's first warp: the chunk's */
};

/* Shared memory of a block.  A warp's ranks are aligned to 256 bytes: the low 8 bits of an address
 * are the byte whose rank is stored there. */
struct lade_bitcomp_encode_smem {
	uint8_t rank[LADE_BITCOMP_WARPS][256];
	lade_bitcomp_warp_smem warps[LADE_BITCOMP_WARPS];
};
static_assert(sizeof(lade_bitcomp_encode_smem) == LADE_BITCOMP_ENCODE_SHARED, "");

/* The ranks of the warp whose shared memory is 'own_smem'. */
LADE_DEVICE uint8_t *lade_bitcomp_rank_of(lade_bitcomp_warp_smem *own_smem)
{
	uint32_t warp = threadIdx.x / 32;
	return (uint8_t *)(own_smem - warp) - 256 * (LADE_BITCOMP_WARPS - warp);
}

/* How a sub-block will be written.  Byte j of need[k] is the bits that the lane's unit of group
 * 4 k + j needs. */
struct lade_bitcomp_plan {
	uint32_t mode, words, width, step;
	uint64_t reference;
	uint32_t fixed, size; /* bytes before the payload, and in all */
	uint32_t need[4];
};

/* ---- values ------------------------------------------------------------------------------ */

template <int LOG> struct lade_bitcomp_shape {
	static constexpr uint32_t EACH = LOG ? 8u << LOG : 16; /* bytes of a unit */
	static constexpr uint32_t LANES = EACH / 16;           /* of a unit */
	static constexpr uint32_t IN_GROUP = 512 / EACH;       /* units */
	static constexpr uint32_t BYTES = LOG ? 1 : 2;         /* of a unit, for a bit of width */
	/* The bits of a word above an element. */
	static constexpr uint32_t OVER = LOG == 3 ? 0 : 32 - (8 << LOG);
};

/* The minimum of each 16-bit half. */
LADE_DEVICE uint32_t lade_bitcomp_min2(uint32_t a, uint32_t b)
{
#if LADE_ON_GPU
	return __vminu2(a, b);
#else
	return min(a & 0xFFFF, b & 0xFFFF) | min(a >> 16, b >> 16) << 16;
#endif
}

/* The maximum of each 16-bit half. */
LADE_DEVICE uint32_t lade_bitcomp_max2(uint32_t a, uint32_t b)
{
#if LADE_ON_GPU
	return __vmaxu2(a, b);
#else
	return max(a & 0xFFFF, b & 0xFFFF) | max(a >> 16, b >> 16) << 16;
#endif
}

/* The second and fourth byte, in halves. */
LADE_DEVICE uint32_t lade_bitcomp_odd(uint32_t w)
{
	return __byte_perm(w, 0, 0x4341);
}

/* The least element of all that a warp's lanes take. */
template <int LOG> struct lade_bitcomp_low {
	uint32_t low;

	__device__ __forceinline__ void take(const uint32_t *w)
	{
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			if (LOG == 0) {
				low = lade_bitcomp_min2(low, w[k] & 0x00FF00FF);
				low = lade_bitcomp_min2(low, lade_bitcomp_odd(w[k]));
			} else if (LOG == 1) {
				low = lade_bitcomp_min2(low, w[k]);
			} else {
				low = min(low, w[k]);
			}
	}

	__device__ __forceinline__ uint64_t get() const
	{
		return __reduce_min_sync(LADE_FULL, LOG < 2 ? min(low & 0xFFFF, low >> 16) : low);
	}
};

template <> struct lade_bitcomp_low<3> {
	uint64_t low;

	__device__ __forceinline__ void take(const uint32_t *w)
	{
#pragma unroll
		for (uint32_t k = 0; k < 4; k += 2) {
			uint64_t v = (uint64_t)w[k + 1] << 32 | w[k];
			low = v < low ? v : low;
		}
	}

	__device__ __forceinline__ uint64_t get() const
	{
		uint32_t high = __reduce_min_sync(LADE_FULL, (uint32_t)(low >> 32));
		uint32_t mine = high == (uint32_t)(low >> 32) ? (uint32_t)low : LADE_FULL;
		return (uint64_t)high << 32 | __reduce_min_sync(LADE_FULL, mine);
	}
};

/*
 * The bits of each element to flip before the minimum is searched for and subtracted: all bits with
 * LADE_BITCOMP_ABOVE, so that the maximum becomes the minimum; the highest bit where elements are
 * compared as signed.  For elements of 8 bytes the second number is the high half.
 */
template <int LOG> LADE_DEVICE uint2 lade_bitcomp_flip(uint32_t mode, bool is_signed)
{
	bool plain = !(mode >> LADE_BITCOMP_FOLD & 3);
	uint32_t top = plain && (mode & LADE_BITCOMP_DELTA || is_signed)
	                       ? lade_packed_word<LOG == 3 ? 2 : LOG>::TOP
	                       : 0;
	if (mode & LADE_BITCOMP_ABOVE)
		return make_uint2(LADE_FULL, LADE_FULL);
	return make_uint2(LOG == 3 ? 0 : top, top);
}

/* An element with those bits flipped; its own inverse. */
template <int LOG> LADE_DEVICE uint64_t lade_bitcomp_flipped(uint64_t v, uint2 flip)
{
	if (LOG == 3)
		return v ^ ((uint64_t)flip.y << 32 | flip.x);
	return ((uint32_t)v ^ flip.y) & LADE_FULL >> (LOG == 3 ? 0 : 32 - (8 << LOG));
}

/* Inverse of section 3, step 4: differences of the lane's 16 bytes; 'before' is the 8 bytes before
 * them. */
template <int LOG> LADE_DEVICE void lade_bitcomp_differ(uint32_t *w, uint2 before)
{
	typedef lade_packed_word<LOG == 3 ? 2 : LOG> word;
	if (LOG == 3) {
		uint64_t a = (uint64_t)w[1] << 32 | w[0], b = (uint64_t)w[3] << 32 | w[2];
		b -= a;
		a -= (uint64_t)before.y << 32 | before.x;
		w[0] = (uint32_t)a;
		w[1] = (uint32_t)(a >> 32);
		w[2] = (uint32_t)b;
		w[3] = (uint32_t)(b >> 32);
		return;
	}
	constexpr uint32_t BITS = LOG == 3 ? 32 : 8u << LOG;
#pragma unroll
	for (uint32_t k = 4; k-- > 0;) {
		/* The element before stands highest in a word. */
		uint32_t left = k ? w[k ? k - 1 : 0] : before.y;
		left = BITS == 32 ? left : __funnelshift_l(left, w[k], BITS);
		w[k] = word::sub(w[k], left);
	}
}

/* The same of values LAG apart, of up to 4 bytes; 'before' is the 16 bytes before. */
template <int LOG, int LAG> LADE_DEVICE void lade_bitcomp_differ_apart(uint32_t *w, uint4 before)
{
	typedef lade_packed_word<LOG> word;
	constexpr int BITS = LAG * (8 << LOG), WORDS = BITS / 32, OVER = BITS % 32;
	uint32_t all[8] = {before.x, before.y, before.z, before.w, w[0], w[1], w[2], w[3]};
#pragma unroll
	for (int k = 0; k < 4; k++) {
		uint32_t high = all[4 + k - WORDS], low = all[WORDS < 4 ? 3 + k - WORDS : 0];
		w[k] = word::sub(w[k], OVER ? __funnelshift_l(low, high, OVER) : high);
	}
}

/* Inverse of step 3; 'fold' is not 0. */
template <int LOG> LADE_DEVICE void lade_bitcomp_fold(uint32_t *w, uint32_t fold)
{
	typedef lade_packed_word<LOG == 3 ? 2 : LOG> word;
	if (LOG == 3) {
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
	} else {
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t top = w[k] >> (word::BITS - 1) & word::LOW;
			w[k] = w[k] << 1 & ~word::LOW;
			w[k] ^= fold == LADE_BITCOMP_ZIGZAG ? word::ones(top) : top;
		}
	}
}

/* Transforms the lane's 16 bytes of two groups as 'mode' says; 'a' and 'b' are the 8 bytes before
 * each. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_turn(uint32_t (*w)[4], const uint2 *a, const uint2 *b, uint32_t mode,
                                   uint2 flip)
{
	uint32_t fold = mode >> LADE_BITCOMP_FOLD & 3;
	if (mode & LADE_BITCOMP_DELTA) {
		lade_bitcomp_differ<LOG>(w[0], *a);
		lade_bitcomp_differ<LOG>(w[1], *b);
	}
	if (fold)
#pragma unroll
		for (uint32_t k = 0; k < 2; k++)
			lade_bitcomp_fold<LOG>(w[k], fold);
#pragma unroll
	for (uint32_t k = 0; k < 2; k++)
#pragma unroll
		for (uint32_t i = 0; i < 4; i++)
			w[k][i] ^= i & 1 || LOG < 3 ? flip.y : flip.x;
}

/* Subtracts the minimum.  No element is below it, so a word's elements do not borrow from each
 * other. */
template <int LOG> LADE_DEVICE void lade_bitcomp_refer(uint32_t *w, uint64_t least)
{
	if (LOG == 3) {
#pragma unroll
		for (uint32_t k = 0; k < 4; k += 2) {
			uint64_t v = ((uint64_t)w[k + 1] << 32 | w[k]) - least;
			w[k] = (uint32_t)v;
			w[k + 1] = (uint32_t)(v >> 32);
		}
		return;
	}
	uint32_t all = lade_packed_word<LOG == 3 ? 2 : LOG>::all((uint32_t)least);
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		w[k] -= all;
}

/* The bits that the unit's values need; all lanes of a unit give the same. */
template <int LOG> LADE_DEVICE uint32_t lade_bitcomp_need(const uint32_t *w)
{
	if (LOG == 3) {
		uint32_t high = w[1] | w[3], low = w[0] | w[2];
		uint32_t n = 32 - (uint32_t)__clz((int)(high ? high : low));
		n += high ? 32 : 0;
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

/* The maximum of the lane's elements of each of two groups, which have fewer than 64 bits; below 32
 * bits the two maxima are halves of the first word. */
template <int LOG> LADE_DEVICE void lade_bitcomp_tops(const uint32_t (*w)[4], uint32_t *top)
{
	uint32_t m[2];
#pragma unroll
	for (uint32_t k = 0; k < 2; k++)
		if (LOG == 2) {
			top[k] = max(max(w[k][0], w[k][1]), max(w[k][2], w[k][3]));
		} else {
			m[k] = 0;
#pragma unroll
			for (uint32_t i = 0; i < 4; i++)
				if (LOG == 0) {
					m[k] = lade_bitcomp_max2(m[k], w[k][i] & 0x00FF00FF);
					m[k] = lade_bitcomp_max2(m[k], lade_bitcomp_odd(w[k][i]));
				} else {
					m[k] = lade_bitcomp_max2(m[k], w[k][i]);
				}
		}
	if (LOG < 2)
		top[0] = lade_bitcomp_max2(__byte_perm(m[0], m[1], 0x5410),
		                           __byte_perm(m[0], m[1], 0x7632));
}

/* The bits that two groups' units need, in halves of a word; 'top' has their maxima.  All lanes of
 * a unit return the same. */
template <int LOG> LADE_DEVICE uint32_t lade_bitcomp_top_needs(const uint32_t *top, uint32_t least)
{
	if (LOG < 2) {
		uint32_t v = top[0] - least * 0x00010001;
		return (32 - (uint32_t)__clz((int)(v & 0xFFFF))) |
		       (32 - (uint32_t)__clz((int)(v >> 16))) << 16;
	}
	uint32_t a = (uint32_t)__clz((int)(top[0] - least));
	uint32_t b = (uint32_t)__clz((int)(top[LOG < 2 ? 0 : 1] - least));
	uint32_t n = 0x00200020 - (a | b << 16);
	n = lade_bitcomp_max2(n, __shfl_xor_sync(LADE_FULL, n, 1));
	return LOG == 2 ? n : lade_bitcomp_max2(n, __shfl_xor_sync(LADE_FULL, n, 2));
}

/* ---- widths ------------------------------------------------------------------------------ */

/* All ones in each byte whose highest bit is set. */
LADE_DEVICE uint32_t lade_bitcomp_spread(uint32_t v)
{
	return ((v & 0x80808080) >> 7) * 0xFF;
}

/* The codes of four units' needs, which are at most 'width', 64 or less; '*said' gets the widths
 * that the codes stand for. */
LADE_DEVICE uint32_t lade_bitcomp_codes(uint32_t need, uint32_t width, uint32_t step,
                                        uint32_t *said)
{
	uint32_t all = width * 0x01010101;
	uint32_t code = (all - need) >> step & (0xFFu >> step) * 0x01010101;
	uint32_t most = lade_bitcomp_spread(code + 0x71717171); /* those above 14 */
	uint32_t some = lade_bitcomp_spread(need + 0x7F7F7F7F); /* of needs above 0 */
	code = (code & ~most) | (0x0E0E0E0E & most);
	*said = (all - (code << step)) & some;
	return (code & some) | (0x0F0F0F0F & ~some);
}

/* LANES lanes of a unit know the same needs.  Each counts its own share of them: the needs of
 * 16 / LANES groups. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_own(const uint32_t *need, uint32_t lane, uint32_t *own)
{
	constexpr uint32_t LANES = lade_bitcomp_shape<LOG>::LANES;
#pragma unroll
	for (uint32_t k = 0; k < 4 / LANES; k++) {
		/* Masks, because an index would move the needs from registers to memory. */
		own[k] = 0;
#pragma unroll
		for (uint32_t i = 0; i < LANES; i++)
			own[k] |= need[i * (4 / LANES) + k] & (0 - (uint32_t)(lane % LANES == i));
	}
}

/* The sum of the units' coded widths with the best step. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_widths(const uint32_t *need, uint32_t width, uint32_t lane,
                                         uint32_t *step)
{
	constexpr uint32_t COUNT = 4 / lade_bitcomp_shape<LOG>::LANES;
	uint32_t own[COUNT], best = LADE_FULL;
	lade_bitcomp_own<LOG>(need, lane, own);
	*step = 0;
#pragma unroll
	for (uint32_t s = 0; s < 3; s++) {
		uint32_t sum = 0, said;
#pragma unroll
		for (uint32_t k = 0; k < COUNT; k++) {
			lade_bitcomp_codes(own[k], width, s, &said);
			sum = __dp4a(said, 0x01010101u, sum);
		}
		sum = __reduce_add_sync(LADE_FULL, sum);
		if (sum < best) {
			best = sum;
			*step = s;
		}
		if (width <= 14)
			break;
	}
	return best;
}

/* ---- choosing a mode --------------------------------------------------------------------- */

/* What a sample of two groups costs, in half bytes, from the lane's units' needs. */
template <int LOG> LADE_DEVICE uint32_t lade_bitcomp_cost(uint32_t first, uint32_t second)
{
	typedef lade_bitcomp_shape<LOG> shape;
	constexpr uint32_t UNITS = 2 * shape::IN_GROUP;
	uint32_t width = __reduce_max_sync(LADE_FULL, max(first, second));
	/* All lanes of a unit add the same. */
	uint32_t sum = __reduce_add_sync(LADE_FULL, first + second) / shape::LANES;
	return min(sum * 2 * shape::BYTES + UNITS, width * UNITS * 2 * shape::BYTES);
}

/* plain.c, bucket_of() */
LADE_DEVICE uint32_t lade_bitcomp_bucket(uint32_t count)
{
	uint32_t log = 32 - (uint32_t)__clz((int)count);
	return count < 2 ? count : 2 * log - 2 + (count >> (log - 2) & 1);
}

/* Counts the sample's bytes and ranks all 256 by their counts, as lade__bitcomp_ranks() does;
 * returns how many different ones there are. */
LADE_DEVICE uint32_t lade_bitcomp_ranks(lade_bitcomp_warp_smem *own_smem, const uint32_t *sample,
                                        uint32_t lane)
{
#pragma unroll
	for (uint32_t j = 0; j < 8; j++)
		own_smem->count[32 * j + lane] = 0;
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < 8; k++)
#pragma unroll
		for (uint32_t i = 0; i < 32; i += 8)
			atomicAdd(&own_smem->count[sample[k] >> i & 0xFF], 1u);
	__syncwarp();
	uint8_t *rank = lade_bitcomp_rank_of(own_smem);
	/* Rank by bucket, from the last on, then by value. */
	uint32_t bucket[8], words = 0;
#pragma unroll
	for (uint32_t j = 0; j < 8; j++) {
		uint32_t count = own_smem->count[32 * j + lane];
		bucket[j] = 31 - lade_bitcomp_bucket(count);
		words += (uint32_t)__popc(__ballot_sync(LADE_FULL, count != 0));
	}
	__syncwarp();
	/* The counts are no longer needed: the first 32 now count the bytes of each bucket. */
	own_smem->count[lane] = 0;
	__syncwarp();
#pragma unroll
	for (uint32_t j = 0; j < 8; j++)
		atomicAdd(&own_smem->count[bucket[j]], 1u);
	__syncwarp();
	uint32_t mine = own_smem->count[lane];
	__syncwarp();
	own_smem->count[lane] = lade_warp_scan(mine, lane) - mine;
	__syncwarp();
#pragma unroll
	for (uint32_t j = 0; j < 8; j++) {
		uint32_t alike = __match_any_sync(LADE_FULL, bucket[j]);
		uint32_t below = (uint32_t)__popc(alike & ((1u << lane) - 1));
		uint32_t first = own_smem->count[bucket[j]];
		rank[32 * j + lane] = (uint8_t)(first + below);
		__syncwarp();
		if (below == 0)
			own_smem->count[bucket[j]] = first + (uint32_t)__popc(alike);
		__syncwarp();
	}
	return words;
}

/* The rank of byte 'k' of a word. */
template <int k> LADE_DEVICE uint32_t lade_bitcomp_rank_byte(const uint8_t *rank, uint32_t w)
{
#if LADE_ON_GPU
	uint32_t at = __byte_perm(w, (uint32_t)__cvta_generic_to_shared(rank), 0x7650 + k), value;
	asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
	return value;
#else
	return rank[w >> 8 * k & 0xFF];
#endif
}

/* Bytes to ranks. */
LADE_DEVICE void lade_bitcomp_rank(const uint8_t *rank, uint32_t *w)
{
#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t a = lade_bitcomp_rank_byte<0>(rank, w[i]);
		uint32_t b = lade_bitcomp_rank_byte<1>(rank, w[i]);
		uint32_t c = lade_bitcomp_rank_byte<2>(rank, w[i]);
		uint32_t d = lade_bitcomp_rank_byte<3>(rank, w[i]);
		w[i] = (a + b * 256) + (c + d * 256) * 65536;
	}
}

/* The sample's groups: a quarter and three quarters of the way. */
LADE_DEVICE uint32_t lade_bitcomp_sample(uint32_t groups, uint32_t k)
{
	return (2 * k + 1) * groups / 4;
}

/* The cost of two groups that were transformed. */
template <int LOG> LADE_DEVICE uint32_t lade_bitcomp_turned_cost(uint32_t (*w)[4])
{
	uint32_t need[2];
	lade_bitcomp_low<LOG> low;
	low.low = ~(decltype(low.low))0;
	low.take(w[0]);
	low.take(w[1]);
	if constexpr (LOG < 3) {
		uint32_t top[2];
		lade_bitcomp_tops<LOG>(w, top);
		uint32_t both = lade_bitcomp_top_needs<LOG>(top, (uint32_t)low.get());
		need[0] = both & 0xFFFF;
		need[1] = both >> 16;
	} else {
		uint64_t least = low.get();
#pragma unroll
		for (uint32_t k = 0; k < 2; k++) {
			lade_bitcomp_refer<LOG>(w[k], least);
			need[k] = lade_bitcomp_need<LOG>(w[k]);
		}
	}
	return lade_bitcomp_cost<LOG>(need[0], need[1]);
}

/* The cost of the sample in 'mode': two groups, and the 8 bytes before the lane's. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_try(const uint32_t (*sample)[4], const uint2 *before,
                                      uint32_t mode, bool is_signed)
{
	uint32_t w[2][4];
	uint2 flip = lade_bitcomp_flip<LOG>(mode, is_signed);
#pragma unroll
	for (uint32_t k = 0; k < 2; k++)
#pragma unroll
		for (uint32_t i = 0; i < 4; i++)
			w[k][i] = sample[k][i];
	lade_bitcomp_turn<LOG>(w, before, before + 1, mode, flip);
	return lade_bitcomp_turned_cost<LOG>(w);
}

/* The 16 bytes before those at own_smem->units[at], or as many of the base; of elements of up to 4
 * bytes. */
template <int LOG>
LADE_DEVICE uint4 lade_bitcomp_before(const lade_bitcomp_warp_smem *own_smem, uint32_t at)
{
	if (at)
		return own_smem->units[at - 1];
	constexpr uint32_t OVER = lade_bitcomp_shape<LOG>::OVER;
	uint32_t base = lade_packed_word<LOG>::all(own_smem->last.y >> OVER);
	return make_uint4(base, base, base, base);
}

/* The cost of the sample as zigzag differences of values LAG apart. */
template <int LOG, int LAG>
LADE_DEVICE uint32_t lade_bitcomp_try_apart(const lade_bitcomp_warp_smem *own_smem, uint32_t groups,
                                            uint32_t lane)
{
	uint32_t w[2][4];
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t at = 32 * lade_bitcomp_sample(groups, k) + lane;
		uint4 v = own_smem->units[at];
		w[k][0] = v.x;
		w[k][1] = v.y;
		w[k][2] = v.z;
		w[k][3] = v.w;
		lade_bitcomp_differ_apart<LOG, LAG>(w[k], lade_bitcomp_before<LOG>(own_smem, at));
		lade_bitcomp_fold<LOG>(w[k], LADE_BITCOMP_ZIGZAG);
	}
	return lade_bitcomp_turned_cost<LOG>(w);
}

/* The lag with which the sample costs least, from bit 16 on, and what; the first of the cheapest.
 * Not inlined, to save registers. */
template <int LOG>
static __device__ __noinline__ uint32_t lade_bitcomp_choose_apart(lade_bitcomp_warp_smem *there,
                                                                  uint32_t groups, uint32_t lane)
{
	const lade_bitcomp_warp_smem *own_smem = lade_shared(there);
	uint32_t best = LADE_FULL;
#define LADE_X(lag) \
	{ \
		uint32_t cost = lade_bitcomp_try_apart<LOG, lag>(own_smem, groups, lane); \
		best = cost < (best & 0xFFFF) ? cost | (lag) << 16 : best; \
	}
	LADE_BITCOMP_LAGS(LADE_X)
#undef LADE_X
	return best;
}

/* The cheapest mode for the sample; '*expected' is its cost.  Leaves the ranks in 'own_smem'. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_choose(lade_bitcomp_warp_smem *own_smem, uint32_t groups,
                                         bool is_signed, bool sparse, uint32_t *expected,
                                         uint32_t lane)
{
	uint32_t best = LADE_FULL, chosen = 0, sample[2][4];
	uint2 before[2];
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t at = 32 * lade_bitcomp_sample(groups, k) + lane;
		uint4 v = own_smem->units[at];
		sample[k][0] = v.x;
		sample[k][1] = v.y;
		sample[k][2] = v.z;
		sample[k][3] = v.w;
		before[k] = at ? ((const uint2 *)(own_smem->units + at))[-1] : own_smem->last;
	}
#define LADE_X(number, mode) \
	if ((number) < (LOG == 0 ? 4 : 6) && ((number) < 2 || !sparse)) { \
		uint32_t cost = lade_bitcomp_try<LOG>(sample, before, mode, is_signed); \
		chosen = cost < best ? (mode) : chosen; \
		best = min(cost, best); \
	}
	LADE_BITCOMP_TRIES(LADE_X)
#undef LADE_X
	if (LOG < 3 && !sparse) {
		uint32_t apart =
			lade_bitcomp_choose_apart<LOG < 3 ? LOG : 0>(own_smem, groups, lane);
		chosen = (apart & 0xFFFF) < best ? LADE_BITCOMP_LAGGED(apart >> 16) : chosen;
		best = min(apart & 0xFFFF, best);
	}
	if (LOG == 0 && !sparse &&
	    lade_bitcomp_ranks(own_smem, sample[0], lane) <= LADE_BITCOMP_DICT_MOST) {
		uint32_t top;
		lade_bitcomp_rank(lade_bitcomp_rank_of(own_smem), sample[0]);
		lade_bitcomp_rank(lade_bitcomp_rank_of(own_smem), sample[1]);
		lade_bitcomp_tops<0>(sample, &top);
		uint32_t both = lade_bitcomp_top_needs<0>(&top, 0);
		uint32_t cost = lade_bitcomp_cost<0>(both & 0xFFFF, both >> 16);
		chosen = cost < best ? LADE_BITCOMP_DICT : chosen;
		best = min(cost, best);
	}
	*expected = best;
	return chosen;
}

#endif
