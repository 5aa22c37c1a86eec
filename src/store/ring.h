/*
 * ring.h: small files read by io_uring, by their names.  They take no place in the process's table
 * of files, whose lock threads that open and close many files wait for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_STORE_RING_H
#define LADE_STORE_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files that a ring reads at once. */
#define LADE__RING_FILES 16

typedef struct lade__ring lade__ring;

/* Those that no thread uses at the moment.  In a forked child there are none. */
typedef struct lade__rings {
	pthread_mutex_t mutex; /* guards what follows */
	lade__ring *free;
	bool refused; /* the kernel gives none */
	unsigned generation;
} lade__rings;

void lade__rings_init(lade__rings *rings);
void lade__rings_reset(lade__rings *rings); /* all of them are free */

/* NULL: the kernel is old, or does not allow it. */
lade__ring *lade__ring_take(lade__rings *rings);
void lade__ring_give(lade__rings *rings, lade__ring *ring);

typedef struct lade__ring_file {
	const char *name; /* below the directory */
	uint64_t off;
	void *to;
	size_t size;
	bool whole; /* all 'size' bytes were read, from the page cache */
} lade__ring_file;

/* Reads files of the directory 'dir', LADE__RING_FILES at most.  False: the ring is of no more use,
 * and reads nothing any more. */
bool lade__ring_read(lade__ring *ring, int dir, lade__ring_file *files, size_t count);

#endif
