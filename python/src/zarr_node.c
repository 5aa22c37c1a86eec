/*
 * zarr_node.c: arrays and groups: opened, made, described, changed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr_py.h"

#include <string.h>

PyObject *py_node_wrap(PyTypeObject *type, lade_zarr *node, py_codecs *codecs)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	py_node *self = (py_node *)(void *)alloc(type, 0);

	if (self) {
		self->st = PyType_GetModuleState(type);
		self->node = node;
		self->codecs = py_codecs_ref(codecs);
		py_codecs_seal(codecs);
		self->array = lade_zarr_as_array(node);
	} else {
		lade_zarr_unref(node);
	}
	return (PyObject *)self;
}

static PyObject *result(PyTypeObject *type, lade_status status, lade_zarr *node,
                        const lade_error *err)
{
	if (!status)
		return py_node_wrap(type, node, NULL);
	py_raise(PyType_GetModuleState(type), err, SIZE_MAX);
	return NULL;
}

/* What a node became by a change. */
static PyObject *changed(PyObject *self, lade_status status, lade_zarr *node, const lade_error *err)
{
	if (!status)
		return py_node_wrap(Py_TYPE(self), node, ((py_node *)(void *)self)->codecs);
	py_raise(((py_node *)(void *)self)->st, err, SIZE_MAX);
	return NULL;
}

static bool take_store(py_state *st, PyObject *object, lade_store **out)
{
	if (object == Py_None) {
		*out = NULL;
		return true;
	}
	if (Py_TYPE(object) != st->store_type) {
		PyErr_Format(PyExc_TypeError, "%R is no store", object);
		return false;
	}
	*out = ((py_store *)(void *)object)->store;
	return true;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* open(store, path, kind, format, chunk store, consolidated, find, implementations): the last two
 * are zarr_codec.c's. */
static PyObject *node_open(PyObject *cls, PyObject *args)
{
	PyTypeObject *type = (PyTypeObject *)cls;
	py_state *st = PyType_GetModuleState(type);
	lade_zarr_options options = {.struct_size = sizeof(options)};
	PyObject *store_object, *chunk_object = Py_None;
	lade_store *store;
	lade_zarr *node = NULL;
	PyObject *find = Py_None, *implementations = NULL, *out;
	int kind = 0, format = 0, consolidated = 1;
	py_codecs *codecs = NULL;
	lade_status status;
	const char *path;
	lade_error err;

	if (!PyArg_ParseTuple(args, "Os|iiOpOO!", &store_object, &path, &kind, &format,
	                      &chunk_object, &consolidated, &find, &PyTuple_Type,
	                      &implementations) ||
	    !take_store(st, store_object, &store) ||
	    !take_store(st, chunk_object, &options.chunk_store))
		return NULL;
	options.kind = (lade_zarr_kind)kind;
	options.format = (uint32_t)format;
	options.no_consolidated = !consolidated;
	if (implementations && !py_codecs_new(st, find, implementations, &options, &codecs)) {
		py_codecs_unref(codecs);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS
	status = lade_zarr_open(store, path, &options, &node, &err);
	Py_END_ALLOW_THREADS
	out = status ? result(type, status, node, &err) : py_node_wrap(type, node, codecs);
	py_codecs_unref(codecs);
	return out;
}

static PyObject *node_member(PyObject *self, PyObject *args)
{
	lade_zarr *group = ((py_node *)(void *)self)->node, *node = NULL;
	lade_status status;
	const char *path;
	lade_error err;

	if (!PyArg_ParseTuple(args, "s", &path))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	status = lade_zarr_member_open(group, path, &node, &err);
	Py_END_ALLOW_THREADS
	return result(Py_TYPE(self), status, node, &err);
}

/* The paths of consolidated members; None: there is no consolidated metadata. */
static PyObject *node_members(PyObject *self, PyObject *unused)
{
	const lade_zarr *group = ((py_node *)(void *)self)->node;
	PyObject *list;

	(void)unused;
	if (!lade_zarr_member(group, 0))
		Py_RETURN_NONE;
	list = PyList_New(0);
	for (size_t i = 0; list && lade_zarr_member(group, i); i++) {
		PyObject *name = PyUnicode_FromString(lade_zarr_member(group, i));
		if (!name || PyList_Append(list, name))
			Py_CLEAR(list);
		Py_XDECREF(name);
	}
	return list;
}

/* ---- creating ------------------------------------------------------------------------------- */

/* The numbers of a tuple in new memory, or NULL for None. */
static bool numbers(PyObject *tuple, uint64_t **out, size_t *count)
{
	*out = NULL;
	*count = 0;
	if (tuple == Py_None)
		return true;
	if (!PyTuple_Check(tuple)) {
		PyErr_Format(PyExc_TypeError, "%R is no tuple of integers", tuple);
		return false;
	}
	*count = (size_t)PyTuple_Size(tuple);
	*out = PyMem_Malloc((*count + 1) * sizeof(**out));
	if (!*out) {
		PyErr_NoMemory();
		return false;
	}
	for (size_t i = 0; i < *count; i++) {
		(*out)[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(tuple, (Py_ssize_t)i));
		if (PyErr_Occurred())
			return false;
	}
	return true;
}

/* A tuple with None or a tuple of sizes for each axis. */
static bool take_edges(PyObject *tuple, size_t ndim, lade_zarr_edges edges[PY_NDIM_MAX],
                       uint64_t *rooms[PY_NDIM_MAX])
{
	for (size_t i = 0; i < ndim; i++) {
		PyObject *one = PyTuple_GetItem(tuple, (Py_ssize_t)i);
		if (!one || !numbers(one, &rooms[i], &edges[i].count))
			return false;
		edges[i].sizes = rooms[i];
	}
	return true;
}

static bool take_names(PyObject *tuple, size_t ndim, const char *names[PY_NDIM_MAX])
{
	for (size_t i = 0; i < ndim; i++) {
		PyObject *one = PyTuple_GetItem(tuple, (Py_ssize_t)i);
		if (!one)
			return false;
		names[i] = one == Py_None ? NULL : PyUnicode_AsUTF8AndSize(one, NULL);
		if (one != Py_None && !names[i])
			return false;
	}
	return true;
}

/*
 * create(store, path, kind, format, attributes, shape, chunks, edges, type, fill, codecs, spec,
 * inner, index first, index codecs, names, fortran, v2 keys, separator, replace, find,
 * implementations)
 */
static PyObject *node_create(PyObject *cls, PyObject *args)
{
	PyTypeObject *type = (PyTypeObject *)cls;
	py_state *st = PyType_GetModuleState(type);
	lade_zarr_create_options options = {.struct_size = sizeof(options)};
	lade_zarr_description d = {.struct_size = sizeof(d)};
	PyObject *store_object, *shape, *chunks, *edges, *inner, *names, *out = NULL;
	int kind, format, index_first, fortran, v2_keys, separator, replace;
	PyObject *find = Py_None, *implementations = NULL;
	lade_zarr_options opening = {.struct_size = sizeof(opening)};
	py_codecs *codecs = NULL;
	uint64_t *dims = NULL, *sizes = NULL, *inner_sizes = NULL, *rooms[PY_NDIM_MAX] = {NULL};
	lade_zarr_edges edge[PY_NDIM_MAX] = {{0}};
	const char *name[PY_NDIM_MAX], *path;
	size_t count = 0, inner_count = 0;
	lade_zarr *node = NULL;
	const char *spec_text;
	lade_spec *spec = NULL;
	lade_store *store;
	lade_status status;
	lade_error err;

	if (!PyArg_ParseTuple(args, "OsiizOOOzzzzOpzOppip|OO!", &store_object, &path, &kind,
	                      &format, &d.attributes, &shape, &chunks, &edges, &d.type, &d.fill,
	                      &d.codecs, &spec_text, &inner, &index_first, &d.index_codecs,
	                      &names, &fortran, &v2_keys, &separator, &replace, &find,
	                      &PyTuple_Type, &implementations) ||
	    !take_store(st, store_object, &store))
		return NULL;
	if (!numbers(shape, &dims, &d.ndim) || !numbers(chunks, &sizes, &count) ||
	    !numbers(inner, &inner_sizes, &inner_count))
		goto out;
	if (d.ndim > PY_NDIM_MAX || (sizes && count != d.ndim) ||
	    (inner_sizes && inner_count != d.ndim)) {
		PyErr_Format(PyExc_ValueError,
		             "the shape has %zu axes, at most %d are possible, the chunks %zu and "
		             "inner chunks %zu",
		             d.ndim, PY_NDIM_MAX, sizes ? count : d.ndim,
		             inner_sizes ? inner_count : d.ndim);
		goto out;
	}
	if ((edges != Py_None && !take_edges(edges, d.ndim, edge, rooms)) ||
	    (names != Py_None && !take_names(names, d.ndim, name)))
		goto out;
	d.kind = (lade_zarr_kind)kind;
	d.format = (uint32_t)format;
	d.shape = dims;
	d.chunk_shape = sizes;
	d.edges = edges == Py_None ? NULL : edge;
	d.inner_shape = inner_sizes;
	d.index_first = index_first;
	d.dimension_names = names == Py_None ? NULL : name;
	d.fortran = fortran;
	d.v2_keys = v2_keys;
	d.separator = (char)separator;
	if (spec_text && lade_spec_parse(NULL, spec_text, &spec, &err)) {
		err.status = LADE_E_ARG; /* LADE_E_NOT_FOUND would be a node's */
		py_raise(st, &err, SIZE_MAX);
		goto out;
	}
	d.spec = spec;
	options.exists = replace ? LADE_ZARR_REPLACE : LADE_ZARR_KEEP;
	if (implementations && !py_codecs_new(st, find, implementations, &opening, &codecs))
		goto out;
	options.open = &opening;
	Py_BEGIN_ALLOW_THREADS
	status = lade_zarr_create(store, path, &d, &options, &node, &err);
	Py_END_ALLOW_THREADS
	out = status ? result(type, status, node, &err) : py_node_wrap(type, node, codecs);
out:
	py_codecs_unref(codecs);
	lade_spec_unref(spec);
	PyMem_Free(dims);
	PyMem_Free(sizes);
	PyMem_Free(inner_sizes);
	for (size_t i = 0; i < PY_NDIM_MAX; i++)
		PyMem_Free(rooms[i]);
	return out;
}

/* ---- describing ----------------------------------------------------------------------------- */

/* (class, size, name, unit, unit count, fields, big) */
static PyObject *describe_type(const lade_zarr_type *type)
{
	PyObject *fields = PyTuple_New((Py_ssize_t)type->field_count);

	for (size_t i = 0; fields && i < type->field_count; i++) {
		const lade_zarr_field *field = &type->fields[i];
		PyObject *of = describe_type(&field->type);
		PyObject *one = of ? Py_BuildValue("(sKN)", field->name,
		                                   (unsigned long long)field->off, of)
		                   : NULL;
		if (!one || PyTuple_SetItem(fields, (Py_ssize_t)i, one))
			Py_CLEAR(fields);
	}
	return fields ? Py_BuildValue("(iKszINO)", (int)type->cls, (unsigned long long)type->size,
	                              type->name, type->unit, (unsigned)type->unit_count, fields,
	                              type->big ? Py_True : Py_False)
	              : NULL;
}

/* (name, size, chunk size, chunk count, runs of (length, count)) */
static PyObject *describe_axis(const lade_zarr_axis *axis)
{
	PyObject *runs = PyTuple_New((Py_ssize_t)axis->run_count);

	for (size_t i = 0; runs && i < axis->run_count; i++) {
		PyObject *run = Py_BuildValue("(KK)", (unsigned long long)axis->runs[i].length,
		                              (unsigned long long)axis->runs[i].count);
		if (!run || PyTuple_SetItem(runs, (Py_ssize_t)i, run))
			Py_CLEAR(runs);
	}
	return runs ? Py_BuildValue("(zKKKN)", axis->name, (unsigned long long)axis->size,
	                            (unsigned long long)axis->chunk_size,
	                            (unsigned long long)axis->chunk_count, runs)
	            : NULL;
}

/* The text of a step's spec, or (name, why) of one that cannot run. */
static PyObject *describe_step(const lade_zarr_step *step)
{
	return step->spec ? PyUnicode_FromString(lade_spec_text(step->spec))
	                  : Py_BuildValue("(ss)", step->name, step->why ? step->why : "");
}

/* {order, swap, steps, shard} */
static PyObject *describe_chain(const lade_zarr_chain *chain, size_t ndim)
{
	PyObject *steps = PyList_New(0), *order = Py_NewRef(Py_None), *shard = NULL;

	for (size_t i = 0; steps && i < chain->step_count; i++) {
		PyObject *step = describe_step(&chain->steps[i]);
		if (!step || PyList_Append(steps, step))
			Py_CLEAR(steps);
		Py_XDECREF(step);
	}
	if (chain->order) {
		PY_REPLACE(order, PyTuple_New((Py_ssize_t)ndim));
		for (size_t i = 0; order && i < ndim; i++)
			PyTuple_SetItem(order, (Py_ssize_t)i, PyLong_FromSize_t(chain->order[i]));
	}
	if (chain->shard) {
		PyObject *shape = PyTuple_New((Py_ssize_t)ndim);
		for (size_t i = 0; shape && i < ndim; i++)
			PyTuple_SetItem(shape, (Py_ssize_t)i,
			                PyLong_FromUnsignedLongLong(chain->shard->chunk_shape[i]));
		shard = shape ? Py_BuildValue("{s:N,s:O,s:N,s:N}", "chunk_shape", shape,
		                              "index_first",
		                              chain->shard->index_first ? Py_True : Py_False,
		                              "chunks", describe_chain(&chain->shard->chunks, ndim),
		                              "index", describe_chain(&chain->shard->index, 0))
		              : NULL;
	} else {
		shard = Py_NewRef(Py_None);
	}
	if (!steps || !order || !shard) {
		Py_XDECREF(steps);
		Py_XDECREF(order);
		Py_XDECREF(shard);
		return NULL;
	}
	return Py_BuildValue("{s:N,s:n,s:N,s:N}", "order", order, "swap_size",
	                     (Py_ssize_t)chain->swap_size, "steps", steps, "shard", shard);
}

static PyObject *node_describe(PyObject *self, PyObject *unused)
{
	const py_node *node = (py_node *)(void *)self;
	const lade_zarr_array *a = node->array;
	PyObject *axes;

	(void)unused;
	if (!a)
		return Py_BuildValue("{s:s,s:i,s:s,s:s}", "kind", "group", "format",
		                     (int)lade_zarr_format(node->node), "path",
		                     lade_zarr_path(node->node), "attributes",
		                     lade_zarr_attributes(node->node));
	axes = PyTuple_New((Py_ssize_t)a->ndim);
	for (size_t i = 0; axes && i < a->ndim; i++) {
		PyObject *axis = describe_axis(&a->axes[i]);
		if (!axis || PyTuple_SetItem(axes, (Py_ssize_t)i, axis))
			Py_CLEAR(axes);
	}
	return axes ? Py_BuildValue("{s:s,s:i,s:s,s:s,s:N,s:N,s:y#,s:O,s:N}", "kind", "array",
	                            "format", (int)lade_zarr_format(node->node), "path",
	                            lade_zarr_path(node->node), "attributes",
	                            lade_zarr_attributes(node->node), "axes", axes, "type",
	                            describe_type(&a->type), "fill",
	                            a->fill_size ? (const char *)a->fill : "",
	                            (Py_ssize_t)a->fill_size, "fill_given",
	                            a->fill_given ? Py_True : Py_False, "chain",
	                            describe_chain(&a->chain, a->ndim))
	            : NULL;
}

/* ---- chunks --------------------------------------------------------------------------------- */

static PyObject *node_key(PyObject *self, PyObject *tuple)
{
	const py_node *node = (py_node *)(void *)self;
	char key[LADE_KEY_MAX + 1];
	uint64_t *index;
	size_t count;
	lade_error err;
	PyObject *out = NULL;

	if (numbers(tuple, &index, &count)) {
		lade_status status =
			node->array && count == node->array->ndim
				? lade_zarr_chunk_key(node->node, index, key, &err)
				: lade_fail(&err, LADE_E_ARG, LADE_NO_OFFSET,
		                            "%zu coordinates for an array of %zu axes", count,
		                            node->array ? node->array->ndim : 0);
		if (status)
			py_raise(node->st, &err, SIZE_MAX);
		else
			out = PyUnicode_FromString(key);
	}
	PyMem_Free(index);
	return out;
}

/* ---- changing ------------------------------------------------------------------------------- */

static PyObject *node_set_attributes(PyObject *self, PyObject *args)
{
	lade_zarr *node = NULL;
	lade_status status;
	const char *text;
	lade_error err;

	if (!PyArg_ParseTuple(args, "s", &text))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	status = lade_zarr_set_attributes(((py_node *)(void *)self)->node, text, &node, &err);
	Py_END_ALLOW_THREADS
	return changed(self, status, node, &err);
}

static PyObject *node_resize(PyObject *self, PyObject *tuple)
{
	const py_node *old = (py_node *)(void *)self;
	lade_zarr *node = NULL;
	PyObject *out = NULL;
	uint64_t *shape;
	size_t count;
	lade_status status;
	lade_error err;

	if (numbers(tuple, &shape, &count)) {
		if (!old->array || count != old->array->ndim) {
			PyErr_Format(PyExc_ValueError, "a shape of %zu axes for an array of %zu",
			             count, old->array ? old->array->ndim : 0);
		} else {
			Py_BEGIN_ALLOW_THREADS
			status = lade_zarr_resize(old->node, shape, &node, &err);
			Py_END_ALLOW_THREADS
			out = changed(self, status, node, &err);
		}
	}
	PyMem_Free(shape);
	return out;
}

static PyObject *node_consolidate(PyObject *self, PyObject *unused)
{
	lade_zarr *node = NULL;
	lade_status status;
	lade_error err;

	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	status = lade_zarr_consolidate(((py_node *)(void *)self)->node, &node, &err);
	Py_END_ALLOW_THREADS
	return result(Py_TYPE(self), status, node, &err);
}

/* delete(store, path) */
static PyObject *node_delete(PyObject *cls, PyObject *args)
{
	py_state *st = PyType_GetModuleState((PyTypeObject *)cls);
	PyObject *store_object;
	lade_store *store;
	lade_status status;
	const char *path;
	lade_error err;

	if (!PyArg_ParseTuple(args, "Os", &store_object, &path) ||
	    !take_store(st, store_object, &store))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	status = lade_zarr_delete(store, path, &err);
	Py_END_ALLOW_THREADS
	if (!status)
		Py_RETURN_NONE;
	py_raise(st, &err, SIZE_MAX);
	return NULL;
}

/* empty(shape, type string, kind, device, stream): an Array of memory of the library's. */
static PyObject *node_empty(PyObject *cls, PyObject *args)
{
	py_state *st = PyType_GetModuleState((PyTypeObject *)cls);
	Py_ssize_t dims[PY_NDIM_MAX], size;
	PyObject *shape, *stream_object;
	const char *text;
	uintptr_t stream;
	py_dtype dtype;
	py_array *array;
	int kind, device;

	if (!PyArg_ParseTuple(args, "O!siiO", &PyTuple_Type, &shape, &text, &kind, &device,
	                      &stream_object) ||
	    !py_stream_arg(stream_object, &stream) || !py_dims_arg(shape, dims))
		return NULL;
	if (!py_dtype_parse(text, &dtype)) {
		PyErr_Format(PyExc_ValueError, "there is no type \"%s\"", text);
		return NULL;
	}
	size = (Py_ssize_t)dtype.size;
	for (Py_ssize_t i = 0; i < PyTuple_Size(shape); i++) {
		if (dims[i] < 0 || __builtin_mul_overflow(size, dims[i], &size)) {
			PyErr_Format(PyExc_ValueError, "shape %R is not possible", shape);
			return NULL;
		}
	}
	array = py_array_new(st, (size_t)size, (lade_place){(lade_kind)kind, device}, stream);
	if (!array)
		return NULL;
	array->dtype = dtype;
	if (!py_array_shape(array, PyTuple_Size(shape), dims, NULL)) {
		Py_DECREF(array);
		return NULL;
	}
	return py_leave(st, (PyObject *)array, stream, stream_object);
}

static void node_dealloc(PyObject *self)
{
	lade_zarr *node = ((py_node *)(void *)self)->node;

	/* It may be the last reference of a store. */
	Py_BEGIN_ALLOW_THREADS
	lade_zarr_unref(node);
	Py_END_ALLOW_THREADS
	py_codecs_unref(((py_node *)(void *)self)->codecs);
	py_free(self);
}

#define FAST(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef methods[] = {
	{"open", node_open, METH_VARARGS | METH_CLASS, NULL},
	{"create", node_create, METH_VARARGS | METH_CLASS, NULL},
	{"delete", node_delete, METH_VARARGS | METH_CLASS, NULL},
	{"empty", node_empty, METH_VARARGS | METH_CLASS, NULL},
	{"member", node_member, METH_VARARGS, NULL},
	{"members", node_members, METH_NOARGS, NULL},
	{"describe", node_describe, METH_NOARGS, NULL},
	{"key", node_key, METH_O, NULL},
	{"set_attributes", node_set_attributes, METH_VARARGS, NULL},
	{"resize", node_resize, METH_O, NULL},
	{"consolidate", node_consolidate, METH_NOARGS, NULL},
	{"result", FAST(py_node_result), METH_FASTCALL, NULL},
	{"read", FAST(py_node_read), METH_FASTCALL, NULL},
	{"plan", FAST(py_node_plan), METH_FASTCALL, NULL},
	{"write", FAST(py_node_write), METH_FASTCALL, NULL},
	{"append", FAST(py_node_append), METH_FASTCALL, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_dealloc, node_dealloc},
	{Py_tp_methods, methods},
	{Py_tp_doc, "An open array or group."},
	{0, NULL},
};

PyType_Spec py_node_spec = {
	.name = "liblade._lade.ZarrNode",
	.basicsize = sizeof(py_node),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
	         Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
