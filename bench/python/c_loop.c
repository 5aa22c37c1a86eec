/*
 * c_loop.c: the C calls that bench_call.py compares with, in a loop and without an interpreter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>
#include <stdlib.h>
#include <time.h>

/* One thread's work is measured in its own time, which other programs do not lengthen. */
static double now(unsigned threads)
{
	struct timespec t;

	clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds a call of lade_decode() for one chunk, over 'rounds'; negative: it failed. */
double loop_one(const char *text, const void *src, size_t size, void *dst, size_t cap, int rounds)
{
	lade_engine *engine = lade_engine_default();
	lade_spec *spec;
	lade_error err;
	size_t got;
	double start;

	if (lade_spec_parse(NULL, text, &spec, &err))
		return -1;
	start = now(1);
	for (int i = 0; i < rounds; i++)
		if (lade_decode(engine, spec, lade_host_cspan(src, size), lade_host_span(dst, cap),
		                &got, &err))
			return -2;
	start = now(1) - start;
	lade_spec_unref(spec);
	return start / rounds;
}

/* Seconds a call of lade_decode_into() for 'count' chunks, the tables' filling included. */
double loop_many(const char *text, const void *const *src, const size_t *size, void *const *dst,
                 const size_t *cap, size_t count, unsigned threads, int rounds)
{
	lade_engine *engine = lade_engine_default();
	lade_batch_options options = {.struct_size = sizeof(options), .threads = threads};
	lade_spec *spec;
	lade_error err;
	double start;

	if (lade_spec_parse(NULL, text, &spec, &err))
		return -1;
	start = now(threads);
	for (int r = 0; r < rounds; r++) {
		lade_item *items = calloc(count, sizeof(*items));
		lade_segment *segments = calloc(count, sizeof(*segments));
		lade_result *results = calloc(count, sizeof(*results));
		lade_status status = LADE_E_NOMEM;
		for (size_t i = 0; items && segments && results && i < count; i++) {
			segments[i].data = src[i];
			segments[i].size = size[i];
			items[i].src = &segments[i];
			items[i].src_count = 1;
			items[i].dst = lade_host_span(dst[i], cap[i]);
		}
		if (items && segments && results)
			status = lade_decode_into(engine, spec, items, count, results, &options,
			                          &err);
		free(items);
		free(segments);
		free(results);
		if (status)
			return -2;
	}
	start = now(threads) - start;
	lade_spec_unref(spec);
	return start / rounds;
}
