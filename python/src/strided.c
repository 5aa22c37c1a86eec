/*
 * strided.c: strided host memory: as rows, and to and from contiguous memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

size_t py_extent(const py_array *array)
{
	size_t extent = array->dtype.size;

	if (!array->size)
		return 0;
	for (int i = 0; i < array->ndim; i++)
		extent += (size_t)(array->shape[i] - 1) * (size_t)array->strides[i];
	return extent;
}

/* Rows of dimensions whose strides are not negative. */
static bool find_rows(size_t elem, int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                      size_t *row_size, size_t *row_pitch)
{
	size_t row = elem, pitch = 0, count = 1;
	int i = ndim - 1;

	/* Inner dimensions that follow one another make the row. */
	for (; i >= 0; i--) {
		if (shape[i] == 1)
			continue;
		if (strides[i] != (Py_ssize_t)row)
			break;
		row *= (size_t)shape[i];
	}
	/* The outer ones must have one pitch. */
	for (; i >= 0; i--) {
		if (shape[i] == 1)
			continue;
		if (strides[i] <= 0)
			return false;
		if (!pitch)
			pitch = (size_t)strides[i];
		else if ((size_t)strides[i] != pitch * count)
			return false;
		count *= (size_t)shape[i];
	}
	*row_size = row;
	*row_pitch = pitch;
	return pitch >= row;
}

bool py_rows(const py_array *array, size_t *row_size, size_t *row_pitch)
{
	return find_rows(array->dtype.size, array->ndim, array->shape, array->strides, row_size,
	                 row_pitch);
}

bool py_memory_rows(const py_array *array, char **first, size_t *extent, size_t *row_size,
                    size_t *row_pitch)
{
	Py_ssize_t shape[PY_NDIM_MAX], strides[PY_NDIM_MAX];
	int n = 0;

	*first = array->data;
	*extent = array->size ? array->dtype.size : 0;
	/* The widest stride first, and all of them upwards. */
	for (int i = 0; array->size && i < array->ndim; i++) {
		Py_ssize_t step = array->strides[i], last = array->shape[i] - 1;
		int at = n++;
		if (step < 0) {
			*first += step * last;
			step = -step;
		}
		*extent += (size_t)(step * last);
		for (; at > 0 && strides[at - 1] < step; at--) {
			strides[at] = strides[at - 1];
			shape[at] = shape[at - 1];
		}
		strides[at] = step;
		shape[at] = last + 1;
	}
	return find_rows(array->dtype.size, n, shape, strides, row_size, row_pitch);
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

/*
 * Copies elements between the strided memory of dimension 'dim' on and contiguous memory, as long
 * as 'left' bytes last.  Returns the place in the contiguous memory that it came to.
 */
static char *walk(const py_array *array, int dim, char *strided, char *flat, bool gather,
                  size_t *left)
{
	size_t elem = array->dtype.size;

	if (dim == array->ndim) {
		size_t n = *left < elem ? *left : elem;
		memcpy(gather ? flat : strided, gather ? strided : flat, n);
		*left -= n;
		return flat + n;
	}
	if (dim == array->ndim - 1 && array->strides[dim] == (Py_ssize_t)elem) {
		size_t n = (size_t)array->shape[dim] * elem;
		n = *left < n ? *left : n;
		memcpy(gather ? flat : strided, gather ? strided : flat, n);
		*left -= n;
		return flat + n;
	}
	for (Py_ssize_t i = 0; i < array->shape[dim] && *left; i++)
		flat = walk(array, dim + 1, strided + i * array->strides[dim], flat, gather, left);
	return flat;
}

void py_gather(const py_array *array, char *dst)
{
	size_t left = array->size;

	walk(array, 0, array->data, dst, true, &left);
}

void py_scatter(const py_array *array, const char *src, size_t size)
{
	size_t left = size < array->size ? size : array->size;

	/* 'flat' is only read when scattering. */
	walk(array, 0, array->data, (char *)(uintptr_t)src, false, &left);
}
