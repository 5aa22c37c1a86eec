/*
 * test_driver_fails.c: every call of the driver fails in turn, on the emulated device.  Its second
 * device has no pools and no managed memory here, and is too old for the kernels.  Each run is a
 * process of its own, since the driver is opened once in a process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"
#include "base/try.h"
#include "engine/engine.h"
#include "gpu/emulated.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The driver in use; in the parent it is never opened by the library. */
static emulated_state *emu;

/* ---- a process for each run ------------------------------------------------------------------ */

#define WANT(condition)                                                         \
	do {                                                                    \
		if (!(condition)) {                                             \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			return 99;                                              \
		}                                                               \
	} while (0)

/* Runs body(ctx) in a child and gives what it returns. */
static int in_child(int (*body)(void *ctx), void *ctx)
{
	int code;
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int rc = body(ctx);
		fflush(NULL);
		_exit(rc);
	}
	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_true(WIFEXITED(code));
	return WEXITSTATUS(code);
}

/* ---- all that calls the driver --------------------------------------------------------------- */

static lade_status take_and_give(lade_kind kind, int32_t device, lade_stream stream,
                                 lade_error *err)
{
	const lade_allocator *a = lade_allocator_default(kind);
	lade_place place = {kind, device};
	void *p = a->alloc(a->ctx, 1000, 256, place, stream);

	if (!p)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no 1000 bytes of memory");
	if (kind != LADE_DEVICE)
		memset(p, 1, 1000);
	a->free(a->ctx, p, 1000, 256, place, stream);
	return LADE_OK;
}

static lade_status everything(lade_error *err)
{
	const lade_device_info *info;
	uint64_t left, reserve;
	int32_t count;
	lade_stream stream = NULL;
	lade_mark *mark = NULL;
	lade_status status;

	TRY(lade_device_count(&count, err));
	TRY(lade_device_get_info(0, &info, err));
	TRY(lade_stream_new(0, &stream, err));
	TRY(take_and_give(LADE_PINNED, 0, NULL, err));
	TRY(take_and_give(LADE_MANAGED, 0, stream, err));
	TRY(take_and_give(LADE_DEVICE, 0, stream, err));
	TRY(take_and_give(LADE_DEVICE, 1, NULL, err));
	TRY(lade_device_memory(0, &left, &reserve, err));
	TRY(lade_device_trim(0, 1000, err));
	TRY(lade_stream_wait(0, stream, err));
	TRY(lade_mark_new(0, stream, &mark, err));
	TRY(lade_stream_follow(mark, NULL, err));
	TRY(lade_mark_wait(mark, err));
	WANT(lade_mark_passed(mark));
	TRY(lade_device_check(0, err));
out:
	lade_mark_free(mark);
	lade_stream_free(0, stream);
	return status;
}

static int nothing_is_left(void)
{
	WANT(emu->streams == 0 && emu->blocks == 0 && emu->pushed == 0);
	WANT(emu->events <= 1 && emu->pools <= 1 && emu->modules <= 1 && emu->retained <= 2);
	return 0;
}

typedef struct fault {
	int at, code;
} fault;

enum { DONE = 0, SURVIVED = 1, NO_FAULT_LEFT = 2 };

static int run_with_fault(void *ctx)
{
	const fault *f = ctx;
	lade_error err = {.message = ""};

	emu->fail_at = emu->calls + f->at;
	emu->fail_code = f->code;
	lade_status status = everything(&err);
	if (!emu->failed) {
		WANT(status == LADE_OK);
		return nothing_is_left() ? 99 : NO_FAULT_LEFT;
	}
	WANT(nothing_is_left() == 0);
	if (status != LADE_OK) {
		char name[64];
		snprintf(name, sizeof name, "%s", emu->failed);
		if (strstr(name, "_v2"))
			*strstr(name, "_v2") = 0;
		/* The message has the function and the driver's words; allocators have none. */
		WANT(strlen(err.message) > 0 && err.status == status);
		WANT(strstr(err.message, "bytes of") ||
		     (strstr(err.message, name) &&
		      strstr(err.message, f->code == 999 ? "CUDA_ERROR_UNKNOWN (999): " :
		                                           "CUDA_ERROR_OUT_OF_MEMORY (2): ")));
		WANT(status == LADE_E_DEVICE || status == LADE_E_NOMEM);
	}
	/* What failed once is well the next time; but opening the driver keeps its reason. */
	lade_error again = {.message = ""};
	emu->fail_at = 0;
	lade_status second = everything(&again);
	WANT(nothing_is_left() == 0);
	if (second != LADE_OK)
		WANT(second == status && strcmp(err.message, again.message) == 0);
	else if (status != LADE_OK)
		return SURVIVED;
	return DONE;
}

static void each_call_fails_in_turn(int code)
{
	int survived = 0;
	fault f = {1, code};

	for (;; f.at++) {
		assert_in_range(f.at, 1, 1000);
		int rc = in_child(run_with_fault, &f);
		if (rc == NO_FAULT_LEFT)
			break;
		if (rc > SURVIVED)
			print_error("call %d, code %d\n", f.at, code);
		assert_in_range(rc, DONE, SURVIVED);
		survived += rc == SURVIVED;
	}
	print_message("%d calls failed with %d, one by one\n", f.at - 1, code);
	/* Opening takes 36 calls for two devices; well over a dozen follow. */
	assert_true(f.at > 50);
	assert_true(survived > 10);
}

static void each_call_fails(void **state)
{
	(void)state;
	each_call_fails_in_turn(999);
}

static void each_call_is_out_of_memory(void **state)
{
	(void)state;
	each_call_fails_in_turn(LADE__CU_OUT_OF_MEMORY);
}

/* ---- single cases ---------------------------------------------------------------------------- */

static int no_device_body(void *ctx)
{
	(void)ctx;
	lade_error err = {.message = ""};
	int32_t count = 7;
	emu->fail_at = emu->calls + 1;
	emu->fail_code = LADE__CU_NO_DEVICE;
	for (int i = 0; i < 2; i++) {
		WANT(lade_device_count(&count, &err) == LADE_E_NO_DEVICE && count == 0);
		WANT(strcmp(err.message, "no device: cuInit: CUDA_ERROR_NO_DEVICE (100): no "
		                         "CUDA-capable device is detected") == 0);
	}
	return 0;
}

static int count_of_zero_body(void *ctx)
{
	(void)ctx;
	lade_error err = {.message = ""};
	int32_t count = 7;
	emu->devices = 0;
	WANT(lade_device_count(&count, &err) == LADE_E_NO_DEVICE && count == 0);
	WANT(strstr(err.message, "no device"));
	return 0;
}

static void no_devices(void **state)
{
	(void)state;
	assert_int_equal(in_child(no_device_body, NULL), 0);
	assert_int_equal(in_child(count_of_zero_body, NULL), 0);
}

static int numbers_body(void *ctx)
{
	(void)ctx;
	static const int32_t numbers[] = {-1, 2, 63, 64, INT32_MAX, INT32_MIN};
	const lade_device_info *info;
	lade_error err = {.message = ""};

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		char want[64];
		snprintf(want, sizeof want, "no device %d: there are 2, counted from 0",
		         (int)numbers[i]);
		WANT(lade_device_get_info(numbers[i], &info, &err) == LADE_E_NO_DEVICE && !info);
		WANT(strcmp(err.message, want) == 0);
	}
	WANT(lade_device_get_info(1, &info, &err) == LADE_OK);
	WANT(strcmp(info->name, "emulated 1") == 0 && strcmp(info->pci, "0000:01:00.0") == 0);
	WANT(info->driver_version == 13000 && info->major == 7 && info->minor == 0);
	WANT(info->multiprocessors == 2 && info->clock_khz == 1000000 && info->l2_size == 1 << 20);
	WANT(info->uuid[0] == 2 && info->uuid[15] == 2 && !info->pools && !info->managed);
	WANT(info->memory_size == (uint64_t)1 << 30 && !info->kernels);
	return 0;
}

static void numbers_are_checked(void **state)
{
	(void)state;
	assert_int_equal(in_child(numbers_body, NULL), 0);
}

static int second_device_body(void *ctx)
{
	(void)ctx;
	lade_error err = {.message = ""};
	WANT(lade_device_check(1, &err) == LADE_E_UNSUPPORTED);
	WANT(strstr(err.message, "emulated 1 has compute capability 7.0") &&
	     strstr(err.message, lade_device_kernels()));
	WANT(take_and_give(LADE_MANAGED, 1, NULL, &err) == LADE_E_NOMEM);
	return nothing_is_left();
}

static void a_device_that_lacks_things(void **state)
{
	(void)state;
	assert_int_equal(in_child(second_device_body, NULL), 0);
}

/* Opens with one call failing; tells which devices there are: bit 0 and 1; -1: none at all. */
static int one_lost_body(void *ctx)
{
	const lade_device_info *info;
	lade_error err = {.message = ""};
	int32_t count = 7;
	int bits = 0;
	emu->fail_at = emu->calls + *(int *)ctx;
	emu->fail_code = 999;
	if (lade_device_count(&count, &err) != LADE_OK)
		return count == 0 ? 10 : 99;
	emu->fail_at = 0;
	WANT(count == 2);
	for (int32_t i = 0; i < 2; i++) {
		lade_status status = lade_device_get_info(i, &info, &err);
		if (status == LADE_OK) {
			WANT(info && info->device == i &&
			     lade_device_memory(i, &(uint64_t){0}, &(uint64_t){0}, &err) ==
			             LADE_OK);
			bits |= 1 << i;
			continue;
		}
		WANT(!info && status == LADE_E_DEVICE && strstr(err.message, "UNKNOWN (999)"));
		WANT(strstr(err.message, i ? "device 1: cu" : "device 0: cu"));
		WANT(lade_device_check(i, &err) == LADE_E_DEVICE);
	}
	return bits;
}

static void a_bad_device_does_not_hide_the_others(void **state)
{
	(void)state;
	int seen[4] = {0};
	for (int at = 1; seen[3] == 0; at++) {
		int bits = in_child(one_lost_body, &at);
		assert_true(bits == 10 || (bits >= 1 && bits <= 3));
		if (bits < 10)
			seen[bits]++;
	}
	/* Name, address, UUID, memory and a dozen attributes of each. */
	assert_in_range(seen[1], 10, 40);
	assert_int_equal(seen[1], seen[2]);
}

static int alignment_body(void *ctx)
{
	(void)ctx;
	lade_place place = {LADE_DEVICE, 0};
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	/* Of blocks aligned to 256 some are aligned to more; what is given is as asked for. */
	for (size_t align = 1; align <= (size_t)1 << 20; align *= 2) {
		void *p = a->alloc(a->ctx, 100, align, place, NULL);
		WANT(p || align > 256);
		WANT((uintptr_t)p % align == 0);
		a->free(a->ctx, p, 100, align, place, NULL);
	}
	WANT(!a->alloc(a->ctx, SIZE_MAX, 1, place, NULL));
	return nothing_is_left();
}

static void alignment_is_kept(void **state)
{
	(void)state;
	assert_int_equal(in_child(alignment_body, NULL), 0);
}

static int unknown_code_body(void *ctx)
{
	(void)ctx;
	lade_error err = {.message = ""};
	const lade__driver *driver;
	WANT(lade__driver_get(&driver, &err) == LADE_OK);
	WANT(lade__driver_fail(driver, 12345, 3, "cuThing", &err) == LADE_E_DEVICE);
	WANT(strcmp(err.message, "device 3: cuThing: an unknown result (12345): the driver has no "
	                         "text for it") == 0);
	return 0;
}

static void a_code_without_a_name(void **state)
{
	(void)state;
	assert_int_equal(in_child(unknown_code_body, NULL), 0);
}

/* ---- forks and threads ----------------------------------------------------------------------- */

static int forked_body(void *ctx)
{
	lade_error err = {.message = ""};
	lade_place place = {LADE_DEVICE, 0};
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	void *const *inherited = ctx;
	int32_t count = 7;
	int calls = emu->calls, blocks = emu->blocks;

	WANT(lade_device_count(&count, &err) == LADE_E_NO_DEVICE && count == 0);
	WANT(strstr(err.message, "forked"));
	WANT(everything(&err) == LADE_E_NO_DEVICE);
	WANT(lade_device_check(0, &err) == LADE_E_NO_DEVICE && strstr(err.message, "forked"));
	WANT(!a->alloc(a->ctx, 100, 1, place, NULL));
	a->free(a->ctx, inherited[0], 1000, 256, place, NULL);
	lade_stream_free(0, inherited[1]);
	/* The driver was not called, not even to give back what belongs to the parent. */
	WANT(emu->calls == calls && emu->blocks == blocks);
	return 0;
}

static int parent_body(void *ctx)
{
	(void)ctx;
	lade_error err = {.message = ""};
	lade_place place = {LADE_DEVICE, 0};
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	void *owned[2];

	WANT(everything(&err) == LADE_OK);
	WANT(lade_stream_new(0, &owned[1], &err) == LADE_OK);
	owned[0] = a->alloc(a->ctx, 1000, 256, place, NULL);
	WANT(owned[0]);
	WANT(in_child(forked_body, owned) == 0);
	/* And the parent goes on. */
	WANT(everything(&err) == LADE_OK);
	a->free(a->ctx, owned[0], 1000, 256, place, NULL);
	lade_stream_free(0, owned[1]);
	return nothing_is_left();
}

static void a_forked_child_is_refused(void **state)
{
	(void)state;
	assert_int_equal(in_child(parent_body, NULL), 0);
}

/* An engine's first call for a device is in a forked child; a thread of the parent's had its mutex
 * then.  What the child takes belongs to the engine there, and is given back with it. */
static int first_in_child_body(void *ctx)
{
	lade_engine *engine = ctx;
	lade_error err = {.message = ""};
	uint8_t data[5000] = {1}, encoded[6000], back[5000];
	lade_spec *spec;
	size_t size, back_size;
	alarm(60);
	WANT(lade_spec_parse(engine, "lz4", &spec, &err) == LADE_OK);
	for (int i = 0; i < 2; i++) {
		lade_segment source = {.data = data, .size = sizeof data};
		lade_item item = {.src = &source,
		                  .src_count = 1,
		                  .dst = lade_host_span(encoded, sizeof encoded)};
		lade_batch_options options = {.struct_size = sizeof options,
		                              .where = LADE_WHERE_DEVICE};
		lade_result result;
		WANT(lade_encode_into(engine, spec, &item, 1, &result, &options, &err) == LADE_OK);
		size = result.size;
		/* This takes a worker of the host's. */
		WANT(lade_decode(engine, spec, lade_host_cspan(encoded, size),
		                 lade_host_span(back, sizeof back), &back_size, &err) == LADE_OK);
		WANT(back_size == sizeof data && memcmp(back, data, sizeof data) == 0);
	}
	WANT(emu->streams > 0);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	return nothing_is_left();
}

static int engine_and_fork_body(void *ctx)
{
	(void)ctx;
	lade_engine *engine;
	lade_error err = {.message = ""};
	WANT(lade_engine_new(NULL, &engine, &err) == LADE_OK);
	pthread_mutex_lock(&engine->workers_mutex);
	int rc = in_child(first_in_child_body, engine);
	pthread_mutex_unlock(&engine->workers_mutex);
	lade_engine_free(engine);
	return rc;
}

static void a_device_is_first_used_in_a_forked_child(void **state)
{
	(void)state;
	assert_int_equal(in_child(engine_and_fork_body, NULL), 0);
}

#define THREADS 8

static void *thread(void *arg)
{
	lade_error err;
	for (int i = 0; i < 10; i++)
		if (everything(&err) != LADE_OK)
			*(bool *)arg = true;
	return NULL;
}

static int threads_body(void *ctx)
{
	(void)ctx;
	pthread_t threads[THREADS];
	bool bad[THREADS] = {false};

	for (int i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, thread, &bad[i]) == 0);
	for (int i = 0; i < THREADS; i++) {
		WANT(pthread_join(threads[i], NULL) == 0);
		WANT(!bad[i]);
	}
	WANT(nothing_is_left() == 0);
	WANT(emu->pools == 1 && emu->retained == 2);
	WANT(emu->modules == 1);
	return 0;
}

static void threads_begin_together(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(in_child(threads_body, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_fails),
		cmocka_unit_test(each_call_is_out_of_memory),
		cmocka_unit_test(no_devices),
		cmocka_unit_test(numbers_are_checked),
		cmocka_unit_test(a_device_that_lacks_things),
		cmocka_unit_test(a_bad_device_does_not_hide_the_others),
		cmocka_unit_test(alignment_is_kept),
		cmocka_unit_test(a_code_without_a_name),
		cmocka_unit_test(a_forked_child_is_refused),
		cmocka_unit_test(a_device_is_first_used_in_a_forked_child),
		cmocka_unit_test(threads_begin_together),
	};
	emu = emulated_open();
	if (!emu) {
		puts("libcuda.so.1 is not the one of the tests: run this with ctest");
		return 1;
	}
	emu->device[1].major = 7;
	emu->device[1].managed = emu->device[1].pools = 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
