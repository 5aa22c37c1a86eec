/*
 * plan.h: the planner: it sorts a call's items into groups, and says where each group runs.
 *
 *     items --(plan.c)--> groups --(where.c)--> host | device | host, for bytes on a device
 *
 * The planner looks at items in steps.  A group whose device is clear after the first step begins
 * to run, and lade__planner_next() sorts the others as the group asks for them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_PLAN_PLAN_H
#define LADE_BATCH_PLAN_PLAN_H

#include "batch/batch.h"
#include "batch/plan/item.h"
#include "batch/plan/tuning.h"
#include "engine/route.h"

/* What the items of a group have in common. */
typedef struct lade__key {
	const lade_spec *spec, *tail; /* the tail may be NULL */
	int32_t device;               /* the one with the bytes, or that of the options */
	lade__side in, out;
	bool too_large; /* for kernels */
} lade__key;

/* Where a group runs, and why. */
typedef struct lade__where {
	bool on_device;                /* by kernels; else by the host */
	lade_status status;            /* of the chosen side: its items fail with it */
	const lade_error *error;       /* where that is not LADE_OK */
	lade__route host, tail, device; /* 'tail' is the host's route of the key's tail */
	lade_status host_status, device_status; /* LADE_OK: that side can do it */
	lade_error host_error, device_error;
	double host_cost, device_cost; /* nanoseconds expected, with copies */
} lade__where;

typedef struct lade__group {
	lade__key key;
	uint32_t index;                    /* among the planner's groups */
	size_t count;                      /* as far as items are sorted */
	uint64_t in_bytes, total, largest; /* sources; decoded sides; the largest of either side */
	bool chosen, ran;
	size_t next;       /* lade__planner_next() goes on with this item of the call */
	size_t host_count; /* items that lade__planner_to_host() has been given */
	lade__where where; /* the last, since it is large and filled when it is chosen */
} lade__group;

/* What has become of an item: the upper two bits of its entry in lade__planner.state.  The others
 * are the group's index; an item that is done has none. */
#define LADE__FOR_HOST   ((uint32_t)1 << 30) /* its group runs on a device, the item does not */
#define LADE__REFUSED    ((uint32_t)2 << 30) /* its device found it bad; the report follows */
#define LADE__DONE       ((uint32_t)3 << 30) /* reported */
#define LADE__GROUP_MASK (LADE__FOR_HOST - 1)

#define LADE__PLANNER_FEW 16

typedef struct lade__planner {
	const lade__call *call;
	lade__outcome *outcome;
	unsigned threads; /* that the call may use */
	size_t count; /* items of the call; where they arrive, the most that there may be */
	size_t there; /* those that are there: 'count', unless they arrive */
	lade__group **groups;
	size_t group_count, group_cap, last; /* 'last': the group of the latest item */
	uint32_t *buckets; /* a hash table of the groups' index + 1, at most half full */
	size_t bucket_count;
	size_t sorted;     /* items before it have a group */
	size_t same_from;  /* of those: from this one on they are alike; SIZE_MAX: none are */
	uint32_t *state;   /* by item */
	lade__group own;   /* the first group, and the states of few items: without allocating */
	lade__group *own_group;
	uint32_t own_state[LADE__PLANNER_FEW];
} lade__planner;

/* Fails: LADE_E_NOMEM; then lade__planner_reset() is not needed */
lade_status lade__planner_init(lade__planner *p, const lade__call *call, lade__outcome *outcome,
                               lade_error *err);
void lade__planner_reset(lade__planner *p);

/* Sorts the items before 'end'; those that are not as they should be fail.  Fails: LADE_E_NOMEM */
lade_status lade__planner_sort(lade__planner *p, size_t end, lade_error *err);

/* Items that are sorted at a time. */
#define LADE__PLANNER_STEP ((size_t)256)

/*
 * Where items arrive: waits for more.  False: there are none before others are done; with 'idle',
 * when none are under way, that is the call's end.
 */
bool lade__planner_wait(lade__planner *p, bool idle);

/*
 * The next item of a group, in the call's order; SIZE_MAX at the end, or where the next has not
 * arrived.  Sorts further items as it needs them.
 * Fails: LADE_E_NOMEM
 */
lade_status lade__planner_next(lade__planner *p, lade__group *g, size_t *index, lade_error *err);

/* Leaves an item of a device's group to the host. */
void lade__planner_to_host(lade__planner *p, lade__group *g, size_t index);

static inline void lade__planner_done(lade__planner *p, size_t index)
{
	p->state[index] = LADE__DONE;
}

/* The group that an item waits in; NULL: in none. */
static inline lade__group *lade__planner_waits(const lade__planner *p, size_t index)
{
	uint32_t state = p->state[index];
	return state <= LADE__GROUP_MASK ? p->groups[state] : NULL;
}

/* The group of an item that the host is to run; NULL: it is not. */
static inline lade__group *lade__planner_for_host(const lade__planner *p, size_t index)
{
	uint32_t state = p->state[index];
	if (state >= LADE__REFUSED)
		return NULL;
	lade__group *g = p->groups[state & LADE__GROUP_MASK];
	return state & LADE__FOR_HOST || !g->where.on_device ? g : NULL;
}

/*
 * The items from g->next on that equal the one before in all that decides where they run.  Where
 * that one is the group's, they are, too; lade__planner_take() moves past some of them.
 */
static inline size_t lade__planner_same_key(const lade__planner *p, const lade__group *g)
{
	return g->next > p->same_from ? p->sorted - g->next : 0;
}

static inline void lade__planner_take(lade__group *g, size_t count)
{
	g->next += count;
}

/* How many times as many items there are as are sorted: a group that is chosen early is expected to
 * go on as it began. */
static inline double lade__planner_scale(const lade__planner *p)
{
	return p->sorted && p->sorted < p->count && !p->call->arrivals
	               ? (double)p->count / (double)p->sorted
	               : 1;
}

/* Whether one side of a group's bytes is on its device. */
static inline bool lade__group_on_device(const lade__group *g)
{
	return g->key.in == LADE__SIDE_DEVICE || g->key.out == LADE__SIDE_DEVICE;
}

/* What implementations are asked about a group. */
lade_workload lade__workload_of(const lade__planner *p, const lade__group *g);

/* All of a call's items as one group, with the places of the first.  Fails: when one may not run */
lade_status lade__planner_join(const lade__planner *p, lade__group *g, lade_error *err);

/* ---- where ----------------------------------------------------------------------------------- */

/* Whether a group may go to a device at all, as the call's options have it. */
bool lade__where_may_device(const lade__planner *p, const lade__group *g);

/*
 * Chooses where a group runs, by what is known of it so far.
 * Fails: when the call's stream is not one of the device that has the group's bytes
 */
lade_status lade__where_choose(const lade__planner *p, lade__group *g, lade_error *err);

/* Likewise, without a look at the stream; 'candidates', unless NULL, gets what lade_explain()
 * says. */
void lade__where_explain(const lade__planner *p, lade__group *g, lade__candidates *candidates);

#endif
