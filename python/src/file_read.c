/*
 * file_read.c: the reader behind liblade.open(path, "rb").
 *
 * A .lade frame in a file that can be read anywhere is decoded chunk by chunk, to the caller's
 * memory where a call wants whole chunks, else to a cache.  Everything else comes in order: a place
 * further on is reached by decoding up to it, one before by beginning again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "file.h"

#include <string.h>
#include <unistd.h>

/* Of the cache: what is decoded at once of small chunks, and of what is skipped. */
#define CACHE_LEAST ((size_t)1 << 18)
#define CACHE_MOST ((size_t)8 << 20)

typedef struct reader {
	PyObject_HEAD
	py_file file;
	lade_engine *engine, *own; /* the process's, or 'own' */
	lade_format given, format;
	lade_frame_read_options frame_options;
	lade_foreign_options options;
	lade_frame *frame;         /* one of these three is there, or none before the first */
	lade_frame_pipe *pipe;     /* byte is wanted and at the end */
	lade_foreign_reader *foreign;
	/* Of decoded bytes; LADE_SIZE_UNKNOWN until the end was seen.  Other threads may ask. */
	_Atomic uint64_t pos, size;
	bool ended; /* a pipe: nothing follows 'pos' */
	uint8_t *cache;
	size_t cache_cap, cache_size;
	uint64_t cache_off;
	bool ready;
} reader;

/* ---- decoders --------------------------------------------------------------------------- */

static void drop_decoders(reader *r)
{
	lade_frame_close(r->frame);
	lade_frame_pipe_free(r->pipe);
	lade_foreign_reader_free(r->foreign);
	r->frame = NULL;
	r->pipe = NULL;
	r->foreign = NULL;
}

/* Tells the format from the first bytes, unless it was given. */
static lade_status find_format(reader *r, lade_error *err)
{
	const uint8_t *head;
	size_t have;
	lade_status status = py_file_peek(&r->file, LADE_FORMAT_PEEK, &head, &have, err);

	r->format = r->given;
	if (status || r->given)
		return status;
	r->format = lade_format_detect(head, have);
	if (r->format)
		return LADE_OK;
	if (!have)
		return lade_fail(err, LADE_E_TRUNCATED, 0, "the file is empty, which no format is");
	return lade_fail(err, LADE_E_CORRUPT, 0,
	                 "no format is known that begins with %02x %02x %02x %02x (%zu bytes)",
	                 head[0], have > 1 ? head[1] : 0, have > 2 ? head[2] : 0,
	                 have > 3 ? head[3] : 0, have);
}

static lade_status start(reader *r, lade_error *err)
{
	lade_status status = find_format(r, err);

	if (status)
		return status;
	if (r->format != LADE_FORMAT_LADE)
		return lade_foreign_reader_new(r->engine, r->format, py_file_input(&r->file),
		                               &r->options, &r->foreign, err);
	if (!r->file.anywhere)
		return lade_frame_pipe_new(r->engine, py_file_input(&r->file), &r->frame_options,
		                           &r->pipe, err);
	status = lade_frame_open(r->engine, py_file_source(&r->file), &r->frame_options, &r->frame,
	                         err);
	if (!status)
		r->size = lade_frame_get_info(r->frame)->size;
	return status;
}

/* What follows a frame that came by a pipe: nothing, or another frame. */
static lade_status next_frame(reader *r, lade_error *err)
{
	lade_cspan rest = lade_frame_pipe_rest(r->pipe);
	lade_status status = py_file_unread(&r->file, rest.data, rest.size, err);
	const uint8_t *head;
	size_t have = 0;

	if (!status)
		status = py_file_peek(&r->file, 1, &head, &have, err);
	if (status || !have) {
		r->ended = !status;
		return status;
	}
	drop_decoders(r);
	return lade_frame_pipe_new(r->engine, py_file_input(&r->file), &r->frame_options,
	                           &r->pipe, err);
}

/* '*got' from 1 to 'cap', or 0 at the end. */
static lade_status pipe_read(reader *r, void *dst, size_t cap, size_t *got, lade_error *err)
{
	lade_status status = LADE_OK;

	*got = 0;
	if (r->format != LADE_FORMAT_LADE) {
		status = lade_foreign_reader_read(r->foreign, dst, cap, got, err);
		r->ended = !status && *got == 0;
	} else {
		while (!status && !*got && !r->ended) {
			status = lade_frame_pipe_read(r->pipe, dst, cap, got, err);
			if (!status && !*got)
				status = next_frame(r, err);
		}
	}
	r->pos += *got;
	if (r->ended)
		r->size = r->pos;
	return status;
}

static lade_status grow_cache(reader *r, size_t cap, lade_error *err)
{
	if (cap <= r->cache_cap)
		return LADE_OK;
	free(r->cache);
	r->cache_cap = r->cache_size = 0;
	r->cache = malloc(cap);
	if (!r->cache)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu decoded bytes", cap);
	r->cache_cap = cap;
	return LADE_OK;
}

/* Decodes [off, off + size), all of it inside the frame. */
static lade_status frame_range(reader *r, uint64_t off, void *dst, size_t size, lade_error *err)
{
	lade_frame_range range = {off, lade_host_span(dst, size)};
	lade_frame_range_options options = {.struct_size = sizeof(options),
	                                    .cancel = r->file.cancel};

	return lade_frame_read(r->frame, &range, 1, NULL, &options, err);
}

/*
 * Decodes the chunk at 'pos' into the cache, and those behind it when the file is read in order:
 * as many as the threads can work on, within CACHE_MOST.
 */
static lade_status fill_cache(reader *r, lade_error *err)
{
	size_t chunk = lade_frame_get_info(r->frame)->chunk_size, want = chunk;
	uint64_t off = r->pos / chunk * chunk;
	size_t threads = r->frame_options.threads ? r->frame_options.threads
	                                          : lade_engine_threads(r->engine);

	if (r->pos == 0 || (r->cache_size && r->pos == r->cache_off + r->cache_size)) {
		size_t most = CACHE_MOST / threads < chunk ? CACHE_MOST : chunk * threads;
		most = most < CACHE_LEAST ? CACHE_LEAST : most;
		want = most < chunk ? chunk : most / chunk * chunk;
	}
	want = r->size - off < want ? (size_t)(r->size - off) : want;
	r->cache_size = 0;
	lade_status status = grow_cache(r, want, err);
	if (!status)
		status = frame_range(r, off, r->cache, want, err);
	if (!status) {
		r->cache_off = off;
		r->cache_size = want;
	}
	return status;
}

static lade_status frame_read(reader *r, uint8_t *dst, size_t cap, size_t *got, lade_error *err)
{
	size_t chunk = lade_frame_get_info(r->frame)->chunk_size, n;
	lade_status status = LADE_OK;

	*got = 0;
	if (r->pos >= r->size)
		return LADE_OK;
	cap = r->size - r->pos < cap ? (size_t)(r->size - r->pos) : cap;
	bool cached = r->pos >= r->cache_off && r->pos - r->cache_off < r->cache_size;
	if (!cached && r->pos % chunk == 0 && (cap >= chunk || cap == r->size - r->pos)) {
		n = cap == r->size - r->pos ? cap : cap / chunk * chunk;
		status = frame_range(r, r->pos, dst, n, err);
	} else {
		if (!cached)
			status = fill_cache(r, err);
		if (status)
			return status;
		size_t at = (size_t)(r->pos - r->cache_off);
		n = r->cache_size - at < cap ? r->cache_size - at : cap;
		memcpy(dst, r->cache + at, n);
	}
	if (!status) {
		*got = n;
		r->pos += n;
	}
	return status;
}

static lade_status read_some(reader *r, void *dst, size_t cap, size_t *got, lade_error *err)
{
	*got = 0;
	if (cap == 0 || (r->ended && !r->frame))
		return LADE_OK;
	return r->frame ? frame_read(r, dst, cap, got, err) : pipe_read(r, dst, cap, got, err);
}

/* Goes to 'pos', or to the end where that is less. */
static lade_status go_to(reader *r, uint64_t pos, lade_error *err)
{
	lade_status status = LADE_OK;
	size_t got = 1;

	if (r->frame) {
		r->pos = pos < r->size ? pos : r->size;
		return LADE_OK;
	}
	if (pos < r->pos) {
		drop_decoders(r);
		r->pos = 0;
		r->ended = false;
		status = py_file_rewind(&r->file, err);
		if (!status)
			status = start(r, err);
	}
	if (!status && pos > r->pos)
		status = grow_cache(r, CACHE_LEAST, err);
	while (!status && got && pos > r->pos) {
		uint64_t left = pos - r->pos;
		status = read_some(r, r->cache, left < r->cache_cap ? (size_t)left : r->cache_cap,
		                   &got, err);
	}
	return status;
}

/* ---- methods ---------------------------------------------------------------------------- */

static bool begin(reader *r)
{
	return py_file_begin(&r->file, &r->ready);
}

static PyObject *reader_readinto(PyObject *self, PyObject *buffer)
{
	reader *r = (reader *)self;
	lade_status status;
	lade_error err = {.offset = LADE_NO_OFFSET};
	Py_buffer view;
	size_t got;

	if (PyObject_GetBuffer(buffer, &view, PyBUF_CONTIG))
		return NULL;
	if (!begin(r)) {
		PyBuffer_Release(&view);
		return NULL;
	}
	status = read_some(r, view.buf, (size_t)view.len, &got, &err);
	bool ok = py_file_end(&r->file, status, &err);
	PyBuffer_Release(&view);
	return ok ? PyLong_FromSize_t(got) : NULL;
}

/* The rest of a frame, decoded to where it stays; None where its size is not known. */
static PyObject *reader_readall(PyObject *self, PyObject *unused)
{
	reader *r = (reader *)self;
	lade_error err = {.offset = LADE_NO_OFFSET};
	size_t left, got = 1;
	PyObject *out;
	char *to;

	(void)unused;
	if (!r->frame || r->size - r->pos > PY_SSIZE_T_MAX)
		Py_RETURN_NONE;
	left = (size_t)(r->size - r->pos);
	out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)left);
	to = out ? PyBytes_AsString(out) : NULL;
	while (out && left) {
		bool ok = begin(r);
		if (ok) {
			lade_status status = read_some(r, to, left, &got, &err);
			ok = py_file_end(&r->file, status, &err) && !PyErr_CheckSignals();
		}
		if (ok && !got) {
			PyErr_SetString(PyExc_RuntimeError,
			                "another thread moved the file's place while all was read");
			ok = false;
		}
		if (!ok)
			Py_CLEAR(out);
		to += got;
		left -= got;
	}
	return out;
}

static PyObject *reader_seek(PyObject *self, PyObject *args)
{
	reader *r = (reader *)self;
	unsigned long long pos;
	lade_status status;
	lade_error err = {.offset = LADE_NO_OFFSET};

	if (!PyArg_ParseTuple(args, "K", &pos) || !begin(r))
		return NULL;
	status = go_to(r, pos, &err);
	if (!py_file_end(&r->file, status, &err))
		return NULL;
	return PyLong_FromUnsignedLongLong(r->pos);
}

static PyObject *reader_tell(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(((reader *)self)->pos);
}

static PyObject *reader_seekable(PyObject *self, PyObject *unused)
{
	(void)unused;
	return PyBool_FromLong(((reader *)self)->file.anywhere);
}

static PyObject *size_or_none(uint64_t size)
{
	return size == LADE_SIZE_UNKNOWN ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(size);
}

static PyObject *reader_size(PyObject *self, PyObject *unused)
{
	(void)unused;
	return size_or_none(((reader *)self)->size);
}

/*
 * (format, size, pipeline, chunk_size, dtype, shape, fortran_order, checksum), as the beginning of
 * the file has them.
 */
static PyObject *info_of(const reader *r)
{
	const lade_frame_info *info = r->frame    ? lade_frame_get_info(r->frame)
	                              : r->pipe ? lade_frame_pipe_get_info(r->pipe)
	                                          : NULL;
	PyObject *shape, *size = size_or_none(info ? info->size : r->size);

	if (!size)
		return NULL;
	if (!info)
		return Py_BuildValue("(sNOOOOOO)", lade_format_name(r->format), size, Py_None,
		                     Py_None, Py_None, Py_None, Py_False, Py_None);
	shape = info->has_shape ? PyTuple_New((Py_ssize_t)info->ndim) : Py_NewRef(Py_None);
	for (unsigned i = 0; shape && info->has_shape && i < info->ndim; i++) {
		PyObject *n = PyLong_FromUnsignedLongLong(info->shape[i]);
		if (!n || PyTuple_SetItem(shape, (Py_ssize_t)i, n))
			Py_CLEAR(shape);
	}
	if (!shape) {
		Py_DECREF(size);
		return NULL;
	}
	return Py_BuildValue("(sNsnzNOz)", lade_format_name(r->format), size,
	                     lade_spec_text(info->spec), (Py_ssize_t)info->chunk_size,
	                     info->dtype ? lade_dtype_text(info->dtype) : NULL, shape,
	                     info->fortran_order ? Py_True : Py_False,
	                     info->checksum ? lade_checksum_name(info->checksum) : NULL);
}

static PyObject *reader_info(PyObject *self, PyObject *unused)
{
	reader *r = (reader *)self;
	PyObject *out;

	(void)unused;
	if (!py_file_claim(&r->file, &r->ready))
		return NULL;
	out = info_of(r);
	atomic_flag_clear(&r->file.busy);
	return out;
}

/* ---- life ------------------------------------------------------------------------------- */

static void reader_reset(reader *r)
{
	r->ready = false;
	drop_decoders(r);
	free(r->cache);
	r->cache = NULL;
	r->cache_cap = r->cache_size = 0;
	py_file_reset(&r->file);
	py_engine_free(r->own);
	r->own = NULL;
}

static PyObject *reader_close(PyObject *self, PyObject *unused)
{
	reader *r = (reader *)self;
	PyObject *object;

	(void)unused;
	if (atomic_flag_test_and_set(&r->file.busy)) {
		PyErr_SetString(PyExc_RuntimeError,
		                "the file is in use by another thread: it stays open");
		return NULL;
	}
	/* Dropping the object may end in a second call, from what it held. */
	object = r->file.object;
	r->file.object = NULL;
	reader_reset(r);
	atomic_flag_clear(&r->file.busy);
	Py_XDECREF(object);
	Py_RETURN_NONE;
}

/* __new__(fd, object, name, format, threads, checksum, strict, max_window): it takes 'fd', also
 * where it fails. */
static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	py_state *st = PyType_GetModuleState(type);
	int fd = -1, checksum, strict;
	unsigned threads;
	unsigned long long max_window;
	const char *name, *format;
	PyObject *object;
	lade_status status = LADE_OK;
	lade_error err = {.offset = LADE_NO_OFFSET};
	reader *r = NULL;

	(void)kwargs;
	if (st && PyArg_ParseTuple(args, "iOssIppK", &fd, &object, &name, &format, &threads,
	                           &checksum, &strict, &max_window))
		r = (reader *)PyType_GenericAlloc(type, 0);
	if (!r) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	r->file.fd = -1;
	r->size = LADE_SIZE_UNKNOWN;
	r->given = lade_format_find(format);
	if (!py_file_init(&r->file, st, fd, object, name, false))
		goto fail;
	r->engine = py_engine(st, threads, &r->own);
	if (!r->engine)
		goto fail;
	r->frame_options = (lade_frame_read_options){
		.struct_size = sizeof(r->frame_options),
		.verify = checksum ? LADE_VERIFY_IF_PRESENT : LADE_VERIFY_NEVER,
		.flags = strict ? LADE_FRAME_STRICT : 0,
		.threads = threads,
		.max_chunk_size = (size_t)max_window,
		.cancel = r->file.cancel,
	};
	r->options = (lade_foreign_options){
		.struct_size = sizeof(r->options),
		.threads = threads,
		.ignore_checksum = !checksum,
		.strict = strict,
		.max_window = max_window,
		.cancel = r->file.cancel,
	};
	r->ready = true;
	if (!begin(r))
		goto fail;
	status = start(r, &err);
	if (!py_file_end(&r->file, status, &err))
		goto fail;
	return (PyObject *)r;
fail:
	Py_DECREF(r);
	return NULL;
}

static int reader_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(self));
	Py_VISIT(((reader *)self)->file.object);
	return 0;
}

static void reader_dealloc(PyObject *self)
{
	PyObject_GC_UnTrack(self);
	reader_reset((reader *)self);
	py_free(self);
}

static PyMethodDef methods[] = {
	{"readinto", reader_readinto, METH_O, NULL},
	{"readall", reader_readall, METH_NOARGS, NULL},
	{"seek", reader_seek, METH_VARARGS, NULL},
	{"tell", reader_tell, METH_NOARGS, NULL},
	{"size", reader_size, METH_NOARGS, NULL},
	{"seekable", reader_seekable, METH_NOARGS, NULL},
	{"info", reader_info, METH_NOARGS, NULL},
	{"close", reader_close, METH_NOARGS, NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "The reader of a file; liblade.open() makes one."},
	{Py_tp_new, reader_new},
	{Py_tp_dealloc, reader_dealloc},
	{Py_tp_traverse, reader_traverse},
	{Py_tp_methods, methods},
	{0, NULL},
};

PyType_Spec py_reader_spec = {
	.name = "liblade._lade.Reader",
	.basicsize = sizeof(reader),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
