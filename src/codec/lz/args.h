/*
 * args.h: what the host and the kernels of LZ4 and Snappy agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_LZ_ARGS_H
#define LADE_CODEC_LZ_ARGS_H

#include "gpu/args.h"

/* Dynamic shared memory of a block of 16 warps that decodes: a lade_lz_team of lz_decode.cuh. */
#define LADE_LZ4_TEAM16_SHARED 76240u
#define LADE_SNAPPY_TEAM16_SHARED 80336u

/* And of one of 'warps' warps, 16 at most, that encodes: a lade_lz_encode_team of lz_encode.cuh,
 * and a lade_lz_encode_warp for each warp. */
#define LADE_LZ_ENCODE_TEAM_SIZE 432u
#define LADE_LZ_ENCODE_WARP_SIZE 9152u
#define LADE_LZ_ENCODE_SHARED(warps) (LADE_LZ_ENCODE_TEAM_SIZE + (warps)*LADE_LZ_ENCODE_WARP_SIZE)

/* Of decoders that undo a byte shuffle: the batch's destinations are scratch memory, elements have
 * 'size' bytes, 2, 4 or 8, and chunks go to the addresses in 'dst', which have as much room.
 * 'partial' is the status of those that end with a part of an element; LADE_GPU_OK: its bytes stay
 * as they are. */
typedef struct lade_lz_unshuffle {
	LADE_ADDRESS(uint8_t *const *) dst;
	uint32_t size, partial;
} lade_lz_unshuffle;
LADE_ARGS(lade_lz_unshuffle, 16);

#endif
