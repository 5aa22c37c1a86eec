/*
 * dlpack.c: DLPack, old and versioned, both ways.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

/* The ABI, version 1 (https://dmlc.github.io/dlpack). */
typedef struct dl_tensor {
	void *data;
	struct {
		int32_t type; /* 1 CPU, 2 CUDA, 3 pinned, 13 managed */
		int32_t id;
	} device;
	int32_t ndim;
	struct {
		uint8_t code, bits;
		uint16_t lanes;
	} dtype;
	int64_t *shape;
	int64_t *strides; /* in elements; NULL: C order */
	uint64_t byte_offset;
} dl_tensor;

typedef struct dl_old {
	dl_tensor tensor;
	void *ctx;
	void (*deleter)(struct dl_old *self);
} dl_old;

typedef struct dl_versioned {
	uint32_t major, minor;
	void *ctx;
	void (*deleter)(struct dl_versioned *self);
	uint64_t flags;
	dl_tensor tensor;
} dl_versioned;

enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 };
enum { DL_CPU = 1, DL_CUDA = 2, DL_PINNED = 3, DL_MANAGED = 13 };

#define NAME_OLD "dltensor"
#define NAME_VERSIONED "dltensor_versioned"
#define NAME_KEPT_OLD "liblade.dltensor"
#define NAME_KEPT_VERSIONED "liblade.dltensor_versioned"

/* ---- taking ----------------------------------------------------------------------------- */

static void kept_old_free(PyObject *capsule)
{
	dl_old *managed = PyCapsule_GetPointer(capsule, NAME_KEPT_OLD);

	if (managed && managed->deleter)
		managed->deleter(managed);
}

static void kept_versioned_free(PyObject *capsule)
{
	dl_versioned *managed = PyCapsule_GetPointer(capsule, NAME_KEPT_VERSIONED);

	if (managed && managed->deleter)
		managed->deleter(managed);
}

static bool fill(py_array *array, const dl_tensor *tensor)
{
	Py_ssize_t step;

	if (!py_dtype_from_dlpack(tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes,
	                          &array->dtype)) {
		PyErr_Format(PyExc_BufferError,
		             "DLPack: type code %d of %d bits and %d lanes is not known",
		             tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
		return false;
	}
	switch (tensor->device.type) {
	case DL_CPU: array->place = LADE_PLACE_HOST; break;
	case DL_CUDA: array->place = (lade_place){LADE_DEVICE, tensor->device.id}; break;
	case DL_PINNED: array->place = (lade_place){LADE_PINNED, 0}; break;
	case DL_MANAGED: array->place = (lade_place){LADE_MANAGED, tensor->device.id}; break;
	default:
		PyErr_Format(PyExc_BufferError, "DLPack: device type %d is not supported",
		             (int)tensor->device.type);
		return false;
	}
	if (!py_array_dims(array, tensor->ndim))
		return false;
	step = (Py_ssize_t)array->dtype.size;
	for (int i = tensor->ndim - 1; i >= 0; i--) {
		array->shape[i] = (Py_ssize_t)tensor->shape[i];
		array->strides[i] = tensor->strides ? (Py_ssize_t)tensor->strides[i] *
		                                              (Py_ssize_t)array->dtype.size
		                                    : step;
		step *= array->shape[i];
	}
	array->data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
	return py_array_settle(array);
}

/* An Array from a capsule, which is used up. */
static py_array *from_capsule(py_state *st, PyObject *capsule)
{
	bool versioned = PyCapsule_IsValid(capsule, NAME_VERSIONED);
	py_array *array;
	void *managed;

	if (!versioned && !PyCapsule_IsValid(capsule, NAME_OLD)) {
		PyErr_SetString(PyExc_ValueError,
		                "DLPack: not a capsule of a tensor, or it was used before");
		return NULL;
	}
	managed = PyCapsule_GetPointer(capsule, versioned ? NAME_VERSIONED : NAME_OLD);
	array = py_array_empty(st);
	if (!array)
		return NULL;
	if (versioned && ((dl_versioned *)managed)->major != 1) {
		PyErr_Format(PyExc_BufferError, "DLPack %u.%u, and only 1.x is known",
		             (unsigned)((dl_versioned *)managed)->major,
		             (unsigned)((dl_versioned *)managed)->minor);
		goto fail;
	}
	if (!fill(array,
	          versioned ? &((dl_versioned *)managed)->tensor : &((dl_old *)managed)->tensor))
		goto fail;
	array->readonly = versioned && (((dl_versioned *)managed)->flags & DL_READ_ONLY);
	array->owner = versioned ? PyCapsule_New(managed, NAME_KEPT_VERSIONED, kept_versioned_free)
	                         : PyCapsule_New(managed, NAME_KEPT_OLD, kept_old_free);
	if (!array->owner)
		goto fail;
	PyCapsule_SetName(capsule, versioned ? "used_" NAME_VERSIONED : "used_" NAME_OLD);
	return array;
fail:
	Py_DECREF(array);
	return NULL;
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
		/* One of ours: what became of it is told here, too. */
		const py_array *from = (const py_array *)object;
		py_array_tie(array, from->results, from->result, false);
		array->batched = from->batched;
	}
	if (array && type == DL_CUDA)
		array->stream = stream;
	return array;
}

/* ---- giving ----------------------------------------------------------------------------- */

void py_dlpack_device(lade_place place, int *type, int *id)
{
	static const int types[LADE_KIND_COUNT] = {DL_CPU, DL_PINNED, DL_MANAGED, DL_CUDA};

	*type = types[place.kind];
	*id = place.kind == LADE_DEVICE || place.kind == LADE_MANAGED ? place.device : 0;
}

/* What a managed tensor of ours needs besides; its shape and strides follow it. */
typedef struct holder {
	union {
		dl_old old;
		dl_versioned versioned;
	} managed;
	py_state *st;
	py_array *array;
	int64_t dims[];
} holder;

/*
 * Consumers may call a deleter from any thread.  In the main interpreter the GIL can be taken
 * there; in others there is no way to, and the array waits for the module's next call.
 */
static void let_go(holder *held)
{
	py_state *st = held->st;

	if (st->main_interpreter) {
		PyGILState_STATE gil = PyGILState_Ensure();
		py_unpin(held->array);
		Py_DECREF(held->array);
		PyGILState_Release(gil);
	} else {
		py_dropped *drop = malloc(sizeof(*drop));
		if (drop) {
			drop->object = (PyObject *)held->array;
			drop->next = atomic_load(&st->dropped);
			while (!atomic_compare_exchange_weak(&st->dropped, &drop->next, drop))
				;
		}
	}
	free(held);
}

static void delete_old(dl_old *managed)
{
	let_go(managed->ctx);
}

static void delete_versioned(dl_versioned *managed)
{
	let_go(managed->ctx);
}

/* A capsule that nobody used still owns its tensor. */
static void capsule_free(PyObject *capsule)
{
	if (PyCapsule_IsValid(capsule, NAME_VERSIONED)) {
		dl_versioned *managed = PyCapsule_GetPointer(capsule, NAME_VERSIONED);
		managed->deleter(managed);
	} else if (PyCapsule_IsValid(capsule, NAME_OLD)) {
		dl_old *managed = PyCapsule_GetPointer(capsule, NAME_OLD);
		managed->deleter(managed);
	}
}

static PyObject *give(py_array *array, bool versioned, bool copied)
{
	size_t ndim = (size_t)array->ndim;
	holder *held = calloc(1, sizeof(*held) + 2 * ndim * sizeof(int64_t));
	dl_tensor *tensor;
	PyObject *capsule;
	int type, id;

	if (!held)
		return PyErr_NoMemory();
	tensor = versioned ? &held->managed.versioned.tensor : &held->managed.old.tensor;
	if (!py_dtype_to_dlpack(array->dtype, &tensor->dtype.code, &tensor->dtype.bits)) {
		char text[24];
		py_dtype_text(array->dtype, text);
		PyErr_Format(PyExc_BufferError, "DLPack has no type for %s", text);
		free(held);
		return NULL;
	}
	for (size_t i = 0; i < ndim; i++) {
		if (array->strides[i] % (Py_ssize_t)array->dtype.size) {
			PyErr_Format(
				PyExc_BufferError,
				"DLPack: a stride of %zd bytes is no multiple of the element's %u",
				array->strides[i], (unsigned)array->dtype.size);
			free(held);
			return NULL;
		}
		held->dims[i] = array->shape[i];
		held->dims[ndim + i] = array->strides[i] / (Py_ssize_t)array->dtype.size;
	}
	py_dlpack_device(array->place, &type, &id);
	tensor->dtype.lanes = 1;
	tensor->data = array->size ? array->data : NULL;
	tensor->device.type = type;
	tensor->device.id = id;
	tensor->ndim = array->ndim;
	tensor->shape = held->dims;
	tensor->strides = held->dims + ndim;
	held->st = array->st;
	held->array = (py_array *)Py_NewRef(array);
	if (versioned) {
		held->managed.versioned.major = 1;
		held->managed.versioned.minor = 1;
		held->managed.versioned.ctx = held;
		held->managed.versioned.deleter = delete_versioned;
		held->managed.versioned.flags =
			(array->readonly ? DL_READ_ONLY : 0u) | (copied ? DL_IS_COPIED : 0u);
	} else {
		held->managed.old.ctx = held;
		held->managed.old.deleter = delete_old;
	}
	capsule = PyCapsule_New(held, versioned ? NAME_VERSIONED : NAME_OLD, capsule_free);
	if (!capsule) {
		Py_XDECREF(array);
		free(held);
		return NULL;
	}
	py_pin(array);
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
	int type, id, want_type = 0, want_id = 0, major = 0, minor = 0;
	py_array *out = NULL;
	PyObject *capsule;

	if (!read_pair("max_version", max_version, &major, &minor) ||
	    !read_pair("dl_device", dl_device, &want_type, &want_id))
		return NULL;
	versioned = major >= 1;
	if (!py_array_sized(array))
		return NULL;
	py_dlpack_device(array->place, &type, &id);
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
	/* The old struct cannot tell that memory is read-only. */
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
