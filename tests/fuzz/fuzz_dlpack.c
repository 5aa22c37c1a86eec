/*
 * fuzz_dlpack.c: the fields of a tensor that another library gives.  What is taken lies in its
 * array's span, element by element; what is refused stays the giver's; what was taken can be given
 * and taken again.
 *
 *     | versioned 1 | ndim 1 | type 4 | device 1 | with strides 1 | offset 8 | shape, strides 8 |
 *
 * The memory is never touched, so that addresses may be anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "dlpack.h"

#include <lade/lade.h>

#include <stdlib.h>
#include <string.h>

#define HEAD 24

static int deleted;

static void expect(bool good)
{
	if (!good)
		abort();
}

static void delete_old(DLManagedTensor *self)
{
	(void)self;
	deleted++;
}

static void delete_versioned(DLManagedTensorVersioned *self)
{
	(void)self;
	deleted++;
}

/* The corners of the box are in the span, computed with numbers that are wide enough. */
static void check(const lade_tensor *t)
{
	lade_span span = lade_array_span(t->array);
	__int128 first = (__int128)(uintptr_t)t->data, last = first;
	bool empty = false;

	expect(t->ndim <= LADE_DIMS_MAX && t->struct_size == sizeof *t);
	for (size_t i = 0; i < t->ndim; i++)
		empty |= !t->shape[i];
	if (empty) { /* of any strides */
		expect(!span.size);
		return;
	}
	for (size_t i = 0; i < t->ndim; i++) {
		__int128 all = ((__int128)t->shape[i] - 1) * t->strides[i];
		*(all < 0 ? &first : &last) += all;
	}
	last += t->type.bits / 8 * t->type.lanes;
	expect(first == (__int128)(uintptr_t)span.data && last - first == (__int128)span.size);
}

static void again(const lade_tensor *t)
{
	lade_tensor back = {.struct_size = sizeof back};
	DLManagedTensorVersioned *managed = NULL;

	expect(lade_tensor_give_versioned(t, false, &managed, NULL) == LADE_OK);
	expect(lade_tensor_take_versioned(managed, &back, NULL) == LADE_OK);
	expect(back.data == t->data && back.ndim == t->ndim && back.read_only == t->read_only);
	expect(!memcmp(back.shape, t->shape, sizeof back.shape));
	expect(!memcmp(back.strides, t->strides, sizeof back.strides));
	lade_array_unref(back.array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD)
		return 0;
	size_t words = (size - HEAD) / 8, half = words / 2;
	int64_t *shape = malloc(half * 8 + 1), *strides = malloc(half * 8 + 1);
	DLTensor tensor = {.ndim = (int8_t)data[1], .dtype = {data[2], data[3], data[4]},
	                   .device = {data[6] % 16, 0}, .shape = shape,
	                   .strides = data[7] & 1 ? strides : NULL};
	uint64_t at;

	expect(shape && strides);
	memcpy(&tensor.byte_offset, data + 8, 8);
	memcpy(&at, data + 16, 8);
	tensor.data = (void *)(uintptr_t)at;
	memcpy(shape, data + HEAD, half * 8);
	memcpy(strides, data + HEAD + half * 8, half * 8);
	/* The tables have as many entries as the tensor says. */
	if (tensor.ndim > (int32_t)half && tensor.ndim <= LADE_DIMS_MAX)
		tensor.ndim = (int32_t)half;

	DLManagedTensor old = {tensor, NULL, delete_old};
	DLManagedTensorVersioned versioned = {
		{1, data[5]}, NULL, delete_versioned, data[6], tensor};
	lade_tensor out = {.struct_size = sizeof out};
	lade_error err = {0};
	deleted = 0;
	lade_status status = data[0] & 1 ? lade_tensor_take_versioned(&versioned, &out, &err)
	                                 : lade_tensor_take(&old, &out, &err);
	if (status == LADE_OK) {
		check(&out);
		again(&out);
		expect(deleted == 0);
		lade_array_unref(out.array);
		expect(deleted == 1);
	} else {
		expect(err.status == status && err.message[0] && !out.array);
		expect(deleted == 0);
	}
	free(shape);
	free(strides);
	return 0;
}
