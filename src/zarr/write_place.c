/*
 * write_place.c: elements of the source in a decoded chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/elements.h"
#include "zarr/write.h"

#include <string.h>

/* ---- counts ------------------------------------------------------------------------------ */

size_t lade__cut_count(const lade__zwrite *w, const lade__cut *cut)
{
	size_t count = 1;
	for (size_t a = 0; a < w->selected.ndim; a++)
		if (__builtin_mul_overflow(count, cut[a].size, &count) || count > SIZE_MAX / 4)
			return SIZE_MAX;
	return count;
}

bool lade__is_whole(const lade__zwrite *w, const lade__cut *cut)
{
	bool whole = !w->selected.listed && !w->selected.points &&
	             w->selected.result.elem_size == w->elem;
	for (size_t a = 0; a < w->selected.ndim; a++)
		whole = whole && cut[a].count == cut[a].size;
	return whole;
}

bool lade__is_covered(const lade__zwrite *w, const lade__cut *cut)
{
	bool covered = !w->selected.listed && w->selected.result.elem_size == w->elem;
	for (size_t a = 0; a < w->selected.ndim; a++) {
		uint64_t left = w->array->axes[a].size - cut[a].start;
		covered = covered && cut[a].count == (left < cut[a].size ? left : cut[a].size);
	}
	return covered;
}

/* ---- fill -------------------------------------------------------------------------------- */

void lade__place_fill(const lade__zwrite *w, uint8_t *chunk, size_t count)
{
	lade__repeat(chunk, count * w->elem, w->fill, w->elem);
}

bool lade__is_fill(const lade__zwrite *w, const uint8_t *chunk, size_t count)
{
	if (count == 0 || memcmp(chunk, w->fill, w->elem) != 0)
		return count == 0;
	return memcmp(chunk, chunk + w->elem, (count - 1) * w->elem) == 0;
}

/* ---- places ------------------------------------------------------------------------------ */

/* An axis of the array, the one of the largest stride in the chunk first. */
typedef struct place_axis {
	const lade__pick *pick;
	const lade__cut *cut;
	size_t to;      /* from one element to the next in the chunk */
	ptrdiff_t from; /* and in the source */
} place_axis;

typedef struct placing {
	const lade__zwrite *w;
	size_t ndim, level;
	place_axis axis[LADE_DIMS_MAX + 1];
	/* NULL: elements are copied. */
	void (*visit)(void *ctx, uint64_t in_chunk, uint64_t in_result);
	void *ctx;
} placing;

static void place_element(const lade__zwrite *w, uint8_t *to, const uint8_t *from)
{
	for (size_t i = 0; i < w->piece_count; i++) {
		const lade__piece_of *piece = &w->pieces[i];
		lade__piece_copy(piece, to + piece->off, from + piece->to);
	}
}

/* 'count' plain elements of the commonest sizes. */
#define PLACE_ROW(type)                                                                 \
	for (uint64_t k = 0; k < count; k++)                                            \
		memcpy(to + (size_t)k * step_to, from + (ptrdiff_t)k * step_from, sizeof(type))

/* The last axis, without a list. */
static void place_row(const placing *p, const place_axis *x, uint8_t *to, const uint8_t *from)
{
	const lade__zwrite *w = p->w;
	bool reversed = x->pick->reversed;
	uint64_t count = x->cut->count, first = x->cut->from;
	size_t step_to = (size_t)x->pick->step * x->to, elem = w->elem;
	ptrdiff_t step_from = reversed ? -x->from : x->from;
	to += (size_t)(lade__pick_at(x->pick, first) - x->cut->start) * x->to;
	from += (ptrdiff_t)(reversed ? x->pick->count - 1 - first : first) * x->from;
	bool copy = w->plain && w->pieces[0].swap <= 1;
	if (copy && step_to == elem && step_from == (ptrdiff_t)elem)
		memcpy(to, from, (size_t)count * elem);
	else if (copy && elem == 8)
		PLACE_ROW(uint64_t);
	else if (copy && elem == 4)
		PLACE_ROW(uint32_t);
	else if (copy && elem == 2)
		PLACE_ROW(uint16_t);
	else if (copy && elem == 1)
		PLACE_ROW(uint8_t);
	else
		for (uint64_t k = 0; k < count; k++)
			place_element(w, to + (size_t)k * step_to, from + (ptrdiff_t)k * step_from);
}

static void place_axes(const placing *p, size_t a, uint8_t *to, const uint8_t *from)
{
	const place_axis *x = &p->axis[a];
	if (a == p->ndim) {
		place_element(p->w, to, from);
		return;
	}
	if (a + 1 == p->ndim && !x->pick->at) {
		place_row(p, x, to, from);
		return;
	}
	for (uint64_t k = x->cut->from; k < x->cut->from + x->cut->count; k++) {
		uint64_t at = lade__pick_at(x->pick, k) - x->cut->start;
		uint64_t of = x->pick->to         ? x->pick->to[k]
		              : x->pick->reversed ? x->pick->count - 1 - k
		                                  : k;
		place_axes(p, a + 1, to + (size_t)at * x->to, from + (ptrdiff_t)of * x->from);
	}
}

/* The same for numbers of elements. */
static void visit_axes(const placing *p, size_t a, uint64_t to, uint64_t from)
{
	const place_axis *x = &p->axis[a];
	if (a == p->ndim) {
		p->visit(p->ctx, to, from);
		return;
	}
	for (uint64_t k = x->cut->from; k < x->cut->from + x->cut->count; k++) {
		uint64_t at = lade__pick_at(x->pick, k) - x->cut->start;
		uint64_t of = x->pick->to         ? x->pick->to[k]
		              : x->pick->reversed ? x->pick->count - 1 - k
		                                  : k;
		visit_axes(p, a + 1, to + at * x->to, from + of * (uint64_t)x->from);
	}
}

/* Axes in the order of the stored chunk; 'unit' is an element in it. */
static void make_axes(placing *p, const lade__target *t, size_t unit, const ptrdiff_t *strides)
{
	const lade__selected *s = &p->w->selected;
	const lade__level *level = &p->w->levels.level[t->level];
	for (size_t a = 0; a < s->ndim; a++)
		p->axis[level->stored[a]] = (place_axis){
			.pick = &s->pick[a], .cut = &t->cut[a],
			.from = s->points || s->pick[a].dropped ? 0 : strides[s->axis_of[a]]};
	p->ndim = s->ndim;
	p->level = t->level;
	for (size_t j = s->ndim; j-- > 0; unit *= (size_t)p->axis[j].cut->size)
		p->axis[j].to = unit;
}

/* Points, in their order: of equal ones the last stays. */
static void place_points(const placing *p, const lade__points *points, uint8_t *chunk,
                         const ptrdiff_t *strides, const uint8_t *source)
{
	const lade__selected *s = &p->w->selected;
	const size_t *stored = p->w->levels.level[p->level].stored;
	for (uint64_t i = points->from; i < points->from + points->count; i++) {
		uint64_t id = s->order[i], left = id, to = 0, from = 0;
		for (size_t a = 0; a < s->ndim; a++) {
			const place_axis *x = &p->axis[stored[a]];
			to += (s->at[id * s->ndim + a] - x->cut->start) * x->to;
		}
		for (size_t k = s->result.ndim; k-- > 0; left /= s->result.shape[k])
			from += left % s->result.shape[k] * (uint64_t)strides[k];
		if (p->visit)
			p->visit(p->ctx, to, from);
		else
			place_element(p->w, chunk + to, source + (ptrdiff_t)from);
	}
}

void lade__place_elements(const lade__zwrite *w, const lade__target *t, const lade__view *view,
                          uint8_t *chunk)
{
	placing p = {.w = w};
	const uint8_t *source = (const uint8_t *)view->base; /* its elements are inside of memory */
	make_axes(&p, t, w->elem, view->strides);
	if (w->selected.points)
		place_points(&p, &t->points, chunk, view->strides, source);
	else
		place_axes(&p, 0, chunk, source);
}

void lade__each_element(const lade__zwrite *w, const lade__target *t,
                        void (*visit)(void *ctx, uint64_t in_chunk, uint64_t in_result), void *ctx)
{
	placing p = {.w = w, .visit = visit, .ctx = ctx};
	const lade_zarr_shape *result = &w->selected.result;
	ptrdiff_t strides[LADE_DIMS_MAX], stride = 1;
	for (size_t i = result->ndim; i-- > 0; stride *= (ptrdiff_t)result->shape[i])
		strides[i] = stride;
	make_axes(&p, t, 1, strides);
	if (w->selected.points)
		place_points(&p, &t->points, NULL, strides, NULL);
	else
		visit_axes(&p, 0, 0, 0);
}
