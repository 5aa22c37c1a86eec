/*
 * rntuple_verify.c: 'lade rntuple verify', reads every page and names the bad ones.
 *
 * Columns of a cluster are read together, as many as fit into memory.  If that fails each column is
 * read alone, and the pages of those that fail.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/rntuple.h"
#include "cli/table.h"

typedef struct verify {
	const rntuple_settings *s;
	const rntuple_node *node;
	json *j; /* or NULL */
	uint64_t cluster;
	uint64_t *columns; /* that wait to be read */
	size_t count;
	uint64_t size; /* of their elements */
	uint64_t good, bad, stored, decoded;
	int rc;
} verify;

static const lade_rntuple_column *column_of(const verify *v, uint64_t column)
{
	return lade_rntuple_column_at(v->node->tuple, column);
}

static uint64_t pages_of(const verify *v, uint64_t column)
{
	return lade_rntuple_page_count(v->node->tuple, column, v->cluster);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The bytes of a column's elements in the cluster, offsets with one more. */
static uint64_t size_of(const verify *v, uint64_t column)
{
	lade_rntuple_part part = {0, 0};

	lade_rntuple_cluster_elements(v->node->tuple, column, v->cluster, &part, NULL);
	return (part.count + 1) * column_of(v, column)->elem_size;
}

/* Reads 'count' parts of columns together. */
static lade_status read_parts(const verify *v, lade_rntuple_target *targets, size_t count,
                              uint32_t flags, lade_error *err)
{
	lade_rntuple_read_options o = {
		.struct_size = sizeof o, .target_size = sizeof *targets, .flags = flags};
	size_t total = 0, at = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t n = targets[i].count + 1;
		size_t elem = column_of(v, targets[i].column)->elem_size;
		if (n > (PTRDIFF_MAX - total) / elem)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %" PRIu64 " elements", n);
		targets[i].span.size = (size_t)n * elem;
		total += targets[i].span.size;
	}
	uint8_t *data = malloc(total + 1);
	if (!data)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes",
		                 total);
	for (size_t i = 0; i < count; i++) {
		targets[i].span = lade_host_span(data + at, targets[i].span.size);
		at += targets[i].span.size;
	}
	lade_status status = lade_rntuple_read(v->node->tuple, targets, count, &o, NULL, err);
	free(data);
	return status;
}

static lade_rntuple_target whole(const verify *v, uint64_t column)
{
	lade_rntuple_part part = {0, 0};

	lade_rntuple_cluster_elements(v->node->tuple, column, v->cluster, &part, NULL);
	return (lade_rntuple_target){.column = column, .first = part.first, .count = part.count};
}

/* ---- what is bad ---------------------------------------------------------------------------- */

/* 'page' NULL: the column, whose pages are good each by itself. */
static void say_failure(verify *v, uint64_t column, uint64_t index, const lade_rntuple_page *page,
                        const lade_error *err)
{
	const lade_rntuple_column *c = column_of(v, column);
	const lade_rntuple_field *f = lade_rntuple_field_at(v->node->tuple, c->field);
	lade_error said = {.status = err->status, .offset = LADE_NO_OFFSET};
	char which[96];

	v->rc = CLI_FAILED;
	if (!v->j) {
		snprintf(which, sizeof which, page ? ", page %" PRIu64 " at byte %" PRIu64 : "",
		         index, page ? page->off : 0);
		lade_fail(&said, err->status, LADE_NO_OFFSET,
		          "cluster %" PRIu64 ", column %" PRIu64 "%s: %s", v->cluster, column,
		          which, err->message);
		cli_lade_error(v->node->name, &said);
		return;
	}
	json_open(v->j, NULL, '{');
	json_uint(v->j, "cluster", v->cluster);
	json_uint(v->j, "column", column);
	json_text(v->j, "field", f->path);
	json_uint(v->j, "position", c->position);
	if (page) {
		json_uint(v->j, "page", index);
		json_uint(v->j, "offset", page->off);
		json_uint(v->j, "stored_size", page->stored_size);
		json_uint(v->j, "first_element", page->first);
		json_uint(v->j, "element_count", page->count);
	}
	json_text(v->j, "status", lade_status_name(err->status));
	json_text(v->j, "reason", err->message);
	json_close(v->j, '}');
}

/* Reads each page of a column that fails. */
static void check_pages(verify *v, uint64_t column, const lade_error *why)
{
	uint64_t count = pages_of(v, column), bad = 0;
	lade_rntuple_page page = {.struct_size = sizeof page};

	for (uint64_t i = 0; i < count; i++) {
		lade_error err = {.offset = LADE_NO_OFFSET};
		if (lade_rntuple_page_at(v->node->tuple, column, v->cluster, i, &page, &err))
			continue;
		lade_rntuple_target target = {
			.column = column, .first = page.first, .count = page.count};
		if (read_parts(v, &target, 1, LADE_RNTUPLE_ENDS, &err) == LADE_OK)
			continue;
		say_failure(v, column, i, &page, &err);
		bad++;
	}
	if (bad == 0)
		say_failure(v, column, 0, NULL, why);
	v->bad += bad ? bad : 1;
	v->good += count - bad - (bad ? 0 : count > 0);
}

static void check_column(verify *v, uint64_t column)
{
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_rntuple_target target = whole(v, column);

	if (read_parts(v, &target, 1, 0, &err) == LADE_OK)
		v->good += pages_of(v, column);
	else
		check_pages(v, column, &err);
}

/* Reads the columns that wait. */
static void flush(verify *v)
{
	lade_rntuple_target *targets = cli_need(calloc(v->count + 1, sizeof *targets));
	uint64_t stored = 0, decoded = 0;

	for (size_t i = 0; i < v->count; i++)
		targets[i] = whole(v, v->columns[i]);
	bool good = read_parts(v, targets, v->count, 0, NULL) == LADE_OK;
	for (size_t i = 0; i < v->count; i++) {
		uint64_t count = pages_of(v, v->columns[i]);
		lade_rntuple_page page = {.struct_size = sizeof page};
		if (good)
			v->good += count;
		else
			check_column(v, v->columns[i]);
		for (uint64_t k = 0; k < count; k++) {
			lade_rntuple_page_at(v->node->tuple, v->columns[i], v->cluster, k, &page,
			                     NULL);
			stored += page.stored_size;
			decoded += page.decoded_size;
		}
	}
	progress_add(stored, decoded);
	v->stored += stored;
	v->decoded += decoded;
	v->count = 0;
	v->size = 0;
	free(targets);
}

static void check_cluster(verify *v)
{
	for (uint64_t i = 0; i < v->node->info->column_count; i++) {
		const lade_rntuple_column *c = column_of(v, i);
		uint64_t size = size_of(v, i);
		/* A projected field has the pages of another. */
		if (lade_rntuple_field_at(v->node->tuple, c->field)->projected ||
		    pages_of(v, i) == 0)
			continue;
		if (v->count && (size > v->s->memory || v->size > v->s->memory - size))
			flush(v);
		v->columns[v->count++] = i;
		v->size += size;
	}
	if (v->count)
		flush(v);
}

/* ---- the command ---------------------------------------------------------------------------- */

static uint64_t hidden_of(const rntuple_node *node)
{
	uint64_t hidden = 0;

	for (uint64_t i = 0; i < node->info->field_count; i++) {
		const lade_rntuple_field *f = lade_rntuple_field_at(node->tuple, i);
		hidden += f->parent == i && f->hidden;
	}
	return hidden;
}

static void say_summary(const verify *v)
{
	char stored[16], decoded[16], *shown;
	uint64_t hidden = hidden_of(v->node);
	cli_text t;

	if (v->j) {
		json_close(v->j, ']');
		if (v->s->repair)
			json_bool(v->j, "mended", v->node->mended);
		json_uint(v->j, "good", v->good);
		json_uint(v->j, "bad", v->bad);
		json_uint(v->j, "unread_fields", hidden);
		json_uint(v->j, "stored_size", v->stored);
		json_uint(v->j, "decoded_size", v->decoded);
		json_close(v->j, '}');
		return;
	}
	cli_text_open(&t);
	fprintf(t.file, "%s: %s", v->node->name, v->node->info->name);
	shown = cli_text_take(&t);
	printf("%s: %" PRIu64 " page%s good, %" PRIu64 " bad; %s stored, %s decoded", shown,
	       v->good, v->good == 1 ? "" : "s", v->bad, cli_format_size(v->stored, stored),
	       cli_format_size(v->decoded, decoded));
	if (v->node->mended)
		printf("; its anchor was torn and is mended");
	if (hidden)
		printf("; %" PRIu64 " field%s cannot be read", hidden, hidden == 1 ? "" : "s");
	putchar('\n');
	free(shown);
}

int rntuple_verify(const rntuple_settings *s, const rntuple_node *node, json *j)
{
	verify v = {.s = s, .node = node, .j = j, .rc = CLI_OK};

	v.columns = cli_need(calloc((size_t)node->info->column_count + 1, sizeof *v.columns));
	if (j) {
		json_open(j, NULL, '{');
		json_text(j, "file", node->name);
		json_text(j, "name", node->info->name);
		json_open(j, "failures", '[');
	}
	progress_start(node->name, "verifying", node->info->stored_size);
	for (v.cluster = 0; v.cluster < node->info->cluster_count; v.cluster++)
		check_cluster(&v);
	progress_end();
	say_summary(&v);
	free(v.columns);
	return v.rc;
}
