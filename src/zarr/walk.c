/*
 * walk.c: the chunks that a selection touches, and their boxes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/select.h"

lade_status lade__levels_make(const lade_zarr_array *array, lade__levels *out, lade_error *err)
{
	const lade_zarr_chain *chain = &array->chain;
	out->count = 0;
	for (;;) {
		lade__level *level = &out->level[out->count];
		level->chain = chain;
		for (size_t a = 0; a < array->ndim; a++) {
			size_t outer = out->count ? level[-1].stored[a] : a;
			level->size[a] =
				out->count ? level[-1].chain->shard->chunk_shape[outer] : 0;
			level->stored[a] = chain->order ? chain->order[outer] : outer;
		}
		out->count++;
		if (!chain->shard)
			return LADE_OK;
		if (out->count == LADE__LEVELS_MAX)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "shards are nested more than %d times",
			                 LADE__LEVELS_MAX - 1);
		chain = &chain->shard->chunks;
	}
}

/* ---- the walk ---------------------------------------------------------------------------- */

/* The first entry of [low, high) that is at 'index' or behind it. */
static uint64_t entry_from(const lade__pick *pick, uint64_t low, uint64_t high, uint64_t index)
{
	if (!pick->at) {
		uint64_t i = 0;
		if (index > pick->first)
			i = (index - pick->first - 1) / pick->step + 1;
		return i < low ? low : i > high ? high : i;
	}
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (pick->at[middle] < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The chunk that has element 'at' of an axis. */
static void find_chunk(const lade__walk *w, size_t a, uint64_t at, lade__cut *cut)
{
	const lade__cut *within = &w->within[a];
	if (w->outer) {
		lade_zarr_extent extent;
		lade_zarr_chunk_find(&w->selected->array->axes[a], at, &cut->chunk, NULL);
		lade_zarr_chunk_extent(&w->selected->array->axes[a], cut->chunk, &extent, NULL);
		cut->start = extent.start;
		cut->size = extent.size;
	} else {
		cut->size = w->level->size[a];
		cut->chunk = (at - within->start) / cut->size;
		cut->start = within->start + cut->chunk * cut->size;
	}
}

/* Sets the cut of an axis to the chunk with entry 'from'. */
static void cut_axis(lade__walk *w, size_t a, uint64_t from)
{
	const lade__pick *pick = &w->selected->pick[a];
	const lade__cut *within = &w->within[a];
	lade__cut *cut = &w->cut[a];
	find_chunk(w, a, lade__pick_at(pick, from), cut);
	cut->from = from;
	cut->count = entry_from(pick, from, within->from + within->count, cut->start + cut->size) -
	             from;
}

/* ---- points ------------------------------------------------------------------------------ */

/* Sorts the points by their chunks: by the last axis first, as each pass keeps the order of what is
 * equal. */
static void sort_points(const lade__walk *w)
{
	const lade__selected *s = w->selected;
	uint64_t *order = s->order + w->points_within.from;
	lade__cut cut = {.size = 0};
	for (size_t a = s->ndim; a-- > 0;) {
		for (uint64_t i = 0; i < w->points_within.count; i++) {
			uint64_t at = s->at[order[i] * s->ndim + a];
			if (i == 0 || at < cut.start || at - cut.start >= cut.size)
				find_chunk(w, a, at, &cut);
			s->key[order[i]] = cut.chunk;
		}
		lade__sort_by(s->key, order, s->other, (size_t)w->points_within.count);
	}
}

static bool next_points(lade__walk *w)
{
	const lade__selected *s = w->selected;
	uint64_t at = w->points.from + w->points.count;
	uint64_t end = w->points_within.from + w->points_within.count;
	if (at == end)
		return false;
	w->points.from = at;
	for (size_t a = 0; a < s->ndim; a++)
		find_chunk(w, a, s->at[s->order[at] * s->ndim + a], &w->cut[a]);
	for (; at < end; at++)
		for (size_t a = 0; a < s->ndim; a++) {
			uint64_t x = s->at[s->order[at] * s->ndim + a];
			if (x < w->cut[a].start || x - w->cut[a].start >= w->cut[a].size)
				goto out;
		}
out:
	w->points.count = at - w->points.from;
	return true;
}

/* ---- slices and lists -------------------------------------------------------------------- */

void lade__walk_begin(lade__walk *walk, const lade__selected *selected, const lade__level *level,
                      const lade__cut *within, lade__points points_within)
{
	walk->selected = selected;
	walk->level = level;
	walk->begun = false;
	walk->outer = !within;
	walk->points_within = points_within;
	walk->points = (lade__points){points_within.from, 0};
	for (size_t a = 0; a < selected->ndim; a++)
		walk->within[a] = within ? within[a]
		                         : (lade__cut){.size = selected->array->axes[a].size,
		                                       .count = selected->pick[a].count};
	if (selected->points)
		sort_points(walk);
}

bool lade__walk_next(lade__walk *w)
{
	size_t ndim = w->selected->ndim;
	if (w->selected->points)
		return next_points(w);
	if (!w->begun) {
		w->begun = true;
		for (size_t a = 0; a < ndim; a++)
			if (w->within[a].count == 0)
				return false;
		for (size_t a = 0; a < ndim; a++)
			cut_axis(w, a, w->within[a].from);
		return true;
	}
	for (size_t a = ndim; a-- > 0;) {
		uint64_t next = w->cut[a].from + w->cut[a].count;
		if (next < w->within[a].from + w->within[a].count) {
			cut_axis(w, a, next);
			return true;
		}
		cut_axis(w, a, w->within[a].from);
	}
	return false;
}

/* ---- boxes ------------------------------------------------------------------------------- */

void lade__fit_make(lade__fit *fit, const lade__selected *s, const lade__level *level,
                    const lade__cut *cut, const lade__goal *goal)
{
	size_t offset = goal->offset;
	fit->whole = true;
	for (size_t a = 0; a < s->ndim; a++) {
		const lade__pick *pick = &s->pick[a];
		size_t j = level->stored[a];
		uint64_t first = cut[a].from; /* the entry's index in the result */
		ptrdiff_t stride = pick->dropped ? 0 : goal->strides[s->axis_of[a]];
		fit->shape[j] = (size_t)cut[a].size;
		fit->start[j] = (size_t)(lade__pick_at(pick, cut[a].from) - cut[a].start);
		fit->step[j] = cut[a].count > 1 ? (size_t)pick->step : 1;
		fit->count[j] = (size_t)cut[a].count;
		fit->order[a] = j;
		if (pick->reversed)
			first = pick->count - 1 - first;
		/* Differences may be negative: the sum is right modulo 2^64. */
		offset += (size_t)((ptrdiff_t)first * stride);
		fit->strides[a] = pick->reversed ? -stride : stride;
		fit->whole = fit->whole && fit->count[j] == fit->shape[j];
	}
	fit->layout = (lade_layout){.struct_size = sizeof fit->layout,
	                            .elem_size = (size_t)s->array->type.size,
	                            .ndim = s->ndim,
	                            .shape = fit->shape,
	                            .start = fit->start,
	                            .step = fit->step,
	                            .count = fit->count,
	                            .order = fit->order,
	                            .strides = fit->strides,
	                            .offset = offset};
}
