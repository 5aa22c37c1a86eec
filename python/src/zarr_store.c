/*
 * zarr_store.c: stores of the library, and stores whose functions are Python's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr_py.h"

#include <string.h>

/* ---- Python called by the library's threads ------------------------------------------------- */

py_home_of py_home_now(const py_state *st)
{
	return (py_home_of){st->main_interpreter, PyInterpreterState_Get()};
}

bool py_enter(const py_home_of *home, py_entered *in)
{
	*in = (py_entered){.own = NULL};
	if (home->main) {
		in->gil = PyGILState_Ensure();
		return true;
	}
	in->own = PyThreadState_New(home->interpreter);
	if (in->own)
		PyEval_RestoreThread(in->own);
	return in->own != NULL;
}

void py_exit(const py_entered *in)
{
	if (!in->own) {
		PyGILState_Release(in->gil);
		return;
	}
	PyThreadState_Clear(in->own);
	PyEval_SaveThread();
	PyThreadState_Delete(in->own);
}

static lade_status no_state(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a thread's state");
}

lade_status py_as_error(lade_status status, const char *what, const char *key, lade_error *err)
{
	PyObject *raised = PyErr_GetRaisedException();
	PyObject *text = raised ? PyUnicode_FromFormat("%R", raised) : NULL;
	const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;

	lade_fail(err, status, LADE_NO_OFFSET, "%s%s%s: %s", what, key ? " of key " : "",
	          key ? key : "", utf8 ? utf8 : "an exception");
	PyErr_Clear();
	Py_XDECREF(text);
	Py_XDECREF(raised);
	return status;
}

/* ---- stores of Python's --------------------------------------------------------------------- */

/* Functions of Python's; each but one of the first two may be None. */
typedef struct own {
	py_home_of home;
	PyObject *type; /* keeps the module alive */
	/* get(key): the value, or None.  fetch(list of (key, kind, off, size)): for each
	 * (bytes, size of the value), None, or an exception. */
	PyObject *get, *fetch;
	/* put(key, bytes or None, absent): False: nothing was done, since a value is there, or none
	 * to delete. */
	PyObject *put;
	PyObject *list; /* list(prefix, level): a list of keys, in order */
} own;

/* Bytes that are copied with the interpreter's lock. */
#define SMALL ((size_t)64 << 10)

/* Copies what a range means of 'data', whose byte 0 is byte 'base' of a value of 'whole' bytes. */
static lade_status put_range(lade_reading *reading, size_t i, const Py_buffer *view, uint64_t base,
                             uint64_t whole, lade_error *err)
{
	lade_range *range = lade_reading_range(reading, i);
	lade_cspan piece;
	lade_status status;
	uint64_t off;
	size_t size;

	range->object_size = whole;
	status = lade_range_place(range, whole, &off, &size, err);
	range->size = 0;
	if (status || !size) /* without bytes the size alone is wanted */
		return status;
	if (off < base || off - base > (uint64_t)view->len ||
	    size > (uint64_t)view->len - (off - base))
		return lade_fail(err, LADE_E_TRUNCATED, LADE_NO_OFFSET,
		                 "the store gave %zd bytes, want %zu", view->len, size);
	piece = lade_host_cspan((const char *)view->buf + (off - base), size);
	if (size <= SMALL) {
		status = lade_reading_put(reading, i, 0, piece, err);
	} else {
		Py_BEGIN_ALLOW_THREADS
		status = lade_reading_put(reading, i, 0, piece, err);
		Py_END_ALLOW_THREADS
	}
	range->size = status ? 0 : size;
	return status;
}

/* A value that get() gave. */
static lade_status give_value(lade_reading *reading, size_t i, PyObject *value, lade_error *err)
{
	const char *key = lade_reading_range(reading, i)->key;
	lade_status status;
	Py_buffer view;

	if (value == Py_None)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "there is no such key");
	if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE))
		return py_as_error(LADE_E_IO, "the value", key, err);
	status = put_range(reading, i, &view, 0, (uint64_t)view.len, err);
	PyBuffer_Release(&view);
	return status;
}

/* What fetch() gave for a range: (bytes, size of the value). */
static lade_status give_part(lade_reading *reading, size_t i, PyObject *part, lade_error *err)
{
	lade_range *range = lade_reading_range(reading, i);
	unsigned long long whole;
	lade_status status;
	Py_buffer view;

	if (part == Py_None)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "there is no such key");
	if (!PyTuple_Check(part) || PyTuple_Size(part) != 2)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "the store raised an exception");
	whole = PyLong_AsUnsignedLongLong(PyTuple_GetItem(part, 1));
	if (PyErr_Occurred() || PyObject_GetBuffer(PyTuple_GetItem(part, 0), &view, PyBUF_SIMPLE))
		return py_as_error(LADE_E_IO, "the value", range->key, err);
	if (whole == LADE_SIZE_UNKNOWN && range->kind == LADE_RANGE_AT) {
		/* Only the bytes that were asked for are known. */
		status = put_range(reading, i, &view, range->off,
		                   range->off + (uint64_t)view.len, err);
		range->object_size = LADE_SIZE_UNKNOWN;
	} else {
		uint64_t have = (uint64_t)view.len, base = range->off;
		bool unknown = whole == LADE_SIZE_UNKNOWN;
		if (unknown)
			whole = range->kind == LADE_RANGE_LAST ? have : range->off + have;
		if (range->kind == LADE_RANGE_LAST)
			base = whole < have ? 0 : whole - have;
		status = put_range(reading, i, &view, base, whole, err);
		if (unknown && range->kind == LADE_RANGE_LAST)
			range->object_size = LADE_SIZE_UNKNOWN;
	}
	PyBuffer_Release(&view);
	return status;
}

static PyObject *requests(lade_reading *reading, size_t count)
{
	PyObject *list = PyList_New((Py_ssize_t)count);

	for (size_t i = 0; list && i < count; i++) {
		const lade_range *range = lade_reading_range(reading, i);
		PyObject *one = Py_BuildValue("(siKn)", range->key, (int)range->kind,
		                              (unsigned long long)range->off,
		                              (Py_ssize_t)range->dst.size);
		if (!one || PyList_SetItem(list, (Py_ssize_t)i, one))
			Py_CLEAR(list);
	}
	return list;
}

/* All ranges at once. */
static void own_fetch(own *o, lade_reading *reading, size_t count)
{
	PyObject *list = requests(reading, count), *parts = NULL;
	lade_error err = {.status = LADE_E_NOMEM, .offset = LADE_NO_OFFSET};

	if (list)
		parts = PyObject_CallFunctionObjArgs(o->fetch, list, NULL);
	if (parts && (!PyList_Check(parts) || PyList_Size(parts) != (Py_ssize_t)count)) {
		PyErr_Format(PyExc_TypeError, "fetch() gave no list of %zu", count);
		Py_CLEAR(parts);
	}
	if (!parts)
		py_as_error(LADE_E_IO, "the store", NULL, &err);
	for (size_t i = 0; i < count; i++) {
		lade_status status = err.status;
		lade_error one = err;
		if (parts) {
			PyObject *part = PyList_GetItem(parts, (Py_ssize_t)i);
			if (PyExceptionInstance_Check(part)) {
				PyErr_SetRaisedException(Py_NewRef(part));
				status = py_as_error(LADE_E_IO, "the store",
				                     lade_reading_range(reading, i)->key,
				                     &one);
			} else {
				status = give_part(reading, i, part, &one);
			}
		}
		lade_reading_done(reading, i, status, &one);
	}
	Py_XDECREF(list);
	Py_XDECREF(parts);
}

static void own_read(void *ctx, lade_reading *reading, size_t count)
{
	own *o = ctx;
	lade_error err;
	py_entered in;

	if (!py_enter(&o->home, &in)) {
		lade_status status = no_state(&err);
		for (size_t i = 0; i < count; i++)
			lade_reading_done(reading, i, status, &err);
		return;
	}
	if (o->fetch != Py_None) {
		own_fetch(o, reading, count);
		py_exit(&in);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const char *key = lade_reading_range(reading, i)->key;
		PyObject *value = PyObject_CallFunction(o->get, "s", key);
		lade_status status = value ? give_value(reading, i, value, &err)
		                           : py_as_error(LADE_E_IO, "the store", key, &err);
		Py_XDECREF(value);
		lade_reading_done(reading, i, status, &err);
	}
	py_exit(&in);
}

static lade_status own_write(void *ctx, lade_write *write, const lade_io_options *options,
                             lade_error *err)
{
	own *o = ctx;
	bool deletes = write->kind == LADE_DELETE_IF_VERSION;
	bool absent = write->kind == LADE_WRITE_IF_ABSENT;
	lade_status status = LADE_OK;
	PyObject *data, *done = NULL;
	py_entered in;

	(void)options;
	if (write->want || (write->kind == LADE_WRITE_IF_VERSION))
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "this store has no versions");
	if (!py_enter(&o->home, &in))
		return no_state(err);
	data = deletes ? Py_NewRef(Py_None)
	               : PyBytes_FromStringAndSize(write->src.data,
	                                           (Py_ssize_t)write->src.size);
	if (data)
		done = PyObject_CallFunction(o->put, "sOO", write->key, data,
		                             absent ? Py_True : Py_False);
	if (!done)
		status = py_as_error(LADE_E_IO, "the store", write->key, err);
	else if (done == Py_False)
		status = lade_fail(err, deletes ? LADE_E_NOT_FOUND : LADE_E_CHANGED,
		                   LADE_NO_OFFSET, "key '%s' %s", write->key,
		                   deletes ? "does not exist" : "exists");
	Py_XDECREF(done);
	Py_XDECREF(data);
	py_exit(&in);
	return status;
}

static lade_status own_list(void *ctx, const lade_store_listing *listing, lade_error *err)
{
	own *o = ctx;
	lade_status status = LADE_OK;
	PyObject *keys;
	py_entered in;
	Py_ssize_t count;

	if (!py_enter(&o->home, &in))
		return no_state(err);
	keys = PyObject_CallFunction(o->list, "sO", listing->prefix ? listing->prefix : "",
	                             listing->level ? Py_True : Py_False);
	count = keys ? PyList_Size(keys) : -1;
	if (count < 0)
		status = py_as_error(LADE_E_IO, "the store's list", NULL, err);
	for (Py_ssize_t i = 0; !status && i < count; i++) {
		PyObject *key = PyList_GetItem(keys, i);
		lade_store_entry entry = {sizeof(entry), PyUnicode_AsUTF8AndSize(key, NULL),
		                          LADE_SIZE_UNKNOWN};
		if (!entry.key) {
			status = py_as_error(LADE_E_IO, "the store's list", NULL, err);
			break;
		}
		Py_BEGIN_ALLOW_THREADS
		status = listing->visit(listing->ctx, &entry);
		Py_END_ALLOW_THREADS
	}
	Py_XDECREF(keys);
	py_exit(&in);
	return status;
}

static void own_close(void *ctx)
{
	own *o = ctx;
	py_entered in;

	if (py_enter(&o->home, &in)) {
		PyObject *type = o->type;
		Py_DECREF(o->get);
		Py_DECREF(o->fetch);
		Py_DECREF(o->put);
		Py_DECREF(o->list);
		Py_DECREF(type);
		py_exit(&in);
	}
	free(o);
}

/* ---- making stores -------------------------------------------------------------------------- */

static PyObject *wrap(PyTypeObject *type, lade_store *store)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	py_store *self = (py_store *)(void *)alloc(type, 0);

	if (self) {
		self->st = PyType_GetModuleState(type);
		self->store = store;
	} else {
		lade_store_unref(store);
	}
	return (PyObject *)self;
}

static PyObject *finish(PyObject *cls, lade_status status, lade_store *store, const lade_error *err)
{
	if (!status)
		return wrap((PyTypeObject *)cls, store);
	py_raise(PyType_GetModuleState((PyTypeObject *)cls), err, SIZE_MAX);
	return NULL;
}

static PyObject *store_directory(PyObject *cls, PyObject *args)
{
	lade_directory_options options = {.struct_size = sizeof(options)};
	lade_store *store = NULL;
	unsigned long long flags;
	lade_status status;
	const char *path;
	lade_error err;

	if (!PyArg_ParseTuple(args, "sK", &path, &flags))
		return NULL;
	options.flags = flags;
	Py_BEGIN_ALLOW_THREADS
	status = lade_store_directory_open(path, &options, &store, &err);
	Py_END_ALLOW_THREADS
	return finish(cls, status, store, &err);
}

static PyObject *store_memory(PyObject *cls, PyObject *args)
{
	int kind = LADE_HOST, device = 0;
	lade_store *store = NULL;
	lade_status status;
	lade_error err;

	if (!PyArg_ParseTuple(args, "|ii", &kind, &device))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	status = lade_store_memory_new((lade_place){(lade_kind)kind, device}, NULL, &store, &err);
	Py_END_ALLOW_THREADS
	return finish(cls, status, store, &err);
}

/* A zip file to read, or with a level a new one to write. */
static PyObject *store_zip(PyObject *cls, PyObject *args)
{
	lade_zip_write_options options = {.struct_size = sizeof(options)};
	lade_store *store = NULL;
	lade_source source = {0};
	lade_status status;
	const char *path;
	lade_error err;
	int level = -1;

	if (!PyArg_ParseTuple(args, "s|i", &path, &level))
		return NULL;
	options.level = level;
	Py_BEGIN_ALLOW_THREADS
	if (level >= 0) {
		status = lade_store_zip_create(path, &options, &store, &err);
	} else {
		status = lade_source_file_open(path, NULL, &source, &err);
		if (!status) {
			status = lade_store_zip_open(source, NULL, &store, &err);
			if (status)
				lade_source_close(source);
		}
	}
	Py_END_ALLOW_THREADS
	return finish(cls, status, store, &err);
}

static PyObject *store_http(PyObject *cls, PyObject *args)
{
	lade_http_options options = {.struct_size = sizeof(options)};
	const char *url, *ca_file, *headers[64];
	lade_store *store = NULL;
	PyObject *lines;
	lade_status status;
	lade_error err;
	unsigned parallel;

	if (!PyArg_ParseTuple(args, "sO!Iz", &url, &PyTuple_Type, &lines, &parallel, &ca_file))
		return NULL;
	options.parallel = parallel;
	options.ca_file = ca_file;
	options.headers = headers;
	if (PyTuple_Size(lines) > 64) {
		PyErr_Format(PyExc_ValueError, "%zd headers, at most 64 are possible",
		             PyTuple_Size(lines));
		return NULL;
	}
	for (; options.header_count < (size_t)PyTuple_Size(lines); options.header_count++) {
		PyObject *line = PyTuple_GetItem(lines, (Py_ssize_t)options.header_count);
		headers[options.header_count] = PyUnicode_AsUTF8AndSize(line, NULL);
		if (!headers[options.header_count])
			return NULL;
	}
	Py_BEGIN_ALLOW_THREADS
	status = lade_store_http_open(url, &options, &store, &err);
	Py_END_ALLOW_THREADS
	return finish(cls, status, store, &err);
}

/* own(get, fetch, put, list, flags, parallel, name) */
static PyObject *store_own(PyObject *cls, PyObject *args)
{
	py_state *st = PyType_GetModuleState((PyTypeObject *)cls);
	lade_store_ops ops = {.struct_size = sizeof(ops), .read = own_read, .close = own_close};
	PyObject *get, *fetch, *put, *list;
	lade_store *store = NULL;
	lade_status status;
	const char *name;
	lade_error err;
	unsigned flags, parallel;
	own *o;

	if (!PyArg_ParseTuple(args, "OOOOIIs", &get, &fetch, &put, &list, &flags, &parallel,
	                      &name))
		return NULL;
	o = malloc(sizeof(*o));
	if (!o)
		return PyErr_NoMemory();
	*o = (own){py_home_now(st),    Py_NewRef(cls), Py_NewRef(get),
	           Py_NewRef(fetch), Py_NewRef(put), Py_NewRef(list)};
	ops.flags = flags | LADE_STORE_PARTS;
	ops.parallel = parallel;
	if (put != Py_None)
		ops.write = own_write;
	if (list != Py_None)
		ops.list = own_list;
	status = lade_store_new(&ops, o, name, &store, &err);
	if (status)
		own_close(o);
	return finish(cls, status, store, &err);
}

/* ---- methods -------------------------------------------------------------------------------- */

static PyObject *raise_of(PyObject *self, const lade_error *err)
{
	py_raise(((py_store *)(void *)self)->st, err, SIZE_MAX);
	return NULL;
}

/* The bytes of a value; None: there is none. */
static PyObject *store_read(PyObject *self, PyObject *args)
{
	lade_store *store = ((py_store *)(void *)self)->store;
	PyObject *out = NULL;
	lade_status status;
	const char *key;
	lade_error err;

	if (!PyArg_ParseTuple(args, "s", &key))
		return NULL;
	/* If the value changes between the two calls, they begin again. */
	for (int tries = 0;; tries++) {
		lade_range range = {.key = key, .kind = LADE_RANGE_REST};
		lade_object_version version = {0};
		uint64_t size = 0;
		Py_BEGIN_ALLOW_THREADS
		status = lade_store_look(store, key, &size, &version, &err);
		Py_END_ALLOW_THREADS
		if (status == LADE_E_NOT_FOUND)
			Py_RETURN_NONE;
		if (!status && size > (uint64_t)PY_SSIZE_T_MAX)
			status = lade_fail(&err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                   "key '%s' has no size that fits memory", key);
		if (status)
			return raise_of(self, &err);
		out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
		if (!out)
			return NULL;
		range.dst = lade_host_span(PyBytes_AsString(out), (size_t)size);
		range.want = version.size ? &version : NULL;
		Py_BEGIN_ALLOW_THREADS
		status = lade_store_read(store, &range, 1, NULL, NULL, &err);
		Py_END_ALLOW_THREADS
		if (!status && range.size == size)
			return out;
		Py_DECREF(out);
		if (status == LADE_E_NOT_FOUND)
			Py_RETURN_NONE;
		if (!status)
			status = lade_fail(&err, LADE_E_CHANGED, LADE_NO_OFFSET,
			                   "key '%s' has %zu bytes, had %llu", key, range.size,
			                   (unsigned long long)size);
		if (tries == 10 ||
		    (status != LADE_E_CHANGED && status != LADE_E_NOSPACE))
			return raise_of(self, &err);
	}
}

/* The size of a value; None: there is none. */
static PyObject *store_size(PyObject *self, PyObject *args)
{
	lade_store *store = ((py_store *)(void *)self)->store;
	uint64_t size = 0;
	lade_status status;
	const char *key;
	lade_error err;

	if (!PyArg_ParseTuple(args, "s", &key))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	status = lade_store_look(store, key, &size, NULL, &err);
	Py_END_ALLOW_THREADS
	if (status == LADE_E_NOT_FOUND)
		Py_RETURN_NONE;
	return status ? raise_of(self, &err) : PyLong_FromUnsignedLongLong(size);
}

/* Writes a value, or deletes it (None); False: if_absent, and it is there; or none to delete. */
static PyObject *store_write(PyObject *self, PyObject *args)
{
	lade_store *store = ((py_store *)(void *)self)->store;
	py_state *st = ((py_store *)(void *)self)->st;
	lade_write write = {0};
	PyObject *data;
	int if_absent = 0;
	lade_status status;
	lade_error err;
	py_mem mem = {0};

	if (!PyArg_ParseTuple(args, "sO|p", &write.key, &data, &if_absent))
		return NULL;
	write.kind = if_absent ? LADE_WRITE_IF_ABSENT : LADE_WRITE_ALWAYS;
	if (data == Py_None) {
		write.kind = LADE_DELETE_IF_VERSION;
	} else {
		if (!py_mem_read(st, data, &mem))
			return NULL;
		if (!py_mem_flatten(&mem)) {
			py_mem_release(&mem);
			return NULL;
		}
		write.src = (lade_cspan){mem.data, mem.size, mem.place};
	}
	Py_BEGIN_ALLOW_THREADS
	status = lade_store_write(store, &write, 1, NULL, NULL, &err);
	Py_END_ALLOW_THREADS
	if (data != Py_None)
		py_mem_release(&mem);
	if ((status == LADE_E_CHANGED && if_absent) ||
	    (status == LADE_E_NOT_FOUND && data == Py_None))
		Py_RETURN_FALSE;
	if (status)
		return raise_of(self, &err);
	Py_RETURN_TRUE;
}

/* What a listing found; filled without the interpreter. */
typedef struct found {
	char *text; /* keys, each with its 0 */
	size_t size, cap;
	uint64_t *sizes;
	size_t count, sizes_cap;
} found;

static lade_status visit(void *ctx, const lade_store_entry *entry)
{
	found *f = ctx;
	size_t length = strlen(entry->key) + 1;

	if (f->cap - f->size < length) {
		size_t cap = 2 * (f->cap + length);
		char *text = realloc(f->text, cap);
		if (!text)
			return LADE_E_NOMEM;
		f->text = text;
		f->cap = cap;
	}
	if (f->count == f->sizes_cap) {
		size_t cap = 2 * f->sizes_cap + 16;
		uint64_t *sizes = realloc(f->sizes, cap * sizeof(*sizes));
		if (!sizes)
			return LADE_E_NOMEM;
		f->sizes = sizes;
		f->sizes_cap = cap;
	}
	memcpy(f->text + f->size, entry->key, length);
	f->size += length;
	f->sizes[f->count++] = entry->size;
	return LADE_OK;
}

/* list(prefix, level, sizes): keys, or pairs with sizes */
static PyObject *store_list(PyObject *self, PyObject *args)
{
	lade_store_listing listing = {.struct_size = sizeof(listing), .visit = visit};
	int level = 0, sizes = 0;
	PyObject *out = NULL;
	found f = {0};
	lade_status status;
	lade_error err;
	py_wait wait;

	if (!PyArg_ParseTuple(args, "s|pp", &listing.prefix, &level, &sizes))
		return NULL;
	listing.level = level;
	listing.sizes = sizes;
	listing.ctx = &f;
	py_wait_begin(&wait, true);
	listing.cancel = wait.cancel;
	status = lade_store_list(((py_store *)(void *)self)->store, &listing, &err);
	if (py_wait_end(&wait)) {
		if (status)
			raise_of(self, &err);
		else
			out = PyList_New((Py_ssize_t)f.count);
	}
	const char *key = f.text;
	for (size_t i = 0; out && i < f.count; i++, key += strlen(key) + 1) {
		PyObject *one =
			!sizes ? PyUnicode_FromString(key)
			: f.sizes[i] == LADE_SIZE_UNKNOWN
				? Py_BuildValue("(sO)", key, Py_None)
				: Py_BuildValue("(sK)", key, (unsigned long long)f.sizes[i]);
		if (!one || PyList_SetItem(out, (Py_ssize_t)i, one))
			Py_CLEAR(out);
	}
	free(f.text);
	free(f.sizes);
	return out;
}

/* Writes the directory of a new zip file. */
static PyObject *store_finish(PyObject *self, PyObject *unused)
{
	lade_status status;
	lade_error err;

	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	status = lade_store_zip_finish(((py_store *)(void *)self)->store, NULL, &err);
	Py_END_ALLOW_THREADS
	if (status)
		return raise_of(self, &err);
	Py_RETURN_NONE;
}

static void store_dealloc(PyObject *self)
{
	lade_store *store = ((py_store *)(void *)self)->store;

	/* The last reference may close a connection, and calls functions of Python's. */
	Py_BEGIN_ALLOW_THREADS
	lade_store_unref(store);
	Py_END_ALLOW_THREADS
	py_free(self);
}

static PyMethodDef methods[] = {
	{"directory", store_directory, METH_VARARGS | METH_CLASS, NULL},
	{"memory", store_memory, METH_VARARGS | METH_CLASS, NULL},
	{"zip", store_zip, METH_VARARGS | METH_CLASS, NULL},
	{"http", store_http, METH_VARARGS | METH_CLASS, NULL},
	{"own", store_own, METH_VARARGS | METH_CLASS, NULL},
	{"read", store_read, METH_VARARGS, NULL},
	{"size", store_size, METH_VARARGS, NULL},
	{"write", store_write, METH_VARARGS, NULL},
	{"list", store_list, METH_VARARGS, NULL},
	{"finish", store_finish, METH_NOARGS, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_dealloc, store_dealloc},
	{Py_tp_methods, methods},
	{Py_tp_doc, "A store of the library."},
	{0, NULL},
};

PyType_Spec py_store_spec = {
	.name = "liblade._lade.ZarrStore",
	.basicsize = sizeof(py_store),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
	         Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
