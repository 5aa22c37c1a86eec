/*
 * streams.c: streams, events and pinned memory that an engine keeps for its calls on devices.
 *
 * A call takes a set, so that calls of several threads do not wait for each other, and gives it
 * back when its work is done.  Pinned memory stays with the set, since it costs milliseconds to
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

/* A set that no call uses keeps no more pinned memory than this: what a call with pageable memory
 * on both sides takes, if its items are not larger than some megabytes.  Nor do all staging buffers
 * that lade__gpu_pinned_kept() gave. */
#define PINNED_KEEP ((size_t)256 << 20)

/* Nor more units for each of its flights, with those pending, than these. */
#define UNITS_KEEP ((size_t)1 << 13)

/* Staging buffers have a power of two bytes, these at least.  They never grow: that would give
 * pinned memory back, and for that the driver waits for all work of the device. */
#define STAGING_LEAST ((size_t)16 << 10)

/* Large ones are of lade__gpu_pinned_kept(): the tables of calls are smaller. */
#define KEPT_LARGE ((size_t)1 << 20)

/* Of the staging buffers in use this many are asked whether they are free by now. */
#define STAGING_TRIES 8
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

/* ---- stream sets ----------------------------------------------------------------------------- */

/* All streams of a set. */
#define STREAMS (2 + LADE__GPU_KERNEL_STREAMS)

static lade_stream *stream_at(lade__gpu_streams *set, unsigned i)
{
	return i == 0 ? &set->in : i == 1 ? &set->out : &set->kernels[i - 2];
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
static void streams_free(lade_engine *engine, lade__gpu_streams *set)
{
	lade__device *device;
	if (lade__device_use(set->device, &device, NULL) == LADE_OK) {
		for (int i = 0; i < LADE__GPU_FLIGHTS; i++) {
			lade__gpu_flight *flight = &set->flight[i];
			pinned_free(engine, set->device, &flight->pinned);
			event_free(device, flight->copied);
			event_free(device, flight->made);
			event_free(device, flight->sized);
			event_free(device, flight->done);
		}
		for (unsigned i = 0; i < STREAMS; i++)
			if (*stream_at(set, i))
				device->driver->cuStreamDestroy(*stream_at(set, i));
		event_free(device, set->begin);
		lade__device_leave(device);
	}
	for (int i = 0; i < LADE__GPU_FLIGHTS; i++)
		list_free(&set->flight[i].units);
	list_free(&set->pending);
	free(set);
}

static lade_status streams_new(lade_engine *engine, lade__device *device, lade__gpu_streams **out,
                               lade_error *err)
{
	lade__gpu_streams *set = calloc(1, sizeof *set);
	int least = 0, greatest = 0; /* priorities: the greatest is the lowest number */
	lade_status status;
	if (!set)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a device's set");
	set->device = device->number;
	TRY(LADE__CU(device, cuEventCreate, &set->begin, EVENT_NO_TIMING));
	for (int i = 0; i < LADE__GPU_FLIGHTS; i++) {
		lade__gpu_flight *flight = &set->flight[i];
		TRY(LADE__CU(device, cuEventCreate, &flight->copied, EVENT_NO_TIMING));
		TRY(LADE__CU(device, cuEventCreate, &flight->made, EVENT_NO_TIMING));
		TRY(LADE__CU(device, cuEventCreate, &flight->sized, EVENT_NO_TIMING));
		TRY(LADE__CU(device, cuEventCreate, &flight->done, EVENT_NO_TIMING));
	}
	TRY(LADE__CU(device, cuCtxGetStreamPriorityRange, &least, &greatest));
	set->least = least;
	for (unsigned i = 0; i < 2; i++)
		TRY(LADE__CU(device, cuStreamCreateWithPriority, stream_at(set, i),
		             STREAM_NON_BLOCKING, greatest));
	*out = set;
	return LADE_OK;
out:
	streams_free(engine, set);
	return status;
}

/* ---- what an engine keeps -------------------------------------------------------------------- */

static void staging_free(lade_engine *engine, lade__gpu_staging *staging)
{
	lade__device *device;
	if (lade__device_use(staging->device, &device, NULL) == LADE_OK) {
		if (staging->event) {
			device->driver->cuEventSynchronize(staging->event);
			device->driver->cuEventDestroy(staging->event);
		}
		pinned_free(engine, staging->device, &staging->pinned);
		lade__device_leave(device);
	}
	free(staging);
}

/* Frees the stream sets and staging buffers that no call uses. */
static void give_back(lade_engine *engine, const lade__kept *kept)
{
	lade__gpu_streams *set_next;
	for (lade__gpu_streams *set = kept->streams; set; set = set_next) {
		set_next = set->next;
		streams_free(engine, set);
	}
	lade__gpu_staging *staging_next;
	for (lade__gpu_staging *staging = kept->staging; staging; staging = staging_next) {
		staging_next = staging->next;
		staging_free(engine, staging);
	}
}

lade_status lade__gpu_streams_take(lade_engine *engine, lade__device *device,
                                   lade__gpu_streams **set, lade_error *err)
{
	*set = NULL;
	lade__engine_after_fork(engine);
	pthread_mutex_lock(&engine->workers_mutex);
	for (lade__gpu_streams **at = &engine->devices.streams; *at; at = &(*at)->next) {
		if ((*at)->device == device->number) {
			*set = *at;
			*at = (*at)->next;
			break;
		}
	}
	pthread_mutex_unlock(&engine->workers_mutex);
	return *set ? LADE_OK : streams_new(engine, device, set, err);
}

void lade__gpu_streams_give(lade_engine *engine, lade__gpu_streams *set)
{
	size_t kept = 0;
	for (int i = 0; i < LADE__GPU_FLIGHTS; i++) {
		lade__block *pinned = &set->flight[i].pinned;
		if (pinned->size > PINNED_KEEP - kept)
			pinned_free(engine, set->device, pinned);
		kept += pinned->size;
		if (set->flight[i].units.cap > UNITS_KEEP)
			list_free(&set->flight[i].units);
	}
	if (set->pending.cap > UNITS_KEEP)
		list_free(&set->pending);
	pthread_mutex_lock(&engine->workers_mutex);
	set->next = engine->devices.streams;
	engine->devices.streams = set;
	engine->devices.give_back = give_back;
	pthread_mutex_unlock(&engine->workers_mutex);
}

lade_status lade__gpu_streams_follow(lade__device *device, lade__gpu_streams *set, lade_stream own,
                                     lade_stream stream, lade_error *err)
{
	int capturing = 0;
	lade_status status;
	TRY(LADE__CU(device, cuStreamIsCapturing, stream, &capturing));
	if (capturing)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "the stream is being captured, and this call waits: use "
		                 "lade_decode_async() or lade_encode_async()");
	TRY(LADE__CU(device, cuEventRecord, set->begin, stream));
	TRY(LADE__CU(device, cuStreamWaitEvent, own, set->begin, 0));
out:
	return status;
}

lade_status lade__gpu_streams_kernels(lade__device *device, lade__gpu_streams *set, size_t wave,
                                      lade_stream *out, lade_error *err)
{
	lade_stream *stream = &set->kernels[wave % LADE__GPU_KERNEL_STREAMS];
	lade_status status = LADE_OK;
	if (!*stream)
		status = LADE__CU(device, cuStreamCreateWithPriority, stream, STREAM_NON_BLOCKING,
		                  set->least);
	*out = *stream;
	return status;
}

void lade__gpu_streams_wait(lade__device *device, lade__gpu_streams *set)
{
	for (unsigned i = 0; i < STREAMS; i++)
		if (*stream_at(set, i))
			device->driver->cuStreamSynchronize(*stream_at(set, i));
}

lade_status lade__gpu_flight_pinned(lade_engine *engine, lade__gpu_streams *set, unsigned flight,
                                    size_t size, lade_error *err)
{
	return pinned_grow(engine, set->device, &set->flight[flight].pinned, size, err);
}

/* ---- staging buffers ------------------------------------------------------------------------- */

/* One of 'size' bytes that the device has done with.  Those that were given back first come
 * first. */
static lade__gpu_staging *staging_find(lade_engine *engine, lade__device *device, size_t size)
{
	lade__gpu_staging *staging = NULL;
	int tries = 0;
	lade__engine_after_fork(engine);
	pthread_mutex_lock(&engine->workers_mutex);
	for (lade__gpu_staging **at = &engine->devices.staging; *at && tries < STAGING_TRIES;
	     at = &(*at)->next) {
		if ((*at)->device != device->number || (*at)->pinned.size != size)
			continue;
		tries++;
		if (device->driver->cuEventQuery((*at)->event) == 0) {
			staging = *at;
			*at = staging->next;
			break;
		}
	}
	pthread_mutex_unlock(&engine->workers_mutex);
	return staging;
}

static lade_status staging_new(lade_engine *engine, lade__device *device, size_t size,
                               lade__gpu_staging **out, lade_error *err)
{
	lade_status status;
	lade__gpu_staging *staging = calloc(1, sizeof *staging);
	if (!staging)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a device's tables");
	staging->device = device->number;
	TRY(LADE__CU(device, cuEventCreate, &staging->event, EVENT_NO_TIMING));
	TRY(pinned_new(engine, device->number, &staging->pinned, size, err));
	*out = staging;
	return LADE_OK;
out:
	staging_free(engine, staging);
	return status;
}

static size_t staging_size(size_t size)
{
	size_t want = STAGING_LEAST;
	while (want < size && want <= SIZE_MAX / 2)
		want *= 2;
	return want;
}

lade_status lade__gpu_staging_take(lade_engine *engine, lade__device *device, size_t size,
                                   lade__gpu_staging **out, lade_error *err)
{
	const size_t want = staging_size(size);
	*out = staging_find(engine, device, want);
	return *out ? LADE_OK : staging_new(engine, device, want, out, err);
}

/* Puts one behind the others that nobody uses. */
static void staging_keep(lade_engine *engine, lade__gpu_staging *staging)
{
	lade__gpu_staging **last = &engine->devices.staging;
	while (*last)
		last = &(*last)->next;
	staging->next = NULL;
	*last = staging;
	engine->devices.give_back = give_back;
}

lade_status lade__gpu_staging_give(lade_engine *engine, lade__device *device, lade_stream stream,
                                   lade__gpu_staging *staging, lade_error *err)
{
	lade_status status = LADE__CU(device, cuEventRecord, staging->event, stream);
	/* Nobody will report when the staging is free. */
	if (status != LADE_OK)
		device->driver->cuStreamSynchronize(stream);
	pthread_mutex_lock(&engine->workers_mutex);
	staging_keep(engine, staging);
	pthread_mutex_unlock(&engine->workers_mutex);
	return status;
}

/* ---- an allocator of them ------------------------------------------------------------------- */

/* The smallest of those that are kept and large enough: pinned memory of any size beats new one. */
static lade__gpu_staging *kept_find(lade_engine *engine, lade__device *device, size_t size)
{
	lade__gpu_staging **best = NULL;
	lade__engine_after_fork(engine);
	pthread_mutex_lock(&engine->workers_mutex);
	for (lade__gpu_staging **at = &engine->devices.staging; *at; at = &(*at)->next)
		if ((*at)->device == device->number && (*at)->pinned.size >= size &&
		    (!best || (*at)->pinned.size < (*best)->pinned.size) &&
		    device->driver->cuEventQuery((*at)->event) == 0)
			best = at;
	lade__gpu_staging *staging = best ? *best : NULL;
	if (best)
		*best = staging->next;
	pthread_mutex_unlock(&engine->workers_mutex);
	return staging;
}

static void *kept_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream)
{
	lade_engine *engine = ctx;
	lade__device *device;
	(void)stream;
	if (align > PINNED_ALIGN || lade__device_use(place.device, &device, NULL) != LADE_OK)
		return NULL;
	lade__gpu_staging *staging = kept_find(engine, device, size);
	if (!staging)
		staging_new(engine, device, staging_size(size), &staging, NULL);
	lade__device_leave(device);
	if (!staging)
		return NULL;
	pthread_mutex_lock(&engine->workers_mutex);
	staging->next = engine->devices.lent;
	engine->devices.lent = staging;
	pthread_mutex_unlock(&engine->workers_mutex);
	return staging->pinned.data;
}

/* Takes large ones out of the list, those that were kept first first, until the others may stay. */
static lade__gpu_staging *kept_cut(lade_engine *engine)
{
	lade__gpu_staging *cut = NULL;
	size_t kept = 0;
	for (const lade__gpu_staging *s = engine->devices.staging; s; s = s->next)
		kept += s->pinned.size;
	for (lade__gpu_staging **at = &engine->devices.staging; *at && kept > PINNED_KEEP;) {
		lade__gpu_staging *s = *at;
		if (s->pinned.size < KEPT_LARGE) {
			at = &s->next;
			continue;
		}
		kept -= s->pinned.size;
		*at = s->next;
		s->next = cut;
		cut = s;
	}
	return cut;
}

static void kept_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                      lade_stream stream)
{
	lade_engine *engine = ctx;
	(void)size, (void)align, (void)place, (void)stream;
	lade__engine_after_fork(engine);
	pthread_mutex_lock(&engine->workers_mutex);
	lade__gpu_staging **at = &engine->devices.lent, *cut = NULL;
	while (*at && (*at)->pinned.data != ptr)
		at = &(*at)->next;
	lade__gpu_staging *staging = *at; /* NULL in a forked child, whose lists began anew */
	if (staging) {
		*at = staging->next;
		staging_keep(engine, staging);
		cut = kept_cut(engine);
	}
	pthread_mutex_unlock(&engine->workers_mutex);
	for (lade__gpu_staging *next; cut; cut = next) {
		next = cut->next;
		staging_free(engine, cut);
	}
}

lade_allocator lade__gpu_pinned_kept(lade_engine *engine)
{
	return (lade_allocator){engine, kept_alloc, kept_free};
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
