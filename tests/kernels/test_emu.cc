/*
 * test_emu.cc: the emulated warp does what CUDA says, under several orders of lanes and warps.
 * Misuse is in test_emu_misuse.cc.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"
#include "guard.h"

#include "emu_kernels.cu"

/* ---- Primitives against a scalar model ------------------------------------------------------- */
static uint32_t shuffled(const uint32_t *v, int kind, int lane, int by, int width)
{
	int first = lane / width * width, last = first + width - 1, from = lane;
	if (kind == 0)
		from = first + ((by % 32) & (width - 1));
	else if (kind == 1)
		from = lane - by % 32;
	else if (kind == 2)
		from = lane + by % 32;
	else
		from = lane ^ by % 32;
	/* An exclusive or reaches into segments below, as the PTX text has it. */
	bool inside = kind == 3 ? from <= last : from >= first && from <= last;
	return v[inside ? from : lane];
}

static void model(const uint32_t *v, int by, int width, uint32_t out[PRIMITIVES][32])
{
	uint32_t ballot = 0, sum = 0, low = v[0], high = v[0], all = v[0], any = 0, odd = 0;
	int32_t low_s = (int32_t)v[0], high_s = (int32_t)v[0];
	bool seven = false;
	for (int i = 0; i < 32; i++) {
		ballot |= (v[i] & 1) << i;
		seven |= v[i] == 7;
		sum += v[i];
		low = v[i] < low ? v[i] : low;
		high = v[i] > high ? v[i] : high;
		low_s = (int32_t)v[i] < low_s ? (int32_t)v[i] : low_s;
		high_s = (int32_t)v[i] > high_s ? (int32_t)v[i] : high_s;
		all &= v[i];
		any |= v[i];
		odd ^= v[i];
	}
	for (int i = 0; i < 32; i++) {
		uint32_t same = 0;
		for (int k = 0; k < 32; k++)
			same |= (uint32_t)((v[k] & 3) == (v[i] & 3)) << k;
		const uint32_t row[] = {ballot, seven, !seven, same, sum, low, high,
		                        (uint32_t)low_s, (uint32_t)high_s, all, any, odd};
		for (int n = 0; n < 4; n++)
			out[n][i] = shuffled(v, n, i, by, width);
		for (int n = 4; n < PRIMITIVES; n++)
			out[n][i] = row[n - 4];
	}
}

static void test_primitives(void **)
{
	static uint32_t in[96], out[3][PRIMITIVES][32], want[3][PRIMITIVES][32];
	rng r = {42};
	for (int by = 0; by < 35; by++) {
		int width = 1 << by % 6;
		for (uint32_t &word : in)
			word = (uint32_t)rng_next(&r) >> rng_below(&r, 32);
		for (int w = 0; w < 3; w++)
			model(in + 32 * w, by, width, want[w]);
		memset(out, 0xEE, sizeof(out));
		kernel_runs({.kernel = "primitives", .block = 96},
		            [&] { primitives(in, by, width, &out[0][0][0]); },
		            [&] { assert_memory_equal(out, want, sizeof(out)); });
	}
}

static void test_halves(void **)
{
	uint64_t out[32];
	kernel_runs({.kernel = "halves"}, [&] { halves(out); },
	            [&] {
			    for (unsigned i = 0; i < 32; i++)
				    assert_int_equal(out[i], (((uint64_t)(30 + (i & 1)) << 40) |
				                              0xFFFFFFFFu) + 1);
		    });
}

static void test_intrinsics(void **)
{
	assert_int_equal(__clz(0), 32);
	assert_int_equal(__clz(1), 31);
	assert_int_equal(__clzll(0), 64);
	assert_int_equal(__clzll(1ll << 40), 23);
	assert_int_equal(__ffs(0), 0);
	assert_int_equal(__ffs(8), 4);
	assert_int_equal(__ffsll(1ll << 40), 41);
	assert_int_equal(__popc(0xF0F0), 8);
	assert_int_equal(__popcll(~0ull), 64);
	assert_int_equal(__brev(0x00000001), 0x80000000);
	assert_int_equal(__brev(0x12345678), 0x1E6A2C48);
	assert_int_equal(__brevll(2), 1ull << 62);
	assert_int_equal(__fns(0x16, 0, 2), 2);
	assert_int_equal(__fns(0x16, 0, 4), 0xFFFFFFFF);
	assert_int_equal(__byte_perm(0x33221100, 0x77665544, 0x7530), 0x77553300);
	assert_int_equal(__byte_perm(0x80, 0, 0x1118), 0x000000FF);
	assert_int_equal(__byte_perm(0x80, 0, 0x0009), 0x80808000);
	assert_int_equal(__funnelshift_r(0x11223344, 0xAABBCCDD, 8), 0xDD112233);
	assert_int_equal(__funnelshift_r(0x11223344, 0xAABBCCDD, 32), 0x11223344);
	assert_int_equal(__funnelshift_rc(0x11223344, 0xAABBCCDD, 32), 0xAABBCCDD);
	assert_int_equal(__funnelshift_l(0x11223344, 0xAABBCCDD, 8), 0xBBCCDD11);
	assert_int_equal(__funnelshift_lc(0x11223344, 0xAABBCCDD, 40), 0x11223344);
	assert_int_equal(__umulhi(0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFE);
	assert_int_equal(__mulhi(-1, 2), -1);
	assert_int_equal(__umul64hi(~0ull, 16), 15);
	assert_int_equal(__vcmpeq4(0x11223344, 0x11003344), 0xFF00FFFF);
	assert_int_equal(__vcmpeq2(0x11223344, 0x11003344), 0x0000FFFF);
	assert_int_equal(__vadd4(0xFF01807F, 0x01FF8001), 0x00000080);
	assert_int_equal(__vsub4(0x00018001, 0x01FF01FF), 0xFF027F02);
	assert_int_equal(__dp4a(0x01020304, 0x01010101, 5), 15);
	assert_int_equal(min(-1, 2u), 2);
	assert_int_equal(max(-1, 2), 2);
	assert_int_equal(__float2uint_rz(-3.5f), 0);
	assert_int_equal(__float2uint_rz(1e20f), 0xFFFFFFFF);
	assert_int_equal(__float_as_uint(1.0f), 0x3F800000);
	assert_int_equal(sizeof(uint4), 16);
	assert_int_equal(alignof(uint4), 16);
}

/* ---- Blocks, shared memory, barriers --------------------------------------------------------- */
static void test_block_sum(void **)
{
	static uint32_t in[6 * 160];
	uint32_t out[6] = {0}, want[6] = {0};
	for (uint32_t i = 0; i < 6 * 160; i++)
		want[i / 160] += in[i] = i * i;
	for (unsigned resident = 1; resident <= 4; resident++)
		kernel_runs({.kernel = "block_sum", .grid = 6, .block = 160, .resident = resident},
		            [&] { block_sum<3>(in, out); },
		            [&] {
				    assert_memory_equal(out, want, sizeof(out));
				    memset(out, 0, sizeof(out));
			    });
}

/* Dynamic shared memory of every size up to the largest; whole and partial warps. */
static void test_reverse(void **)
{
	static uint32_t data[3 * 1024];
	const unsigned sizes[] = {1, 2, 31, 32, 33, 128, 1000, 1024};
	for (unsigned size : sizes) {
		for (uint32_t i = 0; i < 3 * size; i++)
			data[i] = i;
		bool turned = false;
		kernel_runs({.kernel = "reverse", .grid = 3, .block = size,
		             .shared = size == 1024 ? 227u << 10 : size * sizeof(uint32_t)},
		            [&] { reverse(data); },
		            [&] {
				    turned = !turned;
				    for (uint32_t i = 0; i < 3 * size; i++)
					    assert_int_equal(data[i], !turned ? i :
					                     i / size * size + size - 1 - i % size);
			    });
	}
}

static void test_places(void **)
{
	static uint32_t out[12 * 30];
	kernel_runs({.kernel = "places", .grid = {2, 3, 2}, .block = {5, 2, 3}},
	            [&] { places(out); },
	            [&] {
			    for (uint32_t i = 0; i < 12 * 30; i++)
				    assert_int_equal(out[i], i / 30 * 1000 + i % 30 + 1);
			    memset(out, 0, sizeof(out));
		    });
}

static void test_votes(void **)
{
	static int out[96];
	kernel_runs({.kernel = "votes", .block = 96}, [&] { votes(out); },
	            [&] {
			    for (int v : out)
				    assert_int_equal(v, 32 * 4 + 2 + 1);
		    });
}

static void test_named_barriers(void **)
{
	static uint32_t out[20 * 64];
	kernel_runs({.kernel = "named_barriers", .block = 128}, [&] { named_barriers(20, out); },
	            [&] {
			    for (uint32_t i = 0; i < 20 * 64; i++)
				    assert_int_equal(out[i], i ^ 1);
			    memset(out, 0, sizeof(out));
		    });
}

/* ---- Hand-offs and atomics ------------------------------------------------------------------- */
static void test_baton(void **)
{
	uint32_t out = 0, want = 0;
	for (uint32_t turn = 0; turn < 100; turn++)
		want = want * 3 + turn;
	for (int how = 0; how < 3; how++)
		kernel_runs({.kernel = "baton", .block = 256},
		            [&] { baton(100, how, &out); },
		            [&] {
				    assert_int_equal(out, want);
				    out = 0;
			    });
}

/* Tickets are taken in order, so this ends with one resident block or many. */
static void test_blocks_hand_over(void **)
{
	uint32_t ticket = 0;
	unsigned long long turn = 0, out = 0, want = 0;
	for (unsigned i = 0; i < 20; i++)
		want = want * 5 + i;
	for (unsigned resident = 1; resident <= 8; resident *= 2)
		kernel_runs({.kernel = "tickets", .grid = 20, .resident = resident},
		            [&] { tickets(&ticket, &turn, &out); },
		            [&] {
				    assert_int_equal(out, want);
				    ticket = 0;
				    turn = out = 0;
			    });
	kernel_runs({.kernel = "grid_barrier", .grid = 8, .block = 64, .resident = 8},
	            [&] { grid_barrier(&ticket); },
	            [&] {
			    assert_int_equal(ticket, 8);
			    ticket = 0;
		    });
}

static void test_atomics(void **)
{
	uint32_t word[10];
	unsigned long long wide[2];
	float real;
	auto reset = [&] {
		const uint32_t start[10] = {5, 100, 0, 50, 0xFFFFFFFF, 0, 0, 0, 0, 0};
		memcpy(word, start, sizeof(word));
		wide[0] = wide[1] = 0;
		real = 0;
	};
	reset();
	kernel_runs({.kernel = "atomics", .block = 96}, [&] { atomics(word, wide, &real); },
	            [&] {
			    const uint32_t want[10] = {5 + 96 * 95 / 2, 4, 95, 0, 0, 0, 6,
			                               (uint32_t)-95, 0xFFFFFFFF, 96};
			    assert_memory_equal(word, want, sizeof(word));
			    assert_int_equal(wide[0], 96ull << 33);
			    assert_int_equal(wide[1], 95ull << 40);
			    assert_true(real == 48.0f);
			    reset();
		    });
}

/* ---- Asynchronous copies --------------------------------------------------------------------- */
static void test_staged(void **)
{
	for (unsigned tail = 0; tail <= 16; tail++) {
		/* The source ends at a guard page, right behind the bytes of the tail. */
		guard in = guard_new(63 * 16 + tail, 1), out = guard_new(64 * 16, 1);
		if ((uintptr_t)in.data % 16) {
			guard_free(&in);
			in = guard_new(63 * 16 + tail, 0);
		}
		for (size_t i = 0; i < in.size; i++)
			in.data[i] = (uint8_t)(i * 7 + 1);
		kernel_runs({.kernel = "staged", .block = 64, .shared = 64 * 16},
		            [&] { staged((const uint4 *)in.data, tail, (uint4 *)out.data); },
		            [&] {
				    for (size_t i = 0; i < 64 * 16; i++) {
					    size_t from = i ^ 16;
					    assert_int_equal(out.data[i], from < in.size ?
					                     in.data[from] : 0);
				    }
			    });
		guard_free(&in);
		guard_free(&out);
	}
	uint32_t in[96], out[64];
	for (uint32_t i = 0; i < 96; i++)
		in[i] = i * 3;
	kernel_runs({.kernel = "staged_groups"}, [&] { staged_groups(in, out); },
	            [&] {
			    for (uint32_t i = 0; i < 32; i++) {
				    assert_int_equal(out[i], i * 3);
				    assert_int_equal(out[32 + i], (32 + i) * 3 + (64 + i) * 3);
			    }
		    });
}

/* The same seed takes the same course; other seeds take others. */
static void test_seeds(void **)
{
	uint32_t out = 0;
	uint64_t steps[4], switches[4];
	for (unsigned i = 0; i < 4; i++) {
		emu_config c = {.kernel = "baton", .block = 128, .seed = i / 2 + 1};
		emu_result r = emu_launch(c, [&] { baton(50, 0, &out); });
		assert_true(r.ok);
		steps[i] = r.steps;
		switches[i] = r.switches;
	}
	assert_int_equal(steps[0], steps[1]);
	assert_int_equal(switches[0], switches[1]);
	assert_int_equal(switches[2], switches[3]);
	assert_int_not_equal(switches[0], switches[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_primitives),   cmocka_unit_test(test_halves),
		cmocka_unit_test(test_intrinsics),   cmocka_unit_test(test_block_sum),
		cmocka_unit_test(test_reverse),      cmocka_unit_test(test_places),
		cmocka_unit_test(test_votes),        cmocka_unit_test(test_named_barriers),
		cmocka_unit_test(test_baton),        cmocka_unit_test(test_blocks_hand_over),
		cmocka_unit_test(test_atomics),      cmocka_unit_test(test_staged),
		cmocka_unit_test(test_seeds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
