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

/* What is done to an element behind the bits it is made of, in this order. */
#define LADE_UNPACK_LEVELS 1u /* a level of 32 bits becomes a real of 4 bytes */
#define LADE_UNPACK_REALS 2u  /* a real becomes one of 'size' bytes */

/* Who else looks at the room. */
#define LADE_ROOM_FILTER 1u /* another filter, which sees that a last part of an element has none */
#define LADE_ROOM_CODEC 2u  /* a codec: its result has no more bytes than the elements have bits */

/* Elements from bits: packints, levels and cast. */
typedef struct lade_unpack {
	uint32_t size;        /* bytes of an element: 1, 2, 4 or 8 */
	uint32_t bits, first; /* stored bits, 1 to 8 * size; the place of the lowest one */
	uint32_t extend;      /* bits above them, of 64, that take the sign; 0: none */
	uint32_t front, back; /* bytes around the bits, which say how many are not used: 0 or 1 */
	uint32_t whole;       /* the chunk has a multiple of these bytes, all used; 0: any */
	uint32_t ops;         /* LADE_UNPACK_... */
	uint32_t real;        /* bytes of a real that becomes wider: 2 or 4 */
	uint32_t rooms;       /* LADE_ROOM_... */
	double min, scale, max; /* of levels */
} lade_unpack;
LADE_ARGS(lade_unpack, 64);

#endif
