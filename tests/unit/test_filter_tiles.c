/*
 * test_filter_tiles.c: all filters of a fixed size through their records: against references,
 * in random tiles, in place, at every CPU level, between guard pages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "filter/filters.h"
#include "guard.h"

#include <lade/lade.h>

static rng r;

/* ---- running one filter ------------------------------------------------------------- */

static const lade_implementation *record(const char *name, lade_direction direction)
{
	for (const lade_implementation *const *i = lade__filters.implementations; *i; i++)
		if (!strcmp((*i)->algorithm, name) && (*i)->direction == direction)
			return *i;
	fail_msg("no filter %s", name);
	return NULL;
}

static lade_spec *parse(const char *text)
{
	lade_spec *spec;
	lade_error err;
	if (lade_spec_parse(NULL, text, &spec, &err) != LADE_OK)
		fail_msg("%s: %s", text, err.message);
	return spec;
}

/* Runs a filter over 'total' decoded bytes; in random tiles if 'split'. */
static lade_status run_filter(const lade_spec *spec, lade_direction direction, lade_cpu cpu,
                              const uint8_t *src, uint8_t *dst, size_t total, int split,
                              lade_error *err)
{
	const lade_stage *stage = lade_spec_stage(spec, 0);
	const lade_implementation *impl = record(stage->algorithm->name, direction);
	lade_run run = {.stage = stage, .cpu = cpu};
	lade_carry carry = {{0}};
	size_t decoded, encoded;
	impl->tile->sizes(stage, &decoded, &encoded);
	size_t in = direction == LADE_ENCODE ? decoded : encoded;
	size_t out = direction == LADE_ENCODE ? encoded : decoded;
	size_t count = total / decoded, off = 0;
	do {
		size_t n = count - off;
		if (split && n)
			n = 1 + rng_below(&r, n);
		const uint8_t *from = impl->tile->kind == LADE_TILE_GATHER ? src : src + off * in;
		uint8_t *to = impl->tile->kind == LADE_TILE_SCATTER ? dst : dst + off * out;
		lade_elements tile = {from, to, off, n, total, &carry};
		lade_status status = impl->tile->run(&run, &tile, err);
		if (status != LADE_OK)
			return status;
		off += n;
	} while (off < count);
	return LADE_OK;
}

/*
 * Encodes at every level, whole and in tiles, in place where allowed, and compares with 'want'
 * (NULL: with the lowest level's); decodes that likewise and compares with 'back' (NULL: with
 * 'plain').
 */
static void check(const char *text, const uint8_t *plain, size_t total, const uint8_t *want,
                  const uint8_t *back)
{
	lade_spec *spec = parse(text);
	const lade_stage *stage = lade_spec_stage(spec, 0);
	size_t decoded, encoded, size = lade_spec_bound(spec, total);
	record(stage->algorithm->name, LADE_ENCODE)->tile->sizes(stage, &decoded, &encoded);
	lade_tile kind = record(stage->algorithm->name, LADE_ENCODE)->tile->kind;
	uint8_t *first = malloc(size + 1);
	assert_int_equal(
		run_filter(spec, LADE_ENCODE, LADE_CPU_PLAIN, plain, first, total, 0, NULL),
		LADE_OK);
	if (want)
		assert_memory_equal(first, want, size);
	if (!back)
		back = plain;
	for (int level = LADE_CPU_PLAIN; level <= (int)lade_cpu_detect(); level++) {
		for (int split = 0; split < 2; split++) {
			guard src = guard_copy(plain, total, split),
			      there = guard_new(size, !split);
			guard again = guard_new(total, split);
			lade_error err;
			if (run_filter(spec, LADE_ENCODE, (lade_cpu)level, src.data, there.data,
			               total, split, &err) != LADE_OK)
				fail_msg("%s: %s", text, err.message);
			if (size && memcmp(there.data, first, size))
				fail_msg("%s, %zu bytes, level %d, split %d", text, total, level,
				         split);
			if (run_filter(spec, LADE_DECODE, (lade_cpu)level, there.data, again.data,
			               total, split, &err) != LADE_OK)
				fail_msg("%s: %s", text, err.message);
			if (total && memcmp(again.data, back, total))
				fail_msg("un%s, %zu bytes, level %d, split %d", text, total, level,
				         split);
			if (kind == LADE_TILE_IN_ORDER && decoded == encoded && total) {
				memcpy(again.data, plain, total);
				run_filter(spec, LADE_ENCODE, (lade_cpu)level, again.data,
				           again.data, total, split, NULL);
				assert_memory_equal(again.data, first, size);
				run_filter(spec, LADE_DECODE, (lade_cpu)level, again.data,
				           again.data, total, split, NULL);
				assert_memory_equal(again.data, back, total);
			}
			guard_free(&src);
			guard_free(&there);
			guard_free(&again);
		}
	}
	free(first);
	lade_spec_unref(spec);
}

/* ---- integers ----------------------------------------------------------------------- */

static uint64_t get(const uint8_t *p, size_t size)
{
	uint64_t x = 0;
	for (size_t i = 0; i < size; i++)
		x |= (uint64_t)p[i] << (8 * i);
	return x;
}

static void put(uint8_t *p, size_t size, uint64_t x)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)(x >> (8 * i));
}

static uint64_t delta_of(const uint8_t *p, size_t size, size_t i)
{
	return get(p + i * size, size) - (i ? get(p + (i - 1) * size, size) : 0);
}

static uint64_t zigzag_of(const uint8_t *p, size_t size, size_t i)
{
	uint64_t x = get(p + i * size, size), top = x >> (8 * size - 1);
	return top ? ~(x << 1) : x << 1;
}

static uint64_t swap_of(const uint8_t *p, size_t size, size_t i)
{
	uint64_t x = 0;
	for (size_t k = 0; k < size; k++)
		x = x << 8 | p[i * size + k];
	return x;
}

static void integers(const char *text, size_t size, size_t count,
                     uint64_t (*value)(const uint8_t *p, size_t size, size_t i))
{
	uint8_t *plain = malloc(count * size + 1), *want = malloc(count * size + 1);
	for (size_t i = 0; i < count * size; i++)
		plain[i] = (uint8_t)(rng_next(&r) >> 30);
	for (size_t i = 0; i < count; i++)
		put(want + i * size, size, value(plain, size, i));
	check(text, plain, count * size, want, NULL);
	free(plain);
	free(want);
}

static void integers_of_all_sizes_and_lengths(void **state)
{
	(void)state;
	for (size_t size = 1; size <= 8; size *= 2) {
		char delta_i[32], delta_u[32], zigzag[32], swap[32];
		snprintf(delta_i, sizeof delta_i, "delta(i%zu)", size);
		snprintf(delta_u, sizeof delta_u, "delta(u%zu)", size);
		snprintf(zigzag, sizeof zigzag, "zigzag(i%zu)", size);
		snprintf(swap, sizeof swap, "byteswap(%zu)", size);
		for (size_t count = 0; count <= 200; count++) {
			integers(count % 2 ? delta_i : delta_u, size, count, delta_of);
			integers(zigzag, size, count, zigzag_of);
			integers(swap, size, count, swap_of);
		}
		integers(delta_i, size, 30011, delta_of);
		integers(zigzag, size, 30011, zigzag_of);
		integers(swap, size, 30011, swap_of);
	}
}

/* ---- other filters ------------------------------------------------------------------ */

static const char *const integer_types[] = {"i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"};

/* Every pair of integer types: small differences, which fit all of them. */
static void delta_into_other_types(void **state)
{
	(void)state;
	uint8_t plain[8 * 3001];
	for (size_t d = 0; d < 8; d++) {
		for (size_t a = 0; a < 8; a++) {
			char text[48];
			snprintf(text, sizeof text, "delta(%s,astype=%s)", integer_types[d],
			         integer_types[a]);
			size_t size = (size_t)1 << d / 2;
			uint64_t x = 0;
			for (size_t i = 0; i < 3001; i++)
				put(plain + i * size, size, x += i < 100 ? rng_below(&r, 2) : 0);
			for (size_t count = 0; count < 3001; count += 1 + 7 * count)
				check(text, plain, count * size, NULL, NULL);
			check(text, plain, 3001 * size, NULL, NULL);
		}
	}
}

static lade_status encode_two(const char *text, const void *plain, size_t size, void *out,
                              lade_error *err)
{
	lade_spec *spec = parse(text);
	lade_status status =
		run_filter(spec, LADE_ENCODE, LADE_CPU_PLAIN, plain, out, 2 * size, 0, err);
	lade_spec_unref(spec);
	return status;
}

/* What decoding would not give back is refused, whether it is the first element or a difference. */
static void delta_refuses_integers_that_do_not_fit(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t plain[2];
		lade_status status;
		const char *message;
	} cases[] = {
		{"delta(i8,astype=i2)", {70000, 70001}, LADE_E_VALUE,
		 "delta: element 0: the value 70000 does not fit in type <i2"},
		{"delta(i8,astype=i2)", {32767, 70000}, LADE_E_VALUE,
		 "delta: element 1: the difference 37233 does not fit in type <i2"},
		{"delta(i8,astype=i2)", {32767, -1}, LADE_OK, NULL},
		{"delta(i8,astype=i2)", {-32768, -65537}, LADE_E_VALUE,
		 "delta: element 1: the difference -32769 does not fit in type <i2"},
		{"delta(i8,astype=u2)", {65535, 65534}, LADE_E_VALUE,
		 "delta: element 1: the difference -1 does not fit in type <u2"},
		{"delta(i8,astype=i4)", {INT64_MIN, INT64_MAX}, LADE_E_VALUE,
		 "delta: element 0: the value -9223372036854775808 does not fit in type <i4"},
		{"delta(i8,astype=i4)", {1, INT64_MIN}, LADE_E_VALUE,
		 "delta: element 1: the difference 9223372036854775807 does not fit in type <i4"},
		{"delta(u8,astype=u4)", {-1, 0}, LADE_E_VALUE,
		 "delta: element 0: the value 18446744073709551615 does not fit in type <u4"},
		{"delta(u8,astype=i1)", {127, 0}, LADE_OK, NULL},
		{"delta(u8,astype=f2)", {65519, 0}, LADE_E_VALUE, "delta: element 1: "},
		{"delta(i8,astype=f2)", {65504, 0}, LADE_OK, NULL},
		{"delta(i8,astype=f2)", {65520, 0}, LADE_E_VALUE, "delta: element 0: "},
		/* The bits are all there, whatever the signs are. */
		{"delta(u8,astype=i8)", {-1, 0}, LADE_OK, NULL},
		{"delta(i8,astype=u8)", {5, 4}, LADE_OK, NULL},
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		lade_error err = {.message = ""};
		uint64_t out[2];
		assert_int_equal(encode_two(cases[c].text, cases[c].plain, 8, out, &err),
		                 cases[c].status);
		if (cases[c].status == LADE_OK)
			check(cases[c].text, (const uint8_t *)cases[c].plain, 16, NULL, NULL);
		else if (!strstr(err.message, cases[c].message))
			fail_msg("'%s', want '%s'", err.message, cases[c].message);
		else
			assert_int_equal(err.offset, strstr(err.message, "element 0") ? 0 : 8);
	}
	/* Behind the first block, in every tile. */
	static int32_t plain[5000];
	uint8_t out[2 * 5000];
	plain[4321] = 40000;
	for (int split = 0; split < 2; split++) {
		lade_error err;
		lade_spec *spec = parse("delta(i4,astype=i2)");
		assert_int_equal(run_filter(spec, LADE_ENCODE, LADE_CPU_PLAIN, (uint8_t *)plain,
		                            out, sizeof plain, split, &err),
		                 LADE_E_VALUE);
		assert_int_equal(err.offset, 4 * 4321);
		assert_false(lade_spec_is_lossy(spec));
		lade_spec_unref(spec);
	}
}

/* A finite real that would become infinite takes all that follows along: it is refused. */
static void delta_refuses_reals_that_do_not_fit(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double plain[2];
		lade_status status;
	} cases[] = {
		{"delta(f8,astype=f4)", {0x1.fffffefp127, 0}, LADE_OK},
		{"delta(f8,astype=f4)", {0x1.ffffffp127, 0}, LADE_E_VALUE},
		{"delta(f8,astype=f4)", {1, -0x1.ffffffp127}, LADE_E_VALUE},
		{"delta(f8,astype=f4)", {(double)INFINITY, 1}, LADE_OK},
		{"delta(f8,astype=f4)", {1, (double)NAN}, LADE_OK},
		{"delta(f8,astype=f2)", {65519, 0}, LADE_OK},
		{"delta(f8,astype=f2)", {1, 65521}, LADE_E_VALUE},
		{"delta(f8)", {0x1p1023, -0x1p1023}, LADE_E_VALUE},
		{"delta(f8)", {0x1p1023, 0x1p1022}, LADE_OK},
		{"delta(f8,astype=i2)", {1, 32769}, LADE_E_VALUE},
		{"delta(f8,astype=i2)", {(double)NAN, 1}, LADE_E_VALUE},
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		lade_error err;
		double out[2];
		if (encode_two(cases[c].text, cases[c].plain, 8, out, &err) != cases[c].status)
			fail_msg("%s of %a %a", cases[c].text, cases[c].plain[0],
			         cases[c].plain[1]);
	}
	static const float narrow[2] = {0x1p127f, -0x1p127f};
	float out[2];
	assert_int_equal(encode_two("delta(f4)", narrow, 4, out, NULL), LADE_E_VALUE);
	/* The difference is one of the elements' type, and wider only then. */
	assert_int_equal(encode_two("delta(f4,astype=f8)", narrow, 4, (double[2]){0}, NULL),
	                 LADE_E_VALUE);
	static const uint16_t half[2] = {0x7BFF, 0xFBFF}; /* 65504, -65504 */
	assert_int_equal(encode_two("delta(f2)", half, 2, out, NULL), LADE_E_VALUE);
}

static void reals_through_everything(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"delta(f4)",
		"delta(f8)",
		"delta(f4,astype=f8)",
		"delta(f8,astype=f4)",
		"scaleoffset(f4,scale=4,offset=2)",
		"scaleoffset(f8,scale=0.5,offset=-8)",
		"fixedscaleoffset(f8,astype=i2,scale=8,offset=100)",
		"fixedscaleoffset(f4,astype=i4,scale=8)",
		"astype(f8,astype=f4)",
		"astype(f4,astype=f8)",
		"bitround(f4,keepbits=23)",
		"bitround(f8,keepbits=52)",
		"bitround(f8,keepbits=20)",
		"quantize(f8,digits=2)",
		"quantize(f4,digits=2,astype=f8)",
		"split(4)",
		"split(8)",
	};
	enum { COUNT = 5003 };
	static double wide[COUNT];
	static float narrow[COUNT];
	/* Eighths below 2^11, of which sums and differences are exact in all these types. */
	for (size_t i = 0; i < COUNT; i++) {
		wide[i] = (double)(int64_t)(rng_below(&r, 1024) - 512) / 8;
		narrow[i] = (float)wide[i];
	}
	for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
		int four = strstr(texts[t], "(f4") || strstr(texts[t], "(4");
		const uint8_t *plain = four ? (const uint8_t *)narrow : (const uint8_t *)wide;
		size_t size = four ? 4 : 8;
		for (size_t count = 0; count < 40; count++)
			check(texts[t], plain, count * size, NULL, NULL);
		check(texts[t], plain, COUNT * size, NULL, NULL);
	}
}

static void scaleoffset_is_exact_or_refuses(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t plain, encoded; /* one element */
		lade_status status;
	} cases[] = {
		{"scaleoffset(i2,scale=3,offset=10)", 20, 30, LADE_OK},
		{"scaleoffset(i2,scale=-1,offset=0)", -32767, 32767, LADE_OK},
		{"scaleoffset(i2,scale=-1,offset=0)", -32768, 0, LADE_E_VALUE},
		{"scaleoffset(i2,offset=-10)", 32760, 0, LADE_E_VALUE},
		{"scaleoffset(i2,scale=2)", 16384, 0, LADE_E_VALUE},
		{"scaleoffset(u2,offset=5)", 4, 0, LADE_E_VALUE},
		{"scaleoffset(u2,scale=2,offset=5)", 6, 2, LADE_OK},
		{"scaleoffset(i8,scale=-1)", INT64_MIN + 1, INT64_MAX, LADE_OK},
		{"scaleoffset(i8,scale=-1)", INT64_MIN, 0, LADE_E_VALUE},
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		lade_spec *spec = parse(cases[c].text);
		size_t size = strstr(cases[c].text, "8") ? 8 : 2;
		int64_t out = 0, back = 0;
		lade_error err;
		assert_int_equal(run_filter(spec, LADE_ENCODE, LADE_CPU_PLAIN,
		                            (const uint8_t *)&cases[c].plain, (uint8_t *)&out, size,
		                            0, &err),
		                 cases[c].status);
		if (cases[c].status == LADE_OK) {
			assert_memory_equal(&out, &cases[c].encoded, size);
			assert_int_equal(run_filter(spec, LADE_DECODE, LADE_CPU_PLAIN,
			                            (uint8_t *)&out, (uint8_t *)&back, size, 0,
			                            &err),
			                 LADE_OK);
			assert_memory_equal(&back, &cases[c].plain, size);
		}
		lade_spec_unref(spec);
	}
	/* What no encoder writes: 7 is no multiple of 3; the lowest value has no negative. */
	lade_error err;
	lade_spec *spec = parse("scaleoffset(i4,scale=3)");
	int32_t stored[2] = {6, 7}, result[2];
	assert_int_equal(run_filter(spec, LADE_DECODE, LADE_CPU_PLAIN, (uint8_t *)stored,
	                            (uint8_t *)result, 8, 0, &err), LADE_E_VALUE);
	assert_int_equal(err.offset, 4);
	lade_spec_unref(spec);
	spec = parse("scaleoffset(i4,scale=-1)");
	stored[1] = INT32_MIN;
	assert_int_equal(run_filter(spec, LADE_DECODE, LADE_CPU_PLAIN, (uint8_t *)stored,
	                            (uint8_t *)result, 8, 0, &err), LADE_E_VALUE);
	lade_spec_unref(spec);
}

static void partial_elements_are_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"delta(i4)", "zigzag(i4)", "split(4)", "scaleoffset(i4)", "bitround(f4,keepbits=3)",
		"quantize(f4,digits=1)", "fixedscaleoffset(f4,astype=i4)", "astype(i4,astype=f4)",
		"byteswap(4)",
	};
	uint8_t plain[32] = {0}, out[64];
	for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
		lade_spec *spec = parse(texts[t]);
		const lade_stage *stage = lade_spec_stage(spec, 0);
		lade_error err;
		uint64_t decoded;
		for (size_t total = 1; total < 8; total++) {
			lade_status status = run_filter(spec, LADE_ENCODE, LADE_CPU_PLAIN, plain,
			                                out, total, 0, &err);
			assert_int_equal(status, total == 4 ? LADE_OK : LADE_E_DTYPE);
			status = stage->algorithm->decoded_size(stage, NULL, total, &decoded, &err);
			assert_int_equal(status, total == 4 ? LADE_OK : LADE_E_CORRUPT);
		}
		lade_spec_unref(spec);
	}
}

static void bad_options_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		lade_status status;
	} cases[] = {
		{"shuffle", LADE_E_SPEC},
		{"shuffle(0)", LADE_E_SPEC},
		{"shuffle(256)", LADE_E_SPEC},
		{"byteswap(3)", LADE_E_SPEC},
		{"delta(b1)", LADE_E_DTYPE},
		{"delta(>i4)", LADE_E_DTYPE},
		{"delta(i4,astype=>i4)", LADE_E_DTYPE},
		{"delta(bfloat16)", LADE_E_DTYPE},
		{"zigzag(u4)", LADE_E_DTYPE},
		{"bitround(i4,keepbits=3)", LADE_E_DTYPE},
		{"bitround(f4,keepbits=24)", LADE_E_SPEC},
		{"quantize(f4,digits=1,astype=i4)", LADE_E_DTYPE},
		{"quantize(f2,digits=9)", LADE_E_SPEC},
		{"scaleoffset(i4,scale=0)", LADE_E_SPEC},
		{"scaleoffset(i4,scale=0.5)", LADE_E_VALUE},
		{"scaleoffset(u4,offset=-1)", LADE_E_VALUE},
		{"scaleoffset(i1,offset=128)", LADE_E_VALUE},
		{"scaleoffset(f4,scale=1e-60)", LADE_E_SPEC},
		{"scaleoffset(f4,scale=1e60)", LADE_E_VALUE},
		{"fixedscaleoffset(f4,scale=0)", LADE_E_SPEC},
		{"astype(>f4,astype=f8)", LADE_E_DTYPE},
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		lade_spec *spec = NULL;
		lade_error err = {0};
		lade_status status = lade_spec_parse(NULL, cases[c].text, &spec, &err);
		if (status != cases[c].status)
			fail_msg("%s: %s: %s", cases[c].text, lade_status_name(status),
			         err.message);
		assert_null(spec);
		if (strchr(cases[c].text, '>'))
			assert_non_null(strstr(err.message, "byteswap("));
	}
}

int main(void)
{
	r.s = (uint64_t)getpid() * 2654435761u + 1;
	printf("seed %llu\n", (unsigned long long)r.s);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_of_all_sizes_and_lengths),
		cmocka_unit_test(delta_into_other_types),
		cmocka_unit_test(delta_refuses_integers_that_do_not_fit),
		cmocka_unit_test(delta_refuses_reals_that_do_not_fit),
		cmocka_unit_test(reals_through_everything),
		cmocka_unit_test(scaleoffset_is_exact_or_refuses),
		cmocka_unit_test(partial_elements_are_refused),
		cmocka_unit_test(bad_options_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
