/*
 * test_store.c: stores: keys, the planner, versions, what a failure leaves alone, writes that are
 * killed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "guard.h"
#include "store/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/lade-store-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) == NULL;
}

static int teardown(void **state)
{
	(void)state;
	char command[64];
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

static uint8_t byte_at(uint64_t seed, uint64_t at)
{
	return (uint8_t)((at + seed * 7919) * 0x9E3779B97F4A7C15ULL >> 56);
}

static void fill(uint8_t *to, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++)
		to[i] = byte_at(seed, i);
}

static void must(lade_status status, const lade_error *err)
{
	if (status != LADE_OK)
		fail_msg("%s: %s", lade_status_name(status), err->message);
}

static lade_store *open_directory(const char *name, uint64_t flags)
{
	lade_directory_options options = {.struct_size = sizeof options,
	                                  .flags = flags | LADE_DIRECTORY_CREATE};
	char path[128];
	lade_store *store;
	lade_error err;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	must(lade_store_directory_open(path, &options, &store, &err), &err);
	return store;
}

static lade_store *new_memory(void)
{
	lade_store *store;
	lade_error err;
	must(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &err), &err);
	return store;
}

static void put(lade_store *store, const char *key, const void *data, size_t size)
{
	lade_write write = {.key = key, .src = lade_host_cspan(data, size)};
	lade_error err;
	must(lade_store_write(store, &write, 1, NULL, NULL, &err), &err);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void keys_are_checked(void **state)
{
	(void)state;
	char longest[LADE_KEY_MAX + 2];
	memset(longest, 'k', sizeof longest);
	longest[LADE_KEY_MAX + 1] = 0;
	const struct {
		const char *key;
		uint64_t offset;
	} bad[] = {{"", 0},
	           {"/", 0},
	           {"/a", 0},
	           {"a/", 2},
	           {"a//b", 2},
	           {".", 0},
	           {"..", 0},
	           {"../a", 0},
	           {"a/../b", 2},
	           {"a/..", 2},
	           {"a/.", 2},
	           {"./a", 0},
	           {"a\nb", 1},
	           {"a\x7f", 1},
	           {"\x1f", 0},
	           {"a/.lade-0", 2},
	           {longest, LADE_KEY_MAX},
	           {NULL, LADE_NO_OFFSET}};
	const char *good[] = {"a",       "...", "..a",  ".a",  "a/b/c",
	                      ".zarray", "a b", "a\\b", "é/ü", "lade-"};
	lade_store *stores[] = {new_memory(), open_directory("keys", 0)};
	uint8_t byte = 1;
	for (size_t s = 0; s < 2; s++) {
		for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
			lade_error err = {0};
			lade_range range = {.key = bad[i].key, .dst = lade_host_span(&byte, 1)};
			lade_write write = {.key = bad[i].key, .src = lade_host_cspan(&byte, 1)};
			assert_int_equal(lade_key_check(bad[i].key, &err), LADE_E_ARG);
			assert_true(err.offset == bad[i].offset);
			assert_int_equal(lade_store_read(stores[s], &range, 1, NULL, NULL, NULL),
			                 LADE_E_ARG);
			assert_int_equal(lade_store_write(stores[s], &write, 1, NULL, NULL, NULL),
			                 LADE_E_ARG);
			assert_int_equal(lade_store_look(stores[s], bad[i].key, NULL, NULL, NULL),
			                 LADE_E_ARG);
		}
		longest[LADE_KEY_MAX] = 0;
		assert_int_equal(lade_key_check(longest, NULL), LADE_OK);
		longest[LADE_KEY_MAX] = 'k';
		for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
			uint64_t size;
			if (s == 1 && i > 0 && good[i][0] == 'a' && good[i][1] == '/')
				continue; /* "a" is a file there */
			put(stores[s], good[i], &byte, 1);
			assert_int_equal(lade_store_look(stores[s], good[i], &size, NULL, NULL),
			                 LADE_OK);
			assert_true(size == 1);
		}
		lade_store_unref(stores[s]);
	}
}

/* ---- what all stores do ---------------------------------------------------------------------- */

typedef struct seen {
	char keys[64][80];
	uint64_t sizes[64];
	size_t count, end_at;
} seen;

static lade_status see(void *ctx, const lade_store_entry *entry)
{
	seen *s = ctx;
	snprintf(s->keys[s->count], sizeof s->keys[0], "%s", entry->key);
	s->sizes[s->count++] = entry->size;
	return s->count == s->end_at ? LADE_E_STATE : LADE_OK;
}

static void expect_listing(lade_store *store, const char *prefix, bool level,
                           const char *const *want)
{
	seen s = {.count = 0};
	lade_store_listing listing = {.struct_size = sizeof listing,
	                              .prefix = prefix,
	                              .level = level,
	                              .visit = see,
	                              .ctx = &s};
	lade_error err;
	must(lade_store_list(store, &listing, &err), &err);
	for (size_t i = 0; i < s.count; i++)
		assert_string_equal(s.keys[i], want[i] ? want[i] : "(nothing more)");
	assert_null(want[s.count]);
}

static void do_everything(lade_store *store)
{
	static const char *const keys[] = {"a-b", "a/b/0", "a/b/1", "a/c", "z"};
	lade_object_version first, second;
	lade_error err;
	uint8_t data[1000], back[1000];
	uint64_t size;
	fill(data, sizeof data, 1);
	for (size_t i = 0; i < 5; i++)
		put(store, keys[4 - i], data, 100 * (5 - i));
	expect_listing(store, NULL, false,
	               (const char *[]){"a-b", "a/b/0", "a/b/1", "a/c", "z", NULL});
	expect_listing(store, "", true, (const char *[]){"a-b", "a/", "z", NULL});
	expect_listing(store, "a/", true, (const char *[]){"a/b/", "a/c", NULL});
	expect_listing(store, "a/b/", false, (const char *[]){"a/b/0", "a/b/1", NULL});
	expect_listing(store, "b/", false, (const char *[]){NULL});
	lade_store_listing bad = {.struct_size = sizeof bad, .visit = see};
	static const char *const prefixes[] = {"a", "/", "../", "a//", "a/../"};
	for (size_t i = 0; i < 5; i++) {
		bad.prefix = prefixes[i];
		assert_int_equal(lade_store_list(store, &bad, &err), LADE_E_ARG);
	}
	seen s = {.end_at = 2};
	lade_store_listing ends = {
		.struct_size = sizeof ends, .sizes = true, .visit = see, .ctx = &s};
	assert_int_equal(lade_store_list(store, &ends, &err), LADE_E_STATE);
	assert_true(s.count == 2 && s.sizes[0] == 100 && s.sizes[1] == 200);

	must(lade_store_look(store, "z", &size, &first, &err), &err);
	assert_true(size == 500 && first.size > 0);
	lade_write write = {
		.key = "z", .kind = LADE_WRITE_IF_ABSENT, .src = lade_host_cspan(data, 1)};
	assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, &err), LADE_E_CHANGED);
	write = (lade_write){.key = "z",
	                     .kind = LADE_WRITE_IF_VERSION,
	                     .want = &first,
	                     .version = &second,
	                     .src = lade_host_cspan(data, 7)};
	must(lade_store_write(store, &write, 1, NULL, NULL, &err), &err);
	assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, &err), LADE_E_CHANGED);
	assert_non_null(strstr(err.message, "'z'"));
	must(lade_store_look(store, "z", &size, &first, &err), &err);
	lade_range range = {.key = "z",
	                    .kind = LADE_RANGE_LAST,
	                    .dst = lade_host_span(back, 3),
	                    .want = &first};
	must(lade_store_read(store, &range, 1, NULL, NULL, &err), &err);
	assert_memory_equal(back, data + 4, 3);
	write = (lade_write){.key = "a/c", .kind = LADE_DELETE_IF_VERSION};
	must(lade_store_write(store, &write, 1, NULL, NULL, &err), &err);
	assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, &err), LADE_E_NOT_FOUND);
	assert_int_equal(lade_store_look(store, "a/c", &size, NULL, &err), LADE_E_NOT_FOUND);
	assert_true(size == LADE_SIZE_UNKNOWN);
	assert_int_equal(lade_store_look(store, "a/b", &size, NULL, &err), LADE_E_NOT_FOUND);
	assert_non_null(strstr(err.message, "'a/b'"));

	lade_source source;
	must(lade_store_object_open(store, "a/b/1", &source, &err), &err);
	lade_store_unref(store); /* the source holds it */
	range = (lade_range){.kind = LADE_RANGE_REST, .off = 290, .dst = lade_host_span(back, 99)};
	must(lade_source_read(source, &range, 1, NULL, &err), &err);
	assert_true(range.size == 10 && range.object_size == 300);
	assert_memory_equal(back, data + 290, 10);
	lade_source_close(source);
}

static void memory_does_everything(void **state)
{
	(void)state;
	do_everything(new_memory());
}

static void directory_does_everything(void **state)
{
	(void)state;
	do_everything(open_directory("all", 0));
	do_everything(open_directory("all-synced", LADE_DIRECTORY_SYNC));
}

/* ---- a store of the test's ------------------------------------------------------------------ */

/* Two values of SIZE bytes; 'v' counts versions. */
#define SIZE ((size_t)1 << 20)
typedef struct mine {
	atomic_uint requests, version;
	unsigned change_at[2]; /* requests that see a new version come; 0: none */
	bool broken;           /* requests that touch byte 1000 fail */
	rng random;
} mine;

static void mine_read(void *ctx, lade_reading *reading, size_t count)
{
	mine *m = ctx;
	static uint8_t bytes[SIZE];
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err = {0};
		uint64_t off;
		unsigned n = atomic_fetch_add(&m->requests, 1) + 1;
		if (n == m->change_at[0] || n == m->change_at[1])
			atomic_fetch_add(&m->version, 1);
		uint64_t seed = atomic_load(&m->version);
		lade_object_version version = {1, {(uint8_t)(seed + 1)}};
		lade_status status = LADE_E_NOT_FOUND;
		if (range->key[0] == 'v')
			status = lade__range_answer(range, SIZE, &version, &off, &err);
		if (status == LADE_OK && m->broken && off <= 1000 && off + range->size > 1000)
			status = lade_fail(&err, LADE_E_IO, 1000, "byte 1000 is broken");
		/* In pieces, as a network brings them. */
		for (size_t at = 0, size; status == LADE_OK && at < range->size; at += size) {
			size = 1 + (size_t)rng_below(&m->random, 100000);
			size = size < range->size - at ? size : range->size - at;
			for (size_t k = 0; k < size; k++)
				bytes[k] = byte_at(seed, off + at + k);
			status = lade_reading_put(reading, i, at, lade_host_cspan(bytes, size),
			                          &err);
		}
		lade_reading_done(reading, i, status, &err);
	}
}

static lade_store *new_mine(mine *m, uint32_t flags)
{
	lade_store_ops ops = {.struct_size = sizeof ops,
	                      .flags = flags,
	                      .parallel = 4,
	                      .request_ns = 1000000,
	                      .request_rate = 100000000,
	                      .read = mine_read};
	lade_store *store;
	lade_error err;
	m->random = (rng){4711};
	must(lade_store_new(&ops, m, "mine", &store, &err), &err);
	return store;
}

/* Lists what it is told to, "v" and no key among them. */
static lade_status list_given(void *ctx, const lade_store_listing *listing, lade_error *err)
{
	const char *const *keys = ctx;
	lade_status status = LADE_OK;
	(void)err;
	for (; *keys && status == LADE_OK; keys++) {
		lade_store_entry entry = {sizeof entry, *keys, LADE_SIZE_UNKNOWN};
		status = listing->visit(listing->ctx, &entry);
	}
	return status;
}

static void listings_of_others_are_checked(void **state)
{
	(void)state;
	static const char *const bad[] = {"../x", "/", "", "b/x", "a//", "a/\n"};
	const char *keys[] = {"a/x", "a/y/", NULL, NULL};
	lade_store_ops ops = {.struct_size = sizeof ops, .read = mine_read, .list = list_given};
	lade_store *store;
	lade_error err;
	must(lade_store_new(&ops, keys, "theirs", &store, &err), &err);
	expect_listing(store, "a/", true, (const char *[]){"a/x", "a/y/", NULL});
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		seen s = {0};
		lade_store_listing listing = {
			.struct_size = sizeof listing, .prefix = "a/", .visit = see, .ctx = &s};
		keys[2] = bad[i];
		assert_int_equal(lade_store_list(store, &listing, &err), LADE_E_IO);
		assert_int_equal(s.count, 2);
	}
	lade_store_unref(store);
}

/* 'count' random ranges in 'stretch' bytes of "v", some adjoining; spans end at guard pages. */
static void read_random(lade_store *store, rng *r, size_t count, size_t stretch, uint64_t seed)
{
	lade_range *ranges = calloc(count, sizeof *ranges);
	guard *guards = calloc(count, sizeof *guards);
	lade_store_report report = {.struct_size = sizeof report};
	lade_object_version *versions = calloc(count, sizeof *versions);
	lade_error err;
	uint64_t off = 0, total = 0;
	for (size_t i = 0; i < count; i++) {
		size_t size = (size_t)rng_below(r, 3000);
		off = rng_below(r, 3) ? off : rng_below(r, stretch);
		if (off + size > SIZE)
			off = 0;
		guards[i] = guard_new(size, rng_below(r, 2) != 0);
		ranges[i] = (lade_range){.key = "v",
		                         .off = off,
		                         .version = &versions[i],
		                         .dst = lade_host_span(guards[i].data, size)};
		total += size;
		off += size;
	}
	must(lade_store_read(store, ranges, count, NULL, &report, &err), &err);
	for (size_t i = 0; i < count; i++) {
		assert_true(ranges[i].size == ranges[i].dst.size && ranges[i].object_size == SIZE);
		assert_true(lade_object_version_equal(&versions[i], &versions[0]));
		for (size_t k = 0; k < ranges[i].size; k++)
			assert_true(guards[i].data[k] == byte_at(seed, ranges[i].off + k));
		guard_free(&guards[i]);
	}
	assert_true(report.wanted_size == total && report.moved_size >= total);
	assert_true(report.request_count > 0);
	free(versions);
	free(guards);
	free(ranges);
}

static void ranges_are_read_whatever_the_plan(void **state)
{
	(void)state;
	rng r = {99};
	mine m = {0};
	uint8_t *value = malloc(SIZE);
	fill(value, SIZE, 0);
	lade_store *stores[] = {new_mine(&m, LADE_STORE_PARTS), new_mine(&m, 0), new_memory(),
	                        open_directory("plan", 0)};
	put(stores[2], "v", value, SIZE);
	put(stores[3], "v", value, SIZE);
	free(value);
	for (size_t s = 0; s < 4; s++) {
		for (int round = 0; round < 60; round++) {
			lade__cost *c = &stores[s]->cost;
			c->request_ns = (double)rng_below(&r, 2000000);
			c->request_rate = 0.01 + (double)rng_below(&r, 100) / 10;
			c->store_rate = c->request_rate * (double)(1 + rng_below(&r, 8));
			c->whole = rng_below(&r, 8) == 0;
			read_random(stores[s], &r, 1 + (size_t)rng_below(&r, 200),
			            1 + (size_t)rng_below(&r, SIZE), 0);
		}
		lade_store_unref(stores[s]);
	}
}

static lade_store_plan plan_of(lade_store *store, const lade_range *ranges, size_t count)
{
	lade_store_plan plan = {.struct_size = sizeof plan};
	lade_error err;
	must(lade_store_explain(store, ranges, count, NULL, &plan, &err), &err);
	assert_true(plan.range_count == count && plan.text[0]);
	return plan;
}

/* 100 ranges of 4 KiB, each 'gap' bytes behind the last. */
static lade_store_plan plan_gaps(lade_store *store, uint64_t gap)
{
	lade_range ranges[100];
	for (size_t i = 0; i < 100; i++)
		ranges[i] = (lade_range){
			.key = "v", .off = i * (4096 + gap), .dst = lade_host_span(NULL, 4096)};
	return plan_of(store, ranges, 100);
}

static void joining_follows_the_cost(void **state)
{
	(void)state;
	mine m = {0};
	lade_store *store = new_mine(&m, LADE_STORE_PARTS);
	/* A far server: 50 ms, 100 MB/s for many, 4 at once: a round of 4 costs 5 MB. */
	store->cost = (lade__cost){
		.request_ns = 50e6, .request_rate = 0.05, .store_rate = 0.1, .parallel = 4};
	assert_true(plan_gaps(store, 0).request_count == 1);
	lade_store_plan far = plan_gaps(store, 10000);
	assert_true(far.request_count <= 4 && far.merged_count == 100 - far.request_count &&
	            far.gap_size == 10000);
	assert_true(plan_gaps(store, 10000000).request_count == 100);
	/* A near one: 20 us, 2 GB/s, 32 at once: three rounds of 32 are 60 us or 120 KB. */
	store->cost = (lade__cost){
		.request_ns = 20e3, .request_rate = 1, .store_rate = 2, .parallel = 32};
	assert_true(plan_gaps(store, 0).request_count == 1);
	assert_true(plan_gaps(store, 1 << 20).request_count == 100);
	assert_true(plan_gaps(store, 1 << 20).merged_count == 0);
	/* Whole values come anyway. */
	store->cost.whole = true;
	assert_true(plan_gaps(store, 1 << 30).request_count == 1);
	lade_store_unref(store);
	/* A store that cannot take parts. */
	store = new_mine(&m, 0);
	assert_true(plan_gaps(store, 0).request_count == 100);
	lade_store_unref(store);
	assert_int_equal(m.requests, 0);
}

static void splitting_follows_the_cost(void **state)
{
	(void)state;
	mine m = {0};
	lade_store *store = new_mine(&m, 0);
	lade_range range = {.key = "v", .dst = lade_host_span(NULL, (size_t)80 << 20)};
	store->cost = (lade__cost){
		.request_ns = 10e6, .request_rate = 0.1, .store_rate = 0.4, .parallel = 8};
	lade_store_plan plan = plan_of(store, &range, 1);
	assert_true(plan.request_count == 8 && plan.split_count == 1);
	lade_io_options two = {.struct_size = sizeof two, .threads = 2};
	assert_int_equal(lade_store_explain(store, &range, 1, &two, &plan, NULL), LADE_OK);
	assert_true(plan.request_count == 2);
	store->cost.store_rate = 0.1; /* one request has all the bandwidth */
	assert_true(plan_of(store, &range, 1).request_count == 1);
	store->cost.store_rate = 0.4;
	range.dst.size = 1 << 20; /* a piece would take less time than its latency */
	assert_true(plan_of(store, &range, 1).request_count == 1);
	range.kind = LADE_RANGE_REST; /* nobody knows where it ends */
	range.dst.size = (size_t)80 << 20;
	assert_true(plan_of(store, &range, 1).request_count == 1);
	lade_store_unref(store);
}

/* Gaps of several sizes, in any order: no other choice of gaps costs less. */
static void no_other_gap_is_better(void **state)
{
	(void)state;
	rng r = {5};
	mine m = {0};
	lade_store *store = new_mine(&m, LADE_STORE_PARTS);
	for (int round = 0; round < 200; round++) {
		lade_range ranges[50];
		uint64_t gaps[50], off = 0, wanted = 0;
		size_t count = 2 + (size_t)rng_below(&r, 48);
		for (size_t i = 0; i < count; i++) {
			size_t size = 1 + (size_t)rng_below(&r, 5000);
			gaps[i] = i ? rng_below(&r, (uint64_t)1 << rng_below(&r, 24)) : 0;
			off += gaps[i];
			ranges[i] = (lade_range){
				.key = "v", .off = off, .dst = lade_host_span(NULL, size)};
			off += size;
			wanted += size;
		}
		store->cost = (lade__cost){.request_ns = (double)rng_below(&r, 10000000),
		                           .request_rate = 0.05,
		                           .store_rate = 0.05,
		                           .parallel = 1 + (unsigned)rng_below(&r, 40)};
		lade_store_plan plan = plan_of(store, ranges, count);
		for (size_t k = 0; k < count; k++) {
			double requests = (double)count, bytes = (double)wanted;
			for (size_t i = 1; i < count; i++)
				if (gaps[i] <= gaps[k]) {
					requests--;
					bytes += (double)gaps[i];
				}
			assert_true((double)plan.expected_ns <=
			            lade__cost_ns(&store->cost, requests, bytes) + 1);
		}
	}
	lade_store_unref(store);
}

static void costs_are_measured(void **state)
{
	(void)state;
	mine m = {0};
	lade_store *store = new_mine(&m, LADE_STORE_PARTS);
	for (int i = 0; i < 200; i++) {
		/* What a store of 5 ms, 200 MB/s for one, 600 MB/s for four shows. */
		lade__store_measured(store, 1, 100, 5000500);
		lade__store_measured(store, 1, 20000000, 105000000);
		lade__store_measured(store, 4, 120000000, 205000000);
	}
	lade__cost c = lade__store_cost(store);
	assert_true(c.request_ns > 4.5e6 && c.request_ns < 5.5e6);
	assert_true(c.request_rate > 0.18 && c.request_rate < 0.22);
	assert_true(c.store_rate > 0.54 && c.store_rate < 0.66);
	/* 150 MB/s for one, by calls of two and of eight: they do not look like a full store. */
	for (int i = 0; i < 200; i++) {
		lade__store_measured(store, 2, 60000000, 205000000);
		lade__store_measured(store, 8, 120000000, 210000000);
	}
	c = lade__store_cost(store);
	assert_true(c.request_rate > 0.13 && c.request_rate < 0.17);
	assert_true(c.store_rate > 0.54 && c.store_rate < 0.66);
	lade__store_measured(store, 1, 0, 0);
	lade__store_measured(store, 1000000, UINT64_MAX, 1);
	c = lade__store_cost(store);
	assert_true(c.request_ns > 0 && c.request_rate > 0 && c.store_rate >= c.request_rate);
	lade_store_unref(store);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void a_failure_spoils_no_neighbour(void **state)
{
	(void)state;
	mine m = {.broken = true};
	lade_store *store = new_mine(&m, LADE_STORE_PARTS);
	uint8_t back[6][100];
	lade_error errors[6], err;
	lade_io_options options = {.struct_size = sizeof options, .errors = errors};
	/* The first three are one request, which byte 1000 breaks.  The fourth ends behind the
	 * value, the fifth before. */
	lade_range ranges[6] = {{.key = "v", .off = 900},        {.key = "v", .off = 1000},
	                        {.key = "v", .off = 1100},       {.key = "v", .off = SIZE - 50},
	                        {.key = "v", .off = SIZE - 150}, {.key = "nothing", .off = 5}};
	for (size_t i = 0; i < 6; i++)
		ranges[i].dst = lade_host_span(back[i], 100);
	assert_int_equal(lade_store_read(store, ranges, 6, &options, NULL, &err), LADE_E_IO);
	static const lade_status want[6] = {LADE_OK,      LADE_E_IO, LADE_OK,
	                                    LADE_E_RANGE, LADE_OK,   LADE_E_NOT_FOUND};
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(ranges[i].status, want[i]);
		for (size_t k = 0; want[i] == LADE_OK && k < 100; k++)
			assert_true(back[i][k] == byte_at(0, ranges[i].off + k));
	}
	assert_string_equal(err.message,
	                    "range 1: mine: key 'v', 100 bytes at 1000: byte 1000 is broken");
	assert_non_null(strstr(errors[5].message, "'nothing'"));
	lade_store_unref(store);
}

static void one_call_reads_one_version(void **state)
{
	(void)state;
	uint8_t back[2][1000];
	lade_error err;
	lade_object_version versions[2];
	lade_store_report report = {.struct_size = sizeof report};
	/* Two requests; the value changes before the second.  All is read again. */
	mine m = {.change_at = {2}};
	lade_store *store = new_mine(&m, LADE_STORE_PARTS);
	lade_range ranges[2] = {
		{.key = "v", .version = &versions[0], .dst = lade_host_span(back[0], 1000)},
		{.key = "v",
	         .version = &versions[1],
	         .off = SIZE - 1000,
	         .dst = lade_host_span(back[1], 1000)}};
	store->cost =
		(lade__cost){.request_ns = 1, .request_rate = 1, .store_rate = 1, .parallel = 4};
	must(lade_store_read(store, ranges, 2, NULL, &report, &err), &err);
	assert_true(report.request_count == 4 && report.retry_count == 2);
	assert_true(lade_object_version_equal(&versions[0], &versions[1]));
	for (size_t i = 0; i < 1000; i++)
		assert_true(back[0][i] == byte_at(1, i));
	/* It changes again: a conflict. */
	m = (mine){.change_at = {2, 4}, .random = {1}};
	store->cost.request_ns = 1;
	assert_int_equal(lade_store_read(store, ranges, 2, NULL, NULL, &err), LADE_E_CHANGED);
	assert_true(ranges[0].status == LADE_E_CHANGED && ranges[0].size == 0);
	/* Who wants a version gets no other, and nothing is read again. */
	m = (mine){.version = 3, .random = {1}};
	ranges[1].want = &(lade_object_version){1, {3}};
	assert_int_equal(lade_store_read(store, ranges, 2, NULL, NULL, &err), LADE_E_CHANGED);
	assert_true(ranges[0].status == LADE_OK && ranges[1].status == LADE_E_CHANGED);
	assert_int_equal(m.requests, 2);
	lade_store_unref(store);
}

static void a_cancelled_call_reads_nothing_more(void **state)
{
	(void)state;
	lade_store *store = open_directory("cancel", 0);
	uint8_t byte = 7;
	put(store, "k", &byte, 1);
	lade_cancel *cancel;
	assert_int_equal(lade_cancel_new(NULL, NULL, &cancel, NULL), LADE_OK);
	lade_cancel_set(cancel);
	lade_io_options options = {.struct_size = sizeof options, .cancel = cancel};
	lade_range range = {.key = "k", .dst = lade_host_span(&byte, 1)};
	lade_write write = {.key = "new", .src = lade_host_cspan(&byte, 1)};
	seen s = {0};
	lade_store_listing listing = {
		.struct_size = sizeof listing, .visit = see, .ctx = &s, .cancel = cancel};
	assert_int_equal(lade_store_read(store, &range, 1, &options, NULL, NULL), LADE_E_CANCELLED);
	assert_int_equal(lade_store_write(store, &write, 1, &options, NULL, NULL),
	                 LADE_E_CANCELLED);
	assert_int_equal(lade_store_list(store, &listing, NULL), LADE_E_CANCELLED);
	assert_int_equal(lade_store_look(store, "new", NULL, NULL, NULL), LADE_E_NOT_FOUND);
	lade_cancel_free(cancel);
	lade_store_unref(store);
}

static void arguments_are_checked(void **state)
{
	(void)state;
	lade_error err;
	lade_store *store = (lade_store *)&err;
	lade_store_ops ops = {.struct_size = sizeof ops, .flags = 8, .read = mine_read};
	assert_int_equal(lade_store_new(&ops, NULL, "x", &store, &err), LADE_E_ARG);
	assert_null(store);
	ops.flags = 0;
	ops.read = NULL;
	assert_int_equal(lade_store_new(&ops, NULL, "x", &store, &err), LADE_E_ARG);
	assert_int_equal(lade_store_new(NULL, NULL, "x", &store, &err), LADE_E_ARG);
	assert_int_equal(lade_store_directory_open("/nowhere/at/all", NULL, &store, &err),
	                 LADE_E_NOT_FOUND);
	assert_int_equal(lade_store_directory_open("/dev/null", NULL, &store, &err), LADE_E_IO);
	assert_int_equal(lade_store_memory_new((lade_place){LADE_DEVICE, 99}, NULL, &store, &err),
	                 LADE_E_NO_DEVICE);
	ops.read = mine_read;
	must(lade_store_new(&ops, &(mine){0}, "x", &store, &err), &err);
	lade_write write = {.key = "v"};
	lade_store_listing listing = {.struct_size = sizeof listing, .visit = see};
	assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, &err), LADE_E_UNSUPPORTED);
	assert_int_equal(lade_store_list(store, &listing, &err), LADE_E_UNSUPPORTED);
	assert_int_equal(lade_store_memory_lend(store, "v", lade_host_cspan("", 0), &err),
	                 LADE_E_ARG);
	lade_store_report report = {.struct_size = 3};
	assert_int_equal(lade_store_read(store, NULL, 0, NULL, &report, &err), LADE_E_ARG);
	assert_int_equal(lade_store_read(store, NULL, 0, NULL, NULL, &err), LADE_OK);
	assert_int_equal(lade_store_read(store, NULL, 1, NULL, NULL, &err), LADE_E_ARG);
	lade_store_unref(store);
	lade_store_unref(NULL);
}

/* ---- directories ----------------------------------------------------------------------- */

static void only_files_are_values(void **state)
{
	(void)state;
	lade_store *store = open_directory("odd", 0);
	char path[128];
	uint8_t byte = 1;
	lade_error err;
	put(store, "sub/file", &byte, 1);
	snprintf(path, sizeof path, "%s/odd/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof path, "%s/odd/.lade-00", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof path, "%s/odd/loop", dir);
	assert_int_equal(symlink("nowhere", path), 0);
	expect_listing(store, NULL, false, (const char *[]){"sub/file", NULL});
	assert_int_equal(lade_store_look(store, "fifo", NULL, NULL, &err), LADE_E_NOT_FOUND);
	assert_int_equal(lade_store_look(store, "sub", NULL, NULL, &err), LADE_E_NOT_FOUND);
	assert_int_equal(lade_store_look(store, "sub/file/below", NULL, NULL, &err),
	                 LADE_E_NOT_FOUND);
	assert_int_equal(lade_store_look(store, "loop", NULL, NULL, &err), LADE_E_NOT_FOUND);
	/* A pipe would wait for a reader. */
	lade_write pipe_write = {.key = "fifo", .src = lade_host_cspan(&byte, 1)};
	assert_int_equal(lade_store_write(store, &pipe_write, 1, NULL, NULL, &err),
	                 LADE_E_UNSUPPORTED);
	/* A directory goes with its last value. */
	lade_write write = {.key = "sub/file", .kind = LADE_DELETE_IF_VERSION};
	must(lade_store_write(store, &write, 1, NULL, NULL, &err), &err);
	expect_listing(store, NULL, true, (const char *[]){NULL});
	lade_store_unref(store);
	lade_directory_options options = {.struct_size = sizeof options,
	                                  .flags = LADE_DIRECTORY_READ_ONLY};
	snprintf(path, sizeof path, "%s/odd", dir);
	must(lade_store_directory_open(path, &options, &store, &err), &err);
	assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, &err), LADE_E_UNSUPPORTED);
	lade_store_unref(store);
}

/* A process that is killed while it writes leaves the old value or the new one. */
static void killed_writes_leave_whole_values(void **state)
{
	(void)state;
	lade_store *store = open_directory("killed", 0);
	const size_t size = 3000000;
	uint8_t *value = malloc(size), *back = malloc(size);
	lade_error err;
	rng r = {77};
	fill(value, size, 0);
	value[0] = 0;
	put(store, "k", value, size);
	for (int round = 0; round < 30; round++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			for (unsigned n = 1;; n++) {
				memset(value, (int)(n & 0xff), size);
				lade_write write = {.key = "k",
				                    .src = lade_host_cspan(value, size)};
				if (lade_store_write(store, &write, 1, NULL, NULL, NULL) != LADE_OK)
					_exit(1);
			}
		}
		usleep((useconds_t)(500 + rng_below(&r, 8000)));
		kill(child, SIGKILL);
		int how;
		waitpid(child, &how, 0);
		assert_true(WIFSIGNALED(how));
		lade_range range = {
			.key = "k", .kind = LADE_RANGE_REST, .dst = lade_host_span(back, size)};
		must(lade_store_read(store, &range, 1, NULL, NULL, &err), &err);
		assert_true(range.size == size);
		bool same = memcmp(back + 1, back, size - 1) == 0;
		bool first = back[0] == 0 && back[1] == byte_at(0, 1) &&
		             memcmp(back + 1, back, size - 1);
		assert_true(same || first);
	}
	expect_listing(store, NULL, false, (const char *[]){"k", NULL});
	uint64_t removed;
	must(lade_store_directory_sweep(store, 0, NULL, &removed, &err), &err);
	char path[64];
	snprintf(path, sizeof path, "%s/killed", dir);
	DIR *left = opendir(path);
	assert_non_null(left);
	for (const struct dirent *e; (e = readdir(left));)
		assert_true(strncmp(e->d_name, ".lade-", 6) != 0);
	closedir(left);
	free(back);
	free(value);
	lade_store_unref(store);
}

/* What a killed process leaves is removed, what a living one writes is not. */
static void a_sweep_removes_what_killed_writes_left(void **state)
{
	(void)state;
	lade_store *store = open_directory("swept", 0), *memory = new_memory(), *zip;
	char path[160], link[160];
	lade_error err;
	uint64_t removed;
	int how;
	put(store, "a/b/k", "v", 1);
	snprintf(path, sizeof path, "%s/swept/a/b/z.zip", dir);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		lade_store *left;
		if (lade_store_zip_create(path, NULL, &left, NULL) != LADE_OK)
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, &how, 0);
	assert_true(WIFSIGNALED(how));
	must(lade_store_zip_create(path, NULL, &zip, &err), &err);
	put(zip, "k", "v", 1);
	/* Neither these names nor a directory behind a link are a writer's. */
	static const char *const others[] = {".lade-0123456789abcdeg", ".lade-0123456789abcde",
	                                     "lade-0123456789abcdef"};
	for (size_t i = 0; i < 3; i++) {
		snprintf(link, sizeof link, "%s/swept/%s", dir, others[i]);
		close(open(link, O_WRONLY | O_CREAT, 0666));
	}
	snprintf(path, sizeof path, "%s/elsewhere", dir);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(link, sizeof link, "%s/swept/link", dir);
	assert_int_equal(symlink(path, link), 0);
	snprintf(link, sizeof link, "%s/elsewhere/.lade-0123456789abcdef", dir);
	close(open(link, O_WRONLY | O_CREAT, 0666));
	must(lade_store_directory_sweep(store, 3600, NULL, &removed, &err), &err);
	assert_true(removed == 0);
	must(lade_store_directory_sweep(store, 0, NULL, &removed, &err), &err);
	assert_true(removed == 1);
	must(lade_store_directory_sweep(store, 0, NULL, &removed, &err), &err);
	assert_true(removed == 0);
	must(lade_store_zip_finish(zip, NULL, &err), &err);
	lade_store_unref(zip);
	must(lade_store_look(store, "a/b/z.zip", NULL, NULL, &err), &err);
	assert_int_equal(access(link, F_OK), 0);
	for (size_t i = 0; i < 3; i++) {
		snprintf(link, sizeof link, "%s/swept/%s", dir, others[i]);
		assert_int_equal(access(link, F_OK), 0);
	}
	assert_int_equal(lade_store_directory_sweep(memory, 0, NULL, NULL, NULL), LADE_E_ARG);
	lade_store_unref(memory);
	/* A file of a second that time() does not tell yet, as can be for a tick of the clock. */
	struct timespec now;
	snprintf(link, sizeof link, "%s/swept/.lade-0123456789abcdef", dir);
	do {
		clock_gettime(CLOCK_REALTIME, &now);
		if (now.tv_nsec > 20000000 && now.tv_nsec < 980000000)
			usleep((useconds_t)(990000000 - now.tv_nsec) / 1000);
	} while (now.tv_nsec >= 1000000);
	for (int i = 0; i < 20; i++) {
		close(open(link, O_WRONLY | O_CREAT, 0666));
		must(lade_store_directory_sweep(store, 0, NULL, &removed, &err), &err);
		assert_true(removed == 1);
	}
	lade_store_unref(store);
	store = open_directory("swept", LADE_DIRECTORY_READ_ONLY);
	assert_int_equal(lade_store_directory_sweep(store, 0, NULL, NULL, NULL),
	                 LADE_E_UNSUPPORTED);
	lade_store_unref(store);
}

/* ---- O_DIRECT -------------------------------------------------------------------------- */

/* Whatever is aligned or not, the bytes are the same. */
static void direct_reads_are_equal(void **state)
{
	(void)state;
	enum { TOTAL = 5 * 4096 + 777 };
	lade_store *store = open_directory("direct", LADE_DIRECTORY_DIRECT);
	uint8_t *value = malloc(TOTAL), *back = aligned_alloc(4096, 8 * 4096);
	lade_error err;
	fill(value, TOTAL, 3);
	put(store, "k", value, TOTAL);
	static const size_t offs[] = {0, 1, 512, 4096, 8192, TOTAL - 777, TOTAL - 1};
	static const size_t sizes[] = {1, 777, 4095, 4096, 4097, 8192, 9000, TOTAL};
	static const size_t shifts[] = {0, 1, 512};
	for (size_t i = 0; i < 7; i++)
		for (size_t k = 0; k < 8; k++)
			for (size_t s = 0; s < 3; s++) {
				size_t n = sizes[k] < TOTAL - offs[i] ? sizes[k] : TOTAL - offs[i];
				memset(back, 0xee, 8 * 4096);
				lade_range range = {.key = "k",
				                    .off = offs[i],
				                    .kind = k == 7 ? LADE_RANGE_REST
				                                   : LADE_RANGE_AT,
				                    .dst = lade_host_span(back + shifts[s], n)};
				must(lade_store_read(store, &range, 1, NULL, NULL, &err), &err);
				assert_true(range.size == n);
				assert_memory_equal(back + shifts[s], value + offs[i], n);
				assert_int_equal(back[shifts[s] + n], 0xee);
			}
	lade_range beyond = {.key = "k", .dst = lade_host_span(back, 8 * 4096)};
	assert_int_equal(lade_store_read(store, &beyond, 1, NULL, NULL, NULL), LADE_E_RANGE);
	lade_store_plan plan = {.struct_size = sizeof plan};
	must(lade_store_explain(store, &beyond, 1, NULL, &plan, &err), &err);
	assert_non_null(strstr(plan.text, "O_DIRECT"));
	free(back);
	free(value);
	lade_store_unref(store);
}

/* ---- threads --------------------------------------------------------------------------- */

typedef struct crowd {
	lade_store *store;
	unsigned number;
	atomic_uint *failures;
} crowd;

static void *crowd_member(void *ctx)
{
	crowd *c = ctx;
	uint8_t bytes[512];
	for (unsigned i = 0; i < 150; i++) {
		char key[16];
		snprintf(key, sizeof key, "d%u/k", (c->number + i) % 3);
		memset(bytes, (int)(c->number * 16 + i % 16), sizeof bytes);
		lade_write write = {.key = key, .src = lade_host_cspan(bytes, sizeof bytes)};
		lade_status status = lade_store_write(c->store, &write, 1, NULL, NULL, NULL);
		if (status != LADE_OK)
			atomic_fetch_add(c->failures, 1);
		lade_range range = {.key = key, .dst = lade_host_span(bytes, sizeof bytes)};
		status = lade_store_read(c->store, &range, 1, NULL, NULL, NULL);
		if (status == LADE_OK && memcmp(bytes, bytes + 1, sizeof bytes - 1) != 0)
			atomic_fetch_add(c->failures, 1);
		if (status != LADE_OK && status != LADE_E_NOT_FOUND && status != LADE_E_CHANGED)
			atomic_fetch_add(c->failures, 1);
		write.kind = LADE_DELETE_IF_VERSION;
		if (i % 5 == 0)
			lade_store_write(c->store, &write, 1, NULL, NULL, NULL);
	}
	return NULL;
}

static void many_threads_share_a_store(void **state)
{
	(void)state;
	lade_store *stores[] = {new_memory(), open_directory("crowd", 0)};
	for (size_t s = 0; s < 2; s++) {
		atomic_uint failures = 0;
		pthread_t threads[4];
		crowd crowds[4];
		for (unsigned i = 0; i < 4; i++) {
			crowds[i] = (crowd){stores[s], i, &failures};
			assert_int_equal(
				pthread_create(&threads[i], NULL, crowd_member, &crowds[i]), 0);
		}
		for (unsigned i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(failures, 0);
		lade_store_unref(stores[s]);
	}
}

static void a_memory_store_has_many_keys(void **state)
{
	(void)state;
	lade_store *store = new_memory();
	enum { COUNT = 5000 };
	static char keys[COUNT][16];
	static lade_range ranges[COUNT];
	static uint32_t values[COUNT], back[COUNT];
	lade_error err;
	for (uint32_t i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof keys[i], "c/%u/%u", i / 100, i % 100);
		values[i] = i;
		if (i % 2)
			put(store, keys[i], &values[i], 4);
		else
			must(lade_store_memory_lend(store, keys[i], lade_host_cspan(&values[i], 4),
			                            &err),
			     &err);
		ranges[i] = (lade_range){.key = keys[i], .dst = lade_host_span(&back[i], 4)};
	}
	must(lade_store_read(store, ranges, COUNT, NULL, NULL, &err), &err);
	assert_memory_equal(back, values, sizeof values);
	lade_store_unref(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_checked),
		cmocka_unit_test(memory_does_everything),
		cmocka_unit_test(directory_does_everything),
		cmocka_unit_test(listings_of_others_are_checked),
		cmocka_unit_test(ranges_are_read_whatever_the_plan),
		cmocka_unit_test(joining_follows_the_cost),
		cmocka_unit_test(splitting_follows_the_cost),
		cmocka_unit_test(no_other_gap_is_better),
		cmocka_unit_test(costs_are_measured),
		cmocka_unit_test(a_failure_spoils_no_neighbour),
		cmocka_unit_test(one_call_reads_one_version),
		cmocka_unit_test(a_cancelled_call_reads_nothing_more),
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(only_files_are_values),
		cmocka_unit_test(killed_writes_leave_whole_values),
		cmocka_unit_test(a_sweep_removes_what_killed_writes_left),
		cmocka_unit_test(direct_reads_are_equal),
		cmocka_unit_test(many_threads_share_a_store),
		cmocka_unit_test(a_memory_store_has_many_keys),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
