/*
 * test_oom_rntuple.c: every allocation of opening and reading an RNTuple fails in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "oom.h"

#include <lade/rntuple.h>

#include <stdio.h>

enum { COLUMNS_MAX = 64, RESULT_SIZE = 1 << 16 };

static uint8_t result[RESULT_SIZE];

/* The first column, cluster by cluster. */
static lade_status read_steps(lade_rntuple *tuple, const lade_rntuple_read_options *read,
                              lade_error *err)
{
	const uint64_t column = 0;
	lade_rntuple_steps_options options = {.struct_size = sizeof options, .read = read};
	lade_rntuple_step step = {.struct_size = sizeof step};
	lade_rntuple_steps *steps = NULL;
	lade_status status = lade_rntuple_steps_new(tuple, &column, 1, &options, &steps, err);
	while (status == LADE_OK) {
		status = lade_rntuple_steps_next(steps, &step, err);
		if (step.entries.count == 0)
			break;
	}
	lade_rntuple_steps_free(steps);
	return status;
}

/* All columns, and the elements of some entries. */
static lade_status read_all(lade_rntuple *tuple, lade_engine *engine, lade_error *err)
{
	lade_rntuple_target targets[COLUMNS_MAX];
	lade_rntuple_read_options options = {
		.struct_size = sizeof options, .target_size = sizeof *targets, .engine = engine};
	lade_rntuple_part entries = {1, 1}, part;
	size_t count = (size_t)lade_rntuple_about(tuple)->column_count, at = 0;
	for (size_t i = 0; i < count; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(tuple, i);
		size_t size = (size_t)(c->element_count + 1) * c->elem_size;
		targets[i] = (lade_rntuple_target){i, 0, c->element_count,
		                                   lade_host_span(result + at, size)};
		at += size;
	}
	assert_true(at <= RESULT_SIZE);
	lade_status status = lade_rntuple_read(tuple, targets, count, &options, NULL, err);
	if (status == LADE_OK)
		status = lade_rntuple_elements(tuple, count - 1, entries, &options, &part, err);
	return status == LADE_OK ? read_steps(tuple, &options, err) : status;
}

/* With an engine of its own, which keeps nothing for the next. */
static lade_status use(void *ctx, lade_error *err)
{
	const char *path = ctx;
	const lade_engine_options engine_options = {.struct_size = sizeof engine_options,
	                                            .threads = 2};
	lade_rntuple_options options = {.struct_size = sizeof options};
	lade_rntuple *tuple = NULL;
	lade_source source;
	lade_status status = lade_engine_new(&engine_options, &options.engine, err);
	if (status != LADE_OK)
		return status;
	status = lade_source_file_open(path, NULL, &source, err);
	if (status == LADE_OK) {
		status = lade_rntuple_open(source, &options, &tuple, err);
		if (status != LADE_OK)
			lade_source_close(source);
	}
	if (status == LADE_OK)
		status = read_all(tuple, options.engine, err);
	lade_rntuple_unref(tuple);
	lade_engine_free(options.engine);
	return status;
}

static void opens_and_reads(void **state)
{
	static const char *const names[] = {"test_extension_columns", "test_stl_containers",
	                                    "test_float_types"};
	char path[512];
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path,
		         LADE_TESTS_DIR "/golden/rntuple/%s_rntuple_v1-0-0-0.root", names[i]);
		assert_true(oom_run(names[i], use, path) > 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(opens_and_reads)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
