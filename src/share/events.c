/*
 * events.c: what the broker says to those who wait for names and have subscribed to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/broker.h"

#include <errno.h>
#include <string.h>

static void send_event(lade__broker *b, lade__client *c, lade_share_what what, uint64_t version,
                       const char *name)
{
	lade__wire_begin(&b->packet, LADE__EVENT, 0);
	lade__wire_put(&b->packet, (uint64_t)what, 4);
	lade__wire_put(&b->packet, 0, 4);
	lade__wire_put(&b->packet, version, 8);
	lade__wire_bytes(&b->packet, name, strlen(name));
	int rc = lade__wire_send(c->fd, &b->packet);
	if (rc == EAGAIN && !c->lost) {
		/* LOST is sent when there is room again. */
		struct epoll_event event = {EPOLLIN | EPOLLOUT, {.ptr = c}};
		c->lost = true;
		epoll_ctl(b->epoll, EPOLL_CTL_MOD, c->fd, &event);
	} else if (rc && rc != EAGAIN) {
		c->gone = true;
	}
}

void lade__broker_send_lost(lade__broker *b, lade__client *c)
{
	struct epoll_event event = {EPOLLIN, {.ptr = c}};

	c->lost = false;
	epoll_ctl(b->epoll, EPOLL_CTL_MOD, c->fd, &event);
	send_event(b, c, LADE_SHARE_LOST, 0, "");
}

/* Those that wait for the name, and those that have subscribed to it. */
void lade__broker_notify(lade__broker *b, lade_share_what what, uint64_t version,
                         const char *name)
{
	for (lade__client *c = b->clients; c; c = c->next) {
		if (c->state == LADE__CLIENT_WAITS && what == LADE_SHARE_PUBLISHED &&
		    version > c->after && !strcmp(c->name, name)) {
			c->state = LADE__CLIENT_READY;
			lade__broker_done(b, c, c->request, version);
		} else if (c->state == LADE__CLIENT_SUBSCRIBED && !c->lost &&
		           !strncmp(c->name, name, strlen(c->name))) {
			send_event(b, c, what, version, name);
		}
	}
}

/* ---- leases ----------------------------------------------------------------------------- */

/* The publisher is gone, and its memory may be: those who have it open keep their maps. */
static void end_lease(lade__broker *b, lade__kept *kept)
{
	char name[LADE__NAME_MAX + 1];
	uint64_t version = kept->record.version;

	strcpy(name, kept->record.name);
	lade__broker_drop(b, kept, 0, 0);
	if (!lade__names_latest(lade__shelf_name(&b->shelf, name)))
		lade__broker_notify(b, LADE_SHARE_REMOVED, version, name);
}

void lade__broker_end_leases(lade__broker *b, uint64_t lender)
{
	for (size_t i = b->shelf.count; i-- > 0;)
		if (b->shelf.versions[i]->lender == lender)
			end_lease(b, b->shelf.versions[i]);
}
