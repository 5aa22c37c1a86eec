/*
 * commands.h: the subcommands of lade, and what all of them share.
 *
 * A subcommand gets the arguments from its own name on (argv[0] is "bench"), may use getopt_long()
 * afresh, and returns the exit code.  Only public headers of the library are used here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_COMMANDS_H
#define LADE_CLI_COMMANDS_H

#include <lade/lade.h>

#include <stdio.h>

/* Exit codes. */
enum {
	CLI_OK = 0,
	CLI_FAILED = 1, /* an input or an operation failed */
	CLI_USAGE = 2,  /* the arguments were wrong */
};

/* ---- subcommands ---- */

int lade_cmd_bench(int argc, char **argv);   /* bench.c: FILE..., algorithms against each other */
int lade_cmd_devices(int argc, char **argv); /* devices.c: the GPUs of this machine */
int lade_cmd_inspect(int argc, char **argv); /* inspect.c: what a .lade file holds */
int lade_cmd_rntuple(int argc, char **argv); /* rntuple.c: RNTuples of ROOT files */
int lade_cmd_share(int argc, char **argv);   /* share.c: columns shared between processes */
int lade_cmd_suggest(int argc, char **argv); /* suggest.c: pipelines for a file's data */
int lade_cmd_zarr(int argc, char **argv);    /* zarr.c: Zarr arrays and groups */

/* ---- messages (message.c) ---- */

/* How much is said on standard error: 0 nothing, 1 errors, 2 warnings too (the default), 3 and
 * more details. */
extern int cli_verbosity;

/* Each prints one line "lade: ..." on standard error, if the verbosity allows. */
void cli_error(const char *format, ...) LADE_PRINTF(1, 2);
void cli_warn(const char *format, ...) LADE_PRINTF(1, 2);
void cli_note(const char *format, ...) LADE_PRINTF(1, 2); /* verbosity 3 */

/* "lade: NAME: message (at byte N)", from a failed call of the library; the position only where the
 * message does not have it.  Gives CLI_FAILED. */
int cli_lade_error(const char *name, const lade_error *err);

/* Hands over what was printed on standard output.  Where that fails, the first call says why; all
 * calls from then on give false. */
bool cli_flush(void);

/* Usage errors: the line, a hint at --help, and CLI_USAGE. */
int cli_usage(const char *format, ...) LADE_PRINTF(1, 2);

/* Whether colours may be written to 'file': a terminal, no NO_COLOR, TERM not "dumb". */
bool cli_colour(FILE *file);

/* ---- numbers (message.c) ---- */

/* Reads "4096", "64K", "64KiB", "64KB", "1M", "2G", "3T" (all powers of 1024, as in zstd(1)).
 * False when it is no such number or passes 2^64 - 1. */
bool cli_parse_size(const char *text, uint64_t *out);

/* Reads a whole decimal number from min to max. */
bool cli_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* ---- text (message.c) ---- */

/* The length of the well-formed UTF-8 character (RFC 3629) that 's' begins with, or 0. */
unsigned cli_utf8_length(const char *s);

/*
 * Writes 'text' to 'out', cut to 'cap' bytes, with cli_control()'s characters and bytes that are no
 * UTF-8 as "\n" or "\033": names of files must not drive a terminal.  Gives 'out'.
 */
char *cli_escape(const char *text, char *out, size_t cap);

/*
 * The code point of the character of 'n' bytes at 's' if it drives a terminal, else 0: control
 * characters, and those that turn the direction of what follows (Unicode's Bidi_Control).
 */
unsigned cli_control(const char *s, unsigned n);

/* "1.50 MiB"; 'text' has at least 16 bytes.  Gives 'text'. */
char *cli_format_size(uint64_t size, char *text);

/* Seconds of a clock that never goes back. */
double cli_now(void);

#endif
