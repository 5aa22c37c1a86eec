/*
 * steps.c: reads entries step by step; a thread reads steps ahead of the caller.
 *
 *     slots   | the caller's | ready | ready | being read |
 *               taken                  made
 *
 * A slot has a buffer for each column, which grows to the largest step and is used again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/rntuple.h"

#include "base/cancel.h"
#include "base/options.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { AHEAD_MAX = 64, ALIGN = 256, ASK_NS = 50000000 };

typedef struct slot {
	lade_rntuple_part entries;
	lade_rntuple_target *targets;
	size_t *caps; /* bytes of each target's buffer */
	lade_status status;
	lade_error error;
} slot;

struct lade_rntuple_steps {
	lade_rntuple *tuple;
	lade_rntuple_steps_options options;
	lade_rntuple_read_options read;
	lade_cancel *cancel, quiet; /* the caller's token; 'quiet', for the thread, asks nobody */
	const lade_allocator *allocator;
	uint64_t *columns;
	size_t count;
	uint64_t next, end; /* entries that have not been begun */
	slot *slots;
	size_t slot_count;
	uint64_t made, taken; /* steps that were read, and that the caller got */
	bool threaded, stop;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t moved; /* one of made, taken, stop */
};

/* ---- a step --------------------------------------------------------------------------------- */

/* The entries of the next step. */
static lade_rntuple_part next_entries(const lade_rntuple_steps *s)
{
	const lade_rntuple *t = s->tuple;
	uint64_t left = s->end - s->next, step = s->options.step;
	size_t low = 0, high = t->cluster_count;
	if (step)
		return (lade_rntuple_part){s->next, step < left ? step : left};
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->cluster[middle].first + t->cluster[middle].count <= s->next)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < t->cluster_count)
		step = t->cluster[low].first + t->cluster[low].count - s->next;
	return (lade_rntuple_part){s->next, step < left ? step : left};
}

static lade_status make_room(const lade_rntuple_steps *s, lade_rntuple_target *target, size_t *cap,
                             lade_error *err)
{
	const lade_rntuple_column *c = &s->tuple->column[target->column];
	const lade_allocator *a = s->allocator;
	lade_place place = s->options.place;
	bool one_more = c->kind == LADE_RNTUPLE_OFFSETS && !(s->read.flags & LADE_RNTUPLE_ENDS);
	/* element_count is below 2^63, so one more does not wrap. */
	uint64_t count = target->count + one_more;
	if (count > PTRDIFF_MAX / c->elem_size)
		return lade__rnt_nomem(err);
	size_t size = (size_t)count * c->elem_size;
	if (size > *cap) {
		if (target->span.data)
			a->free(a->ctx, target->span.data, *cap, ALIGN, place, s->read.stream);
		*cap = 0;
		target->span.data = a->alloc(a->ctx, size, ALIGN, place, s->read.stream);
		if (!target->span.data)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "rntuple: no memory for %zu bytes of %s", size,
			                 s->tuple->field[c->field].path);
		*cap = size;
	}
	target->span = (lade_span){target->span.data, size, place};
	return LADE_OK;
}

static lade_status read_step(const lade_rntuple_steps *s, slot *k, lade_error *err)
{
	lade_status status = LADE_OK;
	for (size_t i = 0; i < s->count && status == LADE_OK; i++) {
		lade_rntuple_target *target = &k->targets[i];
		lade_rntuple_part part;
		status = lade_rntuple_elements(s->tuple, s->columns[i], k->entries, &s->read, &part,
		                               err);
		if (status != LADE_OK)
			break;
		target->column = s->columns[i];
		target->first = part.first;
		target->count = part.count;
		status = make_room(s, target, &k->caps[i], err);
	}
	return status == LADE_OK
	               ? lade_rntuple_read(s->tuple, k->targets, s->count, &s->read, NULL, err)
	               : status;
}

/* The slot of the next step; it is the caller's of this until it is added. */
static slot *begin_step(lade_rntuple_steps *s)
{
	slot *k = &s->slots[s->made % s->slot_count];
	k->entries = next_entries(s);
	k->error = (lade_error){.offset = LADE_NO_OFFSET};
	return k;
}

/* Behind a failure there is nothing to read. */
static void add_step(lade_rntuple_steps *s, const slot *k)
{
	s->next = k->status == LADE_OK ? s->next + k->entries.count : s->end;
	s->made++;
}

static void *read_ahead(void *ctx)
{
	lade_rntuple_steps *s = ctx;
	pthread_mutex_lock(&s->lock);
	while (!s->stop && s->next < s->end) {
		/* The slot that the caller has is not free. */
		if (s->made - s->taken + (s->taken > 0) >= s->slot_count) {
			pthread_cond_wait(&s->moved, &s->lock);
			continue;
		}
		slot *k = begin_step(s);
		pthread_mutex_unlock(&s->lock);
		k->status = read_step(s, k, &k->error);
		pthread_mutex_lock(&s->lock);
		add_step(s, k);
		pthread_cond_signal(&s->moved);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- the calls ------------------------------------------------------------------------------ */

static lade_status take_options(lade_rntuple_steps *s, const lade_rntuple_steps_options *options,
                                lade_error *err)
{
	uint64_t all = s->tuple->info.entry_count;
	lade_status status = lade__options_read(&s->options, sizeof s->options, options,
	                                        "lade_rntuple_steps_options", err);
	if (status == LADE_OK)
		status = lade__options_read(&s->read, sizeof s->read, s->options.read,
		                            "lade_rntuple_read_options", err);
	if (status != LADE_OK)
		return status;
	s->read.target_size = sizeof(lade_rntuple_target);
	lade_rntuple_part *e = &s->options.entries;
	if (e->first > all || e->count > all - e->first)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "rntuple: %" PRIu64 " entries from %" PRIu64
		                 " on, there are %" PRIu64,
		                 e->count, e->first, all);
	if (s->options.ahead > AHEAD_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "rntuple: %" PRIu64 " steps ahead, at most %d", s->options.ahead,
		                 AHEAD_MAX);
	for (size_t i = 0; i < s->count; i++)
		if (s->columns[i] >= s->tuple->column_count)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "rntuple: column %" PRIu64 " of %zu", s->columns[i],
			                 s->tuple->column_count);
	lade_kind kind = s->options.place.kind;
	if ((unsigned)kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: kind %d of memory",
		                 (int)kind);
	s->allocator =
		s->read.allocators[kind] ? s->read.allocators[kind] : lade_allocator_default(kind);
	s->next = e->first;
	s->end = e->count ? e->first + e->count : all;
	s->slot_count = (size_t)s->options.ahead + 1;
	return LADE_OK;
}

static lade_status make_slots(lade_rntuple_steps *s, lade_error *err)
{
	s->slots = calloc(s->slot_count, sizeof *s->slots);
	if (!s->slots)
		return lade__rnt_nomem(err);
	for (size_t i = 0; i < s->slot_count; i++) {
		s->slots[i].targets = calloc(s->count + 1, sizeof *s->slots[i].targets);
		s->slots[i].caps = calloc(s->count + 1, sizeof *s->slots[i].caps);
		if (!s->slots[i].targets || !s->slots[i].caps)
			return lade__rnt_nomem(err);
	}
	return LADE_OK;
}

lade_status lade_rntuple_steps_new(lade_rntuple *tuple, const uint64_t *columns, size_t count,
                                   const lade_rntuple_steps_options *options,
                                   lade_rntuple_steps **out, lade_error *err)
{
	if (!tuple || !out || (count && !columns))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: an argument is NULL");
	*out = NULL;
	lade_rntuple_steps *s = calloc(1, sizeof *s);
	if (!s)
		return lade__rnt_nomem(err);
	s->tuple = lade_rntuple_ref(tuple);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->moved, NULL);
	s->columns = calloc(count + 1, sizeof *s->columns);
	lade_status status = s->columns ? LADE_OK : lade__rnt_nomem(err);
	if (status == LADE_OK) {
		s->count = count;
		if (count)
			memcpy(s->columns, columns, count * sizeof *columns);
		status = take_options(s, options, err);
	}
	if (status == LADE_OK)
		status = make_slots(s, err);
	/* Without a thread, the steps are read when they are asked for. */
	if (status == LADE_OK && s->slot_count > 1) {
		s->cancel = s->read.cancel;
		lade__cancel_quiet(&s->quiet, s->cancel);
		s->read.cancel = s->cancel ? &s->quiet : NULL;
		s->threaded = pthread_create(&s->thread, NULL, read_ahead, s) == 0;
		if (!s->threaded)
			s->read.cancel = s->cancel;
	}
	if (status == LADE_OK)
		*out = s;
	else
		lade_rntuple_steps_free(s);
	return status;
}

/* Waits for the thread; the caller is asked meanwhile.  The lock is held before and after. */
static void wait_for_thread(lade_rntuple_steps *s, lade__stop *stop)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ASK_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (!s->cancel)
		pthread_cond_wait(&s->moved, &s->lock);
	else if (!lade__stopped(stop))
		pthread_cond_timedwait(&s->moved, &s->lock, &until);
	else
		pthread_cond_wait(&s->moved, &s->lock); /* the thread sees it, too */
}

lade_status lade_rntuple_steps_next(lade_rntuple_steps *s, lade_rntuple_step *step, lade_error *err)
{
	lade_rntuple_step given;
	lade_status status =
		lade__options_read(&given, sizeof given, step, "lade_rntuple_step", err);
	if (status != LADE_OK)
		return status;
	if (!s || !step)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: an argument is NULL");
	lade__stop stop = lade__stop_of(s->cancel);
	pthread_mutex_lock(&s->lock);
	given = (lade_rntuple_step){.struct_size = step->struct_size};
	bool ready = s->made > s->taken;
	while (s->threaded && !ready && s->next < s->end) {
		wait_for_thread(s, &stop);
		ready = s->made > s->taken;
	}
	if (!s->threaded && s->next < s->end) {
		slot *k = begin_step(s);
		k->status = read_step(s, k, &k->error);
		add_step(s, k);
		ready = true;
	}
	if (ready) {
		slot *k = &s->slots[s->taken++ % s->slot_count];
		status = k->status;
		if (status != LADE_OK && err)
			*err = k->error;
		given.entries = k->entries;
		given.targets = k->targets;
		given.count = s->count;
		pthread_cond_signal(&s->moved);
	}
	pthread_mutex_unlock(&s->lock);
	if (status == LADE_OK)
		memcpy(step, &given,
		       given.struct_size < sizeof given ? given.struct_size : sizeof given);
	return status;
}

void lade_rntuple_steps_free(lade_rntuple_steps *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->moved);
	pthread_mutex_unlock(&s->lock);
	if (s->threaded)
		pthread_join(s->thread, NULL);
	for (size_t i = 0; s->slots && i < s->slot_count; i++) {
		slot *k = &s->slots[i];
		for (size_t c = 0; k->targets && k->caps && c < s->count; c++)
			if (k->caps[c])
				s->allocator->free(s->allocator->ctx, k->targets[c].span.data,
				                   k->caps[c], ALIGN, s->options.place,
				                   s->read.stream);
		free(k->targets);
		free(k->caps);
	}
	free(s->slots);
	free(s->columns);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->moved);
	lade_rntuple_unref(s->tuple);
	free(s);
}
