/*
 * reader.h: an open frame, and what its reader shares with a pipe's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_READER_H
#define LADE_FRAME_READER_H

#include "frame/chunk.h"
#include "frame/source.h"

#include <lade/array.h>

/* Pages kept, 64 KiB each.  Page n is in place n % 64. */
#define LADE__PAGES_KEPT 64

struct lade_frame {
	lade_engine *engine;
	lade_frame_read_options options;
	lade__source source;
	struct lade__device_frame *on_device; /* of device.c; NULL: the frame is elsewhere */
	lade_array *copy;      /* of list.c: its bytes, brought to the host; or NULL */
	lade__header header;
	lade__footer footer;
	lade_frame_info info;
	lade__coder coder;
	uint64_t *page_off; /* footer.page_count of them */
	pthread_mutex_t mutex; /* guards the pages and the buffers */
	lade__page *pages[LADE__PAGES_KEPT];
	struct lade__read_buffer *buffers; /* of gpu/read.c, not in use */
};

/* The page, which stays valid while the caller holds the frame's mutex. */
lade_status lade__frame_page(lade_frame *frame, uint64_t number, const lade__page **out,
                             lade_error *err);

/* A chunk by its page. */
void lade__frame_locate(const lade_frame *frame, const lade__page *page, uint64_t index,
                        lade__located *out);

/* Parses a chunk's header with its spec, which must say what the index says. */
lade_status lade__frame_check(const lade_frame *frame, const lade__located *at, const uint8_t *src,
                              lade__chunk *out, lade_error *err);

/* Reads options, NULL being all defaults. */
lade_status lade__read_options_check(const lade_frame_read_options *given,
                                     lade_frame_read_options *options, lade_error *err);

/* The flags of the batch calls that the options stand for. */
static inline uint32_t lade__read_batch_flags(const lade_frame_read_options *options)
{
	return options->flags & LADE_FRAME_STRICT ? LADE_BATCH_STRICT : 0;
}

/* What the options refuse of a frame. */
lade_status lade__read_limits(const lade_frame_read_options *options, const lade_frame_info *info,
                              lade_error *err);

#endif
