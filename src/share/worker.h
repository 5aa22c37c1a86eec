/*
 * worker.h: the process that compresses blocks, writes them to files, and brings them back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_WORKER_H
#define LADE_SHARE_WORKER_H

#include "share/wire.h"

#include <sys/types.h>

/* Names of the files of a folder: by a block's number, a version's, and while they are written. */
#define LADE__FILE_BLOCK "%016llx.lade"
#define LADE__FILE_VERSION "%016llx.version"
#define LADE__FILE_PART "%016llx.part"
#define LADE__FILE_NAME 32 /* room for one */

/*
 * Starts a worker, which ends with this process.  'folder' is a descriptor, or -1.  It is asked
 * over '*fd', one question at a time; docs/format/share.md, section 4, has the questions.
 * Fails: LADE_E_IO
 */
lade_status lade__worker_start(int folder, int *fd, pid_t *pid, lade_error *err);

#endif
