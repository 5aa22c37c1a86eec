/*
 * words.cuh: what filters do to the words of a tile in shared memory (tile.cuh), each of which
 * holds several elements, or half of one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_WORDS_CUH
#define LADE_CUDA_WORDS_CUH

#include "filter/kernels/tile.cuh"

/* The highest bit of each element of SIZE bytes, 1, 2 or 4; and the lowest. */
template <uint32_t SIZE> struct lade_lanes {
	static constexpr uint32_t HIGH = SIZE == 1   ? 0x80808080u
	                                 : SIZE == 2 ? 0x80008000u
	                                             : 0x80000000u;
	static constexpr uint32_t LOW = SIZE == 1 ? 0x01010101u : SIZE == 2 ? 0x00010001u : 1;
	static constexpr uint32_t FULL = SIZE == 1 ? 0xFF : SIZE == 2 ? 0xFFFF : 0xFFFFFFFFu;

	static __device__ __forceinline__ uint32_t add(uint32_t a, uint32_t b)
	{
		if (SIZE == 4)
			return a + b;
		return ((a & ~HIGH) + (b & ~HIGH)) ^ ((a ^ b) & HIGH);
	}

	static __device__ __forceinline__ uint32_t sub(uint32_t a, uint32_t b)
	{
		if (SIZE == 4)
			return a - b;
		return ((a | HIGH) - (b & ~HIGH)) ^ ((a ^ ~b) & HIGH);
	}

	/* Sums of a word's elements up to each. */
	static __device__ __forceinline__ uint32_t sums(uint32_t w)
	{
		if (SIZE == 1)
			w = add(w, w << 8);
		if (SIZE <= 2)
			w = add(w, w << 16);
		return w;
	}

	/* The last element in the place of all, and the first. */
	static __device__ __forceinline__ uint32_t last(uint32_t w)
	{
		return SIZE == 4 ? w : __byte_perm(w, 0, SIZE == 1 ? 0x3333 : 0x3232);
	}
	static __device__ __forceinline__ uint32_t first(uint32_t w)
	{
		return SIZE == 4 ? w : __byte_perm(w, 0, SIZE == 1 ? 0x0000 : 0x1010);
	}
};

/*
 * What becomes of a word.  'other' is the other word of an element of 8 bytes, of which odd lanes
 * have the upper one; 'before' is the word before this one, or two words before it where elements
 * have 8 bytes, and 'other_before' the other word of that.
 */
template <uint32_t OP, uint32_t SIZE>
static __device__ __forceinline__ uint32_t lade_word_op(uint32_t w, uint32_t other, uint32_t before,
                                                        uint32_t other_before, uint32_t lane)
{
	typedef lade_lanes<SIZE < 8 ? SIZE : 4> lanes;
	constexpr uint32_t SIGN = SIZE < 8 ? 8 * SIZE - 1 : 31;
	bool upper = lane & 1;
	if (OP == LADE_WORDS_SWAP)
		return SIZE == 1   ? w
		       : SIZE == 2 ? __byte_perm(w, 0, 0x2301)
				   : __byte_perm(SIZE == 8 ? other : w, 0, 0x0123);
	if (OP == LADE_WORDS_ZIG && SIZE == 8) {
		uint32_t sign = (uint32_t)((int32_t)(upper ? w : other) >> 31);
		return (upper ? __funnelshift_l(other, w, 1) : w << 1) ^ sign;
	}
	if (OP == LADE_WORDS_ZAG && SIZE == 8) {
		uint32_t sign = 0 - ((upper ? other : w) & 1);
		return (upper ? w >> 1 : __funnelshift_r(w, other, 1)) ^ sign;
	}
	if (OP == LADE_WORDS_ZIG)
		return ((w & ~lanes::HIGH) << 1) ^ (w >> SIGN & lanes::LOW) * lanes::FULL;
	if (OP == LADE_WORDS_ZAG)
		return (w >> 1 & ~lanes::HIGH) ^ (w & lanes::LOW) * lanes::FULL;
	if (SIZE == 8)
		return w - before - (upper && other < other_before ? 1 : 0);
	return lanes::sub(w, SIZE == 4 ? before : __funnelshift_l(before, w, 8 * SIZE));
}

/* Of the tile at 'at', 'first' bytes behind its chunk's begin: the element before it, in the upper
 * bytes of the first lane's word, or in the first two lanes' words where elements have 8 bytes.
 * No byte before that one is read: there may be none. */
static __device__ __forceinline__ uint32_t lade_words_edge(uint32_t ops, uint32_t size,
                                                           const uint8_t *at, uint32_t first,
                                                           uint32_t lane)
{
	uint32_t back = size == 8 ? 2 : 1, part = size < 4 ? size : 4;
	if (!(ops & LADE_WORDS_DIFF) || !first || lane >= back)
		return 0;
	return lade_tile_load_some(at - part * (back - lane), (int32_t)part) << (32 - 8 * part);
}

/* One op on a whole tile, LINES lines at once; 'edge' is what stands before it. */
template <uint32_t OP, uint32_t SIZE, uint32_t LINES>
static __device__ __forceinline__ void lade_words_op(uint32_t *s, uint32_t edge, uint32_t lane)
{
	constexpr uint32_t BACK = SIZE == 8 ? 2 : 1; /* words from an element to the one before */
	/* From the last lines to the first ones, so that what stands before is as it was. */
#pragma unroll 1
	for (uint32_t line = 32 - LINES; line < 32; line -= LINES) {
		uint32_t w[LINES];
#pragma unroll
		for (uint32_t k = 0; k < LINES; k++) {
			const uint32_t *from = s + 33 * (line + k) + lane;
			uint32_t word = *from, other = 0, before = 0, other_before = 0;
			if (SIZE == 8)
				other = __shfl_xor_sync(LADE_FULL, word, 1);
			if (OP == LADE_WORDS_DIFF) {
				before = edge;
				if (line + k || lane >= BACK)
					before = *(from - (lane < BACK ? BACK + 1 : BACK));
				if (SIZE == 8)
					other_before = __shfl_xor_sync(LADE_FULL, before, 1);
			}
			w[k] = lade_word_op<OP, SIZE>(word, other, before, other_before, lane);
		}
		__syncwarp();
#pragma unroll
		for (uint32_t k = 0; k < LINES; k++)
			s[33 * (line + k) + lane] = w[k];
	}
	__syncwarp();
}

/* All 'ops' on a tile; 'edge' is from lade_words_edge(). */
template <uint32_t SIZE, uint32_t LINES>
static __device__ __forceinline__ void lade_words(uint32_t ops, uint32_t *s, uint32_t edge,
                                                  uint32_t lane)
{
	if (ops & LADE_WORDS_ZAG)
		lade_words_op<LADE_WORDS_ZAG, SIZE, LINES>(s, 0, lane);
	if (ops & LADE_WORDS_SWAP) {
		uint32_t other = SIZE == 8 ? __shfl_xor_sync(LADE_FULL, edge, 1) : 0;
		edge = lade_word_op<LADE_WORDS_SWAP, SIZE>(edge, other, 0, 0, lane);
		lade_words_op<LADE_WORDS_SWAP, SIZE, LINES>(s, 0, lane);
	}
	if (ops & LADE_WORDS_DIFF)
		lade_words_op<LADE_WORDS_DIFF, SIZE, LINES>(s, edge, lane);
	if (ops & LADE_WORDS_ZIG)
		lade_words_op<LADE_WORDS_ZIG, SIZE, LINES>(s, 0, lane);
}

/* The same for elements of any of the sizes. */
template <uint32_t LINES>
static __device__ __forceinline__ void lade_words_any(uint32_t ops, uint32_t size, uint32_t *s,
                                                      uint32_t edge, uint32_t lane)
{
	if (size == 1)
		lade_words<1, LINES>(ops, s, edge, lane);
	else if (size == 2)
		lade_words<2, LINES>(ops, s, edge, lane);
	else if (size == 4)
		lade_words<4, LINES>(ops, s, edge, lane);
	else
		lade_words<8, LINES>(ops, s, edge, lane);
}

#endif
