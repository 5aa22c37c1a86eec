/*
 * strided.c: strided memory as layouts, and its copies to and from contiguous memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

lade_layout py_layout(const py_array *array, char **first, size_t *extent)
{
	size_t below = 0;

	*first = array->data;
	*extent = array->size ? array->dtype.size : 0;
	for (int i = 0; array->size && i < array->ndim; i++) {
		Py_ssize_t step = array->strides[i], last = array->shape[i] - 1;
		if (step < 0)
			below += (size_t)(-step * last);
		*extent += (size_t)(step < 0 ? -step * last : step * last);
	}
	*first -= below;
	return (lade_layout){.struct_size = sizeof(lade_layout),
	                     .elem_size = array->dtype.size,
	                     .ndim = (size_t)array->ndim,
	                     .shape = (const size_t *)array->shape,
	                     .strides = array->strides,
	                     .offset = below};
}

py_array *py_array_seen_as(py_array *array, py_dtype dtype)
{
	py_array *view;

	if (dtype.size != array->dtype.size) {
		PyErr_Format(PyExc_ValueError,
		             "data_type: elements of %u bytes, those of the strided out have %u",
		             (unsigned)dtype.size, (unsigned)array->dtype.size);
		return NULL;
	}
	view = py_array_part(array->st, (PyObject *)array, array->data, 0, array->place, dtype,
	                     false, array->stream);
	if (view && py_array_dims(view, array->ndim)) {
		memcpy(view->shape, array->shape, (size_t)array->ndim * sizeof(*view->shape));
		memcpy(view->strides, array->strides, (size_t)array->ndim * sizeof(*view->shape));
		if (py_array_settle(view))
			return view;
	}
	Py_XDECREF(view);
	return NULL;
}

lade_status py_gather(const py_array *array, char *dst, lade_error *err)
{
	char *first;
	size_t extent;
	lade_layout layout = py_layout(array, &first, &extent);

	return lade_layout_gather(&layout, lade_host_cspan(first, extent), dst, array->size, err);
}

lade_status py_scatter(const py_array *array, char *src, size_t size, lade_error *err)
{
	char *first, *kept;
	size_t extent, rest = array->size - size;
	lade_layout layout = py_layout(array, &first, &extent);
	lade_status status;

	/* What the source does not fill stays as it is. */
	if (rest) {
		kept = malloc(array->size);
		if (!kept)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu bytes", array->size);
		status = py_gather(array, kept, err);
		if (!status)
			memcpy(src + size, kept + size, rest);
		free(kept);
		if (status)
			return status;
	}
	return lade_layout_scatter(&layout, src, array->size, lade_host_span(first, extent), err);
}
