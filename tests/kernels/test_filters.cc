/*
 * test_filters.cc: the kernels of shuffle, split, zigzag, byteswap and delta on the emulated warp,
 * against references written element by element: all sizes of elements, any length and alignment,
 * every buffer at a guard page or between guard zones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "place.h"

#include "cuda/shuffle.cu"
#include "cuda/stream.cu"

#include <vector>

typedef std::vector<uint8_t> bytes;

static rng r;

/* ---- references ---------------------------------------------------------------------------- */

enum filter { SHUFFLE, ZIGZAG, BYTESWAP, DELTA };

static uint64_t element(const bytes &in, size_t size, size_t i)
{
	uint64_t v = 0;
	for (size_t k = 0; k < size; k++)
		v |= (uint64_t)in[i * size + k] << (8 * k);
	return v;
}

static void put(bytes &out, size_t size, size_t i, uint64_t v)
{
	for (size_t k = 0; k < size; k++)
		out[i * size + k] = (uint8_t)(v >> (8 * k));
}

static bytes reference(filter f, size_t size, const bytes &in)
{
	bytes out = in;
	size_t n = in.size() / size;
	for (size_t i = 0; i < n; i++) {
		if (f == SHUFFLE) {
			for (size_t j = 0; j < size; j++)
				out[j * n + i] = in[i * size + j];
		} else if (f == BYTESWAP) {
			for (size_t j = 0; j < size; j++)
				out[i * size + j] = in[i * size + size - 1 - j];
		} else if (f == DELTA) {
			put(out, size, i, element(in, size, i) - (i ? element(in, size, i - 1) : 0));
		} else {
			uint64_t v = element(in, size, i) << (64 - 8 * size);
			int64_t x = (int64_t)v >> (64 - 8 * size);
			put(out, size, i, (uint64_t)x << 1 ^ (uint64_t)(x >> 63));
		}
	}
	return out;
}

/* ---- running ------------------------------------------------------------------------------- */

static uint32_t log2_of(size_t size)
{
	return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
}

/* The kernels of one filter in one direction; 'parts' is for the sums of delta. */
static void run(filter f, bool encode, size_t size, uint32_t parts, lade_gpu_batch batch,
                uint32_t grid, uint64_t seed)
{
	emu_config config = {.kernel = "filter", .grid = grid, .block = 128};
	config.seed = seed;
	uint32_t log2 = log2_of(size);
	std::vector<uint64_t> partial(batch.count * (size_t)parts, 0xABCDEF0123456789u);
	emu_result done = {};
	done.ok = true;
	if (f == DELTA && !encode && parts > 1)
		done = emu_launch(config, [&] {
			lade_delta_ranges(batch, log2, parts, partial.data());
		});
	if (done.ok)
		done = emu_launch(config, [&] {
			if (f == SHUFFLE && encode)
				lade_shuffle_encode(batch, (uint32_t)size, 0);
			else if (f == SHUFFLE)
				lade_shuffle_decode(batch, (uint32_t)size, 0);
			else if (f == DELTA && !encode)
				lade_delta_decode(batch, log2, parts, partial.data(), 4);
			else
				lade_stream(batch,
			                    f == DELTA      ? LADE_STREAM_DIFF
			                    : f == BYTESWAP ? LADE_STREAM_SWAP
			                    : encode        ? LADE_STREAM_ZIG
							    : LADE_STREAM_ZAG,
			                    log2, 15);
		});
	if (!done.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, done.message);
	assert_true(done.ok);
}

static void launch(filter f, bool encode, size_t size, uint32_t parts, const std::vector<bytes> &in,
                   const std::vector<bytes> &want, uint32_t grid, uint64_t seed)
{
	size_t n = in.size();
	std::vector<place> from(n), to(n);
	std::vector<const uint8_t *> src(n);
	std::vector<uint8_t *> dst(n);
	std::vector<uint64_t> sizes(n), caps(n), got(n, 77);
	std::vector<uint32_t> status(n, 77);
	for (size_t i = 0; i < n; i++) {
		size_t skew = rng_below(&r, 2) ? 4 * rng_below(&r, 4) : rng_below(&r, 16);
		from[i] = place_new(in[i].size(), skew, (int)rng_below(&r, 2));
		to[i] = place_new(in[i].size(), rng_below(&r, 2) ? skew : rng_below(&r, 16),
		                  (int)rng_below(&r, 2));
		if (in[i].size())
			memcpy(from[i].data, in[i].data(), in[i].size());
		src[i] = from[i].data;
		dst[i] = to[i].data;
		sizes[i] = in[i].size();
		caps[i] = sizes[i] + rng_below(&r, 2) * 100;
	}
	lade_gpu_batch batch = {src.data(),    sizes.data(), dst.data(), caps.data(), got.data(),
	                        status.data(), nullptr,      nullptr,    (uint32_t)n};
	run(f, encode, size, parts, batch, grid, seed);
	for (size_t i = 0; i < n; i++) {
		if (status[i] || got[i] != in[i].size() ||
		    (in[i].size() && memcmp(dst[i], want[i].data(), in[i].size())))
			fail_msg("filter %d, %s, elements of %zu, %u parts: %zu bytes, from %p to %p, "
			         "status %u",
			         f, encode ? "encode" : "decode", size, parts, in[i].size(),
			         (const void *)src[i], (void *)dst[i], status[i]);
		place_free(&from[i]);
		place_free(&to[i]);
	}
}

static bytes random_bytes(size_t size)
{
	bytes out(size);
	for (auto &b : out)
		b = (uint8_t)(rng_next(&r) >> 40);
	return out;
}

static void check(filter f, size_t size, uint32_t parts, const std::vector<size_t> &sizes,
                  uint32_t grid, uint64_t seed)
{
	std::vector<bytes> plain, coded;
	for (size_t n : sizes) {
		plain.push_back(random_bytes(f == SHUFFLE ? n : n - n % size));
		coded.push_back(reference(f, size, plain.back()));
	}
	launch(f, true, size, parts, plain, coded, grid, seed);
	launch(f, false, size, parts, coded, plain, grid, seed);
}

/* ---- tests --------------------------------------------------------------------------------- */

/* All shapes, and sizes that have none; about a row of a tile, a tile, and several. */
static void shuffles(void **state)
{
	(void)state;
	for (size_t size : {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 255}) {
		size_t tile = size <= 16 ? 32 / size * 128 * size : 4096;
		check(SHUFFLE, size, 1,
		      {0, 1, size, 4 * size + 1, 127 * size, 128 * size, 130 * size + size - 1,
		       tile - size, tile, tile + size, 2 * tile + 20 * size + 3},
		      1 + size % 4, size);
	}
}

/* Whole tiles, from and to all alignments. */
static void shuffles_aligned(void **state)
{
	(void)state;
	for (size_t size : {2, 3, 4, 8, 16})
		for (unsigned round = 0; round < 3; round++)
			check(SHUFFLE, size, 1, {8192 + 64 * size * round, 12288, 12288}, 2, round);
}

static void streams(void **state)
{
	(void)state;
	for (filter f : {ZIGZAG, BYTESWAP, DELTA})
		for (size_t size = 1; size <= 8; size *= 2)
			check(f, size, 1, {0, size, 3 * size, 128, 1000, 4088, 4096, 4104, 8192, 13000},
			      (uint32_t)(1 + size % 3), size);
}

/* A last tile that reaches back has its first element right behind a guard page. */
static void delta_reads_nothing_before(void **state)
{
	(void)state;
	for (size_t size : {1, 2, 4, 8})
		for (size_t n = 4096 + size; n < 4096 + 12; n += size) {
			bytes in = random_bytes(n), want = reference(DELTA, size, in);
			place from = place_new(n, 0, 0), to = place_new(n, 0, 0);
			const uint8_t *src = from.data;
			uint8_t *dst = to.data;
			uint64_t count = n, got = 77;
			uint32_t status = 77;
			memcpy(from.data, in.data(), n);
			lade_gpu_batch batch = {&src,    &count,  &dst,    &count, &got,
			                        &status, nullptr, nullptr, 1};
			run(DELTA, true, size, 1, batch, 1, n);
			assert_int_equal(status, 0);
			assert_memory_equal(dst, want.data(), n);
			place_free(&from);
			place_free(&to);
		}
}

/* Several slabs, by one block and by several; carries go through all of them. */
static void sums(void **state)
{
	(void)state;
	for (size_t size = 1; size <= 8; size *= 2)
		for (uint32_t parts : {1u, 2u, 3u, 40u})
			check(DELTA, size, parts, {16384, 16392, 40, 70000, 0}, 3, parts + size);
}

static void any_chunk(void **state)
{
	(void)state;
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 1;
	printf("seed %llu\n", (unsigned long long)seed);
	r.s = seed;
	for (unsigned round = 0; round < 24; round++) {
		filter f = (filter)rng_below(&r, 4);
		size_t size = f == SHUFFLE ? 1 + rng_below(&r, 20) : 1u << rng_below(&r, 4);
		std::vector<size_t> sizes;
		for (unsigned i = 0; i < 4; i++)
			sizes.push_back(rng_below(&r, round % 3 ? 3000 : 20000));
		check(f, size, 1 + (uint32_t)rng_below(&r, 3), sizes,
		      1 + (uint32_t)rng_below(&r, 5), round);
	}
}

/* What cannot be done has its verdict; nothing of it is written. */
static void verdicts(void **state)
{
	(void)state;
	for (unsigned kernel = 0; kernel < 4; kernel++) {
		bytes in(5000, 0x5A), out(5000, 0xEE);
		const uint8_t *src[6] = {in.data(), in.data(), in.data(), nullptr, in.data(), in.data()};
		uint64_t sizes[6] = {100, 100, 97, 8, 1ull << 40, 64};
		uint64_t caps[6] = {100, 99, 5000, 8, 8, 64};
		uint8_t *dst[6];
		for (auto &d : dst)
			d = out.data();
		uint64_t got[6];
		uint32_t status[6] = {LADE_GPU_CORRUPT, 0, 0, 0, 0, 0};
		lade_gpu_batch batch = {src, sizes, dst, caps, got, status, status, nullptr, 6};
		emu_config config = {.kernel = "verdicts", .grid = 5, .block = 128};
		config.seed = kernel;
		std::vector<uint64_t> partial(12);
		assert_true(emu_launch(config, [&] {
			            if (kernel == 0)
				            lade_shuffle_encode(batch, 4, 9);
			            else if (kernel == 1)
				            lade_shuffle_decode(batch, 4, 9);
			            else if (kernel == 2)
				            lade_stream(batch, LADE_STREAM_DIFF, 2, 9);
			            else
				            lade_delta_decode(batch, 2, 1, partial.data(), 9);
		            }).ok);
		static const uint32_t verdict[6] = {LADE_GPU_CORRUPT, LADE_GPU_NOSPACE, 9,
		                                    LADE_GPU_ARG, LADE_GPU_LIMIT, LADE_GPU_OK};
		for (int i = 0; i < 6; i++) {
			assert_int_equal(status[i], verdict[i]);
			assert_int_equal(got[i], i == 5 ? 64 : 0);
		}
		for (size_t i = 64; i < out.size(); i++)
			assert_int_equal(out[i], 0xEE);
	}
}

int main(void)
{
	r.s = 20261122;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shuffles), cmocka_unit_test(shuffles_aligned),
		cmocka_unit_test(streams),
		cmocka_unit_test(delta_reads_nothing_before),
		cmocka_unit_test(sums),
		cmocka_unit_test(any_chunk), cmocka_unit_test(verdicts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
