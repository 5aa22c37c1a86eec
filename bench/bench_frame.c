/*
 * bench_frame.c: what a frame costs: random ranges against decoding the chunks they touch, whole
 * frames against plain batches, and a pipe's reader with one and two threads.
 *
 * usage: bench_frame [MiB (1024)] [chunk KiB (1024)] [spec (zstd(level=3))] [rounds (5)]
 *
 * Everything runs in one process, interleaved; the figures are medians, ratios first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS_MAX 99

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(lade_status status, const lade_error *err, const char *what)
{
	if (status == LADE_OK)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, lade_status_name(status), err->message);
	exit(1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_value);
	return values[count / 2];
}

/* ---- data and frame ------------------------------------------------------------------------ */

typedef struct bytes {
	uint8_t *data;
	size_t size, cap;
} bytes;

static lade_status append(void *ctx, const void *src, size_t size, lade_error *err)
{
	bytes *b = ctx;
	if (size > b->cap - b->size)
		return lade_fail(err, LADE_E_NOSPACE, b->size, "the frame is too large");
	memcpy(b->data + b->size, src, size);
	b->size += size;
	return LADE_OK;
}

static lade_status discard(void *ctx, const void *src, size_t size, lade_error *err)
{
	(void)src;
	(void)err;
	*(size_t *)ctx += size;
	return LADE_OK;
}

static lade_status from_memory(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	bytes *b = ctx;
	(void)err;
	*got = b->cap - b->size < cap ? b->cap - b->size : cap;
	memcpy(dst, b->data + b->size, *got);
	b->size += *got;
	return LADE_OK;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* A walk of 4-byte numbers whose steps are noisy: zstd brings it to about half. */
static void fill(uint8_t *data, size_t size)
{
	uint32_t value = 1u << 20;
	for (size_t i = 0; i + 4 <= size; i += 4) {
		value += (uint32_t)(next_random() % 199) - 99;
		uint32_t out = (next_random() & 3) ? value & ~0xFu : value;
		memcpy(data + i, &out, 4);
	}
}

/* ---- measurements --------------------------------------------------------------------------- */

typedef struct setup {
	lade_engine *engine;
	const lade_spec *spec;
	lade_frame *frame;
	bytes encoded;
	const uint8_t *data;
	uint8_t *out;
	size_t size, chunk_size;
	unsigned threads;
} setup;

/* The touched chunks decoded by a plain batch, to memory that the threads use again and again:
 * what a range read cannot do without.  'touched' lists them. */
static double plain_chunks(const setup *s, const uint64_t *touched, size_t count)
{
	lade_error err;
	lade_item *items = calloc(count, sizeof *items);
	lade_segment *segments = calloc(count, sizeof *segments);
	uint8_t *scratch = malloc(64 * s->chunk_size);
	for (size_t i = 0; i < count; i++) {
		lade_frame_chunk chunk;
		must(lade_frame_get_chunk(s->frame, touched[i], &chunk, &err), &err, "chunk");
		segments[i] =
			(lade_segment){.data = s->encoded.data + chunk.off, .size = chunk.size};
		items[i] = (lade_item){
			.src = &segments[i],
			.src_count = 1,
			.dst = lade_host_span(scratch + i % 64 * s->chunk_size, s->chunk_size)};
	}
	lade_batch_options options = {.struct_size = sizeof options, .threads = s->threads};
	double start = now();
	/* 64 at a time, so that no two threads write to one place. */
	for (size_t i = 0; i < count; i += 64)
		must(lade_decode_into(s->engine, s->spec, items + i,
		                      count - i < 64 ? count - i : 64, NULL, &options, &err),
		     &err, "batch");
	double taken = now() - start;
	free(scratch);
	free(segments);
	free(items);
	return taken;
}

static double ranges_read(const setup *s, const lade_frame_range *ranges, size_t count)
{
	lade_error err;
	double start = now();
	must(lade_frame_read(s->frame, ranges, count, NULL, NULL, &err), &err, "ranges");
	return now() - start;
}

static double whole_read(const setup *s)
{
	lade_error err;
	lade_frame_range all = {0, lade_host_span(s->out, s->size)};
	double start = now();
	must(lade_frame_read(s->frame, &all, 1, NULL, NULL, &err), &err, "whole");
	return now() - start;
}

static double whole_plain(const setup *s)
{
	lade_error err;
	size_t count = (s->size + s->chunk_size - 1) / s->chunk_size;
	lade_item *items = calloc(count, sizeof *items);
	lade_segment *segments = calloc(count, sizeof *segments);
	for (size_t i = 0; i < count; i++) {
		lade_frame_chunk chunk;
		must(lade_frame_get_chunk(s->frame, i, &chunk, &err), &err, "chunk");
		segments[i] =
			(lade_segment){.data = s->encoded.data + chunk.off, .size = chunk.size};
		items[i] = (lade_item){
			.src = &segments[i],
			.src_count = 1,
			.dst = lade_host_span(s->out + i * s->chunk_size, chunk.decoded_size)};
	}
	lade_batch_options options = {.struct_size = sizeof options, .threads = s->threads};
	double start = now();
	must(lade_decode_into(s->engine, s->spec, items, count, NULL, &options, &err), &err,
	     "batch");
	double taken = now() - start;
	free(segments);
	free(items);
	return taken;
}

static double pipe_copy(const setup *s, unsigned threads)
{
	lade_error err;
	bytes in = {.data = s->encoded.data, .cap = s->encoded.size};
	lade_frame_read_options options = {.struct_size = sizeof options, .threads = threads};
	lade_frame_pipe *pipe;
	size_t got = 0;
	double start = now();
	must(lade_frame_pipe_new(s->engine, (lade_input){&in, from_memory}, &options, &pipe,
	                         &err),
	     &err, "pipe");
	must(lade_frame_pipe_copy(pipe, (lade_output){&got, discard}, &err), &err, "pipe");
	lade_frame_pipe_free(pipe);
	double taken = now() - start;
	if (got != s->size)
		abort();
	return taken;
}

/* The chunks that the ranges touch, each once. */
static size_t list_touched(const setup *s, const lade_frame_range *ranges, size_t count,
                           uint64_t *touched)
{
	size_t chunks = (s->size + s->chunk_size - 1) / s->chunk_size, found = 0;
	bool *seen = calloc(chunks, sizeof *seen);
	for (size_t i = 0; i < count; i++)
		for (uint64_t c = ranges[i].off / s->chunk_size;
		     c <= (ranges[i].off + ranges[i].dst.size - 1) / s->chunk_size; c++)
			seen[c] = true;
	for (size_t c = 0; c < chunks; c++)
		if (seen[c])
			touched[found++] = c;
	free(seen);
	return found;
}

static void run_threads(setup *s, unsigned threads, const lade_frame_range *ranges, size_t count,
                        int rounds)
{
	double random[ROUNDS_MAX], touched_time[ROUNDS_MAX], whole[ROUNDS_MAX], plain[ROUNDS_MAX],
	       pipe[ROUNDS_MAX];
	lade_error err;
	size_t chunks = (s->size + s->chunk_size - 1) / s->chunk_size;
	uint64_t *touched = calloc(chunks, sizeof *touched);
	size_t touched_count = list_touched(s, ranges, count, touched);
	lade_frame_read_options options = {.struct_size = sizeof options, .threads = threads,
	                                   .verify = LADE_VERIFY_NEVER};
	lade_frame *verified;
	must(lade_frame_open_memory(s->engine, s->encoded.data, s->encoded.size, &options,
	                            &s->frame, &err),
	     &err, "open");
	options.verify = LADE_VERIFY_IF_PRESENT;
	must(lade_frame_open_memory(s->engine, s->encoded.data, s->encoded.size, &options,
	                            &verified, &err),
	     &err, "open");
	s->threads = threads;
	lade_frame *plain_frame = s->frame;
	double verified_random[ROUNDS_MAX];
	for (int i = -1; i < rounds; i++) {
		int k = i < 0 ? 0 : i; /* the first round warms up */
		touched_time[k] = plain_chunks(s, touched, touched_count);
		random[k] = ranges_read(s, ranges, count);
		s->frame = verified;
		verified_random[k] = ranges_read(s, ranges, count);
		s->frame = plain_frame;
		plain[k] = whole_plain(s);
		whole[k] = whole_read(s);
		pipe[k] = pipe_copy(s, threads);
	}
	if (memcmp(s->out, s->data, s->size))
		abort();
	size_t n = (size_t)rounds;
	double base = median(touched_time, n), batch = median(plain, n),
	       mib = (double)s->size / (1 << 20);
	printf("threads %u: %zu ranges of 4 KiB touch %zu of %zu chunks\n", threads, count,
	       touched_count, chunks);
	printf("  ranges / decoding the touched chunks            %.3f   (%.3f with checksums "
	       "verified)\n",
	       median(random, n) / base, median(verified_random, n) / base);
	printf("  whole frame / plain batch, same memory          %.3f   (%.0f MiB/s)\n",
	       median(whole, n) / batch, mib / median(whole, n));
	printf("  pipe, verified, discarded / plain batch         %.3f   (%.0f MiB/s)\n",
	       median(pipe, n) / batch, mib / median(pipe, n));
	lade_frame_close(s->frame);
	lade_frame_close(verified);
	free(touched);
}

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 0) : 1024,
	       kib = argc > 2 ? strtoul(argv[2], NULL, 0) : 1024;
	const char *text = argc > 3 ? argv[3] : "zstd(level=3)";
	int rounds = argc > 4 ? atoi(argv[4]) : 5;
	if (!mib || !kib || rounds < 1 || rounds > ROUNDS_MAX)
		return 2;
	lade_error err;
	lade_spec *spec;
	setup s = {.size = mib << 20, .chunk_size = kib << 10};
	lade_engine_options engine = {.struct_size = sizeof engine, .threads = 2};
	must(lade_engine_new(&engine, &s.engine, &err), &err, "engine");
	must(lade_spec_parse(NULL, text, &spec, &err), &err, "spec");
	s.spec = spec;
	uint8_t *data = malloc(s.size);
	s.data = data;
	s.out = malloc(s.size);
	fill(data, s.size);
	lade_frame_options options = {.struct_size = sizeof options,
	                              .spec = spec,
	                              .chunk_size = s.chunk_size};
	s.encoded.cap = lade_frame_bound(&options, s.size);
	s.encoded.data = malloc(s.encoded.cap);
	lade_frame_writer *writer;
	double start = now();
	must(lade_frame_writer_new(s.engine, (lade_output){&s.encoded, append}, &options, &writer,
	                           &err),
	     &err, "writer");
	must(lade_frame_writer_write(writer, data, s.size, &err), &err, "write");
	must(lade_frame_writer_finish(writer, &err), &err, "finish");
	lade_frame_writer_free(writer);
	printf("%zu MiB, chunks of %zu KiB, %s: ratio %.2f, written at %.0f MiB/s with 2 threads\n",
	       mib, kib, text, (double)s.size / (double)s.encoded.size,
	       (double)mib / (now() - start));
	enum { RANGES = 10000 };
	lade_frame_range *ranges = calloc(RANGES, sizeof *ranges);
	uint8_t *small = malloc((size_t)RANGES * 4096);
	for (size_t i = 0; i < RANGES; i++)
		ranges[i] = (lade_frame_range){next_random() % (s.size - 4096),
		                               lade_host_span(small + i * 4096, 4096)};
	for (unsigned threads = 1; threads <= 2; threads++)
		run_threads(&s, threads, ranges, RANGES, rounds);
	for (size_t i = 0; i < RANGES; i++)
		if (memcmp(ranges[i].dst.data, data + ranges[i].off, 4096))
			abort();
	free(small);
	free(ranges);
	free(s.encoded.data);
	free(s.out);
	free(data);
	lade_spec_unref(spec);
	lade_engine_free(s.engine);
	return 0;
}
