/*
 * batch.h: what the calls over items share, on the host and on devices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_BATCH_H
#define LADE_BATCH_BATCH_H

#include "array/given.h"
#include "engine/outcome.h"

/* A call over items, as it runs. */
typedef struct lade__call {
	lade_engine *engine;
	lade_direction direction;
	const lade_spec *spec; /* of items without their own; may be NULL */
	const lade_item *items;
	size_t count;
	const lade_batch_options *options;
} lade__call;

/*
 * Reads a call's options into 'options' and takes its arrays, which stand in 'given' as for
 * lade__given_open() but for 'host'; lade__given_close() gives them back.
 * Fails: LADE_E_ARG, NULL for the engine or the items, or an option that is not valid; and as
 *        lade__given_open()
 */
lade_status lade__call_open(lade__given *given, const lade_engine *engine,
                            const lade_batch_options *caller, lade_batch_options *options,
                            lade_error *err);

/* The decoded size of one encoded segment; LADE_E_UNKNOWN_SIZE when the format has none. */
lade_status lade__spec_decoded_size(const lade_spec *spec, const void *src, size_t size,
                                    uint64_t *decoded, lade_error *err);

#endif
