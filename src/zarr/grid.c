/*
 * grid.c: shapes, chunk grids, and the keys of chunks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/zarr.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ULL(x) ((unsigned long long)(x))

/* ---- reading ------------------------------------------------------------------------- */

lade_status lade__zarr_shape(const scan *s, uint32_t at)
{
	lade_zarr_array *array = &s->node->array;
	if (lade__json_type(s->doc, at) != JSON_ARRAY)
		return BAD(s, at, "want a list of sizes");
	array->ndim = lade__json_count(s->doc, at);
	if (array->ndim > LADE_DIMS_MAX)
		return lade__json_fail(s->doc, at, LADE_E_LIMIT, s->err, "%zu axes, at most %d",
		                       array->ndim, LADE_DIMS_MAX);
	lade_zarr_axis *axes = lade__arena(&s->node->arena, array->ndim + 1, sizeof *axes);
	if (!axes)
		return lade__scan_nomem(s, "axes");
	array->axes = axes;
	for (uint32_t c = lade__json_child(s->doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, at, c), axes++)
		if (!lade__json_u64(s->doc, c, false, &axes->size) || axes->size > INT64_MAX)
			return BAD(s, c, "want a size from 0 to 2^63 - 1");
	return LADE_OK;
}

/* A chunk's length.  As zarr-python 3.4.2 reads what others wrote: true as 1, and 4.0 as 4 in a
 * list of edges. */
static bool read_length(const scan *s, uint32_t at, bool edge, uint64_t *out)
{
	*out = 1;
	return lade__json_type(s->doc, at) == JSON_TRUE ||
	       (lade__json_u64(s->doc, at, edge, out) && *out >= 1 && *out <= INT64_MAX);
}

static lade_status bad_length(const scan *s, uint32_t at)
{
	return BAD(s, at, "want a chunk size from 1 to 2^63 - 1");
}

/* One length for the whole axis.  0 and false are read as 1: no chunk can be stored under them. */
static lade_status regular_axis(const scan *s, uint32_t at, lade_zarr_axis *axis)
{
	uint64_t zero;
	if (lade__json_type(s->doc, at) == JSON_FALSE ||
	    (lade__json_u64(s->doc, at, false, &zero) && zero == 0))
		axis->chunk_size = 1;
	else if (!read_length(s, at, false, &axis->chunk_size))
		return bad_length(s, at);
	axis->chunk_count = axis->size / axis->chunk_size + (axis->size % axis->chunk_size != 0);
	return LADE_OK;
}

/* An edge, or [edge, count]. */
static lade_status read_run(const scan *s, uint32_t at, lade_zarr_run *run)
{
	uint32_t length = at, count = JSON_NONE;
	run->count = 1;
	if (lade__json_type(s->doc, at) == JSON_ARRAY) {
		if (lade__json_count(s->doc, at) != 2)
			return BAD(s, at, "want a size or [size, count]");
		length = lade__json_child(s->doc, at, 0);
		count = lade__json_child(s->doc, at, length);
	}
	if (!read_length(s, length, true, &run->length))
		return bad_length(s, length);
	if (count != JSON_NONE && (!lade__json_u64(s->doc, count, false, &run->count) ||
	                           run->count < 1 || run->count > INT64_MAX))
		return BAD(s, count, "want a count from 1 to 2^63 - 1");
	return LADE_OK;
}

/* A list of edges; the sum must reach the axis. */
static lade_status irregular_axis(const scan *s, uint32_t at, lade_zarr_axis *axis)
{
	size_t count = lade__json_count(s->doc, at);
	uint64_t first = 0, start = 0, product, last;
	lade_zarr_run *run = lade__arena(&s->node->arena, count + 1, sizeof *run);
	if (!run)
		return lade__scan_nomem(s, "chunk edges");
	if (count == 0)
		return BAD(s, at, "no chunk sizes");
	axis->runs = run;
	axis->run_count = count;
	for (uint32_t c = lade__json_child(s->doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, at, c), run++) {
		lade_status status = read_run(s, c, run);
		if (status != LADE_OK)
			return status;
		run->first = first;
		run->start = start;
		if (start < axis->size) {
			uint64_t left = axis->size - start;
			uint64_t needed = left / run->length + (left % run->length != 0);
			axis->chunk_count = first + (needed < run->count ? needed : run->count);
		}
		if (__builtin_mul_overflow(run->length, run->count, &product) ||
		    __builtin_add_overflow(start, product, &start) ||
		    __builtin_add_overflow(first, run->count, &first) || start > INT64_MAX)
			return BAD(s, c, "chunk sizes with a sum above 2^63 - 1");
	}
	last = start;
	if (last < axis->size)
		return BAD(s, at, "chunk sizes with the sum %llu, less than the shape's %llu",
		           ULL(last), ULL(axis->size));
	return LADE_OK;
}

/* One entry for each axis; 'edges': lists of edges are allowed. */
static lade_status read_axes(const scan *s, uint32_t at, bool edges)
{
	lade_zarr_axis *axis = (lade_zarr_axis *)(uintptr_t)s->node->array.axes;
	size_t ndim = s->node->array.ndim, count = lade__json_count(s->doc, at);
	if (lade__json_type(s->doc, at) != JSON_ARRAY)
		return BAD(s, at, "want a list of chunk sizes");
	if (count != ndim)
		return BAD(s, at, "%zu chunk sizes for %zu axes", count, ndim);
	for (uint32_t c = lade__json_child(s->doc, at, 0); c != JSON_NONE;
	     c = lade__json_child(s->doc, at, c), axis++) {
		bool list = edges && lade__json_type(s->doc, c) == JSON_ARRAY;
		lade_status status = list ? irregular_axis(s, c, axis) : regular_axis(s, c, axis);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

lade_status lade__zarr_grid_regular(const scan *s, uint32_t at)
{
	return read_axes(s, at, false);
}

lade_status lade__zarr_grid_v3(const scan *s, uint32_t at)
{
	uint32_t name, config;
	lade_status status = lade__scan_named(s, at, true, &name, &config);
	if (status != LADE_OK)
		return status;
	if (lade__json_is(s->doc, name, "regular")) {
		/* zarr-python 3.2 wrote lists of edges here, beside plain sizes. */
		uint32_t sizes = lade__json_get(s->doc, config, "chunk_shape");
		size_t lists = 0;
		for (uint32_t c = lade__json_child(s->doc, sizes, 0); c != JSON_NONE;
		     c = lade__json_child(s->doc, sizes, c))
			lists += lade__json_type(s->doc, c) == JSON_ARRAY;
		if (sizes == JSON_NONE)
			return BAD(s, config, "no chunk_shape");
		return read_axes(s, sizes, lists && lists < s->node->array.ndim);
	}
	if (!lade__json_is(s->doc, name, "rectilinear"))
		return UNKNOWN(s, name, "no known chunk grid");
	uint32_t kind = lade__json_get(s->doc, config, "kind");
	uint32_t sizes = lade__json_get(s->doc, config, "chunk_shapes");
	if (!lade__json_is(s->doc, kind, "inline"))
		return BAD(s, kind == JSON_NONE ? config : kind, "want the kind \"inline\"");
	if (sizes == JSON_NONE)
		return BAD(s, config, "no chunk_shapes");
	return read_axes(s, sizes, true);
}

lade_status lade__zarr_keys_v3(const scan *s, uint32_t at)
{
	uint32_t name, config;
	lade_status status = lade__scan_named(s, at, false, &name, &config);
	if (status != LADE_OK)
		return status;
	s->node->key_prefix = lade__json_is(s->doc, name, "default");
	if (!s->node->key_prefix && !lade__json_is(s->doc, name, "v2"))
		return UNKNOWN(s, name, "no known chunk key encoding");
	s->node->separator = s->node->key_prefix ? '/' : '.';
	uint32_t separator = lade__json_get(s->doc, config, "separator");
	if (config != JSON_NONE)
		status = lade__scan_members(s, config, "separator ");
	if (status != LADE_OK)
		return status;
	if (separator == JSON_NONE)
		separator = lade__json_get(s->doc, at, "separator"); /* early writers */
	if (separator == JSON_NONE)
		return LADE_OK;
	s->node->separator = lade__json_is(s->doc, separator, "/") ? '/' : '.';
	if (s->node->separator == '.' && !lade__json_is(s->doc, separator, "."))
		return BAD(s, separator, "want \"/\" or \".\"");
	return LADE_OK;
}

/* ---- chunks -------------------------------------------------------------------------- */

/* The run of a chunk or of an element; there is one. */
static const lade_zarr_run *find_run(const lade_zarr_axis *axis, uint64_t at, bool element)
{
	size_t low = 0, high = axis->run_count;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		const lade_zarr_run *run = &axis->runs[middle];
		if ((element ? run->start : run->first) <= at)
			low = middle;
		else
			high = middle;
	}
	return &axis->runs[low];
}

lade_status lade_zarr_chunk_extent(const lade_zarr_axis *axis, uint64_t chunk,
                                   lade_zarr_extent *out, lade_error *err)
{
	if (!axis || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 axis ? "out" : "axis");
	if (chunk >= axis->chunk_count)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "chunk %llu of an axis with %llu chunks", ULL(chunk),
		                 ULL(axis->chunk_count));
	if (axis->chunk_size) {
		out->size = axis->chunk_size;
		out->start = chunk * axis->chunk_size; /* less than axis->size */
	} else {
		const lade_zarr_run *run = find_run(axis, chunk, false);
		out->size = run->length;
		out->start = run->start + (chunk - run->first) * run->length;
	}
	out->used = axis->size - out->start < out->size ? axis->size - out->start : out->size;
	return LADE_OK;
}

lade_status lade_zarr_chunk_find(const lade_zarr_axis *axis, uint64_t at, uint64_t *chunk,
                                 lade_error *err)
{
	if (!axis || !chunk)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 axis ? "chunk" : "axis");
	if (at >= axis->size)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "element %llu of an axis with %llu elements", ULL(at),
		                 ULL(axis->size));
	if (axis->chunk_size) {
		*chunk = at / axis->chunk_size;
		return LADE_OK;
	}
	const lade_zarr_run *run = find_run(axis, at, true);
	*chunk = run->first + (at - run->start) / run->length;
	return LADE_OK;
}

lade_status lade_zarr_chunk_key(const lade_zarr *array, const uint64_t *index,
                                char key[LADE_KEY_MAX + 1], lade_error *err)
{
	size_t n = 0;
	if (!array || !key || !array->is_array || (array->array.ndim && !index))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s",
		                 !array || !array->is_array ? "the node is no array"
		                                            : "index or key is NULL");
	size_t ndim = array->array.ndim;
	for (size_t i = 0; i < ndim; i++)
		if (index[i] >= array->array.axes[i].chunk_count)
			return lade_fail(err, LADE_E_RANGE, i,
			                 "chunk %llu of axis %zu, which has %llu chunks",
			                 ULL(index[i]), i, ULL(array->array.axes[i].chunk_count));
	const char *slash = array->path[0] ? "/" : "";
	n = (size_t)snprintf(key, LADE_KEY_MAX + 1, "%s%s%s", array->path, slash,
	                     array->key_prefix ? "c" : ndim ? "" : "0");
	for (size_t i = 0; i < ndim && n <= LADE_KEY_MAX; i++) {
		char mark[2] = {i || array->key_prefix ? array->separator : 0, 0};
		n += (size_t)snprintf(key + n, LADE_KEY_MAX + 1 - n, "%s%" PRIu64, mark, index[i]);
	}
	if (n > LADE_KEY_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the key of a chunk has more than %d bytes", LADE_KEY_MAX);
	return LADE_OK;
}
