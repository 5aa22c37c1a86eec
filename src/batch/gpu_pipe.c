/*
 * gpu_pipe.c: a route's stages on a device, one behind the other, over tables in device memory.
 *
 * Between two stages stand results of the one that are sources of the other: a slot of equal size
 * for each item.  Two such buffers, used in turn, serve any number of stages.  An item that fails
 * in one stage is left alone by those behind it.
 *
 *     workspace:  | what the stages want | status[] | 2 x ( address[] | cap[] | size[] | slots ) |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu.h"
#include "batch/spec.h"

#define SLOTS_THREADS 256u

static const lade__gpu_codec *codec_at(const lade_engine *engine, const lade__route *route,
                                       size_t stage)
{
	return lade__route_at(engine, route, stage)->ctx;
}

/* The stage that runs as the 'step'-th. */
static size_t stage_of(const lade__route *route, size_t step)
{
	return route->direction == LADE_ENCODE ? step : route->spec->count - 1 - step;
}

/* The most bytes that stand between the stages: what encoding 'largest' bytes can give anywhere. */
static uint64_t slot_size(const lade__route *route, uint64_t largest)
{
	uint64_t size = largest, most = 0;
	for (size_t i = 0; i + 1 < route->spec->count; i++) {
		const lade_stage *stage = &route->spec->stage[i];
		size_t next = size > SIZE_MAX / 4 ? SIZE_MAX
		                                  : stage->algorithm->bound(stage, (size_t)size);
		if (next == SIZE_MAX)
			return UINT64_MAX;
		size = next;
		most = size > most ? size : most;
	}
	return lade__gpu_round((size_t)most);
}

bool lade__gpu_pipe_is_plain(const lade__route *route)
{
	for (size_t i = 0; i + 1 < route->spec->count; i++) {
		const lade_stage *stage = &route->spec->stage[i];
		if (!(stage->algorithm->flags & LADE_ALGORITHM_FIXED_SIZE) ||
		    stage->algorithm->bound(stage, 1000) != 1000)
			return false;
	}
	return true;
}

typedef struct layout {
	size_t stages; /* bytes of the stages' own workspace */
	size_t status, address[2], cap[2], size[2], slots[2];
	size_t end; /* SIZE_MAX: too large */
	uint64_t slot;
} layout;

/* The next 'count' entries of 'size' bytes; l->end becomes SIZE_MAX when they are too many. */
static size_t take(layout *l, size_t count, uint64_t size)
{
	size_t at = l->end;
	if (at == SIZE_MAX || (size && count > (SIZE_MAX / 4 - at) / size)) {
		l->end = SIZE_MAX;
		return 0;
	}
	l->end = lade__gpu_round(at + count * (size_t)size);
	return at;
}

static layout lay_out(const lade_engine *engine, const lade__route *route, size_t count,
                      uint64_t largest, uint64_t total)
{
	layout l = {0};
	size_t stages = route->spec->count, buffers = stages > 2 ? 2 : stages - 1;
	if (stages > 1 && largest == 0)
		return (layout){.end = SIZE_MAX};
	l.slot = stages > 1 ? slot_size(route, largest) : 0;
	for (size_t i = 0; i < stages; i++) {
		uint64_t each = stages > 1 ? l.slot : largest;
		uint64_t all = stages > 1 && each && count > UINT64_MAX / each ? UINT64_MAX
		               : stages > 1                                    ? count * each
		                                                               : total;
		size_t want = codec_at(engine, route, i)
		                      ->workspace(&route->spec->stage[i], count, each, all);
		if (want > l.stages)
			l.stages = want;
	}
	if (l.stages == SIZE_MAX || l.slot == UINT64_MAX)
		return (layout){.end = SIZE_MAX};
	l.stages = lade__gpu_round(l.stages);
	l.end = l.stages;
	if (stages == 1)
		return l;
	l.status = take(&l, count, 4);
	for (size_t k = 0; k < buffers; k++) {
		l.address[k] = take(&l, count, 8);
		l.cap[k] = take(&l, count, 8);
		l.size[k] = take(&l, count, 8);
		l.slots[k] = take(&l, count, l.slot);
	}
	return l;
}

size_t lade__gpu_pipe_workspace(const lade_engine *engine, const lade__route *route, size_t count,
                                uint64_t largest, uint64_t total)
{
	return lay_out(engine, route, count, largest, total).end;
}

/* Makes the tables of a buffer. */
static lade_status make_slots(lade__device *device, lade_stream stream, const layout *l, size_t k,
                              lade__address base, lade__address limit, size_t count,
                              lade_error *err)
{
	lade__address address = base + l->address[k], cap = base + l->cap[k];
	uint64_t slots = base + l->slots[k], stride = l->slot;
	uint32_t n = (uint32_t)count;
	void *arguments[] = {&address, &cap, &slots, &stride, &limit, &n};
	lade__launch launch = {.blocks = (n + SLOTS_THREADS - 1) / SLOTS_THREADS,
	                       .threads = SLOTS_THREADS,
	                       .stream = stream};
	return lade__kernel_launch(device, LADE__KERNEL_SLOTS, &launch, arguments, err);
}

lade_status lade__gpu_pipe_enqueue(const lade_engine *engine, const lade__route *route,
                                   lade__device *device, lade_stream stream,
                                   const lade__gpu_tables *t, lade__address workspace,
                                   lade_error *err)
{
	layout l = lay_out(engine, route, t->count, t->largest, t->total);
	size_t stages = route->spec->count;
	/* An item's slot then has just the room that its destination has, and the verdict of the
	 * codec is the host's. */
	bool plain = route->direction == LADE_DECODE && lade__gpu_pipe_is_plain(route);
	lade__address limit = plain ? t->dst_cap : 0;
	lade_status status = LADE_OK;
	if (t->count == 0)
		return LADE_OK;
	if (t->count > INT32_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%zu items, a batch on a device has 2147483647 at most", t->count);
	if (l.end == SIZE_MAX)
		return lade_fail(err, t->largest ? LADE_E_LIMIT : LADE_E_ARG, LADE_NO_OFFSET,
		                 "%zu items of up to %llu bytes: %s", t->count,
		                 (unsigned long long)t->largest,
		                 t->largest ? "the workspace would be too large"
		                            : "a spec of several stages needs the largest size");
	lade__gpu_work work = {.device = device,
	                       .stream = stream,
	                       .src = t->src,
	                       .src_size = t->src_size,
	                       .count = t->count,
	                       .in_flight = t->in_flight,
	                       .largest = stages > 1 ? l.slot : t->largest,
	                       .total = stages > 1 ? 0 : t->total,
	                       .workspace = workspace,
	                       .workspace_size = l.stages};
	for (size_t step = 0; step < stages; step++) {
		size_t at = stage_of(route, step), k = step % 2;
		bool last = step + 1 == stages;
		if (!last)
			TRY(make_slots(device, stream, &l, k, workspace,
			               limit, t->count, err));
		work.stage = &route->spec->stage[at];
		work.dst = last ? t->dst : workspace + l.address[k];
		work.dst_cap = last ? t->dst_cap : workspace + l.cap[k];
		work.dst_size = last ? t->dst_size : workspace + l.size[k];
		work.status = last && t->status ? t->status : stages > 1 ? workspace + l.status : 0;
		TRY(codec_at(engine, route, at)->enqueue(&work, err));
		work.before = work.status;
		work.src = work.dst;
		work.src_size = work.dst_size;
	}
out:
	return status;
}
