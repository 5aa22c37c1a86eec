/*
 * test_golden_codec.c: stored bytes, of other programs where the format is theirs, decode to what
 * they were made of; their origin is in codec/ORIGIN.md.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"

typedef struct bytes {
	uint8_t *data;
	size_t size;
} bytes;

static bytes read_file(const char *name)
{
	char path[512];
	bytes b = {malloc(1 << 16), 0};
	snprintf(path, sizeof path, "%s/golden/codec/%s", LADE_TESTS_DIR, name);
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s: cannot be opened", path);
	b.size = fread(b.data, 1, 1 << 16, f);
	assert_true(b.size > 0 && b.size < 1 << 16);
	fclose(f);
	return b;
}

static const struct {
	const char *file, *spec;
	bool has_dict, tells_size;
} files[] = {
	{"known.zst", "zstd", false, true},       {"pipe.zst", "zstd", false, false},
	{"many.zst", "zstd", false, false},       {"dict.zst", "zstd", true, true},
	{"blocks.lz4", "lz4f", false, false},     {"linked.lz4", "lz4f", false, true},
	{"legacy.lz4", "lz4f", false, false},     {"dict.lz4", "lz4f", true, false},
	{"plain.gz", "gzip", false, false},       {"named.gz", "gzip", false, false},
	{"many.gz", "gzip", false, false},        {"pigz.zz", "zlib", false, false},
	{"raw.deflate", "deflate", false, false}, {"dict.deflate", "deflate", true, false},
	{"dict.zz", "zlib", true, false},         {"raw.snappy", "snappy", false, true},
	{"fast.lz4block", "lz4", false, false},   {"high.lz4block", "lz4", false, false},
	{"dict.lz4block", "lz4", true, false},    {"bytes.ans", "ans", false, true},
	{"halves.ans", "ans", false, true},       {"words.ans", "ans", false, true},
	{"doubles.ans", "ans", false, true},      {"bfloats.ans", "ans", false, true},
};

static void test_files_of_other_programs(void **state)
{
	(void)state;
	bytes data = read_file("data"), dict_bytes = read_file("dict");
	lade_dict *dict = NULL;
	lade_error err = {0};
	assert_status(lade_dict_new(dict_bytes.data, dict_bytes.size, &dict, &err), LADE_OK, err);
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		bytes packed = read_file(files[i].file);
		codec c = codec_open(files[i].spec);
		c.dec.dict = files[i].has_dict ? dict : NULL;
		guard in = guard_copy(packed.data, packed.size, 1);
		for (size_t more = 0; more < 200; more += 111) {
			guard out = guard_new(data.size + more, 1);
			size_t got = 0;
			assert_status(
				codec_decode(&c, in.data, in.size, out.data, out.size, &got, &err),
				LADE_OK, err);
			assert_int_equal(got, data.size);
			assert_memory_equal(out.data, data.data, got);
			guard_free(&out);
		}
		uint64_t told = 0;
		lade_status status =
			c.stage.algorithm->decoded_size(&c.stage, in.data, in.size, &told, &err);
		assert_status(status, files[i].tells_size ? LADE_OK : LADE_E_UNKNOWN_SIZE, err);
		if (files[i].tells_size)
			assert_int_equal(told, data.size);
		guard_free(&in);
		codec_close(&c);
		free(packed.data);
	}
	lade_dict_free(dict);
	free(data.data);
	free(dict_bytes.data);
}

/* A size ledger: what the default levels make of the data may grow by 1% and 8 bytes,
 * for another version of a library, and no more. */
static void test_size_ledger(void **state)
{
	(void)state;
	static const struct {
		const char *spec;
		size_t most;
	} ledger[] = {{"lz4", 3979},        {"lz4(9)", 3267},  {"lz4f", 4002},
	              {"snappy", 3632},     {"zstd(3)", 2631}, {"zstd(19)", 2513},
	              {"deflate(6)", 2674}, {"zlib(6)", 2680}, {"gzip(12)", 2637}};
	bytes data = read_file("data");
	uint8_t *packed = malloc(1 << 16);
	for (size_t i = 0; i < sizeof ledger / sizeof ledger[0]; i++) {
		codec c = codec_open(ledger[i].spec);
		size_t got = 0;
		lade_error err = {0};
		assert_status(codec_encode(&c, data.data, data.size, packed, 1 << 16, &got, &err),
		              LADE_OK, err);
		if (got > ledger[i].most)
			fail_msg("%s: %zu bytes, at most %zu are expected", ledger[i].spec, got,
			         ledger[i].most);
		codec_close(&c);
	}
	free(packed);
	free(data.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_of_other_programs),
		cmocka_unit_test(test_size_ledger),
	};
	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
