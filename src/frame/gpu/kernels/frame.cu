/*
 * frame.cu: .lade frames (docs/format/frame.md) that are made and read in place.
 *
 * Making one: the chunks have been encoded, each to a slot of its own.
 *
 *     place  one block: where each part goes; the header and the chunks' headers
 *     pack   payloads to their places, a warp each piece; index, list and footer, a block each page
 *
 * Reading one: the host has read the index, and the chunks have been decoded in place.
 *
 *     look   a thread a chunk: whether its header says what the index says, and what came of it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/kernels/bytes.cuh"
#include "checksum/kernels/xxh64.cuh"
#include "frame/gpu/args.h"

static __device__ __forceinline__ uint64_t lade_frame_pad(uint64_t size)
{
	return (size + 15) & ~(uint64_t)15;
}

/* A word at any address. */
static __device__ __forceinline__ void lade_frame_put(uint8_t *to, uint64_t word)
{
	if (((uintptr_t)to & 7) == 0) {
		*(uint64_t *)to = word;
		return;
	}
#pragma unroll
	for (uint32_t k = 0; k < 8; k++)
		to[k] = (uint8_t)(word >> 8 * k);
}

static __device__ __forceinline__ uint64_t lade_frame_get(const uint8_t *from)
{
	uint64_t word = 0;
	if (((uintptr_t)from & 7) == 0)
		return *(const uint64_t *)from;
#pragma unroll
	for (uint32_t k = 0; k < 8; k++)
		word |= (uint64_t)from[k] << 8 * k;
	return word;
}

/* The check of a part with nothing behind its first 24 bytes. */
static __device__ __forceinline__ uint64_t lade_frame_check(const uint64_t word[3], uint64_t seed)
{
	return lade_xxh_end(lade_xxh_words(word, 3, seed) + LADE_XXH_5);
}

/* ---- making --------------------------------------------------------------------------------- */

/* What chunk 'i' decodes to: below the last one chunk_size bytes. */
static __device__ __forceinline__ uint32_t lade_frame_decoded(uint64_t size, uint32_t chunk_size,
                                                              uint64_t i)
{
	uint64_t left = size - i * chunk_size;
	return left < chunk_size ? (uint32_t)left : chunk_size;
}

/* The entry of chunk 'i'; '*bad' where it could not be encoded. */
static __device__ __forceinline__ uint64_t lade_frame_entry(const lade_gpu_frame &f, uint64_t i,
                                                            bool *bad)
{
	uint32_t decoded = lade_frame_decoded(f.size, f.chunk_size, i), status = f.statuses[i];
	uint64_t coded = f.sizes[i];
	/* A last chunk that is no whole number of elements is none of an arithmetic filter's.  What
	 * would be larger than a chunk can be is larger than this one. */
	bool stored = status == LADE_GPU_NOSPACE || status == LADE_GPU_LIMIT ||
	              (status == LADE_GPU_DTYPE && decoded < f.chunk_size) ||
	              (status == LADE_GPU_OK && (coded == 0 || coded >= decoded));
	*bad = !stored && status != LADE_GPU_OK;
	return stored || *bad ? decoded | (uint64_t)LADE_FRAME_STORED << 32 : coded;
}

/* Map: one block of 1024, thread = chunk, 1024 at a time.  Shared: a sum for each warp. */
extern "C" __global__ void __launch_bounds__(LADE_FRAME_PLACE_THREADS)
	lade_frame_place(lade_gpu_frame f)
{
	LADE_SHARED(uint64_t, sum, [32]);
	LADE_SHARED(uint32_t, worst);
	uint64_t before = f.header_size, pages = 0;
	if (threadIdx.x == 0)
		worst = UINT32_MAX; /* the first chunk that could not be encoded */
	for (uint32_t i = threadIdx.x; i < f.header_size && f.header_size <= f.cap; i += 1024)
		f.dst[i] = f.header[i];
	__syncthreads();
	for (uint64_t first = 0; first < f.count; first += 1024) {
		uint64_t i = first + threadIdx.x, entry = 0, mine = 0;
		if (i < f.count) {
			bool bad;
			entry = lade_frame_entry(f, i, &bad);
			mine = LADE_FRAME_HEADER + lade_frame_pad((uint32_t)entry);
			if (bad)
				atomicMin(&worst, (uint32_t)i);
		}
		uint64_t at = before;
		at += lade_block_before(sum, mine, &before);
		if (i < f.count) {
			uint32_t decoded = lade_frame_decoded(f.size, f.chunk_size, i);
			uint64_t word[3] = {LADE_FRAME_CHUNK_MARK | entry << 32,
			                    decoded | entry >> 32 << 32, f.sums ? f.sums[i] : 0};
			f.off[i] = at;
			f.entry[i] = entry;
			if (at + mine <= f.cap) {
				uint8_t *to = f.dst + at;
#pragma unroll
				for (uint32_t k = 0; k < 3; k++)
					lade_frame_put(to + 8 * k, word[k]);
				lade_frame_put(to + 24, lade_frame_check(word, i));
				for (uint64_t k = LADE_FRAME_HEADER + (uint32_t)entry; k < mine;
				     k++)
					to[k] = 0;
			}
		}
		/* A page behind each 4096 chunks, and behind the last. */
		if ((first + 1024) % LADE_FRAME_PAGE == 0 || first + 1024 >= f.count) {
			uint64_t in_page = f.count - pages * LADE_FRAME_PAGE;
			if (threadIdx.x == 0)
				f.off[f.count + pages] = before;
			in_page = in_page < LADE_FRAME_PAGE ? in_page : LADE_FRAME_PAGE;
			before += lade_frame_pad(LADE_FRAME_HEADER + 8 * in_page);
			pages++;
		}
		__syncthreads();
	}
	if (threadIdx.x == 0) {
		uint64_t whole = before + lade_frame_pad(LADE_FRAME_HEADER + 8 * pages) +
		                 LADE_FRAME_FOOTER;
		uint64_t status = worst != UINT32_MAX ? f.statuses[worst]
		                  : whole > f.cap     ? LADE_GPU_NOSPACE
		                                      : LADE_GPU_OK;
		f.off[f.count + pages] = before;
		whole = status == LADE_GPU_OK ? whole : 0;
		f.report[0] = f.answer[0] = whole;
		f.report[1] = f.answer[1] = status;
	}
}

/*
 * A page, or the list: mark and 'count' of the words that follow, 'second', 'third', check, words.
 * By a block; 'word' is shared memory for all words.
 */
static __device__ __forceinline__ void lade_frame_part(uint8_t *to, uint64_t *word,
                                                       const uint64_t *from, uint32_t count,
                                                       uint64_t first, uint64_t second,
                                                       uint64_t third)
{
	for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
		word[i] = from[i];
		lade_frame_put(to + LADE_FRAME_HEADER + 8 * (size_t)i, word[i]);
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		uint64_t head[3] = {first, second, third};
#pragma unroll
		for (uint32_t k = 0; k < 3; k++)
			lade_frame_put(to + 8 * k, head[k]);
		lade_frame_put(to + 24, lade_xxh_words(word, count, lade_xxh_words(head, 3, 0)));
		if (count % 2)
			lade_frame_put(to + LADE_FRAME_HEADER + 8 * (size_t)count, 0);
	}
	__syncthreads();
}

static __device__ __forceinline__ void lade_frame_end(const lade_gpu_frame &f, uint64_t *word,
                                                      uint32_t pages)
{
	uint64_t at = f.off[f.count + pages];
	uint8_t *foot = f.dst + at + lade_frame_pad(LADE_FRAME_HEADER + 8 * (uint64_t)pages);
	lade_frame_part(f.dst + at, word, f.off + f.count, pages, LADE_FRAME_LIST_MARK, pages,
	                f.count);
	if (threadIdx.x)
		return;
	uint64_t last[6] = {LADE_FRAME_FOOT_MARK, f.size, f.count, f.report[0], f.header_check, 0};
#pragma unroll
	for (uint32_t k = 0; k < 6; k++)
		lade_frame_put(foot + 8 * k, last[k]);
	lade_frame_put(foot + 48, lade_xxh_words(last, 6, 0));
	lade_frame_put(foot + 56, LADE_FRAME_END);
}

/*
 * Map: block 0 = list and footer, block 1 + p = page p, 'pages' of them, at most 4096; behind
 * these warp = pieces of payloads in turn, 'pieces' a chunk.  Shared: the words of a page.
 */
extern "C" __global__ void __launch_bounds__(LADE_FRAME_PACK_THREADS)
	lade_frame_pack(lade_gpu_frame f, uint32_t pages, uint32_t pieces)
{
	LADE_SHARED(uint64_t, word, [LADE_FRAME_PAGE]);
	if (f.report[1] != LADE_GPU_OK)
		return;
	if (blockIdx.x == 0) {
		lade_frame_end(f, word, pages);
		return;
	}
	if (blockIdx.x <= pages) {
		uint32_t page = blockIdx.x - 1, first = page * LADE_FRAME_PAGE;
		uint32_t n = f.count - first < LADE_FRAME_PAGE ? f.count - first : LADE_FRAME_PAGE;
		lade_frame_part(f.dst + f.off[f.count + page], word, f.entry + first, n,
		                LADE_FRAME_PAGE_MARK | (uint64_t)n << 32, first, f.off[first]);
		return;
	}
	uint32_t warps = (gridDim.x - 1 - pages) * (blockDim.x / 32);
	uint32_t warp = (blockIdx.x - 1 - pages) * (blockDim.x / 32) + threadIdx.x / 32;
	/* Below 2^31 + 2^31. */
	for (uint32_t piece = warp; piece < f.count * pieces; piece += warps) {
		uint32_t i = piece / pieces, from = piece % pieces * LADE_FRAME_PIECE;
		uint64_t entry = f.entry[i];
		uint32_t size = (uint32_t)entry;
		if (from >= size)
			continue;
		const uint8_t *src = entry >> 32 ? f.src + (uint64_t)i * f.chunk_size
		                                 : f.slots + i * f.slot;
		lade_bytes_copy_wide(f.dst + f.off[i] + LADE_FRAME_HEADER + from, src + from,
		              size - from < LADE_FRAME_PIECE ? size - from : LADE_FRAME_PIECE,
		              lade_lane());
	}
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Map: thread = chunk. */
extern "C" __global__ void lade_frame_look(lade_gpu_look f)
{
	uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= f.count)
		return;
	const uint8_t *at = f.frame + f.off[i];
	uint64_t entry = f.entry[i], word[4];
	uint32_t size = (uint32_t)entry;
	uint32_t decoded = lade_frame_decoded(f.size, f.chunk_size, i);
#pragma unroll
	for (uint32_t k = 0; k < 4; k++)
		word[k] = lade_frame_get(at + 8 * k);
	bool right = word[0] == (LADE_FRAME_CHUNK_MARK | entry << 32) &&
	             word[1] == (decoded | entry >> 32 << 32) &&
	             word[3] == lade_frame_check(word, i);
	if (f.sums ? word[2] != f.sums[i] : word[2] > f.sum_most)
		right = false;
	for (uint64_t k = size; k < lade_frame_pad(size); k++)
		right = right && at[LADE_FRAME_HEADER + k] == 0;
	if (entry >> 32 == 0) {
		uint64_t item = f.item[i];
		right = right && f.statuses[item] == LADE_GPU_OK && f.sizes[item] == decoded;
	}
	if (!right)
		*f.answer = 1;
}
