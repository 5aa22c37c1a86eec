/*
 * test_owner.c: lade_array: who gives memory back, when, and how often, with many threads too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* An allocator that counts, and the callback. */
typedef struct counts {
	atomic_int live, gone;
	int left; /* requests that succeed */
	size_t size, align;
} counts;

static void *count_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream)
{
	counts *c = ctx;
	void *ptr = NULL;

	(void)place, (void)stream;
	if (!c->left || posix_memalign(&ptr, align, size))
		return NULL;
	c->left--;
	c->live++;
	c->size = size;
	c->align = align;
	return ptr;
}

static void count_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                       lade_stream stream)
{
	counts *c = ctx;

	(void)place, (void)stream;
	assert_int_equal(size, c->size);
	assert_int_equal(align, c->align);
	c->live--;
	free(ptr);
}

static void count_gone(void *ctx)
{
	((counts *)ctx)->gone++;
}

static lade_array *counted(counts *c, size_t size)
{
	lade_allocator allocator = {c, count_alloc, count_free};
	lade_array_options options = {.struct_size = sizeof options, .align = 128,
	                              .allocator = &allocator, .gone = count_gone, .gone_ctx = c};
	lade_array *array;

	assert_int_equal(lade_array_new(size, LADE_PLACE_HOST, &options, &array, NULL), LADE_OK);
	return array;
}

static void test_the_last_reference_gives_it_back(void **state)
{
	(void)state;
	counts c = {.left = 1};
	lade_array *array = counted(&c, 1000), *slice, *part;

	assert_int_equal((uintptr_t)lade_array_span(array).data % 128, 0);
	assert_int_equal(lade_array_span(array).size, 1000);
	assert_true(lade_array_is_sole(array));
	assert_ptr_equal(lade_array_ref(array), array);
	assert_false(lade_array_is_sole(array));
	lade_array_unref(array);
	assert_true(lade_array_is_sole(array));

	/* Slices keep the block, also slices of slices, and are in it. */
	assert_int_equal(lade_array_slice(array, 100, 200, &slice, NULL), LADE_OK);
	assert_int_equal(lade_array_slice(slice, 50, 150, &part, NULL), LADE_OK);
	assert_false(lade_array_is_sole(array));
	assert_false(lade_array_is_sole(part));
	assert_ptr_equal(lade_array_span(part).data, (char *)lade_array_span(array).data + 150);
	assert_int_equal(lade_array_span(part).size, 150);
	lade_array_unref(array);
	lade_array_unref(slice);
	assert_true(lade_array_is_sole(part));
	assert_int_equal(c.live, 1);
	assert_int_equal(c.gone, 0);
	memset(lade_array_span(part).data, 1, 150);
	lade_array_unref(part);
	assert_int_equal(c.live, 0);
	assert_int_equal(c.gone, 1);

	lade_array_unref(NULL);
	assert_null(lade_array_ref(NULL));
	assert_null(lade_array_span(NULL).data);
}

static void test_foreign_memory_is_told(void **state)
{
	(void)state;
	counts c = {0};
	char bytes[10];
	lade_array_options options = {.struct_size = sizeof options, .gone = count_gone,
	                              .gone_ctx = &c};
	lade_array *array, *slice;

	assert_int_equal(lade_array_wrap(lade_host_span(bytes, 10), &options, &array, NULL),
	                 LADE_OK);
	assert_ptr_equal(lade_array_span(array).data, bytes);
	assert_int_equal(lade_array_slice(array, 10, 0, &slice, NULL), LADE_OK);
	lade_array_unref(array);
	assert_int_equal(c.gone, 0);
	lade_array_unref(slice);
	assert_int_equal(c.gone, 1);
	/* Without anybody to tell it is just borrowed. */
	assert_int_equal(lade_array_wrap(lade_host_span(bytes, 10), NULL, &array, NULL), LADE_OK);
	assert_int_equal(lade_array_wait(array, NULL), LADE_OK);
	lade_array_unref(array);
}

static void test_nothing_is_no_block(void **state)
{
	(void)state;
	lade_array *array;

	for (int kind = 0; kind < LADE_KIND_COUNT; kind++) {
		lade_place place = {(lade_kind)kind, 0};
		assert_int_equal(lade_array_new(0, place, NULL, &array, NULL), LADE_OK);
		assert_null(lade_array_span(array).data);
		lade_array_unref(array);
	}
}

static void test_shrinking(void **state)
{
	(void)state;
	static const size_t sizes[][2] = {{100, 50},    {5000, 4999},       {1 << 20, 1000},
	                                  {1 << 20, 0}, {1 << 20, 1 << 20}, {10000, 5000}};
	counts c = {.left = 1};
	lade_array *array;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_int_equal(lade_array_new(sizes[i][0], LADE_PLACE_HOST, NULL, &array, NULL),
		                 LADE_OK);
		memset(lade_array_span(array).data, (int)i, sizes[i][0]);
		assert_int_equal(lade_array_shrink(array, sizes[i][1], NULL), LADE_OK);
		assert_int_equal(lade_array_span(array).size, sizes[i][1]);
		for (size_t k = 0; k < sizes[i][1]; k++)
			assert_int_equal(((char *)lade_array_span(array).data)[k], (int)i);
		assert_int_equal(lade_array_shrink(array, sizes[i][1] + 1, NULL), LADE_E_ARG);
		lade_array_unref(array);
	}
	/* Nothing moves that others can see, nor what another allocator gave. */
	assert_int_equal(lade_array_new(1 << 20, LADE_PLACE_HOST, NULL, &array, NULL), LADE_OK);
	lade_array *slice;
	assert_int_equal(lade_array_slice(array, 1 << 19, 1, &slice, NULL), LADE_OK);
	*(char *)lade_array_span(slice).data = 7;
	assert_int_equal(lade_array_shrink(array, 1, NULL), LADE_OK);
	assert_int_equal(*(char *)lade_array_span(slice).data, 7);
	assert_int_equal(lade_array_shrink(slice, 0, NULL), LADE_OK);
	lade_array_unref(array);
	lade_array_unref(slice);
	array = counted(&c, 1 << 20);
	assert_int_equal(lade_array_shrink(array, 1, NULL), LADE_OK);
	lade_array_unref(array);
	assert_int_equal(c.live, 0);
}

static void test_arguments(void **state)
{
	(void)state;
	counts c = {.left = 0};
	lade_allocator allocator = {&c, count_alloc, count_free};
	lade_array_options options = {.struct_size = sizeof options, .gone = count_gone,
	                              .gone_ctx = &c};
	lade_array *array = (lade_array *)&c;
	lade_error err;

	options.align = 48;
	assert_int_equal(lade_array_new(1, LADE_PLACE_HOST, &options, &array, &err), LADE_E_ARG);
	assert_null(array);
	options.align = 0;
	options.allocator = &allocator;
	assert_int_equal(lade_array_new(5, LADE_PLACE_HOST, &options, &array, &err), LADE_E_NOMEM);
	assert_string_equal(err.message, "5 bytes of host memory could not be allocated");
	assert_null(array);
	assert_int_equal(lade_array_new(1, (lade_place){(lade_kind)4, 0}, &options, &array, &err),
	                 LADE_E_ARG);
	assert_int_equal(lade_array_new(1, LADE_PLACE_HOST, NULL, NULL, &err), LADE_E_ARG);
	assert_int_equal(lade_array_wrap(lade_host_span(NULL, 1), &options, &array, &err),
	                 LADE_E_ARG);
	assert_null(array);
	assert_int_equal(lade_array_new(10, LADE_PLACE_HOST, NULL, &array, NULL), LADE_OK);
	lade_array *slice;
	assert_int_equal(lade_array_slice(array, 11, 0, &slice, &err), LADE_E_RANGE);
	assert_int_equal(lade_array_slice(array, 5, 6, &slice, &err), LADE_E_RANGE);
	assert_int_equal(lade_array_slice(array, 5, SIZE_MAX, &slice, &err), LADE_E_RANGE);
	assert_null(slice);
	assert_int_equal(lade_array_slice(NULL, 0, 0, &slice, &err), LADE_E_ARG);
	assert_int_equal(lade_array_used(NULL, 0, NULL, &err), LADE_E_ARG);
	assert_int_equal(lade_array_used_until(array, NULL, &err), LADE_E_ARG);
	assert_int_equal(lade_array_follow(NULL, 0, NULL, &err), LADE_E_ARG);
	assert_int_equal(lade_array_wait(NULL, &err), LADE_E_ARG);
	lade_array_unref(array);
	/* 'gone' belongs to arrays that were made. */
	assert_int_equal(c.gone, 0);
}

/* ---- threads ---------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 2000

/* Each writes its own bytes of a slice, shares, and drops all. */
static void *share_and_drop(void *arg)
{
	lade_array *mine = arg, *slice;

	for (size_t i = 0; i < ROUNDS; i++) {
		lade_array *other = lade_array_ref(mine);
		if (lade_array_slice(other, i % 100, 100, &slice, NULL) == LADE_OK)
			lade_array_unref(slice);
		lade_array_is_sole(other);
		lade_array_unref(other);
	}
	lade_array_unref(mine);
	return NULL;
}

static void test_threads(void **state)
{
	(void)state;
	for (int round = 0; round < 5; round++) {
		counts c = {.left = 1};
		lade_array *array = counted(&c, 200);
		pthread_t thread[THREADS];
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, share_and_drop,
			                                lade_array_ref(array)),
			                 0);
		memset(lade_array_span(array).data, 1, 200);
		lade_array_unref(array);
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(c.live, 0);
		assert_int_equal(c.gone, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_reference_gives_it_back),
		cmocka_unit_test(test_foreign_memory_is_told),
		cmocka_unit_test(test_nothing_is_no_block),
		cmocka_unit_test(test_shrinking),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
