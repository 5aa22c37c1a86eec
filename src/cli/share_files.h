/*
 * share_files.h: 'lade share put' and 'get': arrays and tables between files and names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_SHARE_FILES_H
#define LADE_CLI_SHARE_FILES_H

#include <lade/share.h>

/* Publishes the array of a .npy or .lade file, or the table of one of Arrow's. */
int cli_share_put(lade_share *share, const char *name, const char *path);
/* Writes a version to such a file; version 0: the latest. */
int cli_share_get(lade_share *share, const char *name, uint64_t version, const char *path);

#endif
