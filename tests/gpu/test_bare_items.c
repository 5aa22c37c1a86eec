/*
 * test_bare_items.c: bare bytes of many items in memory of every place: each item is what the call
 * for one buffer makes of it, whatever its neighbours are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

enum { COUNT = 24, LARGEST = 3000 };

static lade_engine *engine;
static const char *const texts[] = {"lz4", "snappy", "zstd", "copy", "shuffle(4)|lz4"};
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
	uint8_t plain[LARGEST], bytes[2 * LARGEST + 64];
	size_t size, bytes_size, cap;
	lade_status want;
	buffer src, dst;
} one;

/* Data of one item, whole or broken, and what the call for one buffer says of it. */
static void make_one(one *o, const lade_spec *spec, lade_bare kind, rng *r)
{
	static uint8_t back[LARGEST];
	lade_bare_options options = {.struct_size = sizeof options, .spec = spec, .kind = kind};
	size_t got;

	o->size = rng_below(r, LARGEST + 1);
	fill(r, o->plain, o->size);
	OK(lade_bare_encode(engine, lade_host_cspan(o->plain, o->size),
	                    lade_host_span(o->bytes, sizeof o->bytes), &o->bytes_size, &options,
	                    err));
	o->cap = o->size + (rng_below(r, 2) ? rng_below(r, 9) : 0);
	switch (rng_below(r, 8)) {
	case 0: o->bytes_size = rng_below(r, 18) % (o->bytes_size + 1); break;
	case 1: o->bytes[rng_below(r, 17)] ^= (uint8_t)(1 + rng_below(r, 255)); break;
	case 2: o->cap = rng_below(r, o->cap + 1); break;
	}
	o->want = lade_bare_decode(engine, lade_host_cspan(o->bytes, o->bytes_size),
	                           lade_host_span(back, o->cap), &got, &options, NULL);
	if (o->want == LADE_OK) {
		o->size = got;
		memcpy(o->plain, back, got);
	}
}

static void check_round(rng *r)
{
	static one all[COUNT];
	const lade_spec *spec = specs[rng_below(r, TEXTS)];
	lade_bare kind = (lade_bare)(1 + rng_below(r, 3));
	size_t count = 1 + rng_below(r, COUNT);
	lade_segment segments[COUNT];
	lade_item items[COUNT];
	lade_result results[COUNT];
	lade_error errors[COUNT];
	lade_batch_options batch = {.struct_size = sizeof batch, .item_errors = errors};
	lade_bare_options options = {.struct_size = sizeof options, .spec = spec, .kind = kind,
	                             .batch = &batch};
	lade_error err = {.status = LADE_OK};
	size_t first = SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		one *o = &all[i];
		const lade_spec *own = rng_below(r, 4) ? NULL : specs[rng_below(r, TEXTS)];
		make_one(o, own ? own : spec, kind, r);
		o->src = buffer_new(any_place(r), o->bytes_size, 0);
		o->dst = buffer_new(any_place(r), o->cap, 0);
		buffer_put(&o->src, o->bytes, o->bytes_size);
		segments[i] = (lade_segment){o->src.data, o->bytes_size, o->src.place, 0};
		items[i] = (lade_item){.spec = own, .src = &segments[i], .src_count = 1,
		                       .dst = buffer_span(&o->dst)};
		first = o->want && first == SIZE_MAX ? i : first;
	}
	lade_status status = lade_bare_decode_into(
		engine, items, count, rng_below(r, 4) ? results : NULL, &options, &err);
	assert_int_equal(status, first == SIZE_MAX ? LADE_OK : all[first].want);
	if (status) {
		char name[32];
		snprintf(name, sizeof name, "item %zu: ", first);
		if (strncmp(err.message, name, strlen(name)))
			fail_msg("%s: %s", name, err.message);
		assert_string_equal(err.message + strlen(name), errors[first].message);
	}
	status = lade_bare_decode_into(engine, items, count, results, &options, NULL);
	for (size_t i = 0; i < count; i++) {
		uint8_t *image = malloc(all[i].cap + 1);
		assert_int_equal(results[i].status, all[i].want);
		assert_int_equal(results[i].size, all[i].want ? 0 : all[i].size);
		buffer_get(&all[i].dst, image, all[i].cap);
		if (!all[i].want)
			assert_memory_equal(image, all[i].plain, all[i].size);
		else
			assert_int_equal(errors[i].status, all[i].want);
		free(image);
	}
	/* What the items claim. */
	lade_bare_decoded_sizes(engine, items, count, results, &options, NULL);
	for (size_t i = 0; i < count; i++)
		if (!all[i].want && kind != LADE_BARE_RAW) {
			assert_int_equal(results[i].status, LADE_OK);
			assert_int_equal(results[i].size, all[i].size);
		}
	for (size_t i = 0; i < count; i++) {
		buffer_free(&all[i].src);
		buffer_free(&all[i].dst);
	}
}

static void decoding(void **state)
{
	(void)state;
	rng r = {.s = 21};
	for (uint64_t i = 0; i < (emu ? 150 : 400); i++) {
		kit_round(i, rng_next(&r));
		check_round(&r);
	}
}

/* Encoded bytes decode to what they were, and are those of one buffer where the host wrote them. */
static void encoding(void **state)
{
	(void)state;
	static one all[COUNT];
	rng r = {.s = 22};
	for (uint64_t turn = 0; turn < (emu ? 80u : 200u); turn++) {
		const lade_spec *spec = specs[rng_below(&r, TEXTS)];
		lade_bare kind = (lade_bare)(1 + rng_below(&r, 3));
		lade_bare_options options = {.struct_size = sizeof options, .spec = spec,
		                             .kind = kind};
		lade_segment segments[COUNT];
		lade_item items[COUNT];
		lade_result results[COUNT];
		bool small = rng_below(&r, 4) == 0;
		kit_round(turn, rng_next(&r));
		for (size_t i = 0; i < COUNT; i++) {
			one *o = &all[i];
			o->size = rng_below(&r, LARGEST + 1);
			o->cap = lade_spec_bound(spec, o->size) + 16;
			if (small && i % 5 == 3)
				o->cap = rng_below(&r, 16);
			fill(&r, o->plain, o->size);
			o->src = buffer_new(any_place(&r), o->size, 0);
			o->dst = buffer_new(any_place(&r), o->cap, 0);
			buffer_put(&o->src, o->plain, o->size);
			segments[i] = (lade_segment){o->src.data, o->size, o->src.place, 0};
			items[i] = (lade_item){.src = &segments[i], .src_count = 1,
			                       .dst = buffer_span(&o->dst)};
		}
		lade_bare_encode_into(engine, items, COUNT, results, &options, NULL);
		for (size_t i = 0; i < COUNT; i++) {
			one *o = &all[i];
			uint8_t *image = malloc(o->cap + 1), back[LARGEST];
			size_t got;
			buffer_get(&o->dst, image, o->cap);
			if (results[i].status) {
				assert_int_equal(results[i].status, LADE_E_NOSPACE);
				assert_in_range(o->cap, 0, 15);
			} else {
				OK(lade_bare_decode(engine, lade_host_cspan(image, results[i].size),
				                    lade_host_span(back, LARGEST), &got, &options,
				                    err));
				assert_int_equal(got, o->size);
				assert_memory_equal(back, o->plain, got);
			}
			free(image);
			buffer_free(&o->src);
			buffer_free(&o->dst);
		}
	}
}

/* Boxes of arrays, ranges, and items that are none. */
static void special_items(void **state)
{
	(void)state;
	static const size_t shape[2] = {4, 8};
	static const ptrdiff_t strides[2] = {32, 1};
	static const lade_layout layout = {.struct_size = sizeof layout, .elem_size = 1,
	                                   .ndim = 2, .shape = shape, .strides = strides};
	lade_bare_options options = {.struct_size = sizeof options, .spec = specs[0],
	                             .kind = LADE_BARE_WITH_SIZE};
	uint8_t plain[32], wide[128] = {0}, bytes[128], part[5];
	size_t size;

	if (emu)
		emu->protect = 0;
	for (size_t i = 0; i < 32; i++)
		plain[i] = (uint8_t)(i + 1);
	OK(lade_bare_encode(engine, lade_host_cspan(plain, 32), lade_host_span(bytes, sizeof bytes),
	                    &size, &options, err));
	lade_segment segments[2] = {{.data = bytes, .size = size}, {.data = bytes, .size = size}};
	lade_item items[4] = {
		{.src = segments, .src_count = 1, .dst = lade_host_span(wide, 128),
		 .layout = &layout},
		{.src = segments, .src_count = 1, .dst = lade_host_span(part, 5), .range_off = 7,
		 .range_size = 5},
		{.src = segments, .src_count = 2, .dst = lade_host_span(part, 5)},
		{.src = NULL, .src_count = 1},
	};
	lade_result results[4];
	lade_error why;
	assert_int_equal(lade_bare_decode_into(engine, items, 4, results, &options, &why),
	                 LADE_E_ARG);
	assert_string_equal(why.message, "item 2: 2 segments, bare bytes with their size are one");
	assert_int_equal(results[0].status, LADE_OK);
	for (size_t i = 0; i < 128; i++)
		assert_int_equal(wide[i], i % 32 < 8 ? plain[i / 32 * 8 + i % 32] : 0);
	assert_int_equal(results[1].status, LADE_OK);
	assert_memory_equal(part, plain + 7, 5);
	assert_int_equal(results[3].status, LADE_E_ARG);
	/* The box of an array as a source. */
	lade_segment segment = {.data = wide, .size = 128};
	uint8_t again[128];
	lade_item item = {.src = &segment, .src_count = 1, .layout = &layout,
	                  .dst = lade_host_span(again, 128)};
	OK(lade_bare_encode_into(engine, &item, 1, results, &options, err));
	assert_int_equal(results[0].size, size);
	assert_memory_equal(again, bytes, size);
	/* Rows that are one and the same: encoding repeats them. */
	static const ptrdiff_t same[2] = {0, 1};
	lade_layout repeated = layout;
	size_t got;
	repeated.strides = same;
	item.layout = &repeated;
	OK(lade_bare_encode_into(engine, &item, 1, results, &options, err));
	OK(lade_bare_decode(engine, lade_host_cspan(again, results[0].size),
	                    lade_host_span(bytes, 32), &got, &options, err));
	assert_int_equal(got, 32);
	for (size_t i = 0; i < 32; i++)
		assert_int_equal(bytes[i], plain[i % 8]);
	/* Calls without an item, and bad options. */
	OK(lade_bare_decode_into(engine, NULL, 0, NULL, &options, err));
	OK(lade_bare_decoded_sizes(engine, NULL, 0, NULL, &options, err));
	assert_int_equal(lade_bare_decode_into(engine, NULL, 1, NULL, &options, NULL), LADE_E_ARG);
	options.kind = (lade_bare)4;
	assert_int_equal(lade_bare_decode_into(engine, items, 1, NULL, &options, NULL), LADE_E_ARG);
	options.kind = LADE_BARE_WITH_SIZE;
	FAILS(LADE_E_ARG, "results is NULL",
	      lade_bare_decoded_sizes(engine, items, 1, NULL, &options, err));
	assert_int_equal(lade_bare_decode_into(NULL, items, 1, NULL, &options, NULL), LADE_E_ARG);
	options.spec = NULL;
	FAILS(LADE_E_ARG, "neither the call nor the item has a spec",
	      lade_bare_decode_into(engine, items, 1, NULL, &options, err));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(decoding, begin, end),
		cmocka_unit_test_setup_teardown(encoding, begin, end),
		cmocka_unit_test_setup_teardown(special_items, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
