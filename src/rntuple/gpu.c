/*
 * gpu.c: offsets that add up on devices: those of all columns of a read there at once.
 *
 *     block:  | column[] | run[] |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"
#include "rntuple/args.h"
#include "rntuple/read.h"

#include <stdlib.h>

static const lade__kernel bases_kernel = {"offsets", "lade_ends_bases", 0};
static const lade__kernel check_kernel = {"offsets", "lade_ends_check", 0};
static const lade__kernel add_kernel = {"offsets", "lade_ends_add", 0};

/* More slabs or columns than that are taken in turns. */
#define BLOCKS_MAX 65536u

/* The tables of a device's columns.  There are fewer columns and runs than bytes of metadata, which
 * are below 2^32. */
typedef struct tables {
	uint8_t *data;
	size_t size;
	lade_ends_column *column;
	lade_ends_run *run;
	rnt_goal **goal; /* of each column */
	size_t column_count, run_count, slab_count;
} tables;

/* The runs of a column's ends: the parts of clusters.  Returns their number; 'run' may be NULL. */
static size_t runs_of(const rnt_read *r, const rnt_goal *g, lade_ends_run *run)
{
	const rnt_column *m = &r->tuple->column_more[g->target.column];
	uint64_t first = g->target.first, end = first + g->target.count, i = first;
	size_t count = 0;
	for (size_t k = 0; i < end; k++) {
		const rnt_extent *x = &m->extents[k];
		if (x->first + x->count <= i)
			continue;
		if (run)
			run[count] = (lade_ends_run){
				.first = i - first,
				.most = (int64_t)lade__rnt_ends_most(r->tuple, m, k)};
		count++;
		i = x->first + x->count;
	}
	return count;
}

bool lade__rnt_ends_kernels(int32_t number)
{
	lade__device *device;
	void *function;
	if (lade__device_use(number, &device, NULL) != LADE_OK)
		return false;
	bool there = lade__kernel_get(device, &add_kernel, &function, NULL) == LADE_OK;
	lade__device_leave(device);
	return there;
}

size_t lade__rnt_ends_memory(const rnt_read *r)
{
	size_t size = 0;
	for (size_t i = 0; i < r->goal_count; i++)
		if (r->goal[i].there)
			size += sizeof(lade_ends_column) +
			        runs_of(r, &r->goal[i], NULL) * sizeof(lade_ends_run);
	return size;
}

static bool is_on(const rnt_goal *g, int32_t device)
{
	return g->there && g->target.count && g->to.place.device == device;
}

static void add_column(const rnt_read *r, rnt_goal *g, tables *t)
{
	uint64_t count = g->target.count;
	size_t runs = runs_of(r, g, t->run + t->run_count);
	t->goal[t->column_count] = g;
	t->column[t->column_count++] = (lade_ends_column){.end = lade__address_of(g->to.data),
	                                                  .count = count,
	                                                  .slab = t->slab_count,
	                                                  .fault = LADE_ENDS_NO_FAULT,
	                                                  .run = (uint32_t)t->run_count,
	                                                  .run_count = (uint32_t)runs};
	t->run_count += runs;
	t->slab_count += (size_t)(count / LADE_ENDS_SLAB + (count % LADE_ENDS_SLAB != 0));
}

static lade_status make_tables(const rnt_read *r, int32_t device, tables *t, lade_error *err)
{
	size_t columns = 0, runs = 0;
	for (size_t i = 0; i < r->goal_count; i++)
		if (is_on(&r->goal[i], device)) {
			columns++;
			runs += runs_of(r, &r->goal[i], NULL);
		}
	t->size = columns * sizeof *t->column + runs * sizeof *t->run;
	t->data = malloc(t->size + 1);
	t->goal = malloc((columns + 1) * sizeof *t->goal);
	if (!t->data || !t->goal)
		return lade__rnt_nomem(err);
	t->column = (lade_ends_column *)(void *)t->data;
	t->run = (lade_ends_run *)(void *)(t->data + columns * sizeof *t->column);
	for (size_t i = 0; i < r->goal_count; i++)
		if (is_on(&r->goal[i], device))
			add_column(r, &r->goal[i], t);
	return LADE_OK;
}

/* Enqueues the kernels, and the copy of what they found. */
static lade_status enqueue(lade__device *device, lade_stream stream, tables *t, lade__address block,
                           lade_error *err)
{
	lade_ends ends = {.column = block,
	                  .run = block + t->column_count * sizeof *t->column,
	                  .slab_count = t->slab_count,
	                  .column_count = (uint32_t)t->column_count};
	void *arguments[] = {&ends};
	lade__launch l = {.threads = LADE_ENDS_BASE_THREADS, .stream = stream};
	lade_status status;
	l.blocks = t->column_count < BLOCKS_MAX ? (unsigned)t->column_count : BLOCKS_MAX;
	TRY(LADE__CU(device, cuMemcpyHtoDAsync, block, t->data, t->size, stream));
	TRY(lade__kernel_launch(device, &bases_kernel, &l, arguments, err));
	l.threads = LADE_ENDS_THREADS;
	l.blocks = t->slab_count < BLOCKS_MAX ? (unsigned)t->slab_count : BLOCKS_MAX;
	TRY(lade__kernel_launch(device, &check_kernel, &l, arguments, err));
	TRY(lade__kernel_launch(device, &add_kernel, &l, arguments, err));
	TRY(LADE__CU(device, cuMemcpyDtoHAsync, t->data, block,
	             t->column_count * sizeof *t->column, stream));
out:
	return status;
}

/* The first column's fault, if there is one: its ends are as they were. */
static lade_status look(const rnt_read *r, const tables *t, lade_error *err)
{
	for (size_t k = 0; k < t->column_count; k++) {
		const lade_ends_column *c = &t->column[k];
		const rnt_goal *g = t->goal[k];
		uint64_t i = c->fault / 2;
		int64_t end[2];
		if (c->fault == LADE_ENDS_NO_FAULT)
			continue;
		lade_status status =
			lade__gpu_fetch(g->to.place.device, (const uint8_t *)g->to.data + 8 * i,
		                        sizeof end, end, err);
		if (status != LADE_OK)
			return status;
		for (size_t j = 1; j < c->run_count; j++)
			end[0] = t->run[c->run + j].first == i ? 0 : end[0];
		i += g->target.first;
		return c->fault % 2 ? lade__rnt_ends_beyond(r, g, i, end[1], err)
		                    : lade__rnt_ends_fault(r, g, i, end[1], end[0], err);
	}
	return LADE_OK;
}

static lade_status add_up_on(const rnt_read *r, int32_t number, lade_error *err)
{
	tables t = {.data = NULL};
	lade__device *device;
	lade__gpu_streams *streams = NULL;
	lade__address block = 0;
	lade_status status = lade__device_use(number, &device, err);
	if (status != LADE_OK)
		return status;
	TRY(make_tables(r, number, &t, err));
	if (t.column_count == 0)
		goto out;
	TRY(lade__gpu_streams_take(r->engine, device, &streams, err));
	TRY(lade__gpu_alloc(r->engine, device, streams->in, t.size, &block, err));
	status = enqueue(device, streams->in, &t, block, err);
	if (status == LADE_OK)
		status = LADE__CU(device, cuStreamSynchronize, streams->in);
	else
		lade__gpu_streams_wait(device, streams);
	if (status == LADE_OK)
		status = look(r, &t, err);
out:
	lade__gpu_free(r->engine, device, streams ? streams->in : NULL, block, t.size);
	if (streams)
		lade__gpu_streams_give(r->engine, streams);
	lade__device_leave(device);
	free(t.data);
	free(t.goal);
	return status;
}

lade_status lade__rnt_ends_add_up(const rnt_read *r, lade_error *err)
{
	lade_status status = LADE_OK;
	for (size_t i = 0; i < r->goal_count && status == LADE_OK; i++) {
		bool done = !r->goal[i].there;
		for (size_t k = 0; k < i && !done; k++)
			done = r->goal[k].there &&
			       r->goal[k].to.place.device == r->goal[i].to.place.device;
		if (!done)
			status = add_up_on(r, r->goal[i].to.place.device, err);
	}
	return status;
}
