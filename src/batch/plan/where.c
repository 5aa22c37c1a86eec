/*
 * where.c: where a group runs, and why.
 *
 * Of the sides that can do it the one with the lower expected time is taken: what its
 * implementations say, and the copies between the host and the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/plan/plan.h"

#include "gpu/driver.h"

#include <stdio.h>

/* More threads than these do not copy faster between pageable and pinned memory. */
#define COPIERS 4u

lade_workload lade__workload_of(const lade__planner *p, const lade__group *g)
{
	static const lade_kind kinds[] = {[LADE__SIDE_HOST] = LADE_HOST,
	                                  [LADE__SIDE_PINNED] = LADE_PINNED,
	                                  [LADE__SIDE_DEVICE] = LADE_DEVICE};
	const lade_batch_options *options = p->call->options;
	int32_t device = g->key.device < 0 ? 0 : g->key.device;
	lade_workload work = {.direction = p->call->direction,
	                      .count = g->count,
	                      .total = g->total,
	                      .largest = (size_t)g->largest,
	                      .src = {kinds[g->key.in], device},
	                      .dst = {kinds[g->key.out], device},
	                      .threads = p->threads,
	                      .has_dict = options->dict != NULL,
	                      .strict = (options->flags & LADE_BATCH_STRICT) != 0,
	                      .cpu = p->call->engine->cpu};
	if (p->sorted < p->count) {
		work.count = (size_t)((double)g->count * lade__planner_scale(p));
		work.total = (uint64_t)((double)g->total * lade__planner_scale(p));
	}
	return work;
}

/* ---- what each side can do ------------------------------------------------------------------- */

/* Whether there is such a device, with kernels. */
static lade_status device_ready(int32_t number, lade_error *err)
{
	lade__device *device;
	lade_status status = lade__device_get(number, &device, err);
	if (status == LADE_OK && !device->info.kernels)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   "device %d: the library has no kernels for it", (int)number);
	return status;
}

static lade_status too_large(uint64_t size, lade_error *err)
{
	return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
	                 "an item of %llu bytes, kernels take %u", (unsigned long long)size,
	                 LADE_CHUNK_MAX);
}

lade_status lade_device_takes(const lade_engine *engine, const lade_spec *spec,
                              const lade_workload *work, int32_t device, lade_error *err)
{
	if (!engine || !spec || !work)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 !engine ? "engine" : !spec ? "spec" : "work");
	if ((unsigned)work->direction > LADE_DECODE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "direction %d is unknown",
		                 (int)work->direction);
	lade__route route = lade__route_of(spec, work->direction, LADE_DEVICE);
	lade_workload own = *work;
	own.src = own.dst = (lade_place){LADE_DEVICE, device < 0 ? 0 : device};
	own.count = work->count ? work->count : 1;
	own.cpu = engine->cpu;
	if (work->largest > LADE_CHUNK_MAX)
		return too_large(work->largest, err);
	lade__device *there;
	lade_status status = lade__device_get(device, &there, err);
	if (status == LADE_OK)
		status = lade__route_make(engine, &own, &route, NULL, err);
	return status == LADE_OK ? device_ready(device, err) : status;
}

static void ask_host(const lade__planner *p, lade__group *g, lade__candidates *candidates)
{
	const lade_engine *engine = p->call->engine;
	lade_workload work = lade__workload_of(p, g);
	lade__where *w = &g->where;
	w->host = lade__route_of(g->key.spec, p->call->direction, LADE_HOST);
	w->host_status = lade__route_make(engine, &work, &w->host, candidates, &w->host_error);
	w->host_cost = w->host.cost;
	if (!g->key.tail || w->host_status != LADE_OK)
		return;
	w->tail = lade__route_of(g->key.tail, p->call->direction, LADE_HOST);
	w->host_status = lade__route_make(engine, &work, &w->tail, candidates, &w->host_error);
	w->host_cost += w->tail.cost;
}

static void ask_device(const lade__planner *p, lade__group *g, bool may,
                       lade__candidates *candidates)
{
	lade_workload work = lade__workload_of(p, g);
	lade__where *w = &g->where;
	/* That items are too large for kernels is said below. */
	work.largest = lade__gpu_largest(work.largest);
	w->device = lade__route_of(g->key.spec, p->call->direction, LADE_DEVICE);
	w->device.dict = p->call->options->dict;
	w->device.ignore_checksums = (p->call->options->flags & LADE_BATCH_IGNORE_CHECKSUMS) != 0;
	w->device_status = lade__route_make(p->call->engine, &work, &w->device, candidates,
	                                    &w->device_error);
	if (w->device_status == LADE_OK && g->key.too_large)
		w->device_status = too_large(g->largest, &w->device_error);
	if (w->device_status == LADE_OK && may)
		w->device_status = device_ready(g->key.device, &w->device_error);
}

/* ---- the choice ------------------------------------------------------------------------------ */

bool lade__where_may_device(const lade__planner *p, const lade__group *g)
{
	/* What is on the host goes to a device only if the caller asks, or if it is pinned. */
	if (p->call->options->where != LADE_WHERE_AUTO)
		return p->call->options->where == LADE_WHERE_DEVICE;
	return lade__group_on_device(g) ||
	       (g->key.in == LADE__SIDE_PINNED && g->key.out == LADE__SIDE_PINNED);
}

/* Adds to both sides what they copy. */
static void add_copies(const lade__planner *p, lade__group *g, const lade__tuning *t)
{
	lade__where *w = &g->where;
	const lade__key *k = &g->key;
	bool decode = p->call->direction == LADE_DECODE;
	double all = lade__planner_scale(p), copiers = p->threads < COPIERS ? p->threads : COPIERS;
	double in = (double)g->in_bytes * all;
	double out = (double)(decode ? g->total : g->total / 2) * all;
	double link_in = in / t->link_rate, link_out = out / t->link_rate;
	if (lade__group_on_device(g))
		w->host_cost += t->call_cost;
	w->host_cost += k->in == LADE__SIDE_DEVICE ? link_in : 0;
	w->host_cost += k->out == LADE__SIDE_DEVICE ? link_out : 0;
	/* Copies and kernels overlap: the slowest counts. */
	w->device_cost = w->device.cost;
	if (k->in != LADE__SIDE_DEVICE && link_in > w->device_cost)
		w->device_cost = link_in;
	if (k->out != LADE__SIDE_DEVICE && link_out > w->device_cost)
		w->device_cost = link_out;
	w->device_cost += t->call_cost;
	w->device_cost += k->in == LADE__SIDE_HOST ? in / t->gather_rate / copiers : 0;
	w->device_cost += k->out == LADE__SIDE_HOST ? out / t->gather_rate / copiers : 0;
}

/* What the chosen side says of the work. */
static void set_status(const lade__planner *p, lade__group *g)
{
	lade__where *w = &g->where;
	bool device = w->on_device || p->call->options->where == LADE_WHERE_DEVICE;
	w->status = device ? w->device_status : w->host_status;
	w->error = device ? &w->device_error : &w->host_error;
}

/* Why the chosen implementation of a stage is not taken: its group goes the other way. */
static void other_way(const lade__planner *p, const lade__group *g, lade_candidate *one)
{
	const lade__where *w = &g->where;
	lade_where asked = p->call->options->where;
	bool host = one->place != LADE_DEVICE;
	double own = host ? w->host_cost : w->device_cost;
	double other = host ? w->device_cost : w->host_cost;
	one->chosen = false;
	if (!host && !lade__where_may_device(p, g))
		snprintf(one->reason, sizeof one->reason, "%s",
		         asked == LADE_WHERE_HOST
		                 ? "the host is asked"
		                 : "the items are on the host, and no device is asked");
	else if (host && asked == LADE_WHERE_DEVICE)
		snprintf(one->reason, sizeof one->reason, "the device is asked");
	else if ((host ? w->host_status : w->device_status) != LADE_OK)
		snprintf(one->reason, sizeof one->reason, "%.80s",
		         host ? w->host_error.message : w->device_error.message);
	else if (!lade__group_on_device(g) && own < other)
		snprintf(one->reason, sizeof one->reason,
		         "with copies %.0f ns, the host %.0f: nobody asked, and that gains little",
		         own, other);
	else
		snprintf(one->reason, sizeof one->reason, "with copies %.0f ns, the other way %.0f",
		         own, other);
}

/* Neither side can do anything with the bytes of a device that is not there. */
static void find_bytes(lade__group *g)
{
	lade__where *w = &g->where;
	lade__device *there;
	lade_error why;
	if (lade__device_get(g->key.device, &there, &why) == LADE_OK)
		return;
	w->host_status = w->device_status =
		lade_fail(&w->host_error, why.status, why.offset, "its bytes are on device %d: %s",
	                  (int)g->key.device, why.message);
	w->device_error = w->host_error;
}

void lade__where_explain(const lade__planner *p, lade__group *g, lade__candidates *candidates)
{
	lade__where *w = &g->where;
	bool may_host = p->call->options->where != LADE_WHERE_DEVICE;
	bool may_device = lade__where_may_device(p, g), device_bytes = lade__group_on_device(g);
	w->on_device = false;
	w->host_status = w->device_status = LADE_OK;
	w->host_cost = 0;
	if (may_host || candidates)
		ask_host(p, g, candidates);
	if (!may_device && !device_bytes && !candidates) {
		set_status(p, g);
		return;
	}
	size_t of_host = candidates ? candidates->count : 0;
	if (may_device || candidates)
		ask_device(p, g, may_device, candidates);
	if (device_bytes)
		find_bytes(g);
	if (may_device || candidates) {
		lade__device *there = NULL;
		if (device_bytes || may_device)
			lade__device_get(g->key.device, &there, NULL);
		const lade__tuning *t = lade__tuning_of(there);
		add_copies(p, g, t);
		double device_cost =
			device_bytes ? w->device_cost : (w->device_cost + t->call_cost) * t->detour;
		w->on_device = may_device && w->device_status == LADE_OK &&
		               (!may_host || w->host_status != LADE_OK ||
		                device_cost < w->host_cost);
	}
	set_status(p, g);
	for (size_t i = 0; candidates && i < candidates->count && i < candidates->cap; i++)
		if (candidates->list[i].chosen && (i >= of_host) != w->on_device)
			other_way(p, g, &candidates->list[i]);
}

/* ---- the call's stream ----------------------------------------------------------------------- */

static lade_status check_stream(const lade__planner *p, const lade__group *g, lade_error *err)
{
	void *context = NULL;
	lade__device *device;
	lade_status status = lade__device_use(g->key.device, &device, err);
	if (status != LADE_OK)
		return status;
	status = LADE__CU(device, cuStreamGetCtx, p->call->options->stream, &context);
	if (status == LADE_OK && context != device->context)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "the stream is not one of device %d's primary context, where "
		                   "items are",
		                   (int)g->key.device);
	lade__device_leave(device);
	return status;
}

lade_status lade__where_choose(const lade__planner *p, lade__group *g, lade_error *err)
{
	lade__where *w = &g->where;
	bool device_bytes = lade__group_on_device(g);
	lade_error why;
	g->chosen = true;
	lade__where_explain(p, g, NULL);
	if (!p->call->options->stream ||
	    !(w->on_device || (device_bytes && w->host_status == LADE_OK)))
		return LADE_OK;
	lade_status status = check_stream(p, g, &why);
	if (status == LADE_OK)
		return LADE_OK;
	/* What is on the host need not go to a device where the stream is not. */
	if (status != LADE_E_ARG || device_bytes || p->call->options->where != LADE_WHERE_AUTO ||
	    w->host_status != LADE_OK)
		return lade_fail(err, status, why.offset, "%s", why.message);
	w->on_device = false;
	set_status(p, g);
	return LADE_OK;
}
