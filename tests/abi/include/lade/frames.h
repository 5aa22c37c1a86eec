/*
 * frames.h: reads and writes many .lade frames in one call, in memory of any kind.
 *
 *	lade_frame_options write = {.struct_size = sizeof write, .spec = spec};
 *	lade_frames_options options = {.struct_size = sizeof options, .write = &write};
 *	lade_segment whole = {.data = field, .size = sizeof field};
 *	lade_item item = {.src = &whole, .src_count = 1,
 *	                  .dst = lade_host_span(packed, sizeof packed)};    // one of N
 *	lade_result result;
 *	if (lade_frames_write(engine, &item, 1, &result, &options, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *
 * Short frames run in parallel, one thread each.  Long frames use all threads, one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAMES_H
#define LADE_FRAMES_H

#include <lade/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_frames_options {
	size_t struct_size;
	const lade_frame_read_options *read; /* for all frames; NULL: all defaults */
	const lade_frame_options *write;     /* for all frames; 'size' is the item's */
	/*
	 * NULL: all defaults.  Its threads, stream, where, device and cancel replace those of
	 * 'read' and 'write'.  LADE_BATCH_STRICT is the only flag that counts.
	 */
	const lade_batch_options *batch;
} lade_frames_options;

/*
 * lade_frames_open() opens the frame in each item's one segment.  'frames[i]' is the frame of item
 * i, or NULL if opening failed.  The memory is borrowed until lade_frame_close().  A frame on a
 * device stays there if the device has all kernels for it; otherwise it is copied to the host.
 *
 * lade_frames_read() decodes open frames, or the items' ranges of them, to the items' destinations.
 * It ignores the items' sources.  It skips items whose frame is NULL and leaves their results
 * unchanged.  All frames must belong to one engine.
 *
 * lade_frames_write() makes a frame of each item's one segment; lade_frame_bound() bytes always
 * suffice.  A device encodes what goes from a device to a device, and everything with
 * LADE_WHERE_DEVICE; the host encodes the rest, and what the device cannot.
 *
 * Items must not have a spec, layout, outputs or tail.  Frames on devices run one after the other,
 * after the work of the stream.
 *
 * Returns: as lade_decode_into()
 * Fails:   as lade_frame_open(), lade_frame_read() and lade_frame_writer_write(); LADE_E_NOSPACE
 * Threads: any number of callers per engine
 * Owns:    the caller owns the frames; all spans stay the caller's
 */
LADE_API lade_status lade_frames_open(lade_engine *engine, const lade_item *items, size_t count,
                                      lade_frame **frames, const lade_frames_options *options,
                                      lade_error *err);
LADE_API lade_status lade_frames_read(lade_frame *const *frames, const lade_item *items,
                                      size_t count, lade_result *results,
                                      const lade_frames_options *options, lade_error *err);
LADE_API lade_status lade_frames_write(lade_engine *engine, const lade_item *items, size_t count,
                                       lade_result *results, const lade_frames_options *options,
                                       lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
