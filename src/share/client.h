/*
 * client.h: a connection's state, and how to ask over it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_CLIENT_H
#define LADE_SHARE_CLIENT_H

#include "share/area.h"
#include "share/column.h"
#include "share/socket.h"

#include <stdatomic.h>

struct lade_share {
	atomic_size_t refs; /* the caller's, and one for each opened version */
	char path[LADE__PATH_MAX];
	bool own; /* a broker of the user's own is wanted */
	uint32_t timeout_ms;
	lade__areas *areas;

	pthread_mutex_t mutex; /* held from a question to its answer; guards what follows */
	int fd;                /* -1: not connected */
	pid_t pid;             /* of the process that connected */
	uint64_t request;
	uint64_t generation; /* of connections; changes under both mutexes */
	bool bound;          /* 'out' names what this connection has open: no other may get it */
	uint32_t wait_ms;    /* that this question may take beside the timeout */
	lade__packet out, in;

	pthread_mutex_t cache_mutex; /* taken after 'mutex'; guards what follows */
	lade_share_version *cache;   /* what is open and may be opened again */
	uint64_t *releases;          /* versions whose RELEASE has not been sent */
	size_t release_count, release_cap;
};

struct lade_share_version {
	atomic_size_t refs;
	lade_share *share;
	lade_share_version *next; /* in the cache */
	bool cached;
	atomic_bool checked; /* in full */
	uint64_t generation; /* of the connection that has it open */
	lade_share_info info;
	char name[LADE__NAME_MAX + 1];
	uint8_t *bytes; /* of the head */
	lade__head head;
	size_t area_count;
	lade__area *areas[];
};

/* What a listing says; the name is the record's. */
static inline lade_share_info lade__share_info(const lade__record *r)
{
	return (lade_share_info){.name = r->name,
	                         .version = r->version,
	                         .rows = r->rows,
	                         .bytes = r->bytes,
	                         .time = r->time,
	                         .columns = r->columns,
	                         .batches = r->batches,
	                         .uid = r->uid,
	                         .pid = r->pid,
	                         .on_device = r->flags & LADE__RECORD_DEVICE,
	                         .copied = r->flags & LADE__RECORD_COPIED,
	                         .leased = r->flags & LADE__RECORD_LEASE,
	                         .place = r->flags & LADE__RECORD_FILE     ? LADE_SHARE_DISK
	                                  : r->flags & LADE__RECORD_PACKED ? LADE_SHARE_COMPRESSED
	                                                                   : LADE_SHARE_MEMORY,
	                         .device = -1};
}

void lade__share_unref(lade_share *share);

/* Takes the mutex, connects if needed, and begins a message in share->out. */
lade_status lade__share_begin(lade_share *share, lade__wire_kind kind, lade_error *err);

/*
 * Sends share->out and receives an answer of that kind to share->in.  'again': the question may be
 * asked twice, if the broker ends before it answers.
 * Fails: LADE_E_IO, what a FAILED says
 */
lade_status lade__share_ask(lade_share *share, lade__wire_kind want, bool again, lade_error *err);
void lade__share_end(lade_share *share);

/* Says it to the broker, now or with the next question; not to another than had it open. */
void lade__share_release(lade_share *share, uint64_t version, uint64_t generation);

lade_status lade__share_name(const char *name, lade_error *err);

#endif
