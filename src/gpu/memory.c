/*
 * memory.c: the names of the kinds of memory and their default allocators.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/device.h"

#include <stdlib.h>

const char *lade_kind_name(lade_kind kind)
{
	switch (kind) {
	case LADE_HOST:
		return "host";
	case LADE_PINNED:
		return "pinned";
	case LADE_MANAGED:
		return "managed";
	case LADE_DEVICE:
		return "device";
	}
	return "?";
}

static void *host_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream)
{
	(void)ctx, (void)place, (void)stream;
	/* posix_memalign() asks for at least a pointer's alignment; unlike aligned_alloc() it does
	 * not ask for a size that is a multiple of it. */
	if (align < sizeof(void *))
		align = sizeof(void *);
	void *ptr = NULL;
	return posix_memalign(&ptr, align, size) ? NULL : ptr;
}

static void host_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                      lade_stream stream)
{
	(void)ctx, (void)size, (void)align, (void)place, (void)stream;
	free(ptr);
}

const lade_allocator *lade_allocator_default(lade_kind kind)
{
	static const lade_allocator host = {NULL, host_alloc, host_free};
	static const lade_allocator none = {NULL, NULL, NULL};
	switch (kind) {
	case LADE_HOST:
		return &host;
	case LADE_PINNED:
		return &lade__allocator_pinned;
	case LADE_MANAGED:
		return &lade__allocator_managed;
	case LADE_DEVICE:
		return &lade__allocator_device;
	}
	return &none;
}
