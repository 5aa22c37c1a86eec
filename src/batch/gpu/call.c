/*
 * gpu_call.c: calls that have to do with a device: the groups of items (gpu_group.c) go their ways.
 *
 *     host    lies on the host, and is done there: as calls without a device
 *     bridge  is done on the host, of what lies on a device
 *     device  is done by kernels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/group.h"

#include <stdlib.h>
#include <string.h>

/* Items are looked at in steps of so many: the first of them are on their way meanwhile. */
#define SORT_STEP ((size_t)256)

static lade_status no_room(lade_error *err, size_t count)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to plan %zu items", count);
}

/* ---- items that a device does not take ------------------------------------------------------ */

static lade_status bridge_add(const lade__gpu_calling *c, lade__gpu_group *g, size_t index,
                              lade_error *err)
{
	if (g->bridge_count == g->bridge_cap) {
		size_t more = g->bridge_cap ? 2 * g->bridge_cap : 64;
		size_t *grown = more > SIZE_MAX / sizeof *grown
		                        ? NULL
		                        : realloc(g->bridge, more * sizeof *grown);
		if (!grown)
			return no_room(err, c->count);
		g->bridge = grown;
		g->bridge_cap = more;
	}
	g->bridge[g->bridge_count++] = index;
	return LADE_OK;
}

/* Finds the way of an item that its group's device does not do: for 'status' and 'error', or, where
 * that is LADE_OK, since the host was chosen. */
static lade_status not_devices(lade__gpu_calling *c, lade__gpu_group *g, size_t index,
                               lade_status status, const lade_error *error, lade_error *err)
{
	bool host = c->options->where != LADE_WHERE_DEVICE &&
	            (status == LADE_OK || status == LADE_E_UNSUPPORTED);
	if (host && g->host_status != LADE_OK) {
		status = g->host_status;
		error = &g->host_error;
		host = false;
	}
	c->group_of[index] = host && !lade__gpu_is_near(g) ? LADE__FOR_HOST : LADE__SETTLED;
	if (!host)
		lade__outcome_failed(c->outcome, index, status, error);
	else if (lade__gpu_is_near(g))
		return bridge_add(c, g, index, err);
	return LADE_OK;
}

/* Finds the ways of all items of groups that no device does. */
static lade_status leave_items(lade__gpu_calling *c, lade_error *err)
{
	for (size_t i = 0; i < c->count; i++) {
		if (c->group_of[i] >= LADE__FOR_HOST)
			continue;
		lade__gpu_group *g = c->groups[c->group_of[i]];
		bool asked = c->options->where == LADE_WHERE_DEVICE;
		if (g->on_device)
			continue;
		lade_status status = not_devices(c, g, i, asked ? g->device_status : LADE_OK,
		                                 &g->device_error, err);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

/* ---- the host's own ----------------------------------------------------------------------- */

static lade_status run_host(lade__gpu_calling *c, lade_error *err)
{
	size_t n = 0;
	lade_status status = LADE_OK;
	for (size_t i = 0; i < c->count; i++)
		n += c->group_of[i] == LADE__FOR_HOST;
	if (n == 0)
		return LADE_OK;
	lade_item *items = malloc(n * sizeof *items);
	size_t *index = malloc(n * sizeof *index);
	if (items && index) {
		n = 0;
		for (size_t i = 0; i < c->count; i++) {
			if (c->group_of[i] != LADE__FOR_HOST)
				continue;
			items[n] = c->items[i];
			index[n++] = i;
		}
		lade__call call = {c->engine, c->direction, c->spec, items, n, index, c->options};
		status = lade__host_call(&call, c->outcome, err);
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

/* Decodes one segment again, for up to 'room' bytes; true when '*error', which has the status,
 * says what is wrong. */
static bool detail_segment(const lade__gpu_calling *c, const lade__route *route,
                           const lade_item *item, size_t k, size_t room, lade_error *error)
{
	const lade_segment *s = &item->src[k];
	lade_status status = error->status;
	if (room > DETAIL_MAX || s->size > DETAIL_MAX)
		return false;
	lade_worker *worker = lade__worker_take(c->engine);
	uint8_t *src = malloc(s->size + 1), *dst = malloc(room + 1);
	bool told = false, have = worker && src && dst;
	lade_error why;
	if (have && s->place.kind > LADE_PINNED && s->size)
		have = lade__gpu_fetch(s->place.device, s->data, s->size, src, NULL) == LADE_OK;
	else if (have && s->size)
		memcpy(src, s->data, s->size);
	lade__job_options job = {.dict = c->options->dict, .flags = c->options->flags};
	size_t size = 0;
	lade__pipe pipe = {worker, route, &job};
	lade_status again = have ? lade__pipe_decode(&pipe, lade_host_cspan(src, s->size),
	                                             lade_host_span(dst, room), &size, &why)
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
static void detail(const lade__gpu_calling *c, const lade__gpu_group *g, size_t index,
                   lade_status status, lade_error *error)
{
	const lade_item *item = &c->items[index];
	lade_workload w = lade__gpu_workload(c, g);
	lade__route route = lade__route_of(g->key.spec, c->direction, LADE_HOST);
	w.strict = true;
	lade_fail(error, status, LADE_NO_OFFSET, "device %d: %s", (int)g->key.device,
	          lade_status_text(status));
	if (c->direction != LADE_DECODE ||
	    lade__route_make(c->engine, &w, &route, NULL, NULL) != LADE_OK)
		return;
	size_t room = lade__item_bytes(item, LADE_DECODE);
	bool whole = item->src_count == 1 && !item->range_off && !item->range_size;
	for (size_t k = 0; k < item->src_count; k++)
		if (detail_segment(c, &route, item, k, whole ? room : item->src[k].decoded_size,
		                   error))
			return;
}

/* What the feed of a group's units knows. */
typedef struct feeder {
	lade__gpu_calling *call;
	lade__gpu_group *group;
} feeder;

/* Adds the units of an item to a list. */
static lade_status add_units(lade__gpu_calling *c, lade__gpu_group *g, size_t index,
                             lade__gpu_list *list, lade_error *err)
{
	const lade_item *item = &c->items[index];
	lade_error error;
	size_t first = list->count, n;
	lade_status status = lade__gpu_list_room(list, item->src_count ? item->src_count : 1, err);
	if (status != LADE_OK)
		return status;
	lade__gpu_unit *units = list->unit + first;
	status = lade__gpu_units(&g->dev, g->key.device, item, index, list, &error);
	if (status != LADE_OK)
		return not_devices(c, g, index, status, &error, err);
	n = list->count - first;
	if (n == 0) {
		lade__outcome_done(c->outcome, index, 0);
		c->group_of[index] = LADE__SETTLED;
		return LADE_OK;
	}
	for (size_t i = 0; i < n; i++)
		units[i].part = n > 1;
	units[n - 1].last = true;
	return LADE_OK;
}

/* Adds units of items that are like the one before, whose unit is the list's last, until it has
 * 'want' or no room. */
static void add_like(lade__gpu_calling *c, lade__gpu_group *g, size_t want, lade__gpu_list *list)
{
	if (list->count == 0)
		return;
	lade__gpu_unit *unit = list->unit + list->count;
	/* Of all that follow: bytes that were just written are slow to copy. */
	const lade__gpu_unit *before = unit - 1;
	if (before->item + 1 != g->cursor || g->cursor <= c->plain)
		return;
	if (want > list->cap)
		want = list->cap;
	for (; g->cursor < c->sorted && list->count < want; list->count++, g->cursor++, unit++) {
		const lade_item *item = &c->items[g->cursor];
		size_t bound = c->direction == LADE_ENCODE
		                       ? lade_spec_bound(g->key.spec, item->src->size)
		                       : 0;
		if (!lade__gpu_unit_like(item, g->cursor, c->direction, bound, before, unit))
			break;
	}
}

/* Items are sorted as far as they are wanted. */
static lade_status more_units(void *ctx, size_t want, lade__gpu_list *list, bool *end,
                              lade_error *err)
{
	lade__gpu_calling *c = ((feeder *)ctx)->call;
	lade__gpu_group *g = ((feeder *)ctx)->group;
	lade_status status = LADE_OK;
	while (status == LADE_OK && list->count < want && g->cursor < c->count) {
		if (g->cursor == c->sorted)
			status = lade__gpu_sort(
				c,
				c->count - c->sorted < SORT_STEP ? c->count : c->sorted + SORT_STEP,
				err);
		else if (c->group_of[g->cursor++] == g->index)
			status = add_units(c, g, g->cursor - 1, list, err);
		add_like(c, g, want, list);
	}
	*end = g->cursor == c->count;
	return status;
}

/* Adds what became of a unit, one of several of its item, or one that failed.  Fails:
 * LADE_E_NOMEM */
static lade_status add_done(feeder *f, const lade__gpu_unit *u, lade_status status, size_t size,
                            lade_error *err)
{
	lade__gpu_calling *c = f->call;
	if (!c->done)
		c->done = calloc(c->count, sizeof *c->done);
	if (!c->done)
		return no_room(err, c->count);
	lade__gpu_done *done = &c->done[u->item];
	if (done->status == LADE_OK)
		*done = (lade__gpu_done){status, done->size + size};
	if (!u->last)
		return LADE_OK;
	if (done->status == LADE_OK)
		lade__outcome_done(c->outcome, u->item, done->size);
	f->group->failed |= done->status != LADE_OK;
	c->group_of[u->item] = done->status == LADE_OK ? LADE__SETTLED : LADE__REFUSED;
	return LADE_OK;
}

static lade_status units_told(void *ctx, const lade__gpu_unit *u, size_t count,
                              const uint32_t *statuses, const uint64_t *sizes, lade_error *err)
{
	feeder *f = ctx;
	lade_status status = LADE_OK;
	for (size_t i = 0; i < count && status == LADE_OK; i++, u++) {
		lade_status own = (lade_status)statuses[i];
		size_t size = sizes[i] > u->skip ? (size_t)sizes[i] - u->skip : 0;
		if (own == LADE_OK && u->wanted && sizes[i] != u->wanted)
			own = LADE_E_CORRUPT;
		if (u->placed)
			size = u->last ? (size_t)u->give : 0;
		else if (u->stage_out && size > u->size)
			size = u->size;
		if (own == LADE_OK && !u->part) {
			lade__outcome_done(f->call->outcome, u->item, size);
			f->call->group_of[u->item] = LADE__SETTLED;
		} else {
			status = add_done(f, u, own, size, err);
		}
	}
	return status;
}

/* Says of each item of a group that its device has refused, why. */
static void tell_failed(const lade__gpu_calling *c, const lade__gpu_group *g)
{
	bool first = true;
	for (size_t i = 0; i < g->cursor; i++) {
		lade_error error;
		if (c->group_of[i] != LADE__REFUSED)
			continue;
		lade_status status = c->done[i].status;
		c->group_of[i] = LADE__SETTLED;
		if (first || c->outcome->item_errors)
			detail(c, g, i, status, &error);
		else
			lade_fail(&error, status, LADE_NO_OFFSET, "device %d: %s",
			          (int)g->key.device, lade_status_text(status));
		first = false;
		lade__outcome_failed(c->outcome, i, status, &error);
	}
}

/*
 * Runs a group's items on its device; '*why' is the device's failure, which those that have not
 * found their end have in common.
 * Fails: when the call as a whole does
 */
static lade_status run_units(lade__gpu_calling *c, lade__gpu_group *g, lade__device *device,
                             lade_status *why_status, lade_error *why, lade_error *err)
{
	double all = lade__gpu_all(c);
	feeder f = {c, g};
	lade__gpu_feed feed = {
		.ctx = &f,
		.more = more_units,
		.told = units_told,
		.count = (size_t)((double)g->count * all),
		.in = g->key.in == LADE__NEAR ? 0 : (uint64_t)((double)g->in_bytes * all),
		.out = g->key.out == LADE__NEAR ? 0 : (uint64_t)((double)g->total * all),
		.pageable = g->key.in == LADE__ON_HOST || g->key.out == LADE__ON_HOST,
		.threads = c->options->threads,
		.stop = &c->outcome->stop};
	*why_status =
		lade__gpu_run(c->engine, &g->dev, device, c->options->stream, &feed, why);
	if (g->failed)
		tell_failed(c, g);
	/* The others of the group share the failure, too. */
	lade__gpu_list list = {0};
	lade_status status = LADE_OK;
	for (bool end = *why_status == LADE_OK; status == LADE_OK && !end; list.count = 0)
		status = more_units(&f, SORT_STEP, &list, &end, err);
	free(list.unit);
	return status;
}

static void fail_all(lade__gpu_calling *c, const size_t *index, size_t count, lade_status status,
                     const lade_error *why)
{
	for (size_t i = 0; status != LADE_OK && i < count; i++)
		lade__outcome_failed(c->outcome, index[i], status, why);
}

/* Hands the items of a group that its device has not done, for want of memory or since it does not
 * open, to the host, where that may; else they fail so. */
static lade_status run_without(lade__gpu_calling *c, lade__gpu_group *g, lade_status status,
                               const lade_error *why, bool host, lade_error *err)
{
	host = host && c->options->where == LADE_WHERE_AUTO && g->host_status == LADE_OK;
	for (size_t i = 0; i < c->count; i++) {
		if (c->group_of[i] != g->index)
			continue;
		if (!host) {
			lade__outcome_failed(c->outcome, i, status, why);
			continue;
		}
		lade_status found = not_devices(c, g, i, LADE_OK, NULL, err);
		if (found != LADE_OK)
			return found;
	}
	return LADE_OK;
}

static lade_status run_bridge(lade__gpu_calling *c, lade__gpu_group *g, lade__device *device,
                              lade_status *why_status, lade_error *why, lade_error *err)
{
	lade_item *items = malloc(g->bridge_count * sizeof *items);
	if (!items)
		return no_room(err, c->count);
	for (size_t k = 0; k < g->bridge_count; k++)
		items[k] = c->items[g->bridge[k]];
	lade__call call = {c->engine,       c->direction, c->spec,   items,
	                   g->bridge_count, g->bridge,    c->options};
	*why_status = lade__gpu_bridge(&call, &g->host, device, c->outcome, why);
	free(items);
	return LADE_OK;
}

/* What becomes of a device is no matter of the items that lie elsewhere.
 * Fails: when the call as a whole does */
static lade_status run_group(lade__gpu_calling *c, lade__gpu_group *g, lade_error *err)
{
	lade__device *device;
	lade_error why;
	lade_status own, bridge = LADE_OK, status = LADE_OK;
	g->ran = true;
	if (!g->on_device && g->bridge_count == 0)
		return LADE_OK;
	own = lade__device_use(g->key.device, &device, &why);
	if (own != LADE_OK) {
		/* Without a device there is no bridge to it; the host's own bytes need none. */
		lade__gpu_list list = {0};
		feeder f = {c, g};
		for (bool end = !g->on_device; status == LADE_OK && !end; list.count = 0)
			status = more_units(&f, SORT_STEP, &list, &end, err);
		free(list.unit);
		fail_all(c, g->bridge, g->bridge_count, own, &why);
		if (status != LADE_OK)
			return status;
		return run_without(c, g, own, &why, !lade__gpu_is_near(g), err);
	}
	if (g->on_device) {
		TRY(run_units(c, g, device, &own, &why, err));
		if (own != LADE_OK)
			TRY(run_without(c, g, own, &why, own == LADE_E_NOMEM, err));
	}
	if (g->bridge_count) {
		TRY(run_bridge(c, g, device, &bridge, &why, err));
		fail_all(c, g->bridge, g->bridge_count, bridge, &why);
	}
out:
	lade__device_leave(device);
	return status;
}

/* ---- the calls ---------------------------------------------------------------------------- */

/* Whether the stream is one of a group's device. */
static lade_status check_group_stream(const lade__gpu_calling *c, const lade__gpu_group *g,
                                      lade_error *err)
{
	void *context = NULL;
	lade__device *device;
	lade_status status = lade__device_use(g->key.device, &device, err);
	if (status != LADE_OK)
		return status;
	status = LADE__CU(device, cuStreamGetCtx, c->options->stream, &context);
	if (status == LADE_OK && context != device->context)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "the stream is not one of device %d's primary context, where "
		                   "items lie",
		                   (int)g->key.device);
	lade__device_leave(device);
	return status;
}

/* Chooses the way of a group.  Fails: when the call's stream is not one of its device */
static lade_status choose_group(lade__gpu_calling *c, lade__gpu_group *g, lade_error *err)
{
	lade_error why;
	g->chosen = true;
	lade__gpu_choose(c, g, NULL);
	if (!c->options->stream ||
	    (!g->on_device && (!lade__gpu_is_near(g) || g->host_status != LADE_OK)))
		return LADE_OK;
	lade_status status = check_group_stream(c, g, &why);
	/* What lies on the host need not go to a device where the stream is not. */
	if (status == LADE_E_ARG && !lade__gpu_is_near(g) && c->options->where == LADE_WHERE_AUTO &&
	    g->host_status == LADE_OK)
		g->on_device = false;
	else if (status != LADE_OK)
		return lade_fail(err, status, why.offset, "%s", why.message);
	return LADE_OK;
}

/*
 * The first items of a large batch are on their way before the others are looked at, if they are
 * for a device; what is enough of them for that is so with all.
 */
static lade_status run_ahead(lade__gpu_calling *c, lade_error *err)
{
	if (c->count <= SORT_STEP)
		return LADE_OK;
	lade_status status;
	TRY(lade__gpu_sort(c, SORT_STEP, err));
	if (c->group_count != 1)
		goto out;
	TRY(choose_group(c, c->groups[0], err));
	if (c->groups[0]->on_device)
		TRY(run_group(c, c->groups[0], err));
	else
		c->groups[0]->chosen = false;
out:
	return status;
}

static void call_reset(lade__gpu_calling *c)
{
	for (size_t i = 0; i < c->group_count; i++) {
		free(c->groups[i]->bridge);
		free(c->groups[i]);
	}
	free(c->groups);
	free(c->seats);
	free(c->group_of);
	free(c->done);
}

static lade__gpu_calling calling(const lade__call *call, lade__outcome *outcome)
{
	return (lade__gpu_calling){.engine = call->engine,
	                           .direction = call->direction,
	                           .spec = call->spec,
	                           .items = call->items,
	                           .count = call->count,
	                           .options = call->options,
	                           .outcome = outcome,
	                           .plain = SIZE_MAX};
}

lade_status lade__gpu_call(const lade__call *call, lade__outcome *outcome, lade_error *err)
{
	lade__gpu_calling c = calling(call, outcome);
	lade_status status = LADE_OK;
	c.group_of = malloc(c.count * sizeof *c.group_of);
	if (!c.group_of)
		return no_room(err, c.count);
	TRY(run_ahead(&c, err));
	TRY(lade__gpu_sort(&c, c.count, err));
	for (size_t i = 0; i < c.group_count; i++)
		if (!c.groups[i]->chosen)
			TRY(choose_group(&c, c.groups[i], err));
	TRY(leave_items(&c, err));
	for (size_t i = 0; i < c.group_count; i++)
		if (!c.groups[i]->ran)
			TRY(run_group(&c, c.groups[i], err));
	TRY(run_host(&c, err));
out:
	call_reset(&c);
	return status;
}

lade_status lade__gpu_explain(const lade__call *call, lade__candidates *candidates, lade_error *err)
{
	lade__gpu_calling c = calling(call, NULL);
	const lade_batch_options *options = call->options;
	lade__gpu_group g = {.key = {.spec = call->spec, .device = options->device}};
	lade_status status = lade__gpu_join(&c, &g, err);
	if (status != LADE_OK)
		return status;
	lade__gpu_choose(&c, &g, candidates);
	if (g.on_device || (options->where != LADE_WHERE_DEVICE && g.host_status == LADE_OK))
		return LADE_OK;
	const lade_error *why =
		options->where == LADE_WHERE_DEVICE ? &g.device_error : &g.host_error;
	return lade_fail(err, why->status, why->offset, "%s", why->message);
}
