/*
 * dlpack.c: DLPack, old and versioned, both ways.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

#define NAME_OLD "dltensor"
#define NAME_VERSIONED "dltensor_versioned"

/* The numbers of a device type that need ordering or a copy. */
enum { DL_CPU = 1, DL_CUDA = 2 };

/* ---- taking ----------------------------------------------------------------------------- */

static bool fill(py_array *array, const lade_tensor *tensor)
{
	if (!py_dtype_from_dlpack(tensor->type.code, tensor->type.bits, tensor->type.lanes,
	                          &array->dtype)) {
		PyErr_Format(PyExc_BufferError,
		             "DLPack: type code %d of %d bits and %d lanes is not known",
		             tensor->type.code, tensor->type.bits, tensor->type.lanes);
		return false;
	}
	array->lent = false; /* others have it, too */
	array->cap = 0;
	array->data = tensor->data;
	array->readonly = tensor->read_only;
	return py_array_shape(array, (Py_ssize_t)tensor->ndim, (const Py_ssize_t *)tensor->shape,
	                      tensor->strides);
}

/* Why a tensor was not taken. */
static void raise_take(const lade_error *err)
{
	PyErr_SetString(err->status == LADE_E_LIMIT || err->status == LADE_E_RANGE
	                        ? PyExc_ValueError
	                        : PyExc_BufferError,
	                err->message);
}

/* An Array from a capsule, which is used up. */
static py_array *from_capsule(py_state *st, PyObject *capsule)
{
	bool versioned = PyCapsule_IsValid(capsule, NAME_VERSIONED);
	lade_tensor tensor = {.struct_size = sizeof(tensor)};
	py_array *array;
	lade_error err;

	if (!versioned && !PyCapsule_IsValid(capsule, NAME_OLD)) {
		PyErr_SetString(PyExc_ValueError,
		                "DLPack: not a capsule of a tensor, or it was used before");
		return NULL;
	}
	if (versioned ? lade_tensor_take_versioned(PyCapsule_GetPointer(capsule, NAME_VERSIONED),
	                                           &tensor, &err)
	              : lade_tensor_take(PyCapsule_GetPointer(capsule, NAME_OLD), &tensor, &err)) {
		raise_take(&err);
		return NULL;
	}
	PyCapsule_SetName(capsule, versioned ? "used_" NAME_VERSIONED : "used_" NAME_OLD);
	array = py_array_own(st, tensor.array);
	if (array && !fill(array, &tensor))
		Py_CLEAR(array);
	return array;
}

/* What dlpack.h 1.3 calls DLPackExchangeAPI: C functions of a type, which do not order streams. */
typedef struct py_exchange {
	uint32_t major, minor;
	const struct py_exchange *older; /* or NULL */
	void *allocate;
	int (*from_object)(void *object, struct DLManagedTensorVersioned **out);
	void *to_object, *look;
	int (*work_stream)(int type, int32_t id, void **stream);
} py_exchange;

/* The table that is the type's own: those of a subclass may mean something else. */
static const py_exchange *find_exchange(py_state *st, PyTypeObject *type)
{
	PyObject *dict = PyObject_GetAttrString((PyObject *)type, "__dict__");
	PyObject *capsule = dict ? PyObject_GetItem(dict, st->name_exchange) : NULL;
	const py_exchange *found = NULL;

	PyErr_Clear();
	if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
		found = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
	while (found && found->major != 1)
		found = found->older;
	Py_XDECREF(capsule);
	Py_XDECREF(dict);
	return found;
}

/* The type's table, which stays as long as the process; the first type's is remembered. */
static const py_exchange *exchange_of(py_state *st, PyTypeObject *type)
{
	PyTypeObject *none = NULL;
	const py_exchange *found;

	if (st->tensor_type == type && st->exchange)
		return st->exchange;
	found = PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE && type != st->array_type
	                ? find_exchange(st, type)
	                : NULL;
	if (found && atomic_compare_exchange_strong(&st->tensor_type, &none, type)) {
		Py_INCREF(type);
		st->exchange = found;
	}
	return found;
}

/* An Array on what an exporter gave, which is let go of if that fails. */
static py_array *take_versioned(py_state *st, struct DLManagedTensorVersioned *given)
{
	lade_tensor tensor = {.struct_size = sizeof(tensor)};
	py_array *array;
	lade_error err;

	if (lade_tensor_take_versioned(given, &tensor, &err)) {
		lade_tensor_drop_versioned(given);
		raise_take(&err);
		return NULL;
	}
	array = py_array_own(st, tensor.array);
	if (array && !fill(array, &tensor))
		Py_CLEAR(array);
	return array;
}

py_array *py_array_exchange(py_state *st, PyObject *object, uintptr_t stream)
{
	const py_exchange *exchange = exchange_of(st, Py_TYPE(object));
	struct DLManagedTensorVersioned *given = NULL;
	void *ready = NULL;
	py_array *array;

	if (!exchange)
		return NULL;
	if (exchange->from_object(object, &given) || !given) {
		PyErr_Clear(); /* __dlpack__() says why */
		return NULL;
	}
	array = take_versioned(st, given);
	/* torch's function does not see that complex numbers are to be conjugated yet. */
	if (array && array->dtype.kind == 'c') {
		Py_CLEAR(array);
	} else if (array && array->place.kind == LADE_DEVICE &&
	           (exchange->work_stream(DL_CUDA, array->place.device, &ready) ||
	            !py_array_ready_on(array, (uintptr_t)ready, stream))) {
		Py_CLEAR(array);
	}
	return array;
}

/* object.__dlpack__(**kwargs), with fewer keywords for older exporters. */
static PyObject *ask(py_state *st, PyObject *object, PyObject *stream, PyObject *copy)
{
	PyObject *method = PyObject_GetAttr(object, st->name_dlpack), *empty = PyTuple_New(0);
	PyObject *kwargs = Py_BuildValue("{s:(ii)}", "max_version", 1, 1), *out = NULL;

	if (!method || !empty || !kwargs)
		goto out;
	if (stream && PyDict_SetItemString(kwargs, "stream", stream))
		goto out;
	if (copy != Py_None && PyDict_SetItemString(kwargs, "copy", copy))
		goto out;
	out = PyObject_Call(method, empty, kwargs);
	if (!out && copy == Py_None && PyErr_ExceptionMatches(PyExc_TypeError)) {
		PyErr_Clear();
		if (PyDict_DelItemString(kwargs, "max_version") == 0)
			out = PyObject_Call(method, empty, kwargs);
	}
out:
	Py_XDECREF(method);
	Py_XDECREF(empty);
	Py_XDECREF(kwargs);
	return out;
}

py_array *py_array_from_dlpack(py_state *st, PyObject *object, uintptr_t stream, PyObject *copy)
{
	PyObject *method, *where, *capsule, *stream_object = NULL;
	py_array *array;
	int type = 0, id = 0;

	if (PyCapsule_CheckExact(object))
		return from_capsule(st, object);
	array = copy == Py_None ? py_array_exchange(st, object, stream) : NULL;
	if (array || PyErr_Occurred())
		return array;
	method = PyObject_GetAttr(object, st->name_dlpack_device);
	if (!method) {
		if (PyErr_ExceptionMatches(PyExc_AttributeError))
			PyErr_Format(PyExc_TypeError,
			             "source: %R is no DLPack capsule and has no "
			             "__dlpack_device__()",
			             object);
		return NULL;
	}
	where = PyObject_CallNoArgs(method);
	Py_DECREF(method);
	if (!where)
		return NULL;
	if (!PyTuple_Check(where) || !PyArg_ParseTuple(where, "ii", &type, &id)) {
		PyErr_Format(PyExc_TypeError,
		             "__dlpack_device__() gave %R, two integers in a tuple are wanted",
		             where);
		Py_DECREF(where);
		return NULL;
	}
	Py_DECREF(where);
	if (type == DL_CUDA) {
		/* 1 is DLPack's name for the default stream, whose handle is 0. */
		stream_object = PyLong_FromUnsignedLongLong(stream ? stream : 1);
		if (!stream_object)
			return NULL;
	}
	capsule = ask(st, object, stream_object, copy);
	Py_XDECREF(stream_object);
	if (!capsule)
		return NULL;
	array = from_capsule(st, capsule);
	Py_DECREF(capsule);
	if (array && array->place.kind == LADE_DEVICE && Py_TYPE(object) == st->array_type) {
		/* One of ours: it fails as its source does. */
		const py_array *from = (const py_array *)object;
		py_array_tie(array, from->results, from->result, false);
		array->batched = from->batched;
	}
	if (array && type == DL_CUDA)
		array->stream = stream;
	return array;
}

/* ---- giving ----------------------------------------------------------------------------- */

/*
 * Consumers may call a deleter from any thread.  In the main interpreter the GIL can be taken
 * there; in others there is no way to, and the array waits for the module's next call.
 */
static void let_go(void *ctx)
{
	py_array *array = ctx;
	py_state *st = array->st;

	if (st->main_interpreter) {
		PyGILState_STATE gil = PyGILState_Ensure();
		py_unpin(array);
		Py_DECREF(array);
		PyGILState_Release(gil);
	} else {
		py_dropped *drop = malloc(sizeof(*drop));
		if (drop) {
			drop->object = (PyObject *)array;
			drop->next = atomic_load(&st->dropped);
			while (!atomic_compare_exchange_weak(&st->dropped, &drop->next, drop))
				;
		}
	}
}

/* A capsule that nobody used still owns its tensor. */
static void capsule_free(PyObject *capsule)
{
	if (PyCapsule_IsValid(capsule, NAME_VERSIONED))
		lade_tensor_drop_versioned(PyCapsule_GetPointer(capsule, NAME_VERSIONED));
	else if (PyCapsule_IsValid(capsule, NAME_OLD))
		lade_tensor_drop(PyCapsule_GetPointer(capsule, NAME_OLD));
}

/* The array's elements, and all of its memory. */
static bool describe(const py_array *array, lade_tensor *tensor, lade_span *span)
{
	char text[24];

	*tensor = (lade_tensor){.struct_size = sizeof(*tensor),
	                        .data = array->size ? array->data : NULL,
	                        .type.lanes = 1,
	                        .read_only = array->readonly,
	                        .ndim = (size_t)array->ndim};
	*span = (lade_span){tensor->data, array->size ? array->dtype.size : 0, array->place};
	if (!py_dtype_to_dlpack(array->dtype, &tensor->type.code, &tensor->type.bits)) {
		py_dtype_text(array->dtype, text);
		PyErr_Format(PyExc_BufferError, "DLPack has no type for %s", text);
		return false;
	}
	for (int i = 0; i < array->ndim; i++) {
		Py_ssize_t last = (array->shape[i] - 1) * array->strides[i];
		tensor->shape[i] = (size_t)array->shape[i];
		tensor->strides[i] = array->strides[i];
		if (array->size) {
			span->data = (char *)span->data + (last < 0 ? last : 0);
			span->size += (size_t)(last < 0 ? -last : last);
		}
	}
	return true;
}

static PyObject *give(py_array *array, bool versioned, bool copied)
{
	lade_array_options options = {.struct_size = sizeof(options), .gone = let_go,
	                              .gone_ctx = array};
	struct DLManagedTensorVersioned *new = NULL;
	struct DLManagedTensor *old = NULL;
	PyObject *capsule = NULL;
	lade_tensor tensor;
	lade_span span;
	lade_error err;

	if (!describe(array, &tensor, &span))
		return NULL;
	if (lade_array_wrap(span, &options, &tensor.array, &err)) {
		PyErr_SetString(PyExc_BufferError, err.message);
		return NULL;
	}
	/* From here on the lade_array lets go of it. */
	Py_INCREF(array);
	py_pin(array);
	if (versioned ? lade_tensor_give_versioned(&tensor, copied, &new, &err)
	              : lade_tensor_give(&tensor, &old, &err))
		PyErr_SetString(PyExc_BufferError, err.message);
	else
		capsule = PyCapsule_New(versioned ? (void *)new : (void *)old,
		                        versioned ? NAME_VERSIONED : NAME_OLD, capsule_free);
	if (!capsule && versioned)
		lade_tensor_drop_versioned(new);
	else if (!capsule)
		lade_tensor_drop(old);
	else
		py_array_share(array);
	lade_array_unref(tensor.array);
	return capsule;
}

/* The consumer's stream goes on behind the array's; -1: the consumer sees to that itself. */
static bool order(py_array *array, PyObject *stream)
{
	long long number = 1; /* DLPack's name of the default stream */

	if (stream != Py_None) {
		number = PyLong_AsLongLong(stream);
		if (number == -1 && PyErr_Occurred())
			return false;
	}
	if (!number || number < -1) {
		PyErr_Format(PyExc_BufferError,
		             "DLPack: stream %lld is not possible; 1 is the default stream",
		             number);
		return false;
	}
	return number == -1 || py_follow(array->st, array->place.device,
	                                 number <= 2 ? 0 : (uintptr_t)number, array->stream);
}

/* An argument that is None, or two integers in a tuple. */
static bool read_pair(const char *name, PyObject *pair, int *first, int *second)
{
	if (pair == Py_None)
		return true;
	if (PyTuple_Check(pair) && PyArg_ParseTuple(pair, "ii", first, second))
		return true;
	PyErr_Format(PyExc_TypeError, "DLPack: %s is %R, two integers in a tuple are wanted", name,
	             pair);
	return false;
}

PyObject *py_array_dlpack(py_array *array, PyObject *stream, PyObject *max_version,
                          PyObject *dl_device, PyObject *copy)
{
	bool versioned, copied = false;
	int want_type = 0, want_id = 0, major = 0, minor = 0;
	int32_t type, id;
	py_array *out = NULL;
	PyObject *capsule;

	if (!read_pair("max_version", max_version, &major, &minor) ||
	    !read_pair("dl_device", dl_device, &want_type, &want_id))
		return NULL;
	versioned = major >= 1;
	if (!py_array_sized(array))
		return NULL;
	lade_place_to_dlpack(array->place, &type, &id);
	if (type == DL_CPU && stream != Py_None) {
		PyErr_SetString(PyExc_BufferError,
		                "DLPack: a stream was given for an array on the host");
		return NULL;
	}
	if (dl_device != Py_None && (want_type != type || want_id != id) && want_type != DL_CPU &&
	    want_type != DL_CUDA) {
		PyErr_Format(PyExc_BufferError, "DLPack: device type %d is not supported",
		             want_type);
		return NULL;
	}
	/* The old struct cannot say that memory is read-only. */
	if (array->readonly && !versioned && copy == Py_False) {
		PyErr_SetString(PyExc_BufferError,
		                "DLPack below 1.0 cannot export a read-only array without a copy");
		return NULL;
	}
	if (copy == Py_True || (array->readonly && !versioned) ||
	    (want_type && (want_type != type || want_id != id))) {
		lade_place place = array->place;
		if (want_type)
			place = want_type == DL_CPU ? LADE_PLACE_HOST
			                            : (lade_place){LADE_DEVICE, want_id};
		if (copy == Py_False) {
			PyErr_Format(PyExc_BufferError, "DLPack: device (%d, %d) wants a copy",
			             want_type, want_id);
			return NULL;
		}
		out = py_array_copy(array, place, array->stream);
		copied = true;
	} else {
		if (type == DL_CUDA && !order(array, stream))
			return NULL;
		out = (py_array *)Py_NewRef(array);
	}
	if (!out)
		return NULL;
	capsule = give(out, versioned, copied);
	Py_DECREF(out);
	return capsule;
}
