/*
 * write_device.c: sources in a device's memory.
 *
 *	chunks that are written whole   many in one call of lade_encode_into(), which has kernels
 *	                                encode them where there are some
 *	parts of chunks                 the elements are copied to the host, chunk by chunk
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/write.h"

#include <stdlib.h>
#include <string.h>

static void batch_options(const lade__zwrite *w, lade_batch_options *batch)
{
	lade_batch_options_init(batch);
	batch->stream = w->options.stream;
	batch->cancel = w->options.cancel;
	batch->threads = w->options.threads;
}

/* ---- parts of chunks ----------------------------------------------------------------------- */

lade_status lade__fetch_elements(const lade__zwrite *w, const lade__target *t, lade__view *view,
                                 lade_error *err)
{
	const lade__selected *s = &w->selected;
	size_t shape[LADE_DIMS_MAX], low[LADE_DIMS_MAX], size = s->result.elem_size;
	lade_layout layout = {.struct_size = sizeof layout, .elem_size = size,
	                      .ndim = s->result.ndim, .shape = shape, .strides = w->strides,
	                      .offset = w->source.offset};
	for (size_t i = 0; i < s->result.ndim; i++) {
		shape[i] = (size_t)s->result.shape[i];
		low[i] = 0;
	}
	/* A box of the result; lists and points may need any part of it. */
	for (size_t a = 0; a < s->ndim && !s->listed; a++) {
		const lade__pick *pick = &s->pick[a];
		const lade__cut *cut = &t->cut[a];
		if (pick->dropped)
			continue;
		uint64_t first = pick->reversed ? pick->count - cut->from - cut->count : cut->from;
		shape[s->axis_of[a]] = (size_t)cut->count;
		low[s->axis_of[a]] = (size_t)first;
		layout.offset += (size_t)((ptrdiff_t)first * w->strides[s->axis_of[a]]);
	}
	for (size_t i = 0; i < s->result.ndim; i++)
		size *= shape[i];
	view->memory = malloc(size + 1);
	if (!view->memory)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes from a device", size);
	lade_segment src = {.data = w->source.span.data, .size = w->source.span.size,
	                    .place = w->source.span.place};
	lade_item item = {.src = &src, .src_count = 1, .layout = &layout,
	                  .dst = lade_host_span(view->memory, size)};
	lade_batch_options batch;
	batch_options(w, &batch);
	/* Of the view, element 'low' is the first of the memory. */
	view->base = (uintptr_t)view->memory;
	for (size_t i = s->result.ndim, stride = s->result.elem_size; i-- > 0;
	     stride *= shape[i]) {
		view->strides[i] = (ptrdiff_t)stride;
		view->base -= low[i] * stride;
	}
	return lade_encode_into(w->engine, w->copy, &item, 1, NULL, &batch, err);
}

/* ---- whole chunks -------------------------------------------------------------------------- */

#define WAVE_BYTES ((size_t)32 << 20)
#define WAVE_CHUNKS 64

struct lade__wave {
	const lade__zwrite *w;
	size_t level, cap, count, bound;
	lade__cut (*cuts)[LADE_DIMS_MAX];
	lade__fit *fits;
	lade_item *items;
	lade_result *results;
	lade_segment src;
	uint8_t *memory;
};

bool lade__wave_fits(const lade__zwrite *w, size_t level)
{
	return !lade_kind_is_host(w->source.span.place.kind) && w->elem && w->plain &&
	       w->steps[level].count == 1 && !w->steps[level].n5 &&
	       !w->levels.level[level].chain->shard &&
	       w->largest[level] <= INT32_MAX && !(w->options.flags & LADE_ZARR_SKIP_FILL);
}

void lade__wave_free(lade__wave *wave)
{
	if (!wave)
		return;
	free(wave->cuts);
	free(wave->fits);
	free(wave->items);
	free(wave->results);
	free(wave->memory);
	free(wave);
}

lade_status lade__wave_new(const lade__zwrite *w, size_t level, lade__wave **out, lade_error *err)
{
	lade__wave *wave = calloc(1, sizeof *wave);
	*out = wave;
	if (wave) {
		size_t bound = lade__steps_bound(&w->steps[level], w->largest[level]);
		wave->w = w;
		wave->level = level;
		wave->bound = bound;
		wave->cap = bound > WAVE_BYTES / 2 ? 1 : WAVE_BYTES / (bound + 1);
		wave->cap = wave->cap > WAVE_CHUNKS ? WAVE_CHUNKS : wave->cap;
		wave->cuts = calloc(wave->cap, sizeof *wave->cuts);
		wave->fits = calloc(wave->cap, sizeof *wave->fits);
		wave->items = calloc(wave->cap, sizeof *wave->items);
		wave->results = calloc(wave->cap, sizeof *wave->results);
		wave->memory = malloc(wave->cap * bound + 1);
	}
	if (wave && wave->cuts && wave->fits && wave->items && wave->results && wave->memory)
		return LADE_OK;
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for chunks of a device");
}

bool lade__wave_add(lade__wave *wave, const lade__cut *cut)
{
	const lade__zwrite *w = wave->w;
	const lade__goal goal = {w->strides, w->source.offset};
	size_t i = wave->count++;
	memcpy(wave->cuts[i], cut, w->selected.ndim * sizeof *cut);
	lade__fit_make(&wave->fits[i], &w->selected, &w->levels.level[wave->level], cut, &goal);
	wave->fits[i].layout.swap_size = w->pieces[0].swap;
	wave->src = (lade_segment){.data = w->source.span.data, .size = w->source.span.size,
	                           .place = w->source.span.place};
	size_t header = w->steps[wave->level].header[0];
	uint8_t *to = wave->memory + i * wave->bound;
	if (header)
		lade__le_put(to, lade__cut_count(w, cut) * w->elem, header);
	wave->items[i] = (lade_item){.src = &wave->src, .src_count = 1,
	                             .layout = &wave->fits[i].layout,
	                             .dst = lade_host_span(to + header, wave->bound - header)};
	return wave->count < wave->cap;
}

lade_status lade__wave_encode(lade__wave *wave, lade_error *err)
{
	const lade__zwrite *w = wave->w;
	lade_batch_options batch;
	batch_options(w, &batch);
	batch.where = w->options.where;
	batch.device = w->options.device;
	return lade_encode_into(w->engine, w->steps[wave->level].spec[0], wave->items, wave->count,
	                        wave->results, &batch, err);
}

size_t lade__wave_count(const lade__wave *wave)
{
	return wave->count;
}

const lade__cut *lade__wave_take(lade__wave *wave, size_t i, lade__encoded *out)
{
	size_t header = wave->w->steps[wave->level].header[0];
	*out = (lade__encoded){wave->memory + i * wave->bound, header + wave->results[i].size,
	                       false};
	if (i + 1 == wave->count)
		wave->count = 0;
	return wave->cuts[i];
}
