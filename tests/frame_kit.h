/*
 * frame_kit.h: what the tests of frames share: memory to write to and read from, data of several
 * natures, one frame made in one call, and one frame read by every reader.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_FRAME_KIT_H
#define LADE_TESTS_FRAME_KIT_H

#include "guard.h"

#include <lade/lade.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory as output, input and source ------------------------------------------------- */

typedef struct kit_bytes {
	uint8_t *data;
	size_t size, cap;
	size_t fail_at; /* writing fails once 'size' would pass this; 0: never */
} kit_bytes;

static inline lade_status kit_write(void *ctx, const void *src, size_t size, lade_error *err)
{
	kit_bytes *b = ctx;
	if (b->fail_at && b->size + size > b->fail_at)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "the disk is full");
	if (b->size + size > b->cap) {
		b->cap = (b->size + size) * 2;
		b->data = realloc(b->data, b->cap);
		if (!b->data)
			abort();
	}
	if (size)
		memcpy(b->data + b->size, src, size);
	b->size += size;
	return LADE_OK;
}

/* To memory that is there: 'cap' bytes. */
static inline lade_status kit_write_at(void *ctx, uint64_t off, const void *src, size_t size,
                                       lade_error *err)
{
	kit_bytes *b = ctx;
	if (off > b->cap || size > b->cap - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET, "%zu bytes at %llu of %zu",
		                 size, (unsigned long long)off, b->cap);
	memcpy(b->data + off, src, size);
	return LADE_OK;
}

typedef struct kit_input {
	const uint8_t *data;
	size_t size, at;
	rng *random; /* gives pieces of random sizes; NULL: all that is asked for */
} kit_input;

static inline lade_status kit_read(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	kit_input *in = ctx;
	size_t n = in->size - in->at < cap ? in->size - in->at : cap;
	(void)err;
	if (in->random && n)
		n = 1 + rng_below(in->random, n);
	if (n)
		memcpy(dst, in->data + in->at, n);
	in->at += n;
	*got = n;
	return LADE_OK;
}

/* A source that gives what a kit_input has, however it is asked; 'kit_far_source' is asked for all
 * at once. */
static inline void kit_read_ranges(void *ctx, lade_reading *reading, size_t count)
{
	const kit_input *in = ctx;
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err;
		uint64_t off;
		range->object_size = in->size;
		lade_status status =
			lade_range_place(range, in->size, &off, &range->size, &err);
		if (status == LADE_OK && range->size)
			memcpy(range->dst.data, in->data + off, range->size);
		lade_reading_done(reading, i, status, &err);
	}
}

static inline lade_source kit_source(kit_input *in)
{
	static const lade_source_ops ops = {.struct_size = sizeof ops,
	                                    .flags = LADE_SOURCE_LOCAL,
	                                    .read = kit_read_ranges};
	return (lade_source){&ops, in};
}

static inline lade_source kit_far_source(kit_input *in)
{
	static const lade_source_ops ops = {.struct_size = sizeof ops, .read = kit_read_ranges};
	return (lade_source){&ops, in};
}

static inline lade_output kit_output(kit_bytes *b)
{
	return (lade_output){.ctx = b, .write = kit_write};
}

/* ---- data ------------------------------------------------------------------------------- */

/* 0 zeros, 1 noise, 2 a slow ramp of 4-byte numbers, 3 runs of one 4-byte value, 4 a mixture */
#define KIT_NATURES 5

static inline void kit_fill(uint8_t *data, size_t size, unsigned nature, rng *r)
{
	uint32_t value = (uint32_t)rng_next(r);
	for (size_t i = 0; i < size; i++) {
		unsigned n = nature == 4 ? (unsigned)(i >> 9) % 4 : nature;
		if (i % 4 == 0 && n == 2)
			value += (uint32_t)rng_below(r, 5);
		if (n == 3 && rng_below(r, 3000) == 0)
			value = (uint32_t)rng_next(r);
		data[i] = n == 0   ? 0
		          : n == 1 ? (uint8_t)rng_next(r)
		                   : (uint8_t)(value >> 8 * (i % 4));
	}
}

/* ---- a frame in one call ------------------------------------------------------------------ */

static inline lade_frame_options kit_options(const lade_spec *spec, size_t chunk_size)
{
	return (lade_frame_options){.struct_size = sizeof(lade_frame_options),
	                            .spec = spec,
	                            .chunk_size = chunk_size};
}

static inline lade_frame_read_options kit_read_options(lade_verify verify)
{
	return (lade_frame_read_options){.struct_size = sizeof(lade_frame_read_options),
	                                 .verify = verify};
}

/* The frame of 'size' bytes; aborts where it cannot be made. */
static inline kit_bytes kit_frame(lade_engine *engine, const lade_frame_options *options,
                                  const void *data, size_t size)
{
	kit_bytes out = {0};
	lade_frame_writer *writer;
	lade_error err;
	lade_status status =
		lade_frame_writer_new(engine, kit_output(&out), options, &writer, &err);
	if (status == LADE_OK)
		status = lade_frame_writer_write(writer, data, size, &err);
	if (status == LADE_OK)
		status = lade_frame_writer_finish(writer, &err);
	if (status != LADE_OK) {
		fprintf(stderr, "kit_frame: %s: %s\n", lade_status_name(status), err.message);
		abort();
	}
	lade_frame_writer_free(writer);
	return out;
}

static inline lade_spec *kit_spec(const char *text)
{
	lade_spec *spec;
	lade_error err;
	if (lade_spec_parse(NULL, text, &spec, &err) != LADE_OK) {
		fprintf(stderr, "kit_spec: %s: %s\n", text, err.message);
		abort();
	}
	return spec;
}

/* ---- every reader -------------------------------------------------------------------------- */

enum kit_reader {
	KIT_MEMORY,
	KIT_SOURCE,
	KIT_FAR_SOURCE,
	KIT_PREAD,
	KIT_MAP,
	KIT_COPY,
	KIT_COPY_AT,
	KIT_FAR_COPY,
	KIT_STREAM_READ,
	KIT_STREAM_COPY,
	KIT_STREAM_APART,
	KIT_READERS,
};

static const char *const kit_reader_names[] = {"memory", "source", "far source", "pread",
                                               "map", "copy", "copy to places",
                                               "far copy", "pipe read", "pipe copy",
                                               "pipe copy, apart"};

/* Writes a temporary file and gives its name, which is the caller's to remove and free. */
static inline char *kit_file(const void *data, size_t size)
{
	const char *dir = getenv("TMPDIR");
	char name[4096];
	snprintf(name, sizeof name, "%s/lade-test-XXXXXX", dir ? dir : "/tmp");
	int fd = mkstemp(name);
	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size) || close(fd))
		abort();
	return strdup(name);
}

/* Reads, or copies, all of an open frame into new memory and closes it. */
static inline lade_status kit_read_frame(lade_frame *frame, enum kit_reader reader, kit_bytes *out,
                                         lade_error *err)
{
	uint64_t size = lade_frame_get_info(frame)->size;
	if (size > (64u << 20)) { /* a test's frame holds less: damage claims it */
		lade_frame_close(frame);
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "%llu bytes claimed",
		                 (unsigned long long)size);
	}
	out->cap = size ? (size_t)size : 1;
	out->data = malloc(out->cap);
	if (!out->data)
		abort();
	lade_frame_range all = {.off = 0, .dst = lade_host_span(out->data, (size_t)size)};
	lade_frame_copy_options at = {.struct_size = sizeof at, .write_at = kit_write_at};
	bool in_order = reader == KIT_COPY || reader == KIT_FAR_COPY;
	lade_status status;
	if (in_order)
		status = lade_frame_copy(frame, kit_output(out), NULL, err);
	else if (reader == KIT_COPY_AT)
		status = lade_frame_copy(frame, kit_output(out), &at, err);
	else
		status = lade_frame_read(frame, &all, 1, NULL, NULL, err);
	if (!in_order)
		out->size = status == LADE_OK ? (size_t)size : 0;
	lade_frame_close(frame);
	return status;
}

static inline lade_status kit_read_stream(lade_engine *engine, bool copy, kit_input *in,
                                          const lade_frame_read_options *options, kit_bytes *out,
                                          rng *random, lade_error *err)
{
	lade_frame_pipe *pipe;
	lade_input input = {.ctx = in, .read = kit_read};
	lade_status status = lade_frame_pipe_new(engine, input, options, &pipe, err);
	if (status != LADE_OK)
		return status;
	if (copy) {
		status = lade_frame_pipe_copy(pipe, kit_output(out), err);
	} else {
		size_t cap = random ? 1 + rng_below(random, 1 << rng_below(random, 19)) : 65536,
		       got;
		uint8_t *buffer = malloc(cap);
		if (!buffer)
			abort();
		do {
			status = lade_frame_pipe_read(pipe, buffer, cap, &got, err);
			if (status == LADE_OK && got)
				status = kit_write(out, buffer, got, err);
		} while (status == LADE_OK && got);
		free(buffer);
	}
	lade_frame_pipe_free(pipe);
	return status;
}

/* Decodes a frame with one of the readers. 'out' is empty on entry and the caller's to free. */
static inline lade_status kit_decode(lade_engine *engine, enum kit_reader reader, const void *data,
                                     size_t size, lade_frame_read_options options, kit_bytes *out,
                                     rng *random, lade_error *err)
{
	kit_input in = {.data = data, .size = size, .random = random};
	lade_frame *frame = NULL;
	lade_status status = LADE_E_INTERNAL;
	char *path = NULL;
	switch (reader) {
	case KIT_MEMORY:
	case KIT_COPY:
		status = lade_frame_open_memory(engine, data, size, &options, &frame, err);
		break;
	case KIT_SOURCE:
	case KIT_COPY_AT:
		status = lade_frame_open(engine, kit_source(&in), &options, &frame, err);
		break;
	case KIT_FAR_SOURCE:
	case KIT_FAR_COPY:
		status = lade_frame_open(engine, kit_far_source(&in), &options, &frame, err);
		break;
	case KIT_PREAD:
	case KIT_MAP:
		options.flags |= reader == KIT_MAP ? LADE_FRAME_MAP : 0;
		path = kit_file(data, size);
		status = lade_frame_open_path(engine, path, &options, &frame, err);
		unlink(path);
		free(path);
		break;
	default:
		options.flags |= reader == KIT_STREAM_APART ? LADE_FRAME_APART : 0;
		return kit_read_stream(engine, reader != KIT_STREAM_READ, &in, &options, out,
		                       random, err);
	}
	return status == LADE_OK ? kit_read_frame(frame, reader, out, err) : status;
}

#endif
