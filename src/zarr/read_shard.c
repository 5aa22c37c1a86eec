/*
 * read_shard.c: indexes of shards: where the chunks in a shard are.
 *
 *	a shard       | chunks, in any order, with gaps | index |      or the index first
 *	an index      | offset 8 | size 8 | for each chunk, in C order of the stored shard's axes
 *
 * Both words are 2^64 - 1 for a missing chunk.  Offsets count from the shard's first byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/mask.h"
#include "zarr/read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ULL(x) ((unsigned long long)(x))

/* The largest index in memory. */
#define INDEX_MAX ((uint64_t)1 << 30)
/* The largest shard that is read whole because codecs are around it. */
#define WHOLE_MAX ((uint64_t)4 << 30)

/* An index while it is read. */
typedef struct opening {
	lade__shard *shard;
	uint8_t *encoded; /* the index; or, if 'whole', all of the shard */
	size_t encoded_size;
	bool whole;
} opening;

/* Codecs behind the shard's: then nothing but all of it can be read. */
static bool is_wrapped(const lade_zarr_chain *chain)
{
	return chain->step_count > chain->array_step_count;
}

static void fail(lade__zread *r, lade__shard *shard, lade_status status, const lade_error *err)
{
	lade__leaf leaf;
	shard->failed = true;
	memcpy(leaf.chunk, shard->chunk, sizeof leaf.chunk);
	leaf.key = shard->key;
	leaf.shard = NULL;
	lade__zread_fail(r, &leaf, status, err);
}

/* The number of chunks in a shard. */
static lade_status count_chunks(const lade__zread *r, size_t level, lade__shard *shard,
                                lade_error *err)
{
	const lade__level *inner = &r->levels.level[level + 1];
	uint64_t count = 1;
	for (size_t a = 0; a < r->selected.ndim; a++)
		if (__builtin_mul_overflow(count, shard->cut[a].size / inner->size[a], &count))
			count = UINT64_MAX;
	if (count > INDEX_MAX / 16)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "the index has %llu entries, at most %llu", ULL(count),
		                 ULL(INDEX_MAX / 16));
	shard->index_count = (size_t)count;
	return LADE_OK;
}

/* All of a shard that has codecs around it. */
static lade_status ask_whole(lade__zread *r, size_t level, opening *o, lade_range *range,
                             lade_error *err)
{
	lade__shard *shard = o->shard;
	lade_status status = LADE_OK;
	o->whole = true;
	if (level == 0)
		status = lade_store_look(r->node->chunk_store, shard->key, &shard->size,
		                         &shard->version, err);
	if (status == LADE_OK && shard->size > WHOLE_MAX)
		status = lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                   "a shard of %llu bytes in further codecs, at most %llu",
		                   ULL(shard->size), ULL(WHOLE_MAX));
	if (status == LADE_OK)
		o->encoded_size = (size_t)shard->size;
	range->off = shard->base;
	return status;
}

/* The range that has the index. */
static lade_status ask_index(lade__zread *r, size_t level, opening *o, lade_range *range,
                             lade_error *err)
{
	const lade_zarr_chain *chain = r->levels.level[level].chain;
	const bool first = chain->shard->index_first;
	lade__shard *shard = o->shard;
	lade_status status = count_chunks(r, level, shard, err);
	if (status != LADE_OK)
		return status;
	*range = (lade_range){.key = shard->key};
	o->encoded_size = shard->index_count * 16 + chain->shard->index_extra;
	if (is_wrapped(chain)) {
		status = ask_whole(r, level, o, range, err);
	} else if (level == 0) {
		range->kind = first ? LADE_RANGE_AT : LADE_RANGE_LAST;
		range->version = &shard->version;
	} else {
		if (o->encoded_size > shard->size)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "a shard in a shard has %llu bytes, its index %zu",
			                 ULL(shard->size), o->encoded_size);
		range->off = shard->base + (first ? 0 : shard->size - o->encoded_size);
	}
	if (status != LADE_OK)
		return status;
	if (shard->top->version.size && !range->version)
		range->want = &shard->top->version;
	o->encoded = malloc(o->encoded_size + 1);
	shard->index = malloc(shard->index_count * 16 + 1);
	range->dst = lade_host_span(o->encoded, o->encoded_size);
	if (!o->encoded || !shard->index)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for an index of %zu entries", shard->index_count);
	return LADE_OK;
}

/* The most bytes that a shard may have in the codecs around it: twice what its chunks and indexes
 * take where nothing shrinks. */
static uint64_t whole_max(const lade__zread *r, size_t level, const lade__shard *shard,
                          size_t encoded)
{
	uint64_t chunks = shard->index_count, bytes = (uint64_t)1 << 20, more, each;
	if (r->texts)
		return lade__texts_most(r, encoded);
	for (;;) {
		each = 16 + r->levels.level[level].chain->shard->index_extra;
		if (__builtin_mul_overflow(chunks, 2 * each, &more) || more > WHOLE_MAX)
			return WHOLE_MAX;
		bytes += more;
		if (++level + 1 >= r->levels.count)
			break;
		const uint64_t *size = r->levels.level[level].size;
		const uint64_t *inner = r->levels.level[level + 1].size;
		for (size_t a = 0; a < r->selected.ndim; a++)
			if (__builtin_mul_overflow(chunks, size[a] / inner[a], &chunks))
				return WHOLE_MAX;
	}
	if (__builtin_mul_overflow(chunks, 2 * (uint64_t)r->encoded_cap, &more) ||
	    more > WHOLE_MAX - bytes)
		return WHOLE_MAX;
	return bytes + more;
}

/* The memory to begin with: the size that 'src' says, or a guess; and the most that it can decode
 * to, at most what sizes[1] says before. */
static lade_status whole_sizes(lade__zread *r, const lade_zarr_step *step, const lade_item *item,
                               const lade_batch_options *options, uint64_t sizes[2],
                               lade_error *err)
{
	uint64_t cap = sizes[1];
	lade_result result;
	lade_status status =
		lade_decoded_sizes(r->engine, step->spec, item, 1, &result, options, err);
	sizes[0] = sizes[1] = result.size;
	if (status == LADE_E_UNKNOWN_SIZE) {
		uint64_t most = lade_spec_decoded_max(step->spec, item->src->size);
		sizes[1] = most < cap ? most : cap;
		sizes[0] = 4 * (uint64_t)item->src->size + 4096;
		sizes[0] = sizes[0] < sizes[1] ? sizes[0] : sizes[1];
		return LADE_OK;
	}
	if (status == LADE_OK && sizes[1] > cap)
		status = lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                   "it says that it decodes to %llu bytes, at most %llu",
		                   ULL(sizes[1]), ULL(cap));
	return status;
}

/* Runs a step backwards, into memory that it allocates: 'bytes' becomes the result, at most 'cap'
 * of them. */
static lade_status undo_step(lade__zread *r, const lade_zarr_step *step, uint64_t cap,
                             lade__mask *mask, lade_segment *bytes, lade_error *err)
{
	uint64_t sizes[2] = {0, cap};
	if (!step->spec)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "codec '%.80s': %.200s",
		                 step->name, step->why);
	lade_segment inner = *bytes;
	lade_status status = lade__step_header(step, mask, &inner, err);
	if (status != LADE_OK)
		return status;
	lade_item item = {.src = &inner, .src_count = 1};
	lade_result result = {.size = 0};
	lade_batch_options options;
	lade_batch_options_init(&options);
	options.flags = r->job.flags;
	status = whole_sizes(r, step, &item, &options, sizes, err);
	uint8_t *to = NULL;
	while (status == LADE_OK) {
		free(to);
		to = malloc((size_t)sizes[0] + 1);
		if (!to)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %llu bytes", ULL(sizes[0]));
		item.dst = lade_host_span(to, (size_t)sizes[0]);
		status = lade_decode_into(r->engine, step->spec, &item, 1, &result, &options, err);
		if (status != LADE_E_NOSPACE || sizes[0] >= sizes[1])
			break;
		sizes[0] = 4 * sizes[0] < sizes[1] ? 4 * sizes[0] : sizes[1];
		status = LADE_OK;
	}
	if (status != LADE_OK) {
		free(to);
		return status;
	}
	free((void *)(uintptr_t)bytes->data);
	*bytes = (lade_segment){.data = to, .size = result.size};
	return LADE_OK;
}

/* Runs the steps [first, count) of a chain backwards.  No result has more than 'cap' bytes. */
static lade_status undo(lade__zread *r, const lade_zarr_chain *chain, size_t first, uint64_t cap,
                        lade_segment *bytes, lade_error *err)
{
	lade_status status = LADE_OK;
	lade__mask mask = {0};
	for (size_t i = chain->step_count; status == LADE_OK && i-- > first;)
		if (lade__mask_next(&mask))
			status = undo_step(r, &chain->steps[i], cap, &mask, bytes, err);
	return status;
}

/* All of a shard, without the codecs around it; 'bytes' becomes a copy of its index. */
static lade_status unwrap(lade__zread *r, size_t level, opening *o, lade_error *err)
{
	const lade_zarr_chain *chain = r->levels.level[level].chain;
	lade__shard *shard = o->shard;
	size_t size = shard->index_count * 16 + chain->shard->index_extra;
	lade_segment all = {.data = o->encoded, .size = o->encoded_size};
	const uint64_t most = whole_max(r, level, shard, o->encoded_size);
	lade_status status = undo(r, chain, chain->array_step_count, most, &all, err);
	shard->own = (uint8_t *)(uintptr_t)all.data;
	o->encoded = NULL;
	if (status != LADE_OK)
		return status;
	shard->bytes = shard->own;
	shard->base = 0;
	shard->size = all.size;
	o->encoded = malloc(size + 1);
	o->encoded_size = size;
	if (!o->encoded)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for an index of %zu bytes", size);
	if (all.size < size)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "the shard has %zu bytes, its index %zu", all.size, size);
	memcpy(o->encoded, shard->own + (chain->shard->index_first ? 0 : all.size - size), size);
	return LADE_OK;
}

/* From the bytes that were read to the index. */
static lade_status take_index(lade__zread *r, size_t level, opening *o, lade_error *err)
{
	const lade__level *outer = &r->levels.level[level];
	const lade_zarr_shard *kind = outer->chain->shard;
	lade__shard *shard = o->shard;
	size_t size = shard->index_count * 16, grid[LADE_DIMS_MAX];
	lade_status status = o->whole ? unwrap(r, level, o, err) : LADE_OK;
	lade_segment bytes = {.data = o->encoded, .size = o->encoded_size};
	if (status != LADE_OK)
		return status;
	if (bytes.size != size + kind->index_extra)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "the shard has %zu bytes, its index %zu", bytes.size,
		                 size + kind->index_extra);
	status = undo(r, &kind->index, 0, 2 * (uint64_t)size + 4096, &bytes, err);
	o->encoded = (uint8_t *)(uintptr_t)bytes.data;
	if (status == LADE_OK && bytes.size != size)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "the index decodes to %zu bytes, want %zu", bytes.size, size);
	if (status != LADE_OK)
		return status;
	for (size_t a = 0; a < r->selected.ndim; a++)
		grid[outer->stored[a]] = (size_t)(shard->cut[a].size / outer[1].size[a]);
	lade__index_load(&kind->index, r->selected.ndim, grid, o->encoded, shard->index);
	return LADE_OK;
}

/* What became of the range of an index; 'error' is the range's. */
static lade_status index_answer(lade__zread *r, size_t level, opening *o, const lade_range *range,
                                lade_error *error)
{
	lade__shard *shard = o->shard;
	lade_status status = range->status;
	if (status == LADE_E_NOT_FOUND && level == 0 &&
	    !(r->options.flags & LADE_ZARR_NEED_CHUNKS)) {
		shard->missing = true;
		return LADE_OK;
	}
	if (status == LADE_E_CHANGED || (status == LADE_E_NOT_FOUND && level > 0)) {
		atomic_store(&shard->top->changed, true);
		return LADE_OK;
	}
	if (status == LADE_E_RANGE && level == 0)
		return lade_fail(error, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "the shard is smaller than its index of %zu bytes",
		                 o->encoded_size);
	if (status != LADE_OK)
		return status;
	if (level == 0)
		shard->size = range->object_size;
	o->encoded_size = range->size;
	r->report.index_count++;
	return take_index(r, level, o, error);
}

/* A shard whose bytes are in memory: no range is read. */
static lade_status from_memory(lade__zread *r, size_t level, opening *o, const lade_range *range,
                               lade_error *err)
{
	memcpy(o->encoded, o->shard->bytes + (size_t)range->off, o->encoded_size);
	r->report.index_count++;
	return take_index(r, level, o, err);
}

lade_status lade__shards_open(lade__zread *r, size_t level, lade__shard *shards, size_t count,
                              lade_error *err)
{
	opening *o = calloc(count, sizeof *o);
	lade_range *ranges = calloc(count, sizeof *ranges);
	lade_error *errors = calloc(count, sizeof *errors);
	size_t asked = 0;
	lade_status status = LADE_OK;
	if (!o || !ranges || !errors)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu shards",
		              count));
	for (size_t i = 0; i < count; i++) {
		lade__shard *shard = &shards[i];
		lade_error *why = &errors[asked];
		if (shard->missing)
			continue;
		o[asked] = (opening){.shard = shard};
		lade_status one = ask_index(r, level, &o[asked], &ranges[asked], why);
		if (one == LADE_OK && !shard->bytes) {
			asked++;
			continue;
		}
		if (one == LADE_OK)
			one = from_memory(r, level, &o[asked], &ranges[asked], why);
		free(o[asked].encoded);
		o[asked].encoded = NULL;
		if (one == LADE_E_NOT_FOUND && !(r->options.flags & LADE_ZARR_NEED_CHUNKS))
			shard->missing = true;
		else if (one != LADE_OK)
			fail(r, shard, one, why);
	}
	if (asked)
		lade__zread_ranges(r, ranges, asked, r->options.threads, errors, NULL);
	for (size_t i = 0; i < asked; i++) {
		lade_status one = index_answer(r, level, &o[i], &ranges[i], &errors[i]);
		if (one != LADE_OK)
			fail(r, o[i].shard, one, &errors[i]);
	}
out:
	for (size_t i = 0; o && i < count; i++)
		free(o[i].encoded);
	free(o);
	free(ranges);
	free(errors);
	return status;
}

void lade__shards_close(lade__shard *shards, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(shards[i].index);
		free(shards[i].own);
		shards[i].index = NULL;
		shards[i].own = NULL;
	}
}

/* ---- entries ------------------------------------------------------------------------------ */

lade_status lade__shard_entry(const lade__zread *r, const lade__shard *shard, size_t level,
                              const lade__cut *cut, lade__entry_of *out, lade_error *err)
{
	const lade__level *above = &r->levels.level[level - 1], *inner = &r->levels.level[level];
	size_t axis_at[LADE_DIMS_MAX], at = 0, ndim = r->selected.ndim;
	for (size_t a = 0; a < ndim; a++)
		axis_at[above->stored[a]] = a;
	for (size_t j = 0; j < ndim; j++) {
		size_t a = axis_at[j];
		at = at * (size_t)(shard->cut[a].size / inner->size[a]) + (size_t)cut[a].chunk;
	}
	uint64_t off = shard->index[2 * at], size = shard->index[2 * at + 1];
	out->off = shard->base + off;
	out->size = size;
	out->missing = off == UINT64_MAX && size == UINT64_MAX;
	if (out->missing)
		return LADE_OK;
	if (off > shard->size || size > shard->size - off)
		return lade_fail(err, LADE_E_CORRUPT, at * 16,
		                 "entry %zu of the index: %llu bytes at %llu of %llu", at,
		                 ULL(size), ULL(off), ULL(shard->size));
	return LADE_OK;
}

lade_status lade__shard_find(const lade__zread *r, lade__leaf *leaf, lade_error *err)
{
	lade__entry_of entry;
	const lade__shard *shard = leaf->shard;
	uint64_t most = r->encoded_most;
	leaf->missing = shard->missing;
	if (shard->missing)
		return LADE_OK;
	lade_status status =
		lade__shard_entry(r, shard, r->levels.count - 1, leaf->cut, &entry, err);
	if (status != LADE_OK)
		return status;
	leaf->missing = entry.missing;
	leaf->off = entry.off;
	leaf->size = entry.size;
	if (entry.missing && r->options.flags & LADE_ZARR_NEED_CHUNKS)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                 "the shard does not have it");
	if (!entry.missing && entry.size > most)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%llu encoded bytes for %zu decoded ones, at most %llu",
		                 ULL(entry.size), r->chunk_max, ULL(most));
	if (!entry.missing && shard->bytes) {
		leaf->data = shard->bytes + entry.off;
		leaf->data_size = (size_t)entry.size;
	}
	return LADE_OK;
}
