/*
 * rntuple_source.c: paths, URLs, memory and Python functions as sources of a file's bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple_py.h"

#include <string.h>

/* ---- a function of Python's ------------------------------------------------------------- */

/* The ranges that have bytes, as a list of (offset, size). */
static PyObject *ranges_of(py_bytes *bytes, lade_reading *reading, size_t count)
{
	PyObject *list = PyList_New(0);

	for (size_t i = 0; list && i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		uint64_t off;
		range->object_size = bytes->size;
		lade_range_place(range, bytes->size, &off, &range->size, NULL);
		if (range->size &&
		    !py_rntuple_append(list, Py_BuildValue("(Kn)", (unsigned long long)off,
		                                           (Py_ssize_t)range->size)))
			Py_CLEAR(list);
	}
	return list;
}

/* The bytes of one range, which the function gave. */
static lade_status put(lade_reading *reading, size_t i, PyObject *data, lade_error *err)
{
	size_t size = lade_reading_range(reading, i)->size;
	lade_status status = LADE_OK;
	Py_buffer view;

	if (!data || PyObject_GetBuffer(data, &view, PyBUF_SIMPLE))
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "the function gave no buffer");
	if ((size_t)view.len != size)
		status = lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                   "the function gave %zd bytes of %zu", view.len, size);
	else
		status = lade_reading_put(reading, i, 0, lade_host_cspan(view.buf, size), err);
	PyBuffer_Release(&view);
	return status;
}

/* Keeps the exception that is set, if it is the first. */
static void keep_raised(py_bytes *bytes)
{
	if (bytes->raised)
		PyErr_Clear();
	else if (PyErr_Occurred())
		bytes->raised = PyErr_GetRaisedException();
}

/* One call of the function for all ranges. */
static void call_function(void *ctx, lade_reading *reading, size_t count)
{
	py_bytes *bytes = ctx;
	PyGILState_STATE gil = PyGILState_Ensure();
	PyObject *ranges = ranges_of(bytes, reading, count);
	PyObject *function = bytes->function;
	PyObject *given = ranges ? PyObject_CallFunctionObjArgs(function, ranges, NULL) : NULL;
	PyObject *list = given ? PySequence_List(given) : NULL;
	bool good = list && PyList_Size(list) == PyList_Size(ranges);
	Py_ssize_t at = 0;

	if (list && !good)
		PyErr_Format(PyExc_ValueError, "the function gave %zd buffers for %zd ranges",
		             PyList_Size(list), PyList_Size(ranges));
	if (!good)
		keep_raised(bytes);
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err = {.offset = LADE_NO_OFFSET};
		uint64_t off;
		lade_status status = lade_range_place(range, bytes->size, &off, &range->size, &err);
		if (range->size && good)
			status = put(reading, i, PyList_GetItem(list, at++), &err);
		else if (range->size)
			status = lade_fail(&err, LADE_E_IO, LADE_NO_OFFSET, "the function raised");
		if (PyErr_Occurred())
			keep_raised(bytes);
		lade_reading_done(reading, i, status, &err);
	}
	Py_XDECREF(list);
	Py_XDECREF(given);
	Py_XDECREF(ranges);
	PyGILState_Release(gil);
}

static bool from_function(py_bytes *bytes, PyObject *pair)
{
	static const lade_source_ops ops = {.struct_size = sizeof(ops), .read = call_function};
	unsigned long long size;
	PyObject *function;

	if (!PyArg_ParseTuple(pair, "OK", &function, &size))
		return false;
	if (!bytes->st->main_interpreter) {
		PyErr_SetString(PyExc_NotImplementedError,
		                "functions as sources work in the main interpreter alone");
		return false;
	}
	bytes->function = Py_NewRef(function);
	bytes->size = size;
	bytes->source = (lade_source){&ops, bytes};
	return true;
}

/* ---- the others ------------------------------------------------------------------------- */

static lade_status from_url(py_bytes *bytes, const char *url, const char *const *headers,
                            size_t count, lade_error *err)
{
	lade_http_options options = {
		.struct_size = sizeof(options), .headers = headers, .header_count = count};
	char *server = strdup(url), *slash;
	lade_store *store = NULL;
	lade_status status;

	if (!server)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a URL");
	slash = strrchr(server, '/');
	if (!slash || slash < server + 8) {
		free(server);
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "\"%s\" is a URL without a file",
		                 url);
	}
	*slash = 0;
	status = lade_store_http_open(server, &options, &store, err);
	if (!status)
		status = lade_store_object_open(store, slash + 1, &bytes->source, err);
	lade_store_unref(store);
	free(server);
	return status;
}

/* The texts of a tuple, borrowed from it; NULL: an exception. */
static const char **texts_of(PyObject *tuple)
{
	Py_ssize_t count = PyTuple_Size(tuple);
	const char **texts = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof(*texts));

	for (Py_ssize_t i = 0; texts && i < count; i++) {
		texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
		if (!texts[i]) {
			PyMem_Free(texts);
			return NULL;
		}
	}
	if (!texts && !PyErr_Occurred())
		PyErr_NoMemory();
	return texts;
}

static bool from_named(py_bytes *bytes, int from, PyObject *object, PyObject *headers)
{
	const char *name = from == PY_FROM_PATH ? PyBytes_AsString(object)
	                                        : PyUnicode_AsUTF8AndSize(object, NULL);
	const char **texts = name ? texts_of(headers) : NULL;
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_status status;

	if (!texts)
		return false;
	size_t count = (size_t)PyTuple_Size(headers);
	Py_BEGIN_ALLOW_THREADS
	status = from == PY_FROM_PATH
	                 ? lade_source_file_open(name, NULL, &bytes->source, &err)
	                 : from_url(bytes, name, texts, count, &err);
	Py_END_ALLOW_THREADS
	PyMem_Free(texts);
	if (status)
		py_raise(bytes->st, &err, SIZE_MAX);
	return !status;
}

static bool from_memory(py_bytes *bytes, PyObject *object)
{
	lade_error err = {.offset = LADE_NO_OFFSET};

	if (!py_mem_read(bytes->st, object, &bytes->mem) || !py_mem_flatten(&bytes->mem))
		return false;
	/* The memory of bytes and numpy arrays is the object's: it is kept. */
	bytes->function = Py_NewRef(object);
	if (!lade_source_memory_open(
		    (lade_cspan){bytes->mem.data, bytes->mem.size, bytes->mem.place},
		    &bytes->source, &err))
		return true;
	py_raise(bytes->st, &err, SIZE_MAX);
	return false;
}

bool py_bytes_open(py_bytes *bytes, py_state *st, int from, PyObject *object, PyObject *headers)
{
	bytes->st = st;
	if (from == PY_FROM_MEMORY)
		return from_memory(bytes, object);
	return from == PY_FROM_FUNCTION ? from_function(bytes, object)
	                                : from_named(bytes, from, object, headers);
}

void py_bytes_reset(py_bytes *bytes)
{
	py_mem_release(&bytes->mem);
	Py_CLEAR(bytes->function);
	Py_CLEAR(bytes->raised);
}

void py_bytes_raise(py_bytes *bytes, const lade_error *err)
{
	PyObject *raised = bytes->raised;

	bytes->raised = NULL;
	if (raised)
		PyErr_SetRaisedException(raised);
	else
		py_raise(bytes->st, err, SIZE_MAX);
}
