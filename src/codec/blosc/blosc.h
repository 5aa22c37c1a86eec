/*
 * blosc.h: the Blosc1 container's layout (docs/format/blosc.md), and what the files of this folder
 * share.
 *
 *     | version 1 | codec version 1 | flags 1 | typesize 1 |
 *     | nbytes 4 | blocksize 4 | cbytes 4 |
 *     | start of block 0, 4 | ... | streams of the blocks |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_BLOSC_BLOSC_H
#define LADE_CODEC_BLOSC_BLOSC_H

#include "base/support.h"
#include "codec/codecs.h"

#include <lade/codec.h>

enum {
	BLOSC_HEADER_SIZE = 16,
	BLOSC_VERSION = 2,
	BLOSC_CODEC_VERSION = 1,
	/* Split blocks have at most this many streams, of at least this many bytes. */
	BLOSC_STREAMS_MAX = 16,
	BLOSC_STREAM_MIN = 128,
};

/* The most bytes a container may hold: nbytes and cbytes are signed 32-bit for c-blosc. */
#define BLOSC_NBYTES_MAX ((size_t)INT32_MAX - BLOSC_HEADER_SIZE)
/* c-blosc's own limit of a block. */
#define BLOSC_BLOCK_MAX (((size_t)INT32_MAX - 255 * 4) / 3)

/* Bits of 'flags'. */
enum {
	BLOSC_FLAG_SHUFFLE = 0x01,
	BLOSC_FLAG_STORED = 0x02,
	BLOSC_FLAG_BITSHUFFLE = 0x04,
	BLOSC_FLAG_RESERVED = 0x08,
	BLOSC_FLAG_UNSPLIT = 0x10,
	BLOSC_CODEC_SHIFT = 5,
};

/* The codec's number in the flags; lz4hc writes lz4's. */
typedef enum lade__blosc_codec {
	BLOSC_BLOSCLZ_STREAMS = 0,
	BLOSC_LZ4_STREAMS = 1,
	BLOSC_SNAPPY_STREAMS = 2,
	BLOSC_ZLIB_STREAMS = 3,
	BLOSC_ZSTD_STREAMS = 4,
} lade__blosc_codec;

/* A container whose header is checked. */
typedef struct lade__blosc_info {
	const uint8_t *src; /* its bytes, borrowed from who parsed it */
	uint8_t flags;
	uint8_t typesize;
	lade__blosc_codec codec; /* not of a stored one */
	bool stored;
	uint32_t nbytes, cbytes;
	uint32_t blocksize;   /* 1..nbytes, unless nbytes is 0 */
	uint32_t block_count; /* ceil(nbytes / blocksize); 0 for a stored one */
	uint32_t streams;     /* of a block of 'blocksize' bytes; a shorter one has 1 */
} lade__blosc_info;

/*
 * Checks the header and that the table of blocks fits.  Reads no more than 16 bytes.  On LADE_OK:
 * BLOSC_HEADER_SIZE + 4 * block_count <= cbytes <= size.
 */
lade_status lade__blosc_parse(const void *src, size_t size, lade__blosc_info *info,
                              lade_error *err);

/*
 * Decodes a BloscLZ stream of exactly 'dst_size' bytes.  Reads nothing outside 'src', writes
 * nothing outside 'dst'.  False when it is corrupt; '*bad' is the offset where.
 */
bool lade__blosclz_decode(const uint8_t *src, size_t src_size, uint8_t *dst, size_t dst_size,
                          size_t *bad);

/*
 * Encodes at least 128 bytes to LZ4 or Zstandard streams in blocks of c-blosc's choice, at most
 * 16 bytes more than those of 'src'; what is not smaller is stored.  'run' has a state of the other
 * two, and a level that is not 0.
 */
lade_status lade__blosc_blocks(const lade_run *run, bool zstd, lade_cspan src, lade_span dst,
                               size_t *dst_size, lade_error *err);
void *lade__blosc_blocks_new(void *ctx, const lade_allocator *host);
void lade__blosc_blocks_free(void *ctx, void *state);

/* The options' places in the algorithm's list. */
enum {
	BLOSC_OPTION_CNAME = 0,
	BLOSC_OPTION_LEVEL = 1,
	BLOSC_OPTION_SHUFFLE = 2,
	BLOSC_OPTION_TYPESIZE = 3,
	BLOSC_OPTION_BLOCKSIZE = 4,
};

LADE__RECORDS(blosc)
extern const lade__gpu_implementation lade__blosc_decode_gpu;

#endif
