/*
 * test_emulated.c: the emulated device itself: that its kernels run, that what is enqueued runs
 * late and in order, that misuse is found, and that captures behave as a driver's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "all_kernels.h"
#include "gpu/device.h"
#include "gpu/emulated.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE ((size_t)4096)
#define SEEDS 12

enum {
	ILLEGAL_ADDRESS = 700,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_UNJOINED = 904,
};

static const lade__kernel add_kernel = {"selftest", "lade_selftest_add", 0};
static emulated_state *emu;
static lade__device *dev;
static const lade__driver *cu;

/* Of CUDA, and not used by the library. */
static int (*capture_begin)(void *stream, int mode);
static int (*capture_end)(void *stream, void **graph);
static int (*graph_make)(void **exec, void *graph, unsigned long long flags);
static int (*graph_launch)(void *exec, void *stream);
static int (*graph_free)(void *graph);
static int (*synchronize)(void);

#define GOOD(call) assert_int_equal((call), 0)

/* A device's block, in the order of a stream. */
static lade__address take(lade_stream stream, size_t size)
{
	void *pool;
	lade__address at;
	GOOD(lade__device_pool(dev, &pool, NULL));
	GOOD(cu->cuMemAllocFromPoolAsync(&at, size, pool, stream));
	return at;
}

static uint8_t *pinned(size_t size, int value)
{
	void *p;
	GOOD(cu->cuMemHostAlloc(&p, size, 1));
	memset(p, value, size);
	return p;
}

static lade_stream stream_new(void)
{
	lade_stream s;
	GOOD(cu->cuStreamCreate(&s, 1));
	return s;
}

static void add_one(lade_stream stream, lade__address words, uint32_t count)
{
	void *arguments[] = {&words, &count};
	lade__launch launch = {.blocks = (count + 255) / 256, .threads = 256, .stream = stream};
	GOOD(lade__kernel_launch(dev, &add_kernel, &launch, arguments, NULL));
}

static int begin(void **state)
{
	(void)state;
	emu->seed = EMULATED_LAZY;
	GOOD(lade__device_use(0, &dev, NULL));
	cu = dev->driver;
	return 0;
}

/* Each test gives back all that it took, and leaves no error. */
static int end(void **state)
{
	(void)state;
	/* Streams that were given up may have work left: lade_device_check() gives back last. */
	lade__device *second;
	GOOD(synchronize());
	GOOD(lade__device_use(1, &second, NULL));
	GOOD(synchronize());
	lade__device_leave(second);
	lade__device_leave(dev);
	assert_int_equal(emu->streams, 0);
	assert_int_equal(emu->events, 0);
	assert_int_equal(emu->blocks, 0);
	assert_int_equal(emu->graphs, 0);
	assert_int_equal(emu->pushed, 0);
	assert_int_equal(emu->pending, 0);
	assert_string_equal(emu->message, "");
	return 0;
}

/* ---- kernels and memory ---------------------------------------------------------------------- */

static void kernels_run_on_both_devices(void **state)
{
	(void)state;
	for (emu->seed = 0; emu->seed < SEEDS; emu->seed++)
		for (int32_t k = 0; k < 2; k++) {
			int launches = emu->launches;
			GOOD(lade_device_check(k, NULL));
			assert_int_equal(emu->launches, launches + 1);
		}
	for (size_t k = 0; k < ALL_KERNELS; k++) {
		void *function;
		GOOD(lade__kernel_get(dev, &all_kernels[k], &function, NULL));
	}
}

static int touch(volatile uint8_t *p, bool write)
{
	int code;
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* cmocka and sanitizers have handlers. */
		signal(SIGSEGV, SIG_DFL);
		if (write)
			*p = 1;
		else
			(void)*p;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_true(code == 0 || WTERMSIG(code) == SIGSEGV);
	return code;
}

static void the_host_cannot_touch_device_memory(void **state)
{
	(void)state;
	lade__address at;
	uint8_t *host = pinned(SIZE, 1);

	GOOD(cu->cuMemAlloc(&at, SIZE));
	for (int write = 0; write < 2; write++) {
		assert_int_not_equal(touch((uint8_t *)(uintptr_t)at, write), 0);
		assert_int_not_equal(touch((uint8_t *)(uintptr_t)at + SIZE - 1, write), 0);
		assert_int_equal(touch(host, write), 0);
		/* Beside a block is nothing at all. */
		assert_int_not_equal(touch(host + SIZE, write), 0);
		assert_int_not_equal(touch(host - 1, write), 0);
	}
	/* Not after the device has worked on it, either. */
	GOOD(cu->cuMemsetD8Async(at, 7, SIZE, NULL));
	GOOD(cu->cuStreamSynchronize(NULL));
	assert_int_not_equal(touch((uint8_t *)(uintptr_t)at, false), 0);
	GOOD(cu->cuMemFree(at));
	GOOD(cu->cuMemFreeHost(host));
	assert_int_not_equal(touch(host, false), 0);
}

/* A device's error stays; the test takes it back. */
static void want_error(lade_stream stream, int code)
{
	assert_int_equal(cu->cuStreamSynchronize(stream), code);
	assert_int_equal(cu->cuStreamSynchronize(stream), code);
	assert_true(*emu->message);
	emu->recover();
	GOOD(cu->cuStreamSynchronize(stream));
}

static void kernels_reach_only_what_is_the_devices(void **state)
{
	(void)state;
	if (!emu->checked)
		skip();
	lade_stream s = stream_new();
	uint32_t *own = calloc(256, 4);
	lade__address at = take(s, SIZE), other;

	add_one(s, lade__address_of(own), 256);
	want_error(s, ILLEGAL_ADDRESS);
	/* One word more than there is. */
	add_one(s, at, SIZE / 4 + 1);
	want_error(s, ILLEGAL_ADDRESS);
	add_one(s, at, SIZE / 4);
	GOOD(cu->cuStreamSynchronize(s));
	/* Another device's block. */
	lade__device *second;
	GOOD(lade__device_use(1, &second, NULL));
	GOOD(cu->cuMemAlloc(&other, SIZE));
	lade__device_leave(second);
	add_one(s, other, 4);
	want_error(s, ILLEGAL_ADDRESS);
	GOOD(cu->cuMemFree(other));
	/* Pinned and managed memory are reached. */
	uint32_t *host = (uint32_t *)(void *)pinned(SIZE, 0);
	GOOD(cu->cuMemAllocManaged(&other, SIZE, 1));
	memset((void *)(uintptr_t)other, 0, SIZE);
	add_one(s, lade__address_of(host), 256);
	add_one(s, other, 256);
	GOOD(cu->cuStreamSynchronize(s));
	assert_true(host[255] == 1 && ((uint32_t *)(uintptr_t)other)[255] == 1);
	GOOD(cu->cuMemFree(other));
	GOOD(cu->cuMemFreeHost(host));
	GOOD(cu->cuMemFreeAsync(at, s));
	GOOD(cu->cuStreamSynchronize(s));
	GOOD(cu->cuStreamDestroy(s));
	free(own);
}

static void memory_is_told_apart(void **state)
{
	(void)state;
	int own = 5, value = 0;
	lade__address managed, device;
	uint8_t *host = pinned(SIZE, 0);
	GOOD(cu->cuMemAllocManaged(&managed, 1, 1));
	GOOD(cu->cuMemAlloc(&device, 1));
	assert_int_not_equal(cu->cuPointerGetAttribute(&value, 2, lade__address_of(&own)), 0);
	GOOD(cu->cuPointerGetAttribute(&value, 2, lade__address_of(host + SIZE - 1)));
	assert_int_equal(value, 1);
	GOOD(cu->cuPointerGetAttribute(&value, 2, device));
	assert_int_equal(value, 2);
	GOOD(cu->cuPointerGetAttribute(&value, 8, device));
	assert_int_equal(value, 0);
	GOOD(cu->cuPointerGetAttribute(&value, 8, managed));
	assert_int_equal(value, 1);
	/* Copies must stay in one block; what is to be on the device must be there. */
	assert_int_equal(cu->cuMemcpyAsync(device, lade__address_of(host), 2, NULL), 1);
	assert_int_equal(cu->cuMemcpyHtoDAsync(lade__address_of(&own), host, 4, NULL), 1);
	assert_int_equal(cu->cuMemcpyDtoHAsync(host, lade__address_of(&own), 4, NULL), 1);
	assert_int_equal(cu->cuMemsetD8Async(lade__address_of(&own), 0, 4, NULL), 1);
	GOOD(cu->cuMemFree(device));
	assert_int_equal(cu->cuMemFree(device), 1);
	GOOD(cu->cuMemFree(managed));
	GOOD(cu->cuMemFreeHost(host));
	assert_int_equal(cu->cuMemFreeHost(host), 1);
}

/* ---- the order ------------------------------------------------------------------------------- */

static void nothing_runs_before_it_is_waited_for(void **state)
{
	(void)state;
	lade_stream s = stream_new();
	uint8_t *from = pinned(SIZE, 1), *to = pinned(SIZE, 0);
	lade__address at = take(s, SIZE);

	GOOD(cu->cuMemcpyHtoDAsync(at, from, SIZE, s));
	GOOD(cu->cuMemcpyDtoHAsync(to, at, SIZE, s));
	/* Too early: the copy sees it. */
	memset(from, 2, SIZE);
	assert_int_equal(to[0], 0);
	assert_int_equal(emu->pending, 3);
	GOOD(cu->cuStreamSynchronize(s));
	assert_int_equal(to[0], 2);
	assert_int_equal(to[SIZE - 1], 2);
	/* Asking brings it on, a step each time. */
	GOOD(cu->cuMemsetD8Async(at, 9, SIZE, s));
	GOOD(cu->cuMemcpyDtoHAsync(to, at, SIZE, s));
	int asked = 0;
	while (cu->cuStreamQuery(s) == LADE__CU_NOT_READY)
		asked++;
	assert_int_equal(asked, 2);
	assert_int_equal(to[0], 9);
	GOOD(cu->cuMemFreeAsync(at, s));
	GOOD(cu->cuStreamSynchronize(s));
	GOOD(cu->cuMemFreeHost(from));
	GOOD(cu->cuMemFreeHost(to));
	GOOD(cu->cuStreamDestroy(s));
}

static void small_pageable_sources_are_read_at_once(void **state)
{
	(void)state;
	enum { SMALL = 64 << 10, LARGE = SMALL + 1 };
	lade_stream s = stream_new();
	uint8_t *own = malloc(LARGE), back[2];
	lade__address small = take(s, SMALL), large = take(s, LARGE);

	memset(own, 1, LARGE);
	GOOD(cu->cuMemcpyHtoDAsync(small, own, SMALL, s));
	GOOD(cu->cuMemcpyHtoDAsync(large, own, LARGE, s));
	memset(own, 2, LARGE);
	GOOD(cu->cuMemcpyDtoHAsync(&back[0], small, 1, s));
	GOOD(cu->cuMemcpyDtoHAsync(&back[1], large, 1, s));
	GOOD(cu->cuMemFreeAsync(small, s));
	GOOD(cu->cuMemFreeAsync(large, s));
	GOOD(cu->cuStreamSynchronize(s));
	assert_int_equal(back[0], 1);
	assert_int_equal(back[1], 2);
	GOOD(cu->cuStreamDestroy(s));
	free(own);
}

/* Two streams, with and without an event between them. */
static int across_streams(bool waits)
{
	lade_stream one = stream_new(), two = stream_new();
	uint8_t *to = pinned(SIZE, 0);
	lade__address at;
	void *event;

	GOOD(cu->cuMemAlloc(&at, SIZE));
	GOOD(cu->cuEventCreate(&event, 2));
	/* An event that was never recorded is not waited for. */
	GOOD(cu->cuStreamWaitEvent(two, event, 0));
	GOOD(cu->cuMemsetD8Async(at, 1, SIZE, one));
	GOOD(cu->cuStreamSynchronize(one));
	GOOD(cu->cuMemsetD8Async(at, 2, SIZE, one));
	GOOD(cu->cuEventRecord(event, one));
	GOOD(cu->cuMemsetD8Async(at, 3, SIZE, one));
	if (waits)
		GOOD(cu->cuStreamWaitEvent(two, event, 0));
	GOOD(cu->cuMemcpyDtoHAsync(to, at, SIZE, two));
	GOOD(cu->cuStreamSynchronize(two));
	int seen = to[0];
	GOOD(cu->cuEventSynchronize(event));
	GOOD(cu->cuEventQuery(event));
	GOOD(cu->cuStreamSynchronize(one));
	GOOD(cu->cuMemFree(at));
	GOOD(cu->cuMemFreeHost(to));
	GOOD(cu->cuEventDestroy(event));
	GOOD(cu->cuStreamDestroy(one));
	GOOD(cu->cuStreamDestroy(two));
	return seen;
}

static void a_missing_event_shows(void **state)
{
	(void)state;
	assert_int_equal(across_streams(true), 2);
	assert_int_equal(across_streams(false), 1);
	emu->seed = EMULATED_EAGER;
	assert_int_equal(across_streams(false), 3);
	int seen = 0;
	for (emu->seed = 2; emu->seed < 30; emu->seed++) {
		assert_in_range(across_streams(true), 2, 3);
		seen |= 1 << across_streams(false);
	}
	/* In any of three orders. */
	assert_int_equal(seen, 1 << 1 | 1 << 2 | 1 << 3);
}

/* A chain through streams, events, kernels and copies comes out right in every order. */
static void what_is_ordered_stays_so(void **state)
{
	(void)state;
	enum { STREAMS = 3, STEPS = 40 };
	for (emu->seed = 0; emu->seed < SEEDS; emu->seed++) {
		lade_stream s[STREAMS];
		void *event;
		uint32_t *to = (uint32_t *)(void *)pinned(SIZE, 0), random = (uint32_t)emu->seed;
		GOOD(cu->cuEventCreate(&event, 2));
		for (int i = 0; i < STREAMS; i++)
			s[i] = stream_new();
		lade_stream now = s[0];
		lade__address at = take(now, SIZE);
		GOOD(cu->cuMemsetD32Async(at, 5, SIZE / 4, now));
		for (int i = 0; i < STEPS; i++) {
			lade_stream next = s[(random = random * 1664525u + 1013904223u) % STREAMS];
			GOOD(cu->cuEventRecord(event, now));
			GOOD(cu->cuStreamWaitEvent(next, event, 0));
			add_one(next, at, SIZE / 4);
			now = next;
		}
		GOOD(cu->cuMemcpyDtoHAsync(to, at, SIZE, now));
		GOOD(cu->cuMemFreeAsync(at, now));
		GOOD(cu->cuStreamSynchronize(now));
		for (size_t i = 0; i < SIZE / 4; i++)
			if (to[i] != 5 + STEPS)
				fail_msg("seed %d: word %zu is %u", (int)emu->seed, i, to[i]);
		for (int i = 0; i < STREAMS; i++) {
			GOOD(cu->cuStreamSynchronize(s[i]));
			GOOD(cu->cuStreamDestroy(s[i]));
		}
		GOOD(cu->cuEventDestroy(event));
		GOOD(cu->cuMemFreeHost(to));
	}
}

/* The default stream is ordered with streams made without the flag "non-blocking". */
static void the_default_stream_is_ordered_with_blocking_ones(void **state)
{
	(void)state;
	for (unsigned flag = 0; flag < 2; flag++) {
		lade_stream s;
		lade__address at;
		uint8_t *to = pinned(SIZE, 0);
		GOOD(cu->cuStreamCreate(&s, flag));
		GOOD(cu->cuMemAlloc(&at, SIZE));
		GOOD(cu->cuMemsetD8Async(at, 1, SIZE, s));
		GOOD(cu->cuStreamSynchronize(s));
		GOOD(cu->cuMemsetD8Async(at, 2, SIZE, s));
		GOOD(cu->cuMemcpyDtoHAsync(to, at, SIZE, NULL));
		GOOD(cu->cuMemsetD8Async(at, 3, SIZE, s));
		GOOD(cu->cuStreamSynchronize(NULL));
		assert_int_equal(to[0], flag ? 1 : 2);
		GOOD(cu->cuStreamSynchronize(s));
		GOOD(cu->cuMemcpyDtoHAsync(to, at, SIZE, NULL));
		/* cuMemFree() waits for everything. */
		GOOD(cu->cuMemFree(at));
		assert_int_equal(to[0], 3);
		GOOD(cu->cuStreamDestroy(s));
		GOOD(cu->cuMemFreeHost(to));
	}
}

static void memory_comes_and_goes_in_stream_order(void **state)
{
	(void)state;
	lade_stream one = stream_new(), two = stream_new();
	lade__address at = take(one, SIZE);

	/* Nothing orders the second stream behind the taking. */
	GOOD(cu->cuMemsetD8Async(at, 1, SIZE, two));
	want_error(two, ILLEGAL_ADDRESS);
	GOOD(cu->cuStreamSynchronize(one));
	GOOD(cu->cuMemsetD8Async(at, 1, SIZE, two));
	GOOD(cu->cuStreamSynchronize(two));
	/* And after the giving back it is gone. */
	GOOD(cu->cuMemFreeAsync(at, one));
	assert_int_equal(cu->cuMemFreeAsync(at, one), 1);
	GOOD(cu->cuMemsetD8Async(at, 1, SIZE, one));
	want_error(one, ILLEGAL_ADDRESS);
	assert_int_equal(cu->cuMemsetD8Async(at, 1, SIZE, one), 1);
	/* Pinned memory is gone at once, whatever is still to be copied from it. */
	uint8_t *host = pinned(SIZE, 1);
	at = take(one, SIZE);
	GOOD(cu->cuMemcpyHtoDAsync(at, host, SIZE, one));
	GOOD(cu->cuMemFreeHost(host));
	want_error(one, ILLEGAL_ADDRESS);
	GOOD(cu->cuMemFreeAsync(at, one));
	GOOD(cu->cuStreamSynchronize(one));
	GOOD(cu->cuStreamDestroy(one));
	GOOD(cu->cuStreamDestroy(two));
}

static void copies_come_in_batches(void **state)
{
	(void)state;
	lade_stream s = stream_new();
	uint8_t *host = pinned(SIZE, 1), back[3] = {0};
	lade__address at = take(s, SIZE);
	lade__address to[] = {at, at + 100, at + 200};
	lade__address from[] = {lade__address_of(host), lade__address_of(host + 1),
	                        lade__address_of(host + 2)};
	size_t sizes[] = {10, 20, 30}, first[] = {0, 2};
	lade__copy_attributes how[] = {{.source_order = 1}, {.source_order = 2}};

	assert_int_equal(cu->cuMemcpyBatchAsync(to, from, sizes, 3, how, first, 2, NULL), 1);
	GOOD(cu->cuMemcpyBatchAsync(to, from, sizes, 3, how, first, 2, s));
	memset(host, 2, SIZE);
	for (int i = 0; i < 3; i++)
		GOOD(cu->cuMemcpyDtoHAsync(&back[i], to[i] + sizes[i] - 1, 1, s));
	GOOD(cu->cuMemFreeAsync(at, s));
	GOOD(cu->cuStreamSynchronize(s));
	/* The last source was read during the call, the others in the stream's order. */
	assert_true(back[0] == 2 && back[1] == 2 && back[2] == 1);
	GOOD(cu->cuMemFreeHost(host));
	GOOD(cu->cuStreamDestroy(s));
}

/* ---- captures -------------------------------------------------------------------------------- */

static int capturing(lade_stream s)
{
	int value = -1;
	GOOD(cu->cuStreamIsCapturing(s, &value));
	return value;
}

static void a_capture_can_be_replayed(void **state)
{
	(void)state;
	lade_stream s = stream_new(), side = stream_new();
	uint32_t *host = (uint32_t *)(void *)pinned(SIZE, 0), launches;
	lade__address at;
	void *graph, *exec, *fork_event, *join_event;

	GOOD(cu->cuMemAlloc(&at, SIZE));
	GOOD(cu->cuEventCreate(&fork_event, 2));
	GOOD(cu->cuEventCreate(&join_event, 2));
	assert_int_equal(capturing(s), 0);
	GOOD(capture_begin(s, 0));
	assert_int_equal(capturing(s), 1);
	GOOD(cu->cuMemcpyHtoDAsync(at, host, SIZE, s));
	GOOD(cu->cuEventRecord(fork_event, s));
	GOOD(cu->cuStreamWaitEvent(side, fork_event, 0));
	assert_int_equal(capturing(side), 1);
	add_one(side, at, SIZE / 4);
	GOOD(cu->cuEventRecord(join_event, side));
	GOOD(cu->cuStreamWaitEvent(s, join_event, 0));
	GOOD(cu->cuMemcpyDtoHAsync(host, at, SIZE, s));
	launches = (uint32_t)emu->launches;
	GOOD(capture_end(s, &graph));
	assert_int_equal(capturing(s), 0);
	assert_int_equal(capturing(side), 0);
	GOOD(cu->cuStreamSynchronize(s));
	/* Capturing runs nothing. */
	assert_true((uint32_t)emu->launches == launches && host[0] == 0);
	GOOD(graph_make(&exec, graph, 0));
	for (uint32_t i = 0; i < 5; i++) {
		host[7] = i * 100;
		GOOD(graph_launch(exec, s));
		GOOD(cu->cuStreamSynchronize(s));
		assert_int_equal(host[7], i * 100 + 1);
		assert_int_equal(host[8], i + 1);
	}
	GOOD(graph_free(exec));
	GOOD(graph_free(graph));
	GOOD(cu->cuEventDestroy(fork_event));
	GOOD(cu->cuEventDestroy(join_event));
	GOOD(cu->cuMemFree(at));
	GOOD(cu->cuMemFreeHost(host));
	GOOD(cu->cuStreamDestroy(s));
	GOOD(cu->cuStreamDestroy(side));
}

static void what_a_capture_forbids(void **state)
{
	(void)state;
	lade_stream s = stream_new(), other = stream_new();
	lade__address at = take(s, SIZE), ptr;
	uint8_t own[16] = {0};
	void *pool, *host, *event, *graph;

	GOOD(cu->cuStreamSynchronize(s));
	GOOD(lade__device_pool(dev, &pool, NULL));
	GOOD(cu->cuEventCreate(&event, 2));
	GOOD(cu->cuEventRecord(event, other));
	GOOD(cu->cuStreamSynchronize(other));
	for (int what = 0; what < 9; what++) {
		int rc = 0, want = CAPTURE_UNSUPPORTED;
		GOOD(capture_begin(s, 0));
		GOOD(cu->cuMemsetD8Async(at, 1, SIZE, s));
		switch (what) {
		case 0:
			rc = cu->cuStreamSynchronize(s);
			break;
		case 1:
			rc = cu->cuStreamQuery(s);
			break;
		case 2:
			rc = cu->cuMemAlloc(&ptr, SIZE);
			break;
		case 3:
			rc = cu->cuMemHostAlloc(&host, SIZE, 0);
			break;
		case 4:
			rc = cu->cuEventSynchronize(event);
			break;
		case 5:
			rc = cu->cuMemcpyHtoDAsync(at, own, sizeof own, s);
			break;
		case 6:
			rc = cu->cuMemcpyDtoHAsync(own, at, sizeof own, s);
			break;
		case 7:
			rc = cu->cuMemAllocFromPoolAsync(&ptr, SIZE, pool, s);
			break;
		default:
			/* Work that is not captured. */
			rc = cu->cuStreamWaitEvent(s, event, 0);
			want = 905;
		}
		assert_int_equal(rc, want);
		/* And the capture is lost. */
		assert_int_equal(capturing(s), 2);
		assert_int_equal(cu->cuMemsetD8Async(at, 1, SIZE, s), CAPTURE_INVALIDATED);
		assert_int_equal(capture_end(s, &graph), CAPTURE_INVALIDATED);
		assert_null(graph);
		GOOD(cu->cuStreamSynchronize(s));
	}
	/* A stream that was drawn in and not joined. */
	GOOD(capture_begin(s, 0));
	GOOD(cu->cuEventRecord(event, s));
	GOOD(cu->cuStreamWaitEvent(other, event, 0));
	GOOD(cu->cuMemsetD8Async(at, 1, SIZE, other));
	assert_int_equal(capture_end(s, &graph), CAPTURE_UNJOINED);
	GOOD(cu->cuMemFreeAsync(at, s));
	GOOD(cu->cuStreamSynchronize(s));
	GOOD(cu->cuEventDestroy(event));
	GOOD(cu->cuStreamDestroy(s));
	GOOD(cu->cuStreamDestroy(other));
}

/* ---- counting and failing -------------------------------------------------------------------- */

static void what_is_not_given_back_is_counted(void **state)
{
	(void)state;
	lade_stream s = stream_new();
	lade__address at = take(s, SIZE);
	uint8_t *host = pinned(1, 0);
	void *event;
	GOOD(cu->cuEventCreate(&event, 0));
	assert_true(emu->streams == 1 && emu->blocks == 2 && emu->events == 1);
	int syncs = emu->syncs;
	GOOD(cu->cuMemFreeAsync(at, s));
	GOOD(cu->cuMemFreeHost(host));
	GOOD(cu->cuEventDestroy(event));
	assert_true(emu->streams == 1 && emu->blocks == 0 && emu->events == 0);
	assert_int_equal(emu->syncs, syncs);
	GOOD(cu->cuStreamSynchronize(s));
	assert_int_equal(emu->syncs, syncs + 1);
	GOOD(cu->cuStreamDestroy(s));
	assert_int_equal(cu->cuStreamDestroy(s), 400);
	assert_non_null(strstr(emu->message, "used after it was destroyed"));
	emu->recover();
}

static void a_call_fails_when_it_is_told_to(void **state)
{
	(void)state;
	void *event;
	emu->fail_at = emu->calls + 2;
	emu->fail_code = 999;
	GOOD(cu->cuEventCreate(&event, 0));
	/* What gives back does so, and fails then. */
	assert_int_equal(cu->cuEventDestroy(event), 999);
	assert_string_equal(emu->failed, "cuEventDestroy_v2");
	assert_int_equal(emu->events, 0);
	emu->fail_at = 0;
	emu->failed = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* ---- records of kernels ---------------------------------------------------------------------- */

static void records_that_name_no_kernel_are_refused(void **state)
{
	static const lade__kernel no_image = {"nowhere", "lade_selftest_add", 0};
	static const lade__kernel no_function = {"selftest", "lade_selftest_sub", 0};
	static const lade__kernel too_much = {"selftest", "lade_selftest_add", 1 << 20};
	void *function = dev;
	lade_error err;

	(void)state;
	assert_int_equal(lade__kernel_get(dev, &no_image, &function, &err), LADE_E_INTERNAL);
	assert_string_equal(err.message, "there is no image nowhere among the library's kernels");
	assert_null(function);
	assert_int_equal(lade__kernel_get(dev, &no_function, &function, &err), LADE_E_DEVICE);
	assert_non_null(strstr(err.message, "cuModuleGetFunction"));
	assert_int_equal(lade__kernel_get(dev, &too_much, &function, &err), LADE_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "lade_selftest_add wants 1048576 bytes"));
}

/* The second device's table stays full: this test is the last. */
static void a_table_of_kernels_can_be_full(void **state)
{
	static lade__kernel many[LADE__KERNELS_MAX + 1];
	lade__device *second;
	void *function, *again;
	size_t count = 0;
	lade_error err = {.message = ""};

	(void)state;
	GOOD(lade__device_use(1, &second, NULL));
	for (size_t i = 0; i <= LADE__KERNELS_MAX; i++)
		many[i] = add_kernel;
	while (count <= LADE__KERNELS_MAX &&
	       lade__kernel_get(second, &many[count], &function, &err) == LADE_OK)
		count++;
	/* Others have been loaded there before. */
	assert_in_range(count, 1, LADE__KERNELS_MAX - 1);
	assert_non_null(strstr(err.message, "would be kernel 257, and there is room for 256"));
	GOOD(lade__kernel_get(second, &many[count - 1], &function, NULL));
	GOOD(lade__kernel_get(second, &many[count - 1], &again, NULL));
	assert_ptr_equal(function, again);
	GOOD(lade_device_check(1, NULL));
	lade__device_leave(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernels_run_on_both_devices),
		TEST(the_host_cannot_touch_device_memory),
		TEST(kernels_reach_only_what_is_the_devices),
		TEST(memory_is_told_apart),
		TEST(nothing_runs_before_it_is_waited_for),
		TEST(small_pageable_sources_are_read_at_once),
		TEST(a_missing_event_shows),
		TEST(what_is_ordered_stays_so),
		TEST(the_default_stream_is_ordered_with_blocking_ones),
		TEST(memory_comes_and_goes_in_stream_order),
		TEST(copies_come_in_batches),
		TEST(a_capture_can_be_replayed),
		TEST(what_a_capture_forbids),
		TEST(what_is_not_given_back_is_counted),
		TEST(a_call_fails_when_it_is_told_to),
		TEST(records_that_name_no_kernel_are_refused),
		TEST(a_table_of_kernels_can_be_full),
	};
	struct {
		const char *name;
		void *to;
	} functions[] = {
		{"cuStreamBeginCapture_v2", &capture_begin},
		{"cuStreamEndCapture", &capture_end},
		{"cuGraphInstantiateWithFlags", &graph_make},
		{"cuGraphLaunch", &graph_launch},
		{"cuGraphDestroy", &graph_free},
		{"cuCtxSynchronize", &synchronize},
	};
	emu = emulated_open();
	if (!emu) {
		puts("libcuda.so.1 is not the one of the tests: run this with ctest");
		return 1;
	}
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		void *symbol = dlsym(library, functions[i].name);
		memcpy(functions[i].to, &symbol, sizeof symbol);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
