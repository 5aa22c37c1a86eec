/*
 * test_store_http.c: the HTTP store against a server with faults: bodies that end early, codes,
 * silence, values that vanish or change, whole values for ranges; and hostile heads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "guard.h"
#include "http_server.h"
#include "store/http.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static http_server server;

static void must(lade_status status, const lade_error *err)
{
	if (status != LADE_OK)
		fail_msg("%s: %s", lade_status_name(status), err->message);
}

static lade_store *open_url(const char *path, lade_http_options options)
{
	char url[128];
	lade_store *store;
	lade_error err;
	snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", server.port, path);
	options.struct_size = sizeof options;
	options.idle_ms = options.idle_ms ? options.idle_ms : 10000;
	must(lade_store_http_open(url, &options, &store, &err), &err);
	return store;
}

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 7 + i / 300);
}

static void check(const lade_range *range, uint64_t off, size_t size)
{
	assert_int_equal(range->status, LADE_OK);
	assert_int_equal(range->size, size);
	for (size_t i = 0; i < size; i++)
		assert_true(((uint8_t *)range->dst.data)[i] == byte_at(off + i));
}

/* The ranges of "v100000" that every good server gives, before guard pages. */
static void read_all_kinds(lade_store *store)
{
	enum { N = 7 };
	static const struct {
		uint64_t off;
		size_t size;
		lade_range_kind kind;
		uint64_t want_off;
		size_t want_size;
	} all[N] = {{0, 100000, LADE_RANGE_AT, 0, 100000},
	            {99999, 1, LADE_RANGE_AT, 99999, 1},
	            {500, 1000, LADE_RANGE_AT, 500, 1000},
	            {1500, 70, LADE_RANGE_AT, 1500, 70},
	            {0, 100000, LADE_RANGE_REST, 0, 100000},
	            {99000, 5000, LADE_RANGE_REST, 99000, 1000},
	            {100000, 5000, LADE_RANGE_REST, 100000, 0}};
	lade_range ranges[N];
	guard guards[N];
	lade_error err;
	for (size_t i = 0; i < N; i++) {
		guards[i] = guard_new(all[i].size, 1);
		ranges[i] = (lade_range){.key = "v100000",
		                         .off = all[i].off,
		                         .kind = all[i].kind,
		                         .dst = lade_host_span(guards[i].data, all[i].size)};
	}
	must(lade_store_read(store, ranges, N, NULL, NULL, &err), &err);
	for (size_t i = 0; i < N; i++) {
		check(&ranges[i], all[i].want_off, all[i].want_size);
		assert_int_equal(ranges[i].object_size, 100000);
	}
	/* Each alone, and what cannot be had. */
	for (size_t i = 0; i < N; i++)
		must(lade_store_read(store, &ranges[i], 1, NULL, NULL, &err), &err);
	ranges[0].off = 1;
	assert_int_equal(lade_store_read(store, ranges, 1, NULL, NULL, &err), LADE_E_RANGE);
	ranges[4].dst.size = 99999;
	assert_int_equal(lade_store_read(store, &ranges[4], 1, NULL, NULL, &err), LADE_E_NOSPACE);
	ranges[6].off = 100001;
	assert_int_equal(lade_store_read(store, &ranges[6], 1, NULL, NULL, &err), LADE_E_RANGE);
	ranges[1].off = UINT64_MAX - 3;
	assert_int_equal(lade_store_read(store, &ranges[1], 1, NULL, NULL, &err), LADE_E_RANGE);
	ranges[1].key = "nothing";
	assert_int_equal(lade_store_read(store, &ranges[1], 1, NULL, NULL, &err), LADE_E_NOT_FOUND);
	assert_non_null(strstr(err.message, "'nothing'"));
	for (size_t i = 0; i < N; i++)
		guard_free(&guards[i]);
}

static void read_the_last(lade_store *store)
{
	uint8_t back[200];
	lade_error err;
	lade_range last = {
		.key = "v100000", .kind = LADE_RANGE_LAST, .dst = lade_host_span(back, 90)};
	must(lade_store_read(store, &last, 1, NULL, NULL, &err), &err);
	check(&last, 99910, 90);
	last.key = "v150";
	last.dst.size = 200;
	must(lade_store_read(store, &last, 1, NULL, NULL, &err), &err);
	check(&last, 0, 150);
	last.key = "v0";
	must(lade_store_read(store, &last, 1, NULL, NULL, &err), &err);
	assert_int_equal(last.size, 0);
}

static void look(lade_store *store, uint64_t want)
{
	uint64_t size;
	lade_object_version version;
	lade_error err;
	must(lade_store_look(store, "v100000", &size, &version, &err), &err);
	assert_true(size == want && version.size > 0);
	assert_int_equal(lade_store_look(store, "nothing", &size, NULL, &err), LADE_E_NOT_FOUND);
}

static void good_servers(void **state)
{
	(void)state;
	static const char *const modes[] = {"ok",     "whole",  "nosuffix",     "dated",
	                                    "moved/", "nohead", "ok?signed=yes"};
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		lade_store *store = open_url(modes[i], (lade_http_options){0});
		read_all_kinds(store);
		read_the_last(store);
		look(store, 100000);
		lade_range range = {.key = "v0", .kind = LADE_RANGE_REST};
		lade_error err;
		must(lade_store_read(store, &range, 1, NULL, NULL, &err), &err);
		lade_write write = {.key = "v0"};
		assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, &err),
		                 LADE_E_UNSUPPORTED);
		lade_store_unref(store);
	}
	/* A size that only the end of the body tells. */
	lade_store *store = open_url("chunked", (lade_http_options){0});
	read_all_kinds(store);
	lade_error err;
	uint8_t byte;
	lade_range last = {.key = "v9", .kind = LADE_RANGE_LAST, .dst = lade_host_span(&byte, 1)};
	assert_int_equal(lade_store_read(store, &last, 1, NULL, NULL, &err), LADE_E_UNSUPPORTED);
	lade_store_unref(store);
	/* A body without an end. */
	uint8_t back[5000];
	store = open_url("endless", (lade_http_options){0});
	lade_range range = {
		.key = "v4000", .off = 70, .dst = lade_host_span(back, 900)};
	must(lade_store_read(store, &range, 1, NULL, NULL, &err), &err);
	check(&range, 70, 900);
	range = (lade_range){.key = "v4000",
	                     .kind = LADE_RANGE_REST,
	                     .dst = lade_host_span(back, 5000)};
	assert_int_equal(lade_store_read(store, &range, 1, NULL, NULL, &err), LADE_E_NOSPACE);
	lade_store_unref(store);
}

/* Two ranges of "v100000", far apart; and a key of its own. */
static lade_status read_some(lade_store *store, lade_store_report *report, lade_error *err)
{
	static uint8_t back[3][5000];
	lade_range ranges[3] = {
		{.key = "v100000", .dst = lade_host_span(back[0], 5000)},
		{.key = "v100000", .off = 90000, .dst = lade_host_span(back[1], 5000)},
		{.key = "v60000", .off = 100, .dst = lade_host_span(back[2], 5000)}};
	report->struct_size = sizeof *report;
	lade_status status = lade_store_read(store, ranges, 3, NULL, report, err);
	for (size_t i = 0; i < 3; i++)
		if (ranges[i].status == LADE_OK)
			check(&ranges[i], ranges[i].off, 5000);
	return status;
}

static void faults_that_pass(void **state)
{
	(void)state;
	static const char *const modes[] = {"short/2", "code/500/2", "code/503/1", "code/429/3",
	                                    "reset/2", "slow/1",     "after/1",    "code/408/1"};
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		lade_store *store = open_url(modes[i], (lade_http_options){.idle_ms = 300});
		lade_store_report report;
		lade_error err;
		must(read_some(store, &report, &err), &err);
		assert_true(report.retry_count >= 1 && report.request_count > report.retry_count);
		assert_true(report.wanted_size == 15000 && report.moved_size >= 15000);
		lade_store_unref(store);
	}
}

static void faults_that_stay(void **state)
{
	(void)state;
	static const struct {
		const char *mode;
		lade_status status;
		const char *word;
	} all[] = {{"short/99", LADE_E_IO, "tries"},
	           {"code/500/98", LADE_E_IO, "500"},
	           {"code/403/97", LADE_E_IO, "403"},
	           {"reset/96", LADE_E_IO, "tries"},
	           {"slow/95", LADE_E_IO, "200 ms"},
	           {"vanish/0", LADE_E_NOT_FOUND, "v100000"},
	           {"coded", LADE_E_UNSUPPORTED, "Encoding"},
	           {"lie", LADE_E_IO, "asked for"},
	           {"changing/94", LADE_E_CHANGED, "changed"},
	           {"secret", LADE_E_IO, "401"}};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		lade_store *store =
			open_url(all[i].mode, (lade_http_options){.idle_ms = 200, .retries = 1});
		lade_store_report report;
		lade_error err;
		/* Each range a request: two versions can be seen. */
		store->cost.request_ns = 1;
		assert_int_equal(read_some(store, &report, &err), all[i].status);
		if (!strstr(err.message, all[i].word) || !strstr(err.message, "'v100000'"))
			fail_msg("%s: %s", all[i].mode, err.message);
		lade_store_unref(store);
	}
	/* Nobody listens. */
	lade_http_options options = {.struct_size = sizeof options, .flags = LADE_HTTP_NO_RETRIES};
	lade_store *store;
	lade_store_report report;
	lade_error err;
	must(lade_store_http_open("http://user:word@127.0.0.1:1/x?key=word", &options, &store,
	                          &err),
	     &err);
	assert_int_equal(read_some(store, &report, &err), LADE_E_IO);
	assert_non_null(strstr(err.message, "http://127.0.0.1:1/x:"));
	assert_null(strstr(err.message, "word"));
	assert_int_equal(report.retry_count, 0);
	lade_store_unref(store);
}

static void values_that_change(void **state)
{
	(void)state;
	/* Two requests see two ETags; the second two see one. */
	lade_store *store = open_url("changing/2", (lade_http_options){.parallel = 1});
	lade_store_report report;
	lade_error err;
	store->cost.request_ns = 1;
	must(read_some(store, &report, &err), &err);
	assert_int_equal(report.retry_count, 2);
	/* Who wants a version gets that one. */
	uint8_t back[10];
	lade_object_version old = {3, {'E', '"', '"'}};
	lade_range range = {.key = "v500", .want = &old, .dst = lade_host_span(back, 10)};
	assert_int_equal(lade_store_read(store, &range, 1, NULL, NULL, &err), LADE_E_CHANGED);
	lade_store_unref(store);
}

static void headers_are_sent(void **state)
{
	(void)state;
	const char *headers[] = {"Authorization: Bearer secret", "X-Other: 1"};
	lade_http_options with = {.headers = headers, .header_count = 2};
	lade_store *store = open_url("secret", with);
	lade_store_report report;
	lade_error err;
	must(read_some(store, &report, &err), &err);
	lade_store_unref(store);
	/* They do not follow a redirection. */
	store = open_url("moved", with);
	assert_int_equal(read_some(store, &report, &err), LADE_E_IO);
	assert_non_null(strstr(err.message, "302"));
	lade_store_unref(store);
	with.struct_size = sizeof with;
	static const char *const bad[] = {"no colon", ": x", "A: b\r\nC: d", NULL};
	for (size_t i = 0; i < 4; i++) {
		headers[1] = bad[i];
		assert_int_equal(lade_store_http_open("http://x", &with, &store, &err), LADE_E_ARG);
	}
}

static void connections_are_used_again(void **state)
{
	(void)state;
	enum { N = 300 };
	static uint8_t back[N][64];
	static char keys[N][16];
	lade_range ranges[N];
	lade_error err;
	unsigned before[2], after[2];
	char text[64] = {0};
	lade_store *stat = open_url("", (lade_http_options){0});
	lade_store *store = open_url("ok", (lade_http_options){.parallel = 4});
	lade_range counts = {.key = "stat",
	                     .kind = LADE_RANGE_REST,
	                     .dst = lade_host_span(text, sizeof text - 1)};
	must(lade_store_read(stat, &counts, 1, NULL, NULL, &err), &err);
	assert_int_equal(sscanf(text, "%u %u", &before[0], &before[1]), 2);
	for (size_t i = 0; i < N; i++) {
		snprintf(keys[i], sizeof keys[i], "v%zu", 64 + i);
		ranges[i] = (lade_range){.key = keys[i], .dst = lade_host_span(back[i], 64)};
	}
	must(lade_store_read(store, ranges, N, NULL, NULL, &err), &err);
	for (size_t i = 0; i < N; i++)
		check(&ranges[i], 0, 64);
	must(lade_store_read(stat, &counts, 1, NULL, NULL, &err), &err);
	assert_int_equal(sscanf(text, "%u %u", &after[0], &after[1]), 2);
	assert_int_equal(after[1] - before[1], N);
	assert_in_range(after[0] - before[0], 1, 4);
	lade_store_unref(store);
	lade_store_unref(stat);
}

static void whole_values_are_noted(void **state)
{
	(void)state;
	lade_store *store = open_url("whole", (lade_http_options){0});
	lade_store_report report;
	lade_error err;
	store->cost.request_ns = 1;
	must(read_some(store, &report, &err), &err);
	assert_int_equal(report.request_count, 3);
	assert_true(report.moved_size >= 100000);
	/* Now both ranges of a value share a request. */
	must(read_some(store, &report, &err), &err);
	assert_int_equal(report.request_count, 2);
	lade_store_unref(store);
}

static void *cancel_soon(void *ctx)
{
	usleep(100000);
	lade_cancel_set(ctx);
	return NULL;
}

static void calls_can_be_cancelled(void **state)
{
	(void)state;
	lade_store *store = open_url("slow/99", (lade_http_options){0});
	lade_cancel *cancel;
	pthread_t thread;
	uint8_t byte;
	lade_error err;
	assert_int_equal(lade_cancel_new(NULL, NULL, &cancel, NULL), LADE_OK);
	lade_io_options options = {.struct_size = sizeof options, .cancel = cancel};
	lade_range range = {.key = "v7", .dst = lade_host_span(&byte, 1)};
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
	uint64_t began = lade__now_ns();
	assert_int_equal(lade_store_read(store, &range, 1, &options, NULL, &err), LADE_E_CANCELLED);
	assert_true(lade__now_ns() - began < 3000000000);
	pthread_join(thread, NULL);
	lade_cancel_free(cancel);
	lade_store_unref(store);
}

typedef struct member {
	lade_store *store;
	atomic_uint *failures;
} member;

static void *read_often(void *ctx)
{
	member *m = ctx;
	uint8_t back[300];
	for (unsigned i = 0; i < 30; i++) {
		lade_range range = {
			.key = "v60000", .off = i * 700, .dst = lade_host_span(back, 300)};
		if (lade_store_read(m->store, &range, 1, NULL, NULL, NULL) != LADE_OK ||
		    back[299] != byte_at(i * 700 + 299))
			atomic_fetch_add(m->failures, 1);
	}
	return NULL;
}

static void threads_and_children_share_a_store(void **state)
{
	(void)state;
	lade_store *store = open_url("ok", (lade_http_options){0});
	pthread_t threads[4];
	atomic_uint failures = 0;
	member m = {store, &failures};
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_often, &m), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failures, 0);
#ifndef __SANITIZE_THREAD__ /* it has no threads in children of programs with several */
	pid_t child = fork();
	if (child == 0) {
		read_often(&m);
		lade_store_unref(store);
		_exit(failures == 0 ? 0 : 1);
	}
	int how;
	waitpid(child, &how, 0);
	assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
#endif
	read_often(&m);
	assert_int_equal(failures, 0);
	lade_store_unref(store);
}

/* Metadata here, chunks there, in one call. */
static void a_server_among_stores(void **state)
{
	(void)state;
	lade_store *here, *there = open_url("ok", (lade_http_options){0}), *both;
	lade_error err;
	uint8_t back[3][20];
	must(lade_store_memory_new(LADE_PLACE_HOST, NULL, &here, &err), &err);
	must(lade_store_memory_lend(here, "zarr.json", lade_host_cspan("{}", 2), &err), &err);
	lade_store_route routes[2] = {{NULL, here}, {"c/", there}};
	must(lade_store_composite_new(routes, 2, &both, &err), &err);
	lade_store_unref(here);
	lade_store_unref(there);
	lade_range ranges[3] = {{.key = "c/v900", .off = 5, .dst = lade_host_span(back[0], 20)},
	                        {.key = "zarr.json", .dst = lade_host_span(back[1], 2)},
	                        {.key = "c/v900", .off = 25, .dst = lade_host_span(back[2], 20)}};
	lade_store_report report = {.struct_size = sizeof report};
	must(lade_store_read(both, ranges, 3, NULL, &report, &err), &err);
	check(&ranges[0], 5, 20);
	check(&ranges[2], 25, 20);
	assert_memory_equal(back[1], "{}", 2);
	assert_true(report.request_count == 2 && report.wanted_size == 42);
	lade_store_unref(both);
}

static void arguments_are_checked(void **state)
{
	(void)state;
	lade_store *store;
	lade_error err;
	static const char *const bad[] = {"",
	                                  "ftp://x/",
	                                  "http://",
	                                  "http:///x",
	                                  "x",
	                                  "file:///etc",
	                                  "http://a b/",
	                                  "http://x/#y",
	                                  "http://x/\n",
	                                  "https://?"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(lade_store_http_open(bad[i], NULL, &store, &err), LADE_E_ARG);
	lade_http_options options = {.struct_size = sizeof options, .parallel = 257};
	assert_int_equal(lade_store_http_open("http://x", &options, &store, &err), LADE_E_ARG);
	options = (lade_http_options){.struct_size = sizeof options, .libcurl = "/no/libcurl.so"};
	assert_int_equal(lade_store_http_open("http://x", &options, &store, &err),
	                 LADE_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "/no/libcurl.so"));
	options.libcurl = "libc.so.6"; /* no libcurl */
	assert_int_equal(lade_store_http_open("http://x", &options, &store, &err),
	                 LADE_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "curl_"));
}

/* ---- without a server --------------------------------------------------------------------- */

static void urls_are_made(void **state)
{
	(void)state;
	static const char *const all[][3] = {
		{"http://h", "a/b", "http://h/a/b"},
		{"http://h/x/", "a b", "http://h/x/a%20b"},
		{"http://h/x?sig=1&b=2", "\xc3\xa9?#%&+",
	         "http://h/x/%C3%A9%3F%23%25%26%2B?sig=1&b=2"},
		{"http://h/x/?s", "~-._", "http://h/x/~-._?s"},
	};
	for (size_t i = 0; i < 4; i++) {
		char *url = lade__http_url(all[i][0], all[i][1]);
		assert_string_equal(url, all[i][2]);
		free(url);
	}
}

static lade__http_answer head(const char *const *lines, int code)
{
	lade__http_answer answer;
	lade__http_line(&answer, "HTTP/1.1 200 OK\r\n", 17);
	for (; *lines; lines++)
		lade__http_line(&answer, *lines, strlen(*lines));
	answer.code = code;
	return answer;
}

static void hostile_heads(void **state)
{
	(void)state;
	static const char *const ranges[] = {
		"Content-Range: bytes 5-4/10",
		"Content-Range: bytes 0-18446744073709551615/5",
		"Content-Range: bytes 0-99999999999999999999/5",
		"Content-Range: bytes 100-108/*x",
		"Content-Range: bytes 0-9/100",
		"Content-Range: bytes 100-109/105",
		"Content-Range: bytes 100-110/200",
		"Content-Range: bytes 99-109/200",
		"Content-Range: bytes",
		"Content-Range: bytes 100",
		"Content-Range: items 100-109/200",
		"Content-Range:",
		"X: y",
	};
	uint8_t back[10];
	lade__http_body body;
	lade_error err;
	bool again;
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
		lade_range range = {.off = 100, .dst = lade_host_span(back, 10)};
		lade__http_answer answer = head((const char *const[]){ranges[i], NULL}, 206);
		lade_status status = lade__http_judge(&answer, &range, &body, &again, &err);
		if (status == LADE_OK)
			fail_msg("%s", ranges[i]);
	}
	/* What is not a number is not told; a long tag becomes its hash. */
	char tag[600] = "ETag: \"";
	memset(tag + 7, 'x', 500);
	lade__http_answer answer =
		head((const char *const[]){"Content-Length: 99999999999999999999", tag,
	                                   "Retry-After: 99999999999", NULL},
	             200);
	assert_true(answer.length == LADE_SIZE_UNKNOWN && answer.tag.size == 17);
	assert_true(answer.retry_ns == 3600000000000);
	/* Any bytes: nothing is read behind them. */
	rng r = {7};
	for (int i = 0; i < 20000; i++) {
		static const char *const starts[] = {
			"Content-Range: bytes ", "Content-Length: ", "ETag: ", "HTTP/", "",
			"Retry-After:"};
		const char *start = starts[rng_below(&r, 6)];
		size_t n = strlen(start), more = (size_t)rng_below(&r, 30);
		guard g = guard_new(n + more, 1);
		memcpy(g.data, start, n);
		for (size_t k = 0; k < more; k++)
			g.data[n + k] = (uint8_t) "0123456789-/* \r\n:x\xff"[rng_below(&r, 19)];
		lade__http_line(&answer, (char *)g.data, n + more);
		answer.code = rng_below(&r, 2) ? 206 : rng_below(&r, 2) ? 416 : 200;
		lade_range range = {.off = rng_below(&r, 20),
		                    .kind = (lade_range_kind)rng_below(&r, 3),
		                    .dst = lade_host_span(back, (size_t)rng_below(&r, 10))};
		if (lade__http_judge(&answer, &range, &body, &again, &err) == LADE_OK)
			assert_true(body.size <= range.dst.size && range.size <= range.dst.size);
		guard_free(&g);
	}
}

static int setup(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	server = http_server_start();
	return server.port == 0;
}

static int teardown(void **state)
{
	(void)state;
	http_server_stop(&server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_servers),
		cmocka_unit_test(faults_that_pass),
		cmocka_unit_test(faults_that_stay),
		cmocka_unit_test(values_that_change),
		cmocka_unit_test(headers_are_sent),
		cmocka_unit_test(connections_are_used_again),
		cmocka_unit_test(whole_values_are_noted),
		cmocka_unit_test(calls_can_be_cancelled),
		cmocka_unit_test(threads_and_children_share_a_store),
		cmocka_unit_test(a_server_among_stores),
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(urls_are_made),
		cmocka_unit_test(hostile_heads),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
