/*
 * caller.c: a program of 0.2.0: compiled with that version's headers (tests/abi/include), run with
 * a library whose structs have grown.  It gives every struct to the calls that take it, arrays of
 * several elements, so that a wrong stride or a wrong offset shows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 7
#define SIZE  3000
#define CAP   4000

static lade_error err;

#define CHECK(what)                                                                       \
	do {                                                                              \
		if (!(what)) {                                                            \
			fprintf(stderr, "caller.c:%d: %s (%s)\n", __LINE__, #what,        \
			        err.message);                                             \
			exit(1);                                                          \
		}                                                                         \
	} while (0)
#define OK(call) CHECK((call) == LADE_OK)

static lade_engine *engine;
static uint8_t raw[COUNT][SIZE], encoded[COUNT][CAP], back[COUNT][SIZE], other[COUNT][SIZE];

/* ---- items ----------------------------------------------------------------------------- */

typedef struct arrays {
	lade_segment segments[2 * COUNT];
	lade_item_output outputs[2 * COUNT];
	lade_item items[COUNT];
	lade_result results[COUNT];
	lade_error errors[COUNT];
} arrays;

static void check_results(const arrays *a, size_t size)
{
	for (size_t i = 0; i < COUNT; i++) {
		CHECK(a->results[i].status == LADE_OK);
		CHECK(size ? a->results[i].size == size : a->results[i].size != 0);
	}
}

/* Chunks of two segments, decoded to two outputs each, one of them through a layout. */
static void batches(const lade_batch_options *options)
{
	static arrays a;
	lade_spec *spec;
	size_t shape[2] = {50, 60}, order[2] = {1, 0};
	lade_layout layout = {.struct_size = sizeof layout, .elem_size = 1, .ndim = 2,
	                      .shape = shape, .order = order};
	memset(&a, 0, sizeof a);
	OK(lade_spec_parse(engine, "shuffle(4)|zstd|crc32c", &spec, &err));
	for (size_t i = 0; i < COUNT; i++) {
		a.segments[2 * i] = (lade_segment){.data = raw[i], .size = 1000};
		a.segments[2 * i + 1] = (lade_segment){.data = raw[i] + 1000, .size = SIZE - 1000};
		a.items[i] = (lade_item){.src = &a.segments[2 * i], .src_count = 2,
		                         .dst = lade_host_span(encoded[i], CAP)};
	}
	OK(lade_encode_into(engine, spec, a.items, COUNT, a.results, options, &err));
	check_results(&a, 0);
	for (size_t i = 0; i < COUNT; i++) {
		a.segments[i] = (lade_segment){.data = encoded[i], .size = a.results[i].size};
		a.outputs[2 * i].dst = lade_host_span(back[i], SIZE);
		a.outputs[2 * i + 1].dst = lade_host_span(other[i], SIZE);
		a.outputs[2 * i + 1].layout = &layout;
		a.items[i] = (lade_item){.src = &a.segments[i], .src_count = 1,
		                         .outputs = &a.outputs[2 * i], .output_count = 2};
	}
	OK(lade_decoded_sizes(engine, spec, a.items, COUNT, a.results, options, &err));
	check_results(&a, SIZE);
	memset(back, 0, sizeof back);
	memset(other, 0, sizeof other);
	OK(lade_decode_into(engine, spec, a.items, COUNT, a.results, options, &err));
	check_results(&a, 2 * SIZE);
	CHECK(!memcmp(back, raw, sizeof raw));
	for (size_t i = 0; i < COUNT; i++)
		for (size_t k = 0; k < SIZE; k++)
			CHECK(other[i][k % 60 * 50 + k / 60] == raw[i][k]);

	/* A bad chunk, told in its own result and error. */
	lade_batch_options with = {.struct_size = sizeof with};
	if (options)
		with = *options;
	with.item_errors = a.errors;
	encoded[4][a.segments[4].size - 1] ^= 1;
	CHECK(lade_decode_into(engine, spec, a.items, COUNT, a.results, &with, &err) ==
	      LADE_E_CHECKSUM);
	for (size_t i = 0; i < COUNT; i++)
		CHECK(a.results[i].status == (i == 4 ? LADE_E_CHECKSUM : LADE_OK));
	CHECK(a.errors[4].status == LADE_E_CHECKSUM && !a.errors[3].status && !a.errors[5].status);
	encoded[4][a.segments[4].size - 1] ^= 1;

	lade_candidate candidates[16];
	size_t count;
	lade_call call = {.struct_size = sizeof call, .direction = LADE_DECODE, .spec = spec,
	                  .items = a.items, .count = COUNT, .options = options};
	OK(lade_explain(engine, &call, candidates, 16, &count, &err));
	CHECK(count >= 3);
	for (size_t i = 0; i < count; i++)
		CHECK(candidates[i].stage < 3 && strchr(candidates[i].implementation, '/') &&
		      strnlen(candidates[i].reason, 96) < 96);
	lade_apart_options apart = {.struct_size = sizeof apart};
	for (size_t i = 0; i < COUNT; i++)
		a.items[i] = (lade_item){.src = &a.segments[i], .src_count = 1,
		                         .dst = lade_host_span(back[i], SIZE)};
	OK(lade_items_apart(LADE_DECODE, a.items, COUNT, &apart, &err));
	a.items[5].dst.data = back[3] + SIZE - 1;
	CHECK(lade_items_apart(LADE_DECODE, a.items, COUNT, &apart, &err) == LADE_E_ARG);
	lade_layout_sizes sizes;
	OK(lade_layout_measure(&layout, LADE_DECODE, SIZE, &sizes, &err));
	CHECK(sizes.chunk_size == SIZE && sizes.end == SIZE);
	lade_spec_unref(spec);
}

/* ---- batches on devices ------------------------------------------------------------------ */

/* Without a device the options and the arrays are read all the same. */
static void devices(void)
{
	const void *src[COUNT] = {raw[0]};
	void *dst[COUNT] = {back[0]};
	uint64_t sizes[COUNT] = {SIZE}, caps[COUNT] = {SIZE};
	lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
	                      .src = src,
	                      .src_size = sizes,
	                      .dst = dst,
	                      .dst_cap = caps,
	                      .count = COUNT,
	                      .largest = SIZE};
	lade_async_options options = {.struct_size = sizeof options,
	                              .device = 63,
	                              .flags = LADE_ASYNC_HOST_TABLES};
	lade_item items[2] = {{.dst = lade_host_span(back, SIZE)}};
	lade_result results[2];
	lade_spec *spec;
	int32_t count;
	OK(lade_spec_parse(engine, "lz4", &spec, &err));
	size_t workspace;
	OK(lade_workspace_size(engine, spec, LADE_DECODE, &arrays, &workspace, &err));
	CHECK(lade_decode_arrays_async(engine, spec, &arrays, &options, &err) ==
	      LADE_E_NO_DEVICE);
	CHECK(lade_decoded_sizes_arrays_async(engine, spec, &arrays, &options, &err) ==
	      LADE_E_NO_DEVICE);
	CHECK(lade_checksums_arrays_async(engine, LADE_CRC32, &arrays, sizes, &options, &err) ==
	      LADE_E_NO_DEVICE);
	options.flags = 0;
	CHECK(lade_decode_async(engine, spec, items, 2, &options, &err) == LADE_E_NO_DEVICE);
	CHECK(lade_results_get(&options, 2, results, &err) == LADE_E_NO_DEVICE);
	lade_apart_options apart = {.struct_size = sizeof apart};
	OK(lade_arrays_apart(&arrays, &apart, &err));
	const lade_device_info *info;
	if (lade_device_count(&count, &err) == LADE_OK)
		OK(lade_device_get_info(0, &info, &err));
	lade_spec_unref(spec);
}

/* ---- records ------------------------------------------------------------------------------ */

static int of_ctx;

static size_t same_bound(const lade_stage *stage, size_t size)
{
	return stage->algorithm->ctx == &of_ctx && size < SIZE_MAX ? size : SIZE_MAX;
}

static lade_status same_size(const lade_stage *stage, const void *src, size_t size,
                             uint64_t *decoded, lade_error *e)
{
	(void)stage, (void)src, (void)e;
	*decoded = size;
	return LADE_OK;
}

static lade_status flip(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                        lade_error *e)
{
	if (run->ctx != &of_ctx || run->stage->option[0].i != 170 || dst.size < src.size)
		return lade_fail(e, LADE_E_INTERNAL, LADE_NO_OFFSET, "a run of another shape");
	for (size_t i = 0; i < src.size; i++)
		((uint8_t *)dst.data)[i] = ((const uint8_t *)src.data)[i] ^ 170;
	*dst_size = src.size;
	return LADE_OK;
}

static double cost(void *ctx, const lade_workload *workload)
{
	return ctx == &of_ctx && workload->total == SIZE ? 1 : -1;
}

static void records(void)
{
	static const lade_option options[] = {{.name = "with", .max = 255, .doc = "a byte"},
	                                      {.name = "more", .max = 9, .doc = "nothing"}};
	lade_algorithm algorithm = {.struct_size = sizeof algorithm, .name = "flip",
	                            .options = options, .option_count = 2, .doc = "flips bits",
	                            .ctx = &of_ctx, .bound = same_bound, .decoded_size = same_size};
	OK(lade_engine_add_algorithm(engine, &algorithm, &err));
	for (int way = LADE_ENCODE; way <= LADE_DECODE; way++) {
		lade_codec_ops ops = {.struct_size = sizeof ops, .run = flip};
		lade_implementation one = {.struct_size = sizeof one, .name = "flip/caller",
		                           .algorithm = "flip", .direction = (lade_direction)way,
		                           .ctx = &of_ctx, .cost = cost, .codec = &ops};
		OK(lade_engine_add_implementation(engine, &one, &err));
	}
	lade_spec *spec;
	size_t size;
	OK(lade_spec_parse(engine, "flip(170)", &spec, &err));
	OK(lade_encode(engine, spec, lade_host_cspan(raw[1], SIZE), lade_host_span(encoded[0], CAP),
	               &size, &err));
	CHECK(size == SIZE && encoded[0][0] == (raw[1][0] ^ 170));
	OK(lade_decode(engine, spec, lade_host_cspan(encoded[0], SIZE),
	               lade_host_span(back[0], SIZE), &size, &err));
	CHECK(size == SIZE && !memcmp(back[0], raw[1], SIZE));
	lade_spec_unref(spec);
	size_t told;
	OK(lade_spec_parse(engine, "zstd", &spec, &err));
	lade_bare_options bare = {.struct_size = sizeof bare, .spec = spec,
	                          .kind = LADE_BARE_WITH_SIZE};
	OK(lade_bare_encode(engine, lade_host_cspan(raw[1], SIZE), lade_host_span(encoded[0], CAP),
	                    &size, &bare, &err));
	OK(lade_bare_decoded_size(engine, lade_host_cspan(encoded[0], size), &told, &bare, &err));
	CHECK(told == SIZE);
	lade_spec_unref(spec);
	const lade_algorithm *known = lade_engine_find(engine, "zstd");
	CHECK(known && !strcmp(known->name, "zstd") && known->option_count && known->doc &&
	      known->bound);
}

/* ---- files -------------------------------------------------------------------------------- */

typedef struct buffer {
	uint8_t bytes[65536];
	size_t size, at;
} buffer;

static lade_status put(void *ctx, const void *src, size_t size, lade_error *e)
{
	buffer *b = ctx;
	if (size > sizeof b->bytes - b->size)
		return lade_fail(e, LADE_E_NOSPACE, LADE_NO_OFFSET, "the buffer is full");
	memcpy(b->bytes + b->size, src, size);
	b->size += size;
	return LADE_OK;
}

static lade_status get(void *ctx, void *dst, size_t cap, size_t *got, lade_error *e)
{
	buffer *b = ctx;
	(void)e;
	*got = b->size - b->at < cap ? b->size - b->at : cap;
	memcpy(dst, b->bytes + b->at, *got);
	b->at += *got;
	return LADE_OK;
}

static void read_buffer(void *ctx, lade_reading *reading, size_t count)
{
	const buffer *b = ctx;
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error why;
		uint64_t off;
		range->object_size = b->size;
		lade_status status = lade_range_place(range, b->size, &off, &range->size, &why);
		if (status == LADE_OK && range->size)
			memcpy(range->dst.data, b->bytes + off, range->size);
		lade_reading_done(reading, i, status, &why);
	}
}

static const lade_source_ops of_buffer = {.struct_size = sizeof of_buffer, .read = read_buffer};

static lade_status write_buffer(void *ctx, lade_write *write, const lade_io_options *options,
                                lade_error *e)
{
	buffer *b = ctx;
	(void)options;
	b->size = 0;
	return put(b, write->src.data, write->src.size, e);
}

static const lade_sink_ops to_buffer = {.struct_size = sizeof to_buffer, .write = write_buffer};

static void ranges_and_writes(void)
{
	static buffer b;
	struct {
		lade_range r[COUNT];
		uint64_t behind;
	} ranges;
	struct {
		lade_write w[2];
		uint64_t behind;
	} writes = {.w = {{.src = lade_host_cspan("x", 1)},
	                  {.src = lade_host_cspan(raw, sizeof raw)}},
	            .behind = 77};
	lade_io_options options = {.struct_size = sizeof options};
	lade_source memory;
	OK(lade_sink_write((lade_sink){&to_buffer, &b}, writes.w, 2, NULL, &err));
	CHECK(b.size == sizeof raw && writes.behind == 77 && writes.w[1].status == LADE_OK);
	OK(lade_source_memory_open(lade_host_cspan(raw, sizeof raw), &memory, &err));
	for (int given = 0; given < 4; given++) {
		lade_source source = given & 1 ? memory : (lade_source){&of_buffer, &b};
		memset(&ranges, 0, sizeof ranges);
		memset(back, 0, sizeof back);
		ranges.behind = 77;
		options.request_size = given & 2 ? sizeof ranges.r[0] : 0;
		for (size_t i = 0; i < COUNT; i++) {
			ranges.r[i].off = i * SIZE;
			ranges.r[i].dst = lade_host_span(back[i], SIZE);
		}
		OK(lade_source_read(source, ranges.r, COUNT, &options, &err));
		CHECK(ranges.behind == 77 && !memcmp(back, raw, sizeof raw));
		for (size_t i = 0; i < COUNT; i++)
			CHECK(ranges.r[i].status == LADE_OK && ranges.r[i].size == SIZE &&
			      ranges.r[i].object_size == sizeof raw);
	}
	lade_source_close(memory);
}

static void frames(void)
{
	static buffer b;
	uint64_t shape[2] = {COUNT, SIZE};
	lade_frame_options options = {.struct_size = sizeof options, .chunk_size = SIZE,
	                              .dtype = LADE_U1, .ndim = 2, .shape = shape, .threads = 2};
	lade_frame_read_options read = {.struct_size = sizeof read, .threads = 2};
	lade_frame_writer *writer;
	lade_frame *frame;
	OK(lade_spec_parse(engine, "lz4", (lade_spec **)(uintptr_t)&options.spec, &err));
	CHECK(lade_frame_bound(&options, sizeof raw) < sizeof b.bytes);
	OK(lade_frame_writer_new(engine, (lade_output){&b, put}, &options, &writer, &err));
	OK(lade_frame_writer_write(writer, raw, sizeof raw, &err));
	OK(lade_frame_writer_finish(writer, &err));
	lade_frame_writer_free(writer);
	OK(lade_frame_open_memory(engine, b.bytes, b.size, &read, &frame, &err));
	const lade_frame_info *info = lade_frame_get_info(frame);
	CHECK(info->size == sizeof raw && info->chunk_count == COUNT && info->ndim == 2 &&
	      info->shape[1] == SIZE && info->dtype == LADE_U1);
	lade_frame_chunk chunk;
	OK(lade_frame_get_chunk(frame, 2, &chunk, &err));
	CHECK(chunk.decoded_size == SIZE && chunk.off + chunk.size < b.size);
	lade_frame_range ranges[COUNT];
	memset(ranges, 0, sizeof ranges);
	memset(back, 0, sizeof back);
	for (size_t i = 0; i < COUNT; i++) {
		ranges[i].off = (COUNT - 1 - i) * SIZE;
		ranges[i].dst = lade_host_span(back[COUNT - 1 - i], SIZE);
	}
	lade_frame_range_options call = {.struct_size = sizeof call};
	for (int given = 0; given < 4; given++) {
		struct {
			lade_result r[COUNT];
			uint64_t behind;
		} results = {.behind = 77};
		memset(back, 0, sizeof back);
		if (given == 2) {
			call.range_size = sizeof ranges[0];
			call.result_size = sizeof results.r[0];
		}
		if (given == 3) { /* by a source of the caller's */
			lade_frame_close(frame);
			OK(lade_frame_open(engine, (lade_source){&of_buffer, &b}, &read, &frame,
			                   &err));
		}
		OK(lade_frame_read(frame, ranges, COUNT, results.r, given ? &call : NULL, &err));
		CHECK(!memcmp(back, raw, sizeof raw) && results.behind == 77);
		for (size_t i = 0; i < COUNT; i++)
			CHECK(results.r[i].status == LADE_OK && results.r[i].size == SIZE);
	}
	lade_frame_close(frame);
	lade_frame_pipe *pipe;
	size_t got, total = 0;
	OK(lade_frame_pipe_new(engine, (lade_input){&b, get}, &read, &pipe, &err));
	CHECK(lade_frame_pipe_get_info(pipe)->chunk_size == SIZE);
	do {
		OK(lade_frame_pipe_read(pipe, (uint8_t *)back + total, sizeof back - total, &got,
		                        &err));
		total += got;
	} while (got && total < sizeof back);
	CHECK(total == sizeof raw && !memcmp(back, raw, sizeof raw));
	lade_frame_pipe_free(pipe);
	lade_spec_unref((lade_spec *)(uintptr_t)options.spec);
}

static void foreign(void)
{
	static buffer b;
	lade_foreign_options options = {.struct_size = sizeof options, .threads = 2,
	                                .checksum = true};
	lade_foreign_writer *writer;
	lade_foreign_reader *reader;
	size_t got, total = 0;
	b.size = b.at = 0;
	OK(lade_foreign_writer_new(engine, LADE_FORMAT_ZST, (lade_output){&b, put}, &options,
	                           &writer, &err));
	OK(lade_foreign_writer_write(writer, raw, sizeof raw, &err));
	OK(lade_foreign_writer_finish(writer, &err));
	lade_foreign_writer_free(writer);
	OK(lade_foreign_reader_new(engine, LADE_FORMAT_ZST, (lade_input){&b, get}, &options,
	                           &reader, &err));
	do {
		OK(lade_foreign_reader_read(reader, (uint8_t *)back + total, sizeof back - total,
		                            &got, &err));
		total += got;
	} while (got && total < sizeof back);
	CHECK(total == sizeof raw && !memcmp(back, raw, sizeof raw));
	lade_foreign_reader_free(reader);
}

/* ---- measuring ------------------------------------------------------------------------------ */

static void measures(void)
{
	struct {
		lade_measurement m[2];
		uint64_t behind;
	} got = {.behind = 77};
	lade_measure_options options = {.struct_size = sizeof options, .chunk_size = 4096};
	lade_suggest_options suggest = {.struct_size = sizeof suggest, .dtype = LADE_U1,
	                                .seconds = 0.0001, .chunk_size = 4096};
	lade_suggestions *found;
	lade_spec *spec;
	lade_crc32_spec crc;
	OK(lade_spec_parse(engine, "lz4", &spec, &err));
	for (int i = 1; i >= 0; i--)
		OK(lade_measure(engine, spec, lade_host_cspan(raw, sizeof raw), &options, &got.m[i],
		                &err));
	CHECK(got.behind == 77 && got.m[1].size == sizeof raw && got.m[1].passes >= 1 &&
	      got.m[1].encoded_size == got.m[0].encoded_size);
	OK(lade_suggest(engine, lade_host_cspan(raw, sizeof raw), &suggest, &found, &err));
	CHECK(found->count > 3 && found->dtype == LADE_U1);
	for (size_t i = 0; i < found->count; i++)
		CHECK(found->items[i]->spec && found->items[i]->measured->size == sizeof raw &&
		      found->items[i]->goals < 8);
	lade_suggestions_free(found);
	OK(lade_crc32_spec_of(LADE_CRC32C, &crc, &err));
	CHECK(lade_crc32_any(&crc, raw, SIZE) == lade_checksum_of(LADE_CRC32C, raw, SIZE));
	lade_spec_unref(spec);
}

int main(void)
{
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
	lade_batch_options batch;
	options.allocators[LADE_HOST] = lade_allocator_default(LADE_HOST);
	OK(lade_engine_new(&options, &engine, &err));
	for (size_t i = 0; i < sizeof raw; i++)
		((uint8_t *)raw)[i] = (uint8_t)(i * i >> 9 ^ i % 13);
	batches(NULL);
	lade_batch_options_init(&batch);
	batches(&batch);
	batch = (lade_batch_options){.struct_size = sizeof batch, .threads = 1};
	batches(&batch);
	devices();
	records();
	ranges_and_writes();
	frames();
	foreign();
	measures();
	lade_engine_free(engine);
	puts("a caller of 0.2.0 runs with a library whose structs have grown");
	return 0;
}
