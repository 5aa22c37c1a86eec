/*
 * test_batch_random.c: properties of decode_into and encode_into over random pipelines, sizes,
 * segments, layouts and ranges, with guard pages around every buffer and a seed that is printed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "guard.h"

#include <lade/lade.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Lossless pipelines that accept any length that is a multiple of 8. */
static const char *const pipelines[] = {
	"copy",
	"lz4",
	"lz4(level=9)",
	"snappy",
	"zstd(level=1)",
	"zstd|crc32c",
	"deflate(level=1)",
	"zlib",
	"gzip",
	"lz4f",
	"blosc(cname=lz4,typesize=4)",
	"blosc(cname=zstd,shuffle=bitshuffle,typesize=8)",
	"crc32|lz4|xxh64",
	"adler32(location=start)|zstd|fletcher32",
	"crc32c",
	"xxh3(location=start)|crc32",
	"shuffle(4)|lz4",
	"shuffle(8)",
	"bitshuffle(4)|zstd",
	"bitshuffle(2)",
	"split(8)|lz4",
	"delta(<i4)|zigzag(<i4)|shuffle(4)|lz4",
	"delta(<i8)|bitshuffle(8)",
	"delta(<u2)",
	"zigzag(<i8)",
	"byteswap(8)|delta(<i4)|byteswap(2)|shuffle(8)|zstd|crc32c",
	"zigzag(<i2)|delta(<u2)",
	"delta(<i1)|shuffle(3)|lz4",
	"shuffle(255)|snappy",
	"delta(<i4)|crc32(location=start)|shuffle(4)",
	"shuffle(4)|shuffle(2)|lz4",
	"lz4|zstd",
	"split(4)|split(2)",
	"shuffle(7)|delta(<u8)|shuffle(16)|zstd",
	"blosc(cname=blosclz,typesize=2)|crc32c",
	"byteswap(2)",
	"bitshuffle(1)|delta(<u1)|gzip(level=9)",
	"bitshuffle(4,order=msb,block=8192)|lz4",
	"delta(<i2)|bitshuffle(2,block=48)|zstd",
	"bitshuffle(8,order=msb)|delta(<u1)",
};
#define PIPELINES (sizeof pipelines / sizeof *pipelines)

static lade_engine *engine;
static lade_spec *specs[PIPELINES];

static int setup(void **state)
{
	(void)state;
	lade_engine_options options = {.struct_size = sizeof options, .threads = 3};
	lade_error err = {0};
	if (lade_engine_new(&options, &engine, &err) != LADE_OK)
		return -1;
	for (size_t i = 0; i < PIPELINES; i++)
		if (lade_spec_parse(engine, pipelines[i], &specs[i], &err) != LADE_OK) {
			printf("%s: %s\n", pipelines[i], err.message);
			return -1;
		}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < PIPELINES; i++)
		lade_spec_unref(specs[i]);
	lade_engine_free(engine);
	return 0;
}

/* Bytes between random and very regular. */
static void fill(rng *r, uint8_t *data, size_t size)
{
	uint64_t kind = rng_below(r, 4), value = rng_next(r);
	for (size_t i = 0; i < size; i++) {
		if (kind == 0)
			data[i] = (uint8_t)rng_next(r);
		else if (kind == 1)
			data[i] = (uint8_t)value;
		else if (kind == 2)
			data[i] = (uint8_t)((i / 4) >> (8 * (i % 4)));
		else
			data[i] = rng_below(r, 16) ? (uint8_t)(i / 7) : (uint8_t)rng_next(r);
	}
}

static size_t random_size(rng *r)
{
	static const size_t most[] = {0, 8, 64, 4096, 70000, 300000};
	return rng_below(r, most[rng_below(r, 6)] / 8 + 1) * 8;
}

/* One encoded chunk behind a guard page, and what it came from. */
typedef struct chunk {
	guard raw, encoded;
	const lade_spec *spec;
} chunk;

static chunk make_chunk(rng *r, size_t pipeline, size_t size)
{
	chunk c = {.spec = specs[pipeline]};
	c.raw = guard_new(size, (int)rng_below(r, 2));
	fill(r, c.raw.data, size);
	guard to = guard_new(lade_spec_bound(c.spec, size), 1);
	lade_error err = {0};
	size_t got = 0;
	lade_status status =
		lade_encode(engine, c.spec, lade_host_cspan(c.raw.data, size),
		            lade_host_span(to.data, to.size), &got, &err);
	if (status != LADE_OK)
		fail_msg("%s, %zu bytes: %s", lade_spec_text(c.spec), size, err.message);
	assert_true(got <= to.size);
	c.encoded = guard_copy(to.data, got, (int)rng_below(r, 2));
	guard_free(&to);
	return c;
}

static void free_chunk(chunk *c)
{
	guard_free(&c->raw);
	guard_free(&c->encoded);
}

#define ITEMS 40

static void round_trips(void **state)
{
	(void)state;
	rng r = {0x5eed1001};
	printf("seed 0x%llx\n", (unsigned long long)r.s);
	for (int round = 0; round < 60; round++) {
		chunk chunks[ITEMS];
		guard to[ITEMS];
		lade_segment segments[ITEMS];
		lade_item items[ITEMS] = {0};
		lade_result results[ITEMS];
		for (size_t i = 0; i < ITEMS; i++) {
			chunks[i] = make_chunk(&r, rng_below(&r, PIPELINES), random_size(&r));
			to[i] = guard_new(
				chunks[i].raw.size + rng_below(&r, 2) * rng_below(&r, 100), 1);
			segments[i] = (lade_segment){.data = chunks[i].encoded.data,
			                             .size = chunks[i].encoded.size};
			items[i] = (lade_item){.spec = chunks[i].spec,
			                       .src = &segments[i],
			                       .src_count = 1,
			                       .dst = lade_host_span(to[i].data, to[i].size)};
		}
		lade_error err = {0};
		if (lade_decode_into(engine, NULL, items, ITEMS, results, NULL, &err) != LADE_OK)
			fail_msg("round %d: %s", round, err.message);
		for (size_t i = 0; i < ITEMS; i++) {
			assert_int_equal(results[i].size, chunks[i].raw.size);
			if (memcmp(to[i].data, chunks[i].raw.data, chunks[i].raw.size) != 0)
				fail_msg("round %d, %s of %zu bytes differs", round,
				         lade_spec_text(chunks[i].spec), chunks[i].raw.size);
			guard_free(&to[i]);
			free_chunk(&chunks[i]);
		}
	}
}

/* Several segments in one destination, of known and unknown sizes, with and without a range. */
static void segments_and_ranges(void **state)
{
	(void)state;
	rng r = {0x5eed1002};
	printf("seed 0x%llx\n", (unsigned long long)r.s);
	for (int round = 0; round < 3000; round++) {
		size_t pipeline = rng_below(&r, PIPELINES), count = 1 + rng_below(&r, 4), total = 0;
		chunk chunks[4];
		lade_segment segments[4] = {0};
		uint8_t *whole = malloc(4 * 300000 + 1);
		for (size_t i = 0; i < count; i++) {
			chunks[i] = make_chunk(&r, pipeline,
			                       random_size(&r) / (1 + rng_below(&r, 20)) / 8 * 8);
			memcpy(whole + total, chunks[i].raw.data, chunks[i].raw.size);
			total += chunks[i].raw.size;
			segments[i] = (lade_segment){
				.data = chunks[i].encoded.data,
				.size = chunks[i].encoded.size,
				.decoded_size = rng_below(&r, 2) ? chunks[i].raw.size : 0};
		}
		lade_item item = {.spec = specs[pipeline], .src = segments, .src_count = count};
		item.range_off = rng_below(&r, 3) ? rng_below(&r, total + 1) : 0;
		item.range_size = rng_below(&r, 3) ? rng_below(&r, total - item.range_off + 1) : 0;
		size_t want =
			item.range_size ? (size_t)item.range_size : total - (size_t)item.range_off;
		guard to = guard_new(want, 1);
		item.dst = lade_host_span(to.data, want);
		lade_result result;
		lade_error err = {0};
		if (lade_decode_into(engine, NULL, &item, 1, &result, NULL, &err) != LADE_OK)
			fail_msg("round %d, %s, [%llu, +%llu) of %zu: %s", round,
			         pipelines[pipeline], (unsigned long long)item.range_off,
			         (unsigned long long)item.range_size, total, err.message);
		assert_int_equal(result.size, want);
		if (memcmp(to.data, whole + item.range_off, want) != 0)
			fail_msg("round %d, %s, [%llu, +%llu) of %zu differs", round,
			         pipelines[pipeline], (unsigned long long)item.range_off,
			         (unsigned long long)item.range_size, total);
		/* A range that passes the end, and a destination that is too small, are errors. */
		item.range_size = total - item.range_off + 1 + rng_below(&r, 100);
		guard more = guard_new((size_t)item.range_size, 1);
		item.dst = lade_host_span(more.data, more.size);
		assert_int_equal(lade_decode_into(engine, NULL, &item, 1, NULL, NULL, &err),
		                 LADE_E_RANGE);
		item.range_size = 0;
		if (want) {
			item.dst = lade_host_span(more.data, want - 1);
			lade_status status =
				lade_decode_into(engine, NULL, &item, 1, NULL, NULL, &err);
			if (status != LADE_E_NOSPACE)
				fail_msg("round %d, %s, %zu bytes into %zu: %s %s", round,
				         pipelines[pipeline], want, want - 1,
				         lade_status_name(status), err.message);
		}
		guard_free(&more);
		guard_free(&to);
		for (size_t i = 0; i < count; i++)
			free_chunk(&chunks[i]);
		free(whole);
	}
}

/* Rows: decoding leaves the gaps alone, encoding does not read them. */
static void rows(void **state)
{
	(void)state;
	rng r = {0x5eed1003};
	printf("seed 0x%llx\n", (unsigned long long)r.s);
	for (int round = 0; round < 2000; round++) {
		size_t pipeline = rng_below(&r, PIPELINES);
		size_t row = 8 * (1 + rng_below(&r, 64)), count = 1 + rng_below(&r, 200);
		size_t pitch = row + rng_below(&r, 2) * rng_below(&r, 300);
		size_t extent = (count - 1) * pitch + row;
		chunk c = make_chunk(&r, pipeline, row * count);
		guard to = guard_new(extent, 1);
		memset(to.data, 0x5A, extent);
		lade_segment segment = {.data = c.encoded.data, .size = c.encoded.size};
		size_t shape[2] = {count, row};
		ptrdiff_t strides[2] = {(ptrdiff_t)pitch, 1};
		lade_layout layout = {.struct_size = sizeof layout, .elem_size = 1, .ndim = 2,
		                      .shape = shape, .strides = strides};
		lade_item item = {.spec = c.spec, .src = &segment, .src_count = 1,
		                  .layout = &layout, .dst = lade_host_span(to.data, extent)};
		lade_error err = {0};
		lade_result result;
		if (lade_decode_into(engine, NULL, &item, 1, &result, NULL, &err) != LADE_OK)
			fail_msg("round %d, %s: %s", round, pipelines[pipeline], err.message);
		assert_int_equal(result.size, row * count);
		for (size_t i = 0; i < extent; i++) {
			size_t at = i / pitch * row + i % pitch;
			uint8_t want = i % pitch >= row ? 0x5A : c.raw.data[at];
			if (to.data[i] != want)
				fail_msg("round %d, %s: byte %zu is %02x, want %02x", round,
				         pipelines[pipeline], i, to.data[i], want);
		}
		/* And back: the same rows give the same bytes as the contiguous chunk. */
		for (size_t i = 0; i < count; i++)
			memcpy(to.data + i * pitch, c.raw.data + i * row, row);
		guard again = guard_new(lade_spec_bound(c.spec, row * count), 1);
		guard back = guard_new(row * count, 1);
		lade_segment source = {.data = to.data, .size = extent};
		lade_item encode = {.spec = c.spec,
		                    .src = &source,
		                    .src_count = 1,
		                    .layout = &layout,
		                    .dst = lade_host_span(again.data, again.size)};
		assert_int_equal(lade_encode_into(engine, NULL, &encode, 1, &result, NULL, &err),
		                 LADE_OK);
		size_t got;
		assert_int_equal(lade_decode(engine, c.spec,
		                             lade_host_cspan(again.data, result.size),
		                             lade_host_span(back.data, back.size), &got, &err),
		                 LADE_OK);
		assert_int_equal(got, row * count);
		assert_memory_equal(back.data, c.raw.data, got);
		guard_free(&back);
		guard_free(&again);
		guard_free(&to);
		free_chunk(&c);
	}
}

/* Encoding several segments is encoding them joined. */
static void encode_joins(void **state)
{
	(void)state;
	rng r = {0x5eed1004};
	printf("seed 0x%llx\n", (unsigned long long)r.s);
	for (int round = 0; round < 500; round++) {
		size_t pipeline = rng_below(&r, PIPELINES), size = random_size(&r);
		guard raw = guard_new(size, 1),
		      to = guard_new(lade_spec_bound(specs[pipeline], size), 1);
		guard back = guard_new(size, 1);
		fill(&r, raw.data, size);
		size_t a = rng_below(&r, size + 1), b = a + rng_below(&r, size - a + 1);
		lade_segment segments[3] = {{.data = raw.data, .size = a},
		                            {.data = raw.data + a, .size = b - a},
		                            {.data = raw.data + b, .size = size - b}};
		lade_item item = {
			.src = segments, .src_count = 3, .dst = lade_host_span(to.data, to.size)};
		lade_result result;
		lade_error err = {0};
		if (lade_encode_into(engine, specs[pipeline], &item, 1, &result, NULL, &err) !=
		    LADE_OK)
			fail_msg("%s: %s", pipelines[pipeline], err.message);
		size_t got;
		assert_int_equal(lade_decode(engine, specs[pipeline],
		                             lade_host_cspan(to.data, result.size),
		                             lade_host_span(back.data, size), &got, &err),
		                 LADE_OK);
		assert_int_equal(got, size);
		if (size)
			assert_memory_equal(back.data, raw.data, size);
		guard_free(&raw);
		guard_free(&to);
		guard_free(&back);
	}
}

/* Damaged chunks: an error or the wrong bytes, but nothing outside and nothing else harmed. */
static void damaged(void **state)
{
	(void)state;
	rng r = {0x5eed1005};
	printf("seed 0x%llx\n", (unsigned long long)r.s);
	size_t failed = 0, passed = 0;
	for (int round = 0; round < 20000; round++) {
		static chunk c[PIPELINES];
		size_t pipeline = rng_below(&r, PIPELINES);
		if (!c[pipeline].raw.map)
			c[pipeline] = make_chunk(&r, pipeline, 2000);
		const chunk *good = &c[pipeline];
		size_t size = good->encoded.size;
		uint8_t *copy = malloc(size);
		memcpy(copy, good->encoded.data, size);
		for (size_t n = 1 + rng_below(&r, 4); n; n--)
			copy[rng_below(&r, size)] ^= (uint8_t)(1u << rng_below(&r, 8));
		if (rng_below(&r, 4) == 0)
			size = rng_below(&r, size);
		guard bad = guard_copy(copy, size, 1);
		guard to[2] = {guard_new(2000, 1), guard_new(2000, 0)};
		lade_segment segments[2] = {
			{.data = bad.data, .size = size},
			{.data = good->encoded.data, .size = good->encoded.size}};
		lade_item items[2] = {
			{.src = &segments[0],
		         .src_count = 1,
		         .dst = lade_host_span(to[0].data, 2000)},
			{.src = &segments[1],
		         .src_count = 1,
		         .dst = lade_host_span(to[1].data, 2000)},
		};
		lade_result results[2];
		lade_error errors[2], err = {0};
		lade_batch_options options = {.struct_size = sizeof options, .item_errors = errors};
		lade_status status =
			lade_decode_into(engine, good->spec, items, 2, results, &options, &err);
		assert_int_equal(status, results[0].status);
		assert_int_equal(results[1].status, LADE_OK);
		assert_memory_equal(to[1].data, good->raw.data, 2000);
		if (status != LADE_OK) {
			failed++;
			assert_int_equal(errors[0].status, status);
			assert_true(errors[0].message[0] &&
			            strncmp(err.message, "item 0: ", 8) == 0);
			if (status == LADE_E_INTERNAL || status == LADE_E_ARG)
				fail_msg("%s: damage is %s: %s", pipelines[pipeline],
				         lade_status_name(status), err.message);
		} else {
			passed++;
		}
		guard_free(&to[0]);
		guard_free(&to[1]);
		guard_free(&bad);
		free(copy);
	}
	printf("%zu refused, %zu decoded to something\n", failed, passed);
	assert_true(failed > 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips), cmocka_unit_test(segments_and_ranges),
		cmocka_unit_test(rows),        cmocka_unit_test(encode_joins),
		cmocka_unit_test(damaged),
	};
	return cmocka_run_group_tests_name("batch_random", tests, setup, teardown);
}
