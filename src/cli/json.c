/*
 * json.c: writes JSON (RFC 8259) and CSV (RFC 4180).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/commands.h"

/* A character of a string; returns its bytes. */
static unsigned put_character(FILE *out, const char *s)
{
	unsigned n = cli_utf8_length(s);

	if (n == 0) {
		fputs("\\ufffd", out);
		n = 1;
	} else if (cli_control(s, n)) {
		fprintf(out, "\\u%04x", cli_control(s, n));
	} else {
		fwrite(s, 1, n, out);
	}
	return n;
}

void json_string(FILE *out, const char *value)
{
	fputc('"', out);
	while (*value) {
		if (*value == '"' || *value == '\\')
			fputc('\\', out);
		value += put_character(out, value);
	}
	fputc('"', out);
}

/* The comma, the line break and the key before a value. */
static void begin(json *j, const char *key)
{
	if (j->depth > 0) {
		fputs(j->filled[j->depth] ? ",\n" : "\n", j->out);
		j->filled[j->depth] = true;
		fprintf(j->out, "%*s", (int)(2 * j->depth), "");
	}
	if (key) {
		json_string(j->out, key);
		fputs(": ", j->out);
	}
}

void json_open(json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	j->depth++;
	j->filled[j->depth] = false;
}

void json_close(json *j, char bracket)
{
	bool filled = j->filled[j->depth];

	j->depth--;
	if (filled)
		fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
	fputc(bracket, j->out);
	if (j->depth == 0)
		fputc('\n', j->out);
}

void json_text(json *j, const char *key, const char *value)
{
	begin(j, key);
	json_string(j->out, value);
}

void json_uint(json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_number(json *j, const char *key, double value, int decimals)
{
	begin(j, key);
	if (isfinite(value))
		fprintf(j->out, "%.*f", decimals, value);
	else
		fputs("null", j->out);
}

void json_bool(json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->out);
}

/* The bytes of a number at 's' that Python's json writes and RFC 8259 does not have; else 0. */
static size_t no_number(const char *s)
{
	static const char *const names[] = {"NaN", "Infinity", "-Infinity"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(s, names[i], strlen(names[i])) == 0)
			return strlen(names[i]);
	return 0;
}

void json_raw(json *j, const char *key, const char *value)
{
	bool quoted = false;

	begin(j, key);
	while (*value) {
		size_t skip = quoted ? 0 : no_number(value);
		if (skip) {
			fputs("null", j->out);
			value += skip;
		} else if (!quoted && (*value == '\n' || *value == '\r' || *value == '\t')) {
			fputc(*value++, j->out);
		} else {
			if (*value == '"')
				quoted = !quoted;
			else if (quoted && *value == '\\' && value[1])
				fputc(*value++, j->out);
			value += put_character(j->out, value);
		}
	}
}

void csv_text(FILE *out, const char *value)
{
	if (!strpbrk(value, ",\"\r\n")) {
		fputs(value, out);
		return;
	}
	fputc('"', out);
	for (; *value; value++) {
		if (*value == '"')
			fputc('"', out);
		fputc(*value, out);
	}
	fputc('"', out);
}
