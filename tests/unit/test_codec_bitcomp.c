/*
 * test_codec_bitcomp.c: bitcomp at every instruction set against a decoder that follows the format
 * value by value: what encoders make, chunks of any modes, damaged ones, ranges, parts, and the
 * lossy modes' promises.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"

#include <math.h>

#include "bitcomp_kit.h"
#include "codec/bitcomp/bitcomp.h"

static const uint64_t seed = 0x1adeb17;
enum { CAP = 40000, ROOM = CAP + 4096 };

static const char *const types[4][3] = {
	{"<u1", "<i1", "<u1"}, {"<u2", "<i2", "<f2"}, {"<u4", "<i4", "<f4"}, {"<u8", "<i8", "<f8"}};

static size_t any_size(rng *r)
{
	static const size_t near[] = {0, 16, 512, 4096, 8192, 16384, 24576};
	if (rng_below(r, 3) == 0)
		return (size_t)rng_below(r, CAP);
	return near[rng_below(r, 7)] + (size_t)rng_below(r, 20);
}

/* Decodes at every level into a destination at a guard page; wants what the reference gives. */
static void decode_alike(codec *c, const uint8_t *chunk, size_t size, size_t cap)
{
	static uint8_t want[ROOM];
	size_t expected, got;
	lade_status reference = kit_decode(chunk, size, want, cap, &expected);
	guard in = guard_copy(chunk, size, 1);
	for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
		guard out = guard_new(cap, 1);
		lade_error err = {0};
		c->dec.cpu = cpu;
		lade_status status = codec_decode(c, in.data, size, out.data, cap, &got, &err);
		if (status != reference)
			fail_msg("%s: the reference gives %s, %s gives %s (%s)", lade_cpu_name(cpu),
			         lade_status_name(reference), lade_cpu_name(cpu),
			         lade_status_name(status), err.message);
		assert_int_equal(got, expected);
		if (status == LADE_OK)
			assert_memory_equal(out.data, want, got);
		else
			assert_true(err.message[0] &&
			            (err.offset == LADE_NO_OFFSET || err.offset <= size));
		guard_free(&out);
	}
	guard_free(&in);
}

/* All levels make the same bytes, and these decode to the data. */
static void encode_alike(codec *c, const guard *data)
{
	static uint8_t chunk[ROOM], back[ROOM];
	size_t bound = codec_bound(c, data->size), got, first = 0, decoded;
	for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
		guard out = guard_new(bound, 1);
		lade_error err = {0};
		c->enc.cpu = cpu;
		assert_status(
			codec_encode(c, data->data, data->size, out.data, bound, &got, &err),
			LADE_OK, err);
		if (cpu == LADE_CPU_PLAIN) {
			first = got;
			memcpy(chunk, out.data, got);
		}
		assert_int_equal(got, first);
		assert_memory_equal(out.data, chunk, got);
		guard_free(&out);
	}
	assert_int_equal(kit_decode(chunk, first, back, data->size, &decoded), LADE_OK);
	assert_int_equal(decoded, data->size);
	assert_memory_equal(back, data->data, data->size);
	decode_alike(c, chunk, first, data->size);
}

static void test_encoders(void **state)
{
	(void)state;
	rng r = {seed};
	printf("seed %llx\n", (unsigned long long)seed);
	for (unsigned log = 0; log < 4; log++)
		for (unsigned form = 0; form < 4; form++) {
			char text[64];
			snprintf(text, sizeof text, "bitcomp(%s%s)", types[log][form % 3],
			         form == 3 ? ",algorithm=sparse" : "");
			codec c = codec_open(text);
			for (unsigned i = 0; i < 10 * KIT_KINDS; i++) {
				guard data = guard_new(any_size(&r), 1);
				kit_fill(log, i % KIT_KINDS, data.data, data.size, &r);
				encode_alike(&c, &data);
				guard_free(&data);
			}
			codec_close(&c);
		}
}

/* Values of each number of bits; in each fourth unit of any lower number, too. */
static void test_all_widths(void **state)
{
	(void)state;
	rng r = {seed + 7};
	for (unsigned log = 0; log < 4; log++) {
		unsigned size = 1u << log, each = log ? 8 : 16;
		codec c = codec_open("bitcomp(dtype=u1)");
		c.stage.option[LADE__BITCOMP_DTYPE].i =
			(int64_t[]){LADE_U1, LADE_U2, LADE_U4, LADE_U8}[log];
		for (unsigned width = 0; width <= 8 * size; width++)
			for (unsigned own = 0; own < 2; own++) {
				guard data = guard_new(8192, 1);
				unsigned bits = width;
				for (size_t i = 0; i < 8192 / size; i++) {
					if (i % each == 0)
						bits = own && rng_below(&r, 4) == 0
						               ? (unsigned)rng_below(&r, width + 1)
						               : width;
					uint64_t x = rng_next(&r);
					kit_put(data.data + i * size,
					        (x ^ x >> 31) & kit_low(bits), size);
				}
				encode_alike(&c, &data);
				guard_free(&data);
			}
		codec_close(&c);
	}
}

/* Each kind of data becomes as small as its mode makes it. */
static void test_modes_pay(void **state)
{
	(void)state;
	static const double least[4][KIT_KINDS] = {
		{3.8, 1.4, 3.8, 1.5, 1.0, 1.3, 1.2, 0.99, 300, 1, 1, 1, 1, 1},
		{3.0, 2.7, 7.5, 3.0, 1.3, 3.1, 2.3, 0.99, 300, 1, 1, 1, 1, 1},
		{3.0, 4.0, 15., 3.7, 1.5, 6.0, 4.5, 0.99, 300, 1, 1, 1, 1, 1},
		{2.9, 5.6, 27., 3.7, 1.7, 13., 9.0, 0.99, 300, 1, 1, 1, 1, 1}};
	rng r = {seed + 1};
	enum { SIZE = 65536 };
	uint8_t *data = malloc(SIZE), *chunk = malloc(2 * SIZE);
	for (unsigned log = 0; log < 4; log++)
		for (unsigned kind = 0; kind < KIT_KINDS; kind++) {
			codec c = codec_open("bitcomp");
			size_t got;
			c.stage.option[0].i = (int64_t[]){LADE_U1, LADE_I2, LADE_I4, LADE_I8}[log];
			kit_fill(log, kind, data, SIZE, &r);
			assert_int_equal(codec_encode(&c, data, SIZE, chunk, 2 * SIZE, &got, NULL),
			                 LADE_OK);
			if (getenv("RATIOS"))
				printf("%u %u: %.2f\n", log, kind, (double)SIZE / (double)got);
			if ((double)SIZE / (double)got < least[log][kind])
				fail_msg("%u bytes an element, kind %u: ratio %.2f, want %.2f",
				         1u << log, kind, (double)SIZE / (double)got,
				         least[log][kind]);
			codec_close(&c);
		}
	free(data);
	free(chunk);
}

static void test_any_chunks(void **state)
{
	(void)state;
	rng r = {seed + 2};
	static uint8_t chunk[ROOM];
	codec c = codec_open("bitcomp");
	for (unsigned i = 0; i < 1500; i++) {
		unsigned log = i % 4, quant = log && i % 5 == 0 ? 1 + i / 5 % 2 : 0;
		size_t size = any_size(&r);
		size_t coded = kit_any_chunk(log, quant, size, chunk, &r);
		decode_alike(&c, chunk, coded, size);
	}
	codec_close(&c);
}

static void test_damaged_chunks(void **state)
{
	(void)state;
	rng r = {seed + 3};
	static uint8_t chunk[ROOM], bad[ROOM];
	codec c = codec_open("bitcomp");
	for (unsigned i = 0; i < 300; i++) {
		unsigned log = i % 4, quant = log && i % 5 == 0 ? 1 + i / 5 % 2 : 0;
		size_t size = (size_t)rng_below(&r, 20000);
		size_t coded = kit_any_chunk(log, quant, size, chunk, &r);
		for (unsigned k = 0; k < 20; k++) {
			memcpy(bad, chunk, coded);
			size_t left = kit_damage(bad, coded, &r);
			decode_alike(&c, bad, left, k % 7 ? size : (size_t)rng_below(&r, size + 1));
		}
	}
	codec_close(&c);
}

/* Every value of each byte that a chunk's and a sub-block's headers begin with. */
static void test_header_values(void **state)
{
	(void)state;
	rng r = {seed + 6};
	static uint8_t chunk[ROOM];
	codec c = codec_open("bitcomp");
	/* With one width, with unit widths, with a dictionary, with a mask. */
	for (unsigned i = 0; i < 10; i++) {
		unsigned log = i % 4, with = i < 4 ? 0 : i < 8 ? 16 : i == 8 ? 32 : 64;
		size_t coded;
		do
			coded = kit_any_chunk(log, 0, 1500, chunk, &r);
		while (coded == 32 + kit_up(1500) || (chunk[32] & (with | 80)) != with);
		for (size_t at = 0; at < 36; at += at == 7 ? 25 : 1)
			for (unsigned value = 0; value < 256; value++) {
				uint8_t was = chunk[at];
				chunk[at] = (uint8_t)value;
				decode_alike(&c, chunk, coded, 1500);
				chunk[at] = was;
			}
	}
	codec_close(&c);
}

static void test_ranges_and_parts(void **state)
{
	(void)state;
	rng r = {seed + 4};
	enum { LARGE = 300000 };
	uint8_t *chunk = malloc(LARGE + 4096), *want = malloc(LARGE), *back = malloc(LARGE);
	codec c = codec_open("bitcomp");
	lade_error err = {0};
	for (unsigned i = 0; i < 24; i++) {
		unsigned log = i % 4, quant = log ? i / 4 % 3 : 0;
		size_t size = i < 4 ? 0 : (size_t)rng_below(&r, LARGE), got, parts;
		size_t coded = kit_any_chunk(log, quant, size, chunk, &r);
		c.dec.stage = &c.stage;
		lade_cspan src = lade_host_cspan(chunk, coded);
		assert_int_equal(kit_decode(chunk, coded, want, size, &got), LADE_OK);
		for (unsigned k = 0; k < 20; k++) {
			size_t off = (size_t)rng_below(&r, size + 1);
			size_t n = (size_t)rng_below(&r, size - off + 1);
			guard out = guard_new(n, 1);
			assert_status(c.decoder->run_range(&c.dec, src, off,
			                                   lade_host_span(out.data, n), &err),
			              LADE_OK, err);
			assert_memory_equal(out.data, want + off, n);
			guard_free(&out);
		}
		assert_int_equal(
			c.decoder->run_range(&c.dec, src, size, lade_host_span(back, 1), &err),
			LADE_E_RANGE);
		assert_status(c.decoder->parts(&c.dec, src, &parts, &got, &err), LADE_OK, err);
		assert_int_equal(got, size);
		assert_int_equal(parts, (size + 131071) / 131072);
		for (size_t p = parts; p-- > 0;)
			assert_status(c.decoder->run_part(&c.dec, src, p,
			                                  lade_host_span(back, size), &err),
			              LADE_OK, err);
		assert_memory_equal(back, want, size);
	}
	codec_close(&c);
	free(chunk);
	free(want);
	free(back);
}

/* ---- the lossy modes ------------------------------------------------------------------------- */

/* A half's value, exactly. */
static double half(uint16_t h)
{
	int e = h >> 10 & 31, f = h & 1023;
	double v = e == 31 ? (f ? (double)NAN : (double)INFINITY)
	                   : ldexp(e ? f | 1024 : f, (e ? e : 1) - 25);
	return h >> 15 ? -v : v;
}

static double value_of(unsigned log, uint64_t bits)
{
	float f;
	double d;
	uint32_t low = (uint32_t)bits;
	memcpy(&f, &low, 4);
	memcpy(&d, &bits, 8);
	return log == 1 ? half((uint16_t)bits) : log == 2 ? (double)f : d;
}

/* Every value is near enough; what is no number, or far from 0, is the same. */
static void check_lossy(unsigned log, int E, const uint8_t *data, const uint8_t *back, size_t size)
{
	unsigned elem = 1u << log, m = log == 1 ? 10 : log == 2 ? 23 : 52;
	for (size_t i = 0; i < size / elem; i++) {
		uint64_t a = kit_get(data + i * elem, elem), b = kit_get(back + i * elem, elem);
		double x = value_of(log, a), y = value_of(log, b);
		/* Above 2^(E + 52) a double has no room for the half of 2^E. */
		bool near = isfinite(x) && isfinite(y) && fabs(x - y) <= ldexp(0.5, E);
		bool exact = !isfinite(x) || fabs(x) >= ldexp(1, E + (int)m);
		if (exact ? a != b : !near)
			fail_msg("2^%d: %a (%llx) became %a (%llx)", E, x, (unsigned long long)a, y,
			         (unsigned long long)b);
	}
	for (size_t i = size / elem * elem; i < size; i++)
		assert_int_equal(data[i], back[i]);
}

static void test_lossy(void **state)
{
	(void)state;
	rng r = {seed + 5};
	static const char *const floats[] = {"", "<f2", "<f4", "<f8"};
	static uint8_t data[ROOM], chunk[ROOM], back[ROOM];
	for (unsigned i = 0; i < 600; i++) {
		unsigned log = 1 + i % 3, elem = 1u << log;
		int b = log == 1 ? 15 : log == 2 ? 127 : 1023;
		int m = log == 1 ? 10 : log == 2 ? 23 : 52;
		int E = 2 - b - m + (int)rng_below(&r, (uint64_t)(2 * b + m - 1));
		if (i % 2)
			E = -(int)rng_below(&r, 10);
		size_t size = (size_t)rng_below(&r, 20000), got;
		for (size_t k = 0; k < size; k++)
			data[k] = (uint8_t)(rng_next(&r) >> 20);
		/* Exponents near those of the step, and near the ends. */
		for (size_t k = 0; k + elem <= size; k += elem) {
			int e = E + b - 4 + (int)rng_below(&r, (uint64_t)m + 8);
			uint64_t v = kit_get(data + k, elem);
			v = (v & kit_low((unsigned)m)) | (v >> (8 * elem - 1) << (8 * elem - 1)) |
			    (uint64_t)(e < 0           ? 0
			               : e > 2 * b + 1 ? 2 * b + 1
			                               : e)
			            << m;
			if (rng_below(&r, 8) && i % 4)
				kit_put(data + k, v, elem);
			else if (rng_below(&r, 3) == 0)
				kit_put(data + k, v & ~kit_low((unsigned)m), elem);
		}
		char text[160];
		/* A half more than 2^E is taken for it, where that is a number. */
		double delta = ldexp(i % 3 ? 1 : 1.5, E);
		snprintf(text, sizeof text, "bitcomp(%s,mode=%s,delta=%.17g)", floats[log],
		         i / 3 % 2 ? "lossy_signed" : "lossy_unsigned", delta);
		codec c = codec_open(text);
		lade_error err = {0};
		assert_true(c.stage.algorithm->is_lossy(&c.stage));
		guard out = guard_new(codec_bound(&c, size), 1);
		assert_status(codec_encode(&c, data, size, out.data, out.size, &got, &err), LADE_OK,
		              err);
		memcpy(chunk, out.data, got);
		guard_free(&out);
		decode_alike(&c, chunk, got, size);
		size_t coded = got;
		assert_status(codec_decode(&c, chunk, coded, back, size, &got, &err), LADE_OK, err);
		check_lossy(log, E, data, back, size);
		codec_close(&c);
	}
}

static void test_lossy_saves(void **state)
{
	(void)state;
	enum { COUNT = 16384 };
	static float wave[COUNT];
	static uint8_t chunk[5 * COUNT];
	for (size_t i = 0; i < COUNT; i++)
		wave[i] = 100 + 40 * (float)sin((double)i / 50);
	wave[777] = NAN;
	codec c = codec_open("bitcomp(<f4,mode=lossy_signed,delta=0.1)");
	size_t got;
	assert_int_equal(codec_encode(&c, wave, sizeof wave, chunk, sizeof chunk, &got, NULL),
	                 LADE_OK);
	if (got > sizeof wave / 6)
		fail_msg("%zu of %zu bytes", got, sizeof wave);
	codec_close(&c);
}

static void test_options(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		lade_status status;
	} cases[] = {
		{"bitcomp(<f4,mode=lossy_signed)", LADE_E_ARG},
		{"bitcomp(<f4,mode=lossy_signed,delta=-1)", LADE_E_ARG},
		{"bitcomp(<f2,mode=lossy_unsigned,delta=70000)", LADE_E_ARG},
		{"bitcomp(<f2,mode=lossy_unsigned,delta=1e-9)", LADE_E_ARG},
		{"bitcomp(<i4,mode=lossy_signed,delta=1)", LADE_E_DTYPE},
		{"bitcomp(bfloat16,mode=lossy_signed,delta=1)", LADE_E_DTYPE},
		{"bitcomp(<f4,delta=1)", LADE_E_ARG},
		{"bitcomp(bfloat16)", LADE_OK},
		{"bitcomp(|b1,algorithm=sparse)", LADE_OK},
		{"bitcomp(<f2,mode=lossy_unsigned,delta=32768)", LADE_OK},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lade_spec *spec = NULL;
		lade_error err = {0};
		lade_status status = lade_spec_parse(NULL, cases[i].text, &spec, &err);
		if (status != cases[i].status)
			fail_msg("%s: %s (%s)", cases[i].text, lade_status_name(status),
			         err.message);
		lade_spec_unref(spec);
	}
}

/* The message names the steps that there are. */
static void test_delta_out_of_range(void **state)
{
	(void)state;
	lade_spec *spec = NULL;
	lade_error err = {0};
	assert_int_equal(lade_spec_parse(NULL, "bitcomp(<f4,mode=lossy_signed,delta=1e-46)", &spec,
	                                 &err),
	                 LADE_E_ARG);
	assert_string_equal(err.message,
	                    "bitcomp: delta is 1e-46, want at least 2.80259693e-45 and "
	                    "less than 3.40282367e+38 for <f4");
	/* What it names is taken. */
	static const char *const least[] = {
		"bitcomp(<f2,mode=lossy_signed,delta=1.1920929e-07)",
		"bitcomp(<f4,mode=lossy_signed,delta=2.80259693e-45)"};
	for (size_t i = 0; i < 2; i++) {
		assert_status(lade_spec_parse(NULL, least[i], &spec, &err), LADE_OK, err);
		lade_spec_unref(spec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_delta_out_of_range),
		cmocka_unit_test(test_encoders),      cmocka_unit_test(test_modes_pay),
		cmocka_unit_test(test_any_chunks),    cmocka_unit_test(test_damaged_chunks),
		cmocka_unit_test(test_header_values), cmocka_unit_test(test_ranges_and_parts),
		cmocka_unit_test(test_lossy),         cmocka_unit_test(test_lossy_saves),
		cmocka_unit_test(test_options),       cmocka_unit_test(test_all_widths),
	};
	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
