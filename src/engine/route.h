/*
 * route.h: which implementation runs each stage of a spec.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ENGINE_ROUTE_H
#define LADE_ENGINE_ROUTE_H

#include "engine/engine.h"

/* What the router picked for each stage of a spec: indices into the registry's entries. */
typedef struct lade__route {
	const lade_spec *spec;
	lade_direction direction;
	lade_kind place; /* LADE_HOST, or LADE_DEVICE */
	double cost; /* nanoseconds expected for the whole workload */
	bool ignore_checksums; /* false, unless who made it says so: devices heed it */
	const lade_dict *dict; /* NULL, unless who made it says so: devices use it */
	uint16_t entry[LADE_STAGES_MAX];
} lade__route;

/* Candidates as they are listed: the first 'cap' of 'count'. */
typedef struct lade__candidates {
	lade_candidate *list;
	size_t cap, count;
} lade__candidates;

/* A route to make: over implementations of one place. */
static inline lade__route lade__route_of(const lade_spec *spec, lade_direction direction,
                                         lade_kind place)
{
	return (lade__route){.spec = spec, .direction = direction, .place = place};
}

/* Chooses for each stage of a route.  'workload' has all but the stage and the direction filled in.
 * 'candidates', unless NULL, gets all that were looked at behind those that it has. */
lade_status lade__route_make(const lade_engine *engine, lade_workload *workload, lade__route *route,
                             lade__candidates *candidates, lade_error *err);

static inline const lade__entry *lade__route_entry(const lade_engine *engine,
                                                   const lade__route *route, size_t stage)
{
	return &engine->registry.entries[route->entry[stage]];
}

static inline const lade_implementation *lade__route_at(const lade_engine *engine,
                                                        const lade__route *route, size_t stage)
{
	return &lade__route_entry(engine, route, stage)->record;
}

/* A route for chunks of at most work.largest decoded bytes in host memory, for layers that run
 * items on their own workers.  Of 'work', direction, count, has_dict and strict are read, too. */
lade_status lade__route_host(const lade_engine *engine, const lade_spec *spec, lade_workload work,
                             lade__route *route, lade_error *err);

#endif
