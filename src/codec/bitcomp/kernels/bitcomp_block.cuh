/*
 * bitcomp_block.cuh: a sub-block of bitcomp (docs/format/bitcomp.md, sections 2 to 4) in shared
 * memory, checked and decoded by a warp; for bitcomp and cascaded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_BITCOMP_BLOCK_CUH
#define LADE_CUDA_BITCOMP_BLOCK_CUH

#include "codec/bitcomp/kernels/bitcomp.cuh"

/* A warp's tables: the dictionary, and where units' bits begin (512 units, and the end). */
struct __align__(16) lade_bitcomp_tables {
	uint32_t dict[64];
	uint16_t places[520];
};

/* The widths of eight units from their codes, one a byte: the even units, then the odd ones. */
LADE_DEVICE uint2 lade_bitcomp_widths(uint32_t codes, uint32_t width, uint32_t step)
{
	const uint32_t ONES = 0x01010101;
	uint32_t w[2];
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t c = codes >> 4 * k & 15 * ONES;
		/* A byte is at least 128 where the width is not below 0, at most 128 + 64. */
		uint32_t all = (128 + width) * ONES - (c << step);
		w[k] = all & (all >> 7 & ~((c + ONES) >> 4) & ONES) * 127;
	}
	return make_uint2(w[0], w[1]);
}

/* Fills 'places': where each unit's bits begin, the first at 'at'; returns where the last one's
 * end.  'p' has the maximum width and the step. */
template <int LOG>
LADE_DEVICE uint32_t lade_bitcomp_places(const uint32_t *codes, const lade_packed &p, uint32_t at,
                                         uint32_t units, uint16_t *places, uint32_t lane)
{
	uint32_t i = lane;
	/* A lane has eight units, whose places are 16 bytes; those behind the last one have no
	 * bits. */
#pragma unroll 1
	for (; 8 * (i - lane) < units; i += 32) {
		uint32_t have = units - min(8 * i, units);
		uint32_t word = have ? codes[i] : LADE_FULL;
		word |= have < 8 ? LADE_FULL << 4 * have : 0;
		uint2 w = lade_bitcomp_widths(word, p.width, p.step);
		if (LOG == 0)
			w = make_uint2(2 * w.x, 2 * w.y);
		/* Two units each; the first two and the last two of these. */
		uint32_t two = w.x + w.y, four = (two & 0x00FF00FF) + __byte_perm(two, 0, 0x4341);
		uint32_t mine = (four & 0xFFFF) + (four >> 16), end = lade_warp_scan(mine, lane);
		uint32_t b0 = (at + end - mine) * 0x00010001, b1 = b0 + __byte_perm(two, 0, 0x4040);
		uint32_t b2 = b0 + __byte_perm(four, 0, 0x1010);
		uint32_t b3 = b2 + __byte_perm(two, 0, 0x4242);
		((uint4 *)places)[i] = make_uint4(b0 + __byte_perm(w.x, 0, 0x4044),
		                                  b1 + __byte_perm(w.x, 0, 0x4144),
		                                  b2 + __byte_perm(w.x, 0, 0x4244),
		                                  b3 + __byte_perm(w.x, 0, 0x4344));
		at += __shfl_sync(LADE_FULL, end, 31);
	}
	if (lane == 0)
		places[8 * i] = (uint16_t)at;
	__syncwarp();
	return at;
}

/* Whether section 2 allows 'more' of a sub-block without a dictionary. */
LADE_DEVICE bool lade_bitcomp_more(uint32_t log, uint32_t mode, uint32_t more)
{
	uint32_t ten = more >> LADE_BITCOMP_TEN;
	if (more & LADE_BITCOMP_LAG &&
	    (!(mode & LADE_BITCOMP_DELTA) || mode & LADE_BITCOMP_MASK))
		return false;
	return more & LADE_BITCOMP_DECIMAL ? log >= 2 && ten <= LADE_BITCOMP_TEN_MOST(log)
	                                   : ten == 0;
}

/* Checks a sub-block of 'size' bytes with 'units' units (section 4); all lanes return the same.
 * '*p' describes what follows the first 'skip' units, a multiple of 8; the base is the
 * sub-block's. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_check(const uint8_t *s, uint32_t size, uint32_t units, uint32_t skip,
                                    uint16_t *places, uint32_t lane, lade_packed *p)
{
	if (size < LADE_BITCOMP_HEADER)
		return false;
	uint4 a = *(const uint4 *)s;
	uint32_t at = LADE_BITCOMP_HEADER;
	p->mode = a.x & 0xFF;
	p->width = a.x >> 8 & 0xFF;
	p->words = (a.x >> 16 & 0xFF) + 1;
	p->step = a.x >> 24;
	p->base = a.y;
	p->reference = (uint64_t)a.w << 32 | a.z;
	if (p->mode & ~(uint32_t)LADE_BITCOMP_MODE || (p->mode >> LADE_BITCOMP_FOLD & 3) == 3 ||
	    p->step > 2 || p->width > 8u << LOG)
		return false;
	p->lag = 1;
	if (p->mode & LADE_BITCOMP_DICT) {
		if (LOG || p->mode & 15)
			return false;
	} else {
		if (!lade_bitcomp_more(LOG, p->mode, p->words - 1))
			return false;
		p->lag += (p->words - 1) & LADE_BITCOMP_LAG;
	}
	if (LOG == 3 && p->mode & LADE_BITCOMP_DELTA) {
		if (size < LADE_BITCOMP_HEADER + 16)
			return false;
		p->base = *(const uint64_t *)(s + at);
		at += 16;
	}
	p->dict = at;
	if (p->mode & LADE_BITCOMP_DICT)
		at += lade_bitcomp_up(p->words);
	p->places = places + skip;
	p->payload = at + ((p->width * skip) << (LOG == 0));
	if (!(p->mode & LADE_BITCOMP_WIDTHS))
		return at + lade_bitcomp_up((p->width * units) << (LOG == 0)) == size;
	const uint32_t *codes = (const uint32_t *)(s + at);
	at += lade_bitcomp_up((units + 1) / 2);
	if (size < at)
		return false;
	uint32_t end = lade_bitcomp_places<LOG>(codes, *p, at, units, places, lane);
	return at + lade_bitcomp_up(end - at) == size;
}

/* Loads the dictionary of a checked sub-block; entries that it lacks are 0. */
LADE_DEVICE void lade_bitcomp_dict(uint32_t *dict, const uint32_t *s, const lade_packed &p,
                                   uint32_t lane)
{
	const uint32_t *words = s + p.dict / 4;
#pragma unroll
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t word = lane + 32 * k, v = 4 * word < p.words ? words[word] : 0;
		uint32_t left = 4 * word < p.words ? p.words - 4 * word : 0;
		dict[word] = v & lade_packed_mask(min(8 * left, 32u));
	}
	__syncwarp();
}

template <int LOG, int WIDTHS>
LADE_DEVICE void lade_bitcomp_any(const uint32_t *s, uint32_t *dict, const lade_packed &p,
                                  uint8_t *dst, uint32_t len, uint32_t lane)
{
	if (LOG == 0 && p.mode & LADE_BITCOMP_DICT) {
		lade_bitcomp_dict(dict, s, p, lane);
		lade_packed_get_words<WIDTHS>(s, (const uint8_t *)dict, p, dst, len, lane);
	} else if (p.lag > 1) {
		lade_packed_get_apart<LOG, WIDTHS>(s, p, dst, len, lane);
	} else {
		lade_packed_get<LOG, WIDTHS, false>(s, p, dst, len, lane);
	}
}

/* Spreads the packed elements in 'w' to the places whose bits are set in 'take', each as often as
 * 'move' has a place's bit not set after it; the others become 'absent'. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_spread_out(uint32_t take, uint32_t move, uint64_t absent, uint32_t *w)
{
	constexpr uint32_t VALUES = 16 >> LOG;
	uint32_t q[4] = {w[0], w[1], w[2], w[3]};
	uint32_t low = (uint32_t)absent, high = (uint32_t)(absent >> 32);
	w[0] = w[1] = w[2] = w[3] = 0;
#pragma unroll
	for (uint32_t k = 0; k < VALUES; k++) {
		bool has = take >> k & 1, next = k && move >> k & 1;
		if (LOG == 3) {
			q[0] = next ? q[2] : q[0];
			q[1] = next ? q[3] : q[1];
			w[2 * (k & 1)] = has ? q[0] : low;
			w[2 * (k & 1) + 1] = has ? q[1] : high;
		} else if (LOG == 2) {
#pragma unroll
			for (uint32_t j = 0; j < 3; j++)
				if (j + k < 4)
					q[j] = next ? q[j + 1] : q[j];
			w[k & 3] = has ? q[0] : low;
		} else {
			constexpr uint32_t BITS = 8u << (LOG < 2 ? LOG : 1), EACH = 32 / BITS;
			uint32_t by = next ? BITS : 0;
#pragma unroll
			for (uint32_t j = 0; j < 3; j++)
				q[j] = __funnelshift_r(q[j], q[j + 1], by);
			q[3] >>= by;
			uint32_t one = (has ? q[0] : low) & LADE_FULL >> (32 - BITS);
			w[k / EACH & 3] |= one << (k % EACH * BITS);
		}
	}
}

/* A short mask's bytes from byte 'at' of the sub-block on, to 'mask', 'bytes' of them and zeros to
 * a whole word; gives where it ends, above 'size' where it does not fit. */
LADE_DEVICE uint32_t lade_bitcomp_short(const uint8_t *s, uint32_t size, uint32_t at,
                                        uint32_t bytes, uint8_t *mask, uint32_t lane)
{
	const uint32_t *first = (const uint32_t *)(s + at);
	uint32_t next = at + (bytes + 7) / 8;
	if (size < next)
		return LADE_FULL;
#pragma unroll 1
	for (uint32_t i = 0; i < bytes; i += 32) {
		uint32_t is = first[i / 32] & lade_packed_mask(min(bytes - i, 32u));
		uint32_t place = next + (uint32_t)__popc(is & ((1u << lane) - 1));
		next += (uint32_t)__popc(is);
		if (size < next)
			return LADE_FULL;
		mask[i + lane] = is >> lane & 1 ? s[place] : 0;
	}
	__syncwarp();
	return next;
}

/*
 * Checks and decodes a sub-block with a mask: its bytes from 'off', a multiple of 512, to 'end';
 * false: it is corrupt.  The set bits before each two words of the mask are counted first, so that
 * a lane finds its elements by itself.  Not inlined, to save registers.
 */
template <int LOG>
static __device__ __noinline__ bool lade_bitcomp_masked(const uint4 *units,
                                                        lade_bitcomp_tables *there, uint8_t *dst,
                                                        uint32_t size, uint32_t len, uint32_t off,
                                                        uint32_t end, uint32_t lane)
{
	constexpr uint32_t SIZE = 1u << LOG, VALUES = 16 >> LOG, GROUP = 512 >> LOG;
	const uint32_t *s = (const uint32_t *)lade_shared(units);
	lade_bitcomp_tables *tables = lade_shared(there);
	if (size < LADE_BITCOMP_HEADER)
		return false;
	uint32_t n = (len + SIZE - 1) >> LOG, width = s[0] >> 8 & 0xFF, set = 0;
	uint32_t at = LADE_BITCOMP_HEADER, bytes = (n + 7) / 8, mode = s[0] & 0xFF;
	bool repeat = mode & LADE_BITCOMP_REPEAT, far = mode & LADE_BITCOMP_FAR;
	uint64_t absent = LOG == 3 ? 0 : s[1];
	if (mode & ~LADE_BITCOMP_MASKED || (far && (LOG < 3 || repeat)) || width > 8 * SIZE ||
	    s[0] >> 24 > 2 || !lade_bitcomp_more(LOG, mode, s[0] >> 16 & 0xFF))
		return false;
	if (far) {
		if (size < LADE_BITCOMP_HEADER + 16)
			return false;
		absent = (uint64_t)s[5] << 32 | s[4];
		at += 16;
	}
	const uint32_t *mask = s + at / 4;
	if (mode & LADE_BITCOMP_SHORT) {
		uint32_t next = lade_bitcomp_short((const uint8_t *)s, size, at, bytes,
		                                   (uint8_t *)tables->places, lane);
		if (next > size)
			return false;
		mask = (const uint32_t *)tables->places;
		at = lade_bitcomp_up(next);
	} else {
		at += lade_bitcomp_up(bytes);
	}
	if (size < at)
		return false;
	/* The first value is there where absent ones repeat it. */
	uint32_t always = repeat ? 1 : 0;
	uint16_t *before = (uint16_t *)tables->dict; /* of at most 128 pairs of words */
	for (uint32_t i = lane; 64 * (i - lane) < n; i += 32) {
		uint32_t own = 0, from = 64 * i;
		if (from < n) {
			own = mask[2 * i] | (i ? 0 : always);
			own = (uint32_t)__popc(own & lade_packed_mask(min(n - from, 32u)));
		}
		if (from + 32 < n)
			own += (uint32_t)__popc(mask[2 * i + 1] &
			                        lade_packed_mask(min(n - from - 32, 32u)));
		uint32_t all = lade_warp_scan(own, lane);
		if (from < n)
			before[i] = (uint16_t)(set + all - own);
		set += __shfl_sync(LADE_FULL, all, 31);
	}
	__syncwarp();
	if (at + lade_bitcomp_up((set * width + 7) / 8) != size)
		return false;
	lade_packed p = {};
	p.reference = (uint64_t)s[3] << 32 | s[2];
	lade_packed_undo undo = lade_packed_undo_of<LOG>(p);
	bool fast = end > off && lade_packed_fast<2>(dst, end - off);
	at *= 8;
#pragma unroll 1
	for (; off < end; off += 2 * LADE_BITCOMP_GROUP) {
		uint32_t w[2][4], bits[2];
#pragma unroll
		for (uint32_t g = 0; g < 2; g++) {
			/* Lanes behind the last element decode the first one; nobody stores it. */
			uint32_t i = (off >> LOG) + g * GROUP + lane * VALUES;
			i = i < n ? i : 0;
			uint32_t word = mask[i / 32] | (i < 32 ? always : 0), rank = before[i / 64];
			uint32_t other = mask[i / 32 & ~1u] | (i < 64 ? always : 0);
			rank += i & 32 ? (uint32_t)__popc(other) : 0;
			rank += (uint32_t)__popc(word & ((1u << (i & 31)) - 1));
			bits[g] = word >> (i & 31);
			/* With repeat, the lane's first element may be the one before. */
			rank -= repeat && !(bits[g] & 1) ? 1 : 0;
			lade_packed_unpack<LOG>(s, at + rank * width, width, w[g]);
		}
		lade_packed_unfold<LOG, 2>(undo, w);
#pragma unroll
		for (uint32_t g = 0; g < 2; g++)
			lade_bitcomp_spread_out<LOG>(repeat ? LADE_FULL : bits[g],
			                             repeat ? bits[g] : bits[g] << 1, absent, w[g]);
		lade_packed_store_all<false, 2>(dst + off, w, end - off, fast, lane);
	}
	return true;
}

/* Converts 'count' integers at any address, which the warp has stored, to the decimals that they
 * are.  Not inlined because it is rare. */
template <int LOG>
static __device__ __noinline__ void lade_bitcomp_decimals(uint8_t *p, uint32_t count, uint32_t ten,
                                                          uint32_t lane)
{
	const long long most = LADE_BITCOMP_DECIMALS(LOG);
	double by = 1;
	for (uint32_t i = 0; i < ten; i++)
		by *= 10;
	__syncwarp();
#pragma unroll 2
	for (uint32_t i = lane; i < count; i += 32) {
		uint8_t *at = p + (i << LOG);
		uint64_t v = lade_bitcomp_element(at, LOG);
		long long c = LOG == 3 ? (long long)v : (long long)(int32_t)(uint32_t)v;
		if (c <= -most || c >= most)
			continue;
		/* Both are rounded once. */
		if (LOG == 3)
			v = (uint64_t)__double_as_longlong((double)c / by);
		else
			v = __float_as_uint((float)(int32_t)c / (float)by);
		lade_bitcomp_element_put(at, LOG, v);
	}
}

/* The same of a sub-block that was decoded, if it has decimals. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_made_real(const uint32_t *s, uint8_t *p, uint32_t bytes,
                                        uint32_t lane)
{
	if (LOG >= 2 && s[0] >> 16 & LADE_BITCOMP_DECIMAL && !(s[0] & LADE_BITCOMP_DICT))
		lade_bitcomp_decimals<LOG < 2 ? 2 : LOG>(p, bytes >> LOG,
		                                         s[0] >> (16 + LADE_BITCOMP_TEN) & 31,
		                                         lane);
}

/* Checks and decodes a sub-block of 'size' bytes in shared memory; false: it is corrupt.  Not
 * inlined, so that the kernel's loop variables take no registers here. */
template <int LOG>
static __device__ __noinline__ bool lade_bitcomp_block(const uint4 *units,
                                                       lade_bitcomp_tables *tables, uint8_t *dst,
                                                       uint32_t size, uint32_t len, uint32_t lane)
{
	constexpr uint32_t EACH = lade_packed_place<LOG, 2>::EACH;
	const uint32_t *s = (const uint32_t *)lade_shared(units);
	uint32_t *dict = lade_shared(tables)->dict;
	lade_packed p;
	if (s[0] & LADE_BITCOMP_MASK) {
		if (!lade_bitcomp_masked<LOG>(units, tables, dst, size, len, 0, len, lane))
			return false;
		lade_bitcomp_made_real<LOG>(s, dst, len, lane);
		return true;
	}
	if (!lade_bitcomp_check<LOG>((const uint8_t *)s, size, (len + EACH - 1) / EACH, 0,
	                             lade_shared(tables)->places, lane, &p))
		return false;
	if (p.mode & LADE_BITCOMP_WIDTHS)
		lade_bitcomp_any<LOG, LADE_PACKED_UNITS>(s, dict, p, dst, len, lane);
	else
		lade_bitcomp_any<LOG, LADE_PACKED_ONE>(s, dict, p, dst, len, lane);
	lade_bitcomp_made_real<LOG>(s, dst, len, lane);
	return true;
}

#endif
