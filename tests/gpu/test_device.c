/*
 * test_device.c: real devices: memory of all kinds, streams, events, kernels, errors, forks.  On a
 * machine without one it says why and passes; with "--must" as its argument it fails there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "all_kernels.h"
#include "gpu/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const lade__kernel add_kernel = {"selftest", "lade_selftest_add", 0};
static int32_t device_count;

#define OK(call)                                                       \
	do {                                                           \
		lade_error err_ = {.message = ""};                     \
		lade_error *err = &err_;                               \
		lade_status status_ = (call);                          \
		if (status_ != LADE_OK)                                \
			print_error("%s: %s\n", #call, err->message);  \
		assert_int_equal(status_, LADE_OK);                    \
	} while (0)

#define FAILS(status, why, call)                        \
	do {                                            \
		lade_error *err = &(why);               \
		assert_int_equal((call), status);       \
		print_message("%s\n", err->message);    \
	} while (0)

static void *take(lade_kind kind, int32_t device, size_t size, lade_stream stream)
{
	const lade_allocator *a = lade_allocator_default(kind);
	return a->alloc(a->ctx, size, 256, (lade_place){kind, device}, stream);
}

static void give(lade_kind kind, int32_t device, void *ptr, size_t size, lade_stream stream)
{
	const lade_allocator *a = lade_allocator_default(kind);
	a->free(a->ctx, ptr, size, 256, (lade_place){kind, device}, stream);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* CUpointer_attribute: 2 is the type (1 host, 2 device), 8 is "managed", 9 the device's number. */
static int pointer_attribute(lade__device *d, int attribute, const void *ptr)
{
	int value = -1;
	lade_error *err = NULL;
	assert_int_equal(LADE__CU(d, cuPointerGetAttribute, &value, attribute,
	                          lade__address_of(ptr)), LADE_OK);
	return attribute == 8 ? value & 0xFF : value;
}

/* ---- what there is --------------------------------------------------------------------------- */

static void devices_are_told(void **state)
{
	(void)state;
	for (int32_t i = 0; i < device_count; i++) {
		const lade_device_info *d;
		uint64_t left, reserve;
		OK(lade_device_get_info(i, &d, err));
		OK(lade_device_memory(i, &left, &reserve, err));
		print_message("device %d: %s, %s, capability %d.%d, %u SMs, %u MHz, %llu MiB (%llu "
		              "free), L2 %u MiB, block's shared memory %u, driver %d, kernels %s, "
		              "managed %d, pools %d\n",
		              (int)i, d->name, d->pci, (int)d->major, (int)d->minor,
		              d->multiprocessors, d->clock_khz / 1000,
		              (unsigned long long)(d->memory_size >> 20),
		              (unsigned long long)(left >> 20), d->l2_size >> 20,
		              d->block_shared_max, (int)d->driver_version,
		              d->kernels ? d->kernels : "none", d->managed, d->pools);
		assert_int_equal(d->device, i);
		assert_true(d->major >= 3 && d->multiprocessors > 0 && d->clock_khz > 0);
		assert_true(d->memory_size >= left && left > 0 && d->driver_version >= 11040);
		assert_true(strlen(d->name) > 0 && strchr(d->pci, ':'));
		uint8_t all = 0;
		for (int b = 0; b < 16; b++)
			all |= d->uuid[b];
		assert_true(all != 0);
	}
}

static void the_check_passes(void **state)
{
	(void)state;
	if (!lade_device_kernels())
		skip();
	for (int32_t i = 0; i < device_count; i++) {
		double began = now();
		OK(lade_device_check(i, err));
		double first = now() - began;
		OK(lade_device_check(i, err));
		print_message("check on device %d: %.1f ms the first time, %.1f ms again\n", (int)i,
		              1e3 * first, 1e3 * (now() - began - first));
	}
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void every_kernel_loads(void **state)
{
	(void)state;
	if (!lade_device_kernels())
		skip();
	for (int32_t i = 0; i < device_count; i++) {
		lade__device *d;
		OK(lade__device_use(i, &d, err));
		for (size_t k = 0; k < ALL_KERNELS; k++) {
			lade__kernel_use use;
			unsigned blocks;
			OK(lade__kernel_look(d, &all_kernels[k], &use, err));
			OK(lade__kernel_occupancy(d, &all_kernels[k], 32, 0, &blocks, err));
			if (i == 0)
				print_message("%s: sm_%d, %d registers, %d local, %d shared\n",
				              all_kernels[k].function, use.arch,
				              use.registers, use.local_size, use.shared_size);
			assert_true(use.registers > 0 && blocks > 0);
		}
		lade__device_leave(d);
	}
}

static void launches_are_quick_and_their_errors_told(void **state)
{
	(void)state;
	enum { LAUNCHES = 2000 };
	lade__device *d;
	lade_stream stream;

	if (!lade_device_kernels())
		skip();
	OK(lade_stream_new(0, &stream, err));
	OK(lade__device_use(0, &d, err));
	uint32_t *words = take(LADE_DEVICE, 0, 4096, stream);
	assert_non_null(words);
	lade__address address = lade__address_of(words);
	uint32_t count = 1024;
	void *arguments[] = {&address, &count};
	lade__launch launch = {.blocks = 4, .threads = 256, .stream = stream};
	OK(LADE__CU(d, cuMemsetD32Async, address, 5, 1024, stream));
	double began = now();
	for (int i = 0; i < LAUNCHES; i++)
		OK(lade__kernel_launch(d, &add_kernel, &launch, arguments, err));
	print_message("a launch: %.2f us of host time\n", 1e6 * (now() - began) / LAUNCHES);
	uint32_t back[1024];
	OK(LADE__CU(d, cuMemcpyDtoHAsync, back, address, sizeof back, stream));
	OK(lade_stream_wait(0, stream, err));
	for (int i = 0; i < 1024; i++)
		assert_int_equal(back[i], 5 + LAUNCHES);

	lade_error why;
	launch.threads = 4096;
	FAILS(LADE_E_DEVICE, why,
	      lade__kernel_launch(d, &add_kernel, &launch, arguments, err));
	assert_non_null(strstr(why.message, "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1): "));
	assert_non_null(strstr(why.message, "lade_selftest_add, 4 blocks of 4096 threads"));
	give(LADE_DEVICE, 0, words, 4096, stream);
	lade__device_leave(d);
	/* The context has survived. */
	OK(lade_stream_wait(0, stream, err));
	lade_stream_free(0, stream);
}

/* What is copied on one stream is found by a stream that follows it. */
static void marks_and_streams_that_follow(void **state)
{
	(void)state;
	enum { SIZE = 1 << 20 };
	lade__device *d;
	lade_stream first, second;
	lade_mark *mark;

	OK(lade_stream_new(0, &first, err));
	OK(lade_stream_new(0, &second, err));
	OK(lade__device_use(0, &d, err));
	uint8_t *block = take(LADE_DEVICE, 0, SIZE, first);
	uint8_t *back = take(LADE_PINNED, 0, SIZE, NULL);
	for (int turn = 1; turn < 5; turn++) {
		OK(LADE__CU(d, cuMemsetD8Async, lade__address_of(block), (unsigned char)turn, SIZE,
		            first));
		OK(lade_mark_new(0, first, &mark, err));
		if (turn != 3)
			OK(lade_stream_follow(mark, second, err));
		if (turn == 3) { /* of whichever stream */
			lade_mark_free(mark);
			OK(lade_mark_new(0, LADE_ALL_STREAMS, &mark, err));
			OK(lade_stream_follow(mark, second, err));
		}
		if (turn % 2)
			lade_mark_free(mark); /* what follows it still does */
		OK(LADE__CU(d, cuMemcpyDtoHAsync, back, lade__address_of(block), SIZE, second));
		OK(lade_stream_wait(0, second, err));
		for (size_t i = 0; i < SIZE; i += 999)
			assert_int_equal(back[i], turn);
		if (turn % 2 == 0) {
			assert_true(lade_mark_passed(mark));
			OK(lade_mark_wait(mark, err));
			lade_mark_free(mark);
		}
	}
	give(LADE_DEVICE, 0, block, SIZE, first);
	give(LADE_PINNED, 0, back, SIZE, NULL);
	lade__device_leave(d);
	lade_stream_free(0, first);
	lade_stream_free(0, second);
	lade_error why;
	FAILS(LADE_E_ARG, why, lade_mark_new(0, NULL, NULL, err));
	FAILS(LADE_E_NO_DEVICE, why, lade_mark_new(77, NULL, &mark, err));
	assert_null(mark);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void pinned_memory(void **state)
{
	(void)state;
	static const size_t sizes[] = {1, 4095, 4096, 65537, (size_t)16 << 20};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		size_t n = sizes[i];
		uint8_t *p = take(LADE_PINNED, 0, n, NULL);
		assert_non_null(p);
		memset(p, 0x5A, n);
		/* It serves all devices. */
		for (int32_t k = 0; k < device_count; k++) {
			lade__device *d;
			lade_stream stream;
			OK(lade_stream_new(k, &stream, err));
			OK(lade__device_use(k, &d, err));
			assert_int_equal(pointer_attribute(d, 2, p), 1);
			uint8_t *own = take(LADE_DEVICE, k, n, stream);
			assert_non_null(own);
			OK(LADE__CU(d, cuMemcpyHtoDAsync, lade__address_of(own), p, n, stream));
			OK(LADE__CU(d, cuMemsetD8Async, lade__address_of(p), 0, n, stream));
			OK(LADE__CU(d, cuMemcpyDtoHAsync, p, lade__address_of(own), n, stream));
			give(LADE_DEVICE, k, own, n, stream);
			OK(lade_stream_wait(k, stream, err));
			lade__device_leave(d);
			lade_stream_free(k, stream);
		}
		for (size_t b = 0; b < n; b++)
			assert_int_equal(p[b], 0x5A);
		give(LADE_PINNED, 0, p, n, NULL);
	}
}

/* Little of it, on purpose: a driver takes more than there is badly. */
static void managed_memory(void **state)
{
	(void)state;
	const lade_device_info *info;
	lade__device *d;
	uint32_t count = 1000;

	OK(lade_device_get_info(0, &info, err));
	if (!info->managed || !info->kernels)
		skip();
	uint32_t *words = take(LADE_MANAGED, 0, count * sizeof *words, NULL);
	assert_non_null(words);
	for (uint32_t i = 0; i < count; i++)
		words[i] = i;
	OK(lade__device_use(0, &d, err));
	assert_int_equal(pointer_attribute(d, 8, words), 1);
	lade__address address = lade__address_of(words);
	void *arguments[] = {&address, &count};
	lade__launch launch = {.blocks = 4, .threads = 256};
	OK(lade__kernel_launch(d, &add_kernel, &launch, arguments, err));
	/* NULL is the default stream. */
	OK(lade_stream_wait(0, NULL, err));
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(words[i], i + 1);
	lade__device_leave(d);
	give(LADE_MANAGED, 0, words, count * sizeof *words, NULL);
}

static void device_memory(void **state)
{
	(void)state;
	for (int32_t k = 0; k < device_count; k++) {
		const size_t size = (size_t)64 << 20;
		lade__device *d;
		lade_stream stream;
		uint64_t left, reserve;
		uint8_t last;

		OK(lade_stream_new(k, &stream, err));
		void *first = take(LADE_DEVICE, k, size, stream);
		assert_non_null(first);
		OK(lade__device_use(k, &d, err));
		assert_int_equal(pointer_attribute(d, 2, first), 2);
		assert_int_equal(pointer_attribute(d, 9, first), k);
		lade__address end = lade__address_of(first) + size - 1;
		OK(LADE__CU(d, cuMemsetD8Async, lade__address_of(first), 0x77, size, stream));
		OK(LADE__CU(d, cuMemcpyDtoHAsync, &last, end, 1, stream));
		OK(lade_stream_wait(k, stream, err));
		assert_int_equal(last, 0x77);

		/* What is freed serves the next on the same stream, and nothing waits. */
		give(LADE_DEVICE, k, first, size, stream);
		double began = now();
		for (int i = 0; i < 1000; i++) {
			void *p = take(LADE_DEVICE, k, size, stream);
			assert_non_null(p);
			give(LADE_DEVICE, k, p, size, stream);
		}
		print_message("take and give 64 MiB: %.2f us\n", 1e6 * (now() - began) / 1000);
		OK(lade_stream_wait(k, stream, err));
		if (d->info.pools) {
			/* The reserve stays, is told, and goes when it is asked to. */
			OK(lade_device_memory(k, &left, &reserve, err));
			assert_true(reserve >= size);
			OK(lade_device_trim(k, 0, err));
			uint64_t after;
			OK(lade_device_memory(k, &after, &reserve, err));
			assert_int_equal(reserve, 0);
			assert_true(after >= left);
		}
		lade__device_leave(d);
		lade_stream_free(k, stream);
	}
}

static void alignment_and_sizes(void **state)
{
	(void)state;
	for (int kind = LADE_PINNED; kind < LADE_KIND_COUNT; kind++) {
		const lade_allocator *a = lade_allocator_default((lade_kind)kind);
		lade_place place = {(lade_kind)kind, 0};
		for (size_t align = 1; align <= 4096; align *= 2) {
			void *p = a->alloc(a->ctx, 100, align, place, NULL);
			assert_true(p || align > 256);
			assert_int_equal((uintptr_t)p % align, 0);
			a->free(a->ctx, p, 100, align, place, NULL);
		}
		place.device = device_count;
		assert_null(a->alloc(a->ctx, 100, 1, place, NULL));
	}
	/* More than there is gives NULL, and the next request is served. */
	assert_null(take(LADE_DEVICE, 0, (size_t)1 << 50, NULL));
	void *p = take(LADE_DEVICE, 0, 1, NULL);
	assert_non_null(p);
	give(LADE_DEVICE, 0, p, 1, NULL);
	OK(lade_stream_wait(0, NULL, err));
}

/* ---- streams, events, contexts --------------------------------------------------------------- */

static void events_order_streams(void **state)
{
	(void)state;
	const size_t size = (size_t)256 << 20;
	lade__device *d;
	lade_stream one, two;
	void *start, *end;
	float ms = 0;
	uint8_t byte;

	OK(lade_stream_new(0, &one, err));
	OK(lade_stream_new(0, &two, err));
	OK(lade__device_use(0, &d, err));
	void *p = take(LADE_DEVICE, 0, size, one);
	assert_non_null(p);
	OK(LADE__CU(d, cuEventCreate, &start, 0));
	OK(LADE__CU(d, cuEventCreate, &end, 0));
	OK(LADE__CU(d, cuMemsetD8Async, lade__address_of(p), 1, size, one));
	OK(LADE__CU(d, cuEventRecord, start, one));
	OK(LADE__CU(d, cuMemsetD8Async, lade__address_of(p), 2, size, one));
	OK(LADE__CU(d, cuEventRecord, end, one));
	/* The second stream sees what the first did before the event. */
	OK(LADE__CU(d, cuStreamWaitEvent, two, end, 0));
	OK(LADE__CU(d, cuMemcpyDtoHAsync, &byte, lade__address_of(p) + size - 1, 1, two));
	OK(lade_stream_wait(0, two, err));
	assert_int_equal(byte, 2);
	OK(LADE__CU(d, cuEventElapsedTime, &ms, start, end));
	print_message("256 MiB set in %.3f ms: %.0f GB/s\n", (double)ms,
	              (double)size / 1e6 / (double)ms);
	assert_true(ms > 0);
	give(LADE_DEVICE, 0, p, size, two);
	OK(LADE__CU(d, cuEventDestroy, start));
	OK(LADE__CU(d, cuEventDestroy, end));
	lade__device_leave(d);
	OK(lade_stream_wait(0, two, err));
	lade_stream_free(0, one);
	lade_stream_free(0, two);
}

/* What was the thread's context before a call is so after it. */
static void contexts_are_put_back(void **state)
{
	(void)state;
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*current)(void **);
	void *symbol, *before, *after;
	lade__device *d;

	assert_non_null(library);
	symbol = dlsym(library, "cuCtxGetCurrent");
	assert_non_null(symbol);
	memcpy(&current, &symbol, sizeof current);
	assert_int_equal(current(&before), 0);
	for (int32_t i = 0; i < device_count; i++)
		OK(lade_stream_wait(i, NULL, err));
	assert_int_equal(current(&after), 0);
	assert_ptr_equal(before, after);
	/* Inside it is the device's, and calls nest. */
	OK(lade__device_use(device_count - 1, &d, err));
	void *p = take(LADE_DEVICE, 0, 100, NULL);
	give(LADE_DEVICE, 0, p, 100, NULL);
	assert_int_equal(current(&after), 0);
	assert_ptr_equal(after, d->context);
	lade__device_leave(d);
	assert_int_equal(current(&after), 0);
	assert_ptr_equal(before, after);
}

static void *thread(void *arg)
{
	lade_status *status = arg;
	for (int i = 0; i < 10 && *status == LADE_OK; i++)
		*status = lade_device_check(i % device_count, NULL);
	return NULL;
}

static void threads_share_devices(void **state)
{
	(void)state;
	pthread_t threads[8];
	lade_status statuses[8] = {LADE_OK};

	if (!lade_device_kernels())
		skip();
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread, &statuses[i]), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(statuses[i], LADE_OK);
	}
}

/* ---- errors and forks ------------------------------------------------------------------------ */

static void errors_are_told(void **state)
{
	(void)state;
	lade_error why;
	lade_stream stream;
	lade__address ptr;
	lade__device *d;
	int value;

	FAILS(LADE_E_NO_DEVICE, why, lade_stream_new(device_count, &stream, err));
	assert_null(stream);
	assert_non_null(strstr(why.message, "no device "));
	FAILS(LADE_E_NO_DEVICE, why, lade_device_check(-1, err));

	uint64_t bytes;
	FAILS(LADE_E_ARG, why, lade_device_count(NULL, err));
	FAILS(LADE_E_ARG, why, lade_device_get_info(0, NULL, err));
	FAILS(LADE_E_ARG, why, lade_stream_new(0, NULL, err));
	FAILS(LADE_E_ARG, why, lade_device_memory(0, NULL, &bytes, err));
	FAILS(LADE_E_ARG, why, lade_device_memory(0, &bytes, NULL, err));

	OK(lade__device_use(0, &d, err));
	FAILS(LADE_E_DEVICE, why, LADE__CU(d, cuDeviceGetAttribute, &value, -1, d->handle));
	assert_non_null(strstr(why.message, "device 0: cuDeviceGetAttribute: "
	                                    "CUDA_ERROR_INVALID_VALUE (1): "));
	FAILS(LADE_E_NOMEM, why, LADE__CU(d, cuMemAlloc, &ptr, (size_t)1 << 50));
	assert_non_null(strstr(why.message, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): "));
	lade__device_leave(d);
}

static void a_forked_child_is_refused(void **state)
{
	(void)state;
	lade_stream stream;
	void *p = take(LADE_DEVICE, 0, 1000, NULL);
	int code;

	assert_non_null(p);
	OK(lade_stream_new(0, &stream, err));
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		lade_error err = {.message = ""};
		int32_t n;
		int good = lade_device_count(&n, &err) == LADE_E_NO_DEVICE &&
		           strstr(err.message, "forked") &&
		           lade_device_check(0, &err) == LADE_E_NO_DEVICE &&
		           lade_stream_wait(0, stream, &err) == LADE_E_NO_DEVICE &&
		           !take(LADE_PINNED, 0, 100, NULL);
		give(LADE_DEVICE, 0, p, 1000, NULL);
		lade_stream_free(0, stream);
		printf("in the child: %s\n", err.message);
		fflush(NULL);
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
	/* The parent goes on. */
	give(LADE_DEVICE, 0, p, 1000, NULL);
	OK(lade_stream_wait(0, stream, err));
	lade_stream_free(0, stream);
	if (lade_device_kernels())
		OK(lade_device_check(0, err));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_told),
		cmocka_unit_test(the_check_passes),
		cmocka_unit_test(every_kernel_loads),
		cmocka_unit_test(launches_are_quick_and_their_errors_told),
		cmocka_unit_test(marks_and_streams_that_follow),
		cmocka_unit_test(pinned_memory),
		cmocka_unit_test(managed_memory),
		cmocka_unit_test(device_memory),
		cmocka_unit_test(alignment_and_sizes),
		cmocka_unit_test(events_order_streams),
		cmocka_unit_test(contexts_are_put_back),
		cmocka_unit_test(threads_share_devices),
		cmocka_unit_test(errors_are_told),
		cmocka_unit_test(a_forked_child_is_refused),
	};
	lade_error err = {.message = ""};

	if (lade_device_count(&device_count, &err) != LADE_OK) {
		printf("skipped: %s\n", err.message);
		return argc > 1 && strcmp(argv[1], "--must") == 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
