/*
 * reader.c: opens a frame for reading anywhere, and finds its chunks (docs/format/frame.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/gpu/device.h"
#include "frame/read.h"

#include "base/options.h"
#include "base/try.h"

#include <inttypes.h>
#include <stdlib.h>

lade_status lade__read_options_check(const lade_frame_read_options *given,
                                     lade_frame_read_options *options, lade_error *err)
{
	lade_status status = lade__options_read(options, sizeof *options, given,
	                                        "frame read options", err);
	if (status != LADE_OK)
		return status;
	if ((unsigned)options->verify > LADE_VERIFY_NEVER)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "frame read options: verify %d is unknown", (int)options->verify);
	const uint32_t known = LADE_FRAME_MAP | LADE_FRAME_STRICT | LADE_FRAME_APART;
	if (options->flags & ~known)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "frame read options: flags 0x%x, known are 0x%x", options->flags,
		                 known);
	if ((unsigned)options->where > LADE_WHERE_DEVICE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "frame read options: where %d is unknown", (int)options->where);
	if (options->max_chunk_size == 0)
		options->max_chunk_size = LADE_FRAME_CHUNK_MAX;
	return LADE_OK;
}

lade_status lade__read_limits(const lade_frame_read_options *options, const lade_frame_info *info,
                              lade_error *err)
{
	if (info->chunk_size > options->max_chunk_size)
		return lade_fail(err, LADE_E_LIMIT, 24, "chunk size %zu is above the limit of %zu",
		                 info->chunk_size, options->max_chunk_size);
	if (options->verify == LADE_VERIFY_REQUIRED && info->checksum == LADE_CHECKSUM_NONE)
		return lade_fail(err, LADE_E_NO_CHECKSUM, 30,
		                 "the frame has no checksums, and the options require them");
	return LADE_OK;
}

/* ---- life ------------------------------------------------------------------------------- */

void lade_frame_close(lade_frame *frame)
{
	if (!frame)
		return;
	for (size_t i = 0; i < LADE__PAGES_KEPT; i++)
		free(frame->pages[i]);
	lade__read_buffers_free(frame);
	free(frame->page_off);
	lade__source_close(&frame->source);
	lade__device_frame_free(frame->on_device);
	lade_array_unref(frame->copy);
	lade_spec_unref(frame->header.spec);
	pthread_mutex_destroy(&frame->mutex);
	free(frame);
}

static lade_status read_header(lade_frame *frame, lade_error *err)
{
	uint8_t buffer[LADE__HEADER_MAX];
	uint64_t size = frame->source.size;
	size_t first = size < 16 ? (size_t)size : 16, header_size;
	const uint8_t *src;
	lade_status status;
	TRY(lade__source_get(&frame->source, 0, first, buffer, &src, err));
	TRY(lade__header_size(src, first, &header_size, err));
	if (size < header_size)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "frame header: want %zu bytes, have %" PRIu64, header_size, size);
	TRY(lade__source_get(&frame->source, 0, header_size, buffer, &src, err));
	status = lade__header_parse(frame->engine, src, header_size, &frame->header, err);
out:
	return status;
}

/* Footer and list: the list's size has been checked against the frame's before it is allocated. */
static lade_status read_index(lade_frame *frame, lade_error *err)
{
	uint8_t buffer[LADE__FOOTER_SIZE], *list = NULL;
	uint64_t size = frame->source.size;
	const uint8_t *src;
	lade_status status;
	if (size - frame->header.size < LADE__FOOTER_SIZE)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "a frame of %" PRIu64 " bytes has no room for a footer of %d",
		                 size, LADE__FOOTER_SIZE);
	TRY(lade__source_get(&frame->source, size - LADE__FOOTER_SIZE, LADE__FOOTER_SIZE, buffer,
	                     &src, err));
	TRY(lade__footer_parse(src, &frame->header, size, &frame->footer, err));
	size_t list_size = (size_t)lade__list_size(frame->footer.page_count);
	bool there = lade__source_at(&frame->source, frame->footer.list_off, list_size) != NULL;
	list = there ? NULL : malloc(list_size);
	frame->page_off = malloc((size_t)frame->footer.page_count * 8 + 8);
	if (!frame->page_off || (!list && !there)) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                   "no memory for a list of %zu bytes", list_size);
		goto out;
	}
	TRY(lade__source_get(&frame->source, frame->footer.list_off, list_size, list, &src, err));
	status = lade__list_parse(src, &frame->header, &frame->footer, frame->page_off, err);
out:
	free(list);
	return status;
}

static lade_status frame_init(lade_frame *frame, lade_error *err)
{
	lade_status status;
	TRY(read_header(frame, err));
	TRY(lade__read_limits(&frame->options, &frame->header.info, err));
	TRY(read_index(frame, err));
	frame->info = frame->header.info;
	frame->info.size = frame->footer.total;
	frame->info.chunk_count = frame->footer.chunk_count;
	frame->info.encoded_size = frame->source.size;
	frame->coder = (lade__coder){.engine = frame->engine,
	                             .info = &frame->info,
	                             .direction = LADE_DECODE,
	                             .job = {.dict = frame->options.dict,
	                                     .flags = lade__read_batch_flags(&frame->options)}};
	status = lade__coder_init(&frame->coder, frame->options.verify, err);
out:
	return status;
}

/* A frame without its source yet. */
static lade_status frame_new(lade_engine *engine, const lade_frame_read_options *options,
                             lade_frame **out, lade_error *err)
{
	if (!out || !engine)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 out ? "engine" : "out");
	*out = NULL;
	lade_frame_read_options filled;
	lade_status status = lade__read_options_check(options, &filled, err);
	if (status != LADE_OK)
		return status;
	lade_frame *frame = calloc(1, sizeof *frame);
	if (!frame)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a frame");
	frame->engine = engine;
	frame->options = filled;
	pthread_mutex_init(&frame->mutex, NULL);
	*out = frame;
	return LADE_OK;
}

/* Opens the frame in a source, whose opening came to 'status'; 'owned': it is closed here. */
static lade_status frame_open(lade_frame *frame, lade_status status, lade_source source, bool owned,
                              lade_frame **out, lade_error *err)
{
	if (status == LADE_OK)
		status = lade__source_open(&frame->source, source, owned,
		                           lade__device_frame_tail(frame->on_device),
		                           frame->options.cancel, err);
	if (status == LADE_OK) {
		status = frame_init(frame, err);
		if (status != LADE_OK)
			status = lade__source_check_version(&frame->source, status, err);
		frame->source.cancel = NULL;
	}
	if (status != LADE_OK) {
		lade_frame_close(frame);
		*out = NULL;
	}
	return status;
}

lade_status lade_frame_open(lade_engine *engine, lade_source source,
                            const lade_frame_read_options *options, lade_frame **out,
                            lade_error *err)
{
	lade_status status = frame_new(engine, options, out, err);
	if (status != LADE_OK)
		return status;
	return frame_open(*out, status, source, false, out, err);
}

lade_status lade_frame_open_memory(lade_engine *engine, const void *data, size_t size,
                                   const lade_frame_read_options *options, lade_frame **out,
                                   lade_error *err)
{
	lade_status status = frame_new(engine, options, out, err);
	if (status != LADE_OK)
		return status;
	lade_source source = {0};
	status = lade_source_memory_open(lade_host_cspan(data, size), &source, err);
	return frame_open(*out, status, source, true, out, err);
}

lade_status lade_frame_open_path(lade_engine *engine, const char *path,
                                 const lade_frame_read_options *options, lade_frame **out,
                                 lade_error *err)
{
	lade_status status = frame_new(engine, options, out, err);
	if (status != LADE_OK)
		return status;
	lade_source source = {0};
	lade_file_options file = {.struct_size = sizeof file};
	file.flags = (*out)->options.flags & LADE_FRAME_MAP ? LADE_FILE_MAP : 0;
	status = lade_source_file_open(path, &file, &source, err);
	return frame_open(*out, status, source, true, out, err);
}

lade_status lade_frame_open_device(lade_engine *engine, lade_cspan src, lade_stream stream,
                                   const lade_frame_read_options *options, lade_frame **out,
                                   lade_error *err)
{
	lade_status status = frame_new(engine, options, out, err);
	if (status != LADE_OK)
		return status;
	if (src.place.kind != LADE_DEVICE || (!src.data && src.size))
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   src.data ? "the frame is not in device memory"
		                            : "src.data is NULL and has %zu bytes",
		                   src.size);
	if (status == LADE_OK)
		status = lade__device_frame_new(engine, src, stream, &(*out)->on_device, err);
	return frame_open(*out, status, lade__device_frame_source((*out)->on_device), false, out,
	                  err);
}

const lade_frame_info *lade_frame_get_info(const lade_frame *frame)
{
	return &frame->info;
}

/* ---- chunks ------------------------------------------------------------------------------ */

static lade_status page_load(lade_frame *frame, uint64_t number, lade__page *page, lade_error *err)
{
	lade__page_place at = {.number = number,
	                       .off = frame->page_off[number],
	                       .first_off = frame->header.size,
	                       .count = lade__page_entries(number, frame->footer.chunk_count)};
	size_t size = lade__page_size(at.count);
	if (number)
		at.first_off = frame->page_off[number - 1] + lade__page_size(LADE__PAGE_CHUNKS);
	bool there = lade__source_at(&frame->source, at.off, size) != NULL;
	uint8_t *buffer = there ? NULL : malloc(size);
	if (!buffer && !there)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a page of %zu bytes", size);
	const uint8_t *src;
	lade_status status = lade__source_get(&frame->source, at.off, size, buffer, &src, err);
	if (status == LADE_OK)
		status = lade__page_parse(src, &at, page, err);
	free(buffer);
	return status;
}

lade_status lade__frame_page(lade_frame *frame, uint64_t number, const lade__page **out,
                             lade_error *err)
{
	lade__page **place = &frame->pages[number % LADE__PAGES_KEPT];
	if (*place && (*place)->number == number) {
		*out = *place;
		return LADE_OK;
	}
	/* Pages that share a place are as long as the first one, or shorter. */
	if (!*place)
		*place = malloc(sizeof **place + lade__page_entries(0, frame->footer.chunk_count) *
		                                         sizeof (*place)->entry[0]);
	if (!*place)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an index page");
	(*place)->number = UINT64_MAX; /* until it has been parsed */
	lade_status status = page_load(frame, number, *place, err);
	if (status != LADE_OK)
		(*place)->number = UINT64_MAX;
	*out = *place;
	return status;
}

void lade__frame_locate(const lade_frame *frame, const lade__page *page, uint64_t index,
                        lade__located *out)
{
	size_t i = (size_t)(index % LADE__PAGE_CHUNKS), chunk_size = frame->info.chunk_size;
	uint64_t left = frame->info.size - index * chunk_size;
	*out = (lade__located){
		.index = index,
		.off = page->entry[i].off,
		.chunk = {.size = page->entry[i].size,
		          .decoded_size = (uint32_t)(left < chunk_size ? left : chunk_size),
		          .flags = page->entry[i].flags,
		          .spec_size = page->entry[i].spec_size},
	};
}

lade_status lade__frame_check(const lade_frame *frame, const lade__located *at, const uint8_t *src,
                              lade__chunk *out, lade_error *err)
{
	size_t spec_size;
	lade_status status;
	TRY(lade__chunk_peek(src, at->index, at->off, &spec_size, err));
	if (spec_size != at->chunk.spec_size)
		return lade_fail(err, LADE_E_CORRUPT, at->off + 14,
		                 "chunk %" PRIu64
		                 ": its header has a spec of %zu bytes, the index of %u",
		                 at->index, spec_size, at->chunk.spec_size);
	TRY(lade__chunk_parse(src, at, &frame->info, out, err));
	if (out->size != at->chunk.size || out->flags != at->chunk.flags)
		return lade_fail(err, LADE_E_CORRUPT, at->off + 4,
		                 "chunk %" PRIu64
		                 ": its header has %u bytes and flags %u, the index %u and %u",
		                 at->index, out->size, out->flags, at->chunk.size, at->chunk.flags);
out:
	return status;
}

lade_status lade_frame_get_chunk(lade_frame *frame, uint64_t index, lade_frame_chunk *out,
                                 lade_error *err)
{
	if (!frame || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 frame ? "out" : "frame");
	if (index >= frame->info.chunk_count)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "chunk %" PRIu64 ", the frame has %" PRIu64, index,
		                 frame->info.chunk_count);
	uint8_t buffer[LADE__PART_HEADER + LADE__SPEC_MAX];
	const lade__page *page;
	const uint8_t *src;
	lade__located at;
	lade__chunk chunk;
	pthread_mutex_lock(&frame->mutex);
	lade_status status = lade__frame_page(frame, index / LADE__PAGE_CHUNKS, &page, err);
	if (status == LADE_OK)
		lade__frame_locate(frame, page, index, &at);
	pthread_mutex_unlock(&frame->mutex);
	if (status != LADE_OK)
		return status;
	size_t head = lade__chunk_payload_off(&at.chunk);
	status = lade__source_get(&frame->source, at.off, head, buffer, &src, err);
	if (status == LADE_OK)
		status = lade__frame_check(frame, &at, src, &chunk, err);
	if (status != LADE_OK)
		return lade__source_check_version(&frame->source, status, err);
	*out = (lade_frame_chunk){.off = at.off + head,
	                          .size = chunk.size,
	                          .decoded_size = chunk.decoded_size,
	                          .flags = chunk.flags,
	                          .checksum = chunk.checksum};
	return LADE_OK;
}
