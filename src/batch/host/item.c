/*
 * item.c: checks one item and what the two directions share.  Decoding is in decode.c,
 * encoding in encode.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/item.h"

#include "base/options.h"
#include "engine/spec.h"

#include <string.h>

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

lade_status lade__pipe_run(const lade__pipe *pipe, size_t stage, lade_run *run, lade_error *err)
{
	const lade_engine *engine = pipe->worker->engine;
	size_t index = pipe->route->entry[stage];
	const lade_implementation *p = &engine->registry.entries[index].record;
	*run = (lade_run){.stage = &pipe->route->spec->stage[stage],
	                  .ctx = p->ctx,
	                  .worker = pipe->worker,
	                  .dict = pipe->options->dict,
	                  .cpu = engine->cpu};
	return lade__worker_state(pipe->worker, p, index, engine->registry.entry_count,
	                          &run->state, err);
}

void lade__sink_write(const lade__sink *sink, size_t off, const void *src, size_t size)
{
	const uint8_t *from = src;
	off += sink->base;
	if (off < sink->off) {
		size_t skip = sink->off - off;
		if (skip >= size)
			return;
		from += skip;
		size -= skip;
		off = sink->off;
	}
	size_t at = off - sink->off;
	if (at >= sink->size)
		return;
	if (size > sink->size - at)
		size = sink->size - at;
	for (size_t i = 0; i < sink->outlet_count; i++)
		lade__plan_scatter(&sink->outlet[i].plan, sink->cpu, off, from, size,
		                   sink->outlet[i].span);
	if (sink->outlet_count)
		return;
	memcpy(sink->data + at, from, size);
}

bool lade__sink_streams(const lade__sink *sink, size_t piece)
{
	for (size_t i = 0; i < sink->outlet_count; i++)
		if (!lade__plan_streams(&sink->outlet[i].plan, piece))
			return false;
	return true;
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

/* ---- one chunk in host memory -------------------------------------------------------------- */

lade_status lade__pipe_decode(const lade__pipe *pipe, lade_cspan src, lade_span dst,
                              size_t *dst_size, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};
	return lade__item_decode(pipe, &item, dst_size, err);
}

lade_status lade__pipe_encode(const lade__pipe *pipe, lade_cspan src, lade_span dst,
                              size_t *dst_size, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};
	return lade__item_encode(pipe, &item, dst_size, err);
}
