/*
 * read_waves.c: reads in waves: many ranges at once.  Lanes do waves side by side, so that while
 * some are decoded, others are read.
 *
 *	lane 0   read | decode | read ...
 *	lane 1        read | decode | read ...
 *
 * For stores where a request takes long, and for devices, which want many chunks at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/read.h"

#include <stdlib.h>
#include <string.h>

#define LANES_HOST   2 /* one is read, one is decoded */
#define LANES_DEVICE 4 /* reading, the link and kernels each have one, and one is made ready */
#define LANES_MOST   4
#define WAVE_LEAVES  512

/* A lane fills a device's waves with no fewer leaves than these, to have more than one wave. */
#define WAVE_LEAST 64

/* A lane's wave: leaves and their encoded bytes. */
typedef struct wave {
	struct waves *all;
	lade__leaf *leaves;
	lade__spot *spots; /* of an array without codecs: one for each leaf */
	size_t count;
	uint8_t *buffer;
	size_t cap;
} wave;

typedef struct waves {
	lade__zread *r;
	lade__feed *feed;
	lade_place place; /* of the buffers */
	const lade_allocator *from;
	size_t lanes, most; /* 'most': leaves of a wave */
	pthread_mutex_t mutex; /* guards what follows */
	bool ended, has_held;
	lade__leaf held; /* the first leaf of the next wave: it did not fit */
	lade__spot held_spot;
	lade_status status;
	lade_error error;
} waves;

/* ---- reading ------------------------------------------------------------------------------ */

void lade__leaf_move(lade__leaf *to, const lade__leaf *from, lade__spot *spot)
{
	*to = *from;
	if (from->key == from->own_key)
		to->key = to->own_key;
	if (from->spot) {
		lade__spot_copy(spot, from->spot);
		to->spot = spot;
	}
}

/* The next leaf, with its size in memory as far as it is known.  False: there are no more.  The
 * mutex is held: leaves come in order, which is that of their bytes. */
static bool take_leaf(waves *all, lade__leaf *leaf, lade__spot *spot)
{
	if (all->has_held) {
		lade__leaf_move(leaf, &all->held, spot);
		all->has_held = false;
		return true;
	}
	if (!lade__feed_take(all->feed, leaf, 1))
		return false;
	if (all->r->raw)
		lade__leaf_runs(all->r, leaf, spot);
	lade__leaf_look(all->r, leaf);
	return true;
}

/* Takes leaves from the feed as far as their bytes have room, and gives these; none: the end. */
static size_t take_leaves(wave *w)
{
	waves *all = w->all;
	lade__zread *r = all->r;
	const uint64_t most = r->options.memory / all->lanes;
	size_t runs = 0, room = 0;
	w->count = 0;
	pthread_mutex_lock(&all->mutex);
	all->ended |= all->status != LADE_OK;
	while (w->count < all->most && runs < LADE__RUNS_MOST && !all->ended) {
		lade__leaf *leaf = &w->leaves[w->count];
		if (!take_leaf(all, leaf, w->spots ? &w->spots[w->count] : NULL)) {
			all->ended = true;
			break;
		}
		size_t size = lade__leaf_room(r, leaf);
		if (w->count && room + size > most) {
			lade__leaf_move(&all->held, leaf, &all->held_spot);
			all->has_held = true;
			break;
		}
		room += size;
		runs += leaf->runs.count;
		w->count++;
	}
	pthread_mutex_unlock(&all->mutex);
	return room;
}

static void free_buffer(wave *w)
{
	const waves *all = w->all;
	if (w->buffer)
		all->from->free(all->from->ctx, w->buffer, w->cap, 64, all->place, NULL);
	w->buffer = NULL;
	w->cap = 0;
}

static bool take_buffer(wave *w, size_t room)
{
	const waves *all = w->all;
	if (room <= w->cap)
		return true;
	free_buffer(w);
	w->buffer = all->from->alloc(all->from->ctx, room, 64, all->place, NULL);
	w->cap = w->buffer ? room : 0;
	return w->buffer;
}

/* ---- lanes --------------------------------------------------------------------------------- */

static void decode_one(void *ctx, size_t index, lade_worker *worker)
{
	wave *w = ctx;
	lade__leaf_finish(w->all->r, &w->leaves[index], worker);
}

static lade_status decode_wave(wave *w, lade_error *err)
{
	lade__zread *r = w->all->r;
	lade__calls calls = {decode_one, w, .count = w->count, .threads = r->options.threads};
	if (r->device)
		return lade__leaves_to_device(r, w->leaves, w->count, w->all->place, err);
	return lade__engine_parallel(r->engine, &calls, err);
}

/* Reads and decodes waves until there are no more leaves, or any lane has failed. */
static void *run_lane(void *ctx)
{
	wave *w = ctx;
	waves *all = w->all;
	lade_error err = {.offset = LADE_NO_OFFSET};
	for (;;) {
		size_t room = take_leaves(w);
		if (w->count == 0)
			return NULL;
		if (room && !take_buffer(w, room))
			for (size_t i = 0; i < w->count; i++)
				w->leaves[i].status =
					lade_fail(&w->leaves[i].error, LADE_E_NOMEM, LADE_NO_OFFSET,
				                  "no memory for %zu encoded bytes", room);
		lade__leaves_read(all->r, w->leaves, w->count, w->buffer, all->r->options.threads);
		lade_status status = decode_wave(w, &err);
		for (size_t i = 0; i < w->count; i++)
			lade__leaf_reset(all->r, &w->leaves[i]);
		if (status == LADE_OK)
			continue;
		pthread_mutex_lock(&all->mutex);
		if (all->status == LADE_OK) {
			all->error = err;
			all->status = status;
		}
		pthread_mutex_unlock(&all->mutex);
	}
}

/* The lane's memory, but for the buffer. */
static bool new_lane(waves *all, wave *w)
{
	*w = (wave){.all = all, .leaves = malloc(all->most * sizeof *w->leaves)};
	w->spots = all->r->raw ? malloc(all->most * sizeof *w->spots) : NULL;
	return w->leaves && (w->spots || !all->r->raw);
}

static void free_lane(wave *w)
{
	free_buffer(w);
	free(w->leaves);
	free(w->spots);
}

/* One lane on this thread, and others on their own as far as there are any to be had. */
static lade_status run_lanes(waves *all, lade_error *err)
{
	wave lanes[LANES_MOST];
	pthread_t threads[LANES_MOST];
	size_t made = 0, began = 1;
	while (made < all->lanes && new_lane(all, &lanes[made]))
		made++;
	if (made == 0) {
		free_lane(&lanes[0]);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for waves");
	}
	if (made < all->lanes)
		free_lane(&lanes[made]);
	while (began < made && pthread_create(&threads[began], NULL, run_lane, &lanes[began]) == 0)
		began++;
	run_lane(&lanes[0]);
	for (size_t i = 1; i < began; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < made; i++)
		free_lane(&lanes[i]);
	if (all->status != LADE_OK && err)
		*err = all->error;
	return all->status;
}

lade_status lade__leaves_in_waves(lade__zread *r, lade__feed *feed, lade_error *err)
{
	waves *all = malloc(sizeof *all);
	if (!all)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for waves");
	*all = (waves){.r = r, .feed = feed, .lanes = r->device ? LANES_DEVICE : LANES_HOST,
	               .most = WAVE_LEAVES, .status = LADE_OK,
	               .place = {r->device ? LADE_PINNED : LADE_HOST, lade__zread_device(r)},
	               .from = r->device ? &r->pinned : &r->engine->allocators[LADE_HOST]};
	if (r->device && r->leaf_count / all->lanes / 2 < all->most)
		all->most = (size_t)(r->leaf_count / all->lanes / 2);
	all->most = all->most < WAVE_LEAST ? WAVE_LEAST : all->most;
	if (r->leaf_count <= WAVE_LEAST)
		all->lanes = 1;
	pthread_mutex_init(&all->mutex, NULL);
	lade_status status = run_lanes(all, err);
	pthread_mutex_destroy(&all->mutex);
	free(all);
	return status;
}
