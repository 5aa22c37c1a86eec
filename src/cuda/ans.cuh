/*
 * ans.cuh: headers and tables of the ANS format (docs/format/ans.md, sections 2 to 4), as the
 * decoding and the encoding kernels read and make them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_CUH
#define LADE_CUDA_ANS_CUH

#include "codec/ans/layout.h"
#include "cuda/lz_exec.cuh"

/* Functions that stay out of line, for the registers of the loops around them. */
#if LADE_ON_GPU
#define LADE_ANS_APART static __device__ __noinline__
#else
#define LADE_ANS_APART static __device__
#endif

/* Copies to any address, by a whole warp. */
LADE_ANS_APART void lade_ans_copy(uint8_t *dst, const uint8_t *src, uint32_t size, uint32_t lane)
{
	lade_lz_run(dst, src, size, lane);
}

/* ---- shared memory ---------------------------------------------------------------------- */

/*
 * Addresses in shared memory as numbers, and loads and stores there: what pointers would give,
 * without the turns that the compiler takes with them.
 */
#if LADE_ON_GPU
typedef int32_t lade_ans_at;

LADE_DEVICE lade_ans_at lade_ans_at_of(const void *p)
{
	return (lade_ans_at)__cvta_generic_to_shared(p);
}

LADE_DEVICE uint32_t lade_ans_load(lade_ans_at at)
{
	uint32_t value;
	asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
	return value;
}

LADE_DEVICE uint32_t lade_ans_load_half(lade_ans_at at)
{
	uint32_t value;
	asm volatile("ld.shared.u16 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
	return value;
}

LADE_DEVICE void lade_ans_save(lade_ans_at at, uint32_t value)
{
	asm volatile("st.shared.u32 [%0], %1;" : : "r"(at), "r"(value) : "memory");
}
#else
typedef int64_t lade_ans_at;

LADE_DEVICE lade_ans_at lade_ans_at_of(const void *p)
{
	return (lade_ans_at)(intptr_t)p;
}

LADE_DEVICE uint32_t lade_ans_load(lade_ans_at at)
{
	return *(const uint32_t *)(intptr_t)at;
}

LADE_DEVICE uint32_t lade_ans_load_half(lade_ans_at at)
{
	return *(const uint16_t *)(intptr_t)at;
}

LADE_DEVICE void lade_ans_save(lade_ans_at at, uint32_t value)
{
	*(uint32_t *)(intptr_t)at = value;
}
#endif

/* ---- the header ------------------------------------------------------------------------- */

#define LADE_ANS_HEAD 1024 /* bytes of a chunk that a block keeps in shared memory */

/* The first bytes of a chunk, in shared memory; words behind them come from where it lies. */
struct lade_ans_head {
	const uint32_t *words;
	const uint8_t *src;
	uint32_t size; /* of the chunk */
};

/* The word at 'off', a multiple of 4, of which all bytes lie in the chunk. */
LADE_DEVICE uint32_t lade_ans_word(const lade_ans_head &h, uint32_t off)
{
	if (off + 4 <= LADE_ANS_HEAD)
		return h.words[off / 4];
	uint32_t value = 0;
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		value |= (uint32_t)__ldg(h.src + off + k) << 8 * k;
	return value;
}

LADE_DEVICE uint32_t lade_ans_byte(const lade_ans_head &h, uint32_t off)
{
	return lade_ans_word(h, off & ~3u) >> 8 * (off & 3) & 0xFF;
}

/* Brings the head, for a whole block. */
LADE_DEVICE lade_ans_head lade_ans_head_get(uint32_t *words, const uint8_t *src, uint32_t size)
{
	uint32_t n = size < LADE_ANS_HEAD ? size : LADE_ANS_HEAD;
	for (uint32_t at = 4 * threadIdx.x; at < n; at += 4 * blockDim.x) {
		uint32_t value = 0;
		if (at + 4 <= n && !((uintptr_t)src & 3)) {
			value = __ldg((const uint32_t *)(src + at));
		} else {
			for (uint32_t k = 0; k < 4 && at + k < n; k++)
				value |= (uint32_t)__ldg(src + at + k) << 8 * k;
		}
		words[at / 4] = value;
	}
	__syncthreads();
	return {words, src, size};
}

/* A checked header; see lade__ans_info of codec/ans/ans.h. */
struct lade_ans_info {
	uint64_t value;  /* of a constant chunk, or of its constant planes, a byte each */
	uint32_t modes;  /* of the planes, 4 bits each */
	uint32_t size, kind, width_log, block_log, bits, rows, block_count, tail;
	uint32_t coded, raw, directory, tables;
};

/* The planes' modes; gives the words of the tables, ~0: corrupt. */
LADE_DEVICE uint32_t lade_ans_planes(const lade_ans_head &h, lade_ans_info *info)
{
	uint32_t words = 0;
	for (uint32_t p = 0; p < 1u << info->width_log; p++) {
		uint32_t mode = lade_ans_byte(h, ANS_AT_PLANES + 2 * p);
		uint32_t value = lade_ans_byte(h, ANS_AT_PLANES + 2 * p + 1);
		info->modes |= mode << 4 * p;
		if (mode == ANS_PLANE_CODED) {
			info->coded++;
			words += value;
			if (value > ANS_TABLE_WORDS_MAX)
				return ~0u;
		} else if (mode == ANS_PLANE_RAW) {
			info->raw++;
			if (value)
				return ~0u;
		} else if (mode == ANS_PLANE_CONSTANT) {
			info->value |= (uint64_t)value << 8 * p;
		} else {
			return ~0u;
		}
	}
	return words;
}

LADE_DEVICE uint32_t lade_ans_parse_coded(const lade_ans_head &h, lade_ans_info *info)
{
	uint32_t block_log = info->block_log, width = 1u << info->width_log;
	info->rows = lade_ans_byte(h, ANS_AT_ROWS);
	info->bits = lade_ans_byte(h, ANS_AT_BITS);
	if (block_log < ANS_BLOCK_LOG_MIN || block_log > ANS_BLOCK_LOG_MAX ||
	    info->bits < ANS_BITS_MIN || info->bits > ANS_BITS_MAX || info->size < width * ANS_UNIT)
		return LADE_GPU_CORRUPT;
	info->tail = info->size & (width * ANS_UNIT - 1);
	info->block_count = (info->size - info->tail + (1u << block_log) - 1) >> block_log;
	info->directory = (ANS_AT_PLANES + 2 * width + 3) & ~3u;
	info->tables = info->directory + 4 * (info->block_count + 1);
	if (h.size < info->tables)
		return LADE_GPU_TRUNCATED;
	uint32_t words = lade_ans_planes(h, info);
	if (words == ~0u || info->coded << info->bits > ANS_ENTRIES_MAX ||
	    info->rows > ANS_ROWS_OF(1u << block_log, width, info->coded, info->bits))
		return LADE_GPU_CORRUPT;
	uint32_t body = (info->tables + 4 * words + 15) / 16;
	if (h.size < 16 * body)
		return LADE_GPU_TRUNCATED;
	uint32_t first = lade_ans_word(h, info->directory);
	uint32_t last = lade_ans_word(h, info->tables - 4);
	if ((first & ((1u << ANS_OFF_BITS) - 1)) != body || last >> ANS_OFF_BITS)
		return LADE_GPU_CORRUPT;
	uint64_t want = (uint64_t)last * 16 + info->tail;
	return want > h.size ? LADE_GPU_TRUNCATED : want < h.size ? LADE_GPU_CORRUPT : LADE_GPU_OK;
}

/* Checks the header as lade__ans_parse() does. */
LADE_DEVICE uint32_t lade_ans_parse(const lade_ans_head &h, lade_ans_info *info)
{
	*info = lade_ans_info();
	if (h.size < ANS_HEADER)
		return LADE_GPU_TRUNCATED;
	uint32_t first = h.words[0];
	info->kind = first >> 8 & 0xFF;
	info->width_log = first >> 16 & 0xFF;
	info->block_log = first >> 24;
	info->size = h.words[1];
	if ((first & 0xFF) != ANS_VERSION || info->kind > ANS_CODED ||
	    info->width_log > ANS_WIDTH_LOG_MAX || info->size > ANS_SIZE_MAX)
		return LADE_GPU_CORRUPT;
	if (info->kind == ANS_CODED)
		return lade_ans_parse_coded(h, info);
	info->value = h.words[2] | (uint64_t)h.words[3] << 32;
	uint32_t want = ANS_HEADER + (info->kind == ANS_RAW ? info->size : 0);
	uint64_t most = info->kind == ANS_RAW ? 0 : ~(uint64_t)0 >> (64 - (8u << info->width_log));
	if (info->block_log || info->value > most)
		return LADE_GPU_CORRUPT;
	return h.size < want ? LADE_GPU_TRUNCATED : h.size > want ? LADE_GPU_CORRUPT : LADE_GPU_OK;
}

/* ---- states ----------------------------------------------------------------------------- */

/*
 * What finds a frequency's symbol and y for each index (section 4).  Marks say where symbols begin
 * among the indices; 'before' counts those of earlier words.
 */
struct lade_ans_marks {
	uint32_t mark[(1 << ANS_BITS_MAX) / 32];
	uint16_t before[(1 << ANS_BITS_MAX) / 32];
	uint16_t first[257]; /* index at which the n-th present symbol begins; the last: states */
	uint8_t symbol[256];
	uint8_t fill[14]; /* to a multiple of 16 */
};

/* What index i stands for: state L + i. */
struct lade_ans_place {
	uint32_t symbol, y;
};

LADE_DEVICE lade_ans_place lade_ans_place_of(const lade_ans_marks *m, uint32_t i)
{
	uint32_t upto = m->mark[i >> 5] & (0xFFFFFFFFu >> (31 - (i & 31)));
	uint32_t n = m->before[i >> 5] + (uint32_t)__popc(upto) - 1, first = m->first[n];
	return {m->symbol[n], m->first[n + 1] - first + i - first};
}

/* From frequencies: lane l has those of symbols 8l to 8l + 7, which sum to 1 << bits over the warp.
 * For a whole warp. */
LADE_DEVICE void lade_ans_mark(lade_ans_marks *m, const uint32_t freq[8], uint32_t bits,
                               uint32_t lane)
{
	uint32_t present = 0, sum = 0;
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		present += freq[k] > 0;
		sum += freq[k];
	}
	uint32_t n = lade_warp_scan(present, lane) - present;
	uint32_t at = lade_warp_scan(sum, lane) - sum;
	m->mark[lane] = 0;
	m->mark[lane + 32] = 0;
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		if (!freq[k])
			continue;
		m->symbol[n] = (uint8_t)(8 * lane + k);
		m->first[n++] = (uint16_t)at;
		atomicOr(&m->mark[at >> 5], 1u << (at & 31));
		at += freq[k];
	}
	if (lane == 31)
		m->first[n] = (uint16_t)(1u << bits);
	__syncwarp();
	uint32_t low = (uint32_t)__popc(m->mark[2 * lane]);
	uint32_t high = (uint32_t)__popc(m->mark[2 * lane + 1]);
	uint32_t before = lade_warp_scan(low + high, lane) - low - high;
	m->before[2 * lane] = (uint16_t)before;
	m->before[2 * lane + 1] = (uint16_t)(before + low);
}

#endif
