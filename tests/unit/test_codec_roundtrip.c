/*
 * test_codec_roundtrip.c: every codec (blosc has a test of its own) gives back what it took, at
 * every level, at the sizes where formats change their mind, with each buffer against a guard page,
 * and never passes its bound.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"

static const uint64_t seed = 0x1ade0c0dec;

static void decode_all_ways(codec *c, const uint8_t *packed, size_t packed_size,
                            const uint8_t *want, size_t size)
{
	lade_error err = {0};
	guard in = guard_copy(packed, packed_size, size & 1);
	size_t got;
	for (int at_end = 0; at_end < 2; at_end++) {
		guard out = guard_new(size, at_end);
		assert_status(codec_decode(c, in.data, in.size, out.data, size, &got, &err),
		              LADE_OK, err);
		assert_int_equal(got, size);
		assert_memory_equal(out.data, want, size);
		guard_free(&out);
	}
	if (size > 0) {
		guard out = guard_new(size - 1, 1);
		err = (lade_error){0};
		assert_status(codec_decode(c, in.data, in.size, out.data, size - 1, &got, &err),
		              LADE_E_NOSPACE, err);
		assert_int_equal(got, 0);
		assert_true(strlen(err.message) > 0);
		guard_free(&out);
	}
	guard out = guard_new(size + 333, 1);
	assert_status(codec_decode(c, in.data, in.size, out.data, size + 333, &got, &err), LADE_OK,
	              err);
	assert_int_equal(got, size);
	assert_memory_equal(out.data, want, size);
	guard_free(&out);

	uint64_t told = 0;
	lade_status status =
		c->stage.algorithm->decoded_size(&c->stage, in.data, in.size, &told, &err);
	if (status != LADE_E_UNKNOWN_SIZE) {
		assert_status(status, LADE_OK, err);
		assert_int_equal(told, size);
	}
	guard_free(&in);
}

static void encode_into_less(codec *c, const uint8_t *data, size_t size, const uint8_t *packed,
                             size_t packed_size, bool exact)
{
	lade_error err = {0};
	size_t got;
	guard out = guard_new(packed_size, 1);
	lade_status status = codec_encode(c, data, size, out.data, packed_size, &got, &err);
	if (exact || status != LADE_E_NOSPACE)
		assert_status(status, LADE_OK, err);
	if (exact) {
		assert_int_equal(got, packed_size);
		assert_memory_equal(out.data, packed, packed_size);
	}
	guard_free(&out);
	for (size_t less = 1; less <= 9 && less <= packed_size; less += 4) {
		out = guard_new(packed_size - less, 1);
		status = codec_encode(c, data, size, out.data, packed_size - less, &got, &err);
		/* A library may find another way to say it. */
		if (status == LADE_OK)
			assert_true(got <= packed_size - less);
		else
			assert_status(status, LADE_E_NOSPACE, err);
		guard_free(&out);
	}
}

static void round_trip(codec *c, size_t size, int kind, rng *r)
{
	lade_error err = {0};
	guard raw = guard_new(size, 1);
	data_fill(raw.data, size, kind, r);
	size_t bound = codec_bound(c, size), got = 0;
	assert_true(bound != SIZE_MAX);
	guard packed = guard_new(bound, 1);
	assert_status(codec_encode(c, raw.data, size, packed.data, bound, &got, &err), LADE_OK,
	              err);
	assert_true(got <= bound);
	decode_all_ways(c, packed.data, got, raw.data, size);
	const char *name = c->stage.algorithm->name;
	bool exact = !strcmp(name, "copy") || !strcmp(name, "snappy") || !strcmp(name, "lz4f") ||
	             !strcmp(name, "bitcomp");
	if (size <= 5000)
		encode_into_less(c, raw.data, size, packed.data, got, exact);
	/* The source is read to its first byte and no further back, too. */
	guard front = guard_copy(raw.data, size, 0);
	guard again = guard_new(bound, 0);
	size_t got2 = 0;
	assert_status(codec_encode(c, front.data, size, again.data, bound, &got2, &err), LADE_OK,
	              err);
	assert_int_equal(got2, got);
	guard_free(&again);
	guard_free(&front);
	guard_free(&packed);
	guard_free(&raw);
}

static const char *const specs[] = {
	"copy",
	"lz4",
	"lz4(-5)",
	"lz4(4)",
	"snappy",
	"ans",
	"ans(f4,block=8192)",
	"zstd(-3)",
	"zstd(1)",
	"zstd(3,checksum=true)",
	"zstd(3,window_log=12)",
	"zstd(3,long=true)",
	"deflate(0)",
	"deflate(1)",
	"deflate(6)",
	"zlib(3)",
	"gzip(2)",
	"lz4f",
	"lz4f(1,checksum=true,block_checksum=true,block_size=64k)",
	"lz4f(1,block_size=64k,linked=true,content_size=false)",
	"lz4f(4,block_size=64k,linked=true)",
	"bitcomp",
	"bitcomp(<i4)",
	"bitcomp(<u8,algorithm=sparse)",
};

static void test_sizes(void **state)
{
	(void)state;
	static const size_t sizes[] = {
		0,   1,   2,   3,    4,    5,    6,    7,     8,     9,     11,     12,    13,
		15,  16,  17,  31,   32,   33,   63,   64,    65,    127,   128,    129,   255,
		256, 257, 300, 1000, 4095, 4096, 4097, 65535, 65536, 65537, 131072, 131073};
	rng r = {seed};
	printf("seed %llx\n", (unsigned long long)seed);
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		codec c = codec_open(specs[i]);
		for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
			for (int kind = 0; kind < DATA_KINDS; kind++)
				round_trip(&c, sizes[k], kind, &r);
		codec_close(&c);
	}
}

static void test_a_megabyte(void **state)
{
	(void)state;
	rng r = {seed + 1};
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		codec c = codec_open(specs[i]);
		for (int kind = 0; kind < DATA_KINDS; kind++)
			round_trip(&c, ((size_t)1 << 20) + (size_t)kind, kind, &r);
		codec_close(&c);
	}
}

/* Every level, on noise above all: where the bounds are tight. */
static void test_every_level(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int min, max;
	} ranges[] = {{"lz4", -3, 12}, {"zstd", -7, 22}, {"deflate", 0, 12},
	              {"zlib", 0, 12}, {"gzip", 0, 12},  {"lz4f", -3, 12}};
	static const size_t sizes[] = {0, 1, 100, 10000, 66000};
	rng r = {seed + 2};
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		for (int level = ranges[i].min; level <= ranges[i].max; level++) {
			char text[64];
			snprintf(text, sizeof text, "%s(%d)", ranges[i].name, level);
			codec c = codec_open(text);
			for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
				round_trip(&c, sizes[k], DATA_NOISE, &r);
				round_trip(&c, sizes[k], DATA_WORDS, &r);
			}
			codec_close(&c);
		}
}

/* One context takes chunks with other options in turn, as a worker's does. */
static void test_options_change_between_chunks(void **state)
{
	(void)state;
	static const char *const turns[][4] = {
		{"zstd(3)", "zstd(-1,checksum=true)", "zstd(9,window_log=14)", "zstd(1,long=true)"},
		{"lz4(1)", "lz4(9)", "lz4(-4)", "lz4(3)"},
		{"zlib(1)", "zlib(9)", "zlib(0)", "zlib(12)"},
		{"lz4f(9)", "lz4f(1,linked=true,block_size=64k)", "lz4f(3,checksum=true)",
	         "lz4f(-2)"}};
	rng r = {seed + 3};
	uint8_t *data = malloc(100000), *once = malloc(200000), *twice = malloc(200000);
	data_fill(data, 100000, DATA_WORDS, &r);
	for (size_t i = 0; i < 4; i++) {
		codec shared = codec_open(turns[i][0]);
		for (int round = 0; round < 12; round++) {
			codec own = codec_open(turns[i][round % 4]);
			lade_error err = {0};
			size_t a = 0, b = 0;
			shared.stage = own.stage;
			assert_status(codec_encode(&own, data, 100000, once, 200000, &a, &err),
			              LADE_OK, err);
			if (round % 3 == 2) /* a failure between must leave no trace */
				assert_int_equal(
					codec_encode(&shared, data, 100000, twice, 10, &b, NULL),
					LADE_E_NOSPACE);
			assert_status(codec_encode(&shared, data, 100000, twice, 200000, &b, &err),
			              LADE_OK, err);
			assert_int_equal(a, b);
			assert_memory_equal(once, twice, a);
			codec_close(&own);
		}
		codec_close(&shared);
	}
	free(data);
	free(once);
	free(twice);
}

static void test_bounds_grow(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		codec c = codec_open(specs[i]);
		size_t before = 0;
		for (size_t size = 0; size < 300000; size += size < 1000 ? 1 : 97) {
			size_t now = codec_bound(&c, size);
			if (now < before || now < size)
				fail_msg("%s: %zu for %zu, %zu before", specs[i], now, size,
				         before);
			before = now;
		}
		for (int bits = 19; bits < 64; bits++)
			for (int d = -1; d <= 1; d++) {
				size_t now = codec_bound(&c, ((size_t)1 << bits) + (size_t)d);
				if (now < before)
					fail_msg("%s: %zu for 2^%d%+d, %zu before", specs[i], now,
					         bits, d, before);
				before = now;
			}
		assert_true(codec_bound(&c, SIZE_MAX) == SIZE_MAX);
		codec_close(&c);
	}
}

/* All spans may be empty with no address. */
static void test_null_when_empty(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		codec c = codec_open(specs[i]);
		lade_error err = {0};
		uint8_t packed[256];
		size_t got = 0, back = 1;
		assert_status(codec_encode(&c, NULL, 0, packed, sizeof packed, &got, &err), LADE_OK,
		              err);
		assert_status(codec_decode(&c, packed, got, NULL, 0, &back, &err), LADE_OK, err);
		assert_int_equal(back, 0);
		if (got > 0) {
			assert_status(codec_encode(&c, NULL, 0, NULL, 0, &back, &err),
			              LADE_E_NOSPACE, err);
			/* Nothing at all is never a whole stream. */
			assert_status(codec_decode(&c, NULL, 0, NULL, 0, &back, &err),
			              LADE_E_TRUNCATED, err);
		}
		codec_close(&c);
	}
}

/* The same through the engine: ranges, and an item of each codec in one call. */
static void test_ranges_through_the_engine(void **state)
{
	(void)state;
	rng r = {seed + 4};
	enum { SIZE = 200000 };
	uint8_t *data = malloc(SIZE), *packed = malloc(2 * SIZE);
	data_fill(data, SIZE, DATA_WORDS, &r);
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		codec c = codec_open(specs[i]);
		lade_error err = {0};
		size_t got = 0;
		assert_status(
			lade_encode(codec_engine, c.spec, lade_host_cspan(data, SIZE),
			            lade_host_span(packed, 2 * SIZE), &got, &err),
			LADE_OK, err);
		for (int k = 0; k < 60; k++) {
			size_t off = rng_below(&r, k % 3 ? SIZE : 4),
			       size = 1 + rng_below(&r, 5000);
			size = size > SIZE - off ? SIZE - off : size;
			guard out = guard_new(size, 1);
			guard in = guard_copy(packed, got, 1);
			lade_segment segment = {.data = in.data, .size = got};
			lade_item item = {.src = &segment,
			                  .src_count = 1,
			                  .dst = lade_host_span(out.data, size),
			                  .range_off = off,
			                  .range_size = size};
			lade_result result;
			assert_status(lade_decode_into(codec_engine, c.spec, &item, 1, &result,
			                               NULL, &err),
			              LADE_OK, err);
			assert_int_equal(result.size, size);
			assert_memory_equal(out.data, data + off, size);
			/* One byte past the end. */
			item.range_off = SIZE + 1 - size;
			assert_status(lade_decode_into(codec_engine, c.spec, &item, 1, &result,
			                               NULL, &err),
			              LADE_E_RANGE, err);
			guard_free(&in);
			guard_free(&out);
		}
		codec_close(&c);
	}
	free(data);
	free(packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_a_megabyte),
		cmocka_unit_test(test_every_level),
		cmocka_unit_test(test_options_change_between_chunks),
		cmocka_unit_test(test_bounds_grow),
		cmocka_unit_test(test_null_when_empty),
		cmocka_unit_test(test_ranges_through_the_engine),
	};
	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
