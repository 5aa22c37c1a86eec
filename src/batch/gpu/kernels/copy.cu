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

/* Fills tables: address[i] = base + i * stride, size[i] = stride, or limit[i] + more where there is
 * such a table and that is less.  Map: thread = entry. */
extern "C" __global__ void lade_slots(uint64_t *address, uint64_t *size, uint64_t base,
                                      uint64_t stride, const uint64_t *limit, uint64_t more,
                                      uint32_t count, lade_gpu_sides sides)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < count) {
		uint64_t most = limit ? limit[i] : stride;
		lade_side_look(sides, i);
		address[i] = base + i * stride;
		size[i] = most < stride && most + more < stride ? most + more : stride;
	}
}

/*
 * The same for entries of different sizes, one behind the other: size[i] = limit[i] + more,
 * 'stride' at most, and each begins at a multiple of 256 bytes of the 'room' bytes at 'base'.  What
 * the limits have more than fits there gets no room, and neither do chunks above the largest.
 * Map: one block of 1024, thread = entry, 1024 at a time.  Shared: a sum for each warp.
 */
extern "C" __global__ void __launch_bounds__(LADE_PACKED_THREADS)
	lade_packed(uint64_t *address, uint64_t *size, uint64_t base, uint64_t room,
	            uint64_t stride, const uint64_t *limit, uint64_t more, uint32_t count,
	            lade_gpu_sides sides)
{
	LADE_SHARED(uint64_t, sum, [32]);
	uint64_t before = 0; /* entries of the rounds so far */
	for (uint64_t first = 0; first < count; first += 1024) {
		uint64_t i = first + threadIdx.x, mine = 0;
		if (i < count && lade_side_look(sides, i)) {
			uint64_t most = limit[i];
			mine = most < stride && most + more < stride ? most + more : stride;
		}
		uint64_t whole = (mine + 255) / 256 * 256, at = before;
		at += lade_block_before(sum, whole, &before);
		if (i < count) {
			bool in = at < room;
			address[i] = base + (in ? at : 0);
			size[i] = !in ? 0 : mine < room - at ? mine : room - at;
		}
		__syncthreads();
	}
}

/* Tables of what lies within other bytes: to_address[i] = address[i] + first, to_cap[i] = cap[i] -
 * less, 0 at least; of no address, NULL, nothing does, and it stays as it is, for the next stage to
 * refuse.  'cap' and 'to_cap' may be NULL.  Map: thread = entry. */
extern "C" __global__ void lade_inset(const uint64_t *address, const uint64_t *cap,
                                      uint64_t *to_address, uint64_t *to_cap, uint32_t first,
                                      uint32_t less, uint32_t count, lade_gpu_sides sides)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= count)
		return;
	lade_side_look(sides, i);
	uint64_t at = address[i];
	to_address[i] = at ? at + first : 0;
	if (cap)
		to_cap[i] = !at ? cap[i] : cap[i] > less ? cap[i] - less : 0;
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
