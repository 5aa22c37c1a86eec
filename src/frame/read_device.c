/*
 * read_device.c: the chunks of a window, many at once, with a device.
 *
 * A round takes chunks in their order until they fill a room of memory:
 *
 *	workers  read and check each block: header, padding, its own spec.  What has nothing to
 *	         decode, stored and constant chunks, they finish, if it stays on the host
 *	device   decodes all payloads in one call, to where ranges want whole chunks, else to the
 *	         room
 *	         copies to the room what lies on it and the host has to look at
 *	workers  verify checksums and copy the pieces on the host; what the device has no kernels
 *	         for they decode
 *	device   gets the pieces on devices that are not there yet
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/read.h"

#include "batch/gpu.h"

#include <stdlib.h>

/* Decoded bytes of a round, about: several waves of the device, and few enough that rounds of
 * several callers overlap. */
#define ROUND_BYTES ((size_t)64 << 20)

/* A room is a multiple of this, so that the next read finds it large enough. */
#define ROOM_GRAIN ((size_t)1 << 20)
#define ROOM_ALIGN 64

/* Memory for encoded blocks and decoded chunks, kept with the frame between reads: pinned where
 * that can be had, so that the device reads and writes it. */
typedef struct lade__read_room {
	struct lade__read_room *next;
	uint8_t *data;
	size_t size;
	lade_place place;
} room;

/* A task in a round. */
typedef struct part {
	const lade__read_task *task;
	bool taken;         /* what follows is for such; the others the host's way does */
	bool coded;         /* it has something to decode */
	bool ready;         /* the block is as it should be */
	size_t block_at, at; /* its places in the room: of the block, of what it decodes to */
	uint8_t *dst;        /* the decoded bytes on the host */
	lade_place place;
	uint8_t *far; /* where a device wants all of them; NULL: nowhere */
	lade_place far_place;
	bool bring;          /* what is decoded there the host has to look at */
	bool there;          /* it has been decoded there */
	bool decoded;        /* it stands at 'dst' */
	const uint8_t *body; /* what follows the chunk's header */
	lade__chunk chunk;
	lade_spec *own;
	size_t item;
} part;

typedef struct round {
	lade__read_batch *batch;
	size_t first, count; /* tasks */
	size_t room_size;
	room *room;
	part *parts;
	lade_segment *segments; /* these by item */
	lade_item *items;
	lade_result *results;
	lade_error *errors;
	lade__gpu_copy *copies;
	size_t copy_count, copy_cap;
} round;

/* ---- rooms ------------------------------------------------------------------------------- */

static void room_free(const lade_engine *engine, room *r)
{
	const lade_allocator *a = &engine->allocators[r->place.kind];
	if (r->data)
		a->free(a->ctx, r->data, r->size, ROOM_ALIGN, r->place, NULL);
	free(r);
}

void lade__read_rooms_free(lade_frame *frame)
{
	while (frame->rooms) {
		room *r = frame->rooms;
		frame->rooms = r->next;
		room_free(frame->engine, r);
	}
}

static void room_give(lade_frame *frame, room *r)
{
	pthread_mutex_lock(&frame->mutex);
	r->next = frame->rooms;
	frame->rooms = r;
	pthread_mutex_unlock(&frame->mutex);
}

/* A room of at least 'size' bytes.  One that is too small goes for one that is not. */
static room *room_take(lade_frame *frame, size_t size)
{
	const lade_engine *engine = frame->engine;
	pthread_mutex_lock(&frame->mutex);
	room *r = frame->rooms;
	if (r)
		frame->rooms = r->next;
	pthread_mutex_unlock(&frame->mutex);
	if (r && r->size >= size)
		return r;
	if (r)
		room_free(engine, r);
	r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	/* Sizes are of a few chunks of at most 2 GiB each: the sum does not overflow. */
	r->size = (size + (ROOM_GRAIN - 1)) / ROOM_GRAIN * ROOM_GRAIN;
	for (lade_kind kind = LADE_PINNED; !r->data; kind = LADE_HOST) {
		const lade_allocator *a = &engine->allocators[kind];
		r->place = (lade_place){kind, kind == LADE_PINNED ? frame->options.device : 0};
		if (a->alloc) /* an engine may have none for pinned memory */
			r->data = a->alloc(a->ctx, r->size, ROOM_ALIGN, r->place, NULL);
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
	return (size_t)((size + (ROOM_ALIGN - 1)) & ~(uint64_t)(ROOM_ALIGN - 1));
}

/* What a task wants of the room.  An entry that is not as it should be is left to the host's way,
 * which says so: no memory is asked for what it claims. */
static void plan_part(round *r, part *p)
{
	const lade_frame *frame = r->batch->frame;
	const lade__read_task *task = p->task;
	const lade__chunk *want = &task->at.chunk;
	bool far = false;
	for (size_t i = 0; r->batch->far && i < task->count; i++)
		far |= !lade_kind_is_host(lade__read_piece_at(r->batch, task, i).dst.place.kind);
	p->coded = (want->flags & (LADE_CHUNK_STORED | LADE_CHUNK_CONSTANT)) == 0;
	p->taken = (p->coded || far) && lade__read_check(frame, &task->at, NULL) == LADE_OK;
	if (!p->taken)
		return;
	p->block_at = r->room_size;
	if (!frame->source.base)
		r->room_size += align_up(lade__chunk_block_size(want));
	p->at = r->room_size;
	/* Pieces on devices come from the room, but for one that is decoded where it goes. */
	p->dst = far ? NULL : lade__read_whole(r->batch, task, false, &p->place);
	p->far = p->coded ? lade__read_whole(r->batch, task, true, &p->far_place) : NULL;
	p->bring = p->far && (frame->coder.verify || task->count > 1);
	if (!p->dst)
		r->room_size += align_up(want->decoded_size);
}

/* Takes tasks from 'first' on, at least one, 'left' at most. */
static void plan_round(round *r, size_t left)
{
	uint64_t decoded = 0;
	r->room_size = r->count = 0;
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

static lade_status prepare(round *r, part *p, lade_error *err)
{
	const lade_frame *frame = r->batch->frame;
	const lade__located *at = &p->task->at;
	const uint8_t *src;
	lade__route route;
	size_t block = (size_t)lade__chunk_block_size(&at->chunk);
	uint8_t *buffer = r->room ? r->room->data + p->block_at : NULL;
	if (!p->dst) {
		p->dst = r->room->data + p->at;
		p->place = r->room->place;
	}
	lade_status status = lade__source_get(&frame->source, at->off, block, buffer, &src, err);
	if (status == LADE_OK)
		status = lade__frame_check(frame, at, src, &p->chunk, err);
	if (status != LADE_OK)
		return status;
	p->body = src + LADE__PART_HEADER;
	if (!p->coded)
		return LADE_OK;
	status = lade__block_padding(at->index, &p->chunk, p->body, at->off, err);
	if (status != LADE_OK)
		return status;
	return lade__block_spec(&frame->coder, at->index, &p->chunk, p->body, at->off, &p->own,
	                        &route, err);
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
	lade_status status = prepare(r, p, &err);
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
		r->segments[item].place = r->room->place;
	r->items[item] = (lade_item){.spec = p->own,
	                             .src = &r->segments[item],
	                             .src_count = 1,
	                             .dst = {p->far ? p->far : p->dst, p->chunk.decoded_size,
	                                     p->far ? p->far_place : p->place}};
	r->errors[item] = (lade_error){.offset = LADE_NO_OFFSET};
}

/* One call for all.  What became of each stands in its result and error, also when the call as a
 * whole has failed. */
static void decode_all(round *r)
{
	const lade_frame *frame = r->batch->frame;
	lade_batch_options options = {.struct_size = sizeof options,
	                              .threads = frame->options.threads,
	                              .flags = frame->coder.job.flags,
	                              .dict = frame->coder.job.dict,
	                              .item_errors = r->errors,
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

/* ---- copies ------------------------------------------------------------------------------ */

/* Notes a copy; some part or other needs it. */
static lade_status add_copy(round *r, const void *from, void *to, size_t size, lade_error *err)
{
	if (r->copy_count == r->copy_cap) {
		size_t cap = r->copy_cap ? 2 * r->copy_cap : 64;
		lade__gpu_copy *more = realloc(r->copies, cap * sizeof *more);
		if (!more)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu copies", cap);
		r->copies = more;
		r->copy_cap = cap;
	}
	r->copies[r->copy_count++] = (lade__gpu_copy){
		.src = lade__address_of(from), .dst = lade__address_of(to), .size = size};
	return LADE_OK;
}

/* Brings what one device has decoded and the host has to look at. */
static lade_status bring_from(round *r, int32_t device, lade_error *err)
{
	lade_status status = LADE_OK;
	r->copy_count = 0;
	for (size_t i = 0; i < r->count && status == LADE_OK; i++) {
		part *p = &r->parts[i];
		if (!p->ready || !p->bring || r->results[p->item].status != LADE_OK)
			continue;
		if (p->far_place.device == device)
			status = add_copy(r, p->far, p->dst, p->chunk.decoded_size, err);
	}
	/* Without a copy there may be no room. */
	if (status == LADE_OK && r->copy_count)
		status = lade__gpu_copy_now(r->batch->frame->engine, device, r->copies,
		                            r->copy_count, r->room->place.kind == LADE_HOST, err);
	for (size_t i = 0; i < r->count && status != LADE_OK; i++) {
		part *p = &r->parts[i];
		if (p->ready && p->bring && p->far_place.device == device) {
			lade__read_fail(r->batch, p->task, status, err);
			p->ready = false;
		}
	}
	return status;
}

/* Sends the pieces that one device wants of what stands in the room. */
static lade_status send_to(round *r, int32_t device, lade_error *err)
{
	lade_status status = LADE_OK;
	r->copy_count = 0;
	for (size_t i = 0; i < r->count; i++) {
		const part *p = &r->parts[i];
		for (size_t k = 0; p->decoded && k < p->task->count && status == LADE_OK; k++) {
			lade__read_piece piece = lade__read_piece_at(r->batch, p->task, k);
			bool there = p->there && piece.dst.data == p->far;
			if (!lade_kind_is_host(piece.dst.place.kind) && !there &&
			    piece.dst.place.device == device)
				status = add_copy(r, p->dst + piece.from, piece.dst.data,
				                  piece.dst.size, err);
		}
	}
	/* Without a copy there may be no room. */
	if (status == LADE_OK && r->copy_count)
		status = lade__gpu_copy_now(r->batch->frame->engine, device, r->copies,
		                            r->copy_count, r->room->place.kind == LADE_HOST, err);
	for (size_t i = 0; i < r->count && status != LADE_OK; i++)
		for (size_t k = 0; r->parts[i].decoded && k < r->parts[i].task->count; k++) {
			const lade__read_task *task = r->parts[i].task;
			lade_place to = lade__read_piece_at(r->batch, task, k).dst.place;
			if (!lade_kind_is_host(to.kind) && to.device == device)
				lade__read_fail(r->batch, task, status, err);
		}
	return status;
}

/* Does one of the two for each device that ranges lie on. */
static void copy_all(round *r, lade_status (*one)(round *, int32_t, lade_error *))
{
	for (int32_t device = 0; device < LADE_DEVICES_MAX; device++) {
		lade_error err = {.offset = LADE_NO_OFFSET};
		if (r->batch->far >> device & 1)
			one(r, device, &err);
	}
}

/* ---- after the device -------------------------------------------------------------------- */

/*
 * What is wrong with a chunk that the device has refused: the host's strict decoders refuse the
 * same, and name the first fault and its place.
 */
static lade_status refuse(const round *r, part *p, lade_worker *worker, lade_error *err)
{
	const lade_frame *frame = r->batch->frame;
	const lade__located *at = &p->task->at;
	const lade_result *result = &r->results[p->item];
	lade__coder strict;
	lade_status status = lade__coder_init(&strict, frame->engine, &frame->info, LADE_DECODE,
	                                      frame->options.dict, LADE_NO_COMPUTE_NO_VERIFY,
	                                      frame->coder.job.flags | LADE_BATCH_STRICT, err);
	if (status == LADE_OK)
		status = lade__block_decode(&strict, worker, at->index, &p->chunk, p->body,
		                            at->off, p->dst, err);
	if (status == LADE_OK)
		status = lade__block_decoded(at->index, &p->chunk, at->off, result->status,
		                             &r->errors[p->item], result->size, err);
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
		p->there = p->far != NULL;
		if (p->there && !p->bring)
			return LADE_OK;
		status = lade__block_verify(coder, at->index, &p->chunk, at->off, p->dst, err);
		break;
	case LADE_E_UNSUPPORTED: /* what kernels do not take, as chunks above 1 GiB, the host may */
	case LADE_E_LIMIT:
		status = lade__block_decode(coder, worker, at->index, &p->chunk, p->body, at->off,
		                            p->dst, err);
		break;
	case LADE_E_NO_DEVICE:
	case LADE_E_DEVICE:
	case LADE_E_NOMEM: /* no chunk's fault */
		return lade_fail(err, status, inner->offset, "%s", inner->message);
	default:
		return refuse(r, p, worker, err);
	}
	return status;
}

/* Sees to it that a chunk's decoded bytes stand where its pieces on the host want them, and at
 * 'dst' where copies to devices are to come. */
static lade_status finish_part(const round *r, part *p, lade_worker *worker, lade_error *err)
{
	const lade__located *at = &p->task->at;
	lade_status status;
	if (p->coded)
		status = finish(r, p, worker, err);
	else
		status = lade__block_decode(&r->batch->frame->coder, worker, at->index, &p->chunk,
		                            p->body, at->off, p->dst, err);
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
	unsigned threads = frame->options.threads;
	r->room = r->room_size ? room_take(frame, r->room_size) : NULL;
	if (r->room_size && !r->room)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of chunks", r->room_size);
	lade_status status = lade__engine_parallel(frame->engine, threads, r->count, 0, NULL,
	                                           prepare_run, r, err);
	if (status == LADE_OK) {
		decode_all(r);
		copy_all(r, bring_from);
		status = lade__engine_parallel(frame->engine, threads, r->count, 0, NULL,
		                               finish_run, r, err);
	}
	if (status == LADE_OK)
		copy_all(r, send_to);
	for (size_t i = 0; i < r->count; i++)
		lade_spec_unref(r->parts[i].own);
	if (r->room)
		room_give(frame, r->room);
	return status;
}

lade_status lade__read_on_device(lade__read_batch *batch, size_t task_count, lade_error *err)
{
	round r = {.batch = batch,
	           .parts = malloc(task_count * sizeof *r.parts),
	           .segments = malloc(task_count * sizeof *r.segments),
	           .items = malloc(task_count * sizeof *r.items),
	           .results = malloc(task_count * sizeof *r.results),
	           .errors = malloc(task_count * sizeof *r.errors)};
	lade_status status = LADE_OK;
	if (!r.parts || !r.segments || !r.items || !r.results || !r.errors)
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu chunks",
		                   task_count);
	while (status == LADE_OK && r.first < task_count) {
		plan_round(&r, task_count - r.first);
		status = run_round(&r, err);
		r.first += r.count;
	}
	free(r.parts);
	free(r.segments);
	free(r.items);
	free(r.results);
	free(r.errors);
	free(r.copies);
	return status;
}
