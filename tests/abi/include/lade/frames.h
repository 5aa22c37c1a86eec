/*
 * frames.h: lists of .lade frames in memory of any kind: short ones beside each other, a thread
 * each, long ones by all threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAMES_H
#define LADE_FRAMES_H

#include <lade/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_frames_options {
	size_t struct_size;
	const lade_frame_read_options *read; /* of all frames; NULL: all defaults */
	const lade_frame_options *write;     /* likewise; each has its item's size */
	/*
	 * NULL: all defaults.  Its threads, stream, where, device and cancel take the place of
	 * those of 'read' and 'write'; of its flags LADE_BATCH_STRICT is looked at.
	 */
	const lade_batch_options *batch;
} lade_frames_options;

/*
 * lade_frames_open() opens the frames that the items have as their one segment each.  'frames[i]'
 * is item i's, to be closed by lade_frame_close(), or NULL if that failed.  The memory is borrowed
 * until then.  A frame on a device stays there if the device has all kernels for it; else all of it
 * is copied to the host.
 *
 * lade_frames_read() decodes open frames to the items' destinations: all of each frame, or the
 * item's range.  The items' sources are not looked at.  An item whose frame is NULL is passed over:
 * its result stays as it is.  The frames must be of one engine.
 *
 * lade_frames_write() makes a frame of each item's one segment; lade_frame_bound() bytes suffice.
 * From a device to a device, and with LADE_WHERE_DEVICE, the device encodes it; else, and where the
 * device cannot, the host does.
 *
 * Items have no spec, layout, outputs and tail.  What is on devices is read and written behind the
 * work of the stream, one frame after the other.
 *
 * Returns: as lade_decode_into()
 * Fails:   as lade_frame_open(), lade_frame_read() and lade_frame_writer_write(); LADE_E_NOSPACE
 * Threads: any number of callers per engine
 * Owns:    the caller: frames; all spans stay the caller's
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
