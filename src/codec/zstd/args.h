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
	/* Of the batch's chunks only these, '*listed' of them; NULL: all. */
	LADE_ADDRESS(const uint32_t *) list;
	LADE_ADDRESS(const uint32_t *) listed;
} lade_zstd_room;
LADE_ARGS(lade_zstd_room, 32);

/* ---- blocks side by side ------------------------------------------------------------------- */

/* Dynamic shared memory of a block of 16 warps that executes: a lade_zstd_makers<16>. */
#define LADE_ZSTD_TEAM16_SHARED 57760u

/* Bytes of a lade_zstd_head, of a lade_zstd_unit (kernels/zstd_blocks.cuh), and of a sequence. */
#define LADE_ZSTD_HEAD_SIZE 56u
#define LADE_ZSTD_UNIT_SIZE 128u
#define LADE_ZSTD_SEQUENCE_SIZE 8u

/* A chunk has room for a unit for each LADE_ZSTD_UNIT_BYTES that it decodes to, and some more. */
#define LADE_ZSTD_UNIT_BYTES 8192u
#define LADE_ZSTD_UNITS_MORE 4u
#define LADE_ZSTD_UNITS_MAX (1u << 28)
/* Bytes of literals and sequences of a chunk of 'bytes' decoded ones in 'units' blocks, at most.
 * Few chunks have as many, so that all together get a quarter less. */
#define LADE_ZSTD_POOL(bytes, units) (2 * (bytes) - (bytes) / 32 + 32 * (uint64_t)(units))

/* Counters, all 0 at first. */
typedef struct lade_zstd_counts {
	uint64_t pool, units; /* given to chunks; wide, as sums of what tables say may be large */
	uint32_t sequences, literals; /* blocks that have some */
	uint32_t next_sequences, next_literals; /* of these blocks */
	uint32_t listed; /* chunks that are left to lade_zstd_decode */
	uint32_t turn;   /* of these chunks */
} lade_zstd_counts;

/* The memory of a batch whose blocks are decoded side by side. */
typedef struct lade_zstd_plan {
	LADE_ADDRESS(lade_zstd_counts *) counts;
	LADE_ADDRESS(struct lade_zstd_head *) head; /* of each chunk */
	LADE_ADDRESS(struct lade_zstd_unit *) unit; /* blocks */
	/* Chunks that are left; units that have sequences; those whose literals are coded, eight
	 * times their number and a part: four entries a unit at most. */
	LADE_ADDRESS(uint32_t *) list;
	LADE_ADDRESS(uint32_t *) sequences;
	LADE_ADDRESS(uint32_t *) literals;
	LADE_ADDRESS(uint8_t *) pool;
	uint64_t pool_size;
	uint32_t units, largest; /* room for units; decoded bytes of the largest chunk */
	uint32_t few, more; /* as in a lade_zstd_room; LADE_ZSTD_UNITS_MORE */
} lade_zstd_plan;
LADE_ARGS(lade_zstd_plan, 80);

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
