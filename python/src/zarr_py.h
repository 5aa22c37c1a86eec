/*
 * zarr_py.h: what the files of liblade.zarr's C side share: stores, nodes, selections, reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZARR_PY_H
#define ZARR_PY_H

#include "lade_py.h"

/* ---- Python called by the library's threads ------------------------------------------------- */

/* An interpreter that threads of the library enter. */
typedef struct py_home_of {
	bool main;
	PyInterpreterState *interpreter;
} py_home_of;

typedef struct py_entered {
	PyGILState_STATE gil;
	PyThreadState *own; /* of interpreters other than the main one */
} py_entered;

py_home_of py_home_now(const py_state *st);
/* False: no memory for a thread's state. */
bool py_enter(const py_home_of *home, py_entered *in);
void py_exit(const py_entered *in);
/* The exception that is set becomes an error whose message has its type and text. */
lade_status py_as_error(lade_status status, const char *what, const char *key, lade_error *err);

/* ---- stores --------------------------------------------------------------------------------- */

typedef struct py_store {
	PyObject_HEAD
	py_state *st;
	lade_store *store;
} py_store;

extern PyType_Spec py_store_spec;

/* ---- selections ----------------------------------------------------------------------------- */

typedef struct py_selection {
	lade_zarr_selection selection;
	lade_zarr_index axes[PY_NDIM_MAX];
	Py_buffer views[PY_NDIM_MAX];
	size_t view_count;
} py_selection;

/*
 * Reads a key: an integer, a slice, an ellipsis, a contiguous buffer of int64 (a list) or of bool
 * (a mask), or a tuple of these.  'field' may be NULL; the key's buffers are held until the
 * release.
 */
bool py_selection_parse(const lade_zarr_array *array, PyObject *key, int mode, const char *field,
                        py_selection *out);
void py_selection_release(py_selection *selection);

/* ---- nodes ---------------------------------------------------------------------------------- */

/* Codecs in Python, and the engine that has them.  It is shared by an array and those that it
 * became by changes. */
typedef struct py_codecs py_codecs;
bool py_codecs_new(py_state *st, PyObject *find, PyObject *implementations,
                   lade_zarr_options *options, py_codecs **out);
void py_codecs_seal(py_codecs *codecs);
py_codecs *py_codecs_ref(py_codecs *codecs); /* NULL is fine for both */
void py_codecs_unref(py_codecs *codecs);

typedef struct py_node {
	PyObject_HEAD
	py_state *st;
	py_codecs *codecs; /* or NULL */
	lade_zarr *node;
	const lade_zarr_array *array; /* NULL: a group */
} py_node;

extern PyType_Spec py_node_spec;
extern PyType_Spec py_plan_spec;

PyObject *py_node_read(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *py_node_plan(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *py_node_write(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *py_node_append(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *py_node_result(PyObject *self, PyObject *const *args, Py_ssize_t count);
/* A node with codecs of its own reference; takes that of the node. */
PyObject *py_node_wrap(PyTypeObject *type, lade_zarr *node, py_codecs *codecs);

#endif
