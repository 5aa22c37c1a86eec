/*
 * zarr_text.c: an array's description as text and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/zarr.h"

/* ---- numbers of an array ------------------------------------------------------------------ */

uint64_t zarr_times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* A product that is 0 if a factor is, however large the others are. */
static uint64_t product(const lade_zarr_array *array, bool chunks)
{
	uint64_t count = 1;
	bool none = false;

	for (size_t i = 0; i < array->ndim; i++) {
		uint64_t size = chunks ? array->axes[i].chunk_count : array->axes[i].size;
		none = none || size == 0;
		count = zarr_times(count, size);
	}
	return none ? 0 : count;
}

uint64_t zarr_elements(const lade_zarr_array *array)
{
	return product(array, false);
}

uint64_t zarr_chunk_count(const lade_zarr_array *array)
{
	return product(array, true);
}

uint64_t zarr_decoded_size(const lade_zarr_array *array)
{
	return zarr_times(zarr_elements(array), array->type.size);
}

/* ---- shapes ------------------------------------------------------------------------------- */

void zarr_put_shape(FILE *out, const lade_zarr_array *array)
{
	fputc('(', out);
	for (size_t i = 0; i < array->ndim; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "", array->axes[i].size);
	fputs(array->ndim == 1 ? ",)" : ")", out);
}

/* "10", or "10 10 5 ..." of a rectilinear axis. */
static void put_axis_chunks(FILE *out, const lade_zarr_axis *axis)
{
	enum { SHOWN = 4 };

	if (axis->chunk_size) {
		fprintf(out, "%" PRIu64, axis->chunk_size);
		return;
	}
	fputc('[', out);
	for (size_t i = 0; i < axis->run_count && i < SHOWN; i++) {
		const lade_zarr_run *run = &axis->runs[i];
		fprintf(out, "%s%" PRIu64, i ? " " : "", run->length);
		if (run->count > 1)
			fprintf(out, "x%" PRIu64, run->count);
	}
	fputs(axis->run_count > SHOWN ? " ...]" : "]", out);
}

void zarr_put_chunks(FILE *out, const lade_zarr_array *array)
{
	fputc('(', out);
	for (size_t i = 0; i < array->ndim; i++) {
		fputs(i ? ", " : "", out);
		put_axis_chunks(out, &array->axes[i]);
	}
	fputs(array->ndim == 1 ? ",)" : ")", out);
}

/* The shape of the chunks in a shard, in the axes of what 'chain' stores. */
static void put_shard_shape(FILE *out, size_t ndim, const lade_zarr_shard *shard)
{
	fputc('(', out);
	for (size_t i = 0; i < ndim; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "", shard->chunk_shape[i]);
	fputs(ndim == 1 ? ",)" : ")", out);
}

uint64_t zarr_inner_length(const lade_zarr_array *array, size_t i)
{
	uint64_t length = 0;

	for (const lade_zarr_chain *c = &array->chain; c->shard; c = &c->shard->chunks) {
		i = c->order ? c->order[i] : i;
		length = c->shard->chunk_shape[i];
	}
	return length;
}

void zarr_put_inner(FILE *out, const lade_zarr_array *array)
{
	fputc('(', out);
	for (size_t i = 0; i < array->ndim; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "", zarr_inner_length(array, i));
	fputs(array->ndim == 1 ? ",)" : ")", out);
}

/* ---- types and values ----------------------------------------------------------------------- */

void zarr_put_type(FILE *out, const lade_zarr_type *type)
{
	fputs(type->name, out);
	if (type->cls == LADE_ZARR_DATETIME || type->cls == LADE_ZARR_TIMEDELTA) {
		fputs(" in ", out);
		if (type->unit_count != 1)
			fprintf(out, "%" PRIu32 " ", type->unit_count);
		fputs(type->unit ? type->unit : "generic", out);
	}
	if (type->cls == LADE_ZARR_RAW || type->cls == LADE_ZARR_CHARS ||
	    type->cls == LADE_ZARR_UTF32)
		fprintf(out, " of %" PRIu64 " bytes", type->size);
	if (type->cls == LADE_ZARR_STRUCT) {
		fputs(" {", out);
		for (size_t i = 0; i < type->field_count; i++) {
			fprintf(out, "%s%s: ", i ? ", " : "", type->fields[i].name);
			zarr_put_type(out, &type->fields[i].type);
		}
		fputc('}', out);
	}
	if (type->big)
		fputs(", big-endian", out);
}

static void put_hex(FILE *out, const uint8_t *p, size_t size)
{
	fputs("0x", out);
	for (size_t i = 0; i < size; i++)
		fprintf(out, "%02x", p[i]);
}

/* The shortest decimal number that has the same bits again. */
static void put_double(FILE *out, double v, bool single)
{
	char text[40];

	if (isnan(v) || isinf(v)) {
		fputs(isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity", out);
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		double again = strtod(text, NULL);
		if (again == v || (single && (float)again == (float)v))
			break;
	}
	fputs(text, out);
}

/* IEEE 754, binary16: | sign 1 | exponent 5 | mantissa 10 |. */
static double half_value(uint16_t bits)
{
	int exponent = bits >> 10 & 31, mantissa = bits & 1023;
	double v = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
	           : exponent     ? ldexp(1024 + mantissa, exponent - 25)
	                          : ldexp(mantissa, -24);

	return bits >> 15 ? -v : v;
}

static void put_float(FILE *out, const uint8_t *p, size_t size)
{
	uint16_t half;
	float single;
	double v = 0;

	if (size == 2) {
		memcpy(&half, p, 2);
		v = half_value(half);
	} else if (size == 4) {
		memcpy(&single, p, 4);
		v = (double)single;
	} else {
		memcpy(&v, p, 8);
	}
	put_double(out, v, size != 8);
}

static void put_int(FILE *out, const uint8_t *p, size_t size, bool is_signed)
{
	uint64_t v = 0;

	memcpy(&v, p, size <= 8 ? size : 8);
	if (is_signed && size < 8 && v >> (8 * size - 1))
		v |= UINT64_MAX << 8 * size;
	if (is_signed)
		fprintf(out, "%" PRId64, (int64_t)v);
	else
		fprintf(out, "%" PRIu64, v);
}

/* In quotes, up to the first of the zeros at the end. */
static void put_chars(FILE *out, const uint8_t *p, size_t size)
{
	while (size > 0 && p[size - 1] == 0)
		size--;
	fputc('"', out);
	for (size_t i = 0; i < size; i++) {
		if (p[i] == 0)
			fputs("\\0", out);
		else
			fputc(p[i], out);
	}
	fputc('"', out);
}

static void put_utf32(FILE *out, const uint8_t *p, size_t size)
{
	uint32_t c;

	fputc('"', out);
	for (size_t i = 0; i + 4 <= size; i += 4) {
		memcpy(&c, p + i, 4);
		if (c == 0)
			continue;
		if (c < 0x80)
			fputc((int)c, out);
		else if (c < 0x800)
			fprintf(out, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
		else if (c < 0x10000)
			fprintf(out, "%c%c%c", (int)(0xE0 | c >> 12), (int)(0x80 | (c >> 6 & 63)),
			        (int)(0x80 | (c & 63)));
		else
			fprintf(out, "%c%c%c%c", (int)(0xF0 | (c >> 18 & 7)),
			        (int)(0x80 | (c >> 12 & 63)), (int)(0x80 | (c >> 6 & 63)),
			        (int)(0x80 | (c & 63)));
	}
	fputc('"', out);
}

static void put_time(FILE *out, const uint8_t *p)
{
	int64_t v;

	memcpy(&v, p, sizeof v);
	if (v == INT64_MIN)
		fputs("NaT", out);
	else
		fprintf(out, "%" PRId64, v);
}

static void put_struct(FILE *out, const lade_zarr_type *type, const uint8_t *p)
{
	fputc('{', out);
	for (size_t i = 0; i < type->field_count; i++) {
		const lade_zarr_field *field = &type->fields[i];
		fprintf(out, "%s%s: ", i ? ", " : "", field->name);
		zarr_put_value(out, &field->type, p + field->off, (size_t)field->type.size);
	}
	fputc('}', out);
}

void zarr_put_value(FILE *out, const lade_zarr_type *type, const void *value, size_t size)
{
	const uint8_t *p = value;

	switch (type->cls) {
	case LADE_ZARR_BOOL:
		fputs(*p ? "true" : "false", out);
		break;
	case LADE_ZARR_INT:
	case LADE_ZARR_UINT:
		put_int(out, p, size, type->cls == LADE_ZARR_INT);
		break;
	case LADE_ZARR_FLOAT:
		put_float(out, p, size);
		break;
	case LADE_ZARR_COMPLEX:
		fputc('(', out);
		put_float(out, p, size / 2);
		fputs(", ", out);
		put_float(out, p + size / 2, size / 2);
		fputc(')', out);
		break;
	case LADE_ZARR_CHARS:
	case LADE_ZARR_STRING:
		put_chars(out, p, size);
		break;
	case LADE_ZARR_UTF32:
		put_utf32(out, p, size);
		break;
	case LADE_ZARR_DATETIME:
	case LADE_ZARR_TIMEDELTA:
		put_time(out, p);
		break;
	case LADE_ZARR_STRUCT:
		put_struct(out, type, p);
		break;
	case LADE_ZARR_FLOAT_X:
	case LADE_ZARR_RAW:
	case LADE_ZARR_BYTES:
	default:
		put_hex(out, p, size);
		break;
	}
}

/* ---- codecs ---------------------------------------------------------------------------------- */

static void put_step(FILE *out, const lade_zarr_step *step)
{
	if (step->spec)
		fputs(lade_spec_text(step->spec), out);
	else
		fprintf(out, "%s (not run by lade: %s)", step->name, step->why);
}

/* "transpose(1, 0) | zstd(level=3)", in the order of encoding; an index has an axis more. */
void zarr_put_chain(FILE *out, const lade_zarr_chain *chain, size_t ndim)
{
	const char *mark = "";

	if (chain->order) {
		fputs("transpose(", out);
		for (size_t i = 0; i < ndim; i++)
			fprintf(out, "%s%zu", i ? ", " : "", chain->order[i]);
		fputc(')', out);
		mark = " | ";
	}
	if (chain->swap_size) {
		fprintf(out, "%sbig-endian", mark);
		mark = " | ";
	}
	for (size_t i = 0; i <= chain->step_count; i++) {
		if (chain->shard && i == chain->array_step_count) {
			fprintf(out, "%sshard of chunks ", mark);
			put_shard_shape(out, ndim, chain->shard);
			fputs(": [", out);
			zarr_put_chain(out, &chain->shard->chunks, ndim);
			fprintf(out, "], index at the %s: [",
			        chain->shard->index_first ? "start" : "end");
			zarr_put_chain(out, &chain->shard->index, ndim + 1);
			fputc(']', out);
			mark = " | ";
		}
		if (i < chain->step_count) {
			fputs(mark, out);
			put_step(out, &chain->steps[i]);
			mark = " | ";
		}
	}
	if (!*mark)
		fputs("none", out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_type(json *j, const char *key, const lade_zarr_type *type)
{
	json_open(j, key, '{');
	json_text(j, "name", type->name);
	json_uint(j, "size", type->size);
	json_bool(j, "big_endian", type->big);
	if (type->unit) {
		json_text(j, "unit", type->unit);
		json_uint(j, "unit_count", type->unit_count);
	}
	if (type->cls == LADE_ZARR_STRUCT) {
		json_open(j, "fields", '[');
		for (size_t i = 0; i < type->field_count; i++) {
			json_open(j, NULL, '{');
			json_text(j, "name", type->fields[i].name);
			json_uint(j, "offset", type->fields[i].off);
			json_type(j, "type", &type->fields[i].type);
			json_close(j, '}');
		}
		json_close(j, ']');
	}
	json_close(j, '}');
}

static void json_axis(json *j, const lade_zarr_axis *axis)
{
	json_open(j, NULL, '{');
	if (axis->name)
		json_text(j, "name", axis->name);
	json_uint(j, "size", axis->size);
	json_uint(j, "chunk_count", axis->chunk_count);
	if (axis->chunk_size) {
		json_uint(j, "chunk_size", axis->chunk_size);
	} else {
		json_open(j, "runs", '[');
		for (size_t i = 0; i < axis->run_count; i++) {
			json_open(j, NULL, '{');
			json_uint(j, "length", axis->runs[i].length);
			json_uint(j, "count", axis->runs[i].count);
			json_close(j, '}');
		}
		json_close(j, ']');
	}
	json_close(j, '}');
}

static void json_steps(json *j, const lade_zarr_chain *chain)
{
	json_open(j, "steps", '[');
	for (size_t i = 0; i < chain->step_count; i++) {
		const lade_zarr_step *step = &chain->steps[i];
		json_open(j, NULL, '{');
		if (step->spec) {
			json_text(j, "spec", lade_spec_text(step->spec));
		} else {
			json_text(j, "name", step->name);
			if (step->configuration)
				json_text(j, "configuration", step->configuration);
			json_text(j, "why", step->why);
		}
		if (step->header_size)
			json_uint(j, "header_size", step->header_size);
		json_close(j, '}');
	}
	json_close(j, ']');
	if (chain->shard)
		json_uint(j, "array_step_count", chain->array_step_count);
}

static void json_chain(json *j, const char *key, const lade_zarr_chain *chain, size_t ndim)
{
	json_open(j, key, '{');
	if (chain->order) {
		json_open(j, "order", '[');
		for (size_t i = 0; i < ndim; i++)
			json_uint(j, NULL, chain->order[i]);
		json_close(j, ']');
	}
	json_uint(j, "swap_size", chain->swap_size);
	json_steps(j, chain);
	if (chain->shard) {
		json_open(j, "shard", '{');
		json_open(j, "chunk_shape", '[');
		for (size_t i = 0; i < ndim; i++)
			json_uint(j, NULL, chain->shard->chunk_shape[i]);
		json_close(j, ']');
		json_text(j, "index_location", chain->shard->index_first ? "start" : "end");
		json_chain(j, "chunks", &chain->shard->chunks, ndim);
		json_chain(j, "index", &chain->shard->index, ndim + 1);
		json_close(j, '}');
	}
	json_close(j, '}');
}

/* The value as its document could have it, and its bytes. */
static void json_fill(json *j, const lade_zarr_array *array)
{
	cli_text t;

	cli_text_open(&t);
	zarr_put_value(t.file, &array->type, array->fill, array->fill_size);
	char *text = cli_text_take(&t);
	json_text(j, "fill_value", text);
	free(text);
	cli_text_open(&t);
	put_hex(t.file, array->fill, array->fill_size);
	text = cli_text_take(&t);
	json_text(j, "fill_bytes", text + 2);
	free(text);
	json_bool(j, "fill_given", array->fill_given);
}

void zarr_json_array(json *j, const lade_zarr_array *array)
{
	json_open(j, "shape", '[');
	for (size_t i = 0; i < array->ndim; i++)
		json_uint(j, NULL, array->axes[i].size);
	json_close(j, ']');
	json_type(j, "type", &array->type);
	json_open(j, "axes", '[');
	for (size_t i = 0; i < array->ndim; i++)
		json_axis(j, &array->axes[i]);
	json_close(j, ']');
	if (array->chain.shard) {
		json_open(j, "inner_chunks", '[');
		for (size_t i = 0; i < array->ndim; i++)
			json_uint(j, NULL, zarr_inner_length(array, i));
		json_close(j, ']');
	}
	json_fill(j, array);
	json_chain(j, "codecs", &array->chain, array->ndim);
}
