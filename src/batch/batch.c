/*
 * batch.c: the calls over N items: routing, spreading over threads, and gathering what became of
 * each item.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/gpu.h"
#include "batch/spec.h"

#include <stdlib.h>
#include <string.h>

/* Work expected to take less is done by the caller's thread alone, and each further thread must
 * have this much to do: waking one takes 5 to 50 microseconds. */
#define THREAD_NS 40e3

/* Items of fewer decoded bytes are not cut into parts. */
#define PARTS_MIN ((size_t)256 << 10)

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
	bool failed;    /* of a part */
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

	unit *units; /* NULL: the items are the units */
} call;

static size_t decoded_size_of(const call *c, const lade_item *item)
{
	if (c->direction == LADE_DECODE)
		return item->dst.size;
	size_t total = 0;
	for (size_t i = 0; item->src && i < item->src_count; i++)
		total += item->src[i].size;
	return total;
}

/* ---- what became of an item ----------------------------------------------------------------- */

void lade__outcome_init(lade__outcome *o, lade_result *results, const lade_batch_options *options,
                        lade_error *err)
{
	*o = (lade__outcome){.results = results,
	                     .item_errors = options ? options->item_errors : NULL,
	                     .first_bad = SIZE_MAX,
	                     .err = err};
	pthread_mutex_init(&o->mutex, NULL);
}

lade_status lade__outcome_reset(lade__outcome *o)
{
	pthread_mutex_destroy(&o->mutex);
	return o->first_bad < SIZE_MAX ? o->bad_status : LADE_OK;
}

void lade__outcome_failed(lade__outcome *o, size_t index, lade_status status,
                          const lade_error *error)
{
	pthread_mutex_lock(&o->mutex);
	if (o->results)
		o->results[index] = (lade_result){status, 0};
	if (o->item_errors)
		o->item_errors[index] = *error;
	if (index < o->first_bad) {
		o->first_bad = index;
		o->bad_status = status;
		lade_fail(o->err, status, error->offset, "item %zu: %s", index, error->message);
	}
	pthread_mutex_unlock(&o->mutex);
}

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
	p->status = lade__route_make(c->engine, spec, c->direction, LADE_HOST, &workload, &p->route,
	                             NULL, 0, NULL, &p->error);
}

/* Gives every item that has its own spec a plan; equal pointers share one.  'seats' is a hash
 * table of index + 1, at most half full. */
static lade_status plan_own(call *c, size_t own_count, lade_error *err)
{
	size_t seat_count = 4;
	while (seat_count < 2 * own_count)
		seat_count *= 2;
	uint32_t *seats = own_count < UINT32_MAX / 4 ? calloc(seat_count, sizeof *seats) : NULL;
	c->plan_of = calloc(c->count, sizeof *c->plan_of);
	size_t cap = 0;
	lade_status status = LADE_E_NOMEM;
	if (!seats || !c->plan_of)
		goto out;
	for (size_t i = 0; i < c->count; i++) {
		const lade_spec *spec = c->items[i].spec;
		if (!spec)
			continue;
		size_t seat = ((uintptr_t)spec >> 4) * 0x9E3779B97F4A7C15u >> 20 & (seat_count - 1);
		while (seats[seat] && c->plans[seats[seat] - 1].route.spec != spec)
			seat = (seat + 1) & (seat_count - 1);
		if (!seats[seat]) {
			if (c->plan_count == cap) {
				cap = cap ? 2 * cap : 4;
				plan *plans = realloc(c->plans, cap * sizeof *plans);
				if (!plans)
					goto out;
				c->plans = plans;
			}
			c->plans[c->plan_count] = (plan){.route.spec = spec};
			seats[seat] = (uint32_t)++c->plan_count;
		}
		c->plan_of[i] = seats[seat];
		plan_add(&c->plans[seats[seat] - 1], &c->items[i],
		         decoded_size_of(c, &c->items[i]));
	}
	for (size_t i = 0; i < c->plan_count; i++)
		plan_route(c, &c->plans[i], c->plans[i].route.spec);
	status = LADE_OK;
out:
	free(seats);
	if (status != LADE_OK)
		lade_fail(err, status, LADE_NO_OFFSET, "no memory to plan %zu items", c->count);
	return status;
}

static lade_status plan_call(call *c, const lade_spec *spec, lade_error *err)
{
	size_t own_count = 0;
	for (size_t i = 0; i < c->count; i++) {
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
	return own_count ? plan_own(c, own_count, err) : LADE_OK;
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
	if (status == LADE_OK && c->direction == LADE_DECODE)
		status = lade__item_decode(worker, &p->route, item, &c->job, &size, &error);
	else if (status == LADE_OK)
		status = lade__item_encode(worker, &p->route, item, &c->job, &size, &error);
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
		                 ->run_part(&run, u->src, u->part, item->dst, err);
	return status;
}

static void run_unit(void *ctx, size_t index, lade_worker *worker)
{
	call *c = ctx;
	if (!c->units || c->units[index].part == WHOLE)
		run_item(c, c->units ? c->units[index].item : index, worker);
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
	if (p->status != LADE_OK || item->src_count != 1 || item->row_pitch || item->range_off ||
	    item->range_size || item->dst.size < PARTS_MIN ||
	    lade__item_check(item, LADE_DECODE, NULL) != LADE_OK)
		return false;
	for (size_t i = 1; i < p->route.spec->count; i++)
		if (p->route.spec->stage[i].algorithm->kind != LADE_STAGE_CHECKSUM)
			return false;
	return lade__route_at(c->engine, &p->route, 0)->parts != NULL;
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
		status = lade__route_at(c->engine, &p->route, 0)->parts(&run, u->src, part_count,
		                                                        decoded_size, NULL);
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
		if (u->part == WHOLE || !u->failed || u->item == told)
			continue;
		told = u->item;
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
	if (cost < THREAD_NS * threads)
		threads = 1 + (unsigned)(cost / THREAD_NS);
	size_t unit_count = c->count;
	if (threads > 1 && c->direction == LADE_DECODE && c->count < 4 * (size_t)threads)
		unit_count = cut_into_parts(c);
	uint32_t *order = threads > 1 && !c->units ? order_by_size(c, total, largest) : NULL;
	lade_status status = lade__engine_parallel(c->engine, threads, unit_count, order ? 1 : 0,
	                                           order, run_unit, c, err);
	if (status == LADE_OK && c->units)
		report_parts(c, unit_count);
	free(order);
	return status;
}

/* ---- the calls ---------------------------------------------------------------------- */

static const lade_batch_options default_options = {.struct_size = sizeof default_options};

lade_status lade__call_check(const lade_engine *engine, const lade_item *items, size_t count,
                             const lade_batch_options *options, lade_error *err)
{
	if (!options)
		options = &default_options;
	if (!engine)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "engine is NULL");
	if (!items && count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "items is NULL for %zu items",
		                 count);
	if (options->struct_size != sizeof *options)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "batch options: struct_size is %zu, this library's is %zu",
		                 options->struct_size, sizeof *options);
	const uint32_t known = LADE_BATCH_IGNORE_CHECKSUMS | LADE_BATCH_STRICT;
	if (options->flags & ~known)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "batch options: flags 0x%x, known are 0x%x", options->flags,
		                 known);
	if ((unsigned)options->where > LADE_WHERE_DEVICE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "batch options: where %d is unknown", (int)options->where);
	return LADE_OK;
}

static void call_init(call *c, lade_engine *engine, lade_direction direction,
                      const lade_item *items, size_t count, const lade_batch_options *options,
                      lade__outcome *outcome)
{
	memset(c, 0, sizeof *c);
	c->engine = engine;
	c->direction = direction;
	c->items = items;
	c->count = count;
	c->outcome = outcome;
	c->job = (lade__job_options){options->dict, options->flags};
	c->threads = options->threads && options->threads < engine->threads ?
		options->threads : engine->threads;
}

lade_status lade__host_call(lade_engine *engine, lade_direction direction, const lade_spec *spec,
                            const lade_item *items, size_t count, const size_t *index,
                            const lade_batch_options *options, lade__outcome *outcome,
                            lade_error *err)
{
	call c;
	call_init(&c, engine, direction, items, count, options, outcome);
	c.index_of = index;
	lade_status status = plan_call(&c, spec, err);
	if (status == LADE_OK)
		status = run_all(&c, err);
	free(c.units);
	free(c.plans);
	free(c.plan_of);
	return status;
}

static lade_status run_call(lade_engine *engine, lade_direction direction, const lade_spec *spec,
                            const lade_item *items, size_t count, lade_result *results,
                            const lade_batch_options *options, lade_error *err)
{
	if (!options)
		options = &default_options;
	lade_status status = lade__call_check(engine, items, count, options, err);
	if (status != LADE_OK || count == 0)
		return status;
	lade__outcome outcome;
	lade_error own;
	err = err ? err : &own;
	lade__outcome_init(&outcome, results, options, err);
	if (lade__gpu_concerned(items, count, options))
		status = lade__gpu_call(engine, direction, spec, items, count, options, &outcome,
		                        err);
	else
		status = lade__host_call(engine, direction, spec, items, count, NULL, options,
		                         &outcome, err);
	lade_status worst = lade__outcome_reset(&outcome);
	if (status != LADE_OK) {
		/* The call has failed, and all of its items with it. */
		for (size_t i = 0; i < count; i++) {
			if (results)
				results[i] = (lade_result){status, 0};
			if (options->item_errors)
				options->item_errors[i] = *err;
		}
		return status;
	}
	return worst;
}

lade_status lade_decode_into(lade_engine *engine, const lade_spec *spec, const lade_item *items,
                             size_t count, lade_result *results,
                             const lade_batch_options *options, lade_error *err)
{
	return run_call(engine, LADE_DECODE, spec, items, count, results, options, err);
}

lade_status lade_encode_into(lade_engine *engine, const lade_spec *spec, const lade_item *items,
                             size_t count, lade_result *results,
                             const lade_batch_options *options, lade_error *err)
{
	return run_call(engine, LADE_ENCODE, spec, items, count, results, options, err);
}

lade_status lade_explain(lade_engine *engine, const lade_spec *spec, lade_direction direction,
                         const lade_item *items, size_t count, const lade_batch_options *options,
                         lade_candidate *candidates, size_t cap, size_t *candidate_count,
                         lade_error *err)
{
	if (!options)
		options = &default_options;
	lade_status status = lade__call_check(engine, items, count, options, err);
	if (status != LADE_OK)
		return status;
	if (!spec || !candidate_count || (!candidates && cap))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 !spec              ? "spec"
		                 : !candidate_count ? "candidate_count"
		                                    : "candidates");
	if ((unsigned)direction > LADE_DECODE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "direction %d is unknown",
		                 (int)direction);
	*candidate_count = 0;
	status = lade__gpu_explain(engine, spec, direction, items, count, options, candidates, cap,
	                           candidate_count, err);
	if (status == LADE_OK && *candidate_count > cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "%zu candidates, room for %zu", *candidate_count, cap);
	return status;
}

lade_status lade_decode(lade_engine *engine, const lade_spec *spec, const void *src,
                        size_t src_size, void *dst, size_t dst_cap, size_t *dst_size,
                        lade_error *err)
{
	lade_segment segment = {.data = src, .size = src_size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(dst, dst_cap)};
	lade_result result = {0};
	lade_status status = lade_decode_into(engine, spec, &item, 1, &result, NULL, err);
	if (dst_size)
		*dst_size = result.size;
	return status;
}

lade_status lade_encode(lade_engine *engine, const lade_spec *spec, const void *src,
                        size_t src_size, void *dst, size_t dst_cap, size_t *dst_size,
                        lade_error *err)
{
	lade_segment segment = {.data = src, .size = src_size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(dst, dst_cap)};
	lade_result result = {0};
	lade_status status = lade_encode_into(engine, spec, &item, 1, &result, NULL, err);
	if (dst_size)
		*dst_size = result.size;
	return status;
}
