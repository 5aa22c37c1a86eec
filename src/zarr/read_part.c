/*
 * read_part.c: which bytes are read of a chunk that is stored without codecs.
 *
 *	a stored chunk, 3 x 8; wanted [1:3, 2:5]      . . . . . . . .
 *	two ranges of three elements                  . . # # # . . .
 *	                                              . . # # # . . .
 *
 * Ranges with small gaps between become one range, which has whole rows.  A range goes straight to
 * its place where the result has its elements in the same order; else the ranges are put together
 * in memory, as a box of the chunk that the layout then reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/read.h"

/* Reading this many bytes more takes about as long as another range. */
#define GAP_MOST 8192

/* A box of a chunk.  The entries are those of stored axes; 'bytes': from one index to the next. */
typedef struct area {
	const lade__fit *fit;
	size_t elem, ndim, whole;
	size_t bytes[LADE_DIMS_MAX];
	ptrdiff_t to[LADE_DIMS_MAX]; /* and in the result */
} area;

static void area_of(const lade__zread *r, const lade__fit *fit, area *a)
{
	*a = (area){.fit = fit, .elem = fit->layout.elem_size, .ndim = r->selected.ndim};
	a->whole = a->elem;
	for (size_t j = a->ndim; j-- > 0; a->whole *= fit->shape[j])
		a->bytes[j] = a->whole;
	for (size_t i = 0; i < a->ndim; i++)
		a->to[fit->order[i]] = fit->strides[i];
}

/* Indices of an axis from the first that is wanted to the last. */
static size_t reach(const area *a, size_t axis)
{
	return (a->fit->count[axis] - 1) * a->fit->step[axis] + 1;
}

/* Ranges for each index of the axes before 'axis', with all bytes between what is wanted of that
 * axis.  With axis == ndim: of single elements. */
static lade__runs runs_at(const area *a, size_t axis)
{
	lade__runs runs = {.count = 1, .axis = axis, .size = a->elem};
	if (axis < a->ndim)
		runs.size = reach(a, axis) * a->bytes[axis];
	for (size_t j = 0; j < a->ndim; j++) {
		runs.off += j <= axis ? a->fit->start[j] * a->bytes[j] : 0;
		runs.count *= j < axis ? a->fit->count[j] : 1;
	}
	return runs;
}

/* Few ranges with few bytes that nobody wants. */
static lade__runs few_runs(const area *a)
{
	lade__runs runs = runs_at(a, a->ndim);
	for (;;) {
		size_t j = runs.axis;
		while (j > 0 && a->fit->count[j - 1] == 1)
			j--;
		if (j-- == 0)
			return runs;
		if (a->bytes[j] * a->fit->step[j] - runs.size > GAP_MOST &&
		    runs.count <= LADE__RUNS_MOST)
			return runs;
		runs = runs_at(a, j);
	}
}

/* The longest ranges whose elements the result has in the same order. */
static lade__runs straight_runs(const area *a)
{
	size_t axis = a->ndim, want = a->elem;
	const lade__fit *fit = a->fit;
	while (axis > 0 && (axis == a->ndim || fit->count[axis] == fit->shape[axis]) &&
	       (fit->count[axis - 1] == 1 ||
	        (fit->step[axis - 1] == 1 && a->to[axis - 1] == (ptrdiff_t)want)))
		want *= fit->count[--axis];
	lade__runs runs = runs_at(a, axis);
	runs.straight = true;
	return runs;
}

/* Whether elements can be moved as they are. */
static bool are_plain(const lade__zread *r, const lade__spot *spot)
{
	return r->part_count == 1 && r->parts[0].swap <= 1 &&
	       r->parts[0].size == spot->fit.layout.elem_size &&
	       lade_kind_is_host(spot->span.place.kind);
}

void lade__leaf_runs(lade__zread *r, lade__leaf *leaf, lade__spot *spot)
{
	area a;
	if (leaf->status != LADE_OK || leaf->missing || leaf->data)
		return;
	if (r->selected.listed) {
		lade__leaf_window(r, leaf, &leaf->runs);
		return;
	}
	leaf->status = lade__spot_make(r, leaf, spot, &leaf->error);
	leaf->spot = spot;
	area_of(r, &spot->fit, &a);
	/* What has a wrong size is read whole, and fails then. */
	if (leaf->status != LADE_OK || (leaf->shard && leaf->size != a.whole))
		return;
	lade__runs runs = few_runs(&a), straight = straight_runs(&a);
	/* Further ranges for the target's sake would cost more than a copy. */
	if (are_plain(r, spot) && straight.axis <= runs.axis)
		runs = straight;
	runs.whole = runs.size == a.whole;
	if (runs.whole && !runs.straight)
		return;
	leaf->runs = runs;
	for (size_t j = 0; j < runs.axis; j++) {
		spot->from[j] = a.bytes[j] * spot->fit.step[j];
		spot->to[j] = a.to[j];
		spot->counts[j] = spot->fit.count[j];
	}
	/* The layout's chunk is the box that is read. */
	for (size_t j = 0; j < a.ndim && j <= runs.axis; j++) {
		spot->fit.shape[j] = j < runs.axis ? spot->fit.count[j] : reach(&a, j);
		spot->fit.step[j] = j < runs.axis ? 1 : spot->fit.step[j];
		spot->fit.start[j] = 0;
	}
}

void lade__leaf_ranges(const lade__leaf *leaf, uint8_t *buffer, lade_range like, lade_range *out)
{
	const lade__runs *runs = &leaf->runs;
	const lade__spot *spot = leaf->spot;
	size_t at[LADE_DIMS_MAX] = {0};
	uint8_t *to = buffer;
	if (runs->straight)
		to = (uint8_t *)spot->span.data + spot->fit.layout.offset;
	like.off += runs->off;
	for (size_t i = 0; i < runs->count; i++) {
		out[i] = like;
		out[i].dst = lade_host_span(to, runs->size);
		if (!runs->straight)
			to += runs->size;
		for (size_t j = runs->axis; j-- > 0; at[j] = 0) {
			/* Back to the axis' first index, or on to the next: modulo 2^64. */
			bool on = ++at[j] < spot->counts[j];
			size_t steps = on ? 1 : 1 - spot->counts[j];
			like.off += steps * spot->from[j];
			if (runs->straight)
				to += (ptrdiff_t)steps * spot->to[j];
			if (on)
				break;
		}
	}
}
