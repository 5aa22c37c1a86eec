/*
 * measure.c: the median time of passes; memcpy(), for comparison.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/measure.h"

#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/table.h"

#define PASSES_MAX 1000
#define BATCH_MAX ((size_t)1024)

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

lade_status measure_time(const measure_passes *passes, double *median, size_t *count,
			 lade_error *err)
{
	static double took[PASSES_MAX];
	double begin = cli_now(), now = begin;
	size_t n = 0, batch = 1;

	do {
		double start = now;
		lade_status status = passes->pass(passes->ctx, batch, err);
		if (status != LADE_OK)
			return status;
		now = cli_now();
		took[n++] = (now - start) / (double)batch;
		if (now - start < passes->least && batch < BATCH_MAX) {
			batch *= 2; /* what was too short does not count */
			n = 0;
		}
	} while (n == 0 || (now - begin < passes->seconds && n < PASSES_MAX));
	qsort(took, n, sizeof *took, compare_doubles);
	*median = took[n / 2] > 1e-9 ? took[n / 2] : 1e-9;
	*count = n;
	return LADE_OK;
}

void measure_memcpy(const measure_plan *plan, measure *out)
{
	static double took[PASSES_MAX];
	uint8_t *to = cli_need(malloc(plan->size));
	size_t n = 0;

	memset(to, 0xA5, plan->size);
	double begin = cli_now(), now = begin;
	do {
		double start = now;
		memcpy(to, plan->data, plan->size);
		/* The copy is not optimised away while its result may be looked at. */
		__asm__ volatile("" : : "r"(to) : "memory");
		now = cli_now();
		took[n++] = now - start;
	} while (now - begin < plan->seconds && n < PASSES_MAX);
	qsort(took, n, sizeof *took, compare_doubles);
	free(to);
	*out = (measure){.size = plan->size, .encoded_size = plan->size, .passes = n};
	out->encode_seconds = out->decode_seconds = took[n / 2] > 1e-9 ? took[n / 2] : 1e-9;
}
