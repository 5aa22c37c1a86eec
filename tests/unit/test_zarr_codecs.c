/*
 * test_zarr_codecs.c: chains with codecs beyond the core: a caller's own, and those of
 * zarr-extensions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "guard.h"

#include <lade/batch.h>
#include <lade/zarr_write.h>

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

static void put(const char *key, const void *data, size_t size)
{
	lade_write write = {.key = key, .src = lade_host_cspan(data, size)};
	lade_error err;
	if (lade_store_write(memory, &write, 1, NULL, NULL, &err) != LADE_OK)
		fail_msg("%s", err.message);
}

/* An array of format 3 with chunks of its own size, at "zarr.json". */
static void put_array(const char *shape, const char *type, const char *codecs)
{
	char text[4096];
	int size =
		snprintf(text, sizeof text,
	                 "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":%s,"
	                 "\"data_type\":\"%s\",\"chunk_grid\":{\"name\":\"regular\","
	                 "\"configuration\":{\"chunk_shape\":%s}},\"chunk_key_encoding\":"
	                 "{\"name\":\"default\"},\"fill_value\":%s,\"codecs\":[%s]}",
	                 shape, type, shape, strncmp(type, "complex", 7) ? "0" : "[0,0]", codecs);
	put("zarr.json", text, (size_t)size);
}

static lade_zarr *open_array(const lade_zarr_options *options)
{
	lade_zarr *node;
	lade_error err = {0};
	if (lade_zarr_open(memory, "", options, &node, &err) != LADE_OK)
		fail_msg("%s", err.message);
	return node;
}

static void refused(const lade_zarr_options *options, lade_status want, const char *message)
{
	lade_zarr *node;
	lade_error err = {0};
	lade_status status = lade_zarr_open(memory, "", options, &node, &err);
	if (status != want || !strstr(err.message, message))
		fail_msg("want %s with \"%s\", have %s: %s", lade_status_name(want), message,
		         lade_status_name(status), err.message);
}

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

/* ---- a caller's codec: each byte is added to a number ------------------------------------ */

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

static lade_status add(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                       lade_error *err)
{
	int64_t by = run->ctx ? -run->stage->option[0].i : run->stage->option[0].i;
	*dst_size = 0;
	if (dst.size < src.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET, "want %zu bytes, have %zu",
		                 src.size, dst.size);
	for (size_t i = 0; i < src.size; i++)
		((uint8_t *)dst.data)[i] = (uint8_t)(((const uint8_t *)src.data)[i] + by);
	*dst_size = src.size;
	return LADE_OK;
}

static lade_engine *engine_with_add(void)
{
	static const lade_option options[] = {
		{.name = "by", .type = LADE_OPTION_INT, .required = true, .max = 255}};
	static const lade_algorithm algorithm = {.struct_size = sizeof algorithm,
	                                         .name = "add",
	                                         .options = options,
	                                         .option_count = 1,
	                                         .bound = same_bound,
	                                         .decoded_size = same_size};
	static const lade_codec_ops ops = {.struct_size = sizeof ops, .run = add};
	static char back;
	lade_implementation way = {
		.struct_size = sizeof way, .name = "add/test", .algorithm = "add", .codec = &ops};
	lade_engine *engine;
	assert_int_equal(lade_engine_new(NULL, &engine, NULL), LADE_OK);
	assert_int_equal(lade_engine_add_algorithm(engine, &algorithm, NULL), LADE_OK);
	assert_int_equal(lade_engine_add_implementation(engine, &way, NULL), LADE_OK);
	way.direction = LADE_DECODE;
	way.ctx = &back;
	assert_int_equal(lade_engine_add_implementation(engine, &way, NULL), LADE_OK);
	return engine;
}

typedef struct asked {
	char name[32], configuration[64], type[32];
	uint64_t shape[2];
	const char *spec; /* the answer; NULL: not ours */
	lade_zarr_codec_kind kind;
} asked;

static lade_status answer(void *ctx, lade_zarr_codec *codec, lade_error *err)
{
	asked *a = ctx;
	snprintf(a->name, sizeof a->name, "%s", codec->name);
	snprintf(a->configuration, sizeof a->configuration, "%s", codec->configuration);
	snprintf(a->type, sizeof a->type, "%s", codec->type->name);
	for (size_t i = 0; i < codec->ndim && i < 2; i++)
		a->shape[i] = codec->chunk_shape[i];
	if (!a->spec)
		return LADE_E_NOT_FOUND;
	if (!a->spec[0])
		return lade_fail(err, LADE_E_VALUE, LADE_NO_OFFSET, "this one is never good");
	codec->kind = a->kind;
	snprintf(codec->spec, sizeof codec->spec, "%s", a->spec);
	return LADE_OK;
}

/* The array [2, 3] of 16-bit numbers, whose chunk is stored transposed, is read and written: with
 * the caller's engine, which is the default, and with another. */
static void read_own(lade_engine *engine, const lade_zarr *node, const uint8_t *stored, size_t size,
                     const uint8_t *columns)
{
	uint8_t have[12];
	lade_error err = {0};
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(have, sizeof have)};
	lade_zarr_read_options options = {.struct_size = sizeof options, .engine = engine};
	put("c/0/0", stored, size);
	if (lade_zarr_read(node, NULL, &target, &options, NULL, &err))
		fail_msg("%s", err.message);
	for (size_t y = 0; y < 2; y++)
		for (size_t x = 0; x < 3; x++)
			assert_memory_equal(have + 2 * (3 * y + x), columns + 2 * (2 * x + y), 2);
	assert_int_equal(lade_zarr_read(node, NULL, &target, NULL, NULL, &err), LADE_OK);
	options.engine = lade_engine_default();
	assert_int_equal(lade_zarr_read(node, NULL, &target, &options, NULL, &err),
	                 LADE_E_NOT_FOUND);
	assert_non_null(strstr(err.message, "added to another engine"));

	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan("twelve bytes", sizeof have)};
	lade_zarr_write_options write = {.struct_size = sizeof write,
	                                 .engine = lade_engine_default()};
	assert_int_equal(lade_zarr_write(node, NULL, &source, &write, NULL, &err),
	                 LADE_E_NOT_FOUND);
	if (lade_zarr_write(node, NULL, &source, NULL, NULL, &err) ||
	    lade_zarr_read(node, NULL, &target, NULL, NULL, &err))
		fail_msg("%s", err.message);
	assert_memory_equal(have, source.span.data, sizeof have);
}

static void own_codec(void **state)
{
	(void)state;
	asked a = {.spec = "add(7)", .kind = LADE_ZARR_ARRAY_BYTES};
	lade_engine *engine = engine_with_add();
	lade_zarr_options options = {
		.struct_size = sizeof options, .engine = engine, .codec = answer, .codec_ctx = &a};
	put_array("[2,3]", "uint16",
	          "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"
	          "{\"name\":\"example.add\",\"configuration\":{\"by\":7}},"
	          "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}");
	lade_zarr *node = open_array(&options);
	const lade_zarr_chain *chain = &lade_zarr_as_array(node)->chain;
	assert_string_equal(a.name, "example.add");
	assert_string_equal(a.configuration, "{\"by\":7}");
	assert_string_equal(a.type, "uint16");
	assert_int_equal(a.shape[0], 3);
	assert_int_equal(a.shape[1], 2);
	assert_int_equal(chain->step_count, 1);
	assert_non_null(chain->order);
	assert_string_equal(lade_spec_text(chain->steps[0].spec), "add(7)|zstd(level=1)");
	uint8_t from[12], stored[100], to[12];
	for (size_t i = 0; i < sizeof from; i++)
		from[i] = (uint8_t)(250 + i);
	size_t size, got;
	lade_error err = {0};
	if (lade_encode(engine, chain->steps[0].spec, lade_host_cspan(from, sizeof from),
	                lade_host_span(stored, sizeof stored), &size, &err) ||
	    lade_decode(engine, chain->steps[0].spec, lade_host_cspan(stored, size),
	                lade_host_span(to, sizeof to), &got, &err))
		fail_msg("%s", err.message);
	assert_memory_equal(from, to, sizeof from);
	read_own(engine, node, stored, size, from);
	lade_zarr_unref(node);

	/* In a shard, the shape is that of its chunks. */
	put_array("[4,6]", "uint8",
	          "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,3],"
	          "\"codecs\":[\"example.add\"],\"index_codecs\":[" LITTLE ",\"crc32c\"]}}");
	node = open_array(&options);
	assert_int_equal(a.shape[0], 2);
	assert_int_equal(a.shape[1], 3);
	assert_string_equal(a.configuration, "{}");
	lade_zarr_unref(node);
	lade_engine_free(engine);
}

static void own_codec_of_format_2(void **state)
{
	(void)state;
	asked a = {.spec = "shuffle(2)|zlib(level=1)"};
	lade_zarr_options options = {
		.struct_size = sizeof options, .codec = answer, .codec_ctx = &a, .format = 2};
	const char *text = "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[4],\"dtype\":\"<i2\","
			   "\"fill_value\":0,\"order\":\"C\",\"filters\":[{\"id\":\"pcodec\","
			   "\"level\":8}],\"compressor\":{\"id\":\"crc32\"}}";
	put(".zarray", text, strlen(text));
	lade_zarr *node = open_array(&options);
	const lade_zarr_chain *chain = &lade_zarr_as_array(node)->chain;
	assert_string_equal(a.name, "pcodec");
	assert_string_equal(a.configuration, "{\"id\":\"pcodec\",\"level\":8}");
	assert_int_equal(a.shape[0], 4);
	assert_string_equal(lade_spec_text(chain->steps[0].spec),
	                    "shuffle(2)|zlib(level=1)|crc32(location=start)");
	lade_zarr_unref(node);
}

static void own_codec_refused(void **state)
{
	(void)state;
	asked a = {0};
	lade_zarr_options options = {
		.struct_size = sizeof options, .codec = answer, .codec_ctx = &a, .format = 3};
	put_array("[4]", "uint8", "\"example.add\"");
	refused(&options, LADE_E_UNSUPPORTED, "/codecs/0: no known codec");
	a.spec = "";
	refused(&options, LADE_E_VALUE, "zarr.json at /codecs/0: this one is never good");
	a.spec = "add(7)"; /* no engine knows it */
	refused(&options, LADE_E_NOT_FOUND, "add");
	a.spec = "shuffle(1)";
	a.kind = (lade_zarr_codec_kind)3;
	refused(&options, LADE_E_ARG, "the caller's kind is 3");
	a.kind = LADE_ZARR_BYTES_BYTES;
	refused(&options, LADE_E_CORRUPT, "want one codec from arrays to bytes, there are 0");
	/* What the library knows and does not run opens with a reason. */
	a.spec = NULL;
	put_array("[4]", "uint8", "{\"name\":\"zfp\",\"configuration\":{\"mode\":\"reversible\"}}");
	lade_zarr *node = open_array(&options);
	const lade_zarr_step *step = lade_zarr_as_array(node)->chain.steps;
	assert_null(step->spec);
	assert_string_equal(step->name, "zfp");
	assert_string_equal(step->configuration, "{\"mode\":\"reversible\"}");
	assert_non_null(step->why);
	lade_zarr_unref(node);
}

/* ---- reshape ------------------------------------------------------------------------------ */

static void reshape(void **state)
{
	(void)state;
	static const struct {
		const char *shape, *message; /* NULL: good */
	} cases[] = {
		{"[24]", NULL},
		{"[[0,1],[2]]", NULL},
		{"[-1]", NULL},
		{"[3,-1,2]", NULL},
		{"[[0],6]", NULL},
		{"[]", "want 24 elements, have 1"},
		{"[25]", "want 24 elements, have 25"},
		{"[5,-1]", "want 24 elements, have 5"},
		{"[-1,-1]", "/shape/1: want a size"},
		{"[0]", "/shape/0: want a size"},
		{"[[1],[0]]", "/shape/1/0: want axes below 3, ascending"},
		{"[[3]]", "want axes below 3"},
		{"7", "want a shape"},
		{"[18446744073709551615,2]", "/shape/0: want a size"},
		{"[4611686018427387904,8]", "want 24 elements"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char codecs[300];
		snprintf(codecs, sizeof codecs,
		         "{\"name\":\"transpose\",\"configuration\":{"
		         "\"order\":[2,1,0]}},{\"name\":\"reshape\",\"configuration\":{\"shape\":%s"
		         "}}," LITTLE,
		         cases[i].shape);
		put_array("[2,3,4]", "float32", codecs);
		if (cases[i].message) {
			refused(NULL, LADE_E_CORRUPT, cases[i].message);
			continue;
		}
		lade_zarr *node = open_array(NULL);
		assert_int_equal(lade_zarr_as_array(node)->chain.step_count, 0);
		assert_int_equal(lade_zarr_as_array(node)->chain.order[0], 2);
		lade_zarr_unref(node);
	}
	put_array("[2,3,4]", "float32",
	          "{\"name\":\"reshape\",\"configuration\":{\"shape\":[24]}},"
	          "{\"name\":\"transpose\",\"configuration\":{\"order\":[2,1,0]}}," LITTLE);
	refused(NULL, LADE_E_UNSUPPORTED, "transpose behind");
}

/* ---- others ------------------------------------------------------------------------------- */

static void chain_is(const char *type, const char *codecs, const char *spec)
{
	put_array("[5]", type, codecs);
	lade_zarr *node = open_array(NULL);
	const lade_zarr_chain *chain = &lade_zarr_as_array(node)->chain;
	assert_int_equal(chain->step_count, 1);
	if (spec && !chain->steps[0].spec)
		fail_msg("%s: %s", codecs, chain->steps[0].why);
	if (spec)
		assert_string_equal(lade_spec_text(chain->steps[0].spec), spec);
	else
		assert_null(chain->steps[0].spec);
	lade_zarr_unref(node);
}

#define CAST(text) "{\"name\":\"cast_value\",\"configuration\":{" text "}}," LITTLE
#define N5(codecs) "{\"name\":\"n5_default\",\"configuration\":{\"codecs\":[" codecs "]}}"
#define REVERSED "{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}},"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define PACK(text) "{\"name\":\"packbits\",\"configuration\":{" text "}}"
#define LZMA(text) LITTLE ",{\"name\":\"numcodecs.lzma\",\"configuration\":{" text "}}"

static void specs_of_codecs(void **state)
{
	(void)state;
	static const struct {
		const char *type, *codecs, *spec; /* NULL: opened, not run */
	} cases[] = {
		{"float32", CAST("\"data_type\":\"int16\""), "cast(<f4,astype=<i2)"},
		{"float64",
	         CAST("\"data_type\":\"uint8\",\"rounding\":\"towards-zero\",\"out_of_range\":"
	              "\"wrap\",\"scalar_map\":{\"encode\":[[\"NaN\",1],[\"+Infinity\",2],"
	              "[\"-Infinity\",3]],\"decode\":[[1,\"NaN\"]]}"),
	         "cast(<f8,astype=|u1,rounding=towards-zero,range=wrap,map=15,nan=1,inf=2,ninf=3)"},
		{"int16", CAST("\"data_type\":\"int8\",\"scalar_map\":{\"encode\":[[999,-1]]}"),
	         NULL},
		{"float64",
	         CAST("\"data_type\":\"int8\",\"scalar_map\":{\"encode\":[[\"NaN\",1]],"
	              "\"decode\":[[2,\"NaN\"]]}"),
	         NULL},
		{"bool", CAST("\"data_type\":\"int8\""), NULL},
		{"bool", PACK(""), "packints(|b1)"},
		{"int16",
	         PACK("\"first_bit\":2,\"last_bit\":11,\"padding_encoding\":"
	              "\"first_byte\""),
	         "packints(<i2,first=2,last=11,padding=first)"},
		{"complex64", PACK("\"padding_encoding\":\"last_byte\""),
	         "packints(<f4,padding=last)"},
		{"int16", LZMA(""), "lzma(level=6)"},
		{"int16", LZMA("\"format\":2,\"check\":-1,\"preset\":1,\"filters\":null"),
	         "lzma(level=1,format=alone)"},
		{"int16", LZMA("\"format\":1,\"check\":10,\"preset\":2147483657"),
	         "lzma(level=9,check=sha256)"},
		{"int16",
	         LZMA("\"format\":3,\"filters\":[{\"id\":3,\"dist\":2},{\"id\":33,"
	              "\"preset\":1,\"lc\":1}]"),
	         "lzma(level=1,format=raw,delta=2,lc=1)"},
		{"int16",
	         LZMA("\"format\":3,\"filters\":[{\"id\":4611686018427387905,"
	              "\"dict_size\":8192}]"),
	         "lzma(level=6,format=raw1,dict=8192)"},
		{"int16", N5(REVERSED BIG), "copy"},
		{"int8", N5(REVERSED "\"bytes\",\"numcodecs.zlib\""), "zlib(level=1)"},
		{"int16", LITTLE ",{\"name\":\"numcodecs.bz2\",\"configuration\":{\"level\":4}}",
	         "bz2(level=4)"},
		{"int16",
	         LITTLE ",{\"name\":\"numcodecs.jenkins_lookup3\",\"configuration\":{"
	                "\"initval\":7,\"prefix\":null}}",
	         "lookup3(init=7)"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		chain_is(cases[i].type, cases[i].codecs, cases[i].spec);
}

static void configurations_refused(void **state)
{
	(void)state;
	static const struct {
		const char *type, *codecs, *message;
	} cases[] = {
		{"float32", CAST("\"rounding\":\"up\""), "want a 'data_type'"},
		{"float32", CAST("\"data_type\":\"int8\",\"rounding\":\"up\""),
	         "/rounding: no known word, have up"},
		{"float64", CAST("\"data_type\":\"float32\",\"out_of_range\":\"wrap\""),
	         "want an integer type"},
		{"float64", CAST("\"data_type\":\"int8\",\"more\":1"), "unknown member"},
		{"float64", CAST("\"data_type\":\"int8\",\"scalar_map\":{\"encode\":[[1]]}"),
	         "want a pair of scalars"},
		{"bool", PACK("\"last_bit\":1"), "want bits of 0 to 0"},
		{"int8", PACK("\"first_bit\":3,\"last_bit\":2"), "want bits of 0 to 7"},
		{"int8", PACK("\"last_bit\":-1"), "want bits of 0 to 7"},
		{"int8", PACK("\"padding_encoding\":\"first\""), "no known word"},
		{"int16", N5(REVERSED LITTLE), "and one codec of bytes"},
		{"int16", N5(BIG ",\"crc32c\""), "want transpose by"},
		{"int16", N5(BIG), "want 2 or 3 codecs"},
		{"int16", N5(REVERSED BIG ",\"crc32c\",\"crc32c\""), "want 2 or 3 codecs"},
		{"int16", N5(REVERSED BIG) ",\"crc32c\"", "behind n5_default"},
		{"int16", N5(REVERSED BIG ",\"numcodecs.lz4\""), "a header of its own"},
		{"string", N5(REVERSED "\"vlen-utf8\""), ""},
		{"int8", LZMA("\"format\":0"), "want the format 1 to 3"},
		{"int8", LZMA("\"preset\":10"), "a preset of xz"},
		{"int8", LZMA("\"check\":2"), "a check"},
		{"int8", LZMA("\"format\":3,\"filters\":[{\"id\":4},{\"id\":33}]"),
	         "filters beside delta and LZMA"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		lade_zarr *node;
		lade_error err = {0};
		put_array("[5]", cases[i].type, cases[i].codecs);
		lade_status status = lade_zarr_open(memory, "", NULL, &node, &err);
		if (status == LADE_OK || !strstr(err.message, cases[i].message))
			fail_msg("want \"%s\", have %s: %s", cases[i].message,
			         lade_status_name(status), err.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_codec),         cmocka_unit_test(own_codec_of_format_2),
		cmocka_unit_test(own_codec_refused), cmocka_unit_test(reshape),
		cmocka_unit_test(specs_of_codecs),   cmocka_unit_test(configurations_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
