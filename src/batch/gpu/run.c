/*
 * run.c: runs units on a device, wave by wave, and waits for the results.
 *
 * Several waves are in flight, so that the copies of one overlap the kernels of others; the host
 * gathers and spreads pageable bytes meanwhile.
 *
 *     host:      gather 1 | gather 2 | ...            | spread 1 | ...
 *     in:                 | copy 1   | copy 2 | ...
 *     kernels:                       | wave 1   |           (wave 2 on another stream)
 *     out:                                      | sizes 1 | ... | copy 1 | ...
 *
 * A wave is planned when it is launched, from units that the feed then makes; cut.c says how large
 * it is.
 *
 * When the sizes of a wave are on the host, it knows what there is to copy.  The driver copies
 * results that are as long as they can be and stand in a row, and few and long ones; a kernel
 * copies others.
 *
 * A flight's pinned memory:  | tables | results | pageable sources | pageable results |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"
#include "engine/spec.h"

#include <stdlib.h>
#include <string.h>

/* Waves in flight are a ring: 'running' from 'first' on, of which the last 'unsized' have results
 * whose sizes the host does not know yet. */
typedef struct run {
	lade_engine *engine;
	const lade__route *route;
	lade__device *device;
	lade__gpu_streams *streams;
	lade__gpu_feed *feed;
	lade__stop *stop; /* the call's */
	bool end;         /* of the feed */
	lade__gpu_cut cut;
	unsigned flights;
	lade__address block; /* device memory of all flights */
	size_t flight_size;
	lade__gpu_wave waves[LADE__GPU_FLIGHTS];
	unsigned first, running, unsized;
} run;

/* ---- pinned memory of a flight ------------------------------------------------------------- */

typedef struct parts {
	uint8_t *tables, *in, *out;
	const uint64_t *size;
	const uint32_t *status;
} parts;

static size_t gathered_size(const lade__gpu_wave *w)
{
	return w->pageable_in ? lade__gpu_round(w->in_size) : 0;
}

static size_t pinned_size(const lade__gpu_wave *w)
{
	return w->in_off + gathered_size(w) + (w->pageable_out ? w->out_size : 0);
}

static parts parts_of(const lade__gpu_wave *w, void *pinned)
{
	uint8_t *at = pinned;
	return (parts){.tables = at,
	               .size = (uint64_t *)(at + w->result_off),
	               .status = (uint32_t *)(at + w->result_off + 8 * w->count),
	               .in = at + w->in_off,
	               .out = at + w->in_off + gathered_size(w)};
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
	if (n)
		memcpy((uint8_t *)u->to + u->at, from, n);
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
	lade_cpu cpu = worker->engine->cpu;
	for (size_t i = first_at(s, block * s->grain); i < end; i++) {
		const lade__gpu_unit *u = &s->wave->units[i];
		if (!s->out && u->pageable && u->gathered)
			lade__gpu_unit_collect(u, cpu, s->parts->in + u->in_at);
		else if (!s->out && u->pageable)
			memcpy(s->parts->in + u->in_at, u->src, u->src_size);
		if (!s->out || !u->to_host || s->parts->status[i] != LADE_OK)
			continue;
		if (!u->placed)
			spread_out(u, s->parts->out + u->out_at, s->parts->size[i]);
		else if (s->parts->size[i] == u->wanted)
			lade__gpu_unit_spread(u, cpu, s->parts->out + u->out_at);
	}
}

static lade_status spread_all(run *r, const lade__gpu_wave *w, const parts *p, bool out,
                              lade_error *err)
{
	size_t total = out ? w->out_size : w->in_size;
	spread s = {w, p, out, r->cut.tuning->gather_grain};
	if (!(out ? w->pageable_out : w->pageable_in))
		return LADE_OK;
	lade__calls calls = {spread_block, &s, .count = total / s.grain + 1, .grain = 1,
	                     .threads = r->feed->planner->threads};
	return lade__engine_parallel(r->engine, &calls, err);
}

/* Copies what the host has gathered to the block, run by run of pageable units. */
static lade_status send_gathered(run *r, const lade__gpu_wave *w, const parts *p,
                                 lade_stream stream, lade_error *err)
{
	lade_status status = LADE_OK;
	for (size_t i = w->pageable_in ? 0 : w->count; i < w->count && status == LADE_OK;) {
		const lade__gpu_unit *first = &w->units[i], *last = first;
		if (!first->pageable) {
			i++;
			continue;
		}
		/* What is not staged takes no place between them. */
		for (; i < w->count && (w->units[i].pageable || !w->units[i].stage_in); i++)
			if (w->units[i].pageable)
				last = &w->units[i];
		status = LADE__CU(r->device, cuMemcpyHtoDAsync, w->base + w->in_off + first->in_at,
		                  p->in + first->in_at, last->in_at + last->src_size - first->in_at,
		                  stream);
	}
	return status;
}

/* ---- one wave ----------------------------------------------------------------------------- */

/* Moves a wave's units, the first of those pending, to a flight, whose own list the others get. */
static lade_status take_units(run *r, lade__gpu_flight *flight, lade__gpu_wave *w, lade_error *err)
{
	lade__gpu_list *pending = &r->streams->pending, rest = flight->units;
	size_t left = pending->count - w->count;
	rest.count = 0;
	lade_status status = lade__gpu_list_room(&rest, left, err);
	flight->units = rest; /* it may have moved */
	if (status != LADE_OK)
		return status;
	if (left)
		memcpy(rest.unit, pending->unit + w->count, left * sizeof *rest.unit);
	flight->units = *pending;
	*pending = rest;
	pending->count = left;
	w->units = flight->units.unit;
	return LADE_OK;
}

/* Launches the wave of the first units pending in the next flight, which nothing uses. */
static lade_status wave_launch(run *r, const lade__gpu_wave *planned, lade_error *err)
{
	unsigned k = (r->first + r->running) % r->flights;
	lade__gpu_wave *w = &r->waves[k];
	lade__gpu_flight *flight = &r->streams->flight[k];
	lade_stream in = r->streams->in, out = r->streams->out, kernels;
	lade_status status;

	*w = *planned;
	lade__gpu_wave_put(w, r->block + k * r->flight_size);
	TRY(lade__gpu_streams_kernels(r->device, r->streams, r->cut.waves, &kernels, err));
	TRY(take_units(r, flight, w, err));
	lade__gpu_cut_take(&r->cut, w);
	r->running++;
	r->unsized++;

	TRY(lade__gpu_flight_pinned(r->engine, r->streams, k, pinned_size(w), err));
	parts p = parts_of(w, flight->pinned.data);
	lade__gpu_wave_fill(w, p.out, p.tables);
	TRY(spread_all(r, w, &p, false, err));
	/* Each copy in the row costs the link microseconds; a kernel's reads of tables do not. */
	bool read_there = w->in_size && !w->copies_in && !w->copies_out && !w->boxes &&
	                  r->route->spec->count == 1;
	lade_direction direction = r->route->direction;
	if (read_there)
		w->host_tables = lade__address_of(p.tables);
	else
		TRY(LADE__CU(r->device, cuMemcpyHtoDAsync, w->base, p.tables, w->tables_size, in));
	w->in_flight = lade__gpu_cut_beside(&r->cut, w, r->streams->pending.count, r->end);
	TRY(send_gathered(r, w, &p, in, err));
	TRY(lade__gpu_wave_in(r->device, in, w, err));
	TRY(LADE__CU(r->device, cuEventRecord, flight->copied, in));
	TRY(LADE__CU(r->device, cuStreamWaitEvent, kernels, flight->copied, 0));
	if (direction == LADE_ENCODE)
		TRY(lade__gpu_wave_boxes(r->device, kernels, w, direction, err));
	TRY(lade__gpu_wave_stages(r->engine, r->route, r->device, kernels, w, err));
	if (direction == LADE_DECODE)
		TRY(lade__gpu_wave_boxes(r->device, kernels, w, direction, err));
	TRY(LADE__CU(r->device, cuEventRecord, flight->made, kernels));
	TRY(LADE__CU(r->device, cuStreamWaitEvent, out, flight->made, 0));
	TRY(LADE__CU(r->device, cuMemcpyDtoHAsync, (void *)(uintptr_t)p.size, w->dst_size,
	             w->result_size, out));
	TRY(LADE__CU(r->device, cuEventRecord, flight->sized, out));
out:
	return status;
}

/* ---- results ------------------------------------------------------------------------------ */

/* Where a unit's result goes to: in pinned memory. */
static uint8_t *target(const lade__gpu_unit *u, const parts *p)
{
	return u->to_host ? p->out + u->out_at : (uint8_t *)u->to + u->at;
}

/* Whether there is anything of result 'i' to copy. */
static bool has_bytes(const lade__gpu_wave *w, const parts *p, size_t i)
{
	return lade__gpu_unit_copies(&w->units[i]) && p->status[i] == LADE_OK && p->size[i];
}

/* Whether results 'i' and 'i + 1' stand in a row on both sides. */
static bool in_a_row(const lade__gpu_wave *w, const parts *p, size_t i)
{
	const lade__gpu_unit *u = &w->units[i];
	return i + 1 < w->count && has_bytes(w, p, i + 1) && p->size[i] == u->cap &&
	       u[1].out_at == u->out_at + u->cap && target(&u[1], p) == target(u, p) + u->cap;
}

/* Whether the results of a wave are the driver's to copy: one run or long ones, of whole results
 * without rows. */
static bool driver_copies(const run *r, const lade__gpu_wave *w, const parts *p)
{
	size_t runs = 0, bytes = 0;
	for (size_t i = 0; i < w->count; i++) {
		const lade__gpu_unit *u = &w->units[i];
		if (!has_bytes(w, p, i))
			continue;
		if (p->size[i] > u->cap || u->skip || u->size != u->cap)
			return false;
		runs += !in_a_row(w, p, i);
		bytes += (size_t)p->size[i];
	}
	return runs <= 1 || bytes / runs >= r->cut.tuning->run_least;
}

static int send(const run *r, const lade__gpu_wave *w, const parts *p, size_t first, size_t last)
{
	const lade__gpu_unit *u = &w->units[first];
	return r->device->driver->cuMemcpyDtoHAsync(
		target(u, p), w->base + w->out_off + u->out_at,
		w->units[last].out_at + (size_t)p->size[last] - u->out_at, r->streams->out);
}

static lade_status send_runs(run *r, const lade__gpu_wave *w, const parts *p, lade_error *err)
{
	int result = 0;
	for (size_t i = 0; i < w->count && result == 0; i++) {
		size_t first = i;
		if (!has_bytes(w, p, i))
			continue;
		while (in_a_row(w, p, i))
			i++;
		result = send(r, w, p, first, i);
		/* As in copy_run() of wave.c. */
		if (result != LADE__CU_INVALID_VALUE || first == i)
			continue;
		for (result = 0; first <= i && result == 0; first++)
			result = send(r, w, p, first, first);
	}
	return lade__driver_check(r->device->driver, result, r->device->number, "cuMemcpyDtoHAsync",
	                          err);
}

static const lade__gpu_flight *first_unsized(const run *r)
{
	return &r->streams->flight[(r->first + r->running - r->unsized) % r->flights];
}

/* Sends the results of a wave on their way, when it is known how long they are. */
static lade_status wave_send_results(run *r, lade_error *err)
{
	unsigned k = (r->first + r->running - r->unsized) % r->flights;
	const lade__gpu_wave *w = &r->waves[k];
	lade__gpu_flight *flight = &r->streams->flight[k];
	lade_status status;
	TRY(LADE__CU(r->device, cuEventSynchronize, flight->sized));
	parts p = parts_of(w, flight->pinned.data);
	if (w->copies_out && driver_copies(r, w, &p))
		TRY(send_runs(r, w, &p, err));
	else if (w->copies_out)
		TRY(lade__gpu_wave_out(r->device, r->streams->out, w, err));
	if (w->copies_out)
		TRY(LADE__CU(r->device, cuEventRecord, flight->done, r->streams->out));
	r->unsized--;
out:
	return status;
}

/* Ends the first wave in flight, whose results are on their way. */
static lade_status wave_finish(run *r, lade_error *err)
{
	const lade__gpu_wave *w = &r->waves[r->first];
	lade__gpu_flight *flight = &r->streams->flight[r->first];
	lade_status status = LADE_OK;
	if (w->copies_out)
		TRY(LADE__CU(r->device, cuEventSynchronize, flight->done));
	parts p = parts_of(w, flight->pinned.data);
	TRY(spread_all(r, w, &p, true, err));
	TRY(lade__gpu_feed_results(r->feed, w->units, w->count, p.status, p.size, err));
	r->first = (r->first + 1) % r->flights;
	r->running--;
out:
	return status;
}

/* Ends the waves whose results have come by now: while others are on their way nobody waits for
 * that. */
static lade_status finish_ready(run *r, lade_error *err)
{
	const lade__driver *driver = r->device->driver;
	lade_status status = LADE_OK;
	/* Items that arrive want the memory of those that are done. */
	while (status == LADE_OK && r->cut.arrive && r->unsized &&
	       driver->cuEventQuery(first_unsized(r)->sized) == 0)
		status = wave_send_results(r, err);
	while (status == LADE_OK && r->running > r->unsized &&
	       (!r->waves[r->first].copies_out ||
	        driver->cuEventQuery(r->streams->flight[r->first].done) == 0))
		status = wave_finish(r, err);
	return status;
}

/* Ends waves until there are more items, where they arrive.  False: none come before those that
 * are pending are done. */
static lade_status await(run *r, bool *more, lade_error *err)
{
	lade__planner *p = r->feed->planner;
	lade_status status = LADE_OK;
	*more = lade__planner_wait(p, false);
	while (!*more && r->running) {
		if (r->running == r->unsized)
			TRY(wave_send_results(r, err));
		TRY(wave_finish(r, err));
		*more = lade__planner_wait(p, false);
	}
	if (!*more && r->streams->pending.count == 0)
		*more = lade__planner_wait(p, true);
out:
	return status;
}

/* Where items arrive, a wave goes with this part of what it may have before the device is idle. */
#define WAVES_LEAST 2
#define PART_LEAST 4

/* Makes units until 'want' are pending, or as many as there are; '*more': the wave waits for
 * others. */
static lade_status take_more(run *r, size_t want, bool *more, lade_error *err)
{
	lade__gpu_list *pending = &r->streams->pending;
	lade_status status = LADE_OK;
	while (!r->end && pending->count < want) {
		TRY(lade__gpu_feed_units(r->feed, want, pending, &r->end, err));
		if (r->end || pending->count >= want)
			break;
		TRY(finish_ready(r, err));
		*more = r->running >= WAVES_LEAST || pending->count <= want / PART_LEAST;
		if (!*more)
			break;
		TRY(await(r, more, err));
		if (!*more)
			break;
	}
out:
	return status;
}

/* ---- planning ------------------------------------------------------------------------------ */

/* Plans the wave of the first units pending, within 'most'; of none at the feed's end. */
static lade_status plan_next(run *r, const lade__gpu_most *most, lade__gpu_wave *w, lade_error *err)
{
	lade__gpu_list *pending = &r->streams->pending;
	size_t limit = lade__gpu_cut_units(&r->cut), guess = lade__gpu_cut_guess(&r->cut, most);
	lade_status status = LADE_OK;
	bool more = true;
	*w = (lade__gpu_wave){0};
	for (;; guess *= 2) {
		/* One more, so that it is seen that there are more. */
		guess = guess < limit ? guess : limit + 1;
		TRY(take_more(r, guess, &more, err));
		size_t n = pending->count < limit ? pending->count : limit;
		*w = (lade__gpu_wave){.units = pending->unit, .count = n};
		if (n)
			TRY(lade__gpu_wave_plan(r->engine, r->route, most, w, err));
		/* Where all of them fit, more may. */
		if (w->count < n || n == limit || r->end || !more)
			break;
	}
out:
	return status;
}

/* ---- device memory ------------------------------------------------------------------------- */

/* One block for all flights, of at least 'size' bytes each: the pool would reuse blocks of their
 * own from wave to wave, and make one wait for the other.  Fewer flights do where the device has no
 * memory for all. */
static lade_status take_block(run *r, size_t size, lade_error *err)
{
	lade_status status;
	/* The waves to come are not planned yet, and some may be larger. */
	r->flight_size = lade__gpu_round(r->cut.single ? size : size + size / 8);
	if (r->flight_size > SIZE_MAX / LADE__GPU_FLIGHTS)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a wave of %zu bytes is too large", size);
	while (r->flights > 1 && r->flights * r->flight_size > lade__gpu_cut_memory(r->device))
		r->flights--;
	for (;; r->flights /= 2) {
		status = lade__gpu_alloc(r->engine, r->device, r->streams->in,
		                         r->flights * r->flight_size, &r->block, err);
		if (status != LADE_E_NOMEM || r->flights == 1)
			return status;
	}
}

static void give_block(run *r)
{
	lade__gpu_free(r->engine, r->device, r->streams->in, r->block, r->flights * r->flight_size);
	r->block = 0;
}

/* ---- all ----------------------------------------------------------------------------------- */

static lade_status drain(run *r, lade_error *err)
{
	lade_status status = LADE_OK;
	while (r->unsized) {
		TRY(wave_send_results(r, err));
		TRY(finish_ready(r, err));
	}
	while (r->running)
		TRY(wave_finish(r, err));
	r->first = 0;
out:
	return status;
}

/* How much larger than the first wave later ones may be.  The first items that arrive are seldom
 * all that a wave has room for. */
static double growth_of(const run *r, const lade__gpu_most *first, const lade__gpu_wave *w)
{
	double growth = lade__gpu_cut_growth(&r->cut, first);
	double all = (double)(r->feed->count / w->count + 1);
	double full = r->cut.arrive && w->in_size
	                      ? (double)r->cut.most.in / (double)w->in_size
	                      : 0;
	full = full < all ? full : all;
	return growth > full ? growth : full;
}

/* Plans the first wave, by which the flights are measured. */
static lade_status begin(run *r, lade_stream stream, bool *nothing, lade_error *err)
{
	lade__gpu_wave w;
	lade_status status;
	lade__gpu_most most = lade__gpu_cut_next(&r->cut);
	r->streams->pending.count = 0;
	TRY(plan_next(r, &most, &w, err));
	*nothing = w.count == 0;
	if (*nothing)
		return LADE_OK;
	r->cut.single = r->end && w.count == r->streams->pending.count;
	size_t waves = r->cut.single ? 1 : r->feed->count / w.count + 3;
	if (waves < r->flights)
		r->flights = (unsigned)waves;
	/* Every wave begins on the stream that the block is taken on. */
	TRY(lade__gpu_streams_follow(r->device, r->streams, r->streams->in, stream, err));
	double size = (double)w.size * (r->cut.single ? 1 : growth_of(r, &most, &w));
	TRY(take_block(r, size < (double)SIZE_MAX / 2 ? (size_t)size : w.size, err));
out:
	return status;
}

static lade_status run_waves(run *r, lade_error *err)
{
	const lade__gpu_feed *f = r->feed;
	lade_status status;
	for (;;) {
		lade__gpu_wave w;
		lade__gpu_most most = lade__gpu_cut_next(&r->cut);
		if (lade__stopped(r->stop)) {
			TRY(drain(r, err));
			return lade__stop_fail(err);
		}
		/* Where results are copied half of the waves in flight are behind the kernels,
		 * the others before them. */
		if (r->unsized == (f->out && r->flights > 1 ? r->flights / 2 : r->flights))
			TRY(wave_send_results(r, err));
		TRY(finish_ready(r, err));
		if (r->running == r->flights)
			TRY(wave_finish(r, err));
		TRY(plan_next(r, &most, &w, err));
		if (w.count == 0)
			break;
		if (w.size > r->flight_size) {
			TRY(drain(r, err));
			give_block(r);
			TRY(take_block(r, w.size, err));
		}
		TRY(wave_launch(r, &w, err));
	}
	TRY(drain(r, err));
out:
	return status;
}

lade_status lade__gpu_run(lade__gpu_feed *feed, lade__device *device, lade_error *err)
{
	const lade__call *call = feed->planner->call;
	lade_engine *engine = call->engine;
	run r = {.engine = engine,
	         .route = &feed->group->where.device,
	         .device = device,
	         .feed = feed,
	         .stop = &feed->planner->outcome->stop,
	         .cut = lade__gpu_cut_of(feed, device)};
	bool nothing = false;
	if (lade__stopped(r.stop))
		return lade__stop_fail(err);
	lade_status status = lade__gpu_streams_take(engine, device, &r.streams, err);
	if (status != LADE_OK)
		return status;
	r.flights = r.cut.cut->flights;
	TRY(begin(&r, call->options->stream, &nothing, err));
	if (!nothing)
		TRY(run_waves(&r, err));
out:
	/* Nothing may still use the flights' memory or the caller's.  (Where there is no block
	 * nothing was enqueued, and a wait would spoil another stream's capture.) */
	if (status != LADE_OK && r.block)
		lade__gpu_streams_wait(device, r.streams);
	give_block(&r);
	lade__gpu_streams_give(engine, r.streams);
	return status;
}
