/*
 * rntuple_info.c: 'lade rntuple info', 'ls' and 'schema', all that the metadata say.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/map.h"
#include "cli/rntuple.h"
#include "cli/table.h"

#define LABEL_MAX 24
#define LARGEST 12 /* columns that info lists */

typedef struct rntuple_sums {
	uint64_t columns, pages, stored, decoded;
} rntuple_sums;

static double ratio(uint64_t decoded, uint64_t stored)
{
	return stored ? (double)decoded / (double)stored : 0;
}

/* "zstd 5", "stored". */
static const char *codec_text(uint64_t setting, char text[32])
{
	static const char *const names[] = {"", "zlib", "lzma", "old", "lz4", "zstd"};
	uint64_t algorithm = setting / 100;

	if (setting == 0)
		return "stored";
	if (algorithm < 1 || algorithm > 5)
		snprintf(text, 32, "setting %" PRIu64, setting);
	else
		snprintf(text, 32, "%s %" PRIu64, names[algorithm], setting % 100);
	return text;
}

/* ---- sums ----------------------------------------------------------------------------------- */

static void add_column(const lade_rntuple *tuple, uint64_t column, rntuple_sums *sums)
{
	const lade_rntuple_column *c = lade_rntuple_column_at(tuple, column);

	sums->columns++;
	sums->pages += c->page_count;
	sums->stored += c->stored_size;
	sums->decoded += c->decoded_size;
}

/* The top field that each field is below, or is; to be freed. */
static uint64_t *tops_of(const rntuple_node *node)
{
	uint64_t *tops = cli_need(calloc(node->info->field_count + 1, sizeof *tops));

	for (uint64_t i = 0; i < node->info->field_count; i++) {
		uint64_t parent = lade_rntuple_field_at(node->tuple, i)->parent;
		tops[i] = parent == i ? i : tops[parent];
	}
	return tops;
}

/* Sums of each top field, at its number; to be freed. */
static rntuple_sums *sums_of(const rntuple_node *node)
{
	rntuple_sums *sums = cli_need(calloc(node->info->field_count + 1, sizeof *sums));
	uint64_t *tops = tops_of(node);

	for (uint64_t i = 0; i < node->info->column_count; i++)
		add_column(node->tuple, i,
		           &sums[tops[lade_rntuple_column_at(node->tuple, i)->field]]);
	free(tops);
	return sums;
}

/* ---- encodings ------------------------------------------------------------------------------ */

/* Pages of one stored type and one setting of compression. */
typedef struct encoding {
	const char *stored;
	uint32_t bits;
	uint64_t setting;
	rntuple_sums sums;
	uint64_t plain;  /* pages that are not compressed */
	uint64_t column; /* that was counted last */
} encoding;

typedef struct encodings {
	encoding *list;
	size_t count;
} encodings;

static encoding *find_encoding(encodings *e, const lade_rntuple_page *page)
{
	for (size_t i = 0; i < e->count; i++)
		if (strcmp(e->list[i].stored, page->stored) == 0 && e->list[i].bits == page->bits &&
		    e->list[i].setting == page->setting)
			return &e->list[i];
	e->list = cli_need(realloc(e->list, (e->count + 1) * sizeof *e->list));
	e->list[e->count] = (encoding){page->stored, page->bits, page->setting, {0}, 0, UINT64_MAX};
	return &e->list[e->count++];
}

static int by_stored(const void *va, const void *vb)
{
	const encoding *a = va, *b = vb;

	return a->sums.stored < b->sums.stored ? 1 : a->sums.stored > b->sums.stored ? -1 : 0;
}

/* Columns of projected fields are those of others. */
static bool is_own(const rntuple_node *node, uint64_t column)
{
	const lade_rntuple_column *c = lade_rntuple_column_at(node->tuple, column);

	return !lade_rntuple_field_at(node->tuple, c->field)->projected;
}

/* Calls 'fn' with all pages that are stored. */
static void each_page(const rntuple_node *node,
                      void (*fn)(void *ctx, uint64_t column, uint64_t cluster,
                                 const lade_rntuple_page *page),
                      void *ctx)
{
	for (uint64_t i = 0; i < node->info->column_count; i++)
		for (uint64_t k = 0; is_own(node, i) && k < node->info->cluster_count; k++) {
			uint64_t count = lade_rntuple_page_count(node->tuple, i, k);
			lade_rntuple_page page = {.struct_size = sizeof page};
			for (uint64_t n = 0; n < count; n++)
				if (!lade_rntuple_page_at(node->tuple, i, k, n, &page, NULL))
					fn(ctx, i, k, &page);
		}
}

static void add_encoding(void *ctx, uint64_t column, uint64_t cluster,
                         const lade_rntuple_page *page)
{
	encoding *e = find_encoding(ctx, page);

	(void)cluster;
	e->sums.columns += e->column != column;
	e->column = column;
	e->sums.pages++;
	e->sums.stored += page->stored_size;
	e->sums.decoded += page->decoded_size;
	e->plain += page->stored_size == page->decoded_size;
}

static encodings find_encodings(const rntuple_node *node)
{
	encodings e = {0};

	each_page(node, add_encoding, &e);
	if (e.count)
		qsort(e.list, e.count, sizeof *e.list, by_stored);
	return e;
}

static void set_sizes(table *t, size_t at, const rntuple_sums *sums)
{
	char text[16];

	table_set(t, at, "%" PRIu64, sums->pages);
	table_set(t, at + 1, "%s", cli_format_size(sums->decoded, text));
	table_set(t, at + 2, "%s", cli_format_size(sums->stored, text));
	table_set(t, at + 3, "%.3f", ratio(sums->decoded, sums->stored));
}

/* A bar for the share of the stored bytes. */
static void set_bar(table *t, size_t at, uint64_t stored, uint64_t all)
{
	char *text;
	size_t size;
	FILE *f = cli_need(open_memstream(&text, &size));

	table_bar(f, all ? (double)stored / (double)all : 0, 16);
	if (fclose(f) != 0)
		cli_need(NULL);
	table_set(t, at, "%s", text);
	free(text);
}

static void print_encodings(const rntuple_node *node)
{
	static const char *const titles[] = {"encoding", "codec",     "columns",
	                                     "pages",    "decoded",   "stored",
	                                     "ratio",    "raw pages", "of the bytes"};
	encodings e = find_encodings(node);
	char codec[32];
	table t;

	table_init(&t, "llrrrrrrl", titles);
	for (size_t i = 0; i < e.count; i++) {
		const encoding *k = &e.list[i];
		table_row(&t);
		table_set(&t, 0, "%s(%" PRIu32 ")", k->stored, k->bits);
		table_set(&t, 1, "%s", codec_text(k->setting, codec));
		table_set(&t, 2, "%" PRIu64, k->sums.columns);
		set_sizes(&t, 3, &k->sums);
		table_set(&t, 7, "%" PRIu64, k->plain);
		set_bar(&t, 8, k->sums.stored, node->info->stored_size);
	}
	if (e.count)
		table_print(&t, stdout);
	table_free(&t);
	free(e.list);
}

/* ---- columns -------------------------------------------------------------------------------- */

/* "muons._0.pt", and which of its columns if it has several. */
static void column_name(const rntuple_node *node, uint64_t column, char *text, size_t cap)
{
	const lade_rntuple_column *c = lade_rntuple_column_at(node->tuple, column);
	const lade_rntuple_field *f = lade_rntuple_field_at(node->tuple, c->field);

	if (f->column_count > 1)
		snprintf(text, cap, "%s[%" PRIu32 "]", f->path, c->position);
	else
		snprintf(text, cap, "%s", f->path);
}

typedef struct sized {
	uint64_t column, stored;
} sized;

static int by_size(const void *va, const void *vb)
{
	const sized *a = va, *b = vb;

	if (a->stored != b->stored)
		return a->stored < b->stored ? 1 : -1;
	return a->column < b->column ? -1 : 1;
}

/* The largest columns. */
static void print_columns(const rntuple_node *node)
{
	static const char *const titles[] = {"largest columns", "pages", "decoded",
	                                     "stored",          "ratio", "of the bytes"};
	sized *all = cli_need(calloc(node->info->column_count + 1, sizeof *all));
	char name[256];
	size_t count = 0;
	table t;

	for (uint64_t i = 0; i < node->info->column_count; i++)
		if (is_own(node, i))
			all[count++] =
				(sized){i, lade_rntuple_column_at(node->tuple, i)->stored_size};
	qsort(all, count, sizeof *all, by_size);
	table_init(&t, "lrrrrl", titles);
	for (size_t i = 0; i < count && i < LARGEST; i++) {
		rntuple_sums sums = {0};
		add_column(node->tuple, all[i].column, &sums);
		column_name(node, all[i].column, name, sizeof name);
		table_row(&t);
		table_set(&t, 0, "%s", name);
		set_sizes(&t, 1, &sums);
		set_bar(&t, 5, sums.stored, node->info->stored_size);
	}
	if (count) {
		putchar('\n');
		table_print(&t, stdout);
	}
	table_free(&t);
	free(all);
}

/* ---- the map -------------------------------------------------------------------------------- */

typedef struct grid {
	cli_sign *signs;
	size_t rows, columns;
	uint64_t of_row, of_column;
	const uint64_t *order; /* the place of a column among those that are stored */
} grid;

static void add_sign(void *ctx, uint64_t column, uint64_t cluster, const lade_rntuple_page *page)
{
	const grid *g = ctx;
	cli_sign *sign =
		&g->signs[g->order[column] / g->of_row * g->columns + cluster / g->of_column];

	sign->present++;
	sign->stored += page->stored_size;
	sign->decoded += page->decoded_size;
}

static void print_map(const rntuple_node *node, size_t width)
{
	uint64_t *order = cli_need(calloc(node->info->column_count + 1, sizeof *order)), own = 0;
	char texts[CLI_MAP_ROWS][LABEL_MAX + 1], name[256], shown[4 * 256];
	const char *labels[CLI_MAP_ROWS];
	grid g = {.order = order};

	for (uint64_t i = 0; i < node->info->column_count; i++)
		order[i] = is_own(node, i) ? own++ : 0;
	g.rows = cli_map_divide(own, CLI_MAP_ROWS, &g.of_row);
	g.columns = cli_map_divide(node->info->cluster_count,
	                           width > CLI_MAP_MARGIN + LABEL_MAX + 1 + 8
	                                   ? width - CLI_MAP_MARGIN - LABEL_MAX - 1
	                                   : 8,
	                           &g.of_column);
	g.signs = cli_need(calloc(g.rows * g.columns, sizeof *g.signs));
	cli_map map = {.rows = g.rows,
	               .columns = g.columns,
	               .signs = g.signs,
	               .what = "page",
	               .labels = labels};
	each_page(node, add_sign, &g);
	for (size_t i = 0; i < g.rows * g.columns; i++)
		map.missing |= g.signs[i].present == 0;
	for (uint64_t i = node->info->column_count; i-- > 0;) {
		size_t row = (size_t)(order[i] / g.of_row), size;
		if (!is_own(node, i))
			continue;
		column_name(node, i, name, sizeof name);
		cli_escape(name, shown, sizeof shown);
		/* The last bytes say most, from a whole character on. */
		size = strlen(shown);
		const char *from = shown + (size > LABEL_MAX ? size - LABEL_MAX : 0);
		while (((unsigned char)*from & 0xC0) == 0x80)
			from++;
		snprintf(texts[row], sizeof texts[row], "%s", from);
		labels[row] = texts[row];
	}
	for (size_t i = 0; i < g.rows && own; i++)
		map.label_width = (int)strlen(labels[i]) > map.label_width ? (int)strlen(labels[i])
		                                                           : map.label_width;
	if (own && node->info->page_count) {
		putchar('\n');
		table_label("map");
		puts("the ratio of pages: columns down, clusters across");
		if (g.of_row > 1 || g.of_column > 1)
			printf("%*sa sign is %" PRIu64 " x %" PRIu64 " of them\n", CLI_MAP_MARGIN,
			       "", g.of_row, g.of_column);
		cli_map_draw(&map, width);
	}
	free(g.signs);
	free(order);
}

/* ---- info ----------------------------------------------------------------------------------- */

static void print_head(const rntuple_node *node)
{
	const lade_rntuple_info *info = node->info;
	cli_text t;
	char *shown;

	cli_text_open(&t);
	fputs(node->name, t.file);
	shown = cli_text_take(&t);
	table_style(stdout, "1");
	fputs(shown, stdout);
	table_style(stdout, "0");
	free(shown);
	cli_text_open(&t);
	fputs(info->name, t.file);
	shown = cli_text_take(&t);
	printf(": RNTuple \"%s\", format %u.%u.%u.%u\n", shown, info->epoch, info->major,
	       info->minor, info->patch);
	free(shown);
}

static void print_text(const char *name, const char *text, size_t width)
{
	cli_text t;

	if (!*text)
		return;
	cli_text_open(&t);
	fputs(text, t.file);
	table_cut(name, cli_text_take(&t), width, 3);
}

static void print_info(const rntuple_node *node)
{
	const lade_rntuple_info *info = node->info;
	size_t width = table_width();
	uint64_t tops = 0, hidden = 0, projected = 0;
	char text[64];

	for (uint64_t i = 0; i < info->field_count; i++) {
		const lade_rntuple_field *f = lade_rntuple_field_at(node->tuple, i);
		tops += f->parent == i;
		hidden += f->parent == i && f->hidden;
		projected += f->parent == i && f->projected;
	}
	print_head(node);
	print_text("description", info->description, width);
	print_text("writer", info->writer, width);
	table_label("entries");
	printf("%" PRIu64 " in %" PRIu64 " cluster%s\n", info->entry_count, info->cluster_count,
	       info->cluster_count == 1 ? "" : "s");
	table_label("fields");
	printf("%" PRIu64 ", %" PRIu64 " at the top", info->field_count, tops);
	if (projected)
		printf(", %" PRIu64 " of them projected", projected);
	if (hidden)
		printf(", %" PRIu64 " cannot be read", hidden);
	putchar('\n');
	table_label("columns");
	printf("%" PRIu64 " with %" PRIu64 " page%s\n", info->column_count, info->page_count,
	       info->page_count == 1 ? "" : "s");
	table_label("decoded");
	puts(cli_size_text(info->decoded_size, text));
	table_label("stored");
	printf("%s", cli_size_text(info->stored_size, text));
	if (info->stored_size)
		printf(", ratio %.3f", ratio(info->decoded_size, info->stored_size));
	puts("\n");
	print_encodings(node);
	print_columns(node);
	print_map(node, width);
}

static void json_sums(json *j, const rntuple_sums *sums)
{
	json_uint(j, "page_count", sums->pages);
	json_uint(j, "stored_size", sums->stored);
	json_uint(j, "decoded_size", sums->decoded);
}

static void json_column(json *j, const rntuple_node *node, uint64_t column)
{
	static const char *const kinds[] = {"values", "offsets", "switch"};
	const lade_rntuple_column *c = lade_rntuple_column_at(node->tuple, column);
	rntuple_sums sums = {0};

	add_column(node->tuple, column, &sums);
	json_open(j, NULL, '{');
	json_text(j, "path", lade_rntuple_field_at(node->tuple, c->field)->path);
	json_uint(j, "position", c->position);
	json_text(j, "kind", kinds[c->kind]);
	json_text(j, "encoding", c->stored);
	json_uint(j, "bits", c->bits);
	if (c->dtype != LADE_DTYPE_NONE)
		json_text(j, "dtype", lade_dtype_text(c->dtype));
	json_uint(j, "element_count", c->element_count);
	json_uint(j, "first_stored", c->first_stored);
	json_bool(j, "projected", !is_own(node, column));
	json_sums(j, &sums);
	json_close(j, '}');
}

static void json_head(json *j, const rntuple_node *node)
{
	const lade_rntuple_info *info = node->info;
	char version[32];

	json_open(j, NULL, '{');
	json_text(j, "file", node->name);
	json_text(j, "name", info->name);
	json_text(j, "description", info->description);
	json_text(j, "writer", info->writer);
	snprintf(version, sizeof version, "%u.%u.%u.%u", info->epoch, info->major, info->minor,
	         info->patch);
	json_text(j, "format", version);
	json_uint(j, "entry_count", info->entry_count);
	json_uint(j, "field_count", info->field_count);
	json_uint(j, "column_count", info->column_count);
	json_uint(j, "cluster_count", info->cluster_count);
	json_uint(j, "page_count", info->page_count);
	json_uint(j, "stored_size", info->stored_size);
	json_uint(j, "decoded_size", info->decoded_size);
}

static void json_info(json *j, const rntuple_node *node)
{
	encodings e = find_encodings(node);

	json_head(j, node);
	json_open(j, "encodings", '[');
	for (size_t i = 0; i < e.count; i++) {
		json_open(j, NULL, '{');
		json_text(j, "encoding", e.list[i].stored);
		json_uint(j, "bits", e.list[i].bits);
		json_uint(j, "setting", e.list[i].setting);
		json_uint(j, "column_count", e.list[i].sums.columns);
		json_sums(j, &e.list[i].sums);
		json_uint(j, "raw_page_count", e.list[i].plain);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_open(j, "columns", '[');
	for (uint64_t i = 0; i < node->info->column_count; i++)
		json_column(j, node, i);
	json_close(j, ']');
	json_close(j, '}');
	free(e.list);
}

int rntuple_info(const rntuple_settings *s, const rntuple_node *node, json *j)
{
	(void)s;
	if (j)
		json_info(j, node);
	else
		print_info(node);
	return CLI_OK;
}

/* ---- ls ------------------------------------------------------------------------------------- */

int rntuple_list(const rntuple_settings *s, const rntuple_node *node, json *j)
{
	static const char *const titles[] = {"field",   "type",   "columns", "pages",
	                                     "decoded", "stored", "ratio"};
	rntuple_sums *sums = sums_of(node);
	table t;

	(void)s;
	table_init(&t, "llrrrrr", titles);
	if (j) {
		json_head(j, node);
		json_open(j, "fields", '[');
	} else {
		print_head(node);
	}
	for (uint64_t i = 0; i < node->info->field_count; i++) {
		const lade_rntuple_field *f = lade_rntuple_field_at(node->tuple, i);
		if (f->parent != i)
			continue;
		if (j) {
			json_open(j, NULL, '{');
			json_text(j, "name", f->name);
			json_text(j, "type", f->type);
			json_text(j, "description", f->description);
			json_uint(j, "column_count", sums[i].columns);
			json_sums(j, &sums[i]);
			json_close(j, '}');
			continue;
		}
		table_row(&t);
		table_set(&t, 0, "%s", f->name);
		table_set(&t, 1, "%s%s", f->type,
		          f->hidden      ? " (cannot be read)"
		          : f->projected ? " (projected)"
		                         : "");
		table_set(&t, 2, "%" PRIu64, sums[i].columns);
		set_sizes(&t, 3, &sums[i]);
	}
	if (j) {
		json_close(j, ']');
		json_close(j, '}');
	} else {
		table_print(&t, stdout);
	}
	table_free(&t);
	free(sums);
	return CLI_OK;
}
