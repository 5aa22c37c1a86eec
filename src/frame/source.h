/*
 * source.h: where a frame's bytes come from: a source, some of whose bytes are in memory; a pipe.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_SOURCE_H
#define LADE_FRAME_SOURCE_H

#include "io/io.h"

#include <lade/frame.h>

/* A frame's bytes. */
typedef struct lade__source {
	lade_source from;
	bool owned; /* closed with the frame */
	lade_cancel *cancel; /* of the call that opens the frame; then NULL */
	bool local; /* threads read what they work on; else all is asked for at once */
	uint64_t size;
	lade_object_version version; /* when it was opened; its size 0: it has none */
	const uint8_t *base;         /* all bytes in host memory; NULL: they are not */
	uint8_t *ends; /* else the first 'head' bytes and those from 'tail' on; or all of them */
	size_t head;
	uint64_t tail;
} lade__source;

/*
 * Reads the frame's ends, unless all of it is in host memory: 'tail' bytes of the end, 0: chosen.
 * 'source' is to be closed whatever becomes of it.
 */
lade_status lade__source_open(lade__source *source, lade_source from, bool owned, size_t tail,
                              lade_cancel *cancel, lade_error *err);
void lade__source_close(lade__source *source);

/* 'size' bytes at 'off', which the caller has checked to be within the frame: where they are in
 * memory, or NULL. */
const uint8_t *lade__source_at(const lade__source *source, uint64_t off, size_t size);

/* The same; those that are not in memory are read into 'buffer'. */
lade_status lade__source_get(const lade__source *source, uint64_t off, size_t size,
                             uint8_t *buffer, const uint8_t **out, lade_error *err);

/* A range to read: of the version that was opened, unless that costs: a file is checked when all
 * has been read. */
static inline lade_range lade__source_range(const lade__source *source, uint64_t off, size_t size,
                                            uint8_t *dst)
{
	bool want = source->version.size && !source->local;
	return (lade_range){.off = off,
	                    .dst = lade_host_span(dst, size),
	                    .want = want ? &source->version : NULL};
}

/* Reads on the calling thread.  As lade_source_read(), but '*err' does not name the range. */
lade_status lade__source_read(const lade__source *source, lade_range *ranges, size_t count,
                              lade_error *err);

/* Returns LADE_E_CHANGED if the bytes are no longer those of the version that was opened, else
 * 'status', the result of using them. */
lade_status lade__source_check_version(const lade__source *source, lade_status status,
                                       lade_error *err);

/* ---- a pipe --------------------------------------------------------------------------------- */

/* What is read ahead; holds an index page. */
#define LADE__AHEAD ((size_t)64 << 10)

typedef struct lade__ahead {
	lade_input input;
	uint8_t *buffer; /* LADE__AHEAD bytes, the owner's */
	size_t at, end;  /* what is not yet taken */
	uint64_t off;    /* of buffer[at], from the first byte of the input */
	bool eof;
} lade__ahead;

/* Reads until 'size' <= LADE__AHEAD bytes stand at '*out', fewer only at the end of the input:
 * '*have' says how many, 'size' at most. */
lade_status lade__ahead_peek(lade__ahead *ahead, size_t size, const uint8_t **out, size_t *have,
                             lade_error *err);

/* Skips 'size' bytes that were peeked at. */
static inline void lade__ahead_skip(lade__ahead *ahead, size_t size)
{
	ahead->at += size;
	ahead->off += size;
}

/* Takes 'size' bytes, or as many as there are: '*got'. */
lade_status lade__ahead_read(lade__ahead *ahead, void *dst, size_t size, size_t *got,
                             lade_error *err);

#endif
