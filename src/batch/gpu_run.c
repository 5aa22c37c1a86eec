/*
 * gpu_run.c: runs units on a device, wave by wave, and waits for the results.
 *
 * Several waves are in flight, each on streams of its own, so that the copies of one overlap the
 * kernels of another; the host gathers and spreads pageable bytes meanwhile.
 *
 *     host:            gather 1 | gather 2 | ... | spread 1 | ...
 *     copies' stream:  copy in                copy out, results
 *     stream:                    -> kernels ->
 *
 * A slot's pinned memory:  | tables | results | pageable sources | pageable results |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu.h"

#include <string.h>

/* A wave brings at most about so many bytes in and out; small totals make smaller waves, so that
 * there are some to overlap.  A unit is never cut. */
#define WAVE_IN ((size_t)8 << 20)
#define WAVE_OUT ((size_t)24 << 20)
#define WAVE_LEAST ((size_t)1 << 20)
#define WAVE_UNITS ((size_t)1 << 20)

/* Waves in flight where pinned memory has to be had for each. */
#define SLOTS_PAGEABLE 4u

/* Pageable bytes are gathered by threads in pieces of at least this. */
#define GATHER_GRAIN ((size_t)1 << 20)

typedef struct run {
	lade_engine *engine;
	const lade__route *route;
	lade__device *device;
	lade__gpu_lane *lane;
	lade__gpu_unit *units;
	size_t count, next; /* units, and those that are in waves already */
	size_t in_most, out_most;
	unsigned slots;
	lade__gpu_done *done;
	lade__gpu_wave wave[LADE__GPU_SLOTS]; /* count 0: none in flight */
} run;

/* ---- pinned memory of a slot ------------------------------------------------------------- */

typedef struct parts {
	uint8_t *tables, *in, *out;
	const uint64_t *size;
	const uint32_t *status;
} parts;

static bool any_pageable(const lade__gpu_wave *w, bool out)
{
	for (size_t i = 0; i < w->count; i++)
		if (out ? w->units[i].to_host : w->units[i].pageable)
			return true;
	return false;
}

static size_t pinned_size(const lade__gpu_wave *w)
{
	return w->in_off + (any_pageable(w, false) ? lade__gpu_round(w->in_size) : 0) +
	       (any_pageable(w, true) ? w->out_size : 0);
}

static parts parts_of(const lade__gpu_wave *w, void *pinned)
{
	uint8_t *at = pinned;
	return (parts){.tables = at, .size = (uint64_t *)(at + w->result_off),
	               .status = (uint32_t *)(at + w->result_off + 8 * w->count),
	               .in = at + w->in_off,
	               .out = at + w->in_off +
	                      (any_pageable(w, false) ? lade__gpu_round(w->in_size) : 0)};
}

/* ---- pageable bytes ----------------------------------------------------------------------- */

/* A wave's units by blocks of about equal bytes, for threads: block b has the units whose staged
 * place begins in it. */
typedef struct spread {
	const lade__gpu_wave *wave;
	const parts *parts;
	bool out;
	size_t grain;
} spread;

static void spread_out(const lade__gpu_unit *u, const uint8_t *from, uint64_t size)
{
	size_t n = size > u->skip ? (size_t)size - u->skip : 0;
	if (n > u->size)
		n = u->size;
	lade__sink sink = {.data = u->to, .row_size = u->row ? u->row : 1,
	                   .pitch = u->pitch ? u->pitch : 1, .size = SIZE_MAX};
	if (n)
		lade__sink_write(&sink, u->at, from, n);
}

/* The first unit whose place is not before 'at'; places grow. */
static size_t first_at(const spread *s, size_t at)
{
	size_t low = 0, high = s->wave->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const lade__gpu_unit *u = &s->wave->units[middle];
		if ((s->out ? u->out_at : u->in_at) < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void spread_block(void *ctx, size_t block, lade_worker *worker)
{
	const spread *s = ctx;
	size_t end = first_at(s, (block + 1) * s->grain);
	(void)worker;
	for (size_t i = first_at(s, block * s->grain); i < end; i++) {
		const lade__gpu_unit *u = &s->wave->units[i];
		if (!s->out && u->pageable)
			memcpy(s->parts->in + u->in_at, u->src, u->src_size);
		if (s->out && u->to_host && s->parts->status[i] == LADE_OK)
			spread_out(u, s->parts->out + u->out_at, s->parts->size[i]);
	}
}

static lade_status spread_all(run *r, const lade__gpu_wave *w, const parts *p, bool out,
                              lade_error *err)
{
	size_t total = out ? w->out_size : w->in_size;
	spread s = {w, p, out, GATHER_GRAIN};
	if (!any_pageable(w, out))
		return LADE_OK;
	return lade__engine_parallel(r->engine, 0, total / s.grain + 1, 1, NULL, spread_block, &s,
	                             err);
}

/* Copies what the host has gathered to the block, run by run of pageable units. */
static lade_status send_gathered(run *r, const lade__gpu_wave *w, const parts *p, lade_stream stream,
                                 lade__address base, lade_error *err)
{
	lade_status status = LADE_OK;
	for (size_t i = 0; i < w->count && status == LADE_OK;) {
		const lade__gpu_unit *first = &w->units[i], *last = first;
		if (!first->pageable) {
			i++;
			continue;
		}
		/* What is not staged takes no place between them. */
		for (; i < w->count && (w->units[i].pageable || !w->units[i].stage_in); i++)
			if (w->units[i].pageable)
				last = &w->units[i];
		status = LADE__CU(r->device, cuMemcpyHtoDAsync, base + w->in_off + first->in_at,
		                  p->in + first->in_at,
		                  last->in_at + last->src_size - first->in_at, stream);
	}
	return status;
}

/* ---- one wave ----------------------------------------------------------------------------- */

static lade_status wave_launch(run *r, unsigned k, lade_error *err)
{
	lade__gpu_wave *w = &r->wave[k];
	lade__gpu_slot *slot = &r->lane->slot[k];
	lade__address base = 0;
	lade_status status;
	size_t left = r->count - r->next;

	TRY(lade__gpu_wave_plan(r->engine, r->route, r->units + r->next,
	                        left < WAVE_UNITS ? left : WAVE_UNITS, r->in_most, r->out_most, w,
	                        err));
	TRY(lade__gpu_slot_pinned(r->engine, r->lane, k, pinned_size(w), err));
	parts p = parts_of(w, slot->pinned.data);
	TRY(lade__gpu_alloc(r->engine, r->device, slot->copies, w->size, &base, err));
	lade__gpu_wave_fill(w, base, p.out, p.tables);
	TRY(spread_all(r, w, &p, false, err));
	TRY(LADE__CU(r->device, cuMemcpyHtoDAsync, base, p.tables, w->tables_size, slot->copies));
	TRY(send_gathered(r, w, &p, slot->copies, base, err));
	TRY(lade__gpu_wave_in(r->device, slot->copies, w, base, err));
	TRY(LADE__CU(r->device, cuEventRecord, slot->copied, slot->copies));
	TRY(LADE__CU(r->device, cuStreamWaitEvent, slot->stream, slot->copied, 0));
	TRY(lade__gpu_wave_stages(r->engine, r->route, r->device, slot->stream, w, base, 0, 0,
	                          r->count - w->count, err));
	TRY(LADE__CU(r->device, cuEventRecord, slot->copied, slot->stream));
	TRY(LADE__CU(r->device, cuStreamWaitEvent, slot->copies, slot->copied, 0));
	TRY(lade__gpu_wave_out(r->device, slot->copies, w, base, 0, 0, err));
	TRY(LADE__CU(r->device, cuMemcpyDtoHAsync, (void *)(uintptr_t)p.size,
	             base + w->result_off, w->result_size, slot->copies));
	TRY(LADE__CU(r->device, cuEventRecord, slot->event, slot->copies));
	r->next += w->count;
out:
	/* After a failure the stages may run yet. */
	if (status != LADE_OK && base)
		r->device->driver->cuStreamSynchronize(slot->stream);
	lade__gpu_free(r->engine, r->device, slot->copies, base, w->size);
	if (status != LADE_OK)
		w->count = 0;
	return status;
}

/* Adds what became of a unit to its item. */
static void unit_done(run *r, const lade__gpu_unit *u, uint32_t status, uint64_t size)
{
	lade__gpu_done *done = &r->done[u->item];
	if (done->status != LADE_OK)
		return;
	if (status == LADE_OK && u->wanted && size != u->wanted)
		status = LADE_E_CORRUPT;
	done->status = (lade_status)status;
	size_t n = size > u->skip ? (size_t)size - u->skip : 0;
	if (u->stage_out && n > u->size)
		n = u->size;
	done->size = status == LADE_OK ? done->size + n : 0;
}

static lade_status wave_retire(run *r, unsigned k, lade_error *err)
{
	lade__gpu_wave *w = &r->wave[k];
	lade__gpu_slot *slot = &r->lane->slot[k];
	lade_status status = LADE_OK;
	if (w->count == 0)
		return LADE_OK;
	TRY(LADE__CU(r->device, cuEventSynchronize, slot->event));
	parts p = parts_of(w, slot->pinned.data);
	TRY(spread_all(r, w, &p, true, err));
	for (size_t i = 0; i < w->count; i++)
		unit_done(r, &w->units[i], p.status[i], p.size[i]);
out:
	w->count = 0;
	return status;
}

/* ---- all ----------------------------------------------------------------------------------- */

static size_t wave_size(size_t total, size_t most, unsigned slots)
{
	size_t size = total / slots;
	return size > most ? most : size < WAVE_LEAST ? WAVE_LEAST : size;
}

/* How large waves are, and how many in flight. */
static void measure(run *r)
{
	size_t in = 0, out = 0;
	r->slots = LADE__GPU_SLOTS;
	for (size_t i = 0; i < r->count; i++) {
		const lade__gpu_unit *u = &r->units[i];
		/* Beyond a wave's most the sums do not matter: no overflow. */
		if (u->stage_in && in < SIZE_MAX / 2)
			in += u->src_size < SIZE_MAX / 4 ? u->src_size : SIZE_MAX / 4;
		if (u->stage_out && out < SIZE_MAX / 2)
			out += u->cap < SIZE_MAX / 4 ? u->cap : SIZE_MAX / 4;
		if (u->pageable || u->to_host)
			r->slots = SLOTS_PAGEABLE;
	}
	r->in_most = wave_size(in, WAVE_IN, r->slots);
	r->out_most = wave_size(out, WAVE_OUT, r->slots);
	/* No more slots than there can be waves. */
	size_t waves = in / r->in_most + out / r->out_most + r->count / WAVE_UNITS + 1;
	if (waves < r->slots)
		r->slots = (unsigned)waves;
}

lade_status lade__gpu_run(lade_engine *engine, const lade__route *route, lade__device *device,
                          lade_stream stream, lade__gpu_unit *units, size_t count,
                          lade__gpu_done *done, lade_error *err)
{
	run r = {.engine = engine, .route = route, .device = device, .units = units,
	         .count = count, .done = done};
	lade_status status;
	measure(&r);
	TRY(lade__gpu_lane_take(engine, device, &r.lane, err));
	TRY(lade__gpu_lane_follow(device, r.lane, r.slots, stream, err));
	unsigned k = 0;
	for (; r.next < count; k = (k + 1) % r.slots) {
		TRY(wave_retire(&r, k, err));
		TRY(wave_launch(&r, k, err));
	}
	for (unsigned i = 0; i < r.slots; i++)
		TRY(wave_retire(&r, (k + i) % r.slots, err));
out:
	if (r.lane) {
		/* Nothing may still use the slots' memory or the caller's. */
		if (status != LADE_OK)
			lade__gpu_lane_wait(device, r.lane);
		lade__gpu_lane_give(engine, r.lane);
	}
	return status;
}
