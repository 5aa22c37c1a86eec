/*
 * test_zarr_create.c: makes, changes and deletes Zarr nodes: texts, conditions, races.
 *
 * tests/interop compares the documents with zarr-python's, byte for byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "guard.h"

#include <lade/zarr_write.h>

#include <pthread.h>
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

#define OK(call) ok((call), &err, #call)
static void ok(lade_status status, const lade_error *err, const char *what)
{
	if (status != LADE_OK)
		fail_msg("%s: %s: %s", what, lade_status_name(status), err->message);
}

static void put(const char *key, const char *text)
{
	lade_error err;
	lade_write write = {.key = key, .src = lade_host_cspan(text, strlen(text))};
	OK(lade_store_write(memory, &write, 1, NULL, NULL, &err));
}

static bool is_there(const char *key)
{
	return lade_store_look(memory, key, NULL, NULL, NULL) == LADE_OK;
}

static const char *get(const char *key)
{
	static char text[8192];
	lade_error err;
	lade_range range = {.key = key, .kind = LADE_RANGE_REST,
	                    .dst = lade_host_span(text, sizeof text - 1)};
	OK(lade_store_read(memory, &range, 1, NULL, NULL, &err));
	text[range.size] = 0;
	return text;
}

static const uint64_t shape[2] = {10, 6}, chunk[2] = {4, 3};

static lade_zarr_description array_of(const char *type)
{
	return (lade_zarr_description){.struct_size = sizeof(lade_zarr_description),
	                               .kind = LADE_ZARR_ARRAY, .type = type, .ndim = 2,
	                               .shape = shape, .chunk_shape = chunk};
}

static lade_zarr *make(const char *path, lade_zarr_description d)
{
	lade_zarr *node;
	lade_error err;
	OK(lade_zarr_create(memory, path, &d, NULL, &node, &err));
	return node;
}

static void refused(lade_zarr_description d, lade_status want, const char *message)
{
	lade_zarr *node;
	lade_error err = {0};
	lade_status status = lade_zarr_create(memory, "refused", &d, NULL, &node, &err);
	if (status != want || !strstr(err.message, message))
		fail_msg("want %s \"%s\", have %s: %s", lade_status_name(want), message,
		         lade_status_name(status), err.message);
	assert_null(node);
	assert_false(is_there("refused/zarr.json"));
	assert_false(is_there("refused/.zarray"));
}

/* ---- creating --------------------------------------------------------------------------- */

static void documents(void **state)
{
	(void)state;
	lade_zarr_description group = {.struct_size = sizeof group, .kind = LADE_ZARR_GROUP,
	                               .attributes = "{\"a\" : [1, \"\\u00e9\\/\"]}"};
	lade_zarr_unref(make("g", group));
	assert_string_equal(get("zarr.json"), "{\n  \"attributes\": {},\n  \"zarr_format\": 3,\n"
	                                      "  \"node_type\": \"group\"\n}");
	assert_string_equal(get("g/zarr.json"),
	                    "{\n  \"attributes\": {\n    \"a\": [\n      1,\n      \"\\u00e9/\"\n"
	                    "    ]\n  },\n  \"zarr_format\": 3,\n  \"node_type\": \"group\"\n}");
	lade_zarr *node = make("//g//x/", array_of("float32"));
	assert_string_equal(lade_zarr_path(node), "g/x");
	const lade_zarr_array *array = lade_zarr_as_array(node);
	assert_true(array && array->ndim == 2 && array->axes[0].chunk_count == 3);
	assert_string_equal(lade_spec_text(array->chain.steps[0].spec), "zstd(level=0)");
	lade_zarr_unref(node);
	lade_zarr_description old = array_of("<M8[25us]");
	old.format = 2;
	node = make("v2/y", old);
	assert_true(is_there("v2/.zgroup") && is_there("v2/y/.zattrs"));
	assert_int_equal(lade_zarr_format(node), 2);
	assert_int_equal(lade_zarr_as_array(node)->type.unit_count, 25);
	lade_zarr_unref(node);
}

/* Specs become codecs that are read as the same specs. */
static void specs(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"zstd(level=7,checksum=true)", "gzip(level=3)", "zlib(level=9)",
		"blosc(cname=zstd,level=3,shuffle=bitshuffle,typesize=4,blocksize=65536)",
		"shuffle(4)|zstd(level=1)|crc32c",
	};
	static const char *const paths[] = {"s/3", "s/2"};
	lade_error err;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		for (uint32_t format = 2; format <= 3; format++) {
			lade_spec *spec;
			OK(lade_spec_parse(NULL, texts[i], &spec, &err));
			lade_zarr_description d = array_of("int32");
			d.format = format;
			d.spec = spec;
			lade_zarr *node = make(paths[format == 2], d);
			const lade_zarr_chain *chain = &lade_zarr_as_array(node)->chain;
			assert_int_equal(chain->step_count, 1);
			if (!lade_spec_equal(chain->steps[0].spec, spec))
				fail_msg("format %u: want %s, have %s", format, texts[i],
				         lade_spec_text(chain->steps[0].spec));
			lade_spec_unref(spec);
			lade_zarr_unref(node);
			OK(lade_zarr_delete(memory, paths[format == 2], &err));
		}
	lade_zarr_description d = array_of("int32");
	lade_spec *spec;
	OK(lade_spec_parse(NULL, "lz4", &spec, &err));
	d.spec = spec;
	refused(d, LADE_E_UNSUPPORTED, "'lz4' has to be in 'codecs'");
	lade_spec_unref(spec);
}

static void bad_descriptions(void **state)
{
	(void)state;
	const uint64_t odd[2] = {3, 3}, none[2] = {0, 3};
	const lade_zarr_edges edges[2] = {{.sizes = odd, .count = 2}, {.count = 0}};
	lade_zarr_description d = array_of("float33");
	refused(d, LADE_E_UNSUPPORTED, "no known data type");
	d = array_of(NULL);
	refused(d, LADE_E_ARG, "no type");
	d = array_of("int8");
	d.fill = "128";
	refused(d, LADE_E_ARG, "8 bits");
	d.fill = "1,\"x\":2";
	refused(d, LADE_E_ARG, "after the document");
	d = array_of("int8");
	d.attributes = "{}}";
	refused(d, LADE_E_ARG, "after the document");
	d.attributes = "[]";
	refused(d, LADE_E_ARG, "want an object");
	d = array_of("int8");
	d.codecs = "[{\"name\":\"zstd\",\"configuration\":{\"level\":99}}]";
	refused(d, LADE_E_ARG, "refused/zarr.json at /codecs/1/configuration/level");
	d.codecs = "[{\"name\":\"zstd\",\"configuration\":{\"speed\":9}}]";
	refused(d, LADE_E_UNSUPPORTED, "unknown member");
	d.codecs = "[\"fish\"]";
	refused(d, LADE_E_UNSUPPORTED, "no known codec");
	d = array_of("int8");
	d.inner_shape = odd;
	refused(d, LADE_E_ARG, "divide a shard of 4, have 3");
	d = array_of("int8");
	d.chunk_shape = NULL;
	d.edges = edges;
	refused(d, LADE_E_ARG, "the sum 6, less than the shape's 10");
	d.format = 2;
	refused(d, LADE_E_ARG, "format 2 has no edges");
	d = array_of("int8");
	d.inner_shape = none;
	refused(d, LADE_E_ARG, "want a chunk size");
	d = array_of("int8");
	d.ndim = LADE_DIMS_MAX + 1;
	refused(d, LADE_E_LIMIT, "33 axes");
	d = array_of("int8");
	d.separator = ',';
	refused(d, LADE_E_ARG, "separator");
	d = array_of("int8");
	d.kind = LADE_ZARR_ANY;
	refused(d, LADE_E_ARG, "kind");
	lade_error err;
	d = array_of("int8");
	assert_int_equal(lade_zarr_create(memory, "a/../b", &d, NULL, NULL, &err), LADE_E_ARG);
}

/* ---- what is there already ---------------------------------------------------------------- */

static void conditions(void **state)
{
	(void)state;
	lade_error err;
	lade_zarr_description d = array_of("int8"), group = {.struct_size = sizeof group,
	                                                     .kind = LADE_ZARR_GROUP};
	lade_zarr_create_options options = {.struct_size = sizeof options};
	lade_zarr_unref(make("k/a", d));
	assert_int_equal(lade_zarr_create(memory, "k/a", &d, NULL, NULL, &err), LADE_E_CHANGED);
	d.format = 2;
	assert_int_equal(lade_zarr_create(memory, "k/a", &d, NULL, NULL, &err), LADE_E_CHANGED);
	assert_string_equal(err.message, "'k/a' exists already");
	assert_int_equal(lade_zarr_create(memory, "k/a/b", &group, NULL, NULL, &err),
	                 LADE_E_CHANGED);
	assert_non_null(strstr(err.message, "'k/a' is an array"));
	put("k/a/c/0/0", "x");
	put("k/a/else", "x");
	options.exists = LADE_ZARR_REPLACE;
	OK(lade_zarr_create(memory, "k/a", &d, &options, NULL, &err));
	assert_true(is_there("k/a/.zarray"));
	assert_false(is_there("k/a/zarr.json") || is_there("k/a/c/0/0") || is_there("k/a/else"));
	/* What an interrupted deletion leaves does not become the chunks of another array. */
	put("l/0.1", "x");
	put("l/own", "x");
	options.exists = LADE_ZARR_KEEP;
	assert_int_equal(lade_zarr_create(memory, "l", &d, &options, NULL, &err), LADE_E_CHANGED);
	assert_non_null(strstr(err.message, "'l/0.1'"));
	options.exists = LADE_ZARR_REPLACE;
	OK(lade_zarr_create(memory, "l", &d, &options, NULL, &err));
	assert_true(is_there("l/own") && !is_there("l/0.1"));
	options.no_parents = true;
	OK(lade_zarr_create(memory, "m/n/o", &d, &options, NULL, &err));
	assert_false(is_there("m/n/zarr.json"));
}

static void deleting(void **state)
{
	(void)state;
	lade_error err;
	lade_zarr_unref(make("d/e/f", array_of("int8")));
	lade_zarr_unref(make("de", array_of("int8")));
	put("d/e/f/c/0/0", "x");
	OK(lade_zarr_delete(memory, "d/e", &err));
	assert_false(is_there("d/e/zarr.json") || is_there("d/e/f/zarr.json") ||
	             is_there("d/e/f/c/0/0"));
	assert_true(is_there("d/zarr.json") && is_there("de/zarr.json"));
	assert_int_equal(lade_zarr_delete(memory, "d/e", &err), LADE_E_NOT_FOUND);
}

/* ---- changing --------------------------------------------------------------------------- */

static void changing(void **state)
{
	(void)state;
	lade_error err;
	uint64_t smaller[2] = {5, 6}, larger[2] = {5, 100};
	lade_zarr *array = make("r/a", array_of("int8")), *now;
	put("r/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\",\"own\":{"
	                   "\"must_understand\":false,\"n\":1e400}}");
	put("r/a/c/0/0", "x");
	put("r/a/c/1/1", "x");
	put("r/a/c/2/0", "x");
	put("r/a/c/2/0/0", "x"); /* no chunk of this array */
	OK(lade_zarr_set_attributes(array, "{\"b\":[]}", &now, &err));
	assert_string_equal(lade_zarr_attributes(now), "{\n    \"b\": []\n  }");
	assert_string_equal(lade_zarr_attributes(array), "{}");
	lade_zarr_unref(now);
	OK(lade_zarr_resize(array, smaller, &now, &err));
	assert_true(lade_zarr_as_array(now)->axes[0].size == 5);
	lade_zarr_unref(now);
	assert_true(is_there("r/a/c/1/1") && is_there("r/a/c/2/0/0") && !is_there("r/a/c/2/0"));
	OK(lade_zarr_resize(array, larger, &now, &err));
	assert_true(lade_zarr_as_array(now)->axes[1].size == 100);
	assert_string_equal(lade_zarr_attributes(now), "{\n    \"b\": []\n  }");
	lade_zarr_unref(now);
	larger[0] = UINT64_MAX;
	assert_int_equal(lade_zarr_resize(array, larger, NULL, &err), LADE_E_CORRUPT);
	assert_int_equal(lade_zarr_set_attributes(array, "[1]", NULL, &err), LADE_E_ARG);
	lade_zarr_unref(array);
	/* Members that others wrote stay. */
	lade_zarr *group;
	OK(lade_zarr_open(memory, "r", NULL, &group, &err));
	OK(lade_zarr_set_attributes(group, "{\"x\":1}", NULL, &err));
	assert_non_null(strstr(get("r/zarr.json"), "\"n\": 1e400"));
	assert_int_equal(lade_zarr_resize(group, larger, NULL, &err), LADE_E_ARG);
	OK(lade_zarr_consolidate(group, &now, &err));
	assert_string_equal(lade_zarr_member(now, 0), "a");
	assert_null(lade_zarr_member(now, 1));
	lade_zarr_unref(now);
	lade_zarr_unref(group);
}

/* Two kinds of changes of one document, by several threads: none is lost. */
enum { THREADS = 4, ROUNDS = 25 };

typedef struct racer {
	lade_zarr *array;
	unsigned number;
} racer;

static void *race(void *ctx)
{
	racer *r = ctx;
	char text[64];
	lade_error err;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t to[2] = {10 + i, 6};
		snprintf(text, sizeof text, "{\"i\":%u}", i);
		OK(r->number % 2 ? lade_zarr_resize(r->array, to, NULL, &err)
		                 : lade_zarr_set_attributes(r->array, text, NULL, &err));
	}
	return NULL;
}

static void races(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	racer racers[THREADS];
	lade_zarr *now;
	lade_error err;
	lade_zarr *array = make("race", array_of("int8"));
	for (unsigned i = 0; i < THREADS; i++) {
		racers[i] = (racer){array, i};
		assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	OK(lade_zarr_open(memory, "race", NULL, &now, &err));
	assert_true(lade_zarr_as_array(now)->axes[0].size == 10 + ROUNDS - 1);
	assert_non_null(strstr(lade_zarr_attributes(now), "\"i\": 24"));
	lade_zarr_unref(now);
	lade_zarr_unref(array);
}

/* Of many that make one array, one does. */
static void *make_one(void *ctx)
{
	lade_zarr_description d = array_of("int8");
	char text[32];
	lade_zarr *node = NULL;
	snprintf(text, sizeof text, "{\"by\":%u}", *(unsigned *)ctx);
	d.attributes = text;
	if (lade_zarr_create(memory, "one/of", &d, NULL, &node, NULL) != LADE_OK)
		return NULL;
	snprintf(text, sizeof text, "\"by\": %u", *(unsigned *)ctx);
	assert_non_null(strstr(lade_zarr_attributes(node), text));
	lade_zarr_unref(node);
	return ctx;
}

static void one_maker(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	unsigned numbers[THREADS], made = 0;
	for (unsigned i = 0; i < THREADS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, make_one, &numbers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		made += result != NULL;
	}
	assert_int_equal(made, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents), cmocka_unit_test(specs),
		cmocka_unit_test(bad_descriptions), cmocka_unit_test(conditions),
		cmocka_unit_test(deleting), cmocka_unit_test(changing), cmocka_unit_test(races),
		cmocka_unit_test(one_maker),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
