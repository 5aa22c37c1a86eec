/*
 * cost.c: what requests of a store cost: guessed at first, then measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/store.h"

#include "base/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The share of a new measurement, once there are enough of them. */
#define SHARE (1.0 / 8)

/* The share of a latency that each request costs beside waiting: work here and at the store.
 * Without it a range would be cut for nothing. */
#define EACH 0.02

static double waits_of(const lade__cost *c, double requests)
{
	return ceil(requests / c->parallel) + EACH * requests;
}

/* Bytes a nanosecond, at this many requests. */
static double rate_of(const lade__cost *c, double requests)
{
	double lanes = requests < c->parallel ? requests : c->parallel;
	double rate = lanes * c->request_rate;
	return rate < c->store_rate ? rate : c->store_rate;
}

double lade__cost_ns(const lade__cost *c, double requests, double bytes)
{
	if (requests < 1)
		return 0;
	return c->request_ns * waits_of(c, requests) + bytes / rate_of(c, requests);
}

lade__cost lade__store_cost(lade_store *store)
{
	pthread_mutex_lock(&store->mutex);
	lade__cost cost = store->cost;
	pthread_mutex_unlock(&store->mutex);
	return cost;
}

void lade__store_is_whole(lade_store *store)
{
	pthread_mutex_lock(&store->mutex);
	store->cost.whole = true;
	pthread_mutex_unlock(&store->mutex);
}

static void approach(double *value, double sample, double share)
{
	*value += share * (sample - *value);
}

/*
 * One time cannot separate latency from rate.  What took most of the time, by what is believed so
 * far, gets the difference: so each is measured by the calls that depend on it.
 */
void lade__store_measured(lade_store *store, size_t requests, uint64_t size, uint64_t ns)
{
	double n = (double)requests, bytes = (double)size, time = ns ? (double)ns : 1;
	pthread_mutex_lock(&store->mutex);
	lade__cost *c = &store->cost;
	double rounds = waits_of(c, n);
	double waits = rounds * c->request_ns, moves = bytes / rate_of(c, n);
	double share = 1.0 / ((double)c->measured_count + 2);
	share = share > SHARE ? share : SHARE;
	if (moves < waits) {
		double sample = (time > moves ? time - moves : 0) / rounds;
		double least = time / rounds / 10;
		approach(&c->request_ns, sample > least ? sample : least, share);
	} else {
		double left = time - waits > time / 10 ? time - waits : time / 10;
		double rate = bytes / left, lanes = n < c->parallel ? n : c->parallel;
		/* Fewer requests than can run at once show what each of them gets. */
		bool few = n <= 1 || lanes < c->parallel;
		if (few)
			approach(&c->request_rate, rate / lanes, share);
		if (!few || (n > 1 && rate > c->store_rate))
			approach(&c->store_rate, rate, share);
		if (c->store_rate < c->request_rate)
			c->store_rate = c->request_rate;
		if (!few && c->request_rate * lanes < c->store_rate)
			c->request_rate = c->store_rate / lanes;
	}
	c->measured_count++;
	pthread_mutex_unlock(&store->mutex);
}

/* ---- in words ------------------------------------------------------------------------------ */

static void say(const lade__fetch *p, lade_store_plan *out)
{
	char measured[60] = "guessed", joined[100] = "none joined", cut[60] = "none split";
	if (out->measured_count)
		snprintf(measured, sizeof measured, "measured in %" PRIu64 " calls",
		         out->measured_count);
	if (p->store->ops.flags & LADE__STORE_PASSES)
		snprintf(joined, sizeof joined, "planned by the stores below");
	else if (out->merged_count)
		snprintf(joined, sizeof joined, "%zu joined over gaps of up to %" PRIu64 " bytes%s",
		         out->merged_count, out->gap_size,
		         p->cost.whole ? ", as the server gives whole values only" : "");
	else if (!(p->store->ops.flags & LADE_STORE_PARTS))
		snprintf(joined, sizeof joined, "none joined, as the store cannot");
	if (out->split_count)
		snprintf(cut, sizeof cut, "%zu split", out->split_count);
	snprintf(out->text, sizeof out->text,
	         "%.80s: %.1f us a request, %.3f GB/s for one, %.3f GB/s for many, %u at once "
	         "(%s). %zu ranges of %.3f MB: %zu requests of %.3f MB; %s, %s; %.3f ms expected.",
	         p->store->name, (double)out->request_ns / 1e3, (double)out->request_rate / 1e9,
	         (double)out->store_rate / 1e9, out->parallel, measured, out->range_count,
	         (double)out->wanted_size / 1e6, out->request_count, (double)out->moved_size / 1e6,
	         joined, cut, (double)out->expected_ns / 1e6);
}

lade_status lade_store_explain(lade_store *store, const lade_range *ranges, size_t count,
                               const lade_io_options *given, lade_store_plan *out, lade_error *err)
{
	lade_io_options options;
	lade_store_plan own = {.struct_size = sizeof own};
	const size_t first = LADE__SIZE_TO(lade_store_plan, text);
	if (!store || !out || (!ranges && count))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 !store ? "store"
		                 : out  ? "ranges"
		                        : "plan");
	if (out->struct_size < first || out->struct_size > LADE__STRUCT_SIZE_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "plan: struct_size is %zu, from %zu to %d are possible",
		                 out->struct_size, first, LADE__STRUCT_SIZE_MAX);
	lade__array array = {
		.own = (void *)(uintptr_t)ranges, .count = count, .own_size = sizeof *ranges};
	lade_status status = lade__io_options_read(&options, given, LADE__RANGE_0_2, err);
	if (status == LADE_OK)
		status = lade__array_open(&array, options.request_size, "range", err);
	if (status != LADE_OK)
		return status;
	lade__fetch p = {.store = store, .ranges = array.own, .count = count};
	status = lade__fetch_plan(&p, &options, err);
	if (status == LADE_OK) {
		own.range_count = count;
		own.request_count = p.request_count;
		own.merged_count = p.merged_count;
		own.split_count = p.split_count;
		own.wanted_size = p.wanted_size;
		own.moved_size = p.moved_size;
		own.gap_size = p.gap_size;
		own.request_ns = (uint64_t)p.cost.request_ns;
		own.request_rate = (uint64_t)(p.cost.request_rate * 1e9);
		own.store_rate = (uint64_t)(p.cost.store_rate * 1e9);
		own.parallel = p.cost.parallel;
		own.measured_count = p.cost.measured_count;
		own.expected_ns = (uint64_t)lade__cost_ns(&p.cost, (double)p.request_count,
		                                          (double)p.moved_size);
		say(&p, &own);
		size_t size = out->struct_size;
		lade__struct_copy(out, size, &own, sizeof own);
		out->struct_size = size;
		lade__fetch_free(&p);
	}
	lade__array_close(&array, false);
	return status;
}
