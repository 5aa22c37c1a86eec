/*
 * layout.h: the numbers of the format bitcomp (docs/format/bitcomp.md), for host and kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_BITCOMP_LAYOUT_H
#define LADE_CODEC_BITCOMP_LAYOUT_H

/* ---- section 1, the chunk -------------------------------------------------------------------- */
#define LADE_BITCOMP_MAGIC 0xBC
#define LADE_BITCOMP_VERSION 1
#define LADE_BITCOMP_HEADER 16
#define LADE_BITCOMP_SIZE_LOG 3 /* of 'kind': log2 of the element's size */
#define LADE_BITCOMP_STORED 4   /* no directory */
#define LADE_BITCOMP_QUANT 3    /* shift of the quantisation's number */
#define LADE_BITCOMP_KIND 0x1F  /* the bits that have a meaning */
#define LADE_BITCOMP_BLOCK 8192 /* decoded bytes of a sub-block */
#define LADE_BITCOMP_UNIT 16    /* sizes are multiples of it */

/* ---- section 2, the sub-block ---------------------------------------------------------------- */
#define LADE_BITCOMP_DELTA 1
#define LADE_BITCOMP_FOLD 1 /* shift */
#define LADE_BITCOMP_ABOVE 8
#define LADE_BITCOMP_WIDTHS 16
#define LADE_BITCOMP_DICT 32
#define LADE_BITCOMP_MASK 64
#define LADE_BITCOMP_MODE 0x7F
/* What the bits of a mode are beside a mask; there may be no others. */
#define LADE_BITCOMP_REPEAT 1
#define LADE_BITCOMP_FAR 8 /* of elements of 8 bytes, not beside REPEAT */
#define LADE_BITCOMP_SHORT 16
#define LADE_BITCOMP_MASKED                                                                        \
	(LADE_BITCOMP_MASK | LADE_BITCOMP_REPEAT | LADE_BITCOMP_FAR | LADE_BITCOMP_SHORT)
/* 'more', where there is no dictionary: the lag less 1, with delta only; and decimals. */
#define LADE_BITCOMP_LAG 3
#define LADE_BITCOMP_DECIMAL 4
#define LADE_BITCOMP_TEN 3 /* shift of the power of ten */
/* By log2 of the size, 2 or 3: the greatest power of ten, and what integers are below. */
#define LADE_BITCOMP_TEN_MOST(log) ((log) == 3 ? 22u : 10u)
#define LADE_BITCOMP_DECIMALS(log) ((int64_t)1 << ((log) == 3 ? 51 : 22))
#define LADE_BITCOMP_GROUP 512 /* a warp's step */

#define LADE_BITCOMP_PLAIN 0 /* the folds */
#define LADE_BITCOMP_ZIGZAG 1
#define LADE_BITCOMP_ROTATED 2

/* ---- what encoders try, in this order; the first of the cheapest is taken -------------------- */

/* mode bits without unit widths: X(number, mode); the dictionary comes after them. */
#define LADE_BITCOMP_TRIES(X) \
	X(0, 0) \
	X(1, LADE_BITCOMP_ZIGZAG << LADE_BITCOMP_FOLD) \
	X(2, LADE_BITCOMP_DELTA) \
	X(3, LADE_BITCOMP_DELTA | LADE_BITCOMP_ZIGZAG << LADE_BITCOMP_FOLD) \
	X(4, LADE_BITCOMP_ROTATED << LADE_BITCOMP_FOLD) \
	X(5, LADE_BITCOMP_ROTATED << LADE_BITCOMP_FOLD | LADE_BITCOMP_ABOVE)

/* Then, of elements of up to 4 bytes, zigzag differences with a lag: X(lag).  Encoders have the lag
 * less 1 from bit 8 of a mode on. */
#define LADE_BITCOMP_LAGS(X) X(2) X(3) X(4)
#define LADE_BITCOMP_LAGGED(lag) (LADE_BITCOMP_SECOND_MODE | ((lag)-1) << 8)

/* What the sample is, in half bytes: a sub-block is raw at once where no mode makes that less. */
#define LADE_BITCOMP_SAMPLE (2 * 2 * LADE_BITCOMP_GROUP)

/* A sub-block that is larger than this is tried once more, in the second mode.  'expected' is the
 * sample's cost in half bytes. */
#define LADE_BITCOMP_SECOND(expected, units, sample_units) \
	((expected) * (units) / (sample_units) + 64)
#define LADE_BITCOMP_SECOND_MODE (LADE_BITCOMP_DELTA | LADE_BITCOMP_ZIGZAG << LADE_BITCOMP_FOLD)

/* A mask is tried where at least one in this many values of the sample would be absent, and used
 * where it saves more than this of a sub-block. */
#define LADE_BITCOMP_MASK_TRY(log) (4u << (log) / 2 * 2)
#define LADE_BITCOMP_MASK_LEAST 128
/* About what the sample of bytes costs with a mask, in half bytes; 0 where most are absent. */
#define LADE_BITCOMP_MASK_COST(absent)                                                             \
	((absent) > LADE_BITCOMP_GROUP ? 0                                                         \
	                               : 128 + 2 * (2 * LADE_BITCOMP_GROUP - (absent)))

/* Decimals: the greatest power of ten that is tried, and in how many values of the sample that are
 * some, and not 0, one may be none. */
#define LADE_BITCOMP_TEN_TRIED(log) ((log) == 3 ? 15u : 8u)
#define LADE_BITCOMP_DECIMAL_MOST 16

/* Dictionaries are tried where no more different bytes than this are in the sample. */
#define LADE_BITCOMP_DICT_MOST 192

#endif
