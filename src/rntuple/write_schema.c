/*
 * write_schema.c: new fields and their columns: the header's lists, and those of its extension.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include "base/options.h"
#include "base/try.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELD_ARRAY = 1, COLUMN_DEFERRED = 1, COLUMN_RANGE = 2, TYPES = 0x1E };

#define FIELD_FIRST LADE__SIZE_TO(lade_rntuple_new_field, type_version)

/* ---- codecs ------------------------------------------------------------------------------- */

lade_status lade__rnt_codec(lade_engine *engine, const char *text, rnt_codec *out, lade_error *err)
{
	static const struct {
		const char *name;
		rnt_method method;
		uint32_t number;
		long long level; /* where the stage has none */
	} known[] = {
		{"zlib", RNT_ZLIB, 1, 6},
		{"lzma", RNT_LZMA, 2, 6},
		{"lz4", RNT_LZ4, 4, 1},
		{"zstd", RNT_ZSTD, 5, 3},
	};
	*out = (rnt_codec){.method = RNT_STORED};
	if (!text)
		text = "zstd(level=5)";
	if (strcmp(text, "none") == 0)
		return LADE_OK;
	lade_status status = lade_spec_parse(engine, text, &out->spec, err);
	if (status != LADE_OK)
		return status;
	const lade_stage *stage = lade_spec_stage(out->spec, 0);
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (lade_spec_count(out->spec) != 1 ||
		    strcmp(stage->algorithm->name, known[i].name) != 0)
			continue;
		long long level = known[i].level;
		for (size_t k = 0; k < stage->algorithm->option_count; k++)
			if (strcmp(stage->algorithm->options[k].name, "level") == 0)
				level = stage->option[k].i;
		level = level < 0 ? 0 : level > 99 ? 99 : level;
		out->method = known[i].method;
		out->setting = known[i].number * 100 + (uint32_t)level;
		return LADE_OK;
	}
	lade_spec_unref(out->spec);
	out->spec = NULL;
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                 "rntuple: codec %s: ROOT has zstd, lz4, zlib, lzma and none", text);
}

/* ---- what a field is stored as -------------------------------------------------------------- */

/* The columns of a type, with and without a codec; NULL: it is not known. */
static const char *stored_of(const lade_rntuple_new_field *f, bool split)
{
	static const struct {
		const char *type, *plain, *split;
	} types[] = {
		{"bool", "Bit", NULL},
		{"char", "Char", NULL},
		{"byte", "Byte", NULL},
		{"int8_t", "Int8", NULL},
		{"uint8_t", "UInt8", NULL},
		{"int16_t", "Int16", "SplitInt16"},
		{"uint16_t", "UInt16", "SplitUInt16"},
		{"int32_t", "Int32", "SplitInt32"},
		{"uint32_t", "UInt32", "SplitUInt32"},
		{"int64_t", "Int64", "SplitInt64"},
		{"uint64_t", "UInt64", "SplitUInt64"},
		{"float", "Real32", "SplitReal32"},
		{"double", "Real64", "SplitReal64"},
		{"string", "Index64,Char", "SplitIndex64,Char"},
	};
	const char *type = f->type ? f->type : "";
	if (f->role == LADE_RNTUPLE_COLLECTION)
		return split ? "SplitIndex64" : "Index64";
	if (f->role == LADE_RNTUPLE_STREAMER)
		return split ? "SplitIndex64,Byte" : "Index64,Byte";
	if (f->role != LADE_RNTUPLE_PLAIN)
		return f->role == LADE_RNTUPLE_VARIANT ? "Switch" : "";
	if (strncmp(type, "std::", 5) == 0)
		type += 5;
	if (strncmp(type, "bitset<", 7) == 0)
		return "Bit";
	if (f->array_size || strncmp(type, "atomic<", 7) == 0)
		return "";
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcmp(type, types[i].type) == 0)
			return split && types[i].split ? types[i].split : types[i].plain;
	return NULL;
}

/* One name of 'stored': "Real32Quant(8,-2,3)". */
typedef struct stored {
	uint16_t type, bits;
	double min, max;
} stored;

static lade_status take_stored(const char **text, stored *out, lade_error *err)
{
	const char *at = *text;
	size_t size = strcspn(at, "(,"), i = 0;
	const rnt_type *type = NULL;
	for (; i < TYPES; i++) {
		type = lade__rnt_type((uint16_t)i);
		if (strlen(type->name) == size && memcmp(type->name, at, size) == 0)
			break;
	}
	if (i == TYPES)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                 "rntuple: %s: it begins with no type of columns", at);
	double numbers[3] = {type->bits_min, 0, 0};
	size_t count = 0, want = strcmp(type->name, "Real32Quant") == 0   ? 3
	                         : strcmp(type->name, "Real32Trunc") == 0 ? 1
	                                                                  : 0;
	char *end = (char *)(uintptr_t)(at + size);
	if (*end == '(')
		do
			numbers[count++] = strtod(end + 1, &end);
		while (*end == ',' && count < 3);
	if (count && *end++ != ')')
		count = SIZE_MAX;
	if (count != want || (*end && *end != ',') || !(numbers[0] >= type->bits_min) ||
	    !(numbers[0] <= type->bits_max))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "rntuple: %s: %s has %zu numbers, the first of them %u to %u bits",
		                 at, type->name, want, type->bits_min, type->bits_max);
	*out = (stored){(uint16_t)i, (uint16_t)numbers[0], numbers[1], numbers[2]};
	*text = *end ? end + 1 : end;
	return LADE_OK;
}

/* ---- records -------------------------------------------------------------------------------- */

static void put_field(rnt_lists *lists, const lade_rntuple_new_field *f, uint64_t id)
{
	rnt_out *out = &lists->items[RNT_FIELDS];
	size_t begin = lade__rnt_put_begin(out);
	lade__rnt_put(out, 0, 4);
	lade__rnt_put(out, f->type_version, 4);
	lade__rnt_put(out, f->parent == LADE_RNTUPLE_TOP ? id : f->parent, 4);
	lade__rnt_put(out, f->role, 2);
	lade__rnt_put(out, f->array_size ? FIELD_ARRAY : 0, 2);
	lade__rnt_put_text(out, f->name);
	lade__rnt_put_text(out, f->type);
	lade__rnt_put_text(out, f->type_alias);
	lade__rnt_put_text(out, f->description);
	if (f->array_size)
		lade__rnt_put(out, f->array_size, 8);
	lade__rnt_put_end(out, begin);
	lists->count[RNT_FIELDS]++;
}

/* 'first': elements before it are not stored. */
static void put_column(rnt_lists *lists, const stored *s, uint64_t field, uint64_t first)
{
	rnt_out *out = &lists->items[RNT_COLUMNS];
	bool range = s->type == 0x1D;
	size_t begin = lade__rnt_put_begin(out);
	uint64_t limits[2];
	memcpy(&limits[0], &s->min, 8);
	memcpy(&limits[1], &s->max, 8);
	lade__rnt_put(out, s->type, 2);
	lade__rnt_put(out, s->bits, 2);
	lade__rnt_put(out, field, 4);
	lade__rnt_put(out, (first ? COLUMN_DEFERRED : 0) | (range ? COLUMN_RANGE : 0), 2);
	lade__rnt_put(out, 0, 2);
	if (first)
		lade__rnt_put(out, first, 8);
	for (size_t i = 0; range && i < 2; i++)
		lade__rnt_put(out, limits[i], 8);
	lade__rnt_put_end(out, begin);
	lists->count[RNT_COLUMNS]++;
}

void lade__rnt_put_lists(rnt_out *out, const rnt_lists *lists)
{
	for (size_t i = 0; i < RNT_LISTS; i++) {
		size_t begin = lade__rnt_put_list(out);
		lade__rnt_put_bytes(out, lists->items[i].data, lists->items[i].size);
		out->failed |= lists->items[i].failed;
		lade__rnt_put_list_end(out, begin, lists->count[i]);
	}
}

/* ---- the schema as readers see it ------------------------------------------------------------ */

void lade__rnt_put_header(rnt_out *out, const lade_rntuple_writer *w)
{
	lade__rnt_put(out, 0, 8);
	lade__rnt_put_text(out, w->name);
	lade__rnt_put_text(out, w->description);
	lade__rnt_put_text(out, "liblade");
	lade__rnt_put_lists(out, &w->lists);
}

static void put_extension(rnt_out *out, const rnt_lists *extension)
{
	lade__rnt_put(out, 0, 8);
	lade__rnt_put(out, 0, 8);
	size_t begin = lade__rnt_put_begin(out);
	lade__rnt_put_lists(out, extension);
	lade__rnt_put_end(out, begin);
	lade__rnt_put_list_end(out, lade__rnt_put_list(out), 0);
}

lade_status lade__rnt_schema(lade_rntuple_writer *w, const rnt_lists *extension, lade_rntuple **out,
                             lade_error *err)
{
	rnt_out header = {0}, footer = {0};
	rnt_fault faults[2] = {{"header", LADE_OK, err}, {"schema extension", LADE_OK, err}};
	lade_rntuple *t = calloc(1, sizeof *t);
	lade_status status = LADE_OK;
	if (w->header.size)
		lade__rnt_put_bytes(&header, w->header.data, w->header.size);
	else
		lade__rnt_put_header(&header, w);
	put_extension(&footer, extension);
	if (!t || header.failed || footer.failed)
		TRY(lade__rnt_nomem(err));
	atomic_init(&t->refs, 1);
	t->file = (rnt_file){.metadata_max = LADE__RNT_KEY_MAX, .engine = w->engine};
	t->info.epoch = 1;
	rnt_in in = {header.data, 0, header.size, &faults[0]};
	TRY(lade__rnt_header(t, &in));
	in = (rnt_in){footer.data, 0, footer.size, &faults[1]};
	TRY(lade__rnt_footer(t, &in, 0));
	TRY(lade__rnt_resolve(t, err));
	*out = t;
	t = NULL;
out:
	if (t)
		lade__rnt_free(t);
	lade__rnt_out_free(&header);
	lade__rnt_out_free(&footer);
	return status;
}

/* ---- sinks ---------------------------------------------------------------------------------- */

void lade__rnt_sinks_free(rnt_sink *sinks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		lade_spec_unref(sinks[i].codec.spec);
		lade_spec_unref(sinks[i].coded);
		lade_spec_unref(sinks[i].fused);
	}
}

/* Which of a variant's children a column is below, from 1 on. */
static uint32_t alternative_of(const lade_rntuple *t, uint32_t field)
{
	uint32_t variant = t->field_more[field].counted, alternative = 1;
	while ((uint32_t)t->field[field].parent != variant)
		field = (uint32_t)t->field[field].parent;
	for (uint32_t i = variant + 1; i < field; i++)
		alternative += t->field[i].parent == variant;
	return alternative;
}

lade_status lade__rnt_add_sinks(lade_rntuple_writer *w, const lade_rntuple *t, size_t from,
                                const char *const *codecs, uint64_t first_field, lade_error *err)
{
	lade_status status = LADE_OK;
	rnt_sink *sink = realloc(w->sink, (t->physical_count + 1) * sizeof *sink);
	if (!sink)
		return lade__rnt_nomem(err);
	w->sink = sink;
	for (size_t i = from; i < t->physical_count; i++) {
		uint32_t field = t->physical[i].field;
		const char *codec = codecs ? codecs[field - first_field] : NULL;
		sink[i] = (rnt_sink){.alternative = 0};
		status = lade__rnt_codec(w->engine, codec ? codec : w->options.codec,
		                         &sink[i].codec, err);
		if (status != LADE_OK) {
			lade__rnt_sinks_free(sink + from, i - from);
			return status;
		}
		uint32_t above = t->field_more[field].counted;
		if (above != RNT_NONE && t->field[above].role == LADE_RNTUPLE_VARIANT)
			sink[i].alternative = alternative_of(t, field);
	}
	w->sink_count = t->physical_count;
	return LADE_OK;
}

/* ---- new fields ----------------------------------------------------------------------------- */

/* Fields while they are added. */
typedef struct adding {
	lade_rntuple_writer *w;
	rnt_lists *lists;
	lade_rntuple_new_field *field;
	size_t count;
	uint64_t first;   /* number of the first one */
	uint64_t *factor; /* elements for an entry; 0: below a collection or variant */
	const char **codec;
	bool late; /* entries are there */
} adding;

static lade_status add_columns(adding *a, size_t i, lade_error *err)
{
	const lade_rntuple_new_field *f = &a->field[i];
	const char *codec = f->codec ? f->codec : a->w->options.codec;
	bool split = !(a->w->options.flags & LADE_RNTUPLE_NO_SPLIT) &&
	             !(codec && strcmp(codec, "none") == 0);
	const char *text = f->stored ? f->stored : stored_of(f, split);
	if (!text)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "rntuple: field %s: how %s is stored is not known: set 'stored'",
		                 f->name, f->type);
	uint64_t first = a->late ? a->factor[i] * a->w->entry_count : 0;
	for (size_t position = 0; *text; position++) {
		stored s;
		lade_status status = take_stored(&text, &s, err);
		if (status != LADE_OK)
			return status;
		put_column(a->lists, &s, a->first + i, first);
		if (lade__rnt_type(s.type)->cls == 'o')
			first = 0; /* what follows is counted by these offsets */
	}
	return LADE_OK;
}

static lade_status add_field(adding *a, size_t i, lade_error *err)
{
	lade_rntuple_new_field *f = &a->field[i];
	bool top = f->parent == LADE_RNTUPLE_TOP, old = !top && f->parent < a->first;
	uint64_t factor = 1;
	if (!f->name || !f->name[0] || f->role > LADE_RNTUPLE_STREAMER)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "rntuple: field %zu has no name, or role %" PRIu32, i, f->role);
	if (!top && f->parent >= a->first + i)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "rntuple: field %s: its parent is %" PRIu64
		                 ", and it is number %" PRIu64,
		                 f->name, f->parent, a->first + i);
	if (old && a->late)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "rntuple: field %s: there are %" PRIu64
		                 " entries: it cannot be below field %" PRIu64,
		                 f->name, a->w->entry_count, f->parent);
	if (!top && !old) {
		uint32_t role = a->field[f->parent - a->first].role;
		bool counts = role == LADE_RNTUPLE_COLLECTION || role == LADE_RNTUPLE_VARIANT;
		factor = counts ? 0 : a->factor[f->parent - a->first];
	}
	uint64_t most = INT64_MAX / (a->w->entry_count + 1);
	if (__builtin_mul_overflow(factor, f->array_size ? f->array_size : 1, &factor) ||
	    factor > most)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "rntuple: field %s: an array of %" PRIu64, f->name, f->array_size);
	a->factor[i] = factor;
	a->codec[i] = f->codec;
	put_field(a->lists, f, a->first + i);
	return add_columns(a, i, err);
}

static lade_status add_all(adding *a, lade_error *err)
{
	lade_rntuple_writer *w = a->w;
	lade_rntuple *schema;
	size_t old = w->schema->physical_count;
	lade_status status = LADE_OK;
	for (size_t i = 0; i < a->count && status == LADE_OK; i++)
		status = add_field(a, i, err);
	if (status == LADE_OK)
		status = lade__rnt_schema(w, &w->extension, &schema, err);
	if (status != LADE_OK)
		return status;
	/* The reader's rules hide what they do not know. */
	for (size_t i = old; i < schema->physical_count && status == LADE_OK; i++)
		if (schema->physical[i].column == RNT_NONE)
			status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: field %s: %s",
			                   schema->field[schema->physical[i].field].path,
			                   schema->field[schema->physical[i].field].hidden);
	if (status == LADE_OK)
		status = lade__rnt_add_sinks(w, schema, old, a->codec, a->first, err);
	if (status != LADE_OK) {
		lade__rnt_free(schema);
		return status;
	}
	for (size_t i = old; i < schema->physical_count; i++)
		w->sink[i].next = (uint64_t)schema->physical[i].first;
	lade__rnt_free(w->schema);
	w->schema = schema;
	return LADE_OK;
}

lade_status lade__rnt_add_fields(lade_rntuple_writer *w, const lade_rntuple_new_field *fields,
                                 size_t count, lade_error *err)
{
	lade__array array = {
		.own = (void *)(uintptr_t)fields, .count = count, .own_size = sizeof *fields};
	adding a = {.w = w,
	            .count = count,
	            .first = w->schema->field_count,
	            .lists = w->header.size ? &w->extension : &w->lists,
	            .late = w->entry_count > 0};
	rnt_lists before = *a.lists;
	lade_status status =
		lade__size_given(&w->options.field_size, FIELD_FIRST, "field_size", err);
	if (status == LADE_OK)
		status = lade__array_open(&array, w->options.field_size, "field", err);
	if (status != LADE_OK)
		return status;
	a.field = array.own;
	a.factor = calloc(count + 1, sizeof *a.factor);
	a.codec = calloc(count + 1, sizeof *a.codec);
	status = a.factor && a.codec ? add_all(&a, err) : lade__rnt_nomem(err);
	for (size_t i = 0; i < RNT_LISTS && status != LADE_OK; i++) {
		a.lists->items[i].size = before.items[i].size;
		a.lists->items[i].failed = false;
		a.lists->count[i] = before.count[i];
	}
	free(a.factor);
	free(a.codec);
	lade__array_close(&array, false);
	return status;
}
