/*
 * source.c: where a frame's bytes come from.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How much of a frame is read when it is opened.  For most frames: of a remote one the last index
 * page, list and footer, of a local one list and footer. */
#define HEAD_SIZE ((size_t)512)
#define TAIL_LOCAL ((size_t)4096)
#define TAIL_REMOTE ((size_t)68 << 10)

lade_status lade__source_read(const lade__source *source, lade_range *ranges, size_t count,
                              lade_error *err)
{
	lade_io_options options = {.struct_size = sizeof options, .threads = 1,
	                           .cancel = source->cancel};
	lade_reading reading;
	lade__reading_begin(&reading, source->from, ranges, count, &options);
	return lade__reading_end(&reading, err);
}

/* ---- opening ------------------------------------------------------------------------------- */

/* Both ends in one call.  A frame that the tail holds has no other head. */
static lade_status read_ends(lade__source *s, size_t tail, lade_error *err)
{
	lade_object_version version;
	lade_range ranges[2];
	s->ends = malloc(HEAD_SIZE + tail);
	if (!s->ends)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a frame's ends");
	ranges[0] = (lade_range){.kind = LADE_RANGE_LAST,
	                         .dst = lade_host_span(s->ends + HEAD_SIZE, tail),
	                         .version = &s->version};
	ranges[1] = (lade_range){.dst = lade_host_span(s->ends, HEAD_SIZE), .version = &version};
	lade_status status = lade__source_read(s, ranges, 2, err);
	if (ranges[0].status != LADE_OK)
		return status;
	s->size = ranges[0].object_size;
	if (s->size == LADE_SIZE_UNKNOWN)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "the source does not report its size");
	s->tail = s->size - ranges[0].size;
	if (s->tail == 0)
		s->base = s->ends + HEAD_SIZE;
	else if (ranges[1].status == LADE_OK)
		s->head = HEAD_SIZE;
	else if (ranges[1].status != LADE_E_RANGE)
		return status;
	if (s->head && s->version.size && version.size &&
	    !lade_object_version_equal(&s->version, &version))
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "the frame changed while it was opened");
	return LADE_OK;
}

lade_status lade__source_open(lade__source *source, lade_source from, bool owned, size_t tail,
                              lade_cancel *cancel, lade_error *err)
{
	lade_range ask = {.version = &source->version};
	*source = (lade__source){.from = from, .owned = owned, .cancel = cancel};
	lade_status status = lade__source_check(from, err);
	if (status != LADE_OK) {
		source->owned = false;
		return status;
	}
	source->local = (from.ops->flags & LADE_SOURCE_LOCAL) != 0;
	lade_cspan view = {0};
	if (from.ops->view)
		view = from.ops->view(from.ctx);
	if (!view.data || !lade_kind_is_host(view.place.kind))
		return read_ends(source, tail                ? tail
		                         : source->local ? TAIL_LOCAL
		                                         : TAIL_REMOTE, err);
	source->base = view.data;
	source->size = view.size;
	return lade__source_read(source, &ask, 1, err);
}

void lade__source_close(lade__source *source)
{
	free(source->ends);
	source->ends = NULL;
	if (source->owned)
		lade_source_close(source->from);
	source->owned = false;
}

/* ---- bytes --------------------------------------------------------------------------------- */

const uint8_t *lade__source_at(const lade__source *source, uint64_t off, size_t size)
{
	if (source->base)
		return source->base + off;
	if (off <= source->head && size <= source->head - off)
		return source->ends + off;
	return off >= source->tail ? source->ends + HEAD_SIZE + (size_t)(off - source->tail) : NULL;
}

lade_status lade__source_get(const lade__source *source, uint64_t off, size_t size,
                             uint8_t *buffer, const uint8_t **out, lade_error *err)
{
	*out = lade__source_at(source, off, size);
	if (*out)
		return LADE_OK;
	*out = buffer;
	lade_range range = lade__source_range(source, off, size, buffer);
	return lade__source_read(source, &range, 1, err);
}

lade_status lade__source_check_version(const lade__source *source, lade_status status,
                                       lade_error *err)
{
	lade_range ask = {.want = &source->version};
	/* A remote source was given the version with each range. */
	bool sure = source->base || !source->local;
	if (source->version.size == 0 || status == LADE_E_CHANGED || (status == LADE_OK && sure))
		return status;
	if (lade__source_read(source, &ask, 1, NULL) != LADE_E_CHANGED)
		return status;
	return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
	                 "the frame's bytes have changed since it was opened");
}

/* ---- a pipe --------------------------------------------------------------------------------- */

static lade_status input_read(lade__ahead *ahead, void *dst, size_t cap, size_t *got,
                              lade_error *err)
{
	*got = 0;
	lade_status status = ahead->input.read(ahead->input.ctx, dst, cap, got, err);
	if (status != LADE_OK)
		return status;
	if (*got > cap)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the input returned %zu bytes, %zu were requested", *got, cap);
	ahead->eof = *got == 0;
	return LADE_OK;
}

lade_status lade__ahead_peek(lade__ahead *ahead, size_t size, const uint8_t **out, size_t *have,
                             lade_error *err)
{
	if (ahead->end - ahead->at < size && ahead->at) {
		memmove(ahead->buffer, ahead->buffer + ahead->at, ahead->end - ahead->at);
		ahead->end -= ahead->at;
		ahead->at = 0;
	}
	while (ahead->end - ahead->at < size && !ahead->eof) {
		size_t got;
		lade_status status = input_read(ahead, ahead->buffer + ahead->end,
		                                LADE__AHEAD - ahead->end, &got, err);
		if (status != LADE_OK)
			return status;
		ahead->end += got;
	}
	*out = ahead->buffer + ahead->at;
	*have = ahead->end - ahead->at < size ? ahead->end - ahead->at : size;
	return LADE_OK;
}

lade_status lade__ahead_read(lade__ahead *ahead, void *dst, size_t size, size_t *got,
                             lade_error *err)
{
	uint8_t *to = dst;
	size_t have = ahead->end - ahead->at, n = have < size ? have : size;
	memcpy(to, ahead->buffer + ahead->at, n);
	lade__ahead_skip(ahead, n);
	while (n < size && !ahead->eof) {
		size_t more;
		lade_status status = input_read(ahead, to + n, size - n, &more, err);
		if (status != LADE_OK)
			return status;
		n += more;
		ahead->off += more;
	}
	*got = n;
	return LADE_OK;
}
