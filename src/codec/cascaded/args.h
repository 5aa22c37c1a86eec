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

/* Dynamic shared memory of a warp: lade_cas_warp of cascaded_decode.cu, lade_cas_lists of
 * cascaded_encode.cu. */
#define LADE_CAS_DECODE_SHARED 8240u
#define LADE_CAS_ENCODE_SHARED 5760u

/* What the options of an encoder come to. */
typedef struct lade_cas_choice {
	uint32_t log2;  /* of the elements' size */
	uint32_t block; /* log2 of a block's bytes */
	uint32_t is_signed;
	uint32_t bitpack; /* 0: arrays have their types' whole widths */
	uint32_t tried;   /* bit 'layers' for each cascade that a block may get */
} lade_cas_choice;
LADE_ARGS(lade_cas_choice, 20);

#endif
