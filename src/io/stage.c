/*
 * stage.c: ranges on devices, from sources that write host memory only: the source reads pieces
 * into a staging buffer, from where they are copied.
 *
 *	source --(read)--> staging buffer --(copies)--> spans on devices
 *	       --(read)--> spans on the host
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/io.h"

#include "base/try.h"
#include "gpu/device.h"

#include <stdlib.h>
#include <string.h>

/* A staging buffer, and the most pieces that are read at once. */
#define STAGING_SIZE ((size_t)32 << 20)
#define PIECES 1024

/* Of the buffer, and of its pieces that have as many bytes: as O_DIRECT wants it. */
#define ALIGN 4096

/* ---- places ------------------------------------------------------------------------------- */

lade_status lade__io_place_check(lade_place place, const void *data, size_t size, const char *what,
                                 size_t index, lade_error *err)
{
	const lade_device_info *there;
	lade_error why;
	if (!data && size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s %zu: data is NULL and has %zu bytes", what, index, size);
	if ((unsigned)place.kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s %zu: memory kind %d is unknown", what, index, (int)place.kind);
	if (lade_kind_is_host(place.kind))
		return LADE_OK;
	lade_status status = lade_device_get_info(place.device, &there, &why);
	return status == LADE_OK ? status
	                         : lade_fail(err, status, LADE_NO_OFFSET, "%s %zu: %s", what, index,
	                                     why.message);
}

lade_status lade__io_copy(lade_span to, lade_cspan from, lade_stream stream, uint64_t *devices,
                          lade_error *err)
{
	lade__device *d;
	bool here = lade_kind_is_host(to.place.kind);
	int32_t number = here ? from.place.device : to.place.device;
	lade__address dst = lade__address_of(to.data), src = lade__address_of(from.data);
	lade_status status = lade__device_use(number, &d, err);
	if (status != LADE_OK)
		return status;
	*devices |= (uint64_t)1 << number;
	if (here)
		status = LADE__CU(d, cuMemcpyDtoHAsync, to.data, src, from.size, stream);
	else if (lade_kind_is_host(from.place.kind))
		status = LADE__CU(d, cuMemcpyHtoDAsync, dst, from.data, from.size, stream);
	else
		status = LADE__CU(d, cuMemcpyAsync, dst, src, from.size, stream);
	lade__device_leave(d);
	return status;
}

lade_status lade__io_copies_wait(uint64_t devices, lade_stream stream, lade_error *err)
{
	lade_status status = LADE_OK;
	for (int32_t i = 0; i < LADE_DEVICES_MAX; i++) {
		if (!(devices >> i & 1))
			continue;
		lade_status one = lade_stream_wait(i, stream, status == LADE_OK ? err : NULL);
		if (status == LADE_OK)
			status = one;
	}
	return status;
}

bool lade__staging_alloc(lade__staging *s, const lade_io_options *options, int32_t device,
                         size_t size)
{
	s->size = size ? size : 1;
	s->from = options->pinned ? options->pinned : lade_allocator_default(LADE_PINNED);
	s->place = (lade_place){LADE_PINNED, device};
	s->data = s->from->alloc ? s->from->alloc(s->from->ctx, s->size, ALIGN, s->place, NULL)
	                         : NULL;
	if (s->data)
		return true;
	s->from = lade_allocator_default(LADE_HOST);
	s->place = LADE_PLACE_HOST;
	s->data = s->from->alloc(s->from->ctx, s->size, ALIGN, s->place, NULL);
	return s->data != NULL;
}

void lade__staging_free(lade__staging *s)
{
	if (s->data)
		s->from->free(s->from->ctx, s->data, s->size, ALIGN, s->place, NULL);
	s->data = NULL;
}

/* ---- pieces ------------------------------------------------------------------------------- */

/* What is known of a range on the way: where it begins, and how much of it is read or in a wave. */
typedef struct progress {
	uint64_t off;
	size_t size, at;
	lade_object_version version;
	lade_status status; /* LADE__PENDING: not answered */
	lade_error error;
} progress;

typedef struct staged {
	lade_source source;
	lade_range *ranges;
	size_t count;
	const lade_io_options *options;
	lade_io_options inner; /* without the caller's table of errors */
	lade_error *errors;    /* of the pieces */
	progress *progress;
	lade_range *pieces;
	size_t *owner; /* the pieces' ranges */
	size_t piece_count;
	lade__staging staging;
} staged;

static void fail_range(staged *s, size_t i, lade_status status, const lade_error *err)
{
	progress *p = &s->progress[i];
	if (p->status != LADE__PENDING && p->status != LADE_OK)
		return;
	p->status = status;
	p->error = *err;
	p->at = p->size;
}

static void read_pieces(staged *s)
{
	lade_reading reading;
	lade__reading_begin(&reading, s->source, s->pieces, s->piece_count, &s->inner);
	lade__reading_end(&reading, NULL);
}

/*
 * Asks for sizes and versions, by ranges of 0 bytes, so that each range becomes one of a known
 * place: only then it can be read in pieces.
 */
static void find_places(staged *s)
{
	for (size_t first = 0; first < s->count; first += s->piece_count) {
		s->piece_count = s->count - first < PIECES ? s->count - first : PIECES;
		for (size_t k = 0; k < s->piece_count; k++) {
			const lade_range *range = &s->ranges[first + k];
			s->pieces[k] = (lade_range){.key = range->key,
			                            .want = range->want,
			                            .version = &s->progress[first + k].version};
		}
		read_pieces(s);
		for (size_t k = 0; k < s->piece_count; k++) {
			lade_range *range = &s->ranges[first + k];
			progress *p = &s->progress[first + k];
			lade_error *err = &s->errors[k];
			lade_status status = s->pieces[k].status;
			range->object_size = s->pieces[k].object_size;
			if (status == LADE_OK && range->object_size == LADE_SIZE_UNKNOWN &&
			    range->kind != LADE_RANGE_AT)
				status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
				                   "the source does not report its size");
			p->off = range->off;
			p->size = range->dst.size;
			if (status == LADE_OK && range->object_size != LADE_SIZE_UNKNOWN)
				status = lade_range_place(range, range->object_size, &p->off,
				                          &p->size, err);
			if (status != LADE_OK)
				fail_range(s, first + k, status, err);
			if (range->version)
				*range->version = p->version;
		}
	}
}

/* What a piece takes of the staging buffer. */
static size_t room_of(size_t size)
{
	return size < ALIGN ? size : size + (ALIGN - size % ALIGN) % ALIGN;
}

/* Fills a wave with pieces of ranges from '*next' on; those on the host need no staging. */
static void make_wave(staged *s, size_t *next)
{
	size_t used = 0;
	s->piece_count = 0;
	while (*next < s->count && s->piece_count < PIECES && used < s->staging.size) {
		progress *p = &s->progress[*next];
		const lade_range *range = &s->ranges[*next];
		size_t n = p->size - p->at;
		bool there = !lade_kind_is_host(range->dst.place.kind);
		if (n == 0) {
			++*next;
			continue;
		}
		if (there && n > s->staging.size - used)
			n = s->staging.size - used;
		uint8_t *to = there ? (uint8_t *)s->staging.data + used
		                    : (uint8_t *)range->dst.data + p->at;
		/* The pieces of a range are of one state of the object, where it has versions. */
		const lade_object_version *want = p->version.size ? &p->version : range->want;
		s->pieces[s->piece_count] = (lade_range){.key = range->key,
		                                         .off = p->off + p->at,
		                                         .dst = lade_host_span(to, n),
		                                         .want = want};
		s->owner[s->piece_count++] = *next;
		p->at += n;
		if (there)
			used += room_of(n);
	}
}

/* Copies what a wave has read. */
static void copy_wave(staged *s)
{
	uint64_t devices = 0;
	lade_error err;
	for (size_t k = 0; k < s->piece_count; k++) {
		const lade_range *piece = &s->pieces[k];
		size_t i = s->owner[k];
		lade_span dst = s->ranges[i].dst;
		lade_status status = piece->status;
		if (status != LADE_OK) {
			fail_range(s, i, status, &s->errors[k]);
			continue;
		}
		if (lade_kind_is_host(dst.place.kind) || s->progress[i].status != LADE__PENDING)
			continue;
		size_t at = (size_t)(piece->off - s->progress[i].off);
		lade_cspan from = {piece->dst.data, piece->dst.size, s->staging.place};
		dst.data = (uint8_t *)dst.data + at;
		status = lade__io_copy(dst, from, s->options->stream, &devices, &err);
		if (status != LADE_OK)
			fail_range(s, i, status, &err);
	}
	/* The staging buffer is used again. */
	lade_status status = lade__io_copies_wait(devices, s->options->stream, &err);
	for (size_t k = 0; k < s->piece_count && status != LADE_OK; k++)
		if (!lade_kind_is_host(s->ranges[s->owner[k]].dst.place.kind))
			fail_range(s, s->owner[k], status, &err);
}

static lade_status answer(staged *s, lade_error *err)
{
	lade_status status = LADE_OK;
	for (size_t i = 0; i < s->count; i++) {
		lade_range *range = &s->ranges[i];
		progress *p = &s->progress[i];
		bool good = p->status == LADE__PENDING;
		range->status = good ? LADE_OK : p->status;
		range->size = good ? p->size : 0;
		if (good)
			continue;
		if (s->options->errors)
			s->options->errors[i] = p->error;
		if (status == LADE_OK)
			status = lade_fail(err, p->status, p->error.offset, "range %zu: %s", i,
			                   p->error.message);
	}
	return status;
}

/* The bytes that go to devices, or STAGING_SIZE. */
static size_t staging_size(const lade_range *ranges, size_t count, int32_t *device)
{
	size_t size = 0;
	for (size_t i = 0; i < count; i++) {
		const lade_span *dst = &ranges[i].dst;
		if (lade_kind_is_host(dst->place.kind))
			continue;
		*device = dst->place.device;
		if (dst->size >= STAGING_SIZE - size || room_of(dst->size) >= STAGING_SIZE - size)
			return STAGING_SIZE;
		size += room_of(dst->size);
	}
	return size;
}

lade_status lade__io_read_staged(lade_source source, lade_range *ranges, size_t count,
                                 const lade_io_options *options, lade_error *err)
{
	staged s = {.source = source,
	            .ranges = ranges,
	            .count = count,
	            .options = options,
	            .inner = *options,
	            .errors = malloc(PIECES * sizeof *s.errors),
	            .progress = calloc(count, sizeof *s.progress),
	            .pieces = malloc(PIECES * sizeof *s.pieces),
	            .owner = malloc(PIECES * sizeof *s.owner)};
	int32_t device = 0;
	size_t size = staging_size(ranges, count, &device);
	lade_status status = LADE_OK;
	if (!s.errors || !s.progress || !s.pieces || !s.owner ||
	    !lade__staging_alloc(&s.staging, options, device, size)) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                   "no memory for a staging buffer of %zu bytes", size);
		lade__ranges_fail(ranges, count, options, status, err);
	} else {
		s.inner.errors = s.errors;
		for (size_t i = 0; i < count; i++)
			s.progress[i].status = LADE__PENDING;
		find_places(&s);
		for (size_t next = 0; next < count;) {
			make_wave(&s, &next);
			read_pieces(&s);
			copy_wave(&s);
		}
		status = answer(&s, err);
	}
	lade__staging_free(&s.staging);
	free(s.owner);
	free(s.pieces);
	free(s.progress);
	free(s.errors);
	return status;
}
