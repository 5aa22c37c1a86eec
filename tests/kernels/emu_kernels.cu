/*
 * emu_kernels.cu: small kernels that use all that device.cuh gives, for the emulator's own tests.
 * They are correct CUDA: nvcc compiles this file too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <gpu/kernels/device.cuh>

/* One word of results for each (primitive, lane); 'in' holds a word for each lane. */
enum {
	PRIMITIVES = 16
};

__global__ void primitives(const uint32_t *in, int by, int width, uint32_t *out)
{
	const uint32_t all = 0xFFFFFFFF;
	unsigned lane = threadIdx.x & 31, n = 0;
	uint32_t v = in[threadIdx.x];
	out += (threadIdx.x >> 5) * PRIMITIVES * 32;
	out[n++ * 32 + lane] = __shfl_sync(all, v, by, width);
	out[n++ * 32 + lane] = __shfl_up_sync(all, v, (unsigned)by, width);
	out[n++ * 32 + lane] = __shfl_down_sync(all, v, (unsigned)by, width);
	out[n++ * 32 + lane] = __shfl_xor_sync(all, v, by, width);
	out[n++ * 32 + lane] = __ballot_sync(all, v & 1);
	out[n++ * 32 + lane] = (uint32_t)__any_sync(all, v == 7);
	out[n++ * 32 + lane] = (uint32_t)__all_sync(all, v != 7);
	out[n++ * 32 + lane] = __match_any_sync(all, v & 3);
	out[n++ * 32 + lane] = __reduce_add_sync(all, v);
	out[n++ * 32 + lane] = __reduce_min_sync(all, v);
	out[n++ * 32 + lane] = __reduce_max_sync(all, v);
	out[n++ * 32 + lane] = (uint32_t)__reduce_min_sync(all, (int)v);
	out[n++ * 32 + lane] = (uint32_t)__reduce_max_sync(all, (int)v);
	out[n++ * 32 + lane] = __reduce_and_sync(all, v);
	out[n++ * 32 + lane] = __reduce_or_sync(all, v);
	out[n++ * 32 + lane] = __reduce_xor_sync(all, v);
}

/* Odd and even lanes shuffle apart, 64 bits wide; then all together. */
__global__ void halves(uint64_t *out)
{
	unsigned lane = threadIdx.x;
	unsigned long long v = (unsigned long long)lane << 40, got;
	int same;
	if (lane & 1)
		got = __shfl_sync(0xAAAAAAAA, v, 31);
	else
		got = __shfl_sync(0x55555555, v, 30);
	__syncwarp();
	out[lane] = got | __match_all_sync(0xFFFFFFFF, lane >> 5, &same);
	out[lane] += (uint64_t)same;
}

/* Sums blockDim.x words a block: shuffles in warps, shared memory between them. */
template <int rounds> __global__ void block_sum(const uint32_t *in, uint32_t *out)
{
	LADE_SHARED(uint32_t, part, [32]);
	LADE_SHARED(uint32_t, total);
	unsigned warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
	for (int round = 0; round < rounds; round++) {
		uint32_t sum =
			__reduce_add_sync(0xFFFFFFFF, in[blockIdx.x * blockDim.x + threadIdx.x]);
		if (lane == 0)
			part[warp] = sum;
		__syncthreads();
		if (warp == 0) {
			sum = lane < blockDim.x / 32 ? part[lane] : 0;
			sum = __reduce_add_sync(0xFFFFFFFF, sum);
			if (lane == 0)
				total = sum;
		}
		__syncthreads();
		if (threadIdx.x == 0)
			out[blockIdx.x] = total;
	}
}

/* Reverses blockDim.x words through dynamic shared memory. */
__global__ void reverse(uint32_t *data)
{
	LADE_SHARED_DYNAMIC(uint32_t, tile);
	data += blockIdx.x * blockDim.x;
	tile[threadIdx.x] = data[threadIdx.x];
	__syncthreads();
	data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

/*
 * Warps hand a baton round 'turns' times: each waits for its turn, adds, and passes on.
 * how = 0: volatile with __nanosleep, 1: acquire and release, 2: a plain volatile pointer.
 */
__global__ void baton(unsigned turns, int how, uint32_t *out)
{
	LADE_SHARED(uint32_t, word);
	LADE_SHARED(uint32_t, sum);
	unsigned warp = threadIdx.x >> 5, warps = blockDim.x >> 5, lane = threadIdx.x & 31;
	if (threadIdx.x == 0)
		word = sum = 0;
	__syncthreads();
	for (unsigned turn = warp; turn < turns; turn += warps) {
		if (how == 0) {
			while (lade_ld_volatile(&word) != turn)
				__nanosleep(20);
		} else if (how == 1) {
			if (lane == 0)
				while (lade_ld_acquire_cta(&word) != turn)
					;
			__syncwarp();
		} else {
			while (*(volatile uint32_t *)&word != turn)
				;
		}
		if (lane == 0)
			sum = sum * 3 + turn;
		__syncwarp();
		if (lane == 0)
			lade_st_release_cta(&word, turn + 1);
	}
	__syncthreads();
	if (threadIdx.x == 0)
		*out = sum;
}

/* Blocks add to one counter and hand on in order of tickets: needs resident blocks or luck. */
__global__ void tickets(uint32_t *ticket, unsigned long long *turn, unsigned long long *out)
{
	LADE_SHARED(uint32_t, mine);
	if (threadIdx.x == 0) {
		mine = atomicAdd(ticket, 1u);
		while (lade_ld_acquire_gpu(turn) != mine)
			__nanosleep(100);
		*out = *out * 5 + mine;
		lade_st_release_gpu(turn, mine + 1ull);
	}
}

/* Waits for all blocks of the grid, which must be resident together. */
__global__ void grid_barrier(uint32_t *count)
{
	if (threadIdx.x == 0) {
		atomicAdd(count, 1u);
		while (lade_ld_relaxed_gpu(count) < gridDim.x)
			__nanosleep(100);
	}
	__syncthreads();
}

__global__ void atomics(uint32_t *word, unsigned long long *wide, float *real)
{
	LADE_SHARED(uint32_t, bits);
	LADE_SHARED(uint32_t, lock);
	LADE_SHARED(uint32_t, guarded);
	unsigned i = threadIdx.x;
	if (i == 0)
		bits = lock = guarded = 0;
	__syncthreads();
	atomicOr(&bits, 1u << (i & 31));
	atomicAdd(&word[0], i);
	atomicSub(&word[1], 1u);
	atomicMax(&word[2], i);
	atomicMin(&word[3], i);
	atomicAnd(&word[4], ~(1u << (i & 31)));
	atomicXor(&word[5], i);
	atomicInc(&word[6], 9u);
	atomicMin((int *)&word[7], -(int)i);
	atomicAdd(&wide[0], 1ull << 33);
	atomicMax(&wide[1], (unsigned long long)i << 40);
	atomicAdd(real, 0.5f);
	/* A lock, taken by one thread at a time. */
	while (atomicCAS(&lock, 0u, 1u) != 0)
		;
	lade_st_volatile(&guarded, lade_ld_volatile(&guarded) + 1);
	atomicExch(&lock, 0u);
	__syncthreads();
	if (i == 0) {
		word[8] = bits;
		word[9] = guarded;
	}
}

/* Two warps make tiles, two take them: the hand-over is two named barriers. */
__global__ void named_barriers(unsigned tiles, uint32_t *out)
{
	LADE_SHARED(uint32_t, tile, [64]);
	unsigned i = threadIdx.x & 63;
	for (unsigned t = 0; t < tiles; t++) {
		if (threadIdx.x < 64) {
			if (t)
				lade_bar_sync<2>(128);
			tile[i] = t * 64 + i;
			lade_bar_arrive<1>(128);
		} else {
			lade_bar_sync(1, 128);
			out[t * 64 + i] = tile[i ^ 1];
			if (t + 1 < tiles)
				lade_bar_arrive<2>(128);
		}
	}
}

/* Each thread stages 16 bytes, waits, and reads its neighbour's; the last has 'tail' bytes. */
__global__ void staged(const uint4 *in, unsigned tail, uint4 *out)
{
	LADE_SHARED_DYNAMIC(uint4, tile);
	unsigned i = threadIdx.x;
	if (i + 1 < blockDim.x)
		lade_cp_async_16(&tile[i], &in[i]);
	else
		lade_cp_async_16_fill(&tile[i], &in[i], tail);
	lade_cp_async_commit();
	lade_cp_async_wait<0>();
	__syncthreads();
	out[i] = tile[i ^ 1];
}

/* Three groups of 4 bytes; only the first is waited for before it is read. */
__global__ void staged_groups(const uint32_t *in, uint32_t *out)
{
	LADE_SHARED(uint32_t, ring, [3][32]);
	unsigned i = threadIdx.x;
	for (int g = 0; g < 3; g++) {
		lade_cp_async_4(&ring[g][i], &in[g * 32 + (int)i]);
		lade_cp_async_commit();
	}
	lade_cp_async_wait<2>();
	out[i] = ring[0][i];
	lade_cp_async_wait<0>();
	out[32 + i] = ring[1][i] + ring[2][i];
}

__global__ void votes(int *out)
{
	int i = (int)threadIdx.x;
	int count = __syncthreads_count(i % 3 == 0);
	int all = __syncthreads_and(i < 96), any = __syncthreads_or(i == 95);
	out[i] = count * 4 + all * 2 + any;
}

__global__ void places(uint32_t *out)
{
	unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	out[block * blockDim.x * blockDim.y * blockDim.z + thread] += block * 1000 + thread + 1;
}
