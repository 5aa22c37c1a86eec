/*
 * async.c: batches that are enqueued on a stream: the calls of lade/async.h.
 *
 * A call of items is one wave (gpu_wave.c).  When items have units that must be added up, unit
 * tables stand behind the wave's block:
 *
 *     block:  | the wave's | first[] u32 | wanted[] u64 |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/try.h"
#include "array/given.h"
#include "batch/gpu/gpu.h"
#include "engine/spec.h"
#include "checksum/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMBINE_THREADS 256u

/* Tables of up to so many bytes the driver takes from pageable memory at once, which is cheaper
 * than pinned memory; under capture, and where copies would read that memory later, they go in
 * kernels' arguments. */
#define PUT_MAX ((size_t)3 * 8 * LADE_PUT_WORDS)

typedef struct async {
	lade_engine *engine;
	lade_async_options options;
	lade__device *device; /* entered */
	lade_stream stream;
	lade__route route;
	bool capturing;
	int mode;            /* of captures, the thread's own */
	lade__address block; /* the workspace: the caller's or the engine's */
	size_t block_size;
} async;

/* ---- what both forms share ------------------------------------------------------------------ */

/* Reads the options of a call, which is not open yet. */
static lade_status async_read(async *a, lade_engine *engine, const lade_async_options *given,
                              lade_error *err)
{
	lade_async_options *o = &a->options;
	a->engine = engine;
	a->device = NULL;
	a->block = 0;
	a->block_size = 0;
	if (!engine)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "engine is NULL");
	if (!given)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "options is NULL: they name the device and its stream");
	lade_status status = lade__options_read(o, sizeof *o, given, "async options", err);
	if (status != LADE_OK)
		return status;
	if (o->flags > (LADE_ASYNC_HOST_TABLES | LADE_ASYNC_DEVICE_SIZES) ||
	    o->flags == LADE_ASYNC_DEVICE_SIZES)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "async options: flags 0x%x are not possible", o->flags);
	if ((uintptr_t)o->workspace % LADE__GPU_ALIGN)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the workspace is not aligned to %u bytes", LADE__GPU_ALIGN);
	if ((uintptr_t)o->sizes % 8 || (uintptr_t)o->statuses % 4)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "sizes must be aligned to 8 bytes and statuses to 4");
	return LADE_OK;
}

static void async_leave(async *a)
{
	a->device->driver->cuThreadExchangeStreamCaptureMode(&a->mode);
	lade__device_leave(a->device);
	a->device = NULL;
}

/* Opens the call: its device is entered until async_end(). */
static lade_status async_open(async *a, lade_error *err)
{
	void *context = NULL;
	int capturing = 0;
	lade_status status;
	a->mode = LADE__CAPTURE_RELAXED;
	TRY(lade__device_use(a->options.device, &a->device, err));
	a->stream = a->options.stream;
	/* Memory and events of the engine's have nothing to do with what others capture. */
	status = LADE__CU(a->device, cuThreadExchangeStreamCaptureMode, &a->mode);
	if (status != LADE_OK) {
		lade__device_leave(a->device);
		a->device = NULL;
		return status;
	}
	if (a->stream)
		TRY(LADE__CU(a->device, cuStreamGetCtx, a->stream, &context));
	if (context && context != a->device->context) {
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "the stream is not one of device %d's primary context",
		                   (int)a->options.device);
		goto out;
	}
	TRY(LADE__CU(a->device, cuStreamIsCapturing, a->stream, &capturing));
	a->capturing = capturing != 0;
out:
	if (status != LADE_OK && a->device)
		async_leave(a);
	return status;
}

/* Likewise, with the route of a spec. */
static lade_status async_begin(async *a, const lade_spec *spec, lade_direction direction,
                               lade_workload *workload, lade_error *err)
{
	if (!spec)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "spec is NULL");
	workload->src = workload->dst = (lade_place){LADE_DEVICE, a->options.device};
	a->route = lade__route_of(spec, direction, LADE_DEVICE);
	lade_status status = lade__route_make(a->engine, workload, &a->route, NULL, err);
	return status == LADE_OK ? async_open(a, err) : status;
}

/* Sees to it that the block has 'size' bytes. */
static lade_status async_block(async *a, size_t size, lade_error *err)
{
	if (size == 0)
		return LADE_OK;
	if (a->options.workspace) {
		a->block = lade__address_of(a->options.workspace);
		a->block_size = a->options.workspace_size;
		if (a->block_size >= size)
			return LADE_OK;
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "the workspace has %zu bytes, %zu are needed "
		                 "(lade_workspace_size() tells)",
		                 a->block_size, size);
	}
	if (a->capturing)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "the stream is being captured: give a workspace of %zu bytes",
		                 size);
	a->block_size = size;
	return lade__gpu_alloc(a->engine, a->device, a->stream, size, &a->block, err);
}

static void async_end(async *a)
{
	if (!a->device)
		return;
	if (!a->options.workspace)
		lade__gpu_free(a->engine, a->device, a->stream, a->block, a->block_size);
	async_leave(a);
}

/* ---- device arrays --------------------------------------------------------------------------- */

/* Reads what the caller has of arrays: the tables 'src' and 'src_size', and where 'all', the others
 * too, must be there and aligned. */
static lade_status read_arrays(const lade_arrays *given, bool all, lade_arrays *arrays,
                               lade_error *err)
{
	lade_status status = lade__arrays_read(given, arrays, err);
	if (status != LADE_OK)
		return status;
	if (!all) {
		arrays->dst = NULL;
		arrays->dst_cap = NULL;
	}
	if (arrays->count && (!arrays->src || !arrays->src_size ||
	                      (all && (!arrays->dst || !arrays->dst_cap))))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "a table of arrays is NULL");
	if (((uintptr_t)arrays->src | (uintptr_t)arrays->src_size | (uintptr_t)arrays->dst |
	     (uintptr_t)arrays->dst_cap) %
	    8)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "a table of arrays is not aligned to 8 bytes");
	if (arrays->count > INT32_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%zu items, a batch on a device has 2147483647 at most",
		                 arrays->count);
	return LADE_OK;
}

/* The bytes that the host's tables take in the workspace. */
static size_t host_tables_size(const async *a, size_t count, size_t tables)
{
	return a->options.flags & LADE_ASYNC_HOST_TABLES ? lade__gpu_round(8 * tables * count) : 0;
}

/* Copies bytes of pinned memory, or few others, which need not stay. */
static lade_status send_bytes(const async *a, lade__address to, const void *from, size_t size,
                              bool pinned, lade_error *err)
{
	if (!pinned && (a->capturing || a->device->reads_pageable))
		return lade__gpu_put(a->device, a->stream, to, from, size, err);
	return LADE__CU(a->device, cuMemcpyHtoDAsync, to, from, size, a->stream);
}

/* Memory for tables on their way: pinned; pageable where they are few bytes, or captured. */
typedef struct staging {
	lade__gpu_sheet *sheet; /* NULL: pageable */
	uint8_t *tables;
} staging;

static lade_status staging_take(const async *a, size_t size, staging *s, lade_error *err)
{
	*s = (staging){NULL, NULL};
	if (size > PUT_MAX && !a->capturing) {
		lade_status status =
			lade__gpu_sheet_take(a->engine, a->device, size, &s->sheet, err);
		s->tables = status == LADE_OK ? s->sheet->pinned.data : NULL;
		return status;
	}
	s->tables = malloc(size);
	return s->tables ? LADE_OK
	                 : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                             "no memory for %zu bytes of tables", size);
}

/* Gives it back behind what has been enqueued, of which 'status' is what became. */
static lade_status staging_give(const async *a, const staging *s, lade_status status,
                                lade_error *err)
{
	if (!s->sheet) {
		free(s->tables);
		return status;
	}
	lade_status given = lade__gpu_sheet_give(a->engine, a->device, a->stream, s->sheet,
	                                         status == LADE_OK ? err : NULL);
	return status == LADE_OK ? given : status;
}

/* Brings the host's tables to 'at' on the device, and points 't' there. */
static lade_status bring_tables(async *a, const lade_arrays *arrays, lade__address at,
                                lade__gpu_tables *t, lade_error *err)
{
	const void *from[] = {arrays->src, arrays->src_size, arrays->dst, arrays->dst_cap};
	lade__address *to[] = {&t->src, &t->src_size, &t->dst, &t->dst_cap};
	size_t each = 8 * arrays->count, size = 0;
	staging s;
	if (a->options.flags & LADE_ASYNC_DEVICE_SIZES)
		from[1] = NULL;
	for (int i = 0; i < 4; i++)
		size += from[i] ? each : 0;
	lade_status status = staging_take(a, size, &s, err);
	if (status != LADE_OK)
		return status;
	for (size_t i = 0, off = 0; i < 4; i++) {
		if (!from[i])
			continue;
		memcpy(s.tables + off, from[i], each);
		*to[i] = at + off;
		off += each;
	}
	status = send_bytes(a, at, s.tables, size, s.sheet != NULL, err);
	return staging_give(a, &s, status, err);
}

/* ---- arrays with a layout -------------------------------------------------------------------- */

/*
 * Chunks are decoded to slots of the workspace, or encoded from there; kernels copy boxes between
 * the slots and the arrays.
 *
 *     block:  | the host's tables | grid axes | boxes | box axes | slots' tables | wrong |
 *             | made sizes, statuses | slots | the stages' |
 */
typedef struct grid {
	lade_grid g;
	lade_grid_axis axis[LADE_DIMS_MAX];
	size_t axes, list, box_axes, slot, slot_size, wrong, size, status, slots, end;
} grid;

/* Places its parts from 'at' of the block on. */
static lade_status grid_lay_out(grid *x, size_t count, size_t at, lade_error *err)
{
	size_t stride = lade__gpu_round((size_t)x->g.chunk), n = count;
	if (x->g.chunk > LADE__GPU_LARGEST)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a chunk of %llu bytes, kernels take %llu",
		                 (unsigned long long)x->g.chunk,
		                 (unsigned long long)LADE__GPU_LARGEST);
	x->g.count = (uint32_t)n;
	x->g.stride = stride;
	x->g.pieces = (uint32_t)((x->g.chunk + (LADE_BOX_PIECE - 1)) / LADE_BOX_PIECE);
	if (n * (uint64_t)x->g.pieces > UINT32_MAX / 2)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%zu chunks of %llu bytes are too many at once", n,
		                 (unsigned long long)x->g.chunk);
	x->axes = at;
	x->list = x->axes + lade__gpu_round(sizeof x->axis);
	x->box_axes = x->list + lade__gpu_round(n * sizeof(lade_box));
	x->slot = x->box_axes + lade__gpu_round(n * x->g.ndim * sizeof(lade_box_axis));
	x->slot_size = x->slot + lade__gpu_round(8 * n);
	x->wrong = x->slot_size + lade__gpu_round(8 * n);
	x->size = x->wrong + lade__gpu_round(4 * n);
	x->status = x->size + lade__gpu_round(8 * n);
	x->slots = x->status + lade__gpu_round(4 * n);
	x->end = x->slots + n * stride;
	return LADE_OK;
}

/* Enqueues a batch with a layout; 'tables' are the arrays' own. */
static lade_status enqueue_grid(async *a, const lade_arrays *arrays, grid *x,
                                lade__gpu_tables tables, lade_error *err)
{
	bool encode = x->g.encode != 0;
	lade__address base = a->block, span = encode ? tables.src : tables.dst;
	lade_boxes boxes = {.list = base + x->list, .count = x->g.count,
	                    .pieces = x->g.count * x->g.pieces};
	lade_grid_results results = {.list = base + x->list,
	                             .wrong = base + x->wrong,
	                             .made_size = base + x->size,
	                             .made_status = base + x->status,
	                             .size = tables.dst_size,
	                             .status = tables.status,
	                             .chunk = x->g.chunk,
	                             .count = x->g.count,
	                             .encode = x->g.encode};
	lade_status status = LADE_OK;
	x->g.axes = base + x->axes;
	x->g.boxes = lade__address_of(arrays->boxes);
	x->g.span = span;
	x->g.span_size = encode ? tables.src_size : tables.dst_cap;
	x->g.slot = base + x->slot;
	x->g.slot_size = base + x->slot_size;
	x->g.list = base + x->list;
	x->g.box_axes = base + x->box_axes;
	x->g.wrong = base + x->wrong;
	x->g.slots = base + x->slots;
	*(encode ? &tables.src : &tables.dst) = x->g.slot;
	*(encode ? &tables.src_size : &tables.dst_cap) = x->g.slot_size;
	tables.dst_size = base + x->size;
	tables.status = base + x->status;
	if (x->g.ndim)
		TRY(lade__gpu_put(a->device, a->stream, x->g.axes, x->axis,
		                  x->g.ndim * sizeof *x->axis, err));
	TRY(lade__grid_list(a->device, a->stream, x->g, err));
	if (encode)
		TRY(lade__boxes_copy(a->device, a->stream, boxes, err));
	TRY(lade__gpu_pipe_enqueue(a->engine, &a->route, a->device, a->stream, &tables, err));
	boxes.sizes = tables.dst_size;
	boxes.statuses = tables.status;
	if (!encode)
		TRY(lade__boxes_copy(a->device, a->stream, boxes, err));
	TRY(lade__grid_finish(a->device, a->stream, results, err));
out:
	return status;
}

/* Reads the layout of a batch and says what its chunks are. */
static lade_status read_grid(lade_arrays *arrays, lade_direction direction, grid *x,
                             lade_error *err)
{
	if (!arrays->layout && !arrays->boxes)
		return LADE_OK;
	if (!arrays->layout || (uintptr_t)arrays->boxes % 8)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "boxes without a layout, or not aligned to 8 bytes");
	lade_status status = lade__grid_make(arrays->layout, direction, arrays->boxes != NULL,
	                                     &x->g, x->axis, err);
	if (status != LADE_OK)
		return status;
	arrays->largest = x->g.chunk ? x->g.chunk : 1;
	arrays->total = 0;
	return LADE_OK;
}

static lade_status run_arrays(lade_engine *engine, const lade_spec *spec, lade_direction direction,
                              const lade_arrays *given, const lade_async_options *options,
                              lade_error *err)
{
	async a;
	lade_arrays arrays;
	lade_status status = async_read(&a, engine, options, err);
	if (status == LADE_OK)
		status = read_arrays(given, true, &arrays, err);
	grid x;
	if (status == LADE_OK)
		status = read_grid(&arrays, direction, &x, err);
	if (status != LADE_OK)
		return status;
	lade_workload workload = {.count = arrays.count,
	                          .total = arrays.total,
	                          .largest = lade__gpu_largest(arrays.largest),
	                          .threads = 1};
	TRY(async_begin(&a, spec, direction, &workload, err));
	if (arrays.count == 0)
		goto out;
	lade__gpu_tables tables = {.src = lade__address_of(arrays.src),
	                           .src_size = lade__address_of(arrays.src_size),
	                           .dst = lade__address_of(arrays.dst),
	                           .dst_cap = lade__address_of(arrays.dst_cap),
	                           .dst_size = lade__address_of(a.options.sizes),
	                           .status = lade__address_of(a.options.statuses),
	                           .count = arrays.count,
	                           .largest = arrays.largest,
	                           .total = arrays.total};
	size_t want = lade__gpu_pipe_workspace(engine, &a.route, tables.count, tables.largest,
	                                       tables.total);
	size_t extra = host_tables_size(&a, arrays.count, 4), tables_end = extra;
	if (arrays.layout) {
		TRY(grid_lay_out(&x, arrays.count, extra, err));
		extra = x.end;
	}
	if (want < SIZE_MAX / 2 - extra) { /* else the pipe says what is wrong */
		TRY(async_block(&a, extra + want, err));
		if (tables_end)
			TRY(bring_tables(&a, &arrays, a.block, &tables, err));
	}
	tables.workspace = a.block + extra;
	tables.workspace_size = want;
	if (a.block && arrays.layout)
		TRY(enqueue_grid(&a, &arrays, &x, tables, err));
	else
		TRY(lade__gpu_pipe_enqueue(engine, &a.route, a.device, a.stream, &tables, err));
out:
	async_end(&a);
	return status;
}

lade_status lade_decode_arrays_async(lade_engine *engine, const lade_spec *spec,
                                     const lade_arrays *arrays, const lade_async_options *options,
                                     lade_error *err)
{
	return run_arrays(engine, spec, LADE_DECODE, arrays, options, err);
}

lade_status lade_encode_arrays_async(lade_engine *engine, const lade_spec *spec,
                                     const lade_arrays *arrays, const lade_async_options *options,
                                     lade_error *err)
{
	return run_arrays(engine, spec, LADE_ENCODE, arrays, options, err);
}

/* The codec's sizes are the items' where filters keep them. */
static lade_status enqueue_sizes(async *a, const lade_arrays *arrays, lade_error *err)
{
	size_t last = a->route.spec->count - 1;
	const lade__gpu_codec *codec = lade__route_entry(a->engine, &a->route, last)->gpu;
	lade__gpu_work work = {.device = a->device,
	                       .stream = a->stream,
	                       .stage = &a->route.spec->stage[last],
	                       .src = lade__address_of(arrays->src),
	                       .src_size = lade__address_of(arrays->src_size),
	                       .dst_size = lade__address_of(a->options.sizes),
	                       .status = lade__address_of(a->options.statuses),
	                       .count = arrays->count};
	size_t extra = host_tables_size(a, arrays->count, 2);
	if (!codec->sizes || !lade__gpu_pipe_is_plain(&a->route))
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a device cannot tell the decoded sizes of %s",
		                 work.stage->algorithm->name);
	if (extra) {
		lade__gpu_tables tables = {.src_size = work.src_size};
		lade_status status = async_block(a, extra, err);
		if (status == LADE_OK)
			status = bring_tables(a, arrays, a->block, &tables, err);
		if (status != LADE_OK)
			return status;
		work.src = tables.src;
		work.src_size = tables.src_size;
	}
	return codec->sizes(&work, err);
}

lade_status lade_decoded_sizes_arrays_async(lade_engine *engine, const lade_spec *spec,
                                            const lade_arrays *given,
                                            const lade_async_options *options, lade_error *err)
{
	async a;
	lade_arrays arrays;
	lade_status status;
	TRY(async_read(&a, engine, options, err));
	TRY(read_arrays(given, false, &arrays, err));
	lade_workload workload = {.count = arrays.count, .threads = 1};
	TRY(async_begin(&a, spec, LADE_DECODE, &workload, err));
	if (arrays.count)
		status = enqueue_sizes(&a, &arrays, err);
	async_end(&a);
out:
	return status;
}

lade_status lade_checksums_arrays_async(lade_engine *engine, lade_checksum kind,
                                        const lade_arrays *given, uint64_t *sums,
                                        const lade_async_options *options, lade_error *err)
{
	async a;
	lade_arrays arrays;
	lade_status status = async_read(&a, engine, options, err);
	if (status == LADE_OK)
		status = read_arrays(given, false, &arrays, err);
	if (status != LADE_OK)
		return status;
	if (lade_checksum_size(kind) == 0)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "there is no checksum %d",
		                 (int)kind);
	if ((arrays.count && !sums) || (uintptr_t)sums % 8)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "the table of sums is NULL, or not aligned to 8 bytes");
	if (!lade__gpu_checksum_known(kind))
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "%s: no implementation can compute it on a device",
		                 lade_checksum_name(kind));
	TRY(async_open(&a, err));
	if (arrays.count == 0)
		goto out;
	size_t want = lade__gpu_checksum_workspace(kind, arrays.count, arrays.largest);
	size_t extra = host_tables_size(&a, arrays.count, 2);
	lade__gpu_tables tables = {.src = lade__address_of(arrays.src),
	                           .src_size = lade__address_of(arrays.src_size)};
	if (want > SIZE_MAX - extra) {
		status = lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                   "the sums of %zu chunks would take too large a workspace",
		                   arrays.count);
		goto out;
	}
	TRY(async_block(&a, extra + want, err));
	if (extra)
		TRY(bring_tables(&a, &arrays, a.block, &tables, err));
	lade__gpu_work work = {.device = a.device,
	                       .stream = a.stream,
	                       .src = tables.src,
	                       .src_size = tables.src_size,
	                       .dst_size = lade__address_of(a.options.sizes),
	                       .status = lade__address_of(a.options.statuses),
	                       .count = arrays.count,
	                       .largest = arrays.largest,
	                       .total = arrays.total,
	                       .workspace = a.block + extra,
	                       .workspace_size = want};
	TRY(lade__gpu_checksum_tell(&work, kind, lade__address_of(sums), err));
out:
	async_end(&a);
	return status;
}

/* ---- items ----------------------------------------------------------------------------------- */

typedef struct batch {
	const lade_item *items;
	size_t count;
	lade__gpu_list units;
	uint32_t *first; /* by item, and one more: its first unit */
	bool combine; /* results are not simply those of the units */
	lade__gpu_wave wave;
} batch;

/* Whether the device's kernels reach a place: segment 'i', or the destination, SIZE_MAX. */
static lade_status check_place(const async *a, lade_place place, size_t i, lade_error *err)
{
	char what[40] = "the destination";
	bool elsewhere = place.kind == LADE_DEVICE && place.device != a->options.device;
	if (!elsewhere && !(a->capturing && place.kind == LADE_PINNED))
		return LADE_OK;
	if (i != SIZE_MAX)
		snprintf(what, sizeof what, "segment %zu", i);
	if (elsewhere)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s lies on device %d, and the call is for device %d", what,
		                 (int)place.device, (int)a->options.device);
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                 "the stream is being captured: spans must be the device's own memory");
}

/* Whether an item can be enqueued as it is; what lade__gpu_units() then says of it holds, too. */
static lade_status check_item(const async *a, const lade_spec *spec, const lade_item *item,
                              lade_direction direction, lade_error *err)
{
	lade_status status = lade__item_check(item, direction, err);
	if (status != LADE_OK)
		return status;
	if (item->spec && item->spec != spec)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "it has a spec of its own: one call enqueues one spec");
	if (item->tail || item->range_off || item->range_size)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "ranges and tails are for calls that wait");
	for (size_t i = 0; i < item->src_count; i++) {
		status = check_place(a, item->src[i].place, i, err);
		if (status != LADE_OK)
			return status;
		if (item->src[i].place.kind == LADE_HOST && item->src[i].size)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "segment %zu is pageable memory: this call does not wait "
			                 "for copies of it",
			                 i);
	}
	for (size_t k = 0; status == LADE_OK && k < lade__output_count(item); k++) {
		lade_span dst = lade__output_at(item, k).dst;
		if (dst.place.kind == LADE_HOST && dst.size)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "the destination is pageable memory: a device cannot "
			                 "write there");
		status = check_place(a, dst.place, SIZE_MAX, err);
	}
	return status;
}

static lade_status make_units(const async *a, batch *b, lade_error *err)
{
	const lade_spec *spec = a->route.spec;
	lade_direction direction = a->route.direction;
	lade__gpu_list *units = &b->units;
	size_t most = 0;
	bool plain = false; /* the item before, which has one unit then */
	for (size_t i = 0; i < b->count; i++)
		most += b->items[i].src_count ? b->items[i].src_count : 1;
	lade_status status = lade__gpu_list_room(units, most, err);
	b->first = status == LADE_OK ? malloc((b->count + 1) * sizeof *b->first) : NULL;
	if (!b->first || most > INT32_MAX)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu units",
		                 most);
	for (size_t i = 0; i < b->count; i++) {
		const lade_item *item = &b->items[i];
		lade_error why;
		size_t first = units->count;
		lade__gpu_unit *next = units->unit + first;
		bool was_plain = plain;
		b->first[i] = (uint32_t)first;
		plain = lade__item_is_plain(item);
		if (was_plain && lade__item_is_like(item, item - 1) &&
		    lade__gpu_unit_like(item, i, direction,
		                        lade_spec_bound(spec, lade__item_source_size(item)),
		                        next - 1, next)) {
			units->count++;
			b->combine |= next->wanted != 0;
			continue;
		}
		status = check_item(a, spec, item, direction, &why);
		if (status == LADE_OK)
			status = lade__gpu_units(&a->route, a->options.device, item, i, units,
			                         &why);
		if (status != LADE_OK)
			return lade_fail(err, status, why.offset, "item %zu: %s", i, why.message);
		b->combine |= units->count != first + 1 || next->wanted || next->placed;
	}
	b->first[b->count] = (uint32_t)units->count;
	return LADE_OK;
}

static size_t first_size(size_t count)
{
	return lade__gpu_round((count + 1) * sizeof(uint32_t));
}

static size_t wanted_size(size_t unit_count)
{
	return lade__gpu_round(unit_count * sizeof(uint64_t));
}

static size_t combine_size(size_t count, size_t unit_count)
{
	return first_size(count) + wanted_size(unit_count) + wanted_size(count);
}

/* The host's side of the tables behind the wave's. */
static void fill_combine(const batch *b, uint8_t *tables)
{
	uint64_t *wanted = (uint64_t *)(tables + first_size(b->count));
	memcpy(tables, b->first, (b->count + 1) * sizeof *b->first);
	for (size_t i = 0; i < b->units.count; i++)
		wanted[i] = b->units.unit[i].wanted;
	uint64_t *give = (uint64_t *)((uint8_t *)wanted + wanted_size(b->units.count));
	for (size_t i = 0; i < b->count; i++) {
		const lade__gpu_unit *last =
			b->first[i + 1] > b->first[i] ? &b->units.unit[b->first[i + 1] - 1] : NULL;
		give[i] = last && last->placed ? last->give : UINT64_MAX;
	}
}

static lade_status send_tables(async *a, const batch *b, size_t extra, lade_error *err)
{
	size_t size = b->wave.tables_size;
	staging s;
	lade_status status = staging_take(a, size + extra, &s, err);
	if (status != LADE_OK)
		return status;
	lade__gpu_wave_fill(&b->wave, NULL, s.tables);
	if (extra) {
		memset(s.tables + size, 0, extra);
		fill_combine(b, s.tables + size);
	}
	status = send_bytes(a, a->block, s.tables, size, s.sheet != NULL, err);
	if (status == LADE_OK && extra)
		status = send_bytes(a, a->block + b->wave.size, s.tables + size, extra,
		                    s.sheet != NULL, err);
	return staging_give(a, &s, status, err);
}

static const lade__kernel combine_kernel = {"copy", "lade_combine", 0};

static lade_status enqueue_combine(const async *a, const batch *b, lade_error *err)
{
	lade__address first = a->block + b->wave.size, result = a->block + b->wave.result_off;
	lade_gpu_combine c = {.first = first,
	                       .wanted = first + first_size(b->count),
	                       .give = first + first_size(b->count) +
	                               wanted_size(b->units.count),
	                       .unit_size = result,
	                       .unit_status = result + 8 * b->units.count,
	                       .size = lade__address_of(a->options.sizes),
	                       .status = lade__address_of(a->options.statuses),
	                       .count = (uint32_t)b->count};
	lade__launch launch = {.blocks = (c.count + COMBINE_THREADS - 1) / COMBINE_THREADS,
	                       .threads = COMBINE_THREADS,
	                       .stream = a->stream};
	void *arguments[] = {&c};
	return lade__kernel_launch(a->device, &combine_kernel, &launch, arguments, err);
}

static lade_status enqueue_batch(async *a, batch *b, lade_error *err)
{
	static const lade__gpu_most no_limit = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
	const lade_async_options *o = &a->options;
	lade_direction direction = a->route.direction;
	lade__gpu_wave *w = &b->wave;
	size_t extra = b->combine ? combine_size(b->count, b->units.count) : 0;
	lade_status status;
	*w = (lade__gpu_wave){.units = b->units.unit, .count = b->units.count};
	TRY(lade__gpu_wave_plan(a->engine, &a->route, &no_limit, w, err));
	if (w->count < b->units.count) {
		status = lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "the items' sizes overflow");
		goto out;
	}
	TRY(async_block(a, w->size + extra, err));
	lade__gpu_wave_put(w, a->block);
	if (!b->combine && o->sizes)
		w->dst_size = lade__address_of(o->sizes);
	if (!b->combine && o->statuses)
		w->status = lade__address_of(o->statuses);
	TRY(send_tables(a, b, extra, err));
	TRY(lade__gpu_wave_in(a->device, a->stream, w, err));
	if (direction == LADE_ENCODE)
		TRY(lade__gpu_wave_boxes(a->device, a->stream, w, direction, err));
	TRY(lade__gpu_wave_stages(a->engine, &a->route, a->device, a->stream, w, err));
	if (direction == LADE_DECODE)
		TRY(lade__gpu_wave_boxes(a->device, a->stream, w, direction, err));
	TRY(lade__gpu_wave_out(a->device, a->stream, w, err));
	if (b->combine && (o->sizes || o->statuses))
		TRY(enqueue_combine(a, b, err));
out:
	return status;
}

static lade_status run_items(lade__call call, const lade_async_options *options, lade_error *err)
{
	lade_workload workload = {.count = call.count, .threads = 1};
	batch b = {.count = call.count};
	lade__given given = {.items = call.items, .count = call.count};
	async a;
	lade_status status = async_read(&a, call.engine, options, err);
	if (status == LADE_OK && !call.items && call.count)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "items is NULL for %zu items",
		                   call.count);
	if (status == LADE_OK && a.options.flags)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "async options: flags 0x%x are for arrays, these are items",
		                   a.options.flags);
	if (status != LADE_OK)
		return status;
	lade__sizes sizes = {.item = a.options.item_size,
	                     .segment = a.options.segment_size,
	                     .output = a.options.output_size};
	given.host = lade__engine_host(call.engine);
	TRY(lade__given_open(&given, &sizes, err));
	TRY(async_begin(&a, call.spec, call.direction, &workload, err));
	if (call.count == 0)
		goto out;
	b.items = given.items;
	TRY(make_units(&a, &b, err));
	TRY(enqueue_batch(&a, &b, err));
out:
	free(b.units.unit);
	free(b.first);
	async_end(&a);
	lade__given_close(&given);
	return status;
}

lade_status lade_decode_async(lade_engine *engine, const lade_spec *spec, const lade_item *items,
                              size_t count, const lade_async_options *options, lade_error *err)
{
	lade__call call = {engine, LADE_DECODE, spec, items, count, NULL};
	return run_items(call, options, err);
}

lade_status lade_encode_async(lade_engine *engine, const lade_spec *spec, const lade_item *items,
                              size_t count, const lade_async_options *options, lade_error *err)
{
	lade__call call = {engine, LADE_ENCODE, spec, items, count, NULL};
	return run_items(call, options, err);
}

/* ---- queries --------------------------------------------------------------------------------- */

static lade_status too_large(size_t count, uint64_t largest, lade_error *err)
{
	return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
	                 "%zu items of up to %llu bytes: the workspace is too large", count,
	                 (unsigned long long)largest);
}

/*
 * What layouts take beside the stages' own: of arrays, or of as many items with one output each,
 * whichever is more.  arrays->largest and total become those of the chunks.
 */
static lade_status layouts_workspace(lade_arrays *arrays, lade_direction direction, size_t *size,
                                     lade_error *err)
{
	grid x;
	size_t n = arrays->count;
	*size = 0;
	if (!arrays->layout)
		return LADE_OK;
	lade_status status = read_grid(arrays, direction, &x, err);
	if (status == LADE_OK)
		status = grid_lay_out(&x, n, lade__gpu_round(32 * n), err);
	if (status != LADE_OK)
		return status;
	size_t axes = (size_t)x.g.ndim * sizeof(lade_box_axis);
	size_t items = lade__gpu_round(n * (32 + sizeof(lade_box) + axes)) +
	               lade__gpu_round(12 * n) + n * (size_t)x.g.stride + combine_size(n, n);
	*size = items > x.end ? items : x.end;
	return LADE_OK;
}

lade_status lade_workspace_size(lade_engine *engine, const lade_spec *spec,
                                lade_direction direction, const lade_arrays *arrays, size_t *size,
                                lade_error *err)
{
	if (!engine || !spec || !arrays || !size || (unsigned)direction > LADE_DECODE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "engine, spec, arrays or size is NULL, or the direction is "
		                 "unknown");
	lade_arrays own;
	size_t layouts = 0;
	*size = 0;
	lade_status status = lade__arrays_read(arrays, &own, err);
	if (status != LADE_OK)
		return status;
	const size_t count = own.count;
	if (count > INT32_MAX)
		return too_large(count, own.largest, err);
	status = layouts_workspace(&own, direction, &layouts, err);
	if (status != LADE_OK)
		return status;
	const uint64_t largest = own.largest, total = own.total;
	lade_workload workload = {.count = count,
	                          .total = total,
	                          .largest = lade__gpu_largest(largest),
	                          .threads = 1,
	                          .src = {LADE_DEVICE, 0},
	                          .dst = {LADE_DEVICE, 0}};
	lade__route route = lade__route_of(spec, direction, LADE_DEVICE);
	status = lade__route_make(engine, &workload, &route, NULL, err);
	if (status != LADE_OK || count == 0)
		return status;
	/* What a batch of units has beside the stages' own: see gpu_wave.c and above. */
	size_t pipe = lade__gpu_pipe_workspace(engine, &route, count, largest ? largest : 1, total);
	/* Of arrays it may not be known, and some stages then want more. */
	size_t unknown = largest ? 0 : lade__gpu_pipe_workspace(engine, &route, count, 0, total);
	pipe = unknown != SIZE_MAX && unknown > pipe ? unknown : pipe;
	if (pipe > SIZE_MAX / 2)
		return too_large(count, largest, err);
	size_t plain = lade__gpu_round(32 * count) + lade__gpu_round(12 * count) +
	               combine_size(count, count);
	*size = pipe + (plain > layouts ? plain : layouts);
	return LADE_OK;
}

lade_status lade_results_get(const lade_async_options *options, size_t count,
                             lade_result *results, lade_error *err)
{
	lade__device *d;
	lade_async_options o;
	uint64_t *sizes = NULL;
	uint32_t *statuses = NULL;
	int capturing = 0;
	lade_status status;
	TRY(lade__options_read(&o, sizeof o, options, "async options", err));
	TRY(lade__size_given(&o.result_size, LADE__RESULT_0_2, "result_size", err));
	TRY(lade__device_use(o.device, &d, err));
	status = LADE__CU(d, cuStreamIsCapturing, o.stream, &capturing);
	if (status == LADE_OK && capturing)
		status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                   "the stream is being captured, and this call waits");
	if (status != LADE_OK) {
		lade__device_leave(d);
		return status;
	}
	sizes = calloc(count ? count : 1, sizeof *sizes);
	statuses = calloc(count ? count : 1, sizeof *statuses);
	if (!sizes || !statuses) {
		status = lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu results",
		                   count);
		goto leave;
	}
	if (o.sizes && count)
		status = LADE__CU(d, cuMemcpyDtoHAsync, sizes, lade__address_of(o.sizes),
		                  count * sizeof *sizes, o.stream);
	if (status == LADE_OK && o.statuses && count)
		status = LADE__CU(d, cuMemcpyDtoHAsync, statuses, lade__address_of(o.statuses),
		                  count * sizeof *statuses, o.stream);
	if (status == LADE_OK)
		status = LADE__CU(d, cuStreamSynchronize, o.stream);
	if (status != LADE_OK) {
		/* A copy to host memory may still be under way when another one failed. */
		d->driver->cuStreamSynchronize(o.stream);
		goto leave;
	}
	for (size_t i = 0; i < count; i++) {
		lade_result own = {(lade_status)statuses[i], (size_t)sizes[i]};
		if (results)
			lade__struct_copy((unsigned char *)results + i * o.result_size,
			                  o.result_size, &own, sizeof own);
		if (own.status != LADE_OK && status == LADE_OK)
			status = lade_fail(err, own.status, LADE_NO_OFFSET, "item %zu: %s", i,
			                   lade_status_text(own.status));
	}
leave:
	free(sizes);
	free(statuses);
	lade__device_leave(d);
out:
	return status;
}
