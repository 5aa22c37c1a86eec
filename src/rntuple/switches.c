/*
 * switches.c: the elements of variants' columns: | index 8 | alternative 4 |.
 *
 * An alternative counts from 1 on, 0 is none; the index is that of an element of the alternative's
 * columns, counted from the cluster's start.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/read.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SWITCH_SIZE = 12 };

/* Of each field below a variant, which of its children it is below, from 0 on.  NULL: no memory. */
static uint32_t *number_fields(const lade_rntuple *t, uint32_t variant)
{
	uint32_t *number = calloc(t->field_count, sizeof *number), next = 0;
	for (uint32_t i = variant + 1; number && i < t->field_count; i++) {
		uint32_t parent = (uint32_t)t->field[i].parent;
		number[i] = parent == variant ? next++ : number[parent];
	}
	return number;
}

/* What indices of each alternative are below, in a cluster. */
static void find_most(const lade_rntuple *t, const rnt_column *m, size_t cluster,
                      const uint32_t *number, uint64_t *most, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		most[i] = UINT64_MAX;
	for (uint32_t i = m->counts; i != RNT_NONE; i = t->column_more[i].counts_too) {
		const rnt_column *below = &t->column_more[i];
		uint64_t have = below->extents[cluster].count / below->factor;
		uint64_t *own = &most[number[t->column[i].field]];
		*own = have < *own ? have : *own;
	}
}

lade_status lade__rnt_check_switches(const rnt_read *r, const rnt_goal *g, lade_error *err)
{
	const lade_rntuple *t = r->tuple;
	const rnt_column *m = &t->column_more[g->target.column];
	uint32_t own = (uint32_t)t->column[g->target.column].field, field = own;
	if (m->counts != RNT_NONE) /* of a projected field: that of another */
		field = (uint32_t)t->column[t->column_more[m->counts].parent].field;
	uint32_t count = t->field_more[field].child_count;
	uint64_t i = g->target.first, end = i + g->target.count;
	const uint8_t *at = g->to.data;
	if (t->field[field].role != LADE_RNTUPLE_VARIANT)
		return LADE_OK;
	uint32_t *number = number_fields(t, field);
	uint64_t *most = calloc(count + 1u, sizeof *most);
	lade_status status = most && number ? LADE_OK : lade__rnt_nomem(err);
	for (size_t k = 0; i < end && status == LADE_OK; k++) {
		const rnt_extent *x = &m->extents[k];
		uint64_t stop = x->first + x->count < end ? x->first + x->count : end;
		if (stop <= i)
			continue;
		find_most(t, m, k, number, most, count);
		for (; i < stop && status == LADE_OK; i++, at += SWITCH_SIZE) {
			uint64_t index = lade__le64(at);
			uint32_t which = lade__le32(at + 8);
			if (which && (which > count || index >= most[which - 1]))
				status = lade_fail(
					err, LADE_E_CORRUPT, LADE_NO_OFFSET,
					"rntuple: %s: element %" PRIu64 " is number %" PRIu64
					" of alternative %" PRIu32 ", cluster %zu has %" PRIu64
					" of it, and there are %" PRIu32 " alternatives",
					t->field[own].path, i, index, which, k,
					which > count ? 0 : most[which - 1], count);
		}
	}
	free(number);
	free(most);
	return status;
}
