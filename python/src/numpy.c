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
	static const uint32_t numbers = 1u << 'b' % 32 | 1u << 'i' % 32 | 1u << 'u' % 32 |
	                                1u << 'f' % 32 | 1u << 'c' % 32;

	return kind >= 'a' && numbers >> kind % 32 & 1;
}

bool py_numpy_look(PyObject *object, bool writable, char **data, size_t *size)
{
	const numpy_array *a = (const numpy_array *)(void *)object;
	int want = C_CONTIGUOUS | (writable ? WRITEABLE : 0);

	if ((a->flags & want) != want || a->ndim > 64 || !is_number(a->descr->kind))
		return false;
	*size = 0;
	/* The first dimension of more than one element gives the bytes of all. */
	for (int i = a->ndim - 1; i >= 0; i--) {
		if (a->shape[i] < 1)
			return false;
		if (a->shape[i] > 1)
			*size = (size_t)a->shape[i] * (size_t)a->strides[i];
	}
	*data = a->data;
	return *size != 0;
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
