/*
 * zstd_fse.cuh: bits of a source, and tables of finite state entropy (RFC 8878, 4.1), by a warp.
 *
 * A table's entry has what a state says, and where it leads:
 *
 *     | state bits 5 | extra bits 6 | base 11 | next 10 |     from the lowest bit on
 *
 * The sum of three entries' low 11 bits has the sums of both numbers of bits: 16 + 16 + 31 extra
 * ones, and 9 + 9 + 8 of states at most.  A base that has 11 extra bits or more is 1 << these.
 * States count from the table's size on: the next one is 'next' with the state bits behind it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_FSE_CUH
#define LADE_CUDA_ZSTD_FSE_CUH

#include "codec/zstd/kernels/zstd_frame.cuh"

/* What a table is for.  Weights are those of a Huffman table: their 'base' is the weight. */
enum { LADE_ZSTD_LENGTHS, LADE_ZSTD_OFFSETS, LADE_ZSTD_MATCHES, LADE_ZSTD_WEIGHTS };

/* Words that hold any descriptions: three tables of sequences have 121 symbols of 14 bits at most,
 * and that of weights, which ends within 128 bytes, is the longest of others. */
#define LADE_ZSTD_WORDS 72u
#define LADE_ZSTD_MOST (4 * LADE_ZSTD_WORDS - 4) /* bytes of them that count */

/* A warp's memory while it makes a table. */
struct lade_zstd_maker {
	uint32_t words[LADE_ZSTD_WORDS]; /* bytes of the source, zeros behind its end */
	int16_t count[256]; /* of a symbol in a table; -1: less than one */
	uint16_t next[256]; /* the symbol's next state; before: its first place in 'order' */
	uint8_t order[512]; /* symbols, as often as they are in the table */
	uint8_t cell[512];  /* the table's symbols */
};

static __device__ __forceinline__ uint32_t lade_zstd_log2(uint32_t v)
{
	return 31 - __clz((int)v);
}

/*
 * The bytes 'at' to at + 3 of a source, of which only those in [from, end) are read; those
 * behind are 0.  'at' is at least 'from'; both ends are below 2^31.
 */
static __device__ __forceinline__ uint32_t lade_zstd_word(const uint8_t *src, uint32_t from,
                                                          uint32_t end, uint32_t at)
{
	uint32_t over = (uint32_t)(uintptr_t)(src + at) & 3, value = 0;
	if (at >= from + over && at + 8 <= end) {
		const uint32_t *p = (const uint32_t *)lade_global(src + at - over);
		return __funnelshift_r(p[0], p[1], 8 * over);
	}
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		if (at + k < end)
			value |= (uint32_t)src[at + k] << (8 * k);
	return value;
}

/* Brings the first bytes of [at, end) to m->words. */
static __device__ __forceinline__ void lade_zstd_fetch(lade_zstd_maker *m, const uint8_t *src,
                                                       uint32_t at, uint32_t end, uint32_t lane)
{
	__syncwarp();
#pragma unroll
	for (uint32_t i = lane; i < LADE_ZSTD_WORDS; i += 32)
		m->words[i] = lade_zstd_word(src, at, end, at + 4 * i);
	__syncwarp();
}

/* 32 bits from bit 'at' on. */
static __device__ __forceinline__ uint32_t lade_zstd_peek(const uint32_t *words, uint32_t at)
{
	return __funnelshift_r(words[at / 32], words[at / 32 + 1], at);
}

/*
 * Reads the description of a table, of which the first byte is byte '*at' of m->words: counts of
 * 'symbols' symbols at most.  Stores its end, or one behind 'end', where it is wanting, and its
 * log; that is 0 where it is wrong.  One lane.
 *
 * Bounds: a symbol takes 12 bits at most, and two more for each three symbols that have no place:
 * 256 would be 400 bytes, but the words end, and reads stay in them.
 */
static __device__ __noinline__ uint32_t lade_zstd_counts_read(lade_zstd_maker *m, uint32_t *at,
                                                              uint32_t end, uint32_t symbols,
                                                              uint32_t log_max)
{
	uint32_t p = 8 * *at, s = 0;
	uint32_t log = 5 + (lade_zstd_peek(m->words, p) & 15);
	p += 4;
	if (log > log_max)
		return 0;
	uint32_t left = 1u << log;
	while (left && s < symbols && p < (LADE_ZSTD_WORDS - 1) * 32) {
		uint32_t bits = lade_zstd_log2(left + 1) + 1, low = (1u << (bits - 1)) - 1;
		uint32_t v = lade_zstd_peek(m->words, p) & ((1u << bits) - 1);
		uint32_t threshold = (1u << bits) - 1 - (left + 1);
		if ((v & low) < threshold) {
			v &= low;
			bits--;
		} else if (v > low) {
			v -= threshold;
		}
		p += bits;
		left -= v ? v - 1 : 1;
		m->count[s++] = (int16_t)((int32_t)v - 1);
		if (v != 1)
			continue;
		uint32_t more = 3;
		while (more == 3 && p < (LADE_ZSTD_WORDS - 1) * 32) {
			more = lade_zstd_peek(m->words, p) & 3;
			p += 2;
			for (uint32_t k = 0; k < more && s < symbols; k++)
				m->count[s++] = 0;
		}
	}
	for (; s < symbols; s++)
		m->count[s] = 0;
	*at = (p + 7) / 8;
	return left || *at > end ? 0 : log;
}

/* A symbol's extra bits and base, as an entry has them.  A match's length is 3 more. */
static __device__ __forceinline__ uint32_t lade_zstd_meaning(int kind, uint32_t s)
{
	if (kind == LADE_ZSTD_WEIGHTS)
		return s << 11;
	if (kind == LADE_ZSTD_OFFSETS)
		return s << 5;
	uint32_t plain = kind == LADE_ZSTD_LENGTHS ? 16 : 32, extra, base;
	if (s < plain)
		return s << 11;
	uint32_t k = s - plain;
	if (kind == LADE_ZSTD_LENGTHS && k >= 9)
		extra = k - 3;
	else if (kind == LADE_ZSTD_MATCHES && k >= 11)
		extra = k - 4;
	else /* 1, 1, 1, 1, 2, 2, 3, 3, 4, and for matches 4, 5 */
		extra = k < 4 ? 1 : k < 8 ? k / 2 : k < 10 ? 4 : 5;
	if (k < 4)
		base = plain + 2 * k;
	else if (kind == LADE_ZSTD_LENGTHS)
		base = k < 6 ? 24 + 4 * (k - 4) : k < 8 ? 32 + 8 * (k - 6) : 48;
	else
		base = k < 6   ? 40 + 4 * (k - 4)
		       : k < 8 ? 48 + 8 * (k - 6)
		       : k < 10 ? 64 + 16 * (k - 8)
		                : 96;
	if (kind == LADE_ZSTD_LENGTHS ? k >= 9 : k >= 11)
		base = 1u << extra;
	return extra << 5 | (extra < 11 ? base << 11 : 0);
}

/* The counts that the format has for tables which are not described. */
static __device__ __forceinline__ int32_t lade_zstd_predefined(int kind, uint32_t s)
{
	if (kind == LADE_ZSTD_LENGTHS)
		return s == 0                            ? 4
		       : s == 1 || s == 25               ? 3
		       : s >= 32                         ? -1
		       : (s >= 13 && s < 16) || s >= 27 ? 1
		                                         : 2;
	if (kind == LADE_ZSTD_OFFSETS)
		return s >= 29 ? 0 : s >= 24 ? -1 : s >= 6 && s < 9 ? 2 : 1;
	return s == 1 ? 4 : s == 2 ? 3 : s >= 46 ? -1 : s >= 3 && s < 9 ? 2 : 1;
}

/*
 * Makes the table of 1 << log entries, 32 at least, from the counts of 'symbols' symbols, which add
 * up to that.  Every next state is a state of the table, whatever bits are read.
 */
static __device__ __noinline__ void lade_zstd_table_make(lade_zstd_maker *m, uint32_t *table,
                                                         int kind, uint32_t log, uint32_t symbols,
                                                         uint32_t lane)
{
	m = lade_shared(m);
	table = lade_shared(table);
	uint32_t size = 1u << log, mask = size - 1, below = (1u << lane) - 1;
	uint32_t step = (size >> 1) + (size >> 3) + 3, rare = 0, sum = 0;
	__syncwarp();
#pragma unroll 1
	for (uint32_t g = 0; g < symbols; g += 32) {
		uint32_t s = g + lane;
		int32_t count = s < symbols ? m->count[s] : 0;
		uint32_t few = __ballot_sync(LADE_FULL, count < 0);
		if (count < 0)
			m->cell[(mask - rare - __popc(few & below)) & 511] = (uint8_t)s;
		rare += __popc(few);
		uint32_t places = count > 0 ? (uint32_t)count : 0;
		uint32_t end = sum + lade_warp_scan(places, lane);
		if (s < symbols)
			m->next[s] = (uint16_t)(end - places);
		sum = __shfl_sync(LADE_FULL, end, 31);
	}
	__syncwarp();
#pragma unroll 1
	for (uint32_t s = 0; s < symbols; s++) {
		int32_t count = m->count[s];
		uint32_t first = m->next[s];
		for (int32_t k = (int32_t)lane; k < count; k += 32)
			m->order[(first + (uint32_t)k) & 511] = (uint8_t)s;
	}
	__syncwarp();
#pragma unroll 1
	for (uint32_t s = lane; s < symbols; s += 32)
		m->next[s] = (uint16_t)(m->count[s] < 0 ? 1 : m->count[s]);
	/* Symbols go to every step-th cell that no rare one has. */
	uint32_t k = 0;
#pragma unroll 1
	for (uint32_t i = lane; i < size; i += 32) {
		uint32_t place = i * step & mask;
		bool open = place + rare < size;
		uint32_t all = __ballot_sync(LADE_FULL, open);
		if (open)
			m->cell[place] = m->order[(k + __popc(all & below)) & 511];
		k += __popc(all);
	}
	__syncwarp();
#pragma unroll 1
	for (uint32_t i = lane; i < size; i += 32) {
		uint32_t s = m->cell[i];
		uint32_t alike = __match_any_sync(LADE_FULL, s);
		uint32_t n = m->next[s] + __popc(alike & below);
		__syncwarp();
		if (alike >> lane == 1) /* the last of them */
			m->next[s] = (uint16_t)(n + 1);
		__syncwarp();
		uint32_t bits = log - lade_zstd_log2(n);
		table[i] = lade_zstd_meaning(kind, s) | bits | n << 22;
	}
	__syncwarp();
}

#endif
