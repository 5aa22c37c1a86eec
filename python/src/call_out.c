/*
 * call_out.c: the destinations that a call was given with out=, and the result on them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

/* ---- with out= -------------------------------------------------------------------------- */

/*
 * Whether an item decodes to all of a strided array, and so straight into it by a layout.
 * Others go by way of a scratch array.  -1: an exception
 */
static int fit_layout(const py_call *call, py_work *work, size_t i, const py_array *array)
{
	lade_item *item = &work->items[i];
	char *first;
	size_t extent;
	lade_layout layout = py_layout(array, &first, &extent), *own;

	if (call->codec->kind == PY_NATIVE || !array->size || item->range_off || item->range_size ||
	    py_call_cap(call, work, i) != array->size ||
	    lade_layout_measure(&layout, LADE_DECODE, extent, NULL, NULL))
		return 0;
	own = py_work_layout(work, i);
	if (!own)
		return -1;
	*own = layout;
	item->dst.data = first;
	item->dst.size = extent;
	return 1;
}

/* Points an item at its destination; strided memory by a layout or a scratch array. */
static bool place_out(const py_call *call, py_work *work, size_t i, py_mem *mem)
{
	lade_item *item = &work->items[i];
	py_array *array = mem->array;
	lade_place place;
	size_t cap;
	int laid_out;

	item->dst = (lade_span){mem->data, mem->size, mem->place};
	if (!array)
		return true;
	if (array->place.kind == LADE_DEVICE &&
	    !py_follow(array->st, array->place.device, call->codec->stream, array->stream))
		return false;
	if (array->results && array->unsized)
		py_array_flat(array, PY_BYTES, array->cap);
	py_array_tie(array, NULL, 0, false); /* what was in it does not count any more */
	if (!call->into && py_array_resizable(array, 1)) {
		cap = py_call_cap(call, work, i);
		/* Memory is taken on the array's stream, which the call's follows. */
		if (cap != SIZE_MAX && cap > array->cap &&
		    (!py_array_grow(array, cap) ||
		     (array->place.kind == LADE_DEVICE &&
		      !py_follow(array->st, array->place.device, call->codec->stream,
		                 array->stream))))
			return false;
		item->dst.data = array->data;
		item->dst.size = array->cap;
		return true;
	}
	if (array->contiguous)
		return true;
	if (call->encode) {
		PyErr_SetString(PyExc_ValueError,
		                "encoded bytes want contiguous memory, this is strided");
		return false;
	}
	laid_out = fit_layout(call, work, i, array);
	if (laid_out)
		return laid_out > 0;
	place = array->place.kind == LADE_DEVICE ? array->place : LADE_PLACE_HOST;
	mem->scratch = py_array_new(array->st, array->size, place, call->codec->stream);
	if (!mem->scratch)
		return false;
	item->dst = (lade_span){mem->scratch->data, array->size, place};
	return true;
}

/* Whether an Array of ours was too small for what nobody knew. */
static bool is_small(const py_call *call, const py_work *work, const py_mem *mem, size_t i)
{
	return work->results[i].status == LADE_E_NOSPACE && call->grows && mem->array &&
	       py_array_resizable(mem->array, 1);
}

/* What 'more' says of item 'k' becomes that of item 'i', whose Array takes the new memory. */
static bool exchange(const py_call *call, py_work *work, size_t i, py_mem *mem, py_work *more,
                     size_t k)
{
	py_array *array = py_take_new(call, more, k, mem->array->place);
	bool ok = true;

	work->results[i] = more->results[k];
	if (array) {
		ok = py_array_swap(mem->array, array);
		if (!ok)
			py_blame("out", call->batch ? i : PY_ALONE);
		work->items[i].dst.data = mem->array->data;
		work->items[i].dst.size = mem->array->cap;
		Py_DECREF(array);
	} else if (PyErr_Occurred()) {
		ok = false;
	} else {
		py_work_note(work, i, &more->item_errors[k]);
	}
	return ok;
}

/* Those take memory that the library finds, all in one go. */
static bool grow(const py_call *call, py_work *work, py_mem *mems)
{
	size_t count = 0, k = 0;
	bool ok = true;
	py_work more;

	for (size_t i = 0; i < work->count; i++)
		count += is_small(call, work, &mems[i], i);
	if (!count)
		return true;
	if (!py_work_init(&more, call->codec, count, true))
		return PyErr_NoMemory() != NULL;
	for (size_t i = 0; i < work->count; i++) {
		if (!is_small(call, work, &mems[i], i))
			continue;
		if (!k)
			more.place = mems[i].array->place;
		more.segments[k] = work->segments[i];
		more.items[k] = work->items[i];
		more.items[k].src = &more.segments[k];
		more.sizes[k++] = i;
	}
	ok = py_go_new(call, &more);
	work->err.status = LADE_OK;
	work->failed = SIZE_MAX;
	for (k = 0; ok && k < count; k++)
		ok = exchange(call, work, (size_t)more.sizes[k], &mems[more.sizes[k]], &more, k);
	/* The call's error is that of the first one again. */
	for (size_t i = 0; ok && i < work->failed && i < work->count; i++)
		if (work->results[i].status)
			py_work_note(work, i, &work->item_errors[i]);
	py_work_reset(&more);
	return ok;
}

static void unload(const py_call *call, py_work *work, size_t i, py_mem *mem)
{
	lade_error err;

	if (mem->scratch && !work->results[i].status &&
	    py_scatter(mem->array, mem->scratch, work->results[i].size, call->codec->stream, &err))
		py_work_note(work, i, &err);
}

/* What decode(out=) gives back for destination 'i': an Array on it. */
static PyObject *on_out(const py_call *call, const py_work *work, const py_holds *holds, size_t i)
{
	PyObject *object = holds->items ? PyTuple_GetItem(holds->items, (Py_ssize_t)i) : call->out;
	py_array *array = (py_array *)Py_XNewRef(holds->mems ? holds->mems[i].array : NULL);
	size_t size = work->results[i].size;
	py_dtype dtype = call->dtype;
	py_array *out;

	if (!array && !(array = py_array_from(call->codec->st, object, 0)))
		return NULL;
	if ((PyObject *)array == object && py_array_resizable(array, 1)) {
		out = py_array_flat(array, dtype, size) ? (py_array *)Py_NewRef(array) : NULL;
	} else if (work->results[i].status && !array->contiguous) {
		out = (py_array *)Py_NewRef(array);
	} else if ((!call->typed || !array->contiguous) && size == array->size && !call->encode) {
		out = call->typed ? py_array_seen_as(array, dtype) : (py_array *)Py_NewRef(array);
	} else {
		if (!call->typed && !call->encode && size % array->dtype.size == 0)
			dtype = array->dtype;
		out = py_array_part(array->st, (PyObject *)array, array->data, size, array->place,
		                    dtype, false, array->stream);
	}
	Py_DECREF(array);
	return (PyObject *)out;
}

/* The counts of bytes written to each destination. */
static PyObject *counts(const py_work *work)
{
	size_t count = work->count, same = 1, made;
	PyObject *list, *repeated;

	while (same < count && work->results[same].size == work->results[0].size)
		same++;
	/* Mostly all are alike, and one is made. */
	made = same < count ? count : count != 0;
	list = PyList_New((Py_ssize_t)made);
	for (size_t i = 0; list && i < made; i++) {
		PyObject *size = PyLong_FromSize_t(work->results[i].size);
		if (!size || PyList_SetItem(list, (Py_ssize_t)i, size))
			Py_CLEAR(list);
	}
	if (!list || made == count)
		return list;
	repeated = PySequence_Repeat(list, (Py_ssize_t)count);
	Py_DECREF(list);
	return repeated;
}

/* Arrays on each destination, where they lie in different places. */
static PyObject *on_outs(const py_call *call, const py_work *work, const py_holds *holds)
{
	PyObject *list = PyList_New((Py_ssize_t)work->count), *out = NULL;

	for (size_t i = 0; list && i < work->count; i++) {
		PyObject *one = on_out(call, work, holds, i);
		if (!one || PyList_SetItem(list, (Py_ssize_t)i, one))
			Py_CLEAR(list);
	}
	if (list)
		out = py_batch_arrays(call->codec->st, list, call->codec->stream);
	Py_XDECREF(list);
	return out;
}

/* Points the items at the pieces of a table, or at the memory of one object or a list's. */
static bool take_outs(const py_call *call, py_work *work, py_batch *table, py_holds *holds)
{
	py_state *st = call->codec->st;
	bool listed = false;
	size_t count;

	if (table) {
		if (table->readonly) {
			PyErr_SetString(PyExc_ValueError, "out: the memory is read-only");
			return false;
		}
		if (!py_batch_sized(table) ||
		    (table->place.kind == LADE_DEVICE &&
		     !py_follow(st, table->place.device, call->codec->stream, table->stream)))
			return false;
		py_batch_tie(table, NULL, false);
		count = table->count;
	} else {
		if (call->batch && py_is_list(call->out)) {
			if (!(holds->items = PySequence_Tuple(call->out)))
				return false;
			listed = py_list_outs(call, holds, work);
		}
		if (!listed && !py_hold(call, call->out, true, holds))
			return false;
		count = listed ? work->count : holds->count;
	}
	if (count != work->count) {
		PyErr_Format(PyExc_ValueError, "out has %zu arrays, and there are %zu", count,
		             work->count);
		return false;
	}
	for (size_t i = 0; i < count && !listed; i++) {
		if (table) {
			work->items[i].dst = (lade_span){table->pieces[i].data,
			                                 table->pieces[i].size, table->place};
		} else if (!place_out(call, work, i, &holds->mems[i])) {
			py_blame("out", call->batch ? i : PY_ALONE);
			return false;
		}
	}
	return true;
}

/* Whether all destinations are contiguous, of one place, and stay as they are. */
static bool are_plain(const py_holds *holds)
{
	const py_mem *mems = holds->mems;

	for (size_t i = 0; mems && i < holds->count; i++)
		if (mems[i].place.kind != mems[0].place.kind ||
		    mems[i].place.device != mems[0].place.device ||
		    (mems[i].array && (!mems[i].array->contiguous ||
		                       py_array_resizable(mems[i].array, 1))))
			return false;
	return true;
}

/* What a batch gives back: its pieces on the destinations, or Arrays. */
static PyObject *batch_on_outs(const py_call *call, py_work *work, py_batch *table, py_holds *holds)
{
	py_state *st = call->codec->st;
	lade_place place = work->count ? work->items[0].dst.place : LADE_PLACE_HOST;
	py_batch *batch;

	if (!are_plain(holds))
		return py_finish(call, work, on_outs(call, work, holds));
	batch = py_batch_pieces(st, work->count, table ? table->owner : NULL, place, call->dtype,
	                        call->codec->stream);
	for (size_t i = 0; batch && i < work->count; i++)
		batch->pieces[i] = (py_piece){work->items[i].dst.data, work->results[i].size};
	if (batch && !table && !(batch->owner = py_holds_capsule(holds)))
		Py_CLEAR(batch);
	return py_finish(call, work, (PyObject *)batch);
}

PyObject *py_into_out(const py_call *call, py_work *work)
{
	py_batch *table = py_table(call, call->out);
	py_holds holds = {0};
	PyObject *out = NULL;
	py_mem *mems;

	if (!take_outs(call, work, table, &holds))
		goto out;
	mems = holds.mems;
	if (!py_items_apart(call, work, mems) ||
	    py_work_run(work, call->encode) == LADE_E_CANCELLED ||
	    (mems && !grow(call, work, mems)) || !py_call_raise(call, work))
		goto out;
	for (size_t i = 0; !call->into && i < work->count; i++)
		if (!py_item_fits(call, work, i, mems ? mems[i].array : NULL))
			goto out;
	for (size_t i = 0; mems && holds.live && i < work->count; i++)
		unload(call, work, i, &mems[i]);
	if (!py_call_raise(call, work))
		goto out;
	if (call->into)
		out = call->batch ? counts(work) : PyLong_FromSize_t(work->results[0].size);
	else if (call->batch)
		out = batch_on_outs(call, work, table, &holds);
	else if (work->results[0].status)
		out = py_exception(call->codec->st, &work->err, SIZE_MAX);
	else
		out = on_out(call, work, &holds, 0);
out:
	py_holds_release(&holds);
	return out;
}

