/*
 * read.c: the chunks of a window, many at once, with a device.
 *
 * A round takes chunks in their order until they fill a buffer:
 *
 *	workers  read and check each block: header, padding, its own spec.  What has nothing to
 *	         decode, stored and constant chunks, they finish, if it stays on the host
 *	device   decodes all payloads in one call, to where ranges want whole chunks, else to the
 *	         buffer; makes the checksums of the chunks that stay on it
 *	         copies to the buffer the chunks that other ranges want pieces of, too
 *	workers  compare or make checksums and copy the pieces on the host; they decode what the
 *	         device has no kernels for
 *	device   gets the pieces on devices that are not there yet
 *
 * Where the batch would decode on the host for a range on a device, the buffer is the destination:
 * no byte is copied to the caller's memory on a device before it has been verified.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/read.h"

#include "base/options.h"
#include "batch/gpu/gpu.h"

#include <stdlib.h>

/* Decoded bytes of a round, about: several waves of the device, and few enough that rounds of
 * several callers overlap. */
#define ROUND_BYTES ((size_t)64 << 20)

/* Buffers are a multiple of this size, so that the next read finds one large enough. */
#define BUFFER_GRAIN ((size_t)1 << 20)
#define BUFFER_ALIGN 64

/* Candidates that are tried to find out what a batch does: one of them a stage is chosen. */
#define CANDIDATES 64

/* Memory for encoded blocks and decoded chunks, kept with the frame between reads: pinned where
 * that can be had, so that the device reads and writes it. */
typedef struct lade__read_buffer {
	struct lade__read_buffer *next;
	uint8_t *data;
	size_t size;
	lade_place place;
} read_buffer;

/* A chunk of a round. */
typedef struct part {
	const lade__read_task *task;
	bool taken;          /* what follows applies; other chunks are read on the host */
	bool coded;          /* neither stored nor constant */
	bool ready;          /* the block has been checked */
	size_t block_at, at; /* offsets in the buffer: of the block, of the decoded chunk */
	size_t range;        /* the block's, where all blocks are requested at once */
	uint8_t *dst;        /* the decoded bytes on the host */
	lade_place place;
	uint8_t *device_dst; /* where a device decodes the whole chunk for a range; or NULL */
	lade_place device_place;
	bool bring;          /* the host needs a copy: other ranges want pieces */
	uint64_t sum;        /* of the bytes at 'device_dst', if the frame is verified */
	bool there;          /* it has been decoded to 'device_dst' */
	bool decoded;        /* it is at 'dst' */
	const uint8_t *body; /* what follows the chunk's header */
	lade__chunk chunk;
	lade_spec *own;
	size_t item;
} part;

typedef struct round {
	lade__read_batch *batch;
	size_t first, count; /* tasks */
	bool on_device; /* devices decode what ranges on them want whole */
	size_t buffer_size;
	read_buffer *buffer;
	part *parts;
	lade_segment *segments; /* these by item */
	lade_item *items;
	lade_result *results;
	lade_error *errors;
	lade_cspan *spans; /* of chunks that a device makes checksums of, and the checksums */
	uint64_t *sums;
	lade_range *ranges; /* the parts' blocks, where they are asked for at once */
	lade_gpu_copy *copies;
	size_t copy_count, copy_cap;
} round;

/* ---- buffers ----------------------------------------------------------------------------- */

static void buffer_free(const lade_engine *engine, read_buffer *r)
{
	const lade_allocator *a = &engine->allocators[r->place.kind];
	if (r->data)
		a->free(a->ctx, r->data, r->size, BUFFER_ALIGN, r->place, NULL);
	free(r);
}

void lade__read_buffers_free(lade_frame *frame)
{
	while (frame->buffers) {
		read_buffer *r = frame->buffers;
		frame->buffers = r->next;
		buffer_free(frame->engine, r);
	}
}

static void buffer_give(lade_frame *frame, read_buffer *r)
{
	pthread_mutex_lock(&frame->mutex);
	r->next = frame->buffers;
	frame->buffers = r;
	pthread_mutex_unlock(&frame->mutex);
}

/* A buffer of at least 'size' bytes.  One that is too small is replaced. */
static read_buffer *buffer_take(lade_frame *frame, size_t size)
{
	const lade_engine *engine = frame->engine;
	pthread_mutex_lock(&frame->mutex);
	read_buffer *r = frame->buffers;
	if (r)
		frame->buffers = r->next;
	pthread_mutex_unlock(&frame->mutex);
	if (r && r->size >= size)
		return r;
	if (r)
		buffer_free(engine, r);
	r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	/* Sizes are of a few chunks of at most 2 GiB each: the sum does not overflow. */
	r->size = (size + (BUFFER_GRAIN - 1)) / BUFFER_GRAIN * BUFFER_GRAIN;
	for (lade_kind kind = LADE_PINNED; !r->data; kind = LADE_HOST) {
		const lade_allocator *a = &engine->allocators[kind];
		r->place = (lade_place){kind, kind == LADE_PINNED ? frame->options.device : 0};
		if (a->alloc) /* an engine may have none for pinned memory */
			r->data = a->alloc(a->ctx, r->size, BUFFER_ALIGN, r->place, NULL);
		if (kind == LADE_HOST)
			break;
	}
	if (r->data)
		return r;
	free(r);
	return NULL;
}

/* ---- planning a round -------------------------------------------------------------------- */

static size_t align_up(uint64_t size)
{
	return (size_t)((size + (BUFFER_ALIGN - 1)) & ~(uint64_t)(BUFFER_ALIGN - 1));
}

/* Whether the blocks of a round are requested at once. */
static bool at_once(const lade_frame *frame)
{
	return !frame->source.base && !frame->source.local;
}

/* Plans a task's part of the buffer.  A task whose index entry is wrong is left to the host, which
 * reports it: no memory is allocated for what the entry claims. */
static void plan_part(round *r, part *p)
{
	const lade_frame *frame = r->batch->frame;
	const lade__read_task *task = p->task;
	const lade__chunk *want = &task->at.chunk;
	bool to_device = false;
	for (size_t i = 0; r->batch->devices && i < task->count; i++)
		to_device |=
			!lade_kind_is_host(lade__read_piece_at(r->batch, task, i).dst.place.kind);
	p->coded = (want->flags & (LADE_CHUNK_STORED | LADE_CHUNK_CONSTANT)) == 0;
	p->taken = (p->coded || to_device || at_once(frame)) &&
	           lade__read_check(frame, &task->at, NULL) == LADE_OK;
	if (!p->taken)
		return;
	p->block_at = r->buffer_size;
	if (!frame->source.base)
		r->buffer_size += align_up(lade__chunk_block_size(want));
	p->at = r->buffer_size;
	/* Pieces on devices are copied from the buffer, except one that is decoded in place. */
	p->dst = to_device ? NULL : lade__read_whole(r->batch, task, false, &p->place);
	/* The batch may give chunks with a spec of their own to the host. */
	bool own = want->flags == LADE_CHUNK_OWN_SPEC && frame->options.where == LADE_WHERE_AUTO;
	if (p->coded && r->on_device && !own)
		p->device_dst = lade__read_whole(r->batch, task, true, &p->device_place);
	p->bring = p->device_dst && task->count > 1;
	if (!p->dst)
		r->buffer_size += align_up(want->decoded_size);
}

/*
 * Whether a device decodes what ranges on devices want whole.  With LADE_WHERE_AUTO the batch is
 * asked, about the chunks that the first round would have.
 */
static bool choose(round *r, size_t left)
{
	const lade_frame *frame = r->batch->frame;
	lade_batch_options options = {LADE__OUR_SIZES,
	                              .threads = frame->options.threads,
	                              .flags = frame->coder.job.flags,
	                              .dict = frame->coder.job.dict,
	                              .device = frame->options.device};
	lade_candidate candidates[CANDIDATES];
	size_t n = 0, found = 0;
	uint64_t decoded = 0;
	if (frame->options.where != LADE_WHERE_AUTO || !r->batch->devices)
		return frame->options.where == LADE_WHERE_DEVICE;
	for (size_t i = 0; i < left && decoded < ROUND_BYTES; i++) {
		const lade__read_task *task = &r->batch->tasks[i];
		const lade__chunk *chunk = &task->at.chunk;
		lade_place place;
		uint8_t *dst = lade__read_whole(r->batch, task, true, &place);
		if (!dst || chunk->flags & (LADE_CHUNK_STORED | LADE_CHUNK_CONSTANT))
			continue;
		/* Nothing is read from the source now. */
		bool mapped = frame->source.base != NULL;
		r->segments[n] = (lade_segment){.data = mapped ? frame->source.base : dst,
		                                .size = chunk->size,
		                                .place.kind = mapped ? LADE_HOST : LADE_PINNED};
		r->items[n] = (lade_item){.src = &r->segments[n],
		                          .src_count = 1,
		                          .dst = {dst, chunk->decoded_size, place}};
		decoded += chunk->decoded_size;
		n++;
	}
	const lade_call call = {.struct_size = sizeof call, .direction = LADE_DECODE,
	                        .spec = frame->info.spec, .items = r->items, .count = n,
	                        .options = &options};
	if (n)
		lade_explain(frame->engine, &call, candidates, CANDIDATES, &found, NULL);
	for (size_t i = 0; i < found && i < CANDIDATES; i++)
		if (candidates[i].chosen && candidates[i].place == LADE_DEVICE)
			return true;
	return false;
}

/* Takes tasks from 'first' on, at least one, 'left' at most. */
static void plan_round(round *r, size_t left)
{
	uint64_t decoded = 0;
	r->buffer_size = r->count = 0;
	while (r->count < left) {
		const lade__read_task *task = &r->batch->tasks[r->first + r->count];
		decoded += task->at.chunk.decoded_size;
		if (r->count && decoded > ROUND_BYTES)
			break;
		part *p = &r->parts[r->count++];
		*p = (part){.task = task};
		plan_part(r, p);
	}
}

/* ---- before the device ------------------------------------------------------------------- */

/* Reads the blocks of all parts at once. */
static void read_blocks(round *r)
{
	const lade_frame *frame = r->batch->frame;
	lade_io_options options = {.struct_size = sizeof options,
	                           .threads = frame->options.threads,
	                           .errors = r->errors,
	                           .cancel = r->batch->stop.cancel};
	lade_reading reading;
	size_t n = 0;
	for (size_t i = 0; i < r->count; i++) {
		part *p = &r->parts[i];
		const lade__located *at = &p->task->at;
		if (!p->taken)
			continue;
		p->range = n;
		r->ranges[n++] = lade__source_range(&frame->source, at->off,
		                                    (size_t)lade__chunk_block_size(&at->chunk),
		                                    r->buffer->data + p->block_at);
	}
	lade__reading_begin(&reading, frame->source.from, r->ranges, n, &options);
	lade__reading_end(&reading, NULL);
}

static lade_status prepare(round *r, part *p, lade_error *err)
{
	const lade_frame *frame = r->batch->frame;
	const lade__located *at = &p->task->at;
	const uint8_t *src;
	lade__route route;
	size_t block = (size_t)lade__chunk_block_size(&at->chunk);
	uint8_t *block_dst = r->buffer ? r->buffer->data + p->block_at : NULL;
	if (!p->dst) {
		p->dst = r->buffer->data + p->at;
		p->place = r->buffer->place;
	}
	lade_status status = LADE_OK;
	if (at_once(frame)) {
		/* The errors are in the table that the items use later. */
		status = r->ranges[p->range].status;
		src = block_dst;
		if (status != LADE_OK)
			*err = r->errors[p->range];
	} else {
		status = lade__source_get(&frame->source, at->off, block, block_dst, &src, err);
		/* The device reads the buffer. */
		if (status == LADE_OK && !frame->source.base && src != block_dst)
			src = memcpy(block_dst, src, block);
	}
	if (status == LADE_OK)
		status = lade__frame_check(frame, at, src, &p->chunk, err);
	if (status != LADE_OK)
		return status;
	p->body = src + LADE__PART_HEADER;
	if (!p->coded)
		return LADE_OK;
	const lade__found found = {at->index, &p->chunk, p->body, at->off};
	status = lade__block_padding(&found, err);
	if (status != LADE_OK)
		return status;
	return lade__block_spec(&frame->coder, &found, &p->own, &route, err);
}

static void prepare_run(void *ctx, size_t index, lade_worker *worker)
{
	round *r = ctx;
	part *p = &r->parts[index];
	lade_error err = {.offset = LADE_NO_OFFSET};
	if (!p->taken) {
		lade__read_task_run(r->batch, r->first + index, worker);
		return;
	}
	lade_status status = lade__read_cancelled(r->batch, p->task, &err);
	if (status == LADE_OK)
		status = prepare(r, p, &err);
	p->ready = status == LADE_OK;
	if (!p->ready)
		lade__read_fail(r->batch, p->task, status, &err);
}

/* ---- the device -------------------------------------------------------------------------- */

static void make_item(round *r, part *p, size_t item)
{
	const lade_frame *frame = r->batch->frame;
	p->item = item;
	r->segments[item] = (lade_segment){.data = p->body + lade__pad(p->chunk.spec_size),
	                                   .size = p->chunk.size};
	if (!frame->source.base)
		r->segments[item].place = r->buffer->place;
	r->items[item] =
		(lade_item){.spec = p->own,
	                    .src = &r->segments[item],
	                    .src_count = 1,
	                    .dst = {p->device_dst ? p->device_dst : p->dst, p->chunk.decoded_size,
	                            p->device_dst ? p->device_place : p->place}};
	r->errors[item] = (lade_error){.offset = LADE_NO_OFFSET};
}

/* Decodes all chunks in one call.  Each has its own result and error, even if the call as a whole
 * fails. */
static void decode_all(round *r)
{
	const lade_frame *frame = r->batch->frame;
	lade_batch_options options = {LADE__OUR_SIZES,
	                              .threads = frame->options.threads,
	                              .flags = frame->coder.job.flags,
	                              .dict = frame->coder.job.dict,
	                              .item_errors = r->errors,
	                              .cancel = r->batch->stop.cancel,
	                              .where = frame->options.where,
	                              .device = frame->options.device};
	lade_error error = {.offset = LADE_NO_OFFSET};
	size_t n = 0;
	for (size_t i = 0; i < r->count; i++)
		if (r->parts[i].ready && r->parts[i].coded)
			make_item(r, &r->parts[i], n++);
	if (n == 0)
		return;
	lade_decode_into(frame->engine, frame->info.spec, r->items, n, r->results, &options,
	                 &error);
	for (size_t i = 0; i < n; i++)
		if (r->results[i].status != LADE_OK && r->errors[i].status == LADE_OK)
			r->errors[i] = error;
}

/* Whether a part's chunk has been decoded to memory of a device. */
static bool stays(const round *r, const part *p)
{
	return p->ready && p->device_dst && r->results[p->item].status == LADE_OK &&
	       r->results[p->item].size == p->chunk.decoded_size;
}

/* Computes on devices the checksums of the chunks that stay there. */
static void sum_there(round *r)
{
	const lade_frame *frame = r->batch->frame;
	lade_error err = {.offset = LADE_NO_OFFSET};
	size_t n = 0;
	for (size_t i = 0; i < r->count && frame->coder.verify; i++) {
		const part *p = &r->parts[i];
		if (stays(r, p))
			r->spans[n++] =
				(lade_cspan){p->device_dst, p->chunk.decoded_size, p->device_place};
	}
	if (n == 0)
		return;
	lade_status status = lade__gpu_checksums(frame->engine, frame->info.checksum, r->spans, n,
	                                         r->sums, &err);
	n = 0;
	for (size_t i = 0; i < r->count; i++) {
		part *p = &r->parts[i];
		if (!stays(r, p))
			continue;
		p->sum = r->sums[n++];
		p->ready = status == LADE_OK;
		if (!p->ready)
			lade__read_fail(r->batch, p->task, status, &err);
	}
}

/* ---- copies ------------------------------------------------------------------------------ */

/* Adds a copy to the list. */
static lade_status add_copy(round *r, const void *from, void *to, size_t size, lade_error *err)
{
	if (r->copy_count == r->copy_cap) {
		size_t cap = r->copy_cap ? 2 * r->copy_cap : 64;
		lade_gpu_copy *more = realloc(r->copies, cap * sizeof *more);
		if (!more)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu copies", cap);
		r->copies = more;
		r->copy_cap = cap;
	}
	r->copies[r->copy_count++] = (lade_gpu_copy){
		.src = lade__address_of(from), .dst = lade__address_of(to), .size = size};
	return LADE_OK;
}

/* Copies to the buffer the chunks on one device that other ranges need pieces of. */
static lade_status bring_from(round *r, int32_t device, lade_error *err)
{
	lade_status status = LADE_OK;
	r->copy_count = 0;
	for (size_t i = 0; i < r->count && status == LADE_OK; i++) {
		part *p = &r->parts[i];
		if (!p->ready || !p->bring || r->results[p->item].status != LADE_OK)
			continue;
		if (p->device_place.device == device)
			status = add_copy(r, p->device_dst, p->dst, p->chunk.decoded_size, err);
	}
	/* Without a copy there may be no buffer. */
	if (status == LADE_OK && r->copy_count)
		status = lade__gpu_copy_now(r->batch->frame->engine, device, r->copies,
		                            r->copy_count, r->buffer->place.kind == LADE_HOST, err);
	for (size_t i = 0; i < r->count && status != LADE_OK; i++) {
		part *p = &r->parts[i];
		if (p->ready && p->bring && p->device_place.device == device) {
			lade__read_fail(r->batch, p->task, status, err);
			p->ready = false;
		}
	}
	return status;
}

/* Copies from the buffer the pieces that go to one device. */
static lade_status send_to(round *r, int32_t device, lade_error *err)
{
	lade_status status = LADE_OK;
	r->copy_count = 0;
	for (size_t i = 0; i < r->count; i++) {
		const part *p = &r->parts[i];
		for (size_t k = 0; p->decoded && k < p->task->count && status == LADE_OK; k++) {
			lade__read_piece piece = lade__read_piece_at(r->batch, p->task, k);
			bool there = p->there && piece.dst.data == p->device_dst;
			if (!lade_kind_is_host(piece.dst.place.kind) && !there &&
			    piece.dst.place.device == device)
				status = add_copy(r, p->dst + piece.from, piece.dst.data,
				                  piece.dst.size, err);
		}
	}
	/* Without a copy there may be no buffer. */
	if (status == LADE_OK && r->copy_count)
		status = lade__gpu_copy_now(r->batch->frame->engine, device, r->copies,
		                            r->copy_count, r->buffer->place.kind == LADE_HOST, err);
	for (size_t i = 0; i < r->count && status != LADE_OK; i++)
		for (size_t k = 0; r->parts[i].decoded && k < r->parts[i].task->count; k++) {
			const lade__read_task *task = r->parts[i].task;
			lade_place to = lade__read_piece_at(r->batch, task, k).dst.place;
			if (!lade_kind_is_host(to.kind) && to.device == device)
				lade__read_fail(r->batch, task, status, err);
		}
	return status;
}

/* Calls 'one' for each device that ranges are on. */
static void copy_all(round *r, lade_status (*one)(round *, int32_t, lade_error *))
{
	for (int32_t device = 0; device < LADE_DEVICES_MAX; device++) {
		lade_error err = {.offset = LADE_NO_OFFSET};
		if (r->batch->devices >> device & 1)
			one(r, device, &err);
	}
}

/* ---- after the device -------------------------------------------------------------------- */

/*
 * The error of a chunk that the device has refused: the host's strict decoders refuse the same
 * chunks, and name the first fault and its place.
 */
static lade_status refuse(const round *r, part *p, lade_worker *worker, lade_error *err)
{
	const lade_frame *frame = r->batch->frame;
	const lade__located *at = &p->task->at;
	const lade_result *result = &r->results[p->item];
	lade__coder strict;
	const lade__found block = {at->index, &p->chunk, p->body, at->off};
	strict = frame->coder;
	strict.job.flags |= LADE_BATCH_STRICT;
	lade_status status = lade__coder_init(&strict, LADE_VERIFY_NEVER, err);
	if (status == LADE_OK)
		status = lade__block_decode(&strict, worker, &block, p->dst, err);
	if (status == LADE_OK)
		status = lade__block_decoded(&block, result->status, &r->errors[p->item],
		                             result->size, err);
	return status;
}

static lade_status finish(const round *r, part *p, lade_worker *worker, lade_error *err)
{
	const lade__coder *coder = &r->batch->frame->coder;
	const lade__located *at = &p->task->at;
	const lade_result *result = &r->results[p->item];
	const lade_error *inner = &r->errors[p->item];
	lade_status status = result->status;
	switch (status) {
	case LADE_OK:
		if (result->size != p->chunk.decoded_size)
			return refuse(r, p, worker, err);
		p->there = p->device_dst != NULL;
		if (!p->there)
			return lade__block_verify(coder, at->index, &p->chunk, at->off, p->dst,
			                          err);
		if (coder->verify)
			status = lade__block_compare(coder, at->index, &p->chunk, at->off, p->sum,
			                             err);
		break;
	case LADE_E_UNSUPPORTED: /* the host may */
	case LADE_E_LIMIT:
		status = lade__block_decode(
			coder, worker, &(lade__found){at->index, &p->chunk, p->body, at->off},
			p->dst, err);
		break;
	case LADE_E_NO_DEVICE:
	case LADE_E_DEVICE:
	case LADE_E_CANCELLED:
	case LADE_E_NOMEM: /* no chunk's fault */
		return lade_fail(err, status, inner->offset, "%s", inner->message);
	default:
		return refuse(r, p, worker, err);
	}
	return status;
}

/* Copies a chunk's decoded bytes to its pieces on the host, and keeps them at 'dst' if copies to
 * devices follow. */
static lade_status finish_part(const round *r, part *p, lade_worker *worker, lade_error *err)
{
	const lade__located *at = &p->task->at;
	lade_status status;
	if (p->coded)
		status = finish(r, p, worker, err);
	else
		status = lade__block_decode(
			&r->batch->frame->coder, worker,
			&(lade__found){at->index, &p->chunk, p->body, at->off}, p->dst, err);
	p->decoded = status == LADE_OK && (!p->there || p->bring);
	if (p->decoded)
		lade__read_copy(r->batch, p->task, p->dst);
	return status;
}

static void finish_run(void *ctx, size_t index, lade_worker *worker)
{
	round *r = ctx;
	part *p = &r->parts[index];
	lade_error err = {.offset = LADE_NO_OFFSET};
	if (!p->ready)
		return;
	lade_status status = finish_part(r, p, worker, &err);
	if (status != LADE_OK)
		lade__read_fail(r->batch, p->task, status, &err);
}

/* ---- rounds ------------------------------------------------------------------------------ */

static lade_status run_round(round *r, lade_error *err)
{
	lade_frame *frame = r->batch->frame;
	lade__calls calls = {prepare_run, r, .count = r->count, .threads = frame->options.threads};
	r->buffer = r->buffer_size ? buffer_take(frame, r->buffer_size) : NULL;
	if (r->buffer_size && !r->buffer)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of chunks", r->buffer_size);
	if (at_once(frame) && r->buffer)
		read_blocks(r);
	lade_status status = lade__engine_parallel(frame->engine, &calls, err);
	if (status == LADE_OK) {
		decode_all(r);
		sum_there(r);
		copy_all(r, bring_from);
		calls.fn = finish_run;
		status = lade__engine_parallel(frame->engine, &calls, err);
	}
	if (status == LADE_OK)
		copy_all(r, send_to);
	for (size_t i = 0; i < r->count; i++)
		lade_spec_unref(r->parts[i].own);
	if (r->buffer)
		buffer_give(frame, r->buffer);
	return status;
}

lade_status lade__read_on_device(lade__read_batch *batch, size_t task_count, lade_error *err)
{
	round r = {.batch = batch};
	const size_t each = sizeof *r.parts + sizeof *r.segments + sizeof *r.items +
	                    sizeof *r.results + sizeof *r.errors + sizeof *r.spans +
	                    sizeof *r.sums + sizeof *r.ranges;
	/* A window has at most 4096 tasks.  All of these structs are aligned to 8 bytes. */
	uint8_t *tables = malloc(task_count * each), *at = tables;
	lade_status status = LADE_OK;
	if (!tables)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu chunks",
		                 task_count);
#define TAKE(table)                              \
	do {                                     \
		r.table = (void *)at;            \
		at += task_count * sizeof *r.table; \
	} while (0)
	TAKE(parts);
	TAKE(segments);
	TAKE(items);
	TAKE(results);
	TAKE(errors);
	TAKE(spans);
	TAKE(sums);
	TAKE(ranges);
#undef TAKE
	r.on_device = choose(&r, task_count);
	while (status == LADE_OK && r.first < task_count) {
		plan_round(&r, task_count - r.first);
		status = run_round(&r, err);
		r.first += r.count;
	}
	free(tables);
	free(r.copies);
	return status;
}
