/*
 * intake.c: how any object becomes an Array, and the memory of a call.
 *
 * What an object offers is asked for in this order: buffer protocol, CUDA array interface, array
 * interface, DLPack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

/* ---- buffers ---------------------------------------------------------------------------- */

/* Whether a format has Python objects; names of fields stand between colons. */
static bool has_objects(const char *format)
{
	bool name = false;

	for (const char *p = format ? format : ""; *p; p++) {
		if (*p == ':')
			name = !name;
		else if (*p == 'O' && !name)
			return true;
	}
	return false;
}

static bool no_objects(void)
{
	PyErr_SetString(PyExc_TypeError, "arrays of Python objects are not possible");
	return false;
}

static py_array *from_buffer(py_state *st, PyObject *object)
{
	py_array *array = py_array_empty(st);
	Py_ssize_t count;
	Py_buffer *view;

	if (!array)
		return NULL;
	view = &array->view;
	if (PyObject_GetBuffer(object, view, PyBUF_FULL_RO)) {
		Py_DECREF(array);
		return NULL;
	}
	array->has_view = true;
	array->data = view->buf;
	array->readonly = view->readonly;
	if (view->suboffsets) {
		for (int i = 0; i < view->ndim; i++) {
			if (view->suboffsets[i] >= 0) {
				PyErr_SetString(PyExc_BufferError,
				                "buffers of pointers are not supported");
				goto fail;
			}
		}
	}
	if (has_objects(view->format)) {
		no_objects();
		goto fail;
	}
	if (!py_dtype_from_format(view->format, view->itemsize, &array->dtype)) {
		PyErr_Format(PyExc_BufferError, "elements of %zd bytes are not possible",
		             view->itemsize);
		goto fail;
	}
	count = view->len / view->itemsize;
	if (py_array_shape(array, view->ndim, view->shape ? view->shape : &count, view->strides))
		return array;
fail:
	Py_DECREF(array);
	return NULL;
}

/* ---- array interfaces ------------------------------------------------------------------- */

static bool read_dims(py_array *array, PyObject *dict)
{
	PyObject *shape = PyDict_GetItemString(dict, "shape");
	PyObject *strides = PyDict_GetItemString(dict, "strides");
	Py_ssize_t counts[PY_NDIM_MAX], steps[PY_NDIM_MAX];

	if (strides == Py_None)
		strides = NULL;
	if (!shape || !PyTuple_Check(shape) ||
	    (strides &&
	     (!PyTuple_Check(strides) || PyTuple_Size(strides) != PyTuple_Size(shape)))) {
		PyErr_SetString(PyExc_ValueError,
		                "array interface: shape and strides must be tuples of one length");
		return false;
	}
	return py_dims_arg(shape, counts) && (!strides || py_dims_arg(strides, steps)) &&
	       py_array_shape(array, PyTuple_Size(shape), counts, strides ? steps : NULL);
}

static bool read_type(py_array *array, PyObject *dict)
{
	PyObject *object = PyDict_GetItemString(dict, "typestr");
	const char *text = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, NULL)
	                                                     : NULL;

	if (!object || PyErr_Occurred()) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_ValueError, "array interface: typestr is missing");
		return false;
	}
	if (!text || strlen(text) < 3) {
		PyErr_Format(text ? PyExc_ValueError : PyExc_TypeError,
		             "array interface: typestr %R is not known", object);
		return false;
	}
	if (text[1] == 'O')
		return no_objects();
	if (py_dtype_parse(text, &array->dtype))
		return true;
	PyErr_Format(PyExc_ValueError, "array interface: typestr \"%s\" is not known", text);
	return false;
}

/* The interface's stream, on which the array is ready; nothing is waited for. */
static bool take_stream(py_array *array, PyObject *dict, uintptr_t stream)
{
	PyObject *object = PyDict_GetItemString(dict, "stream");
	uintptr_t number;

	array->stream = stream;
	if (!object || object == Py_None)
		return true;
	if (!py_stream_arg(object, &number))
		return false;
	if (!number) {
		PyErr_SetString(
			PyExc_ValueError,
			"__cuda_array_interface__: stream 0 is not allowed, 1 is the default");
		return false;
	}
	return py_array_ready_on(array, number, stream);
}

bool py_array_ready_on(py_array *array, uintptr_t ready, uintptr_t stream)
{
	/* The default stream waits for those of the threads, 2 among them. */
	ready = ready <= 2 ? 0 : ready;
	array->stream = stream ? stream : ready;
	return array->stream == ready || !array->size ||
	       py_follow(array->st, array->place.device, stream, ready);
}

static py_array *from_interface(py_state *st, PyObject *object, PyObject *dict, bool cuda,
                                uintptr_t stream)
{
	py_array *array = py_array_empty(st);
	PyObject *data = NULL, *mask;

	if (!array)
		return NULL;
	if (!PyDict_Check(dict)) {
		PyErr_SetString(PyExc_TypeError, "array interface: not a dictionary");
		goto fail;
	}
	/* The address is asked for its number, and may change the dictionary. */
	data = Py_XNewRef(PyDict_GetItemString(dict, "data"));
	mask = PyDict_GetItemString(dict, "mask");
	if (mask && mask != Py_None) {
		PyErr_SetString(PyExc_NotImplementedError, "masked arrays are not supported");
		goto fail;
	}
	if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2) {
		PyErr_SetString(PyExc_ValueError,
		                "array interface: data must be (address, read-only)");
		goto fail;
	}
	if (!py_address(PyTuple_GetItem(data, 0), "array interface: the address", &array->data))
		goto fail;
	array->readonly = PyObject_IsTrue(PyTuple_GetItem(data, 1)) != 0;
	if (PyErr_Occurred() || !read_type(array, dict) || !read_dims(array, dict))
		goto fail;
	array->owner = Py_NewRef(object);
	if (array->size && !array->data) {
		PyErr_Format(PyExc_ValueError, "array interface: address 0 with %zu bytes",
		             array->size);
		goto fail;
	}
	if (cuda) {
		/* The protocol has no device number; torch, CuPy and numba objects do. */
		PyObject *device = PyObject_GetAttrString(object, "device");
		PyObject *id = NULL;
		PyErr_Clear();
		array->place.kind = LADE_DEVICE;
		if (device)
			id = PyLong_Check(device) ? Py_NewRef(device)
			                          : PyObject_GetAttrString(device, "id");
		if (device && !id) {
			PyErr_Clear();
			id = PyObject_GetAttrString(device, "index");
		}
		if (id && PyLong_Check(id))
			array->place.device = (int32_t)PyLong_AsLong(id);
		Py_XDECREF(device);
		Py_XDECREF(id);
		PyErr_Clear();
		if (!take_stream(array, dict, stream))
			goto fail;
	}
	Py_DECREF(data);
	return array;
fail:
	Py_XDECREF(data);
	Py_DECREF(array);
	return NULL;
}

/* The attribute, or NULL without an exception when it is not there. */
static PyObject *attribute(PyObject *object, PyObject *name)
{
	PyObject *value = PyObject_GetAttr(object, name);

	if (!value && PyErr_ExceptionMatches(PyExc_AttributeError))
		PyErr_Clear();
	return value;
}

/* Whether an object of some package's is a device's array.  It may have the buffer protocol just to
 * refuse it, as CuPy's do, or for managed memory that its streams still write.  Interpreters' own
 * types are not asked. */
static bool is_cuda(py_state *st, PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	return PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE &&
	       PyObject_HasAttr((PyObject *)type, st->name_cai);
}

py_array *py_array_from(py_state *st, PyObject *object, uintptr_t stream)
{
	PyObject *value;
	py_array *array;

	if (Py_TYPE(object) == st->array_type)
		return (py_array *)Py_NewRef(object);
	if (PyObject_CheckBuffer(object) && !is_cuda(st, object)) {
		array = from_buffer(st, object);
		if (array || PyErr_ExceptionMatches(PyExc_TypeError))
			return array;
		/* numpy has no buffers of times. */
		value = PyErr_GetRaisedException();
		PyObject *dict = attribute(object, st->name_ai);
		if (dict)
			array = from_interface(st, object, dict, false, 0);
		else if (!PyErr_Occurred())
			PyErr_SetRaisedException(Py_NewRef(value));
		Py_DECREF(value);
		Py_XDECREF(dict);
		return array;
	}
	array = py_array_exchange(st, object, stream);
	if (array || PyErr_Occurred())
		return array;
	for (int cuda = 1; cuda >= 0; cuda--) {
		value = attribute(object, cuda ? st->name_cai : st->name_ai);
		if (value) {
			array = from_interface(st, object, value, cuda, stream);
			Py_DECREF(value);
			return array;
		}
		if (PyErr_Occurred())
			return NULL;
	}
	value = attribute(object, st->name_dlpack);
	if (value) {
		Py_DECREF(value);
		return py_array_from_dlpack(st, object, stream, Py_None);
	}
	if (!PyErr_Occurred() && PyObject_CheckBuffer(object))
		return from_buffer(st, object);
	if (!PyErr_Occurred())
		PyErr_Format(
			PyExc_TypeError,
			"%R has no memory to share: it has neither the buffer protocol, nor an "
			"array interface, nor DLPack",
			(PyObject *)Py_TYPE(object));
	return NULL;
}

/* ---- memory of a call ------------------------------------------------------------------- */

bool py_is_list(PyObject *object)
{
	return PyList_Check(object) || PyTuple_Check(object);
}

static bool not_writable(void)
{
	PyErr_SetString(PyExc_ValueError, "the memory is read-only");
	return false;
}

bool py_mem_simple(py_state *st, PyObject *object, bool writable, py_mem *out)
{
	*out = (py_mem){.place = LADE_PLACE_HOST};
	if (!writable && PyBytes_CheckExact(object)) {
		out->data = (char *)object + st->bytes_at;
		out->size = (size_t)Py_SIZE(object);
		return true;
	}
	return Py_TYPE(object) != st->array_type && py_numpy_get(st, object, writable, out);
}

bool py_mem_get(py_state *st, PyObject *object, bool writable, uintptr_t stream, py_mem *out)
{
	py_array *array;

	if (py_mem_simple(st, object, writable, out))
		return true;
	if (Py_TYPE(object) == st->array_type) {
		array = (py_array *)Py_NewRef(object);
	} else {
		if (PyObject_CheckBuffer(object) && !is_cuda(st, object)) {
			Py_buffer *view = PyMem_Malloc(sizeof(*view));
			if (!view) {
				PyErr_NoMemory();
				return false;
			}
			if (!PyObject_GetBuffer(object, view,
			                        (writable ? PyBUF_CONTIG : PyBUF_CONTIG_RO) |
			                                PyBUF_FORMAT)) {
				/* A letter alone is never that of objects but for "O" itself. */
				if (view->format && view->format[0] &&
				    (view->format[0] == 'O' || view->format[1]) &&
				    has_objects(view->format)) {
					PyBuffer_Release(view);
					PyMem_Free(view);
					return no_objects();
				}
				out->view = view;
				out->data = view->buf;
				out->size = (size_t)view->len;
				return true;
			}
			PyMem_Free(view);
			PyErr_Clear();
		}
		array = py_array_from(st, object, stream);
		if (!array)
			return false;
	}
	out->array = array;
	py_pin(array);
	out->data = array->data;
	out->size = array->size;
	out->place = array->place;
	if (writable && array->readonly) {
		py_mem_release(out);
		return not_writable();
	}
	return true;
}

bool py_mem_read(py_state *st, PyObject *object, py_mem *out)
{
	if (!py_mem_get(st, object, false, 0, out))
		return false;
	if (!out->array)
		return true;
	if (!py_array_synchronize(out->array)) {
		py_mem_release(out);
		return false;
	}
	out->size = out->array->size;
	return true;
}

bool py_mem_flatten(py_mem *mem)
{
	py_array *flat;

	if (!mem->array || mem->array->contiguous)
		return true;
	flat = py_array_copy(mem->array, mem->array->place, mem->array->stream);
	if (flat)
		py_mem_replace(mem, flat);
	return flat != NULL;
}

void py_mem_release(py_mem *mem)
{
	if (mem->view) {
		PyBuffer_Release(mem->view);
		PyMem_Free(mem->view);
		mem->view = NULL;
	}
	if (mem->array)
		py_unpin(mem->array);
	Py_CLEAR(mem->array);
	Py_CLEAR(mem->scratch);
}

void py_mem_replace(py_mem *mem, py_array *array)
{
	py_pin(array);
	if (mem->array)
		py_unpin(mem->array);
	PY_REPLACE(mem->array, array);
	mem->data = array->data;
	mem->size = array->size;
}
