/*
 * files.h: which files the arguments stand for, and what their results are called.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_FILES_H
#define LADE_CLI_FILES_H

#include <lade/foreign.h>
#include <lade/store.h>

/* Names, in memory of their own.  Zero-initialise. */
typedef struct cli_files {
	char **names;
	size_t count, cap;
} cli_files;

/*
 * The files that 'arguments' stand for: symbolic links to files are left out with a warning unless
 * 'follow'; with 'recursive' a directory stands for all regular files below it, in the order of
 * their names.  Gives CLI_OK, or CLI_FAILED when something could not be read (the rest is there).
 */
int cli_files_expand(char **arguments, size_t count, bool recursive, bool follow,
                     cli_files *files);
void cli_files_reset(cli_files *files);

/* "x.npy" and LADE_FORMAT_LADE: "x.npy.lade".  To be freed. */
char *cli_files_compressed(const char *name, lade_format format);

/* "x.lade": "x"; ".tgz": ".tar".  NULL when the suffix is none that is known.  To be freed. */
char *cli_files_decompressed(const char *name);

bool cli_is_url(const char *name);

/* Opens the file of a web server that a URL means.  Fails: LADE_E_ARG: it has no path */
lade_status cli_url_open(const char *url, const lade_http_options *options, lade_source *out,
                         lade_error *err);

#endif
