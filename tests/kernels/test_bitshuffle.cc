/*
 * test_bitshuffle.cc: the bit shuffle's kernels on the emulated warp, against a reference written
 * bit by bit: all sizes, orders and blocks, any length and alignment, every buffer at a guard page
 * or between guard zones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "place.h"

#include "filter/kernels/bitshuffle.cu"

#include "bits_reference.h"

static void launch(const form &f, bool encode, const std::vector<bytes> &in,
                   const std::vector<bytes> &want, uint32_t grid, uint64_t seed, rng *r)
{
	size_t n = in.size();
	std::vector<place> from(n), to(n);
	std::vector<const uint8_t *> src(n);
	std::vector<uint8_t *> dst(n);
	std::vector<uint64_t> sizes(n), caps(n), got(n, 77);
	std::vector<uint32_t> status(n, 77);
	for (size_t i = 0; i < n; i++) {
		size_t skew = rng_below(r, 2) ? 4 * rng_below(r, 4) : rng_below(r, 16);
		from[i] = place_new(in[i].size(), skew, (int)rng_below(r, 2));
		to[i] = place_new(in[i].size(), rng_below(r, 2) ? skew : rng_below(r, 16),
		                  (int)rng_below(r, 2));
		if (in[i].size())
			memcpy(from[i].data, in[i].data(), in[i].size());
		src[i] = from[i].data;
		dst[i] = to[i].data;
		sizes[i] = in[i].size();
		caps[i] = sizes[i] + rng_below(r, 2) * 100;
	}
	lade_gpu_batch batch = {src.data(),    sizes.data(), dst.data(), caps.data(), got.data(),
	                        status.data(), nullptr,      nullptr,    (uint32_t)n};
	emu_config config = {.kernel = encode ? "encode" : "decode", .grid = grid, .block = 128};
	config.seed = seed;
	lade_filters filters = {0, f.size, LADE_ROWS_BITS, f.msb, f.block, 0, 0};
	emu_result done = emu_launch(config, [&] {
		if (encode)
			lade_bitshuffle_encode(batch, filters);
		else
			lade_bitshuffle_decode(batch, filters);
	});
	if (!done.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, done.message);
	assert_true(done.ok);
	for (size_t i = 0; i < n; i++) {
		if (status[i] || got[i] != in[i].size() ||
		    (in[i].size() && memcmp(dst[i], want[i].data(), in[i].size())))
			fail_msg("%s(%u, msb=%u, block=%u): %zu bytes, from %p to %p, status %u",
			         encode ? "encode" : "decode", f.size, f.msb, f.block, in[i].size(),
			         (const void *)src[i], (void *)dst[i], status[i]);
		place_free(&from[i]);
		place_free(&to[i]);
	}
}

static bytes random_bytes(rng *r, size_t size)
{
	bytes out(size);
	for (auto &b : out)
		b = (uint8_t)(rng_next(r) >> 40);
	return out;
}

static void check(const form &f, const std::vector<size_t> &sizes, uint32_t grid, uint64_t seed,
                  rng *r)
{
	std::vector<bytes> plain, rows;
	for (size_t size : sizes) {
		plain.push_back(random_bytes(r, size));
		rows.push_back(bits_reference(f, plain.back()));
	}
	launch(f, true, plain, rows, grid, seed, r);
	launch(f, false, rows, plain, grid, seed, r);
}

/* nvCOMP's forms, whose blocks are whole tiles, with sizes about one and two blocks. */
static void blocks_of_8_kib(void **state)
{
	(void)state;
	rng r = {20260201};
	for (uint32_t size = 1; size <= 8; size *= 2)
		for (uint32_t msb = 0; msb < 2; msb++)
			check({size, msb, 8192},
			      {0, 1, 8 * size - 1, 8 * size, 300, 4096, 8192, 8192 - size,
			       8192 + size, 8192 + 9 * size, 16384, 16384 + 72 * size + 1},
			      1 + 3 * msb, size, &r);
}

static void whole_buffers(void **state)
{
	(void)state;
	rng r = {20260202};
	for (uint32_t size = 1; size <= 8; size *= 2)
		for (uint32_t msb = 0; msb < 2; msb++)
			check({size, msb, 0},
			      {0, size, 7 * size, 8 * size + 1, 4096, 4096 + 8 * size, 10000, 12288,
			       16384 + 31},
			      2 + 9 * msb, 3 + msb, &r);
}

/* Blocks below, beside and above tiles. */
static void any_block(void **state)
{
	(void)state;
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 1;
	printf("seed %llu\n", (unsigned long long)seed);
	rng r = {seed};
	for (unsigned round = 0; round < 40; round++) {
		uint32_t size = 1u << rng_below(&r, 4), group = 8 * size;
		static const uint32_t most[] = {4, 40, 600, 2000};
		form f = {size, (uint32_t)rng_below(&r, 2),
		          group * (1 + (uint32_t)rng_below(&r, most[round % 4]))};
		if (f.block > 65536)
			f.block = 65536;
		std::vector<size_t> sizes;
		for (unsigned i = 0; i < 5; i++)
			sizes.push_back(rng_below(&r, f.block < 512 ? 2500 : 14000));
		sizes.push_back(f.block < 14000 ? f.block + rng_below(&r, 2) * size : 4096);
		check(f, sizes, 1 + (uint32_t)rng_below(&r, 5), round, &r);
	}
}

/* Whole tiles, all of whose addresses are a multiple of 4 bytes, and none. */
static void every_alignment(void **state)
{
	(void)state;
	rng r = {20260203};
	for (uint32_t size = 1; size <= 8; size *= 2)
		for (unsigned round = 0; round < 4; round++)
			check({size, round & 1, round & 2 ? 0u : 4096u}, {8192, 8192, 8192, 8192},
			      2, round, &r);
}

/* Items that are not to be done, and sizes that do not fit. */
static void verdicts(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		bytes in(5000, 0x5A), out(5000, 0xEE), want;
		form f = {4, 0, 0};
		want = bits_reference(f, in);
		const uint8_t *src[5] = {in.data(), in.data(), in.data(), nullptr, in.data()};
		uint64_t sizes[5] = {100, 100, 5000, 8, 1ull << 40},
			 caps[5] = {100, 99, 5000, 8, 8};
		uint8_t *dst[5] = {out.data(), out.data(), out.data(), out.data(), out.data()};
		uint64_t got[5];
		uint32_t status[5] = {LADE_GPU_CORRUPT, 0, 0, 0, 0};
		lade_gpu_batch batch = {src, sizes, dst, caps, got, status, status, nullptr, 5};
		emu_config config = {.kernel = "encode", .grid = 5, .block = 128};
		config.seed = seed;
		assert_true(emu_launch(config, [&] {
				    lade_bitshuffle_encode(batch,
				                           {0, 4, LADE_ROWS_BITS, 0, 0, 0, 0});
			    }).ok);
		static const uint32_t verdict[5] = {LADE_GPU_CORRUPT, LADE_GPU_NOSPACE, LADE_GPU_OK,
		                                    LADE_GPU_ARG, LADE_GPU_LIMIT};
		for (int i = 0; i < 5; i++) {
			assert_int_equal(status[i], verdict[i]);
			assert_int_equal(got[i], i == 2 ? 5000 : 0);
		}
		assert_memory_equal(out.data(), want.data(), 5000);
		memset(status, 0, sizeof status);
		assert_true(emu_launch(config, [&] {
				    lade_bitshuffle_decode(batch,
				                           {0, 3, LADE_ROWS_BITS, 0, 0, 0, 0});
			    }).ok);
		assert_int_equal(status[2], LADE_GPU_ARG);
		assert_memory_equal(out.data(), want.data(), 5000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_of_8_kib), cmocka_unit_test(whole_buffers),
		cmocka_unit_test(any_block),       cmocka_unit_test(every_alignment),
		cmocka_unit_test(verdicts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
