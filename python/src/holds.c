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
		py_room_give(holds->st, holds->mems);
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

/* The name of an argument and its item go before the message of the exception that is set. */
void py_blame(const char *what, size_t i)
{
	PyObject *exception = PyErr_GetRaisedException();

	if (PyObject_TypeCheck(exception, (PyTypeObject *)PyExc_TypeError) ||
	    PyObject_TypeCheck(exception, (PyTypeObject *)PyExc_ValueError)) {
		PyErr_Format((PyObject *)Py_TYPE(exception), "%s %zu: %S", what, i, exception);
		if (PyErr_ExceptionMatches((PyObject *)Py_TYPE(exception))) {
			Py_DECREF(exception);
			return;
		}
		PyErr_Clear(); /* a class that is not made of a text alone (UnicodeError's) */
	}
	PyErr_SetRaisedException(exception);
}

bool py_is_batch(py_state *st, PyObject *object)
{
	return Py_TYPE(object) == st->batch_type;
}

bool py_hold_list(PyObject *list, py_holds *holds)
{
	return (holds->items = PySequence_Tuple(list)) != NULL;
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
			return false;
		}
		holds->count = 1;
		return true;
	}
	if (py_is_batch(st, object))
		holds->items = Py_NewRef(((py_batch *)object)->arrays);
	else if (!holds->items && !py_hold_list(object, holds))
		return false;
	size_t count = (size_t)PyTuple_Size(holds->items);
	holds->mems = py_room_take(st, (count + 1) * sizeof(*holds->mems));
	holds->st = st;
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
