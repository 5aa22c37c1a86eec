/*
 * args.h: what the host and the kernels of offsets agree on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_RNTUPLE_ARGS_H
#define LADE_RNTUPLE_ARGS_H

#include "gpu/args.h"

#define LADE_ENDS_THREADS 256u
#define LADE_ENDS_SLAB 4096u /* ends of a block */
#define LADE_ENDS_BASE_THREADS 1024u

#define LADE_ENDS_NO_FAULT UINT64_MAX

/* Ends that count from one place: those of a cluster. */
typedef struct lade_ends_run {
	uint64_t first; /* the number of the first, among the column's */
	int64_t base;   /* what is added to them; by lade_ends_bases() */
	int64_t most;   /* that the last of them may be */
} lade_ends_run;
LADE_ARGS(lade_ends_run, 24);

/* The ends of a column, behind the end before the first one. */
typedef struct lade_ends_column {
	LADE_ADDRESS(int64_t *) end; /* count + 1 numbers */
	uint64_t count;              /* 1 or more */
	uint64_t slab;               /* of all columns, its first */
	/* Twice the number of the first end that decreases or overflows; and 1, if it is above
	 * what it may be. */
	uint64_t fault;
	uint32_t run, run_count;
} lade_ends_column;
LADE_ARGS(lade_ends_column, 40);

typedef struct lade_ends {
	LADE_ADDRESS(lade_ends_column *) column;
	LADE_ADDRESS(lade_ends_run *) run;
	uint64_t slab_count;
	uint32_t column_count, zero;
} lade_ends;
LADE_ARGS(lade_ends, 32);

#endif
