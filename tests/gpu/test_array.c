/*
 * test_array.c: arrays on devices: memory goes back behind the work that uses it, also where the
 * stream of that work has ended, and without waiting.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

enum { SIZE = 1 << 16 };

static const lade_place near = {LADE_DEVICE, 0};
static lade_array *in, *out; /* pinned */

static int begin(void **state)
{
	(void)state;
	lade_place pinned = {LADE_PINNED, 0};
	OK(lade_array_new(SIZE, pinned, NULL, &in, err));
	OK(lade_array_new(SIZE, pinned, NULL, &out, err));
	memset(lade_array_span(in).data, 7, SIZE);
	memset(lade_array_span(out).data, 0, SIZE);
	if (emu)
		emu->seed = EMULATED_LAZY;
	return 0;
}

/* The library's own streams live as long as the process, but for these tests. */
static int end(void **state)
{
	(void)state;
	lade_array_unref(in);
	lade_array_unref(out);
	for (int32_t i = 0; i < device_count; i++) {
		lade__device *d;
		OK(lade__device_get(i, &d, err));
		lade_stream_free(i, d->order);
		d->order = NULL;
	}
	kit_clean();
	return 0;
}

static lade_array *array_on(lade_stream stream)
{
	lade_array_options options = {.struct_size = sizeof options, .stream = stream};
	lade_array *array;
	OK(lade_array_new(SIZE, near, &options, &array, err));
	return array;
}

static void copy(const lade_array *to, const lade_array *from, lade_stream stream)
{
	lade__device *d;
	OK(lade__device_use(0, &d, err));
	OK(LADE__CU(d, cuMemcpyAsync, lade__address_of(lade_array_span(to).data),
	            lade__address_of(lade_array_span(from).data), SIZE, stream));
	lade__device_leave(d);
}

static void set(const lade_array *array, unsigned char value, lade_stream stream)
{
	lade__device *d;
	OK(lade__device_use(0, &d, err));
	OK(LADE__CU(d, cuMemsetD8Async, lade__address_of(lade_array_span(array).data), value, SIZE,
	            stream));
	lade__device_leave(d);
}

static int syncs(void)
{
	return emu ? emu->syncs : 0;
}

static void all_are(const lade_array *array, int value)
{
	const char *data = lade_array_span(array).data;
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(data[i], value);
}

/* The stream ends before its work is done, and before the array does. */
static void freed_behind_the_work_of_a_stream_that_ended(void **state)
{
	(void)state;
	for (int round = 0; round < 4; round++) {
		lade_stream stream, other;
		lade_mark *done;
		OK(lade_stream_new(0, &stream, err));
		OK(lade_stream_new(0, &other, err));
		memset(lade_array_span(out).data, 0, SIZE);
		lade_array *array = array_on(stream);
		copy(array, in, stream);
		copy(out, array, stream);
		int before = syncs();
		OK(lade_array_used(array, 0, stream, err));
		OK(lade_mark_new(0, stream, &done, err));
		lade_stream_free(0, stream);
		lade_array_unref(array);
		assert_int_equal(syncs(), before);
		/* Whoever gets the block next does not disturb that work. */
		array = array_on(other);
		set(array, 9, other);
		OK(lade_array_used(array, 0, other, err));
		OK(lade_stream_wait(0, other, err));
		lade_stream_free(0, other);
		lade_array_unref(array);
		OK(lade_mark_wait(done, err));
		lade_mark_free(done);
		all_are(out, 7);
	}
}

/* Nothing was noted: the block is given back behind its own making. */
static void freed_unused(void **state)
{
	(void)state;
	lade_stream stream;
	OK(lade_stream_new(0, &stream, err));
	lade_array *array = array_on(stream);
	lade_stream_free(0, stream);
	lade_array_unref(array);
}

static void the_default_stream_needs_no_mark(void **state)
{
	(void)state;
	int events = emu ? emu->events : 0, before = syncs();
	lade_array *array = array_on(NULL);
	copy(array, in, NULL);
	copy(out, array, NULL);
	OK(lade_array_used(array, 0, NULL, err));
	if (emu)
		assert_int_equal(emu->events, events);
	lade_array_unref(array);
	assert_int_equal(syncs(), before);
	OK(lade_stream_wait(0, NULL, err));
	all_are(out, 7);
}

/* Both the default stream and one that does not wait for it. */
static void freed_behind_all_of_several_streams(void **state)
{
	(void)state;
	lade_stream stream[3];
	lade_mark *done;
	lade_array *array = array_on(NULL);
	copy(array, in, NULL);
	for (int i = 0; i < 3; i++) {
		OK(lade_stream_new(0, &stream[i], err));
		OK(lade_array_follow(array, 0, stream[i], err));
		copy(out, array, stream[i]);
		OK(lade_mark_new(0, stream[i], &done, err));
		OK(lade_array_used_until(array, done, err));
		lade_mark_free(done);
	}
	int before = syncs();
	lade_array_unref(array);
	assert_int_equal(syncs(), before);
	for (int i = 0; i < 3; i++) {
		OK(lade_stream_wait(0, stream[i], err));
		lade_stream_free(0, stream[i]);
	}
	all_are(out, 7);
}

/* Many marks on one array: those that have been passed are dropped. */
static void marks_do_not_pile_up(void **state)
{
	(void)state;
	lade_stream stream;
	OK(lade_stream_new(0, &stream, err));
	lade_array *array = array_on(stream);
	for (int i = 0; i < 100; i++) {
		set(array, (unsigned char)i, stream);
		OK(lade_array_used(array, 0, stream, err));
		OK(lade_stream_wait(0, stream, err));
	}
	if (emu)
		assert_in_range(emu->events, 1, 10);
	/* A slice's work is the block's. */
	lade_array *slice;
	OK(lade_array_slice(array, 1, 10, &slice, err));
	copy(out, array, stream);
	OK(lade_array_used(slice, 0, stream, err));
	lade_array_unref(slice);
	OK(lade_array_wait(array, err));
	all_are(out, 99);
	lade_array_unref(array);
	lade_stream_free(0, stream);
}

static int gone_value;

static void note_gone(void *ctx)
{
	(void)ctx;
	gone_value = *(char *)lade_array_span(out).data;
}

/* Memory that has no order of its own waits, before somebody is told. */
static void foreign_and_pinned_memory_waits(void **state)
{
	(void)state;
	lade_array_options options = {.struct_size = sizeof options, .gone = note_gone};
	lade_stream stream;
	lade_array *array, *block = array_on(NULL);
	OK(lade_stream_new(0, &stream, err));
	OK(lade_array_follow(block, 0, stream, err));
	OK(lade_array_wrap(lade_array_span(block), &options, &array, err));
	copy(block, in, stream);
	copy(out, array, stream);
	OK(lade_array_used(array, 0, stream, err));
	lade_array_unref(array);
	assert_int_equal(gone_value, 7);

	lade_place pinned = {LADE_PINNED, 0};
	OK(lade_array_new(SIZE, pinned, NULL, &array, err));
	copy(array, in, stream);
	set(block, 1, stream);
	OK(lade_array_used(array, 0, stream, err));
	OK(lade_array_used(block, 0, stream, err));
	lade_stream_free(0, stream);
	lade_array_unref(array);
	lade_array_unref(block);
}

/* ---- copies ----------------------------------------------------------------------------- */

/* From each place to each other, also right behind work on a stream. */
static void copies(void **state)
{
	(void)state;
	rng r = {.s = 5};
	uint8_t bytes[300], back[300];
	for (int round = 0; round < 60; round++) {
		size_t size = rng_below(&r, 301);
		lade_place places[3] = {any_place(&r), any_place(&r), any_place(&r)};
		lade_array *a, *b, *c;
		kit_round((uint64_t)round, rng_next(&r));
		if (emu)
			emu->protect = 1;
		fill(&r, bytes, size);
		OK(lade_array_new(size, places[0], NULL, &a, err));
		OK(lade_copy(NULL, lade_host_cspan(bytes, size), lade_array_span(a), NULL, err));
		OK(lade_array_copy(NULL, a, places[1], NULL, &b, err));
		lade_array_unref(a);
		OK(lade_array_copy(NULL, b, places[2], NULL, &c, err));
		lade_array_unref(b);
		lade_span span = lade_array_span(c);
		OK(lade_copy(NULL, (lade_cspan){span.data, span.size, span.place},
		             lade_host_span(back, sizeof back), NULL, err));
		lade_array_unref(c);
		assert_memory_equal(bytes, back, size);
	}
	lade_stream stream;
	OK(lade_stream_new(0, &stream, err));
	lade_array *array = array_on(stream), *host;
	copy(array, in, stream);
	OK(lade_array_used(array, 0, stream, err));
	lade_stream_free(0, stream);
	OK(lade_array_copy(NULL, array, LADE_PLACE_HOST, NULL, &host, err));
	all_are(host, 7);
	lade_span small = {lade_array_span(host).data, SIZE - 1, LADE_PLACE_HOST};
	FAILS(LADE_E_NOSPACE, "65536 bytes are to be copied, the destination has 65535",
	      lade_copy(NULL, (lade_cspan){lade_array_span(array).data, SIZE, near}, small, NULL,
	                err));
	FAILS(LADE_E_ARG, "the source is NULL",
	      lade_copy(NULL, lade_host_cspan(NULL, 1), small, NULL, err));
	lade_array_unref(array);
	lade_array_unref(host);
	lade_engine_trim(lade_engine_default());
}

/* ---- failures --------------------------------------------------------------------------- */

static void array_scenario(lade_stream stream, lade_stream other)
{
	lade_array_options options = {.struct_size = sizeof options, .stream = stream};
	lade_array *array = NULL;
	lade__device *d;

	if (lade_array_new(SIZE, near, &options, &array, NULL) != LADE_OK) {
		assert_null(array);
		return;
	}
	if (lade__device_use(0, &d, NULL) == LADE_OK) {
		d->driver->cuMemsetD8Async(lade__address_of(lade_array_span(array).data), 1, SIZE,
		                           stream);
		lade__device_leave(d);
	}
	if (lade_array_used(array, 0, stream, NULL) != LADE_OK)
		lade_stream_wait(0, stream, NULL);
	lade_array_follow(array, 0, other, NULL);
	lade_array_used(array, 0, NULL, NULL);
	lade_array_unref(array);
}

/* Any call of the driver may fail: nothing is given back too early, nor left. */
static void each_call_fails(void **state)
{
	(void)state;
	if (!emu)
		skip();
	int at = 1;
	for (bool hit = true; hit; at++) {
		lade_stream stream, other;
		lade__device *d;
		OK(lade_stream_new(0, &stream, err));
		OK(lade_stream_new(0, &other, err));
		emu->failed = NULL;
		emu->fail_code = at % 2 ? LADE__CU_OUT_OF_MEMORY : 999;
		emu->fail_at = emu->calls + at;
		array_scenario(stream, other);
		emu->fail_at = 0;
		hit = emu->failed != NULL;
		OK(lade__device_use(0, &d, err));
		lade_stream_free(0, d->order);
		d->order = NULL;
		lade__device_leave(d);
		OK(lade_stream_wait(0, stream, err));
		lade_stream_free(0, stream);
		lade_stream_free(0, other);
	}
	print_message("%d calls failed, one by one\n", at - 2);
	assert_in_range(at, 20, 200);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(freed_behind_the_work_of_a_stream_that_ended, begin,
		                                end),
		cmocka_unit_test_setup_teardown(freed_unused, begin, end),
		cmocka_unit_test_setup_teardown(the_default_stream_needs_no_mark, begin, end),
		cmocka_unit_test_setup_teardown(freed_behind_all_of_several_streams, begin, end),
		cmocka_unit_test_setup_teardown(marks_do_not_pile_up, begin, end),
		cmocka_unit_test_setup_teardown(foreign_and_pinned_memory_waits, begin, end),
		cmocka_unit_test_setup_teardown(copies, begin, end),
		cmocka_unit_test_setup_teardown(each_call_fails, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
