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
	                           .pinned = r->options.allocators[LADE_PINNED]};
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
	if (leaf->status != LADE_OK || leaf->missing || leaf->data || leaf->straight)
		return 0;
	return leaf->shard ? (size_t)leaf->size : r->encoded_cap;
}

/* Reads an object that has more bytes than were expected, to memory that leaf->large keeps. */
static lade_status read_large(lade__zread *r, lade__leaf *leaf, lade_error *err)
{
	uint64_t size, most = r->encoded_most;
	lade_status status = lade_store_look(r->node->chunk_store, leaf->key, &size, NULL, err);
	if (status != LADE_OK)
		return status;
	if (size > most)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%" PRIu64 " encoded bytes for %zu decoded ones, at most %" PRIu64,
		                 size, r->chunk_max, most);
	leaf->large = lade__host_alloc(lade__engine_host(r->engine), (size_t)size);
	leaf->large_size = (size_t)size;
	if (!leaf->large)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %" PRIu64 " bytes of an encoded chunk", size);
	lade_range range = {.key = leaf->key, .kind = LADE_RANGE_REST,
	                    .dst = lade_host_span(leaf->large, (size_t)size)};
	status = lade__zread_ranges(r, &range, 1, 1, NULL, err);
	leaf->data = leaf->large;
	leaf->straight = false;
	leaf->staged = false;
	leaf->data_size = range.size;
	return status;
}

void lade__leaf_reset(lade__zread *r, lade__leaf *leaf)
{
	lade__host_free(lade__engine_host(r->engine), leaf->large, leaf->large_size);
	leaf->large = NULL;
}

/* What became of a leaf's range. */
static void take_answer(lade__zread *r, lade__leaf *leaf, const lade_range *range,
                        const lade_error *error)
{
	leaf->status = range->status;
	leaf->data = range->dst.data;
	leaf->data_size = range->size;
	leaf->staged = true;
	if (leaf->status != LADE_OK)
		leaf->error = *error;
	if (leaf->shard) {
		if (leaf->status == LADE_E_NOT_FOUND || leaf->status == LADE_E_CHANGED)
			leaf->status = LADE_E_CHANGED;
		return;
	}
	if (leaf->status == LADE_E_NOSPACE)
		leaf->status = read_large(r, leaf, &leaf->error);
	if (leaf->status == LADE_E_NOT_FOUND && !(r->options.flags & LADE_ZARR_NEED_CHUNKS)) {
		leaf->missing = true;
		leaf->status = LADE_OK;
	}
}

/* At most this many ranges without a table. */
#define FEW 16

void lade__leaves_read(lade__zread *r, lade__leaf *leaves, size_t count, uint8_t *buffer,
                       unsigned threads)
{
	lade_range few[FEW], *ranges = few;
	lade_error few_errors[FEW], *errors = few_errors, err;
	size_t asked = 0;
	if (count > FEW) {
		ranges = malloc(count * (sizeof *ranges + sizeof *errors));
		errors = (lade_error *)(void *)(ranges + count);
	}
	for (size_t i = 0; i < count; i++) {
		lade__leaf *leaf = &leaves[i];
		size_t room = lade__leaf_room(r, leaf);
		if (leaf->status != LADE_OK || leaf->missing || leaf->data)
			continue;
		if (!ranges) {
			leaf->status = lade_fail(&leaf->error, LADE_E_NOMEM, LADE_NO_OFFSET,
			                         "no memory to read %zu ranges", count);
			continue;
		}
		lade_span to = lade_host_span(buffer, room);
		if (leaf->straight)
			to = lade_host_span((uint8_t *)leaf->spot->span.data +
			                            leaf->spot->fit.layout.offset,
			                    leaf->spot->size);
		const lade_object_version *want = leaf->shard ? &leaf->shard->top->version : NULL;
		ranges[asked++] = (lade_range){.key = leaf->key,
		                               .off = leaf->shard ? leaf->off : 0,
		                               .kind = leaf->shard ? LADE_RANGE_AT
		                                                   : LADE_RANGE_REST,
		                               .dst = to,
		                               .want = want && want->size ? want : NULL};
		if (room) /* no buffer, if nothing needs one */
			buffer += room;
	}
	if (asked)
		lade__zread_ranges(r, ranges, asked, threads, errors, &err);
	for (size_t i = 0, k = 0; i < count && asked; i++) {
		lade__leaf *leaf = &leaves[i];
		if (leaf->status == LADE_OK && !leaf->missing && !leaf->data) {
			take_answer(r, leaf, &ranges[k], &errors[k]);
			k++;
		}
	}
	if (ranges != few)
		free(ranges);
}
