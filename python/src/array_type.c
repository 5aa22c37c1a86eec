/*
 * array_type.c: liblade.Array as Python sees it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"src_object", "cuda_stream", NULL};
	PyObject *source, *stream_object = NULL;
	uintptr_t stream;
	py_state *st = PyType_GetModuleState(type);

	if (!st || !PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Array", names, &source,
	                                        &stream_object) ||
	    !py_stream_arg(stream_object, &stream))
		return NULL;
	return py_leave(st, (PyObject *)py_array_from(st, source, stream), stream, stream_object);
}

static const char *place_text(lade_place place, char *text, size_t cap)
{
	if (place.kind == LADE_DEVICE || place.kind == LADE_MANAGED)
		PyOS_snprintf(text, cap, "%s %d", lade_kind_name(place.kind), (int)place.device);
	else
		PyOS_snprintf(text, cap, "%s", lade_kind_name(place.kind));
	return text;
}

static PyObject *tuple_of(const Py_ssize_t *values, int count)
{
	PyObject *tuple = PyTuple_New(count);

	for (int i = 0; tuple && i < count; i++) {
		PyObject *value = PyLong_FromSsize_t(values[i]);
		if (!value || PyTuple_SetItem(tuple, i, value))
			Py_CLEAR(tuple);
	}
	return tuple;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
	(void)unused;
	if (!py_array_sized((py_array *)self))
		return NULL;
	return tuple_of(((py_array *)self)->shape, ((py_array *)self)->ndim);
}

static PyObject *get_strides(PyObject *self, void *unused)
{
	(void)unused;
	return tuple_of(((py_array *)self)->strides, ((py_array *)self)->ndim);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
	py_array *array = (py_array *)self;
	char text[24];

	(void)unused;
	py_dtype_text(array->dtype, text);
	return PyObject_CallFunction(array->st->dtype_class, "s", text);
}

static PyObject *array_repr(PyObject *self)
{
	py_array *array = (py_array *)self;
	char place[40];
	/* A repr waits for nothing. */
	bool pending = array->results && !py_results_fetched(array->results);
	PyObject *shape = array->unsized ? PyUnicode_FromString("(?)") : get_shape(self, NULL),
		 *dtype = get_dtype(self, NULL), *text = NULL;

	if (shape && dtype)
		text = PyUnicode_FromFormat(
			"<liblade.Array shape=%S dtype=%S on %s, %s%zu bytes%s%s%s>", shape, dtype,
			place_text(array->place, place, sizeof(place)),
			array->unsized ? "at most " : "", array->size,
			array->contiguous ? "" : ", strided", array->readonly ? ", read-only" : "",
			pending ? ", not waited for" : "");
	Py_XDECREF(shape);
	Py_XDECREF(dtype);
	return text;
}

static PyObject *get_buffer_kind(PyObject *self, void *unused)
{
	py_array *array = (py_array *)self;

	(void)unused;
	return Py_NewRef(lade_kind_is_host(array->place.kind) ? array->st->kind_host
	                                                      : array->st->kind_device);
}

static PyObject *get_number(PyObject *self, void *which)
{
	py_array *array = (py_array *)self;

	switch ((int)(intptr_t)which) {
	case 0:
		return py_array_wait(array) ? PyLong_FromSize_t(array->size) : NULL;
	case 1: return PyLong_FromSize_t(array->cap > array->size ? array->cap : array->size);
	case 2: return PyLong_FromSize_t(array->dtype.size);
	case 3: return PyLong_FromLong(array->ndim);
	case 4:
		return py_array_sized(array) ? PyLong_FromSize_t(array->size / array->dtype.size)
		                             : NULL;
	case 5: return PyLong_FromLong(0);
	case 6:
		array->exposed = true;
		py_array_share(array);
		return PyLong_FromVoidPtr(array->data);
	case 7: return PyBool_FromLong(array->readonly);
	default: return PyLong_FromLong(lade_kind_is_host(array->place.kind) &&
	                                array->place.kind != LADE_MANAGED
	                                        ? -1 : array->place.device);
	}
}

static PyObject *get_place(PyObject *self, void *unused)
{
	(void)unused;
	return PyUnicode_FromString(lade_kind_name(((py_array *)self)->place.kind));
}

/* The dictionary of both array interfaces. */
static PyObject *interface(py_array *array, bool cuda)
{
	char text[24];
	PyObject *shape, *strides = NULL, *dict = NULL;

	if (!(cuda ? py_array_sized(array) : py_array_wait(array)))
		return NULL;
	array->exposed = true;
	py_array_share(array);
	py_dtype_text(array->dtype, text);
	/* The protocol has no type string for what is not IEEE 754. */
	if (array->dtype.kind == 'e')
		PyOS_snprintf(text, sizeof(text), array->dtype.size == 1 ? "|V1" : "<V2");
	shape = get_shape((PyObject *)array, NULL);
	if (shape)
		strides = array->contiguous ? Py_NewRef(Py_None)
		                            : get_strides((PyObject *)array, NULL);
	if (strides)
		dict = Py_BuildValue("{s:O,s:s,s:(NN),s:i,s:O}", "shape", shape, "typestr", text,
		                     "data", PyLong_FromVoidPtr(array->size ? array->data : NULL),
		                     PyBool_FromLong(array->readonly), "version", 3, "strides",
		                     strides);
	if (dict && cuda) {
		/* What was waited for needs no stream; 1 is the protocol's name of the default
		 * stream. */
		bool pending = array->results && !py_results_fetched(array->results);
		PyObject *stream =
			array->stream || pending
				? PyLong_FromUnsignedLongLong(array->stream ? array->stream : 1)
				: Py_NewRef(Py_None);
		if (!stream || PyDict_SetItemString(dict, "stream", stream))
			Py_CLEAR(dict);
		Py_XDECREF(stream);
	}
	Py_XDECREF(shape);
	Py_XDECREF(strides);
	return dict;
}

static PyObject *get_array_interface(PyObject *self, void *unused)
{
	py_array *array = (py_array *)self;

	(void)unused;
	if (!lade_kind_is_host(array->place.kind)) {
		PyErr_SetString(PyExc_AttributeError,
		                "__array_interface__: the array is on a device; cpu() copies it");
		return NULL;
	}
	return interface(array, false);
}

static PyObject *get_cuda_interface(PyObject *self, void *unused)
{
	py_array *array = (py_array *)self;

	(void)unused;
	if (array->place.kind != LADE_DEVICE && array->place.kind != LADE_MANAGED) {
		PyErr_Format(
			PyExc_AttributeError,
			"__cuda_array_interface__: the array is in %s memory; cuda() copies it",
			lade_kind_name(array->place.kind));
		return NULL;
	}
	return interface(array, true);
}

/* ---- methods ---------------------------------------------------------------------------- */

static PyObject *array_cpu(PyObject *self, PyObject *unused)
{
	py_array *array = (py_array *)self;

	(void)unused;
	if (!py_array_wait(array))
		return NULL;
	if (lade_kind_is_host(array->place.kind))
		return Py_NewRef(self);
	return (PyObject *)py_array_copy(array, LADE_PLACE_HOST, array->stream);
}

bool py_array_synchronize(py_array *array)
{
	lade_error err;
	lade_status status;

	if (!py_array_wait(array))
		return false;
	if (array->results)
		py_kept_sweep(array->st);
	if (array->place.kind != LADE_DEVICE || array->results)
		return true;
	Py_BEGIN_ALLOW_THREADS status =
		lade_stream_wait(array->place.device, (lade_stream)array->stream, &err);
	Py_END_ALLOW_THREADS py_kept_sweep(array->st);
	if (status)
		py_raise(array->st, &err, SIZE_MAX);
	return !status;
}

static PyObject *array_synchronize(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (!py_array_synchronize((py_array *)self))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *array_cuda(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"synchronize", "cuda_stream", "device_id", NULL};
	py_array *array = (py_array *)self;
	int synchronize = 1;
	int32_t device;
	PyObject *stream_object = NULL, *device_object = NULL, *out;
	uintptr_t stream;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pOO:cuda", names, &synchronize,
	                                 &stream_object, &device_object) ||
	    !py_stream_arg(stream_object, &stream) ||
	    !py_device_arg(array->st, device_object, &device))
		return NULL;
	if (array->place.kind == LADE_DEVICE &&
	    (device == PY_DEVICE_ANY || device == array->place.device))
		return Py_NewRef(self);
	if (device == PY_DEVICE_ANY)
		device = 0;
	out = (PyObject *)py_array_copy(array, (lade_place){LADE_DEVICE, device}, stream);
	return py_leave(array->st, out, stream, stream_object);
}

/* For the module copy, which would bring a device's array to the host by its pickle. */
static PyObject *array_duplicate(PyObject *self, PyObject *unused)
{
	py_array *array = (py_array *)self;

	(void)unused;
	return (PyObject *)py_array_copy(array, array->place, array->stream);
}

static PyObject *array_tobytes(PyObject *self, PyObject *unused)
{
	py_array *array = (py_array *)self, *host = NULL;
	PyObject *out = NULL;

	(void)unused;
	if (!py_array_wait(array))
		return NULL;
	if (array->contiguous && lade_kind_is_host(array->place.kind))
		return PyBytes_FromStringAndSize(array->data, (Py_ssize_t)array->size);
	host = py_array_copy(array, LADE_PLACE_HOST, array->stream);
	if (host)
		out = PyBytes_FromStringAndSize(host->data, (Py_ssize_t)host->size);
	Py_XDECREF(host);
	return out;
}

static PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
	PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOO:__dlpack__", names, &stream,
	                                 &version, &device, &copy))
		return NULL;
	return py_array_dlpack((py_array *)self, stream, version, device, copy);
}

static PyObject *array_to_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"cuda_stream", NULL};
	PyObject *stream = Py_None;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:to_dlpack", names, &stream))
		return NULL;
	return py_array_dlpack((py_array *)self, stream, Py_None, Py_None, Py_None);
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
	int32_t type, id;

	(void)unused;
	lade_place_to_dlpack(((py_array *)self)->place, &type, &id);
	return Py_BuildValue("(ii)", type, id);
}

PyObject *py_reduce(const char *function, PyObject *args)
{
	PyObject *module = args ? PyImport_ImportModule("liblade._lade") : NULL, *make = NULL;
	PyObject *out = NULL;

	if (module)
		make = PyObject_GetAttrString(module, function);
	if (make)
		out = PyTuple_Pack(2, make, args);
	Py_XDECREF(module);
	Py_XDECREF(make);
	Py_XDECREF(args);
	return out;
}

/* An array comes back from a pickle with its bytes, type and shape, on the host. */
static PyObject *array_reduce(PyObject *self, PyObject *unused)
{
	PyObject *data = array_tobytes(self, NULL);

	(void)unused;
	return data ? py_reduce("_rebuild", Py_BuildValue("(NNN)", data, get_dtype(self, NULL),
	                                                  get_shape(self, NULL)))
	            : NULL;
}

/* ---- indexing --------------------------------------------------------------------------- */

/* Applies one index to dimension 'from' of 'array'; true if the dimension stays. */
static int index_one(py_array *array, int from, PyObject *key, char **data, Py_ssize_t *shape,
                     Py_ssize_t *stride)
{
	Py_ssize_t n = array->shape[from], start, stop, step;

	if (PySlice_Check(key)) {
		if (PySlice_Unpack(key, &start, &stop, &step) < 0)
			return -1;
		*shape = PySlice_AdjustIndices(n, &start, &stop, step);
		if (*shape)
			*data += start * array->strides[from];
		*stride = step * array->strides[from];
		return 1;
	}
	if (!py_index(key, &start))
		return -1;
	if (start < -n || start >= n) {
		PyErr_Format(PyExc_IndexError, "index %zd is outside dimension %d of %zd elements",
		             start, from, n);
		return -1;
	}
	*data += (start < 0 ? start + n : start) * array->strides[from];
	return 0;
}

static PyObject *array_subscript(PyObject *self, PyObject *key)
{
	py_array *array = (py_array *)self, *view = NULL;
	PyObject *keys;
	Py_ssize_t count, given = 0;
	char *data;
	int from = 0, to = 0;
	Py_ssize_t shape[PY_NDIM_MAX], strides[PY_NDIM_MAX];

	if (!py_array_sized(array))
		return NULL;
	/* An index is asked for its number, and may decode to this array. */
	py_pin(array);
	keys = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
	count = keys ? PyTuple_Size(keys) : -1;
	data = array->data;
	for (Py_ssize_t k = 0; k < count; k++)
		given += PyTuple_GetItem(keys, k) != Py_Ellipsis;
	if (count < 0 || given > array->ndim || count - given > 1) {
		if (count >= 0)
			PyErr_Format(PyExc_IndexError, "%zd indices for %d dimensions", given,
			             array->ndim);
		goto out;
	}
	for (Py_ssize_t k = 0; k <= count; k++) {
		PyObject *one = k < count ? PyTuple_GetItem(keys, k) : Py_Ellipsis;
		if (one == Py_Ellipsis) {
			int end = k < count ? array->ndim - (int)(count - 1 - k) : array->ndim;
			for (; from < end; from++, to++) {
				shape[to] = array->shape[from];
				strides[to] = array->strides[from];
			}
			continue;
		}
		int kept = index_one(array, from++, one, &data, &shape[to], &strides[to]);
		if (kept < 0)
			goto out;
		to += kept;
	}
	view = py_array_part(array->st, self, data, 0, array->place, array->dtype, array->readonly,
	                     array->stream);
	if (!view || !py_array_shape(view, to, shape, strides)) {
		Py_CLEAR(view);
		goto out;
	}
	py_array_on_stream(view, array->stream, array->stream_object);
	py_array_tie(view, array->results, array->result, false);
	view->batched = array->batched;
out:
	Py_XDECREF(keys);
	py_unpin(array);
	return (PyObject *)view;
}

/* What iterators ask for; an IndexError ends them. */
static PyObject *array_item(PyObject *self, Py_ssize_t i)
{
	PyObject *key = PyLong_FromSsize_t(i), *item = key ? array_subscript(self, key) : NULL;

	Py_XDECREF(key);
	return item;
}

static PyObject *array_iter(PyObject *self)
{
	if (!py_array_sized((py_array *)self))
		return NULL;
	if (((py_array *)self)->ndim)
		return PySeqIter_New(self);
	PyErr_SetString(PyExc_TypeError, "an array without dimensions has no items");
	return NULL;
}

static Py_ssize_t array_length(PyObject *self)
{
	py_array *array = (py_array *)self;

	if (!py_array_sized(array))
		return -1;
	if (!array->ndim) {
		PyErr_SetString(PyExc_TypeError, "len() of an array without dimensions");
		return -1;
	}
	return array->shape[0];
}

/* ---- buffer protocol -------------------------------------------------------------------- */

/* 'C', 'F', 'A' for one of both; 0: any strides will do. */
static char order_wanted(int flags)
{
	if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS)
		return 'F';
	if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS)
		return 'A';
	return (flags & PyBUF_C_CONTIGUOUS) == PyBUF_STRIDES ? 0 : 'C';
}

static int fill_view(py_array *array, Py_buffer *view, int flags)
{
	const char *format = py_dtype_format(array->dtype);
	char order;

	if (!lade_kind_is_host(array->place.kind)) {
		PyErr_Format(PyExc_BufferError, "the array is on device %d; cpu() copies it",
		             (int)array->place.device);
		return -1;
	}
	if ((flags & PyBUF_WRITABLE) && array->readonly) {
		PyErr_SetString(PyExc_BufferError, "the array is read-only");
		return -1;
	}
	*view = (Py_buffer){.buf = array->data, .len = (Py_ssize_t)array->size,
	                    .itemsize = (Py_ssize_t)array->dtype.size, .readonly = array->readonly,
	                    .ndim = array->ndim, .shape = array->shape, .strides = array->strides};
	/* A type that struct cannot express is a string of its bytes. */
	if (!format) {
		char *text = PyMem_Malloc(16);
		if (!text) {
			PyErr_NoMemory();
			return -1;
		}
		PyOS_snprintf(text, 16, "%us", (unsigned)array->dtype.size);
		view->internal = text;
		format = text;
	}
	view->format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)format : NULL;
	order = order_wanted(flags);
	if (order && !(order == 'C' ? array->contiguous : PyBuffer_IsContiguous(view, order))) {
		PyMem_Free(view->internal);
		PyErr_SetString(PyExc_BufferError,
		                order == 'F' ? "the array is not in Fortran's order"
		                             : "the array is strided and the buffer is wanted "
		                               "contiguous");
		return -1;
	}
	if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
		view->strides = NULL;
	if ((flags & PyBUF_ND) != PyBUF_ND)
		view->shape = NULL;
	return 0;
}

static int array_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	py_array *array = (py_array *)self;

	view->obj = NULL;
	py_pin(array);
	if (fill_view(array, view, flags)) {
		py_unpin(array);
		return -1;
	}
	view->obj = Py_NewRef(self);
	return 0;
}

static void array_releasebuffer(PyObject *self, Py_buffer *view)
{
	PyMem_Free(view->internal);
	py_unpin((py_array *)self);
}

/* ---- the type --------------------------------------------------------------------------- */

#define NUMBER(i) ((void *)(intptr_t)(i))

static PyGetSetDef getset[] = {
	{"buffer_kind", get_buffer_kind, NULL, "ArrayBufferKind: on the host or on a device.",
         NULL},
	{"buffer_size", get_number, NULL, "Bytes of all elements.", NUMBER(0)},
	{"capacity", get_number, NULL, "Bytes of the memory behind it.", NUMBER(1)},
	{"item_size", get_number, NULL, "Bytes of an element.", NUMBER(2)},
	{"ndim", get_number, NULL, "Number of dimensions.", NUMBER(3)},
	{"size", get_number, NULL, "Number of elements.", NUMBER(4)},
	{"precision", get_number, NULL, "Significant bits of an element; 0: all of them.",
         NUMBER(5)},
	{"ptr", get_number, NULL, "Address of the first element.", NUMBER(6)},
	{"readonly", get_number, NULL, "True if the memory must not be written.", NUMBER(7)},
	{"device_id", get_number, NULL, "Number of the device; -1 on the host.", NUMBER(8)},
	{"place", get_place, NULL, "'host', 'pinned', 'managed' or 'device'.", NULL},
	{"dtype", get_dtype, NULL,
	 "DType: the element type; a str, '<f4', that prints as float32.", NULL},
	{"shape", get_shape, NULL, "Elements in each dimension.", NULL},
	{"strides", get_strides, NULL, "Bytes from one element to the next in each dimension.",
         NULL},
	{"__array_interface__", get_array_interface, NULL, "Version 3; host memory only.", NULL},
	{"__cuda_array_interface__", get_cuda_interface, NULL, "Version 3; device memory only.",
         NULL},
	{0},
};

static PyMethodDef methods[] = {
	{"cpu", array_cpu, METH_NOARGS,
         "cpu($self, /)\n--\n\n"
         "The array on the host: itself, or a copy, for which it waits.  Raises what the work\n"
         "that writes the array failed with."},
	{"synchronize", array_synchronize, METH_NOARGS,
         "synchronize($self, /)\n--\n\n"
         "Waits for the work that writes the array; raises what it failed with, each time."},
	{"cuda", (PyCFunction)(void (*)(void))array_cuda, METH_VARARGS | METH_KEYWORDS,
         "cuda($self, /, synchronize=True, cuda_stream=0, device_id=None)\n--\n\n"
         "The array on a device: itself, or a copy, for which it waits whatever 'synchronize' is.\n"
         "device_id: which; None: any, or device 0.  Raises DeviceError where there is none."},
	{"tobytes", array_tobytes, METH_NOARGS,
         "tobytes($self, /)\n--\n\nA copy of the elements' bytes, in C order."},
	{"to_dlpack", (PyCFunction)(void (*)(void))array_to_dlpack, METH_VARARGS | METH_KEYWORDS,
         "to_dlpack($self, /, cuda_stream=None)\n--\n\n"
         "A DLPack capsule of the old kind, for which cuda_stream waits; BufferError for types\n"
         "that DLPack lacks."},
	{"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
         "__dlpack__($self, /, stream=None, *, max_version=None, dl_device=None, "
         "copy=None)\n--\n\n"
         "A DLPack capsule; BufferError where that is not possible."},
	{"__dlpack_device__", array_dlpack_device, METH_NOARGS,
         "__dlpack_device__($self, /)\n--\n\nDLPack's device type and number."},
	{"__copy__", array_duplicate, METH_NOARGS, NULL},
	{"__deepcopy__", array_duplicate, METH_O, NULL},
	{"__reduce__", array_reduce, METH_NOARGS, NULL},
	{0},
};

static PyMemberDef members[] = {
	{"__weaklistoffset__", Py_T_PYSSIZET, offsetof(py_array, weakrefs), Py_READONLY, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "Array(src_object, cuda_stream=0)\n--\n\n"
	            "Typed memory on the host or on a device, shared with 'src_object'."},
	{Py_tp_new, array_new},
	{Py_tp_dealloc, py_array_dealloc},
	{Py_tp_traverse, py_array_traverse},
	{Py_tp_clear, py_array_clear},
	{Py_tp_repr, array_repr},
	{Py_tp_getset, getset},
	{Py_tp_methods, methods},
	{Py_tp_members, members},
	{Py_mp_subscript, array_subscript},
	{Py_sq_item, array_item},
	{Py_tp_iter, array_iter},
	{Py_mp_length, array_length},
	{Py_bf_getbuffer, array_getbuffer},
	{Py_bf_releasebuffer, array_releasebuffer},
	{0, NULL},
};

PyType_Spec py_array_spec = {
	.name = "liblade.Array",
	.basicsize = sizeof(py_array),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
