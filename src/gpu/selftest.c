/*
 * selftest.c: lade_device_check(), one kernel from beginning to end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"

#include "base/try.h"

/* Not a multiple of any block size, so that the last block has idle threads. */
#define WORDS 100003u
#define SIZE ((size_t)WORDS * sizeof(uint32_t))
#define THREADS 256u
#define ALIGN 256

static const lade__kernel add_kernel = {"selftest", "lade_selftest_add", 0};

static uint32_t pattern(uint32_t i)
{
	return i * 2654435761u + 12345u;
}

static lade_status take(const lade_allocator *allocator, lade_place place, lade_stream stream,
                        void **out, lade_error *err)
{
	*out = allocator->alloc(allocator->ctx, SIZE, ALIGN, place, stream);
	if (*out)
		return LADE_OK;
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "device %d: no %zu bytes of %s memory",
	                 (int)place.device, SIZE, lade_kind_name(place.kind));
}

/* Pinned words go to the device, are added to there, and come back. */
static lade_status add_one(lade__device *d, lade_stream stream, uint32_t *host, void *memory,
                           lade_error *err)
{
	lade__address address = lade__address_of(memory);
	uint32_t count = WORDS;
	void *arguments[] = {&address, &count};
	lade__launch launch = {
		.blocks = (WORDS + THREADS - 1) / THREADS,
		.threads = THREADS,
		.stream = stream,
	};
	lade_status status;

	for (uint32_t i = 0; i < WORDS; i++)
		host[i] = pattern(i);
	TRY(LADE__CU(d, cuMemcpyHtoDAsync, address, host, SIZE, stream));
	TRY(lade__kernel_launch(d, &add_kernel, &launch, arguments, err));
	TRY(LADE__CU(d, cuMemcpyDtoHAsync, host, address, SIZE, stream));
	TRY(LADE__CU(d, cuStreamSynchronize, stream));
	for (uint32_t i = 0; i < WORDS; i++)
		if (host[i] != pattern(i) + 1)
			return lade_fail(err, LADE_E_DEVICE, LADE_NO_OFFSET,
			                 "device %d: word %u of the self-test is %u, not %u",
			                 (int)d->number, i, host[i], pattern(i) + 1);
out:
	return status;
}

lade_status lade_device_check(int32_t device, lade_error *err)
{
	const lade_allocator *pinned = &lade__allocator_pinned, *own = &lade__allocator_device;
	lade_place host_place = {LADE_PINNED, device}, own_place = {LADE_DEVICE, device};
	void *host = NULL, *memory = NULL, *function;
	lade_stream stream = NULL;
	lade__device *d;
	lade_status status = lade__device_use(device, &d, err);

	if (status != LADE_OK)
		return status;
	/* Finds out whether there are kernels before it takes any memory. */
	TRY(lade__kernel_get(d, &add_kernel, &function, err));
	TRY(lade_stream_new(device, &stream, err));
	TRY(take(pinned, host_place, NULL, &host, err));
	TRY(take(own, own_place, stream, &memory, err));
	TRY(add_one(d, stream, host, memory, err));
out:
	if (memory)
		own->free(own->ctx, memory, SIZE, ALIGN, own_place, stream);
	/* Nothing may still be copying from or to the block. */
	if (status != LADE_OK && stream)
		d->driver->cuStreamSynchronize(stream);
	if (host)
		pinned->free(pinned->ctx, host, SIZE, ALIGN, host_place, NULL);
	lade_stream_free(device, stream);
	lade__device_leave(d);
	return status;
}
