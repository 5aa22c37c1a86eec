/*
 * device.h: the GPUs of this machine, their streams, and marks in streams.
 *
 *	int32_t count;
 *	const lade_device_info *info;
 *	if (lade_device_count(&count, &err))
 *		printf("%s\n", err.message);                    // "no driver: ..."
 *	else if (lade_device_get_info(0, &info, &err) == LADE_OK)
 *		printf("%d devices; device 0: %s\n", (int)count, info->name);
 *
 * The first call that needs the driver, libcuda.so.1, opens it; a program without GPU work never
 * loads it.  The library uses each device's primary context, which the CUDA runtime, PyTorch and
 * CuPy use too, so pointers and streams can be shared with them.  The library takes the context at
 * the first work on a device and keeps it until the process ends.
 *
 * A process that was forked after the driver was opened cannot use devices: all calls fail.
 * All functions may be called from any number of threads.  A NULL for a result is LADE_E_ARG.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_DEVICE_H
#define LADE_DEVICE_H

#include <lade/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library ignores further devices. */
#define LADE_DEVICES_MAX 64

/* What the driver says about a device.  Later versions may add fields at the end. */
typedef struct lade_device_info {
	int32_t device;               /* its number, from 0, in the driver's order */
	char name[256];               /* "NVIDIA H200" */
	char pci[16];                 /* its address, "0000:3b:00.0" */
	uint8_t uuid[16];             /* unique among all devices of all machines */
	int32_t driver_version;       /* the CUDA version of the driver: 13000 is 13.0 */
	int32_t major, minor;         /* compute capability */
	const char *kernels;          /* which of lade_device_kernels() run on it; NULL: none */
	uint64_t memory_size;         /* bytes in total */
	uint32_t multiprocessors;     /* SMs */
	uint32_t threads_max;         /* threads that fit on an SM at once */
	uint32_t shared_size;         /* bytes of shared memory of an SM */
	uint32_t block_shared_max;    /* bytes of it that one block may use */
	uint32_t l2_size;             /* bytes */
	uint32_t clock_khz;           /* highest clock of the SMs */
	uint32_t memory_clock_khz;
	uint32_t memory_bus_bits;
	bool managed;                 /* LADE_MANAGED memory is available */
	bool pools;                   /* LADE_DEVICE memory is allocated in stream order */
} lade_device_info;

/*
 * Stores the number of devices: at least 1 on success, 0 on failure.
 *
 * Fails: LADE_E_NO_DEVICE with the reason: no driver, no device, or a forked process;
 *        LADE_E_DEVICE if the driver does not start
 */
LADE_API lade_status lade_device_count(int32_t *count, lade_error *err);

/*
 * Describes a device.  '*info' is valid until the process ends.
 *
 * Fails: as lade_device_count(); LADE_E_NO_DEVICE if no device has that number; LADE_E_DEVICE or
 *        LADE_E_NOMEM if the driver cannot describe it: such a device counts but cannot be used
 */
LADE_API lade_status lade_device_get_info(int32_t device, const lade_device_info **info,
                                          lade_error *err);

/*
 * The architectures that the library's kernels were built for, such as "sm_80 sm_90 compute_90":
 * machine code for 8.0 and 9.0, and intermediate code that the driver compiles for newer ones.
 * NULL if the library was built without kernels.
 */
LADE_API const char *lade_device_kernels(void);

/*
 * Tests a device: copies words from pinned memory, runs a small kernel, copies the words back and
 * compares them.
 *
 * Fails: LADE_E_UNSUPPORTED if the build has no kernels for the device, LADE_E_DEVICE, LADE_E_NOMEM
 */
LADE_API lade_status lade_device_check(int32_t device, lade_error *err);

/*
 * Stores how many bytes of a device's memory are free, and how many the library's pool holds in
 * reserve: bytes that the pool took from the device and that no block uses.
 */
LADE_API lade_status lade_device_memory(int32_t device, uint64_t *free_size,
                                        uint64_t *reserve_size, lade_error *err);

/*
 * Returns the pool's reserve to the device, except 'keep' bytes.  A freed block joins the reserve
 * when its stream reaches the free: wait for the stream first.  lade_engine_trim() returns what
 * engines keep.
 */
LADE_API lade_status lade_device_trim(int32_t device, uint64_t keep, lade_error *err);

/* ---- streams ----------------------------------------------------------------------------- */

/*
 * A stream is a CUstream, the same as a cudaStream_t.  Streams of other libraries can be passed
 * directly.  NULL is the device's default stream, which waits for other streams.
 *
 * The stream must exist during the call that gets it.  After the call its owner may destroy it,
 * even with work left on it.  One exception: a frame from lade_frame_open_device() uses the stream
 * until the frame is closed.  The driver may not notice the handle of a destroyed stream; if it
 * does, the call fails with LADE_E_DEVICE.
 *
 * lade_stream_new() makes a stream that does not wait for the default stream.
 * lade_stream_wait() waits for all work enqueued so far and returns that work's failure, if any.
 * lade_stream_free() releases a stream of lade_stream_new(); work on it still runs to its end.
 *
 * Fails: LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM
 */
LADE_API lade_status lade_stream_new(int32_t device, lade_stream *out, lade_error *err);
LADE_API lade_status lade_stream_wait(int32_t device, lade_stream stream, lade_error *err);
LADE_API void lade_stream_free(int32_t device, lade_stream stream); /* NULL is fine */

/*
 * A mark is a place in a stream, after all work that was enqueued before it (like a CUDA event).
 * Use it to find out when memory that the work uses can be freed, or to order two streams.
 *
 * lade_mark_new() makes a mark and does not wait.  It fails with LADE_E_UNSUPPORTED on a stream
 * that is being captured.  LADE_ALL_STREAMS marks the place after the work of all streams that the
 * device has now; with drivers below 12.5, of all streams that the default stream waits for.
 * lade_mark_passed() returns, without waiting, whether the work is done or the device has failed.
 * lade_mark_wait() waits for the work and returns its failure, if any.
 * lade_stream_follow() makes work that is enqueued on 'stream' from now on start after the mark.
 * It does not wait; the stream belongs to the mark's device.
 *
 * All but lade_mark_new() may be called while streams are being captured.
 *
 * Fails: LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM; LADE_E_ARG if the mark is NULL, which
 *        counts as passed
 * Owns:  the caller, who may free a mark at any time: streams that follow it still do
 */
typedef struct lade_mark lade_mark;
#define LADE_ALL_STREAMS ((lade_stream)~(uintptr_t)0)
LADE_API lade_status lade_mark_new(int32_t device, lade_stream stream, lade_mark **out,
                                   lade_error *err);
LADE_API bool lade_mark_passed(const lade_mark *mark);
LADE_API lade_status lade_mark_wait(const lade_mark *mark, lade_error *err);
LADE_API lade_status lade_stream_follow(const lade_mark *mark, lade_stream stream, lade_error *err);
LADE_API void lade_mark_free(lade_mark *mark); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
