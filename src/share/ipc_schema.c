/*
 * ipc_schema.c: a schema of Arrow's files (Schema.fbs) as one of the C data interface.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/ipc.h"

#include "base/try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of the union Type. */
enum {
	TYPE_NULL = 1, TYPE_INT, TYPE_FLOAT, TYPE_BINARY, TYPE_UTF8, TYPE_BOOL, TYPE_DECIMAL,
	TYPE_DATE, TYPE_TIME, TYPE_TIMESTAMP, TYPE_INTERVAL, TYPE_LIST, TYPE_STRUCT, TYPE_UNION,
	TYPE_FIXED_BINARY, TYPE_FIXED_LIST, TYPE_MAP, TYPE_DURATION, TYPE_LARGE_BINARY,
	TYPE_LARGE_UTF8, TYPE_LARGE_LIST, TYPE_RUNS, TYPE_BINARY_VIEW, TYPE_UTF8_VIEW,
	TYPE_LIST_VIEW, TYPE_LARGE_LIST_VIEW
};

/* Those without parameters. */
static const char *const formats[] = {
	[TYPE_NULL] = "n",          [TYPE_BINARY] = "z",       [TYPE_UTF8] = "u",
	[TYPE_BOOL] = "b",          [TYPE_LIST] = "+l",        [TYPE_STRUCT] = "+s",
	[TYPE_MAP] = "+m",          [TYPE_LARGE_BINARY] = "Z", [TYPE_LARGE_UTF8] = "U",
	[TYPE_LARGE_LIST] = "+L",   [TYPE_RUNS] = "+r",        [TYPE_BINARY_VIEW] = "vz",
	[TYPE_UTF8_VIEW] = "vu",    [TYPE_LIST_VIEW] = "+vl",  [TYPE_LARGE_LIST_VIEW] = "+vL",
};

typedef struct reader {
	lade__blocks *blocks;
	size_t nodes;
	size_t text; /* bytes of names and metadata: tables may be used twice */
} reader;

static lade_status corrupt(const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET, "the schema: %s", what);
}

static lade_status no_memory(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a schema");
}

static void no_release(struct ArrowSchema *schema)
{
	schema->release = NULL;
}

/* 'size' bytes and a NUL. */
static lade_status copy(reader *r, const void *bytes, size_t size, char **out, lade_error *err)
{
	r->text += size;
	if (r->text > LADE__HEAD_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "the schema has names and metadata of %zu bytes, at most %d",
		                 r->text, LADE__HEAD_MAX);
	*out = lade__blocks_alloc(r->blocks, size + 1, 1);
	if (!*out)
		return no_memory(err);
	if (size)
		memcpy(*out, bytes, size);
	return LADE_OK;
}

/* A string field; "" if it is absent. */
static lade_status copy_text(reader *r, const lade__flat_table *t, size_t slot, char **out,
                             lade_error *err)
{
	lade__flat_vector v = lade__flat_vector_of(t, slot, 1);
	const uint8_t *at = t->in->bytes + v.at;

	if (v.count && memchr(at, 0, v.count))
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a name in the schema has a byte 0");
	return copy(r, at, v.count, out, err);
}

/* Pairs of texts as the C interface has them: | pairs 4 | size 4 | key | size 4 | value | ... */
static lade_status read_metadata(reader *r, const lade__flat_table *t, size_t slot,
                                 const char **out, lade_error *err)
{
	lade__flat_vector pairs = lade__flat_vector_of(t, slot, 4);
	lade__bytes_out bytes = {0};
	lade_status status = LADE_OK;
	char *text;

	if (!pairs.count)
		return LADE_OK;
	lade__out_put(&bytes, pairs.count, 4);
	for (size_t i = 0; i < pairs.count; i++) {
		lade__flat_table pair = lade__flat_element(t->in, pairs, i);
		for (size_t j = 0; j < 2; j++) {
			lade__flat_vector v = lade__flat_vector_of(&pair, j, 1);
			lade__out_put(&bytes, v.count, 4);
			lade__out_bytes(&bytes, t->in->bytes + v.at, v.count);
		}
		if (t->in->bad || bytes.size > LADE__HEAD_MAX)
			TRY(corrupt("metadata are outside of it, or too large", err));
	}
	TRY(bytes.failed ? no_memory(err) : copy(r, bytes.bytes, bytes.size, &text, err));
	*out = text;
out:
	free(bytes.bytes);
	return status;
}

static char unit_of(int64_t unit)
{
	return unit >= 0 && unit < 4 ? "smun"[unit] : '?';
}

static const char *format_of_int(int64_t bits, bool is_signed)
{
	return bits == 8    ? (is_signed ? "c" : "C")
	       : bits == 16 ? (is_signed ? "s" : "S")
	       : bits == 32 ? (is_signed ? "i" : "I")
	       : bits == 64 ? (is_signed ? "l" : "L")
	                    : "?";
}

/* "+ud:0,5,7" */
static lade_status format_of_union(reader *r, const lade__flat_table *type, size_t children,
                                   char **out, lade_error *err)
{
	lade__flat_vector ids = lade__flat_vector_of(type, 1, 4);
	char text[4 + 127 * 12 + 1];
	size_t size = (size_t)snprintf(text, sizeof text, "+u%c:",
	                               lade__flat_int(type, 0, 2, 0) ? 'd' : 's');

	if (children > 127 || (ids.count && ids.count != children))
		return corrupt("a union has other children than type ids", err);
	for (size_t i = 0; i < children; i++) {
		int id = ids.count ? (int32_t)lade__le32(type->in->bytes + ids.at + 4 * i) : (int)i;
		size += (size_t)snprintf(text + size, sizeof text - size, i ? ",%d" : "%d", id);
	}
	return copy(r, text, size, out, err);
}

static lade_status read_format(reader *r, int64_t number, const lade__flat_table *t,
                               size_t children, char **out, lade_error *err)
{
	char text[64] = "?", *zone;
	int64_t a, b;
	lade_status status = LADE_OK;

	switch (number) {
	case TYPE_INT:
		snprintf(text, sizeof text, "%s",
		         format_of_int(lade__flat_int(t, 0, 4, 0), lade__flat_int(t, 1, 1, 0)));
		break;
	case TYPE_FLOAT:
		a = lade__flat_int(t, 0, 2, 0);
		snprintf(text, sizeof text, "%c", a >= 0 && a < 3 ? "efg"[a] : '?');
		break;
	case TYPE_DECIMAL:
		snprintf(text, sizeof text, "d:%d,%d,%d", (int)lade__flat_int(t, 0, 4, 0),
		         (int)lade__flat_int(t, 1, 4, 0), (int)lade__flat_int(t, 2, 4, 128));
		break;
	case TYPE_DATE:
		snprintf(text, sizeof text, "%s", lade__flat_int(t, 0, 2, 1) ? "tdm" : "tdD");
		break;
	case TYPE_TIME:
		a = lade__flat_int(t, 0, 2, 1);
		b = lade__flat_int(t, 1, 4, 32);
		if (b == (a < 2 ? 32 : 64))
			snprintf(text, sizeof text, "tt%c", unit_of(a));
		break;
	case TYPE_TIMESTAMP:
		a = lade__flat_int(t, 0, 2, 0);
		TRY(copy_text(r, t, 1, &zone, err));
		b = (int64_t)strlen(zone) + 5;
		*out = lade__blocks_alloc(r->blocks, (size_t)b, 1);
		TRY(*out ? LADE_OK : no_memory(err));
		snprintf(*out, (size_t)b, "ts%c:%s", unit_of(a), zone);
		return LADE_OK;
	case TYPE_INTERVAL:
		a = lade__flat_int(t, 0, 2, 0);
		snprintf(text, sizeof text, "ti%c", a >= 0 && a < 3 ? "MDn"[a] : '?');
		break;
	case TYPE_UNION:
		return format_of_union(r, t, children, out, err);
	case TYPE_FIXED_BINARY:
		snprintf(text, sizeof text, "w:%d", (int)lade__flat_int(t, 0, 4, 0));
		break;
	case TYPE_FIXED_LIST:
		snprintf(text, sizeof text, "+w:%d", (int)lade__flat_int(t, 0, 4, 0));
		break;
	case TYPE_DURATION:
		snprintf(text, sizeof text, "tD%c", unit_of(lade__flat_int(t, 0, 2, 1)));
		break;
	default:
		if (number > 0 && (size_t)number < sizeof formats / sizeof *formats &&
		    formats[number])
			snprintf(text, sizeof text, "%s", formats[number]);
		else
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "the schema: type %lld is not known", (long long)number);
	}
	return copy(r, text, strlen(text), out, err);
out:
	return status;
}

static struct ArrowSchema *new_schema(reader *r)
{
	struct ArrowSchema *s = lade__blocks_alloc(r->blocks, 1, sizeof *s);

	if (s) {
		s->release = no_release;
		s->name = "";
	}
	return s;
}

static lade_status read_field(reader *r, const lade__flat_table *f, unsigned depth,
                              struct ArrowSchema **out, lade_error *err)
{
	struct ArrowSchema *s = new_schema(r), *values = s;
	lade__flat_vector children = lade__flat_vector_of(f, 5, 4);
	lade__flat_table type, dictionary, index;
	int64_t number = lade__flat_int(f, 2, 1, 0);
	char *text;
	lade_status status;

	*out = s;
	if (++r->nodes + children.count > LADE__NODES_MAX || depth > LADE__DEPTH_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "the schema has more than %d fields, or more than %d levels",
		                 LADE__NODES_MAX, LADE__DEPTH_MAX);
	if (!s)
		return no_memory(err);
	TRY(copy_text(r, f, 0, &text, err));
	s->name = text;
	TRY(read_metadata(r, f, 6, &s->metadata, err));
	s->flags = lade__flat_int(f, 1, 1, 0) ? 2 : 0;
	if (lade__flat_sub(f, 4, &dictionary)) {
		int64_t *id = lade__blocks_alloc(r->blocks, 1, sizeof *id);
		values = s->dictionary = new_schema(r);
		TRY(values && id ? LADE_OK : no_memory(err));
		values->flags = 2;
		*id = lade__flat_int(&dictionary, 0, 8, 0);
		s->private_data = id;
		s->flags |= lade__flat_int(&dictionary, 2, 1, 0) ? 1 : 0;
		bool there = lade__flat_sub(&dictionary, 1, &index);
		s->format = there ? format_of_int(lade__flat_int(&index, 0, 4, 0),
		                                  lade__flat_int(&index, 1, 1, 0))
		                  : "i";
	}
	lade__flat_sub(f, 3, &type);
	TRY(f->in->bad ? corrupt("a field is outside of it", err) : LADE_OK);
	TRY(read_format(r, number, &type, children.count, &text, err));
	values->format = text;
	if (number == TYPE_MAP && lade__flat_int(&type, 0, 1, 0))
		values->flags |= 4;
	values->n_children = (int64_t)children.count;
	values->children = lade__blocks_alloc(r->blocks, children.count, sizeof *values->children);
	TRY(values->children ? LADE_OK : no_memory(err));
	for (size_t i = 0; i < children.count; i++) {
		lade__flat_table child = lade__flat_element(f->in, children, i);
		TRY(f->in->bad ? corrupt("a field is outside of it", err) : LADE_OK);
		TRY(read_field(r, &child, depth + 1, &values->children[i], err));
	}
out:
	return status;
}

lade_status lade__ipc_schema_read(const lade__flat_table *schema, lade__blocks *blocks,
                                  struct ArrowSchema **out, lade_error *err)
{
	reader r = {.blocks = blocks};
	struct ArrowSchema *top = new_schema(&r);
	lade__flat_vector fields = lade__flat_vector_of(schema, 1, 4);
	lade_status status;

	*out = top;
	TRY(top ? LADE_OK : no_memory(err));
	TRY(schema->in->bad ? corrupt("it is outside of its message", err) : LADE_OK);
	if (lade__flat_int(schema, 0, 2, 0))
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		              "its values are big-endian, want little-endian"));
	top->format = "+s";
	top->n_children = (int64_t)fields.count;
	TRY(fields.count > LADE__NODES_MAX ? corrupt("it has too many fields", err) : LADE_OK);
	TRY(read_metadata(&r, schema, 2, &top->metadata, err));
	top->children = lade__blocks_alloc(blocks, fields.count, sizeof *top->children);
	TRY(top->children ? LADE_OK : no_memory(err));
	for (size_t i = 0; i < fields.count; i++) {
		lade__flat_table field = lade__flat_element(schema->in, fields, i);
		TRY(schema->in->bad ? corrupt("a field is outside of it", err) : LADE_OK);
		TRY(read_field(&r, &field, 1, &top->children[i], err));
	}
out:
	return status;
}
