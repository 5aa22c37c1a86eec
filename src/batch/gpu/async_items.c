/*
 * async_items.c: items that are enqueued on a stream.
 *
 * A call is one wave (wave.c).  When items have units that must be added up, unit tables stand
 * behind the wave's block:
 *
 *     block:  | the wave's | first[] u32 | wanted[] u64 | give[] u64 |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/gpu/async.h"

#include "base/try.h"
#include "array/given.h"
#include "engine/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMBINE_THREADS 256u

typedef struct batch {
	const lade_item *items;
	size_t count;
	lade__gpu_list units;
	uint32_t *first; /* by item, and one more: its first unit */
	bool combine;    /* results are not simply those of the units */
	lade__gpu_wave wave;
} batch;

/* Whether the device's kernels reach a place: segment 'i', or the destination, SIZE_MAX. */
static lade_status check_place(const lade__async *a, lade_place place, size_t i, lade_error *err)
{
	char what[40] = "the destination";
	bool elsewhere = place.kind == LADE_DEVICE && place.device != a->options.device;
	if (!elsewhere && !(a->capturing && place.kind == LADE_PINNED))
		return LADE_OK;
	if (i != SIZE_MAX)
		snprintf(what, sizeof what, "segment %zu", i);
	if (elsewhere)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s is on device %d, and the call is for device %d", what,
		                 (int)place.device, (int)a->options.device);
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                 "the stream is being captured: spans must be the device's own memory");
}

/* Whether an item can be enqueued as it is; what lade__gpu_units() then says of it holds, too. */
static lade_status check_item(const lade__async *a, const lade_spec *spec, const lade_item *item,
                              lade_direction direction, lade_error *err)
{
	lade_status status = lade__item_check(item, direction, err);
	if (status != LADE_OK)
		return status;
	if (item->spec && item->spec != spec)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "it has a spec of its own: one call enqueues one spec");
	if (item->tail || item->range_off || item->range_size)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "ranges and tails are for calls that wait");
	for (size_t i = 0; i < item->src_count; i++) {
		status = check_place(a, item->src[i].place, i, err);
		if (status != LADE_OK)
			return status;
		if (item->src[i].place.kind == LADE_HOST && item->src[i].size)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "segment %zu is pageable memory: this call does not wait "
			                 "for copies of it",
			                 i);
	}
	for (size_t k = 0; status == LADE_OK && k < lade__output_count(item); k++) {
		lade_span dst = lade__output_at(item, k).dst;
		if (dst.place.kind == LADE_HOST && dst.size)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "the destination is pageable memory: a device cannot "
			                 "write there");
		status = check_place(a, dst.place, SIZE_MAX, err);
	}
	return status;
}

static lade_status make_units(const lade__async *a, batch *b, lade_error *err)
{
	const lade_spec *spec = a->route.spec;
	lade_direction direction = a->route.direction;
	lade__gpu_list *units = &b->units;
	size_t most = 0;
	bool plain = false; /* the item before, which has one unit then */
	for (size_t i = 0; i < b->count; i++)
		most += b->items[i].src_count ? b->items[i].src_count : 1;
	lade_status status = lade__gpu_list_room(units, most, err);
	b->first = status == LADE_OK ? malloc((b->count + 1) * sizeof *b->first) : NULL;
	if (!b->first || most > INT32_MAX)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu units",
		                 most);
	for (size_t i = 0; i < b->count; i++) {
		const lade_item *item = &b->items[i];
		lade_error why;
		size_t first = units->count;
		lade__gpu_unit *next = units->unit + first;
		bool was_plain = plain;
		b->first[i] = (uint32_t)first;
		plain = lade__item_is_segment(item);
		if (was_plain && lade__item_same_key(item, item - 1) &&
		    lade__gpu_unit_same(item, i, direction,
		                        lade_spec_bound(spec, lade__item_source_size(item)),
		                        next - 1, next)) {
			units->count++;
			b->combine |= next->wanted != 0;
			continue;
		}
		status = check_item(a, spec, item, direction, &why);
		if (status == LADE_OK)
			status =
				lade__gpu_units(&a->route, a->options.device, item, i, units, &why);
		if (status != LADE_OK)
			return lade_fail(err, status, why.offset, "item %zu: %s", i, why.message);
		b->combine |= units->count != first + 1 || next->wanted || next->placed;
	}
	b->first[b->count] = (uint32_t)units->count;
	return LADE_OK;
}

/* The host's side of the tables behind the wave's. */
static void fill_combine(const batch *b, uint8_t *tables)
{
	uint64_t *wanted = (uint64_t *)(tables + lade__async_first_size(b->count));
	memcpy(tables, b->first, (b->count + 1) * sizeof *b->first);
	for (size_t i = 0; i < b->units.count; i++)
		wanted[i] = b->units.unit[i].wanted;
	uint64_t *give = (uint64_t *)((uint8_t *)wanted + lade__async_wanted_size(b->units.count));
	for (size_t i = 0; i < b->count; i++) {
		const lade__gpu_unit *last =
			b->first[i + 1] > b->first[i] ? &b->units.unit[b->first[i + 1] - 1] : NULL;
		give[i] = last && last->placed ? last->give : UINT64_MAX;
	}
}

static lade_status send_tables(lade__async *a, const batch *b, size_t extra, lade_error *err)
{
	size_t size = b->wave.tables_size;
	lade__async_tables s;
	lade_status status = lade__async_staging(a, size + extra, &s, err);
	if (status != LADE_OK)
		return status;
	lade__gpu_wave_fill(&b->wave, NULL, s.tables);
	if (extra) {
		memset(s.tables + size, 0, extra);
		fill_combine(b, s.tables + size);
	}
	status = lade__async_send(a, a->block, s.tables, size, s.buffer != NULL, err);
	if (status == LADE_OK && extra)
		status = lade__async_send(a, a->block + b->wave.size, s.tables + size, extra,
		                          s.buffer != NULL, err);
	return lade__async_staged(a, &s, status, err);
}

static const lade__kernel combine_kernel = {"copy", "lade_combine", 0};

static lade_status enqueue_combine(const lade__async *a, const batch *b, lade_error *err)
{
	lade__address first = a->block + b->wave.size, result = a->block + b->wave.result_off;
	lade_gpu_combine c = {.first = first,
	                      .wanted = first + lade__async_first_size(b->count),
	                      .give = first + lade__async_first_size(b->count) +
	                              lade__async_wanted_size(b->units.count),
	                      .unit_size = result,
	                      .unit_status = result + 8 * b->units.count,
	                      .size = lade__address_of(a->options.sizes),
	                      .status = lade__address_of(a->options.statuses),
	                      .count = (uint32_t)b->count};
	lade__launch launch = {.blocks = (c.count + COMBINE_THREADS - 1) / COMBINE_THREADS,
	                       .threads = COMBINE_THREADS,
	                       .stream = a->stream};
	void *arguments[] = {&c};
	return lade__kernel_launch(a->device, &combine_kernel, &launch, arguments, err);
}

static lade_status enqueue_batch(lade__async *a, batch *b, lade_error *err)
{
	static const lade__gpu_most no_limit = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
	const lade_async_options *o = &a->options;
	lade_direction direction = a->route.direction;
	lade__gpu_wave *w = &b->wave;
	size_t extra = b->combine ? lade__async_combine_size(b->count, b->units.count) : 0;
	lade_status status;
	*w = (lade__gpu_wave){.units = b->units.unit, .count = b->units.count};
	TRY(lade__gpu_wave_plan(a->engine, &a->route, &no_limit, w, err));
	if (w->count < b->units.count) {
		status = lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "the items' sizes overflow");
		goto out;
	}
	TRY(lade__async_block(a, w->size + extra, err));
	lade__gpu_wave_put(w, a->block);
	if (!b->combine && o->sizes)
		w->dst_size = lade__address_of(o->sizes);
	if (!b->combine && o->statuses)
		w->status = lade__address_of(o->statuses);
	TRY(send_tables(a, b, extra, err));
	TRY(lade__gpu_wave_in(a->device, a->stream, w, err));
	if (direction == LADE_ENCODE)
		TRY(lade__gpu_wave_boxes(a->device, a->stream, w, direction, err));
	TRY(lade__gpu_wave_stages(a->engine, &a->route, a->device, a->stream, w, err));
	if (direction == LADE_DECODE)
		TRY(lade__gpu_wave_boxes(a->device, a->stream, w, direction, err));
	TRY(lade__gpu_wave_out(a->device, a->stream, w, err));
	if (b->combine && (o->sizes || o->statuses))
		TRY(enqueue_combine(a, b, err));
out:
	return status;
}

static lade_status run_items(lade__call call, const lade_async_options *options, lade_error *err)
{
	lade_workload workload = {.count = call.count, .threads = 1};
	batch b = {.count = call.count};
	lade__given given = {.items = call.items, .count = call.count};
	lade__async a;
	lade_status status = lade__async_read(&a, call.engine, options, err);
	if (status == LADE_OK && !call.items && call.count)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "items is NULL for %zu items",
		                   call.count);
	if (status == LADE_OK && a.options.flags)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "async options: flags 0x%x are for arrays, these are items",
		                   a.options.flags);
	if (status != LADE_OK)
		return status;
	lade__sizes sizes = {.item = a.options.item_size,
	                     .segment = a.options.segment_size,
	                     .output = a.options.output_size};
	given.host = lade__engine_host(call.engine);
	TRY(lade__given_open(&given, &sizes, err));
	TRY(lade__async_begin(&a, call.spec, call.direction, &workload, err));
	if (call.count == 0)
		goto out;
	b.items = given.items;
	TRY(make_units(&a, &b, err));
	TRY(enqueue_batch(&a, &b, err));
out:
	free(b.units.unit);
	free(b.first);
	lade__async_end(&a);
	lade__given_close(&given);
	return status;
}

lade_status lade_decode_async(lade_engine *engine, const lade_spec *spec, const lade_item *items,
                              size_t count, const lade_async_options *options, lade_error *err)
{
	lade__call call = {engine, LADE_DECODE, spec, items, count, NULL, NULL};
	return run_items(call, options, err);
}

lade_status lade_encode_async(lade_engine *engine, const lade_spec *spec, const lade_item *items,
                              size_t count, const lade_async_options *options, lade_error *err)
{
	lade__call call = {engine, LADE_ENCODE, spec, items, count, NULL, NULL};
	return run_items(call, options, err);
}
