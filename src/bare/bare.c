/*
 * bare.c: encoded bytes without a container, one buffer in host memory: shells over the calls of
 * items.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"

#include <lade/bare.h>

static const lade_batch_options ours = {LADE__OUR_SIZES};

/* The kind is given in full here: 0 is none. */
static lade_status check(lade_bare kind, const void *out, const char *what, lade_error *err)
{
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL", what);
	if (kind < LADE_BARE_RAW || kind > LADE_BARE_WITH_SIZE_16)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "bare kind %d is unknown",
		                 (int)kind);
	return LADE_OK;
}

lade_status lade_bare_encode(lade_engine *engine, const lade_spec *spec, lade_bare kind,
                             lade_cspan src, lade_span dst, size_t *dst_size, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size, .place = src.place};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};
	lade_bare_options options = {.struct_size = sizeof options, .kind = kind, .batch = &ours};
	lade_result result = {0};
	lade_status status = check(kind, dst_size, "dst_size", err);
	if (status == LADE_OK)
		status = lade_bare_encode_into(engine, spec, &item, 1, &result, &options, err);
	if (dst_size)
		*dst_size = status == LADE_OK ? result.size : 0;
	return status;
}

lade_status lade_bare_decode(lade_engine *engine, const lade_spec *spec, lade_bare kind,
                             lade_cspan src, lade_span dst, size_t *dst_size, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size, .place = src.place};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};
	lade_bare_options options = {.struct_size = sizeof options, .kind = kind, .batch = &ours};
	lade_result result = {0};
	lade_status status = check(kind, dst_size, "dst_size", err);
	if (status == LADE_OK)
		status = lade_bare_decode_into(engine, spec, &item, 1, &result, &options, err);
	if (dst_size)
		*dst_size = status == LADE_OK ? result.size : 0;
	return status;
}

lade_status lade_bare_decoded_size(lade_engine *engine, const lade_spec *spec, lade_bare kind,
                                   lade_cspan src, uint64_t *size, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size, .place = src.place};
	lade_item item = {.src = &segment, .src_count = 1};
	lade_bare_options options = {.struct_size = sizeof options, .kind = kind, .batch = &ours};
	lade_status status = check(kind, size, "size", err);
	return status == LADE_OK ? lade_bare_decoded_sizes(engine, spec, &item, 1, size, &options,
	                                                   err)
	                         : status;
}
