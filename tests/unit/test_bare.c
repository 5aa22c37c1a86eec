/*
 * test_bare.c: the bare kinds (docs/format/bare.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static lade_engine *engine;

static int setup(void **state)
{
	(void)state;
	lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	return lade_engine_new(&options, &engine, NULL) != LADE_OK;
}

static int teardown(void **state)
{
	(void)state;
	lade_engine_free(engine);
	return 0;
}

static lade_bare_options with(const lade_spec *spec, int kind)
{
	return (lade_bare_options){.struct_size = sizeof(lade_bare_options), .spec = spec,
	                           .kind = (lade_bare)kind};
}

/* The document's example, and lz4's smaller field. */
static void test_bytes(void **state)
{
	(void)state;
	static const uint8_t want[3][19] = {
		{'a', 'b', 'c'},
		{3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'},
		{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'},
	};
	static const size_t sizes[] = {3, 11, 19};
	lade_spec *copy = kit_spec("copy"), *lz4 = kit_spec("lz4");
	uint8_t out[64];
	size_t size;
	lade_cspan abc = lade_host_cspan("abc", 3);
	lade_span to = lade_host_span(out, sizeof out);
	for (int i = 0; i < 3; i++) {
		lade_bare_options options = with(copy, i + 1);
		assert_int_equal(lade_bare_encode(engine, abc, to, &size, &options, NULL), LADE_OK);
		assert_int_equal(size, sizes[i]);
		assert_memory_equal(out, want[i], size);
	}
	lade_bare_options options = with(lz4, LADE_BARE_WITH_SIZE);
	assert_int_equal(lade_bare_encode(engine, abc, to, &size, &options, NULL), LADE_OK);
	assert_int_equal(size, 4 + 4);
	assert_memory_equal(out, "\3\0\0\0\x30" "abc", 8);
	options.kind = LADE_BARE_WITH_SIZE_16;
	assert_int_equal(lade_bare_encode(engine, abc, to, &size, &options, NULL), LADE_OK);
	assert_int_equal(size, 16 + 4);
	assert_memory_equal(out, "\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x30" "abc", 20);
	lade_spec_unref(copy);
	lade_spec_unref(lz4);
}

static void test_round_trip(void **state)
{
	(void)state;
	static const char *const specs[] = {"copy",           "lz4",           "zstd",
	                                    "shuffle(4)|lz4", "snappy|crc32c", "gzip"};
	static const size_t sizes[] = {0, 1, 100, 5000};
	rng r = {3};
	uint8_t data[5000];
	kit_fill(data, sizeof data, 2, &r);
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
		for (size_t j = 0; j < 4; j++)
			for (int kind = 1; kind <= 3; kind++) {
				lade_spec *spec = kit_spec(specs[i]);
				size_t n = sizes[j], cap = lade_spec_bound(spec, n) + 16, size,
				       got = 99;
				guard src = guard_copy(data, n, 1), enc = guard_new(cap, 1),
				      dst = guard_new(n, 1);
				lade_error err = {0};
				lade_bare_options options = with(spec, kind);
				assert_int_equal(lade_bare_encode(engine,
				                                  lade_host_cspan(src.data, n),
				                                  lade_host_span(enc.data, cap),
				                                  &size, &options, &err),
				                 LADE_OK);
				guard exact = guard_copy(enc.data, size, 1);
				lade_cspan in = lade_host_cspan(exact.data, size);
				size_t claimed = 1;
				lade_status sized = lade_bare_decoded_size(engine, in, &claimed,
				                                           &options, &err);
				if (kind != LADE_BARE_RAW || sized == LADE_OK)
					assert_true(sized == LADE_OK && claimed == n);
				else
					assert_int_equal(sized, LADE_E_UNKNOWN_SIZE);
				lade_status status =
					lade_bare_decode(engine, in, lade_host_span(dst.data, n),
				                         &got, &options, &err);
				if (status != LADE_OK || got != n ||
				    (n && memcmp(dst.data, data, n)))
					fail_msg("%s kind %d size %zu: %s", specs[i], kind, n,
					         err.message);
				if (n) {
					status = lade_bare_decode(engine, in,
					                          lade_host_span(dst.data, n - 1),
					                          &got, &options, &err);
					assert_int_equal(status, LADE_E_NOSPACE);
					assert_int_equal(got, 0);
				}
				guard_free(&src);
				guard_free(&enc);
				guard_free(&dst);
				guard_free(&exact);
				lade_spec_unref(spec);
			}
}

static lade_status decode(const char *text, lade_bare kind, const void *bytes, size_t size,
                          lade_error *err)
{
	lade_spec *spec = kit_spec(text);
	uint8_t room[64];
	size_t got;
	guard exact = guard_copy(bytes, size, 1);
	lade_bare_options options = with(spec, (int)kind);
	lade_status status = lade_bare_decode(engine, lade_host_cspan(exact.data, size),
	                                      lade_host_span(room, sizeof room), &got, &options,
	                                      err);
	guard_free(&exact);
	lade_spec_unref(spec);
	return status;
}

static void test_refused(void **state)
{
	(void)state;
	lade_error err;
	for (size_t n = 0; n < 8; n++) {
		assert_int_equal(decode("copy", LADE_BARE_WITH_SIZE, "\0\0\0\0\0\0\0", n, &err),
		                 LADE_E_TRUNCATED);
		assert_int_equal(err.offset, n);
	}
	assert_int_equal(
		decode("copy", LADE_BARE_WITH_SIZE_16, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15, &err),
		LADE_E_TRUNCATED);
	assert_int_equal(decode("copy", LADE_BARE_WITH_SIZE_16, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1x",
	                        17, &err),
	                 LADE_E_CORRUPT);
	assert_int_equal(err.offset, 15);
	assert_int_equal(decode("lz4", LADE_BARE_WITH_SIZE_16,
	                        "\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\x10x", 18, &err),
	                 LADE_E_CORRUPT);
	assert_int_equal(err.offset, 4);
	/* A claim above the room, one above the data, one below it. */
	assert_int_equal(decode("copy", LADE_BARE_WITH_SIZE, "\101\0\0\0\0\0\0\0x", 9, &err),
	                 LADE_E_NOSPACE);
	assert_int_equal(decode("copy", LADE_BARE_WITH_SIZE, "\0\0\0\0\0\0\0\1x", 9, &err),
	                 LADE_E_CORRUPT);
	assert_int_equal(decode("copy", LADE_BARE_WITH_SIZE, "\2\0\0\0\0\0\0\0x", 9, &err),
	                 LADE_E_CORRUPT);
	assert_int_equal(decode("copy", LADE_BARE_WITH_SIZE, "\1\0\0\0\0\0\0\0xy", 10, &err),
	                 LADE_E_CORRUPT);
	assert_int_equal(decode("copy", (lade_bare)4, "x", 1, &err), LADE_E_ARG);
	/* An error behind the field is counted from the first byte. */
	assert_int_equal(decode("zstd", LADE_BARE_WITH_SIZE, "\1\0\0\0\0\0\0\0nonsense!", 17, &err),
	                 LADE_E_CORRUPT);
	assert_true(err.offset >= 8 && err.offset <= 17);
	lade_spec *spec = kit_spec("copy");
	uint8_t room[8];
	lade_cspan x = lade_host_cspan("x", 1);
	lade_bare_options options = with(spec, LADE_BARE_WITH_SIZE);
	for (size_t room_size = 7; room_size <= 8; room_size++) {
		size_t size = 1;
		assert_int_equal(lade_bare_encode(engine, x, lade_host_span(room, room_size), &size,
		                                  &options, NULL),
		                 LADE_E_NOSPACE);
		assert_int_equal(size, 0);
	}
	assert_int_equal(lade_bare_encode(engine, x, lade_host_span(room, 8), NULL, &options, NULL),
	                 LADE_E_ARG);
	size_t size = 1;
	assert_int_equal(lade_bare_encode(engine, x, lade_host_span(room, 8), &size, NULL, NULL),
	                 LADE_E_ARG);
	assert_int_equal(size, 0);
	/* The call's options are those of a batch. */
	lade_batch_options batch = {.struct_size = sizeof batch, .flags = 64};
	options.batch = &batch;
	assert_int_equal(lade_bare_encode(engine, x, lade_host_span(room, 8), &size, &options,
	                                  &err),
	                 LADE_E_ARG);
	assert_non_null(strstr(err.message, "flags 0x40"));
	lade_spec_unref(spec);
}

/* Raw bytes that claim more than they can give are corrupt, whatever room there is. */
static void test_claims(void **state)
{
	(void)state;
	static const uint8_t bad[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0,
	                              0,    0,    0,    0,    0x20, 1, 0, 0};
	static const char text[] =
		"the data states 2305843009213693952 bytes, and 16 bytes of zstd";
	lade_spec *zstd = kit_spec("zstd");
	uint8_t good[64], room[3][100] = {{0}};
	size_t size;
	assert_int_equal(lade_encode(engine, zstd, lade_host_cspan(room[0], 100),
	                             lade_host_span(good, sizeof good), &size, NULL),
	                 LADE_OK);
	for (int turn = 0; turn < 4; turn++) {
		lade_error errors[3], err;
		lade_result results[3];
		lade_batch_options batch = {.struct_size = sizeof batch,
		                            .item_errors = turn & 1 ? errors : NULL};
		lade_bare_options options = {.struct_size = sizeof options, .spec = zstd,
		                             .batch = &batch};
		lade_segment segments[3];
		lade_item items[3];
		for (size_t i = 0; i < 3; i++) {
			segments[i] = (lade_segment){.data = i ? (const void *)bad : good,
			                             .size = i ? sizeof bad : size,
			                             /* The caller's word changes nothing. */
			                             .decoded_size = i == 2 ? 100 : 0};
			items[i] = (lade_item){.src = &segments[i], .src_count = 1,
			                       .dst = lade_host_span(room[i], 100)};
		}
		assert_int_equal(lade_bare_decode_into(engine, items, 3,
		                                       turn & 2 ? results : NULL, &options, &err),
		                 LADE_E_CORRUPT);
		assert_memory_equal(err.message, "item 1: ", 8);
		assert_memory_equal(err.message + 8, text, strlen(text));
		for (size_t i = 1; i < 3 && turn & 1; i++)
			assert_memory_equal(errors[i].message, text, strlen(text));
		for (size_t i = 0; i < 3 && turn & 2; i++)
			assert_int_equal(results[i].status, i ? LADE_E_CORRUPT : LADE_OK);
		/* What may be true wants room. */
		items[0].dst.size = 99;
		assert_int_equal(lade_bare_decode_into(engine, items, 3, NULL, &options,
		                                       &err),
		                 LADE_E_NOSPACE);
		assert_memory_equal(err.message, "item 0: ", 8);
	}
	lade_spec_unref(zstd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_claims),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
