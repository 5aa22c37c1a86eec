/*
 * array.h: reference-counted memory, results of unknown size, and checks for overlap.
 *
 *	lade_segment chunk = {.data = packed, .size = size};
 *	lade_item item = {.src = &chunk, .src_count = 1};           // no destination
 *	lade_decode_new_options options = {.struct_size = sizeof options, .spec = spec};
 *	lade_array *array;
 *	if (lade_decode_new(engine, &item, 1, &array, &options, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	printf("%zu bytes\n", lade_array_span(array).size);
 *	lade_array_unref(array);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ARRAY_H
#define LADE_ARRAY_H

#include <lade/async.h>
#include <lade/bare.h>
#include <lade/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ownership -------------------------------------------------------------------------- */

/*
 * A reference-counted owner of one block of memory: from an allocator, or memory of others that is
 * released by a callback.  Bytes have no type here; lade_tensor (dlpack.h) adds it.
 *
 * On a device, an array can be dropped while work still uses it:
 *
 *	lade_array_new(size, (lade_place){LADE_DEVICE, 0}, &options, &array, &err);
 *	... enqueue work that writes to lade_array_span(array) on 'stream' ...
 *	lade_array_used(array, 0, stream, &err);
 *	lade_array_unref(array);     // frees the memory after that work, without waiting
 *
 * Threads: all calls on one array may run at the same time, unless a call says otherwise; the last
 *          unref must not race with other calls
 */
typedef struct lade_array lade_array;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_array_options {
	size_t struct_size;
	size_t align; /* a power of two; 0: 64 */
	/* Allocates and frees the memory; NULL: lade_allocator_default(place.kind).  It is copied;
	 * what its ctx points to must outlive the array. */
	const lade_allocator *allocator;
	/* Device memory: work that is enqueued on this stream from now on may use the block.  The
	 * stream must exist during the call and may be destroyed after it. */
	lade_stream stream;
	/*
	 * Called once, by the thread that dropped the last reference, after the memory was freed.
	 * For wrapped memory: the callback releases it.
	 */
	void (*gone)(void *ctx);
	void *gone_ctx;
} lade_array_options;

/*
 * lade_array_new() allocates 'size' bytes with undefined contents.  An array of 0 bytes has NULL
 * data.
 * lade_array_wrap() makes an array of memory that exists, until 'gone' is called.  It ignores
 * align, allocator and stream of the options.
 * lade_array_slice() makes an array of 'size' bytes from 'off' on, which keeps the whole one alive.
 *
 * Fails: LADE_E_ARG, LADE_E_NOMEM, LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_RANGE (the slice passes
 *        the end); then 'gone' is not called
 * Owns:  the caller gets one reference
 */
LADE_API lade_status lade_array_new(size_t size, lade_place place,
                                    const lade_array_options *options, lade_array **out,
                                    lade_error *err);
LADE_API lade_status lade_array_wrap(lade_span span, const lade_array_options *options,
                                     lade_array **out, lade_error *err);
LADE_API lade_status lade_array_slice(lade_array *array, size_t off, size_t size,
                                      lade_array **out, lade_error *err);

/*
 * Add or drop a reference; NULL is fine for both.  Dropping the last one frees the block.
 * Allocated device memory is freed in the order of the streams that use it, without waiting.  For
 * all other memory the call waits for those streams first.
 */
LADE_API lade_array *lade_array_ref(lade_array *array);
LADE_API void lade_array_unref(lade_array *array);

/* The array's memory. */
LADE_API lade_span lade_array_span(const lade_array *array);

/* The array that a slice was made from, with the whole block; any other array itself.  Adds no
 * reference.  NULL gives NULL. */
LADE_API lade_array *lade_array_whole(lade_array *array);

/* True if the caller's reference is the only one to the block, slices counted: then nobody else can
 * reach the memory. */
LADE_API bool lade_array_is_sole(const lade_array *array);

/*
 * Makes the array smaller.  If the caller has the only reference to pageable memory of the default
 * allocator, and it is worth it, the end of the memory is freed: the data may move, and then has
 * the alignment of malloc() only.  Otherwise only the array's size changes.
 *
 * Fails:   LADE_E_ARG if 'size' is larger than the array
 * Threads: no other call on the array at the same time
 */
LADE_API lade_status lade_array_shrink(lade_array *array, size_t size, lade_error *err);

/*
 * lade_array_used() records that work enqueued on 'stream' of 'device' so far may use the block.
 * The stream must exist during the call only: the array keeps a mark, not the handle.  If there is
 * no memory for a mark, the call waits for the work.
 * lade_array_used_until() records the same with a mark of the caller's, who may free it afterwards.
 * lade_array_follow() makes work enqueued on 'stream' from now on start after all recorded work.
 * lade_array_wait() waits for all recorded work and returns its failure, if any.
 *
 * Fails: LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM, LADE_E_ARG; LADE_E_UNSUPPORTED while the
 *        stream is being captured
 */
LADE_API lade_status lade_array_used(lade_array *array, int32_t device, lade_stream stream,
                                     lade_error *err);
LADE_API lade_status lade_array_used_until(lade_array *array, lade_mark *mark, lade_error *err);
LADE_API lade_status lade_array_follow(lade_array *array, int32_t device, lade_stream stream,
                                       lade_error *err);
LADE_API lade_status lade_array_wait(lade_array *array, lade_error *err);

/*
 * lade_copy() copies src.size bytes from any place to any other, and waits.  It runs after the work
 * enqueued on 'stream', a stream of the device involved (between two devices: of the source's).  In
 * host memory the spans may overlap.  'engine' may be NULL: lade_engine_default().
 * lade_array_copy() makes a new array with the same bytes in another place, after the work that the
 * array has recorded.  Its options are those of lade_array_new().
 *
 * Fails: LADE_E_NOSPACE, LADE_E_ARG, LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM
 */
LADE_API lade_status lade_copy(lade_engine *engine, lade_cspan src, lade_span dst,
                               lade_stream stream, lade_error *err);
LADE_API lade_status lade_array_copy(lade_engine *engine, lade_array *array, lade_place place,
                                     const lade_array_options *options, lade_array **out,
                                     lade_error *err);

/* ---- items of unknown size --------------------------------------------------------------- */

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_decode_new_options {
	size_t struct_size;
	const lade_spec *spec;           /* for items without their own */
	lade_bare kind;                  /* 0: LADE_BARE_RAW */
	const lade_batch_options *batch; /* NULL: all defaults */
	lade_place place;                /* of the results */
	const lade_array_options *array; /* for the results, without 'gone'; NULL: all defaults */
	uint64_t largest; /* larger results fail with LADE_E_LIMIT; 0: no limit */
} lade_decode_new_options;

/*
 * Decodes 'count' items into memory that the call allocates.  'arrays[i]' gets the result of item i
 * with its exact size, or NULL if the item failed.  The items' destinations are ignored; layouts,
 * outputs, ranges and tails are refused.
 *
 * The size comes from the data, checked as in lade_bare_decoded_sizes().  If the data does not
 * store a size, or it is too small, the call tries four times the encoded bytes (at least 8 KiB),
 * and then four times more until the result fits: up to lade_spec_decoded_max() and 'largest'.
 *
 * Arrays of one call may be slices of one block, which is freed with the last of them.
 *
 * Returns: LADE_OK if all items are done; else the status of the first item (by index) that failed,
 *          with its error in '*err'; batch->item_errors gets all errors
 * Fails:   as lade_bare_decode_into(); LADE_E_NOMEM (also for single items), LADE_E_LIMIT
 * Threads: any number of callers per engine
 * Owns:    the caller gets one reference to each array
 */
LADE_API lade_status lade_decode_new(lade_engine *engine, const lade_item *items, size_t count,
                                     lade_array **arrays, const lade_decode_new_options *options,
                                     lade_error *err);

/* ---- overlaps --------------------------------------------------------------------------- */

/*
 * A strided region of memory: elements of 'size' bytes, with element (0, 0, ...) at 'data'.  Axis i
 * has count[i] elements, strides[i] bytes apart; strides may be 0 or negative.  Without axes the
 * region is 'size' contiguous bytes.  The struct never changes.
 */
typedef struct lade_region {
	const void *data;
	size_t size;
	size_t ndim; /* 0 to LADE_DIMS_MAX */
	const size_t *count;
	const ptrdiff_t *strides;
} lade_region;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_apart_options {
	size_t struct_size;
	bool fixed_sources; /* nobody can write to the sources: do not check them */
	/*
	 * For callers that decode to scratch memory and copy the results later: one region for each
	 * item, the memory that is copied to, or NULL.  'data' NULL means the item's 'dst'.  Such a
	 * region may overlap its own item's source.
	 */
	const lade_region *dsts;
	/* For tables of up to 80 bytes for each destination; NULL: the default for LADE_HOST. */
	const lade_allocator *scratch;
	/* sizeof of the structs in the call's arrays; 0: as in 0.2.0 (batch.h). */
	size_t item_size, segment_size, output_size;
} lade_apart_options;

/*
 * Checks that no destination shares a byte with another destination or with any source.
 * lade_decode_into() and lade_encode_into() require it but do not check it.  Layouts count without
 * their gaps; an invalid layout counts as no bytes.  Sources may overlap each other.
 *
 * The check is complete for contiguous destinations.  A strided destination is compared with the 8
 * that start next, and with sources that end after its start and have fewer than 8 others starting
 * in between.  Two strided destinations with different strides are searched for 4096 steps; they
 * count as apart if no common byte is found.
 *
 * Fails:   LADE_E_ARG if memory overlaps; the message names the items, for example "the
 *          destinations of items 2 and 5 overlap" or "the destination of item 2 overlaps the source
 *          of item 5".  LADE_E_ARG for invalid arguments, LADE_E_NOMEM
 * Threads: any
 * Owns:    nothing
 */
LADE_API lade_status lade_items_apart(lade_direction direction, const lade_item *items,
                                      size_t count, const lade_apart_options *options,
                                      lade_error *err);

/* Like lade_items_apart(), for chunks whose tables, src_size too, are in host memory
 * (LADE_ASYNC_HOST_TABLES). */
LADE_API lade_status lade_arrays_apart(const lade_arrays *arrays,
                                       const lade_apart_options *options, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
