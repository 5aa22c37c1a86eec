/*
 * edit.c: reads a value with its version, changes it, and writes it if nobody else has.
 *
 *	read value and version --> change --> write if the version is the same --+--> done
 *	        ^                                                               |
 *	        +------------------------- LADE_E_CHANGED ----------------------+
 *
 * A store without versions cannot compare: then the lock of the key keeps out other threads of this
 * process, and nobody else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/edit.h"

#include "base/try.h"
#include "store/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DOCUMENT_MAX ((uint64_t)64 << 20)

/* ---- keys ------------------------------------------------------------------------------ */

lade_status lade__zarr_key(char key[LADE_KEY_MAX + 1], const char *path, const char *name,
                           lade_error *err)
{
	int size = snprintf(key, LADE_KEY_MAX + 1, "%s%s%s", path, path[0] ? "/" : "", name);
	if (size > LADE_KEY_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "key '%.60s...' has %d bytes, at most %d", key, size,
		                 LADE_KEY_MAX);
	return lade_key_check(key, err);
}

lade_status lade__zarr_path(const char *path, char out[LADE_KEY_MAX + 1], lade_error *err)
{
	char *to = out;
	if (!path)
		path = "";
	if (strlen(path) > LADE_KEY_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "a path of %zu bytes, at most %d",
		                 strlen(path), LADE_KEY_MAX);
	for (const char *from = path; *from; from++)
		if (*from != '/' || (to > out && from[1] && from[1] != '/'))
			*to++ = *from;
	*to = 0;
	return out[0] ? lade_key_check(out, err) : LADE_OK;
}

/* Locks by a hash of store and key: two keys may share one. */
#define LOCKS 61
static pthread_mutex_t locks[LOCKS];
static pthread_once_t locks_once = PTHREAD_ONCE_INIT;

static void make_locks(void)
{
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&locks[i], NULL);
}

/* In a forked child no other thread is left to give a lock back. */
static void begin_locks(void)
{
	make_locks();
	pthread_atfork(NULL, NULL, make_locks);
}

static pthread_mutex_t *lock_of(const lade_store *store, const char *key)
{
	uint64_t hash = (uint64_t)(uintptr_t)store;
	pthread_once(&locks_once, begin_locks);
	for (; *key; key++)
		hash = (hash ^ (unsigned char)*key) * 0x100000001b3;
	return &locks[(hash ^ hash >> 32) % LOCKS];
}

void lade__key_lock(const lade_store *store, const char *key)
{
	pthread_mutex_lock(lock_of(store, key));
}

void lade__key_unlock(const lade_store *store, const char *key)
{
	pthread_mutex_unlock(lock_of(store, key));
}

/* ---- values ------------------------------------------------------------------------------ */

lade_status lade__value_read(lade_store *store, const char *key, uint64_t most,
                             const lade_io_options *io, lade__value *out, lade_error *err)
{
	*out = (lade__value){0};
	uint64_t size;
	lade_status status = lade_store_look(store, key, &size, &out->version, err);
	if (status == LADE_E_NOT_FOUND)
		return LADE_OK;
	if (status == LADE_OK && size > most)
		status = lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                   "%s: %llu bytes, at most %llu", key, (unsigned long long)size,
		                   (unsigned long long)most);
	if (status != LADE_OK)
		return status;
	uint8_t *bytes = malloc((size_t)size + 1);
	if (!bytes)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %s of %llu bytes", key, (unsigned long long)size);
	lade_range range = {.key = key, .kind = LADE_RANGE_REST,
	                    .dst = lade_host_span(bytes, (size_t)size),
	                    .want = out->version.size ? &out->version : NULL};
	status = size ? lade_store_read(store, &range, 1, io, NULL, err) : LADE_OK;
	if (status == LADE_OK && range.size != size && size)
		status = lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET, "%s: want %llu bytes, have "
		                   "%zu", key, (unsigned long long)size, range.size);
	/* Deleted since it was looked at. */
	if (status == LADE_E_NOT_FOUND)
		status = lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET, "%s: is gone", key);
	if (status != LADE_OK) {
		free(bytes);
		return status;
	}
	out->bytes = bytes;
	out->size = (size_t)size;
	return LADE_OK;
}

lade_status lade__value_replace(lade_store *store, const char *key, const lade__value *old,
                                lade_cspan src, const lade_io_options *io, lade_error *err)
{
	bool versions = old->version.size > 0;
	lade_write write = {.key = key, .src = src};
	write.want = versions ? &old->version : NULL;
	write.kind = !src.data    ? LADE_DELETE_IF_VERSION
	             : !old->bytes ? LADE_WRITE_IF_ABSENT
	             : versions    ? LADE_WRITE_IF_VERSION
	                           : LADE_WRITE_ALWAYS;
	if (!src.data && !old->bytes)
		return LADE_OK;
	lade_status status = lade_store_write(store, &write, 1, io, NULL, err);
	if (status == LADE_E_NOT_FOUND && old->bytes)
		return !src.data ? LADE_OK
		                 : lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET, "%s: is gone",
		                             key);
	if (status == LADE_E_UNSUPPORTED && write.kind == LADE_WRITE_IF_ABSENT) {
		write.kind = LADE_WRITE_ALWAYS;
		status = lade_store_write(store, &write, 1, io, NULL, err);
	}
	return status;
}

/* Up to 2^attempt times 50 us, at most 12.8 ms; by the clock's last digits, so that two callers
 * part. */
void lade__try_pause(unsigned attempt)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	long most = 50000L << (attempt < 8 ? attempt : 8);
	nanosleep(&(struct timespec){.tv_nsec = now.tv_nsec / 64 * 1103 % most}, NULL);
}

/* ---- documents --------------------------------------------------------------------------- */

/* One try. */
static lade_status change_once(lade_store *store, const char *key, lade__change change, void *ctx,
                               bool sync, lade_error *err)
{
	const lade_io_options io = {
		.struct_size = sizeof io, .request_size = sizeof(lade_write), .sync = sync};
	lade__value old;
	lade__text text = {0};
	json doc = {0};
	lade_status status = lade__value_read(store, key, DOCUMENT_MAX, NULL, &old, err);
	if (status != LADE_OK)
		return status;
	if (!old.bytes)
		TRY(lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "%s: is not there", key));
	TRY(lade__json_parse(&doc, key, (const char *)old.bytes, old.size, err));
	TRY(change(ctx, &doc, &text, err));
	if (text.failed)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "%s: no memory for its text",
		              key));
	TRY(lade__value_replace(store, key, &old, lade_host_cspan(text.data, text.size), &io,
	                        err));
out:
	lade__json_free(&doc);
	lade__text_free(&text);
	free(old.bytes);
	return status;
}

lade_status lade__document_change(lade_store *store, const char *key, lade__change change,
                                  void *ctx, bool sync, lade_error *err)
{
	lade_status status = LADE_E_CHANGED;
	for (unsigned i = 0; i < LADE__TRIES && status == LADE_E_CHANGED; i++) {
		if (i)
			lade__try_pause(i);
		lade__key_lock(store, key);
		status = change_once(store, key, change, ctx, sync, err);
		lade__key_unlock(store, key);
	}
	return status;
}

/* ---- deleting ---------------------------------------------------------------------------- */

bool lade__is_chunk_key(const char *rest)
{
	if (rest[0] == 'c' && (rest[1] == 0 || rest[1] == '/' || rest[1] == '.'))
		rest += rest[1] ? 2 : 1;
	else if (rest[0] < '0' || rest[0] > '9')
		return false;
	return rest[strspn(rest, "0123456789./")] == 0;
}

typedef struct clearing {
	lade__names documents, others;
	size_t prefix;
	bool chunks_only;
	lade_error *err;
} clearing;

static bool is_document(const char *key)
{
	static const char *const names[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs",
	                                    ".zmetadata"};
	const char *slash = strrchr(key, '/');
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(slash ? slash + 1 : key, names[i]) == 0)
			return true;
	return false;
}

static lade_status note_key(void *ctx, const lade_store_entry *entry)
{
	clearing *c = ctx;
	if (c->chunks_only && !lade__is_chunk_key(entry->key + c->prefix))
		return LADE_OK;
	lade__names *names = is_document(entry->key) ? &c->documents : &c->others;
	if (lade__names_add(names, entry->key, strlen(entry->key), false, 0))
		return LADE_OK;
	return lade_fail(c->err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a list of keys");
}

/* 'own': those with no '/' behind the prefix, or those with one. */
static lade_status delete_names(lade_store *store, const lade__names *names, size_t prefix,
                                bool own, lade_error *err)
{
	for (size_t i = 0; i < names->count; i++) {
		lade_write write = {.key = names->text + names->names[i].at,
		                    .kind = LADE_DELETE_IF_VERSION};
		if (own != !strchr(write.key + prefix, '/'))
			continue;
		lade_status status = lade_store_write(store, &write, 1, NULL, NULL, err);
		if (status != LADE_OK && status != LADE_E_NOT_FOUND)
			return status;
	}
	return LADE_OK;
}

lade_status lade__zarr_clear(lade_store *store, const char *path, bool chunks_only, lade_error *err)
{
	char prefix[LADE_KEY_MAX + 2];
	clearing c = {.chunks_only = chunks_only, .err = err};
	c.prefix = (size_t)snprintf(prefix, sizeof prefix, "%s%s", path, path[0] ? "/" : "");
	lade_store_listing listing = {
		.struct_size = sizeof listing, .prefix = prefix, .visit = note_key, .ctx = &c};
	lade_status status;
	TRY(lade_store_list(store, &listing, err));
	TRY(delete_names(store, &c.documents, c.prefix, true, err));
	TRY(delete_names(store, &c.documents, c.prefix, false, err));
	TRY(delete_names(store, &c.others, c.prefix, true, err));
	TRY(delete_names(store, &c.others, c.prefix, false, err));
	lade__store_tidy(store, prefix);
out:
	lade__names_free(&c.documents);
	lade__names_free(&c.others);
	return status;
}
