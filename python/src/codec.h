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
	bool grows; /* py_call_run() finds out: some destination is an Array that may */
} py_call;

/* ---- holds.c ---- */

/* Takes hold of the one object, or the list's, of a call. */
bool py_hold(const py_call *call, PyObject *object, bool writable, py_holds *holds);
void py_holds_release(py_holds *holds);
/* The holds as an object that a result can own; they are moved into it. */
PyObject *py_holds_capsule(py_holds *holds);
/* The name of an argument and its item (PY_ALONE: it has none) go before the message of the
 * exception that is set, where it is one of ours, a TypeError, ValueError or BufferError. */
#define PY_ALONE SIZE_MAX
void py_blame(const char *what, size_t i);
/* A call's source or destination if it is a BatchArray of pieces; else NULL. */
py_batch *py_table(const py_call *call, PyObject *object);

/* ---- lists.c ---- */

typedef enum py_plain { PY_NOT_PLAIN, PY_PLAIN, PY_PLAIN_FAILED } py_plain;

/* The items of a list that the holds have taken hold of, where they are nothing but bytes and
 * plain numpy arrays: as the work's sources, which makes its tables; and as its destinations. */
py_plain py_list_sources(const py_call *call, const py_holds *holds, py_work *work);
bool py_list_outs(const py_call *call, const py_holds *holds, py_work *work);

/* ---- overlap.c ---- */

/* ValueError where lade_items_apart() or lade_arrays_apart() finds an overlap; 'outs', which may be
 * NULL, are the destinations' memory: where there is a scratch array, the array itself counts. */
bool py_items_apart(const py_call *call, const py_work *work, const py_mem *outs);
bool py_arrays_apart(const lade_arrays *arrays);

/* ---- call.c ---- */

/* Makes item 'i' of a work, yet without a destination; its source goes where this points. */
static inline lade_segment *py_call_item(const py_call *call, py_work *work, size_t i)
{
	work->items[i] = (lade_item){.src = &work->segments[i],
	                             .src_count = 1,
	                             .range_off = call->range_off,
	                             .range_size = call->range_size};
	return &work->segments[i];
}

PyObject *py_call_run(py_call *call);
/* Raises what a work failed with, unless the caller wants failures returned. */
bool py_call_raise(const py_call *call, const py_work *work);
/* The most bytes that an item can give; SIZE_MAX: nobody knows. */
size_t py_call_cap(const py_call *call, const py_work *work, size_t i);
/* The decoded size of one source, by decoding where nothing stores it, and that of its chunks: a
 * frame's own, else the codec's. */
bool py_call_size(py_codec *codec, PyObject *source, uint64_t *size, size_t *chunk_size);

/* ---- call_new.c ---- */

/* The result of a call without out=. */
PyObject *py_into_new(const py_call *call, py_work *work);
/* Decodes to memory that the library finds, in work->place.  False: an exception. */
bool py_go_new(const py_call *call, py_work *work);
/* The Array of a result that did not fail; where there is no memory, and failures are returned, it
 * has failed now.  NULL without an exception: it has no array. */
py_array *py_take_new(const py_call *call, py_work *work, size_t i, lade_place place);
/* Whether the bytes of item 'i' can be a result, on 'out' if that is known; where failures are
 * returned an item that cannot has failed. */
bool py_item_fits(const py_call *call, py_work *work, size_t i, const py_array *out);
/* What a call gives back, made of its arrays, which are given up. */
PyObject *py_finish(const py_call *call, const py_work *work, PyObject *arrays);

/* ---- call_out.c ---- */

/* The result of a call with out=. */
PyObject *py_into_out(const py_call *call, py_work *work);

/* ---- config.c ---- */

/* Reads the sizes of the call's config, which must be 'count'. */
bool py_config_sizes(const py_call *call, size_t count, uint64_t *to);

/* ---- enqueue.c ---- */

/* Whether all sources lie on a device that can do the call. */
bool py_enqueue_fits(const py_call *call, const py_holds *holds, int32_t *device);
/* Enqueues it, and gives what the caller gets; 'holds' are moved into what is kept.  NULL without
 * an exception: it cannot be enqueued, and nothing has happened. */
PyObject *py_enqueue(const py_call *call, int32_t device, py_holds *holds);

#endif
