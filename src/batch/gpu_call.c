/*
 * gpu_call.c: calls that have to do with a device: which items go where.
 *
 * Items of one spec whose bytes lie alike make a group, and a group goes one way:
 *
 *     host    lies on the host, and is done there: as calls without a device
 *     bridge  is done on the host, of what lies on a device
 *     device  is done by kernels
 *
 * Of the ways that can do it the one with the lowest expected time is taken: what the
 * implementations say, and the copies between the host and the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/support.h"
#include "base/try.h"
#include "batch/gpu.h"
#include "batch/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes a nanosecond: what a link carries (a PCIe 5 x16 link: 55, older ones half and a quarter of
 * it), and what one thread copies between pageable and pinned memory. */
#define LINK_RATE 40.0
#define GATHER_RATE 8.0
/* What a call on a device takes beside kernels and copies, in nanoseconds. */
#define CALL_COST 30e3
/* What lies on the host goes there when that is faster by this much: it crosses the link twice, and
 * who named no device may have it busy with other work. */
#define DETOUR 2.0

typedef enum lies { ON_HOST, PINNED, NEAR } lies;

typedef struct group {
	const lade_spec *spec;
	int32_t device; /* -1: none is meant */
	lies in, out;
	bool huge; /* of items that are too large for kernels; they do not spoil the others */
	size_t count;
	uint64_t in_bytes, total, largest; /* encoded or plain bytes in; decoded ones */
	lade_status host_status, device_status;
	lade_error host_error, device_error;
	lade__route host, dev;
	double host_cost, device_cost;
	bool on_device;
	lade__gpu_unit *units;
	size_t unit_count, unit_cap;
	size_t *own, own_count; /* the items that these are of */
	lade_item *bridge;      /* those that go over the bridge */
	size_t *bridge_index, bridge_count;
} group;

/* In place of a group's index: an item that has failed or found its way already, and one that the
 * host does of a group that a device does. */
#define SETTLED UINT32_MAX
#define FOR_HOST (UINT32_MAX - 1)

typedef struct call {
	lade_engine *engine;
	lade_direction direction;
	const lade_spec *spec;
	const lade_item *items;
	size_t count;
	const lade_batch_options *options;
	lade__outcome *outcome;
	group *groups;
	size_t group_count, group_cap, last;
	uint32_t *seats; /* a hash table of the groups' index + 1, at most half full */
	size_t seat_count;
	uint32_t *group_of;   /* by item: index, SETTLED or FOR_HOST */
	lade__gpu_done *done; /* by item; NULL: no group is a device's */
} call;

/* ---- where things lie ------------------------------------------------------------------------ */

static lies lies_at(lade_place place)
{
	return place.kind == LADE_HOST ? ON_HOST : place.kind == LADE_PINNED ? PINNED : NEAR;
}

bool lade__gpu_concerned(const lade_item *items, size_t count, const lade_batch_options *options)
{
	if (options->where == LADE_WHERE_DEVICE)
		return true;
	for (size_t i = 0; i < count; i++) {
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

static uint64_t source_bytes(const lade_item *item)
{
	uint64_t total = 0;
	for (size_t i = 0; i < item->src_count; i++)
		total += item->src[i].size;
	return total;
}

/* The device that an item lies on; the options' where it lies on none. */
static int32_t device_of(const lade_item *item, const lade_batch_options *options)
{
	if (lies_at(item->dst.place) == NEAR)
		return item->dst.place.device;
	for (size_t i = 0; i < item->src_count; i++)
		if (lies_at(item->src[i].place) == NEAR)
			return item->src[i].place.device;
	return options->device;
}

static lies source_lies(const lade_item *item)
{
	lies most = ON_HOST;
	for (size_t i = 0; i < item->src_count; i++) {
		lies at = lies_at(item->src[i].place);
		if (i == 0 || at == NEAR || (at == ON_HOST && most == PINNED))
			most = at;
		if (at == NEAR)
			break;
	}
	return most;
}

/* The bytes of an item's larger side. */
static uint64_t item_bytes(const lade_item *item, lade_direction direction)
{
	uint64_t in = source_bytes(item);
	return direction == LADE_DECODE && item->dst.size > in ? item->dst.size : in;
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
		if (lies_at(place) == NEAR && place.device != own)
			status = lade__device_get(place.device, &there, err);
	}
	return status;
}

static void group_add(group *g, lade_direction direction, const lade_item *item)
{
	uint64_t in = source_bytes(item), decoded = direction == LADE_DECODE ? item->dst.size : in;
	g->count++;
	g->in_bytes += in;
	g->total += decoded;
	if (item_bytes(item, direction) > g->largest)
		g->largest = item_bytes(item, direction);
}

/* ---- which way ---------------------------------------------------------------------------- */

static lade_workload workload_of(const call *c, const group *g)
{
	unsigned threads = c->options->threads && c->options->threads < c->engine->threads
	                           ? c->options->threads
	                           : c->engine->threads;
	lade_kind kind[] = {LADE_HOST, LADE_PINNED, LADE_DEVICE};
	return (lade_workload){.direction = c->direction,
	                       .count = g->count,
	                       .total = g->total,
	                       .largest = (size_t)g->largest,
	                       .src = {kind[g->in], g->device < 0 ? 0 : g->device},
	                       .dst = {kind[g->out], g->device < 0 ? 0 : g->device},
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

static void choose(const call *c, group *g, lade_candidate *candidates, size_t cap, size_t *listed)
{
	lade_workload w = workload_of(c, g);
	size_t of_host = 0, of_device = 0;
	bool may_host = c->options->where != LADE_WHERE_DEVICE;
	bool may_device = c->options->where != LADE_WHERE_HOST;
	bool near = g->in == NEAR || g->out == NEAR;
	uint64_t out_bytes = c->direction == LADE_DECODE ? g->total : g->total / 2;
	lade__device *there;
	lade_error why;

	g->host_status = lade__route_make(c->engine, g->spec, c->direction, LADE_HOST, &w, &g->host,
	                                  candidates, cap, &of_host, &g->host_error);
	size_t left = of_host < cap ? cap - of_host : 0;
	/* That items are too large for kernels is told below. */
	w.largest = lade__gpu_largest(w.largest);
	g->device_status = lade__route_make(c->engine, g->spec, c->direction, LADE_DEVICE, &w,
	                                    &g->dev, left ? candidates + of_host : NULL, left,
	                                    &of_device, &g->device_error);
	if (near && lade__device_get(g->device, &there, &why) != LADE_OK) {
		g->host_status = g->device_status =
			lade_fail(&g->host_error, why.status, why.offset,
		                  "its bytes lie on device %d: %s", (int)g->device, why.message);
		g->device_error = g->host_error;
	}
	/* What lies on the host goes to a device only where it is asked for, or pinned anyway. */
	if (!near && c->options->where == LADE_WHERE_AUTO && (g->in != PINNED || g->out != PINNED))
		may_device = false;
	if (g->device_status == LADE_OK && g->largest > LADE__GPU_CHUNK_MAX && g->count)
		g->device_status =
			lade_fail(&g->device_error, LADE_E_LIMIT, LADE_NO_OFFSET,
		                  "an item of %llu bytes, kernels take %llu",
		                  (unsigned long long)g->largest,
		                  (unsigned long long)LADE__GPU_CHUNK_MAX);
	if (g->device_status == LADE_OK && may_device)
		g->device_status = device_ready(g->device, &g->device_error);

	double in = (double)g->in_bytes, out = (double)out_bytes;
	unsigned copiers = w.threads < 4 ? w.threads : 4;
	g->host_cost = g->host.cost + (near ? CALL_COST : 0) +
	               (g->in == NEAR ? in / LINK_RATE : 0) +
	               (g->out == NEAR ? out / LINK_RATE : 0);
	g->device_cost =
		CALL_COST + larger(g->dev.cost, larger(g->in == NEAR ? 0 : in / LINK_RATE,
	                                               g->out == NEAR ? 0 : out / LINK_RATE));
	g->device_cost += (g->in == ON_HOST ? in / GATHER_RATE / copiers : 0) +
	                  (g->out == ON_HOST ? out / GATHER_RATE / copiers : 0);
	g->on_device = may_device && g->device_status == LADE_OK &&
	               (!may_host || g->host_status != LADE_OK ||
	                g->device_cost * (near ? 1 : DETOUR) < g->host_cost);

	for (size_t i = 0; i < of_host + of_device && i < cap; i++) {
		lade_candidate *one = &candidates[i];
		if (one->chosen && (i >= of_host) != g->on_device) {
			one->chosen = false;
			if (i >= of_host && !may_device)
				snprintf(one->reason, sizeof one->reason, "%s",
				         c->options->where == LADE_WHERE_HOST
				                 ? "the host is asked"
				                 : "the items lie on the host, and no device is "
				                   "asked");
			else if (i < of_host && !may_host)
				snprintf(one->reason, sizeof one->reason, "the device is asked");
			else if (i < of_host && g->host_status != LADE_OK)
				snprintf(one->reason, sizeof one->reason, "%.80s",
				         g->host_error.message);
			else if (i >= of_host && g->device_status != LADE_OK)
				snprintf(one->reason, sizeof one->reason, "%.80s",
				         g->device_error.message);
			else
				snprintf(one->reason, sizeof one->reason,
				         "with copies %.0f ns, the other way %.0f",
				         i < of_host ? g->host_cost : g->device_cost,
				         i < of_host ? g->device_cost : g->host_cost);
		}
	}
	if (listed)
		*listed = of_host + of_device;
}

/* ---- groups ------------------------------------------------------------------------------- */

static bool same_group(const group *a, const group *b)
{
	return a->spec == b->spec && a->device == b->device && a->in == b->in && a->out == b->out &&
	       a->huge == b->huge;
}

/* The seat of a group, or the free one where it belongs. */
static uint32_t *seat_of(const call *c, const group *g)
{
	uint64_t hash = (uint64_t)((uintptr_t)g->spec >> 4) * 0x9E3779B97F4A7C15u >> 20;
	size_t at = hash + 31 * (size_t)(uint32_t)g->device + 8 * g->in + 2 * g->out + g->huge;
	for (;; at++) {
		uint32_t *seat = &c->seats[at & (c->seat_count - 1)];
		if (!*seat || same_group(&c->groups[*seat - 1], g))
			return seat;
	}
}

/* Room for one group more. */
static lade_status groups_grow(call *c, lade_error *err)
{
	size_t cap = c->group_cap ? 2 * c->group_cap : 8;
	group *more = cap < UINT32_MAX / 4 ? realloc(c->groups, cap * sizeof *more) : NULL;
	if (more)
		c->groups = more;
	uint32_t *seats = more ? calloc(2 * cap, sizeof *seats) : NULL;
	if (!seats)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to plan %zu items",
		                 c->count);
	free(c->seats);
	c->seats = seats;
	c->seat_count = 2 * cap;
	c->group_cap = cap;
	for (size_t i = 0; i < c->group_count; i++)
		*seat_of(c, &c->groups[i]) = (uint32_t)i + 1;
	return LADE_OK;
}

static lade_status group_find(call *c, const group *key, size_t *index, lade_error *err)
{
	/* Neighbours are mostly alike. */
	*index = c->last;
	if (c->group_count && same_group(&c->groups[c->last], key))
		return LADE_OK;
	if (c->group_count == c->group_cap) {
		lade_status status = groups_grow(c, err);
		if (status != LADE_OK)
			return status;
	}
	uint32_t *seat = seat_of(c, key);
	if (!*seat) {
		c->groups[c->group_count] = *key;
		*seat = (uint32_t)++c->group_count;
	}
	*index = c->last = *seat - 1;
	return LADE_OK;
}

static lade_status make_groups(call *c, lade_error *err)
{
	c->group_of = malloc(c->count * sizeof *c->group_of);
	if (!c->group_of)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to plan %zu items",
		                 c->count);
	for (size_t i = 0; i < c->count; i++) {
		const lade_item *item = &c->items[i];
		lade_error error;
		group key = {.spec = item->spec ? item->spec : c->spec};
		lade_status status = lade__item_check(item, c->direction, &error);
		if (status == LADE_OK)
			status = check_sizes(item, &error);
		if (status == LADE_OK && !key.spec)
			status = lade_fail(&error, LADE_E_ARG, LADE_NO_OFFSET,
			                   "neither the call nor the item has a spec");
		c->group_of[i] = SETTLED;
		if (status == LADE_OK) {
			key.device = device_of(item, c->options);
			status = check_devices(item, key.device, &error);
		}
		if (status != LADE_OK) {
			lade__outcome_failed(c->outcome, i, status, &error);
			continue;
		}
		key.in = source_lies(item);
		key.out = lies_at(item->dst.place);
		key.huge = item_bytes(item, c->direction) > LADE__GPU_CHUNK_MAX;
		size_t index;
		status = group_find(c, &key, &index, err);
		if (status != LADE_OK)
			return status;
		c->group_of[i] = (uint32_t)index;
		group_add(&c->groups[index], c->direction, item);
	}
	for (size_t i = 0; i < c->group_count; i++)
		choose(c, &c->groups[i], NULL, 0, NULL);
	return LADE_OK;
}

/* ---- sorting items to their ways ---------------------------------------------------------- */

static lade_status no_room(lade_error *err, size_t count)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu items", count);
}

static lade_status add_units(call *c, group *g, size_t index, lade_status *own, lade_error *error,
                             lade_error *err)
{
	const lade_item *item = &c->items[index];
	size_t want = item->src_count ? item->src_count : 1, n = 0;
	if (want > g->unit_cap - g->unit_count) {
		size_t cap = g->unit_count + want > 2 * g->unit_cap ? g->unit_count + want
		                                                    : 2 * g->unit_cap;
		if (cap < g->count)
			cap = g->count;
		lade__gpu_unit *more = cap > SIZE_MAX / sizeof *more
		                               ? NULL
		                               : realloc(g->units, cap * sizeof *more);
		if (!more)
			return no_room(err, c->count);
		g->units = more;
		g->unit_cap = cap;
	}
	size_t bound = c->direction == LADE_ENCODE
	                       ? lade_spec_bound(g->spec, item->src_count ? item->src[0].size : 0)
	                       : 0;
	*own = lade__gpu_units(item, index, c->direction, g->device, bound,
	                       g->units + g->unit_count, &n, error);
	if (*own != LADE_OK)
		return LADE_OK;
	if (!g->own)
		g->own = malloc(g->count * sizeof *g->own);
	if (!g->own)
		return no_room(err, c->count);
	g->own[g->own_count++] = index;
	g->unit_count += n;
	return LADE_OK;
}

static lade_status add_bridge(call *c, group *g, size_t index, lade_error *err)
{
	if (!g->bridge) {
		g->bridge = malloc(g->count * sizeof *g->bridge);
		g->bridge_index = malloc(g->count * sizeof *g->bridge_index);
		if (!g->bridge || !g->bridge_index)
			return no_room(err, c->count);
	}
	g->bridge[g->bridge_count] = c->items[index];
	g->bridge_index[g->bridge_count++] = index;
	return LADE_OK;
}

/* Sorts the items of groups that a device is concerned with; the others are left to the host. */
static lade_status sort_items(call *c, lade_error *err)
{
	for (size_t i = 0; i < c->count; i++) {
		if (c->group_of[i] == SETTLED)
			continue;
		group *g = &c->groups[c->group_of[i]];
		bool near = g->in == NEAR || g->out == NEAR;
		lade_status status = g->device_status;
		lade_error error = g->device_error;
		if (g->on_device) {
			lade_status failed = add_units(c, g, i, &status, &error, err);
			if (failed != LADE_OK)
				return failed;
			if (status == LADE_OK)
				continue;
		}
		bool host = c->options->where != LADE_WHERE_DEVICE &&
		            (!g->on_device || status == LADE_E_UNSUPPORTED);
		if (host && g->host_status != LADE_OK) {
			status = g->host_status;
			error = g->host_error;
			host = false;
		}
		if (host && near) {
			lade_status failed = add_bridge(c, g, i, err);
			if (failed != LADE_OK)
				return failed;
			c->group_of[i] = SETTLED;
		} else if (!host) {
			lade__outcome_failed(c->outcome, i, status, &error);
			c->group_of[i] = SETTLED;
		} else if (g->on_device) {
			c->group_of[i] = FOR_HOST;
		}
	}
	return LADE_OK;
}

/* ---- the host's own ----------------------------------------------------------------------- */

static bool is_hosts(const call *c, size_t i)
{
	if (c->group_of[i] >= FOR_HOST)
		return c->group_of[i] == FOR_HOST;
	const group *g = &c->groups[c->group_of[i]];
	return !g->on_device && g->in != NEAR && g->out != NEAR;
}

static lade_status run_host(call *c, lade_error *err)
{
	size_t n = 0;
	lade_status status = LADE_OK;
	for (size_t i = 0; i < c->count; i++)
		n += is_hosts(c, i);
	if (n == 0)
		return LADE_OK;
	lade_item *items = malloc(n * sizeof *items);
	size_t *index = malloc(n * sizeof *index);
	if (items && index) {
		n = 0;
		for (size_t i = 0; i < c->count; i++) {
			if (!is_hosts(c, i))
				continue;
			items[n] = c->items[i];
			index[n++] = i;
		}
		status = lade__host_call(c->engine, c->direction, c->spec, items, n, index,
		                         c->options, c->outcome, err);
	} else {
		status = no_room(err, c->count);
	}
	free(items);
	free(index);
	return status;
}

/* ---- a device's --------------------------------------------------------------------------- */

lade_status lade__gpu_fetch(int32_t device, const void *from, size_t size, void *to,
                            lade_error *err)
{
	lade__device *d;
	lade_status status = lade__device_use(device, &d, err);
	if (status != LADE_OK)
		return status;
	TRY(LADE__CU(d, cuMemcpyDtoHAsync, to, lade__address_of(from), size, NULL));
	TRY(LADE__CU(d, cuStreamSynchronize, NULL));
out:
	lade__device_leave(d);
	return status;
}

/* More bytes than these are not decoded again for a message. */
#define DETAIL_MAX ((size_t)16 << 20)

/* Decodes one segment again, for up to 'room' bytes; true when '*error' says what is wrong. */
static bool detail_segment(const call *c, const lade__route *route, const lade_item *item, size_t k,
                           size_t room, lade_status status, lade_error *error)
{
	const lade_segment *s = &item->src[k];
	if (room > DETAIL_MAX || s->size > DETAIL_MAX)
		return false;
	lade_worker *worker = lade__worker_take(c->engine);
	uint8_t *src = malloc(s->size + 1), *dst = malloc(room + 1);
	bool told = false, have = worker && src && dst;
	lade_error why;
	if (have && lies_at(s->place) == NEAR && s->size)
		have = lade__gpu_fetch(s->place.device, s->data, s->size, src, NULL) == LADE_OK;
	else if (have && s->size)
		memcpy(src, s->data, s->size);
	lade__job_options job = {.dict = c->options->dict, .flags = c->options->flags};
	size_t size = 0;
	lade_status again = have ? lade__worker_decode(worker, route, &job, src, s->size, dst, room,
	                                               &size, &why)
	                         : LADE_OK;
	if (again == status) {
		if (item->src_count > 1)
			lade_fail(error, status, why.offset, "segment %zu: %s", k, why.message);
		else
			*error = why;
		told = true;
	} else if (have && again == LADE_OK && s->decoded_size && size != s->decoded_size) {
		lade_fail(error, status, LADE_NO_OFFSET,
		          "segment %zu decodes to %zu bytes, its decoded_size says %zu", k, size,
		          s->decoded_size);
		told = true;
	}
	if (worker)
		lade__worker_give(worker);
	free(src);
	free(dst);
	return told;
}

/*
 * Says what is wrong with an item that the device has refused: the strict decoders of the host
 * agree with the kernels, and know the place.
 */
static void detail(const call *c, const group *g, size_t index, lade_status status,
                   lade_error *error)
{
	const lade_item *item = &c->items[index];
	lade_workload w = workload_of(c, g);
	lade__route route;
	w.strict = true;
	lade_fail(error, status, LADE_NO_OFFSET, "device %d: %s", (int)g->device,
	          lade_status_text(status));
	if (c->direction != LADE_DECODE ||
	    lade__route_make(c->engine, g->spec, c->direction, LADE_HOST, &w, &route, NULL, 0, NULL,
	                     NULL) != LADE_OK)
		return;
	size_t room = item->row_pitch
	                      ? lade__rows_bytes(item->dst.size, item->row_size, item->row_pitch)
	                      : item->dst.size;
	bool whole = item->src_count == 1 && !item->range_off && !item->range_size;
	for (size_t k = 0; k < item->src_count; k++)
		if (detail_segment(c, &route, item, k, whole ? room : item->src[k].decoded_size,
		                   status, error))
			return;
}

static lade_status run_units(call *c, group *g, lade__device *device, lade_error *err)
{
	if (!c->done)
		c->done = calloc(c->count, sizeof *c->done);
	if (!c->done)
		return no_room(err, c->count);
	lade_status status = lade__gpu_run(c->engine, &g->dev, device, c->options->stream,
	                                   c->options->threads, g->units, g->unit_count, c->done,
	                                   err);
	bool first = true;
	for (size_t k = 0; status == LADE_OK && k < g->own_count; k++) {
		size_t i = g->own[k];
		lade__gpu_done done = c->done[i];
		if (done.status == LADE_OK) {
			lade__outcome_done(c->outcome, i, done.size);
			continue;
		}
		lade_error error;
		if (first || c->outcome->item_errors)
			detail(c, g, i, done.status, &error);
		else
			lade_fail(&error, done.status, LADE_NO_OFFSET, "device %d: %s",
			          (int)g->device, lade_status_text(done.status));
		first = false;
		lade__outcome_failed(c->outcome, i, done.status, &error);
	}
	return status;
}

static void fail_all(call *c, const size_t *index, size_t count, lade_status status,
                     const lade_error *why)
{
	for (size_t i = 0; status != LADE_OK && i < count; i++)
		lade__outcome_failed(c->outcome, index[i], status, why);
}

/* Hands the items of a group whose device has no memory for them to the host, where that may. */
static lade_status run_without(call *c, group *g, lade_status status, lade_error *why)
{
	bool near = g->in == NEAR || g->out == NEAR;
	if (status != LADE_E_NOMEM || c->options->where != LADE_WHERE_AUTO ||
	    g->host_status != LADE_OK)
		return status;
	size_t before = g->bridge_count;
	for (size_t k = 0; k < g->own_count; k++) {
		status = near ? add_bridge(c, g, g->own[k], why) : LADE_OK;
		if (status != LADE_OK) {
			g->bridge_count = before;
			return status;
		}
		c->group_of[g->own[k]] = near ? SETTLED : FOR_HOST;
	}
	return LADE_OK;
}

/* What becomes of a device is no matter of the items that lie elsewhere. */
static void run_group(call *c, group *g)
{
	lade__device *device;
	lade_error why;
	if (g->own_count == 0 && g->bridge_count == 0)
		return;
	lade_status status = lade__device_use(g->device, &device, &why);
	if (status != LADE_OK) {
		if (g->in != NEAR && g->out != NEAR)
			status = run_without(c, g, status, &why);
		fail_all(c, g->own, g->own_count, status, &why);
		fail_all(c, g->bridge_index, g->bridge_count, status, &why);
		return;
	}
	if (g->own_count) {
		status = run_units(c, g, device, &why);
		status = run_without(c, g, status, &why);
		fail_all(c, g->own, g->own_count, status, &why);
	}
	if (g->bridge_count) {
		status = lade__gpu_bridge(c->engine, &g->host, device, g->bridge, g->bridge_index,
		                          g->bridge_count, c->options, c->outcome, &why);
		fail_all(c, g->bridge_index, g->bridge_count, status, &why);
	}
	lade__device_leave(device);
}

/* ---- the calls ---------------------------------------------------------------------------- */

/* Whether the stream is one of a group's device. */
static lade_status check_group_stream(const call *c, const group *g, lade_error *err)
{
	void *context = NULL;
	lade__device *device;
	lade_status status = lade__device_use(g->device, &device, err);
	if (status != LADE_OK)
		return status;
	status = LADE__CU(device, cuStreamGetCtx, c->options->stream, &context);
	if (status == LADE_OK && context != device->context)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "the stream is not one of device %d's primary context, where "
		                   "items lie",
		                   (int)g->device);
	lade__device_leave(device);
	return status;
}

static lade_status check_stream(call *c, lade_error *err)
{
	lade_error why;
	for (size_t i = 0; c->options->stream && i < c->group_count; i++) {
		group *g = &c->groups[i];
		bool near = g->in == NEAR || g->out == NEAR;
		if (!g->on_device && (!near || g->host_status != LADE_OK))
			continue;
		lade_status status = check_group_stream(c, g, &why);
		/* What lies on the host need not go to a device where the stream is not. */
		if (status == LADE_E_ARG && !near && c->options->where == LADE_WHERE_AUTO &&
		    g->host_status == LADE_OK)
			g->on_device = false;
		else if (status != LADE_OK)
			return lade_fail(err, status, why.offset, "%s", why.message);
	}
	return LADE_OK;
}

lade_status lade__gpu_call(lade_engine *engine, lade_direction direction, const lade_spec *spec,
                           const lade_item *items, size_t count, const lade_batch_options *options,
                           lade__outcome *outcome, lade_error *err)
{
	call c = {.engine = engine,
	          .direction = direction,
	          .spec = spec,
	          .items = items,
	          .count = count,
	          .options = options,
	          .outcome = outcome};
	lade_status status;
	TRY(make_groups(&c, err));
	TRY(check_stream(&c, err));
	TRY(sort_items(&c, err));
	for (size_t i = 0; i < c.group_count; i++)
		run_group(&c, &c.groups[i]);
	TRY(run_host(&c, err));
out:
	for (size_t i = 0; i < c.group_count; i++) {
		free(c.groups[i].units);
		free(c.groups[i].own);
		free(c.groups[i].bridge);
		free(c.groups[i].bridge_index);
	}
	free(c.groups);
	free(c.seats);
	free(c.group_of);
	free(c.done);
	return status;
}

lade_status lade__gpu_explain(lade_engine *engine, const lade_spec *spec, lade_direction direction,
                              const lade_item *items, size_t count,
                              const lade_batch_options *options, lade_candidate *candidates,
                              size_t cap, size_t *candidate_count, lade_error *err)
{
	call c = {.engine = engine,
	          .direction = direction,
	          .spec = spec,
	          .items = items,
	          .count = count,
	          .options = options};
	group g = {.spec = spec, .device = options->device};
	for (size_t i = 0; i < count; i++) {
		lade_status status = lade__item_check(&items[i], direction, err);
		if (status != LADE_OK)
			return status;
		if (i == 0) {
			g.in = source_lies(&items[i]);
			g.out = lies_at(items[i].dst.place);
			g.device = device_of(&items[i], options);
		}
		group_add(&g, direction, &items[i]);
	}
	choose(&c, &g, candidates, cap, candidate_count);
	if (g.on_device || (options->where != LADE_WHERE_DEVICE && g.host_status == LADE_OK))
		return LADE_OK;
	const lade_error *why =
		options->where == LADE_WHERE_DEVICE ? &g.device_error : &g.host_error;
	return lade_fail(err, why->status, why->offset, "%s", why->message);
}
