/*
 * work.c: what the calls of Codec do, without the interpreter: bare kinds and frames, their sizes,
 * memory on devices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <stdlib.h>
#include <string.h>

bool py_work_init(py_work *work, const py_codec *codec, size_t count, bool item_errors)
{
	memset(work, 0, sizeof(*work));
	work->codec = codec;
	work->count = count;
	work->failed = SIZE_MAX;
	if (count == 1) {
		work->items = &work->one_item;
		work->segments = &work->one_segment;
		work->results = &work->one_result;
		work->frames = &work->one_frame;
		work->sizes = &work->one_size;
	} else {
		work->items = calloc(count + 1, sizeof(*work->items));
		work->segments = calloc(count + 1, sizeof(*work->segments));
		work->results = calloc(count + 1, sizeof(*work->results));
		work->sizes = calloc(count + 1, sizeof(*work->sizes));
		if (codec->kind == PY_NATIVE)
			work->frames = calloc(count + 1, sizeof(*work->frames));
		if (!work->items || !work->segments || !work->results || !work->sizes ||
		    (codec->kind == PY_NATIVE && !work->frames))
			return false;
	}
	if (item_errors && !(work->item_errors = calloc(count + 1, sizeof(lade_error))))
		return false;
	for (size_t i = 0; i < count; i++) {
		work->items[i].src = &work->segments[i];
		work->items[i].src_count = 1;
	}
	return true;
}

void py_work_reset(py_work *work)
{
	for (size_t i = 0; i < work->count; i++) {
		if (work->frames)
			lade_frame_close(work->frames[i]);
		if (work->staged)
			free(work->staged[i]);
	}
	free(work->staged);
	free(work->item_errors);
	if (work->items != &work->one_item) {
		free(work->items);
		free(work->segments);
		free(work->results);
		free(work->sizes);
		free(work->frames);
	}
}

/* Notes the failure of one item; the call's error is that of the first. */
static void note(py_work *work, size_t i, const lade_error *err)
{
	work->results[i] = (lade_result){err->status, 0};
	if (work->item_errors)
		work->item_errors[i] = *err;
	if (i < work->failed) {
		work->failed = i;
		work->err = *err;
	}
}

static lade_batch_options options_of(const py_work *work)
{
	const py_codec *codec = work->codec;
	lade_batch_options options = {
		.struct_size = sizeof(options),
		.threads = codec->threads,
		.flags = codec->flags,
		.item_errors = work->item_errors,
		.stream = (lade_stream)codec->stream,
		.where = codec->where,
		.device = codec->device,
	};

	return options;
}

lade_status py_move(lade_engine *engine, const lade_spec *copy, lade_cspan src, lade_span dst,
                    uintptr_t stream, lade_error *err)
{
	lade_segment segment = {src.data, src.size, src.place, src.size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};
	lade_batch_options options = {.struct_size = sizeof(options),
	                              .stream = (lade_stream)stream};

	err->status = LADE_OK;
	if (!engine)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for the engine");
	if (!src.size)
		return LADE_OK;
	if (lade_kind_is_host(src.place.kind) && lade_kind_is_host(dst.place.kind)) {
		memcpy(dst.data, src.data, src.size);
		return LADE_OK;
	}
	return lade_decode_into(engine, copy, &item, 1, NULL, &options, err);
}

/* ---- sizes ------------------------------------------------------------------------------ */

/*
 * Takes the size prefix off a segment of kinds WITH_SIZE and stores the size it claims.
 * |size 4 or 8| RAW, or with zeros up to byte 16 (docs/format/bare.md).
 */
static lade_status take_prefix(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_segment *segment = &work->segments[i];
	unsigned char prefix[16] = {0};
	uint64_t size = 0;

	if (segment->size < codec->prefix)
		return lade_fail(err, LADE_E_TRUNCATED, segment->size,
		                 "%zu bytes, and the size before the data takes %zu", segment->size,
		                 codec->prefix);
	if (py_move(codec->engine, codec->st->copy,
	            (lade_cspan){segment->data, codec->prefix, segment->place},
	            lade_host_span(prefix, codec->prefix), codec->stream, err))
		return err->status;
	for (size_t b = codec->size_field; b-- > 0;)
		size = size << 8 | prefix[b];
	for (size_t b = codec->size_field; b < codec->prefix; b++)
		if (prefix[b])
			return lade_fail(err, LADE_E_CORRUPT, b,
			                 "byte %zu before the data is %u, want 0", b, prefix[b]);
	segment->data = (const char *)segment->data + codec->prefix;
	segment->size -= codec->prefix;
	if (size >= (uint64_t)PY_SSIZE_T_MAX)
		return lade_fail(err, LADE_E_LIMIT, 0, "the data claims %llu bytes",
		                 (unsigned long long)size);
	/* For a range this lets the library take scratch; else the result is compared with it. */
	if (work->items[i].range_off || work->items[i].range_size)
		segment->decoded_size = (size_t)size;
	work->sizes[i] = size;
	return LADE_OK;
}

static lade_status open_frame(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_segment *segment = &work->segments[i];
	const void *data = segment->data;
	lade_frame_read_options options = {
		.struct_size = sizeof(options),
		.policy = codec->policy,
		.flags = (codec->flags & LADE_BATCH_STRICT) ? LADE_FRAME_STRICT : 0,
		.threads = codec->threads,
		.where = codec->where,
		.device = codec->device,
	};

	if (!lade_kind_is_host(segment->place.kind)) {
		if (!work->staged)
			work->staged = calloc(work->count, sizeof(*work->staged));
		if (!work->staged || !(work->staged[i] = malloc(segment->size + 1)))
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "%zu bytes for a frame could not be allocated",
			                 segment->size);
		if (py_move(codec->engine, codec->st->copy,
		            (lade_cspan){segment->data, segment->size, segment->place},
		            lade_host_span(work->staged[i], segment->size), codec->stream, err))
			return err->status;
		data = work->staged[i];
	}
	if (lade_frame_open_memory(codec->engine, data, segment->size, &options, &work->frames[i],
	                           err))
		return err->status;
	work->sizes[i] = lade_frame_get_info(work->frames[i])->size;
	return LADE_OK;
}

lade_status py_work_sizes(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_error err;

	if (codec->kind == PY_RAW) {
		lade_decoded_sizes(codec->engine, codec->spec, work->items, work->count,
		                   work->sizes, NULL, NULL);
		return LADE_OK;
	}
	for (size_t i = 0; i < work->count; i++) {
		lade_status status = codec->kind == PY_NATIVE ? open_frame(work, i, &err)
		                                              : take_prefix(work, i, &err);
		if (status) {
			work->sizes[i] = LADE_SIZE_UNKNOWN;
			note(work, i, &err);
		}
	}
	return work->err.status;
}

/* ---- decoding --------------------------------------------------------------------------- */

/* One frame, or a range of it, into its destination. */
static lade_status read_frame(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_item *item = &work->items[i];
	uint64_t off = item->range_off, size = work->sizes[i];
	lade_frame_range range;
	void *host = NULL;
	lade_status status;

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
	if (size && !lade_kind_is_host(item->dst.place.kind)) {
		host = malloc((size_t)size);
		if (!host)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "%llu bytes on the host could not be allocated",
			                 (unsigned long long)size);
	}
	range.off = off;
	range.dst = item->dst;
	range.dst.size = (size_t)size;
	if (host)
		range.dst = lade_host_span(host, (size_t)size);
	status = size ? lade_frame_read(work->frames[i], &range, 1, NULL, err) : LADE_OK;
	if (!status && host)
		status =
			py_move(codec->engine, codec->st->copy, lade_host_cspan(host, (size_t)size),
		                item->dst, codec->stream, err);
	free(host);
	work->results[i] = (lade_result){status, status ? 0 : (size_t)size};
	return status;
}

/* The index of the first item that failed. */
static void find_failed(py_work *work)
{
	work->failed = 0;
	while (work->failed < work->count && !work->results[work->failed].status)
		work->failed++;
	if (work->failed == work->count)
		work->failed = SIZE_MAX;
}

lade_status py_work_decode(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_batch_options options;
	lade_item *item = work->items;
	lade_segment *segment = work->segments;
	lade_error err;

	if (codec->kind == PY_NATIVE) {
		for (size_t i = 0; i < work->count; i++)
			if (work->frames[i] && !work->results[i].status &&
			    read_frame(work, i, &err))
				note(work, i, &err);
		return work->err.status;
	}
	if (work->count == 1 && !codec->threads && !codec->flags && !codec->where &&
	    !item->row_pitch && !item->range_off && !item->range_size && !segment->place.kind &&
	    !item->dst.place.kind && codec->kind == PY_RAW) {
		work->results[0].status = lade_decode(codec->engine, codec->spec, segment->data,
		                                      segment->size, item->dst.data, item->dst.size,
		                                      &work->results[0].size, &work->err);
		work->err.status = work->results[0].status;
		work->failed = work->err.status ? 0 : SIZE_MAX;
		if (work->err.status && work->item_errors)
			work->item_errors[0] = work->err;
		return work->err.status;
	}
	options = options_of(work);
	if (lade_decode_into(codec->engine, codec->spec, work->items, work->count, work->results,
	                     &options, &err)) {
		work->err = err;
		find_failed(work);
	}
	if (codec->kind == PY_RAW)
		return work->err.status;
	for (size_t i = 0; i < work->count; i++) {
		uint64_t want = work->sizes[i], got = work->results[i].size;
		/* What failed before was decoded for nothing: its error is the first one. */
		if (want == LADE_SIZE_UNKNOWN && take_prefix(work, i, &err)) {
			if (work->failed == i)
				work->failed = SIZE_MAX;
			note(work, i, &err);
			continue;
		}
		if (item[i].range_off || item[i].range_size ||
		    (!work->results[i].status && want == got))
			continue;
		if (work->results[i].status == LADE_E_NOSPACE && item[i].dst.size >= want)
			lade_fail(&err, LADE_E_CORRUPT, 0,
			          "the data claims %llu bytes and has more",
			          (unsigned long long)want);
		else if (!work->results[i].status)
			lade_fail(&err, LADE_E_CORRUPT, 0,
			          "the data claims %llu bytes and has %llu",
			          (unsigned long long)want, (unsigned long long)got);
		else
			continue;
		if (work->failed == i)
			work->failed = SIZE_MAX;
		note(work, i, &err);
	}
	return work->err.status;
}

/* ---- encoding --------------------------------------------------------------------------- */

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

size_t py_codec_bound(const py_codec *codec, size_t size)
{
	lade_frame_options options;
	size_t bound;

	if (codec->kind == PY_NATIVE) {
		options = frame_options(codec, size);
		return lade_frame_bound(&options, size);
	}
	bound = lade_spec_bound(codec->spec, size);
	return bound > SIZE_MAX - codec->prefix ? SIZE_MAX : bound + codec->prefix;
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

static lade_status write_frame(py_work *work, size_t i, lade_error *err)
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

/* Writes the size before an item's data, which went to 'prefix' bytes behind 'dst'. */
static lade_status put_prefix(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	unsigned char prefix[16] = {0};
	lade_span dst = work->items[i].dst;
	uint64_t size = work->sizes[i];

	if (size == LADE_SIZE_UNKNOWN)
		return lade_fail(
			err, LADE_E_NOSPACE, LADE_NO_OFFSET,
			"the size before the data takes %zu bytes, the destination has fewer",
			codec->prefix);
	if (codec->size_field == 4 && size > UINT32_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%llu bytes, and the size before the data holds %u at most",
		                 (unsigned long long)size, UINT32_MAX);
	for (size_t b = 0; b < codec->size_field; b++)
		prefix[b] = (unsigned char)(size >> 8 * b);
	dst.size = codec->prefix;
	work->results[i].size += codec->prefix;
	return py_move(codec->engine, codec->st->copy, lade_host_cspan(prefix, codec->prefix), dst,
	               codec->stream, err);
}

lade_status py_work_encode(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_batch_options options;
	lade_item *item = work->items;
	lade_segment *segment = work->segments;
	lade_error err;

	if (codec->kind == PY_NATIVE) {
		for (size_t i = 0; i < work->count; i++)
			if (write_frame(work, i, &err))
				note(work, i, &err);
		return work->err.status;
	}
	if (work->count == 1 && !codec->threads && !codec->where && !item->row_pitch &&
	    !segment->place.kind && !item->dst.place.kind && codec->kind == PY_RAW) {
		work->results[0].status = lade_encode(codec->engine, codec->spec, segment->data,
		                                      segment->size, item->dst.data, item->dst.size,
		                                      &work->results[0].size, &work->err);
		work->err.status = work->results[0].status;
		work->failed = work->err.status ? 0 : SIZE_MAX;
		if (work->err.status && work->item_errors)
			work->item_errors[0] = work->err;
		return work->err.status;
	}
	for (size_t i = 0; codec->prefix && i < work->count; i++) {
		lade_span *dst = &item[i].dst;
		/* Too small for the prefix: the encoder finds no room at all. */
		size_t prefix = codec->prefix < dst->size ? codec->prefix : dst->size;
		work->sizes[i] = segment[i].size;
		if (item[i].row_pitch && segment[i].size)
			work->sizes[i] =
				((segment[i].size - item[i].row_size) / item[i].row_pitch + 1) *
				item[i].row_size;
		if (prefix < codec->prefix)
			work->sizes[i] = LADE_SIZE_UNKNOWN;
		dst->data = (char *)dst->data + prefix;
		dst->size -= prefix;
	}
	options = options_of(work);
	if (lade_encode_into(codec->engine, codec->spec, work->items, work->count, work->results,
	                     &options, &err)) {
		work->err = err;
		find_failed(work);
	}
	for (size_t i = 0; codec->prefix && i < work->count; i++) {
		if (work->sizes[i] != LADE_SIZE_UNKNOWN) {
			item[i].dst.data = (char *)item[i].dst.data - codec->prefix;
			item[i].dst.size += codec->prefix;
		}
		if (!work->results[i].status && put_prefix(work, i, &err))
			note(work, i, &err);
	}
	return work->err.status;
}
