/*
 * column.h: an opened version: its schema, its arrays, and where their bytes are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_COLUMN_H
#define LADE_SHARE_COLUMN_H

#include "share/arrow.h"
#include "share/device.h"

typedef struct lade__buffer {
	const uint8_t *data; /* NULL: there is none */
	uint64_t size;
	const lade__vmm *vmm; /* that has it; NULL: it is the host's */
} lade__buffer;

/* An array of a batch: what docs/format/share.md, section 2 calls a node. */
typedef struct lade__column {
	const lade__node *node;
	int64_t length, null_count, off;
	size_t buffer_count;
	lade__buffer *buffers;
	struct lade__column **children, *dictionary;
} lade__column;

/* A head that was read. */
typedef struct lade__head {
	lade__blocks blocks; /* of all below */
	lade__node *root;
	uint64_t rows;
	size_t batch_count;
	lade__column **batches;
	const lade__device **devices; /* of the batches; NULL: on the host */
} lade__head;

/*
 * Reads a head of 'size' bytes, which must stay as long as '*out': its data are in it.  'memory'
 * are the blocks.  Checks sizes, structure, and on the host first and last offsets: what is on a
 * device is not read.
 * Fails: LADE_E_CORRUPT, LADE_E_VERSION, LADE_E_UNSUPPORTED, LADE_E_NOMEM; then nothing is left
 */
lade_status lade__head_read(const uint8_t *head, size_t size, const lade__buffer *memory,
                            size_t memory_count, lade__head *out, lade_error *err);
void lade__head_free(lade__head *head);

/* Checks that the buffers and children of one array are as large as its length says.
 * Fails: LADE_E_CORRUPT */
lade_status lade__column_fits(lade__column *c, lade_error *err);

/* Checks each value of a batch that leads elsewhere.  Fails: LADE_E_CORRUPT */
lade_status lade__column_check(const lade__column *chunk, lade_error *err);

/* Fills in an array of the host or of a device, whose nodes keep 'version', with a reference each.
 * Fails: LADE_E_NOMEM */
lade_status lade__column_export(const lade__column *chunk, lade_share_version *version,
                                struct ArrowArray *out, lade_error *err);

#endif
