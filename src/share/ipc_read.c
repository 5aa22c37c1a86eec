/*
 * ipc_read.c: Arrow's files and streams: their messages become arrays in the caller's memory.
 *
 *     stream  | message |...                          a schema, dictionaries and batches
 *     file    | "ARROW1" | a stream | footer | its size 4 | "ARROW1" |
 *     message | FFFFFFFF | size 4 | metadata | body |  (without FFFFFFFF before Arrow 0.15)
 *
 * 1. All metadata are read, and each buffer gets its place: the sizes are checked before memory is
 *    taken.  2. Bodies are read, or decompressed, to these places.  3. Dictionaries are joined to
 * their columns in the messages' order, and all values are checked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/ipc.h"

#include <lade/batch.h>

#include "base/try.h"
#include "share/job.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 64
#define COUNT_MAX ((int64_t)1 << 56)
#define DICTIONARIES_MAX 4096

enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { VERSION_4 = 3, VERSION_5 = 4 };

/* What a body can become: a literal of LZ4 and a block of Zstd that repeats a byte give most. */
static const struct {
	const char *spec;
	uint64_t most; /* bytes from one */
} codecs[] = {{"lz4f", 255}, {"zstd", 43691}};

typedef struct message {
	lade__flat flat;
	lade__flat_table batch;
	uint64_t body_off, body_size;
	int64_t id; /* of its dictionary */
	bool dictionary, delta, apart;
	int64_t version;
	int codec; /* -1: none */
	lade__column *column;
	size_t first, end; /* of its pieces */
} message;

/* A buffer: bytes of a body, sizes of a column's strings, or zeros. */
typedef struct piece {
	lade__buffer *to;
	uint64_t off, stored, at;
	const lade__column *sizes_of;
	bool packed, apart;
} piece;

/* The fields with one id share it. */
typedef struct dictionary {
	int64_t id;
	const lade__node *values;
	lade__column *whole, *now; /* with all its deltas; what the next batch sees */
	size_t last;               /* its last message so far, from 1 on */
} dictionary;

typedef struct reader {
	lade_source source;
	uint64_t size, bodies; /* of the source; of all bodies and metadata */
	lade__ipc_memory memory;
	lade__ipc *out;
	message *messages;
	size_t message_count, message_cap;
	piece *pieces;
	size_t piece_count, piece_cap;
	dictionary *dictionaries;
	size_t dictionary_count;
	uint64_t total[2]; /* bytes of the memory, and of what is put together from it */
	uint8_t *base[2];
	bool have_schema;
} reader;

/* Where a walk of a batch is in its nodes and buffers. */
typedef struct walk {
	reader *r;
	message *m;
	lade__flat_vector nodes, buffers, variadic;
	size_t node, buffer, view;
	uint64_t used; /* bytes of the body */
} walk;

static lade_status no_memory(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an Arrow file");
}

static lade_status corrupt(uint64_t at, const char *what, uint64_t have, uint64_t want,
                           lade_error *err)
{
	return lade_fail(err, LADE_E_CORRUPT, at, "%s: have %llu, want %llu", what,
	                 (unsigned long long)have, (unsigned long long)want);
}

static lade_status read_at(reader *r, uint64_t off, size_t size, void *to, lade_error *err)
{
	lade_range range = {.off = off, .dst = lade_host_span(to, size)};

	if (off > r->size || size > r->size - off)
		return lade_fail(err, LADE_E_TRUNCATED, off,
		                 "it has %llu bytes, and %llu are wanted from byte %llu",
		                 (unsigned long long)r->size, (unsigned long long)size,
		                 (unsigned long long)off);
	return size ? lade_source_read(r->source, &range, 1, NULL, err) : LADE_OK;
}

/* One more entry of a list. */
static void *grow(void **list, size_t *count, size_t *cap, size_t size)
{
	if (*count == *cap) {
		size_t more = *cap ? *cap * 2 : 64;
		void *larger = realloc(*list, more * size);
		if (!larger)
			return NULL;
		*list = larger;
		*cap = more;
	}
	return memset((uint8_t *)*list + (*count)++ * size, 0, size);
}

/* ---- the schema ------------------------------------------------------------------------- */

static bool same_type(const lade__node *a, const lade__node *b)
{
	bool same = !strcmp(a->format, b->format) && a->child_count == b->child_count &&
	            !a->dictionary == !b->dictionary;

	for (size_t i = 0; i < a->child_count && same; i++)
		same = same_type(a->children[i], b->children[i]);
	return same && (!a->dictionary || same_type(a->dictionary, b->dictionary));
}

static dictionary *find(reader *r, int64_t id)
{
	for (size_t i = 0; i < r->dictionary_count; i++)
		if (r->dictionaries[i].id == id)
			return &r->dictionaries[i];
	return NULL;
}

/* Lists the dictionaries.  Fields with one id get the same node of values. */
static lade_status find_dictionaries(reader *r, const struct ArrowSchema *s, lade__node *n,
                                     lade_error *err)
{
	lade_status status = LADE_OK;

	for (size_t i = 0; i < n->child_count; i++)
		TRY(find_dictionaries(r, s->children[i], n->children[i], err));
	if (!n->dictionary)
		return LADE_OK;
	TRY(find_dictionaries(r, s->dictionary, n->dictionary, err));
	int64_t id = *(const int64_t *)s->private_data;
	dictionary *d = find(r, id);
	if (d && !same_type(d->values, n->dictionary))
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "dictionary %lld has the formats '%.30s' and '%.30s'",
		                 (long long)id, d->values->format, n->dictionary->format);
	if (d) {
		n->dictionary = (lade__node *)d->values;
		return LADE_OK;
	}
	if (r->dictionary_count == DICTIONARIES_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "more than %d dictionaries", DICTIONARIES_MAX);
	r->dictionaries[r->dictionary_count++] = (dictionary){.id = id, .values = n->dictionary};
out:
	return status;
}

static lade_status read_schema(reader *r, const lade__flat_table *t, lade_error *err)
{
	size_t count;
	lade_status status;

	TRY(lade__ipc_schema_read(t, &r->out->blocks, &r->out->top, err));
	status = lade__nodes_from_schema(r->out->top, &r->out->blocks, &r->out->root, &count, err);
	TRY(status == LADE_E_ARG ? LADE_E_CORRUPT : status);
	r->dictionaries = calloc(DICTIONARIES_MAX, sizeof *r->dictionaries);
	TRY(r->dictionaries ? LADE_OK : no_memory(err));
	TRY(find_dictionaries(r, r->out->top, r->out->root, err));
	r->have_schema = true;
out:
	return status;
}

/* ---- messages --------------------------------------------------------------------------- */

static lade_status read_version(int64_t version, lade_error *err)
{
	if (version == VERSION_4 || version == VERSION_5)
		return LADE_OK;
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                 "metadata of version %lld, want 4 or 5", (long long)version + 1);
}

static lade_status read_flat(reader *r, uint64_t off, uint64_t size, lade__flat *out,
                             lade_error *err)
{
	lade_status status;
	uint8_t *bytes;

	if (size > LADE__HEAD_MAX)
		return corrupt(off, "bytes of metadata", size, LADE__HEAD_MAX, err);
	if (off > r->size || size > r->size - off)
		return lade_fail(err, LADE_E_TRUNCATED, off,
		                 "metadata of %llu bytes from byte %llu pass its end at %llu",
		                 (unsigned long long)size, (unsigned long long)off,
		                 (unsigned long long)r->size);
	bytes = lade__blocks_alloc(&r->out->blocks, size, 1);
	TRY(bytes ? LADE_OK : no_memory(err));
	TRY(read_at(r, off, size, bytes, err));
	*out = (lade__flat){.bytes = bytes, .size = size};
out:
	return status;
}

/* Reads the message whose metadata are there; the body follows at 'body'. */
static lade_status read_message(reader *r, uint64_t off, uint64_t size, uint64_t body,
                                uint64_t *end, lade_error *err)
{
	message m = {.body_off = body, .codec = -1};
	lade__flat_table top, header, packed;
	lade_status status;

	TRY(read_flat(r, off, size, &m.flat, err));
	top = lade__flat_root(&m.flat);
	m.version = lade__flat_int(&top, 0, 2, 0);
	int64_t kind = lade__flat_int(&top, 1, 1, 0);
	int64_t body_size = lade__flat_int(&top, 3, 8, 0);
	bool there = lade__flat_sub(&top, 2, &header);
	if (m.flat.bad || !there)
		TRY(corrupt(off, "a message's metadata are not valid: bytes", size, size, err));
	TRY(read_version(m.version, err));
	if (body_size < 0 || body > r->size || (uint64_t)body_size > r->size - body)
		TRY(lade_fail(err, LADE_E_TRUNCATED, body,
		              "a body of %lld bytes from byte %llu passes its end at %llu",
		              (long long)body_size, (unsigned long long)body,
		              (unsigned long long)r->size));
	m.body_size = (uint64_t)body_size;
	*end = body + m.body_size;
	r->bodies += size + m.body_size;
	if (r->bodies > r->size)
		TRY(corrupt(off, "bytes of all messages", r->bodies, r->size, err));
	if (kind == HEADER_SCHEMA)
		return r->have_schema ? corrupt(off, "schemas", 2, 1, err)
		                      : read_schema(r, &header, err);
	if (kind != HEADER_BATCH && kind != HEADER_DICTIONARY)
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, off, "a message of kind %lld",
		              (long long)kind));
	if (!r->have_schema)
		TRY(corrupt(off, "schemas before the first batch", 0, 1, err));
	m.dictionary = kind == HEADER_DICTIONARY;
	m.batch = header;
	if (m.dictionary) {
		m.id = lade__flat_int(&header, 0, 8, 0);
		m.delta = lade__flat_int(&header, 2, 1, 0) != 0;
		there = lade__flat_sub(&header, 1, &m.batch);
	}
	if (there && lade__flat_sub(&m.batch, 3, &packed)) {
		m.codec = (int)lade__flat_int(&packed, 0, 1, 0);
		if (m.codec < 0 || m.codec > 1 || lade__flat_int(&packed, 1, 1, 0))
			TRY(lade_fail(err, LADE_E_UNSUPPORTED, off, "compression %d of bodies",
			              m.codec));
	}
	if (m.flat.bad || !there)
		TRY(corrupt(off, "a batch's metadata are not valid: bytes", size, size, err));
	message *to = grow((void **)&r->messages, &r->message_count, &r->message_cap, sizeof m);
	TRY(to ? LADE_OK : no_memory(err));
	*to = m;
out:
	return status;
}

/* Where the metadata begin behind 4 or 8 bytes at 'at', and their size; 0: the end. */
static lade_status read_prefix(reader *r, uint64_t at, uint64_t *off, uint64_t *size,
                               lade_error *err)
{
	uint8_t bytes[4];
	lade_status status;

	TRY(read_at(r, at, 4, bytes, err));
	*off = at + 4;
	if (lade__le32(bytes) == UINT32_MAX) {
		TRY(read_at(r, at + 4, 4, bytes, err));
		*off = at + 8;
	}
	*size = lade__le32(bytes);
out:
	return status;
}

static lade_status read_stream(reader *r, lade_error *err)
{
	uint64_t at = 0, off, size;
	lade_status status = LADE_OK;

	while (at < r->size) {
		TRY(read_prefix(r, at, &off, &size, err));
		if (!size)
			break;
		TRY(read_message(r, off, size, off + size, &at, err));
	}
	if (!r->have_schema)
		TRY(lade_fail(err, LADE_E_TRUNCATED, at, "it has no schema"));
out:
	return status;
}

static lade_status read_blocks(reader *r, lade__flat *footer, lade__flat_vector blocks,
                               bool dictionaries, lade_error *err)
{
	lade_status status = LADE_OK;

	for (size_t i = 0; i < blocks.count; i++) {
		const uint8_t *b = footer->bytes + blocks.at + 24 * i;
		uint64_t at = lade__le64(b), length = lade__le32(b + 8), off, size, end;
		size_t before = r->message_count;
		TRY(at > r->size ? corrupt(at, "a block's place", at, r->size, err) : LADE_OK);
		TRY(read_prefix(r, at, &off, &size, err));
		if (off - at > length || size > length - (off - at))
			TRY(corrupt(at, "bytes of a block's metadata", size, length, err));
		TRY(read_message(r, off, size, at + length, &end, err));
		if (r->message_count == before || r->messages[before].dictionary != dictionaries)
			TRY(corrupt(at, "a block of another kind", i, i, err));
	}
out:
	return status;
}

static lade_status read_file(reader *r, lade_error *err)
{
	uint8_t end[10];
	lade__flat footer;
	lade__flat_table top, schema;
	lade_status status;

	if (r->size < 8 + sizeof end)
		return lade_fail(err, LADE_E_TRUNCATED, 0, "a file of %llu bytes, want %zu or more",
		                 (unsigned long long)r->size, 8 + sizeof end);
	TRY(read_at(r, r->size - sizeof end, sizeof end, end, err));
	uint64_t size = lade__le32(end);
	if (memcmp(end + 4, "ARROW1", 6))
		TRY(lade_fail(err, LADE_E_TRUNCATED, r->size - 6, "it does not end with ARROW1"));
	if (size > r->size - sizeof end - 8)
		TRY(corrupt(r->size - sizeof end, "bytes of the footer", size,
		            r->size - sizeof end - 8, err));
	TRY(read_flat(r, r->size - sizeof end - size, size, &footer, err));
	top = lade__flat_root(&footer);
	bool there = lade__flat_sub(&top, 1, &schema);
	lade__flat_vector dictionaries = lade__flat_vector_of(&top, 2, 24);
	lade__flat_vector batches = lade__flat_vector_of(&top, 3, 24);
	if (footer.bad || !there)
		TRY(corrupt(r->size - sizeof end, "the footer is not valid: bytes", size, size,
		            err));
	TRY(read_schema(r, &schema, err)); /* some write no version here */
	TRY(read_blocks(r, &footer, dictionaries, true, err));
	TRY(read_blocks(r, &footer, batches, false, err));
out:
	return status;
}

/* ---- columns and their buffers ---------------------------------------------------------- */

static lade_status add_piece(reader *r, piece p, uint64_t size, lade_error *err)
{
	piece *to;

	if (!size)
		return LADE_OK;
	p.at = r->total[p.apart];
	r->total[p.apart] += (size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	if (size > (uint64_t)COUNT_MAX || r->total[p.apart] > (uint64_t)COUNT_MAX)
		return corrupt(p.off, "bytes of a buffer", size, (uint64_t)COUNT_MAX, err);
	p.to->size = size;
	to = grow((void **)&r->pieces, &r->piece_count, &r->piece_cap, sizeof p);
	if (!to)
		return no_memory(err);
	*to = p;
	return LADE_OK;
}

/* The next buffer of the batch becomes 'to'.  'drop': it is not needed. */
static lade_status take_buffer(walk *w, lade__buffer *to, bool drop, uint64_t least,
                               lade_error *err)
{
	piece p = {.to = to, .apart = w->m->apart};
	uint8_t prefix[8];
	uint64_t size;
	lade_status status;

	if (w->buffer == w->buffers.count)
		return corrupt(w->m->body_off, "buffers of a batch", w->buffer, w->buffer + 1, err);
	const uint8_t *b = w->m->flat.bytes + w->buffers.at + 16 * w->buffer++;
	uint64_t off = lade__le64(b), stored = lade__le64(b + 8);
	if (off > w->m->body_size || stored > w->m->body_size - off ||
	    stored > w->m->body_size - w->used)
		return corrupt(w->m->body_off, "a buffer passes the end of its body", stored,
		               w->m->body_size, err);
	w->used += stored;
	p.off = w->m->body_off + off;
	p.stored = size = stored;
	if (w->m->codec >= 0 && stored) {
		if (stored < 8)
			return corrupt(p.off, "bytes of a compressed buffer", stored, 8, err);
		TRY(read_at(w->r, p.off, 8, prefix, err));
		p.off += 8;
		p.stored -= 8;
		p.packed = lade__le64(prefix) != UINT64_MAX;
		size = p.packed ? lade__le64(prefix) : p.stored;
		uint64_t most = codecs[w->m->codec].most;
		if (p.packed && size / most + (size % most != 0) > p.stored)
			return corrupt(p.off - 8, "a compressed buffer's size", size,
			               p.stored * most, err);
	}
	if (drop)
		return LADE_OK;
	/* Offsets of no rows: they may be left out. */
	if (size < least)
		return add_piece(w->r, (piece){.to = to, .apart = w->m->apart}, least, err);
	TRY(add_piece(w->r, p, size, err));
out:
	return status;
}

static lade_status new_column(reader *r, const lade__node *n, size_t buffers, lade__column **out,
                              lade_error *err)
{
	lade__blocks *blocks = &r->out->blocks;
	lade__column *c = lade__blocks_alloc(blocks, 1, sizeof *c);

	*out = c;
	if (c) {
		c->node = n;
		c->buffer_count = buffers;
		c->buffers = lade__blocks_alloc(blocks, buffers, sizeof *c->buffers);
		c->children = lade__blocks_alloc(blocks, n->child_count, sizeof *c->children);
	}
	return c && c->buffers && c->children ? LADE_OK : no_memory(err);
}

/* Buffers of strings that the next column of views has. */
static lade_status take_views(walk *w, size_t *count, lade_error *err)
{
	if (w->view == w->variadic.count)
		return corrupt(w->m->body_off, "columns of views with counts", w->view, w->view + 1,
		               err);
	uint64_t views = lade__le64(w->m->flat.bytes + w->variadic.at + 8 * w->view++);
	if (views > w->buffers.count)
		return corrupt(w->m->body_off, "buffers of a column of views", views,
		               w->buffers.count, err);
	*count = (size_t)views;
	return LADE_OK;
}

static lade_status take_column(walk *w, const lade__node *n, lade__column **out, lade_error *err)
{
	lade__layout l = n->type.layout;
	size_t count = lade__type_buffers(&n->type), views = 0;
	bool is_union = l == LADE__AS_SPARSE || l == LADE__AS_DENSE;
	lade__column *c;
	lade__buffer none;
	lade_status status = LADE_OK;

	if (w->node == w->nodes.count)
		return corrupt(w->m->body_off, "nodes of a batch", w->node, w->node + 1, err);
	if (l == LADE__AS_VIEWS)
		TRY(take_views(w, &views, err));
	TRY(new_column(w->r, n, count + views, out, err));
	c = *out;
	const uint8_t *node = w->m->flat.bytes + w->nodes.at + 16 * w->node++;
	c->length = (int64_t)lade__le64(node);
	c->null_count = (int64_t)lade__le64(node + 8);
	if (c->length < 0 || c->length > COUNT_MAX || c->null_count < -1 ||
	    c->null_count > c->length)
		return corrupt(w->m->body_off, "nulls of a column", (uint64_t)c->null_count,
		               (uint64_t)c->length, err);
	if (is_union && w->m->version == VERSION_4) {
		if (c->null_count > 0)
			return lade_fail(err, LADE_E_UNSUPPORTED, w->m->body_off,
			                 "'%.60s' is a union with nulls of its own, as before "
			                 "Arrow 1.0",
			                 n->name);
		TRY(take_buffer(w, &none, true, 0, err));
	}
	for (size_t i = 0; i < c->buffer_count; i++) {
		bool bitmap = !i && !is_union, offsets = i == 1 && !c->length;
		uint64_t least = offsets && (l == LADE__AS_BYTES || l == LADE__AS_LIST)
		                         ? n->type.width
		                         : 0;
		if (l == LADE__AS_VIEWS && i + 1 == c->buffer_count)
			TRY(add_piece(w->r,
			              (piece){.to = &c->buffers[i],
			                      .sizes_of = c,
			                      .apart = w->m->apart},
			              8 * views, err));
		else
			TRY(take_buffer(w, &c->buffers[i], bitmap && !c->null_count, least, err));
	}
	for (size_t i = 0; i < n->child_count; i++)
		TRY(take_column(w, n->children[i], &c->children[i], err));
out:
	return status;
}

static lade_status take_batch(reader *r, message *m, lade_error *err)
{
	walk w = {.r = r, .m = m};
	m->batch.in = &m->flat; /* the list of messages does not move any more */
	int64_t rows = lade__flat_int(&m->batch, 0, 8, 0);
	const dictionary *d = m->dictionary ? find(r, m->id) : NULL;
	lade__column *c;
	lade_status status = LADE_OK;

	w.nodes = lade__flat_vector_of(&m->batch, 1, 16);
	w.buffers = lade__flat_vector_of(&m->batch, 2, 16);
	w.variadic = lade__flat_vector_of(&m->batch, 4, 8);
	m->first = r->piece_count;
	if (m->flat.bad || rows < 0 || rows > COUNT_MAX)
		return corrupt(m->body_off, "rows of a batch", (uint64_t)rows, COUNT_MAX, err);
	if (m->dictionary) {
		TRY(d ? take_column(&w, d->values, &m->column, err)
		      : corrupt(m->body_off, "a dictionary that no field has: number",
		                (uint64_t)m->id, 0, err));
	} else {
		TRY(new_column(r, r->out->root, 1, &m->column, err));
		m->column->length = rows;
		for (size_t i = 0; i < r->out->root->child_count; i++) {
			TRY(take_column(&w, r->out->root->children[i], &m->column->children[i],
			                err));
			c = m->column->children[i];
			if (c->length != rows)
				TRY(corrupt(m->body_off, "rows of a column", (uint64_t)c->length,
				            (uint64_t)rows, err));
		}
	}
	m->end = r->piece_count;
out:
	return status;
}

/* ---- bodies ----------------------------------------------------------------------------- */

static lade_status decompress(const message *m, const lade_item *items, size_t count,
                              lade_error *err)
{
	lade_engine *engine = lade_engine_default();
	lade_result *results = calloc(count, sizeof *results);
	lade_spec *spec = NULL;
	lade_status status;

	TRY(engine && results ? LADE_OK : no_memory(err));
	TRY(lade_spec_parse(engine, codecs[m->codec].spec, &spec, err));
	TRY(lade_decode_into(engine, spec, items, count, results, NULL, err));
	for (size_t i = 0; i < count; i++)
		if (results[i].size != items[i].dst.size)
			TRY(corrupt(m->body_off, "bytes of a compressed buffer", results[i].size,
			            items[i].dst.size, err));
out:
	lade_spec_unref(spec);
	free(results);
	return status;
}

/* Reads the buffers of a message to their places; compressed ones by way of memory of its own. */
static lade_status load(reader *r, const message *m, lade_error *err)
{
	size_t count = m->end - m->first, reads = 0, items = 0, packed = 0;
	lade_range *ranges = calloc(count + 1, sizeof *ranges);
	lade_item *item = calloc(count + 1, sizeof *item);
	lade_segment *segments = calloc(count + 1, sizeof *segments);
	uint8_t *bytes = NULL;
	lade_status status;

	TRY(ranges && item && segments ? LADE_OK : no_memory(err));
	for (size_t i = m->first; i < m->end; i++)
		packed += r->pieces[i].packed ? (size_t)r->pieces[i].stored : 0;
	bytes = malloc(packed + 1);
	TRY(bytes ? LADE_OK : no_memory(err));
	packed = 0;
	for (size_t i = m->first; i < m->end; i++) {
		piece *p = &r->pieces[i];
		uint8_t *to = r->base[p->apart] + p->at;
		p->to->data = to;
		for (size_t j = 2; p->sizes_of && j + 1 < p->sizes_of->buffer_count; j++)
			lade__le_put(to + 8 * (j - 2), p->sizes_of->buffers[j].size, 8);
		if (!p->stored)
			continue;
		if (p->packed) {
			segments[items] = (lade_segment){.data = bytes + packed,
			                                 .size = (size_t)p->stored};
			item[items] = (lade_item){.src = &segments[items],
			                          .src_count = 1,
			                          .dst = lade_host_span(to, (size_t)p->to->size)};
			items++;
			to = bytes + packed;
			packed += (size_t)p->stored;
		}
		ranges[reads++] = (lade_range){.off = p->off,
		                               .dst = lade_host_span(to, (size_t)p->stored)};
	}
	if (reads)
		TRY(lade_source_read(r->source, ranges, reads, NULL, err));
	if (items)
		TRY(decompress(m, item, items, err));
out:
	free(bytes);
	free(segments);
	free(item);
	free(ranges);
	return status;
}

/* ---- dictionaries ----------------------------------------------------------------------- */

/* Without values; it stands for a dictionary that is not there, as where all rows are null. */
static lade_status make_empty(reader *r, const lade__node *n, lade__column **out, lade_error *err)
{
	lade_status status;

	TRY(new_column(r, n, lade__type_buffers(&n->type), out, err));
	for (size_t i = 0; i < n->child_count; i++)
		TRY(make_empty(r, n->children[i], &(*out)->children[i], err));
	if (n->dictionary)
		TRY(make_empty(r, n->dictionary, &(*out)->dictionary, err));
out:
	return status;
}

/* Gives a column and those below it the dictionaries of now, and checks their sizes. */
static lade_status link_column(reader *r, lade__column *c, lade_error *err)
{
	lade_status status = LADE_OK;

	for (size_t i = 0; i < c->node->child_count; i++)
		TRY(link_column(r, c->children[i], err));
	for (size_t i = 0; c->node->dictionary && i < r->dictionary_count; i++) {
		dictionary *d = &r->dictionaries[i];
		if (d->values != c->node->dictionary)
			continue;
		if (!d->now)
			TRY(make_empty(r, d->values, &d->now, err));
		c->dictionary = d->now;
		break;
	}
	TRY(lade__column_fits(c, err));
out:
	return status;
}

static void put_bits(uint8_t *to, uint64_t at, const lade__column *c, size_t buffer)
{
	const uint8_t *bits = c->buffers[buffer].data;

	for (uint64_t i = 0; i < (uint64_t)c->length; i++, at++)
		if (!bits || lade__bit(bits, i))
			to[at / 8] |= (uint8_t)(1u << at % 8);
}

/* The strings' bytes of a column that fits. */
static uint64_t bytes_of(const lade__column *c)
{
	size_t width = c->node->type.width;

	return (uint64_t)(lade__element(c->buffers[1].data, width, (uint64_t)c->length) -
	                  lade__element(c->buffers[1].data, width, 0));
}

static void join_values(lade__column *to, uint8_t *values, uint8_t *bytes, uint64_t at,
                        uint64_t *end, const lade__column *c)
{
	const lade__type *t = &to->node->type;
	uint64_t count = (uint64_t)c->length;

	if (t->layout == LADE__AS_BITS) {
		put_bits(values, at, c, 1);
	} else if (t->layout == LADE__AS_FIXED && count && t->width) {
		memcpy(values + at * t->width, c->buffers[1].data, count * t->width);
	} else if (t->layout == LADE__AS_BYTES) {
		int64_t first = lade__element(c->buffers[1].data, t->width, 0);
		for (uint64_t i = 0; i < count; i++) {
			int64_t next = lade__element(c->buffers[1].data, t->width, i + 1);
			lade__le_put(values + (at + i + 1) * t->width,
			             *end + (uint64_t)(next - first), t->width);
		}
		if (bytes_of(c))
			memcpy(bytes + *end, c->buffers[2].data + first, bytes_of(c));
		*end += bytes_of(c);
	}
}

/* A dictionary with its deltas, of messages that have been checked. */
static lade_status join(reader *r, const message *first, int64_t id, lade__column **out,
                        lade_error *err)
{
	const message *end = r->messages + r->message_count, *m;
	const lade__node *n = first->column->node;
	const lade__type *t = &n->type;
	uint64_t count = 0, bytes = 0, at = 0, written = 0, nulls = 0, width;
	uint8_t *base;
	lade_status status;

	for (m = first; m < end && (m == first || !m->dictionary || m->id != id || m->delta); m++)
		if (m->dictionary && m->id == id) {
			count += (uint64_t)m->column->length;
			bytes += t->layout == LADE__AS_BYTES ? bytes_of(m->column) : 0;
		}
	end = m;
	if (t->layout > LADE__AS_BYTES || n->dictionary)
		return lade_fail(err, LADE_E_UNSUPPORTED, first->body_off,
		                 "dictionary %lld of format '%.30s' has deltas, which are read of "
		                 "flat values and strings only",
		                 (long long)id, n->format);
	if (t->layout == LADE__AS_BYTES && t->width == 4 && bytes > INT32_MAX)
		return corrupt(first->body_off, "bytes of a dictionary", bytes, INT32_MAX, err);
	TRY(new_column(r, n, lade__type_buffers(t), out, err));
	(*out)->length = (int64_t)count;
	if (t->layout == LADE__AS_NULLS) {
		(*out)->null_count = (int64_t)count;
		return LADE_OK;
	}
	width = t->layout == LADE__AS_BITS    ? (count + 7) / 8
	        : t->layout == LADE__AS_FIXED ? count * t->width
	                                      : (count + 1) * t->width;
	uint64_t bitmap = ((count + 7) / 8 + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	uint64_t values = (width + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	TRY(r->memory.make(r->memory.ctx, (size_t)(bitmap + values + bytes + 1), &base, err));
	for (m = first; m < end; m++) {
		if (!m->dictionary || m->id != id)
			continue;
		put_bits(base, at, m->column, 0);
		join_values(*out, base + bitmap, base + bitmap + values, at, &written, m->column);
		at += (uint64_t)m->column->length;
	}
	nulls = lade__count_nulls(base, 0, count);
	(*out)->null_count = (int64_t)nulls;
	(*out)->buffers[0] = (lade__buffer){nulls ? base : NULL, nulls ? (count + 7) / 8 : 0, NULL};
	(*out)->buffers[1] = (lade__buffer){base + bitmap, width, NULL};
	if (t->layout == LADE__AS_BYTES)
		(*out)->buffers[2] = (lade__buffer){base + bitmap + values, bytes, NULL};
out:
	return status;
}

/* What a dictionary's next batches see: 'length' values of 'whole'. */
static lade_status set_now(reader *r, dictionary *d, int64_t length, lade_error *err)
{
	lade__column *c = lade__blocks_alloc(&r->out->blocks, 1, sizeof *c);

	if (!c)
		return no_memory(err);
	*c = *d->whole;
	c->length = length;
	if (length != d->whole->length)
		c->null_count = c->node->type.layout == LADE__AS_NULLS ? length
		                : c->buffers[0].data                    ? -1
		                                                        : 0;
	d->now = c;
	return LADE_OK;
}

static lade_status next_dictionary(reader *r, const message *m, lade_error *err)
{
	dictionary *d = find(r, m->id);

	if (m->delta)
		return d->whole ? set_now(r, d, d->now->length + m->column->length, err)
		                : corrupt(m->body_off, "dictionaries before a delta", 0, 1, err);
	d->whole = m->column;
	if (m->apart) {
		lade_status status = join(r, m, m->id, &d->whole, err);
		if (status != LADE_OK)
			return status;
	}
	return set_now(r, d, m->column->length, err);
}

/* Marks dictionaries with deltas, and these: they are put together elsewhere. */
static void find_deltas(reader *r)
{
	for (size_t i = 0; i < r->message_count; i++) {
		message *m = &r->messages[i];
		dictionary *d = m->dictionary ? find(r, m->id) : NULL;
		if (!d)
			continue;
		if (m->delta && d->last)
			m->apart = r->messages[d->last - 1].apart = true;
		d->last = i + 1;
	}
}

/* ---- all of it -------------------------------------------------------------------------- */

static lade_status read_messages(reader *r, lade_error *err)
{
	uint8_t head[8] = "";
	lade_range range = {.dst = lade_host_span(head, 0)};
	lade_status status;

	TRY(lade_source_read(r->source, &range, 1, NULL, err));
	r->size = range.object_size;
	if (r->size == LADE_SIZE_UNKNOWN)
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "its size is not known"));
	TRY(read_at(r, 0, r->size < 8 ? (size_t)r->size : 8, head, err));
	if (!memcmp(head, "FEA1", 4))
		TRY(lade_fail(err, LADE_E_UNSUPPORTED, 0,
		              "a Feather file of version 1: write it anew, as version 2"));
	status = memcmp(head, "ARROW1", 6) ? read_stream(r, err) : read_file(r, err);
out:
	return status;
}

static lade_status finish(reader *r, lade_error *err)
{
	lade_status status = LADE_OK;

	r->out->batches = lade__blocks_alloc(&r->out->blocks, r->message_count,
	                                     sizeof(lade__column *));
	TRY(r->out->batches ? LADE_OK : no_memory(err));
	/* Deltas are flat: they can be checked before those that they belong to. */
	for (size_t i = 0; i < r->message_count; i++) {
		message *m = &r->messages[i];
		if (!m->apart)
			continue;
		TRY(link_column(r, m->column, err));
		TRY(lade__column_check(m->column, err));
	}
	for (size_t i = 0; i < r->message_count; i++) {
		message *m = &r->messages[i];
		if (!m->apart) {
			TRY(link_column(r, m->column, err));
			TRY(lade__column_check(m->column, err));
		}
		if (m->dictionary)
			TRY(next_dictionary(r, m, err));
		else
			r->out->batches[r->out->batch_count++] = m->column;
	}
out:
	return status;
}

lade_status lade__ipc_read(lade_source source, lade__ipc_memory memory, lade__ipc *out,
                           lade_error *err)
{
	reader r = {.source = source, .memory = memory, .out = out};
	lade_status status;

	memset(out, 0, sizeof *out);
	TRY(read_messages(&r, err));
	find_deltas(&r);
	for (size_t i = 0; i < r.message_count; i++)
		TRY(take_batch(&r, &r.messages[i], err));
	if (r.total[0])
		TRY(memory.make(memory.ctx, (size_t)r.total[0], &r.base[0], err));
	if (r.total[1]) {
		r.base[1] = calloc(1, (size_t)r.total[1]);
		TRY(r.base[1] ? LADE_OK : no_memory(err));
	}
	for (size_t i = 0; i < r.message_count; i++)
		TRY(load(&r, &r.messages[i], err));
	TRY(finish(&r, err));
out:
	free(r.base[1]);
	free(r.messages);
	free(r.pieces);
	free(r.dictionaries);
	return status;
}

void lade__ipc_free(lade__ipc *ipc)
{
	lade__blocks_free(&ipc->blocks);
	memset(ipc, 0, sizeof *ipc);
}
