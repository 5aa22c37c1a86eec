/*
 * array.c: memory of liblade.Array: where it comes from, how it is shaped, copied and given back.
 * What Python sees of it is in array_type.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

/* Enough for every vector instruction; devices and pinned memory give more. */
#define BLOCK_ALIGN 64

void py_drain(py_state *st)
{
	py_dropped *list;

	if (!atomic_load_explicit(&st->dropped, memory_order_relaxed))
		return;
	list = atomic_exchange(&st->dropped, NULL);
	while (list) {
		py_dropped *next = list->next;
		py_unpin((py_array *)list->object);
		Py_DECREF(list->object);
		free(list);
		list = next;
	}
}

py_array *py_array_empty(py_state *st)
{
	py_array *array;

	py_drain(st);
	array = (py_array *)PyType_GenericAlloc(st->array_type, 0);
	if (!array)
		return NULL;
	array->st = st;
	array->dtype = PY_BYTES;
	array->contiguous = true;
	array->shape = array->dims;
	array->strides = array->dims + 4;
	return array;
}

/* Room for 'ndim' dimensions; the caller fills shape and strides. */
static bool take_dims(py_array *array, Py_ssize_t ndim)
{
	Py_ssize_t *dims = array->dims;

	if (ndim < 0 || ndim > PY_NDIM_MAX) {
		PyErr_Format(PyExc_ValueError, "%zd dimensions, at most %d are possible", ndim,
		             PY_NDIM_MAX);
		return false;
	}
	if (ndim > 4) {
		dims = PyMem_Calloc((size_t)ndim * 2, sizeof(*dims));
		if (!dims) {
			PyErr_NoMemory();
			return false;
		}
	}
	if (array->shape != array->dims)
		PyMem_Free(array->shape);
	array->ndim = (int)ndim;
	array->shape = dims;
	array->strides = dims + (ndim > 4 ? ndim : 4);
	return true;
}

bool py_array_flat(py_array *array, py_dtype dtype, size_t size)
{
	if (!take_dims(array, 1))
		return false;
	array->dtype = dtype;
	array->shape[0] = (Py_ssize_t)(size / dtype.size);
	array->strides[0] = (Py_ssize_t)dtype.size;
	array->size = size;
	array->contiguous = true;
	return true;
}

bool py_array_shape(py_array *array, Py_ssize_t ndim, const Py_ssize_t *shape,
                    const Py_ssize_t *strides)
{
	size_t size = array->dtype.size;
	bool contiguous = true;

	if (!take_dims(array, ndim))
		return false;
	for (Py_ssize_t i = ndim - 1; i >= 0; i--) {
		size_t n = (size_t)shape[i];
		if (shape[i] < 0 || (n && size > (size_t)PY_SSIZE_T_MAX / n)) {
			PyErr_Format(PyExc_ValueError,
			             "dimension %zd of %zd elements is not possible", i, shape[i]);
			return false;
		}
		array->shape[i] = shape[i];
		array->strides[i] = strides ? strides[i] : (Py_ssize_t)size;
		contiguous &= n == 1 || array->strides[i] == (Py_ssize_t)size;
		size *= n;
	}
	array->size = size;
	array->contiguous = contiguous || !size;
	if (!array->cap && array->contiguous)
		array->cap = size;
	return true;
}

bool py_dims_arg(PyObject *tuple, Py_ssize_t dims[PY_NDIM_MAX])
{
	Py_ssize_t count = PyTuple_Size(tuple);

	if (count > PY_NDIM_MAX)
		PyErr_Format(PyExc_ValueError, "%zd dimensions, at most %d are possible", count,
		             PY_NDIM_MAX);
	for (Py_ssize_t i = 0; !PyErr_Occurred() && i < count; i++)
		dims[i] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
	return !PyErr_Occurred();
}

/* Memory from the caller's own function. */
static bool from_callable(py_array *array, PyObject *function, size_t size, uintptr_t stream)
{
	PyObject *wrapped, *pointer = NULL;
	bool ok;

	wrapped = PyObject_CallMethod(array->st->stream_class, "borrow", "K",
	                              (unsigned long long)stream);
	if (!wrapped)
		return false;
	array->owner = PyObject_CallFunction(function, "nO", (Py_ssize_t)size, wrapped);
	Py_DECREF(wrapped);
	if (!array->owner)
		return false;
	array->lent = true;
	pointer = PyObject_GetAttrString(array->owner, "ptr");
	if (!pointer) {
		if (PyErr_ExceptionMatches(PyExc_AttributeError))
			PyErr_Format(PyExc_TypeError,
			             "the allocator gave %R, an object with .ptr is wanted",
			             array->owner);
		return false;
	}
	ok = py_address(pointer, "the allocator's ptr", &array->data);
	Py_DECREF(pointer);
	if (!ok || array->data)
		return ok;
	PyErr_Format(PyExc_MemoryError, "the allocator gave %R with ptr 0 for %zu bytes",
	             array->owner, size);
	return false;
}

/* A reference to the caller's own function for a kind of memory, or NULL. */
static PyObject *function_of(py_state *st, lade_kind kind)
{
	static const int which[LADE_KIND_COUNT] = {PY_ALLOC_HOST, PY_ALLOC_PINNED, -1,
	                                           PY_ALLOC_DEVICE};
	PyObject *function;

	if (which[kind] < 0)
		return NULL;
	py_lock(&st->allocator_lock);
	function = Py_XNewRef(st->allocator[which[kind]]);
	py_unlock(&st->allocator_lock);
	return function;
}

bool py_has_allocator(py_state *st, lade_kind kind)
{
	PyObject *function = function_of(st, kind);

	Py_XDECREF(function);
	return function != NULL;
}

void py_no_block(py_state *st, size_t size, lade_place place, uintptr_t stream)
{
	lade_error err = {LADE_E_NOMEM, LADE_NO_OFFSET, ""};
	lade_mark *mark = NULL;
	int32_t count;
	bool marked = place.kind != LADE_HOST && lade_device_count(&count, &err);

	/* Where the stream is to blame the driver says so here as well. */
	if (!marked && place.kind == LADE_DEVICE)
		marked = lade_mark_new(place.device, (lade_stream)stream, &mark, &err);
	lade_mark_free(mark);
	if (!marked || err.status == LADE_E_UNSUPPORTED)
		lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET,
		          "%zu bytes of %s memory could not be allocated", size,
		          lade_kind_name(place.kind));
	py_raise(st, &err, SIZE_MAX);
}

static bool take_block(py_array *array, size_t size, lade_place place, uintptr_t stream)
{
	py_state *st = array->st;
	const lade_allocator *from = lade_allocator_default(place.kind);
	PyObject *function;
	bool ok;

	array->place = place;
	array->stream = stream;
	array->data = NULL;
	array->cap = 0;
	if (!size)
		return true;
	function = function_of(st, place.kind);
	if (function) {
		ok = from_callable(array, function, size, stream);
		Py_DECREF(function);
		array->cap = ok ? size : 0;
		return ok;
	}
	/* What streams have passed gives its memory back first. */
	if (place.kind != LADE_HOST)
		py_kept_sweep(st);
	array->block = from->alloc(from->ctx, size, BLOCK_ALIGN, place, (lade_stream)stream);
	if (!array->block && place.kind != LADE_HOST) {
		py_kept_sweep(st);
		array->block = from->alloc(from->ctx, size, BLOCK_ALIGN, place,
		                           (lade_stream)stream);
	}
	if (!array->block) {
		py_no_block(st, size, place, stream);
		return false;
	}
	array->block_size = array->cap = size;
	array->data = array->block;
	atomic_fetch_add_explicit(&st->blocks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&st->block_count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&st->block_bytes, size, memory_order_relaxed);
	return true;
}

static void give_block(py_array *array)
{
	const lade_allocator *to = lade_allocator_default(array->place.kind);

	if (array->memory)
		atomic_fetch_sub_explicit(&array->st->blocks, 1, memory_order_relaxed);
	lade_array_unref(array->memory);
	array->memory = NULL;
	if (!array->block)
		return;
	if (array->shared && array->place.kind == LADE_DEVICE)
		py_home_after_all(array->st, array->place.device, array->stream);
	to->free(to->ctx, array->block, array->block_size, BLOCK_ALIGN, array->place,
	         (lade_stream)array->stream);
	atomic_fetch_sub_explicit(&array->st->blocks, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&array->st->block_bytes, array->block_size, memory_order_relaxed);
	array->block = NULL;
}

/* ---- results of enqueued work ----------------------------------------------------------- */

/* What a result says of the size goes into the array. */
static bool settle_result(py_array *array)
{
	py_array *owner = (py_array *)array->owner;
	size_t size;

	py_results_size(array->results, array->result, &size);
	if (size > array->cap || size % array->dtype.size) {
		PyErr_Format(PyExc_ValueError, "%zu bytes are no multiple of the element's %u",
		             size, (unsigned)array->dtype.size);
		return false;
	}
	if (array->like_owner && owner && owner->size == size) {
		array->dtype = owner->dtype;
		if (!py_array_shape(array, owner->ndim, owner->shape, owner->strides))
			return false;
	} else {
		bool typed = array->like_owner && owner && size % owner->dtype.size == 0;
		if (!py_array_flat(array, typed ? owner->dtype : array->dtype, size))
			return false;
	}
	array->unsized = false;
	return true;
}

bool py_array_wait(py_array *array)
{
	if (!array->results)
		return true;
	return py_results_wait(array->st, array->results) &&
	       py_results_check(array->st, array->results, array->result,
	                        array->batched ? array->result : SIZE_MAX) &&
	       (!array->unsized || settle_result(array));
}

bool py_array_sized(py_array *array)
{
	return !array->unsized || py_array_wait(array);
}

void py_array_tie(py_array *array, py_results *results, size_t i, bool unsized)
{
	py_results *old = array->results;

	array->results = py_results_ref(results);
	array->result = i;
	array->unsized = unsized;
	py_results_unref(old);
}

void py_array_on_stream(py_array *array, uintptr_t stream, PyObject *stream_object)
{
	array->stream = stream;
	PY_REPLACE(array->stream_object, Py_XNewRef(stream_object));
}

bool py_array_leave(py_array *array, uintptr_t stream, PyObject *object)
{
	if (!array->stream)
		return true;
	if (array->stream == stream && !array->stream_object)
		array->stream_object = Py_XNewRef(py_stream_keeper(object));
	if (array->place.kind == LADE_DEVICE || array->place.kind == LADE_MANAGED)
		return py_go_home(array->st, array->place.device, &array->stream,
		                  array->stream_object);
	if (!py_stream_lives(array->stream, array->stream_object))
		array->stream = 0;
	return true;
}

void py_array_share(py_array *array)
{
	PyObject *owner = (PyObject *)array;

	while (owner && Py_TYPE(owner) == array->st->array_type) {
		((py_array *)owner)->shared = true;
		owner = ((py_array *)owner)->owner;
	}
	/* Of a batch in several blocks. */
	for (Py_ssize_t i = 0; owner && PyList_Check(owner) && i < PyList_Size(owner); i++) {
		py_array *one = (py_array *)PyList_GetItem(owner, i);
		if (Py_TYPE(one) == array->st->array_type)
			one->shared = true;
	}
}

/* ---- arrays ----------------------------------------------------------------------------- */

py_array *py_array_new(py_state *st, size_t size, lade_place place, uintptr_t stream)
{
	py_array *array = py_array_empty(st);

	if (!array)
		return NULL;
	if (size > (size_t)PY_SSIZE_T_MAX) {
		PyErr_Format(PyExc_MemoryError, "%zu bytes are more than can be addressed", size);
		Py_DECREF(array);
		return NULL;
	}
	if (!take_block(array, size, place, stream) || !py_array_flat(array, PY_BYTES, size)) {
		Py_DECREF(array);
		return NULL;
	}
	return array;
}

py_array *py_array_own(py_state *st, lade_array *memory)
{
	py_array *array = py_array_empty(st);
	lade_span span = lade_array_span(memory);

	if (!array) {
		lade_array_unref(memory);
		return NULL;
	}
	atomic_fetch_add_explicit(&st->blocks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&st->block_count, 1, memory_order_relaxed);
	array->memory = memory;
	array->lent = true;
	array->data = span.data;
	array->cap = span.size;
	array->place = span.place;
	(void)py_array_flat(array, PY_BYTES, span.size);
	return array;
}

bool py_array_resizable(const py_array *array, Py_ssize_t pins)
{
	return array->exports == pins && !array->exposed && !array->readonly && !array->has_view &&
	       array->contiguous && array->ndim <= 1 &&
	       (array->block || array->lent || (!array->owner && !array->memory && !array->data));
}

bool py_array_grow(py_array *array, size_t cap)
{
	py_array *larger;
	bool ok;

	if (array->cap >= cap)
		return true;
	larger = py_array_new(array->st, cap, array->place, array->stream);
	if (larger)
		larger->stream_object = Py_XNewRef(array->stream_object);
	ok = larger && py_array_swap(array, larger) && py_array_flat(array, PY_BYTES, cap);
	Py_XDECREF(larger);
	return ok;
}

void py_pin(py_array *array)
{
	/* An exchange is a few assignments, with no call of the interpreter in between. */
	while (array->exports++ < 0)
		array->exports--;
}

void py_unpin(py_array *array)
{
	array->exports--;
}

bool py_array_swap(py_array *a, py_array *b)
{
	Py_ssize_t mine = 1;
	bool lent = a->lent, shared = a->shared;
	lade_array *memory = a->memory;
	void *data = a->data, *block = a->block;
	size_t block_size = a->block_size, cap = a->cap;
	lade_place place = a->place;
	uintptr_t stream = a->stream;
	PyObject *owner = a->owner, *stream_object = a->stream_object;

	if (!atomic_compare_exchange_strong(&a->exports, &mine, PY_SSIZE_T_MIN / 2)) {
		lade_error err;
		lade_fail(&err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		          "want %zu bytes, have %zu, and the array is in use elsewhere",
		          b->cap, a->cap);
		py_raise(a->st, &err, SIZE_MAX);
		return false;
	}
	a->data = b->data;
	a->block = b->block;
	a->memory = b->memory;
	a->block_size = b->block_size;
	a->cap = b->cap;
	a->place = b->place;
	a->stream = b->stream;
	a->stream_object = b->stream_object;
	a->owner = b->owner;
	a->lent = b->lent;
	a->shared = b->shared;
	b->data = data;
	b->block = block;
	b->memory = memory;
	b->block_size = block_size;
	b->cap = cap;
	b->place = place;
	b->stream = stream;
	b->stream_object = stream_object;
	b->owner = owner;
	b->lent = lent;
	b->shared = shared;
	/* The sizes follow from the capacities until somebody says better.  One dimension needs no
	 * memory of its own. */
	(void)py_array_flat(a, PY_BYTES, a->cap);
	(void)py_array_flat(b, PY_BYTES, b->cap);
	atomic_fetch_add(&a->exports, 1 - PY_SSIZE_T_MIN / 2);
	return true;
}

void py_array_shrink(py_array *array, size_t size)
{
	void *smaller;

	/* The default of LADE_HOST is posix_memalign(), whose blocks realloc() takes.  Below a
	 * page or an eighth there is nothing to win. */
	if (!array->block || array->place.kind != LADE_HOST || !size ||
	    array->block_size - size < 4096 || array->block_size - size < array->block_size / 8)
		return;
	smaller = realloc(array->block, size);
	if (!smaller)
		return;
	atomic_fetch_sub_explicit(&array->st->block_bytes, array->block_size - size,
	                          memory_order_relaxed);
	array->data = array->block = smaller;
	array->block_size = array->cap = size;
}

py_array *py_array_part(py_state *st, PyObject *owner, char *data, size_t size, lade_place place,
                        py_dtype dtype, bool readonly, uintptr_t stream)
{
	py_array *array = py_array_empty(st);

	if (!array)
		return NULL;
	array->owner = Py_NewRef(owner);
	if (Py_TYPE(owner) == st->array_type) {
		py_pin((py_array *)owner);
		array->pins = true;
	}
	array->data = data;
	array->cap = size;
	array->place = place;
	array->readonly = readonly;
	array->stream = stream;
	if (!py_array_flat(array, dtype, size))
		Py_CLEAR(array);
	return array;
}

py_array *py_array_copy(py_array *array, lade_place place, uintptr_t stream)
{
	py_state *st = array->st;
	py_array *out = NULL;
	lade_cspan from;
	lade_span to;
	lade_error err;
	lade_status status;

	if (!py_array_wait(array))
		return NULL;
	/* A stream is one device's: from one to another by way of the host. */
	if (array->place.kind == LADE_DEVICE && place.kind == LADE_DEVICE &&
	    array->place.device != place.device) {
		py_array *flat = py_array_copy(array, LADE_PLACE_HOST, array->stream);
		out = flat ? py_array_copy(flat, place, stream) : NULL;
		Py_XDECREF(flat);
		return out;
	}
	/* The caller's allocator is asked, and may decode to this array. */
	py_pin(array);
	out = py_array_new(st, array->size, place, stream);
	if (!out)
		goto fail;
	if (stream == array->stream)
		out->stream_object = Py_XNewRef(array->stream_object);
	from = (lade_cspan){array->data, array->size, array->place};
	to = (lade_span){out->data, out->size, place};
	if (!array->contiguous) {
		status = py_gather(array, to, stream, &err);
	} else {
		Py_BEGIN_ALLOW_THREADS
		status = lade_copy(NULL, from, to, (lade_stream)stream, &err);
		Py_END_ALLOW_THREADS
	}
	if (status) {
		py_raise(st, &err, SIZE_MAX);
		goto fail;
	}
	if (array->place.kind == LADE_DEVICE)
		py_kept_sweep(st);
	out->dtype = array->dtype;
	if (!py_array_shape(out, array->ndim, array->shape, NULL))
		goto fail;
	py_unpin(array);
	return out;
fail:
	py_unpin(array);
	Py_XDECREF(out);
	return NULL;
}

/* ---- the type's own slots --------------------------------------------------------------- */

int py_array_traverse(PyObject *self, visitproc visit, void *arg)
{
	py_array *array = (py_array *)self;

	Py_VISIT(array->owner);
	Py_VISIT(array->stream_object);
	if (array->has_view)
		Py_VISIT(array->view.obj);
	Py_VISIT(Py_TYPE(self));
	return 0;
}

static void unpin(py_array *array)
{
	if (array->pins)
		py_unpin((py_array *)array->owner);
	array->pins = false;
}

int py_array_clear(PyObject *self)
{
	py_array *array = (py_array *)self;

	/* Whoever still holds the array must not find freed memory. */
	if (array->owner || array->has_view) {
		array->data = NULL;
		array->size = array->cap = 0;
		if (array->ndim)
			array->shape[0] = 0;
	}
	unpin(array);
	Py_CLEAR(array->owner);
	if (array->has_view) {
		array->has_view = false;
		PyBuffer_Release(&array->view);
	}
	return 0;
}

void py_array_dealloc(PyObject *self)
{
	py_array *array = (py_array *)self;

	PyObject_GC_UnTrack(self);
	if (array->weakrefs)
		PyObject_ClearWeakRefs(self);
	if (array->st)
		give_block(array);
	if (array->has_view)
		PyBuffer_Release(&array->view);
	unpin(array);
	Py_XDECREF(array->owner);
	Py_XDECREF(array->stream_object);
	py_results_unref(array->results);
	if (array->shape != array->dims)
		PyMem_Free(array->shape);
	py_free(self);
}
