/*
 * ans_count.cuh: what the encoder of ANS (docs/format/ans.md, section 7) computes from a chunk's
 * counts: modes of planes, frequencies, tables, and their descriptions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_COUNT_CUH
#define LADE_CUDA_ANS_COUNT_CUH

#include "codec/ans/kernels/ans.cuh"

/* Sums over the warp, of numbers whose sum fits. */
LADE_DEVICE uint32_t lade_ans_sum(uint32_t v)
{
	return __reduce_add_sync(LADE_FULL, v);
}

/* The word at 'from'; WHOLE: it is aligned. */
template <bool WHOLE> LADE_DEVICE uint32_t lade_ans_word_at(const uint8_t *from)
{
	uint32_t value = WHOLE ? __ldg((const uint32_t *)from) : 0;
#pragma unroll
	for (int b = WHOLE ? 4 : 0; b < 4; b++)
		value |= (uint32_t)__ldg(from + b) << 8 * b;
	return value;
}

/* A chunk that a block encodes, in shared memory. */
struct lade_ans_chunk {
	const uint8_t *src;
	uint8_t *dst;
	uint32_t size, limit; /* decoded bytes; the most encoded ones */
	uint32_t block_log, block_count, tail;
	bool crossed; /* its elements */
};

/* The words of each plane in sub-block 'i' of 2^block_log bytes. */
template <int W>
LADE_DEVICE uint32_t lade_ans_units(const lade_ans_chunk &p, uint32_t i, uint32_t block_log)
{
	uint32_t left = p.size - p.tail - (i << block_log), block = 1u << block_log;
	return (left < block ? left : block) / (4 * W);
}

/* The modes of its planes: those that are coded, and those that are raw, a bit each; and log2 of
 * the states. */
struct lade_ans_choice {
	uint32_t coded, raw, bits;
};

/* The chunk that a block works on. */
struct lade_ans_current {
	lade_ans_chunk chunk;
	uint32_t i, status;
};

/* Reads the batch's entry of chunk t->i, by one thread.  A chunk with an error gets size 0.
 * 'block_log' 0: by the chunk's size. */
template <int W>
LADE_DEVICE void lade_ans_take(const lade_gpu_batch &batch, uint32_t block_log, lade_ans_current *t)
{
	lade_gpu_chunk c = {nullptr, nullptr, 0, 0};
	uint32_t status = t->i < batch.count ? lade_chunk_get_now(batch, t->i, &c) : LADE_GPU_ARG;
	if (status == LADE_GPU_OK && c.src_size > ANS_SIZE_MAX)
		status = LADE_GPU_LIMIT;
	if (status != LADE_GPU_OK)
		c.src_size = 0;
	uint32_t most = ANS_HEADER + c.src_size;
	if (!block_log)
		block_log = ANS_BLOCK_LOG_OF(c.src_size, W);
	t->status = status;
	t->chunk.src = c.src;
	t->chunk.dst = c.dst;
	t->chunk.size = c.src_size;
	t->chunk.limit = most <= c.dst_cap ? most : c.dst_cap;
	t->chunk.tail = c.src_size & (ANS_UNIT * W - 1);
	t->chunk.crossed = false;
	t->chunk.block_log = block_log;
	t->chunk.block_count = (c.src_size - t->chunk.tail + (1u << block_log) - 1) >> block_log;
}

/* ---- frequencies ------------------------------------------------------------------------ */

/* log2 in 1/65536, to 0.001: a cubic between the powers of two. */
LADE_DEVICE uint32_t lade_ans_log2(uint32_t v)
{
	uint32_t q = 31 - (uint32_t)__clz((int)v);
	uint32_t m = (q < 16 ? v << (16 - q) : v >> (q - 16)) - 65536;
	return (q << 16) + m + ((m * (65536 - m) >> 16) * (27584 - (m * 10191 >> 16)) >> 16);
}

/* A count without the share of one state: each symbol gets one state, and more in proportion to
 * this number. */
LADE_DEVICE uint32_t lade_ans_above(uint32_t count, uint32_t total, uint32_t bits)
{
	uint32_t least = total >> bits;
	return count > least ? count - least : 0;
}

/*
 * Frequencies that sum to 1 << bits, from counts whose sum is about 'total' < 2^17 + 256, by a
 * whole warp: lane l has symbols 8l to 8l + 7. '*first' is the sum of the frequencies before these.
 */
LADE_DEVICE void lade_ans_normalise(const uint32_t count[8], uint32_t total, uint32_t bits,
                                    uint32_t freq[8], uint32_t *first, uint32_t lane)
{
	uint32_t mine = 0;
#pragma unroll
	for (int k = 0; k < 8; k++)
		mine += lade_ans_above(count[k], total, bits) | (count[k] ? 1u << 20 : 0);
	uint32_t upto = lade_warp_scan(mine, lane), below = upto - mine;
	uint32_t all = __shfl_sync(LADE_FULL, upto, 31);
	float scale = (float)((1u << bits) - (all >> 20)) / (float)(all & 0xFFFFF);
	uint32_t sum = below & 0xFFFFF, before = (uint32_t)((float)sum * scale + 0.5f);
	*first = before + (below >> 20);
#pragma unroll
	for (int k = 0; k < 8; k++) {
		sum += lade_ans_above(count[k], total, bits);
		uint32_t next = (uint32_t)((float)sum * scale + 0.5f);
		freq[k] = count[k] ? next - before + 1 : 0;
		before = next;
	}
}

/* ---- tables ----------------------------------------------------------------------------- */

/*
 * A symbol's entry.  With t = entry + state X, the encoder outputs the low nb = t >> 12 & 15 bits
 * of X, and the new state is (X >> nb) + (t >> 18).  Bits 16 and 17 of t are 0.
 */
LADE_DEVICE uint32_t lade_ans_symbol(uint32_t freq, uint32_t first, uint32_t bits)
{
	uint32_t most = bits - 31 + (uint32_t)__clz((int)freq);
	return (((1u << bits) + first - freq) << 18) + (most << 12) - (freq << most);
}

/* Puts the low 'size' <= 11 bits of 'value' at bit 'at' of zeroed words. */
LADE_DEVICE void lade_ans_put_bits(uint32_t *words, uint32_t at, uint32_t value, uint32_t size)
{
	if (!size)
		return;
	atomicOr(&words[at / 32], value << (at & 31));
	if ((at & 31) + size > 32)
		atomicOr(&words[at / 32 + 1], value >> (32 - (at & 31)));
}

/* Writes a table's description (section 3), by a whole warp; returns its words. */
LADE_DEVICE uint32_t lade_ans_describe(uint32_t *words, const uint32_t freq[8], uint32_t lane)
{
	uint32_t there = 0, taken = 0;
	words[lane] = 0;
	words[lane + 32] = 0;
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		there |= (uint32_t)(freq[k] > 0) << k;
		taken += freq[k] ? 31 - (uint32_t)__clz((int)freq[k]) : 0;
	}
	uint32_t count = (uint32_t)__popc(there), upto = lade_warp_scan(count, lane);
	uint32_t end = lade_warp_scan(taken, lane);
	uint32_t begin = 8 * (32 + (__shfl_sync(LADE_FULL, upto, 31) + 1) / 2);
	uint32_t nth = upto - count, at = begin + end - taken;
	lade_ans_put_bits(words, 8 * lane, there, 8);
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		if (!freq[k])
			continue;
		uint32_t q = 31 - (uint32_t)__clz((int)freq[k]);
		lade_ans_put_bits(words, 256 + 4 * nth, q, 4);
		lade_ans_put_bits(words, at, freq[k] - (1u << q), q);
		nth++;
		at += q;
	}
	__syncwarp();
	return (begin + __shfl_sync(LADE_FULL, end, 31) + 31) / 32;
}

/* ---- modes of planes -------------------------------------------------------------------- */

#define LADE_ANS_WARPS 16 /* of a block at most */

/* A chunk's state in static shared memory. */
struct lade_ans_chunk_state {
	uint32_t mode[8], word[8];   /* of the planes; values or words of tables */
	uint32_t least[8], extra[8]; /* of the coded planes, in 1/16 bits a count */
	uint32_t size[LADE_ANS_WARPS]; /* | rows 16 | of the warps' sub-blocks, in 16 bytes, 16 | */
	lade_ans_choice choice;
};

/* The shared memory of a block. */
struct lade_ans_memory {
	uint8_t *dynamic;
	uint32_t bytes; /* of it */
	lade_ans_chunk_state *state;
};

/* The k-th description.  The dynamic memory has symbols, descriptions, then columns or, at its end,
 * counts. */
LADE_DEVICE uint32_t *lade_ans_description(const lade_ans_memory &r, uint32_t coded, uint32_t k)
{
	return (uint32_t *)(r.dynamic + 1024 * coded + 256 * k);
}

/*
 * A plane's counts, summed over the copies and scaled to a sum below 2^17, by a whole warp: lane l
 * has symbols 8l to 8l + 7.  Returns the sum.
 */
template <int W>
LADE_DEVICE uint32_t lade_ans_gather(const uint32_t *counts, uint32_t count[8], uint32_t lane)
{
	uint32_t total = 0;
#pragma unroll
	for (uint32_t c = 0; c < 8 / W; c++) {
		const uint4 *two = (const uint4 *)(counts + 256 * W * c) + 2 * lane;
		uint4 low = two[0], high = two[1];
		uint32_t more[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
		for (int k = 0; k < 8; k++)
			count[k] = c ? count[k] + more[k] : more[k];
	}
#pragma unroll
	for (int k = 0; k < 8; k++)
		total += count[k];
	total = lade_ans_sum(total);
	uint32_t shift = total >> 16 ? 16 - (uint32_t)__clz((int)total) : 0;
	if (shift) {
		total = 0;
#pragma unroll
		for (int k = 0; k < 8; k++)
			total += count[k] = (count[k] >> shift) + (count[k] > 0);
		total = lade_ans_sum(total);
	}
	return total;
}

/* A plane's mode, its value if constant, its cost if coded, and the extra cost of 2^10 states
 * rather than more, both in 1/16 bits a count. */
struct lade_ans_cost {
	uint32_t mode, value, least, extra;
};

/* A symbol's part of 'least' and 'extra'; 'all' is log2 of the total. */
LADE_DEVICE void lade_ans_cost_add(uint32_t count, uint32_t total, uint32_t all, lade_ans_cost *v)
{
	/* A count that was rounded up may be above the total. */
	uint32_t own = lade_ans_log2(count), log = own < all ? (all - own) >> 8 : 0;
	v->least += count * log >> 4;
	/* Symbols that are rarer than one state get one, and the others lose it. */
	if (1024 * count < total)
		v->extra += ((total - 1024 * count) * 23 >> 10) -
			    (log > 2560 ? count * (log - 2560) >> 4 : 0);
}

/* Chooses the mode, from sums over all symbols; 'present' symbols occur, 'value' is one of them.  A
 * plane is coded where that saves at least 1/64 of it, with an estimate of its table's bits. */
LADE_DEVICE lade_ans_cost lade_ans_mode_by_cost(const lade_ans_cost &v, uint32_t present,
                                                uint32_t total)
{
	if (present == 1)
		return {ANS_PLANE_CONSTANT, v.value, 0, 0};
	if (v.least + 16 * (256 + 7 * present) < total * 126)
		return {ANS_PLANE_CODED, 0, v.least, v.extra};
	return {ANS_PLANE_RAW, 0, 0, 0};
}

LADE_DEVICE lade_ans_cost lade_ans_cost_of(const uint32_t count[8], uint32_t total, uint32_t lane)
{
	lade_ans_cost v = {ANS_PLANE_RAW, 0, 0, 0};
	uint32_t present = 0, all = lade_ans_log2(total);
#pragma unroll
	for (int k = 0; k < 8; k++) {
		if (!count[k])
			continue;
		present++;
		v.value = 8 * lane + k;
		lade_ans_cost_add(count[k], total, all, &v);
	}
	v.least = lade_ans_sum(v.least);
	v.extra = lade_ans_sum(v.extra);
	v.value = __reduce_max_sync(LADE_FULL, v.value);
	return lade_ans_mode_by_cost(v, lade_ans_sum(present), total);
}

LADE_DEVICE uint32_t lade_ans_bits_of(uint32_t wanted, uint32_t coded, uint32_t least,
                                      uint32_t extra)
{
	uint32_t bits = wanted ? wanted : extra > least / 200 ? 11 : 10;
	while (coded << bits > ANS_ENTRIES_MAX)
		bits--;
	return bits;
}

/* Writes the k-th coded plane's table, or with 'words' its description, by a whole warp. */
LADE_DEVICE void lade_ans_table(const lade_ans_memory &r, const uint32_t count[8], uint32_t total,
                                uint32_t k, const lade_ans_choice &c, uint32_t *words,
                                uint32_t lane)
{
	uint32_t freq[8], first;
	lade_ans_normalise(count, total, c.bits, freq, &first, lane);
	if (words) {
		uint32_t n = lade_ans_describe(
			lade_ans_description(r, (uint32_t)__popc((int)c.coded), k), freq, lane);
		if (lane == 0)
			*words = n;
		return;
	}
#pragma unroll
	for (int i = 0; i < 8; i++) {
		uint32_t f = freq[i];
		freq[i] = f ? lade_ans_symbol(f, first, c.bits) : 0;
		first += f;
	}
	uint4 *two = (uint4 *)(r.dynamic + 1024 * k) + 2 * lane;
	two[0] = {freq[0], freq[1], freq[2], freq[3]};
	two[1] = {freq[4], freq[5], freq[6], freq[7]};
}

/* The planes' modes and the states, once all costs are known, by a whole warp. */
template <int W>
LADE_DEVICE lade_ans_choice lade_ans_choose(const lade_ans_memory &r, uint32_t wanted,
                                            uint32_t lane)
{
	bool is = lane < W;
	uint32_t mode = is ? r.state->mode[lane] : (uint32_t)ANS_PLANE_CONSTANT;
	uint32_t least = lade_ans_sum(is ? r.state->least[lane] : 0);
	uint32_t extra = lade_ans_sum(is ? r.state->extra[lane] : 0);
	uint32_t coded = __ballot_sync(LADE_FULL, mode == ANS_PLANE_CODED);
	uint32_t raw = __ballot_sync(LADE_FULL, mode == ANS_PLANE_RAW);
	return {coded, raw, lade_ans_bits_of(wanted, (uint32_t)__popc((int)coded), least, extra)};
}

#endif
