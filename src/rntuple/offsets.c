/*
 * offsets.c: offsets that add up over clusters, and the elements that belong to entries.
 *
 * The file has, for each collection, where its elements end, counted from the cluster's start.
 *
 *     stored        2 5 | 1 4 4        two clusters
 *     the caller's  0 2 5   6 9 9
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/read.h"

#include "base/options.h"

#include <inttypes.h>
#include <stdlib.h>

static int64_t get(const uint8_t *at, uint64_t index)
{
	return (int64_t)lade__le64(at + 8 * index);
}

uint64_t lade__rnt_ends_most(const lade_rntuple *t, const rnt_column *m, size_t cluster)
{
	uint64_t most = INT64_MAX;
	for (uint32_t i = m->counts; i != RNT_NONE; i = t->column_more[i].counts_too) {
		const rnt_column *below = &t->column_more[i];
		uint64_t have = below->extents[cluster].count / below->factor;
		most = have < most ? have : most;
	}
	return most;
}

lade_status lade__rnt_ends_fault(const rnt_read *r, const rnt_goal *g, uint64_t i, int64_t here,
                                 int64_t before, lade_error *err)
{
	const lade_rntuple *t = r->tuple;
	if (i == g->target.first && before < 0)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "rntuple: the end before element %" PRIu64 " is %" PRId64, i,
		                 before);
	return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
	                 "rntuple: %s: collection %" PRIu64 " ends at %" PRId64
	                 ", that before it at %" PRId64,
	                 t->field[t->column[g->target.column].field].path, i, here, before);
}

/* The cluster that has an element of a column, and the element that it begins with; the number of
 * clusters at the column's end. */
static size_t cluster_of(const lade_rntuple *t, uint32_t column, uint64_t element, uint64_t *first)
{
	const rnt_extent *x = t->column_more[column].extents;
	size_t low = 0, high = t->cluster_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (x[middle].first + x[middle].count <= element)
			low = middle + 1;
		else
			high = middle;
	}
	*first = low < t->cluster_count ? x[low].first : element;
	return low;
}

lade_status lade__rnt_ends_beyond(const rnt_read *r, const rnt_goal *g, uint64_t i, int64_t here,
                                  lade_error *err)
{
	const lade_rntuple *t = r->tuple;
	uint64_t first;
	size_t k = cluster_of(t, (uint32_t)g->target.column, i, &first);
	return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
	                 "rntuple: %s: collections of cluster %zu end at %" PRId64
	                 ", and it has %" PRIu64 " elements for them",
	                 t->field[t->column[g->target.column].field].path, k, here,
	                 lade__rnt_ends_most(t, &t->column_more[g->target.column], k));
}

/* Number 0 is the end of the element before the first one, or 0. */
static lade_status add_up(const rnt_read *r, const rnt_goal *g, uint8_t *at, lade_error *err)
{
	const lade_rntuple *t = r->tuple;
	const rnt_column *m = &t->column_more[g->target.column];
	uint64_t first = g->target.first, end = first + g->target.count, i = first;
	/* 'base' is added to the ends of a cluster, 'before' the last of them. */
	int64_t before = get(at, 0), base = -before, sum = 0;
	if (before < 0)
		return lade__rnt_ends_fault(r, g, first, 0, before, err);
	lade__le_put(at, 0, 8);
	for (size_t k = 0; i < end; k++) {
		const rnt_extent *x = &m->extents[k];
		uint64_t stop = x->first + x->count < end ? x->first + x->count : end;
		if (stop <= i)
			continue;
		if (i == x->first) {
			before = 0;
			base = sum;
		}
		for (; i < stop; i++) {
			int64_t here = get(at, i - first + 1);
			if (here < before || __builtin_add_overflow(base, here, &sum))
				return lade__rnt_ends_fault(r, g, i, here, before, err);
			before = here;
			lade__le_put(at + 8 * (i - first + 1), (uint64_t)sum, 8);
		}
		if ((uint64_t)before > lade__rnt_ends_most(t, m, k))
			return lade__rnt_ends_beyond(r, g, i - 1, before, err);
	}
	return LADE_OK;
}

lade_status lade__rnt_add_up(rnt_read *r, rnt_goal *g, lade_error *err)
{
	lade_status status = add_up(r, g, g->to.data, err);
	lade_batch_options options = {LADE__OUR_SIZES, .cancel = r->options.cancel,
	                              .device = r->options.device, .stream = r->options.stream};
	if (status != LADE_OK || !g->own)
		return status;
	lade_spec *copy;
	status = lade_spec_parse(r->engine, "copy", &copy, err);
	if (status != LADE_OK)
		return status;
	lade_segment segment = {.data = g->own, .size = g->size, .decoded_size = g->size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = g->target.span};
	status = lade_decode_into(r->engine, copy, &item, 1, NULL, &options, err);
	lade_spec_unref(copy);
	return status;
}

/* ---- entries -------------------------------------------------------------------------------- */

/* The first element of 'column' that belongs to element 'at' of the column that counts it. */
static lade_status descend(lade_rntuple *t, uint32_t column, uint64_t at,
                           const lade_rntuple_read_options *options, uint64_t *out, lade_error *err)
{
	const rnt_column *m = &t->column_more[column];
	uint64_t begin;
	size_t k = cluster_of(t, m->parent, at, &begin);
	*out = k < t->cluster_count ? m->extents[k].first : t->column[column].element_count;
	if (at == begin)
		return LADE_OK;
	if (t->column[m->parent].kind != LADE_RNTUPLE_OFFSETS)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "rntuple: %s is below a variant: entries must be whole clusters",
		                 t->field[t->column[column].field].path);
	uint8_t end[8];
	lade_rntuple_target target = {.column = m->parent,
	                              .first = at - 1,
	                              .count = 1,
	                              .span = lade_host_span(end, sizeof end)};
	lade_rntuple_read_options o;
	lade_status status =
		lade__options_read(&o, sizeof o, options, "lade_rntuple_read_options", err);
	if (status != LADE_OK)
		return status;
	o.flags |= LADE_RNTUPLE_ENDS;
	o.target_size = sizeof target;
	status = lade_rntuple_read(t, &target, 1, &o, NULL, err);
	if (status != LADE_OK)
		return status;
	uint64_t ends = lade__le64(end), more;
	if (__builtin_mul_overflow(ends, m->factor, &more) || more > m->extents[k].count)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "rntuple: %s: offsets end at %" PRIu64 ", it has %" PRIu64
		                 " elements in the cluster",
		                 t->field[t->column[column].field].path, ends, m->extents[k].count);
	*out += more;
	return LADE_OK;
}

/* The first element of a column that belongs to an entry. */
static lade_status first_of(lade_rntuple *t, uint32_t column, uint64_t entry,
                            const lade_rntuple_read_options *options, uint64_t *out,
                            lade_error *err)
{
	uint32_t above[2 * LADE_DIMS_MAX + 64];
	size_t depth = 0;
	for (uint32_t c = column; c != RNT_NONE; c = t->column_more[c].parent) {
		if (depth == sizeof above / sizeof above[0])
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "rntuple: %s is below more than %zu collections",
			                 t->field[t->column[column].field].path, depth);
		above[depth++] = c;
	}
	lade_status status = LADE_OK;
	/* The columns of entries have their factor for each, as resolve.c has checked. */
	*out = entry * t->column_more[above[--depth]].factor;
	while (depth && status == LADE_OK) {
		uint64_t at = *out;
		status = descend(t, above[--depth], at, options, out, err);
	}
	return status;
}

lade_status lade_rntuple_elements(lade_rntuple *tuple, uint64_t column, lade_rntuple_part entries,
                                  const lade_rntuple_read_options *options,
                                  lade_rntuple_part *elements, lade_error *err)
{
	uint64_t first = entries.first, count = entries.count, begin, end;
	if (!tuple || !elements)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: an argument is NULL");
	if (column >= tuple->column_count || first > tuple->info.entry_count ||
	    count > tuple->info.entry_count - first)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "rntuple: column %" PRIu64 " of %zu, %" PRIu64
		                 " entries from %" PRIu64 " on, there are %" PRIu64,
		                 column, tuple->column_count, count, first,
		                 tuple->info.entry_count);
	lade_status status = first_of(tuple, (uint32_t)column, first, options, &begin, err);
	if (status == LADE_OK)
		status = first_of(tuple, (uint32_t)column, first + count, options, &end, err);
	if (status == LADE_OK && end < begin)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "rntuple: column %" PRIu64 ": elements %" PRIu64 " to %" PRIu64,
		                   column, begin, end);
	if (status == LADE_OK)
		*elements = (lade_rntuple_part){begin, end - begin};
	return status;
}
