/*
 * source.h: where a frame's bytes come from: memory, a mapped file, pread(), a caller's
 * functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_SOURCE_H
#define LADE_FRAME_SOURCE_H

#include <lade/frame.h>

/* Bytes that can be read anywhere; 'base' is not NULL when they lie in memory. */
typedef struct lade__source {
	lade_source from;
	const uint8_t *base;
	void *map; /* to be unmapped */
	size_t map_size;
	int fd; /* to be closed; -1: none */
} lade__source;

void lade__source_memory(lade__source *source, const void *data, size_t size);
void lade__source_calls(lade__source *source, lade_source from);

/* A regular file, or whatever else has a size.  'source' must not move afterwards. */
lade_status lade__source_path(lade__source *source, const char *path, bool map, lade_error *err);
void lade__source_close(lade__source *source);

/* 'size' bytes at 'off', which the caller has checked to lie within: in memory where they lie
 * there, else read into 'buffer'. */
lade_status lade__source_get(const lade__source *source, uint64_t off, size_t size,
                             uint8_t *buffer, const uint8_t **out, lade_error *err);

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
