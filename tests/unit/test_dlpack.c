/*
 * test_dlpack.c: DLPack's tensors taken and given, good ones and impossible ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "dlpack.h"

#include <lade/lade.h>

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int deleted;

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

static float numbers[6] = {0, 1, 2, 3, 4, 5};
static int64_t shape[33] = {2, 3}, strides[33] = {3, 1};

static DLTensor good(void)
{
	shape[0] = 2, shape[1] = 3;
	strides[0] = 3, strides[1] = 1;
	return (DLTensor){.data = numbers, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1},
	                  .shape = shape, .strides = strides};
}

static lade_status take(DLTensor tensor, lade_tensor *out, lade_error *err)
{
	static DLManagedTensor managed;

	managed = (DLManagedTensor){tensor, NULL, delete_old};
	deleted = 0;
	*out = (lade_tensor){.struct_size = sizeof *out};
	return lade_tensor_take(&managed, out, err);
}

static void test_taking(void **state)
{
	(void)state;
	lade_tensor t;
	DLTensor dl = good();

	assert_int_equal(take(dl, &t, NULL), LADE_OK);
	assert_ptr_equal(t.data, numbers);
	assert_int_equal(t.ndim, 2);
	assert_int_equal(t.shape[1], 3);
	assert_int_equal(t.strides[0], 12);
	assert_false(t.read_only);
	assert_ptr_equal(lade_array_span(t.array).data, numbers);
	assert_int_equal(lade_array_span(t.array).size, 24);
	lade_array_ref(t.array);
	lade_array_unref(t.array);
	assert_int_equal(deleted, 0);
	lade_array_unref(t.array);
	assert_int_equal(deleted, 1);

	/* C order without strides; from an offset; backwards. */
	dl.strides = NULL;
	assert_int_equal(take(dl, &t, NULL), LADE_OK);
	assert_int_equal(t.strides[0], 12);
	lade_array_unref(t.array);
	dl = good();
	dl.byte_offset = 20;
	strides[0] = -3, strides[1] = -1;
	assert_int_equal(take(dl, &t, NULL), LADE_OK);
	assert_ptr_equal(t.data, numbers + 5);
	assert_ptr_equal(lade_array_span(t.array).data, numbers);
	assert_int_equal(lade_array_span(t.array).size, 24);
	lade_array_unref(t.array);

	/* No dimensions, no elements, elements of several lanes. */
	dl = good();
	dl.ndim = 0, dl.shape = NULL;
	assert_int_equal(take(dl, &t, NULL), LADE_OK);
	assert_int_equal(lade_array_span(t.array).size, 4);
	lade_array_unref(t.array);
	dl = good();
	shape[0] = 0, dl.data = NULL, strides[1] = INT64_MAX / 8;
	assert_int_equal(take(dl, &t, NULL), LADE_OK);
	assert_int_equal(lade_array_span(t.array).size, 0);
	lade_array_unref(t.array);
	dl = good();
	dl.dtype.lanes = 2, shape[0] = 1, dl.strides = NULL;
	assert_int_equal(take(dl, &t, NULL), LADE_OK);
	assert_int_equal(lade_array_span(t.array).size, 24);
	lade_array_unref(t.array);
}

static void test_versioned(void **state)
{
	(void)state;
	DLManagedTensorVersioned managed = {{1, 7}, NULL, delete_versioned, 1, good()};
	lade_tensor t = {.struct_size = sizeof t};

	deleted = 0;
	assert_int_equal(lade_tensor_take_versioned(&managed, &t, NULL), LADE_OK);
	assert_true(t.read_only);
	lade_array_unref(t.array);
	assert_int_equal(deleted, 1);
	managed.version.major = 2;
	assert_int_equal(lade_tensor_take_versioned(&managed, &t, NULL), LADE_E_VERSION);
	assert_int_equal(deleted, 1);
	/* Nobody has to be told. */
	managed.version.major = 1, managed.deleter = NULL, managed.flags = 0;
	assert_int_equal(lade_tensor_take_versioned(&managed, &t, NULL), LADE_OK);
	assert_false(t.read_only);
	lade_array_unref(t.array);
}

static void refused(DLTensor dl, lade_status want, const char *text)
{
	lade_tensor t;
	lade_error err = {0};

	assert_int_equal(take(dl, &t, &err), want);
	if (!strstr(err.message, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.message);
	assert_int_equal(deleted, 0);
	assert_null(t.array);
}

static void test_impossible(void **state)
{
	(void)state;
	DLTensor dl = good();
	lade_tensor t = {.struct_size = sizeof t};

	dl.ndim = -1, refused(dl, LADE_E_LIMIT, "-1 dimensions");
	dl.ndim = 33, refused(dl, LADE_E_LIMIT, "33 dimensions, at most 32");
	dl = good(), dl.ndim = INT32_MIN, refused(dl, LADE_E_LIMIT, "dimensions");
	dl = good(), dl.shape = NULL, refused(dl, LADE_E_ARG, "the shape is NULL");
	dl = good(), dl.data = NULL, refused(dl, LADE_E_ARG, "the data is NULL");
	dl = good(), dl.dtype.bits = 4, refused(dl, LADE_E_DTYPE, "4 bits");
	dl = good(), dl.dtype.bits = 0, refused(dl, LADE_E_DTYPE, "0 bits");
	dl = good(), dl.dtype.lanes = 0, refused(dl, LADE_E_DTYPE, "0 lanes");
	dl = good(), dl.device.device_type = 4, refused(dl, LADE_E_UNSUPPORTED, "type 4");
	dl = good(), shape[0] = -1, refused(dl, LADE_E_RANGE, "-1 elements");
	dl = good(), shape[1] = INT64_MIN, refused(dl, LADE_E_RANGE, "dimension 1");
	dl = good(), shape[1] = INT64_MAX, refused(dl, LADE_E_RANGE, "dimension 1");
	dl = good(), shape[0] = shape[1] = INT64_C(1) << 32, dl.strides = NULL;
	refused(dl, LADE_E_RANGE, "dimension 0");
	dl = good(), strides[0] = INT64_MIN, refused(dl, LADE_E_RANGE, "a stride of -9223");
	dl = good(), strides[0] = INT64_MAX, refused(dl, LADE_E_RANGE, "a stride of 9223");
	dl = good(), strides[0] = INT64_MAX / 4, refused(dl, LADE_E_RANGE, "bytes apart");
	dl = good(), strides[0] = INT64_MAX / 8 - 9, strides[1] = INT64_MAX / 16;
	refused(dl, LADE_E_RANGE, "bytes apart");
	dl = good(), dl.byte_offset = UINT64_MAX, refused(dl, LADE_E_RANGE, "18446744073709551615");
	dl = good(), dl.byte_offset = UINT64_MAX - (uintptr_t)numbers - 10;
	refused(dl, LADE_E_RANGE, "24 behind");
	dl = good(), strides[0] = -(INT64_C(1) << 59), refused(dl, LADE_E_RANGE, "before");

	assert_int_equal(lade_tensor_take(NULL, &t, NULL), LADE_E_ARG);
	t.struct_size = 1;
	assert_int_equal(lade_tensor_take(&(DLManagedTensor){0}, &t, NULL), LADE_E_ARG);
}

static void count_gone(void *ctx)
{
	++*(int *)ctx;
}

static void test_giving(void **state)
{
	(void)state;
	int gone = 0;
	lade_array_options options = {.struct_size = sizeof options, .gone = count_gone,
	                              .gone_ctx = &gone};
	lade_tensor t = {.struct_size = sizeof t, .data = numbers + 2, .type = {2, 32, 1},
	                 .ndim = 2, .shape = {2, 3}, .strides = {12, -4}};
	DLManagedTensor *old = NULL;
	DLManagedTensorVersioned *versioned = NULL;

	assert_int_equal(lade_array_wrap(lade_host_span(numbers, sizeof numbers), &options,
	                                 &t.array, NULL),
	                 LADE_OK);
	assert_int_equal(lade_tensor_give(&t, &old, NULL), LADE_OK);
	assert_ptr_equal(old->dl_tensor.data, numbers + 2);
	assert_int_equal(old->dl_tensor.device.device_type, 1);
	assert_int_equal(old->dl_tensor.ndim, 2);
	assert_int_equal(old->dl_tensor.dtype.bits, 32);
	assert_int_equal(old->dl_tensor.shape[1], 3);
	assert_int_equal(old->dl_tensor.strides[0], 3);
	assert_int_equal(old->dl_tensor.strides[1], -1);
	assert_int_equal(old->dl_tensor.byte_offset, 0);
	t.read_only = true;
	assert_int_equal(lade_tensor_give_versioned(&t, true, &versioned, NULL), LADE_OK);
	assert_int_equal(versioned->version.major, 1);
	assert_int_equal(versioned->flags, 3);
	lade_array_unref(t.array);

	/* Back by the way we take others' tensors. */
	lade_tensor back = {.struct_size = sizeof back};
	assert_int_equal(lade_tensor_take(old, &back, NULL), LADE_OK);
	assert_ptr_equal(back.data, numbers + 2);
	assert_int_equal(back.strides[1], -4);
	lade_array_unref(back.array);
	assert_int_equal(gone, 0);
	lade_tensor_drop_versioned(versioned);
	lade_tensor_drop(NULL);
	assert_int_equal(gone, 1);
}

static void test_not_to_be_given(void **state)
{
	(void)state;
	lade_tensor good_one = {.struct_size = sizeof good_one, .data = numbers,
	                        .type = {2, 32, 1}, .ndim = 2, .shape = {2, 3},
	                        .strides = {12, 4}};
	DLManagedTensor *old = NULL;

	assert_int_equal(lade_array_wrap(lade_host_span(numbers, sizeof numbers), NULL,
	                                 &good_one.array, NULL),
	                 LADE_OK);
	for (int i = 0; i < 10; i++) {
		lade_tensor t = good_one;
		switch (i) {
		case 0: t.read_only = true; break;
		case 1: t.strides[1] = 6; break;
		case 2: t.shape[1] = 4; break;
		case 3: t.data = numbers + 1; break;
		case 4: t.strides[0] = -12; break;
		case 5: t.ndim = 33; break;
		case 6: t.array = NULL; break;
		case 7: t.type.bits = 3; break;
		case 8: t.shape[0] = SIZE_MAX; break;
		case 9: t.strides[0] = PTRDIFF_MIN; break;
		}
		assert_int_equal(lade_tensor_give(&t, &old, NULL),
		                 i == 9 ? LADE_E_RANGE : LADE_E_ARG);
		assert_null(old);
	}
	assert_int_equal(lade_tensor_give(NULL, &old, NULL), LADE_E_ARG);
	assert_int_equal(lade_tensor_give(&good_one, NULL, NULL), LADE_E_ARG);
	/* Nothing at all needs no memory. */
	lade_tensor t = good_one;
	t.shape[0] = 0, t.data = NULL;
	assert_int_equal(lade_tensor_give(&t, &old, NULL), LADE_OK);
	old->deleter(old);
	lade_array_unref(good_one.array);
}

static void test_places(void **state)
{
	(void)state;
	for (int kind = 0; kind < LADE_KIND_COUNT; kind++) {
		lade_place place = {(lade_kind)kind, kind >= LADE_MANAGED ? 5 : 0}, back;
		int32_t type, id;
		lade_place_to_dlpack(place, &type, &id);
		assert_int_equal(lade_place_from_dlpack(type, id, &back, NULL), LADE_OK);
		assert_int_equal(back.kind, place.kind);
		assert_int_equal(back.device, place.device);
	}
	lade_error err;
	assert_int_equal(lade_place_from_dlpack(1, 0, NULL, &err), LADE_E_ARG);
	assert_non_null(strstr(err.message, "out is NULL"));
	lade_place_to_dlpack(LADE_PLACE_HOST, NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taking),     cmocka_unit_test(test_versioned),
		cmocka_unit_test(test_impossible), cmocka_unit_test(test_giving),
		cmocka_unit_test(test_not_to_be_given), cmocka_unit_test(test_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
