/*
 * gpu_run.c: runs units on a device, wave by wave, and waits for the results.
 *
 * Four waves are in flight, each on a stream of its own, so that the copies of one overlap the
 * kernels of another; the host gathers and spreads pageable bytes meanwhile.
 *
 *     host:    gather 1 | gather 2 | ... | spread 1 | ...
 *     stream:  copy in -> kernels -> copy out -> results
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
#define WAVE_IN ((size_t)16 << 20)
#define WAVE_OUT ((size_t)48 << 20)
#define WAVE_LEAST ((size_t)1 << 20)
#define WAVE_UNITS ((size_t)1 << 20)

/* Pageable bytes are gathered by threads in pieces of at least this. */
#define GATHER_GRAIN ((size_t)1 << 20)

typedef struct run {
	lade_engine *engine;
	const lade__route *route;
	lade__device *device;
	lade__gpu_lane *lane;
	const lade__gpu_unit *units;
	size_t count, next; /* units, and those that are in waves already */
	size_t in_most, out_most;
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

/* Units by blocks of about equal bytes, for threads: block b has the units whose staged place
 * begins in it. */
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

static void spread_block(void *ctx, size_t block, lade_worker *worker)
{
	const spread *s = ctx;
	size_t in = 0, out = 0;
	(void)worker;
	for (size_t i = 0; i < s->wave->count; i++) {
		const lade__gpu_unit *u = &s->wave->units[i];
		size_t at = s->out ? out : in;
		if (at / s->grain > block)
			return;
		if (at / s->grain == block && !s->out && u->pageable)
			memcpy(s->parts->in + in, u->src, u->src_size);
		if (at / s->grain == block && s->out && u->to_host &&
		    s->parts->status[i] == LADE_OK)
			spread_out(u, s->parts->out + out, s->parts->size[i]);
		lade__gpu_wave_next(u, &in, &out);
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

/* Copies what the host has gathered to the block: a run of it ends where the device itself copies
 * a source. */
static lade_status send_gathered(run *r, const lade__gpu_wave *w, const parts *p, lade_stream stream,
                                 lade__address base, lade_error *err)
{
	size_t in = 0, out = 0, begin = 0, end = 0;
	lade_status status = LADE_OK;
	for (size_t i = 0; i <= w->count && status == LADE_OK; i++) {
		bool mine = i < w->count && w->units[i].pageable;
		if (end > begin && (i == w->count || (mine && in != end))) {
			status = LADE__CU(r->device, cuMemcpyHtoDAsync, base + w->in_off + begin,
			                  p->in + begin, end - begin, stream);
			begin = end;
		}
		if (i == w->count)
			break;
		if (mine && in != end)
			begin = in;
		lade__gpu_wave_next(&w->units[i], &in, &out);
		if (mine)
			end = in;
	}
	return status;
}

/* ---- one wave ----------------------------------------------------------------------------- */

/* The units of the next wave, from r->next on. */
static size_t wave_count(const run *r)
{
	size_t in = 0, out = 0, n = 0;
	while (r->next + n < r->count && n < WAVE_UNITS) {
		lade__gpu_wave_next(&r->units[r->next + n], &in, &out);
		if (n && (in > r->in_most || out > r->out_most))
			break;
		n++;
	}
	return n;
}

static lade_status wave_launch(run *r, unsigned k, lade_error *err)
{
	lade__gpu_wave *w = &r->wave[k];
	lade__gpu_slot *slot = &r->lane->slot[k];
	lade_stream stream = slot->stream;
	lade__address base = 0;
	lade_status status;

	TRY(lade__gpu_wave_plan(r->engine, r->route, r->units + r->next, wave_count(r), w, err));
	TRY(lade__gpu_slot_pinned(r->engine, r->lane, k, pinned_size(w), err));
	parts p = parts_of(w, slot->pinned.data);
	TRY(lade__gpu_alloc(r->engine, r->device, stream, w->size, &base, err));
	lade__gpu_wave_fill(w, base, p.out, p.tables);
	TRY(spread_all(r, w, &p, false, err));
	TRY(LADE__CU(r->device, cuMemcpyHtoDAsync, base, p.tables, w->tables_size, stream));
	TRY(send_gathered(r, w, &p, stream, base, err));
	TRY(lade__gpu_wave_enqueue(r->engine, r->route, r->device, stream, w, base, 0, 0, err));
	TRY(LADE__CU(r->device, cuMemcpyDtoHAsync, (void *)(uintptr_t)p.size,
	             base + w->result_off, w->result_size, stream));
	TRY(LADE__CU(r->device, cuEventRecord, slot->event, stream));
	r->next += w->count;
out:
	lade__gpu_free(r->engine, r->device, stream, base, w->size);
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

static size_t wave_size(size_t total, size_t most)
{
	size_t size = total / LADE__GPU_SLOTS;
	return size > most ? most : size < WAVE_LEAST ? WAVE_LEAST : size;
}

lade_status lade__gpu_run(lade_engine *engine, const lade__route *route, lade__device *device,
                          lade_stream stream, const lade__gpu_unit *units, size_t count,
                          lade__gpu_done *done, lade_error *err)
{
	run r = {.engine = engine, .route = route, .device = device, .units = units,
	         .count = count, .done = done};
	size_t in = 0, out = 0;
	lade_status status;
	for (size_t i = 0; i < count; i++)
		lade__gpu_wave_next(&units[i], &in, &out);
	r.in_most = wave_size(in, WAVE_IN);
	r.out_most = wave_size(out, WAVE_OUT);
	TRY(lade__gpu_lane_take(engine, device, &r.lane, err));
	TRY(lade__gpu_lane_follow(device, r.lane, stream, err));
	unsigned k = 0;
	for (; r.next < count; k = (k + 1) % LADE__GPU_SLOTS) {
		TRY(wave_retire(&r, k, err));
		TRY(wave_launch(&r, k, err));
	}
	for (unsigned i = 0; i < LADE__GPU_SLOTS; i++)
		TRY(wave_retire(&r, (k + i) % LADE__GPU_SLOTS, err));
out:
	if (r.lane) {
		/* Nothing may still use the slots' memory or the caller's. */
		for (int i = 0; status != LADE_OK && i < LADE__GPU_SLOTS; i++)
			device->driver->cuStreamSynchronize(r.lane->slot[i].stream);
		lade__gpu_lane_give(engine, r.lane);
	}
	return status;
}
