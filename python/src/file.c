/*
 * file.c: descriptors and Python objects as the library's inputs, outputs and sources.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes that an object is asked for at once. */
#define PIECE ((size_t)1 << 20)

/* ---- in and out of the interpreter ------------------------------------------------------ */

/* NULL: the caller's own state is in use again. */
static bool enter(py_file *file, PyThreadState **own)
{
	PyThread_acquire_lock(file->lock, WAIT_LOCK);
	*own = NULL;
	if (PyThread_get_thread_ident() == file->caller) {
		PyEval_RestoreThread(file->saved);
		return true;
	}
	*own = PyThreadState_New(file->interpreter);
	if (*own)
		PyEval_RestoreThread(*own);
	else
		PyThread_release_lock(file->lock);
	return *own != NULL;
}

static void leave(py_file *file, PyThreadState *own)
{
	if (own) {
		PyThreadState_Clear(own);
		PyEval_SaveThread();
		PyThreadState_Delete(own);
	} else {
		file->saved = PyEval_SaveThread();
	}
	PyThread_release_lock(file->lock);
}

/* Keeps the exception that is set, if it is the first. */
static lade_status keep_raised(py_file *file, const char *what, lade_error *err)
{
	PyObject *raised = PyErr_GetRaisedException();

	if (file->raised)
		Py_XDECREF(raised);
	else
		file->raised = raised;
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s raised an exception", what);
}

static lade_status no_state(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a thread's state");
}

/* A signal has come: its handler may raise (KeyboardInterrupt). */
static lade_status run_handlers(py_file *file, lade_error *err)
{
	lade_status status = LADE_OK;
	PyThreadState *own;

	if (!enter(file, &own))
		return no_state(err);
	if (PyErr_CheckSignals())
		status = keep_raised(file, "a signal's handler", err);
	leave(file, own);
	return status;
}

/* What the library asks from time to time. */
static bool ask(void *ctx)
{
	py_file *file = ctx;
	lade_error err;

	return PyThread_get_thread_ident() == file->caller && run_handlers(file, &err) != LADE_OK;
}

bool py_file_claim(py_file *file, const bool *ready)
{
	if (atomic_flag_test_and_set(&file->busy)) {
		PyErr_SetString(PyExc_RuntimeError,
		                "the file is in use: another thread's call, or a call within it, "
		                "has not ended");
		return false;
	}
	if (!*ready) {
		atomic_flag_clear(&file->busy);
		PyErr_SetString(PyExc_ValueError, "I/O operation on closed file");
		return false;
	}
	return true;
}

bool py_file_begin(py_file *file, const bool *ready)
{
	if (!py_file_claim(file, ready))
		return false;
	file->caller = PyThread_get_thread_ident();
	lade_cancel_clear(file->cancel);
	file->saved = PyEval_SaveThread();
	return true;
}

bool py_file_end(py_file *file, lade_status status, lade_error *err)
{
	PyEval_RestoreThread(file->saved);
	PyObject *raised = file->raised;
	file->raised = NULL;
	atomic_flag_clear(&file->busy);
	if (raised) {
		PyErr_SetRaisedException(raised);
		return false;
	}
	if (status && file->name[0]) {
		char text[LADE_MESSAGE_CAP];
		memcpy(text, err->message, sizeof(text));
		lade_fail(err, status, err->offset, "%s: %s", file->name, text);
	}
	if (status)
		py_raise(file->st, err, SIZE_MAX);
	return !status;
}

/* ---- reading ---------------------------------------------------------------------------- */

/* What an object's read(size) gives, into 'dst'; '*got' is 0 at the end. */
static bool call_read(py_file *file, void *dst, size_t size, size_t *got)
{
	PyObject *data = PyObject_CallMethod(file->object, "read", "n",
	                                     (Py_ssize_t)(size < PIECE ? size : PIECE));
	Py_buffer view;
	bool fits;

	if (!data)
		return false;
	if (data == Py_None) {
		PyErr_SetString(PyExc_BlockingIOError, "read() of the file object gave None");
		Py_DECREF(data);
		return false;
	}
	if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)) {
		Py_DECREF(data);
		return false;
	}
	*got = (size_t)view.len;
	fits = *got <= size;
	if (fits)
		memcpy(dst, view.buf, *got);
	else
		PyErr_Format(PyExc_OSError, "read(%zu) of the file object gave %zu bytes", size,
		             *got);
	PyBuffer_Release(&view);
	Py_DECREF(data);
	return fits;
}

static bool call_seek(py_file *file, uint64_t off)
{
	PyObject *done = PyObject_CallMethod(file->object, "seek", "K",
	                                     (unsigned long long)(file->start + off));

	Py_XDECREF(done);
	return done != NULL;
}

static lade_status file_read(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	py_file *file = ctx;
	lade_status status = LADE_OK;
	PyThreadState *own;

	*got = file->ahead_size - file->ahead_at;
	if (*got) {
		*got = *got < cap ? *got : cap;
		memcpy(dst, file->ahead + file->ahead_at, *got);
		file->ahead_at += *got;
		return LADE_OK;
	}
	while (file->fd >= 0) {
		ssize_t n = read(file->fd, dst, cap < PIECE * 64 ? cap : PIECE * 64);
		if (n >= 0) {
			*got = (size_t)n;
			return LADE_OK;
		}
		if (errno != EINTR)
			return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "reading %zu bytes: %s",
			                 cap, strerror(errno));
		status = run_handlers(file, err);
		if (status)
			return status;
	}
	if (!enter(file, &own))
		return no_state(err);
	if (!call_read(file, dst, cap, got)) {
		*got = 0;
		status = keep_raised(file, "read()", err);
	}
	leave(file, own);
	return status;
}

static lade_status too_short(const py_file *file, uint64_t off, lade_error *err)
{
	return lade_fail(err, LADE_E_TRUNCATED, off,
	                 "the file ends at %" PRIu64 ", it had %" PRIu64
	                 " bytes when it was opened",
	                 off, file->size);
}

static lade_status descriptor_read_at(py_file *file, uint64_t off, uint8_t *dst, size_t size,
                                      lade_error *err)
{
	while (size) {
		ssize_t n = pread(file->fd, dst, size < PIECE * 64 ? size : PIECE * 64,
		                  (off_t)(file->start + off));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return lade_fail(err, LADE_E_IO, off,
			                 "reading %zu bytes at %" PRIu64 ": %s", size, off,
			                 strerror(errno));
		if (n == 0)
			return too_short(file, off, err);
		dst += n;
		off += (uint64_t)n;
		size -= (size_t)n;
	}
	return LADE_OK;
}

static lade_status file_read_at(py_file *file, uint64_t off, void *dst, size_t size,
                                lade_error *err)
{
	lade_status status = LADE_OK;
	uint8_t *to = dst;
	size_t got = 1;
	PyThreadState *own;

	if (file->fd >= 0)
		return descriptor_read_at(file, off, dst, size, err);
	if (!enter(file, &own))
		return no_state(err);
	bool ok = call_seek(file, off);
	for (; ok && got && size; to += got, off += got, size -= got)
		ok = call_read(file, to, size, &got);
	if (!ok)
		status = keep_raised(file, "read() or seek()", err);
	else if (size)
		status = too_short(file, off, err);
	leave(file, own);
	return status;
}

lade_input py_file_input(py_file *file)
{
	return (lade_input){file, file_read};
}

static void file_read_ranges(void *ctx, lade_reading *reading, size_t count)
{
	py_file *file = ctx;

	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err;
		uint64_t off;

		range->object_size = file->size;
		lade_status status =
			lade_range_place(range, file->size, &off, &range->size, &err);
		if (!status && range->size)
			status = file_read_at(file, off, range->dst.data, range->size, &err);
		lade_reading_done(reading, i, status, &err);
	}
}

lade_source py_file_source(py_file *file)
{
	static const lade_source_ops ops = {.struct_size = sizeof(ops),
	                                    .flags = LADE_SOURCE_LOCAL,
	                                    .read = file_read_ranges};

	return (lade_source){&ops, file};
}

lade_status py_file_peek(py_file *file, size_t size, const uint8_t **out, size_t *have,
                         lade_error *err)
{
	uint8_t head[LADE_FORMAT_PEEK];
	lade_status status = LADE_OK;
	size_t n = 0, got = 1;

	size = size < sizeof(head) ? size : sizeof(head);
	while (!status && got && n < size) {
		status = file_read(file, head + n, size - n, &got, err);
		n += got;
	}
	if (!status)
		status = py_file_unread(file, head, n, err);
	*out = file->ahead;
	*have = n;
	return status;
}

lade_status py_file_unread(py_file *file, const void *data, size_t size, lade_error *err)
{
	size_t rest = file->ahead_size - file->ahead_at;
	uint8_t *ahead = malloc(size + rest + 1);

	if (!ahead)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of input", size + rest);
	if (size)
		memcpy(ahead, data, size);
	if (rest)
		memcpy(ahead + size, file->ahead + file->ahead_at, rest);
	free(file->ahead);
	file->ahead = ahead;
	file->ahead_at = 0;
	file->ahead_size = size + rest;
	return LADE_OK;
}

lade_status py_file_rewind(py_file *file, lade_error *err)
{
	lade_status status = LADE_OK;
	PyThreadState *own;

	file->ahead_at = file->ahead_size = 0;
	if (file->fd >= 0) {
		if (lseek(file->fd, (off_t)file->start, SEEK_SET) < 0)
			return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
			                 "going to byte %" PRIu64 ": %s", file->start,
			                 strerror(errno));
		return LADE_OK;
	}
	if (!enter(file, &own))
		return no_state(err);
	if (!call_seek(file, 0))
		status = keep_raised(file, "seek()", err);
	leave(file, own);
	return status;
}

/* ---- writing ---------------------------------------------------------------------------- */

/* What has no length (a pipe) refuses harmlessly. */
lade_status py_file_empty(py_file *file, lade_error *err)
{
	if (file->fd >= 0 && !file->emptied && !(fcntl(file->fd, F_GETFL) & O_APPEND) &&
	    ftruncate(file->fd, 0) && errno != EINVAL)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "truncating: %s", strerror(errno));
	file->emptied = true;
	return LADE_OK;
}

/* The library's first byte comes when it has accepted the options: refused ones spoil nothing. */
static lade_status descriptor_write(py_file *file, const uint8_t *src, size_t size, lade_error *err)
{
	lade_status status = py_file_empty(file, err);

	while (!status && size) {
		ssize_t n = write(file->fd, src, size < PIECE * 64 ? size : PIECE * 64);
		if (n < 0 && errno == EINTR) {
			status = run_handlers(file, err);
			continue;
		}
		if (n < 0)
			return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "writing %zu bytes: %s",
			                 size, strerror(errno));
		file->some = file->some || n > 0;
		src += n;
		size -= (size_t)n;
	}
	return status;
}

/* From a raw file None says that nothing was written; other objects may say nothing at all. */
static bool would_block(PyObject *object)
{
	PyObject *io = PyImport_ImportModule("io");
	PyObject *raw = io ? PyObject_GetAttrString(io, "RawIOBase") : NULL;
	int is = raw ? PyObject_IsInstance(object, raw) : -1;

	Py_XDECREF(io);
	Py_XDECREF(raw);
	if (is > 0)
		PyErr_SetString(PyExc_BlockingIOError, "write() of the file object gave None");
	return is != 0;
}

/* Objects get bytes of their own: they may keep them.  write() may take less than all. */
static bool call_write(py_file *file, const uint8_t *src, size_t size)
{
	while (size) {
		size_t n = size < PIECE ? size : PIECE;
		PyObject *count = PyObject_CallMethod(file->object, "write", "y#",
		                                      (const char *)src, (Py_ssize_t)n);
		if (!count)
			return false;
		Py_ssize_t took = count == Py_None ? (Py_ssize_t)n : -1;
		if (PyLong_Check(count)) {
			took = PyLong_AsSsize_t(count);
			PyErr_Clear();
		}
		bool nothing = count == Py_None && would_block(file->object);
		bool fits = took > 0 && (size_t)took <= n;
		if (!nothing && !fits)
			PyErr_Format(PyExc_OSError,
			             "write() of the file object took %R of %zu bytes", count, n);
		Py_DECREF(count);
		if (nothing || !fits)
			return false;
		file->some = true;
		src += took;
		size -= (size_t)took;
	}
	return true;
}

static lade_status file_write(void *ctx, const void *src, size_t size, lade_error *err)
{
	py_file *file = ctx;
	lade_status status = LADE_OK;
	PyThreadState *own;

	if (file->fd >= 0)
		return descriptor_write(file, src, size, err);
	if (!enter(file, &own))
		return no_state(err);
	if (!call_write(file, src, size))
		status = keep_raised(file, "write()", err);
	leave(file, own);
	return status;
}

lade_output py_file_output(py_file *file)
{
	return (lade_output){file, file_write};
}

/* ---- life ------------------------------------------------------------------------------- */

/* Where an object says that it is. */
static bool call_tell(py_file *file, uint64_t *place)
{
	PyObject *at = PyObject_CallMethod(file->object, "tell", NULL);
	int over = 0;
	long long n = at && PyLong_Check(at) ? PyLong_AsLongLongAndOverflow(at, &over) : -1;

	if (at && (n < 0 || over))
		PyErr_Format(PyExc_OSError, "tell() of the file object gave %R, no place in a file",
		             at);
	Py_XDECREF(at);
	*place = (uint64_t)n;
	return !PyErr_Occurred();
}

/* Whether it can be read anywhere, and from where. */
static bool find_size(py_file *file)
{
	PyObject *can, *went;
	uint64_t end;
	off_t here;
	struct stat st;

	if (file->fd >= 0) {
		here = lseek(file->fd, 0, SEEK_CUR);
		if (here >= 0 && !fstat(file->fd, &st) && S_ISREG(st.st_mode)) {
			file->anywhere = true;
			file->start = (uint64_t)here;
			file->size = st.st_size > here ? (uint64_t)(st.st_size - here) : 0;
		}
		return true;
	}
	can = PyObject_CallMethod(file->object, "seekable", NULL);
	if (!can) {
		if (!PyErr_ExceptionMatches(PyExc_AttributeError))
			return false;
		PyErr_Clear();
		return true;
	}
	file->anywhere = PyObject_IsTrue(can) > 0;
	Py_DECREF(can);
	if (!file->anywhere)
		return !PyErr_Occurred();
	if (!call_tell(file, &file->start))
		return false;
	went = PyObject_CallMethod(file->object, "seek", "ii", 0, 2);
	Py_XDECREF(went);
	if (!went || !call_tell(file, &end))
		return false;
	file->size = end > file->start ? end - file->start : 0;
	return call_seek(file, 0);
}

bool py_file_init(py_file *file, py_state *st, int fd, PyObject *object, const char *name,
                  bool writing)
{
	size_t size = strlen(name);

	file->st = st;
	file->fd = fd;
	file->object = fd >= 0 ? NULL : Py_NewRef(object);
	/* The end of a long name tells more than its beginning. */
	PyOS_snprintf(file->name, sizeof(file->name), "%s%s", size < PY_FILE_NAME ? "" : "...",
	              size < PY_FILE_NAME ? name : name + size - (PY_FILE_NAME - 4));
	file->interpreter = PyInterpreterState_Get();
	atomic_flag_clear(&file->busy);
	file->lock = PyThread_allocate_lock();
	if (!file->lock || lade_cancel_new(ask, file, &file->cancel, NULL)) {
		PyErr_NoMemory();
		return false;
	}
	return writing || find_size(file);
}

void py_file_reset(py_file *file)
{
	if (file->fd >= 0 && file->st)
		close(file->fd);
	file->fd = -1;
	Py_CLEAR(file->object);
	Py_CLEAR(file->raised);
	free(file->ahead);
	file->ahead = NULL;
	file->ahead_at = file->ahead_size = 0;
	lade_cancel_free(file->cancel);
	file->cancel = NULL;
	if (file->lock)
		PyThread_free_lock(file->lock);
	file->lock = NULL;
}
