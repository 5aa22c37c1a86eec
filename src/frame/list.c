/*
 * list.c: lists of frames in memory of any kind.
 *
 * The engine shares out the chunks of one frame, but a list may have many frames of few chunks:
 * these go beside each other, a thread each.  Then come the others, one after the other: long ones,
 * and those on devices, in the stream's order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/given.h"
#include "base/try.h"
#include "engine/engine.h"
#include "engine/outcome.h"
#include "frame/reader.h"

#include <lade/array.h>
#include <lade/frames.h>

#include <inttypes.h>
#include <string.h>

/* Frames of more chunks are worth several threads. */
#define SHORT_CHUNKS 4
#define CHUNK_DEFAULT ((size_t)1 << 20)
/* What is worth a thread: frames to be opened, decoded bytes. */
#define THREAD_FRAMES 64
#define THREAD_BYTES  ((size_t)512 << 10)

typedef struct list {
	lade_engine *engine;
	lade_frame_read_options read;
	lade_frame_options write;
	lade_batch_options batch;
	lade__given given;
	lade_frame **frames;
	lade__outcome outcome;
	lade_cancel quiet; /* batch.cancel for other threads than the caller's */
	/* What is done with an item: '*size' bytes come of it; whether beside others; whether at
	 * all, NULL: always. */
	lade_status (*run)(struct list *l, size_t i, size_t *size, lade_error *err);
	bool (*beside)(const struct list *l, size_t i);
	bool (*wanted)(const struct list *l, size_t i);
} list;

/* ---- the call --------------------------------------------------------------------------- */

static lade_status list_open(list *l, const lade_frames_options *given, lade_error *err)
{
	lade_frames_options options;
	lade_status status;
	TRY(lade__options_read(&options, sizeof options, given, "frames options", err));
	TRY(lade__options_read(&l->read, sizeof l->read, options.read, "frame read options", err));
	TRY(lade__options_read(&l->write, sizeof l->write, options.write, "frame options", err));
	TRY(lade__options_read(&l->batch, sizeof l->batch, options.batch, "batch options", err));
	l->read.threads = l->batch.threads;
	l->read.where = l->batch.where;
	l->read.device = l->batch.device;
	if (l->batch.flags & LADE_BATCH_STRICT)
		l->read.flags |= LADE_FRAME_STRICT;
	l->write.stream = l->batch.stream;
	if (!l->write.chunk_size)
		l->write.chunk_size = CHUNK_DEFAULT;
	l->given.host = lade__engine_host(l->engine);
	lade__sizes sizes = {l->batch.item_size, l->batch.segment_size, l->batch.output_size,
	                     l->batch.result_size};
	status = lade__given_open(&l->given, &sizes, err);
out:
	return status;
}

/* The cancel token of calls on this thread: others than the caller's ask nobody. */
static lade_cancel *cancel_here(list *l)
{
	bool caller = !l->batch.cancel || pthread_equal(pthread_self(), l->outcome.stop.caller);
	return caller ? l->batch.cancel : &l->quiet;
}

static void run_one(list *l, size_t i)
{
	lade_error error = {.offset = LADE_NO_OFFSET};
	size_t size = 0;
	if (l->wanted && !l->wanted(l, i))
		return;
	if (lade__stopped(&l->outcome.stop)) {
		lade__outcome_cancelled(&l->outcome, i);
		return;
	}
	lade_status status = l->run(l, i, &size, &error);
	error.status = status;
	if (status == LADE_OK)
		lade__outcome_done(&l->outcome, i, size);
	else
		lade__outcome_failed(&l->outcome, i, status, &error);
}

static lade_status run_beside(void *ctx, size_t i, lade_error *err)
{
	list *l = ctx;
	(void)err;
	if (l->beside(l, i))
		run_one(l, i);
	return LADE_OK;
}

/* What goes beside others on at most 'most' threads, and then the rest; closes the list. */
static lade_status list_run(list *l, size_t most, lade_error *err)
{
	size_t threads = lade_engine_threads(l->engine), count = l->given.count;
	if (l->batch.threads && l->batch.threads < threads)
		threads = l->batch.threads;
	lade_batch_options options = {LADE__OUR_SIZES,
	                              .threads = (unsigned)(threads < most ? threads : most)};
	lade__outcome_init(&l->outcome, l->given.results, &l->batch, err);
	if (l->batch.cancel)
		lade__cancel_quiet(&l->quiet, l->batch.cancel);
	lade_engine_each(l->engine, count, run_beside, l, &options, NULL);
	for (size_t i = 0; i < count; i++)
		if (!l->beside(l, i))
			run_one(l, i);
	lade_status status = lade__outcome_reset(&l->outcome);
	lade__given_close(&l->given);
	return status;
}

/* Whether a frame of several is left to one thread of those that go through them all. */
static bool is_short(const list *l, uint64_t size, size_t chunk_size)
{
	return l->given.count > 1 && size / SHORT_CHUNKS <= chunk_size;
}

static bool on_host(lade_place place)
{
	return lade_kind_is_host(place.kind);
}

/* What is on the host goes to the device of the options only if that is there. */
static lade_status find_device(lade_where where, int32_t device, bool near, lade_error *err)
{
	const lade_device_info *info;
	return where == LADE_WHERE_DEVICE && near ? lade_device_get_info(device, &info, err)
	                                          : LADE_OK;
}

static lade_status check_item(const lade_item *item, lade_error *err)
{
	if (item->spec || item->layout || item->output_count || item->tail)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "specs, layouts, outputs and tails are not for frames");
	if (item->src_count != 1 || !item->src)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%zu segments, want 1 for a frame",
		                 item->src ? item->src_count : 0);
	return item->src->data || !item->src->size
	               ? LADE_OK
	               : lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
	                           "the segment is NULL and has %zu bytes", item->src->size);
}

/* ---- opening ---------------------------------------------------------------------------- */

/* Whether the device that a frame is on decodes it. */
static bool able(const list *l, const lade_frame *frame, int32_t device)
{
	const lade_workload work = {.direction = LADE_DECODE, .largest = 1};
	return l->batch.where != LADE_WHERE_HOST &&
	       lade_device_takes(l->engine, frame->info.spec, &work, device, NULL) == LADE_OK;
}

/* A copy of a span in another place; NULL where it is there. */
static lade_status bring(const list *l, lade_cspan *src, lade_place place, lade_array **copy,
                         lade_error *err)
{
	lade_array_options options = {.struct_size = sizeof options,
	                              .allocator = &l->engine->allocators[place.kind],
	                              .stream = l->batch.stream};
	lade_status status;
	if (src->place.kind == place.kind && src->place.device == place.device)
		return LADE_OK;
	TRY(lade_array_new(src->size, place, &options, copy, err));
	TRY(lade_copy(l->engine, *src, lade_array_span(*copy), l->batch.stream, err));
	src->data = lade_array_span(*copy).data;
	src->place = place;
out:
	return status;
}

static lade_status open_on_device(list *l, size_t i, lade_cspan src, lade_error *err)
{
	lade_frame **frame = &l->frames[i];
	lade_array *copy = NULL;
	lade_status status = lade_frame_open_device(l->engine, src, l->batch.stream, &l->read,
	                                            frame, err);
	if (status != LADE_OK || able(l, *frame, src.place.device))
		return status;
	lade_frame_close(*frame);
	*frame = NULL;
	status = bring(l, &src, LADE_PLACE_HOST, &copy, err);
	if (status == LADE_OK)
		status = lade_frame_open_memory(l->engine, src.data, src.size, &l->read, frame,
		                                err);
	if (status == LADE_OK)
		(*frame)->copy = copy;
	else
		lade_array_unref(copy);
	return status;
}

static lade_status open_one(list *l, size_t i, size_t *size, lade_error *err)
{
	const lade_item *item = &l->given.items[i];
	lade_status status = check_item(item, err);
	(void)size;
	if (status != LADE_OK)
		return status;
	lade_cspan src = {item->src->data, item->src->size, item->src->place};
	status = on_host(src.place) ? lade_frame_open_memory(l->engine, src.data, src.size,
	                                                     &l->read, &l->frames[i], err)
	                            : open_on_device(l, i, src, err);
	lade_frame *frame = l->frames[i];
	if (status == LADE_OK && is_short(l, frame->info.size, frame->info.chunk_size))
		frame->options.threads = 1;
	return status;
}

static bool open_beside(const list *l, size_t i)
{
	const lade_item *item = &l->given.items[i];
	return item->src_count != 1 || !item->src || on_host(item->src->place);
}

lade_status lade_frames_open(lade_engine *engine, const lade_item *items, size_t count,
                             lade_frame **frames, const lade_frames_options *options,
                             lade_error *err)
{
	list l = {.engine = engine, .given = {.items = items, .count = count}, .frames = frames,
	          .run = open_one, .beside = open_beside};
	if (!engine || (count && (!items || !frames)))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 !engine  ? "engine"
		                 : !items ? "items"
		                          : "frames");
	for (size_t i = 0; i < count; i++)
		frames[i] = NULL;
	lade_status status = list_open(&l, options, err);
	return status != LADE_OK ? status : list_run(&l, 1 + count / THREAD_FRAMES, err);
}

/* ---- reading ---------------------------------------------------------------------------- */

static bool is_open(const list *l, size_t i)
{
	return l->frames[i] != NULL;
}

static bool read_beside(const list *l, size_t i)
{
	const lade_frame *frame = l->frames[i];
	return frame && frame->options.where != LADE_WHERE_DEVICE && !frame->on_device &&
	       on_host(l->given.items[i].dst.place) &&
	       is_short(l, frame->info.size, frame->info.chunk_size);
}

static lade_status read_one(list *l, size_t i, size_t *got, lade_error *err)
{
	const lade_item *item = &l->given.items[i];
	lade_frame *frame = l->frames[i];
	uint64_t off = item->range_off, size = frame->info.size;
	bool near = !frame->on_device && on_host(item->dst.place);
	lade_status status;
	if (item->spec || item->layout || item->output_count || item->tail)
		return check_item(item, err);
	TRY(find_device(frame->options.where, frame->options.device, near, err));
	if (off > size || item->range_size > size - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "%" PRIu64 " bytes at %" PRIu64 ", the frame has %" PRIu64,
		                 item->range_size, off, size);
	size = item->range_size ? item->range_size : size - off;
	if (size > item->dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the result has %" PRIu64 " bytes, the destination %zu", size,
		                 item->dst.size);
	if (!size)
		return LADE_OK;
	lade_frame_range range = {off, item->dst};
	lade_frame_range_options options = {.struct_size = sizeof options,
	                                    .range_size = sizeof range,
	                                    .result_size = sizeof(lade_result),
	                                    .cancel = cancel_here(l)};
	range.dst.size = (size_t)size;
	/* From the host a frame is read to a device behind its default stream. */
	if (!on_host(item->dst.place) && l->batch.stream && !frame->on_device)
		TRY(lade_stream_wait(item->dst.place.device, l->batch.stream, err));
	TRY(lade_frame_read(frame, &range, 1, NULL, &options, err));
	*got = (size_t)size;
out:
	return status;
}

lade_status lade_frames_read(lade_frame *const *frames, const lade_item *items, size_t count,
                             lade_result *results, const lade_frames_options *options,
                             lade_error *err)
{
	list l = {.given = {.items = items, .results = results, .count = count},
	          .frames = (lade_frame **)(uintptr_t)frames,
	          .run = read_one, .beside = read_beside, .wanted = is_open};
	uint64_t bytes = 0;
	if (count && (!items || !frames))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 items ? "frames" : "items");
	for (size_t i = 0; i < count && !l.engine; i++)
		l.engine = frames[i] ? frames[i]->engine : NULL;
	if (!l.engine)
		return LADE_OK;
	lade_status status = list_open(&l, options, err);
	if (status != LADE_OK)
		return status;
	for (size_t i = 0; i < count; i++)
		bytes += read_beside(&l, i) ? frames[i]->info.size : 0;
	return list_run(&l, 1 + (size_t)(bytes / THREAD_BYTES), err);
}

/* ---- writing ---------------------------------------------------------------------------- */

typedef struct sink {
	lade_span dst;
	size_t size;
} sink;

static lade_status sink_write(void *ctx, const void *src, size_t size, lade_error *err)
{
	sink *to = ctx;
	if (size > to->dst.size - to->size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the frame exceeds the destination's %zu bytes", to->dst.size);
	memcpy((char *)to->dst.data + to->size, src, size);
	to->size += size;
	return LADE_OK;
}

static lade_status write_host(const list *l, const lade_frame_options *options, lade_cspan src,
                              lade_span dst, size_t *size, lade_error *err)
{
	sink to = {dst, 0};
	lade_frame_writer *writer = NULL;
	lade_status status;
	lade_output output = {&to, sink_write};
	TRY(lade_frame_writer_new(l->engine, output, options, &writer, err));
	if (src.size)
		TRY(lade_frame_writer_write(writer, src.data, src.size, err));
	TRY(lade_frame_writer_finish(writer, err));
	*size = to.size;
out:
	lade_frame_writer_free(writer);
	return status;
}

/* In one place, by way of copies where the item's memory is elsewhere. */
static lade_status write_in(const list *l, lade_place place, const lade_frame_options *options,
                            const lade_item *item, size_t *size, lade_error *err)
{
	lade_array_options room = {.struct_size = sizeof room,
	                           .allocator = &l->engine->allocators[place.kind],
	                           .stream = l->batch.stream};
	lade_array *from = NULL, *to = NULL;
	lade_cspan src = {item->src->data, item->src->size, item->src->place};
	lade_span dst = item->dst, out = dst;
	lade_status status;
	bool host = on_host(place);
	bool there = host ? on_host(dst.place)
	                  : dst.place.kind == place.kind && dst.place.device == place.device;
	if (!host || !on_host(src.place))
		TRY(bring(l, &src, place, &from, err));
	if (!there) {
		TRY(lade_array_new(lade_frame_bound(options, src.size), place, &room, &to, err));
		out = lade_array_span(to);
	}
	TRY(host ? write_host(l, options, src, out, size, err)
	         : lade_frame_encode_device(l->engine, options, src, out, size, err));
	if (!there && *size > dst.size)
		status = lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                   "the frame has %zu bytes, the destination %zu", *size, dst.size);
	else if (!there)
		status = lade_copy(l->engine, (lade_cspan){out.data, *size, place}, dst,
		                   l->batch.stream, err);
out:
	lade_array_unref(from);
	lade_array_unref(to);
	return status;
}

static lade_status write_one(list *l, size_t i, size_t *size, lade_error *err)
{
	const lade_item *item = &l->given.items[i];
	lade_frame_options options = l->write;
	lade_status status;
	TRY(check_item(item, err));
	size_t bytes = item->src->size;
	bool src_on_device = !on_host(item->src->place), dst_on_device = !on_host(item->dst.place);
	TRY(find_device(l->batch.where, l->batch.device, !src_on_device && !dst_on_device, err));
	options.has_size = true;
	options.size = bytes;
	options.cancel = cancel_here(l);
	options.threads = is_short(l, bytes, options.chunk_size) ? 1 : l->batch.threads;
	if (l->batch.where != LADE_WHERE_HOST &&
	    ((src_on_device && dst_on_device) || (l->batch.where == LADE_WHERE_DEVICE && bytes))) {
		lade_place place = {LADE_DEVICE, src_on_device   ? item->src->place.device
		                                 : dst_on_device ? item->dst.place.device
		                                                 : l->batch.device};
		status = write_in(l, place, &options, item, size, err);
		/* Otherwise the host finds out whether, and why not. */
		if (status == LADE_OK ||
		    (status == LADE_E_NOSPACE && src_on_device && dst_on_device))
			return status;
	}
	status = write_in(l, LADE_PLACE_HOST, &options, item, size, err);
out:
	return status;
}

static bool write_beside(const list *l, size_t i)
{
	const lade_item *item = &l->given.items[i];
	return l->batch.where != LADE_WHERE_DEVICE && item->src_count == 1 && item->src &&
	       on_host(item->src->place) && on_host(item->dst.place) &&
	       is_short(l, item->src->size, l->write.chunk_size);
}

lade_status lade_frames_write(lade_engine *engine, const lade_item *items, size_t count,
                              lade_result *results, const lade_frames_options *options,
                              lade_error *err)
{
	list l = {.engine = engine, .run = write_one, .beside = write_beside,
	          .given = {.items = items, .results = results, .count = count}};
	size_t bytes = 0;
	if (!engine || (count && !items))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 engine ? "items" : "engine");
	lade_status status = list_open(&l, options, err);
	if (status != LADE_OK)
		return status;
	for (size_t i = 0; i < count; i++)
		bytes += write_beside(&l, i) ? l.given.items[i].src->size : 0;
	return list_run(&l, 1 + bytes / THREAD_BYTES, err);
}
