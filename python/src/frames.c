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

/* A frame on a device, as a source. */
typedef struct far_frame {
	const py_codec *codec;
	const lade_segment *segment;
} far_frame;

static lade_status read_far(void *ctx, uint64_t off, void *dst, size_t size, lade_error *err)
{
	const far_frame *from = ctx;

	return py_move(
		from->codec->engine, from->codec->st->copy,
		(lade_cspan){(const char *)from->segment->data + off, size, from->segment->place},
		lade_host_span(dst, size), from->codec->stream, err);
}

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
	far_frame *from = staged(work, i, sizeof(*from), err);
	lade_source source = {from, segment->size, read_far};
	lade_status status = from ? LADE_OK : LADE_E_NOMEM;
	void *copy;

	if (from)
		*from = (far_frame){codec, segment};
	if (!status)
		status = lade_frame_open(codec->engine, source, &options, &work->frames[i], err);
	if (status || near_able(codec, work->frames[i], segment->place))
		return status;
	lade_frame_close(work->frames[i]);
	work->frames[i] = NULL;
	free(from);
	copy = staged(work, i, segment->size, err);
	if (!copy)
		return LADE_E_NOMEM;
	status = py_move(codec->engine, codec->st->copy,
	                 (lade_cspan){segment->data, segment->size, segment->place},
	                 lade_host_span(copy, segment->size), codec->stream, err);
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

/* The chunks of a frame as items of one batch, where they lie and where they go. */
typedef struct chunks {
	lade_item *items;
	lade_segment *segments;
	lade_cspan *spans; /* the decoded chunks */
	uint64_t *sums;    /* as they are, and as they should be */
	size_t count;
} chunks;

static void chunks_free(chunks *c)
{
	free(c->items);
	free(c->segments);
	free(c->spans);
	free(c->sums);
}

/* False where a chunk is not as a batch can take it. */
static bool chunks_plan(const py_work *work, size_t i, chunks *c)
{
	const lade_segment *all = &work->segments[i];
	const lade_span *dst = &work->items[i].dst;
	lade_frame *frame = work->frames[i];
	size_t at = 0;

	c->items = calloc(c->count + 1, sizeof(*c->items));
	c->segments = calloc(c->count + 1, sizeof(*c->segments));
	c->spans = calloc(c->count + 1, sizeof(*c->spans));
	c->sums = calloc(2 * c->count + 1, sizeof(*c->sums));
	if (!c->items || !c->segments || !c->spans || !c->sums)
		return false;
	for (size_t k = 0; k < c->count; k++) {
		lade_frame_chunk chunk;
		lade_item *item = &c->items[k];
		if (lade_frame_get_chunk(frame, k, &chunk, NULL) ||
		    (chunk.flags & ~(uint32_t)LADE_CHUNK_STORED) || chunk.off > all->size ||
		    chunk.size > all->size - chunk.off || chunk.decoded_size > dst->size - at)
			return false;
		c->segments[k] = (lade_segment){(const char *)all->data + chunk.off, chunk.size,
		                                all->place, chunk.decoded_size};
		item->spec = chunk.flags ? work->codec->st->copy : lade_frame_get_info(frame)->spec;
		item->src = &c->segments[k];
		item->src_count = 1;
		item->dst = (lade_span){(char *)dst->data + at, chunk.decoded_size, dst->place};
		c->spans[k] = (lade_cspan){item->dst.data, chunk.decoded_size, dst->place};
		c->sums[c->count + k] = chunk.checksum;
		at += chunk.decoded_size;
	}
	return at == work->sizes[i];
}

/*
 * All of a frame, from a device's memory to the same device's.  False: it was not done, whatever
 * the reason; reading it the other way finds out, and says, what is wrong.
 */
static bool read_near(py_work *work, size_t i)
{
	const py_codec *codec = work->codec;
	const lade_frame_info *info = lade_frame_get_info(work->frames[i]);
	lade_place from = work->segments[i].place, to = work->items[i].dst.place;
	lade_batch_options options = py_work_options(work);
	chunks c = {.count = (size_t)info->chunk_count};
	bool done = false;

	if (from.kind != LADE_DEVICE || to.kind != LADE_DEVICE || from.device != to.device ||
	    work->items[i].range_off || work->items[i].range_size || info->chunk_count > 1u << 24 ||
	    !near_able(codec, work->frames[i], from))
		return false;
	options.item_errors = NULL;
	options.where = LADE_WHERE_AUTO; /* what is stored is copied, which is not the device's */
	if (chunks_plan(work, i, &c) &&
	    !lade_decode_into(codec->engine, info->spec, c.items, c.count, NULL, &options, NULL))
		done = true;
	if (done && info->checksum && codec->policy >= LADE_NO_COMPUTE_AND_VERIFY_IF_PRESENT)
		done = !lade_checksums(codec->engine, info->checksum, c.spans, c.count, c.sums,
		                       NULL) &&
		       !memcmp(c.sums, c.sums + c.count, c.count * sizeof(*c.sums));
	chunks_free(&c);
	return done;
}

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
	if (size && !read_near(work, i)) {
		/* A frame is read to a device behind its default stream. */
		if (item->dst.place.kind == LADE_DEVICE && codec->stream)
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
