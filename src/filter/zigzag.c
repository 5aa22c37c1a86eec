/*
 * zigzag.c: the filter that folds signed integers into small unsigned ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"
#include "filter/ints.h"

static const lade_option zigzag_options[] = {
	{.name = "dtype", .type = LADE_OPTION_DTYPE, .required = true,
	 .doc = "the signed integers' type"},
};

static void sizes(const lade_stage *stage, size_t *decoded, size_t *encoded)
{
	*decoded = *encoded = lade_dtype_size((lade_dtype)stage->option[0].i);
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	return lade__filter_check_dtype(stage, 0, "i", err);
}

static unsigned log2_of(const lade_run *run)
{
	return lade__log2(lade_dtype_size((lade_dtype)run->stage->option[0].i));
}

static lade_status zig(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	lade_status status = lade__filter_whole(run->stage, tile->total, err);
	if (status == LADE_OK)
		lade__int_kernels_of(run->cpu)->zig[log2_of(run)](tile->src, tile->dst,
		                                                    tile->elem_count);
	return status;
}

static lade_status zag(const lade_run *run, const lade_elements *tile, lade_error *err)
{
	(void)err;
	lade__int_kernels_of(run->cpu)->zag[log2_of(run)](tile->src, tile->dst, tile->elem_count);
	return LADE_OK;
}

LADE__TILE_FILTER(zigzag, 35, 0, "0, -1, 1, -2 become 0, 1, 2, 3 (docs/format/filters.md, 4)",
                  zigzag_options, check, sizes, false, LADE_TILE_IN_ORDER, zig,
                  LADE_TILE_IN_ORDER, zag)
