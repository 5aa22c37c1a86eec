/*
 * plan_info.c: what a read is going to do: its chunks are counted, axis by axis.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "zarr/plan.h"

#include <inttypes.h>
#include <stdio.h>

/* Chunks of one level along an axis. */
typedef struct tally {
	uint64_t touched, whole;
	uint64_t elements; /* that the touched ones store */
} tally;

/* Of a grid of equal chunks, or of those in shards, which go on evenly from shard to shard. */
static tally count_even(const lade__pick *pick, uint64_t chunk)
{
	tally t = {0};
	if (pick->count == 0)
		return t;
	uint64_t first = pick->first, last = pick->first + (pick->count - 1) * pick->step;
	t.touched = pick->step <= chunk ? last / chunk - first / chunk + 1 : pick->count;
	t.elements = t.touched * chunk;
	if (pick->step == 1) {
		uint64_t from = first / chunk + (first % chunk != 0), to = (last + 1) / chunk;
		t.whole = to > from ? to - from : 0;
	} else if (chunk == 1) {
		t.whole = pick->count;
	}
	return t;
}

/* Of chunks that differ, or for a list: one after the other. */
static tally count_each(const lade__pick *pick, const lade_zarr_axis *axis, uint64_t chunk)
{
	tally t = {0};
	for (uint64_t i = 0; i < pick->count; t.touched++) {
		lade_zarr_extent e = {.size = chunk};
		uint64_t at = lade__pick_at(pick, i), from = i, index;
		if (chunk) {
			e.start = at / chunk * chunk;
		} else {
			lade_zarr_chunk_find(axis, at, &index, NULL);
			lade_zarr_chunk_extent(axis, index, &e, NULL);
		}
		if (pick->at)
			while (i < pick->count && pick->at[i] - e.start < e.size)
				i++;
		else
			i += (e.start + e.size - 1 - at) / pick->step + 1;
		i = i < pick->count ? i : pick->count;
		t.elements += e.size;
		t.whole += !pick->at && pick->step == 1 && i - from == e.size;
	}
	return t;
}

static tally count_axis(const lade__zread *r, size_t a, size_t level)
{
	const lade_zarr_axis *axis = &r->array->axes[a];
	const lade__pick *pick = &r->selected.pick[a];
	uint64_t chunk = level ? r->levels.level[level].size[a] : axis->chunk_size;
	/* In shards of different sizes, chunks still begin at multiples of their own size. */
	return pick->at || !chunk ? count_each(pick, axis, chunk) : count_even(pick, chunk);
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;
	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Points: the chunks are found by sorting them. */
static void count_points(lade__zread *r)
{
	lade__walk walk;
	lade__walk_begin(&walk, &r->selected, &r->levels.level[0], NULL,
	                 lade__all_points(&r->selected));
	while (lade__walk_next(&walk)) {
		r->shard_count += r->levels.count > 1;
		r->leaf_count += r->levels.count > 1 ? walk.points.count : 1;
	}
	r->leaf_bytes = times(r->leaf_count, r->chunk_max);
}

void lade__zread_count(lade__zread *r)
{
	r->leaf_count = r->shard_count = r->whole_count = r->leaf_bytes = 0;
	if (r->selected.points) {
		count_points(r);
		return;
	}
	r->leaf_count = r->whole_count = 1;
	r->leaf_bytes = r->array->type.size;
	for (size_t a = 0; a < r->selected.ndim; a++) {
		tally t = count_axis(r, a, r->levels.count - 1);
		r->leaf_count = times(r->leaf_count, t.touched);
		r->whole_count = times(r->whole_count, t.whole);
		r->leaf_bytes = times(r->leaf_bytes, t.elements);
	}
	for (size_t level = 0; level + 1 < r->levels.count; level++) {
		uint64_t shards = 1;
		for (size_t a = 0; a < r->selected.ndim; a++)
			shards = times(shards, count_axis(r, a, level).touched);
		r->shard_count += shards;
	}
}

/* Whether the whole leaves are contiguous in the target: they are all alike. */
static bool are_direct(const lade__zread *r)
{
	const lade__level *leaf = &r->levels.level[r->levels.count - 1];
	lade__cut cut[LADE_DIMS_MAX];
	lade__fit fit;
	for (size_t a = 0; a < r->selected.ndim; a++) {
		uint64_t size = r->levels.count > 1 ? leaf->size[a] : r->array->axes[a].chunk_size;
		if (size == 0 || r->selected.pick[a].count < size)
			return false;
		cut[a] = (lade__cut){.start = r->selected.pick[a].first, .size = size,
		                     .count = size};
	}
	lade__fit_make(&fit, &r->selected, leaf, cut, &(lade__goal){r->strides, 0});
	return lade__spot_direct(r, &fit);
}

/* Where a device's chunks are decoded, in words. */
static void say_where(const lade__zread *r, char *text, size_t cap)
{
	lade_error err;
	const lade_workload work = {.direction = LADE_DECODE, .count = (size_t)r->leaf_count,
	                            .largest = r->chunk_max, .total = r->leaf_bytes};
	lade_status status = LADE_OK;
	if (r->options.where != LADE_WHERE_HOST)
		status = lade_device_takes(r->engine, r->coding.spec[0], &work,
		                           lade__zread_device(r), &err);
	if (r->options.where == LADE_WHERE_HOST)
		snprintf(text, cap, "the host decodes, as asked for; ");
	else if (status == LADE_OK)
		snprintf(text, cap, "the device has kernels to decode them; ");
	else
		snprintf(text, cap, "the host decodes: %.100s; ", err.message);
}

lade_status lade_zarr_plan_get_info(const lade_zarr_plan *r, lade_zarr_plan_info *out,
                                    lade_error *err)
{
	lade_zarr_plan_info info;
	if (!r)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "plan is NULL");
	lade_status status = lade__options_read(&info, sizeof info, out, "info", err);
	if (status != LADE_OK)
		return status;
	size_t size = out->struct_size;
	unsigned threads = lade__zread_threads(r);
	uint64_t scratch = 0;
	for (size_t i = 1; i < r->coding.count; i++)
		scratch += r->coding.bound[i];
	info = (lade_zarr_plan_info){.struct_size = size,
	                             .chunk_count = r->leaf_count,
	                             .shard_count = r->shard_count,
	                             .range_count = r->leaf_count + r->shard_count,
	                             .result_size = r->selected.result.size,
	                             .decoded_size = r->leaf_bytes,
	                             .local = r->local,
	                             .in_parts = r->raw};
	if (r->whole_count && !r->target.place && are_direct(r))
		info.direct_count = r->whole_count;
	info.device_size = r->device ? r->leaf_bytes : 0;
	info.host_memory = threads * (r->encoded_cap + r->chunk_max + scratch);
	const uint64_t on_the_way = r->fed ? lade__fed_memory(r) : r->options.memory;
	if (!r->local)
		info.host_memory += on_the_way;
	info.pinned_memory = r->device ? on_the_way : 0;
	char where[160] = "";
	if (r->device)
		say_where(r, where, sizeof where);
	snprintf(info.text, sizeof info.text,
	         "%" PRIu64 " chunks in %" PRIu64 " shards, %" PRIu64 " straight to their place; %"
	         PRIu64 " bytes of result, %" PRIu64 " decoded; %s%s; %sat most %" PRIu64
	         " bytes of memory beside the result",
	         info.chunk_count, info.shard_count, info.direct_count, info.result_size,
	         info.decoded_size,
	         r->local ? "each thread reads a chunk and decodes it at once"
	         : r->fed ? "one batch decodes chunks as threads read them"
	                  : "waves of chunks are read while those before are decoded",
	         r->raw ? "; of chunks, which have no codecs, only the bytes that are wanted" : "",
	         where, info.host_memory);
	lade__struct_copy(out, size, &info, sizeof info);
	return LADE_OK;
}
