/*
 * device_arrays.c: arrays of the Arrow C device interface: which device has them, and when they are
 * there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "share/emit.h"

#include <lade/dlpack.h>

#include <string.h>

/* Work that the caller has recorded for own memory; and for what is below. */
static lade_status wait_for_arrays(lade__emitted *p, const struct ArrowArray *a, unsigned depth,
                                   lade_error *err)
{
	lade_status status = LADE_OK;

	if (!a || depth > LADE__DEPTH_MAX)
		return LADE_OK; /* the walk says what is wrong */
	for (int64_t i = 0; a->buffers && i < a->n_buffers; i++) {
		lade__area *area =
			a->buffers[i] ? lade__area_find(p->areas, a->buffers[i], 1) : NULL;
		if (area && area->array)
			TRY(lade_array_wait(area->array, err));
	}
	for (int64_t i = 0; a->children && i < a->n_children; i++)
		TRY(wait_for_arrays(p, a->children[i], depth + 1, err));
	TRY(wait_for_arrays(p, a->dictionary, depth + 1, err));
out:
	return status;
}

lade_status lade__emit_find_device(lade__emitted *p, const lade_share_table *table, lade_error *err)
{
	const struct ArrowDeviceArray *const *list = table->device_batches;
	lade_place place, first = LADE_PLACE_HOST;
	lade_status status = LADE_OK;

	for (size_t i = 0; i < table->batch_count; i++) {
		const struct ArrowDeviceArray *a = list[i];
		if (!a || !a->array.release)
			TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			              "array %zu is NULL or released", i));
		if (a->device_id != (int32_t)a->device_id)
			TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "array %zu: no device %lld",
			              i, (long long)a->device_id));
		TRY(lade_place_from_dlpack(a->device_type, (int32_t)a->device_id, &place, err));
		if (place.kind != LADE_DEVICE)
			place.device = 0;
		first = i ? first : place;
		if ((place.kind == LADE_DEVICE || first.kind == LADE_DEVICE) &&
		    (place.kind != first.kind || place.device != first.device))
			TRY(lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			              "array %zu is in %s memory of device %d, the first in %s "
			              "memory of %d",
			              i, lade_kind_name(place.kind), (int)place.device,
			              lade_kind_name(first.kind), (int)first.device));
		if (place.kind == LADE_DEVICE)
			TRY(lade__device_get(place.device, &p->device, err));
		if (a->sync_event) {
			void *event;
			lade__device *d;
			memcpy(&event, a->sync_event, sizeof event);
			TRY(lade__device_use((int32_t)a->device_id, &d, err));
			status = LADE__CU(d, cuEventSynchronize, event);
			lade__device_leave(d);
			TRY(status);
		}
		TRY(wait_for_arrays(p, &a->array, 0, err));
	}
out:
	return status;
}
