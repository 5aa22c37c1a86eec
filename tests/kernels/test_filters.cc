/*
 * test_filters.cc: the kernels of shuffle, split, zigzag, byteswap and delta, and of several of
 * them and the bit shuffle at once, on the emulated warp, against references written element by
 * element: all sizes of elements, any length and alignment, every buffer at a guard page or between
 * guard zones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "place.h"

#include "filter/kernels/filters.cu"
#include "filter/kernels/shuffle.cu"
#include "filter/kernels/stream.cu"

#include "bits_reference.h"

static rng r;

/* ---- references ---------------------------------------------------------------------------- */

/* Which of the filters, in the order of encoding. */
enum filter { BYTESWAP = 1, DELTA = 2, ZIGZAG = 4, SHUFFLE = 8, BITSHUFFLE = 16 };

struct chain {
	unsigned filters;
	size_t size;
	uint32_t msb, block; /* of the bit shuffle */
};

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

static bytes reference_of(filter f, size_t size, const bytes &in)
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
			put(out, size, i,
			    element(in, size, i) - (i ? element(in, size, i - 1) : 0));
		} else {
			uint64_t v = element(in, size, i) << (64 - 8 * size);
			int64_t x = (int64_t)v >> (64 - 8 * size);
			put(out, size, i, (uint64_t)x << 1 ^ (uint64_t)(x >> 63));
		}
	}
	return out;
}

static bytes reference(const chain &c, const bytes &in)
{
	bytes out = in;
	for (filter f : {BYTESWAP, DELTA, ZIGZAG, SHUFFLE})
		if (c.filters & f)
			out = reference_of(f, c.size, out);
	if (c.filters & BITSHUFFLE)
		out = bits_reference({(uint32_t)c.size, c.msb, c.block}, out);
	return out;
}

/* ---- running ------------------------------------------------------------------------------- */

/* The kernels of a chain in one direction; 'parts' is for the sums of delta. */
static void run(const chain &c, bool encode, uint32_t parts, lade_gpu_batch batch, uint32_t grid,
                uint64_t seed)
{
	emu_config config = {.kernel = "filter", .grid = grid, .block = 128};
	config.seed = seed;
	lade_filters f = {0, (uint32_t)c.size, LADE_ROWS_NONE, c.msb, c.block, 0, 0};
	f.ops = (c.filters & BYTESWAP ? LADE_WORDS_SWAP : 0) |
	        (c.filters & DELTA ? LADE_WORDS_DIFF : 0) |
	        (c.filters & ZIGZAG ? (encode ? LADE_WORDS_ZIG : LADE_WORDS_ZAG) : 0);
	f.rows = c.filters & SHUFFLE      ? LADE_ROWS_BYTES
	         : c.filters & BITSHUFFLE ? LADE_ROWS_BITS
	                                  : LADE_ROWS_NONE;
	f.partial = f.ops ? 15 : 0;
	bool sums = c.filters & DELTA && !encode, alone = !(c.filters & (c.filters - 1));
	std::vector<uint64_t> partial(batch.count * (size_t)parts, 0xABCDEF0123456789u);
	emu_result done = {};
	done.ok = true;
	if (sums && parts > 1)
		done = emu_launch(config, [&] {
			if (alone)
				lade_delta_ranges(batch, f, parts, partial.data());
			else
				lade_filters_sum(batch, f, parts, partial.data(), 1);
		});
	if (done.ok)
		done = emu_launch(config, [&] {
			if (sums && alone)
				lade_delta_decode(batch, f, parts, partial.data());
			else if (sums)
				lade_filters_sum(batch, f, parts, partial.data(), 0);
			else if (c.filters == SHUFFLE && encode)
				lade_shuffle_encode(batch, f);
			else if (c.filters == SHUFFLE)
				lade_shuffle_decode(batch, f);
			else if (alone && c.filters != BITSHUFFLE)
				lade_stream(batch, f);
			else if (encode)
				lade_filters_encode(batch, f);
			else
				lade_filters_decode(batch, f);
		});
	if (!done.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, done.message);
	assert_true(done.ok);
}

static void launch(const chain &c, bool encode, uint32_t parts, const std::vector<bytes> &in,
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
	run(c, encode, parts, batch, grid, seed);
	for (size_t i = 0; i < n; i++) {
		if (status[i] || got[i] != in[i].size() ||
		    (in[i].size() && memcmp(dst[i], want[i].data(), in[i].size())))
			fail_msg("filters %u, %s, elements of %zu, msb %u, block %u, %u parts: %zu "
			         "bytes, from %p to %p, status %u",
			         c.filters, encode ? "encode" : "decode", c.size, c.msb, c.block,
			         parts, in[i].size(), (const void *)src[i], (void *)dst[i],
			         status[i]);
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

static void check(const chain &c, uint32_t parts, const std::vector<size_t> &sizes, uint32_t grid,
                  uint64_t seed)
{
	std::vector<bytes> plain, coded;
	bool whole = c.filters & (BYTESWAP | DELTA | ZIGZAG);
	for (size_t n : sizes) {
		plain.push_back(random_bytes(whole ? n - n % c.size : n));
		coded.push_back(reference(c, plain.back()));
	}
	launch(c, true, parts, plain, coded, grid, seed);
	launch(c, false, parts, coded, plain, grid, seed);
}

/* ---- tests --------------------------------------------------------------------------------- */

/* All shapes, and sizes that have none; about a row of a tile, a tile, and several. */
static void shuffles(void **state)
{
	(void)state;
	for (size_t size : {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 255}) {
		size_t tile = size <= 16 ? 32 / size * 128 * size : 4096;
		check({SHUFFLE, size, 0, 0}, 1,
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
			check({SHUFFLE, size, 0, 0}, 1, {8192 + 64 * size * round, 12288, 12288}, 2,
			      round);
}

static void streams(void **state)
{
	(void)state;
	for (filter f : {ZIGZAG, BYTESWAP, DELTA})
		for (size_t size = 1; size <= 8; size *= 2)
			check({f, size, 0, 0}, 1,
			      {0, size, 3 * size, 128, 1000, 4088, 4096, 4104, 8192, 13000},
			      (uint32_t)(1 + size % 3), size);
}

/* A last tile that reaches back has its first element right behind a guard page. */
static void delta_reads_nothing_before(void **state)
{
	(void)state;
	for (size_t size : {1, 2, 4, 8})
		for (size_t n = 4096 + size; n < 4096 + 12; n += size) {
			bytes in = random_bytes(n), want = reference({DELTA, size, 0, 0}, in);
			place from = place_new(n, 0, 0), to = place_new(n, 0, 0);
			const uint8_t *src = from.data;
			uint8_t *dst = to.data;
			uint64_t count = n, got = 77;
			uint32_t status = 77;
			memcpy(from.data, in.data(), n);
			lade_gpu_batch batch = {&src,    &count,  &dst,    &count, &got,
			                        &status, nullptr, nullptr, 1};
			run({DELTA, size, 0, 0}, true, 1, batch, 1, n);
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
			check({DELTA, size, 0, 0}, parts, {16384, 16392, 40, 70000, 0}, 3,
			      parts + size);
}

/* All that can be done at once: about a group of bits, a tile, two, and several slabs. */
static void chains(void **state)
{
	(void)state;
	static const unsigned ops[] = {BYTESWAP | DELTA, BYTESWAP | ZIGZAG, DELTA | ZIGZAG,
	                               BYTESWAP | DELTA | ZIGZAG, BYTESWAP, DELTA, ZIGZAG};
	uint32_t turn = 0;
	for (size_t size : {1, 2, 4, 8})
		for (unsigned op : ops)
			for (unsigned rows : {0u, (unsigned)SHUFFLE, (unsigned)BITSHUFFLE}) {
				turn++;
				if ((rows == 0 && !(op & (op - 1))) ||
				    (rows == SHUFFLE && size == 1))
					continue;
				chain c = {op | rows, size, turn & 1,
				           turn & 2 ? 4096 * (turn % 3) : 0};
				check(c, 1 + turn % 3,
				      {0, size, 8 * size - size, 9 * size, 4096, 4096 + 7 * size,
				       8192 + 31 * size, 17000},
				      1 + turn % 4, turn);
			}
}

static void any_chunk(void **state)
{
	(void)state;
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 1;
	printf("seed %llu\n", (unsigned long long)seed);
	r.s = seed;
	for (unsigned round = 0; round < 24; round++) {
		chain c = {(unsigned)rng_below(&r, 8), (size_t)1 << rng_below(&r, 4),
		           (uint32_t)rng_below(&r, 2), (uint32_t)rng_below(&r, 4) * 4096};
		unsigned rows = (unsigned)rng_below(&r, 3);
		if (!c.filters && rows < 2)
			c = {SHUFFLE, 1 + rng_below(&r, 20), 0, 0};
		else if (rows)
			c.filters |= rows == 2 || c.size == 1 ? BITSHUFFLE : SHUFFLE;
		std::vector<size_t> sizes;
		for (unsigned i = 0; i < 4; i++)
			sizes.push_back(rng_below(&r, round % 3 ? 3000 : 20000));
		check(c, 1 + (uint32_t)rng_below(&r, 3), sizes,
		      1 + (uint32_t)rng_below(&r, 5), round);
	}
}

/* What cannot be done has its verdict; nothing of it is written. */
static void verdicts(void **state)
{
	(void)state;
	for (unsigned kernel = 0; kernel < 6; kernel++) {
		bytes in(5000, 0x5A), out(5000, 0xEE);
		const uint8_t *src[7] = {in.data(), in.data(), in.data(), nullptr,
		                         in.data(), in.data(), in.data()};
		uint64_t sizes[7] = {100, 100, 97, 8, 1ull << 40, 64, 97};
		uint64_t caps[7] = {100, 99, 5000, 8, 8, 64, 96};
		uint8_t *dst[7];
		for (auto &d : dst)
			d = out.data();
		uint64_t got[7];
		uint32_t status[7] = {LADE_GPU_CORRUPT, 0, 0, 0, 0, 0, 0};
		lade_gpu_batch batch = {src, sizes, dst, caps, got, status, status, nullptr, 7};
		emu_config config = {.kernel = "verdicts", .grid = 5, .block = 128};
		config.seed = kernel;
		std::vector<uint64_t> partial(14);
		/* The filters alone do not know of a part that is seen late. */
		lade_filters f = {kernel == 2 ? LADE_WORDS_DIFF : LADE_WORDS_SWAP,
		                  4,
		                  LADE_ROWS_NONE,
		                  0,
		                  0,
		                  9,
		                  kernel > 3};
		assert_true(emu_launch(config, [&] {
			            if (kernel == 0)
				            lade_shuffle_encode(batch, f);
			            else if (kernel == 1)
				            lade_shuffle_decode(batch, f);
			            else if (kernel == 2)
				            lade_stream(batch, f);
			            else if (kernel == 3)
				            lade_delta_decode(batch, f, 1, partial.data());
			            else if (kernel == 4)
				            lade_filters_sum(batch, f, 1, partial.data(), 0);
			            else
				            lade_filters_decode(batch, f);
		            }).ok);
		const uint32_t verdict[7] = {LADE_GPU_CORRUPT,   LADE_GPU_NOSPACE, 9,
		                             LADE_GPU_ARG,       LADE_GPU_LIMIT,   LADE_GPU_OK,
		                             f.late ? LADE_GPU_NOSPACE : 9};
		for (int i = 0; i < 7; i++) {
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
		cmocka_unit_test(chains),
		cmocka_unit_test(any_chunk), cmocka_unit_test(verdicts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
