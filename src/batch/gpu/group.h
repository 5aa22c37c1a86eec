/*
 * gpu_group.h: the items of a call, sorted by what decides about their way: gpu_group.c sorts and
 * chooses, gpu_call.c runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_GPU_GROUP_H
#define LADE_BATCH_GPU_GROUP_H

#include "batch/gpu/gpu.h"

typedef enum lade__lies { LADE__ON_HOST, LADE__IN_PINNED, LADE__NEAR } lade__lies;

/* What the items of a group have in common. */
typedef struct lade__gpu_key {
	const lade_spec *spec;
	int32_t device; /* -1: none is meant */
	lade__lies in, out;
	bool huge; /* of items that are too large for kernels; they do not spoil the others */
} lade__gpu_key;

typedef struct lade__gpu_group {
	lade__gpu_key key;
	uint32_t index;
	size_t count;                      /* as far as items have been looked at */
	uint64_t in_bytes, total, largest; /* encoded or plain bytes in; decoded ones */
	lade_status host_status, device_status;
	lade_error host_error, device_error;
	lade__route host, dev;
	double host_cost, device_cost;
	bool chosen, on_device, ran;
	size_t cursor; /* items before it have been taken to the device */
	bool failed;   /* some of these did */
	size_t *bridge, bridge_count, bridge_cap; /* the items that go over the bridge */
} lade__gpu_group;

/* In place of a group's index: an item that has failed or found its way already, one that the host
 * does of a group that a device does, and one that its device has refused: why is to be told. */
#define LADE__SETTLED UINT32_MAX
#define LADE__FOR_HOST (UINT32_MAX - 1)
#define LADE__REFUSED (UINT32_MAX - 2)

/* What has become so far of an item of several units, or that its device has refused. */
typedef struct lade__gpu_done {
	lade_status status;
	size_t size;
} lade__gpu_done;

typedef struct lade__gpu_calling {
	lade_engine *engine;
	lade_direction direction;
	const lade_spec *spec;
	const lade_item *items;
	size_t count;
	const lade_batch_options *options;
	lade__outcome *outcome;
	lade__gpu_group **groups;
	size_t group_count, group_cap, last;
	uint32_t *seats; /* a hash table of the groups' index + 1, at most half full */
	size_t seat_count;
	size_t sorted;        /* items before it have a group */
	size_t plain;         /* of those: from this one on they are alike, each of one segment,
	                       * without rows or range; SIZE_MAX: the last one is not */
	uint32_t *group_of;   /* by item: index, or one of the above */
	lade__gpu_done *done; /* by item; NULL: not wanted yet */
} lade__gpu_calling;

/* How many times as many items there are as have been looked at: a group that is chosen before that
 * is done is thought to go on so. */
static inline double lade__gpu_all(const lade__gpu_calling *c)
{
	return c->sorted ? (double)c->count / (double)c->sorted : 1;
}

/* Whether a group's items lie on its device, on one side at least. */
static inline bool lade__gpu_is_near(const lade__gpu_group *g)
{
	return g->key.in == LADE__NEAR || g->key.out == LADE__NEAR;
}

/* Gives the call's items before 'end' a group; those that are not as they should be fail.
 * Fails: LADE_E_NOMEM */
lade_status lade__gpu_sort(lade__gpu_calling *c, size_t end, lade_error *err);

/* Chooses the way of a group by what has been seen of it, and says why as lade_explain() does. */
void lade__gpu_choose(const lade__gpu_calling *c, lade__gpu_group *g,
                      lade__candidates *candidates);

/* What lade__gpu_choose() asks implementations about. */
lade_workload lade__gpu_workload(const lade__gpu_calling *c, const lade__gpu_group *g);

/* A group of the call's items all together, whatever their places are; those of the first.
 * Fails: when an item is not as it should be */
lade_status lade__gpu_join(const lade__gpu_calling *c, lade__gpu_group *g, lade_error *err);

#endif
