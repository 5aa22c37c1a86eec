/*
 * device.h: frames that lie in a device's memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_DEVICE_H
#define LADE_FRAME_DEVICE_H

#include "frame/reader.h"

/* The bytes of such a frame as a reader sees them: its beginning and its end, which hold header and
 * index, come with the first call. */
struct lade__far {
	lade_engine *engine;
	lade_cspan frame;
	lade_stream stream;
	uint8_t *ends; /* the first 'head' bytes, then those from 'tail' on */
	size_t head, tail;
};

/* Fetches them behind the work of 'stream'.  Fails: LADE_E_UNSUPPORTED while that is captured,
 * LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM */
lade_status lade__far_new(lade_engine *engine, lade_cspan frame, lade_stream stream,
                          struct lade__far **out, lade_error *err);
void lade__far_free(struct lade__far *far);

/* A lade_source's read_at, 'ctx' being the lade__far. */
lade_status lade__far_read(void *ctx, uint64_t off, void *dst, size_t size, lade_error *err);

/*
 * Decodes all of the frame to 'dst' on the same device, and waits.
 * Fails: LADE_E_UNSUPPORTED where the device cannot do it alone; LADE_E_CORRUPT where anything is
 *        not as it should be, for another reader to find out what
 */
lade_status lade__far_decode(lade_frame *frame, lade_span dst, lade_error *err);

#endif
