/*
 * write_chunk.c: the new bytes of a chunk that holds no chunks.
 *
 *	all of it is written        the source's elements are encoded straight from where they are;
 *	                            or from scratch memory, if fill is looked for
 *	a part of it is written     the old chunk is decoded to scratch memory, the elements replace
 *	                            theirs, and it is encoded
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/n5.h"
#include "zarr/write.h"

#include <stdlib.h>
#include <string.h>

void lade__note_chunk(lade__zwrite *w, const lade__target *t, bool partial)
{
	uint64_t bytes = w->selected.result.elem_size;
	for (size_t a = 0; a < w->selected.ndim && !w->selected.points; a++)
		bytes *= t->cut[a].count;
	bytes *= w->selected.points ? t->points.count : 1;
	pthread_mutex_lock(&w->mutex);
	w->report.chunk_count++;
	w->report.partial_count += partial;
	w->report.source_size += bytes;
	pthread_mutex_unlock(&w->mutex);
}

/* Straight from the source: the chunk is one box of it. */
static lade_status encode_direct(lade__zwrite *w, const lade__target *t, lade__encoded *out,
                                 lade_worker *worker, lade_error *err)
{
	const lade__goal goal = {w->strides, w->source.offset};
	const lade_segment src = {.data = w->source.span.data, .size = w->source.span.size};
	lade__fit fit;
	lade__fit_make(&fit, &w->selected, &w->levels.level[t->level], t->cut, &goal);
	fit.layout.swap_size = w->pieces[0].swap;
	lade__note_chunk(w, t, false);
	const lade__coder coder = {w, &w->steps[t->level], worker};
	return lade__steps_encode(&coder, src, &fit.layout, out, err);
}

/* Where the source's elements are, for those that are copied. */
static lade_status look_at(const lade__zwrite *w, const lade__target *t, lade__view *view,
                           lade_error *err)
{
	if (!lade_kind_is_host(w->source.span.place.kind))
		return lade__fetch_elements(w, t, view, err);
	view->base = (uintptr_t)w->source.span.data + w->source.offset;
	memcpy(view->strides, w->strides, sizeof view->strides);
	return LADE_OK;
}

/* The shape of a chunk as the header of N5 has it: the stored axes, the fastest first. */
static void n5_shape(const lade__zwrite *w, const lade__target *t, uint64_t *shape)
{
	const lade__level *level = &w->levels.level[t->level];
	for (size_t a = 0; a < w->selected.ndim; a++)
		shape[w->selected.ndim - 1 - level->stored[a]] = t->cut[a].size;
}

/* An old block of N5, which may have another shape than its chunk. */
static lade_status decode_n5(const lade__coder *coder, const lade__target *t, lade_segment src,
                             lade_span chunk, lade_error *err)
{
	const lade__zwrite *w = coder->w;
	uint64_t shape[LADE_DIMS_MAX], block[LADE_DIMS_MAX];
	size_t ndim = w->selected.ndim, most = w->largest[t->level], size = w->elem, got;
	bool large = false;
	n5_shape(w, t, shape);
	lade_status status = lade__n5_read(src.data, src.size, ndim, block, err);
	for (size_t i = 0; i < ndim && status == LADE_OK; i++)
		large |= __builtin_mul_overflow(size, block[i], &size) || size > most;
	if (status != LADE_OK)
		return status;
	if (large)
		return lade_fail(err, LADE_E_CORRUPT, 4,
		                 "N5 block of more than %zu bytes, which no chunk has", most);
	if (memcmp(shape, block, ndim * sizeof *shape) == 0)
		return lade__steps_decode(coder, src, chunk, true, &got, err);
	uint8_t *memory = malloc(size + 1);
	if (!memory)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of a block", size);
	status = lade__steps_decode(coder, src, lade_host_span(memory, size), true, &got, err);
	if (status == LADE_OK) {
		lade__place_fill(w, chunk.data, chunk.size / w->elem);
		lade__n5_copy(memory, block, chunk.data, shape, ndim, w->elem);
	}
	free(memory);
	return status;
}

static lade_status write_chunk(lade__zwrite *w, const lade__target *t, lade__encoded old,
                               lade__encoded *out, lade_worker *worker, lade_error *err)
{
	const lade__coder coder = {w, &w->steps[t->level], worker};
	lade__view view = {.memory = NULL};
	size_t count = lade__cut_count(w, t->cut), got;
	bool skip = w->options.flags & LADE_ZARR_SKIP_FILL;
	*out = (lade__encoded){0};
	if (w->elem == 0)
		return lade__write_strings(w, t, old, out, worker, err);
	if (t->whole && w->plain && !skip && lade_kind_is_host(w->source.span.place.kind))
		return encode_direct(w, t, out, worker, err);
	size_t size = count * w->elem; /* at most w->chunk_max */
	uint8_t *chunk = lade__worker_block(worker, LADE__SCRATCH_FRAME, size + 1);
	lade_status status;
	if (!chunk)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for %zu bytes of a chunk", size);
	if (old.data && !t->whole) {
		const lade_segment src = {.data = old.data, .size = old.size};
		const lade_span span = lade_host_span(chunk, size);
		TRY(coder.steps->n5 ? decode_n5(&coder, t, src, span, err)
		                    : lade__steps_decode(&coder, src, span, true, &got, err));
	} else if (!t->whole) {
		lade__place_fill(w, chunk, count);
	}
	TRY(look_at(w, t, &view, err));
	lade__place_elements(w, t, &view, chunk);
	if (skip && lade__is_fill(w, chunk, count))
		goto out;
	lade__note_chunk(w, t, old.data && !t->whole);
	const lade_segment src = {.data = chunk, .size = size};
	status = lade__steps_encode(&coder, src, NULL, out, err);
out:
	free(view.memory);
	return status;
}

lade_status lade__write_chunk(lade__zwrite *w, const lade__target *t, lade__encoded old,
                              lade__encoded *out, lade_worker *worker, lade_error *err)
{
	uint64_t shape[LADE_DIMS_MAX];
	lade_status status = write_chunk(w, t, old, out, worker, err);
	if (status == LADE_OK && out->data && w->steps[t->level].n5) {
		n5_shape(w, t, shape);
		lade__n5_write(out->data, w->selected.ndim, shape);
	}
	return status;
}
