/*
 * args.h: what the host and the kernels of Deflate, zlib and gzip agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_DEFLATE_ARGS_H
#define LADE_CODEC_DEFLATE_ARGS_H

#include "gpu/args.h"

/* The format of all chunks. */
#define LADE_DEFLATE_RAW 0u
#define LADE_DEFLATE_ZLIB 1u
#define LADE_DEFLATE_GZIP 2u

/* A team of 'warps' reads at most this many words of the source a lane at once: an odd number, so
 * that lanes read from different banks of shared memory. */
#define LADE_DEFLATE_WORDS(warps) ((warps) == 1 || (warps) == 4 ? 31u : 21u)

/* The most bytes that a lane keeps of a tile, so that 9 bits count its literals. */
#define LADE_DEFLATE_LANE_MAX 512u

/*
 * Memory for each block of the launch: 'lane' bytes for each of its 32 lanes a warp, a multiple of
 * 4, at least 16.  Each lane reads 'words' words of the source in one go, or fewer.
 */
typedef struct lade_deflate_room {
	LADE_ADDRESS(uint8_t *) memory;
	uint32_t lane, words;
	uint32_t format, unused;
} lade_deflate_room;
LADE_ARGS(lade_deflate_room, 24);

#endif
