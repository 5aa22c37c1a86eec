/*
 * via_host.c: items that the host decodes or encodes and whose bytes lie on a device.
 *
 *     device sources --> pinned memory --> (threads) --> pinned memory --> device destinations
 *
 * Outputs may lie on several devices: each brings its own from the pinned memory.
 *
 * Items go in waves of some megabytes; while the threads work on one, the sources of the next and
 * the results of the one before are on their way.  A slot's pinned memory: | sources | results |.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/try.h"
#include "batch/gpu/gpu.h"
#include "engine/spec.h"

#include <stdlib.h>
#include <string.h>

#define WAVE_BYTES ((size_t)16 << 20)
#define SLOTS 4 /* each with a stream of its own */
#define WAVE_ITEMS ((size_t)1 << 14)
/* An item of a wave: with its spans replaced by those in pinned memory. */
typedef struct crossing {
	lade_item item;
	size_t in, out; /* bytes of pinned memory that it needs */
	/* Of a placed item: outputs that are boxes in pinned memory where the item's are on a
	 * device, with layouts of their own; the host's are as they were. */
	lade_item_output *outputs;
	lade_layout *layouts;
	lade_layout gathered; /* of a source */
	lade_segment
		*segment; /* the replaced ones; the item's own table where none is on a device */
	lade_status status;
	size_t size;
	lade_error error;
} crossing;

typedef struct bridge {
	lade_engine *engine;
	const lade__route *route, *tail;
	lade__device *device;
	lade__gpu_lane *lane;
	const lade_item *items; /* the call's */
	const size_t *index;    /* of those to run */
	size_t count;
	lade__job_options job;
	unsigned threads;
	lade__outcome *outcome;
} bridge;

typedef struct wave {
	size_t first, count;
	crossing *item;
	lade_segment *segments;
	lade_gpu_copy *copies;
	size_t copy_count, copy_cap;
	lade__gpu_box *boxes;
	size_t box_count, box_cap;
} wave;

static const lade_item *item_at(const bridge *b, size_t k)
{
	return &b->items[b->index[k]];
}

static bool on_device(lade_place place)
{
	return place.kind == LADE_DEVICE;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* One call of the driver for each; where there are no kernels. */
static lade_status copies_by_driver(lade__device *device, lade_stream stream,
                                    const lade_gpu_copy *list, size_t count, lade_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const lade_gpu_copy *c = &list[i];
		lade_status status = LADE_OK;
		if (c->size)
			status = LADE__CU(device, cuMemcpyAsync, c->dst, c->src, c->size, stream);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

/* A few are the driver's; else a kernel takes them all. */
static bool is_drivers(const lade__device *device, size_t count)
{
	return !device->info.kernels || count <= 4;
}

lade_status lade__gpu_copies(lade_engine *engine, lade__device *device, lade_stream stream,
                             lade_gpu_copy *list, size_t count, lade_error *err)
{
	lade_gpu_copies copies = {.count = (uint32_t)count};
	size_t bytes = count * sizeof *list;
	uint64_t pieces = 0;
	lade_status status;
	if (is_drivers(device, count))
		return copies_by_driver(device, stream, list, count, err);
	for (size_t i = 0; i < count; i++) {
		list[i].first = (uint32_t)pieces;
		pieces += lade__gpu_pieces(list[i].size);
	}
	if (pieces == 0)
		return LADE_OK;
	if (pieces > UINT32_MAX / 2)
		return copies_by_driver(device, stream, list, count, err);
	copies.pieces = (uint32_t)pieces;
	status = lade__gpu_alloc(engine, device, stream, bytes, &copies.list, err);
	if (status == LADE_E_NOMEM) /* slower, and it needs none */
		return copies_by_driver(device, stream, list, count, err);
	if (status != LADE_OK)
		return status;
	TRY(lade__gpu_put(device, stream, copies.list, list, bytes, err));
	TRY(lade__gpu_copy_kernel(device, stream, copies, err));
out:
	lade__gpu_free(engine, device, stream, copies.list, bytes);
	return status;
}

/* A device that is not the bridge's, and a lane of it whose stream 'in' is used. */
typedef struct visit {
	lade__device *device;
	lade__gpu_lane *lane;
} visit;

/* Comes behind the work of the device's default stream. */
static lade_status visit_begin(lade_engine *engine, int32_t number, visit *v, lade_error *err)
{
	v->lane = NULL;
	lade_status status = lade__device_use(number, &v->device, err);
	if (status != LADE_OK)
		return status;
	TRY(lade__gpu_lane_take(engine, v->device, &v->lane, err));
	TRY(lade__gpu_lane_follow(v->device, v->lane, v->lane->in, NULL, err));
out:
	if (status != LADE_OK && v->lane)
		lade__gpu_lane_give(engine, v->lane);
	if (status != LADE_OK)
		lade__device_leave(v->device);
	return status;
}

/* Waits for what has been enqueued, of which 'status' is what became. */
static lade_status visit_end(lade_engine *engine, const visit *v, lade_status status,
                             lade_error *err)
{
	if (status == LADE_OK)
		status = LADE__CU(v->device, cuStreamSynchronize, v->lane->in);
	if (status != LADE_OK)
		lade__gpu_lane_wait(v->device, v->lane);
	lade__gpu_lane_give(engine, v->lane);
	lade__device_leave(v->device);
	return status;
}

lade_status lade__gpu_copy_now(lade_engine *engine, int32_t number, lade_gpu_copy *list,
                               size_t count, bool pageable, lade_error *err)
{
	visit v;
	lade_status status = count ? visit_begin(engine, number, &v, err) : LADE_OK;
	if (status != LADE_OK || count == 0)
		return status;
	if (pageable)
		status = copies_by_driver(v.device, v.lane->in, list, count, err);
	else
		status = lade__gpu_copies(engine, v.device, v.lane->in, list, count, err);
	return visit_end(engine, &v, status, err);
}

static lade_status add_copy(wave *w, lade_gpu_copy copy, lade_error *err)
{
	if (copy.size == 0)
		return LADE_OK;
	if (w->copy_count == w->copy_cap) {
		size_t cap = w->copy_cap ? 2 * w->copy_cap : 64;
		lade_gpu_copy *more = realloc(w->copies, cap * sizeof *more);
		if (!more)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu copies", cap);
		w->copies = more;
		w->copy_cap = cap;
	}
	w->copies[w->copy_count++] = copy;
	return LADE_OK;
}

static lade_status add_part(wave *w, const lade__gpu_box *box, lade_error *err)
{
	if (w->box_count == w->box_cap) {
		size_t cap = w->box_cap ? 2 * w->box_cap : 16;
		lade__gpu_box *more = realloc(w->boxes, cap * sizeof *more);
		if (!more)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for %zu boxes", cap);
		w->boxes = more;
		w->box_cap = cap;
	}
	w->boxes[w->box_count++] = *box;
	return LADE_OK;
}

/* Adds a box, in parts that a kernel takes: of its outermost axis, or of its run. */
static lade_status add_box(wave *w, const lade__gpu_box *box, lade_error *err)
{
	const lade__plan *all = &box->plan;
	lade_status status = LADE_OK;
	if (all->size <= LADE__GPU_LARGEST)
		return add_part(w, box, err);
	size_t count = all->ndim ? all->axis[0].count : all->run;
	size_t unit = all->ndim ? 1 : all->swap ? all->swap : 1, inner = all->size / count;
	size_t most = LADE__GPU_LARGEST / inner / unit * unit;
	most = most ? most : unit;
	for (size_t i = 0; i < count && status == LADE_OK; i += most) {
		lade__gpu_box part = *box;
		lade__plan *p = &part.plan;
		size_t n = count - i < most ? count - i : most;
		p->size = n * inner;
		p->chunk_off += i * (all->ndim ? (size_t)all->axis[0].chunk : 1);
		p->span_off += i * (all->ndim ? (size_t)all->axis[0].span : 1);
		if (all->ndim == 0)
			p->run = n;
		else if (n > 1)
			p->axis[0].count = n;
		else
			memmove(p->axis, p->axis + 1, --p->ndim * sizeof *p->axis);
		status = add_box(w, &part, err);
	}
	return status;
}

/* Moves the boxes of a device to the front; how many they are. */
static size_t sort_boxes(lade__gpu_box *list, size_t count, int32_t device)
{
	size_t own = 0;
	for (size_t i = 0; i < count; i++) {
		lade__gpu_box box = list[i];
		if (box.device != device)
			continue;
		list[i] = list[own];
		list[own++] = box;
	}
	return own;
}

/* Has other devices than the bridge's copy their boxes, one after the other, and waits. */
static lade_status far_boxes(const bridge *b, lade__gpu_box *list, size_t count, lade_error *err)
{
	lade_status status = LADE_OK;
	while (count && status == LADE_OK) {
		visit v;
		size_t own = sort_boxes(list, count, list->device);
		status = visit_begin(b->engine, list->device, &v, err);
		if (status != LADE_OK)
			break;
		status = lade__gpu_boxes(b->engine, v.device, v.lane->in, list, own, err);
		status = visit_end(b->engine, &v, status, err);
		list += own;
		count -= own;
	}
	return status;
}

/* ---- what an item needs -------------------------------------------------------------------- */

static size_t round_up(size_t size)
{
	return (size + 63) / 64 * 64;
}

/* The most bytes of an item's result at one of its outputs: of a box those of its elements. */
static size_t result_most(const bridge *b, const lade_item *item, size_t index)
{
	lade_item_output output = lade__output_at(item, index);
	size_t room = output.dst.size;
	if (b->route->direction == LADE_ENCODE) {
		size_t in = item->layout ? lade__item_bytes(item, LADE_ENCODE) : 0;
		for (size_t i = 0; !item->layout && i < item->src_count; i++)
			in += item->src[i].size;
		size_t bound = lade_spec_bound(b->route->spec, in);
		return bound < room ? bound : room;
	}
	lade__plan plan;
	if (output.layout)
		return lade__plan_make(output.layout, LADE_DECODE, room, &plan, NULL) == LADE_OK
		               ? plan.size
		               : 0;
	if (item->range_size && item->range_size < room)
		room = (size_t)item->range_size;
	return room;
}

/* The bytes of the span that a source's layout touches, from 'first' on; 0 where it is not valid,
 * which is said when it runs. */
static size_t hull_of(const lade_item *item, size_t *first)
{
	lade__plan plan;
	*first = 0;
	if (lade__plan_make(item->layout, LADE_ENCODE, item->src->size, &plan, NULL) != LADE_OK)
		return 0;
	*first = plan.span_first;
	return plan.span_end - plan.span_first;
}

/* The bytes of the chunk that a source's layout gives; 0 as above. */
static size_t chunk_of(const lade_item *item)
{
	lade__plan plan;
	return lade__plan_make(item->layout, LADE_ENCODE, item->src->size, &plan, NULL) == LADE_OK
	               ? plan.chunk_size
	               : 0;
}

/* Whether a kernel gathers an item's source. */
static bool is_gathered(const bridge *b, const lade_item *item)
{
	return b->route->direction == LADE_ENCODE && item->layout && b->device->info.kernels &&
	       item->src->place.device == b->device->number;
}

static void measure(const bridge *b, const lade_item *item, size_t *in, size_t *out)
{
	size_t first;
	*in = *out = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		bool layout = b->route->direction == LADE_ENCODE && item->layout;
		if (!on_device(item->src[i].place))
			continue;
		*in += round_up(!layout                  ? item->src[i].size
		                : is_gathered(b, item) ? chunk_of(item)
		                                       : hull_of(item, &first));
	}
	for (size_t k = 0; k < lade__output_count(item); k++)
		if (on_device(lade__output_at(item, k).dst.place))
			*out += round_up(result_most(b, item, k));
}

/* Has a source of an array gathered to 'pinned', or brings the part of it that has the elements. */
static lade_status cross_layout(const bridge *b, wave *w, crossing *c, uint8_t *pinned,
                                lade_stream stream, lade_error *err)
{
	lade_segment *s = c->segment;
	lade__plan plan;
	size_t first, size = hull_of(&c->item, &first);
	c->status = lade__plan_make(c->item.layout, LADE_ENCODE, s->size, &plan, &c->error);
	if (c->status != LADE_OK)
		return LADE_OK;
	if (is_gathered(b, &c->item)) {
		lade__gpu_box box = {.device = b->device->number,
		                     .plan = plan,
		                     .direction = LADE_ENCODE,
		                     .src = lade__address_of(s->data),
		                     .dst = lade__address_of(pinned)};
		s->size = plan.chunk_size;
		c->item.layout = NULL;
		return add_box(w, &box, err);
	}
	lade_status status = lade__options_read(&c->gathered, sizeof c->gathered, c->item.layout,
	                                        "layout", err);
	c->gathered.offset -= first;
	c->item.layout = &c->gathered;
	s->size = size;
	if (status == LADE_OK && size)
		status = LADE__CU(b->device, cuMemcpyAsync, lade__address_of(pinned),
		                  lade__address_of(s->data) + first, size, stream);
	return status;
}

/* Replaces the sources that lie on a device, and notes the copies that bring them.  What lies on
 * another than the bridge's is the driver's to bring; kernels do not reach it. */
static lade_status cross_in(const bridge *b, wave *w, crossing *c, uint8_t *pinned,
                            lade_stream stream, lade_error *err)
{
	bool layout = b->route->direction == LADE_ENCODE && c->item.layout;
	for (size_t i = 0; i < c->item.src_count; i++) {
		lade_segment *s = &c->segment[i];
		*s = c->item.src[i];
		if (!on_device(s->place))
			continue;
		lade_gpu_copy copy = {.src = lade__address_of(s->data),
		                       .dst = lade__address_of(pinned),
		                       .size = s->size};
		lade_status status = LADE_OK;
		if (layout)
			status = cross_layout(b, w, c, pinned, stream, err);
		else if (s->place.device == b->device->number)
			status = add_copy(w, copy, err);
		else if (s->size)
			status = LADE__CU(b->device, cuMemcpyAsync, copy.dst, copy.src, copy.size,
			                  stream);
		if (status != LADE_OK)
			return status;
		s->data = pinned;
		s->place = (lade_place){LADE_PINNED, b->device->number};
		pinned += round_up(s->size);
	}
	c->item.src = c->segment;
	return LADE_OK;
}

/* Replaces the destinations that lie on a device; those of layouts by boxes without gaps. */
static lade_status cross_out(const bridge *b, crossing *c, uint8_t *pinned, lade_error *err)
{
	lade_place place = {LADE_PINNED, b->device->number};
	size_t count = lade__output_count(&c->item);
	if (b->route->direction == LADE_ENCODE || !lade__item_is_placed(&c->item)) {
		if (on_device(c->item.dst.place))
			c->item.dst =
				(lade_span){pinned, result_most(b, &c->item, 0), place};
		return LADE_OK;
	}
	c->outputs = calloc(count, sizeof *c->outputs);
	c->layouts = calloc(count, sizeof *c->layouts);
	if (!c->outputs || !c->layouts)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu outputs",
		                 count);
	for (size_t k = 0; k < count && c->status == LADE_OK; k++) {
		lade_item_output *output = &c->outputs[k];
		lade__plan plan;
		*output = lade__output_at(&c->item, k);
		if (!on_device(output->dst.place))
			continue;
		if (output->layout)
			c->status = lade__plan_box(output->layout, output->dst.size, &c->layouts[k],
			                           &plan, &c->error);
		/* What the layout refuses is said as decoding says it. */
		if (c->status == LADE_OK && output->layout)
			c->status = lade__plan_make(output->layout, LADE_DECODE, output->dst.size,
			                            &plan, &c->error);
		size_t most = result_most(b, &c->item, k);
		output->dst = (lade_span){pinned, most, place};
		output->layout = output->layout ? &c->layouts[k] : NULL;
		pinned += round_up(most);
	}
	c->item.outputs = c->outputs;
	c->item.output_count = count;
	c->item.dst = (lade_span){0};
	c->item.layout = NULL;
	return LADE_OK;
}

/* The bytes of an item's outputs without a layout: by the shape of another's, else all have as
 * many. */
static size_t plain_size(const lade_item *item, size_t sum)
{
	for (size_t k = 0; k < item->output_count; k++)
		if (item->outputs[k].layout)
			return lade__item_bytes(item, LADE_DECODE);
	return sum / lade__output_count(item);
}

/* Notes the copies of an item's results. */
static lade_status bring_out(const bridge *b, wave *w, const crossing *c, const lade_item *item,
                             lade_error *err)
{
	size_t plain = plain_size(item, c->size);
	for (size_t k = 0; k < lade__output_count(item); k++) {
		lade_item_output to = lade__output_at(item, k);
		lade_span from = c->outputs ? c->outputs[k].dst : c->item.dst;
		bool layout = to.layout && b->route->direction == LADE_DECODE;
		bool far = to.dst.place.device != b->device->number;
		lade_status status = LADE_OK;
		lade__gpu_box box = {.device = to.dst.place.device,
		                     .plan = {.size = plain, .run = plain},
		                     .direction = LADE_DECODE,
		                     .src = lade__address_of(from.data),
		                     .dst = lade__address_of(to.dst.data)};
		if (!on_device(to.dst.place))
			continue;
		if (layout) {
			lade_layout half;
			status = lade__plan_box(to.layout, to.dst.size, &half, &box.plan, err);
		}
		if (status == LADE_OK && (layout || far)) {
			status = add_box(w, &box, err);
		} else if (status == LADE_OK) {
			status = add_copy(
				w, (lade_gpu_copy){.src = box.src, .dst = box.dst, .size = plain},
				err);
		}
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

/* ---- a wave -------------------------------------------------------------------------------- */

static void wave_reset(wave *w)
{
	for (size_t i = 0; w->item && i < w->count; i++) {
		free(w->item[i].outputs);
		free(w->item[i].layouts);
	}
	free(w->item);
	free(w->segments);
	free(w->copies);
	free(w->boxes);
	*w = (wave){0};
}

/* Takes the items of the next wave, from 'first' on, and enqueues the copies of their sources. */
static lade_status wave_begin(bridge *b, wave *w, unsigned k, size_t first, lade_error *err)
{
	lade__gpu_slot *slot = &b->lane->slot[k];
	lade_stream stream;
	size_t in = 0, out = 0, segments = 0, n = 0;
	lade_status status = lade__gpu_lane_kernels(b->device, b->lane, k, &stream, err);
	if (status != LADE_OK)
		return status;
	for (; first + n < b->count; n++) {
		size_t more_in, more_out;
		measure(b, item_at(b, first + n), &more_in, &more_out);
		if (n == WAVE_ITEMS ||
		    (n && (in + more_in > WAVE_BYTES || out + more_out > WAVE_BYTES)))
			break;
		in += more_in;
		out += more_out;
		segments += item_at(b, first + n)->src_count;
	}
	*w = (wave){.first = first, .count = n};
	w->item = calloc(n, sizeof *w->item);
	w->segments = calloc(segments ? segments : 1, sizeof *w->segments);
	if (!w->item || !w->segments)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu items", n);
	status = lade__gpu_slot_pinned(b->engine, b->lane, k, in + out + 64, err);
	if (status != LADE_OK && n == 1) {
		/* An item too large for the memory does not spoil the others. */
		w->item->item = *item_at(b, first);
		w->item->status = lade_fail(&w->item->error, status, LADE_NO_OFFSET,
		                            "no %zu bytes of pinned memory for it", in + out);
		return LADE__CU(b->device, cuEventRecord, slot->done, stream);
	}
	if (status != LADE_OK)
		return status;
	uint8_t *to = slot->pinned.data, *from = to + in;
	lade_segment *segment = w->segments;
	for (size_t i = 0; i < n; i++) {
		crossing *c = &w->item[i];
		c->item = *item_at(b, first + i);
		c->segment = segment;
		segment += c->item.src_count;
		measure(b, &c->item, &c->in, &c->out);
		TRY(cross_in(b, w, c, to, stream, err));
		TRY(cross_out(b, c, from, err));
		to += c->in;
		from += c->out;
	}
	TRY(lade__gpu_copies(b->engine, b->device, stream, w->copies, w->copy_count, err));
	TRY(lade__gpu_boxes(b->engine, b->device, stream, w->boxes, w->box_count, err));
	TRY(LADE__CU(b->device, cuEventRecord, slot->done, stream));
	w->copy_count = w->box_count = 0;
out:
	return status;
}

typedef struct work {
	bridge *bridge;
	wave *wave;
} work;

static void work_item(void *ctx, size_t i, lade_worker *worker)
{
	work *x = ctx;
	crossing *c = &x->wave->item[i];
	bridge *b = x->bridge;
	if (c->status == LADE_OK && lade__stopped(&b->outcome->stop))
		c->status = lade__stop_fail(&c->error);
	if (c->status != LADE_OK)
		return;
	lade__pipe pipe = {worker, b->route, &b->job};
	if (c->item.tail)
		c->status = lade__item_decode_tail(&pipe, b->tail, &c->item, &c->size, &c->error);
	else if (b->route->direction == LADE_DECODE)
		c->status = lade__item_decode(&pipe, &c->item, &c->size, &c->error);
	else
		c->status = lade__item_encode(&pipe, &c->item, &c->size, &c->error);
}

/* Runs the items and enqueues the copies of their results. */
static lade_status wave_work(bridge *b, wave *w, unsigned k, lade_error *err)
{
	lade__gpu_slot *slot = &b->lane->slot[k];
	lade_stream stream = b->lane->kernels[k];
	work x = {b, w};
	lade_status status;
	TRY(LADE__CU(b->device, cuEventSynchronize, slot->done));
	lade__calls calls = {work_item, &x, .count = w->count, .threads = b->threads};
	TRY(lade__engine_parallel(b->engine, &calls, err));
	for (size_t i = 0; i < w->count; i++) {
		crossing *c = &w->item[i];
		const lade_item *item = item_at(b, w->first + i);
		if (c->status != LADE_OK)
			continue;
		TRY(bring_out(b, w, c, item, err));
	}
	size_t own = sort_boxes(w->boxes, w->box_count, b->device->number);
	TRY(lade__gpu_boxes(b->engine, b->device, stream, w->boxes, own, err));
	TRY(lade__gpu_copies(b->engine, b->device, stream, w->copies, w->copy_count, err));
	TRY(LADE__CU(b->device, cuEventRecord, slot->done, stream));
	TRY(far_boxes(b, w->boxes + own, w->box_count - own, err));
out:
	return status;
}

static lade_status wave_end(bridge *b, wave *w, unsigned k, lade_error *err)
{
	if (w->count == 0)
		return LADE_OK;
	lade_status status = LADE__CU(b->device, cuEventSynchronize, b->lane->slot[k].done);
	for (size_t i = 0; status == LADE_OK && i < w->count; i++) {
		const crossing *c = &w->item[i];
		if (c->status == LADE_OK)
			lade__outcome_done(b->outcome, b->index[w->first + i], c->size);
		else
			lade__outcome_failed(b->outcome, b->index[w->first + i], c->status,
			                     &c->error);
	}
	wave_reset(w);
	return status;
}

lade_status lade__gpu_via_host(lade__planner *p, lade__items *g, const size_t *index, size_t count,
                               lade__device *device, lade_error *err)
{
	const lade_batch_options *options = p->call->options;
	lade__outcome *outcome = p->outcome;
	bridge b = {.engine = p->call->engine,
	            .route = &g->where.host,
	            .tail = &g->where.tail,
	            .device = device,
	            .items = p->call->items,
	            .index = index,
	            .count = count,
	            .threads = p->threads,
	            .job = {options->dict, options->flags},
	            .outcome = outcome};
	wave waves[SLOTS] = {{0}};
	bool begun = false;
	lade_status status;
	TRY(lade__gpu_lane_take(b.engine, device, &b.lane, err));
	for (unsigned k = 0; k < SLOTS; k++) {
		lade_stream own;
		TRY(lade__gpu_lane_kernels(device, b.lane, k, &own, err));
		TRY(lade__gpu_lane_follow(device, b.lane, own, options->stream, err));
	}
	begun = true;
	size_t next = 0;
	unsigned k = 0; /* the wave that is worked on; the one behind it is on its way */
	TRY(wave_begin(&b, &waves[0], 0, 0, err));
	next = waves[0].count;
	while (waves[k].count) {
		unsigned behind = (k + 1) % SLOTS;
		TRY(wave_end(&b, &waves[behind], behind, err));
		if (next < b.count && !lade__stopped(&outcome->stop)) {
			TRY(wave_begin(&b, &waves[behind], behind, next, err));
			next += waves[behind].count;
		}
		TRY(wave_work(&b, &waves[k], k, err));
		k = behind;
	}
	for (unsigned i = 1; i < SLOTS; i++)
		TRY(wave_end(&b, &waves[(k + i) % SLOTS], (k + i) % SLOTS, err));
	for (; next < b.count; next++)
		lade__outcome_cancelled(outcome, b.index[next]);
out:
	if (b.lane) {
		/* Before the first wave nothing was enqueued, and a wait would spoil another
		 * stream's capture. */
		if (status != LADE_OK && begun)
			lade__gpu_lane_wait(device, b.lane);
		lade__gpu_lane_give(b.engine, b.lane);
	}
	for (int i = 0; i < SLOTS; i++)
		wave_reset(&waves[i]);
	return status;
}
