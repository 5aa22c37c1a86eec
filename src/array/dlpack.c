/*
 * dlpack.c: DLPack's tensors, old and versioned, both ways.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/try.h"

#include <lade/dlpack.h>

#include <stdlib.h>

/* The ABI, versions 0.x and 1 (https://dmlc.github.io/dlpack). */
typedef struct dl_tensor {
	void *data;
	struct {
		int32_t type, id;
	} device;
	int32_t ndim;
	lade_tensor_type type;
	int64_t *shape;
	int64_t *strides; /* in elements; NULL: C order */
	uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensor {
	dl_tensor tensor;
	void *ctx;
	void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
	struct {
		uint32_t major, minor;
	} version;
	void *ctx;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags;
	dl_tensor tensor;
};

enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 };
enum { DL_MAJOR = 1, DL_MINOR = 1 };
enum { DL_CPU = 1, DL_CUDA = 2, DL_PINNED = 3, DL_MANAGED = 13 };

/* No memory has more bytes, and sums of two such numbers do not overflow. */
#define EXTENT_MAX (PTRDIFF_MAX / 2)

/* ---- places ----------------------------------------------------------------------------- */

void lade_place_to_dlpack(lade_place place, int32_t *type, int32_t *id)
{
	static const int32_t types[LADE_KIND_COUNT] = {DL_CPU, DL_PINNED, DL_MANAGED, DL_CUDA};

	if (type)
		*type = (unsigned)place.kind < LADE_KIND_COUNT ? types[place.kind] : 0;
	if (id)
		*id = place.kind == LADE_DEVICE || place.kind == LADE_MANAGED ? place.device : 0;
}

lade_status lade_place_from_dlpack(int32_t type, int32_t id, lade_place *out, lade_error *err)
{
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "lade_place_from_dlpack: out is NULL");
	switch (type) {
	case DL_CPU:
		*out = LADE_PLACE_HOST;
		return LADE_OK;
	case DL_PINNED:
		*out = (lade_place){LADE_PINNED, 0};
		return LADE_OK;
	case DL_MANAGED:
		*out = (lade_place){LADE_MANAGED, id};
		return LADE_OK;
	case DL_CUDA:
		*out = (lade_place){LADE_DEVICE, id};
		return LADE_OK;
	}
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                 "DLPack: device type %d is not supported", (int)type);
}

/* ---- shapes ----------------------------------------------------------------------------- */

/* Bytes of an element; 0: it has none, or a part of one. */
static size_t elem_size(lade_tensor_type type)
{
	size_t bits = (size_t)type.bits * type.lanes;

	return type.bits % 8 ? 0 : bits / 8;
}

/* What a tensor's elements reach to, from the first one's first byte: 'below' bytes before it and
 * 'above' from it on.  Both 0 without elements.  Fails: LADE_E_RANGE */
static lade_status measure(const lade_tensor *t, size_t *below, size_t *above, lade_error *err)
{
	size_t low = 0, high = elem_size(t->type);

	*below = *above = 0;
	for (size_t i = 0; i < t->ndim; i++)
		if (!t->shape[i])
			return LADE_OK;
	for (size_t i = 0; i < t->ndim; i++) {
		ptrdiff_t stride = t->strides[i];
		size_t step = stride < 0 ? 0 - (size_t)stride : (size_t)stride, all;
		if (__builtin_mul_overflow(step, t->shape[i] - 1, &all) || all > EXTENT_MAX ||
		    (stride < 0 ? low : high) > EXTENT_MAX - all)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "DLPack: dimension %zu of %zu elements %td bytes apart is "
			                 "not possible",
			                 i, t->shape[i], stride);
		if (stride < 0)
			low += all;
		else
			high += all;
	}
	*below = low;
	*above = high;
	return LADE_OK;
}

/* ---- taking ----------------------------------------------------------------------------- */

static lade_status read_shape(const dl_tensor *dl, lade_tensor *t, lade_error *err)
{
	size_t elem = elem_size(t->type), total = elem;
	bool empty = false;

	for (size_t i = 0; i < t->ndim; i++) {
		if (dl->shape[i] < 0 || (uint64_t)dl->shape[i] > EXTENT_MAX)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "DLPack: dimension %zu has %lld elements", i,
			                 (long long)dl->shape[i]);
		t->shape[i] = (size_t)dl->shape[i];
		empty |= !t->shape[i];
	}
	/* Also of an array that repeats elements all of them are counted in bytes. */
	for (size_t i = t->ndim; i-- > 0;) {
		int64_t stride;
		if (!dl->strides)
			t->strides[i] = (ptrdiff_t)total;
		else if (__builtin_mul_overflow(dl->strides[i], (int64_t)elem, &stride))
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "DLPack: dimension %zu has a stride of %lld elements of "
			                 "%zu bytes",
			                 i, (long long)dl->strides[i], elem);
		else
			t->strides[i] = (ptrdiff_t)stride;
		if (empty)
			continue;
		if (__builtin_mul_overflow(total, t->shape[i], &total) || total > EXTENT_MAX)
			return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
			                 "DLPack: dimension %zu of %zu elements needs more bytes "
			                 "than there can be",
			                 i, t->shape[i]);
	}
	return LADE_OK;
}

/* Fills '*out', without its array, and where its memory is. */
static lade_status read_tensor(const dl_tensor *dl, lade_tensor *out, lade_span *span,
                               lade_error *err)
{
	lade_tensor t = {.struct_size = sizeof t, .type = dl->type};
	size_t below, above;
	lade_status status;

	if (dl->ndim < 0 || dl->ndim > LADE_DIMS_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "DLPack: %d dimensions, at most %d", (int)dl->ndim, LADE_DIMS_MAX);
	if (dl->ndim && !dl->shape)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "DLPack: the shape is NULL");
	if (!elem_size(t.type))
		return lade_fail(err, LADE_E_DTYPE, LADE_NO_OFFSET,
		                 "DLPack: type code %d of %d bits and %d lanes has no whole bytes",
		                 t.type.code, t.type.bits, t.type.lanes);
	t.ndim = (size_t)dl->ndim;
	TRY(lade_place_from_dlpack(dl->device.type, dl->device.id, &span->place, err));
	TRY(read_shape(dl, &t, err));
	TRY(measure(&t, &below, &above, err));
	uintptr_t at = (uintptr_t)dl->data;
	if (above && !dl->data)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "DLPack: the data is NULL, the shape has %zu bytes", above);
	if (dl->data && (__builtin_add_overflow(at, dl->byte_offset, &at) || at < below ||
	                 above > UINTPTR_MAX - at))
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "DLPack: %llu bytes from the data on, %zu before and %zu behind "
		                 "are not possible",
		                 (unsigned long long)dl->byte_offset, below, above);
	t.data = (void *)at;
	span->data = (void *)(at - below);
	span->size = below + above;
	*out = t;
out:
	return status;
}

/* The caller's struct has a size that this version can fill. */
static lade_status check_out(const void *managed, const lade_tensor *out, lade_error *err)
{
	size_t size;

	if (!managed || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 managed ? "out" : "managed");
	size = out->struct_size ? out->struct_size : 1;
	return lade__size_given(&size, LADE__SIZE_TO(lade_tensor, strides), "tensor's struct_size",
	                        err);
}

void lade_tensor_drop(struct DLManagedTensor *managed)
{
	if (managed && managed->deleter)
		managed->deleter(managed);
}

void lade_tensor_drop_versioned(struct DLManagedTensorVersioned *managed)
{
	if (managed && managed->deleter)
		managed->deleter(managed);
}

static void old_gone(void *ctx)
{
	lade_tensor_drop(ctx);
}

static void versioned_gone(void *ctx)
{
	lade_tensor_drop_versioned(ctx);
}

static lade_status take(const dl_tensor *dl, void (*gone)(void *ctx), void *ctx, bool read_only,
                        lade_tensor *out, lade_error *err)
{
	lade_array_options options = {.struct_size = sizeof options, .gone = gone, .gone_ctx = ctx};
	lade_tensor t;
	lade_span span;
	lade_status status;

	TRY(read_tensor(dl, &t, &span, err));
	TRY(lade_array_wrap(span, &options, &t.array, err));
	t.read_only = read_only;
	t.struct_size = out->struct_size;
	lade__struct_copy(out, t.struct_size, &t, sizeof t);
out:
	return status;
}

lade_status lade_tensor_take(struct DLManagedTensor *managed, lade_tensor *out, lade_error *err)
{
	lade_status status = check_out(managed, out, err);

	return status != LADE_OK
	               ? status
	               : take(&managed->tensor, old_gone, managed, false, out, err);
}

lade_status lade_tensor_take_versioned(struct DLManagedTensorVersioned *managed, lade_tensor *out,
                                       lade_error *err)
{
	lade_status status = check_out(managed, out, err);

	if (status != LADE_OK)
		return status;
	/* Of another major version nothing but the deleter's place is known. */
	if (managed->version.major != DL_MAJOR)
		return lade_fail(err, LADE_E_VERSION, LADE_NO_OFFSET,
		                 "DLPack %u.%u, and only 1.x is known",
		                 (unsigned)managed->version.major,
		                 (unsigned)managed->version.minor);
	return take(&managed->tensor, versioned_gone, managed,
	            (managed->flags & DL_READ_ONLY) != 0, out, err);
}

/* ---- giving ----------------------------------------------------------------------------- */

/* A tensor of ours; its shape and its strides follow it. */
typedef struct given {
	union {
		struct DLManagedTensor old;
		struct DLManagedTensorVersioned versioned;
	} managed;
	lade_array *array;
	int64_t dims[];
} given;

static void given_free(given *g)
{
	lade_array_unref(g->array);
	free(g);
}

static void delete_old(struct DLManagedTensor *managed)
{
	given_free(managed->ctx);
}

static void delete_versioned(struct DLManagedTensorVersioned *managed)
{
	given_free(managed->ctx);
}

/* All elements are in the array's memory. */
static lade_status check_inside(const lade_tensor *t, lade_error *err)
{
	lade_span span = lade_array_span(t->array);
	uintptr_t first = (uintptr_t)span.data, at = (uintptr_t)t->data;
	size_t below, above;
	lade_status status = measure(t, &below, &above, err);

	if (status != LADE_OK || !above)
		return status;
	if (at < first || at - first < below || at - first > span.size ||
	    above > span.size - (at - first))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "tensor: %zu bytes before its data and %zu behind are not in the "
		                 "array's %zu",
		                 below, above, span.size);
	return LADE_OK;
}

/* Reads what is to be given, and checks it. */
static lade_status read_given(const lade_tensor *tensor, const void *out, lade_tensor *t,
                              lade_error *err)
{
	size_t elem;
	lade_status status;

	if (!tensor || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 tensor ? "out" : "tensor");
	status = lade__options_read(t, sizeof *t, tensor, "tensor", err);
	if (status != LADE_OK)
		return status;
	elem = elem_size(t->type);
	if (!t->array || t->ndim > LADE_DIMS_MAX || !elem)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "tensor: %zu dimensions of elements of %zu bytes in %s", t->ndim,
		                 elem, t->array ? "an array" : "no array");
	for (size_t i = 0; i < t->ndim; i++) {
		if (t->shape[i] > EXTENT_MAX)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "tensor: dimension %zu has %zu elements", i, t->shape[i]);
		if (t->strides[i] % (ptrdiff_t)elem)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "DLPack: a stride of %td bytes is not a multiple of the "
			                 "element's %zu",
			                 t->strides[i], elem);
	}
	return check_inside(t, err);
}

static given *give(const lade_tensor *t, bool versioned, lade_error *err)
{
	given *g = calloc(1, sizeof *g + 2 * t->ndim * sizeof g->dims[0]);
	dl_tensor *dl;
	lade_place place;

	if (!g) {
		lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a tensor");
		return NULL;
	}
	dl = versioned ? &g->managed.versioned.tensor : &g->managed.old.tensor;
	for (size_t i = 0; i < t->ndim; i++) {
		g->dims[i] = (int64_t)t->shape[i];
		g->dims[t->ndim + i] = t->strides[i] / (ptrdiff_t)elem_size(t->type);
	}
	place = lade_array_span(t->array).place;
	lade_place_to_dlpack(place, &dl->device.type, &dl->device.id);
	dl->data = t->data;
	dl->ndim = (int32_t)t->ndim;
	dl->type = t->type;
	dl->shape = g->dims;
	dl->strides = g->dims + t->ndim;
	g->array = lade_array_ref(t->array);
	return g;
}

lade_status lade_tensor_give(const lade_tensor *tensor, struct DLManagedTensor **out,
                             lade_error *err)
{
	lade_tensor t;
	lade_status status = read_given(tensor, out, &t, err);
	given *g;

	if (status == LADE_OK && t.read_only)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "DLPack below 1.0 cannot say that memory is read-only");
	if (status != LADE_OK)
		return status;
	g = give(&t, false, err);
	if (!g)
		return LADE_E_NOMEM;
	g->managed.old.ctx = g;
	g->managed.old.deleter = delete_old;
	*out = &g->managed.old;
	return LADE_OK;
}

lade_status lade_tensor_give_versioned(const lade_tensor *tensor, bool copied,
                                       struct DLManagedTensorVersioned **out, lade_error *err)
{
	lade_tensor t;
	lade_status status = read_given(tensor, out, &t, err);
	given *g;

	if (status != LADE_OK)
		return status;
	g = give(&t, true, err);
	if (!g)
		return LADE_E_NOMEM;
	g->managed.versioned.version.major = DL_MAJOR;
	g->managed.versioned.version.minor = DL_MINOR;
	g->managed.versioned.ctx = g;
	g->managed.versioned.deleter = delete_versioned;
	g->managed.versioned.flags =
		(t.read_only ? DL_READ_ONLY : 0u) | (copied ? DL_IS_COPIED : 0u);
	*out = &g->managed.versioned;
	return LADE_OK;
}
