/*
 * rntuple.h: what the parts of 'lade rntuple' share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_RNTUPLE_H
#define LADE_CLI_RNTUPLE_H

#include "cli/commands.h"
#include "cli/json.h"

#define RNTUPLE_HEADERS_MAX 16

typedef enum rntuple_format {
	RNTUPLE_BY_NAME = 0, /* .npy if the output's name ends so, else JSON */
	RNTUPLE_JSON,        /* a line for each entry */
	RNTUPLE_TEXT,        /* the same, with tabs between values */
	RNTUPLE_NPY,
} rntuple_format;

/* What the command line says.  The strings are argv's. */
typedef struct rntuple_settings {
	bool json, force, repair;
	const char *headers[RNTUPLE_HEADERS_MAX];
	size_t header_count;
	const char *output; /* NULL: standard output */
	rntuple_format format;
	uint64_t first, end; /* entries; end UINT64_MAX: to the last */
	uint64_t memory;     /* of decoded elements */
	lade_engine *engine;
	char **names; /* of files, or of a file and its fields */
	size_t count;
} rntuple_settings;

/* An open RNTuple. */
typedef struct rntuple_node {
	const char *name; /* as the user wrote it */
	lade_rntuple *tuple;
	const lade_rntuple_info *info;
	bool mended; /* its anchor was torn */
} rntuple_node;

/* Each does one RNTuple, and returns the exit code.  'j' is for --json, else NULL. */
int rntuple_info(const rntuple_settings *s, const rntuple_node *node, json *j);
int rntuple_list(const rntuple_settings *s, const rntuple_node *node, json *j);
int rntuple_schema(const rntuple_settings *s, const rntuple_node *node, json *j);
int rntuple_verify(const rntuple_settings *s, const rntuple_node *node, json *j);
int rntuple_dump(const rntuple_settings *s, const rntuple_node *node, json *j);

/* Calls 'fn' with the RNTuple that "FILE:NAME" means, or with each of FILE.  'one': a FILE with
 * several is refused. */
int rntuple_each(const rntuple_settings *s, const char *name, bool one,
                 int (*fn)(const rntuple_settings *s, const rntuple_node *node, json *j), json *j);

/* ---- elements (rntuple_step.c) ---- */

/* Some entries of fields, in memory. */
typedef struct rntuple_step {
	const rntuple_settings *s;
	const rntuple_node *node;
	uint64_t *children; /* of each field the first child; UINT64_MAX: none */
	uint64_t *siblings; /* the next one with the same parent */
	uint8_t **data;     /* of each column; NULL: not wanted */
	bool *wanted;       /* columns */
	lade_rntuple_part *elements;
	lade_rntuple_part entries;
	bool whole; /* only whole clusters can be read: there are variants */
	lade_error err;
} rntuple_step;

/* Wants all columns of the field and those below it. */
void rntuple_step_open(rntuple_step *step, const rntuple_settings *s, const rntuple_node *node);
void rntuple_step_want(rntuple_step *step, uint64_t field);
/* Reads the entries of [*first, end) that fit into memory, of one cluster; moves '*first' on. */
lade_status rntuple_step_read(rntuple_step *step, uint64_t *first, uint64_t end);
void rntuple_step_close(rntuple_step *step);

/* Writes the value of a field as JSON on one line.  'index': the number of the element in the step.
 * False: the file contradicts itself; step->err says how. */
bool rntuple_put(rntuple_step *step, FILE *out, uint64_t field, uint64_t index);

#endif
