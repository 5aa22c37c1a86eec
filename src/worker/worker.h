/*
 * worker.h: what one thread has while it runs implementations: scratch memory, and their states.
 *
 * A worker knows no engine's lists: src/engine keeps workers between calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_WORKER_WORKER_H
#define LADE_WORKER_WORKER_H

#include "base/support.h"

/* Scratch blocks of a worker, by use. */
enum {
	LADE__SCRATCH_IMPL = 0,  /* and 1: lade_worker_scratch() */
	LADE__SCRATCH_STAGE = 2, /* and 3: between stages */
	LADE__SCRATCH_TILE = 4,  /* and 5: between the filters of a tile */
	LADE__SCRATCH_JOIN =
		6, /* an encoder's source, gathered; a decoder's result, to be spread */
	LADE__SCRATCH_FRAME = 7, /* for the layer above */
	LADE__SCRATCH_OUTLETS = 8, /* the plans of several layouts */
	LADE__SCRATCH_GROUP = 9,   /* for the layer above: the blocks of several chunks */
	LADE__SCRATCH_SHARD = 10,  /* for the layer above: encoded chunks of a shard */
	LADE__SCRATCH_COUNT = 11,
};

typedef struct lade__block {
	void *data;
	size_t size;
} lade__block;

/* What an implementation keeps between calls on one worker; NULL: not made yet. */
typedef struct lade__state {
	void *state;
	void *ctx; /* the implementation's, for state_free */
	void (*state_free)(void *ctx, void *state);
} lade__state;

/* Serves one thread at a time. */
struct lade_worker {
	const lade_allocator *host;
	lade_engine *engine; /* the one that keeps it */
	lade_worker *next_free, *next_all;
	lade__block scratch[LADE__SCRATCH_COUNT];
	lade__state *states; /* by the implementation's index in its engine */
	size_t state_count;
};

/* NULL: out of memory.  'host' outlives the worker. */
lade_worker *lade__worker_new(const lade_allocator *host);
void lade__worker_free(lade_worker *worker);

/* Frees the scratch blocks of more than 'keep' bytes. */
void lade__worker_trim(lade_worker *worker, size_t keep);

/* A scratch block of at least 'size' bytes, 64-byte aligned; NULL: out of memory.  A slot keeps its
 * block until a call asks for more than that has. */
void *lade__worker_block(lade_worker *worker, unsigned slot, size_t size);

/*
 * The worker's state of an implementation, made at the first call.  'index' is the implementation's
 * number among 'count' of its engine's.  '*state' is NULL where the implementation has none.
 * Fails: LADE_E_NOMEM
 */
lade_status lade__worker_state(lade_worker *worker, const lade_implementation *implementation,
                               size_t index, size_t count, void **state, lade_error *err);

#endif
