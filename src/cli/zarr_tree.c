/*
 * zarr_tree.c: 'lade zarr ls' and 'lade zarr tree', the members of a group.
 *
 * Members come from consolidated metadata, where a group has it, or else from listing the store:
 * each name below the group is opened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/zarr.h"

/* Symbolic links of a directory can make circles. */
#define MEMBERS_MAX 1000000

/* A member, described. */
typedef struct member {
	char *path; /* relative to the group that was asked for; "": the node itself */
	bool is_array;
	uint32_t format;
	char *shape, *type, *chunks; /* of arrays, escaped; NULL: a group */
	uint64_t size;               /* decoded; UINT64_MAX: more; 0 with 'any_length' */
	bool any_length;
	uint64_t stored; /* LADE_SIZE_UNKNOWN: not asked for */
} member;

typedef struct members {
	const zarr_settings *s;
	const zarr_node *top;
	unsigned depth; /* levels that are wanted */
	member *list;
	size_t count, cap;
	int rc;
} members;

typedef struct names {
	char **list;
	size_t count, cap;
} names;

static void names_add(names *n, const char *text, size_t size)
{
	if (n->count == n->cap) {
		n->cap = n->cap ? 2 * n->cap : 16;
		n->list = cli_need(realloc(n->list, n->cap * sizeof *n->list));
	}
	n->list[n->count++] = cli_need(strndup(text, size));
}

static void names_free(names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->list[i]);
	free(n->list);
}

/* ---- finding them ------------------------------------------------------------------------- */

static lade_status add_size(void *ctx, const lade_store_entry *entry)
{
	uint64_t *sum = ctx;

	*sum += entry->size == LADE_SIZE_UNKNOWN ? 0 : entry->size;
	return LADE_OK;
}

/* The bytes of all keys below a node, its documents included; of an array in a store that cannot
 * list, of its chunks. */
static uint64_t stored_size(members *m, const lade_zarr *node)
{
	char prefix[LADE_KEY_MAX + 2];
	const char *path = lade_zarr_path(node);
	lade_error err = {.offset = LADE_NO_OFFSET};
	uint64_t sum = 0;
	lade_store_listing listing = {.struct_size = sizeof listing,
	                              .prefix = prefix,
	                              .sizes = true,
	                              .visit = add_size,
	                              .ctx = &sum};

	snprintf(prefix, sizeof prefix, "%s%s", path, *path ? "/" : "");
	lade_status status = lade_store_list(m->top->store, &listing, &err);
	if (status == LADE_OK)
		return sum;
	zarr_node asked = {m->top->name, m->top->store, (lade_zarr *)(uintptr_t)node,
	                   lade_zarr_as_array(node)};
	if (status == LADE_E_UNSUPPORTED && asked.array) {
		zarr_chunks chunks;
		status = zarr_chunks_list(&asked, 80, ZARR_ASK_MAX, &chunks, &err);
		sum = chunks.stored;
		zarr_chunks_free(&chunks);
	}
	if (status == LADE_OK || status == LADE_E_UNSUPPORTED)
		return status == LADE_OK ? sum : LADE_SIZE_UNKNOWN;
	m->rc = cli_lade_error(m->top->name, &err);
	return LADE_SIZE_UNKNOWN;
}

static char *text_of(const lade_zarr_array *array, void (*put)(FILE *, const lade_zarr_array *))
{
	cli_text t;

	cli_text_open(&t);
	put(t.file, array);
	return cli_text_take(&t);
}

static void add(members *m, const char *path, const lade_zarr *node)
{
	const lade_zarr_array *array = lade_zarr_as_array(node);
	cli_text t;

	if (m->count == m->cap) {
		m->cap = m->cap ? 2 * m->cap : 16;
		m->list = cli_need(realloc(m->list, m->cap * sizeof *m->list));
	}
	member *new = &m->list[m->count++];
	*new = (member){.path = cli_need(strdup(path)),
	                .is_array = array != NULL,
	                .format = lade_zarr_format(node),
	                .stored = LADE_SIZE_UNKNOWN};
	if (m->s->stored)
		new->stored = stored_size(m, node);
	if (!array)
		return;
	new->size = zarr_decoded_size(array);
	new->any_length = array->type.size == 0;
	new->shape = text_of(array, zarr_put_shape);
	new->chunks = text_of(array, array->chain.shard ? zarr_put_inner : zarr_put_chunks);
	cli_text_open(&t);
	zarr_put_type(t.file, &array->type);
	new->type = cli_text_take(&t);
}

/* A message about a member; others go on. */
static void failed(members *m, const char *path, const lade_error *err)
{
	char name[2 * LADE_KEY_MAX];

	snprintf(name, sizeof name, "%s/%s", m->top->name, path);
	m->rc = cli_lade_error(name, err);
}

static void walk(members *m, lade_zarr *group, const char *path, unsigned level);

/* Opens member 'name' of a group at 'path', and what is below it. */
static void visit_member(members *m, lade_zarr *group, const char *path, const char *name,
                         unsigned level)
{
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_zarr *node = NULL;
	char own[LADE_KEY_MAX + 1];

	if (m->count >= MEMBERS_MAX)
		return;
	if (snprintf(own, sizeof own, "%s%s%s", path, *path ? "/" : "", name) > LADE_KEY_MAX)
		return;
	lade_status status = lade_zarr_member_open(group, name, &node, &err);
	if (status == LADE_OK) {
		add(m, own, node);
		if (!lade_zarr_as_array(node))
			walk(m, node, own, level + 1);
	} else if (status != LADE_E_NOT_FOUND) { /* a directory that is no node is no failure */
		failed(m, own, &err);
	}
	lade_zarr_unref(node);
}

static unsigned levels(const char *path)
{
	unsigned count = 1;

	for (; *path; path++)
		count += *path == '/';
	return count;
}

/* Consolidated metadata has the members of all levels. */
static void walk_consolidated(members *m, lade_zarr *group, const char *path, unsigned level)
{
	lade_error err = {.offset = LADE_NO_OFFSET};
	const char *name;
	char own[LADE_KEY_MAX + 1];

	for (size_t i = 0; (name = lade_zarr_member(group, i)); i++) {
		lade_zarr *node = NULL;
		if (levels(name) + level > m->depth)
			continue;
		snprintf(own, sizeof own, "%s%s%s", path, *path ? "/" : "", name);
		if (lade_zarr_member_open(group, name, &node, &err) == LADE_OK)
			add(m, own, node);
		else
			failed(m, own, &err);
		lade_zarr_unref(node);
	}
}

static lade_status visit_name(void *ctx, const lade_store_entry *entry)
{
	names *n = ctx;
	size_t size = strlen(entry->key), start;

	if (size == 0 || entry->key[size - 1] != '/')
		return LADE_OK;
	for (start = size - 1; start > 0 && entry->key[start - 1] != '/';)
		start--;
	names_add(n, entry->key + start, size - 1 - start);
	return LADE_OK;
}

/* A group at 'level' below the top; level 0: the top. */
static void walk(members *m, lade_zarr *group, const char *path, unsigned level)
{
	lade_error err = {.offset = LADE_NO_OFFSET};
	char prefix[LADE_KEY_MAX + 2];
	const char *at = lade_zarr_path(group);
	names below = {0};
	lade_store_listing listing = {.struct_size = sizeof listing,
	                              .prefix = prefix,
	                              .level = true,
	                              .visit = visit_name,
	                              .ctx = &below};

	if (level >= m->depth)
		return;
	if (lade_zarr_member(group, 0)) {
		walk_consolidated(m, group, path, level);
		return;
	}
	snprintf(prefix, sizeof prefix, "%s%s", at, *at ? "/" : "");
	lade_status status = lade_store_list(m->top->store, &listing, &err);
	if (status == LADE_E_UNSUPPORTED) {
		cli_error("%s%s%s: the group has no consolidated metadata, and its store cannot "
		          "list members; name a member (%s/NAME), or write consolidated metadata "
		          "(in Python: zarr.consolidate_metadata)", m->top->name,
		          *path ? "/" : "", path, m->top->name);
		m->rc = CLI_FAILED;
	} else if (status != LADE_OK) {
		failed(m, path, &err);
	}
	for (size_t i = 0; i < below.count; i++)
		visit_member(m, group, path, below.list[i], level);
	names_free(&below);
}

/* Names in byte order, and each group in front of its members. */
static int compare(const void *a, const void *b)
{
	const unsigned char *x = (const void *)((const member *)a)->path;
	const unsigned char *y = (const void *)((const member *)b)->path;

	for (; *x && *x == *y; x++, y++)
		;
	/* '/' is before all bytes of names. */
	int one = *x == '/' ? 1 : *x, other = *y == '/' ? 1 : *y;
	return one - other;
}

static void collect(members *m)
{
	if (m->top->array)
		add(m, "", m->top->zarr);
	else
		walk(m, m->top->zarr, "", 0);
	if (m->count > 0)
		qsort(m->list, m->count, sizeof *m->list, compare);
	if (m->count >= MEMBERS_MAX) {
		cli_error("%s: more than %d members; the rest is left out", m->top->name,
		          MEMBERS_MAX);
		m->rc = CLI_FAILED;
	}
}

static void members_free(members *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->list[i].path);
		free(m->list[i].shape);
		free(m->list[i].chunks);
		free(m->list[i].type);
	}
	free(m->list);
}

/* ---- printing ------------------------------------------------------------------------------ */

static const char *size_text(const member *one, char *text)
{
	if (!one->is_array || one->any_length)
		return "-";
	return one->size == UINT64_MAX ? "> 16 EiB" : cli_format_size(one->size, text);
}

static void print_json(const members *m, json *j)
{
	for (size_t i = 0; i < m->count; i++) {
		const member *one = &m->list[i];
		json_open(j, NULL, '{');
		json_text(j, "path", one->path);
		json_text(j, "kind", one->is_array ? "array" : "group");
		json_uint(j, "format", one->format);
		if (one->is_array) {
			json_text(j, "shape", one->shape);
			json_text(j, "type", one->type);
			json_text(j, "chunks", one->chunks);
			if (!one->any_length && one->size != UINT64_MAX)
				json_uint(j, "decoded_size", one->size);
		}
		if (one->stored != LADE_SIZE_UNKNOWN)
			json_uint(j, "stored_size", one->stored);
		json_close(j, '}');
	}
}

static void print_table(const members *m)
{
	enum { NAME, KIND, SHAPE, CHUNKS, TYPE, SIZE, STORED };
	static const char *const titles[] = {"name", "kind", "shape", "chunks", "type", "size",
	                                     "stored"};
	char text[16];
	table t;

	table_init(&t, m->s->stored ? "lllllrr" : "lllllr", titles);
	for (size_t i = 0; i < m->count; i++) {
		const member *one = &m->list[i];
		table_row(&t);
		table_set(&t, NAME, "%s", *one->path ? one->path : m->top->name);
		table_set(&t, KIND, "%s", one->is_array ? "array" : "group");
		table_set(&t, SHAPE, "%s", one->is_array ? one->shape : "-");
		table_set(&t, CHUNKS, "%s", one->is_array ? one->chunks : "-");
		table_set(&t, TYPE, "%s", one->is_array ? one->type : "-");
		table_set(&t, SIZE, "%s", size_text(one, text));
		if (m->s->stored && one->stored != LADE_SIZE_UNKNOWN)
			table_set(&t, STORED, "%s", cli_format_size(one->stored, text));
	}
	if (t.rows)
		table_print(&t, stdout);
	table_free(&t);
}

/* The lines in front of a name: 'more' has a bit for each level that goes on further down. */
static void print_lines(uint64_t more, unsigned level)
{
	bool lines = table_has_blocks();

	table_style(stdout, "2");
	for (unsigned i = 1; i < level; i++)
		fputs(more >> (i - 1) & 1 ? (lines ? "│   " : "|   ") : "    ", stdout);
	if (more >> (level - 1) & 1)
		fputs(lines ? "├── " : "|-- ", stdout);
	else
		fputs(lines ? "└── " : "`-- ", stdout);
	table_style(stdout, "0");
}

static void print_node(const member *one)
{
	const char *slash = strrchr(one->path, '/');
	char shown[4 * LADE_KEY_MAX + 1], text[16];

	table_style(stdout, one->is_array ? "0" : "1");
	fputs(cli_escape(slash ? slash + 1 : one->path, shown, sizeof shown), stdout);
	table_style(stdout, "0");
	if (one->is_array)
		printf(" %s %s", one->shape, one->type);
	if (one->is_array && !one->any_length)
		printf(", %s", size_text(one, text));
	if (one->stored != LADE_SIZE_UNKNOWN)
		printf(", %s stored", cli_format_size(one->stored, text));
	putchar('\n');
}

/* From the last member to the first: whether a level goes on is known then. */
static void print_drawn(const members *m)
{
	uint64_t *more = cli_need(calloc(m->count + 1, sizeof *more));
	uint64_t open = 0;
	size_t size = 4 * strlen(m->top->name) + 1;
	char *shown = cli_need(malloc(size));

	for (size_t i = m->count; i-- > 0;) {
		unsigned level = levels(m->list[i].path);
		more[i] = open;
		/* Levels below it are closed, and its own goes on for those in front. */
		open = (open & ((UINT64_C(2) << (level - 1)) - 1)) | UINT64_C(1) << (level - 1);
	}
	table_style(stdout, "1");
	printf("%s", cli_escape(m->top->name, shown, size));
	table_style(stdout, "0");
	putchar('\n');
	for (size_t i = 0; i < m->count; i++) {
		print_lines(more[i], levels(m->list[i].path));
		print_node(&m->list[i]);
	}
	free(shown);
	free(more);
}

static int show(const zarr_settings *s, const zarr_node *node, json *j, unsigned depth, bool drawn)
{
	members m = {.s = s, .top = node, .depth = depth, .rc = CLI_OK};

	collect(&m);
	if (j)
		print_json(&m, j);
	else if (drawn && !node->array)
		print_drawn(&m);
	else
		print_table(&m);
	members_free(&m);
	return m.rc;
}

int zarr_list(const zarr_settings *s, zarr_node *node, json *j)
{
	return show(s, node, j, s->depth ? s->depth : 1, false);
}

int zarr_tree(const zarr_settings *s, zarr_node *node, json *j)
{
	return show(s, node, j, s->depth ? s->depth : ZARR_DEPTH_MAX, true);
}

int zarr_each_array(const zarr_settings *s, zarr_node *node,
                    int (*fn)(void *ctx, const zarr_node *array), void *ctx)
{
	members m = {.s = s, .top = node, .depth = ZARR_DEPTH_MAX, .rc = CLI_OK};

	if (node->array)
		return fn(ctx, node);
	collect(&m);
	for (size_t i = 0; i < m.count; i++) {
		lade_error err = {.offset = LADE_NO_OFFSET};
		char name[2 * LADE_KEY_MAX];
		zarr_node array = {.name = name, .store = node->store};
		if (!m.list[i].is_array)
			continue;
		snprintf(name, sizeof name, "%s/%s", node->name, m.list[i].path);
		if (lade_zarr_member_open(node->zarr, m.list[i].path, &array.zarr, &err)) {
			m.rc = cli_lade_error(name, &err);
			continue;
		}
		array.array = lade_zarr_as_array(array.zarr);
		if (array.array && fn(ctx, &array) != CLI_OK)
			m.rc = CLI_FAILED;
		lade_zarr_unref(array.zarr);
	}
	members_free(&m);
	return m.rc;
}
