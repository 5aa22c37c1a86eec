/*
 * test_oom_store.c: every allocation of stores fails in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* mkdtemp() */
#include "http_server.h"
#include "oom.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DO(call) \
	do { \
		status = (call); \
		if (status != LADE_OK) \
			goto out; \
	} while (0)

enum { SIZE = 200000, COUNT = 40 };
static uint8_t plain[SIZE], back[SIZE];
static char dir[] = "/tmp/lade-oom-XXXXXX";

static lade_status see(void *ctx, const lade_store_entry *entry)
{
	size_t *count = ctx;
	*count += entry->key[0] != 0;
	return LADE_OK;
}

static void done(void *ctx, lade_status status, const lade_error *err)
{
	lade_status *got = ctx;
	assert_true(status == LADE_OK || (status == LADE_E_NOMEM && err->message[0]));
	__atomic_store_n(got, status, __ATOMIC_RELEASE);
}

/* The same as lade_store_read(), by a thread of the store. */
static lade_status read_behind(lade_store *store, lade_range *ranges, size_t count, lade_error *err)
{
	lade_status got = (lade_status)-1, status;
	lade_store_async async = {.struct_size = sizeof async, .done = done, .ctx = &got};
	DO(lade_store_read_async(store, ranges, count, NULL, &async, err));
	while ((status = __atomic_load_n(&got, __ATOMIC_ACQUIRE)) == (lade_status)-1)
		usleep(50);
	while (atomic_load(&store->refs) > 1)
		usleep(50); /* the call's reference */
	if (status != LADE_OK)
		lade_fail(err, status, LADE_NO_OFFSET, "behind");
out:
	return status;
}

/* Writes, lists, reads and deletes. */
static lade_status use(lade_store *store, lade_error *err)
{
	static const char *const keys[] = {"a/b/c", "a/d", "e"};
	static lade_range ranges[COUNT];
	lade_object_version version;
	lade_source source = {0};
	lade_status status;
	size_t seen = 0;
	lade_store_listing listing = {.struct_size = sizeof listing, .visit = see, .ctx = &seen};
	lade_write writes[3], gone[3];
	memset(ranges, 0, sizeof ranges);
	for (size_t i = 0; i < 3; i++) {
		writes[i] = (lade_write){
			.key = keys[i], .src = lade_host_cspan(plain, SIZE), .version = &version};
		gone[i] = (lade_write){.key = keys[i], .kind = LADE_DELETE_IF_VERSION};
	}
	DO(lade_store_write(store, writes, 3, NULL, NULL, err));
	DO(lade_store_list(store, &listing, err));
	assert_int_equal(seen, 3);
	memset(back, 0, sizeof back);
	for (size_t i = 0; i < COUNT; i++)
		ranges[i] =
			(lade_range){.key = keys[i % 3],
		                     .off = SIZE / COUNT * i,
		                     .dst = lade_host_span(back + SIZE / COUNT * i, SIZE / COUNT)};
	status = lade_store_read(store, ranges, COUNT, NULL, NULL, err);
	for (size_t i = 0; i < COUNT; i++)
		assert_true(ranges[i].status == LADE_OK || ranges[i].status == LADE_E_NOMEM);
	DO(status);
	assert_memory_equal(back, plain, SIZE);
	memset(back, 0, sizeof back);
	DO(read_behind(store, ranges, COUNT, err));
	assert_memory_equal(back, plain, SIZE);
	DO(lade_store_object_open(store, "e", &source, err));
	ranges[0] = (lade_range){.dst = lade_host_span(back, 10)};
	DO(lade_source_read(source, ranges, 1, NULL, err));
	DO(lade_store_write(store, gone, 3, NULL, NULL, err));
out:
	lade_source_close(source);
	lade_store_unref(store);
	return status;
}

static lade_status in_memory(void *ctx, lade_error *err)
{
	lade_store *store;
	(void)ctx;
	lade_status status = lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, err);
	return status == LADE_OK ? use(store, err) : status;
}

static lade_status in_a_directory(void *ctx, lade_error *err)
{
	lade_store *store;
	(void)ctx;
	lade_status status = lade_store_directory_open(dir, NULL, &store, err);
	return status == LADE_OK ? use(store, err) : status;
}

/* Both halves of a store that hands on, by two keys of use(). */
static lade_status routed(void *ctx, lade_error *err)
{
	lade_store *first = NULL, *second = NULL, *both = NULL;
	lade_status status;
	(void)ctx;
	DO(lade_store_memory_new(LADE_PLACE_HOST, NULL, &first, err));
	DO(lade_store_directory_open(dir, NULL, &second, err));
	DO(lade_store_composite_new((lade_store_route[]){{"", first}, {"a/", second}}, 2, &both,
	                            err));
	status = use(both, err);
out:
	lade_store_unref(first);
	lade_store_unref(second);
	return status;
}

static lade_status zipped(void *ctx, lade_error *err)
{
	lade_zip_write_options options = {.struct_size = sizeof options, .level = 1};
	lade_store *store = NULL;
	lade_source source = {0};
	lade_status status;
	size_t seen = 0;
	lade_store_listing listing = {.struct_size = sizeof listing, .visit = see, .ctx = &seen};
	const char *path = ctx;
	lade_write writes[2] = {{.key = "a", .src = lade_host_cspan(plain, SIZE)},
	                        {.key = "b", .src = lade_host_cspan("noise", 5)}};
	lade_range ranges[2] = {{.key = "a", .dst = lade_host_span(back, SIZE)},
	                        {.key = "b", .dst = lade_host_span(back, 5)}};
	DO(lade_store_zip_create(path, &options, &store, err));
	DO(lade_store_write(store, writes, 2, NULL, NULL, err));
	DO(lade_store_zip_finish(store, NULL, err));
	lade_store_unref(store);
	store = NULL;
	DO(lade_source_file_open(path, NULL, &source, err));
	DO(lade_store_zip_open(source, NULL, &store, err));
	source = (lade_source){0};
	DO(lade_store_list(store, &listing, err));
	assert_int_equal(seen, 2);
	ranges[1].dst.data = back + SIZE - 5;
	DO(lade_store_read(store, ranges, 1, NULL, NULL, err));
	assert_memory_equal(back, plain, SIZE);
	DO(lade_store_read(store, ranges + 1, 1, NULL, NULL, err));
	assert_memory_equal(back + SIZE - 5, "noise", 5);
out:
	lade_source_close(source);
	lade_store_unref(store);
	return status;
}

static http_server server;

static lade_status from_a_server(void *ctx, lade_error *err)
{
	const char *headers[] = {"X-One: 1"};
	lade_http_options options = {.struct_size = sizeof options,
	                             .flags = LADE_HTTP_NO_RETRIES,
	                             .headers = headers,
	                             .header_count = 1,
	                             .ca_file = "/none"};
	lade_store *store = NULL;
	lade_status status;
	lade_range ranges[3] = {
		{.key = "v1000", .dst = lade_host_span(back, 10)},
		{.key = "v1000", .off = 900, .dst = lade_host_span(back + 10, 10)},
		{.key = "v2000", .kind = LADE_RANGE_LAST, .dst = lade_host_span(back + 20, 10)}};
	DO(lade_store_http_open(ctx, &options, &store, err));
	DO(lade_store_read(store, ranges, 3, NULL, NULL, err));
	assert_int_equal(back[9], 63);
out:
	lade_store_unref(store);
	return status;
}

static void stores(void **state)
{
	(void)state;
	char command[64];
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (uint8_t)(i * 31 + i / 999);
	assert_non_null(mkdtemp(dir));
	assert_true(oom_run("a store in memory", in_memory, NULL) > 15);
	assert_true(oom_run("a store in a directory", in_a_directory, NULL) > 15);
	assert_true(oom_run("a store of stores", routed, NULL) > 25);
	snprintf(command, sizeof command, "%s/a.zip", dir);
	assert_true(oom_run("a zip file", zipped, command) > 15);
	server = http_server_start();
	assert_true(server.port > 0);
	snprintf(command, sizeof command, "http://127.0.0.1:%d/ok", server.port);
	assert_true(oom_run("values of a server", from_a_server, command) > 8);
	http_server_stop(&server);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(stores)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
