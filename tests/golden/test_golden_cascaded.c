/*
 * test_golden_cascaded.c: stored chunks of the cascaded codec, good and bad; their origin is in
 * cascaded/ORIGIN.md.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"
#include "cascaded_kit.h"

#define CAP 40000

static size_t read_file(const char *name, const char *suffix, uint8_t *to)
{
	char path[512];
	snprintf(path, sizeof path, "%s/golden/cascaded/%s%s", LADE_TESTS_DIR, name, suffix);
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s: cannot be opened", path);
	size_t size = fread(to, 1, CAP, f);
	fclose(f);
	return size;
}

static void good(void **state)
{
	(void)state;
	static const char *const names[] = {"u1-mixed",   "i2-mixed", "i4-sparse", "u8-mixed",
	                                    "i8-keys",    "u4-lines", "i8-whole",  "u8-tail",
	                                    "u1-nothing", "f4-signs", "f4-parts",  "i8-parts",
	                                    "i8-turned",  "u1-apart", "u1-words",  "u4-mask",
	                                    "f8-decimals"};
	static uint8_t in[CAP], want[CAP], out[CAP];
	codec c = codec_open("cascaded");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t size = read_file(names[i], "", in), raw = read_file(names[i], ".raw", want);
		lade_error err = {0};
		size_t got;
		assert_status(codec_decode(&c, in, size, out, raw, &got, &err), LADE_OK, err);
		assert_int_equal(got, raw);
		assert_memory_equal(out, want, raw);
		assert_int_equal(kit_decode(in, size, out, raw, &got), LADE_OK);
		assert_int_equal(got, raw);
		assert_memory_equal(out, want, raw);
	}
	codec_close(&c);
}

static void bad(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		lade_status status;
	} files[] = {
		{"bad-version", LADE_E_CORRUPT},
		{"bad-element", LADE_E_CORRUPT},
		{"bad-block", LADE_E_CORRUPT},
		{"bad-reserved", LADE_E_CORRUPT},
		{"bad-size", LADE_E_CORRUPT},
		{"bad-cut-header", LADE_E_TRUNCATED},
		{"bad-cut-directory", LADE_E_TRUNCATED},
		{"bad-cut", LADE_E_TRUNCATED},
		{"bad-longer", LADE_E_CORRUPT},
		{"bad-order", LADE_E_CORRUPT},
		{"bad-layers", LADE_E_CORRUPT},
		{"bad-inner-alone", LADE_E_CORRUPT},
		{"bad-width", LADE_E_CORRUPT},
		{"bad-count-width", LADE_E_CORRUPT},
		{"bad-runs", LADE_E_CORRUPT},
		{"bad-no-runs", LADE_E_CORRUPT},
		{"bad-outer-sum", LADE_E_CORRUPT},
		{"bad-parts", LADE_E_CORRUPT},
	};
	static uint8_t in[CAP], out[CAP];
	codec c = codec_open("cascaded");
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		size_t size = read_file(files[i].name, "", in), got;
		lade_error err = {0};
		assert_status(codec_decode(&c, in, size, out, CAP, &got, &err), files[i].status,
		              err);
		assert_int_equal(kit_decode(in, size, out, CAP, &got), files[i].status);
	}
	codec_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(good), cmocka_unit_test(bad)};
	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
