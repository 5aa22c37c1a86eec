/*
 * cancel.h: ends calls early, from another thread, a signal handler, or a question that the call
 * asks from time to time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CANCEL_H
#define LADE_CANCEL_H

#include <lade/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Calls take a token in their options.  They look at it between chunks, parts of chunks and waves
 * on a device.  Once it is set, a call begins nothing new, waits for what it has begun, also on
 * devices, and returns LADE_E_CANCELLED.  Items that were not begun get that status, too; those
 * that were done stay done.  A token that was set before a call cancels all of it.
 */
typedef struct lade_cancel lade_cancel;

/*
 * 'poll', if not NULL, asks whether to cancel: a call that runs longer calls poll(ctx) about every
 * 50 ms, on the thread that made the call, between two chunks.  True sets the token.
 * Fails:   LADE_E_NOMEM
 * Threads: any number of calls may share a token, on any threads
 * Owns:    the caller; free() while no call has it (NULL is fine)
 */
LADE_API lade_status lade_cancel_new(bool (*poll)(void *ctx), void *ctx, lade_cancel **out,
                                     lade_error *err);
LADE_API void lade_cancel_free(lade_cancel *cancel);

/* From any thread, and from signal handlers.  Clearing makes the token fit for new calls. */
LADE_API void lade_cancel_set(lade_cancel *cancel);
LADE_API void lade_cancel_clear(lade_cancel *cancel);
LADE_API bool lade_cancel_is_set(const lade_cancel *cancel);

#ifdef __cplusplus
}
#endif

#endif
