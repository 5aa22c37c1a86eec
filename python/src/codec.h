/*
 * codec.h: what codec.c and its calls share: sources and destinations of one call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_PY_CODEC_H
#define LADE_PY_CODEC_H

#include "lade_py.h"

/* Memory that a call, or its result, holds. */
typedef struct py_holds {
	PyObject *items; /* a tuple: the objects themselves */
	size_t count;
	bool live;       /* something of 'mems' has to be given back */
	py_state *st;    /* whose room 'mems' is */
	py_mem *mems;    /* 'one' for one; NULL where a BatchArray holds all */
	py_mem one;
} py_holds;

/* One call of encode, decode and their kin; references are borrowed. */
typedef struct py_call {
	py_codec *codec;
	bool encode, batch, return_errors;
	PyObject *source, *out, *config;
	bool typed; /* 'dtype' was given */
	py_dtype dtype;
	uint64_t range_off, range_size;
	bool into; /* the result is the count of bytes */
	bool wait; /* failures are to be raised by the call itself */
} py_call;

/* ---- holds.c ---- */

/* Takes hold of the one object, or the list's, of a call. */
bool py_hold(const py_call *call, PyObject *object, bool writable, py_holds *holds);
void py_holds_release(py_holds *holds);
/* The holds as an object that a result can own; they are moved into it. */
PyObject *py_holds_capsule(py_holds *holds);
/* The name of an argument and its item go before the message of the exception that is set. */
void py_blame(const char *what, size_t i);
bool py_is_batch(py_state *st, PyObject *object);

/* ---- overlap.c ---- */

/* Destinations in a table: each has its address first, and bytes behind that its size (an address
 * and a size_t) and, where 'rows_at' is not 0, the size of its rows and their pitch. */
typedef struct py_regions {
	const void *first;
	size_t step, size_at, rows_at;
} py_regions;

/* ValueError where two share memory; of strided ones only those that begin near each other, and
 * whose rows have one pitch, are compared. */
bool py_regions_apart(py_state *st, const py_regions *regions, size_t count);

/* ---- call.c ---- */

PyObject *py_call_run(py_call *call);
/* Whether so many bytes are elements of the type that is asked for; ValueError. */
bool py_fits(const py_call *call, size_t size, size_t i);
/* The sizes of the call's config, a tuple of 'count'; a new reference. */
PyObject *py_call_config(const py_call *call, size_t count);
/* The decoded size of one source, by decoding where nothing else tells. */
bool py_call_size(py_codec *codec, PyObject *source, uint64_t *size);

/* ---- enqueue.c ---- */

/* Whether all sources lie on a device that can do the call. */
bool py_enqueue_fits(const py_call *call, const py_holds *holds, int32_t *device);
/* Enqueues it, and gives what the caller gets; 'holds' are moved into what is kept.  NULL without
 * an exception: it cannot be enqueued, and nothing has happened. */
PyObject *py_enqueue(const py_call *call, int32_t device, py_holds *holds);

#endif
