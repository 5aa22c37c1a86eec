/*
 * rntuple_write.c: the writer of an RNTuple; liblade/rntuple/_write.py finds the columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple_py.h"

#include <string.h>

typedef struct writer {
	PyObject_HEAD
	py_state *st;
	lade_rntuple_writer *writer;
	atomic_flag busy; /* one thread at a time uses it */
} writer;

/* A call begins; false: another thread is in one, or the writer is closed. */
static bool claim(writer *w)
{
	if (atomic_flag_test_and_set(&w->busy)) {
		PyErr_SetString(PyExc_RuntimeError, "another thread's call has not ended");
		return false;
	}
	if (w->writer)
		return true;
	atomic_flag_clear(&w->busy);
	PyErr_SetString(PyExc_ValueError, "the writer is closed");
	return false;
}

static PyObject *settle(writer *w, lade_status status, const lade_error *err)
{
	atomic_flag_clear(&w->busy);
	if (!status)
		Py_RETURN_NONE;
	py_raise(w->st, err, SIZE_MAX);
	return NULL;
}

/* ---- fields ----------------------------------------------------------------------------- */

/* add(rows): (name, type, alias, description, parent or None, array_size, stored or None, codec or
 * None, role) of each field. */
static PyObject *writer_add(PyObject *self, PyObject *args)
{
	writer *w = (writer *)self;
	lade_rntuple_new_field *fields;
	PyObject *list;
	lade_status status;
	lade_error err;

	if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list))
		return NULL;
	Py_ssize_t count = PyList_Size(list);
	fields = PyMem_Calloc((size_t)count + 1, sizeof(*fields));
	if (!fields)
		return PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < count; i++) {
		lade_rntuple_new_field *f = &fields[i];
		unsigned long long parent, size;
		if (!PyArg_ParseTuple(PyList_GetItem(list, i), "ssssKKzzI", &f->name, &f->type,
		                      &f->type_alias, &f->description, &parent, &size, &f->stored,
		                      &f->codec, &f->role)) {
			PyMem_Free(fields);
			return NULL;
		}
		f->parent = parent;
		f->array_size = size;
	}
	if (!claim(w)) {
		PyMem_Free(fields);
		return NULL;
	}
	status = lade_rntuple_writer_add(w->writer, fields, (size_t)count, &err);
	PyMem_Free(fields);
	return settle(w, status, &err);
}

/* schema(): (fields, columns), as an open RNTuple has them. */
static PyObject *writer_schema(PyObject *self, PyObject *unused)
{
	writer *w = (writer *)self;
	PyObject *fields, *columns;

	(void)unused;
	if (!claim(w))
		return NULL;
	const lade_rntuple *tuple = lade_rntuple_writer_schema(w->writer);
	fields = py_rntuple_fields(tuple);
	columns = fields ? py_rntuple_columns(tuple) : NULL;
	atomic_flag_clear(&w->busy);
	if (columns)
		return Py_BuildValue("(NN)", fields, columns);
	Py_XDECREF(fields);
	return NULL;
}

/* ---- entries ---------------------------------------------------------------------------- */

typedef struct fills {
	Py_ssize_t count, held;
	lade_rntuple_fill *fill;
	py_mem *mems;
} fills;

static void fills_reset(fills *f)
{
	for (Py_ssize_t i = 0; i < f->held; i++)
		py_mem_release(&f->mems[i]);
	PyMem_Free(f->fill);
	PyMem_Free(f->mems);
}

/* A list of (column, object, type or None). */
static bool take_fills(py_state *st, PyObject *list, fills *f)
{
	f->count = PyList_Size(list);
	f->fill = PyMem_Calloc((size_t)f->count + 1, sizeof(*f->fill));
	f->mems = PyMem_Calloc((size_t)f->count + 1, sizeof(*f->mems));
	if (!f->fill || !f->mems) {
		PyErr_NoMemory();
		return false;
	}
	for (Py_ssize_t i = 0; i < f->count; i++) {
		lade_rntuple_fill *fill = &f->fill[i];
		py_mem *mem = &f->mems[i];
		unsigned long long column;
		PyObject *object;
		const char *type;
		lade_error err;
		if (!PyArg_ParseTuple(PyList_GetItem(list, i), "KOz", &column, &object, &type))
			return false;
		if (type && lade_dtype_parse(type, &fill->dtype, &err)) {
			py_raise(st, &err, SIZE_MAX);
			return false;
		}
		if (!py_mem_read(st, object, mem))
			return false;
		f->held++;
		if (!py_mem_flatten(mem))
			return false;
		fill->column = column;
		fill->span = (lade_cspan){mem->data, mem->size, mem->place};
	}
	return true;
}

static PyObject *report_of(const lade_rntuple_write_report *r)
{
	return Py_BuildValue("(KKKKKKKKK)", (unsigned long long)r->entry_count,
	                     (unsigned long long)r->cluster_count,
	                     (unsigned long long)r->page_count, (unsigned long long)r->raw_count,
	                     (unsigned long long)r->source_size,
	                     (unsigned long long)r->decoded_size,
	                     (unsigned long long)r->stored_size, (unsigned long long)r->file_size,
	                     (unsigned long long)r->ns);
}

/* fill(entry_count, list) */
static PyObject *writer_fill(PyObject *self, PyObject *args)
{
	writer *w = (writer *)self;
	lade_rntuple_write_report report = {.struct_size = sizeof(report)};
	unsigned long long count;
	PyObject *list, *out = NULL;
	lade_status status;
	lade_error err;
	fills f = {0};

	if (!PyArg_ParseTuple(args, "KO!", &count, &PyList_Type, &list))
		return NULL;
	if (take_fills(w->st, list, &f) && claim(w)) {
		Py_BEGIN_ALLOW_THREADS
		status = lade_rntuple_writer_fill(w->writer, count, f.fill, (size_t)f.count,
		                                  &report, &err);
		Py_END_ALLOW_THREADS
		out = settle(w, status, &err);
	}
	fills_reset(&f);
	if (!out)
		return NULL;
	Py_DECREF(out);
	return report_of(&report);
}

static PyObject *writer_commit(PyObject *self, PyObject *unused)
{
	writer *w = (writer *)self;
	lade_status status;
	lade_error err;

	(void)unused;
	if (!claim(w))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	status = lade_rntuple_writer_commit(w->writer, &err);
	Py_END_ALLOW_THREADS
	return settle(w, status, &err);
}

/* ---- life ------------------------------------------------------------------------------- */

static void close_writer(writer *w)
{
	lade_rntuple_writer *old = w->writer;

	w->writer = NULL;
	Py_BEGIN_ALLOW_THREADS
	lade_rntuple_writer_close(old);
	Py_END_ALLOW_THREADS
}

/* close(): any number of times. */
static PyObject *writer_close(PyObject *self, PyObject *unused)
{
	writer *w = (writer *)self;

	(void)unused;
	if (!w->writer)
		Py_RETURN_NONE;
	if (!claim(w))
		return NULL;
	close_writer(w);
	atomic_flag_clear(&w->busy);
	Py_RETURN_NONE;
}

/* __new__(path, name, description, mode, flags, codec, page_size, cluster_size, memory, threads) */
static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	py_state *st = PyType_GetModuleState(type);
	lade_rntuple_writer_options o = {.struct_size = sizeof(o),
	                                 .field_size = sizeof(lade_rntuple_new_field),
	                                 .fill_size = sizeof(lade_rntuple_fill)};
	unsigned long long page, cluster, memory;
	const char *path;
	lade_status status;
	lade_error err;
	writer *w;
	int mode;

	(void)kwargs;
	if (!st || !PyArg_ParseTuple(args, "yzsiIzKKKI", &path, &o.name, &o.description, &mode,
	                             &o.flags, &o.codec, &page, &cluster, &memory, &o.threads))
		return NULL;
	o.mode = (lade_rntuple_mode)mode;
	o.page_size = page;
	o.cluster_size = cluster;
	o.memory = memory;
	w = (writer *)PyType_GenericAlloc(type, 0);
	if (!w)
		return NULL;
	w->st = st;
	atomic_flag_clear(&w->busy);
	Py_BEGIN_ALLOW_THREADS
	status = lade_rntuple_writer_open(path, &o, &w->writer, &err);
	Py_END_ALLOW_THREADS
	if (!status)
		return (PyObject *)w;
	py_raise(st, &err, SIZE_MAX);
	Py_DECREF(w);
	return NULL;
}

/* repair(path, name, dry): whether the anchor needed it. */
static PyObject *writer_repair(PyObject *type, PyObject *args)
{
	py_state *st = PyType_GetModuleState((PyTypeObject *)type);
	lade_rntuple_repair_options options = {.struct_size = sizeof(options)};
	const char *path;
	bool mended = false;
	lade_status status;
	lade_error err;
	int dry;

	if (!st || !PyArg_ParseTuple(args, "yzp", &path, &options.name, &dry))
		return NULL;
	options.dry = (uint64_t)dry;
	Py_BEGIN_ALLOW_THREADS
	status = lade_rntuple_repair(path, &options, &mended, &err);
	Py_END_ALLOW_THREADS
	if (!status)
		return PyBool_FromLong(mended);
	py_raise(st, &err, SIZE_MAX);
	return NULL;
}

static int writer_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	return 0;
}

static void writer_dealloc(PyObject *self)
{
	PyObject_GC_UnTrack(self);
	close_writer((writer *)self);
	py_free(self);
}

static PyMethodDef methods[] = {
	{"add", writer_add, METH_VARARGS, NULL},
	{"schema", writer_schema, METH_NOARGS, NULL},
	{"fill", writer_fill, METH_VARARGS, NULL},
	{"commit", writer_commit, METH_NOARGS, NULL},
	{"close", writer_close, METH_NOARGS, NULL},
	{"repair", writer_repair, METH_VARARGS | METH_CLASS, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "The writer of an RNTuple; liblade.rntuple.create() makes one."},
	{Py_tp_new, writer_new},
	{Py_tp_dealloc, writer_dealloc},
	{Py_tp_traverse, writer_traverse},
	{Py_tp_methods, methods},
	{0, NULL},
};

PyType_Spec py_rntuple_writer_spec = {
	.name = "liblade._lade.NTupleWriter",
	.basicsize = sizeof(writer),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
