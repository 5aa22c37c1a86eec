/*
 * ans_decode.cu: decodes chunks of the ANS format (docs/format/ans.md).
 *
 * A block takes a chunk, or a part of its sub-blocks.  It makes the chunk's tables, and each warp
 * decodes sub-blocks of its own, which lie whole in shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/ans.cuh"
#include "cuda/stage.cuh"

/* ---- tables ----------------------------------------------------------------------------- */

/* Word i of a table's description of 'words' words; 0 behind them. */
LADE_DEVICE uint32_t lade_ans_text(const lade_ans_head &h, uint32_t off, uint32_t words, uint32_t i)
{
	return i < words ? lade_ans_word(h, off + 4 * i) : 0;
}

/*
 * Reads the description of 'words' words at 'off' (section 3), for a whole warp; false: corrupt,
 * and 'm' is unspecified.  Lane l reads symbols 8l to 8l + 7.
 */
LADE_DEVICE bool lade_ans_read(const lade_ans_head &h, uint32_t off, uint32_t words, uint32_t bits,
                               lade_ans_marks *m, uint32_t lane)
{
	if (words < 8)
		return false;
	uint32_t there = lade_ans_text(h, off, words, lane / 4) >> 8 * (lane & 3) & 0xFF;
	uint32_t count = (uint32_t)__popc(there), upto = lade_warp_scan(count, lane);
	uint32_t present = __shfl_sync(LADE_FULL, upto, 31), nth = upto - count;
	uint64_t lengths = lade_ans_text(h, off, words, 8 + nth / 8) |
	                   (uint64_t)lade_ans_text(h, off, words, 9 + nth / 8) << 32;
	lengths >>= 4 * (nth & 7);
	uint32_t taken = 0, freq[8];
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		bool is = there >> k & 1;
		freq[k] = is ? (uint32_t)lengths & 15 : ~0u;
		taken += is ? freq[k] : 0;
		lengths >>= is ? 4 : 0;
	}
	uint32_t end = lade_warp_scan(taken, lane);
	uint32_t total = __shfl_sync(LADE_FULL, end, 31);
	uint32_t begin = 8 * (32 + (present + 1) / 2), at = begin + end - taken, sum = 0;
	bool fine = (begin + total + 31) / 32 == words;
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		uint32_t q = freq[k];
		if (q == ~0u) {
			freq[k] = 0;
			continue;
		}
		uint32_t low = lade_ans_text(h, off, words, at / 32);
		uint32_t high = lade_ans_text(h, off, words, at / 32 + 1);
		fine &= q <= bits;
		freq[k] = 1u << q | (__funnelshift_r(low, high, at) & ((1u << q) - 1));
		sum += freq[k];
		at += q;
	}
	fine &= __reduce_add_sync(LADE_FULL, sum) == 1u << bits;
	if (!__all_sync(LADE_FULL, fine))
		return false;
	lade_ans_mark(m, freq, bits, lane);
	return true;
}

/* The entries of all tables: | y 16 | symbol 8 | bits 8 |.  For a whole block. */
LADE_DEVICE void lade_ans_build(uint32_t *table, const lade_ans_marks *m, uint32_t bits,
                                uint32_t coded)
{
	for (uint32_t e = threadIdx.x; e < coded << bits; e += blockDim.x) {
		uint32_t k = e >> bits;
		lade_ans_place p = lade_ans_place_of(m + k, e & ((1u << bits) - 1));
		uint32_t take = bits - 31 + (uint32_t)__clz((int)p.y);
		table[e] = p.y << 16 | p.symbol << 8 | take;
	}
}

/* ---- lanes ------------------------------------------------------------------------------ */

/*
 * A lane.  'now' and 'next' are two words of its string, of whose first one 'used' bits are read;
 * 'at' is where 'next' is in the lane's column, and goes below the first row, 'floor', in a damaged
 * string: that row is read again then.  The low 8 bits of 'used' and 'last' count.
 */
struct lade_ans_lane {
	lade_ans_at at, floor;
	uint32_t state, used, now, next, window, last;

	/* 'halves' is not 0.  The state's leading 1 is in the first half. */
	__device__ __forceinline__ bool open(const uint32_t *column, uint32_t halves, uint32_t bits)
	{
		int32_t top = (int32_t)(halves - 1) / 2;
		floor = lade_ans_at_of(column);
		at = floor + 128 * (top - 1);
		now = lade_ans_load(floor + 128 * top);
		next = lade_ans_load(at > floor ? at : floor);
		uint32_t zeros = (uint32_t)__clz((int)now);
		window = __funnelshift_l(next, now, zeros);
		state = window >> (31 - bits);
		used = zeros + bits + 1;
		last = 0;
		bool fine = now != 0 && zeros - 16 * (halves & 1) <= 15;
		refill();
		return fine;
	}

	/* After at most 32 bits since the last time. */
	__device__ __forceinline__ void refill()
	{
#if LADE_ON_GPU
		asm volatile("{ .reg .pred more; .reg .s32 t;"
			     " and.b32 t, %0, 32;"
			     " setp.ne.s32 more, t, 0;"
			     " @more mov.b32 %1, %2;"
			     " @more sub.s32 %3, %3, 128;"
			     " max.s32 t, %3, %4;"
			     " @more ld.shared.u32 %2, [t];"
			     " and.b32 %0, %0, 31; }"
			     : "+r"(used), "+r"(now), "+r"(next), "+r"(at)
			     : "r"(floor)
			     : "memory");
#else
		if (used & 32) {
			now = next;
			at -= 128;
			next = lade_ans_load(at > floor ? at : floor);
		}
		used &= 31;
#endif
		window = __funnelshift_l(next, now, used);
	}

	/* The next symbol's entry in the table whose state 0 would be at 'table'. */
	__device__ __forceinline__ uint32_t step(lade_ans_at table)
	{
		uint32_t entry = lade_ans_load(table + (lade_ans_at)(4 * state));
		state = __funnelshift_l(window, entry >> 16, entry);
		window = __funnelshift_l(0, window, entry);
		used += entry;
		last = entry;
		return entry;
	}

	/* The 4 symbols of a plane in a unit. */
	__device__ __forceinline__ uint32_t unit(lade_ans_at table)
	{
		uint32_t a = step(table), b = step(table);
		refill();
		uint32_t c = step(table), d = step(table);
		refill();
		return join(a, b, c, d);
	}

	static __device__ __forceinline__ uint32_t join(uint32_t a, uint32_t b, uint32_t c,
	                                                uint32_t d)
	{
		return __byte_perm(__byte_perm(a, b, 0x4451), __byte_perm(c, d, 0x4451), 0x5410);
	}

	/* Whether the string ends with the last symbol, which has no bits. */
	__device__ __forceinline__ bool done() const
	{
		return (int32_t)(at - floor) / 4 + 64 + (int32_t)(last & 0xFF) ==
		       (int32_t)(used & 0xFF);
	}
};

/* ---- sub-blocks ------------------------------------------------------------------------- */

/* The 16 words of 4 planes' bytes, to elements: byte k of word p becomes byte p of word k. */
LADE_DEVICE void lade_ans_turn(const uint32_t *plane, uint32_t *word)
{
	uint32_t a = __byte_perm(plane[0], plane[1], 0x5140);
	uint32_t b = __byte_perm(plane[0], plane[1], 0x7362);
	uint32_t c = __byte_perm(plane[2], plane[3], 0x5140);
	uint32_t d = __byte_perm(plane[2], plane[3], 0x7362);
	word[0] = __byte_perm(a, c, 0x5410);
	word[1] = __byte_perm(a, c, 0x7632);
	word[2] = __byte_perm(b, d, 0x5410);
	word[3] = __byte_perm(b, d, 0x7632);
}

/* Stores a unit of W planes at 'to'; 'aligned': to its size, or to 16. */
template <int W> LADE_DEVICE void lade_ans_store(uint8_t *to, const uint32_t *plane, bool aligned)
{
	uint32_t word[W > 2 ? W : 2];
	if (W == 1) {
		word[0] = plane[0];
	} else if (W == 2) {
		word[0] = __byte_perm(plane[0], plane[1], 0x5140);
		word[1] = __byte_perm(plane[0], plane[1], 0x7362);
	} else if (W == 4) {
		lade_ans_turn(plane, word);
	} else {
		uint32_t low[4], high[4];
		lade_ans_turn(plane, low);
		lade_ans_turn(plane + (W == 8 ? 4 : 0), high);
#pragma unroll
		for (int k = 0; k < 4; k++) {
			word[2 * k % W] = low[k];
			word[(2 * k + 1) % W] = high[k];
		}
	}
	if (!aligned) {
		for (int k = 0; k < 4 * W; k++)
			to[k] = (uint8_t)(word[k / 4] >> 8 * (k % 4));
	} else if (W == 1) {
		*(uint32_t *)to = word[0];
	} else if (W == 2) {
		*(uint2 *)to = make_uint2(word[0], word[1]);
	} else {
#pragma unroll
		for (int k = 0; k + 3 < W; k += 4)
			((uint4 *)to)[k / 4] =
				make_uint4(word[k], word[k + 1], word[k + 2], word[k + 3]);
	}
}

/* What the lanes of a sub-block decode by. */
struct lade_ans_work {
	lade_ans_at table;  /* where the entry of state 0 would be */
	const uint8_t *raw; /* planes, 'count' bytes each */
	uint64_t value;     /* of the constant planes */
	uint32_t modes, states, count;
};

/* Unit 'unit', for the lane that has it. */
template <int W>
LADE_DEVICE void lade_ans_unit(const lade_ans_work &w, lade_ans_lane *me, uint32_t unit,
                               uint8_t *dst, bool aligned)
{
	lade_ans_at table = w.table;
	const uint8_t *raw = w.raw + 4 * unit;
	uint32_t plane[W];
#pragma unroll
	for (int p = 0; p < W; p++) {
		uint32_t mode = w.modes >> 4 * p & 15;
		if (mode == ANS_PLANE_CODED) {
			plane[p] = me->unit(table);
			table += (lade_ans_at)(4 * w.states);
		} else if (mode == ANS_PLANE_RAW) {
			plane[p] = *(const uint32_t *)raw;
			raw += w.count;
		} else {
			plane[p] = (uint32_t)(w.value >> 8 * p & 0xFF) * 0x01010101u;
		}
	}
	lade_ans_store<W>(dst + (size_t)4 * W * unit, plane, aligned);
}

/* Three rows of single bytes with tables of at most 2^10 states: 3 symbols between refills.  'dst'
 * is aligned to 4. */
LADE_DEVICE void lade_ans_three(lade_ans_at table, lade_ans_lane *me, uint32_t row,
                                uint32_t lane, uint8_t *dst)
{
	uint32_t e[12];
#pragma unroll
	for (int k = 0; k < 12; k++) {
		e[k] = me->step(table);
		if (k % 3 == 2)
			me->refill();
	}
#pragma unroll
	for (uint32_t k = 0; k < 3; k++) {
		uint32_t word = lade_ans_lane::join(e[4 * k], e[4 * k + 1], e[4 * k + 2],
		                                    e[4 * k + 3]);
		uint32_t unit = 32 * (row + k) + ((lane + row + k) & 31);
		lade_ans_store<1>(dst + (size_t)4 * unit, &word, true);
	}
}

/* All units of a sub-block. */
template <int W>
LADE_DEVICE void lade_ans_units(const lade_ans_work &w, lade_ans_lane *me, uint32_t units,
                                uint8_t *dst, uint32_t lane)
{
	dst = lade_global(dst);
	bool aligned = !((uintptr_t)dst & (W < 4 ? 4 * W - 1 : 15));
	uint32_t rows = units / 32, row = 0;
	if (W == 1 && w.states <= 1024 && aligned && w.modes == ANS_PLANE_CODED)
		for (; row + 3 <= rows; row += 3)
			lade_ans_three(w.table, me, row, lane, dst);
	for (; row < rows; row++)
		lade_ans_unit<W>(w, me, 32 * row + ((lane + row) & 31), dst, aligned);
	if (((lane + rows) & 31) < units % 32)
		lade_ans_unit<W>(w, me, 32 * rows + ((lane + rows) & 31), dst, aligned);
}

/*
 * Gives each lane's words of the ragged rows their own column, in place: from the last row to the
 * first, so that what a row is written over was read before.  'sum' halves follow the full rows.
 */
LADE_DEVICE void lade_ans_rag(uint32_t *columns, uint32_t halves, uint32_t full, uint32_t most,
                              uint32_t sum, uint32_t lane)
{
	const uint16_t *from = (const uint16_t *)(columns + 32 * full);
	uint32_t below = (1u << lane) - 1, end = sum;
	for (uint32_t r = most; r-- > full;) {
		bool some = halves > 2 * r, both = halves > 2 * r + 1;
		uint32_t low = __ballot_sync(LADE_FULL, some), high = __ballot_sync(LADE_FULL, both);
		end -= (uint32_t)__popc(low) + (uint32_t)__popc(high);
		uint32_t at = end + (uint32_t)__popc(low & below) + (uint32_t)__popc(high & below);
		uint32_t word = some ? from[at] : 0;
		word |= both ? (uint32_t)from[at + 1] << 16 : 0;
		__syncwarp();
		if (some)
			columns[32 * r + lane] = word;
		__syncwarp();
	}
}

/* Where a sub-block lies, checked against the directory's rules and 'slot', the room to stage. */
struct lade_ans_place_in {
	uint32_t off, size, kind, count;
	bool fine;
};

LADE_DEVICE lade_ans_place_in lade_ans_find(const lade_ans_head &h, const lade_ans_info &info,
                                            uint32_t i, uint32_t slot)
{
	const uint32_t mask = (1u << ANS_OFF_BITS) - 1;
	uint32_t entry = lade_ans_word(h, info.directory + 4 * i);
	uint32_t next = lade_ans_word(h, info.directory + 4 * i + 4);
	uint32_t begin = entry & mask, end = next & mask;
	uint32_t left = info.size - info.tail - (i << info.block_log);
	uint32_t bytes = left < 1u << info.block_log ? left : 1u << info.block_log;
	lade_ans_place_in p = {16 * begin, 16 * (end - begin), entry >> ANS_OFF_BITS,
	                       bytes >> info.width_log, false};
	/* Products are below 2^32, as offsets have 28 bits. */
	if (p.kind > ANS_STORED || 16 * begin < info.tables || end < begin || 16 * end > h.size)
		return p;
	uint32_t head = !info.coded ? 0 : p.kind == ANS_WIDE ? 32 : 16;
	if (p.kind == ANS_STORED)
		p.fine = p.size == ((bytes + 15) & ~15u);
	else
		p.fine = p.size >= info.raw * p.count + head && p.size <= slot;
	return p;
}

/*
 * Decodes the staged sub-block 'p' to 'dst', for a whole warp; false: corrupt.  Not in line, so that
 * its loops have all registers.
 */
LADE_ANS_APART bool lade_ans_block(const lade_ans_info &info, const lade_ans_place_in &p,
                                const uint32_t *tables, uint4 *staged, uint8_t *dst, uint32_t lane)
{
	const uint8_t *bytes = (const uint8_t *)staged;
	uint32_t raw = info.raw * p.count, units = p.count / 4;
	uint32_t states = 1u << info.bits;
	lade_ans_work w = {lade_ans_at_of(tables) - (lade_ans_at)(4 * states), bytes, info.value,
	                   info.modes, states, p.count};
	lade_ans_lane me = lade_ans_lane();
	bool has = ((lane + (units & ~31u) / 32) & 31) < units % 32 || units >= 32, fine = true;
	if (info.coded) {
		bool wide = p.kind == ANS_WIDE;
		uint32_t d = wide ? bytes[raw + lane]
				  : bytes[raw + lane / 2] >> 4 * (lane & 1) & 15;
		uint32_t sum = __reduce_add_sync(LADE_FULL, d);
		uint32_t have = (p.size - raw - (wide ? 32 : 16)) / 2;
		uint32_t full = (have - sum) / 64, halves = 2 * full + d;
		uint32_t most = (__reduce_max_sync(LADE_FULL, halves) + 1) / 2;
		if (have < sum || (have - sum) % 64 > 7 || most > info.rows || full > info.rows)
			return false;
		uint32_t *columns = (uint32_t *)((uint8_t *)staged + raw + (wide ? 32 : 16));
		lade_ans_rag(columns, halves, full, most, sum, lane);
		fine = has ? halves && me.open(columns + lane, halves, info.bits) : !halves;
	} else {
		fine = p.size - raw <= 15;
	}
	if (!__all_sync(LADE_FULL, fine))
		return false;
	switch (info.width_log) {
	case 0:
		lade_ans_units<1>(w, &me, units, dst, lane);
		break;
	case 1:
		lade_ans_units<2>(w, &me, units, dst, lane);
		break;
	case 2:
		lade_ans_units<4>(w, &me, units, dst, lane);
		break;
	default:
		lade_ans_units<8>(w, &me, units, dst, lane);
	}
	fine = !info.coded || !has || me.done();
	return __all_sync(LADE_FULL, fine);
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* Bytes [begin, end) of a constant chunk, by a whole block. */
LADE_DEVICE void lade_ans_fill(const lade_ans_info &info, uint8_t *dst, uint32_t begin,
                               uint32_t end)
{
	uint32_t mask = (1u << info.width_log) - 1;
	uint32_t head = (uint32_t)(0 - (uintptr_t)(dst + begin)) & 15, w[4] = {0, 0, 0, 0};
	head = head < end - begin ? head : end - begin;
	uint32_t wide = (end - begin - head) / 16;
	for (uint32_t k = 0; k < 16; k++)
		w[k / 4] |= (uint32_t)(info.value >> 8 * ((begin + head + k) & mask) & 0xFF)
			    << 8 * (k % 4);
	uint4 *to = (uint4 *)(dst + begin + head);
	for (uint32_t i = threadIdx.x; i < wide; i += blockDim.x)
		to[i] = make_uint4(w[0], w[1], w[2], w[3]);
	for (uint32_t i = threadIdx.x; i < head; i += blockDim.x)
		dst[begin + i] = (uint8_t)(info.value >> 8 * ((begin + i) & mask));
	for (uint32_t i = begin + head + 16 * wide + threadIdx.x; i < end; i += blockDim.x)
		dst[i] = (uint8_t)(info.value >> 8 * (i & mask));
}

/* Not in line, for the registers of the loops around them. */
LADE_ANS_APART void lade_ans_stage(lade_stager *s, uint4 *to, const uint8_t *from,
                                                     uint32_t size, uint32_t lane)
{
	lade_stage_begin(s, to, from, size, lane);
}

/* The memory of a block's warps. */
struct lade_ans_room {
	uint4 *units;   /* dynamic shared memory */
	uint32_t bytes; /* of it */
	lade_stager stager; /* of this warp */
};

/* Sub-blocks [begin, end) of a coded chunk, by a whole block; false: corrupt. */
template <int WARPS>
LADE_DEVICE bool lade_ans_blocks(lade_ans_room *room, const lade_ans_head &h,
                                 const lade_ans_info &info, const lade_gpu_chunk &c,
                                 uint32_t begin, uint32_t end)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane();
	uint32_t entries = 4 * (info.coded << info.bits);
	uint32_t marks = info.coded * (uint32_t)sizeof(lade_ans_marks);
	uint32_t slot = info.raw << (info.block_log - info.width_log);
	slot = slot + 32 + 128 * info.rows + 16;
	/* Where not even one sub-block fits beside the marks, these make room first. */
	bool late = entries + marks + slot > room->bytes;
	uint32_t first = entries + (late ? 0 : marks), active = (room->bytes - first) / slot;
	active = active < WARPS ? active : WARPS;
	uint8_t *shared = (uint8_t *)room->units;
	uint32_t *table = (uint32_t *)shared;
	lade_ans_marks *mark = (lade_ans_marks *)(shared + entries);
	uint4 *staged = (uint4 *)(shared + first + warp * slot);
	uint32_t i = warp < active ? begin + warp : end;
	lade_ans_place_in p = {};
	bool fine = true;
	if (i < end)
		p = lade_ans_find(h, info, i, slot);
	if (i < end && p.fine && p.kind != ANS_STORED && !late)
		lade_ans_stage(&room->stager, staged, c.src + p.off, p.size, lane);
	uint32_t off = info.tables;
	for (uint32_t n = 0, k = 0; n < 1u << info.width_log; n++) {
		if ((info.modes >> 4 * n & 15) != ANS_PLANE_CODED)
			continue;
		uint32_t words = lade_ans_byte(h, ANS_AT_PLANES + 2 * n + 1);
		if (k % WARPS == warp)
			fine &= lade_ans_read(h, off, words, info.bits, mark + k, lane);
		off += 4 * words;
		k++;
	}
	bool good = !__syncthreads_or(!fine);
	if (good)
		lade_ans_build(table, mark, info.bits, info.coded);
	__syncthreads();
	for (bool ahead = !late; i < end; i += active, ahead = false) {
		uint8_t *dst = c.dst + ((size_t)i << info.block_log);
		if (!ahead)
			p = lade_ans_find(h, info, i, slot);
		if (p.fine && p.kind != ANS_STORED && !ahead)
			lade_ans_stage(&room->stager, staged, c.src + p.off, p.size, lane);
		if (p.fine && p.kind != ANS_STORED)
			lade_stage_wait<0>(&room->stager);
		if (!p.fine || !good)
			fine = false;
		else if (p.kind == ANS_STORED)
			lade_ans_copy(dst, c.src + p.off, p.count << info.width_log, lane);
		else
			fine &= lade_ans_block(info, p, table, staged, dst, lane);
		if (!good)
			break;
	}
	return !__syncthreads_or(!fine) && good;
}

/* Part 'part' of 'parts' of a chunk, by a whole block; gives the status and the decoded size. */
template <int WARPS>
LADE_DEVICE uint32_t lade_ans_chunk(lade_ans_room *room, uint32_t *words, const lade_gpu_chunk &c,
                                    uint32_t part, uint32_t parts, uint32_t *size)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane();
	lade_ans_info info;
	lade_ans_head h = lade_ans_head_get(words, c.src, c.src_size);
	uint32_t status = lade_ans_parse(h, &info);
	*size = info.size;
	if (status != LADE_GPU_OK)
		return status;
	if (info.size > c.dst_cap)
		return LADE_GPU_NOSPACE;
	if (info.kind == ANS_CODED) {
		uint32_t share = (info.block_count + parts - 1) / parts;
		uint32_t begin = share * part < info.block_count ? share * part : info.block_count;
		uint32_t end = info.block_count - begin < share ? info.block_count : begin + share;
		if (part == parts - 1 && threadIdx.x < info.tail)
			c.dst[info.size - info.tail + threadIdx.x] =
				c.src[c.src_size - info.tail + threadIdx.x];
		return lade_ans_blocks<WARPS>(room, h, info, c, begin, end) ? LADE_GPU_OK
									    : LADE_GPU_CORRUPT;
	}
	/* A share of whole lines. */
	uint32_t share = ((info.size + parts - 1) / parts + 127) & ~127u;
	uint32_t begin = (uint64_t)share * part < info.size ? share * part : info.size;
	uint32_t end = info.size - begin < share ? info.size : begin + share;
	if (info.kind == ANS_CONSTANT) {
		lade_ans_fill(info, c.dst, begin, end);
		return LADE_GPU_OK;
	}
	uint32_t each = ((end - begin + WARPS - 1) / WARPS + 127) & ~127u;
	begin = end - begin < each * warp ? end : begin + each * warp;
	end = end - begin < each ? end : begin + each;
	if (begin < end)
		lade_ans_copy(c.dst + begin, c.src + ANS_HEADER + begin, end - begin, lane);
	return LADE_GPU_OK;
}

/* The highest status of a chunk's parts, and how many are done; zeros before the launch. */
struct lade_ans_parts {
	uint32_t status, done;
};

template <int WARPS>
LADE_DEVICE void lade_ans_decode_batch(const lade_gpu_batch &batch, lade_ans_parts *done,
                                       uint32_t parts, uint32_t bytes)
{
	LADE_SHARED(uint32_t, head, [LADE_ANS_HEAD / 4]);
	LADE_SHARED(unsigned long long, barrier, [WARPS]);
	LADE_SHARED(uint32_t, turn);
	LADE_SHARED_DYNAMIC(uint4, units);
	uint32_t lane = lade_lane();
	lade_ans_room room = {units, bytes, {}};
	lade_stage_open(&room.stager, &barrier[threadIdx.x / 32], lane);
	do {
		if (threadIdx.x == 0)
			turn = batch.next ? atomicAdd(batch.next, 1u) : blockIdx.x;
		__syncthreads();
		uint32_t task = turn, i = task / parts, size = 0;
		if (i >= batch.count)
			return;
		lade_gpu_chunk c;
		uint32_t status = lade_chunk_get(batch, i, &c);
		if (status == LADE_GPU_OK)
			status = lade_ans_chunk<WARPS>(&room, head, c, task % parts, parts, &size);
		__syncthreads();
		if (threadIdx.x == 0 && parts == 1) {
			lade_chunk_put(batch, i, status, size);
		} else if (threadIdx.x == 0) {
			atomicMax(&done[i].status, status);
			__threadfence();
			if (atomicAdd(&done[i].done, 1u) == parts - 1)
				lade_chunk_put(batch, i, atomicMax(&done[i].status, 0u), size);
		}
	} while (batch.next);
}

/* ---- kernels ---------------------------------------------------------------------------- */

/*
 * map:    block = a part of a chunk, of 'parts'; warp = a sub-block in turn; lane = every 32nd
 *         unit of 4 elements
 * shared: 'bytes' of dynamic memory, at least 39,168: tables, and sub-blocks
 * block:  256 threads, or 512
 *
 * With batch.next blocks take parts from it; else block i takes the i-th.  'done' is a table of
 * zeros, an entry a chunk, and not touched where 'parts' is 1.  count * parts is below 2^32.
 */
extern "C" __global__ void __launch_bounds__(256, 5)
	lade_ans_decode(lade_gpu_batch batch, lade_ans_parts *done, uint32_t parts, uint32_t bytes)
{
	lade_ans_decode_batch<8>(batch, done, parts, bytes);
}

extern "C" __global__ void __launch_bounds__(512)
	lade_ans_decode_wide(lade_gpu_batch batch, lade_ans_parts *done, uint32_t parts, uint32_t bytes)
{
	lade_ans_decode_batch<16>(batch, done, parts, bytes);
}

/*
 * What the chunks decode to, by their headers.
 * map: thread = chunk; block: any number of threads
 */
extern "C" __global__ void __launch_bounds__(128) lade_ans_size(lade_gpu_batch batch)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, size = 0;
	lade_gpu_chunk c;
	if (i >= batch.count)
		return;
	uint32_t status = lade_source_get(batch, i, &c);
	if (status == LADE_GPU_OK && c.src_size < ANS_HEADER)
		status = LADE_GPU_TRUNCATED;
	if (status == LADE_GPU_OK && __ldg(c.src) != ANS_VERSION)
		status = LADE_GPU_CORRUPT;
	if (status == LADE_GPU_OK)
		for (uint32_t k = 0; k < 4; k++)
			size |= (uint32_t)__ldg(c.src + ANS_AT_SIZE + k) << 8 * k;
	lade_chunk_put(batch, i, status, size);
}
