/*
 * ring.c: slots that are filled in order, worked on in parallel, and emptied in order.
 *
 * The caller's thread gives before it takes and takes before it works, so that the helpers have
 * something to do while it works, reads or writes; where taking costs nothing it comes first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/ring.h"

#include <stdatomic.h>
#include <stdlib.h>

lade_status lade__ring_init(lade__ring *ring, lade_engine *engine, unsigned threads, bool apart,
                            lade_cancel *cancel, lade_error *err)
{
	*ring = (lade__ring){.engine = engine, .cancel = cancel};
	ring->threads = threads == 0 || threads > engine->threads ? engine->threads : threads;
	ring->apart = apart && ring->threads < engine->threads;
	ring->count = ring->threads + (ring->threads + 1) / 2;
	if (ring->threads == 1 && !ring->apart)
		ring->count = 1;
	ring->slots = calloc(ring->count, sizeof *ring->slots);
	if (!ring->slots)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu slots",
		                 ring->count);
	pthread_mutex_init(&ring->mutex, NULL);
	pthread_cond_init(&ring->work, NULL);
	pthread_cond_init(&ring->done, NULL);
	return LADE_OK;
}

void lade__ring_reset(lade__ring *ring)
{
	if (!ring->slots)
		return;
	free(ring->slots);
	ring->slots = NULL;
	pthread_mutex_destroy(&ring->mutex);
	pthread_cond_destroy(&ring->work);
	pthread_cond_destroy(&ring->done);
}

typedef struct ring_run {
	lade__ring *ring;
	const lade__ring_calls *calls;
	lade_worker *worker; /* the caller's */
	pthread_t caller;
	atomic_bool entered; /* by the caller */
} ring_run;

/* With the mutex held, which is let go meanwhile. */
static void work_one(const ring_run *run, lade_worker *worker)
{
	lade__ring *ring = run->ring;
	size_t at = (size_t)(ring->works++ % ring->count);
	lade__ring_slot *slot = &ring->slots[at];
	ring->working++;
	pthread_mutex_unlock(&ring->mutex);
	slot->error.offset = LADE_NO_OFFSET;
	slot->error.message[0] = 0;
	lade_status status = run->calls->work(run->calls->ctx, at, worker, &slot->error);
	pthread_mutex_lock(&ring->mutex);
	slot->status = status;
	slot->done = true;
	ring->working--;
	pthread_cond_signal(&ring->done);
	if (ring->apart)
		pthread_cond_signal(&ring->work);
}

/* Whether a thread may begin the next slot. */
static bool may_work(const lade__ring *ring)
{
	return ring->works < ring->takes && ring->working < ring->threads &&
	       ring->status == LADE_OK;
}

/* Gives the slot whose turn it is.  False: no more in this run. */
static bool give_one(const ring_run *run)
{
	lade__ring *ring = run->ring;
	size_t at = (size_t)(ring->gives % ring->count);
	lade__ring_slot *slot = &ring->slots[at];
	bool gave = true;
	if (slot->status != LADE_OK) {
		ring->status = slot->status;
		ring->error = slot->error;
		return false;
	}
	pthread_mutex_unlock(&ring->mutex);
	lade_status status = run->calls->give(run->calls->ctx, at, &gave, &ring->error);
	pthread_mutex_lock(&ring->mutex);
	ring->status = status;
	if (status != LADE_OK || !gave)
		return false;
	slot->done = false;
	ring->gives++;
	return true;
}

/* Fills the next slot.  False: no more in this run. */
static bool take_one(const ring_run *run)
{
	lade__ring *ring = run->ring;
	bool took = true;
	pthread_mutex_unlock(&ring->mutex);
	lade_status status = run->calls->take(run->calls->ctx, lade__ring_open(ring), &took,
	                                      &ring->take_error);
	pthread_mutex_lock(&ring->mutex);
	ring->take_status = status;
	if (status != LADE_OK || !took)
		return false;
	ring->takes++;
	pthread_cond_signal(&ring->work);
	return true;
}

/* With the mutex held, which is let go meanwhile: whoever is asked may take its time. */
static void look_for_stop(lade__ring *ring)
{
	if (!ring->stop.cancel)
		return;
	pthread_mutex_unlock(&ring->mutex);
	bool stopped = lade__stopped(&ring->stop);
	pthread_mutex_lock(&ring->mutex);
	if (stopped && ring->status == LADE_OK)
		ring->status = lade__stop_fail(&ring->error);
}

static void caller_loop(const ring_run *run)
{
	lade__ring *ring = run->ring;
	bool taking = run->calls->take && ring->take_status == LADE_OK, giving = true;
	pthread_mutex_lock(&ring->mutex);
	for (;;) {
		look_for_stop(ring);
		if (ring->status != LADE_OK)
			break;
		if (taking && run->calls->take_first && !lade__ring_full(ring))
			taking = take_one(run);
		else if (giving && ring->gives < ring->takes &&
		    ring->slots[ring->gives % ring->count].done)
			giving = give_one(run);
		else if (taking && !lade__ring_full(ring))
			taking = take_one(run);
		else if (may_work(ring) && !(ring->apart && ring->helpers))
			work_one(run, run->worker);
		else if (ring->working || ring->works < ring->takes)
			pthread_cond_wait(&ring->done, &ring->mutex);
		else
			break;
	}
	while (ring->working)
		pthread_cond_wait(&ring->done, &ring->mutex);
	ring->closed = true;
	pthread_cond_broadcast(&ring->work);
	pthread_mutex_unlock(&ring->mutex);
}

static void helper_loop(const ring_run *run)
{
	lade__ring *ring = run->ring;
	lade_worker *worker = lade__worker_take(ring->engine);
	if (!worker)
		return;
	pthread_mutex_lock(&ring->mutex);
	ring->helpers++;
	while (!ring->closed) {
		if (may_work(ring))
			work_one(run, worker);
		else
			pthread_cond_wait(&ring->work, &ring->mutex);
	}
	ring->helpers--;
	pthread_mutex_unlock(&ring->mutex);
	lade__worker_give(worker);
}

static void ring_body(void *arg)
{
	ring_run *run = arg;
	if (pthread_equal(pthread_self(), run->caller) &&
	    !atomic_exchange_explicit(&run->entered, true, memory_order_relaxed))
		caller_loop(run);
	else
		helper_loop(run);
}

lade_status lade__ring_run(lade__ring *ring, const lade__ring_calls *calls, lade_error *err)
{
	bool idle = ring->gives == ring->takes && (!calls->take || ring->take_status != LADE_OK);
	if (ring->status == LADE_OK && !idle) {
		ring_run run = {.ring = ring, .calls = calls, .caller = pthread_self()};
		run.worker = lade__worker_take(ring->engine);
		if (!run.worker)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for a worker");
		ring->closed = false;
		ring->stop = lade__stop_of(ring->cancel);
		lade__pool_run(ring->engine->pool, ring->threads - !ring->apart, ring_body, &run);
		lade__worker_give(run.worker);
	}
	if (ring->status != LADE_OK) {
		if (err)
			*err = ring->error;
		return ring->status;
	}
	if (ring->take_status != LADE_OK && ring->gives == ring->takes) {
		if (err)
			*err = ring->take_error;
		return ring->take_status;
	}
	return LADE_OK;
}
