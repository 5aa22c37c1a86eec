/*
 * device.h: the GPUs of this machine: what they are, their streams, and what runs on them.
 *
 * The driver, libcuda.so.1, is opened by the first call that needs it; a program without GPU work
 * never loads it.  A device is used through its primary context, the one that the CUDA runtime,
 * PyTorch and CuPy use, so that pointers and streams go from one to the other.  It is taken when
 * a device is first worked on and kept until the process ends.
 *
 * A process that was forked after the driver was opened cannot use devices: all calls fail there.
 * A NULL where a result goes is LADE_E_ARG.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_DEVICE_H
#define LADE_DEVICE_H

#include <lade/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* More devices than these are not looked at. */
#define LADE_DEVICES_MAX 64

/* A device as its driver tells of it.  Fields may be added at the end. */
typedef struct lade_device_info {
	int32_t device;               /* its number, from 0, in the driver's order */
	char name[256];               /* "NVIDIA H200" */
	char pci[16];                 /* its address, "0000:3b:00.0" */
	uint8_t uuid[16];             /* tells it from all others, on all machines */
	int32_t driver_version;       /* the CUDA version of the driver: 13000 is 13.0 */
	int32_t major, minor;         /* compute capability */
	const char *kernels;          /* which of lade_device_kernels() run on it; NULL: none */
	uint64_t memory_size;         /* bytes, all of it */
	uint32_t multiprocessors;     /* SMs */
	uint32_t threads_max;         /* threads that an SM holds at once */
	uint32_t shared_size;         /* bytes of shared memory of an SM */
	uint32_t block_shared_max;    /* bytes of it that one block may have */
	uint32_t l2_size;             /* bytes */
	uint32_t clock_khz;           /* of the SMs, the highest */
	uint32_t memory_clock_khz;
	uint32_t memory_bus_bits;
	bool managed;                 /* LADE_MANAGED memory can be had */
	bool pools;                   /* LADE_DEVICE memory is taken and given in stream order */
} lade_device_info;

/*
 * The number of devices; at least 1 on success, and 0 on failure.
 * Fails:   LADE_E_NO_DEVICE, with the reason: no driver, no device, or a forked process;
 *          LADE_E_DEVICE when the driver does not start
 * Threads: any, as all of this header
 */
LADE_API lade_status lade_device_count(int32_t *count, lade_error *err);

/*
 * What a device is.  '*info' is valid for ever.
 * Fails: as lade_device_count(), and LADE_E_NO_DEVICE when there is no such number;
 *        LADE_E_DEVICE, LADE_E_NOMEM when the driver does not tell what that one is: it counts,
 *        and cannot be used
 */
LADE_API lade_status lade_device_get_info(int32_t device, const lade_device_info **info,
                                          lade_error *err);

/*
 * What the library's kernels were built for, "sm_80 sm_90 compute_90": machine code for these
 * architectures, and intermediate code that the driver compiles for newer ones.  NULL when the
 * library was built without the compiler: then nothing can be run on devices.
 */
LADE_API const char *lade_device_kernels(void);

/*
 * Runs a small kernel on a device, on words that come from pinned memory and go back there, and
 * compares the result.
 * Fails: LADE_E_UNSUPPORTED when the build has no kernels for it, LADE_E_DEVICE, LADE_E_NOMEM
 */
LADE_API lade_status lade_device_check(int32_t device, lade_error *err);

/*
 * The bytes of a device's memory that nobody has taken, and those that the library's own pool
 * holds in reserve: taken from the device, and in use by no block.
 */
LADE_API lade_status lade_device_memory(int32_t device, uint64_t *free_size,
                                        uint64_t *reserve_size, lade_error *err);

/*
 * Gives the pool's reserve back to the device, but for 'keep' bytes.  Blocks whose free has not
 * been reached on their stream yet are not in the reserve: wait for the stream first.
 * lade_engine_trim() gives back what engines keep.
 */
LADE_API lade_status lade_device_trim(int32_t device, uint64_t keep, lade_error *err);

/* ---- streams ----------------------------------------------------------------------------- */

/*
 * A stream is a CUstream, the same thing as a cudaStream_t.  Those of other libraries are used as
 * they are; NULL means a device's default stream, which waits for the others.
 *
 * A stream must be alive when a call is given it.  The library uses it during the call and not
 * later: its owner may end it then, with work left on it.  (A frame that lade_frame_open_device()
 * opened uses it until the frame is closed.)  The driver need not notice the handle of a stream
 * that has ended; where it does the call fails with LADE_E_DEVICE.
 *
 * lade_stream_new() makes one that does not wait for the default stream.  lade_stream_wait()
 * returns when all work that was enqueued before is done, and tells of a failure in that work.
 * lade_stream_free() lets go of a stream that lade_stream_new() made; work on it goes on to its
 * end.
 * Fails: LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM
 */
LADE_API lade_status lade_stream_new(int32_t device, lade_stream *out, lade_error *err);
LADE_API lade_status lade_stream_wait(int32_t device, lade_stream stream, lade_error *err);
LADE_API void lade_stream_free(int32_t device, lade_stream stream); /* NULL is fine */

/*
 * A mark is a place in a stream: behind all work that was enqueued before it was made.  It serves
 * who must know when memory that the work uses may be given back, or must order two streams.
 *
 * lade_mark_new() makes one and does not wait.  Not on a stream that is being captured
 * (LADE_E_UNSUPPORTED): what is captured runs later, as often as its graph is launched.  The others
 * may be called while streams are captured, and spoil no capture.
 * lade_mark_new() with LADE_ALL_STREAMS marks the place behind the work of all streams that the
 * device has now, whoever made them; with drivers below 12.5, of those that the default stream
 * waits for.
 * lade_mark_passed() is true when that work is done, or will never be because the device failed; it
 * does not wait.
 * lade_mark_wait() returns when it is done, and tells of a failure in it.
 * lade_stream_follow() lets what is enqueued on 'stream' from now on begin when the mark is passed;
 * the stream is one of the mark's device, and nothing is waited for here.
 * Fails: LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM; LADE_E_ARG where the mark is NULL, which
 *        counts as passed
 * Owns:  the caller; a mark may be freed at any time, and what follows it still does
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
