/*
 * test_rntuple_device.c: RNTuple reads into memory of devices, beside the same reads into host
 * memory, on the emulated device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/emulated_move.h"

#include "gpu/device.h"
#include "gpu/emulated.h"

#include <lade/rntuple.h>

#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS_MAX = 64, RESULT_SIZE = 1 << 16 };

static const lade_place places[] = {{LADE_DEVICE, 0}, {LADE_DEVICE, 1}, {LADE_PINNED, 0}};

/* All columns, one behind the other; returns their bytes. */
static size_t read_all(lade_rntuple *tuple, lade_span to, uint64_t skip, lade_where where)
{
	lade_rntuple_target targets[COLUMNS_MAX];
	lade_rntuple_read_options options = {
		.struct_size = sizeof options, .target_size = sizeof *targets, .where = where};
	size_t count = (size_t)lade_rntuple_about(tuple)->column_count, at = 0;
	lade_error err;
	for (size_t i = 0; i < count; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(tuple, i);
		uint64_t first = c->element_count < skip ? c->element_count : skip;
		uint64_t n = c->element_count - first;
		size_t size = (size_t)(n + 1) * c->elem_size;
		targets[i] = (lade_rntuple_target){
			i, first, n, {(uint8_t *)to.data + at, size, to.place}};
		at += (size_t)(n + (c->kind == LADE_RNTUPLE_OFFSETS)) * c->elem_size;
	}
	assert_true(at + 64 < to.size);
	if (lade_rntuple_read(tuple, targets, count, &options, NULL, &err))
		fail_msg("%s", err.message);
	return at;
}

static void all_places_get_the_same(void **state)
{
	static const char *const names[] = {"test_extension_columns", "test_stl_containers",
	                                    "test_float_types", "test_index_multicluster",
	                                    "test_multiple_representations"};
	uint8_t *host = calloc(2, RESULT_SIZE), *back = host + RESULT_SIZE;
	char path[512];
	(void)state;
	assert_non_null(host);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		lade_rntuple *tuple;
		lade_source source;
		snprintf(path, sizeof path,
		         LADE_TESTS_DIR "/golden/rntuple/%s_rntuple_v1-0-0-0.root", names[i]);
		assert_int_equal(lade_source_file_open(path, NULL, &source, NULL), LADE_OK);
		assert_int_equal(lade_rntuple_open(source, NULL, &tuple, NULL), LADE_OK);
		for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
			const lade_allocator *a = lade_allocator_default(places[k].kind);
			void *p = a->alloc(a->ctx, RESULT_SIZE, 256, places[k], NULL);
			lade_span to = {p, RESULT_SIZE, places[k]};
			assert_non_null(p);
			for (uint64_t skip = 0; skip < 100; skip += 33) {
				lade_span own = lade_host_span(host, RESULT_SIZE);
				size_t size = read_all(tuple, own, skip, LADE_WHERE_HOST);
				size_t same = read_all(tuple, to, skip, LADE_WHERE_AUTO);
				assert_int_equal(size, same);
				emulated_move(places[k].device, back, p, size ? size : 1);
				assert_memory_equal(back, host, size);
			}
			a->free(a->ctx, p, RESULT_SIZE, 256, places[k], NULL);
		}
		lade_rntuple_unref(tuple);
	}
	free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_places_get_the_same)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
