/*
 * open.c: finds and reads the documents of a node, and its life.
 *
 * One call to the store asks for all documents that a node may have; what is larger than the
 * buffers is read by a second call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/zarr.h"

#include "base/options.h"
#include "base/try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_READ 8192
#define DOCUMENT_MAX ((uint64_t)64 << 20)

/* ---- documents ----------------------------------------------------------------------- */

enum { DOC_V3, DOC_ARRAY, DOC_GROUP, DOC_ATTRS, DOC_COUNT };
static const char *const doc_names[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs"};
static const char consolidated_name[] = ".zmetadata";

/* A document: its bytes and its table. */
typedef struct document {
	char key[LADE_KEY_MAX + 1];
	char *text; /* NULL: there is none */
	lade_object_version version;
	json doc;
	bool parsed;
} document;

static void document_free(document *d)
{
	if (d->parsed)
		lade__json_free(&d->doc);
	free(d->text);
}

static lade_status make_key(char key[LADE_KEY_MAX + 1], const char *path, const char *name,
                            lade_error *err)
{
	int size = snprintf(key, LADE_KEY_MAX + 1, "%s%s%s", path, path[0] ? "/" : "", name);
	if (size > LADE_KEY_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "key '%.60s...' has %d bytes, at "
		                 "most %d", key, size, LADE_KEY_MAX);
	return lade_key_check(key, err);
}

/* Reads what is larger than the first buffer. */
static lade_status read_large(const lade_zarr *node, document *d, size_t *got, lade_error *err)
{
	uint64_t most = node->options.document_max ? node->options.document_max : DOCUMENT_MAX;
	uint64_t size;
	lade_object_version *version = &d->version;
	lade_status status = lade_store_look(node->store, d->key, &size, version, err);
	if (status != LADE_OK)
		return status;
	if (size > most)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%s: %llu bytes, documents have at most %llu", d->key,
		                 (unsigned long long)size, (unsigned long long)most);
	char *text = realloc(d->text, (size_t)size);
	if (!text)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %s of %llu bytes", d->key,
		                 (unsigned long long)size);
	d->text = text;
	lade_range range = {.key = d->key, .kind = LADE_RANGE_REST,
	                    .dst = lade_host_span(text, (size_t)size),
	                    .want = version->size ? version : NULL};
	status = lade_store_read(node->store, &range, 1, NULL, NULL, err);
	*got = range.size;
	return status;
}

/* Reads 'count' documents; one that is not there has no text.  Each 'key' is set. */
static lade_status read_documents(const lade_zarr *node, document *docs, size_t count,
                                  lade_error *err)
{
	lade_range ranges[DOC_COUNT];
	lade_error errors[DOC_COUNT];
	lade_io_options io = {.struct_size = sizeof io, .request_size = sizeof ranges[0],
	                      .errors = errors};
	for (size_t i = 0; i < count; i++) {
		docs[i].text = malloc(FIRST_READ);
		if (!docs[i].text)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %s",
			                 docs[i].key);
		ranges[i] = (lade_range){.key = docs[i].key, .kind = LADE_RANGE_REST,
		                         .version = &docs[i].version,
		                         .dst = lade_host_span(docs[i].text, FIRST_READ)};
	}
	lade_status call = lade_store_read(node->store, ranges, count, &io, NULL, err);
	bool any = false;
	for (size_t i = 0; i < count; i++)
		any |= ranges[i].status != LADE_OK;
	if (call != LADE_OK && !any)
		return call;
	for (size_t i = 0; i < count; i++) {
		size_t size = ranges[i].size;
		lade_status status = ranges[i].status;
		if (status == LADE_E_NOT_FOUND) {
			free(docs[i].text);
			docs[i].text = NULL;
			continue;
		}
		if (status == LADE_E_NOSPACE)
			status = read_large(node, &docs[i], &size, err);
		else if (status != LADE_OK && err)
			*err = errors[i];
		if (status == LADE_OK)
			status = lade__json_parse(&docs[i].doc, docs[i].key, docs[i].text, size,
			                          err);
		if (status != LADE_OK)
			return status;
		docs[i].parsed = true;
	}
	return LADE_OK;
}

/* ---- the parts of a node --------------------------------------------------------------- */

/* Value 'at' must be a JSON object, or not be there. */
static lade_status set_attributes(const scan *s, uint32_t at)
{
	json_type is = lade__json_type(s->doc, at);
	s->node->attributes = "{}";
	if (is == JSON_ABSENT || is == JSON_NULL)
		return LADE_OK;
	if (is != JSON_OBJECT)
		return BAD(s, at, "want an object of attributes");
	s->node->attributes = lade__scan_text(s, at);
	return s->node->attributes ? LADE_OK : lade__scan_nomem(s, "attributes");
}

static lade_status check_format(const scan *s, uint32_t root, uint64_t want)
{
	uint32_t at = lade__json_get(s->doc, root, "zarr_format");
	uint64_t have;
	if (!lade__json_u64(s->doc, at, false, &have))
		return BAD(s, at == JSON_NONE ? root : at, "want zarr_format %d", (int)want);
	if (have != want)
		return lade__json_fail(s->doc, at, LADE_E_VERSION, s->err, "want zarr_format %d",
		                       (int)want);
	return LADE_OK;
}

static lade_status wrong_kind(const lade_zarr *node, lade_error *err)
{
	return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "'%s' is a%s", node->path,
	                 node->is_array ? "n array, not a group" : " group, not an array");
}

static bool kind_fits(const lade_zarr *node)
{
	return node->options.kind == LADE_ZARR_ANY ||
	       node->is_array == (node->options.kind == LADE_ZARR_ARRAY);
}

/* The document of a format 3 node, at value 'root'. */
static lade_status node_v3(const scan *s, uint32_t root)
{
	lade_zarr *node = s->node;
	uint32_t type = lade__json_get(s->doc, root, "node_type");
	lade_status status = check_format(s, root, 3);
	if (status != LADE_OK)
		return status;
	node->format = 3;
	node->is_array = lade__json_is(s->doc, type, "array");
	if (!node->is_array && !lade__json_is(s->doc, type, "group"))
		return BAD(s, type == JSON_NONE ? root : type, "want the node_type array or group");
	if (!kind_fits(node))
		return wrong_kind(node, s->err);
	status = set_attributes(s, lade__json_get(s->doc, root, "attributes"));
	if (status != LADE_OK || node->is_array)
		return status == LADE_OK ? lade__zarr_array_v3(s, root) : status;
	for (uint32_t c = lade__json_child(s->doc, root, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, root, c)) {
		bool known = lade__json_is(s->doc, c, "zarr_format") ||
		             lade__json_is(s->doc, c, "node_type") ||
		             lade__json_is(s->doc, c, "attributes") ||
		             lade__json_is(s->doc, c, "consolidated_metadata");
		uint32_t must = lade__json_get(s->doc, c + 1, "must_understand");
		if (!known && lade__json_type(s->doc, must) != JSON_FALSE)
			return UNKNOWN(s, c,
			               "an unknown member without \"must_understand\": false");
	}
	return LADE_OK;
}

/* The documents of a format 2 node; each is there or JSON_NONE. */
static lade_status node_v2(const scan *s, uint32_t array, const scan *group_scan, uint32_t group,
                           const scan *attributes_scan, uint32_t attributes)
{
	lade_zarr *node = s->node;
	node->format = 2;
	node->is_array = array != JSON_NONE;
	if (!kind_fits(node))
		return wrong_kind(node, s->err);
	lade_status status = node->is_array ? check_format(s, array, 2)
	                                    : check_format(group_scan, group, 2);
	if (status == LADE_OK)
		status = set_attributes(attributes_scan, attributes);
	return status == LADE_OK && node->is_array ? lade__zarr_array_v2(s, array) : status;
}

/* ---- consolidated metadata --------------------------------------------------------------- */

/* Moves a document that has members into a record of its own. */
static lade_status share(lade_zarr *node, document *d, uint32_t metadata, lade_error *err)
{
	shared_doc *shared = calloc(1, sizeof *shared);
	if (!shared)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for members");
	atomic_init(&shared->refs, 1);
	shared->doc = d->doc;
	shared->text = d->text;
	shared->metadata = metadata;
	snprintf(shared->name, sizeof shared->name, "%s", d->key);
	shared->doc.name = shared->name;
	d->text = NULL;
	d->parsed = false;
	node->members = shared;
	return LADE_OK;
}

/* Looks for the members in the group's own document (format 3) or in .zmetadata. */
static lade_status consolidate(lade_zarr *node, document *d, lade_error *err)
{
	document old = {.text = NULL};
	scan s = {.doc = &d->doc, .node = node, .err = err};
	lade_status status = LADE_OK;
	uint64_t version;
	uint32_t at = 0, metadata;
	if (node->is_array || node->options.no_consolidated)
		return LADE_OK;
	if (node->format == 2) {
		d = &old;
		TRY(make_key(d->key, node->path, consolidated_name, err));
		TRY(read_documents(node, d, 1, err));
		if (!d->text)
			goto out;
		s.doc = &d->doc;
		at = lade__json_get(&d->doc, 0, "zarr_consolidated_format");
		if (!lade__json_u64(&d->doc, at, false, &version) || version != 1)
			TRY(lade__json_fail(&d->doc, at == JSON_NONE ? 0 : at, LADE_E_VERSION, err,
			                    "want zarr_consolidated_format 1"));
		at = 0;
	} else {
		at = lade__json_get(&d->doc, 0, "consolidated_metadata");
		if (lade__json_type(&d->doc, at) <= JSON_NULL)
			goto out;
		uint32_t kind = lade__json_get(&d->doc, at, "kind");
		if (!lade__json_is(&d->doc, kind, "inline"))
			TRY(UNKNOWN(&s, kind == JSON_NONE ? at : kind, "want the kind \"inline\""));
	}
	metadata = lade__json_get(&d->doc, at, "metadata");
	if (lade__json_type(&d->doc, metadata) != JSON_OBJECT)
		TRY(BAD(&s, metadata == JSON_NONE ? at : metadata, "want an object of members"));
	TRY(share(node, d, metadata, err));
	TRY(lade__members_sort(node->members, err));
	status = lade__members_list(node, err);
out:
	document_free(&old);
	return status;
}

/* ---- opening --------------------------------------------------------------------------- */

static lade_status new_node(lade_store *store, const lade_zarr_options *options, const char *path,
                            lade_zarr **out, lade_error *err)
{
	lade_zarr *node = calloc(1, sizeof *node);
	if (!node)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a node");
	atomic_init(&node->refs, 1);
	node->store = lade_store_ref(store);
	node->chunk_store = lade_store_ref(options->chunk_store ? options->chunk_store : store);
	node->options = *options;
	node->array.struct_size = sizeof node->array;
	node->member_prefix = "";
	node->path = lade__arena(&node->arena, strlen(path) + 1, 1);
	if (!node->path) {
		lade_zarr_unref(node);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a path");
	}
	/* Without '/' at the ends and without empty names. */
	char *to = node->path;
	for (const char *from = path; *from; from++)
		if (*from != '/' || (to > node->path && from[1] && from[1] != '/'))
			*to++ = *from;
	*to = 0;
	*out = node;
	return LADE_OK;
}

static lade_status nothing(const lade_zarr *node, lade_error *err)
{
	return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
	                 "'%s' has neither zarr.json nor .zarray nor .zgroup", node->path);
}

static lade_status load(lade_zarr *node, lade_error *err)
{
	document *docs = calloc(DOC_COUNT, sizeof *docs);
	uint32_t format = node->options.format;
	size_t first = format == 2 ? DOC_ARRAY : DOC_V3;
	size_t last = format == 3 ? DOC_V3 : DOC_ATTRS;
	lade_status status = LADE_OK;
	if (!docs)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for documents");
	for (size_t i = first; i <= last; i++)
		TRY(make_key(docs[i].key, node->path, doc_names[i], err));
	TRY(read_documents(node, docs + first, last - first + 1, err));
	scan scans[DOC_COUNT];
	uint32_t root[DOC_COUNT];
	for (size_t i = 0; i < DOC_COUNT; i++) {
		scans[i] = (scan){.doc = &docs[i].doc, .node = node, .err = err};
		root[i] = docs[i].text ? 0 : JSON_NONE;
	}
	if (docs[DOC_V3].text)
		TRY(node_v3(&scans[DOC_V3], 0));
	else if (docs[DOC_ARRAY].text || docs[DOC_GROUP].text)
		TRY(node_v2(&scans[DOC_ARRAY], root[DOC_ARRAY], &scans[DOC_GROUP], root[DOC_GROUP],
		            &scans[DOC_ATTRS], root[DOC_ATTRS]));
	else
		TRY(nothing(node, err));
	node->seen = docs[docs[DOC_V3].text ? DOC_V3 : DOC_ARRAY].version;
	TRY(consolidate(node, &docs[DOC_V3], err));
out:
	for (size_t i = 0; i < DOC_COUNT; i++)
		document_free(&docs[i]);
	free(docs);
	return status;
}

lade_status lade_zarr_open(lade_store *store, const char *path, const lade_zarr_options *options,
                           lade_zarr **out, lade_error *err)
{
	lade_zarr_options own;
	lade_zarr *node;
	if (!store || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 store ? "out" : "store");
	*out = NULL;
	lade_status status = lade__options_read(&own, sizeof own, options, "options", err);
	if (status != LADE_OK)
		return status;
	if ((own.format && own.format != 2 && own.format != 3) || own.kind > LADE_ZARR_GROUP)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "options: format %u, want 0, 2 or 3; kind %d, want 0 to 2",
		                 own.format, (int)own.kind);
	status = new_node(store, &own, path ? path : "", &node, err);
	if (status != LADE_OK)
		return status;
	status = load(node, err);
	if (status == LADE_OK)
		*out = node;
	else
		lade_zarr_unref(node);
	return status;
}

/* ---- members ------------------------------------------------------------------------------ */

/* Fills in a node from the group's consolidated metadata. */
static lade_status load_member(lade_zarr *group, const char *path, lade_zarr *node, lade_error *err)
{
	lade_status status;
	scan s = {.doc = &group->members->doc, .node = node, .err = err};
	size_t size = strlen(group->member_prefix) + strlen(path) + 2;
	char *prefix = lade__arena(&node->arena, size, 1);
	if (!prefix)
		return lade__scan_nomem(&s, "a path");
	snprintf(prefix, size, "%s%s/", group->member_prefix, path);
	node->member_prefix = prefix;
	node->members = group->members;
	atomic_fetch_add_explicit(&group->members->refs, 1, memory_order_relaxed);
	if (group->format == 3) {
		uint32_t at = lade__members_find(group, path, NULL);
		status = at == JSON_NONE ? nothing(node, err) : node_v3(&s, at);
	} else {
		uint32_t array = lade__members_find(group, path, ".zarray");
		uint32_t own = lade__members_find(group, path, ".zgroup");
		uint32_t attributes = lade__members_find(group, path, ".zattrs");
		status = array == JSON_NONE && own == JSON_NONE
			? nothing(node, err)
			: node_v2(&s, array, &s, own, &s, attributes);
	}
	return status == LADE_OK && !node->is_array ? lade__members_list(node, err) : status;
}

lade_status lade_zarr_member_open(lade_zarr *group, const char *path, lade_zarr **out,
                                  lade_error *err)
{
	char whole[LADE_KEY_MAX + 1];
	lade_zarr *node;
	if (!group || !path || !out || group->is_array)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s",
		                 !group || !path || !out ? "group, path or out is NULL"
		                                         : "the node is an array, not a group");
	*out = NULL;
	lade_status status = make_key(whole, group->path, path, err);
	if (status != LADE_OK)
		return status;
	lade_zarr_options options = group->options;
	options.kind = LADE_ZARR_ANY;
	options.format = group->format;
	if (!group->members)
		return lade_zarr_open(group->store, whole, &options, out, err);
	status = new_node(group->store, &options, whole, &node, err);
	if (status != LADE_OK)
		return status;
	status = load_member(group, path, node, err);
	if (status == LADE_OK)
		*out = node;
	else
		lade_zarr_unref(node);
	return status;
}

/* ---- handles --------------------------------------------------------------------------- */

lade_zarr *lade_zarr_ref(lade_zarr *node)
{
	atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
	return node;
}

void lade_zarr_unref(lade_zarr *node)
{
	if (!node || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (kept_spec *kept = node->specs; kept; kept = kept->next)
		lade_spec_unref(kept->spec);
	lade__members_unref(node->members);
	lade_store_unref(node->store);
	lade_store_unref(node->chunk_store);
	lade__arena_free(&node->arena);
	free(node);
}

const lade_zarr_array *lade_zarr_as_array(const lade_zarr *node)
{
	return node->is_array ? &node->array : NULL;
}

uint32_t lade_zarr_format(const lade_zarr *node)
{
	return node->format;
}

const char *lade_zarr_path(const lade_zarr *node)
{
	return node->path;
}

const char *lade_zarr_attributes(const lade_zarr *node)
{
	return node->attributes;
}

const char *lade_zarr_member(const lade_zarr *group, size_t index)
{
	return index < group->member_count ? group->member_paths[index] : NULL;
}
