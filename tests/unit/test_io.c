/*
 * test_io.c: sources and sinks: ranges at every edge, hostile callbacks, versions, cancelled calls,
 * files that are written whole or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "guard.h"

#include <lade/io.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/lade-io-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) == NULL;
}

static size_t entries(void)
{
	size_t count = 0;
	DIR *d = opendir(dir);
	while (readdir(d))
		count++;
	closedir(d);
	return count - 2;
}

static int teardown(void **state)
{
	(void)state;
	size_t left = entries();
	char command[64];
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command) != 0 || left != 0;
}

static const char *path_of(const char *name)
{
	static char path[4][128];
	static int turn;
	char *out = path[turn++ & 3];
	snprintf(out, sizeof path[0], "%s/%s", dir, name);
	return out;
}

static void write_plain(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	close(fd);
}

static size_t read_plain(const char *path, void *data, size_t cap)
{
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	ssize_t n = read(fd, data, cap);
	assert_true(n >= 0);
	close(fd);
	return (size_t)n;
}

/* ---- a source by callback ---------------------------------------------------------------- */

/* What it does wrong. */
enum {
	GOOD,
	SHORT,        /* gives a byte less and says LADE_OK */
	TOO_MANY,     /* claims more bytes than were asked for */
	GROWN,        /* says the object is larger than it is */
	SHRUNK,       /* says it is smaller than what it gives */
	FAILS,        /* without a message */
	FAILS_FULLY,  /* with a message, and a size */
	TWICE,        /* answers twice, and ranges that are not there */
	OTHER_VERSION, /* gives the version of something else */
	STATUS_AT_ODDS, /* the error has another status */
	WAYS,
};

typedef struct callback {
	const uint8_t *data;
	size_t size;
	int way;
	size_t bad; /* the range that it is wrong with */
	size_t calls, ranges;
	bool late; /* answers on another thread, the last range first */
	bool hide; /* does not state the size */
	lade_cancel *cancel; /* set before the second range */
	pthread_t thread;
	/* of the late call */
	size_t count;
	lade_reading *reading;
} callback;

static void answer_one(callback *c, size_t i, lade_reading *reading)
{
	lade_range *r = lade_reading_range(reading, i);
	lade_error err = {.message = ""};
	uint64_t off;
	if (lade_reading_cancelled(reading)) {
		lade_reading_done(reading, i, LADE_E_CANCELLED, NULL);
		return;
	}
	int way = i == c->bad ? c->way : GOOD;
	lade_status status = lade_range_place(r, c->size, &off, &r->size, &err);
	r->object_size = c->hide ? LADE_SIZE_UNKNOWN : c->size;
	if (status == LADE_OK && r->size)
		memcpy(r->dst.data, c->data + off, r->size);
	if (r->version)
		*r->version = (lade_object_version){3, {1, 2, 3}};
	switch (way) {
	case SHORT:
		r->size--;
		break;
	case TOO_MANY:
		r->size = r->dst.size + 1;
		break;
	case GROWN:
		r->object_size += 100;
		break;
	case SHRUNK:
		r->object_size = r->size / 2;
		break;
	case FAILS:
		status = LADE_E_IO;
		break;
	case FAILS_FULLY:
		status = lade_fail(&err, LADE_E_IO, 17, "the line is dead");
		r->size = 5;
		break;
	case OTHER_VERSION:
		r->version->bytes[1] = 9;
		break;
	case STATUS_AT_ODDS:
		status = LADE_E_IO;
		err.status = LADE_E_CORRUPT;
		break;
	}
	if (way == TWICE) {
		lade_reading_done(reading, i, status, &err);
		lade_reading_done(reading, SIZE_MAX, LADE_E_IO, NULL);
		status = LADE_E_IO;
	}
	lade_reading_done(reading, i, status, &err);
	if (c->cancel && i == 0)
		lade_cancel_set(c->cancel);
}

static void *answer_late(void *ctx)
{
	callback *c = ctx;
	usleep(2000);
	for (size_t i = c->count; i-- > 0;)
		answer_one(c, i, c->reading);
	return NULL;
}

static void callback_read(void *ctx, lade_reading *reading, size_t count)
{
	callback *c = ctx;
	c->calls++;
	c->ranges += count;
	if (c->late) {
		c->count = count;
		c->reading = reading;
		assert_int_equal(pthread_create(&c->thread, NULL, answer_late, c), 0);
		return;
	}
	for (size_t i = 0; i < count; i++)
		answer_one(c, i, reading);
}

static const lade_source_ops callback_ops = {.struct_size = sizeof callback_ops,
                                             .read = callback_read};

/* ---- every source ---------------------------------------------------------------------------- */

enum { BY_FILE, BY_MAP, BY_MEMORY, BY_CALLBACK, BY_LATE, BY_HIDDEN, SOURCES };

typedef struct opened {
	lade_source source;
	callback callback;
	int kind;
} opened;

static void open_source(opened *o, int kind, const char *path, const uint8_t *data, size_t size)
{
	lade_file_options map = {.struct_size = sizeof map, .flags = LADE_FILE_MAP};
	lade_error err;
	lade_status status = LADE_OK;
	o->kind = kind;
	o->callback = (callback){.data = data,
	                         .size = size,
	                         .late = kind == BY_LATE,
	                         .hide = kind == BY_HIDDEN};
	if (kind == BY_FILE || kind == BY_MAP)
		status = lade_source_file_open(path, kind == BY_MAP ? &map : NULL, &o->source,
		                               &err);
	else if (kind == BY_MEMORY)
		status = lade_source_memory_open(lade_host_cspan(data, size), &o->source, &err);
	else
		o->source = (lade_source){&callback_ops, &o->callback};
	assert_int_equal(status, LADE_OK);
}

static lade_status read_ranges(opened *o, lade_range *ranges, size_t count,
                               const lade_io_options *options, lade_error *err)
{
	size_t calls = o->callback.calls;
	lade_status status = lade_source_read(o->source, ranges, count, options, err);
	if (o->callback.late && o->callback.calls > calls)
		pthread_join(o->callback.thread, NULL);
	return status;
}

/* What a range has to give, worked out the long way. */
static lade_status expected(const lade_range *r, size_t size, size_t *from, size_t *count)
{
	*from = *count = 0;
	if (r->kind == LADE_RANGE_LAST) {
		*count = r->dst.size < size ? r->dst.size : size;
		*from = size - *count;
		return LADE_OK;
	}
	if (r->off > size)
		return LADE_E_RANGE;
	size_t left = size - (size_t)r->off;
	*from = (size_t)r->off;
	*count = r->kind == LADE_RANGE_AT ? r->dst.size : left;
	if (r->kind == LADE_RANGE_AT && r->dst.size > left)
		return LADE_E_RANGE;
	return *count > r->dst.size ? LADE_E_NOSPACE : LADE_OK;
}

static void check_range(const lade_range *r, const uint8_t *data, size_t size, bool told)
{
	size_t from, count;
	lade_status status = expected(r, size, &from, &count);
	if (r->status != status)
		fail_msg("kind %d, %zu bytes at %llu of %zu: %s", (int)r->kind, r->dst.size,
		         (unsigned long long)r->off, size, lade_status_name(r->status));
	assert_int_equal(r->size, status == LADE_OK ? count : 0);
	if (told)
		assert_int_equal(r->object_size, size);
	if (r->size)
		assert_memory_equal(r->dst.data, data + from, r->size);
}

static void ranges_at_every_edge(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 2, 100, 4096, 4097};
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		size_t size = sizes[s];
		uint8_t data[5000];
		for (size_t i = 0; i < size; i++)
			data[i] = (uint8_t)(i * 7 + i / 256);
		const char *path = path_of("edge");
		write_plain(path, data, size);
		uint64_t offs[] = {0, 1, size / 2, size ? size - 1 : 0, size, size + 1,
		                   UINT64_MAX - 1, UINT64_MAX};
		size_t caps[] = {0, 1, size / 2, size ? size - 1 : 0, size, size + 1, 5000};
		for (int source = 0; source < SOURCES; source++) {
			opened o;
			open_source(&o, source, path, data, size);
			for (int kind = 0; kind < 3; kind++)
				for (size_t a = 0; a < 8; a++)
					for (size_t b = 0; b < 7; b++) {
						guard to = guard_new(caps[b], 1);
						lade_range r = {.off = offs[a],
						                .kind = (lade_range_kind)kind,
						                .dst = {to.data, caps[b], {0}}};
						lade_error err = {.message = ""};
						lade_status status =
							read_ranges(&o, &r, 1, NULL, &err);
						assert_int_equal(status, r.status);
						assert_int_equal(status != LADE_OK,
						                 err.message[0] != 0);
						check_range(&r, data, size, source != BY_HIDDEN);
						guard_free(&to);
					}
			lade_source_close(o.source);
		}
		unlink(path);
	}
}

/* Thousands of ranges in one call, some of which adjoin, overlap, or fail. */
static void thousands_of_ranges(void **state)
{
	(void)state;
	enum { SIZE = 3 << 20, COUNT = 6000 };
	uint8_t *data = malloc(SIZE), *to = malloc(COUNT * 4096);
	lade_range *ranges = calloc(COUNT, sizeof *ranges);
	lade_error *errors = calloc(COUNT, sizeof *errors);
	rng r = {5};
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)rng_next(&r);
	const char *path = path_of("thousands");
	write_plain(path, data, SIZE);
	for (int source = 0; source < SOURCES; source++)
		for (unsigned threads = 0; threads < 9; threads += 4) {
			opened o;
			lade_io_options options = {.struct_size = sizeof options,
			                           .threads = threads,
			                           .errors = errors};
			uint64_t next = 0;
			open_source(&o, source, path, data, SIZE);
			for (size_t i = 0; i < COUNT; i++) {
				size_t n = rng_below(&r, 4097);
				bool adjoin = rng_below(&r, 4) != 0 && next + n <= SIZE;
				ranges[i] = (lade_range){
					.off = adjoin ? next : rng_below(&r, SIZE + 10),
					.kind = rng_below(&r, 20) ? LADE_RANGE_AT
				                : i % 2           ? LADE_RANGE_REST
				                                  : LADE_RANGE_LAST,
					.dst = lade_host_span(to + i * 4096, n)};
				next = ranges[i].off + n;
			}
			lade_status status = read_ranges(&o, ranges, COUNT, &options, NULL);
			size_t failed = 0;
			for (size_t i = 0; i < COUNT; i++) {
				check_range(&ranges[i], data, SIZE, source != BY_HIDDEN);
				if (ranges[i].status == LADE_OK)
					continue;
				assert_int_equal(errors[i].status, ranges[i].status);
				if (failed++ == 0)
					assert_int_equal(status, ranges[i].status);
			}
			assert_true(failed > 10);
			if (o.callback.calls)
				assert_int_equal(o.callback.ranges, COUNT);
			lade_source_close(o.source);
		}
	unlink(path);
	free(data);
	free(to);
	free(ranges);
	free(errors);
}

/* A range that several threads share, between others that adjoin it. */
static void large_ranges(void **state)
{
	(void)state;
	enum { SIZE = 40 << 20 };
	uint8_t *data = malloc(SIZE), *to = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i += 4)
		memcpy(data + i, &i, 4);
	const char *path = path_of("large");
	write_plain(path, data, SIZE);
	for (unsigned threads = 1; threads < 6; threads += 2) {
		opened o;
		lade_io_options options = {.struct_size = sizeof options, .threads = threads};
		open_source(&o, BY_FILE, path, data, SIZE);
		memset(to, 0, SIZE);
		lade_range ranges[] = {{.dst = lade_host_span(to, 3)},
		                       {.off = 3, .dst = lade_host_span(to + 3, SIZE - 3)},
		                       {.dst = lade_host_span(to, 0)}};
		assert_int_equal(read_ranges(&o, ranges, 3, &options, NULL), LADE_OK);
		assert_memory_equal(to, data, SIZE);
		lade_source_close(o.source);
	}
	unlink(path);
	free(data);
	free(to);
}

/* ---- callers that are wrong, and sources that are ------------------------------------------- */

static void what_is_refused(void **state)
{
	(void)state;
	opened o;
	lade_error err;
	uint8_t to[8];
	open_source(&o, BY_CALLBACK, NULL, (const uint8_t *)"12345678", 8);
	lade_range r = {.dst = lade_host_span(to, 8)};
	lade_io_options options = {.struct_size = sizeof options};
	assert_int_equal(lade_source_read((lade_source){0}, &r, 1, NULL, &err), LADE_E_ARG);
	assert_int_equal(lade_source_read(o.source, NULL, 1, NULL, &err), LADE_E_ARG);
	assert_int_equal(lade_source_read(o.source, NULL, 0, NULL, &err), LADE_OK);
	options.struct_size = 3;
	assert_int_equal(lade_source_read(o.source, &r, 1, &options, &err), LADE_E_ARG);
	assert_int_equal(r.status, LADE_E_ARG);
	r.kind = (lade_range_kind)3;
	assert_int_equal(lade_source_read(o.source, &r, 1, NULL, &err), LADE_E_ARG);
	r = (lade_range){.dst = lade_host_span(NULL, 8)};
	assert_int_equal(lade_source_read(o.source, &r, 1, NULL, &err), LADE_E_ARG);
	r.dst = (lade_span){to, 8, {(lade_kind)7, 0}};
	assert_int_equal(lade_source_read(o.source, &r, 1, NULL, &err), LADE_E_ARG);
	r.dst = (lade_span){to, 8, {LADE_DEVICE, 77}};
	assert_int_equal(lade_source_read(o.source, &r, 1, NULL, &err), LADE_E_NO_DEVICE);
	assert_int_equal(o.callback.calls, 0);
	uint64_t off;
	size_t size;
	assert_int_equal(lade_range_place(NULL, 8, &off, &size, &err), LADE_E_ARG);
	assert_int_equal(lade_range_place(&r, 8, NULL, &size, &err), LADE_E_ARG);
	assert_int_equal(lade_range_place(&r, 8, &off, NULL, NULL), LADE_E_ARG);

	/* All ranges of a call fail then, and each has the reason. */
	lade_range both[2] = {{.dst = lade_host_span(to, 8)}, {.kind = (lade_range_kind)3}};
	lade_error errors[2] = {{0}};
	options = (lade_io_options){.struct_size = sizeof options, .errors = errors};
	assert_int_equal(lade_source_read(o.source, both, 2, &options, NULL), LADE_E_ARG);
	assert_true(both[0].status == LADE_E_ARG && both[1].status == LADE_E_ARG);
	assert_string_equal(errors[0].message, "range 1: kind 3 is unknown");
	assert_string_equal(errors[1].message, "range 1: kind 3 is unknown");

	lade_source s;
	assert_int_equal(lade_source_file_open(NULL, NULL, &s, &err), LADE_E_ARG);
	assert_int_equal(lade_source_file_open("/nowhere/at/all", NULL, &s, &err),
	                 LADE_E_NOT_FOUND);
	assert_int_equal(lade_source_file_open(dir, NULL, &s, &err), LADE_E_IO);
	lade_file_options file = {.struct_size = sizeof file, .flags = 8};
	assert_int_equal(lade_source_file_open("/dev/null", &file, &s, &err), LADE_E_ARG);
	assert_int_equal(lade_source_memory_open(lade_host_cspan(NULL, 4), &s, &err), LADE_E_ARG);
	assert_null(s.ops);
	lade_source_close(s);

	/* A FIFO that nobody writes is not waited for. */
	const char *fifo = path_of("fifo");
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(lade_source_file_open(fifo, NULL, &s, &err), LADE_E_IO);
	assert_non_null(strstr(err.message, "fifo: not a file that can be read anywhere"));
	unlink(fifo);

	/* Memory has no version that could be the one that a range wants. */
	lade_object_version version = {.size = 1};
	open_source(&o, BY_MEMORY, NULL, (const uint8_t *)"12345678", 8);
	r = (lade_range){.dst = lade_host_span(to, 8), .want = &version};
	assert_int_equal(lade_source_read(o.source, &r, 1, NULL, &err), LADE_E_CHANGED);
	assert_int_equal(r.status, LADE_E_CHANGED);
	lade_source_close(o.source);
	for (int kind = BY_FILE; kind <= BY_MEMORY; kind++) {
		open_source(&o, kind, "/dev/null", to, 0);
		r = (lade_range){.key = "a", .dst = lade_host_span(to, 0)};
		assert_int_equal(lade_source_read(o.source, &r, 1, NULL, &err),
		                 LADE_E_UNSUPPORTED);
		lade_source_close(o.source);
	}
}

/* Callers of other versions: their structs are longer, and the surplus is zero. */
static void longer_requests(void **state)
{
	(void)state;
	struct {
		lade_range range;
		uint64_t more[2];
	} ranges[3] = {{.more = {0}}};
	struct {
		lade_write write;
		uint64_t more;
	} writes[2] = {{.more = 0}};
	lade_io_options options = {.struct_size = sizeof options,
	                           .request_size = sizeof ranges[0]};
	lade_error err;
	uint8_t to[3][4];
	opened o;
	open_source(&o, BY_CALLBACK, NULL, (const uint8_t *)"0123456789", 10);
	for (size_t i = 0; i < 3; i++)
		ranges[i].range = (lade_range){.off = 3 * i, .dst = lade_host_span(to[i], 4)};
	assert_int_equal(read_ranges(&o, &ranges[0].range, 3, &options, &err), LADE_OK);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ranges[i].range.size, 4);
		assert_memory_equal(to[i], "0123456789" + 3 * i, 4);
	}
	ranges[1].more[1] = 1;
	assert_int_equal(read_ranges(&o, &ranges[0].range, 3, &options, &err), LADE_E_ARG);
	assert_non_null(strstr(err.message, "range 1: "));
	options.request_size = sizeof(lade_range) - 8;
	assert_int_equal(read_ranges(&o, &ranges[0].range, 1, &options, &err), LADE_E_ARG);

	lade_sink sink;
	const char *path = path_of("longer");
	assert_int_equal(lade_sink_file_open(path, &sink, NULL), LADE_OK);
	options.request_size = sizeof writes[0];
	writes[0].write.src = lade_host_cspan("a", 1);
	writes[1].write = (lade_write){.kind = LADE_WRITE_IF_ABSENT};
	assert_int_equal(lade_sink_write(sink, &writes[0].write, 2, &options, &err),
	                 LADE_E_CHANGED);
	assert_int_equal(writes[0].write.status, LADE_OK);
	assert_int_equal(writes[1].write.status, LADE_E_CHANGED);
	lade_sink_close(sink);
	unlink(path);
}

static void sources_that_lie(void **state)
{
	(void)state;
	static const lade_status want[WAYS] = {
		LADE_OK, LADE_E_TRUNCATED, LADE_E_IO, LADE_E_RANGE, LADE_E_RANGE, LADE_E_IO,
		LADE_E_IO, LADE_OK, LADE_E_CHANGED, LADE_E_IO};
	lade_object_version version = {3, {1, 2, 3}}, told;
	uint8_t data[100] = {1, 2, 3};
	for (int late = 0; late < 2; late++)
		for (int way = 0; way < WAYS; way++) {
			guard to[3];
			lade_range ranges[3];
			lade_error err = {.message = ""};
			opened o;
			open_source(&o, late ? BY_LATE : BY_CALLBACK, NULL, data, 100);
			o.callback.way = way;
			o.callback.bad = 1;
			for (int i = 0; i < 3; i++) {
				to[i] = guard_new(50, 1);
				ranges[i] = (lade_range){.off = 50 - 10 * (uint64_t)i,
				                         .dst = lade_host_span(to[i].data, 50)};
			}
			ranges[1].want = &version;
			ranges[1].version = &told;
			/* That the object is larger shows in a range to the end, if that fits. */
			ranges[1].kind = way == GROWN ? LADE_RANGE_LAST : LADE_RANGE_AT;
			lade_status status = read_ranges(&o, ranges, 3, NULL, &err);
			lade_status right = way == GROWN ? LADE_OK : want[way];
			assert_int_equal(status, right);
			assert_int_equal(ranges[1].status, right);
			assert_int_equal(ranges[0].status, LADE_OK);
			assert_int_equal(ranges[2].status, LADE_OK);
			assert_int_equal(ranges[1].size, right == LADE_OK ? 50 : 0);
			if (right != LADE_OK)
				assert_non_null(strstr(err.message, "range 1: "));
			if (way == FAILS_FULLY) {
				assert_non_null(strstr(err.message, "the line is dead"));
				assert_int_equal(err.offset, 17);
			}
			for (int i = 0; i < 3; i++)
				guard_free(&to[i]);
		}
}

static void calls_are_cancelled(void **state)
{
	(void)state;
	uint8_t data[64] = {0}, to[64];
	const char *path = path_of("cancel");
	write_plain(path, data, 64);
	for (int source = 0; source < SOURCES; source++) {
		lade_cancel *cancel;
		assert_int_equal(lade_cancel_new(NULL, NULL, &cancel, NULL), LADE_OK);
		lade_cancel_set(cancel);
		lade_io_options options = {.struct_size = sizeof options, .cancel = cancel};
		opened o;
		lade_range ranges[4];
		open_source(&o, source, path, data, 64);
		for (size_t i = 0; i < 4; i++)
			ranges[i] = (lade_range){.dst = lade_host_span(to + 16 * i, 16)};
		assert_int_equal(read_ranges(&o, ranges, 4, &options, NULL), LADE_E_CANCELLED);
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(ranges[i].status, LADE_E_CANCELLED);
		assert_int_equal(o.callback.calls, 0);
		lade_cancel_clear(cancel);
		o.callback.cancel = cancel;
		lade_status status = read_ranges(&o, ranges, 4, &options, NULL);
		assert_int_equal(status, source == BY_CALLBACK || source == BY_HIDDEN
		                                 ? LADE_E_CANCELLED
		                                 : LADE_OK);
		assert_int_equal(ranges[0].status, LADE_OK);
		lade_source_close(o.source);
		lade_cancel_free(cancel);
	}
	unlink(path);
}

static bool say_yes(void *ctx)
{
	++*(int *)ctx;
	return true;
}

/* A source that answers late is told, by a token that has to be asked. */
static void *answer_when_cancelled(void *ctx)
{
	lade_reading *reading = ctx;
	while (!lade_reading_cancelled(reading))
		usleep(1000);
	lade_reading_done(reading, 0, LADE_E_CANCELLED, NULL);
	return NULL;
}

static void wait_for_ever(void *ctx, lade_reading *reading, size_t count)
{
	(void)count;
	assert_int_equal(pthread_create(ctx, NULL, answer_when_cancelled, reading), 0);
}

static void waiting_calls_ask(void **state)
{
	(void)state;
	static const lade_source_ops ops = {.struct_size = sizeof ops, .read = wait_for_ever};
	int asked = 0;
	lade_cancel *cancel;
	assert_int_equal(lade_cancel_new(say_yes, &asked, &cancel, NULL), LADE_OK);
	lade_io_options options = {.struct_size = sizeof options, .cancel = cancel};
	uint8_t to[4];
	pthread_t thread;
	lade_range range = {.dst = lade_host_span(to, 4)};
	assert_int_equal(lade_source_read((lade_source){&ops, &thread}, &range, 1, &options, NULL),
	                 LADE_E_CANCELLED);
	pthread_join(thread, NULL);
	assert_int_equal(asked, 1);
	lade_cancel_free(cancel);
}

/* ---- versions ------------------------------------------------------------------------------ */

static void files_that_change(void **state)
{
	(void)state;
	const char *path = path_of("changes");
	uint8_t to[16];
	lade_object_version version, again;
	opened o;
	write_plain(path, "0123456789", 10);
	open_source(&o, BY_FILE, path, NULL, 0);
	lade_range r = {.dst = lade_host_span(to, 4), .version = &version};
	assert_int_equal(read_ranges(&o, &r, 1, NULL, NULL), LADE_OK);
	assert_true(version.size > 0);
	r.version = &again;
	r.want = &version;
	assert_int_equal(read_ranges(&o, &r, 1, NULL, NULL), LADE_OK);
	assert_true(lade_object_version_equal(&version, &again));
	write_plain(path, "abcdefghijk", 11); /* in place */
	assert_int_equal(read_ranges(&o, &r, 1, NULL, NULL), LADE_E_CHANGED);
	/* Without a version in mind it is read as it is now. */
	lade_range last = {.kind = LADE_RANGE_LAST, .dst = lade_host_span(to, 16)};
	assert_int_equal(read_ranges(&o, &last, 1, NULL, NULL), LADE_OK);
	assert_int_equal(last.size, 11);
	assert_memory_equal(to, "abcdefghijk", 11);
	/* Of an unknown version is nothing. */
	again.size = 0;
	assert_false(lade_object_version_equal(&again, &again));
	r.want = &again;
	assert_int_equal(read_ranges(&o, &r, 1, NULL, NULL), LADE_E_CHANGED);
	lade_source_close(o.source);
	unlink(path);
}

/* ---- sinks ------------------------------------------------------------------------------ */

static lade_status write_one(lade_sink sink, lade_write_kind kind, const char *text,
                             const lade_object_version *want, lade_object_version *version)
{
	lade_write w = {.kind = kind,
	                .src = lade_host_cspan(text, strlen(text)),
	                .want = want,
	                .version = version};
	lade_status status = lade_sink_write(sink, &w, 1, NULL, NULL);
	assert_int_equal(w.status, status);
	return status;
}

static void expect_text(const char *path, const char *text)
{
	char got[64];
	size_t n = read_plain(path, got, sizeof got);
	assert_int_equal(n, strlen(text));
	assert_memory_equal(got, text, n);
}

static void files_are_written(void **state)
{
	(void)state;
	const char *path = path_of("sink");
	lade_object_version first, second, none = {0};
	lade_sink sink;
	struct stat st;
	umask(027);
	assert_int_equal(lade_sink_file_open(path, &sink, NULL), LADE_OK);
	assert_int_equal(write_one(sink, LADE_WRITE_IF_VERSION, "x", &none, NULL),
	                 LADE_E_NOT_FOUND);
	assert_int_equal(write_one(sink, LADE_DELETE_IF_VERSION, "", NULL, NULL),
	                 LADE_E_NOT_FOUND);
	assert_int_equal(entries(), 0);
	assert_int_equal(write_one(sink, LADE_WRITE_IF_ABSENT, "one", NULL, &first), LADE_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(write_one(sink, LADE_WRITE_IF_ABSENT, "two", NULL, NULL), LADE_E_CHANGED);
	expect_text(path, "one");

	/* The version is the one that a source tells. */
	opened o;
	lade_range r = {.version = &second};
	open_source(&o, BY_FILE, path, NULL, 0);
	assert_int_equal(read_ranges(&o, &r, 1, NULL, NULL), LADE_OK);
	assert_true(lade_object_version_equal(&first, &second));
	lade_source_close(o.source);

	assert_int_equal(chmod(path, 0604), 0);
	assert_int_equal(write_one(sink, LADE_WRITE_IF_VERSION, "three", &first, &second), LADE_OK);
	expect_text(path, "three");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0604);
	assert_int_equal(write_one(sink, LADE_WRITE_IF_VERSION, "no", &first, NULL),
	                 LADE_E_CHANGED);
	assert_int_equal(write_one(sink, LADE_DELETE_IF_VERSION, "", &first, NULL),
	                 LADE_E_CHANGED);
	assert_int_equal(write_one(sink, LADE_WRITE_ALWAYS, "", NULL, NULL), LADE_OK);
	expect_text(path, "");
	assert_int_equal(write_one(sink, LADE_WRITE_IF_VERSION, "no", &second, NULL),
	                 LADE_E_CHANGED);
	assert_int_equal(entries(), 1);
	assert_int_equal(write_one(sink, LADE_DELETE_IF_VERSION, "", NULL, NULL), LADE_OK);
	assert_int_equal(entries(), 0);
	lade_sink_close(sink);
}

static void what_else_names_stand_for(void **state)
{
	(void)state;
	const char *path = path_of("target"), *name = path_of("link");
	lade_error err;
	lade_sink sink;
	struct stat st;
	write_plain(path, "old", 3);
	assert_int_equal(symlink("target", name), 0);
	assert_int_equal(lade_sink_file_open(name, &sink, NULL), LADE_OK);
	assert_int_equal(write_one(sink, LADE_WRITE_ALWAYS, "new", NULL, NULL), LADE_OK);
	assert_int_equal(lstat(name, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	expect_text(path, "new");
	lade_sink_close(sink);
	unlink(path);
	unlink(name);

	assert_int_equal(lade_sink_file_open("/dev/null", &sink, NULL), LADE_OK);
	assert_int_equal(write_one(sink, LADE_WRITE_ALWAYS, "gone", NULL, NULL), LADE_OK);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(write_one(sink, LADE_WRITE_IF_ABSENT, "no", NULL, NULL),
	                 LADE_E_UNSUPPORTED);
	assert_int_equal(write_one(sink, LADE_DELETE_IF_VERSION, "", NULL, NULL),
	                 LADE_E_UNSUPPORTED);
	lade_sink_close(sink);

	assert_int_equal(lade_sink_file_open("/nowhere/at/all", &sink, NULL), LADE_OK);
	assert_int_equal(write_one(sink, LADE_WRITE_ALWAYS, "x", NULL, NULL), LADE_E_NOT_FOUND);
	lade_write w = {.kind = (lade_write_kind)4};
	assert_int_equal(lade_sink_write(sink, &w, 1, NULL, &err), LADE_E_ARG);
	w.kind = LADE_WRITE_IF_VERSION;
	assert_int_equal(lade_sink_write(sink, &w, 1, NULL, &err), LADE_E_ARG);
	w = (lade_write){.key = "k"};
	assert_int_equal(lade_sink_write(sink, &w, 1, NULL, &err), LADE_E_UNSUPPORTED);
	lade_cancel *cancel;
	assert_int_equal(lade_cancel_new(NULL, NULL, &cancel, NULL), LADE_OK);
	lade_cancel_set(cancel);
	lade_io_options options = {.struct_size = sizeof options, .cancel = cancel};
	w.key = NULL;
	assert_int_equal(lade_sink_write(sink, &w, 1, &options, &err), LADE_E_CANCELLED);
	assert_int_equal(lade_sink_write(sink, NULL, 2, NULL, &err), LADE_E_ARG);
	assert_string_equal(err.message, "writes is NULL");
	assert_int_equal(lade_sink_write(sink, NULL, 0, NULL, &err), LADE_OK);
	/* All writes of a call fail where one cannot be, and each has the reason. */
	lade_write both[2] = {w, {.kind = (lade_write_kind)4}};
	lade_error errors[2] = {{0}};
	options = (lade_io_options){.struct_size = sizeof options, .errors = errors};
	assert_int_equal(lade_sink_write(sink, both, 2, &options, NULL), LADE_E_ARG);
	assert_string_equal(errors[0].message, "write 1: kind 4 is unknown");
	assert_string_equal(errors[1].message, "write 1: kind 4 is unknown");
	lade_cancel_free(cancel);
	lade_sink_close(sink);
	assert_int_equal(lade_sink_file_open(NULL, &sink, NULL), LADE_E_ARG);
	assert_int_equal(lade_sink_write((lade_sink){0}, &w, 1, NULL, &err), LADE_E_ARG);
}

/* A write that fails half way leaves the old file, and nothing else. */
static void half_a_write(void **state)
{
	(void)state;
	const char *path = path_of("half");
	lade_sink sink;
	write_plain(path, "old", 3);
	char *noise = calloc(1, 1 << 20);
	lade_write w = {.src = lade_host_cspan(noise, 1 << 20)};
	struct rlimit old, small;
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 1000;
	void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(lade_sink_file_open(path, &sink, NULL), LADE_OK);
	setrlimit(RLIMIT_FSIZE, &small);
	lade_status status = lade_sink_write(sink, &w, 1, NULL, NULL);
	setrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, before);
	assert_int_equal(status, LADE_E_IO);
	expect_text(path, "old");
	assert_int_equal(entries(), 1);
	lade_sink_close(sink);
	unlink(path);
	free(noise);
}

/* ---- several writers ----------------------------------------------------------------------- */

static atomic_int winners;

static void *write_absent(void *ctx)
{
	lade_sink sink;
	if (lade_sink_file_open(ctx, &sink, NULL) == LADE_OK) {
		lade_write w = {.kind = LADE_WRITE_IF_ABSENT, .src = lade_host_cspan("me", 2)};
		winners += lade_sink_write(sink, &w, 1, NULL, NULL) == LADE_OK;
		lade_sink_close(sink);
	}
	return NULL;
}

/* Adds 1 to the number in the file, 20 times, by writes that depend on what was read. */
static void *count_up(void *ctx)
{
	lade_sink sink;
	if (lade_sink_file_open(ctx, &sink, NULL) != LADE_OK)
		return NULL;
	for (int done = 0; done < 20;) {
		lade_object_version version;
		char text[16] = "";
		lade_source source;
		lade_range r = {.kind = LADE_RANGE_REST,
		                .dst = lade_host_span(text, sizeof text - 1),
		                .version = &version};
		if (lade_source_file_open(ctx, NULL, &source, NULL) != LADE_OK)
			continue;
		lade_status status = lade_source_read(source, &r, 1, NULL, NULL);
		lade_source_close(source);
		if (status != LADE_OK)
			continue;
		int n = snprintf(text, sizeof text, "%d", atoi(text) + 1);
		lade_write w = {.kind = LADE_WRITE_IF_VERSION,
		                .src = lade_host_cspan(text, (size_t)n),
		                .want = &version};
		done += lade_sink_write(sink, &w, 1, NULL, NULL) == LADE_OK;
	}
	lade_sink_close(sink);
	return NULL;
}

static void several_writers(void **state)
{
	(void)state;
	char *path = strdup(path_of("many"));
	pthread_t ids[4];
	for (int round = 0; round < 5; round++) {
		winners = 0;
		for (int i = 0; i < 4; i++)
			pthread_create(&ids[i], NULL, write_absent, path);
		for (int i = 0; i < 4; i++)
			pthread_join(ids[i], NULL);
		assert_int_equal(winners, 1);
		unlink(path);
	}
	write_plain(path, "0", 1);
	for (int i = 0; i < 4; i++)
		pthread_create(&ids[i], NULL, count_up, path);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	expect_text(path, "80");
	assert_int_equal(entries(), 1);
	unlink(path);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_at_every_edge),
		cmocka_unit_test(thousands_of_ranges),
		cmocka_unit_test(large_ranges),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(longer_requests),
		cmocka_unit_test(sources_that_lie),
		cmocka_unit_test(calls_are_cancelled),
		cmocka_unit_test(waiting_calls_ask),
		cmocka_unit_test(files_that_change),
		cmocka_unit_test(files_are_written),
		cmocka_unit_test(what_else_names_stand_for),
		cmocka_unit_test(half_a_write),
		cmocka_unit_test(several_writers),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
