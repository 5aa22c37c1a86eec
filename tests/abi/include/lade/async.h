/*
 * async.h: calls that enqueue work on a GPU's stream and return without waiting.
 *
 *	// Tables of 1000 addresses and sizes, and room for 1000 statuses, are on device 0.
 *	lade_arrays arrays = {.struct_size = sizeof arrays, .count = 1000, .src = src_dev,
 *	                      .src_size = sizes_dev, .dst = dst_dev, .dst_cap = caps_dev};
 *	lade_async_options options = {.struct_size = sizeof options, .device = 0,
 *	                              .stream = stream, .statuses = statuses_dev};
 *	if (lade_decode_arrays_async(engine, spec, &arrays, &options, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	lade_status status = lade_results_get(&options, 1000, NULL, &err);    // waits
 *
 * The calls do not wait, and the host reads no device memory.  Sizes and statuses of the items stay
 * on the device until lade_results_get() copies them.  (Two exceptions: the first use of a kernel
 * loads it, and without a workspace, a device without memory pools makes the call wait when it
 * frees memory.)
 *
 * The call reads tables of items and segments, and options, before it returns.  Everything else
 * must not change until the work is done.  If sources or sizes do change, or a destination overlaps
 * its source, the results are unspecified; but the work ends, and touches nothing outside sources
 * and destinations.  Addresses and the workspace are trusted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ASYNC_H
#define LADE_ASYNC_H

#include <lade/batch.h>
#include <lade/checksum.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	/* The tables of lade_arrays are in host memory, and the call copies them to the device.
	 * This is the fastest way if the host knows the addresses of many chunks. */
	LADE_ASYNC_HOST_TABLES = 1,
	/* Only with LADE_ASYNC_HOST_TABLES: src_size is on the device, aligned to 8 bytes; for
	 * example, sizes that an earlier call stored there. */
	LADE_ASYNC_DEVICE_SIZES = 2,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_async_options {
	size_t struct_size; /* sizeof(lade_async_options) */
	int32_t device;     /* where the kernels run */
	lade_stream stream; /* of that device; NULL: its default stream */
	uint32_t flags;     /* LADE_ASYNC_... for calls with lade_arrays; else 0 */

	/*
	 * Device memory, aligned to 256 bytes, in use until the work is done; lade_workspace_size()
	 * returns how much.  NULL: the call allocates and frees device memory with the engine's
	 * allocator, in stream order.
	 */
	void *workspace;
	size_t workspace_size;

	/*
	 * Device memory for 'count' sizes and 'count' statuses, naturally aligned; NULL: not
	 * needed.  A size is the bytes of the item's result, 0 if it failed.  A status is a
	 * lade_status.
	 */
	uint64_t *sizes;
	uint32_t *statuses;

	/* sizeof of the structs in the call's arrays; 0: as in 0.2.0 (batch.h). */
	size_t item_size, segment_size, output_size, result_size;
} lade_async_options;

/*
 * Enqueue decoding or encoding of 'count' items on the device and stream of 'options'.
 *
 * Sources and destinations are memory that the device can reach: its own, managed or pinned memory.
 * Pageable memory is refused: use batch.h.  Every stage of the spec must have an implementation for
 * devices (lade_explain() lists them).  An item has one segment, or several that all have their
 * decoded_size set.  Ranges and tails are refused.
 *
 * While 'stream' is being captured into a graph, all spans must be the device's own memory and a
 * workspace must be given.  The graph can be replayed with new bytes in the same places.  It keeps
 * the layouts that it was captured with.
 *
 * Returns: LADE_OK if all items are enqueued; else none is, and '*err' names the first item that
 *          cannot be.  Corrupt data is reported only in the item's status.  If the driver fails
 *          (LADE_E_DEVICE), some work may be running: wait for the stream before you free memory
 * Fails:   LADE_E_ARG, LADE_E_UNSUPPORTED, LADE_E_NOSPACE (the workspace is too small),
 *          LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM, LADE_E_NOT_FOUND
 * Threads: any number of callers per engine
 * Owns:    nothing; all spans stay the caller's
 */
LADE_API lade_status lade_decode_async(lade_engine *engine, const lade_spec *spec,
                                       const lade_item *items, size_t count,
                                       const lade_async_options *options, lade_error *err);
LADE_API lade_status lade_encode_async(lade_engine *engine, const lade_spec *spec,
                                       const lade_item *items, size_t count,
                                       const lade_async_options *options, lade_error *err);

/*
 * A batch of 'count' chunks by tables: chunk i goes from src[i], src_size[i] bytes, to dst[i],
 * dst_cap[i] bytes at most.  The tables are device memory, aligned to 8 bytes, and kernels read
 * them; with LADE_ASYNC_HOST_TABLES they are host memory.
 *
 * The kernels check the tables: a NULL with a size other than 0 gives the item LADE_E_ARG, a size
 * above 2 GiB - 1 LADE_E_LIMIT.  With a spec of several stages, a decoded side larger than
 * 'largest' gives LADE_E_LIMIT, whatever the chunk decodes to.  The other items are done.  (Filters
 * in a row may be one stage for the device, which then accepts larger ones.)  Other pointers are
 * trusted.
 */
typedef struct lade_arrays {
	size_t struct_size; /* sizeof(lade_arrays) */
	const void *const *src;
	const uint64_t *src_size;
	void *const *dst;
	const uint64_t *dst_cap;
	size_t count;
	/* The largest decoded side of a chunk: dst_cap when decoding, src_size when encoding.  0:
	 * unknown, which a spec of several stages refuses with LADE_E_ARG. */
	uint64_t largest;
	/* The sum of the decoded sides of all chunks, without those above 'largest'; 0: unknown.
	 * With a spec of several stages it makes the workspace smaller; chunks that then find no
	 * room there get LADE_E_NOSPACE. */
	uint64_t total;
	/*
	 * NULL, or one layout for all chunks: in dst[i] when decoding, in src[i] when encoding.
	 * The call reads it before it returns and ignores 'largest' and 'total'.  An element
	 * outside its span gives the item LADE_E_RANGE.
	 */
	const lade_layout *layout;
	/*
	 * Decoding with a layout: NULL, or boxes that replace the layout's start and count.  They
	 * are device memory aligned to 8 bytes, even with LADE_ASYNC_HOST_TABLES: for each chunk
	 * the starts of all source axes, then the counts, 2 * ndim numbers.  The layout must set
	 * strides.  A box outside the shape gives the item LADE_E_RANGE.  Overlapping elements are
	 * not checked.
	 */
	const uint64_t *boxes;
} lade_arrays;

/* Zeroes the options and sets all struct sizes to those of these headers. */
static inline void lade_async_options_init(lade_async_options *options)
{
	memset(options, 0, sizeof *options);
	options->struct_size = sizeof *options;
	options->item_size = sizeof(lade_item);
	options->segment_size = sizeof(lade_segment);
	options->output_size = sizeof(lade_item_output);
	options->result_size = sizeof(lade_result);
}

/* Like lade_decode_async() and lade_encode_async(), for chunks in tables. */
LADE_API lade_status lade_decode_arrays_async(lade_engine *engine, const lade_spec *spec,
                                              const lade_arrays *arrays,
                                              const lade_async_options *options, lade_error *err);
LADE_API lade_status lade_encode_arrays_async(lade_engine *engine, const lade_spec *spec,
                                              const lade_arrays *arrays,
                                              const lade_async_options *options, lade_error *err);

/*
 * Finds the decoded sizes of a batch without decoding it, and stores them in 'sizes' of the
 * options, and failures in 'statuses'.  It uses src, src_size and count of 'arrays' only.  It needs
 * no workspace, except 16 bytes an item for tables in host memory.  For LZ4, which does not store a
 * size, a kernel reads all sequences; for Snappy, the preamble.
 *
 * Fails: as lade_decode_arrays_async(); LADE_E_UNSUPPORTED for other codecs, and for specs with
 *        filters that change sizes
 */
LADE_API lade_status lade_decoded_sizes_arrays_async(lade_engine *engine, const lade_spec *spec,
                                                     const lade_arrays *arrays,
                                                     const lade_async_options *options,
                                                     lade_error *err);

/*
 * Enqueues the checksums of a batch, which go to 'sums': 'count' words of device memory.  It
 * ignores dst and dst_cap of 'arrays'.  A chunk whose status is not LADE_OK gets no sum.  The
 * workspace is that of a spec with this checksum: lade_workspace_size().
 *
 * Fails: as lade_decode_arrays_async(); LADE_E_UNSUPPORTED for XXH3 and Fletcher-32
 */
LADE_API lade_status lade_checksums_arrays_async(lade_engine *engine, lade_checksum kind,
                                                 const lade_arrays *arrays, uint64_t *sums,
                                                 const lade_async_options *options,
                                                 lade_error *err);

/*
 * Stores how many bytes of workspace are enough for any batch of arrays->count items with at most
 * arrays->largest decoded bytes each and arrays->total in all (0: count * largest).  It holds for
 * the calls with items and with tables.  When decoding, an item is as large as its destination, or
 * as the decoded_size of its segments: each segment counts as one item.  The result includes room
 * for tables in host memory.  The call does not read the tables.
 *
 * With arrays->layout, the result is for arrays with that layout, and for items whose layouts have
 * chunks of no more bytes and axes; 'largest' and 'total' are ignored.  Set arrays->boxes to any
 * address if the call will have boxes.
 *
 * Add for items: an item's second and each further output needs 104 + 32 * axes bytes for each
 * segment; round the sum of all these up to 256.  Spans in pinned memory go through the workspace:
 * add 640 bytes for each item, and the size of those spans.
 *
 * Fails: LADE_E_UNSUPPORTED if a stage has no implementation for devices, LADE_E_LIMIT; for a
 *        layout as the calls do
 */
LADE_API lade_status lade_workspace_size(lade_engine *engine, const lade_spec *spec,
                                         lade_direction direction, const lade_arrays *arrays,
                                         size_t *size, lade_error *err);

/*
 * Waits for the stream of the options and copies the results of 'count' items from 'sizes' and
 * 'statuses' (either may be NULL) to the host.  Pass the options of the call that enqueued the
 * items.  'results' has 'count' entries or is NULL.
 *
 * Returns: as lade_decode_into(): the status of the first item that failed
 * Fails:   LADE_E_UNSUPPORTED while the stream is being captured, LADE_E_NO_DEVICE,
 *          LADE_E_DEVICE, LADE_E_NOMEM; then 'results' is unchanged
 */
LADE_API lade_status lade_results_get(const lade_async_options *options, size_t count,
                                      lade_result *results, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
