/*
 * test_zarr_fed.c: Zarr reads of many chunks to a device, which one batch takes as threads read
 * them (src/zarr/read_fed.c): the same bytes as on the host, with missing and damaged chunks, few
 * slots, more chunks than a batch has room for, and when the read or the driver fails midway.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

#include <lade/zarr_read.h>
#include <lade/zarr_write.h>

enum { DEVICE_BYTES_BEFORE = 24 };

static lade_engine *engine;

/* An array of 'count' chunks of 'chunk' bytes, in a store in memory. */
typedef struct array {
	lade_store *store;
	lade_zarr *node;
	uint8_t *plain;
	size_t chunk, count, size;
} array;

static array array_new(const char *codecs, bool shards, size_t bytes, size_t count)
{
	array a = {.chunk = bytes, .count = count, .size = bytes * count};
	uint64_t shape[] = {count / 4 * 4, bytes}, chunks[] = {shards ? 4 : 1, bytes};
	uint64_t inner[] = {1, bytes};
	lade_zarr_description description = {.struct_size = sizeof description,
	                                     .kind = LADE_ZARR_ARRAY,
	                                     .format = shards ? 3 : 2,
	                                     .ndim = 2,
	                                     .shape = shape,
	                                     .chunk_shape = chunks,
	                                     .type = "|u1",
	                                     .codecs = codecs,
	                                     .inner_shape = shards ? inner : NULL};
	lade_zarr_create_options create = {.struct_size = sizeof create, .no_parents = true};
	rng r = {.s = bytes + count};
	a.plain = malloc(a.size + 1);
	for (size_t at = 0; at < a.size; at += bytes)
		fill(&r, a.plain + at, bytes);
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(a.plain, a.size)};
	OK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &a.store, err));
	OK(lade_zarr_create(a.store, "a", &description, &create, &a.node, err));
	OK(lade_zarr_write(a.node, NULL, &source, NULL, NULL, err));
	return a;
}

static void array_free(array *a)
{
	lade_zarr_unref(a->node);
	lade_store_unref(a->store);
	free(a->plain);
}

static void put(const array *a, size_t index, lade_write write)
{
	char key[64];
	snprintf(key, sizeof key, "a/%zu.0", index);
	write.key = key;
	OK(lade_store_write(a->store, &write, 1, NULL, NULL, err));
}

static void replace(const array *a, size_t index, const void *data, size_t size)
{
	put(a, index, (lade_write){.src = lade_host_cspan(data, size)});
}

static void erase(array *a, size_t index)
{
	put(a, index, (lade_write){.kind = LADE_DELETE_IF_VERSION});
	memset(a->plain + index * a->chunk, 0, a->chunk);
}

static lade_zarr_read_options options_of(uint64_t memory, unsigned threads)
{
	return (lade_zarr_read_options){.struct_size = sizeof(lade_zarr_read_options),
	                                .engine = engine, .memory = memory, .threads = threads};
}

static lade_status read_to(const array *a, const char *text, const buffer *to,
                           const lade_zarr_read_options *options, lade_zarr_report *report,
                           lade_error *why)
{
	lade_zarr_selection *selection = NULL;
	lade_zarr_target target = {.struct_size = sizeof target, .span = buffer_span(to)};
	if (text)
		OK(lade_zarr_selection_parse(a->node, text, &selection, err));
	lade_status status = lade_zarr_read(a->node, selection, &target, options, report, why);
	lade_zarr_selection_free(selection);
	return status;
}

/* Reads a selection to the device and to the host; nothing around it is written. */
static void compare(const array *a, const char *text, uint64_t memory, unsigned threads)
{
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	lade_zarr_report report = {.struct_size = sizeof report};
	lade_zarr_read_options options = options_of(memory, threads);
	lade_zarr_selection *selection = NULL;
	if (text)
		OK(lade_zarr_selection_parse(a->node, text, &selection, err));
	OK(lade_zarr_selection_shape(a->node, selection, &shape, err));
	lade_zarr_selection_free(selection);
	size_t size = (size_t)shape.size;
	buffer want = buffer_new(LADE_PLACE_HOST, size, 0);
	buffer have = buffer_new((lade_place){LADE_DEVICE, 0}, size, DEVICE_BYTES_BEFORE);
	OK(read_to(a, text, &want, NULL, NULL, err));
	OK(read_to(a, text, &have, &options, &report, err));
	uint8_t *image = buffer_image(&have);
	if (memcmp(image + (have.data - have.block), want.data, size) != 0)
		fail_msg("chunks of %zu bytes, %s: the bytes differ", a->chunk,
		         text ? text : "all");
	assert_int_equal(report.written_size + report.filled_size, size);
	assert_int_equal(report.copied_size, 0);
	free(image);
	buffer_free(&want);
	buffer_free(&have);
}

static const char *const selections[] = {NULL, "3:, ::-1", "1::2, 5:", "::-1, 7:-9", ":, 1:2"};

static void compare_all(const array *a)
{
	compare(a, NULL, (uint64_t)10 << 20, 1);
	for (size_t i = 0; i < sizeof selections / sizeof *selections; i++)
		compare(a, selections[i], 0, 2);
}

#define LZ4    "[{\"id\":\"lz4\",\"acceleration\":1}]"
#define ZSTD   "[{\"id\":\"zstd\",\"level\":1}]"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

static void as_on_the_host(void **state)
{
	(void)state;
	static const char *const codecs[][2] = {
		{"[]", "[" LITTLE "]"},
		{LZ4, "[" LITTLE ",{\"name\":\"numcodecs.lz4\",\"configuration\":{}}]"},
		{ZSTD, "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,"
	               "\"checksum\":false}}]"},
	};
	for (size_t i = 0; i < 6; i++) {
		kit_round(i, i + 77);
		array a = array_new(codecs[i / 2][i % 2], i % 2, emu ? 300 : 9000, emu ? 40 : 400);
		if (i % 2 == 0)
			for (size_t c = 0; c < a.count; c += 7)
				erase(&a, c);
		compare_all(&a);
		array_free(&a);
	}
}

/* More than all slots have room for, and more than a batch has. */
static void few_slots_many_chunks(void **state)
{
	(void)state;
	kit_round(1, 1);
	array large = array_new("[]", false, 64 << 10, emu ? 140 : 1000);
	compare(&large, NULL, (uint64_t)10 << 20, 3);
	compare(&large, "::-1, 63000:", (uint64_t)10 << 20, 2);
	array_free(&large);
	array many = array_new("[]", false, 16, emu ? 16800 : 40000);
	compare(&many, NULL, 0, 2);
	array_free(&many);
	array missing = array_new("[]", false, 64, 400);
	for (size_t c = 0; c < missing.count; c++)
		if (c % 90)
			erase(&missing, c);
	compare(&missing, NULL, 0, 2);
	array_free(&missing);
}

/* One chunk of many is not as it should be: its key and what is wrong are said. */
static void damaged_chunks(void **state)
{
	(void)state;
	static const struct {
		const char *codecs;
		uint8_t bytes[16];
		size_t size;
		lade_status status;
	} cases[] = {
		{LZ4, {1, 2, 3}, 3, LADE_E_TRUNCATED},
		{LZ4, {0x84, 3, 0, 0, 0xf0}, 5, LADE_E_TRUNCATED},
		{ZSTD, {0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x21, 0, 0, 1, 2, 3, 4}, 13,
	         LADE_E_CORRUPT},
		{"[]", {1, 2, 3, 4}, 4, LADE_E_CORRUPT},
		{"[]", {0}, 0, LADE_E_CORRUPT},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		kit_round(i, i);
		array a = array_new(cases[i].codecs, false, 900, 80);
		buffer to = buffer_new((lade_place){LADE_DEVICE, 0}, a.size, 0);
		lade_zarr_read_options options = options_of(0, 2);
		replace(&a, 41, cases[i].bytes, cases[i].size);
		lade_error why = {.message = ""};
		lade_status status = read_to(&a, NULL, &to, &options, NULL, &why);
		if (status != cases[i].status || !strstr(why.message, "'a/41.0'"))
			fail_msg("case %zu: %s: %s", i, lade_status_name(status), why.message);
		free(buffer_image(&to)); /* nothing around it was written */
		buffer_free(&to);
		array_free(&a);
	}
}

/* A chunk with more encoded bytes than any encoder makes of it has memory of its own. */
static void large_encoded_chunk(void **state)
{
	(void)state;
	enum { CHUNK = 900, SKIPPED = 40000 };
	kit_round(2, 2);
	array a = array_new("[{\"id\":\"gzip\",\"level\":1}]", false, CHUNK, 80);
	lade_spec *gzip = spec_of(engine, "gzip");
	uint8_t *bytes = malloc(SKIPPED);
	size_t size = 0;
	/* Stored blocks without bytes in front: 5 bytes each. */
	OK(lade_encode(engine, gzip, lade_host_cspan(a.plain + 9 * CHUNK, CHUNK),
	               lade_host_span(bytes, SKIPPED), &size, err));
	memmove(bytes + SKIPPED / 2, bytes + 10, size - 10);
	for (size_t at = 10; at < SKIPPED / 2; at += 5)
		memcpy(bytes + at, "\0\0\0\377\377", 5);
	replace(&a, 9, bytes, SKIPPED / 2 + size - 10);
	compare(&a, NULL, 0, 2);
	lade_spec_unref(gzip);
	free(bytes);
	array_free(&a);
}

static void cancelled(void **state)
{
	(void)state;
	array a = array_new("[]", false, 900, 80);
	buffer to = buffer_new((lade_place){LADE_DEVICE, 0}, a.size, 0);
	lade_zarr_read_options options = options_of(0, 2);
	lade_cancel *cancel;
	OK(lade_cancel_new(NULL, NULL, &cancel, err));
	lade_cancel_set(cancel);
	options.cancel = cancel;
	FAILS(LADE_E_CANCELLED, "cancelled", read_to(&a, NULL, &to, &options, NULL, err));
	lade_cancel_free(cancel);
	buffer_free(&to);
	array_free(&a);
}

/* Each call of the driver fails in turn: the read fails, or the host has done it. */
static void driver_fails(void **state)
{
	(void)state;
	if (!emu)
		return;
	emu->seed = EMULATED_EAGER;
	emu->protect = 0;
	array a = array_new(LZ4, false, 300, 40);
	uint8_t *have = malloc(a.size);
	unsigned failures = 0;
	for (int at = 1;; at++) {
		lade_engine_trim(engine);
		buffer to = buffer_new((lade_place){LADE_DEVICE, 0}, a.size, 0);
		lade_zarr_read_options options = options_of(0, 1);
		lade_error why;
		emu->calls = 0;
		emu->failed = NULL;
		emu->fail_at = at;
		emu->fail_code = 2; /* out of memory */
		lade_status status = read_to(&a, NULL, &to, &options, NULL, &why);
		emu->fail_at = 0;
		emu->recover();
		bool failed = emu->failed;
		failures += status != LADE_OK;
		if (status == LADE_OK) {
			buffer_get(&to, have, a.size);
			assert_memory_equal(have, a.plain, a.size);
		}
		buffer_free(&to);
		if (!failed)
			break;
	}
	assert_true(failures > 5);
	free(have);
	array_free(&a);
}

static int begin(void **state)
{
	lade_engine_options o = {.struct_size = sizeof o, .threads = 4};
	(void)state;
	OK(lade_engine_new(&o, &engine, err));
	return 0;
}

/* Threads and streams are gone before the device is looked at. */
static int end(void **state)
{
	(void)state;
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(as_on_the_host),       TEST(few_slots_many_chunks),
		TEST(damaged_chunks),       TEST(large_encoded_chunk),
		TEST(cancelled),            TEST(driver_fails),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
