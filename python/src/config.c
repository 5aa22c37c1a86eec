/*
 * config.c: the decoded sizes of a call's config.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

#include <string.h>

/* With fewer sizes the numbers are not kept. */
#define KEEP_LEAST 8

/* In a config's attributes: (the tuple of its sizes, the same as bytes of 64-bit numbers). */
static const char kept_name[] = "_numbers";

static const char *name_of(const py_call *call)
{
	return call->encode ? "compression_config" : "decompression_config";
}

/* The tuple of the config's sizes, of 'count'; a new reference. */
static PyObject *tuple_of(const py_call *call, size_t count)
{
	PyObject *sizes = PyObject_GetAttrString(call->config, "_sizes");

	if (!sizes && PyErr_ExceptionMatches(PyExc_AttributeError))
		PyErr_Format(PyExc_TypeError, "%s: %R is no config", name_of(call), call->config);
	if (!sizes || (PyTuple_Check(sizes) && (size_t)PyTuple_Size(sizes) == count))
		return sizes;
	PyErr_Format(PyExc_ValueError, "the config is for %zd arrays, and there are %zu",
	             PyTuple_Check(sizes) ? PyTuple_Size(sizes) : -1, count);
	Py_DECREF(sizes);
	return NULL;
}

static bool read_size(const py_call *call, PyObject *one, uint64_t *size)
{
	*size = PyLong_Check(one) ? PyLong_AsUnsignedLongLong(one) : 0;
	if (PyLong_Check(one) && !PyErr_Occurred())
		return true;
	PyErr_Clear();
	PyErr_Format(PyLong_Check(one) ? PyExc_ValueError : PyExc_TypeError,
	             "%s: %R is no size in bytes", name_of(call), one);
	return false;
}

/* Reads the numbers that an earlier call kept of this tuple; false: there are none. */
static bool get_kept(PyObject *config, PyObject *sizes, size_t count, uint64_t *to)
{
	PyObject *kept = PyObject_GetAttrString(config, kept_name);
	bool found = kept && PyTuple_Check(kept) && PyTuple_Size(kept) == 2 &&
	             PyTuple_GetItem(kept, 0) == sizes;
	PyObject *bytes = found ? PyTuple_GetItem(kept, 1) : NULL;

	found = bytes && PyBytes_Check(bytes) &&
	        (size_t)PyBytes_Size(bytes) == count * sizeof(*to);
	if (found)
		memcpy(to, PyBytes_AsString(bytes), count * sizeof(*to));
	Py_XDECREF(kept);
	PyErr_Clear();
	return found;
}

/* Ten thousand integers take longer to read than the work on the device takes to enqueue.  Failure
 * is none of the call's: the next one reads them again. */
static void keep(PyObject *config, PyObject *sizes, size_t count, const uint64_t *from)
{
	PyObject *bytes = PyBytes_FromStringAndSize((const char *)from,
	                                            (Py_ssize_t)(count * sizeof(*from)));
	PyObject *kept = bytes ? PyTuple_Pack(2, sizes, bytes) : NULL;
	PyObject *name = kept ? PyUnicode_FromString(kept_name) : NULL;

	/* Configs refuse what is assigned to them. */
	if (name)
		PyObject_GenericSetAttr(config, name, kept);
	PyErr_Clear();
	Py_XDECREF(name);
	Py_XDECREF(kept);
	Py_XDECREF(bytes);
}

bool py_config_sizes(const py_call *call, size_t count, uint64_t *to)
{
	PyObject *sizes = tuple_of(call, count);
	bool ok = sizes != NULL;

	if (ok && count >= KEEP_LEAST && get_kept(call->config, sizes, count, to)) {
		Py_DECREF(sizes);
		return true;
	}
	for (size_t i = 0; ok && i < count; i++)
		ok = read_size(call, PyTuple_GetItem(sizes, (Py_ssize_t)i), &to[i]);
	if (ok && count >= KEEP_LEAST)
		keep(call->config, sizes, count, to);
	Py_XDECREF(sizes);
	return ok;
}
