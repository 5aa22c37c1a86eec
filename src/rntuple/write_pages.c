/*
 * write_pages.c: from the columns of a cluster to pages in the file.
 *
 *     elements --(stored type)--> page --(codec, a block for each 16 MiB)--> | head 9 | bytes |...
 *
 * Pages of a wave are one batch.  A second one has what the first cannot do: blocks of pages above
 * 16 MiB, and pages that did not shrink and are stored as they are.  Pages without a codec whose
 * stored type is the caller's are written from the caller's memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include "base/cancel.h"
#include "base/try.h"

#include <lade/checksum.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE_DEFAULT ((uint64_t)1 << 20)
#define PAGE_MAX ((uint64_t)512 << 20)
#define MEMORY_DEFAULT ((uint64_t)64 << 20)
#define MEMORY_MAX ((uint64_t)1 << 30)

enum {
	BLOCK = 0xFFFFFF, /* the most bytes of a block, decoded and encoded */
	HEAD = 9,
	LZ4_SUM = 8,
	SUM = 8,
};

typedef struct page {
	uint32_t physical, count;
	const uint8_t *src;
	size_t src_size, size; /* as given, and in its stored type */
	size_t slot, scratch;  /* in the wave's buffer: blocks, and a page above 16 MiB */
	size_t blocks;         /* 0: no codec */
	size_t item;           /* the first of its items in a batch */
	const uint8_t *data;   /* what is written */
	size_t data_size;
	uint64_t off;
	uint8_t sum[SUM];
	bool direct; /* the caller's memory is the page */
	bool raw;    /* it did not shrink */
} page;

typedef struct wave {
	lade_rntuple_writer *w;
	const rnt_part *part;
	page *page;
	size_t page_count, page_cap;
	size_t first, end; /* pages of the wave that runs */
	uint8_t *buffer;
	lade_item *item;
	lade_segment *segment;
	lade_result *result;
	size_t *page_of; /* of each item */
	size_t item_count, item_cap;
} wave;

/* ---- specs ---------------------------------------------------------------------------------- */

static lade_status make_specs(lade_rntuple_writer *w, uint32_t physical, lade_dtype dtype,
                              lade_error *err)
{
	const rnt_physical *p = &w->schema->physical[physical];
	rnt_sink *s = &w->sink[physical];
	rnt_coding coding = {.type = p->type,
	                     .bits = p->bits,
	                     .min = p->min,
	                     .max = p->max,
	                     .dtype = dtype,
	                     .method = RNT_METHODS};
	char text[RNT_CODING_TEXT + 128];
	if (s->ready && s->dtype == dtype)
		return LADE_OK;
	lade_spec_unref(s->coded);
	lade_spec_unref(s->fused);
	s->coded = s->fused = NULL;
	s->ready = false;
	s->dtype = dtype;
	lade__rnt_coding_text(text, &coding);
	lade_status status = LADE_OK;
	if (text[0])
		TRY(lade_spec_parse(w->engine, text, &s->coded, err));
	if (s->codec.spec && text[0]) {
		size_t size = strlen(text);
		snprintf(text + size, sizeof text - size, "|%s", lade_spec_text(s->codec.spec));
		TRY(lade_spec_parse(w->engine, text, &s->fused, err));
	} else if (s->codec.spec) {
		s->fused = lade_spec_ref(s->codec.spec);
	}
	s->ready = true;
out:
	return status;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static lade_status cut_pages(wave *v, uint32_t physical, lade_error *err)
{
	lade_rntuple_writer *w = v->w;
	const rnt_physical *p = &w->schema->physical[physical];
	const rnt_part *part = &v->part[physical];
	const rnt_sink *s = &w->sink[physical];
	uint64_t size = w->options.page_size ? w->options.page_size : PAGE_DEFAULT;
	size = size < PAGE_MAX ? size : PAGE_MAX;
	uint64_t most = size * 8 / p->bits;
	most = most == 0 ? 1 : most > INT32_MAX ? INT32_MAX : most;
	for (uint64_t at = 0; at < part->count; at += most) {
		uint64_t n = part->count - at < most ? part->count - at : most;
		if (!lade__rnt_grow(&v->page, &v->page_cap, v->page_count, sizeof *v->page))
			return lade__rnt_nomem(err);
		page *g = &v->page[v->page_count++];
		*g = (page){.physical = physical,
		            .count = (uint32_t)n,
		            .src = (const uint8_t *)part->data + at * part->elem_size,
		            .src_size = (size_t)n * part->elem_size,
		            .size = (size_t)lade__rnt_page_size(p, n)};
		g->direct = !s->coded && lade_kind_is_host(part->place.kind);
		g->blocks = s->codec.spec ? (g->size + BLOCK - 1) / BLOCK : 0;
	}
	return LADE_OK;
}

/* Bytes of the blocks of a page, at most: block 'index' begins there. */
static size_t block_at(const wave *v, const page *g, size_t index)
{
	const rnt_sink *s = &v->w->sink[g->physical];
	return index * (HEAD + LZ4_SUM + lade_spec_bound(s->codec.spec, BLOCK));
}

/* Bytes that a page needs in the buffer; sets where they are, from 'at' on. */
static size_t place_page(const wave *v, page *g, size_t at)
{
	const rnt_sink *s = &v->w->sink[g->physical];
	size_t size = g->direct ? 0 : g->size;
	g->slot = at;
	if (g->blocks == 1) {
		size_t bound = HEAD + LZ4_SUM + lade_spec_bound(s->fused, g->src_size);
		size = bound > size ? bound : size;
	} else if (g->blocks > 1) {
		g->scratch = at + block_at(v, g, g->blocks);
		size += g->scratch - at;
	}
	return size;
}

/* ---- batches -------------------------------------------------------------------------------- */

static void add_item(wave *v, size_t index, const lade_spec *spec, lade_segment from, size_t to,
                     size_t to_size)
{
	size_t i = v->item_count++;
	v->segment[i] = from;
	v->item[i] = (lade_item){.spec = spec,
	                         .src = &v->segment[i],
	                         .src_count = 1,
	                         .dst = lade_host_span(v->buffer + to, to_size)};
	v->page_of[i] = index;
}

/* What brings a page into its stored type. */
static void add_coded(wave *v, size_t index, const lade_spec *copy, size_t to)
{
	page *g = &v->page[index];
	const rnt_sink *s = &v->w->sink[g->physical];
	lade_segment from = {
		.data = g->src, .size = g->src_size, .place = v->part[g->physical].place};
	g->data = g->direct ? g->src : v->buffer + to;
	if (!g->direct)
		add_item(v, index, s->coded ? s->coded : copy, from, to, g->size);
}

static lade_status run_batch(wave *v, lade_error *err)
{
	lade_rntuple_writer *w = v->w;
	lade_batch_options options = lade__rnt_batch(w);
	lade_error inner;
	if (v->item_count == 0)
		return LADE_OK;
	lade_status status = lade_encode_into(w->engine, NULL, v->item, v->item_count, v->result,
	                                      &options, &inner);
	for (size_t i = 0; i < v->item_count && status != LADE_OK; i++) {
		if (v->result[i].status != status)
			continue;
		uint32_t physical = v->page[v->page_of[i]].physical;
		return lade_fail(err, status, inner.offset, "rntuple: %s: %s",
		                 w->schema->field[w->schema->physical[physical].field].path,
		                 inner.message);
	}
	if (status != LADE_OK && err)
		*err = inner;
	return status;
}

static void first_batch(wave *v, const lade_spec *copy)
{
	v->item_count = 0;
	for (size_t i = v->first; i < v->end; i++) {
		page *g = &v->page[i];
		const rnt_sink *s = &v->w->sink[g->physical];
		size_t head = HEAD + (s->codec.method == RNT_LZ4 ? LZ4_SUM : 0);
		lade_segment from = {
			.data = g->src, .size = g->src_size, .place = v->part[g->physical].place};
		g->item = v->item_count;
		if (g->blocks == 1)
			add_item(v, i, s->fused, from, g->slot + head,
			         lade_spec_bound(s->fused, g->src_size));
		else
			add_coded(v, i, copy, g->blocks ? g->scratch : g->slot);
		g->data_size = g->size;
	}
}

/* Fills in the head of a block that has 'size' bytes behind it, and LZ4's checksum. */
static void put_head(uint8_t *at, rnt_method method, size_t size, size_t decoded)
{
	static const uint8_t magic[RNT_METHODS][3] = {
		[RNT_ZLIB] = {'Z', 'L', 8},
		[RNT_LZMA] = {'X', 'Z', 0},
		[RNT_LZ4] = {'L', '4', 1},
		[RNT_ZSTD] = {'Z', 'S', 1},
	};
	memcpy(at, magic[method], 3);
	lade__le_put(at + 3, size, 3);
	lade__le_put(at + 6, decoded, 3);
	if (method != RNT_LZ4)
		return;
	uint64_t sum = lade_checksum_of(LADE_XXH64, at + HEAD + LZ4_SUM, size - LZ4_SUM);
	for (size_t i = 0; i < LZ4_SUM; i++)
		at[HEAD + i] = (uint8_t)(sum >> 8 * (7 - i));
}

/* Puts the blocks of a page behind each other; sets 'raw' if it did not shrink. */
static void join_blocks(wave *v, page *g)
{
	const rnt_sink *s = &v->w->sink[g->physical];
	rnt_method method = s->codec.method;
	uint8_t *begin = v->buffer + g->slot, *to = begin;
	size_t extra = method == RNT_LZ4 ? LZ4_SUM : 0, left = g->size;
	for (size_t k = 0; k < g->blocks && !g->raw; k++) {
		size_t size = v->result[g->item + k].size + extra,
		       decoded = left < BLOCK ? left : BLOCK;
		uint8_t *from = begin + (g->blocks > 1 ? block_at(v, g, k) : 0);
		g->raw = size > BLOCK || (size_t)(to - begin) + HEAD + size >= g->size;
		if (g->raw)
			break;
		memmove(to + HEAD + extra, from + HEAD + extra, size - extra);
		put_head(to, method, size, decoded);
		to += HEAD + size;
		left -= decoded;
	}
	g->data = begin;
	g->data_size = (size_t)(to - begin);
}

static void second_batch(wave *v)
{
	v->item_count = 0;
	for (size_t i = v->first; i < v->end; i++) {
		page *g = &v->page[i];
		const rnt_sink *s = &v->w->sink[g->physical];
		size_t head = HEAD + (s->codec.method == RNT_LZ4 ? LZ4_SUM : 0);
		if (g->blocks < 2)
			continue;
		g->item = v->item_count;
		for (size_t k = 0; k < g->blocks; k++) {
			size_t at = k * BLOCK, left = g->size - at;
			lade_segment from = {.data = g->data + at,
			                     .size = left < BLOCK ? left : BLOCK};
			add_item(v, i, s->codec.spec, from, g->slot + block_at(v, g, k) + head,
			         lade_spec_bound(s->codec.spec, BLOCK));
		}
	}
}

/* Pages that did not shrink, as they are. */
static void third_batch(wave *v, const lade_spec *copy)
{
	v->item_count = 0;
	for (size_t i = v->first; i < v->end; i++) {
		page *g = &v->page[i];
		if (!g->raw)
			continue;
		v->w->report.raw_count++;
		g->data_size = g->size;
		if (g->blocks == 1)
			add_coded(v, i, copy, g->slot);
		else
			g->data = g->direct ? g->src : v->buffer + g->scratch;
	}
}

static lade_status join_one(void *ctx, size_t index, lade_error *err)
{
	wave *v = ctx;
	page *g = &v->page[v->first + index];
	(void)err;
	if (g->blocks == 1)
		join_blocks(v, g);
	return LADE_OK;
}

static lade_status join_many(void *ctx, size_t index, lade_error *err)
{
	wave *v = ctx;
	page *g = &v->page[v->first + index];
	(void)err;
	if (g->blocks > 1)
		join_blocks(v, g);
	return LADE_OK;
}

static lade_status sum_one(void *ctx, size_t index, lade_error *err)
{
	wave *v = ctx;
	page *g = &v->page[v->first + index];
	(void)err;
	lade__le_put(g->sum, lade_checksum_of(LADE_XXH3, g->data, g->data_size), SUM);
	return LADE_OK;
}

/* ---- waves ---------------------------------------------------------------------------------- */

static lade_status write_wave(wave *v, lade_error *err)
{
	lade_rntuple_writer *w = v->w;
	bool sums = !(w->options.flags & LADE_RNTUPLE_NO_CHECKSUMS);
	size_t n = 1;
	uint64_t decoded = 0, at;
	struct iovec *pieces = calloc(1 + 2 * (v->end - v->first), sizeof *pieces);
	if (!pieces)
		return lade__rnt_nomem(err);
	for (size_t i = v->first; i < v->end; i++) {
		page *g = &v->page[i];
		pieces[n++] = (struct iovec){(void *)(uintptr_t)g->data, g->data_size};
		if (sums)
			pieces[n++] = (struct iovec){g->sum, SUM};
		decoded += g->size;
	}
	decoded = decoded < INT32_MAX ? decoded : INT32_MAX;
	lade_status status = lade__rnt_write_record(&w->file, pieces, n, decoded, &at, err);
	for (size_t i = v->first; i < v->end && status == LADE_OK; i++) {
		page *g = &v->page[i];
		g->off = at;
		at += g->data_size + (sums ? SUM : 0);
		w->report.page_count++;
		w->report.source_size += g->src_size;
		w->report.decoded_size += g->size;
		w->report.stored_size += g->data_size;
	}
	free(pieces);
	return status;
}

static lade_status encode_wave(wave *v, const lade_spec *copy, lade_error *err)
{
	lade_rntuple_writer *w = v->w;
	lade_batch_options options = lade__rnt_batch(w);
	size_t count = v->end - v->first;
	lade_status status;
	first_batch(v, copy);
	TRY(run_batch(v, err));
	TRY(lade_engine_each(w->engine, count, join_one, v, &options, err));
	second_batch(v);
	TRY(run_batch(v, err));
	TRY(lade_engine_each(w->engine, count, join_many, v, &options, err));
	third_batch(v, copy);
	TRY(run_batch(v, err));
	if (!(w->options.flags & LADE_RNTUPLE_NO_CHECKSUMS))
		TRY(lade_engine_each(w->engine, count, sum_one, v, &options, err));
out:
	return status;
}

/* Memory for the pages [v->first, ...) that fit; sets v->end. */
static lade_status begin_wave(wave *v, lade_error *err)
{
	uint64_t memory = v->w->options.memory ? v->w->options.memory : MEMORY_DEFAULT;
	memory = memory < MEMORY_MAX ? memory : MEMORY_MAX;
	size_t at = 0, items = 0;
	uint64_t total = 0;
	for (v->end = v->first; v->end < v->page_count; v->end++) {
		page *g = &v->page[v->end];
		size_t size = place_page(v, g, at);
		uint64_t weight = size > g->size ? size : g->size;
		if (total && weight > memory - total)
			break;
		total = weight < memory - total ? total + weight : memory;
		at += size;
		items += g->blocks > 1 ? g->blocks : 1;
	}
	v->buffer = malloc(at + 1);
	v->item = calloc(items + 1, sizeof *v->item);
	v->segment = calloc(items + 1, sizeof *v->segment);
	v->result = calloc(items + 1, sizeof *v->result);
	v->page_of = calloc(items + 1, sizeof *v->page_of);
	return v->buffer && v->item && v->segment && v->result && v->page_of ? LADE_OK
	                                                                     : lade__rnt_nomem(err);
}

static void end_wave(wave *v)
{
	free(v->buffer);
	free(v->item);
	free(v->segment);
	free(v->result);
	free(v->page_of);
	v->buffer = NULL;
	v->item = NULL;
	v->segment = NULL;
	v->result = NULL;
	v->page_of = NULL;
}

/* ---- the cluster ---------------------------------------------------------------------------- */

/* pages { | elements 4 | locator 12 | } | first element 8 | setting 4 | */
static void note_column(wave *v, uint32_t physical, size_t *next)
{
	lade_rntuple_writer *w = v->w;
	rnt_sink *s = &w->sink[physical];
	rnt_out *out = &w->group.columns;
	bool sums = !(w->options.flags & LADE_RNTUPLE_NO_CHECKSUMS);
	size_t begin = lade__rnt_put_list(out);
	uint32_t count = 0;
	for (; *next < v->page_count && v->page[*next].physical == physical; ++*next, count++) {
		const page *g = &v->page[*next];
		lade__rnt_put(out, sums ? 0 - (uint64_t)g->count : g->count, 4);
		lade__rnt_put(out, g->data_size, 4);
		lade__rnt_put(out, g->off, 8);
	}
	if (v->part[physical].stored) {
		lade__rnt_put(out, s->next, 8);
		lade__rnt_put(out, s->codec.setting, 4);
		s->next += v->part[physical].count;
	} else {
		lade__rnt_put(out, (uint64_t)INT64_MIN, 8);
	}
	lade__rnt_put_list_end(out, begin, count);
}

static lade_status note_cluster(wave *v, uint64_t entry_count, lade_error *err)
{
	lade_rntuple_writer *w = v->w;
	rnt_group *group = &w->group;
	size_t begin = lade__rnt_put_begin(&group->summaries), next = 0;
	lade__rnt_put(&group->summaries, w->entry_count, 8);
	lade__rnt_put(&group->summaries, entry_count, 8);
	lade__rnt_put_end(&group->summaries, begin);
	begin = lade__rnt_put_list(&group->columns);
	for (uint32_t i = 0; i < w->sink_count; i++)
		note_column(v, i, &next);
	lade__rnt_put_list_end(&group->columns, begin, (uint32_t)w->sink_count);
	if (group->summaries.failed || group->columns.failed)
		return lade__rnt_nomem(err);
	group->count++;
	group->entry_count += entry_count;
	w->entry_count += entry_count;
	w->report.cluster_count++;
	w->report.entry_count += entry_count;
	return LADE_OK;
}

lade_status lade__rnt_write_cluster(lade_rntuple_writer *w, uint64_t entry_count,
                                    const rnt_part *parts, lade_error *err)
{
	wave v = {.w = w, .part = parts};
	lade_spec *copy = NULL;
	lade__stop stop = lade__stop_of(w->options.cancel);
	lade_status status;
	TRY(lade_spec_parse(w->engine, "copy", &copy, err));
	for (uint32_t i = 0; i < w->sink_count; i++) {
		if (!parts[i].stored)
			continue;
		TRY(make_specs(w, i, parts[i].dtype, err));
		TRY(cut_pages(&v, i, err));
	}
	for (; v.first < v.page_count; v.first = v.end) {
		if (lade__stopped(&stop))
			TRY(lade__stop_fail(err));
		status = begin_wave(&v, err);
		if (status == LADE_OK)
			status = encode_wave(&v, copy, err);
		if (status == LADE_OK)
			status = write_wave(&v, err);
		end_wave(&v);
		if (status != LADE_OK)
			goto out;
	}
	status = note_cluster(&v, entry_count, err);
out:
	lade_spec_unref(copy);
	free(v.page);
	return status;
}
