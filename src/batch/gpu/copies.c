/*
 * copies.c: copies outside of waves: a few by the driver, many by a kernel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"

/* One call of the driver for each; where there are no kernels. */
static lade_status copies_by_driver(lade__device *device, lade_stream stream,
                                    const lade_gpu_copy *list, size_t count, lade_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const lade_gpu_copy *c = &list[i];
		lade_status status = LADE_OK;
		if (c->size)
			status = LADE__CU(device, cuMemcpyAsync, c->dst, c->src, c->size, stream);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

/* A few are the driver's; else a kernel takes them all. */
static bool is_drivers(const lade__device *device, size_t count)
{
	return !device->info.kernels || count <= 4;
}

lade_status lade__gpu_copies(lade_engine *engine, lade__device *device, lade_stream stream,
                             lade_gpu_copy *list, size_t count, lade_error *err)
{
	lade_gpu_copies copies = {.count = (uint32_t)count};
	size_t bytes = count * sizeof *list;
	uint64_t pieces = 0;
	lade_status status;
	if (is_drivers(device, count))
		return copies_by_driver(device, stream, list, count, err);
	for (size_t i = 0; i < count; i++) {
		list[i].first = (uint32_t)pieces;
		pieces += lade__gpu_pieces(list[i].size);
	}
	if (pieces == 0)
		return LADE_OK;
	if (pieces > UINT32_MAX / 2)
		return copies_by_driver(device, stream, list, count, err);
	copies.pieces = (uint32_t)pieces;
	status = lade__gpu_alloc(engine, device, stream, bytes, &copies.list, err);
	if (status == LADE_E_NOMEM) /* slower, and it needs none */
		return copies_by_driver(device, stream, list, count, err);
	if (status != LADE_OK)
		return status;
	TRY(lade__gpu_put(device, stream, copies.list, list, bytes, err));
	TRY(lade__gpu_copy_kernel(device, stream, copies, err));
out:
	lade__gpu_free(engine, device, stream, copies.list, bytes);
	return status;
}

/* A device that is entered for some copies, and streams of it, of which 'in' is used. */
typedef struct entered {
	lade__device *device;
	lade__gpu_streams *streams;
} entered;

/* Comes behind the work of the device's default stream. */
static lade_status device_begin(lade_engine *engine, int32_t number, entered *v, lade_error *err)
{
	v->streams = NULL;
	lade_status status = lade__device_use(number, &v->device, err);
	if (status != LADE_OK)
		return status;
	TRY(lade__gpu_streams_take(engine, v->device, &v->streams, err));
	TRY(lade__gpu_streams_follow(v->device, v->streams, v->streams->in, NULL, err));
out:
	if (status != LADE_OK && v->streams)
		lade__gpu_streams_give(engine, v->streams);
	if (status != LADE_OK)
		lade__device_leave(v->device);
	return status;
}

/* Waits for what has been enqueued, of which 'status' is what became. */
static lade_status device_end(lade_engine *engine, const entered *v, lade_status status,
                              lade_error *err)
{
	if (status == LADE_OK)
		status = LADE__CU(v->device, cuStreamSynchronize, v->streams->in);
	if (status != LADE_OK)
		lade__gpu_streams_wait(v->device, v->streams);
	lade__gpu_streams_give(engine, v->streams);
	lade__device_leave(v->device);
	return status;
}

lade_status lade__gpu_copy_now(lade_engine *engine, int32_t number, lade_gpu_copy *list,
                               size_t count, bool pageable, lade_error *err)
{
	entered v;
	lade_status status = count ? device_begin(engine, number, &v, err) : LADE_OK;
	if (status != LADE_OK || count == 0)
		return status;
	if (pageable)
		status = copies_by_driver(v.device, v.streams->in, list, count, err);
	else
		status = lade__gpu_copies(engine, v.device, v.streams->in, list, count, err);
	return device_end(engine, &v, status, err);
}

size_t lade__gpu_boxes_of(lade__gpu_box *list, size_t count, int32_t device)
{
	size_t own = 0;
	for (size_t i = 0; i < count; i++) {
		lade__gpu_box box = list[i];
		if (box.device != device)
			continue;
		list[i] = list[own];
		list[own++] = box;
	}
	return own;
}

lade_status lade__gpu_boxes_now(lade_engine *engine, lade__gpu_box *list, size_t count,
                                lade_error *err)
{
	lade_status status = LADE_OK;
	while (count && status == LADE_OK) {
		entered v;
		size_t own = lade__gpu_boxes_of(list, count, list->device);
		status = device_begin(engine, list->device, &v, err);
		if (status != LADE_OK)
			break;
		status = lade__gpu_boxes(engine, v.device, v.streams->in, list, own, err);
		status = device_end(engine, &v, status, err);
		list += own;
		count -= own;
	}
	return status;
}
