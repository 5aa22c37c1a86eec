/*
 * test_batch_large.c: batches whose first items are on their way before the last are looked at:
 * what comes later may be of another kind, larger, bad, or more than the device has memory for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

/* ---- an allocator that fails on command ------------------------------------------ */

static int allocations, fail_from; /* of device memory */

static void *some_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	(void)ctx;
	if (fail_from && ++allocations >= fail_from)
		return NULL;
	return a->alloc(a->ctx, size, align, place, stream);
}

static void some_free(void *ctx, void *p, size_t size, size_t align, lade_place place,
                      lade_stream stream)
{
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	(void)ctx;
	a->free(a->ctx, p, size, align, place, stream);
}

static const lade_allocator some = {NULL, some_alloc, some_free};

static lade_engine *engine;
static lade_spec *lz4, *snappy, *lz4f;

static int begin(void **state)
{
	(void)state;
	lade_engine_options o = {.struct_size = sizeof o, .threads = 2};
	o.allocators[LADE_DEVICE] = &some;
	OK(lade_engine_new(&o, &engine, err));
	lz4 = spec_of(engine, "lz4");
	snappy = spec_of(engine, "snappy");
	lz4f = spec_of(engine, "lz4f");
	if (emu) {
		emu->seed = EMULATED_LAZY;
		emu->protect = 0;
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_spec_unref(lz4);
	lade_spec_unref(snappy);
	lade_spec_unref(lz4f);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

/* ---- a batch ------------------------------------------ */

enum { COUNT = 2600, KINDS = 11 };

/* Kinds of items: small and alike; and some that come later. */
enum {
	ALIKE,
	BAD,
	SNAPPY,
	LZ4F,
	TO_HOST,
	FROM_HOST,
	RANGE,
	EMPTY_RANGE,
	TWO_UNTOLD,
	LARGE,
	LONG
};

/* What an item is to do; the same for all of a kind. */
typedef struct kind {
	chunk chunk;
	const lade_spec *spec;
	lade_segment host[2], segment[2];
	buffer src;
	size_t segments, room;
	uint64_t range_off, range_size;
	lade_place to;
} kind;

static void kind_make(kind *k, int which)
{
	rng r = {.s = 31 + (uint64_t)which};
	size_t size = 60;
	lade_place near = {LADE_DEVICE, 0};
	*k = (kind){.spec = which == SNAPPY    ? snappy
	                    : which == LZ4F ? lz4f
	                                       : lz4,
	            .segments = which == TWO_UNTOLD ? 2 : 1,
	            .to = which == TO_HOST ? LADE_PLACE_HOST : near};
	k->chunk = chunk_of(engine, k->spec, NULL, &r, size);
	size_t coded = k->chunk.encoded_size;
	if (which == BAD)
		k->chunk.encoded[coded - 1] ^= 0x80, coded -= 2;
	k->src = buffer_new(which == FROM_HOST ? LADE_PLACE_HOST : (lade_place){LADE_PINNED, 0},
	                    coded, 3);
	buffer_put(&k->src, k->chunk.encoded, coded);
	if (which == LONG) {
		/* Bad at once, and much to bring: there are several waves. */
		buffer_free(&k->src);
		coded = 8000;
		k->src = buffer_new((lade_place){LADE_PINNED, 0}, coded, 3);
		k->chunk.encoded = realloc(k->chunk.encoded, coded);
		memset(k->chunk.encoded, 0, coded);
		buffer_put(&k->src, k->chunk.encoded, coded);
	}
	/* The one of a large wave claims much more than it has. */
	size_t tells = which == RANGE || which == EMPTY_RANGE ? size
	               : which == LARGE                       ? (size_t)2 << 20
	                                                      : 0;
	for (int i = 0; i < 2; i++) {
		k->segment[i] = (lade_segment){k->src.data, coded, k->src.place, tells};
		k->host[i] =
			(lade_segment){k->chunk.encoded, coded, LADE_PLACE_HOST, tells ? size : 0};
	}
	k->room = which == TWO_UNTOLD ? 2 * size : size;
	if (which == RANGE || which == LARGE) {
		k->range_off = 7;
		k->range_size = 31;
	}
	if (which == EMPTY_RANGE)
		k->range_off = size;
}

static int kind_of(size_t i, bool large)
{
	if (i < 1500 && i != 1100)
		return i % 3 ? ALIKE : LONG;
	if (i % 9 == 0)
		return i / 9 % 4 ? ALIKE : BAD;
	int which = (int)(i % KINDS);
	return which == LARGE && (!large || i % 7) ? ALIKE : which;
}

/* Runs COUNT items into 'out', from which each has a place of its own, and compares. */
static void run(kind *kinds, lade_where where, bool large, bool memory)
{
	lade_item *item = calloc(COUNT, sizeof *item);
	lade_result *result = calloc(COUNT, sizeof *result);
	lade_error *error = calloc(COUNT, sizeof *error);
	size_t *at = calloc(COUNT, sizeof *at), size[2] = {64, 64};
	for (size_t i = 0; i < COUNT; i++) {
		const kind *k = &kinds[kind_of(i, large)];
		at[i] = size[k->to.kind == LADE_HOST];
		size[k->to.kind == LADE_HOST] += k->room + 5;
	}
	buffer out[2] = {buffer_new((lade_place){LADE_DEVICE, 0}, size[0], 0),
	                 buffer_new(LADE_PLACE_HOST, size[1], 0)};
	for (size_t i = 0; i < COUNT; i++) {
		const kind *k = &kinds[kind_of(i, large)];
		item[i] = (lade_item){
			.spec = k->spec,
			.src = k->segment,
			.src_count = k->segments,
			.dst = {out[k->to.kind == LADE_HOST].data + at[i], k->room, k->to},
			.range_off = k->range_off,
			.range_size = k->range_size};
	}
	lade_batch_options o = {.struct_size = sizeof o, .where = where, .item_errors = error};
	lade_error err = {.message = ""};
	allocations = 0;
	lade_status status = lade_decode_into(engine, NULL, item, COUNT, result, &o, &err);
	uint8_t *image[2] = {malloc(size[0]), malloc(size[1])};
	for (int i = 0; i < 2; i++)
		buffer_get(&out[i], image[i], size[i]);
	size_t bad = COUNT;
	for (size_t i = 0; i < COUNT; i++) {
		int which = kind_of(i, large);
		const kind *k = &kinds[which];
		uint8_t want[200];
		lade_item host = item[i];
		lade_result expected = {0};
		lade_batch_options h = {.struct_size = sizeof h, .flags = LADE_BATCH_STRICT};
		host.src = k->host;
		host.dst = lade_host_span(want, k->room);
		lade_decode_into(engine, NULL, &host, 1, &expected, &h, NULL);
		if (where == LADE_WHERE_DEVICE && (which == LZ4F || which == TWO_UNTOLD))
			expected = (lade_result){LADE_E_UNSUPPORTED, 0};
		/* The host stops where the range ends (docs/verdicts.md). */
		if (which == LARGE && result[i].status == LADE_E_CORRUPT)
			expected = (lade_result){LADE_E_CORRUPT, 0};
		/* Where a device has no memory for one group, those of others may still go. */
		if (!memory && result[i].status == LADE_E_NOMEM)
			expected = result[i];
		if (result[i].status != expected.status)
			print_error("item %zu of kind %d: %s: %s\n", i, which,
			            lade_status_name(result[i].status), error[i].message);
		assert_int_equal(result[i].status, expected.status);
		assert_int_equal(result[i].size, expected.size);
		assert_memory_equal(image[k->to.kind == LADE_HOST] + at[i], want, expected.size);
		if (expected.status != LADE_OK) {
			bad = bad < i ? bad : i;
			assert_int_equal(error[i].status, expected.status);
		}
	}
	assert_int_equal(status, result[bad].status);
	char begins[32];
	snprintf(begins, sizeof begins, "item %zu: ", bad);
	assert_ptr_equal(strstr(err.message, begins), err.message);
	for (int i = 0; i < 2; i++) {
		free(image[i]);
		buffer_free(&out[i]);
	}
	free(item);
	free(result);
	free(error);
	free(at);
}

static void kinds_that_come_later(void **state)
{
	(void)state;
	kind kinds[KINDS];
	for (int i = 0; i < KINDS; i++)
		kind_make(&kinds[i], i);
	fail_from = 0;
	run(kinds, LADE_WHERE_DEVICE, true, true);
	run(kinds, LADE_WHERE_AUTO, false, true);
	if (emu)
		emu->seed = 4711;
	run(kinds, LADE_WHERE_DEVICE, false, true);
	/* Memory for the first wave, and none for what comes: the host does what may be its. */
	fail_from = 2;
	run(kinds, LADE_WHERE_AUTO, true, true);
	run(kinds, LADE_WHERE_DEVICE, true, false);
	fail_from = 1;
	run(kinds, LADE_WHERE_AUTO, true, true);
	fail_from = 0;
	for (int i = 0; i < KINDS; i++) {
		chunk_free(&kinds[i].chunk);
		buffer_free(&kinds[i].src);
	}
}

/* An item that claims a size no kernel takes costs its neighbours nothing, wherever it stands. */
static void a_huge_claim_among_small(void **state)
{
	(void)state;
	enum { ITEMS = 1500, SIZE = 64 };
	static const size_t claims[] = {(size_t)1 << 31, (size_t)1 << 50, (size_t)1 << 60};
	static lade_segment segment[ITEMS];
	static lade_item item[ITEMS];
	static lade_result result[ITEMS];
	uint8_t plain[SIZE] = {1, 2, 3}, coded[256];
	size_t size, bad;
	lade_spec *spec = spec_of(engine, "lz4");
	OK(lade_encode(engine, spec, lade_host_cspan(plain, SIZE),
	               lade_host_span(coded, sizeof coded), &size, err));
	lade_place on = {LADE_DEVICE, 0};
	buffer src = buffer_new(on, size, 0), dst = buffer_new(on, (size_t)ITEMS * SIZE, 0);
	buffer_put(&src, coded, size);
	for (size_t k = 0; k < 6; k++) {
		bad = k % 2 ? 1400 : 500;
		for (size_t i = 0; i < ITEMS; i++) {
			segment[i] = (lade_segment){.data = src.data, .size = size, .place = on};
			item[i] = (lade_item){.src = &segment[i],
			                      .src_count = 1,
			                      .dst = {dst.data + i * SIZE, SIZE, on}};
		}
		segment[bad].decoded_size = claims[k / 2];
		item[bad].range_off = 1;
		item[bad].range_size = 10;
		lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
		assert_int_not_equal(lade_decode_into(engine, spec, item, ITEMS, result, &o, NULL),
		                     LADE_OK);
		for (size_t i = 0; i < ITEMS; i++)
			assert_int_equal(result[i].status, i == bad ? LADE_E_LIMIT : LADE_OK);
	}
	buffer_free(&src);
	buffer_free(&dst);
	lade_spec_unref(spec);
}

/* A chunk of 16 MiB and a byte, in just the room and in one byte less. */
static void sixteen_mebibytes(void **state)
{
	(void)state;
	enum { SIZE = (16 << 20) + 1 };
	/* Snappy's copies are of 64 bytes, which takes the emulated warp minutes. */
	const lade_spec *specs[] = {lz4, snappy};
	lade_place on = {LADE_DEVICE, 0};
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	uint8_t *plain = calloc(1, SIZE), *got = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i += 50000)
		plain[i] = (uint8_t)(i >> 9);
	buffer dst = buffer_new(on, SIZE, 1);
	for (int k = 0; k < (emu ? 1 : 2); k++) {
		size_t room = (size_t)2 << 20, size;
		uint8_t *coded = malloc(room);
		OK(lade_encode(engine, specs[k], lade_host_cspan(plain, SIZE),
		               lade_host_span(coded, room), &size, err));
		lade_segment segment = {.data = coded, .size = size};
		lade_item item = {.src = &segment,
		                  .src_count = 1,
		                  .dst = {dst.data, SIZE - 1, on}};
		lade_result result;
		assert_int_equal(lade_decode_into(engine, specs[k], &item, 1, &result, &o, NULL),
		                 LADE_E_NOSPACE);
		item.dst.size = SIZE;
		OK(lade_decode_into(engine, specs[k], &item, 1, &result, &o, err));
		assert_int_equal(result.size, SIZE);
		buffer_get(&dst, got, SIZE);
		assert_memory_equal(got, plain, SIZE);
		free(coded);
	}
	buffer_free(&dst);
	free(plain);
	free(got);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kinds_that_come_later, begin, end),
		cmocka_unit_test_setup_teardown(a_huge_claim_among_small, begin, end),
		cmocka_unit_test_setup_teardown(sixteen_mebibytes, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
