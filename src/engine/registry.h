/*
 * registry.h: the algorithms and implementations that an engine has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ENGINE_REGISTRY_H
#define LADE_ENGINE_REGISTRY_H

#include "base/set.h"

/* An algorithm's place in an engine: the library's own come first, in the same order always. */
typedef struct lade__slot {
	const lade_algorithm *algorithm;
	lade_algorithm *owned; /* the copy of a caller's record */
	uint16_t first[2];     /* by direction: index + 1 of its first implementation; 0: none */
} lade__slot;

/* The copy of a caller's table. */
typedef union lade__ops {
	lade_codec_ops codec;
	lade_tile_ops tile;
	lade_checksum_ops checksum;
} lade__ops;

/* An implementation.  'record' points to a table of the library's own or to 'owned'; on devices it
 * has none. */
typedef struct lade__entry {
	lade_implementation record;
	lade__ops *owned;
	const struct lade__gpu_codec *gpu; /* on devices; NULL: on the host */
	uint16_t next; /* index + 1 of the algorithm's next one in this direction; 0: the last */
} lade__entry;

/* Slots and entries are tables that grow by being replaced. */
typedef struct lade__registry {
	lade__slot *slots;
	size_t slot_count, slot_cap;
	lade__entry *entries;
	size_t entry_count, entry_cap;
} lade__registry;

lade_status lade__registry_init(lade__registry *registry, lade_error *err);
void lade__registry_reset(lade__registry *registry);

/* The slot of an algorithm; 'hint' is tried first.  NULL when the engine does not have it. */
const lade__slot *lade__registry_slot(const lade__registry *registry, unsigned hint,
                                      const lade_algorithm *algorithm);

/* The algorithm of the number 'id' (not 0), and its name's; engine NULL: ours only. */
const lade_algorithm *lade__engine_find_id(const lade_engine *engine, unsigned id);
const lade_algorithm *lade__engine_find_name(const lade_engine *engine, const char *name,
                                             size_t length);

/* An algorithm's place in a registry. */
uint16_t lade__engine_slot(const lade_engine *engine, const lade_algorithm *algorithm);

#endif
