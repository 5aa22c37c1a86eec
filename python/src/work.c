/*
 * work.c: what the calls of Codec do, without the interpreter: bare kinds, sizes, memory on
 * devices.  Frames are in frames.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- room -------------------------------------------------------------------------------- */

/* Smaller ones the allocator keeps itself; larger ones are too much to keep. */
#define ROOM_LEAST ((size_t)64 << 10)
#define ROOM_MOST ((size_t)8 << 20)
#define ROOM_COUNT (sizeof(((py_state *)NULL)->rooms) / sizeof(void *))

/* What stands before it: the size of the whole. */
typedef union room_head {
	size_t cap;
	max_align_t align;
} room_head;

void *py_room_take(py_state *st, size_t size)
{
	room_head *head;

	if (size > SIZE_MAX / 2)
		return NULL;
	size += sizeof(*head);
	for (size_t i = 0; size >= ROOM_LEAST && i < ROOM_COUNT; i++) {
		void *none = NULL;
		head = atomic_exchange(&st->rooms[i], NULL);
		if (head && head->cap >= size && head->cap / 2 <= size)
			return head + 1;
		if (head && !atomic_compare_exchange_strong(&st->rooms[i], &none, head))
			free(head);
	}
	head = malloc(size);
	if (!head)
		return NULL;
	head->cap = size;
	return head + 1;
}

void py_room_give(py_state *st, void *room)
{
	room_head *head = room ? (room_head *)room - 1 : NULL;
	bool keep = head && head->cap >= ROOM_LEAST && head->cap <= ROOM_MOST;

	for (size_t i = 0; keep && i < ROOM_COUNT; i++) {
		void *none = NULL;
		if (atomic_compare_exchange_strong(&st->rooms[i], &none, head))
			return;
	}
	free(keep ? atomic_exchange(&st->rooms[0], head) : head);
}

void py_rooms_free(py_state *st)
{
	for (size_t i = 0; i < ROOM_COUNT; i++)
		free(atomic_exchange(&st->rooms[i], NULL));
}

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
		work->room = count < SIZE_MAX / each ? py_room_take(codec->st, count * each) : NULL;
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
	for (size_t i = 0; work->staged && i < work->count; i++)
		free(work->staged[i]);
	free(work->staged);
	free(work->wanted);
	free(work->item_errors);
	if (work->room)
		py_room_give(work->codec->st, work->room);
	memset(work, 0, offsetof(py_work, one_item));
}

void py_work_note(py_work *work, size_t i, const lade_error *err)
{
	work->results[i] = (lade_result){err->status, 0};
	if (work->item_errors)
		work->item_errors[i] = *err;
	if (i < work->failed) {
		work->failed = i;
		work->err = *err;
	}
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

	if (err)
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

/* Claims below are believed until the data is decoded. */
#define CLAIM_LARGE ((uint64_t)1 << 20)
#define CLAIM_RATIO 16

/* ---- sizes ------------------------------------------------------------------------------ */

/* Of algorithms whose bytes give only so many, and of those whose chunks hold only so many; 0: any.
 * Of Zstd's blocks 4 bytes give 128 KiB, and of those of Bitcomp and Cascaded 4 in the directory
 * alone 8 KiB. */
static const struct limit {
	const char *algorithm;
	size_t ratio, most;
} limits[] = {
	{"lz4", 255, 0},       {"lz4f", 255, 0},
	{"snappy", 64, 0},     {"deflate", 1032, 0},
	{"zlib", 1032, 0},     {"gzip", 1032, 0},
	{"zstd", 32768, 0},    {"bitcomp", 2048, 0},
	{"cascaded", 2048, 0}, {"blosc", 0, (size_t)1 << 31},
	{"ans", 0, (size_t)1 << 30},
};

size_t py_decoded_most(const char *algorithm, size_t size)
{
	const struct limit *its = NULL;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (!strcmp(limits[i].algorithm, algorithm))
			its = &limits[i];
	if (its && its->most)
		return its->most;
	return !its || size > (size_t)PY_SSIZE_T_MAX / its->ratio - 8 ? (size_t)PY_SSIZE_T_MAX
	                                                     : (size + 8) * its->ratio;
}

/* Filters make at most so many bytes of one: bits to booleans, and types to wider ones. */
#define FILTER_RATIO 16

/* The most that a pipeline makes of 'size' bytes. */
static size_t pipeline_most(const lade_spec *spec, size_t size)
{
	for (size_t i = lade_spec_count(spec); i-- > 0;) {
		const lade_algorithm *a = lade_spec_stage(spec, i)->algorithm;
		if (a->kind == LADE_STAGE_CODEC)
			size = py_decoded_most(a->name, size);
		else if (a->kind == LADE_STAGE_FILTER)
			size = size > (size_t)PY_SSIZE_T_MAX / FILTER_RATIO ? (size_t)PY_SSIZE_T_MAX
			                                                   : size * FILTER_RATIO;
	}
	return size;
}

static bool is_large(uint64_t claim, size_t size)
{
	return claim >= CLAIM_LARGE && claim / CLAIM_RATIO >= size;
}

bool py_claim_can_be(const py_codec *codec, size_t size, uint64_t claim)
{
	return !is_large(claim, size) || claim <= pipeline_most(codec->spec, size);
}

/* What a segment's own bytes say that they decode to. */
static uint64_t own_claim(const py_codec *codec, lade_segment segment)
{
	lade_item item = {.src = &segment, .src_count = 1};
	uint64_t claim = LADE_SIZE_UNKNOWN;

	lade_decoded_sizes(codec->engine, codec->spec, &item, 1, &claim, NULL, NULL);
	return claim;
}

static lade_status refuse_claim(const py_codec *codec, size_t size, uint64_t claim, lade_error *err)
{
	bool one = lade_spec_count(codec->spec) == 1;

	return lade_fail(err, LADE_E_CORRUPT, 0,
	                 "the data claims %llu bytes, and %zu bytes of %s are %zu at most",
	                 (unsigned long long)claim, size,
	                 one ? lade_spec_stage(codec->spec, 0)->algorithm->name
	                     : lade_spec_text(codec->spec),
	                 pipeline_most(codec->spec, size));
}

/* Looks at a claim that would take much memory for few bytes, before any is taken. */
static lade_status check_claim(const py_codec *codec, lade_segment segment, uint64_t claim,
                               lade_error *err)
{
	uint64_t own;

	if (!is_large(claim, segment.size))
		return LADE_OK;
	if (!py_claim_can_be(codec, segment.size, claim))
		return refuse_claim(codec, segment.size, claim, err);
	own = own_claim(codec, segment);
	if (own != LADE_SIZE_UNKNOWN && own != claim)
		return lade_fail(err, LADE_E_CORRUPT, 0, "the data claims %llu bytes and has %llu",
		                 (unsigned long long)claim, (unsigned long long)own);
	return LADE_OK;
}

/* Whether bytes of another kind are a frame: a codec of the default kind made them. */
static bool is_frame(lade_segment segment)
{
	static const unsigned char magic[8] = {0x89, 'L', 'A', 'D', 'E', '\r', '\n', 0x1a};

	return lade_kind_is_host(segment.place.kind) && segment.size >= sizeof(magic) &&
	       !memcmp(segment.data, magic, sizeof(magic));
}

static lade_status refuse_frame(lade_error *err)
{
	return lade_fail(err, LADE_E_CORRUPT, 0,
	                 "the data is a .lade frame, which bitstream_kind NVCOMP_NATIVE decodes");
}

/*
 * Takes the size prefix off a segment of kinds WITH_SIZE and stores the size it claims.
 * |size 4 or 8| RAW, or with zeros up to byte 16 (docs/format/bare.md).
 */
static lade_status take_prefix(py_work *work, size_t i, lade_error *err)
{
	const py_codec *codec = work->codec;
	lade_segment *segment = &work->segments[i], rest = *segment;
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
	if (size >= (uint64_t)PY_SSIZE_T_MAX)
		return lade_fail(err, LADE_E_CORRUPT, 0, "the data claims %llu bytes",
		                 (unsigned long long)size);
	rest.data = (const char *)rest.data + codec->prefix;
	rest.size -= codec->prefix;
	if (check_claim(codec, rest, size, err))
		return err->status;
	*segment = rest;
	/* For a range this lets the library take scratch; else the result is compared with it. */
	if (work->items[i].range_off || work->items[i].range_size)
		segment->decoded_size = (size_t)size;
	work->sizes[i] = size;
	return LADE_OK;
}

lade_status py_work_sizes(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_error err;

	if (codec->kind == PY_RAW) {
		lade_decoded_sizes(codec->engine, codec->spec, work->items, work->count,
		                   work->sizes, NULL, NULL);
		for (size_t i = 0; i < work->count; i++) {
			uint64_t claim = work->sizes[i];
			size_t size = work->segments[i].size;
			if (claim == LADE_SIZE_UNKNOWN || py_claim_can_be(codec, size, claim))
				continue;
			work->sizes[i] = LADE_SIZE_UNKNOWN;
			if (work->wanted)
				continue; /* a config's claim: decoding tells what is right */
			refuse_claim(codec, size, claim, &err);
			py_work_note(work, i, &err);
		}
		return work->err.status;
	}
	if (codec->kind == PY_NATIVE)
		py_frames_open(work);
	for (size_t i = 0; codec->kind != PY_NATIVE && i < work->count; i++) {
		if (!take_prefix(work, i, &err))
			continue;
		if (is_frame(work->segments[i]))
			refuse_frame(&err);
		work->sizes[i] = LADE_SIZE_UNKNOWN;
		py_work_note(work, i, &err);
	}
	return work->err.status;
}

/* ---- decoding --------------------------------------------------------------------------- */

/* The index of the first item that failed. */
static void find_failed(py_work *work)
{
	work->failed = 0;
	while (work->failed < work->count && !work->results[work->failed].status)
		work->failed++;
	if (work->failed == work->count)
		work->failed = SIZE_MAX;
}

/* The bytes that a destination holds, gaps between rows not counted. */
static size_t room_of(const lade_item *item)
{
	if (!item->row_pitch || item->dst.size < item->row_size)
		return item->dst.size;
	return ((item->dst.size - item->row_size) / item->row_pitch + 1) * item->row_size;
}

/* What RAW bytes that failed are: with more claimed than they can give no room would do. */
static void explain_failures(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_error err;

	for (size_t i = 0; work->err.status && i < work->count; i++) {
		lade_segment segment = work->segments[i];
		uint64_t claim;
		lade_status status = work->results[i].status;
		if (status && status != LADE_E_NOMEM && is_frame(segment)) {
			refuse_frame(&err);
		} else if (status == LADE_E_NOSPACE) {
			segment.decoded_size = 0; /* a config's word is not theirs */
			claim = own_claim(codec, segment);
			if (claim == LADE_SIZE_UNKNOWN ||
			    py_claim_can_be(codec, segment.size, claim))
				continue;
			refuse_claim(codec, segment.size, claim, &err);
		} else {
			continue;
		}
		if (work->failed == i)
			work->failed = SIZE_MAX;
		py_work_note(work, i, &err);
	}
}

static lade_status decode_all(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_batch_options options;
	lade_item *item = work->items;
	lade_segment *segment = work->segments;
	lade_error err;

	if (codec->kind == PY_NATIVE) {
		py_frames_read(work);
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
		explain_failures(work);
		return work->err.status;
	}
	options = py_work_options(work);
	if (lade_decode_into(codec->engine, codec->spec, work->items, work->count, work->results,
	                     &options, &err)) {
		work->err = err;
		find_failed(work);
	}
	if (codec->kind == PY_RAW) {
		explain_failures(work);
		return work->err.status;
	}
	for (size_t i = 0; i < work->count; i++) {
		uint64_t want = work->sizes[i], got = work->results[i].size;
		/* What failed before was decoded for nothing: its error is the first one. */
		if (want == LADE_SIZE_UNKNOWN && take_prefix(work, i, &err)) {
			if (is_frame(segment[i]))
				refuse_frame(&err);
			if (work->failed == i)
				work->failed = SIZE_MAX;
			py_work_note(work, i, &err);
			continue;
		}
		if (item[i].range_off || item[i].range_size ||
		    (!work->results[i].status && want == got))
			continue;
		if (work->results[i].status == LADE_E_NOSPACE && room_of(&item[i]) >= want)
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
		py_work_note(work, i, &err);
	}
	return work->err.status;
}

/* What an item decodes to, whose size a config told: UINT64_MAX where it is more, and the config's
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
	else if (one.results[0].status == LADE_E_NOSPACE && room_of(one.items) >= size)
		size = UINT64_MAX;
	py_work_reset(&one);
	return size;
}

lade_status py_work_decode(py_work *work)
{
	lade_error err;

	decode_all(work);
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
		if (work->failed == i)
			work->failed = SIZE_MAX;
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

size_t py_work_source_size(const py_work *work, size_t i)
{
	const lade_item *item = &work->items[i];
	size_t size = work->segments[i].size;

	return item->row_pitch && size
	               ? ((size - item->row_size) / item->row_pitch + 1) * item->row_size
	               : size;
}

static lade_status encode_all(py_work *work)
{
	const py_codec *codec = work->codec;
	lade_batch_options options;
	lade_item *item = work->items;
	lade_segment *segment = work->segments;
	lade_error err;

	if (codec->kind == PY_NATIVE) {
		py_frames_write(work);
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
		work->sizes[i] = py_work_source_size(work, i);
		if (prefix < codec->prefix)
			work->sizes[i] = LADE_SIZE_UNKNOWN;
		dst->data = (char *)dst->data + prefix;
		dst->size -= prefix;
	}
	options = py_work_options(work);
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
			py_work_note(work, i, &err);
	}
	return work->err.status;
}

lade_status py_work_encode(py_work *work)
{
	lade_error err;

	encode_all(work);
	for (size_t i = 0; work->wanted && i < work->count; i++) {
		size_t have = py_work_source_size(work, i);
		if (!py_config_fits(work->wanted[i], have, &err)) {
			if (work->failed == i)
				work->failed = SIZE_MAX;
			py_work_note(work, i, &err);
		}
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
