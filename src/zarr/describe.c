/*
 * describe.c: a description becomes a document, in three steps: a compact text with all members in
 * zarr-python's order, the checks of a reader, and the indented text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/describe.h"

#include "base/try.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct build {
	const lade_zarr_description *d;
	uint32_t format;
	lade_zarr scratch; /* the type and the fill value */
	lade__text text;
	lade_error *err;
} build;

static lade_status nomem(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a document");
}

static lade_status wrong(build *b, const char *what)
{
	return lade_fail(b->err, LADE_E_ARG, LADE_NO_OFFSET, "description: %s", what);
}

static void scratch_free(lade_zarr *scratch)
{
	for (kept_spec *kept = scratch->specs; kept; kept = kept->next)
		lade_spec_unref(kept->spec);
	lade__arena_free(&scratch->arena);
}

/* ---- type and fill value ----------------------------------------------------------------- */

/* Makes a JSON value of a type's text, which is JSON already if it begins so. */
static lade_status read_type(build *b)
{
	const char *type = b->d->type;
	lade__text text = {0};
	json doc = {0};
	lade_status status = LADE_OK;
	if (!type || !type[0])
		return wrong(b, "an array has no type");
	if (type[0] == '{' || type[0] == '[')
		lade__text_put(&text, "%s", type);
	else
		lade__text_string(&text, type, strlen(type));
	if (text.failed)
		TRY(nomem(b->err));
	TRY(lade__json_parse(&doc, "type", text.data, text.size, b->err));
	scan s = {.doc = &doc, .node = &b->scratch, .err = b->err};
	bool old = strchr("<>|[", type[0]) != NULL;
	TRY(old ? lade__zarr_type_v2(&s, 0, NULL, &b->scratch.array.type)
	        : lade__zarr_type_v3(&s, 0, &b->scratch.array.type));
out:
	lade__json_free(&doc);
	lade__text_free(&text);
	return status;
}

/* Zeros, or "not a time". */
static lade_status default_fill(build *b)
{
	const lade_zarr_type *type = &b->scratch.array.type;
	bool time = type->cls == LADE_ZARR_DATETIME || type->cls == LADE_ZARR_TIMEDELTA;
	uint8_t *bytes = lade__arena(&b->scratch.arena, (size_t)type->size + 1, 1);
	if (!bytes)
		return nomem(b->err);
	if (time)
		bytes[7] = 0x80; /* INT64_MIN */
	lade__text_fill(&b->text, type, bytes, (size_t)type->size, b->format);
	return LADE_OK;
}

static lade_status put_fill(build *b)
{
	lade_zarr_array *array = &b->scratch.array;
	json doc = {0};
	lade_status status;
	if (!b->d->fill)
		return default_fill(b);
	TRY(lade__json_parse(&doc, "fill", b->d->fill, strlen(b->d->fill), b->err));
	scan s = {.doc = &doc, .node = &b->scratch, .err = b->err};
	TRY(lade__zarr_fill(&s, 0));
	if (array->fill_given)
		lade__text_fill(&b->text, &array->type, array->fill, array->fill_size, b->format);
	else
		lade__text_put(&b->text, "null");
out:
	lade__json_free(&doc);
	return status;
}

/* ---- lists of numbers ---------------------------------------------------------------------- */

static void put_sizes(build *b, const uint64_t *sizes)
{
	lade__text_put(&b->text, "[");
	for (size_t i = 0; i < b->d->ndim; i++)
		lade__text_put(&b->text, "%s%" PRIu64, i ? "," : "", sizes[i]);
	lade__text_put(&b->text, "]");
}

/* One chunk for all: its size is the array's, but not 0. */
static uint64_t chunk_size(const lade_zarr_description *d, size_t axis)
{
	return d->chunk_shape ? d->chunk_shape[axis] : d->shape[axis] ? d->shape[axis] : 1;
}

static void put_chunk_sizes(build *b)
{
	lade__text_put(&b->text, "[");
	for (size_t i = 0; i < b->d->ndim; i++)
		lade__text_put(&b->text, "%s%" PRIu64, i ? "," : "", chunk_size(b->d, i));
	lade__text_put(&b->text, "]");
}

/* Equal sizes that follow each other are [size, count]. */
static void put_edges(build *b, const lade_zarr_edges *edges)
{
	const char *comma = "[";
	for (size_t i = 0, n; i < edges->count; i += n, comma = ",") {
		for (n = 1; i + n < edges->count && edges->sizes[i + n] == edges->sizes[i];)
			n++;
		if (n > 1)
			lade__text_put(&b->text, "%s[%" PRIu64 ",%zu]", comma, edges->sizes[i], n);
		else
			lade__text_put(&b->text, "%s%" PRIu64, comma, edges->sizes[i]);
	}
	lade__text_put(&b->text, "]");
}

static void put_grid(build *b)
{
	const lade_zarr_description *d = b->d;
	if (!d->edges) {
		lade__text_put(&b->text, "{\"name\":\"regular\",\"configuration\":{"
		                         "\"chunk_shape\":");
		put_chunk_sizes(b);
		lade__text_put(&b->text, "}}");
		return;
	}
	lade__text_put(&b->text, "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
	                         "\"chunk_shapes\":[");
	for (size_t i = 0; i < d->ndim; i++) {
		lade__text_put(&b->text, "%s", i ? "," : "");
		if (d->edges[i].count)
			put_edges(b, &d->edges[i]);
		else
			lade__text_put(&b->text, "%" PRIu64, chunk_size(d, i));
	}
	lade__text_put(&b->text, "]}}");
}

/* ---- codecs -------------------------------------------------------------------------------- */

/* Members of a configuration in zarr-python's order, with their defaults; "" has to be given. */
static const struct canon {
	const char *name;
	struct {
		const char *key, *fallback;
	} keys[6];
} canons[] = {
	{"zstd", {{"level", "0"}, {"checksum", "false"}}},
	{"gzip", {{"level", "5"}}},
	{"blosc", {{"typesize", NULL}, {"cname", "\"zstd\""}, {"clevel", "5"}, {"shuffle", NULL},
	           {"blocksize", "0"}}},
};

static const char *const to_bytes[] = {"bytes", "endian", "vlen-utf8", "vlen-bytes",
                                       "sharding_indexed", "packbits", "n5_default", "zfp"};
static const char *const to_arrays[] = {
	"transpose", "bitround", "scale_offset", "cast_value", "reshape", "numcodecs.delta",
	"numcodecs.fixedscaleoffset", "numcodecs.quantize", "numcodecs.bitround",
	"numcodecs.astype", "numcodecs.packbits"};

static bool among(const json *doc, uint32_t at, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (lade__json_is(doc, at, names[i]))
			return true;
	return false;
}
#define AMONG(doc, at, names) among(doc, at, names, sizeof names / sizeof names[0])

static bool multi_byte(const lade_zarr_type *type)
{
	for (size_t i = 0; i < type->field_count; i++)
		if (multi_byte(&type->fields[i].type))
			return true;
	return type->swap_size > 0;
}

/* "bytes" with the order of the numbers, or what elements of any length have. */
static void put_serial(build *b, const json *doc, uint32_t config)
{
	const lade_zarr_type *type = &b->scratch.array.type;
	uint32_t endian = config == JSON_NONE ? JSON_NONE : lade__json_get(doc, config, "endian");
	if (type->size == 0)
		lade__text_put(&b->text, "{\"name\":\"%s\",\"configuration\":{}}",
		               type->cls == LADE_ZARR_STRING ? "vlen-utf8" : "vlen-bytes");
	else if (!multi_byte(type))
		lade__text_put(&b->text, "{\"name\":\"bytes\"}");
	else if (endian == JSON_NONE)
		lade__text_put(&b->text, "{\"name\":\"bytes\",\"configuration\":{\"endian\":"
		                         "\"little\"}}");
	else {
		lade__text_put(&b->text, "{\"name\":\"bytes\",\"configuration\":{\"endian\":");
		lade__text_raw(&b->text, doc, endian);
		lade__text_put(&b->text, "}}");
	}
}

static void put_default(build *b, const char *key, const char *fallback)
{
	uint64_t size = b->scratch.array.type.size;
	size = size && size <= 255 ? size : 1;
	if (fallback)
		lade__text_put(&b->text, "%s", fallback);
	else if (strcmp(key, "typesize") == 0)
		lade__text_put(&b->text, "%" PRIu64, size);
	else
		lade__text_put(&b->text, size == 1 ? "\"bitshuffle\"" : "\"shuffle\"");
}

/* The known members, then the others, which the reader's check refuses. */
static void put_canon(build *b, const struct canon *canon, const json *doc, uint32_t config)
{
	lade__text_put(&b->text, "{\"name\":\"%s\",\"configuration\":{", canon->name);
	for (size_t i = 0; i < 6 && canon->keys[i].key; i++) {
		uint32_t value = config == JSON_NONE
			? JSON_NONE : lade__json_get(doc, config, canon->keys[i].key);
		lade__text_put(&b->text, "%s\"%s\":", i ? "," : "", canon->keys[i].key);
		if (value == JSON_NONE)
			put_default(b, canon->keys[i].key, canon->keys[i].fallback);
		else
			lade__text_raw(&b->text, doc, value);
	}
	for (uint32_t c = config == JSON_NONE ? JSON_NONE : lade__json_child(doc, config, 0);
	     c != JSON_NONE; c = lade__json_child(doc, config, c)) {
		bool known = false;
		for (size_t i = 0; i < 6 && canon->keys[i].key; i++)
			known |= lade__json_is(doc, c, canon->keys[i].key);
		if (known)
			continue;
		lade__text_put(&b->text, ",");
		lade__text_raw(&b->text, doc, c);
		lade__text_put(&b->text, ":");
		lade__text_raw(&b->text, doc, c + 1);
	}
	lade__text_put(&b->text, "}}");
}

/* A codec of format 3.  What is not known is written as it is. */
static void put_codec_v3(build *b, const json *doc, uint32_t at)
{
	bool object = lade__json_type(doc, at) == JSON_OBJECT;
	uint32_t name = object ? lade__json_get(doc, at, "name") : at;
	uint32_t config = object ? lade__json_get(doc, at, "configuration") : JSON_NONE;
	for (size_t i = 0; i < sizeof canons / sizeof canons[0]; i++)
		if (lade__json_is(doc, name, canons[i].name)) {
			put_canon(b, &canons[i], doc, config);
			return;
		}
	if (lade__json_is(doc, name, "bytes") && lade__json_count(doc, config) <= 1) {
		put_serial(b, doc, config);
	} else if (lade__json_is(doc, name, "crc32c")) {
		lade__text_put(&b->text, "{\"name\":\"crc32c\"}");
	} else if (object) {
		lade__text_raw(&b->text, doc, at);
	} else {
		lade__text_put(&b->text, "{\"name\":");
		lade__text_raw(&b->text, doc, at);
		lade__text_put(&b->text, "}");
	}
}

/* A list of format 3; the codec from arrays to bytes is added where it belongs. */
static void put_list_v3(build *b, const json *doc)
{
	bool serial = false;
	const char *comma = "";
	for (uint32_t c = lade__json_child(doc, 0, 0); c != JSON_NONE;
	     c = lade__json_child(doc, 0, c)) {
		uint32_t name = lade__json_type(doc, c) == JSON_OBJECT
			? lade__json_get(doc, c, "name") : c;
		bool own = AMONG(doc, name, to_bytes);
		if (!serial && !own && !AMONG(doc, name, to_arrays)) {
			lade__text_put(&b->text, "%s", comma);
			put_serial(b, NULL, JSON_NONE);
			serial = true;
			comma = ",";
		}
		serial |= own;
		lade__text_put(&b->text, "%s", comma);
		put_codec_v3(b, doc, c);
		comma = ",";
	}
	if (!serial) {
		lade__text_put(&b->text, "%s", comma);
		put_serial(b, NULL, JSON_NONE);
	}
}

/* ---- specs as codecs ------------------------------------------------------------------------- */

static const struct named {
	const char *stage, *v3;
	const char *keys[6]; /* option, then its name in the configuration */
} named[] = {
	{"zstd", "zstd", {"level", "level", "checksum", "checksum"}},
	{"gzip", "gzip", {"level", "level"}},
	{"zlib", "numcodecs.zlib", {"level", "level"}},
	{"blosc", "blosc", {NULL}},
	{"shuffle", "numcodecs.shuffle", {NULL}},
	{"crc32c", "crc32c", {NULL}},
};

/* The name of an option in a configuration; NULL: it has none. */
static const char *config_key(const struct named *as, const char *option)
{
	if (strcmp(as->stage, "blosc") == 0)
		return strcmp(option, "level") == 0 ? "clevel" : option;
	if (strcmp(as->stage, "shuffle") == 0)
		return "elementsize";
	for (size_t i = 0; i < 6 && as->keys[i]; i += 2)
		if (strcmp(as->keys[i], option) == 0)
			return as->keys[i + 1];
	return NULL;
}

static lade_status put_stage(lade__text *text, const lade_stage *stage, uint32_t format,
                             lade_error *err)
{
	const lade_algorithm *algorithm = stage->algorithm;
	const struct named *as = NULL;
	const char *comma = format == 3 ? "" : ",";
	for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
		if (strcmp(named[i].stage, algorithm->name) == 0)
			as = &named[i];
	if (!as)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "description: the stage '%s' has to be in 'codecs', as JSON",
		                 algorithm->name);
	if (format == 3)
		lade__text_put(text, "{\"name\":\"%s\",\"configuration\":{", as->v3);
	else
		lade__text_put(text, "{\"id\":\"%s\"", as->stage);
	for (size_t i = 0; i < algorithm->option_count; i++) {
		const lade_option *option = &algorithm->options[i];
		int64_t value = stage->option[i].i;
		const char *key = config_key(as, option->name);
		if (!key && value != option->fallback.i)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "description: Zarr has no option '%s' of '%s'",
			                 option->name, algorithm->name);
		if (!key || (format == 2 && option->type == LADE_OPTION_BOOL && !value))
			continue;
		lade__text_put(text, "%s\"%s\":", comma, key);
		if (option->type == LADE_OPTION_BOOL)
			lade__text_put(text, value ? "true" : "false");
		else if (option->type == LADE_OPTION_ENUM && (format == 3 || key[0] == 'c'))
			lade__text_put(text, "\"%s\"", option->names[value]);
		else
			lade__text_put(text, "%" PRId64, value); /* numcodecs counts shuffles */
		comma = ",";
	}
	lade__text_put(text, format == 3 ? "}}" : "}");
	return LADE_OK;
}

/* The list of codecs as the caller gave it, or of the spec. */
static lade_status read_codecs(build *b, lade__text *text, json *doc)
{
	const lade_spec *spec = b->d->spec;
	if (b->d->codecs)
		lade__text_put(text, "%s", b->d->codecs);
	else if (!spec)
		lade__text_put(text, b->format == 3 ? "[\"zstd\"]"
		                                    : "[{\"id\":\"zstd\",\"level\":0}]");
	for (size_t i = 0; !b->d->codecs && spec && i < lade_spec_count(spec); i++) {
		lade__text_put(text, i ? "," : "[");
		lade_status status =
			put_stage(text, lade_spec_stage(spec, i), b->format, b->err);
		if (status != LADE_OK)
			return status;
	}
	if (!b->d->codecs && spec)
		lade__text_put(text, "]");
	if (text->failed)
		return nomem(b->err);
	lade_status status = lade__json_parse(doc, "codecs", text->data, text->size, b->err);
	if (status == LADE_OK && lade__json_type(doc, 0) != JSON_ARRAY)
		status = lade__json_fail(doc, 0, LADE_E_ARG, b->err, "want a list of codecs");
	return status;
}

/* ---- the codecs of an array --------------------------------------------------------------- */

/* Codecs in a shard, or those of the chunk. */
static void put_inner_v3(build *b, const json *doc)
{
	lade__text_put(&b->text, "[");
	if (b->d->fortran && b->d->ndim > 1) {
		lade__text_put(&b->text, "{\"name\":\"transpose\",\"configuration\":{\"order\":");
		for (size_t i = b->d->ndim; i-- > 0;)
			lade__text_put(&b->text, "%c%zu", i + 1 == b->d->ndim ? '[' : ',', i);
		lade__text_put(&b->text, "]}},");
	}
	put_list_v3(b, doc);
	lade__text_put(&b->text, "]");
}

static lade_status put_codecs_v3(build *b)
{
	static const char index_codecs[] = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
	                                   "\"little\"}},{\"name\":\"crc32c\"}]";
	lade__text given = {0};
	json doc = {0}, index = {0};
	const char *text = b->d->index_codecs ? b->d->index_codecs : index_codecs;
	lade_status status;
	TRY(read_codecs(b, &given, &doc));
	if (!b->d->inner_shape) {
		put_inner_v3(b, &doc);
		goto out;
	}
	TRY(lade__json_parse(&index, "index_codecs", text, strlen(text), b->err));
	lade__text_put(&b->text, "[{\"name\":\"sharding_indexed\",\"configuration\":{"
	                         "\"chunk_shape\":");
	put_sizes(b, b->d->inner_shape);
	lade__text_put(&b->text, ",\"codecs\":");
	put_inner_v3(b, &doc);
	lade__text_put(&b->text, ",\"index_codecs\":");
	lade__text_raw(&b->text, &index, 0);
	lade__text_put(&b->text, ",\"index_location\":\"%s\"}}]",
	               b->d->index_first ? "start" : "end");
out:
	lade__json_free(&index);
	lade__json_free(&doc);
	lade__text_free(&given);
	return status;
}

/* Filters, the separator, and the compressor: the last codec. */
static lade_status put_codecs_v2(build *b, char separator)
{
	const lade_zarr_type *type = &b->scratch.array.type;
	const char *objects = type->cls == LADE_ZARR_STRING ? "vlen-utf8" : "vlen-bytes";
	lade__text given = {0};
	json doc = {0};
	lade_status status;
	uint32_t last = JSON_NONE;
	bool listed = false;
	const char *comma = "[";
	TRY(read_codecs(b, &given, &doc));
	lade__text_put(&b->text, ",\"filters\":");
	for (uint32_t c = lade__json_child(&doc, 0, 0); c != JSON_NONE;
	     c = lade__json_child(&doc, 0, c))
		last = c;
	for (uint32_t c = lade__json_child(&doc, 0, 0); c != JSON_NONE;
	     c = lade__json_child(&doc, 0, c))
		listed |= lade__json_is(&doc, lade__json_get(&doc, c, "id"), objects);
	if (type->size == 0 && !listed) {
		lade__text_put(&b->text, "[{\"id\":\"%s\"}", objects);
		comma = ",";
	}
	for (uint32_t c = lade__json_child(&doc, 0, 0); c != JSON_NONE;
	     c = lade__json_child(&doc, 0, c)) {
		bool object = lade__json_is(&doc, lade__json_get(&doc, c, "id"), objects);
		if (c == last && !object)
			continue;
		last = c == last ? JSON_NONE : last;
		lade__text_put(&b->text, "%s", comma);
		lade__text_raw(&b->text, &doc, c);
		comma = ",";
	}
	lade__text_put(&b->text, comma[0] == '[' ? "null" : "]");
	lade__text_put(&b->text, ",\"dimension_separator\":\"%c\",\"compressor\":", separator);
	if (last == JSON_NONE)
		lade__text_put(&b->text, "null");
	else
		lade__text_raw(&b->text, &doc, last);
out:
	lade__json_free(&doc);
	lade__text_free(&given);
	return status;
}

/* ---- arrays and groups -------------------------------------------------------------------- */

static lade_status put_array_v2(build *b)
{
	lade_status status;
	lade__text_put(&b->text, "{\"shape\":");
	put_sizes(b, b->d->shape);
	lade__text_put(&b->text, ",\"chunks\":");
	put_chunk_sizes(b);
	lade__text_put(&b->text, ",\"dtype\":");
	if (!lade__text_type(&b->text, &b->scratch.array.type, 2))
		return wrong(b, "format 2 has no such type");
	lade__text_put(&b->text, ",\"fill_value\":");
	TRY(put_fill(b));
	lade__text_put(&b->text, ",\"order\":\"%c\"", b->d->fortran ? 'F' : 'C');
	TRY(put_codecs_v2(b, b->d->separator ? b->d->separator : '.'));
	lade__text_put(&b->text, ",\"zarr_format\":2}");
out:
	return status;
}

static void put_names(build *b)
{
	for (size_t i = 0; i < b->d->ndim; i++) {
		const char *name = b->d->dimension_names[i];
		lade__text_put(&b->text, i ? "," : ",\"dimension_names\":[");
		if (name)
			lade__text_string(&b->text, name, strlen(name));
		else
			lade__text_put(&b->text, "null");
	}
	lade__text_put(&b->text, b->d->ndim ? "]" : ",\"dimension_names\":[]");
}

static lade_status put_array_v3(build *b, const char *attributes)
{
	char mark = b->d->separator ? b->d->separator : b->d->v2_keys ? '.' : '/';
	lade_status status;
	lade__text_put(&b->text, "{\"shape\":");
	put_sizes(b, b->d->shape);
	lade__text_put(&b->text, ",\"data_type\":");
	lade__text_type(&b->text, &b->scratch.array.type, 3);
	lade__text_put(&b->text, ",\"chunk_grid\":");
	put_grid(b);
	lade__text_put(&b->text,
	               ",\"chunk_key_encoding\":{\"name\":\"%s\",\"configuration\":{"
	               "\"separator\":\"%c\"}},\"fill_value\":",
	               b->d->v2_keys ? "v2" : "default", mark);
	TRY(put_fill(b));
	lade__text_put(&b->text, ",\"codecs\":");
	TRY(put_codecs_v3(b));
	lade__text_put(&b->text, ",\"attributes\":%s", attributes);
	if (b->d->dimension_names)
		put_names(b);
	lade__text_put(&b->text, ",\"zarr_format\":3,\"node_type\":\"array\","
	                         "\"storage_transformers\":[]}");
out:
	return status;
}

static lade_status check_description(build *b)
{
	const lade_zarr_description *d = b->d;
	if (d->kind != LADE_ZARR_ARRAY && d->kind != LADE_ZARR_GROUP)
		return wrong(b, "'kind' is neither an array nor a group");
	if (d->format != 0 && d->format != 2 && d->format != 3)
		return wrong(b, "'format' is not 0, 2 or 3");
	if (d->kind == LADE_ZARR_GROUP)
		return LADE_OK;
	if (d->ndim > LADE_DIMS_MAX)
		return lade_fail(b->err, LADE_E_LIMIT, LADE_NO_OFFSET, "%zu axes, at most %d",
		                 d->ndim, LADE_DIMS_MAX);
	if (d->ndim && !d->shape)
		return wrong(b, "'shape' is NULL");
	if (d->separator && d->separator != '/' && d->separator != '.')
		return wrong(b, "'separator' is neither '/' nor '.'");
	if (b->format == 2 && (d->edges || d->inner_shape || d->dimension_names))
		return wrong(b, "format 2 has no edges, shards and names of axes");
	return LADE_OK;
}

/* The attributes as a JSON object, by themselves, so that they cannot end the document. */
static lade_status read_attributes(build *b, json *doc)
{
	const char *text = b->d->attributes ? b->d->attributes : "{}";
	lade_status status = lade__json_parse(doc, "attributes", text, strlen(text), b->err);
	if (status == LADE_OK && lade__json_type(doc, 0) != JSON_OBJECT)
		status = lade__json_fail(doc, 0, LADE_E_ARG, b->err, "want an object");
	return status;
}

lade_status lade__zarr_check(const json *doc, uint32_t format, const lade_zarr_options *open,
                             lade_error *err)
{
	lade_zarr node = {.format = format, .options = *open};
	scan s = {.doc = doc, .node = &node, .err = err};
	lade_status status = format == 3 ? lade__zarr_array_v3(&s, 0) : lade__zarr_array_v2(&s, 0);
	scratch_free(&node);
	return status;
}

static lade_status put_document(build *b, const char *attributes)
{
	if (b->d->kind == LADE_ZARR_GROUP) {
		lade__text_put(&b->text, b->format == 2 ? "{\"zarr_format\":2}"
		               : "{\"attributes\":%s,\"zarr_format\":3,\"node_type\":\"group\"}",
		               attributes);
		return LADE_OK;
	}
	lade_status status = read_type(b);
	if (status != LADE_OK)
		return status;
	return b->format == 2 ? put_array_v2(b) : put_array_v3(b, attributes);
}

lade_status lade__zarr_document(const lade_zarr_description *d, const lade_zarr_options *open,
                                const char *name, lade__text *document, lade__text *attributes,
                                lade_error *err)
{
	build b = {.d = d, .format = d->format == 2 ? 2 : 3, .err = err};
	json own = {0}, doc = {0};
	lade_status status;
	b.scratch.format = b.format;
	TRY(check_description(&b));
	TRY(read_attributes(&b, &own));
	TRY(put_document(&b, own.text));
	if (b.text.failed)
		TRY(nomem(err));
	TRY(lade__json_parse(&doc, name, b.text.data, b.text.size, err));
	if (d->kind == LADE_ZARR_ARRAY)
		TRY(lade__zarr_check(&doc, b.format, open, err));
	lade__text_pretty(document, &doc, 0, 0);
	lade__text_pretty(attributes, &own, 0, 0);
	if (document->failed || attributes->failed)
		TRY(nomem(err));
out:
	lade__json_free(&doc);
	lade__json_free(&own);
	lade__text_free(&b.text);
	scratch_free(&b.scratch);
	return status;
}
