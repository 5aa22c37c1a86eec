/*
 * decode_item.c: decodes an item: its segments one after the other, a range of them, to layouts and
 * several outputs, or with a tail.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/decode.h"

#include "batch/batch.h"
#include "engine/spec.h"

#include <string.h>

/* Decodes segment 'index', which must have the size that the caller has stated. */
static lade_status run_segment(lade__decoder *d, const lade_item *item, size_t index, size_t *size,
                               lade_error *err)
{
	const lade_segment *s = &item->src[index];
	lade_status status = lade__decode_segment(d, lade_host_cspan(s->data, s->size), size, err);
	if (status == LADE_OK && s->decoded_size && s->decoded_size != *size)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "segment %zu decodes to %zu bytes, its decoded_size says %zu",
		                   index, *size, s->decoded_size);
	return status;
}

/* What a segment decodes to, by the caller or by its header; 0: neither says. */
static uint64_t stated_size(const lade__decoder *d, const lade_segment *s)
{
	uint64_t size = s->decoded_size;
	if (size == 0 &&
	    lade__spec_decoded_size(d->pipe.route->spec, s->data, s->size, &size, NULL) != LADE_OK)
		return 0;
	return size;
}

static lade_status decode_plain(lade__decoder *d, const lade_item *item, size_t *size,
                                lade_error *err)
{
	uint8_t *dst = item->dst.data;
	size_t done = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		size_t got = 0;
		d->dst = dst ? dst + done : NULL;
		d->cap = item->dst.size - done;
		lade_status status = run_segment(d, item, i, &got, err);
		if (status != LADE_OK)
			return status;
		done += got;
	}
	*size = done;
	return LADE_OK;
}

/* The window that an item's range is. */
static lade_status make_window(const lade_item *item, lade__sink *sink, lade_error *err)
{
	size_t cap = item->dst.size;
	if (item->range_off > SIZE_MAX / 4 || item->range_size > SIZE_MAX / 4)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "the range from %llu of %llu bytes is too large",
		                 (unsigned long long)item->range_off,
		                 (unsigned long long)item->range_size);
	if (item->range_size > cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the range has %llu bytes, the destination %zu",
		                 (unsigned long long)item->range_size, cap);
	*sink = (lade__sink){.data = item->dst.data,
	                     .off = (size_t)item->range_off,
	                     .size = item->range_size ? (size_t)item->range_size : cap};
	return LADE_OK;
}

/* Decodes segment 'index', whose bytes begin at 'total', as far as the window wants it. */
static lade_status run_window(lade__decoder *d, const lade_item *item, size_t index, size_t *total,
                              lade_error *err)
{
	const lade_segment *segment = &item->src[index];
	const lade__sink *sink = &d->window;
	const size_t end = sink->off + sink->size; /* no overflow: cap is a real size */
	const size_t believed = end < LADE__GROW_MAX / 4 ? LADE__GROW_MAX
	                        : end < SIZE_MAX / 4     ? 4 * end
	                                                 : end;
	const bool open_end = item->range_size == 0;
	uint64_t said = stated_size(d, segment);
	size_t got = 0;
	if (said > SIZE_MAX / 4)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "segment %zu says that it decodes to %llu bytes", index,
		                 (unsigned long long)said);
	if (said && said <= sink->off && *total <= sink->off - said) {
		*total += (size_t)said;
		return LADE_OK;
	}
	d->window.base = *total;
	d->known = said;
	d->ends = !open_end && index + 1 == item->src_count;
	/* A whole result must fit; of a ranged one more may have to be decoded than is kept. */
	d->cap = segment->decoded_size;
	if (d->cap == 0 && item->range_off == 0 && open_end)
		d->cap = item->dst.size - *total;
	d->believed = d->cap ? 0 : believed;
	if (d->cap == 0)
		d->cap = said ? (size_t)said : believed;
	lade_status status = run_segment(d, item, index, &got, err);
	if (status == LADE_OK)
		*total += got;
	return status;
}

/* A range: each segment that touches the window is decoded through the sink. */
static lade_status decode_windowed(lade__decoder *d, const lade_item *item, size_t *size,
                                   lade_error *err)
{
	bool open_end = item->range_size == 0;
	size_t cap = item->dst.size, total = 0;
	const lade__sink *sink = d->sink = &d->window;
	lade_status status = make_window(item, &d->window, err);
	const size_t end = sink->off + sink->size;
	for (size_t i = 0; status == LADE_OK && i < item->src_count; i++) {
		if (open_end ? total > sink->off && total - sink->off > cap : total >= end)
			break;
		status = run_window(d, item, i, &total, err);
	}
	if (status != LADE_OK)
		return status;
	if (open_end && total >= sink->off && total - sink->off > cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the result has %zu bytes from %zu on, the destination %zu",
		                 total - sink->off, sink->off, cap);
	if (total < (open_end ? sink->off : end))
		return lade_fail(err, LADE_E_RANGE, total,
		                 "the range ends at %zu, the result has %zu bytes",
		                 open_end ? sink->off : end, total);
	*size = open_end ? total - sink->off : sink->size;
	return LADE_OK;
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* The plans of an item's layouts, in the worker's memory or in '*own'.  '*plain' is the first
 * output without one, which has no outlet; SIZE_MAX: there is none. */
static lade_status make_outlets(lade__decoder *d, const lade_item *item, lade__outlet *own,
                                lade__outlet **outlets, size_t *plain, lade_error *err)
{
	size_t count = lade__output_count(item), chunk = SIZE_MAX;
	*plain = SIZE_MAX;
	*outlets = own;
	if (count > 1) {
		*outlets = count > SIZE_MAX / sizeof *own
		                   ? NULL
		                   : lade__worker_block(d->pipe.worker, LADE__SCRATCH_OUTLETS,
		                                        count * sizeof *own);
		if (!*outlets)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for the layouts of %zu outputs", count);
	}
	d->window.outlet = *outlets;
	d->window.outlet_count = 0;
	for (size_t i = 0; i < count; i++) {
		lade_item_output output = lade__output_at(item, i);
		lade__outlet *outlet = &(*outlets)[d->window.outlet_count];
		if (!output.layout) {
			*plain = *plain < i ? *plain : i;
			continue;
		}
		lade_status status = lade__plan_make(output.layout, LADE_DECODE, output.dst.size,
		                                     &outlet->plan, err);
		if (status != LADE_OK)
			return status;
		if (chunk != SIZE_MAX && outlet->plan.chunk_size != chunk)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "output %zu: its layout is of a chunk of %zu bytes, one "
			                 "before of %zu",
			                 i, outlet->plan.chunk_size, chunk);
		chunk = outlet->plan.chunk_size;
		outlet->span = output.dst.data;
		d->window.outlet_count++;
	}
	return LADE_OK;
}

/* What the chunk must have, by its layouts. */
static lade_status check_chunk(size_t got, size_t want, lade_error *err)
{
	if (got == want)
		return LADE_OK;
	return lade_fail(err, got > want ? LADE_E_NOSPACE : LADE_E_CORRUPT, LADE_NO_OFFSET,
	                 "the chunk decodes to %zu bytes, the layout's shape has %zu", got, want);
}

/* Decodes to the output without a layout, and from there to the others. */
static lade_status decode_to_many(lade__decoder *d, const lade_item *item, size_t plain,
                                  size_t *size, lade_error *err)
{
	lade_item first = *item;
	size_t got = 0, total = 0;
	first.output_count = 0;
	first.dst = item->outputs[plain].dst;
	lade_status status = decode_plain(d, &first, &got, err);
	if (status == LADE_OK && d->window.outlet_count)
		status = check_chunk(got, d->window.outlet[0].plan.chunk_size, err);
	for (size_t i = 0; status == LADE_OK && i < item->output_count; i++) {
		lade_span dst = item->outputs[i].dst;
		if (item->outputs[i].layout)
			continue;
		if (got > dst.size)
			return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
			                 "the result has %zu bytes, output %zu %zu", got, i,
			                 dst.size);
		if (i != plain && got)
			memcpy(dst.data, first.dst.data, got);
		total += got;
	}
	for (size_t i = 0; status == LADE_OK && i < d->window.outlet_count; i++) {
		const lade__outlet *outlet = &d->window.outlet[i];
		lade__plan_scatter(&outlet->plan, d->pipe.worker->engine->cpu, 0, first.dst.data,
		                   got, outlet->span);
		total += outlet->plan.size;
	}
	*size = total;
	return status;
}

/* Decodes the segments that the boxes have a part of, through the sink. */
static lade_status decode_to_outlets(lade__decoder *d, const lade_item *item, size_t chunk,
                                     lade_error *err)
{
	lade__sink *sink = &d->window;
	size_t total = 0, first = SIZE_MAX, end = 0;
	for (size_t i = 0; i < sink->outlet_count; i++) {
		const lade__plan *plan = &sink->outlet[i].plan;
		if (plan->size && plan->first < first)
			first = plan->first;
		if (plan->size && plan->end > end)
			end = plan->end;
	}
	sink->off = first;
	sink->size = end - first;
	sink->cpu = d->pipe.worker->engine->cpu;
	d->sink = sink;
	for (size_t i = 0; i < item->src_count; i++) {
		uint64_t said = stated_size(d, &item->src[i]);
		size_t got = 0;
		if (said > chunk - total)
			return check_chunk(said < SIZE_MAX / 4 ? total + (size_t)said : SIZE_MAX,
			                   chunk, err);
		if (said && (total + said <= first || total >= end)) {
			total += (size_t)said;
			continue;
		}
		sink->base = total;
		d->known = said;
		d->cap = chunk - total;
		lade_status status = run_segment(d, item, i, &got, err);
		if (status != LADE_OK)
			return status;
		total += got;
	}
	return check_chunk(total, chunk, err);
}

/* What the layouts take of the chunk, all together. */
static size_t outlets_size(const lade__decoder *d)
{
	size_t total = 0;
	for (size_t i = 0; i < d->window.outlet_count; i++)
		total += d->window.outlet[i].plan.size;
	return total;
}

static lade_status decode_placed(lade__decoder *d, const lade_item *item, size_t *size,
                                 lade_error *err)
{
	lade__outlet own, *outlets;
	size_t plain, total;
	lade_status status = make_outlets(d, item, &own, &outlets, &plain, err);
	if (status != LADE_OK)
		return status;
	if (plain != SIZE_MAX)
		return decode_to_many(d, item, plain, size, err);
	total = outlets_size(d);
	if (total)
		status = decode_to_outlets(d, item, outlets[0].plan.chunk_size, err);
	*size = status == LADE_OK ? total : 0;
	return status;
}

/* ---- tails ----------------------------------------------------------------------------------- */

/* The most bytes that the tail has use for: what encoding all of the destination with it gives. */
static size_t tail_most(const lade_item *item, const lade_spec *tail)
{
	size_t most = lade__item_bytes(item, LADE_DECODE);
	if (item->range_off || item->range_size)
		return SIZE_MAX;
	for (size_t i = 0; i < tail->count && most != SIZE_MAX; i++)
		most = tail->stage[i].algorithm->bound(&tail->stage[i], most);
	return most;
}

/* The joined bytes of the segments, by what they state. */
static lade_status joined_size(const lade__decoder *d, const lade_item *item, size_t *total,
                               lade_error *err)
{
	*total = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		uint64_t said = item->src[i].decoded_size;
		lade_status status = LADE_OK;
		if (said == 0)
			status = lade__spec_decoded_size(d->pipe.route->spec, item->src[i].data,
			                                 item->src[i].size, &said, err);
		if (status != LADE_OK)
			return status;
		if (said > LADE__GROW_MAX - *total && !item->src[i].decoded_size)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "segment %zu says that it decodes to %llu bytes", i,
			                 (unsigned long long)said);
		if (said > SIZE_MAX / 4 - *total)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "the segments' decoded sizes overflow");
		*total += (size_t)said;
	}
	return LADE_OK;
}

/* Checks the outputs before the segments are decoded; '*none': all are boxes without elements. */
static lade_status check_placed(const lade__pipe *pipe, const lade_item *item, bool *none,
                                lade_error *err)
{
	lade__decoder d = {.pipe = *pipe};
	lade__outlet own, *outlets;
	size_t plain;
	lade_status status = make_outlets(&d, item, &own, &outlets, &plain, err);
	*none = status == LADE_OK && plain == SIZE_MAX && outlets_size(&d) == 0;
	return status;
}

lade_status lade__item_decode_tail(const lade__pipe *pipe, const lade__route *tail,
                                   const lade_item *item, size_t *size, lade_error *err)
{
	const lade__pipe after = {pipe->worker, tail, pipe->options};
	lade__decoder d = {.pipe = *pipe};
	lade_item head = {.src = item->src, .src_count = item->src_count}, rest = *item;
	size_t most = tail_most(item, tail->spec), room = 0;
	lade_status status = LADE_OK;
	bool none = false;
	*size = 0;
	if (lade__item_is_placed(item))
		status = check_placed(pipe, item, &none, err);
	if (status != LADE_OK || none)
		return status;
	status = joined_size(&d, item, &room, err);
	if (status == LADE_E_UNKNOWN_SIZE) {
		room = most < LADE__GROW_MAX ? most : LADE__GROW_MAX;
		status = LADE_OK;
	}
	if (status != LADE_OK)
		return status;
	if (room > most)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the segments join to %zu bytes, the tail has use for %zu", room,
		                 most);
	void *block = lade__worker_block(pipe->worker, LADE__SCRATCH_JOIN, room);
	if (!block && room)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu joined bytes", room);
	head.dst = lade_host_span(block, room);
	size_t joined = 0;
	status = decode_plain(&d, &head, &joined, err);
	if (status != LADE_OK)
		return status;
	lade_segment segment = {.data = block, .size = joined};
	rest.src = &segment;
	rest.src_count = 1;
	rest.tail = NULL;
	return lade__item_decode(&after, &rest, size, err);
}

lade_status lade__item_decode(const lade__pipe *pipe, const lade_item *item, size_t *size,
                              lade_error *err)
{
	lade__decoder d = {.pipe = *pipe};
	*size = 0;
	if (lade__item_is_placed(item))
		return decode_placed(&d, item, size, err);
	if (item->range_off || item->range_size)
		return decode_windowed(&d, item, size, err);
	return decode_plain(&d, item, size, err);
}
