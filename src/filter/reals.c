/*
 * reals.c: the arithmetic of the filters on reals, for <f2, <f4 and <f8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/reals.h"

#include <math.h>
#include <string.h>

/* ---- the operations ----------------------------------------------------------------- */

#define EXACT(x) (x)
#define HALF(x) lade__round_half(x)

/* Elements that have results go through 'value', of x and the parameters a (scale) and b
 * (offset). */
#define MAP(name, real, nearest, ok, value)                                                \
	static size_t name(void *data, size_t count, const lade__real_args *args)          \
	{                                                                                  \
		real *at = data, a = nearest((real)args->scale), b = nearest((real)args->offset); \
		size_t bad = count;                                                        \
		(void)a;                                                                   \
		(void)b;                                                                   \
		for (size_t i = 0; i < count; i++) {                                       \
			real x = at[i], y = (value);                                       \
			if (!(ok) && bad == count)                                         \
				bad = i;                                                   \
			at[i] = y;                                                         \
		}                                                                          \
		return bad;                                                                \
	}

/* The half type's operations are float's, rounded: float has more than twice the bits and two more,
 * so that the two roundings are as good as one. */
#define OPERATIONS(name, real, dtype, nearest, rint_fn, abs_fn)                                \
	static size_t diff_##name(void *data, size_t count, const lade__real_args *args)           \
	{                                                                                          \
		real *x = data, last = 0, limit = (real)args->limit;                               \
		uint64_t first;                                                                    \
		size_t good = count;                                                               \
		memcpy(&first, x, sizeof *x);                                                      \
		if (!args->first)                                                                  \
			memcpy(&last, args->word, sizeof last);                                    \
		for (size_t i = 0; i < count; i++) {                                               \
			real at = x[i], y = at - last;                                             \
			/* What is infinite, or no number, makes such differences too. */          \
			if (__builtin_expect(!(abs_fn(y) < limit), 0) && isfinite(at) &&           \
			    isfinite(last) && good == count)                                       \
				good = i;                                                          \
			x[i] = nearest(y);                                                         \
			last = at;                                                                 \
		}                                                                                  \
		memcpy(args->word, &last, sizeof last);                                            \
		if (args->first)                                                                   \
			memcpy(x, &first, sizeof *x);                                              \
		return good;                                                                       \
	}                                                                                          \
	static size_t sum_##name(void *data, size_t count, const lade__real_args *args)            \
	{                                                                                          \
		real *x = data, sum;                                                               \
		memcpy(&sum, args->word, sizeof sum);                                              \
		for (size_t i = 0; i < count; i++) {                                               \
			sum = i || !args->first ? nearest(sum + x[i]) : x[i];                      \
			x[i] = sum;                                                                \
		}                                                                                  \
		memcpy(args->word, &sum, sizeof sum);                                              \
		return count;                                                                      \
	}                                                                                          \
	MAP(to_fixed_##name, real, nearest, true, rint_fn(nearest(nearest(x - b) * a)))            \
	MAP(from_fixed_##name, real, nearest, true, nearest(nearest(x / a) + b))                   \
	MAP(quantize_##name, real, nearest, true, nearest(rint_fn(nearest(a * x)) / a))            \
	MAP(to_scaled_##name, real, nearest, isfinite(y) || !isfinite(x),                          \
	    nearest(nearest(x - b) * a))                                                           \
	MAP(from_scaled_##name, real, nearest, isfinite(y) || !isfinite(x),                        \
	    nearest(nearest(x / a) + b))                                                           \
	const lade__reals lade__reals_##name = {                                                   \
		dtype,           diff_##name,      sum_##name,         to_fixed_##name,            \
		from_fixed_##name, quantize_##name, to_scaled_##name, from_scaled_##name,          \
	};

OPERATIONS(f2, float, LADE_F4, HALF, rintf, fabsf)
OPERATIONS(f4, float, LADE_F4, EXACT, rintf, fabsf)
OPERATIONS(f8, double, LADE_F8, EXACT, rint, fabs)

const lade__reals *lade__reals_of(lade_dtype dtype)
{
	return dtype == LADE_F2   ? &lade__reals_f2
	       : dtype == LADE_F4 ? &lade__reals_f4
	                          : &lade__reals_f8;
}

/* ---- blocks of elements ------------------------------------------------------------- */

#define BLOCK_COUNT 512

lade_status lade__value_error(const lade_stage *stage, size_t index, lade_dtype from, lade_dtype to,
                              lade_error *err)
{
	return lade_fail(err, LADE_E_VALUE, (uint64_t)index * lade_dtype_size(from),
	                 "%s: element %zu of type %s has no value in type %s",
	                 stage->algorithm->name, index, lade_dtype_text(from), lade_dtype_text(to));
}

lade_status lade__real_map(const lade_stage *stage, const lade__real_step *step,
                           lade__real_args *args, const lade_elements *tile, lade_error *err)
{
	double block[BLOCK_COUNT];
	const lade_dtype from = step->from, to = step->to;
	lade__convert_fn *load = lade__convert(from, step->reals->carrier);
	lade__convert_fn *store = lade__convert(step->reals->carrier, to);
	const uint8_t *in = tile->src;
	uint8_t *out = tile->dst;
	const size_t count = tile->elem_count;
	size_t from_size = lade_dtype_size(from), to_size = lade_dtype_size(to);
	for (size_t i = 0, n; i < count; i += n) {
		n = count - i < BLOCK_COUNT ? count - i : BLOCK_COUNT;
		load(in + i * from_size, block,
		     n); /* to a wider type, or from integers: all have values */
		size_t good = step->fn(block, n, args);
		args->first = false;
		if (good == n)
			good = store(block, out + i * to_size, n);
		if (good < n)
			return lade__value_error(stage, tile->elem_off + i + good, from, to, err);
	}
	return LADE_OK;
}
