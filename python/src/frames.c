/*
 * frames.c: NVCOMP_NATIVE: frames (docs/format/frame.md) in memory of any kind, without the
 * interpreter.
 *
 * Of a frame on a device only header and index come to the host, where the device can decode the
 * chunks where they lie; else all of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

/* A device's memory is aligned as all of its blocks are. */
#define ROOM_ALIGN 256
/* Frames of more chunks are worth several threads. */
#define SHORT_CHUNKS 4

/* ---- opening ---------------------------------------------------------------------------- */

/* Whether a frame of several is left to one thread of those that go through them all. */
static bool is_short(const py_work *work, uint64_t size, size_t chunk_size)
{
	return work->count > 1 && size / SHORT_CHUNKS <= chunk_size;
}

static lade_frame_read_options read_options(const py_codec *codec)
{
	return (lade_frame_read_options){
		.struct_size = sizeof(lade_frame_read_options),
		.verify = codec->verify,
		.flags = (codec->flags & LADE_BATCH_STRICT) ? LADE_FRAME_STRICT : 0,
		.threads = codec->threads,
		.where = codec->where,
		.device = codec->device,
	};
}

/* Room that lives as long as the work. */
static void *staged(py_work *work, size_t i, size_t size, lade_error *err)
{
	if (!work->staged)
		work->staged = calloc(work->count, sizeof(*work->staged));
	if (!work->staged || !(work->staged[i] = malloc(size + 1))) {
		lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		          "%zu bytes for a frame could not be allocated", size);
		return NULL;
	}
	return work->staged[i];
}

/* Whether the device that a frame lies on has all kernels for it. */
static bool near_able(const py_codec *codec, const lade_frame *frame, lade_place place)
{
	const lade_device_info *info;
	size_t size;

	return codec->where != LADE_WHERE_HOST &&
	       !lade_device_get_info(place.device, &info, NULL) && info->kernels &&
	       !lade_workspace_size(codec->engine, lade_frame_get_info(frame)->spec, LADE_DECODE,
	                            &(lade_arrays){.count = 1, .largest = 1}, &size, NULL);
}

/* A frame on a device: left there, if it can be decoded there. */
static lade_status open_far(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_segment *segment = &work->segments[i];
	lade_frame_read_options options = read_options(codec);
	lade_cspan src = {segment->data, segment->size, segment->place};
	void *copy;
	lade_status status = lade_frame_open_device(codec->engine, src, (lade_stream)codec->stream,
	                                            &options, &work->frames[i], err);

	if (status || near_able(codec, work->frames[i], segment->place))
		return status;
	lade_frame_close(work->frames[i]);
	work->frames[i] = NULL;
	copy = staged(work, i, segment->size, err);
	if (!copy)
		return LADE_E_NOMEM;
	status = lade_copy(codec->engine, src, lade_host_span(copy, segment->size),
	                   (lade_stream)codec->stream, err);
	return status ? status
	              : lade_frame_open_memory(codec->engine, copy, segment->size, &options,
	                                       &work->frames[i], err);
}

/* Only an open frame tells whether it is short, but mostly its bytes do. */
static lade_status open_near(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	const lade_segment *segment = &work->segments[i];
	lade_frame_read_options options = read_options(codec);
	bool guess = is_short(work, segment->size, codec->chunk_size);

	for (;;) {
		const lade_frame_info *info;
		lade_status status;
		options.threads = guess ? 1 : codec->threads;
		status = lade_frame_open_memory(codec->engine, segment->data, segment->size,
		                                &options, &work->frames[i], err);
		if (status)
			return status;
		info = lade_frame_get_info(work->frames[i]);
		if (is_short(work, info->size, info->chunk_size) == guess)
			return LADE_OK;
		guess = !guess;
		lade_frame_close(work->frames[i]);
		work->frames[i] = NULL;
	}
}

static lade_status open_frame(py_work *work, size_t i, lade_error *err)
{
	bool near = lade_kind_is_host(work->segments[i].place.kind);
	lade_status status = near ? open_near(work, i, err) : open_far(work, i, err);

	work->sizes[i] = status ? LADE_SIZE_UNKNOWN : lade_frame_get_info(work->frames[i])->size;
	return status;
}

/* ---- reading ---------------------------------------------------------------------------- */

/* What lies on the host goes to the codec's device only if that is there. */
static lade_status find_device(const py_codec *codec, lade_place src, lade_place dst,
                               lade_error *err)
{
	const lade_device_info *info;

	if (codec->where != LADE_WHERE_DEVICE || src.kind == LADE_DEVICE || dst.kind == LADE_DEVICE)
		return LADE_OK;
	return lade_device_get_info(codec->device, &info, err);
}

/* One frame, or a range of it, into its destination. */
static lade_status read_frame(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_item *item = &work->items[i];
	uint64_t off = item->range_off, size = work->sizes[i];
	lade_frame_range range;
	lade_status status =
		find_device(codec, work->segments[i].place, item->dst.place, err);

	if (status)
		return status;

	if (off > size || item->range_size > size - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "bytes %llu to %llu are asked for, and there are %llu",
		                 (unsigned long long)off,
		                 (unsigned long long)(off + item->range_size),
		                 (unsigned long long)size);
	size = item->range_size ? item->range_size : size - off;
	if (size > item->dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the result has %llu bytes, the destination %zu",
		                 (unsigned long long)size, item->dst.size);
	range.off = off;
	range.dst = item->dst;
	range.dst.size = (size_t)size;
	if (size) {
		lade_frame_range_options ranges = {.struct_size = sizeof(ranges),
		                                   .cancel = work->cancel};
		/* A frame is read to a device behind its default stream, but from there: not if it
		 * came to the host. */
		bool here = lade_kind_is_host(work->segments[i].place.kind) ||
		            (work->staged && work->staged[i]);
		if (item->dst.place.kind == LADE_DEVICE && codec->stream && here)
			status = lade_stream_wait(item->dst.place.device,
			                          (lade_stream)codec->stream, err);
		if (!status)
			status = lade_frame_read(work->frames[i], &range, 1, NULL, &ranges, err);
	}
	work->results[i] = (lade_result){status, status ? 0 : (size_t)size};
	return status;
}

/* ---- writing ---------------------------------------------------------------------------- */

static lade_frame_options frame_options(const py_codec *codec, size_t size)
{
	lade_frame_options options = {
		.struct_size = sizeof(options),
		.spec = codec->spec,
		.chunk_size = codec->chunk_size,
		.no_checksums = !codec->checksums,
		.has_size = true,
		.size = size,
		.threads = codec->threads,
		.stream = (lade_stream)codec->stream,
	};

	return options;
}

size_t py_frame_bound(const py_codec *codec, size_t size)
{
	lade_frame_options options = frame_options(codec, size);

	return lade_frame_bound(&options, size);
}

typedef struct sink {
	char *data;
	size_t cap, size;
} sink;

static lade_status sink_write(void *ctx, const void *src, size_t size, lade_error *err)
{
	sink *to = ctx;

	if (size > to->cap - to->size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the frame passes the destination's %zu bytes", to->cap);
	memcpy(to->data + to->size, src, size);
	to->size += size;
	return LADE_OK;
}

/* Memory of a device for one frame, in the order of the codec's stream; its data NULL: none. */
static lade_span device_room(const py_codec *codec, size_t size, int32_t device)
{
	const lade_allocator *from = lade_allocator_default(LADE_DEVICE);
	lade_place place = {LADE_DEVICE, device};

	return (lade_span){from->alloc(from->ctx, size, ROOM_ALIGN, place,
	                               (lade_stream)codec->stream),
	                   size, place};
}

static void give_device_room(const py_codec *codec, lade_span room)
{
	const lade_allocator *to = lade_allocator_default(LADE_DEVICE);

	if (room.data)
		to->free(to->ctx, room.data, room.size, ROOM_ALIGN, room.place,
		         (lade_stream)codec->stream);
}

/* By the device, from and to wherever: what lies elsewhere goes through memory of its own. */
static lade_status write_through(const py_codec *codec, const lade_frame_options *options,
                                 lade_cspan src, lade_span dst, size_t *size, lade_error *err)
{
	bool far_src = src.place.kind == LADE_DEVICE, far_dst = dst.place.kind == LADE_DEVICE;
	int32_t device = far_src   ? src.place.device
	                 : far_dst ? dst.place.device
	                           : codec->device;
	lade_span from = {NULL, 0, {LADE_HOST, 0}}, to = from;
	lade_status status = LADE_OK;

	if (!far_src) {
		from = device_room(codec, src.size, device);
		status = from.data ? lade_copy(codec->engine, src, from,
		                               (lade_stream)codec->stream, err)
		                   : LADE_E_NOMEM;
		src.data = from.data;
		src.place = from.place;
	}
	if (!far_dst && !status) {
		to = device_room(codec, py_frame_bound(codec, src.size), device);
		status = to.data ? LADE_OK : LADE_E_NOMEM;
	}
	if (!status)
		status = lade_frame_encode_device(codec->engine, options, src, far_dst ? dst : to,
		                                  size, err);
	if (!status && !far_dst)
		status = *size > dst.size
		                 ? LADE_E_NOSPACE
		                 : lade_copy(codec->engine,
		                             (lade_cspan){to.data, *size, to.place}, dst,
		                             (lade_stream)codec->stream, err);
	give_device_room(codec, from);
	give_device_room(codec, to);
	return status;
}

/* By a device: from its memory to its memory, or where the codec says so.  False: it was not done,
 * and the host finds out whether it can be. */
static bool write_near(py_work *work, size_t i, const lade_frame_options *options,
                       lade_status *status, lade_error *err)
{
	const py_codec *codec = work->codec;
	const lade_segment *segment = &work->segments[i];
	lade_cspan src = {segment->data, segment->size, segment->place};
	lade_span dst = work->items[i].dst;
	bool near = src.place.kind == LADE_DEVICE && dst.place.kind == LADE_DEVICE;
	size_t size = 0;

	if (codec->where == LADE_WHERE_HOST ||
	    (!near && (codec->where != LADE_WHERE_DEVICE || !src.size)))
		return false;
	*status = near ? lade_frame_encode_device(codec->engine, options, src, dst, &size, err)
	               : write_through(codec, options, src, dst, &size, err);
	work->results[i] = (lade_result){*status, size};
	return !*status || (near && *status == LADE_E_NOSPACE);
}

static lade_status write_frame(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_item *item = &work->items[i];
	const lade_segment *segment = &work->segments[i];
	lade_frame_options options = frame_options(codec, segment->size);
	lade_frame_writer *writer = NULL;

	options.cancel = work->cancel;
	bool far_src = !lade_kind_is_host(segment->place.kind);
	bool far_dst = !lade_kind_is_host(item->dst.place.kind);
	const void *data = segment->data;
	void *src = NULL, *dst = NULL;
	sink to = {item->dst.data, item->dst.size, 0};
	lade_output output = {&to, sink_write};
	lade_status status = find_device(codec, segment->place, item->dst.place, err);

	if (status)
		return status;
	if (is_short(work, segment->size, codec->chunk_size))
		options.threads = 1;
	if (write_near(work, i, &options, &status, err))
		return status;
	status = LADE_OK;
	if ((far_src && !(src = malloc(segment->size + 1))) ||
	    (far_dst && !(dst = malloc(item->dst.size + 1)))) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes",
		                   segment->size);
		goto out;
	}
	if (far_src) {
		status = lade_copy(codec->engine,
		                   (lade_cspan){segment->data, segment->size, segment->place},
		                   lade_host_span(src, segment->size), (lade_stream)codec->stream,
		                   err);
		data = src;
	}
	if (far_dst)
		to.data = dst;
	if (!status)
		status = lade_frame_writer_new(codec->engine, output, &options, &writer, err);
	if (!status && segment->size)
		status = lade_frame_writer_write(writer, data, segment->size, err);
	if (!status)
		status = lade_frame_writer_finish(writer, err);
	if (!status && far_dst)
		status = lade_copy(codec->engine, lade_host_cspan(dst, to.size), item->dst,
		                   (lade_stream)codec->stream, err);
	work->results[i] = (lade_result){status, status ? 0 : to.size};
out:
	lade_frame_writer_free(writer);
	free(src);
	free(dst);
	return status;
}

/* ---- many ------------------------------------------------------------------------------- */

/* What is worth a thread: frames to be opened, decoded bytes. */
#define THREAD_FRAMES 64
#define THREAD_BYTES ((size_t)512 << 10)

/* What is done with each item of a work, and whether by one thread beside others. */
typedef struct many {
	py_work *work;
	lade_status (*run)(py_work *work, size_t i, lade_error *err);
	bool (*beside)(const py_work *work, size_t i);
} many;

static lade_status run_beside(void *ctx, size_t i, lade_error *err)
{
	const many *m = ctx;
	lade_status status = m->beside(m->work, i) ? m->run(m->work, i, err) : LADE_OK;

	if (status)
		m->work->results[i] = (lade_result){status, 0};
	return status;
}

/* What goes beside others on at most 'most' threads, and then the rest. */
static void run_all(many m, size_t most)
{
	py_work *work = m.work;
	const py_codec *codec = work->codec;
	size_t threads = codec->threads ? codec->threads : lade_engine_threads(codec->engine);
	size_t first = 0;
	lade_error err;

	threads = threads < most ? threads : most;
	lade_batch_options options = {.struct_size = sizeof options,
	                              .threads = (unsigned)threads,
	                              .item_errors = work->item_errors,
	                              .cancel = work->cancel};
	lade_status status =
		lade_engine_each(codec->engine, work->count, run_beside, &m, &options, &err);
	if (status == LADE_E_CANCELLED) {
		work->err = err;
		work->failed = 0;
		return;
	}
	if (status) {
		while (!work->results[first].status)
			first++;
		if (first < work->failed)
			py_work_note(work, first, &err);
	}
	for (size_t i = 0; i < work->count && work->err.status != LADE_E_CANCELLED; i++)
		if (!m.beside(work, i) && m.run(work, i, &err))
			py_work_note(work, i, &err);
}

static bool is_near(const py_work *work, size_t i)
{
	return lade_kind_is_host(work->segments[i].place.kind);
}

void py_frames_open(py_work *work)
{
	run_all((many){work, open_frame, is_near}, 1 + work->count / THREAD_FRAMES);
}

/*
 * The engine shares out the chunks of one frame, but a list may have many of few chunks.  What lies
 * on a device is gone through in the stream's order.
 */
static bool is_beside(const py_work *work, size_t i)
{
	const lade_frame_info *info = work->frames[i] ? lade_frame_get_info(work->frames[i]) : NULL;

	return work->codec->where != LADE_WHERE_DEVICE && is_near(work, i) &&
	       lade_kind_is_host(work->items[i].dst.place.kind) &&
	       is_short(work, info ? info->size : work->segments[i].size,
	                info ? info->chunk_size : work->codec->chunk_size);
}

static void run_sized(py_work *work,
                      lade_status (*run)(py_work *work, size_t i, lade_error *err))
{
	size_t bytes = 0;

	for (size_t i = 0; i < work->count; i++)
		if (is_beside(work, i))
			bytes += work->frames[i] ? work->sizes[i] : work->segments[i].size;
	run_all((many){work, run, is_beside}, 1 + bytes / THREAD_BYTES);
}

static lade_status read_opened(py_work *work, size_t i, lade_error *err)
{
	return work->frames[i] && !work->results[i].status ? read_frame(work, i, err) : LADE_OK;
}

void py_frames_read(py_work *work)
{
	run_sized(work, read_opened);
}

void py_frames_write(py_work *work)
{
	run_sized(work, write_frame);
}
