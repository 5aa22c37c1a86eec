/*
 * update.h: what changes of shapes share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_UPDATE_H
#define LADE_ZARR_UPDATE_H

#include "zarr/emit.h"

#include <lade/zarr_write.h>

/* A change of an array's shape: to 'shape', or by 'grow' elements along 'axis'. */
typedef struct lade__reshape {
	uint64_t shape[LADE_DIMS_MAX]; /* the result */
	uint64_t old[LADE_DIMS_MAX];   /* what the document had */
	uint64_t grow;
	size_t axis, ndim;
	bool sync; /* lade_io_options */
	uint32_t format;
	const lade_zarr_options *open;
} lade__reshape;

/* Writes the document with the new shape. */
lade_status lade__zarr_reshape(const lade_zarr *array, lade__reshape *reshape, lade_error *err);

/* The key of a node's document, or of the one with its attributes. */
lade_status lade__zarr_document_key(const lade_zarr *node, bool attributes,
                                    char key[LADE_KEY_MAX + 1], lade_error *err);

/* Deletes the chunks that have no elements in the shape of 'array'. */
lade_status lade__zarr_delete_outside(const lade_zarr *array, lade_error *err);

/* same.c: checks that the array in the store has the handle's layout, and is not smaller.  'wrote':
 * the caller's chunks that are outside now are deleted.
 * Fails: LADE_E_CHANGED, LADE_E_NOT_FOUND, and as lade_zarr_open() */
lade_status lade__zarr_still(lade_zarr *array, bool wrote, lade_error *err);

/* Opens a node again, with its options; 'out' may be NULL. */
lade_status lade__zarr_again(const lade_zarr *node, lade_zarr **out, lade_error *err);

#endif
