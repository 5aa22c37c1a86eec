/*
 * work.h: one file's way through the command.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_WORK_H
#define LADE_CLI_WORK_H

#include "cli/io.h"

/* What all files share. */
typedef struct cli_work {
	const cli_options *options;
	lade_engine *engine;
	unsigned threads;     /* that encode and decode: never 0 */
	const char *pipeline; /* the text to make specs of */
	lade_dict *dict;      /* or NULL */
} cli_work;

/* Each puts all of 'in' through to 'out'. */
lade_status cli_compress(const cli_work *work, cli_in *in, cli_out *out, lade_error *err);
lade_status cli_decompress(const cli_work *work, cli_in *in, cli_out *out, lade_error *err);

/* The same of another tool's format, with the frames or members that there were. */
lade_status cli_decompress_foreign(const cli_work *work, lade_format format, cli_in *in,
                                   cli_out *out, uint64_t *frames, lade_error *err);

/* The decoded size and the number of frames of a .zst or .lz4 file, from its frames' headers; false
 * where these do not say, where one is damaged, and for other formats. */
bool cli_walk(const cli_in *in, lade_format format, uint64_t *decoded, uint64_t *frames);

/* --list: a line for each of the files.  Gives CLI_OK or CLI_FAILED. */
int cli_list(const cli_work *work, char **names, size_t count);

#endif
