/*
 * waves.c: the waves of a read, by lanes: while one wave is decoded others are read.
 *
 *	lane 0   read | decode | read ...
 *	lane 1        read | decode | read ...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/read.h"

#include "batch/gpu/kept.h"

#include <stdlib.h>

/* ---- memory -------------------------------------------------------------------------------- */

static void free_room(rnt_lane *lane)
{
	rnt_read *r = lane->r;
	if (lane->place.kind == LADE_PINNED) {
		lade_allocator kept = lade__gpu_pinned_kept(r->engine);
		kept.free(kept.ctx, lane->data, lane->size, 64, lane->place, NULL);
	} else {
		if (lane->buffer && lane->buffer->size <= RNT_SPARE_MAX)
			lane->buffer = atomic_exchange(&r->tuple->spare, lane->buffer);
		free(lane->buffer);
	}
	*lane = (rnt_lane){.r = r};
}

static bool pinned_room(rnt_lane *lane, size_t size)
{
	lade_allocator kept = lade__gpu_pinned_kept(lane->r->engine);
	lade_place place = {LADE_PINNED, lane->r->device_number};
	lane->data = kept.alloc(kept.ctx, size, 64, place, NULL);
	if (lane->data) {
		lane->size = size;
		lane->place = place;
	}
	return lane->data;
}

bool lade__rnt_lane_room(rnt_lane *lane, size_t size)
{
	rnt_read *r = lane->r;
	if (lane->data && lane->size >= size)
		return true;
	free_room(lane);
	if (r->device && pinned_room(lane, size))
		return true;
	lane->buffer = atomic_exchange(&r->tuple->spare, NULL);
	if (!lane->buffer || lane->buffer->size < size) {
		free(lane->buffer);
		lane->buffer = malloc(sizeof *lane->buffer + size);
		if (!lane->buffer)
			return false;
		lane->buffer->size = size;
	}
	lane->data = lane->buffer->data;
	lane->size = lane->buffer->size;
	return true;
}

/* ---- lanes --------------------------------------------------------------------------------- */

typedef struct waves {
	rnt_read *r;
	pthread_mutex_t mutex; /* guards what follows */
	size_t next;           /* piece */
	size_t count, failed;  /* waves that began; the first one that failed */
	lade_status status;
	lade_error error;
} waves;

static void fail(waves *all, size_t number, lade_status status, const lade_error *err)
{
	pthread_mutex_lock(&all->mutex);
	if (all->status == LADE_OK || number < all->failed) {
		all->failed = number;
		all->status = status;
		all->error = *err;
	}
	pthread_mutex_unlock(&all->mutex);
}

/* Runs waves until there are no more, or one has failed. */
static void *run_lane(void *ctx)
{
	waves *all = ctx;
	rnt_read *r = all->r;
	rnt_lane lane = {.r = r};
	for (;;) {
		lade_error err = {.offset = LADE_NO_OFFSET};
		uint64_t bytes;
		size_t distinct, ranges;
		pthread_mutex_lock(&all->mutex);
		size_t number = all->count++, first = all->next;
		bool more = all->status == LADE_OK && first < r->piece_count;
		if (more)
			all->next = lade__rnt_wave(r, first, &bytes, &distinct, &ranges);
		size_t end = all->next;
		pthread_mutex_unlock(&all->mutex);
		if (!more)
			break;
		lade_status status =
			bytes > PTRDIFF_MAX
				? lade__rnt_nomem(&err)
				: lade__rnt_run_wave(&lane, first, end, (size_t)bytes, &err);
		if (status != LADE_OK)
			fail(all, number, status, &err);
	}
	free_room(&lane);
	return NULL;
}

lade_status lade__rnt_run_waves(rnt_read *r, lade_error *err)
{
	waves all = {.r = r, .mutex = PTHREAD_MUTEX_INITIALIZER, .status = LADE_OK};
	pthread_t threads[RNT_LANES_MAX];
	size_t made = 1;
	while (made < r->lanes && made < RNT_LANES_MAX &&
	       pthread_create(&threads[made], NULL, run_lane, &all) == 0)
		made++;
	run_lane(&all);
	for (size_t i = 1; i < made; i++)
		pthread_join(threads[i], NULL);
	if (all.status != LADE_OK && err)
		*err = all.error;
	return all.status;
}
