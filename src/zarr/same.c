/*
 * same.c: whether the array in the store is still the one that a handle describes.
 *
 *	look at the document's version --(as it was seen last)--> nothing is read
 *	                               --(another)--> open it again, compare layout and shape
 *
 * A write checks this before its first value and after its last one.  lade_zarr_resize() writes the
 * document first, then lists the chunks.  So a chunk outside the new shape is in that list, or its
 * writer sees the new document in the second check and deletes the chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "zarr/edit.h"
#include "zarr/update.h"

#include <inttypes.h>
#include <string.h>

/* ---- layouts ----------------------------------------------------------------------------- */

static bool same_type(const lade_zarr_type *a, const lade_zarr_type *b)
{
	bool same = a->cls == b->cls && a->big == b->big && a->size == b->size &&
	            a->swap_size == b->swap_size && a->field_count == b->field_count &&
	            strcmp(a->name, b->name) == 0;
	for (size_t i = 0; same && i < a->field_count; i++)
		same = a->fields[i].off == b->fields[i].off &&
		       same_type(&a->fields[i].type, &b->fields[i].type);
	return same;
}

static bool same_chain(const lade_zarr_chain *a, const lade_zarr_chain *b, size_t ndim)
{
	if (a->step_count != b->step_count || a->array_step_count != b->array_step_count ||
	    a->swap_size != b->swap_size || !a->order != !b->order || !a->shard != !b->shard)
		return false;
	if (a->order && memcmp(a->order, b->order, ndim * sizeof *a->order) != 0)
		return false;
	for (size_t i = 0; i < a->step_count; i++) {
		const lade_zarr_step *x = &a->steps[i], *y = &b->steps[i];
		if (!x->spec || !y->spec || x->header != y->header ||
		    strcmp(lade_spec_text(x->spec), lade_spec_text(y->spec)) != 0)
			return false;
	}
	if (!a->shard)
		return true;
	return a->shard->index_first == b->shard->index_first &&
	       memcmp(a->shard->chunk_shape, b->shard->chunk_shape,
	              ndim * sizeof *a->shard->chunk_shape) == 0 &&
	       same_chain(&a->shard->index, &b->shard->index, 0) &&
	       same_chain(&a->shard->chunks, &b->shard->chunks, ndim);
}

/* All that the bytes and the key of a chunk depend on, but for the shape. */
static bool same_layout(const lade_zarr *a, const lade_zarr *b)
{
	size_t ndim = a->array.ndim;
	bool same = a->format == b->format && b->is_array && ndim == b->array.ndim &&
	            a->key_prefix == b->key_prefix && a->separator == b->separator &&
	            same_type(&a->array.type, &b->array.type) &&
	            a->array.fill_size == b->array.fill_size &&
	            (a->array.fill_size == 0 ||
	             memcmp(a->array.fill, b->array.fill, a->array.fill_size) == 0);
	for (size_t i = 0; same && i < ndim; i++) {
		const lade_zarr_axis *x = &a->array.axes[i], *y = &b->array.axes[i];
		same = x->chunk_size == y->chunk_size && x->run_count == y->run_count;
		for (size_t k = 0; same && k < x->run_count; k++)
			same = x->runs[k].length == y->runs[k].length &&
			       x->runs[k].count == y->runs[k].count;
	}
	return same && same_chain(&a->array.chain, &b->array.chain, ndim);
}

/* ---- the check --------------------------------------------------------------------------- */

/* 'now' is what the store has. */
static lade_status compare(const lade_zarr *array, const lade_zarr *now, bool wrote,
                           lade_error *err)
{
	lade_error ignored;
	if (!same_layout(array, now))
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "'%s' is another array than the one that was opened: open "
		                 "it again", array->path);
	for (size_t i = 0; i < array->array.ndim; i++) {
		uint64_t had = array->array.axes[i].size, has = now->array.axes[i].size;
		if (has >= had)
			continue;
		if (wrote)
			lade__zarr_delete_outside(now, &ignored);
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "'%s' has become smaller: axis %zu had %" PRIu64
		                 " elements, now it has %" PRIu64 ": open it again",
		                 array->path, i, had, has);
	}
	return LADE_OK;
}

lade_status lade__zarr_still(lade_zarr *array, bool wrote, lade_error *err)
{
	char key[LADE_KEY_MAX + 1];
	lade_object_version version = {0};
	lade_zarr *now = NULL;
	lade_status status;
	TRY(lade__zarr_document_key(array, false, key, err));
	status = lade_store_look(array->store, key, NULL, &version, err);
	if (status == LADE_E_UNSUPPORTED)
		return LADE_OK; /* a zip file that is being written: nobody else writes */
	if (status == LADE_E_NOT_FOUND)
		return lade_fail(err, status, LADE_NO_OFFSET, "%s: there is no such array now",
		                 key);
	if (status != LADE_OK)
		return status;
	lade__key_lock(array->store, key);
	bool seen = version.size && lade_object_version_equal(&version, &array->seen);
	lade__key_unlock(array->store, key);
	if (seen)
		return LADE_OK;
	TRY(lade__zarr_again(array, &now, err));
	TRY(compare(array, now, wrote, err));
	/* It is of this version or a later one, and versions do not come back. */
	lade__key_lock(array->store, key);
	array->seen = version;
	lade__key_unlock(array->store, key);
out:
	lade_zarr_unref(now);
	return status;
}
