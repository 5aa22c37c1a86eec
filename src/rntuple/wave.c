/*
 * wave.c: the pages of a wave: their ranges, their checksums, their items, and one batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/wave.h"

#include "base/options.h"
#include "base/try.h"

#include <lade/checksum.h>

#include <inttypes.h>
#include <stdlib.h>

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
static bool is_direct(const rnt_wave *w, size_t i)
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
static lade_status read_ranges(rnt_wave *w, lade_error *err)
{
	const rnt_file *file = &w->r->file;
	lade_io_options options = {.struct_size = sizeof options,
	                           .request_size = sizeof(lade_range),
	                           .threads = w->alone ? 1 : w->r->threads,
	                           .cancel = lade__rnt_cancel(w->r)};
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
static bool view_pages(rnt_wave *w)
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

static lade_status load_pages(rnt_wave *w, size_t bytes, lade_error *err)
{
	if (!w->alone && w->r->tuple->view.data && view_pages(w))
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
static bool has_own_sum(const rnt_wave *w, size_t i)
{
	const rnt_piece *p = &w->piece[i];
	return p->page->sum && (i == 0 || !lade__rnt_same_page(p, p - 1));
}

/* By all threads, or by this one. */
static lade_status sums_of(const rnt_wave *w, lade_checksum kind, const lade_cspan *spans,
                           size_t count, uint64_t *sums, lade_error *err)
{
	if (!w->alone)
		return lade_checksums(w->r->engine, kind, spans, count, sums, err);
	for (size_t i = 0; i < count; i++)
		sums[i] = lade_checksum_of(kind, spans[i].data, spans[i].size);
	return LADE_OK;
}

static lade_status verify_sums(const rnt_wave *w, lade_error *err)
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
		status = sums_of(w, LADE_XXH3, spans, count, sums, err);
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
static bool same_item(const rnt_wave *w, size_t a, size_t b)
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

static lade_status blocks_of(const rnt_wave *w, size_t piece, lade_segment *segments, rnt_blocks *b,
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
static lade_item_output output_of(const rnt_wave *w, size_t piece)
{
	const rnt_piece *p = &w->piece[piece];
	const rnt_goal *g = &w->r->goal[p->target];
	size_t size = w->r->tuple->column[g->target.column].elem_size;
	lade_item_output out = {
		.dst = {(uint8_t *)g->to.data + p->at, p->take * size, g->to.place}};
	if (p->take == p->page->count)
		return out;
	rnt_box *b = &w->box[piece];
	*b = (rnt_box){.shape = p->page->count, .start = p->skip, .count = p->take};
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
static lade_status make_item(rnt_wave *w, size_t first, size_t end, lade_segment *segments,
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

static lade_status make_items(rnt_wave *w, lade_error *err)
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

static lade_status verify_lz4(const rnt_wave *w, lade_error *err)
{
	uint64_t *sums = malloc((w->lz4_count + 1) * sizeof *sums);
	lade_error own;
	lade_status status =
		sums ? sums_of(w, LADE_XXH64, w->lz4, w->lz4_count, sums, err)
		     : lade__rnt_nomem(err);
	for (size_t i = 0; i < w->lz4_count && status == LADE_OK; i++) {
		status = lade__rnt_lz4_compare(w->lz4[i].data, sums[i], 0, &own);
		if (status != LADE_OK)
			page_error(w->r, &w->piece[w->lz4_piece[i]], status, own.message, err);
	}
	free(sums);
	return status;
}

/* ---- decoding ------------------------------------------------------------------------------ */

lade_cancel *lade__rnt_cancel(const rnt_read *r)
{
	return pthread_equal(pthread_self(), r->caller) ? r->options.cancel : r->file.cancel;
}

lade_batch_options lade__rnt_reading(const rnt_read *r)
{
	const lade_rntuple_read_options *o = &r->options;
	lade_batch_options options = {LADE__OUR_SIZES,     .threads = o->threads,
	                              .cancel = lade__rnt_cancel(r), .where = o->where,
	                              .device = o->device, .stream = o->stream};
	memcpy(options.allocators, o->allocators, sizeof options.allocators);
	return options;
}

size_t lade__rnt_item_size(const lade_item *item)
{
	size_t size = item->output_count ? 0 : item->dst.size;
	for (size_t k = 0; k < item->output_count; k++)
		size += item->outputs[k].dst.size;
	return size;
}

lade_status lade__rnt_item_error(const rnt_wave *w, size_t item, lade_status status,
                                 const char *why, lade_error *err)
{
	const rnt_piece *p = &w->piece[w->item_piece[item]];
	if (status == LADE_OK)
		return page_error(w->r, p, LADE_E_CORRUPT,
		                  "it gives fewer elements than the page list says", err);
	return page_error(w->r, p, status, why, err);
}

lade_status lade__rnt_wave_decode(rnt_wave *w, size_t first, size_t count, lade_error *err)
{
	lade_batch_options options = lade__rnt_reading(w->r);
	lade_error own = {.status = LADE_OK};
	const lade_item *items = w->item + first;
	const lade_result *results = w->result + first;
	lade_status status = lade_decode_into(w->r->engine, NULL, items, count, w->result + first,
	                                      &options, &own);
	for (size_t i = 0; i < count; i++)
		if (results[i].status == status &&
		    (status != LADE_OK || results[i].size != lade__rnt_item_size(&items[i])))
			return lade__rnt_item_error(w, first + i, status, own.message, err);
	return status == LADE_OK ? status
	                         : lade_fail(err, status, own.offset, "rntuple: %s", own.message);
}

lade_status lade__rnt_wave_make(rnt_wave *w, size_t first, size_t end, size_t bytes,
                                lade_error *err)
{
	rnt_read *r = w->r;
	lade_status status;
	w->piece = &r->piece[first];
	w->count = end - first;
	w->data = calloc(2 * w->count, sizeof *w->data);
	w->direct = calloc(w->count, sizeof *w->direct);
	if (!w->data || !w->direct)
		return lade__rnt_nomem(err);
	w->sum = w->data + w->count;
	TRY(load_pages(w, bytes, err));
	bool sums = !(r->options.flags & LADE_RNTUPLE_IGNORE_CHECKSUMS);
	if (sums)
		TRY(verify_sums(w, err));
	TRY(make_items(w, err));
	if (sums && w->lz4_count)
		TRY(verify_lz4(w, err));
out:
	return status;
}

void lade__rnt_wave_reset(rnt_wave *w)
{
	free(w->data);
	free(w->direct);
	free(w->segment);
	free(w->item);
	free(w->item_piece);
	free(w->output);
	free(w->box);
	free(w->result);
	free(w->lz4);
	free(w->lz4_piece);
	*w = (rnt_wave){.r = w->r, .lane = w->lane, .alone = w->alone};
}

lade_status lade__rnt_run_wave(rnt_lane *lane, size_t first, size_t end, size_t bytes,
                               lade_error *err)
{
	rnt_wave w = {.r = lane->r, .lane = lane};
	lade_status status = lade__rnt_wave_make(&w, first, end, bytes, err);
	if (status == LADE_OK && w.item_count)
		status = lade__rnt_wave_decode(&w, 0, w.item_count, err);
	lade__rnt_wave_reset(&w);
	return status;
}
