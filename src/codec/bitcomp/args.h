/*
 * args.h: what the host and the kernels of bitcomp agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_BITCOMP_ARGS_H
#define LADE_CODEC_BITCOMP_ARGS_H

#include "gpu/args.h"

/* Warps of a block, and of a block that decodes one chunk when the batch has few. */
#define LADE_BITCOMP_WARPS 8u
#define LADE_BITCOMP_FEW_WARPS 16u

/* Dynamic shared memory of a block: lade_bitcomp_decode_smem and lade_bitcomp_few_smem of
 * bitcomp_decode.cu, lade_bitcomp_encode_smem of bitcomp_choose.cuh. */
#define LADE_BITCOMP_DECODE_SHARED 76224u
#define LADE_BITCOMP_FEW_SHARED 152192u
#define LADE_BITCOMP_ENCODE_SHARED 76672u

/* What an encoder does, from the options of its stage. */
typedef struct lade_bitcomp_how {
	uint32_t log;       /* log2 of the element's size */
	uint32_t is_signed; /* plain elements are compared as signed ones */
	uint32_t sparse;    /* no delta, no rotation, no dictionary */
	uint32_t quant;     /* the quantisation, 0 to 2, and its exponent */
	int32_t exponent;
	uint32_t real; /* elements are floats, which may be decimals */
} lade_bitcomp_how;
LADE_ARGS(lade_bitcomp_how, 24);

#endif
