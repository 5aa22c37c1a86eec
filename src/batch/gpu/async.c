/*
 * async.c: how calls on a stream begin and end, and their results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/gpu/async.h"

#include "base/options.h"
#include "base/try.h"
#include "array/given.h"

#include <stdlib.h>

/* The driver takes tables of at most this size from pageable memory at once, which is cheaper
 * than pinned memory; under capture, and where copies would read that memory later, they go in
 * kernels' arguments. */
#define PUT_MAX ((size_t)3 * 8 * LADE_PUT_WORDS)

lade_status lade__async_read(lade__async *a, lade_engine *engine, const lade_async_options *given,
                             lade_error *err)
{
	lade_async_options *o = &a->options;
	a->engine = engine;
	a->device = NULL;
	a->block = 0;
	a->block_size = 0;
	if (!engine)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "engine is NULL");
	if (!given)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "options is NULL: they name the device and its stream");
	lade_status status = lade__options_read(o, sizeof *o, given, "async options", err);
	if (status != LADE_OK)
		return status;
	if (o->flags > (LADE_ASYNC_HOST_TABLES | LADE_ASYNC_DEVICE_SIZES) ||
	    o->flags == LADE_ASYNC_DEVICE_SIZES)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "async options: flags 0x%x are not possible", o->flags);
	if ((uintptr_t)o->workspace % LADE__GPU_ALIGN)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the workspace is not aligned to %u bytes", LADE__GPU_ALIGN);
	if ((uintptr_t)o->sizes % 8 || (uintptr_t)o->statuses % 4)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "sizes must be aligned to 8 bytes and statuses to 4");
	return LADE_OK;
}

static void async_leave(lade__async *a)
{
	a->device->driver->cuThreadExchangeStreamCaptureMode(&a->mode);
	lade__device_leave(a->device);
	a->device = NULL;
}

lade_status lade__async_open(lade__async *a, lade_error *err)
{
	void *context = NULL;
	int capturing = 0;
	lade_status status;
	a->mode = LADE__CAPTURE_RELAXED;
	TRY(lade__device_use(a->options.device, &a->device, err));
	a->stream = a->options.stream;
	/* Memory and events of the engine's have nothing to do with what others capture. */
	status = LADE__CU(a->device, cuThreadExchangeStreamCaptureMode, &a->mode);
	if (status != LADE_OK) {
		lade__device_leave(a->device);
		a->device = NULL;
		return status;
	}
	if (a->stream)
		TRY(LADE__CU(a->device, cuStreamGetCtx, a->stream, &context));
	if (context && context != a->device->context) {
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "the stream is not one of device %d's primary context",
		                   (int)a->options.device);
		goto out;
	}
	TRY(LADE__CU(a->device, cuStreamIsCapturing, a->stream, &capturing));
	a->capturing = capturing != 0;
out:
	if (status != LADE_OK && a->device)
		async_leave(a);
	return status;
}

lade_status lade__async_begin(lade__async *a, const lade_spec *spec, lade_direction direction,
                              lade_workload *workload, lade_error *err)
{
	if (!spec)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "spec is NULL");
	workload->src = workload->dst = (lade_place){LADE_DEVICE, a->options.device};
	a->route = lade__route_of(spec, direction, LADE_DEVICE);
	lade_status status = lade__route_make(a->engine, workload, &a->route, NULL, err);
	return status == LADE_OK ? lade__async_open(a, err) : status;
}

lade_status lade__async_block(lade__async *a, size_t size, lade_error *err)
{
	if (size == 0)
		return LADE_OK;
	if (a->options.workspace) {
		a->block = lade__address_of(a->options.workspace);
		a->block_size = a->options.workspace_size;
		if (a->block_size >= size)
			return LADE_OK;
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the workspace has %zu bytes, %zu are needed "
		                 "(see lade_workspace_size())",
		                 a->block_size, size);
	}
	if (a->capturing)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "the stream is being captured: give a workspace of %zu bytes",
		                 size);
	a->block_size = size;
	return lade__gpu_alloc(a->engine, a->device, a->stream, size, &a->block, err);
}

void lade__async_end(lade__async *a)
{
	if (!a->device)
		return;
	if (!a->options.workspace)
		lade__gpu_free(a->engine, a->device, a->stream, a->block, a->block_size);
	async_leave(a);
}

/* ---- tables ---------------------------------------------------------------------------------- */

lade_status lade__async_send(const lade__async *a, lade__address to, const void *from, size_t size,
                             bool pinned, lade_error *err)
{
	if (!pinned && (a->capturing || a->device->reads_pageable))
		return lade__gpu_put(a->device, a->stream, to, from, size, err);
	return LADE__CU(a->device, cuMemcpyHtoDAsync, to, from, size, a->stream);
}

lade_status lade__async_staging(const lade__async *a, size_t size, lade__async_tables *s,
                                lade_error *err)
{
	*s = (lade__async_tables){NULL, NULL};
	if (size > PUT_MAX && !a->capturing) {
		lade_status status =
			lade__gpu_staging_take(a->engine, a->device, size, &s->buffer, err);
		s->tables = status == LADE_OK ? s->buffer->pinned.data : NULL;
		return status;
	}
	s->tables = malloc(size);
	return s->tables ? LADE_OK
	                 : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                             "no memory for %zu bytes of tables", size);
}

lade_status lade__async_staged(const lade__async *a, const lade__async_tables *s,
                               lade_status status, lade_error *err)
{
	if (!s->buffer) {
		free(s->tables);
		return status;
	}
	lade_status given = lade__gpu_staging_give(a->engine, a->device, a->stream, s->buffer,
	                                           status == LADE_OK ? err : NULL);
	return status == LADE_OK ? given : status;
}

/* ---- results --------------------------------------------------------------------------------- */

lade_status lade_results_get(const lade_async_options *options, size_t count,
                             lade_result *results, lade_error *err)
{
	lade__device *d;
	lade_async_options o;
	uint64_t *sizes = NULL;
	uint32_t *statuses = NULL;
	int capturing = 0;
	lade_status status;
	TRY(lade__options_read(&o, sizeof o, options, "async options", err));
	TRY(lade__size_given(&o.result_size, LADE__RESULT_0_2, "result_size", err));
	TRY(lade__device_use(o.device, &d, err));
	status = LADE__CU(d, cuStreamIsCapturing, o.stream, &capturing);
	if (status == LADE_OK && capturing)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   "the stream is being captured, and this call waits");
	if (status != LADE_OK) {
		lade__device_leave(d);
		return status;
	}
	sizes = calloc(count ? count : 1, sizeof *sizes);
	statuses = calloc(count ? count : 1, sizeof *statuses);
	if (!sizes || !statuses) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu results",
		                   count);
		goto leave;
	}
	if (o.sizes && count)
		status = LADE__CU(d, cuMemcpyDtoHAsync, sizes, lade__address_of(o.sizes),
		                  count * sizeof *sizes, o.stream);
	if (status == LADE_OK && o.statuses && count)
		status = LADE__CU(d, cuMemcpyDtoHAsync, statuses, lade__address_of(o.statuses),
		                  count * sizeof *statuses, o.stream);
	if (status == LADE_OK)
		status = LADE__CU(d, cuStreamSynchronize, o.stream);
	if (status != LADE_OK) {
		/* A copy to host memory may still be under way when another one failed. */
		d->driver->cuStreamSynchronize(o.stream);
		goto leave;
	}
	for (size_t i = 0; i < count; i++) {
		lade_result own = {(lade_status)statuses[i], (size_t)sizes[i]};
		if (results)
			lade__struct_copy((unsigned char *)results + i * o.result_size,
			                  o.result_size, &own, sizeof own);
		if (own.status != LADE_OK && status == LADE_OK)
			status = lade_fail(err, own.status, LADE_NO_OFFSET, "item %zu: %s", i,
			                   lade_status_text(own.status));
	}
leave:
	free(sizes);
	free(statuses);
	lade__device_leave(d);
out:
	return status;
}
