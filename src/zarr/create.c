/*
 * create.c: makes arrays and groups, and deletes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/describe.h"
#include "zarr/edit.h"

#include "base/options.h"
#include "base/try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is there ------------------------------------------------------------------------ */

static const char *const documents[] = {"zarr.json", ".zarray", ".zgroup"};

/* Which documents of a node exist, as bits. */
static lade_status look(lade_store *store, const char *path, unsigned *there, lade_error *err)
{
	char keys[3][LADE_KEY_MAX + 1];
	lade_range ranges[3] = {{0}};
	lade_error errors[3];
	lade_io_options io = {.struct_size = sizeof io, .request_size = sizeof ranges[0],
	                      .errors = errors};
	*there = 0;
	for (size_t i = 0; i < 3; i++) {
		lade_status status = lade__zarr_key(keys[i], path, documents[i], err);
		if (status != LADE_OK)
			return status;
		ranges[i].key = keys[i];
	}
	lade_status call = lade_store_read(store, ranges, 3, &io, NULL, err);
	/* A file that is being written has no reader, and may exist already. */
	if (call == LADE_E_UNSUPPORTED && ranges[0].status == LADE_E_UNSUPPORTED)
		return LADE_OK;
	for (size_t i = 0; i < 3; i++) {
		if (ranges[i].status == LADE_OK)
			*there |= 1u << i;
		else if (ranges[i].status != LADE_E_NOT_FOUND)
			return call;
	}
	return LADE_OK;
}

/* Ends a listing at the first key that would be a chunk. */
typedef struct finding {
	size_t prefix;
	char key[LADE_KEY_MAX + 2];
} finding;

static lade_status find_chunk(void *ctx, const lade_store_entry *entry)
{
	finding *f = ctx;
	if (!lade__is_chunk_key(entry->key + f->prefix))
		return LADE_OK;
	snprintf(f->key, sizeof f->key, "%s", entry->key);
	return LADE_E_CANCELLED;
}

/* Values that would become chunks, such as an interrupted deletion leaves. */
static lade_status check_no_chunks(lade_store *store, const char *path, lade_error *err)
{
	char prefix[LADE_KEY_MAX + 2];
	finding f = {.key = ""};
	f.prefix = (size_t)snprintf(prefix, sizeof prefix, "%s%s", path, path[0] ? "/" : "");
	lade_store_listing listing = {.struct_size = sizeof listing, .prefix = prefix,
	                              .level = true, .visit = find_chunk, .ctx = &f};
	lade_status status = lade_store_list(store, &listing, err);
	if (f.key[0])
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "'%s' has no array, but '%s', which would be read as chunks", path,
		                 f.key);
	return status == LADE_E_UNSUPPORTED ? LADE_OK : status;
}

static lade_status exists(const char *path, lade_error *err)
{
	if (!path[0])
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "an array or group exists already at the root of the store");
	return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET, "'%s' exists already", path);
}

/* Makes the path free, or fails. */
static lade_status make_free(lade_store *store, const char *path, bool array, bool replace,
                             lade_store *chunks, lade_error *err)
{
	unsigned there;
	lade_status status = look(store, path, &there, err);
	if (status != LADE_OK)
		return status;
	if (there && !replace)
		return exists(path, err);
	if (there)
		status = lade_zarr_delete(store, path, err);
	if (status != LADE_OK || !array)
		return status;
	return replace ? lade__zarr_clear(chunks, path, true, err)
	               : check_no_chunks(chunks, path, err);
}

/* ---- creating --------------------------------------------------------------------------- */

static lade_status write_document(lade_store *store, const char *path, const char *name,
                                  const lade__text *text, lade_error *err)
{
	char key[LADE_KEY_MAX + 1];
	lade_status status = lade__zarr_key(key, path, name, err);
	lade_write write = {.key = key, .kind = LADE_WRITE_IF_ABSENT,
	                    .src = lade_host_cspan(text->data, text->size)};
	if (strcmp(name, ".zattrs") == 0)
		write.kind = LADE_WRITE_ALWAYS;
	return status == LADE_OK ? lade_store_write(store, &write, 1, NULL, NULL, err) : status;
}

/* The documents of a node: zarr.json; or .zarray or .zgroup, and .zattrs. */
typedef struct texts {
	const char *name;
	bool old; /* format 2 */
	lade__text document, attributes;
} texts;

static lade_status make_texts(const char *path, const lade_zarr_description *d,
                              const lade_zarr_options *open, texts *out, lade_error *err)
{
	char key[LADE_KEY_MAX + 1];
	bool old = d->format == 2;
	*out = (texts){.old = old, .name = !old ? "zarr.json"
	                           : d->kind == LADE_ZARR_ARRAY ? ".zarray" : ".zgroup"};
	lade_status status = lade__zarr_key(key, path, out->name, err);
	if (status == LADE_OK)
		status = lade__zarr_document(d, open, key, &out->document, &out->attributes, err);
	return status;
}

static void free_texts(texts *t)
{
	lade__text_free(&t->document);
	lade__text_free(&t->attributes);
}

/* In format 2 whoever writes the first document owns the path. */
static lade_status write_texts(lade_store *store, const char *path, const texts *t, lade_error *err)
{
	lade_status status = write_document(store, path, t->name, &t->document, err);
	if (status == LADE_OK && t->old)
		status = write_document(store, path, ".zattrs", &t->attributes, err);
	return status;
}

/* Opens what was written from memory: a zip file that is being written cannot be read. */
static lade_status open_texts(lade_store *store, const char *path, const texts *t,
                              const lade_zarr_options *options, lade_zarr **out, lade_error *err)
{
	lade_zarr_options open = *options;
	lade_store *memory = NULL;
	lade_status status;
	open.format = t->old ? 2 : 3;
	open.chunk_store = open.chunk_store ? open.chunk_store : store;
	TRY(lade_store_memory_new(LADE_PLACE_HOST, NULL, &memory, err));
	TRY(write_texts(memory, path, t, err));
	TRY(lade_zarr_open(memory, path, &open, out, err));
	(*out)->store = lade_store_ref(store);
	(*out)->options.chunk_store = options->chunk_store;
	(*out)->seen.size = 0;
	lade_store_unref(memory); /* the node's */
out:
	lade_store_unref(memory);
	return status;
}

/* Makes the groups above a path, from the root down. */
static lade_status make_parents(lade_store *store, const char *path, uint32_t format,
                                lade_error *err)
{
	lade_zarr_description group = {.struct_size = sizeof group, .kind = LADE_ZARR_GROUP,
	                               .format = format};
	const lade_zarr_options open = {.struct_size = sizeof open};
	char parent[LADE_KEY_MAX + 1];
	texts t;
	lade_status status = LADE_OK;
	for (const char *end = path; status == LADE_OK && end && path[0];
	     end = strchr(end + (end > path), '/')) {
		unsigned there;
		lade_zarr *node = NULL;
		snprintf(parent, sizeof parent, "%.*s", (int)(end - path), path);
		status = look(store, parent, &there, err);
		if (status == LADE_OK && !there) {
			status = make_texts(parent, &group, &open, &t, err);
			if (status == LADE_OK)
				status = write_texts(store, parent, &t, err);
			free_texts(&t);
			if (status == LADE_E_CHANGED)
				status = LADE_OK; /* another caller made it */
			continue;
		}
		if (status == LADE_OK)
			status = lade_zarr_open(store, parent, NULL, &node, err);
		if (status == LADE_OK && lade_zarr_as_array(node))
			status = lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
			                   "'%s' is an array, and '%s' is below it", parent, path);
		lade_zarr_unref(node);
	}
	return status;
}

lade_status lade_zarr_create(lade_store *store, const char *path,
                             const lade_zarr_description *description,
                             const lade_zarr_create_options *options, lade_zarr **out,
                             lade_error *err)
{
	lade_zarr_description d;
	lade_zarr_create_options own;
	lade_zarr_options open;
	char at[LADE_KEY_MAX + 1];
	texts t = {.name = ""};
	lade_status status;
	if (!store || !description)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 store ? "description" : "store");
	if (out)
		*out = NULL;
	TRY(lade__options_read(&d, sizeof d, description, "description", err));
	TRY(lade__options_read(&own, sizeof own, options, "options", err));
	TRY(lade__options_read(&open, sizeof open, own.open, "options.open", err));
	TRY(lade__zarr_path(path, at, err));
	d.format = d.format ? d.format : 3;
	/* All checks of the description come before any change. */
	status = make_texts(at, &d, &open, &t, err);
	if (status == LADE_E_CORRUPT) { /* in a document that is stored it would be */
		status = LADE_E_ARG;
		if (err)
			err->status = status;
	}
	TRY(status);
	lade_store *chunks = open.chunk_store ? open.chunk_store : store;
	if (!own.no_parents)
		TRY(make_parents(store, at, d.format, err));
	TRY(make_free(store, at, d.kind == LADE_ZARR_ARRAY, own.exists == LADE_ZARR_REPLACE, chunks,
	              err));
	status = write_texts(store, at, &t, err);
	if (status == LADE_E_CHANGED)
		exists(at, err);
	if (status == LADE_OK && out)
		status = open_texts(store, at, &t, &open, out, err);
out:
	free_texts(&t);
	return status;
}

/* ---- deleting --------------------------------------------------------------------------- */

lade_status lade_zarr_delete(lade_store *store, const char *path, lade_error *err)
{
	char at[LADE_KEY_MAX + 1];
	unsigned there;
	if (!store)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "store is NULL");
	lade_status status = lade__zarr_path(path, at, err);
	if (status == LADE_OK)
		status = look(store, at, &there, err);
	if (status == LADE_OK && !there)
		status = lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                   "'%s' has neither zarr.json nor .zarray nor .zgroup", at);
	return status == LADE_OK ? lade__zarr_clear(store, at, false, err) : status;
}
