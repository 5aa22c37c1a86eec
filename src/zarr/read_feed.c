/*
 * read_feed.c: hands out the leaves of a read, one after the other, to any thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/read.h"

#include <string.h>

/* Moves the walk on; false: nothing is left. */
static bool next_chunk(lade__feed *f)
{
	for (;;) {
		lade__shard *shard = f->shards ? &f->shards[f->at] : NULL;
		if (f->at == (f->shards ? f->shard_count : 1))
			return false;
		if (shard && (shard->failed || atomic_load(&shard->top->changed))) {
			f->at++;
			f->walking = false;
			continue;
		}
		if (!f->walking) {
			lade__points all = lade__all_points(&f->r->selected);
			lade__walk_begin(&f->walk, &f->r->selected, f->level,
			                 shard ? shard->cut : NULL, shard ? shard->points : all);
			f->walking = true;
		}
		if (lade__walk_next(&f->walk))
			return true;
		f->at++;
		f->walking = false;
	}
}

/* What a leaf is before anything is known of its bytes. */
static void begin_leaf(lade__feed *f, lade__leaf *leaf)
{
	lade__zread *r = f->r;
	leaf->missing = false;
	leaf->data = NULL;
	leaf->large = NULL;
	leaf->staged = false;
	leaf->spot = NULL;
	leaf->looked = false;
	leaf->runs = (lade__runs){.count = 0};
	if (leaf->shard) {
		leaf->key = leaf->shard->key;
		memcpy(leaf->chunk, leaf->shard->chunk, r->selected.ndim * sizeof *leaf->chunk);
		leaf->status = lade__shard_find(r, leaf, &leaf->error);
		return;
	}
	leaf->own_key[0] = 0;
	leaf->key = leaf->own_key;
	for (size_t a = 0; a < r->selected.ndim; a++)
		leaf->chunk[a] = leaf->cut[a].chunk;
	leaf->status = lade_zarr_chunk_key(r->node, leaf->chunk, leaf->own_key, &leaf->error);
}

size_t lade__feed_take(lade__feed *f, lade__leaf *leaves, size_t most)
{
	size_t n = 0;
	if (lade__zread_failed(f->r))
		return 0;
	pthread_mutex_lock(&f->mutex);
	for (; n < most && next_chunk(f); n++) {
		lade__leaf *leaf = &leaves[n];
		memcpy(leaf->cut, f->walk.cut, f->r->selected.ndim * sizeof leaf->cut[0]);
		leaf->points = f->walk.points;
		leaf->shard = f->shards ? &f->shards[f->at] : NULL;
	}
	pthread_mutex_unlock(&f->mutex);
	for (size_t i = 0; i < n; i++)
		begin_leaf(f, &leaves[i]);
	return n;
}
