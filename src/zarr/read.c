/*
 * read.c: runs a read: threads take leaves in turn, read their bytes and decode them.
 *
 *	local stores   a thread reads a chunk and decodes what is in its cache then
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/try.h"
#include "store/store.h"
#include "zarr/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ---------------------------------------------------------------------------- */

/* "(3, 0)" */
static void coordinates(const lade__zread *r, const lade__leaf *leaf, char *text, size_t cap)
{
	size_t n = (size_t)snprintf(text, cap, "(");
	for (size_t a = 0; a < r->selected.ndim && n < cap; a++)
		n += (size_t)snprintf(text + n, cap - n, "%s%" PRIu64, a ? ", " : "",
		                      leaf->chunk[a]);
	if (n < cap)
		snprintf(text + n, cap - n, ")");
}

void lade__zread_fail(lade__zread *r, const lade__leaf *leaf, lade_status status,
                      const lade_error *err)
{
	char at[160];
	coordinates(r, leaf, at, sizeof at);
	pthread_mutex_lock(&r->mutex);
	if (r->status == LADE_OK || (r->status == LADE_E_CANCELLED && status != r->status)) {
		r->status = status;
		lade_fail(&r->error, status, err->offset, "key '%.120s', chunk %s: %s", leaf->key,
		          at, err->message);
	}
	pthread_mutex_unlock(&r->mutex);
}

/* ---- the feed ---------------------------------------------------------------------------- */

typedef struct feed {
	lade__zread *r;
	pthread_mutex_t mutex; /* guards what follows */
	lade__walk walk;
	bool ended;
} feed;

/* The next leaf; false: there is none, or the call fails. */
static bool take_leaf(feed *f, lade__leaf *leaf)
{
	lade__zread *r = f->r;
	pthread_mutex_lock(&r->mutex);
	bool failed = r->status != LADE_OK;
	pthread_mutex_unlock(&r->mutex);
	pthread_mutex_lock(&f->mutex);
	f->ended = f->ended || failed || !lade__walk_next(&f->walk);
	bool have = !f->ended;
	if (have)
		memcpy(leaf->cut, f->walk.cut, r->selected.ndim * sizeof leaf->cut[0]);
	pthread_mutex_unlock(&f->mutex);
	if (!have)
		return false;
	for (size_t a = 0; a < r->selected.ndim; a++)
		leaf->chunk[a] = leaf->cut[a].chunk;
	leaf->missing = leaf->ranged = false;
	leaf->want = NULL;
	leaf->key[0] = 0;
	leaf->status = lade_zarr_chunk_key(r->node, leaf->chunk, leaf->key, &leaf->error);
	return true;
}

/* ---- bytes --------------------------------------------------------------------------------- */

static void add_report(lade__zread *r, const lade_store_report *report)
{
	pthread_mutex_lock(&r->mutex);
	r->report.request_count += report->request_count;
	r->report.retry_count += report->retry_count;
	r->report.wanted_size += report->wanted_size;
	r->report.moved_size += report->moved_size;
	pthread_mutex_unlock(&r->mutex);
}

static lade_status read_range(lade__zread *r, lade_range *range, lade_error *err)
{
	lade_store_report report = {.struct_size = sizeof report};
	lade_io_options options = {.struct_size = sizeof options, .request_size = sizeof *range,
	                           .threads = 1, .cancel = r->options.cancel};
	lade_status status =
		lade_store_read(r->node->chunk_store, range, 1, &options, &report, err);
	add_report(r, &report);
	return status;
}

static uint8_t *buffer_of(lade_worker *worker, size_t size, lade_error *err)
{
	uint8_t *buffer = lade__worker_block(worker, LADE__SCRATCH_GROUP, size);
	if (!buffer)
		lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		          "no memory for %zu bytes of an encoded chunk", size);
	return buffer;
}

/* Reads an object that has more bytes than were expected. */
static lade_status read_large(lade__zread *r, lade__leaf *leaf, lade_worker *worker,
                              lade_range *range, lade_error *err)
{
	uint64_t size, most = (uint64_t)r->encoded_cap * 2 + ((uint64_t)1 << 20);
	lade_status status = lade_store_look(r->node->chunk_store, leaf->key, &size, NULL, err);
	if (status != LADE_OK)
		return status;
	if (size > most)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%" PRIu64 " encoded bytes for %zu decoded ones, at most %" PRIu64,
		                 size, r->chunk_max, most);
	uint8_t *buffer = buffer_of(worker, (size_t)size, err);
	if (!buffer)
		return LADE_E_NOMEM;
	range->dst = lade_host_span(buffer, (size_t)size);
	return read_range(r, range, err);
}

static lade_status read_leaf(lade__zread *r, lade__leaf *leaf, lade_worker *worker, lade_error *err)
{
	uint8_t *buffer = buffer_of(worker, r->encoded_cap, err);
	if (!buffer)
		return LADE_E_NOMEM;
	lade_range range = {.key = leaf->key, .kind = LADE_RANGE_REST,
	                    .dst = lade_host_span(buffer, r->encoded_cap)};
	lade_status status = read_range(r, &range, err);
	if (status == LADE_E_NOSPACE)
		status = read_large(r, leaf, worker, &range, err);
	if (status == LADE_E_NOT_FOUND && !(r->options.flags & LADE_ZARR_NEED_CHUNKS)) {
		leaf->missing = true;
		return LADE_OK;
	}
	leaf->data = range.dst.data;
	leaf->data_size = range.size;
	return status;
}

/* ---- threads ------------------------------------------------------------------------------ */

static void work(void *ctx, size_t index, lade_worker *worker)
{
	feed *f = ctx;
	lade__leaf leaf;
	(void)index;
	while (take_leaf(f, &leaf)) {
		lade_error err = leaf.error;
		lade_status status = leaf.status;
		if (status == LADE_OK && lade__stopped(&f->r->stop))
			status = lade__stop_fail(&err);
		if (status == LADE_OK)
			status = read_leaf(f->r, &leaf, worker, &err);
		if (status == LADE_OK)
			status = lade__leaf_decode(f->r, &leaf, worker, &err);
		if (status != LADE_OK)
			lade__zread_fail(f->r, &leaf, status, &err);
	}
}

lade_status lade__zread_run(lade__zread *r, lade_error *err)
{
	feed f = {.r = r};
	uint64_t began_ns = lade__now_ns();
	r->status = LADE_OK;
	r->stop = lade__stop_of(r->options.cancel);
	r->report = (lade_zarr_report){.struct_size = sizeof r->report};
	if (r->levels.count > 1 || r->selected.points)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "shards and points are not read yet");
	pthread_mutex_init(&f.mutex, NULL);
	lade__walk_begin(&f.walk, &r->selected, &r->levels.level[0], NULL);
	unsigned threads = r->options.threads ? r->options.threads : r->engine->threads;
	lade__calls calls = {work, &f, .count = threads, .grain = 1, .threads = threads};
	lade_status status = lade__engine_parallel(r->engine, &calls, err);
	pthread_mutex_destroy(&f.mutex);
	r->report.ns = lade__now_ns() - began_ns;
	if (status == LADE_OK && r->status != LADE_OK)
		status = lade_fail(err, r->status, r->error.offset, "%s", r->error.message);
	return status;
}

lade_status lade_zarr_read(const lade_zarr *array, const lade_zarr_selection *selection,
                           const lade_zarr_target *target, const lade_zarr_read_options *options,
                           lade_zarr_report *report, lade_error *err)
{
	lade_zarr_report check;
	lade__zread *r = malloc(sizeof *r);
	lade_status status = LADE_OK;
	if (!r)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a read");
	if (report)
		status = lade__options_read(&check, sizeof check, report, "report", err);
	if (status == LADE_OK)
		status = lade__zread_init(r, array, selection, target, options, err);
	if (status != LADE_OK) {
		free(r);
		return status;
	}
	status = lade__zread_run(r, err);
	if (report) {
		size_t size = report->struct_size;
		r->report.struct_size = size;
		lade__struct_copy(report, size, &r->report, sizeof r->report);
	}
	lade__zread_reset(r);
	free(r);
	return status;
}
