/*
 * test_oom_zarr.c: every allocation of opening a Zarr node fails in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "oom.h"

#include <lade/zarr.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(opening)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
