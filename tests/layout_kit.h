/*
 * layout_kit.h: random layouts, and what they mean: nested indices, one element after the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_LAYOUT_KIT_H
#define LADE_TESTS_LAYOUT_KIT_H

#include "guard.h"

#include <lade/layout.h>

#include <stdbool.h>

/* A layout with its tables; 'layout' points into it, so it is not to be moved. */
typedef struct layout_case {
	lade_layout layout;
	size_t shape[LADE_DIMS_MAX], start[LADE_DIMS_MAX], step[LADE_DIMS_MAX];
	size_t count[LADE_DIMS_MAX], order[LADE_DIMS_MAX];
	ptrdiff_t strides[LADE_DIMS_MAX];
	size_t part_size, chunk_size, size, span_size;
} layout_case;

/* Another case that is the same, with tables of its own. */
static inline void layout_same(layout_case *c, const layout_case *like)
{
	*c = *like;
	c->layout.shape = c->shape;
	c->layout.start = c->start;
	c->layout.step = c->step;
	c->layout.count = c->count;
	c->layout.order = c->order;
	c->layout.strides = c->strides;
}

/* Calls fn(ctx, chunk, span) with the first byte of each element's part on both sides, in the
 * destination's order. */
static inline void layout_walk(const layout_case *c,
                               void (*fn)(void *ctx, size_t from, size_t to), void *ctx)
{
	const lade_layout *l = &c->layout;
	size_t at[LADE_DIMS_MAX] = {0}, pitch[LADE_DIMS_MAX], bytes = l->elem_size;
	for (size_t a = l->ndim; a-- > 0; bytes *= c->shape[a])
		pitch[a] = bytes;
	for (size_t a = 0; a < l->ndim; a++)
		if (c->count[a] == 0)
			return;
	for (;;) {
		size_t from = l->part_off, to = l->offset;
		for (size_t d = 0; d < l->ndim; d++) {
			size_t a = c->order[d];
			from += (c->start[a] + at[d] * c->step[a]) * pitch[a];
			to += at[d] * (size_t)c->strides[d];
		}
		fn(ctx, from, to);
		size_t d = l->ndim;
		while (d-- > 0 && ++at[d] == c->count[c->order[d]])
			at[d] = 0;
		if (d == SIZE_MAX)
			return;
	}
}

typedef struct layout_copy {
	const layout_case *c;
	const uint8_t *from;
	uint8_t *to;
	bool gather;
} layout_copy;

static inline void layout_copy_one(void *ctx, size_t in_chunk, size_t in_span)
{
	const layout_copy *x = ctx;
	size_t part = x->c->part_size, swap = x->c->layout.swap_size;
	swap = swap > 1 ? swap : 1;
	const uint8_t *from = x->from + (x->gather ? in_span : in_chunk);
	uint8_t *to = x->to + (x->gather ? in_chunk : in_span);
	for (size_t i = 0; i < part; i++)
		to[i / swap * swap + (swap - 1 - i % swap)] = from[i];
}

static inline void layout_reference(const layout_case *c, const void *from, void *to, bool gather)
{
	layout_copy x = {c, from, to, gather};
	layout_walk(c, layout_copy_one, &x);
}

/* ---- random ------------------------------------------------------------------------------- */

static inline void layout_shuffle(rng *r, size_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		list[i] = i;
	for (size_t i = count; i > 1; i--) {
		size_t k = rng_below(r, i), t = list[i - 1];
		list[i - 1] = list[k];
		list[k] = t;
	}
}

/* Sides whose product is 'most' elements at most. */
static inline void layout_shape(rng *r, layout_case *c, size_t ndim, size_t most)
{
	size_t left = most;
	for (size_t a = 0; a < ndim; a++) {
		size_t side = ndim > 8 ? 1 + rng_below(r, 8) / 7
		              : rng_below(r, 4) ? 1 + rng_below(r, left > 200 ? 200 : left)
		                                : 1 + rng_below(r, left > 9 ? 9 : left);
		side = side > left ? left : side;
		c->shape[a] = side;
		left /= side;
	}
	for (size_t a = ndim; a > 1; a--) {
		size_t k = rng_below(r, a), t = c->shape[a - 1];
		c->shape[a - 1] = c->shape[k];
		c->shape[k] = t;
	}
	if (ndim && rng_below(r, 60) == 0)
		c->shape[rng_below(r, ndim)] = 0;
}

static inline void layout_box(rng *r, layout_case *c, size_t ndim, bool whole)
{
	for (size_t a = 0; a < ndim; a++) {
		size_t n = c->shape[a];
		c->start[a] = whole || rng_below(r, 2) ? 0 : rng_below(r, n + 1);
		c->step[a] = whole || rng_below(r, 3) ? 1 : 1 + rng_below(r, 4);
		size_t there = c->start[a] < n ? (n - c->start[a] - 1) / c->step[a] + 1 : 0;
		c->count[a] = whole || rng_below(r, 2) ? there : rng_below(r, there + 1);
		if (!whole && there && rng_below(r, 8))
			c->count[a] = c->count[a] ? c->count[a] : 1;
	}
}

/* Strides that nest in a random order of the axes, with gaps and of both signs. */
static inline void layout_place(rng *r, layout_case *c, size_t ndim, bool whole)
{
	size_t by[LADE_DIMS_MAX], extent = c->part_size, below = 0, gaps = rng_below(r, 3);
	layout_shuffle(r, by, ndim);
	if (rng_below(r, 3) == 0)
		for (size_t d = 0; d < ndim; d++)
			by[d] = ndim - 1 - d;
	size_t lead = rng_below(r, 2) ? rng_below(r, 70) : 0;
	for (size_t i = 0; i < ndim; i++) {
		size_t d = by[i], n = c->count[c->order[d]];
		size_t step = extent + (gaps == 2 ? rng_below(r, 70) : gaps == 1 ? i : 0);
		bool back = rng_below(r, 5) == 0, repeats = whole && rng_below(r, 12) == 0;
		if (repeats)
			step = 0;
		c->strides[d] = back ? -(ptrdiff_t)step : (ptrdiff_t)step;
		if (n == 0)
			continue;
		below += back ? step * (n - 1) : 0;
		extent += step * (n - 1);
	}
	c->layout.offset = lead + below;
	c->span_size = lead + extent + (rng_below(r, 3) ? 0 : rng_below(r, 99));
}

/* A valid layout of about 'most' elements at most; 'whole': one that encoding takes. */
static inline void layout_random(rng *r, layout_case *c, size_t most, bool whole)
{
	static const size_t elems[] = {1, 2, 4, 8, 16, 4, 2, 8, 1, 3, 6, 12, 24, 32, 20, 64, 100};
	memset(c, 0, sizeof *c);
	size_t ndim = rng_below(r, 20) ? rng_below(r, 5) : rng_below(r, LADE_DIMS_MAX + 1);
	size_t elem = elems[rng_below(r, sizeof elems / sizeof *elems)];
	c->layout = (lade_layout){.struct_size = sizeof c->layout, .elem_size = elem, .ndim = ndim,
	                          .shape = c->shape, .start = c->start, .step = c->step,
	                          .count = c->count, .order = c->order, .strides = c->strides};
	c->part_size = elem;
	if (!whole && rng_below(r, 4) == 0) {
		c->layout.part_off = rng_below(r, elem);
		c->layout.part_size = rng_below(r, elem - c->layout.part_off + 1);
		c->part_size = c->layout.part_size ? c->layout.part_size
		                                   : elem - c->layout.part_off;
	}
	if (rng_below(r, 3) == 0) {
		size_t swap = 1 + rng_below(r, 16);
		while (c->part_size % swap)
			swap--;
		c->layout.swap_size = swap;
	}
	layout_shape(r, c, ndim, 1 + rng_below(r, most));
	layout_box(r, c, ndim, whole);
	layout_shuffle(r, c->order, ndim);
	if (rng_below(r, 3) == 0)
		for (size_t d = 0; d < ndim; d++)
			c->order[d] = d;
	layout_place(r, c, ndim, whole);
	c->chunk_size = elem;
	c->size = c->part_size;
	for (size_t a = 0; a < ndim; a++) {
		c->chunk_size *= c->shape[a];
		c->size *= c->count[a];
	}
}

#endif
