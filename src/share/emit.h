/*
 * emit.h: what is published: which memory is shared, what is copied, and the head that says so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_EMIT_H
#define LADE_SHARE_EMIT_H

#include "share/area.h"
#include "share/arrow.h"

/* Number of a block in a head. */
#define LADE__BLOCK_INLINE 0xFFFFFFFEu
#define LADE__BLOCK_NONE 0xFFFFFFFFu
/* Of areas: the copies and the head may need one each. */
#define LADE__AREAS_MAX (LADE__WIRE_FDS - 2)
/* Before schema and arrays. */
#define LADE__HEAD_FIXED 32

typedef struct lade__job lade__job; /* job.h */

typedef struct lade__emitted {
	lade__areas *areas; /* of the connection */
	lade_share_copy copy;
	lade__blocks blocks; /* of the nodes and of small copies */
	lade__node *root;
	size_t node_count;
	lade__bytes_out schema, arrays;
	lade__device *device;      /* that has the arrays; NULL: the host */
	uint64_t rows, shared, copied;
	uint64_t leased; /* bytes of 'shared' that are lent */
	uint64_t staged; /* bytes of the copies that went through the host */
	char why[120];
	char rewritten[120]; /* what of a device went through the host; "": nothing */
	lade__area *used[LADE__AREAS_MAX]; /* by number of block */
	size_t used_count;
	lade__job *jobs;
	size_t job_count, job_cap;
	uint64_t data_size; /* of the copies, with gaps */
} lade__emitted;

/* Walks all arrays.  Fails as lade_share_publish() does.  The plan points into the arrays. */
lade_status lade__emit_make(lade__emitted *plan, const lade_share_table *table, lade__areas *areas,
                            lade_share_copy copy, lade_error *err);
/* Finds the device of table->device_batches, and waits until they are there.
 * Fails: LADE_E_ARG, LADE_E_UNSUPPORTED (they are in several places), LADE_E_DEVICE */
lade_status lade__emit_find_device(lade__emitted *plan, const lade_share_table *table,
                                   lade_error *err);
void lade__emit_free(lade__emitted *plan);

/* Bytes of the head without data, a multiple of 64. */
size_t lade__emit_head_size(const lade__emitted *plan);
/* Writes the head; 'block' is the number of the copies: LADE__BLOCK_INLINE, or used_count. */
void lade__emit_head(lade__emitted *plan, uint32_t block, size_t batch_count, uint8_t *to);
/* Writes the copies: to memory, or to a new memfd (to NULL).  Fails: LADE_E_NOMEM, LADE_E_IO */
lade_status lade__emit_copy(const lade__emitted *plan, uint8_t *to, int fd, lade_error *err);
/* Writes them to new memory of plan->device.  Fails: LADE_E_DEVICE, LADE_E_NOMEM */
lade_status lade__emit_copy_device(const lade__emitted *plan, lade__address to, lade_error *err);

#endif
