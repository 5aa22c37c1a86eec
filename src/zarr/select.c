/*
 * select.c: selections, by numpy's rules, made into picks and points.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/try.h"
#include "zarr/select.h"

#include <stdlib.h>
#include <string.h>

#define LL(x)  ((long long)(x))
#define ULL(x) ((unsigned long long)(x))

/* No result has more bytes, so that offsets fit a ptrdiff_t. */
#define RESULT_MAX ((uint64_t)1 << 62)

/* An index of an axis; negative ones count from its end. */
static lade_status wrap(int64_t index, uint64_t size, size_t axis, uint64_t *out, lade_error *err)
{
	if (index >= 0 && (uint64_t)index < size) {
		*out = (uint64_t)index;
		return LADE_OK;
	}
	if (index < 0 && (uint64_t) - (index + 1) < size) {
		*out = size - 1 - (uint64_t) - (index + 1);
		return LADE_OK;
	}
	return lade_fail(err, LADE_E_RANGE, axis, "axis %zu: index %lld of an axis with %llu", axis,
	                 LL(index), ULL(size));
}

/* ---- slices ------------------------------------------------------------------------------ */

/* A bound of a slice, between low and high; axes have at most 2^63 - 1 elements. */
static int64_t bound(int64_t at, int64_t open, int64_t size, int64_t low, int64_t high)
{
	if (at == LADE_ZARR_OPEN)
		return open;
	if (at < 0)
		at += size;
	return at < low ? low : at > high ? high : at;
}

static lade_status slice(const lade_zarr_index *index, uint64_t axis_size, size_t axis,
                         lade__pick *pick, lade_error *err)
{
	int64_t size = (int64_t)axis_size, step = index->step ? index->step : 1;
	if (step == INT64_MIN)
		return lade_fail(err, LADE_E_ARG, axis, "axis %zu: a step of -2^63", axis);
	if (step > 0) {
		int64_t start = bound(index->start, 0, size, 0, size);
		int64_t stop = bound(index->stop, size, size, 0, size);
		pick->first = (uint64_t)start;
		pick->step = (uint64_t)step;
		pick->count = stop > start ? (uint64_t)(stop - start - 1) / pick->step + 1 : 0;
		return LADE_OK;
	}
	int64_t start = bound(index->start, size - 1, size, -1, size - 1);
	int64_t stop = bound(index->stop, -1, size, -1, size - 1);
	pick->step = (uint64_t)-step;
	pick->count = start > stop ? (uint64_t)(start - stop - 1) / pick->step + 1 : 0;
	pick->first = pick->count ? (uint64_t)start - (pick->count - 1) * pick->step : 0;
	pick->reversed = true;
	return LADE_OK;
}

/* The elements of chunks [first, first + count * step) of an axis: a slice of blocks. */
static lade_status blocks(const lade_zarr_index *index, const lade_zarr_axis *axis, size_t number,
                          lade__pick *pick, lade_error *err)
{
	lade_zarr_extent head, tail;
	lade__pick chunks = {.count = 1, .step = 1};
	lade_status status;
	if (index->kind == LADE_ZARR_AT)
		TRY(wrap(index->start, axis->chunk_count, number, &chunks.first, err));
	else if (index->kind == LADE_ZARR_SLICE)
		TRY(slice(index, axis->chunk_count, number, &chunks, err));
	else if (index->kind == LADE_ZARR_ALL)
		chunks.count = axis->chunk_count;
	else
		return lade_fail(err, LADE_E_ARG, number,
		                 "axis %zu: blocks are selected by slices and indices", number);
	if (chunks.step != 1 || chunks.reversed)
		return lade_fail(err, LADE_E_ARG, number, "axis %zu: blocks with a step of %lld",
		                 number, LL(index->step));
	*pick = (lade__pick){.step = 1};
	if (chunks.count == 0)
		return LADE_OK;
	TRY(lade_zarr_chunk_extent(axis, chunks.first, &head, err));
	TRY(lade_zarr_chunk_extent(axis, chunks.first + chunks.count - 1, &tail, err));
	pick->first = head.start;
	pick->count = tail.start + tail.used - head.start;
out:
	return status;
}

/* ---- lists ------------------------------------------------------------------------------- */

void lade__sort_by(const uint64_t *at, uint64_t *order, uint64_t *other, size_t count)
{
	size_t half = count / 2, i = 0, j = half;
	if (count < 2)
		return;
	lade__sort_by(at, order, other, half);
	lade__sort_by(at, order + half, other, count - half);
	if (at[order[half - 1]] <= at[order[half]])
		return;
	memcpy(other, order, half * sizeof *order);
	for (size_t k = 0; i < half; k++)
		order[k] = j < count && at[order[j]] < at[other[i]] ? order[j++] : other[i++];
}

/* Memory for 'count' numbers of 8 bytes, 'each' of them, which the selection keeps. */
static uint64_t *numbers(lade__selected *s, size_t slot, size_t count, size_t each, lade_error *err)
{
	size_t size;
	if (__builtin_mul_overflow(count, each, &size) || size > SIZE_MAX / 16)
		s->memory[slot] = NULL;
	else
		s->memory[slot] = malloc((size + 1) * sizeof(uint64_t));
	if (!s->memory[slot])
		lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu indices", count);
	return s->memory[slot];
}

/* Whether ascending entries are those of a slice: then the list is not needed. */
static bool make_slice(lade__pick *pick)
{
	uint64_t step = pick->count > 1 ? pick->at[1] - pick->at[0] : 1;
	bool forward = true, back = true;
	if (step == 0)
		return false;
	for (uint64_t i = 0; i < pick->count; i++) {
		if (i && pick->at[i] - pick->at[i - 1] != step)
			return false;
		forward = forward && pick->to[i] == i;
		back = back && pick->to[i] == pick->count - 1 - i;
	}
	if (!forward && !back)
		return false;
	pick->first = pick->count ? pick->at[0] : 0;
	pick->step = step;
	pick->reversed = !forward;
	pick->at = pick->to = NULL;
	return true;
}

static lade_status list(lade__selected *s, const lade_zarr_index *index, uint64_t size, size_t axis,
                        lade_error *err)
{
	lade__pick *pick = &s->pick[axis];
	size_t count = index->count;
	if (index->shape_ndim > 1)
		return lade_fail(err, LADE_E_ARG, axis,
		                 "axis %zu: a list of %zu axes, which only points may have", axis,
		                 index->shape_ndim);
	if (!index->list && count)
		return lade_fail(err, LADE_E_ARG, axis, "axis %zu: list is NULL", axis);
	uint64_t *at = numbers(s, axis, count, 4, err);
	if (!at)
		return LADE_E_NOMEM;
	uint64_t *order = at + count, *other = at + 2 * count, *sorted = at + 3 * count;
	for (size_t i = 0; i < count; i++) {
		lade_status status = wrap(index->list[i], size, axis, &at[i], err);
		if (status != LADE_OK)
			return status;
		order[i] = i;
	}
	lade__sort_by(at, order, other, count);
	for (size_t i = 0; i < count; i++)
		sorted[i] = at[order[i]];
	*pick = (lade__pick){.count = count, .step = 1, .at = sorted, .to = order};
	return LADE_OK;
}

static lade_status mask(lade__selected *s, const lade_zarr_index *index, uint64_t size, size_t axis,
                        lade_error *err)
{
	lade__pick *pick = &s->pick[axis];
	size_t count = 0, n = 0;
	if (index->count != size || (!index->mask && size))
		return lade_fail(err, LADE_E_ARG, axis,
		                 "axis %zu: a mask of %zu for an axis with %llu", axis,
		                 index->mask ? index->count : 0, ULL(size));
	for (size_t i = 0; i < index->count; i++)
		count += index->mask[i] != 0;
	uint64_t *at = numbers(s, axis, count, 2, err);
	if (!at)
		return LADE_E_NOMEM;
	for (size_t i = 0; i < index->count; i++)
		if (index->mask[i]) {
			at[n] = i;
			at[count + n] = n;
			n++;
		}
	*pick = (lade__pick){.count = count, .step = 1, .at = at, .to = at + count};
	return LADE_OK;
}

/* ---- axes -------------------------------------------------------------------------------- */

static lade_status select_axis(lade__selected *s, const lade_zarr_index *index, size_t axis,
                               lade_error *err)
{
	uint64_t size = s->array->axes[axis].size;
	lade__pick *pick = &s->pick[axis];
	lade_status status = LADE_OK;
	switch (index->kind) {
	case LADE_ZARR_ALL:
		pick->count = size;
		break;
	case LADE_ZARR_SLICE:
		status = slice(index, size, axis, pick, err);
		break;
	case LADE_ZARR_AT:
		pick->count = 1;
		pick->dropped = true;
		return wrap(index->start, size, axis, &pick->first, err);
	case LADE_ZARR_LIST:
		status = list(s, index, size, axis, err);
		break;
	case LADE_ZARR_MASK:
		status = mask(s, index, size, axis, err);
		break;
	default:
		return lade_fail(err, LADE_E_ARG, axis, "axis %zu: kind %d is unknown", axis,
		                 (int)index->kind);
	}
	if (status == LADE_OK && pick->at && !make_slice(pick))
		s->listed = true;
	return status;
}

static lade_status orthogonal(lade__selected *s, const lade_zarr_index *axes, bool by_blocks,
                              lade_error *err)
{
	for (size_t i = 0; i < s->ndim; i++) {
		lade_status status = by_blocks ? blocks(&axes[i], &s->array->axes[i], i,
		                                        &s->pick[i], err)
		                               : select_axis(s, &axes[i], i, err);
		if (status != LADE_OK)
			return status;
		if (s->pick[i].dropped)
			continue;
		s->axis_of[i] = s->result.ndim;
		s->result.shape[s->result.ndim++] = s->pick[i].count;
	}
	return LADE_OK;
}

/* ---- points ------------------------------------------------------------------------------ */

/* The shape that all lists are broadcast to. */
static lade_status broadcast(lade__selected *s, const lade_zarr_index *axes, lade_error *err)
{
	lade_zarr_shape *to = &s->result;
	for (size_t i = 0; i < s->ndim; i++) {
		const lade_zarr_index *index = &axes[i];
		uint64_t row = index->count, total = 1;
		size_t ndim = index->kind == LADE_ZARR_AT ? 0
		              : index->shape_ndim         ? index->shape_ndim
		                                          : 1;
		const uint64_t *shape = index->shape_ndim ? index->shape : &row;
		if ((index->kind != LADE_ZARR_AT && index->kind != LADE_ZARR_LIST) ||
		    ndim > LADE_DIMS_MAX || (ndim && (!shape || (row && !index->list))))
			return lade_fail(err, LADE_E_ARG, i,
			                 "axis %zu: points need a list or an index", i);
		for (; to->ndim < ndim; to->ndim++) {
			memmove(to->shape + 1, to->shape, to->ndim * sizeof *to->shape);
			to->shape[0] = 1;
		}
		for (size_t k = 0; k < ndim; k++) {
			uint64_t *at = &to->shape[to->ndim - ndim + k];
			if (*at != shape[k] && *at != 1 && shape[k] != 1)
				return lade_fail(err, LADE_E_ARG, i,
				                 "axis %zu: a list of %llu does not match %llu of "
				                 "the axes before", i, ULL(shape[k]), ULL(*at));
			*at = *at == 1 ? shape[k] : *at;
			if (__builtin_mul_overflow(total, shape[k], &total))
				total = UINT64_MAX;
		}
		if (ndim && total != row)
			return lade_fail(err, LADE_E_ARG, i,
			                 "axis %zu: a list of %llu, its shape has %llu", i,
			                 ULL(row), ULL(total));
	}
	return LADE_OK;
}

/* The entry of a list for each point in turn. */
static lade_status spread(lade__selected *s, const lade_zarr_index *index, size_t axis,
                          uint64_t count, lade_error *err)
{
	const lade_zarr_shape *to = &s->result;
	size_t ndim = index->kind == LADE_ZARR_AT ? 0 : index->shape_ndim ? index->shape_ndim : 1;
	uint64_t row = index->count, at[LADE_DIMS_MAX] = {0}, step[LADE_DIMS_MAX] = {0}, entry = 0;
	const uint64_t *shape = index->shape_ndim ? index->shape : &row;
	uint64_t stride = 1;
	for (size_t k = ndim; k-- > 0; stride *= shape[k])
		step[to->ndim - ndim + k] = shape[k] == 1 ? 0 : stride;
	for (uint64_t p = 0; p < count; p++) {
		lade_status status = wrap(ndim ? index->list[entry] : index->start,
		                          s->array->axes[axis].size, axis,
		                          &s->at[p * s->ndim + axis], err);
		if (status != LADE_OK)
			return status;
		for (size_t k = to->ndim; k-- > 0;) {
			entry += step[k];
			if (++at[k] < to->shape[k])
				break;
			entry -= step[k] * at[k];
			at[k] = 0;
		}
	}
	return LADE_OK;
}

/* The number of elements of a result; UINT64_MAX: too many. */
static uint64_t elements(const lade_zarr_shape *shape)
{
	uint64_t count = 1;
	for (size_t i = 0; i < shape->ndim; i++)
		if (shape->shape[i] == 0)
			return 0;
	for (size_t i = 0; i < shape->ndim; i++)
		if (__builtin_mul_overflow(count, shape->shape[i], &count))
			return UINT64_MAX;
	return count;
}

/* The tables of points, and their order so far. */
static lade_status take_points(lade__selected *s, uint64_t count, lade_error *err)
{
	s->points = s->listed = true;
	s->at = numbers(s, LADE_DIMS_MAX, count, s->ndim + 3, err);
	if (!s->at)
		return LADE_E_NOMEM;
	s->order = s->at + count * s->ndim;
	s->key = s->order + count;
	s->other = s->key + count;
	for (uint64_t i = 0; i < count; i++)
		s->order[i] = i;
	return LADE_OK;
}

static lade_status points(lade__selected *s, const lade_zarr_index *axes, lade_error *err)
{
	lade_status status = broadcast(s, axes, err);
	uint64_t count = elements(&s->result);
	if (status == LADE_OK)
		status = take_points(s, count, err);
	for (size_t i = 0; i < s->ndim && status == LADE_OK; i++)
		status = spread(s, &axes[i], i, count, err);
	return status;
}

/* A mask of the whole array. */
static lade_status where(lade__selected *s, const lade_zarr_selection *given, lade_error *err)
{
	uint64_t total = 1, at[LADE_DIMS_MAX] = {0};
	size_t count = 0, n = 0;
	for (size_t i = 0; i < s->ndim; i++)
		if (__builtin_mul_overflow(total, s->array->axes[i].size, &total))
			total = UINT64_MAX;
	if (given->mask_size != total || (!given->mask && total) || given->axis_count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "a mask of %zu for an array of %llu elements",
		                 given->mask ? given->mask_size : 0, ULL(total));
	for (size_t i = 0; i < total; i++)
		count += given->mask[i] != 0;
	s->result.ndim = 1;
	s->result.shape[0] = count;
	lade_status status = take_points(s, count, err);
	if (status != LADE_OK)
		return status;
	for (size_t i = 0; i < total; i++) {
		if (given->mask[i])
			memcpy(s->at + n++ * s->ndim, at, s->ndim * sizeof *at);
		for (size_t k = s->ndim; k-- > 0;) {
			if (++at[k] < s->array->axes[k].size)
				break;
			at[k] = 0;
		}
	}
	return LADE_OK;
}

/* ---- fields and results ------------------------------------------------------------------ */

/* The field of that name; a name with a dot is looked for as it is first. */
static const lade_zarr_type *find_field(const lade_zarr_type *type, const char *name, uint64_t *off)
{
	const char *dot = strchr(name, '.');
	for (size_t i = 0; i < type->field_count; i++)
		if (strcmp(type->fields[i].name, name) == 0) {
			*off += type->fields[i].off;
			return &type->fields[i].type;
		}
	for (; dot; dot = strchr(dot + 1, '.'))
		for (size_t i = 0; i < type->field_count; i++) {
			const lade_zarr_field *field = &type->fields[i];
			uint64_t inner = *off + field->off;
			const lade_zarr_type *found = NULL;
			if (strlen(field->name) == (size_t)(dot - name) &&
			    memcmp(field->name, name, (size_t)(dot - name)) == 0)
				found = find_field(&field->type, dot + 1, &inner);
			if (found) {
				*off = inner;
				return found;
			}
		}
	return NULL;
}

static lade_status finish(lade__selected *s, const char *field, lade_error *err)
{
	lade_zarr_shape *r = &s->result;
	const lade_zarr_type *type = &s->array->type;
	if (field)
		type = find_field(type, field, &s->field_off);
	if (!type)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                 "the elements have no field '%.100s'", field);
	r->type = *type;
	r->elem_size = (size_t)type->size;
	r->count = elements(r);
	if (r->count > RESULT_MAX ||
	    __builtin_mul_overflow(r->count, (uint64_t)r->elem_size, &r->size) ||
	    r->size > RESULT_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a result of %llu elements of %zu bytes, at most 2^62 bytes",
		                 ULL(r->count), r->elem_size);
	return LADE_OK;
}

/* The caller's indices, one for each axis of the array; the others are whole. */
static lade_status read_axes(const lade_zarr_selection *given, size_t ndim, lade_zarr_index *axes,
                             lade_error *err)
{
	size_t size = given->index_size;
	if (given->axis_count > ndim || (given->axis_count && !given->axes))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "a selection of %zu axes for an array of %zu",
		                 given->axes ? given->axis_count : 0, ndim);
	lade_status status = lade__size_given(&size, LADE__SIZE_TO(lade_zarr_index, shape),
	                                      "index_size", err);
	for (size_t i = 0; i < given->axis_count && status == LADE_OK; i++) {
		const unsigned char *from = (const unsigned char *)given->axes + i * size;
		size_t bad = lade__struct_copy(&axes[i], sizeof axes[i], from, size);
		if (bad != SIZE_MAX)
			status = lade_fail(err, LADE_E_ARG, bad,
			                   "axis %zu: a field that this version does not have", i);
	}
	return status;
}

lade_status lade__select(const lade_zarr *node, const lade_zarr_selection *caller,
                         lade__selected *out, lade_error *err)
{
	lade_zarr_selection given = {.struct_size = sizeof given};
	lade_zarr_index axes[LADE_DIMS_MAX] = {0};
	lade_status status;
	memset(out, 0, sizeof *out);
	if (!node || !node->is_array)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 node ? "the node is no array" : "array is NULL");
	if (caller)
		TRY(lade__options_read(&given, sizeof given, caller, "selection", err));
	out->array = &node->array;
	out->ndim = node->array.ndim;
	out->result.struct_size = sizeof out->result;
	for (size_t i = 0; i < out->ndim; i++)
		out->pick[i].step = 1;
	TRY(read_axes(&given, out->ndim, axes, err));
	if (given.mode == LADE_ZARR_ORTHOGONAL || given.mode == LADE_ZARR_BLOCKS)
		status = orthogonal(out, axes, given.mode == LADE_ZARR_BLOCKS, err);
	else if (given.mode == LADE_ZARR_POINTS)
		status = points(out, axes, err);
	else if (given.mode == LADE_ZARR_WHERE)
		status = where(out, &given, err);
	else
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "selection: mode %d is unknown",
		                   (int)given.mode);
	if (status == LADE_OK)
		status = finish(out, given.field, err);
out:
	if (status != LADE_OK)
		lade__selected_free(out);
	return status;
}

void lade__selected_free(lade__selected *selected)
{
	for (size_t i = 0; i <= LADE_DIMS_MAX; i++) {
		free(selected->memory[i]);
		selected->memory[i] = NULL;
	}
}

lade_status lade_zarr_selection_shape(const lade_zarr *array, const lade_zarr_selection *selection,
                                      lade_zarr_shape *out, lade_error *err)
{
	lade__selected selected;
	lade_zarr_shape own;
	lade_status status = lade__options_read(&own, sizeof own, out, "shape", err);
	if (status == LADE_OK)
		status = lade__select(array, selection, &selected, err);
	if (status != LADE_OK)
		return status;
	size_t size = out->struct_size;
	selected.result.struct_size = size;
	lade__struct_copy(out, size, &selected.result, sizeof selected.result);
	lade__selected_free(&selected);
	return LADE_OK;
}
