/*
 * bare.c: encoded bytes without a container, one buffer: shells over the calls of items.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"

#include <lade/bare.h>

typedef lade_status items_call(lade_engine *engine, const lade_item *items, size_t count,
                               lade_result *results, const lade_bare_options *options,
                               lade_error *err);

/* A call with one item, which is this version's whatever the caller's structs are. */
static lade_status run_one(items_call *run, lade_engine *engine, const lade_item *item,
                           size_t *size, const lade_bare_options *caller, lade_error *err)
{
	lade_bare_options options;
	lade_batch_options batch;
	lade_result result = {0};
	lade_status status;

	if (!size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "size is NULL");
	*size = 0;
	status = lade__options_read(&options, sizeof options, caller, "bare options", err);
	if (status == LADE_OK)
		status = lade__options_read(&batch, sizeof batch, options.batch, "batch options",
		                            err);
	if (status != LADE_OK)
		return status;
	batch.item_size = sizeof *item;
	batch.segment_size = sizeof *item->src;
	batch.result_size = sizeof result;
	options.batch = &batch;
	status = run(engine, item, 1, &result, &options, err);
	if (status == LADE_OK)
		*size = result.size;
	return status;
}

lade_status lade_bare_encode(lade_engine *engine, lade_cspan src, lade_span dst, size_t *dst_size,
                             const lade_bare_options *options, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size, .place = src.place};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};

	return run_one(lade_bare_encode_into, engine, &item, dst_size, options, err);
}

lade_status lade_bare_decode(lade_engine *engine, lade_cspan src, lade_span dst, size_t *dst_size,
                             const lade_bare_options *options, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size, .place = src.place};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};

	return run_one(lade_bare_decode_into, engine, &item, dst_size, options, err);
}

lade_status lade_bare_decoded_size(lade_engine *engine, lade_cspan src, size_t *size,
                                   const lade_bare_options *options, lade_error *err)
{
	lade_segment segment = {.data = src.data, .size = src.size, .place = src.place};
	lade_item item = {.src = &segment, .src_count = 1};

	return run_one(lade_bare_decoded_sizes, engine, &item, size, options, err);
}
