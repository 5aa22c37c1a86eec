/*
 * broker.h: the broker's state.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_BROKER_H
#define LADE_SHARE_BROKER_H

#include "share/socket.h"
#include "share/spill.h"

#include <sys/epoll.h>
#include <time.h>

typedef struct lade__hold {
	uint64_t version;
	size_t count;
} lade__hold;

typedef enum lade__client_state {
	LADE__CLIENT_READY = 0,
	LADE__CLIENT_BUSY,  /* the keeper must answer first */
	LADE__CLIENT_WAITS, /* for a version of 'name' above 'after' */
	LADE__CLIENT_SUBSCRIBED,
	LADE__CLIENT_OPENS, /* version 'after', whose blocks come back first */
	LADE__CLIENT_COPY,  /* for the copies of version 'after' on the host */
} lade__client_state;

typedef struct lade__client {
	struct lade__client *next;
	int fd;
	uid_t uid;
	pid_t pid;
	uint64_t serial;
	lade__client_state state;
	bool gone; /* to be disconnected */
	bool lends; /* it has published leases */
	bool copy;  /* OPENS: it gets a device's memory as copies on the host */
	bool lost; /* a subscriber that missed an event */
	char name[LADE__NAME_MAX + 1];
	uint64_t after, request;
	lade__hold *held; /* ascending */
	size_t held_count, held_cap;
} lade__client;

/* What the keeper shall forget; who waits for it. */
typedef struct lade__dropped {
	uint64_t version, client, request;
	bool sent;
} lade__dropped;

typedef struct lade__broker {
	char path[LADE__PATH_MAX], keeper_path[LADE__PATH_MAX];
	int lock, epoll, listener, keeper, copier; /* copier -1: none runs */
	struct timespec copied;                    /* when it was last of use */
	bool group, keeper_wants;
	bool again; /* what the keeper shall have is sent a little later */
	bool deaf;  /* connections are taken a little later */
	uint32_t client_cap, client_count, name_cap;
	uint64_t bytes_cap, serial, last_version;
	size_t unsent; /* versions in state NEW */
	lade__dropped *drops;
	size_t drop_count, drop_cap;
	lade__client *clients;
	lade__shelf shelf;
	lade__spill spill;
	lade_share_statistics numbers;
	struct epoll_event events[64];
	int event_count;
	lade__packet in, packet; /* what was received, what is sent */
} lade__broker;

/* Bits of the requests that the keeper answers: to forget a version, to put a block elsewhere. */
#define LADE__DROPPING ((uint64_t)1 << 63)
#define LADE__SWAPPING ((uint64_t)1 << 62)

/* Descriptors for what is neither memory nor a client: standard ones, sockets, one message's. */
#define LADE__RESERVED (LADE__WIRE_FDS + 32)

/* How often a lock is tried that another process has. */
#define LADE__LOCK_TRIES 10
#define LADE__LOCK_MS 20

/* The body of NUMBERS (spill.c). */
void lade__broker_put_numbers(const lade__broker *broker, lade__packet *packet);
/* lock.c: the soft limit of descriptors, after it was raised to the hard one. */
uint64_t lade__lock_descriptors(void);
/* The path's lock, which has the highest version that was given. */
lade_status lade__lock_take(lade__broker *broker, const char *path, lade_error *err);
/* After the keeper has said what it has. */
lade_status lade__lock_read(lade__broker *broker, lade_error *err);
/* A number that no version of this path has had, whoever served it. */
lade_status lade__lock_next(lade__broker *broker, uint64_t *version, lade_error *err);

/* Descriptors that are in use or reserved. */
uint64_t lade__broker_descriptors(const lade__broker *broker);
/* Milliseconds of a clock that only goes forward. */
int64_t lade__broker_now(void);
/* Sends the keeper what it lacks, as far as its socket has room. */
void lade__broker_pump(lade__broker *broker);
/* A version that waited for room goes to the keeper, or its publisher gets the error. */
void lade__broker_admit(lade__broker *broker, lade__kept *kept);
void lade__broker_refuse(lade__broker *broker, lade__kept *kept, const lade_error *err);
/* Answers a client that opens a version. */
void lade__broker_opened(lade__broker *broker, lade__client *client, lade__kept *kept);
void lade__broker_open_failed(lade__broker *broker, lade__client *client, const lade_error *err);
/* Drops a version here and in the keeper; then the client, if any, gets its answer. */
void lade__broker_drop(lade__broker *broker, lade__kept *kept, uint64_t client, uint64_t request);

/* events.c: those that wait for the name, and those that have subscribed to it. */
void lade__broker_notify(lade__broker *broker, lade_share_what what, uint64_t version,
                         const char *name);
void lade__broker_send_lost(lade__broker *broker, lade__client *client);
/* The leases of a publisher that has gone. */
void lade__broker_end_leases(lade__broker *broker, uint64_t lender);

void lade__broker_done(lade__broker *broker, lade__client *client, uint64_t request,
                       uint64_t version);
/* Sends a packet.  A client that has no room for it is not one that reads. */
bool lade__broker_reply(lade__client *client, lade__packet *packet);
/* Says why a version, which the client is counted to have open, could not be opened. */
void lade__broker_not_opened(lade__broker *broker, lade__client *client, uint64_t request,
                             uint64_t version, const lade_error *err);

/* Answers with a version, which the client is counted to have open, as copies on the host: at once,
 * or when they are there.  Fails: LADE_E_IO, LADE_E_LIMIT */
lade_status lade__copies_open(lade__broker *broker, lade__client *client, uint64_t request,
                              lade__kept *kept, lade_error *err);
/* What the copier says. */
void lade__copies_hear(lade__broker *broker);
/* Ends a copier that has nothing to do. */
void lade__copies_rest(lade__broker *broker);

#endif
