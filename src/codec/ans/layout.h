/*
 * layout.h: the numbers of the ANS format (docs/format/ans.md), for the host and for kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_ANS_LAYOUT_H
#define LADE_CODEC_ANS_LAYOUT_H

#include "base/limits.h"

#include <stdint.h>

enum {
	ANS_VERSION = 1,

	/* Kinds of chunks; the header of the first two ends at 16. */
	ANS_RAW = 0,
	ANS_CONSTANT = 1,
	ANS_CODED = 2,
	ANS_HEADER = 16,

	/* Places in the header. */
	ANS_AT_KIND = 1,
	ANS_AT_FORM = 2,  /* log2 of the element's bytes, and ANS_CROSSED */
	ANS_AT_BLOCK = 3, /* log2 of a sub-block's decoded bytes */
	ANS_AT_SIZE = 4,
	ANS_AT_VALUE = 8, /* of a constant chunk */
	ANS_AT_ROWS = 8,  /* of a coded one: the most words of a lane */
	ANS_AT_BITS = 9,  /* log2 of the states */
	ANS_AT_PLANES = 10,

	ANS_CROSSED = 16, /* bits 7 and 15 of 2-byte elements have changed places, if coded */

	/* Modes of byte positions. */
	ANS_PLANE_CONSTANT = 0,
	ANS_PLANE_RAW = 1,
	ANS_PLANE_CODED = 2,

	/* Kinds of sub-blocks, in bits 28 and 29 of the directory. */
	ANS_NARROW = 0, /* lengths of 4 bits */
	ANS_WIDE = 1,   /* of 8 bits */
	ANS_STORED = 2,
	ANS_OFF_BITS = 28,

	ANS_WIDTH_LOG_MAX = 3,
	ANS_BLOCK_LOG_MIN = 12,
	ANS_BLOCK_LOG_MAX = 14,
	ANS_BITS_MIN = 9,
	ANS_BITS_MAX = 11,
	ANS_ENTRIES_MAX = 4096, /* of all tables of a chunk */
	ANS_LANES = 32,
	ANS_UNIT = 4,       /* elements that a lane decodes at once */
	ANS_ROWS_MAX = 177, /* ANS_ROWS_OF at most */
	/* The most 4-byte words of a table's description: the bitmap, 256 lengths of 4 bits, and
	 * mantissas: at most 3 bits each when 256 frequencies sum to 2048. */
	ANS_TABLE_WORDS_MAX = 8 + 32 + 24,
};

/* log2 of a sub-block's bytes where the option 'block' says nothing: what section 7 gives. */
#define ANS_BLOCK_LOG_OF(size, width) ((width) == 1 && (size) >= 65536 ? 13u : 12u)

/* The most words of a lane in sub-blocks of 'block' bytes: the bits of its symbols but the last,
 * the state's, and 15 zeros. */
#define ANS_ROWS_OF(block, width, coded, bits) \
	(((block) / ANS_LANES / (width) * (coded) * (bits) + 16 + 31) / 32)

/* Decoded bytes of a chunk at most. */
#define ANS_SIZE_MAX LADE_CHUNK_MAX

#endif
