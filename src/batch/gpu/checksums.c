/*
 * checksums.c: checksums of bytes on devices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"
#include "checksum/checksum.h"
#include "checksum/gpu.h"

#include <stdlib.h>
#include <string.h>

/* The spans of one device: their tables, on the host and there. */
typedef struct tables {
	const lade_cspan *spans;
	const size_t *index; /* of the spans */
	size_t count;
	uint64_t *words; /* addresses, then sizes; then the sums that come back */
	uint64_t largest, total;
} tables;

/* By the device's kernels; behind the work of its default stream, and waits. */
static lade_status by_kernels(lade_engine *engine, lade__device *device, lade_checksum kind,
                              const tables *t, lade_error *err)
{
	size_t n = t->count, words = 3 * 8 * n, room = lade__gpu_round(words + 4 * n);
	size_t work_size = lade__gpu_checksum_workspace(kind, n, t->largest);
	lade__gpu_streams *streams = NULL;
	lade_stream stream = NULL;
	lade__address block = 0;
	bool begun = false;
	lade_status status;
	if (work_size > SIZE_MAX - room)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "too many spans: %zu", n);
	TRY(lade__gpu_streams_take(engine, device, &streams, err));
	TRY(lade__gpu_streams_kernels(device, streams, 0, &stream, err));
	TRY(lade__gpu_streams_follow(device, streams, stream, NULL, err));
	begun = true;
	TRY(lade__gpu_alloc(engine, device, stream, room + work_size, &block, err));
	TRY(LADE__CU(device, cuMemcpyHtoDAsync, block, t->words, 2 * 8 * n, stream));
	lade__gpu_work work = {.device = device,
	                       .stream = stream,
	                       .src = block,
	                       .src_size = block + 8 * n,
	                       .status = block + words,
	                       .count = n,
	                       .largest = t->largest,
	                       .total = t->total,
	                       .workspace = block + room,
	                       .workspace_size = work_size};
	TRY(lade__gpu_checksum_tell(&work, kind, block + 2 * 8 * n, err));
	TRY(LADE__CU(device, cuMemcpyDtoHAsync, t->words, block + 2 * 8 * n, 8 * n, stream));
	TRY(LADE__CU(device, cuStreamSynchronize, stream));
out:
	if (streams && begun) {
		lade__gpu_free(engine, device, stream, block, room + work_size);
		if (status != LADE_OK)
			lade__gpu_streams_wait(device, streams);
	}
	if (streams)
		lade__gpu_streams_give(engine, streams);
	return status;
}

/* By the host, of copies, one span after the other. */
static lade_status by_host(const lade_engine *engine, lade_checksum kind, const tables *t,
                           lade_error *err)
{
	lade_status status = LADE_OK;
	uint8_t *copy = malloc((size_t)t->largest + 1);
	if (!copy)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a copy of %llu bytes",
		                 (unsigned long long)t->largest);
	for (size_t i = 0; i < t->count; i++) {
		const lade_cspan *s = &t->spans[t->index[i]];
		if (s->size)
			TRY(lade__gpu_fetch(s->place.device, s->data, s->size, copy, err));
		t->words[i] = lade__checksum(kind, engine->cpu, copy, s->size);
	}
out:
	free(copy);
	return status;
}

/* The spans of one device; each sum goes to its span's place. */
static lade_status on_device(lade_engine *engine, int32_t number, lade_checksum kind, tables t,
                             uint64_t *sums, lade_error *err)
{
	size_t count = t.count;
	lade__device *device;
	lade_status status = lade__device_use(number, &device, err);
	if (status != LADE_OK)
		return status;
	t.words = count < SIZE_MAX / 64 ? malloc(2 * 8 * count) : NULL;
	if (!t.words) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu spans",
		                   count);
		goto out;
	}
	for (size_t i = 0; i < count; i++) {
		const lade_cspan *s = &t.spans[t.index[i]];
		t.words[i] = lade__address_of(s->data);
		t.words[count + i] = s->size;
		t.largest = s->size > t.largest ? s->size : t.largest;
		t.total += s->size < UINT64_MAX - t.total ? s->size : 0;
	}
	bool kernels = device->info.kernels && lade__gpu_checksum_known(kind) &&
	               t.largest <= LADE_CHUNK_MAX && count <= INT32_MAX;
	if (kernels)
		TRY(by_kernels(engine, device, kind, &t, err));
	else
		TRY(by_host(engine, kind, &t, err));
	for (size_t i = 0; i < count; i++)
		sums[t.index[i]] = t.words[i];
out:
	free(t.words);
	lade__device_leave(device);
	return status;
}

lade_status lade__gpu_checksums(lade_engine *engine, lade_checksum kind, const lade_cspan *spans,
                                size_t count, uint64_t *sums, lade_error *err)
{
	size_t *index = NULL;
	lade_status status = LADE_OK;
	for (int64_t last = -1, number; status == LADE_OK; last = number) {
		size_t n = 0;
		/* Devices in the order of their numbers. */
		number = INT64_MAX;
		for (size_t i = 0; i < count; i++)
			if (!lade_kind_is_host(spans[i].place.kind) &&
			    spans[i].place.device > last && spans[i].place.device < number)
				number = spans[i].place.device;
		if (number == INT64_MAX)
			break;
		if (!index)
			index = count < SIZE_MAX / 8 ? malloc(count * sizeof *index) : NULL;
		if (!index) {
			status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                   "no memory for %zu spans", count);
			break;
		}
		for (size_t i = 0; i < count; i++)
			if (!lade_kind_is_host(spans[i].place.kind) &&
			    spans[i].place.device == number)
				index[n++] = i;
		tables t = {.spans = spans, .index = index, .count = n};
		status = on_device(engine, (int32_t)number, kind, t, sums, err);
	}
	free(index);
	return status;
}
