/*
 * route.c: which implementation runs each stage of a call, and why.
 *
 * Among the implementations of the stage's algorithm and direction those that refuse the work (a
 * negative cost) drop out; the highest priority wins; among equals the lowest cost; among those the
 * one registered last.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "engine/route.h"

#include "engine/spec.h"

#include <stdio.h>

static double cost_of(const lade_implementation *p, const lade_workload *workload)
{
	return p->cost ? p->cost(p->ctx, workload) : (double)workload->total;
}

static bool is_better(const lade_implementation *p, double cost, const lade_implementation *best,
                      double best_cost)
{
	if (cost < 0)
		return false;
	if (!best)
		return true;
	if (p->priority != best->priority)
		return p->priority > best->priority;
	return cost < best_cost;
}

static void give_reason(lade_candidate *c, const lade_implementation *best, double best_cost)
{
	if (c->cost < 0)
		snprintf(c->reason, sizeof c->reason, "refuses this work");
	else if (c->chosen)
		snprintf(c->reason, sizeof c->reason, "chosen: priority %d, the lowest cost of it",
		         c->priority);
	else if (c->priority != best->priority)
		snprintf(c->reason, sizeof c->reason, "priority %d is below %d", c->priority,
		         best->priority);
	else
		snprintf(c->reason, sizeof c->reason, "costs %.0f ns, the chosen one %.0f", c->cost,
		         best_cost);
}

static void list_candidate(lade__candidates *l, size_t stage, const lade__entry *entry, double cost)
{
	if (l && l->count < l->cap)
		l->list[l->count] = (lade_candidate){.stage = stage,
		                                     .implementation = entry->record.name,
		                                     .place = entry->gpu ? LADE_DEVICE : LADE_HOST,
		                                     .priority = entry->record.priority,
		                                     .cost = cost};
	if (l)
		l->count++;
}

lade_status lade__route_make(const lade_engine *engine, lade_workload *workload, lade__route *route,
                             lade__candidates *candidates, lade_error *err)
{
	const lade__registry *registry = &engine->registry;
	const lade_spec *spec = route->spec;
	const lade_direction direction = route->direction;
	const bool device = route->place == LADE_DEVICE;
	route->cost = 0;
	workload->direction = direction;
	for (size_t s = 0; s < spec->count; s++) {
		const lade_algorithm *algorithm = spec->stage[s].algorithm;
		const lade__slot *slot = lade__registry_slot(registry, spec->slot[s], algorithm);
		if (!slot)
			return lade_fail(
				err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
				"stage %zu (%s): the algorithm was added to another engine", s,
				algorithm->name);
		workload->stage = &spec->stage[s];
		const lade_implementation *best = NULL;
		double best_cost = 0;
		size_t listed = candidates ? candidates->count : 0, best_at = SIZE_MAX;
		for (unsigned i = slot->first[direction]; i; i = registry->entries[i - 1].next) {
			const lade__entry *entry = &registry->entries[i - 1];
			const lade_implementation *p = &entry->record;
			if ((entry->gpu != NULL) != device)
				continue;
			double cost = cost_of(p, workload);
			if (is_better(p, cost, best, best_cost)) {
				best = p;
				best_cost = cost;
				best_at = candidates ? candidates->count : 0;
				route->entry[s] = (uint16_t)(i - 1);
			}
			list_candidate(candidates, s, entry, cost);
		}
		for (size_t i = listed; candidates && i < candidates->count && i < candidates->cap;
		     i++) {
			candidates->list[i].chosen = i == best_at;
			give_reason(&candidates->list[i], best, best_cost);
		}
		if (!best)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "stage %zu (%s): no implementation can %s it%s%s", s,
			                 algorithm->name,
			                 direction == LADE_ENCODE ? "encode" : "decode",
			                 device ? " on a device" : "",
			                 workload->has_dict ? " with a dictionary" : "");
		route->cost += best_cost;
	}
	return LADE_OK;
}

lade_status lade__route_host(const lade_engine *engine, const lade_spec *spec, lade_workload work,
                             lade__route *route, lade_error *err)
{
	work.total = (uint64_t)work.count * work.largest;
	work.threads = engine->threads;
	work.cpu = engine->cpu;
	*route = lade__route_of(spec, work.direction, LADE_HOST);
	return lade__route_make(engine, &work, route, NULL, err);
}
