/*
 * test_codec_opened.c: bz2 and lzma, whose libraries are opened at run time: streams that Python
 * 3.11 wrote, round trips at edges, several streams, bytes behind a stream, and memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"

static const char *const specs[] = {
	"bz2(1)",
	"bz2",
	"lzma(0)",
	"lzma(1,check=sha256,delta=4)",
	"lzma(0,format=alone)",
	"lzma(0,format=raw,dict=65536)",
	"lzma(0,format=raw1,lc=0,lp=2,pb=0)",
};
#define SPECS (sizeof specs / sizeof specs[0])

static void round_trips(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 2, 63, 1000, 65536, 100003};
	rng r = {7};
	for (size_t i = 0; i < SPECS; i++) {
		codec c = codec_open(specs[i]);
		for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
			size_t cap = c.stage.algorithm->bound(&c.stage, sizes[k]), size, got;
			guard in = guard_new(sizes[k], 1), packed = guard_new(cap, 1);
			guard out = guard_new(sizes[k], 1);
			lade_error err = {0};
			data_fill(in.data, sizes[k], (int)(k % DATA_KINDS), &r);
			if (codec_encode(&c, in.data, sizes[k], packed.data, cap, &size, &err) ||
			    codec_decode(&c, packed.data, size, out.data, sizes[k], &got, &err))
				fail_msg("%s, %zu bytes: %s", specs[i], sizes[k], err.message);
			assert_int_equal(got, sizes[k]);
			assert_memory_equal(in.data, out.data, got);
			/* One byte too little on either side. */
			assert_int_equal(codec_encode(&c, in.data, sizes[k], packed.data, size - 1,
			                              &got, &err),
			                 LADE_E_NOSPACE);
			codec_encode(&c, in.data, sizes[k], packed.data, cap, &size, &err);
			if (sizes[k])
				assert_int_equal(codec_decode(&c, packed.data, size, out.data,
				                              sizes[k] - 1, &got, &err),
				                 LADE_E_NOSPACE);
			guard_free(&in);
			guard_free(&packed);
			guard_free(&out);
		}
		codec_close(&c);
	}
}

static size_t unhex(const char *hex, uint8_t *to)
{
	size_t size = 0;
	for (; hex[0]; hex += 2, size++) {
		char two[3] = {hex[0], hex[1], 0};
		to[size] = (uint8_t)strtoul(two, NULL, 16);
	}
	return size;
}

/* Python's bz2 and lzma modules encoded b"liblade" * 5. */
static const char *const python_streams[][2] = {
	{"bz2", "425a68393141592653595350d0a300001101003624200030c00450c952a6a44e48953c"
                "5dc914e142414d43428c"},
	{"lzma", "fd377a585a000004e6d6b4460200210116000000742fe5a3e00022000d5d00361a486a"
                 "d718177e527c13300000000000e8e8d8398f8c45e100012923b25ba7c61fb6f37d0100"
                 "00000004595a"},
	{"lzma(format=alone)",
         "5d00008000ffffffffffffffff00361a486ad718177e527cb7e2e7ffffb2900000"},
	{"lzma(format=raw,delta=7)", "e00022000e5d00361a486ad71817771fbf22b5800000"},
	{"lzma(format=raw1,lc=0,lp=2,pb=0)", "00361b1b71095a5d23674add0c9bffffe1b60000"},
};

static void streams_of_python(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof python_streams / sizeof python_streams[0]; i++) {
		const char *spec = python_streams[i][0];
		codec c = codec_open(spec);
		uint8_t bytes[400], out[80];
		size_t size = unhex(python_streams[i][1], bytes), got;
		lade_error err = {0};
		if (codec_decode(&c, bytes, size, out, sizeof out, &got, &err))
			fail_msg("%s: %s", spec, err.message);
		assert_int_equal(got, 35);
		assert_memory_equal(out, "libladelibladelibladelibladeliblade", 35);
		/* A second stream is fine in .bz2 and .xz; others are one. */
		memcpy(bytes + size, bytes, size);
		lade_status status = codec_decode(&c, bytes, 2 * size, out, sizeof out, &got, &err);
		assert_int_equal(status, i < 2 ? LADE_OK : LADE_E_CORRUPT);
		assert_int_equal(got, i < 2 ? 70 : 0);
		memset(bytes + size, 'x', 16);
		assert_int_equal(codec_decode(&c, bytes, size + 16, out, sizeof out, &got, &err),
		                 LADE_E_CORRUPT);
		assert_true(err.offset <= size + 16);
		codec_close(&c);
	}
}

/* A header of .lzma that asks for a dictionary of 4 GiB. */
static void memory_is_capped(void **state)
{
	(void)state;
	codec c = codec_open("lzma(format=alone)");
	uint8_t bytes[400], out[80];
	size_t size = unhex(python_streams[2][1], bytes), got;
	lade_error err = {0};
	memset(bytes + 1, 0xFF, 4);
	assert_int_equal(codec_decode(&c, bytes, size, out, sizeof out, &got, &err), LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "at most 134217728"));
	codec_close(&c);
}

static void bad_options(void **state)
{
	(void)state;
	static const char *const texts[] = {"bz2(0)",          "bz2(10)",
	                                    "lzma(10)",        "lzma(lc=3,lp=2)",
	                                    "lzma(dict=4095)", "lzma(format=alone,delta=1)",
	                                    "lzma(format=zip)"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		lade_spec *spec;
		assert_int_not_equal(lade_spec_parse(NULL, texts[i], &spec, NULL), LADE_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(streams_of_python),
		cmocka_unit_test(memory_is_capped),
		cmocka_unit_test(bad_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
