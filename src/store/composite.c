/*
 * composite.c: a store that hands keys on to others, by what they begin with.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

typedef struct route {
	lade_store *store;
	size_t prefix_size;
	char *prefix;
} route;

typedef struct composite {
	size_t count;
	route routes[]; /* longer prefixes first */
} composite;

static size_t route_of(const composite *c, const char *key)
{
	size_t i = 0;
	while (i < c->count && strncmp(key, c->routes[i].prefix, c->routes[i].prefix_size) != 0)
		i++;
	return i;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* A reading, split among the stores. */
typedef struct split {
	lade__task task;
	lade_store *later;  /* whose thread ends it; NULL: the caller waits */
	atomic_size_t left; /* stores that have not answered */
	size_t count;
	size_t *routes; /* of ranges */
	lade__fetch fetches[];
} split;

static lade_store *end_all(lade__task *task)
{
	split *s = (split *)task;
	for (size_t r = 0; r < s->count; r++)
		if (s->fetches[r].count)
			lade__fetch_end(&s->fetches[r]);
	free(s->routes);
	free(s);
	return NULL;
}

static void one_answered(void *ctx)
{
	split *s = ctx;
	if (atomic_fetch_sub(&s->left, 1) == 1)
		lade__store_later(s->later, &s->task, NULL);
}

/* Has each store begin with its part, those first whose read() may return before it is done. */
static void begin_all(const composite *c, lade__fetch *fetches)
{
	for (int local = 0; local < 2; local++)
		for (size_t i = 0; i < c->count; i++)
			if (fetches[i].count &&
			    (fetches[i].store->ops.flags & LADE_STORE_LOCAL ? 1 : 0) == local)
				lade__fetch_begin(&fetches[i]);
}

static split *split_new(const composite *c, lade_reading *reading, size_t count)
{
	split *s = calloc(1, sizeof *s + (c->count + 1) * sizeof s->fetches[0]);
	if (s && count <= SIZE_MAX / 2 / sizeof *s->routes)
		s->routes = malloc(2 * count * sizeof *s->routes);
	if (!s || !s->routes) {
		free(s);
		return NULL;
	}
	s->task.run = end_all;
	s->later = reading->later;
	s->count = c->count;
	for (size_t i = 0; i < count; i++) {
		s->routes[i] = route_of(c, lade_reading_range(reading, i)->key);
		s->fetches[s->routes[i]].count++;
	}
	atomic_init(&s->left, 1);
	/* The ranges of one store stand together in 'index'. */
	size_t *index = s->routes + count, at = 0;
	for (size_t r = 0; r < c->count; r++) {
		size_t *first = index + at;
		for (size_t i = 0; i < count && s->fetches[r].count; i++)
			if (s->routes[i] == r)
				index[at++] = i;
		s->fetches[r] = (lade__fetch){.store = c->routes[r].store,
		                              .outer = reading,
		                              .ranges = reading->ranges,
		                              .count = s->fetches[r].count,
		                              .index = first,
		                              .report = reading->note,
		                              .answered = s->later ? one_answered : NULL,
		                              .answered_ctx = s,
		                              .later = s->later};
		s->left += s->fetches[r].count > 0;
	}
	return s;
}

static void composite_read(void *ctx, lade_reading *reading, size_t count)
{
	const composite *c = ctx;
	lade_error err;
	split *s = split_new(c, reading, count);
	if (!s) {
		lade_status status = lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                               "no memory to read %zu ranges", count);
		for (size_t i = 0; i < count; i++)
			lade_reading_done(reading, i, status, &err);
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (s->routes[i] == c->count)
			lade_reading_done(reading, i, lade__key_absent(&err), &err);
	begin_all(c, s->fetches);
	if (s->later)
		one_answered(s);
	else
		end_all(&s->task);
}

/* ---- writing, listing ---------------------------------------------------------------------- */

static lade_status composite_write(void *ctx, lade_write *write, const lade_io_options *options,
                                   lade_error *err)
{
	const composite *c = ctx;
	size_t r = route_of(c, write->key);
	if (r == c->count)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "no store has its prefix");
	const lade_store *store = c->routes[r].store;
	if (!store->ops.write)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "%s is for reading only",
		                 store->name);
	return store->ops.write(store->ctx, write, options, err);
}

/* Gathers a store's entries: those whose keys it is asked for. */
typedef struct gathering {
	const composite *composite;
	const lade_store_listing *listing;
	lade__names names;
	size_t route;
} gathering;

static lade_status gather(void *ctx, const lade_store_entry *entry)
{
	gathering *g = ctx;
	if (route_of(g->composite, entry->key) != g->route)
		return LADE_OK;
	return lade__names_add_key(&g->names, entry->key, entry->size, g->listing) ? LADE_OK
	                                                                           : LADE_E_NOMEM;
}

static lade_status composite_list(void *ctx, const lade_store_listing *listing, lade_error *err)
{
	const composite *c = ctx;
	gathering g = {.composite = c, .listing = listing};
	size_t base = strlen(listing->prefix);
	lade_status status = LADE_OK;
	for (g.route = 0; g.route < c->count && status == LADE_OK; g.route++) {
		const route *r = &c->routes[g.route];
		/* One of the two begins with the other, or no key has both. */
		size_t common = base < r->prefix_size ? base : r->prefix_size;
		if (strncmp(listing->prefix, r->prefix, common) != 0)
			continue;
		lade_store_listing all = {.struct_size = sizeof all,
		                          .prefix = base > r->prefix_size ? listing->prefix
		                                                          : r->prefix,
		                          .level = listing->level,
		                          .sizes = listing->sizes,
		                          .visit = gather,
		                          .ctx = &g,
		                          .cancel = listing->cancel};
		TRY(lade_store_list(r->store, &all, err));
	}
	if (!lade__names_sort(&g.names))
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a listing"));
	status = lade__names_visit(&g.names, listing, err);
out:
	lade__names_free(&g.names);
	return status;
}

/* A prefix of each route that may have what is below 'prefix'. */
static void composite_tidy(void *ctx, const char *prefix)
{
	const composite *c = ctx;
	size_t base = strlen(prefix);
	for (size_t i = 0; i < c->count; i++) {
		const route *r = &c->routes[i];
		size_t common = base < r->prefix_size ? base : r->prefix_size;
		if (strncmp(prefix, r->prefix, common) == 0)
			lade__store_tidy(r->store, base > r->prefix_size ? prefix : r->prefix);
	}
}

/* ---- life ---------------------------------------------------------------------------------- */

static void composite_close(void *ctx)
{
	composite *c = ctx;
	for (size_t i = 0; i < c->count; i++) {
		lade_store_unref(c->routes[i].store);
		free(c->routes[i].prefix);
	}
	free(c);
}

/* Puts a route behind those with longer prefixes. */
static lade_status add_route(composite *c, const lade_store_route *given, size_t index,
                             lade_error *err)
{
	const char *prefix = given->prefix ? given->prefix : "";
	size_t size = strnlen(prefix, LADE_KEY_MAX + 1), at = c->count;
	lade_error why;
	if (!given->store)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "route %zu: store is NULL",
		                 index);
	lade_status status = lade__prefix_check(prefix, &why);
	if (status != LADE_OK)
		return lade_fail(err, status, why.offset, "route %zu: %s", index, why.message);
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->routes[i].prefix, prefix) == 0)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "route %zu: another has the prefix '%.100s', too", index,
			                 prefix);
	char *copy = malloc(size + 1);
	if (!copy)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store");
	memcpy(copy, prefix, size + 1);
	for (; at && c->routes[at - 1].prefix_size < size; at--)
		c->routes[at] = c->routes[at - 1];
	c->routes[at] = (route){lade_store_ref(given->store), size, copy};
	c->count++;
	return LADE_OK;
}

lade_status lade_store_composite_new(const lade_store_route *routes, size_t count, lade_store **out,
                                     lade_error *err)
{
	lade_store_ops ops = {.struct_size = sizeof ops,
	                      .flags = LADE__STORE_PASSES | LADE_STORE_ANY_PLACE | LADE_STORE_LOCAL,
	                      .read = composite_read,
	                      .write = composite_write,
	                      .list = composite_list,
	                      .close = composite_close};
	composite *c = NULL;
	lade_status status;
	if (!routes || !out || !count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 !count   ? "there are no routes"
		                 : routes ? "out is NULL"
		                          : "routes is NULL");
	*out = NULL;
	if (count <= (SIZE_MAX - sizeof *c) / sizeof c->routes[0])
		c = calloc(1, sizeof *c + count * sizeof c->routes[0]);
	if (!c)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store");
	for (size_t i = 0; i < count; i++) {
		TRY(add_route(c, &routes[i], i, err));
		ops.flags &= routes[i].store->ops.flags | LADE__STORE_PASSES;
	}
	TRY(lade__store_new(&ops, c, "composite", out, err));
	(*out)->tidy = composite_tidy;
	return LADE_OK;
out:
	composite_close(c);
	return status;
}
