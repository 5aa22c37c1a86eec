/*
 * test_frame_rules.c: which checksums are verified, what options are refused, and the example of
 * docs/format/frame.md, byte by byte.
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
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
	return lade_engine_new(&options, &engine, NULL) != LADE_OK;
}

static int teardown(void **state)
{
	(void)state;
	lade_engine_free(engine);
	return 0;
}

/* The table of section 7, and what reading a good and a damaged frame gives. */
static void test_verify(void **state)
{
	(void)state;
	const char data[] = "sixteen bytes + a few more of them";
	for (int w = 0; w < 6; w++) {
		bool stores = w < 3;
		lade_frame_options options = kit_options(NULL, 16);
		options.no_checksums = !stores;
		options.checksum = (lade_checksum[]){0, LADE_CRC32C, LADE_XXH64}[w % 3];
		kit_bytes good = kit_frame(engine, &options, data, sizeof data);
		kit_bytes bad = kit_frame(engine, &options, data, sizeof data);
		bad.data[64 + 32 + 3] ^= 1; /* in the payload of chunk 0 */
		for (int v = 0; v < 3; v++)
			for (int reader = 0; reader < KIT_READERS; reader++) {
				lade_status refused = v == LADE_VERIFY_REQUIRED && !stores
				                              ? LADE_E_NO_CHECKSUM
				                              : LADE_OK;
				lade_status found = refused != LADE_OK ? refused
				                    : stores && v != LADE_VERIFY_NEVER
				                            ? LADE_E_CHECKSUM
				                            : LADE_OK;
				lade_frame_read_options read = kit_read_options((lade_verify)v);
				kit_bytes out = {0};
				assert_int_equal(kit_decode(engine, (enum kit_reader)reader,
				                            good.data, good.size, read,
				                            &out, NULL, NULL),
				                 refused);
				if (refused == LADE_OK)
					assert_memory_equal(out.data, data, sizeof data);
				free(out.data);
				out = (kit_bytes){0};
				assert_int_equal(kit_decode(engine, (enum kit_reader)reader,
				                            bad.data, bad.size, read, &out,
				                            NULL, NULL),
				                 found);
				free(out.data);
			}
		lade_frame *f;
		assert_int_equal(
			lade_frame_open_memory(engine, good.data, good.size, NULL, &f, NULL),
			LADE_OK);
		lade_checksum kind = !stores  ? LADE_CHECKSUM_NONE
		                     : w == 1 ? LADE_CRC32C
		                              : LADE_XXH64;
		assert_int_equal(lade_frame_get_info(f)->checksum, kind);
		lade_frame_chunk chunk;
		assert_int_equal(lade_frame_get_chunk(f, 0, &chunk, NULL), LADE_OK);
		assert_true(chunk.checksum == (stores ? lade_checksum_of(kind, data, 16) : 0));
		lade_frame_close(f);
		free(good.data);
		free(bad.data);
	}
}

static lade_status new_status(const lade_frame_options *options)
{
	kit_bytes out = {0};
	lade_frame_writer *w;
	lade_status status = lade_frame_writer_new(engine, kit_output(&out), options, &w, NULL);
	if (status == LADE_OK)
		lade_frame_writer_free(w);
	else
		assert_null(w);
	free(out.data);
	return status;
}

static void test_options(void **state)
{
	(void)state;
	uint64_t shape[33] = {2, 3};
	lade_frame_options good = kit_options(NULL, 0), o;
	assert_int_equal(new_status(&good), LADE_OK);
	assert_int_equal(new_status(NULL), LADE_OK);
#define REFUSED(...)                                             \
	do {                                                     \
		o = good;                                        \
		__VA_ARGS__;                                     \
		assert_int_equal(new_status(&o), LADE_E_ARG);    \
		assert_true(lade_frame_bound(&o, 1) == SIZE_MAX); \
	} while (0)
	REFUSED(o.struct_size = 7);
	REFUSED(o.chunk_size = 15);
	REFUSED(o.chunk_size = (size_t)1 << 31);
	REFUSED(o.checksum = LADE_CRC32);
	REFUSED(o.checksum = (lade_checksum)99);
	REFUSED(o.dtype = 99);
	REFUSED(o.dtype = LADE_U1 | LADE_DTYPE_BIG);
	REFUSED(o.dtype = LADE_U4, o.chunk_size = 18);
	REFUSED(o.ndim = 2, o.shape = shape);
	REFUSED(o.dtype = LADE_U4, o.ndim = 2);
	REFUSED(o.dtype = LADE_U4, o.ndim = 33, o.shape = shape);
	REFUSED(o.dtype = LADE_U4, o.ndim = 2, o.shape = shape, o.has_size = true, o.size = 23);
	REFUSED(o.fortran_order = true);
	REFUSED(o.has_size = true, o.size = UINT64_MAX);
	uint64_t vast[] = {1ull << 32, 1ull << 32};
	REFUSED(o.dtype = LADE_U4, o.ndim = 2, o.shape = vast);
#undef REFUSED
	/* No dimension at all with a shape: a scalar; and a dimension of 0 makes up for the
	 * others. */
	lade_frame_options scalar = good;
	scalar.dtype = LADE_F8;
	scalar.shape = shape;
	kit_bytes f = kit_frame(engine, &scalar, "8 bytes!", 8);
	lade_frame *frame;
	assert_int_equal(lade_frame_open_memory(engine, f.data, f.size, NULL, &frame, NULL),
	                 LADE_OK);
	assert_true(lade_frame_get_info(frame)->has_shape);
	assert_int_equal(lade_frame_get_info(frame)->ndim, 0);
	lade_frame_close(frame);
	free(f.data);
	uint64_t none[] = {1ull << 63, 1ull << 63, 0};
	scalar.ndim = 3;
	scalar.shape = none;
	assert_int_equal(new_status(&scalar), LADE_OK);

	lade_frame_read_options read = kit_read_options((lade_verify)3);
	assert_int_equal(lade_frame_open_memory(engine, "", 0, &read, &frame, NULL), LADE_E_ARG);
	read = kit_read_options(LADE_VERIFY_NEVER);
	read.flags = 8;
	assert_int_equal(lade_frame_open_memory(engine, "", 0, &read, &frame, NULL), LADE_E_ARG);
	assert_int_equal(lade_frame_open_memory(engine, NULL, 5, NULL, &frame, NULL), LADE_E_ARG);
	assert_int_equal(lade_frame_open(engine, (lade_source){0}, NULL, &frame, NULL), LADE_E_ARG);
	assert_int_equal(lade_frame_open_memory(engine, NULL, 0, NULL, &frame, NULL),
	                 LADE_E_TRUNCATED);
}

static void test_chunk_limit(void **state)
{
	(void)state;
	lade_frame_options options = kit_options(NULL, 1000);
	kit_bytes f = kit_frame(engine, &options, "abc", 3);
	lade_frame_read_options read = kit_read_options(LADE_VERIFY_NEVER);
	for (size_t limit = 999; limit <= 1000; limit++)
		for (int reader = 0; reader < KIT_READERS; reader++) {
			kit_bytes out = {0};
			lade_error err = {0};
			read.max_chunk_size = limit;
			lade_status status = kit_decode(engine, (enum kit_reader)reader, f.data,
			                                f.size, read, &out, NULL, &err);
			assert_int_equal(status, limit < 1000 ? LADE_E_LIMIT : LADE_OK);
			if (limit < 1000)
				assert_string_equal(err.message,
				                    "chunk size 1000 is above the limit of 999");
			free(out.data);
		}
	free(f.data);
}

/* A match of offset 0, which liblz4 takes (docs/verdicts.md). */
static void test_strict(void **state)
{
	(void)state;
	lade_spec *spec;
	uint8_t data[100];
	memset(data, 'a', sizeof data);
	memcpy(data + 90, "0123456789", 10);
	assert_int_equal(lade_spec_parse(NULL, "lz4", &spec, NULL), LADE_OK);
	lade_frame_options options = kit_options(spec, 1000);
	kit_bytes f = kit_frame(engine, &options, data, sizeof data);
	size_t at = 0;
	while (at + 3 < f.size && memcmp(f.data + at, "\x1F" "a\1", 4))
		at++;
	assert_true(at + 3 < f.size);
	f.data[at + 2] = 0;
	for (uint32_t flags = 0; flags <= LADE_FRAME_STRICT; flags += LADE_FRAME_STRICT)
		for (int reader = 0; reader < KIT_READERS; reader++) {
			kit_bytes out = {0};
			lade_error err = {0};
			lade_frame_read_options read = kit_read_options(LADE_VERIFY_NEVER);
			read.flags = flags;
			lade_status status = kit_decode(engine, (enum kit_reader)reader, f.data,
			                                f.size, read, &out, NULL, &err);
			assert_int_equal(status, flags ? LADE_E_CORRUPT : LADE_OK);
			free(out.data);
		}
	free(f.data);
	lade_spec_unref(spec);
}

/* The hexadecimal lines of section 8: "    0040  43 48 ..  43 ..  what it is". */
static size_t read_example(uint8_t *bytes, size_t cap)
{
	char line[256];
	size_t size = 0;
	FILE *doc = fopen(LADE_TESTS_DIR "/../docs/format/frame.md", "r");
	assert_non_null(doc);
	bool example = false;
	while (fgets(line, sizeof line, doc)) {
		example |= strncmp(line, "## 8. Example", 13) == 0;
		unsigned long off;
		int at = 0;
		if (!example || sscanf(line, "    %4lx %n", &off, &at) != 1 ||
		    strncmp(line, "    ", 4) || !at)
			continue;
		assert_int_equal(off, size);
		for (int i = 0; i < 16; i++) {
			unsigned value;
			int n = 0;
			assert_int_equal(sscanf(line + at, "%2x%n", &value, &n), 1);
			at += n;
			assert_true(size < cap);
			bytes[size++] = (uint8_t)value;
		}
	}
	fclose(doc);
	return size;
}

static void test_example(void **state)
{
	(void)state;
	static const uint32_t numbers[] = {5, 1, 2, 3, 7, 7, 7, 7, 8, 9};
	uint64_t shape[] = {10};
	lade_frame_options options = kit_options(NULL, 16);
	options.dtype = LADE_U4;
	options.ndim = 1;
	options.shape = shape;
	kit_bytes f = kit_frame(engine, &options, numbers, sizeof numbers);
	uint8_t example[1024];
	size_t size = read_example(example, sizeof example);
	assert_int_equal(size, f.size);
	assert_memory_equal(example, f.data, size);
	for (int reader = 0; reader < KIT_READERS; reader++) {
		kit_bytes out = {0};
		assert_int_equal(kit_decode(engine, (enum kit_reader)reader, example, size,
		                            kit_read_options(LADE_VERIFY_REQUIRED), &out, NULL,
		                            NULL),
		                 LADE_OK);
		assert_int_equal(out.size, sizeof numbers);
		assert_memory_equal(out.data, numbers, sizeof numbers);
		free(out.data);
	}
	free(f.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verify),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_chunk_limit),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_example),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
