/*
 * tile.cuh: how a warp brings a tile of up to 4 KiB, which is at any address, to shared memory
 * and back, and how it exchanges one for rows of bytes or bits of equal weight, which are anywhere.
 * The filters that transpose (bitshuffle.cu, shuffle.cu), those that go from element to element
 * (stream.cu), and several of both at once (filters.cu) are made of it.
 *
 * A tile is lines of 128 bytes, a word a lane.  Those that transpose give a lane sets of words, as
 * a shape S says:
 *
 *     ALL      words of a lane, 32 at most; lines of a tile
 *     SETS     sets of a lane; WORDS words each, which are transposed by to_rows() and from_rows()
 *     ROWS     rows of a block; row(i, lane) is that of word i of a set
 *     STEP     lanes from word to word of a row
 *     PLAIN    bytes of elements for a byte of each row
 *     GROUPS   bytes of a row in a tile
 *     slot(k, lane)   where in shared memory word k of the lane is, words of all its sets counted
 *
 * A set becomes a word of each of its rows, and the lanes' words of a row are adjacent.  So rows
 * are read and written in lines of 128 bytes (64 where STEP is 2) with no further ado; elements,
 * whose lines belong to few lanes each, go by way of shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_TILE_CUH
#define LADE_CUDA_TILE_CUH

#include "filter/args.h"
#include "gpu/kernels/batch.cuh"

/* Word x of a tile is at x + x / 32, so that neither a line's words nor the lanes' n-th ones share
 * a bank. */
#define LADE_TILE_SHARED (LADE_TILE_BYTES / 4 / 32 * 33)

/* ---- words in memory -------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t lade_tile_load(const uint8_t *from)
{
	return __ldg((const uint32_t *)from);
}

static __device__ __forceinline__ void lade_tile_store(uint8_t *to, uint32_t word)
{
	__stwb((uint32_t *)to, word);
}

/* The word at any address of which 'left' bytes are there, at most 4 of them wanted; others are
 * 0. */
static __device__ __forceinline__ uint32_t lade_tile_load_some(const uint8_t *from, int32_t left)
{
	uint32_t word = 0;
	if (left >= 4 && !((uintptr_t)from & 3))
		return lade_tile_load(from);
#pragma unroll
	for (int32_t k = 0; k < 4; k++)
		if (k < left)
			word |= (uint32_t)__ldg(from + k) << (8 * k);
	return word;
}

/*
 * Stores the words of a line at any address: the lane's word at 'to', of which 'left' bytes belong
 * to the line.  The word before it in the line is that of the lane 'step' below; lanes below 'step'
 * begin a line.  A lane writes the aligned word that holds the first byte of its own, if all of
 * that is in the line, and else bytes.  For all lanes.
 */
static __device__ __forceinline__ void
lade_tile_store_line(uint8_t *to, uint32_t word, int32_t left, uint32_t step, uint32_t lane)
{
	int32_t over = (int32_t)((uintptr_t)to & 3);
	uint32_t before = __shfl_up_sync(LADE_FULL, word, step);
	bool first = lane < step;
	uint32_t shifted = __funnelshift_l(before, word, 8 * (uint32_t)over);
	if (left >= 4 - over && (!first || !over)) {
		lade_tile_store(to - over, shifted);
	} else {
#pragma unroll
		for (int32_t k = 0; k < 4; k++)
			if (k - over < left && (k >= over || !first))
				to[k - over] = (uint8_t)(shifted >> (8 * k));
	}
	/* The last word's bytes that no lane follows to write. */
	if (lane + step >= 32)
		for (int32_t k = 4 - over; k < 4; k++)
			if (k < left)
				to[k] = (uint8_t)(word >> (8 * k));
}

/* ---- elements and lines ------------------------------------------------------------------- */

/*
 * The ways to and from memory, for elements and for rows.  By a whole warp; 's' is its shared
 * memory, which after __syncwarp() holds nothing that is still wanted.  Each has a way for whole
 * tiles at addresses that are multiples of 4, one for whole tiles at any, which moves aligned words
 * and shifts, and one for less than a tile, which takes lines one by one.
 */

/* The 'bytes' of a tile of WORDS lines to shared memory; of words that are not whole the missing
 * bytes are 0, and so is all behind them. */
template <uint32_t WORDS>
static __device__ __forceinline__ void lade_tile_get_plain(uint32_t *s, const uint8_t *src,
                                                           uint32_t bytes, uint32_t lane)
{
	uint32_t over = (uint32_t)(uintptr_t)src & 3, w[WORDS];
	const uint8_t *mine = src + 4 * lane;
	if (bytes < 128 * WORDS) {
		int32_t left = (int32_t)bytes - (int32_t)(4 * lane);
#pragma unroll 4
		for (int32_t k = 0; k < (int32_t)WORDS; k++)
			s[33 * k + (int32_t)lane] =
				lade_tile_load_some(mine + 128 * k, left - 128 * k);
		return;
	}
	/* The first word begins before the tile: its bytes are taken one by one, and so are those
	 * behind the last one. */
#pragma unroll
	for (uint32_t k = 0; k < WORDS; k++)
		w[k] = k || lane || !over
		               ? lade_tile_load(mine - over + 128 * k)
		               : lade_tile_load_some(src, 4 - (int32_t)over) << (8 * over);
	if (over) {
		uint32_t end =
			lane == 31 ? lade_tile_load_some(src + 128 * WORDS - over, (int32_t)over)
				   : 0;
#pragma unroll
		for (uint32_t k = 0; k < WORDS; k++) {
			uint32_t after =
				lane || k == WORDS - 1 ? w[k] : w[k < WORDS - 1 ? k + 1 : k];
			after = __shfl_sync(LADE_FULL, after, (lane + 1) & 31);
			if (k == WORDS - 1 && lane == 31)
				after = end;
			s[33 * k + lane] = __funnelshift_r(w[k], after, 8 * over);
		}
		return;
	}
#pragma unroll
	for (uint32_t k = 0; k < WORDS; k++)
		s[33 * k + lane] = w[k];
}

/* And from there. */
template <uint32_t WORDS>
static __device__ __forceinline__ void lade_tile_put_plain(const uint32_t *s, uint8_t *dst,
                                                           uint32_t bytes, uint32_t lane)
{
	uint32_t over = (uint32_t)(uintptr_t)dst & 3, w[WORDS];
	uint8_t *mine = dst + 4 * lane;
	if (bytes < 128 * WORDS) {
		int32_t left = (int32_t)bytes - (int32_t)(4 * lane);
		for (int32_t k = 0; k < (int32_t)WORDS; k++)
			lade_tile_store_line(mine + 128 * k, s[33 * k + (int32_t)lane],
			                     left - 128 * k, 1, lane);
		return;
	}
#pragma unroll
	for (uint32_t k = 0; k < WORDS; k++)
		w[k] = s[33 * k + lane];
	if (over) {
		if (lane == 31)
			for (uint32_t b = 4 - over; b < 4; b++)
				mine[128 * (WORDS - 1) + b] = (uint8_t)(w[WORDS - 1] >> (8 * b));
		if (lane == 0)
			for (uint32_t b = 0; b < 4 - over; b++)
				dst[b] = (uint8_t)(w[0] >> (8 * b));
				/* The word before a line's first is the last of the line before. */
#pragma unroll
		for (uint32_t k = 0; k < WORDS; k++)
			if (k || lane) {
				uint32_t before = s[33 * k + lane - (lane ? 1 : 2)];
				w[k] = __funnelshift_l(before, w[k], 8 * over);
			}
	}
#pragma unroll
	for (uint32_t k = 0; k < WORDS; k++)
		if (k || lane || !over)
			lade_tile_store(mine - over + 128 * k, w[k]);
}

/* ---- rows ------------------------------------------------------------------------------- */

/* A tile of a block: its elements, and its part of row 0.  'groups' bytes of each row are there. */
struct lade_tile {
	uint32_t groups;
	uint32_t pitch; /* bytes of a row of the block */
	int32_t first;  /* bytes from the row that stands first to row 0 */
	int32_t next;   /* and from a row to the next */
};

/* Where word k of the lane is, from the tile's part of the row that stands first; and how many
 * bytes of the tile's part of its row there are from it on. */
template <typename S>
static __device__ __forceinline__ int32_t lade_tile_place(const lade_tile &t, uint32_t k,
                                                          uint32_t lane, int32_t *left)
{
	int32_t at = (int32_t)(128 * (k / S::WORDS) + 4 * (lane / S::STEP));
	*left = (int32_t)t.groups - at;
	return t.first + (int32_t)S::row(k % S::WORDS, lane) * t.next + at;
}

/* Rows to the lanes' words. */
template <typename S>
static __device__ __forceinline__ void lade_tile_get_rows(uint32_t *s, const uint8_t *src,
                                                          const lade_tile &t, uint32_t *w,
                                                          uint32_t lane)
{
	constexpr uint32_t STEP = S::STEP, LINE = 128 / STEP;
	int32_t left;
	if (t.groups < S::GROUPS) {
#pragma unroll 4
		for (uint32_t k = 0; k < S::ALL; k++) {
			const uint8_t *from = src + lade_tile_place<S>(t, k, lane, &left);
			s[33 * k + lane] = lade_tile_load_some(from, left);
		}
#pragma unroll
		for (uint32_t k = 0; k < S::ALL; k++)
			w[k] = s[33 * k + lane];
		__syncwarp();
		return;
	}
	if (!(((uintptr_t)src | t.pitch) & 3)) {
#pragma unroll
		for (uint32_t k = 0; k < S::ALL; k++)
			w[k] = lade_tile_load(src + lade_tile_place<S>(t, k, lane, &left));
		return;
	}
	/* A lane takes the ends of one line of each parity: the bytes before its first whole word,
	 * and those behind its last. */
#pragma unroll
	for (uint32_t parity = 0; parity < STEP; parity++) {
		const uint8_t *from = src + lade_tile_place<S>(t, lane, parity, &left);
		uint32_t over = (uint32_t)(uintptr_t)from & 3, first = 0, last = 0;
		if (over && (S::ALL == 32 || lane < S::ALL)) {
			first = lade_tile_load_some(from, 4 - (int32_t)over) << (8 * over);
			last = lade_tile_load_some(from + LINE - over, (int32_t)over);
		}
		s[64 * parity + lane] = first;
		s[64 * parity + 32 + lane] = last;
	}
	__syncwarp();
	const uint32_t *ends = s + 64 * (lane & (STEP - 1));
#pragma unroll
	for (uint32_t k = 0; k < S::ALL; k++) {
		const uint8_t *from = src + lade_tile_place<S>(t, k, lane, &left);
		uint32_t over = (uint32_t)(uintptr_t)from & 3;
		w[k] = lane >= STEP || !over ? lade_tile_load(from - over) : ends[k];
	}
#pragma unroll
	for (uint32_t k = 0; k < S::ALL; k++) {
		const uint8_t *from = src + lade_tile_place<S>(t, k, lane, &left);
		uint32_t after = __shfl_down_sync(LADE_FULL, w[k], STEP);
		if (lane >= 32 - STEP)
			after = ends[32 + k];
		w[k] = __funnelshift_r(w[k], after, 8 * ((uint32_t)(uintptr_t)from & 3));
	}
	__syncwarp();
}

/* The lanes' words to rows. */
template <typename S>
static __device__ __forceinline__ void lade_tile_put_rows(uint32_t *s, uint8_t *dst,
                                                          const lade_tile &t,
                                                          const uint32_t *w, uint32_t lane)
{
	constexpr uint32_t STEP = S::STEP, LINE = 128 / STEP;
	bool whole = t.groups == S::GROUPS;
	int32_t left;
	if (whole && !(((uintptr_t)dst | t.pitch) & 3)) {
#pragma unroll
		for (uint32_t k = 0; k < S::ALL; k++)
			lade_tile_store(dst + lade_tile_place<S>(t, k, lane, &left), w[k]);
		return;
	}
#pragma unroll
	for (uint32_t k = 0; k < S::ALL; k++)
		s[33 * k + lane] = w[k];
	if (!whole) {
		for (uint32_t k = 0; k < S::ALL; k++) {
			uint8_t *to = dst + lade_tile_place<S>(t, k, lane, &left);
			lade_tile_store_line(to, s[33 * k + lane], left, STEP, lane);
		}
		__syncwarp();
		return;
	}
	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < S::ALL; k++) {
		uint8_t *to = dst + lade_tile_place<S>(t, k, lane, &left);
		uint32_t over = (uint32_t)(uintptr_t)to & 3;
		uint32_t before = __shfl_up_sync(LADE_FULL, w[k], STEP);
		if (lane >= STEP || !over)
			lade_tile_store(to - over, __funnelshift_l(before, w[k], 8 * over));
	}
	/* A lane stores the ends of one line of each parity. */
#pragma unroll
	for (uint32_t parity = 0; parity < STEP; parity++) {
		if (S::ALL < 32 && lane >= S::ALL)
			break;
		uint8_t *to = dst + lade_tile_place<S>(t, lane, parity, &left);
		uint32_t over = (uint32_t)(uintptr_t)to & 3;
		uint32_t first = s[33 * lane + parity], last = s[33 * lane + 32 - STEP + parity];
#pragma unroll
		for (uint32_t b = 0; b < 4; b++) {
			if (over && b < 4 - over)
				to[b] = (uint8_t)(first >> (8 * b));
			if (b >= 4 - over)
				to[LINE - 4 + b] = (uint8_t)(last >> (8 * b));
		}
	}
	__syncwarp();
}

/* A tile of elements to elements: 'work' is done to it in shared memory. */
template <typename F>
static __device__ __forceinline__ void lade_tile_plain(uint32_t *s, const uint8_t *src,
                                                       uint8_t *dst, uint32_t bytes, uint32_t lane,
                                                       F work)
{
	lade_tile_get_plain<32>(s, src, bytes, lane);
	__syncwarp();
	work();
	lade_tile_put_plain<32>(s, dst, bytes, lane);
	__syncwarp();
}

/* Elements to rows, with 'work' done to the elements first.  Reads S::PLAIN * groups bytes of
 * 'src', writes 'groups' bytes of each row. */
template <typename S, typename F>
static __device__ __forceinline__ void lade_tile_encode(uint32_t *s, const uint8_t *src,
                                                        uint8_t *dst, const lade_tile &t,
                                                        uint32_t lane, F work)
{
	uint32_t w[S::ALL];
	lade_tile_get_plain<S::ALL>(s, src, S::PLAIN * t.groups, lane);
	__syncwarp();
	work();
#pragma unroll
	for (uint32_t k = 0; k < S::ALL; k++)
		w[k] = s[S::slot(k, lane)];
	__syncwarp();
#pragma unroll
	for (uint32_t set = 0; set < S::SETS; set++)
		S::to_rows(w + set * S::WORDS);
	lade_tile_put_rows<S>(s, dst, t, w, lane);
}

/* Rows to elements in shared memory, where zeros follow. */
template <typename S>
static __device__ __forceinline__ void lade_tile_get(uint32_t *s, const uint8_t *src,
                                                     const lade_tile &t, uint32_t lane)
{
	uint32_t w[S::ALL];
	lade_tile_get_rows<S>(s, src, t, w, lane);
#pragma unroll
	for (uint32_t set = 0; set < S::SETS; set++)
		S::from_rows(w + set * S::WORDS);
#pragma unroll
	for (uint32_t k = 0; k < S::ALL; k++)
		s[S::slot(k, lane)] = w[k];
	__syncwarp();
}

/* Rows to elements, likewise; 'work' is done to these. */
template <typename S, typename F>
static __device__ __forceinline__ void lade_tile_decode(uint32_t *s, const uint8_t *src,
                                                        uint8_t *dst, const lade_tile &t,
                                                        uint32_t lane, F work)
{
	lade_tile_get<S>(s, src, t, lane);
	work();
	lade_tile_put_plain<S::ALL>(s, dst, S::PLAIN * t.groups, lane);
	__syncwarp();
}

/* ---- batches ---------------------------------------------------------------------------- */

/*
 * Calls item(i, part, parts) for each chunk i of a batch: a chunk has as many warps as the grid has
 * for it, 'parts', at least one; each of them takes tiles in turn.
 */
template <typename F>
static __device__ __forceinline__ void lade_tile_batch(const lade_gpu_batch &batch, F item)
{
	uint32_t warps = gridDim.x * LADE_TILE_WARPS;
	uint32_t parts = warps < batch.count ? 1 : warps / batch.count;
	uint64_t all = (uint64_t)batch.count * parts;
	for (uint64_t at = (uint64_t)blockIdx.x * LADE_TILE_WARPS + threadIdx.x / 32; at < all;
	     at += warps) {
		uint32_t unit = (uint32_t)at; /* below the warps or below the count */
		item(unit / parts, unit % parts, parts);
	}
}

/* Chunk 'i', which becomes as many bytes as it has. */
static __device__ __forceinline__ uint32_t lade_tile_chunk(const lade_gpu_batch &batch, uint32_t i,
                                                           const lade_filters &f, lade_gpu_chunk *c)
{
	uint32_t status = lade_chunk_get(batch, i, c);
	if (status != LADE_GPU_OK)
		return status;
	uint32_t verdict = c->dst_cap < c->src_size ? LADE_GPU_NOSPACE : LADE_GPU_OK;
	bool part = f.partial != LADE_GPU_OK && c->src_size % f.size;
	return part && !(f.late && verdict != LADE_GPU_OK) ? f.partial : verdict;
}

/* All warps of a chunk come to the same verdict, and one reports it.  Where 'before' and 'status'
 * are one table, the others may find it already, and agree. */
static __device__ __forceinline__ void lade_tile_verdict(const lade_gpu_batch &batch, uint32_t i,
                                                         uint32_t part, uint32_t status,
                                                         uint32_t size, uint32_t lane)
{
	if (part == 0 && lane == 0)
		lade_chunk_put(batch, i, status, size);
}

#endif
