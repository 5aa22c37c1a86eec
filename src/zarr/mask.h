/*
 * mask.h: the header of 'conditional': which of the steps before it ran.
 *
 *	| bit i of the bytes, the lowest first: step i of the group ran | the result of the last one
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_MASK_H
#define LADE_ZARR_MASK_H

#include "base/support.h"

#include <lade/batch.h>
#include <lade/zarr.h>

/* What is known while steps are undone, from last to first. */
typedef struct lade__mask {
	uint64_t bits;
	uint32_t left; /* steps of the group that are still to be undone */
} lade__mask;

/* Takes the header off 'src'.  Bits that no step has must be 0. */
static inline lade_status lade__mask_take(lade__mask *mask, const lade_zarr_step *step,
                                          lade_segment *src, lade_error *err)
{
	const uint8_t *bytes = src->data;
	if (src->size < step->header_size)
		return lade_fail(err, LADE_E_TRUNCATED, src->size,
		                 "the header of a block: want %zu bytes, have %zu",
		                 step->header_size, src->size);
	*mask = (lade__mask){0, step->mask_count};
	for (size_t i = 0; i < step->header_size; i++) {
		size_t known = 8 * i < mask->left ? mask->left - 8 * i : 0;
		if (known < 8 && bytes[i] >> known)
			return lade_fail(err, LADE_E_CORRUPT, i,
			                 "byte %zu of a conditional chunk is 0x%02x, it has "
			                 "%lu codecs", i, bytes[i],
			                 (unsigned long)mask->left);
		mask->bits |= known ? (uint64_t)bytes[i] << 8 * i : 0;
	}
	src->data = bytes + step->header_size;
	src->size -= step->header_size;
	return LADE_OK;
}

/* Takes any header off 'src', but for that of N5. */
static inline lade_status lade__step_header(const lade_zarr_step *step, lade__mask *mask,
                                            lade_segment *src, lade_error *err)
{
	const size_t size = step->header_size;
	if (step->header == LADE_ZARR_HEADER_MASK)
		return lade__mask_take(mask, step, src, err);
	if (src->size < size)
		return lade_fail(err, LADE_E_TRUNCATED, src->size,
		                 "the header of a block: want %zu bytes, have %zu", size,
		                 src->size);
	if (step->header == LADE_ZARR_HEADER_SIZE)
		src->decoded_size = lade__le32(src->data);
	src->data = (const uint8_t *)src->data + size;
	src->size -= size;
	return LADE_OK;
}

/* Whether the next step before is to be undone. */
static inline bool lade__mask_next(lade__mask *mask)
{
	return mask->left == 0 || (mask->bits >> --mask->left & 1);
}

#endif
