/*
 * write.c: writes elements: what is checked first, the threads, and the values in the store.
 *
 *	a whole chunk    written, whatever is there
 *	a part of one    old value and version --> new value --> written if the version is the same
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/write.h"

#include "base/options.h"
#include "base/try.h"
#include "store/store.h"
#include "zarr/edit.h"
#include "zarr/read.h"
#include "zarr/update.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the element ------------------------------------------------------------------------- */

/* Adds the pieces of a type at 'off' of the stored element, which is at 'off' - 'base' of the
 * source's; neighbours without a byte order are joined.  False: too many. */
static bool add_pieces(lade__zwrite *w, const lade_zarr_type *type, uint64_t off, uint64_t base)
{
	for (size_t i = 0; i < type->field_count; i++)
		if (!add_pieces(w, &type->fields[i].type, off + type->fields[i].off, base))
			return false;
	if (type->field_count)
		return true;
	size_t swap = type->big ? type->swap_size : 0;
	lade__piece_of *last = w->piece_count ? &w->pieces[w->piece_count - 1] : NULL;
	if (last && last->off + last->size == off && last->swap == swap) {
		last->size += (size_t)type->size;
		return true;
	}
	if (w->piece_count == LADE__PIECES_MAX)
		return false;
	w->pieces[w->piece_count++] = (lade__piece_of){
		.off = (size_t)off, .size = (size_t)type->size, .to = (size_t)(off - base),
		.swap = swap};
	return true;
}

/* The fill value as it is stored. */
static void to_stored(const lade_zarr_type *type, uint8_t *bytes)
{
	for (size_t i = 0; i < type->field_count; i++)
		to_stored(&type->fields[i].type, bytes + type->fields[i].off);
	for (uint64_t at = 0; type->big && at < type->size; at += type->swap_size)
		for (size_t i = 0, k = type->swap_size - 1; i < k; i++, k--) {
			uint8_t byte = bytes[at + i];
			bytes[at + i] = bytes[at + k];
			bytes[at + k] = byte;
		}
}

static lade_status take_element(lade__zwrite *w, lade_error *err)
{
	const lade__selected *s = &w->selected;
	w->elem = (size_t)w->array->type.size;
	if (!add_pieces(w, &s->result.type, s->field_off, s->field_off))
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "more than %d fields with byte orders of their own",
		                 LADE__PIECES_MAX);
	w->plain = w->piece_count == 1 && s->result.elem_size == w->elem && !s->listed &&
	           !s->points;
	w->fill = calloc(1, w->elem + 1);
	if (!w->fill)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a fill value");
	if (w->elem && w->array->fill_size == w->elem)
		memcpy(w->fill, w->array->fill, w->elem);
	to_stored(&w->array->type, w->fill);
	return LADE_OK;
}

/* ---- chains ------------------------------------------------------------------------------ */

/* The bytes of the largest chunk of a level. */
static lade_status largest(const lade__zwrite *w, size_t level, size_t *size, lade_error *err)
{
	lade__cut cut[LADE_DIMS_MAX];
	for (size_t a = 0; a < w->selected.ndim; a++) {
		const lade_zarr_axis *axis = &w->array->axes[a];
		cut[a].size = level ? w->levels.level[level].size[a] : axis->chunk_size;
		for (size_t i = 0; i < axis->run_count && level == 0; i++)
			if (axis->runs[i].length > cut[a].size)
				cut[a].size = axis->runs[i].length;
	}
	size_t count = lade__cut_count(w, cut);
	if (__builtin_mul_overflow(count, w->elem ? w->elem : 1, size) || *size > SIZE_MAX / 4)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a chunk has more bytes than fit the memory of a process");
	return LADE_OK;
}

static lade_status take_chains(lade__zwrite *w, lade_error *err)
{
	lade_status status = LADE_OK;
	for (size_t i = 0; i < w->levels.count; i++) {
		const lade_zarr_chain *chain = w->levels.level[i].chain;
		TRY(largest(w, i, &w->largest[i], err));
		TRY(lade__steps_make(w, chain->steps, chain->step_count, w->largest[i],
		                     &w->steps[i], err));
		if (!chain->shard)
			continue;
		TRY(lade__steps_make(w, chain->shard->index.steps, chain->shard->index.step_count,
		                     4096, &w->index[i], err));
	}
out:
	return status;
}

/* ---- source and options -------------------------------------------------------------------- */

/* Whether all elements are inside the span; a stride of 0 is fine here. */
static lade_status source_fits(const lade__zwrite *w, lade_error *err)
{
	lade_zarr_shape shape = w->selected.result;
	for (size_t i = 0; i < shape.ndim; i++)
		if (w->strides[i] == 0 && shape.shape[i] > 1)
			shape.shape[i] = 1;
	lade_span span = {(void *)(uintptr_t)w->source.span.data, w->source.span.size,
	                  w->source.span.place};
	lade_status status = lade__place_fits(&shape, w->strides, span, w->source.offset, err);
	if (status != LADE_OK && err && strncmp(err->message, "target", 6) == 0)
		memcpy(err->message, "source", 6);
	return status;
}

static lade_status take_source(lade__zwrite *w, const lade_zarr_source *given, lade_error *err)
{
	const lade_zarr_shape *result = &w->selected.result;
	ptrdiff_t stride = (ptrdiff_t)result->elem_size;
	lade_status status =
		lade__options_read(&w->source, sizeof w->source, given, "source", err);
	if (status != LADE_OK)
		return status;
	for (size_t i = result->ndim; i-- > 0;) {
		w->strides[i] = w->source.strides ? w->source.strides[i] : stride;
		stride *= result->count ? (ptrdiff_t)result->shape[i] : 0;
	}
	if ((unsigned)w->source.span.place.kind >= LADE_KIND_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "source: kind %d is unknown",
		                 (int)w->source.span.place.kind);
	if (w->elem)
		return source_fits(w, err);
	if (!w->source.offsets || w->source.strides ||
	    !lade_kind_is_host(w->source.span.place.kind))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "source: elements of type '%s' want offsets, no strides, and a "
		                 "span on the host", w->array->type.name);
	return LADE_OK;
}

static lade_status take_options(lade__zwrite *w, const lade_zarr_write_options *given,
                                lade_error *err)
{
	lade_zarr_write_options *o = &w->options;
	lade_status status = lade__options_read(o, sizeof *o, given, "zarr write options", err);
	if (status != LADE_OK)
		return status;
	const uint32_t known = LADE_ZARR_SKIP_FILL | LADE_ZARR_SYNC | LADE_ZARR_MORTON;
	if (o->flags & ~known || (unsigned)o->where > LADE_WHERE_DEVICE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "zarr write options: flags 0x%x, known are 0x%x; where %d",
		                 o->flags, known, (int)o->where);
	w->given_engine = o->engine ? o->engine
	                  : w->node->options.engine
	                          ? (lade_engine *)(uintptr_t)w->node->options.engine
	                          : lade_engine_default();
	if (!w->given_engine)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an engine");
	return lade__engine_for(w->given_engine, o->allocators, &w->engine, err);
}

static void reset(lade__zwrite *w)
{
	lade_spec_unref(w->copy);
	free(w->fill);
	if (w->engine)
		lade__engine_done(w->given_engine, w->engine);
	lade_zarr_unref(w->node);
	lade__selected_free(&w->selected);
	pthread_mutex_destroy(&w->mutex);
}

static lade_status init(lade__zwrite *w, const lade_zarr *array,
                        const lade_zarr_selection *selection, const lade_zarr_source *source,
                        const lade_zarr_write_options *options, lade_error *err)
{
	memset(w, 0, sizeof *w);
	lade_status status = lade__select(array, selection, &w->selected, err);
	if (status != LADE_OK)
		return status;
	pthread_mutex_init(&w->mutex, NULL);
	w->node = lade_zarr_ref((lade_zarr *)(uintptr_t)array);
	w->array = &array->array;
	w->report.struct_size = sizeof w->report;
	TRY(take_options(w, options, err));
	w->stop = lade__stop_of(w->options.cancel);
	TRY(lade__levels_make(w->array, &w->levels, err));
	TRY(take_element(w, err));
	TRY(take_source(w, source, err));
	TRY(lade_spec_parse(w->engine, "copy", &w->copy, err));
	TRY(take_chains(w, err));
out:
	if (status != LADE_OK)
		reset(w);
	return status;
}

/* ---- values ------------------------------------------------------------------------------ */

static lade_status new_bytes(lade__zwrite *w, const lade__target *t, lade__encoded old,
                             lade__encoded *out, lade_worker *worker, lade_error *err)
{
	return w->levels.level[0].chain->shard ? lade__write_shard(w, t, old, out, worker, err)
	                                       : lade__write_chunk(w, t, old, out, worker, err);
}

static void note(lade__zwrite *w, const lade__encoded *now, size_t read_size, bool conflict)
{
	pthread_mutex_lock(&w->mutex);
	w->report.conflict_count += conflict;
	w->report.value_count += !conflict && now->data;
	w->report.delete_count += !conflict && !now->data;
	w->report.written_size += conflict ? 0 : now->size;
	w->report.read_size += read_size;
	pthread_mutex_unlock(&w->mutex);
}

/* One try to replace a value by what the source makes of it. */
static lade_status change_once(lade__zwrite *w, const lade__target *t, const char *key,
                               lade_worker *worker, lade_error *err)
{
	const lade_io_options io = {.struct_size = sizeof io, .threads = 1,
	                            .request_size = sizeof(lade_range),
	                            .cancel = w->options.cancel};
	const lade_io_options write_io = {.struct_size = sizeof io,
	                                  .request_size = sizeof(lade_write),
	                                  .cancel = w->options.cancel,
	                                  .sync = w->options.flags & LADE_ZARR_SYNC};
	lade_store *store = w->node->chunk_store;
	lade__value old = {0};
	lade__encoded now = {0};
	lade_status status = LADE_OK;
	if (!t->whole)
		status = lade__value_read(store, key, SIZE_MAX / 8, &io, &old, err);
	/* A zip file that is being written: nobody else writes it. */
	bool blind = t->whole || (status == LADE_E_UNSUPPORTED && lade__is_covered(w, t->cut));
	status = blind ? LADE_OK : status;
	if (status == LADE_OK)
		status = new_bytes(w, t, (lade__encoded){old.bytes, old.size, false}, &now, worker,
		                   err);
	lade_write write = {.key = key, .src = lade_host_cspan(now.data, now.size)};
	if (status == LADE_OK && blind) {
		write.kind = now.data ? LADE_WRITE_ALWAYS : LADE_DELETE_IF_VERSION;
		status = lade_store_write(store, &write, 1, &write_io, NULL, err);
		status = status == LADE_E_NOT_FOUND && !now.data ? LADE_OK : status;
	} else if (status == LADE_OK) {
		status = lade__value_replace(store, key, &old, write.src, &write_io, err);
	}
	if (status == LADE_OK || status == LADE_E_CHANGED)
		note(w, &now, old.size, status != LADE_OK);
	if (now.owned)
		free(now.data);
	free(old.bytes);
	return status;
}

static lade_status write_value(lade__zwrite *w, lade__target *t, const char *key,
                               lade_worker *worker, lade_error *err)
{
	t->whole = lade__is_whole(w, t->cut);
	if (t->whole)
		return change_once(w, t, key, worker, err);
	lade_status status = LADE_E_CHANGED;
	for (unsigned i = 0; i < LADE__TRIES && status == LADE_E_CHANGED; i++) {
		if (i)
			lade__try_pause(i);
		lade__key_lock(w->node->chunk_store, key);
		status = change_once(w, t, key, worker, err);
		lade__key_unlock(w->node->chunk_store, key);
	}
	return status;
}

/* ---- threads ----------------------------------------------------------------------------- */

static bool take(lade__zwrite *w, lade__cut *cut, lade__points *points)
{
	pthread_mutex_lock(&w->mutex);
	w->ended = w->ended || w->status != LADE_OK || !lade__walk_next(&w->walk);
	bool have = !w->ended;
	if (have)
		memcpy(cut, w->walk.cut, w->selected.ndim * sizeof *cut);
	*points = w->walk.points;
	pthread_mutex_unlock(&w->mutex);
	return have;
}

static void work(void *ctx, size_t index, lade_worker *worker)
{
	lade__zwrite *w = ctx;
	lade__cut cut[LADE_DIMS_MAX];
	uint64_t chunk[LADE_DIMS_MAX];
	char key[LADE_KEY_MAX + 1];
	lade__points points;
	lade_error err;
	(void)index;
	while (take(w, cut, &points)) {
		for (size_t a = 0; a < w->selected.ndim; a++)
			chunk[a] = cut[a].chunk;
		key[0] = 0;
		lade_status status = lade_zarr_chunk_key(w->node, chunk, key, &err);
		if (status == LADE_OK && lade__stopped(&w->stop))
			status = lade__stop_fail(&err);
		if (status == LADE_OK)
			{
			lade__target t = {.cut = cut, .points = points};
			status = write_value(w, &t, key, worker, &err);
		}
		if (status == LADE_OK)
			continue;
		pthread_mutex_lock(&w->mutex);
		if (w->status == LADE_OK)
			lade_fail(&w->error, status, err.offset, "key '%.120s': %s", key,
			          err.message);
		w->status = w->status == LADE_OK ? status : w->status;
		pthread_mutex_unlock(&w->mutex);
	}
}

static lade_status run(lade__zwrite *w, lade_error *err)
{
	unsigned threads = w->options.threads ? w->options.threads : w->engine->threads;
	uint64_t began_ns = lade__now_ns();
	lade__calls calls = {work, w, .grain = 1, .threads = threads};
	lade__walk_begin(&w->walk, &w->selected, &w->levels.level[0], NULL,
	                 lade__all_points(&w->selected));
	/* A call for each chunk, at most one a thread: no thread is woken for nothing. */
	lade__walk ahead = w->walk;
	while (calls.count < threads && lade__walk_next(&ahead))
		calls.count++;
	lade_status status = lade__engine_parallel(w->engine, &calls, err);
	w->report.ns = lade__now_ns() - began_ns;
	if (status == LADE_OK && w->status != LADE_OK)
		status = lade_fail(err, w->status, w->error.offset, "%s", w->error.message);
	return status;
}

lade_status lade_zarr_write(const lade_zarr *array, const lade_zarr_selection *selection,
                            const lade_zarr_source *source, const lade_zarr_write_options *options,
                            lade_zarr_write_report *report, lade_error *err)
{
	lade_zarr_write_report check;
	lade_status status = LADE_OK;
	if (!source)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "source is NULL");
	lade__zwrite *w = malloc(sizeof *w);
	if (!w)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a write");
	if (report)
		status = lade__options_read(&check, sizeof check, report, "report", err);
	if (status == LADE_OK)
		status = init(w, array, selection, source, options, err);
	if (status != LADE_OK) {
		free(w);
		return status;
	}
	status = lade__zarr_still(w->node, false, err);
	if (status == LADE_OK) {
		status = run(w, err);
		lade_status still = lade__zarr_still(w->node, true, status ? NULL : err);
		status = status == LADE_OK ? still : status;
	}
	if (report) {
		size_t size = report->struct_size;
		w->report.struct_size = size;
		lade__struct_copy(report, size, &w->report, sizeof w->report);
	}
	reset(w);
	free(w);
	return status;
}

/* ---- appending --------------------------------------------------------------------------- */

lade_status lade_zarr_append_to(lade_zarr *array, const lade_zarr_append *append, uint64_t *at,
                                lade_zarr **out, lade_error *err)
{
	lade_zarr_append own;
	lade__reshape r = {.ndim = 0};
	lade_zarr_write_options write;
	lade_zarr *now = NULL;
	lade_zarr_index axes[LADE_DIMS_MAX] = {{.kind = LADE_ZARR_ALL}};
	lade_status status;
	if (out)
		*out = NULL;
	if (!array || !append || !array->is_array)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s",
		                 array && append ? "the node is no array"
		                                 : "array or append is NULL");
	TRY(lade__options_read(&own, sizeof own, append, "append", err));
	if (own.axis >= array->array.ndim || own.count == 0 || !own.source)
		TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		              "append: axis %zu of %zu, %" PRIu64 " elements%s", own.axis,
		              array->array.ndim, own.count, own.source ? "" : ", no source"));
	r.axis = own.axis;
	r.grow = own.count;
	TRY(lade__options_read(&write, sizeof write, own.options, "zarr write options", err));
	r.sync = write.flags & LADE_ZARR_SYNC;
	TRY(lade__zarr_reshape(array, &r, err));
	TRY(lade__zarr_again(array, &now, err));
	if (at)
		*at = r.old[own.axis];
	axes[own.axis] = (lade_zarr_index){.kind = LADE_ZARR_SLICE,
	                                   .start = (int64_t)r.old[own.axis],
	                                   .stop = (int64_t)r.shape[own.axis]};
	const lade_zarr_selection selection = {.struct_size = sizeof selection,
	                                       .axis_count = own.axis + 1, .axes = axes,
	                                       .index_size = sizeof axes[0]};
	TRY(lade_zarr_write(now, &selection, own.source, own.options, NULL, err));
	if (out) {
		*out = now;
		now = NULL;
	}
out:
	lade_zarr_unref(now);
	return status;
}
