/*
 * batch.c: the calls over N items, on the host and on devices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/batch.h"

#include "base/options.h"
#include "base/try.h"
#include "batch/gpu/gpu.h"
#include "batch/host/call.h"

#include <stdlib.h>

static lade_status check_options(const lade_batch_options *options, lade_error *err)
{
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

lade_status lade__call_open(lade__given *given, const lade_engine *engine,
                            const lade_batch_options *caller, lade_batch_options *options,
                            lade_error *err)
{
	if (!engine)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "engine is NULL");
	if (!given->items && given->count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "items is NULL for %zu items",
		                 given->count);
	lade_status status =
		lade__options_read(options, sizeof *options, caller, "batch options", err);
	if (status == LADE_OK)
		status = check_options(options, err);
	if (status != LADE_OK)
		return status;
	lade__sizes sizes = {options->item_size, options->segment_size, options->output_size,
	                     options->result_size};
	given->host = lade__engine_host(engine);
	return lade__given_open(given, &sizes, err);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Fails the items of a group that no side can do. */
static void fail_group(lade__planner *p, const lade__group *g)
{
	for (size_t i = 0; i < p->count; i++) {
		if (lade__planner_waits(p, i) != g)
			continue;
		lade__planner_done(p, i);
		lade__outcome_failed(p->outcome, i, g->where.status, g->where.error);
	}
}

/* Runs a group but for what the host does of its own bytes.  Fails: when the call does */
static lade_status run_group(lade__planner *p, lade__group *g, lade_error *err)
{
	bool device = g->where.on_device || lade__group_on_device(g);
	g->ran = true;
	if (!device && p->call->options->where != LADE_WHERE_DEVICE)
		return LADE_OK;
	if (g->where.status == LADE_OK)
		return lade__gpu_group_run(p, g, err);
	fail_group(p, g);
	return LADE_OK;
}

/*
 * The first items of a large batch are on their way to a device before the others are planned;
 * what is right for them is right for all that are like them.
 */
static lade_status run_ahead(lade__planner *p, lade_error *err)
{
	lade_status status = LADE_OK;
	if (p->call->count <= LADE__PLANNER_STEP)
		return LADE_OK;
	TRY(lade__planner_sort(p, LADE__PLANNER_STEP, err));
	if (p->group_count != 1 || !lade__where_may_device(p, p->groups[0]))
		return LADE_OK;
	TRY(lade__where_choose(p, p->groups[0], err));
	if (p->groups[0]->where.on_device)
		TRY(run_group(p, p->groups[0], err));
	else
		p->groups[0]->chosen = false; /* again, when all items are known */
out:
	return status;
}

/*
 * Items that arrive: the first of them shows what they are, and the others are said to be like it.
 * Where the host decodes them, those that are there are a call, and the others the next.
 */
static lade_status run_arriving(lade__planner *p, lade_error *err)
{
	const lade__arrivals *a = p->call->arrivals;
	lade_status status = LADE_OK;
	while (p->there == 0 && lade__planner_wait(p, true)) {
	}
	if (p->count == 0)
		return LADE_OK;
	TRY(lade__planner_sort(p, 1, err));
	lade__group *g = p->group_count ? p->groups[0] : NULL;
	if (g) {
		const lade__group one = *g;
		g->count = a->count;
		g->in_bytes = a->in;
		g->total = a->total;
		g->largest = a->largest;
		TRY(lade__where_choose(p, g, err));
		if (g->where.on_device)
			TRY(run_group(p, g, err));
		else
			*g = one;
	}
	p->count = p->there;
out:
	return status;
}

static lade_status run_items(const lade__call *call, lade__outcome *outcome, lade_error *err)
{
	lade__planner p;
	lade_status status = lade__planner_init(&p, call, outcome, err);
	if (status != LADE_OK)
		return status;
	TRY(call->arrivals ? run_arriving(&p, err) : run_ahead(&p, err));
	TRY(lade__planner_sort(&p, p.count, err));
	for (size_t i = 0; i < p.group_count; i++)
		if (!p.groups[i]->chosen)
			TRY(lade__where_choose(&p, p.groups[i], err));
	for (size_t i = 0; i < p.group_count; i++)
		if (!p.groups[i]->ran)
			TRY(run_group(&p, p.groups[i], err));
	TRY(lade__host_run(&p, err));
out:
	lade__planner_reset(&p);
	return status;
}

lade_status lade__decode_arriving(lade_engine *engine, const lade__arrivals *arrivals,
                                  const lade_batch_options *options, lade_error *err)
{
	lade__call call = {engine, LADE_DECODE, NULL, arrivals->items, arrivals->cap, options,
	                   arrivals};
	lade__outcome outcome;
	lade_error unwanted;
	lade__outcome_init(&outcome, arrivals->results, options, &unwanted);
	lade_status status = run_items(&call, &outcome, err);
	lade__outcome_reset(&outcome);
	return status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static lade_status run_call(lade__call call, lade_result *results,
                            const lade_batch_options *caller, lade_error *err)
{
	lade_batch_options options;
	const size_t count = call.count;
	lade__given given = {.items = call.items, .results = results, .count = count};
	lade_status status = lade__call_open(&given, call.engine, caller, &options, err);
	if (status != LADE_OK || count == 0)
		return status;
	lade_engine *const engine = call.engine;
	status = lade__engine_for(engine, options.allocators, &call.engine, err);
	if (status != LADE_OK) {
		lade__given_close(&given);
		return status;
	}
	call.items = given.items;
	call.options = &options;
	lade__outcome outcome;
	lade_error unwanted;
	err = err ? err : &unwanted;
	lade__outcome_init(&outcome, given.results, &options, err);
	status = run_items(&call, &outcome, err);
	lade_status worst = lade__outcome_reset(&outcome);
	/* Where the call has failed, all of its items have. */
	for (size_t i = 0; status != LADE_OK && i < count; i++) {
		if (given.results)
			given.results[i] = (lade_result){.status = status};
		if (options.item_errors)
			options.item_errors[i] = *err;
	}
	lade__engine_done(engine, call.engine);
	lade__given_close(&given);
	return status != LADE_OK ? status : worst;
}

lade_status lade_decode_into(lade_engine *engine, const lade_spec *spec, const lade_item *items,
                             size_t count, lade_result *results,
                             const lade_batch_options *options, lade_error *err)
{
	lade__call call = {engine, LADE_DECODE, spec, items, count, NULL, NULL};
	return run_call(call, results, options, err);
}

lade_status lade_encode_into(lade_engine *engine, const lade_spec *spec, const lade_item *items,
                             size_t count, lade_result *results,
                             const lade_batch_options *options, lade_error *err)
{
	lade__call call = {engine, LADE_ENCODE, spec, items, count, NULL, NULL};
	return run_call(call, results, options, err);
}

/* What the candidates are, into those of this version. */
static lade_status explain(const lade__call *call, lade__candidates *candidates, lade_error *err)
{
	lade__planner p;
	lade_status status = lade__planner_init(&p, call, NULL, err);
	if (status != LADE_OK)
		return status;
	lade__group *g = &p.own;
	TRY(lade__planner_join(&p, g, err));
	lade__where_explain(&p, g, candidates);
	if (g->where.status != LADE_OK)
		status = lade_fail(err, g->where.status, g->where.error->offset, "%s",
		                   g->where.error->message);
	else if (candidates->count > candidates->cap)
		status = lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                   "%zu candidates, room for %zu", candidates->count,
		                   candidates->cap);
out:
	lade__planner_reset(&p);
	return status;
}

/* The same into those of a caller whose candidates have another size. */
static lade_status explain_to(const lade__call *call, lade__candidates *candidates, lade_error *err)
{
	unsigned char *to = (unsigned char *)candidates->list;
	size_t size = call->options->candidate_size, cap = candidates->cap;
	lade__candidates own = {.cap = cap};
	if (cap <= SIZE_MAX / sizeof *own.list)
		own.list = calloc(cap ? cap : 1, sizeof *own.list);
	if (!own.list)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu candidates",
		                 cap);
	lade_status status = explain(call, &own, err);
	for (size_t i = 0; i < cap && i < own.count; i++)
		lade__struct_copy(to + i * size, size, &own.list[i], sizeof *own.list);
	candidates->count = own.count;
	free(own.list);
	return status;
}

lade_status lade_explain(lade_engine *engine, const lade_call *caller, lade_candidate *candidates,
                         size_t cap, size_t *count, lade_error *err)
{
	lade_call asked;
	lade_batch_options options;
	lade_status status = lade__options_read(&asked, sizeof asked, caller, "call", err);
	if (status != LADE_OK)
		return status;
	if (!asked.spec || !count || (!candidates && cap))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 !asked.spec ? "spec"
		                 : !count    ? "count"
		                             : "candidates");
	if ((unsigned)asked.direction > LADE_DECODE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "direction %d is unknown",
		                 (int)asked.direction);
	*count = 0;
	lade__given given = {.items = asked.items, .count = asked.count};
	status = lade__call_open(&given, engine, asked.options, &options, err);
	if (status != LADE_OK)
		return status;
	lade__call call = {.engine = engine, .direction = asked.direction, .spec = asked.spec,
	                   .items = given.items, .count = given.count, .options = &options};
	lade__candidates list = {.list = candidates, .cap = cap};
	status = lade__size_given(&options.candidate_size, LADE__CANDIDATE_0_2, "candidate_size",
	                          err);
	if (status == LADE_OK)
		status = (options.candidate_size == sizeof *candidates ? explain : explain_to)(
			&call, &list, err);
	*count = list.count;
	lade__given_close(&given);
	return status;
}

static const lade_batch_options ours = {LADE__OUR_SIZES};

lade_status lade_decode(lade_engine *engine, const lade_spec *spec, lade_cspan src, lade_span dst,
                        size_t *dst_size, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size, .place = src.place};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};
	lade_result result = {0};
	lade_status status = lade_decode_into(engine, spec, &item, 1, &result, &ours, err);
	if (dst_size)
		*dst_size = result.size;
	return status;
}

lade_status lade_encode(lade_engine *engine, const lade_spec *spec, lade_cspan src, lade_span dst,
                        size_t *dst_size, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size, .place = src.place};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};
	lade_result result = {0};
	lade_status status = lade_encode_into(engine, spec, &item, 1, &result, &ours, err);
	if (dst_size)
		*dst_size = result.size;
	return status;
}
