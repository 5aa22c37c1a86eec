/*
 * test_oom_zarr.c: every allocation of opening, making and changing Zarr nodes fails in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "oom.h"

#include <lade/batch.h>
#include <lade/zarr_write.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ARRAY \
	"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[64,64],\"data_type\":{\"name\":" \
	"\"struct\",\"configuration\":{\"fields\":[{\"name\":\"a\",\"data_type\":\"r16\"}]}}," \
	"\"chunk_grid\":{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\"," \
	"\"chunk_shapes\":[[32,32],8]}},\"chunk_key_encoding\":{\"name\":\"default\"}," \
	"\"fill_value\":{\"a\":\"AAA=\"},\"attributes\":{\"x\":1},\"dimension_names\":[\"y\"," \
	"\"x\"]," \
	"\"codecs\":[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},{\"name\":" \
	"\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[8,8],\"codecs\":[" LITTLE \
	",{\"name\":\"numcodecs.bz2\",\"configuration\":{}}],\"index_codecs\":[" LITTLE \
	",\"crc32c\"]}}]}"
#define GROUP \
	"{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":{\"kind\":" \
	"\"inline\"," \
	"\"metadata\":{\"a\":" ARRAY "}}}"
#define OLD \
	"{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":[[\"a\",\">i4\"]],\"fill_" \
	"value\":" \
	"\"AAAAAA==\",\"order\":\"F\",\"filters\":[{\"id\":\"shuffle\"}],\"compressor\":{\"id\":" \
	"\"zstd\",\"level\":1}}"

static lade_store *store;

static lade_status scenario(void *ctx, lade_error *err)
{
	lade_zarr *group = NULL, *array = NULL, *old = NULL;
	(void)ctx;
	lade_status status = lade_zarr_open(store, "g", NULL, &group, err);
	if (status == LADE_OK)
		status = lade_zarr_member_open(group, "a", &array, err);
	if (status == LADE_OK)
		status = lade_zarr_open(store, "old", NULL, &old, err);
	lade_zarr_unref(group);
	lade_zarr_unref(array);
	lade_zarr_unref(old);
	return status;
}

static void opening(void **state)
{
	static const char *const values[][2] = {{"g/zarr.json", GROUP}, {"old/.zarray", OLD}};
	(void)state;
	assert_int_equal(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, NULL), LADE_OK);
	for (size_t i = 0; i < 2; i++) {
		lade_write write = {.key = values[i][0],
		                    .src = lade_host_cspan(values[i][1], strlen(values[i][1]))};
		assert_int_equal(lade_store_write(store, &write, 1, NULL, NULL, NULL), LADE_OK);
	}
	assert_true(oom_run("opening nodes", scenario, NULL) > 20);
	lade_store_unref(store);
}

/* Two nodes in a store of its own; they are changed and deleted. */
static lade_status changes(void *ctx, lade_error *err)
{
	const uint64_t shape[2] = {10, 6}, chunk[2] = {4, 3}, smaller[2] = {3, 6};
	lade_zarr_description d = {.struct_size = sizeof d, .kind = LADE_ZARR_ARRAY, .ndim = 2,
	                           .shape = shape, .chunk_shape = chunk, .inner_shape = chunk,
	                           .type = "[[\"a\",\"<i4\"],[\"b\",\">f8\"]]",
	                           .fill = "{\"a\":1}", .attributes = "{\"x\":[1,2]}"};
	lade_store *own;
	lade_zarr *array = NULL, *old = NULL, *group = NULL, *now = NULL;
	(void)ctx;
	lade_status status = lade_store_memory_new(LADE_PLACE_HOST, NULL, &own, err);
	if (status != LADE_OK)
		return status;
	status = lade_zarr_create(own, "g/a", &d, NULL, &array, err);
	d.format = 2;
	d.inner_shape = NULL;
	d.fill = NULL;
	if (status == LADE_OK)
		status = lade_zarr_create(own, "old/a", &d, NULL, &old, err);
	if (status == LADE_OK)
		status = lade_zarr_set_attributes(array, "{\"y\":2}", NULL, err);
	if (status == LADE_OK)
		status = lade_zarr_resize(old, smaller, NULL, err);
	if (status == LADE_OK)
		status = lade_zarr_open(own, "g", NULL, &group, err);
	if (status == LADE_OK)
		status = lade_zarr_consolidate(group, &now, err);
	if (status == LADE_OK)
		status = lade_zarr_delete(own, "old", err);
	lade_zarr_unref(now);
	lade_zarr_unref(group);
	lade_zarr_unref(old);
	lade_zarr_unref(array);
	lade_store_unref(own);
	return status;
}

static void changing(void **state)
{
	(void)state;
	assert_true(oom_run("changing nodes", changes, NULL) > 40);
}

/* All ways to a value: whole, in part, in nested shards, strings, more of an array. */
static lade_status write_nodes(lade_engine *engine, lade_store *own, lade_error *err)
{
	static const uint64_t shape[2] = {16, 6}, chunk[2] = {8, 4}, inner[2] = {4, 2};
	static const char shards[] =
		"[{\"name\":\"cast_value\",\"configuration\":{\"data_type\":\"int32\"}},"
		"{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,2],"
		"\"codecs\":[" LITTLE ",\"crc32c\"],\"index_codecs\":[" LITTLE "]}},{\"name\":"
		"\"conditional\",\"configuration\":{\"codecs\":[\"crc32c\",{\"name\":\"gzip\","
		"\"configuration\":{\"level\":1}}]}}]";
	static const char *const codecs[] = {
		"[{\"name\":\"numcodecs.lz4\",\"configuration\":{}},\"crc32c\"]", shards, NULL};
	static const char *const types[] = {"int16", "int16", "string"};
	static const int64_t offsets[97] = {0};
	int16_t data[96] = {1, 2, 3};
	const lade_zarr_write_options options = {
		.struct_size = sizeof options, .engine = engine, .threads = 1};
	lade_status status = LADE_OK;
	for (int i = 0; status == LADE_OK && i < 3; i++) {
		lade_zarr_description d = {.struct_size = sizeof d, .kind = LADE_ZARR_ARRAY,
		                           .ndim = 2, .shape = shape, .chunk_shape = chunk,
		                           .inner_shape = i == 1 ? inner : NULL,
		                           .type = types[i], .codecs = codecs[i]};
		const lade_zarr_source source = {.struct_size = sizeof source,
		                                 .offsets = i == 2 ? offsets : NULL,
		                                 .span = lade_host_cspan(data, sizeof data)};
		const lade_zarr_append append = {.struct_size = sizeof append, .count = 1,
		                                 .source = &source, .options = &options};
		lade_zarr_index axis = {.kind = LADE_ZARR_SLICE, .start = 3, .stop = 5};
		const lade_zarr_selection part = {.struct_size = sizeof part, .axes = &axis,
		                                  .axis_count = 1, .index_size = sizeof axis};
		lade_zarr *array = NULL;
		status = lade_zarr_create(own, types[i], &d,
		                          &(lade_zarr_create_options){
			                          .struct_size = sizeof(lade_zarr_create_options),
			                          .exists = LADE_ZARR_REPLACE},
		                          &array, err);
		if (status == LADE_OK)
			status = lade_zarr_write(array, NULL, &source, &options, NULL, err);
		if (status == LADE_OK)
			status = lade_zarr_write(array, &part, &source, &options, NULL, err);
		if (status == LADE_OK)
			status = lade_zarr_append_to(array, &append, NULL, NULL, err);
		lade_zarr_unref(array);
	}
	return status;
}

static lade_status writes(void *ctx, lade_error *err)
{
	const lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	lade_engine *engine;
	lade_store *own = NULL;
	(void)ctx;
	lade_status status = lade_engine_new(&options, &engine, err);
	if (status != LADE_OK)
		return status;
	status = lade_store_memory_new(LADE_PLACE_HOST, NULL, &own, err);
	if (status == LADE_OK)
		status = write_nodes(engine, own, err);
	lade_store_unref(own);
	lade_engine_free(engine);
	return status;
}

static void writing(void **state)
{
	(void)state;
	assert_true(oom_run("writing elements", writes, NULL) > 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(opening), cmocka_unit_test(changing),
	                                   cmocka_unit_test(writing)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
