/*
 * sizes.c: lade_decoded_sizes(): what items decode to, by their formats' headers.
 *
 * Of a segment on a device as many bytes as its header can have are brought to the host; those of
 * many segments together, on a stream of the engine's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/support.h"
#include "base/try.h"
#include "batch/batch.h"
#include "batch/gpu/gpu.h"
#include "engine/spec.h"

#include <inttypes.h>
#include <stdlib.h>

/* Bytes and segments that are brought at once, if one segment has not more. */
#define FETCH_BYTES ((size_t)4 << 20)
#define FETCH_SEGMENTS ((size_t)1 << 10)
#define FETCH_ALIGN 16

/* A segment on a device whose size is wanted. */
typedef struct wanted {
	const lade_segment *segment;
	const lade_spec *spec;
	size_t item, need, at; /* bytes of it, and their place in pinned memory */
	uint64_t decoded;
	lade_status status;
	lade_error error;
} wanted;

typedef struct fetch {
	lade_engine *engine;
	lade_stream stream; /* the caller's */
	wanted *list;
	lade_gpu_copy *copies;
	size_t count, size; /* segments, bytes */
} fetch;

/* The bytes at a source's start that lade__spec_decoded_size() reads at most. */
static size_t header_size(const lade_spec *spec, size_t size)
{
	size_t need = 0;
	for (size_t i = spec->count; i-- > 0;) {
		const lade_stage *stage = &spec->stage[i];
		const lade_algorithm *a = stage->algorithm;
		if (a->kind == LADE_STAGE_CHECKSUM) {
			/* Its bytes stand before the others, or behind all of them. */
			if (lade__checksum_at_start(stage))
				need += a->bound(stage, 0);
			continue;
		}
		if (!(a->flags & LADE_ALGORITHM_FIXED_SIZE))
			need += a->header_size ? a->header_size : size;
		break;
	}
	return need < size ? need : size;
}

/* ---- bytes from a device ------------------------------------------------------------------ */

/* Brings the headers of segments [first, first + count) of one device and reads them.
 * Fails: when the device does, and nothing was read */
static lade_status fetch_run(fetch *f, lade__device *device, size_t first, size_t count,
                             lade_error *err)
{
	lade__gpu_streams *streams;
	lade_status status = lade__gpu_streams_take(f->engine, device, &streams, err);
	bool begun = false;
	size_t size = 0, n = 0;
	if (status != LADE_OK)
		return status;
	for (size_t i = first; i < first + count; i++) {
		f->list[i].at = size;
		size += (f->list[i].need + (FETCH_ALIGN - 1)) & ~(size_t)(FETCH_ALIGN - 1);
	}
	TRY(lade__gpu_flight_pinned(f->engine, streams, 0, size + FETCH_ALIGN, err));
	uint8_t *to = streams->flight[0].pinned.data;
	for (size_t i = first; i < first + count; i++)
		if (f->list[i].need)
			f->copies[n++] =
				(lade_gpu_copy){.src = lade__address_of(f->list[i].segment->data),
			                         .dst = lade__address_of(to + f->list[i].at),
			                         .size = f->list[i].need};
	TRY(lade__gpu_streams_follow(device, streams, streams->in, f->stream, err));
	begun = true;
	TRY(lade__gpu_copies(f->engine, device, streams->in, f->copies, n, err));
	TRY(LADE__CU(device, cuStreamSynchronize, streams->in));
	for (size_t i = first; i < first + count; i++) {
		wanted *w = &f->list[i];
		w->status = lade__spec_decoded_size(w->spec, to + w->at, w->segment->size,
		                                    &w->decoded, &w->error);
	}
out:
	if (status != LADE_OK && begun)
		lade__gpu_streams_wait(device, streams);
	lade__gpu_streams_give(f->engine, streams);
	return status;
}

/* Reads the headers of all that is in the list, neighbours of one device together.  Not by the
 * planner: it chooses where whole items run; here segments' headers are read, a list at a time. */
static void fetch_all(fetch *f)
{
	for (size_t first = 0, end; first < f->count; first = end) {
		int32_t number = f->list[first].segment->place.device;
		lade__device *device;
		lade_error err;
		for (end = first + 1; end < f->count; end++)
			if (f->list[end].segment->place.device != number)
				break;
		lade_status status = lade__device_use(number, &device, &err);
		if (status == LADE_OK) {
			status = fetch_run(f, device, first, end - first, &err);
			lade__device_leave(device);
		}
		for (size_t i = first; status != LADE_OK && i < end; i++) {
			f->list[i].status = status;
			f->list[i].error = err;
		}
	}
}

/* ---- items --------------------------------------------------------------------------------- */

typedef struct sizes {
	const lade_item *items;
	const lade_spec *spec;
	lade_result *results;
	lade__outcome *outcome;
	fetch fetch;
} sizes;

/* Adds a segment's size to its item's, unless that has failed. */
static void add_size(sizes *s, size_t item, lade_status status, uint64_t decoded,
                     const lade_error *error)
{
	lade_error own;
	lade_result *result = &s->results[item];
	if (result->status != LADE_OK)
		return;
	if (status == LADE_OK && decoded >= SIZE_MAX - result->size) {
		status = lade_fail(&own, LADE_E_LIMIT, LADE_NO_OFFSET,
		                   "the segments' sizes overflow");
		error = &own;
	}
	if (status == LADE_OK)
		result->size += (size_t)decoded;
	else
		lade__outcome_failed(s->outcome, item, status, error);
}

static void flush(sizes *s)
{
	fetch *f = &s->fetch;
	fetch_all(f);
	for (size_t i = 0; i < f->count; i++)
		add_size(s, f->list[i].item, f->list[i].status, f->list[i].decoded,
		         &f->list[i].error);
	f->count = f->size = 0;
}

/* Room for as many segments as are fetched at once, made when the first is met. */
static lade_status fetch_begin(fetch *f, lade_error *err)
{
	if (f->list)
		return LADE_OK;
	f->list = malloc(FETCH_SEGMENTS * sizeof *f->list);
	f->copies = malloc(FETCH_SEGMENTS * sizeof *f->copies);
	if (f->list && f->copies)
		return LADE_OK;
	free(f->list);
	free(f->copies);
	f->list = NULL;
	f->copies = NULL;
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu segments",
	                 FETCH_SEGMENTS);
}

/* What an item's joined segments decode to by its tail, whose bytes need not state sizes. */
static lade_status through_tail(const lade_spec *tail, size_t *size, lade_error *err)
{
	uint64_t decoded = *size;
	for (size_t i = tail->count; i-- > 0;) {
		const lade_stage *stage = &tail->stage[i];
		if (!(stage->algorithm->flags & LADE_ALGORITHM_FIXED_SIZE))
			return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
			                 "the tail's %s does not state its decoded size before the "
			                 "segments are decoded",
			                 stage->algorithm->name);
		lade_status status = stage->algorithm->decoded_size(stage, NULL, *size, &decoded,
		                                                    err);
		if (status == LADE_OK && decoded > SIZE_MAX)
			status = lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                   "the tail's %s decodes to %" PRIu64 " bytes, %zu are "
			                   "the limit",
			                   stage->algorithm->name, decoded, SIZE_MAX);
		if (status != LADE_OK)
			return status;
		*size = (size_t)decoded;
	}
	return LADE_OK;
}

static void one_item(sizes *s, size_t i)
{
	lade_item item = s->items[i];
	const lade_spec *spec = item.spec ? item.spec : s->spec;
	lade_error error;
	item.dst = (lade_span){0};
	item.layout = NULL;
	item.outputs = NULL;
	item.output_count = 0;
	lade_status status = spec ? lade__item_check(&item, LADE_DECODE, &error)
	                          : lade_fail(&error, LADE_E_ARG, LADE_NO_OFFSET,
	                                      "neither the call nor the item has a spec");
	s->results[i] = (lade_result){LADE_OK, 0};
	if (status != LADE_OK)
		add_size(s, i, status, 0, &error);
	for (size_t k = 0; status == LADE_OK && k < item.src_count; k++) {
		const lade_segment *segment = &item.src[k];
		uint64_t decoded = segment->decoded_size;
		bool on_device = !lade_kind_is_host(segment->place.kind) && segment->size;
		if (decoded || !on_device) {
			if (!decoded)
				status = lade__spec_decoded_size(spec, segment->data, segment->size,
				                                 &decoded, &error);
			add_size(s, i, status, decoded, &error);
			continue;
		}
		fetch *f = &s->fetch;
		size_t need = header_size(spec, segment->size);
		if (f->count && (f->count == FETCH_SEGMENTS || need > FETCH_BYTES - f->size))
			flush(s);
		status = fetch_begin(f, &error);
		if (status != LADE_OK) {
			add_size(s, i, status, 0, &error);
			break;
		}
		f->list[f->count++] =
			(wanted){.segment = segment, .spec = spec, .item = i, .need = need};
		f->size += need < FETCH_BYTES ? need : FETCH_BYTES - f->size;
	}
}

lade_status lade_decoded_sizes(lade_engine *engine, const lade_spec *spec, const lade_item *items,
                               size_t count, lade_result *results,
                               const lade_batch_options *caller, lade_error *err)
{
	lade_batch_options options;
	lade__given given = {.items = items, .results = results, .count = count};
	if (!results && count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "results is NULL");
	lade_status status = lade__call_open(&given, engine, caller, &options, err);
	if (status != LADE_OK)
		return status;
	lade__outcome outcome;
	lade__outcome_init(&outcome, given.results, &options, err);
	sizes s = {.items = given.items,
	           .spec = spec,
	           .results = given.results,
	           .outcome = &outcome,
	           .fetch = {.engine = engine, .stream = options.stream}};
	for (size_t i = 0; i < count; i++)
		one_item(&s, i);
	if (s.fetch.count)
		flush(&s);
	for (size_t i = 0; i < count; i++) {
		const lade_spec *tail = s.items[i].tail;
		lade_result *result = &given.results[i];
		lade_error why;
		if (tail && result->status == LADE_OK)
			add_size(&s, i, through_tail(tail, &result->size, &why), 0, &why);
	}
	free(s.fetch.list);
	free(s.fetch.copies);
	lade__given_close(&given);
	return lade__outcome_reset(&outcome);
}
