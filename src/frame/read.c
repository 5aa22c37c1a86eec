/*
 * read.c: reads ranges of a frame as one batch.
 *
 * The ranges are taken in the order of their offsets, one index page's chunks at a time: a
 * window.  Its pieces (this chunk, that range) are sorted by chunk by counting, and each chunk
 * that has pieces is one task for a worker: decoded once, to the first range that wants all of
 * it, or to scratch memory that is still in the cache when the pieces are copied out.  With a
 * device, or ranges that lie on one, the window's chunks go many at a time (read_device.c).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/read.h"

#include "base/try.h"
#include "frame/device.h"

#include <lade/device.h>

#include <inttypes.h>
#include <stdlib.h>

typedef lade__read_task task;
typedef lade__read_batch batch;

/* ---- one chunk ------------------------------------------------------------------------------ */

lade__read_piece lade__read_piece_at(const batch *b, const task *t, size_t i)
{
	const lade_frame_range *range = &b->ranges[b->pieces[t->first + i]];
	uint64_t begin = t->at.index * b->frame->info.chunk_size;
	uint64_t end = begin + t->at.chunk.decoded_size;
	uint64_t from = range->off > begin ? range->off : begin;
	uint64_t to = range->off + range->dst.size < end ? range->off + range->dst.size : end;
	return (lade__read_piece){.dst = {(uint8_t *)range->dst.data + (size_t)(from - range->off),
	                                  (size_t)(to - from), range->dst.place},
	                          .from = (size_t)(from - begin)};
}

void lade__read_copy(const batch *b, const task *t, const uint8_t *decoded)
{
	for (size_t i = 0; i < t->count; i++) {
		lade__read_piece p = lade__read_piece_at(b, t, i);
		if (lade_kind_is_host(p.dst.place.kind) && p.dst.data != decoded + p.from)
			memcpy(p.dst.data, decoded + p.from, p.dst.size);
	}
}

uint8_t *lade__read_whole(const batch *b, const task *t, bool far, lade_place *place)
{
	for (size_t i = 0; i < t->count; i++) {
		lade__read_piece p = lade__read_piece_at(b, t, i);
		if (p.dst.size == t->at.chunk.decoded_size &&
		    lade_kind_is_host(p.dst.place.kind) != far) {
			*place = p.dst.place;
			return p.dst.data;
		}
	}
	return NULL;
}

/* A stored chunk that has no padding and is wanted whole: from the file to its place. */
static lade_status read_stored(const batch *b, const task *t, uint8_t *dst, lade_error *err)
{
	const lade_frame *frame = b->frame;
	const lade_source *from = &frame->source.from;
	uint8_t head[LADE__PART_HEADER];
	lade__chunk chunk;
	lade_status status;
	TRY(from->read_at(from->ctx, t->at.off, head, sizeof head, err));
	TRY(lade__frame_check(frame, &t->at, head, &chunk, err));
	TRY(from->read_at(from->ctx, t->at.off + LADE__PART_HEADER, dst, chunk.size, err));
	TRY(lade__block_verify(&frame->coder, t->at.index, &chunk, t->at.off, dst, err));
	lade__read_copy(b, t, dst);
out:
	return status;
}

lade_status lade__read_check(const lade_frame *frame, const lade__located *at, lade_error *err)
{
	lade_error inner = {.offset = LADE_NO_OFFSET};
	lade_status status = lade__chunk_check(&at->chunk, at->index, LADE_NO_OFFSET, &inner);
	if (status == LADE_OK)
		return status;
	uint64_t page = frame->page_off[at->index / LADE__PAGE_CHUNKS];
	return lade_fail(err, status,
	                 page + LADE__PART_HEADER +
	                         at->index % LADE__PAGE_CHUNKS * LADE__ENTRY_SIZE,
	                 "index page at %" PRIu64 ": %s", page, inner.message);
}

static lade_status read_chunk(const batch *b, const task *t, lade_worker *worker, lade_error *err)
{
	const lade_frame *frame = b->frame;
	const lade__chunk *want = &t->at.chunk;
	bool stored = want->flags == LADE_CHUNK_STORED;
	lade_place place;
	uint8_t *dst = lade__read_whole(b, t, false, &place), *buffer = NULL;
	const uint8_t *src;
	lade__chunk chunk;
	lade_status status;
	/* Before memory is asked for what the index claims. */
	TRY(lade__read_check(frame, &t->at, err));
	if (stored && !frame->source.base && dst && want->size % LADE__ALIGN == 0)
		return read_stored(b, t, dst, err);
	/* Scratch for the block, unless it lies in memory, and for what it decodes to. */
	uint64_t block = lade__chunk_block_size(want);
	size_t encoded = frame->source.base ? 0 : (size_t)block;
	size_t decoded = stored || dst ? 0 : want->decoded_size;
	if (encoded + decoded) {
		encoded = (encoded + 63) & ~(size_t)63;
		buffer = lade__worker_block(worker, LADE__SCRATCH_FRAME, encoded + decoded);
		if (!buffer)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu bytes of chunk", encoded + decoded);
	}
	TRY(lade__source_get(&frame->source, t->at.off, (size_t)block, buffer, &src, err));
	TRY(lade__frame_check(frame, &t->at, src, &chunk, err));
	src += LADE__PART_HEADER;
	if (stored) {
		TRY(lade__block_padding(t->at.index, &chunk, src, t->at.off, err));
		TRY(lade__block_verify(&frame->coder, t->at.index, &chunk, t->at.off, src, err));
	} else {
		if (!dst)
			dst = buffer + encoded;
		TRY(lade__block_decode(&frame->coder, worker, t->at.index, &chunk, src, t->at.off,
		                       dst, err));
		src = dst;
	}
	lade__read_copy(b, t, src);
out:
	return status;
}

/* Notes a failure of one range, in 'chunk'; the mutex is held, or no task runs.  What the call
 * tells is the first failure of the first range, whichever thread came first. */
static void range_fail(batch *b, size_t range, uint64_t chunk, lade_status status,
                       const lade_error *err)
{
	bool first = range < b->failed || (range == b->failed && chunk < b->failed_chunk);
	if (first || b->statuses[range] == LADE_OK)
		b->statuses[range] = status;
	if (first) {
		b->failed = range;
		b->failed_chunk = chunk;
		b->status = status;
		b->error = *err;
	}
}

void lade__read_fail(batch *b, const task *t, lade_status status, const lade_error *err)
{
	pthread_mutex_lock(&b->mutex);
	for (size_t i = 0; i < t->count; i++)
		range_fail(b, b->pieces[t->first + i], t->at.index, status, err);
	pthread_mutex_unlock(&b->mutex);
}

void lade__read_task_run(void *ctx, size_t index, lade_worker *worker)
{
	batch *b = ctx;
	const task *t = &b->tasks[index];
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_status status = read_chunk(b, t, worker, &err);
	if (status != LADE_OK)
		lade__read_fail(b, t, status, &err);
}

/* ---- windows ------------------------------------------------------------------------------- */

typedef struct ordered {
	uint64_t off;
	size_t range;
} ordered;

/* The ranges of a batch in the order of their offsets; [begin, end) may overlap the window. */
typedef struct sweep {
	ordered *order;
	size_t count, begin, end;
} sweep;

/* First and last chunk of a range within the window's chunks [first, first + 4096). */
static bool span_in(const lade_frame_range *range, size_t chunk_size, uint64_t first,
                    uint64_t *from, uint64_t *to)
{
	*from = range->off / chunk_size;
	*to = (range->off + range->dst.size - 1) / chunk_size;
	if (*from < first)
		*from = first;
	if (*to > first + LADE__PAGE_CHUNKS - 1)
		*to = first + LADE__PAGE_CHUNKS - 1;
	return *from <= *to;
}

/* Makes the window's tasks from 'counts', pieces by chunk; those become the tasks' first pieces. */
static lade_status make_tasks(batch *b, uint64_t first, size_t *counts, size_t *task_count,
                              lade_error *err)
{
	const lade__page *page;
	size_t tasks = 0, pieces = 0;
	pthread_mutex_lock(&b->frame->mutex);
	lade_status status = lade__frame_page(b->frame, first / LADE__PAGE_CHUNKS, &page, err);
	size_t count = lade__page_entries(first / LADE__PAGE_CHUNKS, b->frame->info.chunk_count);
	for (size_t i = 0; status == LADE_OK && i < count; i++) {
		if (!counts[i])
			continue;
		task *t = &b->tasks[tasks++];
		lade__frame_locate(b->frame, page, first + i, &t->at);
		t->first = pieces;
		t->count = counts[i];
		counts[i] = pieces;
		pieces += t->count;
	}
	pthread_mutex_unlock(&b->frame->mutex);
	*task_count = tasks;
	return status;
}

/*
 * Runs the chunks [first, first + 4096) of the page that begins with 'first', for the ranges
 * order[begin .. end).
 */
static lade_status run_window(batch *b, const sweep *s, uint64_t first, size_t *counts,
                              lade_error *err)
{
	size_t chunk_size = b->frame->info.chunk_size, total = 0, touched = 0, task_count = 0;
	uint64_t from, to;
	lade_status status;
	size_t *pieces = NULL;
	b->tasks = NULL;
	memset(counts, 0,
	       lade__page_entries(first / LADE__PAGE_CHUNKS, b->frame->info.chunk_count) *
	               sizeof *counts);
	for (size_t i = s->begin; i < s->end; i++) {
		if (!span_in(&b->ranges[s->order[i].range], chunk_size, first, &from, &to))
			continue;
		for (; from <= to; from++, total++)
			touched += counts[from - first]++ == 0;
	}
	pieces = malloc(total * sizeof *pieces);
	b->tasks = malloc(touched * sizeof *b->tasks);
	if (!pieces || !b->tasks) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                   "no memory for %zu pieces of ranges", total);
		goto out;
	}
	lade_error page_err = {.offset = LADE_NO_OFFSET};
	status = make_tasks(b, first, counts, &task_count, &page_err);
	if (status != LADE_OK) {
		/* A bad page spoils the ranges that need it, and no others. */
		for (size_t i = s->begin; i < s->end; i++)
			if (span_in(&b->ranges[s->order[i].range], chunk_size, first, &from, &to))
				range_fail(b, s->order[i].range, first, status, &page_err);
		status = LADE_OK;
		goto out;
	}
	for (size_t i = s->begin; i < s->end; i++) {
		size_t range = s->order[i].range;
		if (!span_in(&b->ranges[range], chunk_size, first, &from, &to))
			continue;
		for (; from <= to; from++)
			pieces[counts[from - first]++] = range;
	}
	b->pieces = pieces;
	if (b->frame->options.where == LADE_WHERE_DEVICE || b->far)
		status = lade__read_on_device(b, task_count, err);
	else
		status = lade__engine_parallel(b->frame->engine, b->frame->options.threads,
		                               task_count, 0, NULL, lade__read_task_run, b, err);
out:
	free(pieces);
	free(b->tasks);
	return status;
}

/* Drops from [begin, end) the ranges that end before the window; the order stays. */
static void sweep_drop(sweep *s, const batch *b, uint64_t first)
{
	uint64_t off = first * b->frame->info.chunk_size;
	size_t kept = s->end;
	for (size_t i = s->end; i-- > s->begin;) {
		const lade_frame_range *range = &b->ranges[s->order[i].range];
		if (range->off + range->dst.size > off)
			s->order[--kept] = s->order[i];
	}
	s->begin = kept;
}

static lade_status run_all(batch *b, sweep *s, lade_error *err)
{
	uint64_t window = (uint64_t)LADE__PAGE_CHUNKS * b->frame->info.chunk_size;
	if (!s->count)
		return LADE_OK;
	size_t page_most = lade__page_entries(0, b->frame->info.chunk_count);
	size_t *counts = malloc(page_most * sizeof *counts);
	if (!counts)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu counts",
		                 page_most);
	lade_status status = LADE_OK;
	uint64_t page = 0;
	while (status == LADE_OK && (s->begin < s->end || s->end < s->count)) {
		if (s->begin == s->end) /* nothing is open: go to where the next one begins */
			page = s->order[s->end].off / window;
		/* Offsets lie below the frame's size, so a page's index and what follows do not
		 * overflow. */
		while (s->end < s->count && s->order[s->end].off / window <= page)
			s->end++;
		status = run_window(b, s, page * LADE__PAGE_CHUNKS, counts, err);
		page++;
		sweep_drop(s, b, page * LADE__PAGE_CHUNKS);
	}
	free(counts);
	return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

static lade_status range_check(const lade_frame *frame, const lade_frame_range *range, size_t index,
                               lade_error *err)
{
	if (!range->dst.data && range->dst.size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "range %zu: dst is NULL and has %zu bytes", index,
		                 range->dst.size);
	if ((unsigned)range->dst.place.kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "range %zu: memory kind %d is unknown", index,
		                 (int)range->dst.place.kind);
	if (!lade_kind_is_host(range->dst.place.kind)) {
		const lade_device_info *there;
		lade_error why;
		lade_status status = lade_device_get_info(range->dst.place.device, &there, &why);
		if (status != LADE_OK)
			return lade_fail(err, status, LADE_NO_OFFSET, "range %zu: %s", index,
			                 why.message);
	}
	if (range->off > frame->info.size || range->dst.size > frame->info.size - range->off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "range %zu: %zu bytes at %" PRIu64 " of %" PRIu64, index,
		                 range->dst.size, range->off, frame->info.size);
	return LADE_OK;
}

static int by_off(const void *a, const void *b)
{
	uint64_t x = ((const ordered *)a)->off, y = ((const ordered *)b)->off;
	return x < y ? -1 : x > y;
}

/* All of a frame that lies on a device, decoded there.  False: it was not, and the usual way finds
 * out, and tells, why. */
static bool read_far(lade_frame *frame, const lade_frame_range *range, lade_result *result)
{
	if (range->off || range->dst.size != frame->info.size || !range->dst.data ||
	    lade__far_decode(frame, range->dst, NULL) != LADE_OK)
		return false;
	if (result)
		*result = (lade_result){LADE_OK, range->dst.size};
	return true;
}

lade_status lade_frame_read(lade_frame *frame, const lade_frame_range *ranges, size_t count,
                            lade_result *results, lade_error *err)
{
	if (!frame || (!ranges && count))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 frame ? "ranges" : "frame");
	if (count == 0)
		return LADE_OK;
	if (frame->far && count == 1 && read_far(frame, ranges, results))
		return LADE_OK;
	/* What follows is done behind the default stream. */
	if (frame->far && frame->far->stream) {
		lade_status waited = lade_stream_wait(frame->far->frame.place.device,
		                                      frame->far->stream, err);
		if (waited != LADE_OK)
			return waited;
	}
	batch b = {.frame = frame, .ranges = ranges, .failed = SIZE_MAX};
	sweep s = {.order = calloc(count, sizeof *s.order)};
	b.statuses = calloc(count, sizeof *b.statuses);
	lade_status status;
	pthread_mutex_init(&b.mutex, NULL);
	if (!s.order || !b.statuses) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu ranges",
		                   count);
		goto out;
	}
	bool sorted = true;
	for (size_t i = 0; i < count; i++) {
		lade_error bad;
		status = range_check(frame, &ranges[i], i, &bad);
		if (status != LADE_OK)
			range_fail(&b, i, 0, status, &bad);
		if (status != LADE_OK || ranges[i].dst.size == 0)
			continue;
		if (!lade_kind_is_host(ranges[i].dst.place.kind))
			b.far |= (uint64_t)1 << ranges[i].dst.place.device;
		sorted &= s.count == 0 || s.order[s.count - 1].off <= ranges[i].off;
		s.order[s.count++] = (ordered){ranges[i].off, i};
	}
	if (!sorted)
		qsort(s.order, s.count, sizeof *s.order, by_off);
	status = run_all(&b, &s, err);
out:
	for (size_t i = 0; results && i < count; i++) {
		results[i].status = status != LADE_OK ? status : b.statuses[i];
		results[i].size = results[i].status == LADE_OK ? ranges[i].dst.size : 0;
	}
	if (status == LADE_OK && b.failed != SIZE_MAX) {
		status = b.status;
		if (err)
			*err = b.error;
	}
	pthread_mutex_destroy(&b.mutex);
	free(b.statuses);
	free(s.order);
	return status;
}
