/*
 * call.c: the items of a call on the host: routing, cutting large ones into parts, and spreading
 * them over threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/call.h"

#include "batch/host/item.h"
#include "batch/plan/tuning.h"
#include "engine/spec.h"

#include <stdlib.h>
#include <string.h>

/* The route of one spec of the call. */
typedef struct plan {
	lade__route route;
	lade_status status; /* of making the route: what its items fail with */
	lade_error error;
	size_t count, largest;
	uint64_t total;
	lade_place src, dst; /* of the first item */
} plan;

/* One part of an item, or all of it. */
#define WHOLE SIZE_MAX
typedef struct unit {
	size_t item, part;
	lade_cspan src; /* of a part: the codec's bytes */
	bool failed, cancelled; /* of a part */
} unit;

typedef struct call {
	lade_engine *engine;
	lade_direction direction;
	const lade_item *items;
	size_t count;
	const size_t *index_of; /* the items' places in the caller's list; NULL: their own */
	lade__outcome *outcome;
	lade__job_options job;
	unsigned threads;

	plan shared;      /* of the call's spec */
	plan *plans;      /* of the items' own specs */
	size_t plan_count;
	uint32_t *plan_of; /* by item: index + 1 into 'plans', 0 for the call's; NULL: all 0 */
	uint32_t *tail_of; /* likewise of the items' tails; 0: it has none */

	unit *units; /* NULL: the items are the units */
} call;

static size_t decoded_size_of(const call *c, const lade_item *item)
{
	return lade__item_bytes(item, c->direction);
}

/* ---- what became of an item ----------------------------------------------------------------- */

static size_t index_of(const call *c, size_t index)
{
	return c->index_of ? c->index_of[index] : index;
}

static void item_done(call *c, size_t index, size_t size)
{
	lade__outcome_done(c->outcome, index_of(c, index), size);
}

static void item_failed(call *c, size_t index, lade_status status, const lade_error *error)
{
	lade__outcome_failed(c->outcome, index_of(c, index), status, error);
}

/* ---- routes ------------------------------------------------------------------------- */

static void plan_add(plan *p, const lade_item *item, size_t size)
{
	if (p->count++ == 0) {
		p->src = item->src && item->src_count ? item->src[0].place : LADE_PLACE_HOST;
		p->dst = item->dst.place;
	}
	p->total += size;
	if (size > p->largest)
		p->largest = size;
}

static lade_workload workload_of(const call *c, const plan *p)
{
	return (lade_workload){.direction = c->direction, .count = p->count, .total = p->total,
	                       .largest = p->largest, .src = p->src, .dst = p->dst,
	                       .threads = c->threads,
	                       .has_dict = c->job.dict != NULL,
	                       .strict = (c->job.flags & LADE_BATCH_STRICT) != 0,
	                       .cpu = c->engine->cpu};
}

static void plan_route(call *c, plan *p, const lade_spec *spec)
{
	lade_workload workload = workload_of(c, p);
	p->route = lade__route_of(spec, c->direction, LADE_HOST);
	p->status = lade__route_make(c->engine, &workload, &p->route, NULL, &p->error);
}

/* The plans of specs by their addresses: a hash table of index + 1, at most half full. */
typedef struct seats {
	uint32_t *seat;
	size_t count, cap; /* seats; plans that there is memory for */
} seats;

/* Counts an item of 'size' bytes to the plan of a spec, which it makes when it is the first; 0: no
 * memory. */
static uint32_t plan_find(call *c, seats *s, const lade_spec *spec, size_t index, size_t size)
{
	size_t at = ((uintptr_t)spec >> 4) * 0x9E3779B97F4A7C15u >> 20 & (s->count - 1);
	while (s->seat[at] && c->plans[s->seat[at] - 1].route.spec != spec)
		at = (at + 1) & (s->count - 1);
	if (!s->seat[at]) {
		if (c->plan_count == s->cap) {
			s->cap = s->cap ? 2 * s->cap : 4;
			plan *plans = realloc(c->plans, s->cap * sizeof *plans);
			if (!plans)
				return 0;
			c->plans = plans;
		}
		c->plans[c->plan_count] = (plan){.route.spec = spec};
		s->seat[at] = (uint32_t)++c->plan_count;
	}
	plan_add(&c->plans[s->seat[at] - 1], &c->items[index], size);
	return s->seat[at];
}

/* Gives every item that has its own spec or a tail a plan for it; equal pointers share one. */
static lade_status plan_own(call *c, size_t own_count, bool tails, lade_error *err)
{
	seats s = {.count = 4};
	while (s.count < 2 * own_count)
		s.count *= 2;
	s.seat = own_count < UINT32_MAX / 4 ? calloc(s.count, sizeof *s.seat) : NULL;
	c->plan_of = calloc(c->count, sizeof *c->plan_of);
	c->tail_of = tails ? calloc(c->count, sizeof *c->tail_of) : NULL;
	lade_status status = LADE_E_NOMEM;
	if (!s.seat || !c->plan_of || (tails && !c->tail_of))
		goto out;
	for (size_t i = 0; i < c->count; i++) {
		const lade_item *item = &c->items[i];
		size_t size = item->spec || item->tail ? decoded_size_of(c, item) : 0;
		if (item->spec) {
			c->plan_of[i] = plan_find(c, &s, item->spec, i, size);
			if (!c->plan_of[i])
				goto out;
		}
		if (item->tail) {
			c->tail_of[i] = plan_find(c, &s, item->tail, i, size);
			if (!c->tail_of[i])
				goto out;
		}
	}
	for (size_t i = 0; i < c->plan_count; i++)
		plan_route(c, &c->plans[i], c->plans[i].route.spec);
	status = LADE_OK;
out:
	free(s.seat);
	if (status != LADE_OK)
		lade_fail(err, status, LADE_NO_OFFSET, "no memory to plan %zu items", c->count);
	return status;
}

static lade_status plan_call(call *c, const lade_spec *spec, lade_error *err)
{
	size_t own_count = 0;
	bool tails = false;
	for (size_t i = 0; i < c->count; i++) {
		own_count += c->items[i].tail != NULL;
		tails |= c->items[i].tail != NULL;
		if (c->items[i].spec)
			own_count++;
		else
			plan_add(&c->shared, &c->items[i], decoded_size_of(c, &c->items[i]));
	}
	if (c->shared.count && spec)
		plan_route(c, &c->shared, spec);
	else if (c->shared.count)
		c->shared.status = lade_fail(&c->shared.error, LADE_E_ARG, LADE_NO_OFFSET,
		                             "neither the call nor the item has a spec");
	return own_count ? plan_own(c, own_count, tails, err) : LADE_OK;
}

static const plan *plan_for(const call *c, size_t index)
{
	uint32_t own = c->plan_of ? c->plan_of[index] : 0;
	return own ? &c->plans[own - 1] : &c->shared;
}

/* ---- running ------------------------------------------------------------------------ */

static void run_item(call *c, size_t index, lade_worker *worker)
{
	const lade_item *item = &c->items[index];
	const plan *p = plan_for(c, index);
	lade_error error;
	size_t size = 0;
	lade_status status = p->status;
	if (status != LADE_OK)
		error = p->error;
	else
		status = lade__item_check(item, c->direction, &error);
	const plan *tail = status == LADE_OK && item->tail ? &c->plans[c->tail_of[index] - 1] :
		NULL;
	const lade__pipe pipe = {worker, &p->route, &c->job};
	if (tail && tail->status != LADE_OK) {
		status = tail->status;
		error = tail->error;
	} else if (tail) {
		status = lade__item_decode_tail(&pipe, &tail->route, item, &size, &error);
	} else if (status == LADE_OK && c->direction == LADE_DECODE)
		status = lade__item_decode(&pipe, item, &size, &error);
	else if (status == LADE_OK)
		status = lade__item_encode(&pipe, item, &size, &error);
	if (status == LADE_OK)
		item_done(c, index, size);
	else
		item_failed(c, index, status, &error);
}

static lade_status run_part(const call *c, const unit *u, lade_worker *worker, lade_error *err)
{
	const lade_item *item = &c->items[u->item];
	const plan *p = plan_for(c, u->item);
	const lade__pipe pipe = {worker, &p->route, &c->job};
	lade_run run;
	lade_status status = lade__pipe_run(&pipe, 0, &run, err);
	if (status == LADE_OK)
		status = lade__route_at(c->engine, &p->route, 0)
		                 ->codec->run_part(&run, u->src, u->part, item->dst, err);
	return status;
}

static void run_unit(void *ctx, size_t index, lade_worker *worker)
{
	call *c = ctx;
	bool stopped = lade__stopped(&c->outcome->stop);
	if (!c->units || c->units[index].part == WHOLE) {
		index = c->units ? c->units[index].item : index;
		if (stopped)
			lade__outcome_cancelled(c->outcome, index_of(c, index));
		else
			run_item(c, index, worker);
	} else if (stopped)
		c->units[index].cancelled = true;
	else
		c->units[index].failed =
			run_part(c, &c->units[index], worker, NULL) != LADE_OK;
}

/* ---- parts -------------------------------------------------------------------------- */

/* Whether an item can be decoded in parts: one segment, straight into its destination, by a codec
 * that has them with nothing but checksums behind it. */
static bool may_part(const call *c, size_t index)
{
	const lade_item *item = &c->items[index];
	const plan *p = plan_for(c, index);
	if (p->status != LADE_OK || item->src_count != 1 || item->range_off ||
	    item->range_size || item->tail || lade__item_is_placed(item) ||
	    item->dst.size < lade__host_tuning_default.parts_least ||
	    lade__item_check(item, LADE_DECODE, NULL) != LADE_OK)
		return false;
	for (size_t i = 1; i < p->route.spec->count; i++)
		if (p->route.spec->stage[i].algorithm->kind != LADE_STAGE_CHECKSUM)
			return false;
	const lade_codec_ops *codec = lade__route_at(c->engine, &p->route, 0)->codec;
	return codec && codec->parts;
}

/* Looks at the source; '*part_count' 0 says to run the item whole (it may be bad: then that says
 * so). */
static void look_for_parts(const call *c, size_t index, lade_worker *worker, unit *u,
                           size_t *part_count, size_t *decoded_size)
{
	const lade_item *item = &c->items[index];
	const plan *p = plan_for(c, index);
	const lade__pipe pipe = {worker, &p->route, &c->job};
	lade_run run;
	lade_status status = lade__pipe_run(&pipe, 0, &run, NULL);
	*part_count = 0;
	u->src = lade_host_cspan(item->src[0].data, item->src[0].size);
	for (size_t i = p->route.spec->count; status == LADE_OK && i-- > 1;)
		status = lade__pipe_verify(&pipe, i, &u->src, NULL);
	if (status == LADE_OK)
		status = lade__route_at(c->engine, &p->route, 0)
		                 ->codec->parts(&run, u->src, part_count, decoded_size, NULL);
	if (status != LADE_OK || *part_count < 2 || *decoded_size > item->dst.size ||
	    (item->src[0].decoded_size && item->src[0].decoded_size != *decoded_size))
		*part_count = 0;
}

/* Of each item in parts the first bad part runs again, to say what is wrong: the same, whichever
 * thread met it first. */
static void report_parts(call *c, size_t unit_count)
{
	size_t told = SIZE_MAX;
	for (size_t i = 0; i < unit_count; i++) {
		const unit *u = &c->units[i];
		if (u->part == WHOLE || u->item == told || (!u->failed && !u->cancelled))
			continue;
		told = u->item;
		if (u->cancelled) {
			lade__outcome_cancelled(c->outcome, index_of(c, u->item));
			continue;
		}
		lade_error error;
		lade_worker *worker = lade__worker_take(c->engine);
		lade_status status = worker ? run_part(c, u, worker, &error) : LADE_E_NOMEM;
		if (!worker)
			lade_fail(&error, status, LADE_NO_OFFSET, "no memory for a worker");
		if (status == LADE_OK)
			status = lade_fail(&error, LADE_E_NOMEM, LADE_NO_OFFSET,
			                   "part %zu failed, and did not when run again", u->part);
		if (worker)
			lade__worker_give(worker);
		item_failed(c, u->item, status, &error);
	}
}

/* Makes the table of units where items are fewer than the threads could share; returns their
 * number.  Without memory for it the items stay whole. */
static size_t cut_into_parts(call *c)
{
	size_t unit_count = 0, cap = c->count;
	bool any = false;
	for (size_t i = 0; i < c->count && !any; i++)
		any = may_part(c, i);
	lade_worker *worker = any ? lade__worker_take(c->engine) : NULL;
	unit *units = worker ? malloc(cap * sizeof *units) : NULL;
	for (size_t i = 0; units && i < c->count; i++) {
		unit u = {.item = i, .part = WHOLE};
		size_t parts = 0, size = 0;
		if (may_part(c, i))
			look_for_parts(c, i, worker, &u, &parts, &size);
		if (parts)
			item_done(c, i, size);
		size_t want = unit_count + (parts ? parts : 1) + (c->count - i - 1);
		if (want > cap) {
			cap = 2 * want;
			unit *more = cap > SIZE_MAX / sizeof *units
			                     ? NULL
			                     : realloc(units, cap * sizeof *units);
			if (!more) {
				free(units);
				units = NULL;
				break;
			}
			units = more;
		}
		if (!parts)
			units[unit_count++] = u;
		for (u.part = 0; u.part < parts; u.part++)
			units[unit_count++] = u;
	}
	if (worker)
		lade__worker_give(worker);
	c->units = units;
	return units ? unit_count : c->count;
}

/* ---- order -------------------------------------------------------------------------- */

typedef struct sized {
	size_t size;
	uint32_t index;
} sized;

static int larger_first(const void *a, const void *b)
{
	size_t x = ((const sized *)a)->size, y = ((const sized *)b)->size;
	return x < y ? 1 : x > y ? -1 : 0;
}

/* The items by falling size, so that a large one begins early.  NULL: as they come, which is right
 * when all are alike. */
static uint32_t *order_by_size(const call *c, uint64_t total, size_t largest)
{
	if (c->count > UINT32_MAX || c->count < 2 || largest <= 2 * (total / c->count))
		return NULL;
	sized *list = malloc(c->count * sizeof *list);
	uint32_t *order = list ? malloc(c->count * sizeof *order) : NULL;
	if (order) {
		for (size_t i = 0; i < c->count; i++)
			list[i] = (sized){decoded_size_of(c, &c->items[i]), (uint32_t)i};
		qsort(list, c->count, sizeof *list, larger_first);
		for (size_t i = 0; i < c->count; i++)
			order[i] = list[i].index;
	}
	free(list);
	return order;
}

static lade_status run_all(call *c, lade_error *err)
{
	double cost = c->shared.route.cost;
	uint64_t total = c->shared.total;
	size_t largest = c->shared.largest;
	for (size_t i = 0; i < c->plan_count; i++) {
		cost += c->plans[i].route.cost;
		total += c->plans[i].total;
		if (c->plans[i].largest > largest)
			largest = c->plans[i].largest;
	}
	unsigned threads = c->threads;
	if (cost < lade__host_tuning_default.thread_cost * threads)
		threads = 1 + (unsigned)(cost / lade__host_tuning_default.thread_cost);
	size_t unit_count = c->count;
	if (threads > 1 && c->direction == LADE_DECODE && c->count < 4 * (size_t)threads)
		unit_count = cut_into_parts(c);
	uint32_t *order = threads > 1 && !c->units ? order_by_size(c, total, largest) : NULL;
	lade__calls calls = {run_unit, c, .count = unit_count, .grain = order ? 1 : 0,
	                     .order = order, .threads = threads};
	lade_status status = lade__engine_parallel(c->engine, &calls, err);
	if (status == LADE_OK && c->units)
		report_parts(c, unit_count);
	free(order);
	return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

lade_status lade__host_call(const lade__call *from, lade__outcome *outcome, lade_error *err)
{
	const lade_batch_options *options = from->options;
	call c = {.engine = from->engine,
	          .direction = from->direction,
	          .items = from->items,
	          .count = from->count,
	          .index_of = from->index,
	          .outcome = outcome,
	          .job = {options->dict, options->flags},
	          .threads = from->engine->threads};
	if (options->threads && options->threads < c.threads)
		c.threads = options->threads;
	lade_status status = plan_call(&c, from->spec, err);
	if (status == LADE_OK)
		status = run_all(&c, err);
	free(c.units);
	free(c.plans);
	free(c.plan_of);
	free(c.tail_of);
	return status;
}
