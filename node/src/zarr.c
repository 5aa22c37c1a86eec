/*
 * zarr.c: opens Zarr arrays and groups, and reads selections.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>
#include <string.h>

static void zarr_free(void *thing)
{
	lade_zarr_unref(thing);
}

static const node_kind zarr_kind = {"Zarr node", {0x6c616465736861, 0x5}, zarr_free};

/* The arguments of all calls. */
typedef struct job {
	node_task task;
	char *url, *path, **headers;
	uint32_t header_count, format;
	lade_zarr *node; /* opened */
	lade_zarr_selection *selection;
	void *data;
	size_t size;
} job;

static void job_end(node_task *task)
{
	job *j = (job *)task;

	for (uint32_t i = 0; i < j->header_count; i++)
		free(j->headers[i]);
	free(j->headers);
	free(j->url);
	free(j->path);
	lade_zarr_unref(j->node);
	lade_zarr_selection_free(j->selection);
}

/* ---- opening ------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* A server's, a zip file's or a directory's. */
static lade_status store_open(const job *j, lade_store **out, lade_error *err)
{
	lade_http_options http = {.struct_size = sizeof http,
	                          .headers = (const char *const *)j->headers,
	                          .header_count = j->header_count};
	size_t length = strlen(j->url);
	lade_source source;

	if (begins(j->url, "http://") || begins(j->url, "https://"))
		return lade_store_http_open(j->url, &http, out, err);
	if (length < 4 || strcmp(j->url + length - 4, ".zip"))
		return lade_store_directory_open(j->url, NULL, out, err);
	lade_status status = lade_source_file_open(j->url, NULL, &source, err);
	if (status == LADE_OK) {
		status = lade_store_zip_open(source, NULL, out, err);
		if (status != LADE_OK)
			lade_source_close(source);
	}
	return status;
}

static void open_run(node_task *task)
{
	job *j = (job *)task;
	lade_zarr_options options = {.struct_size = sizeof options, .format = j->format};
	lade_store *store;

	task->status = store_open(j, &store, &task->err);
	if (task->status)
		return;
	task->status = lade_zarr_open(store, j->path, &options, &j->node, &task->err);
	lade_store_unref(store);
}

static napi_value open_done(napi_env env, node_task *task)
{
	job *j = (job *)task;
	lade_zarr *node = j->node;

	j->node = NULL;
	return node_handle_new(env, &zarr_kind, node);
}

static bool headers_in(napi_env env, napi_value list, job *j)
{
	uint32_t count = 0;
	napi_value value;

	if (node_is_null(env, list))
		return true;
	if (napi_get_array_length(env, list, &count) != napi_ok || count > 1000)
		return node_throw_type(env, "headers: want at most 1000 strings");
	j->headers = calloc(count + 1, sizeof *j->headers);
	for (uint32_t i = 0; j->headers && i < count; i++, j->header_count++)
		if (napi_get_element(env, list, i, &value) != napi_ok ||
		    !node_get_text(env, value, "a header", &j->headers[i]) || !j->headers[i])
			return node_throw_type(env, "headers: want strings");
	return j->headers != NULL;
}

/* zarrOpen(sync, url, path, format or 0, ["name: value", ...]) */
static napi_value zarr_open(napi_env env, napi_callback_info info)
{
	napi_value args[5];
	uint64_t format;
	job *j;

	if (!node_arguments(env, info, 5, args) ||
	    !node_get_number(env, args[3], "format", &format) ||
	    !(j = node_task_new(env, sizeof *j, open_run, open_done, job_end)))
		return NULL;
	j->format = (uint32_t)format;
	if (node_get_text(env, args[1], "url", &j->url) && j->url &&
	    node_get_text(env, args[2], "path", &j->path) && headers_in(env, args[4], j))
		return node_task_start(env, node_get_bool(env, args[0]), &j->task, NULL);
	node_task_drop(&j->task);
	return node_throw_type(env, "url: want a string");
}

/* ---- describing ---------------------------------------------------------------------------- */

static napi_value numbers(napi_env env, size_t count, const uint64_t *values)
{
	napi_value out = NULL;

	if (napi_create_array_with_length(env, count, &out) == napi_ok)
		for (size_t i = 0; i < count; i++)
			napi_set_element(env, out, (uint32_t)i, node_number(env, values[i]));
	return out;
}

/* {dtype, type, itemSize, class}: type is a type string of dtype.h, or null */
static void set_type(napi_env env, napi_value out, const lade_zarr_type *type)
{
	node_set(env, out, "dtype", node_text(env, type->name));
	node_set(env, out, "type",
	         node_text(env, type->dtype ? lade_dtype_text(type->dtype) : NULL));
	node_set(env, out, "itemSize", node_number(env, type->size));
	node_set(env, out, "class", node_number(env, (uint64_t)type->cls));
}

static void set_array(napi_env env, napi_value out, const lade_zarr_array *a)
{
	uint64_t shape[LADE_DIMS_MAX], chunks[LADE_DIMS_MAX];
	napi_value names;

	napi_create_array(env, &names);
	for (size_t i = 0; i < a->ndim; i++) {
		shape[i] = a->axes[i].size;
		chunks[i] = a->axes[i].chunk_size;
		napi_set_element(env, names, (uint32_t)i, node_text(env, a->axes[i].name));
	}
	node_set(env, out, "shape", numbers(env, a->ndim, shape));
	node_set(env, out, "chunks", numbers(env, a->ndim, chunks));
	node_set(env, out, "dimensionNames", names);
	set_type(env, out, &a->type);
}

/* zarrInfo(node) */
static napi_value zarr_info(napi_env env, napi_callback_info info)
{
	napi_value arg, out, members;
	node_handle *h;

	if (!node_arguments(env, info, 1, &arg) || !(h = node_handle_get(env, arg, &zarr_kind)) ||
	    napi_create_object(env, &out) != napi_ok || napi_create_array(env, &members) != napi_ok)
		return NULL;
	const lade_zarr_array *a = lade_zarr_as_array(h->thing);
	node_set(env, out, "kind", node_text(env, a ? "array" : "group"));
	node_set(env, out, "format", node_number(env, lade_zarr_format(h->thing)));
	node_set(env, out, "path", node_text(env, lade_zarr_path(h->thing)));
	node_set(env, out, "attributes", node_text(env, lade_zarr_attributes(h->thing)));
	if (a)
		set_array(env, out, a);
	for (uint32_t i = 0; !a && lade_zarr_member(h->thing, i); i++)
		napi_set_element(env, members, i, node_text(env, lade_zarr_member(h->thing, i)));
	node_set(env, out, "members", members);
	return out;
}

/* A selection of text; null is the whole array. */
static bool selection_in(napi_env env, napi_value value, const lade_zarr *array,
                         lade_zarr_selection **out)
{
	char *text;
	lade_error err = {.status = LADE_OK};

	*out = NULL;
	if (!node_get_text(env, value, "selection", &text))
		return false;
	if (!lade_zarr_as_array(array))
		lade_fail(&err, LADE_E_ARG, LADE_NO_OFFSET, "it is a group, no array");
	else if (text)
		lade_zarr_selection_parse(array, text, out, &err);
	free(text);
	if (err.status)
		node_throw(env, &err);
	return !err.status;
}

/* zarrShape(array, selection): {shape, size, dtype, ...} of what it reads */
static napi_value zarr_shape(napi_env env, napi_callback_info info)
{
	napi_value args[2], out;
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	lade_zarr_selection *selection;
	node_handle *h;
	lade_error err;

	if (!node_arguments(env, info, 2, args) ||
	    !(h = node_handle_get(env, args[0], &zarr_kind)) ||
	    !selection_in(env, args[1], h->thing, &selection))
		return NULL;
	lade_status status = lade_zarr_selection_shape(h->thing, selection, &shape, &err);
	lade_zarr_selection_free(selection);
	if (status)
		return node_throw(env, &err);
	if (napi_create_object(env, &out) != napi_ok)
		return NULL;
	node_set(env, out, "shape", numbers(env, shape.ndim, shape.shape));
	node_set(env, out, "size", node_number(env, shape.size));
	set_type(env, out, &shape.type);
	return out;
}

/* ---- reading ------------------------------------------------------------------------------- */

static void read_run(node_task *task)
{
	job *j = (job *)task;
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(j->data, j->size)};
	lade_zarr_read_options options = {.struct_size = sizeof options,
	                                  .cancel = node_cancel_of(task)};

	task->status = lade_zarr_read(task->handle->thing, j->selection, &target, &options, NULL,
	                              &task->err);
}

static napi_value read_done(napi_env env, node_task *task)
{
	return node_number(env, ((job *)task)->size);
}

/* zarrRead(sync, array, selection, out, token) */
static napi_value zarr_read(napi_env env, napi_callback_info info)
{
	napi_value args[5];
	node_bytes bytes;
	node_handle *h;
	job *j;

	if (!node_arguments(env, info, 5, args) ||
	    !(h = node_handle_get(env, args[1], &zarr_kind)) ||
	    !node_get_bytes(env, args[3], "out", &bytes) ||
	    !(j = node_task_new(env, sizeof *j, read_run, read_done, job_end)))
		return NULL;
	j->task.handle = node_handle_use(h);
	j->data = bytes.data;
	j->size = bytes.size;
	if (selection_in(env, args[2], h->thing, &j->selection) &&
	    node_task_cancel(env, args[4], &j->task))
		return node_task_start(env, node_get_bool(env, args[0]), &j->task, bytes.buffer);
	node_task_drop(&j->task);
	return NULL;
}

const node_function node_zarr_functions[] = {
	{"zarrOpen", zarr_open},
	{"zarrInfo", zarr_info},
	{"zarrShape", zarr_shape},
	{"zarrRead", zarr_read},
	{NULL, NULL},
};
