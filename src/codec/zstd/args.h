/*
 * args.h: what the host and the kernels of Zstandard agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_ZSTD_ARGS_H
#define LADE_CODEC_ZSTD_ARGS_H

#include "gpu/args.h"

/* A block regenerates at most this many bytes (RFC 8878, 3.1.1.2.4), and so do its literals. */
#define LADE_ZSTD_BLOCK_MAX 131072u

/* Threads of a block that decodes: three warps (kernels/zstd_decode.cu). */
#define LADE_ZSTD_THREADS 96u

/* Memory for literals: 'cap' bytes, a multiple of 256, for each block of the launch.  Where 'cap'
 * is less than two blocks' literals, no chunk decodes to more than 'cap' bytes. */
#define LADE_ZSTD_LITERALS_MAX (2 * LADE_ZSTD_BLOCK_MAX)
typedef struct lade_zstd_room {
	LADE_ADDRESS(uint8_t *) literals;
	uint32_t cap, unused;
} lade_zstd_room;
LADE_ARGS(lade_zstd_room, 16);

#endif
