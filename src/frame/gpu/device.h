/*
 * device.h: frames in a device's memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_DEVICE_H
#define LADE_FRAME_DEVICE_H

#include "frame/reader.h"

/* The bytes of such a frame. */
struct lade__device_frame {
	lade_engine *engine;
	lade_cspan frame;
	lade_stream stream;
};

lade_status lade__device_frame_new(lade_engine *engine, lade_cspan frame, lade_stream stream,
                                   struct lade__device_frame **out, lade_error *err);
void lade__device_frame_free(struct lade__device_frame *df); /* NULL is fine */

/* Its source, which reads behind the work of 'stream'.  Fails: LADE_E_UNSUPPORTED while that is
 * captured, LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM */
lade_source lade__device_frame_source(struct lade__device_frame *df);

/* How much of its end is read when it is opened; 0: it is NULL. */
size_t lade__device_frame_tail(const struct lade__device_frame *df);

/*
 * Decodes all of the frame to 'dst' on the same device, and waits.
 * Fails: LADE_E_UNSUPPORTED where the device cannot do it alone; LADE_E_CORRUPT where anything is
 *        not as it should be, for another reader to find out what
 */
lade_status lade__device_frame_decode(lade_frame *frame, lade_span dst, lade_error *err);

#endif
