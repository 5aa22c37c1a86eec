/*
 * args.h: what the host and the kernels of filters agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FILTER_ARGS_H
#define LADE_FILTER_ARGS_H

#include "gpu/args.h"

#define LADE_TILE_BYTES 4096 /* of a warp's tile of 32 lines */
#define LADE_TILE_WARPS 4    /* of a block */

/* What is in the place of elements on the encoded side. */
#define LADE_ROWS_NONE 0u
#define LADE_ROWS_BYTES 1u
#define LADE_ROWS_BITS 2u

/* What is done to elements, each to the whole tile before the next. */
#define LADE_WORDS_ZAG 1u
#define LADE_WORDS_SWAP 2u
#define LADE_WORDS_DIFF 4u
#define LADE_WORDS_ZIG 8u

/* Filters that follow each other and are done as one. */
typedef struct lade_filters {
	uint32_t ops;     /* LADE_WORDS_... */
	uint32_t size;    /* bytes of an element: not 0, and 1, 2, 4 or 8 where 'ops' is not 0 */
	uint32_t rows;    /* LADE_ROWS_... */
	uint32_t msb;     /* of bits: the highest one's row comes first */
	uint32_t block;   /* and: a multiple of 8 * size whose bits are exchanged by themselves; 0:
	                   * all */
	uint32_t partial; /* the status of chunks that end with a part of an element; LADE_GPU_OK:
	                   * its bytes are kept as they are, which is for rows alone */
	uint32_t late;    /* and: that is seen behind a lack of room */
} lade_filters;
LADE_ARGS(lade_filters, 28);

#endif
