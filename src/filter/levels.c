/*
 * levels.c: reals between two limits as whole numbers, the nearest of 2^bits levels
 * (docs/format/filters.md, section 15).  RNTuple's Real32Quant, before its bits are packed.
 *
 * Each step is in double and rounds: the build forbids to contract a product and a sum into one
 * operation (CMakeLists.txt), which would give other results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"

#include <string.h>

static const lade_option options[] = {
	{.name = "bits",
         .type = LADE_OPTION_INT,
         .required = true,
         .min = 1,
         .max = 32,
         .doc = "of a level"},
	{.name = "min", .type = LADE_OPTION_FLOAT, .required = true, .doc = "the lowest level"},
	{.name = "max", .type = LADE_OPTION_FLOAT, .required = true, .doc = "the highest level"},
};

static void sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	(void)stage;
	*decoded = *encoded = 4;
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	double min = stage->option[1].f, max = stage->option[2].f;
	/* The difference of finite numbers may be infinite. */
	if (min < max && max - min <= 0x1p1023)
		return LADE_OK;
	return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
	                 "levels: min %g and max %g are no limits", min, max);
}

static double top_of(const lade_stage *stage)
{
	return (double)(((uint64_t)1 << stage->option[0].i) - 1);
}

static lade_status encode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	lade_status status = lade__filter_whole(run->stage, tile->total, err);
	double min = run->stage->option[1].f, max = run->stage->option[2].f;
	double scale = top_of(run->stage) / (max - min);
	for (size_t i = 0; i < tile->elem_count && status == LADE_OK; i++) {
		float x;
		memcpy(&x, (const uint8_t *)tile->src + 4 * i, 4);
		if (!(x >= min && x <= max))
			return lade_fail(err, LADE_E_VALUE, tile->elem_off + i,
			                 "levels: element %zu is %g, want %g to %g",
			                 tile->elem_off + i, x, min, max);
		double shifted = x - min;
		uint32_t level = (uint32_t)(0.5 + shifted * scale);
		memcpy((uint8_t *)tile->dst + 4 * i, &level, 4);
	}
	return status;
}

lade__leveling lade__leveling_of(const lade_stage *stage)
{
	double min = stage->option[1].f, max = stage->option[2].f;
	return (lade__leveling){min, (max - min) / top_of(stage), max};
}

static lade_status decode(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	(void)err;
	lade__leveling l = lade__leveling_of(run->stage);
	for (size_t i = 0; i < tile->elem_count; i++) {
		uint32_t level;
		memcpy(&level, (const uint8_t *)tile->src + 4 * i, 4);
		double product = level * l.scale, x = product + l.min;
		float out = (float)(x < l.max ? x : l.max);
		memcpy((uint8_t *)tile->dst + 4 * i, &out, 4);
	}
	return LADE_OK;
}

LADE__TILE_FILTER(levels, 46, LADE_ALGORITHM_LOSSY,
                  "reals between two limits as levels (docs/format/filters.md, 15)", options, check,
                  sizes, false, LADE_TILE_IN_ORDER, encode, LADE_TILE_IN_ORDER, decode)
