/*
 * test_registry.c: which records of algorithms and implementations are taken, and what of them the
 * engine keeps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static lade_engine *new_engine(void)
{
	lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	lade_engine *engine = NULL;
	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_OK);
	return engine;
}

/* ---- functions of records ----------------------------------------------------------------- */

static size_t same_bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size;
}

static lade_status same_size(const lade_stage *stage, const void *src, size_t size,
                             uint64_t *decoded, lade_error *err)
{
	(void)stage, (void)src, (void)err;
	*decoded = size;
	return LADE_OK;
}

static lade_status flip(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                        lade_error *err)
{
	(void)run, (void)err;
	*dst_size = src.size;
	for (size_t i = 0; i < src.size; i++)
		((uint8_t *)dst.data)[i] = ((const uint8_t *)src.data)[i] ^ 0x80;
	return LADE_OK;
}

/* Tiles of bytes. */
static lade_status flip_tile(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	(void)run, (void)err;
	for (size_t i = 0; i < tile->elem_count; i++)
		((uint8_t *)tile->dst)[i] = ((const uint8_t *)tile->src)[i] ^ 0x55;
	return LADE_OK;
}

static void byte_sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	(void)stage;
	*decoded = *encoded = 1;
}

static void flip_state_free(void *ctx, void *state)
{
	(void)ctx, (void)state;
}

static lade_status flip_part(const lade_run *run, lade_cspan src, size_t part, lade_span dst,
                             lade_error *err)
{
	(void)run, (void)src, (void)part, (void)dst, (void)err;
	return LADE_OK;
}

static lade_status no_sum(const lade_run *run, lade_cspan src, uint64_t *sum, lade_error *err)
{
	(void)run, (void)src, (void)err;
	*sum = 0x64636261;
	return LADE_OK;
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void bad_records_are_refused(void **state)
{
	(void)state;
	lade_engine *engine = new_engine();
	static const lade_option bad_option[] = {{.name = "Bad Name"}};
	lade_algorithm good = {.struct_size = sizeof good, .name = "mine", .bound = same_bound,
	                       .decoded_size = same_size};
	lade_algorithm a = good;
	a.struct_size = 4;
	assert_int_equal(lade_engine_add_algorithm(engine, &a, NULL), LADE_E_ARG);
	a = good;
	a.name = "zstd";
	assert_int_equal(lade_engine_add_algorithm(engine, &a, NULL), LADE_E_ARG);
	a.name = "Up";
	assert_int_equal(lade_engine_add_algorithm(engine, &a, NULL), LADE_E_ARG);
	a.name = "a-name-that-is-longer-than-31-bytes";
	assert_int_equal(lade_engine_add_algorithm(engine, &a, NULL), LADE_E_ARG);
	a = good;
	a.id = 7;
	assert_int_equal(lade_engine_add_algorithm(engine, &a, NULL), LADE_E_ARG);
	a = good;
	a.bound = NULL;
	assert_int_equal(lade_engine_add_algorithm(engine, &a, NULL), LADE_E_ARG);
	a = good;
	a.size_field = 5;
	assert_int_equal(lade_engine_add_algorithm(engine, &a, NULL), LADE_E_ARG);
	a = good;
	a.options = bad_option;
	a.option_count = 1;
	assert_int_equal(lade_engine_add_algorithm(engine, &a, NULL), LADE_E_ARG);
	assert_int_equal(lade_engine_add_algorithm(engine, &good, NULL), LADE_OK);
	lade_codec_ops ops = {.struct_size = sizeof ops, .run = flip};
	lade_implementation fine = {
		.struct_size = sizeof fine, .name = "mine/x", .algorithm = "mine", .codec = &ops};
	lade_implementation p = fine;
	p.direction = (lade_direction)5;
	assert_int_equal(lade_engine_add_implementation(engine, &p, NULL), LADE_E_ARG);
	p = fine;
	p.state_free = flip_state_free;
	assert_int_equal(lade_engine_add_implementation(engine, &p, NULL), LADE_E_ARG);
	lade_engine_free(engine);
}

/* Adds an implementation that is refused, with a message that has 'why'. */
static void refused(lade_engine *engine, const lade_implementation *p, const char *why)
{
	lade_error err;
	assert_int_equal(lade_engine_add_implementation(engine, p, &err), LADE_E_ARG);
	if (!strstr(err.message, why))
		fail_msg("\"%s\" does not say \"%s\"", err.message, why);
}

static void bad_tables_are_refused(void **state)
{
	(void)state;
	lade_engine *engine = new_engine();
	lade_algorithm algorithm = {.struct_size = sizeof algorithm, .name = "mine",
	                            .flags = LADE_ALGORITHM_FIXED_SIZE, .bound = same_bound,
	                            .decoded_size = same_size};
	lade_codec_ops codec = {.struct_size = sizeof codec, .run = flip};
	lade_tile_ops tile = {.struct_size = sizeof tile, .kind = LADE_TILE_IN_ORDER,
	                      .sizes = byte_sizes, .run = flip_tile};
	lade_checksum_ops sum = {.struct_size = sizeof sum, .run = no_sum};
	lade_implementation none = {
		.struct_size = sizeof none, .name = "mine/x", .algorithm = "mine"};
	assert_int_equal(lade_engine_add_algorithm(engine, &algorithm, NULL), LADE_OK);
	algorithm.name = "loose";
	algorithm.flags = 0;
	assert_int_equal(lade_engine_add_algorithm(engine, &algorithm, NULL), LADE_OK);

	/* One of the three, and the one that the algorithm wants. */
	lade_implementation p = none;
	refused(engine, &p, "mine/x: want 1 of codec, tile and checksum, have 0");
	p.codec = &codec;
	p.tile = &tile;
	refused(engine, &p, "have 2: codec tile");
	p.checksum = &sum;
	refused(engine, &p, "have 3: codec tile checksum");
	p.codec = NULL;
	refused(engine, &p, "have 2: tile checksum");
	p.tile = NULL;
	refused(engine, &p, "want codec or tile for mine, have checksum");
	p = none;
	p.algorithm = "crc32c";
	p.codec = &codec;
	refused(engine, &p, "want checksum for crc32c, have codec");
	p.codec = NULL;
	p.tile = &tile;
	refused(engine, &p, "want checksum for crc32c, have tile");

	/* What is in them. */
	p = none;
	p.codec = &codec;
	codec.run = NULL;
	refused(engine, &p, "codec.run");
	codec.run = flip;
	codec.run_part = flip_part;
	refused(engine, &p, "codec.parts and codec.run_part");
	codec.run_part = NULL;
	codec.struct_size = 0;
	refused(engine, &p, "codec: struct_size is 0");
	p.codec = NULL;
	p.tile = &tile;
	tile.kind = (lade_tile)0;
	refused(engine, &p, "tile.kind is 0");
	tile.kind = (lade_tile)4;
	refused(engine, &p, "tile.kind is 4");
	tile.kind = LADE_TILE_IN_ORDER;
	tile.sizes = NULL;
	refused(engine, &p, "tile.run and tile.sizes");
	tile.sizes = byte_sizes;
	p.algorithm = "loose";
	refused(engine, &p, "LADE_ALGORITHM_FIXED_SIZE");
	p = none;
	p.algorithm = "crc32c";
	p.checksum = &sum;
	sum.run = NULL;
	refused(engine, &p, "checksum.run");

	/* Of another version: longer with zeros is taken, with anything else it is not. */
	struct {
		lade_codec_ops ops;
		uint64_t more;
	} longer = {{.struct_size = sizeof longer, .run = flip}, 1};
	p = none;
	p.codec = &longer.ops;
	refused(engine, &p, "codec: struct_size is");
	longer.more = 0;
	assert_int_equal(lade_engine_add_implementation(engine, &p, NULL), LADE_OK);
	lade_engine_free(engine);
}

/* ---- what is kept --------------------------------------------------------------------------- */

/* The tables are the caller's again after the call: what is registered does not change with them.
 * Those that follow make the registry's own lists grow. */
static void tables_are_copied(void **state)
{
	(void)state;
	lade_engine *engine = new_engine();
	lade_error err = {0};
	uint8_t raw[300], mid[400], back[300];
	lade_codec_ops codec = {.struct_size = sizeof codec, .run = flip};
	lade_tile_ops tile = {.struct_size = sizeof tile, .kind = LADE_TILE_IN_ORDER,
	                      .sizes = byte_sizes, .run = flip_tile};
	lade_checksum_ops sum = {.struct_size = sizeof sum, .run = no_sum};
	const lade_implementation all[] = {
		{.name = "copy/flip", .algorithm = "copy", .codec = &codec},
		{.name = "zigzag/flip", .algorithm = "zigzag", .tile = &tile},
		{.name = "crc32c/none", .algorithm = "crc32c", .checksum = &sum},
	};
	for (int i = 0; i < 300; i++) {
		lade_implementation p = all[i % 3];
		p.struct_size = sizeof p;
		p.priority = 1;
		assert_int_equal(lade_engine_add_implementation(engine, &p, &err), LADE_OK);
	}
	memset(&codec, 0xA5, sizeof codec);
	memset(&tile, 0xA5, sizeof tile);
	memset(&sum, 0xA5, sizeof sum);
	memset(raw, 0x11, sizeof raw);
	lade_spec *spec;
	assert_int_equal(lade_spec_parse(engine, "zigzag(<i4)|copy|crc32c", &spec, &err), LADE_OK);
	size_t size, got;
	assert_int_equal(lade_encode(engine, spec, lade_host_cspan(raw, sizeof raw),
	                             lade_host_span(mid, sizeof mid), &size, &err),
	                 LADE_OK);
	assert_int_equal(size, sizeof raw + 4);
	for (size_t i = 0; i < sizeof raw; i++)
		assert_int_equal(mid[i], 0x11 ^ 0x55 ^ 0x80);
	assert_memory_equal(mid + sizeof raw, "abcd", 4);
	/* The library's own decoders find another checksum. */
	assert_int_equal(lade_decode(engine, spec, lade_host_cspan(mid, size),
	                             lade_host_span(back, sizeof back), &got, &err),
	                 LADE_E_CHECKSUM);
	lade_spec_unref(spec);
	lade_engine_free(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_records_are_refused),
		cmocka_unit_test(bad_tables_are_refused),
		cmocka_unit_test(tables_are_copied),
	};
	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
