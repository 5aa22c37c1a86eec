/*
 * rows.cuh: the shapes of rows of bytes and of bits (tile.cuh), and where a tile's rows are in a
 * chunk (docs/format/filters.md, sections 1, 2 and 5).
 *
 * Of bytes a set is four elements, 'size' words that are adjacent; by byte permutations it becomes
 * a word of each row.  A lane has as many sets as make 32 words, about:
 *
 *     size          2    3    4    6    8    12   16
 *     sets a lane   16   10   8    5    4    2    2
 *
 * Of bits a block of the form, or a whole chunk, is cut into tiles of 4 KiB of elements, which are
 * 512 / size bytes of each row, and a lane transposes 32 words of it, in sets of 32 elements:
 *
 *     size   sets a lane   words a set   which are
 *     1      4             8             32 adjacent elements
 *     2      2             16            likewise
 *     4      1             32            likewise
 *     8      1             32            the lower halves of 32 elements (even lanes), or their
 *                                        upper ones (odd lanes)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ROWS_CUH
#define LADE_CUDA_ROWS_CUH

#include "filter/kernels/tile.cuh"

/* ---- bytes ------------------------------------------------------------------------------ */

template <uint32_t SIZE> struct lade_bytes {
	static constexpr uint32_t WORDS = SIZE;
	static constexpr uint32_t SETS = 32 / SIZE;
	static constexpr uint32_t ALL = SETS * WORDS;
	static constexpr uint32_t STEP = 1;
	static constexpr uint32_t ROWS = SIZE;
	static constexpr uint32_t PLAIN = SIZE;
	static constexpr uint32_t GROUPS = 128 * SETS;

	static __device__ __forceinline__ uint32_t row(uint32_t i, uint32_t lane)
	{
		(void)lane;
		return i;
	}

	/* The four bytes of 'w' at such places, counted from the first word's lowest. */
	static __device__ __forceinline__ uint32_t gather(const uint32_t *w, uint32_t a, uint32_t b,
	                                                  uint32_t c, uint32_t d)
	{
		uint32_t low = __byte_perm(w[a / 4], w[b / 4], a % 4 | (4 + b % 4) << 4);
		uint32_t high = __byte_perm(w[c / 4], w[d / 4], c % 4 | (4 + d % 4) << 4);
		return __byte_perm(low, high, 0x5410);
	}

	static __device__ __forceinline__ void to_rows(uint32_t *w)
	{
		uint32_t out[WORDS];
#pragma unroll
		for (uint32_t j = 0; j < SIZE; j++)
			out[j] = gather(w, j, SIZE + j, 2 * SIZE + j, 3 * SIZE + j);
#pragma unroll
		for (uint32_t j = 0; j < SIZE; j++)
			w[j] = out[j];
	}

	/* Where byte p of the four elements is in the words of the rows. */
	static __device__ __forceinline__ uint32_t place(uint32_t p)
	{
		return 4 * (p % SIZE) + p / SIZE;
	}

	static __device__ __forceinline__ void from_rows(uint32_t *w)
	{
		uint32_t out[WORDS];
#pragma unroll
		for (uint32_t k = 0; k < SIZE; k++)
			out[k] = gather(w, place(4 * k), place(4 * k + 1), place(4 * k + 2),
			                place(4 * k + 3));
#pragma unroll
		for (uint32_t k = 0; k < SIZE; k++)
			w[k] = out[k];
	}

	static __device__ __forceinline__ uint32_t slot(uint32_t k, uint32_t lane)
	{
		uint32_t x = WORDS * lane + k % WORDS;
		return 33 * WORDS * (k / WORDS) + x + x / 32;
	}
};

/* ---- bits ------------------------------------------------------------------------------- */

/* Exchanges a bit of the words' numbers for a bit of the place in a word: bits whose place has the
 * bit 'PLACE', of words without the bit 'WORD', for those of words with it whose place lacks it. */
template <uint32_t COUNT, uint32_t WORD, uint32_t PLACE>
static __device__ __forceinline__ void lade_bits_exchange(uint32_t *words)
{
	constexpr uint32_t mask = PLACE == 4 ? 0x0F0F0F0Fu : PLACE == 2 ? 0x33333333u : 0x55555555u;
#pragma unroll
	for (uint32_t i = 0; i < COUNT; i++) {
		if (i & WORD)
			continue;
		uint32_t a = words[i], b = words[i + WORD];
		if (PLACE == 16) {
			words[i] = __byte_perm(a, b, 0x5410);
			words[i + WORD] = __byte_perm(a, b, 0x7632);
		} else if (PLACE == 8) {
			words[i] = __byte_perm(a, b, 0x6240);
			words[i + WORD] = __byte_perm(a, b, 0x7351);
		} else {
			words[i] = (a & mask) | ((b & mask) << PLACE);
			words[i + WORD] = (a >> PLACE & mask) | (b & ~mask);
		}
	}
}

/*
 * The shape of a size of elements.  A set's words hold elements e4 e3 e2 e1 e0 with bits b(n) ..
 * b0; transposed, the place in a word is e4 .. e0 and the word's number has the b.  Sizes 1 and 2
 * hold e0 (and e1) in the place, and exchange it twice; the b end up in another order, and row()
 * gives it.
 */
template <uint32_t SIZE> struct lade_bits {
	static constexpr uint32_t ALL = 32;
	static constexpr uint32_t SETS = SIZE < 4 ? 4 / SIZE : 1;
	static constexpr uint32_t WORDS = 32 / SETS;
	static constexpr uint32_t STEP = SIZE == 8 ? 2 : 1; /* lanes from word to word of a row */
	static constexpr uint32_t ROWS = 8 * SIZE;
	static constexpr uint32_t PLAIN = 8 * SIZE;
	static constexpr uint32_t GROUPS = LADE_TILE_BYTES / PLAIN;

	static __device__ __forceinline__ uint32_t row(uint32_t i, uint32_t lane)
	{
		return SIZE == 1   ? (i & 1) << 2 | i >> 1
		       : SIZE == 2 ? (i & 7) << 1 | i >> 3
		       : SIZE == 4 ? i
		                   : 32 * (lane & 1) + i;
	}

	static __device__ __forceinline__ void to_rows(uint32_t *w)
	{
		if (SIZE >= 4) {
			lade_bits_exchange<WORDS, 16, 16>(w);
			lade_bits_exchange<WORDS, 8, 8>(w);
			lade_bits_exchange<WORDS, 4, 4>(w);
			lade_bits_exchange<WORDS, 2, 2>(w);
			lade_bits_exchange<WORDS, 1, 1>(w);
		} else if (SIZE == 2) {
			lade_bits_exchange<WORDS, 8, 16>(w);
			lade_bits_exchange<WORDS, 4, 8>(w);
			lade_bits_exchange<WORDS, 2, 4>(w);
			lade_bits_exchange<WORDS, 1, 2>(w);
			lade_bits_exchange<WORDS, 8, 1>(w);
		} else {
			lade_bits_exchange<WORDS, 4, 16>(w);
			lade_bits_exchange<WORDS, 2, 8>(w);
			lade_bits_exchange<WORDS, 1, 4>(w);
			lade_bits_exchange<WORDS, 4, 2>(w);
			lade_bits_exchange<WORDS, 2, 1>(w);
		}
	}

	static __device__ __forceinline__ void from_rows(uint32_t *w)
	{
		if (SIZE >= 4) {
			to_rows(w); /* the exchanges commute */
		} else if (SIZE == 2) {
			lade_bits_exchange<WORDS, 8, 1>(w);
			lade_bits_exchange<WORDS, 1, 2>(w);
			lade_bits_exchange<WORDS, 2, 4>(w);
			lade_bits_exchange<WORDS, 4, 8>(w);
			lade_bits_exchange<WORDS, 8, 16>(w);
		} else {
			lade_bits_exchange<WORDS, 2, 1>(w);
			lade_bits_exchange<WORDS, 4, 2>(w);
			lade_bits_exchange<WORDS, 1, 4>(w);
			lade_bits_exchange<WORDS, 2, 8>(w);
			lade_bits_exchange<WORDS, 4, 16>(w);
		}
	}

	static __device__ __forceinline__ uint32_t slot(uint32_t k, uint32_t lane)
	{
		if (SIZE == 8)
			return 66 * (lane >> 1) + (lane & 1) + 2 * k + k / 16;
		return WORDS * lane + WORDS * lane / 32 + 33 * WORDS * (k / WORDS) + k % WORDS;
	}
};

/* A tile of a block of 'size' bytes, from group 'first' on. */
template <uint32_t SIZE>
static __device__ __forceinline__ lade_tile lade_bits_tile(uint32_t size, uint32_t first, bool msb)
{
	typedef lade_bits<SIZE> shape;
	lade_tile t;
	t.pitch = size / shape::PLAIN;
	t.first = msb ? (int32_t)((shape::ROWS - 1) * t.pitch) : 0;
	t.next = msb ? -(int32_t)t.pitch : (int32_t)t.pitch;
	t.groups = first >= t.pitch                   ? 0
	           : t.pitch - first >= shape::GROUPS ? shape::GROUPS
	                                              : t.pitch - first;
	return t;
}

/* ---- from place to place ---------------------------------------------------------------- */

/* The 'bytes' of elements from byte 'at' on, a multiple of a tile's, to shared memory, where zeros
 * follow. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_bytes_get(uint32_t *s, const lade_gpu_chunk &c,
                                                      uint32_t at, uint32_t bytes, uint32_t lane)
{
	uint32_t count = c.src_size / SIZE;
	lade_tile t = {bytes / SIZE, count, 0, (int32_t)count};
	lade_tile_get<lade_bytes<SIZE>>(s, c.src + at / SIZE, t, lane);
}

/* Likewise; blocks of the form are multiples of a tile's bytes. */
template <uint32_t SIZE>
static __device__ __forceinline__ void lade_bits_get(uint32_t *s, const lade_gpu_chunk &c, bool msb,
                                                     uint32_t form, uint32_t at, uint32_t bytes,
                                                     uint32_t lane)
{
	uint32_t block = form && form < c.src_size ? form : c.src_size;
	uint32_t begin = at - at % block, rest = c.src_size - begin;
	uint32_t group = (at - begin) / (8 * SIZE);
	lade_tile t = lade_bits_tile<SIZE>(rest < block ? rest : block, group, msb);
	lade_tile_get<lade_bits<SIZE>>(s, c.src + begin + group, t, lane);
	/* The bytes behind the block's groups. */
	uint32_t word = 2 * SIZE * t.groups + lane;
	int32_t left = (int32_t)bytes - (int32_t)(4 * word);
	if (left > 0 && lane < 2 * SIZE)
		s[word + word / 32] = lade_tile_load_some(c.src + at + 4 * word, left);
	__syncwarp();
}

#endif
