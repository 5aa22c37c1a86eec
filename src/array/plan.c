/*
 * plan.c: checks a layout and makes the plan of it.
 *
 * All sums are made of 128-bit products of 64-bit numbers, each compared with the span or the
 * largest size before the next, so that nothing overflows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/plan.h"

#include "array/gpu.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

typedef unsigned __int128 wide;

#define SIZE_MOST (SIZE_MAX / 4)

/* Differences of indices that are tried for shared bytes: some tens of microseconds. */
#define TRIED 4096

/* A layout's axes with the defaults filled in. */
typedef struct axes {
	size_t shape[LADE_DIMS_MAX], start[LADE_DIMS_MAX], step[LADE_DIMS_MAX];
	size_t count[LADE_DIMS_MAX];     /* by source axis */
	ptrdiff_t stride[LADE_DIMS_MAX]; /* of the span, by source axis */
	size_t part_off, part_size;
	bool empty;
} axes;

static size_t magnitude(ptrdiff_t stride)
{
	return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

static lade_status check_shape(const lade_layout *l, lade_error *err)
{
	if (l->ndim > LADE_DIMS_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "layout: %zu dimensions, at most %d", l->ndim, LADE_DIMS_MAX);
	if (l->ndim && !l->shape)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "layout: shape is NULL for %zu dimensions", l->ndim);
	if (l->elem_size == 0)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "layout: elem_size is 0");
	return LADE_OK;
}

static lade_status take_part(const lade_layout *l, axes *x, lade_error *err)
{
	if (l->part_off > l->elem_size || l->part_size > l->elem_size - l->part_off ||
	    l->part_off == l->elem_size)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "layout: a part of %zu bytes from %zu on, elements have %zu",
		                 l->part_size, l->part_off, l->elem_size);
	x->part_off = l->part_off;
	x->part_size = l->part_size ? l->part_size : l->elem_size - l->part_off;
	if (l->swap_size > 1 && x->part_size % l->swap_size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "layout: swap_size %zu does not divide parts of %zu bytes",
		                 l->swap_size, x->part_size);
	return LADE_OK;
}

static lade_status take_box(const lade_layout *l, axes *x, lade_error *err)
{
	for (size_t a = 0; a < l->ndim; a++) {
		size_t shape = l->shape[a], start = l->start ? l->start[a] : 0;
		size_t step = l->step ? l->step[a] : 1;
		if (step == 0)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "layout: the step of axis %zu is 0", a);
		if (start > shape)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "layout: axis %zu starts at %zu, the shape has %zu", a,
			                 start, shape);
		size_t there = start < shape ? (shape - start - 1) / step + 1 : 0;
		size_t count = l->count ? l->count[a] : there;
		if (count > there)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "layout: axis %zu takes %zu indices from %zu on in steps "
			                 "of %zu, the shape of %zu has %zu",
			                 a, count, start, step, shape, there);
		x->shape[a] = shape;
		x->start[a] = start;
		x->step[a] = step;
		x->count[a] = count;
		x->empty |= count == 0;
	}
	return LADE_OK;
}

/* The strides by source axis, and that 'order' is a permutation. */
static lade_status take_strides(const lade_layout *l, axes *x, lade_error *err)
{
	uint32_t seen = 0;
	wide next = x->part_size;
	for (size_t d = l->ndim; d-- > 0;) {
		size_t a = l->order ? l->order[d] : d;
		if (a >= l->ndim || (seen >> a & 1))
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "layout: order[%zu] is %zu, which is no axis of %zu or "
			                 "comes twice",
			                 d, a, l->ndim);
		seen |= 1u << a;
		if (!l->strides && next > SIZE_MOST && x->count[a] > 1 && !x->empty)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "layout: the box's bytes overflow");
		x->stride[a] = l->strides ? l->strides[d]
		               : (ptrdiff_t)(next <= SIZE_MOST ? next : SIZE_MOST);
		next *= x->count[a] && next <= SIZE_MOST ? x->count[a] : 1;
	}
	return LADE_OK;
}

/* What the layout refuses for the one direction or the other. */
static lade_status check_direction(const lade_layout *l, lade_direction direction, const axes *x,
                                   lade_error *err)
{
	if (direction == LADE_DECODE) {
		for (size_t a = 0; a < l->ndim; a++)
			if (x->count[a] > 1 && x->stride[a] == 0)
				return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
				                 "layout: a stride of 0 for the %zu indices of "
				                 "source axis %zu",
				                 x->count[a], a);
		return LADE_OK;
	}
	for (size_t a = 0; a < l->ndim; a++)
		if (x->count[a] != x->shape[a])
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "layout: encoding takes the whole chunk, axis %zu has "
			                 "%zu of %zu indices",
			                 a, x->count[a], x->shape[a]);
	if (x->part_size != l->elem_size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "layout: encoding takes whole elements, the part has %zu of %zu "
		                 "bytes",
		                 x->part_size, l->elem_size);
	return LADE_OK;
}

/* The axes of two indices or more, the least stride first. */
typedef struct nest {
	size_t count, part, tries;
	size_t most[LADE_DIMS_MAX], stride[LADE_DIMS_MAX]; /* indices but the first; magnitude */
	size_t reach[LADE_DIMS_MAX]; /* what the axes before come to at most */
	size_t source[LADE_DIMS_MAX];
	__int128 by[LADE_DIMS_MAX]; /* how two indices differ that share bytes */
} nest;

/* Whether each axis steps over all that those before it cover: then no two elements meet. */
static bool make_nest(const lade_layout *l, const axes *x, nest *n)
{
	size_t reach = 0;
	bool apart = true;
	n->count = 0;
	n->part = x->part_size;
	n->tries = TRIED;
	for (size_t a = 0; a < l->ndim; a++) {
		size_t stride = magnitude(x->stride[a]), at = n->count;
		if (x->count[a] < 2)
			continue;
		for (; at && n->stride[at - 1] > stride; at--) {
			n->most[at] = n->most[at - 1];
			n->stride[at] = n->stride[at - 1];
			n->source[at] = n->source[at - 1];
		}
		n->most[at] = x->count[a] - 1;
		n->stride[at] = stride;
		n->source[at] = a;
		n->count++;
	}
	/* The span holds them all together. */
	for (size_t i = 0; i < n->count; i++) {
		n->reach[i] = reach;
		apart &= n->stride[i] >= n->part && n->stride[i] - n->part >= reach;
		reach += n->stride[i] * n->most[i];
	}
	return apart;
}

/*
 * Whether the first 'level' axes bring two elements that are 'off' bytes apart so near that they
 * share bytes: tries all differences of indices that can, as far as the tries go.  'differ': their
 * indices on the other axes are not the same.
 */
static bool meet(nest *n, size_t level, __int128 off, bool differ)
{
	if (level == 0)
		return differ;
	size_t i = level - 1;
	__int128 stride = n->stride[i], near = (__int128)n->reach[i] + n->part - 1;
	__int128 most = n->most[i], from = differ ? -most : 0, to = most;
	/* |off + by * stride| <= near; the numerators are made positive to round down. */
	if (off + to * stride > near)
		to = near >= off ? (near - off) / stride : -((off - near + stride - 1) / stride);
	if (off + from * stride < -near)
		from = -near - off > 0 ? (-near - off + stride - 1) / stride
		                       : -((near + off) / stride);
	for (; from <= to && n->tries; from++) {
		n->tries--;
		n->by[i] = from;
		if (meet(n, i, off + from * stride, differ || from != 0))
			return true;
	}
	return false;
}

static lade_status check_overlap(const lade_layout *l, const axes *x, lade_error *err)
{
	nest n;
	char text[160] = "";
	size_t at = 0;
	if (make_nest(l, x, &n) || !meet(&n, n.count, 0, false))
		return LADE_OK;
	for (size_t i = 0; i < n.count && at < sizeof text; i++) {
		ptrdiff_t stride = x->stride[n.source[i]];
		long long by = (long long)(stride < 0 ? -n.by[i] : n.by[i]);
		if (by)
			at += (size_t)snprintf(text + at, sizeof text - at,
			                       "%s%lld on source axis %zu (stride %td)",
			                       at ? ", " : "", by, n.source[i], stride);
	}
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
	                 "layout: elements of %zu bytes share bytes where their indices differ by "
	                 "%s",
	                 x->part_size, text);
}

/* The bytes of the span that are touched. */
static lade_status check_span(const lade_layout *l, size_t span_size, const axes *x,
                              lade__plan *plan, lade_error *err)
{
	wide below = 0, above = (wide)l->offset + x->part_size;
	span_size = span_size < SIZE_MOST ? span_size : SIZE_MOST; /* no memory has more */
	for (size_t a = 0; a < l->ndim; a++) {
		wide reach = (wide)magnitude(x->stride[a]) * (x->count[a] - 1);
		wide *side = x->stride[a] < 0 ? &below : &above;
		*side += reach;
		if (below > l->offset)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "layout: source axis %zu goes below the span: "
			                 "offset %zu, stride %td, %zu indices",
			                 a, l->offset, x->stride[a], x->count[a]);
		if (above > span_size)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "layout: source axis %zu ends behind the span of %zu "
			                 "bytes: offset %zu, stride %td, %zu indices",
			                 a, span_size, l->offset, x->stride[a], x->count[a]);
	}
	if (above > span_size)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "layout: %zu bytes from %zu on, the span has %zu", x->part_size,
		                 l->offset, span_size);
	plan->span_first = l->offset - (size_t)below;
	plan->span_end = (size_t)above;
	return LADE_OK;
}

/* Drops axes of one index and merges those that are contiguous on both sides. */
static void merge_axes(const lade_layout *l, const axes *x, const size_t *chunk_stride,
                       lade__plan *plan)
{
	plan->run = x->part_size;
	plan->swap = l->swap_size > 1 ? l->swap_size : 0;
	for (size_t a = 0; a < l->ndim; a++) {
		lade__plan_axis axis = {x->count[a], (ptrdiff_t)(chunk_stride[a] * x->step[a]),
		                        x->stride[a]};
		if (axis.count == 1)
			continue;
		lade__plan_axis *outer = plan->ndim ? &plan->axis[plan->ndim - 1] : NULL;
		if (outer && (wide)outer->chunk == (wide)axis.chunk * axis.count &&
		    (__int128)outer->span == (__int128)axis.span * (__int128)axis.count)
			*outer = (lade__plan_axis){outer->count * axis.count, axis.chunk,
			                           axis.span};
		else
			plan->axis[plan->ndim++] = axis;
	}
	lade__plan_axis *inner = plan->ndim ? &plan->axis[plan->ndim - 1] : NULL;
	if (inner && (size_t)inner->chunk == plan->run && inner->span == inner->chunk) {
		plan->run *= inner->count;
		plan->ndim--;
	}
}

/* An empty chunk has no bytes whatever its other axes are. */
static lade_status chunk_bytes(const lade_layout *l, const axes *x, size_t *chunk_stride,
                               size_t *size, lade_error *err)
{
	wide total = l->elem_size;
	bool nothing = false;
	for (size_t a = 0; a < l->ndim; a++)
		nothing |= x->shape[a] == 0;
	*size = 0;
	for (size_t a = l->ndim; a-- > 0 && !nothing;) {
		if (total > SIZE_MOST)
			break;
		chunk_stride[a] = (size_t)total;
		total *= x->shape[a];
	}
	if (!nothing && total > SIZE_MOST)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "layout: the bytes of the chunk overflow");
	*size = nothing ? 0 : (size_t)total;
	return LADE_OK;
}

/* Reads a layout, of this version or another, and its axes. */
static lade_status read_axes(const lade_layout *given, lade_layout *layout, axes *x,
                             lade_error *err)
{
	lade_status status = lade__options_read(layout, sizeof *layout, given, "layout", err);
	x->empty = false;
	if (status == LADE_OK)
		status = check_shape(layout, err);
	if (status == LADE_OK)
		status = take_part(layout, x, err);
	if (status == LADE_OK)
		status = take_box(layout, x, err);
	return status;
}

lade_status lade__plan_make(const lade_layout *given, lade_direction direction, size_t span_size,
                            lade__plan *plan, lade_error *err)
{
	axes x;
	lade_layout own, *layout = &own;
	size_t chunk_stride[LADE_DIMS_MAX];
	lade_status status = read_axes(given, layout, &x, err);
	plan->ndim = plan->size = plan->run = plan->swap = 0;
	plan->chunk_off = plan->span_off = plan->first = plan->end = 0;
	plan->span_first = plan->span_end = 0;
	if (status == LADE_OK)
		status = take_strides(layout, &x, err);
	if (status == LADE_OK)
		status = check_direction(layout, direction, &x, err);
	if (status == LADE_OK)
		status = chunk_bytes(layout, &x, chunk_stride, &plan->chunk_size, err);
	if (status != LADE_OK || x.empty)
		return status;
	status = check_span(layout, span_size, &x, plan, err);
	if (status == LADE_OK && direction == LADE_DECODE)
		status = check_overlap(layout, &x, err);
	if (status != LADE_OK)
		return status;
	plan->size = x.part_size;
	plan->chunk_off = x.part_off;
	plan->span_off = layout->offset;
	for (size_t a = 0; a < layout->ndim; a++) {
		plan->size *= x.count[a]; /* a part of the chunk's bytes */
		plan->chunk_off += x.start[a] * chunk_stride[a];
		plan->end += (x.count[a] - 1) * x.step[a] * chunk_stride[a];
	}
	plan->first = plan->chunk_off;
	plan->end += plan->chunk_off + x.part_size;
	merge_axes(layout, &x, chunk_stride, plan);
	return LADE_OK;
}

lade_status lade__plan_box(const lade_layout *given, size_t span_size, lade_layout *to_box,
                           lade__plan *to_span, lade_error *err)
{
	axes x;
	size_t shape[LADE_DIMS_MAX];
	lade_status status = read_axes(given, to_box, &x, err);
	if (status != LADE_OK)
		return status;
	lade_layout box = {.struct_size = sizeof box, .elem_size = x.part_size,
	                   .ndim = to_box->ndim, .shape = shape, .strides = to_box->strides,
	                   .offset = to_box->offset};
	for (size_t d = 0; d < box.ndim; d++) {
		size_t a = to_box->order ? to_box->order[d] : d;
		shape[d] = a < box.ndim ? x.count[a] : 0; /* it was checked */
	}
	to_box->strides = NULL;
	to_box->offset = 0;
	return lade__plan_make(&box, LADE_DECODE, span_size, to_span, err);
}

lade_status lade__grid_make(const lade_layout *given, lade_direction direction, bool boxes,
                            lade_grid *grid, lade_grid_axis *axis, lade_error *err)
{
	axes x;
	lade_layout l;
	lade__plan plan;
	size_t chunk_stride[LADE_DIMS_MAX] = {0}, chunk = 0;
	lade_status status = read_axes(given, &l, &x, err);
	if (status == LADE_OK && boxes && (!l.strides || direction == LADE_ENCODE))
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "boxes are for decoding, with a layout that has strides");
	if (status == LADE_OK)
		status = take_strides(&l, &x, err);
	if (status == LADE_OK)
		status = check_direction(&l, direction, &x, err);
	if (status == LADE_OK)
		status = chunk_bytes(&l, &x, chunk_stride, &chunk, err);
	if (status == LADE_OK && !boxes && !x.empty)
		status = check_span(&l, SIZE_MOST, &x, &plan, err);
	if (status == LADE_OK && !boxes && !x.empty && direction == LADE_DECODE)
		status = check_overlap(&l, &x, err);
	if (status != LADE_OK)
		return status;
	*grid = (lade_grid){.chunk = chunk,
	                    .offset = l.offset,
	                    .part_off = x.part_off,
	                    /* Larger ones are of chunks without bytes. */
	                    .part = chunk ? (uint32_t)x.part_size : 1,
	                    .swap = l.swap_size > 1 ? (uint32_t)l.swap_size : 0,
	                    .ndim = (uint32_t)l.ndim,
	                    .encode = direction == LADE_ENCODE};
	/* The axis that runs fastest in the destination comes last. */
	for (size_t a = 0; a < l.ndim; a++) {
		lade_grid_axis one = {.shape = x.shape[a], .start = x.start[a], .count = x.count[a],
		                      .step = x.step[a], .chunk = (int64_t)chunk_stride[a],
		                      .span = x.stride[a], .source = a};
		size_t at = a;
		for (; direction == LADE_DECODE && at &&
		       magnitude(axis[at - 1].span) < magnitude(one.span);
		     at--)
			axis[at] = axis[at - 1];
		axis[at] = one;
	}
	return LADE_OK;
}

/* ---- public ------------------------------------------------------------------------------- */

lade_status lade_layout_measure(const lade_layout *layout, lade_direction direction,
                                size_t span_size, lade_layout_sizes *sizes, lade_error *err)
{
	lade__plan plan;
	if (!layout || (unsigned)direction > LADE_DECODE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "layout is NULL, or direction %d is unknown", (int)direction);
	lade_status status = lade__plan_make(layout, direction, span_size, &plan, err);
	if (sizes)
		*sizes = (lade_layout_sizes){0};
	if (status == LADE_OK && sizes)
		*sizes = (lade_layout_sizes){.chunk_size = plan.chunk_size,
		                             .size = plan.size,
		                             .first = plan.span_first,
		                             .end = plan.span_end};
	return status;
}

/* What the two copies check alike. */
static lade_status make_for_copy(const lade_layout *layout, lade_direction direction,
                                 lade_cspan span, const void *chunk, size_t chunk_size,
                                 lade__plan *plan, lade_error *err)
{
	if (!layout)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "layout is NULL");
	if ((!span.data && span.size) || (!chunk && chunk_size))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 chunk ? "the span" : "the chunk");
	if ((unsigned)span.place.kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "memory kind %d is unknown",
		                 (int)span.place.kind);
	if (!lade_kind_is_host(span.place.kind))
		return lade_fail(err, LADE_E_NO_DEVICE, LADE_NO_OFFSET,
		                 "the span is in a device's memory");
	lade_status status = lade__plan_make(layout, direction, span.size, plan, err);
	if (status == LADE_OK && plan->chunk_size != chunk_size)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "a chunk of %zu bytes, the layout's shape has %zu", chunk_size,
		                   plan->chunk_size);
	return status;
}

lade_status lade_layout_scatter(const lade_layout *layout, const void *chunk, size_t chunk_size,
                                lade_span dst, lade_error *err)
{
	lade__plan plan;
	lade_cspan span = {dst.data, dst.size, dst.place};
	lade_status status =
		make_for_copy(layout, LADE_DECODE, span, chunk, chunk_size, &plan, err);
	if (status == LADE_OK)
		lade__plan_scatter(&plan, lade_cpu_detect(), 0, chunk, chunk_size, dst.data);
	return status;
}

lade_status lade_layout_gather(const lade_layout *layout, lade_cspan src, void *chunk,
                               size_t chunk_size, lade_error *err)
{
	lade__plan plan;
	lade_status status =
		make_for_copy(layout, LADE_ENCODE, src, chunk, chunk_size, &plan, err);
	if (status == LADE_OK)
		lade__plan_gather(&plan, lade_cpu_detect(), src.data, chunk);
	return status;
}
