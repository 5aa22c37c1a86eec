/*
 * writer.c: writes a frame as the bytes come (docs/format/frame.md).
 *
 * A slot of the ring is a group of chunks that do not cross an index page: one chunk of 256 KiB and
 * more, or as many small ones as make up that much.  The slot that the ring would fill next is
 * the open one: bytes gather there until it is full.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/chunk.h"
#include "frame/ring.h"

#include "base/options.h"
#include "base/try.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct writer_slot {
	uint8_t *in; /* in_cap bytes, once something was gathered */
	uint8_t *out;
	lade__chunk *chunks; /* group_chunks of them */
	size_t in_cap, out_cap;
	const uint8_t *data; /* 'in', or the caller's */
	size_t size;         /* bytes of data */
	const lade_spec *own;
	uint64_t first; /* index of the first chunk */
	size_t out_size;
} writer_slot;

struct lade_frame_writer {
	lade_engine *engine;
	lade_output output;
	lade_input input; /* while copying */
	lade__header header;
	lade__coder coder;
	lade__ring ring;
	lade__index index;
	writer_slot *slots;
	uint32_t group_chunks;
	uint64_t next;    /* index of the first chunk that no full slot holds */
	uint64_t taken;   /* decoded bytes that came */
	bool ended;       /* a chunk shorter than chunk_size has come */
	bool eof;         /* of 'input' */
	bool finished;
	lade_status status;
	lade_error error;
	const uint8_t *data; /* the caller's, not yet taken */
	size_t data_size;
};

/* ---- life ------------------------------------------------------------------------------- */

void lade_frame_writer_free(lade_frame_writer *writer)
{
	if (!writer)
		return;
	for (size_t i = 0; writer->slots && i < writer->ring.count; i++) {
		writer_slot *slot = &writer->slots[i];
		lade__host_free(lade__engine_host(writer->engine), slot->in, slot->in_cap);
		lade__host_free(lade__engine_host(writer->engine), slot->out, slot->out_cap);
		free(slot->chunks);
	}
	free(writer->slots);
	lade__ring_reset(&writer->ring);
	lade__index_reset(&writer->index);
	lade_spec_unref(writer->header.spec);
	free(writer);
}

/* The options as this version has them, with a spec, which is a new reference that the header then
 * holds. */
static lade_status make_header(const lade_frame_options *given, lade_frame_options *options,
                               lade__header *header, lade_error *err)
{
	lade_spec *copy = NULL;
	lade_status status =
		lade__options_read(options, sizeof *options, given, "frame options", err);
	if (status == LADE_OK && !options->spec)
		status = lade_spec_parse(NULL, "copy", &copy, err);
	if (status != LADE_OK)
		return status;
	if (copy)
		options->spec = copy;
	status = lade__header_make(options, header, err);
	if (status != LADE_OK)
		lade_spec_unref(copy);
	else
		header->spec = copy ? copy : lade_spec_ref(options->spec);
	return status;
}

static lade_status writer_init(lade_frame_writer *writer, const lade_frame_options *given,
                               lade_error *err)
{
	lade_frame_options options;
	uint8_t bytes[LADE__HEADER_MAX];
	lade_status status;
	TRY(make_header(given, &options, &writer->header, err));
	const lade_frame_info *info = &writer->header.info;
	writer->coder = (lade__coder){.engine = writer->engine,
	                              .info = info,
	                              .direction = LADE_ENCODE,
	                              .job = {.dict = options.dict}};
	TRY(lade__coder_init(&writer->coder, LADE_VERIFY_NEVER, err));
	writer->group_chunks = 1;
	while (writer->group_chunks < LADE__GROUP_CHUNKS &&
	       info->chunk_size * writer->group_chunks * 2 <= LADE__GROUP_BYTES)
		writer->group_chunks *= 2;
	/* A group is one thread's. */
	unsigned threads = options.threads ? options.threads : writer->engine->threads;
	uint64_t groups = lade__div_up(info->size, info->chunk_size * writer->group_chunks);
	if (groups < threads)
		threads = groups ? (unsigned)groups : 1;
	TRY(lade__ring_init(&writer->ring, writer->engine, threads, false, options.cancel, err));
	writer->slots = calloc(writer->ring.count, sizeof *writer->slots);
	if (!writer->slots)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu slots",
		                 writer->ring.count);
	for (size_t i = 0; i < writer->ring.count; i++) {
		writer->slots[i].chunks = calloc(writer->group_chunks, sizeof(lade__chunk));
		if (!writer->slots[i].chunks)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %u chunks", writer->group_chunks);
	}
	writer->index.off = writer->index.first_off = writer->header.size;
	lade__header_pack(&writer->header, bytes);
	status = writer->output.write(writer->output.ctx, bytes, writer->header.size, err);
out:
	return status;
}

lade_status lade_frame_writer_new(lade_engine *engine, lade_output output,
                                  const lade_frame_options *options, lade_frame_writer **out,
                                  lade_error *err)
{
	if (!out || !engine || !output.write)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 !out ? "out" : !engine ? "engine" : "output.write");
	*out = NULL;
	lade_frame_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a frame writer");
	writer->engine = engine;
	writer->output = output;
	lade_status status = writer_init(writer, options, err);
	if (status != LADE_OK)
		lade_frame_writer_free(writer);
	else
		*out = writer;
	return status;
}

size_t lade_frame_bound(const lade_frame_options *options, size_t size)
{
	lade_frame_options own;
	lade__header header;
	if (make_header(options, &own, &header, NULL) != LADE_OK)
		return SIZE_MAX;
	lade_spec_unref(header.spec);
	/* Every chunk is stored at worst: its bytes, a header and at most 15 of padding; 8 bytes of
	 * entry; for each page its header, padding and 8 bytes in the list. */
	uint64_t chunks = lade__div_up(size, header.info.chunk_size);
	uint64_t pages = lade__div_up(chunks, LADE__PAGE_CHUNKS);
	uint64_t total;
	if (__builtin_mul_overflow(chunks, LADE__PART_HEADER + LADE__ALIGN, &total) ||
	    __builtin_add_overflow(total, size, &total) ||
	    __builtin_add_overflow(total, chunks * LADE__ENTRY_SIZE + pages * 64, &total) ||
	    __builtin_add_overflow(total, header.size + 128, &total) || total > SIZE_MAX)
		return SIZE_MAX;
	return (size_t)total;
}

/* ---- the ring's calls --------------------------------------------------------------------- */

/* Bytes that the open slot can hold. */
static size_t open_cap(const lade_frame_writer *writer)
{
	uint64_t in_page = LADE__PAGE_CHUNKS - writer->next % LADE__PAGE_CHUNKS;
	uint64_t chunks = in_page < writer->group_chunks ? in_page : writer->group_chunks;
	return (size_t)chunks * writer->header.info.chunk_size;
}

/* The open slot, with its buffer. */
static lade_status open_slot(lade_frame_writer *writer, writer_slot **out, lade_error *err)
{
	writer_slot *slot = &writer->slots[lade__ring_open(&writer->ring)];
	*out = slot;
	if (slot->in)
		return LADE_OK;
	size_t cap = writer->group_chunks * writer->header.info.chunk_size;
	slot->in = lade__host_alloc(lade__engine_host(writer->engine), cap);
	if (!slot->in)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of chunks", cap);
	slot->in_cap = cap;
	return LADE_OK;
}

/* The slot holds 'size' bytes of 'data': it is full, and the next one is the open one. */
static void slot_fill(lade_frame_writer *writer, writer_slot *slot, const uint8_t *data,
                      size_t size, const lade_spec *own)
{
	slot->data = data;
	slot->size = size;
	slot->own = own;
	slot->first = writer->next;
	writer->next += lade__div_up(size, writer->header.info.chunk_size);
}

static size_t slot_count(const lade_frame_writer *writer, const writer_slot *slot)
{
	return (size_t)lade__div_up(slot->size, writer->header.info.chunk_size);
}

static lade_status work(void *ctx, size_t at, lade_worker *worker, lade_error *err)
{
	lade_frame_writer *writer = ctx;
	writer_slot *slot = &writer->slots[at];
	size_t chunk_size = writer->header.info.chunk_size, own_size = 0;
	size_t count = slot_count(writer, slot);
	if (slot->own)
		lade_spec_bytes(slot->own, &own_size);
	size_t largest = slot->size < chunk_size ? slot->size : chunk_size;
	size_t need = count * (size_t)lade__block_bound(largest, own_size);
	if (need > slot->out_cap) {
		lade__host_free(lade__engine_host(writer->engine), slot->out, slot->out_cap);
		slot->out = lade__host_alloc(lade__engine_host(writer->engine), need);
		slot->out_cap = slot->out ? need : 0;
		if (!slot->out)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu bytes of encoded chunks", need);
	}
	slot->out_size = 0;
	for (size_t i = 0; i < count; i++) {
		size_t off = i * chunk_size;
		size_t size = slot->size - off < chunk_size ? slot->size - off : chunk_size;
		lade__chunk_source from = {
			slot->first + i, lade_host_cspan(slot->data + off, size), slot->own};
		lade_status status = lade__ring_look(&writer->ring, err);
		if (status == LADE_OK)
			status = lade__block_encode(&writer->coder, worker, &from,
			                            slot->out + slot->out_size,
			                            &slot->chunks[i], err);
		if (status != LADE_OK)
			return status;
		slot->out_size += (size_t)lade__chunk_block_size(&slot->chunks[i]);
	}
	return LADE_OK;
}

static lade_status write_page(lade_frame_writer *writer, lade_error *err)
{
	size_t size;
	lade_status status = lade__index_page_end(&writer->index, &size, err);
	if (status != LADE_OK)
		return status;
	return writer->output.write(writer->output.ctx, writer->index.page, size, err);
}

static lade_status give(void *ctx, size_t at, bool *gave, lade_error *err)
{
	lade_frame_writer *writer = ctx;
	writer_slot *slot = &writer->slots[at];
	(void)gave;
	lade_status status =
		writer->output.write(writer->output.ctx, slot->out, slot->out_size, err);
	if (status != LADE_OK)
		return status;
	for (size_t i = 0, count = slot_count(writer, slot); i < count; i++)
		lade__index_add(&writer->index, &slot->chunks[i]);
	slot->size = 0;
	return writer->index.count == LADE__PAGE_CHUNKS ? write_page(writer, err) : LADE_OK;
}

/* Whether all has come that was announced. */
static bool is_whole(const lade_frame_writer *writer)
{
	return writer->taken == writer->header.info.size;
}

/* A slot straight from the caller's memory; only the frame's last one may hold less than it can. */
static lade_status take_data(void *ctx, size_t at, bool *took, lade_error *err)
{
	lade_frame_writer *writer = ctx;
	size_t size = open_cap(writer);
	(void)err;
	if (size > writer->data_size && is_whole(writer))
		size = writer->data_size;
	if (size > writer->data_size || size == 0) {
		*took = false;
		return LADE_OK;
	}
	slot_fill(writer, &writer->slots[at], writer->data, size, NULL);
	writer->data += size;
	writer->data_size -= size;
	return LADE_OK;
}

/* Adds 'size' decoded bytes to those that came. */
static lade_status account(lade_frame_writer *writer, size_t size, lade_error *err)
{
	uint64_t total;
	const lade_frame_info *info = &writer->header.info;
	if (writer->ended && size)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                 "%zu bytes come after a chunk that is shorter than %zu", size,
		                 info->chunk_size);
	if (__builtin_add_overflow(writer->taken, size, &total) || total > INT64_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a frame holds 2^63 - 1 bytes at most");
	if (info->size != LADE_SIZE_UNKNOWN && total > info->size)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                 "%" PRIu64 " bytes were written, options.size is %" PRIu64, total,
		                 info->size);
	writer->taken = total;
	return LADE_OK;
}

/* The open slot from the input, until it is full. */
static lade_status take_input(void *ctx, size_t at, bool *took, lade_error *err)
{
	lade_frame_writer *writer = ctx;
	writer_slot *slot;
	size_t cap = open_cap(writer);
	(void)at;
	lade_status status = open_slot(writer, &slot, err);
	while (status == LADE_OK && slot->size < cap && !writer->eof) {
		size_t got = 0;
		status = writer->input.read(writer->input.ctx, slot->in + slot->size,
		                            cap - slot->size, &got, err);
		if (status != LADE_OK)
			break;
		if (got > cap - slot->size)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "the input returned %zu bytes, %zu were requested", got,
			                 cap - slot->size);
		status = account(writer, got, err);
		slot->size += got;
		writer->eof = got == 0;
	}
	if (status == LADE_OK && slot->size == cap)
		slot_fill(writer, slot, slot->in, cap, NULL);
	else
		*took = false;
	return status;
}

static lade_status run(lade_frame_writer *writer,
                       lade_status (*take)(void *ctx, size_t slot, bool *took, lade_error *err),
                       lade_error *err)
{
	lade__ring_calls calls = {.take = take, .work = work, .give = give, .ctx = writer};
	return lade__ring_run(&writer->ring, &calls, err);
}

/* ---- writing ---------------------------------------------------------------------------- */

/* Arguments and state, the same for all calls. */
static lade_status enter(lade_frame_writer *writer, const void *data, size_t size, lade_error *err)
{
	if (!writer || (!data && size))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 writer ? "data" : "writer");
	if (writer->status != LADE_OK) {
		if (err)
			*err = writer->error;
		return writer->status;
	}
	if (writer->finished)
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "the frame is finished");
	return LADE_OK;
}

/* Keeps a failure, so that it is final. */
static lade_status leave(lade_frame_writer *writer, lade_status status, lade_error *err)
{
	writer->status = status;
	if (status != LADE_OK && err)
		*err = writer->error;
	return status;
}

/* Gathers bytes in the open slot. */
static lade_status gather(lade_frame_writer *writer, lade_error *err)
{
	while (writer->data_size) {
		writer_slot *slot;
		lade_status status;
		if (lade__ring_full(&writer->ring) && (status = run(writer, NULL, err)))
			return status;
		if ((status = open_slot(writer, &slot, err)))
			return status;
		size_t cap = open_cap(writer), room = cap - slot->size;
		size_t n = writer->data_size < room ? writer->data_size : room;
		memcpy(slot->in + slot->size, writer->data, n);
		slot->size += n;
		writer->data += n;
		writer->data_size -= n;
		if (slot->size == cap) {
			slot_fill(writer, slot, slot->in, cap, NULL);
			lade__ring_push(&writer->ring);
		}
	}
	return LADE_OK;
}

/* Bytes in the open slot; 0 too when all slots are full. */
static size_t open_size(const lade_frame_writer *writer)
{
	if (lade__ring_full(&writer->ring))
		return 0;
	return writer->slots[lade__ring_open(&writer->ring)].size;
}

lade_status lade_frame_writer_write(lade_frame_writer *writer, const void *data, size_t size,
                                    lade_error *err)
{
	lade_status status = enter(writer, data, size, err);
	if (status != LADE_OK)
		return status;
	TRY(account(writer, size, &writer->error));
	writer->data = data;
	writer->data_size = size;
	/* What fills all slots and more, or is the rest, is encoded where it is, once the open
	 * slot is full. */
	size_t slot_size = writer->group_chunks * writer->header.info.chunk_size;
	if (size / slot_size > writer->ring.count || is_whole(writer)) {
		size_t have = open_size(writer);
		if (have) {
			size_t room = open_cap(writer) - have;
			room = room < size ? room : size;
			writer->data_size = room;
			TRY(gather(writer, &writer->error));
			writer->data_size = size - room;
		}
		TRY(run(writer, take_data, &writer->error));
	}
	status = gather(writer, &writer->error);
out:
	return leave(writer, status, err);
}

lade_status lade_frame_writer_copy(lade_frame_writer *writer, lade_input input, lade_error *err)
{
	lade_status status = enter(writer, NULL, 0, err);
	if (status != LADE_OK)
		return status;
	if (!input.read)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "input.read is NULL");
	writer->input = input;
	writer->eof = false;
	while (status == LADE_OK && !writer->eof)
		status = run(writer, take_input, &writer->error);
	return leave(writer, status, err);
}

/* Ends the open slot where it stands. */
static lade_status flush(lade_frame_writer *writer, lade_error *err)
{
	size_t have = open_size(writer);
	if (have) {
		writer_slot *slot = &writer->slots[lade__ring_open(&writer->ring)];
		slot_fill(writer, slot, slot->in, have, NULL);
		lade__ring_push(&writer->ring);
	}
	return run(writer, NULL, err);
}

lade_status lade_frame_writer_chunk(lade_frame_writer *writer, const lade_spec *spec,
                                    const void *data, size_t size, lade_error *err)
{
	lade_status status = enter(writer, data, size, err);
	if (status != LADE_OK)
		return status;
	size_t chunk_size = writer->header.info.chunk_size, have = open_size(writer), spec_size = 0;
	if (size == 0 || size > chunk_size || have % chunk_size)
		return lade_fail(
			err, have % chunk_size ? LADE_E_STATE : LADE_E_ARG, LADE_NO_OFFSET,
			"a chunk of %zu bytes behind %zu of an incomplete one: want 1 to %zu "
			"behind 0",
			size, have % chunk_size, chunk_size);
	if (spec && lade_spec_equal(spec, writer->header.info.spec))
		spec = NULL;
	if (spec)
		lade_spec_bytes(spec, &spec_size);
	if (spec_size > LADE__SPEC_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the spec takes %zu bytes, at most %d", spec_size, LADE__SPEC_MAX);
	TRY(account(writer, size, &writer->error));
	TRY(flush(writer, &writer->error));
	slot_fill(writer, &writer->slots[lade__ring_open(&writer->ring)], data, size, spec);
	lade__ring_push(&writer->ring);
	writer->ended = size < chunk_size;
	status = run(writer, NULL, &writer->error);
out:
	return leave(writer, status, err);
}

/* List and footer. */
static lade_status write_end(lade_frame_writer *writer, lade_error *err)
{
	size_t list = (size_t)lade__list_size(writer->index.page_count);
	const lade_allocator *host = lade__engine_host(writer->engine);
	uint8_t *end = lade__host_alloc(host, list + LADE__FOOTER_SIZE);
	if (!end)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a list of %zu bytes", list);
	lade__index_list_pack(&writer->index, end);
	lade__index_footer_pack(&writer->index, writer->header.check, end + list);
	lade_status status =
		writer->output.write(writer->output.ctx, end, list + LADE__FOOTER_SIZE, err);
	lade__host_free(host, end, list + LADE__FOOTER_SIZE);
	return status;
}

lade_status lade_frame_writer_finish(lade_frame_writer *writer, lade_error *err)
{
	lade_status status = enter(writer, NULL, 0, err);
	if (status != LADE_OK)
		return status;
	uint64_t size = writer->header.info.size;
	if (size != LADE_SIZE_UNKNOWN && size != writer->taken) {
		status = lade_fail(&writer->error, LADE_E_STATE, LADE_NO_OFFSET,
		                   "%" PRIu64 " bytes were written, options.size is %" PRIu64,
		                   writer->taken, size);
		goto out;
	}
	TRY(flush(writer, &writer->error));
	if (writer->index.count)
		TRY(write_page(writer, &writer->error));
	status = write_end(writer, &writer->error);
	writer->finished = true;
out:
	return leave(writer, status, err);
}
