/*
 * tile_group.h: filters in a row that pass over the data in tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_HOST_TILE_GROUP_H
#define LADE_BATCH_HOST_TILE_GROUP_H

#include "batch/host/item.h"

/* A tile where it is widest, about: half a first-level cache. */
#define LADE__TILE_BYTES 16384

/*
 * A group of stages whose filters pass over the data in tiles.  'step' is +1 when encoding and -1
 * when decoding; stages first, first + step, ... 'count' of them.
 */
typedef struct lade__group {
	size_t first, count;
	int step;
	size_t in_size, out_size; /* of the whole group */
	size_t tile;              /* the first stage's elements a tile; 0: everything in one */
} lade__group;

/* The longest group of at most 'left' stages; '*group' says which is the first, the step, and the
 * input's size.  It gets count 0 when the stage has no tiles.  Fails when the input's size does not
 * fit a stage. */
lade_status lade__group_make(const lade__pipe *pipe, size_t left, lade__group *group,
                             lade_error *err);

/* Runs it from 'src' to 'dst' (out_size bytes), or, when 'sink' is not NULL, there. */
lade_status lade__group_run(const lade__pipe *pipe, const lade__group *group, const void *src,
                            void *dst, const lade__sink *sink, lade_error *err);

#endif
