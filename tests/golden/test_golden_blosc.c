/*
 * test_golden_blosc.c: stored Blosc1 containers of other writers (tests/golden/blosc/ORIGIN.md).
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

enum { A_SIZE = 16000, B_SIZE = 200000, FILE_MAX = 20000 };

static uint8_t data_a[A_SIZE], data_b[B_SIZE];

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < A_SIZE / 4; i++) {
		size_t v = i * i / 7 + 1000;
		for (size_t k = 0; k < 4; k++)
			data_a[4 * i + k] = (uint8_t)(v >> 8 * k);
	}
	for (size_t i = 0; i < B_SIZE; i++)
		data_b[i] = (uint8_t)(i / 3000);
	return 0;
}

static size_t load(const char *name, uint8_t *out)
{
	char path[512];
	snprintf(path, sizeof path, "%s/golden/blosc/%s", LADE_TESTS_DIR, name);
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s cannot be read", path);
	size_t n = fread(out, 1, FILE_MAX, f);
	fclose(f);
	return n;
}

/* Decodes a file at each CPU level, on one thread and on several, into 'size' bytes exactly. */
static lade_status decode(const char *name, guard *out, size_t *size, lade_cpu cpu,
                          unsigned threads, lade_error *err)
{
	uint8_t stored[FILE_MAX];
	guard in = {0};
	lade_engine_options options = {
		.struct_size = sizeof options, .cpu = cpu, .threads = threads};
	lade_engine *engine;
	lade_spec *spec;
	size_t n = load(name, stored);
	in = guard_copy(stored, n, 1);
	assert_int_equal(lade_engine_new(&options, &engine, err), LADE_OK);
	assert_int_equal(lade_spec_parse(engine, "blosc", &spec, err), LADE_OK);
	lade_status status = lade_decode(engine, spec, lade_host_cspan(in.data, n),
	                                 lade_host_span(out->data, out->size), size, err);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	guard_free(&in);
	return status;
}

static void test_good(void **state)
{
	(void)state;
	const struct {
		const char *name;
		const uint8_t *want;
		size_t size;
	} good[] = {
		{"numcodecs-blosclz-1-0", data_a, A_SIZE},
		{"numcodecs-lz4-1-0", data_a, A_SIZE},
		{"numcodecs-lz4hc-2-0", data_a, A_SIZE},
		{"numcodecs-zlib-1-4096", data_a, A_SIZE},
		{"numcodecs-zstd-1-2048", data_a, A_SIZE},
		{"numcodecs-zstd-2-0", data_a, A_SIZE},
		{"python-blosc-blosclz-1", data_b, B_SIZE},
		{"python-blosc-lz4-2", data_b, B_SIZE},
		{"python-blosc-zstd-1", data_b, B_SIZE},
		{"c-blosc-snappy-1", data_a, A_SIZE},
		{"c-blosc-stored", data_a, 400},
	};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
			lade_error err = {0};
			size_t n = 0;
			guard out = guard_new(good[i].size, 1);
			if (decode(good[i].name, &out, &n, cpu, 1 + cpu % 3, &err) != LADE_OK)
				fail_msg("%s: %s", good[i].name, err.message);
			assert_int_equal(n, good[i].size);
			assert_memory_equal(out.data, good[i].want, n);
			guard_free(&out);
		}
	}
}

static void test_bad(void **state)
{
	(void)state;
	lade_error err = {0};
	size_t n;
	guard out = guard_new(A_SIZE, 1);
	assert_int_equal(decode("bad-blosc2", &out, &n, LADE_CPU_AUTO, 1, &err),
	                 LADE_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "Blosc2"));
	assert_int_equal(decode("bad-start", &out, &n, LADE_CPU_AUTO, 1, &err), LADE_E_CORRUPT);
	assert_int_equal(err.offset, 16);
	assert_int_equal(n, 0);
	guard_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
