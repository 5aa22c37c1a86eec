/*
 * frame.h: the layout of LZ4 frames (lz4_Frame_format.md, 1.6.x).
 *
 *     frame:      | magic 4 = 0x184D2204 | descriptor 3 to 15 | block | ... | end mark 4 = 0 |
 *                 | content checksum 4, if FLG bit 2 |
 *     descriptor: | FLG 1 | BD 1 | content size 8, if FLG bit 3 |
 *                 | dictionary id 4, if FLG bit 0 | HC 1 |
 *     block:      | size 4, bit 31: stored raw | bytes | block checksum 4, if FLG bit 4 |
 *     skippable:  | magic 4 = 0x184D2A50 to 5F | size 4 | bytes |
 *     legacy:     | magic 4 = 0x184C2102 | size 4, bytes | ... | until the end or another magic |
 *
 * Checksums are XXH32 with seed 0; HC is the second byte of that of the descriptor before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_LZ4_FRAME_H
#define LADE_CODEC_LZ4_FRAME_H

#include "codec/lz4/lz4.h"

#define LADE__LZ4F_MAGIC 0x184D2204u
#define LADE__LZ4F_LEGACY_MAGIC 0x184C2102u
#define LADE__LZ4F_SKIP_MAGIC 0x184D2A50u /* and the 15 after it */

/* A legacy frame's blocks decode to this many bytes, the last one to as many or fewer. */
#define LADE__LZ4F_LEGACY_BLOCK ((size_t)8 << 20)

#define LADE__LZ4F_RAW 0x80000000u

typedef enum lade__lz4f_kind {
	LADE__LZ4F_FRAME,
	LADE__LZ4F_SKIPPABLE,
	LADE__LZ4F_LEGACY,
} lade__lz4f_kind;

/* Where a frame is, and what its first bytes say. */
typedef struct lade__lz4f_header {
	const uint8_t *src; /* borrowed: the chunk from the frame's start to its end */
	size_t left;        /* bytes of that */
	uint64_t off;       /* of the frame in the chunk */
	lade__lz4f_kind kind;
	size_t size; /* bytes before the first block; of a skippable frame, all of them */
	bool linked; /* blocks refer to earlier ones */
	bool block_checksum, content_checksum;
	bool has_content_size, has_dict_id;
	uint64_t content_size;
	uint32_t dict_id;
	size_t block_max; /* decoded bytes of a block, at most */
} lade__lz4f_header;

/*
 * Reads the start of a frame; 'off' is its offset in the chunk.
 * Fails: LADE_E_TRUNCATED, LADE_E_CORRUPT, LADE_E_VERSION, LADE_E_UNSUPPORTED, LADE_E_CHECKSUM
 */
lade_status lade__lz4f_header_read(const uint8_t *src, size_t size, uint64_t off,
                                   lade__lz4f_header *out, lade_error *err);

/* One block at src[at], of a frame at 'off' with that header. */
typedef struct lade__lz4f_block {
	bool end; /* the frame ends here; 'next' is past all of it but the content checksum */
	bool raw;
	size_t at; /* of its bytes */
	size_t size;
	size_t next;
} lade__lz4f_block;

/*
 * Reads the block at 'at' (its checksum is not verified), with bounds against header->left.  'at'
 * and the results count from the frame's start.
 */
lade_status lade__lz4f_block_read(const lade__lz4f_header *header, size_t at, lade__lz4f_block *out,
                                  lade_error *err);

lade_status lade__lz4f_decoded_size(const lade_stage *stage, const void *src, size_t size,
                                    uint64_t *decoded, lade_error *err);

#endif
