/*
 * test_oom.c: every allocation fails in turn in specs, engines, batches, dictionaries and
 * checksums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "oom.h"

#include <lade/lade.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ITEMS 6
#define ITEM_SIZE 70000
static uint8_t plain[ITEMS * ITEM_SIZE], stored[ITEMS * 2 * ITEM_SIZE], back[ITEMS * ITEM_SIZE];
static lade_result results[ITEMS];

/* First failure wins; the objects are freed below 'out'. */
#define DO(call)                                  \
	do {                                      \
		status = (call);                  \
		if (status != LADE_OK)            \
			goto out;                 \
	} while (0)

static void fill(void)
{
	for (size_t i = 0; i < sizeof plain; i++)
		plain[i] = (uint8_t)(i % 4 == 0 ? i / 64 : i / 8192);
}

/* ---- specs ------------------------------------------------------------------------------ */

static lade_status spec_scenario(void *ctx, lade_error *err)
{
	lade_status status;
	lade_spec *spec = NULL, *again = NULL, *third = NULL;
	DO(lade_spec_parse(NULL, ctx, &spec, err));
	size_t size = 0;
	const void *bytes = lade_spec_bytes(spec, &size);
	DO(lade_spec_from_bytes(NULL, bytes, size, &again, err));
	assert_true(lade_spec_equal(spec, again));
	DO(lade_spec_new(lade_spec_stage(spec, 0), lade_spec_count(spec), &third, err));
	assert_string_equal(lade_spec_text(spec), lade_spec_text(third));
out:
	lade_spec_unref(spec);
	lade_spec_unref(again);
	lade_spec_unref(third);
	return status;
}

static void specs(void **state)
{
	(void)state;
	static char simple[] = "copy", longer[] = "shuffle(4)|zstd(level=3)|crc32c";
	assert_true(oom_run("spec", spec_scenario, simple) > 0);
	assert_true(oom_run("spec of three stages", spec_scenario, longer) > 0);
}

/* ---- engines ---------------------------------------------------------------------------- */

static lade_status own_decoded_size(const lade_stage *stage, const void *src, size_t size,
                                    uint64_t *decoded, lade_error *err)
{
	(void)stage, (void)src, (void)err;
	*decoded = size;
	return LADE_OK;
}

static size_t own_bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size;
}

static lade_status own_run(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                           lade_error *err)
{
	*dst_size = 0;
	if (dst.size < src.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET, "no room");
	uint8_t *scratch = lade_worker_scratch(run->worker, 1, src.size + 1);
	if (!scratch)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for scratch");
	memcpy(scratch, src.data, src.size);
	memcpy(dst.data, scratch, src.size);
	*dst_size = src.size;
	return LADE_OK;
}

/* A caller's algorithm, so that both registrations are met. */
static lade_status engine_scenario(void *ctx, lade_error *err)
{
	(void)ctx;
	lade_status status;
	static const lade_algorithm own = {.struct_size = sizeof own,
	                                   .name = "own",
	                                   .kind = LADE_STAGE_CODEC,
	                                   .doc = "a test's own",
	                                   .bound = own_bound,
	                                   .decoded_size = own_decoded_size};
	lade_codec_ops ops = {.struct_size = sizeof ops, .run = own_run};
	lade_implementation impl = {.struct_size = sizeof impl,
	                            .name = "own/test",
	                            .algorithm = "own",
	                            .priority = 1,
	                            .codec = &ops};
	lade_engine *engine = NULL;
	lade_spec *spec = NULL;
	lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	DO(lade_engine_new(&options, &engine, err));
	DO(lade_engine_add_algorithm(engine, &own, err));
	impl.direction = LADE_ENCODE;
	DO(lade_engine_add_implementation(engine, &impl, err));
	impl.direction = LADE_DECODE;
	DO(lade_engine_add_implementation(engine, &impl, err));
	DO(lade_spec_parse(engine, "own|crc32c", &spec, err));
	size_t size = 0, back_size = 0;
	DO(lade_encode(engine, spec, lade_host_cspan(plain, 5000),
	               lade_host_span(stored, sizeof stored), &size, err));
	DO(lade_decode(engine, spec, lade_host_cspan(stored, size),
	               lade_host_span(back, sizeof back), &back_size, err));
	assert_int_equal(back_size, 5000);
	assert_memory_equal(back, plain, 5000);
out:
	lade_spec_unref(spec);
	lade_engine_free(engine);
	return status;
}

static void engines(void **state)
{
	(void)state;
	assert_true(oom_run("engine with an algorithm of the caller's", engine_scenario, NULL) > 1);
}

/* ---- batches ---------------------------------------------------------------------------- */

typedef struct batch_case {
	const char *spec;
	unsigned threads;
	const lade_dict *dict;
} batch_case;

/* One failed item is not to spoil the others: those that are done are right. */
static void check_items(const uint8_t *got)
{
	for (size_t i = 0; i < ITEMS; i++) {
		if (results[i].status != LADE_OK) {
			assert_int_equal(results[i].status, LADE_E_NOMEM);
			assert_int_equal(results[i].size, 0);
			continue;
		}
		assert_int_equal(results[i].size, ITEM_SIZE);
		assert_memory_equal(got + i * ITEM_SIZE, plain + i * ITEM_SIZE, ITEM_SIZE);
	}
}

static lade_status round_trip(lade_engine *engine, const lade_spec *spec, const lade_dict *dict,
                              lade_error *err)
{
	lade_status status;
	lade_item items[ITEMS] = {0};
	lade_segment segments[ITEMS] = {0};
	lade_batch_options options = {.struct_size = sizeof options, .dict = dict};
	for (size_t i = 0; i < ITEMS; i++) {
		segments[i] = (lade_segment){.data = plain + i * ITEM_SIZE, .size = ITEM_SIZE};
		items[i].src = &segments[i];
		items[i].src_count = 1;
		items[i].dst = lade_host_span(stored + i * 2 * ITEM_SIZE, 2 * ITEM_SIZE);
	}
	DO(lade_encode_into(engine, spec, items, ITEMS, results, &options, err));
	for (size_t i = 0; i < ITEMS; i++) {
		segments[i] = (lade_segment){.data = stored + i * 2 * ITEM_SIZE,
		                             .size = results[i].size,
		                             .decoded_size = ITEM_SIZE};
		items[i].dst = lade_host_span(back + i * ITEM_SIZE, ITEM_SIZE);
	}
	DO(lade_decoded_sizes(engine, spec, items, ITEMS, results, NULL, err));
	assert_int_equal(results[ITEMS - 1].size, ITEM_SIZE);
	memset(back, 0, sizeof back);
	memset(results, 0x55, sizeof results);
	status = lade_decode_into(engine, spec, items, ITEMS, results, &options, err);
	check_items(back);
	if (status != LADE_OK)
		goto out;
	/* A range in the middle, which needs scratch. */
	items[0].range_off = 1000;
	items[0].range_size = 3000;
	items[0].dst = lade_host_span(back, 3000);
	DO(lade_decode_into(engine, spec, items, 1, results, &options, err));
	assert_memory_equal(back, plain + 1000, 3000);
out:
	return status;
}

static lade_status batch_scenario(void *ctx, lade_error *err)
{
	const batch_case *c = ctx;
	lade_status status;
	lade_engine *engine = NULL;
	lade_spec *spec = NULL;
	lade_engine_options options = {.struct_size = sizeof options, .threads = c->threads};
	DO(lade_engine_new(&options, &engine, err));
	DO(lade_spec_parse(engine, c->spec, &spec, err));
	DO(round_trip(engine, spec, c->dict, err));
out:
	lade_spec_unref(spec);
	lade_engine_free(engine);
	return status;
}

static const char *const batch_specs[] = {
	"copy",
	"lz4",
	"lz4(level=9)",
	"snappy",
	"zstd(level=1)",
	"deflate",
	"zlib",
	"gzip",
	"lzma(0,dict=4096)",
	"blosc(shuffle=shuffle,typesize=4)",
	"shuffle(4)|zstd(level=1)|crc32c",
	"delta(dtype=<i4)|zigzag(dtype=<i4)|bitshuffle(4)|lz4|xxh64",
};

static void batches_on_one_thread(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof batch_specs / sizeof batch_specs[0]; i++) {
		batch_case c = {.spec = batch_specs[i], .threads = 1};
		assert_true(oom_run(c.spec, batch_scenario, &c) > 3);
	}
	batch_case slow = {.spec = "bz2(1)", .threads = 1};
	assert_true(oom_run(slow.spec, batch_scenario, &slow) > 3);
}

static void batches_on_three_threads(void **state)
{
	(void)state;
	batch_case c = {.spec = "shuffle(4)|zstd(level=1)|crc32c", .threads = 3};
	assert_true(oom_run("three threads", batch_scenario, &c) > 3);
	c.spec = "blosc(shuffle=shuffle,typesize=4)";
	assert_true(oom_run("blosc, three threads", batch_scenario, &c) > 3);
}

/* An engine that has once been short of memory works when there is memory again. */
static void an_engine_recovers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof batch_specs / sizeof batch_specs[0]; i++) {
		for (long k = 0;; k++) {
			lade_engine *engine = NULL;
			lade_spec *spec = NULL;
			lade_error err = {0};
			lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
			assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_OK);
			assert_int_equal(lade_spec_parse(engine, batch_specs[i], &spec, NULL),
			                 LADE_OK);
			oom_arm(k, OOM_FAIL_FROM);
			lade_status status = round_trip(engine, spec, NULL, &err);
			bool came = oom_disarm();
			if (status != LADE_OK)
				assert_int_equal(status, LADE_E_NOMEM);
			if (round_trip(engine, spec, NULL, &err) != LADE_OK)
				fail_msg("%s, after call %ld failed: %s", batch_specs[i], k,
				         err.message);
			lade_spec_unref(spec);
			lade_engine_free(engine);
			if (!came)
				break;
		}
	}
}

/* ---- dictionaries ----------------------------------------------------------------------- */

static lade_status dict_scenario(void *ctx, lade_error *err)
{
	batch_case c = *(const batch_case *)ctx;
	lade_status status;
	lade_dict *dict = NULL;
	DO(lade_dict_new(plain + 1000, 4000, &dict, err));
	c.dict = dict;
	DO(batch_scenario(&c, err));
out:
	lade_dict_free(dict);
	return status;
}

static void dictionaries(void **state)
{
	(void)state;
	static const char *const texts[] = {"lz4", "zstd(level=1)", "deflate", "zlib"};
	for (size_t i = 0; i < 4; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s with a dictionary", texts[i]);
		batch_case c = {.spec = texts[i], .threads = 1};
		assert_true(oom_run(name, dict_scenario, &c) > 3);
	}
}

/* ---- checksums -------------------------------------------------------------------------- */

static lade_status checksum_scenario(void *ctx, lade_error *err)
{
	lade_status status;
	lade_engine *engine = NULL;
	lade_cspan spans[ITEMS];
	uint64_t sums[ITEMS];
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
	lade_checksum kind = *(const lade_checksum *)ctx;
	DO(lade_engine_new(&options, &engine, err));
	for (size_t i = 0; i < ITEMS; i++)
		spans[i] = lade_host_cspan(plain + i * ITEM_SIZE, ITEM_SIZE);
	DO(lade_checksums(engine, kind, spans, ITEMS, sums, err));
	for (size_t i = 0; i < ITEMS; i++)
		assert_int_equal(sums[i], lade_checksum_of(kind, plain + i * ITEM_SIZE, ITEM_SIZE));
out:
	lade_engine_free(engine);
	return status;
}

static void checksums(void **state)
{
	(void)state;
	for (int kind = LADE_CRC32; kind <= LADE_FLETCHER32; kind++) {
		lade_checksum k = (lade_checksum)kind;
		assert_true(oom_run(lade_checksum_name(k), checksum_scenario, &k) > 0);
	}
}

/* ---- trying pipelines ------------------------------------------------------------------- */

static lade_status measure_scenario(void *ctx, lade_error *err)
{
	lade_status status;
	lade_engine *engine = NULL;
	lade_spec *spec = NULL;
	lade_suggestions *found = NULL;
	lade_measurement m;
	lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	/* So few bytes that all trials together take a millisecond. */
	lade_suggest_options quick = {.struct_size = sizeof quick,
	                              .sample_size = 600,
	                              .seconds = 1e-9};
	DO(lade_engine_new(&options, &engine, err));
	DO(lade_spec_parse(engine, "shuffle(4)|lz4", &spec, err));
	DO(lade_measure(engine, spec, lade_host_cspan(plain, ITEM_SIZE), NULL, &m, err));
	assert_true(m.encoded_size > 0 && m.encoded_size < m.size);
	if (ctx) {
		/* What there is no memory for is left out, as long as anything can be tried. */
		DO(lade_suggest(engine, lade_host_cspan(plain, 1000), &quick, &found, err));
		assert_true(found->count > 0);
	}
out:
	lade_suggestions_free(found);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	return status;
}

static void trying(void **state)
{
	(void)state;
	static char suggest[] = "suggest";
	assert_true(oom_run("lade_measure()", measure_scenario, NULL) > 10);
	assert_true(oom_run("lade_suggest()", measure_scenario, suggest) > 100);
}

int main(void)
{
	fill();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(specs),
		cmocka_unit_test(engines),
		cmocka_unit_test(batches_on_one_thread),
		cmocka_unit_test(batches_on_three_threads),
		cmocka_unit_test(an_engine_recovers),
		cmocka_unit_test(dictionaries),
		cmocka_unit_test(checksums),
		cmocka_unit_test(trying),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
