/*
 * zarr_read.c: reads and writes of selections, and plans of reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr_py.h"

#include <string.h>

/* ---- options -------------------------------------------------------------------------------- */

/* The options of a call: a dictionary, or None. */
typedef struct options {
	uintptr_t stream;
	long long threads, flags, where, device, memory, budget, text_max;
} options;

static bool take_number(PyObject *dict, const char *name, long long *out)
{
	PyObject *value = PyDict_GetItemString(dict, name);

	if (value)
		*out = PyLong_AsLongLong(value);
	if (!PyErr_Occurred() && *out >= 0)
		return true;
	if (!PyErr_Occurred())
		PyErr_Format(PyExc_ValueError, "%s is below 0", name);
	return false;
}

static bool take_options(PyObject *dict, options *out)
{
	PyObject *stream;

	*out = (options){0};
	if (dict == Py_None)
		return true;
	if (!PyDict_Check(dict)) {
		PyErr_SetString(PyExc_TypeError, "options are no dictionary");
		return false;
	}
	stream = PyDict_GetItemString(dict, "stream");
	return (!stream || py_stream_arg(stream, &out->stream)) &&
	       take_number(dict, "threads", &out->threads) &&
	       take_number(dict, "flags", &out->flags) &&
	       take_number(dict, "where", &out->where) &&
	       take_number(dict, "device", &out->device) &&
	       take_number(dict, "memory", &out->memory) &&
	       take_number(dict, "device_budget", &out->budget) &&
	       take_number(dict, "text_max", &out->text_max);
}

static lade_zarr_read_options read_options(const options *o)
{
	return (lade_zarr_read_options){.struct_size = sizeof(lade_zarr_read_options),
	                                .threads = (unsigned)o->threads,
	                                .flags = (uint32_t)o->flags,
	                                .where = (lade_where)o->where,
	                                .device = (int32_t)o->device,
	                                .stream = (lade_stream)o->stream,
	                                .memory = (uint64_t)o->memory,
	                                .device_budget = (uint64_t)o->budget,
	                                .text_max = (uint64_t)o->text_max};
}

/* Calls that move less than this are not interrupted. */
#define LONG_SIZE ((uint64_t)1 << 20)

static bool is_array(const py_node *node)
{
	if (!node->array)
		PyErr_SetString(PyExc_TypeError, "the node is a group, not an array");
	return node->array != NULL;
}

/* ---- memory of a call ----------------------------------------------------------------------- */

/* The memory of the caller's array: elements of a result, by strides. */
typedef struct memory {
	py_mem mem;
	lade_span span;
	size_t offset;
	const ptrdiff_t *strides; /* NULL: C order */
	ptrdiff_t own[PY_NDIM_MAX];
} memory;

static PyObject *tuple_of(const uint64_t *shape, size_t ndim)
{
	PyObject *tuple = PyTuple_New((Py_ssize_t)ndim);

	for (size_t i = 0; tuple && i < ndim; i++) {
		PyObject *one = PyLong_FromUnsignedLongLong(shape[i]);
		if (!one || PyTuple_SetItem(tuple, (Py_ssize_t)i, one))
			Py_CLEAR(tuple);
	}
	return tuple;
}

static bool wrong_shape(const lade_zarr_shape *want, const py_array *have)
{
	uint64_t shape[PY_NDIM_MAX];
	PyObject *a, *b;

	for (int i = 0; i < have->ndim; i++)
		shape[i] = (uint64_t)have->shape[i];
	a = tuple_of(want->shape, want->ndim);
	b = tuple_of(shape, (size_t)have->ndim);
	if (a && b)
		PyErr_Format(PyExc_ValueError,
		             "the selection has shape %R and elements of %zu bytes, the array has "
		             "%R and %u",
		             a, want->elem_size, b, (unsigned)have->dtype.size);
	Py_XDECREF(a);
	Py_XDECREF(b);
	return false;
}

/* The kinds of py_dtype that elements of a type may be in: bytes go everywhere. */
static bool kinds_fit(const lade_zarr_type *type, const py_dtype *dtype)
{
	static const char kinds[] = {
		[LADE_ZARR_BOOL] = 'b',  [LADE_ZARR_INT] = 'i',     [LADE_ZARR_UINT] = 'u',
		[LADE_ZARR_FLOAT] = 'f', [LADE_ZARR_COMPLEX] = 'c',
	};
	char kind = (size_t)type->cls < sizeof(kinds) ? kinds[type->cls] : 0;

	return !kind || dtype->kind == 'V' || (dtype->kind == kind && !dtype->big);
}

/* The strides of an array of 'ndim' axes; with 'spread' those of a broadcast to 'want'. */
static bool take_strides(const py_array *array, const lade_zarr_shape *want, bool spread,
                         memory *out)
{
	size_t missing = want->ndim - (size_t)array->ndim;

	if ((size_t)array->ndim > want->ndim || (!spread && missing))
		return false;
	for (size_t i = 0; i < want->ndim; i++) {
		uint64_t have = i < missing ? 1 : (uint64_t)array->shape[i - missing];
		if (have != want->shape[i] && !(spread && have == 1))
			return false;
		out->own[i] = have == want->shape[i] && i >= missing ? array->strides[i - missing]
		                                                     : 0;
	}
	return true;
}

/* What an object's memory must be. */
typedef struct wanted {
	py_state *st;
	const lade_zarr_shape *shape;
	uintptr_t stream; /* orders its use */
	bool writable;
	bool trusted; /* the object was made for this shape */
	bool spread;  /* smaller arrays are broadcast */
} wanted;

static bool take_memory(const wanted *w, PyObject *object, memory *out)
{
	const lade_zarr_shape *want = w->shape;
	py_array *array;
	char *first;
	size_t extent;

	out->strides = NULL;
	out->offset = 0;
	if (w->trusted && py_mem_simple(w->st, object, w->writable, &out->mem) &&
	    out->mem.size == want->size) {
		out->span = lade_host_span(out->mem.data, out->mem.size);
		return true;
	}
	out->mem = (py_mem){0};
	array = py_array_from(w->st, object, w->stream);
	if (!array)
		return false;
	if (w->writable && array->readonly) {
		PyErr_SetString(PyExc_ValueError, "the memory is read-only");
		Py_DECREF(array);
		return false;
	}
	if (array->dtype.size != want->elem_size || !take_strides(array, want, w->spread, out)) {
		wrong_shape(want, array);
		Py_DECREF(array);
		return false;
	}
	if (!kinds_fit(&want->type, &array->dtype)) {
		char text[24];
		py_dtype_text(array->dtype, text);
		PyErr_Format(PyExc_TypeError, "elements are %s, the array has %s",
		             want->type.name, text);
		Py_DECREF(array);
		return false;
	}
	if (!py_array_synchronize(array)) {
		Py_DECREF(array);
		return false;
	}
	py_layout(array, &first, &extent);
	out->offset = (size_t)(array->data - first);
	out->span = (lade_span){first, extent, array->place};
	out->strides = out->own;
	out->mem.array = array;
	py_pin(array);
	return true;
}

/* ---- where each chunk goes ------------------------------------------------------------------ */

/* A callable that is asked for each chunk, and what it gave. */
typedef struct placing {
	py_state *st;
	py_home_of home;
	PyObject *function;
	PyObject *given;  /* a list of (start, array) */
	PyObject *raised; /* the first exception, or NULL */
	PyObject *held;   /* a list of Arrays, whose memory is written */
	lade_zarr_type type;
	size_t elem_size;
	uintptr_t stream;
} placing;

/* With the interpreter. */
static bool place_box(placing *p, const lade_zarr_box *box, lade_zarr_place *out)
{
	lade_zarr_shape want = {.struct_size = sizeof(want), .ndim = box->ndim,
	                        .elem_size = p->elem_size, .type = p->type};
	PyObject *start = tuple_of(box->start, box->ndim), *count = tuple_of(box->count, box->ndim);
	PyObject *given = NULL, *pair = NULL;
	wanted w = {p->st, &want, p->stream, true, false, false};
	memory m;
	bool ok = false;

	if (start && count)
		given = PyObject_CallFunction(p->function, "OOs", start, count, box->key);
	memcpy(want.shape, box->count, box->ndim * sizeof(want.shape[0]));
	want.size = want.elem_size;
	for (size_t i = 0; i < box->ndim; i++)
		want.size *= want.shape[i];
	if (given && take_memory(&w, given, &m)) {
		out->span = m.span;
		out->offset = m.offset;
		if (m.strides)
			memcpy(out->strides, m.strides, box->ndim * sizeof(out->strides[0]));
		pair = PyTuple_Pack(2, start, given);
		ok = pair && !PyList_Append(p->given, pair) &&
		     !PyList_Append(p->held, (PyObject *)m.mem.array);
		py_mem_release(&m.mem);
	}
	Py_XDECREF(pair);
	Py_XDECREF(start);
	Py_XDECREF(count);
	Py_XDECREF(given);
	return ok;
}

static lade_status place_one(void *ctx, const lade_zarr_box *box, lade_zarr_place *out,
                             lade_error *err)
{
	lade_status status = LADE_OK;
	placing *p = ctx;
	py_entered in;

	if (!py_enter(&p->home, &in))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a thread's state");
	if (!place_box(p, box, out)) {
		PyObject *raised = PyErr_GetRaisedException();
		if (p->raised)
			Py_XDECREF(raised);
		else
			p->raised = raised;
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "place() raised an exception");
	}
	py_exit(&in);
	return status;
}

/* ---- plans ---------------------------------------------------------------------------------- */

typedef struct py_plan {
	PyObject_HEAD
	py_state *st;
	lade_zarr_plan *plan;
	PyObject *node, *out;  /* 'out' NULL: strings, or chunks that were placed */
	memory target;
	bool has_target;
	placing placing; /* function NULL: none */
	lade_cancel *cancel;
	lade_zarr_shape shape;
	atomic_flag busy;
	py_wait wait; /* of the call that runs */
} py_plan;


static PyObject *report_of(const lade_zarr_report *r)
{
#define N(field) #field, (unsigned long long)r->field
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}",
	                     N(chunk_count), N(missing_count), N(index_count), N(direct_count),
	                     N(decoded_size), N(written_size), N(filled_size), N(copied_size),
	                     N(request_count), N(retry_count), N(wanted_size), N(moved_size),
	                     N(ns));
}

/* The arguments that reads share: key, mode, field, out, makes, options. */
typedef struct call {
	py_selection selection;
	lade_zarr_shape shape;
	options options;
	PyObject *out;
	bool makes;
} call;

static bool take_call(const py_node *node, PyObject *const *args, Py_ssize_t count, call *out)
{
	const char *field = NULL;
	lade_status status;
	lade_error err;
	long mode;

	if (count < 6) {
		PyErr_Format(PyExc_TypeError, "%zd arguments, want 6", count);
		return false;
	}
	mode = PyLong_AsLong(args[1]);
	if (PyErr_Occurred() ||
	    (args[2] != Py_None && !(field = PyUnicode_AsUTF8AndSize(args[2], NULL))) ||
	    !is_array(node) || !take_options(args[5], &out->options) ||
	    !py_selection_parse(node->array, args[0], (int)mode, field, &out->selection))
		return false;
	out->out = args[3];
	out->makes = args[4] == Py_True;
	out->shape = (lade_zarr_shape){.struct_size = sizeof(out->shape)};
	status = lade_zarr_selection_shape(node->node, &out->selection.selection, &out->shape,
	                                   &err);
	if (!status)
		return true;
	py_selection_release(&out->selection);
	if (status == LADE_E_RANGE)
		PyErr_SetString(PyExc_IndexError, err.message);
	else
		py_raise(node->st, &err, SIZE_MAX);
	return false;
}

/* The result's memory: an array of the caller's, or from a callable that is given the shape. */
static bool target_of(const py_node *node, const call *c, PyObject **object, memory *m)
{
	wanted w = {node->st, &c->shape, c->options.stream, true, c->makes, false};

	if (c->makes) {
		PyObject *tuple = tuple_of(c->shape.shape, c->shape.ndim);
		*object = tuple ? PyObject_CallFunctionObjArgs(c->out, tuple, NULL) : NULL;
		Py_XDECREF(tuple);
	} else {
		*object = Py_NewRef(c->out);
	}
	if (*object && take_memory(&w, *object, m))
		return true;
	Py_CLEAR(*object);
	return false;
}

/* result(key, mode, field): the shape of what it reads. */
PyObject *py_node_result(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	PyObject *all[6] = {NULL, NULL, NULL, Py_None, Py_False, Py_None}, *out;
	call c;

	for (Py_ssize_t i = 0; i < count && i < 3; i++)
		all[i] = args[i];
	if (!take_call((py_node *)(void *)self, all, count == 3 ? 6 : 0, &c))
		return NULL;
	out = tuple_of(c.shape.shape, c.shape.ndim);
	py_selection_release(&c.selection);
	return out;
}

/* read(key, mode, field, out, makes, options): the object that was read into. */
PyObject *py_node_read(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	const py_node *node = (py_node *)(void *)self;
	lade_zarr_target target = {.struct_size = sizeof(target)};
	lade_zarr_read_options o;
	PyObject *object = NULL;
	lade_status status;
	lade_error err;
	py_wait wait;
	memory m;
	call c;

	if (!take_call(node, args, count, &c))
		return NULL;
	if (target_of(node, &c, &object, &m)) {
		target.span = m.span;
		target.offset = m.offset;
		target.strides = m.strides;
		o = read_options(&c.options);
		py_wait_begin(&wait, c.shape.size >= LONG_SIZE);
		o.cancel = wait.cancel;
		status = lade_zarr_read(node->node, &c.selection.selection, &target, &o, NULL,
		                        &err);
		if (!py_wait_end(&wait)) {
			Py_CLEAR(object);
		} else if (status) {
			py_raise(node->st, &err, SIZE_MAX);
			Py_CLEAR(object);
		}
		py_mem_release(&m.mem);
	}
	py_selection_release(&c.selection);
	return object;
}

/*
 * plan(key, mode, field, out, makes, options): the same, ready to run.  'out' may be a callable
 * that is asked for the memory of each chunk (makes: None), or None for elements of any length.
 */
PyObject *py_node_plan(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	const py_node *node = (py_node *)(void *)self;
	PyTypeObject *type = node->st->plan_type;
	lade_zarr_target target = {.struct_size = sizeof(target)};
	bool ok = true, texts;
	lade_zarr_read_options o;
	lade_status status;
	lade_error err;
	py_plan *plan;
	call c;

	if (!take_call(node, args, count, &c))
		return NULL;
	plan = (py_plan *)(void *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
	if (!plan) {
		py_selection_release(&c.selection);
		return NULL;
	}
	plan->st = node->st;
	plan->node = Py_NewRef(self);
	plan->shape = c.shape;
	atomic_flag_clear(&plan->busy);
	texts = !c.shape.elem_size;
	o = read_options(&c.options);
	if (lade_cancel_new(py_wait_poll, &plan->wait, &plan->cancel, &err)) {
		py_raise(node->st, &err, SIZE_MAX);
		ok = false;
	} else if (!texts && args[4] == Py_None) {
		plan->placing = (placing){.st = node->st, .home = py_home_now(node->st),
		                          .function = Py_NewRef(c.out), .given = PyList_New(0),
		                          .held = PyList_New(0), .type = c.shape.type,
		                          .elem_size = c.shape.elem_size,
		                          .stream = c.options.stream};
		target.place = place_one;
		target.ctx = &plan->placing;
		ok = plan->placing.given && plan->placing.held;
	} else if (!texts) {
		ok = target_of(node, &c, &plan->out, &plan->target);
		plan->has_target = ok;
		if (ok) {
			target.span = plan->target.span;
			target.offset = plan->target.offset;
			target.strides = plan->target.strides;
		}
	}
	if (ok) {
		o.cancel = plan->cancel;
		Py_BEGIN_ALLOW_THREADS
		status = lade_zarr_plan_new(node->node, &c.selection.selection,
		                            texts ? NULL : &target, &o, &plan->plan, &err);
		Py_END_ALLOW_THREADS
		if (status)
			py_raise(node->st, &err, SIZE_MAX);
		ok = !status;
	}
	py_selection_release(&c.selection);
	if (!ok) {
		Py_DECREF(plan);
		return NULL;
	}
	return (PyObject *)plan;
}

static PyObject *plan_info(PyObject *self, PyObject *unused)
{
	const py_plan *plan = (py_plan *)(void *)self;
	lade_zarr_plan_info info = {.struct_size = sizeof(info)}, *r = &info;
	lade_error err;

	(void)unused;
	if (lade_zarr_plan_get_info(plan->plan, &info, &err)) {
		py_raise(plan->st, &err, SIZE_MAX);
		return NULL;
	}
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:O,s:O,s:s}", N(chunk_count),
	                     N(shard_count), N(range_count), N(direct_count), N(result_size),
	                     N(decoded_size), N(device_size), N(host_memory), N(pinned_memory),
	                     "local", info.local ? Py_True : Py_False, "in_parts",
	                     info.in_parts ? Py_True : Py_False, "text", info.text);
}
#undef N

/* (offsets, data) of elements of any length: bytes of int64, and bytes. */
static PyObject *texts_of(py_plan *plan)
{
	PyObject *offsets = NULL, *data = NULL;
	uint64_t count, size;
	lade_status status;
	lade_error err;

	status = lade_zarr_plan_texts(plan->plan, &count, &size, &err);
	if (!status && (count >= PY_SSIZE_T_MAX / 8 || size > PY_SSIZE_T_MAX))
		status = lade_fail(&err, LADE_E_LIMIT, LADE_NO_OFFSET, "too many bytes");
	if (!status) {
		offsets = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * (count + 1)));
		data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
		if (!offsets || !data)
			goto fail;
		lade_span a = lade_host_span(PyBytes_AsString(offsets), (size_t)(8 * (count + 1)));
		lade_span b = lade_host_span(PyBytes_AsString(data), (size_t)size);
		Py_BEGIN_ALLOW_THREADS
		status = lade_zarr_plan_fill(plan->plan, a, b, &err);
		Py_END_ALLOW_THREADS
	}
	if (!status)
		return Py_BuildValue("(NN)", offsets, data);
	py_raise(plan->st, &err, SIZE_MAX);
fail:
	Py_XDECREF(offsets);
	Py_XDECREF(data);
	return NULL;
}

/* What a plan that ran has: the target, the list of chunks that were placed, or texts. */
static PyObject *outcome(py_plan *plan)
{
	if (plan->placing.function)
		return Py_NewRef(plan->placing.given);
	return plan->out ? Py_NewRef(plan->out) : texts_of(plan);
}

/* run(): (the result, the report) */
static PyObject *plan_run(PyObject *self, PyObject *unused)
{
	py_plan *plan = (py_plan *)(void *)self;
	lade_zarr_report report = {.struct_size = sizeof(report)};
	PyObject *out = NULL, *raised;
	lade_status status;
	lade_error err;

	(void)unused;
	if (atomic_flag_test_and_set(&plan->busy)) {
		PyErr_SetString(PyExc_RuntimeError, "the plan is running");
		return NULL;
	}
	plan->wait = (py_wait){.saved = PyEval_SaveThread()};
	status = lade_zarr_plan_run(plan->plan, &report, &err);
	if (py_wait_end(&plan->wait)) {
		raised = plan->placing.raised;
		plan->placing.raised = NULL;
		if (raised)
			PyErr_SetRaisedException(raised);
		else if (status)
			py_raise(plan->st, &err, SIZE_MAX);
		else
			out = Py_BuildValue("(NN)", outcome(plan), report_of(&report));
	}
	lade_cancel_clear(plan->cancel);
	atomic_flag_clear(&plan->busy);
	return out;
}

static PyObject *plan_shape(PyObject *self, void *unused)
{
	const py_plan *plan = (py_plan *)(void *)self;

	(void)unused;
	return tuple_of(plan->shape.shape, plan->shape.ndim);
}

static void plan_dealloc(PyObject *self)
{
	py_plan *plan = (py_plan *)(void *)self;

	Py_BEGIN_ALLOW_THREADS
	lade_zarr_plan_free(plan->plan);
	lade_cancel_free(plan->cancel);
	Py_END_ALLOW_THREADS
	if (plan->has_target)
		py_mem_release(&plan->target.mem);
	Py_XDECREF(plan->placing.function);
	Py_XDECREF(plan->placing.given);
	Py_XDECREF(plan->placing.held);
	Py_XDECREF(plan->placing.raised);
	Py_XDECREF(plan->out);
	Py_XDECREF(plan->node);
	py_free(self);
}

static PyMethodDef plan_methods[] = {
	{"info", plan_info, METH_NOARGS, NULL},
	{"run", plan_run, METH_NOARGS, NULL},
	{0},
};

static PyGetSetDef plan_getters[] = {
	{"shape", plan_shape, NULL, NULL, NULL},
	{0},
};

static PyType_Slot plan_slots[] = {
	{Py_tp_dealloc, plan_dealloc},
	{Py_tp_methods, plan_methods},
	{Py_tp_getset, plan_getters},
	{Py_tp_doc, "A read that is ready to run."},
	{0, NULL},
};

PyType_Spec py_plan_spec = {
	.name = "liblade._lade.ZarrPlan",
	.basicsize = sizeof(py_plan),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
	         Py_TPFLAGS_IMMUTABLETYPE,
	.slots = plan_slots,
};

/* ---- writing -------------------------------------------------------------------------------- */

static lade_zarr_write_options write_options(const options *o)
{
	return (lade_zarr_write_options){.struct_size = sizeof(lade_zarr_write_options),
	                                 .threads = (unsigned)o->threads,
	                                 .flags = (uint32_t)o->flags,
	                                 .where = (lade_where)o->where,
	                                 .device = (int32_t)o->device,
	                                 .stream = (lade_stream)o->stream};
}

/* Elements to write: an array of any place, or (offsets, data) of elements of any length. */
static bool take_source(const wanted *w, PyObject *object, memory *m, py_mem *offsets,
                        lade_zarr_source *out)
{
	*out = (lade_zarr_source){.struct_size = sizeof(*out)};
	if (w->shape->elem_size) {
		if (!take_memory(w, object, m))
			return false;
		out->span = (lade_cspan){m->span.data, m->span.size, m->span.place};
		out->offset = m->offset;
		out->strides = m->strides;
		return true;
	}
	if (!PyTuple_Check(object) || PyTuple_Size(object) != 2) {
		PyErr_SetString(PyExc_TypeError, "elements of any length are (offsets, data)");
		return false;
	}
	if (!py_mem_read(w->st, PyTuple_GetItem(object, 0), offsets))
		return false;
	if (offsets->size != 8 * (w->shape->count + 1)) {
		PyErr_Format(PyExc_ValueError, "%zu bytes of offsets, want %llu", offsets->size,
		             (unsigned long long)(8 * (w->shape->count + 1)));
		py_mem_release(offsets);
		return false;
	}
	if (!py_mem_read(w->st, PyTuple_GetItem(object, 1), &m->mem)) {
		py_mem_release(offsets);
		return false;
	}
	out->span = (lade_cspan){m->mem.data, m->mem.size, m->mem.place};
	out->offsets = (const int64_t *)(const void *)offsets->data;
	return true;
}

static PyObject *write_report(const lade_zarr_write_report *r)
{
#define N(field) #field, (unsigned long long)r->field
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", N(value_count),
	                     N(delete_count), N(chunk_count), N(partial_count), N(conflict_count),
	                     N(source_size), N(written_size), N(kept_size), N(read_size), N(ns));
#undef N
}

/* write(key, mode, field, source, None, options, report): None, or with report a dictionary. */
PyObject *py_node_write(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	const py_node *node = (py_node *)(void *)self;
	lade_zarr_write_report report = {.struct_size = sizeof(report)};
	lade_zarr_write_options o;
	lade_zarr_source source;
	PyObject *out = NULL;
	py_mem offsets = {0};
	lade_status status;
	lade_error err;
	py_wait wait;
	memory m = {0};
	wanted w;
	call c;

	if (!take_call(node, args, count, &c))
		return NULL;
	w = (wanted){node->st, &c.shape, c.options.stream, false, false, true};
	if (take_source(&w, c.out, &m, &offsets, &source)) {
		o = write_options(&c.options);
		py_wait_begin(&wait, c.shape.size >= LONG_SIZE);
		o.cancel = wait.cancel;
		status = lade_zarr_write(node->node, &c.selection.selection, &source, &o, &report,
		                         &err);
		if (py_wait_end(&wait)) {
			if (status)
				py_raise(node->st, &err, SIZE_MAX);
			else
				out = count > 6 ? write_report(&report) : Py_NewRef(Py_None);
		}
		py_mem_release(&m.mem);
		py_mem_release(&offsets);
	}
	py_selection_release(&c.selection);
	return out;
}

/* append(axis, source, shape of the source, options): (a changed node, the first new index) */
PyObject *py_node_append(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	const py_node *node = (py_node *)(void *)self;
	lade_zarr_shape shape = {.struct_size = sizeof(shape)};
	lade_zarr_append append = {.struct_size = sizeof(append)};
	lade_zarr_write_options o;
	lade_zarr_source source;
	lade_zarr *changed = NULL;
	PyObject *out = NULL, *next;
	py_mem offsets = {0};
	uint64_t at = 0;
	lade_status status;
	lade_error err;
	py_wait wait;
	memory m = {0};
	options given;
	wanted w;

	if (count != 4 || !is_array(node) || !PyTuple_Check(args[2]) ||
	    (size_t)PyTuple_Size(args[2]) != node->array->ndim) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_TypeError, "append(axis, source, shape, options)");
		return NULL;
	}
	append.axis = PyLong_AsSize_t(args[0]);
	if (PyErr_Occurred() || !take_options(args[3], &given))
		return NULL;
	status = lade_zarr_selection_shape(node->node, NULL, &shape, &err);
	if (!status && append.axis >= shape.ndim)
		status = lade_fail(&err, LADE_E_ARG, LADE_NO_OFFSET, "axis %zu of %zu", append.axis,
		                   shape.ndim);
	if (status) {
		py_raise(node->st, &err, SIZE_MAX);
		return NULL;
	}
	shape.count = 1;
	for (size_t i = 0; i < shape.ndim; i++) {
		uint64_t one = PyLong_AsUnsignedLongLong(PyTuple_GetItem(args[2], (Py_ssize_t)i));
		if (PyErr_Occurred())
			return NULL;
		shape.shape[i] = one;
		shape.count *= one;
	}
	append.count = shape.shape[append.axis];
	shape.size = shape.count * shape.elem_size;
	w = (wanted){node->st, &shape, given.stream, false, false, true};
	if (!take_source(&w, args[1], &m, &offsets, &source))
		return NULL;
	o = write_options(&given);
	append.source = &source;
	append.options = &o;
	py_wait_begin(&wait, true);
	o.cancel = wait.cancel;
	status = lade_zarr_append_to(node->node, &append, &at, &changed, &err);
	if (py_wait_end(&wait) && status)
		py_raise(node->st, &err, SIZE_MAX);
	if (!status && !PyErr_Occurred()) {
		next = py_node_wrap(Py_TYPE(self), changed, node->codecs);
		out = next ? Py_BuildValue("(NK)", next, (unsigned long long)at) : NULL;
	} else {
		lade_zarr_unref(changed);
	}
	py_mem_release(&m.mem);
	py_mem_release(&offsets);
	return out;
}
