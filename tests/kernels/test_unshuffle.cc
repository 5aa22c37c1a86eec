/*
 * test_unshuffle.cc: the LZ decoders that undo a byte shuffle, in all shapes, on the emulated warp:
 * literals alone (test_lz.cc has the rest), any length and alignment of source, scratch memory and
 * destination, each at a guard page or between guard zones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "place.h"

#include "codec/lz4/kernels/lz4_unshuffle.cu"
#include "codec/snappy/kernels/snappy_unshuffle.cu"

#include <vector>

static rng r;

/* A block of one run of literals. */
static std::vector<uint8_t> stream(bool snappy, const std::vector<uint8_t> &raw)
{
	std::vector<uint8_t> out;
	size_t n = raw.size();
	if (snappy) {
		size_t v = n;
		for (; v > 127; v >>= 7)
			out.push_back((uint8_t)(v | 128));
		out.push_back((uint8_t)v);
		if (n) {
			out.push_back(61 << 2); /* two bytes of length follow */
			out.push_back((uint8_t)(n - 1));
			out.push_back((uint8_t)((n - 1) >> 8));
		}
	} else {
		out.push_back((uint8_t)((n < 15 ? n : 15) << 4));
		if (n >= 15) {
			size_t v = n - 15;
			for (; v >= 255; v -= 255)
				out.push_back(255);
			out.push_back((uint8_t)v);
		}
	}
	out.insert(out.end(), raw.begin(), raw.end());
	return out;
}

static void launch(bool snappy, unsigned shape, lade_gpu_batch batch, lade_lz_unshuffle u)
{
	static const uint32_t threads[] = {128, 128, 256, 512};
	emu_config config = {.kernel = "unshuffle", .grid = 2, .block = threads[shape]};
	uint32_t next = 0;
	batch.next = &next;
	config.shared = shape < 3 ? 0 : snappy ? 80352 : 76256;
	config.seed = rng_next(&r);
	emu_result done = emu_launch(config, [&] {
		if (shape == 0)
			snappy ? lade_snappy_unshuffle_solo(batch, u)
			       : lade_lz4_unshuffle_solo(batch, u);
		else if (shape == 1)
			snappy ? lade_snappy_unshuffle_team4(batch, u)
			       : lade_lz4_unshuffle_team4(batch, u);
		else if (shape == 2)
			snappy ? lade_snappy_unshuffle_team8(batch, u)
			       : lade_lz4_unshuffle_team8(batch, u);
		else
			snappy ? lade_snappy_unshuffle_team16(batch, u)
			       : lade_lz4_unshuffle_team16(batch, u);
	});
	if (!done.ok)
		print_error("%s\n", done.message);
	assert_true(done.ok);
}

static void check(bool snappy, unsigned shape, uint32_t size)
{
	static const size_t sizes[] = {0, 1, 7, 8, 31, 600, 4096, 3 * 1024 + 5, 13000, 9000};
	const size_t n = sizeof sizes / sizeof *sizes;
	std::vector<place> from(n), between(n), to(n);
	std::vector<const uint8_t *> src;
	std::vector<uint8_t *> scratch, dst;
	std::vector<std::vector<uint8_t>> plain(n);
	std::vector<uint64_t> src_size, cap, got(n, 77);
	std::vector<uint32_t> status(n, 77);
	for (size_t i = 0; i < n; i++) {
		size_t whole = sizes[i] / size, skew = rng_below(&r, 2) ? 0 : rng_below(&r, 16);
		std::vector<uint8_t> rows(sizes[i]);
		for (size_t k = 0; k < sizes[i]; k++)
			plain[i].push_back((uint8_t)rng_next(&r));
		for (size_t k = 0; k < sizes[i]; k++)
			rows[k < whole * size ? k % size * whole + k / size : k] = plain[i][k];
		std::vector<uint8_t> coded = stream(snappy, rows);
		from[i] = place_new(coded.size(), rng_below(&r, 16), 1);
		memcpy(from[i].data, coded.data(), coded.size());
		between[i] = place_new(sizes[i], rng_below(&r, 2) ? 0 : rng_below(&r, 16), 0);
		to[i] = place_new(sizes[i], skew, (int)rng_below(&r, 2));
		src.push_back(from[i].data);
		src_size.push_back(coded.size());
		scratch.push_back(between[i].data);
		cap.push_back(sizes[i]);
		dst.push_back(to[i].data);
	}
	dst[n - 1] = nullptr;
	lade_gpu_batch batch = {src.data(), src_size.data(), scratch.data(), cap.data(), got.data(),
	                        status.data(), nullptr, nullptr, (uint32_t)n};
	bool strict = rng_below(&r, 2);
	launch(snappy, shape, batch, {dst.data(), size, strict ? 9u : 0u});
	for (size_t i = 0; i < n; i++) {
		uint32_t want = i == n - 1                    ? LADE_GPU_ARG
		                : strict && sizes[i] % size ? 9
		                                              : LADE_GPU_OK;
		assert_int_equal(status[i], want);
		assert_int_equal(got[i], want ? 0 : sizes[i]);
		if (!want && sizes[i])
			assert_memory_equal(dst[i], plain[i].data(), sizes[i]);
		place_free(&from[i]);
		place_free(&between[i]);
		place_free(&to[i]);
	}
}

static void every_shape(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < 4; shape++)
		for (uint32_t size = 2; size <= 8; size *= 2)
			for (int snappy = 0; snappy < 2; snappy++)
				check(snappy != 0, shape, size);
}

int main(void)
{
	r.s = (uint64_t)getpid() * 2654435761u + 1;
	printf("seed %llu\n", (unsigned long long)r.s);
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_shape)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
