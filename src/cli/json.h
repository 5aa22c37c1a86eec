/*
 * json.h: writes JSON (RFC 8259) to a file, with the commas in the right places.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_JSON_H
#define LADE_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Zero-initialise and set 'out'. */
typedef struct json {
	FILE *out;
	unsigned depth;
	bool filled[128]; /* whether the value open at that depth has a member already */
} json;

/* 'key' is NULL in an array and at the top.  Values nest at most 127 deep. */
void json_open(json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(json *j, char bracket);                 /* '}' or ']' */
void json_text(json *j, const char *key, const char *value);
void json_uint(json *j, const char *key, uint64_t value);
void json_number(json *j, const char *key, double value, int decimals); /* null unless finite */
void json_bool(json *j, const char *key, bool value);
/* A value that is JSON already.  NaN and infinities, which readers of JSON take, become null. */
void json_raw(json *j, const char *key, const char *value);

/* A text in quotes, with nothing around it. */
void json_string(FILE *out, const char *value);

/* One field of a CSV line (RFC 4180), quoted where it must be. */
void csv_text(FILE *out, const char *value);

#endif
