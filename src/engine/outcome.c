/*
 * outcome.c: gathers what became of a call's items, from several threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "engine/outcome.h"

void lade__outcome_init(lade__outcome *o, lade_result *results, const lade_batch_options *options,
                        lade_error *err)
{
	*o = (lade__outcome){.results = results,
	                     .mutex = PTHREAD_MUTEX_INITIALIZER, /* as by a call, and faster */
	                     .item_errors = options ? options->item_errors : NULL,
	                     .first_bad = SIZE_MAX,
	                     .err = err,
	                     .stop = lade__stop_of(options ? options->cancel : NULL)};
}

lade_status lade__outcome_reset(lade__outcome *o)
{
	pthread_mutex_destroy(&o->mutex);
	return o->first_bad < SIZE_MAX ? o->bad_status : LADE_OK;
}

void lade__outcome_failed(lade__outcome *o, size_t index, lade_status status,
                          const lade_error *error)
{
	pthread_mutex_lock(&o->mutex);
	if (o->results)
		o->results[index] = (lade_result){status, 0};
	if (o->item_errors)
		o->item_errors[index] = *error;
	bool cancelled = status == LADE_E_CANCELLED, was = o->bad_status == LADE_E_CANCELLED;
	if (cancelled == was ? index < o->first_bad : cancelled) {
		o->first_bad = index;
		o->bad_status = status;
		lade_fail(o->err, status, error->offset, "item %zu: %s", index, error->message);
	}
	pthread_mutex_unlock(&o->mutex);
}

void lade__outcome_cancelled(lade__outcome *o, size_t index)
{
	lade_error error;
	lade_status status = lade__stop_fail(&error);
	lade__outcome_failed(o, index, status, &error);
}
