/*
 * zarr_write.h: makes and changes Zarr arrays and groups.
 *
 * This makes an array of floats in chunks of 256 x 256, compressed by Zstd:
 *
 *	const uint64_t shape[2] = {4096, 4096}, chunk[2] = {256, 256};
 *	lade_zarr_description description = {
 *		.struct_size = sizeof description, .kind = LADE_ZARR_ARRAY, .type = "float32",
 *		.ndim = 2, .shape = shape, .chunk_shape = chunk,
 *		.codecs = "[{\"name\":\"zstd\",\"configuration\":{\"level\":3}}]",
 *	};
 *	lade_zarr *made = NULL;
 *	lade_store *store;
 *	lade_status status = lade_store_directory_open("data.zarr", NULL, &store, &err);
 *	if (status == LADE_OK) {
 *		status = lade_zarr_create(store, "field", &description, NULL, &made, &err);
 *		lade_store_unref(store);
 *	}
 *	lade_zarr_unref(made);
 *
 * Each document is written by one atomic write.  A document that is changed is written only if
 * nobody else has changed it meanwhile; else the change is made again, on the new document.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_WRITE_H
#define LADE_ZARR_WRITE_H

#include <lade/zarr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- creating --------------------------------------------------------------------------- */

/* The sizes of the chunks along an axis. */
typedef struct lade_zarr_edges {
	const uint64_t *sizes; /* their sum must reach the axis' size */
	size_t count;          /* 0: all chunks of the axis have the size in 'chunk_shape' */
} lade_zarr_edges;

/* What to make.  Zero-initialise, set struct_size and kind, then the fields you need. */
typedef struct lade_zarr_description {
	size_t struct_size;
	lade_zarr_kind kind;    /* LADE_ZARR_ARRAY or LADE_ZARR_GROUP; the rest is for arrays */
	uint32_t format;        /* 2 or 3; 0: 3 */
	const char *attributes; /* a JSON object; NULL: none */

	size_t ndim;
	const uint64_t *shape;       /* 'ndim' entries, as the next ones */
	const uint64_t *chunk_shape; /* NULL: one chunk has all elements */
	const lade_zarr_edges *edges; /* chunks of several sizes, format 3 only; or NULL */
	/* "float32" or "<f4"; or JSON: a struct's fields "[[\"x\",\"<i4\"]]", or an object as
	 * format 3 has it.  Format 3 gets the byte order from the codec "bytes". */
	const char *type;
	const char *fill; /* JSON; NULL: zero, false, "" or "NaT" */

	/*
	 * The codecs, as a JSON list.  Format 3: of a chunk, or of the chunks in a shard; without a
	 * codec from arrays to bytes, the type's is added.  Format 2: the filters, and last the
	 * compressor.  NULL: 'spec' says it.
	 */
	const char *codecs;
	/* Or a spec of zstd, gzip, zlib, blosc, shuffle, crc32c.  NULL too: zstd of level 0. */
	const lade_spec *spec;

	/* Makes each chunk a shard of chunks of this shape, format 3 only; NULL: no shards. */
	const uint64_t *inner_shape;
	bool index_first;         /* the index is at the start of a shard, not at the end */
	const char *index_codecs; /* a JSON list; NULL: bytes, crc32c */

	const char *const *dimension_names; /* format 3 only; each may be NULL */
	bool fortran;   /* a chunk's first axis is contiguous; format 3: the codec "transpose" */
	bool v2_keys;   /* format 3: keys as in format 2 */
	char separator; /* of keys, '/' or '.'; 0: '/' in format 3, '.' in format 2 and v2_keys */
} lade_zarr_description;

typedef enum lade_zarr_exists {
	LADE_ZARR_KEEP = 0,    /* LADE_E_CHANGED if an array or group is there */
	LADE_ZARR_REPLACE = 1, /* deletes it first, with all that is below it */
} lade_zarr_exists;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_zarr_create_options {
	size_t struct_size;
	lade_zarr_exists exists;
	bool no_parents;         /* do not make groups above the path that do not exist */
	const lade_zarr_options *open; /* for opening it: chunk_store, codecs of yours; or NULL */
} lade_zarr_create_options;

/*
 * Makes an array or group at 'path', and opens it.  The same description gives the same bytes
 * everywhere; they are those that zarr-python 3.4.2 writes for the same arguments.
 *
 * It is made as LADE_WRITE_IF_ABSENT, so only one of several callers makes it.  Groups above it
 * come first.  No chunk is written.
 *
 * Fails: LADE_E_CHANGED (it exists, or values that would become its chunks do, or an array is above
 *        it); LADE_E_ARG, LADE_E_CORRUPT, LADE_E_LIMIT, LADE_E_UNSUPPORTED (as lade_zarr_open()
 *        would; the message has the JSON pointer in the document); LADE_E_NOMEM, and as
 *        lade_store_write().  To replace, the store must be able to list
 * Owns:  the caller, until lade_zarr_unref()
 */
LADE_API lade_status lade_zarr_create(lade_store *store, const char *path,
                                      const lade_zarr_description *description,
                                      const lade_zarr_create_options *options, lade_zarr **out,
                                      lade_error *err);

/* ---- changing --------------------------------------------------------------------------- */

/*
 * Below, 'out' may be NULL; else it gets the changed node, opened as 'node' was.  'node' itself
 * does not change.  Each call reads the document again: it does not matter how old 'node' is.
 *
 * Consolidated metadata does not change with its members: lade_zarr_consolidate() makes it anew.
 *
 * Fail: LADE_E_CHANGED (others change the document all the time), LADE_E_ARG, LADE_E_CORRUPT,
 *       LADE_E_NOT_FOUND, LADE_E_NOMEM, and as lade_store_read() and lade_store_write()
 */

/* Replaces the attributes by those of a JSON object. */
LADE_API lade_status lade_zarr_set_attributes(lade_zarr *node, const char *attributes,
                                              lade_zarr **out, lade_error *err);

/*
 * Changes the shape.  Chunks that have no elements in the new shape are deleted after the document
 * is written, unless the store cannot list.  Chunks at the new edge keep the elements outside,
 * which come back if the array grows again.
 *
 * Also fails: LADE_E_CORRUPT: edges whose sum does not reach the shape
 */
LADE_API lade_status lade_zarr_resize(lade_zarr *array, const uint64_t *shape, lade_zarr **out,
                                      lade_error *err);

/*
 * Collects the metadata of all members of a group, at any depth, into the group: in its zarr.json,
 * or in .zmetadata.  The store must be able to list.
 */
LADE_API lade_status lade_zarr_consolidate(lade_zarr *group, lade_zarr **out, lade_error *err);

/*
 * Deletes an array or group, and all values below its path.  The node's own document goes first, so
 * that readers find the whole node or none, then the documents below, then chunks.  If the call is
 * interrupted, chunks may be left: lade_zarr_create() with LADE_ZARR_REPLACE removes them.
 *
 * Fails: LADE_E_NOT_FOUND (no node is there); LADE_E_UNSUPPORTED (the store cannot list), and as
 *        lade_store_write()
 */
LADE_API lade_status lade_zarr_delete(lade_store *store, const char *path, lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
