/*
 * strided.c: strided memory as layouts, and its copies to and from contiguous memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

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
	if (view && !py_array_shape(view, array->ndim, array->shape, array->strides))
		Py_CLEAR(view);
	return view;
}

/* The bytes of a strided array from or to contiguous memory: on the host at once, else as an item
 * of the codec "copy". */
static lade_status copy(const py_array *array, lade_span flat, bool gather, uintptr_t stream,
                        lade_error *err)
{
	char *first;
	size_t extent;
	lade_layout layout = py_layout(array, &first, &extent);
	lade_segment segment = {flat.data, flat.size, flat.place, flat.size};
	lade_item item = {.src = &segment,
	                  .src_count = 1,
	                  .dst = {first, extent, array->place},
	                  .layout = &layout};
	lade_batch_options options = {.struct_size = sizeof(options),
	                              .stream = (lade_stream)stream};
	bool host = lade_kind_is_host(array->place.kind) && lade_kind_is_host(flat.place.kind);
	lade_status status;

	if (gather) {
		segment = (lade_segment){first, extent, array->place, 0};
		item.dst = flat;
	}
	Py_BEGIN_ALLOW_THREADS
	if (!host)
		status = (gather ? lade_encode_into : lade_decode_into)(
			lade_engine_default(), array->st->copy, &item, 1, NULL, &options, err);
	else if (gather)
		status = lade_layout_gather(&layout, lade_host_cspan(first, extent), flat.data,
		                            array->size, err);
	else
		status = lade_layout_scatter(&layout, flat.data, array->size,
		                             lade_host_span(first, extent), err);
	Py_END_ALLOW_THREADS
	return status;
}

lade_status py_gather(const py_array *array, lade_span dst, uintptr_t stream, lade_error *err)
{
	return copy(array, dst, true, stream, err);
}

/* Puts the array's last bytes behind those of a shorter result. */
static lade_status keep_rest(const py_array *array, const py_array *src, size_t size,
                             uintptr_t stream, lade_error *err)
{
	size_t rest = array->size - size;
	py_array *kept = py_array_new(array->st, array->size, src->place, stream);
	lade_status status;

	if (!kept) {
		PyErr_Clear();
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes",
		                 array->size);
	}
	status = py_gather(array, (lade_span){kept->data, kept->size, kept->place}, stream, err);
	if (!status) {
		Py_BEGIN_ALLOW_THREADS
		status = lade_copy(NULL, (lade_cspan){kept->data + size, rest, kept->place},
		                   (lade_span){src->data + size, rest, src->place},
		                   (lade_stream)stream, err);
		Py_END_ALLOW_THREADS
	}
	Py_DECREF(kept);
	return status;
}

lade_status py_scatter(const py_array *array, const py_array *src, size_t size, uintptr_t stream,
                       lade_error *err)
{
	lade_status status = LADE_OK;

	if (size < array->size)
		status = keep_rest(array, src, size, stream, err);
	return status ? status
	              : copy(array, (lade_span){src->data, array->size, src->place}, false, stream,
	                     err);
}
