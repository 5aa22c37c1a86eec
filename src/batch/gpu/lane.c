/*
 * gpu_lane.c: streams, events and pinned memory that an engine keeps for its calls on devices.
 *
 * A call takes a lane, so that calls of several threads do not wait for each other, and gives it
 * back when its work is done.  Pinned memory stays with the lane, since it costs milliseconds to
 * make; device memory is a call's own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"

#include <stdlib.h>

#define EVENT_NO_TIMING 2u
#define PINNED_ALIGN 256u
#define PINNED_GRAIN 4096u

/* A lane that no call uses keeps no more pinned memory than this: what a call with pageable memory
 * on both sides takes, if its items are not larger than some megabytes. */
#define LANE_KEEP ((size_t)256 << 20)

/* Nor more units for each of its slots, with those ahead, than so many. */
#define UNITS_KEEP ((size_t)1 << 13)

/* Sheets have a power of two bytes from this on: they are never taken for larger ones, which would
 * give pinned memory back, and for that the driver waits for all work of the device. */
#define SHEET_LEAST ((size_t)16 << 10)

/* Of the sheets that are not free yet so many are asked whether they are by now. */
#define SHEET_TRIES 8
#define STREAM_NON_BLOCKING 1u

static void pinned_free(lade_engine *engine, int32_t device, lade__block *block)
{
	const lade_allocator *a = &engine->allocators[LADE_PINNED];
	if (block->data)
		a->free(a->ctx, block->data, block->size, PINNED_ALIGN,
		        (lade_place){LADE_PINNED, device}, NULL);
	*block = (lade__block){NULL, 0};
}

static lade_status pinned_new(lade_engine *engine, int32_t device, lade__block *block, size_t size,
                              lade_error *err)
{
	const lade_allocator *a = &engine->allocators[LADE_PINNED];
	if (a->alloc)
		block->data = a->alloc(a->ctx, size, PINNED_ALIGN,
		                       (lade_place){LADE_PINNED, device}, NULL);
	if (!block->data)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "device %d: no %zu bytes of pinned memory", (int)device, size);
	block->size = size;
	return LADE_OK;
}

/* Pinned memory of at least 'size' bytes in place of a block's. */
static lade_status pinned_grow(lade_engine *engine, int32_t device, lade__block *block, size_t size,
                               lade_error *err)
{
	if (block->size >= size)
		return LADE_OK;
	pinned_free(engine, device, block);
	/* Some more, so that a growing use does not ask each time. */
	return pinned_new(engine, device, block,
	                  (size + size / 4 + PINNED_GRAIN - 1) / PINNED_GRAIN * PINNED_GRAIN, err);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* All streams of a lane. */
#define STREAMS (2 + LADE__GPU_STREAMS)

static lade_stream *stream_at(lade__gpu_lane *lane, unsigned i)
{
	return i == 0 ? &lane->in : i == 1 ? &lane->out : &lane->kernels[i - 2];
}

static void list_free(lade__gpu_list *list)
{
	free(list->unit);
	*list = (lade__gpu_list){0};
}

static void event_free(lade__device *device, void *event)
{
	if (event)
		device->driver->cuEventDestroy(event);
}

/* In a forked process the driver is lost; what it gave is the parent's. */
static void lane_free(lade_engine *engine, lade__gpu_lane *lane)
{
	lade__device *device;
	if (lade__device_use(lane->device, &device, NULL) == LADE_OK) {
		for (int i = 0; i < LADE__GPU_SLOTS; i++) {
			lade__gpu_slot *slot = &lane->slot[i];
			pinned_free(engine, lane->device, &slot->pinned);
			event_free(device, slot->copied);
			event_free(device, slot->made);
			event_free(device, slot->told);
			event_free(device, slot->done);
		}
		for (unsigned i = 0; i < STREAMS; i++)
			if (*stream_at(lane, i))
				device->driver->cuStreamDestroy(*stream_at(lane, i));
		event_free(device, lane->begin);
		lade__device_leave(device);
	}
	for (int i = 0; i < LADE__GPU_SLOTS; i++)
		list_free(&lane->slot[i].units);
	list_free(&lane->ahead);
	free(lane);
}

static lade_status lane_new(lade_engine *engine, lade__device *device, lade__gpu_lane **out,
                            lade_error *err)
{
	lade__gpu_lane *lane = calloc(1, sizeof *lane);
	int least = 0, greatest = 0; /* priorities: the greatest is the lowest number */
	lade_status status;
	if (!lane)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a device's lane");
	lane->device = device->number;
	TRY(LADE__CU(device, cuEventCreate, &lane->begin, EVENT_NO_TIMING));
	for (int i = 0; i < LADE__GPU_SLOTS; i++) {
		lade__gpu_slot *slot = &lane->slot[i];
		TRY(LADE__CU(device, cuEventCreate, &slot->copied, EVENT_NO_TIMING));
		TRY(LADE__CU(device, cuEventCreate, &slot->made, EVENT_NO_TIMING));
		TRY(LADE__CU(device, cuEventCreate, &slot->told, EVENT_NO_TIMING));
		TRY(LADE__CU(device, cuEventCreate, &slot->done, EVENT_NO_TIMING));
	}
	TRY(LADE__CU(device, cuCtxGetStreamPriorityRange, &least, &greatest));
	lane->least = least;
	for (unsigned i = 0; i < 2; i++)
		TRY(LADE__CU(device, cuStreamCreateWithPriority, stream_at(lane, i),
		             STREAM_NON_BLOCKING, greatest));
	*out = lane;
	return LADE_OK;
out:
	lane_free(engine, lane);
	return status;
}

/* ---- what an engine keeps -------------------------------------------------------------------- */

static void sheet_free(lade_engine *engine, lade__gpu_sheet *sheet)
{
	lade__device *device;
	if (lade__device_use(sheet->device, &device, NULL) == LADE_OK) {
		if (sheet->event) {
			device->driver->cuEventSynchronize(sheet->event);
			device->driver->cuEventDestroy(sheet->event);
		}
		pinned_free(engine, sheet->device, &sheet->pinned);
		lade__device_leave(device);
	}
	free(sheet);
}

/* Frees the lanes and sheets that no call uses. */
static void give_back(lade_engine *engine, const lade__kept *kept)
{
	lade__gpu_lane *lane_next;
	for (lade__gpu_lane *lane = kept->lanes; lane; lane = lane_next) {
		lane_next = lane->next;
		lane_free(engine, lane);
	}
	lade__gpu_sheet *sheet_next;
	for (lade__gpu_sheet *sheet = kept->sheets; sheet; sheet = sheet_next) {
		sheet_next = sheet->next;
		sheet_free(engine, sheet);
	}
}

lade_status lade__gpu_lane_take(lade_engine *engine, lade__device *device, lade__gpu_lane **lane,
                                lade_error *err)
{
	*lane = NULL;
	lade__engine_after_fork(engine);
	pthread_mutex_lock(&engine->workers_mutex);
	for (lade__gpu_lane **at = &engine->devices.lanes; *at; at = &(*at)->next) {
		if ((*at)->device == device->number) {
			*lane = *at;
			*at = (*at)->next;
			break;
		}
	}
	pthread_mutex_unlock(&engine->workers_mutex);
	return *lane ? LADE_OK : lane_new(engine, device, lane, err);
}

void lade__gpu_lane_give(lade_engine *engine, lade__gpu_lane *lane)
{
	size_t kept = 0;
	for (int i = 0; i < LADE__GPU_SLOTS; i++) {
		lade__block *pinned = &lane->slot[i].pinned;
		if (pinned->size > LANE_KEEP - kept)
			pinned_free(engine, lane->device, pinned);
		kept += pinned->size;
		if (lane->slot[i].units.cap > UNITS_KEEP)
			list_free(&lane->slot[i].units);
	}
	if (lane->ahead.cap > UNITS_KEEP)
		list_free(&lane->ahead);
	pthread_mutex_lock(&engine->workers_mutex);
	lane->next = engine->devices.lanes;
	engine->devices.lanes = lane;
	engine->devices.give_back = give_back;
	pthread_mutex_unlock(&engine->workers_mutex);
}

lade_status lade__gpu_lane_follow(lade__device *device, lade__gpu_lane *lane, lade_stream own,
                                  lade_stream stream, lade_error *err)
{
	int capturing = 0;
	lade_status status;
	TRY(LADE__CU(device, cuStreamIsCapturing, stream, &capturing));
	if (capturing)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "the stream is being captured, and this call waits: use "
		                 "lade_decode_async() or lade_encode_async()");
	TRY(LADE__CU(device, cuEventRecord, lane->begin, stream));
	TRY(LADE__CU(device, cuStreamWaitEvent, own, lane->begin, 0));
out:
	return status;
}

lade_status lade__gpu_lane_kernels(lade__device *device, lade__gpu_lane *lane, size_t wave,
                                   lade_stream *out, lade_error *err)
{
	lade_stream *stream = &lane->kernels[wave % LADE__GPU_STREAMS];
	lade_status status = LADE_OK;
	if (!*stream)
		status = LADE__CU(device, cuStreamCreateWithPriority, stream, STREAM_NON_BLOCKING,
		                  lane->least);
	*out = *stream;
	return status;
}

void lade__gpu_lane_wait(lade__device *device, lade__gpu_lane *lane)
{
	for (unsigned i = 0; i < STREAMS; i++)
		if (*stream_at(lane, i))
			device->driver->cuStreamSynchronize(*stream_at(lane, i));
}

lade_status lade__gpu_slot_pinned(lade_engine *engine, lade__gpu_lane *lane, unsigned slot,
                                  size_t size, lade_error *err)
{
	return pinned_grow(engine, lane->device, &lane->slot[slot].pinned, size, err);
}

/* ---- sheets ---------------------------------------------------------------------------------- */

/* One of 'size' bytes that the device has done with.  Those that were given back first come
 * first. */
static lade__gpu_sheet *sheet_find(lade_engine *engine, lade__device *device, size_t size)
{
	lade__gpu_sheet *sheet = NULL;
	int tries = 0;
	lade__engine_after_fork(engine);
	pthread_mutex_lock(&engine->workers_mutex);
	for (lade__gpu_sheet **at = &engine->devices.sheets; *at && tries < SHEET_TRIES;
	     at = &(*at)->next) {
		if ((*at)->device != device->number || (*at)->pinned.size != size)
			continue;
		tries++;
		if (device->driver->cuEventQuery((*at)->event) == 0) {
			sheet = *at;
			*at = sheet->next;
			break;
		}
	}
	pthread_mutex_unlock(&engine->workers_mutex);
	return sheet;
}

lade_status lade__gpu_sheet_take(lade_engine *engine, lade__device *device, size_t size,
                                 lade__gpu_sheet **out, lade_error *err)
{
	size_t want = SHEET_LEAST;
	lade_status status;
	*out = NULL;
	while (want < size && want <= SIZE_MAX / 2)
		want *= 2;
	lade__gpu_sheet *sheet = sheet_find(engine, device, want);
	if (sheet) {
		*out = sheet;
		return LADE_OK;
	}
	sheet = calloc(1, sizeof *sheet);
	if (!sheet)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a device's tables");
	sheet->device = device->number;
	TRY(LADE__CU(device, cuEventCreate, &sheet->event, EVENT_NO_TIMING));
	TRY(pinned_new(engine, device->number, &sheet->pinned, want, err));
	*out = sheet;
	return LADE_OK;
out:
	sheet_free(engine, sheet);
	return status;
}

lade_status lade__gpu_sheet_give(lade_engine *engine, lade__device *device, lade_stream stream,
                                 lade__gpu_sheet *sheet, lade_error *err)
{
	lade_status status = LADE__CU(device, cuEventRecord, sheet->event, stream);
	/* Nobody will tell when the sheet is free. */
	if (status != LADE_OK)
		device->driver->cuStreamSynchronize(stream);
	sheet->next = NULL;
	pthread_mutex_lock(&engine->workers_mutex);
	lade__gpu_sheet **last = &engine->devices.sheets;
	while (*last)
		last = &(*last)->next;
	*last = sheet;
	engine->devices.give_back = give_back;
	pthread_mutex_unlock(&engine->workers_mutex);
	return status;
}

/* ---- device memory --------------------------------------------------------------------------- */

lade_status lade__gpu_alloc(const lade_engine *engine, lade__device *device, lade_stream stream,
                            size_t size, lade__address *out, lade_error *err)
{
	const lade_allocator *a = &engine->allocators[LADE_DEVICE];
	lade_place place = {LADE_DEVICE, device->number};
	void *block = a->alloc ? a->alloc(a->ctx, size, LADE__GPU_ALIGN, place, stream) : NULL;
	*out = lade__address_of(block);
	if (block && *out % LADE__GPU_ALIGN == 0)
		return LADE_OK;
	if (block)
		a->free(a->ctx, block, size, LADE__GPU_ALIGN, place, stream);
	*out = 0;
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                 "device %d: no %zu bytes of device memory", (int)device->number, size);
}

void lade__gpu_free(const lade_engine *engine, lade__device *device, lade_stream stream,
                    lade__address block, size_t size)
{
	const lade_allocator *a = &engine->allocators[LADE_DEVICE];
	if (block)
		a->free(a->ctx, (void *)(uintptr_t)block, size, LADE__GPU_ALIGN,
		        (lade_place){LADE_DEVICE, device->number}, stream);
}
