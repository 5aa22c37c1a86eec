/*
 * args.h: what the host and the kernels of Blosc1 containers agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_BLOSC_ARGS_H
#define LADE_CODEC_BLOSC_ARGS_H

#include "gpu/args.h"

/* Lists of units, by who decodes them: a kernel each.  The first one has BloscLZ and what is
 * stored, the others the codec's number in the container's flags. */
#define LADE_BLOSC_PLAIN 0u
#define LADE_BLOSC_ZLIB 3u
#define LADE_BLOSC_ZSTD 4u
#define LADE_BLOSC_LISTS 5u

/* A list has at most this many units. */
#define LADE_BLOSC_UNITS_MAX 0x7FFFFFFFu

/* The plan's blocks of threads: one of this many. */
#define LADE_BLOSC_PLAN_THREADS 1024u

/* Stored bytes are units of this many. */
#define LADE_BLOSC_STORED 65536u

/* A chunk takes fewer than this many bytes of scratch memory beside its own: a word behind them,
 * and the rest of a line. */
#define LADE_BLOSC_ROOM 132u

/* A chunk whose header is right.  A unit is a block of it; or a stream of a block, if the chunk has
 * counters, one a block, of the streams that are done.  Blocks of a bad chunk: 0. */
#define LADE_BLOSC_WHOLE 0xFFFFFFFFu
typedef struct lade_blosc_chunk {
	LADE_ADDRESS(const uint8_t *) src;
	LADE_ADDRESS(uint8_t *) dst;
	LADE_ADDRESS(uint8_t *)
	scratch; /* as many bytes as 'dst'; where nothing is shuffled: none */
	uint32_t cbytes, nbytes, blocksize, blocks;
	uint32_t flags, typesize;
	uint32_t streams; /* of a block of 'blocksize' bytes */
	uint32_t list;
	uint32_t counter, unused; /* LADE_BLOSC_WHOLE; or of the first block, see below */
} lade_blosc_chunk;
LADE_ARGS(lade_blosc_chunk, 64);

/* What lade_blosc_plan makes of a batch.  first[list * count + i]: units of the list before
 * chunk i's. */
typedef struct lade_blosc_plan {
	LADE_ADDRESS(lade_blosc_chunk *) chunk;
	LADE_ADDRESS(uint32_t *) first;
	LADE_ADDRESS(uint32_t *) units; /* of each list */
	LADE_ADDRESS(uint32_t *) next;  /* of each list: the next unit; 0 before */
	LADE_ADDRESS(uint32_t *) counter; /* 'counters' of them */
	LADE_ADDRESS(uint8_t *) scratch;
	uint64_t scratch_size;
	LADE_ADDRESS(uint64_t *) dst_size; /* the batch's, or NULL */
	LADE_ADDRESS(uint32_t *) status;
	uint32_t count;
	uint32_t largest; /* chunks that decode to more get LADE_E_LIMIT */
	uint32_t counters, unused;
} lade_blosc_plan;
LADE_ARGS(lade_blosc_plan, 88);

#endif
