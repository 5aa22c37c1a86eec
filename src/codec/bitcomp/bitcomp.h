/*
 * bitcomp.h: the host's side of the format bitcomp: sub-blocks by instruction set, quantisation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_BITCOMP_H
#define LADE_CODEC_BITCOMP_H

#include "codec/codecs.h"
#include "codec/bitcomp/args.h"
#include "codec/bitcomp/layout.h"

#include <lade/codec.h>

#define BLOCK LADE_BITCOMP_BLOCK
/* Bytes that kernels may read behind a sub-block, and write behind a destination. */
#define SLACK 64

/*
 * For loops over a sub-block that are at byte 'i': asks for a line of the first or second half of
 * 'next', where the next one's source is, at every second line.  To the second cache, as the first
 * one holds what is worked on.  What is asked for may be behind the source's end.
 */
#define PREFETCH_NEXT(next, i, half) \
	do { \
		if ((i) % 128 == 0) \
			__builtin_prefetch((const void *)((uintptr_t)(next) + \
			                                  (half)*BLOCK / 2 + (i) / 2), \
			                   0, 2); \
	} while (0)

/* How an instruction set's steps make the x of section 3: the element's log2 of the size, which of
 * the two is subtracted from the other, and whether they are written or only counted. */
typedef struct lade__bitcomp_refer {
	unsigned log;
	bool above, keep;
} lade__bitcomp_refer;

static inline size_t lade__bitcomp_up(size_t size)
{
	return (size + LADE_BITCOMP_UNIT - 1) & ~(size_t)(LADE_BITCOMP_UNIT - 1);
}

/* The options, by number. */
enum {
	LADE__BITCOMP_DTYPE,
	LADE__BITCOMP_ALGORITHM,
	LADE__BITCOMP_MODE,
	LADE__BITCOMP_DELTA,
};

lade_bitcomp_how lade__bitcomp_how_of(const lade_stage *stage);

/*
 * Sub-blocks by themselves, for cascaded, of 'len' decoded bytes, at most BLOCK.
 *
 * decode: 'src' has 'size' bytes, less than raw, and SLACK bytes behind these; false: it is
 * corrupt, and 'dst', which has 'len' bytes, unspecified.
 * encode: gives the bytes written to 'dst', which has BLOCK + SLACK bytes; 0: it would not be
 * smaller than raw.
 */
bool lade__bitcomp_block_decode(lade_cpu cpu, unsigned log, const uint8_t *src, size_t size,
                                size_t len, uint8_t *dst);
size_t lade__bitcomp_block_encode(lade_cpu cpu, const lade_bitcomp_how *how, const uint8_t *src,
                                  size_t len, uint8_t *dst);

/* A sub-block's parts, checked (section 4): where the payload of 'units' units is, and so on. */
typedef struct lade__bitcomp_parts {
	uint8_t mode, width, step;
	uint64_t base, reference;
	const uint8_t *dict, *codes, *payload;
	unsigned words; /* of the dictionary */
	unsigned lag;   /* with delta */
	unsigned ten;   /* of decimals, the power of ten and 1; 0: they are none */
	unsigned values, units; /* of the sub-block; with a mask 'units' has those present */
	size_t whole;           /* elements that are decimals: those that are not cut off */
	union {
		uint8_t widths[BLOCK / 16 + 32]; /* of units, with unit widths */
		uint8_t present[BLOCK / 8 + 8];  /* with a mask: a bit a value */
	};
} lade__bitcomp_parts;

/*
 * The kernels of one instruction set, by log2 of the element's size.
 *
 * encode: 'src' has whole groups of 512 bytes, of which 'len' are the sub-block's and the others
 * repeat its last value; 'next' is asked for meanwhile.  Writes the sub-block to 'dst', which has
 * BLOCK + SLACK bytes, and gives its size; 0: it would not be smaller than raw.
 *
 * decode: writes all values of all units, or with a mask all values, to 'dst', which has BLOCK +
 * SLACK bytes; SLACK bytes behind the sub-block are read.
 *
 * quantise and restore, section 5: 'count' elements of more than a byte; 'quant' is 1 or 2.
 */
typedef struct lade__bitcomp_kernels {
	lade_cpu cpu;
	size_t (*encode[4])(const lade_bitcomp_how *how, const uint8_t *src, size_t len,
	                    const uint8_t *next, uint8_t *dst);
	void (*decode[4])(const lade__bitcomp_parts *parts, uint8_t *dst);
	void (*quantise[4])(unsigned quant, int exponent, const uint8_t *src, uint8_t *dst,
	                    size_t count);
	void (*restore[4])(unsigned quant, int exponent, uint8_t *data, size_t count);
} lade__bitcomp_kernels;

extern const lade__bitcomp_kernels lade__bitcomp_plain;
#if defined(__x86_64__)
extern const lade__bitcomp_kernels lade__bitcomp_avx2, lade__bitcomp_avx512;
#endif

/*
 * The ranks of byte values by their number in a sample: the most frequent is 0.  Numbers count as
 * equal when their highest two bits are; then the lower value is first.
 */
void lade__bitcomp_ranks(const uint16_t count[256], uint8_t rank[256]);

LADE__RECORDS(bitcomp)
LADE__GPU_RECORDS(bitcomp)

#endif
