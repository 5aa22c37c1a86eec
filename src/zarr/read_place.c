/*
 * read_place.c: where a leaf goes in the target, and fill values there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/elements.h"
#include "zarr/read.h"

#include <string.h>

lade_status lade__place_fits(const lade_zarr_shape *shape, const ptrdiff_t *strides, lade_span span,
                             size_t offset, lade_error *err)
{
	__extension__ typedef __int128 wide; /* strides times counts: below 2^126 */
	wide low = (wide)offset, high = low + (wide)shape->elem_size;
	for (size_t i = 0; i < shape->ndim; i++)
		if (shape->shape[i] == 0)
			return LADE_OK;
	for (size_t i = 0; i < shape->ndim; i++) {
		wide reach = (wide)(shape->shape[i] - 1) * strides[i];
		if (reach > ((wide)1 << 63) || reach < -((wide)1 << 63))
			reach = reach < 0 ? -((wide)1 << 63) : (wide)1 << 63;
		low += reach < 0 ? reach : 0;
		high += reach > 0 ? reach : 0;
		if (strides[i] == 0 && shape->shape[i] > 1)
			return lade_fail(err, LADE_E_ARG, i,
			                 "target: axis %zu has %llu elements and a stride of 0", i,
			                 (unsigned long long)shape->shape[i]);
	}
	if (low < 0)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "target: the first byte is %lld bytes before the span",
		                 (long long)-low);
	if (high > (wide)UINT64_MAX)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "target: want more than 2^64 bytes, have %zu", span.size);
	if (high > (wide)span.size)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "target: want %llu bytes, have %zu", (unsigned long long)high,
		                 span.size);
	if (!span.data)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "target: span.data is NULL");
	return LADE_OK;
}

/* Asks the caller where a leaf goes. */
static lade_status ask(lade__zread *r, const lade__leaf *leaf, lade__spot *spot, lade_error *err)
{
	const lade__selected *s = &r->selected;
	uint64_t start[LADE_DIMS_MAX];
	lade_zarr_shape own = {.ndim = s->result.ndim, .elem_size = s->result.elem_size};
	lade_zarr_box box = {.struct_size = sizeof box, .ndim = own.ndim, .start = start,
	                     .count = own.shape, .key = leaf->key};
	lade_zarr_place place = {.struct_size = sizeof place};
	size_t stride = own.elem_size;
	for (size_t a = 0; a < s->ndim; a++) {
		const lade__pick *pick = &s->pick[a];
		const lade__cut *cut = &leaf->cut[a];
		if (pick->dropped)
			continue;
		own.shape[s->axis_of[a]] = cut->count;
		start[s->axis_of[a]] =
			pick->reversed ? pick->count - cut->from - cut->count : cut->from;
	}
	for (size_t i = own.ndim; i-- > 0; stride *= (size_t)own.shape[i])
		place.strides[i] = (ptrdiff_t)stride;
	if (err)
		memset(err, 0, sizeof *err);
	lade_status status = r->target.place(r->target.ctx, &box, &place, err);
	if (status != LADE_OK && err && !err->message[0])
		return lade_fail(err, status, LADE_NO_OFFSET, "the target's place() failed");
	if (status == LADE_OK && (unsigned)place.span.place.kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "target: no kind of place is %d",
		                 (int)place.span.place.kind);
	if (status == LADE_OK)
		status = lade__place_fits(&own, place.strides, place.span, place.offset, err);
	if (status != LADE_OK)
		return status;
	/* As if it were all of the result: the box makes its own offset again. */
	for (size_t i = 0; i < own.ndim; i++)
		place.offset -= (size_t)start[i] * (size_t)place.strides[i];
	spot->span = place.span;
	spot->offset = place.offset;
	memcpy(spot->strides, place.strides, sizeof place.strides);
	return LADE_OK;
}

bool lade__spot_direct(const lade__zread *r, const lade__fit *fit)
{
	ptrdiff_t stride[LADE_DIMS_MAX], want = (ptrdiff_t)r->selected.result.elem_size;
	if (!fit->whole || r->part_count != 1 || r->parts[0].swap > 1 ||
	    r->parts[0].size != fit->layout.elem_size)
		return false;
	for (size_t a = 0; a < fit->layout.ndim; a++)
		stride[fit->order[a]] = fit->strides[a];
	for (size_t j = fit->layout.ndim; j-- > 0;) {
		if (fit->count[j] > 1 && stride[j] != want)
			return false;
		want *= (ptrdiff_t)fit->count[j];
	}
	return true;
}

void lade__spot_part(const lade__zread *r, const lade__leaf *leaf, lade__spot *spot)
{
	lade__fit_make(&spot->fit, &r->selected, &r->levels.level[r->levels.count - 1], leaf->cut,
	               &(lade__goal){spot->strides, spot->offset});
	spot->size = r->selected.result.elem_size;
	for (size_t j = 0; j < r->selected.ndim; j++)
		spot->size *= spot->fit.count[j];
	spot->direct = lade__spot_direct(r, &spot->fit);
}

lade_status lade__spot_make(lade__zread *r, const lade__leaf *leaf, lade__spot *spot,
                            lade_error *err)
{
	lade_status status = LADE_OK;
	if (r->target.place) {
		status = ask(r, leaf, spot, err);
	} else {
		spot->span = r->target.span;
		spot->offset = r->target.offset;
		memcpy(spot->strides, r->strides, sizeof spot->strides);
	}
	if (status == LADE_OK)
		lade__spot_part(r, leaf, spot);
	return status;
}

void lade__spot_copy(lade__spot *to, const lade__spot *from)
{
	lade__fit *fit = &to->fit;
	*to = *from;
	fit->layout.shape = fit->shape;
	fit->layout.start = fit->start;
	fit->layout.step = fit->step;
	fit->layout.count = fit->count;
	fit->layout.order = fit->order;
	fit->layout.strides = fit->strides;
}

/* ---- fill values ------------------------------------------------------------------------- */

typedef struct fill_axis {
	size_t count;
	size_t stride;
} fill_axis;

/* The axes of a box from the smallest stride on, all of them positive; '*offset' is the lowest
 * byte's.  Those that are contiguous with what is below are joined into '*run' bytes. */
static size_t fill_axes(const lade__spot *spot, fill_axis *axes, size_t *offset, size_t *run)
{
	const lade__fit *fit = &spot->fit;
	size_t n = 0, joined = 0;
	*offset = fit->layout.offset;
	for (size_t a = 0; a < fit->layout.ndim; a++) {
		size_t count = fit->count[fit->order[a]], i = n;
		ptrdiff_t stride = fit->strides[a];
		if (count == 1)
			continue;
		if (stride < 0)
			*offset -= (count - 1) * (size_t)-stride;
		size_t step = stride < 0 ? (size_t)-stride : (size_t)stride;
		for (; i > 0 && axes[i - 1].stride > step; i--)
			axes[i] = axes[i - 1];
		axes[i] = (fill_axis){count, step};
		n++;
	}
	while (joined < n && axes[joined].stride == *run)
		*run *= axes[joined++].count;
	memmove(axes, axes + joined, (n - joined) * sizeof *axes);
	return n - joined;
}

static void fill_run(const lade__zread *r, uint8_t *to, size_t run, size_t elem)
{
	if (r->fill_same)
		memset(to, r->fill[0], run);
	else
		lade__repeat(to, run, r->fill, elem);
}

void lade__spot_fill(const lade__zread *r, const lade__spot *spot)
{
	fill_axis axes[LADE_DIMS_MAX];
	size_t elem = r->selected.result.elem_size, run = elem, offset, at[LADE_DIMS_MAX] = {0};
	size_t n = fill_axes(spot, axes, &offset, &run), i;
	uint8_t *to = (uint8_t *)spot->span.data + offset;
	do {
		fill_run(r, to, run, elem);
		for (i = 0; i < n; i++) {
			to += axes[i].stride;
			if (++at[i] < axes[i].count)
				break;
			to -= axes[i].stride * axes[i].count;
			at[i] = 0;
		}
	} while (i < n);
}
