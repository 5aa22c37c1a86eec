/*
 * measure.c: how fast and how small a spec makes some data.
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

/* Chunks, and room for both of their forms. */
typedef struct work {
	size_t count, stride; /* 'stride': bytes kept for an encoded chunk */
	uint8_t *packed, *back;
	lade_segment *raw, *encoded;
	lade_item *encode, *decode;
	lade_result *results;
	lade_engine *engine;
	const lade_spec *spec;
	lade_batch_options options;
} work;

static lade_status work_new(work *w, lade_engine *engine, const lade_spec *spec,
			    const measure_plan *plan, lade_error *err)
{
	size_t bound = lade_spec_bound(spec, plan->chunk_size);

	*w = (work){.engine = engine, .spec = spec};
	w->count = (plan->size + plan->chunk_size - 1) / plan->chunk_size;
	if (bound > SIZE_MAX / 2 / w->count)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
				 "chunks of %zu bytes are too large for %s", plan->chunk_size,
				 lade_spec_text(spec));
	w->stride = (bound + 63) & ~(size_t)63;
	w->options =
		(lade_batch_options){.struct_size = sizeof w->options, .threads = plan->threads};
	w->packed = cli_need(malloc(w->count * w->stride));
	w->back = cli_need(malloc(plan->size));
	w->raw = cli_need(calloc(w->count, sizeof *w->raw));
	w->encoded = cli_need(calloc(w->count, sizeof *w->encoded));
	w->encode = cli_need(calloc(w->count, sizeof *w->encode));
	w->decode = cli_need(calloc(w->count, sizeof *w->decode));
	w->results = cli_need(calloc(w->count, sizeof *w->results));
	for (size_t i = 0; i < w->count; i++) {
		size_t off = i * plan->chunk_size;
		size_t size =
			plan->size - off < plan->chunk_size ? plan->size - off : plan->chunk_size;
		w->raw[i].data = plan->data + off;
		w->raw[i].size = size;
		w->encode[i].src = &w->raw[i];
		w->encode[i].src_count = 1;
		w->encode[i].dst = lade_host_span(w->packed + i * w->stride, w->stride);
		w->encoded[i].data = w->packed + i * w->stride;
		w->encoded[i].decoded_size = size;
		w->decode[i].src = &w->encoded[i];
		w->decode[i].src_count = 1;
		w->decode[i].dst = lade_host_span(w->back + off, size);
	}
	return LADE_OK;
}

static void work_free(work *w)
{
	free(w->packed);
	free(w->back);
	free(w->raw);
	free(w->encoded);
	free(w->encode);
	free(w->decode);
	free(w->results);
}

static lade_status work_encode(void *ctx, size_t n, lade_error *err)
{
	work *w = ctx;
	lade_status status = LADE_OK;

	for (size_t i = 0; i < n && status == LADE_OK; i++)
		status = lade_encode_into(w->engine, w->spec, w->encode, w->count, w->results,
					  &w->options, err);
	return status;
}

static lade_status work_decode(void *ctx, size_t n, lade_error *err)
{
	work *w = ctx;
	lade_status status = LADE_OK;

	for (size_t i = 0; i < n && status == LADE_OK; i++)
		status = lade_decode_into(w->engine, w->spec, w->decode, w->count, w->results,
					  &w->options, err);
	return status;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

lade_status measure_time(lade_status (*pass)(void *ctx, size_t n, lade_error *err), void *ctx,
			 double seconds, double least, double *median, size_t *passes,
			 lade_error *err)
{
	static double took[PASSES_MAX];
	double begin = cli_now(), now = begin;
	size_t n = 0, batch = 1;

	do {
		double start = now;
		lade_status status = pass(ctx, batch, err);
		if (status != LADE_OK)
			return status;
		now = cli_now();
		took[n++] = (now - start) / (double)batch;
		if (now - start < least && batch < BATCH_MAX) {
			batch *= 2; /* what was too short does not count */
			n = 0;
		}
	} while (n == 0 || (now - begin < seconds && n < PASSES_MAX));
	qsort(took, n, sizeof *took, compare_doubles);
	*median = took[n / 2] > 1e-9 ? took[n / 2] : 1e-9;
	*passes = n;
	return LADE_OK;
}

/* Encodes and decodes once, and compares. */
static lade_status work_verify(work *w, const measure_plan *plan, measure *out, lade_error *err)
{
	lade_status status = work_encode(w, 1, err);

	if (status != LADE_OK)
		return status;
	for (size_t i = 0; i < w->count; i++) {
		w->encoded[i].size = w->results[i].size;
		out->encoded_size += w->results[i].size;
	}
	memset(w->back, 0xA5, plan->size);
	status = work_decode(w, 1, err);
	if (status != LADE_OK)
		return status;
	for (size_t i = 0; i < w->count; i++) {
		if (w->results[i].size != w->raw[i].size)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
					 "chunk %zu: %zu bytes went in, %zu came back", i,
					 w->raw[i].size, w->results[i].size);
		if (!out->lossy &&
		    memcmp(w->decode[i].dst.data, w->raw[i].data, w->raw[i].size) != 0)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
					 "chunk %zu: other bytes came back than went in", i);
	}
	return LADE_OK;
}

lade_status measure_spec(lade_engine *engine, const lade_spec *spec, const measure_plan *plan,
			 measure *out, lade_error *err)
{
	work w;
	size_t passes;

	*out = (measure){.size = plan->size, .lossy = lade_spec_is_lossy(spec)};
	lade_status status = work_new(&w, engine, spec, plan, err);
	if (status == LADE_OK)
		status = work_verify(&w, plan, out, err);
	if (status == LADE_OK)
		status = measure_time(work_encode, &w, plan->seconds, 0, &out->encode_seconds,
				      &passes, err);
	if (status == LADE_OK)
		status = measure_time(work_decode, &w, plan->seconds, 0, &out->decode_seconds,
				      &out->passes, err);
	work_free(&w);
	return status;
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
