/*
 * bitshuffle.cu: the bit shuffle of chunks and back (docs/format/filters.md, section 2), in all its
 * forms, for elements of 1, 2, 4 and 8 bytes.
 *
 * A block of the form, or a whole chunk, is cut into tiles of 4 KiB of elements (tile.cuh), which are
 * 512 / size bytes of each row.  A warp makes a tile, and a lane transposes 32 words of it, in sets of
 * 32 elements:
 *
 *     size   sets a lane   words a set   which are
 *     1      4             8             32 elements that lie together
 *     2      2             16            likewise
 *     4      1             32            likewise
 *     8      1             32            the lower halves of 32 elements (even lanes), or their
 *                                        upper ones (odd lanes)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/tile.cuh"

/* ---- transposing ------------------------------------------------------------------------ */

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
 * hold e0 (and e1) in the place, and exchange it twice; the b end up in another order, which row()
 * tells.
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

/* ---- chunks ----------------------------------------------------------------------------- */

/* Every 'parts'-th tile of a chunk, from 'part' on.  'block' is not 0. */
template <uint32_t SIZE, bool ENCODE>
static __device__ __forceinline__ void lade_bits_chunk(uint32_t *s, const lade_gpu_chunk &c,
                                                       bool msb, uint32_t block, uint32_t part,
                                                       uint32_t parts, uint32_t lane)
{
	typedef lade_bits<SIZE> shape;
	uint32_t each = (block + LADE_TILE_BYTES - 1) / LADE_TILE_BYTES;
	uint32_t whole = c.src_size / block, rest = c.src_size % block;
	uint32_t tiles = whole * each + (rest + LADE_TILE_BYTES - 1) / LADE_TILE_BYTES;
	for (uint32_t at = part; at < tiles; at += parts) {
		uint32_t number = at / each, k = at - number * each;
		uint32_t begin = number * block, size = number < whole ? block : rest;
		lade_tile t;
		t.pitch = size / (8 * SIZE);
		t.first = msb ? (int32_t)((shape::ROWS - 1) * t.pitch) : 0;
		t.next = msb ? -(int32_t)t.pitch : (int32_t)t.pitch;
		/* The last tile reaches back over groups that another warp does too, with the same
		 * result, rather than have fewer. */
		uint32_t group = k * shape::GROUPS;
		t.groups = group >= t.pitch           ? 0
		           : t.pitch >= shape::GROUPS ? shape::GROUPS
		                                      : t.pitch;
		if (t.groups && t.pitch - group < t.groups)
			group = t.pitch - t.groups;
		uint32_t plain = begin + 8 * SIZE * group, rows = begin + group;
		if (t.groups && ENCODE)
			lade_tile_encode<shape>(s, c.src + plain, c.dst + rows, t, lane);
		else if (t.groups)
			lade_tile_decode<shape>(s, c.src + rows, c.dst + plain, t, lane);
		/* With the block's last tile go the bytes behind its groups. */
		if ((k + 1) * LADE_TILE_BYTES >= size)
			for (uint32_t i = 8 * SIZE * t.pitch + lane; i < size; i += 32)
				c.dst[begin + i] = __ldg(c.src + begin + i);
	}
}

template <bool ENCODE>
static __device__ __forceinline__ void lade_bits_batch(const lade_gpu_batch &batch, uint32_t size,
                                                       uint32_t order, uint32_t form)
{
	LADE_SHARED(uint32_t, words, [LADE_TILE_WARPS][LADE_TILE_SHARED]);
	uint32_t lane = lade_lane(), *s = words[threadIdx.x / 32];
	bool msb = order != 0;
	lade_tile_batch(batch, [=](uint32_t i, uint32_t part, uint32_t parts) {
		lade_gpu_chunk c;
		uint32_t status = lade_tile_chunk(batch, i, 1, LADE_GPU_OK, &c);
		if (status == LADE_GPU_OK && c.src_size) {
			/* One block that holds all is the same as none. */
			uint32_t block = form && form < c.src_size ? form : c.src_size;
			if (size == 1)
				lade_bits_chunk<1, ENCODE>(s, c, msb, block, part, parts, lane);
			else if (size == 2)
				lade_bits_chunk<2, ENCODE>(s, c, msb, block, part, parts, lane);
			else if (size == 4)
				lade_bits_chunk<4, ENCODE>(s, c, msb, block, part, parts, lane);
			else if (size == 8)
				lade_bits_chunk<8, ENCODE>(s, c, msb, block, part, parts, lane);
			else
				status = LADE_GPU_ARG;
		}
		lade_tile_verdict(batch, i, part, status, c.src_size, lane);
	});
}

/*
 * Map: a block is 128 threads, each warp of it on its own; the grid has less than 2^28 blocks, best
 * a warp for each tile.  'size' is 1, 2, 4 or 8; 'order' is 1 where the highest bit's row comes
 * first, else 0; 'block' is 0 or a multiple of 8 * size.  Sources and destinations have any
 * alignment and do not overlap.  'next' is not used.  Shared memory: 16.5 KiB, a tile a warp.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_bitshuffle_encode(lade_gpu_batch batch, uint32_t size, uint32_t order, uint32_t block)
{
	lade_bits_batch<true>(batch, size, order, block);
}

/* Likewise. */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_bitshuffle_decode(lade_gpu_batch batch, uint32_t size, uint32_t order, uint32_t block)
{
	lade_bits_batch<false>(batch, size, order, block);
}
