/*
 * test_cancel.c: calls that are cancelled, and calls with allocators of their own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "guard.h"

#include <lade/lade.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#include <cmocka.h>

enum { COUNT = 400, SIZE = 100, STEP_US = 5000 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a slow codec ------------------------------------------------------------------------ */

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

static lade_status slow_copy(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                             lade_error *err)
{
	(void)run;
	if (dst.size < src.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET, "no space");
	usleep(STEP_US);
	memcpy(dst.data, src.data, src.size);
	*dst_size = src.size;
	return LADE_OK;
}

static double second(void *ctx, const lade_workload *workload)
{
	(void)ctx, (void)workload;
	return 1e9;
}

/* ---- calls ------------------------------------------------------------------------------- */

typedef struct job {
	lade_engine *engine;
	lade_spec *spec;
	uint8_t raw[COUNT][SIZE], out[COUNT][SIZE];
	lade_segment segments[COUNT];
	lade_item items[COUNT];
	lade_result results[COUNT];
	lade_error errors[COUNT];
	lade_batch_options options;
	lade_error err;
} job;

static job *job_new(unsigned threads)
{
	job *j = calloc(1, sizeof *j);
	lade_engine_options o = {.struct_size = sizeof o, .threads = threads};
	assert_non_null(j);
	assert_int_equal(lade_engine_new(&o, &j->engine, NULL), LADE_OK);
	lade_algorithm slow = {.struct_size = sizeof slow, .name = "slow", .bound = same_bound,
	                       .decoded_size = same_size};
	assert_int_equal(lade_engine_add_algorithm(j->engine, &slow, NULL), LADE_OK);
	lade_codec_ops ops = {.struct_size = sizeof ops, .run = slow_copy};
	lade_implementation copy = {.struct_size = sizeof copy, .name = "slow/sleep",
	                            .algorithm = "slow", .direction = LADE_DECODE, .cost = second,
	                            .codec = &ops};
	assert_int_equal(lade_engine_add_implementation(j->engine, &copy, NULL), LADE_OK);
	assert_int_equal(lade_spec_parse(j->engine, "slow", &j->spec, NULL), LADE_OK);
	for (size_t i = 0; i < COUNT; i++) {
		memset(j->raw[i], (int)(i % 251 + 1), SIZE);
		j->segments[i] = (lade_segment){.data = j->raw[i], .size = SIZE};
		j->items[i] = (lade_item){.src = &j->segments[i], .src_count = 1,
		                          .dst = lade_host_span(j->out[i], SIZE)};
	}
	j->options = (lade_batch_options){.struct_size = sizeof j->options,
	                                  .item_errors = j->errors};
	return j;
}

static lade_status job_run(job *j)
{
	memset(j->out, 0, sizeof j->out);
	memset(j->results, 0x5A, sizeof j->results);
	memset(j->errors, 0, sizeof j->errors);
	return lade_decode_into(j->engine, j->spec, j->items, COUNT, j->results, &j->options,
	                        &j->err);
}

/* Items are done, or cancelled and untouched; returns how many are done. */
static size_t job_check(const job *j)
{
	static const uint8_t zero[SIZE];
	size_t done = 0;
	for (size_t i = 0; i < COUNT; i++) {
		bool ok = j->results[i].status == LADE_OK;
		assert_int_equal(j->results[i].status, ok ? LADE_OK : LADE_E_CANCELLED);
		assert_int_equal(j->errors[i].status, ok ? 0 : LADE_E_CANCELLED);
		assert_int_equal(j->results[i].size, ok ? SIZE : 0);
		assert_memory_equal(j->out[i], ok ? j->raw[i] : zero, SIZE);
		done += ok;
	}
	return done;
}

static void job_free(job *j)
{
	lade_spec_unref(j->spec);
	lade_engine_free(j->engine);
	free(j);
}

/* ---- who cancels ------------------------------------------------------------------------- */

typedef struct asker {
	pthread_t caller;
	int asked, yes_at;
} asker;

static bool ask(void *ctx)
{
	asker *a = ctx;
	assert_true(pthread_equal(pthread_self(), a->caller));
	return ++a->asked == a->yes_at;
}

static void test_poll(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 3; threads++) {
		job *j = job_new(threads);
		asker a = {.caller = pthread_self(), .yes_at = 2};
		assert_int_equal(lade_cancel_new(ask, &a, &j->options.cancel, &j->err), LADE_OK);
		double began = now();
		assert_int_equal(job_run(j), LADE_E_CANCELLED);
		double took = now() - began;
		size_t done = job_check(j);
		assert_true(done > 0 && done < COUNT);
		assert_int_equal(a.asked, 2);
		assert_true(took > 0.09 && took < 2);
		assert_non_null(strstr(j->err.message, ": the call was cancelled"));
		/* It stays set. */
		assert_true(lade_cancel_is_set(j->options.cancel));
		assert_int_equal(job_run(j), LADE_E_CANCELLED);
		assert_int_equal(job_check(j), 0);
		assert_int_equal(a.asked, 2);
		lade_cancel_free(j->options.cancel);
		job_free(j);
	}
}

static void *set_soon(void *cancel)
{
	usleep(60000);
	lade_cancel_set(cancel);
	return NULL;
}

static lade_cancel *of_signal;

static void on_alarm(int number)
{
	(void)number;
	lade_cancel_set(of_signal);
}

static void test_others(void **state)
{
	(void)state;
	job *j = job_new(2);
	pthread_t thread;
	assert_int_equal(lade_cancel_new(NULL, NULL, &j->options.cancel, NULL), LADE_OK);
	assert_int_equal(pthread_create(&thread, NULL, set_soon, j->options.cancel), 0);
	assert_int_equal(job_run(j), LADE_E_CANCELLED);
	size_t done = job_check(j);
	assert_true(done > 0 && done < COUNT);
	pthread_join(thread, NULL);

	lade_cancel_clear(j->options.cancel);
	of_signal = j->options.cancel;
	struct sigaction action = {.sa_handler = on_alarm}, before;
	struct itimerval soon = {.it_value.tv_usec = 60000};
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &soon, NULL);
	assert_int_equal(job_run(j), LADE_E_CANCELLED);
	sigaction(SIGALRM, &before, NULL);
	assert_true(job_check(j) < COUNT);

	/* A call that is done before is not cancelled. */
	lade_cancel_clear(j->options.cancel);
	assert_false(lade_cancel_is_set(j->options.cancel));
	assert_int_equal(lade_decode_into(j->engine, j->spec, j->items, 3, NULL, &j->options, NULL),
	                 LADE_OK);
	/* What is cancelled is told before what is wrong. */
	j->items[0].dst.size = 1;
	lade_cancel_set(j->options.cancel);
	assert_int_equal(job_run(j), LADE_E_CANCELLED);
	lade_cancel_free(j->options.cancel);
	lade_cancel_free(NULL);
	job_free(j);
}

/* One chunk that is decoded in parts by several threads. */
static void test_parts(void **state)
{
	(void)state;
	enum { LARGE = 4 << 20 };
	job *j = job_new(3);
	lade_spec *spec;
	uint8_t *raw = malloc(LARGE), *packed = malloc(2 * LARGE), *back = malloc(LARGE);
	rng r = {3};
	for (size_t i = 0; i < LARGE; i++)
		raw[i] = (uint8_t)rng_below(&r, 9);
	size_t size;
	assert_int_equal(lade_spec_parse(NULL, "ans", &spec, NULL), LADE_OK);
	assert_int_equal(lade_encode(j->engine, spec, lade_host_cspan(raw, LARGE),
	                             lade_host_span(packed, 2 * LARGE), &size, NULL),
	                 LADE_OK);
	lade_segment segment = {.data = packed, .size = size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(back, LARGE)};
	lade_result result;
	assert_int_equal(lade_cancel_new(NULL, NULL, &j->options.cancel, NULL), LADE_OK);
	lade_cancel_set(j->options.cancel);
	assert_int_equal(
		lade_decode_into(j->engine, spec, &item, 1, &result, &j->options, &j->err),
		LADE_E_CANCELLED);
	assert_true(result.status == LADE_E_CANCELLED && result.size == 0);
	lade_cancel_clear(j->options.cancel);
	assert_int_equal(
		lade_decode_into(j->engine, spec, &item, 1, &result, &j->options, &j->err),
		LADE_OK);
	assert_memory_equal(back, raw, LARGE);
	lade_cancel_free(j->options.cancel);
	lade_spec_unref(spec);
	free(raw);
	free(packed);
	free(back);
	job_free(j);
}

static atomic_int begun;

static lade_status sleep_one(void *ctx, size_t index, lade_error *err)
{
	(void)ctx, (void)index, (void)err;
	atomic_fetch_add(&begun, 1);
	usleep(STEP_US);
	return LADE_OK;
}

static void test_each(void **state)
{
	(void)state;
	job *j = job_new(2);
	asker a = {.caller = pthread_self(), .yes_at = 1};
	atomic_store(&begun, 0);
	assert_int_equal(lade_cancel_new(ask, &a, &j->options.cancel, NULL), LADE_OK);
	assert_int_equal(lade_engine_each(j->engine, COUNT, sleep_one, NULL, &j->options, &j->err),
	                 LADE_E_CANCELLED);
	int done = 0;
	for (size_t i = 0; i < COUNT; i++)
		done += j->errors[i].status == LADE_OK;
	assert_true(done == atomic_load(&begun) && done > 0 && done < COUNT);
	lade_cancel_free(j->options.cancel);
	job_free(j);
}

/* ---- files ------------------------------------------------------------------------------- */

typedef struct bytes {
	uint8_t *data;
	size_t size, at;
} bytes;

static lade_status put(void *ctx, const void *src, size_t size, lade_error *err)
{
	bytes *b = ctx;
	(void)err;
	b->data = realloc(b->data, b->size + size);
	assert_non_null(b->data);
	memcpy(b->data + b->size, src, size);
	b->size += size;
	return LADE_OK;
}

static lade_status get(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	bytes *b = ctx;
	(void)err;
	*got = b->size - b->at < cap ? b->size - b->at : cap;
	memcpy(dst, b->data + b->at, *got);
	b->at += *got;
	return LADE_OK;
}

enum { FILE_SIZE = 6 << 20 };

/* Data that take a while with the slowest level, about a second. */
static uint8_t *hard_bytes(void)
{
	uint8_t *data = malloc(FILE_SIZE);
	rng r = {11};
	assert_non_null(data);
	for (size_t i = 0; i < FILE_SIZE; i++)
		data[i] = (uint8_t)(rng_below(&r, 16) * rng_below(&r, 16));
	return data;
}

/* A cancelled writer and its reader are of no more use, and say why. */
static bool say_yes(void *ctx)
{
	(void)ctx;
	return true;
}

enum { RAMP = 128 };
static atomic_size_t ramps;

static lade_status ramp_size(const lade_stage *stage, const void *src, size_t size,
                             uint64_t *decoded, lade_error *err)
{
	(void)stage, (void)src, (void)size, (void)err;
	*decoded = RAMP;
	return LADE_OK;
}

/* Slow both ways: chunks of RAMP bytes, each one more than the last, are their first byte. */
static lade_status ramp_run(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                            lade_error *err)
{
	(void)run, (void)err;
	usleep(STEP_US);
	atomic_fetch_add(&ramps, 1);
	*dst_size = src.size == RAMP ? 1 : RAMP;
	for (size_t i = 0; i < *dst_size; i++)
		((uint8_t *)dst.data)[i] = (uint8_t)(*(const uint8_t *)src.data + i);
	return LADE_OK;
}

static lade_spec *ramp_spec(lade_engine *engine)
{
	lade_algorithm ramp = {.struct_size = sizeof ramp, .name = "ramp", .bound = same_bound,
	                       .decoded_size = ramp_size};
	lade_codec_ops ops = {.struct_size = sizeof ops, .run = ramp_run};
	lade_implementation both = {.struct_size = sizeof both, .name = "ramp/sleep",
	                            .algorithm = "ramp", .direction = LADE_DECODE, .cost = second,
	                            .codec = &ops};
	lade_spec *spec;
	assert_int_equal(lade_engine_add_algorithm(engine, &ramp, NULL), LADE_OK);
	assert_int_equal(lade_engine_add_implementation(engine, &both, NULL), LADE_OK);
	both.direction = LADE_ENCODE;
	assert_int_equal(lade_engine_add_implementation(engine, &both, NULL), LADE_OK);
	assert_int_equal(lade_spec_parse(engine, "ramp", &spec, NULL), LADE_OK);
	return spec;
}

/* Threads take several small chunks at once, and look between them. */
static void test_many_chunks_at_once(void **state)
{
	(void)state;
	enum { CHUNKS = 60, BYTES = CHUNKS * RAMP };
	static uint8_t raw[BYTES], back[BYTES];
	job *j = job_new(1);
	bytes b = {0};
	lade_spec *spec = ramp_spec(j->engine);
	lade_frame_options options = {.struct_size = sizeof options, .spec = spec,
	                              .chunk_size = RAMP};
	lade_frame_read_options read = {.struct_size = sizeof read};
	lade_cancel *cancel;
	lade_frame_writer *writer;
	lade_frame_pipe *pipe;
	size_t got;
	for (size_t i = 0; i < BYTES; i++)
		raw[i] = (uint8_t)i;
	assert_int_equal(lade_cancel_new(say_yes, NULL, &cancel, NULL), LADE_OK);
	for (int turn = 0; turn < 2; turn++) {
		lade_status want = turn ? LADE_OK : LADE_E_CANCELLED;
		b.size = 0;
		ramps = 0;
		options.cancel = turn ? NULL : cancel;
		assert_int_equal(lade_frame_writer_new(j->engine, (lade_output){&b, put}, &options,
		                                       &writer, &j->err),
		                 LADE_OK);
		lade_status status = lade_frame_writer_write(writer, raw, BYTES, &j->err);
		if (status == LADE_OK)
			status = lade_frame_writer_finish(writer, &j->err);
		assert_int_equal(status, want);
		assert_true(turn ? ramps == CHUNKS : ramps <= 30);
		lade_frame_writer_free(writer);
	}
	ramps = 0;
	lade_cancel_clear(cancel);
	read.cancel = cancel;
	assert_int_equal(lade_frame_pipe_new(j->engine, (lade_input){&b, get}, &read, &pipe, NULL),
	                 LADE_OK);
	assert_int_equal(lade_frame_pipe_read(pipe, back, BYTES, &got, &j->err), LADE_E_CANCELLED);
	assert_true(ramps <= 30);
	lade_frame_pipe_free(pipe);
	lade_spec_unref(spec);
	lade_cancel_free(cancel);
	free(b.data);
	job_free(j);
}

static void test_frames(void **state)
{
	(void)state;
	job *j = job_new(2);
	asker a = {.caller = pthread_self(), .yes_at = 1};
	uint8_t *data = hard_bytes(), *back = malloc(FILE_SIZE);
	bytes b = {NULL, 0, 0};
	lade_spec *spec;
	lade_frame_writer *writer;
	lade_frame_pipe *pipe;
	size_t got = 1;
	lade_frame_options options = {.struct_size = sizeof options, .chunk_size = 65536};
	lade_frame_read_options read = {.struct_size = sizeof read};
	assert_int_equal(lade_spec_parse(NULL, "zstd(level=19)", &spec, NULL), LADE_OK);
	options.spec = spec;
	assert_int_equal(lade_cancel_new(ask, &a, &options.cancel, NULL), LADE_OK);
	assert_int_equal(lade_frame_writer_new(j->engine, (lade_output){&b, put}, &options, &writer,
	                                       NULL),
	                 LADE_OK);
	assert_int_equal(lade_frame_writer_write(writer, data, FILE_SIZE, &j->err),
	                 LADE_E_CANCELLED);
	assert_int_equal(a.asked, 1);
	lade_cancel_clear(options.cancel);
	assert_int_equal(lade_frame_writer_finish(writer, &j->err), LADE_E_CANCELLED);
	lade_frame_writer_free(writer);

	/* A pipe: with the slow codec. */
	lade_spec *slow = j->spec;
	lade_codec_ops ops = {.struct_size = sizeof ops, .run = slow_copy};
	lade_implementation copy = {.struct_size = sizeof copy, .name = "slow/not",
	                            .algorithm = "slow", .direction = LADE_ENCODE,
	                            .codec = &ops};
	assert_int_equal(lade_engine_add_implementation(j->engine, &copy, NULL), LADE_OK);
	options.spec = slow;
	options.chunk_size = 1024;
	b.size = 0;
	assert_int_equal(lade_frame_writer_new(j->engine, (lade_output){&b, put}, &options, &writer,
	                                       NULL),
	                 LADE_OK);
	a.yes_at = 0;
	/* No chunk is stored as it is: the copies are as long, and not longer. */
	for (size_t i = 0; i < 80 << 10; i++)
		back[i] = (uint8_t)(i >> 3);
	assert_int_equal(lade_frame_writer_write(writer, back, 80 << 10, &j->err), LADE_OK);
	assert_int_equal(lade_frame_writer_finish(writer, &j->err), LADE_OK);
	lade_frame_writer_free(writer);
	read.cancel = options.cancel;
	lade_cancel_set(read.cancel);
	assert_int_equal(lade_frame_pipe_new(j->engine, (lade_input){&b, get}, &read, &pipe, NULL),
	                 LADE_OK);
	assert_int_equal(lade_frame_pipe_read(pipe, back, FILE_SIZE, &got, &j->err),
	                 LADE_E_CANCELLED);
	assert_int_equal(got, 0);
	lade_frame_pipe_free(pipe);
	/* Opening reads the frame's ends; what is read later has tokens of its own. */
	lade_frame *frame;
	lade_frame_range range = {.dst = lade_host_span(back, 1000)};
	assert_int_equal(lade_frame_open_memory(j->engine, b.data, b.size, &read, &frame, &j->err),
	                 LADE_E_CANCELLED);
	assert_null(frame);
	lade_cancel_clear(read.cancel);
	assert_int_equal(lade_frame_open_memory(j->engine, b.data, b.size, &read, &frame, &j->err),
	                 LADE_OK);
	lade_cancel_set(read.cancel);
	assert_int_equal(lade_frame_read(frame, &range, 1, NULL, NULL, &j->err),
	                 LADE_OK);
	lade_frame_close(frame);
	lade_cancel_free(options.cancel);
	lade_spec_unref(spec);
	free(b.data);
	free(data);
	free(back);
	job_free(j);
}

static void test_foreign_files(void **state)
{
	(void)state;
	static const lade_format formats[] = {LADE_FORMAT_ZST, LADE_FORMAT_GZ, LADE_FORMAT_LZ4};
	static const int levels[] = {19, 12, 12};
	uint8_t *data = hard_bytes();
	job *j = job_new(2);
	for (size_t f = 0; f < 3; f++) {
		asker a = {.caller = pthread_self(), .yes_at = 1};
		bytes b = {NULL, 0, 0};
		lade_foreign_writer *writer;
		lade_foreign_reader *reader;
		lade_foreign_options options = {
			.struct_size = sizeof options, .level = levels[f], .threads = 1};
		size_t got;
		assert_int_equal(lade_cancel_new(ask, &a, &options.cancel, NULL), LADE_OK);
		assert_int_equal(lade_foreign_writer_new(j->engine, formats[f],
		                                         (lade_output){&b, put}, &options, &writer,
		                                         NULL),
		                 LADE_OK);
		assert_int_equal(lade_foreign_writer_write(writer, data, FILE_SIZE, &j->err),
		                 LADE_E_CANCELLED);
		assert_int_equal(a.asked, 1);
		lade_foreign_writer_free(writer);
		lade_cancel_clear(options.cancel);
		b.size = 0;
		a.yes_at = 0;
		options.level = 1;
		assert_int_equal(lade_foreign_writer_new(j->engine, formats[f],
		                                         (lade_output){&b, put}, &options, &writer,
		                                         NULL),
		                 LADE_OK);
		assert_int_equal(lade_foreign_writer_write(writer, data, FILE_SIZE / 8, &j->err),
		                 LADE_OK);
		assert_int_equal(lade_foreign_writer_finish(writer, &j->err), LADE_OK);
		lade_foreign_writer_free(writer);
		assert_int_equal(lade_foreign_reader_new(j->engine, formats[f],
		                                         (lade_input){&b, get}, &options, &reader,
		                                         NULL),
		                 LADE_OK);
		lade_cancel_set(options.cancel);
		uint8_t *back = malloc(FILE_SIZE);
		assert_int_equal(lade_foreign_reader_read(reader, back, FILE_SIZE, &got, &j->err),
		                 LADE_E_CANCELLED);
		/* It has lost nothing. */
		lade_cancel_clear(options.cancel);
		for (size_t total = 0; total < FILE_SIZE / 8; total += got) {
			assert_int_equal(lade_foreign_reader_read(reader, back, FILE_SIZE, &got,
			                                          &j->err),
			                 LADE_OK);
			assert_true(got > 0 && got <= FILE_SIZE / 8 - total);
			assert_memory_equal(back, data + total, got);
		}
		lade_foreign_reader_free(reader);
		lade_cancel_free(options.cancel);
		free(back);
		free(b.data);
	}
	free(data);
	job_free(j);
}

static void test_suggestions(void **state)
{
	(void)state;
	asker a = {.caller = pthread_self(), .yes_at = 1};
	uint8_t *data = hard_bytes();
	lade_suggest_options options = {.struct_size = sizeof options, .seconds = 0.02,
	                                .dtype = LADE_U1};
	lade_suggestions *found;
	lade_error err;
	double began = now();
	assert_int_equal(lade_cancel_new(ask, &a, &options.cancel, NULL), LADE_OK);
	assert_int_equal(lade_suggest(lade_engine_default(), lade_host_cspan(data, FILE_SIZE),
	                              &options, &found, &err),
	                 LADE_E_CANCELLED);
	assert_null(found);
	assert_true(a.asked == 1 && now() - began < 2);
	lade_cancel_free(options.cancel);
	free(data);
}

/* ---- allocators -------------------------------------------------------------------------- */

typedef struct counter {
	atomic_size_t allocs, bytes; /* bytes that are out */
	bool none;
} counter;

static void *counting_alloc(void *ctx, size_t size, size_t align, lade_place place,
                            lade_stream stream)
{
	const lade_allocator *host = lade_allocator_default(LADE_HOST);
	counter *c = ctx;
	atomic_fetch_add(&c->allocs, 1);
	void *p = c->none ? NULL : host->alloc(host->ctx, size, align, place, stream);
	if (p)
		atomic_fetch_add(&c->bytes, size);
	return p;
}

static void counting_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                          lade_stream stream)
{
	const lade_allocator *host = lade_allocator_default(LADE_HOST);
	counter *c = ctx;
	atomic_fetch_sub(&c->bytes, size);
	host->free(host->ctx, ptr, size, align, place, stream);
}

static void test_allocators(void **state)
{
	(void)state;
	static counter of_engine, of_call;
	const lade_allocator engines = {&of_engine, counting_alloc, counting_free};
	const lade_allocator calls = {&of_call, counting_alloc, counting_free};
	static uint8_t packed[COUNT][2000];
	job *j = job_new(1);
	lade_engine_options o = {.struct_size = sizeof o, .threads = 3};
	lade_engine *engine;
	lade_spec *spec;
	o.allocators[LADE_HOST] = &engines;
	assert_int_equal(lade_engine_new(&o, &engine, NULL), LADE_OK);
	assert_int_equal(lade_spec_parse(NULL, "shuffle(4)|delta(<i4)|zstd|crc32", &spec, NULL),
	                 LADE_OK);
	for (size_t i = 0; i < COUNT; i++)
		j->items[i].dst = lade_host_span(packed[i], sizeof packed[i]);
	size_t before = atomic_load(&of_engine.allocs);
	j->options.allocators[LADE_HOST] = &calls;
	assert_int_equal(lade_encode_into(engine, spec, j->items, COUNT, j->results, &j->options,
	                                  &j->err),
	                 LADE_OK);
	assert_int_equal(atomic_load(&of_engine.allocs), before);
	assert_true(atomic_load(&of_call.allocs) > 0 && atomic_load(&of_call.bytes) == 0);
	for (size_t i = 0; i < COUNT; i++) {
		j->segments[i] =
			(lade_segment){.data = packed[i], .size = j->results[i].size};
		j->items[i].dst = lade_host_span(j->out[i], SIZE);
	}
	assert_int_equal(lade_decode_into(engine, spec, j->items, COUNT, j->results, &j->options,
	                                  &j->err),
	                 LADE_OK);
	assert_memory_equal(j->out, j->raw, sizeof j->raw);
	assert_int_equal(atomic_load(&of_engine.allocs), before);
	assert_int_equal(atomic_load(&of_call.bytes), 0);
	of_call.none = true;
	assert_int_equal(lade_decode_into(engine, spec, j->items, COUNT, j->results, &j->options,
	                                  &j->err),
	                 LADE_E_NOMEM);
	assert_int_equal(atomic_load(&of_call.bytes), 0);
	static const lade_allocator bad;
	j->options.allocators[LADE_HOST] = &bad;
	assert_int_equal(lade_decode_into(engine, spec, j->items, COUNT, j->results, &j->options,
	                                  &j->err),
	                 LADE_E_ARG);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	job_free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_poll),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_many_chunks_at_once),
		cmocka_unit_test(test_foreign_files),
		cmocka_unit_test(test_suggestions),
		cmocka_unit_test(test_allocators),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
