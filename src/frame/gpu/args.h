/*
 * args.h: what the host gives to the kernels that make and look at frames (frame.cu).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_GPU_ARGS_H
#define LADE_FRAME_GPU_ARGS_H

#include "frame/format.h"
#include "gpu/args.h"

/* Threads of a block. */
#define LADE_FRAME_PLACE_THREADS 1024u
#define LADE_FRAME_PACK_THREADS 256u

#define LADE_FRAME_PIECE 4096u /* bytes of a payload that a warp copies at a time */

/*
 * A frame to be made.  Chunk i, as encoded, is sizes[i] bytes at slots + i * slot; statuses[i]
 * says what became of that: one that is not smaller than its decoded bytes is stored.
 */
typedef struct lade_gpu_frame {
	LADE_ADDRESS(const uint8_t *) src; /* all decoded bytes */
	LADE_ADDRESS(const uint8_t *) slots;
	LADE_ADDRESS(const uint64_t *) sizes;
	LADE_ADDRESS(const uint32_t *) statuses;
	LADE_ADDRESS(const uint64_t *) sums; /* of the chunks' decoded bytes; NULL: none */
	LADE_ADDRESS(const uint8_t *) header;
	LADE_ADDRESS(uint8_t *) dst;
	LADE_ADDRESS(uint64_t *) off; /* made: where each chunk stands, each page, and the list */
	LADE_ADDRESS(uint64_t *) entry; /* and each chunk's entry in the index */
	/* Bytes of the frame, and a status; unless that is 0 nothing is packed.  'answer' gets the
	 * same, where the host finds it. */
	LADE_ADDRESS(uint64_t *) report;
	LADE_ADDRESS(uint64_t *) answer;
	uint64_t size, cap, slot, header_check;
	uint32_t count, chunk_size, header_size;
} lade_gpu_frame;
LADE_ARGS(lade_gpu_frame, 136);

/*
 * A frame whose chunks have been decoded: off[i] and entry[i] are the index's, chunks without flags
 * are items item[i] of a batch, sizes[] and statuses[] what became of these.
 */
typedef struct lade_gpu_look {
	LADE_ADDRESS(const uint8_t *) frame;
	LADE_ADDRESS(const uint64_t *) off;
	LADE_ADDRESS(const uint64_t *) entry;
	LADE_ADDRESS(const uint64_t *) item;
	LADE_ADDRESS(const uint64_t *) sizes;
	LADE_ADDRESS(const uint32_t *) statuses;
	LADE_ADDRESS(const uint64_t *) sums; /* of the decoded bytes; NULL: not to be verified */
	LADE_ADDRESS(uint64_t *) answer;     /* becomes 1 where anything is not as it should be */
	uint64_t size;
	uint64_t sum_most; /* the largest checksum that there can be; 0: chunks have none */
	uint32_t count, chunk_size;
} lade_gpu_look;
LADE_ARGS(lade_gpu_look, 88);

#endif
