/*
 * args.h: what the host and the kernels of the cascaded codec agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_CASCADED_ARGS_H
#define LADE_CODEC_CASCADED_ARGS_H

#include "gpu/args.h"

/* Warps of a block of either kernel, at most; a warp has a block of the format at a time. */
#define LADE_CAS_WARPS_LOG 3u
#define LADE_CAS_WARPS 8u

/* Dynamic shared memory: a decoding warp's, lade_cas_warp of cascaded_decode.cu; that of 'warps' of
 * an encoder, the start of a lade_bitcomp_encode_smem, and a lade_cas_job. */
#define LADE_CAS_DECODE_SHARED 9536u
#define LADE_CAS_ENCODE_SHARED(warps) (2048u + 9328u * (warps) + 64u)

/* What the options of an encoder come to. */
typedef struct lade_cas_choice {
	uint32_t log2;  /* of the elements' size */
	uint32_t block; /* log2 of a block's bytes */
	uint32_t is_signed;
	uint32_t bitpack; /* 0: arrays have their types' whole widths */
	uint32_t tried;   /* bit 'layers' for each cascade that a block may get */
	uint32_t bitcomp; /* whether bitcomp's sub-blocks are tried */
	uint32_t real;    /* elements are floats of 4 or 8 bytes */
} lade_cas_choice;
LADE_ARGS(lade_cas_choice, 28);

#endif
