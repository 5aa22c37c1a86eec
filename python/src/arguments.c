/*
 * arguments.c: streams, addresses and devices as arguments.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

/* What stands in a stream object of another package; NULL without an exception: no such thing. */
static PyObject *attribute(PyObject *object, const char *name)
{
	PyObject *value = PyObject_GetAttrString(object, name), *inner;

	if (!value) {
		if (PyErr_ExceptionMatches(PyExc_AttributeError))
			PyErr_Clear();
		return NULL;
	}
	if (PyCallable_Check(value)) {
		inner = PyObject_CallNoArgs(value);
	} else if (!PyIndex_Check(value) && PyObject_HasAttrString(value, "value")) {
		/* A pointer of ctypes, which says None for 0. */
		inner = PyObject_GetAttrString(value, "value");
		if (inner == Py_None) {
			Py_DECREF(inner);
			inner = PyLong_FromLong(0);
		}
	} else {
		return value;
	}
	Py_DECREF(value);
	return inner;
}

/* The handle of a stream of liblade's or CuPy's, of any that has the protocol of CUDA's own
 * packages (a version and the handle), of torch's and numba's. */
static PyObject *stream_handle(PyObject *stream)
{
	static const char *const names[] = {"ptr", "__cuda_stream__", "cuda_stream", "handle"};
	PyObject *handle = NULL, *pair;

	for (size_t i = 0; !handle && !PyErr_Occurred() && i < 4; i++)
		handle = attribute(stream, names[i]);
	if (!handle || !PyTuple_Check(handle))
		return handle;
	pair = handle;
	handle = Py_XNewRef(PyTuple_GetItem(pair, 1));
	Py_DECREF(pair);
	return handle;
}

bool py_stream_arg(PyObject *object, uintptr_t *stream)
{
	PyObject *number;
	char *handle;
	bool ok;

	if (!object || object == Py_None) {
		*stream = 0;
		return true;
	}
	number = PyLong_Check(object) ? Py_NewRef(object) : stream_handle(object);
	if (!number) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_TypeError,
			             "cuda_stream: %R is no stream: neither an integer nor an "
			             "object with 'ptr', '__cuda_stream__', 'cuda_stream' or "
			             "'handle'",
			             object);
		return false;
	}
	ok = py_address(number, "cuda_stream", &handle);
	*stream = (uintptr_t)handle;
	Py_DECREF(number);
	return ok;
}

bool py_address(PyObject *object, const char *what, char **address)
{
	PyObject *number = PyIndex_Check(object) ? PyNumber_Index(object) : NULL;
	size_t value;

	*address = NULL;
	if (!number) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_TypeError, "%s is %R, an integer is wanted", what,
			             object);
		return false;
	}
	value = PyLong_AsSize_t(number);
	Py_DECREF(number);
	if (value == (size_t)-1) {
		if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_OverflowError))
			PyErr_Format(PyExc_ValueError, "%s is %R, which is no address", what,
			             object);
		return false;
	}
	*address = (char *)value;
	return true;
}

bool py_device_arg(py_state *st, PyObject *object, int32_t *device)
{
	const lade_device_info *info;
	PyObject *number;
	lade_status status;
	lade_error err;
	long long value;

	*device = PY_DEVICE_ANY;
	if (!object || object == Py_None)
		return true;
	number = PyIndex_Check(object) ? PyNumber_Index(object) : NULL;
	if (!number) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_TypeError, "device_id is %R, an integer is wanted",
			             object);
		return false;
	}
	value = PyLong_AsLongLong(number);
	Py_DECREF(number);
	if (PyErr_Occurred() || value < 0 || value > INT32_MAX) {
		PyErr_Format(PyExc_ValueError, "device_id is %R, it can be from 0 to %d", object,
		             INT32_MAX);
		return false;
	}
	Py_BEGIN_ALLOW_THREADS
	status = lade_device_get_info((int32_t)value, &info, &err);
	Py_END_ALLOW_THREADS
	if (status) {
		py_raise(st, &err, SIZE_MAX);
		return false;
	}
	*device = (int32_t)value;
	return true;
}

PyObject *py_stream_keeper(PyObject *object)
{
	PyObject *owner;

	if (!object || object == Py_None || PyLong_Check(object))
		return NULL;
	owner = PyCapsule_CheckExact(object) ? NULL : PyObject_GetAttrString(object, "_owner");
	if (!owner)
		PyErr_Clear();
	Py_XDECREF(owner); /* the stream has it as well */
	return owner && PyCapsule_CheckExact(owner) ? owner : object;
}
