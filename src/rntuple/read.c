/*
 * read.c: runs a read in waves: ranges of the file, checksums of pages, and one batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/read.h"

#include "base/options.h"
#include "base/try.h"

#include <lade/checksum.h>

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

/* Zeros for elements that are not stored, in places that the host cannot touch. */
#define ZEROS_SIZE ((size_t)256 << 10)

/* A part of a page, as a layout: its first element and their number. */
typedef struct box {
	size_t shape, start, count;
	lade_layout layout;
} box;

typedef struct wave {
	rnt_read *r;
	rnt_lane *lane;
	const rnt_piece *piece;
	size_t count;
	const uint8_t **data, **sum; /* of each piece's page */
	bool *direct;                /* of each piece: it is in its target */
	lade_segment *segment;
	lade_item *item;
	size_t *item_piece; /* its first piece */
	size_t item_count;
	lade_item_output *output;
	box *box;
	lade_result *result;
	lade_cspan *lz4;   /* blocks whose XXH64 is verified */
	size_t *lz4_piece; /* of each */
	size_t lz4_count;
} wave;

static lade_status page_error(const rnt_read *r, const rnt_piece *p, lade_status status,
                              const char *why, lade_error *err)
{
	const lade_rntuple *t = r->tuple;
	const lade_rntuple_column *c = &t->column[r->goal[p->target].target.column];
	return lade_fail(err, status, p->page->off,
	                 "rntuple: %.60s, %s page at byte %" PRIu64 ": %s", t->field[c->field].path,
	                 lade__rnt_type(t->physical[p->physical].type)->name, p->page->off, why);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static bool in_keys(const rnt_read *r, const rnt_page *page)
{
	return r->file.key_max && lade__rnt_page_bytes(page) > r->file.key_max;
}

/* Whether a piece is read straight into its target: a page that is stored as the caller wants it,
 * and whole, for one target. */
static bool is_direct(const wave *w, size_t i)
{
	const rnt_piece *p = &w->piece[i];
	const rnt_goal *g = &w->r->goal[p->target];
	const lade_spec *spec;
	if (p->take != p->page->count || in_keys(w->r, p->page) ||
	    !lade_kind_is_host(g->to.place.kind) ||
	    p->page->size !=
	            lade__rnt_page_size(&w->r->tuple->physical[p->physical], p->page->count) ||
	    (i && lade__rnt_same_page(p, p - 1)) ||
	    (i + 1 < w->count && lade__rnt_same_page(p, p + 1)))
		return false;
	return lade__rnt_coding(w->r, p, RNT_METHODS, &spec, NULL) == LADE_OK && !spec;
}

/* Where a range's bytes go, that of the range before if both are neighbours on both sides. */
static void add_range(const rnt_file *file, lade_range *ranges, size_t *count, uint64_t off,
                      uint8_t *to, size_t size)
{
	lade_range *last = *count ? &ranges[*count - 1] : NULL;
	if (last && last->off + last->dst.size == off &&
	    (uint8_t *)last->dst.data + last->dst.size == to)
		last->dst.size += size;
	else if (size)
		ranges[(*count)++] =
			(lade_range){.off = off,
		                     .want = file->version.size ? &file->version : NULL,
		                     .dst = lade_host_span(to, size)};
}

/* Reads pages, of which those that are one behind the other take one range. */
static lade_status read_ranges(wave *w, lade_error *err)
{
	const rnt_file *file = &w->r->file;
	lade_io_options options = {.struct_size = sizeof options,
	                           .request_size = sizeof(lade_range),
	                           .threads = w->r->threads,
	                           .cancel = file->cancel};
	lade_range *ranges = calloc(2 * w->count + 1, sizeof *ranges);
	uint8_t *at = w->lane->data;
	size_t count = 0;
	lade_status status = ranges ? LADE_OK : lade__rnt_nomem(err);
	for (size_t i = 0; i < w->count && status == LADE_OK; i++) {
		const rnt_piece *p = &w->piece[i];
		size_t size = (size_t)p->page->size, all = (size_t)lade__rnt_page_bytes(p->page);
		if (i && lade__rnt_same_page(p, p - 1)) {
			w->data[i] = w->data[i - 1];
			w->sum[i] = w->sum[i - 1];
			continue;
		}
		uint8_t *to = at;
		if (w->direct[i])
			to = (uint8_t *)w->r->goal[p->target].to.data + p->at;
		w->data[i] = to;
		w->sum[i] = w->direct[i] ? at : to + size;
		at += w->direct[i] ? all - size : all;
		if (in_keys(w->r, p->page)) {
			status = lade__rnt_payload(file, (rnt_locator){p->page->off, all}, to, err);
			continue;
		}
		add_range(file, ranges, &count, p->page->off, to, size);
		add_range(file, ranges, &count, p->page->off + size,
		          (uint8_t *)(uintptr_t)w->sum[i], all - size);
	}
	if (status == LADE_OK && count)
		status = lade_source_read(file->source, ranges, count, &options, err);
	free(ranges);
	return status;
}

/* Uses the file's bytes in place. */
static bool view_pages(wave *w)
{
	lade_cspan view = w->r->tuple->view;
	for (size_t i = 0; i < w->count; i++) {
		const rnt_page *page = w->piece[i].page;
		uint64_t size = lade__rnt_page_bytes(page);
		if (in_keys(w->r, page) || size > view.size || page->off > view.size - size)
			return false;
		w->data[i] = (const uint8_t *)view.data + page->off;
		w->sum[i] = w->data[i] + page->size;
	}
	return true;
}

static lade_status load_pages(wave *w, size_t bytes, lade_error *err)
{
	if (w->r->tuple->view.data && view_pages(w))
		return LADE_OK;
	for (size_t i = 0; i < w->count; i++) {
		w->direct[i] = is_direct(w, i);
		bytes -= w->direct[i] ? (size_t)w->piece[i].page->size : 0;
	}
	bool alone = !(w->r->file.source.ops->flags & LADE_SOURCE_LOCAL);
	if (!lade__rnt_lane_room(w->lane, bytes))
		return lade__rnt_nomem(err);
	if (alone)
		pthread_mutex_lock(&w->r->reading);
	lade_status status = read_ranges(w, err);
	if (alone)
		pthread_mutex_unlock(&w->r->reading);
	return status;
}

/* A page has a checksum, and is not that of the piece before. */
static bool has_own_sum(const wave *w, size_t i)
{
	const rnt_piece *p = &w->piece[i];
	return p->page->sum && (i == 0 || !lade__rnt_same_page(p, p - 1));
}

static lade_status verify_sums(const wave *w, lade_error *err)
{
	lade_status status = LADE_OK;
	lade_cspan *spans = malloc((w->count + 1) * sizeof *spans);
	uint64_t *sums = malloc((w->count + 1) * sizeof *sums);
	size_t count = 0, k = 0;
	if (!spans || !sums)
		status = lade__rnt_nomem(err);
	for (size_t i = 0; i < w->count && status == LADE_OK; i++)
		if (has_own_sum(w, i))
			spans[count++] =
				lade_host_cspan(w->data[i], (size_t)w->piece[i].page->size);
	if (status == LADE_OK && count)
		status = lade_checksums(w->r->engine, LADE_XXH3, spans, count, sums, err);
	for (size_t i = 0; i < w->count && status == LADE_OK; i++) {
		if (has_own_sum(w, i) && lade__le64(w->sum[i]) != sums[k++])
			status = page_error(w->r, &w->piece[i], LADE_E_CHECKSUM,
			                    "its XXH3 does not match", err);
	}
	free(spans);
	free(sums);
	return status;
}

/* ---- items ---------------------------------------------------------------------------------- */

/* Whether two pieces have one item: they come from equal bytes and are decoded alike. */
static bool same_item(const wave *w, size_t a, size_t b)
{
	const rnt_read *r = w->r;
	const rnt_physical *pa = &r->tuple->physical[w->piece[a].physical];
	const rnt_physical *pb = &r->tuple->physical[w->piece[b].physical];
	const lade_rntuple_column *ca =
		&r->tuple->column[r->goal[w->piece[a].target].target.column];
	const lade_rntuple_column *cb =
		&r->tuple->column[r->goal[w->piece[b].target].target.column];
	return w->data[a] == w->data[b] && w->piece[a].page->size == w->piece[b].page->size &&
	       w->piece[a].page->count == w->piece[b].page->count && pa->type == pb->type &&
	       pa->bits == pb->bits && ca->dtype == cb->dtype &&
	       memcmp(&pa->min, &pb->min, sizeof pa->min) == 0 &&
	       memcmp(&pa->max, &pb->max, sizeof pa->max) == 0;
}

static lade_status blocks_of(const wave *w, size_t piece, lade_segment *segments, rnt_blocks *b,
                             lade_error *err)
{
	const rnt_piece *p = &w->piece[piece];
	lade_error own = {.status = LADE_OK};
	uint64_t size = lade__rnt_page_size(&w->r->tuple->physical[p->physical], p->page->count);
	*b = (rnt_blocks){.data = w->data[piece],
	                  .size = p->page->size,
	                  .want = size,
	                  .segments = segments};
	lade_status status = lade__rnt_blocks(b, &own);
	for (size_t i = 0; segments && status == LADE_OK && i < b->count; i++)
		segments[i].place = w->lane->place;
	return status == LADE_OK ? status : page_error(w->r, p, status, own.message, err);
}

/* Where a piece goes. */
static lade_item_output output_of(const wave *w, size_t piece)
{
	const rnt_piece *p = &w->piece[piece];
	const rnt_goal *g = &w->r->goal[p->target];
	size_t size = w->r->tuple->column[g->target.column].elem_size;
	lade_item_output out = {
		.dst = {(uint8_t *)g->to.data + p->at, p->take * size, g->to.place}};
	if (p->take == p->page->count)
		return out;
	box *b = &w->box[piece];
	*b = (box){.shape = p->page->count, .start = p->skip, .count = p->take};
	b->layout = (lade_layout){.struct_size = sizeof b->layout,
	                          .elem_size = size,
	                          .ndim = 1,
	                          .shape = &b->shape,
	                          .start = &b->start,
	                          .count = &b->count};
	out.layout = &b->layout;
	return out;
}

/* The item of pieces [first, end). */
static lade_status make_item(wave *w, size_t first, size_t end, lade_segment *segments,
                             lade_error *err)
{
	const rnt_piece *p = &w->piece[first];
	lade_item *item = &w->item[w->item_count];
	rnt_blocks b;
	size_t elem = w->r->tuple->column[w->r->goal[p->target].target.column].elem_size;
	*item = (lade_item){.src = segments};
	lade_status status = blocks_of(w, first, segments, &b, err);
	if (status != LADE_OK)
		return status;
	bool one = b.count == 1;
	item->src_count = b.count;
	for (size_t i = 0; i < b.count && b.method == RNT_LZ4; i++) {
		w->lz4_piece[w->lz4_count] = first;
		w->lz4[w->lz4_count++] = lade_host_cspan(segments[i].data, segments[i].size);
	}
	status = lade__rnt_coding(w->r, p, one ? b.method : RNT_METHODS,
	                          one ? &item->spec : &item->tail, err);
	if (one)
		segments[0].decoded_size = p->page->count * elem;
	else if (status == LADE_OK)
		status = lade__rnt_method(w->r, b.method, &item->spec, err);
	if (status != LADE_OK)
		return status;
	for (size_t i = first; i < end; i++)
		w->output[i] = output_of(w, i);
	item->dst = w->output[first].dst;
	item->layout = w->output[first].layout;
	if (end - first > 1) {
		item->dst = (lade_span){0};
		item->layout = NULL;
		item->outputs = &w->output[first];
		item->output_count = end - first;
	}
	w->item_piece[w->item_count++] = first;
	return LADE_OK;
}

static lade_status make_items(wave *w, lade_error *err)
{
	size_t total = 0;
	rnt_blocks b;
	lade_status status = LADE_OK;
	for (size_t i = 0; i < w->count && status == LADE_OK; i++) {
		if (w->direct[i] || (i && same_item(w, i - 1, i)))
			continue;
		status = blocks_of(w, i, NULL, &b, err);
		total += status == LADE_OK ? b.count : 0;
	}
	if (status != LADE_OK)
		return status;
	w->segment = calloc(total + 1, sizeof *w->segment);
	w->item = calloc(w->count, sizeof *w->item);
	w->item_piece = calloc(w->count, sizeof *w->item_piece);
	w->output = calloc(w->count, sizeof *w->output);
	w->box = calloc(w->count, sizeof *w->box);
	w->result = calloc(w->count, sizeof *w->result);
	w->lz4 = calloc(total + 1, sizeof *w->lz4);
	w->lz4_piece = calloc(total + 1, sizeof *w->lz4_piece);
	if (!w->segment || !w->item || !w->item_piece || !w->output || !w->box || !w->result ||
	    !w->lz4 || !w->lz4_piece)
		return lade__rnt_nomem(err);
	lade_segment *next = w->segment;
	for (size_t i = 0, end; i < w->count && status == LADE_OK; i = end) {
		for (end = i + 1; end < w->count && same_item(w, i, end); end++) {
		}
		if (w->direct[i])
			continue;
		status = make_item(w, i, end, next, err);
		if (status == LADE_OK)
			next += w->item[w->item_count - 1].src_count;
	}
	return status;
}

static lade_status verify_lz4(const wave *w, lade_error *err)
{
	uint64_t *sums = malloc((w->lz4_count + 1) * sizeof *sums);
	lade_error own;
	lade_status status =
		sums ? lade_checksums(w->r->engine, LADE_XXH64, w->lz4, w->lz4_count, sums, err)
		     : lade__rnt_nomem(err);
	for (size_t i = 0; i < w->lz4_count && status == LADE_OK; i++) {
		status = lade__rnt_lz4_compare(w->lz4[i].data, sums[i], 0, &own);
		if (status != LADE_OK)
			page_error(w->r, &w->piece[w->lz4_piece[i]], status, own.message, err);
	}
	free(sums);
	return status;
}

static lade_batch_options batch_options(const rnt_read *r)
{
	const lade_rntuple_read_options *o = &r->options;
	lade_batch_options options = {LADE__OUR_SIZES,     .threads = o->threads,
	                              .cancel = o->cancel, .where = o->where,
	                              .device = o->device, .stream = o->stream};
	memcpy(options.allocators, o->allocators, sizeof options.allocators);
	return options;
}

static lade_status decode(wave *w, lade_error *err)
{
	lade_batch_options options = batch_options(w->r);
	lade_error own = {.status = LADE_OK};
	lade_status status = lade_decode_into(w->r->engine, NULL, w->item, w->item_count, w->result,
	                                      &options, &own);
	for (size_t i = 0; i < w->item_count; i++) {
		const lade_item *item = &w->item[i];
		size_t want = item->output_count ? 0 : item->dst.size;
		for (size_t k = 0; k < item->output_count; k++)
			want += item->outputs[k].dst.size;
		if (status == LADE_OK && w->result[i].size == want)
			continue;
		if (status == LADE_OK)
			return page_error(w->r, &w->piece[w->item_piece[i]], LADE_E_CORRUPT,
			                  "it gives fewer elements than the page list says", err);
		if (w->result[i].status == status)
			return page_error(w->r, &w->piece[w->item_piece[i]], status, own.message,
			                  err);
	}
	return status == LADE_OK ? status
	                         : lade_fail(err, status, own.offset, "rntuple: %s", own.message);
}

lade_status lade__rnt_run_wave(rnt_lane *lane, size_t first, size_t end, size_t bytes,
                               lade_error *err)
{
	rnt_read *r = lane->r;
	wave w = {.r = r, .lane = lane, .piece = &r->piece[first], .count = end - first};
	lade_status status;
	w.data = calloc(2 * w.count, sizeof *w.data);
	w.direct = calloc(w.count, sizeof *w.direct);
	if (!w.data || !w.direct) {
		status = lade__rnt_nomem(err);
		goto out;
	}
	w.sum = w.data + w.count;
	TRY(load_pages(&w, bytes, err));
	bool sums = !(r->options.flags & LADE_RNTUPLE_IGNORE_CHECKSUMS);
	if (sums)
		TRY(verify_sums(&w, err));
	TRY(make_items(&w, err));
	if (sums && w.lz4_count)
		TRY(verify_lz4(&w, err));
	if (w.item_count)
		TRY(decode(&w, err));
out:
	free(w.data);
	free(w.direct);
	free(w.segment);
	free(w.item);
	free(w.item_piece);
	free(w.output);
	free(w.box);
	free(w.result);
	free(w.lz4);
	free(w.lz4_piece);
	return status;
}

/* ---- zeros ---------------------------------------------------------------------------------- */

/* Items that copy zeros to a blank on a device; with 'items' NULL they are counted. */
static size_t clear_items(const rnt_read *r, const rnt_blank *b, lade_segment *segments,
                          lade_item *items, const uint8_t *zeros)
{
	lade_span to = r->goal[b->target].to;
	size_t count = 0;
	for (size_t done = 0, size; done < b->size; done += size, count++) {
		size = b->size - done < ZEROS_SIZE ? b->size - done : ZEROS_SIZE;
		if (!items)
			continue;
		segments[count] = (lade_segment){.data = zeros, .size = size, .decoded_size = size};
		items[count] =
			(lade_item){.src = &segments[count],
		                    .src_count = 1,
		                    .dst = {(uint8_t *)to.data + b->at + done, size, to.place}};
	}
	return count;
}

static lade_status clear_devices(rnt_read *r, size_t count, lade_error *err)
{
	lade_batch_options options = batch_options(r);
	lade_spec *copy = NULL;
	uint8_t *zeros = calloc(1, ZEROS_SIZE);
	lade_segment *segments = malloc(count * sizeof *segments);
	lade_item *items = malloc(count * sizeof *items);
	lade_status status = zeros && segments && items ? LADE_OK : lade__rnt_nomem(err);
	if (status == LADE_OK)
		status = lade_spec_parse(r->engine, "copy", &copy, err);
	count = 0;
	for (size_t i = 0; i < r->blank_count && status == LADE_OK; i++)
		if (!lade_kind_is_host(r->goal[r->blank[i].target].to.place.kind))
			count += clear_items(r, &r->blank[i], segments + count, items + count,
			                     zeros);
	if (status == LADE_OK)
		status = lade_decode_into(r->engine, copy, items, count, NULL, &options, err);
	lade_spec_unref(copy);
	free(zeros);
	free(segments);
	free(items);
	return status;
}

static lade_status clear_all(rnt_read *r, lade_error *err)
{
	size_t there = 0;
	for (size_t i = 0; i < r->blank_count; i++) {
		const rnt_blank *b = &r->blank[i];
		lade_span to = r->goal[b->target].to;
		if (lade_kind_is_host(to.place.kind))
			memset((uint8_t *)to.data + b->at, 0, b->size);
		else
			there += clear_items(r, b, NULL, NULL, NULL);
	}
	return there ? clear_devices(r, there, err) : LADE_OK;
}

/* ---- the calls ------------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Offsets for devices that do not add them up are added up in memory of the call's. */
static lade_status make_buffers(rnt_read *r, lade_error *err)
{
	for (size_t i = 0; i < r->goal_count; i++) {
		rnt_goal *g = &r->goal[i];
		if (!g->adds_up || g->there || lade_kind_is_host(g->to.place.kind))
			continue;
		g->own = malloc(g->size);
		if (!g->own)
			return lade__rnt_nomem(err);
		g->to = lade_host_span(g->own, g->size);
	}
	return LADE_OK;
}

/* A variant's column in host memory; those on devices are not looked at. */
static bool is_switch(const rnt_read *r, const rnt_goal *g)
{
	return r->tuple->column[g->target.column].kind == LADE_RNTUPLE_SWITCH &&
	       lade_kind_is_host(g->to.place.kind);
}

static lade_status run(rnt_read *r, lade_error *err)
{
	lade_status status = make_buffers(r, err);
	if (status == LADE_OK)
		status = clear_all(r, err);
	if (status == LADE_OK)
		status = lade__rnt_run_waves(r, err);
	for (size_t i = 0; i < r->goal_count && status == LADE_OK; i++)
		if (r->goal[i].adds_up && !r->goal[i].there)
			status = lade__rnt_add_up(r, &r->goal[i], err);
	for (size_t i = 0; i < r->goal_count && status == LADE_OK; i++)
		if (is_switch(r, &r->goal[i]))
			status = lade__rnt_check_switches(r, &r->goal[i], err);
	return status == LADE_OK ? lade__rnt_ends_add_up(r, err) : status;
}

static lade_status begin(rnt_read *r, const lade_rntuple_report *report, lade_error *err)
{
	lade_rntuple_report given;
	*r = (rnt_read){.began_ns = now_ns(),
	                .mutex = PTHREAD_MUTEX_INITIALIZER,
	                .reading = PTHREAD_MUTEX_INITIALIZER};
	return lade__options_read(&given, sizeof given, report, "lade_rntuple_report", err);
}

/* Frees the read, and brings its report to the caller. */
static lade_status end(rnt_read *r, lade_status status, lade_rntuple_report *report)
{
	if (status == LADE_OK && report) {
		size_t size = report->struct_size;
		r->report.ns = now_ns() - r->began_ns;
		r->report.struct_size = size;
		memcpy(report, &r->report, size < sizeof r->report ? size : sizeof r->report);
	}
	lade__rnt_plan_free(r);
	return status;
}

lade_status lade_rntuple_read(lade_rntuple *tuple, const lade_rntuple_target *targets, size_t count,
                              const lade_rntuple_read_options *options, lade_rntuple_report *report,
                              lade_error *err)
{
	rnt_read r;
	lade_status status = begin(&r, report, err);
	if (status == LADE_OK)
		status = lade__rnt_plan(&r, tuple, targets, count, options, err);
	if (status == LADE_OK)
		status = run(&r, err);
	return end(&r, status, report);
}

lade_status lade_rntuple_explain(lade_rntuple *tuple, const lade_rntuple_target *targets,
                                 size_t count, const lade_rntuple_read_options *options,
                                 lade_rntuple_report *report, lade_error *err)
{
	rnt_read r;
	lade_status status = begin(&r, report, err);
	if (status == LADE_OK)
		status = lade__rnt_plan(&r, tuple, targets, count, options, err);
	return end(&r, status, report);
}
