/*
 * test_suggest.c: lade_measure() and lade_suggest().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT ((size_t)30000)
static uint32_t ramp[COUNT], noise[COUNT];

static lade_engine *engine_of(unsigned threads)
{
	lade_engine_options options = {.struct_size = sizeof options, .threads = threads};
	lade_engine *engine = NULL;

	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_OK);
	return engine;
}

static int fill(void **state)
{
	uint32_t x = 12345;

	for (size_t i = 0; i < COUNT; i++) {
		x = x * 1664525 + 1013904223;
		ramp[i] = (uint32_t)i * 1000 + (x >> 26);
		/* The low bits of such a generator repeat; the high ones do not. */
		noise[i] = x >> 16 | (x * 2654435761u & 0xFFFF0000u);
	}
	*state = engine_of(2);
	return 0;
}

static int empty(void **state)
{
	lade_engine_free(*state);
	return 0;
}

static lade_spec *spec_of(const char *text)
{
	lade_spec *spec = NULL;

	assert_int_equal(lade_spec_parse(NULL, text, &spec, NULL), LADE_OK);
	return spec;
}

static void measured_sizes_are_those_of_the_chunks(void **state)
{
	lade_measure_options options = {.struct_size = sizeof options, .chunk_size = 50000};
	lade_cspan data = lade_host_cspan(ramp, sizeof ramp);
	lade_spec *copy = spec_of("copy"), *zstd = spec_of("shuffle(4)|zstd");
	lade_spec *lossy = spec_of("bitround(<f4,keepbits=9)|lz4");
	lade_measurement m;
	lade_error err;

	assert_int_equal(lade_measure(*state, copy, data, &options, &m, &err), LADE_OK);
	assert_int_equal(m.size, sizeof ramp);
	assert_int_equal(m.encoded_size, sizeof ramp);
	assert_int_equal(m.passes, 1);
	assert_true(m.encode_seconds > 0 && m.decode_seconds > 0 && !m.lossy);
	options.seconds = 0.002;
	assert_int_equal(lade_measure(*state, zstd, data, &options, &m, &err), LADE_OK);
	assert_true(m.encoded_size < sizeof ramp / 2 && m.passes >= 1);
	/* The sum of what each chunk encodes to. */
	uint64_t sum = 0;
	static uint8_t room[60000];
	for (size_t off = 0; off < sizeof ramp; off += 50000) {
		size_t left = sizeof ramp - off, got;
		lade_cspan chunk =
			lade_host_cspan((uint8_t *)ramp + off, left < 50000 ? left : 50000);
		assert_int_equal(lade_encode(*state, zstd, chunk,
		                             lade_host_span(room, sizeof room), &got, &err),
		                 LADE_OK);
		sum += got;
	}
	assert_int_equal(m.encoded_size, sum);
	assert_int_equal(lade_measure(*state, lossy, data, NULL, &m, &err), LADE_OK);
	assert_true(m.lossy);
	/* A chunk is no larger than the data, and so is what is taken for it. */
	options = (lade_measure_options){.struct_size = sizeof options,
	                                 .chunk_size = (size_t)1 << 50};
	assert_int_equal(lade_measure(*state, zstd, data, &options, &m, &err), LADE_OK);
	lade_spec_unref(copy);
	lade_spec_unref(zstd);
	lade_spec_unref(lossy);
}

static void what_cannot_be_measured(void **state)
{
	lade_spec *spec = spec_of("delta(<u4)|lz4");
	lade_measure_options options = {.struct_size = 3};
	lade_cspan data = lade_host_cspan(ramp, 4001);
	lade_measurement m;
	lade_suggestions *found = (lade_suggestions *)1;
	lade_error err;

	/* 4001 bytes are no elements of 4. */
	assert_int_not_equal(lade_measure(*state, spec, data, NULL, &m, &err), LADE_OK);
	assert_int_equal(m.size, 0);
	assert_int_equal(lade_measure(*state, spec, data, &options, &m, &err), LADE_E_ARG);
	assert_non_null(strstr(err.message, "struct_size is 3"));
	assert_int_equal(lade_measure(*state, NULL, data, NULL, &m, &err), LADE_E_ARG);
	assert_int_equal(lade_measure(NULL, spec, data, NULL, &m, &err), LADE_E_ARG);
	data.size = 0;
	assert_int_equal(lade_measure(*state, spec, data, NULL, &m, &err), LADE_E_ARG);
	assert_string_equal(err.message, "there are no bytes to measure");
	assert_int_equal(lade_suggest(*state, data, NULL, &found, &err), LADE_E_ARG);
	assert_null(found);
	data = (lade_cspan){ramp, sizeof ramp, {LADE_DEVICE, 3}};
	assert_int_equal(lade_suggest(*state, data, NULL, &found, &err), LADE_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "device 3"));
	lade_suggestions_free(NULL);
	lade_spec_unref(spec);
}

typedef struct told {
	size_t begun, failed;
} told;

static void count_told(void *ctx, const char *pipeline, const lade_error *failed)
{
	told *t = ctx;

	assert_true(strlen(pipeline) > 2);
	t->begun += failed == NULL;
	t->failed += failed != NULL;
}

static const lade_suggestion *best(const lade_suggestions *found, uint32_t goal)
{
	const lade_suggestion *one = NULL;

	for (size_t i = 0; i < found->count; i++) {
		if (found->items[i]->goals & goal) {
			assert_null(one);
			one = found->items[i];
		}
	}
	return one;
}

static void a_ramp_wants_differences(void **state)
{
	told t = {0};
	lade_suggest_options options = {.struct_size = sizeof options,
	                                .guess = true,
	                                .chunk_size = 20000,
	                                .sample_size = 64000,
	                                .seconds = 1e-4,
	                                .progress = count_told,
	                                .progress_ctx = &t};
	lade_suggestions *found;
	lade_error err;

	assert_int_equal(
		lade_suggest(*state, lade_host_cspan(ramp, sizeof ramp), &options, &found, &err),
		LADE_OK);
	assert_true(found->guessed && lade_dtype_size(found->dtype) == 4);
	assert_true(found->sample_size <= 64000 && found->sample_size > 56000);
	assert_true(found->count >= 14 && t.begun > found->count && t.failed == 0);
	const lade_suggestion *speed = best(found, LADE_GOAL_SPEED);
	const lade_suggestion *between = best(found, LADE_GOAL_BETWEEN);
	const lade_suggestion *ratio = best(found, LADE_GOAL_RATIO);
	assert_true(speed && between && ratio);
	for (size_t i = 0; i < found->count; i++) {
		const lade_measurement *m = found->items[i]->measured;
		assert_int_equal(m->size, found->sample_size);
		assert_true((double)ratio->measured->encoded_size <=
		            1.005 * (double)m->encoded_size);
	}
	/* By a filter, or by a codec that takes differences itself. */
	assert_true(strstr(lade_spec_text(ratio->spec), "delta") ||
	            strstr(lade_spec_text(ratio->spec), "cascaded"));
	lade_suggestions_free(found);
}

static void noise_wants_nothing(void **state)
{
	lade_suggest_options options = {.struct_size = sizeof options,
	                                .dtype = LADE_U4,
	                                .sample_size = 20000,
	                                .seconds = 1e-4};
	lade_suggestions *found;
	lade_error err;

	assert_int_equal(
		lade_suggest(*state, lade_host_cspan(noise, sizeof noise), &options, &found, &err),
		LADE_OK);
	assert_true(found->count > 0 && !found->guessed && found->dtype == LADE_U4);
	for (size_t i = 0; i < found->count; i++)
		assert_int_equal(found->items[i]->goals, 0);
	lade_suggestions_free(found);
	/* One byte is data, too; and elements that do not divide the data leave pipelines out. */
	assert_int_equal(lade_suggest(*state, lade_host_cspan(noise, 1), NULL, &found, &err),
	                 LADE_OK);
	lade_suggestions_free(found);
	options.dtype = LADE_U8;
	told t = {0};
	options.progress = count_told;
	options.progress_ctx = &t;
	assert_int_equal(lade_suggest(*state, lade_host_cspan(noise, 4001), &options, &found, &err),
	                 LADE_OK);
	assert_true(found->count >= 7);
	lade_suggestions_free(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measured_sizes_are_those_of_the_chunks),
		cmocka_unit_test(what_cannot_be_measured),
		cmocka_unit_test(a_ramp_wants_differences),
		cmocka_unit_test(noise_wants_nothing),
	};

	return cmocka_run_group_tests(tests, fill, empty);
}
