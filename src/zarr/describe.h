/*
 * describe.h: from a description to documents.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_DESCRIBE_H
#define LADE_ZARR_DESCRIBE_H

#include "zarr/emit.h"

#include <lade/zarr_write.h>

/*
 * The document of a node (zarr.json, .zarray, .zgroup), checked, as zarr-python writes it.
 * 'attributes' gets .zattrs, in format 2.  'd' has all fields of this version.
 * 'name' is for messages.  Fails: as lade_zarr_create()
 */
lade_status lade__zarr_document(const lade_zarr_description *d, const lade_zarr_options *open,
                                const char *name, lade__text *document, lade__text *attributes,
                                lade_error *err);

/* Checks the document of an array, as opening with these options does. */
lade_status lade__zarr_check(const json *doc, uint32_t format, const lade_zarr_options *open,
                             lade_error *err);

#endif
