/*
 * call_new.c: the result of a call without out=: one block for all, or memory that the library
 * finds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

#include <string.h>

/* Whether the exception that is set, which is cleared then, is one of memory. */
static bool is_no_memory(void)
{
	bool is = PyErr_ExceptionMatches(PyExc_MemoryError);

	if (is)
		PyErr_Clear();
	return is;
}

/* ---- new memory of the library's -------------------------------------------------------- */

/* Whether new memory of the library's can be a result in 'place' as it is: not where a function of
 * the caller's gives memory, nor where it goes back in the order of a stream. */
static bool may_stay(py_state *st, lade_place place)
{
	return place.kind == LADE_HOST && !py_has_allocator(st, LADE_HOST);
}

/* Some as an Array in 'place'; NULL: an exception. */
static py_array *as_array(const py_call *call, lade_array *from, lade_place place)
{
	py_array *array = py_array_own(call->codec->st, lade_array_ref(from));

	if (array && !may_stay(call->codec->st, place))
		PY_REPLACE(array, py_array_copy(array, place, call->codec->stream));
	return array;
}

bool py_go_new(const py_call *call, py_work *work)
{
	work->arrays = calloc(work->count + 1, sizeof(*work->arrays));
	if (!work->arrays)
		return PyErr_NoMemory() != NULL;
	work->err.status = LADE_OK;
	work->failed = SIZE_MAX;
	return py_work_run(work, call->encode) != LADE_E_CANCELLED;
}

py_array *py_take_new(const py_call *call, py_work *work, size_t i, lade_place place)
{
	size_t size = work->results[i].size;
	lade_error err;
	py_array *array;

	if (work->results[i].status)
		return NULL;
	array = as_array(call, work->arrays[i], place);
	if (array)
		work->items[i].dst.data = array->data;
	else if (call->return_errors && is_no_memory()) {
		lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET, "%zu bytes could not be allocated",
		          size);
		py_work_note(work, i, &err);
	}
	return array;
}

/* What keeps the results of py_go_new(): one Array, or a list. */
static PyObject *own_new(const py_call *call, py_work *work)
{
	bool stay = may_stay(call->codec->st, work->place);
	PyObject *list;
	lade_array *whole, *last = NULL;

	if (!call->batch && !call->return_errors)
		return (PyObject *)py_take_new(call, work, 0, work->place);
	list = PyList_New(0);
	for (size_t i = 0; list && i < work->count; i++) {
		py_array *array = NULL;
		whole = lade_array_whole(work->arrays[i]);
		if (!stay)
			array = py_take_new(call, work, i, work->place);
		else if (whole && whole != last)
			array = py_array_own(call->codec->st, lade_array_ref(whole));
		last = whole ? whole : last;
		if (array ? PyList_Append(list, (PyObject *)array) : PyErr_Occurred() != NULL)
			Py_CLEAR(list);
		Py_XDECREF(array);
	}
	return list;
}

/* ---- results ---------------------------------------------------------------------------- */

bool py_item_fits(const py_call *call, py_work *work, size_t i, const py_array *out)
{
	size_t size = work->results[i].size;
	lade_error err;

	if (work->results[i].status)
		return true;
	if (size % call->dtype.size)
		lade_fail(&err, LADE_E_VALUE, LADE_NO_OFFSET,
		          "%zu bytes are no multiple of the element's %u", size,
		          (unsigned)call->dtype.size);
	else if (out && !out->contiguous && size != out->size)
		lade_fail(&err, LADE_E_VALUE, LADE_NO_OFFSET,
		          "out: %zu bytes were decoded, and the strided array has %zu; "
		          "decode_into() tells the count",
		          size, out->size);
	else
		return true;
	if (call->return_errors) {
		py_work_note(work, i, &err);
		return true;
	}
	PyErr_SetString(PyExc_ValueError, err.message);
	if (call->batch)
		py_blame("item", i);
	return false;
}

/* A list where each item is its array or its exception. */
static PyObject *as_list(const py_call *call, const py_work *work, PyObject *arrays)
{
	PyObject *list = PyList_New((Py_ssize_t)work->count);

	for (size_t i = 0; list && i < work->count; i++) {
		PyObject *one = work->results[i].status
		                        ? py_exception(call->codec->st, &work->item_errors[i], i)
		                        : PySequence_GetItem(arrays, (Py_ssize_t)i);
		if (!one || PyList_SetItem(list, (Py_ssize_t)i, one))
			Py_CLEAR(list);
	}
	return list;
}

PyObject *py_finish(const py_call *call, const py_work *work, PyObject *arrays)
{
	PyObject *out;

	if (!arrays || (call->batch && !call->return_errors))
		return arrays;
	if (call->batch)
		out = as_list(call, work, arrays);
	else if (work->results[0].status)
		out = py_exception(call->codec->st, &work->err, SIZE_MAX);
	else
		out = PySequence_GetItem(arrays, 0);
	Py_DECREF(arrays);
	return out;
}

/* Moves the pieces of an encoded block together and gives the rest of it back. */
static void compact(py_array *block, py_batch *batch)
{
	size_t at = 0;

	if (!block->block || block->place.kind != LADE_HOST)
		return;
	for (size_t i = 0; i < batch->count; i++) {
		memmove(block->data + at, batch->pieces[i].data, batch->pieces[i].size);
		at += py_padded(batch->pieces[i].size);
	}
	at = at < block->size ? at : block->size;
	py_array_shrink(block, at);
	at = 0;
	for (size_t i = 0; i < batch->count; i++) {
		batch->pieces[i].data = block->data + at;
		at += py_padded(batch->pieces[i].size);
	}
	block->size = at < block->cap ? at : block->cap;
	block->shape[0] = (Py_ssize_t)block->size;
}

/* One array whose block is the result's own. */
static PyObject *single(const py_call *call, py_work *work, py_array *block)
{
	size_t size = work->results[0].size;

	py_array_shrink(block, size);
	if (!py_item_fits(call, work, 0, NULL) || !py_array_flat(block, call->dtype, size))
		Py_CLEAR(block);
	return (PyObject *)block;
}

/* The result of sources that are all on one device is there, too. */
static lade_place place_of(const py_work *work)
{
	lade_place place = work->count ? work->segments[0].place : LADE_PLACE_HOST;

	for (size_t i = 0; i < work->count; i++) {
		lade_place its = work->segments[i].place;
		if (its.kind != LADE_DEVICE || its.device != place.device)
			return LADE_PLACE_HOST;
	}
	return place;
}

/* Gives the items their places in one block. */
static py_array *lay_out(const py_call *call, py_work *work, lade_place place)
{
	size_t total = 0;
	py_array *block;

	for (size_t i = 0; i < work->count; i++) {
		size_t cap = py_call_cap(call, work, i);
		if (cap == SIZE_MAX && call->encode) {
			PyErr_Format(PyExc_ValueError,
			             "item %zu: %zu bytes are more than the codec can hold", i,
			             work->segments[i].size);
			return NULL;
		}
		if (cap > (size_t)PY_SSIZE_T_MAX - PY_PIECE_ALIGN ||
		    total > (size_t)PY_SSIZE_T_MAX - cap - PY_PIECE_ALIGN) {
			PyErr_Format(PyExc_MemoryError,
			             "item %zu: %zu bytes more than %zu cannot be had", i, cap,
			             total);
			return NULL;
		}
		work->items[i].dst.size = cap;
		total += call->batch ? py_padded(cap) : cap;
	}
	block = py_array_new(call->codec->st, total, place, place.kind ? call->codec->stream : 0);
	total = 0;
	for (size_t i = 0; block && i < work->count; i++) {
		lade_span *dst = &work->items[i].dst;
		dst->data = block->data ? block->data + total : NULL;
		dst->place = place;
		total += py_padded(dst->size);
	}
	return block;
}

/* How many sizes are known, or known to be wrong. */
static size_t count_known(const py_call *call, const py_work *work)
{
	size_t known = 0;

	for (size_t i = 0; i < work->count; i++)
		known += work->results[i].status || py_call_cap(call, work, i) != SIZE_MAX;
	return known;
}

static bool lacks_room(const py_work *work)
{
	for (size_t i = 0; i < work->count; i++)
		if (work->results[i].status == LADE_E_NOSPACE)
			return true;
	return false;
}

/* Many results in what 'owner' keeps, which is 'block' where that is not NULL. */
static PyObject *many(const py_call *call, py_work *work, PyObject *owner, py_array *block,
                      lade_place place)
{
	const py_codec *codec = call->codec;
	uintptr_t stream = 0;
	py_batch *batch;

	if (place.kind)
		stream = py_home(codec->st, place.device, codec->stream, codec->stream_object);
	batch = py_batch_pieces(codec->st, work->count, owner, place, call->dtype, stream);
	for (size_t i = 0; batch && i < work->count; i++) {
		if (!py_item_fits(call, work, i, NULL))
			Py_CLEAR(batch);
		else
			batch->pieces[i] =
				(py_piece){work->items[i].dst.data, work->results[i].size};
	}
	if (!batch)
		return NULL;
	if (call->encode)
		compact(block, batch);
	return py_finish(call, work, (PyObject *)batch);
}

PyObject *py_into_new(const py_call *call, py_work *work)
{
	const py_codec *codec = call->codec;
	bool bare = !call->encode && codec->kind != PY_NATIVE;
	lade_place place = place_of(work);
	py_array *block = NULL;
	PyObject *owner = NULL, *out = NULL;
	size_t known = bare ? count_known(call, work) : work->count;

	if (known == work->count) {
		block = lay_out(call, work, place);
		if (!block && !(bare && call->return_errors && is_no_memory()))
			return NULL;
		owner = (PyObject *)block;
		if (block && py_work_run(work, call->encode) == LADE_E_CANCELLED)
			goto out;
	}
	if (bare && (!block || lacks_room(work))) {
		block = NULL;
		Py_CLEAR(owner);
		work->place = place;
		if (!py_go_new(call, work) || !py_call_raise(call, work) ||
		    !(owner = own_new(call, work)))
			goto out;
		/* A format without sizes is not asked again. */
		if (!known && !work->err.status)
			call->codec->no_sizes = true;
	}
	if (!py_call_raise(call, work))
		goto out;
	if (!call->batch && !call->return_errors)
		return single(call, work, (py_array *)owner);
	owner = py_leave(codec->st, owner, codec->stream, codec->stream_object);
	if (owner)
		out = many(call, work, owner, block, place);
out:
	Py_XDECREF(owner);
	return out;
}

