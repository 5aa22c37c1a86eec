/*
 * filter.cuh: filters on one chunk, by some of the warps that work on it: each takes tiles
 * in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_FILTER_CUH
#define LADE_CUDA_FILTER_CUH

#include "filter/kernels/rows.cuh"
#include "filter/kernels/words.cuh"

/* Lines of a tile that ops work on at once where they are not all there is to do: more would take
 * registers from the rows. */
#define LADE_FILTER_LINES 8

/* The ops of a direction, so that no code is made for others. */
template <bool ENCODE> static __device__ __forceinline__ uint32_t lade_filter_ops(uint32_t ops)
{
	return ops & (ENCODE ? LADE_WORDS_SWAP | LADE_WORDS_DIFF | LADE_WORDS_ZIG
	                     : LADE_WORDS_ZAG | LADE_WORDS_SWAP);
}

/* ---- rows of bytes ---------------------------------------------------------------------- */

/* Every 'parts'-th tile of a chunk of 'count' elements, from 'part' on. */
template <uint32_t SIZE, bool ENCODE>
static __device__ __forceinline__ void lade_bytes_chunk(uint32_t *s, const lade_gpu_chunk &c,
                                                        uint32_t ops, uint32_t count, uint32_t part,
                                                        uint32_t parts, uint32_t lane)
{
	typedef lade_bytes<SIZE> shape;
	constexpr uint32_t ELEMENT = SIZE & (SIZE - 1) || SIZE > 8 ? 1 : SIZE; /* of 'ops' */
	uint32_t tiles = (count + shape::GROUPS - 1) / shape::GROUPS;
	lade_tile t = {count < shape::GROUPS ? count : shape::GROUPS, count, 0, (int32_t)count};
	for (uint32_t at = part; at < tiles; at += parts) {
		/* The last tile reaches back over elements that another warp does too, with the
		 * same result, rather than have fewer. */
		uint32_t first = at * shape::GROUPS;
		first = count - first < t.groups ? count - t.groups : first;
		const uint8_t *src = c.src + (ENCODE ? SIZE : 1) * first;
		uint8_t *dst = c.dst + (ENCODE ? 1 : SIZE) * first;
		uint32_t edge = ENCODE ? lade_words_edge(ops, ELEMENT, src, first, lane) : 0;
		auto work = [=]() { lade_words<ELEMENT, LADE_FILTER_LINES>(ops, s, edge, lane); };
		if (ENCODE)
			lade_tile_encode<shape>(s, src, dst, t, lane, work);
		else
			lade_tile_decode<shape>(s, src, dst, t, lane, work);
	}
}

/* The same byte by byte: those of the shuffled side are the lanes' neighbours when encoding, those
 * of the elements when decoding, so that what is written is adjacent. */
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

/* A chunk of elements of any size. */
template <bool ENCODE>
static __device__ __forceinline__ void lade_bytes_all(uint32_t *s, const lade_gpu_chunk &c,
                                                      const lade_filters &f, uint32_t part,
                                                      uint32_t parts, uint32_t lane)
{
	uint32_t size = f.size, count = c.src_size / size;
	if (size == 2)
		lade_bytes_chunk<2, ENCODE>(s, c, f.ops, count, part, parts, lane);
	else if (size == 3)
		lade_bytes_chunk<3, ENCODE>(s, c, 0, count, part, parts, lane);
	else if (size == 4)
		lade_bytes_chunk<4, ENCODE>(s, c, f.ops, count, part, parts, lane);
	else if (size == 6)
		lade_bytes_chunk<6, ENCODE>(s, c, 0, count, part, parts, lane);
	else if (size == 8)
		lade_bytes_chunk<8, ENCODE>(s, c, f.ops, count, part, parts, lane);
	else if (size == 12)
		lade_bytes_chunk<12, ENCODE>(s, c, 0, count, part, parts, lane);
	else if (size == 16)
		lade_bytes_chunk<16, ENCODE>(s, c, 0, count, part, parts, lane);
	else
		lade_bytes_any<ENCODE>(c, size, count, part, parts, lane);
	if (part == 0)
		for (uint32_t k = count * size + lane; k < c.src_size; k += 32)
			c.dst[k] = __ldg(c.src + k);
}

/* ---- rows of bits ---------------------------------------------------------------------- */

/* Every 'parts'-th tile of a chunk, from 'part' on.  'block' is not 0. */
template <uint32_t SIZE, bool ENCODE>
static __device__ __forceinline__ void lade_bits_chunk(uint32_t *s, const lade_gpu_chunk &c,
                                                       uint32_t ops, bool msb, uint32_t block,
                                                       uint32_t part, uint32_t parts, uint32_t lane)
{
	typedef lade_bits<SIZE> shape;
	uint32_t each = (block + LADE_TILE_BYTES - 1) / LADE_TILE_BYTES;
	uint32_t whole = c.src_size / block, rest = c.src_size % block;
	uint32_t tiles = whole * each + (rest + LADE_TILE_BYTES - 1) / LADE_TILE_BYTES;
	for (uint32_t at = part; at < tiles; at += parts) {
		uint32_t number = at / each, k = at - number * each;
		uint32_t begin = number * block, size = number < whole ? block : rest;
		uint32_t group = k * shape::GROUPS;
		lade_tile t = lade_bits_tile<SIZE>(size, group, msb);
		/* The last tile reaches back over groups that another warp does too, with the same
		 * result, rather than have fewer. */
		if (t.groups && t.groups < shape::GROUPS && t.pitch >= shape::GROUPS) {
			t.groups = shape::GROUPS;
			group = t.pitch - t.groups;
		}
		uint32_t plain = begin + 8 * SIZE * group, rows = begin + group;
		const uint8_t *src = c.src + (ENCODE ? plain : rows);
		uint8_t *dst = c.dst + (ENCODE ? rows : plain);
		uint32_t edge = ENCODE ? lade_words_edge(ops, SIZE, src, plain, lane) : 0;
		auto work = [=]() { lade_words<SIZE, LADE_FILTER_LINES>(ops, s, edge, lane); };
		if (t.groups && ENCODE)
			lade_tile_encode<shape>(s, src, dst, t, lane, work);
		else if (t.groups)
			lade_tile_decode<shape>(s, src, dst, t, lane, work);
		/* With the block's last tile go the bytes behind its groups. */
		if ((k + 1) * LADE_TILE_BYTES < size)
			continue;
		uint32_t end = begin + 8 * SIZE * t.pitch, bytes = size % (8 * SIZE);
		if (!ops) {
			for (uint32_t i = lane; i < bytes; i += 32)
				c.dst[end + i] = __ldg(c.src + end + i);
		} else if (bytes) {
			edge = lade_words_edge(ops, SIZE, c.src + end, end, lane);
			lade_tile_plain(s, c.src + end, c.dst + end, bytes, lane, [=]() {
				lade_words<SIZE, LADE_FILTER_LINES>(ops, s, edge, lane);
			});
		}
	}
}

/* A chunk of elements of 1, 2, 4 or 8 bytes; others: false. */
template <bool ENCODE>
static __device__ __forceinline__ bool lade_bits_all(uint32_t *s, const lade_gpu_chunk &c,
                                                     const lade_filters &f, uint32_t part,
                                                     uint32_t parts, uint32_t lane)
{
	/* One block that holds all is the same as none. */
	uint32_t size = f.size, ops = lade_filter_ops<ENCODE>(f.ops);
	uint32_t block = f.block && f.block < c.src_size ? f.block : c.src_size;
	bool msb = f.msb != 0;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return false;
	if (!c.src_size)
		return true;
	if (size == 1)
		lade_bits_chunk<1, ENCODE>(s, c, ops, msb, block, part, parts, lane);
	else if (size == 2)
		lade_bits_chunk<2, ENCODE>(s, c, ops, msb, block, part, parts, lane);
	else if (size == 4)
		lade_bits_chunk<4, ENCODE>(s, c, ops, msb, block, part, parts, lane);
	else
		lade_bits_chunk<8, ENCODE>(s, c, ops, msb, block, part, parts, lane);
	return true;
}

/* ---- elements --------------------------------------------------------------------------- */

/* Every 'parts'-th tile of a chunk, from 'part' on. */
template <uint32_t LINES>
static __device__ __forceinline__ void lade_stream_chunk(uint32_t *s, const lade_gpu_chunk &c,
                                                         uint32_t ops, uint32_t size, uint32_t part,
                                                         uint32_t parts, uint32_t lane)
{
	uint32_t tiles = (c.src_size + LADE_TILE_BYTES - 1) / LADE_TILE_BYTES;
	uint32_t bytes = c.src_size < LADE_TILE_BYTES ? c.src_size : LADE_TILE_BYTES;
	for (uint32_t at = part; at < tiles; at += parts) {
		/* The last tile reaches back over elements that another warp does too, with the
		 * same result, rather than have fewer. */
		uint32_t first = at * LADE_TILE_BYTES;
		first = c.src_size - first < bytes ? c.src_size - bytes : first;
		uint32_t edge = lade_words_edge(ops, size, c.src + first, first, lane);
		lade_tile_plain(s, c.src + first, c.dst + first, bytes, lane,
		                [=]() { lade_words_any<LINES>(ops, size, s, edge, lane); });
	}
}

#endif
