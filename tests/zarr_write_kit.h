/*
 * zarr_write_kit.h: arrays of a few elements that tests write.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_ZARR_WRITE_KIT_H
#define LADE_TESTS_ZARR_WRITE_KIT_H

#include "zarr_kit.h"

static inline lade_store *memory(void)
{
	lade_store *store;
	KIT_CHECK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &kit_err));
	return store;
}

static inline lade_zarr *create(lade_store *store, lade_zarr_description d)
{
	lade_zarr *node;
	d.struct_size = sizeof d;
	d.kind = LADE_ZARR_ARRAY;
	KIT_CHECK(lade_zarr_create(store, "a", &d, NULL, &node, &kit_err));
	return node;
}

static inline void write_text(lade_zarr *node, const char *text, const void *data, size_t size)
{
	lade_zarr_selection *selection;
	KIT_CHECK(lade_zarr_selection_parse(node, text, &selection, &kit_err));
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(data, size)};
	KIT_CHECK(lade_zarr_write(node, selection, &source, NULL, NULL, &kit_err));
	lade_zarr_selection_free(selection);
}

static inline void read_all(lade_zarr *node, void *data, size_t size)
{
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(data, size)};
	KIT_CHECK(lade_zarr_read(node, NULL, &target, NULL, NULL, &kit_err));
}

static inline bool is_there(lade_store *store, const char *key)
{
	return lade_store_look(store, key, NULL, NULL, NULL) == LADE_OK;
}

#endif
