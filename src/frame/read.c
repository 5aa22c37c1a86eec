/*
 * read.c: reads ranges of a frame as one batch.
 *
 * The ranges are taken in the order of their offsets, one index page's chunks at a time: a
 * window.  Its pieces (this chunk, that range) are sorted by chunk by counting, and each chunk
 * that has pieces is one task: decoded once, to the first range that wants all of it, or to scratch
 * memory that is still in the cache when the pieces are copied out (chunks.c).  With a device, or
 * ranges that are on one, the window's chunks go many at a time (gpu/read.c).
 *
 * All tables of a call are one block:
 *
 *	| order[ranges] | tasks | counts | pieces | groups | statuses[ranges] |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/read.h"

#include "base/options.h"
#include "frame/gpu/device.h"

#include <lade/device.h>
#include <lade/version.h>

#include <inttypes.h>
#include <stdlib.h>

typedef lade__read_task task;
typedef lade__read_batch batch;

/* ---- failures ------------------------------------------------------------------------------- */

/* Notes a failure of one range, in 'chunk'; the mutex is held, or no task runs.  What the call
 * reports is the first failure of the first range, whichever thread came first. */
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

/* Makes the tasks of the window's chunks [from, to] from 'counts', pieces by chunk from 'from' on;
 * those become the tasks' first pieces. */
static lade_status make_tasks(batch *b, uint64_t from, uint64_t to, size_t *counts,
                              size_t *task_count, lade_error *err)
{
	const lade__page *page;
	size_t tasks = 0, pieces = 0;
	pthread_mutex_lock(&b->frame->mutex);
	lade_status status = lade__frame_page(b->frame, from / LADE__PAGE_CHUNKS, &page, err);
	for (size_t i = 0; status == LADE_OK && i <= to - from; i++) {
		if (!counts[i])
			continue;
		task *t = &b->tasks[tasks++];
		lade__frame_locate(b->frame, page, from + i, &t->at);
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
static lade_status run_window(batch *b, const sweep *s, uint64_t first, lade_error *err)
{
	size_t chunk_size = b->frame->info.chunk_size, task_count = 0, *counts = b->counts;
	uint64_t from, to, least = UINT64_MAX, most = 0;
	for (size_t i = s->begin; i < s->end; i++) {
		if (!span_in(&b->ranges[s->order[i].range], chunk_size, first, &from, &to))
			continue;
		least = from < least ? from : least;
		most = to > most ? to : most;
	}
	if (least > most)
		return LADE_OK;
	memset(counts, 0, (size_t)(most - least + 1) * sizeof *counts);
	for (size_t i = s->begin; i < s->end; i++)
		if (span_in(&b->ranges[s->order[i].range], chunk_size, first, &from, &to))
			for (; from <= to; from++)
				counts[from - least]++;
	lade_error page_err = {.offset = LADE_NO_OFFSET};
	lade_status status = make_tasks(b, least, most, counts, &task_count, &page_err);
	if (status != LADE_OK) {
		/* A bad page spoils the ranges that need it, and no others. */
		for (size_t i = s->begin; i < s->end; i++)
			if (span_in(&b->ranges[s->order[i].range], chunk_size, first, &from, &to))
				range_fail(b, s->order[i].range, first, status, &page_err);
		return LADE_OK;
	}
	for (size_t i = s->begin; i < s->end; i++) {
		size_t range = s->order[i].range;
		if (span_in(&b->ranges[range], chunk_size, first, &from, &to))
			for (; from <= to; from++)
				b->pieces[counts[from - least]++] = range;
	}
	if (b->frame->options.where == LADE_WHERE_DEVICE || b->devices)
		return lade__read_on_device(b, task_count, err);
	return lade__read_on_host(b, task_count, err);
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
	lade_status status = LADE_OK;
	uint64_t page = 0;
	while (status == LADE_OK && (s->begin < s->end || s->end < s->count)) {
		if (s->begin == s->end) /* nothing is open: go to where the next one begins */
			page = s->order[s->end].off / window;
		/* Offsets are below the frame's size, so a page's index and what follows do not
		 * overflow. */
		while (s->end < s->count && s->order[s->end].off / window <= page)
			s->end++;
		status = run_window(b, s, page * LADE__PAGE_CHUNKS, err);
		page++;
		sweep_drop(s, b, page * LADE__PAGE_CHUNKS);
	}
	return status;
}

/* ---- tables --------------------------------------------------------------------------------- */

/* Adds 'count' times 'size' bytes to '*total', which stays a multiple of 8.  False: too many. */
static bool table_add(size_t *total, size_t count, size_t size)
{
	size_t bytes;
	return !__builtin_mul_overflow(count, size, &bytes) && bytes <= SIZE_MAX - 7 &&
	       !__builtin_add_overflow(*total, (bytes + 7) & ~(size_t)7, total);
}

static void *table_take(uint8_t **at, size_t count, size_t size)
{
	void *table = *at;
	*at += (count * size + 7) & ~(size_t)7;
	return table;
}

/* The most pieces that a window has: of each range those in the page where it has the most. */
static bool pieces_most(const batch *b, size_t count, size_t *pieces)
{
	const lade_frame_info *info = &b->frame->info;
	*pieces = 0;
	for (size_t i = 0; i < count; i++) {
		const lade_frame_range *range = &b->ranges[i];
		if (range->dst.size == 0 || range->off > info->size ||
		    range->dst.size > info->size - range->off)
			continue;
		uint64_t n = (range->off + range->dst.size - 1) / info->chunk_size -
		             range->off / info->chunk_size + 1;
		n = n < LADE__PAGE_CHUNKS ? n : LADE__PAGE_CHUNKS;
		if (__builtin_add_overflow(*pieces, (size_t)n, pieces))
			return false;
	}
	return true;
}

/* All tables of a call.  NULL: no memory. */
static void *make_tables(batch *b, sweep *s, size_t count)
{
	const lade__source *source = &b->frame->source;
	size_t page = lade__page_entries(0, b->frame->info.chunk_count), pieces, total = 0;
	size_t rounds = source->base || source->local ? 0 : LADE__ROUND_CHUNKS;
	if (!pieces_most(b, count, &pieces))
		return NULL;
	size_t tasks = pieces < page ? pieces : page;
	bool fits = table_add(&total, count, sizeof *s->order) &&
	            table_add(&total, tasks, sizeof *b->tasks) &&
	            table_add(&total, page, sizeof *b->counts) &&
	            table_add(&total, pieces, sizeof *b->pieces) &&
	            table_add(&total, tasks + 1, sizeof *b->groups) &&
	            table_add(&total, 2 * rounds, sizeof *b->rounds[0].ranges) &&
	            table_add(&total, 2 * rounds, sizeof *b->rounds[0].errors) &&
	            table_add(&total, 2 * rounds, sizeof *b->rounds[0].range_of) &&
	            table_add(&total, count, sizeof *b->statuses);
	uint8_t *block = fits ? malloc(total) : NULL, *at = block;
	if (!block)
		return NULL;
	s->order = table_take(&at, count, sizeof *s->order);
	b->tasks = table_take(&at, tasks, sizeof *b->tasks);
	b->counts = table_take(&at, page, sizeof *b->counts);
	b->pieces = table_take(&at, pieces, sizeof *b->pieces);
	b->groups = table_take(&at, tasks + 1, sizeof *b->groups);
	for (size_t k = 0; k < 2; k++)
		b->rounds[k] = (lade__round_table){
			table_take(&at, rounds, sizeof *b->rounds[k].ranges),
			table_take(&at, rounds, sizeof *b->rounds[k].errors),
			table_take(&at, rounds, sizeof *b->rounds[k].range_of)};
	b->statuses = table_take(&at, count, sizeof *b->statuses);
	memset(b->statuses, 0, count * sizeof *b->statuses);
	return block;
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
		                 "range %zu: %zu bytes at %" PRIu64 ", the frame has %" PRIu64,
		                 index, range->dst.size, range->off, frame->info.size);
	return LADE_OK;
}

static int by_off(const void *a, const void *b)
{
	uint64_t x = ((const ordered *)a)->off, y = ((const ordered *)b)->off;
	return x < y ? -1 : x > y;
}

/* All of a frame on a device, decoded there.  False: it was not, and the usual way finds
 * out, and says, why. */
static bool read_from_device(lade_frame *frame, const lade_frame_range *range, lade_result *result)
{
	if (range->off || range->dst.size != frame->info.size || !range->dst.data ||
	    lade__device_frame_decode(frame, range->dst, NULL) != LADE_OK)
		return false;
	if (result)
		*result = (lade_result){LADE_OK, range->dst.size};
	return true;
}

/* Checks the ranges and puts the good ones in order. */
static void take_ranges(batch *b, sweep *s, size_t count)
{
	bool sorted = true;
	for (size_t i = 0; i < count; i++) {
		const lade_frame_range *range = &b->ranges[i];
		lade_error bad;
		lade_status status = range_check(b->frame, range, i, &bad);
		if (status != LADE_OK)
			range_fail(b, i, 0, status, &bad);
		if (status != LADE_OK || range->dst.size == 0)
			continue;
		if (!lade_kind_is_host(range->dst.place.kind))
			b->devices |= (uint64_t)1 << range->dst.place.device;
		sorted &= s->count == 0 || s->order[s->count - 1].off <= range->off;
		s->order[s->count++] = (ordered){range->off, i};
	}
	if (!sorted)
		qsort(s->order, s->count, sizeof *s->order, by_off);
}

lade_status lade__read_ranges(lade_frame *frame, const lade_frame_range *ranges, size_t count,
                              lade_result *results, const lade__stop *stop, lade_error *err)
{
	batch b = {.frame = frame, .ranges = ranges, .stop = *stop, .failed = SIZE_MAX};
	sweep s = {.order = NULL};
	lade_error now;
	lade_status status = LADE_OK;
	/* What follows is done behind the default stream. */
	if (frame->on_device && frame->on_device->stream)
		status = lade_stream_wait(frame->on_device->frame.place.device,
		                          frame->on_device->stream, err);
	if (status != LADE_OK)
		return status;
	void *tables = make_tables(&b, &s, count);
	if (tables) {
		pthread_mutex_init(&b.mutex, NULL);
		take_ranges(&b, &s, count);
		status = run_all(&b, &s, err);
		pthread_mutex_destroy(&b.mutex);
		/* All ranges are of the version that was opened, or none is. */
		if (status == LADE_OK && s.count && b.status != LADE_E_CHANGED &&
		    lade__source_check_version(&frame->source, b.status, &now) == LADE_E_CHANGED)
			status = lade_fail(err, LADE_E_CHANGED, now.offset, "%s", now.message);
	} else {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu ranges",
		                   count);
	}
	for (size_t i = 0; results && i < count; i++) {
		results[i].status = status != LADE_OK ? status : b.statuses[i];
		results[i].size = results[i].status == LADE_OK ? ranges[i].dst.size : 0;
	}
	if (status == LADE_OK && b.failed != SIZE_MAX) {
		status = b.status;
		if (err)
			*err = b.error;
	}
	free(tables);
	return status;
}

#if LADE_VERSION <= 200 && !defined(LADE_TEST_GROWN)
/* Until 0.2.0 is released, a struct that grows has another last field in lade_frame_read(). */
_Static_assert(LADE__SIZE_TO(lade_frame_range, dst) == sizeof(lade_frame_range),
               "0.2.0's lade_frame_range has another last field");
#endif

/* A call's ranges and results in this version's structs. */
typedef struct given {
	lade__array ranges, results;
} given;

static lade_status given_open(given *g, const lade_frame_range *ranges, size_t count,
                              lade_result *results, lade_frame_range_options *options,
                              lade_error *err)
{
	*g = (given){.ranges = {.own = (void *)(uintptr_t)ranges,
	                        .count = count,
	                        .own_size = sizeof *ranges},
	             .results = {.own = results, .count = count, .own_size = sizeof *results}};
	lade_status status = lade__size_given(&options->range_size,
	                                      LADE__SIZE_TO(lade_frame_range, dst), "range_size",
	                                      err);
	if (status == LADE_OK)
		status = lade__size_given(&options->result_size, LADE__SIZE_TO(lade_result, size),
		                          "result_size", err);
	if (status == LADE_OK)
		status = lade__array_open(&g->ranges, options->range_size, "range", err);
	if (status == LADE_OK)
		status = lade__array_open(&g->results, options->result_size, NULL, err);
	if (status != LADE_OK)
		lade__array_close(&g->ranges, false);
	return status;
}

lade_status lade_frame_read(lade_frame *frame, const lade_frame_range *ranges, size_t count,
                            lade_result *results, const lade_frame_range_options *caller,
                            lade_error *err)
{
	lade_frame_range_options options;
	given g;
	if (!frame || (!ranges && count))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 frame ? "ranges" : "frame");
	lade_status status =
		lade__options_read(&options, sizeof options, caller, "frame range options", err);
	if (status == LADE_OK)
		status = given_open(&g, ranges, count, results, &options, err);
	if (status != LADE_OK || count == 0)
		return status;
	ranges = g.ranges.own;
	results = g.results.own;
	const lade__stop stop = lade__stop_of(options.cancel);
	if (!frame->on_device || count != 1 || !read_from_device(frame, ranges, results))
		status = lade__read_ranges(frame, ranges, count, results, &stop, err);
	lade__array_close(&g.ranges, false);
	lade__array_close(&g.results, true);
	return status;
}
