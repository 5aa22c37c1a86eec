/*
 * update.c: changes of documents: attributes, shapes, consolidated metadata.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/describe.h"
#include "zarr/edit.h"
#include "zarr/update.h"

#include "base/try.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT_MAX ((uint64_t)64 << 20)

lade_status lade__zarr_document_key(const lade_zarr *node, bool attributes,
                                    char key[LADE_KEY_MAX + 1], lade_error *err)
{
	const char *name = node->format == 3 ? "zarr.json"
	                   : attributes      ? ".zattrs"
	                   : node->is_array  ? ".zarray"
	                                     : ".zgroup";
	return lade__zarr_key(key, node->path, name, err);
}

lade_status lade__zarr_again(const lade_zarr *node, lade_zarr **out, lade_error *err)
{
	lade_zarr_options options = node->options;
	if (!out)
		return LADE_OK;
	options.format = node->format;
	return lade_zarr_open(node->store, node->path, &options, out, err);
}

/* ---- attributes --------------------------------------------------------------------------- */

static lade_status put_attributes(void *ctx, const json *doc, lade__text *to, lade_error *err)
{
	lade__member member = {.key = "attributes", .value = ctx};
	if (lade__json_type(doc, 0) != JSON_OBJECT)
		return lade__json_fail(doc, 0, LADE_E_CORRUPT, err, "want an object");
	lade__text_with(to, doc, 0, 0, &member);
	return LADE_OK;
}

lade_status lade_zarr_set_attributes(lade_zarr *node, const char *attributes, lade_zarr **out,
                                     lade_error *err)
{
	char key[LADE_KEY_MAX + 1];
	lade__text text = {0};
	json doc = {0};
	lade_status status;
	if (!node || !attributes)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 node ? "attributes" : "node");
	if (out)
		*out = NULL;
	TRY(lade__json_parse(&doc, "attributes", attributes, strlen(attributes), err));
	if (lade__json_type(&doc, 0) != JSON_OBJECT)
		TRY(lade__json_fail(&doc, 0, LADE_E_ARG, err, "want an object"));
	TRY(lade__zarr_document_key(node, true, key, err));
	if (node->format == 3) {
		TRY(lade__document_change(node->store, key, put_attributes, &doc, false, err));
	} else {
		lade__text_pretty(&text, &doc, 0, 0);
		if (text.failed)
			TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %s", key));
		lade_write write = {.key = key, .src = lade_host_cspan(text.data, text.size)};
		TRY(lade_store_write(node->store, &write, 1, NULL, NULL, err));
	}
	status = lade__zarr_again(node, out, err);
out:
	lade__json_free(&doc);
	lade__text_free(&text);
	return status;
}

/* ---- shapes ------------------------------------------------------------------------------- */

/* The shape of the document, as the change finds it. */
static lade_status read_shape(lade__reshape *r, const json *doc, lade_error *err)
{
	uint32_t at = lade__json_get(doc, 0, "shape");
	size_t i = 0;
	if (lade__json_type(doc, at) != JSON_ARRAY || lade__json_count(doc, at) != r->ndim)
		return lade__json_fail(doc, at, LADE_E_CORRUPT, err, "want a list of %zu sizes",
		                       r->ndim);
	for (uint32_t c = lade__json_child(doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(doc, at, c), i++)
		if (!lade__json_u64(doc, c, false, &r->old[i]))
			return lade__json_fail(doc, c, LADE_E_CORRUPT, err, "want a size");
	return LADE_OK;
}

static lade_status put_shape(void *ctx, const json *doc, lade__text *to, lade_error *err)
{
	lade__reshape *r = ctx;
	lade__text shape = {0};
	json value = {0}, result = {0};
	lade_status status;
	TRY(read_shape(r, doc, err));
	if (r->grow) {
		memcpy(r->shape, r->old, sizeof r->old);
		if (__builtin_add_overflow(r->old[r->axis], r->grow, &r->shape[r->axis]))
			TRY(lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			              "axis %zu of %" PRIu64 " elements and %" PRIu64 " more",
			              r->axis, r->old[r->axis], r->grow));
	}
	lade__text_put(&shape, "[");
	for (size_t i = 0; i < r->ndim; i++)
		lade__text_put(&shape, "%s%" PRIu64, i ? "," : "", r->shape[i]);
	lade__text_put(&shape, "]");
	if (shape.failed)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a shape"));
	TRY(lade__json_parse(&value, "shape", shape.data, shape.size, err));
	lade__member member = {.key = "shape", .value = &value};
	lade__text_with(to, doc, 0, 0, &member);
	if (to->failed)
		goto out;
	TRY(lade__json_parse(&result, doc->name, to->data, to->size, err));
	TRY(lade__zarr_check(&result, r->format, r->open, err));
out:
	lade__json_free(&result);
	lade__json_free(&value);
	lade__text_free(&shape);
	return status;
}

lade_status lade__zarr_reshape(const lade_zarr *array, lade__reshape *r, lade_error *err)
{
	char key[LADE_KEY_MAX + 1];
	lade_status status = lade__zarr_document_key(array, false, key, err);
	r->ndim = array->array.ndim;
	r->format = array->format;
	r->open = &array->options;
	if (status == LADE_OK)
		status = lade__document_change(array->store, key, put_shape, r, r->sync, err);
	return status;
}

/* Chunks that have no elements any more. */
typedef struct outside {
	const lade_zarr *array;
	size_t prefix;
	lade__names names;
	lade_error *err;
} outside;

/* Reads the indices of a key; true if it is a chunk of the array, but not one in its grid. */
static bool is_outside(const lade_zarr *array, const char *rest)
{
	size_t ndim = array->array.ndim;
	bool beyond = false;
	char *end;
	if (!lade__is_chunk_key(rest) || ndim == 0)
		return false;
	if (array->key_prefix && (rest[0] != 'c' || rest[1] != array->separator))
		return false;
	rest += array->key_prefix ? 2 : 0;
	for (size_t i = 0; i < ndim; i++) {
		if (*rest < '0' || *rest > '9')
			return false;
		uint64_t index = strtoull(rest, &end, 10);
		beyond |= index >= array->array.axes[i].chunk_count;
		if (*end != (i + 1 < ndim ? array->separator : 0))
			return false;
		rest = end + 1;
	}
	return beyond;
}

static lade_status note_outside(void *ctx, const lade_store_entry *entry)
{
	outside *o = ctx;
	if (!is_outside(o->array, entry->key + o->prefix) ||
	    lade__names_add(&o->names, entry->key, strlen(entry->key), false, 0))
		return LADE_OK;
	return lade_fail(o->err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a list of keys");
}

lade_status lade__zarr_delete_outside(const lade_zarr *array, lade_error *err)
{
	char prefix[LADE_KEY_MAX + 2];
	outside o = {.array = array, .err = err};
	o.prefix = (size_t)snprintf(prefix, sizeof prefix, "%s%s", array->path,
	                            array->path[0] ? "/" : "");
	lade_store_listing listing = {
		.struct_size = sizeof listing, .prefix = prefix, .visit = note_outside, .ctx = &o};
	lade_status status = lade_store_list(array->chunk_store, &listing, err);
	for (size_t i = 0; status == LADE_OK && i < o.names.count; i++) {
		lade_write write = {.key = o.names.text + o.names.names[i].at,
		                    .kind = LADE_DELETE_IF_VERSION};
		status = lade_store_write(array->chunk_store, &write, 1, NULL, NULL, err);
		status = status == LADE_E_NOT_FOUND ? LADE_OK : status;
	}
	if (status == LADE_OK)
		lade__store_tidy(array->chunk_store, prefix);
	lade__names_free(&o.names);
	return status == LADE_E_UNSUPPORTED ? LADE_OK : status;
}

lade_status lade_zarr_resize(lade_zarr *array, const uint64_t *shape, lade_zarr **out,
                             lade_error *err)
{
	lade__reshape r = {.ndim = 0};
	lade_zarr *now = NULL;
	bool smaller = false;
	if (!array || !array->is_array || (array->array.ndim && !shape))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s",
		                 array && array->is_array ? "shape is NULL"
		                                          : "the node is no array");
	if (out)
		*out = NULL;
	for (size_t i = 0; i < array->array.ndim; i++)
		r.shape[i] = shape[i];
	lade_status status = lade__zarr_reshape(array, &r, err);
	if (status == LADE_OK)
		status = lade__zarr_again(array, &now, err);
	for (size_t i = 0; i < array->array.ndim; i++)
		smaller |= r.shape[i] < r.old[i];
	if (status == LADE_OK && smaller)
		status = lade__zarr_delete_outside(now, err);
	if (status == LADE_OK && out)
		*out = now;
	else
		lade_zarr_unref(now);
	return status;
}

/* ---- consolidated metadata ------------------------------------------------------------------ */

typedef struct collecting {
	lade_zarr *group;
	size_t prefix;      /* of keys: the group's path */
	lade__names groups; /* to look through: paths with '/' at the end, relative to the group */
	lade__names level;  /* what is in one of them */
	lade__text text;    /* the object of members */
	size_t member_count;
	lade_error *err;
} collecting;

static lade_status note_member(void *ctx, const lade_store_entry *entry)
{
	collecting *c = ctx;
	size_t size = strlen(entry->key);
	if (entry->key[size - 1] != '/' ||
	    lade__names_add(&c->level, entry->key + c->prefix, size - c->prefix, false, 0))
		return LADE_OK;
	return lade_fail(c->err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a list of members");
}

/* Adds a document of member 'path' ("a/"); '*found' says what it is. */
static lade_status add_document(collecting *c, const char *path, const char *name,
                                lade_zarr_kind *found)
{
	static const char empty_text[] =
		"{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{}}";
	const lade_zarr *group = c->group;
	char key[LADE_KEY_MAX + 1], member[LADE_KEY_MAX + 1];
	lade__value value = {0};
	json doc = {0}, empty = {0};
	lade_status status;
	if (snprintf(member, sizeof member, "%s%s", path, name) > LADE_KEY_MAX)
		return LADE_OK;
	TRY(lade__zarr_key(key, group->path, member, c->err));
	TRY(lade__value_read(group->store, key, DOCUMENT_MAX, NULL, &value, c->err));
	if (!value.bytes)
		goto out;
	TRY(lade__json_parse(&doc, key, (const char *)value.bytes, value.size, c->err));
	bool is_group = group->format == 3
		? lade__json_is(&doc, lade__json_get(&doc, 0, "node_type"), "group")
		: strcmp(name, ".zgroup") == 0;
	*found = is_group ? LADE_ZARR_GROUP : LADE_ZARR_ARRAY;
	lade__text_put(&c->text, c->member_count++ ? "," : "");
	if (group->format == 3)
		member[strlen(path) - 1] = 0;
	lade__text_string(&c->text, member, strlen(member));
	lade__text_put(&c->text, ":");
	if (group->format == 2 || !is_group) {
		lade__text_raw(&c->text, &doc, 0);
		goto out;
	}
	/* As zarr-python, which fills the members of nested groups in when it reads. */
	TRY(lade__json_parse(&empty, "empty", empty_text, strlen(empty_text), c->err));
	lade__member none = {
		.key = "consolidated_metadata", .before = "node_type", .value = &empty};
	lade__text_with(&c->text, &doc, 0, 0, &none);
out:
	lade__json_free(&empty);
	lade__json_free(&doc);
	free(value.bytes);
	return status;
}

/* The documents of a member; groups are looked through later. */
static lade_status add_member(collecting *c, const char *path)
{
	lade_zarr_kind kind = LADE_ZARR_ANY, other;
	lade_status status;
	if (c->group->format == 3) {
		status = add_document(c, path, "zarr.json", &kind);
	} else {
		status = add_document(c, path, ".zarray", &kind);
		if (status == LADE_OK && kind == LADE_ZARR_ANY)
			status = add_document(c, path, ".zgroup", &kind);
		if (status == LADE_OK && kind != LADE_ZARR_ANY)
			status = add_document(c, path, ".zattrs", &other);
	}
	if (status == LADE_OK && kind == LADE_ZARR_GROUP &&
	    !lade__names_add(&c->groups, path, strlen(path), false, 0))
		status = lade_fail(c->err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for groups");
	return status;
}

/* All members, level by level: chunks are not listed. */
static lade_status collect(collecting *c)
{
	char prefix[LADE_KEY_MAX + 2];
	const char *path = c->group->path;
	lade_status status = LADE_OK;
	if (!lade__names_add(&c->groups, "", 0, false, 0))
		return lade_fail(c->err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for groups");
	for (size_t i = 0; i < c->groups.count; i++) {
		snprintf(prefix, sizeof prefix, "%s%s%s", path, path[0] ? "/" : "",
		         c->groups.text + c->groups.names[i].at);
		lade_store_listing listing = {.struct_size = sizeof listing, .prefix = prefix,
		                              .level = true, .visit = note_member, .ctx = c};
		TRY(lade_store_list(c->group->store, &listing, c->err));
		for (size_t k = 0; k < c->level.count; k++)
			TRY(add_member(c, c->level.text + c->level.names[k].at));
		lade__names_free(&c->level);
		c->level = (lade__names){0};
	}
out:
	return status;
}

static lade_status put_members(void *ctx, const json *doc, lade__text *to, lade_error *err)
{
	lade__member member = {
		.key = "consolidated_metadata", .before = "node_type", .value = ctx};
	if (lade__json_type(doc, 0) != JSON_OBJECT)
		return lade__json_fail(doc, 0, LADE_E_CORRUPT, err, "want an object");
	lade__text_with(to, doc, 0, 0, &member);
	return LADE_OK;
}

static lade_status write_members(lade_zarr *group, const json *doc, lade_error *err)
{
	char key[LADE_KEY_MAX + 1];
	lade_status status;
	if (group->format == 3) {
		status = lade__zarr_document_key(group, false, key, err);
		if (status == LADE_OK)
			status = lade__document_change(group->store, key, put_members,
			                               (void *)(uintptr_t)doc, false, err);
		return status;
	}
	lade__text text = {0};
	TRY(lade__zarr_key(key, group->path, ".zmetadata", err));
	lade__text_pretty(&text, doc, 0, 0);
	if (text.failed)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %s", key));
	lade_write write = {.key = key, .src = lade_host_cspan(text.data, text.size)};
	status = lade_store_write(group->store, &write, 1, NULL, NULL, err);
out:
	lade__text_free(&text);
	return status;
}

lade_status lade_zarr_consolidate(lade_zarr *group, lade_zarr **out, lade_error *err)
{
	collecting c = {.group = group, .err = err};
	lade_zarr_kind kind;
	json doc = {0};
	lade_status status;
	if (!group || group->is_array)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "the node is no group");
	if (out)
		*out = NULL;
	c.prefix = strlen(group->path) + (group->path[0] != 0);
	lade__text_put(&c.text, group->format == 3
	               ? "{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{"
	               : "{\"metadata\":{");
	if (group->format == 2) {
		TRY(add_document(&c, "", ".zgroup", &kind));
		TRY(add_document(&c, "", ".zattrs", &kind));
	}
	TRY(collect(&c));
	lade__text_put(&c.text, group->format == 3 ? "}}" : "},\"zarr_consolidated_format\":1}");
	if (c.text.failed)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for members"));
	TRY(lade__json_parse(&doc, "members", c.text.data, c.text.size, err));
	TRY(write_members(group, &doc, err));
	status = lade__zarr_again(group, out, err);
out:
	lade__json_free(&doc);
	lade__text_free(&c.text);
	lade__names_free(&c.groups);
	lade__names_free(&c.level);
	return status;
}
