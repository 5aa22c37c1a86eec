/*
 * bitcomp_decode.cu: chunks of bitcomp (docs/format/bitcomp.md), a warp a sub-block.
 *
 * A warp copies its sub-block to shared memory in one step, checks all of it, and decodes 512 bytes
 * at a time: a lane unpacks 16 bytes of elements from at most five adjacent words and stores them
 * together.  Where units have their own widths, the check builds a table of where each unit's bits
 * begin; with delta, a scan over the lanes gives the prefix sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/kernels/bitcomp.cuh"

/* A warp's tables: the dictionary, and where units' bits begin (512 units, and the end). */
struct __align__(16) lade_bitcomp_tables {
	uint32_t dict[64];
	uint16_t places[520];
};

/* Shared memory of a block: a sub-block for each warp and zeros behind it, because lanes load past
 * its end; or one whole chunk. */
#define LADE_BITCOMP_STAGE (LADE_BITCOMP_BLOCK / 16 + 2)
struct lade_bitcomp_decode_smem {
	uint4 units[LADE_BITCOMP_WARPS][LADE_BITCOMP_STAGE];
	lade_bitcomp_tables tables[LADE_BITCOMP_WARPS];
	unsigned long long barrier[LADE_BITCOMP_WARPS];
};
static_assert(sizeof(lade_bitcomp_decode_smem) == LADE_BITCOMP_DECODE_SHARED, "");

/* The largest chunk that is prefetched. */
#define LADE_BITCOMP_AHEAD (1u << 14)

/* The largest encoded size of a chunk of 8 sub-blocks. */
#define LADE_BITCOMP_WHOLE                                                                         \
	(LADE_BITCOMP_HEADER + 4 * LADE_BITCOMP_WARPS + LADE_BITCOMP_WARPS * LADE_BITCOMP_BLOCK)

/*
 * How a chunk of up to LADE_BITCOMP_WHOLE bytes is copied to shared memory before its header has
 * been read: in pieces of 2^log bytes after the header.  One warp copies each piece, with its own
 * barrier; the first piece includes the header, the last one the rest.  'apart': the copies are
 * asynchronous and must be waited for.
 */
struct lade_bitcomp_pieces {
	unsigned long long *barrier;
	uint32_t log;
	bool apart;
};

/* Starts to copy the warp's piece of a chunk of 'size' bytes; size and address are multiples of
 * 16. */
LADE_DEVICE void lade_bitcomp_bring(lade_bitcomp_pieces *pieces, lade_stager *stager, uint4 *window,
                                    const uint8_t *src, uint32_t size, uint32_t warp, uint32_t lane)
{
	/* A piece of a stored chunk is a sub-block. */
	uint32_t units = size / 16 - min(size / 16, 4u);
	pieces->log = 36 - (uint32_t)__clz((int)(units / LADE_BITCOMP_WARPS));
	uint32_t next = LADE_BITCOMP_HEADER + ((warp + 1) << pieces->log);
	uint32_t from = warp ? min(next - (1u << pieces->log), size) : 0;
	uint32_t to = warp + 1 < LADE_BITCOMP_WARPS ? min(next, size) : size;
	lade_stage_begin(stager, window + from / 16, src + from, to - from, lane);
	if (warp == 0 && lane < 2)
		window[size / 16 + lane] = make_uint4(0, 0, 0, 0);
	pieces->apart = LADE_STAGE_BULK;
	if (!pieces->apart) {
		lade_stage_wait<0>(stager);
		__syncthreads();
	}
}

/* Waits for the pieces with bytes from 'begin' to 'end', which is behind the header. */
LADE_DEVICE void lade_bitcomp_await(const lade_bitcomp_pieces &pieces, uint32_t begin, uint32_t end)
{
	if (!pieces.apart || begin >= end)
		return;
	begin -= min(begin, (uint32_t)LADE_BITCOMP_HEADER);
	uint32_t last = (end - 1 - LADE_BITCOMP_HEADER) >> pieces.log;
	last = min(last, LADE_BITCOMP_WARPS - 1u);
	for (uint32_t k = min(begin >> pieces.log, last); k <= last; k++) {
		lade_stager stager = {pieces.barrier + k, 0};
		lade_stage_wait<0>(&stager);
	}
}

/* Waits for the warp's own piece. */
LADE_DEVICE void lade_bitcomp_await_own(const lade_bitcomp_pieces &pieces, uint32_t warp)
{
	lade_stager stager = {pieces.barrier + warp, 0};
	if (pieces.apart)
		lade_stage_wait<0>(&stager);
}

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

/* ---- chunks ------------------------------------------------------------------------------ */

/* Checks the chunk's header and sizes: all of section 4 except its sub-blocks. */
LADE_DEVICE uint32_t lade_bitcomp_open(const lade_gpu_chunk &c, const lade_front &f,
                                       lade_bitcomp_head *h)
{
	if (c.src_size < LADE_BITCOMP_HEADER)
		return LADE_GPU_TRUNCATED;
	uint32_t status = lade_bitcomp_head_of(lade_front_word(f, 0), lade_front_word(f, 1),
	                                       lade_front_word(f, 2), lade_front_word(f, 3), h);
	if (status != LADE_GPU_OK)
		return status;
	if (h->size > c.dst_cap)
		return LADE_GPU_NOSPACE;
	uint64_t want = (uint64_t)LADE_BITCOMP_HEADER + h->size;
	if (!h->stored && h->size) {
		want = lade_bitcomp_first(h->blocks);
		if (c.src_size >= want)
			want = (uint64_t)16 * lade_front_word(f, h->blocks + 3);
	}
	return c.src_size < want   ? LADE_GPU_TRUNCATED
	       : c.src_size > want ? LADE_GPU_CORRUPT
	                           : LADE_GPU_OK;
}

/* Decodes sub-block k of a chunk; false: it is corrupt. */
LADE_DEVICE bool lade_bitcomp_one(lade_bitcomp_decode_smem *smem, lade_warp_report *report,
                                  const lade_bitcomp_pieces &pieces, bool whole,
                                  const lade_gpu_chunk &c, const lade_front &front,
                                  const lade_bitcomp_head &h, uint32_t k, uint32_t warp,
                                  uint32_t lane)
{
	uint32_t off = k * LADE_BITCOMP_BLOCK, first = lade_bitcomp_first(h.blocks);
	uint32_t len = min(h.size - off, (uint32_t)LADE_BITCOMP_BLOCK), part = lade_bitcomp_up(len);
	uint64_t begin = LADE_BITCOMP_HEADER + off;
	uint8_t *to = c.dst + off;
	if (!h.stored) {
		uint64_t end = (uint64_t)16 * lade_front_word(front, k + 4);
		begin = k ? (uint64_t)16 * lade_front_word(front, k + 3) : first;
		if (begin < first || begin >= end || end > c.src_size || end - begin > part)
			return false;
		part = (uint32_t)(end - begin);
	}
	const uint8_t *from = c.src + begin;
	bool raw = part == lade_bitcomp_up(len);
	if (raw && (h.quant || ((uintptr_t)to | (uintptr_t)from | len) & 15)) {
		lade_packed_copy(to, from, len, lane);
		return true;
	}
	uint4 *units = smem->units[warp];
	if (whole) {
		units = smem->units[0] + begin / 16;
		lade_bitcomp_await(pieces, (uint32_t)begin, (uint32_t)begin + part);
	} else {
		lade_stager stager = {&smem->barrier[warp], report->staged & 1};
		__syncwarp();
		if (lane == 0)
			report->staged++;
		lade_stage_begin(&stager, units, from, part, lane);
		if (lane < 2)
			units[part / 16 + lane] = make_uint4(0, 0, 0, 0);
		lade_stage_wait<0>(&stager);
	}
	if (raw) {
		lade_stage_out(to, units, len, lane);
		return true;
	}
#define LADE_ONE(LOG) lade_bitcomp_block<LOG>(units, &smem->tables[warp], to, part, len, lane)
	return h.log == 0   ? LADE_ONE(0)
	       : h.log == 1 ? LADE_ONE(1)
	       : h.log == 2 ? LADE_ONE(2)
	                    : LADE_ONE(3);
#undef LADE_ONE
}

/* Converts the integers at 'dst', which the warp has stored, to floats as the header at 'src' says.
 * Not inlined because it is rare. */
static __device__ __noinline__ void lade_bitcomp_restore(const uint8_t *src, uint8_t *dst,
                                                         uint32_t len, uint32_t lane)
{
	lade_bitcomp_head h;
	__syncwarp();
	if (lade_bitcomp_head_of(lade_le32(src), lade_le32(src + 4), lade_le32(src + 8),
	                         lade_le32(src + 12), &h) == LADE_GPU_OK)
		lade_bitcomp_rescale<false>(dst, h.quant, h.log, h.exponent, len >> h.log, lane);
}

/* A chunk's entry in the tables, read by one thread: the tables may change at any time, and all of
 * the chunk's warps must use the same values. */
struct lade_bitcomp_entry {
	lade_gpu_chunk c;
	uint32_t status;
};

/* Called by that thread.  'ahead' is not 0 where each block has one chunk and each chunk one block:
 * the number of blocks that run at once, so that chunk i + ahead is likely to run here next. */
LADE_DEVICE void lade_bitcomp_enter(const lade_gpu_batch &batch, uint32_t i, uint32_t ahead,
                                    lade_bitcomp_entry *entry)
{
	uint64_t later = 0, later_size = 0;
	uint32_t later_before = LADE_GPU_OK;
	/* The loads of both chunks' entries overlap. */
	if (ahead && batch.count - i > ahead) {
		later = lade_entry_get((const uint64_t *)batch.src + i + ahead);
		later_size = lade_entry_get(batch.src_size + i + ahead);
		later_before = lade_before_get(batch, i + ahead);
	}
	entry->status = lade_chunk_get_now(batch, i, &entry->c);
	/* Only as much as fits the L2 cache beside the output written meanwhile. */
	if (later && later_before == LADE_GPU_OK && later_size <= LADE_BITCOMP_AHEAD)
		lade_stage_ahead((const uint8_t *)(uintptr_t)later, (uint32_t)later_size);
}

/* Decodes the warp's next sub-block, if it has one; returns the chunk's status so far. */
LADE_DEVICE uint32_t lade_bitcomp_turn(lade_bitcomp_decode_smem *smem,
                                       const lade_bitcomp_entry &entry, const lade_thread_place &at,
                                       uint32_t ranks, uint32_t ahead, lade_warp_report *report)
{
	lade_bitcomp_head h = {};
	lade_bitcomp_pieces pieces = {smem->barrier, 0, false};
	lade_gpu_chunk c = entry.c;
	uint32_t k = at.k + report->turn * ranks, status = entry.status;
	if (status != LADE_GPU_OK)
		return status;
	bool whole = ahead && report->turn == 0 && c.src_size <= LADE_BITCOMP_WHOLE &&
	             c.src_size > LADE_BITCOMP_HEADER && !(((uintptr_t)c.src | c.src_size) & 15);
	lade_front front = {c.src, 0};
	if (whole) {
		lade_stager stager = {&smem->barrier[at.warp], 0};
		__syncwarp();
		if (at.lane == 0)
			report->staged++;
		lade_bitcomp_bring(&pieces, &stager, smem->units[0], c.src, c.src_size, at.warp,
		                   at.lane);
		lade_bitcomp_await(pieces, 0, min(c.src_size, 128u));
		if (4 * at.lane + 4 <= c.src_size)
			front.word = ((const uint32_t *)smem->units[0])[at.lane];
	} else {
		front = lade_front_get(c, at.lane);
	}
	status = lade_bitcomp_open(c, front, &h);
	/* No copy may be pending when the block ends. */
	lade_bitcomp_await_own(pieces, at.warp);
	/* All warps have read the header from shared memory; the rest is read again below. */
	if (whole && h.blocks > LADE_BITCOMP_WARPS) {
		whole = false;
		__syncthreads();
	}
	if (status != LADE_GPU_OK)
		return status;
	if (at.lane == 0) {
		report->size = h.size;
		report->more = k < h.blocks && h.blocks - k > ranks;
		report->quantised = k < h.blocks && h.quant;
	}
	if (k >= h.blocks)
		return LADE_GPU_OK;
	return lade_bitcomp_one(smem, report, pieces, whole, c, front, h, k, at.warp, at.lane)
	               ? LADE_GPU_OK
	               : LADE_GPU_CORRUPT;
}

/*
 * Map: a block is 256 threads, 8 warps; a chunk has 2^team_log warps of a block (1, 2, 4 or 8), or,
 * with 8, 'spans' blocks; a warp takes sub-blocks in turn; a lane decodes 16 bytes of 512.  Shared
 * memory: a lade_bitcomp_decode_smem, dynamic.  'state' has a word for each chunk, 0 at the start;
 * it is used where 'spans' is above 1.  'ahead' is 0, or, where a chunk has 8 warps, the number of
 * resident blocks.  'next' is not used: the grid has all teams.
 *
 * A team's warps do not wait for each other until the chunk is done: each reads the header.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_WARPS, 3)
	lade_bitcomp_decode(lade_gpu_batch batch, uint32_t team_log, uint32_t spans,
                            uint32_t ahead, uint32_t *state)
{
	LADE_SHARED_DYNAMIC(lade_bitcomp_decode_smem, smem);
	LADE_SHARED(lade_warp_report, report, [LADE_BITCOMP_WARPS]);
	LADE_SHARED(lade_bitcomp_entry, entries, [LADE_BITCOMP_WARPS]);
	lade_thread_place at = lade_thread_place_of(team_log, spans);
	if (at.lane == 0) {
		report[at.warp] = {};
		if (!(at.warp & ((1u << team_log) - 1)) && at.i < batch.count)
			lade_bitcomp_enter(batch, at.i, ahead, &entries[at.warp >> team_log]);
	}
	lade_stager stager;
	lade_stage_open(&stager, &smem->barrier[at.warp], at.lane);
	__syncthreads();
	for (bool more = at.i < batch.count; more;) {
		uint32_t ranks = spans << team_log;
		uint32_t status = lade_bitcomp_turn(smem, entries[at.warp >> team_log], at, ranks,
		                                    ahead, &report[at.warp]);
		/* Recomputed rather than kept, to save registers. */
		at = lade_thread_place_of(team_log, spans);
		lade_warp_report *mine = &report[at.warp];
		__syncwarp();
		if (status == LADE_GPU_OK && mine->quantised) {
			uint32_t off =
				(at.k + mine->turn * (spans << team_log)) * LADE_BITCOMP_BLOCK;
			const lade_gpu_chunk &c = entries[at.warp >> team_log].c;
			lade_bitcomp_restore(c.src, c.dst + off,
			                     min(mine->size - off, (uint32_t)LADE_BITCOMP_BLOCK),
			                     at.lane);
			at = lade_thread_place_of(team_log, spans);
			mine = &report[at.warp];
		}
		more = status == LADE_GPU_OK && mine->more;
		__syncwarp();
		if (at.lane == 0) {
			mine->status = status;
			mine->turn++;
		}
		__syncwarp();
	}
	__syncthreads();
	at = lade_thread_place_of(team_log, spans);
	if (at.lane || at.warp & ((1u << team_log) - 1) || at.i >= batch.count)
		return;
	/* All warps of a chunk agree unless a sub-block is corrupt. */
	uint32_t status = report[at.warp].status;
	for (uint32_t j = 1; j < 1u << team_log; j++)
		if (status == LADE_GPU_OK)
			status = report[at.warp + j].status;
	if (spans > 1) {
		/* The last block to finish sees the status of all others. */
		uint32_t all = atomicAdd(&state[at.i], 1u | (status ? 1u << 16 : 0));
		if ((all & 0xFFFF) + 1 < spans)
			return;
		if (status == LADE_GPU_OK && all >> 16)
			status = LADE_GPU_CORRUPT;
	}
	lade_chunk_put(batch, at.i, status, status == LADE_GPU_OK ? report[at.warp].size : 0);
}

/* ---- few chunks -------------------------------------------------------------------------- */

/*
 * Where there are no more chunks than multiprocessors, a block has one chunk, which it copies to
 * shared memory before it reads the header.  Several warps decode each sub-block, each a part of
 * its groups.  With delta, each warp sums from 0; the sums of the parts before are added at the
 * end.
 */
#define LADE_BITCOMP_PARTS 2                                        /* warps of a sub-block */
#define LADE_BITCOMP_PART (LADE_BITCOMP_BLOCK / LADE_BITCOMP_PARTS) /* bytes */

/* Values that all warps of a block, or the two of a sub-block, must agree on even if memory changes
 * between their reads: the tables' entry, the chunk's status, and where the sub-block is, by
 * turns. */
struct lade_bitcomp_agreed {
	lade_bitcomp_entry entry;
	uint32_t status;
	uint2 places[LADE_BITCOMP_WARPS][2];
};

struct lade_bitcomp_few_smem {
	uint4 window[LADE_BITCOMP_WARPS * LADE_BITCOMP_STAGE];
	uint4 sums[LADE_BITCOMP_WARPS * LADE_BITCOMP_BLOCK / 16];
	lade_bitcomp_tables tables[LADE_BITCOMP_FEW_WARPS];
	unsigned long long barrier[LADE_BITCOMP_FEW_WARPS];
};

/* Adds the sums of the parts before 'part' to the elements of this part in 'sums', and stores
 * them. */
template <int LOG>
LADE_DEVICE void lade_bitcomp_add(const uint4 *sums, uint32_t part, uint8_t *to, uint32_t len,
                                  uint32_t lane)
{
	typedef lade_packed_word<LOG == 3 ? 2 : LOG> word;
	const uint8_t *bytes = (const uint8_t *)sums;
	uint64_t more = 0;
	for (uint32_t j = 1; j <= part; j++)
		more += lade_bitcomp_element(bytes + j * LADE_BITCOMP_PART - (1 << LOG), LOG);
	constexpr uint32_t MASK = LOG == 0 ? 0xFFu : LOG == 1 ? 0xFFFFu : LADE_FULL;
	uint32_t all = word::all((uint32_t)more & MASK);
	const uint4 *from = sums + part * (LADE_BITCOMP_PART / 16) + lane;
	bool fast = lade_packed_fast<2>(to, len);
#pragma unroll 2
	for (uint32_t off = 0; off < len; off += 2 * LADE_BITCOMP_GROUP) {
		uint32_t w[2][4];
#pragma unroll
		for (uint32_t g = 0; g < 2; g++) {
			uint4 v = {};
			if (off + g * LADE_BITCOMP_GROUP + 16 * lane < len)
				v = from[off / 16 + 32 * g];
			if (LOG == 3) {
				uint64_t a = ((uint64_t)v.y << 32 | v.x) + more;
				uint64_t b = ((uint64_t)v.w << 32 | v.z) + more;
				v = make_uint4((uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b,
				               (uint32_t)(b >> 32));
			} else {
				v = make_uint4(word::add(v.x, all), word::add(v.y, all),
				               word::add(v.z, all), word::add(v.w, all));
			}
			w[g][0] = v.x;
			w[g][1] = v.y;
			w[g][2] = v.z;
			w[g][3] = v.w;
		}
		lade_packed_store_all<false, 2>(to + off, w, len - off, fast, lane);
	}
}

/* Decodes the warp's part of a sub-block of 'size' bytes, 'len' decoded; false: it is corrupt. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_part(lade_bitcomp_few_smem *smem, const uint4 *units, uint8_t *to,
                                   uint32_t size, uint32_t len, uint32_t warp, uint32_t lane)
{
	constexpr uint32_t EACH = lade_packed_place<LOG, 2>::EACH, PART = LADE_BITCOMP_PART;
	const uint32_t *s = (const uint32_t *)units;
	uint32_t part = warp % LADE_BITCOMP_PARTS, turn = warp / LADE_BITCOMP_PARTS;
	uint32_t left = len > part * PART ? min(len - part * PART, PART) : 0;
	lade_bitcomp_tables *tables = &smem->tables[warp];
	lade_packed p;
	uint8_t *mine = to + part * PART;
	if (s[0] & LADE_BITCOMP_MASK) {
		if (!lade_bitcomp_masked<LOG>(units, tables, to, size, len, part * PART,
		                              part * PART + left, lane))
			return false;
		lade_bitcomp_made_real<LOG>(s, mine, left, lane);
		return true;
	}
	if (!lade_bitcomp_check<LOG>((const uint8_t *)s, size, (len + EACH - 1) / EACH,
	                             part * PART / EACH, tables->places, lane, &p))
		return false;
	if (p.lag > 1)
		left = part ? 0 : len; /* the first warp makes all of it */
	if (p.mode & LADE_BITCOMP_DELTA && p.lag == 1) {
		uint4 *sums = smem->sums + turn * (LADE_BITCOMP_BLOCK / 16);
		uint8_t *own = (uint8_t *)(sums + part * PART / 16);
		p.base = part ? 0 : p.base;
		if (p.mode & LADE_BITCOMP_WIDTHS)
			lade_packed_get<LOG, LADE_PACKED_UNITS, true>(s, p, own, left, lane);
		else
			lade_packed_get<LOG, LADE_PACKED_ONE, true>(s, p, own, left, lane);
		lade_bar_sync(1 + turn, 32 * LADE_BITCOMP_PARTS);
		if (left)
			lade_bitcomp_add<LOG>(sums, part, mine, left, lane);
	} else if (p.mode & LADE_BITCOMP_WIDTHS) {
		lade_bitcomp_any<LOG, LADE_PACKED_UNITS>(s, tables->dict, p, mine, left, lane);
	} else {
		lade_bitcomp_any<LOG, LADE_PACKED_ONE>(s, tables->dict, p, mine, left, lane);
	}
	lade_bitcomp_made_real<LOG>(s, mine, left, lane);
	/* The other warp may make reals of its part (section 5). */
	if (p.lag > 1)
		lade_bar_sync(1 + turn, 32 * LADE_BITCOMP_PARTS);
	return true;
}

/* Decodes one warp's part of sub-block k of a chunk; false: it is corrupt.  'whole': the chunk is
 * in smem->window. */
LADE_DEVICE bool lade_bitcomp_share(lade_bitcomp_few_smem *smem, lade_bitcomp_agreed *agreed,
                                    lade_stager *stager, const lade_gpu_chunk &c,
                                    const lade_front &front, const lade_bitcomp_head &h, bool whole,
                                    uint32_t k, uint32_t warp, uint32_t lane)
{
	constexpr uint32_t PART = LADE_BITCOMP_PART;
	uint32_t off = k * LADE_BITCOMP_BLOCK, first = lade_bitcomp_first(h.blocks);
	uint32_t len = min(h.size - off, (uint32_t)LADE_BITCOMP_BLOCK), size = lade_bitcomp_up(len);
	uint32_t part = warp % LADE_BITCOMP_PARTS, turn = warp / LADE_BITCOMP_PARTS;
	uint64_t begin = LADE_BITCOMP_HEADER + off;
	uint8_t *to = c.dst + off;
	if (!h.stored) {
		uint32_t from = k ? lade_front_word(front, k + 3) : first / 16;
		uint32_t till = lade_front_word(front, k + 4);
		if (!whole) {
			uint2 *both = &agreed->places[turn][k / LADE_BITCOMP_WARPS & 1];
			if (part == 0 && lane == 0)
				*both = make_uint2(from, till);
			lade_bar_sync(1 + turn, 32 * LADE_BITCOMP_PARTS);
			from = both->x;
			till = both->y;
		}
		uint64_t end = (uint64_t)16 * till;
		begin = (uint64_t)16 * from;
		if (begin < first || begin >= end || end > c.src_size || end - begin > size)
			return false;
		size = (uint32_t)(end - begin);
	}
	if (size == lade_bitcomp_up(len)) {
		uint32_t left = len > part * PART ? min(len - part * PART, PART) : 0;
		to += part * PART;
		begin += part * PART;
		if (whole && !h.quant && !(((uintptr_t)to | left) & 15))
			lade_stage_out(to, smem->window + begin / 16, left, lane);
		else
			lade_packed_copy(to, c.src + begin, left, lane);
		return true;
	}
	const uint4 *units = smem->window + begin / 16;
	if (!whole) {
		uint4 *staged = smem->window + turn * LADE_BITCOMP_STAGE;
		if (part == 0) {
			lade_stage_begin(stager, staged, c.src + begin, size, lane);
			if (lane < 2)
				staged[size / 16 + lane] = make_uint4(0, 0, 0, 0);
			lade_stage_wait<0>(stager);
		}
		lade_bar_sync(1 + turn, 32 * LADE_BITCOMP_PARTS);
		units = staged;
	}
#define LADE_PART(LOG) lade_bitcomp_part<LOG>(smem, units, to, size, len, warp, lane)
	return h.log == 0   ? LADE_PART(0)
	       : h.log == 1 ? LADE_PART(1)
	       : h.log == 2 ? LADE_PART(2)
	                    : LADE_PART(3);
#undef LADE_PART
}

LADE_DEVICE void lade_bitcomp_chunk(lade_bitcomp_few_smem *smem, const lade_gpu_batch &batch)
{
	constexpr uint32_t WARPS = LADE_BITCOMP_FEW_WARPS, PART = LADE_BITCOMP_PART;
	LADE_SHARED(lade_bitcomp_agreed, agreed);
	uint32_t i = blockIdx.x, lane = lade_lane(), warp = threadIdx.x / 32, size = 0;
	lade_stager stager;
	if (threadIdx.x == 0)
		lade_bitcomp_enter(batch, i, 0, &agreed.entry);
	lade_stage_open(&stager, &smem->barrier[warp], lane);
	__syncthreads();
	lade_gpu_chunk c = agreed.entry.c;
	uint32_t status = agreed.entry.status;
	if (status == LADE_GPU_OK) {
		/* A share for each warp. */
		uint32_t all = min(c.src_size, (uint32_t)LADE_BITCOMP_WHOLE),
			 units = (all + 15) / 16;
		uint32_t each = (units + WARPS - 1) / WARPS, from = min(16 * warp * each, all);
		lade_stage_begin(&stager, smem->window + from / 16, c.src + from,
		                 min(16 * each, all - from), lane);
		if (warp == 0 && lane < 2)
			smem->window[units + lane] = make_uint4(0, 0, 0, 0);
		lade_stage_wait<0>(&stager);
		__syncthreads();
		lade_front front = {c.src, 0};
		if (4 * lane + 4 <= all)
			front.word = ((const uint32_t *)smem->window)[lane];
		lade_bitcomp_head h = {};
		status = lade_bitcomp_open(c, front, &h);
		/* If 'front' does not have the last entry, each warp has read it by itself. */
		if (h.blocks + 3 >= 32) {
			if (threadIdx.x == 0)
				agreed.status = status;
			__syncthreads();
			status = agreed.status;
		}
		bool good = true;
		if (status == LADE_GPU_OK) {
			bool whole = h.blocks <= LADE_BITCOMP_WARPS && c.src_size == all;
			if (!whole)
				__syncthreads();
			size = h.size;
			uint32_t turn = warp / LADE_BITCOMP_PARTS, part = warp % LADE_BITCOMP_PARTS;
			for (uint32_t k = turn; good && k < h.blocks; k += LADE_BITCOMP_WARPS) {
				good = lade_bitcomp_share(smem, &agreed, &stager, c, front, h,
				                          whole, k, warp, lane);
				uint32_t off = k * LADE_BITCOMP_BLOCK + part * PART;
				if (good && h.quant && off < size)
					lade_bitcomp_restore(c.src, c.dst + off,
					                     min(size - off, PART), lane);
			}
		}
		if (__syncthreads_or(!good))
			status = LADE_GPU_CORRUPT;
	}
	if (threadIdx.x == 0)
		lade_chunk_put(batch, i, status, status == LADE_GPU_OK ? size : 0);
}

static_assert(sizeof(lade_bitcomp_few_smem) == LADE_BITCOMP_FEW_SHARED, "");
static_assert(LADE_BITCOMP_FEW_WARPS == LADE_BITCOMP_WARPS * LADE_BITCOMP_PARTS, "");

/*
 * Map: a block is 512 threads, 16 warps, and has a chunk; two warps take a sub-block, then the next
 * in turn; a lane decodes 16 bytes of 512.  Shared memory: a lade_bitcomp_few_smem, dynamic. 'next'
 * is not used: the grid is the batch.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_FEW_WARPS, 1)
	lade_bitcomp_decode_few(lade_gpu_batch batch)
{
	LADE_SHARED_DYNAMIC(lade_bitcomp_few_smem, smem);
	lade_bitcomp_chunk(smem, batch);
}

/* The decoded sizes.  Map: thread = chunk; blocks of any size. */
extern "C" __global__ void lade_bitcomp_size(lade_gpu_batch batch)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= batch.count)
		return;
	lade_gpu_chunk c;
	lade_bitcomp_head h;
	h.size = 0;
	uint32_t status = lade_source_get(batch, i, &c);
	if (status == LADE_GPU_OK && c.src_size < LADE_BITCOMP_HEADER)
		status = LADE_GPU_TRUNCATED;
	if (status == LADE_GPU_OK)
		status = lade_bitcomp_head_of(lade_le32(c.src), lade_le32(c.src + 4),
		                              lade_le32(c.src + 8), lade_le32(c.src + 12), &h);
	lade_chunk_put(batch, i, status, h.size);
}
