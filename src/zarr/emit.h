/*
 * emit.h: texts of documents: JSON as Python's json module writes it, types and fill values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_EMIT_H
#define LADE_ZARR_EMIT_H

#include "zarr/zarr.h"

/* A text that grows.  After a lack of memory, 'failed' is set and all additions do nothing. */
typedef struct lade__text {
	char *data; /* with a NUL behind 'size' bytes; NULL: nothing was added */
	size_t size, cap;
	bool failed;
} lade__text;

void lade__text_add(lade__text *text, const char *bytes, size_t size);
void lade__text_put(lade__text *text, const char *format, ...) LADE_PRINTF(2, 3);
void lade__text_free(lade__text *text);

/* A string of UTF-8, in quotes; all that is not ASCII becomes an escape. */
void lade__text_string(lade__text *text, const char *bytes, size_t size);

/* The shortest number that reads as 'value', as Python's repr(); "NaN", "Infinity" in quotes. */
void lade__text_number(lade__text *text, double value);

/* A value of a document as it is there. */
void lade__text_raw(lade__text *text, const json *doc, uint32_t at);

/*
 * A value of a document, indented by 2 for each level, as zarr-python writes documents.  'depth' is
 * the level of the value.
 */
void lade__text_pretty(lade__text *text, const json *doc, uint32_t at, unsigned depth);

/* The same for an object whose member 'key' becomes the root of 'value'.  If there is no such
 * member, it is put in front of member 'before', or at the end. */
typedef struct lade__member {
	const char *key, *before;
	const json *value;
} lade__member;
void lade__text_with(lade__text *text, const json *doc, uint32_t at, unsigned depth,
                     const lade__member *member);

/* A type in a format's spelling.  Format 2 has none for some types: false. */
bool lade__text_type(lade__text *text, const lade_zarr_type *type, uint32_t format);

/* A fill value: 'bytes' as lade_zarr_array.fill has them. */
void lade__text_fill(lade__text *text, const lade_zarr_type *type, const void *bytes, size_t size,
                     uint32_t format);

#endif
