/*
 * scaleoffset.c: (x - offset) * scale in the elements' own type, exactly reversible for integers
 * (docs/format/filters.md, section 6).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/reals.h"

#include <math.h>
#include <string.h>

static const lade_option options[] = {
	{.name = "dtype", .type = LADE_OPTION_DTYPE, .required = true, .doc = "the elements' type"},
	{.name = "scale", .type = LADE_OPTION_FLOAT, .fallback.f = 1, .doc = "factor, not 0"},
	{.name = "offset", .type = LADE_OPTION_FLOAT, .doc = "taken off before"},
};

static void sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	*decoded = *encoded = lade_dtype_size((lade_dtype)stage->option[0].i);
}

/* An option's value as an element of the type must be the same number. */
static lade_status check_value(const lade_stage *stage, size_t index, lade_error *err)
{
	lade_dtype dtype = (lade_dtype)stage->option[0].i;
	double value = stage->option[index].f, back = 0;
	uint8_t element[8];
	bool real = lade_dtype_class(dtype) == 'f';
	if (lade__convert(LADE_F8, dtype)(&value, element, 1) == 1)
		lade__convert(dtype, LADE_F8)(element, &back, 1);
	else
		back = NAN;
	if ((real && isfinite(back)) || back == value)
		return LADE_OK;
	return lade_fail(err, LADE_E_VALUE, LADE_NO_OFFSET,
	                 "scaleoffset: the %s %g has no value in type %s",
	                 stage->algorithm->options[index].name, value, lade_dtype_text(dtype));
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	lade_dtype dtype = (lade_dtype)stage->option[0].i;
	lade_status status = lade__filter_check_dtype(stage, 0, "iuf", err);
	if (status == LADE_OK)
		status = check_value(stage, 1, err);
	if (status == LADE_OK)
		status = check_value(stage, 2, err);
	if (status != LADE_OK)
		return status;
	double scale = stage->option[1].f;
	bool zero = dtype == LADE_F2 ? lade__round_half((float)scale) == 0
	          : dtype == LADE_F4 ? (float)scale == 0 : scale == 0;
	if (zero)
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "scaleoffset: the scale %g is 0 in type %s", scale,
		                 lade_dtype_text(dtype));
	return LADE_OK;
}

/* Reals are rounded at each step; even scale 1 and offset 0 take the sign off -0. */
static bool is_lossy(const lade_stage *stage)
{
	return lade_dtype_class((lade_dtype)stage->option[0].i) == 'f';
}

/* ---- integers ----------------------------------------------------------------------- */

/* Both return 'count', or the index of the first element without a result.  -x is taken as 0 - x,
 * since dividing the lowest value by -1 is undefined. */
#define INTEGERS(type)                                                                        \
	static size_t encode_##type(const uint8_t *src, uint8_t *dst, size_t count, type scale, \
	                            type offset)                                              \
	{                                                                                     \
		size_t bad = count;                                                           \
		for (size_t i = 0; i < count; i++) {                                          \
			type x, y;                                                            \
			memcpy(&x, src + i * sizeof x, sizeof x);                             \
			bool wrong = __builtin_sub_overflow(x, offset, &y);                   \
			wrong |= __builtin_mul_overflow(y, scale, &y);                        \
			if (wrong && bad == count)                                            \
				bad = i;                                                      \
			memcpy(dst + i * sizeof y, &y, sizeof y);                             \
		}                                                                             \
		return bad;                                                                   \
	}                                                                                     \
	static size_t decode_##type(const uint8_t *src, uint8_t *dst, size_t count, type scale, \
	                            type offset)                                              \
	{                                                                                     \
		size_t bad = count;                                                           \
		for (size_t i = 0; i < count; i++) {                                          \
			type x, y;                                                            \
			memcpy(&x, src + i * sizeof x, sizeof x);                             \
			bool wrong = false;                                                   \
			if (scale == (type)-1 && (type)-1 < 1) {                              \
				wrong = __builtin_sub_overflow((type)0, x, &x);               \
			} else if (scale != 1) {                                              \
				wrong = x % scale != 0;                                       \
				x = (type)(x / scale);                                        \
			}                                                                     \
			wrong |= __builtin_add_overflow(x, offset, &y);                       \
			if (wrong && bad == count)                                            \
				bad = i;                                                      \
			memcpy(dst + i * sizeof y, &y, sizeof y);                             \
		}                                                                             \
		return bad;                                                                   \
	}

INTEGERS(int8_t)
INTEGERS(uint8_t)
INTEGERS(int16_t)
INTEGERS(uint16_t)
INTEGERS(int32_t)
INTEGERS(uint32_t)
INTEGERS(int64_t)
INTEGERS(uint64_t)

#define CASE(dtype, type)                                                                     \
	case dtype:                                                                           \
		good = direction == LADE_ENCODE                                               \
			? encode_##type(t->src, t->dst, count, (type)scale, (type)offset)     \
			: decode_##type(t->src, t->dst, count, (type)scale, (type)offset);    \
		break;

static lade_status run_tile(const lade_run *run, lade_direction direction, const lade_elements *t,
                            lade_error *err)
{
	const size_t count = t->elem_count;
	lade_dtype dtype = (lade_dtype)run->stage->option[0].i;
	double scale = run->stage->option[1].f, offset = run->stage->option[2].f;
	size_t good;
	switch (dtype) {
		CASE(LADE_I1, int8_t)
		CASE(LADE_U1, uint8_t)
		CASE(LADE_I2, int16_t)
		CASE(LADE_U2, uint16_t)
		CASE(LADE_I4, int32_t)
		CASE(LADE_U4, uint32_t)
		CASE(LADE_I8, int64_t)
		CASE(LADE_U8, uint64_t)
	default: {
		const lade__reals *reals = lade__reals_of(dtype);
		lade__real_args args = {.scale = scale, .offset = offset};
		lade__real_step step = {
			reals, direction == LADE_ENCODE ? reals->to_scaled : reals->from_scaled,
			dtype, dtype};
		return lade__real_map(run->stage, &step, &args, t, err);
	}
	}
	return good == count ? LADE_OK
	                     : lade__value_error(run->stage, t->elem_off + good, dtype, dtype, err);
}

static lade_status encode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	lade_status status = lade__filter_whole(run->stage, tile->total, err);
	return status == LADE_OK ? run_tile(run, LADE_ENCODE, tile, err) : status;
}

static lade_status decode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	return run_tile(run, LADE_DECODE, tile, err);
}

LADE__TILE_FILTER_MAYBE_LOSSY(scaleoffset, 37, 0, is_lossy,
                              "(x - offset) * scale in the elements' type "
                              "(docs/format/filters.md, 6)",
                              options, check, sizes, false, LADE_TILE_IN_ORDER, encode,
                              LADE_TILE_IN_ORDER, decode)
