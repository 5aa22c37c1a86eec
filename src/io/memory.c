/*
 * memory.c: a source that is memory of any kind.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/io.h"

#include <stdlib.h>
#include <string.h>

static lade_status read_one(const lade_cspan *from, lade_range *range, lade_stream stream,
                            uint64_t *devices, lade_error *err)
{
	uint64_t off;
	size_t size;
	if (range->key)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "memory has no keys: key must be NULL");
	range->object_size = from->size;
	if (range->want)
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "memory has no version, but one was requested");
	lade_status status = lade_range_place(range, from->size, &off, &size, err);
	if (status != LADE_OK)
		return status;
	range->size = size;
	if (size == 0)
		return LADE_OK;
	lade_cspan src = {(const uint8_t *)from->data + (size_t)off, size, from->place};
	if (!lade_kind_is_host(from->place.kind) || !lade_kind_is_host(range->dst.place.kind))
		return lade__io_copy(range->dst, src, stream, devices, err);
	memcpy(range->dst.data, src.data, size);
	return LADE_OK;
}

/* Copies that have been enqueued are not done until all have: their answers come behind that. */
static void memory_read(void *ctx, lade_reading *reading, size_t count)
{
	lade_range *ranges = reading->ranges;
	const lade_cspan *from = ctx;
	lade_stream stream = lade_reading_options(reading)->stream;
	lade_error err, wait_err;
	uint64_t devices = 0;
	for (size_t i = 0; i < count; i++) {
		lade_status status = read_one(from, &ranges[i], stream, &devices, &err);
		bool enqueued = status == LADE_OK && ranges[i].size &&
		                (!lade_kind_is_host(from->place.kind) ||
		                 !lade_kind_is_host(ranges[i].dst.place.kind));
		if (!enqueued)
			lade_reading_done(reading, i, status, &err);
	}
	if (!devices)
		return;
	lade_status status = lade__io_copies_wait(devices, stream, &wait_err);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].status == LADE__PENDING)
			lade_reading_done(reading, i, status, &wait_err);
}

static lade_cspan memory_view(void *ctx)
{
	lade_cspan *from = ctx;
	return from->data ? *from : lade_host_cspan("", 0);
}

lade_status lade_source_memory_open(lade_cspan memory, lade_source *out, lade_error *err)
{
	static const lade_source_ops ops = {
		.struct_size = sizeof ops,
		.flags = LADE_SOURCE_ANY_PLACE | LADE_SOURCE_LOCAL,
		.read = memory_read,
		.view = memory_view,
		.close = free,
	};
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = (lade_source){0};
	lade_status status =
		lade__io_place_check(memory.place, memory.data, memory.size, "source", 0, err);
	if (status != LADE_OK)
		return status;
	lade_cspan *from = malloc(sizeof *from);
	if (!from)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a source");
	*from = memory;
	*out = (lade_source){&ops, from};
	return LADE_OK;
}
