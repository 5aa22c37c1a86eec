/*
 * route.c: which implementation runs each stage of a call, and why.
 *
 * Among the implementations of the stage's algorithm and direction those that refuse the work (a
 * negative cost) drop out; the highest priority wins; among equals the lowest cost; among those the
 * one registered last.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/engine.h"
#include "batch/spec.h"

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

lade_status lade__route_make(const lade_engine *engine, const lade_spec *spec,
                             lade_direction direction, lade_kind place, lade_workload *workload,
                             lade__route *route, lade_candidate *candidates, size_t cap,
                             size_t *candidate_count, lade_error *err)
{
	const lade__registry *registry = &engine->registry;
	size_t listed = 0;
	route->spec = spec;
	route->direction = direction;
	route->place = place;
	route->cost = 0;
	route->ignore_checksums = false;
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
		size_t listed_before = listed, best_at = SIZE_MAX;
		for (unsigned i = slot->first[direction]; i; i = registry->entries[i - 1].next) {
			const lade_implementation *p = &registry->entries[i - 1].record;
			if (p->place != place)
				continue;
			double cost = cost_of(p, workload);
			if (is_better(p, cost, best, best_cost)) {
				best = p;
				best_cost = cost;
				best_at = listed;
				route->entry[s] = (uint16_t)(i - 1);
			}
			if (candidates && listed < cap)
				candidates[listed] = (lade_candidate){.stage = s,
				                                      .implementation = p->name,
				                                      .place = p->place,
				                                      .priority = p->priority,
				                                      .cost = cost};
			listed++;
		}
		for (size_t i = listed_before; candidates && i < listed && i < cap; i++) {
			candidates[i].chosen = i == best_at;
			give_reason(&candidates[i], best, best_cost);
		}
		if (candidate_count)
			*candidate_count = listed;
		if (!best)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "stage %zu (%s): no implementation can %s it%s%s", s,
			                 algorithm->name,
			                 direction == LADE_ENCODE ? "encode" : "decode",
			                 place == LADE_DEVICE ? " on a device" : "",
			                 workload->has_dict ? " with a dictionary" : "");
		route->cost += best_cost;
	}
	return LADE_OK;
}

lade_status lade__route_host(const lade_engine *engine, const lade_spec *spec,
                             lade_direction direction, size_t count, size_t size, bool has_dict,
                             bool strict, lade__route *route, lade_error *err)
{
	lade_workload workload = {.count = count,
	                          .total = (uint64_t)count * size,
	                          .largest = size,
	                          .threads = engine->threads,
	                          .has_dict = has_dict,
	                          .strict = strict,
	                          .cpu = engine->cpu};
	return lade__route_make(engine, spec, direction, LADE_HOST, &workload, route, NULL, 0, NULL,
	                        err);
}
