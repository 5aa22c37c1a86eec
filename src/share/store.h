/*
 * store.h: what the broker and the keeper hold: versions, their memory, the index of names.
 *
 * One thread uses a store.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_STORE_H
#define LADE_SHARE_STORE_H

#include "share/wire.h"

#include <sys/types.h>

/* A memfd.  Versions that share it share this. */
typedef struct lade__memory {
	dev_t dev;
	ino_t ino;
	int fd;
	uint64_t size;
	size_t refs;
} lade__memory;

typedef enum lade__kept_state {
	LADE__KEPT_NEW = 0,
	LADE__KEPT_SENT,
	LADE__KEPT_SAFE
} lade__kept_state;

typedef struct lade__kept {
	lade__record record;    /* its blocks are below, its head behind them */
	size_t held;            /* times that clients have it open */
	lade__kept_state state; /* the keeper's copy */
	bool visible;
	uint64_t client; /* of the publisher, who waits for the answer; 0: nobody does */
	uint64_t request;
	lade__memory **memories; /* by block */
	lade__block blocks[];
} lade__kept;

typedef struct lade__names {
	char *name;
	uint32_t uid;          /* the owner */
	lade__kept **versions; /* ascending */
	size_t count, cap;
} lade__names;

typedef struct lade__shelf {
	lade__names **names; /* by name */
	size_t name_count, name_cap;
	lade__kept **versions; /* ascending */
	size_t count, cap;
	lade__memory **memories; /* by dev and ino */
	size_t memory_count, memory_cap;
	uint64_t bytes; /* of memories and heads */
} lade__shelf;

/*
 * Adds a version; the name's owner is the record's uid if it is new.  Takes the descriptors of the
 * record, also on failure.
 * Fails: LADE_E_CORRUPT (memory that is not sealed or too small), LADE_E_NOT_FOUND (a REF to what
 *        is not there), LADE_E_STATE (another user's name), LADE_E_LIMIT (above 'bytes_cap'; 0:
 *        none), LADE_E_NOMEM
 */
lade_status lade__shelf_add(lade__shelf *shelf, lade__record *record, uint64_t bytes_cap,
                            lade__kept **out, lade_error *err);
void lade__shelf_drop(lade__shelf *shelf, lade__kept *kept);

lade__kept *lade__shelf_find(const lade__shelf *shelf, uint64_t version);
lade__names *lade__shelf_name(const lade__shelf *shelf, const char *name);
/* The index of the first name that is above 'name', or also equal to it. */
size_t lade__shelf_after(const lade__shelf *shelf, const char *name, bool or_equal);
/* The latest version that is visible; NULL: none is. */
lade__kept *lade__names_latest(const lade__names *names);

void lade__shelf_reset(lade__shelf *shelf);

#endif
