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

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/*
 * A slot has room for the bytes of two leaves, and at least SLOT_LEAST.  Where the batch has
 * nothing to do, it goes on its way with SLOT_ENOUGH bytes, as each copy over the link costs a
 * microsecond; the first ones go with SLOT_FIRST.
 */
#define SLOT_LEAST  ((size_t)2 << 20)
#define SLOT_ENOUGH ((size_t)1 << 20)
#define SLOT_FIRST  ((size_t)256 << 10)
#define SLOTS_FIRST 16
#define SLOT_LEAVES 128
#define LEAVES_FEW  16
#define LEAF_MOST   ((size_t)256 << 20)
#define SLOTS_LEAST 4
#define SLOTS_MOST  256

/* A wave waits for this part of the slots' bytes, so that the others are read meanwhile. */
#define WAVE_PART 16

/* Leaves that a thread takes at once, if they are small, and the room of those that one call to the
 * store reads: many calls at once would wait for each other's locks. */
#define TAKE_LEAVES 16
#define TAKE_BYTES  ((size_t)1 << 20)
#define READ_LEAST  ((size_t)1 << 20)

/* Where staged objects begin. */
#define ALIGN 16

/* Items of a batch, at most. */
#define WINDOW ((size_t)16384)

/* With more threads than these one of them does not read. */
#define BATCH_THREADS 4

/* How often who waits looks again before it sleeps: to be woken takes longer than many waits. */
#define LOOKS 200

/* A leaf on its way to the device: what its item needs, and what its error says.  Its numbers are
 * in slot.numbers: the chunk, in its shard and in the grid; the tables of its layout. */
typedef struct staged {
	lade_segment segment;
	lade_item item;
	lade__shard *shard;
	size_t decoded, written;
	bool direct;
} staged;

/* Numbers of a leaf for each axis: chunk, cut, and six tables of a layout. */
#define NUMBERS 8

typedef struct slot {
	struct slot *next;
	uint8_t *bytes;
	size_t used, count;
	size_t left; /* leaves that the batch has not done */
	staged *leaves;
	uint64_t *numbers;
	lade_layout *layouts; /* for each leaf and part of an element */
	lade_item_output *outputs;
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
	lade_zarr_report report;
	pthread_mutex_t mutex; /* guards what follows */
	pthread_cond_t free_one, full_one;
	slot *free, *full, **last; /* 'last': the end of the list of full ones */
	size_t active, waiting;    /* threads that read, and those of them that want a slot */
	bool reading, stop;
	atomic_bool hungry;       /* the batch waits */
	atomic_uint slots_given;
	atomic_uint given, taken; /* change when a slot is full, or free, or no more come */
	lade_status status;
	lade_error error;
} fed;

/* A thread that reads. */
typedef struct reader {
	fed *f;
	bool ended;
	size_t next, count; /* of the leaves that it has taken, those that it has not read yet */
	lade__leaf leaves[TAKE_LEAVES];
	lade__spot spots[TAKE_LEAVES];
	size_t odd_count;
	struct odds *odds; /* NULL: there were none so far */
} reader;

/* Leaves for lade__leaves_to_device(). */
#define ODDS 64
typedef struct odds {
	lade__leaf leaves[ODDS];
	lade__spot spots[ODDS];
} odds;

/* ---- waiting -------------------------------------------------------------------------------- */

static void wake(pthread_cond_t *who, atomic_uint *what)
{
	atomic_fetch_add(what, 1);
	pthread_cond_broadcast(who);
}

/* Waits until 'what' is another than 'seen'; the mutex is held before and after. */
static void wait_for(fed *f, pthread_cond_t *who, atomic_uint *what, unsigned seen)
{
	pthread_mutex_unlock(&f->mutex);
	for (int i = 0; i < LOOKS && atomic_load(what) == seen; i++)
		sched_yield();
	pthread_mutex_lock(&f->mutex);
	if (atomic_load(what) == seen)
		pthread_cond_wait(who, &f->mutex);
}

static void fail_all(fed *f, lade_status status, const lade_error *err)
{
	pthread_mutex_lock(&f->mutex);
	if (f->status == LADE_OK) {
		f->status = status;
		f->error = *err;
	}
	f->stop = true;
	wake(&f->free_one, &f->taken);
	pthread_mutex_unlock(&f->mutex);
}

/* ---- leaves that are not like most ---------------------------------------------------------- */

static void do_odd(reader *me)
{
	fed *f = me->f;
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_status status = LADE_OK;
	if (me->odd_count)
		status = lade__leaves_to_device(f->r, me->odds->leaves, me->odd_count, f->place,
		                                &err);
	for (size_t i = 0; i < me->odd_count; i++)
		lade__leaf_reset(f->r, &me->odds->leaves[i]);
	me->odd_count = 0;
	if (status != LADE_OK)
		fail_all(f, status, &err);
}

/* Some are done at once, before their bytes are overwritten. */
static void add_odd(reader *me, lade__leaf *leaf)
{
	lade_error err;
	if (!me->odds)
		me->odds = malloc(sizeof *me->odds);
	if (!me->odds) {
		fail_all(me->f, lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                          "no memory for %d leaves", ODDS), &err);
		lade__leaf_reset(me->f->r, leaf);
		return;
	}
	lade__leaf *odd = &me->odds->leaves[me->odd_count];
	lade__leaf_move(odd, leaf, &me->odds->spots[me->odd_count++]);
	if (me->odd_count == ODDS || odd->staged || odd->large)
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
	add_odd(me, leaf);
	do_odd(me);
	if (bytes)
		r->pinned.free(r->pinned.ctx, bytes, size, 64, me->f->place, NULL);
}

/* ---- items ---------------------------------------------------------------------------------- */

/* A layout's tables are the slot's. */
static void keep_tables(const lade__zread *r, lade_layout *layout, uint64_t *numbers)
{
	const size_t ndim = r->selected.ndim, size = ndim * sizeof *numbers;
	const void *const from[] = {layout->shape, layout->start, layout->step,
	                            layout->count, layout->order, layout->strides};
	for (size_t i = 0; i < sizeof from / sizeof *from; i++)
		memcpy(numbers + i * ndim, from[i], size);
	layout->shape = (const size_t *)numbers;
	layout->start = layout->shape + ndim;
	layout->step = layout->shape + 2 * ndim;
	layout->count = layout->shape + 3 * ndim;
	layout->order = layout->shape + 4 * ndim;
	layout->strides = (const ptrdiff_t *)numbers + 5 * ndim;
}

/* Stages a leaf that was read.  False: it is not like most, or has failed. */
static bool stage_leaf(fed *f, slot *s, lade__leaf *leaf, lade__spot *spot)
{
	lade__zread *r = f->r;
	const size_t ndim = r->selected.ndim, parts = r->part_count;
	staged *to = &s->leaves[s->count];
	uint64_t *numbers = s->numbers + s->count * NUMBERS * ndim;
	lade_layout *layouts = s->layouts + s->count * parts;
	if (leaf->status == LADE_OK &&
	    (leaf->missing || !leaf->staged ||
	     lade__cut_bytes(r, leaf->cut) != r->coding.bound[0]))
		return false;
	if (leaf->status == LADE_OK && !leaf->spot)
		leaf->status = lade__spot_make(r, leaf, spot, &leaf->error);
	if (leaf->status == LADE_OK)
		leaf->status = lade__leaf_segment(r, leaf, &to->segment, &leaf->error);
	if (leaf->status != LADE_OK)
		return false;
	lade_zarr_report report = {.chunk_count = 0};
	lade__report_add(&report, r, leaf, spot, false);
	to->segment.place = f->place;
	to->shard = leaf->shard;
	to->decoded = (size_t)report.decoded_size;
	to->written = spot->size;
	to->direct = spot->direct;
	to->item = (lade_item){.spec = r->coding.spec[0], .src_count = 1};
	for (size_t a = 0; a < ndim; a++) {
		numbers[a] = leaf->chunk[a];
		numbers[ndim + a] = leaf->cut[a].chunk;
	}
	lade__spot_outputs(r, spot, layouts, s->outputs + s->count * parts, &to->item);
	for (size_t i = 0; i < parts && !spot->direct; i++) {
		/* All parts have the same tables. */
		if (i == 0)
			keep_tables(r, &layouts[0], numbers + 2 * ndim);
		lade_layout own = layouts[0];
		own.part_off = layouts[i].part_off;
		own.part_size = layouts[i].part_size;
		own.swap_size = layouts[i].swap_size;
		own.offset = layouts[i].offset;
		layouts[i] = own;
	}
	s->count++;
	return true;
}

/* The failure of a staged leaf. */
static void staged_failed(fed *f, const source *from, lade_status status, const lade_error *err)
{
	const size_t ndim = f->r->selected.ndim;
	const slot *s = from->slot;
	const uint64_t *numbers = s->numbers + from->leaf * NUMBERS * ndim;
	lade__leaf *leaf = malloc(sizeof *leaf);
	if (!leaf) {
		fail_all(f, status, err);
		return;
	}
	leaf->shard = s->leaves[from->leaf].shard;
	leaf->key = leaf->shard ? leaf->shard->key : leaf->own_key;
	for (size_t a = 0; a < ndim; a++) {
		leaf->chunk[a] = numbers[a];
		leaf->cut[a].chunk = numbers[ndim + a];
	}
	if (leaf->shard || lade_zarr_chunk_key(f->r->node, leaf->chunk, leaf->own_key, NULL) ==
	                           LADE_OK)
		lade__zread_fail(f->r, leaf, status, err);
	free(leaf);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The next leaf of a thread, which stays in its place; NULL: there are no more. */
static lade__leaf *next_leaf(reader *me)
{
	lade__zread *r = me->f->r;
	if (me->next == me->count && !me->ended) {
		size_t most = TAKE_BYTES / (r->encoded_cap + 1) + 1;
		me->next = 0;
		me->count = lade__feed_take(me->f->feed, me->leaves,
		                            most < TAKE_LEAVES ? most : TAKE_LEAVES);
		me->ended = me->count == 0;
		for (size_t i = 0; i < me->count; i++) {
			if (r->raw)
				lade__leaf_runs(r, &me->leaves[i], &me->spots[i]);
			lade__leaf_look(r, &me->leaves[i]);
		}
	}
	return me->next < me->count ? &me->leaves[me->next] : NULL;
}

/* Has a leaf's bytes stand behind those before it, so that one copy takes both to the device:
 * objects were read to places with room for the largest. */
static void pack(slot *s, lade__leaf *leaf)
{
	uint8_t *to = s->bytes + (s->used + ALIGN - 1) / ALIGN * ALIGN;
	if (leaf->data > to) {
		memmove(to, leaf->data, leaf->data_size);
		leaf->data = to;
	}
}

/* Reads some leaves to a slot.  False: it has no room for the next, or there are no more. */
static bool read_some(reader *me, slot *s)
{
	fed *f = me->f;
	lade__zread *r = f->r;
	lade__leaf *leaf = next_leaf(me);
	size_t first = me->next, n = 0, room = 0, runs = 0, left = f->slot_size - s->used;
	if (!leaf)
		return false;
	if (lade__leaf_room(r, leaf) > f->slot_size) {
		do_large(me, leaf);
		me->next++;
		return true;
	}
	for (; first + n < me->count && s->count + n < SLOT_LEAVES && runs < LADE__RUNS_MOST; n++) {
		leaf = &me->leaves[first + n];
		size_t size = lade__leaf_room(r, leaf);
		if (size > left - room || (n && room >= READ_LEAST))
			break;
		room += size;
		runs += leaf->runs.count;
	}
	if (n == 0)
		return false;
	lade__leaves_read(r, &me->leaves[first], n, s->bytes + s->used, 1);
	for (me->next = first + n; first < me->next; first++) {
		leaf = &me->leaves[first];
		if (leaf->status == LADE_OK && leaf->staged && !leaf->shard)
			pack(s, leaf);
		if (stage_leaf(f, s, leaf, &me->spots[first])) {
			s->used = (size_t)(leaf->data - s->bytes) + leaf->data_size;
		} else if (leaf->status != LADE_OK) {
			lade__leaf_failed(r, leaf);
			lade__leaf_reset(r, leaf);
		} else {
			add_odd(me, leaf);
		}
	}
	return true;
}

/* Reads leaves to a slot, until it is full or it is time. */
static void fill_slot(reader *me, slot *s)
{
	bool first = atomic_fetch_add(&me->f->slots_given, 1) < SLOTS_FIRST;
	size_t enough = first ? SLOT_FIRST : SLOT_ENOUGH;
	s->used = s->count = 0;
	while (s->count < SLOT_LEAVES && (s->used < enough || !atomic_load(&me->f->hungry)) &&
	       read_some(me, s)) {
	}
}

/* A free slot; NULL: the read ends. */
static slot *take_slot(fed *f)
{
	pthread_mutex_lock(&f->mutex);
	f->waiting++;
	while (!f->free && !f->stop) {
		/* The batch may wait for nothing. */
		if (f->waiting == f->active)
			wake(&f->full_one, &f->given);
		wait_for(f, &f->free_one, &f->taken, atomic_load(&f->taken));
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
		wake(&f->full_one, &f->given);
	} else {
		s->next = f->free;
		f->free = s;
		wake(&f->free_one, &f->taken);
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
	me->ended = false;
	me->next = me->count = me->odd_count = 0;
	me->odds = NULL;
	pthread_mutex_lock(&f->mutex);
	f->active++;
	pthread_mutex_unlock(&f->mutex);
	for (slot *s; next_leaf(me) && (s = take_slot(f));) {
		fill_slot(me, s);
		give_slot(f, s);
	}
	do_odd(me);
	pthread_mutex_lock(&f->mutex);
	f->active--;
	wake(&f->full_one, &f->given);
	pthread_mutex_unlock(&f->mutex);
	free(me->odds);
	free(me);
}

static void *read_all(void *ctx)
{
	fed *f = ctx;
	lade_error err;
	unsigned threads = lade__zread_threads(f->r);
	/* The batch wants a processor, too: it would wait for one that reads. */
	threads -= threads > BATCH_THREADS;
	lade__calls calls = {read_slots, f, .count = threads, .grain = 1, .threads = threads};
	lade_status status = lade__engine_parallel(f->r->engine, &calls, &err);
	if (status != LADE_OK)
		fail_all(f, status, &err);
	pthread_mutex_lock(&f->mutex);
	f->reading = false;
	wake(&f->full_one, &f->given);
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
			f->segments[f->count] = s->leaves[i].segment;
			f->items[f->count] = s->leaves[i].item;
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
		unsigned seen = atomic_load(&f->given);
		*end = !take_full(f) || (!f->reading && !f->full);
		/* When all threads want a slot, no leaves come. */
		if (f->count > have || *end || (f->active && f->waiting == f->active && !f->free))
			break;
		atomic_store(&f->hungry, true);
		wait_for(f, &f->full_one, &f->given, seen);
	}
	atomic_store(&f->hungry, false);
	size_t count = f->count;
	pthread_mutex_unlock(&f->mutex);
	return count;
}

static void item_done(void *ctx, size_t index, bool ok)
{
	fed *f = ctx;
	slot *s = f->sources[index].slot;
	const staged *leaf = &s->leaves[f->sources[index].leaf];
	if (ok) {
		f->report.chunk_count++;
		f->report.decoded_size += leaf->decoded;
		f->report.written_size += leaf->written;
		f->report.direct_count += leaf->direct;
		f->sources[index].slot = NULL;
	}
	if (ok && --s->left)
		return;
	pthread_mutex_lock(&f->mutex);
	if (ok) {
		s->next = f->free;
		f->free = s;
	} else {
		f->stop = true;
	}
	wake(&f->free_one, &f->taken);
	pthread_mutex_unlock(&f->mutex);
}

/* Notes the items that failed, and those that the host has decoded. */
static void end_batch(fed *f)
{
	for (size_t i = 0; i < f->count; i++) {
		const source *s = &f->sources[i];
		if (f->results[i].status != LADE_OK)
			staged_failed(f, s, f->results[i].status, &f->errors[i]);
		if (s->slot)
			item_done(f, i, f->results[i].status == LADE_OK);
	}
	f->count = 0;
}

static lade_status run_batches(fed *f, lade_error *err)
{
	const lade__zread *r = f->r;
	size_t wave = (size_t)(lade__fed_memory(r) / WAVE_PART);
	lade__arrivals arrivals = {.items = f->items, .results = f->results, .cap = f->window,
	                           .ctx = f, .wait = wait_items, .done = item_done,
	                           .count = (size_t)r->leaf_count, .in = r->leaf_bytes / 2,
	                           .total = r->leaf_bytes, .largest = r->chunk_max,
	                           .wave = wave > SLOT_FIRST ? wave : SLOT_FIRST};
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

/* What a slot has beside its bytes. */
typedef struct sizes {
	size_t leaves, numbers, layouts, outputs, all;
} sizes;

static size_t round_up(size_t size)
{
	return (size + 4095) / 4096 * 4096;
}

static sizes sizes_of(const lade__zread *r)
{
	const size_t n = SLOT_LEAVES, parts = r->part_count;
	sizes s = {n * sizeof(staged), n * NUMBERS * r->selected.ndim * sizeof(uint64_t),
	           n * parts * sizeof(lade_layout), n * parts * sizeof(lade_item_output), 0};
	s.all = round_up(s.leaves + s.numbers + s.layouts + s.outputs);
	return s;
}

static size_t window_of(const lade__zread *r)
{
	size_t n = r->leaf_count < WINDOW ? (size_t)r->leaf_count : WINDOW;
	return n < SLOT_LEAVES ? SLOT_LEAVES : n;
}

/* The tables of a batch, but for its errors, which are seldom touched. */
static size_t tables_of(const lade__zread *r)
{
	const fed *f = NULL;
	return round_up(window_of(r) * (sizeof *f->items + sizeof *f->segments +
	                                sizeof *f->sources + sizeof *f->results));
}

static size_t slots_of(const lade__zread *r, size_t *size)
{
	*size = r->encoded_cap > SLOT_LEAST / 2 ? 2 * r->encoded_cap : SLOT_LEAST;
	*size = round_up(*size);
	uint64_t memory = r->options.memory, tables = tables_of(r);
	uint64_t count = memory < tables ? 0 : (memory - tables) / (*size + sizes_of(r).all);
	return count < SLOTS_MOST ? (size_t)count : SLOTS_MOST;
}

uint64_t lade__fed_memory(const lade__zread *r)
{
	size_t size, count = slots_of(r, &size);
	return tables_of(r) + (uint64_t)count * (size + sizes_of(r).all);
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
	       r->options.where != LADE_WHERE_HOST && r->leaf_count > LEAVES_FEW &&
	       r->leaf_count < SIZE_MAX / 2 && r->encoded_cap < LEAF_MOST &&
	       slots_of(r, &size) >= SLOTS_LEAST &&
	       lade_device_takes(r->engine, r->coding.spec[0], &work, lade__zread_device(r),
	                         NULL) == LADE_OK;
}

/* Tables and slots are one block of pinned memory, which the engine keeps: new memory is slow. */
static void make_slots(fed *f, slot *slots, size_t count, uint8_t *bytes)
{
	const sizes z = sizes_of(f->r);
	f->window = window_of(f->r);
	f->items = (lade_item *)(void *)bytes;
	f->segments = (lade_segment *)(void *)(f->items + f->window);
	f->sources = (source *)(void *)(f->segments + f->window);
	f->results = (lade_result *)(void *)(f->sources + f->window);
	bytes += tables_of(f->r);
	for (size_t i = 0; i < count; i++) {
		slot *s = &slots[i];
		uint8_t *beside = bytes + count * f->slot_size + i * z.all;
		s->bytes = bytes + i * f->slot_size;
		s->leaves = (staged *)(void *)beside;
		s->numbers = (uint64_t *)(void *)(beside + z.leaves);
		s->layouts = (lade_layout *)(void *)(beside + z.leaves + z.numbers);
		s->outputs =
			(lade_item_output *)(void *)(beside + z.leaves + z.numbers + z.layouts);
		s->next = f->free;
		f->free = s;
	}
}

/* Adds what the batches did to the read's report. */
static void add_report(const fed *f)
{
	lade_zarr_report *to = &f->r->report;
	pthread_mutex_lock(&f->r->mutex);
	to->chunk_count += f->report.chunk_count;
	to->decoded_size += f->report.decoded_size;
	to->written_size += f->report.written_size;
	to->direct_count += f->report.direct_count;
	pthread_mutex_unlock(&f->r->mutex);
}

/* Threads read, and batches run, with slots. */
static lade_status run_both(fed *f, lade_error *err)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, read_all, f) != 0)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no thread to read with");
	lade_status status = run_batches(f, err);
	pthread_mutex_lock(&f->mutex);
	f->stop = true;
	wake(&f->free_one, &f->taken);
	pthread_mutex_unlock(&f->mutex);
	pthread_join(thread, NULL);
	add_report(f);
	if (status == LADE_OK && f->status != LADE_OK)
		status = lade_fail(err, f->status, f->error.offset, "%s", f->error.message);
	return status;
}

lade_status lade__leaves_fed(lade__zread *r, lade__feed *feed, lade_error *err)
{
	fed f = {.r = r, .feed = feed, .reading = true,
	         .place = {LADE_PINNED, lade__zread_device(r)}};
	slot slots[SLOTS_MOST];
	size_t count = slots_of(r, &f.slot_size), size = (size_t)lade__fed_memory(r);
	lade_status status;
	f.last = &f.full;
	pthread_mutex_init(&f.mutex, NULL);
	pthread_cond_init(&f.free_one, NULL);
	pthread_cond_init(&f.full_one, NULL);
	uint8_t *bytes = r->pinned.alloc(r->pinned.ctx, size, 64, f.place, NULL);
	f.errors = malloc(window_of(r) * sizeof *f.errors);
	if (bytes && f.errors) {
		make_slots(&f, slots, count, bytes);
		status = run_both(&f, err);
	} else {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                   "no memory for %zu encoded bytes", size);
	}
	if (bytes)
		r->pinned.free(r->pinned.ctx, bytes, size, 64, f.place, NULL);
	free(f.errors);
	pthread_cond_destroy(&f.free_one);
	pthread_cond_destroy(&f.full_one);
	pthread_mutex_destroy(&f.mutex);
	return status;
}
