/*
 * shuffle.cu: the byte shuffle of chunks and back (docs/format/filters.md, sections 1 and 5).
 *
 * A warp makes a tile (tile.cuh).  A set is four elements, 'size' words that lie together; by byte
 * permutations it becomes a word of each row.  A lane has as many sets as make 32 words, about:
 *
 *     size          2    3    4    6    8    12   16
 *     sets a lane   16   10   8    5    4    2    2
 *
 * Elements of other sizes go byte by byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/tile.cuh"

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

/* Every 'parts'-th tile of a chunk of 'count' elements, from 'part' on. */
template <uint32_t SIZE, bool ENCODE>
static __device__ __forceinline__ void lade_bytes_chunk(uint32_t *s, const lade_gpu_chunk &c,
                                                        uint32_t count, uint32_t part,
                                                        uint32_t parts, uint32_t lane)
{
	typedef lade_bytes<SIZE> shape;
	uint32_t tiles = (count + shape::GROUPS - 1) / shape::GROUPS;
	lade_tile t = {count < shape::GROUPS ? count : shape::GROUPS, count, 0, (int32_t)count};
	for (uint32_t at = part; at < tiles; at += parts) {
		/* The last tile reaches back over elements that another warp does too, with the
		 * same result, rather than have fewer. */
		uint32_t first = at * shape::GROUPS;
		first = count - first < t.groups ? count - t.groups : first;
		if (ENCODE)
			lade_tile_encode<shape>(s, c.src + SIZE * first, c.dst + first, t, lane);
		else
			lade_tile_decode<shape>(s, c.src + first, c.dst + SIZE * first, t, lane);
	}
}

/* The same byte by byte: those of the shuffled side are the lanes' neighbours when encoding, those of
 * the elements when decoding, so that what is written lies together. */
template <bool ENCODE>
static __device__ __forceinline__ void lade_bytes_any(const lade_gpu_chunk &c, uint32_t size,
                                                      uint32_t count, uint32_t part, uint32_t parts,
                                                      uint32_t lane)
{
	if (ENCODE) {
		for (uint32_t i = 32 * part + lane; i < count; i += 32 * parts)
			for (uint32_t j = 0; j < size; j++)
				c.dst[(size_t)j * count + i] = __ldg(c.src + (size_t)i * size + j);
		return;
	}
	uint32_t end = count * size; /* at most the chunk's bytes */
	for (uint32_t at = 32 * part + lane; at < end; at += 32 * parts) {
		uint32_t i = at / size, j = at - i * size;
		c.dst[at] = __ldg(c.src + (size_t)j * count + i);
	}
}

template <bool ENCODE>
static __device__ __forceinline__ void lade_bytes_batch(const lade_gpu_batch &batch, uint32_t size,
                                                        uint32_t partial)
{
	LADE_SHARED(uint32_t, words, [LADE_TILE_WARPS][LADE_TILE_SHARED]);
	uint32_t lane = lade_lane(), *s = words[threadIdx.x / 32];
	lade_tile_batch(batch, [=](uint32_t i, uint32_t part, uint32_t parts) {
		lade_gpu_chunk c;
		uint32_t status = LADE_GPU_ARG;
		if (size)
			status = lade_tile_chunk(batch, i, size, partial, &c);
		if (status == LADE_GPU_OK) {
			uint32_t count = c.src_size / size;
			if (size == 2)
				lade_bytes_chunk<2, ENCODE>(s, c, count, part, parts, lane);
			else if (size == 3)
				lade_bytes_chunk<3, ENCODE>(s, c, count, part, parts, lane);
			else if (size == 4)
				lade_bytes_chunk<4, ENCODE>(s, c, count, part, parts, lane);
			else if (size == 6)
				lade_bytes_chunk<6, ENCODE>(s, c, count, part, parts, lane);
			else if (size == 8)
				lade_bytes_chunk<8, ENCODE>(s, c, count, part, parts, lane);
			else if (size == 12)
				lade_bytes_chunk<12, ENCODE>(s, c, count, part, parts, lane);
			else if (size == 16)
				lade_bytes_chunk<16, ENCODE>(s, c, count, part, parts, lane);
			else
				lade_bytes_any<ENCODE>(c, size, count, part, parts, lane);
			if (part == 0)
				for (uint32_t k = count * size + lane; k < c.src_size; k += 32)
					c.dst[k] = __ldg(c.src + k);
		}
		lade_tile_verdict(batch, i, part, status, c.src_size, lane);
	});
}

/*
 * Map: a block is 128 threads, each warp of it on its own; the grid has less than 2^28 blocks, best
 * a warp for each tile.  'size' is 1 to 255; 'partial' is the status of chunks that end with a part
 * of an element: LADE_GPU_OK where its bytes are kept as they are.  Sources and destinations have any
 * alignment and do not overlap.  'next' is not used.  Shared memory: 16.5 KiB, a tile a warp.
 */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_shuffle_encode(lade_gpu_batch batch, uint32_t size, uint32_t partial)
{
	lade_bytes_batch<true>(batch, size, partial);
}

/* Likewise. */
extern "C" __global__ void __launch_bounds__(32 * LADE_TILE_WARPS)
	lade_shuffle_decode(lade_gpu_batch batch, uint32_t size, uint32_t partial)
{
	lade_bytes_batch<false>(batch, size, partial);
}
