/*
 * numpy.c: the memory of numpy's arrays without the buffer protocol, in which numpy spends 150 to
 * 200 ns for each array: a list of many small ones would cost a fifth more than the work.
 *
 * Neither numpy nor its headers are needed.  What is read here stands where every compiled module
 * that uses numpy reads it, by the macros of its C API; it was there in numpy 1 and is in numpy 2.
 * The first array is looked at in both ways: where they differ, this way is not taken again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

/* PyArrayObject_fields up to its flags. */
typedef struct numpy_array {
	PyObject_HEAD char *data;
	int ndim;
	Py_ssize_t *shape, *strides;
	PyObject *base;
	struct numpy_descr {
		PyObject_HEAD PyTypeObject *scalar;
		char kind; /* as in type strings */
	} * descr;
	int flags;
} numpy_array;

/* Of numpy's flags. */
enum { C_CONTIGUOUS = 1, WRITEABLE = 0x400 };

static bool is_number(char kind)
{
	return kind == 'b' || kind == 'i' || kind == 'u' || kind == 'f' || kind == 'c';
}

bool py_numpy_look(PyObject *object, bool writable, char **data, size_t *size)
{
	const numpy_array *a = (const numpy_array *)(void *)object;
	int first = -1;

	if (!(a->flags & C_CONTIGUOUS) || (writable && !(a->flags & WRITEABLE)) || a->ndim < 1 ||
	    a->ndim > 64 || !is_number(a->descr->kind))
		return false;
	for (int i = 0; i < a->ndim; i++) {
		if (a->shape[i] < 1)
			return false;
		if (first < 0 && a->shape[i] > 1)
			first = i;
	}
	if (first < 0)
		return false;
	/* The first dimension of more than one element tells how much all of them take. */
	*data = a->data;
	*size = (size_t)a->shape[first] * (size_t)a->strides[first];
	return true;
}

/* Whether an object's type is numpy.ndarray, of a numpy that keeps its memory as we know it. */
static bool learn(py_state *st, PyObject *object)
{
	PyObject *modules = PyImport_GetModuleDict(), *numpy, *type = NULL;
	Py_buffer view;
	char *data;
	size_t size;
	bool same = false;

	numpy = modules ? PyDict_GetItemString(modules, "numpy") : NULL;
	if (numpy)
		type = PyObject_GetAttrString(numpy, "ndarray");
	if (type == (PyObject *)Py_TYPE(object) &&
	    !PyObject_GetBuffer(object, &view, PyBUF_STRIDES)) {
		if (py_numpy_look(object, false, &data, &size)) {
			same = data == view.buf && size == (size_t)view.len;
			st->numpy = same ? NUMPY_KNOWN : NUMPY_OTHER;
			if (same)
				st->numpy_array = (PyTypeObject *)Py_NewRef(type);
		}
		PyBuffer_Release(&view);
	}
	PyErr_Clear();
	Py_XDECREF(type);
	return same;
}

bool py_numpy_get(py_state *st, PyObject *object, bool writable, py_mem *out)
{
	if (Py_TYPE(object) != st->numpy_array &&
	    (st->numpy != NUMPY_UNKNOWN || !learn(st, object)))
		return false;
	return py_numpy_look(object, writable, &out->data, &out->size);
}
