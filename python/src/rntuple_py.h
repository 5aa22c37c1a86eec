/*
 * rntuple_py.h: what the files of liblade.rntuple share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_RNTUPLE_PY_H
#define LADE_RNTUPLE_PY_H

#include "lade_py.h"

/* Where the bytes of a file come from, as liblade.rntuple.open() names it. */
typedef enum py_from {
	PY_FROM_PATH = 0,     /* bytes: a path */
	PY_FROM_URL = 1,      /* a text, and headers of each request */
	PY_FROM_MEMORY = 2,   /* anything with memory */
	PY_FROM_FUNCTION = 3, /* (function, size): function([(offset, size), ...]) gives buffers */
} py_from;

/* A source, and what it keeps until py_bytes_reset(): after the source's close. */
typedef struct py_bytes {
	py_state *st;
	lade_source source;
	py_mem mem;         /* PY_FROM_MEMORY */
	PyObject *function; /* PY_FROM_FUNCTION */
	uint64_t size;
	PyObject *raised; /* what the function raised, until a call raises it */
} py_bytes;

/* Opens a source; false: an exception. */
bool py_bytes_open(py_bytes *bytes, py_state *st, int from, PyObject *object, PyObject *headers);
void py_bytes_reset(py_bytes *bytes);
/* Raises what the function raised, or the failure. */
void py_bytes_raise(py_bytes *bytes, const lade_error *err);

/* Text of a file, which may be any bytes. */
PyObject *py_rntuple_text(const char *text);
/* Appends an object to a list, and lets go of it; false: an exception. */
bool py_rntuple_append(PyObject *list, PyObject *item);

/* The tables of an RNTuple: lists of fields and columns. */
PyObject *py_rntuple_fields(const lade_rntuple *tuple);
PyObject *py_rntuple_columns(const lade_rntuple *tuple);

extern PyType_Spec py_rntuple_spec, py_rntuple_writer_spec, py_arrow_spec;

#endif
