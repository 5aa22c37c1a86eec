/*
 * test_store_device.c: values and spans on devices, on the emulated device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/device.h"
#include "gpu/emulated.h"
#include "gpu/fake_cufile.h"

#include <lade/store.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/emulated_move.h"

enum { PLACES = 5, SIZE = 100000 };
static const lade_place places[PLACES] = {
	{LADE_HOST, 0}, {LADE_PINNED, 0}, {LADE_MANAGED, 0}, {LADE_DEVICE, 0}, {LADE_DEVICE, 1}};
static uint8_t data[SIZE], back[SIZE];

static lade_span span_new(lade_place place, size_t size)
{
	const lade_allocator *a = lade_allocator_default(place.kind);
	void *p = a->alloc(a->ctx, size, 256, place, NULL);
	assert_non_null(p);
	return (lade_span){p, size, place};
}

static void span_free(lade_span span)
{
	const lade_allocator *a = lade_allocator_default(span.place.kind);
	a->free(a->ctx, span.data, span.size, 256, span.place, NULL);
}

static void must(lade_status status, const lade_error *err)
{
	if (status != LADE_OK)
		fail_msg("%s: %s", lade_status_name(status), err->message);
}

/* Writes values from every place, and reads them to every place: some ranges adjoin. */
static void to_and_from_every_place(lade_store *store)
{
	lade_error err;
	char keys[PLACES][8];
	lade_range ranges[PLACES * PLACES * 2];
	size_t count = 0;
	for (size_t i = 0; i < PLACES; i++) {
		lade_span src = span_new(places[i], SIZE);
		emulated_move(src.place.device, src.data, data, SIZE);
		snprintf(keys[i], sizeof keys[i], "d/%zu", i);
		lade_write write = {.key = keys[i], .src = {src.data, SIZE, src.place}};
		must(lade_store_write(store, &write, 1, NULL, NULL, &err), &err);
		span_free(src);
		for (size_t k = 0; k < PLACES * 2; k++)
			ranges[count++] = (lade_range){.key = keys[i],
			                               .off = k * 5000,
			                               .dst = span_new(places[k % PLACES], 5000)};
	}
	lade_store_report report = {.struct_size = sizeof report};
	must(lade_store_read(store, ranges, count, NULL, &report, &err), &err);
	assert_true(report.wanted_size >= count * 5000);
	for (size_t i = 0; i < count; i++) {
		emulated_move(ranges[i].dst.place.device, back, ranges[i].dst.data, 5000);
		assert_memory_equal(back, data + ranges[i].off, 5000);
		assert_int_equal(ranges[i].object_size, SIZE);
		span_free(ranges[i].dst);
	}
	lade_store_unref(store);
}

static void memory_on_every_place(void **state)
{
	(void)state;
	lade_store *store;
	lade_error err;
	for (size_t i = 0; i < PLACES; i++) {
		must(lade_store_memory_new(places[i], NULL, &store, &err), &err);
		to_and_from_every_place(store);
	}
}

static void directory_to_every_place(void **state)
{
	(void)state;
	char dir[] = "/tmp/lade-store-XXXXXX", command[64];
	lade_store *store;
	lade_error err;
	assert_non_null(mkdtemp(dir));
	must(lade_store_directory_open(dir, NULL, &store, &err), &err);
	to_and_from_every_place(store);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* Spans on devices get their bytes from libcufile: in pieces, from files that it refuses, and when
 * it fails. */
static void libcufile_reads_to_devices(void **state)
{
	(void)state;
	char dir[] = "/tmp/lade-store-XXXXXX", command[64];
	lade_directory_options options = {.struct_size = sizeof options,
	                                  .flags = LADE_DIRECTORY_CUFILE,
	                                  .cufile = "/none/libcufile.so"};
	lade_store *store;
	lade_error err;
	void *library = dlopen(FAKE_CUFILE, RTLD_NOW);
	fake_cufile *fake = library ? dlsym(library, "fake_cufile_state") : NULL;
	assert_non_null(fake);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(lade_store_directory_open(dir, &options, &store, &err),
	                 LADE_E_UNSUPPORTED);
	options.cufile = FAKE_CUFILE;
	fake->open_code = 5001;
	assert_int_equal(lade_store_directory_open(dir, &options, &store, &err),
	                 LADE_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "5001"));
	fake->open_code = 0;
	for (int round = 0; round < 3; round++) {
		fake->most = round == 1 ? 1000 : 0;
		fake->refuse = round == 2;
		atomic_store(&fake->reads, 0);
		atomic_store(&fake->direct, 0);
		must(lade_store_directory_open(dir, &options, &store, &err), &err);
		to_and_from_every_place(store);
		assert_int_equal(atomic_load(&fake->handles), 0);
		/* 4 ranges of each value are on devices. */
		int reads = atomic_load(&fake->reads);
		assert_true(round == 0   ? reads >= PLACES * 4
		            : round == 1 ? reads >= PLACES * 4 * 5
		                         : reads == 0);
		assert_true(round == 2 || atomic_load(&fake->direct) > 0);
	}
	fake->refuse = false;
	must(lade_store_directory_open(dir, &options, &store, &err), &err);
	lade_store_plan plan = {.struct_size = sizeof plan};
	lade_range range = {.key = "d/0", .dst = span_new(places[3], 5000)};
	must(lade_store_explain(store, &range, 1, NULL, &plan, &err), &err);
	assert_non_null(strstr(plan.text, "cuFile"));
	for (int round = 0; round < 2; round++) {
		fake->fail_with = round ? -5017 : -1;
		assert_int_equal(lade_store_read(store, &range, 1, NULL, NULL, &err), LADE_E_IO);
		assert_non_null(strstr(err.message, round ? "-5017" : "cuFileRead() at 0: "));
	}
	fake->fail_with = 0;
	must(lade_store_read(store, &range, 1, NULL, NULL, &err), &err);
	assert_int_equal(atomic_load(&fake->handles), 0);
	lade_store_unref(store);
	span_free(range.dst);
	dlclose(library);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

static void lent_memory_is_read_where_it_is(void **state)
{
	(void)state;
	lade_store *store;
	lade_error err;
	must(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &err), &err);
	lade_span there = span_new(places[3], SIZE), here = span_new(places[4], 100);
	emulated_move(there.place.device, there.data, data, SIZE);
	must(lade_store_memory_lend(store, "k", (lade_cspan){there.data, SIZE, there.place}, &err),
	     &err);
	emulated_move(there.place.device, there.data, back, 1);
	/* no copy was made: a change shows */
	lade_range range = {.key = "k", .dst = here};
	uint8_t first = back[0];
	must(lade_store_read(store, &range, 1, NULL, NULL, &err), &err);
	emulated_move(here.place.device, back, here.data, 100);
	assert_int_equal(back[0], first);
	assert_memory_equal(back + 1, data + 1, 99);
	lade_store_unref(store);
	span_free(there);
	span_free(here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_on_every_place),
		cmocka_unit_test(directory_to_every_place),
		cmocka_unit_test(libcufile_reads_to_devices),
		cmocka_unit_test(lent_memory_is_read_where_it_is),
	};
	if (!emulated_open())
		return 1;
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * 31 + i / 999);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
