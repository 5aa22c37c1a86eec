/*
 * engine.c: the engine's life, its workers, and spreading work over its threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/engine.h"

#include "base/support.h"
#include "batch/gpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 4096

/* ---- life ------------------------------------------------------------------------------- */

static lade_status options_check(const lade_engine_options *options, lade_error *err)
{
	if (options->struct_size != sizeof *options)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "engine options: struct_size is %zu, this library's is %zu",
		                 options->struct_size, sizeof *options);
	if (options->threads > THREADS_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%u threads, at most %d can be had", options->threads,
		                 THREADS_MAX);
	if ((unsigned)options->cpu > LADE_CPU_AVX512)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "cpu level %d is unknown",
		                 (int)options->cpu);
	for (int kind = 0; kind < LADE_KIND_COUNT; kind++) {
		const lade_allocator *a = options->allocators[kind];
		if (a && ((kind == LADE_HOST && !a->alloc) || (a->alloc && !a->free)))
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "the allocator of %s memory: %s is NULL",
			                 lade_kind_name((lade_kind)kind),
			                 a->alloc ? "free" : "alloc");
	}
	if (options->cpu > lade_cpu_detect())
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "cpu level %s is asked for, this machine has %s",
		                 lade_cpu_name(options->cpu), lade_cpu_name(lade_cpu_detect()));
	return LADE_OK;
}

lade_status lade_engine_new(const lade_engine_options *options, lade_engine **out, lade_error *err)
{
	static const lade_engine_options defaults = {.struct_size = sizeof defaults};
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	if (!options)
		options = &defaults;
	lade_status status = options_check(options, err);
	if (status != LADE_OK)
		return status;
	unsigned threads = options->threads ? options->threads : lade_cpu_count();
	lade_engine *engine = calloc(1, sizeof *engine + threads * sizeof(pthread_t));
	if (!engine)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for an engine of %u threads", threads);
	engine->threads = threads;
	engine->cpu = options->cpu == LADE_CPU_AUTO ? lade_cpu_detect() : options->cpu;
	for (int kind = 0; kind < LADE_KIND_COUNT; kind++)
		engine->allocators[kind] = options->allocators[kind] ?
			*options->allocators[kind] : *lade_allocator_default((lade_kind)kind);
	status = lade__registry_init(&engine->registry, err);
	if (status == LADE_OK) {
		status = lade__pool_init(&engine->pool, engine->thread_ids, threads - 1, err);
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
		engine->lanes = NULL;
		engine->sheets = NULL;
		__atomic_store_n(&engine->generation, now, __ATOMIC_RELEASE);
	}
	lade__fork_unlock();
}

static void block_free(lade_worker *worker, lade__block *block)
{
	lade__host_free(lade__engine_host(worker->engine), block->data, block->size);
	*block = (lade__block){NULL, 0};
}

static void worker_free(lade_worker *worker)
{
	lade_engine *engine = worker->engine;
	for (size_t i = 0; i < worker->state_count; i++) {
		const lade_implementation *p = &engine->registry.entries[i].record;
		if (worker->states[i])
			p->state_free(p->ctx, worker->states[i]);
	}
	free(worker->states);
	for (int i = 0; i < LADE__SCRATCH_COUNT; i++)
		block_free(worker, &worker->scratch[i]);
	free(worker);
}

void lade_engine_free(lade_engine *engine)
{
	if (!engine)
		return;
	lade__pool_reset(&engine->pool);
	lade_worker *next;
	for (lade_worker *worker = engine->workers_all; worker; worker = next) {
		next = worker->next_all;
		worker_free(worker);
	}
	lade__gpu_lanes_free(engine, engine->lanes, engine->sheets);
	pthread_mutex_destroy(&engine->workers_mutex);
	lade__registry_reset(&engine->registry);
	free(engine);
}

void lade_engine_trim(lade_engine *engine)
{
	if (!engine)
		return;
	lade__engine_after_fork(engine);
	pthread_mutex_lock(&engine->workers_mutex);
	lade_worker *workers = engine->workers_free, *next;
	engine->workers_free = NULL;
	struct lade__gpu_lane *lanes = engine->lanes;
	struct lade__gpu_sheet *sheets = engine->sheets;
	engine->lanes = NULL;
	engine->sheets = NULL;
	pthread_mutex_unlock(&engine->workers_mutex);
	/* That may wait for a device or for a caller's allocator, and other calls need the mutex
	 * meanwhile. */
	lade__gpu_lanes_free(engine, lanes, sheets);
	for (; workers; workers = next) {
		next = workers->next_free;
		for (int i = 0; i < LADE__SCRATCH_COUNT; i++)
			block_free(workers, &workers->scratch[i]);
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
	worker = calloc(1, sizeof *worker);
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
	for (int i = 0; i < LADE__SCRATCH_COUNT; i++)
		if (worker->scratch[i].size > SCRATCH_KEEP)
			block_free(worker, &worker->scratch[i]);
	pthread_mutex_lock(&engine->workers_mutex);
	worker->next_free = engine->workers_free;
	engine->workers_free = worker;
	pthread_mutex_unlock(&engine->workers_mutex);
}

void *lade__worker_block(lade_worker *worker, unsigned slot, size_t size)
{
	lade__block *block = &worker->scratch[slot];
	if (size <= block->size && block->data)
		return block->data;
	/* Rounded up, so that chunks of slightly growing sizes do not allocate each time. */
	size_t want = size < 4096 ? 4096 : size;
	if (want > SIZE_MAX / 2)
		return NULL;
	want += want / 16;
	want = (want + 4095) & ~(size_t)4095;
	block_free(worker, block);
	block->data = lade__host_alloc(lade__engine_host(worker->engine), want);
	block->size = block->data ? want : 0;
	return block->data;
}

void *lade_worker_scratch(lade_worker *worker, unsigned slot, size_t size)
{
	return slot < 2 ? lade__worker_block(worker, LADE__SCRATCH_IMPL + slot, size) : NULL;
}

lade_status lade__worker_state(lade_worker *worker, size_t index, void **state, lade_error *err)
{
	const lade_engine *engine = worker->engine;
	const lade_implementation *p = &engine->registry.entries[index].record;
	*state = NULL;
	if (!p->state_new)
		return LADE_OK;
	if (index >= worker->state_count) {
		size_t count = engine->registry.entry_count;
		void **states = realloc(worker->states, count * sizeof *states);
		if (!states)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu states", count);
		memset(states + worker->state_count, 0,
		       (count - worker->state_count) * sizeof *states);
		worker->states = states;
		worker->state_count = count;
	}
	if (!worker->states[index])
		worker->states[index] = p->state_new(p->ctx, lade__engine_host(engine));
	*state = worker->states[index];
	return *state ? LADE_OK : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                                    "no memory for the state of %s", p->name);
}

/* ---- spreading ------------------------------------------------------------------------------ */

typedef struct spread {
	lade_engine *engine;
	lade_worker *first; /* the caller's, taken before anything runs */
	pthread_t caller;
	size_t count, grain;
	const uint32_t *order;
	atomic_size_t next;
	void (*fn)(void *ctx, size_t index, lade_worker *worker);
	void *ctx;
} spread;

/* Takes pieces until there are none.  A helper that gets no worker leaves before it has taken a
 * piece; the caller always has one. */
static void spread_body(void *arg)
{
	spread *s = arg;
	bool mine = pthread_equal(pthread_self(), s->caller);
	lade_worker *worker = mine ? s->first : lade__worker_take(s->engine);
	while (worker) {
		size_t at = atomic_fetch_add_explicit(&s->next, s->grain, memory_order_relaxed);
		if (at >= s->count)
			break;
		size_t end = s->count - at < s->grain ? s->count : at + s->grain;
		for (; at < end; at++)
			s->fn(s->ctx, s->order ? s->order[at] : at, worker);
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

lade_status lade__engine_parallel(lade_engine *engine, unsigned threads, size_t count,
                                  size_t grain, const uint32_t *order,
                                  void (*fn)(void *ctx, size_t index, lade_worker *worker),
                                  void *ctx, lade_error *err)
{
	threads = threads_for(engine, threads, count);
	if (grain == 0)
		grain = grain_for(threads, count);
	lade_worker *worker = lade__worker_take(engine);
	if (!worker)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a worker");
	if (threads == 1) {
		for (size_t i = 0; i < count; i++)
			fn(ctx, order ? order[i] : i, worker);
	} else {
		spread s = {.engine = engine,
		            .first = worker,
		            .caller = pthread_self(),
		            .count = count,
		            .grain = grain,
		            .order = order,
		            .fn = fn,
		            .ctx = ctx};
		lade__pool_run(&engine->pool, threads - 1, spread_body, &s);
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
			lade_status status = e->fn(e->ctx, at, &error);
			error.status = status;
			if (status != LADE_OK)
				lade__outcome_failed(&e->outcome, at, status, &error);
		}
	}
}

lade_status lade_engine_each(lade_engine *engine, unsigned threads, size_t count,
                             lade_status (*fn)(void *ctx, size_t index, lade_error *err), void *ctx,
                             lade_error *item_errors, lade_error *err)
{
	if (!engine || !fn)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 engine ? "fn" : "engine");
	threads = threads_for(engine, threads, count);
	lade_batch_options told = {.item_errors = item_errors};
	each e = {.fn = fn, .ctx = ctx, .count = count, .grain = grain_for(threads, count)};
	lade__outcome_init(&e.outcome, NULL, &told, err);
	lade__pool_run(&engine->pool, threads - 1, each_body, &e);
	return lade__outcome_reset(&e.outcome);
}
