/*
 * file.c: reads and writes .lade files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>
#include <string.h>

static void frame_free(void *thing)
{
	lade_frame_close(thing);
}

static const node_kind frame_kind = {"file", {0x6c616465736861, 0x4}, frame_free};

/* The arguments of all calls. */
typedef struct job {
	node_task task;
	char *path;
	lade_frame *frame; /* opened */
	uint64_t off;
	size_t swap_size; /* bytes of an element to reverse; 0: none */
	void *data;
	size_t size;
	lade_spec *spec;
	lade_frame_options options;
	uint64_t shape[LADE_NDIM_MAX];
	uint64_t written;
} job;

static void job_end(node_task *task)
{
	job *j = (job *)task;

	lade_frame_close(j->frame);
	lade_spec_unref(j->spec);
	free(j->path);
}

/* ---- reading ------------------------------------------------------------------------------- */

static void open_run(node_task *task)
{
	job *j = (job *)task;
	lade_frame_read_options options = {.struct_size = sizeof options,
	                                   .cancel = node_cancel_of(task)};

	task->status = lade_frame_open_path(lade_engine_default(), j->path, &options, &j->frame,
	                                    &task->err);
}

static napi_value open_done(napi_env env, node_task *task)
{
	job *j = (job *)task;
	lade_frame *frame = j->frame;

	j->frame = NULL;
	return node_handle_new(env, &frame_kind, frame);
}

/* fileOpen(sync, path, token) */
static napi_value file_open(napi_env env, napi_callback_info info)
{
	napi_value args[3];
	job *j;

	if (!node_arguments(env, info, 3, args) ||
	    !(j = node_task_new(env, sizeof *j, open_run, open_done, job_end)))
		return NULL;
	if (node_get_text(env, args[1], "path", &j->path) &&
	    node_task_cancel(env, args[2], &j->task))
		return node_task_start(env, node_get_bool(env, args[0]), &j->task, NULL);
	node_task_drop(&j->task);
	return NULL;
}

/* fileInfo(file) */
static napi_value file_info(napi_env env, napi_callback_info info)
{
	napi_value arg, out, shape;
	node_handle *h;

	if (!node_arguments(env, info, 1, &arg) || !(h = node_handle_get(env, arg, &frame_kind)) ||
	    napi_create_object(env, &out) != napi_ok)
		return NULL;
	const lade_frame_info *f = lade_frame_get_info(h->thing);
	bool typed = f->dtype != LADE_DTYPE_NONE;
	node_set(env, out, "spec", node_text(env, lade_spec_text(f->spec)));
	node_set(env, out, "size", node_number(env, f->size));
	node_set(env, out, "encodedSize", node_number(env, f->encoded_size));
	node_set(env, out, "chunkCount", node_number(env, f->chunk_count));
	node_set(env, out, "chunkSize", node_number(env, f->chunk_size));
	node_set(env, out, "dtype", node_text(env, typed ? lade_dtype_text(f->dtype) : NULL));
	if (f->has_shape && napi_create_array(env, &shape) == napi_ok) {
		for (uint32_t i = 0; i < f->ndim; i++)
			napi_set_element(env, shape, i, node_number(env, f->shape[i]));
	} else {
		shape = node_text(env, NULL);
	}
	node_set(env, out, "shape", shape);
	napi_value order;
	if (napi_get_boolean(env, f->fortran_order, &order) == napi_ok)
		node_set(env, out, "fortranOrder", order);
	return out;
}

static void read_run(node_task *task)
{
	job *j = (job *)task;
	lade_frame_range range = {.off = j->off, .dst = lade_host_span(j->data, j->size)};
	lade_frame_range_options options = {.struct_size = sizeof options,
	                                    .range_size = sizeof range,
	                                    .cancel = node_cancel_of(task)};

	task->status = lade_frame_read(task->handle->thing, &range, 1, NULL, &options, &task->err);
	if (task->status == LADE_OK && j->swap_size)
		lade_byteswap(j->data, j->data, j->size / j->swap_size, j->swap_size);
}

static napi_value read_done(napi_env env, node_task *task)
{
	return node_number(env, ((job *)task)->size);
}

/* fileRead(sync, file, offset, out, bytes of an element to reverse or 0, token) */
static napi_value file_read(napi_env env, napi_callback_info info)
{
	napi_value args[6];
	node_bytes bytes;
	node_handle *h;
	uint64_t swap_size;
	job *j;

	if (!node_arguments(env, info, 6, args) ||
	    !(h = node_handle_get(env, args[1], &frame_kind)) ||
	    !node_get_bytes(env, args[3], "out", &bytes) ||
	    !node_get_number(env, args[4], "swap", &swap_size) ||
	    !(j = node_task_new(env, sizeof *j, read_run, read_done, job_end)))
		return NULL;
	j->task.handle = node_handle_use(h);
	j->data = bytes.data;
	j->size = bytes.size;
	j->swap_size = swap_size == 2 || swap_size == 4 || swap_size == 8 ? (size_t)swap_size : 0;
	if (node_get_number(env, args[2], "offset", &j->off) &&
	    node_task_cancel(env, args[5], &j->task))
		return node_task_start(env, node_get_bool(env, args[0]), &j->task, bytes.buffer);
	node_task_drop(&j->task);
	return NULL;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Encodes all of it, then replaces the file at once. */
static void write_run(node_task *task)
{
	job *j = (job *)task;
	lade_frames_options options = {.struct_size = sizeof options, .write = &j->options};
	lade_batch_options batch;
	lade_segment whole = {.data = j->data, .size = j->size};
	lade_item item = {.src = &whole, .src_count = 1};
	lade_result result = {LADE_OK, 0};
	lade_write write = {.kind = LADE_WRITE_ALWAYS};
	lade_io_options io = {.struct_size = sizeof io,
	                      .request_size = sizeof write,
	                      .cancel = node_cancel_of(task)};
	lade_error *err = &task->err;
	lade_sink sink;
	size_t bound = lade_frame_bound(&j->options, j->size);
	void *room = bound == SIZE_MAX ? NULL : malloc(bound);

	lade_batch_options_init(&batch);
	batch.cancel = node_cancel_of(task);
	options.batch = &batch;
	item.dst = lade_host_span(room, bound);
	if (bound == SIZE_MAX) /* an option is wrong: this says which */
		item.dst = lade_host_span(NULL, 0);
	else if (!room)
		task->status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                         "no memory for %zu bytes", bound);
	if (!task->status)
		task->status =
			lade_frames_write(lade_engine_default(), &item, 1, &result, &options, err);
	if (!task->status)
		task->status = lade_sink_file_open(j->path, &sink, err);
	if (!task->status) {
		write.src = lade_host_cspan(room, result.size);
		task->status = lade_sink_write(sink, &write, 1, &io, err);
		lade_sink_close(sink);
	}
	j->written = result.size;
	free(room);
}

static napi_value write_done(napi_env env, node_task *task)
{
	return node_number(env, ((job *)task)->written);
}

/* Options: {spec, chunkSize, dtype, shape, checksums} */
static bool options_in(napi_env env, napi_value given, job *j)
{
	napi_value shape = node_get(env, given, "shape"), value;
	uint64_t chunk_size = 0;
	uint32_t count = 0;
	char *spec, *dtype = NULL;
	lade_error err = {.status = LADE_OK};

	j->options.struct_size = sizeof j->options;
	if (!node_get_text(env, node_get(env, given, "spec"), "spec", &spec))
		return false;
	bool good =
		node_get_text(env, node_get(env, given, "dtype"), "dtype", &dtype) &&
		node_get_number(env, node_get(env, given, "chunkSize"), "chunkSize", &chunk_size);
	if (good)
		(void)(lade_spec_parse(NULL, spec ? spec : "copy", &j->spec, &err) ||
		       (dtype && lade_dtype_parse(dtype, &j->options.dtype, &err)));
	free(spec);
	free(dtype);
	if (good && err.status)
		node_throw(env, &err);
	if (!good || err.status)
		return false;
	j->options.spec = j->spec;
	j->options.chunk_size = (size_t)chunk_size;
	j->options.no_checksums = !node_get_bool(env, node_get(env, given, "checksums"));
	if (node_is_null(env, shape))
		return true;
	if (napi_get_array_length(env, shape, &count) != napi_ok || count > LADE_NDIM_MAX)
		return node_throw_type(env, "shape: want at most %d numbers", LADE_NDIM_MAX);
	for (uint32_t i = 0; i < count; i++)
		if (napi_get_element(env, shape, i, &value) != napi_ok ||
		    !node_get_number(env, value, "shape", &j->shape[i]))
			return false;
	j->options.ndim = count;
	j->options.shape = j->shape;
	return true;
}

/* fileWrite(sync, path, data, options, token): the file's bytes */
static napi_value file_write(napi_env env, napi_callback_info info)
{
	napi_value args[5];
	node_bytes bytes;
	job *j;

	if (!node_arguments(env, info, 5, args) || !node_get_bytes(env, args[2], "data", &bytes) ||
	    !(j = node_task_new(env, sizeof *j, write_run, write_done, job_end)))
		return NULL;
	j->data = bytes.data;
	j->size = bytes.size;
	if (node_get_text(env, args[1], "path", &j->path) && options_in(env, args[3], j) &&
	    node_task_cancel(env, args[4], &j->task))
		return node_task_start(env, node_get_bool(env, args[0]), &j->task, bytes.buffer);
	node_task_drop(&j->task);
	return NULL;
}

const node_function node_file_functions[] = {
	{"fileOpen", file_open},
	{"fileInfo", file_info},
	{"fileRead", file_read},
	{"fileWrite", file_write},
	{NULL, NULL},
};
