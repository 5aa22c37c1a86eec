/*
 * parallel.c: shares calls out among an engine's threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "engine/engine.h"
#include "engine/outcome.h"

#include <stdatomic.h>

typedef struct spread {
	lade_engine *engine;
	const lade__calls *calls;
	size_t grain;
	lade_worker *first; /* the caller's, taken before anything runs */
	pthread_t caller;
	atomic_size_t next;
} spread;

/* Takes pieces until there are none.  A helper that gets no worker leaves before it has taken a
 * piece; the caller always has one. */
static void spread_body(void *arg)
{
	spread *s = arg;
	const lade__calls *calls = s->calls;
	bool mine = pthread_equal(pthread_self(), s->caller);
	lade_worker *worker = mine ? s->first : lade__worker_take(s->engine);
	while (worker) {
		size_t at = atomic_fetch_add_explicit(&s->next, s->grain, memory_order_relaxed);
		if (at >= calls->count)
			break;
		size_t end = calls->count - at < s->grain ? calls->count : at + s->grain;
		for (; at < end; at++)
			calls->fn(calls->ctx, calls->order ? calls->order[at] : at, worker);
	}
	if (worker && !mine)
		lade__worker_give(worker);
}

/* The threads that 'count' calls are shared out among. */
static unsigned threads_for(const lade_engine *engine, unsigned threads, size_t count)
{
	if (threads == 0 || threads > engine->threads)
		threads = engine->threads;
	return threads <= count ? threads : count ? (unsigned)count : 1;
}

/* About 16 pieces a thread: the last ones end together, and the counter is not contended. */
static size_t grain_for(unsigned threads, size_t count)
{
	size_t grain = count / ((size_t)threads * 16);
	return grain ? grain : 1;
}

lade_status lade__engine_parallel(lade_engine *engine, const lade__calls *calls, lade_error *err)
{
	unsigned threads = threads_for(engine, calls->threads, calls->count);
	lade_worker *worker = lade__worker_take(engine);
	if (!worker)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a worker");
	if (threads == 1) {
		for (size_t i = 0; i < calls->count; i++)
			calls->fn(calls->ctx, calls->order ? calls->order[i] : i, worker);
	} else {
		spread s = {.engine = engine,
		            .calls = calls,
		            .grain = calls->grain ? calls->grain
		                                  : grain_for(threads, calls->count),
		            .first = worker,
		            .caller = pthread_self()};
		lade__pool_run(engine->pool, threads - 1, spread_body, &s);
	}
	lade__worker_give(worker);
	return LADE_OK;
}

/* ---- a caller's own calls ------------------------------------------------------------------ */

typedef struct each {
	lade_status (*fn)(void *ctx, size_t index, lade_error *err);
	void *ctx;
	size_t count, grain;
	atomic_size_t next;
	lade__outcome outcome;
} each;

/* Without a worker: the calls take those that they need. */
static void each_body(void *arg)
{
	each *e = arg;
	for (;;) {
		size_t at = atomic_fetch_add_explicit(&e->next, e->grain, memory_order_relaxed);
		if (at >= e->count)
			return;
		size_t end = e->count - at < e->grain ? e->count : at + e->grain;
		for (; at < end; at++) {
			lade_error error = {.offset = LADE_NO_OFFSET};
			if (lade__stopped(&e->outcome.stop)) {
				lade__outcome_cancelled(&e->outcome, at);
				continue;
			}
			lade_status status = e->fn(e->ctx, at, &error);
			error.status = status;
			if (status != LADE_OK)
				lade__outcome_failed(&e->outcome, at, status, &error);
		}
	}
}

lade_status lade_engine_each(lade_engine *engine, size_t count,
                             lade_status (*fn)(void *ctx, size_t index, lade_error *err), void *ctx,
                             const lade_batch_options *given, lade_error *err)
{
	lade_batch_options options;
	if (!engine || !fn)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 engine ? "fn" : "engine");
	lade_status status =
		lade__options_read(&options, sizeof options, given, "batch options", err);
	if (status != LADE_OK)
		return status;
	unsigned threads = threads_for(engine, options.threads, count);
	each e = {.fn = fn, .ctx = ctx, .count = count, .grain = grain_for(threads, count)};
	lade__outcome_init(&e.outcome, NULL, &options, err);
	lade__pool_run(engine->pool, threads - 1, each_body, &e);
	return lade__outcome_reset(&e.outcome);
}
