/*
 * cancel.h: how calls look at their tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_CANCEL_H
#define LADE_BASE_CANCEL_H

#include <lade/cancel.h>

#include <pthread.h>
#include <stdatomic.h>

struct lade_cancel {
	atomic_bool set; /* lock-free: signal handlers may write it */
	bool (*poll)(void *ctx);
	void *ctx;
	const lade_cancel *also; /* or NULL: it is set if that one is */
};
_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "signal handlers need an atomic without a lock");

/* Makes a token that is set when 'cancel' is, and asks nobody: for calls that a call makes on other
 * threads than its own.  'cancel' outlives it. */
void lade__cancel_quiet(lade_cancel *quiet, const lade_cancel *cancel);

/* A call's view of its token. */
typedef struct lade__stop {
	lade_cancel *cancel; /* NULL: nothing stops it */
	pthread_t caller;    /* who may be asked */
	uint64_t ask_at;     /* milliseconds of a clock; 0: not known yet; only the caller's */
} lade__stop;

/* For a call that the calling thread makes. */
lade__stop lade__stop_of(lade_cancel *cancel);

bool lade__stop_look(lade__stop *stop);

/* Whether the call is to begin nothing more.  Any of its threads may ask. */
static inline bool lade__stopped(lade__stop *stop)
{
	return stop->cancel && lade__stop_look(stop);
}

/* Fills '*err' and returns LADE_E_CANCELLED. */
lade_status lade__stop_fail(lade_error *err);

#endif
