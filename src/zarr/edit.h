/*
 * edit.h: documents in a store that are read, changed and written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_EDIT_H
#define LADE_ZARR_EDIT_H

#include "zarr/emit.h"

/* How often a change begins again because others changed the value. */
#define LADE__TRIES 100

/* "path/name".  Fails: LADE_E_ARG */
lade_status lade__zarr_key(char key[LADE_KEY_MAX + 1], const char *path, const char *name,
                           lade_error *err);

/* A path without '/' at its ends and without empty names.  Fails: LADE_E_ARG */
lade_status lade__zarr_path(const char *path, char out[LADE_KEY_MAX + 1], lade_error *err);

/*
 * Takes the lock of a key in this process, for stores without versions.  One thread holds one lock
 * at most.
 */
void lade__key_lock(const lade_store *store, const char *key);
void lade__key_unlock(const lade_store *store, const char *key);

/* A value with its version. */
typedef struct lade__value {
	uint8_t *bytes; /* NULL: there is none */
	size_t size;
	lade_object_version version;
} lade__value;

/* Reads a whole value; it is no failure if there is none.  'most': LADE_E_LIMIT above it. */
lade_status lade__value_read(lade_store *store, const char *key, uint64_t most,
                             const lade_io_options *io, lade__value *out, lade_error *err);

/*
 * Writes a value over the one that was read, only if it is still there: LADE_E_CHANGED.
 * 'src.data' NULL: deletes it.
 */
lade_status lade__value_replace(lade_store *store, const char *key, const lade__value *old,
                                lade_cspan src, const lade_io_options *io, lade_error *err);

/* Waits a moment before try number 'attempt'. */
void lade__try_pause(unsigned attempt);

/* Makes the new text of a document; 'doc' is the old one. */
typedef lade_status (*lade__change)(void *ctx, const json *doc, lade__text *to, lade_error *err);

/* Changes a document, again if others have changed it meanwhile.  'sync': lade_io_options. */
lade_status lade__document_change(lade_store *store, const char *key, lade__change change,
                                  void *ctx, bool sync, lade_error *err);

/* Deletes what is below "path/": the node's own documents, documents below, then the rest.
 * 'chunks_only': only what would be chunks of an array there. */
lade_status lade__zarr_clear(lade_store *store, const char *path, bool chunks_only,
                             lade_error *err);

/* Whether a key, below an array's path, is one that chunks have: "c/0", "c.0", "c", "0.0". */
bool lade__is_chunk_key(const char *rest);

#endif
