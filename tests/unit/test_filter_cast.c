/*
 * test_filter_cast.c: the filters cast and packints: examples of docs/format/filters.md, edges,
 * refused values, and hostile bytes.  tests/interop compares both with other implementations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"

#include <lade/batch.h>

#include <math.h>

static lade_status run(const char *text, bool encodes, const void *src, size_t size, void *dst,
                       size_t cap, size_t *got, lade_error *err)
{
	lade_spec *spec;
	lade_engine *engine = lade_engine_default();
	if (lade_spec_parse(NULL, text, &spec, err))
		fail_msg("%s: %s", text, err->message);
	guard in = guard_copy(src, size, 1), out = guard_new(cap, 1);
	lade_status status =
		(encodes ? lade_encode : lade_decode)(engine, spec, lade_host_cspan(in.data, size),
	                                              lade_host_span(out.data, cap), got, err);
	memcpy(dst, out.data, cap);
	guard_free(&in);
	guard_free(&out);
	lade_spec_unref(spec);
	return status;
}

static void encodes_to(const char *text, const void *src, size_t size, const void *want,
                       size_t want_size)
{
	uint8_t out[256], back[256];
	size_t got;
	lade_error err = {0};
	if (run(text, true, src, size, out, want_size, &got, &err))
		fail_msg("%s: %s", text, err.message);
	assert_int_equal(got, want_size);
	assert_memory_equal(out, want, got);
	if (run(text, false, out, got, back, size, &got, &err))
		fail_msg("%s: %s", text, err.message);
	assert_int_equal(got, size);
}

static void casts(void **state)
{
	(void)state;
	const float f[] = {1.5f, 2.5f, -0.5f, 255.4f};
	const double d[] = {1e300, -1e300, 5e-324, 65519.9, 65520};
	const double beyond[] = {300, -1, 1e30, -129};
	const int64_t i[] = {INT64_MAX, INT64_MIN, (1 << 24) + 1};
	encodes_to("cast(<f4,astype=|u1)", f, 8, "\x02\x02", 2);
	encodes_to("cast(<f4,astype=|u1,rounding=nearest-away)", f, 8, "\x02\x03", 2);
	encodes_to("cast(<f4,astype=|u1,rounding=towards-positive)", f, 8, "\x02\x03", 2);
	encodes_to("cast(<f4,astype=|u1,rounding=towards-negative)", f, 8, "\x01\x02", 2);
	encodes_to("cast(<f4,astype=|i1,rounding=towards-zero)", f, 12, "\x01\x02\x00", 3);
	encodes_to("cast(<f8,astype=|u1,range=wrap)", beyond, 32, "\x2c\xff\x00\x7f", 4);
	encodes_to("cast(<f8,astype=|i1,range=clamp)", beyond, 32, "\x7f\xff\x7f\x80", 4);
	encodes_to("cast(<f8,astype=<f2,range=clamp)", d, 40,
	           "\x00\x7c\x00\xfc\x00\x00\xff\x7b\x00\x7c", 10);
	encodes_to("cast(<i8,astype=<f4,range=clamp)", i, 24,
	           "\x00\x00\x00\x5f\x00\x00\x00\xdf\x00\x00\x80\x4b", 12);
	encodes_to("cast(<i8,astype=<f4,rounding=towards-positive,range=clamp)", i, 24,
	           "\x00\x00\x00\x5f\x00\x00\x00\xdf\x01\x00\x80\x4b", 12);
}

static void casts_of_special_values(void **state)
{
	(void)state;
	const float f[] = {NAN, INFINITY, -INFINITY, 3};
	const char text[] = "cast(<f4,astype=<i2,map=63,nan=-1,inf=-2,ninf=-3)";
	uint8_t out[8];
	float back[4];
	size_t got;
	lade_error err = {0};
	encodes_to(text, f, 16, "\xff\xff\xfe\xff\xfd\xff\x03\x00", 8);
	run(text, true, f, 16, out, 8, &got, &err);
	assert_int_equal(run(text, false, out, 8, back, 16, &got, &err), LADE_OK);
	assert_true(isnan(back[0]) && back[1] == INFINITY && back[2] == -INFINITY && back[3] == 3);
	encodes_to("cast(<f4,astype=<f8)", f + 1, 8,
	           "\x00\x00\x00\x00\x00\x00\xf0\x7f\x00\x00\x00\x00\x00\x00\xf0\xff", 16);
	static const char *const refusing[] = {"cast(<f4,astype=<i2)",
	                                       "cast(<f4,astype=<i2,range="
	                                       "clamp)",
	                                       "cast(<f4,astype=<i2,map=56)"};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(run(refusing[i], true, f, 4, out, 8, &got, &err), LADE_E_VALUE);
		assert_non_null(strstr(err.message, "element 0"));
	}
	assert_int_equal(run("cast(<f4,astype=<i2,range=wrap)", true, f + 1, 4, out, 8, &got, &err),
	                 LADE_E_VALUE);
	lade_spec *spec;
	assert_int_not_equal(lade_spec_parse(NULL, "cast(<f4,astype=<f2,range=wrap)", &spec, NULL),
	                     LADE_OK);
	assert_int_not_equal(lade_spec_parse(NULL, "cast(|b1,astype=<f2)", &spec, NULL), LADE_OK);
}

static void packs(void **state)
{
	(void)state;
	encodes_to("packints(|b1)", "\0\1\1\1\1\1\0\0\1", 9, "\x3e\x01", 2);
	encodes_to("packints(|b1,padding=first)", "\0\1\1\1\1\1\0\0\1", 9, "\x07\x3e\x01", 3);
	encodes_to("packints(|b1,padding=last)", "\0\1\1\1\1\1\0\0", 8, "\x3e\x00", 2);
	encodes_to("packints(|u1,last=3,padding=first)", "\x01\x02\x03", 3, "\x04\x21\x03", 3);
	encodes_to("packints(|b1,padding=last)", "", 0, "\x00", 1);
}

/* All widths and types, against bits taken one by one. */
static void packs_of_all_widths(void **state)
{
	(void)state;
	static const char *const types[] = {"|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"};
	rng r = {3};
	uint8_t data[8 * 21], want[8 * 21 + 1], out[sizeof want], back[sizeof data];
	for (unsigned t = 0; t < 8; t++)
		for (unsigned first = 0; first < 8u << t / 2; first += 1 + t / 2)
			for (unsigned last = first; last < 8u << t / 2; last++) {
				size_t size = (size_t)1 << t / 2, k = last - first + 1, got;
				size_t bytes = (21 * k + 7) / 8;
				char text[64];
				lade_error err = {0};
				data_fill(data, sizeof data, 0, &r);
				memset(want, 0, sizeof want);
				for (size_t i = 0; i < 21 * k; i++) {
					size_t bit = i % k + first + i / k * size * 8;
					want[i / 8] |=
						(uint8_t)((data[bit / 8] >> bit % 8 & 1) << i % 8);
				}
				snprintf(text, sizeof text, "packints(%s,first=%u,last=%u)",
				         types[t], first, last);
				encodes_to(text, data, 21 * size, want, bytes);
				run(text, true, data, 21 * size, out, bytes, &got, &err);
				run(text, false, out, bytes, back, 21 * size, &got, &err);
				for (size_t i = 0; i < 21; i++) {
					uint64_t x = 0, y = 0;
					memcpy(&x, data + i * size, size);
					memcpy(&y, back + i * size, size);
					x = x >> first << (64 - k);
					x = t % 2 ? x >> (64 - k)
					          : (uint64_t)((int64_t)x >> (64 - k));
					x <<= first;
					assert_memory_equal(&x, &y, size);
				}
			}
}

static void packs_refused(void **state)
{
	(void)state;
	uint8_t out[100];
	size_t got;
	lade_error err = {0};
	static const struct {
		const char *text, *src;
		size_t size, cap;
		lade_status want;
	} cases[] = {
		{"packints(|b1,padding=first)", "", 0, 8, LADE_E_TRUNCATED},
		{"packints(|b1,padding=first)", "\x08\x00", 2, 8, LADE_E_CORRUPT},
		{"packints(|b1,padding=first)", "\x01", 1, 8, LADE_E_CORRUPT},
		{"packints(<u2,last=9,padding=last)", "\xff\xff\x05", 3, 8, LADE_E_CORRUPT},
		{"packints(|b1,padding=last)", "\xff\x00", 2, 7, LADE_E_NOSPACE},
		{"packints(|b1)", "\xff\x00", 2, 8, LADE_E_NOSPACE},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(run(cases[i].text, false, cases[i].src, cases[i].size, out,
		                     cases[i].cap, &got, &err),
		                 cases[i].want);
	assert_int_equal(run("packints(<u2)", true, "abc", 3, out, 100, &got, &err), LADE_E_DTYPE);
	static const char *const texts[] = {"packints", "packints(|b1,last=1)",
	                                    "packints(|u1,first=8)", "packints(<u2,first=3,last=2)",
	                                    "packints(>u2)"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		lade_spec *spec;
		assert_int_not_equal(lade_spec_parse(NULL, texts[i], &spec, NULL), LADE_OK);
	}
}

/* Real32Quant: level 102 of 8 bits from -2 to 3 is 0, and would not be with a fused operation. */
static void levels_round_at_each_step(void **state)
{
	(void)state;
	const float limits[] = {-2, 3};
	float back[2];
	uint8_t out[8];
	size_t got;
	lade_error err = {0};
	encodes_to("levels(bits=8,min=-2,max=3)", limits, 8, "\0\0\0\0\xff\0\0\0", 8);
	const char text[] = "levels(bits=8,min=-2,max=3)|packints(<u4,last=7)";
	assert_int_equal(run(text, false, "\x66\xff", 2, back, 8, &got, &err), LADE_OK);
	assert_true(memcmp(&back[0], "\0\0\0\0", 4) == 0 && back[1] == 3);
	/* A level above the last one is the last one. */
	assert_int_equal(run("levels(bits=1,min=0,max=2)", false, "\xff\xff\xff\xff", 4, back, 4,
	                     &got, &err),
	                 LADE_OK);
	assert_true(back[0] == 2);
	const float wrong[] = {3.5f, NAN};
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(run(text, true, wrong + i, 4, out, 8, &got, &err), LADE_E_VALUE);
	static const char *const texts[] = {"levels(bits=8)", "levels(bits=8,min=1,max=1)",
	                                    "levels(bits=33,min=0,max=1)",
	                                    "levels(bits=8,min=-1e308,max=1e308)"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		lade_spec *spec;
		assert_int_not_equal(lade_spec_parse(NULL, texts[i], &spec, NULL), LADE_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(casts),         cmocka_unit_test(casts_of_special_values),
		cmocka_unit_test(packs),         cmocka_unit_test(packs_of_all_widths),
		cmocka_unit_test(packs_refused),
		cmocka_unit_test(levels_round_at_each_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
