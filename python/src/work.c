/*
 * work.c: what the calls of Codec do, without the interpreter: bare kinds, sizes, memory on
 * devices.  Frames are in frames.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <stddef.h>
#include <string.h>

/* ---- a batch ----------------------------------------------------------------------------- */

bool py_work_init(py_work *work, const py_codec *codec, size_t count, bool item_errors)
{
	size_t frames = codec->kind == PY_NATIVE ? sizeof(*work->frames) : 0;
	size_t each = sizeof(*work->items) + sizeof(*work->segments) + sizeof(*work->results) +
	              sizeof(*work->sizes) + frames;

	memset(work, 0, sizeof(*work));
	work->codec = codec;
	work->failed = SIZE_MAX;
	if (count == 1) {
		work->items = &work->one_item;
		work->segments = &work->one_segment;
		work->results = &work->one_result;
		work->frames = &work->one_frame;
		work->sizes = &work->one_size;
	} else {
		work->room = count < SIZE_MAX / each ? malloc(count * each) : NULL;
		if (!work->room)
			return false;
		work->items = work->room;
		work->segments = (lade_segment *)(work->items + count);
		work->results = (lade_result *)(work->segments + count);
		memset(work->results, 0, count * sizeof(*work->results));
		work->sizes = (uint64_t *)(work->results + count);
		if (frames)
			work->frames = memset(work->sizes + count, 0, count * frames);
	}
	memset(work->sizes, 0xff, count * sizeof(*work->sizes)); /* LADE_SIZE_UNKNOWN */
	work->count = count;
	if (item_errors && !(work->item_errors = calloc(count + 1, sizeof(lade_error))))
		return false;
	return true;
}

void py_work_reset(py_work *work)
{
	for (size_t i = 0; work->frames && i < work->count; i++)
		lade_frame_close(work->frames[i]);
	for (size_t i = 0; work->arrays && i < work->count; i++)
		lade_array_unref(work->arrays[i]);
	free(work->arrays);
	free(work->wanted);
	free(work->layouts);
	free(work->item_errors);
	free(work->room);
	memset(work, 0, offsetof(py_work, one_item));
}

void py_work_note(py_work *work, size_t i, const lade_error *err)
{
	work->results[i] = (lade_result){err->status, 0};
	if (work->item_errors)
		work->item_errors[i] = *err;
	if (i <= work->failed) {
		work->failed = i;
		work->err = *err;
	}
}

lade_status py_work_settle(py_work *work, lade_status status, const lade_error *err)
{
	size_t i = 0;

	while (status && i < work->failed && i < work->count && !work->results[i].status)
		i++;
	if (status && i < work->failed) {
		work->err = *err;
		work->failed = i < work->count ? i : SIZE_MAX;
	}
	return work->err.status;
}

lade_batch_options py_work_options(const py_work *work)
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
		.cancel = work->cancel,
	};

	return options;
}

/* ---- sizes ------------------------------------------------------------------------------ */

/* Bare bytes, with all that the codec says. */
static lade_bare_options bare_options(const py_work *work, const lade_batch_options *batch)
{
	return (lade_bare_options){.struct_size = sizeof(lade_bare_options),
	                           .spec = work->codec->spec,
	                           .kind = (lade_bare)work->codec->kind,
	                           .batch = batch};
}

lade_status py_work_sizes(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_batch_options batch = py_work_options(work);
	lade_bare_options options = bare_options(work, &batch);

	if (codec->kind == PY_NATIVE) {
		py_frames_open(work);
		return work->err.status;
	}
	for (size_t i = 0; i < work->count; i++)
		work->results[i].status = LADE_E_UNKNOWN_SIZE;
	/* Where this fails decoding says why. */
	batch.item_errors = NULL;
	lade_bare_decoded_sizes(codec->engine, work->items, work->count, work->results, &options,
	                        NULL);
	for (size_t i = 0; i < work->count; i++) {
		lade_result *result = &work->results[i];
		work->sizes[i] = result->status ? LADE_SIZE_UNKNOWN : result->size;
		*result = (lade_result){LADE_OK, 0};
		/* A size of a config that cannot be is dropped: decoding finds the right one. */
		if (work->wanted &&
		    work->sizes[i] > lade_spec_decoded_max(codec->spec, work->segments[i].size)) {
			work->sizes[i] = LADE_SIZE_UNKNOWN;
			work->segments[i].decoded_size = 0;
		}
	}
	return LADE_OK;
}

/* ---- decoding --------------------------------------------------------------------------- */

lade_layout *py_work_layout(py_work *work, size_t i)
{
	if (!work->layouts)
		work->layouts = calloc(work->count, sizeof(*work->layouts));
	if (!work->layouts) {
		PyErr_NoMemory();
		return NULL;
	}
	work->items[i].layout = &work->layouts[i];
	return &work->layouts[i];
}

size_t py_item_size(const lade_item *item, size_t flat)
{
	size_t size = item->layout ? item->layout->elem_size : flat;

	for (size_t i = 0; item->layout && i < item->layout->ndim; i++)
		size *= item->layout->shape[i]; /* an array's, which are in memory */
	return size;
}

/* Whether the bytes begin as a chunk of Blosc 1 does, and are as long as it says:
 * | version 2 | codec's version | flags | element size | size 4 | block size 4 | chunk size 4 | */
static bool is_blosc(const uint8_t *p, size_t size)
{
	return size >= 16 && p[0] == 2 && p[3] &&
	       size == (p[12] | (size_t)p[13] << 8 | (size_t)p[14] << 16 | (size_t)p[15] << 24);
}

/* Whether a codec's own bare bytes are of this algorithm. */
static bool makes(const py_codec *codec, const char *algorithm)
{
	size_t last = codec->spec ? lade_spec_count(codec->spec) : 0;

	return codec->kind != PY_NATIVE && last &&
	       !strcmp(lade_spec_stage(codec->spec, last - 1)->algorithm->name, algorithm);
}

void py_hint(const py_codec *codec, const lade_segment *src, lade_error *err)
{
	static const char *const raw[] = {
		[LADE_FORMAT_ZST] = "zstd", [LADE_FORMAT_GZ] = "gzip", [LADE_FORMAT_ZZ] = "zlib"};
	const uint8_t *p = src->data;
	lade_format format = LADE_FORMAT_UNKNOWN;
	size_t used = strlen(err->message), cap = sizeof(err->message) - used;
	bool weak;

	if (!lade_kind_is_host(src->place.kind) ||
	    (err->status != LADE_E_CORRUPT && err->status != LADE_E_TRUNCATED &&
	     err->status != LADE_E_NOSPACE && err->status != LADE_E_VERSION))
		return;
	format = lade_format_detect(p, src->size);
	/* A signature of two bytes says little of bytes that have no signature of their own. */
	weak = format == LADE_FORMAT_ZZ ||
	       (format == LADE_FORMAT_GZ && (src->size < 3 || p[2] != 8));
	if (codec->kind != PY_NATIVE && weak)
		return;
	if (format == LADE_FORMAT_UNKNOWN && is_blosc(p, src->size) && !makes(codec, "blosc"))
		snprintf(err->message + used, cap,
		         "; it looks like a Blosc chunk: a Codec(algorithm=\"Blosc\", "
		         "bitstream_kind=BitstreamKind.RAW) reads it");
	else if (format >= LADE_FORMAT_ZST && format <= LADE_FORMAT_ZZ &&
	         !makes(codec, raw[format]))
		snprintf(err->message + used, cap,
		         "; it looks like .%s: a Codec(algorithm=\"%s\", "
		         "bitstream_kind=BitstreamKind.RAW), or liblade.open(), reads it",
		         lade_format_name(format), raw[format]);
	else if (format > LADE_FORMAT_ZZ)
		snprintf(err->message + used, cap, "; it looks like .%s: liblade.open() reads it",
		         lade_format_name(format));
}

/* Bare bytes that failed may be a frame, which a codec of the default kind made, or another's. */
static void explain_failures(py_work *work)
{
	lade_error err;

	for (size_t i = 0; work->err.status && i < work->count; i++) {
		const lade_segment *segment = &work->segments[i];
		lade_status status = work->results[i].status;
		if (!status || status == LADE_E_NOMEM || !lade_kind_is_host(segment->place.kind))
			continue;
		if (lade_format_detect(segment->data, segment->size) != LADE_FORMAT_LADE) {
			if (!work->item_errors && i != work->failed)
				continue;
			err = work->item_errors ? work->item_errors[i] : work->err;
			py_hint(work->codec, segment, &err);
			py_work_note(work, i, &err);
			continue;
		}
		lade_fail(&err, LADE_E_CORRUPT, 0,
		          "the data is a .lade frame, which bitstream_kind NVCOMP_NATIVE decodes");
		py_work_note(work, i, &err);
	}
}

/* Into memory that the library finds. */
static lade_status decode_new(py_work *work, const lade_batch_options *batch, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_decode_new_options options = {.struct_size = sizeof(options),
	                                   .spec = codec->spec,
	                                   .kind = (lade_bare)codec->kind,
	                                   .batch = batch,
	                                   .place = work->place};
	lade_status status = lade_decode_new(codec->engine, work->items, work->count, work->arrays,
	                                     &options, err);

	for (size_t i = 0; i < work->count; i++) {
		lade_span *dst = &work->items[i].dst;
		lade_status own = work->item_errors ? work->item_errors[i].status : LADE_OK;
		*dst = lade_array_span(work->arrays[i]);
		work->results[i].size = dst->size;
		work->results[i].status = work->arrays[i] ? LADE_OK : own ? own : status;
	}
	return status;
}

static lade_status decode_all(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_batch_options batch;
	lade_bare_options options;
	lade_item *item = work->items;
	lade_segment *segment = work->segments;
	lade_status status;
	lade_error err;

	if (codec->kind == PY_NATIVE)
		return py_frames_read(work);
	if (work->count == 1 && !codec->threads && !codec->flags && !codec->where &&
	    !item->layout && !item->range_off && !item->range_size && !segment->place.kind &&
	    !item->dst.place.kind && codec->kind == PY_RAW && !work->cancel && !work->arrays) {
		lade_cspan src = lade_host_cspan(segment->data, segment->size);
		work->err.status = lade_decode(codec->engine, codec->spec, src, item->dst,
		                               &work->results[0].size, &work->err);
		work->results[0].status = LADE_OK;
		if (!work->err.status)
			return LADE_OK;
		/* Once more: that explains it. */
	}
	batch = py_work_options(work);
	options = bare_options(work, &batch);
	status = work->arrays ? decode_new(work, &batch, &err)
	                      : lade_bare_decode_into(codec->engine, work->items, work->count,
	                                              work->results, &options, &err);
	if (py_work_settle(work, status, &err) != LADE_E_CANCELLED)
		explain_failures(work);
	return work->err.status;
}

/* What an item decodes to, whose size a config gave: UINT64_MAX where it is more, and the config's
 * own size where it fails for another reason. */
static uint64_t true_size(const py_work *work, size_t i)
{
	uint64_t size = work->wanted[i];
	py_work one;

	if (!work->results[i].status)
		return work->results[i].size;
	if (work->codec->kind != PY_RAW || !py_work_init(&one, work->codec, 1, false))
		return size;
	one.segments[0] = work->segments[i];
	one.segments[0].decoded_size = 0;
	one.items[0] = work->items[i];
	one.items[0].src = one.segments;
	decode_all(&one);
	if (!one.results[0].status)
		size = one.results[0].size;
	else if (one.results[0].status == LADE_E_NOSPACE &&
	         py_item_size(one.items, one.items->dst.size) >= size)
		size = UINT64_MAX;
	py_work_reset(&one);
	return size;
}

lade_status py_work_decode(py_work *work)
{
	lade_error err;

	if (decode_all(work) == LADE_E_CANCELLED)
		return LADE_E_CANCELLED;
	for (size_t i = 0; work->wanted && i < work->count; i++) {
		unsigned long long want = work->wanted[i], got;
		if (work->items[i].range_off || work->items[i].range_size)
			continue;
		got = true_size(work, i);
		if (got == want)
			continue;
		if (got == UINT64_MAX)
			lade_fail(&err, LADE_E_VALUE, LADE_NO_OFFSET,
			          "decompression_config: %llu bytes, and the data has more", want);
		else
			lade_fail(&err, LADE_E_VALUE, LADE_NO_OFFSET,
			          "decompression_config: %llu bytes, and the data has %llu", want,
			          got);
		py_work_note(work, i, &err);
	}
	return work->err.status;
}

/* ---- encoding --------------------------------------------------------------------------- */

size_t py_codec_bound(const py_codec *codec, size_t size)
{
	size_t bound;

	if (codec->kind == PY_NATIVE)
		return py_frame_bound(codec, size);
	bound = lade_spec_bound(codec->spec, size);
	return bound > SIZE_MAX - codec->prefix ? SIZE_MAX : bound + codec->prefix;
}

static lade_status encode_all(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_batch_options batch;
	lade_bare_options options;
	lade_item *item = work->items;
	lade_segment *segment = work->segments;
	lade_error err;

	if (codec->kind == PY_NATIVE)
		return py_frames_write(work);
	if (work->count == 1 && !codec->threads && !codec->where && !item->layout &&
	    !segment->place.kind && !item->dst.place.kind && codec->kind == PY_RAW &&
	    !work->cancel) {
		lade_cspan src = lade_host_cspan(segment->data, segment->size);
		if (lade_encode(codec->engine, codec->spec, src, item->dst, &work->results[0].size,
		                &err))
			py_work_note(work, 0, &err);
		return work->err.status;
	}
	batch = py_work_options(work);
	options = bare_options(work, &batch);
	return py_work_settle(work,
	                      lade_bare_encode_into(codec->engine, work->items, work->count,
	                                            work->results, &options, &err), &err);
}

lade_status py_work_encode(py_work *work)
{
	lade_error err;

	if (encode_all(work) == LADE_E_CANCELLED)
		return LADE_E_CANCELLED;
	for (size_t i = 0; work->wanted && i < work->count; i++) {
		size_t have = py_item_size(&work->items[i], work->segments[i].size);
		if (!py_config_fits(work->wanted[i], have, &err))
			py_work_note(work, i, &err);
	}
	return work->err.status;
}

bool py_config_fits(uint64_t want, size_t have, lade_error *err)
{
	return want == have ||
	       !lade_fail(err, LADE_E_VALUE, LADE_NO_OFFSET,
	                  "compression_config: %llu bytes, and the array has %zu",
	                  (unsigned long long)want, have);
}
