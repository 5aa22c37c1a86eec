/*
 * units.c: items to units, the chunks that kernels work on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

#define LIST_LEAST ((size_t)64)

lade_status lade__gpu_list_room(lade__gpu_list *list, size_t more, lade_error *err)
{
	if (more <= list->cap - list->count)
		return LADE_OK;
	size_t want = more > SIZE_MAX / 2 - list->count ? SIZE_MAX : list->count + more;
	size_t cap = want > 2 * list->cap ? want : 2 * list->cap;
	cap = cap > LIST_LEAST ? cap : LIST_LEAST;
	lade__gpu_unit *unit =
		cap > SIZE_MAX / sizeof *unit ? NULL : realloc(list->unit, cap * sizeof *unit);
	if (!unit)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to plan %zu chunks",
		                 want);
	list->unit = unit;
	list->cap = cap;
	return LADE_OK;
}

/* Whether kernels on 'device' read and write such memory fast. */
static bool in_reach(lade_place place, int32_t device)
{
	return (place.kind == LADE_DEVICE && place.device == device) || place.kind == LADE_MANAGED;
}

static void unit_source(lade__gpu_unit *unit, const lade_segment *segment, int32_t device)
{
	unit->src = segment->data;
	unit->src_size = segment->size;
	unit->stage_in = segment->size && !in_reach(segment->place, device);
	unit->pageable = unit->stage_in && segment->place.kind == LADE_HOST;
	unit->foreign = unit->stage_in && segment->place.kind == LADE_DEVICE;
}

/* Bytes [skip, skip + size) of the unit's result become bytes 'at' and on of the destination. */
static void unit_target(lade__gpu_unit *unit, const lade_item *item, int32_t device, size_t skip,
                        size_t size, size_t at)
{
	if (unit->cap == 0) /* nothing is written, wherever that is */
		return;
	unit->stage_out = true;
	unit->to_host = item->dst.place.kind == LADE_HOST;
	unit->to = item->dst.data;
	unit->skip = skip;
	unit->size = size;
	unit->at = at;
	if (in_reach(item->dst.place, device) && skip == 0 && size == unit->cap) {
		unit->stage_out = unit->to_host = false;
		unit->dst = item->dst.data ? (uint8_t *)item->dst.data + at : NULL;
	}
}

static lade_status for_the_host(const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "the device does not take %s",
	                 what);
}

static lade_status encode_unit(const lade_spec *spec, const lade_item *item, int32_t device,
                               lade__gpu_unit *unit, size_t *count, lade_error *err)
{
	static const lade_segment nothing;
	size_t bound = lade_spec_bound(spec, lade__item_source_size(item));
	if (item->src_count > 1)
		return for_the_host("a source of several segments", err);
	unit_source(unit, item->src_count ? item->src : &nothing, device);
	if (item->layout && unit->foreign)
		return for_the_host("a layout of another device's memory", err);
	if (item->layout) {
		lade_status status = lade__gpu_unit_gather(unit, item, err);
		if (status != LADE_OK)
			return status;
	}
	unit->cap = item->dst.size < bound ? item->dst.size : bound;
	/* A destination on the device may be larger than what is written to it. */
	unit_target(unit, item, device, 0, unit->cap, 0);
	*count = 1;
	return LADE_OK;
}

/* All of one segment, whatever it decodes to. */
static lade_status decode_unit(const lade_item *item, int32_t device, size_t cap,
                               lade__gpu_unit *unit, size_t *count)
{
	unit_source(unit, item->src, device);
	unit->cap = cap;
	unit->wanted = item->src->decoded_size;
	unit_target(unit, item, device, 0, cap, 0);
	*count = 1;
	return LADE_OK;
}

/* The segments of which the window [off, off + size) has a part; all state their size. */
static lade_status decode_units(const lade_item *item, int32_t device, size_t off, size_t size,
                                lade__gpu_unit *units, size_t *count)
{
	size_t base = 0, n = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		size_t segment = item->src[i].decoded_size, end = base + segment;
		size_t from = base > off ? base : off, to = end < off + size ? end : off + size;
		if (from < to) {
			lade__gpu_unit *unit = &units[n++];
			*unit = (lade__gpu_unit){.item = units[0].item};
			unit_source(unit, &item->src[i], device);
			unit->cap = segment;
			unit->wanted = segment;
			unit_target(unit, item, device, from - base, to - from, from - off);
		}
		base = end;
	}
	*count = n;
	return LADE_OK;
}

/* The joined size of segments that all state theirs. */
static lade_status stated_size(const lade_item *item, size_t *total, const char *what,
                               lade_error *err)
{
	*total = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		if (item->src[i].decoded_size == 0)
			return for_the_host(what, err);
		if (item->src[i].decoded_size > SIZE_MAX / 4 - *total)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "the segments' decoded sizes overflow");
		*total += item->src[i].decoded_size;
	}
	return LADE_OK;
}

/* What an item's outputs come to. */
typedef struct wanted {
	size_t chunk;      /* what the layouts say, or the segments if there is no layout */
	size_t first, end; /* the bytes of the chunk that are wanted */
	uint64_t give;     /* the bytes of all results */
} wanted;

/* Checks all outputs. */
static lade_status check_outputs(const lade_item *item, int32_t device, wanted *w, lade_error *err)
{
	lade__plan plan;
	bool known = false;
	lade_status status = LADE_OK;
	for (size_t k = 0; k < lade__output_count(item); k++) {
		lade_item_output output = lade__output_at(item, k);
		if (output.dst.place.kind == LADE_DEVICE && output.dst.place.device != device)
			return for_the_host("outputs on several devices", err);
		if (!output.layout)
			continue;
		status = lade__output_plan(item, k, 0, &plan, err);
		if (status != LADE_OK)
			return status;
		if (known && plan.chunk_size != w->chunk)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "output %zu: its layout is of a chunk of %zu bytes, one "
			                 "before of %zu",
			                 k, plan.chunk_size, w->chunk);
		w->chunk = plan.chunk_size;
		known = true;
	}
	if (!known)
		status = stated_size(item, &w->chunk,
		                     "several outputs of what does not state its decoded size: set "
		                     "the segments' decoded_size",
		                     err);
	w->first = SIZE_MAX;
	for (size_t k = 0; status == LADE_OK && k < lade__output_count(item); k++) {
		status = lade__output_plan(item, k, w->chunk, &plan, err);
		if (status != LADE_OK || plan.size == 0)
			continue;
		w->first = plan.first < w->first ? plan.first : w->first;
		w->end = plan.end > w->end ? plan.end : w->end;
		w->give += plan.size;
	}
	return status;
}

/* The segments of which the outputs take something. */
static lade_status placed_units(const lade_item *item, int32_t device, lade__gpu_unit *units,
                                size_t *count, lade_error *err)
{
	size_t total = 0, base = 0, n = 0, index = units[0].item;
	wanted w = {.chunk = 0};
	lade_status status = check_outputs(item, device, &w, err);
	size_t chunk = w.chunk;
	if (status != LADE_OK || w.give == 0)
		return status;
	if (chunk > LADE_CHUNK_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a chunk of %zu bytes, kernels take %u", chunk, LADE_CHUNK_MAX);
	if (item->src_count == 1 && item->src->decoded_size == 0)
		total = chunk;
	else
		status =
			stated_size(item, &total,
		                    "a layout of segments that do not state their decoded size: "
		                    "set the segments' decoded_size",
		                    err);
	if (status != LADE_OK)
		return status;
	if (total != chunk)
		return lade_fail(err, total > chunk ? LADE_E_NOSPACE : LADE_E_CORRUPT,
		                 LADE_NO_OFFSET,
		                 "the chunk decodes to %zu bytes, the layout's shape has %zu",
		                 total, chunk);
	for (size_t i = 0; i < item->src_count; i++) {
		size_t size = item->src_count == 1 ? chunk : item->src[i].decoded_size;
		if (base < w.end && base + size > w.first) {
			lade__gpu_unit *unit = &units[n++];
			*unit = (lade__gpu_unit){.item = index};
			unit_source(unit, &item->src[i], device);
			unit->cap = unit->size = size;
			unit->wanted = size;
			unit->at = base;
			lade__gpu_unit_place(unit, item, chunk);
		}
		base += size;
	}
	units[n - 1].give = w.give;
	*count = n;
	return LADE_OK;
}

/* The units of one item, and how many they are; units[0] names it. */
static lade_status make_units(const lade__route *route, int32_t device, const lade_item *item,
                              lade__gpu_unit *units, size_t *count, lade_error *err)
{
	if (item->tail)
		return for_the_host("a tail", err);
	if (route->direction == LADE_ENCODE)
		return encode_unit(route->spec, item, device, units, count, err);
	if (lade__item_is_placed(item))
		return placed_units(item, device, units, count, err);
	bool ranged = item->range_off || item->range_size;
	size_t room = item->dst.size;
	if (item->src_count == 1 && !ranged)
		return decode_unit(item, device, room, units, count);
	size_t total;
	lade_status status = stated_size(item, &total,
	                                 ranged ? "a range of what does not state its decoded "
	                                          "size: set the segment's decoded_size"
	                                        : "segments that do not state their decoded size: "
	                                          "set the segments' decoded_size",
	                                 err);
	if (status != LADE_OK)
		return status;
	if (item->range_off > total || item->range_size > total - item->range_off)
		return lade_fail(
			err, LADE_E_RANGE, total,
			"the range of %llu bytes from %llu on passes the result's %zu bytes",
			(unsigned long long)item->range_size, (unsigned long long)item->range_off,
			total);
	size_t size = item->range_size ? (size_t)item->range_size : total - (size_t)item->range_off;
	if (size > room)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the result has %zu bytes, the destination %zu", size, room);
	return decode_units(item, device, (size_t)item->range_off, size, units, count);
}

lade_status lade__gpu_units(const lade__route *route, int32_t device, const lade_item *item,
                            size_t index, lade__gpu_list *list, lade_error *err)
{
	lade__gpu_unit *units = list->unit + list->count;
	size_t count = 0;
	units[0] = (lade__gpu_unit){.item = index};
	lade_status status = make_units(route, device, item, units, &count, err);
	if (status == LADE_OK)
		list->count += count;
	return status;
}
