/*
 * tree_out.c: schemas and arrays of the Arrow C data interface as objects, the buffers in place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>
#include <string.h>

/* ---- schemas ------------------------------------------------------------------------------- */

static int32_t take(const char **at)
{
	int32_t value;

	memcpy(&value, *at, sizeof value);
	*at += sizeof value;
	return value;
}

/* [[key, value], ...]: in the C interface counts and sizes of int32, of the machine's order. */
static napi_value metadata_out(napi_env env, const char *metadata)
{
	napi_value list = NULL;

	if (!metadata || napi_create_array(env, &list) != napi_ok)
		return node_text(env, NULL);
	int32_t count = take(&metadata);
	for (int32_t i = 0; i < count; i++) {
		napi_value pair, part;
		napi_create_array_with_length(env, 2, &pair);
		for (uint32_t j = 0; j < 2; j++) {
			int32_t size = take(&metadata);
			if (napi_create_string_utf8(env, metadata, (size_t)size, &part) == napi_ok)
				napi_set_element(env, pair, j, part);
			metadata += size;
		}
		napi_set_element(env, list, (uint32_t)i, pair);
	}
	return list;
}

napi_value node_schema_out(napi_env env, const struct ArrowSchema *s)
{
	napi_value out, children;

	if (napi_create_object(env, &out) != napi_ok ||
	    napi_create_array(env, &children) != napi_ok)
		return NULL;
	node_set(env, out, "format", node_text(env, s->format));
	node_set(env, out, "name", node_text(env, s->name ? s->name : ""));
	node_set(env, out, "flags", node_number(env, (uint64_t)s->flags));
	node_set(env, out, "metadata", metadata_out(env, s->metadata));
	for (int64_t i = 0; i < s->n_children; i++) {
		napi_value child = node_schema_out(env, s->children[i]);
		if (!child)
			return NULL;
		napi_set_element(env, children, (uint32_t)i, child);
	}
	node_set(env, out, "children", children);
	node_set(env, out, "dictionary",
	         s->dictionary ? node_schema_out(env, s->dictionary) : node_text(env, NULL));
	return out;
}

/* ---- arrays -------------------------------------------------------------------------------- */

/* An array that ArrayBuffers are in. */
typedef struct shown {
	struct ArrowArray array;
	size_t refs;
} shown;

static void shown_unref(void *ctx)
{
	shown *s = ctx;

	if (--s->refs)
		return;
	s->array.release(&s->array);
	free(s);
}

static napi_value tree(napi_env env, shown *s, const struct ArrowSchema *schema,
                       const struct ArrowArray *a)
{
	napi_value out, buffers, children, null = node_text(env, NULL);
	lade_error err;

	if (napi_create_object(env, &out) != napi_ok ||
	    napi_create_array(env, &buffers) != napi_ok ||
	    napi_create_array(env, &children) != napi_ok)
		return NULL;
	for (size_t i = 0; i < (size_t)a->n_buffers; i++) {
		napi_value buffer = null;
		uint64_t size;
		if (a->buffers[i]) {
			if (node_buffer_size(schema, a, i, &size, &err))
				return node_throw(env, &err);
			s->refs++;
			buffer = node_external(env, (void *)(uintptr_t)a->buffers[i], (size_t)size,
			                       shown_unref, s);
			if (!buffer)
				return NULL;
		}
		napi_set_element(env, buffers, (uint32_t)i, buffer);
	}
	for (int64_t i = 0; i < a->n_children; i++) {
		napi_value child = tree(env, s, schema->children[i], a->children[i]);
		if (!child)
			return NULL;
		napi_set_element(env, children, (uint32_t)i, child);
	}
	napi_value nulls, dictionary = null;
	napi_create_int64(env, a->null_count, &nulls);
	if (a->dictionary && !(dictionary = tree(env, s, schema->dictionary, a->dictionary)))
		return NULL;
	node_set(env, out, "length", node_number(env, (uint64_t)a->length));
	node_set(env, out, "nullCount", nulls);
	node_set(env, out, "offset", node_number(env, (uint64_t)a->offset));
	node_set(env, out, "buffers", buffers);
	node_set(env, out, "children", children);
	node_set(env, out, "dictionary", dictionary);
	return out;
}

napi_value node_array_out(napi_env env, const struct ArrowSchema *schema, struct ArrowArray *array)
{
	shown *s = malloc(sizeof *s);
	napi_value out;

	if (!s) {
		array->release(array);
		return NULL;
	}
	*s = (shown){*array, 1};
	out = tree(env, s, schema, &s->array);
	shown_unref(s);
	return out;
}
