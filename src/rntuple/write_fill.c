/*
 * write_fill.c: from a caller's columns to those of clusters.
 *
 *     entries of the call     |---- cluster ----|---- cluster ----|--|
 *     offsets, as given       o0  o1  o2 ...    oi  ...
 *     as stored               o1 - o0, o2 - o0  from 0 on again
 *
 * Elements are counted from the top: how many a column has up to some entry follows from the
 * offsets, or from the alternatives, above it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include "base/options.h"
#include "base/try.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ALTERNATIVES = 126, SWITCH_SIZE = 12 };

#define FILL_FIRST LADE__SIZE_TO(lade_rntuple_fill, reserved)
#define CLUSTER_DEFAULT ((uint64_t)128 << 20)

/* A public column of the call. */
typedef struct column {
	const lade_rntuple_column *about;
	const char *path;
	uint32_t physical;                  /* RNT_NONE: projected */
	uint32_t parent;                    /* as in rnt_column */
	uint32_t alternative, alternatives; /* its own; of a switch, how many there are */
	uint64_t factor;
	lade_cspan span;
	lade_dtype dtype;
	size_t elem_size;
	uint64_t count;      /* elements, or collections, in the span */
	uint64_t begin, end; /* elements of the cluster */
	uint64_t *tags;      /* of switches: elements by alternative, before 'begin' and 'end' */
	uint8_t *own;        /* of offsets and switches: as they are stored */
	bool given;
} column;

typedef struct filling {
	lade_rntuple_writer *w;
	column *column;
	size_t count;
	rnt_part *part; /* by physical column */
} filling;

/* ---- what the caller gave ------------------------------------------------------------------- */

static lade_status take_type(column *c, lade_dtype dtype, lade_error *err)
{
	lade_rntuple_kind kind = c->about->kind;
	bool fits = true;
	c->dtype = dtype ? dtype : c->about->dtype;
	c->elem_size = lade_dtype_size(c->dtype);
	if (kind == LADE_RNTUPLE_VALUES)
		fits = lade_dtype_class(c->dtype) == lade_dtype_class(c->about->dtype) &&
		       !lade_dtype_is_big(c->dtype);
	else if (kind == LADE_RNTUPLE_OFFSETS)
		fits = c->dtype == LADE_I8 || c->dtype == LADE_I4 || c->dtype == LADE_U4;
	else if (dtype == LADE_DTYPE_NONE)
		c->elem_size = SWITCH_SIZE;
	else
		fits = dtype == LADE_U1 || dtype == LADE_I1 || dtype == LADE_U4;
	if (fits)
		return LADE_OK;
	return lade_fail(err, LADE_E_DTYPE, LADE_NO_OFFSET,
	                 "rntuple: %s: elements of type %s, the column has %s", c->path,
	                 lade_dtype_text(c->dtype), lade_dtype_text(c->about->dtype));
}

static lade_status take_fill(filling *f, const lade_rntuple_fill *fill, lade_error *err)
{
	if (fill->column >= f->count || f->column[fill->column].physical == RNT_NONE ||
	    f->column[fill->column].given)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "rntuple: column %" PRIu64 " of %zu is given twice, or projected",
		                 fill->column, f->count);
	column *c = &f->column[fill->column];
	lade_kind kind = fill->span.place.kind;
	lade_status status = take_type(c, fill->dtype, err);
	if (status != LADE_OK)
		return status;
	c->given = true;
	c->span = fill->span;
	c->count = fill->span.size / c->elem_size;
	if (fill->span.size % c->elem_size || (fill->span.size && !fill->span.data))
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "rntuple: %s: %zu bytes for elements of %zu", c->path,
		                 fill->span.size, c->elem_size);
	if (c->about->kind == LADE_RNTUPLE_VALUES)
		return LADE_OK;
	if (c->count && c->about->kind == LADE_RNTUPLE_OFFSETS)
		c->count--; /* one number more than collections */
	return lade_kind_is_host(kind)
	               ? LADE_OK
	               : lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                           "rntuple: %s: offsets and switches must be on the host",
	                           c->path);
}

/* The columns, before anything is given. */
static lade_status begin(filling *f, lade_error *err)
{
	const lade_rntuple *t = f->w->schema;
	f->count = t->column_count;
	f->column = calloc(f->count + 1, sizeof *f->column);
	f->part = calloc(t->physical_count + 1, sizeof *f->part);
	if (!f->column || !f->part)
		return lade__rnt_nomem(err);
	for (size_t i = 0; i < f->count; i++)
		f->column[i] = (column){.about = &t->column[i],
		                        .path = t->field[t->column[i].field].path,
		                        .physical = RNT_NONE,
		                        .parent = t->column_more[i].parent,
		                        .factor = t->column_more[i].factor};
	for (uint32_t i = 0; i < t->physical_count; i++) {
		const rnt_physical *p = &t->physical[i];
		if (p->representation || p->column == RNT_NONE)
			continue;
		column *c = &f->column[p->column];
		c->physical = i;
		c->alternative = f->w->sink[i].alternative;
		if (c->about->kind != LADE_RNTUPLE_SWITCH)
			continue;
		c->alternatives = t->field_more[p->field].child_count;
		if (c->alternatives >= ALTERNATIVES)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "rntuple: %s: %" PRIu32 " alternatives, the limit is %d",
			                 c->path, c->alternatives, ALTERNATIVES - 1);
		c->tags = calloc(2 * ALTERNATIVES, sizeof *c->tags);
		if (!c->tags)
			return lade__rnt_nomem(err);
	}
	return LADE_OK;
}

static void end(filling *f)
{
	for (size_t i = 0; f->column && i < f->count; i++) {
		free(f->column[i].tags);
		free(f->column[i].own);
	}
	free(f->column);
	free(f->part);
}

/* ---- offsets and alternatives --------------------------------------------------------------- */

static int64_t offset_at(const column *c, uint64_t i)
{
	const uint8_t *data = c->span.data;
	if (c->elem_size == 8)
		return (int64_t)lade__le64(data + 8 * i);
	uint32_t value = lade__le32(data + 4 * i);
	return c->dtype == LADE_U4 ? (int64_t)value : (int32_t)value;
}

static uint32_t tag_at(const column *c, uint64_t i)
{
	const uint8_t *data = c->span.data;
	if (c->elem_size == 1)
		return data[i];
	return lade__le32(data + (c->elem_size == 4 ? 4 * i : SWITCH_SIZE * i + 8));
}

static lade_status check_offsets(const column *c, lade_error *err)
{
	int64_t before = 0;
	for (uint64_t i = c->begin; i <= c->end && c->span.size; i++) {
		int64_t here = offset_at(c, i);
		if (here < before)
			return lade_fail(err, LADE_E_CORRUPT, i,
			                 "rntuple: %s: offset %" PRIu64 " is %" PRId64
			                 ", that before it %" PRId64,
			                 c->path, i, here, before);
		before = here;
	}
	return LADE_OK;
}

/* Counts the alternatives of elements [from, to) into 'tags'. */
static lade_status count_tags(const column *c, uint64_t from, uint64_t to, uint64_t *tags,
                              lade_error *err)
{
	for (uint64_t i = from; i < to; i++) {
		uint32_t tag = tag_at(c, i);
		if (tag > c->alternatives)
			return lade_fail(err, LADE_E_CORRUPT, i,
			                 "rntuple: %s: element %" PRIu64 " has alternative %" PRIu32
			                 " of %" PRIu32,
			                 c->path, i, tag, c->alternatives);
		if (tag && c->elem_size == SWITCH_SIZE &&
		    lade__le64((const uint8_t *)c->span.data + SWITCH_SIZE * i) != tags[tag])
			return lade_fail(err, LADE_E_CORRUPT, i,
			                 "rntuple: %s: element %" PRIu64 " is not number %" PRIu64
			                 " of its alternative",
			                 c->path, i, tags[tag]);
		tags[tag]++;
	}
	return LADE_OK;
}

/* How many elements of 'c' belong to 'entries' entries, its parents being counted. */
static lade_status count_one(const filling *f, column *c, uint64_t entries, lade_error *err)
{
	uint64_t n = entries;
	if (c->parent != RNT_NONE) {
		const column *above = &f->column[c->parent];
		if (above->about->kind == LADE_RNTUPLE_SWITCH)
			n = above->tags[ALTERNATIVES + c->alternative];
		else
			n = above->span.size ? (uint64_t)offset_at(above, above->end) : 0;
	}
	if (__builtin_mul_overflow(n, c->factor, &c->end) || c->end > c->count)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "rntuple: %s: %" PRIu64 " elements are given, want %" PRIu64,
		                 c->path, c->count, n * c->factor);
	if (c->about->kind != LADE_RNTUPLE_SWITCH)
		return LADE_OK;
	memcpy(c->tags + ALTERNATIVES, c->tags, ALTERNATIVES * sizeof *c->tags);
	return count_tags(c, c->begin, c->end, c->tags + ALTERNATIVES, err);
}

static lade_status count_all(filling *f, uint64_t entries, lade_error *err)
{
	for (size_t i = 0; i < f->count; i++) {
		column *c = &f->column[i];
		if (c->physical == RNT_NONE)
			continue;
		lade_status status = count_one(f, c, entries, err);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

/* What was counted is done: the next cluster begins there. */
static void move_on(filling *f)
{
	for (size_t i = 0; i < f->count; i++) {
		column *c = &f->column[i];
		c->begin = c->end;
		if (c->tags)
			memcpy(c->tags, c->tags + ALTERNATIVES, ALTERNATIVES * sizeof *c->tags);
	}
}

/* Everything is checked before anything is written.  Afterwards all columns are at entry 0. */
static lade_status check_all(filling *f, uint64_t entries, lade_error *err)
{
	lade_status status = count_all(f, 0, err);
	if (status != LADE_OK)
		return status;
	move_on(f);
	for (size_t i = 0; i < f->count; i++) {
		column *c = &f->column[i];
		if (c->physical == RNT_NONE)
			continue;
		status = count_one(f, c, entries, err);
		if (status == LADE_OK && c->about->kind == LADE_RNTUPLE_OFFSETS)
			status = check_offsets(c, err);
		if (status != LADE_OK)
			return status;
		if (c->parent == RNT_NONE && c->end != c->count)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "rntuple: %s: %" PRIu64
			                 " elements are given, want %" PRIu64,
			                 c->path, c->count, c->end);
	}
	return LADE_OK;
}

/* ---- clusters ------------------------------------------------------------------------------- */

/* Bytes of what is counted, in the stored types. */
static uint64_t counted_size(const filling *f)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < f->count; i++) {
		const column *c = &f->column[i];
		uint64_t more;
		if (__builtin_mul_overflow(c->end - c->begin, c->about->bits, &more) ||
		    __builtin_add_overflow(bits, more, &bits))
			return UINT64_MAX;
	}
	return bits / 8;
}

/* The entry that a cluster from 'first' on ends before; the columns are then counted up to it. */
static lade_status cut(filling *f, uint64_t first, uint64_t entries, uint64_t *out, lade_error *err)
{
	uint64_t limit = f->w->options.cluster_size ? f->w->options.cluster_size : CLUSTER_DEFAULT;
	uint64_t low = first + 1, high = entries;
	lade_status status = count_all(f, entries, err);
	*out = entries;
	if (status != LADE_OK || counted_size(f) <= limit)
		return status;
	/* 'low' entries are taken anyway; more than 'high' are too many. */
	while (low < high && status == LADE_OK) {
		uint64_t middle = high - (high - low) / 2;
		status = count_all(f, middle, err);
		if (counted_size(f) <= limit)
			low = middle;
		else
			high = middle - 1;
	}
	*out = low;
	return status == LADE_OK ? count_all(f, low, err) : status;
}

/* Offsets and switches in the form of the file. */
static lade_status make_own(column *c, const rnt_type *type, lade_error *err)
{
	bool offsets = c->about->kind == LADE_RNTUPLE_OFFSETS;
	size_t size = offsets ? lade_dtype_size(type->dtype) : SWITCH_SIZE;
	uint64_t count = c->end - c->begin;
	if (count > PTRDIFF_MAX / SWITCH_SIZE)
		return lade__rnt_nomem(err);
	free(c->own);
	c->own = malloc((size_t)count * size + 1);
	if (!c->own)
		return lade__rnt_nomem(err);
	int64_t base = offsets && c->span.size ? offset_at(c, c->begin) : 0;
	uint64_t tags[ALTERNATIVES] = {0};
	for (uint64_t i = 0; i < count; i++) {
		uint8_t *at = c->own + i * size;
		if (!offsets) {
			uint32_t tag = tag_at(c, c->begin + i);
			lade__le_put(at, tag ? tags[tag]++ : 0, 8);
			lade__le_put(at + 8, tag, 4);
			continue;
		}
		uint64_t value = (uint64_t)(offset_at(c, c->begin + i + 1) - base);
		if (size == 4 && value > UINT32_MAX)
			return lade_fail(err, LADE_E_VALUE, i,
			                 "rntuple: %s: offset %" PRIu64
			                 " in 32 bits: cut clusters smaller",
			                 c->path, value);
		lade__le_put(at, value, size);
	}
	return LADE_OK;
}

static lade_status make_part(filling *f, column *c, lade_error *err)
{
	const rnt_type *type = lade__rnt_type(f->w->schema->physical[c->physical].type);
	rnt_part *part = &f->part[c->physical];
	*part = (rnt_part){.stored = true,
	                   .place = c->span.place,
	                   .dtype = c->dtype,
	                   .elem_size = c->elem_size,
	                   .count = c->end - c->begin};
	if (c->about->kind == LADE_RNTUPLE_VALUES) {
		if (c->span.data)
			part->data = (const uint8_t *)c->span.data + c->begin * c->elem_size;
		return LADE_OK;
	}
	lade_status status = make_own(c, type, err);
	part->data = c->own;
	part->place = LADE_PLACE_HOST;
	part->dtype = type->dtype;
	part->elem_size = type->dtype ? lade_dtype_size(type->dtype) : SWITCH_SIZE;
	return status;
}

static lade_status write_all(filling *f, uint64_t entries, lade_error *err)
{
	for (uint64_t first = 0, next; first < entries; first = next) {
		lade_status status = cut(f, first, entries, &next, err);
		for (size_t i = 0; i < f->count && status == LADE_OK; i++)
			if (f->column[i].physical != RNT_NONE)
				status = make_part(f, &f->column[i], err);
		if (status == LADE_OK)
			status = lade__rnt_write_cluster(f->w, next - first, f->part, err);
		if (status != LADE_OK)
			return status;
		move_on(f);
	}
	return LADE_OK;
}

lade_status lade__rnt_fill(lade_rntuple_writer *w, uint64_t entry_count,
                           const lade_rntuple_fill *fills, size_t count, lade_error *err)
{
	lade__array array = {
		.own = (void *)(uintptr_t)fills, .count = count, .own_size = sizeof *fills};
	filling f = {.w = w};
	lade_status status;
	TRY(lade__size_given(&w->options.fill_size, FILL_FIRST, "fill_size", err));
	TRY(lade__array_open(&array, w->options.fill_size, "fill", err));
	fills = array.own;
	status = begin(&f, err);
	for (size_t i = 0; i < count && status == LADE_OK; i++)
		status = take_fill(&f, &fills[i], err);
	for (size_t i = 0; i < f.count && status == LADE_OK; i++)
		if (f.column[i].physical != RNT_NONE && !f.column[i].given)
			status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                   "rntuple: %s: column %zu of %zu is not given",
			                   f.column[i].path, i, f.count);
	if (status == LADE_OK && entry_count > ((uint64_t)1 << 56) - 1 - w->entry_count)
		status = lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                   "rntuple: %" PRIu64 " entries, 2^56 is the limit", entry_count);
	if (status == LADE_OK)
		status = check_all(&f, entry_count, err);
	if (status == LADE_OK)
		status = lade__rnt_write_header(w, err);
	if (status == LADE_OK)
		status = write_all(&f, entry_count, err);
	lade__array_close(&array, false);
	end(&f);
out:
	return status;
}
