/*
 * call.c: one call of encode or decode: its sources, its destinations, its result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

#include <string.h>

/* ---- sources ---------------------------------------------------------------------------- */

/* Strided memory by its layout where an item can take one, else as a copy. */
static bool straighten(const py_call *call, py_work *work, size_t i, py_mem *mem)
{
	lade_layout *layout;

	if (!call->encode || call->codec->kind == PY_NATIVE || !mem->array ||
	    mem->array->contiguous || !mem->array->size)
		return py_mem_flatten(mem);
	layout = py_work_layout(work, i);
	if (layout)
		*layout = py_layout(mem->array, &mem->data, &mem->size);
	return layout != NULL;
}


/* The sources become the work's items. */
static bool fill_sources(const py_call *call, py_holds *holds, py_work *work)
{
	py_batch *batch = py_table(call, call->source);
	size_t count = batch ? batch->count : holds->count;

	if (!py_work_init(work, call->codec, count, call->return_errors || call->grows)) {
		PyErr_NoMemory();
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		lade_segment *segment = py_call_item(call, work, i);
		if (batch) {
			*segment = (lade_segment){batch->pieces[i].data, batch->pieces[i].size,
			                          batch->place, 0};
		} else {
			py_mem *mem = &holds->mems[i];
			if (!straighten(call, work, i, mem))
				return false;
			*segment = (lade_segment){mem->data, mem->size, mem->place, 0};
		}
	}
	return true;
}

/* The call's stream goes on behind those that the sources are ready on. */
static bool order_sources(const py_call *call, const py_holds *holds)
{
	const py_codec *codec = call->codec;
	uintptr_t last = codec->stream;
	py_batch *batch = holds->mems ? NULL : (py_batch *)call->source;

	if (batch && batch->place.kind == LADE_DEVICE)
		return py_follow(codec->st, batch->place.device, codec->stream, batch->stream);
	for (size_t i = 0; holds->live && i < holds->count; i++) {
		const py_array *array = holds->mems[i].array;
		if (!array || array->place.kind != LADE_DEVICE || array->stream == last)
			continue;
		last = array->stream;
		if (!py_follow(codec->st, array->place.device, codec->stream, last))
			return false;
	}
	return true;
}

/* Waits for sources that are still being written. */
static bool wait_sources(const py_call *call, py_holds *holds)
{
	for (size_t i = 0; holds->live && i < holds->count; i++) {
		py_mem *mem = &holds->mems[i];
		if (mem->array && mem->array->results) {
			if (!py_array_wait(mem->array))
				return false;
			mem->size = mem->array->size;
		}
	}
	return holds->mems || py_batch_wait((py_batch *)call->source);
}

/* Takes hold of the sources, in the order of the call's stream. */
static bool take_sources(const py_call *call, py_holds *holds)
{
	return (py_table(call, call->source) || py_hold(call, call->source, false, holds)) &&
	       order_sources(call, holds);
}

/* A config's sizes: those of the arrays, or hints to formats that do not tell their own. */
static bool take_config(const py_call *call, py_work *work)
{
	bool hints = !call->encode && call->codec->kind == PY_RAW;

	if (!call->config || call->config == Py_None)
		return true;
	if (!(work->wanted = malloc((work->count + 1) * sizeof(*work->wanted))))
		return PyErr_NoMemory() != NULL;
	if (!py_config_sizes(call, work->count, work->wanted))
		return false;
	for (size_t i = 0; hints && i < work->count; i++)
		work->segments[i].decoded_size = (size_t)work->wanted[i];
	return true;
}

/* ---- running ---------------------------------------------------------------------------- */

static bool raise_work(const py_call *call, const py_work *work)
{
	if (!work->err.status || call->return_errors)
		return true;
	py_raise(call->codec->st, &work->err, call->batch ? work->failed : SIZE_MAX);
	return false;
}

/* The most bytes that an item can give; SIZE_MAX: nobody knows. */
static size_t item_cap(const py_call *call, const py_work *work, size_t i)
{
	const lade_item *item = &work->items[i];
	uint64_t size;

	if (call->encode)
		return py_codec_bound(call->codec, py_item_size(item, work->segments[i].size));
	if (work->results[i].status)
		return 0;
	size = work->sizes[i];
	if (size == LADE_SIZE_UNKNOWN)
		return call->range_size ? (size_t)call->range_size : SIZE_MAX;
	if (item->range_off > size)
		return 0;
	size -= item->range_off;
	if (call->range_size && call->range_size < size)
		size = call->range_size;
	return size > (uint64_t)PY_SSIZE_T_MAX ? (size_t)PY_SSIZE_T_MAX : (size_t)size;
}

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

/* Decodes to memory that the library finds, in work->place.  False: an exception. */
static bool go_new(const py_call *call, py_work *work)
{
	work->arrays = calloc(work->count + 1, sizeof(*work->arrays));
	if (!work->arrays)
		return PyErr_NoMemory() != NULL;
	work->err.status = LADE_OK;
	work->failed = SIZE_MAX;
	return py_work_run(work, call->encode) != LADE_E_CANCELLED;
}

/* The Array of a result that did not fail; where there is no memory, and failures are returned, it
 * has failed now.  NULL without an exception: it has no array. */
static py_array *take_new(const py_call *call, py_work *work, size_t i, lade_place place)
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

/* What keeps the results of go_new(): one Array, or a list. */
static PyObject *own_new(const py_call *call, py_work *work)
{
	bool stay = may_stay(call->codec->st, work->place);
	PyObject *list;
	lade_array *whole, *last = NULL;

	if (!call->batch && !call->return_errors)
		return (PyObject *)take_new(call, work, 0, work->place);
	list = PyList_New(0);
	for (size_t i = 0; list && i < work->count; i++) {
		py_array *array = NULL;
		whole = lade_array_whole(work->arrays[i]);
		if (!stay)
			array = take_new(call, work, i, work->place);
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

/* Whether the bytes of item 'i' can be a result, on 'out' if that is known; where failures are
 * returned an item that cannot has failed. */
static bool item_fits(const py_call *call, py_work *work, size_t i, const py_array *out)
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

/* What a call gives back, made of its arrays, which are given up. */
static PyObject *finish(const py_call *call, const py_work *work, PyObject *arrays)
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
	if (!item_fits(call, work, 0, NULL) || !py_array_flat(block, call->dtype, size))
		Py_CLEAR(block);
	return (PyObject *)block;
}

/* The result of sources that all lie on one device lies there, too. */
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
		size_t cap = item_cap(call, work, i);
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
		known += work->results[i].status || item_cap(call, work, i) != SIZE_MAX;
	return known;
}

static bool lacks_room(const py_work *work)
{
	for (size_t i = 0; i < work->count; i++)
		if (work->results[i].status == LADE_E_NOSPACE)
			return true;
	return false;
}

/* Without out=: one block for all, or memory that the library finds. */
static PyObject *into_new(const py_call *call, py_work *work)
{
	const py_codec *codec = call->codec;
	bool bare = !call->encode && codec->kind != PY_NATIVE;
	lade_place place = place_of(work);
	uintptr_t stream = place.kind ? codec->stream : 0;
	py_array *block = NULL;
	PyObject *owner = NULL, *out = NULL;
	py_batch *batch = NULL;
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
		if (!go_new(call, work) || !raise_work(call, work) ||
		    !(owner = own_new(call, work)))
			goto out;
		/* A format that tells no sizes is not asked again. */
		if (!known && !work->err.status)
			call->codec->untold = true;
	}
	if (!raise_work(call, work))
		goto out;
	if (!call->batch && !call->return_errors)
		return single(call, work, (py_array *)owner);
	owner = py_leave(codec->st, owner, codec->stream, codec->stream_object);
	if (owner && place.kind)
		stream = py_home(codec->st, place.device, stream, codec->stream_object);
	if (owner)
		batch = py_batch_pieces(codec->st, work->count, owner, place, call->dtype, stream);
	for (size_t i = 0; batch && i < work->count; i++) {
		if (!item_fits(call, work, i, NULL))
			Py_CLEAR(batch);
		else
			batch->pieces[i] =
				(py_piece){work->items[i].dst.data, work->results[i].size};
	}
	if (batch) {
		if (call->encode)
			compact(block, batch);
		out = finish(call, work, (PyObject *)batch);
	}
out:
	Py_XDECREF(owner);
	return out;
}

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
	    item_cap(call, work, i) != array->size ||
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
		cap = item_cap(call, work, i);
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
		                "out: encoded bytes want contiguous memory, this is strided");
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
	py_array *array = take_new(call, more, k, mem->array->place);
	bool ok = true;

	work->results[i] = more->results[k];
	if (array) {
		ok = py_array_swap(mem->array, array);
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
	ok = go_new(call, &more);
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
			if (call->batch)
				py_blame("out", i);
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
		return finish(call, work, on_outs(call, work, holds));
	batch = py_batch_pieces(st, work->count, table ? table->owner : NULL, place, call->dtype,
	                        call->codec->stream);
	for (size_t i = 0; batch && i < work->count; i++)
		batch->pieces[i] = (py_piece){work->items[i].dst.data, work->results[i].size};
	if (batch && !table && !(batch->owner = py_holds_capsule(holds)))
		Py_CLEAR(batch);
	return finish(call, work, (PyObject *)batch);
}

static PyObject *into_out(const py_call *call, py_work *work)
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
	    (mems && !grow(call, work, mems)) || !raise_work(call, work))
		goto out;
	for (size_t i = 0; !call->into && i < work->count; i++)
		if (!item_fits(call, work, i, mems ? mems[i].array : NULL))
			goto out;
	for (size_t i = 0; mems && holds.live && i < work->count; i++)
		unload(call, work, i, &mems[i]);
	if (!raise_work(call, work))
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

/* ---- the call --------------------------------------------------------------------------- */

static bool may_grow(py_state *st, PyObject *object)
{
	return Py_TYPE(object) == st->array_type && py_array_resizable((py_array *)object, 0);
}

/* Whether a destination is an Array of ours that may grow. */
static bool any_grows(const py_call *call)
{
	py_state *st = call->codec->st;

	if (call->encode || call->into || !call->out)
		return false;
	if (!call->batch)
		return may_grow(st, call->out);
	for (Py_ssize_t i = 0; PyTuple_Check(call->out) && i < PyTuple_Size(call->out); i++)
		if (may_grow(st, PyTuple_GetItem(call->out, i)))
			return true;
	return false;
}

/* Decoded sizes are wanted where the destination depends on them, or the data begins with them. */
static bool wants_sizes(const py_call *call)
{
	bool told = !call->codec->untold || (call->config && call->config != Py_None);

	return !call->encode &&
	       (call->codec->kind != PY_RAW || (told && (!call->out || call->grows)));
}

PyObject *py_call_run(py_call *call)
{
	py_holds holds = {0};
	int32_t device;
	PyObject *out = NULL, *rows = NULL; /* 'out' as a tuple or a batch */
	py_state *st = call->codec->st;
	py_plain plain = PY_NOT_PLAIN;
	py_work work;

	/* A list may change while the lock is let go of, and without one at any time. */
	if (call->batch && call->out && Py_TYPE(call->out) != st->batch_type) {
		call->out = rows = py_is_list(call->out)
		                           ? PySequence_Tuple(call->out)
		                           : py_batch_rows(st, call->out, call->codec->stream);
		if (!rows)
			return NULL;
	}
	call->grows = any_grows(call);
	memset(&work, 0, offsetof(py_work, one_item));
	work.items = &work.one_item;
	if (call->batch && py_is_list(call->source)) {
		if (!(holds.items = PySequence_Tuple(call->source)))
			goto out;
		plain = py_list_sources(call, &holds, &work);
	}
	if (plain == PY_PLAIN_FAILED || (!plain && !take_sources(call, &holds)))
		goto out;
	if (!plain && py_enqueue_fits(call, &holds, &device)) {
		out = py_enqueue(call, device, &holds);
		if (out || PyErr_Occurred())
			goto out;
	}
	if (!plain && (!wait_sources(call, &holds) || !fill_sources(call, &holds, &work)))
		goto out;
	if (!take_config(call, &work))
		goto out;
	if (wants_sizes(call)) {
		Py_BEGIN_ALLOW_THREADS
		py_work_sizes(&work);
		Py_END_ALLOW_THREADS
		/* Of a batch an earlier item may fail later, and the first one is to be named. */
		if (!call->batch && !raise_work(call, &work))
			goto out;
	}
	out = call->out ? into_out(call, &work) : into_new(call, &work);
out:
	py_work_reset(&work);
	py_holds_release(&holds);
	Py_XDECREF(rows);
	return py_leave(st, out, call->codec->stream, call->codec->stream_object);
}

bool py_call_size(py_codec *codec, PyObject *source, uint64_t *size, size_t *chunk_size)
{
	py_call call = {.codec = codec, .source = source, .dtype = PY_BYTES};
	py_holds holds = {0};
	py_work work;
	PyObject *array;
	bool ok = false;

	memset(&work, 0, offsetof(py_work, one_item));
	work.items = &work.one_item;
	if (take_sources(&call, &holds) && wait_sources(&call, &holds) &&
	    fill_sources(&call, &holds, &work)) {
		Py_BEGIN_ALLOW_THREADS
		py_work_sizes(&work);
		Py_END_ALLOW_THREADS
		*size = work.sizes[0];
		*chunk_size = work.frames && work.frames[0]
		                      ? lade_frame_get_info(work.frames[0])->chunk_size
		                      : codec->chunk_size;
		ok = raise_work(&call, &work);
	}
	py_work_reset(&work);
	py_holds_release(&holds);
	if (!ok || *size != LADE_SIZE_UNKNOWN)
		return ok;
	array = py_call_run(&call);
	if (array)
		*size = ((py_array *)array)->size;
	Py_XDECREF(array);
	return array != NULL;
}
