/*
 * gpu_group.c: which items of a call go which way.
 *
 * Items of one spec whose bytes lie alike make a group, and a group goes one way: of those that can
 * do it the one with the lowest expected time is taken: what the implementations say, and the
 * copies between the host and the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/gpu/group.h"

#include "base/support.h"
#include "engine/spec.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- where things lie ------------------------------------------------------------------------ */

static lade__lies lies_at(lade_place place)
{
	return place.kind == LADE_HOST     ? LADE__ON_HOST
	       : place.kind == LADE_PINNED ? LADE__IN_PINNED
	                                   : LADE__NEAR;
}

bool lade__gpu_concerned(const lade_item *items, size_t count, const lade_batch_options *options)
{
	if (options->where == LADE_WHERE_DEVICE)
		return true;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; items[i].outputs && k < items[i].output_count; k++)
			if (items[i].outputs[k].dst.place.kind > LADE_PINNED)
				return true;
		bool pinned = options->where == LADE_WHERE_AUTO && items[i].src &&
		              items[i].src_count && items[i].src[0].place.kind == LADE_PINNED &&
		              items[i].dst.place.kind == LADE_PINNED;
		if (pinned || items[i].dst.place.kind > LADE_PINNED)
			return true;
		for (size_t k = 0; items[i].src && k < items[i].src_count; k++)
			if (items[i].src[k].place.kind > LADE_PINNED)
				return true;
	}
	return false;
}

static uint64_t source_bytes(const lade_item *item, lade_direction direction)
{
	uint64_t total = 0;
	if (direction == LADE_ENCODE && item->layout)
		return lade__item_bytes(item, direction);
	for (size_t i = 0; i < item->src_count; i++)
		total += item->src[i].size;
	return total;
}

/* The output that says where an item's result lies: of several the first in a device's memory, else
 * in managed, pageable, or pinned memory. */
static lade_place output_place(const lade_item *item)
{
	static const int rank[] = {[LADE_PINNED] = 0, [LADE_HOST] = 1, [LADE_MANAGED] = 2,
	                           [LADE_DEVICE] = 3};
	lade_place place = lade__output_at(item, 0).dst.place;
	for (size_t i = 1; i < item->output_count; i++) {
		lade_place other = item->outputs[i].dst.place;
		if (rank[other.kind] > rank[place.kind])
			place = other;
	}
	return place;
}

/* The device that an item lies on; the options' where it lies on none. */
static int32_t device_of(const lade_item *item, const lade_batch_options *options)
{
	lade_place place = output_place(item);
	if (lies_at(place) == LADE__NEAR)
		return place.device;
	for (size_t i = 0; i < item->src_count; i++)
		if (lies_at(item->src[i].place) == LADE__NEAR)
			return item->src[i].place.device;
	return options->device;
}

static lade__lies source_lies(const lade_item *item)
{
	lade__lies most = LADE__ON_HOST;
	for (size_t i = 0; i < item->src_count; i++) {
		lade__lies at = lies_at(item->src[i].place);
		if (i == 0 || at == LADE__NEAR || (at == LADE__ON_HOST && most == LADE__IN_PINNED))
			most = at;
		if (at == LADE__NEAR)
			break;
	}
	return most;
}

/* The bytes of an item's larger side. */
static uint64_t item_bytes(const lade_item *item, lade_direction direction)
{
	uint64_t most = source_bytes(item, direction);
	if (direction == LADE_ENCODE)
		return most;
	uint64_t decoded = lade__item_bytes(item, direction);
	most = decoded > most ? decoded : most;
	for (size_t i = 0; i < item->src_count; i++)
		most = item->src[i].decoded_size > most ? item->src[i].decoded_size : most;
	return most;
}

/* Sizes that no memory has would overflow where room for copies is counted. */
static lade_status check_sizes(const lade_item *item, lade_error *err)
{
	size_t left = SIZE_MAX / 8;
	bool fits = item->dst.size <= left;
	for (size_t i = 0; fits && i < item->src_count; i++) {
		fits = item->src[i].size <= left;
		left -= fits ? item->src[i].size : 0;
	}
	return fits ? LADE_OK
	            : lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
	                        "its spans have more than %zu bytes", SIZE_MAX / 8);
}

/* That there are such devices, where an item lies on others than its own. */
static lade_status check_devices(const lade_item *item, int32_t own, lade_error *err)
{
	lade__device *there;
	lade_status status = LADE_OK;
	for (size_t i = 0; i < item->src_count && status == LADE_OK; i++) {
		lade_place place = item->src[i].place;
		if (lies_at(place) == LADE__NEAR && place.device != own)
			status = lade__device_get(place.device, &there, err);
	}
	for (size_t k = 0; k < item->output_count && status == LADE_OK; k++) {
		lade_place place = item->outputs[k].dst.place;
		if (lies_at(place) == LADE__NEAR && place.device != own)
			status = lade__device_get(place.device, &there, err);
	}
	return status;
}

static void group_add(lade__gpu_group *g, lade_direction direction, const lade_item *item)
{
	uint64_t in = source_bytes(item, direction), decoded = lade__item_bytes(item, direction);
	g->count++;
	g->in_bytes += in;
	g->total += decoded;
	if (item_bytes(item, direction) > g->largest)
		g->largest = item_bytes(item, direction);
}

/* Likewise, of one segment. */
static void group_add_like(lade__gpu_group *g, lade_direction direction, const lade_item *item)
{
	uint64_t in = item->src->size, told = item->src->decoded_size;
	uint64_t decoded = direction == LADE_DECODE ? item->dst.size : in;
	uint64_t most = decoded > in ? decoded : in;
	if (direction == LADE_DECODE && told > most)
		most = told;
	g->count++;
	g->in_bytes += in;
	g->total += decoded;
	g->largest = most > g->largest ? most : g->largest;
}

/* ---- which way ---------------------------------------------------------------------------- */

lade_workload lade__gpu_workload(const lade__gpu_calling *c, const lade__gpu_group *g)
{
	unsigned threads = c->options->threads && c->options->threads < c->engine->threads
	                           ? c->options->threads
	                           : c->engine->threads;
	lade_kind kind[] = {LADE_HOST, LADE_PINNED, LADE_DEVICE};
	double all = lade__gpu_all(c);
	return (lade_workload){.direction = c->direction,
	                       .count = (size_t)((double)g->count * all),
	                       .total = (uint64_t)((double)g->total * all),
	                       .largest = (size_t)g->largest,
	                       .src = {kind[g->key.in], g->key.device < 0 ? 0 : g->key.device},
	                       .dst = {kind[g->key.out], g->key.device < 0 ? 0 : g->key.device},
	                       .threads = threads,
	                       .has_dict = c->options->dict != NULL,
	                       .strict = (c->options->flags & LADE_BATCH_STRICT) != 0,
	                       .cpu = c->engine->cpu};
}

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

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Why the chosen implementation of a stage is not taken: its group goes the other way. */
static void other_way(const lade__gpu_calling *c, const lade__gpu_group *g, bool near,
                      bool may_device, lade_candidate *one)
{
	bool host = one->place != LADE_DEVICE;
	double own = host ? g->host_cost : g->device_cost;
	double other = host ? g->device_cost : g->host_cost;
	one->chosen = false;
	if (!host && !may_device)
		snprintf(one->reason, sizeof one->reason, "%s",
		         c->options->where == LADE_WHERE_HOST
		                 ? "the host is asked"
		                 : "the items lie on the host, and no device is asked");
	else if (host && c->options->where == LADE_WHERE_DEVICE)
		snprintf(one->reason, sizeof one->reason, "the device is asked");
	else if ((host ? g->host_status : g->device_status) != LADE_OK)
		snprintf(one->reason, sizeof one->reason, "%.80s",
		         host ? g->host_error.message : g->device_error.message);
	else if (!near && own < other)
		snprintf(one->reason, sizeof one->reason,
		         "with copies %.0f ns, the host %.0f: nobody asked, and that gains little",
		         own, other);
	else
		snprintf(one->reason, sizeof one->reason, "with copies %.0f ns, the other way %.0f",
		         own, other);
}

void lade__gpu_choose(const lade__gpu_calling *c, lade__gpu_group *g,
                      lade__candidates *candidates)
{
	lade_workload w = lade__gpu_workload(c, g);
	bool may_host = c->options->where != LADE_WHERE_DEVICE;
	bool may_device = c->options->where != LADE_WHERE_HOST;
	bool near = g->key.in == LADE__NEAR || g->key.out == LADE__NEAR;
	double all = lade__gpu_all(c);
	uint64_t out_bytes = c->direction == LADE_DECODE ? g->total : g->total / 2;
	lade__device *there = NULL;
	lade_error why;

	g->host = lade__route_of(g->key.spec, c->direction, LADE_HOST);
	g->dev = lade__route_of(g->key.spec, c->direction, LADE_DEVICE);
	g->host_status = lade__route_make(c->engine, &w, &g->host, candidates, &g->host_error);
	size_t of_host = candidates ? candidates->count : 0;
	/* That items are too large for kernels is told below. */
	w.largest = lade__gpu_largest(w.largest);
	g->device_status = lade__route_make(c->engine, &w, &g->dev, candidates, &g->device_error);
	g->dev.ignore_checksums = (c->options->flags & LADE_BATCH_IGNORE_CHECKSUMS) != 0;
	if (near && lade__device_get(g->key.device, &there, &why) != LADE_OK) {
		g->host_status = g->device_status = lade_fail(
			&g->host_error, why.status, why.offset, "its bytes lie on device %d: %s",
			(int)g->key.device, why.message);
		g->device_error = g->host_error;
	}
	/* What lies on the host goes to a device only where it is asked for, or pinned anyway. */
	if (!near && c->options->where == LADE_WHERE_AUTO &&
	    (g->key.in != LADE__IN_PINNED || g->key.out != LADE__IN_PINNED))
		may_device = false;
	if (g->device_status == LADE_OK && g->key.huge && g->count)
		g->device_status = lade_fail(&g->device_error, LADE_E_LIMIT, LADE_NO_OFFSET,
		                             "an item of %llu bytes, kernels take %llu",
		                             (unsigned long long)g->largest,
		                             (unsigned long long)LADE__GPU_LARGEST);
	if (g->device_status == LADE_OK && may_device)
		g->device_status = device_ready(g->key.device, &g->device_error);

	if (may_device && !there)
		lade__device_get(g->key.device, &there, NULL);
	const lade__tuning *t = lade__tuning_of(there);
	double rate = t->link_rate;
	double in = (double)g->in_bytes * all, out = (double)out_bytes * all;
	unsigned copiers = w.threads < 4 ? w.threads : 4;
	g->host_cost = g->host.cost + (near ? t->call_cost : 0) +
	               (g->key.in == LADE__NEAR ? in / rate : 0) +
	               (g->key.out == LADE__NEAR ? out / rate : 0);
	double copies = larger(g->key.in == LADE__NEAR ? 0 : in / rate,
	                       g->key.out == LADE__NEAR ? 0 : out / rate);
	g->device_cost = t->call_cost + larger(g->dev.cost, copies) +
	                 (g->key.in == LADE__ON_HOST ? in / t->gather_rate / copiers : 0) +
	                 (g->key.out == LADE__ON_HOST ? out / t->gather_rate / copiers : 0);
	double asked = near ? g->device_cost : (g->device_cost + t->call_cost) * t->detour;
	g->on_device = may_device && g->device_status == LADE_OK &&
	               (!may_host || g->host_status != LADE_OK || asked < g->host_cost);

	for (size_t i = 0; candidates && i < candidates->count && i < candidates->cap; i++)
		if (candidates->list[i].chosen && (i >= of_host) != g->on_device)
			other_way(c, g, near, may_device, &candidates->list[i]);
}

/* ---- groups ------------------------------------------------------------------------------- */

static bool same_key(const lade__gpu_key *a, const lade__gpu_key *b)
{
	return a->spec == b->spec && a->device == b->device && a->in == b->in && a->out == b->out &&
	       a->huge == b->huge;
}

static lade_status no_room(lade_error *err, size_t count)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to plan %zu items", count);
}

/* The seat of a group, or the free one where it belongs. */
static uint32_t *seat_of(const lade__gpu_calling *c, const lade__gpu_key *k)
{
	uint64_t hash = (uint64_t)((uintptr_t)k->spec >> 4) * 0x9E3779B97F4A7C15u >> 20;
	size_t at = hash + 31 * (size_t)(uint32_t)k->device + 8 * k->in + 2 * k->out + k->huge;
	for (;; at++) {
		uint32_t *seat = &c->seats[at & (c->seat_count - 1)];
		if (!*seat || same_key(&c->groups[*seat - 1]->key, k))
			return seat;
	}
}

/* Room for one group more. */
static lade_status groups_grow(lade__gpu_calling *c, lade_error *err)
{
	size_t cap = c->group_cap ? 2 * c->group_cap : 8;
	lade__gpu_group **more =
		cap < UINT32_MAX / 4 ? realloc(c->groups, cap * sizeof *more) : NULL;
	if (more)
		c->groups = more;
	uint32_t *seats = more ? calloc(2 * cap, sizeof *seats) : NULL;
	if (!seats)
		return no_room(err, c->count);
	free(c->seats);
	c->seats = seats;
	c->seat_count = 2 * cap;
	c->group_cap = cap;
	for (size_t i = 0; i < c->group_count; i++)
		*seat_of(c, &c->groups[i]->key) = (uint32_t)i + 1;
	return LADE_OK;
}

static lade_status group_find(lade__gpu_calling *c, const lade__gpu_key *k, lade__gpu_group **out,
                              lade_error *err)
{
	/* Neighbours are mostly alike. */
	if (c->group_count && same_key(&c->groups[c->last]->key, k)) {
		*out = c->groups[c->last];
		return LADE_OK;
	}
	if (c->group_count == c->group_cap) {
		lade_status status = groups_grow(c, err);
		if (status != LADE_OK)
			return status;
	}
	uint32_t *seat = seat_of(c, k);
	if (!*seat) {
		lade__gpu_group *g = calloc(1, sizeof *g);
		if (!g)
			return no_room(err, c->count);
		g->key = *k;
		g->index = (uint32_t)c->group_count;
		c->groups[c->group_count] = g;
		*seat = (uint32_t)++c->group_count;
	}
	c->last = *seat - 1;
	*out = c->groups[c->last];
	return LADE_OK;
}

/* Gives one item a group, or tells what is wrong with it. */
static lade_status sort_item(lade__gpu_calling *c, size_t i, lade_error *err)
{
	const lade_item *item = &c->items[i];
	lade_error error;
	lade__gpu_key k = {.spec = item->spec ? item->spec : c->spec};
	lade_status status = lade__item_check(item, c->direction, &error);
	if (status == LADE_OK)
		status = check_sizes(item, &error);
	if (status == LADE_OK && !k.spec)
		status = lade_fail(&error, LADE_E_ARG, LADE_NO_OFFSET,
		                   "neither the call nor the item has a spec");
	c->group_of[i] = LADE__SETTLED;
	c->plain = SIZE_MAX;
	if (status == LADE_OK) {
		k.device = device_of(item, c->options);
		status = check_devices(item, k.device, &error);
	}
	if (status != LADE_OK) {
		lade__outcome_failed(c->outcome, i, status, &error);
		return LADE_OK;
	}
	k.in = source_lies(item);
	k.out = lies_at(output_place(item));
	/* Kernels do not take it; in a group of its own it costs the others nothing. */
	k.huge = item_bytes(item, c->direction) > LADE__GPU_LARGEST;
	lade__gpu_group *g;
	status = group_find(c, &k, &g, err);
	if (status != LADE_OK)
		return status;
	c->group_of[i] = g->index;
	if (lade__item_is_plain(item) && !k.huge)
		c->plain = i;
	group_add(g, c->direction, item);
	return LADE_OK;
}

lade_status lade__gpu_sort(lade__gpu_calling *c, size_t end, lade_error *err)
{
	for (; c->sorted < end; c->sorted++) {
		size_t i = c->sorted;
		const lade_item *item = &c->items[i];
		if (c->plain < i && lade__item_is_like(item, item - 1)) {
			c->group_of[i] = (uint32_t)c->last;
			group_add_like(c->groups[c->last], c->direction, item);
			continue;
		}
		lade_status status = sort_item(c, i, err);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

lade_status lade__gpu_join(const lade__gpu_calling *c, lade__gpu_group *g, lade_error *err)
{
	for (size_t i = 0; i < c->count; i++) {
		const lade_item *item = &c->items[i];
		lade_status status = lade__item_check(item, c->direction, err);
		if (status != LADE_OK)
			return status;
		if (i == 0) {
			g->key.in = source_lies(item);
			g->key.out = lies_at(output_place(item));
			g->key.device = device_of(item, c->options);
		}
		group_add(g, c->direction, item);
	}
	return LADE_OK;
}
