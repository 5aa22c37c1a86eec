/*
 * device.c: memory of a device: a handle, copies from and to the host, slices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>

static void array_free(void *thing)
{
	lade_array_unref(thing);
}

static const node_kind device_kind = {"device memory", {0x6c616465736861, 0x7}, array_free};

/* An allocation, or a copy. */
typedef struct job {
	node_task task;
	lade_place place;
	uint64_t off, size;
	void *host;
	size_t host_size;
	bool to_host;
	lade_array *array; /* allocated */
} job;

static void job_end(node_task *task)
{
	lade_array_unref(((job *)task)->array);
}

static void new_run(node_task *task)
{
	job *j = (job *)task;

	const lade_device_info *info;

	task->status = lade_device_get_info(j->place.device, &info, &task->err);
	if (!task->status)
		task->status =
			lade_array_new((size_t)j->size, j->place, NULL, &j->array, &task->err);
}

static napi_value new_done(napi_env env, node_task *task)
{
	job *j = (job *)task;
	lade_array *array = j->array;

	j->array = NULL;
	return node_handle_new(env, &device_kind, array);
}

/* deviceNew(sync, size, device) */
static napi_value device_new(napi_env env, napi_callback_info info)
{
	napi_value args[3];
	uint64_t size, device;
	job *j;

	if (!node_arguments(env, info, 3, args) ||
	    !node_get_number(env, args[1], "byteLength", &size) ||
	    !node_get_number(env, args[2], "device", &device) ||
	    !(j = node_task_new(env, sizeof *j, new_run, new_done, job_end)))
		return NULL;
	j->size = size;
	j->place = (lade_place){LADE_DEVICE, device < INT32_MAX ? (int32_t)device : INT32_MAX};
	return node_task_start(env, node_get_bool(env, args[0]), &j->task, NULL);
}

/* deviceSlice(memory, offset, size): keeps the whole */
static napi_value device_slice(napi_env env, napi_callback_info info)
{
	napi_value args[3];
	lade_array *slice;
	node_handle *h;
	uint64_t off, size;
	lade_error err;

	if (!node_arguments(env, info, 3, args) ||
	    !(h = node_handle_get(env, args[0], &device_kind)) ||
	    !node_get_number(env, args[1], "offset", &off) ||
	    !node_get_number(env, args[2], "byteLength", &size))
		return NULL;
	if (lade_array_slice(h->thing, (size_t)off, (size_t)size, &slice, &err))
		return node_throw(env, &err);
	return node_handle_new(env, &device_kind, slice);
}

static void copy_run(node_task *task)
{
	job *j = (job *)task;
	lade_span span = lade_array_span(task->handle->thing);
	lade_error *err = &task->err;

	if (j->off > span.size || j->host_size > span.size - j->off) {
		task->status = lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                         "%zu bytes from %llu on: there are %zu", j->host_size,
		                         (unsigned long long)j->off, span.size);
		return;
	}
	span.data = (char *)span.data + j->off;
	span.size = j->host_size;
	if (!span.size)
		return;
	if (j->to_host)
		task->status = lade_copy(NULL, (lade_cspan){span.data, span.size, span.place},
		                         lade_host_span(j->host, j->host_size), NULL, err);
	else
		task->status =
			lade_copy(NULL, lade_host_cspan(j->host, j->host_size), span, NULL, err);
}

static napi_value copy_done(napi_env env, node_task *task)
{
	return node_number(env, ((job *)task)->host_size);
}

/* deviceCopy(sync, memory, to the host, offset, host memory) */
static napi_value device_copy(napi_env env, napi_callback_info info)
{
	napi_value args[5];
	node_bytes bytes;
	node_handle *h;
	uint64_t off;
	job *j;

	if (!node_arguments(env, info, 5, args) ||
	    !(h = node_handle_get(env, args[1], &device_kind)) ||
	    !node_get_number(env, args[3], "offset", &off) ||
	    !node_get_bytes(env, args[4], "host memory", &bytes) ||
	    !(j = node_task_new(env, sizeof *j, copy_run, copy_done, job_end)))
		return NULL;
	j->task.handle = node_handle_use(h);
	j->to_host = node_get_bool(env, args[2]);
	j->off = off;
	j->host = bytes.data;
	j->host_size = bytes.size;
	return node_task_start(env, node_get_bool(env, args[0]), &j->task, bytes.buffer);
}

const node_function node_device_functions[] = {
	{"deviceNew", device_new},
	{"deviceSlice", device_slice},
	{"deviceCopy", device_copy},
	{NULL, NULL},
};
