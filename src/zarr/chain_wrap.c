/*
 * chain_wrap.c: codecs that have a list of codecs: n5_default and conditional.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/chain.h"
#include "zarr/n5.h"

/* Its own codecs: a transposition that reverses the axes, big-endian bytes, and maybe one more. */
static lade_status n5_inner(builder *b, uint32_t list, const around *outer)
{
	const json *doc = b->s->doc;
	size_t count = lade__json_count(doc, list), i = 0;
	if (lade__json_type(doc, list) != JSON_ARRAY || count < 2 || count > 3)
		return BAD(b->s, list, "want 2 or 3 codecs");
	for (uint32_t c = lade__json_child(doc, list, 0); c != JSON_NONE;
	     c = lade__json_child(doc, list, c), i++) {
		size_t before = b->serial_count;
		lade_status status = lade__chain_codec(b, c, outer);
		bool good = (size_t)b->kind == i && b->serial_count - before == (i == 1);
		for (size_t k = 0; i == 0 && k < b->ndim; k++)
			good = good && b->order[k] == b->ndim - 1 - k;
		if (i == 1 && (b->type->size == 0 || (b->now.swap_size && !b->chain->swap_size)))
			good = false;
		if (status == LADE_OK && (!good || b->chain->shard))
			return BAD(b->s, c,
			           "want transpose by the reversed axes, bytes with "
			           "\"big\", and one codec of bytes");
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

lade_status lade__chain_n5(builder *b, uint32_t name, uint32_t config, const around *outer)
{
	if (outer->index)
		return BAD(b->s, name, "codecs of an index must keep its size");
	if (b->transposed || b->fixed || b->stage_count || b->chain->step_count)
		return lade__chain_closed(b, name, config, "n5_default behind other codecs");
	if (b->ndim == 0)
		return BAD(b->s, name, "an array without axes");
	for (size_t i = 0; i < b->ndim; i++)
		if (lade__chain_axis(b, i) > UINT32_MAX)
			return UNKNOWN(b->s, name, "chunks of %llu elements along an axis",
			               (unsigned long long)lade__chain_axis(b, i));
	lade_status status = n5_inner(b, lade__json_get(b->s->doc, config, "codecs"), outer);
	if (status == LADE_OK && b->chain->step_count)
		return UNKNOWN(b->s, name, "a codec with a header of its own in n5_default");
	if (status == LADE_OK && !b->stage_count)
		status = lade__chain_stage(b, "copy");
	if (status == LADE_OK)
		status = lade__chain_flush(b, lade__n5_size(b->ndim));
	if (status != LADE_OK)
		return status;
	b->steps[b->chain->step_count - 1].header = LADE_ZARR_HEADER_N5;
	b->kind = AB;
	b->serial_count = 0; /* n5_default is the one */
	b->ended = true;
	return LADE_OK;
}

/* A codec that a chunk may go without: one step. */
static lade_status add_optional(builder *b, uint32_t at, const around *outer)
{
	size_t before = b->chain->step_count;
	lade_status status = lade__chain_codec(b, at, outer);
	if (status == LADE_OK && b->chain->step_count == before && !b->stage_count)
		status = lade__chain_stage(b, "copy");
	if (status == LADE_OK)
		status = lade__chain_flush(b, 0);
	if (status == LADE_OK && b->chain->step_count != before + 1)
		return UNKNOWN(b->s, at, "a codec of several steps in conditional");
	return status;
}

/* The steps: what is before, or "copy"; one for each codec; "copy" with the header. */
lade_status lade__chain_conditional(builder *b, uint32_t name, uint32_t config,
                                    const around *outer)
{
	const json *doc = b->s->doc;
	uint32_t list = lade__json_get(doc, config, "codecs");
	uint32_t bits_at = lade__json_get(doc, config, "header_bits");
	size_t count = lade__json_count(doc, list);
	uint64_t bits = (count + 7) / 8 * 8;
	if (outer->index)
		return BAD(b->s, name, "codecs of an index must keep its size");
	if (lade__json_type(doc, list) != JSON_ARRAY || count == 0 || count >= STEPS_MAX)
		return BAD(b->s, list == JSON_NONE ? config : list, "want 1 to %d codecs",
		           STEPS_MAX - 1);
	if (bits_at != JSON_NONE && (!lade__json_u64(doc, bits_at, false, &bits) || bits % 8 ||
	                             bits < count || bits > 4096))
		return BAD(b->s, bits_at, "want a multiple of 8 from %zu to 4096", count);
	lade_status status = LADE_OK;
	if (!b->stage_count && !b->chain->step_count)
		status = lade__chain_stage(b, "copy");
	if (status == LADE_OK)
		status = lade__chain_flush(b, 0);
	for (uint32_t c = lade__json_child(doc, list, 0); status == LADE_OK && c != JSON_NONE;
	     c = lade__json_child(doc, list, c))
		status = add_optional(b, c, outer);
	if (status == LADE_OK)
		status = lade__chain_stage(b, "copy");
	if (status == LADE_OK)
		status = lade__chain_flush(b, (size_t)bits / 8);
	if (status != LADE_OK)
		return status;
	b->steps[b->chain->step_count - 1].header = LADE_ZARR_HEADER_MASK;
	b->steps[b->chain->step_count - 1].mask_count = (uint32_t)count;
	return LADE_OK;
}
