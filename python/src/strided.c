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

bool py_rows(const py_array *array, size_t *row_size, size_t *row_pitch)
{
	size_t row = array->dtype.size, pitch = 0, count = 1;
	int i = array->ndim - 1;

	/* Inner dimensions that follow one another make the row. */
	for (; i >= 0; i--) {
		if (array->shape[i] == 1)
			continue;
		if (array->strides[i] != (Py_ssize_t)row)
			break;
		row *= (size_t)array->shape[i];
	}
	/* The outer ones must have one pitch. */
	for (; i >= 0; i--) {
		if (array->shape[i] == 1)
			continue;
		if (array->strides[i] < 0)
			return false;
		if (!pitch)
			pitch = (size_t)array->strides[i];
		else if ((size_t)array->strides[i] != pitch * count)
			return false;
		count *= (size_t)array->shape[i];
	}
	if (pitch < row)
		return false;
	*row_size = row;
	*row_pitch = pitch;
	return true;
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
