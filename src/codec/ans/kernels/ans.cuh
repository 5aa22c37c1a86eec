/*
 * ans.cuh: headers and tables of the ANS format (docs/format/ans.md, sections 2 to 4), for the
 * decoding and the encoding kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_CUH
#define LADE_CUDA_ANS_CUH

#include "codec/ans/args.h"
#include "codec/ans/layout.h"
#include "gpu/kernels/bytes.cuh"

/* Functions that are not inlined, to save registers in the loops around them. */
#if LADE_ON_GPU
#define LADE_ANS_NOINLINE static __device__ __noinline__
#else
#define LADE_ANS_NOINLINE static __device__
#endif

/* The same number, which the compiler takes for a new one: it then recomputes values rather than
 * keep them, in kernels that are short of registers. */
LADE_DEVICE uint32_t lade_ans_opaque(uint32_t number)
{
#if LADE_ON_GPU
	asm volatile("" : "+r"(number));
#endif
	return number;
}

LADE_DEVICE uint32_t lade_ans_thread()
{
	return lade_ans_opaque(threadIdx.x);
}

/* Copies to any address, by a whole warp. */
LADE_ANS_NOINLINE void lade_ans_copy(uint8_t *dst, const uint8_t *src, uint32_t size, uint32_t lane)
{
	lade_bytes_copy(dst, src, size, lane);
}

/* ---- shared memory ---------------------------------------------------------------------- */

/*
 * Addresses in shared memory as numbers, with loads and stores.  For pointers the compiler adds
 * address conversions.
 */
#if LADE_ON_GPU
typedef int32_t lade_ans_address;

LADE_DEVICE lade_ans_address lade_ans_address_of(const void *p)
{
	return (lade_ans_address)__cvta_generic_to_shared(p);
}

LADE_DEVICE uint32_t lade_ans_load(lade_ans_address at)
{
	uint32_t value;
	asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
	return value;
}

LADE_DEVICE uint32_t lade_ans_load_half(lade_ans_address at)
{
	uint32_t value;
	asm volatile("ld.shared.u16 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
	return value;
}

LADE_DEVICE void lade_ans_store_shared(lade_ans_address at, uint32_t value)
{
	asm volatile("st.shared.u32 [%0], %1;" : : "r"(at), "r"(value) : "memory");
}

/* Adds 1, as one atomic operation. */
LADE_DEVICE void lade_ans_increment(lade_ans_address at)
{
	asm volatile("red.shared.add.u32 [%0], 1;" : : "r"(at) : "memory");
}
#else
typedef int64_t lade_ans_address;

LADE_DEVICE lade_ans_address lade_ans_address_of(const void *p)
{
	return (lade_ans_address)(intptr_t)p;
}

LADE_DEVICE uint32_t lade_ans_load(lade_ans_address at)
{
	return *(const uint32_t *)(intptr_t)at;
}

LADE_DEVICE uint32_t lade_ans_load_half(lade_ans_address at)
{
	return *(const uint16_t *)(intptr_t)at;
}

LADE_DEVICE void lade_ans_store_shared(lade_ans_address at, uint32_t value)
{
	*(uint32_t *)(intptr_t)at = value;
}

LADE_DEVICE void lade_ans_increment(lade_ans_address at)
{
	atomicAdd((uint32_t *)(intptr_t)at, 1u);
}
#endif

/* The bytes of 'a', each with its high bit from 'b'. */
LADE_DEVICE uint32_t lade_ans_cross(uint32_t a, uint32_t b)
{
#if LADE_ON_GPU
	uint32_t value;
	asm("lop3.b32 %0, %1, %2, 0x80808080, 0xD8;" : "=r"(value) : "r"(a), "r"(b));
	return value;
#else
	return (a & 0x7F7F7F7F) | (b & 0x80808080);
#endif
}

/* ---- the header ------------------------------------------------------------------------- */

#define LADE_ANS_HEAD 512 /* bytes of a chunk that a block keeps in shared memory */

/* The first bytes of a chunk, in shared memory; later words are read from global memory. */
struct lade_ans_head {
	const uint32_t *words;
	const uint8_t *src;
	uint32_t size; /* of the chunk */
};

/* The word at 'off', a multiple of 4; all its bytes are in the chunk. */
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

/* Copies the first bytes to shared memory, by a whole warp. */
LADE_DEVICE lade_ans_head lade_ans_head_get(uint32_t *words, const uint8_t *src, uint32_t size,
                                            uint32_t lane)
{
	uint32_t n = size < LADE_ANS_HEAD ? size : LADE_ANS_HEAD;
	uint32_t whole = (uintptr_t)src & 3 ? 0 : n & ~3u;
#pragma unroll
	for (uint32_t at = 4 * lane; at < LADE_ANS_HEAD; at += 128)
		if (at < whole)
			words[at / 4] = __ldg((const uint32_t *)(src + at));
#pragma unroll 8
	for (uint32_t at = whole + lane; at < n; at += 32)
		((uint8_t *)words)[at] = __ldg(src + at);
	/* Zeros up to a whole word. */
	if (n % 4 && lane < 4 - n % 4)
		((uint8_t *)words)[n + lane] = 0;
	__syncwarp();
	return {words, src, size};
}

#define LADE_ANS_CROSSED (1u << 31) /* the elements are crossed (section 2) */

/* A checked header; see lade__ans_info of codec/ans/ans.h. */
struct lade_ans_info {
	uint64_t value;  /* of a constant chunk, or of its constant planes, a byte each */
	uint32_t modes;  /* of the planes, 4 bits each, and LADE_ANS_CROSSED */
	uint32_t size, kind, width_log, block_log, bits, rows, block_count, tail;
	uint32_t coded, raw, directory, tables;
};

/* Reads the planes' modes, by a whole warp; returns the words of the tables, ~0: corrupt. */
LADE_DEVICE uint32_t lade_ans_planes(const lade_ans_head &h, lade_ans_info *info, uint32_t lane)
{
	bool is = lane < 1u << info->width_log;
	uint32_t at = ANS_AT_PLANES + 2 * (lane & ((1u << ANS_WIDTH_LOG_MAX) - 1));
	uint32_t mode = is ? lade_ans_byte(h, at) : (uint32_t)ANS_PLANE_CONSTANT;
	uint32_t value = is ? lade_ans_byte(h, at + 1) : 0;
	bool coded = mode == ANS_PLANE_CODED, constant = mode == ANS_PLANE_CONSTANT;
	bool fine = coded ? value <= ANS_TABLE_WORDS_MAX
			  : constant || (mode == ANS_PLANE_RAW && !value);
	if (!__all_sync(LADE_FULL, fine))
		return ~0u;
	info->coded = (uint32_t)__popc(__ballot_sync(LADE_FULL, coded));
	info->raw = (uint32_t)__popc(__ballot_sync(LADE_FULL, mode == ANS_PLANE_RAW));
	info->modes = __reduce_or_sync(LADE_FULL, is ? mode << 4 * lane : 0);
	info->modes |= h.words[0] & ANS_CROSSED << 16 ? LADE_ANS_CROSSED : 0;
	uint32_t byte = constant ? value << 8 * (lane & 3) : 0;
	info->value = __reduce_or_sync(LADE_FULL, lane < 4 ? byte : 0);
	info->value |= (uint64_t)__reduce_or_sync(LADE_FULL, lane < 4 ? 0 : byte) << 32;
	return __reduce_add_sync(LADE_FULL, coded ? value : 0);
}

LADE_DEVICE uint32_t lade_ans_parse_coded(const lade_ans_head &h, lade_ans_info *info,
                                          uint32_t lane)
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
	uint32_t words = lade_ans_planes(h, info, lane);
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

/* Checks the header as lade__ans_parse() does, for a whole warp. */
LADE_DEVICE uint32_t lade_ans_parse(const lade_ans_head &h, lade_ans_info *info, uint32_t lane)
{
	*info = lade_ans_info();
	if (h.size < ANS_HEADER)
		return LADE_GPU_TRUNCATED;
	uint32_t first = h.words[0];
	info->kind = first >> 8 & 0xFF;
	info->width_log = first >> 16 & 0xFF;
	if (info->width_log == (ANS_CROSSED | 1) && info->kind == ANS_CODED)
		info->width_log = 1;
	info->block_log = first >> 24;
	info->size = h.words[1];
	if ((first & 0xFF) != ANS_VERSION || info->kind > ANS_CODED ||
	    info->width_log > ANS_WIDTH_LOG_MAX || info->size > ANS_SIZE_MAX)
		return LADE_GPU_CORRUPT;
	if (info->kind == ANS_CODED)
		return lade_ans_parse_coded(h, info, lane);
	info->value = h.words[2] | (uint64_t)h.words[3] << 32;
	uint32_t want = ANS_HEADER + (info->kind == ANS_RAW ? info->size : 0);
	uint64_t most = info->kind == ANS_RAW ? 0 : ~(uint64_t)0 >> (64 - (8u << info->width_log));
	if (info->block_log || info->value > most)
		return LADE_GPU_CORRUPT;
	return h.size < want ? LADE_GPU_TRUNCATED : h.size > want ? LADE_GPU_CORRUPT : LADE_GPU_OK;
}

/* ---- states ----------------------------------------------------------------------------- */

/*
 * An index to find a state's symbol and y (section 4): for each 32 states, a bitmap of where
 * symbols begin, and how many begin before; and the symbols that occur.
 */
struct lade_ans_marks {
	uint2 mark[(1 << ANS_BITS_MAX) / 32];
	uint32_t symbol[256]; /* | symbol 8 | zeros | frequency less first state, 16, signed | */
};

/* From frequencies: lane l has those of symbols 8l to 8l + 7, which sum to the number of states
 * over the warp.  For a whole warp. */
LADE_DEVICE void lade_ans_mark(lade_ans_marks *m, const uint32_t freq[8], uint32_t lane)
{
	uint32_t present = 0, sum = 0;
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		present += freq[k] > 0;
		sum += freq[k];
	}
	uint32_t n = lade_warp_scan(present, lane) - present;
	uint32_t at = lade_warp_scan(sum, lane) - sum;
	m->mark[lane].x = 0;
	m->mark[lane + 32].x = 0;
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < 8; k++) {
		if (!freq[k])
			continue;
		m->symbol[n++] = (8 * lane + k) << 24 | ((freq[k] - at) & 0xFFFF);
		atomicOr(&m->mark[at >> 5].x, 1u << (at & 31));
		at += freq[k];
	}
	__syncwarp();
	uint32_t low = (uint32_t)__popc(m->mark[2 * lane].x);
	uint32_t high = (uint32_t)__popc(m->mark[2 * lane + 1].x);
	uint32_t before = lade_warp_scan(low + high, lane) - low - high;
	m->mark[2 * lane].y = before;
	m->mark[2 * lane + 1].y = before + low;
}

/* State L + i, as an entry of a decoder's table: | y 16 | symbol 8 | bits 8 |. */
LADE_DEVICE uint32_t lade_ans_entry(const lade_ans_marks *m, uint32_t bits, uint32_t i)
{
	uint2 mark = m->mark[i >> 5];
	uint32_t upto = mark.x << (31 - (i & 31));
	uint32_t symbol = m->symbol[mark.y + (uint32_t)__popc(upto) - 1], y = symbol + i;
	y &= 0xFFFF;
	return y << 16 | symbol >> 24 << 8 | (bits - 31 + (uint32_t)__clz((int)y));
}

#endif
