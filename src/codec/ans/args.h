/*
 * args.h: what the host and the kernels of ANS agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_ANS_ARGS_H
#define LADE_CODEC_ANS_ARGS_H

#include "gpu/args.h"

/*
 * Dynamic shared memory of a block that decodes:
 * LEAST   fits the largest tables and the largest sub-block
 * SHARED  fits a typical sub-block for each of 8 warps; five blocks fill an H200's multiprocessor
 * FOUR    as much as four blocks a multiprocessor can have
 * WIDE    for 16 warps; two blocks fill a multiprocessor
 */
#define LADE_ANS_DECODE_LEAST 39168u
#define LADE_ANS_DECODE_SHARED 43776u
#define LADE_ANS_DECODE_FOUR 55296u
#define LADE_ANS_DECODE_WIDE 81920u

/* Dynamic shared memory of a block that encodes: the most for elements of 1 byte; and for elements
 * of 'width' bytes, 'staging' bytes of a chunk beside the tables. */
#define LADE_ANS_BYTES_SHARED 101376u
#define LADE_ANS_WIDE_SHARED(staging, width) ((staging) + 2304u * (width))

/* The most bytes of a chunk that a block stages: one of 8 warps, and a small one of 4. */
#define LADE_ANS_STAGING 65536u
#define LADE_ANS_STAGING_SMALL 32768u

/* A chunk that several blocks decode: the highest status of its parts, and how many are done;
 * zeros before the launch. */
typedef struct lade_ans_parts {
	uint32_t status, done;
} lade_ans_parts;
LADE_ARGS(lade_ans_parts, 8);

#endif
