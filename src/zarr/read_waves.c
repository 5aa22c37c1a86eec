/*
 * read_waves.c: reads in waves: many ranges at once, and while they come, those before are decoded.
 *
 *	wave 0   read | decode
 *	wave 1          read   | decode
 *	wave 2                   read ...
 *
 * For stores where a request takes long, and for devices, which want many chunks at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/read.h"

#include <stdlib.h>
#include <string.h>

#define WAVE_LEAVES 512

/* A wave's leaves and their encoded bytes. */
typedef struct wave {
	struct waves *all;
	lade__leaf *leaves;
	size_t count;
	uint8_t *buffer;
	size_t cap;
} wave;

typedef struct waves {
	lade__zread *r;
	lade__feed *feed;
	lade_place place; /* of the buffers */
	const lade_allocator *from;
	bool pinned, ended, has_held;
	lade__leaf held; /* the first leaf of the next wave: it did not fit */
	wave wave[2];
	lade__leaf leaves[2][WAVE_LEAVES];
	lade__spot held_spot;
	lade__spot *spots[2]; /* of an array without codecs: one for each leaf */
} waves;

/* ---- reading ------------------------------------------------------------------------------ */

/* 'spot' is for the copy of the leaf's. */
static void move_leaf(lade__leaf *to, const lade__leaf *from, lade__spot *spot)
{
	*to = *from;
	if (from->key == from->own_key)
		to->key = to->own_key;
	if (from->spot) {
		lade__spot_copy(spot, from->spot);
		to->spot = spot;
	}
}

/* The next leaf, with its size in memory as far as it is known.  False: there are no more */
static bool take_leaf(waves *all, lade__leaf *leaf, lade__spot *spot)
{
	if (all->has_held) {
		move_leaf(leaf, &all->held, spot);
		all->has_held = false;
		return true;
	}
	if (!lade__feed_next(all->feed, leaf))
		return false;
	if (all->r->raw)
		lade__leaf_runs(all->r, leaf, spot);
	lade__leaf_look(all->r, leaf);
	return true;
}

/* Takes leaves from the feed as far as their bytes have room; '*room' gets these. */
static void take_leaves(wave *w, size_t *room)
{
	waves *all = w->all;
	lade__zread *r = all->r;
	const uint64_t most = r->options.memory / 2;
	lade__spot *spots = all->spots[w - all->wave];
	size_t runs = 0;
	w->count = *room = 0;
	while (w->count < WAVE_LEAVES && runs < LADE__RUNS_MOST && !all->ended) {
		lade__leaf *leaf = &w->leaves[w->count];
		if (!take_leaf(all, leaf, spots ? &spots[w->count] : NULL)) {
			all->ended = true;
			break;
		}
		size_t size = lade__leaf_room(r, leaf);
		if (w->count && *room + size > most) {
			move_leaf(&all->held, leaf, &all->held_spot);
			all->has_held = true;
			break;
		}
		*room += size;
		runs += leaf->runs.count;
		w->count++;
	}
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

/* Reads the next wave; its count is 0 behind the last one. */
static void *read_wave(void *ctx)
{
	wave *w = ctx;
	size_t room;
	take_leaves(w, &room);
	if (room && !take_buffer(w, room))
		for (size_t i = 0; i < w->count; i++)
			w->leaves[i].status =
				lade_fail(&w->leaves[i].error, LADE_E_NOMEM, LADE_NO_OFFSET,
			                  "no memory for %zu encoded bytes", room);
	if (w->count)
		lade__leaves_read(w->all->r, w->leaves, w->count, w->buffer,
		                  w->all->r->options.threads);
	return NULL;
}

/* ---- decoding on the host ------------------------------------------------------------------- */

static void decode_one(void *ctx, size_t index, lade_worker *worker)
{
	wave *w = ctx;
	lade__leaf_finish(w->all->r, &w->leaves[index], worker);
}

static lade_status decode_wave(wave *w, lade_error *err)
{
	lade__zread *r = w->all->r;
	lade__calls calls = {decode_one, w, .count = w->count, .threads = r->options.threads};
	if (w->all->pinned)
		return lade__leaves_to_device(r, w->leaves, w->count, w->all->place, err);
	return lade__engine_parallel(r->engine, &calls, err);
}

/* ---- waves -------------------------------------------------------------------------------- */

static lade_status run_waves(waves *all, lade_error *err)
{
	pthread_t thread;
	lade_status status = LADE_OK;
	read_wave(&all->wave[0]);
	for (size_t k = 0; all->wave[k].count; k ^= 1) {
		wave *now = &all->wave[k], *next = &all->wave[k ^ 1];
		next->count = 0;
		bool beside = status == LADE_OK && !all->ended &&
		              pthread_create(&thread, NULL, read_wave, next) == 0;
		if (status == LADE_OK)
			status = decode_wave(now, err);
		for (size_t i = 0; i < now->count; i++)
			lade__leaf_reset(all->r, &now->leaves[i]);
		if (beside)
			pthread_join(thread, NULL);
		else if (status == LADE_OK)
			read_wave(next);
		for (size_t i = 0; i < next->count && status != LADE_OK; i++)
			lade__leaf_reset(all->r, &next->leaves[i]);
		if (status != LADE_OK)
			next->count = 0;
	}
	return status;
}

lade_status lade__leaves_in_waves(lade__zread *r, lade__feed *feed, lade_error *err)
{
	waves *all = malloc(sizeof *all);
	if (!all)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for waves");
	all->spots[0] = NULL;
	if (r->raw && !(all->spots[0] = malloc(2 * WAVE_LEAVES * sizeof(lade__spot)))) {
		free(all);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for waves");
	}
	all->spots[1] = all->spots[0] ? all->spots[0] + WAVE_LEAVES : NULL;
	all->r = r;
	all->feed = feed;
	all->place = (lade_place){r->device ? LADE_PINNED : LADE_HOST, lade__zread_device(r)};
	all->from = &r->engine->allocators[all->place.kind];
	all->pinned = r->device;
	all->ended = all->has_held = false;
	for (size_t k = 0; k < 2; k++)
		all->wave[k] = (wave){.all = all, .leaves = all->leaves[k]};
	lade_status status = run_waves(all, err);
	for (size_t k = 0; k < 2; k++)
		free_buffer(&all->wave[k]);
	free(all->spots[0]);
	free(all);
	return status;
}
