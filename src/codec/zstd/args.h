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

/* Threads of a block that decodes: two warps (kernels/zstd_decode.cu). */
#define LADE_ZSTD_THREADS 64u

/* Memory for literals: 'cap' bytes, a multiple of 256, for each block of the launch.  Where 'cap'
 * is less than a block's most literals, no chunk decodes to more than 'cap' bytes.  'few', 0 or 1:
 * the device has blocks to spare, so that a chunk's own time counts, and not its instructions. */
#define LADE_ZSTD_LITERALS_MAX LADE_ZSTD_BLOCK_MAX
typedef struct lade_zstd_room {
	LADE_ADDRESS(uint8_t *) literals;
	uint32_t cap, few;
} lade_zstd_room;
LADE_ARGS(lade_zstd_room, 16);

/* The logs of the largest tables, and a log of a table that is not there. */
#define LADE_ZSTD_LENGTH_LOG 9u
#define LADE_ZSTD_OFFSET_LOG 8u
#define LADE_ZSTD_HUFFMAN_LOG 11u
#define LADE_ZSTD_NO_TABLE 32u

/* A dictionary (RFC 8878, section 5) whose tables are made: by lade_zstd_prepare, for
 * lade_zstd_decode.  One that does not begin with the magic number is content alone. */
typedef struct lade_zstd_prepared {
	uint32_t status; /* LADE_OK, or what each chunk gets */
	uint32_t id;     /* 0: any frame may use it */
	uint32_t at, size; /* its content */
	uint32_t repeat[3];
	uint32_t log[3], huffman_log; /* LADE_ZSTD_NO_TABLE, and 0: there are none */
	uint32_t lengths[1u << LADE_ZSTD_LENGTH_LOG], matches[1u << LADE_ZSTD_LENGTH_LOG];
	uint32_t offsets[1u << LADE_ZSTD_OFFSET_LOG];
	uint32_t stated;     /* weights of the Huffman table */
	uint8_t weight[256];
} lade_zstd_prepared;

/* A dictionary on the device. */
typedef struct lade_zstd_dict {
	LADE_ADDRESS(const uint8_t *) bytes;
	LADE_ADDRESS(lade_zstd_prepared *) prepared;
	uint32_t size, unused;
} lade_zstd_dict;
LADE_ARGS(lade_zstd_dict, 24);

#endif
