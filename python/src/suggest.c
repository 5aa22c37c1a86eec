/*
 * suggest.c: liblade.suggest(): lade_suggest() on an array.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

/* (pipeline, ratio, encoded and decoded bytes a second, goals) */
static PyObject *row_of(const lade_suggestion *one)
{
	const lade_measurement *m = one->measured;
	double size = (double)m->size;

	return Py_BuildValue("(sdddI)", lade_spec_text(one->spec),
	                     m->encoded_size ? size / (double)m->encoded_size : 0.0,
	                     size / m->encode_seconds, size / m->decode_seconds,
	                     (unsigned)one->goals);
}

static PyObject *result_of(const lade_suggestions *found)
{
	PyObject *rows = PyList_New(0);

	for (size_t i = 0; rows && i < found->count; i++) {
		PyObject *row = row_of(found->items[i]);
		if (!row || PyList_Append(rows, row))
			Py_CLEAR(rows);
		Py_XDECREF(row);
	}
	if (!rows)
		return NULL;
	return Py_BuildValue("(nzON)", (Py_ssize_t)found->sample_size,
	                     found->dtype ? lade_dtype_text(found->dtype) : NULL,
	                     found->guessed ? Py_True : Py_False, rows);
}

/* _suggest(source, dtype or None, chunk_size, sample_size, threads, seconds, bandwidth) */
PyObject *py_suggest(PyObject *module, PyObject *args)
{
	py_state *st = PyModule_GetState(module);
	lade_suggest_options options = {.struct_size = sizeof(options)};
	lade_suggestions *found = NULL;
	PyObject *source, *out = NULL;
	const char *dtype;
	Py_ssize_t chunk_size, sample_size;
	lade_status status = LADE_OK;
	lade_error err;
	py_mem mem;
	py_wait wait;

	if (!PyArg_ParseTuple(args, "OznnIdd", &source, &dtype, &chunk_size, &sample_size,
	                      &options.threads, &options.seconds, &options.bandwidth))
		return NULL;
	options.chunk_size = (size_t)chunk_size;
	options.sample_size = (size_t)sample_size;
	options.guess = dtype == NULL;
	if (!py_mem_read(st, source, &mem))
		return NULL;
	if (!py_mem_flatten(&mem))
		goto out;
	if (dtype)
		status = lade_dtype_parse(dtype, &options.dtype, &err);
	if (!status) {
		py_wait_begin(&wait, true);
		options.cancel = wait.cancel;
		status = lade_suggest(lade_engine_default(),
		                      (lade_cspan){mem.data, mem.size, mem.place}, &options, &found,
		                      &err);
		if (!py_wait_end(&wait))
			goto out;
	}
	if (status)
		py_raise(st, &err, SIZE_MAX);
	else
		out = result_of(found);
out:
	lade_suggestions_free(found);
	py_mem_release(&mem);
	return out;
}
