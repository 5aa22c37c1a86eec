/*
 * cancel.c: tokens that end calls early.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/cancel.h"

#include <stdlib.h>
#include <time.h>

#define ASK_MS 50

lade_status lade_cancel_new(bool (*poll)(void *ctx), void *ctx, lade_cancel **out, lade_error *err)
{
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = calloc(1, sizeof **out);
	if (!*out)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a token");
	(*out)->poll = poll;
	(*out)->ctx = ctx;
	return LADE_OK;
}

void lade_cancel_free(lade_cancel *cancel)
{
	free(cancel);
}

void lade_cancel_set(lade_cancel *cancel)
{
	atomic_store_explicit(&cancel->set, true, memory_order_relaxed);
}

void lade_cancel_clear(lade_cancel *cancel)
{
	atomic_store_explicit(&cancel->set, false, memory_order_relaxed);
}

bool lade_cancel_is_set(const lade_cancel *cancel)
{
	return atomic_load_explicit(&cancel->set, memory_order_relaxed) ||
	       (cancel->also && lade_cancel_is_set(cancel->also));
}

void lade__cancel_quiet(lade_cancel *quiet, const lade_cancel *cancel)
{
	*quiet = (lade_cancel){.also = cancel};
}

/* ---- calls ------------------------------------------------------------------------------ */

/* A clock that is cheap to read and exact enough. */
static uint64_t now_ms(void)
{
	struct timespec t;
#ifdef CLOCK_MONOTONIC_COARSE
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
	clock_gettime(CLOCK_MONOTONIC, &t);
#endif
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

lade__stop lade__stop_of(lade_cancel *cancel)
{
	lade__stop stop = {.cancel = cancel};
	if (cancel)
		stop.caller = pthread_self();
	return stop;
}

bool lade__stop_look(lade__stop *stop)
{
	lade_cancel *cancel = stop->cancel;
	if (lade_cancel_is_set(cancel))
		return true;
	if (!cancel->poll || !pthread_equal(pthread_self(), stop->caller))
		return false;
	uint64_t now = now_ms();
	if (stop->ask_at == 0)
		stop->ask_at = now + ASK_MS;
	if (now < stop->ask_at)
		return false;
	if (cancel->poll(cancel->ctx))
		lade_cancel_set(cancel);
	stop->ask_at = now_ms() + ASK_MS;
	return lade_cancel_is_set(cancel);
}

lade_status lade__stop_fail(lade_error *err)
{
	return lade_fail(err, LADE_E_CANCELLED, LADE_NO_OFFSET, "the call was cancelled");
}
