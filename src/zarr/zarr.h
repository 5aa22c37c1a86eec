/*
 * zarr.h (internal): an open node, and what the readers of its parts share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_INTERNAL_H
#define LADE_ZARR_INTERNAL_H

#include "zarr/json.h"

#include <lade/zarr.h>

#include <stdatomic.h>

/* Memory that a node keeps until its end. */
typedef struct arena_block arena_block;
typedef struct arena {
	arena_block *blocks;
} arena;

/* Zeroed memory; NULL: there is none. */
void *lade__arena(arena *from, size_t count, size_t size);
void lade__arena_free(arena *from);

/* A key of consolidated metadata, and its value. */
typedef struct member_key {
	const char *text; /* no NUL behind it */
	uint32_t size, value;
} member_key;

/* A document that members of a group share: consolidated metadata. */
typedef struct shared_doc {
	atomic_size_t refs;
	json doc;
	char *text;
	uint32_t metadata; /* the object of members */
	char name[LADE_KEY_MAX + 32];
	member_key *keys; /* in the order of their bytes, each once */
	size_t key_count;
	arena arena; /* of keys that are escaped in the document */
} shared_doc;

/* Specs that a node frees at its end. */
typedef struct kept_spec {
	lade_spec *spec;
	struct kept_spec *next;
} kept_spec;

struct lade_zarr {
	atomic_size_t refs;
	lade_store *store, *chunk_store;
	lade_zarr_options options;
	uint32_t format;
	bool is_array;
	bool key_prefix; /* keys begin with "c" */
	char separator;
	char *path;
	const char *attributes;
	lade_zarr_array array;
	shared_doc *members; /* consolidated, or NULL */
	const char *member_prefix; /* what the keys of its members begin with */
	const char **member_paths;
	size_t member_count;
	lade_object_version seen; /* of its document, by writes, under lade__key_lock() */
	arena arena;
	kept_spec *specs;
};

/* What reads a part of a document. */
typedef struct scan {
	const json *doc;
	lade_zarr *node;
	lade_error *err;
} scan;

/* The text of a value, or a string's characters, as text that the node keeps; NULL: no memory. */
const char *lade__scan_text(const scan *s, uint32_t at);
lade_status lade__scan_nomem(const scan *s, const char *what);
#define BAD(s, at, ...) lade__json_fail((s)->doc, at, LADE_E_CORRUPT, (s)->err, __VA_ARGS__)
#define UNKNOWN(s, at, ...) lade__json_fail((s)->doc, at, LADE_E_UNSUPPORTED, (s)->err, __VA_ARGS__)

/*
 * An extension of format 3: an object with "name" and maybe "configuration", or its name alone.
 * 'configuration' gets JSON_NONE if there is none; it is an object.
 * 'wanted': there must be one.
 */
lade_status lade__scan_named(const scan *s, uint32_t at, bool wanted, uint32_t *name,
                             uint32_t *configuration);

/* Fails for members that are not in 'known', names with a space behind each. */
lade_status lade__scan_members(const scan *s, uint32_t at, const char *known);

/* dtype.c */
lade_status lade__zarr_type_v2(const scan *s, uint32_t at, const char *object_codec,
                               lade_zarr_type *type);
lade_status lade__zarr_type_v3(const scan *s, uint32_t at, lade_zarr_type *type);

/* fill.c: sets fill, fill_size and fill_given of the node's array. */
lade_status lade__zarr_fill(const scan *s, uint32_t at);

/* The bits of the value nearest to 'value' in a float of 'exponent' and 'mantissa' bits. */
uint64_t lade__float_bits(double value, unsigned exponent, unsigned mantissa);

/* grid.c */
lade_status lade__zarr_shape(const scan *s, uint32_t at);
lade_status lade__zarr_grid_regular(const scan *s, uint32_t at);
lade_status lade__zarr_grid_v3(const scan *s, uint32_t at);
lade_status lade__zarr_keys_v3(const scan *s, uint32_t at);

/* chain.c */
lade_status lade__zarr_chain_v2(const scan *s, uint32_t root);
lade_status lade__zarr_chain_v3(const scan *s, uint32_t at);

/* members.c: consolidated members.  Sorts the keys of a document; finds a member's value, 'name' is
 * the document's of format 2; lists the members below a node. */
lade_status lade__members_sort(shared_doc *shared, lade_error *err);
uint32_t lade__members_find(const lade_zarr *group, const char *path, const char *name);
lade_status lade__members_list(lade_zarr *node, lade_error *err);
void lade__members_unref(shared_doc *shared); /* NULL is fine */

/* array.c: the whole document of an array. */
lade_status lade__zarr_array_v2(const scan *s, uint32_t root);
lade_status lade__zarr_array_v3(const scan *s, uint32_t root);

#endif
