/*
 * broker.h: the broker's state.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_BROKER_H
#define LADE_SHARE_BROKER_H

#include "share/socket.h"
#include "share/store.h"

#include <sys/epoll.h>

typedef struct lade__hold {
	uint64_t version;
	size_t count;
} lade__hold;

typedef enum lade__client_state {
	LADE__CLIENT_READY = 0,
	LADE__CLIENT_BUSY,  /* the keeper must answer first */
	LADE__CLIENT_WAITS, /* for a version of 'name' above 'after' */
	LADE__CLIENT_SUBSCRIBED,
} lade__client_state;

typedef struct lade__client {
	struct lade__client *next;
	int fd;
	uid_t uid;
	pid_t pid;
	uint64_t serial;
	lade__client_state state;
	bool gone; /* to be disconnected */
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
	int lock, epoll, listener, keeper;
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
	lade_share_statistics numbers;
	struct epoll_event events[64];
	int event_count;
	lade__packet in, packet; /* what was received, what is sent */
} lade__broker;

/* Drops a version here and in the keeper; then the client, if any, gets its answer. */
void lade__broker_drop(lade__broker *broker, lade__kept *kept, uint64_t client, uint64_t request);

#endif
