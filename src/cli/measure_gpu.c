/*
 * measure_gpu.c: how fast a device encodes and decodes some data: what is in its memory, and what
 * the host feeds it.
 *
 * Three forms of the data are on the device, each chunk at a place of its own:
 *
 *	raw     the data
 *	packed  encoded chunks, 'stride' bytes kept for each
 *	back    what they decode to
 *
 * and on the host, pinned, the raw data and the encoded chunks one behind the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/measure.h"

#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/gpu.h"
#include "cli/table.h"

/* Device memory; blocks are aligned to this. */
#define ALIGN ((size_t)256)

/* The host enqueues work for at least this many seconds before it waits for the device, so that
 * the wait does not count. */
#define RESIDENT_LEAST 4e-3

typedef struct gpu {
	lade_engine *engine;
	const lade_spec *spec;
	lade_spec *copy; /* the spec "copy" moves bytes to and from the device */
	const measure_plan *plan;
	lade_place near;
	lade_stream stream;
	bool encodes; /* the device does */
	size_t count, stride;
	uint8_t *raw, *packed, *back, *workspace; /* device memory, as what follows */
	size_t raw_size, packed_size, back_size, workspace_size;
	uint64_t *tables; /* raw_at, raw_size, packed_at, packed_cap, back_at, sizes; statuses */
	size_t tables_size;
	lade_span host_raw, host_packed; /* pinned */
	uint8_t *pageable;               /* a copy of host_packed */
	uint64_t *sizes;                 /* of the encoded chunks */
	lade_segment *segments;
	lade_item *items;
	lade_result *results;
} gpu;

enum { RAW_AT, RAW_SIZE, PACKED_AT, PACKED_CAP, BACK_AT, SIZES, STATUSES, TABLES };

/* ---- memory -------------------------------------------------------------------------- */

static lade_status take(gpu *g, size_t size, uint8_t **out, size_t *out_size, lade_error *err)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);

	*out = a->alloc(a->ctx, size, ALIGN, g->near, g->stream);
	*out_size = size;
	if (!*out)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
				 "no memory for %zu bytes on device %d", size, (int)g->near.device);
	return LADE_OK;
}

static void give(const gpu *g, void *block, size_t size)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);

	if (block)
		a->free(a->ctx, block, size, ALIGN, g->near, g->stream);
}

/* Moves bytes between the host and the device. */
static lade_status move(gpu *g, lade_cspan src, lade_span dst, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size, .place = src.place};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};
	lade_batch_options o = {.struct_size = sizeof o, .stream = g->stream};

	return lade_decode_into(g->engine, g->copy, &item, 1, NULL, &o, err);
}

static size_t chunk_size(const gpu *g, size_t i)
{
	size_t off = i * g->plan->chunk_size, left = g->plan->size - off;

	return left < g->plan->chunk_size ? left : g->plan->chunk_size;
}

static uint64_t *table_at(const gpu *g, int which)
{
	return g->tables + (size_t)which * g->count;
}

static lade_status make_tables(gpu *g, lade_error *err)
{
	uint64_t *t = cli_need(calloc(g->count * TABLES, sizeof *t));
	uint8_t *block;
	lade_status status = take(g, g->count * TABLES * sizeof *t, &block, &g->tables_size, err);

	g->tables = (uint64_t *)(void *)block;
	for (size_t i = 0; i < g->count; i++) {
		t[RAW_AT * g->count + i] = (uintptr_t)(g->raw + i * g->plan->chunk_size);
		t[RAW_SIZE * g->count + i] = chunk_size(g, i);
		t[PACKED_AT * g->count + i] = (uintptr_t)(g->packed + i * g->stride);
		t[PACKED_CAP * g->count + i] = g->stride;
		t[BACK_AT * g->count + i] = (uintptr_t)(g->back + i * g->plan->chunk_size);
	}
	if (status == LADE_OK)
		status = move(g, lade_host_cspan(t, g->tables_size),
			      (lade_span){g->tables, g->tables_size, g->near}, err);
	free(t);
	return status;
}

static lade_status gpu_new(gpu *g, lade_error *err)
{
	const measure_plan *plan = g->plan;
	size_t bound = lade_spec_bound(g->spec, plan->chunk_size), decode, encode = 0;

	g->count = (plan->size + plan->chunk_size - 1) / plan->chunk_size;
	if (bound > SIZE_MAX / 2 / g->count)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
				 "chunks of %zu bytes are too large for %s", plan->chunk_size,
				 lade_spec_text(g->spec));
	g->stride = (bound + 63) & ~(size_t)63;
	g->sizes = cli_need(calloc(g->count, sizeof *g->sizes));
	g->segments = cli_need(calloc(g->count, sizeof *g->segments));
	g->items = cli_need(calloc(g->count, sizeof *g->items));
	g->results = cli_need(calloc(g->count, sizeof *g->results));
	const lade_workload encoding = {.direction = LADE_ENCODE, .largest = plan->chunk_size};
	g->encodes = lade_device_takes(g->engine, g->spec, &encoding, g->near.device, err) ==
		     LADE_OK;
	lade_status status = lade_spec_parse(g->engine, "copy", &g->copy, err);
	if (status == LADE_OK)
		status = lade_stream_new(g->near.device, &g->stream, err);
	if (status == LADE_OK)
		status = lade_workspace_size(g->engine, g->spec, LADE_DECODE,
		                             &(lade_arrays){.struct_size = sizeof(lade_arrays),
		                                            .count = g->count,
		                                            .largest = plan->chunk_size,
		                                            .total = plan->size},
		                             &decode, err);
	if (status == LADE_OK && g->encodes)
		status = lade_workspace_size(g->engine, g->spec, LADE_ENCODE,
		                             &(lade_arrays){.struct_size = sizeof(lade_arrays),
		                                            .count = g->count,
		                                            .largest = plan->chunk_size,
		                                            .total = plan->size},
		                             &encode, err);
	if (status == LADE_OK)
		status = take(g, (decode > encode ? decode : encode) + 1, &g->workspace,
			      &g->workspace_size, err);
	if (status == LADE_OK)
		status = take(g, plan->size, &g->raw, &g->raw_size, err);
	if (status == LADE_OK)
		status = take(g, g->count * g->stride, &g->packed, &g->packed_size, err);
	if (status == LADE_OK)
		status = take(g, plan->size, &g->back, &g->back_size, err);
	if (status == LADE_OK)
		status = make_tables(g, err);
	if (status == LADE_OK)
		status = cli_buffer_new(plan->size, g->near.device, &g->host_raw, err);
	if (status != LADE_OK)
		return status;
	memcpy(g->host_raw.data, plan->data, plan->size);
	return move(g, (lade_cspan){g->host_raw.data, plan->size, g->host_raw.place},
		    (lade_span){g->raw, plan->size, g->near}, err);
}

static void gpu_free(gpu *g)
{
	give(g, g->raw, g->raw_size);
	give(g, g->packed, g->packed_size);
	give(g, g->back, g->back_size);
	give(g, g->workspace, g->workspace_size);
	give(g, g->tables, g->tables_size);
	if (g->stream)
		lade_stream_wait(g->near.device, g->stream, NULL);
	lade_stream_free(g->near.device, g->stream);
	cli_buffer_free(&g->host_raw);
	cli_buffer_free(&g->host_packed);
	lade_spec_unref(g->copy);
	free(g->pageable);
	free(g->sizes);
	free(g->segments);
	free(g->items);
	free(g->results);
}

/* ---- in the device's memory ---------------------------------------------------------- */

static lade_status enqueue(gpu *g, lade_direction direction, lade_error *err)
{
	bool encode = direction == LADE_ENCODE;
	const lade_arrays arrays = {
		.struct_size = sizeof(lade_arrays),
		.src = (const void *const *)(void *)table_at(g, encode ? RAW_AT : PACKED_AT),
		.src_size = table_at(g, encode ? RAW_SIZE : SIZES),
		.dst = (void *const *)(void *)table_at(g, encode ? PACKED_AT : BACK_AT),
		.dst_cap = table_at(g, encode ? PACKED_CAP : RAW_SIZE),
		.count = g->count,
		.largest = g->plan->chunk_size,
		.total = g->plan->size,
	};
	const lade_async_options o = {.struct_size = sizeof o,
				      .device = g->near.device,
				      .stream = g->stream,
				      .workspace = g->workspace,
				      .workspace_size = g->workspace_size,
				      .sizes = encode ? table_at(g, SIZES) : NULL,
				      .statuses = (uint32_t *)(void *)table_at(g, STATUSES)};

	return (encode ? lade_encode_arrays_async : lade_decode_arrays_async)(
		g->engine, g->spec, &arrays, &o, err);
}

static lade_status pass_resident(gpu *g, lade_direction direction, size_t n, lade_error *err)
{
	lade_status status = LADE_OK;

	for (size_t i = 0; i < n && status == LADE_OK; i++)
		status = enqueue(g, direction, err);
	lade_status waited = lade_stream_wait(g->near.device, g->stream, status ? NULL : err);
	return status != LADE_OK ? status : waited;
}

static lade_status encode_resident(void *ctx, size_t n, lade_error *err)
{
	return pass_resident(ctx, LADE_ENCODE, n, err);
}

static lade_status decode_resident(void *ctx, size_t n, lade_error *err)
{
	return pass_resident(ctx, LADE_DECODE, n, err);
}

static lade_status results(gpu *g, uint64_t *sizes, lade_error *err)
{
	lade_async_options options = {.struct_size = sizeof options,
	                              .device = g->near.device,
	                              .stream = g->stream,
	                              .sizes = sizes,
	                              .statuses = (uint32_t *)(void *)table_at(g, STATUSES)};
	return lade_results_get(&options, g->count, g->results, err);
}

/* ---- fed by the host ----------------------------------------------------------------- */

/* Items from the host to the device; 'pinned': or pageable. */
static void make_items(gpu *g, lade_direction direction, bool pinned)
{
	const uint8_t *raw = pinned ? g->host_raw.data : g->plan->data;
	const uint8_t *packed = pinned ? g->host_packed.data : g->pageable;

	for (size_t i = 0; i < g->count; i++) {
		bool encode = direction == LADE_ENCODE;
		size_t off = i * g->plan->chunk_size, size = chunk_size(g, i);
		g->segments[i] = (lade_segment){
			.data = encode ? raw + off : packed,
			.size = encode ? size : (size_t)g->sizes[i],
			.place = pinned ? g->host_raw.place : LADE_PLACE_HOST,
			.decoded_size = encode ? 0 : size,
		};
		g->items[i] = (lade_item){
			.src = &g->segments[i],
			.src_count = 1,
			.dst = {encode ? g->packed + i * g->stride : g->back + off,
				encode ? g->stride : size, g->near},
		};
		packed += g->sizes[i];
	}
}

static lade_status pass_fed(gpu *g, lade_direction direction, size_t n, lade_error *err)
{
	const lade_batch_options o = {.struct_size = sizeof o,
				      .stream = g->stream,
				      .where = LADE_WHERE_DEVICE,
				      .device = g->near.device};
	lade_status status = LADE_OK;

	for (size_t i = 0; i < n && status == LADE_OK; i++)
		status = (direction == LADE_ENCODE ? lade_encode_into : lade_decode_into)(
			g->engine, g->spec, g->items, g->count, g->results, &o, err);
	return status;
}

static lade_status encode_fed(void *ctx, size_t n, lade_error *err)
{
	return pass_fed(ctx, LADE_ENCODE, n, err);
}

static lade_status decode_fed(void *ctx, size_t n, lade_error *err)
{
	return pass_fed(ctx, LADE_DECODE, n, err);
}

/* ---- once, and compared -------------------------------------------------------------- */

/* Encodes all chunks where that can be done: g->results has their sizes. */
static lade_status encode_once(gpu *g, uint8_t **host, lade_error *err)
{
	*host = NULL;
	if (g->encodes) {
		lade_status status = encode_resident(g, 1, err);
		return status == LADE_OK ? results(g, table_at(g, SIZES), err) : status;
	}
	*host = cli_need(malloc(g->packed_size));
	make_items(g, LADE_ENCODE, false);
	for (size_t i = 0; i < g->count; i++)
		g->items[i].dst = lade_host_span(*host + i * g->stride, g->stride);
	return lade_encode_into(g->engine, g->spec, g->items, g->count, g->results, NULL, err);
}

/* The encoded chunks come to the host from the device, or go there from 'host'. */
static lade_status spread(gpu *g, const uint8_t *host, uint64_t *total, lade_error *err)
{
	*total = 0;
	for (size_t i = 0; i < g->count; i++)
		*total += g->sizes[i] = g->results[i].size;
	lade_status status =
		cli_buffer_new((size_t)*total + 1, g->near.device, &g->host_packed, err);
	if (status != LADE_OK)
		return status;
	g->pageable = cli_need(malloc((size_t)*total + 1));
	uint8_t *at = g->host_packed.data;
	for (size_t i = 0; i < g->count; i++) {
		size_t size = (size_t)g->sizes[i];
		if (host)
			memcpy(at, host + i * g->stride, size);
		g->segments[i] = (lade_segment){.data = g->packed + i * g->stride, .size = size,
						.place = g->near};
		g->items[i] = (lade_item){.src = &g->segments[i], .src_count = 1,
					  .dst = {at, size, g->host_packed.place}};
		if (host) {
			g->segments[i].data = at;
			g->segments[i].place = g->host_packed.place;
			g->items[i].dst = (lade_span){g->packed + i * g->stride, size, g->near};
		}
		at += size;
	}
	const lade_batch_options o = {.struct_size = sizeof o, .stream = g->stream};
	const size_t sizes = g->count * sizeof *g->sizes;
	status = lade_decode_into(g->engine, g->copy, g->items, g->count, NULL, &o, err);
	if (status == LADE_OK && host)
		status = move(g, lade_host_cspan(g->sizes, sizes),
			      (lade_span){table_at(g, SIZES), sizes, g->near}, err);
	memcpy(g->pageable, g->host_packed.data, (size_t)*total);
	return status;
}

/* Compares what has been decoded with the data, and makes it something else. */
static lade_status compare(gpu *g, bool lossy, lade_error *err)
{
	size_t size = g->plan->size;
	uint8_t *back = cli_need(malloc(size));
	lade_status status = move(g, (lade_cspan){g->back, size, g->near},
				  lade_host_span(back, size), err);

	if (status == LADE_OK && !lossy && memcmp(back, g->plan->data, size) != 0)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
				   "other bytes came back from device %d than went in",
				   (int)g->near.device);
	memset(back, 0xA5, size);
	if (status == LADE_OK)
		status = move(g, lade_host_cspan(back, size),
			      (lade_span){g->back, size, g->near}, err);
	free(back);
	return status;
}

static lade_status verify(gpu *g, measure *out, lade_error *err)
{
	uint8_t *host = NULL;
	lade_status status = encode_once(g, &host, err);

	if (status == LADE_OK)
		status = spread(g, host, &out->encoded_size, err);
	free(host);
	if (status == LADE_OK)
		status = decode_resident(g, 1, err);
	if (status == LADE_OK)
		status = results(g, NULL, err);
	return status == LADE_OK ? compare(g, out->lossy, err) : status;
}

static lade_status time_fed(gpu *g, bool pinned, measure *out, lade_error *err)
{
	measure_passes passes = {encode_fed, g, .seconds = g->plan->seconds};
	size_t count;
	lade_status status = LADE_OK;

	if (g->encodes) {
		make_items(g, LADE_ENCODE, pinned);
		status = measure_time(&passes, &out->encode_seconds, &count, err);
	}
	make_items(g, LADE_DECODE, pinned);
	passes.pass = decode_fed;
	if (status == LADE_OK)
		status = decode_fed(g, 1, err);
	if (status == LADE_OK)
		status = compare(g, out->lossy, err);
	if (status == LADE_OK)
		status = measure_time(&passes, &out->decode_seconds, &out->passes, err);
	return status;
}

lade_status measure_gpu(lade_engine *engine, const lade_spec *spec, const measure_plan *plan,
			int32_t device, measure out[MEASURE_GPU_WAYS], lade_error *err)
{
	gpu g = {.engine = engine, .spec = spec, .plan = plan, .near = {LADE_DEVICE, device}};
	measure_passes passes = {encode_resident, &g, plan->seconds, RESIDENT_LEAST};
	measure *resident = &out[MEASURE_RESIDENT];
	size_t count;

	*resident = (measure){.size = plan->size, .lossy = lade_spec_is_lossy(spec)};
	lade_status status = gpu_new(&g, err);
	if (status == LADE_OK)
		status = verify(&g, resident, err);
	out[MEASURE_PINNED] = out[MEASURE_PAGEABLE] = *resident;
	if (status == LADE_OK && g.encodes)
		status = measure_time(&passes, &resident->encode_seconds, &count, err);
	passes.pass = decode_resident;
	if (status == LADE_OK)
		status = measure_time(&passes, &resident->decode_seconds, &resident->passes, err);
	if (status == LADE_OK)
		status = time_fed(&g, true, &out[MEASURE_PINNED], err);
	if (status == LADE_OK)
		status = time_fed(&g, false, &out[MEASURE_PAGEABLE], err);
	gpu_free(&g);
	return status;
}
