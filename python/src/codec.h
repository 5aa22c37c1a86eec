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
} py_call;

PyObject *py_call_run(py_call *call);
/* The decoded size of one source, by decoding where nothing else tells. */
bool py_call_size(py_codec *codec, PyObject *source, uint64_t *size);

#endif
