/*
 * support.c: costs and memory, shared by codecs and filters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/support.h"

/* Threads share caches and memory: of 16 each is three quarters as fast as one alone (LZ4). */
#define SHARING 48

double lade__codec_cost(const lade_workload *workload, double chunk_ns, double rate)
{
	double count = (double)workload->count;
	double all = count * chunk_ns + (double)workload->total / rate;
	double alone = chunk_ns + (double)workload->largest / rate;
	double threads = workload->threads ? (double)workload->threads : 1;
	if (threads > count)
		threads = count > 1 ? count : 1;
	all *= (1 + threads / SHARING) / threads;
	return all > alone ? all : alone;
}

lade_status lade__place_check(lade_place place, const char *what, lade_error *err)
{
	if ((unsigned)place.kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s: memory kind %d is unknown",
		                 what, (int)place.kind);
	if (!lade_kind_is_host(place.kind))
		return lade_fail(err, LADE_E_NO_DEVICE, LADE_NO_OFFSET,
		                 "%s is on device %d, and there is no device driver", what,
		                 place.device);
	return LADE_OK;
}

#define HOST_ALIGN 64

void *lade__host_alloc(const lade_allocator *host, size_t size)
{
	return host->alloc(host->ctx, size, HOST_ALIGN, LADE_PLACE_HOST, NULL);
}

void lade__host_free(const lade_allocator *host, void *ptr, size_t size)
{
	if (ptr)
		host->free(host->ctx, ptr, size, HOST_ALIGN, LADE_PLACE_HOST, NULL);
}

/* | size 8 | unused 56 | the caller's bytes, aligned alike | */
#define FRONT HOST_ALIGN

void *lade__sized_alloc(const lade_allocator *host, size_t size)
{
	if (size > SIZE_MAX - FRONT)
		return NULL;
	size_t *front = lade__host_alloc(host, size + FRONT);
	if (!front)
		return NULL;
	*front = size;
	return (uint8_t *)front + FRONT;
}

void lade__sized_free(const lade_allocator *host, void *ptr)
{
	if (!ptr)
		return;
	size_t *front = (size_t *)(void *)((uint8_t *)ptr - FRONT);
	lade__host_free(host, front, *front + FRONT);
}

lade_status lade__little_check(const lade_stage *stage, lade_dtype dtype, lade_error *err)
{
	if (!lade_dtype_is_big(dtype))
		return LADE_OK;
	return lade_fail(
		err, LADE_E_DTYPE, LADE_NO_OFFSET,
		"%s: big-endian %s is not supported: put byteswap(%zu) before it, and give the "
		"little-endian type",
		stage->algorithm->name, lade_dtype_text(dtype), lade_dtype_size(dtype));
}
