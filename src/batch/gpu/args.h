/*
 * args.h: what the host gives to the kernels that move pieces of memory and make tables (copy.cu).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_GPU_ARGS_H
#define LADE_BATCH_GPU_ARGS_H

#include "gpu/args.h"

/* Threads of a block. */
#define LADE_COPY_THREADS 256u
#define LADE_PACKED_THREADS 1024u

/* What a warp copies at a time. */
#define LADE_COPY_PIECE 16384u

/*
 * One copy: 'size' bytes from 'src' on become bytes 'at' and on of what is at 'dst'.  What the host
 * can say is the most bytes; with tables of sizes and statuses ('sizes', 'statuses' of the launch)
 * entry 'unit' says how many there are: nothing is copied where the status is not 0, and else
 * those of the unit's bytes [skip, skip + size) that exist; 'src' is where byte 'skip' of them
 * is.
 */
typedef struct lade_gpu_copy {
	LADE_ADDRESS(const uint8_t *) src;
	LADE_ADDRESS(uint8_t *) dst;
	uint64_t size, skip, at;
	uint32_t unit;
	uint32_t first; /* the number of its first piece, among those of all copies */
} lade_gpu_copy;
LADE_ARGS(lade_gpu_copy, 48);

typedef struct lade_gpu_copies {
	LADE_ADDRESS(const lade_gpu_copy *) list;
	LADE_ADDRESS(const uint64_t *) sizes;
	LADE_ADDRESS(const uint32_t *) statuses;
	uint32_t count, pieces;
} lade_gpu_copies;
LADE_ARGS(lade_gpu_copies, 32);

/* What a launch carries in its arguments: 'words' of 'word' go to 'to'.  Few have a kernel of their
 * own, since a launch takes the host longer the more it carries; its argument is how the other's
 * begins. */
#define LADE_PUT_WORDS 500u
#define LADE_PUT_FEW 64u
typedef struct lade_gpu_put {
	LADE_ADDRESS(uint64_t *) to;
	uint64_t words;
	uint64_t word[LADE_PUT_WORDS];
} lade_gpu_put;
LADE_ARGS(lade_gpu_put, 16 + 8 * LADE_PUT_WORDS);

typedef struct lade_gpu_put_few {
	LADE_ADDRESS(uint64_t *) to;
	uint64_t words;
	uint64_t word[LADE_PUT_FEW];
} lade_gpu_put_few;
LADE_ARGS(lade_gpu_put_few, 16 + 8 * LADE_PUT_FEW);

/*
 * The chunks' decoded sides, which are 'largest' bytes at most: a larger one's status becomes
 * LADE_GPU_LIMIT, and the stages leave that chunk alone; else LADE_GPU_OK.  A NULL is for them
 * to refuse.  'status' is NULL where that was done before.
 */
typedef struct lade_gpu_sides {
	LADE_ADDRESS(const uint64_t *) address;
	LADE_ADDRESS(const uint64_t *) size;
	LADE_ADDRESS(uint32_t *) status;
	uint64_t largest;
} lade_gpu_sides;
LADE_ARGS(lade_gpu_sides, 32);

/*
 * Tables of slots to make: address[i] and size[i] for each of 'count' chunks.  Slots of 'stride'
 * bytes begin every 'stride' from 'base' on; a chunk gets limit[i] + more of its slot, where there
 * is such a table and that is less.  With 'room' they are one behind the other, in that many bytes:
 * each has just what it gets, and begins at a multiple of 256.
 */
typedef struct lade_gpu_slots {
	LADE_ADDRESS(uint64_t *) address;
	LADE_ADDRESS(uint64_t *) size;
	LADE_ADDRESS(const uint64_t *) limit;
	uint64_t base, stride, room, more;
	lade_gpu_sides sides;
	uint64_t count;
} lade_gpu_slots;
LADE_ARGS(lade_gpu_slots, 96);

/*
 * Tables of bytes within other bytes: to_address[i] = address[i] + first, to_cap[i] = cap[i] -
 * less, 0 at least.  Of no address, NULL, nothing does, and it stays as it is, for the next stage
 * to refuse.  'cap' and 'to_cap' may be NULL.
 */
typedef struct lade_gpu_inset {
	LADE_ADDRESS(const uint64_t *) address;
	LADE_ADDRESS(const uint64_t *) cap;
	LADE_ADDRESS(uint64_t *) to_address;
	LADE_ADDRESS(uint64_t *) to_cap;
	lade_gpu_sides sides;
	uint32_t first, less;
	uint64_t count;
} lade_gpu_inset;
LADE_ARGS(lade_gpu_inset, 80);

/*
 * What became of items, from what became of their units: item i has the units before first[i + 1],
 * from first[i] on.  A unit must have made wanted[unit] bytes where that is not 0.  The item's size
 * is give[i]; all ones: the sum of its units'.
 * 'size' and 'status' may be NULL.
 */
typedef struct lade_gpu_combine {
	LADE_ADDRESS(const uint32_t *) first;
	LADE_ADDRESS(const uint64_t *) wanted;
	LADE_ADDRESS(const uint64_t *) give;
	LADE_ADDRESS(const uint64_t *) unit_size;
	LADE_ADDRESS(const uint32_t *) unit_status;
	LADE_ADDRESS(uint64_t *) size;
	LADE_ADDRESS(uint32_t *) status;
	uint32_t count;
} lade_gpu_combine;
LADE_ARGS(lade_gpu_combine, 64);

#endif
