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

/* ---- opening ---------------------------------------------------------------------------- */

static lade_frame_read_options read_options(const py_codec *codec)
{
	return (lade_frame_read_options){
		.struct_size = sizeof(lade_frame_read_options),
		.policy = codec->policy,
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
	       !lade_workspace_size(codec->engine, lade_frame_get_info(frame)->spec, LADE_DECODE, 1,
	                            1, 0, &size, NULL);
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
	status = py_move(codec->engine, codec->st->copy, src, lade_host_span(copy, segment->size),
	                 codec->stream, err);
	return status ? status
	              : lade_frame_open_memory(codec->engine, copy, segment->size, &options,
	                                       &work->frames[i], err);
}

lade_status py_frame_open(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_segment *segment = &work->segments[i];
	lade_frame_read_options options = read_options(codec);
	lade_status status;

	if (lade_kind_is_host(segment->place.kind))
		status = lade_frame_open_memory(codec->engine, segment->data, segment->size,
		                                &options, &work->frames[i], err);
	else
		status = open_far(work, i, err);
	if (!status)
		work->sizes[i] = lade_frame_get_info(work->frames[i])->size;
	return status;
}

/* ---- reading ---------------------------------------------------------------------------- */

/* One frame, or a range of it, into its destination. */
lade_status py_frame_read(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_item *item = &work->items[i];
	uint64_t off = item->range_off, size = work->sizes[i];
	lade_frame_range range;
	lade_status status = LADE_OK;

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
		/* A frame is read to a device behind its default stream, but from there: not if it
		 * came to the host. */
		bool here = lade_kind_is_host(work->segments[i].place.kind) ||
		            (work->staged && work->staged[i]);
		if (item->dst.place.kind == LADE_DEVICE && codec->stream && here)
			status = lade_stream_wait(item->dst.place.device,
			                          (lade_stream)codec->stream, err);
		if (!status)
			status = lade_frame_read(work->frames[i], &range, 1, NULL, err);
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
		.policy = codec->policy,
		.has_size = true,
		.size = size,
		.threads = codec->threads,
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

/* From a device's memory to the same device's.  False: it was not done, and another way finds out
 * whether it can be. */
static bool write_near(py_work *work, size_t i, const lade_frame_options *options,
                       lade_status *status, lade_error *err)
{
	const py_codec *codec = work->codec;
	const lade_segment *segment = &work->segments[i];
	lade_cspan src = {segment->data, segment->size, segment->place};
	size_t size = 0;

	if (codec->where == LADE_WHERE_HOST || src.place.kind != LADE_DEVICE ||
	    work->items[i].dst.place.kind != LADE_DEVICE)
		return false;
	*status = lade_frame_encode_device(codec->engine, options, src, work->items[i].dst,
	                                   (lade_stream)codec->stream, &size, err);
	work->results[i] = (lade_result){*status, size};
	return !*status || *status == LADE_E_NOSPACE;
}

lade_status py_frame_write(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_item *item = &work->items[i];
	const lade_segment *segment = &work->segments[i];
	lade_frame_options options = frame_options(codec, segment->size);
	lade_frame_writer *writer = NULL;
	bool far_src = !lade_kind_is_host(segment->place.kind);
	bool far_dst = !lade_kind_is_host(item->dst.place.kind);
	const void *data = segment->data;
	void *src = NULL, *dst = NULL;
	sink to = {item->dst.data, item->dst.size, 0};
	lade_output output = {&to, sink_write};
	lade_status status = LADE_OK;

	if (write_near(work, i, &options, &status, err))
		return status;
	if ((far_src && !(src = malloc(segment->size + 1))) ||
	    (far_dst && !(dst = malloc(item->dst.size + 1)))) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes",
		                   segment->size);
		goto out;
	}
	if (far_src) {
		status = py_move(codec->engine, codec->st->copy,
		                 (lade_cspan){segment->data, segment->size, segment->place},
		                 lade_host_span(src, segment->size), codec->stream, err);
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
		status = py_move(codec->engine, codec->st->copy, lade_host_cspan(dst, to.size),
		                 item->dst, codec->stream, err);
	work->results[i] = (lade_result){status, status ? 0 : to.size};
out:
	lade_frame_writer_free(writer);
	free(src);
	free(dst);
	return status;
}
