/*
 * bitcomp_decode.cu: chunks of bitcomp (docs/format/bitcomp.md), a warp a sub-block.
 *
 * A warp brings its sub-block to shared memory with one copy, checks it as a whole, and makes 512
 * bytes a step: a lane takes 16 bytes of elements from at most five words of bits that lie
 * together, and stores them at once.  Where units have widths of their own, the check leaves a
 * table of where their bits begin; with delta a scan over the lanes gives the sums so far.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/kernels/bitcomp.cuh"

/* What a warp looks up: the dictionary, and where units' bits begin (512 units, and the end). */
struct __align__(16) lade_bitcomp_tables {
	uint32_t dict[64];
	uint16_t places[520];
};

/* Shared memory of a block: of each warp a sub-block, and zeros that lanes load behind it, or the
 * whole of a chunk. */
#define LADE_BITCOMP_STAGE (LADE_BITCOMP_BLOCK / 16 + 2)
struct lade_bitcomp_rooms {
	uint4 units[LADE_BITCOMP_WARPS][LADE_BITCOMP_STAGE];
	lade_bitcomp_tables tables[LADE_BITCOMP_WARPS];
	unsigned long long barrier[LADE_BITCOMP_WARPS];
};
static_assert(sizeof(lade_bitcomp_rooms) == LADE_BITCOMP_DECODE_SHARED, "");

/* The most bytes of a chunk that is asked for before its turn. */
#define LADE_BITCOMP_AHEAD (1u << 14)

/* The most bytes of a chunk of 8 sub-blocks. */
#define LADE_BITCOMP_WHOLE                                                                         \
	(LADE_BITCOMP_HEADER + 4 * LADE_BITCOMP_WARPS + LADE_BITCOMP_WARPS * LADE_BITCOMP_BLOCK)

/*
 * How a chunk of up to LADE_BITCOMP_WHOLE bytes comes to shared memory before anything is known of
 * it: in pieces of 2^log bytes from the header's end on, each brought by one warp and with a
 * barrier of its own; the first one has the header too, the last one what is left.  'apart': they
 * are to be waited for, else they are there.
 */
struct lade_bitcomp_pieces {
	unsigned long long *barrier;
	uint32_t log;
	bool apart;
};

/* Begins to bring the warp's piece of a chunk of 'size' bytes; it and its address are aligned to
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

/* The widths of eight units by their codes: in bytes, of the even ones and of the odd ones. */
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

/* Fills 'places' of 'units' units, of which the first one's bits begin at 'at'; gives where the
 * last one's end.  'p' has what all widths are made of. */
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

/* Checks a sub-block of 'size' bytes with 'units' units (section 4); all lanes give the same.  The
 * plan is of what is behind the first 'skip' units, a multiple of 8, but for the base. */
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
	if (p->mode & LADE_BITCOMP_DICT && (LOG || p->mode & 15))
		return false;
	/* Of other sizes masks are lade_bitcomp_masked()'s. */
	if (p->mode & LADE_BITCOMP_MASK)
		return false;
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

/* The dictionary of a sub-block that was checked; what it has no word for is 0. */
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
	} else {
		lade_packed_get<LOG, WIDTHS, false>(s, p, dst, len, lane);
	}
}

/* The lane's elements that lie together in 'w', the first ones, to where 'bits' are set; 0
 * elsewhere. */
template <int LOG> LADE_DEVICE void lade_bitcomp_spread_out(uint32_t bits, uint32_t *w)
{
	constexpr uint32_t VALUES = 16 >> LOG;
	uint32_t q[4] = {w[0], w[1], w[2], w[3]};
#pragma unroll
	for (uint32_t k = 0; k < VALUES; k++) {
		bool has = bits >> k & 1;
		if (LOG == 3) {
			w[2 * (k & 1)] = has ? q[0] : 0;
			w[2 * (k & 1) + 1] = has ? q[1] : 0;
			q[0] = has ? q[2] : q[0];
			q[1] = has ? q[3] : q[1];
		} else if (LOG == 2) {
			w[k & 3] = has ? q[0] : 0;
#pragma unroll
			for (uint32_t j = 0; j < 3; j++)
				if (j + k < 3)
					q[j] = has ? q[j + 1] : q[j];
		} else {
			uint32_t by = has ? 16 : 0, one = has ? q[0] & 0xFFFF : 0;
			w[k / 2 & 3] = k & 1 ? w[k / 2 & 3] | one << 16 : one;
#pragma unroll
			for (uint32_t j = 0; j < 3; j++)
				q[j] = __funnelshift_r(q[j], q[j + 1], by);
			q[3] >>= by;
		}
	}
}

/*
 * A sub-block with a mask, if there is nothing wrong with it: of its bytes those from 'off', a
 * multiple of 512, to 'end'.  What is set before each word of the mask is counted first, so that a
 * lane finds its elements' bits alone.  A function of its own, for the registers' sake.
 */
template <int LOG>
static __device__ __noinline__ bool lade_bitcomp_masked(const uint4 *units, uint32_t *words,
                                                        uint8_t *dst, uint32_t size, uint32_t len,
                                                        uint32_t off, uint32_t end, uint32_t lane)
{
	constexpr uint32_t SIZE = 1u << LOG, VALUES = 16 >> LOG, GROUP = 512 >> LOG;
	const uint32_t *s = (const uint32_t *)lade_shared(units);
	uint32_t n = (len + SIZE - 1) >> LOG, width = s[0] >> 8 & 0xFF, set = 0;
	uint32_t at = LADE_BITCOMP_HEADER + lade_bitcomp_up((n + 7) / 8);
	lade_packed p = {};
	p.mode = s[0] & 0xFF;
	p.reference = (uint64_t)s[3] << 32 | s[2];
	lade_packed_undo undo = lade_packed_undo_of<LOG>(p);
	if (size < at || s[0] & 0xFF & ~LADE_BITCOMP_MASKED || width > 8 * SIZE || s[0] >> 24 > 2)
		return false;
	const uint32_t *mask = s + LADE_BITCOMP_HEADER / 4;
	uint16_t *before = (uint16_t *)lade_shared(words); /* of at most 128 words */
	for (uint32_t i = lane; 32 * (i - lane) < n; i += 32) {
		uint32_t own = 0;
		if (32 * i < n)
			own = __popc(mask[i] & lade_packed_mask(min(n - 32 * i, 32u)));
		uint32_t all = lade_warp_scan(own, lane);
		if (32 * i < n)
			before[i] = (uint16_t)(set + all - own);
		set += __shfl_sync(LADE_FULL, all, 31);
	}
	__syncwarp();
	if (at + lade_bitcomp_up((set * width + 7) / 8) != size)
		return false;
	bool fast = end > off && lade_packed_fast<2>(dst, end - off);
	at *= 8;
#pragma unroll 1
	for (; off < end; off += 2 * LADE_BITCOMP_GROUP) {
		uint32_t w[2][4], bits[2];
#pragma unroll
		for (uint32_t g = 0; g < 2; g++) {
			/* Lanes behind the last element take the first ones, for nothing. */
			uint32_t i = (off >> LOG) + g * GROUP + lane * VALUES;
			i = i < n ? i : 0;
			uint32_t word = mask[i / 32], rank = before[i / 32];
			rank += __popc(word & ((1u << (i & 31)) - 1));
			bits[g] = word >> (i & 31);
			lade_packed_unpack<LOG>(s, at + rank * width, width, w[g]);
		}
		lade_packed_unfold<LOG, 2>(undo, w);
#pragma unroll
		for (uint32_t g = 0; g < 2; g++)
			lade_bitcomp_spread_out<LOG>(bits[g], w[g]);
		lade_packed_store_all<false, 2>(dst + off, w, end - off, fast, lane);
	}
	return true;
}

/* A sub-block of 'size' bytes in shared memory, if there is nothing wrong with it.  A function of
 * its own, so that what the kernel keeps from sub-block to sub-block takes no registers here. */
template <int LOG>
static __device__ __noinline__ bool lade_bitcomp_block(const uint4 *units,
                                                       lade_bitcomp_tables *tables, uint8_t *dst,
                                                       uint32_t size, uint32_t len, uint32_t lane)
{
	constexpr uint32_t EACH = lade_packed_place<LOG, 2>::EACH;
	const uint32_t *s = (const uint32_t *)lade_shared(units);
	uint32_t *dict = lade_shared(tables)->dict;
	lade_packed p;
	if (LOG && s[0] & LADE_BITCOMP_MASK)
		return lade_bitcomp_masked<LOG ? LOG : 1>(units, dict, dst, size, len, 0, len,
		                                          lane);
	if (!lade_bitcomp_check<LOG>((const uint8_t *)s, size, (len + EACH - 1) / EACH, 0,
	                             lade_shared(tables)->places, lane, &p))
		return false;
	if (p.mode & LADE_BITCOMP_WIDTHS)
		lade_bitcomp_any<LOG, LADE_PACKED_UNITS>(s, dict, p, dst, len, lane);
	else
		lade_bitcomp_any<LOG, LADE_PACKED_ONE>(s, dict, p, dst, len, lane);
	return true;
}

/* ---- chunks ------------------------------------------------------------------------------ */

/* What holds for a chunk as a whole: all of section 4 but its sub-blocks. */
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

/* Sub-block k of a chunk: false: it is corrupt. */
LADE_DEVICE bool lade_bitcomp_one(lade_bitcomp_rooms *rooms, lade_told *told,
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
	uint4 *units = rooms->units[warp];
	if (whole) {
		units = rooms->units[0] + begin / 16;
		lade_bitcomp_await(pieces, (uint32_t)begin, (uint32_t)begin + part);
	} else {
		lade_stager stager = {&rooms->barrier[warp], told->staged & 1};
		__syncwarp();
		if (lane == 0)
			told->staged++;
		lade_stage_begin(&stager, units, from, part, lane);
		if (lane < 2)
			units[part / 16 + lane] = make_uint4(0, 0, 0, 0);
		lade_stage_wait<0>(&stager);
	}
	if (raw) {
		lade_stage_out(to, units, len, lane);
		return true;
	}
#define LADE_ONE(LOG) lade_bitcomp_block<LOG>(units, &rooms->tables[warp], to, part, len, lane)
	return h.log == 0   ? LADE_ONE(0)
	       : h.log == 1 ? LADE_ONE(1)
	       : h.log == 2 ? LADE_ONE(2)
	                    : LADE_ONE(3);
#undef LADE_ONE
}

/* Makes floats of the integers at 'dst', which the warp has stored, as the header at 'src' says.
 * Rare, and so a function. */
static __device__ __noinline__ void lade_bitcomp_restore(const uint8_t *src, uint8_t *dst,
                                                         uint32_t len, uint32_t lane)
{
	lade_bitcomp_head h;
	__syncwarp();
	if (lade_bitcomp_head_of(lade_le32(src), lade_le32(src + 4), lade_le32(src + 8),
	                         lade_le32(src + 12), &h) == LADE_GPU_OK)
		lade_bitcomp_rescale<false>(dst, h.quant, h.log, h.exponent, len >> h.log, lane);
}

/* A chunk as one thread of its warps in the block finds it in the tables: these may change at any
 * time, and all of the warps must go by the same. */
struct lade_bitcomp_entry {
	lade_gpu_chunk c;
	uint32_t status;
};

/* By that thread.  'ahead' is not 0 where a block has one chunk, and the chunk one block: how many
 * chunks later this block's place is free again. */
LADE_DEVICE void lade_bitcomp_enter(const lade_gpu_batch &batch, uint32_t i, uint32_t ahead,
                                    lade_bitcomp_entry *entry)
{
	uint64_t later = 0, later_size = 0;
	uint32_t later_before = LADE_GPU_OK;
	/* Both chunks' entries in one wait. */
	if (ahead && batch.count - i > ahead) {
		later = lade_entry_get((const uint64_t *)batch.src + i + ahead);
		later_size = lade_entry_get(batch.src_size + i + ahead);
		later_before = lade_before_get(batch, i + ahead);
	}
	entry->status = lade_chunk_get_now(batch, i, &entry->c);
	/* What fits the second-level cache together with all that is written meanwhile. */
	if (later && later_before == LADE_GPU_OK && later_size <= LADE_BITCOMP_AHEAD)
		lade_stage_ahead((const uint8_t *)(uintptr_t)later, (uint32_t)later_size);
}

/* Makes the warp's sub-block whose turn it is, if there is one; gives the chunk's status as far as
 * it is known then. */
LADE_DEVICE uint32_t lade_bitcomp_turn(lade_bitcomp_rooms *rooms, const lade_bitcomp_entry &entry,
                                       const lade_spot &at, uint32_t ranks, uint32_t ahead,
                                       lade_told *told)
{
	lade_bitcomp_head h = {};
	lade_bitcomp_pieces pieces = {rooms->barrier, 0, false};
	lade_gpu_chunk c = entry.c;
	uint32_t k = at.k + told->turn * ranks, status = entry.status;
	if (status != LADE_GPU_OK)
		return status;
	bool whole = ahead && told->turn == 0 && c.src_size <= LADE_BITCOMP_WHOLE &&
	             c.src_size > LADE_BITCOMP_HEADER && !(((uintptr_t)c.src | c.src_size) & 15);
	lade_front front = {c.src, 0};
	if (whole) {
		lade_stager stager = {&rooms->barrier[at.warp], 0};
		__syncwarp();
		if (at.lane == 0)
			told->staged++;
		lade_bitcomp_bring(&pieces, &stager, rooms->units[0], c.src, c.src_size, at.warp,
		                   at.lane);
		lade_bitcomp_await(pieces, 0, min(c.src_size, 128u));
		if (4 * at.lane + 4 <= c.src_size)
			front.word = ((const uint32_t *)rooms->units[0])[at.lane];
	} else {
		front = lade_front_get(c, at.lane);
	}
	status = lade_bitcomp_open(c, front, &h);
	/* Nothing is on its way when the block ends. */
	lade_bitcomp_await_own(pieces, at.warp);
	/* What the header says all have from the window; the rest may have changed. */
	if (whole && h.blocks > LADE_BITCOMP_WARPS) {
		whole = false;
		__syncthreads();
	}
	if (status != LADE_GPU_OK)
		return status;
	if (at.lane == 0) {
		told->size = h.size;
		told->more = k < h.blocks && h.blocks - k > ranks;
		told->quantised = k < h.blocks && h.quant;
	}
	if (k >= h.blocks)
		return LADE_GPU_OK;
	return lade_bitcomp_one(rooms, told, pieces, whole, c, front, h, k, at.warp, at.lane)
	               ? LADE_GPU_OK
	               : LADE_GPU_CORRUPT;
}

/*
 * Map: a block is 256 threads, 8 warps; a chunk has 2^team_log warps of a block (1, 2, 4 or 8), or,
 * with 8, 'spans' blocks; a warp takes sub-blocks in turn; a lane makes 16 bytes of 512.  Shared
 * memory: a lade_bitcomp_rooms, dynamic.  'state' has a word for each chunk that is 0 at the start,
 * used where 'spans' is above 1.  'ahead' is 0, or, where a chunk has 8 warps, how many blocks are
 * resident.  'next' is not used: the grid has all teams.
 *
 * Warps do not wait for one another before the chunk is done: all of a team read its header.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_WARPS, 3)
	lade_bitcomp_decode(lade_gpu_batch batch, uint32_t team_log, uint32_t spans,
                            uint32_t ahead, uint32_t *state)
{
	LADE_SHARED_DYNAMIC(lade_bitcomp_rooms, rooms);
	LADE_SHARED(lade_told, told, [LADE_BITCOMP_WARPS]);
	LADE_SHARED(lade_bitcomp_entry, entries, [LADE_BITCOMP_WARPS]);
	lade_spot at = lade_spot_of(team_log, spans);
	if (at.lane == 0) {
		told[at.warp] = {};
		if (!(at.warp & ((1u << team_log) - 1)) && at.i < batch.count)
			lade_bitcomp_enter(batch, at.i, ahead, &entries[at.warp >> team_log]);
	}
	lade_stager stager;
	lade_stage_open(&stager, &rooms->barrier[at.warp], at.lane);
	__syncthreads();
	for (bool more = at.i < batch.count; more;) {
		uint32_t ranks = spans << team_log;
		uint32_t status =
			lade_bitcomp_turn(rooms, entries[at.warp >> team_log], at, ranks, ahead,
			                  &told[at.warp]);
		/* What was known before is found again, for the registers' sake. */
		at = lade_spot_of(team_log, spans);
		lade_told *mine = &told[at.warp];
		__syncwarp();
		if (status == LADE_GPU_OK && mine->quantised) {
			uint32_t off =
				(at.k + mine->turn * (spans << team_log)) * LADE_BITCOMP_BLOCK;
			const lade_gpu_chunk &c = entries[at.warp >> team_log].c;
			lade_bitcomp_restore(c.src, c.dst + off,
			                     min(mine->size - off, (uint32_t)LADE_BITCOMP_BLOCK),
			                     at.lane);
			at = lade_spot_of(team_log, spans);
			mine = &told[at.warp];
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
	at = lade_spot_of(team_log, spans);
	if (at.lane || at.warp & ((1u << team_log) - 1) || at.i >= batch.count)
		return;
	/* All warps of a chunk find the same, unless some sub-block is corrupt. */
	uint32_t status = told[at.warp].status;
	for (uint32_t j = 1; j < 1u << team_log; j++)
		if (status == LADE_GPU_OK)
			status = told[at.warp + j].status;
	if (spans > 1) {
		/* The last block to come knows of all others. */
		uint32_t all = atomicAdd(&state[at.i], 1u | (status ? 1u << 16 : 0));
		if ((all & 0xFFFF) + 1 < spans)
			return;
		if (status == LADE_GPU_OK && all >> 16)
			status = LADE_GPU_CORRUPT;
	}
	lade_chunk_put(batch, at.i, status, status == LADE_GPU_OK ? told[at.warp].size : 0);
}

/* ---- few chunks -------------------------------------------------------------------------- */

/*
 * Where there are no more chunks than multiprocessors, a block has one, which it brings to shared
 * memory before it knows anything of it, and each sub-block has several warps, each for its part of
 * the groups.  With delta a warp sums from 0 on, and what the parts before come to is added at the
 * end.
 */
#define LADE_BITCOMP_PARTS 2                                         /* warps of a sub-block */
#define LADE_BITCOMP_PART (LADE_BITCOMP_BLOCK / LADE_BITCOMP_PARTS)  /* bytes */
#define LADE_BITCOMP_CROWD (LADE_BITCOMP_WARPS * LADE_BITCOMP_PARTS) /* warps of a block */

/* What all warps of a block, or the two of a sub-block, must find alike while memory may change:
 * the tables' entry, the chunk's status, and where the sub-block stands, by turns. */
struct lade_bitcomp_agreed {
	lade_bitcomp_entry entry;
	uint32_t status;
	uint2 places[LADE_BITCOMP_WARPS][2];
};

struct lade_bitcomp_hall {
	uint4 window[LADE_BITCOMP_WARPS * LADE_BITCOMP_STAGE];
	uint4 sums[LADE_BITCOMP_WARPS * LADE_BITCOMP_BLOCK / 16];
	lade_bitcomp_tables tables[LADE_BITCOMP_CROWD];
	unsigned long long barrier[LADE_BITCOMP_CROWD];
};

/* Adds what the parts before 'part' come to, to those of 'sums' from the part on, and stores
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

/* The warp's part of a sub-block of 'size' bytes, which is 'len' decoded: false: it is corrupt. */
template <int LOG>
LADE_DEVICE bool lade_bitcomp_part(lade_bitcomp_hall *hall, const uint4 *units, uint8_t *to,
                                   uint32_t size, uint32_t len, uint32_t warp, uint32_t lane)
{
	constexpr uint32_t EACH = lade_packed_place<LOG, 2>::EACH, PART = LADE_BITCOMP_PART;
	const uint32_t *s = (const uint32_t *)units;
	uint32_t part = warp % LADE_BITCOMP_PARTS, turn = warp / LADE_BITCOMP_PARTS;
	uint32_t left = len > part * PART ? min(len - part * PART, PART) : 0;
	lade_bitcomp_tables *tables = &hall->tables[warp];
	lade_packed p;
	if (LOG && s[0] & LADE_BITCOMP_MASK)
		return lade_bitcomp_masked<LOG ? LOG : 1>(units, tables->dict, to, size, len,
		                                          part * PART, part * PART + left, lane);
	if (!lade_bitcomp_check<LOG>((const uint8_t *)s, size, (len + EACH - 1) / EACH,
	                             part * PART / EACH, tables->places, lane, &p))
		return false;
	uint8_t *mine = to + part * PART;
	if (p.mode & LADE_BITCOMP_DELTA) {
		uint4 *sums = hall->sums + turn * (LADE_BITCOMP_BLOCK / 16);
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
	return true;
}

/* Sub-block k of a chunk, one warp's part of it: false: it is corrupt.  'whole': the chunk is in
 * the hall's window. */
LADE_DEVICE bool lade_bitcomp_share(lade_bitcomp_hall *hall, lade_bitcomp_agreed *agreed,
                                    lade_stager *stager, const lade_gpu_chunk &c,
                                    const lade_front &front,
                                    const lade_bitcomp_head &h, bool whole, uint32_t k,
                                    uint32_t warp, uint32_t lane)
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
			lade_stage_out(to, hall->window + begin / 16, left, lane);
		else
			lade_packed_copy(to, c.src + begin, left, lane);
		return true;
	}
	const uint4 *units = hall->window + begin / 16;
	if (!whole) {
		uint4 *room = hall->window + turn * LADE_BITCOMP_STAGE;
		if (part == 0) {
			lade_stage_begin(stager, room, c.src + begin, size, lane);
			if (lane < 2)
				room[size / 16 + lane] = make_uint4(0, 0, 0, 0);
			lade_stage_wait<0>(stager);
		}
		lade_bar_sync(1 + turn, 32 * LADE_BITCOMP_PARTS);
		units = room;
	}
#define LADE_PART(LOG) lade_bitcomp_part<LOG>(hall, units, to, size, len, warp, lane)
	return h.log == 0   ? LADE_PART(0)
	       : h.log == 1 ? LADE_PART(1)
	       : h.log == 2 ? LADE_PART(2)
	                    : LADE_PART(3);
#undef LADE_PART
}

LADE_DEVICE void lade_bitcomp_chunk(lade_bitcomp_hall *hall, const lade_gpu_batch &batch)
{
	constexpr uint32_t WARPS = LADE_BITCOMP_CROWD, PART = LADE_BITCOMP_PART;
	LADE_SHARED(lade_bitcomp_agreed, agreed);
	uint32_t i = blockIdx.x, lane = lade_lane(), warp = threadIdx.x / 32, size = 0;
	lade_stager stager;
	if (threadIdx.x == 0)
		lade_bitcomp_enter(batch, i, 0, &agreed.entry);
	lade_stage_open(&stager, &hall->barrier[warp], lane);
	__syncthreads();
	lade_gpu_chunk c = agreed.entry.c;
	uint32_t status = agreed.entry.status;
	if (status == LADE_GPU_OK) {
		/* A share for each warp. */
		uint32_t all = min(c.src_size, (uint32_t)LADE_BITCOMP_WHOLE),
			 units = (all + 15) / 16;
		uint32_t each = (units + WARPS - 1) / WARPS, from = min(16 * warp * each, all);
		lade_stage_begin(&stager, hall->window + from / 16, c.src + from,
		                 min(16 * each, all - from), lane);
		if (warp == 0 && lane < 2)
			hall->window[units + lane] = make_uint4(0, 0, 0, 0);
		lade_stage_wait<0>(&stager);
		__syncthreads();
		lade_front front = {c.src, 0};
		if (4 * lane + 4 <= all)
			front.word = ((const uint32_t *)hall->window)[lane];
		lade_bitcomp_head h = {};
		status = lade_bitcomp_open(c, front, &h);
		/* Where the last place is not in the front, it may have changed. */
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
				good = lade_bitcomp_share(hall, &agreed, &stager, c, front, h,
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

static_assert(sizeof(lade_bitcomp_hall) == LADE_BITCOMP_FEW_SHARED, "");
static_assert(LADE_BITCOMP_CROWD == LADE_BITCOMP_FEW_WARPS, "");

/*
 * Map: a block is 512 threads, 16 warps, and has a chunk; two warps have a sub-block, and take more
 * in turn; a lane makes 16 bytes of 512.  Shared memory: a lade_bitcomp_hall, dynamic.  'next' is
 * not used: the grid is the batch.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_BITCOMP_CROWD, 1)
	lade_bitcomp_decode_few(lade_gpu_batch batch)
{
	LADE_SHARED_DYNAMIC(lade_bitcomp_hall, hall);
	lade_bitcomp_chunk(hall, batch);
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
