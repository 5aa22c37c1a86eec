/*
 * bench_store.c: reads of a store: what the planner chooses, beside fixed gaps.
 *
 *	bench_store URL|DIRECTORY KEY [cold] [direct]
 *
 * Ranges of 16 KiB with gaps of 1 KiB to 1 MiB (evenly on a logarithmic scale), and a few of 4 MiB.
 * Each way has a store of its own: its connections are warm, and the planner has measured nine
 * calls.  'cold': a file leaves the page cache before each call; 'direct': LADE_DIRECTORY_DIRECT.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "common.h"
#include "store/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum { RANGES = 200, SMALL = 16 << 10, LARGE = 4 << 20, CALLS = 9 };

typedef struct target {
	const char *where, *key;
	bool cold;
	uint64_t flags;
	uint64_t size;
} target;

static void check(lade_status status, const lade_error *err)
{
	if (status != LADE_OK)
		bench_die(lade_status_name(status), err->message);
}

static lade_store *store_open(const target *t)
{
	lade_directory_options options = {.struct_size = sizeof options, .flags = t->flags};
	lade_store *store;
	lade_error err;
	if (strstr(t->where, "://"))
		check(lade_store_http_open(t->where, NULL, &store, &err), &err);
	else
		check(lade_store_directory_open(t->where, &options, &store, &err), &err);
	return store;
}

static void make_cold(const target *t)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", t->where, t->key);
	int fd = t->cold ? open(path, O_RDONLY) : -1;
	if (fd >= 0) {
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
}

/* The same ranges each time: a generator of its own. */
static size_t make_ranges(const target *t, size_t size, lade_range *ranges, size_t most)
{
	uint64_t random = 7, at = 0;
	size_t n = 0;
	for (; n < most && at + size <= t->size; n++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint64_t gap = (uint64_t)1024 << (random >> 32) % 11;
		gap += gap * (random >> 48) / 65536;
		ranges[n] = (lade_range){.key = t->key, .off = at, .dst = {NULL, size, {0, 0}}};
		at += size + gap / 4096 * 4096;
	}
	return n;
}

/* Joins ranges over gaps of up to 'gap' bytes. */
static size_t join(lade_range *ranges, size_t count, uint64_t gap)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		lade_range *last = n ? &ranges[n - 1] : NULL;
		if (last && ranges[i].off - (last->off + last->dst.size) <= gap)
			last->dst.size = (size_t)(ranges[i].off - last->off) + ranges[i].dst.size;
		else
			ranges[n++] = ranges[i];
	}
	return n;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* 'gap' UINT64_MAX: the planner's. */
static void measure(const target *t, size_t size, size_t most, const char *name, uint64_t gap)
{
	static lade_range ranges[RANGES];
	lade_store_report report = {.struct_size = sizeof report};
	lade_store *store = store_open(t);
	double ms[CALLS], first = 0;
	lade_error err;
	size_t count = make_ranges(t, size, ranges, most), wanted = count, bytes = 0;
	if (gap != UINT64_MAX) {
		count = join(ranges, count, gap);
		store->ops.flags &= ~(uint32_t)LADE_STORE_PARTS; /* joins nothing more */
	}
	for (size_t i = 0; i < count; i++)
		bytes += ranges[i].dst.size;
	uint8_t *memory = bench_alloc(bytes), *to = memory;
	for (size_t i = 0; i < count; i++) {
		ranges[i].dst = lade_host_span(to, ranges[i].dst.size);
		to += ranges[i].dst.size;
	}
	check(lade_store_look(store, t->key, NULL, NULL, &err), &err);
	for (int i = 0; i < CALLS; i++) {
		make_cold(t);
		check(lade_store_read(store, ranges, count, NULL, &report, &err), &err);
		ms[i] = (double)report.ns / 1e6;
		first = i ? first : ms[0];
	}
	qsort(ms + CALLS - 5, 5, sizeof *ms, by_size);
	printf("%3zu x %7zu  %-10s %4" PRIu64 " requests %8.2f MB moved  first %8.1f ms, then "
	       "%8.1f ms\n",
	       wanted, size, name, report.request_count, (double)report.moved_size / 1e6, first,
	       ms[CALLS - 3]);
	fflush(stdout);
	free(memory);
	lade_store_unref(store);
}

int main(int argc, char **argv)
{
	target t = {.where = argc > 1 ? argv[1] : NULL, .key = argc > 2 ? argv[2] : NULL};
	lade_error err;
	if (!t.key)
		bench_die("usage", "bench_store URL|DIRECTORY KEY [cold] [direct]");
	for (int i = 3; i < argc; i++) {
		t.cold |= strcmp(argv[i], "cold") == 0;
		t.flags |= strcmp(argv[i], "direct") == 0 ? LADE_DIRECTORY_DIRECT : 0;
	}
	lade_store *store = store_open(&t);
	check(lade_store_look(store, t.key, &t.size, NULL, &err), &err);
	lade_store_unref(store);
	for (int large = 0; large < 2; large++) {
		size_t size = large ? LARGE : SMALL, most = large ? 8 : RANGES;
		measure(&t, size, most, "planner", UINT64_MAX);
		measure(&t, size, most, "gap 0", 0);
		measure(&t, size, most, "gap 64 KiB", 65536);
		measure(&t, size, most, "gap 1 MiB", 1 << 20);
	}
	return 0;
}
