/*
 * casts.c: the lossy filters that change the elements' type, as numcodecs has them: quantize,
 * fixedscaleoffset, astype (docs/format/filters.md, sections 9 to 11).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/reals.h"

#include <math.h>

/* Option 0 is always the decoded side's type; the encoded side's is at 'index'. */
static void sizes_at(const lade_stage *stage, size_t index, size_t *decoded, size_t *encoded)
{
	*decoded = lade_dtype_size(lade__filter_dtype(stage, 0));
	*encoded = lade_dtype_size(lade__filter_dtype(stage, index));
}

static lade_status convert_tile(const lade_stage *stage, lade_dtype from, lade_dtype to,
                                const lade_elements *tile, lade_error *err)
{
	size_t good = lade__convert(from, to)(tile->src, tile->dst, tile->elem_count);
	return good == tile->elem_count
	               ? LADE_OK
	               : lade__value_error(stage, tile->elem_off + good, from, to, err);
}

/* ---- quantize ----------------------------------------------------------------------- */

static const lade_option quantize_options[] = {
	{.name = "dtype", .type = LADE_OPTION_DTYPE, .required = true, .doc = "the reals' type"},
	{.name = "digits", .type = LADE_OPTION_INT, .required = true, .min = -300, .max = 300,
	 .doc = "decimal digits after the point that stay"},
	{.name = "astype", .type = LADE_OPTION_DTYPE, .doc = "the stored reals' type, if another"},
};

static void quantize_sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	sizes_at(stage, 2, decoded, encoded);
}

/* The power of two at or above 10^digits, by the steps of numcodecs. */
static double quantize_scale(const lade_stage *stage)
{
	double exponent = log10(pow(10.0, -(double)stage->option[1].i));
	exponent = exponent < 0 ? floor(exponent) : ceil(exponent);
	return exp2(ceil(log2(pow(10.0, -exponent))));
}

static lade_status quantize_check(const lade_stage *stage, lade_error *err)
{
	lade_status status = lade__filter_check_dtype(stage, 0, "f", err);
	if (status == LADE_OK)
		status = lade__filter_check_dtype(stage, 2, "f", err);
	if (status != LADE_OK)
		return status;
	lade_dtype dtype = (lade_dtype)stage->option[0].i;
	double scale = quantize_scale(stage), real = scale;
	if (dtype == LADE_F2)
		real = lade__round_half((float)scale);
	else if (dtype == LADE_F4)
		real = (double)(float)scale;
	if (!isfinite(real) || real == 0)
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "quantize: the scale %g for %lld digits has no value in type %s",
		                 scale, (long long)stage->option[1].i, lade_dtype_text(dtype));
	return LADE_OK;
}

static lade_status quantize_encode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	const lade_stage *stage = run->stage;
	lade_dtype dtype = lade__filter_dtype(stage, 0);
	const lade__reals *reals = lade__reals_of(dtype);
	lade__real_args args = {.scale = quantize_scale(stage)};
	lade__real_step step = {reals, reals->quantize, dtype, lade__filter_dtype(stage, 2)};
	lade_status status = lade__filter_whole(stage, tile->total, err);
	if (status != LADE_OK)
		return status;
	return lade__real_map(stage, &step, &args, tile, err);
}

static lade_status quantize_decode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	return convert_tile(run->stage, lade__filter_dtype(run->stage, 2),
	                    lade__filter_dtype(run->stage, 0), tile, err);
}

LADE__TILE_FILTER(quantize, 40, LADE_ALGORITHM_LOSSY,
                  "reals rounded to decimal digits (docs/format/filters.md, 9)", quantize_options,
                  quantize_check, quantize_sizes, false, LADE_TILE_IN_ORDER, quantize_encode,
                  LADE_TILE_IN_ORDER, quantize_decode)

/* ---- fixedscaleoffset --------------------------------------------------------------- */

static const lade_option fixed_options[] = {
	{.name = "dtype", .type = LADE_OPTION_DTYPE, .required = true, .doc = "the elements' type"},
	{.name = "astype",
         .type = LADE_OPTION_DTYPE,
         .doc = "the stored elements' type, if another"},
	{.name = "scale", .type = LADE_OPTION_FLOAT, .fallback.f = 1, .doc = "factor, not 0"},
	{.name = "offset", .type = LADE_OPTION_FLOAT, .doc = "taken off before"},
};

static void fixed_sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	sizes_at(stage, 1, decoded, encoded);
}

static lade_status fixed_check(const lade_stage *stage, lade_error *err)
{
	lade_status status = lade__filter_check_dtype(stage, 0, "iuf", err);
	if (status == LADE_OK)
		status = lade__filter_check_dtype(stage, 1, "iuf", err);
	if (status == LADE_OK && stage->option[2].f == 0)
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "fixedscaleoffset: the scale is 0");
	return status;
}

static lade_status fixed_encode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	const lade_stage *stage = run->stage;
	lade_dtype dtype = lade__filter_dtype(stage, 0);
	const lade__reals *reals = lade__reals_of(dtype);
	lade__real_args args = {.scale = stage->option[2].f, .offset = stage->option[3].f};
	lade__real_step step = {reals, reals->to_fixed, dtype, lade__filter_dtype(stage, 1)};
	lade_status status = lade__filter_whole(stage, tile->total, err);
	if (status != LADE_OK)
		return status;
	return lade__real_map(stage, &step, &args, tile, err);
}

static lade_status fixed_decode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	const lade_stage *stage = run->stage;
	lade_dtype astype = lade__filter_dtype(stage, 1);
	const lade__reals *reals = lade__reals_of(astype);
	lade__real_args args = {.scale = stage->option[2].f, .offset = stage->option[3].f};
	lade__real_step step = {reals, reals->from_fixed, astype, lade__filter_dtype(stage, 0)};
	return lade__real_map(stage, &step, &args, tile, err);
}

LADE__TILE_FILTER(fixedscaleoffset, 41, LADE_ALGORITHM_LOSSY,
                  "(x - offset) * scale, rounded, in another type (docs/format/filters.md, 10)",
                  fixed_options, fixed_check, fixed_sizes, false, LADE_TILE_IN_ORDER, fixed_encode,
                  LADE_TILE_IN_ORDER, fixed_decode)

/* ---- astype ------------------------------------------------------------------------- */

static const lade_option astype_options[] = {
	{.name = "dtype", .type = LADE_OPTION_DTYPE, .required = true, .doc = "the elements' type"},
	{.name = "astype",
         .type = LADE_OPTION_DTYPE,
         .required = true,
         .doc = "the stored elements' type"},
};

static lade_status astype_check(const lade_stage *stage, lade_error *err)
{
	lade_status status = lade__filter_check_dtype(stage, 0, "biufe", err);
	return status == LADE_OK ? lade__filter_check_dtype(stage, 1, "biufe", err) : status;
}

static lade_status astype_encode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	lade_status status = lade__filter_whole(run->stage, tile->total, err);
	if (status != LADE_OK)
		return status;
	return convert_tile(run->stage, lade__filter_dtype(run->stage, 0),
	                    lade__filter_dtype(run->stage, 1), tile, err);
}

static lade_status astype_decode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	return convert_tile(run->stage, lade__filter_dtype(run->stage, 1),
	                    lade__filter_dtype(run->stage, 0), tile, err);
}

LADE__TILE_FILTER(astype, 42, LADE_ALGORITHM_LOSSY,
                  "elements in another type (docs/format/filters.md, 11)", astype_options,
                  astype_check, fixed_sizes, false, LADE_TILE_IN_ORDER, astype_encode,
                  LADE_TILE_IN_ORDER, astype_decode)
