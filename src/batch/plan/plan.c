/*
 * plan.c: sorts the items of a call into groups.
 *
 * Groups are found by a hash table of their keys.  Most items equal the one before: a comparison
 * finds those.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/plan/plan.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static lade_status no_room(lade_error *err, size_t count)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to plan %zu items", count);
}

lade_status lade__planner_init(lade__planner *p, const lade__call *call, lade__outcome *outcome,
                               lade_error *err)
{
	unsigned threads = call->engine->threads;
	p->call = call;
	p->outcome = outcome;
	p->threads = call->options->threads && call->options->threads < threads
	                     ? call->options->threads
	                     : threads;
	p->count = call->count;
	p->there = call->arrivals ? 0 : call->count;
	p->groups = &p->own_group;
	p->group_count = p->last = p->sorted = p->bucket_count = 0;
	p->group_cap = 1;
	p->buckets = NULL;
	p->same_from = SIZE_MAX;
	p->state = call->count <= LADE__PLANNER_FEW ? p->own_state
	           : call->count > SIZE_MAX / sizeof *p->state
	                   ? NULL
	                   : malloc(call->count * sizeof *p->state);
	return p->state ? LADE_OK : no_room(err, call->count);
}

void lade__planner_reset(lade__planner *p)
{
	for (size_t i = 1; i < p->group_count; i++)
		free(p->groups[i]);
	if (p->groups != &p->own_group)
		free(p->groups);
	free(p->buckets);
	if (p->state != p->own_state)
		free(p->state);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static bool same_key(const lade__key *a, const lade__key *b)
{
	return a->spec == b->spec && a->tail == b->tail && a->device == b->device &&
	       a->in == b->in && a->out == b->out && a->too_large == b->too_large;
}

/* The bucket of a group, or the free one where it belongs. */
static uint32_t *bucket_of(const lade__planner *p, const lade__key *k)
{
	uint64_t spec = (uintptr_t)k->spec >> 4, tail = (uintptr_t)k->tail >> 4;
	uint64_t hash = (spec + 31 * tail) * 0x9E3779B97F4A7C15u >> 20;
	size_t at = hash + 31 * (size_t)(uint32_t)k->device + 8 * k->in + 2 * k->out + k->too_large;
	for (;; at++) {
		uint32_t *bucket = &p->buckets[at & (p->bucket_count - 1)];
		if (!*bucket || same_key(&p->groups[*bucket - 1]->key, k))
			return bucket;
	}
}

/* Room for one group more. */
static lade_status groups_grow(lade__planner *p, lade_error *err)
{
	size_t cap = p->group_cap < 8 ? 8 : 2 * p->group_cap;
	bool own = p->groups == &p->own_group;
	lade__group **more = cap <= LADE__GROUP_MASK / 2
	                             ? realloc(own ? NULL : p->groups, cap * sizeof *more)
	                             : NULL;
	if (more) {
		p->groups = more;
		p->groups[0] = &p->own;
	}
	uint32_t *buckets = more ? calloc(2 * cap, sizeof *buckets) : NULL;
	if (!buckets)
		return no_room(err, p->call->count);
	free(p->buckets);
	p->buckets = buckets;
	p->bucket_count = 2 * cap;
	p->group_cap = cap;
	for (size_t i = 0; i < p->group_count; i++)
		*bucket_of(p, &p->groups[i]->key) = (uint32_t)i + 1;
	return LADE_OK;
}

static void group_init(lade__group *g, const lade__key *k, size_t index)
{
	memset(g, 0, offsetof(lade__group, where));
	g->key = *k;
	g->index = (uint32_t)index;
	g->where.on_device = false;
}

static lade__group *group_new(lade__planner *p, const lade__key *k)
{
	lade__group *g = p->group_count ? malloc(sizeof *g) : &p->own;
	if (!g)
		return NULL;
	group_init(g, k, p->group_count);
	p->groups[p->group_count++] = g;
	return g;
}

static lade_status group_find(lade__planner *p, const lade__key *k, lade__group **out,
                              lade_error *err)
{
	*out = p->group_count ? p->groups[p->last] : NULL;
	/* Neighbours are mostly alike. */
	if (*out && same_key(&(*out)->key, k))
		return LADE_OK;
	if (p->group_count == p->group_cap) {
		lade_status status = groups_grow(p, err);
		if (status != LADE_OK)
			return status;
	}
	uint32_t *bucket = p->buckets ? bucket_of(p, k) : NULL;
	*out = bucket && *bucket ? p->groups[*bucket - 1] : group_new(p, k);
	if (!*out)
		return no_room(err, p->call->count);
	if (bucket)
		*bucket = (*out)->index + 1;
	p->last = (*out)->index;
	return LADE_OK;
}

/* ---- items ----------------------------------------------------------------------------------- */

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

static lade_status check_device(lade_place place, int32_t own, lade_error *err)
{
	lade__device *there;
	if (lade__side_of(place) != LADE__SIDE_DEVICE || place.device == own)
		return LADE_OK;
	return lade__device_get(place.device, &there, err);
}

/* That there are such devices, where an item has bytes on others than its own. */
static lade_status check_devices(const lade_item *item, int32_t own, lade_error *err)
{
	lade_status status = LADE_OK;
	for (size_t i = 0; i < item->src_count && status == LADE_OK; i++)
		status = check_device(item->src[i].place, own, err);
	for (size_t k = 0; k < item->output_count && status == LADE_OK; k++)
		status = check_device(item->outputs[k].dst.place, own, err);
	return status;
}

/* Whether the items with such a key stay on the host in any case: no device's limits hold. */
static bool for_host_only(const lade__planner *p, const lade__key *k)
{
	lade_where where = p->call->options->where;
	bool pinned = k->in == LADE__SIDE_PINNED && k->out == LADE__SIDE_PINNED;
	if (k->in == LADE__SIDE_DEVICE || k->out == LADE__SIDE_DEVICE)
		return false;
	return where == LADE_WHERE_HOST || (where == LADE_WHERE_AUTO && !pinned);
}

/* Counts an item to a group. */
static void add_item(lade__group *g, uint64_t source, uint64_t decoded, uint64_t largest)
{
	g->count++;
	g->in_bytes += source;
	g->total += decoded;
	g->largest = largest > g->largest ? largest : g->largest;
}

/* The key and facts of an item, or what is wrong with it. */
static lade_status look_at(const lade__planner *p, const lade_item *item, lade__key *k,
                           lade__item_facts *f, lade_error *err)
{
	const lade__call *call = p->call;
	lade_status status = lade__item_check(item, call->direction, err);
	if (status != LADE_OK)
		return status;
	lade__item_measure(item, call->direction, call->options->device, f);
	k->spec = item->spec ? item->spec : call->spec;
	k->tail = item->tail;
	k->device = f->device;
	k->in = f->in;
	k->out = f->out;
	bool host = for_host_only(p, k);
	if (!host)
		status = check_sizes(item, err);
	/* Kernels do not take it; in a group of its own it does not hinder others. */
	k->too_large = !host && f->largest > LADE_CHUNK_MAX;
	if (status == LADE_OK && !k->spec)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "neither the call nor the item has a spec");
	return status == LADE_OK && !host ? check_devices(item, k->device, err) : status;
}

/* Gives one item a group, or says what is wrong with it. */
static lade_status sort_item(lade__planner *p, size_t i, lade_error *err)
{
	const lade_item *item = &p->call->items[i];
	lade_error why;
	lade__key k;
	lade__group *g;
	lade__item_facts f;
	p->same_from = SIZE_MAX;
	p->state[i] = LADE__DONE;
	lade_status status = look_at(p, item, &k, &f, &why);
	if (status != LADE_OK) {
		lade__outcome_failed(p->outcome, i, status, &why);
		return LADE_OK;
	}
	status = group_find(p, &k, &g, err);
	if (status != LADE_OK)
		return status;
	p->state[i] = g->index;
	if (lade__item_is_segment(item) && !k.too_large)
		p->same_from = i;
	add_item(g, f.source, f.decoded, f.largest);
	return LADE_OK;
}

/* Counts an item that is like the one before it. */
static void add_same(const lade__planner *p, lade__group *g, const lade_item *item)
{
	bool decode = p->call->direction == LADE_DECODE;
	uint64_t in = item->src->size, said = item->src->decoded_size;
	uint64_t decoded = decode ? item->dst.size : in;
	uint64_t largest = decoded > in ? decoded : in;
	add_item(g, in, decoded, decode && said > largest ? said : largest);
}

lade_status lade__planner_sort(lade__planner *p, size_t end, lade_error *err)
{
	for (; p->sorted < end; p->sorted++) {
		size_t i = p->sorted;
		const lade_item *item = &p->call->items[i];
		if (p->same_from < i && lade__item_same_key(item, item - 1)) {
			p->state[i] = (uint32_t)p->last;
			add_same(p, p->groups[p->last], item);
			continue;
		}
		lade_status status = sort_item(p, i, err);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

bool lade__planner_wait(lade__planner *p, bool idle)
{
	const lade__arrivals *a = p->call->arrivals;
	bool end = !a;
	if (!a || p->there == p->count)
		return false;
	size_t before = p->there;
	p->there = a->wait(a->ctx, before, &end);
	if (end || (idle && p->there == before))
		p->count = p->there;
	return p->there > before || p->there == p->count;
}

lade_status lade__planner_next(lade__planner *p, lade__group *g, size_t *index, lade_error *err)
{
	*index = SIZE_MAX;
	while (g->next < p->there) {
		if (g->next == p->sorted) {
			size_t left = p->there - p->sorted;
			size_t step = left < LADE__PLANNER_STEP ? left : LADE__PLANNER_STEP;
			lade_status status = lade__planner_sort(p, p->sorted + step, err);
			if (status != LADE_OK)
				return status;
		}
		if (p->state[g->next++] == g->index) {
			*index = g->next - 1;
			return LADE_OK;
		}
	}
	return LADE_OK;
}

void lade__planner_to_host(lade__planner *p, lade__group *g, size_t index)
{
	p->state[index] = LADE__FOR_HOST | g->index;
	g->host_count++;
}

lade_status lade__planner_join(const lade__planner *p, lade__group *g, lade_error *err)
{
	group_init(g, &(lade__key){.spec = p->call->spec, .device = p->call->options->device}, 0);
	for (size_t i = 0; i < p->count; i++) {
		lade__key k;
		lade__item_facts f;
		lade_status status = look_at(p, &p->call->items[i], &k, &f, err);
		if (status != LADE_OK)
			return status;
		if (i == 0)
			g->key = (lade__key){.spec = p->call->spec, .device = k.device,
			                     .in = k.in, .out = k.out};
		add_item(g, f.source, f.decoded, f.largest);
	}
	return LADE_OK;
}
