/*
 * resolve.c: from what the file has to the fields and columns that callers see.
 *
 * A column may have several representations; in a cluster one of them is stored and the others are
 * suppressed.  A column that was added later lacks elements; these are zeros.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/rntuple.h"

#include <lade/checksum.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH_MAX = 100, PATH_MAX_SIZE = 4096 };

/* ---- fields -------------------------------------------------------------------------------- */

static lade_status make_path(lade_rntuple *t, lade_rntuple_field *f, bool top, lade_error *err)
{
	const char *above = top ? "" : t->field[f->parent].path;
	size_t size = strlen(above) + strlen(f->name) + 2;
	/* Each child has its parents' names again. */
	t->path_size += size;
	if (t->path_size > t->file.metadata_max)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "rntuple: the paths of its fields have %" PRIu64
		                 " bytes and more, the limit is %" PRIu64,
		                 t->path_size, t->file.metadata_max);
	if (size > PATH_MAX_SIZE)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "rntuple: the path of a field has %zu bytes, the limit is %d",
		                 size, PATH_MAX_SIZE);
	char *path = lade__rnt_keep(&t->memory, 1, size);
	if (!path)
		return lade__rnt_nomem(err);
	snprintf(path, size, "%s%s%s", above, top ? "" : ".", f->name);
	f->path = path;
	return LADE_OK;
}

/* Sets what a field has from its parent, which comes before it. */
static lade_status place_field(lade_rntuple *t, uint32_t i, lade_error *err)
{
	lade_rntuple_field *f = &t->field[i];
	rnt_field *m = &t->field_more[i];
	uint32_t parent = (uint32_t)f->parent;
	bool top = parent == i;
	uint64_t factor = 1;
	*m = (rnt_field){.flags = m->flags,
	                 .source = m->source,
	                 .top = i,
	                 .counted = RNT_NONE,
	                 .representation = RNT_NONE};
	if (!top) {
		rnt_field *above = &t->field_more[parent];
		above->child = i;
		above->child_count++;
		lade_rntuple_role role = t->field[parent].role;
		bool counts = role == LADE_RNTUPLE_COLLECTION || role == LADE_RNTUPLE_VARIANT;
		m->top = above->top;
		m->depth = above->depth + 1;
		m->counted = counts ? parent : above->counted;
		factor = counts ? 1 : above->factor;
	}
	if (m->depth > DEPTH_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "rntuple: field %" PRIu32 " is below more than %d others", i,
		                 DEPTH_MAX);
	if (__builtin_mul_overflow(factor, f->array_size ? f->array_size : 1, &m->factor))
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "rntuple: field %" PRIu32 ", an array of %" PRIu64
		                 ", has too many elements",
		                 i, f->array_size);
	return make_path(t, f, top, err);
}

uint64_t lade__rnt_path_hash(const char *path)
{
	return lade_checksum_of(LADE_XXH3, path, strlen(path));
}

/* Of fields with the same path, the first one is found. */
static lade_status index_paths(lade_rntuple *t, lade_error *err)
{
	for (t->path_slots = 1; t->path_slots < t->field_count;)
		t->path_slots *= 2;
	t->by_path = lade__rnt_keep(&t->memory, t->path_slots, sizeof *t->by_path);
	if (!t->by_path)
		return lade__rnt_nomem(err);
	memset(t->by_path, 0xFF, t->path_slots * sizeof *t->by_path);
	for (uint32_t i = (uint32_t)t->field_count; i-- > 0;) {
		uint64_t hash = lade__rnt_path_hash(t->field[i].path);
		uint32_t *slot = &t->by_path[(size_t)hash & (t->path_slots - 1)];
		t->field_more[i].same = *slot;
		*slot = i;
	}
	return LADE_OK;
}

static void hide(lade_rntuple *t, uint32_t field, const char *why)
{
	lade_rntuple_field *top = &t->field[t->field_more[field].top];
	if (!top->hidden)
		top->hidden = why;
}

/* What is wrong with a part of a top field hides all of it. */
static void spread_hidden(lade_rntuple *t)
{
	for (uint32_t i = 0; i < t->field_count; i++)
		if (t->field[i].hidden)
			hide(t, i, t->field[i].hidden);
	for (uint32_t i = 0; i < t->field_count; i++)
		t->field[i].hidden = t->field[t->field_more[i].top].hidden;
}

/* ---- columns ------------------------------------------------------------------------------- */

/* The position of each physical column in its representation.  Representation 0 comes first, and
 * says how many columns the field has. */
static lade_status place_columns(lade_rntuple *t, lade_error *err)
{
	for (size_t i = 0; i < t->physical_count; i++) {
		rnt_physical *p = &t->physical[i];
		rnt_field *m = &t->field_more[p->field];
		lade_rntuple_field *f = &t->field[p->field];
		bool next = p->representation == (uint32_t)(m->representation + 1);
		if (p->representation != m->representation && !next)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "rntuple: column %zu has representation %u, that before "
			                 "it %" PRIu32,
			                 i, p->representation, m->representation);
		if (next)
			m->position = 0;
		m->representation = p->representation;
		p->position = m->position++;
		if (p->representation == 0)
			f->column_count = m->position;
		else if (p->position >= f->column_count)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "rntuple: column %zu is number %" PRIu32
			                 " of its representation, the first has %" PRIu64,
			                 i, p->position, f->column_count);
		if (!lade__rnt_type(p->type))
			hide(t, p->field, "a column's type is not known");
		if (f->projected)
			hide(t, p->field, "a projected field has columns");
	}
	for (size_t i = 0; i < t->alias_count; i++) {
		lade_rntuple_field *f = &t->field[t->alias[i].field];
		f->column_count++;
		if (!f->projected)
			hide(t, t->alias[i].field, "an alias of a field that is not projected");
	}
	for (uint32_t i = 0; i < t->field_count; i++)
		if (t->field_more[i].counted != RNT_NONE &&
		    t->field[t->field_more[i].counted].column_count == 0)
			hide(t, i, "a collection without offsets");
	return LADE_OK;
}

/* Numbers the public columns. */
static void number_columns(lade_rntuple *t)
{
	uint64_t next = 0;
	for (size_t i = 0; i < t->field_count; i++) {
		lade_rntuple_field *f = &t->field[i];
		if (f->hidden)
			f->column_count = 0;
		f->column = next;
		next += f->column_count;
		t->field_more[i].position = 0;
	}
	t->column_count = (size_t)next;
	for (size_t i = 0; i < t->physical_count; i++) {
		rnt_physical *p = &t->physical[i];
		const lade_rntuple_field *f = &t->field[p->field];
		if (!f->hidden)
			p->column = (uint32_t)f->column + p->position;
	}
}

/* Adds a representation to a column.  NULL, or why it cannot be. */
static const char *add_type(lade_rntuple_column *c, const rnt_physical *p)
{
	const rnt_type *type = lade__rnt_type(p->type);
	lade_dtype dtype = type->cls == 'o' ? LADE_I8 : type->dtype;
	size_t size = type->cls == 's' ? 12 : lade_dtype_size(dtype);
	lade_rntuple_kind kind = type->cls == 'o'   ? LADE_RNTUPLE_OFFSETS
	                         : type->cls == 's' ? LADE_RNTUPLE_SWITCH
	                                            : LADE_RNTUPLE_VALUES;
	if (p->representation == 0) {
		*c = (lade_rntuple_column){.field = p->field,
		                           .position = p->position,
		                           .kind = kind,
		                           .dtype = dtype,
		                           .elem_size = size,
		                           .stored = type->name,
		                           .bits = p->bits};
		return NULL;
	}
	if (kind != c->kind || lade_dtype_class(dtype) != lade_dtype_class(c->dtype))
		return "its representations have different kinds of types";
	if (size > c->elem_size) {
		c->dtype = dtype;
		c->elem_size = size;
	}
	return NULL;
}

/* Which column counts the elements of another.  Parents come before what they count. */
static void count_by(lade_rntuple *t, uint32_t column)
{
	lade_rntuple_column *c = &t->column[column];
	rnt_column *m = &t->column_more[column];
	const rnt_field *f = &t->field_more[c->field];
	uint32_t above = (uint32_t)t->field[c->field].column;
	if (c->position && t->column[above].kind == LADE_RNTUPLE_OFFSETS) {
		m->parent = above; /* the bytes of a string */
		m->factor = 1;
	} else {
		m->parent = f->counted == RNT_NONE ? RNT_NONE
		                                   : (uint32_t)t->field[f->counted].column;
		m->factor = f->factor;
	}
	if (m->parent != RNT_NONE) {
		m->counts_too = t->column_more[m->parent].counts;
		t->column_more[m->parent].counts = column;
	}
}

static lade_status make_columns(lade_rntuple *t, lade_error *err)
{
	uint64_t most = t->file.metadata_max / (sizeof(rnt_extent) * (t->cluster_count + 1));
	if (t->column_count > most)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "rntuple: %zu columns in %zu clusters, the limit is %" PRIu64,
		                 t->column_count, t->cluster_count, most);
	size_t n = t->column_count + 1;
	t->column = lade__rnt_keep(&t->memory, n, sizeof *t->column);
	t->column_more = lade__rnt_keep(&t->memory, n, sizeof *t->column_more);
	if (!t->column || !t->column_more)
		return lade__rnt_nomem(err);
	for (size_t i = 0; i < t->physical_count; i++) {
		const rnt_physical *p = &t->physical[i];
		if (p->column == RNT_NONE)
			continue;
		const char *why = add_type(&t->column[p->column], p);
		if (why)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "rntuple: column %zu, of %s: %s", i,
			                 t->field[p->field].path, why);
		rnt_column *m = &t->column_more[p->column];
		int64_t first = p->first < 0 ? -(p->first + 1) + 1 : p->first;
		if (p->first == INT64_MIN)
			first = INT64_MAX;
		m->deferred = first > m->deferred ? first : m->deferred;
		if (p->representation)
			continue;
		m->extents = lade__rnt_keep(&t->memory, t->cluster_count + 1, sizeof *m->extents);
		if (!m->extents)
			return lade__rnt_nomem(err);
	}
	for (size_t i = 0; i < t->column_count; i++)
		t->column_more[i].counts = t->column_more[i].counts_too = RNT_NONE;
	for (uint32_t i = 0; i < t->column_count; i++)
		if (t->column_more[i].extents)
			count_by(t, i);
	return LADE_OK;
}

/* ---- extents ------------------------------------------------------------------------------- */

static lade_status take_run(lade_rntuple *t, uint32_t physical, size_t cluster, lade_error *err)
{
	const rnt_cluster *c = &t->cluster[cluster];
	const rnt_physical *p = &t->physical[physical];
	if (physical >= c->run_count || !t->run[c->run + physical].stored)
		return LADE_OK;
	const rnt_run *run = &t->run[c->run + physical];
	rnt_extent *x = &t->column_more[p->column].extents[cluster];
	lade_rntuple_column *column = &t->column[p->column];
	if (x->physical != RNT_NONE)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "rntuple: cluster %zu stores column %" PRIu32
		                 " and column %" PRIu32 ", which represent the same",
		                 cluster, x->physical, physical);
	*x = (rnt_extent){.first = run->first,
	                  .count = run->count,
	                  .stored = run->first,
	                  .page = run->page,
	                  .page_count = run->page_count,
	                  .physical = physical,
	                  .setting = run->setting};
	for (size_t i = run->page; i < run->page + run->page_count; i++) {
		column->page_count++;
		column->stored_size += t->page[i].size;
		column->decoded_size += lade__rnt_page_size(p, t->page[i].count);
	}
	return LADE_OK;
}

/* Checks an extent against what was counted, 'next' being the first element that is due, and adds
 * the elements that are not stored. */
static lade_status check_extent(const lade_rntuple *t, uint32_t column, size_t cluster,
                                uint64_t *next, lade_error *err)
{
	const rnt_column *m = &t->column_more[column];
	rnt_extent *x = &m->extents[cluster];
	const rnt_cluster *c = &t->cluster[cluster];
	uint64_t want = 0, end = x->physical == RNT_NONE ? *next : x->first + x->count;
	bool stored = x->physical != RNT_NONE;
	if (m->parent == RNT_NONE) {
		if (__builtin_mul_overflow(c->count, m->factor, &want) || want > INT64_MAX - *next)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "rntuple: column %" PRIu32 ": too many elements", column);
		want += *next;
	} else {
		want = end;
	}
	uint64_t from = stored ? x->first : want;
	bool late = from > *next && from <= (uint64_t)m->deferred;
	if (end != want && stored)
		late = false;
	if ((from != *next && !late) || (stored && end != want))
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "rntuple: column %" PRIu32 " (%s) has elements %" PRIu64
		                 " to %" PRIu64 " in cluster %zu, want %" PRIu64 " to %" PRIu64,
		                 column, t->field[t->column[column].field].path, from, end, cluster,
		                 *next, want);
	x->first = *next;
	x->count = want - *next;
	x->stored = from;
	*next = want;
	return LADE_OK;
}

static lade_status make_extents(lade_rntuple *t, lade_error *err)
{
	for (size_t i = 0; i < t->column_count; i++)
		for (size_t k = 0; t->column_more[i].extents && k < t->cluster_count; k++)
			t->column_more[i].extents[k].physical = RNT_NONE;
	lade_status status = LADE_OK;
	for (uint32_t i = 0; i < t->physical_count; i++) {
		bool seen = t->physical[i].column != RNT_NONE;
		for (size_t k = 0; seen && k < t->cluster_count && status == LADE_OK; k++)
			status = take_run(t, i, k, err);
	}
	for (uint32_t i = 0; i < t->column_count && status == LADE_OK; i++) {
		rnt_column *m = &t->column_more[i];
		uint64_t next = 0;
		for (size_t k = 0; m->extents && k < t->cluster_count && status == LADE_OK; k++)
			status = check_extent(t, i, k, &next, err);
		if (!m->extents)
			continue;
		t->column[i].element_count = next;
		t->column[i].first_stored = 0;
		for (size_t k = 0; k < t->cluster_count; k++)
			if (m->extents[k].stored > m->extents[k].first)
				t->column[i].first_stored = m->extents[k].stored;
	}
	return status;
}

/* Columns of projected fields are those of others. */
static void make_aliases(lade_rntuple *t)
{
	for (size_t i = 0; i < t->alias_count; i++) {
		const rnt_alias *a = &t->alias[i];
		lade_rntuple_field *f = &t->field[a->field];
		if (f->hidden)
			continue;
		uint32_t source = t->physical[a->physical].column;
		uint32_t position = t->field_more[a->field].position++;
		uint32_t column = (uint32_t)f->column + position;
		t->column[column] = t->column[source];
		t->column[column].field = a->field;
		t->column[column].position = position;
		t->column_more[column] = t->column_more[source];
	}
}

/* An alias of a hidden column hides its field, too. */
static void hide_aliases(lade_rntuple *t)
{
	for (size_t i = 0; i < t->alias_count; i++) {
		const lade_rntuple_field *source =
			&t->field[t->physical[t->alias[i].physical].field];
		if (source->hidden)
			hide(t, t->alias[i].field, "it projects a field that is hidden");
	}
	spread_hidden(t);
}

lade_status lade__rnt_resolve(lade_rntuple *t, lade_error *err)
{
	lade_status status = LADE_OK;
	for (uint32_t i = 0; i < t->field_count && status == LADE_OK; i++)
		status = place_field(t, i, err);
	if (status == LADE_OK)
		status = index_paths(t, err);
	if (status == LADE_OK)
		status = place_columns(t, err);
	if (status != LADE_OK)
		return status;
	spread_hidden(t);
	hide_aliases(t);
	number_columns(t);
	status = make_columns(t, err);
	if (status == LADE_OK)
		status = make_extents(t, err);
	if (status != LADE_OK)
		return status;
	make_aliases(t);
	lade_rntuple_info *info = &t->info;
	info->field_count = t->field_count;
	info->column_count = t->column_count;
	info->cluster_count = t->cluster_count;
	info->page_count = t->page_count;
	for (size_t i = 0; i < t->column_count; i++) {
		if (t->field[t->column[i].field].projected)
			continue;
		info->stored_size += t->column[i].stored_size;
		info->decoded_size += t->column[i].decoded_size;
	}
	return LADE_OK;
}
