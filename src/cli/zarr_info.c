/*
 * zarr_info.c: 'lade zarr info', all that the metadata and a listing say of a node.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/zarr.h"

/* ---- text --------------------------------------------------------------------------------- */

static void print_attributes(const zarr_node *node, size_t width)
{
	const char *from = lade_zarr_attributes(node->zarr);
	cli_text t;
	bool quoted = false, blank = false;

	if (strcmp(from, "{}") == 0)
		return;
	/* On one line: runs of blanks between values become one. */
	cli_text_open(&t);
	for (; *from; from++) {
		bool space = !quoted && strchr(" \t\r\n", *from);
		if (!space || !blank)
			fputc(space ? ' ' : *from, t.file);
		blank = space;
		if (quoted && *from == '\\' && from[1])
			fputc(*++from, t.file);
		else if (*from == '"')
			quoted = !quoted;
	}
	table_cut("attributes", cli_text_take(&t), width, 3);
}

static void print_grid(const lade_zarr_array *array)
{
	printf(", a grid of ");
	for (size_t i = 0; i < array->ndim; i++)
		printf("%s%" PRIu64, i ? " x " : "", array->axes[i].chunk_count);
	putchar('\n');
}

static void print_shape(const lade_zarr_array *array, size_t width)
{
	cli_text t;
	bool named = false;

	cli_text_open(&t);
	zarr_put_shape(t.file, array);
	for (size_t i = 0; i < array->ndim; i++)
		named = named || array->axes[i].name;
	for (size_t i = 0; named && i < array->ndim; i++)
		fprintf(t.file, "%s%s", i ? ", " : ", axes ",
		        array->axes[i].name ? array->axes[i].name : "?");
	table_cut("shape", cli_text_take(&t), width, 3);
}

static void print_array(const lade_zarr_array *array, size_t width)
{
	cli_text t;

	print_shape(array, width);
	cli_text_open(&t);
	zarr_put_type(t.file, &array->type);
	table_cut("type", cli_text_take(&t), width, 4);
	if (array->chain.shard) {
		table_label("chunks");
		zarr_put_inner(stdout, array);
		puts(" in shards");
	}
	table_label(array->chain.shard ? "shards" : "chunks");
	zarr_put_chunks(stdout, array);
	if (array->ndim)
		print_grid(array);
	else
		putchar('\n');
	cli_text_open(&t);
	zarr_put_value(t.file, &array->type, array->fill, array->fill_size);
	if (!array->fill_given)
		fputs(" (the document has null)", t.file);
	table_cut("fill", cli_text_take(&t), width, 2);
	cli_text_open(&t);
	zarr_put_chain(t.file, &array->chain, array->ndim);
	table_cut("codecs", cli_text_take(&t), width, 12);
}

/* How many chunks a store that cannot list is asked for. */
static uint64_t ask_of(const zarr_settings *s)
{
	return s->stored ? ZARR_ASK_MAX : ZARR_ASK_SOME;
}

/* What is stored, as far as the store knows it. */
static int print_chunks(const zarr_settings *s, const zarr_node *node, size_t width)
{
	const lade_zarr_array *array = node->array;
	const char *what = array->chain.shard ? "shard" : "chunk";
	uint64_t count = zarr_chunk_count(array), decoded = zarr_decoded_size(array);
	lade_error err = {.offset = LADE_NO_OFFSET};
	char text[64];
	zarr_chunks c;
	int rc = CLI_OK;

	table_label("decoded");
	puts(array->type.size ? cli_size_text(decoded, text) : "elements of any length");
	lade_status status = zarr_chunks_list(node, width, ask_of(s), &c, &err);
	if (status == LADE_E_UNSUPPORTED) {
		table_label("stored");
		puts("not known: the store cannot list its keys");
		if (count <= ZARR_ASK_MAX)
			printf("  %-12s--stored asks for each of %" PRIu64 " %ss\n", "", count,
			       what);
	} else if (status != LADE_OK) {
		rc = cli_lade_error(node->name, &err);
	} else {
		table_label("stored");
		printf("%s in %" PRIu64 " %s%s", cli_size_text(c.stored, text), c.present, what,
		       c.present == 1 ? "" : "s");
		if (c.stored && c.decoded)
			printf(", ratio %.3f", (double)c.decoded / (double)c.stored);
		putchar('\n');
		if (c.present < count) {
			table_label("missing");
			if (count == UINT64_MAX)
				printf("all others of more than 2^64 %ss", what);
			else
				printf("%" PRIu64 " of %" PRIu64 " %s%s", count - c.present, count,
				       what, count == 1 ? "" : "s");
			puts(": filled with the fill value");
		}
		if (c.other) {
			table_label("other keys");
			printf("%" PRIu64 ", %s: no chunks of the array\n", c.other,
			       cli_size_text(c.other_size, text));
		}
		zarr_map_print(node, &c, width);
	}
	zarr_chunks_free(&c);
	return rc;
}

static void print_group(const zarr_node *node)
{
	size_t count = 0;

	while (lade_zarr_member(node->zarr, count))
		count++;
	table_label("members");
	if (count)
		printf("%zu at all levels, in consolidated metadata\n", count);
	else
		puts("see 'lade zarr ls'");
}

static int print_text(const zarr_settings *s, const zarr_node *node)
{
	size_t width = table_width(), size = strlen(node->name);
	char *shown = cli_need(malloc(4 * size + 1));

	table_style(stdout, "1");
	printf("%s", cli_escape(node->name, shown, 4 * size + 1));
	table_style(stdout, "0");
	free(shown);
	printf(": %s, Zarr format %u\n", node->array ? "array" : "group",
	       lade_zarr_format(node->zarr));
	if (node->array)
		print_array(node->array, width);
	else
		print_group(node);
	print_attributes(node, width);
	return node->array ? print_chunks(s, node, width) : CLI_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_signs(json *j, const zarr_chunks *c)
{
	json_open(j, "map", '{');
	json_uint(j, "row_chunks", c->row_chunks);
	json_uint(j, "column_chunks", c->column_chunks);
	json_open(j, "rows", '[');
	for (size_t row = 0; row < c->rows; row++) {
		json_open(j, NULL, '[');
		for (size_t column = 0; column < c->columns; column++) {
			const cli_sign *sign = &c->signs[row * c->columns + column];
			json_open(j, NULL, '{');
			json_uint(j, "present", sign->present);
			json_uint(j, "stored_size", sign->stored);
			json_uint(j, "decoded_size", sign->decoded);
			json_close(j, '}');
		}
		json_close(j, ']');
	}
	json_close(j, ']');
	json_close(j, '}');
}

/* Numbers above 2^64 - 1 are left out. */
static void json_count(json *j, const char *key, uint64_t value)
{
	if (value != UINT64_MAX)
		json_uint(j, key, value);
}

static int json_chunks(const zarr_settings *s, const zarr_node *node, json *j)
{
	uint64_t count = zarr_chunk_count(node->array);
	lade_error err = {.offset = LADE_NO_OFFSET};
	zarr_chunks c;
	int rc = CLI_OK;

	json_count(j, "chunk_count", count);
	if (node->array->type.size)
		json_count(j, "decoded_size", zarr_decoded_size(node->array));
	lade_status status = zarr_chunks_list(node, 80, ask_of(s), &c, &err);
	json_bool(j, "listed", status == LADE_OK && !c.asked);
	if (status == LADE_OK) {
		json_uint(j, "present", c.present);
		if (count != UINT64_MAX)
			json_uint(j, "missing", count - c.present);
		json_uint(j, "stored_size", c.stored);
		json_uint(j, "present_decoded_size", c.decoded);
		if (!c.asked) {
			json_uint(j, "other_keys", c.other);
			json_uint(j, "other_size", c.other_size);
		}
		json_signs(j, &c);
	} else if (status != LADE_E_UNSUPPORTED) {
		rc = cli_lade_error(node->name, &err);
	}
	zarr_chunks_free(&c);
	return rc;
}

static int print_json(const zarr_settings *s, const zarr_node *node, json *j)
{
	int rc = CLI_OK;
	size_t count = 0;

	json_open(j, NULL, '{');
	json_text(j, "name", node->name);
	json_text(j, "path", lade_zarr_path(node->zarr));
	json_text(j, "kind", node->array ? "array" : "group");
	json_uint(j, "format", lade_zarr_format(node->zarr));
	if (node->array) {
		zarr_json_array(j, node->array);
		rc = json_chunks(s, node, j);
	} else {
		while (lade_zarr_member(node->zarr, count))
			count++;
		json_bool(j, "consolidated", count > 0);
	}
	json_raw(j, "attributes", lade_zarr_attributes(node->zarr));
	json_close(j, '}');
	return rc;
}

int zarr_info(const zarr_settings *s, zarr_node *node, json *j)
{
	return j ? print_json(s, node, j) : print_text(s, node);
}
