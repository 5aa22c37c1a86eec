/*
 * message.c: what the command says, and the numbers it reads and writes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "cli/progress.h"

/* Longest message: two paths and what is said of them. */
#define TEXT_CAP 9000

int cli_verbosity = 2;

bool cli_colour(FILE *file)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no && *no)
		return false;
	return isatty(fileno(file)) && !(term && strcmp(term, "dumb") == 0);
}

unsigned cli_utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned n = s[0] < 0x80                   ? 1
	             : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
	             : (s[0] & 0xF0) == 0xE0       ? 3
	             : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
	                                           : 0;

	for (unsigned i = 1; i < n; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0) ||
	    (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] >= 0x90))
		return 0;
	return n;
}

unsigned cli_control(const char *text, unsigned n)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned c = n == 1   ? s[0]
	             : n == 2 ? (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu)
	             : n == 3 ? (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu)
	                      : 0;
	bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
	bool turns = c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
	             (c >= 0x2066 && c <= 0x2069);

	return control || turns ? c : 0;
}

char *cli_escape(const char *text, char *out, size_t cap)
{
	static const char letters[] = "abtnvfr"; /* of the bytes from 7 on */
	char *end = out;

	while (*text) {
		unsigned char c = (unsigned char)*text;
		unsigned n = cli_utf8_length(text);
		char piece[8] = "";
		if (c >= 7 && c < 7 + sizeof letters - 1)
			snprintf(piece, sizeof piece, "\\%c", letters[c - 7]);
		else if (n == 0 || cli_control(text, n))
			snprintf(piece, sizeof piece, "\\%03o", c);
		else
			memcpy(piece, text, n);
		if ((size_t)(end - out) + strlen(piece) >= cap)
			break;
		end = stpcpy(end, piece);
		/* The further bytes of a control are no characters: they come next, as "\ooo". */
		text += n == 0 || *piece == '\\' ? 1 : n;
	}
	*end = 0;
	return out;
}

/* One line; the progress line, if there is one, makes way for it. */
static void say(const char *mark, const char *colour, const char *format, va_list args)
{
	char text[TEXT_CAP], shown[TEXT_CAP];

	vsnprintf(text, sizeof text, format, args);
	cli_escape(text, shown, sizeof shown);
	progress_clear();
	flockfile(stderr);
	if (*mark && cli_colour(stderr))
		fprintf(stderr, "lade: \033[%sm%s\033[0m", colour, mark);
	else
		fprintf(stderr, "lade: %s", mark);
	fprintf(stderr, "%s\n", shown);
	funlockfile(stderr);
}

void cli_error(const char *format, ...)
{
	if (cli_verbosity < 1)
		return;
	va_list args;
	va_start(args, format);
	say("error: ", "1;31", format, args);
	va_end(args);
}

void cli_warn(const char *format, ...)
{
	if (cli_verbosity < 2)
		return;
	va_list args;
	va_start(args, format);
	say("warning: ", "1;33", format, args);
	va_end(args);
}

void cli_note(const char *format, ...)
{
	if (cli_verbosity < 3)
		return;
	va_list args;
	va_start(args, format);
	say("", "", format, args);
	va_end(args);
}

int cli_lade_error(const char *name, const lade_error *err)
{
	const char *text = err->message[0] ? err->message : lade_status_text(err->status);
	char at[32];
	int n = snprintf(at, sizeof at, "at byte %" PRIu64, err->offset);
	const char *said = strstr(text, at);

	if (err->offset != LADE_NO_OFFSET && (!said || (said[n] >= '0' && said[n] <= '9')))
		cli_error("%s: %s (at byte %" PRIu64 ")", name, text, err->offset);
	else
		cli_error("%s: %s", name, text);
	return CLI_FAILED;
}

bool cli_flush(void)
{
	static bool failed;

	if (!failed && (fflush(stdout) != 0 || ferror(stdout))) {
		failed = true;
		cli_error("%s, writing standard output", strerror(errno));
	}
	return !failed;
}

int cli_usage(const char *format, ...)
{
	if (cli_verbosity >= 1) {
		va_list args;
		va_start(args, format);
		say("error: ", "1;31", format, args);
		va_end(args);
		fputs("Try 'lade --help'.\n", stderr);
	}
	return CLI_USAGE;
}

bool cli_parse_size(const char *text, uint64_t *out)
{
	static const char *const units = "KMGT";
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	uint64_t value = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (*end) {
		char c = (char)(*end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end);
		const char *unit = strchr(units, c);
		if (unit) {
			unsigned shift = 10 * (unsigned)(unit - units + 1);
			if (value > UINT64_MAX >> shift)
				return false;
			value <<= shift;
			end++;
			if (*end == 'i')
				end++;
		}
		if (*end == 'B')
			end++;
		if (*end)
			return false;
	}
	*out = value;
	return true;
}

bool cli_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	uint64_t value = strtoull(text, &end, 10);
	if (errno || *end || value < min || value > max)
		return false;
	*out = value;
	return true;
}

char *cli_format_size(uint64_t size, char *text)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)size;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
		value /= 1024;
		unit++;
	}
	snprintf(text, 16, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
	return text;
}

double cli_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
