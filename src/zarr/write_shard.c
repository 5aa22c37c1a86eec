/*
 * write_shard.c: the new bytes of a shard.
 *
 *	old index, or none
 *	for each chunk that is touched, on several threads: its new bytes, from its old ones
 *	all others as they are stored, one behind the other in the order of the index, or in Morton
 *	order; the new index
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/write.h"

#include <stdlib.h>
#include <string.h>

#define ULL(x) ((unsigned long long)(x))
#define EMPTY UINT64_MAX
#define INDEX_MAX ((size_t)1 << 30)
#define ROOM_MAX ((size_t)1 << 32)

/* A chunk of the shard. */
typedef struct entry {
	const uint8_t *data; /* NULL: it is fill */
	size_t size;
	bool owned, kept;
} entry;

typedef struct sharding {
	lade__zwrite *w;
	const lade__target *t;
	const lade_zarr_shard *shard;
	lade__encoded old;     /* behind the steps that follow the shard */
	size_t count;        /* of chunks */
	size_t grid[LADE_DIMS_MAX]; /* by axis of the stored shard */
	entry *entries;
	size_t *order;       /* the numbers of the chunks as they are stored; NULL: ascending */
	uint8_t *room;       /* for the new bytes of chunks; NULL: each has its own memory */
	size_t room_cap;
	pthread_mutex_t mutex; /* guards what follows */
	size_t room_used;
	lade__walk walk;
	bool ended;
	lade_status status;
	lade_error *err;
} sharding;

static lade_status measure(sharding *s, lade_error *err)
{
	const lade__level *level = &s->w->levels.level[s->t->level];
	s->count = 1;
	for (size_t a = 0; a < s->w->selected.ndim; a++) {
		size_t j = level->stored[a];
		s->grid[j] = (size_t)(s->t->cut[a].size / s->shard->chunk_shape[j]);
		if (__builtin_mul_overflow(s->count, s->grid[j], &s->count) ||
		    s->count > INDEX_MAX / 16)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "a shard of more than %zu chunks", INDEX_MAX / 16);
	}
	return LADE_OK;
}

/* The number of a chunk in the index: C order of the stored shard. */
static size_t number_of(const sharding *s, const lade__cut *cut)
{
	const lade__level *level = &s->w->levels.level[s->t->level];
	size_t at[LADE_DIMS_MAX], number = 0;
	for (size_t a = 0; a < s->w->selected.ndim; a++)
		at[level->stored[a]] = (size_t)cut[a].chunk;
	for (size_t j = 0; j < s->w->selected.ndim; j++)
		number = number * s->grid[j] + at[j];
	return number;
}

/* A chunk and its Morton code. */
typedef struct coded {
	uint64_t code;
	size_t number;
} coded;

static int by_code(const void *a, const void *b)
{
	uint64_t x = ((const coded *)a)->code, y = ((const coded *)b)->code;
	return x < y ? -1 : x > y;
}

/* The bits of the coordinates, the lowest first, the first axis first; an axis has as many as its
 * last chunk needs.  Together these are at most 26 and one for each axis, as there are at most 2^26
 * chunks. */
static uint64_t code_of(const sharding *s, size_t number)
{
	size_t at[LADE_DIMS_MAX], ndim = s->w->selected.ndim;
	uint64_t code = 0;
	unsigned out = 0;
	for (size_t j = ndim; j-- > 0; number /= s->grid[j])
		at[j] = number % s->grid[j];
	for (unsigned bit = 0; bit < 27; bit++)
		for (size_t j = 0; j < ndim; j++)
			if ((s->grid[j] - 1) >> bit)
				code |= (uint64_t)(at[j] >> bit & 1) << out++;
	return code;
}

static lade_status take_order(sharding *s, lade_error *err)
{
	if (!(s->w->options.flags & LADE_ZARR_MORTON) || s->count < 2)
		return LADE_OK;
	coded *all = malloc(s->count * sizeof *all);
	s->order = malloc(s->count * sizeof *s->order);
	if (!all || !s->order) {
		free(all);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for the order of %zu chunks", s->count);
	}
	for (size_t i = 0; i < s->count; i++)
		all[i] = (coded){code_of(s, i), i};
	qsort(all, s->count, sizeof *all, by_code);
	for (size_t i = 0; i < s->count; i++)
		s->order[i] = all[i].number;
	free(all);
	return LADE_OK;
}

/* The chunk that is stored as the k-th. */
static size_t stored_at(const sharding *s, size_t k)
{
	return s->order ? s->order[k] : k;
}

/* ---- the index --------------------------------------------------------------------------- */

/* Reads the index of the old shard. */
static lade_status read_index(sharding *s, lade_worker *worker, lade_error *err)
{
	size_t plain = s->count * 16, size = plain + s->shard->index_extra, got, total = 0;
	if (s->old.size < size)
		return lade_fail(err, LADE_E_TRUNCATED, s->old.size,
		                 "a shard of %zu bytes has no room for its index of %zu",
		                 s->old.size, size);
	uint64_t *words = malloc(2 * plain + 1);
	if (!words)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an index");
	uint8_t *index = (uint8_t *)(words + 2 * s->count);
	lade_segment src = {.data = s->old.data + (s->shard->index_first ? 0 : s->old.size - size),
	                    .size = size};
	lade_status status;
	const lade__coder coder = {s->w, &s->w->index[s->t->level], worker};
	TRY(lade__steps_decode(&coder, src, lade_host_span(index, plain), true, &got, err));
	lade__index_load(&s->shard->index, s->w->selected.ndim, s->grid, index, words);
	for (size_t i = 0; i < s->count; i++) {
		uint64_t off = words[2 * i], bytes = words[2 * i + 1];
		if ((off == EMPTY && bytes == EMPTY) || bytes == 0)
			continue;
		if (off > s->old.size || bytes > s->old.size - off)
			TRY(lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			              "chunk %zu of a shard: want %llu bytes at %llu, the "
			              "shard has %zu", i, ULL(bytes), ULL(off), s->old.size));
		total += (size_t)bytes;
		if (total > 4 * s->old.size) /* entries may overlap, but not without end */
			TRY(lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			              "the chunks of a shard of %zu bytes have more than %zu",
			              s->old.size, 4 * s->old.size));
		s->entries[i] = (entry){.data = s->old.data + off, .size = (size_t)bytes,
		                        .kept = true};
	}
out:
	free(words);
	return status;
}

/* Encodes the index of entries that begin at 'start', in the worker's memory. */
static lade_status encode_index(const sharding *s, size_t start, lade__encoded *out,
                                lade_worker *worker, lade_error *err)
{
	uint64_t *words = malloc(2 * s->count * 16 + 1);
	if (!words)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an index");
	uint8_t *index = (uint8_t *)(words + 2 * s->count);
	for (size_t k = 0; k < s->count; k++) {
		size_t i = stored_at(s, k);
		const entry *e = &s->entries[i];
		words[2 * i] = e->data ? start : EMPTY;
		words[2 * i + 1] = e->data ? e->size : EMPTY;
		start += e->data ? e->size : 0;
	}
	lade__index_store(&s->shard->index, s->w->selected.ndim, s->grid, words, index);
	lade_segment src = {.data = index, .size = s->count * 16};
	const lade__coder coder = {s->w, &s->w->index[s->t->level], worker};
	lade_status status = lade__steps_encode(&coder, src, NULL, out, err);
	free(words);
	return status;
}

/* ---- chunks ------------------------------------------------------------------------------ */

static bool take(sharding *s, lade__cut *cut, lade__points *points)
{
	pthread_mutex_lock(&s->mutex);
	s->ended = s->ended || s->status != LADE_OK || !lade__walk_next(&s->walk);
	bool have = !s->ended;
	if (have)
		memcpy(cut, s->walk.cut, s->w->selected.ndim * sizeof *cut);
	*points = s->walk.points;
	pthread_mutex_unlock(&s->mutex);
	return have;
}

/* Memory for bytes that stay until the shard is written. */
static uint8_t *room_for(sharding *s, size_t size, bool *owned)
{
	uint8_t *to = NULL;
	pthread_mutex_lock(&s->mutex);
	if (s->room && size <= s->room_cap - s->room_used) {
		to = s->room + s->room_used;
		s->room_used += size;
	}
	pthread_mutex_unlock(&s->mutex);
	*owned = !to;
	return to ? to : malloc(size + 1);
}

/* Of shards of the grid whose chunks have a bound: only what is used takes memory. */
static void take_room(sharding *s, lade_worker *worker)
{
	const lade__zwrite *w = s->w;
	const lade__level *inner = &w->levels.level[s->t->level + 1];
	size_t size = w->elem;
	if (s->t->level || inner->chain->shard || !size)
		return;
	for (size_t a = 0; a < w->selected.ndim; a++)
		size *= (size_t)inner->size[a]; /* checked by lade_zarr_write() */
	size = lade__steps_bound(&w->steps[1], size);
	if (__builtin_mul_overflow(size, s->count, &s->room_cap) || s->room_cap > ROOM_MAX)
		return;
	s->room = lade__worker_block(worker, LADE__SCRATCH_SHARD, s->room_cap + 1);
}

/* The new bytes of a chunk become its entry. */
static lade_status keep(sharding *s, entry *e, const lade__encoded *now, lade_error *err)
{
	*e = (entry){.data = now->data, .size = now->size, .owned = now->owned};
	if (!now->data || now->owned)
		return LADE_OK;
	uint8_t *copy = room_for(s, now->size, &e->owned);
	e->data = copy;
	if (!copy)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of a chunk", now->size);
	memcpy(copy, now->data, now->size);
	return LADE_OK;
}

static lade_status change(sharding *s, const lade__cut *cut, lade__points points,
                          lade_worker *worker, lade_error *err)
{
	entry *e = &s->entries[number_of(s, cut)];
	lade__target inner = {cut, s->t->level + 1, lade__is_whole(s->w, cut), points};
	lade__encoded old = {(uint8_t *)(uintptr_t)e->data, e->size, false}, now = {0};
	lade_status status =
		s->w->levels.level[inner.level].chain->shard
			? lade__write_shard(s->w, &inner, old, &now, worker, err)
			: lade__write_chunk(s->w, &inner, old, &now, worker, err);
	if (status != LADE_OK)
		return status;
	return keep(s, e, &now, err);
}

static void fail_shard(sharding *s, lade_status status, const lade_error *err)
{
	pthread_mutex_lock(&s->mutex);
	if (s->status == LADE_OK && s->err)
		*s->err = *err;
	s->status = s->status == LADE_OK ? status : s->status;
	pthread_mutex_unlock(&s->mutex);
}

/* Encodes a wave; its chunks become entries. */
static lade_status change_wave(sharding *s, lade__wave *wave, lade_error *err)
{
	size_t count = lade__wave_count(wave);
	lade_status status = count ? lade__wave_encode(wave, err) : LADE_OK;
	for (size_t i = 0; i < count; i++) {
		lade__encoded now;
		const lade__target t = {lade__wave_take(wave, i, &now), s->t->level + 1, true,
		                        {0, 0}};
		if (status == LADE_OK)
			status = keep(s, &s->entries[number_of(s, t.cut)], &now, err);
		if (status == LADE_OK)
			lade__note_chunk(s->w, &t, false);
	}
	return status;
}

static void work(void *ctx, size_t index, lade_worker *worker)
{
	sharding *s = ctx;
	lade__cut cut[LADE_DIMS_MAX];
	lade__points points;
	lade__wave *wave = NULL;
	lade_error err;
	lade_status status = LADE_OK;
	(void)index;
	if (lade__wave_fits(s->w, s->t->level + 1))
		status = lade__wave_new(s->w, s->t->level + 1, &wave, &err);
	while (status == LADE_OK && take(s, cut, &points)) {
		if (lade__stopped(&s->w->stop))
			status = lade__stop_fail(&err);
		else if (!wave || !lade__is_whole(s->w, cut))
			status = change(s, cut, points, worker, &err);
		else if (!lade__wave_add(wave, cut))
			status = change_wave(s, wave, &err);
	}
	if (status == LADE_OK && wave)
		status = change_wave(s, wave, &err);
	lade__wave_free(wave);
	if (status != LADE_OK)
		fail_shard(s, status, &err);
}

/* Whether only one chunk of the shard is touched. */
static bool is_single(const sharding *s)
{
	const lade__selected *selected = &s->w->selected;
	const lade__level *inner = &s->w->levels.level[s->t->level + 1];
	for (size_t a = 0; a < selected->ndim; a++) {
		const lade__pick *pick = &selected->pick[a];
		const lade__cut *cut = &s->t->cut[a];
		if (selected->points ||
		    (lade__pick_at(pick, cut->from) - cut->start) / inner->size[a] !=
		            (lade__pick_at(pick, cut->from + cut->count - 1) - cut->start) /
		                    inner->size[a])
			return false;
	}
	return true;
}

/* Shards of the grid share out their chunks to the threads that are free. */
static lade_status change_all(sharding *s, lade_worker *worker, lade_error *err)
{
	lade__zwrite *w = s->w;
	unsigned threads = w->options.threads ? w->options.threads : w->engine->threads;
	lade__calls calls = {work, s, .count = threads, .grain = 1, .threads = threads};
	lade_status status = LADE_OK;
	s->err = err;
	pthread_mutex_init(&s->mutex, NULL);
	/* All walks share the room to sort points. */
	pthread_mutex_lock(&w->mutex);
	lade__walk_begin(&s->walk, &w->selected, &w->levels.level[s->t->level + 1], s->t->cut,
	                 s->t->points);
	pthread_mutex_unlock(&w->mutex);
	if (s->t->level == 0 && threads > 1 && !is_single(s))
		status = lade__engine_parallel(w->engine, &calls, err);
	else
		work(s, 0, worker);
	pthread_mutex_destroy(&s->mutex);
	return status == LADE_OK ? s->status : status;
}

/* ---- the value --------------------------------------------------------------------------- */

static lade_status join(sharding *s, lade__encoded *out, lade_worker *worker, lade_error *err)
{
	size_t index_size = s->count * 16 + s->shard->index_extra, size = 0, kept = 0;
	lade__encoded index = {0};
	for (size_t i = 0; i < s->count; i++) {
		size += s->entries[i].data ? s->entries[i].size : 0;
		kept += s->entries[i].kept ? s->entries[i].size : 0;
	}
	if (size == 0)
		return LADE_OK; /* all is fill: no value */
	size_t start = s->shard->index_first ? index_size : 0, at = start;
	lade_status status = encode_index(s, start, &index, worker, err);
	/* Nobody needs this block until the value is written, unless the shard is in another. */
	uint8_t *data = status != LADE_OK ? NULL
		: s->t->level ? malloc(index_size + size)
		              : lade__worker_block(worker, LADE__SCRATCH_FRAME, index_size + size);
	if (status == LADE_OK && index.size != index_size)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "the index has %zu encoded bytes, want %zu", index.size,
		                   index_size);
	if (status == LADE_OK && !data)
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                   "no memory for a shard of %zu bytes", index_size + size);
	if (status != LADE_OK) {
		free(s->t->level ? data : NULL);
		free(index.owned ? index.data : NULL);
		return status;
	}
	for (size_t k = 0; k < s->count; k++) {
		const entry *e = &s->entries[stored_at(s, k)];
		if (!e->data)
			continue;
		memcpy(data + at, e->data, e->size);
		at += e->size;
	}
	memcpy(data + (start ? 0 : size), index.data, index_size);
	if (index.owned)
		free(index.data);
	*out = (lade__encoded){data, index_size + size, s->t->level > 0};
	pthread_mutex_lock(&s->w->mutex);
	s->w->report.kept_size += kept;
	pthread_mutex_unlock(&s->w->mutex);
	return LADE_OK;
}

/* Undoes the steps that follow the shard: most shards have none. */
static lade_status strip(sharding *s, lade__encoded old, lade_worker *worker, lade_error *err)
{
	const lade_zarr_chain *chain = s->w->levels.level[s->t->level].chain;
	s->old = old;
	if (!old.data || chain->step_count == chain->array_step_count)
		return LADE_OK;
	const lade_segment src = {.data = old.data, .size = old.size};
	const lade__coder coder = {s->w, &s->w->steps[s->t->level], worker};
	lade_status status = LADE_E_NOSPACE;
	for (size_t cap = old.size * 2 + 65536; status == LADE_E_NOSPACE; cap *= 4) {
		s->old = (lade__encoded){malloc(cap), cap, true};
		if (!s->old.data)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for a shard of %zu bytes", cap);
		status = lade__steps_decode(&coder, src, lade_host_span(s->old.data, cap), false,
		                            &s->old.size, err);
		if (status == LADE_E_NOSPACE)
			free(s->old.data);
	}
	return status;
}

lade_status lade__write_shard(lade__zwrite *w, const lade__target *t, lade__encoded old,
                              lade__encoded *out, lade_worker *worker, lade_error *err)
{
	const lade_zarr_chain *chain = w->levels.level[t->level].chain;
	sharding s = {.w = w, .t = t, .shard = chain->shard};
	lade__encoded joined = {0};
	lade_status status;
	*out = joined;
	TRY(measure(&s, err));
	s.entries = calloc(s.count + 1, sizeof *s.entries);
	if (!s.entries)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu chunks",
		              s.count));
	TRY(take_order(&s, err));
	if (!t->whole)
		TRY(strip(&s, old, worker, err));
	if (s.old.data)
		TRY(read_index(&s, worker, err));
	take_room(&s, worker);
	TRY(change_all(&s, worker, err));
	TRY(join(&s, &joined, worker, err));
	if (!joined.data || chain->step_count == chain->array_step_count) {
		*out = joined;
		goto out;
	}
	const lade_segment src = {.data = joined.data, .size = joined.size};
	const lade__coder coder = {w, &w->steps[t->level], worker};
	status = lade__steps_encode(&coder, src, NULL, out, err);
	if (joined.owned)
		free(joined.data);
out:
	for (size_t i = 0; s.entries && i < s.count; i++)
		if (s.entries[i].owned)
			free((void *)(uintptr_t)s.entries[i].data);
	free(s.entries);
	free(s.order);
	if (s.old.owned)
		free(s.old.data);
	return status;
}
