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

bool lade__feed_next(lade__feed *f, lade__leaf *leaf)
{
	lade__zread *r = f->r;
	if (lade__zread_failed(r))
		return false;
	pthread_mutex_lock(&f->mutex);
	bool have = next_chunk(f);
	if (have) {
		memcpy(leaf->cut, f->walk.cut, r->selected.ndim * sizeof leaf->cut[0]);
		leaf->points = f->walk.points;
		leaf->shard = f->shards ? &f->shards[f->at] : NULL;
	}
	pthread_mutex_unlock(&f->mutex);
	if (!have)
		return false;
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
		return true;
	}
	leaf->own_key[0] = 0;
	leaf->key = leaf->own_key;
	for (size_t a = 0; a < r->selected.ndim; a++)
		leaf->chunk[a] = leaf->cut[a].chunk;
	leaf->status = lade_zarr_chunk_key(r->node, leaf->chunk, leaf->own_key, &leaf->error);
	return true;
}
