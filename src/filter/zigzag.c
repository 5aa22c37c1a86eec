/*
 * zigzag.c: the filter that folds signed integers into small unsigned ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"
#include "filter/stream.h"

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

static lade_status zig(const lade_run *run, const void *src, void *dst, size_t off, size_t count,
                       size_t total, lade_carry *carry, lade_error *err)
{
	(void)off;
	(void)carry;
	lade_status status = lade__filter_whole(run->stage, total, err);
	if (status == LADE_OK)
		lade__stream_kernels_of(run->cpu)->zig[log2_of(run)](src, dst, count);
	return status;
}

static lade_status zag(const lade_run *run, const void *src, void *dst, size_t off, size_t count,
                       size_t total, lade_carry *carry, lade_error *err)
{
	(void)off;
	(void)total;
	(void)carry;
	(void)err;
	lade__stream_kernels_of(run->cpu)->zag[log2_of(run)](src, dst, count);
	return LADE_OK;
}

LADE__TILE_FILTER(zigzag, 35, 0, "0, -1, 1, -2 become 0, 1, 2, 3 (docs/format/filters.md, 4)",
                  zigzag_options, check, sizes, false, LADE_TILE_STREAM, zig, LADE_TILE_STREAM, zag)
