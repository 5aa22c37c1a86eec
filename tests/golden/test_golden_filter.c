/*
 * test_golden_filter.c: the filters against stored bytes: what numcodecs wrote
 * (filter/numcodecs.txt), what nvCOMP wrote (filter/nvcomp.txt), and the examples of
 * docs/format/filters.md.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lade/lade.h>

#define BYTES_MAX 4096

static size_t from_hex(const char *text, uint8_t *out)
{
	size_t n = strlen(text) / 2;
	assert_true(n <= BYTES_MAX && strlen(text) % 2 == 0);
	for (size_t i = 0; i < n; i++) {
		unsigned byte;
		assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
		out[i] = (uint8_t)byte;
	}
	return n;
}

static void check(const char *text, const char *plain_hex, const char *encoded_hex,
                  const char *decoded_hex)
{
	static uint8_t plain[BYTES_MAX], encoded[BYTES_MAX], decoded[BYTES_MAX], out[2 * BYTES_MAX];
	size_t plain_size = from_hex(plain_hex, plain),
	       encoded_size = from_hex(encoded_hex, encoded);
	size_t decoded_size = from_hex(decoded_hex, decoded), size;
	lade_engine *engine = lade_engine_default();
	lade_spec *spec;
	lade_error err;
	if (lade_spec_parse(NULL, text, &spec, &err) != LADE_OK ||
	    lade_encode(engine, spec, lade_host_cspan(plain, plain_size),
	                lade_host_span(out, sizeof out), &size, &err) != LADE_OK)
		fail_msg("%s: %s", text, err.message);
	if (size != encoded_size || memcmp(out, encoded, size))
		fail_msg("%s: other bytes", text);
	if (lade_decode(engine, spec, lade_host_cspan(encoded, encoded_size),
	                lade_host_span(out, decoded_size), &size, &err) !=
	    LADE_OK)
		fail_msg("%s: %s", text, err.message);
	if (size != decoded_size || memcmp(out, decoded, size))
		fail_msg("%s: decodes to other bytes", text);
	lade_spec_unref(spec);
}

static void what_numcodecs_wrote(void **state)
{
	static char line[8 * BYTES_MAX];
	FILE *file = fopen(LADE_TESTS_DIR "/golden/filter/numcodecs.txt", "r");
	size_t cases = 0;
	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		char *field[4], *at = line;
		if (line[0] == '#')
			continue;
		for (size_t i = 0; i < 4; i++)
			assert_non_null(field[i] = strtok(i ? NULL : at, " \n"));
		check(field[0], field[1], field[2], field[3]);
		cases++;
	}
	fclose(file);
	assert_int_equal(cases, 17);
}

static void examples_of_the_document(void **state)
{
	(void)state;
	check("shuffle(2)", "01a102a203a3ff", "010203a1a2a3ff", "01a102a203a3ff");
	check("bitshuffle(1)", "0100000000000080ee", "0100000000000080ee", "0100000000000080ee");
	check("bitshuffle(1)", "0102030405060708", "5566788000000000", "0102030405060708");
	check("bitshuffle(1,order=msb)", "0102030405060708", "0000000080786655",
	      "0102030405060708");
	check("bitshuffle(1,order=msb,block=8)", "0102030405060708010203", "0000000080786655010203",
	      "0102030405060708010203");
	check("bitshuffle(2,order=msb,block=8192)",
	      "0001010102010301040105010601070108010901"
	      "0a010b010c01",
	      "00000000000000ff0000000000f0ccaa08010901"
	      "0a010b010c01",
	      "0001010102010301040105010601070108010901"
	      "0a010b010c01");
	check("bitshuffle(2,block=16)",
	      "01000200030004000500060007000800"
	      "0080008000800080008000800080008009000a00",
	      "55667880000000000000000000000000"
	      "000000000000000000000000000000ff09000a00",
	      "01000200030004000500060007000800008000800080008000800080008000800900"
	      "0a00");
	check("delta(u1)", "0a0c09ff", "0a02fdf6", "0a0c09ff");
	check("zigzag(i1)", "00ff01fe7f80", "00010203feff", "00ff01fe7f80");
	check("split(4)", "0011223344556677", "0044115522663377", "0011223344556677");
	check("scaleoffset(i2,scale=3,offset=10)", "14000a00", "1e000000", "14000a00");
	check("packbits", "0001010101010000", "007c", "0001010101010000");
	check("packbits", "010001", "05a0", "010001");
	check("packbits", "", "00", "");
	check("byteswap(4)", "0011223344556677", "3322110077665544", "0011223344556677");
	check("astype(bfloat16,astype=f4)", "803f00c1", "0000803f000000c1", "803f00c1");
	/* E4M3: 1, -448 (the largest), 2^-9 (the smallest). */
	check("astype(float8_e4m3,astype=f4)", "38fe01", "0000803f0000e0c30000003b", "38fe01");
}

/* Each bit is bit 'round' of its place, so that 20 rounds tell where every bit goes. */
static uint32_t pattern_crc(const char *text, size_t size)
{
	uint8_t *plain = malloc(size), *all = malloc(20 * size), *back = malloc(size);
	lade_engine *engine = lade_engine_default();
	lade_spec *spec;
	size_t n;
	assert_int_equal(lade_spec_parse(NULL, text, &spec, NULL), LADE_OK);
	for (unsigned round = 0; round < 20; round++) {
		memset(plain, 0, size);
		for (size_t i = 0; i < 8 * size; i++)
			plain[i / 8] |= (uint8_t)((i >> round & 1) << (i & 7));
		uint8_t *to = all + round * size;
		assert_int_equal(lade_encode(engine, spec, lade_host_cspan(plain, size),
		                             lade_host_span(to, size), &n, NULL),
		                 LADE_OK);
		assert_int_equal(n, size);
		assert_int_equal(lade_decode(engine, spec, lade_host_cspan(to, size),
		                             lade_host_span(back, size), &n, NULL),
		                 LADE_OK);
		assert_memory_equal(back, plain, size);
	}
	uint32_t crc = (uint32_t)lade_checksum_of(LADE_CRC32, all, 20 * size);
	lade_spec_unref(spec);
	free(plain);
	free(all);
	free(back);
	return crc;
}

static void what_nvcomp_wrote(void **state)
{
	static char line[8 * BYTES_MAX], spec[96], plain[BYTES_MAX], encoded[BYTES_MAX];
	FILE *file = fopen(LADE_TESTS_DIR "/golden/filter/nvcomp.txt", "r");
	size_t cases = 0, size;
	unsigned crc;
	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		if (line[0] == '#')
			continue;
		if (sscanf(line, "pattern %95s %zu %x", spec, &size, &crc) == 3) {
			if (pattern_crc(spec, size) != crc)
				fail_msg("%s: other bits than nvCOMP's for %zu bytes", spec, size);
		} else {
			assert_int_equal(sscanf(line, "%95s %4095s %4095s", spec, plain, encoded),
			                 3);
			check(spec, plain, encoded, plain);
		}
		cases++;
	}
	fclose(file);
	assert_int_equal(cases, 46);
}

static void bad_packbits(void **state)
{
	(void)state;
	static const struct {
		const char *hex;
		lade_status status;
	} cases[] = {{"", LADE_E_TRUNCATED}, {"08ff", LADE_E_CORRUPT}, {"ffff", LADE_E_CORRUPT},
	             {"01", LADE_E_CORRUPT}};
	lade_spec *spec;
	assert_int_equal(lade_spec_parse(NULL, "packbits", &spec, NULL), LADE_OK);
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		uint8_t src[8], out[64];
		size_t size, n = from_hex(cases[c].hex, src);
		assert_int_equal(lade_decode(lade_engine_default(), spec, lade_host_cspan(src, n),
		                             lade_host_span(out, sizeof out), &size, NULL),
		                 cases[c].status);
	}
	lade_spec_unref(spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_numcodecs_wrote),
		cmocka_unit_test(examples_of_the_document),
		cmocka_unit_test(what_nvcomp_wrote),
		cmocka_unit_test(bad_packbits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
