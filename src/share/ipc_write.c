/*
 * ipc_write.c: arrays as Arrow's files and streams.
 *
 * Each batch is copied as a publication copies it: slices become whole arrays.  Metadata are built
 * from front to back: a table first, then what it leads to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/ipc.h"

#include "base/try.h"
#include "share/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 64
#define VERSION_5 4

enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };

/* A field of a table: an integer, or 4 bytes that lead to something. */
typedef struct slot {
	size_t size; /* 0: absent */
	int64_t value;
	size_t at; /* where it was written */
} slot;

/* Where a message is in a file. */
typedef struct place {
	uint64_t off, body;
	uint32_t metadata;
	bool dictionary;
} place;

typedef struct writer {
	lade_output output;
	bool stream;
	uint64_t at;
	lade__node *root;
	lade__node *const *fields;
	size_t field_count;
	lade__bytes_out *last; /* of each dictionary: the message that was written last */
	size_t dictionary_count, next; /* while walking: the next number */
	lade__bytes_out places;        /* of place */
} writer;

/* A batch while it is collected: nodes, buffers, counts of views, and the body's parts. */
typedef struct body {
	lade__bytes_out nodes, buffers, views, parts; /* parts: of lade__buffer */
	uint64_t size;
} body;

static lade_status no_memory(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an Arrow file");
}

/* ---- FlatBuffers ------------------------------------------------------------------------ */

/* Zeros until 'behind' bytes more end at a multiple of 'align'. */
static void pad(lade__bytes_out *o, size_t behind, size_t align)
{
	while ((o->size + behind) % align && !o->failed)
		lade__out_put(o, 0, 1);
}

/* A table behind its vtable. */
static size_t put_table(lade__bytes_out *o, slot *slots, size_t count)
{
	size_t size = 4, vtable, table;

	pad(o, 4 + 2 * count, 8);
	vtable = o->size;
	table = vtable + 4 + 2 * count;
	for (size_t i = 0; i < count; i++)
		if (slots[i].size) {
			size = (size + slots[i].size - 1) / slots[i].size * slots[i].size;
			slots[i].at = table + size;
			size += slots[i].size;
		}
	lade__out_put(o, 4 + 2 * count, 2);
	lade__out_put(o, size, 2);
	for (size_t i = 0; i < count; i++)
		lade__out_put(o, slots[i].size ? slots[i].at - table : 0, 2);
	lade__out_put(o, table - vtable, 4);
	for (size_t i = 0; i < count; i++)
		if (slots[i].size) {
			pad(o, 0, slots[i].size);
			lade__out_put(o, (uint64_t)slots[i].value, slots[i].size);
		}
	return table;
}

/* The 4 bytes at 'from' lead to 'to'. */
static void lead(lade__bytes_out *o, size_t from, size_t to)
{
	if (!o->failed)
		lade__le_put(o->bytes + from, to - from, 4);
}

static void put_text(lade__bytes_out *o, size_t from, const void *text, size_t size)
{
	pad(o, 0, 4);
	lead(o, from, o->size);
	lade__out_put(o, size, 4);
	lade__out_bytes(o, text, size);
	lade__out_put(o, 0, 1);
}

/* A vector of 'count' elements that need an alignment of 8 in all. */
static void put_structs(lade__bytes_out *o, size_t from, const lade__bytes_out *of, size_t each)
{
	pad(o, 4, 8);
	lead(o, from, o->size);
	lade__out_put(o, of->size / each, 4);
	lade__out_bytes(o, of->bytes, of->size);
	o->failed |= of->failed;
}

/* A vector of tables; returns where the first's place is. */
static size_t put_vector(lade__bytes_out *o, size_t from, size_t count)
{
	pad(o, 0, 4);
	lead(o, from, o->size);
	lade__out_put(o, count, 4);
	for (size_t i = 0; i < count; i++)
		lade__out_put(o, 0, 4);
	return o->size - 4 * count;
}

/* ---- the schema ------------------------------------------------------------------------- */

static void put_metadata(lade__bytes_out *o, size_t from, const char *m)
{
	const uint8_t *at = (const uint8_t *)m;
	size_t pairs = lade__le32(at), to = put_vector(o, from, pairs);

	at += 4;
	for (size_t i = 0; i < pairs; i++) {
		slot s[] = {{.size = 4}, {.size = 4}};
		lead(o, to + 4 * i, put_table(o, s, 2));
		for (size_t j = 0; j < 2; j++) {
			uint32_t size = lade__le32(at);
			put_text(o, s[j].at, at + 4, size);
			at += 4 + size;
		}
	}
}

static int64_t unit_of(char letter)
{
	return letter == 's' ? 0 : letter == 'm' ? 1 : letter == 'u' ? 2 : 3;
}

/* The number of a type in the union Type; its table's fields go to 's'. */
static int type_of(const char *f, unsigned flags, slot s[3], const char **zone)
{
	static const struct {
		const char *format;
		int number;
	} plain[] = {{"n", 1},   {"z", 4},   {"u", 5},   {"b", 6},   {"+l", 12}, {"+s", 13},
	             {"Z", 19},  {"U", 20},  {"+L", 21}, {"+r", 22}, {"vz", 23}, {"vu", 24},
	             {"+vl", 25}, {"+vL", 26}};
	static const char integers[] = "cCsSiIlL";
	const char *found = strchr(integers, *f);

	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (!strcmp(plain[i].format, f))
			return plain[i].number;
	if (found && !f[1]) {
		s[0] = (slot){.size = 4, .value = 8 << (found - integers) / 2};
		s[1] = (slot){.size = 1, .value = (found - integers) % 2 == 0};
		return 2;
	}
	if (strchr("efg", *f)) {
		s[0] = (slot){.size = 2, .value = *f - 'e'};
		return 3;
	}
	if (*f == 'd') {
		int precision = 0, scale = 0, bits = 128;
		sscanf(f, "d:%d,%d,%d", &precision, &scale, &bits);
		s[0] = (slot){.size = 4, .value = precision};
		s[1] = (slot){.size = 4, .value = scale};
		s[2] = (slot){.size = 4, .value = bits};
		return 7;
	}
	if (*f == 'w' || !strncmp(f, "+w", 2)) {
		s[0] = (slot){.size = 4, .value = atoll(strchr(f, ':') + 1)};
		return *f == 'w' ? 15 : 16;
	}
	if (!strcmp(f, "+m")) {
		s[0] = (slot){.size = 1, .value = (flags & 4) != 0};
		return 17;
	}
	if (*f == '+') { /* a union: its ids follow the table */
		s[0] = (slot){.size = 2, .value = f[2] == 'd'};
		s[1] = (slot){.size = 4};
		return 14;
	}
	switch (f[1]) { /* times */
	case 'd':
		s[0] = (slot){.size = 2, .value = f[2] == 'm'};
		return 8;
	case 't':
		s[0] = (slot){.size = 2, .value = unit_of(f[2])};
		s[1] = (slot){.size = 4, .value = unit_of(f[2]) < 2 ? 32 : 64};
		return 9;
	case 's':
		s[0] = (slot){.size = 2, .value = unit_of(f[2])};
		*zone = f[3] && f[4] ? f + 4 : NULL;
		s[1].size = *zone ? 4 : 0;
		return 10;
	case 'i':
		s[0] = (slot){.size = 2, .value = f[2] == 'M' ? 0 : f[2] == 'D' ? 1 : 2};
		return 11;
	default:
		s[0] = (slot){.size = 2, .value = unit_of(f[2])};
		return 18;
	}
}

static void put_ids(lade__bytes_out *o, size_t from, const lade__node *n)
{
	const char *at = strchr(n->format, ':') + 1;
	size_t to = put_vector(o, from, n->child_count);

	for (size_t i = 0; i < n->child_count && !o->failed; i++) {
		char *next;
		lade__le_put(o->bytes + to + 4 * i, strtoul(at, &next, 10), 4);
		at = next + 1;
	}
}

static void put_field(writer *w, lade__bytes_out *o, size_t from, const lade__node *n)
{
	const lade__node *values = n->dictionary ? n->dictionary : n;
	slot type[3] = {{0}}, index[3] = {{0}}, ids[3] = {{0}};
	const char *zone = NULL;
	int number = type_of(values->format, values->flags, type, &zone);
	slot s[] = {
		{.size = 4},
		{.size = 1, .value = (n->flags & 2) != 0},
		{.size = 1, .value = number},
		{.size = 4},
		{.size = n->dictionary ? 4u : 0},
		{.size = 4},
		{.size = n->metadata_size ? 4u : 0},
	};

	lead(o, from, put_table(o, s, 7));
	put_text(o, s[0].at, n->name, strlen(n->name));
	lead(o, s[3].at, put_table(o, type, 3));
	if (zone)
		put_text(o, type[1].at, zone, strlen(zone));
	if (number == 14)
		put_ids(o, type[1].at, values);
	if (n->dictionary) {
		ids[0] = (slot){.size = 8, .value = (int64_t)w->next++};
		ids[1] = (slot){.size = 4};
		ids[2] = (slot){.size = 1, .value = n->flags & 1};
		lead(o, s[4].at, put_table(o, ids, 3));
		type_of(n->format, 0, index, &zone);
		lead(o, ids[1].at, put_table(o, index, 3));
	}
	if (n->metadata_size)
		put_metadata(o, s[6].at, n->metadata);
	size_t to = put_vector(o, s[5].at, values->child_count);
	for (size_t i = 0; i < values->child_count; i++)
		put_field(w, o, to + 4 * i, values->children[i]);
}

static void put_schema(writer *w, lade__bytes_out *o, size_t from)
{
	bool named = w->root->type.layout == LADE__AS_STRUCT && w->root->metadata_size;
	slot s[] = {{.size = 2}, {.size = 4}, {.size = named ? 4u : 0}};

	w->next = 0;
	lead(o, from, put_table(o, s, 3));
	size_t to = put_vector(o, s[1].at, w->field_count);
	for (size_t i = 0; i < w->field_count; i++)
		put_field(w, o, to + 4 * i, w->fields[i]);
	if (named)
		put_metadata(o, s[2].at, w->root->metadata);
}

/* ---- messages --------------------------------------------------------------------------- */

static lade_status write_bytes(writer *w, const void *bytes, uint64_t size, lade_error *err)
{
	w->at += size;
	return size ? w->output.write(w->output.ctx, bytes, (size_t)size, err) : LADE_OK;
}

static lade_status write_zeros(writer *w, uint64_t size, lade_error *err)
{
	static const uint8_t zeros[ALIGN];

	return write_bytes(w, zeros, size, err);
}

static uint64_t padding(uint64_t size)
{
	return (ALIGN - size % ALIGN) % ALIGN;
}

/* Begins a message; returns where the way to its header is. */
static size_t begin_message(lade__bytes_out *o, int header, uint64_t body_size)
{
	slot s[] = {{.size = 2, .value = VERSION_5},
	            {.size = 1, .value = header},
	            {.size = 4},
	            {.size = 8, .value = (int64_t)body_size}};

	lade__out_put(o, 0, 4);
	lead(o, 0, put_table(o, s, 4));
	return s[2].at;
}

/* The metadata, so that the body begins at a multiple of 64. */
static lade_status write_metadata(writer *w, lade__bytes_out *o, lade_error *err)
{
	uint8_t prefix[8] = {255, 255, 255, 255};
	lade_status status;

	pad(o, (size_t)(w->at % ALIGN) + sizeof prefix, ALIGN);
	if (o->failed)
		return no_memory(err);
	lade__le_put(prefix + 4, o->size, 4);
	TRY(write_bytes(w, prefix, sizeof prefix, err));
	TRY(write_bytes(w, o->bytes, o->size, err));
out:
	return status;
}

static lade_status write_schema(writer *w, lade_error *err)
{
	lade__bytes_out o = {0};

	put_schema(w, &o, begin_message(&o, HEADER_SCHEMA, 0));
	lade_status status = write_metadata(w, &o, err);
	free(o.bytes);
	return status;
}

/* A column without an offset, whose buffers have just what it shows. */
static void collect(body *b, const lade__column *c)
{
	bool views = c->node->type.layout == LADE__AS_VIEWS;

	lade__out_put(&b->nodes, (uint64_t)c->length, 8);
	lade__out_put(&b->nodes, (uint64_t)(c->null_count > 0 ? c->null_count : 0), 8);
	if (views)
		lade__out_put(&b->views, c->buffer_count - 3, 8);
	for (size_t i = 0; i + views < c->buffer_count; i++) {
		lade__out_put(&b->buffers, b->size, 8);
		lade__out_put(&b->buffers, c->buffers[i].size, 8);
		lade__out_bytes(&b->parts, &c->buffers[i], sizeof c->buffers[i]);
		b->size += c->buffers[i].size + padding(c->buffers[i].size);
	}
	for (size_t i = 0; i < c->node->child_count; i++)
		collect(b, c->children[i]);
}

static void free_body(body *b)
{
	free(b->nodes.bytes);
	free(b->buffers.bytes);
	free(b->views.bytes);
	free(b->parts.bytes);
}

static void put_batch(lade__bytes_out *o, size_t from, const body *b, int64_t rows)
{
	slot s[] = {{.size = 8, .value = rows},
	            {.size = 4},
	            {.size = 4},
	            {0},
	            {.size = b->views.size ? 4u : 0}};

	lead(o, from, put_table(o, s, 5));
	put_structs(o, s[1].at, &b->nodes, 16);
	put_structs(o, s[2].at, &b->buffers, 16);
	if (b->views.size)
		put_structs(o, s[4].at, &b->views, 8);
}

static lade_status write_body(writer *w, const body *b, lade_error *err)
{
	lade_status status = b->parts.failed ? no_memory(err) : LADE_OK;
	lade__buffer one;

	for (size_t i = 0; i < b->parts.size / sizeof one && status == LADE_OK; i++) {
		memcpy(&one, b->parts.bytes + i * sizeof one, sizeof one);
		status = write_bytes(w, one.data, one.size, err);
		if (status == LADE_OK)
			status = write_zeros(w, padding(one.size), err);
	}
	return status;
}

static lade_status write_message(writer *w, lade__bytes_out *o, const body *b, bool dictionary,
                                 lade_error *err)
{
	place p = {.off = w->at, .body = b->size, .dictionary = dictionary};
	lade_status status;

	TRY(write_metadata(w, o, err));
	p.metadata = (uint32_t)(w->at - p.off);
	TRY(write_body(w, b, err));
	lade__out_bytes(&w->places, &p, sizeof p);
out:
	return status;
}

/* ---- dictionaries ----------------------------------------------------------------------- */

/* All of a dictionary but its place in the file: two that are the same give the same bytes. */
static void describe(lade__bytes_out *o, const body *b)
{
	lade__buffer one;

	lade__out_bytes(o, b->nodes.bytes, b->nodes.size);
	lade__out_bytes(o, b->buffers.bytes, b->buffers.size);
	for (size_t i = 0; i < b->parts.size / sizeof one && !b->parts.failed; i++) {
		memcpy(&one, b->parts.bytes + i * sizeof one, sizeof one);
		lade__out_bytes(o, one.data, one.size);
	}
	o->failed |= b->nodes.failed || b->buffers.failed || b->parts.failed;
}

static lade_status write_dictionary(writer *w, size_t id, const lade__column *c, bool below,
                                    bool *changed, lade_error *err)
{
	lade__bytes_out what = {0}, o = {0}, *last = &w->last[id];
	slot s[] = {{.size = 8, .value = (int64_t)id}, {.size = 4}};
	body b = {0};
	lade_status status;

	collect(&b, c);
	describe(&what, &b);
	TRY(what.failed ? no_memory(err) : LADE_OK);
	bool first = !last->bytes;
	if (!first && !below && last->size == what.size &&
	    !memcmp(last->bytes, what.bytes, what.size))
		goto out;
	*changed = true;
	if (!first && !w->stream)
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		              "'%.60s': its batches have different dictionaries, which only a "
		              "stream (.arrows) can have",
		              c->node->name));
	size_t header = begin_message(&o, HEADER_DICTIONARY, b.size);
	lead(&o, header, put_table(&o, s, 2));
	put_batch(&o, s[1].at, &b, c->length);
	TRY(write_message(w, &o, &b, true, err));
	free(last->bytes);
	*last = what;
	what = (lade__bytes_out){0};
out:
	free(what.bytes);
	free(o.bytes);
	free_body(&b);
	return status;
}

/* Those inside before those outside. */
static lade_status write_dictionaries(writer *w, const lade__column *c, bool *changed,
                                      lade_error *err)
{
	lade_status status = LADE_OK;

	if (c->dictionary) {
		size_t id = w->next++;
		bool below = false;
		for (size_t i = 0; i < c->dictionary->node->child_count; i++)
			TRY(write_dictionaries(w, c->dictionary->children[i], &below, err));
		TRY(write_dictionary(w, id, c->dictionary, below, changed, err));
	}
	for (size_t i = 0; i < c->node->child_count; i++)
		TRY(write_dictionaries(w, c->children[i], changed, err));
out:
	return status;
}

/* ---- batches ---------------------------------------------------------------------------- */

static lade_status write_columns(writer *w, const lade__column *top, lade_error *err)
{
	bool table = w->root->type.layout == LADE__AS_STRUCT, changed = false;
	lade__column *const one = (lade__column *)top;
	lade__column *const *columns = table ? top->children : &one;
	lade__bytes_out o = {0};
	body b = {0};
	lade_status status = LADE_OK;

	w->next = 0;
	if (table && top->buffers[0].data)
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		              "the table has nulls of its own: %lld rows",
		              (long long)top->null_count));
	for (size_t i = 0; i < w->field_count; i++)
		TRY(write_dictionaries(w, columns[i], &changed, err));
	for (size_t i = 0; i < w->field_count; i++)
		collect(&b, columns[i]);
	put_batch(&o, begin_message(&o, HEADER_BATCH, b.size), &b, top->length);
	TRY(write_message(w, &o, &b, false, err));
out:
	free(o.bytes);
	free_body(&b);
	return status;
}

static lade_status write_array(writer *w, const struct ArrowSchema *schema,
                               const struct ArrowArray *array, lade_error *err)
{
	lade_share_table table = {.struct_size = sizeof table,
	                          .schema = schema,
	                          .batches = &array,
	                          .batch_count = 1};
	lade__emitted plan;
	lade__head read = {0};
	uint8_t *head = NULL;
	lade_status status = lade__emit_make(&plan, &table, NULL, LADE_SHARE_COPY_ALWAYS, err);

	if (status != LADE_OK)
		return status;
	size_t head_size = lade__emit_head_size(&plan), size = head_size + (size_t)plan.data_size;
	head = aligned_alloc(ALIGN, (size + ALIGN - 1) & ~(size_t)(ALIGN - 1));
	TRY(head ? LADE_OK : no_memory(err));
	lade__emit_head(&plan, LADE__BLOCK_INLINE, 1, head);
	TRY(lade__emit_copy(&plan, head + head_size, -1, err));
	TRY(lade__head_read(head, size, NULL, 0, &read, err));
	TRY(write_columns(w, read.batches[0], err));
out:
	lade__head_free(&read);
	free(head);
	lade__emit_free(&plan);
	return status;
}

/* ---- all of it -------------------------------------------------------------------------- */

static size_t count_dictionaries(const lade__node *n)
{
	size_t count = n->dictionary ? 1 + count_dictionaries(n->dictionary) : 0;

	for (size_t i = 0; i < n->child_count; i++)
		count += count_dictionaries(n->children[i]);
	return count;
}

static void put_places(const writer *w, lade__bytes_out *o, size_t from, bool dictionaries)
{
	lade__bytes_out blocks = {0};
	place p;

	for (size_t i = 0; i < w->places.size / sizeof p; i++) {
		memcpy(&p, w->places.bytes + i * sizeof p, sizeof p);
		if (p.dictionary != dictionaries)
			continue;
		lade__out_put(&blocks, p.off, 8);
		lade__out_put(&blocks, p.metadata, 8);
		lade__out_put(&blocks, p.body, 8);
	}
	put_structs(o, from, &blocks, 24);
	free(blocks.bytes);
}

static lade_status write_footer(writer *w, lade_error *err)
{
	slot s[] = {{.size = 2, .value = VERSION_5}, {.size = 4}, {.size = 4}, {.size = 4}};
	lade__bytes_out o = {0};
	lade_status status;

	lade__out_put(&o, 0, 4);
	lead(&o, 0, put_table(&o, s, 4));
	put_schema(w, &o, s[1].at);
	put_places(w, &o, s[2].at, true);
	put_places(w, &o, s[3].at, false);
	pad(&o, 0, 8);
	size_t size = o.size;
	lade__out_put(&o, size, 4);
	lade__out_bytes(&o, "ARROW1", 6);
	TRY(o.failed || w->places.failed ? no_memory(err) : LADE_OK);
	TRY(write_bytes(w, o.bytes, o.size, err));
out:
	free(o.bytes);
	return status;
}

lade_status lade__ipc_write(const struct ArrowSchema *schema,
                            const struct ArrowArray *const *arrays, size_t count, bool stream,
                            lade_output output, lade_error *err)
{
	static const uint8_t end[8] = {255, 255, 255, 255};
	writer w = {.output = output, .stream = stream};
	lade__blocks blocks = {0};
	size_t nodes;
	lade_status status;

	TRY(lade__nodes_from_schema(schema, &blocks, &w.root, &nodes, err));
	bool table = w.root->type.layout == LADE__AS_STRUCT;
	w.fields = table ? w.root->children : &w.root;
	w.field_count = table ? w.root->child_count : 1;
	w.dictionary_count = count_dictionaries(w.root);
	w.last = calloc(w.dictionary_count + 1, sizeof *w.last);
	TRY(w.last ? LADE_OK : no_memory(err));
	if (!stream)
		TRY(write_bytes(&w, "ARROW1\0", 8, err));
	TRY(write_schema(&w, err));
	for (size_t i = 0; i < count; i++)
		TRY(write_array(&w, schema, arrays[i], err));
	TRY(write_bytes(&w, end, sizeof end, err));
	if (!stream)
		TRY(write_footer(&w, err));
out:
	for (size_t i = 0; w.last && i < w.dictionary_count; i++)
		free(w.last[i].bytes);
	free(w.last);
	free(w.places.bytes);
	lade__blocks_free(&blocks);
	return status;
}
