/*
 * test_golden_checksums.c: checksum stages whose bytes numcodecs 0.16.6 wrote.
 *
 * The data is | 0, 7, 14, ... | modulo 251, 'size' bytes; only the checksum's four bytes are
 * kept here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "guard.h"

#include <lade/batch.h>
#include <lade/checksum.h>

static const struct {
	const char *spec;
	size_t size;
	uint8_t stored[4];
} golden[] = {
	{"crc32(start)", 1, {0x8D, 0xEF, 0x02, 0xD2}},
	{"crc32(start)", 2, {0x5C, 0x87, 0xBD, 0xDF}},
	{"crc32(start)", 9, {0x8B, 0xF3, 0xFA, 0x23}},
	{"crc32(start)", 721, {0x80, 0x21, 0x15, 0xCF}},
	{"crc32(start)", 3000, {0x22, 0x2E, 0x63, 0x84}},
	{"crc32", 1, {0x8D, 0xEF, 0x02, 0xD2}},
	{"crc32", 2, {0x5C, 0x87, 0xBD, 0xDF}},
	{"crc32", 9, {0x8B, 0xF3, 0xFA, 0x23}},
	{"crc32", 721, {0x80, 0x21, 0x15, 0xCF}},
	{"crc32", 3000, {0x22, 0x2E, 0x63, 0x84}},
	{"crc32c", 1, {0x51, 0x53, 0x7D, 0x52}},
	{"crc32c", 2, {0x39, 0x13, 0xAB, 0x25}},
	{"crc32c", 9, {0xF3, 0x25, 0x15, 0x87}},
	{"crc32c", 721, {0x46, 0xB6, 0xC4, 0x27}},
	{"crc32c", 3000, {0x66, 0x93, 0xC6, 0xAD}},
	{"crc32c(start)", 1, {0x51, 0x53, 0x7D, 0x52}},
	{"crc32c(start)", 2, {0x39, 0x13, 0xAB, 0x25}},
	{"crc32c(start)", 9, {0xF3, 0x25, 0x15, 0x87}},
	{"crc32c(start)", 721, {0x46, 0xB6, 0xC4, 0x27}},
	{"crc32c(start)", 3000, {0x66, 0x93, 0xC6, 0xAD}},
	{"adler32(start)", 1, {0x01, 0x00, 0x01, 0x00}},
	{"adler32(start)", 2, {0x08, 0x00, 0x09, 0x00}},
	{"adler32(start)", 9, {0xFD, 0x00, 0x51, 0x03}},
	{"adler32(start)", 721, {0xCD, 0x5E, 0xD7, 0x49}},
	{"adler32(start)", 3000, {0x5E, 0xB5, 0x39, 0x6C}},
	{"adler32", 1, {0x01, 0x00, 0x01, 0x00}},
	{"adler32", 2, {0x08, 0x00, 0x09, 0x00}},
	{"adler32", 9, {0xFD, 0x00, 0x51, 0x03}},
	{"adler32", 721, {0xCD, 0x5E, 0xD7, 0x49}},
	{"adler32", 3000, {0x5E, 0xB5, 0x39, 0x6C}},
	{"fletcher32", 1, {0x00, 0x00, 0x00, 0x00}},
	{"fletcher32", 2, {0x07, 0x00, 0x07, 0x00}},
	{"fletcher32", 9, {0x70, 0x8C, 0x43, 0x19}},
	{"fletcher32", 721, {0x80, 0x9C, 0xF9, 0x9E}},
	{"fletcher32", 3000, {0x51, 0x7B, 0x30, 0xBB}},
};

static void test_stages(void **state)
{
	(void)state;
	uint8_t data[3000], back[3000];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 % 251);
	lade_engine *engine = lade_engine_default();
	for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
		lade_error err = {0};
		lade_spec *spec;
		size_t size = golden[i].size, n;
		bool start = strstr(golden[i].spec, "start");
		guard out = guard_new(size + 4, 1);
		assert_int_equal(lade_spec_parse(engine, golden[i].spec, &spec, &err), LADE_OK);
		assert_int_equal(
			lade_encode(engine, spec, lade_host_cspan(data, size),
			            lade_host_span(out.data, size + 4), &n, &err),
			LADE_OK);
		assert_int_equal(n, size + 4);
		if (memcmp(out.data + (start ? 0 : size), golden[i].stored, 4))
			fail_msg("%s of %zu bytes", golden[i].spec, size);
		assert_memory_equal(out.data + (start ? 4 : 0), data, size);
		assert_int_equal(
			lade_decode(engine, spec, lade_host_cspan(out.data, size + 4),
			            lade_host_span(back, size), &n, &err),
			LADE_OK);
		assert_memory_equal(back, data, size);
		out.data[size / 2] ^= 1;
		assert_int_equal(
			lade_decode(engine, spec, lade_host_cspan(out.data, size + 4),
			            lade_host_span(back, size), &n, &err),
			LADE_E_CHECKSUM);
		lade_spec_unref(spec);
		guard_free(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
