/*
 * batch.c: liblade.BatchArray, many arrays in one object: pieces of one block, or a list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

py_batch *py_batch_pieces(py_state *st, size_t count, PyObject *owner, lade_place place,
                          py_dtype dtype, uintptr_t stream)
{
	py_batch *batch = (py_batch *)PyType_GenericAlloc(st->batch_type, 0);

	if (!batch)
		return NULL;
	batch->st = st;
	batch->place = place;
	batch->dtype = dtype;
	batch->stream = stream;
	batch->owner = Py_XNewRef(owner);
	batch->pieces = PyMem_Calloc(count + 1, sizeof(*batch->pieces));
	if (!batch->pieces) {
		PyErr_NoMemory();
		Py_DECREF(batch);
		return NULL;
	}
	batch->count = count;
	return batch;
}

static py_array *array_at(const py_batch *batch, size_t i)
{
	return (py_array *)PyList_GetItem(batch->arrays, (Py_ssize_t)i);
}

/* ---- results of enqueued work ----------------------------------------------------------- */

static size_t result_of(const py_batch *batch, size_t i)
{
	return (size_t)(batch->result + (Py_ssize_t)i * batch->result_step);
}

bool py_batch_wait(py_batch *batch)
{
	for (size_t i = 0; batch->arrays && i < batch->count; i++) {
		py_array *one = array_at(batch, i);
		if (one->results && (!py_results_wait(batch->st, one->results) ||
		                     !py_results_check(batch->st, one->results, one->result, i) ||
		                     !py_array_wait(one)))
			return false;
	}
	if (!batch->results || batch->arrays)
		return true;
	if (!py_results_wait(batch->st, batch->results))
		return false;
	for (size_t i = 0; batch->unsized && i < batch->count; i++)
		py_results_size(batch->results, result_of(batch, i), &batch->pieces[i].size);
	batch->unsized = false;
	for (size_t i = 0; i < batch->count; i++) {
		if (!py_results_check(batch->st, batch->results, result_of(batch, i), i))
			return false;
		if (batch->pieces[i].size % batch->dtype.size) {
			PyErr_Format(PyExc_ValueError,
			             "item %zu: %zu bytes are no multiple of the element's %u", i,
			             batch->pieces[i].size, (unsigned)batch->dtype.size);
			return false;
		}
	}
	return true;
}

bool py_batch_sized(py_batch *batch)
{
	return !batch->unsized || py_batch_wait(batch);
}

void py_batch_tie(py_batch *batch, py_results *results, bool unsized)
{
	py_results *old = batch->results;

	batch->results = py_results_ref(results);
	batch->result = 0;
	batch->result_step = 1;
	batch->unsized = unsized;
	py_results_unref(old);
}

/* ---- making ----------------------------------------------------------------------------- */

PyObject *py_batch_arrays(py_state *st, PyObject *sources, uintptr_t stream)
{
	PyObject *items = py_tuple(sources, "sources"), *arrays = NULL;
	Py_ssize_t count = items ? PyTuple_Size(items) : 0;
	py_batch *batch = NULL;

	if (items)
		arrays = PyList_New(count);
	for (Py_ssize_t i = 0; arrays && i < count; i++) {
		py_array *one = py_array_from(st, PyTuple_GetItem(items, i), stream);
		if (!one || PyList_SetItem(arrays, i, (PyObject *)one))
			Py_CLEAR(arrays);
	}
	if (arrays)
		batch = (py_batch *)PyType_GenericAlloc(st->batch_type, 0);
	if (batch) {
		batch->st = st;
		batch->stream = stream;
		batch->count = (size_t)count;
		batch->arrays = Py_NewRef(arrays);
		batch->dtype = count ? array_at(batch, 0)->dtype : PY_BYTES;
	}
	Py_XDECREF(items);
	Py_XDECREF(arrays);
	return (PyObject *)batch;
}

/* An offset or size table: a buffer of 4 or 8 byte integers, or a sequence of integers. */
typedef struct table {
	py_array *array;
	PyObject *fast;
	Py_ssize_t count;
	const char *name;
} table;

static bool table_open(py_state *st, PyObject *object, const char *name, table *out)
{
	out->fast = NULL;
	out->array = NULL;
	out->name = name;
	if (!py_is_list(object))
		out->array = py_array_from(st, object, 0);
	if (!out->array && PySequence_Check(object) && PyErr_ExceptionMatches(PyExc_TypeError))
		PyErr_Clear(); /* a range, or another sequence without memory */
	if (!out->array && !PyErr_Occurred()) {
		out->fast = PySequence_Tuple(object);
		out->count = out->fast ? PyTuple_Size(out->fast) : 0;
		return out->fast != NULL;
	}
	if (!out->array)
		return false;
	if (out->array->place.kind == LADE_DEVICE) {
		py_array *host = py_array_copy(out->array, LADE_PLACE_HOST, out->array->stream);
		PY_REPLACE(out->array, host);
		if (!host)
			return false;
	}
	if (out->array->ndim != 1 ||
	    (out->array->dtype.kind != 'i' && out->array->dtype.kind != 'u') ||
	    (out->array->dtype.size != 4 && out->array->dtype.size != 8) || out->array->dtype.big) {
		PyErr_Format(PyExc_TypeError,
		             "%s: one dimension of 4 or 8 byte integers is wanted, or a list",
		             name);
		return false;
	}
	out->count = out->array->shape[0];
	return true;
}

static inline bool table_get(const table *from, Py_ssize_t i, uint64_t *value)
{
	const char *p;
	int64_t number;

	if (from->fast) {
		PyObject *one = PyTuple_GetItem(from->fast, i);
		number = (int64_t)PyLong_AsLongLong(one);
		if (number == -1 && PyErr_Occurred()) {
			py_no_integer(from->name, one);
			return false;
		}
	} else {
		p = from->array->data + i * from->array->strides[0];
		if (from->array->dtype.size == 8) {
			memcpy(&number, p, 8);
		} else if (from->array->dtype.kind == 'i') {
			int32_t half;
			memcpy(&half, p, 4);
			number = half;
		} else {
			uint32_t half;
			memcpy(&half, p, 4);
			number = half;
		}
	}
	*value = (uint64_t)number; /* negative ones are too large then */
	return true;
}

static void table_close(table *from)
{
	Py_XDECREF(from->array);
	Py_XDECREF(from->fast);
}

PyObject *py_batch_table(py_state *st, PyObject *buffer, PyObject *offsets, PyObject *sizes,
                         uintptr_t stream)
{
	py_array *array = py_array_from(st, buffer, stream);
	py_batch *batch = NULL;
	table off = {0}, size = {0};

	if (!array)
		return NULL;
	if (!array->contiguous) {
		PyErr_SetString(PyExc_ValueError,
		                "buffer: contiguous memory is wanted, this is strided");
		goto out;
	}
	/* How much of it counts is on the device yet: that waits. */
	if (!py_array_sized(array))
		goto out;
	if (array->place.kind == LADE_DEVICE && stream &&
	    !py_follow(st, array->place.device, stream, array->stream))
		goto out;
	if (!table_open(st, offsets, "offsets", &off) || !table_open(st, sizes, "sizes", &size))
		goto out;
	if (off.count != size.count) {
		PyErr_Format(PyExc_ValueError, "%zd offsets and %zd sizes", off.count, size.count);
		goto out;
	}
	batch = py_batch_pieces(st, (size_t)off.count, (PyObject *)array, array->place, PY_BYTES,
	                        stream ? stream : array->stream);
	if (!batch)
		goto out;
	batch->readonly = array->readonly;
	if (!stream)
		batch->stream_object = Py_XNewRef(array->stream_object);
	/* What the buffer failed with, all of its pieces did. */
	if (array->results) {
		py_batch_tie(batch, array->results, false);
		batch->result = (Py_ssize_t)array->result;
		batch->result_step = 0;
	}
	array->exposed = true; /* the pieces keep its address */
	for (Py_ssize_t i = 0; i < off.count; i++) {
		uint64_t at, bytes;
		if (!table_get(&off, i, &at) || !table_get(&size, i, &bytes)) {
			Py_CLEAR(batch);
			break;
		}
		if (at > array->size || bytes > array->size - at) {
			PyErr_Format(
				PyExc_ValueError,
				"item %zd: offset %lld and size %lld pass the buffer's %zu bytes",
				i, (long long)at, (long long)bytes, array->size);
			Py_CLEAR(batch);
			break;
		}
		batch->pieces[i] = (py_piece){array->data + at, (size_t)bytes};
	}
out:
	table_close(&off);
	table_close(&size);
	Py_DECREF(array);
	return (PyObject *)batch;
}

PyObject *py_batch_rows(py_state *st, PyObject *object, uintptr_t stream)
{
	py_array *array = py_array_from(st, object, stream);
	size_t row;
	py_batch *batch = NULL;
	PyObject *rows = NULL;

	if (!array && !PyErr_ExceptionMatches(PyExc_TypeError))
		return NULL;
	if (!array || array->ndim < 2) {
		PyErr_Format(PyExc_TypeError,
		             "out: a list or a BatchArray is wanted for many arrays, or an array "
		             "of rows; %R is none",
		             (PyObject *)Py_TYPE(object));
		goto out;
	}
	row = array->dtype.size;
	for (int i = array->ndim - 1; i > 0; i--) {
		if (array->shape[i] > 1 && array->strides[i] != (Py_ssize_t)row) {
			rows = PySequence_Tuple((PyObject *)array);
			goto out;
		}
		row *= (size_t)array->shape[i];
	}
	batch = py_batch_pieces(st, (size_t)array->shape[0], (PyObject *)array, array->place,
	                        array->dtype, array->stream);
	for (Py_ssize_t i = 0; batch && i < array->shape[0]; i++)
		batch->pieces[i] = (py_piece){array->data + i * array->strides[0], row};
	if (batch)
		batch->readonly = array->readonly;
	array->exposed = true; /* the pieces keep its address */
out:
	Py_XDECREF(array);
	return rows ? rows : (PyObject *)batch;
}

/* ---- the type --------------------------------------------------------------------------- */

static Py_ssize_t batch_length(PyObject *self)
{
	return (Py_ssize_t)((py_batch *)self)->count;
}

static PyObject *batch_item(PyObject *self, Py_ssize_t i)
{
	py_batch *batch = (py_batch *)self;
	py_array *one;
	py_piece *piece;

	if (i < 0 || (size_t)i >= batch->count) {
		PyErr_Format(PyExc_IndexError, "item %zd of %zu", i, batch->count);
		return NULL;
	}
	if (batch->arrays)
		return Py_NewRef(array_at(batch, (size_t)i));
	piece = &batch->pieces[i];
	one = py_array_part(batch->st, batch->owner, piece->data, piece->size, batch->place,
	                    batch->dtype, batch->readonly, batch->stream);
	if (one) {
		py_array_on_stream(one, batch->stream, batch->stream_object);
		py_array_tie(one, batch->results, result_of(batch, (size_t)i), batch->unsized);
		one->batched = true;
	}
	return (PyObject *)one;
}

/* From here on the batch is a list of its arrays.  The pieces stay, as calls may work on them. */
static bool be_list(py_batch *batch)
{
	PyObject *list = batch->arrays ? NULL : PySequence_List((PyObject *)batch), *none = NULL;

	if (!list)
		return batch->arrays != NULL;
	if (!atomic_compare_exchange_strong(&batch->arrays, &none, list))
		Py_DECREF(list);
	return true;
}

/* As of a list: item 'i' is another array from now on.  Other threads may look at the old one,
 * which stays as long as the batch. */
static int batch_assign(PyObject *self, PyObject *key, PyObject *value)
{
	py_batch *batch = (py_batch *)self;
	py_array *one;
	Py_ssize_t i;

	if (!value) {
		PyErr_SetString(PyExc_TypeError, "items of a BatchArray cannot be deleted");
		return -1;
	}
	if (PySlice_Check(key)) {
		PyErr_SetString(PyExc_TypeError,
		                "items of a BatchArray are assigned one at a time, not by a slice");
		return -1;
	}
	if (!py_index(key, &i))
		return -1;
	if (i < -(Py_ssize_t)batch->count || i >= (Py_ssize_t)batch->count) {
		PyErr_Format(PyExc_IndexError, "item %zd of %zu", i, batch->count);
		return -1;
	}
	i += i < 0 ? (Py_ssize_t)batch->count : 0;
	one = py_array_from(batch->st, value, batch->stream);
	if (!one || !be_list(batch) || (!batch->replaced && !(batch->replaced = PyList_New(0))) ||
	    PyList_Append(batch->replaced, (PyObject *)array_at(batch, (size_t)i))) {
		Py_XDECREF(one);
		return -1;
	}
	return PyList_SetItem(batch->arrays, i, (PyObject *)one);
}

static PyObject *batch_subscript(PyObject *self, PyObject *key)
{
	py_batch *batch = (py_batch *)self, *part;
	Py_ssize_t start, stop, step, count;

	if (!PySlice_Check(key)) {
		if (!py_index(key, &start))
			return NULL;
		return batch_item(self, start < 0 ? start + (Py_ssize_t)batch->count : start);
	}
	if (PySlice_Unpack(key, &start, &stop, &step) < 0)
		return NULL;
	count = PySlice_AdjustIndices((Py_ssize_t)batch->count, &start, &stop, step);
	if (batch->arrays) {
		PyObject *arrays = PyObject_GetItem(batch->arrays, key), *out = NULL;
		if (arrays)
			out = py_batch_arrays(batch->st, arrays, batch->stream);
		Py_XDECREF(arrays);
		return out;
	}
	part = py_batch_pieces(batch->st, (size_t)count, batch->owner, batch->place, batch->dtype,
	                       batch->stream);
	for (Py_ssize_t i = 0; part && i < count; i++)
		part->pieces[i] = batch->pieces[start + i * step];
	if (part) {
		part->readonly = batch->readonly;
		part->stream_object = Py_XNewRef(batch->stream_object);
		py_batch_tie(part, batch->results, batch->unsized);
		part->result = batch->result + start * batch->result_step;
		part->result_step = batch->result_step * step;
	}
	return (PyObject *)part;
}

static size_t size_of(const py_batch *batch, size_t i)
{
	return batch->arrays ? array_at(batch, i)->size
	                     : batch->pieces[i].size;
}

static PyObject *get_sizes(PyObject *self, void *unused)
{
	py_batch *batch = (py_batch *)self;
	PyObject *list;

	(void)unused;
	if (!py_batch_wait(batch))
		return NULL;
	list = PyList_New((Py_ssize_t)batch->count);
	for (size_t i = 0; list && i < batch->count; i++) {
		PyObject *size = PyLong_FromSize_t(size_of(batch, i));
		if (!size || PyList_SetItem(list, (Py_ssize_t)i, size))
			Py_CLEAR(list);
	}
	return list;
}

/* Pieces of one place go to one block in another by one call. */
static PyObject *move_pieces(py_batch *batch, lade_place place, uintptr_t stream)
{
	size_t total = 0, count = batch->count;
	lade_item *items = NULL;
	lade_segment *segments = NULL;
	lade_batch_options options = {.struct_size = sizeof(options)};
	py_batch *out = NULL;
	py_array *block;
	lade_error err;
	lade_status status;

	for (size_t i = 0; i < count; i++)
		total += py_padded(batch->pieces[i].size);
	block = py_array_new(batch->st, total, place, place.kind == LADE_DEVICE ? stream : 0);
	items = calloc(count + 1, sizeof(*items));
	segments = calloc(count + 1, sizeof(*segments));
	if (!items || !segments)
		PyErr_NoMemory();
	else if (block)
		out = py_batch_pieces(batch->st, count, (PyObject *)block, place, batch->dtype,
		                      block->stream);
	total = 0;
	for (size_t i = 0; out && i < count; i++) {
		py_piece *from = &batch->pieces[i];
		out->pieces[i] = (py_piece){block->data + total, from->size};
		segments[i] = (lade_segment){from->data, from->size, batch->place, from->size};
		items[i] = (lade_item){.src = &segments[i],
		                       .src_count = 1,
		                       .dst = {block->data + total, from->size, place}};
		total += py_padded(from->size);
	}
	if (out) {
		options.stream =
			(lade_stream)(batch->place.kind == LADE_DEVICE ? batch->stream : stream);
		Py_BEGIN_ALLOW_THREADS status = lade_decode_into(
			lade_engine_default(), batch->st->copy, items, count, NULL, &options, &err);
		Py_END_ALLOW_THREADS if (batch->place.kind == LADE_DEVICE) py_kept_sweep(batch->st);
		if (status) {
			py_raise(batch->st, &err, SIZE_MAX);
			Py_CLEAR(out);
		}
	}
	free(items);
	free(segments);
	Py_XDECREF(block);
	return (PyObject *)out;
}

/* Many arrays are on one stream: what the one before was on, and where it went. */
typedef struct last {
	uintptr_t was, home;
} last;

static bool leave_array(py_array *one, uintptr_t stream, PyObject *object, last *last)
{
	uintptr_t was = one->stream;

	if (was && was == last->was && !one->stream_object && one->place.kind == LADE_DEVICE) {
		one->stream = last->home;
		return true;
	}
	if (!py_array_leave(one, stream, object))
		return false;
	if (one->stream != was && one->place.kind == LADE_DEVICE)
		*last = (struct last){was, one->stream};
	return true;
}

static bool leave_batch(py_batch *batch, uintptr_t stream, PyObject *object)
{
	int32_t device = batch->place.device;
	last last = {0};

	if (batch->stream == stream && !batch->stream_object)
		batch->stream_object = Py_XNewRef(py_stream_keeper(object));
	if (batch->owner && Py_TYPE(batch->owner) == batch->st->array_type &&
	    !leave_array((py_array *)batch->owner, stream, object, &last))
		return false;
	for (size_t i = 0; batch->arrays && i < batch->count; i++) {
		py_array *one = array_at(batch, i);
		if (!leave_array(one, stream, object, &last))
			return false;
		if (one->place.kind == LADE_DEVICE)
			device = one->place.device;
	}
	if (batch->stream && batch->stream == last.was && !batch->stream_object) {
		batch->stream = last.home;
		return true;
	}
	return py_go_home(batch->st, device, &batch->stream, batch->stream_object);
}

PyObject *py_leave(py_state *st, PyObject *out, uintptr_t stream, PyObject *object)
{
	last last = {0};
	bool ok = true;

	if (out && Py_TYPE(out) == st->array_type)
		ok = py_array_leave((py_array *)out, stream, object);
	else if (out && Py_TYPE(out) == st->batch_type)
		ok = leave_batch((py_batch *)out, stream, object);
	for (Py_ssize_t i = 0; ok && out && PyList_Check(out) && i < PyList_Size(out); i++) {
		PyObject *one = PyList_GetItem(out, i);
		if (Py_TYPE(one) == st->array_type)
			ok = leave_array((py_array *)one, stream, object, &last);
	}
	if (!ok)
		Py_CLEAR(out);
	return out;
}

static PyObject *batch_move(py_batch *batch, bool device, uintptr_t stream, int32_t device_id)
{
	lade_place place = LADE_PLACE_HOST;
	PyObject *arrays;
	PyObject *out = NULL;

	if (!py_batch_wait(batch))
		return NULL;
	if (device)
		place = (lade_place){LADE_DEVICE, device_id == PY_DEVICE_ANY ? 0 : device_id};
	if (!batch->arrays)
		return move_pieces(batch, place, stream);
	arrays = PyTuple_New((Py_ssize_t)batch->count);
	for (size_t i = 0; arrays && i < batch->count; i++) {
		py_array *one = array_at(batch, i), *moved;
		if (lade_kind_is_host(one->place.kind) != device &&
		    (!device || device_id == PY_DEVICE_ANY || device_id == one->place.device))
			moved = (py_array *)Py_NewRef(one);
		else
			moved = py_array_copy(one, place, stream);
		if (!moved || PyTuple_SetItem(arrays, (Py_ssize_t)i, (PyObject *)moved))
			Py_CLEAR(arrays);
	}
	if (arrays)
		out = py_batch_arrays(batch->st, arrays, stream);
	Py_XDECREF(arrays);
	return out;
}

/* Whether all arrays lie on the host, or on a device: on that one if it is not PY_DEVICE_ANY. */
static bool on(const py_batch *batch, bool device, int32_t id)
{
	size_t places = batch->arrays ? batch->count : 1;

	for (size_t i = 0; i < places; i++) {
		lade_place place = batch->arrays ? array_at(batch, i)->place : batch->place;
		if (lade_kind_is_host(place.kind) == device ||
		    (device && id != PY_DEVICE_ANY && id != place.device))
			return false;
	}
	return true;
}

static PyObject *batch_cpu(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (!py_batch_wait((py_batch *)self))
		return NULL;
	if (on((py_batch *)self, false, 0))
		return Py_NewRef(self);
	return batch_move((py_batch *)self, false, ((py_batch *)self)->stream, 0);
}

static PyObject *batch_cuda(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"synchronize", "cuda_stream", "device_id", NULL};
	py_batch *batch = (py_batch *)self, *host;
	PyObject *out;
	int synchronize = 1;
	int32_t device;
	PyObject *stream_object = NULL, *device_object = NULL;
	uintptr_t stream;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pOO:cuda", names, &synchronize,
	                                 &stream_object, &device_object) ||
	    !py_stream_arg(stream_object, &stream) ||
	    !py_device_arg(batch->st, device_object, &device))
		return NULL;
	if (on(batch, true, device))
		return Py_NewRef(self);
	if (batch->arrays || batch->place.kind != LADE_DEVICE)
		return py_leave(batch->st, batch_move(batch, true, stream, device), stream,
		                stream_object);
	/* A stream is one device's: from one to another by way of the host. */
	host = (py_batch *)batch_move(batch, false, batch->stream, 0);
	out = host ? batch_move(host, true, stream, device) : NULL;
	Py_XDECREF(host);
	return py_leave(batch->st, out, stream, stream_object);
}

static PyObject *batch_synchronize(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (!py_batch_wait((py_batch *)self))
		return NULL;
	py_kept_sweep(((py_batch *)self)->st);
	Py_RETURN_NONE;
}

static PyObject *batch_repr(PyObject *self)
{
	py_batch *batch = (py_batch *)self;
	bool pending = batch->results && !py_results_fetched(batch->results);
	size_t total = 0;

	for (size_t i = 0; i < batch->count; i++)
		total += size_of(batch, i);
	return PyUnicode_FromFormat(
		"<liblade.BatchArray of %zu arrays on %s, %s%zu bytes%s%s>", batch->count,
		batch->arrays ? (on(batch, false, 0) ? "host"
	                         : on(batch, true, PY_DEVICE_ANY) ? "device"
	                                           : "several places")
			      : lade_kind_name(batch->place.kind),
		batch->unsized ? "at most " : "", total, batch->readonly ? ", read-only" : "",
		pending ? ", not waited for" : "");
}

static PyObject *batch_reduce(PyObject *self, PyObject *unused)
{
	PyObject *items = PySequence_List(self);

	(void)unused;
	return items ? py_reduce("as_arrays", Py_BuildValue("(N)", items)) : NULL;
}

static int batch_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(((py_batch *)self)->owner);
	Py_VISIT((PyObject *)((py_batch *)self)->arrays);
	Py_VISIT(((py_batch *)self)->replaced);
	Py_VISIT(((py_batch *)self)->stream_object);
	Py_VISIT(Py_TYPE(self));
	return 0;
}

static int batch_clear(PyObject *self)
{
	py_batch *batch = (py_batch *)self;

	batch->count = 0;
	Py_CLEAR(batch->owner);
	Py_XDECREF(atomic_exchange(&batch->arrays, NULL));
	Py_CLEAR(batch->replaced);
	return 0;
}

static void batch_dealloc(PyObject *self)
{
	PyObject_GC_UnTrack(self);
	if (((py_batch *)self)->weakrefs)
		PyObject_ClearWeakRefs(self);
	batch_clear(self);
	PyMem_Free(((py_batch *)self)->pieces);
	py_results_unref(((py_batch *)self)->results);
	Py_XDECREF(((py_batch *)self)->stream_object);
	py_free(self);
}

static PyGetSetDef getset[] = {
	{"buffer_sizes", get_sizes, NULL, "Bytes of each array.", NULL},
	{0},
};

static PyMethodDef methods[] = {
	{"cpu", batch_cpu, METH_NOARGS,
         "cpu($self, /)\n--\n\nThe arrays on the host: itself, or copies."},
	{"synchronize", batch_synchronize, METH_NOARGS,
         "synchronize($self, /)\n--\n\n"
         "Waits for the work that writes the arrays; raises the first failure, each time."},
	{"cuda", (PyCFunction)(void (*)(void))batch_cuda, METH_VARARGS | METH_KEYWORDS,
         "cuda($self, /, synchronize=True, cuda_stream=0, device_id=None)\n--\n\n"
         "The arrays on a device: itself, or copies.  device_id: which; None: any, or device 0.\n"
         "Raises DeviceError where there is none."},
	{"__reduce__", batch_reduce, METH_NOARGS, NULL},
	{0},
};

static PyMemberDef members[] = {
	{"__weaklistoffset__", Py_T_PYSSIZET, offsetof(py_batch, weakrefs), Py_READONLY, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "Many arrays in one object, as encode(), decode() and as_arrays() give them."},
	{Py_tp_dealloc, batch_dealloc},
	{Py_tp_traverse, batch_traverse},
	{Py_tp_clear, batch_clear},
	{Py_tp_repr, batch_repr},
	{Py_tp_iter, PySeqIter_New},
	{Py_tp_getset, getset},
	{Py_tp_methods, methods},
	{Py_tp_members, members},
	{Py_sq_length, batch_length},
	{Py_sq_item, batch_item},
	{Py_mp_ass_subscript, batch_assign},
	{Py_mp_length, batch_length},
	{Py_mp_subscript, batch_subscript},
	{0, NULL},
};

PyType_Spec py_batch_spec = {
	.name = "liblade.BatchArray",
	.basicsize = sizeof(py_batch),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
	         Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slots,
};
