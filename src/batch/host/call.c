/*
 * call.c: the items of a call that the host does: large ones are cut into parts, and all are spread
 * over threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/call.h"

#include "batch/host/item.h"
#include "engine/spec.h"

#include <stdlib.h>
#include <string.h>

/* One part of an item, or all of it. */
#define WHOLE SIZE_MAX
typedef struct unit {
	size_t item, part;
	lade_cspan src; /* of a part: the codec's bytes */
	bool failed, cancelled; /* of a part */
} unit;

typedef struct call {
	lade__planner *planner;
	lade_engine *engine;
	lade_direction direction;
	const lade_item *items;
	lade__outcome *outcome;
	lade__job_options job;
	uint32_t *chosen; /* the items that are the host's; NULL: all of the call's */
	size_t count;     /* of these */
	unit *units;      /* NULL: the items are the units */
} call;

/* What the host has to do of all groups. */
typedef struct load {
	double cost;
	uint64_t total;
	size_t largest, count;
	bool all; /* no group is a device's */
} load;

/* The group of an item; NULL: it is not the host's. */
static const lade__group *group_for(const call *c, size_t index)
{
	const lade__group *g = lade__planner_for_host(c->planner, index);
	return g && !lade__group_on_device(g) ? g : NULL;
}

static size_t item_at(const call *c, size_t k)
{
	return c->chosen ? c->chosen[k] : k;
}

/* ---- running ------------------------------------------------------------------------ */

static void run_item(call *c, size_t index, lade_worker *worker)
{
	const lade_item *item = &c->items[index];
	const lade__group *g = group_for(c, index);
	lade_error error;
	size_t size = 0;
	if (!g)
		return;
	const lade__where *w = &g->where;
	const lade__pipe pipe = {worker, &w->host, &c->job};
	lade_status status = w->host_status;
	if (status == LADE_OK && item->tail)
		status = lade__item_decode_tail(&pipe, &w->tail, item, &size, &error);
	else if (status == LADE_OK && c->direction == LADE_DECODE)
		status = lade__item_decode(&pipe, item, &size, &error);
	else if (status == LADE_OK)
		status = lade__item_encode(&pipe, item, &size, &error);
	if (status == LADE_OK)
		lade__outcome_done(c->outcome, index, size);
	else
		lade__outcome_failed(c->outcome, index, status,
		                     w->host_status != LADE_OK ? &w->host_error : &error);
}

static lade_status run_part(const call *c, const unit *u, lade_worker *worker, lade_error *err)
{
	const lade_item *item = &c->items[u->item];
	const lade__route *route = &group_for(c, u->item)->where.host;
	const lade__pipe pipe = {worker, route, &c->job};
	lade_run run;
	lade_status status = lade__pipe_run(&pipe, 0, &run, err);
	if (status == LADE_OK)
		status = lade__route_at(c->engine, route, 0)
		                 ->codec->run_part(&run, u->src, u->part, item->dst, err);
	return status;
}

static void run_unit(void *ctx, size_t index, lade_worker *worker)
{
	call *c = ctx;
	bool stopped = lade__stopped(&c->outcome->stop);
	if (!c->units || c->units[index].part == WHOLE) {
		index = c->units ? c->units[index].item : index;
		if (stopped && group_for(c, index))
			lade__outcome_cancelled(c->outcome, index);
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
	const lade__group *g = group_for(c, index);
	if (!g || g->where.host_status != LADE_OK || !lade__item_is_segment(item) ||
	    item->dst.size < lade__host_tuning_default.parts_least)
		return false;
	const lade__route *route = &g->where.host;
	for (size_t i = 1; i < route->spec->count; i++)
		if (route->spec->stage[i].algorithm->kind != LADE_STAGE_CHECKSUM)
			return false;
	const lade_codec_ops *codec = lade__route_at(c->engine, route, 0)->codec;
	return codec && codec->parts;
}

/* Looks at the source; '*part_count' 0 says to run the item whole (it may be bad: then that says
 * so). */
static void look_for_parts(const call *c, size_t index, lade_worker *worker, unit *u,
                           size_t *part_count, size_t *decoded_size)
{
	const lade_item *item = &c->items[index];
	const lade__route *route = &group_for(c, index)->where.host;
	const lade__pipe pipe = {worker, route, &c->job};
	lade_run run;
	lade_status status = lade__pipe_run(&pipe, 0, &run, NULL);
	*part_count = 0;
	u->src = lade_host_cspan(item->src[0].data, item->src[0].size);
	for (size_t i = route->spec->count; status == LADE_OK && i-- > 1;)
		status = lade__pipe_verify(&pipe, i, &u->src, NULL);
	if (status == LADE_OK)
		status = lade__route_at(c->engine, route, 0)
		                 ->codec->parts(&run, u->src, part_count, decoded_size, NULL);
	if (status != LADE_OK || *part_count < 2 || *decoded_size > item->dst.size ||
	    (item->src[0].decoded_size && item->src[0].decoded_size != *decoded_size))
		*part_count = 0;
}

/* Of each item in parts the first bad part runs again, to say what is wrong: the same, whichever
 * thread met it first. */
static void report_parts(call *c, size_t unit_count)
{
	size_t reported = SIZE_MAX;
	for (size_t i = 0; i < unit_count; i++) {
		const unit *u = &c->units[i];
		if (u->part == WHOLE || u->item == reported || (!u->failed && !u->cancelled))
			continue;
		reported = u->item;
		if (u->cancelled) {
			lade__outcome_cancelled(c->outcome, u->item);
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
		lade__outcome_failed(c->outcome, u->item, status, &error);
	}
}

/* Makes the table of units where items are fewer than the threads could share; returns their
 * number.  Without memory for it the items stay whole. */
static size_t cut_into_parts(call *c)
{
	size_t unit_count = 0, cap = c->count;
	bool any = false;
	for (size_t k = 0; k < c->count && !any; k++)
		any = may_part(c, item_at(c, k));
	lade_worker *worker = any ? lade__worker_take(c->engine) : NULL;
	unit *units = worker ? malloc(cap * sizeof *units) : NULL;
	for (size_t k = 0; units && k < c->count; k++) {
		size_t i = item_at(c, k);
		unit u = {.item = i, .part = WHOLE};
		size_t parts = 0, size = 0;
		if (may_part(c, i))
			look_for_parts(c, i, worker, &u, &parts, &size);
		if (parts)
			lade__outcome_done(c->outcome, i, size);
		size_t want = unit_count + (parts ? parts : 1) + (c->count - k - 1);
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

/* Puts the items in the order of falling size, so that a large one begins early; false: they stay
 * as they are, which is right when all are alike. */
static bool order_by_size(call *c, const load *l)
{
	if (c->count > UINT32_MAX || c->count < 2 || l->largest <= 2 * (l->total / c->count))
		return false;
	sized *list = malloc(c->count * sizeof *list);
	if (list && !c->chosen)
		c->chosen = malloc(c->count * sizeof *c->chosen);
	bool ordered = list && c->chosen;
	if (ordered) {
		for (size_t k = 0; k < c->count; k++) {
			size_t i = l->all ? k : c->chosen[k];
			size_t size = lade__item_bytes(&c->items[i], c->direction);
			list[k] = (sized){size, (uint32_t)i};
		}
		qsort(list, c->count, sizeof *list, larger_first);
		for (size_t k = 0; k < c->count; k++)
			c->chosen[k] = list[k].index;
	}
	free(list);
	return ordered;
}

/* ---- the call -------------------------------------------------------------------------------- */

static load load_of(const lade__planner *p)
{
	load l = {.all = true};
	for (size_t i = 0; i < p->group_count; i++) {
		const lade__group *g = p->groups[i];
		double part = 1;
		size_t count = g->count;
		if (g->where.on_device || lade__group_on_device(g))
			l.all = false;
		if (g->where.on_device) {
			count = g->host_count;
			part = (double)count / (double)g->count;
		}
		if (!count || lade__group_on_device(g))
			continue;
		l.count += count;
		l.cost += part * g->where.host_cost;
		l.total += part < 1 ? (uint64_t)(part * (double)g->total) : g->total;
		l.largest = g->largest > l.largest ? (size_t)g->largest : l.largest;
	}
	return l;
}

/* Lists the host's items where others are not. */
static lade_status choose_items(call *c, const load *l, lade_error *err)
{
	const size_t count = c->planner->count;
	c->count = l->all ? count : 0;
	if (l->all)
		return LADE_OK;
	c->chosen = count <= UINT32_MAX ? malloc(l->count * sizeof *c->chosen) : NULL;
	if (!c->chosen)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to plan %zu items",
		                 count);
	for (size_t i = 0; i < count && c->count < l->count; i++)
		if (group_for(c, i))
			c->chosen[c->count++] = (uint32_t)i;
	return LADE_OK;
}

static lade_status run_all(call *c, const load *l, lade_error *err)
{
	const double thread_cost = lade__host_tuning_default.thread_cost;
	unsigned threads = c->planner->threads;
	if (l->cost < thread_cost * threads)
		threads = 1 + (unsigned)(l->cost / thread_cost);
	size_t unit_count = c->count;
	if (threads > 1 && c->direction == LADE_DECODE && c->count < 4 * (size_t)threads)
		unit_count = cut_into_parts(c);
	bool ordered = threads > 1 && !c->units && order_by_size(c, l);
	lade__calls calls = {run_unit, c, .count = unit_count, .grain = ordered ? 1 : 0,
	                     .order = c->units ? NULL : c->chosen, .threads = threads};
	lade_status status = lade__engine_parallel(c->engine, &calls, err);
	if (status == LADE_OK && c->units)
		report_parts(c, unit_count);
	return status;
}

lade_status lade__host_run(lade__planner *p, lade_error *err)
{
	const lade__call *from = p->call;
	const load l = load_of(p);
	call c = {.planner = p,
	          .engine = from->engine,
	          .direction = from->direction,
	          .items = from->items,
	          .outcome = p->outcome,
	          .job = {.dict = from->options->dict, .flags = from->options->flags}};
	if (l.count == 0 || from->options->where == LADE_WHERE_DEVICE)
		return LADE_OK;
	lade_status status = choose_items(&c, &l, err);
	if (status == LADE_OK)
		status = run_all(&c, &l, err);
	free(c.units);
	free(c.chosen);
	return status;
}
