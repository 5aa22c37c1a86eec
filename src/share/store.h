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

/* The 'device' of blocks that are in files. */
#define LADE__DEV_FILE ((dev_t)-1)

/* A block: in a memfd, compressed in one, in a file, or in a device's memory.  Versions that share
 * it share this. */
typedef struct lade__memory {
	dev_t dev; /* DEVICE, LEASE: 0, which no file has */
	ino_t ino; /* FILE, DEVICE, LEASE: its number */
	int fd;    /* FILE, LEASE: -1 */
	uint64_t size;
	size_t refs;
	uint8_t form;    /* LADE__BLOCK_HOST, _PACKED, _FILE, _DEVICE or _LEASE */
	bool hard;       /* compressing saves too little */
	int64_t again;   /* compressing failed: when it is tried again, in ms */
	uint64_t taken;  /* bytes that it takes so; of a device: what its publisher says */
	uint64_t used;   /* when it was opened last, by the shelf's clock */
	size_t held;     /* times that it must stay as it is */
	uint64_t device; /* DEVICE, LEASE: 8 bytes of the UUID */
	uint8_t handle[LADE__LEASE_SIZE]; /* LEASE */
} lade__memory;

typedef enum lade__kept_state {
	LADE__KEPT_NEW = 0,
	LADE__KEPT_SENT,
	LADE__KEPT_SAFE,
	LADE__KEPT_WAITS, /* for room; the keeper gets it then */
} lade__kept_state;

typedef struct lade__kept {
	lade__record record;    /* its blocks are below, its head behind them */
	size_t held;            /* times that clients have it open */
	lade__kept_state state; /* the keeper's copy */
	bool visible;
	bool pinned;   /* until it is visible, its blocks stay as they are */
	uint8_t noted; /* 1: it has a file of its own, too; 2: that failed */
	uint64_t owed; /* WAITS: bytes that it has added to the shelf's */
	int64_t until; /* WAITS: the monotonic time, in ms, at which it fails */
	uint64_t client; /* of the publisher, who waits for the answer; 0: nobody does */
	uint64_t lender; /* the publisher, whose memory it is; 0: it has no lease */
	uint64_t request;
	lade__memory **memories; /* by block */
	lade__memory **copies;   /* by block, on the host of what is on a device; NULL: none */
	bool copying;            /* they are on their way */
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
	uint64_t bytes; /* of memory, compressed or not, and of heads; not of devices */
	uint64_t packed_bytes, file_bytes, device_bytes;
	size_t descriptors; /* of memories */
	uint64_t clock;
	/* Called when a block leaves file 'number', or a version that is noted goes; or NULL */
	void (*gone)(void *ctx, uint64_t number, bool version);
	void *gone_ctx;
} lade__shelf;

/*
 * Adds a version; the name's owner is the record's uid if it is new.  Takes the descriptors of the
 * record, also on failure.
 * Fails: LADE_E_CORRUPT (memory that is not sealed or too small), LADE_E_NOT_FOUND (a REF to what
 *        is not there), LADE_E_STATE (another user's name), LADE_E_LIMIT (alone above
 *        'bytes_cap'; 0: none), LADE_E_NOMEM
 */
lade_status lade__shelf_add(lade__shelf *shelf, lade__record *record, uint64_t bytes_cap,
                            lade__kept **out, lade_error *err);
void lade__shelf_drop(lade__shelf *shelf, lade__kept *kept);

/* The record, whose blocks say where they are now. */
const lade__record *lade__kept_record(lade__kept *kept);
/* Its blocks stay as they are, 'count' times more or less. */
void lade__kept_hold(lade__shelf *shelf, lade__kept *kept, int count);
/* The flags of an entry. */
uint32_t lade__kept_place(const lade__kept *kept);

/* A block by device and number; NULL: it is not here. */
lade__memory *lade__shelf_memory(const lade__shelf *shelf, dev_t dev, ino_t ino);
/* Puts a block elsewhere; takes the descriptor.  'size': of the block itself.  Fails: LADE_E_IO */
lade_status lade__shelf_swap(lade__shelf *shelf, lade__memory *memory, const lade__block *to,
                             lade_error *err);
void lade__shelf_unref(lade__shelf *shelf, lade__memory *memory);
/* Adds copies on the host of a version's blocks that are on a device, in their order.  Takes the
 * descriptors of 'from', also on failure.  Fails: LADE_E_CORRUPT, LADE_E_LIMIT, LADE_E_NOMEM */
lade_status lade__shelf_copies(lade__shelf *shelf, lade__kept *kept, lade__record *from,
                               uint64_t bytes_cap, lade_error *err);
void lade__shelf_drop_copies(lade__shelf *shelf, lade__kept *kept);

lade__kept *lade__shelf_find(const lade__shelf *shelf, uint64_t version);
lade__names *lade__shelf_name(const lade__shelf *shelf, const char *name);
/* The index of the first name that is above 'name', or also equal to it. */
size_t lade__shelf_after(const lade__shelf *shelf, const char *name, bool or_equal);
/* The latest version that is visible; NULL: none is. */
lade__kept *lade__names_latest(const lade__names *names);

void lade__shelf_reset(lade__shelf *shelf);

#endif
