/*
 * chain_shard.c: the codec of shards: the chains of its chunks and of its index.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/chain.h"

#include <lade/batch.h>

#include <string.h>

static lade_status check_divides(builder *b, uint32_t at, uint64_t inner, size_t axis,
                                 const around *outer)
{
	const lade_zarr_axis *own = &b->s->node->array.axes[b->order[axis]];
	uint64_t bad = 0;
	if (outer->shape)
		bad = outer->shape[b->order[axis]] % inner ? outer->shape[b->order[axis]] : 0;
	else if (own->chunk_size)
		bad = own->chunk_size % inner ? own->chunk_size : 0;
	for (size_t i = 0; !outer->shape && !own->chunk_size && i < own->run_count; i++)
		if (own->runs[i].length % inner)
			bad = own->runs[i].length;
	if (bad)
		return BAD(b->s, at, "want chunks that divide a shard of %llu",
		           (unsigned long long)bad);
	return LADE_OK;
}

static lade_status inner_shape(builder *b, uint32_t config, lade_zarr_shard *shard,
                               const around *outer)
{
	const json *doc = b->s->doc;
	uint32_t list = lade__json_get(doc, config, "chunk_shape");
	uint64_t *shape = lade__arena(&b->s->node->arena, b->ndim + 1, sizeof *shape);
	size_t i = 0;
	if (!shape)
		return lade__scan_nomem(b->s, "a shape");
	if (lade__json_type(doc, list) != JSON_ARRAY || lade__json_count(doc, list) != b->ndim)
		return BAD(b->s, list == JSON_NONE ? config : list, "want %zu chunk sizes",
		           b->ndim);
	for (uint32_t c = lade__json_child(doc, list, 0); c != JSON_NONE;
	     c = lade__json_child(doc, list, c), i++) {
		shape[i] = 1;
		if (lade__json_type(doc, c) != JSON_TRUE &&
		    (!lade__json_u64(doc, c, true, &shape[i]) || shape[i] < 1))
			return BAD(b->s, c, "want a chunk size from 1");
		lade_status status = check_divides(b, c, shape[i], i, outer);
		if (status != LADE_OK)
			return status;
	}
	shard->chunk_shape = shape;
	return LADE_OK;
}

/* All codecs of an index keep its size, or add to it: '*extra' bytes. */
static lade_status check_index(builder *b, uint32_t list, const lade_zarr_chain *index,
                               size_t *extra)
{
	*extra = 0;
	for (size_t i = 0; i < index->step_count; i++) {
		const lade_zarr_step *step = &index->steps[i];
		size_t more;
		if (!step->spec || step->header_size || !lade__spec_adds(step->spec, &more))
			return BAD(b->s, list, "codecs of an index must keep its size");
		*extra += more;
	}
	if (index->shard)
		return BAD(b->s, list, "an index cannot have shards");
	return LADE_OK;
}

/*
 * Filters before a shard work on each element alone, so that they may as well be the first of its
 * chunks.  A chunk that a shard lacks has the fill value behind them, which must come back as the
 * array's own.
 */
static lade_status try_fill(const builder *b, lade_engine *engine, bool *keeps)
{
	const lade_zarr_array *array = &b->s->node->array;
	uint8_t bytes[2][64] = {{0}};
	const lade_segment fill = {.data = array->fill, .size = array->fill_size};
	lade_item there = {.src = &fill, .src_count = 1,
	                   .dst = lade_host_span(bytes[0], sizeof bytes[0])};
	lade_result result;
	lade_spec *spec;
	lade_status status = lade_spec_parse(engine, b->text, &spec, NULL);
	*keeps = true;
	if (status != LADE_OK) /* the step says why it cannot run */
		return status == LADE_E_NOMEM ? status : LADE_OK;
	status = lade_encode_into(engine, spec, &there, 1, &result, NULL, NULL);
	lade_segment encoded = {.data = bytes[0], .size = result.size};
	lade_item back = {.src = &encoded, .src_count = 1,
	                  .dst = lade_host_span(bytes[1], sizeof bytes[1])};
	if (status == LADE_OK)
		status = lade_decode_into(engine, spec, &back, 1, &result, NULL, NULL);
	lade_spec_unref(spec);
	*keeps = status == LADE_OK && result.size == array->fill_size &&
	         memcmp(bytes[1], array->fill, array->fill_size) == 0;
	return status == LADE_E_NOMEM ? status : LADE_OK;
}

static lade_status keeps_fill(const builder *b, bool *keeps)
{
	const lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	lade_engine *engine = (lade_engine *)(uintptr_t)b->s->node->options.engine, *own = NULL;
	lade_status status = engine ? LADE_OK : lade_engine_new(&options, &own, NULL);
	if (status == LADE_OK)
		status = try_fill(b, engine ? engine : own, keeps);
	lade_engine_free(own);
	return status == LADE_OK ? LADE_OK : lade__scan_nomem(b->s, "a fill value");
}

lade_status lade__chain_shard(builder *b, uint32_t name, uint32_t config, const around *outside)
{
	static const lade_zarr_type entry = {.cls = LADE_ZARR_UINT, .dtype = LADE_U8, .size = 8,
	                                     .swap_size = 8, .name = "uint64"};
	const json *doc = b->s->doc;
	uint32_t codecs = lade__json_get(doc, config, "codecs");
	uint32_t index_codecs = lade__json_get(doc, config, "index_codecs");
	uint32_t location = lade__json_get(doc, config, "index_location");
	lade_zarr_shard *shard = lade__arena(&b->s->node->arena, 1, sizeof *shard);
	lade_status status = LADE_OK;
	bool keeps = true;
	if (!shard)
		return lade__scan_nomem(b->s, "a shard");
	if (b->fixed)
		return UNKNOWN(b->s, config, "shards behind a filter that changes the shape");
	if (b->stage_count)
		TRY(keeps_fill(b, &keeps));
	if (!keeps)
		TRY(lade__chain_closed(b, name, config,
		                       "the filters before the shard change the fill value"));
	shard->index_first = lade__json_is(doc, location, "start");
	if (location != JSON_NONE && !shard->index_first && !lade__json_is(doc, location, "end"))
		return BAD(b->s, location, "want \"start\" or \"end\"");
	TRY(inner_shape(b, config, shard, outside));
	if (codecs == JSON_NONE || index_codecs == JSON_NONE)
		return BAD(b->s, config, "want 'codecs' and 'index_codecs'");
	b->chain->shard = shard;
	around inner = {.shape = shard->chunk_shape, .before = b}, index = {.index = true};
	TRY(lade__chain_build(b->s, codecs, &shard->chunks, &b->now, b->ndim, &inner));
	TRY(lade__chain_build(b->s, index_codecs, &shard->index, &entry, b->ndim + 1, &index));
	status = check_index(b, index_codecs, &shard->index, &shard->index_extra);
out:
	return status;
}
