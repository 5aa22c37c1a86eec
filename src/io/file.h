/*
 * file.h: what the source and the sink of a file share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_IO_FILE_H
#define LADE_IO_FILE_H

#include "io/io.h"

#include <sys/stat.h>

/* The version that a regular file has by what stat() says of it. */
void lade__file_version(const struct stat *st, lade_object_version *version);

#endif
