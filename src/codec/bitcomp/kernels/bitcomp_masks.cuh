/*
 * bitcomp_masks.cuh: bitcomp's encoder: sub-blocks with a mask, as block_encode.h makes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BITCOMP_MASKS_CUH
#define LADE_CUDA_BITCOMP_MASKS_CUH

#include "codec/bitcomp/kernels/bitcomp_choose.cuh"

/* Loads the lane's 16 bytes of group 'g'. */
LADE_DEVICE void lade_bitcomp_get(const lade_bitcomp_warp_smem *own_smem, uint32_t g, uint32_t lane,
                                  uint32_t *w)
{
	uint4 v = own_smem->units[32 * g + lane];
	w[0] = v.x;
	w[1] = v.y;
	w[2] = v.z;
	w[3] = v.w;
}

/* Makes own_smem->fixed zeros. */
LADE_DEVICE void lade_bitcomp_clear(lade_bitcomp_warp_smem *own_smem, uint32_t lane)
{
#pragma unroll
	for (uint32_t i = 0; i < LADE_BITCOMP_FIXED; i += 32)
		if (i + lane < LADE_BITCOMP_FIXED)
			own_smem->fixed[i + lane] = make_uint4(0, 0, 0, 0);
	__syncwarp();
}

/* What 'more' says of decimals. */
LADE_DEVICE uint32_t lade_bitcomp_more_ten(const lade_bitcomp_warp_smem *own_smem)
{
	uint32_t ten = own_smem->ten;
	return ten ? LADE_BITCOMP_DECIMAL | (ten - 1) << LADE_BITCOMP_TEN : 0;
}

/* A bit for each element of 16 bytes that is not 0. */
template <int LOG> LADE_DEVICE uint32_t lade_bitcomp_not_zero(const uint32_t *w)
{
	if constexpr (LOG == 3) {
		return (w[0] | w[1] ? 1 : 0) | (w[2] | w[3] ? 2 : 0);
	} else {
		uint32_t bits = 0;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			if (LOG == 2) {
				bits |= w[k] ? 1u << k : 0;
			} else if (LOG == 1) {
				bits |= ((w[k] & 0xFFFF ? 1u : 0) | (w[k] >> 16 ? 2u : 0)) << 2 * k;
			} else {
				/* The bits 0, 8, 16 and 24 become 21 to 24. */
				uint32_t any = ((w[k] & 0x7F7F7F7F) + 0x7F7F7F7F) | w[k];
				bits |= ((any >> 7 & 0x01010101) * 0x00204081 >> 21 & 15) << 4 * k;
			}
		return bits;
	}
}

/* Elements 'at' << (4 - LOG) and on, of 'n': those that are not 'absent', or with repeat not as the
 * one before, which is the highest of 'before' for the lane's first. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_there(const uint32_t *w, bool repeat, uint64_t absent,
                                        uint2 before, uint32_t n, uint32_t at)
{
	typedef lade_packed_word<LOG == 3 ? 2 : LOG> word;
	uint32_t left = n - min(at << (4 - LOG), n), x[4], low = word::all((uint32_t)absent);
	uint32_t high = LOG == 3 ? (uint32_t)(absent >> 32) : low;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t other = k & 1 ? high : low;
		if (repeat && LOG == 3)
			other = k == 0 ? before.x : k == 1 ? before.y : w[k < 2 ? 0 : k - 2];
		else if (repeat) {
			other = k ? w[k ? k - 1 : 0] : before.y;
			constexpr uint32_t BITS = LOG == 3 ? 0 : 8u << LOG;
			other = BITS == 32 ? other : __funnelshift_l(other, w[k], BITS);
		}
		x[k] = w[k] ^ other;
	}
	uint32_t bits = lade_bitcomp_not_zero<LOG>(x);
	bits |= repeat && at == 0 ? 1 : 0;
	return bits & ((1u << min(left, 16u)) - 1);
}

/* The bytes of the mask from lanes' bits: of the lanes that have one, or two of elements of a byte;
 * 0 of others. */
template <int LOG> LADE_DEVICE uint32_t lade_bitcomp_mask_bytes(uint32_t bits, uint32_t lane)
{
	if (LOG == 3)
		bits |= __shfl_down_sync(LADE_FULL, bits, 1) << 2;
	if (LOG >= 2)
		bits |= __shfl_down_sync(LADE_FULL, bits, LOG == 3 ? 2 : 1) << 4;
	return LOG < 2 || lane % (1u << (LOG < 2 ? 0 : LOG - 1)) == 0 ? bits & 0xFFFF : 0;
}

/* Element 'k' of a lane's 16 bytes. */
template <int LOG> LADE_DEVICE uint64_t lade_bitcomp_nth(const uint32_t *w, uint32_t k)
{
	if (LOG == 3)
		return (uint64_t)w[2 * (k & 1) + 1] << 32 | w[2 * (k & 1)];
	constexpr uint32_t BITS = LOG == 3 ? 32 : 8u << LOG;
	return w[k * BITS / 32 & 3] >> (k * BITS & 31) & LADE_FULL >> (32 - BITS);
}

/* All ones where word 'k' of a lane's 16 bytes has elements whose bits are set. */
template <int LOG> LADE_DEVICE uint32_t lade_bitcomp_present_bits(uint32_t bits, uint32_t k)
{
	if (LOG == 3)
		return 0 - (bits >> (k / 2) & 1);
	if (LOG == 2)
		return 0 - (bits >> k & 1);
	if (LOG == 1)
		return ((bits >> 2 * k & 1) | (bits >> 2 * k & 2) << 15) * 0xFFFF;
	return ((bits >> 4 * k & 15) * 0x00204081 & 0x01010101) * 0xFF;
}

/* How much of the sample is as the value before it, and how much is one value, decides which mask
 * is tried, as in block_encode.h; false: none. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_marks_try(const lade_bitcomp_warp_smem *own_smem, uint32_t groups,
                                        uint32_t expected, lade_bitcomp_marks *m, uint32_t lane)
{
	constexpr uint32_t IN_GROUP = 512 >> LOG;
	const uint8_t *bytes = (const uint8_t *)own_smem->units;
	uint32_t first[2] = {512 * lade_bitcomp_sample(groups, 0),
	                     512 * lade_bitcomp_sample(groups, 1)};
	uint64_t a = lade_bitcomp_element(bytes + first[0], LOG);
	uint64_t b = lade_bitcomp_element(bytes + first[1], LOG);
	uint64_t c = lade_bitcomp_element(bytes + first[1] + 512 - (1 << LOG), LOG);
	m->absent = b == c ? b : a == b || a == c ? a : 0;
	uint32_t others = 0, some = 0;
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t at = first[k] / 16 + lane, w[4];
		uint4 v = own_smem->units[at];
		w[0] = v.x;
		w[1] = v.y;
		w[2] = v.z;
		w[3] = v.w;
		uint2 before = make_uint2(0, 0);
		if (lane)
			before = ((const uint2 *)(own_smem->units + at))[-1];
		uint32_t one = lade_bitcomp_there<LOG>(w, false, m->absent, before, LADE_FULL, 1);
		uint32_t next = lade_bitcomp_there<LOG>(w, true, 0, before, LADE_FULL, 1);
		next |= lane ? 0 : 1;
		others += (uint32_t)__popc(one) | (uint32_t)__popc(next) << 16;
		some += (uint32_t)__popc(lade_bitcomp_not_zero<LOG>(w));
	}
	some = __reduce_add_sync(LADE_FULL, some);
	others = __reduce_add_sync(LADE_FULL, others);
	uint32_t as_one = 2 * IN_GROUP - (others & 0xFFFF);
	uint32_t as_before = 2 * IN_GROUP - (others >> 16);
	if (as_one <= 2 * IN_GROUP - some) {
		as_one = 2 * IN_GROUP - some;
		m->absent = 0;
	}
	bool repeat = as_before > as_one;
	m->mode = LADE_BITCOMP_MASK | (repeat ? LADE_BITCOMP_REPEAT : 0);
	if (LOG == 3 && !repeat && m->absent)
		m->mode |= LADE_BITCOMP_FAR;
	uint32_t absent_ones = repeat ? as_before : as_one;
	if (LOG == 0 && LADE_BITCOMP_MASK_COST(absent_ones) >= expected)
		return false;
	return LADE_BITCOMP_MASK_TRY(LOG) * absent_ones >= 2 * IN_GROUP;
}

/* The bytes before a payload with a mask. */
LADE_DEVICE uint32_t lade_bitcomp_marks_fixed(uint32_t mode, uint32_t bytes, uint32_t present)
{
	return LADE_BITCOMP_HEADER + (mode & LADE_BITCOMP_FAR ? 16 : 0) +
	       lade_bitcomp_up(mode & LADE_BITCOMP_SHORT ? (bytes + 7) / 8 + present : bytes);
}

/* Sets own_smem->marks.  Not inlined, to save registers. */
template <int LOG>
static __device__ __noinline__ void lade_bitcomp_marks_make(lade_bitcomp_warp_smem *there,
                                                                uint32_t expected, bool is_signed,
                                                                uint32_t lane)
{
	lade_bitcomp_warp_smem *own_smem = lade_shared(there);
	uint32_t len = own_smem->len, n = (len + (1u << LOG) - 1) >> LOG, some = 0, present = 0;
	lade_bitcomp_marks m;
	if (!lade_bitcomp_marks_try<LOG>(own_smem, (len + 511) / 512, expected, &m, lane)) {
		if (lane == 0)
			own_smem->marks.size = 0;
		__syncwarp();
		return;
	}
	bool repeat = m.mode & LADE_BITCOMP_REPEAT;
	uint32_t top = is_signed ? lade_packed_word<LOG == 3 ? 2 : LOG>::TOP : 0;
	/* The least of what is present, and with all bits flipped the greatest. */
	lade_bitcomp_low<LOG> low, high;
	low.low = high.low = ~(decltype(low.low))0;
#pragma unroll 1
	for (uint32_t at = lane; (at - lane) << (4 - LOG) < n; at += 32) {
		uint32_t w[4];
		lade_bitcomp_get(own_smem, at / 32, lane, w);
		uint2 before = at ? ((const uint2 *)(own_smem->units + at))[-1] : make_uint2(0, 0);
		uint32_t bits = lade_bitcomp_there<LOG>(w, repeat, m.absent, before, n, at);
		uint32_t bytes = lade_bitcomp_mask_bytes<LOG>(bits, lane);
		some += (uint32_t)__popc(bits);
		present += (bytes & 0xFF ? 1 : 0) + (bytes >> 8 ? 1 : 0);
		uint32_t a[4], b[4];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t is = lade_bitcomp_present_bits<LOG>(bits, k);
			uint32_t v = w[k] ^ (LOG < 3 || k & 1 ? top : 0);
			a[k] = v | ~is;
			b[k] = ~(v & is);
		}
		low.take(a);
		high.take(b);
	}
	uint32_t both = __reduce_add_sync(LADE_FULL, some | present << 16);
	some = both & 0xFFFF;
	present = both >> 16;
	constexpr uint64_t ALL = ~(uint64_t)0 >> (64 - (8 << LOG));
	uint64_t least = low.get(), range = (high.get() ^ ALL) - least;
	m.reference = some ? least ^ (is_signed ? (ALL >> 1) + 1 : 0) : 0;
	m.width = some && range ? 64 - (uint32_t)__clzll((long long)range) : 0;
	uint32_t bytes = (n + 7) / 8;
	if (lade_bitcomp_up((bytes + 7) / 8 + present) < lade_bitcomp_up(bytes))
		m.mode |= LADE_BITCOMP_SHORT;
	m.fixed = lade_bitcomp_marks_fixed(m.mode, bytes, present);
	m.size = m.fixed + lade_bitcomp_up((some * m.width + 7) / 8);
	__syncwarp();
	if (lane == 0)
		own_smem->marks = m;
	__syncwarp();
}

/*
 * Writes what own_smem->marks says: the mask behind the header in own_smem->fixed, the present
 * elements' bits in place of the elements.  Returns what lade_bitcomp_made() does.  Where a source
 * has changed, the elements are not those that own_smem->marks is of: what is written stays in its
 * place, and has the size that was found.  Not inlined, to save registers.
 */
template <int LOG>
static __device__ __noinline__ uint32_t lade_bitcomp_marks_pack(lade_bitcomp_warp_smem *there,
                                                                uint32_t lane)
{
	constexpr uint32_t VALUES = 16 >> LOG, ROOM = 16 * LADE_BITCOMP_FIXED;
	lade_bitcomp_warp_smem *own_smem = lade_shared(there);
	const lade_bitcomp_marks m = own_smem->marks;
	bool repeat = m.mode & LADE_BITCOMP_REPEAT, is_short = m.mode & LADE_BITCOMP_SHORT;
	uint32_t n = (own_smem->len + (1u << LOG) - 1) >> LOG, have = 0, width = m.width;
	uint32_t bytes = (n + 7) / 8, start = m.mode & LADE_BITCOMP_FAR ? 2 : 1, present = 0;
	uint32_t *words = (uint32_t *)own_smem->units;
	uint32_t *mask = (uint32_t *)(own_smem->fixed + start);
	uint8_t *fixed = (uint8_t *)own_smem->fixed;
	uint32_t here = 16 * start + (bytes + 7) / 8;
	uint2 last = make_uint2(0, 0);
	__syncwarp();
	lade_bitcomp_clear(own_smem, lane);
	if (lane == 0) {
		uint32_t more = lade_bitcomp_more_ten(own_smem);
		own_smem->fixed[0] = make_uint4(m.mode | width << 8 | more << 16,
		                                LOG == 3 || repeat ? 0 : (uint32_t)m.absent,
		                                (uint32_t)m.reference,
		                                (uint32_t)(m.reference >> 32));
		if (start == 2)
			own_smem->fixed[1] = make_uint4((uint32_t)m.absent,
			                                (uint32_t)(m.absent >> 32), 0, 0);
	}
	__syncwarp();
#pragma unroll 1
	for (uint32_t at = lane; (at - lane) << (4 - LOG) < n; at += 32) {
		uint32_t w[4];
		lade_bitcomp_get(own_smem, at / 32, lane, w);
		uint2 before = make_uint2(__shfl_up_sync(LADE_FULL, w[2], 1),
		                          __shfl_up_sync(LADE_FULL, w[3], 1));
		before = lane ? before : last;
		last = make_uint2(__shfl_sync(LADE_FULL, w[2], 31),
		                  __shfl_sync(LADE_FULL, w[3], 31));
		uint32_t bits = lade_bitcomp_there<LOG>(w, repeat, m.absent, before, n, at);
		uint32_t i = at << (4 - LOG);
		uint32_t mine = (uint32_t)__popc(bits) * width, end = lade_warp_scan(mine, lane);
		uint32_t all = __shfl_sync(LADE_FULL, end, 31), bit = have + end - mine;
		own_smem->units[at] = make_uint4(0, 0, 0, 0);
		if (is_short) {
			uint32_t two = lade_bitcomp_mask_bytes<LOG>(bits, lane);
			uint32_t a = two & 0xFF ? 1 : 0, b = two >> 8 ? 1 : 0;
			uint32_t to = lade_warp_scan(a + b, lane), sum;
			sum = __shfl_sync(LADE_FULL, to, 31);
			to += present - a - b;
			if (a && here + to < ROOM)
				fixed[here + to] = (uint8_t)two;
			if (b && here + to + a < ROOM)
				fixed[here + to + a] = (uint8_t)(two >> 8);
			if (two)
				atomicOr(&mask[i / 256], (a | b << 1) << (i / 8 & 31));
			present += sum;
		} else if (bits) {
			atomicOr(&mask[i / 32], bits << (i & 31));
		}
		__syncwarp();
#pragma unroll
		for (uint32_t k = 0; k < VALUES; k++) {
			if (!(bits >> k & 1))
				continue;
			uint32_t *to = words + bit / 32, by = bit & 31;
			uint64_t v = lade_bitcomp_nth<LOG>(w, k) - m.reference;
			uint32_t x = (uint32_t)v & LADE_FULL >> (LOG < 2 ? 32 - (8 << LOG) : 0);
			uint32_t y = LOG == 3 ? (uint32_t)(v >> 32) : 0;
			if (x << by)
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
	return m.size | m.fixed << 16;
}

#endif
