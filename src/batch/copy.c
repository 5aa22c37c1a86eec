/*
 * copy.c: bytes moved between memory of any two places, and copies of arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"

#include <lade/array.h>

#include <string.h>

static lade_status check(lade_cspan src, lade_span dst, lade_error *err)
{
	if (dst.size < src.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "%zu bytes are to be copied, the destination has %zu", src.size,
		                 dst.size);
	if (src.size && (!src.data || !dst.data))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL and has %zu bytes",
		                 src.data ? "the destination" : "the source", src.size);
	if ((unsigned)src.place.kind >= LADE_KIND_COUNT ||
	    (unsigned)dst.place.kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "from memory of kind %d to kind %d: there are %d",
		                 (int)src.place.kind, (int)dst.place.kind, LADE_KIND_COUNT);
	return LADE_OK;
}

lade_status lade_copy(lade_engine *engine, lade_cspan src, lade_span dst, lade_stream stream,
                      lade_error *err)
{
	bool far_src = !lade_kind_is_host(src.place.kind);
	bool far_dst = !lade_kind_is_host(dst.place.kind);
	lade_spec *copy = NULL;
	lade_status status = check(src, dst, err);

	if (status != LADE_OK || !src.size)
		return status;
	if (!far_src && !far_dst) {
		memmove(dst.data, src.data, src.size);
		return LADE_OK;
	}
	if (!engine && !(engine = lade_engine_default()))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for the engine");
	/* A stream is one device's. */
	if (far_src && far_dst && src.place.device != dst.place.device) {
		TRY(lade_stream_wait(src.place.device, stream, err));
		stream = NULL;
	}
	TRY(lade_spec_parse(engine, "copy", &copy, err));
	lade_segment segment = {src.data, src.size, src.place, src.size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = dst};
	lade_batch_options options = {.struct_size = sizeof options, .stream = stream};
	status = lade_decode_into(engine, copy, &item, 1, NULL, &options, err);
out:
	lade_spec_unref(copy);
	return status;
}

lade_status lade_array_copy(lade_engine *engine, lade_array *array, lade_place place,
                            const lade_array_options *options, lade_array **out,
                            lade_error *err)
{
	lade_status status;

	if (!array || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 array ? "out" : "array");
	*out = NULL;
	lade_span src = lade_array_span(array);
	TRY(lade_array_wait(array, err));
	TRY(lade_array_new(src.size, place, options, out, err));
	/* The block is there once what its making was enqueued behind is done. */
	TRY(lade_array_wait(*out, err));
	status = lade_copy(engine, (lade_cspan){src.data, src.size, src.place},
	                   lade_array_span(*out), NULL, err);
out:
	if (status != LADE_OK) {
		lade_array_unref(*out);
		*out = NULL;
	}
	return status;
}
