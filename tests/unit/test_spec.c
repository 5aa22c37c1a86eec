/*
 * test_spec.c: the text and the binary form of specs, their equality, and hostile forms of both.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "guard.h"

#include <lade/lade.h>

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static lade_spec *parse(const char *text)
{
	lade_spec *spec = NULL;
	lade_error err = {0};
	if (lade_spec_parse(NULL, text, &spec, &err) != LADE_OK)
		fail_msg("\"%s\": %s", text, err.message);
	return spec;
}

static void canonical_text(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"shuffle(4)|zstd(level=3)|crc32c", "shuffle(4)|zstd(level=3)|crc32c"},
		{" Shuffle ( size = 4 ) | ZSTD | CRC32C ( location = END ) ",
		 "shuffle(4)|zstd(level=3)|crc32c"},
		{"zstd(19)", "zstd(level=19)"},
		{"delta(<i4)|lz4", "delta(<i4)|lz4(level=1)"},
		{"delta(dtype=int32,astype=|i1)", "delta(<i4,astype=|i1)"},
		{"crc32(location=start)", "crc32(location=start)"},
		{"bitshuffle(4,order=msb,block=8192)|lz4(1)",
		 "bitshuffle(4,order=msb,block=8192)|lz4(level=1)"},
		{"bitshuffle(size=4,order=LSB,block=0)", "bitshuffle(4)"},
		{"copy", "copy"},
		{"copy()", "copy"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lade_spec *spec = parse(cases[i][0]);
		assert_string_equal(lade_spec_text(spec), cases[i][1]);
		lade_spec *again = parse(lade_spec_text(spec));
		assert_true(lade_spec_equal(spec, again));
		lade_spec_unref(again);
		lade_spec_unref(spec);
	}
}

static void the_documented_bytes(void **state)
{
	(void)state;
	static const uint8_t want[] = {0x01, 0x03, 0x20, 0x00, 0x01, 0x00, 0x08, 0x04,
	                               0x00, 0x01, 0x00, 0x06, 0x42, 0x00, 0x00};
	lade_spec *spec = parse("shuffle(4)|zstd(level=3)|crc32c");
	size_t size;
	const void *bytes = lade_spec_bytes(spec, &size);
	assert_int_equal(size, sizeof want);
	assert_memory_equal(bytes, want, sizeof want);
	lade_spec_unref(spec);
}

/* Values other than the default of every option of every algorithm. */
static lade_value some_value(rng *r, const lade_option *option)
{
	lade_value v = {.i = 0};
	switch (option->type) {
	case LADE_OPTION_INT:
		v.i = option->min +
		      (int64_t)rng_below(r, (uint64_t)option->max - (uint64_t)option->min + 1);
		break;
	case LADE_OPTION_FLOAT:
		v.f = ((double)rng_below(r, 2000001) - 1e6) / 7.0;
		break;
	case LADE_OPTION_BOOL:
		v.i = (int64_t)rng_below(r, 2);
		break;
	case LADE_OPTION_ENUM: {
		int64_t n = 0;
		while (option->names[n])
			n++;
		v.i = (int64_t)rng_below(r, (uint64_t)n);
		break;
	}
	case LADE_OPTION_DTYPE:
		v.i = 1 + (int64_t)rng_below(r, 14);
		break;
	}
	return v;
}

static void random_specs_round_trip(void **state)
{
	(void)state;
	rng r = {0x5eed0001};
	printf("seed 0x%llx\n", (unsigned long long)r.s);
	size_t algorithms = 0, made = 0;
	while (lade_engine_algorithm(NULL, algorithms))
		algorithms++;
	for (int round = 0; round < 20000; round++) {
		lade_stage stages[LADE_STAGES_MAX];
		size_t count = 1 + rng_below(&r, LADE_STAGES_MAX);
		for (size_t i = 0; i < count; i++) {
			stages[i].algorithm =
				lade_engine_algorithm(NULL, rng_below(&r, algorithms));
			for (size_t k = 0; k < stages[i].algorithm->option_count; k++) {
				const lade_option *option = &stages[i].algorithm->options[k];
				stages[i].option[k] = option->required || rng_below(&r, 2) ?
					some_value(&r, option) : option->fallback;
			}
		}
		lade_spec *spec, *text, *bytes;
		if (lade_spec_new(stages, count, &spec, NULL) != LADE_OK)
			continue; /* options that exclude each other */
		made++;
		lade_error err = {0};
		if (lade_spec_parse(NULL, lade_spec_text(spec), &text, &err) != LADE_OK)
			fail_msg("%s: %s", lade_spec_text(spec), err.message);
		size_t size;
		const void *data = lade_spec_bytes(spec, &size);
		if (lade_spec_from_bytes(NULL, data, size, &bytes, &err) != LADE_OK)
			fail_msg("%s: %s", lade_spec_text(spec), err.message);
		assert_true(lade_spec_equal(spec, text) && lade_spec_equal(spec, bytes));
		assert_string_equal(lade_spec_text(spec), lade_spec_text(bytes));
		for (size_t cut = 0; cut < size; cut++) {
			guard g = guard_copy(data, cut, 1);
			lade_spec *none = (lade_spec *)1;
			assert_int_not_equal(lade_spec_from_bytes(NULL, g.data, cut, &none, &err),
			                     LADE_OK);
			assert_null(none);
			guard_free(&g);
			if (round > 200)
				break;
		}
		lade_spec_unref(bytes);
		lade_spec_unref(text);
		lade_spec_unref(spec);
	}
	printf("%zu specs of %zu algorithms\n", made, algorithms);
	assert_true(made > 200);
}

/* Whatever bytes are accepted are the canonical ones of what they mean. */
static void mutated_bytes(void **state)
{
	(void)state;
	rng r = {0x5eed0002};
	printf("seed 0x%llx\n", (unsigned long long)r.s);
	lade_spec *spec = parse("delta(<i4)|shuffle(4)|zstd(level=-5,checksum=true)|crc32c|xxh64");
	size_t size;
	const uint8_t *data = lade_spec_bytes(spec, &size);
	size_t accepted = 0;
	for (int round = 0; round < 100000; round++) {
		uint8_t copy[128];
		memcpy(copy, data, size);
		size_t n = 1 + rng_below(&r, 3);
		for (size_t i = 0; i < n; i++)
			copy[rng_below(&r, size)] = (uint8_t)rng_next(&r);
		lade_spec *other = NULL;
		if (lade_spec_from_bytes(NULL, copy, size, &other, NULL) == LADE_OK) {
			size_t other_size;
			const void *canon = lade_spec_bytes(other, &other_size);
			assert_int_equal(other_size, size);
			assert_memory_equal(canon, copy, size);
			accepted++;
		}
		lade_spec_unref(other);
	}
	assert_true(accepted > 100);
	lade_spec_unref(spec);
}

static void bad_texts(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		lade_status status;
		uint64_t offset;
	} cases[] = {
		{"", LADE_E_SPEC, 0},
		{"zstd|", LADE_E_SPEC, 5},
		{"zstd||lz4", LADE_E_SPEC, 5},
		{"zsdt", LADE_E_NOT_FOUND, 0},
		{"lz4|nothing", LADE_E_NOT_FOUND, 4},
		{"zstd(level=3", LADE_E_SPEC, 12},
		{"zstd(levle=3)", LADE_E_NOT_FOUND, 5},
		{"zstd(level=3,level=4)", LADE_E_SPEC, 13},
		{"zstd(level=3,4)", LADE_E_SPEC, 13},
		{"zstd(level=x)", LADE_E_SPEC, 11},
		{"zstd(level=99)", LADE_E_SPEC, 11},
		{"zstd(level=99999999999999999999)", LADE_E_SPEC, 11},
		{"zstd(checksum=maybe)", LADE_E_SPEC, 14},
		{"shuffle", LADE_E_SPEC, 0},
		{"shuffle(0)", LADE_E_SPEC, 8},
		{"shuffle(4,)", LADE_E_SPEC, 10},
		{"shuffle(4, )", LADE_E_SPEC, 11},
		{"copy | byteswap(3)", LADE_E_SPEC, 7},
		{"copy|delta(b1)", LADE_E_DTYPE, 5},
		{"scaleoffset(i4,scale=1.5)", LADE_E_VALUE, 0},
		{"scaleoffset(f4,scale=1e400)", LADE_E_SPEC, 21},
		{"shuffle(4) zstd", LADE_E_SPEC, 11},
		{"copy(1)", LADE_E_SPEC, 5},
		{"bitshuffle(4,order=mid)", LADE_E_SPEC, 19},
		{"bitshuffle(4,block=8208)", LADE_E_SPEC, 0},
		{"delta(<q9)", LADE_E_SPEC, 6},
		{"crc32(location=middle)", LADE_E_SPEC, 15},
		{"ans(>f4)", LADE_E_DTYPE, 0},
		{"copy|bitcomp(>i4)", LADE_E_DTYPE, 5},
		{"cascaded(>u8)", LADE_E_DTYPE, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lade_spec *spec = (lade_spec *)1;
		lade_error err = {0};
		lade_status status = lade_spec_parse(NULL, cases[i].text, &spec, &err);
		if (status != cases[i].status || err.offset != cases[i].offset ||
		    err.message[0] == 0)
			fail_msg("\"%s\": %s at %llu: %s", cases[i].text, lade_status_name(status),
			         (unsigned long long)err.offset, err.message);
		assert_null(spec);
		assert_int_equal(err.status, status);
	}
	char deep[200] = "copy";
	for (int i = 0; i < 16; i++)
		strcat(deep, "|copy");
	lade_spec *spec;
	assert_int_equal(lade_spec_parse(NULL, deep, &spec, NULL), LADE_E_SPEC);
	char *long_text = malloc(10000);
	memset(long_text, ' ', 9999);
	long_text[9999] = 0;
	assert_int_equal(lade_spec_parse(NULL, long_text, &spec, NULL), LADE_E_SPEC);
	free(long_text);
}

/* Forms that differ from a good one in one place; 'offset' is the field that is bad. */
static void bad_bytes_name_their_place(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t size;
		lade_status status;
		uint64_t offset;
	} cases[] = {
		{"\2\1\1\0\0", 5, LADE_E_VERSION, 0},
		{"\1\0", 2, LADE_E_CORRUPT, 1},
		{"\1\1\377\377\0", 5, LADE_E_NOT_FOUND, 2},
		{"\1\2\1\0\0\53\0\1\0\6", 10, LADE_E_SPEC, 5},   /* byteswap(3) */
		{"\1\1\42\0\1\0\1", 7, LADE_E_DTYPE, 2},          /* delta(b1) */
		{"\1\1\42\0\1\0\34", 7, LADE_E_SPEC, 5},          /* no such type */
		{"\1\1\45\0\2\0\7\1\0\0\0\0\0\0\370\77", 16, LADE_E_VALUE, 2}, /* scale=1.5 */
		{"\1\1\1\0\0\0", 6, LADE_E_CORRUPT, 5},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lade_spec *spec = (lade_spec *)1;
		lade_error err = {0};
		lade_status status =
			lade_spec_from_bytes(NULL, cases[i].bytes, cases[i].size, &spec, &err);
		if (status != cases[i].status || err.offset != cases[i].offset)
			fail_msg("case %zu: %s at %llu: %s", i, lade_status_name(status),
			         (unsigned long long)err.offset, err.message);
		assert_null(spec);
	}
}

static void floats_in_any_locale(void **state)
{
	(void)state;
	const char *text = "fixedscaleoffset(<f8,astype=<i2,scale=12.5,offset=-0.1)";
	lade_spec *here = parse(text);
	const char *found = setlocale(LC_NUMERIC, "de_DE.UTF-8");
	if (!found)
		found = setlocale(LC_NUMERIC, "de_DE");
	printf("locale with a decimal comma: %s\n", found ? found : "none installed");
	lade_spec *there = parse(lade_spec_text(here));
	assert_true(lade_spec_equal(here, there));
	assert_string_equal(lade_spec_text(here), lade_spec_text(there));
	setlocale(LC_NUMERIC, "C");
	lade_spec_unref(here);
	lade_spec_unref(there);
}

static void bounds_never_fall(void **state)
{
	(void)state;
	static const char *const texts[] = {"shuffle(4)|zstd|crc32c",
	                                    "bitshuffle(2,order=msb,block=8192)|lz4",
	                                    "lz4",
	                                    "snappy",
	                                    "ans(<f4,bits=11)",
	                                    "gzip",
	                                    "bz2",
	                                    "lzma(format=alone)",
	                                    "blosc",
	                                    "cascaded(<i8)|crc32c",
	                                    "packbits",
	                                    "bitcomp(<i4)",
	                                    "copy|xxh3",
	                                    "lz4f",
	                                    "deflate|lz4"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		lade_spec *spec = parse(texts[i]);
		size_t last = 0;
		for (size_t n = 0; n < 300000; n += 1 + n / 50) {
			size_t bound = lade_spec_bound(spec, n);
			assert_true(bound >= last && bound != SIZE_MAX);
			last = bound;
		}
		assert_true(lade_spec_bound(spec, SIZE_MAX) == SIZE_MAX);
		lade_spec_unref(spec);
	}
}

static void counting(void **state)
{
	(void)state;
	lade_spec *spec = parse("bitround(<f4,keepbits=10)|zstd");
	assert_true(lade_spec_is_lossy(spec));
	assert_int_equal(lade_spec_count(spec), 2);
	assert_string_equal(lade_spec_stage(spec, 1)->algorithm->name, "zstd");
	assert_null(lade_spec_stage(spec, 2));
	assert_ptr_equal(lade_spec_ref(spec), spec);
	lade_spec_unref(spec);
	assert_int_equal(lade_spec_count(spec), 2);
	lade_spec_unref(spec);
	lade_spec_unref(NULL);
}

static void decoded_max_is_what_the_algorithms_say(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t size, most;
	} cases[] = {
		{"copy", 100, 108},
		{"lz4", 0, 8 * 255},
		{"zstd(3)", 1000, 1008 * 32768ull},
		{"ans(<f4)", 10, 0x7FFFFFFF},
		{"ans(<f4)", UINT64_MAX, 0x7FFFFFFF},
		{"snappy", UINT64_MAX, UINT64_MAX},
		{"snappy", UINT64_MAX / 64 - 8, UINT64_MAX},
		{"snappy", UINT64_MAX / 64 - 9, (UINT64_MAX / 64 - 1) * 64},
		{"shuffle(4)|snappy|crc32c", 92, ((92 + 8 + 8) * 64 + 8) * 16},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lade_spec *spec = parse(cases[i].text);
		assert_true(lade_spec_decoded_max(spec, cases[i].size) == cases[i].most);
		lade_spec_unref(spec);
	}
}

/* What others know of the library's own algorithms are properties of their records. */
static void every_codec_says_what_others_ask(void **state)
{
	(void)state;
	const lade_algorithm *a;
	for (size_t i = 0; (a = lade_engine_algorithm(NULL, i)); i++) {
		if (!a->ratio_max && !a->decoded_max)
			fail_msg("%s has no limit of what it decodes to", a->name);
		for (const char *const *s = a->suggest; s && *s; s++) {
			char text[64];
			bool typed = a->options[0].type == LADE_OPTION_DTYPE;
			snprintf(text, sizeof text, typed ? "%s(<u4)" : "%s", *s);
			lade_spec *spec = parse(text);
			assert_ptr_equal(lade_spec_stage(spec, 0)->algorithm, a);
			lade_spec_unref(spec);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(canonical_text),      cmocka_unit_test(the_documented_bytes),
		cmocka_unit_test(random_specs_round_trip), cmocka_unit_test(mutated_bytes),
		cmocka_unit_test(bad_texts),           cmocka_unit_test(bad_bytes_name_their_place),
		cmocka_unit_test(floats_in_any_locale),
		cmocka_unit_test(bounds_never_fall),   cmocka_unit_test(counting),
		cmocka_unit_test(decoded_max_is_what_the_algorithms_say),
		cmocka_unit_test(every_codec_says_what_others_ask),
	};
	return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
