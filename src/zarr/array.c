/*
 * array.c: the document of an array, member by member, and what the readers of its parts share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/zarr.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory of a node ---------------------------------------------------------------- */

struct arena_block {
	arena_block *next;
	size_t used, cap;
	_Alignas(16) unsigned char bytes[];
};

#define BLOCK 2048

void *lade__arena(arena *from, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total) || total > SIZE_MAX / 2)
		return NULL;
	total = (total + 15) & ~(size_t)15;
	arena_block *block = from->blocks;
	if (!block || block->cap - block->used < total) {
		size_t cap = total > BLOCK ? total : BLOCK;
		block = calloc(1, sizeof *block + cap);
		if (!block)
			return NULL;
		block->cap = cap;
		block->next = from->blocks;
		from->blocks = block;
	}
	void *memory = block->bytes + block->used;
	block->used += total;
	return memory;
}

void lade__arena_free(arena *from)
{
	for (arena_block *block = from->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	from->blocks = NULL;
}

/* ---- what all readers need ----------------------------------------------------------- */

lade_status lade__scan_nomem(const scan *s, const char *what)
{
	return lade_fail(s->err, LADE_E_NOMEM, LADE_NO_OFFSET, "%s: no memory for %s",
	                 s->doc->name, what);
}

const char *lade__scan_text(const scan *s, uint32_t at)
{
	const json_node *node = &s->doc->nodes[at];
	char *text = lade__arena(&s->node->arena, (size_t)node->size + 1, 1);
	if (text && node->type == JSON_STRING)
		lade__json_string(s->doc, at, text);
	else if (text)
		memcpy(text, s->doc->text + node->at, node->size);
	return text;
}

lade_status lade__scan_members(const scan *s, uint32_t at, const char *known)
{
	for (uint32_t c = lade__json_child(s->doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, at, c)) {
		const json_node *key = &s->doc->nodes[c];
		bool found = false;
		for (const char *word = known, *end; !found && (end = strchr(word, ' '));
		     word = end + 1)
			found = key->size == (size_t)(end - word) &&
			        memcmp(s->doc->text + key->at, word, key->size) == 0;
		if (!found)
			return UNKNOWN(s, c, "an unknown member");
	}
	return LADE_OK;
}

lade_status lade__scan_named(const scan *s, uint32_t at, bool wanted, uint32_t *name,
                             uint32_t *configuration)
{
	json_type is = lade__json_type(s->doc, at);
	*configuration = JSON_NONE;
	*name = at;
	if (is == JSON_OBJECT) {
		*name = lade__json_get(s->doc, at, "name");
		*configuration = lade__json_get(s->doc, at, "configuration");
		is = lade__json_type(s->doc, *name);
	}
	if (is != JSON_STRING)
		return BAD(s, at, "want a name, or an object with \"name\"");
	is = lade__json_type(s->doc, *configuration);
	if (is != JSON_ABSENT && is != JSON_OBJECT)
		return BAD(s, *configuration, "want an object");
	if (wanted && is == JSON_ABSENT)
		return BAD(s, at, "want a configuration");
	return LADE_OK;
}

static lade_status required(const scan *s, uint32_t root, const char *key, uint32_t *at)
{
	*at = lade__json_get(s->doc, root, key);
	return *at == JSON_NONE ? BAD(s, root, "no '%s'", key) : LADE_OK;
}

/* ---- format 2 ------------------------------------------------------------------------ */

static const char *const object_codecs[] = {"vlen-utf8", "vlen-bytes", "vlen-array",
                                            "pickle", "json2", "msgpack2"};

/* The codec that says what the objects of an array are; NULL: there is none. */
static const char *object_codec(const json *doc, uint32_t codec)
{
	uint32_t id = lade__json_get(doc, codec, "id");
	for (size_t i = 0; i < sizeof object_codecs / sizeof object_codecs[0]; i++)
		if (lade__json_is(doc, id, object_codecs[i]))
			return object_codecs[i];
	return NULL;
}

static lade_status separator_v2(const scan *s, uint32_t at)
{
	s->node->separator = lade__json_is(s->doc, at, "/") ? '/' : '.';
	if (at != JSON_NONE && s->node->separator == '.' && !lade__json_is(s->doc, at, "."))
		return BAD(s, at, "want \".\" or \"/\"");
	return LADE_OK;
}

lade_status lade__zarr_array_v2(const scan *s, uint32_t root)
{
	const json *doc = s->doc;
	uint32_t shape, chunks, dtype, filters = lade__json_get(doc, root, "filters");
	uint32_t compressor = lade__json_get(doc, root, "compressor");
	const char *objects = NULL;
	for (uint32_t c = lade__json_child(doc, filters, 0); !objects && c != JSON_NONE;
	     c = lade__json_child(doc, filters, c))
		objects = object_codec(doc, c);
	objects = objects ? objects : object_codec(doc, compressor);
	if (objects && strcmp(objects, "pickle") == 0)
		return UNKNOWN(s, filters == JSON_NONE ? compressor : filters,
		               "pickles run code and are not read");
	lade_status status = required(s, root, "shape", &shape);
	if (status == LADE_OK)
		status = required(s, root, "chunks", &chunks);
	if (status == LADE_OK)
		status = required(s, root, "dtype", &dtype);
	if (status == LADE_OK)
		status = lade__zarr_shape(s, shape);
	if (status == LADE_OK)
		status = lade__zarr_grid_regular(s, chunks);
	if (status == LADE_OK)
		status = lade__zarr_type_v2(s, dtype, objects, &s->node->array.type);
	if (status == LADE_OK)
		status = lade__zarr_fill(s, lade__json_get(doc, root, "fill_value"));
	if (status == LADE_OK)
		status = separator_v2(s, lade__json_get(doc, root, "dimension_separator"));
	return status == LADE_OK ? lade__zarr_chain_v2(s, root) : status;
}

/* ---- format 3 ------------------------------------------------------------------------ */

static lade_status dimension_names(const scan *s, uint32_t at)
{
	lade_zarr_axis *axis = (lade_zarr_axis *)(uintptr_t)s->node->array.axes;
	json_type is = lade__json_type(s->doc, at);
	size_t count = lade__json_count(s->doc, at), ndim = s->node->array.ndim;
	if (is == JSON_ABSENT || is == JSON_NULL)
		return LADE_OK;
	if (is != JSON_ARRAY || count != ndim)
		return BAD(s, at, "want %zu names, there are %zu", ndim, count);
	for (uint32_t c = lade__json_child(s->doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, at, c), axis++) {
		is = lade__json_type(s->doc, c);
		if (is != JSON_NULL && is != JSON_STRING)
			return BAD(s, c, "want a string or null");
		axis->name = is == JSON_STRING ? lade__scan_text(s, c) : NULL;
		if (is == JSON_STRING && !axis->name)
			return lade__scan_nomem(s, "a name");
	}
	return LADE_OK;
}

/* Members that the format does not have must say that they may be ignored. */
static lade_status extra_members(const scan *s, uint32_t root)
{
	static const char *const known[] = {
		"zarr_format", "node_type", "data_type", "shape", "chunk_grid",
		"chunk_key_encoding", "fill_value", "codecs", "attributes", "storage_transformers",
		"dimension_names",
	};
	for (uint32_t c = lade__json_child(s->doc, root, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, root, c)) {
		bool found = false;
		for (size_t i = 0; !found && i < sizeof known / sizeof known[0]; i++)
			found = lade__json_is(s->doc, c, known[i]);
		uint32_t must = lade__json_get(s->doc, c + 1, "must_understand");
		if (!found && lade__json_type(s->doc, must) != JSON_FALSE)
			return UNKNOWN(s, c,
			               "an unknown member without \"must_understand\": false");
	}
	return LADE_OK;
}

/* Those of the last parts, which need the type and the grid. */
static lade_status rest_v3(const scan *s, uint32_t root)
{
	uint32_t fill, keys, codecs;
	uint32_t transformers = lade__json_get(s->doc, root, "storage_transformers");
	lade_status status = required(s, root, "fill_value", &fill);
	if (status == LADE_OK)
		status = lade__zarr_fill(s, fill);
	if (status == LADE_OK)
		status = required(s, root, "chunk_key_encoding", &keys);
	if (status == LADE_OK)
		status = lade__zarr_keys_v3(s, keys);
	if (status == LADE_OK)
		status = required(s, root, "codecs", &codecs);
	if (status == LADE_OK)
		status = lade__zarr_chain_v3(s, codecs);
	json_type is = lade__json_type(s->doc, transformers);
	if (status == LADE_OK && is != JSON_ABSENT && is != JSON_NULL && is < JSON_ARRAY)
		return BAD(s, transformers, "want a list");
	if (status == LADE_OK && lade__json_count(s->doc, transformers) > 0)
		return UNKNOWN(s, transformers, "no storage transformer is known");
	if (status == LADE_OK)
		status = dimension_names(s, lade__json_get(s->doc, root, "dimension_names"));
	return status == LADE_OK ? extra_members(s, root) : status;
}

lade_status lade__zarr_array_v3(const scan *s, uint32_t root)
{
	uint32_t shape, grid, type;
	lade_status status = required(s, root, "shape", &shape);
	if (status == LADE_OK)
		status = lade__zarr_shape(s, shape);
	if (status == LADE_OK)
		status = required(s, root, "chunk_grid", &grid);
	if (status == LADE_OK)
		status = lade__zarr_grid_v3(s, grid);
	if (status == LADE_OK)
		status = required(s, root, "data_type", &type);
	if (status == LADE_OK)
		status = lade__zarr_type_v3(s, type, &s->node->array.type);
	return status == LADE_OK ? rest_v3(s, root) : status;
}
