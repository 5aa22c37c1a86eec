/*
 * rntuple_arrow.c: columns as Arrow's C structs: its C data interface, and that of devices.
 *
 * Python gives a tree; each node is (name, format, flags, length, null_count, buffers, children).
 * Buffers are objects with memory, or None.  Every call makes structs of its own, which share the
 * memory and may be moved and released in any order, on any thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "arrow_abi.h"
#include "rntuple_py.h"

#include <string.h>

enum { ON_CPU = 1, ON_CUDA = 2 };
enum { LEVELS_MAX = 200 };

typedef struct node {
	const char *name, *format;
	int flags;
	long long length, null_count;
	PyObject *buffers, *children;
} node;

typedef struct data {
	PyObject_HEAD
	py_state *st;
	PyObject *tree;
	int device_type, device_id;
} data;

static bool read_node(PyObject *tree, node *n)
{
	return PyArg_ParseTuple(tree, "ssiLLO!O!", &n->name, &n->format, &n->flags, &n->length,
	                        &n->null_count, &PyTuple_Type, &n->buffers, &PyTuple_Type,
	                        &n->children);
}

/* ---- schemas ---------------------------------------------------------------------------- */

static void schema_release(struct ArrowSchema *schema)
{
	for (int64_t i = 0; i < schema->n_children; i++) {
		struct ArrowSchema *child = schema->children[i];
		if (child && child->release)
			child->release(child);
		free(child);
	}
	free(schema->children);
	free(schema->private_data); /* both texts */
	schema->release = NULL;
}

static bool make_schema(PyObject *tree, struct ArrowSchema *schema, int level)
{
	size_t format_size, name_size;
	char *texts;
	node n;

	memset(schema, 0, sizeof(*schema));
	if (!read_node(tree, &n))
		return false;
	if (level > LEVELS_MAX) {
		PyErr_SetString(PyExc_RecursionError, "more than 200 levels of fields");
		return false;
	}
	schema->release = schema_release;
	format_size = strlen(n.format) + 1;
	name_size = strlen(n.name) + 1;
	size_t count = (size_t)PyTuple_Size(n.children);
	schema->private_data = texts = malloc(format_size + name_size);
	schema->children = calloc(count + 1, sizeof(*schema->children));
	bool ok = texts && schema->children;
	if (ok) {
		schema->format = memcpy(texts, n.format, format_size);
		schema->name = memcpy(texts + format_size, n.name, name_size);
		schema->flags = n.flags;
	} else {
		PyErr_NoMemory();
	}
	for (size_t i = 0; ok && i < count; i++) {
		struct ArrowSchema *child = calloc(1, sizeof(*child));
		schema->children[schema->n_children++] = child;
		ok = child && make_schema(PyTuple_GetItem(n.children, (Py_ssize_t)i), child,
		                          level + 1);
		if (!child)
			PyErr_NoMemory();
	}
	if (!ok)
		schema_release(schema);
	return ok;
}

/* ---- arrays ----------------------------------------------------------------------------- */

typedef struct kept {
	PyObject *arrays; /* a tuple, whose memory the buffers are */
	const void *buffers[3];
} kept;

static void array_release(struct ArrowArray *array)
{
	kept *k = array->private_data;

	for (int64_t i = 0; i < array->n_children; i++) {
		struct ArrowArray *child = array->children[i];
		if (child && child->release)
			child->release(child);
		free(child);
	}
	free(array->children);
	if (k && k->arrays) {
		PyGILState_STATE gil = PyGILState_Ensure();
		Py_DECREF(k->arrays);
		PyGILState_Release(gil);
	}
	free(k);
	array->release = NULL;
}

/* The addresses of the buffers. */
static bool take_buffers(py_state *st, PyObject *buffers, kept *k, struct ArrowArray *array)
{
	Py_ssize_t count = PyTuple_Size(buffers);

	if (count > 3) {
		PyErr_SetString(PyExc_ValueError, "more than 3 buffers");
		return false;
	}
	k->arrays = PyTuple_New(count);
	for (Py_ssize_t i = 0; k->arrays && i < count; i++) {
		PyObject *object = PyTuple_GetItem(buffers, i);
		PyObject *held = object == Py_None ? Py_NewRef(object)
		                                   : (PyObject *)py_array_from(st, object, 0);
		if (!held || PyTuple_SetItem(k->arrays, i, held))
			return false;
		if (object != Py_None) {
			py_array_share((py_array *)held);
			k->buffers[i] = ((py_array *)held)->data;
		}
	}
	array->n_buffers = count;
	array->buffers = k->buffers;
	return k->arrays != NULL;
}

static bool make_array(py_state *st, PyObject *tree, struct ArrowArray *array, int level)
{
	kept *k;
	node n;

	memset(array, 0, sizeof(*array));
	if (!read_node(tree, &n))
		return false;
	if (level > LEVELS_MAX) {
		PyErr_SetString(PyExc_RecursionError, "more than 200 levels of fields");
		return false;
	}
	size_t count = (size_t)PyTuple_Size(n.children);
	array->release = array_release;
	array->length = n.length;
	array->null_count = n.null_count;
	array->private_data = k = calloc(1, sizeof(*k));
	array->children = calloc(count + 1, sizeof(*array->children));
	bool ok = k && array->children;
	if (!ok)
		PyErr_NoMemory();
	ok = ok && take_buffers(st, n.buffers, k, array);
	for (size_t i = 0; ok && i < count; i++) {
		struct ArrowArray *child = calloc(1, sizeof(*child));
		array->children[array->n_children++] = child;
		ok = child && make_array(st, PyTuple_GetItem(n.children, (Py_ssize_t)i), child,
		                         level + 1);
		if (!child)
			PyErr_NoMemory();
	}
	if (!ok)
		array_release(array);
	return ok;
}

/* ---- capsules --------------------------------------------------------------------------- */

#define NAME_SCHEMA "arrow_schema"
#define NAME_ARRAY "arrow_array"
#define NAME_DEVICE "arrow_device_array"

/* What nobody took is released; the struct itself is the capsule's. */
static void end_schema(PyObject *capsule)
{
	struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, NAME_SCHEMA);

	if (schema && schema->release)
		schema->release(schema);
	free(schema);
}

static void end_array(PyObject *capsule)
{
	struct ArrowArray *array = PyCapsule_GetPointer(capsule, NAME_ARRAY);

	if (array && array->release)
		array->release(array);
	free(array);
}

static void end_device(PyObject *capsule)
{
	struct ArrowDeviceArray *array = PyCapsule_GetPointer(capsule, NAME_DEVICE);

	if (array && array->array.release)
		array->array.release(&array->array);
	free(array);
}

static PyObject *schema_capsule(PyObject *self, PyObject *unused)
{
	struct ArrowSchema *schema = calloc(1, sizeof(*schema));
	PyObject *capsule = NULL;

	(void)unused;
	if (!schema)
		return PyErr_NoMemory();
	if (make_schema(((data *)self)->tree, schema, 0)) {
		capsule = PyCapsule_New(schema, NAME_SCHEMA, end_schema);
		if (!capsule)
			schema->release(schema);
	}
	if (!capsule)
		free(schema);
	return capsule;
}

/* Both capsules; 'device': the struct of devices, which begins with that of an array. */
static PyObject *capsules(PyObject *self, bool device)
{
	data *d = (data *)self;
	struct ArrowDeviceArray *array = calloc(1, sizeof(*array));
	PyObject *capsule = NULL, *schema;

	if (!array)
		return PyErr_NoMemory();
	array->device_type = d->device_type;
	array->device_id = d->device_id;
	if (make_array(d->st, d->tree, &array->array, 0)) {
		capsule = PyCapsule_New(array, device ? NAME_DEVICE : NAME_ARRAY,
		                        device ? end_device : end_array);
		if (!capsule)
			array->array.release(&array->array);
	}
	if (!capsule) {
		free(array);
		return NULL;
	}
	schema = schema_capsule(self, NULL);
	if (!schema) {
		Py_DECREF(capsule);
		return NULL;
	}
	return Py_BuildValue("(NN)", schema, capsule);
}

static PyObject *array_capsules(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)args; /* a requested schema is a wish that need not be met */
	(void)kwargs;
	if (((data *)self)->device_type == ON_CPU)
		return capsules(self, false);
	PyErr_SetString(PyExc_ValueError,
	                "the columns are on a device: use __arrow_c_device_array__()");
	return NULL;
}

static PyObject *device_capsules(PyObject *self, PyObject *args, PyObject *kwargs)
{
	(void)args;
	(void)kwargs;
	return capsules(self, true);
}

/* ---- the type --------------------------------------------------------------------------- */

/* __new__(tree, device): -1 is the host. */
static PyObject *data_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	py_state *st = PyType_GetModuleState(type);
	PyObject *tree;
	data *d;
	int device;

	(void)kwargs;
	if (!st || !PyArg_ParseTuple(args, "O!i", &PyTuple_Type, &tree, &device))
		return NULL;
	if (!st->main_interpreter) {
		PyErr_SetString(PyExc_NotImplementedError,
		                "Arrow's structs are made in the main interpreter alone");
		return NULL;
	}
	d = (data *)PyType_GenericAlloc(type, 0);
	if (!d)
		return NULL;
	d->st = st;
	d->tree = Py_NewRef(tree);
	d->device_type = device < 0 ? ON_CPU : ON_CUDA;
	d->device_id = device;
	return (PyObject *)d;
}

static Py_ssize_t data_length(PyObject *self)
{
	node n;

	return read_node(((data *)self)->tree, &n) ? (Py_ssize_t)n.length : -1;
}

static int data_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(((data *)self)->tree);
	return 0;
}

static void data_dealloc(PyObject *self)
{
	PyObject_GC_UnTrack(self);
	Py_XDECREF(((data *)self)->tree);
	py_free(self);
}

#define KEYWORDS(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef methods[] = {
	{"__arrow_c_schema__", schema_capsule, METH_NOARGS, "A capsule of an ArrowSchema."},
	{"__arrow_c_array__", KEYWORDS(array_capsules), METH_VARARGS | METH_KEYWORDS,
	 "Capsules of an ArrowSchema and an ArrowArray, of columns on the host."},
	{"__arrow_c_device_array__", KEYWORDS(device_capsules), METH_VARARGS | METH_KEYWORDS,
	 "Capsules of an ArrowSchema and an ArrowDeviceArray."},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "Columns for Arrow; pyarrow.record_batch() and others take it."},
	{Py_tp_new, data_new},
	{Py_tp_dealloc, data_dealloc},
	{Py_tp_traverse, data_traverse},
	{Py_tp_methods, methods},
	{Py_mp_length, data_length},
	{0, NULL},
};

PyType_Spec py_arrow_spec = {
	.name = "liblade._lade.ArrowData",
	.basicsize = sizeof(data),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
