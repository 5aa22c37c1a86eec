/*
 * lists.c: lists of bytes and of plain numpy arrays, which become items in one go: of a list of
 * 10,000 small chunks each look at an object more is felt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

py_plain py_list_sources(const py_call *call, const py_holds *holds, py_work *work)
{
	py_state *st = call->codec->st;
	size_t count = (size_t)PyTuple_Size(holds->items);
	py_mem mem;

	if (!count || !py_mem_simple(st, PyTuple_GetItem(holds->items, 0), false, &mem))
		return PY_NOT_PLAIN;
	if (!py_work_init(work, call->codec, count, call->return_errors || call->grows)) {
		PyErr_NoMemory();
		return PY_PLAIN_FAILED;
	}
	work->fixed = true;
	for (size_t i = 0; i < count; i++) {
		PyObject *object = PyTuple_GetItem(holds->items, (Py_ssize_t)i);
		work->fixed &= PyBytes_CheckExact(object);
		if (!py_mem_simple(st, object, false, &mem)) {
			py_work_reset(work);
			return PY_NOT_PLAIN;
		}
		*py_call_item(call, work, i) = (lade_segment){mem.data, mem.size, mem.place, 0};
	}
	return PY_PLAIN;
}

bool py_list_outs(const py_call *call, const py_holds *holds, py_work *work)
{
	py_state *st = call->codec->st;
	size_t count = (size_t)PyTuple_Size(holds->items);
	py_mem mem;

	if (count != work->count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!py_mem_simple(st, PyTuple_GetItem(holds->items, (Py_ssize_t)i), true, &mem))
			return false;
		work->items[i].dst = (lade_span){mem.data, mem.size, mem.place};
	}
	return true;
}
