/*
 * driver.h: the GPU's driver, libcuda.so.1, opened when it is first wanted.
 *
 * Nothing of CUDA is linked and none of its headers is needed: the functions in use are declared
 * here, under the names that cuda.h of CUDA 13.0 gives them, and found by those that the library
 * gives out.  All return a CUresult: 0 is success.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_DRIVER_H
#define LADE_BASE_DRIVER_H

#include <lade/memory.h>

/* CUdeviceptr.  Device, managed and pinned memory have one address on the host and on devices. */
typedef uint64_t lade__address;

static inline lade__address lade__address_of(const void *ptr)
{
	return (lade__address)(uintptr_t)ptr;
}

/* Results of the driver that the code checks for. */
enum {
	LADE__CU_INVALID_VALUE = 1,
	LADE__CU_OUT_OF_MEMORY = 2,
	LADE__CU_STUB_LIBRARY = 34,
	LADE__CU_NO_DEVICE = 100,
	LADE__CU_INVALID_IMAGE = 200,
	LADE__CU_NO_BINARY_FOR_GPU = 209,
	LADE__CU_INVALID_PTX = 218,
	LADE__CU_UNSUPPORTED_PTX = 222,
	LADE__CU_NOT_FOUND = 500,
	LADE__CU_NOT_READY = 600,
};

/* CUstreamCaptureMode: what the thread calls does not spoil captures of streams elsewhere. */
#define LADE__CAPTURE_RELAXED 2

/* CUmemPoolProps. */
typedef struct lade__pool_props {
	int alloc_type;    /* 1: CU_MEM_ALLOCATION_TYPE_PINNED, the only one */
	int handle_types;  /* 0: not shared with other processes */
	int location_type; /* 1: CU_MEM_LOCATION_TYPE_DEVICE */
	int location_id;
	void *security; /* of Windows */
	size_t max_size;
	unsigned short usage;
	unsigned char reserved[54];
} lade__pool_props;

/* CUmemAccessDesc. */
typedef struct lade__pool_access {
	int location_type; /* 1: CU_MEM_LOCATION_TYPE_DEVICE */
	int location_id;
	int flags; /* CUmemAccess_flags: 1 is to read, 3 to read and write */
} lade__pool_access;

/* CUmemAllocationProp. */
typedef struct lade__block_props {
	int alloc_type;    /* 1: CU_MEM_ALLOCATION_TYPE_PINNED */
	int handle_types;  /* 1: CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
	int location_type; /* 1: CU_MEM_LOCATION_TYPE_DEVICE */
	int location_id;
	void *security; /* of Windows */
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
} lade__block_props;

/* CUmemGenericAllocationHandle. */
typedef unsigned long long lade__block_handle;

/* CUipcMemHandle. */
typedef struct lade__ipc_handle {
	unsigned char bytes[64];
} lade__ipc_handle;

/* CUmemcpyAttributes. */
typedef struct lade__copy_attributes {
	int source_order; /* 1: sources are read in stream order, 3: at any time from now on */
	struct {
		int type, id;
	} source, destination; /* hints; all 0 for none */
	unsigned flags;
} lade__copy_attributes;

/* One attribute: the kernel may begin before the one that was launched before it ends. */
typedef struct lade__launch_attribute {
	int id;
	char pad[4];
	union {
		int value;
		char room[64];
	};
} lade__launch_attribute;
#define LADE__CU_LAUNCH_EARLY 6

typedef struct lade__launch_config {
	unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
	void *stream;
	lade__launch_attribute *attributes;
	unsigned attribute_count;
} lade__launch_config;

/* A name, the name in the library, and the arguments.  All of these must be there. */
#define LADE__DRIVER_NEEDED(X)                                                                  \
	X(cuGetErrorName, "cuGetErrorName", (int result, const char **text))                    \
	X(cuGetErrorString, "cuGetErrorString", (int result, const char **text))                \
	X(cuInit, "cuInit", (unsigned flags))                                                   \
	X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                             \
	X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                   \
	X(cuDeviceGet, "cuDeviceGet", (int *device, int ordinal))                               \
	X(cuDeviceGetName, "cuDeviceGetName", (char *name, int size, int device))               \
	X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (void *uuid, int device))                      \
	X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *text, int size, int device))       \
	X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *size, int device))                  \
	X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, int device)) \
	X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **context, int device))   \
	X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (void *context))                             \
	X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (void **context))                              \
	X(cuStreamCreate, "cuStreamCreate", (void **stream, unsigned flags))                    \
	X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority",                             \
	  (void **stream, unsigned flags, int priority))                                        \
	X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange",                           \
	  (int *least, int *greatest))                                                          \
	X(cuStreamDestroy, "cuStreamDestroy_v2", (void *stream))                                \
	X(cuStreamSynchronize, "cuStreamSynchronize", (void *stream))                           \
	X(cuStreamQuery, "cuStreamQuery", (void *stream))                                       \
	X(cuStreamWaitEvent, "cuStreamWaitEvent", (void *stream, void *event, unsigned flags))  \
	X(cuStreamIsCapturing, "cuStreamIsCapturing", (void *stream, int *capturing))           \
	X(cuStreamGetCtx, "cuStreamGetCtx", (void *stream, void **context))                     \
	X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))  \
	X(cuEventCreate, "cuEventCreate", (void **event, unsigned flags))                       \
	X(cuEventDestroy, "cuEventDestroy_v2", (void *event))                                   \
	X(cuEventRecord, "cuEventRecord", (void *event, void *stream))                          \
	X(cuEventSynchronize, "cuEventSynchronize", (void *event))                              \
	X(cuEventQuery, "cuEventQuery", (void *event))                                          \
	X(cuEventElapsedTime, "cuEventElapsedTime", (float *ms, void *start, void *end))        \
	X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))                       \
	X(cuMemAlloc, "cuMemAlloc_v2", (lade__address *ptr, size_t size))                       \
	X(cuMemFree, "cuMemFree_v2", (lade__address ptr))                                       \
	X(cuMemHostAlloc, "cuMemHostAlloc", (void **ptr, size_t size, unsigned flags))          \
	X(cuMemFreeHost, "cuMemFreeHost", (void *ptr))                                          \
	X(cuMemAllocManaged, "cuMemAllocManaged",                                               \
	  (lade__address *ptr, size_t size, unsigned flags))                                    \
	X(cuMemPoolCreate, "cuMemPoolCreate", (void **pool, const lade__pool_props *props))     \
	X(cuMemPoolDestroy, "cuMemPoolDestroy", (void *pool))                                   \
	X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", (void *pool, int what, void *value))  \
	X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", (void *pool, int what, void *value))  \
	X(cuMemPoolTrimTo, "cuMemPoolTrimTo", (void *pool, size_t keep))                        \
	X(cuMemPoolSetAccess, "cuMemPoolSetAccess",                                             \
	  (void *pool, const lade__pool_access *access, size_t count))                          \
	X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int *can, int device, int peer))     \
	X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",                                   \
	  (lade__address *ptr, size_t size, void *pool, void *stream))                          \
	X(cuMemFreeAsync, "cuMemFreeAsync", (lade__address ptr, void *stream))                  \
	X(cuMemcpyAsync, "cuMemcpyAsync",                                                       \
	  (lade__address dst, lade__address src, size_t size, void *stream))                    \
	X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                            \
	  (lade__address dst, const void *src, size_t size, void *stream))                      \
	X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                            \
	  (void *dst, lade__address src, size_t size, void *stream))                            \
	X(cuMemsetD8Async, "cuMemsetD8Async",                                                   \
	  (lade__address dst, unsigned char value, size_t size, void *stream))                  \
	X(cuMemsetD32Async, "cuMemsetD32Async",                                                 \
	  (lade__address dst, unsigned value, size_t count, void *stream))                      \
	X(cuPointerGetAttribute, "cuPointerGetAttribute",                                       \
	  (void *value, int attribute, lade__address ptr))                                      \
	X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                             \
	  (void **module, const void *image, unsigned count, int *options, void **values))      \
	X(cuModuleGetFunction, "cuModuleGetFunction",                                           \
	  (void **function, void *module, const char *name))                                    \
	X(cuModuleUnload, "cuModuleUnload", (void *module))                                     \
	X(cuFuncGetAttribute, "cuFuncGetAttribute", (int *value, int attribute, void *function)) \
	X(cuFuncSetAttribute, "cuFuncSetAttribute", (void *function, int attribute, int value)) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                          \
	  "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                        \
	  (int *blocks, void *function, int threads, size_t shared))                            \
	X(cuLaunchKernel, "cuLaunchKernel",                                                     \
	  (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
	   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments, \
	   void **extra))

/* Memory that other processes can map: NULL where the library lacks them. */
#define LADE__DRIVER_SHARING(X)                                                                 \
	X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity",                       \
	  (size_t *size, const lade__block_props *props, int option))                           \
	X(cuMemCreate, "cuMemCreate",                                                           \
	  (lade__block_handle *handle, size_t size, const lade__block_props *props,             \
	   unsigned long long flags))                                                           \
	X(cuMemRelease, "cuMemRelease", (lade__block_handle handle))                            \
	X(cuMemExportToShareableHandle, "cuMemExportToShareableHandle",                         \
	  (void *out, lade__block_handle handle, int type, unsigned long long flags))           \
	X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle",                     \
	  (lade__block_handle *out, void *handle, int type))                                    \
	X(cuMemGetAllocationPropertiesFromHandle, "cuMemGetAllocationPropertiesFromHandle",     \
	  (lade__block_props *props, lade__block_handle handle))                                \
	X(cuMemAddressReserve, "cuMemAddressReserve",                                           \
	  (lade__address *ptr, size_t size, size_t align, lade__address wish,                   \
	   unsigned long long flags))                                                           \
	X(cuMemAddressFree, "cuMemAddressFree", (lade__address ptr, size_t size))               \
	X(cuMemMap, "cuMemMap",                                                                 \
	  (lade__address ptr, size_t size, size_t off, lade__block_handle handle,               \
	   unsigned long long flags))                                                           \
	X(cuMemUnmap, "cuMemUnmap", (lade__address ptr, size_t size))                           \
	X(cuMemSetAccess, "cuMemSetAccess",                                                     \
	  (lade__address ptr, size_t size, const lade__pool_access *access, size_t count))      \
	X(cuIpcGetMemHandle, "cuIpcGetMemHandle", (lade__ipc_handle *out, lade__address ptr))    \
	X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2",                                          \
	  (lade__address *ptr, lade__ipc_handle handle, unsigned flags))                        \
	X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", (lade__address ptr))

/* These came later than the drivers that are supported; NULL where the library lacks them. */
#define LADE__DRIVER_OPTIONAL(X)                                                                \
	LADE__DRIVER_SHARING(X)                                                                 \
	X(cuLaunchKernelEx, "cuLaunchKernelEx",                                                 \
	  (const lade__launch_config *config, void *function, void **arguments, void **extra))  \
	X(cuCtxRecordEvent, "cuCtxRecordEvent", (void *context, void *event))                   \
	X(cuMemcpyBatchAsync, "cuMemcpyBatchAsync_v2",                                          \
	  (lade__address *dsts, lade__address *srcs, size_t *sizes, size_t count,               \
	   lade__copy_attributes *attributes, size_t *first, size_t attribute_count,            \
	   void *stream))

typedef struct lade__driver {
#define LADE_X(name, symbol, arguments) int(*name) arguments;
	LADE__DRIVER_NEEDED(LADE_X)
	LADE__DRIVER_OPTIONAL(LADE_X)
#undef LADE_X
	int version; /* of CUDA, as cuDriverGetVersion() has it: 13000 is 13.0 */
} lade__driver;

/*
 * The driver, opened and initialised by the first call and never closed.
 * Fails:   LADE_E_NO_DEVICE when there is no library, when it lacks a function (it is too old),
 *          when it knows of no device, and in a process that was forked after the driver was
 *          opened; LADE_E_DEVICE when it does not start.  The same reason is given each time.
 * Threads: any
 */
lade_status lade__driver_get(const lade__driver **driver, lade_error *err);

/* True in a process that was forked after the driver was opened.  The driver must not be called
 * there: what it would free is the parent's. */
bool lade__driver_lost(void);

/*
 * Reports a driver's call that failed: "device 0: cuStreamCreate: CUDA_ERROR_... (999): text".
 * 'device' is below 0 where none is meant.  Gives LADE_E_NOMEM for the driver's "out of memory",
 * LADE_E_DEVICE for all else.
 */
lade_status lade__driver_fail(const lade__driver *driver, int result, int32_t device,
                              const char *call, lade_error *err);

/* Calls a driver's function for a lade__device; the caller has a 'lade_error *err'. */
#define LADE__CU(device, function, ...)                                                          \
	lade__driver_check((device)->driver, (device)->driver->function(__VA_ARGS__),            \
	                   (device)->number, #function, err)

static inline lade_status lade__driver_check(const lade__driver *driver, int result,
                                             int32_t device, const char *call, lade_error *err)
{
	return result == 0 ? LADE_OK : lade__driver_fail(driver, result, device, call, err);
}

#endif
