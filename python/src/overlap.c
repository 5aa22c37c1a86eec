/*
 * overlap.c: whether the destinations of one call lie apart from each other and from the sources.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

static bool raise_overlap(const lade_error *err)
{
	if (err->status == LADE_E_NOMEM)
		PyErr_NoMemory();
	else
		PyErr_Format(PyExc_ValueError, "out: %s", err->message);
	return false;
}

bool py_arrays_apart(const lade_arrays *arrays)
{
	lade_error err;

	return !lade_arrays_apart(arrays, NULL, &err) || raise_overlap(&err);
}

bool py_items_apart(const py_call *call, const py_work *work, const py_mem *outs)
{
	lade_region *dsts = NULL;
	lade_apart_options options = {.struct_size = sizeof(options),
	                              .fixed_sources = work->fixed};
	lade_error err = {.status = LADE_OK};

	for (size_t i = 0; outs && i < work->count; i++) {
		const py_array *array = outs[i].array;
		if (!outs[i].scratch)
			continue;
		if (!dsts && !(dsts = calloc(work->count, sizeof(*dsts))))
			return PyErr_NoMemory() != NULL;
		dsts[i] = (lade_region){.data = array->data,
		                        .size = array->dtype.size,
		                        .ndim = (size_t)array->ndim,
		                        .count = (const size_t *)array->shape,
		                        .strides = array->strides};
	}
	options.dsts = dsts;
	lade_items_apart(call->encode ? LADE_ENCODE : LADE_DECODE, work->items, work->count,
	                 &options, &err);
	free(dsts);
	return !err.status || raise_overlap(&err);
}
