/*
 * tree_in.c: objects as schemas and arrays of the Arrow C data interface.
 *
 * Buffers stay where they are; their sizes are checked here, since the interface has none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64
#define CHILDREN_MAX 65536

/* ---- memory -------------------------------------------------------------------------------- */

struct node_arena_block {
	struct node_arena_block *before;
	max_align_t memory[];
};

void *node_arena_alloc(node_arena *arena, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(struct node_arena_block), &bytes))
		return NULL;
	struct node_arena_block *block = calloc(1, bytes);
	if (!block)
		return NULL;
	block->before = arena->last;
	arena->last = block;
	return block->memory;
}

void node_arena_free(node_arena *arena)
{
	while (arena->last) {
		struct node_arena_block *before = arena->last->before;
		free(arena->last);
		arena->last = before;
	}
}

static bool no_memory(napi_env env)
{
	node_throw(env, &(lade_error){LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a table"});
	return false;
}

/* ---- parts of objects ---------------------------------------------------------------------- */

static bool text_in(napi_env env, napi_value value, const char *what, node_arena *arena,
                    const char **out)
{
	char *text;

	if (!node_get_text(env, value, what, &text))
		return false;
	size_t size = text ? strlen(text) + 1 : 1;
	char *copy = node_arena_alloc(arena, size, 1);
	if (copy && text)
		memcpy(copy, text, size);
	free(text);
	*out = copy;
	return copy || no_memory(env);
}

/* The array 'name' of an object, and its length; none is one of 0. */
static bool list_of(napi_env env, napi_value object, const char *name, napi_value *list,
                    uint32_t *count)
{
	bool is = false;

	*count = 0;
	*list = node_get(env, object, name);
	if (!*list)
		return false;
	if (node_is_null(env, *list))
		return true;
	if (napi_is_array(env, *list, &is) != napi_ok || !is ||
	    napi_get_array_length(env, *list, count) != napi_ok || *count > CHILDREN_MAX)
		return node_throw_type(env, "%s: want an array of at most %d", name, CHILDREN_MAX);
	return true;
}

static bool is_object(napi_env env, napi_value value)
{
	napi_valuetype type = napi_undefined;

	napi_typeof(env, value, &type);
	return type == napi_object;
}

/* ---- schemas ------------------------------------------------------------------------------- */

/* Counts and sizes of int32; 'out' NULL: only the size. */
static bool metadata_put(napi_env env, napi_value list, uint32_t count, char *out, size_t *size)
{
	int32_t number = (int32_t)count;

	if (out)
		memcpy(out, &number, 4);
	*size = 4;
	for (uint32_t i = 0; i < count; i++) {
		napi_value pair, part;
		if (napi_get_element(env, list, i, &pair) != napi_ok)
			return false;
		for (uint32_t j = 0; j < 2; j++) {
			size_t bytes = 0;
			if (napi_get_element(env, pair, j, &part) != napi_ok ||
			    napi_get_value_string_utf8(env, part, NULL, 0, &bytes) != napi_ok ||
			    bytes > INT32_MAX)
				return node_throw_type(env, "metadata: want pairs of strings");
			number = (int32_t)bytes;
			if (out) {
				memcpy(out + *size, &number, 4);
				napi_get_value_string_utf8(env, part, out + *size + 4, bytes + 1,
				                           &bytes);
			}
			*size += 4 + bytes;
		}
	}
	return true;
}

static bool metadata_in(napi_env env, napi_value tree, node_arena *arena, const char **out)
{
	napi_value list;
	uint32_t count;
	size_t size;
	char *copy;

	if (!list_of(env, tree, "metadata", &list, &count))
		return false;
	if (!count)
		return true;
	if (!metadata_put(env, list, count, NULL, &size))
		return false;
	copy = node_arena_alloc(arena, size + 1, 1); /* strings are written with a NUL */
	*out = copy;
	return copy ? metadata_put(env, list, count, copy, &size) : no_memory(env);
}

static void schema_kept(struct ArrowSchema *schema)
{
	schema->release = NULL;
}

static bool schema_in(napi_env env, napi_value tree, node_arena *arena, int depth,
                      struct ArrowSchema **out)
{
	struct ArrowSchema *s = node_arena_alloc(arena, 1, sizeof *s);
	napi_value children, child, dictionary;
	uint32_t count;
	uint64_t flags = 0;

	if (!s)
		return no_memory(env);
	*out = s;
	if (depth > DEPTH_MAX || !is_object(env, tree))
		return node_throw_type(env, "a schema: want an object, at most %d deep", DEPTH_MAX);
	s->release = schema_kept;
	napi_value given = node_get(env, tree, "flags");
	if (!text_in(env, node_get(env, tree, "format"), "format", arena, &s->format) ||
	    !text_in(env, node_get(env, tree, "name"), "name", arena, &s->name) ||
	    !metadata_in(env, tree, arena, &s->metadata) || !given ||
	    (!node_is_null(env, given) && !node_get_number(env, given, "flags", &flags)) ||
	    !list_of(env, tree, "children", &children, &count))
		return false;
	s->flags = (int64_t)flags;
	s->n_children = count;
	s->children = node_arena_alloc(arena, count, sizeof *s->children);
	if (!s->children)
		return no_memory(env);
	for (uint32_t i = 0; i < count; i++)
		if (napi_get_element(env, children, i, &child) != napi_ok ||
		    !schema_in(env, child, arena, depth + 1, &s->children[i]))
			return false;
	dictionary = node_get(env, tree, "dictionary");
	return dictionary && (node_is_null(env, dictionary) ||
	                      schema_in(env, dictionary, arena, depth + 1, &s->dictionary));
}

bool node_schema_in(napi_env env, napi_value tree, node_arena *arena, struct ArrowSchema **out)
{
	return schema_in(env, tree, arena, 0, out);
}

/* ---- arrays -------------------------------------------------------------------------------- */

static void array_kept(struct ArrowArray *array)
{
	array->release = NULL;
}

/* One buffer, which sizes of later ones may be in. */
static bool buffer_in(napi_env env, napi_value value, const struct ArrowSchema *schema, size_t i,
                      napi_value keep, struct ArrowArray *a)
{
	bool optional = i == 0 && strncmp(schema->format, "+u", 2); /* a bitmap */
	node_bytes bytes = {NULL, 0, NULL};
	uint32_t at = 0;
	uint64_t want;
	lade_error err;

	if (!node_is_null(env, value) && !node_get_bytes(env, value, "a buffer", &bytes))
		return false;
	a->buffers[i] = bytes.size ? bytes.data : NULL;
	if (!node_buffer_size(schema, a, i, &want, &err)) {
		if (bytes.size >= want || (optional && !a->buffers[i] && a->null_count <= 0)) {
			return !bytes.buffer ||
			       (napi_get_array_length(env, keep, &at) == napi_ok &&
			        napi_set_element(env, keep, at, bytes.buffer) == napi_ok);
		}
		lade_fail(&err, LADE_E_ARG, LADE_NO_OFFSET,
		          "buffer %zu of '%.60s' of format '%.30s' has %zu bytes, want %llu", i,
		          schema->name, schema->format, bytes.size, (unsigned long long)want);
	}
	node_throw(env, &err);
	return false;
}

/* In order; of views the last buffer, which has the sizes of others, before them. */
static bool buffers_in(napi_env env, napi_value list, const struct ArrowSchema *schema,
                       napi_value keep, struct ArrowArray *a)
{
	size_t count = (size_t)a->n_buffers;
	bool views = schema->format[0] == 'v';

	if (views && count < 3)
		return node_throw_type(env, "'%.60s': views have %zu buffers, want at least 3",
		                       schema->name, count);
	for (size_t step = 0; step < count; step++) {
		size_t i = !views || step < 2 ? step : step == 2 ? count - 1 : step - 1;
		napi_value value;
		if (napi_get_element(env, list, (uint32_t)i, &value) != napi_ok ||
		    !buffer_in(env, value, schema, i, keep, a))
			return false;
	}
	return true;
}

static bool counts_in(napi_env env, napi_value tree, struct ArrowArray *a)
{
	napi_value length = node_get(env, tree, "length"), offset, nulls;

	if (!length || !node_get_int64(env, length, "length", &a->length))
		return false;
	offset = node_get(env, tree, "offset");
	nulls = node_get(env, tree, "nullCount");
	a->null_count = -1;
	if (!offset || !nulls ||
	    (!node_is_null(env, offset) && !node_get_int64(env, offset, "offset", &a->offset)) ||
	    (!node_is_null(env, nulls) && !node_get_int64(env, nulls, "nullCount", &a->null_count)))
		return false;
	if (a->length < 0 || a->offset < 0)
		return node_throw_type(env, "length %lld, offset %lld: want none below 0",
		                       (long long)a->length, (long long)a->offset);
	return true;
}

bool node_array_in(napi_env env, napi_value tree, const struct ArrowSchema *schema,
                   node_arena *arena, napi_value keep, struct ArrowArray **out)
{
	struct ArrowArray *a = node_arena_alloc(arena, 1, sizeof *a);
	napi_value buffers, children, child, dictionary;
	uint32_t buffer_count, count;

	if (!a)
		return no_memory(env);
	*out = a;
	if (!is_object(env, tree))
		return node_throw_type(env, "'%.60s': an array of it is no object", schema->name);
	a->release = array_kept;
	if (!counts_in(env, tree, a) || !list_of(env, tree, "buffers", &buffers, &buffer_count) ||
	    !list_of(env, tree, "children", &children, &count))
		return false;
	if (count != schema->n_children)
		return node_throw_type(env, "'%.60s' has %u children, its schema %lld",
		                       schema->name, count, (long long)schema->n_children);
	a->n_buffers = buffer_count;
	a->n_children = count;
	a->buffers = node_arena_alloc(arena, buffer_count, sizeof *a->buffers);
	a->children = node_arena_alloc(arena, count, sizeof *a->children);
	if (!a->buffers || !a->children)
		return no_memory(env);
	if (!buffers_in(env, buffers, schema, keep, a))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (napi_get_element(env, children, i, &child) != napi_ok ||
		    !node_array_in(env, child, schema->children[i], arena, keep, &a->children[i]))
			return false;
	if (!schema->dictionary)
		return true;
	dictionary = node_get(env, tree, "dictionary");
	return dictionary &&
	       node_array_in(env, dictionary, schema->dictionary, arena, keep, &a->dictionary);
}
