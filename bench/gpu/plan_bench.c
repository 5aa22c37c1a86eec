/*
 * plan_bench.c: what a call on a device costs the host: the time until the first copy or kernel is
 * enqueued, and until the call returns, with a driver that does nothing (null_driver.c).
 *
 *     LD_LIBRARY_PATH=build/bench/null build/bench/plan_bench [REPEATS]
 *
 * CSV: the way, chunks, microseconds to the first copy and in all (the least and the median of the
 * repeats), calls of the driver that enqueue.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHUNK ((size_t)65536)
#define CODED ((size_t)20000)
#define MOST ((size_t)100000)
#define REPEATS_MOST 1000

typedef struct driver {
	double first_ns;
	uint64_t count;
} driver;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Where the bytes lie: addresses that nobody touches, but for gathered ones. */
typedef struct way {
	const char *name;
	lade_kind from, to;
	lade_direction direction;
	bool scattered;
} way;

static const way ways[] = {
	{"decode pinned to device", LADE_PINNED, LADE_DEVICE, LADE_DECODE, false},
	{"decode scattered pinned to device", LADE_PINNED, LADE_DEVICE, LADE_DECODE, true},
	{"decode device to device", LADE_DEVICE, LADE_DEVICE, LADE_DECODE, false},
	{"decode device to pinned", LADE_DEVICE, LADE_PINNED, LADE_DECODE, false},
	{"encode device to pinned", LADE_DEVICE, LADE_PINNED, LADE_ENCODE, false},
};

static int run(lade_engine *engine, const lade_spec *spec, driver *null, const way *w, size_t count,
               size_t repeats)
{
	static double first[REPEATS_MOST], all[REPEATS_MOST];
	lade_segment *segment = calloc(count, sizeof *segment);
	lade_item *item = calloc(count, sizeof *item);
	lade_result *result = calloc(count, sizeof *result);
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	lade_error err = {.message = ""};
	size_t in = w->direction == LADE_DECODE ? CODED : CHUNK, out = CHUNK + 300;
	lade_status status = segment && item && result ? LADE_OK : LADE_E_NOMEM;
	for (size_t i = 0; status == LADE_OK && i < count; i++) {
		size_t at = w->scattered ? i * 7919 % count : i;
		segment[i] = (lade_segment){(char *)((uintptr_t)1 << 45) +
		                                    at * (in + w->scattered * 999),
		                            in,
		                            {w->from, 0},
		                            0};
		item[i].src = &segment[i];
		item[i].src_count = 1;
		item[i].dst = (lade_span){(char *)((uintptr_t)3 << 44) + i * out,
		                          w->direction == LADE_DECODE ? CHUNK : out,
		                          {w->to, 0}};
	}
	uint64_t calls = 0;
	for (size_t k = 0; status == LADE_OK && k < repeats; k++) {
		null->count = 0;
		double begin = now();
		status = w->direction == LADE_DECODE
		                 ? lade_decode_into(engine, spec, item, count, result, &o, &err)
		                 : lade_encode_into(engine, spec, item, count, result, &o, &err);
		all[k] = now() - begin;
		first[k] = null->first_ns - begin;
		calls = null->count;
	}
	if (status == LADE_OK) {
		qsort(first, repeats, sizeof *first, by_time);
		qsort(all, repeats, sizeof *all, by_time);
		printf("%s,%zu,%.1f,%.1f,%.1f,%.1f,%llu\n", w->name, count, first[0] / 1e3,
		       first[repeats / 2] / 1e3, all[0] / 1e3, all[repeats / 2] / 1e3,
		       (unsigned long long)calls);
	} else {
		fprintf(stderr, "%s: %s\n", w->name, err.message);
	}
	free(segment);
	free(item);
	free(result);
	return status != LADE_OK;
}

int main(int argc, char **argv)
{
	size_t repeats = argc > 1 ? strtoul(argv[1], NULL, 0) : 50;
	lade_engine *engine = lade_engine_default();
	lade_error err = {.message = ""};
	lade_spec *spec = NULL;
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	driver *null = library ? dlsym(library, "null_driver") : NULL;
	if (!null) {
		fputs("libcuda.so.1 is not null_driver.c's: see this file's head\n", stderr);
		return 1;
	}
	repeats = repeats < 1 ? 1 : repeats > REPEATS_MOST ? REPEATS_MOST : repeats;
	if (!engine || lade_spec_parse(engine, "lz4", &spec, &err) != LADE_OK) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	int rc = 0;
	puts("way,chunks,first_us,first_median_us,call_us,call_median_us,enqueued");
	for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
		for (size_t count = 1; count <= MOST; count *= 10)
			rc |= run(engine, spec, null, &ways[k], count, repeats);
	lade_spec_unref(spec);
	return rc;
}
