/*
 * pool.h: threads that help a caller with one piece of work.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_POOL_H
#define LADE_BASE_POOL_H

#include <lade/memory.h>

#include <pthread.h>

typedef struct lade__job lade__job;

/*
 * A pool of at most 'size' threads.  They start when work first wants them and end in
 * lade__pool_reset().  In a forked child the pool begins anew, without threads.
 */
typedef struct lade__pool {
	pthread_mutex_t mutex;
	pthread_cond_t work; /* a job wants helpers, or the pool stops */
	pthread_cond_t done; /* a job's last helper has left */
	lade__job *jobs;     /* those that still want helpers */
	pthread_t *threads;
	unsigned size, live, idle;
	bool stop;
	unsigned generation; /* of lade__fork_generation() when the above was made */
} lade__pool;

/* 'threads' is room for 'size' ids, the caller's, and outlives the pool. */
lade_status lade__pool_init(lade__pool *pool, pthread_t *threads, unsigned size, lade_error *err);

/* Ends and joins the threads.  No call of lade__pool_run() may be running. */
void lade__pool_reset(lade__pool *pool);

/*
 * Runs body(ctx) on the calling thread and, at the same time, on up to 'helpers' threads of
 * the pool; returns when all that entered it have left.  A helper may come late or not at all:
 * 'body' takes its pieces from a shared counter and leaves when there are none.
 * Threads: any number of callers at once; 'body' may call it again.
 */
void lade__pool_run(lade__pool *pool, unsigned helpers, void (*body)(void *ctx), void *ctx);

/* How often this process has been born by fork() since the library was loaded in an ancestor. */
unsigned lade__fork_generation(void);

/* A lock that is never held across a fork: for putting things right in a child. */
void lade__fork_lock(void);
void lade__fork_unlock(void);

#endif
