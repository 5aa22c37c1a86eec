/*
 * via_item.c: an item's spans on devices, replaced by pinned memory, and the copies between.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/gpu/via_host.h"

#include "base/options.h"
#include "engine/spec.h"

#include <stdlib.h>
#include <string.h>

static bool on_device(lade_place place)
{
	return place.kind == LADE_DEVICE;
}

/* ---- copies --------------------------------------------------------------------------------- */

static lade_status add_copy(lade__via_wave *w, lade_gpu_copy copy, lade_error *err)
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

static lade_status add_part(lade__via_wave *w, const lade__gpu_box *box, lade_error *err)
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

/* The bytes of a part of a box, about: fewer than a kernel takes, and aligned. */
#define PART ((size_t)1 << 30)

/* Adds a box, in parts that a kernel takes: of its outermost axis, or of its run. */
static lade_status add_box(lade__via_wave *w, const lade__gpu_box *box, lade_error *err)
{
	const lade__plan *all = &box->plan;
	lade_status status = LADE_OK;
	if (all->size <= LADE_CHUNK_MAX)
		return add_part(w, box, err);
	size_t count = all->ndim ? all->axis[0].count : all->run;
	size_t unit = all->ndim ? 1 : all->swap ? all->swap : 1, inner = all->size / count;
	size_t most = PART / inner / unit * unit;
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

/* ---- what an item needs --------------------------------------------------------------------- */

static size_t round_up(size_t size)
{
	return (size + 63) / 64 * 64;
}

/* The most bytes of an item's result at one of its outputs: of a box those of its elements. */
static size_t result_most(const lade__via_host *h, const lade_item *item, size_t index)
{
	lade_item_output output = lade__output_at(item, index);
	size_t room = output.dst.size;
	if (h->route->direction == LADE_ENCODE) {
		size_t in = item->layout ? lade__item_bytes(item, LADE_ENCODE) : 0;
		for (size_t i = 0; !item->layout && i < item->src_count; i++)
			in += item->src[i].size;
		size_t bound = lade_spec_bound(h->route->spec, in);
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
static bool is_gathered(const lade__via_host *h, const lade_item *item)
{
	return h->route->direction == LADE_ENCODE && item->layout && h->device->info.kernels &&
	       item->src->place.device == h->device->number;
}

void lade__via_measure(const lade__via_host *h, const lade_item *item, size_t *in, size_t *out)
{
	size_t first;
	*in = *out = 0;
	for (size_t i = 0; i < item->src_count; i++) {
		bool layout = h->route->direction == LADE_ENCODE && item->layout;
		if (!on_device(item->src[i].place))
			continue;
		*in += round_up(!layout                ? item->src[i].size
		                : is_gathered(h, item) ? chunk_of(item)
		                                       : hull_of(item, &first));
	}
	for (size_t k = 0; k < lade__output_count(item); k++)
		if (on_device(lade__output_at(item, k).dst.place))
			*out += round_up(result_most(h, item, k));
}

/* Has a source of an array gathered to 'pinned', or brings the part of it that has the elements. */
static lade_status source_layout(const lade__via_host *h, lade__via_wave *w, lade__via_item *c,
                                 uint8_t *pinned, lade_stream stream, lade_error *err)
{
	lade_segment *s = c->segment;
	lade__plan plan;
	size_t first, size = hull_of(&c->item, &first);
	c->status = lade__plan_make(c->item.layout, LADE_ENCODE, s->size, &plan, &c->error);
	if (c->status != LADE_OK)
		return LADE_OK;
	if (is_gathered(h, &c->item)) {
		lade__gpu_box box = {.device = h->device->number,
		                     .plan = plan,
		                     .direction = LADE_ENCODE,
		                     .src = lade__address_of(s->data),
		                     .dst = lade__address_of(pinned)};
		s->size = plan.chunk_size;
		c->item.layout = NULL;
		return add_box(w, &box, err);
	}
	lade_status status =
		lade__options_read(&c->gathered, sizeof c->gathered, c->item.layout, "layout", err);
	c->gathered.offset -= first;
	c->item.layout = &c->gathered;
	s->size = size;
	if (status == LADE_OK && size)
		status = LADE__CU(h->device, cuMemcpyAsync, lade__address_of(pinned),
		                  lade__address_of(s->data) + first, size, stream);
	return status;
}

lade_status lade__via_in(const lade__via_host *h, lade__via_wave *w, lade__via_item *c,
                         uint8_t *pinned, lade_stream stream, lade_error *err)
{
	bool layout = h->route->direction == LADE_ENCODE && c->item.layout;
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
			status = source_layout(h, w, c, pinned, stream, err);
		else if (s->place.device == h->device->number)
			status = add_copy(w, copy, err);
		else if (s->size)
			status = LADE__CU(h->device, cuMemcpyAsync, copy.dst, copy.src, copy.size,
			                  stream);
		if (status != LADE_OK)
			return status;
		s->data = pinned;
		s->place = (lade_place){LADE_PINNED, h->device->number};
		pinned += round_up(s->size);
	}
	c->item.src = c->segment;
	return LADE_OK;
}

lade_status lade__via_out(const lade__via_host *h, lade__via_item *c, uint8_t *pinned,
                          lade_error *err)
{
	lade_place place = {LADE_PINNED, h->device->number};
	size_t count = lade__output_count(&c->item);
	if (h->route->direction == LADE_ENCODE || !lade__item_is_placed(&c->item)) {
		if (on_device(c->item.dst.place))
			c->item.dst = (lade_span){pinned, result_most(h, &c->item, 0), place};
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
		size_t most = result_most(h, &c->item, k);
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

lade_status lade__via_results(const lade__via_host *h, lade__via_wave *w, const lade__via_item *c,
                              const lade_item *item, lade_error *err)
{
	size_t plain = plain_size(item, c->size);
	for (size_t k = 0; k < lade__output_count(item); k++) {
		lade_item_output to = lade__output_at(item, k);
		lade_span from = c->outputs ? c->outputs[k].dst : c->item.dst;
		bool layout = to.layout && h->route->direction == LADE_DECODE;
		bool elsewhere = to.dst.place.device != h->device->number;
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
		if (status == LADE_OK && (layout || elsewhere)) {
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
