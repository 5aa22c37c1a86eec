/*
 * spill.h: what was used least recently makes room: it goes compressed to memory, then to files,
 * and comes back when it is opened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_SPILL_H
#define LADE_SHARE_SPILL_H

#include "share/store.h"

struct lade__broker;

/* What the worker does.  One thing at a time: while it runs the block has a reference of it. */
typedef struct lade__task {
	lade__wire_kind kind; /* 0: nothing */
	lade__memory *memory; /* NULL for NOTE */
	uint64_t version;     /* of NOTE */
	uint64_t serial;
	unsigned tries;
	lade__block made; /* the block's next place; its descriptor is the task's */
	uint64_t size;    /* of a file */
	bool swaps;       /* the keeper is asked to put the block there */
	bool asked;       /* it was */
	bool later;       /* the worker could not be sent it */
} lade__task;

/* A file that goes once the keeper has dropped a version: the keeper may be the next broker's. */
typedef struct lade__unneeded {
	uint64_t dropped, number;
	bool version;
} lade__unneeded;

typedef struct lade__spill {
	const char *path; /* of the folder; NULL: there is none */
	int folder, worker;
	pid_t pid;
	uint64_t file_cap, last_file;
	lade__task task;
	uint64_t owed;     /* bytes of versions that wait for room */
	size_t waiting;    /* versions that do */
	size_t opening;    /* clients that wait for blocks to come back */
	bool notes;        /* some versions may have to be noted */
	lade_error trouble; /* the last failure to make room */
	int64_t again, worker_again; /* until then no files are written, the worker gets nothing */
	uint64_t packed, stored, returned; /* blocks */
	uint64_t dropping; /* a version: files that it leaves are unneeded once it is dropped */
	lade__unneeded *unneeded;
	size_t unneeded_count, unneeded_cap;
	lade__packet note;
} lade__spill;

/* Opens the folder and takes what is in it: after the keeper has said what it has.
 * Fails: LADE_E_IO, LADE_E_STATE (another broker has it), LADE_E_NOMEM */
lade_status lade__spill_start(struct lade__broker *broker, const char *path, lade_error *err);
/* 'all': nothing stays in the folder. */
void lade__spill_end(struct lade__broker *broker, bool all);

/* Whether 'size' bytes of memory more are within the budget, beside what waits. */
bool lade__spill_fits(const struct lade__broker *broker, uint64_t size);
/* Begins what is due: blocks that clients wait for come back, versions that wait get room. */
void lade__spill_work(struct lade__broker *broker);
/* The worker has said something. */
void lade__spill_hear(struct lade__broker *broker);
/* The keeper has dropped a version. */
void lade__spill_dropped(struct lade__broker *broker, uint64_t version);
/* Whether the keeper is just putting a block of the version elsewhere: who opens it waits. */
bool lade__spill_moves(const struct lade__broker *broker, const lade__kept *kept);
/* Asks the keeper to put a block where the worker has; returns as lade__wire_send(). */
int lade__spill_ask(struct lade__broker *broker);
/* The keeper has, or has failed to: 'failed'. */
void lade__spill_kept(struct lade__broker *broker, const lade_error *failed);

#endif
