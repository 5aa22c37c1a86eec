/*
 * plan.c: a read, made ready: what is checked and chosen before any chunk is read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/try.h"
#include "batch/gpu/kept.h"
#include "io/io.h"
#include "store/store.h"
#include "zarr/plan.h"

#include <stdlib.h>
#include <string.h>

/* ---- the element ------------------------------------------------------------------------- */

/* Adds the parts of a type at 'off' of the stored element; neighbours without a byte order are
 * joined.  False: too many. */
static bool add_parts(lade__zread *r, const lade_zarr_type *type, uint64_t off, size_t swap,
                      uint64_t base)
{
	for (size_t i = 0; i < type->field_count; i++) {
		const lade_zarr_type *inner = &type->fields[i].type;
		size_t own = swap ? swap : inner->big ? inner->swap_size : 0;
		if (!add_parts(r, inner, off + type->fields[i].off, own, base))
			return false;
	}
	if (type->field_count)
		return true;
	lade__piece_of *last = r->part_count ? &r->parts[r->part_count - 1] : NULL;
	if (last && last->off + last->size == off && last->swap == swap) {
		last->size += (size_t)type->size;
		return true;
	}
	if (r->part_count == LADE__PARTS_MAX)
		return false;
	r->parts[r->part_count++] = (lade__piece_of){.off = (size_t)off,
	                                         .size = (size_t)type->size,
	                                         .to = (size_t)(off - base),
	                                         .swap = swap};
	return true;
}

static lade_status take_element(lade__zread *r, lade_error *err)
{
	const lade__selected *s = &r->selected;
	const lade_zarr_type *type = &s->result.type;
	size_t swap = r->levels.level[r->levels.count - 1].chain->swap_size;
	size_t elem = s->result.elem_size;
	if (r->array->type.field_count && !type->field_count && type->big)
		swap = type->swap_size; /* a field's own */
	if (elem == 0)
		return lade__texts_new(r, err);
	if (!add_parts(r, type, s->field_off, swap, s->field_off))
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "more than %d fields with byte orders of their own",
		                 LADE__PARTS_MAX);
	r->fill = calloc(1, elem);
	if (!r->fill)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a fill value");
	if (r->array->fill && r->array->fill_size == r->array->type.size)
		memcpy(r->fill, (const uint8_t *)r->array->fill + s->field_off, elem);
	r->fill_same = true;
	for (size_t i = 1; i < elem; i++)
		r->fill_same = r->fill_same && r->fill[i] == r->fill[0];
	return LADE_OK;
}

/* Bytes of a result that caches do not keep until it is used. */
#define LARGE ((uint64_t)32 << 20)

/* ---- target and options -------------------------------------------------------------------- */

static lade_status take_target(lade__zread *r, const lade_zarr_target *given, lade_error *err)
{
	const lade_zarr_shape *result = &r->selected.result;
	lade_status status =
		lade__options_read(&r->target, sizeof r->target, given, "target", err);
	ptrdiff_t stride = (ptrdiff_t)result->elem_size;
	if (status != LADE_OK)
		return status;
	for (size_t i = result->ndim; i-- > 0 && !r->texts;) {
		r->strides[i] = r->target.strides ? r->target.strides[i] : stride;
		stride *= result->count ? (ptrdiff_t)result->shape[i] : 0;
	}
	r->target.strides = r->strides;
	if (r->texts && (r->target.place || r->target.span.data))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "elements of type '%s' have no fixed size and no target: see "
		                 "lade_zarr_plan_fill()", r->array->type.name);
	if (r->texts)
		return LADE_OK;
	if (r->target.place) {
		if (r->selected.listed || r->selected.points)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "target: a callback for lists, masks or points");
		return LADE_OK;
	}
	status = lade__place_fits(result, r->strides, r->target.span, r->target.offset, err);
	if (status == LADE_OK)
		status = lade__io_place_check(r->target.span.place, r->target.span.data,
		                              r->target.span.size, "target", 0, err);
	return status;
}

/* Encoded bytes that are on their way: few, or what a device is busy with. */
#define HOST_MEMORY   ((uint64_t)64 << 20)
#define FED_MEMORY    ((uint64_t)128 << 20)
#define DEVICE_MEMORY ((uint64_t)256 << 20)

/* How chunks come, and in which memory. */
static void choose_way(lade__zread *r)
{
	const bool given = r->options.memory != 0;
	r->local = !r->device && (r->node->chunk_store->ops.flags & LADE_STORE_LOCAL) != 0;
	if (!given)
		r->options.memory = r->device ? FED_MEMORY : HOST_MEMORY;
	r->fed = lade__leaves_can_be_fed(r);
	if (r->fed || !r->device || given)
		return;
	r->options.memory = DEVICE_MEMORY;
	r->fed = lade__leaves_can_be_fed(r);
}

static lade_status take_options(lade__zread *r, const lade_zarr_read_options *given,
                                lade_error *err)
{
	const uint32_t known = LADE_ZARR_IGNORE_CHECKSUMS | LADE_ZARR_NEED_CHUNKS;
	lade_zarr_read_options *o = &r->options;
	lade_status status = lade__options_read(o, sizeof *o, given, "zarr read options", err);
	if (status != LADE_OK)
		return status;
	if (o->flags & ~known || (unsigned)o->where > LADE_WHERE_DEVICE)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "zarr read options: flags 0x%x, known are 0x%x; where %d",
		                 o->flags, known, (int)o->where);
	r->given_engine = o->engine ? o->engine
	                  : r->node->options.engine
	                          ? (lade_engine *)(uintptr_t)r->node->options.engine
	                          : lade_engine_default();
	if (!r->given_engine)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an engine");
	r->job.flags = o->flags & LADE_ZARR_IGNORE_CHECKSUMS ? LADE_BATCH_IGNORE_CHECKSUMS : 0;
	status = lade__engine_for(r->given_engine, o->allocators, &r->engine, err);
	if (status == LADE_OK)
		r->pinned = lade__gpu_pinned_kept(r->engine);
	return status;
}

/* ---- chunks ------------------------------------------------------------------------------- */

/* The largest leaf along each axis. */
static lade_status take_chunks(lade__zread *r, lade_error *err)
{
	const lade__level *leaf = &r->levels.level[r->levels.count - 1];
	lade__cut cut[LADE_DIMS_MAX];
	for (size_t a = 0; a < r->selected.ndim; a++) {
		const lade_zarr_axis *axis = &r->array->axes[a];
		cut[a].size = r->levels.count > 1 ? leaf->size[a] : axis->chunk_size;
		for (size_t i = 0; i < axis->run_count && r->levels.count == 1; i++)
			if (axis->runs[i].length > cut[a].size)
				cut[a].size = axis->runs[i].length;
	}
	r->chunk_max = lade__cut_bytes(r, cut);
	if (r->chunk_max == SIZE_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a chunk has more bytes than fit the memory of a process");
	lade_status status = lade__coding_make(r, leaf->chain, r->chunk_max, &r->coding, err);
	if (status != LADE_OK)
		return status;
	if (r->texts) { /* of any size: most are small */
		r->encoded_cap = (size_t)64 << 10;
		r->encoded_most = (uint64_t)4 << 30;
		return LADE_OK;
	}
	size_t last = r->coding.count - 1, cap = r->coding.bound[last];
	cap = lade_spec_bound(r->coding.spec[last], cap);
	r->encoded_cap = cap + (r->coding.step ? r->coding.step[last].header_size : 0);
	r->encoded_most = (uint64_t)r->encoded_cap * 2 + ((uint64_t)1 << 20);
	return LADE_OK;
}

lade_status lade__zread_init(lade__zread *r, const lade_zarr *array,
                             const lade_zarr_selection *selection, const lade_zarr_target *target,
                             const lade_zarr_read_options *options, lade_error *err)
{
	memset(r, 0, sizeof *r);
	lade_status status = lade__select(array, selection, &r->selected, err);
	if (status != LADE_OK)
		return status;
	pthread_mutex_init(&r->mutex, NULL);
	r->node = lade_zarr_ref((lade_zarr *)(uintptr_t)array);
	r->array = &array->array;
	TRY(take_options(r, options, err));
	TRY(lade__levels_make(r->array, &r->levels, err));
	TRY(take_element(r, err));
	TRY(take_target(r, target, err));
	r->job.large = r->selected.result.size >= LARGE;
	TRY(lade_spec_parse(r->engine, "copy", &r->copy, err));
	TRY(take_chunks(r, err));
	r->raw = !r->coding.step && !r->texts;
	lade__zread_count(r);
	r->device = r->target.span.place.kind == LADE_DEVICE ||
	            r->target.span.place.kind == LADE_MANAGED ||
	            r->options.where == LADE_WHERE_DEVICE;
	choose_way(r);
out:
	if (status != LADE_OK)
		lade__zread_reset(r);
	return status;
}

void lade__zread_reset(lade__zread *r)
{
	lade__blanks_free(r);
	lade__texts_free(r);
	lade_spec_unref(r->copy);
	free(r->fill);
	if (r->engine)
		lade__engine_done(r->given_engine, r->engine);
	lade_zarr_unref(r->node);
	lade__selected_free(&r->selected);
	pthread_mutex_destroy(&r->mutex);
}
