/*
 * group.c: runs a group whose bytes are on a device, or that goes to one: by kernels, or by the
 * host through pinned memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"

#include <stdlib.h>

lade_status lade__gpu_fetch(int32_t device, const void *from, size_t size, void *to,
                            lade_error *err)
{
	lade__device *d;
	lade_status status = lade__device_use(device, &d, err);
	if (status != LADE_OK)
		return status;
	TRY(LADE__CU(d, cuMemcpyDtoHAsync, to, lade__address_of(from), size, NULL));
	TRY(LADE__CU(d, cuStreamSynchronize, NULL));
out:
	lade__device_leave(d);
	return status;
}

/* Leaves the items of a group that its device has not done to the host where it may do them, for
 * want of memory or of the device; else they fail so. */
static void leave_rest(lade__planner *p, lade__group *g, lade_status status, const lade_error *why,
                       bool host)
{
	host = host && p->call->options->where == LADE_WHERE_AUTO &&
	       g->where.host_status == LADE_OK;
	for (size_t i = 0; i < p->count; i++) {
		if (lade__planner_waits(p, i) != g)
			continue;
		if (host) {
			lade__planner_to_host(p, g, i);
			continue;
		}
		lade__planner_done(p, i);
		lade__outcome_failed(p->outcome, i, status, why);
	}
}

/* Fails: when the call as a whole does */
static lade_status run_kernels(lade__planner *p, lade__group *g, lade__device *device,
                               lade_error *err)
{
	lade_error why;
	lade__gpu_feed feed = lade__gpu_feed_of(p, g);
	lade_status own = lade__gpu_run(&feed, device, &why), status = LADE_OK;
	lade__gpu_feed_end(&feed);
	if (own == LADE_OK)
		return LADE_OK;
	/* The others of the group share the failure, but for those that are not the device's. */
	status = lade__gpu_feed_rest(&feed, err);
	if (status == LADE_OK)
		leave_rest(p, g, own, &why, own == LADE_E_NOMEM);
	return status;
}

/* Runs what the host does of a group with bytes on an entered device.  Fails: LADE_E_NOMEM */
static lade_status run_host(lade__planner *p, lade__group *g, lade__device *device, lade_error *err)
{
	size_t most = g->where.on_device ? g->host_count : g->count, n = 0;
	lade_error why;
	if (most == 0)
		return LADE_OK;
	size_t *index = malloc(most * sizeof *index);
	if (!index)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to plan %zu items",
		                 p->count);
	for (size_t i = 0; i < p->count && n < most; i++)
		if (lade__planner_for_host(p, i) == g)
			index[n++] = i;
	lade_status status = lade__gpu_via_host(p, g, index, n, device, &why);
	for (size_t i = 0; status != LADE_OK && i < n; i++)
		lade__outcome_failed(p->outcome, index[i], status, &why);
	free(index);
	return LADE_OK;
}

lade_status lade__gpu_group_run(lade__planner *p, lade__group *g, lade_error *err)
{
	bool device_bytes = lade__group_on_device(g);
	lade__device *device;
	lade_error why;
	lade_status status = lade__device_use(g->key.device, &device, &why);
	if (status != LADE_OK) {
		/* Without its device nothing reaches bytes there; the host's own need none. */
		lade__gpu_feed feed = lade__gpu_feed_of(p, g);
		lade_status rest = g->where.on_device ? lade__gpu_feed_rest(&feed, err) : LADE_OK;
		for (size_t i = 0; device_bytes && i < p->count; i++)
			if (lade__planner_for_host(p, i) == g) {
				lade__planner_done(p, i);
				lade__outcome_failed(p->outcome, i, status, &why);
			}
		if (rest == LADE_OK)
			leave_rest(p, g, status, &why, !device_bytes);
		return rest;
	}
	status = LADE_OK;
	if (g->where.on_device)
		TRY(run_kernels(p, g, device, err));
	if (device_bytes)
		TRY(run_host(p, g, device, err));
out:
	lade__device_leave(device);
	return status;
}
