/*
 * arrow.h: Arrow's structs and types, and the schema of a version.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_ARROW_H
#define LADE_SHARE_ARROW_H

#include "share/wire.h"

/* ---- the ABI of the Arrow C data interface ---------------------------------------------- */

struct ArrowSchema {
	const char *format, *name, *metadata;
	int64_t flags, n_children;
	struct ArrowSchema **children, *dictionary;
	void (*release)(struct ArrowSchema *self);
	void *private_data;
};

struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children, *dictionary;
	void (*release)(struct ArrowArray *self);
	void *private_data;
};

struct ArrowDeviceArray {
	struct ArrowArray array;
	int64_t device_id;   /* -1: the host */
	int32_t device_type; /* as DLPack's */
	void *sync_event;    /* to a CUevent; NULL: nothing to wait for */
	int64_t reserved[3];
};

/* ---- memory ----------------------------------------------------------------------------- */

/* Blocks that go all at once. */
typedef struct lade__blocks {
	struct lade__blocks_one *last;
} lade__blocks;

/* Zeros, aligned for anything; NULL: there is no memory, or the sum is too large. */
void *lade__blocks_alloc(lade__blocks *from, size_t count, size_t size);
void lade__blocks_free(lade__blocks *from);

/* ---- types ------------------------------------------------------------------------------ */

typedef enum lade__layout {
	LADE__AS_NULLS,      /* no buffers */
	LADE__AS_BITS,       /* validity, bits */
	LADE__AS_FIXED,      /* validity, 'width' bytes a value */
	LADE__AS_BYTES,      /* validity, offsets of 'width' bytes, data */
	LADE__AS_VIEWS,      /* validity, views of 16 bytes, data..., their sizes */
	LADE__AS_LIST,       /* validity, offsets of 'width' bytes; a child */
	LADE__AS_LISTVIEW,   /* validity, offsets and sizes of 'width' bytes; a child */
	LADE__AS_FIXED_LIST, /* validity; a child with 'width' values for each */
	LADE__AS_STRUCT,     /* validity; children */
	LADE__AS_SPARSE,     /* type ids; children */
	LADE__AS_DENSE,      /* type ids, offsets of 4 bytes; children */
	LADE__AS_RUNS,       /* no buffers; run ends, values */
} lade__layout;

typedef struct lade__type {
	lade__layout layout;
	uint64_t width;
	bool utf8;
	bool integer, is_signed; /* FIXED: integers of 1 to 8 bytes, which may be an index */
	bool plain;              /* FIXED: bytes, not numbers */
	int8_t child_of[128];    /* unions: the child of each type id; -1: none */
} lade__type;

/* A node of a schema.  Strings end with NUL. */
typedef struct lade__node {
	lade__type type;
	const char *format, *name, *metadata; /* metadata: as in the C interface, or NULL */
	size_t metadata_size;
	uint8_t flags;
	size_t child_count;
	struct lade__node **children, *dictionary;
} lade__node;

#define LADE__DEPTH_MAX 64
#define LADE__NODES_MAX 65536

/* Buffers that an array of this type has in the C interface; views have 'views' more. */
size_t lade__type_buffers(const lade__type *type);

/* What the address of buffer 'i' of 'count' must be a multiple of: 1 to 8. */
size_t lade__type_align(const lade__type *type, size_t i, size_t count);

/* A schema of the C interface as nodes of 'blocks'; '*count' is how many.
 * Fails: LADE_E_ARG, LADE_E_UNSUPPORTED (a format that is not known), LADE_E_LIMIT, LADE_E_NOMEM */
lade_status lade__nodes_from_schema(const struct ArrowSchema *schema, lade__blocks *blocks,
                                    lade__node **out, size_t *count, lade_error *err);

/* The same from a head's bytes (docs/format/share.md, section 2), which must be all used.
 * Fails: LADE_E_CORRUPT, LADE_E_UNSUPPORTED, LADE_E_NOMEM */
lade_status lade__nodes_read(const uint8_t *bytes, size_t size, size_t count, lade__blocks *blocks,
                             lade__node **out, lade_error *err);

/* Bytes that grow.  'failed': there was no memory, and the bytes are not complete. */
typedef struct lade__bytes_out {
	uint8_t *bytes;
	size_t size, cap;
	bool failed;
} lade__bytes_out;

void lade__out_put(lade__bytes_out *out, uint64_t value, size_t size);
void lade__out_bytes(lade__bytes_out *out, const void *bytes, size_t size);
void lade__nodes_write(const lade__node *node, lade__bytes_out *out);

/* Fills in a schema that refers to nothing of ours.  Fails: LADE_E_NOMEM */
lade_status lade__nodes_export(const lade__node *node, struct ArrowSchema *out, lade_error *err);

#endif
