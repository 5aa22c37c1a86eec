/*
 * async_arrays.c: batches of device arrays, with a layout or without, and their workspace.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/gpu/async.h"

#include "base/try.h"
#include "array/given.h"
#include "checksum/gpu.h"
#include "engine/spec.h"

#include <string.h>

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
	if (arrays->count &&
	    (!arrays->src || !arrays->src_size || (all && (!arrays->dst || !arrays->dst_cap))))
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
static size_t host_tables_size(const lade__async *a, size_t count, size_t tables)
{
	return a->options.flags & LADE_ASYNC_HOST_TABLES ? lade__gpu_round(8 * tables * count) : 0;
}

/* Brings the host's tables to 'at' on the device, and points 't' there. */
static lade_status bring_tables(lade__async *a, const lade_arrays *arrays, lade__address at,
                                lade__gpu_tables *t, lade_error *err)
{
	const void *from[] = {arrays->src, arrays->src_size, arrays->dst, arrays->dst_cap};
	lade__address *to[] = {&t->src, &t->src_size, &t->dst, &t->dst_cap};
	size_t each = 8 * arrays->count, size = 0;
	lade__async_tables s;
	if (a->options.flags & LADE_ASYNC_DEVICE_SIZES)
		from[1] = NULL;
	for (int i = 0; i < 4; i++)
		size += from[i] ? each : 0;
	lade_status status = lade__async_staging(a, size, &s, err);
	if (status != LADE_OK)
		return status;
	for (size_t i = 0, off = 0; i < 4; i++) {
		if (!from[i])
			continue;
		memcpy(s.tables + off, from[i], each);
		*to[i] = at + off;
		off += each;
	}
	status = lade__async_send(a, at, s.tables, size, s.buffer != NULL, err);
	return lade__async_staged(a, &s, status, err);
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
	if (x->g.chunk > LADE_CHUNK_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a chunk of %llu bytes, kernels take %u",
		                 (unsigned long long)x->g.chunk, LADE_CHUNK_MAX);
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
static lade_status enqueue_grid(lade__async *a, const lade_arrays *arrays, grid *x,
                                lade__gpu_tables tables, lade_error *err)
{
	bool encode = x->g.encode != 0;
	lade__address base = a->block, span = encode ? tables.src : tables.dst;
	lade_boxes boxes = {
		.list = base + x->list, .count = x->g.count, .pieces = x->g.count * x->g.pieces};
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
	lade__async a;
	lade_arrays arrays;
	lade_status status = lade__async_read(&a, engine, options, err);
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
	TRY(lade__async_begin(&a, spec, direction, &workload, err));
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
		TRY(lade__async_block(&a, extra + want, err));
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
	lade__async_end(&a);
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
static lade_status enqueue_sizes(lade__async *a, const lade_arrays *arrays, lade_error *err)
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
	if (!codec->sizes || !lade__gpu_pipe_keeps_sizes(&a->route))
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a device cannot find the decoded sizes of %s",
		                 work.stage->algorithm->name);
	if (extra) {
		lade__gpu_tables tables = {.src_size = work.src_size};
		lade_status status = lade__async_block(a, extra, err);
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
	lade__async a;
	lade_arrays arrays;
	lade_status status;
	TRY(lade__async_read(&a, engine, options, err));
	TRY(read_arrays(given, false, &arrays, err));
	lade_workload workload = {.count = arrays.count, .threads = 1};
	TRY(lade__async_begin(&a, spec, LADE_DECODE, &workload, err));
	if (arrays.count)
		status = enqueue_sizes(&a, &arrays, err);
	lade__async_end(&a);
out:
	return status;
}

lade_status lade_checksums_arrays_async(lade_engine *engine, lade_checksum kind,
                                        const lade_arrays *given, uint64_t *sums,
                                        const lade_async_options *options, lade_error *err)
{
	lade__async a;
	lade_arrays arrays;
	lade_status status = lade__async_read(&a, engine, options, err);
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
	TRY(lade__async_open(&a, err));
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
	TRY(lade__async_block(&a, extra + want, err));
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
	lade__async_end(&a);
	return status;
}

/* ---- workspace ------------------------------------------------------------------------------- */

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
	               lade__gpu_round(12 * n) + n * (size_t)x.g.stride +
	               lade__async_combine_size(n, n);
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
	               lade__async_combine_size(count, count);
	*size = pipe + (plain > layouts ? plain : layouts);
	return LADE_OK;
}
