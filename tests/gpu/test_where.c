/*
 * test_where.c: what lade_device_takes() says is what calls on a device do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

static lade_engine *engine;
static lade_spec *lz4, *gzip;

static int begin(void **state)
{
	(void)state;
	lade_engine_options o = {.struct_size = sizeof o, .threads = 1};
	OK(lade_engine_new(&o, &engine, err));
	lz4 = spec_of(engine, "lz4");
	gzip = spec_of(engine, "gzip");
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_spec_unref(lz4);
	lade_spec_unref(gzip);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

/* What a call on the host's bytes says that has to run on device 0. */
static lade_status asked(const lade_spec *spec, lade_direction direction)
{
	static uint8_t nothing[1];
	const lade_segment segment = {.data = nothing, .size = 2000};
	const lade_item item = {.src = &segment, .src_count = 1,
	                        .dst = lade_host_span(nothing, 2000)};
	const lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	const lade_call call = {.struct_size = sizeof call, .direction = direction, .spec = spec,
	                        .items = &item, .count = 1, .options = &o};
	lade_candidate all[64];
	size_t count;
	return lade_explain(engine, &call, all, 64, &count, NULL);
}

static void a_device_takes_what_it_does(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"copy", "lz4", "snappy", "zstd", "deflate", "gzip", "gdeflate", "ans", "bitcomp",
		"cascaded", "shuffle(4)|lz4", "bitshuffle(4)|gzip", "lz4|crc32c",
		"shuffle(4)|ans|xxh64"};
	size_t taken = 0, refused = 0;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		lade_spec *spec;
		if (lade_spec_parse(engine, texts[i], &spec, NULL) != LADE_OK)
			continue; /* this build leaves it out */
		for (int k = 0; k < 2; k++) {
			lade_direction direction = k ? LADE_DECODE : LADE_ENCODE;
			lade_workload work = {.direction = direction, .largest = 2000};
			lade_status takes = lade_device_takes(engine, spec, &work, 0, NULL);
			assert_int_equal(takes, asked(spec, direction));
			taken += takes == LADE_OK;
			refused += takes != LADE_OK;
		}
		lade_spec_unref(spec);
	}
	assert_true(taken > 0 && refused > 0);
}

static void what_it_does_not_take_is_named(void **state)
{
	(void)state;
	lade_workload work = {.direction = LADE_DECODE};
	OK(lade_device_takes(engine, lz4, &work, 0, err));
	FAILS(LADE_E_NO_DEVICE, "99", lade_device_takes(engine, lz4, &work, 99, err));
	FAILS(LADE_E_NO_DEVICE, "-1", lade_device_takes(engine, lz4, &work, -1, err));
	FAILS(LADE_E_UNSUPPORTED, "gzip", lade_device_takes(engine, gzip, &work, 0, err));
	FAILS(LADE_E_ARG, "work", lade_device_takes(engine, lz4, NULL, 0, err));
	FAILS(LADE_E_ARG, "spec", lade_device_takes(engine, NULL, &work, 0, err));
	work.largest = (size_t)1 << 30;
	FAILS(LADE_E_LIMIT, "kernels take", lade_device_takes(engine, lz4, &work, 0, err));
	work.largest = 1;
	work.has_dict = true;
	FAILS(LADE_E_UNSUPPORTED, "dictionar", lade_device_takes(engine, lz4, &work, 0, err));
	work.direction = (lade_direction)7;
	FAILS(LADE_E_ARG, "7", lade_device_takes(engine, lz4, &work, 0, err));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_device_takes_what_it_does, begin, end),
		cmocka_unit_test_setup_teardown(what_it_does_not_take_is_named, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
