/*
 * file_write.c: the writer behind liblade.open(path, "wb").
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct writer {
	PyObject_HEAD
	py_file file;
	lade_engine *engine, *own; /* the process's, or 'own' */
	lade_spec *spec;
	lade_frame_writer *frame; /* one of these is there */
	lade_foreign_writer *foreign;
	lade_format format;
	bool ready;
} writer;

/* ---- options ---------------------------------------------------------------------------- */

static bool read_shape(PyObject *object, uint64_t *shape, unsigned *ndim)
{
	if (PyTuple_Size(object) > LADE_NDIM_MAX) {
		PyErr_Format(PyExc_ValueError, "shape: %zd dimensions, %d are possible",
		             PyTuple_Size(object), LADE_NDIM_MAX);
		return false;
	}
	*ndim = (unsigned)PyTuple_Size(object);
	for (unsigned i = 0; i < *ndim; i++) {
		shape[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(object, (Py_ssize_t)i));
		if (PyErr_Occurred())
			return false;
	}
	return true;
}

/* ---- life ------------------------------------------------------------------------------- */

static void writer_reset(writer *w)
{
	w->ready = false;
	lade_frame_writer_free(w->frame);
	lade_foreign_writer_free(w->foreign);
	lade_spec_unref(w->spec);
	w->frame = NULL;
	w->foreign = NULL;
	w->spec = NULL;
	py_file_reset(&w->file);
	py_engine_free(w->own);
	w->own = NULL;
}

/*
 * __new__(fd, object, name, format, threads, checksum, level, spec, chunk_size, dtype, shape,
 * fortran_order): it takes 'fd', also where it fails.
 */
static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	py_state *st = PyType_GetModuleState(type);
	int fd = -1, checksum, level, fortran_order;
	unsigned threads;
	Py_ssize_t chunk_size;
	const char *name, *format, *spec, *dtype;
	PyObject *object, *dims;
	uint64_t shape[LADE_NDIM_MAX];
	lade_frame_options options = {.struct_size = sizeof(options)};
	lade_foreign_options foreign = {.struct_size = sizeof(foreign)};
	lade_status status = LADE_OK;
	lade_error err = {.offset = LADE_NO_OFFSET};
	writer *w = NULL;

	(void)kwargs;
	if (st &&
	    PyArg_ParseTuple(args, "iOssIpisnzOp", &fd, &object, &name, &format, &threads,
	                     &checksum, &level, &spec, &chunk_size, &dtype, &dims, &fortran_order))
		w = (writer *)PyType_GenericAlloc(type, 0);
	if (!w) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	w->file.fd = -1;
	w->format = lade_format_find(format);
	if (!py_file_init(&w->file, st, fd, object, name, true))
		goto fail;
	w->engine = py_engine(st, threads, &w->own);
	if (!w->engine || (dims != Py_None && !read_shape(dims, shape, &options.ndim)))
		goto fail;
	if (w->format == LADE_FORMAT_LADE) {
		status = lade_spec_parse(NULL, spec, &w->spec, &err);
		if (!status && dtype)
			status = lade_dtype_parse(dtype, &options.dtype, &err);
		options.spec = w->spec;
		options.chunk_size = chunk_size < 0 ? 1 : (size_t)chunk_size;
		options.no_checksums = !checksum;
		options.shape = dims == Py_None ? NULL : shape;
		options.fortran_order = fortran_order;
		options.cancel = w->file.cancel;
		options.threads = threads;
	} else {
		foreign.threads = threads;
		foreign.level = level;
		foreign.checksum = checksum;
		foreign.cancel = w->file.cancel;
	}
	if (status) {
		py_raise(st, &err, SIZE_MAX);
		goto fail;
	}
	w->ready = true;
	if (!py_file_begin(&w->file, &w->ready))
		goto fail;
	if (w->spec)
		status = lade_frame_writer_new(w->engine, py_file_output(&w->file), &options,
		                               &w->frame, &err);
	else
		status = lade_foreign_writer_new(w->engine, w->format, py_file_output(&w->file),
		                                 &foreign, &w->foreign, &err);
	if (!status)
		status = py_file_empty(&w->file, &err);
	if (!py_file_end(&w->file, status, &err))
		goto fail;
	return (PyObject *)w;
fail:
	Py_DECREF(w);
	return NULL;
}

static int writer_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(((writer *)self)->file.object);
	return 0;
}

static void writer_dealloc(PyObject *self)
{
	PyObject_GC_UnTrack(self);
	writer_reset((writer *)self);
	py_free(self);
}

/* ---- methods ---------------------------------------------------------------------------- */

static PyObject *writer_write(PyObject *self, PyObject *buffer)
{
	writer *w = (writer *)self;
	lade_status status;
	lade_error err = {.offset = LADE_NO_OFFSET};
	Py_buffer view;

	if (PyObject_GetBuffer(buffer, &view, PyBUF_CONTIG_RO))
		return NULL;
	if (!py_file_begin(&w->file, &w->ready))
		goto fail;
	if (w->frame)
		status = lade_frame_writer_write(w->frame, view.buf, (size_t)view.len, &err);
	else
		status = lade_foreign_writer_write(w->foreign, view.buf, (size_t)view.len, &err);
	if (!py_file_end(&w->file, status, &err))
		goto fail;
	PyObject *count = PyLong_FromSsize_t(view.len);
	PyBuffer_Release(&view);
	return count;
fail:
	PyBuffer_Release(&view);
	return NULL;
}

/*
 * Sees to it that readers call a file without its end truncated.  It says so itself as soon as
 * there is a byte of it; else the beginning of a .gz member (RFC 1952, 2.3: deflate, no flags, no
 * time, unknown system) or of a .zst frame says it.  The caller has a failure already: one in here
 * tells nothing new.
 */
static void cut_short(writer *w)
{
	static const uint8_t gz[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255};
	static const uint8_t zst[4] = {0x28, 0xB5, 0x2F, 0xFD};
	lade_output out = py_file_output(&w->file);
	lade_error ignored;

	if (w->file.some)
		return;
	if (w->format == LADE_FORMAT_GZ)
		(void)out.write(out.ctx, gz, sizeof(gz), &ignored);
	else if (w->format == LADE_FORMAT_ZST)
		(void)out.write(out.ctx, zst, sizeof(zst), &ignored);
}

/* close(finish): without the end, readers say that the file is truncated. */
static PyObject *writer_close(PyObject *self, PyObject *args)
{
	writer *w = (writer *)self;
	lade_status status = LADE_OK;
	lade_error err = {.offset = LADE_NO_OFFSET};
	int finish;

	if (!PyArg_ParseTuple(args, "p", &finish))
		return NULL;
	if (!w->ready)
		Py_RETURN_NONE;
	if (!py_file_begin(&w->file, &w->ready))
		return NULL;
	w->ready = false;
	if (finish && w->frame)
		status = lade_frame_writer_finish(w->frame, &err);
	else if (finish)
		status = lade_foreign_writer_finish(w->foreign, &err);
	if (!finish || status)
		cut_short(w);
	/* Some file systems tell only here that there was no room. */
	if (w->file.fd >= 0 && close(w->file.fd) && !status)
		status = lade_fail(&err, LADE_E_IO, LADE_NO_OFFSET, "closing: %s", strerror(errno));
	w->file.fd = -1;
	bool ok = py_file_end(&w->file, status, &err);
	/* Without the end there is an exception already, which this one would hide. */
	if (!ok && !finish && PyErr_ExceptionMatches(PyExc_Exception)) {
		PyErr_Clear();
		ok = true;
	}
	PyObject *raised = ok ? NULL : PyErr_GetRaisedException();
	writer_reset(w);
	if (ok)
		Py_RETURN_NONE;
	PyErr_SetRaisedException(raised);
	return NULL;
}

static PyMethodDef methods[] = {
	{"write", writer_write, METH_O, NULL},
	{"close", writer_close, METH_VARARGS, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "The writer of a file; liblade.open() makes one."},
	{Py_tp_new, writer_new},
	{Py_tp_dealloc, writer_dealloc},
	{Py_tp_traverse, writer_traverse},
	{Py_tp_methods, methods},
	{0, NULL},
};

PyType_Spec py_writer_spec = {
	.name = "liblade._lade.Writer",
	.basicsize = sizeof(writer),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
