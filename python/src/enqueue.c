/*
 * enqueue.c: calls whose sources and destinations lie on one device: they enqueue their work on the
 * codec's stream and come back.  What became of it stays on the device until somebody asks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

#include <string.h>

/* |src| src_size| dst| dst_cap|, 'count' numbers each, as lade_arrays has them. */
typedef struct job {
	const py_call *call;
	int32_t device;
	uintptr_t home; /* where the results are: the codec's stream, or its home */
	size_t count;
	const py_holds *src; /* of single sources, or */
	py_batch *batch;     /* many of one block */
	uint64_t *table, one_table[4];
	py_results *results;
	uint64_t *wanted;      /* decoded sizes; NULL: not known */
	bool from_config;      /* a config had them */
	const uint64_t *sizes; /* src_size on the device, or NULL */
	py_holds out;          /* of a destination, or of a list's */
	py_batch *outs;        /* the destinations, or NULL */
	py_array *block;       /* made for all, or NULL */
} job;

enum { SRC, SRC_SIZE, DST, DST_CAP };

static uint64_t *column(const job *j, int which)
{
	return j->table + (size_t)which * j->count;
}

/* ---- sources ---------------------------------------------------------------------------- */

/* Whether the device does the codec's work. */
static bool able(py_codec *codec, bool encode, int32_t device)
{
	const lade_workload work = {.direction = encode ? LADE_ENCODE : LADE_DECODE, .largest = 1};

	int64_t known = codec->able[encode];

	if (known >> 1 != (int64_t)device + 1) {
		known = ((int64_t)device + 1) << 1;
		known |= lade_device_takes(codec->engine, codec->spec, &work, device, NULL) ==
		         LADE_OK;
		codec->able[encode] = known;
	}
	return known & 1;
}

bool py_enqueue_fits(const py_call *call, const py_holds *holds, int32_t *device)
{
	const py_codec *codec = call->codec;
	py_batch *batch = holds->mems ? NULL : (py_batch *)call->source;
	lade_place place;

	if (codec->kind != PY_RAW || call->into || call->return_errors || call->wait ||
	    call->range_off || call->range_size || codec->where == LADE_WHERE_HOST ||
	    !(batch ? batch->count : holds->count))
		return false;
	place = batch ? batch->place : holds->mems[0].place;
	for (size_t i = 0; i < holds->count; i++) {
		const py_mem *mem = &holds->mems[i];
		if (mem->place.kind != LADE_DEVICE || mem->place.device != place.device ||
		    !mem->array->contiguous)
			return false;
	}
	*device = place.device;
	return place.kind == LADE_DEVICE && able(call->codec, call->encode, place.device);
}

/* Addresses and sizes; where these are on the device yet, the most that they can be. */
static bool take_sources(job *j)
{
	uint64_t *src = column(j, SRC), *size = column(j, SRC_SIZE);
	py_batch *batch = j->batch;

	/* The codec's stream has followed those of the sources. */
	if (batch && batch->unsized && batch->stream == j->home && batch->result_step == 1)
		j->sizes = py_results_lend(batch->results, (size_t)batch->result);
	if (batch && !j->sizes && !py_batch_sized(batch))
		return false;
	for (size_t i = 0; j->batch && i < j->count; i++) {
		src[i] = (uintptr_t)j->batch->pieces[i].data;
		size[i] = j->batch->pieces[i].size;
	}
	for (size_t i = 0; !j->batch && i < j->count; i++) {
		py_array *array = j->src->mems[i].array;
		/* Sizes of several results do not lie together. */
		if (array->unsized && j->count == 1 && array->stream == j->home)
			j->sizes = py_results_lend(array->results, array->result);
		if (!j->sizes && !py_array_sized(array))
			return false;
		src[i] = (uintptr_t)array->data;
		size[i] = array->size;
	}
	return true;
}

/* ---- decoded sizes ---------------------------------------------------------------------- */

static bool new_wanted(job *j)
{
	j->wanted = malloc(j->count * sizeof(*j->wanted));
	return j->wanted || PyErr_NoMemory() != NULL;
}

/* Whether an array to encode has its config's size, or at least as much where only the device knows
 * how much that is. */
static bool fits_config(const job *j, size_t i, uint64_t want)
{
	size_t have = (size_t)column(j, SRC_SIZE)[i];
	lade_error err;

	if ((j->sizes && want < have) || py_config_fits(want, have, &err))
		return true;
	py_raise(j->call->codec->st, &err, j->call->batch ? i : SIZE_MAX);
	return false;
}

/* The sizes of a config. */
static bool take_config(job *j)
{
	bool encode = j->call->encode, ok;

	if (!j->call->config || j->call->config == Py_None)
		return true;
	ok = new_wanted(j) && py_config_sizes(j->call, j->count, j->wanted);
	for (size_t i = 0; ok && i < j->count; i++)
		ok = encode ? fits_config(j, i, j->wanted[i])
		            : j->wanted[i] <= (uint64_t)PY_SSIZE_T_MAX;
	j->from_config = !encode;
	if (encode) {
		free(j->wanted);
		j->wanted = NULL;
	}
	if (!ok && !PyErr_Occurred())
		PyErr_SetString(PyExc_ValueError, "the config's sizes are not possible");
	return ok;
}

/* The sizes as the data has them, which waits.  False: not all can be had so, or one cannot be,
 * and the waiting call says which. */
static bool read_sizes(job *j)
{
	const py_codec *codec = j->call->codec;
	py_results *r = py_results_new(codec->st, codec, j->device, j->count);
	lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
	                      .src = (const void *const *)(void *)column(j, SRC),
	                      .src_size = j->sizes ? j->sizes : column(j, SRC_SIZE),
	                      .count = j->count};
	lade_async_options options = {.struct_size = sizeof(options),
	                              .device = j->device,
	                              .stream = (lade_stream)codec->stream,
	                              .flags = LADE_ASYNC_HOST_TABLES};
	bool ok = false;

	if (!r || !new_wanted(j))
		goto out;
	if (j->sizes)
		options.flags |= LADE_ASYNC_DEVICE_SIZES;
	options.sizes = py_results_sizes(r);
	options.statuses = py_results_statuses(r);
	if (lade_decoded_sizes_arrays_async(codec->engine, codec->spec, &arrays, &options, NULL) ||
	    !py_results_wait(codec->st, r))
		goto out;
	ok = true;
	for (size_t i = 0; ok && i < j->count; i++)
		ok = py_results_size(r, i, (size_t *)&j->wanted[i]) &&
		     j->wanted[i] <= lade_spec_decoded_max(codec->spec, column(j, SRC_SIZE)[i]);
out:
	py_results_unref(r);
	return ok;
}

/* ---- destinations ----------------------------------------------------------------------- */

static bool follow(const job *j, uintptr_t other)
{
	const py_codec *codec = j->call->codec;

	return py_follow(codec->st, j->device, codec->stream, other);
}

/* The most bytes that item 'i' can give; SIZE_MAX: nobody knows, or it is too large. */
static size_t most(const job *j, size_t i)
{
	if (j->call->encode)
		return py_codec_bound(j->call->codec, column(j, SRC_SIZE)[i]);
	return j->wanted ? (size_t)j->wanted[i] : SIZE_MAX;
}

/* Aims an item at an array.  'fits' is false where the call must be done otherwise. */
static bool aim(job *j, size_t i, py_mem *mem, bool *fits)
{
	const py_codec *codec = j->call->codec;
	py_array *array = mem->array;
	size_t cap;

	if (!array || array->place.kind != LADE_DEVICE || array->place.device != j->device ||
	    !array->contiguous) {
		*fits = false;
		return true;
	}
	if (!follow(j, array->stream))
		return false;
	if (py_array_resizable(array, 1)) {
		cap = most(j, i);
		if (cap == SIZE_MAX) {
			*fits = false;
			return true;
		}
		py_array_on_stream(array, codec->stream, codec->stream_object);
		if (cap > array->cap && !py_array_grow(array, cap))
			return false;
		mem->data = array->data;
		mem->size = array->cap;
	}
	column(j, DST)[i] = (uintptr_t)mem->data;
	column(j, DST_CAP)[i] = mem->size;
	return true;
}

/* The array whose pieces or rows they are, or NULL. */
static py_array *whole_of(const py_batch *batch)
{
	PyObject *owner = batch->owner;

	return owner && Py_TYPE(owner) == batch->st->array_type ? (py_array *)owner : NULL;
}

static bool take_outs(job *j, bool *fits)
{
	py_batch *outs = j->outs;

	if (outs->place.kind != LADE_DEVICE || outs->place.device != j->device || outs->readonly ||
	    outs->count != j->count) {
		*fits = false; /* the waiting call says what is wrong */
		return true;
	}
	if (!py_batch_sized(outs) || !follow(j, outs->stream) ||
	    (whole_of(outs) && !follow(j, whole_of(outs)->stream)))
		return false;
	for (size_t i = 0; i < j->count; i++) {
		column(j, DST)[i] = (uintptr_t)outs->pieces[i].data;
		column(j, DST_CAP)[i] = outs->pieces[i].size;
	}
	return true;
}

static bool is_apart(const job *j)
{
	lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
	                      .src = (const void *const *)(void *)column(j, SRC),
	                      .src_size = column(j, SRC_SIZE),
	                      .dst = (void *const *)(void *)column(j, DST),
	                      .dst_cap = column(j, DST_CAP),
	                      .count = j->count};

	return py_arrays_apart(&arrays);
}

static bool take_out(job *j, bool *fits)
{
	const py_call *call = j->call;

	j->outs = py_table(call, call->out);
	if (j->outs)
		return take_outs(j, fits) && (!*fits || is_apart(j));
	if (!py_hold(call, call->out, true, &j->out))
		return false;
	*fits = j->out.count == j->count;
	for (size_t i = 0; *fits && i < j->count; i++) {
		if (!aim(j, i, &j->out.mems[i], fits)) {
			py_blame("out", call->batch ? i : PY_ALONE);
			return false;
		}
	}
	return !*fits || is_apart(j);
}

/* One block for all. */
static bool make_block(job *j)
{
	const py_codec *codec = j->call->codec;
	uint64_t *dst = column(j, DST), *cap = column(j, DST_CAP);
	size_t total = 0;

	for (size_t i = 0; i < j->count; i++) {
		size_t size = most(j, i);
		if (size > (size_t)PY_SSIZE_T_MAX / 2 || total > (size_t)PY_SSIZE_T_MAX / 2) {
			PyErr_Format(j->call->encode ? PyExc_ValueError : PyExc_MemoryError,
			             "item %zu: %zu bytes are too many", i,
			             (size_t)column(j, j->call->encode ? SRC_SIZE : DST_CAP)[i]);
			return false;
		}
		dst[i] = total;
		cap[i] = size;
		total += py_padded(size);
	}
	j->block = py_array_new(codec->st, j->count > 1 ? total : (size_t)cap[0],
	                        (lade_place){LADE_DEVICE, j->device}, codec->stream);
	if (!j->block)
		return false;
	py_array_on_stream(j->block, codec->stream, codec->stream_object);
	for (size_t i = 0; i < j->count; i++)
		dst[i] += (uintptr_t)j->block->data;
	return true;
}

static bool take_destinations(job *j, bool *fits)
{
	if (j->call->out)
		return take_out(j, fits);
	if (!j->call->encode && !j->wanted) {
		*fits = read_sizes(j);
		if (!*fits)
			return !PyErr_Occurred();
	}
	return make_block(j);
}

/* ---- enqueueing ------------------------------------------------------------------------- */

/* Results that sources still wait for, and sizes that are expected. */
static bool tie_results(job *j)
{
	py_state *st = j->call->codec->st;
	py_want want = PY_WANT_CONFIG_ROOM;

	for (size_t i = 0; i < j->count; i++) {
		py_array *array = j->batch ? NULL : j->src->mems[i].array;
		py_results *parent = j->batch ? j->batch->results : array->results;
		size_t item =
			j->batch
				? (size_t)(j->batch->result + (Py_ssize_t)i * j->batch->result_step)
				: array->result;
		if (!parent && j->batch)
			break;
		if (parent && !py_results_after(st, j->results, i, parent, item,
		                                j->call->batch ? i : SIZE_MAX))
			return false;
	}
	for (size_t i = 0; j->from_config && i < j->count; i++)
		if (column(j, DST_CAP)[i] < j->wanted[i])
			want = PY_WANT_CONFIG;
	py_results_want(j->results, j->wanted, j->from_config ? want : PY_WANT_DATA);
	j->wanted = NULL;
	return true;
}

static bool enqueue(job *j)
{
	const py_codec *codec = j->call->codec;
	const uint64_t *decoded = column(j, j->call->encode ? SRC_SIZE : DST_CAP);
	lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
	                      .src = (const void *const *)(void *)column(j, SRC),
	                      .src_size = j->sizes ? j->sizes : column(j, SRC_SIZE),
	                      .dst = (void *const *)(void *)column(j, DST),
	                      .dst_cap = column(j, DST_CAP),
	                      .count = j->count};
	lade_async_options options = {.struct_size = sizeof(options),
	                              .device = j->device,
	                              .stream = (lade_stream)codec->stream,
	                              .flags = LADE_ASYNC_HOST_TABLES,
	                              .sizes = py_results_sizes(j->results),
	                              .statuses = py_results_statuses(j->results)};
	lade_error err;
	lade_status status;

	if (j->sizes)
		options.flags |= LADE_ASYNC_DEVICE_SIZES;
	arrays.largest = 1; /* 0 would be: not known */
	for (size_t i = 0; i < j->count; i++) {
		arrays.total += decoded[i];
		arrays.largest = decoded[i] > arrays.largest ? decoded[i] : arrays.largest;
	}
	Py_BEGIN_ALLOW_THREADS status =
		(j->call->encode ? lade_encode_arrays_async : lade_decode_arrays_async)(
			codec->engine, codec->spec, &arrays, &options, &err);
	Py_END_ALLOW_THREADS if (status) py_raise(codec->st, &err, SIZE_MAX);
	return !status;
}

/*
 * Keeps all that the stream uses from now on; 'holds' and j->out move there.  Gives what keeps the
 * destinations: the block, the BatchArray, or a capsule of what j->out was.
 */
static PyObject *keep(job *j, py_holds *holds)
{
	const py_call *call = j->call;
	py_state *st = call->codec->st;
	PyObject *src = holds->mems ? py_holds_capsule(holds) : Py_NewRef(call->source);
	PyObject *dst = j->block  ? Py_NewRef(j->block)
	                : j->outs ? Py_NewRef(j->outs)
	                          : py_holds_capsule(&j->out);
	PyObject *objects = src && dst ? PyTuple_Pack(3, src, dst, call->codec) : NULL;

	if (objects) {
		py_keep(st, j->device, call->codec->stream, j->home, objects);
	} else {
		/* No memory for that: the work must be done before anything is let go. */
		Py_BEGIN_ALLOW_THREADS lade_stream_wait(j->device, (lade_stream)call->codec->stream,
		                                        NULL);
		Py_END_ALLOW_THREADS Py_CLEAR(dst);
	}
	py_results_on_stream(j->results, j->home);
	if (j->block)
		py_array_on_stream(j->block, j->home, call->codec->stream_object);
	Py_XDECREF(src);
	Py_XDECREF(objects);
	return dst;
}

/* ---- results ---------------------------------------------------------------------------- */

/* The array for a destination that was given. */
static py_array *on_out(job *j, size_t i, py_array *array, bool own)
{
	const py_call *call = j->call;
	const py_codec *codec = call->codec;
	py_array *part;

	py_array_on_stream(array, j->home, codec->stream_object);
	py_array_tie(array, j->results, i, own);
	array->batched = call->batch;
	if (own) {
		array->dtype = call->dtype;
		array->like_owner = false;
		return (py_array *)Py_NewRef(array);
	}
	part = py_array_part(codec->st, (PyObject *)array, array->data, array->size, array->place,
	                     call->dtype, false, j->home);
	if (!part)
		return NULL;
	py_array_on_stream(part, j->home, codec->stream_object);
	py_array_tie(part, j->results, i, true);
	part->batched = call->batch;
	part->like_owner = !call->typed && !call->encode;
	return part;
}

/* The destinations that a capsule holds, and whether one of them is the caller's own Array, whose
 * memory is its own, too. */
static const py_holds *held(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, "liblade.holds");
}

static bool is_own(const py_array *array, const PyObject *object)
{
	return (const PyObject *)array == object && py_array_resizable(array, 1);
}

/* Whether so many bytes are elements of the type that is asked for; ValueError. */
static bool fits_type(const py_call *call, size_t size, size_t i)
{
	if (size % call->dtype.size == 0)
		return true;
	PyErr_Format(PyExc_ValueError, "%zu bytes are no multiple of the element's %u", size,
	             (unsigned)call->dtype.size);
	if (call->batch)
		py_blame("item", i);
	return false;
}

static PyObject *one_result(job *j, PyObject *kept)
{
	py_array *block = j->block;
	size_t size = (size_t)column(j, DST_CAP)[0];

	if (!block) {
		py_array *array = held(kept)->one.array;
		return (PyObject *)on_out(j, 0, array, is_own(array, j->call->out));
	}
	if ((!j->call->encode && !fits_type(j->call, size, 0)) ||
	    !py_array_flat(block, j->call->dtype, size))
		return NULL;
	py_array_tie(block, j->results, 0, j->call->encode);
	return Py_NewRef(block);
}

/* Arrays on each destination of a list. */
static PyObject *listed(job *j, PyObject *kept)
{
	const py_holds *out = held(kept);
	PyObject *list = PyList_New((Py_ssize_t)j->count), *batch = NULL;

	for (size_t i = 0; list && i < j->count; i++) {
		py_array *array = out->mems[i].array, *one;
		one = on_out(j, i, array,
		             is_own(array, PyTuple_GetItem(out->items, (Py_ssize_t)i)));
		if (!one || PyList_SetItem(list, (Py_ssize_t)i, (PyObject *)one))
			Py_CLEAR(list);
	}
	if (list)
		batch = py_batch_arrays(j->call->codec->st, list, j->home);
	if (batch)
		((py_batch *)batch)->stream_object = Py_XNewRef(j->call->codec->stream_object);
	Py_XDECREF(list);
	return batch;
}

static PyObject *many_results(job *j)
{
	const py_call *call = j->call;
	const py_codec *codec = call->codec;
	PyObject *owner = j->block ? (PyObject *)j->block : j->outs->owner;
	lade_place place = {LADE_DEVICE, j->device};
	py_batch *batch =
		py_batch_pieces(codec->st, j->count, owner, place, call->dtype, j->home);
	bool known = j->block && !call->encode;

	for (size_t i = 0; batch && i < j->count; i++) {
		size_t size = (size_t)column(j, DST_CAP)[i];
		batch->pieces[i] = (py_piece){(char *)(uintptr_t)column(j, DST)[i], size};
		if (known && !fits_type(call, size, i))
			Py_CLEAR(batch);
	}
	if (!batch)
		return NULL;
	batch->stream_object = Py_XNewRef(codec->stream_object);
	py_batch_tie(batch, j->results, !known);
	if (j->outs) {
		/* Who reads the destinations themselves learns of failures, too. */
		j->outs->stream = j->home;
		PY_REPLACE(j->outs->stream_object, Py_XNewRef(codec->stream_object));
		py_batch_tie(j->outs, j->results, false);
		/* ... and who reads the array that they are parts of comes behind the work. */
		if (whole_of(j->outs))
			py_array_on_stream(whole_of(j->outs), j->home, codec->stream_object);
	}
	return (PyObject *)batch;
}

/* Destinations of a call that failed, which may have grown on its stream. */
static void send_home(const job *j)
{
	const py_codec *codec = j->call->codec;
	PyObject *exception = PyErr_GetRaisedException();

	for (size_t i = 0; i < j->out.count; i++) {
		py_array *array = j->out.mems[i].array;
		if (array && array->stream == codec->stream)
			py_array_leave(array, codec->stream, codec->stream_object);
	}
	PyErr_Clear();
	PyErr_SetRaisedException(exception);
}

PyObject *py_enqueue(const py_call *call, int32_t device, py_holds *holds)
{
	py_state *st = call->codec->st;
	job j = {.call = call, .device = device, .src = holds};
	PyObject *out = NULL, *kept = NULL;
	bool fits = true;

	py_kept_sweep(st);
	j.home = py_home(st, device, call->codec->stream, call->codec->stream_object);
	j.batch = holds->mems ? NULL : (py_batch *)call->source;
	j.count = j.batch ? j.batch->count : holds->count;
	j.table = j.one_table;
	if (j.count > 1 && !(j.table = malloc(4 * j.count * sizeof(*j.table))))
		return PyErr_NoMemory();
	if (!take_sources(&j) || !take_config(&j) || !take_destinations(&j, &fits) || !fits)
		goto out;
	j.results = py_results_new(st, call->codec, device, j.count);
	if (!j.results || !tie_results(&j) || !enqueue(&j))
		goto out;
	kept = keep(&j, holds);
	if (!kept)
		goto out;
	if (!call->batch)
		out = one_result(&j, kept);
	else
		out = j.block || j.outs ? many_results(&j) : listed(&j, kept);
out:
	if (j.table != j.one_table)
		free(j.table);
	free(j.wanted);
	if (j.home != call->codec->stream)
		send_home(&j);
	Py_XDECREF(kept);
	Py_XDECREF(j.block);
	py_holds_release(&j.out);
	py_results_unref(j.results);
	return out;
}
