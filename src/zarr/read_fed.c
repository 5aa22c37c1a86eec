/*
 * read_fed.c: reads to a device from a store that is near: threads read leaves to slots of pinned
 * memory, and one batch decodes them as they come.
 *
 *	threads    read slot 0 | read slot 2 | ...
 *	           read slot 1 | read slot 3 | ...
 *	the batch               copy 0, 1 | decode 0, 1; copy 2, 3 | ...
 *
 * A slot is free again when the batch has done its leaves.  Leaves that are not like most, such as
 * missing ones, the threads give to the device themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/batch.h"
#include "base/try.h"
#include "store/store.h"
#include "zarr/read.h"

#include <stdlib.h>

/* A slot has room for the bytes of two leaves, and at least these.  It goes on its way when it has
 * SLOT_ENOUGH bytes and the batch has nothing to do. */
#define SLOT_LEAST  ((size_t)1 << 20)
#define SLOT_ENOUGH ((size_t)256 << 10)
#define SLOT_LEAVES 64
#define LEAF_MOST   ((size_t)256 << 20)

#define SLOTS_LEAST 4
#define SLOTS_MOST 256

/* Bytes of leaves that one call to the store reads. */
#define READ_LEAST ((size_t)128 << 10)

/* Staged bytes begin at such addresses where the sizes are not known before. */
#define ALIGN 16

/* Items of a batch, at most. */
#define WINDOW ((size_t)16384)

typedef struct slot {
	struct slot *next;
	uint8_t *bytes;
	size_t used, count;
	size_t left; /* leaves that the batch has not done */
	lade_layout *layouts; /* for each leaf and part of an element */
	lade_item_output *outputs;
	lade_item items[SLOT_LEAVES];
	lade_segment segments[SLOT_LEAVES];
	lade__leaf leaves[SLOT_LEAVES];
	lade__spot spots[SLOT_LEAVES];
} slot;

/* An item of the batch, and the leaf that it is of. */
typedef struct source {
	slot *slot; /* NULL: it is done */
	size_t leaf;
} source;

typedef struct fed {
	lade__zread *r;
	lade__feed *feed;
	lade_place place; /* of the slots' bytes */
	size_t slot_size;
	/* Of the batch that runs. */
	size_t window, count;
	lade_item *items;
	lade_segment *segments;
	source *sources;
	lade_result *results;
	lade_error *errors;
	pthread_mutex_t mutex; /* guards what follows */
	pthread_cond_t free_one, full_one;
	slot *free, *full, **last; /* 'last': the end of the list of full ones */
	size_t active, waiting;    /* threads that read, and those of them that want a slot */
	bool reading, stop;
	atomic_bool hungry; /* the batch waits */
	lade_status status;
	lade_error error;
} fed;

/* A thread that reads. */
typedef struct reader {
	fed *f;
	lade__leaf held; /* the first leaf of its next slot: it did not fit */
	lade__spot held_spot;
	bool has_held, ended;
	size_t odd_count;
	lade__leaf odd[SLOT_LEAVES]; /* leaves for lade__leaves_to_device() */
	lade__spot odd_spots[SLOT_LEAVES];
} reader;

/* ---- leaves that are not like most ---------------------------------------------------------- */

static void fail_all(fed *f, lade_status status, const lade_error *err)
{
	pthread_mutex_lock(&f->mutex);
	if (f->status == LADE_OK) {
		f->status = status;
		f->error = *err;
	}
	f->stop = true;
	pthread_cond_broadcast(&f->free_one);
	pthread_mutex_unlock(&f->mutex);
}

static void do_odd(reader *me)
{
	fed *f = me->f;
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_status status = LADE_OK;
	if (me->odd_count)
		status = lade__leaves_to_device(f->r, me->odd, me->odd_count, f->place, &err);
	for (size_t i = 0; i < me->odd_count; i++)
		lade__leaf_reset(f->r, &me->odd[i]);
	me->odd_count = 0;
	if (status != LADE_OK)
		fail_all(f, status, &err);
}

/* Some are done at once, before their bytes are overwritten. */
static void add_odd(reader *me, const lade__leaf *leaf)
{
	lade__leaf *odd = &me->odd[me->odd_count];
	lade__leaf_move(odd, leaf, &me->odd_spots[me->odd_count++]);
	if (me->odd_count == SLOT_LEAVES || odd->staged || odd->large)
		do_odd(me);
}

/* A leaf that no slot has room for. */
static void do_large(reader *me, lade__leaf *leaf)
{
	lade__zread *r = me->f->r;
	size_t size = lade__leaf_room(r, leaf);
	uint8_t *bytes = r->pinned.alloc(r->pinned.ctx, size, 64, me->f->place, NULL);
	if (!bytes)
		leaf->status = lade_fail(&leaf->error, LADE_E_NOMEM, LADE_NO_OFFSET,
		                         "no memory for %zu encoded bytes", size);
	lade__leaves_read(r, leaf, 1, bytes, 1);
	do_odd(me);
	add_odd(me, leaf);
	do_odd(me);
	if (bytes)
		r->pinned.free(r->pinned.ctx, bytes, size, 64, me->f->place, NULL);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The item of a leaf that was read; false: it is not like most, or has failed. */
static bool make_item(fed *f, slot *s, size_t i)
{
	lade__zread *r = f->r;
	lade__leaf *leaf = &s->leaves[i];
	if (leaf->status == LADE_OK &&
	    (leaf->missing || !leaf->staged ||
	     lade__cut_bytes(r, leaf->cut) != r->coding.bound[0]))
		return false;
	if (leaf->status == LADE_OK && !leaf->spot) {
		leaf->status = lade__spot_make(r, leaf, &s->spots[i], &leaf->error);
		leaf->spot = &s->spots[i];
	}
	lade_segment *src = &s->segments[i];
	if (leaf->status == LADE_OK)
		leaf->status = lade__leaf_segment(r, leaf, src, &leaf->error);
	if (leaf->status != LADE_OK)
		return false;
	src->place = f->place;
	s->items[i] = (lade_item){.spec = r->coding.spec[0], .src_count = 1};
	lade__spot_outputs(r, leaf->spot, s->layouts + i * r->part_count,
	                   s->outputs + i * r->part_count, &s->items[i]);
	return true;
}

static bool next_leaf(reader *me, lade__leaf *leaf, lade__spot *spot)
{
	lade__zread *r = me->f->r;
	if (me->has_held) {
		lade__leaf_move(leaf, &me->held, spot);
		me->has_held = false;
		return true;
	}
	me->ended = me->ended || !lade__feed_next(me->f->feed, leaf);
	if (me->ended)
		return false;
	if (r->raw)
		lade__leaf_runs(r, leaf, spot);
	lade__leaf_look(r, leaf);
	return true;
}

/* Takes leaves that one call reads: their sizes are known, or it is one.  '*full': the slot has no
 * room for the next. */
static size_t take_leaves(reader *me, slot *s, bool *full)
{
	lade__zread *r = me->f->r;
	size_t n = 0, room = 0, runs = 0;
	while (s->count + n < SLOT_LEAVES && room < READ_LEAST && runs < LADE__RUNS_MOST) {
		lade__leaf *leaf = &s->leaves[s->count + n];
		if (!next_leaf(me, leaf, &s->spots[s->count + n]))
			break;
		size_t size = lade__leaf_room(r, leaf);
		if (size > me->f->slot_size) {
			do_large(me, leaf);
			continue;
		}
		*full = size > me->f->slot_size - s->used - room;
		if (*full) {
			lade__leaf_move(&me->held, leaf, &me->held_spot);
			me->has_held = true;
			break;
		}
		room += size;
		runs += leaf->runs.count;
		n++;
		if (!leaf->shard && !r->raw)
			break;
	}
	return n;
}

/* Reads leaves to a slot, until it is full or it is time. */
static void fill_slot(reader *me, slot *s)
{
	fed *f = me->f;
	bool full = false;
	s->used = s->count = 0;
	while (!full && !me->ended && s->count < SLOT_LEAVES &&
	       (s->used < SLOT_ENOUGH || !atomic_load_explicit(&f->hungry, memory_order_relaxed))) {
		size_t first = s->count, n = take_leaves(me, s, &full);
		lade__leaves_read(f->r, &s->leaves[first], n, s->bytes + s->used, 1);
		for (size_t i = first; i < first + n; i++) {
			lade__leaf *leaf = &s->leaves[s->count];
			if (i > s->count)
				lade__leaf_move(leaf, &s->leaves[i], &s->spots[s->count]);
			if (make_item(f, s, s->count)) {
				size_t end = (size_t)(leaf->data - s->bytes) + leaf->data_size;
				s->used = n == 1 ? (end + ALIGN - 1) / ALIGN * ALIGN : end;
				s->count++;
			} else if (leaf->status != LADE_OK) {
				lade__leaf_failed(f->r, leaf);
				lade__leaf_reset(f->r, leaf);
			} else {
				add_odd(me, leaf);
			}
		}
	}
}

/* A free slot; NULL: the read ends. */
static slot *take_slot(fed *f)
{
	pthread_mutex_lock(&f->mutex);
	f->waiting++;
	while (!f->free && !f->stop) {
		pthread_cond_signal(&f->full_one); /* the batch may wait for nothing */
		pthread_cond_wait(&f->free_one, &f->mutex);
	}
	f->waiting--;
	slot *s = f->stop ? NULL : f->free;
	if (s)
		f->free = s->next;
	pthread_mutex_unlock(&f->mutex);
	return s;
}

static void give_slot(fed *f, slot *s)
{
	pthread_mutex_lock(&f->mutex);
	s->next = NULL;
	s->left = s->count;
	if (s->count) {
		*f->last = s;
		f->last = &s->next;
		pthread_cond_signal(&f->full_one);
	} else {
		s->next = f->free;
		f->free = s;
		pthread_cond_signal(&f->free_one);
	}
	pthread_mutex_unlock(&f->mutex);
}

static void read_slots(void *ctx, size_t index, lade_worker *worker)
{
	fed *f = ctx;
	reader *me = malloc(sizeof *me);
	lade_error err;
	(void)index, (void)worker;
	if (!me) {
		fail_all(f, lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a thread"),
		         &err);
		return;
	}
	me->f = f;
	me->has_held = me->ended = false;
	me->odd_count = 0;
	pthread_mutex_lock(&f->mutex);
	f->active++;
	pthread_mutex_unlock(&f->mutex);
	for (slot *s; !me->ended && (s = take_slot(f));) {
		fill_slot(me, s);
		give_slot(f, s);
	}
	do_odd(me);
	pthread_mutex_lock(&f->mutex);
	f->active--;
	pthread_cond_signal(&f->full_one);
	pthread_mutex_unlock(&f->mutex);
	free(me);
}

static void *read_all(void *ctx)
{
	fed *f = ctx;
	lade_error err;
	unsigned threads = lade__zread_threads(f->r);
	lade__calls calls = {read_slots, f, .count = threads, .grain = 1, .threads = threads};
	lade_status status = lade__engine_parallel(f->r->engine, &calls, &err);
	if (status != LADE_OK)
		fail_all(f, status, &err);
	pthread_mutex_lock(&f->mutex);
	f->reading = false;
	pthread_cond_signal(&f->full_one);
	pthread_mutex_unlock(&f->mutex);
	return NULL;
}

/* ---- the batch ------------------------------------------------------------------------------ */

/* Puts the leaves of full slots into the batch.  False: it has no room for one's. */
static bool take_full(fed *f)
{
	for (slot *s; (s = f->full); f->full = s->next) {
		if (s->count > f->window - f->count)
			return false;
		for (size_t i = 0; i < s->count; i++, f->count++) {
			f->segments[f->count] = s->segments[i];
			f->items[f->count] = s->items[i];
			f->items[f->count].src = &f->segments[f->count];
			f->sources[f->count] = (source){s, i};
			f->results[f->count] = (lade_result){LADE_E_DEVICE, 0};
		}
		if (!s->next)
			f->last = &f->full;
	}
	return true;
}

static size_t wait_items(void *ctx, size_t have, bool *end)
{
	fed *f = ctx;
	pthread_mutex_lock(&f->mutex);
	for (;;) {
		*end = !take_full(f) || (!f->reading && !f->full);
		/* When all threads want a slot, no leaves come. */
		if (f->count > have || *end || (f->active && f->waiting == f->active && !f->free))
			break;
		atomic_store_explicit(&f->hungry, true, memory_order_relaxed);
		pthread_cond_wait(&f->full_one, &f->mutex);
	}
	atomic_store_explicit(&f->hungry, false, memory_order_relaxed);
	size_t count = f->count;
	pthread_mutex_unlock(&f->mutex);
	return count;
}

static void item_done(void *ctx, size_t index, bool ok)
{
	fed *f = ctx;
	slot *s = f->sources[index].slot;
	const lade__leaf *leaf = &s->leaves[f->sources[index].leaf];
	if (ok) {
		lade__zread_note(f->r, leaf, leaf->spot, false);
		f->sources[index].slot = NULL;
	}
	if (ok && --s->left)
		return;
	pthread_mutex_lock(&f->mutex);
	if (ok) {
		s->next = f->free;
		f->free = s;
		pthread_cond_signal(&f->free_one);
	} else {
		f->stop = true;
		pthread_cond_broadcast(&f->free_one);
	}
	pthread_mutex_unlock(&f->mutex);
}

/* Notes the items that failed, and those that the host has decoded. */
static void end_batch(fed *f)
{
	for (size_t i = 0; i < f->count; i++) {
		const source *s = &f->sources[i];
		if (f->results[i].status != LADE_OK)
			lade__zread_fail(f->r, &s->slot->leaves[s->leaf], f->results[i].status,
			                 &f->errors[i]);
		if (s->slot)
			item_done(f, i, f->results[i].status == LADE_OK);
	}
	f->count = 0;
}

static lade_status run_batches(fed *f, lade_error *err)
{
	const lade__zread *r = f->r;
	lade__arrivals arrivals = {.items = f->items, .results = f->results, .cap = f->window,
	                           .ctx = f, .wait = wait_items, .done = item_done,
	                           .count = (size_t)r->leaf_count, .in = r->leaf_bytes / 2,
	                           .total = r->leaf_bytes, .largest = r->chunk_max};
	lade_batch_options options = lade__zread_batch(r, f->errors);
	lade_status status = LADE_OK;
	bool more = true;
	if (r->raw)
		arrivals.in = r->leaf_bytes;
	while (more && status == LADE_OK) {
		status = lade__decode_arriving(r->engine, &arrivals, &options, err);
		if (status == LADE_OK)
			end_batch(f);
		pthread_mutex_lock(&f->mutex);
		more = (f->reading || f->full) && !f->stop;
		pthread_mutex_unlock(&f->mutex);
	}
	return status;
}

/* ---- all ------------------------------------------------------------------------------------ */

static size_t slots_of(const lade__zread *r, size_t *size)
{
	*size = r->encoded_cap > SLOT_LEAST / 2 ? 2 * r->encoded_cap : SLOT_LEAST;
	*size = (*size + 4095) / 4096 * 4096;
	uint64_t count = r->options.memory / *size;
	return count < SLOTS_MOST ? (size_t)count : SLOTS_MOST;
}

uint64_t lade__fed_memory(const lade__zread *r)
{
	size_t size, count = slots_of(r, &size);
	return (uint64_t)count * size;
}

bool lade__leaves_can_be_fed(const lade__zread *r)
{
	const lade_workload work = {.direction = LADE_DECODE, .count = (size_t)r->leaf_count,
	                            .largest = r->chunk_max, .total = r->leaf_bytes};
	lade_kind kind = r->target.span.place.kind;
	size_t size;
	return r->device && !r->target.place && !r->texts && r->coding.count == 1 &&
	       (kind == LADE_DEVICE || kind == LADE_MANAGED) &&
	       (r->node->chunk_store->ops.flags & LADE_STORE_LOCAL) &&
	       r->options.where != LADE_WHERE_HOST && r->leaf_count > SLOT_LEAVES / 4 &&
	       r->leaf_count < SIZE_MAX / 2 && r->encoded_cap < LEAF_MOST &&
	       slots_of(r, &size) >= SLOTS_LEAST &&
	       lade_device_takes(r->engine, r->coding.spec[0], &work, lade__zread_device(r),
	                         NULL) == LADE_OK;
}

static lade_status open_fed(fed *f, slot **slots, size_t slot_count, lade_error *err)
{
	const lade__zread *r = f->r;
	size_t n = r->leaf_count < WINDOW ? (size_t)r->leaf_count : WINDOW;
	size_t parts = SLOT_LEAVES * r->part_count;
	f->window = n < SLOT_LEAVES ? SLOT_LEAVES : n;
	f->items = malloc(f->window * sizeof *f->items);
	f->segments = malloc(f->window * sizeof *f->segments);
	f->sources = malloc(f->window * sizeof *f->sources);
	f->results = malloc(f->window * sizeof *f->results);
	f->errors = malloc(f->window * sizeof *f->errors);
	bool fits = f->items && f->segments && f->sources && f->results && f->errors;
	for (size_t i = 0; i < slot_count && fits; i++) {
		slots[i] = malloc(sizeof **slots);
		fits = slots[i];
		if (!fits)
			break;
		slots[i]->layouts = malloc(parts * sizeof *slots[i]->layouts);
		slots[i]->outputs = malloc(parts * sizeof *slots[i]->outputs);
		fits = slots[i]->layouts && slots[i]->outputs;
	}
	return fits ? LADE_OK
	            : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu items",
	                        f->window);
}

static void close_fed(fed *f, slot **slots, size_t slot_count)
{
	for (size_t i = 0; i < slot_count && slots[i]; i++) {
		free(slots[i]->layouts);
		free(slots[i]->outputs);
		free(slots[i]);
	}
	free(f->items);
	free(f->segments);
	free(f->sources);
	free(f->results);
	free(f->errors);
}

lade_status lade__leaves_fed(lade__zread *r, lade__feed *feed, lade_error *err)
{
	slot *slots[SLOTS_MOST] = {NULL};
	fed f = {.r = r, .feed = feed, .reading = true,
	         .place = {LADE_PINNED, lade__zread_device(r)}};
	size_t count = slots_of(r, &f.slot_size);
	pthread_t thread;
	lade_status status = LADE_OK;
	uint8_t *bytes = NULL;
	f.last = &f.full;
	pthread_mutex_init(&f.mutex, NULL);
	pthread_cond_init(&f.free_one, NULL);
	pthread_cond_init(&f.full_one, NULL);
	TRY(open_fed(&f, slots, count, err));
	bytes = r->pinned.alloc(r->pinned.ctx, count * f.slot_size, 64, f.place, NULL);
	if (!bytes)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no %zu bytes of pinned memory",
		              count * f.slot_size));
	for (size_t i = 0; i < count; i++) {
		slots[i]->bytes = bytes + i * f.slot_size;
		slots[i]->next = f.free;
		f.free = slots[i];
	}
	if (pthread_create(&thread, NULL, read_all, &f) != 0)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no thread to read with"));
	status = run_batches(&f, err);
	pthread_mutex_lock(&f.mutex);
	f.stop = true;
	pthread_cond_broadcast(&f.free_one);
	pthread_mutex_unlock(&f.mutex);
	pthread_join(thread, NULL);
	if (status == LADE_OK && f.status != LADE_OK)
		status = lade_fail(err, f.status, f.error.offset, "%s", f.error.message);
out:
	if (bytes)
		r->pinned.free(r->pinned.ctx, bytes, count * f.slot_size, 64, f.place, NULL);
	close_fed(&f, slots, count);
	pthread_cond_destroy(&f.free_one);
	pthread_cond_destroy(&f.full_one);
	pthread_mutex_destroy(&f.mutex);
	return status;
}
