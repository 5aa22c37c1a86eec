/*
 * layout.h: the bytes of the cascaded codec (docs/format/cascaded.md), for the host's code and the
 * kernels alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_CASCADED_LAYOUT_H
#define LADE_CODEC_CASCADED_LAYOUT_H

#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* The functions below; kernels define it as their own. */
#ifndef LADE_LAYOUT
#define LADE_LAYOUT static inline
#endif

#define LADE_CASCADED_VERSION 1
#define LADE_CASCADED_UNIT 16u
#define LADE_CASCADED_HEADER 16u /* of a chunk */
#define LADE_CASCADED_TAIL 8u    /* where in the chunk's header the tail is */
#define LADE_CASCADED_SIZE_MAX LADE_CHUNK_MAX

/* log2 of a block's decoded bytes. */
#define LADE_CASCADED_BLOCK_MIN 12u
#define LADE_CASCADED_BLOCK_MAX 13u
#define LADE_CASCADED_BLOCK_BYTES (1u << LADE_CASCADED_BLOCK_MAX)
/* What a block with runs takes of memory at most, its own bytes included. */
#define LADE_CASCADED_ROOM_MAX (LADE_CASCADED_BLOCK_BYTES / 2)

#define LADE_CASCADED_COUNT_WIDTH 13u

/* Bits of 'layers'.  Inner runs need differences; parts have no runs beside them. */
#define LADE_CASCADED_OUTER 1u
#define LADE_CASCADED_DELTA 2u
#define LADE_CASCADED_INNER 4u
#define LADE_CASCADED_PARTS 8u
#define LADE_CASCADED_ROTATED 16u
#define LADE_CASCADED_RUNS (LADE_CASCADED_OUTER | LADE_CASCADED_INNER)
#define LADE_CASCADED_LAYERS 32u
/* Of a block's first byte: the block is a sub-block of bitcomp, whose mode the other bits are. */
#define LADE_CASCADED_BITCOMP 128u

/* log2 of a part's decoded bytes. */
#define LADE_CASCADED_PART 10u

/*
 * A library's encoder looks for runs in blocks that have at most this many, and at most half as
 * many as elements: the lists of their starts stay small.  (The format has no such limit.)
 */
#define LADE_CASCADED_RUNS_TRIED 1920u

/* A chunk's header and what follows from it. */
typedef struct lade_cascaded_chunk {
	uint32_t log2;   /* of an element's bytes */
	uint32_t block;  /* log2 of a block's bytes */
	uint32_t size;   /* decoded bytes */
	uint32_t body;   /* those in blocks, whole elements */
	uint32_t blocks; /* how many */
	uint32_t first;  /* unit of block 0 */
} lade_cascaded_chunk;

/* A coded block: what its header says, and where its arrays are, in words of 4 bytes. */
typedef struct lade_cascaded_block {
	uint32_t layers, width, outer_width, inner_width;
	uint32_t less;                 /* of parts: what their widths are below 'width' */
	uint32_t n, n1, n2;            /* elements; without the outer runs; without any */
	uint32_t outer, inner, values; /* the arrays' first words */
	uint32_t units;
} lade_cascaded_block;

LADE_LAYOUT uint32_t lade_cascaded_units(uint32_t bytes)
{
	return (bytes + LADE_CASCADED_UNIT - 1) / LADE_CASCADED_UNIT;
}

/* Fills in what follows from size, log2 and block. */
LADE_LAYOUT void lade_cascaded_chunk_fill(lade_cascaded_chunk *c)
{
	c->body = c->size >> c->log2 << c->log2;
	c->blocks = (c->body + (1u << c->block) - 1) >> c->block;
	c->first = 1 + (c->blocks + 3) / 4;
}

/* Reads the first two words of a chunk's header; false: they cannot be. */
LADE_LAYOUT bool lade_cascaded_chunk_read(uint32_t word0, uint32_t size, lade_cascaded_chunk *c)
{
	c->log2 = word0 >> 8 & 0xFF;
	c->block = word0 >> 16 & 0xFF;
	c->size = size;
	if ((word0 & 0xFF) != LADE_CASCADED_VERSION || word0 >> 24 || c->log2 > 3 ||
	    c->block < LADE_CASCADED_BLOCK_MIN || c->block > LADE_CASCADED_BLOCK_MAX ||
	    size > LADE_CASCADED_SIZE_MAX)
		return false;
	lade_cascaded_chunk_fill(c);
	return true;
}

/* Decoded bytes of block i. */
LADE_LAYOUT uint32_t lade_cascaded_block_bytes(const lade_cascaded_chunk *c, uint32_t i)
{
	uint32_t left = c->body - (i << c->block);
	return left < 1u << c->block ? left : 1u << c->block;
}

/* Words of an array; 'entries' is at most 8192, 'width' at most 64. */
LADE_LAYOUT uint32_t lade_cascaded_words(uint32_t entries, uint32_t width)
{
	return (entries * width + 31) / 32;
}

/* Whether an encoder tries elements rotated, which are from 'low' to 'high' as they are: of types
 * without signs that have their highest bits set and not, as reals of both signs do. */
LADE_LAYOUT bool lade_cascaded_may_rotate(uint32_t log2, bool is_signed, uint64_t low,
                                          uint64_t high)
{
	return log2 && !is_signed && (low ^ high) >> ((8u << log2) - 1) & 1;
}

/* The width of part k, or of each, without parts. */
LADE_LAYOUT uint32_t lade_cascaded_part_width(const lade_cascaded_block *b, uint32_t k)
{
	uint32_t less = b->layers & LADE_CASCADED_PARTS ? b->less >> 4 * k & 15 : 0;
	return b->width > less ? b->width - less : 0;
}

/* Words of the values. */
LADE_LAYOUT uint32_t lade_cascaded_values_words(const lade_cascaded_block *b, uint32_t log2)
{
	uint32_t each = 1u << (LADE_CASCADED_PART - log2), words = 0, k = 0;
	if (!(b->layers & LADE_CASCADED_PARTS))
		return lade_cascaded_words(b->n2, b->width);
	for (uint32_t at = 0; at < b->n2; at += each, k++)
		words += lade_cascaded_words(b->n2 - at < each ? b->n2 - at : each,
		                             lade_cascaded_part_width(b, k));
	return words;
}

/* Fills in where the arrays are, and the units. */
LADE_LAYOUT void lade_cascaded_block_fill(lade_cascaded_block *b, uint32_t log2)
{
	b->outer = b->layers & LADE_CASCADED_DELTA ? 6 : 4;
	b->inner =
		b->outer +
		(b->layers & LADE_CASCADED_OUTER ? lade_cascaded_words(b->n1, b->outer_width) : 0);
	b->values =
		b->inner +
		(b->layers & LADE_CASCADED_INNER ? lade_cascaded_words(b->n2, b->inner_width) : 0);
	b->units = (b->values + lade_cascaded_values_words(b, log2) + 3) / 4;
}

/* Bytes of an array of elements, in whole units. */
LADE_LAYOUT uint32_t lade_cascaded_array(uint32_t count, uint32_t log2)
{
	return lade_cascaded_units(count << log2) * LADE_CASCADED_UNIT;
}

/* Whether a block with runs has room for its arrays ("Room" in the format). */
LADE_LAYOUT bool lade_cascaded_fits(const lade_cascaded_block *b, uint32_t log2, uint32_t block)
{
	uint32_t room = b->units * LADE_CASCADED_UNIT + lade_cascaded_array(b->n2, log2);
	if ((b->layers & LADE_CASCADED_RUNS) == LADE_CASCADED_RUNS)
		room += lade_cascaded_array(b->n1, log2);
	return !(b->layers & LADE_CASCADED_RUNS) || room <= 1u << (block - 1);
}

/*
 * Reads the first two words of a coded block, of which 'units' and 'n', at least one element, are
 * filled in; false: they cannot be.
 */
LADE_LAYOUT bool lade_cascaded_block_read(uint32_t word0, uint32_t word1, uint32_t log2,
                                          uint32_t block, lade_cascaded_block *b)
{
	uint32_t outer_runs, inner_runs, n = b->n, units = b->units;
	b->layers = word0 & 0xFF;
	b->width = word0 >> 8 & 0xFF;
	b->outer_width = word0 >> 16 & 0xFF;
	b->inner_width = word0 >> 24;
	if (b->layers >= LADE_CASCADED_LAYERS || b->width > 8u << log2 ||
	    b->outer_width > LADE_CASCADED_COUNT_WIDTH ||
	    b->inner_width > LADE_CASCADED_COUNT_WIDTH ||
	    (b->layers & (LADE_CASCADED_INNER | LADE_CASCADED_DELTA)) == LADE_CASCADED_INNER ||
	    (b->layers & LADE_CASCADED_PARTS && b->layers & LADE_CASCADED_RUNS))
		return false;
	b->less = b->layers & LADE_CASCADED_PARTS ? word1 : 0;
	word1 = b->layers & LADE_CASCADED_PARTS ? 0 : word1;
	outer_runs = word1 & 0xFFFF;
	inner_runs = word1 >> 16;
	if (!(b->layers & LADE_CASCADED_OUTER) && (outer_runs || b->outer_width))
		return false;
	if (!(b->layers & LADE_CASCADED_INNER) && (inner_runs || b->inner_width))
		return false;
	b->n1 = b->layers & LADE_CASCADED_OUTER ? outer_runs : n;
	b->n2 = b->layers & LADE_CASCADED_INNER ? inner_runs : b->n1;
	if (b->n2 == 0 || b->n2 > b->n1 || b->n1 > n)
		return false;
	lade_cascaded_block_fill(b, log2);
	return b->units == units && lade_cascaded_fits(b, log2, block);
}

#endif
