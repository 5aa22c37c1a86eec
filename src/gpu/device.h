/*
 * device.h: a device in use: its context, its memory pool, its kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_DEVICE_H
#define LADE_BASE_DEVICE_H

#include "gpu/driver.h"
#include "gpu/module.h"

#include <lade/device.h>

#include <pthread.h>

/* A slot of a device's table of kernels. */
typedef struct lade__loaded {
	const lade__kernel *kernel; /* NULL: the slot is free.  Atomic, written last. */
	void *function;             /* CUfunction */
	/* | threads 16 | blocks 16 | of the launch that was last asked about, with the shared
	 * memory that the kernel has at most.  Atomic. */
	uint32_t occupancy;
} lade__loaded;

/* One for each of the driver's devices; they live as long as the process. */
typedef struct lade__device {
	const lade__driver *driver;
	int32_t number;
	int handle; /* CUdevice */
	lade_device_info info;
	bool reads_pageable; /* by the host's page tables: copies may read it when they run */
	lade_status status;  /* of looking at it; a device that could not be is of no use */
	lade_error error;
	pthread_mutex_t mutex; /* held by who makes one of the following */
	void *context;         /* the primary one; NULL until lade__device_enter().  Atomic. */
	void *pool;            /* NULL until wanted, and for ever where there are none.  Atomic. */
	void *order;           /* lade__device_order()'s stream; NULL until wanted.  Atomic. */
	void *modules[LADE__IMAGES_MAX]; /* by image; NULL: not loaded yet */
	lade__loaded kernels[LADE__KERNELS_MAX];
} lade__device;

/* The device of that number.  Fails as lade_device_get_info() does. */
lade_status lade__device_get(int32_t number, lade__device **out, lade_error *err);

/*
 * Makes the device's primary context the calling thread's, until lade__device_leave(), which puts
 * back what was there.  Calls nest.  Between the two the driver's functions can be used: LADE__CU.
 */
lade_status lade__device_enter(lade__device *device, lade_error *err);
void lade__device_leave(lade__device *device);

/* Likewise; gets the device too.  On failure '*out' is NULL and there is nothing to leave. */
lade_status lade__device_use(int32_t number, lade__device **out, lade_error *err);

/*
 * The library's memory pool on an entered device, made at the first call.  '*pool' is NULL where
 * the device has no pools.
 */
lade_status lade__device_pool(lade__device *device, void **pool, lade_error *err);

/* A stream of the library's own, made at the first call, on which memory is given back behind marks
 * of others.  Fails: as lade_stream_new() */
lade_status lade__device_order(int32_t number, lade_stream *out, lade_error *err);

/* One reference more: each wants a lade_mark_free(). */
lade_mark *lade__mark_ref(lade_mark *mark);
/* As lade_stream_follow(), also for a stream of another device than the mark's. */
lade_status lade__mark_follow(const lade_mark *mark, int32_t device, lade_stream stream,
                              lade_error *err);

/* Allocators of lade_allocator_default(); in device_memory.c. */
extern const lade_allocator lade__allocator_pinned, lade__allocator_managed,
	lade__allocator_device;

#endif
