/*
 * extra.c: codecs of zarr-extensions that are more than a line, and a caller's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/chain.h"

#include <stdio.h>
#include <string.h>

uint64_t lade__chain_axis(const builder *b, size_t axis)
{
	size_t own = b->order[axis];
	if (b->shape)
		return b->shape[own];
	return own < b->s->node->array.ndim ? b->s->node->array.axes[own].chunk_size : 0;
}

void lade__chain_becomes(builder *b, const char *text)
{
	lade_dtype dtype = LADE_DTYPE_NONE;
	if (lade_dtype_parse(text, &dtype, NULL) != LADE_OK)
		dtype = LADE_DTYPE_NONE;
	size_t size = lade_dtype_size(dtype);
	b->now = (lade_zarr_type){.cls = LADE_ZARR_RAW,
	                          .dtype = dtype,
	                          .size = size,
	                          .swap_size = size > 1 ? size : 0,
	                          .name = "filtered",
	                          .big = lade_dtype_is_big(dtype)};
}

/* ---- a caller's codecs ------------------------------------------------------------------ */

lade_status lade__chain_foreign(builder *b, uint32_t name, uint32_t config, codec_kind *kind,
                                const char *why)
{
	const lade_zarr_options *options = &b->s->node->options;
	lade_zarr_codec codec = {.struct_size = sizeof codec,
	                         .type = &b->now,
	                         .ndim = b->ndim,
	                         .kind = (lade_zarr_codec_kind)*kind,
	                         .becomes = b->now.dtype};
	uint64_t shape[AXES_MAX];
	lade_error err = {0};
	lade_status status = LADE_E_NOT_FOUND;
	if (options->codec) {
		codec.name = lade__scan_text(b->s, name);
		codec.configuration = config == JSON_NONE ? "{}" : lade__scan_text(b->s, config);
		if (!codec.name || !codec.configuration)
			return lade__scan_nomem(b->s, "a codec");
		for (size_t i = 0; i < b->ndim; i++)
			shape[i] = lade__chain_axis(b, i);
		codec.chunk_shape = shape;
		status = options->codec(options->codec_ctx, &codec, &err);
	}
	if (status == LADE_E_NOT_FOUND)
		return why ? lade__chain_closed(b, name, config, why)
		           : UNKNOWN(b->s, name, "no known codec");
	if (status == LADE_OK && (unsigned)codec.kind > LADE_ZARR_BYTES_BYTES)
		return lade__json_fail(b->s->doc, name, LADE_E_ARG, b->s->err,
		                       "the caller's kind is %d, want 0 to 2", (int)codec.kind);
	if (status != LADE_OK)
		return lade__json_fail(b->s->doc, name, status, b->s->err, "%s", err.message);
	*kind = (codec_kind)codec.kind;
	if (codec.kind == LADE_ZARR_ARRAY_ARRAY && codec.becomes != b->now.dtype)
		lade__chain_becomes(b, lade_dtype_text(codec.becomes));
	b->fixed |= codec.kind != LADE_ZARR_BYTES_BYTES;
	codec.spec[sizeof codec.spec - 1] = 0;
	return lade__chain_spec(b, codec.spec);
}

/* ---- reshape ---------------------------------------------------------------------------- */

/* A product that saturates; 0 if a factor is 0: not known. */
static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t out;
	return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

/* The elements along the axes that a list names, which follow 'after'. */
static lade_status listed_axes(builder *b, uint32_t list, uint64_t *after, uint64_t *size)
{
	const json *doc = b->s->doc;
	uint64_t axis;
	*size = 1;
	for (uint32_t c = lade__json_child(doc, list, 0); c != JSON_NONE;
	     c = lade__json_child(doc, list, c)) {
		if (!lade__json_u64(doc, c, false, &axis) || axis >= b->ndim || axis < *after)
			return BAD(b->s, c, "want axes below %zu, ascending", b->ndim);
		*after = axis + 1;
		*size = times(*size, lade__chain_axis(b, axis));
	}
	return LADE_OK;
}

/* Elements keep their C order: nothing is to be done but to check the shape. */
lade_status lade__chain_reshape(builder *b, uint32_t config)
{
	const json *doc = b->s->doc;
	uint32_t shape = lade__json_get(doc, config, "shape");
	uint64_t want = 1, have = 1, after = 0, size;
	bool automatic = false;
	if (lade__json_type(doc, shape) != JSON_ARRAY)
		return BAD(b->s, shape == JSON_NONE ? config : shape, "want a shape");
	if (b->fixed)
		return UNKNOWN(b->s, shape, "reshape behind a codec that changes the shape");
	for (size_t i = 0; i < b->ndim; i++)
		want = times(want, lade__chain_axis(b, i));
	for (uint32_t c = lade__json_child(doc, shape, 0); c != JSON_NONE;
	     c = lade__json_child(doc, shape, c)) {
		int64_t number = 0;
		lade_status status = LADE_OK;
		if (lade__json_type(doc, c) == JSON_ARRAY)
			status = listed_axes(b, c, &after, &size);
		else if (!lade__json_i64(doc, c, &number) || number < -1 || number == 0 ||
		         (number == -1 && automatic))
			return BAD(b->s, c, "want a size from 1, a list of axes, or -1 once");
		else
			size = number == -1 ? 1 : (uint64_t)number;
		if (status != LADE_OK)
			return status;
		automatic |= number == -1;
		have = times(have, size);
	}
	if (want && have && (automatic ? want % have : want != have))
		return BAD(b->s, shape, "want %llu elements, have %llu", (unsigned long long)want,
		           (unsigned long long)have);
	b->fixed = true;
	return LADE_OK;
}
