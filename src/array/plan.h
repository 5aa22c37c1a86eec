/*
 * plan.h: layouts made ready to run, and their copies in host memory.
 *
 *     layout --(check, box, merge)--> plan --(pieces)--> boxes --(order, kernels)--> bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ARRAY_PLAN_H
#define LADE_ARRAY_PLAN_H

#include <lade/codec.h>
#include <lade/layout.h>

/* One axis of a plan: bytes from one index to the next in the chunk and in the span. */
typedef struct lade__plan_axis {
	size_t count; /* 2 or more */
	ptrdiff_t chunk, span;
} lade__plan_axis;

/*
 * A checked layout.  Axes stand in the chunk's order and nest there: all that an index of an axis
 * covers comes before what the next index covers.  'run' bytes are contiguous on both sides.
 */
typedef struct lade__plan {
	size_t chunk_size; /* bytes of the whole chunk */
	size_t size;       /* bytes of the box's parts; 0: nothing is copied */
	size_t chunk_off, span_off; /* of index (0, 0, ...) */
	size_t first, end; /* the chunk's bytes [first, end) hold the box */
	size_t span_first, span_end;
	size_t run;
	size_t swap; /* divides the run; 0: none */
	size_t ndim;
	lade__plan_axis axis[LADE_DIMS_MAX];
} lade__plan;

/* Fails: as lade_layout_measure(); the rules are the direction's.  On failure the plan is
 * unspecified. */
lade_status lade__plan_make(const lade_layout *layout, lade_direction direction, size_t span_size,
                            lade__plan *plan, lade_error *err);

/*
 * The second half of a way in two steps: from the box, with its elements swapped and in C order of
 * the destination, to the span.  The first half, to the box, is the layout without its strides and
 * offset: '*to_box', which borrows the layout's tables.
 */
lade_status lade__plan_box(const lade_layout *layout, size_t span_size, lade_layout *to_box,
                           lade__plan *to_span, lade_error *err);

/*
 * Copies what bytes [off, off + size) of the chunk hold of the box; 'bytes' is where they are.
 * Pieces may come in any order and begin and end anywhere.
 */
void lade__plan_scatter(const lade__plan *plan, lade_cpu cpu, size_t off, const void *bytes,
                        size_t size, void *span);
/* Where byte 'off' of the chunk goes; '*size' gets how many bytes are contiguous from there on.
 * NULL: that number of bytes goes nowhere.  The plan swaps nothing. */
void *lade__plan_at(const lade__plan *plan, void *span, size_t off, size_t *size);
/* Makes the whole chunk. */
void lade__plan_gather(const lade__plan *plan, lade_cpu cpu, const void *span, void *chunk);

/* Whether pieces of 'piece_size' bytes are as good as the whole chunk: not when elements that are
 * neighbours in the span are further apart in the chunk. */
bool lade__plan_streams(const lade__plan *plan, size_t piece_size);

/* ---- kernels ------------------------------------------------------------------------------ */

/* A loop of a copy: bytes from one index to the next on both sides. */
typedef struct lade__plan_loop {
	size_t count;
	ptrdiff_t src, dst;
} lade__plan_loop;

/* What is contiguous on both sides. */
typedef struct lade__plan_unit {
	size_t size;
	size_t swap; /* bytes that are reversed together; divides the size; 0: none */
	bool large;  /* all units together are more than caches hold */
} lade__plan_unit;

/*
 * The copies of one instruction set.
 *
 * rows: unit (i, j) goes from src + i * outer.src + j * inner.src to dst + i * outer.dst +
 *       j * inner.dst
 * turn: dst[a * turn.dst + b * unit] = src[b * turn.src + a * unit] for a < turn.a, b < turn.b, of
 *       units of 1, 2, 4, 8 or 16 bytes; 'swap' is 0 or at most the unit
 */
typedef struct lade__plan_turn {
	size_t a, b;
	ptrdiff_t src, dst;
} lade__plan_turn;

typedef struct lade__plan_kernels {
	void (*rows)(const uint8_t *src, uint8_t *dst, const lade__plan_unit *unit,
	             const lade__plan_loop *outer, const lade__plan_loop *inner);
	void (*turn)(const uint8_t *src, uint8_t *dst, const lade__plan_unit *unit,
	             const lade__plan_turn *turn);
	size_t turn_least; /* of both counts, in bytes of units: fewer are for rows */
} lade__plan_kernels;

extern const lade__plan_kernels lade__plan_plain;
#if defined(__x86_64__)
extern const lade__plan_kernels lade__plan_sse42, lade__plan_avx2, lade__plan_avx512;
#endif

#endif
