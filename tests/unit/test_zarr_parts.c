/*
 * test_zarr_parts.c: what reads of Zarr arrays take from the store, and in memory: parts of chunks
 * without codecs, and missing chunks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* mkdtemp() */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "zarr_kit.h"

#include <unistd.h>

/* Reads text's selection on one thread. */
static lade_status read_text(const lade_zarr *node, const char *text, void *to, size_t size,
                             lade_error *err)
{
	lade_zarr_selection *selection = NULL;
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(to, size)};
	lade_zarr_read_options options = {.struct_size = sizeof options, .threads = 1};
	lade_status status = lade_zarr_selection_parse(node, text, &selection, err);
	if (status == LADE_OK)
		status = lade_zarr_read(node, selection, &target, &options, NULL, err);
	lade_zarr_selection_free(selection);
	return status;
}

static void says(lade_status have, lade_status want, const lade_error *err, const char *text)
{
	if (have != want || (want != LADE_OK && !strstr(err->message, text)))
		fail_msg("want %s \"%s\", have %s \"%s\"", lade_status_name(want), text,
		         lade_status_name(have), err->message);
}

/* ---- parts of chunks without codecs -------------------------------------------------------- */

/* Two chunks of 8 x 32 x 128 numbers of 4 bytes: a row has 512 bytes, a plane 16 KiB. */
#define PLAIN(codecs) \
	"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[16,32,128]," \
	"\"data_type\":\"int32\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{" \
	"\"chunk_shape\":[8,32,128]}},\"chunk_key_encoding\":{\"name\":\"default\"}," \
	"\"fill_value\":7,\"codecs\":[" codecs "]}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
enum { PLAIN_SIZE = 8 * 32 * 128 };

static lade_zarr *make_plain(lade_store *store, const char *text, bool big)
{
	static uint32_t chunk[PLAIN_SIZE];
	lade_zarr *node;
	kit_put(store, "zarr.json", text, strlen(text));
	KIT_CHECK(lade_zarr_open(store, "", NULL, &node, &kit_err));
	for (uint32_t c = 0; c < 2; c++) {
		for (uint32_t i = 0; i < PLAIN_SIZE; i++)
			chunk[i] = big ? __builtin_bswap32(c * PLAIN_SIZE + i) : c * PLAIN_SIZE + i;
		kit_put(store, c ? "c/1/0/0" : "c/0/0/0", chunk, sizeof chunk);
	}
	return node;
}

/* Only the bytes that a selection wants are read, up to gaps of 8 KiB. */
static void parts_are_counted(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t wanted, chunks;
		uint32_t first, step;
	} cases[] = {
		{"3, 5, 7", 4, 1, 3 * 4096 + 5 * 128 + 7, 0},
		{"3, 5:9", 4 * 512, 1, 3 * 4096 + 5 * 128, 1},
		{"2:6:2, 5:6", 2 * 512, 1, 2 * 4096 + 5 * 128, 0}, /* a range in each of 2 planes */
		{"7:9, 31", 2 * 512, 2, 7 * 4096 + 31 * 128, 1}, /* and in each of 2 chunks */
		{"0, :, 9", 32 * 512, 1, 9, 128},              /* rows are nearer than 8 KiB */
		{"0, 4:6, 3:120", 2 * 512, 1, 4 * 128 + 3, 0},     /* two rows, as one range */
		{"[[9, 8, 8], 1, 4]", 16384 + 4, 1, 9 * 4096 + 128 + 4, (uint32_t)-4096},
		{"::-1", 2 * 4 * PLAIN_SIZE, 2, 15 * 4096, 0},
	};
	static uint32_t to[2 * PLAIN_SIZE];
	for (int big = 0; big < 2; big++) {
		lade_store *store;
		lade_error err = {0};
		KIT_CHECK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &kit_err));
		lade_zarr *node = make_plain(store, big ? PLAIN(BIG) : PLAIN(LITTLE), big);
		for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
			lade_zarr_report report = {.struct_size = sizeof report};
			lade_zarr_plan_info info = {.struct_size = sizeof info};
			lade_zarr_selection *selection;
			lade_zarr_plan *plan;
			lade_zarr_target target = {.struct_size = sizeof target,
			                           .span = lade_host_span(to, sizeof to)};
			KIT_CHECK(lade_zarr_selection_parse(node, cases[i].text, &selection,
			                                    &kit_err));
			KIT_CHECK(lade_zarr_plan_new(node, selection, &target, NULL, &plan,
			                             &kit_err));
			KIT_CHECK(lade_zarr_plan_get_info(plan, &info, &kit_err));
			says(lade_zarr_plan_run(plan, &report, &err), LADE_OK, &err, "");
			lade_zarr_plan_free(plan);
			lade_zarr_selection_free(selection);
			assert_int_equal(to[0], cases[i].first);
			if (cases[i].step)
				assert_int_equal(to[1], cases[i].first + cases[i].step);
			if (report.wanted_size != cases[i].wanted ||
			    report.decoded_size != cases[i].wanted ||
			    report.chunk_count != cases[i].chunks ||
			    report.moved_size < cases[i].wanted ||
			    report.moved_size > cases[i].wanted + 2 * 16384)
				fail_msg("'%s': %" PRIu64 " bytes wanted, %" PRIu64 " moved",
				         cases[i].text, report.wanted_size, report.moved_size);
			assert_true(info.in_parts);
			assert_non_null(strstr(info.text, "only the bytes"));
		}
		/* A chunk of a wrong size is corrupt, whatever part of it is wanted. */
		kit_put(store, "c/0/0/0", to, 4 * PLAIN_SIZE - 4);
		says(read_text(node, "3, 5", to, 512, &err), LADE_E_CORRUPT, &err,
		     "key 'c/0/0/0', chunk (0, 0, 0): it has 131068 bytes without codecs, want 13");
		says(read_text(node, "7, 31", to, 512, &err), LADE_E_CORRUPT, &err, "131068");
		kit_put(store, "c/0/0/0", to, 4 * PLAIN_SIZE + 4);
		says(read_text(node, "3, 5", to, 512, &err), LADE_E_CORRUPT, &err, "131076 bytes");
		lade_zarr_unref(node);
		lade_store_unref(store);
	}
}

/* A store whose chunk, of any bytes, is another one after each of some reads. */
typedef struct moody {
	unsigned reads, changes;
} moody;

static void moody_read(void *ctx, lade_reading *reading, size_t count)
{
	moody *m = ctx;
	const char *text = PLAIN(LITTLE);
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		bool chunk = strcmp(range->key, "c/0/0/0") == 0;
		lade_object_version version = {.size = 1};
		lade_error err = {0};
		uint64_t off;
		range->object_size = chunk ? 4 * PLAIN_SIZE : strlen(text);
		lade_status status = chunk || strcmp(range->key, "zarr.json") == 0
			? lade_range_place(range, range->object_size, &off, &range->size, &err)
			: lade_fail(&err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "no");
		if (status == LADE_OK && chunk) {
			version.bytes[0] = (uint8_t)(m->reads < m->changes ? m->reads : m->changes);
			memset(range->dst.data, version.bytes[0], range->size);
			m->reads++;
		} else if (status == LADE_OK) {
			memcpy(range->dst.data, text + off, range->size);
		}
		if (range->version)
			*range->version = version;
		lade_reading_done(reading, i, status, &err);
	}
}

/* All ranges of a chunk are of one version; else they are read once more. */
static void parts_of_one_version(void **state)
{
	(void)state;
	const lade_store_ops ops = {.struct_size = sizeof ops, .read = moody_read};
	uint8_t to[8 * 512];
	lade_error err = {0};
	for (unsigned changes = 0; changes < 20; changes++) {
		moody m = {.changes = changes};
		lade_store *store;
		lade_zarr *node;
		KIT_CHECK(lade_store_new(&ops, &m, "moody", &store, &kit_err));
		KIT_CHECK(lade_zarr_open(store, "", NULL, &node, &kit_err));
		lade_status status = read_text(node, ":8, 5", to, sizeof to, &err);
		/* Eight ranges, read once or twice. */
		says(status, changes < 9 ? LADE_OK : LADE_E_CHANGED, &err, "changed twice");
		for (size_t i = 0; status == LADE_OK && i < sizeof to; i++)
			assert_int_equal(to[i], to[0]);
		assert_int_equal(m.reads, changes ? 16 : 8);
		lade_zarr_unref(node);
		lade_store_unref(store);
	}
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Memory of the host: what is taken at once, at most. */
typedef struct meter {
	size_t now, most;
} meter;

static void *meter_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream)
{
	meter *m = ctx;
	const lade_allocator *a = lade_allocator_default(LADE_HOST);
	m->now += size;
	m->most = m->now > m->most ? m->now : m->most;
	return a->alloc(a->ctx, size, align, place, stream);
}

static void meter_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                       lade_stream stream)
{
	meter *m = ctx;
	const lade_allocator *a = lade_allocator_default(LADE_HOST);
	m->now -= ptr ? size : 0;
	a->free(a->ctx, ptr, size, align, place, stream);
}

/* An object's size is asked for before a large chunk gets memory: a missing one gets none. */
static void missing_chunks_take_no_memory(void **state)
{
	(void)state;
	static const char text[] =
		"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4294967296],"
		"\"data_type\":\"uint8\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{"
		"\"chunk_shape\":[2147483648]}},\"chunk_key_encoding\":{\"name\":\"default\"},"
		"\"fill_value\":7,\"codecs\":[{\"name\":\"bytes\"},{\"name\":\"zstd\","
		"\"configuration\":{\"level\":1,\"checksum\":false}}]}";
	lade_store *store, *far;
	lade_zarr *node;
	lade_error err = {0};
	uint8_t to[2];
	KIT_CHECK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &kit_err));
	kit_put(store, "zarr.json", text, sizeof text - 1);
	kit_put(store, "c/1", "not a frame", 11);
	const lade_store_ops ops = {.struct_size = sizeof ops, .read = kit_far_read};
	KIT_CHECK(lade_store_new(&ops, store, "far", &far, &kit_err));
	for (int k = 0; k < 2; k++) {
		meter m = {.now = 0};
		const lade_allocator allocator = {.ctx = &m,
		                                  .alloc = meter_alloc, .free = meter_free};
		const lade_zarr_read_options options = {.struct_size = sizeof options,
		                                        .allocators = {&allocator}};
		lade_zarr_target target = {.struct_size = sizeof target,
		                           .span = lade_host_span(to, 2)};
		lade_zarr_report report = {.struct_size = sizeof report};
		lade_zarr_selection *selection;
		KIT_CHECK(lade_zarr_open(k ? far : store, "", NULL, &node, &kit_err));
		KIT_CHECK(lade_zarr_selection_parse(node, "1000:1002", &selection, &kit_err));
		says(lade_zarr_read(node, selection, &target, &options, &report, &err), LADE_OK,
		     &err, "");
		lade_zarr_selection_free(selection);
		assert_memory_equal(to, "\7\7", 2);
		assert_int_equal(report.missing_count, 1);
		assert_int_equal(report.request_count, 1);
		assert_in_range(m.most, 0, 1 << 20);
		assert_int_equal(m.now, 0);
		says(read_text(node, "4294967295:", to, 2, &err), LADE_E_CORRUPT, &err, "c/1");
		lade_zarr_unref(node);
	}
	lade_store_unref(far);
	lade_store_unref(store);
}

/* 100 KB of Zstd that decode to 3.3 GB, as a chunk of four strings. */
static void texts_cannot_grow_without_end(void **state)
{
	(void)state;
	enum { BLOCKS = 25000 };
	static uint8_t frame[6 + 4 * BLOCKS];
	static const char text[] =
		"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"string\","
		"\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"
		"\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":\"\",\"codecs\":[{"
		"\"name\":\"vlen-utf8\"},{\"name\":\"zstd\",\"configuration\":{\"level\":1,"
		"\"checksum\":false}}]}";
	size_t n = 6;
	lade_store *store;
	lade_zarr *node;
	lade_zarr_plan *plan;
	lade_error err = {0};
	meter m = {.now = 0};
	const lade_allocator allocator = {.ctx = &m,
	                                  .alloc = meter_alloc, .free = meter_free};
	lade_zarr_read_options options = {.struct_size = sizeof options,
	                                  .allocators = {&allocator}};
	memcpy(frame, "\x28\xb5\x2f\xfd\0\x38", n);
	for (uint32_t i = 0; i < BLOCKS; i++, n += 4) {
		uint32_t head = 131072U << 3 | 2U | (i == BLOCKS - 1);
		memcpy(frame + n, &head, 3);
	}
	KIT_CHECK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &kit_err));
	kit_put(store, "zarr.json", text, sizeof text - 1);
	kit_put(store, "c/0", frame, n);
	KIT_CHECK(lade_zarr_open(store, "", NULL, &node, &kit_err));
	KIT_CHECK(lade_zarr_plan_new(node, NULL, NULL, &options, &plan, &kit_err));
	says(lade_zarr_plan_run(plan, NULL, &err), LADE_E_LIMIT, &err,
	     "it decodes to more than 67108864 bytes");
	lade_zarr_plan_free(plan);
	assert_in_range(m.most, 0, 70 << 20);
	options.text_max = 1 << 20;
	KIT_CHECK(lade_zarr_plan_new(node, NULL, NULL, &options, &plan, &kit_err));
	says(lade_zarr_plan_run(plan, NULL, &err), LADE_E_LIMIT, &err, "than 1048576 bytes");
	lade_zarr_plan_free(plan);
	lade_zarr_unref(node);
	lade_store_unref(store);
}

/* ---- places ---------------------------------------------------------------------------- */

/* Ranges of a file go to places of every alignment to the file's bytes: some through a buffer. */
static void every_alignment(void **state)
{
	(void)state;
	enum { SIZE = 150000, PIECES = 3 };
	static const size_t at[PIECES] = {7, 70000, 79000}, sizes[PIECES] = {69000, 5000, 71000};
	static uint8_t value[SIZE], to[PIECES][80000] __attribute__((aligned(4096)));
	char path[] = "/tmp/lade_parts_XXXXXX";
	lade_directory_options options = {.struct_size = sizeof options};
	lade_store *store;
	lade_write gone = {.key = "k", .kind = LADE_DELETE_IF_VERSION};
	for (size_t i = 0; i < SIZE; i++)
		value[i] = (uint8_t)(i * 2654435761u >> 13);
	assert_non_null(mkdtemp(path));
	KIT_CHECK(lade_store_directory_open(path, &options, &store, &kit_err));
	kit_put(store, "k", value, SIZE);
	for (size_t ahead = 0; ahead < 40; ahead++) {
		lade_range ranges[PIECES];
		uint8_t *place[PIECES];
		memset(to, 0xEE, sizeof to);
		for (size_t i = 0; i < PIECES; i++) {
			place[i] = to[i] + (at[i] + ahead) % 4096;
			ranges[i] = (lade_range){.key = "k", .off = at[i],
			                         .dst = lade_host_span(place[i], sizes[i])};
		}
		KIT_CHECK(lade_store_read(store, ranges, PIECES, NULL, NULL, &kit_err));
		for (size_t i = 0; i < PIECES; i++) {
			assert_memory_equal(place[i], value + at[i], sizes[i]);
			assert_int_equal(place[i][sizes[i]], 0xEE);
			assert_true(place[i] == to[i] || place[i][-1] == 0xEE);
		}
	}
	KIT_CHECK(lade_store_write(store, &gone, 1, NULL, NULL, &kit_err));
	lade_store_unref(store);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_counted),
		cmocka_unit_test(parts_of_one_version),
		cmocka_unit_test(missing_chunks_take_no_memory),
		cmocka_unit_test(every_alignment),
		cmocka_unit_test(texts_cannot_grow_without_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
