/*
 * memory.h: where bytes lie, who lends them, and who allocates them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_MEMORY_H
#define LADE_MEMORY_H

#include <lade/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of memory; the numbers are part of the ABI. */
typedef enum lade_kind {
	LADE_HOST = 0,    /* pageable host memory */
	LADE_PINNED = 1,  /* host memory that a device can read and write */
	LADE_MANAGED = 2, /* memory that moves between host and devices on demand */
	LADE_DEVICE = 3,  /* a device's own memory; the host must not touch it */
} lade_kind;
#define LADE_KIND_COUNT 4

/* A kind of memory and, for managed and device memory, the device's number. */
typedef struct lade_place {
	lade_kind kind;
	int32_t device;
} lade_place;

/* Zero-initialised is pageable host memory. */
#define LADE_PLACE_HOST ((lade_place){LADE_HOST, 0})

/* True when the host may read and write memory of this kind directly. */
static inline bool lade_kind_is_host(lade_kind kind)
{
	return kind != LADE_DEVICE;
}

/* "host", "pinned", "managed", "device"; "?" for a number that is no kind. */
LADE_API const char *lade_kind_name(lade_kind kind);

/*
 * A borrowed piece of memory.  A span never owns; whoever made it keeps the memory alive
 * until the call (or, with a stream, the work enqueued by it) is done.  'data' may be NULL
 * when 'size' is 0.
 */
typedef struct lade_span {
	void *data;
	size_t size; /* bytes */
	lade_place place;
} lade_span;

/* The same, to be read only. */
typedef struct lade_cspan {
	const void *data;
	size_t size; /* bytes */
	lade_place place;
} lade_cspan;

static inline lade_span lade_host_span(void *data, size_t size)
{
	lade_span s = {data, size, {LADE_HOST, 0}};
	return s;
}

static inline lade_cspan lade_host_cspan(const void *data, size_t size)
{
	lade_cspan s = {data, size, {LADE_HOST, 0}};
	return s;
}

/* A size that is not known. */
#define LADE_SIZE_UNKNOWN UINT64_MAX

/* A CUstream / cudaStream_t, borrowed.  NULL where no device is involved. */
typedef void *lade_stream;

/*
 * Gives and takes memory of one kind.  The library calls 'alloc' with size > 0 and a
 * power-of-two 'align', and later 'free' with the same four values.  For host memory
 * 'stream' is NULL; for device memory the block may be used by work on 'stream' at once,
 * and after 'free' only by work enqueued on it earlier.
 *
 * 'alloc' returns NULL when there is none; the call that wanted it fails with
 * LADE_E_NOMEM.  Both may be called from several threads at once.
 *
 * What grows with the data comes from an engine's allocators: scratch memory, the buffers of
 * frames and foreign files, the contexts of codecs whose libraries let one say so (not libdeflate,
 * zlib, c-blosc, LZ4 frames, the encoder of .zst files, and what is prepared of a dictionary).
 * Objects and tables come from malloc().
 */
typedef struct lade_allocator {
	void *ctx;
	void *(*alloc)(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream);
	void (*free)(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
	             lade_stream stream);
} lade_allocator;

/*
 * The process's default for a kind; the result is valid for ever.
 *
 * LADE_HOST is posix_memalign().  The others ask the device's driver, which the first request
 * opens; there is NULL for an answer where there is no driver, no such device, or no memory
 * (lade_device_count() tells which).  LADE_PINNED memory serves all devices, and 'place.device'
 * says through which of them it is had.  LADE_DEVICE memory comes from a pool of the library's own
 * in stream order; see lade_device_trim().  All three are aligned to 256 bytes; whether more can
 * be had is the driver's mood.
 */
LADE_API const lade_allocator *lade_allocator_default(lade_kind kind);

#ifdef __cplusplus
}
#endif

#endif
