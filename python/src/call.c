/*
 * call.c: one call of encode or decode: its sources, and what comes before its result.
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

/* A config's sizes: those of the arrays, or hints to formats that do not store their own. */
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

bool py_call_raise(const py_call *call, const py_work *work)
{
	if (!work->err.status || call->return_errors)
		return true;
	py_raise(call->codec->st, &work->err, call->batch ? work->failed : SIZE_MAX);
	return false;
}

size_t py_call_cap(const py_call *call, const py_work *work, size_t i)
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
	bool known = !call->codec->no_sizes || (call->config && call->config != Py_None);

	return !call->encode &&
	       (call->codec->kind != PY_RAW || (known && (!call->out || call->grows)));
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
		if (!call->batch && !py_call_raise(call, &work))
			goto out;
	}
	out = call->out ? py_into_out(call, &work) : py_into_new(call, &work);
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
		ok = py_call_raise(&call, &work);
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
