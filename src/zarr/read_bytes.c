/*
 * read_bytes.c: reads the encoded bytes of leaves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

lade_status lade__zread_ranges(lade__zread *r, lade_range *ranges, size_t count, unsigned threads,
                               lade_error *errors, lade_error *err)
{
	lade_store_report report = {.struct_size = sizeof report};
	lade_io_options options = {.struct_size = sizeof options, .request_size = sizeof *ranges,
	                           .threads = threads, .cancel = &r->quiet, .errors = errors,
	                           .pinned = &r->pinned};
	lade_status status =
		lade_store_read(r->node->chunk_store, ranges, count, &options, &report, err);
	pthread_mutex_lock(&r->mutex);
	r->report.request_count += report.request_count;
	r->report.retry_count += report.retry_count;
	r->report.wanted_size += report.wanted_size;
	r->report.moved_size += report.moved_size;
	pthread_mutex_unlock(&r->mutex);
	return status;
}

size_t lade__leaf_room(const lade__zread *r, const lade__leaf *leaf)
{
	if (leaf->status != LADE_OK || leaf->missing || leaf->data || leaf->runs.straight)
		return 0;
	if (leaf->runs.count)
		return leaf->runs.count * leaf->runs.size;
	return leaf->shard || leaf->looked ? (size_t)leaf->size : r->encoded_cap;
}

static lade_status too_large(const lade__zread *r, uint64_t size, lade_error *err)
{
	return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
	                 "%" PRIu64 " encoded bytes for %zu decoded ones, at most %" PRIu64, size,
	                 r->chunk_max, r->encoded_most);
}

/* What the status of a range says of a leaf that is an object: it may be missing. */
static void take_status(const lade__zread *r, lade__leaf *leaf, lade_status status,
                        const lade_error *error)
{
	leaf->status = status;
	if (status != LADE_OK)
		leaf->error = *error;
	if (status == LADE_E_NOT_FOUND && !(r->options.flags & LADE_ZARR_NEED_CHUNKS)) {
		leaf->missing = true;
		leaf->status = LADE_OK;
	}
}

/* Memory that is worth a question to the store. */
#define LOOK_LEAST ((size_t)16 << 20)

void lade__leaf_look(lade__zread *r, lade__leaf *leaf)
{
	lade_range range = {.key = leaf->key};
	lade_error error;
	if (leaf->shard || lade__leaf_room(r, leaf) < LOOK_LEAST)
		return;
	lade__zread_ranges(r, &range, 1, 1, &error, NULL);
	take_status(r, leaf, range.status, &error);
	if (leaf->status != LADE_OK || leaf->missing || range.object_size == LADE_SIZE_UNKNOWN)
		return;
	leaf->size = range.object_size;
	leaf->looked = true;
	if (leaf->size > r->encoded_most)
		leaf->status = too_large(r, leaf->size, &leaf->error);
}

/* Reads an object that has more bytes than were expected, to memory that leaf->large keeps. */
static lade_status read_large(lade__zread *r, lade__leaf *leaf, lade_error *err)
{
	uint64_t size;
	lade_status status = lade_store_look(r->node->chunk_store, leaf->key, &size, NULL, err);
	if (status != LADE_OK)
		return status;
	if (size > r->encoded_most)
		return too_large(r, size, err);
	leaf->large = lade__host_alloc(lade__engine_host(r->engine), (size_t)size);
	leaf->large_size = (size_t)size;
	if (!leaf->large)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %" PRIu64 " bytes of an encoded chunk", size);
	lade_range range = {.key = leaf->key, .kind = LADE_RANGE_REST,
	                    .dst = lade_host_span(leaf->large, (size_t)size)};
	status = lade__zread_ranges(r, &range, 1, 1, NULL, err);
	leaf->data = leaf->large;
	leaf->runs = (lade__runs){.count = 0};
	leaf->staged = false;
	leaf->data_size = range.size;
	return status;
}

void lade__leaf_reset(lade__zread *r, lade__leaf *leaf)
{
	lade__host_free(lade__engine_host(r->engine), leaf->large, leaf->large_size);
	leaf->large = NULL;
}

/* What became of ranges of a chunk: its object must have the size of all of it. */
static void take_part(lade__zread *r, lade__leaf *leaf, const lade_range *range)
{
	size_t whole = lade__cut_bytes(r, leaf->cut);
	if (leaf->status == LADE_E_RANGE)
		leaf->status = LADE_E_CORRUPT;
	else if (leaf->status == LADE_OK && range->object_size != LADE_SIZE_UNKNOWN &&
	         range->object_size != whole)
		leaf->status = lade_fail(&leaf->error, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                         "it has %" PRIu64 " bytes without codecs, want %zu",
		                         range->object_size, whole);
}

/* What became of a leaf's ranges: the first one that failed counts. */
static void take_answer(lade__zread *r, lade__leaf *leaf, const lade_range *ranges, size_t count,
                        const lade_error *errors)
{
	size_t bad = 0;
	leaf->data = ranges[0].dst.data;
	leaf->data_size = 0;
	leaf->staged = true;
	for (size_t i = 0; i < count; i++)
		leaf->data_size += ranges[i].size;
	while (bad + 1 < count && ranges[bad].status == LADE_OK)
		bad++;
	if (leaf->shard) {
		leaf->status = ranges[bad].status;
		if (leaf->status != LADE_OK)
			leaf->error = errors[bad];
		if (leaf->status == LADE_E_NOT_FOUND)
			leaf->status = LADE_E_CHANGED;
		return;
	}
	take_status(r, leaf, ranges[bad].status, &errors[bad]);
	if (leaf->status == LADE_E_NOSPACE)
		leaf->status = read_large(r, leaf, &leaf->error);
	else if (leaf->runs.count && !leaf->runs.whole && !leaf->missing)
		take_part(r, leaf, &ranges[bad]);
}

/* Ranges that a leaf is read by. */
static size_t range_count(const lade__leaf *leaf)
{
	if (leaf->status != LADE_OK || leaf->missing || leaf->data)
		return 0;
	return leaf->runs.count ? leaf->runs.count : 1;
}

/* At most this many ranges without a table. */
#define FEW 16

void lade__leaves_read(lade__zread *r, lade__leaf *leaves, size_t count, uint8_t *buffer,
                       unsigned threads)
{
	lade_range few[FEW], *ranges = few;
	lade_error few_errors[FEW], *errors = few_errors, err;
	size_t total = 0, k = 0;
	for (size_t i = 0; i < count; i++)
		total += range_count(&leaves[i]);
	if (total > FEW) {
		ranges = malloc(total * (sizeof *ranges + sizeof *errors));
		errors = (lade_error *)(void *)(ranges + total);
	}
	for (size_t i = 0; i < count && !ranges; i++)
		if (range_count(&leaves[i]))
			leaves[i].status =
				lade_fail(&leaves[i].error, LADE_E_NOMEM, LADE_NO_OFFSET,
			                  "no memory to read %zu ranges", total);
	for (size_t i = 0; i < count && ranges; i++) {
		lade__leaf *leaf = &leaves[i];
		bool rest = !leaf->shard && (!leaf->runs.count || leaf->runs.whole);
		const lade_object_version *want = leaf->shard ? &leaf->shard->top->version : NULL;
		size_t room = lade__leaf_room(r, leaf), n = range_count(leaf);
		lade_range range = {.key = leaf->key,
		                    .off = leaf->shard ? leaf->off : 0,
		                    .kind = rest ? LADE_RANGE_REST : LADE_RANGE_AT,
		                    .dst = lade_host_span(buffer, room),
		                    .want = want && want->size ? want : NULL};
		if (n && leaf->runs.count)
			lade__leaf_ranges(leaf, buffer, range, &ranges[k]);
		else if (n)
			ranges[k] = range;
		k += n;
		if (room) /* no buffer, if nothing needs one */
			buffer += room;
	}
	if (k)
		lade__zread_ranges(r, ranges, k, threads, errors, &err);
	k = 0;
	for (size_t i = 0, n; i < count && ranges; i++, k += n) {
		n = range_count(&leaves[i]);
		if (n)
			take_answer(r, &leaves[i], &ranges[k], n, &errors[k]);
	}
	if (ranges != few)
		free(ranges);
}
