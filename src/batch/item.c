/*
 * item.c: checks one item and what the two directions share.  Decoding is in decode.c,
 * encoding in encode.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/engine.h"
#include "batch/spec.h"

#include <string.h>

static bool has_rows(const lade_item *item)
{
	return item->row_size != 0 || item->row_pitch != 0;
}

static lade_status check_rows(const lade_item *item, lade_direction direction, lade_error *err)
{
	if (item->row_size == 0 || item->row_pitch < item->row_size)
		return lade_fail(
			err, LADE_E_ARG, LADE_NO_OFFSET,
			"rows of %zu bytes at a pitch of %zu: want 0 < row_size <= row_pitch",
			item->row_size, item->row_pitch);
	if (direction == LADE_ENCODE && item->src_count != 1)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "a source of rows is one segment, here are %zu", item->src_count);
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
	if (!item->dst.data && item->dst.size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the destination is NULL and has %zu bytes", item->dst.size);
	if ((unsigned)item->dst.place.kind >= LADE_KIND_COUNT)
		return bad_kind(item->dst.place, "the destination", err);
	lade_status status = LADE_OK;
	if (has_rows(item))
		status = check_rows(item, direction, err);
	if (status == LADE_OK && direction == LADE_ENCODE && (item->range_off || item->range_size))
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "a range is for decoding only");
	return status;
}

lade_status lade__pipe_run(const lade__pipe *pipe, size_t stage, lade_run *run, lade_error *err)
{
	const lade_engine *engine = pipe->worker->engine;
	size_t index = pipe->route->entry[stage];
	*run = (lade_run){.stage = &pipe->route->spec->stage[stage],
	                  .ctx = engine->registry.entries[index].record.ctx,
	                  .worker = pipe->worker,
	                  .dict = pipe->options->dict,
	                  .cpu = engine->cpu};
	return lade__worker_state(pipe->worker, index, &run->state, err);
}

size_t lade__rows_bytes(size_t extent, size_t row_size, size_t pitch)
{
	/* Whole rows, then what a last row has before the extent ends. */
	size_t rows = extent / pitch, rest = extent % pitch;
	return rows * row_size + (rest < row_size ? rest : row_size);
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
	if (sink->row_size == sink->pitch) {
		memcpy(sink->data + at, from, size);
		return;
	}
	size_t row = at / sink->row_size, column = at % sink->row_size;
	while (size) {
		size_t n = sink->row_size - column < size ? sink->row_size - column : size;
		memcpy(sink->data + row * sink->pitch + column, from, n);
		from += n;
		size -= n;
		column = 0;
		row++;
	}
}

/* ---- one chunk in host memory -------------------------------------------------------------- */

lade_status lade__worker_decode(lade_worker *worker, const lade__route *route,
                                const lade__job_options *options, const void *src,
                                size_t src_size, void *dst, size_t dst_cap, size_t *dst_size,
                                lade_error *err)
{
	lade_segment segment = {.data = src, .size = src_size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(dst, dst_cap)};
	return lade__item_decode(worker, route, &item, options, dst_size, err);
}

lade_status lade__worker_encode(lade_worker *worker, const lade__route *route,
                                const lade__job_options *options, const void *src,
                                size_t src_size, void *dst, size_t dst_cap, size_t *dst_size,
                                lade_error *err)
{
	lade_segment segment = {.data = src, .size = src_size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(dst, dst_cap)};
	return lade__item_encode(worker, route, &item, options, dst_size, err);
}
