/*
 * gpu_run.c: runs units on a device, wave by wave, and waits for the results.
 *
 * Several waves are in flight, so that the copies of one overlap the kernels of others; the host
 * gathers and spreads pageable bytes meanwhile.
 *
 *     host:      gather 1 | gather 2 | ...            | spread 1 | ...
 *     in:                 | copy 1   | copy 2 | ...
 *     kernels:                       | wave 1   |           (wave 2 on another stream)
 *     out:                                      | sizes 1 | ... | copy 1 | ...
 *
 * When the sizes of a wave are told, the host knows whether its results are as long as they can be;
 * then those that stand in a row go out by one copy of the driver, else a kernel copies just what
 * there is.
 *
 * A slot's pinned memory:  | tables | results | pageable sources | pageable results |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu.h"

#include <stdlib.h>
#include <string.h>

/* A wave brings at most about so many bytes in and out; small totals make smaller waves, so that
 * there are some to overlap, and large units larger ones, since few of them do not fill a device. A
 * unit is never cut. */
#define WAVE_IN ((size_t)8 << 20)
#define WAVE_OUT ((size_t)24 << 20)
#define WAVE_LEAST ((size_t)1 << 20)
#define WAVE_UNITS ((size_t)1 << 20)
#define WAVE_FEW 48u

/* Of a device's memory all waves in flight take no more than this part, if units allow it. */
#define MEMORY_SHIFT 3

/* Waves in flight where pinned memory has to be had for each. */
#define SLOTS_PAGEABLE 4u

/* Waves whose kernels run at the same time, about: what a wave's kernels are chosen for. */
#define ABREAST LADE__GPU_STREAMS

/* More runs of results than these are a kernel's to copy. */
#define RUNS_MOST 32u

/* Pageable bytes are gathered by threads in pieces of at least this. */
#define GATHER_GRAIN ((size_t)1 << 20)

typedef struct run {
	lade_engine *engine;
	const lade__route *route;
	lade__device *device;
	lade__gpu_lane *lane;
	lade__gpu_unit *units;
	size_t count;
	lade__gpu_done *done;
	lade__gpu_wave *waves;
	size_t wave_count, wave_cap;
	lade__gpu_most most; /* of a wave */
	unsigned slots, threads;
	lade__address block; /* device memory of all slots */
	size_t slot_size;
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
	return (parts){.tables = at,
	               .size = (uint64_t *)(at + w->result_off),
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
	lade__sink sink = {.data = u->to,
	                   .row_size = u->row ? u->row : 1,
	                   .pitch = u->pitch ? u->pitch : 1,
	                   .size = SIZE_MAX};
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
	return lade__engine_parallel(r->engine, r->threads, total / s.grain + 1, 1, NULL,
	                             spread_block, &s, err);
}

/* Copies what the host has gathered to the block, run by run of pageable units. */
static lade_status send_gathered(run *r, const lade__gpu_wave *w, const parts *p,
                                 lade_stream stream, lade__address base, lade_error *err)
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
		                  p->in + first->in_at, last->in_at + last->src_size - first->in_at,
		                  stream);
	}
	return status;
}

/* ---- one wave ----------------------------------------------------------------------------- */

/* The units that the device has beside those of a wave, as far as they have come by then. */
static size_t abreast(const run *r, size_t index)
{
	size_t units = 0;
	for (size_t i = index + 1; i < r->wave_count && i < index + ABREAST; i++)
		units += r->waves[i].count;
	return units;
}

static lade_status wave_launch(run *r, size_t index, lade_error *err)
{
	const lade__gpu_wave *w = &r->waves[index];
	unsigned k = (unsigned)(index % r->slots);
	lade__gpu_slot *slot = &r->lane->slot[k];
	lade_stream in = r->lane->in, out = r->lane->out;
	lade_stream kernels = r->lane->kernels[index % LADE__GPU_STREAMS];
	lade__address base = r->block + k * r->slot_size;
	lade_status status;

	TRY(lade__gpu_slot_pinned(r->engine, r->lane, k, pinned_size(w), err));
	parts p = parts_of(w, slot->pinned.data);
	lade__gpu_wave_fill(w, base, p.out, p.tables);
	TRY(spread_all(r, w, &p, false, err));
	TRY(LADE__CU(r->device, cuMemcpyHtoDAsync, base, p.tables, w->tables_size, in));
	TRY(send_gathered(r, w, &p, in, base, err));
	TRY(lade__gpu_wave_in(r->device, in, w, base, err));
	TRY(LADE__CU(r->device, cuEventRecord, slot->copied, in));
	TRY(LADE__CU(r->device, cuStreamWaitEvent, kernels, slot->copied, 0));
	TRY(lade__gpu_wave_stages(r->engine, r->route, r->device, kernels, w, base, 0, 0,
	                          abreast(r, index), err));
	TRY(LADE__CU(r->device, cuEventRecord, slot->made, kernels));
	TRY(LADE__CU(r->device, cuStreamWaitEvent, out, slot->made, 0));
	TRY(LADE__CU(r->device, cuMemcpyDtoHAsync, (void *)(uintptr_t)p.size, base + w->result_off,
	             w->result_size, out));
	TRY(LADE__CU(r->device, cuEventRecord, slot->told, out));
out:
	return status;
}

/* ---- results ------------------------------------------------------------------------------ */

/* Where a unit's result goes to: in pinned memory. */
static uint8_t *target(const lade__gpu_unit *u, const parts *p)
{
	return u->to_host ? p->out + u->out_at : (uint8_t *)u->to + u->at;
}

/* Whether results 'i' and 'i + 1' stand in a row on both sides. */
static bool in_a_row(const lade__gpu_unit *u, const parts *p)
{
	return u[1].stage_out && u[1].out_at == u->out_at + u->cap &&
	       target(&u[1], p) == target(u, p) + u->cap;
}

/* The runs of a wave's results; 0: they are not all as long as they can be, or have rows, or are
 * parts of what was made. */
static size_t count_runs(const lade__gpu_wave *w, const parts *p)
{
	size_t runs = 0;
	for (size_t i = 0; i < w->count; i++) {
		const lade__gpu_unit *u = &w->units[i];
		if (!u->stage_out)
			continue;
		if (p->status[i] != LADE_OK || p->size[i] != u->cap || u->skip ||
		    u->size != u->cap || (u->row && !u->to_host))
			return 0;
		runs += !(i && u[-1].stage_out && in_a_row(u - 1, p));
	}
	return runs;
}

static int send(const run *r, const lade__gpu_wave *w, const parts *p, lade__address base,
                const lade__gpu_unit *first, const lade__gpu_unit *last)
{
	return r->device->driver->cuMemcpyDtoHAsync(
		target(first, p), base + w->out_off + first->out_at,
		last->out_at + last->cap - first->out_at, r->lane->out);
}

static lade_status send_runs(run *r, const lade__gpu_wave *w, const parts *p, lade__address base,
                             lade_error *err)
{
	int result = 0;
	for (size_t i = 0; i < w->count && result == 0;) {
		const lade__gpu_unit *first = &w->units[i], *last = first;
		i++;
		if (!first->stage_out || first->cap == 0)
			continue;
		while (i < w->count && in_a_row(last, p))
			last = &w->units[i++];
		result = send(r, w, p, base, first, last);
		/* As in copy_run() of gpu_wave.c. */
		if (result != LADE__CU_INVALID_VALUE || first == last)
			continue;
		for (result = 0; first <= last && result == 0; first++)
			result = send(r, w, p, base, first, first);
	}
	return lade__driver_check(r->device->driver, result, r->device->number,
	                          "cuMemcpyDtoHAsync", err);
}

/* Sends the results of a wave on their way, when it is known how long they are. */
static lade_status wave_settle(run *r, size_t index, lade_error *err)
{
	const lade__gpu_wave *w = &r->waves[index];
	unsigned k = (unsigned)(index % r->slots);
	lade__gpu_slot *slot = &r->lane->slot[k];
	lade__address base = r->block + k * r->slot_size;
	lade_status status;
	TRY(LADE__CU(r->device, cuEventSynchronize, slot->told));
	parts p = parts_of(w, slot->pinned.data);
	size_t runs = w->copies_out ? count_runs(w, &p) : 0;
	if (runs && runs <= RUNS_MOST)
		TRY(send_runs(r, w, &p, base, err));
	else
		TRY(lade__gpu_wave_out(r->device, r->lane->out, w, base, 0, 0, err));
	TRY(LADE__CU(r->device, cuEventRecord, slot->done, r->lane->out));
out:
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

static lade_status wave_retire(run *r, size_t index, lade_error *err)
{
	const lade__gpu_wave *w = &r->waves[index];
	lade__gpu_slot *slot = &r->lane->slot[index % r->slots];
	lade_status status;
	TRY(LADE__CU(r->device, cuEventSynchronize, slot->done));
	parts p = parts_of(w, slot->pinned.data);
	TRY(spread_all(r, w, &p, true, err));
	for (size_t i = 0; i < w->count; i++)
		unit_done(r, &w->units[i], p.status[i], p.size[i]);
out:
	return status;
}

/* ---- all ----------------------------------------------------------------------------------- */

static size_t wave_size(size_t total, size_t most, size_t units, unsigned slots)
{
	size_t size = total / slots, few = units ? total / units * WAVE_FEW : 0;
	if (few > most)
		most = few;
	return size > most ? most : size < WAVE_LEAST ? WAVE_LEAST : size;
}

static size_t memory_of(const run *r)
{
	return (size_t)(r->device->info.memory_size >> MEMORY_SHIFT);
}

/* How large waves are, and how many in flight. */
static void measure(run *r)
{
	size_t in = 0, out = 0, in_units = 0, out_units = 0;
	size_t limit = memory_of(r) / LADE__GPU_SLOTS;
	r->slots = LADE__GPU_SLOTS;
	for (size_t i = 0; i < r->count; i++) {
		const lade__gpu_unit *u = &r->units[i];
		/* Beyond a wave's most the sums do not matter: no overflow. */
		if (u->stage_in && in < SIZE_MAX / 2)
			in += u->src_size < SIZE_MAX / 4 ? u->src_size : SIZE_MAX / 4;
		if (u->stage_out && out < SIZE_MAX / 2)
			out += u->cap < SIZE_MAX / 4 ? u->cap : SIZE_MAX / 4;
		in_units += u->stage_in;
		out_units += u->stage_out;
		if (u->pageable || u->to_host)
			r->slots = SLOTS_PAGEABLE;
	}
	r->most = (lade__gpu_most){.in = wave_size(in, WAVE_IN, in_units, r->slots),
	                           .out = wave_size(out, WAVE_OUT, out_units, r->slots),
	                           .between = limit};
	r->most.in = r->most.in < limit / 2 ? r->most.in : limit / 2;
	r->most.out = r->most.out < limit / 2 ? r->most.out : limit / 2;
}

static lade_status plan_waves(run *r, lade_error *err)
{
	lade_status status = LADE_OK;
	for (size_t next = 0; next < r->count;) {
		size_t left = r->count - next;
		if (r->wave_count == r->wave_cap) {
			size_t cap = r->wave_cap ? 2 * r->wave_cap : 32;
			lade__gpu_wave *more = realloc(r->waves, cap * sizeof *more);
			if (!more)
				return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
				                 "no memory to plan %zu items", r->count);
			r->waves = more;
			r->wave_cap = cap;
		}
		lade__gpu_wave *w = &r->waves[r->wave_count];
		TRY(lade__gpu_wave_plan(r->engine, r->route, r->units + next,
		                        left < WAVE_UNITS ? left : WAVE_UNITS, &r->most, w, err));
		next += w->count;
		r->wave_count++;
		r->slot_size = w->size > r->slot_size ? w->size : r->slot_size;
	}
	r->slot_size = lade__gpu_round(r->slot_size);
	if (r->wave_count < r->slots)
		r->slots = r->wave_count ? (unsigned)r->wave_count : 1;
	if (r->slot_size > SIZE_MAX / LADE__GPU_SLOTS)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "%zu items are too large",
		                 r->count);
	/* Slots are alike: one large unit makes all of them large. */
	while (r->slots > 1 && r->slots * r->slot_size > memory_of(r))
		r->slots--;
out:
	return status;
}

/* One block for all slots: blocks of their own would be reused from wave to wave by the pool, which
 * makes one wait for the other.  Every wave begins on the stream that takes it.  Where the device
 * has no memory for all slots, fewer do. */
static lade_status take_block(run *r, lade_stream stream, lade_error *err)
{
	lade_status status = lade__gpu_lane_follow(r->device, r->lane, stream, err);
	if (status != LADE_OK)
		return status;
	for (;; r->slots /= 2) {
		status = lade__gpu_alloc(r->engine, r->device, r->lane->in, r->slots * r->slot_size,
		                         &r->block, err);
		if (status != LADE_E_NOMEM || r->slots == 1)
			return status;
	}
}

lade_status lade__gpu_run(lade_engine *engine, const lade__route *route, lade__device *device,
                          lade_stream stream, unsigned threads, lade__gpu_unit *units,
                          size_t count, lade__gpu_done *done, lade_error *err)
{
	run r = {.engine = engine,
	         .threads = threads,
	         .route = route,
	         .device = device,
	         .units = units,
	         .count = count,
	         .done = done};
	lade_status status;
	if (count == 0)
		return LADE_OK;
	measure(&r);
	TRY(plan_waves(&r, err));
	TRY(lade__gpu_lane_take(engine, device, &r.lane, err));
	TRY(take_block(&r, stream, err));
	/* Half of the slots are behind the kernels, and the rest before them. */
	size_t settled = 0, retired = 0, depth = r.slots > 1 ? r.slots / 2 : 1;
	for (size_t i = 0; i < r.wave_count; i++) {
		if (i - settled == depth)
			TRY(wave_settle(&r, settled++, err));
		if (i - retired == r.slots)
			TRY(wave_retire(&r, retired++, err));
		TRY(wave_launch(&r, i, err));
	}
	while (settled < r.wave_count)
		TRY(wave_settle(&r, settled++, err));
	while (retired < r.wave_count)
		TRY(wave_retire(&r, retired++, err));
out:
	if (r.lane) {
		/* Nothing may still use the slots' memory or the caller's.  (Where there is no
		 * block nothing was enqueued, and a wait would spoil another stream's capture.) */
		if (status != LADE_OK && r.block)
			lade__gpu_lane_wait(device, r.lane);
		lade__gpu_free(engine, device, r.lane->in, r.block, r.slots * r.slot_size);
		lade__gpu_lane_give(engine, r.lane);
	}
	free(r.waves);
	return status;
}
