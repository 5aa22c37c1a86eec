/*
 * pipe.c: reads a frame from a pipe (docs/format/frame.md).
 *
 * A slot of the ring is a group of chunks, encoded ones and what they decode to: one chunk of
 * 256 KiB and more, or several small ones.  The index is built again from the chunks that went
 * by, so that a page, the list and the footer have just one right content.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/chunk.h"
#include "frame/reader.h"
#include "frame/ring.h"
#include "frame/source.h"

#include "base/try.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct buffer {
	uint8_t *data;
	size_t cap;
} buffer;

typedef struct pipe_slot {
	lade__chunk *chunks; /* LADE__GROUP_CHUNKS of them, or 1 */
	buffer bodies;       /* what follows the chunks' headers, one behind the other */
	buffer buffer;       /* for decoded bytes, unless they go to the caller's memory at once */
	size_t bodies_size;
	uint32_t count;
	uint64_t first, off; /* index of the first chunk, and its offset */
	uint8_t *dst;        /* 'decoded' bytes; NULL: they go to the buffer */
	size_t decoded;
	size_t handed; /* of them, to the caller */
	lade_status status; /* of the chunk behind the 'decoded' bytes, which are good */
	lade_error error;
} pipe_slot;

struct lade_frame_pipe {
	lade_engine *engine;
	lade__ahead ahead;
	lade__header header;
	lade_frame_info info; /* for the caller; the sizes come at the end */
	lade__coder coder;
	lade__ring ring;
	lade__index index;
	pipe_slot *slots;
	uint32_t group_chunks;
	bool last; /* no chunk follows: one has been short, or a page not full */
	bool ended;
	lade_status late; /* a failure met behind a slot's chunks, for the next one */
	lade_error late_error;
	lade_status status;
	lade_error error;
	uint8_t *dst; /* the caller's memory, while reading into it */
	size_t dst_size;
	size_t got;
	lade_output output; /* while copying */
};

/* ---- life ------------------------------------------------------------------------------- */

void lade_frame_pipe_free(lade_frame_pipe *pipe)
{
	if (!pipe)
		return;
	for (size_t i = 0; pipe->slots && i < pipe->ring.count; i++) {
		pipe_slot *slot = &pipe->slots[i];
		lade__host_free(lade__engine_host(pipe->engine), slot->bodies.data,
		                slot->bodies.cap);
		lade__host_free(lade__engine_host(pipe->engine), slot->buffer.data,
		                slot->buffer.cap);
		free(slot->chunks);
	}
	free(pipe->slots);
	lade__host_free(lade__engine_host(pipe->engine), pipe->ahead.buffer, LADE__AHEAD);
	lade__ring_reset(&pipe->ring);
	lade__index_reset(&pipe->index);
	lade_spec_unref(pipe->header.spec);
	free(pipe);
}

static lade_status read_header(lade_frame_pipe *pipe, lade_error *err)
{
	const uint8_t *src;
	size_t have, size;
	lade_status status;
	TRY(lade__ahead_peek(&pipe->ahead, 16, &src, &have, err));
	TRY(lade__header_size(src, have, &size, err));
	TRY(lade__ahead_peek(&pipe->ahead, size, &src, &have, err));
	if (have < size)
		return lade_fail(err, LADE_E_TRUNCATED, have,
		                 "frame header: want %zu bytes, have %zu", size, have);
	TRY(lade__header_parse(pipe->engine, src, size, &pipe->header, err));
	lade__ahead_skip(&pipe->ahead, size);
	pipe->index.off = pipe->index.first_off = size;
	pipe->info = pipe->header.info;
out:
	return status;
}

static lade_status pipe_init(lade_frame_pipe *pipe, const lade_frame_read_options *given,
                             lade_error *err)
{
	lade_frame_read_options options;
	lade_status status;
	TRY(lade__read_options_check(given, &options, err));
	pipe->ahead.buffer = lade__host_alloc(lade__engine_host(pipe->engine), LADE__AHEAD);
	if (!pipe->ahead.buffer)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of input", LADE__AHEAD);
	TRY(read_header(pipe, err));
	const lade_frame_info *info = &pipe->header.info;
	TRY(lade__read_limits(&options, info, err));
	pipe->coder = (lade__coder){
		.engine = pipe->engine,
		.info = info,
		.direction = LADE_DECODE,
		.job = {.dict = options.dict, .flags = lade__read_batch_flags(&options)}};
	TRY(lade__coder_init(&pipe->coder, options.verify, err));
	TRY(lade__ring_init(&pipe->ring, pipe->engine, options.threads,
	                    (options.flags & LADE_FRAME_APART) != 0, options.cancel, err));
	pipe->group_chunks = info->chunk_size < LADE__GROUP_BYTES ? LADE__GROUP_CHUNKS : 1;
	pipe->slots = calloc(pipe->ring.count, sizeof *pipe->slots);
	if (!pipe->slots)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu slots",
		                 pipe->ring.count);
	for (size_t i = 0; i < pipe->ring.count; i++) {
		pipe->slots[i].chunks = calloc(pipe->group_chunks, sizeof(lade__chunk));
		if (!pipe->slots[i].chunks)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %u chunks", pipe->group_chunks);
	}
out:
	return status;
}

lade_status lade_frame_pipe_new(lade_engine *engine, lade_input input,
                                const lade_frame_read_options *options, lade_frame_pipe **out,
                                lade_error *err)
{
	if (!out || !engine || !input.read)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 !out ? "out" : !engine ? "engine" : "input.read");
	*out = NULL;
	lade_frame_pipe *pipe = calloc(1, sizeof *pipe);
	if (!pipe)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to read a pipe");
	pipe->engine = engine;
	pipe->ahead.input = input;
	lade_status status = pipe_init(pipe, options, err);
	if (status != LADE_OK)
		lade_frame_pipe_free(pipe);
	else
		*out = pipe;
	return status;
}

const lade_frame_info *lade_frame_pipe_get_info(const lade_frame_pipe *pipe)
{
	return &pipe->info;
}

lade_cspan lade_frame_pipe_rest(const lade_frame_pipe *pipe)
{
	if (!pipe->ended)
		return lade_host_cspan(NULL, 0);
	return lade_host_cspan(pipe->ahead.buffer + pipe->ahead.at,
	                       pipe->ahead.end - pipe->ahead.at);
}

/* ---- the index, as it goes by ---------------------------------------------------------------- */

/* 'size' bytes at the input's place; fewer are an error. */
static lade_status peek_all(lade_frame_pipe *pipe, size_t size, const char *what,
                            const uint8_t **src, lade_error *err)
{
	size_t have;
	lade_status status = lade__ahead_peek(&pipe->ahead, size, src, &have, err);
	if (status == LADE_OK && have < size)
		status = lade_fail(err, LADE_E_TRUNCATED, pipe->ahead.off + have,
		                   "%s at %" PRIu64 ": want %zu bytes, have %zu", what,
		                   pipe->ahead.off, size, have);
	return status;
}

/* Compares a piece of the index with what the chunks give; 8 bytes around the first difference are
 * shown. */
static lade_status compare(lade_frame_pipe *pipe, const uint8_t *want, size_t size,
                           const char *what, lade_error *err)
{
	const uint8_t *src;
	while (size) {
		size_t n = size < LADE__AHEAD ? size : LADE__AHEAD;
		lade_status status = peek_all(pipe, n, what, &src, err);
		if (status != LADE_OK)
			return status;
		if (memcmp(src, want, n)) {
			size_t i = 0;
			while (src[i] == want[i])
				i++;
			size_t word = i & ~(size_t)7;
			return lade_fail(err, LADE_E_CORRUPT, pipe->ahead.off + i,
			                 "%s: %016" PRIx64 " at %" PRIu64
			                 ", the chunks give %016" PRIx64,
			                 what, lade__le64(src + word), pipe->ahead.off + word,
			                 lade__le64(want + word));
		}
		lade__ahead_skip(&pipe->ahead, n);
		want += n;
		size -= n;
	}
	return LADE_OK;
}

static lade_status read_page(lade_frame_pipe *pipe, lade_error *err)
{
	size_t size;
	pipe->last |= pipe->index.count < LADE__PAGE_CHUNKS;
	lade_status status = lade__index_page_end(&pipe->index, &size, err);
	return status == LADE_OK ? compare(pipe, pipe->index.page, size, "index page", err)
	                         : status;
}

static lade_status read_end(lade_frame_pipe *pipe, lade_error *err)
{
	lade__index *index = &pipe->index;
	size_t list = (size_t)lade__list_size(index->page_count), size = list + LADE__FOOTER_SIZE;
	uint8_t *end = lade__host_alloc(lade__engine_host(pipe->engine), size);
	if (!end)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a list of %zu bytes", list);
	lade__index_list_pack(index, end);
	lade__index_footer_pack(index, pipe->header.check, end + list);
	lade_status status = compare(pipe, end, list, "list of pages", err);
	if (status == LADE_OK)
		status = compare(pipe, end + list, LADE__FOOTER_SIZE, "footer", err);
	lade__host_free(lade__engine_host(pipe->engine), end, size);
	if (status != LADE_OK)
		return status;
	pipe->info.size = index->total;
	pipe->info.chunk_count = index->chunk_count;
	pipe->info.encoded_size = index->off + size;
	pipe->ended = true;
	return LADE_OK;
}

/* ---- chunks ------------------------------------------------------------------------------ */

/*
 * Steps over what stands before the next chunk.  '*chunk' is false when the frame has ended.
 * A page must stand where one is full and behind the last chunk; where the header does not say
 * which one is the last, its mark does.
 */
static lade_status next_part(lade_frame_pipe *pipe, bool *chunk, lade_error *err)
{
	lade__index *index = &pipe->index;
	const lade_frame_info *info = &pipe->header.info;
	bool counted = info->chunk_count != LADE_SIZE_UNKNOWN;
	const uint8_t *src;
	lade_status status;
	*chunk = false;
	while (!pipe->ended) {
		bool last = pipe->last || (counted && index->chunk_count == info->chunk_count);
		TRY(peek_all(pipe, LADE__PART_HEADER,
		             index->count ? "chunk or page" : "chunk or list", &src, err));
		if (index->count == LADE__PAGE_CHUNKS || (last && index->count)) {
			TRY(read_page(pipe, err));
		} else if (last) {
			TRY(read_end(pipe, err));
		} else if (!counted && index->count && lade__le32(src) == LADE_FRAME_PAGE_MARK) {
			TRY(read_page(pipe, err));
		} else if (!counted && !index->count && lade__le32(src) == LADE_FRAME_LIST_MARK) {
			TRY(read_end(pipe, err));
		} else {
			*chunk = true;
			return LADE_OK;
		}
	}
	return LADE_OK;
out:
	return status;
}

/* Makes a buffer hold 'want' bytes if it has not 'size'; keeps the first 'used' of them. */
static lade_status grow(lade_engine *engine, buffer *r, size_t used, size_t size, size_t want,
                        lade_error *err)
{
	if (size <= r->cap)
		return LADE_OK;
	uint8_t *more = lade__host_alloc(lade__engine_host(engine), want);
	if (!more)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of chunks", want);
	if (used)
		memcpy(more, r->data, used);
	lade__host_free(lade__engine_host(engine), r->data, r->cap);
	*r = (buffer){more, want};
	return LADE_OK;
}

/* Parses the next chunk's header, which stays where it is. */
static lade_status peek_chunk(lade_frame_pipe *pipe, lade__chunk *chunk, lade_error *err)
{
	const lade_frame_info *info = &pipe->header.info;
	lade__located at = {.index = pipe->index.chunk_count, .off = pipe->ahead.off};
	const uint8_t *src;
	size_t spec_size;
	lade_status status;
	TRY(peek_all(pipe, LADE__PART_HEADER, "chunk", &src, err));
	TRY(lade__chunk_peek(src, at.index, at.off, &spec_size, err));
	TRY(peek_all(pipe, LADE__PART_HEADER + (size_t)lade__pad(spec_size), "chunk", &src, err));
	if (info->size != LADE_SIZE_UNKNOWN) {
		uint64_t left = info->size - at.index * info->chunk_size;
		at.chunk.decoded_size =
			(uint32_t)(left < info->chunk_size ? left : info->chunk_size);
	}
	status = lade__chunk_parse(src, &at, info, chunk, err);
out:
	return status;
}

/* Moves a chunk from the input to the slot. */
static lade_status take_chunk(lade_frame_pipe *pipe, pipe_slot *slot,
                              const lade__chunk *chunk, lade_error *err)
{
	size_t body = (size_t)lade__chunk_block_size(chunk) - LADE__PART_HEADER, got;
	uint64_t off = pipe->ahead.off;
	size_t size = slot->bodies_size + body;
	lade_status status = grow(pipe->engine, &slot->bodies, slot->bodies_size, size,
	                          size + size / 8, err);
	if (status != LADE_OK)
		return status;
	lade__ahead_skip(&pipe->ahead, LADE__PART_HEADER);
	status = lade__ahead_read(&pipe->ahead, slot->bodies.data + slot->bodies_size, body, &got,
	                          err);
	if (status != LADE_OK)
		return status;
	if (got < body)
		return lade_fail(err, LADE_E_TRUNCATED, pipe->ahead.off,
		                 "chunk %" PRIu64 " at %" PRIu64 ": want %zu bytes, have %zu",
		                 pipe->index.chunk_count, off, body + LADE__PART_HEADER,
		                 got + LADE__PART_HEADER);
	if (slot->count == 0) {
		slot->first = pipe->index.chunk_count;
		slot->off = off;
	}
	slot->bodies_size += body;
	slot->chunks[slot->count++] = *chunk;
	slot->decoded += chunk->decoded_size;
	lade__index_add(&pipe->index, chunk);
	pipe->last |= chunk->decoded_size < pipe->header.info.chunk_size;
	return LADE_OK;
}

/*
 * Adds to a slot the small chunks that stand right behind its own.  What fails here is kept for
 * the next slot: the chunks before it are good.
 */
static void take_more(lade_frame_pipe *pipe, pipe_slot *slot)
{
	const lade__index *index = &pipe->index;
	size_t limit = LADE__GROUP_BYTES;
	lade_error *err = &pipe->late_error;
	lade__chunk chunk;
	const uint8_t *src;
	if (slot->dst && pipe->dst_size < limit)
		limit = pipe->dst_size;
	while (slot->count < pipe->group_chunks && !pipe->last &&
	       index->count < LADE__PAGE_CHUNKS &&
	       index->chunk_count != pipe->header.info.chunk_count) {
		pipe->late = peek_all(pipe, LADE__PART_HEADER, "chunk or page", &src, err);
		if (pipe->late != LADE_OK || lade__le32(src) == LADE_FRAME_PAGE_MARK)
			return;
		pipe->late = peek_chunk(pipe, &chunk, err);
		if (pipe->late != LADE_OK || slot->decoded + chunk.decoded_size > limit)
			return;
		pipe->late = take_chunk(pipe, slot, &chunk, err);
		if (pipe->late != LADE_OK)
			return;
	}
}

static lade_status take(void *ctx, size_t at, bool *took, lade_error *err)
{
	lade_frame_pipe *pipe = ctx;
	pipe_slot *slot = &pipe->slots[at];
	lade_status status = pipe->late;
	lade__chunk chunk;
	if (status != LADE_OK) {
		*err = pipe->late_error;
		return status;
	}
	slot->count = 0;
	slot->bodies_size = slot->decoded = slot->handed = 0;
	slot->dst = NULL;
	TRY(next_part(pipe, took, err));
	if (!*took)
		return LADE_OK;
	TRY(peek_chunk(pipe, &chunk, err));
	if (chunk.decoded_size <= pipe->dst_size)
		slot->dst = pipe->dst;
	TRY(take_chunk(pipe, slot, &chunk, err));
	take_more(pipe, slot);
	/* Once a chunk does not go to the caller's memory, none behind it does. */
	size_t used = slot->dst ? slot->decoded : pipe->dst_size;
	pipe->dst = used < pipe->dst_size ? pipe->dst + used : NULL;
	pipe->dst_size -= used;
out:
	return status;
}

/* Decodes the slot's chunks up to the first bad one. */
static lade_status work(void *ctx, size_t at, lade_worker *worker, lade_error *err)
{
	lade_frame_pipe *pipe = ctx;
	pipe_slot *slot = &pipe->slots[at];
	if (!slot->dst) {
		size_t size = slot->decoded,
		       least = pipe->group_chunks > 1 ? LADE__GROUP_BYTES : 0;
		lade_status status = grow(pipe->engine, &slot->buffer, 0, size,
		                          size < least ? least : size, err);
		if (status != LADE_OK)
			return status;
		slot->dst = slot->buffer.data;
	}
	const uint8_t *body = slot->bodies.data;
	uint64_t off = slot->off;
	slot->decoded = 0;
	slot->status = LADE_OK;
	for (uint32_t i = 0; i < slot->count; i++) {
		const lade__chunk *chunk = &slot->chunks[i];
		lade__found found = {slot->first + i, chunk, body, off};
		lade_status status = lade__ring_look(&pipe->ring, err);
		if (status != LADE_OK)
			return status;
		slot->status = lade__block_decode(&pipe->coder, worker, &found,
		                                  slot->dst + slot->decoded, &slot->error);
		if (slot->status != LADE_OK)
			return LADE_OK;
		uint64_t block = lade__chunk_block_size(chunk);
		body += block - LADE__PART_HEADER;
		off += block;
		slot->decoded += chunk->decoded_size;
	}
	return LADE_OK;
}

/* What is to be said once a slot's good bytes have been given. */
static lade_status slot_end(const pipe_slot *slot, lade_error *err)
{
	if (slot->status != LADE_OK)
		*err = slot->error;
	return slot->status;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Keeps a failure, so that it is final. */
static lade_status leave(lade_frame_pipe *pipe, lade_status status, lade_error *err)
{
	pipe->status = status;
	if (status != LADE_OK && err)
		*err = pipe->error;
	return status;
}

/* What has been decoded into the caller's memory is given; what is in a buffer stays. */
static lade_status give(void *ctx, size_t at, bool *gave, lade_error *err)
{
	lade_frame_pipe *pipe = ctx;
	const pipe_slot *slot = &pipe->slots[at];
	*gave = slot->dst != slot->buffer.data;
	if (!*gave)
		return LADE_OK;
	pipe->got += slot->decoded;
	return slot_end(slot, err);
}

/* Hands out what the slots keep, 'cap' bytes at most. */
static size_t hand_out(lade_frame_pipe *pipe, uint8_t *dst, size_t cap)
{
	size_t done = 0, at;
	while (done < cap && pipe->status == LADE_OK && lade__ring_front(&pipe->ring, &at)) {
		pipe_slot *slot = &pipe->slots[at];
		size_t n = slot->decoded - slot->handed;
		n = n < cap - done ? n : cap - done;
		memcpy(dst + done, slot->dst + slot->handed, n);
		done += n;
		slot->handed += n;
		if (slot->handed < slot->decoded)
			break;
		pipe->status = slot_end(slot, &pipe->error);
		lade__ring_pop(&pipe->ring);
	}
	return done;
}

lade_status lade_frame_pipe_read(lade_frame_pipe *pipe, void *dst, size_t cap, size_t *got,
                                 lade_error *err)
{
	if (!pipe || !dst || !cap || !got)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s",
		                 !pipe  ? "pipe is NULL"
		                 : !got ? "got is NULL"
		                        : "dst is NULL, or cap is 0");
	*got = hand_out(pipe, dst, cap);
	if (*got == 0 && pipe->status != LADE_OK) {
		if (err)
			*err = pipe->error;
		return pipe->status;
	}
	/* Reads more only if chunks fit whole, or if there was nothing so far. */
	size_t at;
	if (pipe->status != LADE_OK || lade__ring_front(&pipe->ring, &at) ||
	    (*got && cap - *got < pipe->header.info.chunk_size))
		return LADE_OK;
	lade__ring_calls calls = {.take = take, .work = work, .give = give, .ctx = pipe};
	pipe->dst = (uint8_t *)dst + *got;
	pipe->dst_size = cap - *got;
	pipe->got = 0;
	lade_status status = lade__ring_run(&pipe->ring, &calls, &pipe->error);
	pipe->dst = NULL;
	pipe->dst_size = 0;
	*got += pipe->got;
	pipe->status = status;
	*got += hand_out(pipe, (uint8_t *)dst + *got, cap - *got);
	return *got ? LADE_OK : leave(pipe, pipe->status, err);
}

static lade_status give_output(void *ctx, size_t at, bool *gave, lade_error *err)
{
	lade_frame_pipe *pipe = ctx;
	const pipe_slot *slot = &pipe->slots[at];
	size_t size = slot->decoded - slot->handed;
	(void)gave;
	lade_status status = LADE_OK;
	if (size)
		status = pipe->output.write(pipe->output.ctx, slot->dst + slot->handed, size,
		                            err);
	return status != LADE_OK ? status : slot_end(slot, err);
}

lade_status lade_frame_pipe_copy(lade_frame_pipe *pipe, lade_output output, lade_error *err)
{
	if (!pipe || !output.write)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 pipe ? "output.write" : "pipe");
	pipe->output = output;
	lade__ring_calls calls = {.take = take, .work = work, .give = give_output, .ctx = pipe};
	if (pipe->status == LADE_OK)
		pipe->status = lade__ring_run(&pipe->ring, &calls, &pipe->error);
	return leave(pipe, pipe->status, err);
}
