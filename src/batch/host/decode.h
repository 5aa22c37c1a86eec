/*
 * decode.h: what decoding a segment (decode.c) and an item (decode_item.c) share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_HOST_DECODE_H
#define LADE_BATCH_HOST_DECODE_H

#include "batch/host/item.h"

/*
 * Scratch memory for a window's segment, on the word of the data alone or where its format does
 * not state the size, is at most this or four times what the window reaches to: a few hundred
 * kilobytes of zstd may decode to many gigabytes.
 */
#define LADE__GROW_MAX ((size_t)1 << 30)

typedef struct lade__decoder {
	lade__pipe pipe;
	lade__sink window;
	const lade__sink *sink; /* &window; NULL: plain */
	uint8_t *dst;           /* plain: where the segment goes */
	size_t cap;             /* the most bytes that the segment may decode to */
	size_t believed;        /* the most scratch for a stage; 0: 'cap' is the caller's word */
	uint64_t known;         /* what it decodes to; 0: not known */
	bool ends;              /* nothing is wanted behind this segment's part of the window */
	unsigned turn;          /* which of the two blocks is free */
} lade__decoder;

/* Decodes one segment to d->dst, or through d->sink; '*size' becomes its decoded size. */
lade_status lade__decode_segment(lade__decoder *d, lade_cspan at, size_t *size, lade_error *err);

#endif
