/*
 * rntuple_step.c: some entries of some fields in memory, and their values as JSON.
 *
 * A step is entries of one cluster, as many as fit into memory.  Below variants, indices count from
 * the cluster's start, so that a step must be a whole cluster.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rntuple.h"
#include "cli/table.h"

/* ---- reading -------------------------------------------------------------------------------- */

void rntuple_step_open(rntuple_step *step, const rntuple_settings *s, const rntuple_node *node)
{
	size_t fields = (size_t)node->info->field_count, columns = (size_t)node->info->column_count;

	*step = (rntuple_step){.s = s, .node = node, .err = {.offset = LADE_NO_OFFSET}};
	step->children = cli_need(malloc((fields + 1) * sizeof *step->children));
	step->siblings = cli_need(malloc((fields + 1) * sizeof *step->siblings));
	step->data = cli_need(calloc(columns + 1, sizeof *step->data));
	step->wanted = cli_need(calloc(columns + 1, sizeof *step->wanted));
	step->elements = cli_need(calloc(columns + 1, sizeof *step->elements));
	memset(step->children, 0xFF, (fields + 1) * sizeof *step->children);
	memset(step->siblings, 0xFF, (fields + 1) * sizeof *step->siblings);
	for (uint64_t i = fields; i-- > 0;) {
		uint64_t parent = lade_rntuple_field_at(node->tuple, i)->parent;
		if (parent == i)
			continue;
		step->siblings[i] = step->children[parent];
		step->children[parent] = i;
	}
}

void rntuple_step_want(rntuple_step *step, uint64_t field)
{
	const lade_rntuple_field *f = lade_rntuple_field_at(step->node->tuple, field);

	for (uint64_t i = 0; i < f->column_count; i++)
		step->wanted[f->column + i] = true;
	step->whole |= f->role == LADE_RNTUPLE_VARIANT;
	for (uint64_t c = step->children[field]; c != UINT64_MAX; c = step->siblings[c])
		rntuple_step_want(step, c);
}

static void forget(rntuple_step *step)
{
	for (uint64_t i = 0; i < step->node->info->column_count; i++) {
		free(step->data[i]);
		step->data[i] = NULL;
	}
}

void rntuple_step_close(rntuple_step *step)
{
	forget(step);
	free(step->children);
	free(step->siblings);
	free(step->data);
	free(step->wanted);
	free(step->elements);
}

/* The cluster that has an entry, and its entries. */
static uint64_t cluster_of(const rntuple_node *node, uint64_t entry, lade_rntuple_part *part)
{
	uint64_t low = 0, high = node->info->cluster_count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		lade_rntuple_cluster(node->tuple, middle, part, NULL);
		if (part->first + part->count <= entry)
			low = middle + 1;
		else
			high = middle;
	}
	lade_rntuple_cluster(node->tuple, low, part, NULL);
	return low;
}

/* The entries of the next step. */
static lade_rntuple_part next_entries(const rntuple_step *step, uint64_t first, uint64_t end)
{
	const rntuple_node *node = step->node;
	lade_rntuple_part cluster, part;
	uint64_t k = cluster_of(node, first, &cluster);
	double bytes = 0;

	if (step->whole)
		return cluster;
	for (uint64_t i = 0; i < node->info->column_count; i++)
		if (step->wanted[i] &&
		    lade_rntuple_cluster_elements(node->tuple, i, k, &part, NULL) == LADE_OK)
			bytes += (double)part.count *
			         (double)lade_rntuple_column_at(node->tuple, i)->elem_size;
	uint64_t most = cluster.first + cluster.count - first;
	if (bytes > (double)step->s->memory) {
		double some = (double)cluster.count * (double)step->s->memory / bytes;
		most = some < 1 ? 1 : some < (double)most ? (uint64_t)some : most;
	}
	return (lade_rntuple_part){first, most < end - first ? most : end - first};
}

lade_status rntuple_step_read(rntuple_step *step, uint64_t *first, uint64_t end)
{
	const rntuple_node *node = step->node;
	size_t columns = (size_t)node->info->column_count, count = 0;
	lade_rntuple_target *targets = cli_need(calloc(columns + 1, sizeof *targets));
	lade_rntuple_read_options o = {.struct_size = sizeof o, .target_size = sizeof *targets};
	lade_status status = LADE_OK;

	forget(step);
	step->entries = next_entries(step, *first, end);
	for (uint64_t i = 0; i < columns && status == LADE_OK; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(node->tuple, i);
		lade_rntuple_part *part = &step->elements[i];
		if (!step->wanted[i])
			continue;
		status = lade_rntuple_elements(node->tuple, i, step->entries, &o, part, &step->err);
		if (status != LADE_OK)
			break;
		uint64_t n = part->count + (c->kind == LADE_RNTUPLE_OFFSETS);
		if (n > PTRDIFF_MAX / c->elem_size) {
			status = lade_fail(&step->err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                   "no memory for %" PRIu64 " elements", n);
			break;
		}
		step->data[i] = cli_need(malloc((size_t)n * c->elem_size + 1));
		targets[count++] = (lade_rntuple_target){
			i, part->first, part->count,
			lade_host_span(step->data[i], (size_t)n * c->elem_size)};
	}
	if (status == LADE_OK)
		status = lade_rntuple_read(node->tuple, targets, count, &o, NULL, &step->err);
	free(targets);
	*first = step->entries.first + step->entries.count;
	return status;
}

/* ---- values --------------------------------------------------------------------------------- */

static bool wrong(rntuple_step *step, uint64_t field, uint64_t index, uint64_t count)
{
	lade_fail(&step->err, LADE_E_CORRUPT, LADE_NO_OFFSET,
	          "%s: element %" PRIu64 " of %" PRIu64 " in entries %" PRIu64 " to %" PRIu64,
	          lade_rntuple_field_at(step->node->tuple, field)->path, index, count,
	          step->entries.first, step->entries.first + step->entries.count);
	return false;
}

/* Element 'index' of a column; NULL: there is none. */
static const uint8_t *element(const rntuple_step *step, uint64_t column, uint64_t index)
{
	if (index >= step->elements[column].count || !step->data[column])
		return NULL;
	return step->data[column] +
	       index * lade_rntuple_column_at(step->node->tuple, column)->elem_size;
}

static uint64_t number(const uint8_t *at, size_t size)
{
	uint64_t value = 0;

	for (size_t i = size; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

static double half(uint64_t bits)
{
	double fraction = (double)(bits & 0x3FF);
	int exponent = (int)(bits >> 10 & 31);
	double value = exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
	               : exponent     ? ldexp(1024 + fraction, exponent - 25)
	                              : ldexp(fraction, -24);

	return bits & 0x8000 ? -value : value;
}

/* JSON has neither NaN nor infinities.  A half takes 5 digits at most, and is a float. */
static void put_real(FILE *out, uint64_t bits, size_t size)
{
	uint32_t low = (uint32_t)bits;
	float single;
	double value;

	memcpy(&single, &low, sizeof single);
	memcpy(&value, &bits, sizeof value);
	value = size == 2 ? half(bits) : size == 4 ? (double)single : value;
	if (!isfinite(value)) {
		fputs("null", out);
		return;
	}
	/* The fewest digits that give the number again. */
	char text[32];
	int digits = size == 2 ? 4 : size == 4 ? 6 : 15, most = size == 2 ? 5 : size == 4 ? 9 : 17;
	for (; digits <= most; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (size < 8 ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
			break;
	}
	fputs(text, out);
}

static void put_number(FILE *out, const uint8_t *at, lade_dtype dtype)
{
	size_t size = lade_dtype_size(dtype);
	uint64_t bits = number(at, size);

	switch (lade_dtype_class(dtype)) {
	case 'b':
		fputs(bits ? "true" : "false", out);
		break;
	case 'f':
		put_real(out, bits, size);
		break;
	case 'i':
		if (size < 8 && bits >> (8 * size - 1))
			bits |= UINT64_MAX << 8 * size;
		fprintf(out, "%" PRId64, (int64_t)bits);
		break;
	default:
		fprintf(out, "%" PRIu64, bits);
		break;
	}
}

static void put_string(FILE *out, const uint8_t *data, size_t size)
{
	char piece[8];

	fputc('"', out);
	for (size_t at = 0; at < size;) {
		size_t left = size - at;
		memset(piece, 0, sizeof piece);
		memcpy(piece, data + at, left < 4 ? left : 4);
		unsigned n = cli_utf8_length(piece);
		if (*piece == 0 || (n && cli_control(piece, n)))
			fprintf(out, "\\u%04x", *piece ? cli_control(piece, n) : 0);
		else if (n == 0)
			fputs("\\ufffd", out);
		else
			fprintf(out, "%s%.*s", strchr("\"\\", *piece) ? "\\" : "", (int)n, piece);
		at += n ? n : 1;
	}
	fputc('"', out);
}

/* The elements that belong to collection 'index'. */
static bool bounds(rntuple_step *step, uint64_t field, uint64_t index, uint64_t *from, uint64_t *to)
{
	uint64_t column = lade_rntuple_field_at(step->node->tuple, field)->column;
	const uint8_t *at = element(step, column, index);

	if (!at)
		return wrong(step, field, index, step->elements[column].count);
	*from = number(at, 8);
	*to = number(at + 8, 8);
	return true;
}

/* Strings, and what ROOT's streamers wrote: its bytes as digits. */
static bool put_bytes(rntuple_step *step, FILE *out, const lade_rntuple_field *f, uint64_t field,
                      uint64_t index)
{
	uint64_t from, to, count = step->elements[f->column + 1].count;

	if (!bounds(step, field, index, &from, &to))
		return false;
	if (from > to || to > count)
		return wrong(step, field, to, count);
	const uint8_t *data = step->data[f->column + 1];
	if (f->role != LADE_RNTUPLE_STREAMER) {
		put_string(out, data + from, (size_t)(to - from));
		return true;
	}
	fputc('"', out);
	for (uint64_t i = from; i < to; i++)
		fprintf(out, "%02x", data[i]);
	fputc('"', out);
	return true;
}

static bool put_column(rntuple_step *step, FILE *out, uint64_t field, uint64_t index)
{
	const lade_rntuple_field *f = lade_rntuple_field_at(step->node->tuple, field);
	const lade_rntuple_column *c = lade_rntuple_column_at(step->node->tuple, f->column);
	uint64_t from, to;

	if (f->column_count == 2)
		return put_bytes(step, out, f, field, index);
	if (c->kind == LADE_RNTUPLE_OFFSETS) { /* a cardinality */
		if (!bounds(step, field, index, &from, &to))
			return false;
		fprintf(out, "%" PRIu64, to - from);
		return true;
	}
	const uint8_t *at = element(step, f->column, index);
	if (!at)
		return wrong(step, field, index, step->elements[f->column].count);
	put_number(out, at, c->dtype);
	return true;
}

/* Values [from, to) of a field in brackets; 'own': its own columns, which have no children. */
static bool put_list(rntuple_step *step, FILE *out, uint64_t field, uint64_t from, uint64_t to,
                     bool own)
{
	bool good = true;

	fputc('[', out);
	for (uint64_t i = from; i < to && good; i++) {
		fputs(i > from ? "," : "", out);
		good = own ? put_column(step, out, field, i) : rntuple_put(step, out, field, i);
	}
	fputc(']', out);
	return good;
}

static bool put_record(rntuple_step *step, FILE *out, uint64_t field, uint64_t index)
{
	bool good = true;

	fputc('{', out);
	for (uint64_t c = step->children[field]; c != UINT64_MAX && good; c = step->siblings[c]) {
		const char *name = lade_rntuple_field_at(step->node->tuple, c)->name;
		fputs(c != step->children[field] ? "," : "", out);
		put_string(out, (const uint8_t *)name, strlen(name));
		fputc(':', out);
		good = rntuple_put(step, out, c, index);
	}
	fputc('}', out);
	return good;
}

static bool put_collection(rntuple_step *step, FILE *out, const lade_rntuple_field *f,
                           uint64_t field, uint64_t index)
{
	uint64_t from, to, child = step->children[field];

	if (!bounds(step, field, index, &from, &to))
		return false;
	if (child == UINT64_MAX) {
		fprintf(out, "%" PRIu64, to - from);
		return true;
	}
	bool one = strncmp(f->type, "std::optional<", 14) == 0 ||
	           strncmp(f->type, "std::unique_ptr<", 16) == 0;
	if (!one)
		return put_list(step, out, child, from, to, false);
	if (from < to)
		return rntuple_put(step, out, child, from);
	fputs("null", out);
	return true;
}

/* | index 8 | alternative 4 |; 0: none. */
static bool put_variant(rntuple_step *step, FILE *out, const lade_rntuple_field *f, uint64_t field,
                        uint64_t index)
{
	const uint8_t *at = element(step, f->column, index);
	uint64_t child = step->children[field];

	if (!at)
		return wrong(step, field, index, step->elements[f->column].count);
	uint64_t which = number(at + 8, 4);
	if (which == 0) {
		fputs("null", out);
		return true;
	}
	for (uint64_t i = 1; i < which && child != UINT64_MAX; i++)
		child = step->siblings[child];
	return child == UINT64_MAX ? wrong(step, field, index, which)
	                           : rntuple_put(step, out, child, number(at, 8));
}

bool rntuple_put(rntuple_step *step, FILE *out, uint64_t field, uint64_t index)
{
	const lade_rntuple_field *f = lade_rntuple_field_at(step->node->tuple, field);
	uint64_t child = step->children[field], n = f->array_size;

	if (f->role == LADE_RNTUPLE_RECORD)
		return put_record(step, out, field, index);
	if (f->role == LADE_RNTUPLE_COLLECTION && f->column_count)
		return put_collection(step, out, f, field, index);
	if (f->role == LADE_RNTUPLE_VARIANT && f->column_count)
		return put_variant(step, out, f, field, index);
	if (n && (f->column_count || child != UINT64_MAX))
		return put_list(step, out, f->column_count ? field : child, index * n,
		                index * n + n, f->column_count);
	if (f->column_count)
		return put_column(step, out, field, index);
	if (child != UINT64_MAX)
		return rntuple_put(step, out, child, index);
	fputs("null", out);
	return true;
}
