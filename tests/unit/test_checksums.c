/*
 * test_checksums.c: checksums in batches: what the threads give is what one thread gives, and bad
 * spans are refused before any is read.
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

enum { POOL = 1 << 20 };

static uint8_t *pool;

static int setup(void **state)
{
	(void)state;
	rng r = {4711};
	pool = malloc(POOL);
	for (size_t i = 0; i < POOL; i++)
		pool[i] = (uint8_t)rng_next(&r);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(pool);
	return 0;
}

static void test_batches(void **state)
{
	(void)state;
	rng r = {4712};
	enum { COUNT = 3000 };
	lade_cspan *spans = calloc(COUNT, sizeof *spans);
	uint64_t *sums = calloc(COUNT + 1, sizeof *sums);
	for (unsigned threads = 1; threads <= 4; threads++) {
		lade_engine_options options = {.struct_size = sizeof options, .threads = threads};
		lade_engine *engine;
		assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_OK);
		for (int kind = LADE_CRC32; kind <= LADE_FLETCHER32; kind++) {
			size_t count = (size_t)rng_below(&r, COUNT + 1);
			size_t longest = rng_below(&r, 2) ? 200 : 20000;
			for (size_t i = 0; i < count; i++) {
				size_t size = (size_t)rng_below(&r, longest);
				spans[i] = lade_host_cspan(pool + rng_below(&r, POOL - size), size);
				if (size == 0)
					spans[i].data = NULL;
			}
			memset(sums, 0x5A, (COUNT + 1) * sizeof *sums);
			assert_int_equal(lade_checksums(engine, (lade_checksum)kind, spans, count,
			                                sums, NULL),
			                 LADE_OK);
			for (size_t i = 0; i < count; i++)
				assert_int_equal(sums[i],
				                 lade_checksum_of((lade_checksum)kind,
				                                  spans[i].data, spans[i].size));
			assert_int_equal(sums[count], 0x5A5A5A5A5A5A5A5A);
		}
		lade_engine_free(engine);
	}
	free(spans);
	free(sums);
}

static void test_refusals(void **state)
{
	(void)state;
	lade_engine *engine = lade_engine_default();
	lade_error err = {0};
	uint64_t sums[3] = {7, 7, 7};
	lade_cspan spans[3] = {lade_host_cspan(pool, 9), lade_host_cspan(NULL, 0),
	                       lade_host_cspan(NULL, 5)};
	assert_int_equal(lade_checksums(engine, LADE_CRC32, spans, 3, sums, &err), LADE_E_ARG);
	assert_non_null(strstr(err.message, "span 2"));
	spans[2].place.kind = LADE_DEVICE;
	spans[2].data = pool;
	assert_int_equal(lade_checksums(engine, LADE_CRC32, spans, 3, sums, &err),
	                 LADE_E_NO_DEVICE);
	assert_int_equal(lade_checksums(engine, LADE_CHECKSUM_NONE, spans, 2, sums, &err),
	                 LADE_E_ARG);
	assert_int_equal(lade_checksums(engine, (lade_checksum)17, spans, 2, sums, NULL),
	                 LADE_E_ARG);
	assert_int_equal(lade_checksums(NULL, LADE_CRC32, spans, 2, sums, &err), LADE_E_ARG);
	assert_int_equal(lade_checksums(engine, LADE_CRC32, NULL, 2, sums, &err), LADE_E_ARG);
	assert_int_equal(lade_checksums(engine, LADE_CRC32, spans, 2, NULL, &err), LADE_E_ARG);
	assert_int_equal(sums[0], 7);
	assert_int_equal(lade_checksums(engine, LADE_CRC32, NULL, 0, NULL, &err), LADE_OK);
	/* Pinned memory is read like any of the host's. */
	spans[0].place.kind = LADE_PINNED;
	assert_int_equal(lade_checksums(engine, LADE_CRC32, spans, 2, sums, &err), LADE_OK);
	assert_int_equal(sums[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
