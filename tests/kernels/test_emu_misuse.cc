/*
 * test_emu_misuse.cc: what a kernel must not do is reported, with the right words, whatever the
 * order of lanes; and the next launch is none the worse for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- Lanes that do not come along ------------------------------------------------------------ */
__global__ void shuffle_by_half(uint32_t *out)
{
	if (threadIdx.x < 16)
		out[threadIdx.x] = __shfl_sync(0xFFFFFFFF, threadIdx.x, 0);
	else
		__syncwarp();
}

__global__ void ballot_in_two_places(uint32_t *out)
{
	if (threadIdx.x & 1)
		out[threadIdx.x] = __ballot_sync(0xFFFFFFFF, 1);
	else
		out[threadIdx.x] = __ballot_sync(0xFFFFFFFF, 0);
}

__global__ void masks_that_differ(uint32_t *out)
{
	unsigned mask = threadIdx.x < 16 ? 0xFFFFFFFF : 0xFFFF0001;
	out[threadIdx.x] = __shfl_sync(mask, threadIdx.x, 0);
}

__global__ void shuffle_after_exit(uint32_t *out)
{
	if (threadIdx.x == 5)
		return;
	out[threadIdx.x] = __shfl_sync(0xFFFFFFFF, threadIdx.x, 0);
}

__global__ void shuffle_past_the_block(uint32_t *out)
{
	out[threadIdx.x] = __shfl_sync(0xFFFFFFFF, threadIdx.x, 0);
}

__global__ void mask_without_caller(uint32_t *out)
{
	out[threadIdx.x] = __shfl_sync(0x0000FFFF, threadIdx.x, 0);
}

__global__ void shuffle_from_outside(uint32_t *out)
{
	if (threadIdx.x < 16)
		out[threadIdx.x] = __shfl_sync(0x0000FFFF, threadIdx.x, 16);
}

__global__ void width_of_three(uint32_t *out)
{
	out[threadIdx.x] = __shfl_sync(0xFFFFFFFF, threadIdx.x, 0, 3);
}

__global__ void barrier_in_a_branch(void)
{
	if (threadIdx.x < 32)
		__syncthreads();
	else
		__syncwarp();
	__syncwarp();
	if (threadIdx.x >= 32)
		while (true)
			__syncwarp();
}

__global__ void barrier_against_shuffle(uint32_t *out)
{
	if (threadIdx.x & 1)
		__syncthreads();
	else
		out[threadIdx.x] = __shfl_sync(0xFFFFFFFF, threadIdx.x, 0);
}

__global__ void barriers_in_two_places(void)
{
	if (threadIdx.x < 32)
		__syncthreads();
	else
		__syncthreads();
}

/* Half of each warp is at the barrier, the other half waits for lanes that wait for it. */
__global__ void barrier_not_reached(void)
{
	LADE_SHARED(uint32_t, never);
	if (threadIdx.x < 32) {
		__syncthreads();
	} else {
		lade_st_volatile(&never, 0);
		lade_bar_sync(1, 64);
	}
}

__global__ void named_counts_differ(void)
{
	lade_bar_sync(1, threadIdx.x < 32 ? 64 : 96);
}

/* Each half waits for a lane of the other half, at the other's next step. */
__global__ void lanes_in_a_circle(void)
{
	unsigned lane = threadIdx.x;
	if (lane == 0)
		__syncwarp(0x3);
	else if (lane == 1)
		__syncwarp(0x6);
	else if (lane == 2)
		__syncwarp(0x5);
}

__global__ void takes_activemask(uint32_t *out)
{
	unsigned mask = __activemask();
	out[threadIdx.x] = __ballot_sync(mask, 1);
}

static void test_divergence(void **)
{
	uint32_t out[64];
	kernel_fails({.kernel = "shuffle_by_half"}, EMU_DIVERGENT,
	             "__syncwarp at test_emu_misuse.cc:", [&] { shuffle_by_half(out); });
	kernel_fails({.kernel = "shuffle_by_half"}, EMU_DIVERGENT,
	             "__shfl_sync at test_emu_misuse.cc:", [&] { shuffle_by_half(out); });
	kernel_fails({.kernel = "ballot_in_two_places"}, EMU_DIVERGENT, "__ballot_sync",
	             [&] { ballot_in_two_places(out); });
	kernel_fails({.kernel = "masks_that_differ"}, EMU_DIVERGENT, "0xffff0001",
	             [&] { masks_that_differ(out); });
	kernel_fails({.kernel = "shuffle_after_exit"}, EMU_EXITED, "0xffffffff",
	             [&] { shuffle_after_exit(out); });
	kernel_fails({.kernel = "past", .block = 40}, EMU_EXITED,
	             "names lane 8, which the block does not have",
	             [&] { shuffle_past_the_block(out); });
	kernel_fails({.kernel = "mask_without_caller"}, EMU_BAD_MASK,
	             "does not name the calling lane", [&] { mask_without_caller(out); });
	kernel_fails({.kernel = "shuffle_from_outside"}, EMU_LANE,
	             "reads from lane 16, which mask 0x0000ffff does not name",
	             [&] { shuffle_from_outside(out); });
	kernel_fails({.kernel = "width_of_three"}, EMU_BAD_MASK, "width 3",
	             [&] { width_of_three(out); });
	kernel_fails({.kernel = "lanes_in_a_circle"}, EMU_DEADLOCK, "no lane can go on",
	             [&] { lanes_in_a_circle(); });
	unsigned failed = 0;
	for (uint64_t seed = 1; seed < 9; seed++)
		failed += !emu_launch({.kernel = "activemask", .seed = seed},
		                      [&] { takes_activemask(out); }).ok;
	assert_int_equal(failed, 8);
}

static void test_barriers(void **)
{
	uint32_t out[64];
	kernel_fails({.kernel = "barrier_against_shuffle"}, EMU_DIVERGENT, "__syncthreads at",
	             [&] { barrier_against_shuffle(out); });
	kernel_fails({.kernel = "barriers_in_two_places", .block = 64}, EMU_BARRIER,
	             "others are at", [&] { barriers_in_two_places(); });
	kernel_fails({.kernel = "barrier_not_reached", .block = 64}, EMU_BARRIER,
	             "__syncthreads at test_emu_misuse.cc", [&] { barrier_not_reached(); });
	kernel_fails({.kernel = "barrier_not_reached", .block = 64}, EMU_BARRIER,
	             "is not reached by all: 32 of 64 threads are there",
	             [&] { barrier_not_reached(); });
	kernel_fails({.kernel = "named_counts_differ", .block = 96}, EMU_BARRIER, "for 96",
	             [&] { named_counts_differ(); });
	/* The other warp never ends: the budget does, and the report tells who held it up. */
	kernel_fails({.kernel = "in_a_branch", .block = 64, .steps = 100000}, EMU_STEPS,
	             "the budget of 100000 steps is used up", [&] { barrier_in_a_branch(); });
}

/* ---- Loops without end ----------------------------------------------------------------------- */
__global__ void polls_for_ever(void)
{
	LADE_SHARED(uint32_t, word);
	lade_st_volatile(&word, 0);
	while (lade_ld_volatile(&word) == 0)
		__nanosleep(20);
}

/* Neither a primitive nor an access to memory: only the hook in the loop's block sees it. */
__global__ void turns_for_ever(const uint32_t *in, uint32_t *out)
{
	/* Odd for ever, as in[1] is even, which the compiler does not know; it must count. */
	uint32_t x = in[0] | 1, add = in[1], count = 0;
	for (; x & 1; count++)
		x = x * 1664525 + add;
	out[0] = count;
}

static void test_budget(void **)
{
	uint32_t word[2] = {7, 1013904222};
	kernel_fails({.kernel = "polls", .steps = 50000}, EMU_STEPS, "budget of 50000 steps",
	             [&] { polls_for_ever(); });
	kernel_fails({.kernel = "turns", .steps = 50000}, EMU_STEPS, "budget of 50000 steps",
	             [&] { turns_for_ever(word, word); });
	emu_result r = emu_launch({.kernel = "short", .block = 1024, .steps = 1 << 20}, [&] {
		for (int i = 0; i < 10; i++)
			__syncwarp();
	});
	assert_true(r.ok);
	assert_in_range(r.steps, 10 * 1024, 1 << 20);
}

__global__ void traps(void)
{
	if (threadIdx.x == 9)
		__trap();
}

/* ---- Launches that a device refuses ---------------------------------------------------------- */
__global__ void too_much_static(void)
{
	LADE_SHARED(uint8_t, a, [32 << 10]);
	LADE_SHARED(uint8_t, b, [17 << 10]);
	a[threadIdx.x] = b[threadIdx.x] = 1;
}

static void test_launches(void **)
{
	auto nothing = [] {};
	kernel_fails({.kernel = "empty", .grid = 0}, EMU_BAD_LAUNCH, "size 0", nothing);
	kernel_fails({.kernel = "wide", .block = 1025}, EMU_BAD_LAUNCH, "threads a block 1025",
	             nothing);
	kernel_fails({.kernel = "deep", .block = {1, 1, 65}}, EMU_BAD_LAUNCH, "threads a block",
	             nothing);
	kernel_fails({.kernel = "big", .shared = (227 << 10) + 1}, EMU_BAD_LAUNCH, "232449",
	             nothing);
	kernel_fails({.kernel = "static"}, EMU_BAD_LAUNCH, "'b' makes 50176 bytes",
	             [] { too_much_static(); });
	kernel_fails({.kernel = "traps"}, EMU_TRAP, "lane 9: __trap()", [] { traps(); });
	kernel_fails({.kernel = "traps", .grid = {3, 1, 1}, .block = 64}, EMU_TRAP, "warp 0",
	             [] { traps(); });
	uint32_t inner = 0;
	emu_result r = emu_launch(1, 1, 0, [&] { inner += emu_launch(1, 1, 0, [] {}).ok; });
	assert_true(r.ok);
	assert_int_equal(inner, 0);
}

/* ---- Shared memory --------------------------------------------------------------------------- */
enum shared_fault {
	READ_UNWRITTEN,
	READ_UNWRITTEN_BYTE,
	ADD_TO_UNWRITTEN,
	READ_UNWRITTEN_DYNAMIC,
	READ_UNWRITTEN_VECTOR,
	WRITE_BEFORE,
	WRITE_BEHIND,
	READ_BEHIND_DYNAMIC,
	READ_MISALIGNED,
	READ_UNARRIVED,
	CLEAR_BEHIND,
	COPY_UNWRITTEN,
	SHARED_FAULTS
};

static __device__ uint32_t sums(const uint32_t *words, int from, int count)
{
	uint32_t sum = 0;
	for (int i = from; i < from + count; i++)
		sum += words[i];
	return sum;
}

/* 'zero' is 0, so that no compiler sees the fault. */
__global__ void shared_faults(shared_fault fault, int zero, const uint32_t *in, uint32_t *out)
{
	LADE_SHARED(uint32_t, table, [32]);
	LADE_SHARED(uint4, vectors, [32]);
	LADE_SHARED_DYNAMIC(uint32_t, tile);
	int i = (int)threadIdx.x;
	uint32_t got = 0;
	if (i != 17 || fault != READ_UNWRITTEN)
		table[i] = 1;
	if (fault == READ_UNWRITTEN_BYTE)
		((uint8_t *)vectors)[i] = 1;
	__syncwarp();
	if (fault == READ_UNWRITTEN)
		got = sums(table, 0, 32);
	if (fault == READ_UNWRITTEN_BYTE)
		got = ((uint8_t *)vectors)[i + (i == 31)];
	if (fault == ADD_TO_UNWRITTEN)
		tile[i]++;
	if (fault == READ_UNWRITTEN_DYNAMIC)
		got = tile[i];
	if (fault == READ_UNWRITTEN_VECTOR) {
		vectors[i].x = vectors[i].y = vectors[i].w = 1;
		uint4 v = vectors[i];
		got = v.x + v.y + v.z + v.w;
	}
	if (fault == WRITE_BEFORE)
		table[zero - 1] = 1;
	if (fault == WRITE_BEHIND)
		table[zero + i + 1] = 1;
	if (fault == READ_BEHIND_DYNAMIC) {
		tile[i] = 1;
		__syncwarp();
		got = sums(tile, i + 1, 1);
	}
	if (fault == READ_MISALIGNED)
		got = *(const uint32_t *)((const uint8_t *)table + 2 + zero);
	if (fault == READ_UNARRIVED) {
		lade_cp_async_4(&tile[i], &in[i]);
		lade_cp_async_commit();
		got = tile[i];
	}
	/* By calls, which compilers also make of loops and of stores in a row. */
	if (fault == CLEAR_BEHIND)
		memset(table, zero, sizeof(table) + 4 + (size_t)zero);
	if (fault == COPY_UNWRITTEN) {
		memset(vectors, zero, sizeof(vectors) / 2 + (size_t)zero);
		memcpy(out, vectors, 128);
		memcpy(out, (uint8_t *)vectors + 192, 65 + (size_t)zero);
	}
	out[i] = got;
}

static void test_shared(void **)
{
	static const struct {
		emu_error error;
		const char *words;
	} want[SHARED_FAULTS] = {
		{EMU_UNWRITTEN, "never written: shared 'table', byte 68 of 128"},
		{EMU_UNWRITTEN, "never written: shared 'vectors', byte 32 of 512"},
		{EMU_UNWRITTEN, "never written: dynamic shared memory, byte "},
		{EMU_UNWRITTEN, "never written: dynamic shared memory, byte "},
		{EMU_UNWRITTEN, "never written: shared 'vectors', byte "},
		{EMU_RANGE, "write out of range: shared 'table', byte -4 of 128"},
		{EMU_RANGE, "write out of range: shared 'table', byte 128 of 128"},
		{EMU_RANGE, "read out of range: dynamic shared memory, byte 128 of 128"},
		{EMU_MISALIGNED, "a read of 4 bytes"},
		{EMU_UNWRITTEN, "never written: dynamic shared memory"},
		{EMU_RANGE, "write out of range: shared 'table', byte 128 of 128"},
		{EMU_UNWRITTEN, "never written: shared 'vectors', byte 256 of 512"},
	};
	uint32_t in[32] = {0}, out[32];
	if (!emu_checked())
		skip();
	for (int fault = 0; fault < SHARED_FAULTS; fault++)
		kernel_fails({.kernel = "shared_faults", .shared = 128}, want[fault].error,
		             want[fault].words,
		             [&] { shared_faults((shared_fault)fault, 0, in, out); });
}

/* Builds under ASan have no checks of their own: the gaps beside variables are poisoned. */
static void test_shared_asan(void **)
{
	uint32_t in[32] = {0}, out[32];
#ifndef __SANITIZE_ADDRESS__
#if defined(__has_feature)
#if !__has_feature(address_sanitizer)
	skip();
#endif
#else
	skip();
#endif
#endif
	const shared_fault faults[] = {WRITE_BEFORE, WRITE_BEHIND, READ_BEHIND_DYNAMIC};
	for (shared_fault fault : faults) {
		int status = 0;
		fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			if (!freopen("/dev/null", "w", stderr))
				_exit(0);
			emu_launch(1, 32, 128, [&] { shared_faults(fault, 0, in, out); });
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_not_equal(status, 0);
	}
}

__global__ void atomic_faults(int fault)
{
	LADE_SHARED(uint32_t, words, [4]);
	LADE_SHARED_DYNAMIC(uint32_t, tile);
	words[threadIdx.x & 3] = 0;
	if (fault == 0)
		atomicAdd(&words[4], 1u);
	if (fault == 1)
		atomicAdd((uint32_t *)((uint8_t *)words + 1), 1u);
	if (fault == 2)
		lade_st_volatile(&tile[5], 1u);
	if (fault == 3)
		lade_cp_async_4(&tile[0], &words[0]);
	if (fault == 4)
		lade_cp_async_8(&tile[1], (const void *)16);
}

/* Found in every build: the emulator itself does these accesses. */
static void test_shared_atomics(void **)
{
	static const struct {
		emu_error error;
		const char *words;
	} want[] = {
		{EMU_RANGE, "shared 'words', byte 16 of 16; an atomic at test_emu_misuse.cc:"},
		{EMU_MISALIGNED, "is no multiple of 4"},
		{EMU_RANGE, "dynamic shared memory, byte 20 of 20; an ordered store at"},
		{EMU_RANGE, "from global to shared"},
		{EMU_MISALIGNED, "cp.async"},
	};
	for (int fault = 0; fault < 5; fault++)
		kernel_fails({.kernel = "atomic_faults", .shared = 20}, want[fault].error,
		             want[fault].words, [&] { atomic_faults(fault); });
}

/* What the first block left in shared memory is not there for the next. */
__global__ void left_by_the_last(uint32_t *out)
{
	LADE_SHARED(uint32_t, word, [32]);
	if (blockIdx.x + 1 < gridDim.x)
		word[threadIdx.x] = 1;
	out[threadIdx.x] = word[threadIdx.x];
}

static void test_blocks_apart(void **)
{
	uint32_t out[32];
	if (!emu_checked())
		skip();
	kernel_fails({.kernel = "left_by_the_last", .grid = 9}, EMU_UNWRITTEN, "block (8,0,0)",
	             [&] { left_by_the_last(out); });
	kernel_fails({.kernel = "left_by_the_last", .grid = 9, .resident = 3}, EMU_UNWRITTEN,
	             "block (8,0,0)", [&] { left_by_the_last(out); });
}

/* After a failure in the midst of things the machine serves as before. */
static void test_after_failure(void **)
{
	uint32_t out[1024];
	for (int i = 0; i < 50; i++) {
		assert_false(emu_launch(2, 1024, 0, [&] { mask_without_caller(out); }).ok);
		emu_result r = emu_launch(2, 1024, 0, [&] {
			out[threadIdx.x] = __reduce_add_sync(0xFFFFFFFF, threadIdx.x & 31);
			__syncthreads();
		});
		assert_true(r.ok);
		for (uint32_t sum : out)
			assert_int_equal(sum, 31 * 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_divergence),   cmocka_unit_test(test_barriers),
		cmocka_unit_test(test_budget),       cmocka_unit_test(test_launches),
		cmocka_unit_test(test_shared),       cmocka_unit_test(test_shared_asan),
		cmocka_unit_test(test_shared_atomics),
		cmocka_unit_test(test_blocks_apart), cmocka_unit_test(test_after_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
