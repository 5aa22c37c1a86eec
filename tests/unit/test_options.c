/*
 * test_options.c: callers compiled for other versions: options that are shorter or longer than this
 * library's, and arrays of structs of other sizes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"

#include "guard.h"

#include <lade/lade.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* For ever: lade_error has no size that could say otherwise. */
_Static_assert(sizeof(lade_error) == 256 && offsetof(lade_error, status) == 0 &&
                       offsetof(lade_error, offset) == 8 && offsetof(lade_error, message) == 16,
               "lade_error");
_Static_assert(sizeof(lade_place) == 8 && sizeof(lade_value) == 8, "lade_place, lade_value");
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(lade_span) == 24 && sizeof(lade_cspan) == 24 && sizeof(lade_allocator) == 24,
               "lade_span, lade_cspan, lade_allocator");
#endif

/* What a later version adds must not be in what was padding, which callers need not zero. */
#define NO_GAP(type, last) \
	_Static_assert(sizeof(type) == offsetof(type, last) + sizeof(((type *)0)->last), #type)
NO_GAP(lade_engine_options, allocators);
NO_GAP(lade_segment, decoded_size);
NO_GAP(lade_item_output, layout);
NO_GAP(lade_item, tail);
NO_GAP(lade_batch_options, allocators);
NO_GAP(lade_async_options, result_size);
NO_GAP(lade_arrays, boxes);
NO_GAP(lade_layout, swap_size);
NO_GAP(lade_apart_options, output_size);
NO_GAP(lade_frame_options, cancel);
NO_GAP(lade_frame_read_options, cancel);
NO_GAP(lade_foreign_options, cancel);
NO_GAP(lade_measure_options, cancel);
NO_GAP(lade_suggest_options, cancel);
NO_GAP(lade_array_options, gone_ctx);
NO_GAP(lade_decode_new_options, largest);
NO_GAP(lade_bare_options, batch);
NO_GAP(lade_call, options);
NO_GAP(lade_algorithm, suggest);
NO_GAP(lade_implementation, checksum);
NO_GAP(lade_codec_ops, run_pieces);
NO_GAP(lade_tile_ops, run);
NO_GAP(lade_checksum_ops, run);
NO_GAP(lade_tensor, strides);
NO_GAP(lade_frame_range, dst);
NO_GAP(lade_frame_range_options, cancel);
NO_GAP(lade_frame_copy_options, cancel);
NO_GAP(lade_io_options, sync);
NO_GAP(lade_range, object_size);
NO_GAP(lade_write, version);
NO_GAP(lade_file_options, flags);
NO_GAP(lade_source_ops, close);
NO_GAP(lade_sink_ops, close);

typedef struct small {
	size_t struct_size;
	uint32_t a, b;
	void *p;
} small;

static void test_reader(void **state)
{
	(void)state;
	struct {
		small s;
		unsigned char more[16];
	} longer = {.s = {sizeof longer, 1, 2, &longer}};
	small s;
	lade_error err;
	assert_int_equal(lade__options_read(&s, sizeof s, NULL, "small", &err), LADE_OK);
	assert_true(s.struct_size == sizeof s && !s.a && !s.b && !s.p);
	assert_int_equal(lade__options_read(&s, sizeof s, &longer, "small", &err), LADE_OK);
	assert_true(s.struct_size == sizeof s && s.a == 1 && s.b == 2 && s.p == &longer);
	longer.more[5] = 1;
	assert_int_equal(lade__options_read(&s, sizeof s, &longer, "small", &err), LADE_E_ARG);
	assert_string_equal(err.message,
	                    "small: struct_size is 40, this library's is 24, and byte 29 is not "
	                    "zero: this version has no such field");
	longer.s.struct_size = 12;
	assert_int_equal(lade__options_read(&s, sizeof s, &longer, "small", &err), LADE_OK);
	assert_true(s.struct_size == sizeof s && s.a == 1 && !s.b && !s.p);
	static const size_t bad[] = {0, 1, 7, 4097, SIZE_MAX};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		longer.s.struct_size = bad[i];
		assert_int_equal(lade__options_read(&s, sizeof s, &longer, "small", &err),
		                 LADE_E_ARG);
		assert_non_null(strstr(err.message, "small: struct_size is "));
	}
}

/* Nothing beyond the size is read: it ends at a page that cannot be. */
static void test_reads_no_further(void **state)
{
	(void)state;
	guard g = guard_new(16, 1);
	size_t size = 16;
	small s;
	memset(g.data, 0, 16);
	memcpy(g.data, &size, sizeof size);
	assert_int_equal(lade__options_read(&s, sizeof s, g.data, "small", NULL), LADE_OK);
	guard_free(&g);
}

/* ---- arrays ---------------------------------------------------------------------------- */

enum { COUNT = 5, SIZE = 1000, CAP = 2000, MORE = 24 };

/* Structs as a later version may have them. */
typedef struct later_item {
	lade_item item;
	unsigned char more[MORE];
} later_item;
typedef struct later_segment {
	lade_segment segment;
	unsigned char more[MORE];
} later_segment;
typedef struct later_result {
	lade_result result;
	unsigned char more[MORE];
} later_result;
typedef struct later_candidate {
	lade_candidate candidate;
	unsigned char more[MORE];
} later_candidate;

static size_t allocs, frees;
static bool none_left;

static void *counting_alloc(void *ctx, size_t size, size_t align, lade_place place,
                            lade_stream stream)
{
	const lade_allocator *host = lade_allocator_default(LADE_HOST);
	(void)ctx;
	void *p = none_left ? NULL : host->alloc(host->ctx, size, align, place, stream);
	allocs += p != NULL;
	return p;
}

static void counting_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                          lade_stream stream)
{
	const lade_allocator *host = lade_allocator_default(LADE_HOST);
	(void)ctx;
	frees++;
	host->free(host->ctx, ptr, size, align, place, stream);
}

static const lade_allocator counting = {NULL, counting_alloc, counting_free};

typedef struct later {
	lade_engine *engine;
	lade_spec *spec;
	uint8_t raw[COUNT][SIZE], encoded[COUNT][CAP], back[COUNT][SIZE];
	later_item items[COUNT];
	later_segment segments[2 * COUNT];
	later_result results[COUNT];
	lade_batch_options options;
	lade_error err;
} later;

/* Items of one or two segments each, in turns. */
static later *later_new(void)
{
	later *l = calloc(1, sizeof *l);
	lade_engine_options o = {.struct_size = sizeof o, .threads = 2};
	assert_non_null(l);
	o.allocators[LADE_HOST] = &counting;
	assert_int_equal(lade_engine_new(&o, &l->engine, NULL), LADE_OK);
	assert_int_equal(lade_spec_parse(NULL, "zstd|crc32c", &l->spec, NULL), LADE_OK);
	rng r = {7};
	for (size_t i = 0; i < COUNT; i++) {
		for (size_t k = 0; k < SIZE; k++)
			l->raw[i][k] = (uint8_t)rng_below(&r, 5);
		size_t first = i % 2 ? SIZE / 3 : SIZE;
		l->segments[2 * i].segment = (lade_segment){.data = l->raw[i], .size = first};
		l->segments[2 * i + 1].segment =
			(lade_segment){.data = l->raw[i] + first, .size = SIZE - first};
		l->items[i].item =
			(lade_item){.src = &l->segments[2 * i].segment,
		                    .src_count = 1 + i % 2,
		                    .dst = lade_host_span(l->encoded[i], CAP)};
	}
	l->options = (lade_batch_options){.struct_size = sizeof l->options,
	                                  .item_size = sizeof(later_item),
	                                  .segment_size = sizeof(later_segment),
	                                  .result_size = sizeof(later_result),
	                                  .candidate_size = sizeof(later_candidate)};
	return l;
}

static void later_free(later *l)
{
	lade_spec_unref(l->spec);
	lade_engine_free(l->engine);
	free(l);
	assert_int_equal(allocs, frees);
}

static lade_status later_encode(later *l)
{
	memset(l->results, 0x5A, sizeof l->results);
	return lade_encode_into(l->engine, l->spec, &l->items[0].item, COUNT,
	                        &l->results[0].result, &l->options, &l->err);
}

static void test_later_structs(void **state)
{
	(void)state;
	later *l = later_new();
	assert_int_equal(later_encode(l), LADE_OK);
	for (size_t i = 0; i < COUNT; i++) {
		assert_true(l->results[i].result.status == LADE_OK && l->results[i].result.size);
		for (size_t k = 0; k < MORE; k++)
			assert_int_equal(l->results[i].more[k], 0);
		l->segments[2 * i].segment = (lade_segment){.data = l->encoded[i],
		                                            .size = l->results[i].result.size};
		l->items[i].item.src_count = 1;
		l->items[i].item.dst = lade_host_span(l->back[i], SIZE);
	}
	assert_int_equal(lade_decoded_sizes(l->engine, l->spec, &l->items[0].item, COUNT,
	                                    &l->results[0].result, &l->options, &l->err),
	                 LADE_OK);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(l->results[i].result.size, SIZE);
	assert_int_equal(lade_decode_into(l->engine, l->spec, &l->items[0].item, COUNT,
	                                  &l->results[0].result, &l->options, &l->err),
	                 LADE_OK);
	assert_memory_equal(l->back, l->raw, sizeof l->raw);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(l->results[i].result.size, SIZE);
	/* One bad item is told at its place. */
	l->encoded[3][10] ^= 0xFF;
	assert_int_not_equal(lade_decode_into(l->engine, l->spec, &l->items[0].item, COUNT,
	                                      &l->results[0].result, &l->options, &l->err),
	                     LADE_OK);
	assert_non_null(strstr(l->err.message, "item 3: "));
	for (size_t i = 0; i < COUNT; i++)
		assert_true((l->results[i].result.status != LADE_OK) == (i == 3));
	later_free(l);
}

static void test_later_candidates(void **state)
{
	(void)state;
	later *l = later_new();
	later_candidate list[16];
	lade_candidate own[16];
	size_t count, same;
	lade_call call = {.struct_size = sizeof call, .direction = LADE_ENCODE, .spec = l->spec,
	                  .items = &l->items[0].item, .count = COUNT, .options = &l->options};
	memset(list, 0x5A, sizeof list);
	assert_int_equal(
		lade_explain(l->engine, &call, &list[0].candidate, 16, &count, &l->err), LADE_OK);
	l->options.candidate_size = 0;
	assert_int_equal(lade_explain(l->engine, &call, own, 16, &same, &l->err), LADE_OK);
	assert_true(count == same && count >= 2 && count < 16);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(list[i].candidate.implementation, own[i].implementation);
		assert_true(list[i].candidate.stage == own[i].stage && !list[i].more[0] &&
		            !list[i].more[MORE - 1]);
	}
	assert_int_equal(list[count].more[0], 0x5A);
	l->options.candidate_size = sizeof(later_candidate);
	assert_int_equal(lade_explain(l->engine, &call, &list[0].candidate, 1, &same, &l->err),
	                 LADE_E_NOSPACE);
	assert_int_equal(same, count);
	assert_int_equal(lade_explain(l->engine, NULL, own, 16, &same, &l->err), LADE_E_ARG);
	later_free(l);
}

static void test_what_later_asks_for(void **state)
{
	(void)state;
	later *l = later_new();
	char text[128];
	l->items[3].more[2] = 1;
	assert_int_equal(later_encode(l), LADE_E_ARG);
	snprintf(text, sizeof text,
	         "item 3: it has %zu bytes, this library's have %zu, and byte %zu",
	         sizeof(later_item), sizeof(lade_item), sizeof(lade_item) + 2);
	assert_non_null(strstr(l->err.message, text));
	/* Nothing was tried. */
	assert_int_equal(l->results[0].more[0], 0x5A);
	l->items[3].more[2] = 0;
	l->segments[7].more[0] = 1;
	assert_int_equal(later_encode(l), LADE_E_ARG);
	assert_non_null(strstr(l->err.message, "item 3: segment 1: it has "));
	l->segments[7].more[0] = 0;
	l->options.item_size = sizeof(lade_item) - 8;
	assert_int_equal(later_encode(l), LADE_E_ARG);
	assert_non_null(strstr(l->err.message, "item_size is "));
	l->options.item_size = sizeof(later_item);
	l->options.segment_size = SIZE_MAX;
	assert_int_equal(later_encode(l), LADE_E_ARG);
	l->options.segment_size = sizeof(later_segment);
	l->options.result_size = 1;
	assert_int_equal(later_encode(l), LADE_E_ARG);
	l->options.result_size = sizeof(later_result);
	none_left = true;
	assert_int_equal(later_encode(l), LADE_E_NOMEM);
	none_left = false;
	size_t huge = l->items[1].item.src_count;
	l->items[1].item.src_count = l->items[3].item.src_count = SIZE_MAX / 2 + 1;
	assert_int_equal(later_encode(l), LADE_E_NOMEM);
	l->items[1].item.src_count = l->items[3].item.src_count = huge;
	assert_int_equal(later_encode(l), LADE_OK);
	later_free(l);
}

/* The structs of these headers are taken as they are. */
static void test_no_copies(void **state)
{
	(void)state;
	later *l = later_new();
	static uint8_t to[SIZE];
	lade_segment segment = {.data = l->raw[0], .size = SIZE};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(to, SIZE)};
	lade_batch_options options;
	lade_spec *copy;
	assert_int_equal(lade_spec_parse(NULL, "copy", &copy, NULL), LADE_OK);
	lade_batch_options_init(&options);
	size_t before = allocs;
	assert_int_equal(lade_encode_into(l->engine, copy, &item, 1, NULL, &options, NULL),
	                 LADE_OK);
	assert_int_equal(allocs, before);
	lade_spec_unref(copy);
	later_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_reads_no_further),
		cmocka_unit_test(test_later_structs),
		cmocka_unit_test(test_later_candidates),
		cmocka_unit_test(test_what_later_asks_for),
		cmocka_unit_test(test_no_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
