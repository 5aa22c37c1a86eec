/*
 * ans.h: the ANS format on the host (docs/format/ans.md): what the files of this folder share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_ANS_ANS_H
#define LADE_CODEC_ANS_ANS_H

#include "base/support.h"
#include "codec/codecs.h"
#include "codec/ans/layout.h"

#include <lade/codec.h>

/* The options' places in the algorithm's list. */
enum {
	ANS_OPTION_DTYPE = 0,
	ANS_OPTION_BLOCK = 1,
	ANS_OPTION_BITS = 2,
};

/* ---- tables ----------------------------------------------------------------------------- */

/* An entry of a decoding table, | base 16 | symbol 8 | bits 8 |: the next entry's number is the
 * base and the number in the lane's next bits. */
#define ANS_ENTRY(base, symbol, bits) \
	((uint32_t)(base) << 16 | (uint32_t)(symbol) << 8 | (uint32_t)(bits))

/* A symbol of an encoding table: state X gives its low (X + bits) >> 16 bits away, and the rest,
 * plus 'first', is the next state. */
typedef struct lade__ans_symbol {
	uint32_t bits, first;
} lade__ans_symbol;

typedef struct lade__ans_encoder {
	lade__ans_symbol symbol[256];
	uint16_t start[256]; /* the first state that decodes to the symbol */
	/* | number 16 | first 16 |: with the number the bits to give away are the highest 4 of 16,
	 * of (X + number). */
	uint32_t number[256];
	/* The same for vectors, by bytes: the low and the high ones of 'first', and those of a
	 * number of 16 bits, with which the bits to give away are (X + number) >> 12.  Where no
	 * two symbols have the same low 7 bits, 'folded', these are their places. */
	_Alignas(64) uint8_t look_up[4][256];
	bool folded;
} lade__ans_encoder;

/*
 * Frequencies that sum to 1 << bits, at least 1 for each symbol that occurs, for the counts of a
 * plane; the sum of the counts is from 1 to ANS_SIZE_MAX.
 */
void lade__ans_normalise(const uint32_t count[256], unsigned bits, uint16_t freq[256]);

/* The bits that coding such a plane takes, about. */
uint64_t lade__ans_estimate(const uint32_t count[256], const uint16_t freq[256], unsigned bits);

/* And the fewest that any frequencies could: 'total' is the counts' sum. */
uint64_t lade__ans_entropy(const uint32_t count[256], uint32_t total);

/* Writes a table's description to 'out', which has room for ANS_TABLE_WORDS_MAX words of 4 bytes;
 * gives the number of words. */
unsigned lade__ans_describe(const uint16_t freq[256], uint8_t *out);

/* Reads a description of 'words' words; false: it is not one of exactly that size. */
bool lade__ans_read(const uint8_t *src, unsigned words, unsigned bits, uint16_t freq[256]);

/* The tables of frequencies that sum to 1 << bits.  Entry X - (1 << bits) is that of state X. */
void lade__ans_decoder_of(const uint16_t freq[256], unsigned bits, uint32_t *table);

/*
 * What entries X - (1 << bits) say, taken apart, for vectors.  Symbols that are present are
 * numbered in their order.  'rank' has the number of entry 4 i's symbol; 'next' has, in two bits
 * each, how far it is from there to those of entries 4 i to 4 i + 3.  By number: the symbol; and
 * modulo 2^16, what is added to the state for y (section 4).
 */
typedef struct lade__ans_look_ups {
	_Alignas(64) uint8_t rank[(1 << ANS_BITS_MAX) / 4];
	uint8_t next[(1 << ANS_BITS_MAX) / 4], symbol[256];
	uint16_t add[256];
	unsigned count; /* of symbols */
} lade__ans_look_ups;

void lade__ans_look_ups_of(const uint16_t freq[256], unsigned bits, lade__ans_look_ups *to);

void lade__ans_encoder_of(const uint16_t freq[256], unsigned bits, lade__ans_encoder *encoder);

/* ---- the header ------------------------------------------------------------------------- */

/* A checked header: all that it points at is inside the chunk. */
typedef struct lade__ans_info {
	uint32_t size;  /* decoded bytes */
	unsigned kind;  /* ANS_RAW, ANS_CONSTANT, ANS_CODED */
	unsigned width; /* bytes of an element; the rest is of coded chunks only */
	bool crossed;   /* bits 7 and 15 */
	unsigned bits, rows;
	uint32_t block; /* decoded bytes of a sub-block */
	uint32_t block_count;
	uint32_t tail; /* bytes behind the last whole unit */
	unsigned mode[8], value[8];
	unsigned coded, raw;        /* byte positions of these modes */
	uint32_t directory, tables; /* offsets */
} lade__ans_info;

/*
 * Checks the header and the directory's first and last entry; reads at most the header.
 * Fails: LADE_E_TRUNCATED, LADE_E_CORRUPT with the offset of the bad byte
 */
lade_status lade__ans_parse(const uint8_t *src, size_t size, lade__ans_info *info, lade_error *err);

/* Elements in sub-block 'i': a multiple of ANS_UNIT. */
static inline uint32_t lade__ans_elements(const lade__ans_info *info, uint32_t i)
{
	uint32_t left = info->size - info->tail - i * info->block;
	return (left < info->block ? left : info->block) / info->width;
}

/* ---- lanes ------------------------------------------------------------------------------ */

/*
 * Lanes' strings, each in ANS_PITCH bytes, an odd number of lines, and aligned to lines:
 * little-endian numbers whose highest bit comes first.
 * ANS_SLACK bytes before the first string may be read: a lane of a damaged sub-block takes at most
 * 512 symbols of 11 bits from below its string's start before that is seen.  Behind a string's last
 * byte at most 8 more are written or read.
 * Decoders with vectors have rows of 32 halves there instead: half r of all strings in row r.
 */
#define ANS_PITCH ((size_t)832)
#define ANS_SLACK ((size_t)768)
#define ANS_STRINGS_SIZE (ANS_SLACK + ANS_LANES * ANS_PITCH)

/* What the kernels work on: the coded planes of one sub-block. */
typedef struct lade__ans_lanes {
	unsigned bits, coded;
	uint32_t units;           /* a unit is 4 elements: 4 bytes of each plane */
	uint8_t *plane[8];        /* units * 4 bytes each */
	const uint32_t *table[8]; /* decoding */
	const lade__ans_look_ups *look_ups[8];
	const lade__ans_encoder *encoder[8];
	uint8_t *strings;           /* of lane 0 */
	uint32_t length[ANS_LANES]; /* bits of each string */
	/* Encoding: where the strings will go, so that it can be asked for, and the bytes of an
	 * element. */
	const uint8_t *result;
	unsigned width;
} lade__ans_lanes;

/* Sub-blocks that are decoded side by side, so that they hide each other's waits. */
#define ANS_SIDE 4

/* The kernels of one instruction set. */
typedef struct lade__ans_kernels {
	lade_cpu cpu;
	bool by_look_ups; /* decodes by these, and not by tables */
	/* Strings, of multiples of 16 bits, to planes, of up to ANS_SIDE sub-blocks of a chunk; bit
	 * i of the result: the strings of sub-block i are damaged. */
	unsigned (*decode)(const lade__ans_lanes *lanes, unsigned count);
	/* Planes to strings, and their lengths. */
	void (*encode)(lade__ans_lanes *lanes);
	/*
	 * Strings of 'halves' half words from a sub-block's words: word r of string l is word
	 * r * 32 + l, for r < full; then the rows that not all have, row by row, lane by lane, the
	 * low half of a word first.  May write 0 behind a string, in its ANS_PITCH bytes.  For
	 * decode() alone: to strings, or to rows.
	 */
	void (*gather)(uint8_t *strings, const uint8_t *words, const unsigned halves[ANS_LANES],
	               unsigned full);
	/* The inverse, from strings of 'length' bits, multiples of 16. */
	void (*scatter)(const uint8_t *strings, uint8_t *words, const uint32_t length[ANS_LANES],
	                unsigned full);
	/* Exchanges the high bits of 'count' bytes of two planes, 'pitch' apart. */
	void (*cross)(const uint8_t *restrict from, uint8_t *restrict to, size_t pitch,
	              size_t count);
	/* Adds the counts of a plane's bytes. */
	void (*count)(const uint8_t *plane, size_t size, uint32_t count[256]);
} lade__ans_kernels;

extern const lade__ans_kernels lade__ans_plain;
#if defined(__x86_64__)
extern const lade__ans_kernels lade__ans_avx2, lade__ans_avx512;
#endif

const lade__ans_kernels *lade__ans_kernels_of(lade_cpu cpu);

/* ---- implementations -------------------------------------------------------------------- */

lade_status lade__ans_run_encode(const lade_run *run, lade_cspan src, lade_span dst,
                                 size_t *dst_size, lade_error *err);
lade_status lade__ans_run_decode(const lade_run *run, lade_cspan src, lade_span dst,
                                 size_t *dst_size, lade_error *err);
lade_status lade__ans_run_range(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
                                lade_error *err);
lade_status lade__ans_run_parts(const lade_run *run, lade_cspan src, size_t *part_count,
                                size_t *decoded_size, lade_error *err);
lade_status lade__ans_run_part(const lade_run *run, lade_cspan src, size_t part, lade_span dst,
                               lade_error *err);

LADE__RECORDS(ans)
LADE__GPU_RECORDS(ans)

#endif
