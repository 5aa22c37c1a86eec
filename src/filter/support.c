/*
 * support.c: sizes, costs and checks that the filters share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/filters.h"

#include <string.h>

static const lade__filter_info *info_of(const lade_stage *stage)
{
	return stage->algorithm->ctx;
}

size_t lade__filter_bound(const lade_stage *stage, size_t size)
{
	size_t decoded, encoded;
	if (info_of(stage)->partial)
		return size;
	info_of(stage)->sizes(stage, &decoded, &encoded);
	size_t count = size / decoded + (size % decoded != 0);
	return count > SIZE_MAX / encoded ? SIZE_MAX : count * encoded;
}

lade_status lade__filter_decoded_size(const lade_stage *stage, const void *src, size_t size,
                                      uint64_t *decoded, lade_error *err)
{
	size_t to, from;
	(void)src;
	*decoded = size;
	if (info_of(stage)->partial)
		return LADE_OK;
	info_of(stage)->sizes(stage, &to, &from);
	if (size % from)
		return lade_fail(err, LADE_E_CORRUPT, size - size % from,
		                 "%s: %zu bytes are not a multiple of the element's %zu",
		                 stage->algorithm->name, size, from);
	if (size / from > UINT64_MAX / to)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%s: the decoded size of %zu bytes overflows",
		                 stage->algorithm->name, size);
	*decoded = (uint64_t)(size / from) * to;
	return LADE_OK;
}

double lade__filter_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 20, 10.0);
}

lade_dtype lade__filter_dtype(const lade_stage *stage, size_t index)
{
	lade_dtype dtype = (lade_dtype)stage->option[index].i;
	return dtype ? dtype : (lade_dtype)stage->option[0].i;
}

lade_status lade__filter_check_dtype(const lade_stage *stage, size_t index, const char *classes,
                                     lade_error *err)
{
	lade_dtype dtype = lade__filter_dtype(stage, index);
	if (!lade_dtype_size(dtype) || !strchr(classes, lade_dtype_class(dtype)))
		return lade_fail(err, LADE_E_DTYPE, LADE_NO_OFFSET,
		                 "%s: type %s is not supported for option %s",
		                 stage->algorithm->name, lade_dtype_text(dtype),
		                 stage->algorithm->options[index].name);
	return lade__little_check(stage, dtype, err);
}

lade_status lade__filter_whole(const lade_stage *stage, size_t total, lade_error *err)
{
	size_t decoded, encoded;
	info_of(stage)->sizes(stage, &decoded, &encoded);
	if (total % decoded)
		return lade_fail(err, LADE_E_DTYPE, total - total % decoded,
		                 "%s: %zu bytes are not a multiple of the element's %zu",
		                 stage->algorithm->name, total, decoded);
	return LADE_OK;
}
