/*
 * nodes.c: schemas: from and to the Arrow C data interface, from and to bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/arrow.h"

#include "base/support.h"
#include "base/try.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ----------------------------------------------------------------------------- */

/* Nodes have about 400 bytes: a block has some of them. */
#define BLOCK_MIN 4096

struct lade__blocks_one {
	struct lade__blocks_one *before;
	size_t used, size;
	_Alignas(16) uint8_t bytes[];
};

void *lade__blocks_alloc(lade__blocks *from, size_t count, size_t size)
{
	struct lade__blocks_one *last = from->last;
	size_t want;

	if (__builtin_mul_overflow(count, size, &want) || want > SIZE_MAX / 2)
		return NULL;
	want = (want + 15) & ~(size_t)15;
	if (!last || want > last->size - last->used) {
		size_t cap = want > BLOCK_MIN ? want : BLOCK_MIN;
		last = calloc(1, sizeof *last + cap);
		if (!last)
			return NULL;
		last->size = cap;
		last->before = from->last;
		from->last = last;
	}
	last->used += want;
	return last->bytes + last->used - want;
}

void lade__blocks_free(lade__blocks *from)
{
	while (from->last) {
		struct lade__blocks_one *one = from->last;
		from->last = one->before;
		free(one);
	}
}

/* ---- formats ---------------------------------------------------------------------------- */

/* One letter, without parameters. */
static const struct {
	const char *format;
	lade__layout layout;
	uint8_t width;
	bool utf8, integer, is_signed;
} simple[] = {
	{"n", LADE__AS_NULLS, 0, false, false, false},
	{"b", LADE__AS_BITS, 0, false, false, false},
	{"c", LADE__AS_FIXED, 1, false, true, true},
	{"C", LADE__AS_FIXED, 1, false, true, false},
	{"s", LADE__AS_FIXED, 2, false, true, true},
	{"S", LADE__AS_FIXED, 2, false, true, false},
	{"i", LADE__AS_FIXED, 4, false, true, true},
	{"I", LADE__AS_FIXED, 4, false, true, false},
	{"l", LADE__AS_FIXED, 8, false, true, true},
	{"L", LADE__AS_FIXED, 8, false, true, false},
	{"e", LADE__AS_FIXED, 2, false, false, false},
	{"f", LADE__AS_FIXED, 4, false, false, false},
	{"g", LADE__AS_FIXED, 8, false, false, false},
	{"z", LADE__AS_BYTES, 4, false, false, false},
	{"Z", LADE__AS_BYTES, 8, false, false, false},
	{"u", LADE__AS_BYTES, 4, true, false, false},
	{"U", LADE__AS_BYTES, 8, true, false, false},
	{"vz", LADE__AS_VIEWS, 16, false, false, false},
	{"vu", LADE__AS_VIEWS, 16, true, false, false},
	{"tdD", LADE__AS_FIXED, 4, false, false, false},
	{"tdm", LADE__AS_FIXED, 8, false, false, false},
	{"tts", LADE__AS_FIXED, 4, false, false, false},
	{"ttm", LADE__AS_FIXED, 4, false, false, false},
	{"ttu", LADE__AS_FIXED, 8, false, false, false},
	{"ttn", LADE__AS_FIXED, 8, false, false, false},
	{"tDs", LADE__AS_FIXED, 8, false, false, false},
	{"tDm", LADE__AS_FIXED, 8, false, false, false},
	{"tDu", LADE__AS_FIXED, 8, false, false, false},
	{"tDn", LADE__AS_FIXED, 8, false, false, false},
	{"tiM", LADE__AS_FIXED, 4, false, false, false},
	{"tiD", LADE__AS_FIXED, 8, false, false, false},
	{"tin", LADE__AS_FIXED, 16, false, false, false},
	{"+l", LADE__AS_LIST, 4, false, false, false},
	{"+L", LADE__AS_LIST, 8, false, false, false},
	{"+m", LADE__AS_LIST, 4, false, false, false},
	{"+vl", LADE__AS_LISTVIEW, 4, false, false, false},
	{"+vL", LADE__AS_LISTVIEW, 8, false, false, false},
	{"+s", LADE__AS_STRUCT, 0, false, false, false},
	{"+r", LADE__AS_RUNS, 0, false, false, false},
};

/* A decimal number of at most 9 digits at '*text', which is moved behind it; -1: none is there. */
static int64_t number(const char **text)
{
	int64_t value = 0;
	const char *at = *text;

	while (*at >= '0' && *at <= '9' && at - *text < 9)
		value = value * 10 + (*at++ - '0');
	if (at == *text)
		return -1;
	*text = at;
	return value;
}

/* "d:precision,scale[,bits]" */
static bool parse_decimal(const char *at, lade__type *type)
{
	int64_t bits = 128;
	bool good = number(&at) > 0 && *at++ == ',';

	at += good && *at == '-';
	good = good && number(&at) >= 0;
	if (good && *at == ',') {
		at++;
		bits = number(&at);
	}
	type->layout = LADE__AS_FIXED;
	type->width = (uint64_t)bits / 8;
	return good && !*at && (bits == 32 || bits == 64 || bits == 128 || bits == 256);
}

/* "0,5,7": the type id of each child. */
static bool parse_ids(const char *at, lade__type *type, size_t child_count)
{
	memset(type->child_of, -1, sizeof type->child_of);
	for (size_t i = 0; i < child_count; i++) {
		int64_t id = number(&at);
		if (id < 0 || id > 127 || type->child_of[id] >= 0)
			return false;
		type->child_of[id] = (int8_t)i;
		if (i + 1 < child_count && *at++ != ',')
			return false;
	}
	return !*at;
}

static bool parse(const char *f, size_t child_count, lade__type *type)
{
	for (size_t i = 0; i < sizeof simple / sizeof *simple; i++)
		if (!strcmp(simple[i].format, f)) {
			type->layout = simple[i].layout;
			type->width = simple[i].width;
			type->utf8 = simple[i].utf8;
			type->integer = simple[i].integer;
			type->is_signed = simple[i].is_signed;
			return true;
		}
	if (!strncmp(f, "d:", 2))
		return parse_decimal(f + 2, type);
	if (!strncmp(f, "w:", 2) || !strncmp(f, "+w:", 3)) {
		type->layout = *f == 'w' ? LADE__AS_FIXED : LADE__AS_FIXED_LIST;
		type->plain = true;
		f = strchr(f, ':') + 1;
		int64_t width = number(&f);
		type->width = (uint64_t)width;
		return width >= 0 && !*f;
	}
	if (!strncmp(f, "ts", 2) && f[2] && strchr("smun", f[2]) && f[3] == ':') {
		type->layout = LADE__AS_FIXED;
		type->width = 8;
		return true;
	}
	if ((!strncmp(f, "+ud:", 4) || !strncmp(f, "+us:", 4)) && child_count <= 127) {
		type->layout = f[2] == 'd' ? LADE__AS_DENSE : LADE__AS_SPARSE;
		return parse_ids(f + 4, type, child_count);
	}
	return false;
}

size_t lade__type_buffers(const lade__type *type)
{
	static const uint8_t counts[] = {
		[LADE__AS_NULLS] = 0,    [LADE__AS_BITS] = 2,       [LADE__AS_FIXED] = 2,
		[LADE__AS_BYTES] = 3,    [LADE__AS_VIEWS] = 3,      [LADE__AS_LIST] = 2,
		[LADE__AS_LISTVIEW] = 3, [LADE__AS_FIXED_LIST] = 1, [LADE__AS_STRUCT] = 1,
		[LADE__AS_SPARSE] = 1,   [LADE__AS_DENSE] = 2,      [LADE__AS_RUNS] = 0,
	};
	return counts[type->layout];
}

size_t lade__type_align(const lade__type *t, size_t i, size_t count)
{
	switch (t->layout) {
	case LADE__AS_FIXED:
		return i == 0 || t->plain ? 1 : t->width < 8 ? (size_t)t->width : 8;
	case LADE__AS_BYTES:
	case LADE__AS_LIST:
		return i == 1 ? (size_t)t->width : 1;
	case LADE__AS_LISTVIEW:
		return i ? (size_t)t->width : 1;
	case LADE__AS_VIEWS:
		return i == 1 || (i && i + 1 == count) ? 8 : 1;
	case LADE__AS_DENSE:
		return i ? 4 : 1;
	default:
		return 1;
	}
}

/* What a node's children must be, once they are there. */
static lade_status check_node(const lade__node *n, lade_status bad, lade_error *err)
{
	const lade__type *t = &n->type;
	bool one = t->layout == LADE__AS_LIST || t->layout == LADE__AS_LISTVIEW ||
	           t->layout == LADE__AS_FIXED_LIST;
	bool any = t->layout == LADE__AS_STRUCT || t->layout == LADE__AS_SPARSE ||
	           t->layout == LADE__AS_DENSE;
	size_t want = one ? 1 : t->layout == LADE__AS_RUNS ? 2 : 0;

	if (!any && n->child_count != want)
		return lade_fail(err, bad, LADE_NO_OFFSET,
		                 "'%s' of format '%s' has %zu children, want %zu", n->name,
		                 n->format, n->child_count, want);
	if (n->dictionary && !t->integer)
		return lade_fail(err, bad, LADE_NO_OFFSET,
		                 "'%s' has a dictionary and the format '%s', which is no integer",
		                 n->name, n->format);
	if (!strcmp(n->format, "+m") &&
	    (n->children[0]->type.layout != LADE__AS_STRUCT || n->children[0]->child_count != 2))
		return lade_fail(err, bad, LADE_NO_OFFSET,
		                 "the map '%s' has no struct of two children", n->name);
	if (t->layout == LADE__AS_RUNS) {
		const lade__node *ends = n->children[0];
		if (!ends->type.integer || !ends->type.is_signed || ends->type.width < 2 ||
		    ends->dictionary)
			return lade_fail(
				err, bad, LADE_NO_OFFSET,
				"the run ends of '%s' have the format '%s', want s, i or l",
				n->name, ends->format);
	}
	return LADE_OK;
}

static lade_status no_memory(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a schema");
}

static lade_status unknown(const lade__node *n, lade_error *err)
{
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                 "'%.60s': the format '%.60s' is not known", n->name, n->format);
}

/* ---- from the C interface --------------------------------------------------------------- */

static const char *copy_text(lade__blocks *blocks, const char *text, size_t size)
{
	char *copy = lade__blocks_alloc(blocks, size + 1, 1);

	if (copy && size)
		memcpy(copy, text, size);
	return copy;
}

/* The bytes of metadata: | pairs 4 | pairs times: | size 4 | key | size 4 | value |.
 * SIZE_MAX: they are not possible. */
static size_t metadata_size(const char *m)
{
	const uint8_t *at = (const uint8_t *)m;
	int32_t pairs, size;
	size_t all = 4;

	memcpy(&pairs, at, 4);
	for (int64_t i = 0; i < 2 * (int64_t)pairs; i++) {
		memcpy(&size, at + all, 4);
		if (size < 0 || all > LADE__HEAD_MAX)
			return SIZE_MAX;
		all += 4 + (size_t)size;
	}
	return pairs < 0 ? SIZE_MAX : all;
}

static lade_status from_schema(const struct ArrowSchema *s, lade__blocks *blocks, unsigned depth,
                               lade__node **out, size_t *count, lade_error *err)
{
	lade__node *n = lade__blocks_alloc(blocks, 1, sizeof *n);
	const char *name = s->name ? s->name : "";
	lade_status status = LADE_OK;

	*out = n;
	if (!s->format || !s->release || s->n_children < 0 || (s->n_children && !s->children))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "a schema is released or has no format: '%.60s'", name);
	if (++*count > LADE__NODES_MAX || depth > LADE__DEPTH_MAX ||
	    s->n_children > LADE__NODES_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a schema has more than %d nodes, or more than %d levels",
		                 LADE__NODES_MAX, LADE__DEPTH_MAX);
	if (strlen(s->format) > UINT16_MAX || strlen(name) > LADE__HEAD_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a format of %zu bytes, at most %d", strlen(s->format),
		                 UINT16_MAX);
	if (!n)
		return no_memory(err);
	n->flags = (uint8_t)(s->flags & 7);
	n->child_count = (size_t)s->n_children;
	n->format = copy_text(blocks, s->format, strlen(s->format));
	n->name = copy_text(blocks, name, strlen(name));
	if (s->metadata) {
		n->metadata_size = metadata_size(s->metadata);
		if (n->metadata_size > LADE__HEAD_MAX)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "the metadata of '%.60s' are not valid", name);
		n->metadata = copy_text(blocks, s->metadata, n->metadata_size);
	}
	n->children = lade__blocks_alloc(blocks, n->child_count, sizeof *n->children);
	if (!n->format || !n->name || !n->children || (s->metadata && !n->metadata))
		return no_memory(err);
	if (!parse(n->format, n->child_count, &n->type))
		return unknown(n, err);
	for (size_t i = 0; i < n->child_count; i++)
		TRY(from_schema(s->children[i], blocks, depth + 1, &n->children[i], count, err));
	if (s->dictionary)
		TRY(from_schema(s->dictionary, blocks, depth + 1, &n->dictionary, count, err));
	TRY(check_node(n, LADE_E_ARG, err));
out:
	return status;
}

lade_status lade__nodes_from_schema(const struct ArrowSchema *schema, lade__blocks *blocks,
                                    lade__node **out, size_t *count, lade_error *err)
{
	*count = 0;
	return from_schema(schema, blocks, 0, out, count, err);
}

/* ---- bytes ------------------------------------------------------------------------------ */

void lade__out_bytes(lade__bytes_out *out, const void *bytes, size_t size)
{
	if (size > out->cap - out->size && !out->failed) {
		size_t cap = out->cap ? out->cap : 1024;
		while (cap - out->size < size)
			cap *= 2;
		uint8_t *larger = realloc(out->bytes, cap);
		out->failed = !larger;
		if (larger) {
			out->bytes = larger;
			out->cap = cap;
		}
	}
	if (out->failed || !size)
		return;
	memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
}

void lade__out_put(lade__bytes_out *out, uint64_t value, size_t size)
{
	uint8_t bytes[8];

	lade__le_put(bytes, value, size);
	lade__out_bytes(out, bytes, size);
}

void lade__nodes_write(const lade__node *n, lade__bytes_out *out)
{
	lade__out_put(out, n->flags, 1);
	lade__out_put(out, n->dictionary != NULL, 1);
	lade__out_put(out, strlen(n->format), 2);
	lade__out_put(out, n->child_count, 4);
	lade__out_put(out, strlen(n->name), 4);
	lade__out_put(out, n->metadata_size, 4);
	lade__out_bytes(out, n->format, strlen(n->format));
	lade__out_bytes(out, n->name, strlen(n->name));
	lade__out_bytes(out, n->metadata, n->metadata_size);
	for (size_t i = 0; i < n->child_count; i++)
		lade__nodes_write(n->children[i], out);
	if (n->dictionary)
		lade__nodes_write(n->dictionary, out);
}

/* A text of 'size' bytes, without a NUL. */
static const char *take_text(lade__cursor *c, lade__blocks *blocks, size_t size)
{
	const uint8_t *at = lade__take_bytes(c, size);

	if (!at || memchr(at, 0, size)) {
		c->bad = true;
		return NULL;
	}
	return copy_text(blocks, (const char *)at, size);
}

/* Metadata must be exactly what its own sizes say. */
static bool metadata_fits(const uint8_t *m, size_t size)
{
	lade__cursor c = {m, size, false};
	uint64_t pairs = lade__take(&c, 4);

	for (uint64_t i = 0; i < 2 * pairs && !c.bad; i++)
		lade__take_bytes(&c, (size_t)lade__take(&c, 4));
	return !c.bad && !c.left && pairs <= INT32_MAX;
}

static lade_status read_node(lade__cursor *c, lade__blocks *blocks, unsigned depth, size_t *left,
                             lade__node **out, lade_error *err)
{
	lade__node *n = lade__blocks_alloc(blocks, 1, sizeof *n);
	lade_status status = LADE_OK;

	*out = n;
	if (!n)
		return no_memory(err);
	n->flags = (uint8_t)lade__take(c, 1);
	uint64_t dictionary = lade__take(c, 1);
	size_t format_size = (size_t)lade__take(c, 2);
	n->child_count = (size_t)lade__take(c, 4);
	size_t name_size = (size_t)lade__take(c, 4);
	n->metadata_size = (size_t)lade__take(c, 4);
	if (c->bad || !*left || depth > LADE__DEPTH_MAX || n->child_count >= *left ||
	    dictionary > 1 || n->flags > 7 || name_size > c->left || n->metadata_size > c->left)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a schema's node has %zu children, and %zu nodes are left",
		                 n->child_count, *left);
	--*left;
	n->format = take_text(c, blocks, format_size);
	n->name = take_text(c, blocks, name_size);
	const uint8_t *metadata = lade__take_bytes(c, n->metadata_size);
	if (c->bad || (n->metadata_size && !metadata_fits(metadata, n->metadata_size)))
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a schema's texts of %zu, %zu and %zu bytes are not valid",
		                 format_size, name_size, n->metadata_size);
	if (n->metadata_size)
		n->metadata = copy_text(blocks, (const char *)metadata, n->metadata_size);
	n->children = lade__blocks_alloc(blocks, n->child_count, sizeof *n->children);
	if (!n->format || !n->name || !n->children || (n->metadata_size && !n->metadata))
		return no_memory(err);
	if (!parse(n->format, n->child_count, &n->type))
		return unknown(n, err);
	for (size_t i = 0; i < n->child_count; i++)
		TRY(read_node(c, blocks, depth + 1, left, &n->children[i], err));
	if (dictionary)
		TRY(read_node(c, blocks, depth + 1, left, &n->dictionary, err));
	TRY(check_node(n, LADE_E_CORRUPT, err));
out:
	return status;
}

lade_status lade__nodes_read(const uint8_t *bytes, size_t size, size_t count, lade__blocks *blocks,
                             lade__node **out, lade_error *err)
{
	lade__cursor c = {bytes, size, false};
	size_t left = count;
	lade_status status;

	if (count > LADE__NODES_MAX)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "a schema of %zu nodes, at most %d", count, LADE__NODES_MAX);
	status = read_node(&c, blocks, 0, &left, out, err);
	if (status == LADE_OK && (left || c.left))
		status =
			lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			          "%zu nodes and %zu bytes are left behind a schema", left, c.left);
	return status;
}

/* ---- to the C interface ----------------------------------------------------------------- */

/* Children may have been moved out by then: their own release is NULL. */
static void release_schema(struct ArrowSchema *s)
{
	for (int64_t i = 0; i < s->n_children; i++) {
		if (s->children && s->children[i] && s->children[i]->release)
			s->children[i]->release(s->children[i]);
		if (s->children)
			free(s->children[i]);
	}
	if (s->dictionary && s->dictionary->release)
		s->dictionary->release(s->dictionary);
	free(s->dictionary);
	free(s->children);
	free(s->private_data);
	s->release = NULL;
}

lade_status lade__nodes_export(const lade__node *n, struct ArrowSchema *out, lade_error *err)
{
	size_t format = strlen(n->format) + 1, name = strlen(n->name) + 1;
	char *texts = malloc(format + name + n->metadata_size);
	lade_status status = LADE_OK;

	*out = (struct ArrowSchema){.flags = n->flags,
	                            .n_children = (int64_t)n->child_count,
	                            .release = release_schema,
	                            .private_data = texts};
	if (n->child_count)
		out->children = calloc(n->child_count, sizeof *out->children);
	if (!texts || (n->child_count && !out->children))
		TRY(no_memory(err));
	out->format = memcpy(texts, n->format, format);
	out->name = memcpy(texts + format, n->name, name);
	if (n->metadata_size)
		out->metadata = memcpy(texts + format + name, n->metadata, n->metadata_size);
	for (size_t i = 0; i < n->child_count; i++) {
		out->children[i] = calloc(1, sizeof **out->children);
		TRY(out->children[i] ? lade__nodes_export(n->children[i], out->children[i], err)
		                     : no_memory(err));
	}
	if (n->dictionary) {
		out->dictionary = calloc(1, sizeof *out->dictionary);
		TRY(out->dictionary ? lade__nodes_export(n->dictionary, out->dictionary, err)
		                    : no_memory(err));
	}
out:
	if (status != LADE_OK)
		release_schema(out);
	return status;
}
