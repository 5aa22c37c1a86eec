/*
 * io.h: files in and out, for the command: what may be read, where bytes are written meanwhile,
 * and what is left behind when something goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_IO_H
#define LADE_CLI_IO_H

#include "cli/options.h"

#include <sys/stat.h>

/* ---- input ---------------------------------------------------------------------------- */

typedef struct cli_in {
	const char *name; /* for messages */
	int fd;
	bool is_stdin;
	bool has_size; /* a regular file: stat says how large it is */
	struct stat stat;
	uint64_t taken; /* bytes read from the file so far */
	bool fixed;     /* another number of bytes than stat gave is an error */
	uint8_t *held;  /* bytes read ahead, [held_pos, held_end): read first */
	size_t held_pos, held_end, held_cap;
} cli_in;

/* Opens a file ("-": standard input); directories, devices and sockets are refused.  Gives CLI_OK,
 * or CLI_FAILED when it has said why not. */
int cli_in_open(cli_in *in, const char *name);
void cli_in_close(cli_in *in);

/* Looks at up to 'size' bytes that come next, without taking them; '*have' are at hand, fewer only
 * at the end. */
lade_status cli_in_peek(cli_in *in, size_t size, const uint8_t **data, size_t *have,
                        lade_error *err);
/* Takes 'size' bytes that were looked at. */
void cli_in_skip(cli_in *in, size_t size);
/* Gives bytes back: they come next. */
lade_status cli_in_return(cli_in *in, const void *data, size_t size, lade_error *err);

lade_input cli_in_input(cli_in *in);
/* Reads anywhere; of a regular file. */
lade_source cli_in_source(cli_in *in);

/* ---- output ----------------------------------------------------------------------------- */

typedef struct cli_out {
	const char *name; /* for messages; NULL: bytes go nowhere */
	char *path;       /* of the file, with no link at its end */
	char *temp;       /* a regular file until it takes that name; NULL: written to directly */
	int fd;
	bool owned;   /* fd is closed here */
	bool replace; /* an existing file may be replaced */
	bool sparse;  /* zero blocks become holes of the file */
	bool lossy;   /* the input cannot be made from it to the bit */
	uint64_t written;
} cli_out;

/* Nowhere, and standard output. */
void cli_out_null(cli_out *out);
void cli_out_stdout(cli_out *out);

/*
 * Opens what 'path' leads to, links followed.  A regular file is written as a temporary file beside
 * it, which replaces it at the end; what is none (pipe, device, a file that a process has open:
 * /dev/stdout) is written to directly.  When there is such a file already: 'replace' allows to
 * replace it, otherwise it asks ('may_ask' and a terminal) or refuses.  Gives CLI_OK or CLI_FAILED,
 * with the reason said.
 */
int cli_out_open(cli_out *out, const char *path, bool replace, bool may_ask);

/* From now on blocks of zeros become holes, if 'out' is a regular file and nothing follows where
 * it is written. */
void cli_out_sparse(cli_out *out);

lade_output cli_out_output(cli_out *out);
/* To where the file has no bytes yet: 'off' behind the 'written' ones, which this does not count.
 * Any number of threads; 'ctx' is a cli_out, which is a regular file or nowhere. */
lade_status cli_out_write_at(void *ctx, uint64_t off, const void *data, size_t size,
                             lade_error *err);

/*
 * The file gets its size, if it ends with a hole; one of its own gets the mode, owner and times of
 * 'like' (if that is a regular file) and its name.  'sync': file and name are on the disk before
 * this returns.
 */
int cli_out_commit(cli_out *out, const cli_in *like, bool sync);

/* Removes what was written; also after a commit (nothing is left to remove then). */
void cli_out_abandon(cli_out *out);

/* From now on signals that end the program remove the temporary file first. */
void cli_out_catch_signals(void);

#endif
