/*
 * reading.c: one call's ranges, from the request to the answer: what sources say is checked here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/io.h"

#include <lade/version.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often a call that waits asks its token: 50 ms. */
#define ASK_NS 50000000

bool lade_object_version_equal(const lade_object_version *a, const lade_object_version *b)
{
	return a && b && a->size && a->size <= sizeof a->bytes && a->size == b->size &&
	       memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* ---- where a range is ------------------------------------------------------------------- */

lade_status lade_range_place(const lade_range *range, uint64_t object_size, uint64_t *off,
                             size_t *size, lade_error *err)
{
	if (!range || !off || !size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "lade_range_place: range, off or size is NULL");
	uint64_t cap = range->dst.size;
	*off = range->off;
	*size = 0;
	if (range->kind == LADE_RANGE_LAST) {
		*size = (size_t)(cap < object_size ? cap : object_size);
		*off = object_size - *size;
		return LADE_OK;
	}
	if (range->off > object_size ||
	    (range->kind == LADE_RANGE_AT && cap > object_size - range->off))
		return lade_fail(err, LADE_E_RANGE, object_size,
		                 "%" PRIu64 " bytes at %" PRIu64 ", the object has %" PRIu64, cap,
		                 range->off, object_size);
	if (range->kind == LADE_RANGE_AT) {
		*size = range->dst.size;
		return LADE_OK;
	}
	if (object_size - range->off > cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "%" PRIu64 " bytes from %" PRIu64
		                 " to the end, the destination has %" PRIu64,
		                 object_size - range->off, range->off, cap);
	*size = (size_t)(object_size - range->off);
	return LADE_OK;
}

/* ---- answers ------------------------------------------------------------------------------ */

/* What is wrong with an answer that says LADE_OK. */
static lade_status check_answer(const lade_range *range, lade_error *err)
{
	uint64_t off;
	size_t size = range->dst.size;
	if (range->size > range->dst.size)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "the source reported %zu bytes, %zu were requested", range->size,
		                 range->dst.size);
	if (range->object_size != LADE_SIZE_UNKNOWN) {
		lade_status status = lade_range_place(range, range->object_size, &off, &size, err);
		if (status != LADE_OK)
			return status;
	}
	bool exact = range->kind == LADE_RANGE_AT || range->object_size != LADE_SIZE_UNKNOWN;
	if (exact && range->size != size)
		return lade_fail(err, LADE_E_TRUNCATED, LADE_NO_OFFSET,
		                 "the source returned %zu bytes, it has %zu", range->size, size);
	if (range->want && range->version && range->version->size &&
	    !lade_object_version_equal(range->want, range->version))
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "the object is not the requested version");
	return LADE_OK;
}

/* Notes a failure; the mutex is held. */
static void note_failure(lade_reading *r, size_t index, lade_status status, const lade_error *err)
{
	lade_error error;
	if (err && err->status == status && err->message[0])
		error = *err;
	else
		lade_fail(&error, status, LADE_NO_OFFSET, "%s", lade_status_text(status));
	r->ranges[index].size = 0;
	if (r->options->errors)
		r->options->errors[index] = error;
	if (index < r->failed) {
		r->failed = index;
		r->status = status;
		r->error = error;
	}
}

void lade_reading_done(lade_reading *r, size_t index, lade_status status, const lade_error *err)
{
	lade_error wrong;
	void (*answered_all)(void *ctx) = NULL;
	if (index >= r->count)
		return;
	void *ctx = r->all_ctx;
	lade_range *range = &r->ranges[index];
	pthread_mutex_lock(&r->mutex);
	if (range->status == LADE__PENDING) {
		if (status == LADE_OK) {
			status = check_answer(range, &wrong);
			err = &wrong;
		}
		range->status = status;
		if (status != LADE_OK)
			note_failure(r, index, status, err);
		if (--r->left == 0) {
			answered_all = r->answered_all;
			pthread_cond_signal(&r->answered);
		}
	}
	pthread_mutex_unlock(&r->mutex);
	if (answered_all)
		answered_all(ctx);
}

lade_range *lade_reading_range(lade_reading *reading, size_t index)
{
	return &reading->ranges[index];
}

size_t lade_reading_part_count(const lade_reading *r, size_t index)
{
	return r->parts.parts ? r->parts.first[index + 1] - r->parts.first[index] : 1;
}

lade_part lade_reading_part(const lade_reading *r, size_t index, size_t part)
{
	if (r->parts.parts)
		return r->parts.parts[r->parts.first[index] + part];
	return (lade_part){.dst = r->ranges[index].dst};
}

/* The first part that ends behind the byte 'at'. */
static size_t part_behind(const lade_reading *r, size_t index, size_t at)
{
	size_t low = 0, high = lade_reading_part_count(r, index);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		lade_part p = lade_reading_part(r, index, middle);
		if (p.at + p.dst.size > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

lade_status lade_reading_put(lade_reading *r, size_t index, size_t at, lade_cspan data,
                             lade_error *err)
{
	size_t count = lade_reading_part_count(r, index);
	uint64_t devices = 0;
	lade_status status = LADE_OK;
	for (size_t k = part_behind(r, index, at); k < count && status == LADE_OK; k++) {
		lade_part p = lade_reading_part(r, index, k);
		size_t into = at > p.at ? at - p.at : 0;
		size_t skip = p.at > at ? p.at - at : 0;
		if (skip >= data.size)
			break;
		size_t n = data.size - skip;
		n = n < p.dst.size - into ? n : p.dst.size - into;
		lade_span to = {(uint8_t *)p.dst.data + into, n, p.dst.place};
		lade_cspan from = {(const uint8_t *)data.data + skip, n, data.place};
		if (lade_kind_is_host(to.place.kind) && lade_kind_is_host(from.place.kind))
			memcpy(to.data, from.data, n);
		else
			status = lade__io_copy(to, from, r->options->stream, &devices, err);
	}
	if (devices) {
		lade_status waited = lade__io_copies_wait(devices, r->options->stream,
		                                          status == LADE_OK ? err : NULL);
		status = status == LADE_OK ? waited : status;
	}
	return status;
}

const lade_io_options *lade_reading_options(const lade_reading *reading)
{
	return reading->options;
}

bool lade_reading_cancelled(lade_reading *reading)
{
	return lade__stopped(&reading->stop);
}

/* ---- a call ------------------------------------------------------------------------------- */

void lade__reading_init(lade_reading *r, lade_range *ranges, size_t count,
                        const lade_io_options *options)
{
	*r = (lade_reading){.options = options,
	                    .ranges = ranges,
	                    .count = count,
	                    .left = count,
	                    .stop = lade__stop_of(options->cancel),
	                    .failed = SIZE_MAX};
	pthread_mutex_init(&r->mutex, NULL);
	pthread_cond_init(&r->answered, NULL);
	for (size_t i = 0; i < count; i++) {
		ranges[i].status = LADE__PENDING;
		ranges[i].size = 0;
		ranges[i].object_size = LADE_SIZE_UNKNOWN;
		if (ranges[i].version)
			ranges[i].version->size = 0;
	}
}

void lade__reading_start(lade_reading *r, lade_source source)
{
	if (!lade__stopped(&r->stop)) {
		source.ops->read(source.ctx, r, r->count);
		return;
	}
	for (size_t i = 0, count = r->count; i < count; i++)
		lade_reading_done(r, i, LADE_E_CANCELLED, NULL);
}

void lade__reading_begin(lade_reading *r, lade_source source, lade_range *ranges, size_t count,
                         const lade_io_options *options)
{
	lade__reading_init(r, ranges, count, options);
	lade__reading_start(r, source);
}

lade_status lade__reading_end(lade_reading *r, lade_error *err)
{
	struct timespec until;
	pthread_mutex_lock(&r->mutex);
	while (r->left) {
		if (!r->options->cancel) {
			pthread_cond_wait(&r->answered, &r->mutex);
			continue;
		}
		/* The token may have to be asked; sources then see it. */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += ASK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&r->answered, &r->mutex, &until);
		pthread_mutex_unlock(&r->mutex);
		lade__stopped(&r->stop);
		pthread_mutex_lock(&r->mutex);
	}
	pthread_mutex_unlock(&r->mutex);
	pthread_cond_destroy(&r->answered);
	pthread_mutex_destroy(&r->mutex);
	if (r->failed == SIZE_MAX)
		return LADE_OK;
	if (err)
		*err = r->error;
	return r->status;
}

#if LADE_VERSION <= 200 && !defined(LADE_TEST_GROWN)
/* Until 0.2.0 is released, a struct that grows moves its line in io.h. */
_Static_assert(LADE__RANGE_0_2 == sizeof(lade_range) && LADE__WRITE_0_2 == sizeof(lade_write),
               "0.2.0's structs have other last fields");
#endif

lade_status lade__io_options_read(lade_io_options *options, const lade_io_options *given,
                                  size_t first, lade_error *err)
{
	lade_status status =
		lade__options_read(options, sizeof *options, given, "io options", err);
	return status == LADE_OK
	               ? lade__size_given(&options->request_size, first, "request_size", err)
	               : status;
}

lade_status lade__ops_check(const void *ops, size_t own, size_t first, const char *name,
                            lade_error *err)
{
	const unsigned char *bytes = ops;
	size_t size;
	if (!ops)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL", name);
	memcpy(&size, ops, sizeof size);
	if (size < first || size > LADE__STRUCT_SIZE_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s: struct_size is %zu, want %zu to %d", name, size, first,
		                 LADE__STRUCT_SIZE_MAX);
	for (size_t i = own; i < size; i++)
		if (bytes[i])
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "%s: byte %zu is not zero, this library's has %zu", name,
			                 i, own);
	return LADE_OK;
}

lade_status lade__source_check(lade_source source, lade_error *err)
{
	lade_status status = lade__ops_check(source.ops, sizeof *source.ops,
	                                     LADE__SIZE_TO(lade_source_ops, close), "source.ops",
	                                     err);
	if (status == LADE_OK && !source.ops->read)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "source.ops->read is NULL");
	return status;
}

void lade__ranges_fail(lade_range *ranges, size_t count, const lade_io_options *options,
                       lade_status status, const lade_error *err)
{
	for (size_t i = 0; i < count; i++) {
		ranges[i].status = status;
		ranges[i].size = 0;
		if (options->errors)
			options->errors[i] = *err;
	}
}

lade_status lade__ranges_check(lade_source source, const lade_range *ranges, size_t count,
                               bool *devices, lade_error *err)
{
	lade_status status = lade__source_check(source, err);
	if (status == LADE_OK && !ranges && count)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "ranges is NULL");
	for (size_t i = 0; i < count && status == LADE_OK; i++) {
		const lade_span *dst = &ranges[i].dst;
		status = lade__io_place_check(dst->place, dst->data, dst->size, "range", i, err);
		if (status == LADE_OK && (unsigned)ranges[i].kind > LADE_RANGE_LAST)
			status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                   "range %zu: kind %d is unknown", i, (int)ranges[i].kind);
		*devices |= dst->size && !lade_kind_is_host(dst->place.kind);
	}
	return status;
}

static lade_status read_ranges(lade_source source, lade_range *ranges, size_t count,
                               const lade_io_options *options, lade_error *err)
{
	lade_reading reading;
	lade_error inner;
	bool devices = false;
	lade_status status = lade__ranges_check(source, ranges, count, &devices, err);
	if (status != LADE_OK && ranges)
		lade__ranges_fail(ranges, count, options, status, err);
	if (status != LADE_OK || count == 0)
		return status;
	if (devices && !(source.ops->flags & LADE_SOURCE_ANY_PLACE))
		return lade__io_read_staged(source, ranges, count, options, err);
	lade__reading_begin(&reading, source, ranges, count, options);
	status = lade__reading_end(&reading, &inner);
	if (status == LADE_OK)
		return LADE_OK;
	return lade_fail(err, status, inner.offset, "range %zu: %s", reading.failed, inner.message);
}

lade_status lade_source_read(lade_source source, lade_range *ranges, size_t count,
                             const lade_io_options *given, lade_error *err)
{
	lade_io_options options;
	lade_error unwanted;
	lade__array array = {.own = ranges, .count = count, .own_size = sizeof *ranges};
	lade_status status = lade__io_options_read(&options, given, LADE__RANGE_0_2, err);
	if (status == LADE_OK)
		status = lade__array_open(&array, options.request_size, "range", err);
	if (status != LADE_OK)
		return status;
	status = read_ranges(source, array.own, count, &options, err ? err : &unwanted);
	lade__array_close(&array, true);
	return status;
}

void lade_source_close(lade_source source)
{
	if (source.ops && source.ops->close)
		source.ops->close(source.ctx);
}
