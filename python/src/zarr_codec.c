/*
 * zarr_codec.c: codecs of Zarr that are written in Python, and implementations of the library's.
 *
 * An array with any of them has an engine of its own: no other thread uses it while it is made.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr_py.h"

#include <string.h>

/* An object with decode(src, out) and encode(src, out), memoryviews that end with the call; they
 * give the number of bytes written, or None: all of 'out', or bytes.  The views are of copies,
 * which Python owns: arrays that the object makes of them may stay. */
typedef struct coder {
	struct coder *next;
	py_home_of home;
	PyObject *object;
	lade_zarr_codec_kind kind;
	char *theirs; /* the codec's name and configuration, each with its 0; NULL: none */
	char name[32], implementation[40];
} coder;

struct py_codecs {
	py_home_of home;
	PyObject *find;
	lade_engine *engine;
	coder *coders;
	size_t count;
	/* The array is open, and other threads may use the engine: no codec comes any more.  The
	 * library opens arrays again that have changed. */
	atomic_bool sealed;
	_Atomic size_t refs;
};

/* ---- calls ---------------------------------------------------------------------------------- */

/* What a call gave: a number of bytes of 'out', None: all of them, or other bytes. */
static lade_status take_result(PyObject *found, PyObject *out, lade_span dst, size_t *size,
                               const char *what, lade_error *err)
{
	Py_buffer view;
	lade_status status = LADE_OK;

	*size = dst.size;
	if (found == Py_None || PyLong_Check(found)) {
		if (found != Py_None)
			*size = PyLong_AsSize_t(found);
		if (PyErr_Occurred() || *size > dst.size) {
			PyErr_Clear();
			*size = 0;
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "%s gave a number outside [0, %zu]", what, dst.size);
		}
		if (*size)
			memcpy(dst.data, PyByteArray_AsString(out), *size);
		return LADE_OK;
	}
	if (PyObject_GetBuffer(found, &view, PyBUF_SIMPLE))
		return py_as_error(LADE_E_ARG, what, NULL, err);
	*size = (size_t)view.len;
	if (*size > dst.size) {
		status = lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                   "%s gave %zu bytes, there is room for %zu", what, *size,
		                   dst.size);
		*size = 0;
	} else if (*size) {
		memcpy(dst.data, view.buf, *size);
	}
	PyBuffer_Release(&view);
	return status;
}

/* A view of memory that lives as long as anything is made of it: a copy of 'from', or 'size' bytes
 * of any value. */
static PyObject *view_new(const void *from, size_t size, PyObject **owner)
{
	*owner = NULL;
	if (size > PY_SSIZE_T_MAX)
		return PyErr_NoMemory();
	*owner = from ? PyBytes_FromStringAndSize(from, (Py_ssize_t)size)
	              : PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size);
	return *owner ? PyMemoryView_FromObject(*owner) : NULL;
}

static void release(PyObject *view)
{
	PyObject *raised = PyErr_GetRaisedException();
	PyObject *done = view ? PyObject_CallMethod(view, "release", NULL) : NULL;

	PyErr_Clear();
	Py_XDECREF(done);
	Py_XDECREF(view);
	PyErr_SetRaisedException(raised);
}

static lade_status call(coder *c, const char *method, lade_cspan src, lade_span dst, size_t *size,
                        lade_error *err)
{
	PyObject *from, *to, *in_bytes, *out_bytes, *found = NULL;
	lade_status status;
	py_entered in;

	*size = 0;
	if (!py_enter(&c->home, &in))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a thread's state");
	from = view_new(src.size ? src.data : "", src.size, &in_bytes);
	to = view_new(NULL, dst.size, &out_bytes);
	if (from && to)
		found = PyObject_CallMethod(c->object, method, "OO", from, to);
	status = found ? take_result(found, out_bytes, dst, size, method, err)
	               : py_as_error(LADE_E_CORRUPT, method, NULL, err);
	release(from);
	release(to);
	Py_XDECREF(in_bytes);
	Py_XDECREF(out_bytes);
	Py_XDECREF(found);
	py_exit(&in);
	return status;
}

static lade_status run_encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                              lade_error *err)
{
	return call(run->ctx, "encode", src, dst, dst_size, err);
}

static lade_status run_decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                              lade_error *err)
{
	return call(run->ctx, "decode", src, dst, dst_size, err);
}

/* Nobody knows more: twice the size, and room for a header.  encode() of what needs more fails. */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size > SIZE_MAX / 2 - 65536 ? SIZE_MAX : 2 * size + 65536;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)src;
	(void)size;
	*decoded = LADE_SIZE_UNKNOWN;
	return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
	                 "%s does not store the decoded size", stage->algorithm->name);
}

/* ---- adding --------------------------------------------------------------------------------- */

static coder *add_coder(py_codecs *codecs, PyObject *object)
{
	coder *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->home = codecs->home;
	c->object = Py_NewRef(object);
	c->next = codecs->coders;
	codecs->coders = c;
	codecs->count++;
	return c;
}

static lade_status add_ways(py_codecs *codecs, coder *c, const char *algorithm, int priority,
                            lade_error *err)
{
	static const lade_codec_ops encoding = {.struct_size = sizeof(encoding), .run = run_encode};
	static const lade_codec_ops decoding = {.struct_size = sizeof(decoding), .run = run_decode};
	lade_status status = LADE_OK;

	for (int decode = 0; !status && decode < 2; decode++) {
		lade_implementation one = {
			.struct_size = sizeof(one),
			.name = c->implementation,
			.algorithm = algorithm,
			.direction = decode ? LADE_DECODE : LADE_ENCODE,
			.priority = priority,
			.ctx = c,
			.codec = decode ? &decoding : &encoding,
		};
		if (PyObject_HasAttrString(c->object, decode ? "decode" : "encode"))
			status = lade_engine_add_implementation(codecs->engine, &one, err);
	}
	return status;
}

/* The codec of an object, under a name of its own. */
static lade_status add_codec(py_codecs *codecs, PyObject *object, lade_zarr_codec *out,
                             lade_error *err)
{
	coder *c = add_coder(codecs, object);
	lade_algorithm algorithm = {
		.struct_size = sizeof(algorithm),
		.kind = LADE_STAGE_CODEC,
		.doc = "a codec in Python",
		.bound = bound,
		.decoded_size = decoded_size,
	};
	lade_status status;

	if (!c)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a codec");
	size_t name = strlen(out->name) + 1, rest = strlen(out->configuration) + 1;
	c->theirs = malloc(name + rest);
	if (!c->theirs)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a codec");
	memcpy(c->theirs, out->name, name);
	memcpy(c->theirs + name, out->configuration, rest);
	c->kind = out->kind;
	PyOS_snprintf(c->name, sizeof(c->name), "python%zu", codecs->count);
	PyOS_snprintf(c->implementation, sizeof(c->implementation), "%s/python", c->name);
	algorithm.name = c->name;
	status = lade_engine_add_algorithm(codecs->engine, &algorithm, err);
	if (!status)
		status = add_ways(codecs, c, c->name, LADE_PRIORITY_BUILTIN, err);
	if (!status)
		PyOS_snprintf(out->spec, sizeof(out->spec), "%s", c->name);
	return status;
}

/* Asks the function for a codec that the library does not run. */
static lade_status find_codec(void *ctx, lade_zarr_codec *codec, lade_error *err)
{
	py_codecs *codecs = ctx;
	lade_status status;
	PyObject *found;
	py_entered in;

	for (const coder *c = codecs->coders; c; c = c->next) {
		if (c->theirs && !strcmp(c->theirs, codec->name) &&
		    !strcmp(c->theirs + strlen(c->theirs) + 1, codec->configuration)) {
			PyOS_snprintf(codec->spec, sizeof(codec->spec), "%s", c->name);
			codec->kind = c->kind;
			return LADE_OK;
		}
	}
	if (atomic_load(&codecs->sealed))
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "no codec \"%s\"",
		                 codec->name);
	if (!py_enter(&codecs->home, &in))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a thread's state");
	found = PyObject_CallFunction(codecs->find, "sssn", codec->name, codec->configuration,
	                              codec->type ? codec->type->name : "",
	                              (Py_ssize_t)codec->ndim);
	if (!found) {
		status = py_as_error(LADE_E_ARG, "a codec in Python", NULL, err);
	} else if (found == Py_None) {
		status = lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "no codec \"%s\"",
		                   codec->name);
	} else {
		PyObject *kind = PyObject_GetAttrString(found, "kind");
		const char *text = kind ? PyUnicode_AsUTF8AndSize(kind, NULL) : NULL;
		codec->kind = text && !strcmp(text, "array_bytes") ? LADE_ZARR_ARRAY_BYTES
		                                                   : LADE_ZARR_BYTES_BYTES;
		PyErr_Clear();
		Py_XDECREF(kind);
		status = add_codec(codecs, found, codec, err);
	}
	Py_XDECREF(found);
	py_exit(&in);
	return status;
}

/* Implementations: (algorithm, priority, object) of each. */
static bool add_implementations(py_state *st, py_codecs *codecs, PyObject *all)
{
	for (Py_ssize_t i = 0; i < PyTuple_Size(all); i++) {
		const char *algorithm;
		PyObject *object;
		int priority;
		lade_error err = {.status = LADE_E_NOMEM};
		coder *c;
		if (!PyArg_ParseTuple(PyTuple_GetItem(all, i), "siO", &algorithm, &priority,
		                      &object))
			return false;
		c = add_coder(codecs, object);
		if (c) {
			PyOS_snprintf(c->name, sizeof(c->name), "%s", algorithm);
			PyOS_snprintf(c->implementation, sizeof(c->implementation), "%s/python",
			              c->name);
		}
		if (!c || add_ways(codecs, c, c->name, priority, &err)) {
			py_raise(st, &err, SIZE_MAX);
			return false;
		}
	}
	return true;
}

bool py_codecs_new(py_state *st, PyObject *find, PyObject *implementations,
                   lade_zarr_options *options, py_codecs **out)
{
	py_codecs *codecs = calloc(1, sizeof(*codecs));
	lade_error err;

	*out = codecs;
	if (!codecs) {
		PyErr_NoMemory();
		return false;
	}
	codecs->refs = 1;
	codecs->home = py_home_now(st);
	codecs->find = Py_NewRef(find);
	if (lade_engine_new(NULL, &codecs->engine, &err)) {
		py_raise(st, &err, SIZE_MAX);
		return false;
	}
	options->engine = codecs->engine;
	options->codec = find == Py_None ? NULL : find_codec;
	options->codec_ctx = codecs;
	return add_implementations(st, codecs, implementations);
}

void py_codecs_seal(py_codecs *codecs)
{
	if (codecs)
		atomic_store(&codecs->sealed, true);
}

py_codecs *py_codecs_ref(py_codecs *codecs)
{
	if (codecs)
		atomic_fetch_add(&codecs->refs, 1);
	return codecs;
}

void py_codecs_unref(py_codecs *codecs)
{
	coder *c;

	if (!codecs || atomic_fetch_sub(&codecs->refs, 1) != 1)
		return;
	Py_BEGIN_ALLOW_THREADS
	lade_engine_free(codecs->engine);
	Py_END_ALLOW_THREADS
	while ((c = codecs->coders) != NULL) {
		codecs->coders = c->next;
		Py_XDECREF(c->object);
		free(c->theirs);
		free(c);
	}
	Py_XDECREF(codecs->find);
	free(codecs);
}
