/*
 * async.c: reads that return at once.
 *
 *	lade_store_read_async() --> a thread of the store: plan, the store's read()
 *	                                  |  read() has returned, and all requests have answers
 *	                                  v
 *	                            a thread of the store: versions, answers, done()
 *
 * Between the two steps no thread waits if the store's read() returns early, as that of HTTP does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/pool.h"
#include "base/try.h"
#include "store/store.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- threads ------------------------------------------------------------------------------- */

/* Threads of a store that run its calls. */
#define THREADS 4

typedef struct lade__service {
	pthread_mutex_t mutex;
	pthread_cond_t work;
	lade__task *first, **last;
	size_t queued;
	pthread_t threads[THREADS];
	unsigned live, idle;
	bool stop;
	pid_t process; /* whose threads they are */
} lade__service;

static void service_init(lade__service *s)
{
	*s = (lade__service){.process = getpid()};
	s->last = &s->first;
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->work, NULL);
}

static void *work(void *ctx)
{
	lade__service *s = ctx;
	pthread_mutex_lock(&s->mutex);
	while (!s->stop) {
		lade__task *task = s->first;
		if (!task) {
			s->idle++;
			pthread_cond_wait(&s->work, &s->mutex);
			s->idle--;
			continue;
		}
		s->first = task->next;
		if (!s->first)
			s->last = &s->first;
		s->queued--;
		pthread_mutex_unlock(&s->mutex);
		lade_store *store = task->run(task);
		/* The last reference: 's' is gone, too. */
		if (store && lade__store_drop(store))
			return NULL;
		pthread_mutex_lock(&s->mutex);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

/* A store's threads; in a child of fork() there are none, and it begins anew. */
static lade__service *service_of(lade_store *store)
{
	lade__fork_lock();
	lade__service *s = store->service;
	if (!s) {
		s = malloc(sizeof *s);
		if (s)
			service_init(s);
		store->service = s;
	} else if (s->process != getpid()) {
		service_init(s);
	}
	lade__fork_unlock();
	return s;
}

lade_status lade__store_later(lade_store *store, lade__task *task, lade_error *err)
{
	lade__service *s = service_of(store);
	sigset_t all, old;
	if (!s)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for threads");
	pthread_mutex_lock(&s->mutex);
	if (s->queued >= s->idle && s->live < THREADS) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		if (pthread_create(&s->threads[s->live], NULL, work, s) == 0)
			s->live++;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	bool good = s->live > 0;
	if (good) {
		task->next = NULL;
		*s->last = task;
		s->last = &task->next;
		s->queued++;
		pthread_cond_signal(&s->work);
	}
	pthread_mutex_unlock(&s->mutex);
	return good ? LADE_OK
	            : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no thread for a call");
}

void lade__service_free(lade__service *s)
{
	if (!s)
		return;
	if (s->process == getpid()) {
		pthread_mutex_lock(&s->mutex);
		s->stop = true;
		pthread_cond_broadcast(&s->work);
		pthread_mutex_unlock(&s->mutex);
		/* One of them may be the caller: it ran the last call of the store. */
		for (unsigned i = 0; i < s->live; i++) {
			if (pthread_equal(s->threads[i], pthread_self()))
				pthread_detach(s->threads[i]);
			else
				pthread_join(s->threads[i], NULL);
		}
		pthread_cond_destroy(&s->work);
		pthread_mutex_destroy(&s->mutex);
	}
	free(s);
}

/* ---- a call -------------------------------------------------------------------------------- */

typedef struct call {
	lade__task task;
	lade_store *store; /* a reference */
	lade__array array; /* of the ranges */
	bool staged;       /* spans on devices, which the store cannot write */
	lade_io_options options;
	lade_cancel quiet; /* the caller's thread is not here to be asked */
	lade_store_report own;
	uint64_t began_ns;
	lade_reading outer;
	lade__fetch fetch;
	atomic_int left; /* until the second step: read() returns, all requests have answers */
	lade_store_async async;
} call;

static lade_store *finish(call *c, lade_status status, const lade_error *err)
{
	call own = *c;
	lade__array_close(&own.array, true);
	lade__report_end(&own.own, own.async.report, own.began_ns);
	free(c);
	own.async.done(own.async.ctx, status, err);
	return own.store;
}

static lade_store *second_step(lade__task *task)
{
	call *c = (call *)task;
	lade_error inner, err = {0};
	lade__fetch_end(&c->fetch);
	lade_status status = lade__reading_end(&c->outer, &inner);
	if (status != LADE_OK)
		lade_fail(&err, status, inner.offset, "range %zu: %s", c->outer.failed,
		          inner.message);
	return finish(c, status, &err);
}

static void step_is_done(void *ctx)
{
	call *c = ctx;
	if (atomic_fetch_sub(&c->left, 1) != 1)
		return;
	c->task.run = second_step;
	lade__store_later(c->store, &c->task, NULL);
}

static lade_store *first_step(lade__task *task)
{
	call *c = (call *)task;
	lade_error err = {0};
	if (c->staged) {
		lade_status status = lade_store_read(c->store, c->array.own, c->array.count,
		                                     &c->options, &c->own, &err);
		return finish(c, status, &err);
	}
	lade__reading_init(&c->outer, c->array.own, c->array.count, &c->options);
	if (lade__stopped(&c->outer.stop)) {
		for (size_t i = 0; i < c->array.count; i++)
			lade_reading_done(&c->outer, i, LADE_E_CANCELLED, NULL);
		return second_step(task);
	}
	c->fetch = (lade__fetch){.store = c->store,
	                         .outer = &c->outer,
	                         .ranges = c->array.own,
	                         .count = c->array.count,
	                         .report = &c->own,
	                         .answered = step_is_done,
	                         .answered_ctx = c,
	                         .later = c->store};
	atomic_init(&c->left, 2);
	lade__fetch_begin(&c->fetch);
	step_is_done(c);
	return NULL;
}

static lade_status call_begin(call *c, lade_range *ranges, size_t count,
                              const lade_io_options *given, lade_error *err)
{
	lade_source_ops ops = lade__store_source_ops(c->store);
	lade_status status;
	c->array = (lade__array){.own = ranges, .count = count, .own_size = sizeof *ranges};
	TRY(lade__report_begin(&c->own, c->async.report, err));
	TRY(lade__io_options_read(&c->options, given, LADE__RANGE_0_2, err));
	TRY(lade__array_open(&c->array, c->options.request_size, "range", err));
	c->options.request_size = sizeof *ranges;
	if (c->options.cancel) {
		lade__cancel_quiet(&c->quiet, c->options.cancel);
		c->options.cancel = &c->quiet;
	}
	status = lade__ranges_check((lade_source){&ops, c->store}, c->array.own, count, &c->staged,
	                            err);
	c->staged = c->staged && !(ops.flags & LADE_SOURCE_ANY_PLACE);
	if (status == LADE_OK)
		status = lade__store_later(c->store, &c->task, err);
	if (status != LADE_OK && c->array.own)
		lade__ranges_fail(c->array.own, count, &c->options, status, err);
	if (status != LADE_OK)
		lade__array_close(&c->array, true);
out:
	return status;
}

lade_status lade_store_read_async(lade_store *store, lade_range *ranges, size_t count,
                                  const lade_io_options *options, const lade_store_async *async,
                                  lade_error *err)
{
	lade_error unwanted;
	if (!store)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "store is NULL");
	call *c = calloc(1, sizeof *c);
	if (!c)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a call");
	lade_status status =
		lade__options_read(&c->async, sizeof c->async, async, "async options", err);
	if (status == LADE_OK && !c->async.done)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "async options: done is NULL");
	if (status != LADE_OK) {
		free(c);
		return status;
	}
	c->task.run = first_step;
	c->store = lade_store_ref(store);
	c->began_ns = lade__now_ns();
	status = call_begin(c, ranges, count, options, err ? err : &unwanted);
	if (status == LADE_OK)
		return LADE_OK; /* 'c' may be gone */
	lade_store_unref(store);
	free(c);
	return status;
}
