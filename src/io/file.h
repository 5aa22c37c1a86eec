/*
 * file.h: what the source and the sink of a file share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_IO_FILE_H
#define LADE_IO_FILE_H

#include "io/io.h"

#include <sys/stat.h>
#include <sys/uio.h>

/* The version that a regular file has by what stat() says of it. */
void lade__file_version(const struct stat *st, lade_object_version *version);

/* Like preadv(), up to a span that the kernel would copy slowly, or some of that one. */
ssize_t lade__file_read(int fd, const struct iovec *spans, int count, uint64_t off);

/* Writes or deletes the file 'path', as lade_sink_file_open()'s sink does; without 'sync' it does
 * not wait for the disk, without 'through' it refuses what is not a regular file. */
lade_status lade__file_write(const char *path, lade_write *write, bool sync, bool through,
                             const lade_io_options *options, lade_error *err);

/*
 * A file that is written bit by bit under a temporary name beside its path.  Its descriptor stays
 * the draft's, holds a lock, and is for writing only.  lade__file_draft_name() gives it its name,
 * once; until then, lade__file_draft_free() removes it.
 * Fails: LADE_E_CHANGED (a file is there, with LADE_WRITE_IF_ABSENT), LADE_E_UNSUPPORTED (a device
 *        or a pipe), LADE_E_IO, LADE_E_NOMEM
 */
typedef struct lade__file_draft lade__file_draft;
lade_status lade__file_draft_new(const char *path, lade_write_kind kind, lade__file_draft **out,
                                 int *fd, lade_error *err);
lade_status lade__file_draft_name(lade__file_draft *draft, bool sync, lade_error *err);
void lade__file_draft_free(lade__file_draft *draft); /* NULL is fine */

#endif
