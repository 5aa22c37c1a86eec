/*
 * cancel.h: ends calls early, from another thread, a signal handler, or a function that the call
 * polls.
 *
 *	lade_cancel *cancel;
 *	lade_frame *frame;
 *	if (lade_cancel_new(NULL, NULL, &cancel, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	lade_cancel_set(cancel);                        // usually by another thread
 *	lade_frame_read_options options = {.struct_size = sizeof options, .cancel = cancel};
 *	lade_status status = lade_frame_open_path(engine, "x.lade", &options, &frame, &err);
 *	printf("%s\n", lade_status_name(status));       // LADE_E_CANCELLED
 *	lade_cancel_free(cancel);
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
 * A token that calls take in their options.  They check it between chunks, between parts of chunks,
 * and between launches on a device.  Once it is set, a call starts nothing new, waits for what it
 * has started, on devices too, and returns LADE_E_CANCELLED.  Items that it did not start get that
 * status as well; items that are done stay done.  A token that is set before the call cancels all
 * of it.
 */
typedef struct lade_cancel lade_cancel;

/*
 * Makes a token.  If 'poll' is not NULL, long calls call poll(ctx) about every 50 ms, between two
 * chunks, on the thread that made the call.  If it returns true, the token is set.
 *
 * Fails:   LADE_E_NOMEM
 * Threads: any number of calls may share a token, on any threads
 * Owns:    the caller; free it when no call uses it (NULL is fine)
 */
LADE_API lade_status lade_cancel_new(bool (*poll)(void *ctx), void *ctx, lade_cancel **out,
                                     lade_error *err);
LADE_API void lade_cancel_free(lade_cancel *cancel);

/* Sets, clears or reads a token, from any thread and from signal handlers.  Clear a token to use it
 * for further calls. */
LADE_API void lade_cancel_set(lade_cancel *cancel);
LADE_API void lade_cancel_clear(lade_cancel *cancel);
LADE_API bool lade_cancel_is_set(const lade_cancel *cancel);

#ifdef __cplusplus
}
#endif

#endif
