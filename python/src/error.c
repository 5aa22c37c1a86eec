/*
 * error.c: a failure of the library becomes an exception.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

/*
 * The message names the item of a batch: the library's own words do where it was given one table
 * of items, and not always with the index that the caller knows.
 */
static void name_item(const lade_error *err, size_t index, char *text, size_t cap)
{
	const char *message = err->message[0] ? err->message : lade_status_text(err->status);
	const char *p = message;

	if (!strncmp(p, "item ", 5)) {
		p += 5 + strspn(p + 5, "0123456789");
		message = p[0] == ':' && p[1] == ' ' ? p + 2 : message;
	}
	if (index == SIZE_MAX)
		PyOS_snprintf(text, cap, "%s", message);
	else
		PyOS_snprintf(text, cap, "item %zu: %s", index, message);
}

PyObject *py_message(const char *text)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

PyObject *py_exception(py_state *st, const lade_error *err, size_t index)
{
	unsigned status = (unsigned)err->status;
	PyObject *cls = st->error[status < PY_STATUS_COUNT ? status : LADE_E_INTERNAL];
	PyObject *message, *offset, *item, *out = NULL;
	char text[LADE_MESSAGE_CAP + 32];

	name_item(err, index, text, sizeof(text));
	message = py_message(text);
	offset = err->offset == LADE_NO_OFFSET ? Py_NewRef(Py_None)
	                                       : PyLong_FromUnsignedLongLong(err->offset);
	item = index == SIZE_MAX ? Py_NewRef(Py_None) : PyLong_FromSize_t(index);
	if (message && offset && item)
		out = PyObject_CallFunction(cls, "OsOO", message, lade_status_name(err->status),
		                            offset, item);
	Py_XDECREF(message);
	Py_XDECREF(offset);
	Py_XDECREF(item);
	return out;
}

void py_raise(py_state *st, const lade_error *err, size_t index)
{
	PyObject *exception = py_exception(st, err, index);

	if (exception) {
		PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
		Py_DECREF(exception);
	}
}

/* ---- arguments -------------------------------------------------------------------------- */

void py_no_integer(const char *what, PyObject *given)
{
	if (PyErr_ExceptionMatches(PyExc_TypeError))
		PyErr_Format(PyExc_TypeError, "%s: %R is no integer", what, given);
	else if (PyErr_ExceptionMatches(PyExc_OverflowError))
		PyErr_Format(PyExc_ValueError, "%s: %S is below 0 or too large", what, given);
}

bool py_index(PyObject *key, Py_ssize_t *index)
{
	if (!PyIndex_Check(key)) {
		PyErr_Format(PyExc_TypeError, "index %R is no integer and no slice", key);
		return false;
	}
	*index = PyNumber_AsSsize_t(key, PyExc_IndexError);
	return *index != -1 || !PyErr_Occurred();
}

PyObject *py_tuple(PyObject *object, const char *what)
{
	PyObject *iterator = PyObject_GetIter(object);

	if (!iterator) {
		if (PyErr_ExceptionMatches(PyExc_TypeError))
			PyErr_Format(PyExc_TypeError, "%s: %R is no list of arrays", what, object);
		return NULL;
	}
	Py_DECREF(iterator);
	return PySequence_Tuple(object);
}
