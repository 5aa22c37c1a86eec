/*
 * memory.h: places, spans and allocators: where bytes are, and who allocates them.
 *
 *	lade_cspan src = lade_host_cspan(field, sizeof field);          // host memory, read only
 *	lade_span dst = {packed, sizeof packed, {LADE_HOST, 0}};        // the same in full
 *	if (lade_encode(engine, spec, src, dst, &size, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *
 * For memory of GPU 0 write {address, size, {LADE_DEVICE, 0}}.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_MEMORY_H
#define LADE_MEMORY_H

#include <lade/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of memory.  The numbers are part of the ABI. */
typedef enum lade_kind {
	LADE_HOST = 0,    /* pageable host memory */
	LADE_PINNED = 1,  /* host memory that a device can read and write */
	LADE_MANAGED = 2, /* memory that moves between host and devices on demand */
	LADE_DEVICE = 3,  /* a device's own memory; the host must not touch it */
} lade_kind;
#define LADE_KIND_COUNT 4

/* A kind of memory and, for managed and device memory, a device's number. */
typedef struct lade_place {
	lade_kind kind;
	int32_t device;
} lade_place;

/* Pageable host memory; a place of zeros is the same. */
#define LADE_PLACE_HOST ((lade_place){LADE_HOST, 0})

/* True if the host may read and write memory of this kind directly. */
static inline bool lade_kind_is_host(lade_kind kind)
{
	return kind != LADE_DEVICE;
}

/* "host", "pinned", "managed" or "device"; "?" for an unknown number. */
LADE_API const char *lade_kind_name(lade_kind kind);

/*
 * A borrowed piece of memory.  A span owns nothing: the caller keeps the memory alive until the
 * call is done or, for calls that only enqueue, until the enqueued work is done.  'data' may be
 * NULL if 'size' is 0.
 */
typedef struct lade_span {
	void *data;
	size_t size; /* bytes */
	lade_place place;
} lade_span;

/* A borrowed piece of memory that is only read. */
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

/* An unknown size. */
#define LADE_SIZE_UNKNOWN UINT64_MAX

/* A borrowed CUstream, which is the same as a cudaStream_t.  NULL: the default stream
 * (device.h). */
typedef void *lade_stream;

/*
 * Allocates and frees memory of one kind.
 *
 * The library calls 'alloc' with size > 0 and 'align' a power of two.  It later calls 'free' with
 * the same size, align, place and stream.  'alloc' returns NULL if it has no memory: then the
 * library's call fails with LADE_E_NOMEM.  Both functions must allow calls from several threads.
 *
 * For host memory 'stream' is NULL.  For device memory, work on 'stream' may use the block as soon
 * as 'alloc' returns.  After 'free', only work that was enqueued before on that stream uses it.
 *
 * The library takes everything that grows with the data from the engine's allocators: scratch
 * memory, buffers of frames and foreign files, and contexts of codecs.  Exceptions are libdeflate,
 * zlib, c-blosc, LZ4 frames, the encoder of .zst files and prepared dictionaries: these libraries
 * use malloc().  Objects and tables come from malloc(), too.
 */
typedef struct lade_allocator {
	void *ctx;
	void *(*alloc)(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream);
	void (*free)(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
	             lade_stream stream);
} lade_allocator;

/*
 * The process's default allocator for a kind.  The result is always valid.
 *
 * LADE_HOST uses posix_memalign().  The other kinds use the device's driver, which the first
 * request opens.  They return NULL if there is no driver, no such device or no memory;
 * lade_device_count() says which.  All devices can use LADE_PINNED memory; 'place.device' says
 * through which of them to allocate it.  LADE_DEVICE memory comes from the library's own pool in
 * stream order: see lade_device_trim().  Blocks of these kinds are aligned to 256 bytes; larger
 * alignments are not guaranteed.
 */
LADE_API const lade_allocator *lade_allocator_default(lade_kind kind);

#ifdef __cplusplus
}
#endif

#endif
