/*
 * json.h: JSON documents: a table of values over the text, which stays as it is.
 *
 * Numbers keep their text, so that integers of any size are exact.  As Python's json module, it
 * accepts NaN, Infinity and -Infinity, takes the last of equal keys, and refuses all other
 * departures from RFC 8259.  docs/zarr.md says why this is not json-c: integers beyond 64 bits pass
 * there as the nearest one, and values do not know their place in the document.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ZARR_JSON_H
#define LADE_ZARR_JSON_H

#include <lade/status.h>

typedef enum json_type {
	JSON_ABSENT = 0,
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
} json_type;

/* A value.  The children of an array or object follow it; an object's are key, value, key, ... */
typedef struct json_node {
	uint32_t at, size; /* its text; without the quotes of a string */
	uint32_t next;     /* the value after it and its children */
	uint8_t type;
	bool escaped; /* a string with '\' */
} json_node;

typedef struct json {
	const char *name; /* the document, for messages */
	const char *text;
	size_t size;
	json_node *nodes;
	uint32_t count;
} json;

/* The value of a member that is not there. */
#define JSON_NONE UINT32_MAX
#define JSON_DEPTH_MAX 64
#define JSON_SIZE_MAX (UINT32_MAX - 1)

/* Reads 'size' bytes, which stay the caller's.  Value 0 is the root.
 * Fails: LADE_E_CORRUPT with the offset, LADE_E_LIMIT (depth, size), LADE_E_NOMEM */
lade_status lade__json_parse(json *doc, const char *name, const char *text, size_t size,
                             lade_error *err);
void lade__json_free(json *doc);

static inline json_type lade__json_type(const json *doc, uint32_t at)
{
	return at == JSON_NONE ? JSON_ABSENT : (json_type)doc->nodes[at].type;
}

/* A member of an object; JSON_NONE: it has none, or 'at' is no object. */
uint32_t lade__json_get(const json *doc, uint32_t at, const char *key);

/* The number of elements or members. */
size_t lade__json_count(const json *doc, uint32_t at);

/* Goes through an array or object: 'child' begins as 0; the value for arrays, the key for objects.
 * JSON_NONE: the end. */
uint32_t lade__json_child(const json *doc, uint32_t at, uint32_t child);

/* True for a string of these characters. */
bool lade__json_is(const json *doc, uint32_t at, const char *text);

/* Stores a string without its escapes, and a NUL; 'to' has room for the value's size + 1.  Returns
 * the bytes without the NUL. */
size_t lade__json_string(const json *doc, uint32_t at, char *to);

/* A number without fraction and exponent that fits; with 'integral' also such as 4.0. */
bool lade__json_u64(const json *doc, uint32_t at, bool integral, uint64_t *out);
bool lade__json_i64(const json *doc, uint32_t at, int64_t *out);

/* Any number; one that is too large becomes infinite. */
bool lade__json_double(const json *doc, uint32_t at, double *out);

/* A number in the C locale's spelling, whatever locale is set. */
bool lade__text_double(const char *text, size_t size, double *out);

/* Fails with a message that begins with the document's name and the value's JSON pointer, and ends
 * with its text. */
lade_status lade__json_fail(const json *doc, uint32_t at, lade_status status, lade_error *err,
                            const char *format, ...) LADE_PRINTF(5, 6);

/* The bytes at the start of 'text' that are UTF-8, up to a whole character: 'size' if all are. */
size_t lade__utf8_prefix(const uint8_t *text, size_t size);

#endif
