/*
 * plan.c: from elements of columns to parts of pages, in the order of the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/read.h"

#include "base/options.h"

#include <inttypes.h>
#include <stdlib.h>

#define MEMORY_DEFAULT ((uint64_t)64 << 20)
#define MEMORY_DEVICE ((uint64_t)128 << 20)
/* For each thread that decodes from a local file: pages are decoded while they are in its cache. */
#define WAVE_OF_THREAD ((uint64_t)4 << 20)
/* While one wave of a server is decoded another is read.  To a device reading, the link and kernels
 * have one each, and one is made ready. */
#define LANES_SERVER 2
#define LANES_DEVICE RNT_LANES_MAX
/* Of what batches take as threads read it: bytes of a slot, slots for each thread, and pages, at
 * least.  With fewer slots threads and batches wait for each other. */
#define SLOT_LEAST ((uint64_t)256 << 10)
#define SLOTS_OF_THREAD 6
#define FED_LEAST 16
/* Waves for a device are not smaller for the sake of more of them. */
#define WAVE_DEVICE_LEAST ((uint64_t)4 << 20)
#define TARGET_FIRST LADE__SIZE_TO(lade_rntuple_target, span)

/* ---- targets -------------------------------------------------------------------------------- */

static lade_status check_target(const rnt_read *r, rnt_goal *g, size_t index, lade_error *err)
{
	const lade_rntuple *t = r->tuple;
	const lade_rntuple_target *target = &g->target;
	if (target->column >= t->column_count)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "rntuple: target %zu: column %" PRIu64 " of %zu", index,
		                 target->column, t->column_count);
	const lade_rntuple_column *c = &t->column[target->column];
	const char *path = t->field[c->field].path;
	if (target->first > c->element_count || target->count > c->element_count - target->first)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "rntuple: %s: %" PRIu64 " elements from %" PRIu64
		                 " on, it has %" PRIu64,
		                 path, target->count, target->first, c->element_count);
	g->adds_up = c->kind == LADE_RNTUPLE_OFFSETS && !(r->options.flags & LADE_RNTUPLE_ENDS);
	/* element_count is below 2^63, so one more does not wrap. */
	uint64_t count = target->count + g->adds_up;
	if (count > PTRDIFF_MAX / c->elem_size || target->span.size < count * c->elem_size)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "rntuple: %s: want room for %" PRIu64
		                 " elements of %zu bytes, have %zu bytes",
		                 path, count, c->elem_size, target->span.size);
	g->size = (size_t)count * c->elem_size;
	if (g->size && !target->span.data)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: %s: its span is NULL",
		                 path);
	g->to = target->span;
	return LADE_OK;
}

/* ---- pieces --------------------------------------------------------------------------------- */

static bool add_blank(rnt_read *r, size_t target, size_t at, size_t size)
{
	if (!lade__rnt_grow(&r->blank, &r->blank_cap, r->blank_count, sizeof *r->blank))
		return false;
	r->blank[r->blank_count++] = (rnt_blank){target, at, size};
	return true;
}

/* The first page of an extent that ends behind element 'first'. */
static size_t find_page(const lade_rntuple *t, const rnt_extent *x, uint64_t first)
{
	size_t low = x->page, high = x->page + x->page_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->page[middle].first + t->page[middle].count <= first)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Elements [first, end) of an extent; the first one goes to byte 'at'. */
static bool cut_extent(rnt_read *r, size_t target, const rnt_extent *x, uint64_t first,
                       uint64_t end, size_t at)
{
	const lade_rntuple *t = r->tuple;
	size_t size = t->column[r->goal[target].target.column].elem_size;
	if (first < x->stored) {
		uint64_t stop = x->stored < end ? x->stored : end;
		if (!add_blank(r, target, at, (size_t)(stop - first) * size))
			return false;
		at += (size_t)(stop - first) * size;
		first = stop;
	}
	for (size_t i = find_page(t, x, first); first < end; i++) {
		const rnt_page *page = &t->page[i];
		uint64_t skip = first - page->first, take = page->count - skip;
		if (page->count == 0)
			continue;
		take = take < end - first ? take : end - first;
		if (!lade__rnt_grow(&r->piece, &r->piece_cap, r->piece_count, sizeof *r->piece))
			return false;
		r->piece[r->piece_count++] = (rnt_piece){.page = page,
		                                         .physical = x->physical,
		                                         .target = target,
		                                         .skip = (size_t)skip,
		                                         .take = (size_t)take,
		                                         .at = at};
		first += take;
		at += (size_t)take * size;
	}
	return true;
}

/* The extent that has an element, or the last one. */
static size_t find_extent(const lade_rntuple *t, const rnt_column *m, uint64_t element)
{
	size_t low = 0, high = t->cluster_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->extents[middle].first + m->extents[middle].count <= element)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool cut_target(rnt_read *r, size_t index)
{
	const lade_rntuple *t = r->tuple;
	rnt_goal *g = &r->goal[index];
	const rnt_column *m = &t->column_more[g->target.column];
	size_t size = t->column[g->target.column].elem_size;
	uint64_t first = g->target.first, end = first + g->target.count;
	size_t k = find_extent(t, m, first), at = 0;
	if (g->adds_up) {
		/* Number 0 is the end of the element before; clusters begin at 0. */
		if (g->target.count && first > m->extents[k].first)
			first--;
		else if (!add_blank(r, index, 0, size))
			return false;
		else
			at = size;
	}
	for (; first < end; k++) {
		const rnt_extent *x = &m->extents[k];
		uint64_t stop = x->first + x->count < end ? x->first + x->count : end;
		if (stop <= first)
			continue;
		if (!cut_extent(r, index, x, first, stop, at))
			return false;
		at += (size_t)(stop - first) * size;
		first = stop;
	}
	return true;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Equal pages are neighbours, and of these those that are decoded alike. */
static int by_place(const void *va, const void *vb)
{
	const rnt_piece *a = va, *b = vb;
	int order = compare(a->page->off, b->page->off);
	order = order ? order : compare(a->page->size, b->page->size);
	order = order ? order : compare(a->page->sum, b->page->sum);
	order = order ? order : compare(a->page->count, b->page->count);
	order = order ? order : compare(a->physical, b->physical);
	order = order ? order : compare(a->target, b->target);
	return order ? order : compare(a->at, b->at);
}

/* ---- the plan ------------------------------------------------------------------------------- */

static lade_status read_options(rnt_read *r, const lade_rntuple_read_options *options,
                                lade_error *err)
{
	lade_rntuple_read_options *o = &r->options;
	lade_status status =
		lade__options_read(o, sizeof *o, options, "lade_rntuple_read_options", err);
	if (status == LADE_OK)
		status =
			lade__size_given(&o->target_size, TARGET_FIRST, "lade_rntuple_target", err);
	if (status != LADE_OK)
		return status;
	if (o->flags & ~(uint32_t)(LADE_RNTUPLE_IGNORE_CHECKSUMS | LADE_RNTUPLE_ENDS))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "rntuple: flags 0x%x, of which some are not known", o->flags);
	r->engine = o->engine ? o->engine : r->tuple->file.engine;
	r->file = r->tuple->file;
	lade__cancel_quiet(&r->quiet, o->cancel);
	r->file.cancel = o->cancel ? &r->quiet : NULL;
	r->file.engine = r->engine;
	return LADE_OK;
}

static lade_status take_targets(rnt_read *r, const lade_rntuple_target *targets, size_t count,
                                lade_error *err)
{
	lade__array array = {
		.own = (void *)(uintptr_t)targets, .count = count, .own_size = sizeof *targets};
	lade_status status = lade__array_open(&array, r->options.target_size, "target", err);
	if (status != LADE_OK)
		return status;
	r->goal = calloc(count + 1, sizeof *r->goal);
	if (!r->goal)
		status = lade__rnt_nomem(err);
	for (size_t i = 0; i < count && status == LADE_OK; i++) {
		r->goal[i].target = ((const lade_rntuple_target *)array.own)[i];
		status = check_target(r, &r->goal[i], i, err);
		r->report.written_size += r->goal[i].size;
		lade_place place = r->goal[i].target.span.place;
		if (!lade_kind_is_host(place.kind)) {
			r->device = true;
			r->device_number = place.device;
			r->goal[i].there =
				status == LADE_OK && r->goal[i].adds_up &&
				(uintptr_t)r->goal[i].target.span.data % sizeof(int64_t) == 0 &&
				lade__rnt_ends_kernels(place.device);
		}
	}
	r->goal_count = r->goal ? count : 0;
	lade__array_close(&array, false);
	return status;
}

/* What is known of all distinct pages. */
typedef struct pages {
	uint64_t count, size;
	uint64_t stored_most, most; /* of the largest: stored bytes, and those of either side */
} pages;

static pages pages_of(const rnt_read *r)
{
	pages all = {.count = 0};
	for (size_t i = 0; i < r->piece_count; i++) {
		const rnt_piece *p = &r->piece[i];
		uint64_t size = lade__rnt_page_bytes(p->page);
		const lade_rntuple_column *c =
			&r->tuple->column[r->goal[p->target].target.column];
		uint64_t decoded = (uint64_t)p->page->count * c->elem_size;
		if (i && lade__rnt_same_page(p, p - 1))
			continue;
		all.count++;
		all.size += size;
		all.stored_most = size > all.stored_most ? size : all.stored_most;
		all.most = decoded > all.most ? decoded : all.most;
	}
	all.most = all.most > all.stored_most ? all.most : all.stored_most;
	return all;
}

/* Whether batches can take pages as threads read them, by slots; chooses these. */
static bool choose_slots(rnt_read *r, const pages *all)
{
	uint64_t size = all->stored_most > SLOT_LEAST ? all->stored_most : SLOT_LEAST;
	size = (size + 4095) / 4096 * 4096;
	uint64_t most = r->wave_size / size, want = all->size / size + 1;
	bool near = r->file.source.ops->flags & LADE_SOURCE_LOCAL;
	for (size_t i = 0; i < r->goal_count; i++) {
		const rnt_goal *g = &r->goal[i];
		near &= g->size == 0 || (g->to.place.kind == LADE_DEVICE &&
		                         g->to.place.device == r->device_number &&
		                         (!g->adds_up || g->there));
	}
	if (!near || all->count < FED_LEAST || r->options.where == LADE_WHERE_HOST ||
	    (most < SLOTS_OF_THREAD * r->threads && most < want))
		return false;
	most = most < RNT_SLOTS_MAX ? most : RNT_SLOTS_MAX;
	r->lanes = (size_t)(want < most ? want : most);
	r->wave_size = size;
	r->page_most = all->most;
	return true;
}

/* A server gives more if it is asked for much at once, and a device decodes more. */
static void choose_waves(rnt_read *r)
{
	unsigned threads = r->options.threads ? r->options.threads : lade_cpu_count();
	bool local = r->file.source.ops->flags & LADE_SOURCE_LOCAL;
	r->wave_size = r->options.memory ? r->options.memory
	               : r->device       ? MEMORY_DEVICE
	                                 : MEMORY_DEFAULT;
	r->lanes = 1;
	r->threads = r->options.threads;
	if (r->device) {
		pages all = pages_of(r);
		uint64_t each = all.size / (2 * LANES_DEVICE);
		r->threads = threads;
		r->fed = threads > 1 && choose_slots(r, &all);
		if (r->fed) {
			/* Batches want processors, too. */
			r->threads = threads > 4 ? threads - 2 : threads;
			return;
		}
		r->lanes = LANES_DEVICE;
		r->wave_size /= LANES_DEVICE;
		each = each < WAVE_DEVICE_LEAST ? WAVE_DEVICE_LEAST : each;
		if (r->wave_size > each)
			r->wave_size = each;
	} else if (r->tuple->view.data) {
		return;
	} else if (!local && threads > 1) {
		r->lanes = LANES_SERVER;
		r->wave_size /= LANES_SERVER;
	} else if (local && r->wave_size > threads * WAVE_OF_THREAD) {
		r->wave_size = threads * WAVE_OF_THREAD;
	}
}

size_t lade__rnt_wave(const rnt_read *r, size_t piece, uint64_t *bytes, size_t *distinct,
                      size_t *ranges)
{
	size_t i = piece;
	uint64_t end = 0;
	*bytes = 0;
	*distinct = *ranges = 0;
	for (; i < r->piece_count; i++) {
		const rnt_piece *p = &r->piece[i];
		uint64_t size = lade__rnt_page_bytes(p->page);
		if (i > piece && lade__rnt_same_page(p, p - 1))
			continue;
		if (i > piece && (size > r->wave_size || *bytes > r->wave_size - size))
			break;
		*ranges += i == piece || p->page->off != end;
		*bytes += size;
		++*distinct;
		end = p->page->off + size;
	}
	return i;
}

static uint64_t decoded_size(const rnt_read *r, const rnt_piece *p)
{
	return lade__rnt_page_size(&r->tuple->physical[p->physical], p->page->count);
}

/* What running will do. */
static void foretell(rnt_read *r)
{
	lade_rntuple_report *report = &r->report;
	for (size_t i = 0, next; i < r->piece_count; i = next) {
		uint64_t bytes;
		size_t distinct, ranges;
		next = lade__rnt_wave(r, i, &bytes, &distinct, &ranges);
		report->wave_count++;
		report->stored_size += bytes;
		report->distinct_count += distinct;
		report->range_count += ranges;
		if (!r->tuple->view.data && bytes > report->host_memory)
			report->host_memory = bytes;
		for (size_t k = i; k < next; k++)
			if (k == i || !lade__rnt_same_page(&r->piece[k], &r->piece[k - 1]))
				bytes += decoded_size(r, &r->piece[k]);
		if (r->device && bytes > report->device_memory)
			report->device_memory = bytes;
	}
	for (size_t i = 0; i < r->piece_count; i++) {
		if (i == 0 || !lade__rnt_same_page(&r->piece[i], &r->piece[i - 1]))
			report->decoded_size += decoded_size(r, &r->piece[i]);
	}
	r->lanes = report->wave_count < r->lanes ? (size_t)report->wave_count : r->lanes;
	report->host_memory *= r->lanes;
	report->device_memory *= r->lanes;
	report->page_count = r->piece_count;
	report->host_memory += r->piece_cap * sizeof *r->piece;
	for (size_t i = 0; i < r->goal_count; i++) {
		const rnt_goal *g = &r->goal[i];
		if (g->adds_up && !g->there && !lade_kind_is_host(g->to.place.kind))
			report->host_memory += g->size;
	}
	size_t ends = lade__rnt_ends_memory(r);
	report->device_memory = ends > report->device_memory ? ends : report->device_memory;
}

lade_status lade__rnt_plan(rnt_read *r, lade_rntuple *tuple, const lade_rntuple_target *targets,
                           size_t count, const lade_rntuple_read_options *options, lade_error *err)
{
	r->tuple = tuple;
	if (!tuple || (count && !targets))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: %s is NULL",
		                 tuple ? "'targets'" : "the RNTuple");
	lade_status status = read_options(r, options, err);
	if (status == LADE_OK)
		status = take_targets(r, targets, count, err);
	for (size_t i = 0; i < count && status == LADE_OK; i++)
		if (!cut_target(r, i))
			status = lade__rnt_nomem(err);
	if (status != LADE_OK)
		return status;
	if (r->piece_count)
		qsort(r->piece, r->piece_count, sizeof *r->piece, by_place);
	choose_waves(r);
	foretell(r);
	return LADE_OK;
}

void lade__rnt_plan_free(rnt_read *r)
{
	for (size_t i = 0; i < r->coding_count; i++)
		lade_spec_unref(r->coding[i].spec);
	for (size_t i = 0; i < r->goal_count; i++)
		free(r->goal[i].own);
	free(r->coding);
	free(r->goal);
	free(r->piece);
	free(r->blank);
}
