/*
 * outcome.h: what became of a call's items.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ENGINE_OUTCOME_H
#define LADE_ENGINE_OUTCOME_H

#include "base/cancel.h"

#include <lade/batch.h>

/* Where a call reports what became of its items; several threads may report at once. */
typedef struct lade__outcome {
	lade_result *results;    /* NULL: not wanted */
	lade_error *item_errors; /* likewise */
	pthread_mutex_t mutex;   /* guards what follows */
	size_t first_bad;        /* SIZE_MAX: none */
	lade_status bad_status;
	lade_error *err;
	lade__stop stop;
} lade__outcome;

/* 'options' may be NULL. */
void lade__outcome_init(lade__outcome *outcome, lade_result *results,
                        const lade_batch_options *options, lade_error *err);
void lade__outcome_failed(lade__outcome *outcome, size_t index, lade_status status,
                          const lade_error *error);

static inline void lade__outcome_done(lade__outcome *outcome, size_t index, size_t size)
{
	if (outcome->results)
		outcome->results[index] = (lade_result){LADE_OK, size};
}

/* An item that is not begun since the call is cancelled. */
void lade__outcome_cancelled(lade__outcome *outcome, size_t index);

/* Ends it; LADE_E_CANCELLED if an item was, else the status of the first item that failed. */
lade_status lade__outcome_reset(lade__outcome *outcome);

#endif
