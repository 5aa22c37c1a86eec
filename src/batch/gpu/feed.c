/*
 * feed.c: the units of a group's items, made while the first of them are on their way already, and
 * what became of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

/* What has become so far of an item of several units, or that its device has refused. */
struct lade__gpu_done {
	lade_status status;
	size_t size;
};

/* An item's source is not read any more, or it failed. */
static void finished(const lade__gpu_feed *f, size_t index, bool ok)
{
	const lade__arrivals *a = f->planner->call->arrivals;
	if (a)
		a->done(a->ctx, index, ok);
}

/* ---- units ----------------------------------------------------------------------------------- */

/* Leaves an item to the host that its device does not take, for 'status' and 'why', if the host
 * may. */
static void leave_item(lade__gpu_feed *f, size_t index, lade_status status, const lade_error *why)
{
	lade__planner *p = f->planner;
	const lade__where *w = &f->group->where;
	bool host = p->call->options->where != LADE_WHERE_DEVICE && status == LADE_E_UNSUPPORTED;
	if (host && w->host_status == LADE_OK) {
		lade__planner_to_host(p, f->group, index);
		return;
	}
	lade__planner_done(p, index);
	lade__outcome_failed(p->outcome, index, host ? w->host_status : status,
	                     host ? &w->host_error : why);
	finished(f, index, false);
}

/* Adds the units of an item to a list. */
static lade_status add_units(lade__gpu_feed *f, size_t index, lade__gpu_list *list, lade_error *err)
{
	const lade__group *g = f->group;
	const lade_item *item = &f->planner->call->items[index];
	lade_error why;
	size_t first = list->count, n;
	lade_status status = lade__gpu_list_room(list, item->src_count ? item->src_count : 1, err);
	if (status != LADE_OK)
		return status;
	lade__gpu_unit *units = list->unit + first;
	status = lade__gpu_units(&g->where.device, g->key.device, item, index, list, &why);
	if (status != LADE_OK) {
		leave_item(f, index, status, &why);
		return LADE_OK;
	}
	n = list->count - first;
	if (n == 0) {
		lade__outcome_done(f->planner->outcome, index, 0);
		lade__planner_done(f->planner, index);
		finished(f, index, true);
		return LADE_OK;
	}
	for (size_t i = 0; i < n; i++)
		units[i].part = n > 1;
	units[n - 1].last = true;
	return LADE_OK;
}

/* Adds units of items with the key of the one before, whose unit is the list's last, until the list
 * has 'want' or no room. */
static void add_same(lade__gpu_feed *f, size_t want, lade__gpu_list *list)
{
	const lade__call *call = f->planner->call;
	lade__group *g = f->group;
	size_t same = lade__planner_same_key(f->planner, g), n = 0;
	if (list->count == 0 || same == 0)
		return;
	lade__gpu_unit *unit = list->unit + list->count;
	/* Of all that follow: bytes that were just written are slow to copy. */
	const lade__gpu_unit *before = unit - 1;
	if (before->item + 1 != g->next)
		return;
	if (want > list->cap)
		want = list->cap;
	for (; n < same && list->count < want; list->count++, n++, unit++) {
		size_t index = g->next + n;
		const lade_item *item = &call->items[index];
		size_t bound = call->direction == LADE_ENCODE
		                       ? lade_spec_bound(g->key.spec, item->src->size)
		                       : 0;
		if (!lade__gpu_unit_same(item, index, call->direction, bound, before, unit))
			break;
	}
	lade__planner_take(g, n);
}

lade_status lade__gpu_feed_units(lade__gpu_feed *f, size_t want, lade__gpu_list *list, bool *end,
                                 lade_error *err)
{
	size_t index = 0;
	lade_status status = LADE_OK;
	while (status == LADE_OK && list->count < want) {
		TRY(lade__planner_next(f->planner, f->group, &index, err));
		if (index == SIZE_MAX)
			break;
		TRY(add_units(f, index, list, err));
		add_same(f, want, list);
	}
out:
	*end = f->group->next == f->planner->count;
	return status;
}

lade_status lade__gpu_feed_rest(lade__gpu_feed *f, lade_error *err)
{
	lade__gpu_list list = {0};
	lade_status status = LADE_OK;
	f->planner->count = f->planner->there; /* others do not arrive any more */
	for (bool end = false; status == LADE_OK && !end; list.count = 0)
		status = lade__gpu_feed_units(f, LADE__PLANNER_STEP, &list, &end, err);
	free(list.unit);
	return status;
}

lade__gpu_feed lade__gpu_feed_of(lade__planner *p, lade__group *g)
{
	double all = lade__planner_scale(p);
	const lade__key *k = &g->key;
	return (lade__gpu_feed){
		.planner = p,
		.group = g,
		.count = (size_t)((double)g->count * all),
		.in = k->in == LADE__SIDE_DEVICE ? 0 : (uint64_t)((double)g->in_bytes * all),
		.out = k->out == LADE__SIDE_DEVICE ? 0 : (uint64_t)((double)g->total * all),
		.pageable = k->in == LADE__SIDE_HOST || k->out == LADE__SIDE_HOST};
}

/* ---- results --------------------------------------------------------------------------------- */

/* Adds what became of a unit, one of several of its item, or one that failed.  Fails:
 * LADE_E_NOMEM */
static lade_status add_done(lade__gpu_feed *f, const lade__gpu_unit *u, lade_status status,
                            size_t size, lade_error *err)
{
	lade__planner *p = f->planner;
	if (!f->done)
		f->done = calloc(p->call->count, sizeof *f->done);
	if (!f->done)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu results",
		                 p->call->count);
	struct lade__gpu_done *done = &f->done[u->item];
	if (done->status == LADE_OK)
		*done = (struct lade__gpu_done){status, done->size + size};
	if (!u->last)
		return LADE_OK;
	if (done->status == LADE_OK) {
		lade__outcome_done(p->outcome, u->item, done->size);
		lade__planner_done(p, u->item);
		finished(f, u->item, true);
	} else {
		p->state[u->item] = LADE__REFUSED;
		f->refused = true;
		finished(f, u->item, false);
	}
	return LADE_OK;
}

lade_status lade__gpu_feed_results(lade__gpu_feed *f, const lade__gpu_unit *u, size_t count,
                                   const uint32_t *statuses, const uint64_t *sizes, lade_error *err)
{
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
			lade__outcome_done(f->planner->outcome, u->item, size);
			lade__planner_done(f->planner, u->item);
			finished(f, u->item, true);
		} else {
			status = add_done(f, u, own, size, err);
		}
	}
	return status;
}

/* ---- why an item was refused ----------------------------------------------------------------- */

/* More bytes than these are not decoded again for a message. */
#define DETAIL_MAX ((size_t)16 << 20)

/* Decodes one segment again, for up to 'room' bytes; true when '*error', which has the status,
 * says what is wrong. */
static bool detail_segment(const lade__gpu_feed *f, const lade__route *route,
                           const lade_item *item, size_t k, size_t room, lade_error *error)
{
	const lade_segment *s = &item->src[k];
	lade_status status = error->status;
	if (room > DETAIL_MAX || s->size > DETAIL_MAX)
		return false;
	lade_engine *engine = f->planner->call->engine;
	const lade_batch_options *options = f->planner->call->options;
	lade_worker *worker = lade__worker_take(engine);
	uint8_t *src = malloc(s->size + 1), *dst = malloc(room + 1);
	bool found = false, have = worker && src && dst;
	lade_error why;
	if (have && s->place.kind > LADE_PINNED && s->size)
		have = lade__gpu_fetch(s->place.device, s->data, s->size, src, NULL) == LADE_OK;
	else if (have && s->size)
		memcpy(src, s->data, s->size);
	lade__job_options job = {.dict = options->dict, .flags = options->flags};
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
		found = true;
	} else if (have && again == LADE_OK && s->decoded_size && size != s->decoded_size) {
		lade_fail(error, status, LADE_NO_OFFSET,
		          "segment %zu decodes to %zu bytes, its decoded_size says %zu", k, size,
		          s->decoded_size);
		found = true;
	}
	if (worker)
		lade__worker_give(worker);
	free(src);
	free(dst);
	return found;
}

/*
 * Says what is wrong with an item that the device has refused; with 'host' by the strict decoders
 * of the host, which agree with the kernels and know the place.
 */
static void detail(const lade__gpu_feed *f, size_t index, lade_status status, bool host,
                   lade_error *error)
{
	const lade__call *call = f->planner->call;
	const lade_item *item = &call->items[index];
	lade_workload w = lade__workload_of(f->planner, f->group);
	lade__route route = lade__route_of(f->group->key.spec, call->direction, LADE_HOST);
	w.strict = true;
	lade_fail(error, status, LADE_NO_OFFSET, "device %d: %s", (int)f->group->key.device,
	          lade_status_text(status));
	if (!host || call->direction != LADE_DECODE ||
	    lade__route_make(call->engine, &w, &route, NULL, NULL) != LADE_OK)
		return;
	size_t room = lade__item_bytes(item, LADE_DECODE);
	bool whole = item->src_count == 1 && !item->range_off && !item->range_size;
	for (size_t k = 0; k < item->src_count; k++)
		if (detail_segment(f, &route, item, k, whole ? room : item->src[k].decoded_size,
		                   error))
			return;
}

void lade__gpu_feed_end(lade__gpu_feed *f)
{
	lade__planner *p = f->planner;
	bool first = true;
	for (size_t i = 0; f->refused && i < f->group->next; i++) {
		lade_error error;
		if (p->state[i] != LADE__REFUSED)
			continue;
		lade_status status = f->done[i].status;
		detail(f, i, status, first || p->outcome->item_errors, &error);
		lade__planner_done(p, i);
		first = false;
		lade__outcome_failed(p->outcome, i, status, &error);
	}
	free(f->done);
	f->done = NULL;
}
