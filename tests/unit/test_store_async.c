/*
 * test_store_async.c: reads that return at once: their results, threads, cancelling, and stores
 * that are closed meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "http_server.h"

#include <lade/store.h>

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { SIZE = 100000, CALLS = 500, EACH = 10 };
static uint8_t plain[SIZE];

static void must(lade_status status, const lade_error *err)
{
	if (status != LADE_OK)
		fail_msg("%s: %s", lade_status_name(status), err->message);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Threads of this process. */
static int threads(void)
{
	int count = 0;
	DIR *dir = opendir("/proc/self/task");
	for (const struct dirent *e; dir && (e = readdir(dir));)
		count += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return count;
}

/* What done() gets. */
typedef struct result {
	atomic_int count;
	lade_status status;
	lade_error err;
	pthread_t thread;
	void (*then)(struct result *result);
} result;

static void done(void *ctx, lade_status status, const lade_error *err)
{
	result *r = ctx;
	r->status = status;
	r->err = *err;
	r->thread = pthread_self();
	if (r->then)
		r->then(r);
	atomic_fetch_add(&r->count, 1);
}

/* A read that ends in 'r'. */
static lade_status read_async(lade_store *store, lade_range *ranges, size_t count,
                              const lade_io_options *options, result *r, lade_error *err)
{
	lade_store_async async = {.struct_size = sizeof async, .done = done, .ctx = r};
	return lade_store_read_async(store, ranges, count, options, &async, err);
}

static void wait_for(result *r)
{
	double until = now() + 20;
	while (!atomic_load(&r->count)) {
		assert_true(now() < until);
		usleep(100);
	}
}

static lade_store *new_memory(void)
{
	lade_store *store;
	lade_error err;
	lade_write writes[2] = {{.key = "a/0", .src = lade_host_cspan(plain, SIZE)},
	                        {.key = "b", .src = lade_host_cspan(plain, SIZE)}};
	must(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &err), &err);
	must(lade_store_write(store, writes, 2, NULL, NULL, &err), &err);
	return store;
}

/* ---- a store whose answers come when the test wants them ------------------------------------- */

typedef struct slow {
	pthread_mutex_t mutex;
	struct {
		lade_reading *reading;
		size_t index;
	} waiting[CALLS * EACH];
	size_t count, calls;
	atomic_int closed;
	uint8_t version; /* changes with each read(), if it is not 0 */
	size_t version_changes;
} slow;

static slow late;

static void slow_read(void *ctx, lade_reading *reading, size_t count)
{
	slow *s = ctx;
	pthread_mutex_lock(&s->mutex);
	s->calls++;
	for (size_t i = 0; i < count; i++) {
		s->waiting[s->count].reading = reading;
		s->waiting[s->count++].index = i;
	}
	pthread_mutex_unlock(&s->mutex);
}

static void slow_close(void *ctx)
{
	slow *s = ctx;
	atomic_fetch_add(&s->closed, 1);
}

static void answer_one(slow *s, lade_reading *reading, size_t index)
{
	lade_range *range = lade_reading_range(reading, index);
	lade_error err;
	uint64_t off;
	if (lade_reading_cancelled(reading)) {
		lade_reading_done(reading, index, LADE_E_CANCELLED, NULL);
		return;
	}
	range->object_size = SIZE;
	lade_status status = lade_range_place(range, SIZE, &off, &range->size, &err);
	if (s->version && range->version) {
		*range->version = (lade_object_version){1, {s->version}};
		if (s->version_changes) {
			s->version_changes--;
			s->version++;
		}
	}
	if (status == LADE_OK)
		status = lade_reading_put(reading, index, 0,
		                          lade_host_cspan(plain + off, range->size), &err);
	lade_reading_done(reading, index, status, &err);
}

/* Answers all requests that have come, the last first. */
static void answer_all(slow *s)
{
	for (;;) {
		pthread_mutex_lock(&s->mutex);
		bool any = s->count > 0;
		size_t n = any ? --s->count : 0, index = s->waiting[n].index;
		lade_reading *reading = s->waiting[n].reading;
		pthread_mutex_unlock(&s->mutex);
		if (!any)
			return;
		answer_one(s, reading, index);
	}
}

static void wait_for_requests(slow *s, size_t calls)
{
	double until = now() + 20;
	for (size_t have = 0; have < calls; usleep(100)) {
		pthread_mutex_lock(&s->mutex);
		have = s->calls;
		pthread_mutex_unlock(&s->mutex);
		assert_true(now() < until);
	}
}

static lade_store *new_slow(void)
{
	static const lade_store_ops ops = {.struct_size = sizeof ops,
	                                   .flags = LADE_STORE_PARTS,
	                                   .parallel = 64,
	                                   .read = slow_read,
	                                   .close = slow_close};
	lade_store *store;
	lade_error err;
	memset(&late, 0, sizeof late);
	pthread_mutex_init(&late.mutex, NULL);
	must(lade_store_new(&ops, &late, "slow", &store, &err), &err);
	return store;
}

/* ---- tests --------------------------------------------------------------------------------- */

static lade_range ranges[CALLS][EACH];
static uint8_t back[CALLS][EACH][50];
static result results[CALLS];

/* Makes CALLS calls, without waiting. */
static void begin_calls(lade_store *store, const char *key, const lade_io_options *options)
{
	lade_error err;
	memset(back, 0, sizeof back);
	memset(results, 0, sizeof results);
	for (size_t c = 0; c < CALLS; c++) {
		for (size_t i = 0; i < EACH; i++)
			ranges[c][i] = (lade_range){.key = key,
			                            .off = c * 100 + i * 4000,
			                            .dst = lade_host_span(back[c][i], 50)};
		must(read_async(store, ranges[c], EACH, options, &results[c], &err), &err);
	}
}

static void check_calls(void)
{
	for (size_t c = 0; c < CALLS; c++) {
		wait_for(&results[c]);
		must(results[c].status, &results[c].err);
		assert_false(pthread_equal(results[c].thread, pthread_self()));
		for (size_t i = 0; i < EACH; i++)
			assert_memory_equal(back[c][i], plain + c * 100 + i * 4000, 50);
	}
}

static void many_calls_take_four_threads(void **state)
{
	(void)state;
	lade_store *store = new_slow(), *other = new_memory();
	begin_calls(other, "b", NULL);
	check_calls();
	lade_store_unref(other); /* sanitizers start a thread with the first one */
	int before = threads();
	begin_calls(store, "k", NULL);
	wait_for_requests(&late, CALLS);
	assert_true(threads() - before <= 4);
	assert_int_equal(atomic_load(&results[0].count), 0);
	answer_all(&late);
	check_calls();
	lade_store_unref(store);
	for (size_t c = 0; c < CALLS; c++)
		assert_int_equal(atomic_load(&results[c].count), 1);
}

static void every_store_answers(void **state)
{
	(void)state;
	lade_store *memory = new_memory(), *slow_one = new_slow(), *both;
	lade_error err;
	lade_store_route routes[2] = {{"", slow_one}, {"a/", memory}};
	lade_range mixed[3] = {{.key = "k", .dst = lade_host_span(back[0][0], 50)},
	                       {.key = "a/0", .dst = lade_host_span(back[0][1], 50)},
	                       {.key = "a/1", .dst = lade_host_span(back[0][2], 50)}};
	lade_store_report report = {.struct_size = sizeof report};
	result r = {0};
	begin_calls(memory, "b", NULL);
	check_calls();
	must(lade_store_composite_new(routes, 2, &both, &err), &err);
	int before = threads();
	begin_calls(both, "k", NULL);
	wait_for_requests(&late, CALLS);
	assert_true(threads() - before <= 4);
	answer_all(&late);
	check_calls();
	lade_store_async async = {
		.struct_size = sizeof async, .done = done, .ctx = &r, .report = &report};
	must(lade_store_read_async(both, mixed, 3, NULL, &async, &err), &err);
	wait_for_requests(&late, CALLS + 1);
	answer_all(&late);
	wait_for(&r);
	assert_int_equal(r.status, LADE_E_NOT_FOUND);
	assert_non_null(strstr(r.err.message, "range 2: "));
	assert_int_equal(mixed[0].status, LADE_OK);
	assert_int_equal(mixed[1].status, LADE_OK);
	assert_true(report.wanted_size == 100 && report.request_count == 3 && report.ns > 0);
	lade_store_unref(both);
	lade_store_unref(memory);
	lade_store_unref(slow_one);
}

static void a_store_is_closed_by_its_last_call(void **state)
{
	(void)state;
	lade_store *store = new_slow();
	begin_calls(store, "k", NULL);
	lade_store_unref(store);
	wait_for_requests(&late, CALLS);
	assert_int_equal(atomic_load(&late.closed), 0);
	answer_all(&late);
	check_calls();
	double until = now() + 20;
	while (!atomic_load(&late.closed)) {
		assert_true(now() < until);
		usleep(100);
	}
	assert_int_equal(atomic_load(&late.closed), 1);
}

static void mixed_versions_are_read_again(void **state)
{
	(void)state;
	for (size_t changes = 0; changes < 4; changes++) {
		lade_store *store = new_slow();
		lade_error err;
		result r = {0};
		lade_range two[2] = {{.key = "k", .dst = lade_host_span(back[0][0], 50)},
		                     {.key = "k",
		                      .kind = LADE_RANGE_LAST,
		                      .dst = lade_host_span(back[0][1], 50)}};
		late.version = 1;
		late.version_changes = changes;
		must(read_async(store, two, 2, NULL, &r, &err), &err);
		for (double until = now() + 20; !atomic_load(&r.count); usleep(100)) {
			assert_true(now() < until);
			answer_all(&late);
		}
		assert_int_equal(late.calls, changes ? 2 : 1);
		assert_int_equal(r.status, changes < 3 ? LADE_OK : LADE_E_CHANGED);
		if (changes == 0)
			assert_int_equal(r.status, LADE_OK);
		lade_store_unref(store);
	}
}

static void cancelled_calls_end(void **state)
{
	(void)state;
	lade_store *store = new_slow();
	lade_cancel *cancel;
	lade_error err;
	must(lade_cancel_new(NULL, NULL, &cancel, &err), &err);
	lade_io_options options = {.struct_size = sizeof options, .cancel = cancel};
	begin_calls(store, "k", &options);
	wait_for_requests(&late, 1);
	lade_cancel_set(cancel);
	for (size_t c = 0; c < CALLS; c++)
		while (!atomic_load(&results[c].count))
			answer_all(&late);
	for (size_t c = 0; c < CALLS; c++) {
		assert_int_equal(results[c].status, LADE_E_CANCELLED);
		assert_int_equal(ranges[c][EACH - 1].status, LADE_E_CANCELLED);
	}
	lade_cancel_free(cancel);
	lade_store_unref(store);
}

static bool never(void *ctx)
{
	(void)ctx;
	abort();
}

static void a_server_that_is_silent_is_cancelled(void **state)
{
	(void)state;
	http_server server = http_server_start();
	char url[64];
	lade_store *store;
	lade_cancel *cancel;
	lade_error err;
	result r = {0};
	assert_true(server.port > 0);
	snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
	must(lade_store_http_open(url, NULL, &store, &err), &err);
	lade_range good = {.key = "ok/v1000", .off = 900, .dst = lade_host_span(back[0][0], 50)};
	must(read_async(store, &good, 1, NULL, &r, &err), &err);
	wait_for(&r);
	must(r.status, &r.err);
	assert_int_equal(back[0][0][0], (900 * 7 + 900 / 300) % 256);
	lade_range silent = {.key = "slow/1/v1000", .dst = lade_host_span(back[0][0], 50)};
	must(lade_cancel_new(never, NULL, &cancel, &err), &err);
	lade_io_options options = {.struct_size = sizeof options, .cancel = cancel};
	r = (result){0};
	must(read_async(store, &silent, 1, &options, &r, &err), &err);
	lade_store_unref(store);
	usleep(150000);
	assert_int_equal(atomic_load(&r.count), 0);
	double began = now();
	lade_cancel_set(cancel);
	wait_for(&r);
	assert_true(now() - began < 2);
	assert_int_equal(r.status, LADE_E_CANCELLED);
	lade_cancel_free(cancel);
	http_server_stop(&server);
}

static lade_store *chained;
static atomic_int chain_left;

/* Reads again, and waits for a call of the other kind. */
static void go_on(result *r)
{
	lade_error err;
	lade_range range = {.key = "b", .dst = lade_host_span(back[1][0], 50)};
	must(lade_store_read(chained, &range, 1, NULL, NULL, &err), &err);
	if (atomic_fetch_sub(&chain_left, 1) > 1)
		must(read_async(chained, ranges[0], 1, NULL, r, &err), &err);
}

static void done_may_call(void **state)
{
	(void)state;
	result r = {.then = go_on};
	lade_error err;
	chained = new_memory();
	atomic_store(&chain_left, 100);
	ranges[0][0] = (lade_range){.key = "a/0", .dst = lade_host_span(back[0][0], 50)};
	must(read_async(chained, ranges[0], 1, NULL, &r, &err), &err);
	double until = now() + 20;
	while (atomic_load(&r.count) < 100) {
		assert_true(now() < until);
		usleep(100);
	}
	lade_store_unref(chained);
}

static void arguments_are_checked(void **state)
{
	(void)state;
	lade_store *store = new_memory();
	result r = {0};
	lade_range range = {.key = "b", .dst = {NULL, 5, {LADE_HOST, 0}}};
	lade_io_options options = {.struct_size = 1};
	lade_store_report report = {0};
	assert_int_equal(read_async(NULL, &range, 1, NULL, &r, NULL), LADE_E_ARG);
	lade_store_async async = {.struct_size = sizeof async};
	assert_int_equal(lade_store_read_async(store, &range, 1, NULL, &async, NULL), LADE_E_ARG);
	assert_int_equal(lade_store_read_async(store, &range, 1, NULL, NULL, NULL), LADE_E_ARG);
	assert_int_equal(read_async(store, &range, 1, NULL, &r, NULL), LADE_E_ARG);
	assert_int_equal(range.status, LADE_E_ARG);
	assert_int_equal(read_async(store, NULL, 1, NULL, &r, NULL), LADE_E_ARG);
	assert_int_equal(read_async(store, &range, 0, &options, &r, NULL), LADE_E_ARG);
	async.done = done;
	async.report = &report;
	assert_int_equal(lade_store_read_async(store, &range, 0, NULL, &async, NULL), LADE_E_ARG);
	assert_int_equal(read_async(store, NULL, 0, NULL, &r, NULL), LADE_OK);
	wait_for(&r);
	assert_int_equal(r.status, LADE_OK);
	range = (lade_range){.key = "../b", .dst = lade_host_span(back[0][0], 5)};
	r = (result){0};
	assert_int_equal(read_async(store, &range, 1, NULL, &r, NULL), LADE_OK);
	wait_for(&r);
	assert_int_equal(r.status, LADE_E_ARG);
	lade_store_unref(store);
}

#ifndef __SANITIZE_THREAD__ /* it has no threads in children of programs with several */
/* A child has none of its parent's threads. */
static void a_forked_child_begins_anew(void **state)
{
	(void)state;
	lade_store *store = new_memory();
	int status;
	begin_calls(store, "b", NULL);
	check_calls();
	pid_t child = fork();
	if (child == 0) {
		alarm(20);
		begin_calls(store, "b", NULL);
		check_calls();
		lade_store_unref(store);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	lade_store_unref(store);
}
#endif

int main(void)
{
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (uint8_t)(i * 31 + i / 999);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_calls_take_four_threads),
		cmocka_unit_test(every_store_answers),
		cmocka_unit_test(a_store_is_closed_by_its_last_call),
		cmocka_unit_test(mixed_versions_are_read_again),
		cmocka_unit_test(cancelled_calls_end),
		cmocka_unit_test(a_server_that_is_silent_is_cancelled),
		cmocka_unit_test(done_may_call),
		cmocka_unit_test(arguments_are_checked),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(a_forked_child_begins_anew),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
