/*
 * args.h: what the host gives to the kernels of checksums (checksum.cu).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CHECKSUM_ARGS_H
#define LADE_CHECKSUM_ARGS_H

#include "gpu/args.h"

/* Threads of a block. */
#define LADE_CRC_THREADS 512u
#define LADE_ADLER_THREADS 256u
#define LADE_XXH64_THREADS 64u
#define LADE_SUM_FINISH_THREADS 256u /* at most */
#define LADE_SUM_COPY_THREADS 256u

#define LADE_XXH64_LANES 4u /* of a chunk */

/* Dynamic shared memory of a block for CRCs: 448 words for each of 32 banks. */
#define LADE_CRC_SHARED (448u * 128u)

/* What becomes of the checksums. */
#define LADE_SUM_TELL 0u   /* to sums[] */
#define LADE_SUM_ENCODE 1u /* to the destinations, around the chunks */
#define LADE_SUM_DECODE 2u /* compared with those in the sources */
#define LADE_SUM_STRIP 3u  /* nothing: they are only removed from the sources */

#define LADE_SUM_CRC 0u
#define LADE_SUM_ADLER 1u
#define LADE_SUM_XXH64 2u

/* The largest unit, in bytes: sums of Adler-32 fit 64 bits. */
#define LADE_SUM_UNIT_MAX 262144u

typedef struct lade_gpu_sums {
	lade_gpu_batch batch;
	LADE_ADDRESS(uint64_t *) sums;    /* LADE_SUM_TELL */
	LADE_ADDRESS(uint64_t *) partial; /* 'parts' times 'count' */
	uint32_t use;
	uint32_t kind;  /* LADE_SUM_CRC, ... */
	uint32_t extra; /* bytes of a stored checksum */
	uint32_t first; /* 'extra' where it stands in front of the chunk, else 0 */
	uint32_t copy;  /* 0: the chunks stand where the results are wanted, but for the checksum */
	uint32_t parts; /* of a chunk, 1 at least: its units, if it has no more than that */
	uint32_t unit;  /* bytes, a multiple of a row of 512, LADE_SUM_UNIT_MAX at most */
} lade_gpu_sums;
LADE_ARGS(lade_gpu_sums, 120);

/*
 * A CRC.  Polynomials in memory's order are words whose byte 0 has the highest powers, with the
 * highest power of a byte in its highest bit, or in its lowest if the CRC is reflected; all others
 * here have x^i in bit i.
 */
typedef struct lade_gpu_crc {
	uint32_t poly;             /* without x^32 */
	uint32_t init, first;      /* the register before a chunk, and the same in memory's order */
	uint32_t reflected, mirrored; /* bytes, and the result */
	uint32_t xor_out;
	uint32_t stride;      /* x^(8 * unit * 256) */
	uint32_t hop;         /* x^(8 * unit * parts) */
	uint32_t basis[32];   /* by bit of a word in memory's order: times x^4096, in that order */
	uint32_t weight[128]; /* x^(32 * (128 - i)) */
	uint32_t step[32];    /* x^(8 * unit * i) */
	uint32_t leap[8];     /* x^(8 * unit * 32 * i) */
	uint32_t undo[16];    /* x^(-8 * i) */
} lade_gpu_crc;
LADE_ARGS(lade_gpu_crc, 896);

#endif
