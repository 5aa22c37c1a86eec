/*
 * zarr.h: what the parts of 'lade zarr' share: options, open nodes, and texts about them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_ZARR_H
#define LADE_CLI_ZARR_H

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/map.h"

#define ZARR_HEADERS_MAX 16
#define ZARR_DEPTH_MAX 64

/* What is to be made; NULL: not given. */
typedef struct zarr_new {
	const char *shape, *chunks, *shards, *dtype, *codec, *fill, *attributes, *names;
	const char *from; /* a .npy file */
	bool group, fortran;
} zarr_new;

/* What the command line says.  The strings are argv's. */
typedef struct zarr_settings {
	bool json, stored, no_consolidated;
	uint32_t format; /* 2 or 3; 0: either */
	unsigned depth;  /* levels of members, up to ZARR_DEPTH_MAX */
	const char *headers[ZARR_HEADERS_MAX];
	size_t header_count;
	const char *selection, *field; /* NULL: all of it */
	const char *output;            /* NULL: standard output */
	bool force, complete;
	uint64_t memory;  /* of a part of an array */
	unsigned threads; /* 0: all cores */
	zarr_new new;
	char **names;
	size_t count;
} zarr_settings;

/* An open node. */
typedef struct zarr_node {
	const char *name; /* as the user wrote it */
	lade_store *store;
	lade_zarr *zarr;
	const lade_zarr_array *array; /* NULL: a group */
} zarr_node;

/* Each does one argument, and returns the exit code.  'j' is for --json, else NULL. */
int zarr_info(const zarr_settings *s, zarr_node *node, json *j);
int zarr_list(const zarr_settings *s, zarr_node *node, json *j);
int zarr_tree(const zarr_settings *s, zarr_node *node, json *j);
int zarr_cat(const zarr_settings *s, zarr_node *node, json *j);
int zarr_verify(const zarr_settings *s, zarr_node *node, json *j);

/* Makes a node; returns the exit code. */
int zarr_create(const zarr_settings *s, const char *path);

/* ---- where (zarr_place.c) ---- */

/*
 * Opens the store of a directory, a .zip file or a URL, and stores the path of the node in it, to
 * be freed.  Returns CLI_OK, or CLI_FAILED after a message.
 */
int zarr_store(const zarr_settings *s, const char *name, lade_store **store, char **path);

/* Opens the node that 'name' means. */
int zarr_open(const zarr_settings *s, const char *name, zarr_node *node);
void zarr_close(zarr_node *node);

/* Reads a selection, with at most 'threads' threads (0: all cores).  'report' may be NULL.
 * Elements of any length go nowhere. */
lade_status zarr_read(const lade_zarr *array, const lade_zarr_selection *selection,
                      const lade_zarr_target *target, unsigned threads, lade_zarr_report *report,
                      lade_error *err);

/* ---- strings (zarr_words.c) ---- */

/* Elements of any length: number i has bytes [offsets[i], offsets[i + 1]) of the data. */
typedef struct zarr_words {
	size_t count;
	int64_t *offsets;
	char *data;
} zarr_words;

/* Free 'out' also if it fails. */
lade_status zarr_words_read(const lade_zarr *array, const lade_zarr_selection *selection,
                            unsigned threads, zarr_words *out, lade_error *err);
void zarr_words_free(zarr_words *words);

/* The characters of the longest. */
uint64_t zarr_words_longest(const zarr_words *words);

/* Writes each as 'width' characters of 4 bytes, filled up with zeros. */
lade_status zarr_words_write(const zarr_words *words, uint64_t width, lade_output to,
                             lade_error *err);

/* ---- members (zarr_tree.c) ---- */

/* Calls 'fn' for a node that is an array, or for each array below a group, in the order of names.
 * Returns CLI_OK, or what is not CLI_OK of those that failed. */
int zarr_each_array(const zarr_settings *s, zarr_node *node,
                    int (*fn)(void *ctx, const zarr_node *array), void *ctx);

/* ---- texts (zarr_text.c) ---- */

void zarr_put_shape(FILE *out, const lade_zarr_array *array);  /* "(100, 200)" */
void zarr_put_chunks(FILE *out, const lade_zarr_array *array); /* "(10, 20)": of a chunk, a shard */
/* The length of the innermost chunks of shards along an axis of the array. */
uint64_t zarr_inner_length(const lade_zarr_array *array, size_t axis);
void zarr_put_inner(FILE *out, const lade_zarr_array *array);  /* the innermost chunks of shards */
void zarr_put_type(FILE *out, const lade_zarr_type *type);
void zarr_put_value(FILE *out, const lade_zarr_type *type, const void *value, size_t size);
void zarr_put_chain(FILE *out, const lade_zarr_chain *chain, size_t ndim);

/* The members of an array's description, into the object that is open. */
void zarr_json_array(json *j, const lade_zarr_array *array);

/* a * b; UINT64_MAX: more than that. */
uint64_t zarr_times(uint64_t a, uint64_t b);
/* The elements, the chunks, and the decoded bytes (0: they are not known); UINT64_MAX: more. */
uint64_t zarr_elements(const lade_zarr_array *array);
uint64_t zarr_chunk_count(const lade_zarr_array *array);
uint64_t zarr_decoded_size(const lade_zarr_array *array);

/* ---- chunks in the store (zarr_map.c) ---- */

/* The chunks of an array that are in its store, and a map of the last two axes. */
typedef struct zarr_chunks {
	uint64_t present, stored, decoded; /* chunks, and their bytes */
	uint64_t other, other_size;        /* keys that are no chunks, and their bytes */
	size_t rows, columns;
	uint64_t row_chunks, column_chunks; /* chunks of a sign along each axis */
	cli_sign *signs;
	bool asked; /* for each chunk: nothing is known of other keys */
} zarr_chunks;

/* The most chunks to ask for: without --stored, and with it. */
#define ZARR_ASK_SOME 1000
#define ZARR_ASK_MAX 1000000

/*
 * Lists an array's chunks, for a map of at most 'width' columns.  If the store cannot list, it is
 * asked for each chunk, unless the array has more than 'ask' of them: then LADE_E_UNSUPPORTED.
 * Free 'out' also if it fails.
 */
lade_status zarr_chunks_list(const zarr_node *node, size_t width, uint64_t ask, zarr_chunks *out,
                             lade_error *err);
void zarr_chunks_free(zarr_chunks *chunks);

/* True if 'key' is chunk 'index' of the array. */
bool zarr_chunk_parse(const zarr_node *node, const char *key, uint64_t index[LADE_DIMS_MAX]);

/* Draws the map and says what its signs mean. */
void zarr_map_print(const zarr_node *node, const zarr_chunks *chunks, size_t width);

#endif
