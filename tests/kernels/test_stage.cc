/*
 * test_stage.cc: ranges brought to shared memory: every alignment and length, two in flight, each
 * source against a guard page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"
#include "guard.h"

#include "gpu/kernels/stage.cuh"

#define UNITS 80 /* a warp and a half, twice */

struct range {
	const uint8_t *from;
	uint32_t size;
};

/*
 * Range i of 'count' goes to out + i * 16 * UNITS, rounded up to 16 bytes.  Map: warp = pairs of
 * ranges in turn, the second begun before the first is waited for; block = two warps.
 */
static void stage_pairs(const range *ranges, uint32_t count, uint4 *out)
{
	LADE_SHARED(uint4, units, [2][2][UNITS]);
	LADE_SHARED(unsigned long long, barriers, [2][2]);
	uint32_t lane = lade_lane(), warp = threadIdx.x / 32;
	lade_stager s[2];
	for (uint32_t k = 0; k < 2; k++)
		lade_stage_open(&s[k], &barriers[warp][k], lane);
	for (uint32_t i = 2 * warp; i < count; i += 4) {
		for (uint32_t k = 0; k < 2; k++)
			lade_stage_begin(&s[k], units[warp][k], ranges[i + k].from,
			                 ranges[i + k].size, lane);
		lade_stage_wait<1>(&s[0]);
		for (uint32_t u = lane; 16 * u < ranges[i].size; u += 32)
			out[i * UNITS + u] = units[warp][0][u];
		lade_stage_wait<0>(&s[1]);
		for (uint32_t u = lane; 16 * u < ranges[i + 1].size; u += 32)
			out[(i + 1) * UNITS + u] = units[warp][1][u];
	}
}

/* 'count' ranges, an even number, of the sizes and distances from 16 that 'seed' gives. */
static void check(uint32_t count, uint64_t seed, int at_end)
{
	rng r = {seed};
	guard buffer[16], out = guard_new(count * UNITS * 16, 1);
	range ranges[16];
	assert_true(count <= 16 && count % 2 == 0);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size = rng_below(&r, 2) ? (uint32_t)rng_below(&r, 40)
		                                 : (uint32_t)rng_below(&r, 16 * UNITS + 1);
		uint32_t skew = rng_below(&r, 3) ? (uint32_t)rng_below(&r, 16) : 0;
		/* At a page's end the size gives the alignment. */
		if (at_end)
			size += rng_below(&r, 2) ? (16 - size) & 15 : 0;
		buffer[i] = guard_new(size + (at_end ? 0 : skew), at_end);
		for (uint32_t k = 0; k < size + (at_end ? 0 : skew); k++)
			buffer[i].data[k] = (uint8_t)(1 + rng_below(&r, 255));
		ranges[i] = {buffer[i].data + (at_end ? 0 : skew), size};
	}
	emu_config config = {.kernel = "stage_pairs", .block = 64};
	config.seed = seed;
	memset(out.data, 0xC3, count * UNITS * 16);
	emu_result done = emu_launch(
		config, [&] { stage_pairs(ranges, count, (uint4 *)(void *)out.data); });
	if (!done.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, done.message);
	assert_true(done.ok);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *have = out.data + i * UNITS * 16;
		uint32_t size = ranges[i].size, k = size;
		if (size && memcmp(have, ranges[i].from, size))
			fail_msg("seed %llu: range %u: %u bytes at %p differ",
			         (unsigned long long)seed, i, size, (const void *)ranges[i].from);
		for (; k % 16; k++)
			assert_int_equal(have[k], 0);
		for (; k < 16 * UNITS; k++)
			assert_int_equal(have[k], 0xC3);
		guard_free(&buffer[i]);
	}
	guard_free(&out);
}

static void any_ranges(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++)
		check(2 + 2 * (uint32_t)(seed % 8), seed, seed % 3 == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_ranges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
