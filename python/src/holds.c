/*
 * holds.c: the memory that a call, or what it enqueued, holds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

void py_holds_release(py_holds *holds)
{
	for (size_t i = 0; holds->live && holds->mems && i < holds->count; i++)
		py_mem_release(&holds->mems[i]);
	if (holds->mems != &holds->one)
		free(holds->mems);
	Py_CLEAR(holds->items);
	holds->mems = NULL;
	holds->count = 0;
	holds->live = false;
}

static void holds_capsule_free(PyObject *capsule)
{
	py_holds *holds = PyCapsule_GetPointer(capsule, "liblade.holds");

	if (holds) {
		py_holds_release(holds);
		PyMem_Free(holds);
	}
}

/* The holds as an object that a result can own; they are moved into it. */
PyObject *py_holds_capsule(py_holds *holds)
{
	py_holds *kept = PyMem_Malloc(sizeof(*kept));
	PyObject *capsule;

	if (!kept)
		return PyErr_NoMemory();
	*kept = *holds;
	if (holds->mems == &holds->one)
		kept->mems = &kept->one;
	capsule = PyCapsule_New(kept, "liblade.holds", holds_capsule_free);
	if (!capsule) {
		PyMem_Free(kept);
		return NULL;
	}
	*holds = (py_holds){0};
	return capsule;
}

void py_blame(const char *what, size_t i)
{
	PyObject *exception = PyErr_GetRaisedException(), *type = (PyObject *)Py_TYPE(exception);
	PyObject *text = i == PY_ALONE ? PyUnicode_FromFormat("%s: %S", what, exception)
	                               : PyUnicode_FromFormat("%s %zu: %S", what, i, exception);
	PyObject *named = NULL;

	if (text && PyObject_HasAttrString(exception, "status")) {
		PyObject *status = PyObject_GetAttrString(exception, "status");
		PyObject *offset = PyObject_GetAttrString(exception, "offset");
		if (status && offset)
			named = i == PY_ALONE ? PyObject_CallFunction(type, "OOO", text, status,
			                                              offset)
			                      : PyObject_CallFunction(type, "OOOn", text,
			                                              status, offset, i);
		Py_XDECREF(status);
		Py_XDECREF(offset);
	} else if (text && (PyObject_TypeCheck(exception, (PyTypeObject *)PyExc_TypeError) ||
	                    PyObject_TypeCheck(exception, (PyTypeObject *)PyExc_ValueError) ||
	                    PyObject_TypeCheck(exception, (PyTypeObject *)PyExc_BufferError))) {
		/* Not of a class that is not made of a text alone (UnicodeError's). */
		named = PyObject_CallFunction(type, "O", text);
	}
	PyErr_Clear();
	PyErr_SetRaisedException(named ? named : Py_NewRef(exception));
	Py_DECREF(exception);
	Py_XDECREF(text);
}

py_batch *py_table(const py_call *call, PyObject *object)
{
	bool is = call->batch && Py_TYPE(object) == call->codec->st->batch_type &&
	          !((py_batch *)object)->arrays;

	return is ? (py_batch *)object : NULL;
}

/* Takes hold of one object (batch false), or of a list's. */
bool py_hold(const py_call *call, PyObject *object, bool writable, py_holds *holds)
{
	py_state *st = call->codec->st;
	uintptr_t stream = call->codec->stream;

	if (!call->batch) {
		holds->mems = &holds->one;
		holds->live = true;
		if (!py_mem_get(st, object, writable, stream, &holds->one)) {
			holds->mems = NULL;
			if (writable)
				py_blame("out", PY_ALONE);
			return false;
		}
		holds->count = 1;
		return true;
	}
	if (Py_TYPE(object) == st->batch_type)
		object = ((py_batch *)object)->arrays;
	if (!holds->items && !(holds->items = PySequence_Tuple(object)))
		return false;
	size_t count = (size_t)PyTuple_Size(holds->items);
	holds->mems = malloc((count + 1) * sizeof(*holds->mems));
	if (!holds->mems) {
		PyErr_NoMemory();
		return false;
	}
	for (; holds->count < count; holds->count++) {
		PyObject *one = PyTuple_GetItem(holds->items, (Py_ssize_t)holds->count);
		py_mem *mem = &holds->mems[holds->count];
		if (py_mem_simple(st, one, writable, mem))
			continue;
		if (!py_mem_get(st, one, writable, stream, mem)) {
			py_blame(writable ? "out" : "item", holds->count);
			return false;
		}
		holds->live |= mem->array || mem->view;
	}
	return true;
}
