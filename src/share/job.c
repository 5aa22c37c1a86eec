/*
 * job.c: writes the copies of a plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/job.h"

#include "base/support.h"
#include "base/try.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Where bytes go: memory, or a descriptor.  New pages of a memfd are written in half the time that
 * mapping them takes. */
typedef struct sink {
	uint8_t *to;
	int fd;
	lade__device *device; /* NULL: none */
	lade__address base;   /* on it */
	lade_stream stream;
	uint64_t at;
	size_t held;
	uint8_t bytes[8192]; /* what is made piece by piece */
} sink;

static lade_status put(sink *s, const void *bytes, uint64_t size, lade_error *err)
{
	const uint8_t *from = bytes;

	if (s->device && size) {
		/* The bytes may be gone when the call returns. */
		lade_status status =
			lade__device_write(s->device, from, size, s->base + s->at, err);
		if (status != LADE_OK)
			return status;
	} else if (s->to && size) {
		memcpy(s->to + s->at, from, size);
	}
	for (uint64_t done = 0; !s->to && !s->device && done < size;) {
		ssize_t n = pwrite(s->fd, from + done, size - done, (off_t)(s->at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return lade_fail(
				err, errno == ENOSPC || errno == ENOMEM ? LADE_E_NOMEM : LADE_E_IO,
				LADE_NO_OFFSET, "shared memory: %llu of %llu bytes: %s",
				(unsigned long long)done, (unsigned long long)size,
				strerror(errno));
		done += (uint64_t)n;
	}
	s->at += size;
	return LADE_OK;
}

static lade_status flush(sink *s, lade_error *err)
{
	size_t held = s->held;

	s->held = 0;
	return put(s, s->bytes, held, err);
}

/* 1 to 16 bytes. */
static lade_status piece(sink *s, const void *bytes, size_t size, lade_error *err)
{
	lade_status status = LADE_OK;

	if (s->held + size > sizeof s->bytes)
		status = flush(s, err);
	memcpy(s->bytes + s->held, bytes, size);
	s->held += size;
	return status;
}

int64_t lade__element(const void *from, size_t width, uint64_t at)
{
	const uint8_t *p = (const uint8_t *)from + at * width;
	int16_t two;
	int32_t four;
	int64_t eight;

	switch (width) {
	case 2:
		memcpy(&two, p, 2);
		return two;
	case 4:
		memcpy(&four, p, 4);
		return four;
	default:
		memcpy(&eight, p, 8);
		return eight;
	}
}

uint64_t lade__count_nulls(const uint8_t *bits, uint64_t off, uint64_t count)
{
	uint64_t ones = 0, at = off, end = off + count;

	while (at < end && at % 8)
		ones += lade__bit(bits, at++);
	for (; end - at >= 64; at += 64) {
		uint64_t word;
		memcpy(&word, bits + at / 8, 8);
		ones += (uint64_t)__builtin_popcountll(word);
	}
	while (at < end)
		ones += lade__bit(bits, at++);
	return count - ones;
}

bool lade__pack(lade__packing *p, uint64_t size)
{
	bool next = p->in_buffer && p->in_buffer + size > LADE__VIEW_BUFFER_MAX;

	if (next) {
		p->buffer++;
		p->in_buffer = 0;
	}
	p->in_buffer += size;
	p->total += size;
	return next;
}

static bool is_null(const lade__job *j, uint64_t i)
{
	return j->validity && !lade__bit(j->validity, j->bit + i);
}

static lade_status put_bits(sink *s, const lade__job *j, lade_error *err)
{
	const uint8_t *bits = j->src;
	uint64_t last = (j->off + j->count - 1) / 8; /* the last byte that has some */
	unsigned shift = j->off % 8;
	lade_status status = LADE_OK;

	for (uint64_t i = 0; i < j->size && status == LADE_OK; i++) {
		uint64_t from = j->off / 8 + i;
		unsigned value = bits[from] >> shift;
		if (shift && from < last)
			value |= (unsigned)bits[from + 1] << (8 - shift);
		if (i + 1 == j->size && j->count % 8)
			value &= (1u << j->count % 8) - 1;
		uint8_t byte = (uint8_t)value;
		status = piece(s, &byte, 1, err);
	}
	return status;
}

static lade_status put_rebased(sink *s, const lade__job *j, lade_error *err)
{
	lade_status status = LADE_OK;

	for (uint64_t i = 0; i < j->count && status == LADE_OK; i++) {
		int64_t value = lade__element(j->src, j->width, i) - j->base;
		if (is_null(j, i) || (j->sizes && !lade__element(j->sizes, j->width, i)))
			value = 0;
		value = value < j->most ? value : j->most;
		uint8_t bytes[8];
		lade__le_put(bytes, (uint64_t)value, j->width);
		status = piece(s, bytes, j->width, err);
	}
	return status;
}

static lade_status put_dense(sink *s, const lade__job *j, lade_error *err)
{
	lade_status status = LADE_OK;

	for (uint64_t i = 0; i < j->count && status == LADE_OK; i++) {
		uint8_t bytes[4];
		int64_t value = lade__element(j->src, 4, i) - j->bases[j->ids[i] & 127];
		lade__le_put(bytes, (uint64_t)value, 4);
		status = piece(s, bytes, 4, err);
	}
	return status;
}

/* VIEWS and GATHER: both see the strings in the same order. */
static lade_status put_views(sink *s, const lade__job *j, lade_error *err)
{
	lade__packing packing = {0};
	lade_status status = LADE_OK;

	for (uint64_t i = 0; i < j->count && status == LADE_OK; i++) {
		uint8_t view[16] = {0};
		if (!is_null(j, i))
			memcpy(view, (const uint8_t *)j->src + 16 * i, 16);
		uint32_t size = lade__le32(view);
		if (size > LADE__VIEW_INLINE) {
			const uint8_t *from = j->data[lade__le32(view + 8)];
			from += lade__le32(view + 12);
			lade__pack(&packing, size);
			lade__le_put(view + 8, packing.buffer, 4);
			lade__le_put(view + 12, packing.in_buffer - size, 4);
			if (j->kind == LADE__JOB_GATHER)
				status = put(s, from, size, err);
		}
		if (j->kind == LADE__JOB_VIEWS && status == LADE_OK)
			status = piece(s, view, 16, err);
	}
	return status;
}

static lade_status run(sink *s, const lade__job *j, lade_error *err)
{
	switch (j->kind) {
	case LADE__JOB_BYTES:
		return put(s, j->src, j->size, err);
	case LADE__JOB_BITS:
		return put_bits(s, j, err);
	case LADE__JOB_REBASE:
		return put_rebased(s, j, err);
	case LADE__JOB_DENSE:
		return put_dense(s, j, err);
	case LADE__JOB_VIEWS:
	case LADE__JOB_GATHER:
		return put_views(s, j, err);
	default:
		return LADE_OK;
	}
}

static lade_status run_all(sink *s, const lade__emitted *plan, lade_error *err)
{
	lade_status status = LADE_OK;

	s->held = 0;
	for (size_t i = 0; i < plan->job_count; i++) {
		const lade__job *j = &plan->jobs[i];
		s->at = j->dst;
		if (j->far) {
			TRY(LADE__CU(s->device, cuMemcpyAsync, s->base + s->at,
			             lade__address_of(j->src), j->size, s->stream));
		} else {
			TRY(run(s, j, err));
			TRY(flush(s, err));
		}
	}
out:
	return status;
}

lade_status lade__emit_copy(const lade__emitted *plan, uint8_t *to, int fd, lade_error *err)
{
	sink s;

	s.device = NULL;
	s.to = to;
	s.fd = fd;
	return run_all(&s, plan, err);
}

/* Those from the device are enqueued, and run beside what comes from the host. */
lade_status lade__emit_copy_device(const lade__emitted *plan, lade__address to, lade_error *err)
{
	lade__device *d = plan->device;
	sink s;
	lade_status status = lade__device_enter(d, err);

	if (status != LADE_OK)
		return status;
	s.device = d;
	s.base = to;
	s.to = NULL;
	s.stream = NULL;
	TRY(lade_stream_new(d->number, &s.stream, err));
	status = run_all(&s, plan, err);
	/* Also after a failure: the copies write to memory that goes. */
	lade_status last = LADE__CU(d, cuStreamSynchronize, s.stream);
	status = status == LADE_OK ? last : status;
out:
	lade_stream_free(d->number, s.stream);
	lade__device_leave(d);
	return status;
}
