/*
 * test_driver_missing.c: without a driver every call says so, and says why.  The argument tells
 * what libcuda.so.1 is: "missing", "broken" (a file that is no library), or "old".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *kind = "missing";

#define REFUSED(call)                                                          \
	do {                                                                   \
		lade_error err = {.message = ""};                              \
		lade_error *e = &err;                                          \
		assert_int_equal(call, LADE_E_NO_DEVICE);                      \
		assert_int_equal(err.status, LADE_E_NO_DEVICE);                \
		assert_non_null(strstr(err.message, "no driver: "));           \
		assert_non_null(strstr(err.message, "libcuda.so.1"));          \
		assert_true(strlen(err.message) < 200);                        \
		e = NULL;                                                      \
		assert_int_equal(call, LADE_E_NO_DEVICE);                      \
	} while (0)

static void every_call_is_refused(void **state)
{
	(void)state;
	int32_t count = 5;
	const lade_device_info *info = (const void *)&count;
	lade_stream stream = &count;
	lade_mark *mark = (void *)&count;
	uint64_t a, b;
	lade__device *device;

	REFUSED(lade_device_count(&count, e));
	assert_int_equal(count, 0);
	REFUSED(lade_device_get_info(0, &info, e));
	assert_null(info);
	REFUSED(lade_device_check(0, e));
	REFUSED(lade_device_memory(0, &a, &b, e));
	REFUSED(lade_device_trim(0, 0, e));
	REFUSED(lade_stream_new(0, &stream, e));
	assert_null(stream);
	REFUSED(lade_stream_wait(0, NULL, e));
	REFUSED(lade__device_use(0, &device, e));
	assert_null(device);
	lade_stream_free(0, NULL);
	lade_stream_free(0, &count);
	REFUSED(lade_mark_new(0, NULL, &mark, e));
	assert_null(mark);
	lade_mark_free(NULL);
}

static void the_reason_is_told(void **state)
{
	(void)state;
	lade_error err;
	int32_t count;

	lade_device_count(&count, &err);
	print_message("%s\n", err.message);
	if (strcmp(kind, "old") == 0)
		assert_non_null(strstr(err.message, "lacks cu"));
	else if (strcmp(kind, "missing") == 0)
		assert_non_null(strstr(err.message, "cannot open"));
}

static void there_is_no_device_memory(void **state)
{
	(void)state;
	for (int k = LADE_PINNED; k < LADE_KIND_COUNT; k++) {
		const lade_allocator *a = lade_allocator_default((lade_kind)k);
		lade_place place = {(lade_kind)k, 0};
		assert_non_null(a->alloc);
		assert_null(a->alloc(a->ctx, 64, 64, place, NULL));
		a->free(a->ctx, NULL, 64, 64, place, NULL);
	}
}

static void architectures_are_chosen(void **state)
{
	(void)state;
	static const char *const archs[] = {"sm_80", "sm_90", "compute_90", NULL};
	static const char *const none[] = {NULL};
	static const struct {
		int major, minor;
		const char *want;
	} cases[] = {
		{7, 5, NULL},     {8, 0, "sm_80"},       {8, 6, "sm_80"},       {8, 9, "sm_80"},
		{9, 0, "sm_90"},  {10, 0, "compute_90"}, {12, 1, "compute_90"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *got = lade__arch_for(archs, cases[i].major, cases[i].minor);
		if (cases[i].want)
			assert_string_equal(got, cases[i].want);
		else
			assert_null(got);
		assert_null(lade__arch_for(none, cases[i].major, cases[i].minor));
	}
}

/* Images are fat binaries and aligned; what they hold, a device tells (test_device.c). */
static void images_are_fat_binaries(void **state)
{
	(void)state;
	const char *text = lade_device_kernels();
	print_message("kernels: %s\n", text ? text : "none in this build");
	assert_true((text != NULL) == (lade__image_archs[0] != NULL));
	for (const lade__image *image = lade__images; image->name; image++) {
		assert_true((uintptr_t)image->data % 16 == 0);
		assert_memory_equal(image->data, "\x50\xED\x55\xBA", 4);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		kind = argv[1];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_refused),
		cmocka_unit_test(the_reason_is_told),
		cmocka_unit_test(there_is_no_device_memory),
		cmocka_unit_test(architectures_are_chosen),
		cmocka_unit_test(images_are_fat_binaries),
	};
	if (strcmp(kind, "missing") == 0 && dlopen("libcuda.so.1", RTLD_NOW)) {
		puts("skipped: this machine has a driver");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
