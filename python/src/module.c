/*
 * module.c: the module liblade._lade: its state and its functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "file.h"
#include "rntuple_py.h"
#include "share_py.h"
#include "zarr_py.h"

static py_state *state_of(PyObject *module)
{
	return PyModule_GetState(module);
}

/* ---- functions -------------------------------------------------------------------------- */

static PyObject *as_array(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"source", "cuda_stream", NULL};
	PyObject *source, *stream_object = NULL;
	uintptr_t stream;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:as_array", names, &source,
	                                 &stream_object) ||
	    !py_stream_arg(stream_object, &stream))
		return NULL;
	return py_leave(state_of(module),
	                (PyObject *)py_array_from(state_of(module), source, stream), stream,
	                stream_object);
}

/* as_arrays(sources, cuda_stream=0), as_arrays(buffer, offsets, sizes, cuda_stream=0) */
static PyObject *as_arrays(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"sources", "offsets", "sizes", "cuda_stream", "buffer", NULL};
	PyObject *source = NULL, *buffer = NULL, *offsets = NULL, *sizes = NULL;
	PyObject *stream_object = NULL;
	uintptr_t stream;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO$O:as_arrays", names, &source,
	                                 &offsets, &sizes, &stream_object, &buffer))
		return NULL;
	if (!source == !buffer) {
		PyErr_SetString(PyExc_TypeError,
		                source ? "as_arrays() wants sources or buffer, not both"
				       : "as_arrays() wants the argument 'sources' or 'buffer'");
		return NULL;
	}
	if (buffer && (!offsets || !sizes)) {
		PyErr_SetString(PyExc_TypeError, "as_arrays(buffer=) wants offsets and sizes");
		return NULL;
	}
	source = source ? source : buffer;
	if (offsets && !sizes && PyLong_Check(offsets)) {
		stream_object = offsets;
		offsets = NULL;
	}
	if (!py_stream_arg(stream_object, &stream))
		return NULL;
	if (!offsets && !sizes)
		return py_leave(state_of(module), py_batch_arrays(state_of(module), source, stream),
		                stream, stream_object);
	if (!offsets || !sizes) {
		PyErr_SetString(PyExc_TypeError,
		                "as_arrays() wants both offsets and sizes, or neither");
		return NULL;
	}
	return py_leave(state_of(module),
	                py_batch_table(state_of(module), source, offsets, sizes, stream), stream,
	                stream_object);
}

static PyObject *from_dlpack(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"source", "cuda_stream", "copy", NULL};
	PyObject *source, *stream_object = NULL, *copy = Py_None;
	uintptr_t stream;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$O:from_dlpack", names, &source,
	                                 &stream_object, &copy) ||
	    !py_stream_arg(stream_object, &stream))
		return NULL;
	return py_leave(state_of(module),
	                (PyObject *)py_array_from_dlpack(state_of(module), source, stream, copy),
	                stream, stream_object);
}

static PyObject *set_allocator(PyObject *module, PyObject *args)
{
	py_state *st = state_of(module);
	PyObject *function, *old;
	int which;

	if (!PyArg_ParseTuple(args, "iO", &which, &function))
		return NULL;
	if (which < 0 || which >= PY_ALLOC_COUNT) {
		PyErr_Format(PyExc_ValueError, "there is no allocator %d", which);
		return NULL;
	}
	if (function == Py_None)
		function = NULL;
	if (function && !PyCallable_Check(function)) {
		PyErr_Format(PyExc_TypeError, "%R cannot be called", function);
		return NULL;
	}
	Py_XINCREF(function);
	py_lock(&st->allocator_lock);
	old = st->allocator[which];
	st->allocator[which] = function;
	py_unlock(&st->allocator_lock);
	Py_XDECREF(old);
	Py_RETURN_NONE;
}

/* An array of its own memory, for pickles and for places that are asked for by name. */
static PyObject *rebuild(PyObject *module, PyObject *args)
{
	py_state *st = state_of(module);
	PyObject *data, *type, *shape;
	py_array *array, *copy = NULL;
	Py_ssize_t dims[PY_NDIM_MAX];
	py_dtype dtype;
	size_t size;

	if (!PyArg_ParseTuple(args, "SUO!", &data, &type, &PyTuple_Type, &shape) ||
	    !py_dtype_from_object(type, &dtype))
		return NULL;
	array = py_array_from(st, data, 0);
	if (array)
		copy = py_array_copy(array, LADE_PLACE_HOST, 0);
	Py_XDECREF(array);
	if (!copy)
		return NULL;
	size = copy->size;
	copy->dtype = dtype;
	if (py_dims_arg(shape, dims) && py_array_shape(copy, PyTuple_Size(shape), dims, NULL)) {
		if (copy->size == size)
			return (PyObject *)copy;
		PyErr_Format(PyExc_ValueError, "the shape wants %zu bytes, there are %zu",
		             copy->size, size);
	}
	Py_DECREF(copy);
	return NULL;
}

static PyObject *empty(PyObject *module, PyObject *args)
{
	Py_ssize_t size;
	int kind = LADE_HOST, device = 0;
	PyObject *stream_object = NULL;
	uintptr_t stream;

	if (!PyArg_ParseTuple(args, "n|iiO", &size, &kind, &device, &stream_object) ||
	    !py_stream_arg(stream_object, &stream))
		return NULL;
	if (size < 0 || kind < 0 || kind >= LADE_KIND_COUNT) {
		PyErr_Format(PyExc_ValueError, "%zd bytes in memory of kind %d are not possible",
		             size, kind);
		return NULL;
	}
	return py_leave(state_of(module),
	                (PyObject *)py_array_new(state_of(module), (size_t)size,
	                                         (lade_place){(lade_kind)kind, device}, stream),
	                stream, stream_object);
}

/* (blocks in use, their bytes, blocks ever taken): what tests of leaks and of out= look at. */
static PyObject *memory_stats(PyObject *module, PyObject *unused)
{
	py_state *st = state_of(module);

	(void)unused;
	return Py_BuildValue("(nnn)", (Py_ssize_t)atomic_load(&st->blocks),
	                     (Py_ssize_t)atomic_load(&st->block_bytes),
	                     (Py_ssize_t)atomic_load(&st->block_count));
}

static PyObject *device_count(PyObject *module, PyObject *unused)
{
	int32_t count = 0;
	lade_status status;

	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	status = lade_device_count(&count, NULL);
	Py_END_ALLOW_THREADS
	return PyLong_FromLong(status ? 0 : count);
}

/* The CUDA version of the driver; None without a GPU. */
static PyObject *cuda_version(PyObject *module, PyObject *unused)
{
	const lade_device_info *info = NULL;
	lade_status status;

	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	status = lade_device_get_info(0, &info, NULL);
	Py_END_ALLOW_THREADS
	if (status)
		Py_RETURN_NONE;
	return PyLong_FromLong(info->driver_version);
}

/* The libraries that are linked: name to version. */
static PyObject *linked(PyObject *module, PyObject *unused)
{
	PyObject *all = PyDict_New();
	const char *name, *version;
	bool compiled;

	(void)module;
	(void)unused;
	for (size_t i = 0; all && (name = lade_linked(i, &version, &compiled)); i++) {
		PyObject *text =
			PyUnicode_FromFormat("%s%s", version, compiled ? " (its headers)" : "");
		if (!text || PyDict_SetItemString(all, name, text))
			Py_CLEAR(all);
		Py_XDECREF(text);
	}
	return all;
}

static void stream_end(PyObject *owner)
{
	lade_stream stream = PyCapsule_GetPointer(owner, NULL);

	lade_stream_free((int32_t)(intptr_t)PyCapsule_GetContext(owner), stream);
}

/* The handle, and a capsule that owns the stream.  The collector of garbage, which ends objects in
 * any order, does not see capsules: so that arrays that hold it give their memory back before. */
static PyObject *stream_new(PyObject *module, PyObject *args)
{
	lade_stream stream = NULL;
	PyObject *owner;
	lade_status status;
	lade_error err;
	int device;

	if (!PyArg_ParseTuple(args, "i", &device))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	status = lade_stream_new(device, &stream, &err);
	Py_END_ALLOW_THREADS
	if (status) {
		py_raise(state_of(module), &err, SIZE_MAX);
		return NULL;
	}
	owner = PyCapsule_New(stream, NULL, stream_end);
	if (!owner) {
		lade_stream_free(device, stream);
		return NULL;
	}
	if (PyCapsule_SetContext(owner, (void *)(intptr_t)device)) {
		Py_DECREF(owner);
		return NULL;
	}
	return Py_BuildValue("(NN)", PyLong_FromVoidPtr(stream), owner);
}

static PyObject *stream_wait(PyObject *module, PyObject *args)
{
	uintptr_t stream;
	PyObject *number;
	lade_status status;
	lade_error err;
	int device;

	if (!PyArg_ParseTuple(args, "iO", &device, &number) || !py_stream_arg(number, &stream))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	status = lade_stream_wait(device, (lade_stream)stream, &err);
	Py_END_ALLOW_THREADS
	py_kept_sweep(state_of(module));
	if (status) {
		py_raise(state_of(module), &err, SIZE_MAX);
		return NULL;
	}
	Py_RETURN_NONE;
}

/* The handle of any stream. */
static PyObject *stream_handle(PyObject *module, PyObject *object)
{
	uintptr_t stream;

	(void)module;
	return py_stream_arg(object, &stream) ? PyLong_FromSize_t(stream) : NULL;
}

/* The type string of anything that names a type. */
static PyObject *dtype_text(PyObject *module, PyObject *object)
{
	py_dtype dtype;
	char text[24];

	(void)module;
	if (!py_dtype_from_object(object, &dtype))
		return NULL;
	py_dtype_text(dtype, text);
	return PyUnicode_FromString(text);
}

/* The names of an algorithm's options. */
static PyObject *option_names(const lade_algorithm *one)
{
	PyObject *names = PyTuple_New((Py_ssize_t)one->option_count);

	for (size_t i = 0; names && i < one->option_count; i++) {
		PyObject *name = PyUnicode_FromString(one->options[i].name);
		if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name))
			Py_CLEAR(names);
	}
	return names;
}

/* The algorithms: (name, kind, document, options) of each. */
static PyObject *algorithms(PyObject *module, PyObject *unused)
{
	PyObject *list = PyList_New(0);
	const lade_algorithm *one;

	(void)module;
	(void)unused;
	for (size_t i = 0; list && (one = lade_engine_algorithm(NULL, i)); i++) {
		static const char *const kinds[] = {"codec", "filter", "checksum"};
		PyObject *row = Py_BuildValue("(sssN)", one->name, kinds[one->kind], one->doc,
		                              option_names(one));
		if (!row || PyList_Append(list, row))
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	return list;
}

/* checksums(name, list of buffers): a list of numbers. */
static PyObject *checksums(PyObject *module, PyObject *args)
{
	py_state *st = state_of(module);
	PyObject *sources, *items, *out = NULL;
	const char *name;
	lade_checksum kind;
	py_mem *mems = NULL;
	lade_cspan *spans = NULL;
	uint64_t *sums = NULL;
	size_t count, held = 0;
	lade_status status;
	lade_error err;

	if (!PyArg_ParseTuple(args, "sO", &name, &sources))
		return NULL;
	kind = lade_checksum_find(name);
	if (!kind) {
		PyErr_Format(PyExc_ValueError, "there is no checksum \"%s\"", name);
		return NULL;
	}
	items = py_tuple(sources, "sources");
	if (!items)
		return NULL;
	count = (size_t)PyTuple_Size(items);
	mems = PyMem_Malloc((count + 1) * sizeof(*mems));
	spans = PyMem_Malloc((count + 1) * sizeof(*spans));
	sums = PyMem_Malloc((count + 1) * sizeof(*sums));
	if (!mems || !spans || !sums) {
		PyErr_NoMemory();
		goto out;
	}
	for (; held < count; held++) {
		py_mem *mem = &mems[held];
		if (!py_mem_read(st, PyTuple_GetItem(items, (Py_ssize_t)held), mem))
			goto out;
		if (!py_mem_flatten(mem)) {
			py_mem_release(mem);
			goto out;
		}
		spans[held] = (lade_cspan){mem->data, mem->size, mem->place};
	}
	Py_BEGIN_ALLOW_THREADS
	status = lade_checksums(lade_engine_default(), kind, spans, count, sums, &err);
	Py_END_ALLOW_THREADS
	if (status) {
		py_raise(st, &err, SIZE_MAX);
		goto out;
	}
	out = PyList_New((Py_ssize_t)count);
	for (size_t i = 0; out && i < count; i++) {
		PyObject *sum = PyLong_FromUnsignedLongLong(sums[i]);
		if (!sum || PyList_SetItem(out, (Py_ssize_t)i, sum))
			Py_CLEAR(out);
	}
out:
	for (size_t i = 0; i < held; i++)
		py_mem_release(&mems[i]);
	PyMem_Free(mems);
	PyMem_Free(spans);
	PyMem_Free(sums);
	Py_DECREF(items);
	return out;
}

/* lookup3(buffer, init) */
static PyObject *lookup3(PyObject *module, PyObject *args)
{
	PyObject *source, *init;
	unsigned long first;
	uint32_t sum = 0;
	py_mem mem;
	bool ok;

	if (!PyArg_ParseTuple(args, "OO!", &source, &PyLong_Type, &init))
		return NULL;
	first = PyLong_AsUnsignedLong(init);
	if (PyErr_Occurred() || first > UINT32_MAX) {
		PyErr_Format(PyExc_ValueError, "initval is %R, it can be from 0 to %u", init,
		             UINT32_MAX);
		return NULL;
	}
	if (!py_mem_read(state_of(module), source, &mem))
		return NULL;
	ok = py_mem_flatten(&mem);
	if (ok) {
		Py_BEGIN_ALLOW_THREADS
		sum = lade_lookup3(mem.data, mem.size, (uint32_t)first);
		Py_END_ALLOW_THREADS
	}
	py_mem_release(&mem);
	return ok ? PyLong_FromUnsignedLong(sum) : NULL;
}

#define KEYWORDS(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef functions[] = {
	{"as_array", KEYWORDS(as_array), METH_VARARGS | METH_KEYWORDS,
	 "as_array($module, /, source, cuda_stream=0)\n--\n\n"
	 "The memory of any object as an Array, in its shape; nothing is copied.\n\n"
	 "source: anything with the buffer protocol, an array interface or DLPack; kept alive.\n"
	 "cuda_stream: what orders the use of memory on a device, a stream or its handle; 0: the\n"
	 "    default stream, or the one that the object names.\n\n"
	 "Raises TypeError for what has no memory to share and for Python objects, ValueError for\n"
	 "an interface that is wrong."},
	{"as_arrays", KEYWORDS(as_arrays), METH_VARARGS | METH_KEYWORDS,
	 "as_arrays($module, /, sources=None, offsets=None, sizes=None, cuda_stream=0, *, "
	 "buffer=None)\n--\n\n"
	 "A list of objects, or the pieces of one buffer, as a BatchArray; nothing is copied.\n\n"
	 "sources: a list of what as_array() takes; or, as buffer=, one contiguous array, and\n"
	 "offsets, sizes: of each piece in it, in bytes: arrays of 4 or 8 byte integers, also on\n"
	 "    a device, or sequences of integers.  Pieces may overlap.\n"
	 "cuda_stream: as as_array()'s.\n\n"
	 "Raises as as_array(), and ValueError for a piece that passes the buffer's end, and is\n"
	 "named."},
	{"from_dlpack", KEYWORDS(from_dlpack), METH_VARARGS | METH_KEYWORDS,
	 "from_dlpack($module, /, source, cuda_stream=0, *, copy=None)\n--\n\n"
	 "An Array from a DLPack capsule, old or versioned, or an object that gives one.\n\n"
	 "cuda_stream: on which the memory is to be ready.  copy: True: a copy; False: no copy;\n"
	 "    None: the object decides.\n\n"
	 "Raises TypeError for what is neither, BufferError for types that DLPack alone has."},
	{"_set_allocator", set_allocator, METH_VARARGS, NULL},
	{"_rebuild", rebuild, METH_VARARGS, NULL},
	{"_empty", empty, METH_VARARGS, NULL},
	{"_memory_stats", memory_stats, METH_NOARGS, NULL},
	{"_device_count", device_count, METH_NOARGS, NULL},
	{"_cuda_version", cuda_version, METH_NOARGS, NULL},
	{"_stream_new", stream_new, METH_VARARGS, NULL},
	{"_stream_wait", stream_wait, METH_VARARGS, NULL},
	{"_stream_handle", stream_handle, METH_O, NULL},
	{"_linked", linked, METH_NOARGS, NULL},
	{"_dtype_text", dtype_text, METH_O, NULL},
	{"_algorithms", algorithms, METH_NOARGS, NULL},
	{"_checksums", checksums, METH_VARARGS, NULL},
	{"_lookup3", lookup3, METH_VARARGS, NULL},
	{"_suggest", py_suggest, METH_VARARGS, NULL},
	{0},
};

/* ---- state ------------------------------------------------------------------------------ */

static bool load_classes(py_state *st)
{
	static const char *const names[PY_STATUS_COUNT] = {
		[LADE_E_ARG] = "InputError",          [LADE_E_NOMEM] = "OutOfMemoryError",
		[LADE_E_NOSPACE] = "InputError",      [LADE_E_CORRUPT] = "CorruptError",
		[LADE_E_TRUNCATED] = "CorruptError",  [LADE_E_CHECKSUM] = "ChecksumError",
		[LADE_E_NO_CHECKSUM] = "ChecksumError", [LADE_E_UNSUPPORTED] = "UnsupportedError",
		[LADE_E_VERSION] = "CorruptError",    [LADE_E_LIMIT] = "InputError",
		[LADE_E_RANGE] = "InputError",        [LADE_E_UNKNOWN_SIZE] = "InputError",
		[LADE_E_SPEC] = "InputError",         [LADE_E_NOT_FOUND] = "InputError",
		[LADE_E_DTYPE] = "InputError",        [LADE_E_NO_DEVICE] = "DeviceError",
		[LADE_E_DEVICE] = "DeviceError",      [LADE_E_IO] = "FileError",
		[LADE_E_STATE] = "InputError",        [LADE_E_DICT] = "InputError",
		[LADE_E_VALUE] = "InputError",        [LADE_E_INTERNAL] = "Error",
		[LADE_E_CHANGED] = "FileError",       [LADE_E_CANCELLED] = "Error",
	};
	PyObject *errors = PyImport_ImportModule("liblade._errors");
	PyObject *enums = PyImport_ImportModule("liblade._enums");
	PyObject *memory = PyImport_ImportModule("liblade._memory");
	PyObject *dtype = PyImport_ImportModule("liblade._dtype");
	PyObject *kinds = enums ? PyObject_GetAttrString(enums, "ArrayBufferKind") : NULL;
	bool ok = errors && kinds;

	st->stream_class = memory ? PyObject_GetAttrString(memory, "CudaStream") : NULL;
	st->dtype_class = dtype ? PyObject_GetAttrString(dtype, "DType") : NULL;
	for (int i = 1; ok && i < PY_STATUS_COUNT; i++)
		ok = (st->error[i] = PyObject_GetAttrString(errors, names[i])) != NULL;
	if (ok)
		ok = (st->kind_device = PyObject_GetAttrString(kinds, "STRIDED_DEVICE")) &&
		     (st->kind_host = PyObject_GetAttrString(kinds, "STRIDED_HOST"));
	Py_XDECREF(errors);
	Py_XDECREF(enums);
	Py_XDECREF(memory);
	Py_XDECREF(dtype);
	Py_XDECREF(kinds);
	return ok && st->stream_class && st->dtype_class;
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
	PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);

	if (type && PyModule_AddType(module, type))
		Py_CLEAR(type);
	return type;
}

/* Types that the state need not know: the module has them. */
static bool add_types(PyObject *module)
{
	PyType_Spec *const specs[] = {&py_reader_spec, &py_writer_spec, &py_rntuple_spec,
	                              &py_rntuple_writer_spec, &py_arrow_spec,
	                              &py_share_spec, &py_share_version_spec};
	bool ok = true;

	for (size_t i = 0; ok && i < sizeof(specs) / sizeof(*specs); i++) {
		PyTypeObject *type = add_type(module, specs[i]);
		ok = type != NULL;
		Py_XDECREF(type);
	}
	return ok;
}

static int module_exec(PyObject *module)
{
	py_state *st = state_of(module);
	PyObject *bytes;
	lade_error err;

	st->kept_last = (py_kept **)(void *)&st->kept;
	atomic_flag_clear(&st->kept_lock);
	atomic_flag_clear(&st->allocator_lock);
	if (lade_spec_parse(NULL, "copy", &st->copy, &err)) {
		PyErr_SetString(PyExc_ImportError, err.message);
		return -1;
	}
	st->main_interpreter = PyInterpreterState_GetID(PyInterpreterState_Get()) == 0;
	bytes = PyBytes_FromStringAndSize(NULL, 1);
	if (!bytes)
		return -1;
	st->bytes_at = (size_t)(PyBytes_AsString(bytes) - (char *)bytes);
	Py_DECREF(bytes);
	st->homes = py_homes_new();
	if (!st->homes) {
		PyErr_NoMemory();
		return -1;
	}
	st->name_cai = PyUnicode_InternFromString("__cuda_array_interface__");
	st->name_ai = PyUnicode_InternFromString("__array_interface__");
	st->name_dlpack = PyUnicode_InternFromString("__dlpack__");
	st->name_dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
	st->name_exchange = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
	if (!st->name_cai || !st->name_ai || !st->name_dlpack || !st->name_dlpack_device ||
	    !st->name_exchange || !load_classes(st))
		return -1;
	st->array_type = add_type(module, &py_array_spec);
	st->batch_type = st->array_type ? add_type(module, &py_batch_spec) : NULL;
	st->codec_type = st->batch_type ? add_type(module, &py_codec_spec) : NULL;
	st->store_type = st->codec_type ? add_type(module, &py_store_spec) : NULL;
	st->node_type = st->store_type ? add_type(module, &py_node_spec) : NULL;
	st->plan_type = st->node_type ? add_type(module, &py_plan_spec) : NULL;
	if (!st->plan_type || !add_types(module) ||
	    PyModule_AddStringConstant(module, "__version__", lade_version_text()))
		return -1;
	return 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
	py_state *st = state_of(module);

	if (!st)
		return 0;
	Py_VISIT(st->numpy_array);
	Py_VISIT((PyObject *)st->tensor_type);
	Py_VISIT(st->array_type);
	Py_VISIT(st->batch_type);
	Py_VISIT(st->codec_type);
	Py_VISIT(st->store_type);
	Py_VISIT(st->node_type);
	Py_VISIT(st->plan_type);
	for (int i = 0; i < PY_STATUS_COUNT; i++)
		Py_VISIT(st->error[i]);
	for (int i = 0; i < PY_ALLOC_COUNT; i++)
		Py_VISIT(st->allocator[i]);
	Py_VISIT(st->kind_device);
	Py_VISIT(st->kind_host);
	Py_VISIT(st->stream_class);
	Py_VISIT(st->dtype_class);
	return 0;
}

static int module_clear(PyObject *module)
{
	py_state *st = state_of(module);

	if (!st)
		return 0;
	py_kept_wait(st);
	Py_CLEAR(st->numpy_array);
	Py_CLEAR(st->array_type);
	Py_CLEAR(st->batch_type);
	Py_CLEAR(st->codec_type);
	Py_CLEAR(st->store_type);
	Py_CLEAR(st->node_type);
	Py_CLEAR(st->plan_type);
	for (int i = 0; i < PY_STATUS_COUNT; i++)
		Py_CLEAR(st->error[i]);
	for (int i = 0; i < PY_ALLOC_COUNT; i++)
		Py_CLEAR(st->allocator[i]);
	Py_CLEAR(st->kind_device);
	Py_CLEAR(st->kind_host);
	Py_CLEAR(st->stream_class);
	Py_CLEAR(st->dtype_class);
	Py_CLEAR(st->name_cai);
	Py_CLEAR(st->name_ai);
	Py_CLEAR(st->name_dlpack);
	Py_CLEAR(st->name_dlpack_device);
	Py_CLEAR(st->name_exchange);
	Py_XDECREF(atomic_exchange(&st->tensor_type, NULL));
	return 0;
}

static void module_free(void *module)
{
	py_state *st = state_of(module);

	module_clear(module);
	if (st) {
		lade_spec_unref(st->copy);
		st->copy = NULL;
		py_homes_free(st->homes);
		st->homes = NULL;
	}
}

static PyModuleDef_Slot slots[] = {
	{Py_mod_exec, module_exec},
	{Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#ifdef Py_mod_gil
	{Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
	{0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "liblade._lade",
	.m_doc = "The C side of liblade.",
	.m_size = sizeof(py_state),
	.m_methods = functions,
	.m_slots = slots,
	.m_traverse = module_traverse,
	.m_clear = module_clear,
	.m_free = module_free,
};

PyMODINIT_FUNC PyInit__lade(void)
{
	return PyModuleDef_Init(&definition);
}
