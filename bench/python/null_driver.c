/*
 * null_driver.c: a libcuda.so.1 that does nothing: what calls take on it is the host's own time,
 * without the driver's.  Device memory is the host's, copies are made at once, kernels do not run.
 *
 *     cc -std=c11 -O2 -shared -fPIC -Isrc -Iinclude bench/python/null_driver.c -o F/libcuda.so.1
 *
 * Functions of the driver with results have bodies below; 'null_calls' counts the calls of all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/driver.h"

#include <stdlib.h>
#include <string.h>

size_t null_calls;
static size_t handles = 4096;

/* Blocks as large as those before are taken again, as a pool's are. */
static struct {
	void *block;
	size_t size;
} pool[64];

#define CALL(name, symbol, arguments) \
	int name arguments __asm__(symbol); \
	int name arguments

#define DONE \
	null_calls++; \
	return 0

#define NOTHING(name, symbol, ...) \
	int name(void) __asm__(symbol); \
	int name(void) \
	{ \
		DONE; \
	}

NOTHING(cuInit, "cuInit")
NOTHING(cuCtxPushCurrent, "cuCtxPushCurrent_v2")
NOTHING(cuStreamDestroy, "cuStreamDestroy_v2")
NOTHING(cuStreamSynchronize, "cuStreamSynchronize")
NOTHING(cuStreamQuery, "cuStreamQuery")
NOTHING(cuStreamWaitEvent, "cuStreamWaitEvent")
NOTHING(cuThreadExchange, "cuThreadExchangeStreamCaptureMode")
NOTHING(cuEventDestroy, "cuEventDestroy_v2")
NOTHING(cuEventRecord, "cuEventRecord")
NOTHING(cuEventSynchronize, "cuEventSynchronize")
NOTHING(cuEventQuery, "cuEventQuery")
NOTHING(cuMemPoolDestroy, "cuMemPoolDestroy")
NOTHING(cuMemPoolSetAttribute, "cuMemPoolSetAttribute")
NOTHING(cuMemPoolTrimTo, "cuMemPoolTrimTo")
NOTHING(cuMemPoolSetAccess, "cuMemPoolSetAccess")
NOTHING(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer")
NOTHING(cuMemsetD8Async, "cuMemsetD8Async")
NOTHING(cuMemsetD32Async, "cuMemsetD32Async")
NOTHING(cuModuleUnload, "cuModuleUnload")
NOTHING(cuFuncSetAttribute, "cuFuncSetAttribute")
NOTHING(cuLaunchKernel, "cuLaunchKernel")

#define HANDLE(name, symbol, arguments) \
	CALL(name, symbol, arguments) \
	{ \
		*out = (void *)(__atomic_add_fetch(&handles, 64, 0)); \
		DONE; \
	}
HANDLE(cuStreamCreate, "cuStreamCreate", (void **out))
HANDLE(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", (void **out))
HANDLE(cuEventCreate, "cuEventCreate", (void **out))
HANDLE(cuMemPoolCreate, "cuMemPoolCreate", (void **out))
HANDLE(cuModuleLoadDataEx, "cuModuleLoadDataEx", (void **out))
HANDLE(cuModuleGetFunction, "cuModuleGetFunction", (void **out))

#define NUMBER(name, symbol, type, value, arguments) \
	CALL(name, symbol, arguments) \
	{ \
		*(type *)out = (value); \
		DONE; \
	}
NUMBER(cuDriverGetVersion, "cuDriverGetVersion", int, 13000, (void *out))
NUMBER(cuDeviceGetCount, "cuDeviceGetCount", int, 1, (void *out))
NUMBER(cuDeviceGet, "cuDeviceGet", int, 0, (void *out))
NUMBER(cuDeviceTotalMem, "cuDeviceTotalMem_v2", size_t, (size_t)1 << 36, (void *out))
NUMBER(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", void *, pool, (void *out))
NUMBER(cuCtxPopCurrent, "cuCtxPopCurrent_v2", void *, pool, (void *out))
NUMBER(cuStreamGetCtx, "cuStreamGetCtx", void *, pool, (void *stream, void *out))
NUMBER(cuStreamIsCapturing, "cuStreamIsCapturing", int, 0, (void *stream, void *out))
NUMBER(cuEventElapsedTime, "cuEventElapsedTime", float, 1, (void *out))
NUMBER(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", uint64_t, 0,
       (void *pool, int what, void *out))
NUMBER(cuFuncGetAttribute, "cuFuncGetAttribute", int, 0, (void *out))
NUMBER(cuOccupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", int, 2, (void *out))
NUMBER(cuGetErrorName, "cuGetErrorName", const char *, "none", (int result, void *out))
NUMBER(cuGetErrorString, "cuGetErrorString", const char *, "none", (int result, void *out))

CALL(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int *least, int *greatest))
{
	*least = *greatest = 0;
	DONE;
}

CALL(cuDeviceGetName, "cuDeviceGetName", (char *name, int size, int device))
{
	strncpy(name, "null", (size_t)size);
	DONE;
}

CALL(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *text, int size, int device))
{
	strncpy(text, "0000:00:00.0", (size_t)size);
	DONE;
}

CALL(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (void *uuid, int device))
{
	memset(uuid, 0, 16);
	DONE;
}

/* 75 and 76: the compute capability, 9.0; 115: memory pools; the rest are sizes and counts. */
CALL(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))
{
	*value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 115 ? 1 : 2048;
	DONE;
}

CALL(cuMemGetInfo, "cuMemGetInfo_v2", (size_t * left, size_t *total))
{
	*left = *total = (size_t)1 << 36;
	DONE;
}

static void *take(size_t size)
{
	size_t *head;

	size = (size + 511) & ~(size_t)511;
	for (size_t i = 0; i < 64; i++) {
		if (pool[i].size == size) {
			pool[i].size = 0;
			return pool[i].block;
		}
	}
	head = aligned_alloc(512, size + 512);
	memset(head, 0, size + 512);
	head[63] = size;
	return head + 64;
}

static void give(void *block)
{
	for (size_t i = 0; block && i < 64; i++) {
		if (!pool[i].size) {
			pool[i].block = block;
			pool[i].size = ((size_t *)block)[-1];
			return;
		}
	}
}

CALL(cuMemAlloc, "cuMemAlloc_v2", (lade__address * ptr, size_t size))
{
	*ptr = (lade__address)(uintptr_t)take(size);
	DONE;
}

CALL(cuMemAllocManaged, "cuMemAllocManaged", (lade__address * ptr, size_t size, unsigned flags))
{
	*ptr = (lade__address)(uintptr_t)take(size);
	DONE;
}

CALL(cuMemHostAlloc, "cuMemHostAlloc", (void **ptr, size_t size, unsigned flags))
{
	*ptr = take(size);
	DONE;
}

CALL(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",
     (lade__address * ptr, size_t size, void *from, void *stream))
{
	*ptr = (lade__address)(uintptr_t)take(size);
	DONE;
}

CALL(cuMemFree, "cuMemFree_v2", (lade__address ptr))
{
	give((void *)(uintptr_t)ptr);
	DONE;
}

CALL(cuMemFreeHost, "cuMemFreeHost", (void *ptr))
{
	give(ptr);
	DONE;
}

CALL(cuMemFreeAsync, "cuMemFreeAsync", (lade__address ptr, void *stream))
{
	give((void *)(uintptr_t)ptr);
	DONE;
}

#define COPY(name, symbol) \
	CALL(name, symbol, (lade__address dst, lade__address src, size_t size, void *stream)) \
	{ \
		memcpy((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size); \
		DONE; \
	}
COPY(cuMemcpyAsync, "cuMemcpyAsync")
COPY(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2")
COPY(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2")

CALL(cuPointerGetAttribute, "cuPointerGetAttribute",
     (void *value, int attribute, lade__address ptr))
{
	memset(value, 0, 4);
	DONE;
}
