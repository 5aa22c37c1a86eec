/*
 * fake_cuda.c: a libcuda.so.1 for tests of what happens when the driver fails.  It has two devices
 * on host memory; the second one has no pools and is too old for the kernels.  Any call can be made
 * to fail.  It runs one kernel, in C.  Nothing about real devices is learnt from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fake_cuda.h"

#include "base/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAKE __attribute__((visibility("default"))) int

static fake_cuda_state state = {.devices = 2};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local void *stack[16];
static _Thread_local int depth;

__attribute__((visibility("default"))) fake_cuda_state *fake_cuda(void)
{
	return &state;
}

static int fails(const char *function)
{
	int rc = 0;
	pthread_mutex_lock(&mutex);
	if (++state.calls == state.fail_at) {
		state.failed = function;
		rc = state.fail_code;
	}
	pthread_mutex_unlock(&mutex);
	return rc;
}

static void count(int *counter, int by)
{
	pthread_mutex_lock(&mutex);
	*counter += by;
	pthread_mutex_unlock(&mutex);
}

/* A call that fails does nothing; one that gives something back does so, and fails then. */
#define MAY_FAIL                    \
	do {                        \
		int rc_ = fails(__func__); \
		if (rc_)            \
			return rc_; \
	} while (0)
/* Between seeing that a thing is not there and making it is time for another thread to come. */
static void dawdle(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

#define NEEDS_CONTEXT           \
	do {                    \
		if (depth == 0) \
			return 201; \
	} while (0)

/* ---- results --------------------------------------------------------------------------------- */

FAKE cuGetErrorName(int result, const char **text)
{
	if (result == 12345)
		return 1;
	*text = FAKE_ERROR_NAME;
	return 0;
}

FAKE cuGetErrorString(int result, const char **text)
{
	if (result == 12345)
		return 1;
	*text = "made to fail";
	return 0;
}

/* ---- devices --------------------------------------------------------------------------------- */

FAKE cuInit(unsigned flags)
{
	(void)flags;
	MAY_FAIL;
	return 0;
}

FAKE cuDriverGetVersion(int *version)
{
	MAY_FAIL;
	*version = 13000;
	return 0;
}

FAKE cuDeviceGetCount(int *devices)
{
	MAY_FAIL;
	*devices = state.devices;
	return 0;
}

FAKE cuDeviceGet(int *device, int ordinal)
{
	MAY_FAIL;
	*device = ordinal;
	return 0;
}

FAKE cuDeviceGetName(char *name, int size, int device)
{
	MAY_FAIL;
	snprintf(name, (size_t)size, "fake %d", device);
	return 0;
}

FAKE cuDeviceGetUuid_v2(void *uuid, int device)
{
	MAY_FAIL;
	memset(uuid, device + 1, 16);
	return 0;
}

FAKE cuDeviceGetPCIBusId(char *text, int size, int device)
{
	MAY_FAIL;
	snprintf(text, (size_t)size, "0000:0%d:00.0", device);
	return 0;
}

FAKE cuDeviceTotalMem_v2(size_t *size, int device)
{
	MAY_FAIL;
	(void)device;
	*size = (size_t)1 << 30;
	return 0;
}

FAKE cuDeviceGetAttribute(int *value, int attribute, int device)
{
	MAY_FAIL;
	switch (attribute) {
	case 75: /* major */
		*value = device == 0 ? 9 : 7;
		break;
	case 83: /* managed memory */
	case 115: /* pools */
		*value = device == 0;
		break;
	default:
		*value = attribute;
		break;
	}
	if (attribute == 76)
		*value = 0;
	return 0;
}

/* ---- contexts, streams, events --------------------------------------------------------------- */

FAKE cuDevicePrimaryCtxRetain(void **context, int device)
{
	static char contexts[2];
	MAY_FAIL;
	dawdle();
	count(&state.retained, 1);
	*context = &contexts[device];
	return 0;
}

FAKE cuCtxPushCurrent_v2(void *context)
{
	MAY_FAIL;
	if (depth == 16)
		return 999;
	stack[depth++] = context;
	count(&state.pushed, 1);
	return 0;
}

FAKE cuCtxPopCurrent_v2(void **context)
{
	int rc = fails(__func__);
	NEEDS_CONTEXT;
	*context = stack[--depth];
	count(&state.pushed, -1);
	return rc;
}

FAKE cuStreamCreate(void **stream, unsigned flags)
{
	(void)flags;
	MAY_FAIL;
	NEEDS_CONTEXT;
	*stream = malloc(1);
	count(&state.streams, 1);
	return 0;
}

FAKE cuStreamDestroy_v2(void *stream)
{
	int rc = fails(__func__);
	free(stream);
	count(&state.streams, -1);
	return rc;
}

FAKE cuStreamSynchronize(void *stream)
{
	(void)stream;
	MAY_FAIL;
	NEEDS_CONTEXT;
	return 0;
}

#define UNUSED(name, ...)       \
	FAKE name(__VA_ARGS__)  \
	{                       \
		MAY_FAIL;       \
		return 801;     \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"
UNUSED(cuStreamQuery, void *stream)
UNUSED(cuStreamWaitEvent, void *stream, void *event, unsigned flags)
UNUSED(cuStreamIsCapturing, void *stream, int *capturing)
UNUSED(cuStreamGetCtx, void *stream, void **context)
UNUSED(cuEventCreate, void **event, unsigned flags)
UNUSED(cuEventDestroy_v2, void *event)
UNUSED(cuEventRecord, void *event, void *stream)
UNUSED(cuEventSynchronize, void *event)
UNUSED(cuEventQuery, void *event)
UNUSED(cuEventElapsedTime, float *ms, void *start, void *end)
UNUSED(cuMemcpyAsync, lade__address dst, lade__address src, size_t size, void *stream)
UNUSED(cuMemsetD8Async, lade__address dst, unsigned char value, size_t size, void *stream)
UNUSED(cuMemsetD32Async, lade__address dst, unsigned value, size_t words, void *stream)
UNUSED(cuPointerGetAttribute, void *value, int attribute, lade__address ptr)
UNUSED(cuModuleUnload, void *module)
UNUSED(cuFuncGetAttribute, int *value, int attribute, void *function)
UNUSED(cuFuncSetAttribute, void *function, int attribute, int value)
UNUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, void *function, int threads,
       size_t shared)

/* ---- memory ---------------------------------------------------------------------------------- */

static int take(void **out, size_t size, size_t align)
{
	NEEDS_CONTEXT;
	if (size > (size_t)1 << 30 || posix_memalign(out, align, size))
		return LADE__CU_OUT_OF_MEMORY;
	count(&state.blocks, 1);
	return 0;
}

static int take_address(lade__address *out, size_t size)
{
	void *ptr = NULL;
	int rc = take(&ptr, size, 256);
	*out = lade__address_of(ptr);
	return rc;
}

static int give(const char *function, lade__address ptr)
{
	int rc = fails(function);
	free((void *)(uintptr_t)ptr);
	count(&state.blocks, -1);
	return rc;
}

FAKE cuMemGetInfo_v2(size_t *left, size_t *total)
{
	MAY_FAIL;
	NEEDS_CONTEXT;
	*left = *total = (size_t)1 << 30;
	return 0;
}

FAKE cuMemAlloc_v2(lade__address *ptr, size_t size)
{
	MAY_FAIL;
	return take_address(ptr, size);
}

FAKE cuMemFree_v2(lade__address ptr)
{
	return give(__func__, ptr);
}

FAKE cuMemHostAlloc(void **ptr, size_t size, unsigned flags)
{
	(void)flags;
	MAY_FAIL;
	return take(ptr, size, 4096);
}

FAKE cuMemFreeHost(void *ptr)
{
	return give(__func__, lade__address_of(ptr));
}

FAKE cuMemAllocManaged(lade__address *ptr, size_t size, unsigned flags)
{
	(void)flags;
	MAY_FAIL;
	return take_address(ptr, size);
}

FAKE cuMemPoolCreate(void **pool, const lade__pool_props *props)
{
	MAY_FAIL;
	if (props->location_id != 0)
		return 801;
	dawdle();
	*pool = malloc(1);
	count(&state.pools, 1);
	return 0;
}

FAKE cuMemPoolDestroy(void *pool)
{
	int rc = fails(__func__);
	free(pool);
	count(&state.pools, -1);
	return rc;
}

FAKE cuMemPoolSetAttribute(void *pool, int what, void *value)
{
	MAY_FAIL;
	return what == 4 && *(uint64_t *)value > 0 && pool ? 0 : 1;
}

FAKE cuMemPoolGetAttribute(void *pool, int what, void *value)
{
	(void)pool;
	MAY_FAIL;
	*(uint64_t *)value = what == 5 ? 1000 : 200;
	return 0;
}

FAKE cuMemPoolTrimTo(void *pool, size_t keep)
{
	(void)pool, (void)keep;
	MAY_FAIL;
	return 0;
}

FAKE cuMemAllocFromPoolAsync(lade__address *ptr, size_t size, void *pool, void *stream)
{
	(void)pool, (void)stream;
	MAY_FAIL;
	return take_address(ptr, size);
}

FAKE cuMemFreeAsync(lade__address ptr, void *stream)
{
	(void)stream;
	return give(__func__, ptr);
}

FAKE cuMemcpyHtoDAsync_v2(lade__address dst, const void *src, size_t size, void *stream)
{
	(void)stream;
	MAY_FAIL;
	memcpy((void *)(uintptr_t)dst, src, size);
	return 0;
}

FAKE cuMemcpyDtoHAsync_v2(void *dst, lade__address src, size_t size, void *stream)
{
	(void)stream;
	MAY_FAIL;
	memcpy(dst, (const void *)(uintptr_t)src, size);
	return 0;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* An image is a fat binary and stands where the driver wants it. */
FAKE cuModuleLoadDataEx(void **module, const void *image, unsigned options, int *names,
                        void **values)
{
	uint32_t magic;
	(void)options, (void)names, (void)values;
	MAY_FAIL;
	memcpy(&magic, image, sizeof magic);
	if (magic != 0xBA55ED50 || (uintptr_t)image % 16 != 0)
		return LADE__CU_INVALID_IMAGE;
	static char one;
	dawdle();
	*module = &one;
	count(&state.modules, 1);
	return 0;
}

FAKE cuModuleGetFunction(void **function, void *module, const char *name)
{
	static char one;
	(void)module;
	MAY_FAIL;
	if (strcmp(name, "lade_selftest_add") != 0)
		return LADE__CU_NOT_FOUND;
	*function = &one;
	return 0;
}

FAKE cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                    void *stream, void **arguments, void **extra)
{
	(void)function, (void)shared, (void)stream, (void)extra;
	MAY_FAIL;
	uint32_t *words = (uint32_t *)(uintptr_t)*(lade__address *)arguments[0];
	uint32_t n = *(uint32_t *)arguments[1];
	if ((uint64_t)grid_x * grid_y * grid_z * block_x * block_y * block_z < n)
		return 1;
	for (uint32_t i = 0; i < n; i++)
		words[i]++;
	return 0;
}
