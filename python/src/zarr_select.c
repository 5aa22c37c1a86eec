/*
 * zarr_select.c: keys of Python as selections of the library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr_py.h"

#include <string.h>

/* Start, stop and step by numpy's rules, which are also the library's. */
static bool take_slice(PyObject *slice, lade_zarr_index *out)
{
	Py_ssize_t start, stop, step;

	if (PySlice_Unpack(slice, &start, &stop, &step))
		return false;
	*out = (lade_zarr_index){.kind = LADE_ZARR_SLICE, .start = start, .stop = stop,
	                         .step = step};
	/* A start or stop that was left out is the first or last number of its kind here; what is
	 * beyond both ends by the caller's wish must not be taken for that. */
	if (start == PY_SSIZE_T_MIN)
		out->start = LADE_ZARR_OPEN + 1;
	if (start == PY_SSIZE_T_MAX && step < 0)
		out->start = LADE_ZARR_OPEN;
	if (stop == PY_SSIZE_T_MIN)
		out->stop = LADE_ZARR_OPEN;
	return true;
}

/* Takes the memory of a list or mask. */
static Py_buffer *take_view(PyObject *item, py_selection *out)
{
	Py_buffer *view = &out->views[out->view_count];

	if (PyObject_GetBuffer(item, view, PyBUF_CONTIG_RO | PyBUF_FORMAT))
		return NULL;
	out->view_count++;
	return view;
}

/* '?' of bool, 'l' of int64, 0 of others. */
static char kind_of(const Py_buffer *view)
{
	const char *format = view->format ? view->format : "B";

	if (format[0] == '@' || format[0] == '=' || format[0] == '<')
		format++;
	if (!strcmp(format, "?"))
		return '?';
	return (!strcmp(format, "l") || !strcmp(format, "q")) && view->itemsize == 8 ? 'l' : 0;
}

static bool take_list(PyObject *item, py_selection *out, lade_zarr_index *index)
{
	const Py_buffer *view = take_view(item, out);
	char kind = view ? kind_of(view) : 0;

	if (!view)
		return false;
	if (!kind) {
		PyErr_Format(PyExc_IndexError, "an index is an array of %s, not of int64 or bool",
		             view->format ? view->format : "bytes");
		return false;
	}
	*index = (lade_zarr_index){.kind = kind == '?' ? LADE_ZARR_MASK : LADE_ZARR_LIST,
	                           .count = (size_t)(view->len / view->itemsize)};
	if (kind == '?') {
		index->mask = view->buf;
	} else {
		index->list = view->buf;
		index->shape_ndim = (size_t)view->ndim;
		index->shape = (const uint64_t *)view->shape;
	}
	return true;
}

static bool take_item(PyObject *item, py_selection *out, lade_zarr_index *index)
{
	Py_ssize_t number;

	if (PySlice_Check(item))
		return take_slice(item, index);
	if (PyLong_Check(item) || (PyIndex_Check(item) && !PyObject_CheckBuffer(item))) {
		number = PyNumber_AsSsize_t(item, PyExc_IndexError);
		if (number == -1 && PyErr_Occurred())
			return false;
		*index = (lade_zarr_index){.kind = LADE_ZARR_AT, .start = number};
		return true;
	}
	if (PyObject_CheckBuffer(item))
		return take_list(item, out, index);
	PyErr_Format(PyExc_IndexError, "index %R is no integer, slice or array", item);
	return false;
}

/* The items of a key, with as many whole axes in the place of an ellipsis as there is room. */
static bool take_items(const lade_zarr_array *array, PyObject *key, py_selection *out)
{
	bool many = PyTuple_Check(key), seen = false;
	size_t count = many ? (size_t)PyTuple_Size(key) : 1, n = 0;

	for (size_t i = 0; i < count; i++) {
		PyObject *item = many ? PyTuple_GetItem(key, (Py_ssize_t)i) : key;
		if (item == Py_Ellipsis) {
			size_t rest = count - 1, fill;
			if (seen) {
				PyErr_SetString(PyExc_IndexError,
				                "a key can have one ellipsis ('...')");
				return false;
			}
			seen = true;
			fill = array->ndim > rest ? array->ndim - rest : 0;
			while (fill-- && n < PY_NDIM_MAX)
				out->axes[n++] = (lade_zarr_index){.kind = LADE_ZARR_ALL};
			continue;
		}
		if (n >= array->ndim || n >= PY_NDIM_MAX) {
			PyErr_Format(PyExc_IndexError, "%zu indices for an array of %zu axes",
			             count - seen, array->ndim);
			return false;
		}
		if (!take_item(item, out, &out->axes[n++]))
			return false;
	}
	out->selection.axis_count = n;
	out->selection.axes = out->axes;
	out->selection.index_size = sizeof(out->axes[0]);
	return true;
}

bool py_selection_parse(const lade_zarr_array *array, PyObject *key, int mode, const char *field,
                        py_selection *out)
{
	const Py_buffer *view;
	bool ok;

	out->selection = (lade_zarr_selection){.struct_size = sizeof(out->selection),
	                                       .mode = (lade_zarr_mode)mode,
	                                       .field = field};
	out->view_count = 0;
	if (mode != LADE_ZARR_WHERE) {
		ok = take_items(array, key, out);
	} else {
		view = take_view(key, out);
		ok = view && kind_of(view) == '?';
		if (ok) {
			out->selection.mask = view->buf;
			out->selection.mask_size = (size_t)view->len;
		} else if (view) {
			PyErr_SetString(PyExc_IndexError, "a mask must be an array of bool");
		}
	}
	if (!ok)
		py_selection_release(out);
	return ok;
}

void py_selection_release(py_selection *selection)
{
	while (selection->view_count)
		PyBuffer_Release(&selection->views[--selection->view_count]);
}
