/*
 * measure.c: how fast and how small a spec makes some data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "advise/measure.h"

#include "base/cancel.h"
#include "base/options.h"
#include "base/try.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHUNK_DEFAULT ((size_t)1 << 20)
#define PASSES_MAX 1000

#define LADE__MEASUREMENT_0_2 LADE__SIZE_TO(lade_measurement, lossy)

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
	lade__stop stop;
	double took[PASSES_MAX];
} work;

static void work_free(work *w)
{
	if (!w)
		return;
	free(w->packed);
	free(w->back);
	free(w->raw);
	free(w->encoded);
	free(w->encode);
	free(w->decode);
	free(w->results);
	free(w);
}

/* Ties the chunks of the data to their places; 'back' may be NULL where nothing is decoded. */
static void work_tie(work *w, const uint8_t *data, size_t size, size_t chunk_size)
{
	for (size_t i = 0; i < w->count; i++) {
		size_t off = i * chunk_size;
		size_t n = size - off < chunk_size ? size - off : chunk_size;
		w->raw[i].data = data + off;
		w->raw[i].size = n;
		w->encode[i].src = &w->raw[i];
		w->encode[i].src_count = 1;
		w->encode[i].dst = lade_host_span(w->packed + i * w->stride, w->stride);
		w->encoded[i].data = w->packed + i * w->stride;
		w->encoded[i].decoded_size = n;
		w->decode[i].src = &w->encoded[i];
		w->decode[i].src_count = 1;
		if (w->back)
			w->decode[i].dst = lade_host_span(w->back + off, n);
	}
}

static lade_status work_new(lade_engine *engine, const lade_spec *spec, lade_cspan data,
                            const lade_measure_options *options, bool decodes, work **out,
                            lade_error *err)
{
	size_t chunk_size = options->chunk_size ? options->chunk_size : CHUNK_DEFAULT;
	chunk_size = chunk_size < data.size ? chunk_size : data.size;
	size_t bound = lade_spec_bound(spec, chunk_size);
	size_t count = data.size / chunk_size + (data.size % chunk_size != 0);
	work *w = calloc(1, sizeof *w);

	*out = w;
	if (bound > SIZE_MAX / 2 / count)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "chunks of %zu bytes are too large for %s", chunk_size,
		                 lade_spec_text(spec));
	if (!w)
		goto fail;
	w->engine = engine;
	w->stop = lade__stop_of(options->cancel);
	w->spec = spec;
	w->count = count;
	w->stride = (bound + 63) & ~(size_t)63;
	w->options = (lade_batch_options){LADE__OUR_SIZES,
	                                  .threads = options->threads,
	                                  .where = LADE_WHERE_HOST,
	                                  .cancel = options->cancel};
	w->packed = malloc(count * w->stride);
	w->back = decodes ? malloc(data.size) : NULL;
	w->raw = calloc(count, sizeof *w->raw);
	w->encoded = calloc(count, sizeof *w->encoded);
	w->encode = calloc(count, sizeof *w->encode);
	w->decode = calloc(count, sizeof *w->decode);
	w->results = calloc(count, sizeof *w->results);
	if (!w->packed || (decodes && !w->back) || !w->raw || !w->encoded || !w->encode ||
	    !w->decode || !w->results)
		goto fail;
	work_tie(w, data.data, data.size, chunk_size);
	return LADE_OK;
fail:
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu chunks of %zu bytes",
	                 count, chunk_size);
}

/* ---- passes ----------------------------------------------------------------------------- */

static lade_status pass(work *w, bool encode, lade_error *err)
{
	/* Small data are done before a call of theirs would ask. */
	if (lade__stopped(&w->stop))
		return lade__stop_fail(err);
	return encode ? lade_encode_into(w->engine, w->spec, w->encode, w->count, w->results,
	                                 &w->options, err)
	              : lade_decode_into(w->engine, w->spec, w->decode, w->count, w->results,
	                                 &w->options, err);
}

/* Encodes once. */
static lade_status encode_all(work *w, uint64_t *encoded_size, lade_error *err)
{
	lade_status status = pass(w, true, err);

	*encoded_size = 0;
	for (size_t i = 0; status == LADE_OK && i < w->count; i++) {
		w->encoded[i].size = w->results[i].size;
		*encoded_size += w->results[i].size;
	}
	return status;
}

/* Decodes once, and compares. */
static lade_status verify(work *w, size_t size, bool lossy, lade_error *err)
{
	memset(w->back, 0xA5, size);
	lade_status status = pass(w, false, err);
	for (size_t i = 0; status == LADE_OK && i < w->count; i++) {
		if (w->results[i].size != w->raw[i].size)
			status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                   "chunk %zu: %zu bytes were encoded, %zu were decoded", i,
			                   w->raw[i].size, w->results[i].size);
		else if (!lossy &&
		         memcmp(w->decode[i].dst.data, w->raw[i].data, w->raw[i].size) != 0)
			status =
				lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                  "chunk %zu: the decoded bytes differ from the source", i);
	}
	return status;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of the passes that fit into this many seconds, at least one. */
static lade_status time_passes(work *w, bool encode, double seconds, double *median, size_t *passes,
                               lade_error *err)
{
	double begin = now(), last = begin;
	size_t n = 0;

	do {
		double start = last;
		lade_status status = pass(w, encode, err);
		if (status != LADE_OK)
			return status;
		last = now();
		w->took[n++] = last - start;
	} while (last - begin < seconds && n < PASSES_MAX);
	qsort(w->took, n, sizeof *w->took, compare_doubles);
	*median = w->took[n / 2] > 1e-9 ? w->took[n / 2] : 1e-9;
	*passes = n;
	return LADE_OK;
}

/* ---- calls ------------------------------------------------------------------------------ */

lade_status lade__measure_check(const lade_engine *engine, lade_cspan data, lade_error *err)
{
	if (!engine || !data.data || !data.size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s",
		                 engine ? "there are no bytes to measure" : "engine is NULL");
	if (data.place.kind == LADE_DEVICE)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "the data is on device %d: copy it to the host to measure it",
		                 (int)data.place.device);
	return LADE_OK;
}

lade_status lade_measure(lade_engine *engine, const lade_spec *spec, lade_cspan data,
                         const lade_measure_options *options, lade_measurement *out,
                         lade_error *err)
{
	lade_measure_options o;
	lade_measurement m = {.size = data.size};
	lade_status status;
	size_t passes;
	work *w = NULL;

	if (!spec || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 spec ? "out" : "spec");
	TRY(lade__options_read(&o, sizeof o, options, "measure options", err));
	TRY(lade__size_given(&o.measurement_size, LADE__MEASUREMENT_0_2, "measurement_size", err));
	memset(out, 0, o.measurement_size);
	m.lossy = lade_spec_is_lossy(spec);
	TRY(lade__measure_check(engine, data, err));
	TRY(work_new(engine, spec, data, &o, true, &w, err));
	TRY(encode_all(w, &m.encoded_size, err));
	TRY(verify(w, data.size, m.lossy, err));
	TRY(time_passes(w, true, o.seconds, &m.encode_seconds, &passes, err));
	TRY(time_passes(w, false, o.seconds, &m.decode_seconds, &m.passes, err));
	lade__struct_copy(out, o.measurement_size, &m, sizeof m);
out:
	work_free(w);
	return status;
}

lade_status lade__measure_size(lade_engine *engine, const lade_spec *spec, lade_cspan data,
                               const lade_measure_options *options, uint64_t *encoded_size,
                               lade_error *err)
{
	lade_status status;
	work *w = NULL;

	TRY(work_new(engine, spec, data, options, false, &w, err));
	TRY(encode_all(w, encoded_size, err));
out:
	work_free(w);
	return status;
}
