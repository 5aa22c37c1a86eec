/*
 * wave.h: the pages of a wave, from ranges of the file to items of a batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_RNTUPLE_WAVE_H
#define LADE_RNTUPLE_WAVE_H

#include "rntuple/read.h"

/* A part of a page, as a layout: its first element and their number. */
typedef struct rnt_box {
	size_t shape, start, count;
	lade_layout layout;
} rnt_box;

typedef struct rnt_wave {
	rnt_read *r;
	rnt_lane *lane;
	bool alone; /* the other threads have waves of their own */
	const rnt_piece *piece;
	size_t count;
	const uint8_t **data, **sum; /* of each piece's page */
	bool *direct;                /* of each piece: it is in its target */
	lade_segment *segment;
	lade_item *item;
	size_t *item_piece; /* its first piece */
	size_t item_count;
	lade_item_output *output;
	rnt_box *box;
	lade_result *result;
	lade_cspan *lz4;   /* blocks whose XXH64 is verified */
	size_t *lz4_piece; /* of each */
	size_t lz4_count;
} rnt_wave;

/* Reads the pages of pieces [first, end), 'bytes' stored ones, verifies their checksums and makes
 * items of them, which have no results yet.  To be reset in any case. */
lade_status lade__rnt_wave_make(rnt_wave *w, size_t first, size_t end, size_t bytes,
                                lade_error *err);
void lade__rnt_wave_reset(rnt_wave *w);

/* Decodes 'count' of its items, from 'first' on.  Fails: as the first one that does */
lade_status lade__rnt_wave_decode(rnt_wave *w, size_t first, size_t count, lade_error *err);

/* The bytes that an item is to decode to; and what is wrong with it, which 'why' says. */
size_t lade__rnt_item_size(const lade_item *item);
lade_status lade__rnt_item_error(const rnt_wave *w, size_t item, lade_status status,
                                 const char *why, lade_error *err);

#endif
