/*
 * null_driver.c: a libcuda.so.1 that does nothing at all, so that what the host does can be timed
 * alone and on machines without a device: one of 132 multiprocessors, whose copies and kernels are
 * done when they are enqueued, and whose results are all LADE_OK with 0 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))

/* What plan_bench.c looks at: the calls that enqueue, and when the first of them came since 'count'
 * was set to 0. */
API struct {
	double first_ns;
	uint64_t count;
} null_driver;

static void enqueued(void)
{
	struct timespec t;
	if (null_driver.count++)
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);
	null_driver.first_ns = (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Functions of any arguments that succeed. */
#define NOTHING(name) \
	API int name(void); \
	API int name(void) \
	{ \
		return 0; \
	}
NOTHING(cuInit)
NOTHING(cuCtxPopCurrent_v2)
NOTHING(cuCtxPushCurrent_v2)
NOTHING(cuCtxGetStreamPriorityRange)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamQuery)
NOTHING(cuStreamWaitEvent)
NOTHING(cuStreamIsCapturing)
NOTHING(cuThreadExchangeStreamCaptureMode)
NOTHING(cuEventDestroy_v2)
NOTHING(cuEventRecord)
NOTHING(cuEventSynchronize)
NOTHING(cuEventQuery)
NOTHING(cuEventElapsedTime)
NOTHING(cuMemFree_v2)
NOTHING(cuMemFreeAsync)
NOTHING(cuMemPoolDestroy)
NOTHING(cuMemPoolSetAttribute)
NOTHING(cuMemPoolGetAttribute)
NOTHING(cuMemPoolTrimTo)
NOTHING(cuMemPoolSetAccess)
NOTHING(cuDeviceCanAccessPeer)
NOTHING(cuPointerGetAttribute)
NOTHING(cuModuleUnload)
NOTHING(cuFuncGetAttribute)
NOTHING(cuFuncSetAttribute)

/* Functions that give a number or a text. */
#define GIVES(name, arguments, body) \
	API int name arguments; \
	API int name arguments \
	{ \
		body; \
		return 0; \
	}
GIVES(cuGetErrorName, (int result, const char **text), (void)result; *text = "NULL_DRIVER")
GIVES(cuGetErrorString, (int result, const char **text), (void)result; *text = "it does nothing")
GIVES(cuDriverGetVersion, (int *version), *version = 13000)
GIVES(cuDeviceGetCount, (int *count), *count = 1)
GIVES(cuDeviceGet, (int *device, int number), *device = number)
GIVES(cuDeviceGetName, (char *name, int size), strncpy(name, "null", (size_t)size))
GIVES(cuDeviceGetUuid_v2, (void *uuid), memset(uuid, 0, 16))
GIVES(cuDeviceGetPCIBusId, (char *text, int size), strncpy(text, "0000:00:00.0", (size_t)size))
GIVES(cuDeviceTotalMem_v2, (size_t * size), *size = (size_t)141 << 30)
GIVES(cuDeviceGetAttribute, (int *value, int what),
      *value = what == 75   ? 9
               : what == 76 ? 0
               : what == 16 ? 132
               : what == 97 ? 232448
                            : 1)

static uintptr_t handles = 4096;

GIVES(cuDevicePrimaryCtxRetain, (void **context), *context = &handles)
GIVES(cuStreamGetCtx, (void *stream, void **context), (void)stream; *context = &handles)
GIVES(cuStreamCreate, (void **stream), *stream = (void *)++handles)
GIVES(cuStreamCreateWithPriority, (void **stream), *stream = (void *)++handles)
GIVES(cuEventCreate, (void **event), *event = (void *)++handles)
GIVES(cuMemPoolCreate, (void **pool), *pool = (void *)++handles)
GIVES(cuModuleLoadDataEx, (void **module), *module = (void *)++handles)
GIVES(cuModuleGetFunction, (void **function), *function = (void *)++handles)
GIVES(cuMemGetInfo_v2, (size_t * left, size_t *total), *left = *total = (size_t)141 << 30)
GIVES(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks), *blocks = 8)

/* Memory: the host's is real, a device's an address that nobody touches. */
static uint64_t block = (uint64_t)1 << 46;

static uint64_t take(size_t size)
{
	return block += (size + 511) / 256 * 256;
}

GIVES(cuMemAlloc_v2, (uint64_t * address, size_t size), *address = take(size))
GIVES(cuMemAllocFromPoolAsync, (uint64_t * address, size_t size), *address = take(size))
GIVES(cuMemAllocManaged, (uint64_t * address, size_t size), *address = take(size))
GIVES(cuMemHostAlloc, (void **address, size_t size),
      *address = aligned_alloc(4096, (size + 4095) / 4096 * 4096))
GIVES(cuMemFreeHost, (void *address), free(address))

/* Work. */
GIVES(cuLaunchKernel, (void), enqueued())
GIVES(cuMemcpyAsync, (void), enqueued())
GIVES(cuMemcpyHtoDAsync_v2, (void), enqueued())
GIVES(cuMemsetD8Async, (void), enqueued())
GIVES(cuMemsetD32Async, (void), enqueued())
GIVES(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t size), (void)from; enqueued();
      memset(to, 0, size))
