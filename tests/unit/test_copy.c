/*
 * test_copy.c: whole files to outputs, in order and at their places: lade_frame_copy(),
 * lade_foreign_reader_copy(), and pipes whose caller's thread only reads and writes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>

#include <cmocka.h>

#define SEED 0x3C0B1E5F77A1D2C4ull

static lade_engine *engines[3]; /* of one, two and four threads */

static int setup(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		lade_engine_options options = {.struct_size = sizeof options, .threads = 1u << i};
		if (lade_engine_new(&options, &engines[i], NULL) != LADE_OK)
			return 1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		lade_engine_free(engines[i]);
	return 0;
}

/* ---- outputs ------------------------------------------------------------------------------ */

/* Counts what comes, looks at who calls, and can fail or cancel. */
typedef struct sink {
	kit_bytes bytes;
	pthread_t caller;
	uint64_t fail_at; /* writing this byte fails; UINT64_MAX: none */
	lade_cancel *cancel; /* set by the first write */
	atomic_size_t total;
	int fd; /* of a file, or -1 */
} sink;

static sink sink_new(size_t cap)
{
	sink s = {.caller = pthread_self(), .fail_at = UINT64_MAX, .fd = -1};
	s.bytes = (kit_bytes){.data = calloc(1, cap + 1), .cap = cap};
	assert_non_null(s.bytes.data);
	return s;
}

static lade_status sink_write_at(void *ctx, uint64_t off, const void *src, size_t size,
                                 lade_error *err)
{
	sink *s = ctx;
	if (s->fail_at >= off && s->fail_at < off + size)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "the disk is full at %llu",
		                 (unsigned long long)s->fail_at);
	if (s->cancel)
		lade_cancel_set(s->cancel);
	atomic_fetch_add(&s->total, size);
	if (s->fd >= 0)
		return pwrite(s->fd, src, size, (off_t)off) == (ssize_t)size
		               ? LADE_OK
		               : lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "pwrite");
	return kit_write_at(&s->bytes, off, src, size, err);
}

static lade_status sink_write(void *ctx, const void *src, size_t size, lade_error *err)
{
	sink *s = ctx;
	/* cmocka's assertions are for the thread of the test. */
	if (!pthread_equal(s->caller, pthread_self()))
		return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET, "called on another thread");
	return sink_write_at(ctx, s->total, src, size, err);
}

static lade_output sink_output(sink *s)
{
	return (lade_output){s, sink_write};
}

static lade_frame_copy_options copy_options(bool at)
{
	return (lade_frame_copy_options){.struct_size = sizeof(lade_frame_copy_options),
	                                 .write_at = at ? sink_write_at : NULL};
}

/* ---- frames ------------------------------------------------------------------------------- */

static kit_bytes frame_of(const char *spec, size_t chunk_size, const uint8_t *data, size_t size)
{
	lade_spec *s = kit_spec(spec);
	lade_frame_options options = kit_options(s, chunk_size);
	kit_bytes frame = kit_frame(engines[2], &options, data, size);
	lade_spec_unref(s);
	return frame;
}

static lade_status open_some(lade_engine *engine, unsigned kind, kit_input *in,
                             const lade_frame_read_options *options, lade_frame **out)
{
	if (kind == 0)
		return lade_frame_open_memory(engine, in->data, in->size, options, out, NULL);
	return lade_frame_open(engine, kind == 1 ? kit_source(in) : kit_far_source(in), options,
	                       out, NULL);
}

/* Every source, engine, number of threads and kind of output gives the bytes, each once. */
static void test_all_ways(void **state)
{
	(void)state;
	static const struct {
		const char *spec;
		size_t chunk, size;
	} cases[] = {
		{"lz4", 65536, 0},          {"lz4", 65536, 1},
		{"copy", 65536, 65536},     {"lz4", 65536, 65537},
		{"zstd", 16, 16 * 9000 + 5}, /* three index pages, the last one not full */
		{"lz4", 1000, 1000000},     {"shuffle(4)|lz4", 300000, 2000000},
		{"lz4", 1 << 20, 5000001},
	};
	rng r = {SEED};
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		size_t size = cases[k].size;
		uint8_t *data = malloc(size + 1);
		kit_fill(data, size, 4, &r);
		kit_bytes frame = frame_of(cases[k].spec, cases[k].chunk, data, size);
		for (unsigned way = 0; way < 3 * 3 * 3 * 2 * 2; way++) {
			unsigned kind = way % 3, e = way / 3 % 3, threads = way / 9 % 3;
			bool at = way / 27 % 2, apart = way / 54 % 2;
			kit_input in = {.data = frame.data, .size = frame.size};
			lade_frame_read_options read = kit_read_options(LADE_VERIFY_REQUIRED);
			read.threads = threads;
			read.flags = apart ? LADE_FRAME_APART : 0;
			lade_frame *f;
			assert_int_equal(open_some(engines[e], kind, &in, &read, &f), LADE_OK);
			sink s = sink_new(size);
			lade_frame_copy_options options = copy_options(at);
			lade_error err;
			lade_status status = lade_frame_copy(f, sink_output(&s), &options, &err);
			if (status != LADE_OK || s.total != size ||
			    memcmp(s.bytes.data, data, size))
				fail_msg("case %zu, way %u: %s: %zu bytes of %zu: %s", k, way,
				         lade_status_name(status), (size_t)s.total, size,
				         status ? err.message : "");
			free(s.bytes.data);
			lade_frame_close(f);
		}
		free(frame.data);
		free(data);
	}
}

/* From a file to a file. */
static void test_files(void **state)
{
	(void)state;
	enum { SIZE = 3000000 };
	rng r = {SEED};
	uint8_t *data = malloc(SIZE), *back = malloc(SIZE + 1);
	kit_fill(data, SIZE, 2, &r);
	kit_bytes frame = frame_of("zstd", 100000, data, SIZE);
	char *from = kit_file(frame.data, frame.size), *to = kit_file(NULL, 0);
	for (unsigned map = 0; map < 2; map++) {
		lade_frame_read_options read = kit_read_options(LADE_VERIFY_REQUIRED);
		lade_frame_copy_options options = copy_options(true);
		lade_frame *f;
		sink s = sink_new(0);
		read.flags = map ? LADE_FRAME_MAP : 0;
		s.fd = open(to, O_RDWR | O_TRUNC);
		assert_true(s.fd >= 0);
		assert_int_equal(lade_frame_open_path(engines[2], from, &read, &f, NULL), LADE_OK);
		assert_int_equal(lade_frame_copy(f, sink_output(&s), &options, NULL), LADE_OK);
		assert_int_equal(pread(s.fd, back, SIZE + 1, 0), SIZE);
		assert_memory_equal(back, data, SIZE);
		lade_frame_close(f);
		close(s.fd);
		free(s.bytes.data);
	}
	unlink(from);
	unlink(to);
	free(from);
	free(to);
	free(frame.data);
	free(data);
	free(back);
}

static void test_arguments(void **state)
{
	(void)state;
	kit_bytes frame = frame_of("copy", 16, (const uint8_t *)"lade", 4);
	lade_frame_copy_options options = copy_options(false);
	lade_frame *f;
	lade_error err;
	sink s = sink_new(4);
	assert_int_equal(lade_frame_open_memory(engines[0], frame.data, frame.size, NULL, &f, NULL),
	                 LADE_OK);
	assert_int_equal(lade_frame_copy(NULL, sink_output(&s), NULL, &err), LADE_E_ARG);
	assert_string_equal(err.message, "frame is NULL");
	assert_int_equal(lade_frame_copy(f, (lade_output){&s, NULL}, &options, &err), LADE_E_ARG);
	assert_string_equal(err.message, "output.write is NULL");
	options.struct_size = 3;
	assert_int_equal(lade_frame_copy(f, sink_output(&s), &options, &err), LADE_E_ARG);
	assert_int_equal(s.total, 0);
	/* An output that takes all bytes at their places needs no other call. */
	options = copy_options(true);
	assert_int_equal(lade_frame_copy(f, (lade_output){&s, NULL}, &options, NULL), LADE_OK);
	assert_memory_equal(s.bytes.data, "lade", 4);
	assert_int_equal(lade_foreign_reader_copy(NULL, sink_output(&s), &err), LADE_E_ARG);
	assert_string_equal(err.message, "reader is NULL");
	assert_int_equal(lade_foreign_writer_copy(NULL, (lade_input){0}, &err), LADE_E_ARG);
	assert_string_equal(err.message, "writer is NULL");
	lade_frame_close(f);
	free(frame.data);
	free(s.bytes.data);
}

/* ---- failures ------------------------------------------------------------------------------ */

enum { CHUNK = 10000, CHUNKS = 400 };

/* A frame that all failures share; its bytes are noise, so that a payload's length is known. */
typedef struct sample {
	uint8_t *data;
	kit_bytes frame;
} sample;

static sample sample_new(void)
{
	rng r = {SEED};
	sample s = {.data = malloc(CHUNK * CHUNKS)};
	kit_fill(s.data, CHUNK * CHUNKS, 1, &r);
	s.frame = frame_of("lz4", CHUNK, s.data, CHUNK * CHUNKS);
	return s;
}

static void sample_free(sample *s)
{
	free(s->data);
	free(s->frame.data);
}

/* The first bad chunk is told as a read of it tells it, and all bytes before it have been written;
 * in order, nothing else has. */
static void test_bad_chunks(void **state)
{
	(void)state;
	static const size_t bad[] = {0, 1, 7, 26, 200, CHUNKS - 1};
	sample all = sample_new();
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		for (unsigned way = 0; way < 3 * 3 * 2; way++) {
			unsigned kind = way % 3, e = way / 3 % 3;
			bool at = way / 9;
			kit_input in = {.data = all.frame.data, .size = all.frame.size};
			lade_frame_copy_options options = copy_options(at);
			lade_frame *f;
			lade_frame_chunk chunk;
			lade_error err, want;
			sink s = sink_new(CHUNK * CHUNKS);
			assert_int_equal(open_some(engines[e], kind, &in, NULL, &f), LADE_OK);
			/* And one behind it. */
			for (size_t i = bad[k]; i < CHUNKS; i += 9) {
				assert_int_equal(lade_frame_get_chunk(f, i, &chunk, NULL), LADE_OK);
				all.frame.data[chunk.off + 5] ^= 1;
			}
			uint8_t one;
			lade_frame_range range = {bad[k] * CHUNK, lade_host_span(&one, 1)};
			assert_int_equal(lade_frame_read(f, &range, 1, NULL, NULL, &want),
			                 LADE_E_CHECKSUM);
			assert_int_equal(lade_frame_copy(f, sink_output(&s), &options, &err),
			                 LADE_E_CHECKSUM);
			assert_string_equal(err.message, want.message);
			assert_int_equal(err.offset, want.offset);
			assert_memory_equal(s.bytes.data, all.data, bad[k] * CHUNK);
			if (!at)
				assert_int_equal(s.total, bad[k] * CHUNK);
			for (size_t i = bad[k]; i < CHUNKS; i += 9) {
				assert_int_equal(lade_frame_get_chunk(f, i, &chunk, NULL), LADE_OK);
				all.frame.data[chunk.off + 5] ^= 1;
			}
			lade_frame_close(f);
			free(s.bytes.data);
		}
	}
	sample_free(&all);
}

static void test_bad_outputs(void **state)
{
	(void)state;
	static const uint64_t bad[] = {0, CHUNK, 123 * CHUNK + 7, CHUNK * CHUNKS - 1};
	sample all = sample_new();
	for (size_t k = 0; k < 4; k++) {
		for (unsigned way = 0; way < 3 * 3 * 2; way++) {
			unsigned kind = way % 3, e = way / 3 % 3;
			kit_input in = {.data = all.frame.data, .size = all.frame.size};
			lade_frame_copy_options options = copy_options(way / 9);
			lade_frame *f;
			lade_error err;
			char text[64];
			sink s = sink_new(CHUNK * CHUNKS);
			s.fail_at = bad[k];
			snprintf(text, sizeof text, "the disk is full at %llu",
			         (unsigned long long)bad[k]);
			assert_int_equal(open_some(engines[e], kind, &in, NULL, &f), LADE_OK);
			assert_int_equal(lade_frame_copy(f, sink_output(&s), &options, &err),
			                 LADE_E_IO);
			assert_string_equal(err.message, text);
			assert_true(s.total < CHUNK * CHUNKS);
			/* The frame is as good as before. */
			s.fail_at = UINT64_MAX;
			s.total = 0;
			assert_int_equal(lade_frame_copy(f, sink_output(&s), &options, &err),
			                 LADE_OK);
			assert_memory_equal(s.bytes.data, all.data, CHUNK * CHUNKS);
			lade_frame_close(f);
			free(s.bytes.data);
		}
	}
	sample_free(&all);
}

static void test_cancelled(void **state)
{
	(void)state;
	sample all = sample_new();
	lade_cancel *cancel;
	assert_int_equal(lade_cancel_new(NULL, NULL, &cancel, NULL), LADE_OK);
	for (unsigned way = 0; way < 3 * 3 * 2; way++) {
		unsigned kind = way % 3, e = way / 3 % 3;
		kit_input in = {.data = all.frame.data, .size = all.frame.size};
		lade_frame_copy_options options = copy_options(way / 9);
		lade_frame *f;
		lade_error err;
		sink s = sink_new(CHUNK * CHUNKS);
		options.cancel = cancel;
		assert_int_equal(open_some(engines[e], kind, &in, NULL, &f), LADE_OK);
		lade_cancel_set(cancel);
		assert_int_equal(lade_frame_copy(f, sink_output(&s), &options, &err),
		                 LADE_E_CANCELLED);
		assert_int_equal(s.total, 0);
		/* By the first write: what has begun is done, and no more. */
		lade_cancel_clear(cancel);
		s.cancel = cancel;
		assert_int_equal(lade_frame_copy(f, sink_output(&s), &options, &err),
		                 LADE_E_CANCELLED);
		/* From afar all of it is two pieces, which may both have begun. */
		assert_true(s.total > 0 && (kind == 2 || s.total < CHUNK * CHUNKS));
		lade_cancel_clear(cancel);
		lade_frame_close(f);
		free(s.bytes.data);
	}
	lade_cancel_free(cancel);
	sample_free(&all);
}

/* A token that is asked: on the thread that made the call, and no other. */
typedef struct asked {
	pthread_t caller;
	atomic_uint asks, strangers;
	sink *sink;
} asked;

static bool ask(void *ctx)
{
	asked *a = ctx;
	a->strangers += !pthread_equal(a->caller, pthread_self());
	return ++a->asks == 1;
}

/* Takes its time, so that the token is asked. */
static lade_status slow_write_at(void *ctx, uint64_t off, const void *src, size_t size,
                                 lade_error *err)
{
	usleep(20000);
	return sink_write_at(((asked *)ctx)->sink, off, src, size, err);
}

static lade_status slow_write(void *ctx, const void *src, size_t size, lade_error *err)
{
	usleep(20000);
	return sink_write(((asked *)ctx)->sink, src, size, err);
}

static void test_asked(void **state)
{
	(void)state;
	sample all = sample_new();
	for (unsigned way = 0; way < 2 * 3 * 2; way++) {
		unsigned kind = way % 2, e = way / 2 % 3;
		kit_input in = {.data = all.frame.data, .size = all.frame.size};
		lade_frame_copy_options options = copy_options(false);
		lade_frame *f;
		sink s = sink_new(CHUNK * CHUNKS);
		asked a = {.caller = pthread_self(), .sink = &s};
		if (way / 6)
			options.write_at = slow_write_at;
		assert_int_equal(lade_cancel_new(ask, &a, &options.cancel, NULL), LADE_OK);
		assert_int_equal(open_some(engines[e], kind, &in, NULL, &f), LADE_OK);
		assert_int_equal(lade_frame_copy(f, (lade_output){&a, slow_write}, &options, NULL),
		                 LADE_E_CANCELLED);
		assert_int_equal(a.asks, 1);
		assert_int_equal(a.strangers, 0);
		lade_cancel_free(options.cancel);
		lade_frame_close(f);
		free(s.bytes.data);
	}
	sample_free(&all);
}

/* A file that is replaced while it is copied. */
static lade_status replace(void *ctx, const void *src, size_t size, lade_error *err)
{
	const char *path = ctx;
	int fd = open(path, O_WRONLY | O_TRUNC);
	(void)src, (void)size, (void)err;
	if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) != 0)
		return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET, "not replaced");
	return LADE_OK;
}

static void test_changed(void **state)
{
	(void)state;
	sample all = sample_new();
	char *path = kit_file(all.frame.data, all.frame.size);
	lade_frame *f;
	assert_int_equal(lade_frame_open_path(engines[1], path, NULL, &f, NULL), LADE_OK);
	assert_int_equal(lade_frame_copy(f, (lade_output){path, replace}, NULL, NULL),
	                 LADE_E_CHANGED);
	lade_frame_close(f);
	unlink(path);
	free(path);
	sample_free(&all);
}

/* ---- two threads at once --------------------------------------------------------------------- */

/* An output whose second write, of 1 MiB as all are, waits until bytes have been read that only
 * the third one needs. */
typedef struct meeting {
	pthread_mutex_t mutex;
	pthread_cond_t more;
	kit_input in;
	size_t read, writes;
	bool met;
	sink *sink;
} meeting;
#define MEETING ((size_t)5 << 19)

static lade_status meeting_read(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	meeting *m = ctx;
	lade_status status = kit_read(&m->in, dst, cap < 5000 ? cap : 5000, got, err);
	pthread_mutex_lock(&m->mutex);
	m->read += *got;
	pthread_cond_signal(&m->more);
	pthread_mutex_unlock(&m->mutex);
	return status;
}

static lade_status meeting_write(void *ctx, const void *src, size_t size, lade_error *err)
{
	meeting *m = ctx;
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	pthread_mutex_lock(&m->mutex);
	bool wait = m->writes++ == 1;
	while (wait && m->read < MEETING &&
	       pthread_cond_timedwait(&m->more, &m->mutex, &until) == 0)
		;
	m->met |= wait && m->read >= MEETING;
	pthread_mutex_unlock(&m->mutex);
	return sink_write(m->sink, src, size, err);
}

/* The source of such an input. */
static void meeting_ranges(void *ctx, lade_reading *reading, size_t count)
{
	meeting *m = ctx;
	size_t size = 0;
	for (size_t i = 0; i < count; i++)
		size += lade_reading_range(reading, i)->dst.size;
	kit_read_ranges(&m->in, reading, count);
	pthread_mutex_lock(&m->mutex);
	m->read += size;
	pthread_cond_signal(&m->more);
	pthread_mutex_unlock(&m->mutex);
}

enum { FOREIGN = 12 << 20 };

static kit_bytes foreign_of(lade_format format, const uint8_t *data, size_t size)
{
	kit_bytes out = {0};
	lade_foreign_writer *w;
	assert_int_equal(lade_foreign_writer_new(engines[2], format, kit_output(&out), NULL, &w,
	                                         NULL), LADE_OK);
	assert_int_equal(lade_foreign_writer_write(w, data, size, NULL), LADE_OK);
	assert_int_equal(lade_foreign_writer_finish(w, NULL), LADE_OK);
	lade_foreign_writer_free(w);
	return out;
}

/* Other tools' files: decoded while they are written, if the engine has two threads. */
static void test_foreign(void **state)
{
	(void)state;
	static const lade_format formats[] = {LADE_FORMAT_ZST, LADE_FORMAT_GZ, LADE_FORMAT_LZ4};
	rng r = {SEED};
	uint8_t *data = malloc(FOREIGN);
	kit_fill(data, FOREIGN, 1, &r);
	for (size_t k = 0; k < 3; k++) {
		kit_bytes file = foreign_of(formats[k], data, FOREIGN);
		for (unsigned e = 0; e < 3; e++) {
			sink s = sink_new(FOREIGN);
			meeting m = {.in = {.data = file.data, .size = file.size}, .sink = &s,
			             .mutex = PTHREAD_MUTEX_INITIALIZER,
			             .more = PTHREAD_COND_INITIALIZER,
			             .writes = e == 0 ? 2 : 0};
			lade_input input = {&m, meeting_read};
			lade_foreign_reader *reader;
			assert_int_equal(lade_foreign_reader_new(engines[e], formats[k], input,
			                                         NULL, &reader, NULL), LADE_OK);
			assert_int_equal(lade_foreign_reader_copy(
						 reader, (lade_output){&m, meeting_write}, NULL),
			                 LADE_OK);
			assert_int_equal(m.met, e != 0);
			assert_int_equal(s.total, FOREIGN);
			assert_memory_equal(s.bytes.data, data, FOREIGN);
			lade_foreign_reader_free(reader);
			free(s.bytes.data);
		}
		free(file.data);
	}
	free(data);
}

/* One thread decodes and the caller's writes at the same time, if it is asked to be apart. */
static void test_apart(void **state)
{
	(void)state;
	static const lade_source_ops ops = {.struct_size = sizeof ops,
	                                    .flags = LADE_SOURCE_LOCAL,
	                                    .read = meeting_ranges};
	rng r = {SEED};
	uint8_t *data = malloc(FOREIGN);
	kit_fill(data, FOREIGN, 1, &r);
	kit_bytes frame = frame_of("lz4", 1 << 20, data, FOREIGN);
	for (unsigned way = 0; way < 3; way++) {
		bool apart = way < 2;
		lade_frame_read_options read = kit_read_options(LADE_VERIFY_REQUIRED);
		sink s = sink_new(FOREIGN);
		meeting m = {.in = {.data = frame.data, .size = frame.size}, .sink = &s,
		             .mutex = PTHREAD_MUTEX_INITIALIZER,
		             .more = PTHREAD_COND_INITIALIZER,
		             .writes = apart ? 0 : 2};
		lade_frame *f;
		read.threads = 1;
		read.flags = apart ? LADE_FRAME_APART : 0;
		assert_int_equal(lade_frame_open(engines[1 + way % 2], (lade_source){&ops, &m},
		                                 &read, &f, NULL), LADE_OK);
		assert_int_equal(lade_frame_copy(f, (lade_output){&m, meeting_write}, NULL, NULL),
		                 LADE_OK);
		assert_int_equal(m.met, apart);
		assert_int_equal(s.total, FOREIGN);
		assert_memory_equal(s.bytes.data, data, FOREIGN);
		lade_frame_close(f);
		free(s.bytes.data);
	}
	free(frame.data);
	free(data);
}

/* A pipe's reader with one thread that decodes: the caller's reads on while that one works. */
static void test_apart_pipe(void **state)
{
	(void)state;
	sample all = sample_new();
	for (unsigned e = 0; e < 3; e++) {
		for (unsigned threads = 1; threads < 4; threads++) {
			kit_input in = {.data = all.frame.data, .size = all.frame.size};
			lade_frame_read_options read = kit_read_options(LADE_VERIFY_REQUIRED);
			sink s = sink_new(CHUNK * CHUNKS);
			lade_frame_pipe *pipe;
			read.threads = threads;
			read.flags = LADE_FRAME_APART;
			assert_int_equal(lade_frame_pipe_new(engines[e],
			                                     (lade_input){&in, kit_read}, &read,
			                                     &pipe, NULL), LADE_OK);
			assert_int_equal(lade_frame_pipe_copy(pipe, sink_output(&s), NULL),
			                 LADE_OK);
			assert_int_equal(s.total, CHUNK * CHUNKS);
			assert_memory_equal(s.bytes.data, all.data, CHUNK * CHUNKS);
			lade_frame_pipe_free(pipe);
			free(s.bytes.data);
		}
	}
	sample_free(&all);
}

/* An input gives the file that the same bytes in one piece give; one that fails is final. */
static lade_status cut(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	kit_input *in = ctx;
	if (in->at > FOREIGN / 2)
		return lade_fail(err, LADE_E_IO, in->at, "the input fails");
	return kit_read(ctx, dst, cap, got, err);
}

static void test_foreign_writers(void **state)
{
	(void)state;
	static const lade_format formats[] = {LADE_FORMAT_ZST, LADE_FORMAT_GZ, LADE_FORMAT_LZ4};
	rng r = {SEED};
	uint8_t *data = malloc(FOREIGN);
	kit_fill(data, FOREIGN, 4, &r);
	for (size_t k = 0; k < 3; k++) {
		kit_bytes want = foreign_of(formats[k], data, FOREIGN);
		for (unsigned way = 0; way < 3; way++) {
			kit_input in = {.data = data, .size = FOREIGN,
			                .random = way == 1 ? &r : NULL};
			lade_input input = {&in, way == 2 ? cut : kit_read};
			lade_foreign_writer *w;
			lade_error err;
			kit_bytes out = {0};
			assert_int_equal(lade_foreign_writer_new(engines[1], formats[k],
			                                         kit_output(&out), NULL, &w, NULL),
			                 LADE_OK);
			assert_int_equal(lade_foreign_writer_copy(w, (lade_input){0}, &err),
			                 LADE_E_ARG);
			assert_int_equal(lade_foreign_writer_copy(w, input, &err),
			                 way == 2 ? LADE_E_IO : LADE_OK);
			if (way == 2) {
				assert_string_equal(err.message, "the input fails");
				assert_int_equal(lade_foreign_writer_finish(w, &err), LADE_E_IO);
				assert_string_equal(err.message, "the input fails");
			} else {
				assert_int_equal(lade_foreign_writer_finish(w, &err), LADE_OK);
				assert_int_equal(lade_foreign_writer_copy(w, input, &err),
				                 LADE_E_STATE);
				assert_int_equal(out.size, want.size);
				assert_memory_equal(out.data, want.data, want.size);
			}
			lade_foreign_writer_free(w);
			free(out.data);
		}
		free(want.data);
	}
	free(data);
}

/* Cut, and outputs that fail: what was decoded before the cut has been written, and every later
 * call tells the same. */
static void test_foreign_failures(void **state)
{
	(void)state;
	rng r = {SEED};
	uint8_t *data = malloc(FOREIGN);
	kit_fill(data, FOREIGN, 1, &r);
	kit_bytes file = foreign_of(LADE_FORMAT_ZST, data, FOREIGN);
	lade_cancel *cancel;
	assert_int_equal(lade_cancel_new(NULL, NULL, &cancel, NULL), LADE_OK);
	for (unsigned e = 0; e < 3; e++) {
		for (unsigned way = 0; way < 3; way++) {
			static const lade_status want[] = {LADE_E_TRUNCATED, LADE_E_IO,
			                                   LADE_E_CANCELLED};
			kit_input in = {.data = file.data, .size = file.size};
			lade_foreign_options options = {.struct_size = sizeof options};
			lade_foreign_reader *reader;
			lade_error err, again;
			uint8_t byte;
			size_t got;
			sink s = sink_new(FOREIGN);
			if (way == 0)
				in.size /= 2;
			if (way == 1)
				s.fail_at = FOREIGN / 2;
			if (way == 2)
				s.cancel = options.cancel = cancel;
			assert_int_equal(
				lade_foreign_reader_new(engines[e], LADE_FORMAT_ZST,
			                                (lade_input){&in, kit_read}, &options,
			                                &reader, NULL), LADE_OK);
			assert_int_equal(lade_foreign_reader_copy(reader, sink_output(&s), &err),
			                 want[way]);
			assert_true(s.total > 0 && s.total < FOREIGN);
			assert_memory_equal(s.bytes.data, data, s.total);
			if (way == 0)
				assert_true(s.total > FOREIGN / 2 - (1 << 20));
			lade_cancel_clear(cancel);
			assert_int_equal(lade_foreign_reader_read(reader, &byte, 1, &got, &again),
			                 want[way]);
			assert_string_equal(again.message, err.message);
			assert_int_equal(again.status, err.status);
			lade_foreign_reader_free(reader);
			free(s.bytes.data);
		}
	}
	lade_cancel_free(cancel);
	free(file.data);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_ways),      cmocka_unit_test(test_files),
		cmocka_unit_test(test_arguments),     cmocka_unit_test(test_bad_chunks),
		cmocka_unit_test(test_bad_outputs),   cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_changed),       cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_apart),         cmocka_unit_test(test_apart_pipe),
		cmocka_unit_test(test_foreign_failures), cmocka_unit_test(test_foreign_writers),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
