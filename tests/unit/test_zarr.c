/*
 * test_zarr.c: Zarr nodes: documents good and bad, grids, keys, types, fill values, codecs, and
 * members.
 *
 * Documents without an origin are of our own hand; golden/zarr has those of zarr-python and
 * tensorstore.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "guard.h"
#include "zarr/json.h"

#include <lade/batch.h>
#include <lade/zarr.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static lade_store *memory;

static int setup(void **state)
{
	(void)state;
	return lade_store_memory_new(LADE_PLACE_HOST, NULL, &memory, NULL) != LADE_OK;
}

static int teardown(void **state)
{
	(void)state;
	lade_store_unref(memory);
	return 0;
}

static void put(const char *key, const char *text)
{
	lade_write write = {.key = key, .src = lade_host_cspan(text, strlen(text))};
	lade_error err;
	if (lade_store_write(memory, &write, 1, NULL, NULL, &err) != LADE_OK)
		fail_msg("%s", err.message);
}

static lade_zarr *open_node(const char *path, lade_status want, const char *message)
{
	lade_zarr *node;
	lade_error err = {0};
	lade_status status = lade_zarr_open(memory, path, NULL, &node, &err);
	if (status != want)
		fail_msg("%s: want %s, have %s: %s", path, lade_status_name(want),
		         lade_status_name(status), err.message);
	if (status == LADE_OK)
		return node;
	assert_null(node);
	assert_int_equal(err.status, status);
	if (!strstr(err.message, message))
		fail_msg("want \"%s\", have \"%s\"", message, err.message);
	return NULL;
}

/* A document of format 3 with these members; NULL: usual ones. */
typedef struct members {
	const char *shape, *type, *grid, *keys, *fill, *codecs, *more;
} members;

static const char *v3(members m)
{
	static char text[4096];
	snprintf(text, sizeof text,
	         "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":%s,\"data_type\":%s,"
	         "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":%s}},"
	         "\"chunk_key_encoding\":%s,\"fill_value\":%s,\"codecs\":%s%s}",
	         m.shape ? m.shape : "[10,6]", m.type ? m.type : "\"float32\"",
	         m.grid ? m.grid : "[4,3]", m.keys ? m.keys : "{\"name\":\"default\"}",
	         m.fill ? m.fill : "0",
	         m.codecs ? m.codecs
	                  : "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
	         m.more ? m.more : "");
	return text;
}

static lade_zarr *array_of(members m)
{
	put("zarr.json", v3(m));
	return open_node("", LADE_OK, "");
}

static void refused(members m, lade_status want, const char *message)
{
	put("zarr.json", v3(m));
	open_node("", want, message);
}

/* ---- JSON ---------------------------------------------------------------------------- */

static lade_status parse(const char *text, lade_error *err)
{
	json doc;
	size_t size = strlen(text);
	guard g = guard_copy(text, size, 1);
	lade_status status = lade__json_parse(&doc, "doc", (const char *)g.data, size, err);
	if (status == LADE_OK)
		lade__json_free(&doc);
	guard_free(&g);
	return status;
}

static void json_texts(void **state)
{
	(void)state;
	static const char *const good[] = {
		"0", "-0", "1.5e-3", "NaN", "[NaN,Infinity,-Infinity]", " {\"a\" : [ ] } ",
		"\"\\ud83d\\ude00\\n\\u00e9\"", "{\"a\":1,\"a\":2}", "\"\xe2\x82\xac\"",
		"123456789012345678901234567890",
	};
	static const struct {
		const char *text;
		uint64_t at;
	} bad[] = {
		{"", 0}, {"01", 0}, {"[1,]", 3}, {"{\"a\":1,}", 7}, {"{'a':1}", 1}, {"[1 2]", 3},
		{"1.", 2}, {"1e", 2}, {"-", 1}, {"+1", 0}, {"nan", 0}, {"\"a", 2}, {"\"\t\"", 1},
		{"\"\\x\"", 2}, {"\"\\u12g4\"", 5}, {"\"\xff\"", 1}, {"\"\xc0\x80\"", 1},
		{"\"\xed\xa0\x80\"", 1}, {"{} {}", 3}, {"{\"a\"}", 4}, {"/**/1", 0}, {"[", 1},
		{"tru", 0}, {"\"\\", 2},
	};
	lade_error err;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (parse(good[i], &err) != LADE_OK)
			fail_msg("%s: %s", good[i], err.message);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (parse(bad[i].text, &err) != LADE_E_CORRUPT || err.offset != bad[i].at)
			fail_msg("%s: %s at %llu", bad[i].text, lade_status_name(err.status),
			         (unsigned long long)err.offset);
	}
	char deep[200];
	memset(deep, '[', 100);
	memset(deep + 100, ']', 100);
	deep[100 + JSON_DEPTH_MAX] = 0;
	assert_int_equal(parse(deep + 100 - JSON_DEPTH_MAX, &err), LADE_OK);
	deep[100 + JSON_DEPTH_MAX] = ']';
	deep[101 + JSON_DEPTH_MAX] = 0;
	assert_int_equal(parse(deep + 99 - JSON_DEPTH_MAX, &err), LADE_E_LIMIT);
}

static void json_values(void **state)
{
	(void)state;
	static const char text[] = "{\"big\":18446744073709551615,\"over\":18446744073709551616,"
	                           "\"low\":-9223372036854775808,\"under\":-9223372036854775809,"
	                           "\"f\":4.0,\"nan\":NaN,"
	                           "\"e\\u0078\":\"a\\ud83d\\ude00\\ud800b\"}";
	json doc;
	uint64_t u;
	int64_t i;
	char out[64];
	assert_int_equal(lade__json_parse(&doc, "doc", text, strlen(text), NULL), LADE_OK);
	assert_true(lade__json_u64(&doc, lade__json_get(&doc, 0, "big"), false, &u));
	assert_true(u == UINT64_MAX);
	assert_false(lade__json_u64(&doc, lade__json_get(&doc, 0, "over"), false, &u));
	assert_true(lade__json_i64(&doc, lade__json_get(&doc, 0, "low"), &i));
	assert_true(i == INT64_MIN);
	assert_false(lade__json_i64(&doc, lade__json_get(&doc, 0, "under"), &i));
	assert_false(lade__json_u64(&doc, lade__json_get(&doc, 0, "f"), false, &u));
	assert_true(lade__json_u64(&doc, lade__json_get(&doc, 0, "f"), true, &u) && u == 4);
	assert_false(lade__json_u64(&doc, lade__json_get(&doc, 0, "nan"), true, &u));
	uint32_t at = lade__json_get(&doc, 0, "ex");
	assert_int_equal(lade__json_string(&doc, at, out), 9);
	assert_string_equal(out, "a\xf0\x9f\x98\x80\xef\xbf\xbd" "b");
	lade__json_free(&doc);
}

/* ---- grids and keys -------------------------------------------------------------------- */

static void key_is(const lade_zarr *node, const uint64_t *index, const char *want)
{
	char key[LADE_KEY_MAX + 1];
	lade_error err;
	if (lade_zarr_chunk_key(node, index, key, &err) != LADE_OK)
		fail_msg("%s", err.message);
	assert_string_equal(key, want);
}

static void keys(void **state)
{
	(void)state;
	static const struct {
		const char *encoding, *none, *two;
	} cases[] = {
		{"\"default\"", "c", "c/2/1"},
		{"{\"name\":\"default\",\"configuration\":{\"separator\":\".\"}}", "c", "c.2.1"},
		{"{\"name\":\"v2\"}", "0", "2.1"},
		{"{\"name\":\"v2\",\"configuration\":{\"separator\":\"/\"}}", "0", "2/1"},
	};
	const uint64_t index[2] = {2, 1}, outside[2] = {3, 0};
	char key[LADE_KEY_MAX + 1];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		lade_zarr *two = array_of((members){.keys = cases[i].encoding});
		lade_zarr *none = array_of(
			(members){.keys = cases[i].encoding, .shape = "[]", .grid = "[]"});
		key_is(two, index, cases[i].two);
		key_is(none, NULL, cases[i].none);
		assert_int_equal(lade_zarr_chunk_key(two, outside, key, NULL), LADE_E_RANGE);
		lade_zarr_unref(two);
		lade_zarr_unref(none);
	}
	refused((members){.keys = "\"v4\""}, LADE_E_UNSUPPORTED,
	        "zarr.json at /chunk_key_encoding: no known chunk key encoding, have v4");
	refused((members){.keys = "{\"name\":\"v2\",\"configuration\":{\"separator\":\"-\"}}"},
	        LADE_E_CORRUPT, "/chunk_key_encoding/configuration/separator: want");
}

/* Shapes that no memory could hold open at once. */
static void huge_shapes(void **state)
{
	(void)state;
	lade_zarr *node = array_of((members){.shape = "[4611686018427387904,9223372036854775807]",
	                                     .grid = "[1,9223372036854775807]"});
	const lade_zarr_array *array = lade_zarr_as_array(node);
	const uint64_t last[2] = {4611686018427387903, 0};
	uint64_t chunk;
	assert_true(array->axes[0].chunk_count == (uint64_t)1 << 62);
	assert_true(array->axes[1].chunk_count == 1);
	key_is(node, last, "c/4611686018427387903/0");
	assert_int_equal(lade_zarr_chunk_find(&array->axes[0], last[0], &chunk, NULL), LADE_OK);
	assert_true(chunk == last[0]);
	lade_zarr_unref(node);
	refused((members){.shape = "[9223372036854775808,1]"}, LADE_E_CORRUPT, "/shape/0: want");
	refused((members){.shape = "[1,1,1]"}, LADE_E_CORRUPT,
	        "/chunk_grid/configuration/chunk_shape: 2 chunk sizes for 3 axes, have [4,3]");
}

static void rectilinear(void **state)
{
	(void)state;
	char text[2048];
	const char *from = v3((members){.shape = "[10,6]", .grid = "GRID"});
	const char *at = strstr(from, "{\"name\":\"regular\""), *end = strstr(at, "GRID}}") + 6;
	snprintf(text, sizeof text,
	         "%.*s{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
	         "\"chunk_shapes\":[[1,[2,3],4.0,[1000000,1000000]],4]}}%s",
	         (int)(at - from), from, end);
	put("zarr.json", text);
	lade_zarr *node = open_node("", LADE_OK, "");
	const lade_zarr_axis *axes = lade_zarr_as_array(node)->axes;
	static const uint64_t start[] = {0, 1, 3, 5, 7}, size[] = {1, 2, 2, 2, 4};
	assert_int_equal(axes[0].chunk_count, 5);
	assert_int_equal(axes[0].run_count, 4);
	for (uint64_t i = 0; i < 5; i++) {
		lade_zarr_extent extent;
		assert_int_equal(lade_zarr_chunk_extent(&axes[0], i, &extent, NULL), LADE_OK);
		assert_int_equal(extent.start, start[i]);
		assert_int_equal(extent.size, size[i]);
		assert_int_equal(extent.used, i == 4 ? 3 : size[i]);
		for (uint64_t k = 0; k < extent.used; k++) {
			uint64_t chunk;
			assert_int_equal(lade_zarr_chunk_find(&axes[0], start[i] + k, &chunk, NULL),
			                 LADE_OK);
			assert_int_equal(chunk, i);
		}
	}
	lade_zarr_extent extent;
	assert_int_equal(lade_zarr_chunk_extent(&axes[0], 5, &extent, NULL), LADE_E_RANGE);
	assert_int_equal(lade_zarr_chunk_extent(&axes[1], 1, &extent, NULL), LADE_OK);
	assert_true(extent.start == 4 && extent.size == 4 && extent.used == 2);
	lade_zarr_unref(node);
	memcpy(strstr(text, "1000000,1000000"), "0000001,0000001", 15);
	put("zarr.json", text);
	open_node("", LADE_E_CORRUPT, "no value at byte");
	memcpy(strstr(text, "0000001,0000001"), "1,            1", 15);
	memcpy(strstr(text, "4.0"), "0.5", 3);
	put("zarr.json", text);
	open_node("", LADE_E_CORRUPT, "/chunk_grid/configuration/chunk_shapes/0/2: want a chunk");
	memcpy(strstr(text, "0.5"), "1.0", 3);
	put("zarr.json", text);
	open_node("", LADE_E_CORRUPT, "chunk sizes with the sum 9, less than the shape's 10");
}

/* ---- types and fill values --------------------------------------------------------------- */

static void fill_is(const char *type, const char *fill, const char *codecs, const void *want,
                    size_t size)
{
	lade_zarr *node = array_of((members){.type = type, .fill = fill, .codecs = codecs});
	const lade_zarr_array *array = lade_zarr_as_array(node);
	if (array->fill_size != size || memcmp(array->fill, want, size) != 0)
		fail_msg("%s %s: %zu bytes, first 0x%02x", type, fill, array->fill_size,
		         *(const unsigned char *)array->fill);
	lade_zarr_unref(node);
}

static void fills(void **state)
{
	(void)state;
	static const struct {
		const char *type, *fill;
		size_t size;
		uint64_t bits;
	} cases[] = {
		{"\"float32\"", "\"NaN\"", 4, 0x7fc00000},
		{"\"float32\"", "\"0x7fc00001\"", 4, 0x7fc00001},
		{"\"float32\"", "\"-Infinity\"", 4, 0xff800000},
		{"\"float32\"", "-0.0", 4, 0x80000000},
		{"\"float32\"", "1e400", 4, 0x7f800000},
		{"\"float64\"", "0.1", 8, 0x3fb999999999999a},
		{"\"float16\"", "65519.99", 2, 0x7bff},
		{"\"float16\"", "65520", 2, 0x7c00},
		{"\"float16\"", "6e-8", 2, 0x0001},
		{"\"float16\"", "-1.5", 2, 0xbe00},
		{"\"bfloat16\"", "1.00390625", 2, 0x3f80},
		{"\"bfloat16\"", "1.01171875", 2, 0x3f82},
		{"\"bfloat16\"", "\"NaN\"", 2, 0x7fc0},
		{"\"float8_e4m3fn\"", "448", 1, 0x7e},
		{"\"float8_e4m3fn\"", "1e9", 1, 0x7f},
		{"\"float8_e5m2\"", "57344", 1, 0x7b},
		{"\"float8_e5m2\"", "-1e9", 1, 0xfc},
		{"\"float8_e4m3fnuz\"", "\"NaN\"", 1, 0x80},
		{"\"float8_e8m0fnu\"", "4", 1, 129},
		{"\"int64\"", "-9223372036854775808", 8, 0x8000000000000000},
		{"\"uint64\"", "18446744073709551615", 8, UINT64_MAX},
		{"\"int8\"", "-128", 1, 0x80},
		{"\"bool\"", "true", 1, 1},
		{"\"r16\"", "[1,2]", 2, 0x0201},
		{"{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"ns\","
	         "\"scale_factor\":10}}",
	         "\"NaT\"", 8, 0x8000000000000000},
		{"{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":8}}",
	         "\"\\u00e9\"", 8, 0xe9},
		{"{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":3}}",
	         "\"YWJjZA==\"", 3, 0x636261},
		{"{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"a\",\"data_"
	         "type\":"
	         "\"int16\"},{\"name\":\"b\",\"data_type\":\"uint8\"}]}}",
	         "{\"b\":7}", 3, 0x070000},
		{"\"complex64\"", "[1,\"NaN\"]", 8, 0x7fc000003f800000},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		unsigned char want[8];
		for (size_t k = 0; k < 8; k++)
			want[k] = (unsigned char)(cases[i].bits >> 8 * k);
		fill_is(cases[i].type, cases[i].fill, NULL, want, cases[i].size);
	}
	fill_is("\"string\"", "\"a\\u0000b\"", "[\"vlen-utf8\"]", "a\0b", 3);
	fill_is("\"bytes\"", "\"YWI=\"", "[\"vlen-bytes\"]", "ab", 2);
	refused((members){.type = "\"uint64\"", .fill = "18446744073709551616"}, LADE_E_CORRUPT,
	        "/fill_value: want a whole number of 64 bits, unsigned, have 18446744073709551616");
	refused((members){.type = "\"int8\"", .fill = "128"}, LADE_E_CORRUPT, "/fill_value");
	refused((members){.fill = "null"}, LADE_E_CORRUPT, "/fill_value");
	refused((members){.fill = "\"0x1ffffffff\""}, LADE_E_CORRUPT, "of 32 bits");
}

static void types(void **state)
{
	(void)state;
	lade_zarr *node = array_of((members){
		.type = "\"complex128\"", .fill = "[0,0]",
		.codecs = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]"});
	const lade_zarr_array *array = lade_zarr_as_array(node);
	assert_true(array->type.big && array->type.swap_size == 8 && array->type.size == 16);
	assert_int_equal(array->chain.swap_size, 8);
	assert_int_equal(array->chain.step_count, 0);
	lade_zarr_unref(node);
	refused((members){.type = "\"float128\""}, LADE_E_UNSUPPORTED,
	        "/data_type: no known data type, have float128");
	refused((members){.type = "{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":"
	                          "\"a\",\"data_type\":\"int8\"},{\"name\":\"b\",\"data_type\":"
	                          "\"no\"}]}}"},
	        LADE_E_UNSUPPORTED, "zarr.json at /data_type/configuration/fields/1/data_type: no");
	refused((members){.codecs = "[\"bytes\"]"}, LADE_E_CORRUPT, "want 'endian'");
	refused((members){.type = "\"r134217736\"", .fill = "[]"}, LADE_E_UNSUPPORTED,
	        "/data_type");
}

/* ---- codecs ------------------------------------------------------------------------------ */

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"

static void chain_is(const char *type, const char *codecs, const char *spec)
{
	lade_zarr *node = array_of((members){.type = type, .codecs = codecs});
	const lade_zarr_chain *chain = &lade_zarr_as_array(node)->chain;
	assert_int_equal(chain->step_count, spec ? 1 : 0);
	if (spec && !chain->steps[0].spec)
		fail_msg("%s: %s", codecs, chain->steps[0].why);
	if (spec)
		assert_string_equal(lade_spec_text(chain->steps[0].spec), spec);
	lade_zarr_unref(node);
}

static void codecs(void **state)
{
	(void)state;
	chain_is(NULL, "[" LITTLE "]", NULL);
	chain_is(NULL, "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":5,"
	               "\"checksum\":true}},\"crc32c\"]", "zstd(level=5,checksum=true)|crc32c");
	chain_is(NULL,
	         "[" BIG ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":"
	         "3,\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":0}}]",
	         "blosc(level=3,typesize=4)");
	chain_is("\"int32\"", "[{\"name\":\"numcodecs.delta\",\"configuration\":{}}," BIG
	                      ",{\"name\":\"gzip\",\"configuration\":{\"level\":9}}]",
	         "delta(<i4,astype=<i4)|byteswap(4)|gzip(level=9)");
	chain_is("\"float64\"", "[{\"name\":\"numcodecs.fixedscaleoffset\",\"configuration\":{"
	                        "\"scale\":10,\"offset\":1.5,\"astype\":\"<i2\"}}," LITTLE "]",
	         "fixedscaleoffset(<f8,astype=<i2,scale=1e+01,offset=1.5)");
	refused((members){.codecs = "[" LITTLE ",{\"name\":\"lz5\",\"configuration\":{}}]"},
	        LADE_E_UNSUPPORTED, "/codecs/1/name: no known codec, have lz5");
	refused((members){.codecs = "[\"crc32c\"," LITTLE "]"}, LADE_E_CORRUPT, "/codecs/1");
	refused((members){.codecs = "[\"crc32c\"]"}, LADE_E_CORRUPT, "there are 0");
	refused((members){.codecs = "[" LITTLE "," LITTLE "]"}, LADE_E_CORRUPT, "there are 2");
	refused((members){.codecs = "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":"
	                            "99}}]"},
	        LADE_E_CORRUPT, "/codecs/1/configuration/level: want -131072 to 22, have 99");
	refused((members){.codecs = "[\"vlen-utf8\"]"}, LADE_E_CORRUPT, "float32");
}

static void transposes(void **state)
{
	(void)state;
	lade_zarr *node = array_of((members){
		.shape = "[2,3,4]",
		.grid = "[2,3,4]",
		.codecs = "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},"
			  "{\"name\":\"transpose\",\"configuration\":{\"order\":[0,1,2]}}," LITTLE
			  "]"});
	const size_t *order = lade_zarr_as_array(node)->chain.order;
	assert_non_null(order);
	assert_true(order[0] == 1 && order[1] == 2 && order[2] == 0);
	lade_zarr_unref(node);
	refused((members){.codecs = "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,0]}}"
	                            "," LITTLE "]"},
	        LADE_E_CORRUPT,
	        "/codecs/0/configuration/order/1: want each of 2 axes once, have 0");
}

#define SHARD(shape, inner, index) \
	"{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" shape ",\"codecs\":[" \
	inner "],\"index_codecs\":[" index "],\"index_location\":\"start\"}}"

static void shards(void **state)
{
	(void)state;
	lade_zarr *node = array_of(
		(members){.shape = "[64,64]",
	                  .grid = "[16,32]",
	                  .codecs = "[" SHARD("[8,8]", SHARD("[4,2]", BIG, LITTLE ",\"crc32c\""),
	                                      BIG) ",\"crc32c\"]"});
	const lade_zarr_array *array = lade_zarr_as_array(node);
	const lade_zarr_shard *outer = array->chain.shard, *inner = outer->chunks.shard;
	assert_true(outer->index_first && outer->chunk_shape[0] == 8 && outer->index_extra == 0);
	assert_int_equal(outer->index.swap_size, 8);
	assert_true(inner->chunk_shape[1] == 2 && inner->index_extra == 4);
	assert_null(inner->chunks.shard);
	assert_int_equal(inner->chunks.swap_size, 4);
	assert_true(array->type.big);
	assert_int_equal(array->chain.step_count, 1);
	assert_int_equal(array->chain.array_step_count, 0);
	lade_zarr_unref(node);
	refused((members){.codecs = "[" SHARD("[4,2]", LITTLE, LITTLE) "]"}, LADE_E_CORRUPT,
	        "/codecs/0/configuration/chunk_shape/1: want chunks that divide a shard of 3");
	refused((members){.codecs = "[" SHARD("[4,3]", LITTLE,
	                                      LITTLE ",{\"name\":\"gzip\","
	                                             "\"configuration\":{\"level\":1}}") "]"},
	        LADE_E_CORRUPT,
	        "/codecs/0/configuration/index_codecs: codecs of an index must keep");
}

static void unknown_members(void **state)
{
	(void)state;
	lade_zarr_unref(array_of((members){.more = ",\"x\":{\"must_understand\":false}"}));
	refused((members){.more = ",\"x\":{}"}, LADE_E_UNSUPPORTED, "zarr.json at /x: an unknown");
	refused((members){.more = ",\"storage_transformers\":[{\"name\":\"t\"}]"},
	        LADE_E_UNSUPPORTED, "/storage_transformers");
	refused((members){.more = ",\"dimension_names\":[\"x\"]"}, LADE_E_CORRUPT,
	        "/dimension_names: want 2 names, there are 1");
	lade_zarr *node = array_of((members){
		.more = ",\"dimension_names\":[\"x\",null],\"attributes\":{\"n\":1e999,\"m\":"
	                "123456789012345678901234567890}"});
	assert_string_equal(lade_zarr_as_array(node)->axes[0].name, "x");
	assert_null(lade_zarr_as_array(node)->axes[1].name);
	assert_string_equal(lade_zarr_attributes(node),
	                    "{\"n\":1e999,\"m\":123456789012345678901234567890}");
	lade_zarr_unref(node);
}

/* ---- format 2, groups --------------------------------------------------------------------- */

static void format_2(void **state)
{
	(void)state;
	put("old/.zarray", "{\"zarr_format\":2,\"shape\":[10,6],\"chunks\":[4,3],\"dtype\":\">i4\","
	                   "\"fill_value\":null,\"order\":\"F\",\"filters\":[{\"id\":\"shuffle\","
	                   "\"elementsize\":4}],\"compressor\":{\"id\":\"lz4\",\"acceleration\":1},"
	                   "\"dimension_separator\":\"/\",\"anything\":1}");
	put("old/.zattrs", "{\"units\":\"K\"}");
	lade_zarr *node = open_node("/old//", LADE_OK, "");
	const lade_zarr_array *array = lade_zarr_as_array(node);
	const uint64_t index[2] = {2, 1};
	assert_int_equal(lade_zarr_format(node), 2);
	assert_string_equal(lade_zarr_path(node), "old");
	assert_string_equal(lade_zarr_attributes(node), "{\"units\":\"K\"}");
	assert_true(array->type.big && array->chain.swap_size == 4 && !array->fill_given);
	assert_true(array->chain.order[0] == 1 && array->chain.order[1] == 0);
	assert_int_equal(array->chain.step_count, 1);
	assert_int_equal(array->chain.steps[0].header_size, 4);
	assert_string_equal(lade_spec_text(array->chain.steps[0].spec), "shuffle(4)|lz4(level=1)");
	key_is(node, index, "old/2/1");
	lade_zarr_unref(node);
	put("old/.zarray", "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[1],\"dtype\":\"|O\","
	                   "\"fill_value\":0,\"order\":\"C\",\"filters\":[{\"id\":\"pickle\"}],"
	                   "\"compressor\":null}");
	open_node("old", LADE_E_UNSUPPORTED, "pickles run code and are not read");
	put("old/.zarray", "{\"zarr_format\":2.0}");
	open_node("old", LADE_E_CORRUPT,
	          "old/.zarray at /zarr_format: want zarr_format 2, have 2.0");
	put("old/.zarray", "{\"zarr_format\":1}");
	open_node("old", LADE_E_VERSION, "have 1");
	open_node("nowhere", LADE_E_NOT_FOUND, "'nowhere' has neither");
	open_node("a/../b", LADE_E_ARG, "..");
}

/* Members come from the group's metadata: their own documents are not there. */
static void members_of(lade_zarr *group, bool old)
{
	static const char *const paths[] = {"g", "g/a"};
	lade_zarr *inner, *array;
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(lade_zarr_member(group, i), paths[i]);
	assert_null(lade_zarr_member(group, 2));
	assert_int_equal(lade_zarr_member_open(group, "g", &inner, NULL), LADE_OK);
	assert_null(lade_zarr_as_array(inner));
	assert_string_equal(lade_zarr_member(inner, 0), "a");
	assert_null(lade_zarr_member(inner, 1));
	lade_zarr_unref(group);
	assert_int_equal(lade_zarr_member_open(inner, "a", &array, NULL), LADE_OK);
	assert_non_null(lade_zarr_as_array(array));
	assert_string_equal(lade_zarr_path(array), "top/g/a");
	assert_string_equal(lade_zarr_attributes(array), "{\"u\":1}");
	assert_int_equal(lade_zarr_format(array), old ? 2 : 3);
	lade_zarr *none;
	assert_int_equal(lade_zarr_member_open(inner, "b", &none, NULL), LADE_E_NOT_FOUND);
	lade_zarr_unref(inner);
	lade_zarr_unref(array);
}

static void consolidated(void **state)
{
	(void)state;
	char text[5000];
	snprintf(text, sizeof text,
	         "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":{\"kind\":"
	         "\"inline\",\"must_understand\":false,\"metadata\":{\"g\":{\"zarr_format\":3,"
	         "\"node_type\":\"group\"},\"g/a\":%s}}}",
	         v3((members){.more = ",\"attributes\":{\"u\":1}"}));
	put("top/zarr.json", text);
	members_of(open_node("top", LADE_OK, ""), false);
	lade_write gone = {.key = "top/zarr.json", .kind = LADE_DELETE_IF_VERSION};
	assert_int_equal(lade_store_write(memory, &gone, 1, NULL, NULL, NULL), LADE_OK);
	put("top/.zgroup", "{\"zarr_format\":2}");
	put("top/.zmetadata",
	    "{\"zarr_consolidated_format\":1,\"metadata\":{\".zgroup\":{\"zarr_format\":2},"
	    "\"g/.zgroup\":{\"zarr_format\":2},\"g/a/.zarray\":{\"zarr_format\":2,\"shape\":[1],"
	    "\"chunks\":[1],\"dtype\":\"<f4\",\"fill_value\":0,\"order\":\"C\",\"filters\":null,"
	    "\"compressor\":null},\"g/a/.zattrs\":{\"u\":1}}}");
	members_of(open_node("top", LADE_OK, ""), true);
}

/* Of equal keys the last one counts; escaped keys are found; keys need not be in order. */
static void many_members(void **state)
{
	(void)state;
	enum { COUNT = 3000 };
	size_t cap = COUNT * 600 + 1000, size;
	char *text = malloc(cap), path[32];
	lade_zarr *array;
	assert_non_null(text);
	size = (size_t)snprintf(text, cap,
	                        "{\"zarr_format\":3,\"node_type\":\"group\","
	                        "\"consolidated_metadata\":{\"kind\":\"inline\",\"metadata\":{"
	                        "\"\\u0061\\/b\":%s,\"m7\":{\"node_type\":0}",
	                        v3((members){.shape = "[1,1]"}));
	for (unsigned i = 0; i < COUNT; i++)
		size += (size_t)snprintf(text + size, cap - size, ",\"m%u\":%s",
		                         (i * 7919 + 1) % COUNT, v3((members){0}));
	strcpy(text + size, "}}}");
	put("many/zarr.json", text);
	free(text);
	lade_zarr *group = open_node("many", LADE_OK, "");
	for (unsigned i = 0; i < COUNT; i++) {
		snprintf(path, sizeof path, "m%u", i);
		assert_int_equal(lade_zarr_member_open(group, path, &array, NULL), LADE_OK);
		lade_zarr_unref(array);
	}
	assert_int_equal(lade_zarr_member_open(group, "m3000", &array, NULL), LADE_E_NOT_FOUND);
	assert_int_equal(lade_zarr_member_open(group, "a/b", &array, NULL), LADE_OK);
	assert_int_equal(lade_zarr_as_array(array)->axes[0].size, 1);
	lade_zarr_unref(array);
	assert_string_equal(lade_zarr_member(group, 0), "a/b");
	assert_non_null(lade_zarr_member(group, COUNT));
	assert_null(lade_zarr_member(group, COUNT + 1));
	lade_zarr_unref(group);
}

/* A document that is larger than the first read, and one above the limit. */
static void large_documents(void **state)
{
	(void)state;
	size_t size = 100000;
	char *text = malloc(size + 4096);
	assert_non_null(text);
	memset(text, ' ', size);
	strcpy(text + size, v3((members){0}));
	put("zarr.json", text);
	lade_zarr_unref(open_node("", LADE_OK, ""));
	lade_zarr_options options = {.struct_size = sizeof options, .document_max = 100000};
	lade_zarr *node;
	lade_error err;
	assert_int_equal(lade_zarr_open(memory, "", &options, &node, &err), LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "at most 100000"));
	free(text);
}

/* ---- a chunk --------------------------------------------------------------------------------- */

/* Reads the only chunk of an array by what its description says, with a layout. */
static void read_chunk(const char *path, const char *hex, int16_t *to, size_t count)
{
	unsigned char stored[256];
	uint64_t index[3] = {0};
	size_t shape[3], size = 0;
	ptrdiff_t strides[3];
	char key[LADE_KEY_MAX + 1];
	lade_error err;
	lade_zarr *node = open_node(path, LADE_OK, "");
	const lade_zarr_array *array = lade_zarr_as_array(node);
	const lade_zarr_chain *chain = &array->chain;
	for (unsigned byte; sscanf(hex + 2 * size, "%2x", &byte) == 1;)
		stored[size++] = (unsigned char)byte;
	assert_int_equal(lade_zarr_chunk_key(node, index, key, &err), LADE_OK);
	lade_write write = {.key = key, .src = lade_host_cspan(stored, size)};
	assert_int_equal(lade_store_write(memory, &write, 1, NULL, NULL, NULL), LADE_OK);
	memset(stored, 0, sizeof stored);
	lade_range range = {.key = key, .kind = LADE_RANGE_REST,
	                    .dst = lade_host_span(stored, sizeof stored)};
	assert_int_equal(lade_store_read(memory, &range, 1, NULL, NULL, NULL), LADE_OK);
	ptrdiff_t stride = (ptrdiff_t)array->type.size;
	for (size_t i = array->ndim; i-- > 0; stride *= (ptrdiff_t)array->axes[i].chunk_size) {
		shape[chain->order[i]] = (size_t)array->axes[i].chunk_size;
		strides[i] = stride;
	}
	lade_layout layout = {.struct_size = sizeof layout, .elem_size = (size_t)array->type.size,
	                      .ndim = array->ndim, .shape = shape, .order = chain->order,
	                      .strides = strides, .swap_size = chain->swap_size};
	const lade_zarr_step *step = &chain->steps[0];
	lade_segment segment = {.data = stored + step->header_size,
	                        .size = range.size - step->header_size};
	lade_item item = {.src = &segment, .src_count = 1, .layout = &layout,
	                  .dst = lade_host_span(to, count * sizeof *to)};
	assert_int_equal(chain->step_count, 1);
	if (lade_decode_into(lade_engine_default(), step->spec, &item, 1, NULL, NULL, &err))
		fail_msg("%s", err.message);
	lade_zarr_unref(node);
}

/* The chunks are zarr-python 3.4.2's, of np.arange(12).reshape(4, 3) * 1000 - 5000 in the order F,
 * and of np.arange(24).reshape(2, 3, 4). */
static void chunks_of_zarr_python(void **state)
{
	(void)state;
	static const char three[] =
		"28b52ffd2030810100000000040008000c00100014000100050009000d0011001500020006000a00"
		"0e0012001600030007000b000f00130017965b6d23";
	int16_t values[24];
	put("two/.zarray", "{\"shape\":[4,3],\"chunks\":[4,3],\"dtype\":\"<i2\",\"fill_value\":0,"
	                   "\"order\":\"F\",\"filters\":[{\"id\":\"shuffle\",\"elementsize\":2}],"
	                   "\"dimension_separator\":\".\",\"compressor\":{\"id\":\"lz4\","
	                   "\"acceleration\":1},\"zarr_format\":2}");
	read_chunk("two", "18000000f0097830e8a06018d0884800b870ecf8030ff0fc0713f4000b17", values,
	           12);
	for (int i = 0; i < 12; i++)
		assert_int_equal(values[i], i * 1000 - 5000);
	put("three/zarr.json",
	    v3((members){.shape = "[2,3,4]", .grid = "[2,3,4]", .type = "\"int16\"",
	                 .codecs = "[{\"name\":\"transpose\",\"configuration\":{\"order\":"
	                           "[2,0,1]}}," BIG ",{\"name\":\"zstd\",\"configuration\":"
	                           "{\"level\":0,\"checksum\":false}},{\"name\":\"crc32c\"}]"}));
	read_chunk("three", three, values, 24);
	for (int i = 0; i < 24; i++)
		assert_int_equal(values[i], i);
}

/* ---- verdicts of others ---------------------------------------------------------------- */

/* golden/zarr/README.md says what the columns are.  Returns the number of lines. */
static size_t check_verdicts(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0, count = 0;
	assert_non_null(file);
	while (getline(&line, &cap, file) > 0) {
		char format = line[1], *theirs = strchr(line, '\t') + 1;
		char *ours = strchr(theirs, '\t') + 1, *text = strchr(ours, '\t') + 1;
		lade_zarr_options options = {.struct_size = sizeof options,
		                             .kind = LADE_ZARR_ARRAY,
		                             .format = format == '3' ? 3 : 2};
		lade_zarr *node;
		lade_error err = {0};
		put(format == '3' ? "v/zarr.json" : "v/.zarray", text);
		lade_status status = lade_zarr_open(memory, "v", &options, &node, &err);
		if ((status == LADE_OK) != (ours[0] == 'g'))
			fail_msg("line %zu: want %.4s, have %s %s", count + 1, ours,
			         lade_status_name(status), err.message);
		if (status == LADE_OK)
			lade_zarr_unref(node);
		count++;
	}
	free(line);
	fclose(file);
	return count;
}

static void verdicts(void **state)
{
	(void)state;
	assert_int_equal(check_verdicts(LADE_TESTS_DIR "/golden/zarr/verdicts.txt"), 407);
	assert_int_equal(check_verdicts(LADE_TESTS_DIR "/golden/zarr/tensorstore.txt"), 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_texts),      cmocka_unit_test(json_values),
		cmocka_unit_test(keys),            cmocka_unit_test(huge_shapes),
		cmocka_unit_test(rectilinear),     cmocka_unit_test(fills),
		cmocka_unit_test(types),           cmocka_unit_test(codecs),
		cmocka_unit_test(transposes),      cmocka_unit_test(shards),
		cmocka_unit_test(unknown_members), cmocka_unit_test(format_2),
		cmocka_unit_test(consolidated),    cmocka_unit_test(many_members),
		cmocka_unit_test(large_documents),
		cmocka_unit_test(chunks_of_zarr_python), cmocka_unit_test(verdicts),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
