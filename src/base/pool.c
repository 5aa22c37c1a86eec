/*
 * pool.c: the thread pool, and what fork() asks of it.
 *
 * A job stands on its caller's stack.  It is in the pool's list while it wants helpers; a
 * thread that takes a place lowers 'wanted' and raises 'running'.  When the caller's own run of the
 * body is over there is nothing left to hand out, so it takes the job off the list and waits for
 * those still running.
 *
 * After fork() only the calling thread lives in the child, and a mutex may be held by one that
 * does not.  A handler counts forks; a pool of an older count is set up anew before use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/pool.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

struct lade__job {
	void (*body)(void *ctx);
	void *ctx;
	unsigned wanted, running;
	lade__job *next;
};

/* ---- fork --------------------------------------------------------------------------- */

static atomic_uint fork_generation;
static pthread_mutex_t fork_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

void lade__fork_lock(void)
{
	pthread_mutex_lock(&fork_mutex);
}

void lade__fork_unlock(void)
{
	pthread_mutex_unlock(&fork_mutex);
}

static void fork_child(void)
{
	atomic_fetch_add(&fork_generation, 1);
	pthread_mutex_unlock(&fork_mutex);
}

static void fork_register(void)
{
	pthread_atfork(lade__fork_lock, lade__fork_unlock, fork_child);
}

unsigned lade__fork_generation(void)
{
	return atomic_load_explicit(&fork_generation, memory_order_acquire);
}

/* ---- threads ------------------------------------------------------------------------ */

static void pool_clear(lade__pool *pool)
{
	pthread_mutex_init(&pool->mutex, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->done, NULL);
	pool->jobs = NULL;
	pool->live = pool->idle = 0;
	pool->stop = false;
}

lade_status lade__pool_init(lade__pool *pool, pthread_t *threads, unsigned size, lade_error *err)
{
	if (pthread_once(&fork_once, fork_register))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "pthread_atfork() failed");
	memset(pool, 0, sizeof *pool);
	pool->threads = threads;
	pool->size = size;
	pool_clear(pool);
	pool->generation = lade__fork_generation();
	return LADE_OK;
}

static void pool_after_fork(lade__pool *pool)
{
	unsigned now = lade__fork_generation();
	if (__atomic_load_n(&pool->generation, __ATOMIC_ACQUIRE) == now)
		return;
	lade__fork_lock();
	if (pool->generation != now) {
		pool_clear(pool);
		__atomic_store_n(&pool->generation, now, __ATOMIC_RELEASE);
	}
	lade__fork_unlock();
}

/* Takes a place in the oldest job; the caller holds the mutex. */
static lade__job *job_take(lade__pool *pool)
{
	lade__job *job = pool->jobs;
	if (!job)
		return NULL;
	job->running++;
	if (--job->wanted == 0)
		pool->jobs = job->next;
	return job;
}

static void *thread_main(void *arg)
{
	lade__pool *pool = arg;
	pthread_mutex_lock(&pool->mutex);
	for (;;) {
		lade__job *job = job_take(pool);
		if (!job) {
			if (pool->stop)
				break;
			pool->idle++;
			pthread_cond_wait(&pool->work, &pool->mutex);
			pool->idle--;
			continue;
		}
		pthread_mutex_unlock(&pool->mutex);
		job->body(job->ctx);
		pthread_mutex_lock(&pool->mutex);
		if (--job->running == 0)
			pthread_cond_broadcast(&pool->done);
	}
	pthread_mutex_unlock(&pool->mutex);
	return NULL;
}

/* Starts one more thread, with all signals blocked: they are the caller's.  Without success there
 * are fewer helpers, which is slower but not wrong. */
static bool thread_start(lade__pool *pool)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&pool->threads[pool->live], NULL, thread_main, pool);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		pool->live++;
	return rc == 0;
}

void lade__pool_reset(lade__pool *pool)
{
	pool_after_fork(pool);
	pthread_mutex_lock(&pool->mutex);
	pool->stop = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->mutex);
	for (unsigned i = 0; i < pool->live; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->done);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->mutex);
}

void lade__pool_run(lade__pool *pool, unsigned helpers, void (*body)(void *ctx), void *ctx)
{
	if (helpers > pool->size)
		helpers = pool->size;
	if (helpers == 0) {
		body(ctx);
		return;
	}
	pool_after_fork(pool);
	lade__job job = {.body = body, .ctx = ctx, .wanted = helpers};
	pthread_mutex_lock(&pool->mutex);
	lade__job **tail = &pool->jobs;
	while (*tail)
		tail = &(*tail)->next;
	*tail = &job;
	for (unsigned idle = pool->idle; idle < helpers && pool->live < pool->size; idle++)
		if (!thread_start(pool))
			break;
	for (unsigned i = 0; i < helpers; i++)
		pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->mutex);

	body(ctx);

	pthread_mutex_lock(&pool->mutex);
	if (job.wanted) {
		lade__job **at = &pool->jobs;
		while (*at != &job)
			at = &(*at)->next;
		*at = job.next;
		job.wanted = 0;
	}
	while (job.running)
		pthread_cond_wait(&pool->done, &pool->mutex);
	pthread_mutex_unlock(&pool->mutex);
}
