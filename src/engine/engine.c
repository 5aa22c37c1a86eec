/*
 * engine.c: the engine's life, and the workers that it keeps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "engine/engine.h"

#include "base/options.h"
#include "base/support.h"

#include <stdlib.h>

#define THREADS_MAX 4096

/* ---- life ------------------------------------------------------------------------------- */

static lade_status allocators_check(const lade_allocator *const *allocators, lade_error *err)
{
	for (int kind = 0; kind < LADE_KIND_COUNT; kind++) {
		const lade_allocator *a = allocators[kind];
		if (a && ((kind == LADE_HOST && !a->alloc) || (a->alloc && !a->free)))
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "the allocator of %s memory: %s is NULL",
			                 lade_kind_name((lade_kind)kind),
			                 a->alloc ? "free" : "alloc");
	}
	return LADE_OK;
}

static lade_status options_check(const lade_engine_options *options, lade_error *err)
{
	if (options->threads > THREADS_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%u threads, at most %d",
		                 options->threads, THREADS_MAX);
	if ((unsigned)options->cpu > LADE_CPU_AVX512)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "cpu level %d is unknown",
		                 (int)options->cpu);
	lade_status status = allocators_check(options->allocators, err);
	if (status != LADE_OK)
		return status;
	if (options->cpu > lade_cpu_detect())
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "cpu level %s was requested, this machine has %s",
		                 lade_cpu_name(options->cpu), lade_cpu_name(lade_cpu_detect()));
	return LADE_OK;
}

lade_status lade_engine_new(const lade_engine_options *given, lade_engine **out, lade_error *err)
{
	lade_engine_options options;
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	lade_status status =
		lade__options_read(&options, sizeof options, given, "engine options", err);
	if (status == LADE_OK)
		status = options_check(&options, err);
	if (status != LADE_OK)
		return status;
	unsigned threads = options.threads ? options.threads : lade_cpu_count();
	lade_engine *engine = calloc(1, sizeof *engine + threads * sizeof(pthread_t));
	if (!engine)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for an engine of %u threads", threads);
	engine->threads = threads;
	engine->pool = &engine->own_pool;
	engine->cpu = options.cpu == LADE_CPU_AUTO ? lade_cpu_detect() : options.cpu;
	for (int kind = 0; kind < LADE_KIND_COUNT; kind++)
		engine->allocators[kind] = options.allocators[kind] ?
			*options.allocators[kind] : *lade_allocator_default((lade_kind)kind);
	status = lade__registry_init(&engine->registry, err);
	if (status == LADE_OK) {
		status = lade__pool_init(&engine->own_pool, engine->thread_ids, threads - 1, err);
		if (status != LADE_OK)
			lade__registry_reset(&engine->registry);
	}
	if (status != LADE_OK) {
		free(engine);
		return status;
	}
	pthread_mutex_init(&engine->workers_mutex, NULL);
	engine->generation = lade__fork_generation();
	*out = engine;
	return LADE_OK;
}

void lade__engine_after_fork(lade_engine *engine)
{
	unsigned now = lade__fork_generation();
	if (__atomic_load_n(&engine->generation, __ATOMIC_ACQUIRE) == now)
		return;
	lade__fork_lock();
	if (engine->generation != now) {
		pthread_mutex_init(&engine->workers_mutex, NULL);
		engine->workers_free = engine->workers_all = NULL;
		engine->devices = (lade__kept){0};
		__atomic_store_n(&engine->generation, now, __ATOMIC_RELEASE);
	}
	lade__fork_unlock();
}

/* Frees what an engine keeps for calls; none runs. */
static void keep_nothing(lade_engine *engine)
{
	lade_worker *next;
	for (lade_worker *worker = engine->workers_all; worker; worker = next) {
		next = worker->next_all;
		lade__worker_free(worker);
	}
	if (engine->devices.give_back)
		engine->devices.give_back(engine, &engine->devices);
	pthread_mutex_destroy(&engine->workers_mutex);
}

void lade_engine_free(lade_engine *engine)
{
	if (!engine)
		return;
	lade__pool_reset(&engine->own_pool);
	keep_nothing(engine);
	lade__registry_reset(&engine->registry);
	free(engine);
}

/* The own one has the records' tables in common with the other, which outlives it. */
lade_status lade__engine_for(lade_engine *engine, const lade_allocator *const *allocators,
                             lade_engine **out, lade_error *err)
{
	bool own = false;
	*out = engine;
	for (int kind = 0; kind < LADE_KIND_COUNT; kind++)
		own |= allocators[kind] != NULL;
	if (!own)
		return LADE_OK;
	lade_status status = allocators_check(allocators, err);
	if (status != LADE_OK)
		return status;
	lade_engine *made = calloc(1, sizeof *made);
	if (!made)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a call");
	made->threads = engine->threads;
	made->cpu = engine->cpu;
	made->registry = engine->registry;
	made->pool = engine->pool;
	made->generation = lade__fork_generation();
	pthread_mutex_init(&made->workers_mutex, NULL);
	for (int kind = 0; kind < LADE_KIND_COUNT; kind++)
		made->allocators[kind] =
			allocators[kind] ? *allocators[kind] : engine->allocators[kind];
	*out = made;
	return LADE_OK;
}

void lade__engine_done(lade_engine *engine, lade_engine *own)
{
	if (own == engine)
		return;
	keep_nothing(own);
	free(own);
}

void lade_engine_trim(lade_engine *engine)
{
	if (!engine)
		return;
	lade__engine_after_fork(engine);
	pthread_mutex_lock(&engine->workers_mutex);
	lade_worker *workers = engine->workers_free, *next;
	engine->workers_free = NULL;
	lade__kept devices = engine->devices;
	engine->devices = (lade__kept){0};
	pthread_mutex_unlock(&engine->workers_mutex);
	/* That may wait for a device or for a caller's allocator, and other calls need the mutex
	 * meanwhile. */
	if (devices.give_back)
		devices.give_back(engine, &devices);
	for (; workers; workers = next) {
		next = workers->next_free;
		lade__worker_trim(workers, 0);
		lade__worker_give(workers);
	}
}

static lade_engine *default_engine;
static pthread_mutex_t default_mutex = PTHREAD_MUTEX_INITIALIZER;

lade_engine *lade_engine_default(void)
{
	lade_engine *engine = __atomic_load_n(&default_engine, __ATOMIC_ACQUIRE);
	if (engine)
		return engine;
	pthread_mutex_lock(&default_mutex);
	engine = default_engine;
	if (!engine && lade_engine_new(NULL, &engine, NULL) == LADE_OK)
		__atomic_store_n(&default_engine, engine, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&default_mutex);
	return engine;
}

unsigned lade_engine_threads(const lade_engine *engine)
{
	return engine->threads;
}

lade_cpu lade_engine_cpu(const lade_engine *engine)
{
	return engine->cpu;
}

/* ---- workers ------------------------------------------------------------------------------ */

lade_worker *lade__worker_take(lade_engine *engine)
{
	lade__engine_after_fork(engine);
	pthread_mutex_lock(&engine->workers_mutex);
	lade_worker *worker = engine->workers_free;
	if (worker)
		engine->workers_free = worker->next_free;
	pthread_mutex_unlock(&engine->workers_mutex);
	if (worker)
		return worker;
	worker = lade__worker_new(lade__engine_host(engine));
	if (!worker)
		return NULL;
	worker->engine = engine;
	pthread_mutex_lock(&engine->workers_mutex);
	worker->next_all = engine->workers_all;
	engine->workers_all = worker;
	pthread_mutex_unlock(&engine->workers_mutex);
	return worker;
}

/* Blocks above this are given back after the call, so that one huge chunk does not stay. */
#define SCRATCH_KEEP ((size_t)32 << 20)

void lade__worker_give(lade_worker *worker)
{
	lade_engine *engine = worker->engine;
	lade__worker_trim(worker, SCRATCH_KEEP);
	pthread_mutex_lock(&engine->workers_mutex);
	worker->next_free = engine->workers_free;
	engine->workers_free = worker;
	pthread_mutex_unlock(&engine->workers_mutex);
}
