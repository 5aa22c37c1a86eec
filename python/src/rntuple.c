/*
 * rntuple.c: an open RNTuple: its tables, and reads of elements into memory of any kind.
 * liblade/rntuple/ makes arrays of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple_py.h"

#include <string.h>

typedef struct ntuple {
	PyObject_HEAD
	py_bytes bytes;
	lade_rntuple *tuple;
} ntuple;

/* ---- tables ----------------------------------------------------------------------------- */

PyObject *py_rntuple_text(const char *text)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

bool py_rntuple_append(PyObject *list, PyObject *item)
{
	bool ok = item && !PyList_Append(list, item);

	Py_XDECREF(item);
	return ok;
}

PyObject *py_rntuple_fields(const lade_rntuple *tuple)
{
	PyObject *list = PyList_New(0);
	const lade_rntuple_field *f;

	for (uint64_t i = 0; list && (f = lade_rntuple_field_at(tuple, i)); i++) {
		PyObject *row = Py_BuildValue(
			"(NNNNNKiKKKOs)", py_rntuple_text(f->path), py_rntuple_text(f->name),
			py_rntuple_text(f->type), py_rntuple_text(f->type_alias),
			py_rntuple_text(f->description), (unsigned long long)f->parent, f->role,
			(unsigned long long)f->array_size, (unsigned long long)f->column,
			(unsigned long long)f->column_count, f->projected ? Py_True : Py_False,
			f->hidden);
		if (!py_rntuple_append(list, row))
			Py_CLEAR(list);
	}
	return list;
}

PyObject *py_rntuple_columns(const lade_rntuple *tuple)
{
	PyObject *list = PyList_New(0);
	const lade_rntuple_column *c;

	for (uint64_t i = 0; list && (c = lade_rntuple_column_at(tuple, i)); i++) {
		const char *type = c->dtype ? lade_dtype_text(c->dtype) : "|V12";
		PyObject *row = Py_BuildValue(
			"(KIisnsIKKKKK)", (unsigned long long)c->field, c->position, c->kind, type,
			(Py_ssize_t)c->elem_size, c->stored, c->bits,
			(unsigned long long)c->element_count, (unsigned long long)c->first_stored,
			(unsigned long long)c->page_count, (unsigned long long)c->stored_size,
			(unsigned long long)c->decoded_size);
		if (!py_rntuple_append(list, row))
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *ntuple_about(PyObject *self, PyObject *unused)
{
	const lade_rntuple_info *i = lade_rntuple_about(((ntuple *)self)->tuple);

	(void)unused;
	return Py_BuildValue("(NNN(iiii)KKKKKKK)", py_rntuple_text(i->name),
	                     py_rntuple_text(i->description), py_rntuple_text(i->writer), i->epoch,
	                     i->major, i->minor, i->patch, (unsigned long long)i->entry_count,
	                     (unsigned long long)i->field_count,
	                     (unsigned long long)i->column_count,
	                     (unsigned long long)i->cluster_count,
	                     (unsigned long long)i->page_count, (unsigned long long)i->stored_size,
	                     (unsigned long long)i->decoded_size);
}

static PyObject *ntuple_fields(PyObject *self, PyObject *unused)
{
	(void)unused;
	return py_rntuple_fields(((ntuple *)self)->tuple);
}

static PyObject *ntuple_columns(PyObject *self, PyObject *unused)
{
	(void)unused;
	return py_rntuple_columns(((ntuple *)self)->tuple);
}

/* field(path): its number. */
static PyObject *ntuple_field(PyObject *self, PyObject *args)
{
	ntuple *n = (ntuple *)self;
	const char *path;
	uint64_t field;
	lade_error err;

	if (!PyArg_ParseTuple(args, "s", &path))
		return NULL;
	if (!lade_rntuple_find_field(n->tuple, path, &field, &err))
		return PyLong_FromUnsignedLongLong(field);
	py_raise(n->bytes.st, &err, SIZE_MAX);
	return NULL;
}

/* The entries of each cluster: (first, count). */
static PyObject *ntuple_clusters(PyObject *self, PyObject *unused)
{
	lade_rntuple *tuple = ((ntuple *)self)->tuple;
	PyObject *list = PyList_New(0);
	lade_rntuple_part part;

	(void)unused;
	for (uint64_t i = 0; list && !lade_rntuple_cluster(tuple, i, &part, NULL); i++)
		if (!py_rntuple_append(list,
		                       Py_BuildValue("(KK)", (unsigned long long)part.first,
		                                     (unsigned long long)part.count)))
			Py_CLEAR(list);
	return list;
}

/* cluster_elements(column): the elements of a column in each cluster. */
static PyObject *ntuple_cluster_elements(PyObject *self, PyObject *args)
{
	ntuple *n = (ntuple *)self;
	uint64_t count = lade_rntuple_about(n->tuple)->cluster_count;
	unsigned long long column;
	PyObject *list;

	if (!PyArg_ParseTuple(args, "K", &column) || !(list = PyList_New(0)))
		return NULL;
	for (uint64_t i = 0; list && i < count; i++) {
		lade_rntuple_part part;
		lade_error err;
		if (lade_rntuple_cluster_elements(n->tuple, column, i, &part, &err)) {
			py_raise(n->bytes.st, &err, SIZE_MAX);
			Py_CLEAR(list);
		} else if (!py_rntuple_append(
				   list, Py_BuildValue("(KK)", (unsigned long long)part.first,
		                                       (unsigned long long)part.count))) {
			Py_CLEAR(list);
		}
	}
	return list;
}

/* pages(column, cluster) */
static PyObject *ntuple_pages(PyObject *self, PyObject *args)
{
	ntuple *n = (ntuple *)self;
	unsigned long long column, cluster;
	PyObject *list;

	if (!PyArg_ParseTuple(args, "KK", &column, &cluster) || !(list = PyList_New(0)))
		return NULL;
	uint64_t count = lade_rntuple_page_count(n->tuple, column, cluster);
	for (uint64_t i = 0; list && i < count; i++) {
		lade_rntuple_page p = {.struct_size = sizeof(p)};
		lade_error err;
		if (lade_rntuple_page_at(n->tuple, column, cluster, i, &p, &err)) {
			py_raise(n->bytes.st, &err, SIZE_MAX);
			Py_CLEAR(list);
			break;
		}
		PyObject *row = Py_BuildValue(
			"(KKKKKsOIK)", (unsigned long long)p.first, (unsigned long long)p.count,
			(unsigned long long)p.off, (unsigned long long)p.stored_size,
			(unsigned long long)p.decoded_size, p.stored,
			p.checksum ? Py_True : Py_False, p.bits, (unsigned long long)p.setting);
		if (!py_rntuple_append(list, row))
			Py_CLEAR(list);
	}
	return list;
}

/* ---- reading ---------------------------------------------------------------------------- */

/* elements(column, first, count): (first, count) of the elements of some entries. */
static PyObject *ntuple_elements(PyObject *self, PyObject *args)
{
	ntuple *n = (ntuple *)self;
	lade_rntuple_read_options options = {.struct_size = sizeof(options)};
	unsigned long long column, first, count;
	lade_rntuple_part part = {0, 0};
	lade_status status;
	lade_error err;
	py_wait wait;

	if (!PyArg_ParseTuple(args, "KKK", &column, &first, &count))
		return NULL;
	py_wait_begin(&wait, true);
	options.cancel = wait.cancel;
	status = lade_rntuple_elements(n->tuple, column, (lade_rntuple_part){first, count},
	                               &options, &part, &err);
	if (!py_wait_end(&wait))
		return NULL;
	if (!status)
		return Py_BuildValue("(KK)", (unsigned long long)part.first,
		                     (unsigned long long)part.count);
	py_bytes_raise(&n->bytes, &err);
	return NULL;
}

/* The targets of a read: 'mems' holds the memory of 'held' of them. */
typedef struct targets {
	Py_ssize_t count, held;
	lade_rntuple_target *target;
	py_mem *mems;
} targets;

static void targets_reset(targets *t)
{
	for (Py_ssize_t i = 0; i < t->held; i++)
		py_mem_release(&t->mems[i]);
	PyMem_Free(t->target);
	PyMem_Free(t->mems);
}

/* The memory of one target: an object's, which is contiguous. */
static bool take_memory(py_state *st, PyObject *object, uintptr_t stream, py_mem *mem)
{
	if (!py_mem_get(st, object, true, stream, mem))
		return false;
	if (mem->array && !mem->array->contiguous) {
		PyErr_SetString(PyExc_ValueError, "out: the memory has gaps between its elements");
		py_mem_release(mem);
		return false;
	}
	return true;
}

/* A list of (column, first, count, object); or, of a read that is explained, (..., size, kind,
 * device). */
static bool take_targets(ntuple *n, PyObject *list, bool explain, uintptr_t stream, targets *t)
{
	t->count = PyList_Size(list);
	if (t->count < 0)
		return false;
	t->target = PyMem_Calloc((size_t)t->count + 1, sizeof(*t->target));
	t->mems = PyMem_Calloc((size_t)t->count + 1, sizeof(*t->mems));
	if (!t->target || !t->mems) {
		PyErr_NoMemory();
		return false;
	}
	for (Py_ssize_t i = 0; i < t->count; i++) {
		PyObject *row = PyList_GetItem(list, i), *object = NULL;
		lade_rntuple_target *target = &t->target[i];
		unsigned long long column, first, count;
		Py_ssize_t size = 0;
		int kind = 0, device = 0;
		if (!PyArg_ParseTuple(row, explain ? "KKKnii" : "KKKO", &column, &first, &count,
		                      explain ? (void *)&size : (void *)&object, &kind, &device))
			return false;
		*target = (lade_rntuple_target){.column = column, .first = first, .count = count};
		if (explain) {
			/* Any address but NULL: it is not used. */
			target->span = (lade_span){target, (size_t)size, {(lade_kind)kind, device}};
			continue;
		}
		if (!take_memory(n->bytes.st, object, stream, &t->mems[i]))
			return false;
		t->held++;
		target->span = (lade_span){t->mems[i].data, t->mems[i].size, t->mems[i].place};
	}
	return true;
}

static PyObject *report_of(const lade_rntuple_report *r)
{
	return Py_BuildValue("(KKKKKKKKKK)", (unsigned long long)r->page_count,
	                     (unsigned long long)r->distinct_count,
	                     (unsigned long long)r->range_count, (unsigned long long)r->stored_size,
	                     (unsigned long long)r->decoded_size,
	                     (unsigned long long)r->written_size,
	                     (unsigned long long)r->host_memory,
	                     (unsigned long long)r->device_memory,
	                     (unsigned long long)r->wave_count, (unsigned long long)r->ns);
}

/* read(targets, threads, flags, stream, memory, where, device, explain): what it did. */
static PyObject *ntuple_read(PyObject *self, PyObject *args)
{
	ntuple *n = (ntuple *)self;
	lade_rntuple_report report = {.struct_size = sizeof(report)};
	lade_rntuple_read_options options = {.struct_size = sizeof(options),
	                                     .target_size = sizeof(lade_rntuple_target)};
	targets t = {0};
	PyObject *list, *stream_object, *out = NULL;
	unsigned long long memory;
	lade_status status;
	uintptr_t stream;
	lade_error err;
	int where, device, explain;
	py_wait wait;

	if (!PyArg_ParseTuple(args, "O!IIOKiip", &PyList_Type, &list, &options.threads,
	                      &options.flags, &stream_object, &memory, &where, &device, &explain) ||
	    !py_stream_arg(stream_object, &stream))
		return NULL;
	options.stream = (lade_stream)stream;
	options.memory = memory;
	options.where = (lade_where)where;
	options.device = device;
	if (!take_targets(n, list, explain, stream, &t))
		goto out;
	py_wait_begin(&wait, true);
	options.cancel = wait.cancel;
	status = explain ? lade_rntuple_explain(n->tuple, t.target, (size_t)t.count, &options,
	                                        &report, &err)
	                 : lade_rntuple_read(n->tuple, t.target, (size_t)t.count, &options, &report,
	                                     &err);
	if (!py_wait_end(&wait))
		goto out;
	if (status)
		py_bytes_raise(&n->bytes, &err);
	else
		out = report_of(&report);
out:
	targets_reset(&t);
	return out;
}

/* ---- life ------------------------------------------------------------------------------- */

/* __new__(from, object, headers, name, metadata_max) */
static PyObject *ntuple_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	py_state *st = PyType_GetModuleState(type);
	lade_rntuple_options options = {.struct_size = sizeof(options)};
	unsigned long long most;
	PyObject *object, *headers;
	lade_status status;
	lade_error err;
	py_wait wait;
	ntuple *n;
	int from;

	(void)kwargs;
	if (!st || !PyArg_ParseTuple(args, "iOO!zK", &from, &object, &PyTuple_Type, &headers,
	                             &options.name, &most))
		return NULL;
	options.metadata_max = most;
	n = (ntuple *)PyType_GenericAlloc(type, 0);
	if (!n)
		return NULL;
	if (!py_bytes_open(&n->bytes, st, from, object, headers))
		goto fail;
	py_wait_begin(&wait, true);
	options.cancel = wait.cancel;
	status = lade_rntuple_open(n->bytes.source, &options, &n->tuple, &err);
	if (status)
		lade_source_close(n->bytes.source);
	if (!py_wait_end(&wait))
		goto fail;
	if (!status)
		return (PyObject *)n;
	py_bytes_raise(&n->bytes, &err);
fail:
	Py_DECREF(n);
	return NULL;
}

typedef struct names {
	char **name;
	size_t count;
} names;

static lade_status add_name(void *ctx, const char *name)
{
	names *all = ctx;
	char **more = realloc(all->name, (all->count + 1) * sizeof(*more));

	if (!more)
		return LADE_E_NOMEM;
	all->name = more;
	more[all->count] = strdup(name);
	return more[all->count] && ++all->count ? LADE_OK : LADE_E_NOMEM;
}

/* names(from, object, headers): the names of a file's RNTuples. */
static PyObject *ntuple_names(PyObject *type, PyObject *args)
{
	py_state *st = PyType_GetModuleState((PyTypeObject *)type);
	lade_error err = {LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for the names of RNTuples"};
	PyObject *object, *headers, *out = NULL;
	py_bytes bytes = {0};
	names all = {0};
	lade_status status;
	int from;

	if (!st || !PyArg_ParseTuple(args, "iOO!", &from, &object, &PyTuple_Type, &headers))
		return NULL;
	if (py_bytes_open(&bytes, st, from, object, headers)) {
		Py_BEGIN_ALLOW_THREADS
		status = lade_rntuple_list(bytes.source, add_name, &all, &err);
		lade_source_close(bytes.source);
		Py_END_ALLOW_THREADS
		if (status)
			py_bytes_raise(&bytes, &err);
		else
			out = PyList_New(0);
	}
	for (size_t i = 0; i < all.count; i++) {
		if (out && !py_rntuple_append(out, py_rntuple_text(all.name[i])))
			Py_CLEAR(out);
		free(all.name[i]);
	}
	free(all.name);
	py_bytes_reset(&bytes);
	return out;
}

static int ntuple_traverse(PyObject *self, visitproc visit, void *arg)
{
	ntuple *n = (ntuple *)self;

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(n->bytes.function);
	Py_VISIT((PyObject *)n->bytes.mem.array);
	return 0;
}

static void ntuple_dealloc(PyObject *self)
{
	ntuple *n = (ntuple *)self;

	PyObject_GC_UnTrack(self);
	lade_rntuple_unref(n->tuple);
	py_bytes_reset(&n->bytes);
	py_free(self);
}

static PyMethodDef methods[] = {
	{"names", ntuple_names, METH_VARARGS | METH_CLASS, NULL},
	{"about", ntuple_about, METH_NOARGS, NULL},
	{"fields", ntuple_fields, METH_NOARGS, NULL},
	{"columns", ntuple_columns, METH_NOARGS, NULL},
	{"field", ntuple_field, METH_VARARGS, NULL},
	{"clusters", ntuple_clusters, METH_NOARGS, NULL},
	{"cluster_elements", ntuple_cluster_elements, METH_VARARGS, NULL},
	{"pages", ntuple_pages, METH_VARARGS, NULL},
	{"elements", ntuple_elements, METH_VARARGS, NULL},
	{"read", ntuple_read, METH_VARARGS, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "An open RNTuple; liblade.rntuple.open() makes one."},
	{Py_tp_new, ntuple_new},
	{Py_tp_dealloc, ntuple_dealloc},
	{Py_tp_traverse, ntuple_traverse},
	{Py_tp_methods, methods},
	{0, NULL},
};

PyType_Spec py_rntuple_spec = {
	.name = "liblade._lade.NTuple",
	.basicsize = sizeof(ntuple),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
