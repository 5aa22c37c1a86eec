/*
 * directory.h: what the files of the directory store share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_STORE_DIRECTORY_H
#define LADE_STORE_DIRECTORY_H

#include "base/pool.h"
#include "store/cufile.h"
#include "store/ring.h"
#include "store/store.h"

/* Threads that read at once, the caller's among them.  More than there are cores: most wait for the
 * disk (docs/performance/log/store.md). */
#define LADE__DIRECTORY_THREADS 16

typedef struct lade__directory {
	int fd;
	uint64_t flags;
	lade__cufile cufile;
	lade__pool pool;
	pthread_t helpers[LADE__DIRECTORY_THREADS - 1];
	lade__rings rings;
	size_t ring_least; /* keys that one thread reads by a ring, at least; SIZE_MAX: none */
	char path[]; /* absolute */
} lade__directory;

/* Keys for which a ring pays, and the processors from which on threads wait for the lock of the
 * table of files: docs/performance/log/store.md. */
#define LADE__DIRECTORY_RING 4
#define LADE__DIRECTORY_RING_CPUS 6

/* The store's read(). */
void lade__directory_read(void *ctx, lade_reading *reading, size_t count);

/* sweep.c: the store's tidy(). */
void lade__directory_tidy(void *ctx, const char *prefix);

#endif
