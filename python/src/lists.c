/*
 * lists.c: lists of bytes and of plain numpy arrays, which become items in one go: of a list of
 * 10,000 small chunks each look at an object more is felt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

/* The memory of one object that the caller keeps; no code of the interpreter's is run. */
static inline bool read_plain(py_state *st, PyObject *object, bool writable, char **data,
                              size_t *size)
{
	if (!writable && PyBytes_CheckExact(object)) {
		*data = (char *)object + st->bytes_at;
		*size = (size_t)Py_SIZE(object);
		return true;
	}
	return Py_TYPE(object) == st->numpy_array && py_numpy_look(object, writable, data, size);
}

py_plain py_list_sources(const py_call *call, const py_holds *holds, py_work *work)
{
	py_state *st = call->codec->st;
	size_t count = (size_t)PyTuple_Size(holds->items), size;
	char *data;

	if (!count || !read_plain(st, PyTuple_GetItem(holds->items, 0), false, &data, &size))
		return PY_NOT_PLAIN;
	if (!py_work_init(work, call->codec, count, call->return_errors || call->grows)) {
		PyErr_NoMemory();
		return PY_PLAIN_FAILED;
	}
	work->fixed = true;
	for (size_t i = 0; i < count; i++) {
		PyObject *object = PyTuple_GetItem(holds->items, (Py_ssize_t)i);
		work->fixed &= PyBytes_CheckExact(object);
		if (!read_plain(st, object, false, &data, &size)) {
			py_work_reset(work);
			return PY_NOT_PLAIN;
		}
		*py_call_item(call, work, i) = (lade_segment){data, size, LADE_PLACE_HOST, 0};
	}
	return PY_PLAIN;
}

bool py_list_outs(const py_call *call, const py_holds *holds, py_work *work)
{
	py_state *st = call->codec->st;
	size_t count = (size_t)PyTuple_Size(holds->items), size;
	char *data;

	if (count != work->count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!read_plain(st, PyTuple_GetItem(holds->items, (Py_ssize_t)i), true, &data,
		                &size))
			return false;
		work->items[i].dst = (lade_span){data, size, LADE_PLACE_HOST};
	}
	return true;
}
