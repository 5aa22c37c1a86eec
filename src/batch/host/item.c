/*
 * item.c: what decoding (decode.c) and encoding (encode.c) an item share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/item.h"

#include "engine/spec.h"

#include <string.h>

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
