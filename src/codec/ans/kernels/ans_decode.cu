/*
 * ans_decode.cu: decodes chunks of the ANS format (docs/format/ans.md).
 *
 * A block takes a chunk, or a part of its sub-blocks.  It builds the chunk's tables, and each warp
 * decodes sub-blocks of its own, which are staged whole in shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/ans/kernels/ans.cuh"
#include "gpu/kernels/stage.cuh"

#define LADE_ANS_DESCRIPTION 96 /* words of a description, and zeros */
/* A lane that reads a damaged string may go this many bytes below its column.  With the bytes read
 * until bound() brings it back, this is less than the tables, which are before the columns. */
#define LADE_ANS_BELOW 1024
#define LADE_ANS_RAGGED 4 /* ragged rows at a time */

/* ---- tables ----------------------------------------------------------------------------- */

/*
 * Reads the description of 'words' words at 'off' (section 3), by a whole warp; false: corrupt, and
 * '*m' is unspecified.  Lane l reads symbols 8l to 8l + 7.  'text' is scratch in shared memory.
 */
LADE_DEVICE bool lade_ans_read(const lade_ans_head &h, uint32_t off, uint32_t words, uint32_t bits,
                               uint32_t *text, lade_ans_marks *m, uint32_t lane)
{
	if (words < 8)
		return false;
	/* Zeros follow. */
#pragma unroll
	for (uint32_t i = lane; i < LADE_ANS_DESCRIPTION; i += 32)
		text[i] = i < words ? lade_ans_word(h, off + 4 * i) : 0;
	__syncwarp();
	uint32_t there = text[lane / 4] >> 8 * (lane & 3) & 0xFF;
	uint32_t count = (uint32_t)__popc(there), upto = lade_warp_scan(count, lane);
	uint32_t present = __shfl_sync(LADE_FULL, upto, 31), nth = upto - count;
	uint32_t lengths = __funnelshift_r(text[8 + nth / 8], text[9 + nth / 8], 4 * nth);
	uint32_t q[8], taken = 0, sum = 0;
	bool fine = true;
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		bool is = there >> k & 1;
		q[k] = is ? lengths & 15 : 0;
		lengths >>= is ? 4 : 0;
		fine &= q[k] <= bits;
		taken += q[k];
	}
	uint32_t end = lade_warp_scan(taken, lane);
	uint32_t total = __shfl_sync(LADE_FULL, end, 31);
	uint32_t begin = 8 * (32 + (present + 1) / 2), at = begin + end - taken;
	/* If this holds, all mantissas are in the description; in any case they are in 'text'. */
	fine &= (begin + total + 31) / 32 == words;
	if (!__all_sync(LADE_FULL, fine))
		return false;
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		uint32_t low = text[at / 32], high = text[at / 32 + 1];
		uint32_t mantissa = __funnelshift_r(low, high, at) & ((1u << q[k]) - 1);
		at += q[k];
		q[k] = there >> k & 1 ? 1u << q[k] | mantissa : 0;
		sum += q[k];
	}
	if (__reduce_add_sync(LADE_FULL, sum) != 1u << bits)
		return false;
	lade_ans_mark(m, q, lane);
	return true;
}

/*
 * State L + i, as an entry of a table: | offset of the next state's entry for bits of zeros, in
 * bytes from the table's start, 16 | symbol 8 | bits 8 |.  The next address is one addition after
 * the bits are known.
 */
LADE_DEVICE uint32_t lade_ans_decode_entry(const lade_ans_marks *m, uint32_t bits, uint32_t i)
{
	uint32_t entry = lade_ans_entry(m, bits, i);
	return ((entry >> 16 << (entry & 0xFF)) - (1u << bits)) << 18 | (entry & 0xFFFF);
}

/* All tables, for a whole block. */
LADE_DEVICE void lade_ans_build(uint32_t *table, const lade_ans_marks *m, uint32_t bits,
                                uint32_t coded)
{
#pragma unroll 1
	for (uint32_t e = threadIdx.x; e < coded << bits; e += blockDim.x)
		table[e] = lade_ans_decode_entry(m + (e >> bits), bits, e & ((1u << bits) - 1));
}

/* ---- lanes ------------------------------------------------------------------------------ */

/*
 * A lane. 'now' and 'next' are two words of its string; 'used' bits of the first are read. 'at' is
 * the address of 'next' in the lane's column, which begins at 'floor'.  Below that, 'next' has any
 * value: GPUs read other parts of the block's memory, and bound() keeps a damaged string near.
 * Only the low 5 bits of 'used' and the low 8 of 'last' matter, and whether bit 5 of 'used' differs
 * from that of 'before', its value at the last refill. 'place' is the address of the next symbol's
 * entry in the first of the tables.
 */
struct lade_ans_lane {
	lade_ans_address at, floor, tables, place;
	uint32_t used, before, now, next, window, last;

	/* 'halves' is not 0.  The state's leading 1 is in the first half. */
	__device__ __forceinline__ bool open(lade_ans_address column, uint32_t halves,
	                                     uint32_t bits)
	{
		floor = column;
		at = column + 128 * ((int32_t)(halves - 1) / 2);
		now = lade_ans_load(at);
		at -= 128;
		next = at >= floor ? lade_ans_load(at) : 0;
		uint32_t zeros = (uint32_t)__clz((int)now);
		window = __funnelshift_l(next, now, zeros);
		place = tables + (lade_ans_address)(4 * ((window >> (31 - bits)) - (1u << bits)));
		used = zeros + bits + 1;
		before = 0;
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
			     " lop3.b32 t, %0, %4, 32, 0x28;" /* (used ^ before) & 32 */
			     " setp.ne.s32 more, t, 0;"
			     " @more mov.b32 %1, %2;"
			     " mad.lo.s32 %3, t, -4, %3;"
			     " @more ld.shared.u32 %2, [%3]; }"
			     : "+r"(used), "+r"(now), "+r"(next), "+r"(at)
			     : "r"(before)
			     : "memory");
#else
		if ((used ^ before) & 32) {
			now = next;
			at -= 128;
			next = at >= floor ? lade_ans_load(at) : 0;
		}
#endif
		before = used;
		window = __funnelshift_l(next, now, used);
	}

	/* After at most 32 symbols since the last time. */
	__device__ __forceinline__ void bound()
	{
		at = at > floor - LADE_ANS_BELOW ? at : floor - LADE_ANS_BELOW;
	}

	/* The next symbol's entry in the table that is 'table' bytes behind the first. */
	__device__ __forceinline__ uint32_t step(uint32_t table)
	{
		uint32_t entry = lade_ans_load(place + (lade_ans_address)table);
		place = tables + (lade_ans_address)(entry >> 16) +
		        4 * (lade_ans_address)__funnelshift_l(window, 0, entry);
		window = __funnelshift_l(0, window, entry);
		used += entry;
		last = entry;
		return entry;
	}

	/* The 4 symbols of a plane in a unit. */
	__device__ __forceinline__ uint32_t unit(uint32_t table)
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
		       (int32_t)(used & 31);
	}
};

/* ---- sub-blocks ------------------------------------------------------------------------- */

/* The 16 words of 4 planes' bytes, to elements: byte k of word p becomes byte p of word k. */
LADE_DEVICE void lade_ans_transpose(const uint32_t *plane, uint32_t *word)
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

/* Stores a unit's N words at 'to'; 'aligned': to its size, or to 16. */
template <int N> LADE_DEVICE void lade_ans_store(uint8_t *to, const uint32_t *word, bool aligned)
{
	if (!aligned) {
#pragma unroll
		for (int k = 0; k < 4 * N; k++)
			to[k] = (uint8_t)(word[k / 4] >> 8 * (k % 4));
	} else if (N == 1) {
		*(uint32_t *)to = word[0];
	} else if (N == 2) {
		*(uint2 *)to = make_uint2(word[0], word[N > 1]);
	} else {
#pragma unroll
		for (int k = 0; k + 3 < N; k += 4)
			((uint4 *)to)[k / 4] =
				make_uint4(word[k], word[k + 1], word[k + 2], word[k + 3]);
	}
}

/* What the lanes of a sub-block need to decode it. */
struct lade_ans_work {
	lade_ans_address raw; /* planes, 'count' bytes each */
	uint32_t modes, bits, count;
};

/* Decodes a unit to 'dst', by its lane; 'raw' is its address in the first raw plane.  READY: there
 * is one coded plane, and 'coded' has its symbols. */
template <int W, bool READY>
LADE_DEVICE void lade_ans_unit(const lade_ans_work &w, const lade_ans_info &info, lade_ans_lane *me,
                               lade_ans_address raw, uint32_t coded, uint8_t *dst, bool aligned)
{
	uint32_t table = 0;
	uint32_t plane[W > 4 ? 4 : W], word[W];
#pragma unroll
	for (int p = 0; p < W; p++) {
		uint32_t *to = &plane[p % 4];
		if (w.modes & (uint32_t)ANS_PLANE_CODED << 4 * p) {
			*to = READY ? coded : me->unit(table);
			table += 4u << w.bits;
		} else if (w.modes & (uint32_t)ANS_PLANE_RAW << 4 * p) {
			*to = lade_ans_load(raw);
			raw += (lade_ans_address)w.count;
		} else {
			*to = (uint32_t)((const uint8_t *)&info.value)[p] * 0x01010101u;
		}
		if (p % 4 == 3) {
			uint32_t transposed[4];
			lade_ans_transpose(plane, transposed);
#pragma unroll
			for (int k = 0; k < 4; k++)
				word[(W == 8 ? 2 * k + p / 4 : k) % W] = transposed[k];
		}
	}
	if (W == 1)
		word[0] = plane[0];
	if (W == 2 && w.modes & LADE_ANS_CROSSED) {
		uint32_t low = plane[0];
		plane[0] = lade_ans_cross(low, plane[W > 1]);
		plane[W > 1] = lade_ans_cross(plane[W > 1], low);
	}
	if (W == 2) {
		word[0] = __byte_perm(plane[0], plane[W > 1], 0x5140);
		word[W > 1] = __byte_perm(plane[0], plane[W > 1], 0x7362);
	}
	lade_ans_store<W>(dst, word, aligned);
}

/* Stores a word ROW rows of 32 words behind 'to', with an immediate offset. */
template <int ROW> LADE_DEVICE void lade_ans_put_row(uint32_t *to, uint32_t word)
{
#if LADE_ON_GPU
	asm volatile("st.global.u32 [%0 + %1], %2;"
	             :
	             : "l"(to), "n"(128 * ROW), "r"(word)
	             : "memory");
#else
	to[32 * ROW] = word;
#endif
}

/* Decodes ROWS rows of the only coded plane, a word a row; EVERY symbols take at most 32 bits. */
template <int ROWS, int EVERY>
LADE_DEVICE void lade_ans_rows(lade_ans_lane *me, uint32_t *word)
{
	uint32_t e[4 * ROWS];
#pragma unroll
	for (int k = 0; k < 4 * ROWS; k++) {
		e[k] = me->step(0);
		if (k % EVERY == EVERY - 1 || k == 4 * ROWS - 1)
			me->refill();
		if (k % 4 == 3)
			word[k / 4] = lade_ans_lane::join(e[k - 3], e[k - 2], e[k - 1], e[k]);
	}
	me->bound();
}

/* Four of them, where symbols take 'bits' at most. */
LADE_DEVICE void lade_ans_four_rows(lade_ans_lane *me, uint32_t bits, uint32_t *word)
{
	if (bits <= 10)
		lade_ans_rows<4, 3>(me, word);
	else
		lade_ans_rows<4, 2>(me, word);
}

/* Row ROW of 16, of bytes, of which three take at most 32 bits. */
template <int ROW>
LADE_DEVICE void lade_ans_byte_row(lade_ans_lane *me, uint32_t *to, uint32_t turn)
{
	uint32_t e[4];
#pragma unroll
	for (int k = 0; k < 4; k++) {
		e[k] = me->step(0);
		if ((4 * ROW + k) % 3 == 2 || 4 * ROW + k == 63)
			me->refill();
	}
	if (ROW % 8 == 7)
		me->bound();
	lade_ans_put_row<ROW>(to + (turn + ROW) % 32,
	                      lade_ans_lane::join(e[0], e[1], e[2], e[3]));
}

/* 16 rows of bytes. */
LADE_DEVICE void lade_ans_byte_rows(lade_ans_lane *me, uint32_t *to, uint32_t turn)
{
	lade_ans_byte_row<0>(me, to, turn);
	lade_ans_byte_row<1>(me, to, turn);
	lade_ans_byte_row<2>(me, to, turn);
	lade_ans_byte_row<3>(me, to, turn);
	lade_ans_byte_row<4>(me, to, turn);
	lade_ans_byte_row<5>(me, to, turn);
	lade_ans_byte_row<6>(me, to, turn);
	lade_ans_byte_row<7>(me, to, turn);
	lade_ans_byte_row<8>(me, to, turn);
	lade_ans_byte_row<9>(me, to, turn);
	lade_ans_byte_row<10>(me, to, turn);
	lade_ans_byte_row<11>(me, to, turn);
	lade_ans_byte_row<12>(me, to, turn);
	lade_ans_byte_row<13>(me, to, turn);
	lade_ans_byte_row<14>(me, to, turn);
	lade_ans_byte_row<15>(me, to, turn);
}

/*
 * Stores a unit of floats: all planes but the last are raw, the first at 'raw', the others 'count'
 * bytes apart.  'crossed' has ones for the bits that the planes have exchanged.
 */
template <int W>
LADE_DEVICE void lade_ans_float(const lade_ans_work &w, lade_ans_address raw, uint32_t coded,
                                uint32_t crossed, uint8_t *dst)
{
	uint32_t plane[4], word[4];
#pragma unroll
	for (int p = 0; p < W - 1; p++)
		plane[p] = lade_ans_load(raw + (lade_ans_address)(p * w.count));
	plane[W - 1] = coded;
	if (W == 2) {
		uint32_t low = (plane[0] & ~crossed) | (coded & crossed);
		uint32_t high = (coded & ~crossed) | (plane[0] & crossed);
		word[0] = __byte_perm(low, high, 0x5140);
		word[1] = __byte_perm(low, high, 0x7362);
	} else {
		lade_ans_transpose(plane, word);
	}
	lade_ans_store<W>(dst, word, true);
}

/* All units of a sub-block. */
template <int W>
LADE_DEVICE void lade_ans_units(const lade_ans_work &w, const lade_ans_info &info,
                                lade_ans_lane *me, uint32_t units, uint8_t *dst, uint32_t lane)
{
	dst = lade_global(dst);
	bool aligned = !((uintptr_t)dst & (W < 4 ? 4 * W - 1 : 15));
	uint32_t turn = lane, word[4];
	lade_ans_address raw = w.raw;
	int32_t left = (int32_t)units;
	bool alone = W < 8 && aligned && info.coded == 1;
	/* A whole sub-block of bytes takes two rounds of this loop. */
	if (W == 1 && alone && w.bits <= 10) {
#pragma unroll 1
		for (; left >= 512; left -= 512, turn += 16, dst += 2048)
			lade_ans_byte_rows(me, (uint32_t *)dst, turn);
	}
	/* All planes but the last are raw. */
	constexpr uint32_t FLOATS = W == 2 ? ANS_PLANE_CODED << 4 | ANS_PLANE_RAW
					   : ANS_PLANE_CODED << 12 | ANS_PLANE_RAW * 0x111;
	if ((W == 2 || W == 4) && alone && (w.modes & ~LADE_ANS_CROSSED) == FLOATS) {
		uint32_t crossed = w.modes & LADE_ANS_CROSSED ? 0x80808080 : 0;
#pragma unroll 1
		for (; left >= 128; left -= 128, turn += 4, raw += 512, dst += 512 * W) {
			lade_ans_four_rows(me, w.bits, word);
#pragma unroll
			for (uint32_t k = 0; k < 4; k++) {
				uint32_t place = 32 * k + (turn + k) % 32;
				lade_ans_float<(W == 2 ? 2 : 4)>(
					w, raw + (lade_ans_address)(4 * place), word[k], crossed,
					dst + 4 * W * place);
			}
		}
	}
	if (alone) {
#pragma unroll 1
		for (; left >= 128; left -= 128, turn += 4, raw += 512, dst += 512 * W) {
			lade_ans_four_rows(me, w.bits, word);
			if (W == 1) {
				uint32_t *to = (uint32_t *)dst;
				lade_ans_put_row<0>(to + turn % 32, word[0]);
				lade_ans_put_row<1>(to + (turn + 1) % 32, word[1]);
				lade_ans_put_row<2>(to + (turn + 2) % 32, word[2]);
				lade_ans_put_row<3>(to + (turn + 3) % 32, word[3]);
			} else {
#pragma unroll
				for (uint32_t k = 0; k < 4; k++) {
					uint32_t place = 32 * k + (turn + k) % 32;
					lade_ans_unit<W, true>(w, info, me,
					                       raw + (lade_ans_address)(4 * place),
					                       word[k], dst + 4 * W * place, true);
				}
			}
		}
	}
	if (W == 1 && alone) {
#pragma unroll 1
		for (; left >= 32; left -= 32, turn++, dst += 128) {
			lade_ans_rows<1, 2>(me, word);
			lade_ans_put_row<0>((uint32_t *)dst + turn % 32, word[0]);
		}
	}
#pragma unroll 1
	for (; left > 0; left -= 32, turn++, raw += 128, dst += 128 * W) {
		uint32_t place = turn % 32;
		if ((int32_t)place < left)
			lade_ans_unit<W, false>(w, info, me, raw + (lade_ans_address)(4 * place), 0,
			                        dst + 4 * W * place, aligned);
		me->bound();
	}
}

/*
 * Spreads the words of the ragged rows to the lanes' columns in place, from the last row to the
 * first, so that a row only overwrites words already read.  'sum' halves follow the full rows.
 */
LADE_DEVICE void lade_ans_spread_ragged(uint32_t *columns, uint32_t halves, uint32_t full,
                                        uint32_t most, uint32_t sum, uint32_t lane)
{
	const uint16_t *from = (const uint16_t *)(columns + 32 * full);
	uint32_t below = (1u << lane) - 1, end = sum;
#pragma unroll 1
	for (int32_t r = (int32_t)most; r > (int32_t)full; r -= LADE_ANS_RAGGED) {
		uint32_t first[LADE_ANS_RAGGED], second[LADE_ANS_RAGGED];
#pragma unroll
		for (int32_t k = 0; k < LADE_ANS_RAGGED; k++) {
			if (r - k <= (int32_t)full)
				continue;
			/* Of row r - k - 1, whose halves come before those of later rows. */
			bool some = (int32_t)halves > 2 * (r - k) - 2;
			bool both = (int32_t)halves > 2 * (r - k) - 1;
			uint32_t low = __ballot_sync(LADE_FULL, some);
			uint32_t high = __ballot_sync(LADE_FULL, both);
			end -= (uint32_t)__popc(low) + (uint32_t)__popc(high);
			uint32_t at = end + (uint32_t)__popc(low & below);
			at += (uint32_t)__popc(high & below);
			first[k] = some ? from[at] : 0;
			second[k] = both ? from[at + 1] : 0;
		}
		__syncwarp();
#pragma unroll
		for (int32_t k = 0; k < LADE_ANS_RAGGED; k++)
			if (r - k > (int32_t)full && (int32_t)halves > 2 * (r - k) - 2)
				columns[32 * (r - k - 1) + (int32_t)lane] =
					first[k] | second[k] << 16;
		__syncwarp();
	}
}

/*
 * A block's task, in shared memory: its chunk, and sub-blocks [begin, end) of that; 'active' of
 * them are staged at a time, 'block_cap' bytes each, from 'first' on. 'late': they overwrite the
 * marks, so they are staged after the tables are built.
 */
struct lade_ans_task {
	lade_ans_info info;
	const uint8_t *src;
	uint8_t *dst;
	uint32_t size, status; /* of the chunk */
	uint32_t begin, end, block_cap, active, marks, first;
	bool late;
};

/* Sets the task's sub-blocks and its layout of 'bytes' of shared memory. */
LADE_DEVICE void lade_ans_task_set(lade_ans_task *task, const lade_ans_info &info, uint32_t part,
                                   uint32_t parts, uint32_t bytes, uint32_t team)
{
	uint32_t share = parts == 1 ? info.block_count : (info.block_count + parts - 1) / parts;
	uint32_t begin = share * part < info.block_count ? share * part : info.block_count;
	uint32_t end = info.block_count - begin < share ? info.block_count : begin + share;
	uint32_t entries = 4 * (info.coded << info.bits);
	uint32_t marks = info.coded * (uint32_t)sizeof(lade_ans_marks);
	uint32_t block_cap =
		(info.raw << (info.block_log - info.width_log)) + 32 + 128 * info.rows + 16;
	uint32_t most = end - begin < team ? end - begin : team;
	bool late = entries + marks + block_cap > bytes;
	uint32_t first = entries + (late ? 0 : marks), active = (bytes - first) / block_cap;
	task->begin = begin;
	task->end = end;
	task->block_cap = block_cap;
	task->active = active < most ? active : most;
	task->late = late;
	task->marks = entries;
	task->first = first;
}

/* A sub-block's place in the chunk: its offset and size in 16 bytes, ~0: corrupt; its kind. */
struct __align__(16) lade_ans_block_place
{
	uint32_t off, size, kind, fill;
};

/* The elements of sub-block 'i'. */
LADE_DEVICE uint32_t lade_ans_count(const lade_ans_info &info, uint32_t i)
{
	uint32_t left = info.size - info.tail - (i << info.block_log);
	return (left < 1u << info.block_log ? left : 1u << info.block_log) >> info.width_log;
}

/* The shared memory of a block. */
struct lade_ans_smem {
	uint8_t *dynamic;
	const uint32_t *words;
	lade_ans_block_place *place; /* of the first 32 sub-blocks */
	unsigned long long *barrier;
};

/* The place of sub-block 'i', checked against the directory's rules and 'block_cap'. */
LADE_DEVICE lade_ans_block_place lade_ans_place_of(const lade_ans_smem &smem,
                                                   const lade_ans_task &task, uint32_t i)
{
	lade_ans_head h = {smem.words, task.src, task.size};
	const uint32_t mask = (1u << ANS_OFF_BITS) - 1;
	const lade_ans_info &info = task.info;
	uint32_t entry = lade_ans_word(h, info.directory + 4 * i);
	uint32_t next = lade_ans_word(h, info.directory + 4 * i + 4);
	uint32_t begin = entry & mask, end = next & mask, count = lade_ans_count(info, i);
	lade_ans_block_place p = {begin, end - begin, entry >> ANS_OFF_BITS, 0};
	/* Products are below 2^32, as offsets have 28 bits. */
	bool fine = p.kind <= ANS_STORED && 16 * begin >= info.tables && end >= begin &&
		    16 * end <= h.size;
	uint32_t head = !info.coded ? 0 : p.kind == ANS_WIDE ? 32 : 16;
	if (p.kind == ANS_STORED)
		fine &= p.size == ((count << info.width_log) + 15) / 16;
	else
		fine &= 16 * p.size >= info.raw * count + head && 16 * p.size <= task.block_cap;
	p.size = fine ? p.size : ~0u;
	return p;
}

/* Decodes the staged sub-block at 'bytes', by a whole warp; false: corrupt. */
LADE_DEVICE bool lade_ans_block(const lade_ans_task &task, const lade_ans_block_place &p,
                                uint32_t i, const uint32_t *tables, uint8_t *bytes, uint32_t lane)
{
	const lade_ans_info &info = task.info;
	uint32_t count = lade_ans_count(info, i), raw = info.raw * count, units = count / 4;
	uint32_t bits = info.bits;
	lade_ans_work w = {lade_ans_address_of(bytes), info.modes, bits, count};
	uint8_t *dst = task.dst + ((size_t)i << info.block_log);
	lade_ans_lane me = lade_ans_lane();
	me.tables = lade_ans_address_of(tables);
	bool has = ((lane + (units & ~31u) / 32) & 31) < units % 32 || units >= 32, fine = true;
	if (info.coded) {
		bool wide = p.kind == ANS_WIDE;
		uint32_t d = wide ? bytes[raw + lane]
				  : bytes[raw + lane / 2] >> 4 * (lane & 1) & 15;
		uint32_t sum = __reduce_add_sync(LADE_FULL, d);
		uint32_t have = (16 * p.size - raw - (wide ? 32 : 16)) / 2;
		uint32_t full = (have - sum) / 64, halves = 2 * full + d;
		uint32_t most = (__reduce_max_sync(LADE_FULL, halves) + 1) / 2;
		if (have < sum || (have - sum) % 64 > 7 || most > info.rows || full > info.rows)
			return false;
		uint32_t *columns = (uint32_t *)(bytes + raw + (wide ? 32 : 16));
		lade_ans_spread_ragged(columns, halves, full, most, sum, lane);
		fine = has ? halves && me.open(lade_ans_address_of(columns + lane), halves, bits)
		           : !halves;
	} else {
		fine = 16 * p.size - raw <= 15;
	}
	if (!__all_sync(LADE_FULL, fine))
		return false;
	switch (info.width_log) {
	case 0:
		lade_ans_units<1>(w, info, &me, units, dst, lane);
		break;
	case 1:
		lade_ans_units<2>(w, info, &me, units, dst, lane);
		break;
	case 2:
		lade_ans_units<4>(w, info, &me, units, dst, lane);
		break;
	default:
		lade_ans_units<8>(w, info, &me, units, dst, lane);
	}
	fine = !info.coded || !has || me.done();
	return __all_sync(LADE_FULL, fine);
}

/* ---- chunks ----------------------------------------------------------------------------- */

/* Writes bytes [begin, end) of a constant chunk, by a whole block. */
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

/* Copies from global memory to global memory, by WARPS warps. */
template <int WARPS>
LADE_DEVICE void lade_ans_copy_warps(uint8_t *dst, const uint8_t *src, uint32_t size,
                                     uint32_t thread)
{
	if (((uintptr_t)dst | (uintptr_t)src) & 15) {
		/* A share of whole lines each. */
		uint32_t share = ((size + WARPS - 1) / WARPS + 127) & ~127u;
		uint32_t begin = share * (thread / 32);
		if (begin < size)
			lade_ans_copy(dst + begin, src + begin,
			              size - begin < share ? size - begin : share, thread % 32);
		return;
	}
	const uint4 *from = (const uint4 *)lade_global(src);
	uint4 *to = (uint4 *)lade_global(dst);
	uint32_t n = size / 16, i = thread;
#pragma unroll 1
	for (; i + 96 * WARPS < n; i += 128 * WARPS) {
		uint4 w[4];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			w[k] = from[i + 32 * WARPS * k];
#pragma unroll
		for (uint32_t k = 0; k < 4; k++)
			to[i + 32 * WARPS * k] = w[k];
	}
#pragma unroll 1
	for (; i < n; i += 32 * WARPS)
		to[i] = from[i];
	if (thread < size % 16)
		dst[16 * n + thread] = src[16 * n + thread];
}

/* Whether the copies of the warps' first sub-blocks start before the tables are built. */
LADE_DEVICE bool lade_ans_copies_early(const lade_ans_task &task)
{
	return LADE_STAGE_BULK && !((uintptr_t)task.src & 15) && !task.late;
}

/* Finds the first sub-blocks; starts to copy those that are staged first, and prefetches the others
 * to the L2 cache; by a whole warp. */
LADE_DEVICE void lade_ans_prefetch(const lade_ans_smem &smem, const lade_ans_task &task,
                                   uint32_t lane)
{
	if (lane >= task.end - task.begin)
		return;
	lade_ans_block_place p = lade_ans_place_of(smem, task, task.begin + lane);
	smem.place[lane] = p;
	if (lane >= task.active && ~p.size)
		lade_stage_ahead(task.src + (size_t)16 * p.off, 16 * p.size);
	else if (lade_ans_copies_early(task) && ~p.size && p.kind != ANS_STORED)
		lade_stage_bulk(smem.barrier + lane,
		                (uint4 *)(smem.dynamic + task.first + lane * task.block_cap),
		                task.src + (size_t)16 * p.off, 16 * p.size);
}

/* Reads the table of the 'nth' coded plane, from 0, by a whole warp; false: corrupt. */
LADE_DEVICE bool lade_ans_table(const lade_ans_smem &smem, const lade_ans_task &task, uint32_t nth,
                                uint32_t lane)
{
	lade_ans_head h = {smem.words, task.src, task.size};
	uint32_t coded = 0, off = task.info.tables, words = 0;
#pragma unroll 1
	for (uint32_t n = 0; coded <= nth; n++) {
		if ((task.info.modes >> 4 * n & 15) != ANS_PLANE_CODED)
			continue;
		off += 4 * words;
		words = lade_ans_byte(h, ANS_AT_PLANES + 2 * n + 1);
		coded++;
	}
	return lade_ans_read(h, off, words, task.info.bits,
	                     (uint32_t *)smem.dynamic + ((size_t)nth << task.info.bits),
	                     (lade_ans_marks *)(smem.dynamic + task.marks) + nth, lane);
}

/* Decodes sub-block 'i' by a whole warp; 'first': it is the warp's first.  False: it is corrupt, or
 * the tables are not 'good'. */
LADE_DEVICE bool lade_ans_decode_one(const lade_ans_smem &smem, const lade_ans_task &task,
                                     lade_stager *stager, uint32_t i, bool first, bool good)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane();
	uint32_t nth = i - task.begin;
	lade_ans_block_place p = nth < 32 ? smem.place[nth] : lade_ans_place_of(smem, task, i);
	uint8_t *staged = smem.dynamic + task.first + warp * task.block_cap;
	const uint8_t *from = task.src + (size_t)16 * p.off;
	if (!~p.size)
		return false;
	if (p.kind == ANS_STORED) {
		if (good)
			lade_ans_copy_warps<1>(task.dst + ((size_t)i << task.info.block_log), from,
			                       lade_ans_count(task.info, i) << task.info.width_log,
			                       lane);
		return good;
	}
	if (!first || !lade_ans_copies_early(task))
		lade_stage_begin(stager, (uint4 *)staged, from, 16 * p.size, lane);
	lade_stage_wait<0>(stager);
	return good && lade_ans_block(task, p, i, (const uint32_t *)smem.dynamic, staged, lane);
}

/* Decodes sub-blocks of a coded chunk, by a whole block; false: corrupt. */
template <int TEAM>
LADE_DEVICE bool lade_ans_blocks(const lade_ans_smem &smem, const lade_ans_task &task)
{
	uint32_t warp = threadIdx.x / 32, lane = lade_lane();
	lade_stager stager = {smem.barrier + warp, 0};
	bool fine = true;
	/* The last warp finds the first sub-blocks of all of them. */
	if (warp == TEAM - 1)
		lade_ans_prefetch(smem, task, lane);
	for (uint32_t k = warp; k < task.info.coded; k += TEAM)
		fine &= lade_ans_table(smem, task, k, lane);
	bool good = !__syncthreads_or(!fine);
	if (good)
		lade_ans_build((uint32_t *)smem.dynamic,
		               (const lade_ans_marks *)(smem.dynamic + task.marks), task.info.bits,
		               task.info.coded);
	__syncthreads();
	bool first = true;
	if (warp < task.active) {
#pragma unroll 1
		for (uint32_t i = task.begin + warp; i < task.end; i += task.active) {
			fine &= lade_ans_decode_one(smem, task, &stager, i, first, good);
			first = false;
			if (!good)
				break;
		}
	}
	return !__syncthreads_or(!fine) && good;
}

/* Writes a part of a chunk that is raw or constant, by a whole block. */
template <int TEAM>
LADE_DEVICE void lade_ans_uncoded(const lade_ans_task &task, uint32_t part, uint32_t parts)
{
	/* A share of whole lines. */
	uint32_t size = task.info.size;
	uint32_t share = parts == 1 ? size : ((size + parts - 1) / parts + 127) & ~127u;
	uint32_t begin = (uint64_t)share * part < size ? share * part : size;
	uint32_t end = size - begin < share ? size : begin + share;
	if (task.info.kind == ANS_CONSTANT)
		lade_ans_fill(task.info, task.dst, begin, end);
	else
		lade_ans_copy_warps<TEAM>(task.dst + begin, task.src + ANS_HEADER + begin,
		                          end - begin, threadIdx.x);
}

template <int TEAM>
LADE_DEVICE void lade_ans_decode_part(const lade_gpu_batch &batch, lade_ans_parts *done,
                                      uint32_t parts, uint32_t bytes)
{
	LADE_SHARED(uint32_t, words, [LADE_ANS_HEAD / 4]);
	LADE_SHARED(unsigned long long, barrier, [TEAM]);
	LADE_SHARED(lade_ans_block_place, place, [32]);
	LADE_SHARED(lade_ans_task, task);
	LADE_SHARED_DYNAMIC(uint8_t, dynamic);
	uint32_t i = parts == 1 ? blockIdx.x : blockIdx.x / parts;
	uint32_t part = blockIdx.x - i * parts, lane = lade_lane();
	if (threadIdx.x < 32) {
		lade_gpu_chunk c = lade_gpu_chunk();
		lade_ans_info info = lade_ans_info();
		uint32_t status = lade_chunk_get_now(batch, i, &c);
		if (status == LADE_GPU_OK) {
			lade_ans_head head = lade_ans_head_get(words, c.src, c.src_size, lane);
			status = lade_ans_parse(head, &info, lane);
			if (status == LADE_GPU_OK && info.size > c.dst_cap)
				status = LADE_GPU_NOSPACE;
		}
		if (lane == 0) {
			task.info = info;
			task.status = status;
			task.src = c.src;
			task.size = c.src_size;
			task.dst = c.dst;
			if (status == LADE_GPU_OK && info.kind == ANS_CODED)
				lade_ans_task_set(&task, info, part, parts, bytes, TEAM);
		}
	} else if (threadIdx.x < 32 + TEAM) {
		lade_stage_make(&barrier[lane]);
	}
	__syncthreads();
	uint32_t status = task.status, size = task.info.size;
	if (status == LADE_GPU_OK && task.info.kind == ANS_CODED) {
		lade_ans_smem smem = {dynamic, words, place, barrier};
		uint32_t tail = task.info.tail;
		if (part == parts - 1 && threadIdx.x < tail)
			task.dst[size - tail + threadIdx.x] =
				task.src[task.size - tail + threadIdx.x];
		if (!lade_ans_blocks<TEAM>(smem, task))
			status = LADE_GPU_CORRUPT;
	} else if (status == LADE_GPU_OK) {
		lade_ans_uncoded<TEAM>(task, part, parts);
	}
	if (threadIdx.x != 0)
		return;
	if (parts == 1) {
		lade_chunk_put(batch, i, status, size);
	} else {
		atomicMax(&done[i].status, status);
		__threadfence();
		if (atomicAdd(&done[i].done, 1u) == parts - 1)
			lade_chunk_put(batch, i, atomicMax(&done[i].status, 0u), size);
	}
}

/* ---- kernels ---------------------------------------------------------------------------- */

/*
 * map:    block = a part of a chunk, of 'parts'; warp = a sub-block, and others behind it; lane =
 *         every 32nd unit of 4 elements
 * shared: 'bytes' of dynamic memory, at least LADE_ANS_DECODE_LEAST: tables, and sub-blocks
 * block:  256 threads; for few chunks 512
 *
 * The i-th block takes the i-th part; batch.next is not used.  'done' is a table of zeros, an
 * entry a chunk, and not touched where 'parts' is 1.
 */
extern "C" __global__ void __launch_bounds__(256, 5)
	lade_ans_decode(lade_gpu_batch batch, lade_ans_parts *done, uint32_t parts, uint32_t bytes)
{
	lade_ans_decode_part<8>(batch, done, parts, bytes);
}

extern "C" __global__ void __launch_bounds__(512, 2)
	lade_ans_decode_wide(lade_gpu_batch batch, lade_ans_parts *done, uint32_t parts,
                             uint32_t bytes)
{
	lade_ans_decode_part<16>(batch, done, parts, bytes);
}

/*
 * The decoded sizes, from the headers.
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
