/*
 * copy.c: decodes a whole frame to an output that takes the bytes in order, or at their places.
 *
 *	narrow a slot of the ring is a group of chunks that do not cross an index page, as in
 *	       writer.c: a worker reads and decodes them to a buffer that stays in its cache
 *	wide   a device decodes, or the source is remote: a slot is a piece of many chunks, which
 *	       is read as one batch (read.c)
 *
 * Bytes that go to their places are written by the thread that decoded them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/read.h"
#include "frame/ring.h"

#include "base/options.h"
#include "base/try.h"

#include <stdlib.h>

/* Decoded bytes of a wide piece: several waves of a device; and the least, of small frames. */
#define WIDE_BYTES ((size_t)32 << 20)
#define WIDE_LEAST ((size_t)2 << 20)
/* Wide pieces at once: one is read, one is decoded, one is written. */
#define WIDE_PIECES 3u

#define BUFFER_ALIGN 64

typedef struct copy_slot {
	uint64_t off; /* of the 'size' decoded bytes */
	size_t size;
	lade_span buffer; /* for them; NULL: none now */
	size_t decoded;   /* of them are good */
	lade_status status; /* of what follows these */
	lade_error error;
	lade__read_task *tasks; /* of narrow pieces, and the groups' first tasks */
	size_t *groups;
} copy_slot;

typedef struct copy {
	lade_frame *frame;
	lade_output output;
	lade_frame_copy_options options;
	lade__stop stop;
	bool wide;
	bool at_once; /* written by who has decoded it */
	size_t piece; /* decoded bytes of a slot: whole chunks */
	uint64_t next; /* where the next piece begins */
	lade__ring ring;
	copy_slot *slots;
	void *tables; /* of the slots */
	pthread_mutex_t mutex; /* guards the free buffers */
	lade_span *free;
	size_t free_count;
} copy;

/* ---- buffers ------------------------------------------------------------------------------ */

/* A free buffer, or a new one; pinned for a device, where such memory can be had. */
static lade_status buffer_take(copy *c, lade_span *out, lade_error *err)
{
	const lade_engine *engine = c->frame->engine;
	bool device = c->frame->options.where == LADE_WHERE_DEVICE;
	*out = (lade_span){.data = NULL};
	pthread_mutex_lock(&c->mutex);
	if (c->free_count)
		*out = c->free[--c->free_count];
	pthread_mutex_unlock(&c->mutex);
	for (lade_kind kind = device ? LADE_PINNED : LADE_HOST; !out->data; kind = LADE_HOST) {
		const lade_allocator *a = &engine->allocators[kind];
		lade_place place = {kind, kind == LADE_PINNED ? c->frame->options.device : 0};
		if (a->alloc) /* an engine may have none for pinned memory */
			*out = (lade_span){a->alloc(a->ctx, c->piece, BUFFER_ALIGN, place, NULL),
			                   c->piece, place};
		if (kind == LADE_HOST)
			break;
	}
	return out->data ? LADE_OK
	                 : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                             "no memory for %zu bytes of chunks", c->piece);
}

static void buffer_give(copy *c, lade_span *buffer)
{
	pthread_mutex_lock(&c->mutex);
	c->free[c->free_count++] = *buffer;
	pthread_mutex_unlock(&c->mutex);
	buffer->data = NULL;
}

static void buffer_free(const copy *c, lade_span *buffer)
{
	const lade_allocator *a = &c->frame->engine->allocators[buffer->place.kind];
	if (buffer->data)
		a->free(a->ctx, buffer->data, buffer->size, BUFFER_ALIGN, buffer->place, NULL);
}

/* ---- a piece ------------------------------------------------------------------------------ */

/* Finds the chunks of a narrow piece. */
static lade_status locate(const copy *c, copy_slot *slot, size_t *count, lade_error *err)
{
	lade_frame *frame = c->frame;
	const lade__page *page;
	uint64_t first = slot->off / frame->info.chunk_size;
	*count = (size_t)lade__div_up(slot->size, frame->info.chunk_size);
	pthread_mutex_lock(&frame->mutex);
	lade_status status = lade__frame_page(frame, first / LADE__PAGE_CHUNKS, &page, err);
	for (size_t i = 0; status == LADE_OK && i < *count; i++) {
		slot->tasks[i] = (lade__read_task){.count = 1};
		lade__frame_locate(frame, page, first + i, &slot->tasks[i].at);
	}
	pthread_mutex_unlock(&frame->mutex);
	return status;
}

static lade_status read_narrow(const copy *c, copy_slot *slot, lade_worker *worker)
{
	lade_frame_range range = {slot->off, lade_host_span(slot->buffer.data, slot->size)};
	lade_status of_range = LADE_OK;
	size_t only = 0, count;
	lade__read_batch b = {.frame = c->frame,
	                      .ranges = &range,
	                      .statuses = &of_range,
	                      .tasks = slot->tasks,
	                      .pieces = &only,
	                      .groups = slot->groups,
	                      .failed = SIZE_MAX};
	lade_status status = locate(c, slot, &count, &slot->error);
	if (status != LADE_OK)
		return status;
	pthread_mutex_init(&b.mutex, NULL);
	lade__read_here(&b, count, worker);
	pthread_mutex_destroy(&b.mutex);
	slot->decoded = slot->size;
	if (b.failed == SIZE_MAX)
		return LADE_OK;
	slot->decoded = (size_t)(b.failed_chunk * c->frame->info.chunk_size - slot->off);
	slot->error = b.error;
	return b.status;
}

/* In one call; if that fails, chunk by chunk up to the bad one. */
static lade_status read_wide(const copy *c, copy_slot *slot)
{
	size_t step = slot->size, chunk_size = c->frame->info.chunk_size;
	while (slot->decoded < slot->size) {
		size_t left = slot->size - slot->decoded, size = left < step ? left : step;
		lade_frame_range range = {
			slot->off + slot->decoded,
			{(uint8_t *)slot->buffer.data + slot->decoded, size, slot->buffer.place}};
		lade_status status = lade__read_ranges(c->frame, &range, 1, NULL, &c->stop,
		                                       &slot->error);
		if (status == LADE_OK)
			slot->decoded += size;
		else if (size <= chunk_size || status == LADE_E_CANCELLED)
			return status;
		else
			step = chunk_size;
	}
	return LADE_OK;
}

/* Writes the good bytes of a slot; then says what is wrong behind them. */
static lade_status put(copy *c, copy_slot *slot, lade_error *err)
{
	const void *data = slot->buffer.data;
	size_t size = slot->decoded;
	void *ctx = c->output.ctx;
	lade_status status = LADE_OK;
	if (size && c->options.write_at)
		status = c->options.write_at(ctx, slot->off, data, size, err);
	else if (size)
		status = c->output.write(ctx, data, size, err);
	buffer_give(c, &slot->buffer);
	if (status == LADE_OK && slot->status != LADE_OK) {
		*err = slot->error;
		status = slot->status;
	}
	return status;
}

/* ---- the ring's calls --------------------------------------------------------------------- */

static lade_status take(void *ctx, size_t at, bool *took, lade_error *err)
{
	copy *c = ctx;
	copy_slot *slot = &c->slots[at];
	uint64_t left = c->frame->info.size - c->next;
	(void)err;
	slot->off = c->next;
	slot->size = left < c->piece ? (size_t)left : c->piece;
	c->next += slot->size;
	*took = slot->size != 0;
	return LADE_OK;
}

static lade_status work(void *ctx, size_t at, lade_worker *worker, lade_error *err)
{
	copy *c = ctx;
	copy_slot *slot = &c->slots[at];
	lade_status status = buffer_take(c, &slot->buffer, err);
	if (status != LADE_OK)
		return status;
	slot->decoded = 0;
	slot->error = (lade_error){.offset = LADE_NO_OFFSET};
	slot->status = c->wide ? read_wide(c, slot) : read_narrow(c, slot, worker);
	return c->at_once ? put(c, slot, err) : LADE_OK;
}

static lade_status give(void *ctx, size_t at, bool *gave, lade_error *err)
{
	copy *c = ctx;
	(void)gave;
	return c->at_once ? LADE_OK : put(c, &c->slots[at], err);
}

/* ---- the call ------------------------------------------------------------------------------ */

/* 'size' bytes in whole chunks, but at least one. */
static size_t whole_chunks(const lade_frame_info *info, size_t size)
{
	return info->chunk_size < size ? size / info->chunk_size * info->chunk_size
	                               : info->chunk_size;
}

static size_t piece_size(const copy *c)
{
	const lade_frame_info *info = &c->frame->info;
	uint64_t share = info->size / (2 * WIDE_PIECES);
	if (c->wide)
		return whole_chunks(info, share > WIDE_BYTES   ? WIDE_BYTES
		                          : share < WIDE_LEAST ? WIDE_LEAST
		                                               : (size_t)share);
	size_t chunks = 1;
	while (chunks < LADE__GROUP_CHUNKS && info->chunk_size * chunks * 2 <= LADE__GROUP_BYTES)
		chunks *= 2;
	return chunks * info->chunk_size;
}

/* The slots, and the tables of narrow ones. */
static lade_status make_slots(copy *c, lade_error *err)
{
	size_t count = c->ring.count, chunks = c->piece / c->frame->info.chunk_size;
	/* At most 1024 chunks a slot, and three slots for two of the engine's threads. */
	size_t tasks = c->wide ? 0 : chunks, groups = c->wide ? 0 : chunks + 1;
	c->slots = calloc(count, sizeof *c->slots);
	c->free = malloc(count * sizeof *c->free);
	c->tables = malloc(count * (tasks * sizeof *c->slots->tasks +
	                            groups * sizeof *c->slots->groups) + 1);
	if (!c->slots || !c->free || !c->tables)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu slots",
		                 count);
	lade__read_task *task = c->tables;
	size_t *group = (size_t *)(task + count * tasks);
	for (size_t i = 0; i < count; i++) {
		c->slots[i].tasks = task + i * tasks;
		c->slots[i].groups = group + i * groups;
	}
	return LADE_OK;
}

static lade_status copy_init(copy *c, lade_error *err)
{
	const lade_frame_read_options *options = &c->frame->options;
	const lade__source *source = &c->frame->source;
	c->wide = options->where == LADE_WHERE_DEVICE || (!source->base && !source->local);
	c->piece = piece_size(c);
	unsigned threads = options->threads ? options->threads : c->frame->engine->threads;
	if (c->wide)
		threads = c->options.write_at ? WIDE_PIECES : WIDE_PIECES - 1;
	uint64_t pieces = lade__div_up(c->frame->info.size, c->piece);
	if (pieces < threads)
		threads = pieces ? (unsigned)pieces : 1;
	bool apart = !c->wide && (options->flags & LADE_FRAME_APART);
	lade_status status = lade__ring_init(&c->ring, c->frame->engine, threads, apart,
	                                     c->options.cancel, err);
	c->at_once = c->options.write_at && !c->ring.apart;
	return status == LADE_OK ? make_slots(c, err) : status;
}

static void copy_reset(copy *c)
{
	for (size_t i = 0; c->slots && i < c->ring.count; i++)
		buffer_free(c, &c->slots[i].buffer);
	while (c->free_count)
		buffer_free(c, &c->free[--c->free_count]);
	free(c->slots);
	free(c->free);
	free(c->tables);
	lade__ring_reset(&c->ring);
	pthread_mutex_destroy(&c->mutex);
}

lade_status lade_frame_copy(lade_frame *frame, lade_output output,
                            const lade_frame_copy_options *options, lade_error *err)
{
	copy c = {.frame = frame, .output = output};
	const lade__ring_calls calls = {
		.take = take, .work = work, .give = give, .ctx = &c, .take_first = true};
	lade_error now;
	lade_status status = lade__options_read(&c.options, sizeof c.options, options,
	                                        "frame copy options", err);
	if (status != LADE_OK)
		return status;
	if (!frame || (!output.write && !c.options.write_at))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 frame ? "output.write" : "frame");
	c.stop = lade__stop_of(c.options.cancel);
	pthread_mutex_init(&c.mutex, NULL);
	TRY(copy_init(&c, err));
	status = lade__ring_run(&c.ring, &calls, err);
	/* All bytes are of the version that was opened. */
	if (status != LADE_E_CHANGED &&
	    lade__source_check_version(&frame->source, status, &now) == LADE_E_CHANGED)
		status = lade_fail(err, LADE_E_CHANGED, now.offset, "%s", now.message);
out:
	copy_reset(&c);
	return status;
}
