/*
 * test_oom_frame.c: every allocation fails in turn in frames, bare kinds and foreign files.
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
#include <unistd.h>

#include <cmocka.h>

#define SIZE 300000
#define CHUNK 65536
static uint8_t plain[SIZE], stored[2 * SIZE], back[SIZE];
static size_t stored_size;

/* First failure wins; the objects are freed below 'out'. */
#define DO(call)                                  \
	do {                                      \
		status = (call);                  \
		if (status != LADE_OK)            \
			goto out;                 \
	} while (0)

/* ---- where bytes come from and go to, without allocating ---------------------------------- */

static lade_status put(void *ctx, const void *src, size_t size, lade_error *err)
{
	size_t *at = ctx;
	if (size > sizeof stored - *at)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "the test's room is too small");
	memcpy(stored + *at, src, size);
	*at += size;
	return LADE_OK;
}

/* At most 10,000 bytes at a time, so that pieces are met. */
static lade_status get(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	(void)err;
	size_t *at = ctx;
	size_t n = stored_size - *at;
	if (n > cap)
		n = cap;
	if (n > 10000)
		n = 10000;
	memcpy(dst, stored + *at, n);
	*at += n;
	*got = n;
	return LADE_OK;
}

static void get_ranges(void *ctx, lade_reading *reading, size_t count)
{
	(void)ctx;
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err;
		uint64_t off;
		range->object_size = stored_size;
		lade_status status =
			lade_range_place(range, stored_size, &off, &range->size, &err);
		if (status == LADE_OK && range->size)
			memcpy(range->dst.data, stored + off, range->size);
		lade_reading_done(reading, i, status, &err);
	}
}

static const lade_source_ops get_ops[] = {
	{.struct_size = sizeof get_ops[0], .flags = LADE_SOURCE_LOCAL, .read = get_ranges},
	{.struct_size = sizeof get_ops[0], .read = get_ranges},
};

static lade_status engine_with(unsigned threads, lade_engine **out, lade_error *err)
{
	lade_engine_options options = {.struct_size = sizeof options, .threads = threads};
	return lade_engine_new(&options, out, err);
}

/* ---- frames ----------------------------------------------------------------------------- */

typedef struct frame_case {
	const char *spec;
	unsigned threads;
	const char *path; /* a file with a frame of the case; NULL: in memory */
	bool far; /* the source is asked for all at once */
} frame_case;

static lade_status write_scenario(void *ctx, lade_error *err)
{
	const frame_case *c = ctx;
	lade_status status;
	lade_engine *engine = NULL;
	lade_spec *spec = NULL;
	lade_frame_writer *writer = NULL;
	uint64_t shape[2] = {SIZE / 8, 2};
	size_t at = 0;
	DO(engine_with(c->threads, &engine, err));
	DO(lade_spec_parse(engine, c->spec, &spec, err));
	lade_frame_options options = {.struct_size = sizeof options,
	                              .spec = spec,
	                              .chunk_size = CHUNK,
	                              .dtype = LADE_F4,
	                              .ndim = 2,
	                              .shape = shape};
	lade_output output = {.ctx = &at, .write = put};
	DO(lade_frame_writer_new(engine, output, &options, &writer, err));
	DO(lade_frame_writer_write(writer, plain, 100000, err));
	DO(lade_frame_writer_write(writer, plain + 100000, SIZE - 100000, err));
	DO(lade_frame_writer_finish(writer, err));
	stored_size = at;
out:
	lade_frame_writer_free(writer);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	return status;
}

static lade_status read_scenario(void *ctx, lade_error *err)
{
	const frame_case *c = ctx;
	lade_status status;
	lade_engine *engine = NULL;
	lade_frame *frame = NULL;
	lade_frame_chunk chunk;
	lade_source source = {&get_ops[c->far], NULL};
	DO(engine_with(c->threads, &engine, err));
	if (c->path)
		DO(lade_frame_open_path(engine, c->path, NULL, &frame, err));
	else
		DO(lade_frame_open(engine, source, NULL, &frame, err));
	assert_int_equal(lade_frame_get_info(frame)->size, SIZE);
	DO(lade_frame_get_chunk(frame, 1, &chunk, err));
	assert_int_equal(chunk.decoded_size, CHUNK);
	memset(back, 0, sizeof back);
	lade_frame_range ranges[3] = {{1000, lade_host_span(back, 5000)},
	                              {CHUNK - 10, lade_host_span(back + 5000, CHUNK + 20)},
	                              {SIZE - 7, lade_host_span(back + 200000, 7)}};
	DO(lade_frame_read(frame, ranges, 3, NULL, NULL, err));
	assert_memory_equal(back, plain + 1000, 5000);
	assert_memory_equal(back + 5000, plain + CHUNK - 10, CHUNK + 20);
	assert_memory_equal(back + 200000, plain + SIZE - 7, 7);
out:
	lade_frame_close(frame);
	lade_engine_free(engine);
	return status;
}

/* To its place in 'back'; in order, to the end of what is there. */
static lade_status back_at(void *ctx, uint64_t off, const void *src, size_t size, lade_error *err)
{
	(void)ctx, (void)err;
	memcpy(back + off, src, size);
	return LADE_OK;
}

static lade_status back_next(void *ctx, const void *src, size_t size, lade_error *err)
{
	size_t *at = ctx;
	*at += size;
	return back_at(ctx, *at - size, src, size, err);
}

static lade_status copy_scenario(void *ctx, lade_error *err)
{
	const frame_case *c = ctx;
	lade_status status;
	lade_engine *engine = NULL;
	lade_frame *frame = NULL;
	lade_source source = {&get_ops[c->far], NULL};
	for (unsigned places = 0; places < 2; places++) {
		lade_frame_copy_options options = {.struct_size = sizeof options,
		                                   .write_at = places ? back_at : NULL};
		size_t at = 0;
		memset(back, 0, sizeof back);
		DO(engine_with(c->threads, &engine, err));
		DO(lade_frame_open(engine, source, NULL, &frame, err));
		DO(lade_frame_copy(frame, (lade_output){&at, back_next}, &options, err));
		assert_memory_equal(back, plain, SIZE);
		lade_frame_close(frame);
		lade_engine_free(engine);
		frame = NULL;
		engine = NULL;
	}
out:
	lade_frame_close(frame);
	lade_engine_free(engine);
	return status;
}

static lade_status pipe_scenario(void *ctx, lade_error *err)
{
	const frame_case *c = ctx;
	lade_status status;
	lade_engine *engine = NULL;
	lade_frame_pipe *pipe = NULL;
	size_t at = 0, total = 0, got;
	lade_input input = {.ctx = &at, .read = get};
	DO(engine_with(c->threads, &engine, err));
	DO(lade_frame_pipe_new(engine, input, NULL, &pipe, err));
	do {
		DO(lade_frame_pipe_read(pipe, back + total, SIZE - total, &got, err));
		total += got;
	} while (got && total < SIZE);
	/* All is out; the end is yet to be verified. */
	uint8_t more;
	DO(lade_frame_pipe_read(pipe, &more, 1, &got, err));
	assert_int_equal(got, 0);
	assert_int_equal(total, SIZE);
	assert_memory_equal(back, plain, SIZE);
out:
	lade_frame_pipe_free(pipe);
	lade_engine_free(engine);
	return status;
}

static void frames(void **state)
{
	(void)state;
	static const char *const specs[] = {"zstd(level=1)", "shuffle(4)|lz4|crc32c", "copy"};
	for (size_t i = 0; i < 3; i++) {
		for (unsigned threads = 1; threads <= 2; threads++) {
			char name[96];
			frame_case c = {.spec = specs[i], .threads = threads};
			snprintf(name, sizeof name, "frame of %s on %u threads", specs[i], threads);
			assert_true(oom_run(name, write_scenario, &c) > 3);
			/* The last runs failed; now there is a whole frame to read. */
			assert_int_equal(write_scenario(&c, &(lade_error){0}), LADE_OK);
			assert_true(oom_run("  reading it", read_scenario, &c) > 3);
			c.far = true;
			assert_true(oom_run("  from afar", read_scenario, &c) > 3);
			assert_true(oom_run("  copying that", copy_scenario, &c) > 3);
			assert_true(oom_run("  as a pipe", pipe_scenario, &c) > 3);
			c.far = false;
			assert_true(oom_run("  copying it", copy_scenario, &c) > 3);
		}
	}
}

/* What a copy allocates does not grow with the number of pieces: here ten, of 1024 chunks. */
static void a_copy_of_many_pieces(void **state)
{
	(void)state;
	enum { CALLS = 7 };
	lade_engine *engine;
	lade_frame *frame;
	lade_frame_writer *writer;
	size_t at = 0;
	lade_frame_options options = {.struct_size = sizeof options, .chunk_size = 16};
	assert_int_equal(engine_with(1, &engine, NULL), LADE_OK);
	assert_int_equal(lade_frame_writer_new(engine, (lade_output){&at, put}, &options, &writer,
	                                       NULL), LADE_OK);
	/* With header and entry a chunk takes 56 bytes: half of the data fits. */
	assert_int_equal(lade_frame_writer_write(writer, plain, SIZE / 2, NULL), LADE_OK);
	assert_int_equal(lade_frame_writer_finish(writer, NULL), LADE_OK);
	lade_frame_writer_free(writer);
	stored_size = at;
	for (unsigned near = 0; near < 2; near++) {
		lade_source source = {&get_ops[0], NULL};
		assert_int_equal(near ? lade_frame_open_memory(engine, stored, stored_size, NULL,
		                                               &frame, NULL)
		                      : lade_frame_open(engine, source, NULL, &frame, NULL),
		                 LADE_OK);
		/* The first one brings the index pages, and the worker's scratch memory. */
		for (unsigned i = 0; i < 2; i++) {
			at = 0;
			memset(back, 0, sizeof back);
			oom_arm(i ? CALLS : 1000000, OOM_FAIL_ONE);
			lade_status status =
				lade_frame_copy(frame, (lade_output){&at, back_next}, NULL, NULL);
			assert_false(oom_disarm());
			assert_int_equal(status, LADE_OK);
			assert_int_equal(at, SIZE / 2);
			assert_memory_equal(back, plain, SIZE / 2);
		}
		lade_frame_close(frame);
	}
	lade_engine_free(engine);
}

static void a_frame_in_a_file(void **state)
{
	(void)state;
	char path[] = "/tmp/lade-oom-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	frame_case c = {.spec = "lz4", .threads = 1, .path = path};
	assert_int_equal(write_scenario(&c, &(lade_error){0}), LADE_OK);
	assert_int_equal(write(fd, stored, stored_size), (ssize_t)stored_size);
	close(fd);
	assert_true(oom_run("frame in a file", read_scenario, &c) > 3);
	unlink(path);
}

/* ---- a list of frames ------------------------------------------------------------------- */

enum { LIST = 6, PART = 20000, ROOM = 2 * PART };
static lade_status list_scenario(void *ctx, lade_error *err)
{
	lade_status status;
	lade_engine *engine = NULL;
	lade_spec *spec = NULL;
	lade_frame *frames[LIST] = {NULL};
	lade_frame_options write = {.struct_size = sizeof write};
	lade_frames_options options = {.struct_size = sizeof options, .write = &write};
	lade_segment segments[LIST];
	lade_item items[LIST];
	lade_result results[LIST];
	for (size_t i = 0; i < LIST; i++) {
		segments[i] = (lade_segment){.data = plain + i * PART, .size = PART};
		items[i] = (lade_item){.src = &segments[i], .src_count = 1,
		                       .dst = lade_host_span(stored + i * ROOM, ROOM)};
	}
	DO(engine_with(*(unsigned *)ctx, &engine, err));
	DO(lade_spec_parse(engine, "shuffle(4)|lz4", &spec, err));
	write.spec = spec;
	DO(lade_frames_write(engine, items, LIST, results, &options, err));
	for (size_t i = 0; i < LIST; i++) {
		segments[i] = (lade_segment){.data = stored + i * ROOM, .size = results[i].size};
		items[i].dst = lade_host_span(back + i * PART, PART);
	}
	memset(back, 0, sizeof back);
	DO(lade_frames_open(engine, items, LIST, frames, NULL, err));
	DO(lade_frames_read(frames, items, LIST, results, NULL, err));
	assert_memory_equal(back, plain, LIST * PART);
out:
	for (size_t i = 0; i < LIST; i++)
		lade_frame_close(frames[i]);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	return status;
}

static void a_list_of_frames(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 3; threads++)
		assert_true(oom_run("a list of frames", list_scenario, &threads) > 3);
}

/* ---- bare kinds ------------------------------------------------------------------------- */

static lade_status bare_scenario(void *ctx, lade_error *err)
{
	lade_bare_options options = {.struct_size = sizeof options, .kind = *(lade_bare *)ctx};
	lade_status status;
	lade_engine *engine = NULL;
	lade_spec *spec = NULL;
	size_t size = 0, got = 0;
	DO(engine_with(1, &engine, err));
	DO(lade_spec_parse(engine, "shuffle(4)|zstd", &spec, err));
	options.spec = spec;
	DO(lade_bare_encode(engine, lade_host_cspan(plain, SIZE),
	                    lade_host_span(stored, sizeof stored), &size, &options, err));
	DO(lade_bare_decode(engine, lade_host_cspan(stored, size), lade_host_span(back, SIZE), &got,
	                    &options, err));
	assert_int_equal(got, SIZE);
	assert_memory_equal(back, plain, SIZE);
out:
	lade_spec_unref(spec);
	lade_engine_free(engine);
	return status;
}

static void bare_kinds(void **state)
{
	(void)state;
	for (int kind = LADE_BARE_RAW; kind <= LADE_BARE_WITH_SIZE_16; kind++) {
		lade_bare k = (lade_bare)kind;
		assert_true(oom_run("bare", bare_scenario, &k) > 3);
	}
}

/* ---- foreign files ---------------------------------------------------------------------- */

static lade_status get_plain(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	size_t *at = ctx, left = SIZE - *at;
	(void)err;
	*got = left < cap ? left : cap;
	memcpy(dst, plain + *at, *got);
	*at += *got;
	return LADE_OK;
}

static lade_status foreign_write_scenario(void *ctx, lade_error *err)
{
	lade_format format = *(lade_format *)ctx;
	lade_status status;
	lade_engine *engine = NULL;
	lade_foreign_writer *writer = NULL;
	size_t at = 0, from = 1234;
	lade_output output = {.ctx = &at, .write = put};
	lade_foreign_options options = {.struct_size = sizeof options, .checksum = true};
	DO(engine_with(2, &engine, err));
	DO(lade_foreign_writer_new(engine, format, output, &options, &writer, err));
	DO(lade_foreign_writer_write(writer, plain, 1234, err));
	DO(lade_foreign_writer_copy(writer, (lade_input){&from, get_plain}, err));
	DO(lade_foreign_writer_finish(writer, err));
	stored_size = at;
out:
	lade_foreign_writer_free(writer);
	lade_engine_free(engine);
	return status;
}

static lade_status foreign_read_scenario(void *ctx, lade_error *err)
{
	lade_format format = *(lade_format *)ctx;
	lade_status status;
	lade_engine *engine = NULL;
	lade_foreign_reader *reader = NULL;
	size_t at = 0, total = 0, got = 1;
	lade_input input = {.ctx = &at, .read = get};
	DO(engine_with(2, &engine, err));
	DO(lade_foreign_reader_new(engine, format, input, NULL, &reader, err));
	while (total < SIZE && got) {
		DO(lade_foreign_reader_read(reader, back + total, SIZE - total, &got, err));
		total += got;
	}
	assert_int_equal(total, SIZE);
	assert_memory_equal(back, plain, SIZE);
	lade_foreign_reader_free(reader);
	reader = NULL;
	at = total = 0;
	memset(back, 0, sizeof back);
	DO(lade_foreign_reader_new(engine, format, input, NULL, &reader, err));
	DO(lade_foreign_reader_copy(reader, (lade_output){&total, back_next}, err));
	assert_memory_equal(back, plain, SIZE);
out:
	lade_foreign_reader_free(reader);
	lade_engine_free(engine);
	return status;
}

static void foreign_files(void **state)
{
	(void)state;
	static const lade_format formats[] = {LADE_FORMAT_ZST, LADE_FORMAT_GZ, LADE_FORMAT_LZ4};
	for (size_t i = 0; i < 3; i++) {
		lade_format format = formats[i];
		char name[64];
		snprintf(name, sizeof name, "writing .%s", lade_format_name(format));
		assert_true(oom_run(name, foreign_write_scenario, &format) > 2);
		assert_int_equal(foreign_write_scenario(&format, &(lade_error){0}), LADE_OK);
		snprintf(name, sizeof name, "reading .%s", lade_format_name(format));
		assert_true(oom_run(name, foreign_read_scenario, &format) > 2);
	}
}

/* The two that are only read: from zlib itself, and a framed Snappy file of stored chunks. */
static void foreign_files_that_are_only_read(void **state)
{
	(void)state;
	lade_format format = LADE_FORMAT_ZZ;
	lade_engine *engine = lade_engine_default();
	lade_spec *spec = NULL;
	assert_int_equal(lade_spec_parse(NULL, "zlib", &spec, NULL), LADE_OK);
	assert_int_equal(
		lade_encode(engine, spec, lade_host_cspan(plain, SIZE),
		            lade_host_span(stored, sizeof stored), &stored_size, NULL),
		LADE_OK);
	lade_spec_unref(spec);
	assert_true(oom_run("reading .zz", foreign_read_scenario, &format) > 2);

	format = LADE_FORMAT_SZ;
	memcpy(stored, "\xff\x06\x00\x00sNaPpY", 10);
	stored_size = 10;
	for (size_t off = 0; off < SIZE; off += 60000) {
		/* | type 1 = stored | length 3 | masked CRC-32C 4 | bytes | */
		size_t size = SIZE - off < 60000 ? SIZE - off : 60000;
		uint32_t crc = (uint32_t)lade_checksum_of(LADE_CRC32C, plain + off, size);
		uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
		uint32_t head = 1 | (uint32_t)(size + 4) << 8;
		memcpy(stored + stored_size, &head, 4);
		memcpy(stored + stored_size + 4, &masked, 4);
		memcpy(stored + stored_size + 8, plain + off, size);
		stored_size += 8 + size;
	}
	assert_true(oom_run("reading .sz", foreign_read_scenario, &format) > 2);
}

int main(void)
{
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (uint8_t)(i % 4 == 0 ? i / 64 : i / 8192);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames),
		cmocka_unit_test(a_copy_of_many_pieces),
		cmocka_unit_test(a_frame_in_a_file),
		cmocka_unit_test(a_list_of_frames),
		cmocka_unit_test(bare_kinds),
		cmocka_unit_test(foreign_files),
		cmocka_unit_test(foreign_files_that_are_only_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
