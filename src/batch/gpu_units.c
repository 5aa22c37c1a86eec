/*
 * gpu_units.c: items to units, the chunks that kernels work on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu.h"

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
static bool is_near(lade_place place, int32_t device)
{
	return (place.kind == LADE_DEVICE && place.device == device) || place.kind == LADE_MANAGED;
}

static void unit_source(lade__gpu_unit *unit, const lade_segment *segment, int32_t device)
{
	unit->src = segment->data;
	unit->src_size = segment->size;
	unit->stage_in = segment->size && !is_near(segment->place, device);
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
	if (item->row_pitch > item->row_size) {
		unit->row = item->row_size;
		unit->pitch = item->row_pitch;
	} else if (is_near(item->dst.place, device) && skip == 0 && size == unit->cap) {
		unit->stage_out = unit->to_host = false;
		unit->dst = item->dst.data ? (uint8_t *)item->dst.data + at : NULL;
	}
}

static lade_status for_the_host(const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "the device does not take %s",
	                 what);
}

static lade_status encode_unit(const lade_item *item, int32_t device, size_t bound,
                               lade__gpu_unit *unit, size_t *count, lade_error *err)
{
	static const lade_segment nothing;
	if (item->src_count > 1)
		return for_the_host("a source of several segments", err);
	if (item->row_pitch > item->row_size)
		return for_the_host("a source of rows", err);
	unit_source(unit, item->src_count ? item->src : &nothing, device);
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

/* The segments of which the window [off, off + size) has a part; all tell their size. */
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

lade_status lade__gpu_units(const lade_item *item, size_t index, lade_direction direction,
                            int32_t device, size_t bound, lade__gpu_unit *units, size_t *count,
                            lade_error *err)
{
	*count = 0;
	units[0] = (lade__gpu_unit){.item = index};
	if (direction == LADE_ENCODE)
		return encode_unit(item, device, bound, units, count, err);
	bool rows = item->row_pitch != 0, ranged = item->range_off || item->range_size;
	size_t room = rows ? lade__rows_bytes(item->dst.size, item->row_size, item->row_pitch)
	                   : item->dst.size;
	if (item->src_count == 1 && !ranged)
		return decode_unit(item, device, room, units, count);
	size_t total = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		if (item->src[i].decoded_size == 0)
			return for_the_host(
				ranged ? "a range of what does not tell its decoded size: set the "
					 "segment's decoded_size"
				       : "segments that do not tell their decoded size: set the "
					 "segments' decoded_size",
				err);
		if (item->src[i].decoded_size > SIZE_MAX / 4 - total)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "the segments' decoded sizes overflow");
		total += item->src[i].decoded_size;
	}
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
