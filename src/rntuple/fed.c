/*
 * fed.c: reads to a device from a source that is near: threads read pages to slots of pinned memory
 * and verify them, and batches decode them as they come, one batch for each spec.
 *
 *	threads   read, verify slot 0 | slot 2 | ...
 *	          slot 1              | slot 3 | ...
 *	batches                copy 0, 1 | decode 0, 1; copy 2, 3 | ...
 *
 * A slot is a small wave.  It is free again when the batches have done its items.  What no batch
 * takes, such as pages of several blocks, a thread decodes itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/batch.h"
#include "batch/gpu/kept.h"
#include "rntuple/wave.h"

#include <stdlib.h>

/* Batches at once, each with a spec of its own. */
#define STREAMS 4

/* A wave of a batch waits for no more than this part of all slots. */
#define WAVES 16

/* Items of a batch, at most: more come in the next. */
#define WINDOW ((size_t)16384)

typedef struct slot {
	struct slot *next; /* of those that are free */
	rnt_lane lane;
	rnt_wave wave;
	atomic_size_t left; /* items that are not done, and 1 for who reads it */
} slot;

/* An item of a slot's wave. */
typedef struct source {
	slot *slot; /* NULL: it is done */
	size_t item;
} source;

typedef struct stream {
	struct fed *f;
	pthread_t thread;
	const lade_spec *spec; /* of its items; NULL: there are none yet */
	/* Those that are not in its batch yet, from 'first' on; guarded by the mutex. */
	source *queue;
	size_t first, end, cap;
	bool fresh; /* its thread does not know of the last ones */
	pthread_cond_t came;
	/* Of the batch that runs. */
	size_t count;
	lade_item *items;
	lade_segment *segments;
	source *sources;
	lade_result *results;
	lade_error *errors;
} stream;

typedef struct fed {
	rnt_read *r;
	size_t window;
	stream streams[STREAMS];
	slot slots[RNT_SLOTS_MAX];
	pthread_mutex_t mutex; /* guards what follows */
	pthread_cond_t free_one;
	slot *free;
	size_t next;            /* piece */
	size_t active, waiting; /* threads that read, and those of them that want a slot */
	bool reading, stop;
	size_t failed; /* the first piece with a fault; with 'status' */
	lade_status status;
	lade_error error;
} fed;

/* ---- faults --------------------------------------------------------------------------------- */

/* No more pages are read.  Those that are there are decoded, so that the fault that is reported
 * is the first in the file. */
static void fail_at(fed *f, size_t piece, lade_status status, const lade_error *err)
{
	pthread_mutex_lock(&f->mutex);
	if (f->status == LADE_OK || piece < f->failed) {
		f->failed = piece;
		f->status = status;
		f->error = *err;
	}
	f->stop = true;
	pthread_cond_broadcast(&f->free_one);
	pthread_mutex_unlock(&f->mutex);
}

static void fail_item(fed *f, const source *s, lade_status status, const char *why)
{
	const rnt_wave *w = &s->slot->wave;
	size_t piece = (size_t)(w->piece - f->r->piece) + w->item_piece[s->item];
	lade_error err;
	fail_at(f, piece, lade__rnt_item_error(w, s->item, status, why, &err), &err);
}

/* ---- slots ---------------------------------------------------------------------------------- */

static void wake_streams(fed *f)
{
	for (size_t i = 0; i < STREAMS; i++)
		pthread_cond_signal(&f->streams[i].came);
}

/* A free slot; NULL: the read ends. */
static slot *take_slot(fed *f)
{
	pthread_mutex_lock(&f->mutex);
	f->waiting++;
	while (!f->free && !f->stop) {
		if (f->waiting == f->active)
			wake_streams(f); /* they may wait for more before they begin */
		pthread_cond_wait(&f->free_one, &f->mutex);
	}
	f->waiting--;
	slot *s = f->stop ? NULL : f->free;
	if (s)
		f->free = s->next;
	pthread_mutex_unlock(&f->mutex);
	return s;
}

/* One of those who use the slot does not any more. */
static void leave_slot(fed *f, slot *s)
{
	if (atomic_fetch_sub(&s->left, 1) != 1)
		return;
	lade__rnt_wave_reset(&s->wave);
	pthread_mutex_lock(&f->mutex);
	s->next = f->free;
	f->free = s;
	if (f->waiting)
		pthread_cond_signal(&f->free_one);
	pthread_mutex_unlock(&f->mutex);
}

/* ---- batches -------------------------------------------------------------------------------- */

/* Puts items that came into the batch.  False: it has no room for one. */
static bool take_queued(stream *st)
{
	for (; st->first < st->end && st->count < st->f->window; st->first++, st->count++) {
		source s = st->queue[st->first];
		const lade_item *item = &s.slot->wave.item[s.item];
		st->segments[st->count] = item->src[0];
		st->items[st->count] = *item;
		st->items[st->count].src = &st->segments[st->count];
		st->sources[st->count] = s;
		st->results[st->count] = (lade_result){LADE_E_DEVICE, 0};
	}
	return st->first == st->end;
}

static size_t wait_items(void *ctx, size_t have, bool *end)
{
	stream *st = ctx;
	fed *f = st->f;
	pthread_mutex_lock(&f->mutex);
	for (;;) {
		*end = !take_queued(st) || !f->reading;
		/* When all threads want a slot, no pages come. */
		if (st->count > have || *end ||
		    (f->active && f->waiting == f->active && !f->free))
			break;
		pthread_cond_wait(&st->came, &f->mutex);
	}
	size_t count = st->count;
	pthread_mutex_unlock(&f->mutex);
	return count;
}

/* An item's result is there. */
static void finish_item(stream *st, size_t index)
{
	source *s = &st->sources[index];
	const lade_result *result = &st->results[index];
	if (result->status != LADE_OK)
		fail_item(st->f, s, result->status, st->errors[index].message);
	else if (result->size != lade__rnt_item_size(&s->slot->wave.item[s->item]))
		fail_item(st->f, s, LADE_OK, NULL);
	leave_slot(st->f, s->slot);
	s->slot = NULL;
}

/* What failed is reported when the batch has ended: then its message is there. */
static void item_done(void *ctx, size_t index, bool ok)
{
	stream *st = ctx;
	fed *f = st->f;
	if (ok) {
		finish_item(st, index);
		return;
	}
	pthread_mutex_lock(&f->mutex);
	f->stop = true;
	pthread_cond_broadcast(&f->free_one);
	pthread_mutex_unlock(&f->mutex);
}

static lade_status run_batch(stream *st, lade_error *err)
{
	rnt_read *r = st->f->r;
	const lade_rntuple_report *all = &r->report;
	lade__arrivals arrivals = {.items = st->items,
	                           .results = st->results,
	                           .cap = st->f->window,
	                           .ctx = st,
	                           .wait = wait_items,
	                           .done = item_done,
	                           .count = (size_t)all->distinct_count,
	                           .in = all->stored_size,
	                           .total = all->decoded_size,
	                           .largest = r->page_most,
	                           .wave = (size_t)r->wave_size * r->lanes / WAVES};
	lade_batch_options options = lade__rnt_reading(r);
	options.item_errors = st->errors;
	lade_status status = lade__decode_arriving(r->engine, &arrivals, &options, err);
	for (size_t i = 0; i < st->count; i++) {
		/* A call that failed as a whole says nothing of its items. */
		if (st->sources[i].slot && status == LADE_OK)
			finish_item(st, i);
		else if (st->sources[i].slot)
			leave_slot(st->f, st->sources[i].slot);
	}
	st->count = 0;
	return status;
}

static void *run_stream(void *ctx)
{
	stream *st = ctx;
	fed *f = st->f;
	lade_error err = {.offset = LADE_NO_OFFSET};
	for (bool more = true; more;) {
		pthread_mutex_lock(&f->mutex);
		while (st->first == st->end && f->reading)
			pthread_cond_wait(&st->came, &f->mutex);
		more = st->first < st->end;
		pthread_mutex_unlock(&f->mutex);
		lade_status status = more ? run_batch(st, &err) : LADE_OK;
		if (status != LADE_OK)
			fail_at(f, SIZE_MAX, status, &err);
	}
	return NULL;
}

static void free_stream(stream *st)
{
	free(st->queue);
	free(st->items);
	free(st->segments);
	free(st->sources);
	free(st->results);
	free(st->errors);
	pthread_cond_destroy(&st->came);
}

/* Has a stream take items of a spec.  False: there is no memory or thread for it. */
static bool open_stream(stream *st, const lade_spec *spec)
{
	size_t n = st->f->window;
	if (!st->items) {
		st->items = malloc(n * sizeof *st->items);
		st->segments = malloc(n * sizeof *st->segments);
		st->sources = malloc(n * sizeof *st->sources);
		st->results = malloc(n * sizeof *st->results);
		st->errors = malloc(n * sizeof *st->errors);
	}
	if (!st->items || !st->segments || !st->sources || !st->results || !st->errors ||
	    pthread_create(&st->thread, NULL, run_stream, st) != 0)
		return false;
	st->spec = spec;
	return true;
}

/* Gives an item to the stream of its spec.  False: there is none.  The mutex is held. */
static bool queue_item(fed *f, slot *s, size_t index)
{
	const lade_item *item = &s->wave.item[index];
	stream *st = f->streams;
	if (item->src_count != 1 || item->tail)
		return false;
	while (st < f->streams + STREAMS && st->spec && st->spec != item->spec)
		st++;
	if (st == f->streams + STREAMS || (!st->spec && !open_stream(st, item->spec)))
		return false;
	if (st->first == st->end)
		st->first = st->end = 0;
	if (!lade__rnt_grow(&st->queue, &st->cap, st->end, sizeof *st->queue))
		return false;
	atomic_fetch_add(&s->left, 1);
	st->queue[st->end++] = (source){s, index};
	st->fresh = true;
	return true;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The pieces that come next, as many as a slot has room for.  False: there are none. */
static bool take_pieces(fed *f, size_t *first, size_t *end, size_t *bytes)
{
	size_t distinct, ranges;
	uint64_t size;
	pthread_mutex_lock(&f->mutex);
	bool more = f->next < f->r->piece_count && !f->stop;
	*first = f->next;
	if (more)
		f->next = lade__rnt_wave(f->r, *first, &size, &distinct, &ranges);
	*end = f->next;
	*bytes = more ? (size_t)size : 0;
	pthread_mutex_unlock(&f->mutex);
	return more;
}

/* Hands out the items of a slot; those that no stream takes are decoded. */
static void hand_out(fed *f, slot *s)
{
	rnt_wave *w = &s->wave;
	pthread_mutex_lock(&f->mutex);
	for (size_t i = 0; i < w->item_count; i++) {
		lade_error err = {.offset = LADE_NO_OFFSET};
		if (queue_item(f, s, i))
			continue;
		pthread_mutex_unlock(&f->mutex);
		lade_status status = lade__rnt_wave_decode(w, i, 1, &err);
		if (status != LADE_OK)
			fail_at(f, (size_t)(w->piece - f->r->piece) + w->item_piece[i], status,
			        &err);
		pthread_mutex_lock(&f->mutex);
	}
	for (stream *st = f->streams; st < f->streams + STREAMS; st++) {
		if (st->fresh)
			pthread_cond_signal(&st->came);
		st->fresh = false;
	}
	pthread_mutex_unlock(&f->mutex);
}

static lade_status read_slots(void *ctx, size_t index, lade_error *unused)
{
	fed *f = ctx;
	size_t first, end, bytes;
	bool more = true;
	(void)index, (void)unused;
	pthread_mutex_lock(&f->mutex);
	f->active++;
	pthread_mutex_unlock(&f->mutex);
	for (slot *s; more && (s = take_slot(f)); leave_slot(f, s)) {
		lade_error err = {.offset = LADE_NO_OFFSET};
		atomic_store(&s->left, 1);
		more = take_pieces(f, &first, &end, &bytes);
		if (!more)
			continue;
		lade_status status = lade__rnt_wave_make(&s->wave, first, end, bytes, &err);
		if (status == LADE_OK)
			hand_out(f, s);
		else
			fail_at(f, first, status, &err);
	}
	pthread_mutex_lock(&f->mutex);
	f->active--;
	wake_streams(f);
	pthread_mutex_unlock(&f->mutex);
	return LADE_OK;
}

/* ---- all ------------------------------------------------------------------------------------ */

static lade_status run_fed(fed *f, lade_error *err)
{
	rnt_read *r = f->r;
	lade_batch_options options = lade__rnt_reading(r);
	lade_status status = lade_engine_each(r->engine, r->threads, read_slots, f, &options, err);
	pthread_mutex_lock(&f->mutex);
	f->reading = false;
	wake_streams(f);
	pthread_mutex_unlock(&f->mutex);
	for (size_t i = 0; i < STREAMS; i++)
		if (f->streams[i].spec)
			pthread_join(f->streams[i].thread, NULL);
	if (f->status != LADE_OK && err)
		*err = f->error;
	return f->status != LADE_OK ? f->status : status;
}

lade_status lade__rnt_run_fed(rnt_read *r, bool *all, lade_error *err)
{
	lade_allocator kept = lade__gpu_pinned_kept(r->engine);
	lade_place place = {LADE_PINNED, r->device_number};
	size_t each = (size_t)r->wave_size, size = each * r->lanes;
	uint64_t pages = r->report.distinct_count;
	fed *f = calloc(1, sizeof *f);
	uint8_t *block = f ? kept.alloc(kept.ctx, size, 64, place, NULL) : NULL;
	lade_status status = LADE_OK;
	*all = false;
	if (!block) {
		free(f); /* others may do with less */
		return LADE_OK;
	}
	f->r = r;
	f->window = pages < WINDOW ? (size_t)pages : WINDOW;
	f->reading = true;
	pthread_mutex_init(&f->mutex, NULL);
	pthread_cond_init(&f->free_one, NULL);
	for (size_t i = 0; i < STREAMS; i++) {
		f->streams[i].f = f;
		pthread_cond_init(&f->streams[i].came, NULL);
	}
	for (size_t i = r->lanes; i-- > 0;) {
		slot *s = &f->slots[i];
		s->lane = (rnt_lane){
			.r = r, .data = block + i * each, .size = each, .place = place};
		s->wave = (rnt_wave){.r = r, .lane = &s->lane, .alone = true};
		s->next = f->free;
		f->free = s;
	}
	status = run_fed(f, err);
	*all = status != LADE_OK || (!f->stop && f->next == r->piece_count);
	for (size_t i = 0; i < r->lanes; i++)
		lade__rnt_wave_reset(&f->slots[i].wave);
	for (size_t i = 0; i < STREAMS; i++)
		free_stream(&f->streams[i]);
	pthread_cond_destroy(&f->free_one);
	pthread_mutex_destroy(&f->mutex);
	free(f);
	kept.free(kept.ctx, block, size, 64, place, NULL);
	return status;
}
