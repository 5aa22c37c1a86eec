/*
 * reals.h: conversions between element types, and the arithmetic of the filters on reals.
 *
 * Follows NumPy 2: integers wrap, integers and wider reals round to nearest even, reals become
 * integers by dropping the fraction.  Where NumPy's result is undefined (a real outside the
 * integers' range, NaN) the value is refused instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FILTER_REALS_H
#define LADE_FILTER_REALS_H

#include "filter/filters.h"

/* ---- conversions --------------------------------------------------------------------------- */

/*
 * Converts 'count' elements of any alignment; 'src' and 'dst' do not overlap, or are equal where
 * the elements have one size.  Returns 'count', or the index of the first element that has no value
 * in the other type.
 */
typedef size_t lade__convert_fn(const void *src, void *dst, size_t count);

/* For two little-endian types of dtype.h. */
lade__convert_fn *lade__convert(lade_dtype from, lade_dtype to);

/* The nearest value of the type <f2, of which only 'half' may be wider. */
float lade__round_half(float x);

/* ---- arithmetic ---------------------------------------------------------------------------- */

/*
 * 'count' reals, 1 or more, in place.  Returns 'count', or the index of the first one that has no
 * result.
 * 'word' carries the last one from call to call; 'first' says that there is none yet.
 */
typedef struct lade__real_args {
	double scale, offset;
	double limit; /* of diff: before rounding, what is finite stays below it */
	uint64_t *word;
	bool first;
} lade__real_args;

typedef size_t lade__real_fn(void *x, size_t count, const lade__real_args *args);

/* One type's arithmetic.  Each operation rounds to the type. */
typedef struct lade__reals {
	lade_dtype carrier;          /* in which the elements are handed over: <f4 or <f8 */
	lade__real_fn *diff, *sum;   /* delta */
	lade__real_fn *to_fixed;     /* rint((x - offset) * scale) */
	lade__real_fn *from_fixed;   /* x / scale + offset */
	lade__real_fn *quantize;     /* rint(scale * x) / scale */
	lade__real_fn *to_scaled;    /* (x - offset) * scale; finite values stay so */
	lade__real_fn *from_scaled;  /* x / scale + offset; likewise */
} lade__reals;

extern const lade__reals lade__reals_f2, lade__reals_f4, lade__reals_f8;

/* The arithmetic that NumPy chooses for an array of 'dtype' and a Python float: the type's own,
 * or <f8 for integers. */
const lade__reals *lade__reals_of(lade_dtype dtype);

/* What is done with reals between two types. */
typedef struct lade__real_step {
	const lade__reals *reals;
	lade__real_fn *fn; /* of 'reals' */
	lade_dtype from, to;
} lade__real_step;

/*
 * Converts a tile's elements from one type to the carrier, applies step->fn, and converts to the
 * other type.
 * Fails: LADE_E_VALUE
 */
lade_status lade__real_map(const lade_stage *stage, const lade__real_step *step,
                           lade__real_args *args, const lade_elements *tile, lade_error *err);

/* LADE_E_VALUE for element 'index' of elements of type 'from'. */
lade_status lade__value_error(const lade_stage *stage, size_t index, lade_dtype from, lade_dtype to,
                              lade_error *err);

#endif
