/*
 * test_batch_checksums.c: checksums on devices: of spans anywhere, of device arrays, and as stages
 * that find what is damaged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

#include <string.h>

static lade_engine *engine;
static uint64_t seed;

#define ITEMS 7

static int begin(void **state)
{
	(void)state;
	lade_engine_options o = {.struct_size = sizeof o, .threads = 2};
	OK(lade_engine_new(&o, &engine, err));
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

static rng round_begin(uint64_t round)
{
	rng r = {.s = (seed ? seed : 0x9E3779B97F4A7C15u * (round + 1)) | 1};
	print_message("round %d: --seed %llu\n", (int)round, (unsigned long long)r.s);
	kit_round(round, r.s);
	return r;
}

static uint64_t rounds(void)
{
	return seed ? 1 : emu ? 4 : 40;
}

/* Small ones, and now and then one of several units. */
static size_t some_size(rng *r)
{
	return rng_below(r, rng_below(r, 8) ? 3000 : emu ? 40000 : 4000000);
}

/* ---- spans ---------------------------------------------------------------------------------- */

static void spans_anywhere(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < rounds(); round++) {
		rng r = round_begin(round);
		buffer b[ITEMS];
		uint8_t *plain[ITEMS];
		lade_cspan spans[ITEMS];
		for (size_t i = 0; i < ITEMS; i++) {
			size_t size = i ? some_size(&r) : 0;
			plain[i] = malloc(size + 1);
			fill(&r, plain[i], size);
			b[i] = buffer_new(any_place(&r), size, rng_below(&r, 64));
			buffer_put(&b[i], plain[i], size);
			spans[i] = (lade_cspan){b[i].data, size, b[i].place};
		}
		for (int kind = LADE_CRC32; kind <= LADE_FLETCHER32; kind++) {
			uint64_t sums[ITEMS];
			OK(lade_checksums(engine, (lade_checksum)kind, spans, ITEMS, sums, err));
			for (size_t i = 0; i < ITEMS; i++)
				assert_int_equal(sums[i],
				                 lade_checksum_of((lade_checksum)kind, plain[i],
				                                  spans[i].size));
		}
		for (size_t i = 0; i < ITEMS; i++) {
			free(buffer_image(&b[i]));
			buffer_free(&b[i]);
			free(plain[i]);
		}
	}
}

static void bad_spans(void **state)
{
	(void)state;
	uint8_t byte = 0;
	uint64_t sum;
	lade_cspan far = {&byte, 1, {LADE_DEVICE, device_count}};
	lade_cspan none = {&byte, 1, {LADE_DEVICE, -1}};
	FAILS(LADE_E_NO_DEVICE, "no device",
	      lade_checksums(engine, LADE_CRC32, &far, 1, &sum, err));
	FAILS(LADE_E_ARG, "device -1", lade_checksums(engine, LADE_CRC32, &none, 1, &sum, err));
}

/* Each call of the driver fails in turn: the call says so, and nothing is left (end() looks). */
static void driver_fails(void **state)
{
	(void)state;
	if (!emu)
		return;
	emu->seed = EMULATED_LAZY;
	emu->protect = 0;
	buffer b = buffer_new((lade_place){LADE_DEVICE, 0}, 5000, 3);
	lade_cspan span = {b.data, 5000, b.place};
	int at = 1;
	for (bool failed = true; failed; at++) {
		lade_engine *own;
		OK(lade_engine_new(NULL, &own, err));
		uint64_t sum = 0;
		int before = emu->calls;
		emu->fail_code = 999;
		emu->fail_at = before + at;
		lade_status status = lade_checksums(own, LADE_CRC32, &span, 1, &sum, NULL);
		failed = emu->calls - before >= at;
		emu->fail_at = 0;
		if (!failed)
			assert_int_equal(status, LADE_OK);
		lade_engine_free(own);
		*emu->message = 0;
		assert_true(at < 200);
	}
	assert_true(at > 10);
	buffer_free(&b);
}

/* ---- device arrays ------------------------------------------------------------------------- */

/* Tables on device 0. */
static buffer words(const uint64_t *from, size_t count)
{
	buffer b = buffer_new((lade_place){LADE_DEVICE, 0}, 8 * count, 0);
	buffer_put(&b, from, 8 * count);
	return b;
}

static void check_arrays(lade_checksum kind, rng *r)
{
	lade_place place = {LADE_DEVICE, 0};
	buffer b[ITEMS];
	uint64_t address[ITEMS], size[ITEMS], want[ITEMS], have[ITEMS], largest = 0;
	uint32_t status[ITEMS];
	for (size_t i = 0; i < ITEMS; i++) {
		size[i] = some_size(r);
		largest = size[i] > largest ? size[i] : largest;
		uint8_t *plain = malloc(size[i] + 1);
		fill(r, plain, size[i]);
		b[i] = buffer_new(place, size[i], rng_below(r, 64));
		buffer_put(&b[i], plain, size[i]);
		address[i] = (uint64_t)(uintptr_t)b[i].data;
		want[i] = lade_checksum_of(kind, plain, size[i]);
		free(plain);
	}
	address[3] = 0;
	size[3] = 5;
	buffer src = words(address, ITEMS), sizes = words(size, ITEMS), sums = words(want, ITEMS);
	buffer statuses = buffer_new(place, 4 * ITEMS, 0);
	lade_arrays a = {.struct_size = sizeof(lade_arrays),
	                 .src = (const void *const *)(const void *)src.data,
	                 .src_size = (const uint64_t *)(const void *)sizes.data,
	                 .count = ITEMS,
	                 .largest = rng_below(r, 3) ? largest : 0};
	lade_async_options o = {.struct_size = sizeof o,
	                        .device = 0,
	                        .statuses = (uint32_t *)(void *)statuses.data};
	bool on_host = rng_below(r, 2);
	if (on_host) {
		a.src = (const void *const *)(const void *)address;
		a.src_size = size;
		o.flags = LADE_ASYNC_HOST_TABLES;
	}
	OK(lade_checksums_arrays_async(engine, kind, &a, (uint64_t *)(void *)sums.data, &o, err));
	OK(lade_stream_wait(0, NULL, err));
	buffer_get(&sums, have, sizeof have);
	buffer_get(&statuses, status, sizeof status);
	for (size_t i = 0; i < ITEMS; i++) {
		assert_int_equal(status[i], i == 3 ? LADE_E_ARG : LADE_OK);
		assert_int_equal(have[i], want[i]);
		buffer_free(&b[i]);
	}
	buffer_free(&src);
	buffer_free(&sizes);
	buffer_free(&sums);
	buffer_free(&statuses);
}

static void arrays(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < rounds(); round++) {
		rng r = round_begin(round);
		check_arrays(LADE_XXH64, &r);
		check_arrays(LADE_ADLER32, &r);
		check_arrays((lade_checksum)(1 + rng_below(&r, 12)), &r);
	}
}

static void bad_arrays(void **state)
{
	(void)state;
	uint64_t word[2] = {0, 0};
	lade_arrays a = {.struct_size = sizeof(lade_arrays),
	                 .src = (const void *const *)(const void *)word,
	                 .src_size = word,
	                 .count = 1};
	lade_arrays odd = a, none = {.struct_size = sizeof none};
	odd.src_size = (const uint64_t *)(const void *)((uint8_t *)word + 4);
	lade_async_options o = {.struct_size = sizeof o};
	FAILS(LADE_E_UNSUPPORTED, "xxh3",
	      lade_checksums_arrays_async(engine, LADE_XXH3, &a, word, &o, err));
	FAILS(LADE_E_ARG, "no checksum 99",
	      lade_checksums_arrays_async(engine, (lade_checksum)99, &a, word, &o, err));
	FAILS(LADE_E_ARG, "NULL",
	      lade_checksums_arrays_async(engine, LADE_CRC32, &a, NULL, &o, err));
	FAILS(LADE_E_ARG, "aligned",
	      lade_checksums_arrays_async(engine, LADE_CRC32, &odd, word, &o, err));
	FAILS(LADE_E_ARG, "arrays is NULL",
	      lade_checksums_arrays_async(engine, LADE_CRC32, NULL, word, &o, err));
	FAILS(LADE_E_ARG, "engine is NULL",
	      lade_checksums_arrays_async(NULL, LADE_CRC32, &a, word, &o, err));
	OK(lade_checksums_arrays_async(engine, LADE_CRC32, &none, NULL, &o, err));
}

/* The workspace that is told for a batch suffices for any that is smaller, and for one whose
 * largest chunk is not known where that is asked for. */
static void workspaces(void **state)
{
	(void)state;
	static const size_t counts[] = {1,       2,       255,     256,       257,
	                                1000,    524287,  524288,  524289,    1048575,
	                                1048576, 1048577, 2000000, 100000000, 2147483647};
	static const uint64_t largests[] = {1,       4080,    4081,           65536,
	                                    1 << 24, 0x7FFFFFFF, UINT64_MAX - 3, UINT64_MAX};
	lade_spec *spec = spec_of(engine, "crc32c");
	size_t size, before = 0, over[8] = {0};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++, before = 0)
		for (size_t k = 0; k < 8; k++) {
			OK(lade_workspace_size(engine, spec, LADE_DECODE,
			                       &(lade_arrays){.struct_size = sizeof(lade_arrays),
			                                      .count = counts[i],
			                                      .largest = largests[k]},
			                       &size, err));
			assert_true(size >= before && size >= over[k]);
			before = over[k] = size;
		}
	uint64_t address = 0, told = 0, sum = 0;
	buffer src = words(&address, 1), sizes = words(&told, 1), sums = words(&sum, 1);
	OK(lade_workspace_size(engine, spec, LADE_DECODE,
	                       &(lade_arrays){.struct_size = sizeof(lade_arrays), .count = 1},
	                       &size, err));
	buffer workspace = buffer_new((lade_place){LADE_DEVICE, 0}, size, 0);
	lade_arrays a = {.struct_size = sizeof(lade_arrays),
	                 .src = (const void *const *)(const void *)src.data,
	                 .src_size = (const uint64_t *)(const void *)sizes.data,
	                 .count = 1};
	lade_async_options o = {
		.struct_size = sizeof o, .workspace = workspace.data, .workspace_size = size};
	OK(lade_checksums_arrays_async(engine, LADE_CRC32C, &a, (uint64_t *)(void *)sums.data, &o,
	                               err));
	OK(lade_stream_wait(0, NULL, err));
	buffer_free(&src);
	buffer_free(&sizes);
	buffer_free(&sums);
	buffer_free(&workspace);
	lade_spec_unref(spec);
}

/* ---- stages -------------------------------------------------------------------------------- */

/* Damage is found, or not looked for. */
static void check_damage(const char *text, rng *r)
{
	lade_spec *spec = spec_of(engine, text);
	lade_place place = {LADE_DEVICE, 0};
	chunk c[ITEMS];
	buffer src[ITEMS], dst[ITEMS];
	lade_segment segments[ITEMS];
	lade_item items[ITEMS];
	lade_result results[ITEMS];
	lade_error errors[ITEMS];
	for (size_t i = 0; i < ITEMS; i++) {
		c[i] = chunk_of(engine, spec, NULL, r, 8 + some_size(r) / 8);
		/* A checksum's own byte, at the end. */
		if (i % 2)
			c[i].encoded[c[i].encoded_size - 1] ^= (uint8_t)(1 + rng_below(r, 255));
		if (i == 4)
			c[i].encoded_size = 3;
		src[i] = buffer_new(place, c[i].encoded_size, rng_below(r, 64));
		dst[i] = buffer_new(place, c[i].plain_size, rng_below(r, 64));
		buffer_put(&src[i], c[i].encoded, c[i].encoded_size);
		segments[i] = (lade_segment){
			.data = src[i].data, .size = c[i].encoded_size, .place = place};
		items[i] = (lade_item){
			.src = &segments[i], .src_count = 1, .dst = buffer_span(&dst[i])};
	}
	for (uint32_t ignore = 0; ignore < 2; ignore++) {
		lade_batch_options o = {.struct_size = sizeof o,
		                        .where = LADE_WHERE_DEVICE,
		                        .flags = ignore ? LADE_BATCH_IGNORE_CHECKSUMS : 0,
		                        .item_errors = errors};
		lade_decode_into(engine, spec, items, ITEMS, results, &o, NULL);
		for (size_t i = 0; i < ITEMS; i++) {
			lade_status want = i == 4             ? LADE_E_TRUNCATED
			                   : i % 2 && !ignore ? LADE_E_CHECKSUM
			                                      : LADE_OK;
			assert_int_equal(results[i].status, want);
			if (want == LADE_E_CHECKSUM)
				assert_non_null(strstr(errors[i].message, "stored"));
			uint8_t *image = malloc(c[i].plain_size + 1);
			buffer_get(&dst[i], image, c[i].plain_size);
			if (want == LADE_OK)
				assert_memory_equal(image, c[i].plain, c[i].plain_size);
			free(image);
		}
	}
	for (size_t i = 0; i < ITEMS; i++) {
		buffer_free(&src[i]);
		buffer_free(&dst[i]);
		chunk_free(&c[i]);
	}
	lade_spec_unref(spec);
}

static void damage(void **state)
{
	(void)state;
	static const char *const texts[] = {"crc32c", "lz4|xxh64", "bitshuffle(4)|snappy|adler32",
	                                    "lz4|adler32(start)|crc32-bzip2"};
	for (uint64_t round = 0; round < rounds(); round++) {
		rng r = round_begin(round);
		for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
			check_damage(texts[i], &r);
	}
}

/* The bytes of an encoded chunk and its checksums do not fit, by one. */
static void no_room(void **state)
{
	(void)state;
	lade_place place = {LADE_DEVICE, 0};
	static const char *const texts[] = {"crc32", "bitshuffle(4)|xxh64(start)|crc32c"};
	static const size_t extra[] = {4, 12};
	for (size_t k = 0; k < 2; k++)
		for (size_t room = 0; room < 2; room++) {
			lade_spec *spec = spec_of(engine, texts[k]);
			buffer src = buffer_new(place, 96, 0);
			buffer dst = buffer_new(place, 96 + extra[k] - 1 + room, 3);
			lade_segment s = {.data = src.data, .size = 96, .place = place};
			lade_item item = {.src = &s, .src_count = 1, .dst = buffer_span(&dst)};
			lade_batch_options o = {.struct_size = sizeof o,
			                        .where = LADE_WHERE_DEVICE};
			lade_result result;
			assert_int_equal(
				lade_encode_into(engine, spec, &item, 1, &result, &o, NULL),
				room ? LADE_OK : LADE_E_NOSPACE);
			assert_int_equal(result.size, room ? 96 + extra[k] : 0);
			free(buffer_image(&dst));
			buffer_free(&src);
			buffer_free(&dst);
			lade_spec_unref(spec);
		}
}

/* An item of arrays without an address is refused, also where a checksum stands before what is
 * encoded or decoded; its neighbours are not. */
static void no_address(void **state)
{
	(void)state;
	static const char *const texts[] = {"lz4|xxh64(start)", "shuffle(4)|snappy|crc32(start)",
	                                    "crc32c(start)|xxh64(start)"};
	lade_place place = {LADE_DEVICE, 0};
	uint64_t size[3] = {96, 96, 96}, cap[3] = {400, 400, 400}, told[3];
	uint8_t text[96];
	memset(text, 'a', sizeof text);
	for (size_t k = 0; k < 2 * sizeof texts / sizeof *texts; k++) {
		lade_spec *spec = spec_of(engine, texts[k / 2]);
		bool decode = k % 2;
		buffer src = buffer_new(place, 3 * 96, 0), dst = buffer_new(place, 3 * 400, 3);
		uint64_t from[3], to[3];
		uint32_t status[3];
		for (size_t i = 0; i < 3; i++) {
			from[i] = decode && i == 1 ? 0 : (uint64_t)(uintptr_t)(src.data + 96 * i);
			to[i] = !decode && i == 1 ? 0 : (uint64_t)(uintptr_t)(dst.data + 400 * i);
			chunk c = {.encoded = text, .encoded_size = 96};
			if (decode) {
				c = chunk_of(engine, spec, NULL, &(rng){.s = 5}, 40);
				size[i] = c.encoded_size;
				assert_true(size[i] <= 96);
			}
			move(0, src.data + 96 * i, c.encoded, c.encoded_size);
			if (decode)
				chunk_free(&c);
		}
		buffer sizes = words(told, 3), statuses = buffer_new(place, sizeof status, 0);
		lade_arrays a = {.struct_size = sizeof(lade_arrays),
		                 .src = (const void *const *)(const void *)from,
		                 .src_size = size,
		                 .dst = (void *const *)(void *)to,
		                 .dst_cap = cap,
		                 .count = 3,
		                 .largest = 400};
		lade_async_options o = {.struct_size = sizeof o,
		                        .flags = LADE_ASYNC_HOST_TABLES,
		                        .sizes = (uint64_t *)(void *)sizes.data,
		                        .statuses = (uint32_t *)(void *)statuses.data};
		OK((decode ? lade_decode_arrays_async : lade_encode_arrays_async)(engine, spec, &a,
		                                                                  &o, err));
		OK(lade_stream_wait(0, NULL, err));
		buffer_get(&sizes, told, sizeof told);
		buffer_get(&statuses, status, sizeof status);
		for (size_t i = 0; i < 3; i++) {
			assert_int_equal(status[i], i == 1 ? LADE_E_ARG : LADE_OK);
			assert_int_equal(told[i] != 0, i != 1);
		}
		free(buffer_image(&dst));
		buffer_free(&src);
		buffer_free(&dst);
		buffer_free(&sizes);
		buffer_free(&statuses);
		lade_spec_unref(spec);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(spans_anywhere, begin, end),
		cmocka_unit_test_setup_teardown(bad_spans, begin, end),
		cmocka_unit_test_setup_teardown(driver_fails, begin, end),
		cmocka_unit_test_setup_teardown(arrays, begin, end),
		cmocka_unit_test_setup_teardown(bad_arrays, begin, end),
		cmocka_unit_test_setup_teardown(workspaces, begin, end),
		cmocka_unit_test_setup_teardown(damage, begin, end),
		cmocka_unit_test_setup_teardown(no_room, begin, end),
		cmocka_unit_test_setup_teardown(no_address, begin, end),
	};
	int rc;
	seed = seed_of(argc, argv);
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
