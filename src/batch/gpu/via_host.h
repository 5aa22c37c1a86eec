/*
 * via_host.h: items that the host runs and whose bytes are on a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_GPU_VIA_HOST_H
#define LADE_BATCH_GPU_VIA_HOST_H

#include "batch/gpu/gpu.h"

/* An item of a wave: with its spans replaced by those in pinned memory. */
typedef struct lade__via_item {
	lade_item item;
	size_t in, out; /* bytes of pinned memory that it needs */
	/* Of a placed item: outputs that are boxes in pinned memory where the item's are on a
	 * device, with layouts of their own; the host's are as they were. */
	lade_item_output *outputs;
	lade_layout *layouts;
	lade_layout gathered; /* of a source */
	lade_segment
		*segment; /* the replaced ones; the item's own table where none is on a device */
	lade_status status;
	size_t size;
	lade_error error;
} lade__via_item;

typedef struct lade__via_host {
	lade_engine *engine;
	const lade__route *route, *tail;
	lade__device *device;
	lade__gpu_streams *streams;
	const lade_item *items; /* the call's */
	const size_t *index;    /* of those to run */
	size_t count;
	lade__job_options job;
	unsigned threads;
	lade__outcome *outcome;
} lade__via_host;

typedef struct lade__via_wave {
	size_t first, count;
	lade__via_item *item;
	lade_segment *segments;
	lade_gpu_copy *copies;
	size_t copy_count, copy_cap;
	lade__gpu_box *boxes;
	size_t box_count, box_cap;
} lade__via_wave;

static inline const lade_item *lade__via_at(const lade__via_host *h, size_t k)
{
	return &h->items[h->index[k]];
}

/* The bytes of pinned memory that an item's sources and results need. */
void lade__via_measure(const lade__via_host *h, const lade_item *item, size_t *in, size_t *out);

/* Replaces the sources on a device by pinned memory, and notes the copies that bring them.  The
 * driver brings those on another device, at once; kernels do not reach them. */
lade_status lade__via_in(const lade__via_host *h, lade__via_wave *w, lade__via_item *c,
                         uint8_t *pinned, lade_stream stream, lade_error *err);

/* Replaces the destinations on a device by pinned memory; those of layouts by boxes without
 * gaps. */
lade_status lade__via_out(const lade__via_host *h, lade__via_item *c, uint8_t *pinned,
                          lade_error *err);

/* Notes the copies of an item's results. */
lade_status lade__via_results(const lade__via_host *h, lade__via_wave *w, const lade__via_item *c,
                              const lade_item *item, lade_error *err);

#endif
