/*
 * batch.h: what the calls over items share, on the host and on devices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_BATCH_H
#define LADE_BATCH_BATCH_H

#include "array/given.h"
#include "engine/outcome.h"

/*
 * Items that come while their call runs, in its table of items, which has room for all of them.
 * They have one spec, and pinned memory with sources: as the call does items, others come there.
 */
typedef struct lade__arrivals {
	const lade_item *items; /* room for 'cap' of them */
	lade_result *results;   /* likewise */
	size_t cap;
	void *ctx;
	/* Waits until there are more items than 'have', and returns how many there are.  No more
	 * than 'have': none come until others are done; with '*end': none come at all. */
	size_t (*wait)(void *ctx, size_t have, bool *end);
	/* The call does not read the item's source any more; unless it failed (!ok): then it may,
	 * until it returns. */
	void (*done)(void *ctx, size_t index, bool ok);
	/* About how many come, the bytes of their sources and results, and of the largest. */
	size_t count;
	uint64_t in, total, largest;
	size_t wave; /* the most bytes of sources that a wave waits for */
} lade__arrivals;

/* A call over items, as it runs. */
typedef struct lade__call {
	lade_engine *engine;
	lade_direction direction;
	const lade_spec *spec; /* of items without their own; may be NULL */
	const lade_item *items;
	size_t count;
	const lade_batch_options *options;
	const lade__arrivals *arrivals; /* NULL: all items are there */
} lade__call;

/*
 * Decodes items as they come.  It may return before all have come, but not before any; what it has
 * taken is done, and has results as of lade_decode_into().  The options have the sizes of this
 * version's structs.
 * Fails: as lade_decode_into(), but not for single items
 */
lade_status lade__decode_arriving(lade_engine *engine, const lade__arrivals *arrivals,
                                  const lade_batch_options *options, lade_error *err);

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
