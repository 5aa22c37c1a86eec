/*
 * copy.cu: moves many pieces of memory at once, and makes the tables that batches are given by.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/gpu/args.h"
#include "gpu/kernels/bytes.cuh"

/* ---- copies -------------------------------------------------------------------------------- */

/* The copy that piece 'piece' belongs to: the last whose first piece is not behind it. */
static __device__ __forceinline__ uint32_t lade_copy_find(const lade_gpu_copies &c, uint32_t piece)
{
	uint32_t low = 0, high = c.count;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (c.list[middle].first <= piece)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Map: warp = pieces of 16 KiB in turn, lane = words of it.  No shared memory; blocks of
 * any number of whole warps. */
extern "C" __global__ void __launch_bounds__(LADE_COPY_THREADS) lade_copy(lade_gpu_copies c)
{
	uint32_t lane = lade_lane(), warps = gridDim.x * (blockDim.x / 32);
	uint32_t first = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
	for (uint32_t piece = first; piece < c.pieces; piece += warps) {
		lade_gpu_copy copy = c.list[lade_copy_find(c, piece)];
		uint64_t size = copy.size;
		if (c.statuses && c.statuses[copy.unit] != LADE_GPU_OK)
			continue;
		if (c.sizes) {
			uint64_t there = c.sizes[copy.unit];
			there = there > copy.skip ? there - copy.skip : 0;
			size = there < size ? there : size;
		}
		uint64_t from = (uint64_t)(piece - copy.first) * LADE_COPY_PIECE;
		uint64_t end = from + LADE_COPY_PIECE < size ? from + LADE_COPY_PIECE : size;
		if (from < end)
			lade_bytes_copy_wide(copy.dst + copy.at + from, copy.src + from,
			                     (uint32_t)(end - from), lane);
	}
}

/* ---- tables -------------------------------------------------------------------------------- */

template <typename PUT> static __device__ __forceinline__ void lade_put_words(const PUT &put)
{
	constexpr uint32_t MOST = sizeof(put.word) / sizeof(put.word[0]);
	for (uint32_t i = threadIdx.x; i < put.words && i < MOST; i += blockDim.x)
		put.to[i] = put.word[i];
}

/* Map: thread = words; one block. */
extern "C" __global__ void lade_put(lade_gpu_put put)
{
	lade_put_words(put);
}

/* Likewise. */
extern "C" __global__ void lade_put_few(lade_gpu_put_few put)
{
	lade_put_words(put);
}

static __device__ __forceinline__ bool lade_side_look(const lade_gpu_sides &s, uint64_t i)
{
	bool fits = s.size[i] <= s.largest || !s.address[i];
	if (s.status)
		s.status[i] = fits ? LADE_GPU_OK : LADE_GPU_LIMIT;
	return fits;
}

/* What chunk 'i' gets of its slot. */
static __device__ __forceinline__ uint64_t lade_slot_size(const lade_gpu_slots &s, uint64_t i)
{
	uint64_t most = s.limit ? s.limit[i] : s.stride;
	return most < s.stride && most + s.more < s.stride ? most + s.more : s.stride;
}

/* Slots of one size.  Map: thread = chunk. */
extern "C" __global__ void lade_slots(lade_gpu_slots s)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < s.count) {
		lade_side_look(s.sides, i);
		s.address[i] = s.base + i * s.stride;
		s.size[i] = lade_slot_size(s, i);
	}
}

/*
 * Slots one behind the other.  What the limits have more than fits gets no room, and neither do
 * chunks above the largest.
 * Map: one block of 1024, thread = chunk, 1024 at a time.  Shared: a sum for each warp.
 */
extern "C" __global__ void __launch_bounds__(LADE_PACKED_THREADS) lade_packed(lade_gpu_slots s)
{
	LADE_SHARED(uint64_t, sum, [32]);
	uint64_t before = 0; /* chunks of the rounds so far */
	for (uint64_t first = 0; first < s.count; first += 1024) {
		uint64_t i = first + threadIdx.x, mine = 0;
		if (i < s.count && lade_side_look(s.sides, i))
			mine = lade_slot_size(s, i);
		uint64_t whole = (mine + 255) / 256 * 256, at = before;
		at += lade_block_before(sum, whole, &before);
		if (i < s.count) {
			bool in = at < s.room;
			s.address[i] = s.base + (in ? at : 0);
			s.size[i] = !in ? 0 : mine < s.room - at ? mine : s.room - at;
		}
		__syncthreads();
	}
}

/* Map: thread = chunk. */
extern "C" __global__ void lade_inset(lade_gpu_inset t)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= t.count)
		return;
	lade_side_look(t.sides, i);
	uint64_t at = t.address[i];
	t.to_address[i] = at ? at + t.first : 0;
	if (t.cap)
		t.to_cap[i] = !at ? t.cap[i] : t.cap[i] > t.less ? t.cap[i] - t.less : 0;
}

/* What became of items.  Map: thread = item. */
extern "C" __global__ void lade_combine(lade_gpu_combine c)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= c.count)
		return;
	uint32_t status = LADE_GPU_OK;
	uint64_t size = 0;
	for (uint32_t u = c.first[i]; u < c.first[i + 1] && status == LADE_GPU_OK; u++) {
		status = c.unit_status[u];
		if (status == LADE_GPU_OK && c.wanted[u] && c.unit_size[u] != c.wanted[u])
			status = LADE_GPU_CORRUPT;
		size += c.unit_size[u];
	}
	if (c.size)
		c.size[i] = status != LADE_GPU_OK ? 0 : c.give[i] + 1 ? c.give[i] : size;
	if (c.status)
		c.status[i] = status;
}
