/*
 * ring.h: slots that are filled in order, worked on in parallel, and emptied in order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_RING_H
#define LADE_FRAME_RING_H

#include "base/cancel.h"
#include "engine/engine.h"

/* A slot of a frame's ring holds one chunk, or as many as have these bytes when decoded: small ones
 * share the cost of a turn. */
#define LADE__GROUP_BYTES ((size_t)256 << 10)
#define LADE__GROUP_CHUNKS 1024

/*
 * 'take' and 'give' are called on the thread that calls lade__ring_run(), never at once; 'work' on
 * any of the engine's threads.  'take' sets '*took' to false when there is nothing more to
 * take; 'give' sets '*gave' to false when the slot is to stay, and is not called again in this run.
 */
typedef struct lade__ring_calls {
	lade_status (*take)(void *ctx, size_t slot, bool *took, lade_error *err); /* or NULL */
	lade_status (*work)(void *ctx, size_t slot, lade_worker *worker, lade_error *err);
	lade_status (*give)(void *ctx, size_t slot, bool *gave, lade_error *err);
	void *ctx;
	bool take_first; /* taking costs nothing: it comes before giving */
} lade__ring_calls;

typedef struct lade__ring_slot {
	bool done;
	lade_status status;
	lade_error error;
} lade__ring_slot;

/*
 * Slots are numbered by the order of their taking: number n is in slot n % count, and
 * gives <= works <= takes <= gives + count.  Between runs none is being worked on.
 */
typedef struct lade__ring {
	lade_engine *engine;
	lade_cancel *cancel; /* of the options of whoever made the ring, or NULL */
	lade__stop stop;     /* of the run */
	unsigned threads; /* that may work at once */
	bool apart; /* the caller's thread works only if no other has come to help */
	size_t count;
	lade__ring_slot *slots;
	uint64_t takes, works, gives;
	unsigned working, helpers;
	bool closed; /* helpers leave */
	lade_status take_status, status;
	lade_error take_error;
	lade_error error;
	pthread_mutex_t mutex;
	pthread_cond_t work, done;
} lade__ring;

/*
 * 'threads' 0 or above the engine's: the engine's.  'apart': that many besides the caller's, if the
 * engine has them.  Sets 'count' to one slot and a half a thread, so that a finished slot can wait
 * for its turn while all threads work.
 */
lade_status lade__ring_init(lade__ring *ring, lade_engine *engine, unsigned threads, bool apart,
                            lade_cancel *cancel, lade_error *err);
void lade__ring_reset(lade__ring *ring);

/*
 * Takes, works and gives until nothing more can be done: the taking has ended or all slots are
 * full, and 'give' has given all or kept one.  Failures come in order: all slots before the one
 * that failed are given; a failure is final, LADE_E_CANCELLED too.
 */
lade_status lade__ring_run(lade__ring *ring, const lade__ring_calls *calls, lade_error *err);

/* LADE_E_CANCELLED if the run is to end: for 'work' between the chunks of a slot. */
static inline lade_status lade__ring_look(lade__ring *ring, lade_error *err)
{
	return lade__stopped(&ring->stop) ? lade__stop_fail(err) : LADE_OK;
}

/* The slot that the next 'take' would fill; lade__ring_push() says that it has been filled by
 * hand.  Between runs, when there is room. */
static inline size_t lade__ring_open(const lade__ring *ring)
{
	return (size_t)(ring->takes % ring->count);
}

static inline bool lade__ring_full(const lade__ring *ring)
{
	return ring->takes - ring->gives == ring->count;
}

static inline void lade__ring_push(lade__ring *ring)
{
	ring->takes++;
}

/* Between runs: the first slot that 'give' kept; false when there is none. */
static inline bool lade__ring_front(const lade__ring *ring, size_t *slot)
{
	*slot = (size_t)(ring->gives % ring->count);
	return ring->gives < ring->takes && ring->slots[*slot].done &&
	       ring->slots[*slot].status == LADE_OK;
}

static inline void lade__ring_pop(lade__ring *ring)
{
	ring->slots[ring->gives % ring->count].done = false;
	ring->gives++;
}

#endif
