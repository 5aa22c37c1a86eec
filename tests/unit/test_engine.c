/*
 * test_engine.c: the engine itself: options, argument checks, errors by item, routing and
 * explaining, a caller's own algorithms, threads, and fork.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "guard.h"

#include <lade/lade.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

static lade_engine *new_engine(unsigned threads)
{
	lade_engine_options options = {.struct_size = sizeof options, .threads = threads};
	lade_engine *engine = NULL;
	lade_error err = {0};
	if (lade_engine_new(&options, &engine, &err) != LADE_OK)
		fail_msg("%s", err.message);
	return engine;
}

static lade_spec *new_spec(const lade_engine *engine, const char *text)
{
	lade_spec *spec = NULL;
	lade_error err = {0};
	if (lade_spec_parse(engine, text, &spec, &err) != LADE_OK)
		fail_msg("%s: %s", text, err.message);
	return spec;
}

static void options_are_checked(void **state)
{
	(void)state;
	lade_engine *engine = (lade_engine *)1;
	lade_engine_options options = {.struct_size = 4};
	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_E_ARG);
	assert_null(engine);
	options.struct_size = sizeof options;
	options.threads = 1000000;
	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_E_ARG);
	options.threads = 5;
	options.cpu = (lade_cpu)77;
	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_E_ARG);
	options.cpu = LADE_CPU_PLAIN;
	static const lade_allocator nothing;
	options.allocators[LADE_HOST] = &nothing;
	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_E_ARG);
	options.allocators[LADE_HOST] = NULL;
	options.allocators[LADE_PINNED] = lade_allocator_default(LADE_PINNED);
	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_OK);
	assert_int_equal(lade_engine_threads(engine), 5);
	assert_int_equal(lade_engine_cpu(engine), LADE_CPU_PLAIN);
	lade_engine_free(engine);
	lade_engine_free(NULL);
	assert_int_equal(lade_engine_new(NULL, NULL, NULL), LADE_E_ARG);
	assert_int_equal(lade_engine_new(NULL, &engine, NULL), LADE_OK);
	assert_int_equal(lade_engine_threads(engine), lade_cpu_count());
	lade_engine_free(engine);
	assert_non_null(lade_engine_default());
	assert_ptr_equal(lade_engine_default(), lade_engine_default());
}

static lade_status decode_one(lade_engine *engine, const lade_spec *spec, const lade_item *item,
                              char *message)
{
	lade_error err = {0};
	lade_result result = {0};
	lade_status status = lade_decode_into(engine, spec, item, 1, &result, NULL, &err);
	assert_int_equal(result.status, status);
	strcpy(message, err.message);
	return status;
}

static void arguments_are_checked(void **state)
{
	(void)state;
	lade_engine *engine = new_engine(2);
	lade_spec *spec = new_spec(NULL, "copy");
	char message[LADE_MESSAGE_CAP];
	uint8_t bytes[64] = {0}, to[64];
	lade_segment segment = {.data = bytes, .size = 64};
	const lade_item good = {.src = &segment, .src_count = 1, .dst = lade_host_span(to, 64)};
	lade_item item = good;
	assert_int_equal(decode_one(engine, spec, &item, message), LADE_OK);
	assert_int_equal(decode_one(engine, NULL, &item, message), LADE_E_ARG);
	item.src = NULL;
	assert_int_equal(decode_one(engine, spec, &item, message), LADE_E_ARG);
	item = good;
	item.src_count = 0;
	assert_int_equal(decode_one(engine, spec, &item, message), LADE_E_ARG);
	item = good;
	item.dst.data = NULL;
	assert_int_equal(decode_one(engine, spec, &item, message), LADE_E_ARG);
	item = good;
	item.dst.place = (lade_place){LADE_DEVICE, 3};
	assert_int_equal(decode_one(engine, spec, &item, message), LADE_E_NO_DEVICE);
	assert_non_null(strstr(message, "device 3"));
	item = good;
	item.dst.place = (lade_place){LADE_PINNED, 0};
	assert_int_equal(decode_one(engine, spec, &item, message), LADE_OK);
	item = good;
	item.range_off = UINT64_MAX;
	item.range_size = UINT64_MAX;
	assert_int_equal(decode_one(engine, spec, &item, message), LADE_E_RANGE);
	segment.place.kind = LADE_DEVICE;
	assert_int_equal(decode_one(engine, spec, &good, message), LADE_E_NO_DEVICE);
	segment.place.kind = (lade_kind)9;
	assert_int_equal(decode_one(engine, spec, &good, message), LADE_E_ARG);
	segment.place.kind = LADE_HOST;
	segment.data = NULL;
	assert_int_equal(decode_one(engine, spec, &good, message), LADE_E_ARG);
	segment.data = bytes;
	item = good;
	item.range_off = 1;
	assert_int_equal(lade_encode_into(engine, spec, &item, 1, NULL, NULL, NULL), LADE_E_ARG);
	segment.decoded_size = 63;
	assert_int_equal(decode_one(engine, spec, &good, message), LADE_E_CORRUPT);
	assert_non_null(strstr(message, "64"));
	assert_non_null(strstr(message, "63"));
	assert_int_equal(lade_decode_into(NULL, spec, &good, 1, NULL, NULL, NULL), LADE_E_ARG);
	assert_int_equal(lade_decode_into(engine, spec, NULL, 1, NULL, NULL, NULL), LADE_E_ARG);
	assert_int_equal(lade_decode_into(engine, spec, NULL, 0, NULL, NULL, NULL), LADE_OK);
	lade_spec_unref(spec);
	lade_engine_free(engine);
}

static void the_first_bad_item_is_told(void **state)
{
	(void)state;
	lade_engine *engine = new_engine(4);
	lade_spec *spec = new_spec(NULL, "zstd|crc32c");
	enum { N = 300 };
	static uint8_t raw[8192], encoded[16384], bad[16384], to[N][8192];
	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (uint8_t)(i * i / 13);
	size_t size;
	assert_int_equal(
		lade_encode(engine, spec, lade_host_cspan(raw, sizeof raw),
		            lade_host_span(encoded, sizeof encoded), &size, NULL),
		LADE_OK);
	memcpy(bad, encoded, size);
	bad[size / 2] ^= 4;
	lade_segment segments[2] = {{.data = encoded, .size = size}, {.data = bad, .size = size}};
	lade_item items[N] = {0};
	lade_result results[N];
	static lade_error errors[N];
	for (size_t i = 0; i < N; i++)
		items[i] = (lade_item){.src = &segments[i % 7 == 5], .src_count = 1,
		                       .dst = lade_host_span(to[i], sizeof to[i])};
	lade_batch_options options = {.struct_size = sizeof options, .item_errors = errors};
	lade_error err = {0};
	assert_int_equal(lade_decode_into(engine, spec, items, N, results, &options, &err),
	                 LADE_E_CHECKSUM);
	assert_non_null(strstr(err.message, "item 5: crc32c"));
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(results[i].status, i % 7 == 5 ? LADE_E_CHECKSUM : LADE_OK);
		if (i % 7 != 5)
			assert_memory_equal(to[i], raw, sizeof raw);
		else
			assert_non_null(strstr(errors[i].message, "stored"));
	}
	/* The same without verifying: the damage comes through, or the codec finds it. */
	options.flags = LADE_BATCH_IGNORE_CHECKSUMS;
	bad[size / 2] ^= 4;
	bad[size - 1] ^= 1;
	assert_int_equal(lade_decode_into(engine, spec, items, N, results, &options, &err),
	                 LADE_OK);
	assert_memory_equal(to[5], raw, sizeof raw);
	lade_spec_unref(spec);
	lade_engine_free(engine);
}

static void decoded_sizes_are_told(void **state)
{
	(void)state;
	lade_engine *engine = new_engine(1);
	static uint8_t raw[1000], encoded[4000];
	static const struct {
		const char *text;
		bool known;
	} cases[] = {{"zstd", true},
	             {"snappy|crc32c", true},
	             {"shuffle(4)|zstd|xxh64(location=start)", true},
	             {"blosc", true},
	             {"cascaded(<u2,block=4096)", true},
	             {"lz4", false},
	             {"deflate", false},
	             {"copy", true},
	             {"delta(<i4)", true},
	             {"lz4|zstd", false},
	             {"crc32|copy", true}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lade_spec *spec = new_spec(engine, cases[i].text);
		lade_segment segments[2] = {0};
		assert_int_equal(lade_encode(engine, spec, lade_host_cspan(raw, sizeof raw),
		                             lade_host_span(encoded, sizeof encoded),
		                             &segments[0].size, NULL), LADE_OK);
		segments[0].data = encoded;
		segments[1] = segments[0];
		lade_item items[2] = {{.src = segments, .src_count = 2},
		                      {.src = segments, .src_count = 1}};
		lade_result results[2];
		lade_status status =
			lade_decoded_sizes(engine, spec, items, 2, results, NULL, NULL);
		assert_int_equal(status, cases[i].known ? LADE_OK : LADE_E_UNKNOWN_SIZE);
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(results[k].status, status);
			assert_int_equal(results[k].size, cases[i].known ? 2000 >> k : 0);
		}
		segments[0].decoded_size = segments[1].decoded_size = 1000;
		status = lade_decoded_sizes(engine, spec, items, 2, results, NULL, NULL);
		assert_int_equal(status, LADE_OK);
		assert_int_equal(results[0].size, 2000);
		assert_int_equal(lade_decoded_sizes(engine, spec, items, 2, NULL, NULL, NULL),
		                 LADE_E_ARG);
		lade_spec_unref(spec);
	}
	lade_engine_free(engine);
}

/* A few bytes that decode to 2 GiB, honestly, are not worth 2 GiB of scratch for a range of 10;
 * the allocator sees what is asked for. */
static size_t largest_alloc;

static void *noting_alloc(void *ctx, size_t size, size_t align, lade_place place,
                          lade_stream stream)
{
	if (size > largest_alloc)
		largest_alloc = size;
	const lade_allocator *host = lade_allocator_default(LADE_HOST);
	return size > (size_t)1200 << 20 ? NULL : host->alloc(ctx, size, align, place, stream);
}

static void a_range_of_a_bomb_is_refused(void **state)
{
	(void)state;
	lade_allocator host = *lade_allocator_default(LADE_HOST);
	host.alloc = noting_alloc;
	lade_engine_options options = {
		.struct_size = sizeof options, .threads = 1, .allocators = {&host}};
	lade_engine *engine;
	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_OK);
	/* RFC 8878: a window of 128 KiB, 2^31 bytes told, blocks of one byte 131072 times. */
	enum { BLOCKS = 16384 };
	static uint8_t bomb[14 + 4 * BLOCKS] = {0x28, 0xB5, 0x2F, 0xFD, 0xC0, 0x38, 0, 0, 0, 0x80};
	for (size_t i = 0; i < BLOCKS; i++) {
		uint32_t head = 131072u << 3 | 1u << 1 | (i + 1 == BLOCKS);
		for (unsigned k = 0; k < 3; k++)
			bomb[14 + 4 * i + k] = (uint8_t)(head >> (8 * k));
	}
	uint8_t out[10];
	static const char *const texts[] = {"zstd", "shuffle(4)|zstd"};
	for (size_t i = 0; i < 2; i++) {
		lade_spec *spec = new_spec(engine, texts[i]);
		lade_segment segment = {.data = bomb, .size = sizeof bomb};
		lade_item item = {.src = &segment, .src_count = 1,
		                  .dst = lade_host_span(out, sizeof out), .range_off = 5,
		                  .range_size = 10};
		lade_error err = {0};
		largest_alloc = 0;
		assert_int_equal(lade_decode_into(engine, spec, &item, 1, NULL, NULL, &err),
		                 LADE_E_LIMIT);
		assert_non_null(strstr(err.message, "2147483648"));
		assert_true(largest_alloc < 1 << 20);
		/* The caller's word counts: it is tried, and here there is no memory. */
		segment.decoded_size = (size_t)1 << 31;
		assert_int_equal(lade_decode_into(engine, spec, &item, 1, NULL, NULL, &err),
		                 LADE_E_NOMEM);
		lade_spec_unref(spec);
	}
	lade_engine_free(engine);
}

/* ---- a caller's own ----------------------------------------------------------------- */

static atomic_int calls;

static lade_status flip(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                        lade_error *err)
{
	int64_t key = run->stage->option[0].i;
	if (src.size > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "flip: %zu bytes, room for %zu", src.size, dst.size);
	for (size_t i = 0; i < src.size; i++)
		((uint8_t *)dst.data)[i] = (uint8_t)(((const uint8_t *)src.data)[i] ^ key);
	*dst_size = src.size;
	atomic_fetch_add(&calls, 1);
	return LADE_OK;
}

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

static double refuse_small(void *ctx, const lade_workload *w)
{
	(void)ctx;
	return w->total < 100 ? -1.0 : 1.0;
}

static double refuse_pinned(void *ctx, const lade_workload *w)
{
	(void)ctx;
	return w->src.kind == LADE_PINNED && w->dst.kind == LADE_HOST ? -1.0 : 1.0;
}

static void own_algorithms_and_priorities(void **state)
{
	(void)state;
	lade_engine *engine = new_engine(2);
	static const lade_option options[] = {
		{.name = "key", .type = LADE_OPTION_INT, .required = true, .min = 0, .max = 255}};
	lade_algorithm algorithm = {.struct_size = sizeof algorithm, .name = "flip",
	                            .flags = LADE_ALGORITHM_FIXED_SIZE, .options = options,
	                            .option_count = 1, .doc = "xor with a key", .bound = same_bound,
	                            .decoded_size = same_size};
	lade_codec_ops ops = {.struct_size = sizeof ops, .run = flip};
	lade_implementation encode = {.struct_size = sizeof encode,
	                              .name = "flip/test", .algorithm = "flip",
	                              .direction = LADE_ENCODE,
	                              .codec = &ops};
	lade_implementation decode = encode;
	decode.direction = LADE_DECODE;
	lade_error err = {0};
	assert_int_equal(lade_engine_add_implementation(engine, &encode, &err), LADE_E_ARG);
	assert_int_equal(lade_engine_add_algorithm(engine, &algorithm, &err), LADE_OK);
	assert_int_equal(lade_engine_add_algorithm(engine, &algorithm, &err), LADE_E_ARG);
	assert_int_equal(lade_engine_add_implementation(engine, &encode, &err), LADE_OK);
	uint8_t raw[500], mid[2000], back[500];
	memset(raw, 7, sizeof raw);
	lade_spec *spec = new_spec(engine, "flip(90)|zstd|FLIP(3)");
	assert_string_equal(lade_spec_text(spec), "flip(90)|zstd(level=3)|flip(3)");
	size_t size, got;
	const lade_cspan all = lade_host_cspan(raw, 500), few = lade_host_cspan(raw, 50);
	const lade_span to = lade_host_span(back, 500), room = lade_host_span(mid, sizeof mid);
	assert_int_equal(lade_encode(engine, spec, all, room, &size, &err), LADE_OK);
	lade_cspan coded = lade_host_cspan(mid, size);
	assert_int_equal(lade_decode(engine, spec, coded, to, &got, &err), LADE_E_UNSUPPORTED);
	assert_int_equal(lade_engine_add_implementation(engine, &decode, &err), LADE_OK);
	assert_int_equal(lade_decode(engine, spec, coded, to, &got, &err), LADE_OK);
	assert_memory_equal(raw, back, 500);
	/* The name is written into the bytes, and only an engine that knows it reads them. */
	size_t bytes_size;
	const void *bytes = lade_spec_bytes(spec, &bytes_size);
	lade_spec *again = NULL;
	assert_int_equal(lade_spec_from_bytes(NULL, bytes, bytes_size, &again, &err),
	                 LADE_E_NOT_FOUND);
	assert_int_equal(lade_spec_from_bytes(engine, bytes, bytes_size, &again, &err), LADE_OK);
	assert_true(lade_spec_equal(spec, again));
	lade_engine *other = new_engine(1);
	assert_int_equal(lade_encode(other, spec, all, room, &size, &err), LADE_E_NOT_FOUND);
	lade_engine_free(other);

	/* An implementation of ours' algorithm with a higher priority takes over, unless it
	 * refuses. */
	lade_implementation mine = {.struct_size = sizeof mine,
	                            .name = "copy/mine",
	                            .algorithm = "copy",
	                            .direction = LADE_DECODE,
	                            .priority = 10,
	                            .codec = &ops,
	                            .cost = refuse_small};
	assert_int_equal(lade_engine_add_implementation(engine, &mine, &err), LADE_OK);
	lade_spec *copy = new_spec(engine, "copy");
	int before = atomic_load(&calls);
	assert_int_equal(lade_decode(engine, copy, few, lade_host_span(back, 50), &got, &err), 0);
	assert_int_equal(atomic_load(&calls), before);
	assert_int_equal(lade_decode(engine, copy, all, to, &got, &err), LADE_OK);
	assert_int_equal(atomic_load(&calls), before + 1);
	lade_candidate found[4];
	size_t count;
	lade_segment segment = {.data = raw, .size = 500, .place = {LADE_PINNED, 0}};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(back, 500)};
	lade_call call = {.struct_size = sizeof call, .direction = LADE_DECODE, .spec = copy,
	                  .items = &item, .count = 1};
	assert_int_equal(lade_explain(engine, &call, found, 4, &count, &err), LADE_OK);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++) {
		bool is_mine = strcmp(found[i].implementation, "copy/mine") == 0;
		bool on_device = strcmp(found[i].implementation, "copy/cuda") == 0;
		assert_int_equal(found[i].chosen, is_mine);
		assert_int_equal(found[i].place, on_device ? LADE_DEVICE : LADE_HOST);
		if (on_device)
			continue;
		assert_non_null(strstr(found[i].reason, is_mine ? "chosen" : "below 10"));
	}
	item.dst.size = 50;
	assert_int_equal(lade_explain(engine, &call, found, 4, &count, &err), LADE_OK);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(found[i].chosen,
		                 strcmp(found[i].implementation, "copy/memcpy") == 0);
	assert_int_equal(lade_explain(engine, &call, found, 1, &count, &err), LADE_E_NOSPACE);
	assert_int_equal(count, 3);
	/* Where the items lie is told to the cost functions, and why none would is told back. */
	mine.algorithm = "flip";
	mine.name = "flip/pinned";
	mine.cost = refuse_pinned;
	assert_int_equal(lade_engine_add_implementation(engine, &mine, &err), LADE_OK);
	item.dst.size = 500;
	lade_spec *own = new_spec(engine, "flip(1)");
	call.spec = own;
	assert_int_equal(lade_explain(engine, &call, found, 4, &count, &err), LADE_OK);
	assert_int_equal(count, 2);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(strcmp(found[i].implementation, "flip/pinned") == 0,
		                 found[i].cost < 0);
	lade_spec_unref(own);
	algorithm.name = mine.algorithm = "flop";
	assert_int_equal(lade_engine_add_algorithm(engine, &algorithm, &err), LADE_OK);
	assert_int_equal(lade_engine_add_implementation(engine, &mine, &err), LADE_OK);
	own = new_spec(engine, "flop(1)");
	call.spec = own;
	assert_int_equal(lade_explain(engine, &call, found, 4, &count, &err), LADE_E_UNSUPPORTED);
	assert_int_equal(count, 1);
	assert_string_equal(found[0].reason, "refuses this work");
	lade_spec_unref(own);
	item.dst.place.kind = LADE_DEVICE;
	call.spec = copy;
	assert_int_equal(lade_explain(engine, &call, found, 4, &count, &err), LADE_E_NO_DEVICE);
	const lade_workload work = {.direction = LADE_DECODE};
	assert_int_equal(lade_device_takes(engine, copy, &work, 0, &err), LADE_E_NO_DEVICE);
	call.spec = NULL;
	assert_int_equal(lade_explain(engine, &call, found, 4, &count, &err), LADE_E_ARG);
	lade_spec_unref(copy);
	lade_spec_unref(again);
	lade_spec_unref(spec);
	lade_engine_free(engine);
}

/* A filter of elements of 16384 bytes, the last of which may be partial: its tiles are larger than
 * those of any filter of ours. */
#define LARGE ((size_t)16384)

static lade_status large_tile(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	(void)run, (void)err;
	size_t off = tile->elem_off * LARGE, bytes = tile->elem_count * LARGE;
	if (off + bytes + LARGE > tile->total)
		bytes = tile->total - off;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)tile->dst)[i] = ((const uint8_t *)tile->src)[i] ^ 0x55;
	return LADE_OK;
}

static void large_sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	(void)stage;
	*decoded = *encoded = LARGE;
}

static void own_tiles_of_large_elements(void **state)
{
	(void)state;
	lade_engine *engine = new_engine(1);
	lade_algorithm algorithm = {.struct_size = sizeof algorithm, .name = "large",
	                            .kind = LADE_STAGE_FILTER,
	                            .flags = LADE_ALGORITHM_FIXED_SIZE, .bound = same_bound,
	                            .decoded_size = same_size};
	assert_int_equal(lade_engine_add_algorithm(engine, &algorithm, NULL), LADE_OK);
	lade_tile_ops ops = {.struct_size = sizeof ops, .kind = LADE_TILE_IN_ORDER,
	                     .sizes = large_sizes, .run = large_tile};
	lade_implementation p = {.struct_size = sizeof p, .name = "large/test",
	                         .algorithm = "large", .tile = &ops};
	for (int way = LADE_ENCODE; way <= LADE_DECODE; way++) {
		p.direction = (lade_direction)way;
		assert_int_equal(lade_engine_add_implementation(engine, &p, NULL), LADE_OK);
	}
	static const char *const texts[] = {"large", "large|large", "shuffle(255)|large"};
	static const size_t sizes[] = {100, LARGE - 1, LARGE, 3 * LARGE - 7, 70 * LARGE + 16000};
	for (size_t k = 0; k < 15; k++) {
		size_t size = sizes[k % 5], extent = 3 * (size - 1) + 1, got;
		ptrdiff_t stride = 3;
		lade_layout layout = {.struct_size = sizeof layout, .elem_size = 1, .ndim = 1,
		                      .shape = &size, .strides = &stride};
		lade_spec *spec = new_spec(engine, texts[k / 5]);
		uint8_t *raw = malloc(size), *mid = malloc(size), *back = malloc(extent);
		for (size_t i = 0; i < size; i++)
			raw[i] = (uint8_t)(i * 2654435761u >> 24);
		assert_int_equal(lade_encode(engine, spec, lade_host_cspan(raw, size),
		                             lade_host_span(mid, size), &got, NULL),
		                 LADE_OK);
		lade_segment segment = {.data = mid, .size = got};
		lade_item item = {.src = &segment, .src_count = 1, .layout = &layout,
		                  .dst = lade_host_span(back, extent)};
		lade_result result;
		assert_int_equal(lade_decode_into(engine, spec, &item, 1, &result, NULL, NULL),
		                 LADE_OK);
		assert_int_equal(result.size, size);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(back[3 * i], raw[i]);
		free(raw);
		free(mid);
		free(back);
		lade_spec_unref(spec);
	}
	lade_engine_free(engine);
}

/* ---- a caller's own calls ----------------------------------------------------------- */

enum { EACH = 500 };

typedef struct list {
	lade_engine *engine;
	const lade_spec *spec;
	unsigned every; /* so many-th ones fail; 0: none */
	atomic_int now, most, called[EACH];
} list;

static lade_status list_one(void *ctx, size_t index, lade_error *err)
{
	list *l = ctx;
	int now = atomic_fetch_add(&l->now, 1) + 1, most = atomic_load(&l->most);
	while (now > most && !atomic_compare_exchange_weak(&l->most, &most, now))
		;
	atomic_fetch_add(&l->called[index], 1);
	/* A batch within, which may have the threads that are free. */
	uint8_t raw[4][600], mid[4][2000], back[4][600];
	lade_segment from[4], coded[4];
	lade_item items[4] = {0};
	lade_result results[4];
	lade_status status = LADE_OK;
	for (size_t i = 0; i < 4; i++) {
		memset(raw[i], (int)(index + i), sizeof raw[i]);
		from[i] = (lade_segment){.data = raw[i], .size = sizeof raw[i]};
		items[i] = (lade_item){
			.src = &from[i], .src_count = 1, .dst = lade_host_span(mid[i], 2000)};
	}
	status = lade_encode_into(l->engine, l->spec, items, 4, results, NULL, err);
	for (size_t i = 0; status == LADE_OK && i < 4; i++) {
		coded[i] = (lade_segment){.data = mid[i], .size = results[i].size};
		items[i] = (lade_item){
			.src = &coded[i], .src_count = 1, .dst = lade_host_span(back[i], 600)};
	}
	if (status == LADE_OK && l->every && index % l->every == l->every - 1)
		coded[2].size -= 9;
	if (status == LADE_OK)
		status = lade_decode_into(l->engine, l->spec, items, 4, NULL, NULL, err);
	if (status == LADE_OK && memcmp(raw, back, sizeof raw) != 0)
		status = lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET, "other bytes");
	atomic_fetch_sub(&l->now, 1);
	return status;
}

static lade_status say_nothing(void *ctx, size_t index, lade_error *err)
{
	(void)ctx, (void)err;
	return index == 3 ? LADE_E_IO : LADE_OK;
}

static void each_index_is_called_once(void **state)
{
	(void)state;
	static lade_error errors[EACH];
	lade_error err = {0};
	lade_spec *spec = new_spec(NULL, "zstd|crc32c");
	for (unsigned threads = 1; threads <= 4; threads++) {
		lade_engine *engine = new_engine(threads);
		for (unsigned limit = 0; limit <= 5; limit++) {
			static list l;
			unsigned most = limit && limit < threads ? limit : threads;
			memset(&l, 0, sizeof l);
			memset(errors, 0, sizeof errors);
			l.engine = engine;
			l.spec = spec;
			l.every = limit == 4 ? 0 : 7;
			lade_batch_options o = {.struct_size = sizeof o,
			                        .threads = limit,
			                        .item_errors = limit == 2 ? NULL : errors};
			lade_status status =
				lade_engine_each(engine, EACH, list_one, &l, &o, &err);
			assert_int_equal(status, l.every ? LADE_E_CHECKSUM : LADE_OK);
			if (l.every)
				assert_non_null(strstr(err.message, "item 6: item 2: "));
			assert_true((unsigned)atomic_load(&l.most) <= most);
			for (size_t i = 0; i < EACH; i++) {
				bool bad = l.every && limit != 2 && i % 7 == 6;
				assert_int_equal(atomic_load(&l.called[i]), 1);
				assert_int_equal(errors[i].status, bad ? LADE_E_CHECKSUM : LADE_OK);
			}
		}
		/* A function that only returns a status. */
		lade_batch_options with = {.struct_size = sizeof with, .item_errors = errors};
		assert_int_equal(lade_engine_each(engine, 5, say_nothing, NULL, &with, &err),
		                 LADE_E_IO);
		assert_int_equal(err.status, LADE_E_IO);
		assert_int_equal(errors[3].status, LADE_E_IO);
		assert_int_equal(lade_engine_each(engine, 3, say_nothing, NULL, NULL, NULL),
		                 LADE_OK);
		assert_int_equal(lade_engine_each(engine, 0, say_nothing, NULL, NULL, NULL),
		                 LADE_OK);
		assert_int_equal(lade_engine_each(engine, 1, NULL, NULL, NULL, NULL),
		                 LADE_E_ARG);
		lade_engine_free(engine);
	}
	assert_int_equal(lade_engine_each(NULL, 1, say_nothing, NULL, NULL, &err), LADE_E_ARG);
	lade_spec_unref(spec);
}

/* ---- threads and fork --------------------------------------------------------------- */

typedef struct hammer {
	lade_engine *engine;
	lade_spec *spec;
	int rounds;
	atomic_int wrong;
} hammer;

static void *hammer_main(void *arg)
{
	hammer *h = arg;
	enum { N = 16, SIZE = 20000 };
	uint8_t *raw = malloc(SIZE), *mid = malloc(N * 2 * SIZE), *back = malloc(N * SIZE);
	rng r = {(uintptr_t)raw | 1};
	for (size_t i = 0; i < SIZE; i++)
		raw[i] = (uint8_t)(rng_next(&r) & 0x0F);
	for (int round = 0; round < h->rounds; round++) {
		lade_segment from[N], coded[N];
		lade_item items[N];
		lade_result results[N];
		for (size_t i = 0; i < N; i++) {
			from[i] = (lade_segment){.data = raw, .size = SIZE - i * 8};
			items[i] = (lade_item){.src = &from[i], .src_count = 1,
			                       .dst = lade_host_span(mid + i * 2 * SIZE, 2 * SIZE)};
		}
		if (lade_encode_into(h->engine, h->spec, items, N, results, NULL, NULL) != LADE_OK)
			atomic_fetch_add(&h->wrong, 1);
		for (size_t i = 0; i < N; i++) {
			coded[i] =
				(lade_segment){.data = mid + i * 2 * SIZE, .size = results[i].size};
			items[i] = (lade_item){.src = &coded[i], .src_count = 1,
			                       .dst = lade_host_span(back + i * SIZE, SIZE)};
		}
		if (lade_decode_into(h->engine, h->spec, items, N, results, NULL, NULL) != LADE_OK)
			atomic_fetch_add(&h->wrong, 1);
		for (size_t i = 0; i < N; i++)
			if (results[i].size != SIZE - i * 8 ||
			    memcmp(back + i * SIZE, raw, SIZE - i * 8) != 0)
				atomic_fetch_add(&h->wrong, 1);
	}
	free(raw);
	free(mid);
	free(back);
	return NULL;
}

static void eight_threads_share_an_engine(void **state)
{
	(void)state;
	lade_engine *engine = new_engine(3);
	hammer h = {
		.engine = engine, .spec = new_spec(NULL, "shuffle(4)|zstd|crc32c"), .rounds = 25};
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer_main, &h), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&h.wrong), 0);
	lade_spec_unref(h.spec);
	lade_engine_free(engine);
}

/* A child born while other threads are in the middle of calls uses the engine and frees it. */
static void fork_in_the_middle(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* ThreadSanitizer itself cannot start threads in the child of a threaded process */
#endif
	lade_engine *engine = new_engine(3);
	hammer h = {.engine = engine, .spec = new_spec(NULL, "lz4"), .rounds = 60};
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer_main, &h), 0);
	for (int i = 0; i < 10; i++) {
		fflush(stdout);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			alarm(60);
			hammer child = {.engine = engine, .spec = h.spec, .rounds = 3};
			hammer_main(&child);
			pid_t inner = fork();
			if (inner == 0) {
				hammer_main(&child);
				lade_engine_free(engine);
				_exit(atomic_load(&child.wrong) ? 1 : 0);
			}
			int how = 0;
			waitpid(inner, &how, 0);
			lade_engine_free(engine);
			_exit(atomic_load(&child.wrong) || how ? 1 : 0);
		}
		int how = 0;
		waitpid(pid, &how, 0);
		assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&h.wrong), 0);
	lade_spec_unref(h.spec);
	lade_engine_free(engine);
}

/* One large Blosc chunk is decoded by several threads; a damaged block fails the item. */
static void large_blosc_chunk_in_parts(void **state)
{
	(void)state;
	lade_engine *engine = new_engine(4);
	lade_spec *spec = new_spec(NULL, "blosc(cname=lz4,typesize=4)|crc32c");
	size_t size = 8 << 20, got = 0;
	uint32_t *raw = malloc(size);
	for (size_t i = 0; i < size / 4; i++)
		raw[i] = (uint32_t)(i * 2654435761u >> 12);
	uint8_t *mid = malloc(lade_spec_bound(spec, size));
	guard back = guard_new(size, 1);
	lade_error err = {0};
	assert_int_equal(
		lade_encode(engine, spec, lade_host_cspan(raw, size),
		            lade_host_span(mid, lade_spec_bound(spec, size)), &got, &err),
		LADE_OK);
	size_t out = 0;
	assert_int_equal(lade_decode(engine, spec, lade_host_cspan(mid, got),
	                             lade_host_span(back.data, size), &out, &err), LADE_OK);
	assert_int_equal(out, size);
	assert_memory_equal(back.data, raw, size);
	lade_segment segment = {.data = mid, .size = got};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(back.data, size)};
	lade_result result;
	lade_batch_options options = {.struct_size = sizeof options,
	                              .flags = LADE_BATCH_IGNORE_CHECKSUMS};
	/* Of several bad blocks the first is told, each time. */
	memset(mid + got / 2, 0xFF, 4096);
	memset(mid + got / 4 * 3, 0xFF, 4096);
	memset(mid + got - 10000, 0xFF, 4096);
	uint64_t first = 0;
	for (int i = 0; i < 50; i++) {
		lade_status status =
			lade_decode_into(engine, spec, &item, 1, &result, &options, &err);
		assert_int_equal(status, LADE_E_CORRUPT);
		assert_int_equal(result.status, status);
		assert_int_equal(result.size, 0);
		first = i ? first : err.offset;
		assert_int_equal(err.offset, first);
		assert_true(err.offset < got / 2 + 4096);
	}
	options.flags = 8;
	assert_int_equal(lade_decode_into(engine, spec, &item, 1, &result, &options, &err),
	                 LADE_E_ARG);
	assert_int_equal(lade_decode_into(engine, spec, &item, 1, &result, NULL, &err),
	                 LADE_E_CHECKSUM);
	guard_free(&back);
	free(mid);
	free(raw);
	lade_spec_unref(spec);
	lade_engine_free(engine);
}

static void *counting_alloc(void *ctx, size_t size, size_t align, lade_place place,
                            lade_stream stream)
{
	(void)place, (void)stream;
	atomic_fetch_add((atomic_int *)ctx, 1);
	void *p = NULL;
	return posix_memalign(&p, align < 16 ? 16 : align, size) ? NULL : p;
}

static void counting_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                          lade_stream stream)
{
	(void)size, (void)align, (void)place, (void)stream;
	atomic_fetch_sub((atomic_int *)ctx, 1);
	free(ptr);
}

static void the_callers_allocator_is_used(void **state)
{
	(void)state;
	atomic_int live = 0;
	lade_allocator mine = {&live, counting_alloc, counting_free};
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2,
	                               .allocators = {[LADE_HOST] = &mine}};
	lade_engine *engine;
	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_OK);
	hammer h = {.engine = engine, .spec = new_spec(NULL, "shuffle(4)|lz4"), .rounds = 2};
	hammer_main(&h);
	assert_int_equal(atomic_load(&h.wrong), 0);
	assert_true(atomic_load(&live) > 0);
	lade_engine_free(engine);
	assert_int_equal(atomic_load(&live), 0);
	lade_spec_unref(h.spec);
}

/* Encoders refuse what they cannot take before they read it, and name both sizes. */
static void encoders_name_their_limits(void **state)
{
	static const struct {
		const char *name, *spec;
		uint64_t most;
	} cases[] = {
		{"lz4", "lz4", 0x7E000000},
		{"lz4", "lz4(level=9)", 0x7E000000},
		{"snappy", "snappy", UINT32_MAX},
		{"blosc", "blosc(cname=lz4,typesize=4)", 0x7FFFFFFF - 16},
		{"ans", "ans", 0x7FFFFFFF},
		{"cascaded", "cascaded(<i4)", 0x7FFFFFFF},
		{"bitcomp", "bitcomp(<i4)", (uint64_t)1 << 34},
	};
	(void)state;
	lade_engine *engine = new_engine(2);
	size_t room = ((size_t)1 << 34) + 4096, size;
	uint8_t out[16];
	uint8_t *zeros = mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	                      -1, 0);
	assert_true(zeros != MAP_FAILED);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lade_spec *spec = new_spec(engine, cases[i].spec);
		size_t most = (size_t)cases[i].most;
		lade_segment segment = {.data = zeros, .size = most + 1};
		lade_item item = {.src = &segment, .src_count = 1,
		                  .dst = lade_host_span(out, sizeof out)};
		char given[32], limit[48];
		snprintf(given, sizeof given, "%s: %zu bytes", cases[i].name, most + 1);
		snprintf(limit, sizeof limit, "at most %zu", most);
		assert_true(lade_spec_bound(spec, most) != SIZE_MAX);
		assert_true(lade_spec_bound(spec, most + 1) == SIZE_MAX);
		for (int batch = 0; batch < 2; batch++) {
			lade_error err = {0};
			lade_status status =
				batch ? lade_encode_into(engine, spec, &item, 1, NULL, NULL, &err)
				      : lade_encode(engine, spec, lade_host_cspan(zeros, most + 1),
				                    item.dst, &size, &err);
			if (status != LADE_E_LIMIT || !strstr(err.message, given) ||
			    !strstr(err.message, limit))
				fail_msg("%s: %s: %s", cases[i].spec, lade_status_name(status),
				         err.message);
		}
		lade_spec_unref(spec);
	}
	munmap(zeros, room);
	lade_engine_free(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(the_first_bad_item_is_told),
		cmocka_unit_test(decoded_sizes_are_told),
		cmocka_unit_test(a_range_of_a_bomb_is_refused),
		cmocka_unit_test(own_algorithms_and_priorities),
		cmocka_unit_test(own_tiles_of_large_elements),
		cmocka_unit_test(each_index_is_called_once),
		cmocka_unit_test(eight_threads_share_an_engine),
		cmocka_unit_test(fork_in_the_middle),
		cmocka_unit_test(large_blosc_chunk_in_parts),
		cmocka_unit_test(the_callers_allocator_is_used),
		cmocka_unit_test(encoders_name_their_limits),
	};
	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
