/*
 * rntuple_schema.c: 'lade rntuple schema', the tree of fields.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rntuple.h"
#include "cli/table.h"

#define INDENT_MAX 512

static const char *const roles[] = {"plain", "collection", "record", "variant", "streamer"};

static void put_shown(const char *text)
{
	cli_text t;

	cli_text_open(&t);
	fputs(text, t.file);
	char *shown = cli_text_take(&t);
	fputs(shown, stdout);
	free(shown);
}

/* "SplitReal32(32)" of each column, or why it cannot be read. */
static void print_columns(const rntuple_node *node, const lade_rntuple_field *f)
{
	table_style(stdout, "2");
	for (uint64_t i = 0; i < f->column_count; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(node->tuple, f->column + i);
		printf("%s%s(%" PRIu32 ")", i ? ", " : "  ", c->stored, c->bits);
	}
	if (f->projected)
		fputs("  projected", stdout);
	if (f->hidden) {
		fputs("  cannot be read: ", stdout);
		put_shown(f->hidden);
	}
	table_style(stdout, "0");
}

static void print_field(const rntuple_node *node, const rntuple_step *tree, uint64_t field,
                        char *indent, bool last)
{
	const lade_rntuple_field *f = lade_rntuple_field_at(node->tuple, field);
	bool lines = table_has_blocks();
	size_t size = strlen(indent);

	printf("%s%s", indent, last ? (lines ? "└── " : "`-- ") : (lines ? "├── " : "|-- "));
	put_shown(f->name);
	table_style(stdout, "32");
	fputs(*f->type ? ": " : "", stdout);
	put_shown(f->type);
	table_style(stdout, "0");
	if (f->array_size)
		printf(" [%" PRIu64 "]", f->array_size);
	print_columns(node, f);
	putchar('\n');
	if (size + 8 >= INDENT_MAX)
		return;
	strcpy(indent + size, last ? "    " : lines ? "│   " : "|   ");
	for (uint64_t c = tree->children[field]; c != UINT64_MAX; c = tree->siblings[c])
		print_field(node, tree, c, indent, tree->siblings[c] == UINT64_MAX);
	indent[size] = 0;
}

static void json_field(json *j, const rntuple_node *node, const rntuple_step *tree, uint64_t field)
{
	const lade_rntuple_field *f = lade_rntuple_field_at(node->tuple, field);

	json_open(j, NULL, '{');
	json_text(j, "name", f->name);
	json_text(j, "path", f->path);
	json_text(j, "type", f->type);
	if (*f->type_alias)
		json_text(j, "type_alias", f->type_alias);
	if (*f->description)
		json_text(j, "description", f->description);
	json_text(j, "role", roles[f->role]);
	if (f->array_size)
		json_uint(j, "array_size", f->array_size);
	json_bool(j, "projected", f->projected);
	if (f->hidden)
		json_text(j, "hidden", f->hidden);
	json_open(j, "encodings", '[');
	for (uint64_t i = 0; i < f->column_count; i++)
		json_text(j, NULL, lade_rntuple_column_at(node->tuple, f->column + i)->stored);
	json_close(j, ']');
	json_open(j, "fields", '[');
	/* Two levels of brackets for each level of fields, of which there are at most 100. */
	for (uint64_t c = tree->children[field]; c != UINT64_MAX && j->depth < 120;
	     c = tree->siblings[c])
		json_field(j, node, tree, c);
	json_close(j, ']');
	json_close(j, '}');
}

int rntuple_schema(const rntuple_settings *s, const rntuple_node *node, json *j)
{
	rntuple_step tree;
	char indent[INDENT_MAX] = "";
	uint64_t last = 0;

	rntuple_step_open(&tree, s, node);
	if (j) {
		json_open(j, NULL, '{');
		json_text(j, "file", node->name);
		json_text(j, "name", node->info->name);
		json_open(j, "fields", '[');
	} else {
		put_shown(node->info->name);
		putchar('\n');
	}
	for (uint64_t i = 0; i < node->info->field_count; i++)
		if (lade_rntuple_field_at(node->tuple, i)->parent == i)
			last = i;
	for (uint64_t i = 0; i < node->info->field_count; i++) {
		if (lade_rntuple_field_at(node->tuple, i)->parent != i)
			continue;
		if (j)
			json_field(j, node, &tree, i);
		else
			print_field(node, &tree, i, indent, i == last);
	}
	if (j) {
		json_close(j, ']');
		json_close(j, '}');
	}
	rntuple_step_close(&tree);
	return CLI_OK;
}
