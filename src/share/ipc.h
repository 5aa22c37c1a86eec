/*
 * ipc.h: Arrow's files and streams (https://arrow.apache.org/docs/format/Columnar.html).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_IPC_H
#define LADE_SHARE_IPC_H

#include <lade/io.h>

#include "share/column.h"
#include "share/flat.h"

/* What was read.  All is in 'blocks', and in memory that 'make' gave. */
typedef struct lade__ipc {
	lade__blocks blocks;
	struct ArrowSchema *top; /* its release does nothing */
	lade__node *root;
	lade__column **batches;
	size_t batch_count;
} lade__ipc;

/* Gives memory of zeros, aligned to 64 bytes, that stays until the caller is done. */
typedef struct lade__ipc_memory {
	void *ctx;
	lade_status (*make)(void *ctx, size_t size, uint8_t **out, lade_error *err);
} lade__ipc_memory;

/*
 * Reads a file or a stream.  All values that lead elsewhere are checked.
 * Fails: LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_UNSUPPORTED (big-endian, Feather of version 1,
 *        metadata before version 4), what the source and 'make' fail with, LADE_E_NOMEM
 * Owns:  the caller, until lade__ipc_free(), also after a failure
 */
lade_status lade__ipc_read(lade_source source, lade__ipc_memory memory, lade__ipc *out,
                           lade_error *err);
void lade__ipc_free(lade__ipc *ipc);

/* The schema's table as a struct of the C interface, in 'blocks': a field with a dictionary has its
 * id (int64_t) as private_data.  Fails: LADE_E_CORRUPT, LADE_E_UNSUPPORTED, LADE_E_NOMEM */
lade_status lade__ipc_schema_read(const lade__flat_table *schema, lade__blocks *blocks,
                                  struct ArrowSchema **out, lade_error *err);

/*
 * Writes arrays, one batch each, as a stream or as a file.  An array that is no struct becomes a
 * table of one column.
 * Fails: LADE_E_UNSUPPORTED (a table with nulls of its own; in a file, batches whose dictionaries
 *        differ), what 'output' fails with, LADE_E_NOMEM
 */
lade_status lade__ipc_write(const struct ArrowSchema *schema,
                            const struct ArrowArray *const *arrays, size_t count, bool stream,
                            lade_output output, lade_error *err);

#endif
