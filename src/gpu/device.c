/*
 * device.c: the driver's devices, their contexts, and streams.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"

#include "base/try.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	lade__device devices[LADE_DEVICES_MAX];
	int32_t count;
	lade_status status;
	lade_error error;
} known;

static pthread_once_t list_once = PTHREAD_ONCE_INIT;

/* ---- what there is --------------------------------------------------------------------------- */

/* Numbers of CUdevice_attribute. */
static const struct {
	int attribute;
	size_t field; /* a 32-bit number of lade_device_info */
} numbers[] = {
	{75, offsetof(lade_device_info, major)},
	{76, offsetof(lade_device_info, minor)},
	{16, offsetof(lade_device_info, multiprocessors)},
	{39, offsetof(lade_device_info, threads_max)},
	{81, offsetof(lade_device_info, shared_size)},
	{97, offsetof(lade_device_info, block_shared_max)},
	{38, offsetof(lade_device_info, l2_size)},
	{13, offsetof(lade_device_info, clock_khz)},
	{36, offsetof(lade_device_info, memory_clock_khz)},
	{37, offsetof(lade_device_info, memory_bus_bits)},
};
enum { ATTRIBUTE_MANAGED = 83, ATTRIBUTE_HOST_TABLES = 100, ATTRIBUTE_POOLS = 115 };

static lade_status look_at(lade__device *d, lade_error *err)
{
	lade_device_info *info = &d->info;
	lade_status status;
	int value;
	size_t size;

	info->device = d->number;
	info->driver_version = d->driver->version;
	TRY(LADE__CU(d, cuDeviceGet, &d->handle, d->number));
	TRY(LADE__CU(d, cuDeviceGetName, info->name, sizeof info->name, d->handle));
	info->name[sizeof info->name - 1] = 0;
	TRY(LADE__CU(d, cuDeviceGetPCIBusId, info->pci, sizeof info->pci, d->handle));
	info->pci[sizeof info->pci - 1] = 0;
	TRY(LADE__CU(d, cuDeviceGetUuid, info->uuid, d->handle));
	TRY(LADE__CU(d, cuDeviceTotalMem, &size, d->handle));
	info->memory_size = size;
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		TRY(LADE__CU(d, cuDeviceGetAttribute, &value, numbers[i].attribute, d->handle));
		memcpy((char *)info + numbers[i].field, &value, sizeof value);
	}
	TRY(LADE__CU(d, cuDeviceGetAttribute, &value, ATTRIBUTE_MANAGED, d->handle));
	info->managed = value != 0;
	TRY(LADE__CU(d, cuDeviceGetAttribute, &value, ATTRIBUTE_HOST_TABLES, d->handle));
	d->reads_pageable = value != 0;
	TRY(LADE__CU(d, cuDeviceGetAttribute, &value, ATTRIBUTE_POOLS, d->handle));
	info->pools = value != 0;
	info->kernels = lade__arch_for(lade__image_archs, info->major, info->minor);
out:
	return status;
}

static lade_status list_devices(lade_error *err)
{
	const lade__driver *driver;
	lade_status status;
	int count = 0;

	TRY(lade__driver_get(&driver, err));
	TRY(lade__driver_check(driver, driver->cuDeviceGetCount(&count), -1, "cuDeviceGetCount",
	                       err));
	if (count < 1)
		return lade_fail(err, LADE_E_NO_DEVICE, LADE_NO_OFFSET,
		                 "no device: the driver reports %d", count);
	if (count > LADE_DEVICES_MAX)
		count = LADE_DEVICES_MAX;
	for (int32_t i = 0; i < count; i++) {
		lade__device *d = &known.devices[i];
		d->driver = driver;
		d->number = i;
		pthread_mutex_init(&d->mutex, NULL);
		/* One that does not answer keeps its number, and does not hide the others. */
		d->error.offset = LADE_NO_OFFSET;
		d->status = look_at(d, &d->error);
	}
	known.count = count;
out:
	return status;
}

static void list_first(void)
{
	known.error.offset = LADE_NO_OFFSET;
	known.status = list_devices(&known.error);
}

lade_status lade_device_count(int32_t *count, lade_error *err)
{
	const lade__driver *driver;

	if (!count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "count is NULL");
	*count = 0;
	/* This comes first because a forked process must not go on with what its parent found. */
	lade_status status = lade__driver_get(&driver, err);
	if (status != LADE_OK)
		return status;
	pthread_once(&list_once, list_first);
	if (known.status != LADE_OK) {
		if (err)
			*err = known.error;
		return known.status;
	}
	*count = known.count;
	return LADE_OK;
}

lade_status lade__device_get(int32_t number, lade__device **out, lade_error *err)
{
	int32_t count;

	*out = NULL;
	lade_status status = lade_device_count(&count, err);
	if (status != LADE_OK)
		return status;
	if (number < 0 || number >= count)
		return lade_fail(err, LADE_E_NO_DEVICE, LADE_NO_OFFSET,
		                 "no device %d: there are %d, counted from 0", (int)number,
		                 (int)count);
	lade__device *d = &known.devices[number];
	if (d->status != LADE_OK) {
		if (err)
			*err = d->error;
		return d->status;
	}
	*out = d;
	return LADE_OK;
}

lade_status lade_device_get_info(int32_t device, const lade_device_info **info, lade_error *err)
{
	lade__device *d;

	if (!info)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "info is NULL");
	lade_status status = lade__device_get(device, &d, err);
	*info = status == LADE_OK ? &d->info : NULL;
	return status;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static lade_status retain_context(lade__device *d, void **context, lade_error *err)
{
	lade_status status = LADE_OK;

	pthread_mutex_lock(&d->mutex);
	*context = d->context;
	if (!*context)
		status = LADE__CU(d, cuDevicePrimaryCtxRetain, context, d->handle);
	if (status == LADE_OK)
		__atomic_store_n(&d->context, *context, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&d->mutex);
	return status;
}

lade_status lade__device_enter(lade__device *device, lade_error *err)
{
	void *context = __atomic_load_n(&device->context, __ATOMIC_ACQUIRE);

	if (!context) {
		lade_status status = retain_context(device, &context, err);
		if (status != LADE_OK)
			return status;
	}
	return LADE__CU(device, cuCtxPushCurrent, context);
}

void lade__device_leave(lade__device *device)
{
	void *context;
	device->driver->cuCtxPopCurrent(&context);
}

lade_status lade__device_use(int32_t number, lade__device **out, lade_error *err)
{
	lade__device *d;
	lade_status status = lade__device_get(number, &d, err);

	*out = NULL;
	if (status == LADE_OK)
		status = lade__device_enter(d, err);
	if (status == LADE_OK)
		*out = d;
	return status;
}

/* ---- streams --------------------------------------------------------------------------------- */

#define STREAM_NON_BLOCKING 1

lade_status lade_stream_new(int32_t device, lade_stream *out, lade_error *err)
{
	lade__device *d;

	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	lade_status status = lade__device_use(device, &d, err);
	if (status != LADE_OK)
		return status;
	status = LADE__CU(d, cuStreamCreate, out, STREAM_NON_BLOCKING);
	if (status != LADE_OK)
		*out = NULL;
	lade__device_leave(d);
	return status;
}

lade_status lade_stream_wait(int32_t device, lade_stream stream, lade_error *err)
{
	lade__device *d;
	lade_status status = lade__device_use(device, &d, err);

	if (status != LADE_OK)
		return status;
	status = LADE__CU(d, cuStreamSynchronize, stream);
	lade__device_leave(d);
	return status;
}

void lade_stream_free(int32_t device, lade_stream stream)
{
	lade__device *d;

	/* A stream knows its context. */
	if (stream && lade__device_get(device, &d, NULL) == LADE_OK)
		d->driver->cuStreamDestroy(stream);
}

/* ---- marks ------------------------------------------------------------------------------ */

#define EVENT_DISABLE_TIMING 2u

struct lade_mark {
	atomic_uint refs;
	lade__device *device;
	void *event;
};

lade_status lade_mark_new(int32_t device, lade_stream stream, lade_mark **out, lade_error *err)
{
	lade__device *d;
	lade_mark *mark;

	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	lade_status status = lade__device_use(device, &d, err);
	if (status != LADE_OK)
		return status;
	mark = calloc(1, sizeof *mark);
	if (!mark) {
		lade__device_leave(d);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a mark");
	}
	atomic_init(&mark->refs, 1);
	mark->device = d;
	int capturing = 0;
	bool all = stream == LADE_ALL_STREAMS && d->driver->cuCtxRecordEvent;
	if (stream == LADE_ALL_STREAMS)
		stream = NULL;
	status = LADE__CU(d, cuStreamIsCapturing, stream, &capturing);
	if (status == LADE_OK && capturing)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   "the stream is being captured: a graph cannot contain marks");
	if (status == LADE_OK)
		status = LADE__CU(d, cuEventCreate, &mark->event, EVENT_DISABLE_TIMING);
	if (status == LADE_OK) {
		status = all ? LADE__CU(d, cuCtxRecordEvent, d->context, mark->event)
		             : LADE__CU(d, cuEventRecord, mark->event, stream);
		if (status != LADE_OK)
			d->driver->cuEventDestroy(mark->event);
	}
	lade__device_leave(d);
	if (status == LADE_OK)
		*out = mark;
	else
		free(mark);
	return status;
}

bool lade_mark_passed(const lade_mark *mark)
{
	lade__device *d;

	if (!mark || lade__device_use(mark->device->number, &d, NULL) != LADE_OK)
		return true;
	/* To ask has nothing to do with what others capture. */
	int mode = LADE__CAPTURE_RELAXED;
	bool relaxed = d->driver->cuThreadExchangeStreamCaptureMode(&mode) == 0;
	int code = d->driver->cuEventQuery(mark->event);
	if (relaxed)
		d->driver->cuThreadExchangeStreamCaptureMode(&mode);
	lade__device_leave(d);
	return code != LADE__CU_NOT_READY;
}

lade_status lade_mark_wait(const lade_mark *mark, lade_error *err)
{
	lade__device *d;
	lade_status status;

	if (!mark)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "mark is NULL");
	status = lade__device_use(mark->device->number, &d, err);
	if (status != LADE_OK)
		return status;
	int mode = LADE__CAPTURE_RELAXED;
	status = LADE__CU(d, cuThreadExchangeStreamCaptureMode, &mode);
	if (status == LADE_OK) {
		status = LADE__CU(d, cuEventSynchronize, mark->event);
		d->driver->cuThreadExchangeStreamCaptureMode(&mode);
	}
	lade__device_leave(d);
	return status;
}

lade_status lade__mark_follow(const lade_mark *mark, int32_t device, lade_stream stream,
                              lade_error *err)
{
	lade__device *d;
	lade_status status = lade__device_use(device, &d, err);

	if (status != LADE_OK)
		return status;
	status = LADE__CU(d, cuStreamWaitEvent, stream, mark->event, 0);
	lade__device_leave(d);
	return status;
}

lade_status lade_stream_follow(const lade_mark *mark, lade_stream stream, lade_error *err)
{
	if (!mark)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "mark is NULL");
	return lade__mark_follow(mark, mark->device->number, stream, err);
}

lade_mark *lade__mark_ref(lade_mark *mark)
{
	atomic_fetch_add_explicit(&mark->refs, 1, memory_order_relaxed);
	return mark;
}

void lade_mark_free(lade_mark *mark)
{
	lade__device *d;

	if (!mark || atomic_fetch_sub_explicit(&mark->refs, 1, memory_order_acq_rel) != 1)
		return;
	/* In a forked process the event is the parent's.  Without the context it is tried all the
	 * same. */
	if (lade__device_get(mark->device->number, &d, NULL) == LADE_OK) {
		bool entered = lade__device_enter(d, NULL) == LADE_OK;
		d->driver->cuEventDestroy(mark->event);
		if (entered)
			lade__device_leave(d);
	}
	free(mark);
}
