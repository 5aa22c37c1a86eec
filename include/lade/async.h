/*
 * async.h: batches that are enqueued on a device's stream, and batches of device arrays.
 *
 * The calls of batch.h wait for their results.  Those here enqueue their work and return: nothing
 * is waited for, no memory of the device is read by the host, and what became of the items stays
 * on the device until lade_results_get() fetches it.  (The first use of a kernel loads it; and
 * where a device has no memory pools, giving back what a call took for want of a workspace waits.)
 *
 * All that a call is given must stay as it is until its work is done, except what is said to be
 * read at once: the tables of items and segments, and options.  Where bytes or sizes change all the
 * same, or a destination overlaps its source, the results are anything; but the work ends, and
 * touches nothing outside of sources and destinations.  (Addresses are trusted, and so is the
 * workspace.)
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
	/* The tables of lade_arrays lie in host memory and are read at once: the call brings them
	 * to the device, which is the quickest way for a host that knows many chunks. */
	LADE_ASYNC_HOST_TABLES = 1,
	/* Only with it: src_size lies on the device all the same, aligned to 8 bytes; the sizes
	 * that an earlier call stored there, for one. */
	LADE_ASYNC_DEVICE_SIZES = 2,
};

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_async_options {
	size_t struct_size; /* sizeof(lade_async_options) */
	int32_t device;     /* where the kernels run */
	lade_stream stream; /* of that device; NULL: its default stream */
	uint32_t flags;     /* LADE_ASYNC_..., for batches of arrays; else 0 */

	/*
	 * Device memory, aligned to 256 bytes, in use until the work is done; lade_workspace_size()
	 * says how much.  NULL: the call takes what it needs from the engine's allocator for
	 * LADE_DEVICE and gives it back, both in the stream's order.
	 */
	void *workspace;
	size_t workspace_size;

	/*
	 * Device memory for 'count' results each, aligned to their size; NULL: not wanted.  An
	 * item's size is the count of its result's bytes, 0 where it failed; its status is a
	 * lade_status.
	 */
	uint64_t *sizes;
	uint32_t *statuses;

	/* sizeof of the structs that the call is given; 0: as in 0.2.0 (batch.h). */
	size_t item_size, segment_size, output_size, result_size;
} lade_async_options;

/*
 * lade_decode_async() decodes items as lade_decode_into() does, lade_encode_async() encodes them,
 * on the device and stream of 'options'.
 *
 * Sources and destinations are memory that the device can reach: its own, managed, or pinned; what
 * is pageable is for the calls that wait.  Every stage of the spec must have an
 * implementation for devices (lade_explain() lists them).  An item has one segment, or several
 * that all tell their decoded size; ranges and tails are not taken here.  Layouts are read at once:
 * a captured graph keeps those that it was captured with.
 *
 * While 'stream' is being captured into a graph, all spans must be the device's own memory and a
 * workspace must be given; what is captured may be replayed as often as wanted with new bytes in
 * the same places.
 *
 * Returns: LADE_OK when all items are enqueued; else none is, and '*err' names the first item that
 *          cannot be.  (Only where the driver fails, LADE_E_DEVICE, some of the work may be under
 *          way: wait for the stream before memory is given back.)  What is wrong with compressed
 *          data is told by the item's status alone
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
 * A batch whose tables lie on the device too, so that nothing crosses to the host: 'count' chunks,
 * chunk i from src[i], src_size[i] bytes, to dst[i], dst_cap[i] bytes at most.  The tables are
 * device memory, aligned to 8 bytes; they are read by the kernels.
 *
 * What the kernels find in them: a NULL with a size that is not 0 gives the item LADE_E_ARG, and a
 * size above 1 GiB LADE_E_LIMIT.  With a spec of several stages a decoded side larger than
 * 'largest' gives LADE_E_LIMIT, whatever the chunk decodes to; the other items are done.  Filters
 * alone that follow each other may be one stage for the device, which then takes larger ones.
 * Pointers are trusted.
 *
 * With LADE_ASYNC_HOST_TABLES the tables are the host's, and the workspace has room for them as
 * lade_workspace_size() counts it.
 */
typedef struct lade_arrays {
	size_t struct_size; /* sizeof(lade_arrays) */
	const void *const *src;
	const uint64_t *src_size;
	void *const *dst;
	const uint64_t *dst_cap;
	size_t count;
	/* No chunk's decoded side is larger: dst_cap or src_size.  0: not known, which a spec of
	 * several stages refuses with LADE_E_ARG. */
	uint64_t largest;
	/* Nor that of all chunks together, without those above 'largest'; 0: not known.  With a
	 * spec of several stages it makes the workspace smaller, and chunks that then have no room
	 * there get LADE_E_NOSPACE. */
	uint64_t total;
	/*
	 * NULL, or the layout of all chunks: of chunk i in dst[i], dst_cap[i] bytes when decoding,
	 * in src[i], src_size[i] bytes when encoding.  It is read at once.  Then 'largest' and
	 * 'total' are not looked at.  An element outside of its span gives the item LADE_E_RANGE.
	 */
	const lade_layout *layout;
	/*
	 * With a layout, decoding only: NULL, or boxes in place of the layout's start and count, in
	 * device memory aligned to 8 bytes whatever the flags say: of chunk i the starts of all
	 * source axes and then the counts, 2 * ndim numbers.  Strides are given then.  A box
	 * outside of the shape gives the item LADE_E_RANGE; whether the elements of one overlap is
	 * not looked at.
	 */
	const uint64_t *boxes;
} lade_arrays;

/* Zeroes options and sets all sizes to those of these headers. */
static inline void lade_async_options_init(lade_async_options *options)
{
	memset(options, 0, sizeof *options);
	options->struct_size = sizeof *options;
	options->item_size = sizeof(lade_item);
	options->segment_size = sizeof(lade_segment);
	options->output_size = sizeof(lade_item_output);
	options->result_size = sizeof(lade_result);
}

/* As lade_decode_async() and lade_encode_async(). */
LADE_API lade_status lade_decode_arrays_async(lade_engine *engine, const lade_spec *spec,
                                              const lade_arrays *arrays,
                                              const lade_async_options *options, lade_error *err);
LADE_API lade_status lade_encode_arrays_async(lade_engine *engine, const lade_spec *spec,
                                              const lade_arrays *arrays,
                                              const lade_async_options *options, lade_error *err);

/*
 * The decoded sizes of such a batch, without decoding it: to 'sizes' of the options, with what is
 * wrong to 'statuses'.  Of 'arrays' only src, src_size and count are looked at, and no workspace is
 * needed (the host's tables want 16 bytes an item).  Of LZ4, which does not tell its size, all
 * sequences are read; of Snappy the preamble.  Otherwise as lade_decode_arrays_async().
 * Fails: LADE_E_UNSUPPORTED for other codecs, and behind filters that change sizes
 */
LADE_API lade_status lade_decoded_sizes_arrays_async(lade_engine *engine, const lade_spec *spec,
                                                     const lade_arrays *arrays,
                                                     const lade_async_options *options,
                                                     lade_error *err);

/*
 * The checksums of a batch whose tables lie on a device, into 'sums', 'count' words there: enqueued
 * as lade_decode_arrays_async() enqueues its work.  Of 'arrays' dst and dst_cap are not looked at;
 * the sum of a chunk whose status is not LADE_OK is not written.  The workspace is that of the
 * checksum's stage: lade_workspace_size().
 * Fails: as lade_decode_arrays_async(); LADE_E_UNSUPPORTED for XXH3 and Fletcher-32
 */
LADE_API lade_status lade_checksums_arrays_async(lade_engine *engine, lade_checksum kind,
                                                 const lade_arrays *arrays, uint64_t *sums,
                                                 const lade_async_options *options,
                                                 lade_error *err);

/*
 * The bytes of workspace that suffice for any batch of arrays->count items, of which none is larger
 * than arrays->largest decoded bytes and all together not larger than arrays->total (0: count *
 * largest); for the calls with items and with arrays.  When decoding, an item is as large as its
 * destination, or as the 'decoded_size' of its segments: an item of several segments counts as so
 * many.
 *
 * With arrays->layout, of arrays with that layout, and of items whose layouts have chunks of at
 * most as many bytes and at most as many axes; 'largest' and 'total' are not looked at then.  An
 * item's second output and each further one wants more: for each segment 104 bytes and 32 for each
 * axis, all these rounded up to 256 together.  Of 'boxes' only NULL or not is looked at, and of the
 * tables nothing.
 *
 * Spans in pinned memory pass through the workspace and want room there, which this does not count:
 * for each item 640 bytes more, and what those spans have.
 * Fails: LADE_E_UNSUPPORTED where a stage has no implementation for devices, LADE_E_LIMIT; for a
 *        layout as the calls do
 */
LADE_API lade_status lade_workspace_size(lade_engine *engine, const lade_spec *spec,
                                         lade_direction direction, const lade_arrays *arrays,
                                         size_t *size, lade_error *err);

/*
 * Waits for the work of the options' stream and fetches what became of 'count' items from their
 * 'sizes' and 'statuses', either of which may be NULL: pass the options of the call that enqueued
 * them.  'results' has 'count' entries or is NULL.
 * Returns: as lade_decode_into(): the status of the first item that failed
 * Fails:   LADE_E_UNSUPPORTED while the stream is being captured, LADE_E_NO_DEVICE,
 *          LADE_E_DEVICE, LADE_E_NOMEM; then 'results' are as they were
 */
LADE_API lade_status lade_results_get(const lade_async_options *options, size_t count,
                                      lade_result *results, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
