/*
 * store.c: keys, handles, and the calls that every store has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/store.h"

#include "base/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- keys ---------------------------------------------------------------------------------- */

/* What is wrong with a name of a key; NULL: nothing. */
static const char *name_fault(const char *name, size_t size)
{
	if (size == 0)
		return "an empty name";
	if (name[0] == '.' && (size == 1 || (size == 2 && name[1] == '.')))
		return "the name '.' or '..'";
	if (size >= 6 && memcmp(name, ".lade-", 6) == 0)
		return "the name of a temporary file";
	return NULL;
}

lade_status lade_key_check(const char *key, lade_error *err)
{
	if (!key)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "a key is NULL");
	const char *fault = NULL;
	size_t size = strnlen(key, LADE_KEY_MAX + 1), name = 0;
	if (size > LADE_KEY_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_KEY_MAX,
		                 "key '%.60s...' has more than %d bytes", key, LADE_KEY_MAX);
	for (size_t i = 0; i <= size; i++) {
		if ((unsigned char)key[i] < 0x20 ? i < size : key[i] == 0x7f)
			return lade_fail(err, LADE_E_ARG, i, "a key has the byte 0x%02x at %zu",
			                 (unsigned char)key[i], i);
		if (key[i] != '/' && i < size)
			continue;
		fault = name_fault(key + name, i - name);
		if (fault)
			return lade_fail(err, LADE_E_ARG, name, "key '%s' has %s at byte %zu", key,
			                 fault, name);
		name = i + 1;
	}
	return LADE_OK;
}

lade_status lade__key_absent(lade_error *err)
{
	return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "it has no value");
}

lade_status lade__range_answer(lade_range *range, uint64_t object_size,
                               const lade_object_version *version, uint64_t *off, lade_error *err)
{
	range->object_size = object_size;
	if (range->version)
		*range->version = *version;
	if (range->want && !lade_object_version_equal(range->want, version))
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "it is not the version that was asked for");
	return lade_range_place(range, object_size, off, &range->size, err);
}

/* ---- handles ------------------------------------------------------------------------------- */

uint64_t lade__now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

lade_status lade__store_new(const lade_store_ops *ops, void *ctx, const char *name,
                            lade_store **out, lade_error *err)
{
	lade_store *store = calloc(1, sizeof *store);
	if (!store)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store");
	lade__struct_copy(&store->ops, sizeof store->ops, ops, ops->struct_size);
	store->ctx = ctx;
	atomic_init(&store->refs, 1);
	snprintf(store->name, sizeof store->name, "%s", name);
	pthread_mutex_init(&store->mutex, NULL);
	store->cost.parallel = ops->parallel ? ops->parallel : 1;
	/* A disk's: 20 us, 2 GB/s. */
	store->cost.request_ns = ops->request_ns ? (double)ops->request_ns : 20000;
	store->cost.request_rate = ops->request_rate ? (double)ops->request_rate / 1e9 : 2;
	store->cost.store_rate =
		store->cost.request_rate * (store->cost.parallel < 4 ? store->cost.parallel : 4);
	*out = store;
	return LADE_OK;
}

void lade__store_tidy(lade_store *store, const char *prefix)
{
	if (store->tidy)
		store->tidy(store->ctx, prefix);
}

lade_status lade_store_new(const lade_store_ops *ops, void *ctx, const char *name, lade_store **out,
                           lade_error *err)
{
	const uint32_t known = LADE_STORE_ANY_PLACE | LADE_STORE_LOCAL | LADE_STORE_PARTS;
	if (!name || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 name ? "out" : "name");
	*out = NULL;
	lade_status status =
		lade__ops_check(ops, sizeof *ops, LADE__SIZE_TO(lade_store_ops, read), "ops", err);
	if (status != LADE_OK)
		return status;
	if (!ops->read)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "ops->read is NULL");
	if (ops->flags & ~known)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "ops->flags is 0x%x, known are 0x%x", ops->flags, known);
	return lade__store_new(ops, ctx, name, out, err);
}

lade_store *lade_store_ref(lade_store *store)
{
	atomic_fetch_add_explicit(&store->refs, 1, memory_order_relaxed);
	return store;
}

bool lade__store_drop(lade_store *store)
{
	if (atomic_fetch_sub_explicit(&store->refs, 1, memory_order_acq_rel) != 1)
		return false;
	lade__service_free(store->service);
	if (store->ops.close)
		store->ops.close(store->ctx);
	pthread_mutex_destroy(&store->mutex);
	free(store);
	return true;
}

void lade_store_unref(lade_store *store)
{
	if (store)
		lade__store_drop(store);
}

void *lade__store_context(lade_store *store, void (*read)(void *, lade_reading *, size_t))
{
	return store && store->ops.read == read ? store->ctx : NULL;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* A call of lade_store_read(), as a source; or a source that is one key's value. */
typedef struct store_source {
	lade_source_ops ops;
	lade_store *store;
	lade_store_report *report;
	const char *key; /* NULL: ranges have keys */
} store_source;

static void source_read(void *ctx, lade_reading *reading, size_t count)
{
	store_source *s = ctx;
	lade_store_report none = {0};
	const char *key = s->key;
	lade__fetch plan = {.store = s->store,
	                    .outer = reading,
	                    .ranges = reading->ranges,
	                    .count = count,
	                    .report = s->report ? s->report : &none};
	if (!key) {
		lade__fetch_begin(&plan);
		lade__fetch_end(&plan);
		return;
	}
	/* One key for all: few ranges of a frame's reader, so that a table of keys is no matter. */
	const char **keys = malloc((count + 1) * sizeof *keys);
	lade_error err;
	lade_status status = LADE_OK;
	if (!keys)
		status = lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                   "no memory to read %zu ranges", count);
	for (size_t i = 0; i < count; i++) {
		if (keys)
			keys[i] = reading->ranges[i].key ? "" : key;
		else
			lade_reading_done(reading, i, status, &err);
	}
	if (keys) {
		plan.keys = keys;
		lade__fetch_begin(&plan);
		lade__fetch_end(&plan);
	}
	free(keys);
}

lade_source_ops lade__store_source_ops(const lade_store *store)
{
	return (lade_source_ops){
		.struct_size = sizeof(lade_source_ops),
		.flags = (store->ops.flags & LADE_STORE_ANY_PLACE ? LADE_SOURCE_ANY_PLACE : 0) |
	                 (store->ops.flags & LADE_STORE_LOCAL ? LADE_SOURCE_LOCAL : 0),
		.read = source_read,
	};
}

lade_status lade__report_begin(lade_store_report *own, const lade_store_report *given,
                               lade_error *err)
{
	*own = (lade_store_report){.struct_size = sizeof *own};
	if (given && (given->struct_size < LADE__SIZE_TO(lade_store_report, ns) ||
	              given->struct_size > LADE__STRUCT_SIZE_MAX))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "report: struct_size is %zu, from %zu to %d are possible",
		                 given->struct_size, LADE__SIZE_TO(lade_store_report, ns),
		                 LADE__STRUCT_SIZE_MAX);
	return LADE_OK;
}

void lade__report_end(lade_store_report *own, lade_store_report *given, uint64_t began_ns)
{
	own->ns = lade__now_ns() - began_ns;
	if (given) {
		size_t size = given->struct_size;
		lade__struct_copy(given, size, own, sizeof *own);
		given->struct_size = size;
	}
}

lade_status lade_store_read(lade_store *store, lade_range *ranges, size_t count,
                            const lade_io_options *options, lade_store_report *report,
                            lade_error *err)
{
	lade_store_report own;
	uint64_t began_ns = lade__now_ns();
	if (!store)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "store is NULL");
	lade_status status = lade__report_begin(&own, report, err);
	if (status != LADE_OK)
		return status;
	store_source call = {.ops = lade__store_source_ops(store), .store = store, .report = &own};
	status = lade_source_read((lade_source){&call.ops, &call}, ranges, count, options, err);
	lade__report_end(&own, report, began_ns);
	return status;
}

lade_status lade_store_look(lade_store *store, const char *key, uint64_t *size,
                            lade_object_version *version, lade_error *err)
{
	lade_range range = {.key = key, .version = version};
	lade_error inner;
	lade_io_options options = {.struct_size = sizeof options, .errors = &inner};
	if (size)
		*size = LADE_SIZE_UNKNOWN;
	if (version)
		version->size = 0;
	lade_status status = lade_store_read(store, &range, 1, &options, NULL, err);
	if (status == LADE_OK && size)
		*size = range.object_size;
	return status;
}

static void object_close(void *ctx)
{
	store_source *s = ctx;
	lade_store_unref(s->store);
	free(s);
}

lade_status lade_store_object_open(lade_store *store, const char *key, lade_source *out,
                                   lade_error *err)
{
	if (!store || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 store ? "out" : "store");
	*out = (lade_source){0};
	lade_status status = lade_key_check(key, err);
	if (status != LADE_OK)
		return status;
	size_t size = strlen(key) + 1;
	store_source *s = malloc(sizeof *s + size);
	if (!s)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a source");
	*s = (store_source){.ops = lade__store_source_ops(store), .store = lade_store_ref(store)};
	s->ops.close = object_close;
	s->key = memcpy(s + 1, key, size);
	*out = (lade_source){&s->ops, s};
	return LADE_OK;
}

/* ---- writing ------------------------------------------------------------------------------- */

typedef struct store_sink {
	lade_store *store;
	lade_store_report report;
} store_sink;

static lade_status sink_write(void *ctx, lade_write *write, const lade_io_options *options,
                              lade_error *err)
{
	store_sink *s = ctx;
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade_status status = lade_key_check(write->key, err);
	if (status != LADE_OK)
		return status;
	s->report.request_count++;
	status = s->store->ops.write(s->store->ctx, write, options, &inner);
	if (status != LADE_OK)
		return lade_fail(err, status, inner.offset, "%s: key '%.200s': %s", s->store->name,
		                 write->key,
		                 inner.message[0] ? inner.message : lade_status_text(status));
	if (write->kind != LADE_DELETE_IF_VERSION) {
		s->report.wanted_size += write->src.size;
		s->report.moved_size += write->src.size;
	}
	return LADE_OK;
}

lade_status lade_store_write(lade_store *store, lade_write *writes, size_t count,
                             const lade_io_options *options, lade_store_report *report,
                             lade_error *err)
{
	static const lade_sink_ops ops = {.struct_size = sizeof ops, .write = sink_write};
	store_sink s = {.store = store};
	uint64_t began_ns = lade__now_ns();
	if (!store)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "store is NULL");
	if (!store->ops.write)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "%s is for reading only",
		                 store->name);
	lade_status status = lade__report_begin(&s.report, report, err);
	if (status != LADE_OK)
		return status;
	status = lade_sink_write((lade_sink){&ops, &s}, writes, count, options, err);
	lade__report_end(&s.report, report, began_ns);
	return status;
}

/* ---- listing ------------------------------------------------------------------------------- */

lade_status lade__prefix_check(const char *prefix, lade_error *err)
{
	char key[LADE_KEY_MAX + 2];
	lade_error why;
	size_t size = strnlen(prefix, LADE_KEY_MAX + 2);
	if (size == 0)
		return LADE_OK;
	if (size > LADE_KEY_MAX + 1 || prefix[size - 1] != '/')
		return lade_fail(err, LADE_E_ARG, size,
		                 "prefix '%.60s' does not end with '/', or has more than %d bytes",
		                 prefix, LADE_KEY_MAX + 1);
	memcpy(key, prefix, size - 1);
	key[size - 1] = 0;
	lade_status status = lade_key_check(key, &why);
	return status == LADE_OK ? status
	                         : lade_fail(err, status, why.offset, "prefix: %s", why.message);
}

/* A listing's caller, behind what the library checks. */
typedef struct visiting {
	const lade_store_listing *listing;
	lade_error *err;
} visiting;

/* Entries may be those of a caller's store, of another version. */
static lade_status visit(void *ctx, const lade_store_entry *given)
{
	const visiting *v = ctx;
	lade_store_entry entry = {0};
	lade_status status =
		lade__options_read(&entry, sizeof entry, given, "a listing's entry", v->err);
	const char *prefix = v->listing->prefix;
	char key[LADE_KEY_MAX + 2] = "";
	if (status != LADE_OK)
		return status;
	size_t size = entry.key ? strnlen(entry.key, sizeof key) : 0;
	if (size && size < sizeof key) {
		memcpy(key, entry.key, size + 1);
		if (key[size - 1] == '/')
			key[size - 1] = 0;
	}
	if (lade_key_check(key, NULL) != LADE_OK || strncmp(entry.key, prefix, strlen(prefix)) != 0)
		return lade_fail(v->err, LADE_E_IO, LADE_NO_OFFSET,
		                 "it lists '%.60s', which is no key behind '%.60s'",
		                 entry.key ? entry.key : "(NULL)", prefix);
	return v->listing->visit(v->listing->ctx, &entry);
}

lade_status lade_store_list(lade_store *store, const lade_store_listing *given, lade_error *err)
{
	lade_store_listing listing, own;
	lade_error why;
	visiting all = {&listing, &why};
	if (!store)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "store is NULL");
	lade_status status = lade__options_read(&listing, sizeof listing, given, "listing", err);
	if (status != LADE_OK)
		return status;
	if (!listing.visit)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "listing: visit is NULL");
	if (!store->ops.list)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "%s cannot list its keys",
		                 store->name);
	listing.prefix = listing.prefix ? listing.prefix : "";
	status = lade__prefix_check(listing.prefix, &why);
	if (status != LADE_OK)
		return lade_fail(err, status, why.offset, "listing: %s", why.message);
	why.message[0] = 0;
	own = listing;
	own.visit = visit;
	own.ctx = &all;
	status = store->ops.list(store->ctx, &own, &why);
	if (status != LADE_OK)
		lade_fail(err, status, LADE_NO_OFFSET, "%s: %s", store->name,
		          why.message[0] ? why.message : lade_status_text(status));
	return status;
}
