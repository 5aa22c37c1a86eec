/*
 * item.c: checks one item, and says how large it is and where it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/plan/item.h"

#include "base/options.h"

/* What goes together; layouts themselves are checked when they are read. */
static lade_status check_placed(const lade_item *item, lade_direction direction, lade_error *err)
{
	if (item->range_off || item->range_size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "a range does not go together with a layout or outputs");
	if (direction == LADE_ENCODE && item->output_count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "encoding has one destination, here are %zu outputs",
		                 item->output_count);
	if (direction == LADE_ENCODE && item->src_count != 1)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "encoding with a layout takes one segment, here are %zu",
		                 item->src_count);
	if (item->output_count && !item->outputs)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "outputs is NULL for %zu",
		                 item->output_count);
	if (item->output_count && (item->dst.data || item->dst.size || item->layout))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "an item with %zu outputs has dst or layout set, too",
		                 item->output_count);
	return LADE_OK;
}

static lade_status bad_kind(lade_place place, const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s: memory kind %d is unknown", what,
	                 (int)place.kind);
}

lade_status lade__item_check(const lade_item *item, lade_direction direction, lade_error *err)
{
	if (item->src_count && !item->src)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "src is NULL for %zu segments",
		                 item->src_count);
	if (direction == LADE_DECODE && item->src_count == 0)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "an item without source segments");
	for (size_t i = 0; i < item->src_count; i++) {
		const lade_segment *segment = &item->src[i];
		if (!segment->data && segment->size)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "segment %zu is NULL and has %zu bytes", i, segment->size);
		if ((unsigned)segment->place.kind >= LADE_KIND_COUNT)
			return bad_kind(segment->place, "the source", err);
	}
	lade_status status = LADE_OK;
	if (lade__item_is_placed(item))
		status = check_placed(item, direction, err);
	if (status == LADE_OK && item->tail && direction == LADE_ENCODE)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "a tail is for decoding only: encoding takes its stages in the "
		                   "spec");
	for (size_t i = 0; status == LADE_OK && i < lade__output_count(item); i++) {
		lade_span dst = lade__output_at(item, i).dst;
		if (!dst.data && dst.size)
			status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                   "the destination is NULL and has %zu bytes", dst.size);
		else if ((unsigned)dst.place.kind >= LADE_KIND_COUNT)
			status = bad_kind(dst.place, "the destination", err);
	}
	if (status == LADE_OK && direction == LADE_ENCODE && (item->range_off || item->range_size))
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "a range is for decoding only");
	return status;
}

/* Layouts are not yet checked where work is planned; 0 for those that are going to be refused, and
 * for chunks without bytes, whose other sides may be of any size. */
static size_t shape_bytes(const lade_layout *given)
{
	lade_layout layout;
	if (lade__options_read(&layout, sizeof layout, given, "layout", NULL) != LADE_OK ||
	    layout.ndim > LADE_DIMS_MAX || (layout.ndim && !layout.shape))
		return 0;
	size_t bytes = layout.elem_size;
	for (size_t i = 0; i < layout.ndim; i++)
		if (__builtin_mul_overflow(bytes, layout.shape[i], &bytes))
			return 0;
	return bytes <= SIZE_MAX / 4 ? bytes : 0;
}

size_t lade__item_bytes(const lade_item *item, lade_direction direction)
{
	size_t bytes = 0;
	if (item->layout)
		return shape_bytes(item->layout);
	if (direction == LADE_ENCODE) {
		for (size_t i = 0; item->src && i < item->src_count; i++)
			bytes += item->src[i].size;
		return bytes;
	}
	if (!item->output_count)
		return item->dst.size;
	for (size_t i = 0; item->outputs && i < item->output_count; i++)
		if (item->outputs[i].layout)
			return shape_bytes(item->outputs[i].layout);
	return item->outputs ? item->outputs[0].dst.size : 0;
}

static uint64_t source_bytes(const lade_item *item, lade_direction direction)
{
	uint64_t total = 0;
	if (direction == LADE_ENCODE && item->layout)
		return lade__item_bytes(item, direction);
	for (size_t i = 0; i < item->src_count; i++)
		total += item->src[i].size;
	return total;
}

/* Of several segments: the device if any is there, else pageable memory if any is. */
static lade__side source_side(const lade_item *item)
{
	lade__side most = LADE__SIDE_HOST;
	for (size_t i = 0; i < item->src_count; i++) {
		lade__side at = lade__side_of(item->src[i].place);
		if (i == 0 || at == LADE__SIDE_DEVICE ||
		    (at == LADE__SIDE_HOST && most == LADE__SIDE_PINNED))
			most = at;
		if (at == LADE__SIDE_DEVICE)
			break;
	}
	return most;
}

/* The place of the result; of several outputs the first one on a device, else in managed, pageable
 * or pinned memory. */
static lade_place result_place(const lade_item *item)
{
	static const int rank[] = {[LADE_PINNED] = 0, [LADE_HOST] = 1, [LADE_MANAGED] = 2,
	                           [LADE_DEVICE] = 3};
	lade_place place = lade__output_at(item, 0).dst.place;
	for (size_t i = 1; i < item->output_count; i++) {
		lade_place other = item->outputs[i].dst.place;
		if (rank[other.kind] > rank[place.kind])
			place = other;
	}
	return place;
}

/* Of an item of one segment, without layout and outputs. */
static void measure_plain(const lade_item *item, bool decode, lade__item_facts *f)
{
	const lade_segment *s = item->src;
	f->in = lade__side_of(s->place);
	f->out = lade__side_of(item->dst.place);
	if (f->out == LADE__SIDE_DEVICE)
		f->device = item->dst.place.device;
	else if (f->in == LADE__SIDE_DEVICE)
		f->device = s->place.device;
	f->source = s->size;
	f->decoded = decode ? item->dst.size : s->size;
	f->largest = f->decoded > f->source ? f->decoded : f->source;
	if (decode && s->decoded_size > f->largest)
		f->largest = s->decoded_size;
}

void lade__item_measure(const lade_item *item, lade_direction direction, int32_t otherwise,
                        lade__item_facts *f)
{
	f->device = otherwise;
	if (item->src_count == 1 && !lade__item_is_placed(item)) {
		measure_plain(item, direction == LADE_DECODE, f);
		return;
	}
	lade_place out = result_place(item);
	f->in = source_side(item);
	f->out = lade__side_of(out);
	f->source = source_bytes(item, direction);
	f->decoded = lade__item_bytes(item, direction);
	if (f->out == LADE__SIDE_DEVICE)
		f->device = out.device;
	for (size_t i = 0; f->out != LADE__SIDE_DEVICE && i < item->src_count; i++)
		if (lade__side_of(item->src[i].place) == LADE__SIDE_DEVICE) {
			f->device = item->src[i].place.device;
			break;
		}
	f->largest = f->source;
	if (direction == LADE_ENCODE)
		return;
	f->largest = f->decoded > f->largest ? f->decoded : f->largest;
	for (size_t i = 0; i < item->src_count; i++)
		if (item->src[i].decoded_size > f->largest)
			f->largest = item->src[i].decoded_size;
}
