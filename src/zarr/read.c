/*
 * read.c: runs a read: threads take leaves in turn, read their bytes and decode them.
 *
 *	local stores   a thread reads a chunk and decodes what is in its cache then
 *	to a device    one batch decodes what threads have read (read_fed.c)
 *	others         read_waves.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/try.h"
#include "store/store.h"
#include "zarr/plan.h"

#include <lade/array.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ---------------------------------------------------------------------------- */

/* "(3, 0)", or "(3, 0), inner chunk (1, 2)" */
static void coordinates(const lade__zread *r, const lade__leaf *leaf, char *text, size_t cap)
{
	size_t n = 0;
	for (int inner = 0; inner < (leaf->shard ? 2 : 1) && n < cap; inner++) {
		n += (size_t)snprintf(text + n, cap - n, inner ? ", inner chunk (" : "(");
		for (size_t a = 0; a < r->selected.ndim && n < cap; a++)
			n += (size_t)snprintf(text + n, cap - n, "%s%" PRIu64, a ? ", " : "",
			                      inner ? leaf->cut[a].chunk : leaf->chunk[a]);
		if (n < cap)
			n += (size_t)snprintf(text + n, cap - n, ")");
	}
}

void lade__zread_fail(lade__zread *r, const lade__leaf *leaf, lade_status status,
                      const lade_error *err)
{
	char at[160];
	coordinates(r, leaf, at, sizeof at);
	pthread_mutex_lock(&r->mutex);
	if (r->status == LADE_OK || (r->status == LADE_E_CANCELLED && status != r->status)) {
		r->status = status;
		atomic_store(&r->failed, true);
		lade_fail(&r->error, status, err->offset, "key '%.120s', chunk %s: %s", leaf->key,
		          at, err->message);
	}
	pthread_mutex_unlock(&r->mutex);
}

bool lade__zread_failed(lade__zread *r)
{
	return atomic_load(&r->failed);
}

/* ---- threads ------------------------------------------------------------------------------ */

/* Encoded bytes that a thread reads at once, and how many leaves: enough that the calls of the
 * system do not count, and few enough that they stay in the cache. */
#define GROUP_BYTES ((size_t)256 << 10)
#define GROUP_LEAVES 8

void lade__leaf_failed(lade__zread *r, lade__leaf *leaf)
{
	if (leaf->status == LADE_E_CHANGED && leaf->shard)
		atomic_store(&leaf->shard->top->changed, true);
	else
		lade__zread_fail(r, leaf, leaf->status, &leaf->error);
}

void lade__leaf_finish(lade__zread *r, lade__leaf *leaf, lade_worker *worker)
{
	if (leaf->status == LADE_OK && lade__stopped(&r->stop))
		leaf->status = lade__stop_fail(&leaf->error);
	if (leaf->status == LADE_OK)
		leaf->status = lade__leaf_decode(r, leaf, worker, &leaf->error);
	if (leaf->status != LADE_OK)
		lade__leaf_failed(r, leaf);
	lade__leaf_reset(r, leaf);
}

/* Reads and decodes leaves until there are no more. */
static void work(void *ctx, size_t index, lade_worker *worker)
{
	lade__feed *f = ctx;
	lade__leaf leaves[GROUP_LEAVES];
	lade__spot spots[GROUP_LEAVES];
	bool more = true;
	(void)index;
	while (more) {
		size_t count = 0, room = 0, runs = 0;
		while (count < f->r->group_leaves && room < GROUP_BYTES &&
		       runs < LADE__RUNS_MOST && more) {
			more = lade__feed_take(f, &leaves[count], 1);
			if (more && f->r->raw)
				lade__leaf_runs(f->r, &leaves[count], &spots[count]);
			if (more)
				lade__leaf_look(f->r, &leaves[count]);
			room += more ? lade__leaf_room(f->r, &leaves[count]) : 0;
			runs += more ? leaves[count].runs.count : 0;
			count += more;
		}
		uint8_t *buffer =
			room ? lade__worker_block(worker, LADE__SCRATCH_GROUP, room) : NULL;
		for (size_t i = 0; i < count && room && !buffer; i++)
			leaves[i].status = lade_fail(&leaves[i].error, LADE_E_NOMEM, LADE_NO_OFFSET,
			                             "no memory for %zu encoded bytes", room);
		lade__leaves_read(f->r, leaves, count, buffer, 1);
		for (size_t i = 0; i < count; i++)
			lade__leaf_finish(f->r, &leaves[i], worker);
	}
}

/* Does the leaves of some shards; NULL: of the grid. */
static lade_status run_leaves(lade__zread *r, lade__shard *shards, size_t count, lade_error *err)
{
	lade__feed f = {.r = r, .level = &r->levels.level[r->levels.count - 1], .shards = shards,
	                .shard_count = count};
	pthread_mutex_init(&f.mutex, NULL);
	unsigned threads = lade__zread_threads(r);
	if (r->leaf_count < threads)
		threads = (unsigned)r->leaf_count; /* no one is woken for nothing */
	lade__calls calls = {work, &f, .count = threads, .grain = 1, .threads = threads};
	lade_status status = r->local ? lade__engine_parallel(r->engine, &calls, err)
	                     : r->fed ? lade__leaves_fed(r, &f, err)
	                              : lade__leaves_in_waves(r, &f, err);
	pthread_mutex_destroy(&f.mutex);
	return status;
}

/* ---- shards ------------------------------------------------------------------------------- */

/* Shards that are open at once, and the bytes of their indexes. */
#define WINDOW_SHARDS 256
#define WINDOW_INDEX ((uint64_t)16 << 20)

static lade_status run_level(lade__zread *r, size_t level, lade__shard *parents, size_t count,
                             lade_error *err);

/* Does what is in some shards of a level; at level 0, those that change meanwhile once more. */
static lade_status run_shards(lade__zread *r, size_t level, lade__shard *shards, size_t count,
                              lade_error *err)
{
	lade_status status = lade__shards_open(r, level, shards, count, err);
	if (status == LADE_OK)
		status = run_level(r, level + 1, shards, count, err);
	lade__shards_close(shards, count);
	for (size_t i = 0; i < count && level == 0 && status == LADE_OK; i++) {
		lade__shard *shard = &shards[i];
		if (!atomic_load(&shard->changed))
			continue;
		atomic_store(&shard->changed, false);
		shard->version.size = 0;
		shard->base = shard->size = 0;
		shard->bytes = NULL;
		shard->missing = false;
		status = lade__shards_open(r, level, shard, 1, err);
		if (status == LADE_OK)
			status = run_level(r, level + 1, shard, 1, err);
		lade__shards_close(shard, 1);
		if (status == LADE_OK && atomic_load(&shard->changed))
			status = lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
			                   "key '%.200s': the shard changed twice while it was "
			                   "read", shard->key);
	}
	return status;
}

/* The shard of a walk.  False: its parent does not have it, or it failed. */
static bool take_shard(lade__zread *r, size_t level, const lade__walk *walk, lade__shard *parent,
                       lade__shard *shard)
{
	lade__entry_of entry = {.missing = false};
	lade__leaf leaf;
	lade_status status;
	memset(shard, 0, sizeof *shard);
	memcpy(shard->cut, walk->cut, r->selected.ndim * sizeof shard->cut[0]);
	shard->points = walk->points;
	shard->top = parent ? parent->top : shard;
	for (size_t a = 0; a < r->selected.ndim; a++)
		shard->chunk[a] = parent ? parent->chunk[a] : walk->cut[a].chunk;
	if (!parent) {
		status = lade_zarr_chunk_key(r->node, shard->chunk, shard->key, &leaf.error);
	} else {
		memcpy(shard->key, parent->key, sizeof shard->key);
		shard->missing = parent->missing;
		status = parent->missing ? LADE_OK
		                         : lade__shard_entry(r, parent, level, walk->cut, &entry,
		                                             &leaf.error);
		shard->missing = parent->missing || entry.missing;
		shard->base = entry.off;
		shard->size = entry.size;
		shard->bytes = parent->bytes;
	}
	if (status == LADE_OK)
		return true;
	leaf.key = shard->key;
	leaf.shard = NULL;
	memcpy(leaf.chunk, shard->chunk, sizeof leaf.chunk);
	lade__zread_fail(r, &leaf, status, &leaf.error);
	return false;
}

/* Goes through the shards of a level, some at a time. */
static lade_status run_level(lade__zread *r, size_t level, lade__shard *parents, size_t count,
                             lade_error *err)
{
	lade_status status = LADE_OK;
	lade__walk *walk;
	size_t n = 0;
	if (level + 1 == r->levels.count)
		return run_leaves(r, parents, count, err);
	lade__shard *shards = malloc(WINDOW_SHARDS * sizeof *shards + sizeof *walk);
	if (!shards)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %d shards",
		                 WINDOW_SHARDS);
	walk = (lade__walk *)(void *)(shards + WINDOW_SHARDS);
	uint64_t each = 16;
	for (size_t a = 0; a < r->selected.ndim; a++) {
		uint64_t outer = r->levels.level[level].size[a];
		outer = level ? outer : r->array->axes[a].chunk_size;
		if (__builtin_mul_overflow(each, outer / r->levels.level[level + 1].size[a], &each))
			each = UINT64_MAX;
	}
	size_t most = (size_t)(WINDOW_INDEX / (each ? each : 1));
	most = most < 1 ? 1 : most > WINDOW_SHARDS ? WINDOW_SHARDS : most;
	for (size_t p = 0; p < (parents ? count : 1) && status == LADE_OK; p++) {
		lade__shard *parent = parents ? &parents[p] : NULL;
		if (parent && (parent->failed || atomic_load(&parent->top->changed)))
			continue;
		lade__walk_begin(walk, &r->selected, &r->levels.level[level],
		                 parent ? parent->cut : NULL,
		                 parent ? parent->points : lade__all_points(&r->selected));
		while (status == LADE_OK && !lade__zread_failed(r) && lade__walk_next(walk)) {
			n += take_shard(r, level, walk, parent, &shards[n]);
			if (n == most) {
				status = run_shards(r, level, shards, n, err);
				n = 0;
			}
		}
	}
	if (n && status == LADE_OK)
		status = run_shards(r, level, shards, n, err);
	free(shards);
	return status;
}

/* What is behind the checks of a run. */
static lade_status run(lade__zread *r, lade_error *err)
{
	r->status = LADE_OK;
	atomic_store(&r->failed, false);
	lade__cancel_quiet(&r->quiet, r->options.cancel);
	r->stop = lade__stop_of(r->apart ? &r->quiet : r->options.cancel);
	if (r->texts)
		lade__texts_clear(r);
	r->report = (lade_zarr_report){.struct_size = sizeof r->report};
	lade_status status = LADE_OK;
	/* Few leaves are shared out evenly: four turns for each thread. */
	uint64_t turns = r->leaf_count / 4 / lade__zread_threads(r);
	r->group_leaves = turns < 1 ? 1 : turns > GROUP_LEAVES ? GROUP_LEAVES : (size_t)turns;
	if (r->selected.result.count)
		status = run_level(r, 0, NULL, 0, err);
	if (status == LADE_OK && r->status != LADE_OK)
		status = lade_fail(err, r->status, r->error.offset, "%s", r->error.message);
	if (r->texts && status == LADE_OK)
		lade__texts_done(r);
	return status;
}

/* Lists and points on a device: a result in pinned memory, which is copied as a whole. */
static lade_status run_listed(lade__zread *r, lade_error *err)
{
	const lade_zarr_shape *result = &r->selected.result;
	const lade_allocator *from = &r->pinned;
	const lade_zarr_target target = r->target;
	const lade_place place = {LADE_PINNED, lade__zread_device(r)};
	ptrdiff_t strides[LADE_DIMS_MAX], stride = (ptrdiff_t)result->elem_size;
	size_t shape[LADE_DIMS_MAX], size = (size_t)result->size;
	if (size == 0)
		return LADE_OK;
	uint8_t *memory = from->alloc(from->ctx, size, 64, place, NULL);
	if (!memory)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no pinned memory for %zu bytes of lists or points", size);
	memcpy(strides, r->strides, sizeof strides);
	for (size_t i = result->ndim; i-- > 0; stride *= (ptrdiff_t)result->shape[i]) {
		r->strides[i] = stride;
		shape[i] = (size_t)result->shape[i];
	}
	r->target.span = (lade_span){memory, size, place};
	r->target.offset = 0;
	r->local = (r->node->chunk_store->ops.flags & LADE_STORE_LOCAL) != 0;
	r->device = false;
	lade_status status = run(r, err);
	r->local = false;
	r->device = true;
	r->target = target;
	memcpy(r->strides, strides, sizeof strides);
	lade_layout layout = {.struct_size = sizeof layout, .elem_size = result->elem_size,
	                      .ndim = result->ndim, .shape = shape, .strides = strides,
	                      .offset = target.offset};
	lade_segment src = {.data = memory, .size = size, .place = place};
	lade_item item = {.spec = r->copy, .src = &src, .src_count = 1, .dst = target.span,
	                  .layout = &layout};
	lade_batch_options options;
	lade_batch_options_init(&options);
	options.stream = r->options.stream;
	if (status == LADE_OK)
		status = lade_decode_into(r->engine, NULL, &item, 1, NULL, &options, err);
	from->free(from->ctx, memory, size, 64, place, NULL);
	return status;
}

lade_status lade__zread_run(lade__zread *r, lade_error *err)
{
	uint64_t began_ns = lade__now_ns();
	lade_status status = r->device && r->selected.listed ? run_listed(r, err) : run(r, err);
	r->report.ns = lade__now_ns() - began_ns;
	return status;
}

/* ---- calls -------------------------------------------------------------------------------- */

lade_status lade_zarr_plan_new(const lade_zarr *array, const lade_zarr_selection *selection,
                               const lade_zarr_target *target,
                               const lade_zarr_read_options *options, lade_zarr_plan **out,
                               lade_error *err)
{
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	lade__zread *r = malloc(sizeof *r);
	if (!r)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a read");
	lade_status status = lade__zread_init(r, array, selection, target, options, err);
	if (status == LADE_OK)
		*out = r;
	else
		free(r);
	return status;
}

void lade_zarr_plan_free(lade_zarr_plan *plan)
{
	if (plan)
		lade__zread_reset(plan);
	free(plan);
}

lade_status lade_zarr_plan_run(lade_zarr_plan *plan, lade_zarr_report *report, lade_error *err)
{
	lade_zarr_report check;
	lade_status status = LADE_OK;
	if (!plan)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "plan is NULL");
	if (report)
		status = lade__options_read(&check, sizeof check, report, "report", err);
	if (status != LADE_OK)
		return status;
	status = lade__zread_run(plan, err);
	if (report) {
		size_t size = report->struct_size;
		check = plan->report;
		check.struct_size = size;
		lade__struct_copy(report, size, &check, sizeof check);
	}
	return status;
}

lade_status lade_zarr_read(const lade_zarr *array, const lade_zarr_selection *selection,
                           const lade_zarr_target *target, const lade_zarr_read_options *options,
                           lade_zarr_report *report, lade_error *err)
{
	lade_zarr_plan *plan;
	lade_status status = lade_zarr_plan_new(array, selection, target, options, &plan, err);
	if (status != LADE_OK)
		return status;
	status = lade_zarr_plan_run(plan, report, err);
	lade_zarr_plan_free(plan);
	return status;
}

/* ---- on a thread of its own ----------------------------------------------------------------- */

typedef struct started {
	lade_zarr_plan *plan;
	lade_zarr_done *done;
	void *ctx;
} started;

static void *run_apart(void *ctx)
{
	started own = *(started *)ctx;
	lade_error err = {.offset = LADE_NO_OFFSET};
	free(ctx);
	lade_status status = lade__zread_run(own.plan, &err);
	lade_zarr_report report = own.plan->report;
	own.plan->apart = false;
	own.done(own.ctx, status, &report, &err);
	return NULL;
}

lade_status lade_zarr_plan_start(lade_zarr_plan *plan, lade_zarr_done *done, void *ctx,
                                 lade_error *err)
{
	pthread_attr_t attributes;
	pthread_t thread;
	if (!plan || !done)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 plan ? "done" : "plan");
	started *s = malloc(sizeof *s);
	if (!s)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a thread");
	*s = (started){plan, done, ctx};
	plan->apart = true;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int rc = pthread_create(&thread, &attributes, run_apart, s);
	pthread_attr_destroy(&attributes);
	if (rc == 0)
		return LADE_OK;
	plan->apart = false;
	free(s);
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no thread for a read: %s",
	                 strerror(rc));
}

/* ---- memory of the library's ---------------------------------------------------------------- */

static lade_status new_array(const lade_zarr_read_options *o, size_t size, lade_place place,
                             lade_array **out, lade_error *err)
{
	const lade_array_options options = {.struct_size = sizeof options,
	                                    .allocator = o->allocators[place.kind],
	                                    .stream = place.kind == LADE_DEVICE ? o->stream : NULL};
	return lade_array_new(size, place, &options, out, err);
}

lade_status lade_zarr_read_new(const lade_zarr *array, const lade_zarr_selection *selection,
                               lade_place place, const lade_zarr_read_options *given,
                               lade_array **out, lade_error *err)
{
	lade_zarr_read_options o;
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	lade_zarr_target target = {.struct_size = sizeof target};
	const bool device = place.kind == LADE_DEVICE;
	const lade_place pinned = {LADE_PINNED, place.device};
	lade_status status;
	if (!out || (unsigned)place.kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL, or kind %d unknown",
		                 (int)place.kind);
	*out = NULL;
	TRY(lade__options_read(&o, sizeof o, given, "zarr read options", err));
	TRY(lade_zarr_selection_shape(array, selection, &shape, err));
	if (device && o.device_budget && shape.size > o.device_budget)
		place = pinned;
	status = new_array(&o, (size_t)shape.size, place, out, err);
	if (status == LADE_E_NOMEM && place.kind == LADE_DEVICE)
		status = new_array(&o, (size_t)shape.size, pinned, out, err);
	if (status != LADE_OK)
		return status;
	target.span = lade_array_span(*out);
	status = lade_zarr_read(array, selection, &target, given, NULL, err);
	if (status != LADE_OK) {
		lade_array_unref(*out);
		*out = NULL;
	}
out:
	return status;
}
