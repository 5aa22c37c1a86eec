/*
 * share.c: connections to a broker of shared columns, and opened versions, as Arrow's capsules.
 * liblade/share.py makes the interface of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "arrow_abi.h"
#include "share_py.h"

#include <string.h>

#define SCHEMA "arrow_schema"
#define ARRAY "arrow_array"
#define DEVICE_ARRAY "arrow_device_array"
#define STREAM "arrow_array_stream"

typedef struct connection {
	PyObject_HEAD py_state *st;
	lade_share *share;
} connection;

typedef struct version {
	PyObject_HEAD py_state *st;
	lade_share_version *version;
} version;

static void schema_end(PyObject *capsule)
{
	struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, SCHEMA);

	if (schema->release)
		schema->release(schema);
	free(schema);
}

static void array_end(PyObject *capsule)
{
	struct ArrowArray *array = PyCapsule_GetPointer(capsule, ARRAY);

	if (array->release)
		array->release(array);
	free(array);
}

static void device_array_end(PyObject *capsule)
{
	struct ArrowDeviceArray *array = PyCapsule_GetPointer(capsule, DEVICE_ARRAY);

	if (array->array.release)
		array->array.release(&array->array);
	free(array);
}

static void stream_end(PyObject *capsule)
{
	struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, STREAM);

	if (stream->release)
		stream->release(stream);
	free(stream);
}

/* A capsule of zeroed memory, which is at '*out'. */
static PyObject *capsule_new(size_t size, const char *name, PyCapsule_Destructor end, void *out)
{
	void *memory = calloc(1, size);
	PyObject *capsule = memory ? PyCapsule_New(memory, name, end) : PyErr_NoMemory();

	if (!capsule)
		free(memory);
	memcpy(out, &memory, sizeof memory);
	return capsule;
}

/* ---- connections ------------------------------------------------------------------------ */

static PyObject *connection_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	py_state *st = PyType_GetModuleState(type);
	lade_share_options options = {.struct_size = sizeof options};
	unsigned timeout;
	connection *c;
	lade_status status;
	lade_error err;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "zI", &options.path, &timeout))
		return NULL;
	options.timeout_ms = timeout;
	c = (connection *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
	if (!c)
		return NULL;
	c->st = st;
	Py_BEGIN_ALLOW_THREADS status = lade_share_connect(&options, &c->share, &err);
	Py_END_ALLOW_THREADS if (status)
	{
		py_raise(st, &err, SIZE_MAX);
		Py_DECREF(c);
		return NULL;
	}
	return (PyObject *)c;
}

static void connection_dealloc(PyObject *self)
{
	connection *c = (connection *)self;
	PyTypeObject *type = Py_TYPE(self);

	lade_share_close(c->share);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static PyObject *published(py_state *st, lade_status status, const lade_share_published *out,
                           const lade_error *err)
{
	if (status) {
		py_raise(st, err, SIZE_MAX);
		return NULL;
	}
	return Py_BuildValue("(KKKNKK)", (unsigned long long)out->version,
	                     (unsigned long long)out->shared, (unsigned long long)out->copied,
	                     py_message(out->why), (unsigned long long)out->staged,
	                     (unsigned long long)out->leased);
}

/* publish(name, schema, (array, ...), copy, wait_ms): (version, shared, copied, why, staged,
 * leased).  All arrays are of the host, or all are capsules of the device interface. */
static PyObject *connection_publish(PyObject *self, PyObject *args)
{
	connection *c = (connection *)self;
	lade_share_table table = {.struct_size = sizeof table};
	lade_share_published out = {.struct_size = sizeof out};
	const void **arrays;
	PyObject *schema, *tuple;
	const char *name, *kind = ARRAY;
	lade_status status = LADE_OK;
	lade_error err;
	unsigned wait_ms;
	int copy;

	if (!PyArg_ParseTuple(args, "sOO!iI", &name, &schema, &PyTuple_Type, &tuple, &copy,
	                      &wait_ms))
		return NULL;
	table.wait_ms = wait_ms;
	table.schema = PyCapsule_GetPointer(schema, SCHEMA);
	if (!table.schema)
		return NULL;
	table.batch_count = (size_t)PyTuple_Size(tuple);
	arrays = calloc(table.batch_count + 1, sizeof *arrays);
	if (!arrays)
		return PyErr_NoMemory();
	if (table.batch_count && PyCapsule_IsValid(PyTuple_GetItem(tuple, 0), DEVICE_ARRAY))
		kind = DEVICE_ARRAY;
	for (size_t i = 0; i < table.batch_count; i++) {
		arrays[i] = PyCapsule_GetPointer(PyTuple_GetItem(tuple, (Py_ssize_t)i), kind);
		if (!arrays[i]) {
			free(arrays);
			return NULL;
		}
	}
	if (!strcmp(kind, ARRAY))
		table.batches = (const struct ArrowArray *const *)arrays;
	else
		table.device_batches = (const struct ArrowDeviceArray *const *)arrays;
	table.copy = (lade_share_copy)copy;
	Py_BEGIN_ALLOW_THREADS status = lade_share_publish(c->share, name, &table, &out, &err);
	Py_END_ALLOW_THREADS free(arrays);
	return published(c->st, status, &out, &err);
}

/* publish_tensor(name, Array on the host, copy, wait_ms): as publish() */
static PyObject *connection_publish_tensor(PyObject *self, PyObject *args)
{
	connection *c = (connection *)self;
	lade_share_tensor tensor = {.struct_size = sizeof tensor};
	lade_share_published out = {.struct_size = sizeof out};
	lade_status status;
	lade_error err;
	py_array *array;
	char dtype[24];
	const char *name;
	unsigned wait_ms;
	int copy;

	if (!PyArg_ParseTuple(args, "sO!iI", &name, c->st->array_type, &array, &copy, &wait_ms))
		return NULL;
	if (!lade_kind_is_host(array->place.kind) || !array->contiguous ||
	    array->ndim > LADE_SHARE_NDIM_MAX) {
		PyErr_Format(PyExc_ValueError,
		             "an array of %d dimensions is published from host memory in C's "
		             "order, with at most %d dimensions",
		             array->ndim, LADE_SHARE_NDIM_MAX);
		return NULL;
	}
	py_dtype_text(array->dtype, dtype);
	status = lade_dtype_parse(dtype, &tensor.dtype, &err);
	tensor.ndim = (unsigned)array->ndim;
	for (int i = 0; i < array->ndim; i++)
		tensor.shape[i] = (uint64_t)array->shape[i];
	tensor.data = array->data;
	tensor.copy = (lade_share_copy)copy;
	tensor.wait_ms = wait_ms;
	py_pin(array);
	Py_BEGIN_ALLOW_THREADS if (status == LADE_OK) status =
		lade_share_publish_tensor(c->share, name, &tensor, &out, &err);
	Py_END_ALLOW_THREADS py_unpin(array);
	return published(c->st, status, &out, &err);
}

/* read_stream(capsule): (schema, (array, ...)) */
static PyObject *connection_read_stream(PyObject *unused, PyObject *capsule)
{
	struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, STREAM);
	struct ArrowSchema *schema;
	struct ArrowArray *array;
	PyObject *list = NULL, *first, *one, *out = NULL;
	int rc;

	(void)unused;
	if (!stream)
		return NULL;
	if (!stream->release) {
		PyErr_SetString(PyExc_ValueError, "the stream was used before");
		return NULL;
	}
	first = capsule_new(sizeof *schema, SCHEMA, schema_end, &schema);
	rc = first ? stream->get_schema(stream, schema) : 0;
	list = first && !rc ? PyList_New(0) : NULL;
	while (list && !rc) {
		one = capsule_new(sizeof *array, ARRAY, array_end, &array);
		rc = one ? stream->get_next(stream, array) : 0;
		bool more = one && !rc && array->release;
		if (!one || (more && PyList_Append(list, one)))
			Py_CLEAR(list);
		Py_XDECREF(one);
		if (!more)
			break;
	}
	if (rc && !PyErr_Occurred()) {
		const char *text = stream->get_last_error(stream);
		PyErr_Format(PyExc_RuntimeError, "the stream failed: %s", text ? text : "");
	} else if (list) {
		PyObject *tuple = PyList_AsTuple(list);
		out = tuple ? Py_BuildValue("(ON)", first, tuple) : NULL;
	}
	Py_XDECREF(list);
	Py_XDECREF(first);
	return out;
}

static PyObject *connection_alloc(PyObject *self, PyObject *args)
{
	connection *c = (connection *)self;
	lade_array *memory;
	py_array *array;
	lade_error err;
	Py_ssize_t size;
	int device;

	if (!PyArg_ParseTuple(args, "ni", &size, &device))
		return NULL;
	lade_place place = device < 0 ? LADE_PLACE_HOST : (lade_place){LADE_DEVICE, device};
	if (size < 0) {
		PyErr_Format(PyExc_ValueError, "%zd bytes are not possible", size);
		return NULL;
	}
	if (lade_share_alloc_in(c->share, (size_t)size, place, &memory, &err)) {
		py_raise(c->st, &err, SIZE_MAX);
		return NULL;
	}
	array = py_array_own(c->st, memory);
	if (array)
		array->lent = false; /* it keeps this memory, whatever is written to it */
	return (PyObject *)array;
}

static PyObject *info_tuple(const lade_share_info *i)
{
	/* Names are bytes: those of others may be no UTF-8. */
	return Py_BuildValue("(NKKKKIIIINNiNI)", py_message(i->name),
	                     (unsigned long long)i->version, (unsigned long long)i->rows,
	                     (unsigned long long)i->bytes, (unsigned long long)i->time, i->columns,
	                     i->batches, i->uid, i->pid, PyBool_FromLong(i->on_device),
	                     PyBool_FromLong(i->copied), (int)i->device,
	                     PyBool_FromLong(i->leased), (unsigned)i->place);
}

typedef struct listing {
	PyObject *list;
	PyThreadState *thread;
} listing;

static lade_status visit(void *ctx, const lade_share_info *info)
{
	listing *l = ctx;
	PyObject *row;

	PyEval_RestoreThread(l->thread);
	row = info_tuple(info);
	bool ok = row && !PyList_Append(l->list, row);
	Py_XDECREF(row);
	l->thread = PyEval_SaveThread();
	return ok ? LADE_OK : LADE_E_NOMEM;
}

static PyObject *connection_list(PyObject *self, PyObject *args)
{
	connection *c = (connection *)self;
	listing l = {.list = NULL};
	lade_share_listing options = {.struct_size = sizeof options, .visit = visit, .ctx = &l};
	lade_status status;
	lade_error err;

	if (!PyArg_ParseTuple(args, "z", &options.prefix))
		return NULL;
	l.list = PyList_New(0);
	if (!l.list)
		return NULL;
	l.thread = PyEval_SaveThread();
	status = lade_share_list(c->share, &options, &err);
	PyEval_RestoreThread(l.thread);
	if (status == LADE_OK)
		return l.list;
	if (!PyErr_Occurred())
		py_raise(c->st, &err, SIZE_MAX);
	Py_DECREF(l.list);
	return NULL;
}

static PyObject *connection_remove(PyObject *self, PyObject *args)
{
	connection *c = (connection *)self;
	unsigned long long number;
	const char *name;
	lade_status status;
	lade_error err;

	if (!PyArg_ParseTuple(args, "sK", &name, &number))
		return NULL;
	Py_BEGIN_ALLOW_THREADS status = lade_share_remove(c->share, name, number, &err);
	Py_END_ALLOW_THREADS if (status)
	{
		py_raise(c->st, &err, SIZE_MAX);
		return NULL;
	}
	Py_RETURN_NONE;
}

/* wait(name, after, ms): the version; None after the time. */
static PyObject *connection_wait(PyObject *self, PyObject *args)
{
	connection *c = (connection *)self;
	unsigned long long after;
	unsigned ms;
	uint64_t number;
	const char *name;
	lade_status status;
	lade_error err;

	if (!PyArg_ParseTuple(args, "sKI", &name, &after, &ms))
		return NULL;
	Py_BEGIN_ALLOW_THREADS status = lade_share_wait(c->share, name, after, ms, &number, &err);
	Py_END_ALLOW_THREADS if (status == LADE_OK) return PyLong_FromUnsignedLongLong(number);
	/* No broker is the same status; then the next question fails, too. */
	if (status == LADE_E_NOT_FOUND && !strstr(err.message, "no broker answers"))
		Py_RETURN_NONE;
	py_raise(c->st, &err, SIZE_MAX);
	return NULL;
}

static PyObject *connection_statistics(PyObject *self, PyObject *unused)
{
	connection *c = (connection *)self;
	lade_share_statistics n = {.struct_size = sizeof n};
	lade_status status;
	lade_error err;

	(void)unused;
	Py_BEGIN_ALLOW_THREADS status = lade_share_statistics_get(c->share, &n, &err);
	Py_END_ALLOW_THREADS if (status)
	{
		py_raise(c->st, &err, SIZE_MAX);
		return NULL;
	}
	const struct {
		const char *name;
		uint64_t value;
	} all[] = {
		{"names", n.names},
		{"versions", n.versions},
		{"bytes", n.bytes},
		{"bytes_cap", n.bytes_cap},
		{"descriptors", n.descriptors},
		{"descriptor_cap", n.descriptor_cap},
		{"clients", n.clients},
		{"client_cap", n.client_cap},
		{"held", n.held},
		{"published", n.published},
		{"opened", n.opened},
		{"removed", n.removed},
		{"refused", n.refused},
		{"keeper_pid", n.keeper_pid},
		{"keeper_starts", n.keeper_starts},
		{"compressed", n.compressed},
		{"disk", n.disk},
		{"disk_cap", n.disk_cap},
		{"evicted", n.evicted},
		{"stored", n.stored},
		{"returned", n.returned},
		{"waiting", n.waiting},
	};
	PyObject *out = PyDict_New();
	for (size_t i = 0; out && i < sizeof all / sizeof *all; i++) {
		PyObject *value = PyLong_FromUnsignedLongLong(all[i].value);
		if (!value || PyDict_SetItemString(out, all[i].name, value))
			Py_CLEAR(out);
		Py_XDECREF(value);
	}
	return out;
}

/* ---- versions --------------------------------------------------------------------------- */

/* ShareVersion(connection, name, version, check, writable, host) */
static PyObject *version_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	lade_share_open_options options = {.struct_size = sizeof options};
	unsigned long long number;
	PyObject *from;
	const char *name;
	version *v;
	lade_status status;
	lade_error err;
	int check, writable, host;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "OsKipp", &from, &name, &number, &check, &writable, &host))
		return NULL;
	options.version = number;
	options.check = (lade_share_check)check;
	options.writable = writable;
	options.host = host;
	v = (version *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
	if (!v)
		return NULL;
	v->st = PyType_GetModuleState(type);
	lade_share *share = ((connection *)from)->share;
	Py_BEGIN_ALLOW_THREADS status = lade_share_open(share, name, &options, &v->version, &err);
	Py_END_ALLOW_THREADS if (status)
	{
		py_raise(v->st, &err, SIZE_MAX);
		Py_DECREF(v);
		return NULL;
	}
	return (PyObject *)v;
}

static void version_dealloc(PyObject *self)
{
	version *v = (version *)self;
	PyTypeObject *type = Py_TYPE(self);

	lade_share_version_unref(v->version);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

static PyObject *version_info(PyObject *self, PyObject *unused)
{
	(void)unused;
	return info_tuple(lade_share_version_info(((version *)self)->version));
}

static PyObject *version_schema(PyObject *self, PyObject *unused)
{
	version *v = (version *)self;
	struct ArrowSchema *schema;
	PyObject *capsule = capsule_new(sizeof *schema, SCHEMA, schema_end, &schema);
	lade_error err;

	(void)unused;
	if (capsule && lade_share_version_schema(v->version, schema, &err)) {
		py_raise(v->st, &err, SIZE_MAX);
		Py_CLEAR(capsule);
	}
	return capsule;
}

static PyObject *version_array(PyObject *self, PyObject *args)
{
	version *v = (version *)self;
	struct ArrowArray *array;
	PyObject *capsule;
	lade_error err;
	Py_ssize_t index;

	if (!PyArg_ParseTuple(args, "n", &index))
		return NULL;
	capsule = capsule_new(sizeof *array, ARRAY, array_end, &array);
	if (capsule && lade_share_version_array(v->version, (size_t)index, array, &err)) {
		py_raise(v->st, &err, SIZE_MAX);
		Py_CLEAR(capsule);
	}
	return capsule;
}

static PyObject *version_device_array(PyObject *self, PyObject *args)
{
	version *v = (version *)self;
	struct ArrowDeviceArray *array;
	PyObject *capsule;
	lade_error err;
	Py_ssize_t index;

	if (!PyArg_ParseTuple(args, "n", &index))
		return NULL;
	capsule = capsule_new(sizeof *array, DEVICE_ARRAY, device_array_end, &array);
	if (capsule &&
	    lade_share_version_device_array(v->version, (size_t)index, array, &err)) {
		py_raise(v->st, &err, SIZE_MAX);
		Py_CLEAR(capsule);
	}
	return capsule;
}

/* What a stream keeps. */
typedef struct reading {
	lade_share_version *version;
	size_t next;
	lade_error err;
} reading;

static int code_of(lade_status status)
{
	return status == LADE_OK ? 0 : status == LADE_E_NOMEM ? 12 /* ENOMEM */ : 22 /* EINVAL */;
}

static int next_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
	reading *r = stream->private_data;

	return code_of(lade_share_version_schema(r->version, out, &r->err));
}

static int next_array(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
	reading *r = stream->private_data;

	if (r->next == lade_share_version_info(r->version)->batches) {
		memset(out, 0, sizeof *out); /* the end */
		return 0;
	}
	return code_of(lade_share_version_array(r->version, r->next++, out, &r->err));
}

static const char *last_error(struct ArrowArrayStream *stream)
{
	return ((reading *)stream->private_data)->err.message;
}

static void release_stream(struct ArrowArrayStream *stream)
{
	reading *r = stream->private_data;

	lade_share_version_unref(r->version);
	free(r);
	stream->release = NULL;
}

static PyObject *version_stream(PyObject *self, PyObject *unused)
{
	version *v = (version *)self;
	struct ArrowArrayStream *stream;
	reading *r = calloc(1, sizeof *r);
	PyObject *capsule =
		r ? capsule_new(sizeof *stream, STREAM, stream_end, &stream) : PyErr_NoMemory();

	(void)unused;
	if (!capsule) {
		free(r);
		return NULL;
	}
	r->version = lade_share_version_ref(v->version);
	*stream = (struct ArrowArrayStream){next_schema, next_array, last_error, release_stream, r};
	return capsule;
}

/* The element type of a format of fixed numbers, as a type string; NULL: it is none. */
static const char *number_type(const char *format)
{
	static const char *const types[] = {"c|i1", "C|u1", "s<i2", "S<u2", "i<i4", "I<u4",
	                                    "l<i8", "L<u8", "e<f2", "f<f4", "g<f8"};

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i][0] == format[0] && !format[1])
			return types[i] + 1;
	return NULL;
}

/* Whether rows of an array are null, also where their number is not known. */
static bool has_nulls(const struct ArrowArray *a, int32_t device)
{
	const unsigned char *bits = a->n_buffers ? a->buffers[0] : NULL;

	/* The host does not look at a device's memory. */
	if (device >= 0)
		return bits && a->null_count;
	for (int64_t i = a->offset; bits && a->null_count && i < a->offset + a->length; i++)
		if (!(bits[i / 8] >> i % 8 & 1))
			return true;
	return false;
}

static void release_kept(void *ctx)
{
	struct ArrowArray *array = ctx;

	array->release(array);
	free(array);
}

/* An Array of elements in place.  It takes the keeper, if it gets that far. */
static PyObject *array_in_place(version *v, const void *data, const char *type, Py_ssize_t ndim,
                                const Py_ssize_t *shape, struct ArrowArray **keeper)
{
	lade_array_options options = {
		.struct_size = sizeof options, .gone = release_kept, .gone_ctx = *keeper};
	int32_t device = lade_share_version_info(v->version)->device;
	lade_array *memory;
	py_array *array;
	py_dtype dtype;
	lade_error err;

	if (!py_dtype_parse(type, &dtype))
		return NULL;
	size_t size = dtype.size; /* the version has these bytes: they are no overflow */
	for (Py_ssize_t i = 0; i < ndim; i++)
		size *= (size_t)shape[i];
	lade_span span = lade_host_span((void *)(uintptr_t)data, size);
	if (device >= 0)
		span.place = (lade_place){LADE_DEVICE, device};
	if (lade_array_wrap(span, &options, &memory, &err)) {
		py_raise(v->st, &err, SIZE_MAX);
		return NULL;
	}
	*keeper = NULL;
	array = py_array_own(v->st, memory);
	if (!array)
		return PyErr_NoMemory();
	array->lent = false;
	array->readonly = true;
	array->dtype = dtype;
	if (!py_array_shape(array, ndim, shape, NULL))
		Py_CLEAR(array);
	return (PyObject *)array;
}

/* Numbers of a column. */
static PyObject *numbers_of(version *v, const struct ArrowArray *a, const struct ArrowSchema *s,
                            struct ArrowArray **keeper)
{
	const char *type = number_type(s->format);
	int32_t device = lade_share_version_info(v->version)->device;
	const Py_ssize_t length = (Py_ssize_t)a->length;

	if (!type || s->dictionary) {
		PyErr_Format(PyExc_TypeError, "'%s' has the format '%s', which is no number",
		             s->name ? s->name : "", s->format);
		return NULL;
	}
	if (has_nulls(a, device)) {
		PyErr_Format(PyExc_ValueError, "'%s' has nulls: arrays of numbers have none",
		             s->name ? s->name : "");
		return NULL;
	}
	const char *data = a->buffers[1];
	return array_in_place(v, data ? data + a->offset * (type[2] - '0') : NULL, type, 1, &length,
	                      keeper);
}

/* Numbers with a shape, of a column of fixed-size lists. */
static PyObject *tensor_of(version *v, size_t index, struct ArrowArray **keeper)
{
	lade_share_tensor t = {.struct_size = sizeof t};
	Py_ssize_t shape[LADE_SHARE_NDIM_MAX];
	lade_error err;

	if (lade_share_version_tensor(v->version, index, &t, &err)) {
		py_raise(v->st, &err, SIZE_MAX);
		return NULL;
	}
	for (unsigned i = 0; i < t.ndim; i++)
		shape[i] = (Py_ssize_t)t.shape[i];
	return array_in_place(v, t.data, lade_dtype_text(t.dtype), t.ndim, shape, keeper);
}

/* numbers(batch, child): of a table's column, or of a column: -1 */
static PyObject *version_numbers(PyObject *self, PyObject *args)
{
	version *v = (version *)self;
	struct ArrowArray *keeper = NULL;
	struct ArrowSchema schema = {.release = NULL};
	PyObject *out = NULL;
	Py_ssize_t index, child;
	lade_error err;

	if (!PyArg_ParseTuple(args, "nn", &index, &child))
		return NULL;
	keeper = calloc(1, sizeof *keeper);
	if (!keeper)
		return PyErr_NoMemory();
	struct ArrowDeviceArray whole;
	lade_status status = lade_share_version_schema(v->version, &schema, &err);
	if (status == LADE_OK)
		status = lade_share_version_device_array(v->version, (size_t)index, &whole, &err);
	if (status == LADE_OK)
		*keeper = whole.array; /* a struct may be moved */
	if (status) {
		py_raise(v->st, &err, SIZE_MAX);
	} else if (child >= 0 && strcmp(schema.format, "+s") != 0) {
		PyErr_Format(PyExc_TypeError,
		             "'%s' is one column of format '%s', no table: call numbers() without "
		             "a column",
		             lade_share_version_info(v->version)->name, schema.format);
	} else if (child < 0 && !strncmp(schema.format, "+w:", 3)) {
		out = tensor_of(v, (size_t)index, &keeper);
	} else if (child < -1 || child >= keeper->n_children) {
		PyErr_Format(PyExc_IndexError, "column %zd of %lld", child,
		             (long long)keeper->n_children);
	} else if (child >= 0 && has_nulls(keeper, (int32_t)whole.device_id)) {
		PyErr_SetString(PyExc_ValueError,
		                "rows of the table are null: arrays of numbers have none");
	} else {
		/* Rows of a table that is a slice are the parent's: of the child these. */
		struct ArrowArray seen = child < 0 ? *keeper : *keeper->children[child];
		if (child >= 0) {
			seen.offset += keeper->offset;
			seen.length = keeper->length;
		}
		out = numbers_of(v, &seen, child < 0 ? &schema : schema.children[child], &keeper);
	}
	if (schema.release)
		schema.release(&schema);
	if (keeper && keeper->release)
		keeper->release(keeper);
	free(keeper);
	return out;
}

/* ---- types ------------------------------------------------------------------------------ */

static PyMethodDef connection_methods[] = {
	{"publish", connection_publish, METH_VARARGS, NULL},
	{"publish_tensor", connection_publish_tensor, METH_VARARGS, NULL},
	{"read_stream", connection_read_stream, METH_O | METH_STATIC, NULL},
	{"alloc", connection_alloc, METH_VARARGS, NULL},
	{"list", connection_list, METH_VARARGS, NULL},
	{"remove", connection_remove, METH_VARARGS, NULL},
	{"wait", connection_wait, METH_VARARGS, NULL},
	{"statistics", connection_statistics, METH_NOARGS, NULL},
	{0},
};

static PyType_Slot connection_slots[] = {
	{Py_tp_doc, "A connection to a broker; liblade.share.connect() makes one."},
	{Py_tp_new, connection_new},
	{Py_tp_dealloc, connection_dealloc},
	{Py_tp_methods, connection_methods},
	{0, NULL},
};

PyType_Spec py_share_spec = {
	.name = "liblade._lade.ShareConnection",
	.basicsize = sizeof(connection),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = connection_slots,
};

static PyMethodDef version_methods[] = {
	{"info", version_info, METH_NOARGS, NULL},
	{"schema", version_schema, METH_NOARGS, NULL},
	{"array", version_array, METH_VARARGS, NULL},
	{"device_array", version_device_array, METH_VARARGS, NULL},
	{"stream", version_stream, METH_NOARGS, NULL},
	{"numbers", version_numbers, METH_VARARGS, NULL},
	{0},
};

static PyType_Slot version_slots[] = {
	{Py_tp_doc, "An opened version; liblade.share.Connection.get() makes one."},
	{Py_tp_new, version_new},
	{Py_tp_dealloc, version_dealloc},
	{Py_tp_methods, version_methods},
	{0, NULL},
};

PyType_Spec py_share_version_spec = {
	.name = "liblade._lade.ShareVersion",
	.basicsize = sizeof(version),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = version_slots,
};
