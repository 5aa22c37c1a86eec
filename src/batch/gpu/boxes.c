/*
 * boxes.c: layouts of units: which boxes a kernel copies, and which the host does.
 *
 * A unit with a layout, or of an item with several outputs, is decoded to scratch memory of the
 * wave.  From there a kernel copies the boxes of outputs that it reaches; the rest goes through
 * pinned memory to the host.  An encoded unit's source is gathered to where staged sources stand.
 *
 * Plans are made anew where they are wanted: a microsecond's work, and nothing to keep.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"

#include <stdlib.h>

/* ---- one output ------------------------------------------------------------------------------ */

/* The plan of an output without a layout: all of the chunk. */
static lade_status plan_plain(size_t chunk, size_t size, size_t index, lade__plan *plan,
                              lade_error *err)
{
	*plan = (lade__plan){.chunk_size = chunk, .size = chunk, .end = chunk, .run = chunk,
	                     .span_end = chunk};
	if (chunk <= size)
		return LADE_OK;
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
	                 "the result has %zu bytes, output %zu %zu", chunk, index, size);
}

lade_status lade__output_plan(const lade_item *item, size_t index, size_t chunk, lade__plan *plan,
                              lade_error *err)
{
	lade_item_output output = lade__output_at(item, index);
	if (!output.layout)
		return plan_plain(chunk, output.dst.size, index, plan, err);
	return lade__plan_make(output.layout, LADE_DECODE, output.dst.size, plan, err);
}

/* Takes the indices of the outermost axis that have no byte in [from, end) of the chunk out. */
static void clip(lade__plan *plan, size_t from, size_t end)
{
	if (from >= plan->end || end <= plan->first)
		plan->size = 0;
	if (plan->size == 0 || plan->ndim == 0)
		return;
	lade__plan_axis *a = &plan->axis[0];
	size_t step = (size_t)a->chunk;
	size_t inner = plan->end - plan->first - (a->count - 1) * step;
	size_t low = from >= plan->first + inner ? (from - plan->first - inner) / step + 1 : 0;
	size_t high = end > plan->first ? (end - plan->first - 1) / step + 1 : 0;
	high = high < a->count ? high : a->count;
	if (low >= high) {
		plan->size = 0;
		return;
	}
	plan->size = plan->size / a->count * (high - low);
	plan->chunk_off += low * step;
	plan->span_off = (size_t)((ptrdiff_t)plan->span_off + (ptrdiff_t)low * a->span);
	a->count = high - low;
}

/* The plan of output 'index' for what a unit has of the chunk; false: nothing.  It was checked when
 * the unit was made. */
static bool unit_plan(const lade__gpu_unit *u, size_t index, lade__plan *plan)
{
	if (lade__output_plan(u->placed, index, u->chunk, plan, NULL) != LADE_OK)
		return false;
	if (u->cap < u->chunk)
		clip(plan, u->at, u->at + u->cap);
	return plan->size != 0;
}

static bool is_hosts(lade_place place)
{
	return place.kind == LADE_HOST;
}

/* ---- units ----------------------------------------------------------------------------------- */

static void count_box(lade__gpu_unit *u, const lade__plan *plan)
{
	u->boxes++;
	u->axes += (uint32_t)plan->ndim;
	u->pieces += lade__box_pieces(plan);
}

void lade__gpu_unit_place(lade__gpu_unit *u, const lade_item *item, size_t chunk)
{
	lade__plan plan;
	u->placed = item;
	u->chunk = chunk;
	u->stage_out = true;
	u->boxes = u->axes = u->pieces = 0;
	for (size_t k = 0; k < lade__output_count(item); k++) {
		if (!unit_plan(u, k, &plan))
			continue;
		if (is_hosts(lade__output_at(item, k).dst.place))
			u->to_host = true;
		else
			count_box(u, &plan);
	}
}

lade_status lade__gpu_unit_gather(lade__gpu_unit *u, const lade_item *item, lade_error *err)
{
	lade__plan plan;
	lade_status status =
		lade__plan_make(item->layout, LADE_ENCODE, item->src->size, &plan, err);
	if (status != LADE_OK)
		return status;
	if (plan.chunk_size > LADE_CHUNK_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a chunk of %zu bytes, kernels take %u", plan.chunk_size,
		                 LADE_CHUNK_MAX);
	u->gathered = item;
	u->chunk = u->src_size = plan.chunk_size;
	u->stage_in = plan.chunk_size != 0;
	u->pageable = u->stage_in && is_hosts(item->src->place);
	u->boxes = u->axes = u->pieces = 0;
	if (u->stage_in && !u->pageable)
		count_box(u, &plan);
	return LADE_OK;
}

/* ---- waves ----------------------------------------------------------------------------------- */

/* Where the next box and its axes stand, on the host and on the device. */
typedef struct filling {
	lade_box *box;
	lade_box_axis *axis;
	lade__address axis_at;
	uint32_t first;
} filling;

static lade_box *add_box(filling *f, const lade__plan *plan, lade_direction direction,
                              uint32_t unit)
{
	lade_box *box = f->box++;
	lade__box_make(plan, direction, box, f->axis);
	box->axes = f->axis_at;
	box->unit = unit;
	box->first = f->first;
	f->first += lade__box_pieces(plan);
	f->axis += plan->ndim;
	f->axis_at += plan->ndim * sizeof *f->axis;
	return box;
}

static void fill_unit(filling *f, const lade__gpu_wave *w, size_t i)
{
	const lade__gpu_unit *u = &w->units[i];
	lade__plan plan;
	if (u->gathered && u->boxes) {
		const lade_segment *from = u->gathered->src;
		lade__plan_make(u->gathered->layout, LADE_ENCODE, from->size, &plan, NULL);
		lade_box *box = add_box(f, &plan, LADE_ENCODE, (uint32_t)i);
		box->src = lade__address_of(from->data);
		box->dst = w->base + w->in_off + u->in_at;
	}
	for (size_t k = 0; u->placed && u->boxes && k < lade__output_count(u->placed); k++) {
		lade_span dst = lade__output_at(u->placed, k).dst;
		if (is_hosts(dst.place) || !unit_plan(u, k, &plan))
			continue;
		lade_box *box = add_box(f, &plan, LADE_DECODE, (uint32_t)i);
		box->src = w->base + w->out_off + u->out_at - u->at;
		box->dst = lade__address_of(dst.data);
		box->wanted = u->wanted;
		if (u->cap < u->chunk) {
			box->from = u->at;
			box->end = u->at + u->cap;
			box->align |= (uint32_t)(box->from | box->end);
		}
	}
}

void lade__gpu_wave_fill_boxes(const lade__gpu_wave *w, void *tables)
{
	size_t off = w->boxes_off, axes_off = off + w->boxes * sizeof(lade_box);
	filling f = {.box = (lade_box *)((uint8_t *)tables + off),
	             .axis = (lade_box_axis *)((uint8_t *)tables + axes_off),
	             .axis_at = w->base + axes_off};
	for (size_t i = 0; i < w->count; i++)
		fill_unit(&f, w, i);
}

lade_status lade__gpu_wave_boxes(lade__device *device, lade_stream stream, const lade__gpu_wave *w,
                                 lade_direction direction, lade_error *err)
{
	bool decode = direction == LADE_DECODE;
	lade_boxes boxes = {.list = w->base + w->boxes_off,
	                    .sizes = decode ? w->dst_size : 0,
	                    .statuses = decode ? w->status : 0,
	                    .count = (uint32_t)w->boxes,
	                    .pieces = (uint32_t)w->box_pieces};
	return lade__boxes_copy(device, stream, boxes, err);
}

/* ---- the host's ------------------------------------------------------------------------------ */

void lade__gpu_unit_spread(const lade__gpu_unit *u, lade_cpu cpu, const uint8_t *from)
{
	lade__plan plan;
	for (size_t k = 0; k < lade__output_count(u->placed); k++) {
		lade_span dst = lade__output_at(u->placed, k).dst;
		if (is_hosts(dst.place) &&
		    lade__output_plan(u->placed, k, u->chunk, &plan, NULL) == LADE_OK)
			lade__plan_scatter(&plan, cpu, u->at, from, u->cap, dst.data);
	}
}

void lade__gpu_unit_collect(const lade__gpu_unit *u, lade_cpu cpu, uint8_t *to)
{
	lade__plan plan;
	const lade_segment *from = u->gathered->src;
	if (lade__plan_make(u->gathered->layout, LADE_ENCODE, from->size, &plan, NULL) == LADE_OK)
		lade__plan_gather(&plan, cpu, from->data, to);
}

/* ---- outside of waves ------------------------------------------------------------------------ */

/* Run by run. */
static lade_status box_by_driver(lade__device *device, lade_stream stream, const lade__gpu_box *b,
                                 lade_error *err)
{
	const lade__plan *plan = &b->plan;
	size_t at[LADE_DIMS_MAX] = {0};
	bool decode = b->direction == LADE_DECODE;
	lade__address chunk = (decode ? b->src : b->dst) + plan->chunk_off;
	lade__address span = (decode ? b->dst : b->src) + plan->span_off;
	for (;;) {
		lade_status status =
			LADE__CU(device, cuMemcpyAsync, decode ? span : chunk,
		                 decode ? chunk : span, plan->run, stream);
		if (status != LADE_OK)
			return status;
		size_t i = plan->ndim;
		for (; i-- > 0;) {
			const lade__plan_axis *a = &plan->axis[i];
			chunk += (lade__address)a->chunk;
			span += (lade__address)a->span;
			if (++at[i] < a->count)
				break;
			chunk -= a->count * (lade__address)a->chunk;
			span -= a->count * (lade__address)a->span;
			at[i] = 0;
		}
		if (i == SIZE_MAX)
			return LADE_OK;
	}
}

static lade_status boxes_by_driver(lade__device *device, lade_stream stream,
                                   const lade__gpu_box *list, size_t count, lade_error *err)
{
	lade_status status = LADE_OK;
	for (size_t i = 0; status == LADE_OK && i < count; i++)
		if (list[i].plan.size)
			status = box_by_driver(device, stream, &list[i], err);
	return status;
}

lade_status lade__gpu_boxes(lade_engine *engine, lade__device *device, lade_stream stream,
                            const lade__gpu_box *list, size_t count, lade_error *err)
{
	size_t axes = 0, boxes = 0;
	uint64_t pieces = 0;
	lade__address block = 0;
	for (size_t i = 0; i < count; i++) {
		boxes += list[i].plan.size != 0;
		axes += list[i].plan.size ? list[i].plan.ndim : 0;
		pieces += lade__box_pieces(&list[i].plan);
	}
	if (boxes == 0)
		return LADE_OK;
	if (!device->info.kernels || pieces > UINT32_MAX / 2)
		return boxes_by_driver(device, stream, list, count, err);
	size_t size = boxes * sizeof(lade_box) + axes * sizeof(lade_box_axis);
	void *tables = malloc(size);
	if (!tables)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu boxes",
		                 boxes);
	lade_status status = lade__gpu_alloc(engine, device, stream, size, &block, err);
	if (status != LADE_OK) {
		free(tables);
		return status;
	}
	filling f = {.box = tables,
	             .axis = (lade_box_axis *)((lade_box *)tables + boxes),
	             .axis_at = block + boxes * sizeof(lade_box)};
	for (size_t i = 0; i < count; i++) {
		if (list[i].plan.size == 0)
			continue;
		lade_box *box = add_box(&f, &list[i].plan, list[i].direction, 0);
		box->src = list[i].src;
		box->dst = list[i].dst;
	}
	lade_boxes all = {.list = block, .count = (uint32_t)boxes, .pieces = (uint32_t)pieces};
	TRY(lade__gpu_put(device, stream, block, tables, size, err));
	TRY(lade__boxes_copy(device, stream, all, err));
out:
	free(tables);
	lade__gpu_free(engine, device, stream, block, size);
	return status;
}
