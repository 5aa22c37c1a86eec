/*
 * test_decode_new.c: items of known and of unknown size, whole and broken, into memory that the
 * call takes, in every place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

#include <stdatomic.h>

enum { COUNT = 12, LARGEST = 60000 };

static lade_engine *engine;
/* lz4 and deflate do not tell their size, the others do. */
static const char *const texts[] = {"lz4", "deflate", "zstd", "snappy", "shuffle(4)|lz4|crc32c"};
#define TEXTS (sizeof texts / sizeof *texts)
static lade_spec *specs[TEXTS];

static int begin(void **state)
{
	(void)state;
	OK(lade_engine_new(NULL, &engine, err));
	for (size_t i = 0; i < TEXTS; i++)
		specs[i] = spec_of(engine, texts[i]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < TEXTS; i++)
		lade_spec_unref(specs[i]);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

typedef struct one {
	uint8_t plain[LARGEST], bytes[LARGEST + 2000];
	size_t size, bytes_size;
	size_t off, count; /* what is asked for */
	lade_status want;
	buffer src;
} one;

/* Some are of one byte, which few bytes encode: they have to grow. */
static void make_one(one *o, const lade_spec *spec, lade_bare kind, rng *r)
{
	static uint8_t back[LARGEST];
	lade_bare_options options = {.struct_size = sizeof options, .spec = spec, .kind = kind};
	size_t got;

	o->size = rng_below(r, rng_below(r, 3) ? 2000 : LARGEST + 1);
	if (rng_below(r, 3))
		memset(o->plain, 5, o->size);
	else
		fill(r, o->plain, o->size);
	OK(lade_bare_encode(engine, lade_host_cspan(o->plain, o->size),
	                    lade_host_span(o->bytes, sizeof o->bytes), &o->bytes_size, &options,
	                    err));
	if (rng_below(r, 6) == 0)
		o->bytes_size = rng_below(r, o->bytes_size + 1);
	else if (rng_below(r, 6) == 0)
		o->bytes[rng_below(r, o->bytes_size)] ^= (uint8_t)(1 + rng_below(r, 255));
	o->want = lade_bare_decode(engine, lade_host_cspan(o->bytes, o->bytes_size),
	                           lade_host_span(back, LARGEST), &got, &options, NULL);
	if (o->want == LADE_OK) {
		o->size = got;
		memcpy(o->plain, back, got);
	}
	o->off = 0;
	o->count = o->size;
}

/* Part of what is whole, sometimes more than there is. */
static void make_range(one *o, lade_item *item, rng *r)
{
	if (o->want || rng_below(r, 3))
		return;
	item->range_off = o->off = rng_below(r, o->size + 1);
	o->count = o->size - o->off;
	if (rng_below(r, 2))
		item->range_size = o->count = rng_below(r, o->count + 1);
	if (!item->range_size)
		o->count = o->size - o->off;
	if (rng_below(r, 8) == 0) {
		item->range_size = o->size - o->off + 1;
		o->want = LADE_E_RANGE;
	}
}

static void check_result(const one *o, lade_array *array, lade_place place)
{
	uint8_t *image = malloc(o->count + 1);
	lade_span span = lade_array_span(array);

	assert_int_equal(span.size, o->count);
	assert_int_equal(span.place.kind, place.kind);
	OK(lade_copy(engine, (lade_cspan){span.data, span.size, span.place},
	             lade_host_span(image, o->count), NULL, err));
	assert_memory_equal(image, o->plain + o->off, o->count);
	free(image);
}

static void rounds(void **state)
{
	(void)state;
	static one all[COUNT];
	rng r = {.s = 31};
	for (uint64_t turn = 0; turn < (emu ? 60u : 200u); turn++) {
		lade_error errors[COUNT], first = {.status = LADE_OK};
		lade_batch_options batch = {.struct_size = sizeof batch,
		                            .item_errors = turn % 3 ? errors : NULL};
		lade_decode_new_options options = {.struct_size = sizeof options,
		                                   .kind = (lade_bare)rng_below(&r, 4),
		                                   .batch = &batch, .place = any_place(&r)};
		const lade_spec *spec = options.spec = specs[rng_below(&r, TEXTS)];
		size_t count = rng_below(&r, 4) ? 1 + rng_below(&r, COUNT) : 1, bad = SIZE_MAX;
		lade_segment segments[COUNT];
		lade_item items[COUNT];
		lade_array *arrays[COUNT];
		kit_round(turn, rng_next(&r));
		for (size_t i = 0; i < count; i++) {
			const lade_spec *own = specs[rng_below(&r, TEXTS)];
			own = rng_below(&r, 3) ? NULL : own;
			make_one(&all[i], own ? own : spec, options.kind, &r);
			all[i].src = buffer_new(any_place(&r), all[i].bytes_size, 0);
			buffer_put(&all[i].src, all[i].bytes, all[i].bytes_size);
			segments[i] = (lade_segment){all[i].src.data, all[i].bytes_size,
			                             all[i].src.place, 0};
			items[i] = (lade_item){.spec = own, .src = &segments[i], .src_count = 1};
			make_range(&all[i], &items[i], &r);
			bad = all[i].want && bad == SIZE_MAX ? i : bad;
		}
		lade_status status =
			lade_decode_new(engine, items, count, arrays, &options, &first);
		/* What is broken may want more than any room that was given above. */
		assert_int_equal(status != LADE_OK, bad != SIZE_MAX);
		if (bad != SIZE_MAX) {
			char name[32];
			snprintf(name, sizeof name, "item %zu: ", bad);
			assert_memory_equal(first.message, name, strlen(name));
			if (batch.item_errors)
				assert_string_equal(first.message + strlen(name),
				                    errors[bad].message);
		}
		for (size_t i = count; i-- > 0;) {
			if (all[i].want)
				assert_null(arrays[i]);
			else
				check_result(&all[i], arrays[i], options.place);
			lade_array_unref(arrays[i]);
			buffer_free(&all[i].src);
		}
	}
}

/* ---- limits and memory ------------------------------------------------------------------ */

static atomic_size_t live, most, left;

static void *meter_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream s)
{
	void *ptr = NULL;
	(void)ctx, (void)place, (void)s;
	most = size > most ? size : most;
	if (!left || posix_memalign(&ptr, align, size))
		return NULL;
	left--;
	live += size;
	return ptr;
}

static void meter_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                       lade_stream s)
{
	(void)ctx, (void)align, (void)place, (void)s;
	live -= size;
	free(ptr);
}

static void limits(void **state)
{
	(void)state;
	static uint8_t plain[1 << 20], bytes[1 << 16];
	static const lade_allocator meter = {NULL, meter_alloc, meter_free};
	lade_array_options array = {.struct_size = sizeof array, .allocator = &meter};
	lade_decode_new_options options = {.struct_size = sizeof options, .spec = specs[0],
	                                   .array = &array};
	lade_segment segments[3];
	lade_item items[3];
	lade_array *arrays[3];
	size_t size;

	if (emu)
		emu->protect = 0;
	left = SIZE_MAX;
	OK(lade_encode(engine, specs[0], lade_host_cspan(plain, sizeof plain),
	               lade_host_span(bytes, sizeof bytes), &size, err));
	for (size_t i = 0; i < 3; i++) {
		segments[i] = (lade_segment){.data = bytes, .size = i == 1 ? 0 : size};
		items[i] = (lade_item){.src = &segments[i], .src_count = 1};
	}
	/* An empty block is broken, and the others grow to what they need. */
	FAILS(LADE_E_TRUNCATED, "item 1: ",
	      lade_decode_new(engine, items, 3, arrays, &options, err));
	assert_null(arrays[1]);
	assert_int_equal(lade_array_span(arrays[2]).size, sizeof plain);
	/* Both have had to grow, in one round: they are slices of one block. */
	assert_ptr_equal(lade_array_whole(arrays[0]), lade_array_whole(arrays[2]));
	assert_ptr_not_equal(lade_array_whole(arrays[0]), arrays[0]);
	lade_array_unref(arrays[0]);
	assert_true(live > 0);
	lade_array_unref(arrays[2]);
	assert_int_equal(live, 0);
	/* Not above the limit, and no more memory than that. */
	options.largest = sizeof plain - 1;
	most = 0;
	FAILS(LADE_E_LIMIT, "item 0: it decodes to more than 1048575 bytes",
	      lade_decode_new(engine, items, 1, arrays, &options, err));
	assert_in_range(most, 1, sizeof plain);
	options.largest = sizeof plain;
	OK(lade_decode_new(engine, items, 1, arrays, &options, err));
	lade_array_unref(arrays[0]);
	/* The block for all cannot be had: each has its own, as long as there is some. */
	static const uint8_t few[] = {0x50, 1, 2, 3, 4, 5};
	for (size_t i = 0; i < 3; i++)
		segments[i] = (lade_segment){.data = few, .size = sizeof few};
	for (size_t n = 0; n < 4; n++) {
		left = n;
		lade_status status =
			lade_decode_new(engine, items, 3, arrays, &options, NULL);
		assert_int_equal(status, n ? LADE_OK : LADE_E_NOMEM);
		for (size_t i = 0; i < 3; i++)
			lade_array_unref(arrays[i]);
		assert_int_equal(live, 0);
	}
	left = SIZE_MAX;
	/* A claim that nothing can be behind takes no memory. */
	static const uint8_t claim[] = {0xff, 0xff, 0xff, 0x7f, 0x10, 'a'};
	segments[0] = (lade_segment){.data = claim, .size = sizeof claim};
	options.kind = LADE_BARE_WITH_SIZE;
	options.largest = 0;
	most = 0;
	FAILS(LADE_E_CORRUPT, "the data states 2147483647 bytes",
	      lade_decode_new(engine, items, 1, arrays, &options, err));
	assert_in_range(most, 0, 8192);
	/* The same of raw bytes, whose format tells: no room would do. */
	static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0,
	                                0,    0,    0,    0,    0x20, 1, 0, 0};
	segments[0] = (lade_segment){.data = frame, .size = sizeof frame};
	options.kind = LADE_BARE_RAW;
	options.spec = specs[2];
	FAILS(LADE_E_CORRUPT, "the data states 2305843009213693952 bytes, and 16 bytes of zstd ",
	      lade_decode_new(engine, items, 1, arrays, &options, err));
	assert_in_range(most, 0, 64 << 20);
	/* Not for these. */
	items[0].tail = specs[0];
	FAILS(LADE_E_ARG, "tails",
	      lade_decode_new(engine, items, 1, arrays, &options, err));
	FAILS(LADE_E_ARG, "arrays is NULL",
	      lade_decode_new(engine, items, 1, NULL, &options, err));
	OK(lade_decode_new(engine, NULL, 0, NULL, NULL, err));
	options.kind = (lade_bare)9;
	items[0].tail = NULL;
	FAILS(LADE_E_ARG, "kind 9",
	      lade_decode_new(engine, items, 1, arrays, &options, err));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rounds, begin, end),
		cmocka_unit_test_setup_teardown(limits, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
