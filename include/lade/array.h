/*
 * array.h: what callers with arrays of their own need around the batches: counted owners of memory,
 * and whether the memory of a call's items lies apart.
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
 * A counted owner of one block of memory: the library's, from an allocator, or foreign memory that
 * somebody must be told to release.  Bytes have no type here; lade_tensor (dlpack.h) adds it.
 *
 *	lade_array *array;
 *	lade_place gpu = {LADE_DEVICE, 0};
 *	lade_array_options options = {.struct_size = sizeof options, .stream = stream};
 *	lade_array_new(size, gpu, &options, &array, &err);
 *	lade_decode_async(..., lade_array_span(array), stream ...);
 *	lade_array_used(array, 0, stream, &err);
 *	lade_array_unref(array);  // gives the memory back behind the decoding, without waiting
 *
 * Threads: any call on one array may run at the same time as any other, except where it says
 *          otherwise; the last unref must not race with them
 */
typedef struct lade_array lade_array;

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_array_options {
	size_t struct_size;
	size_t align; /* a power of two; 0: 64 */
	/* Gives the memory and takes it back; NULL: lade_allocator_default(place.kind).  Copied;
	 * what its ctx points at must outlive the array. */
	const lade_allocator *allocator;
	/* Of device memory: work that is enqueued on it from now on may use the block.  It must be
	 * alive during this call, and may end at any time after it. */
	lade_stream stream;
	/*
	 * Called once, when nobody has the array any more and its memory was given back (foreign
	 * memory: is to be released), by the thread that dropped the last reference.
	 */
	void (*gone)(void *ctx);
	void *gone_ctx;
} lade_array_options;

/*
 * lade_array_new() takes 'size' bytes, contents undefined; 0 bytes are no block, with NULL data.
 * lade_array_wrap() owns memory that is somebody else's until 'gone' is called; align, allocator
 * and stream of the options are not looked at.
 * lade_array_slice() is an array of its own on 'size' bytes from 'off' on, which keeps the whole.
 * Fails: LADE_E_ARG, LADE_E_NOMEM, LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_RANGE (a slice passes
 *        the end); 'gone' is not called then
 * Owns:  the caller, one reference
 */
LADE_API lade_status lade_array_new(size_t size, lade_place place,
                                    const lade_array_options *options, lade_array **out,
                                    lade_error *err);
LADE_API lade_status lade_array_wrap(lade_span span, const lade_array_options *options,
                                     lade_array **out, lade_error *err);
LADE_API lade_status lade_array_slice(lade_array *array, size_t off, size_t size,
                                      lade_array **out, lade_error *err);

/*
 * One reference more, and one less; NULL is fine for both.  With the last one the block goes back:
 * device memory of an allocator's in the order of the streams that use it, without waiting; all
 * other memory after waiting for them.
 */
LADE_API lade_array *lade_array_ref(lade_array *array);
LADE_API void lade_array_unref(lade_array *array);

/* The array's memory. */
LADE_API lade_span lade_array_span(const lade_array *array);

/* The array that a slice keeps, with all of the block; any other array itself.  No new reference;
 * NULL of NULL. */
LADE_API lade_array *lade_array_whole(lade_array *array);

/* True when the caller's reference is the only one, slices of the block counted: nobody else can
 * reach the memory, and nobody can get to without the caller. */
LADE_API bool lade_array_is_sole(const lade_array *array);

/*
 * Makes the array smaller and gives the end of its memory back, where that is worth it: with a sole
 * reference to pageable memory of the default allocator.  The data may move then, and keeps the
 * alignment of malloc() only.  Else the array just says 'size' from now on.
 * Threads: no other call on the array at the same time
 * Fails:   LADE_E_ARG where 'size' is more than there is
 */
LADE_API lade_status lade_array_shrink(lade_array *array, size_t size, lade_error *err);

/*
 * lade_array_used() notes that all that was enqueued on 'stream' of 'device' so far may use the
 * block.  The stream must be alive during the call, and may end after it: the array keeps a mark of
 * its own, never the handle.  Where no mark can be made, as there is no memory, it waits.
 * lade_array_used_until() notes the same with a mark that the caller has; it may be freed then.
 * lade_array_follow() lets what is enqueued on 'stream' from now on begin when that work is done.
 * lade_array_wait() returns when it is done, and tells of a failure in it.
 * Fails: LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM, LADE_E_ARG, LADE_E_UNSUPPORTED while the
 *        stream is being captured
 */
LADE_API lade_status lade_array_used(lade_array *array, int32_t device, lade_stream stream,
                                     lade_error *err);
LADE_API lade_status lade_array_used_until(lade_array *array, lade_mark *mark, lade_error *err);
LADE_API lade_status lade_array_follow(lade_array *array, int32_t device, lade_stream stream,
                                       lade_error *err);
LADE_API lade_status lade_array_wait(lade_array *array, lade_error *err);

/*
 * lade_copy() copies src.size bytes from any place to any other, and waits for it.  Of two devices
 * 'stream' is the source's, and of one that one's: what was enqueued on it before is done before.
 * In host memory the spans may overlap.  'engine' may be NULL: lade_engine_default().
 * lade_array_copy() makes a new array of the same bytes in another place, behind all work that the
 * array knows of; the options are those of lade_array_new().
 * Fails: LADE_E_NOSPACE, LADE_E_ARG, LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM
 */
LADE_API lade_status lade_copy(lade_engine *engine, lade_cspan src, lade_span dst,
                               lade_stream stream, lade_error *err);
LADE_API lade_status lade_array_copy(lade_engine *engine, lade_array *array, lade_place place,
                                     const lade_array_options *options, lade_array **out,
                                     lade_error *err);

/* ---- items of unknown size --------------------------------------------------------------- */

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_decode_new_options {
	size_t struct_size;
	const lade_spec *spec;           /* of items without their own */
	lade_bare kind;                  /* 0: LADE_BARE_RAW */
	const lade_batch_options *batch; /* NULL: all defaults */
	lade_place place;                /* of the results */
	const lade_array_options *array; /* of the new arrays, without 'gone'; NULL: all defaults */
	uint64_t largest; /* a larger result is LADE_E_LIMIT; 0: no limit */
} lade_decode_new_options;

/*
 * Decodes 'count' items into memory that the call takes.  'arrays[i]' gets the result of item i, of
 * its size; NULL where the item failed.  The items' destinations are not looked at; layouts,
 * outputs, ranges and tails are not taken.
 *
 * What the data tells of its size is looked at as lade_bare_decoded_sizes() does.  An item that
 * does not tell, or tells too little, gets four times its encoded bytes, at least 8 KiB, and four
 * times as much again until it fits: at most lade_spec_decoded_max() and 'largest'.
 *
 * Arrays of one call may be slices of one block, which goes back with the last of them.
 *
 * Returns: LADE_OK when all items are done; else the status of the first item (by index) that
 *          failed, with its own error in '*err'; batch->item_errors has those of all
 * Fails:   as lade_bare_decode_into(); LADE_E_NOMEM also of single items, LADE_E_LIMIT
 * Threads: any number of callers per engine
 * Owns:    the caller, one reference to each array
 */
LADE_API lade_status lade_decode_new(lade_engine *engine, const lade_item *items, size_t count,
                                     lade_array **arrays, const lade_decode_new_options *options,
                                     lade_error *err);

/* ---- overlaps --------------------------------------------------------------------------- */

/*
 * Memory that is touched: elements of 'size' bytes, the first of them (all indices 0) at 'data'.
 * Along axis i there are count[i] of them, strides[i] bytes apart, which may be 0 or negative.
 * Without axes it is 'size' contiguous bytes.  The struct stays as it is for ever.
 */
typedef struct lade_region {
	const void *data;
	size_t size;
	size_t ndim; /* 0 to LADE_DIMS_MAX */
	const size_t *count;
	const ptrdiff_t *strides;
} lade_region;

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_apart_options {
	size_t struct_size;
	bool fixed_sources; /* nobody can write to the sources: they are not looked at */
	/*
	 * One for each item, or NULL: the memory that an item's result is copied to once all are
	 * done, for items whose 'dst' is scratch memory of the caller's.  With 'data' NULL it is
	 * the item's 'dst'.  Such a destination may overlap its own item's source.
	 */
	const lade_region *dsts;
	/* For tables of up to 80 bytes a destination; NULL: lade_allocator_default(LADE_HOST). */
	const lade_allocator *scratch;
	/* sizeof of the structs that the call is given; 0: as in 0.2.0 (batch.h). */
	size_t item_size, segment_size, output_size;
} lade_apart_options;

/*
 * Whether the items' destinations share no byte with each other nor with any source, as
 * lade_decode_into() and lade_encode_into() want it; those calls do not look.  Layouts count with
 * their own bytes, without the gaps; one that is not valid touches nothing.  Sources may overlap
 * each other.
 *
 * Addresses are compared wherever the memory is: those of hosts and devices differ.  All contiguous
 * destinations are compared, and all sources with them.  A strided destination is compared with the
 * 8 that begin next, and with sources that end behind its beginning with fewer than 8 others
 * beginning in between.  Two strided ones whose strides differ are searched 4096 steps deep, and
 * count as apart if nothing was found.
 *
 * Fails:   LADE_E_ARG, naming the items: "the destinations of items 2 and 5 overlap", "the
 *          destination of item 2 overlaps the source of item 5", "the destination of item 2
 *          overlaps its source", "two outputs of item 2 overlap", of a single item "the
 *          destination overlaps the source"; or for arguments that are not valid.  LADE_E_NOMEM
 * Threads: any
 * Owns:    nothing
 */
LADE_API lade_status lade_items_apart(lade_direction direction, const lade_item *items,
                                      size_t count, const lade_apart_options *options,
                                      lade_error *err);

/* The same of chunks whose tables are in host memory (LADE_ASYNC_HOST_TABLES; src_size too). */
LADE_API lade_status lade_arrays_apart(const lade_arrays *arrays,
                                       const lade_apart_options *options, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
