/*
 * fuzz_frame.c: the readers of a .lade frame by index and from a pipe.  What one takes the other
 * takes too, and both give the same bytes.
 *
 * The first byte of the input: bit 0 makes the frame's checks right first, bits 1 and 2 are the
 * verifying, bit 3 reads through a function instead of from memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame_reseal.h"

#include "frame_kit.h"

/* Larger claims are not decoded whole. */
#define ROOM_MAX ((uint64_t)1 << 20)

static void expect(bool ok)
{
	if (!ok)
		abort();
}

/* A few ranges in one call, against the whole. */
static void read_ranges(lade_frame *frame, const uint8_t *whole, size_t size)
{
	uint8_t room[3][64];
	lade_frame_range ranges[3];
	lade_result results[3];
	for (size_t i = 0; i < 3; i++) {
		size_t n = size < sizeof room[i] ? size : sizeof room[i];
		ranges[i] = (lade_frame_range){(size - n) / 2 * i, lade_host_span(room[i], n)};
	}
	expect(lade_frame_read(frame, ranges, 3, results, NULL, NULL) == LADE_OK);
	for (size_t i = 0; i < 3; i++)
		expect(results[i].size == ranges[i].dst.size &&
		       !memcmp(room[i], whole + ranges[i].off, ranges[i].dst.size));
}

/* LADE_E_LIMIT: too large to be compared. */
static lade_status by_index(lade_engine *engine, const uint8_t *data, size_t size, bool source,
                            const lade_frame_read_options *options, kit_bytes *out)
{
	kit_input in = {.data = data, .size = size};
	lade_frame *frame;
	lade_error err = {0};
	lade_status status =
		source ? lade_frame_open(engine, kit_source(&in), options,
	                                 &frame, &err)
		       : lade_frame_open_memory(engine, data, size, options, &frame, &err);
	if (status != LADE_OK) {
		expect(err.status == status && err.message[0]);
		return status;
	}
	const lade_frame_info *info = lade_frame_get_info(frame);
	uint64_t total = info->size;
	expect(info->encoded_size == size && info->chunk_count <= size / 48);
	for (uint64_t i = 0; i < info->chunk_count && i < 5; i++) {
		lade_frame_chunk chunk;
		if (lade_frame_get_chunk(frame, i, &chunk, &err) == LADE_OK)
			expect(chunk.off + chunk.size <= size &&
			       chunk.decoded_size <= info->chunk_size);
	}
	if (total > ROOM_MAX) {
		lade_frame_close(frame);
		return LADE_E_LIMIT;
	}
	out->data = malloc((size_t)total + 1);
	out->size = (size_t)total;
	lade_frame_range all = {0, lade_host_span(out->data, (size_t)total)};
	status = lade_frame_read(frame, &all, 1, NULL, NULL, &err);
	expect(status == LADE_OK || (err.status == status && err.message[0]));
	if (status == LADE_OK)
		read_ranges(frame, out->data, out->size);
	lade_frame_close(frame);
	return status;
}

static lade_status from_pipe(lade_engine *engine, const uint8_t *data, size_t size,
                             const lade_frame_read_options *options, kit_bytes *out, bool *rest)
{
	kit_input in = {.data = data, .size = size};
	lade_frame_pipe *pipe;
	lade_error err = {0};
	lade_status status =
		lade_frame_pipe_new(engine, (lade_input){&in, kit_read}, options, &pipe, &err);
	if (status == LADE_OK) {
		uint8_t piece[4096];
		size_t got;
		do {
			status = lade_frame_pipe_read(pipe, piece, sizeof piece, &got, &err);
			if (status == LADE_OK && got && out->size <= ROOM_MAX)
				kit_write(out, piece, got, NULL);
		} while (status == LADE_OK && got && out->size <= ROOM_MAX);
		*rest = lade_frame_pipe_rest(pipe).size != 0 || in.at < size;
		if (status == LADE_OK && out->size > ROOM_MAX)
			status = LADE_E_LIMIT;
		lade_frame_pipe_free(pipe);
	}
	expect(status == LADE_OK || status == LADE_E_LIMIT ||
	       (err.status == status && err.message[0]));
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static lade_engine *engine;
	lade_engine_options one = {.struct_size = sizeof one, .threads = 1};
	if (!engine)
		expect(lade_engine_new(&one, &engine, NULL) == LADE_OK);
	if (size == 0)
		return 0;
	unsigned mode = data[0];
	size--;
	uint8_t *frame = malloc(size + 1);
	expect(frame != NULL);
	memcpy(frame, data + 1, size);
	if (mode & 1)
		reseal(frame, size);
	lade_frame_read_options options = kit_read_options((lade_verify)((mode >> 1 & 3) % 3));
	options.max_chunk_size = (size_t)1 << 22;
	kit_bytes a = {0}, b = {0};
	bool rest = false;
	lade_status index = by_index(engine, frame, size, mode & 8, &options, &a);
	lade_status pipe = from_pipe(engine, frame, size, &options, &b, &rest);
	if (index == LADE_OK)
		expect(pipe == LADE_OK && !rest && a.size == b.size &&
		       (!a.size || !memcmp(a.data, b.data, a.size)));
	if (pipe == LADE_OK && !rest)
		expect(index == LADE_OK);
	free(a.data);
	free(b.data);
	free(frame);
	return 0;
}
