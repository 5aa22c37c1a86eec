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

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 64, RESULT_SIZE = 1 << 16 };

static const lade_place places[] = {{LADE_DEVICE, 0}, {LADE_DEVICE, 1}, {LADE_PINNED, 0}};

/* Reads all columns, one behind the other; 'size' gets their bytes. */
static lade_status try_all(lade_rntuple *tuple, lade_span to, uint64_t skip,
                           const lade_rntuple_read_options *how, size_t *size, lade_error *err)
{
	lade_rntuple_target targets[COLUMNS_MAX];
	lade_rntuple_read_options options = *how;
	size_t count = (size_t)lade_rntuple_about(tuple)->column_count, at = 0;
	options.struct_size = sizeof options;
	options.target_size = sizeof *targets;
	for (size_t i = 0; i < count; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(tuple, i);
		uint64_t first = c->element_count < skip ? c->element_count : skip;
		uint64_t n = c->element_count - first;
		size_t room = (size_t)(n + 1) * c->elem_size;
		targets[i] = (lade_rntuple_target){
			i, first, n, {(uint8_t *)to.data + at, room, to.place}};
		at += (size_t)(n + (c->kind == LADE_RNTUPLE_OFFSETS)) * c->elem_size;
	}
	assert_true(at + 64 < to.size);
	*size = at;
	return lade_rntuple_read(tuple, targets, count, &options, NULL, err);
}

static size_t read_all(lade_rntuple *tuple, lade_span to, uint64_t skip,
                       const lade_rntuple_read_options *how)
{
	lade_error err;
	size_t size;
	if (try_all(tuple, to, skip, how, &size, &err))
		fail_msg("%s", err.message);
	return size;
}

static const lade_rntuple_read_options on_host = {.where = LADE_WHERE_HOST};

/* ---- a source of one reader at a time ------------------------------------------------------- */

typedef struct own {
	uint8_t *data;
	size_t size;
	atomic_int readers;
} own;

static void own_read(void *ctx, lade_reading *reading, size_t count)
{
	own *o = ctx;
	assert_int_equal(atomic_fetch_add(&o->readers, 1), 0);
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err;
		uint64_t off;
		range->object_size = o->size;
		lade_status status = lade_range_place(range, o->size, &off, &range->size, &err);
		if (range->size)
			memcpy(range->dst.data, o->data + off, range->size);
		lade_reading_done(reading, i, status, &err);
	}
	atomic_fetch_sub(&o->readers, 1);
}

static const lade_source_ops own_ops = {.struct_size = sizeof own_ops, .read = own_read};

static own own_load(const char *path)
{
	own o = {.size = 0};
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	o.size = (size_t)ftell(f);
	rewind(f);
	o.data = malloc(o.size);
	assert_true(o.data && fread(o.data, 1, o.size, f) == o.size);
	fclose(f);
	return o;
}

/* ---- tests --------------------------------------------------------------------------------- */

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
				lade_span plain = lade_host_span(host, RESULT_SIZE);
				size_t size = read_all(tuple, plain, skip, &on_host);
				lade_rntuple_read_options o = {.memory = 1 + 50 * skip};
				size_t same = read_all(tuple, to, skip, &o);
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

/* Of several bad pages the first in the file is told, whichever lane comes to its own first; and a
 * source is read by one lane at a time unless it takes several. */
static void lanes_tell_the_first_fault(void **state)
{
	own o = own_load(LADE_TESTS_DIR
	                 "/golden/rntuple/test_index_multicluster_rntuple_v1-0-0-0.root");
	uint8_t *back = calloc(1, RESULT_SIZE);
	lade_rntuple *tuple;
	lade_error err, same;
	(void)state;
	assert_non_null(back);
	assert_int_equal(lade_rntuple_open((lade_source){&own_ops, &o}, NULL, &tuple, &err),
	                 LADE_OK);
	lade_place place = {LADE_DEVICE, 0};
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	void *p = a->alloc(a->ctx, RESULT_SIZE, 256, place, NULL);
	lade_span spans[] = {lade_host_span(back, RESULT_SIZE), {p, RESULT_SIZE, place}};
	size_t size, damaged = 0;
	read_all(tuple, spans[1], 0, &(lade_rntuple_read_options){.memory = 1});
	for (uint64_t c = lade_rntuple_about(tuple)->cluster_count; c-- > 0; damaged++) {
		lade_rntuple_page page = {.struct_size = sizeof page};
		assert_int_equal(lade_rntuple_page_at(tuple, 0, c, 0, &page, &err), LADE_OK);
		o.data[page.off] ^= 1;
		for (int i = 0; i < 16; i++) {
			lade_rntuple_read_options one = {.memory = 1, .threads = 1};
			lade_rntuple_read_options many = {.memory = 1, .threads = 1 + (i & 4)};
			assert_int_equal(try_all(tuple, spans[0], 0, &one, &size, &err),
			                 LADE_E_CHECKSUM);
			assert_int_equal(try_all(tuple, spans[i & 1], 0, &many, &size, &same),
			                 LADE_E_CHECKSUM);
			assert_string_equal(err.message, same.message);
		}
	}
	assert_true(damaged > 1);
	a->free(a->ctx, p, RESULT_SIZE, 256, place, NULL);
	lade_rntuple_unref(tuple);
	free(o.data);
	free(back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_places_get_the_same),
	                                   cmocka_unit_test(lanes_tell_the_first_fault)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
