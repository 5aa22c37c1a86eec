/*
 * async.h: what the calls of lade/async.h share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_GPU_ASYNC_H
#define LADE_BATCH_GPU_ASYNC_H

#include "batch/gpu/gpu.h"

/* A call on a stream, as it is enqueued. */
typedef struct lade__async {
	lade_engine *engine;
	lade_async_options options;
	lade__device *device; /* entered */
	lade_stream stream;
	lade__route route;
	bool capturing;
	int mode;            /* of captures, the thread's own */
	lade__address block; /* the workspace: the caller's or the engine's */
	size_t block_size;
} lade__async;

/* Reads the options of a call, which is not open yet. */
lade_status lade__async_read(lade__async *a, lade_engine *engine, const lade_async_options *given,
                             lade_error *err);

/* Opens the call: its device is entered until lade__async_end(). */
lade_status lade__async_open(lade__async *a, lade_error *err);

/* Likewise, with the route of a spec. */
lade_status lade__async_begin(lade__async *a, const lade_spec *spec, lade_direction direction,
                              lade_workload *workload, lade_error *err);

/* Sees to it that the block has 'size' bytes. */
lade_status lade__async_block(lade__async *a, size_t size, lade_error *err);

/* Without effect on a call that is not open. */
void lade__async_end(lade__async *a);

/* Memory for tables on their way: pinned; pageable where they are few bytes, or captured. */
typedef struct lade__async_tables {
	lade__gpu_staging *buffer; /* NULL: pageable */
	uint8_t *tables;
} lade__async_tables;

lade_status lade__async_staging(const lade__async *a, size_t size, lade__async_tables *s,
                                lade_error *err);

/* Gives it back behind what has been enqueued, of which 'status' is what became. */
lade_status lade__async_staged(const lade__async *a, const lade__async_tables *s,
                               lade_status status, lade_error *err);

/* Copies bytes of pinned memory, or few others, which need not stay. */
lade_status lade__async_send(const lade__async *a, lade__address to, const void *from, size_t size,
                             bool pinned, lade_error *err);

/* ---- tables by which units become items ------------------------------------------------------ */

static inline size_t lade__async_first_size(size_t count)
{
	return lade__gpu_round((count + 1) * sizeof(uint32_t));
}

static inline size_t lade__async_wanted_size(size_t unit_count)
{
	return lade__gpu_round(unit_count * sizeof(uint64_t));
}

static inline size_t lade__async_combine_size(size_t count, size_t unit_count)
{
	return lade__async_first_size(count) + lade__async_wanted_size(unit_count) +
	       lade__async_wanted_size(count);
}

#endif
