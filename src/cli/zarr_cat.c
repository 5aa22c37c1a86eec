/*
 * zarr_cat.c: 'lade zarr cat', a selection of an array as a .npy file.
 *
 * The result is read in slabs of bounded memory: rows along one axis, for each index of the axes
 * before it.  Slabs end where chunks end, if a chunk's rows fit: then no chunk is decoded twice.
 * Strings of any length are read twice: once for the longest, and once to be written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/npy.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/work.h"
#include "cli/zarr.h"

/* Bytes of memory for a string, as a guess. */
#define WORD_SIZE 64

/* ---- the type ---------------------------------------------------------------------------- */

/* A name as a literal of Python. */
static void put_name(FILE *out, const char *name)
{
	fputc('\'', out);
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;
		if (c == '\'' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7F)
			fprintf(out, "\\x%02x", c);
		else
			fputc(c, out);
	}
	fputc('\'', out);
}

/* The type of elements in memory, which are little-endian, as NumPy writes it in .npy files.
 * Types that NumPy does not have are bytes without a meaning. */
static void put_descr(FILE *out, const lade_zarr_type *type)
{
	static const char letters[] = {[LADE_ZARR_BOOL] = 'b', [LADE_ZARR_INT] = 'i',
	                               [LADE_ZARR_UINT] = 'u', [LADE_ZARR_FLOAT] = 'f',
	                               [LADE_ZARR_COMPLEX] = 'c'};

	switch (type->cls) {
	case LADE_ZARR_BOOL:
	case LADE_ZARR_INT:
	case LADE_ZARR_UINT:
	case LADE_ZARR_FLOAT:
	case LADE_ZARR_COMPLEX:
		fprintf(out, "'%c%c%" PRIu64 "'", type->size > 1 ? '<' : '|', letters[type->cls],
		        type->size);
		break;
	case LADE_ZARR_CHARS:
		fprintf(out, "'|S%" PRIu64 "'", type->size);
		break;
	case LADE_ZARR_UTF32:
		fprintf(out, "'<U%" PRIu64 "'", type->size / 4);
		break;
	case LADE_ZARR_DATETIME:
	case LADE_ZARR_TIMEDELTA:
		fprintf(out, "'<%c8", type->cls == LADE_ZARR_DATETIME ? 'M' : 'm');
		if (type->unit && strcmp(type->unit, "generic") != 0) {
			fputc('[', out);
			if (type->unit_count != 1)
				fprintf(out, "%" PRIu32, type->unit_count);
			fprintf(out, "%s]", type->unit);
		}
		fputc('\'', out);
		break;
	case LADE_ZARR_STRUCT:
		fputc('[', out);
		for (size_t i = 0; i < type->field_count; i++) {
			fputs(i ? ", (" : "(", out);
			put_name(out, type->fields[i].name);
			fputs(", ", out);
			put_descr(out, &type->fields[i].type);
			fputc(')', out);
		}
		fputc(']', out);
		break;
	case LADE_ZARR_FLOAT_X:
	case LADE_ZARR_RAW:
	case LADE_ZARR_STRING:
	case LADE_ZARR_BYTES:
	default:
		fprintf(out, "'|V%" PRIu64 "'", type->size);
		break;
	}
}

static lade_status write_header(const lade_zarr_shape *shape, cli_out *out, lade_error *err)
{
	npy header = {.ndim = (unsigned)shape->ndim};
	lade_output to = cli_out_output(out);
	char *descr;
	size_t size;
	FILE *f = cli_need(open_memstream(&descr, &size));

	memcpy(header.shape, shape->shape, sizeof header.shape);
	put_descr(f, &shape->type);
	if (fclose(f) != 0)
		cli_need(NULL);
	char *bytes = cli_need(malloc(size + NPY_HEADER_MAX));
	size = npy_write_descr(&header, descr, bytes);
	lade_status status = to.write(to.ctx, bytes, size, err);
	free(bytes);
	free(descr);
	return status;
}

/* ---- slabs ---------------------------------------------------------------------------------- */

/* A selection that is read in parts. */
typedef struct slabs {
	const lade_zarr_array *array;
	const zarr_node *node;
	lade_zarr_shape shape;
	lade_zarr_index axes[LADE_DIMS_MAX]; /* of the array; slices have their start and step */
	size_t from[LADE_DIMS_MAX];          /* the array's axis of each axis of the result */
	size_t split;                        /* the axis of the result that slabs divide */
	uint64_t row_size;                   /* bytes of one index of that axis */
	uint64_t rows;                       /* of a slab, at most */
	uint64_t chunk_rows;                 /* of a chunk, in the array; 0: they do not count */
	const char *field;
	unsigned threads;
	void *memory; /* of a slab */
	bool words;   /* strings of any length */
	uint64_t longest, width; /* their characters; width 0: to be found out */
	cli_out *out;
} slabs;

/* A slice with its start as NumPy counts it; the stop does not matter. */
static void normalise(lade_zarr_index *index, uint64_t axis_size)
{
	int64_t size = (int64_t)axis_size, start = index->start;
	int64_t step = index->kind == LADE_ZARR_SLICE && index->step ? index->step : 1;

	if (index->kind != LADE_ZARR_ALL && index->kind != LADE_ZARR_SLICE)
		return;
	if (index->kind == LADE_ZARR_ALL || start == LADE_ZARR_OPEN)
		start = step > 0 ? 0 : size - 1;
	else if (start < 0)
		start = start + size < 0 ? (step > 0 ? 0 : -1) : start + size;
	else if (start >= size)
		start = step > 0 ? size : size - 1;
	*index = (lade_zarr_index){.kind = LADE_ZARR_SLICE, .start = start, .step = step};
}

/* Restricts an axis of the selection to the indices from 'first' to before 'end' of its result. */
static lade_zarr_index restrict_axis(lade_zarr_index index, uint64_t first, uint64_t end)
{
	if (index.kind == LADE_ZARR_LIST) {
		index.list += first;
		index.count = (size_t)(end - first);
		return index;
	}
	/* The last index exists, so what is below does not overflow up to it. */
	int64_t last = index.start + (int64_t)(end - 1) * index.step;
	index.start += (int64_t)first * index.step;
	index.stop = index.step > 0 ? last + 1 : last > 0 ? last - 1 : LADE_ZARR_OPEN;
	return index;
}

static void plan(slabs *p, uint64_t memory)
{
	p->row_size = p->words ? WORD_SIZE : p->shape.elem_size;
	p->rows = 1;
	if (p->shape.ndim == 0 || p->shape.count == 0)
		return;
	/* The first axis whose rows fit. */
	p->split = p->shape.ndim - 1;
	while (p->split > 0 && zarr_times(p->row_size, p->shape.shape[p->split]) <= memory)
		p->row_size *= p->shape.shape[p->split--];
	p->rows = memory / p->row_size ? memory / p->row_size : 1;
	const lade_zarr_axis *axis = &p->array->axes[p->from[p->split]];
	if (p->axes[p->from[p->split]].step == 1 && axis->chunk_size <= p->rows)
		p->chunk_rows = axis->chunk_size;
}

/* Where the slab that begins at row 'first' ends: at the end of a chunk, if it can. */
static uint64_t slab_end(const slabs *p, uint64_t first)
{
	uint64_t count = p->shape.shape[p->split], end = first + p->rows;

	if (p->rows >= count - first)
		return count;
	if (p->chunk_rows) {
		uint64_t start = (uint64_t)p->axes[p->from[p->split]].start;
		uint64_t over = (start + end) % p->chunk_rows;
		end -= over < end - first ? over : 0;
	}
	return end;
}

static lade_status word_slab(slabs *p, const lade_zarr_selection *selection, lade_error *err)
{
	zarr_words words;
	lade_status status = zarr_words_read(p->node->zarr, selection, p->threads, &words, err);

	if (status == LADE_OK && p->width) {
		status = zarr_words_write(&words, p->width, cli_out_output(p->out), err);
	} else if (status == LADE_OK) {
		uint64_t longest = zarr_words_longest(&words);
		p->longest = longest > p->longest ? longest : p->longest;
	}
	zarr_words_free(&words);
	return status;
}

/* Reads and writes rows 'first' to 'end' at 'index' of the axes before the split. */
static lade_status one_slab(slabs *p, const uint64_t *index, uint64_t first, uint64_t end,
                            lade_error *err)
{
	lade_zarr_index axes[LADE_DIMS_MAX];
	lade_zarr_selection selection = {.struct_size = sizeof selection,
	                                 .axis_count = p->array->ndim,
	                                 .axes = axes,
	                                 .index_size = sizeof axes[0],
	                                 .field = p->field};
	size_t size = (size_t)(p->row_size * (p->shape.ndim ? end - first : 1));
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(p->memory, size)};
	lade_output to = cli_out_output(p->out);

	memcpy(axes, p->axes, sizeof axes);
	for (size_t i = 0; i < p->shape.ndim && i <= p->split; i++) {
		lade_zarr_index *axis = &axes[p->from[i]];
		*axis = i < p->split ? restrict_axis(*axis, index[i], index[i] + 1)
		                     : restrict_axis(*axis, first, end);
	}
	for (size_t i = p->split + 1; i < p->shape.ndim; i++)
		axes[p->from[i]] = restrict_axis(axes[p->from[i]], 0, p->shape.shape[i]);
	if (p->words)
		return word_slab(p, &selection, err);
	lade_status status = zarr_read(p->node->zarr, &selection, &target, p->threads, NULL, err);
	if (status == LADE_OK)
		status = to.write(to.ctx, p->memory, size, err);
	progress_add(size, size);
	return status;
}

/* The next index of the axes before the split; false: it was the last. */
static bool next_index(const slabs *p, uint64_t *index)
{
	for (size_t i = p->split; i-- > 0;) {
		if (++index[i] < p->shape.shape[i])
			return true;
		index[i] = 0;
	}
	return false;
}

static lade_status all_slabs(slabs *p, lade_error *err)
{
	uint64_t index[LADE_DIMS_MAX] = {0}, count = p->shape.ndim ? p->shape.shape[p->split] : 1;
	lade_status status = LADE_OK;

	if (p->shape.count == 0)
		return LADE_OK;
	uint64_t most = p->words ? 0 : p->rows < count ? p->rows : count;
	p->memory = cli_need(malloc((size_t)(p->row_size * most) + 1));
	do {
		for (uint64_t first = 0; first < count && status == LADE_OK;) {
			uint64_t end = p->shape.ndim ? slab_end(p, first) : 1;
			status = one_slab(p, index, first, end, err);
			first = end;
		}
	} while (status == LADE_OK && next_index(p, index));
	free(p->memory);
	return status;
}

/* The width of a string is that of the longest: all are read for it. */
static lade_status find_width(slabs *p, lade_error *err)
{
	lade_status status = p->words ? all_slabs(p, err) : LADE_OK;

	if (!p->words)
		return LADE_OK;
	p->width = p->longest ? p->longest : 1;
	if (status == LADE_OK && p->width > UINT32_MAX / 4)
		status = lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                   "a string has %" PRIu64 " characters, at most %" PRIu32,
		                   p->width, UINT32_MAX / 4);
	p->shape.type = (lade_zarr_type){.cls = LADE_ZARR_UTF32, .size = 4 * p->width};
	return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* What the selection selects, with a record for each axis of the array. */
static lade_status select_axes(const zarr_settings *s, const zarr_node *node, slabs *p,
                               lade_zarr_selection **selection, lade_error *err)
{
	lade_status status = lade_zarr_selection_parse(node->zarr, s->selection ? s->selection : "",
	                                               selection, err);

	if (status != LADE_OK)
		return status;
	lade_zarr_selection *found = *selection;
	found->field = s->field;
	p->shape.struct_size = sizeof p->shape;
	status = lade_zarr_selection_shape(node->zarr, found, &p->shape, err);
	p->words = status == LADE_OK && p->shape.type.cls == LADE_ZARR_STRING;
	if (status == LADE_OK && p->shape.elem_size == 0 && !p->words)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   ".npy files have no type %s, bytes of any length",
		                   node->array->type.name);
	size_t ndim = 0;
	for (size_t i = 0; i < node->array->ndim && status == LADE_OK; i++) {
		if (i < found->axis_count)
			p->axes[i] = found->axes[i];
		normalise(&p->axes[i], node->array->axes[i].size);
		if (p->axes[i].kind != LADE_ZARR_AT)
			p->from[ndim++] = i;
	}
	return status;
}

int zarr_cat(const zarr_settings *s, zarr_node *node, json *j)
{
	cli_out out;
	slabs p = {.array = node->array, .node = node, .field = s->field,
	           .threads = s->threads, .out = &out};
	const cli_in none = {0};
	lade_zarr_selection *selection = NULL;
	lade_error err = {.offset = LADE_NO_OFFSET};

	(void)j;
	if (!node->array) {
		cli_error("%s: is a group; want an array", node->name);
		return CLI_FAILED;
	}
	lade_status status = select_axes(s, node, &p, &selection, &err);
	if (status != LADE_OK) {
		lade_zarr_selection_free(selection);
		return cli_lade_error(node->name, &err);
	}
	plan(&p, s->memory);
	cli_out_catch_signals();
	int rc = CLI_OK;
	if (!s->output || strcmp(s->output, "-") == 0)
		cli_out_stdout(&out);
	else
		rc = cli_out_open(&out, s->output, s->force, true);
	if (rc == CLI_OK) {
		if (out.path)
			out.name = out.path;
		progress_start(node->name, "reading", p.shape.size);
		status = find_width(&p, &err);
		if (status == LADE_OK)
			status = write_header(&p.shape, &out, &err);
		if (status == LADE_OK)
			status = all_slabs(&p, &err);
		progress_end();
		rc = status == LADE_OK ? cli_out_commit(&out, &none, false)
		                       : cli_lade_error(node->name, &err);
		cli_out_abandon(&out);
	}
	lade_zarr_selection_free(selection);
	return rc;
}
