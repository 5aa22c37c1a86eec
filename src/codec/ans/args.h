/*
 * args.h: what the host and the kernels of ANS agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_ANS_ARGS_H
#define LADE_CODEC_ANS_ARGS_H

#include "gpu/args.h"

/*
 * Dynamic shared memory of a block that decodes: the least, for the largest tables with the largest
 * sub-block; the usual, with a sub-block of usual data for each of 8 warps: five of these blocks
 * fill an H200's multiprocessor; what four of them fill it with; and of one of 16 warps, two of
 * which fill it.
 */
#define LADE_ANS_DECODE_LEAST 39168u
#define LADE_ANS_DECODE_SHARED 43776u
#define LADE_ANS_DECODE_FOUR 55296u
#define LADE_ANS_DECODE_WIDE 81920u

/* And of one that encodes: bytes, at most; and elements of 'width' bytes, 'hold' bytes of a chunk
 * beside the tables. */
#define LADE_ANS_BYTES_SHARED 101376u
#define LADE_ANS_WIDE_SHARED(hold, width) ((hold) + 2304u * (width))

/* The most bytes of a chunk that a block holds: one of 8 warps, and a small one of 4. */
#define LADE_ANS_HOLD 65536u
#define LADE_ANS_HOLD_SMALL 32768u

/* A chunk that several blocks decode: the highest status of its parts, and how many are done;
 * zeros before the launch. */
typedef struct lade_ans_parts {
	uint32_t status, done;
} lade_ans_parts;
LADE_ARGS(lade_ans_parts, 8);

#endif
