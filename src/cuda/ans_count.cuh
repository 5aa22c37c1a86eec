/*
 * ans_count.cuh: what the encoder of ANS (docs/format/ans.md, section 7) makes of a chunk before its
 * first symbol: the bytes of each position, their counts, frequencies and the text of a table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ANS_COUNT_CUH
#define LADE_CUDA_ANS_COUNT_CUH

#include "cuda/ans.cuh"

/* A chunk that a block encodes, in shared memory. */
struct lade_ans_plan {
	const uint8_t *src;
	uint8_t *dst;
	uint32_t size, limit; /* decoded bytes; the most encoded ones */
	uint32_t block_log, block_count, tail;
};

/* What becomes of its planes. */
struct lade_ans_choice {
	uint32_t modes; /* 4 bits each */
	uint32_t coded, raw, bits;
};

LADE_DEVICE uint32_t lade_ans_mode(const lade_ans_choice &c, uint32_t n)
{
	return c.modes >> 4 * n & 15;
}

/* ---- bytes ------------------------------------------------------------------------------ */

/* A word at any address. */
LADE_DEVICE uint32_t lade_ans_word_at(const uint8_t *from)
{
	uint32_t value = 0;
#pragma unroll
	for (int b = 0; b < 4; b++)
		value |= (uint32_t)__ldg(from + b) << 8 * b;
	return value;
}

/* The words of the unit at 'from'; WHOLE: it is aligned to its size, or to 16. */
template <int W, bool WHOLE>
LADE_DEVICE void lade_ans_unit_get(const uint8_t *from, uint32_t *word)
{
	if (!WHOLE) {
#pragma unroll
		for (int k = 0; k < W; k++)
			word[k] = lade_ans_word_at(from + 4 * k);
	} else if (W == 1) {
		word[0] = __ldg((const uint32_t *)from);
	} else if (W == 2) {
		uint2 two = __ldg((const uint2 *)from);
		word[0] = two.x;
		word[1 % W] = two.y;
	} else {
#pragma unroll
		for (int k = 0; k < W; k += 4) {
			uint4 four = __ldg((const uint4 *)(from + 4 * k));
			word[k % W] = four.x;
			word[(k + 1) % W] = four.y;
			word[(k + 2) % W] = four.z;
			word[(k + 3) % W] = four.w;
		}
	}
}

template <int W> LADE_DEVICE bool lade_ans_whole(const uint8_t *src)
{
	return !((uintptr_t)src & (W < 4 ? 4 * W - 1 : 15));
}

/* The planes of a unit: word p has byte p of the 4 elements. */
template <int W> LADE_DEVICE void lade_ans_planes_of(const uint32_t *word, uint32_t *plane)
{
	if (W == 1)
		plane[0] = word[0];
	if (W == 2) {
		plane[0] = __byte_perm(word[0], word[1 % W], 0x6420);
		plane[1 % W] = __byte_perm(word[0], word[1 % W], 0x7531);
	}
	/* Four planes of 4 elements, whose words lie 'step' apart. */
	constexpr int step = W / 4 ? W / 4 : 1;
#pragma unroll
	for (int h = 0; h < W / 4; h++) {
		uint32_t a = __byte_perm(word[h], word[(h + step) % W], 0x5140);
		uint32_t b = __byte_perm(word[h], word[(h + step) % W], 0x7362);
		uint32_t c = __byte_perm(word[(h + 2 * step) % W], word[(h + 3 * step) % W], 0x5140);
		uint32_t d = __byte_perm(word[(h + 2 * step) % W], word[(h + 3 * step) % W], 0x7362);
		plane[(4 * h) % W] = __byte_perm(a, c, 0x5410);
		plane[(4 * h + 1) % W] = __byte_perm(a, c, 0x7632);
		plane[(4 * h + 2) % W] = __byte_perm(b, d, 0x5410);
		plane[(4 * h + 3) % W] = __byte_perm(b, d, 0x7632);
	}
}

template <int W> LADE_DEVICE void lade_ans_count_unit(const uint32_t *word, uint32_t *count)
{
	uint32_t plane[W];
	lade_ans_planes_of<W>(word, plane);
#pragma unroll
	for (int k = 0; k < W; k++)
#pragma unroll
		for (int b = 0; b < 4; b++)
			atomicAdd(&count[256 * k + __byte_perm(plane[k], 0, 0x4440 + b)], 1u);
}

/*
 * Counts the planes' bytes: 8 KiB of counts are 8 / W copies, of which each warp has one.  A thread
 * takes pieces of 16 bytes, or of a unit.
 */
template <int W, bool WHOLE>
LADE_DEVICE void lade_ans_count(const lade_ans_plan &p, uint32_t *count)
{
	constexpr uint32_t PIECE = W == 8 ? 32 : 16, WORDS = PIECE / 4;
	constexpr uint32_t DEEP = !WHOLE ? 1 : W == 1 ? 8 : W == 2 ? 4 : 2;
	const uint8_t *src = p.src;
	uint32_t bytes = p.size - p.tail, pieces = bytes / PIECE, rest = bytes % PIECE / (4 * W);
	count += 256 * W * (threadIdx.x / 32 % (8 / W));
	uint32_t at = threadIdx.x;
	for (; at + (DEEP - 1) * blockDim.x < pieces; at += DEEP * blockDim.x) {
		uint32_t word[DEEP][WORDS];
#pragma unroll
		for (uint32_t j = 0; j < DEEP; j++)
			lade_ans_unit_get<WORDS, WHOLE>(src + (size_t)PIECE * (at + j * blockDim.x),
			                                word[j]);
#pragma unroll
		for (uint32_t j = 0; j < DEEP; j++)
#pragma unroll
			for (uint32_t k = 0; k < WORDS; k += W)
				lade_ans_count_unit<W>(word[j] + k, count);
	}
	for (; at < pieces; at += blockDim.x) {
		uint32_t word[WORDS];
		lade_ans_unit_get<WORDS, WHOLE>(src + (size_t)PIECE * at, word);
#pragma unroll
		for (uint32_t k = 0; k < WORDS; k += W)
			lade_ans_count_unit<W>(word + k, count);
	}
	if (threadIdx.x < rest) {
		uint32_t word[W];
		lade_ans_unit_get<W, false>(src + (size_t)PIECE * pieces + 4 * W * threadIdx.x, word);
		lade_ans_count_unit<W>(word, count);
	}
}

/* ---- frequencies ------------------------------------------------------------------------ */

/* log2 in 1/65536, to 0.001: a cubic between the powers of two. */
LADE_DEVICE uint32_t lade_ans_log2(uint32_t v)
{
	uint32_t q = 31 - (uint32_t)__clz((int)v);
	uint32_t m = (q < 16 ? v << (16 - q) : v >> (q - 16)) - 65536;
	return (q << 16) + m + ((m * (65536 - m) >> 16) * (27584 - (m * 10191 >> 16)) >> 16);
}

/* Sums over the warp, of numbers whose sum fits. */
LADE_DEVICE uint32_t lade_ans_sum(uint32_t v)
{
	return __reduce_add_sync(LADE_FULL, v);
}

/*
 * Frequencies that sum to 1 << bits, in proportion to the counts, whose sum is 'total' < 2^17: lane l
 * has symbols 8l to 8l + 7.  For a whole warp.
 */
LADE_DEVICE void lade_ans_normalise(const uint32_t count[8], uint32_t total, uint32_t bits,
                                    uint32_t freq[8], uint32_t lane)
{
	uint32_t left = total, room = 1u << bits, small = 0;
	/* Symbols of little more than one part get that. */
	for (bool again = true; again;) {
		uint32_t lost = 0, mark = 0, least = left + left / 64;
#pragma unroll
		for (int k = 0; k < 8; k++) {
			bool less = count[k] && !(small >> k & 1) && count[k] * room < least;
			mark |= (uint32_t)less << k;
			lost += less ? count[k] : 0;
		}
		small |= mark;
		left -= lade_ans_sum(lost);
		lost = lade_ans_sum((uint32_t)__popc(mark));
		room -= lost;
		again = lost > 0;
	}
	/* The others get differences of rounded sums, which add up.  A rounding errs by less than
	 * 2^-10, so that none gets 0. */
	uint32_t sum = 0;
#pragma unroll
	for (int k = 0; k < 8; k++)
		sum += small >> k & 1 ? 0 : count[k];
	sum = lade_warp_scan(sum, lane) - sum;
	float scale = (float)room / (float)left;
	uint32_t before = (uint32_t)((float)sum * scale + 0.5f);
#pragma unroll
	for (int k = 0; k < 8; k++) {
		bool one = small >> k & 1;
		sum += one ? 0 : count[k];
		uint32_t upto = (uint32_t)((float)sum * scale + 0.5f);
		freq[k] = one ? 1 : upto - before;
		before = upto;
	}
}

/* ---- tables ----------------------------------------------------------------------------- */

/*
 * A symbol, packed.  With t = the entry + state X, the state gives its low nb = t >> 12 & 15 bits
 * away and becomes (X >> nb) + (t >> 18).  Bits 16 and 17 of t are 0.
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

/* A table's description (section 3), for a whole warp; gives its words. */
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

#endif
