/*
 * select_text.c: selections as text, such as "[0:10, :, 5]".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A selection and its tables. */
typedef struct parsed {
	lade_zarr_selection selection;
	lade_zarr_index axes[LADE_DIMS_MAX];
	int64_t list[];
} parsed;

typedef struct reader {
	const char *text;
	size_t at, end; /* of what is inside the outer brackets */
	parsed *out;
	size_t list_count;
	lade_error *err;
} reader;

static lade_status bad(const reader *r, const char *want)
{
	return lade_fail(r->err, LADE_E_ARG, r->at, "selection '%.80s', character %zu: want %s",
	                 r->text, r->at, want);
}

static char look(reader *r)
{
	while (r->at < r->end && (r->text[r->at] == ' ' || r->text[r->at] == '\t'))
		r->at++;
	return r->at < r->end ? r->text[r->at] : 0;
}

static bool take(reader *r, char c)
{
	if (look(r) != c)
		return false;
	r->at++;
	return true;
}

static lade_status number(reader *r, int64_t *out)
{
	char c = look(r), *end;
	if (c != '-' && c != '+' && (c < '0' || c > '9'))
		return bad(r, "an integer");
	errno = 0;
	long long value = strtoll(r->text + r->at, &end, 10);
	if (errno || value == INT64_MIN || end == r->text + r->at + (c == '-' || c == '+'))
		return bad(r, "an integer of 64 bits");
	r->at = (size_t)(end - r->text);
	*out = value;
	return LADE_OK;
}

static bool has_number(reader *r)
{
	char c = look(r);
	return c == '-' || c == '+' || (c >= '0' && c <= '9');
}

/* [1, 3, 3] */
static lade_status list(reader *r, lade_zarr_index *index)
{
	*index = (lade_zarr_index){.kind = LADE_ZARR_LIST, .list = r->out->list + r->list_count};
	while (!take(r, ']')) {
		lade_status status = number(r, &r->out->list[r->list_count]);
		if (status != LADE_OK)
			return status;
		r->list_count++;
		index->count++;
		if (!take(r, ',') && look(r) != ']')
			return bad(r, "',' or ']'");
	}
	return LADE_OK;
}

/* 5, or 1:9, or ::-1 */
static lade_status number_or_slice(reader *r, lade_zarr_index *index)
{
	int64_t *const bounds[3] = {&index->start, &index->stop, &index->step};
	size_t colons = 0;
	*index = (lade_zarr_index){.kind = LADE_ZARR_SLICE, .start = LADE_ZARR_OPEN,
	                           .stop = LADE_ZARR_OPEN, .step = 1};
	for (;;) {
		if (has_number(r)) {
			lade_status status = number(r, bounds[colons]);
			if (status != LADE_OK)
				return status;
		} else if (colons == 0 && look(r) != ':') {
			return bad(r, "an index, a slice, a list or '...'");
		}
		if (colons == 2 || !take(r, ':'))
			break;
		colons++;
	}
	if (colons == 0)
		index->kind = LADE_ZARR_AT;
	return index->step ? LADE_OK : bad(r, "a step that is not 0");
}

static lade_status items(reader *r, size_t ndim)
{
	size_t count = 0, dots = SIZE_MAX;
	lade_zarr_index *axes = r->out->axes;
	while (look(r)) {
		lade_status status = LADE_OK;
		if (r->end - r->at >= 3 && memcmp(r->text + r->at, "...", 3) == 0) {
			if (dots != SIZE_MAX)
				return bad(r, "'...' only once");
			dots = count;
			r->at += 3;
		} else if (count == ndim) {
			return lade_fail(r->err, LADE_E_ARG, r->at,
			                 "selection '%.80s': more axes than the array's %zu",
			                 r->text, ndim);
		} else {
			status = take(r, '[') ? list(r, &axes[count])
			                      : number_or_slice(r, &axes[count]);
			count++;
		}
		if (status != LADE_OK)
			return status;
		if (!take(r, ',') && look(r))
			return bad(r, "','");
	}
	if (dots != SIZE_MAX) {
		size_t more = ndim - count;
		memmove(axes + dots + more, axes + dots, (count - dots) * sizeof *axes);
		memset(axes + dots, 0, more * sizeof *axes);
		count = ndim;
	}
	r->out->selection.axis_count = count;
	return LADE_OK;
}

/* Leaves out brackets that are around all of the text. */
static void strip(reader *r)
{
	int depth = 0;
	while (r->end > 0 && (r->text[r->end - 1] == ' ' || r->text[r->end - 1] == '\n'))
		r->end--;
	if (look(r) != '[' || r->text[r->end - 1] != ']')
		return;
	for (size_t i = r->at; i + 1 < r->end; i++) {
		depth += (r->text[i] == '[') - (r->text[i] == ']');
		if (depth == 0)
			return;
	}
	r->at++;
	r->end--;
}

lade_status lade_zarr_selection_parse(const lade_zarr *array, const char *text,
                                      lade_zarr_selection **out, lade_error *err)
{
	if (!array || !text || !out || !array->is_array)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s",
		                 !array ? "array is NULL"
		                 : !text ? "text is NULL"
		                 : !out  ? "out is NULL"
		                         : "the node is no array");
	size_t size = strlen(text);
	*out = NULL;
	parsed *memory = calloc(1, sizeof *memory + (size / 2 + 1) * sizeof memory->list[0]);
	if (!memory)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a selection");
	memory->selection = (lade_zarr_selection){.struct_size = sizeof memory->selection,
	                                          .axes = memory->axes,
	                                          .index_size = sizeof memory->axes[0]};
	reader r = {.text = text, .end = size, .out = memory, .err = err};
	strip(&r);
	lade_status status = items(&r, array->array.ndim);
	if (status != LADE_OK) {
		free(memory);
		return status;
	}
	*out = &memory->selection;
	return LADE_OK;
}

void lade_zarr_selection_free(lade_zarr_selection *selection)
{
	free(selection);
}
