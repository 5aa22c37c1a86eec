/*
 * chain.h: filters in a row that pass over the data in tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_HOST_CHAIN_H
#define LADE_BATCH_HOST_CHAIN_H

#include "batch/host/item.h"

/* A tile where it is widest, about: half a first-level cache. */
#define LADE__TILE_BYTES 16384

/*
 * A chain of stages whose filters pass over the data in tiles.  'step' is +1 when encoding and -1
 * when decoding; stages first, first + step, ... 'count' of them.
 */
typedef struct lade__chain {
	size_t first, count;
	int step;
	size_t in_size, out_size; /* of the whole chain */
	size_t tile;              /* the first stage's elements a tile; 0: everything in one */
} lade__chain;

/* The longest chain of at most 'left' stages; '*chain' says which is the first, the step, and the
 * input's size.  It gets count 0 when the stage has no tiles.  Fails when the input's size does not
 * fit a stage. */
lade_status lade__chain_make(const lade__pipe *pipe, size_t left, lade__chain *chain,
                             lade_error *err);

/* Runs it from 'src' to 'dst' (out_size bytes), or, when 'sink' is not NULL, there. */
lade_status lade__chain_run(const lade__pipe *pipe, const lade__chain *chain, const void *src,
                            void *dst, const lade__sink *sink, lade_error *err);

#endif
