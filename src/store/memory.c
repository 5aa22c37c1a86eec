/*
 * memory.c: a store of values in memory, each on any place.
 *
 * Readers hold a reference of the value that they read, so that writers need not wait for them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define ALIGN 256

typedef struct value {
	size_t refs; /* the table's, and one of each reader.  Guarded by the store's mutex */
	lade_cspan data;
	const lade_allocator *from; /* NULL: lent */
	uint64_t version;
} value;

typedef struct entry {
	struct entry *next; /* of the same bucket */
	value *value;
	char key[];
} entry;

typedef struct memory {
	lade_place place;
	const lade_allocator *allocator;
	pthread_mutex_t mutex; /* guards what follows, and the values' references */
	entry **buckets;
	size_t bucket_count, count; /* a power of two; entries */
	uint64_t versions;          /* that were given so far */
} memory;

/* ---- the table ----------------------------------------------------------------------------- */

/* The link that leads to a key's entry, or to where one would stand. */
static entry **find(memory *m, const char *key)
{
	entry **at = &m->buckets[XXH3_64bits(key, strlen(key)) & (m->bucket_count - 1)];
	while (*at && strcmp((*at)->key, key) != 0)
		at = &(*at)->next;
	return at;
}

/* Twice the buckets.  Without memory it stays slow. */
static void grow(memory *m)
{
	size_t count = m->bucket_count * 2;
	entry **old = m->buckets, **bigger = calloc(count, sizeof *bigger);
	if (!bigger)
		return;
	m->buckets = bigger;
	m->bucket_count = count;
	for (size_t i = 0; i < count / 2; i++)
		for (entry *e = old[i], *next; e; e = next) {
			entry **at = &bigger[XXH3_64bits(e->key, strlen(e->key)) & (count - 1)];
			next = e->next;
			e->next = *at;
			*at = e;
		}
	free(old);
}

static value *value_ref(memory *m, const char *key)
{
	pthread_mutex_lock(&m->mutex);
	entry *e = *find(m, key);
	value *v = e ? e->value : NULL;
	if (v)
		v->refs++;
	pthread_mutex_unlock(&m->mutex);
	return v;
}

static void value_free(value *v)
{
	if (v && v->from && v->data.size)
		v->from->free(v->from->ctx, (void *)(uintptr_t)v->data.data, v->data.size, ALIGN,
		              v->data.place, NULL);
	free(v);
}

static void value_unref(memory *m, value *v)
{
	if (!v)
		return;
	pthread_mutex_lock(&m->mutex);
	bool last = --v->refs == 0;
	pthread_mutex_unlock(&m->mutex);
	if (last)
		value_free(v);
}

static void version_of(const value *v, lade_object_version *version)
{
	version->size = sizeof v->version;
	memcpy(version->bytes, &v->version, sizeof v->version);
}

/* ---- reading ------------------------------------------------------------------------------- */

static lade_status read_one(memory *m, lade_reading *reading, size_t i, lade_error *err)
{
	lade_range *range = lade_reading_range(reading, i);
	lade_object_version version;
	uint64_t off;
	value *v = value_ref(m, range->key);
	if (!v)
		return lade__key_absent(err);
	version_of(v, &version);
	lade_status status = lade__range_answer(range, v->data.size, &version, &off, err);
	if (status == LADE_OK && range->size) {
		lade_cspan from = {(const uint8_t *)v->data.data + off, range->size, v->data.place};
		status = lade_reading_put(reading, i, 0, from, err);
	}
	value_unref(m, v);
	return status;
}

static void memory_read(void *ctx, lade_reading *reading, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		lade_error err = {0};
		lade_status status = lade_reading_cancelled(reading)
		                             ? LADE_E_CANCELLED
		                             : read_one(ctx, reading, i, &err);
		lade_reading_done(reading, i, status, &err);
	}
}

/* ---- writing ------------------------------------------------------------------------------- */

/* A value that is a copy of 'src', which may be on a device. */
static lade_status value_copy(const memory *m, lade_cspan src, lade_stream stream, value **out,
                              lade_error *err)
{
	value *v = calloc(1, sizeof *v);
	uint64_t devices = 0;
	lade_status status = LADE_OK;
	void *data = NULL;
	if (v && src.size)
		data = m->allocator->alloc(m->allocator->ctx, src.size, ALIGN, m->place, NULL);
	if (!v || (src.size && !data)) {
		free(v);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no %s memory for %zu bytes",
		                 lade_kind_name(m->place.kind), src.size);
	}
	*v = (value){.data = {data, src.size, m->place}, .from = m->allocator};
	lade_span to = {data, src.size, m->place};
	bool here = lade_kind_is_host(src.place.kind) && lade_kind_is_host(m->place.kind);
	if (src.size && here) {
		memcpy(data, src.data, src.size);
	} else if (src.size) {
		TRY(lade__io_copy(to, src, stream, &devices, err));
		TRY(lade__io_copies_wait(devices, stream, err));
	}
	*out = v;
	return LADE_OK;
out:
	value_free(v);
	return status;
}

/* Whether a write may be done to a key that has 'now', or nothing: NULL. */
static lade_status check(const lade_write *write, const value *now, lade_error *err)
{
	lade_object_version version = {0};
	if (now)
		version_of(now, &version);
	if (write->kind == LADE_WRITE_IF_ABSENT && now)
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET, "it has a value already");
	if (write->kind < LADE_WRITE_IF_VERSION)
		return LADE_OK;
	if (!now)
		return lade__key_absent(err);
	if (write->want && !lade_object_version_equal(write->want, &version))
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "it is not the version that was asked for");
	return LADE_OK;
}

/* Gives a key the value 'next', or none: NULL.  Takes 'next'. */
static lade_status replace(memory *m, lade_write *write, value *next, lade_error *err)
{
	size_t size = strlen(write->key) + 1;
	entry *fresh = next ? malloc(sizeof *fresh + size) : NULL, *gone = NULL;
	value *old = NULL;
	if (next && !fresh)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a key");
	pthread_mutex_lock(&m->mutex);
	entry **at = find(m, write->key);
	lade_status status = check(write, *at ? (*at)->value : NULL, err);
	if (status == LADE_OK && next) {
		next->refs = 1;
		next->version = ++m->versions;
		if (write->version)
			version_of(next, write->version);
		if (!*at) {
			memcpy(fresh->key, write->key, size);
			fresh->next = NULL;
			fresh->value = NULL;
			*at = fresh;
			fresh = NULL;
			m->count++;
		}
		old = (*at)->value;
		(*at)->value = next;
		if (m->count > m->bucket_count)
			grow(m);
	} else if (status == LADE_OK) {
		gone = *at;
		old = gone->value;
		*at = gone->next;
		m->count--;
	}
	pthread_mutex_unlock(&m->mutex);
	value_unref(m, old);
	free(gone);
	free(fresh);
	return status;
}

static lade_status memory_write(void *ctx, lade_write *write, const lade_io_options *options,
                                lade_error *err)
{
	memory *m = ctx;
	value *next = NULL;
	lade_status status = LADE_OK;
	if (write->kind != LADE_DELETE_IF_VERSION)
		status = value_copy(m, write->src, options->stream, &next, err);
	if (status != LADE_OK)
		return status;
	status = replace(m, write, next, err);
	if (status != LADE_OK)
		value_free(next);
	return status;
}

lade_status lade_store_memory_lend(lade_store *store, const char *key, lade_cspan data,
                                   lade_error *err)
{
	memory *m = lade__store_context(store, memory_read);
	lade_write write = {.key = key};
	if (!m)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "store is not a memory store");
	lade_status status = lade_key_check(key, err);
	if (status == LADE_OK)
		status = lade__io_place_check(data.place, data.data, data.size, "value", 0, err);
	if (status != LADE_OK)
		return status;
	value *next = calloc(1, sizeof *next);
	if (!next)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a value");
	next->data = data;
	status = replace(m, &write, next, err);
	if (status != LADE_OK)
		value_free(next);
	return status;
}

/* ---- listing ------------------------------------------------------------------------------- */

/* All keys that begin with the prefix, to their end or to the next '/'. */
static bool gather(memory *m, const lade_store_listing *listing, lade__names *names)
{
	for (size_t i = 0; i < m->bucket_count; i++)
		for (const entry *e = m->buckets[i]; e; e = e->next)
			if (!lade__names_add_key(names, e->key, e->value->data.size, listing))
				return false;
	return lade__names_sort(names);
}

static lade_status memory_list(void *ctx, const lade_store_listing *listing, lade_error *err)
{
	memory *m = ctx;
	pthread_mutex_lock(&m->mutex);
	lade__names names = {0};
	bool good = gather(m, listing, &names);
	pthread_mutex_unlock(&m->mutex);
	lade_status status =
		good ? lade__names_visit(&names, listing, err)
		     : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a listing");
	lade__names_free(&names);
	return status;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void memory_close(void *ctx)
{
	memory *m = ctx;
	for (size_t i = 0; i < m->bucket_count; i++)
		for (entry *e = m->buckets[i], *next; e; e = next) {
			next = e->next;
			value_free(e->value);
			free(e);
		}
	pthread_mutex_destroy(&m->mutex);
	free(m->buckets);
	free(m);
}

lade_status lade_store_memory_new(lade_place place, const lade_allocator *allocator,
                                  lade_store **out, lade_error *err)
{
	static const lade_store_ops ops = {.struct_size = sizeof ops,
	                                   .flags = LADE_STORE_ANY_PLACE | LADE_STORE_LOCAL,
	                                   .request_ns = 200,
	                                   .request_rate = 5000000000,
	                                   .read = memory_read,
	                                   .write = memory_write,
	                                   .list = memory_list,
	                                   .close = memory_close};
	char name[64];
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	lade_status status = lade__io_place_check(place, NULL, 0, "place", 0, err);
	if (status != LADE_OK)
		return status;
	allocator = allocator ? allocator : lade_allocator_default(place.kind);
	memory *m = calloc(1, sizeof *m);
	entry **buckets = calloc(64, sizeof *buckets);
	if (m && buckets) {
		*m = (memory){.place = place,
		              .allocator = allocator,
		              .buckets = buckets,
		              .bucket_count = 64};
		pthread_mutex_init(&m->mutex, NULL);
		snprintf(name, sizeof name, "%s memory", lade_kind_name(place.kind));
		status = lade__store_new(&ops, m, name, out, err);
		if (status != LADE_OK)
			memory_close(m);
		return status;
	}
	free(buckets);
	free(m);
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store");
}
