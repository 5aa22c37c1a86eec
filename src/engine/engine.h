/*
 * engine.h: the inside of an engine: registry, threads, and the workers that it keeps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ENGINE_ENGINE_H
#define LADE_ENGINE_ENGINE_H

#include "base/pool.h"
#include "engine/registry.h"
#include "worker/worker.h"

#include <lade/batch.h>

/*
 * What calls on devices leave in an engine for the next ones: lists that only src/batch/gpu knows.
 * 'give_back' is set by whoever first puts something in them, and frees what 'kept' has.
 */
typedef struct lade__kept {
	struct lade__gpu_streams *streams;
	struct lade__gpu_staging *staging, *lent; /* 'lent': in use, and will come back */
	void (*give_back)(lade_engine *engine, const struct lade__kept *kept);
} lade__kept;

struct lade_engine {
	lade_allocator allocators[LADE_KIND_COUNT];
	unsigned threads;
	lade_cpu cpu;
	lade__registry registry;
	lade__pool *pool; /* of its own threads, or of another engine's (lade__engine_for()) */
	pthread_mutex_t workers_mutex;
	lade_worker *workers_free, *workers_all;
	lade__kept devices;  /* under the same mutex */
	unsigned generation; /* of the workers' lists, as in lade__pool */
	lade__pool own_pool;
	pthread_t thread_ids[];
};

static inline const lade_allocator *lade__engine_host(const lade_engine *engine)
{
	return &engine->allocators[LADE_HOST];
}

/*
 * Before the engine's mutex is locked in a call that may be the first in a forked child: the lists
 * may have been caught there in the middle of a change, by a thread that is no more, and workers in
 * the middle of a call.  They begin anew; what they held is lost, once.
 */
void lade__engine_after_fork(lade_engine *engine);

/*
 * The engine that a call uses: 'engine', or one of the same threads and records with the
 * allocators that the call's options name, for the time of the call.  lade__engine_done() ends it,
 * and frees all that was allocated.
 * Fails: LADE_E_ARG, LADE_E_NOMEM
 */
lade_status lade__engine_for(lade_engine *engine, const lade_allocator *const *allocators,
                             lade_engine **out, lade_error *err);
void lade__engine_done(lade_engine *engine, lade_engine *own);

/* NULL: out of memory.  Every worker taken is given back. */
lade_worker *lade__worker_take(lade_engine *engine);
void lade__worker_give(lade_worker *worker);

/* Calls fn(ctx, i, worker) for each i below 'count', to share out among threads. */
typedef struct lade__calls {
	void (*fn)(void *ctx, size_t index, lade_worker *worker);
	void *ctx;
	size_t count;
	size_t grain;          /* consecutive ones that a thread takes at a time; 0: chosen */
	const uint32_t *order; /* which i comes first; NULL: as they are */
	unsigned threads;      /* at most, the caller's included; 0: the engine's */
} lade__calls;

/* Fails: LADE_E_NOMEM when not even one worker could be had; then nothing was called */
lade_status lade__engine_parallel(lade_engine *engine, const lade__calls *calls, lade_error *err);

#endif
