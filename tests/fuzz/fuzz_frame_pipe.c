/*
 * fuzz_frame_pipe.c: a pipe that gives pieces of any size, read by two threads in pieces of any
 * size, and copied: the same bytes and the same end each time.
 *
 * The first byte of the input: bit 0 makes the frame's checks right first, the rest seeds the
 * sizes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame_reseal.h"

#include "frame_kit.h"

#define ROOM_MAX ((size_t)1 << 18)

static void expect(bool ok)
{
	if (!ok)
		abort();
}

/* Takes what the copy gives, up to ROOM_MAX bytes. */
static lade_status take(void *ctx, const void *src, size_t size, lade_error *err)
{
	kit_bytes *out = ctx;
	if (out->size + size > ROOM_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "enough");
	return kit_write(out, src, size, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static lade_engine *engine;
	lade_engine_options two = {.struct_size = sizeof two, .threads = 2};
	if (!engine)
		expect(lade_engine_new(&two, &engine, NULL) == LADE_OK);
	if (size == 0)
		return 0;
	rng r = {data[0] + 1u};
	size--;
	uint8_t *frame = malloc(size + 1);
	expect(frame != NULL);
	memcpy(frame, data + 1, size);
	if (data[0] & 1)
		reseal(frame, size);
	lade_frame_read_options options = kit_read_options(LADE_VERIFY_IF_PRESENT);
	options.max_chunk_size = ROOM_MAX / 4;
	options.threads = (unsigned)rng_below(&r, 3);
	kit_bytes copied = {0}, read = {0};
	lade_status copy = LADE_OK, status;
	lade_error copy_err = {0}, err = {0};
	kit_input in = {.data = frame, .size = size, .random = &r};
	lade_frame_pipe *pipe;
	copy = lade_frame_pipe_new(engine, (lade_input){&in, kit_read}, &options, &pipe,
	                           &copy_err);
	if (copy == LADE_OK) {
		copy = lade_frame_pipe_copy(pipe, (lade_output){&copied, take}, &copy_err);
		/* A failure is final, the end too. */
		expect(lade_frame_pipe_copy(pipe, (lade_output){&copied, take}, &err) == copy);
		lade_frame_pipe_free(pipe);
	}
	in = (kit_input){.data = frame, .size = size, .random = &r};
	status =
		lade_frame_pipe_new(engine, (lade_input){&in, kit_read}, &options, &pipe, &err);
	if (status == LADE_OK) {
		uint8_t *piece = malloc(ROOM_MAX);
		size_t got;
		expect(piece != NULL);
		do {
			size_t cap = 1 + rng_below(&r, (size_t)1 << (5 + rng_below(&r, 13)));
			status = lade_frame_pipe_read(pipe, piece, cap, &got, &err);
			if (status == LADE_OK && got)
				kit_write(&read, piece, got, NULL);
		} while (status == LADE_OK && got && read.size <= ROOM_MAX);
		free(piece);
		lade_frame_pipe_free(pipe);
	}
	if (copy != LADE_E_LIMIT) {
		expect(status == copy && read.size == copied.size);
		expect(status == LADE_OK || !strcmp(err.message, copy_err.message));
	}
	size_t both = read.size < copied.size ? read.size : copied.size;
	expect(!both || !memcmp(read.data, copied.data, both));
	free(copied.data);
	free(read.data);
	free(frame);
	return 0;
}
