/*
 * broker.c: serves the names to clients: one thread, one message at a time.
 *
 * A client is trusted with nothing.  It asks one question at a time and reads the answer before the
 * next one, so that a socket always has room for an answer.  Who breaks this is disconnected, and
 * nobody waits for anybody.
 *
 *     PUBLISH --> checked, added, not visible --> KEEP --> keeper
 *     DONE    <-- visible                     <-- KEPT <--
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/broker.h"

#include "base/options.h"
#include "base/try.h"
#include "share/keeper.h"
#include "share/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_DEFAULT 1024
#define NAMES_DEFAULT 1000000
#define STOP_MS 100
#define STOP_WAIT_MS 2000
#define KEEPER_TRIES 20
#define KEEPER_MS 20
#define EVENTS 64
/* When the system had no room for a message or no descriptor for a client: again after that. */
#define AGAIN_MS 20
/* Whether a copier has nothing to do. */
#define COPIER_MS 1000

/* ---- clients ---------------------------------------------------------------------------- */

static lade__client *find_client(lade__broker *b, uint64_t serial)
{
	for (lade__client *c = serial ? b->clients : NULL; c; c = c->next)
		if (c->serial == serial)
			return c;
	return NULL;
}

static size_t held_place(const lade__client *c, uint64_t version)
{
	size_t low = 0, high = c->held_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (c->held[mid].version < version)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool hold(lade__broker *b, lade__client *c, lade__kept *kept)
{
	size_t at = held_place(c, kept->record.version);

	if (at == c->held_count || c->held[at].version != kept->record.version) {
		if (c->held_count == c->held_cap) {
			size_t cap = c->held_cap ? c->held_cap * 2 : 8;
			lade__hold *larger = realloc(c->held, cap * sizeof *larger);
			if (!larger)
				return false;
			c->held = larger;
			c->held_cap = cap;
		}
		memmove(c->held + at + 1, c->held + at, (c->held_count - at) * sizeof *c->held);
		c->held[at] = (lade__hold){kept->record.version, 0};
		c->held_count++;
	}
	c->held[at].count++;
	kept->held++;
	lade__kept_hold(&b->shelf, kept, 1);
	return true;
}

/* A version that nobody can find by its name any more goes when nobody has it open. */
static void drop_if_old(lade__broker *b, lade__kept *kept)
{
	if (kept->visible && !kept->held &&
	    lade__names_latest(lade__shelf_name(&b->shelf, kept->record.name)) != kept)
		lade__broker_drop(b, kept, 0, 0);
}

static void unhold(lade__broker *b, lade__client *c, size_t at, size_t count)
{
	lade__kept *kept = lade__shelf_find(&b->shelf, c->held[at].version);

	c->held[at].count -= count;
	if (!c->held[at].count) {
		c->held_count--;
		memmove(c->held + at, c->held + at + 1, (c->held_count - at) * sizeof *c->held);
	}
	if (kept) {
		kept->held -= count;
		lade__kept_hold(&b->shelf, kept, -(int)count);
		if (!kept->held)
			lade__shelf_drop_copies(&b->shelf, kept);
		drop_if_old(b, kept);
	}
}

static void forget_waiting(lade__broker *b, lade__kept *kept)
{
	b->spill.owed -= kept->owed;
	b->spill.waiting--;
	lade__shelf_drop(&b->shelf, kept);
}

/* A process that is just starting may have it, too, and keep its events coming. */
static void close_client(const lade__broker *b, int fd)
{
	epoll_ctl(b->epoll, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
}

/* Its events, if some are waiting, may be NULL in the list of the loop. */
static void disconnect(lade__broker *b, lade__client *c)
{
	lade__client **at = &b->clients;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	b->spill.opening -= c->state == LADE__CLIENT_OPENS;
	/* Nobody would hear that it got room. */
	for (size_t i = b->spill.waiting ? b->shelf.count : 0; i-- > 0;)
		if (b->shelf.versions[i]->state == LADE__KEPT_WAITS &&
		    b->shelf.versions[i]->client == c->serial)
			forget_waiting(b, b->shelf.versions[i]);
	while (c->held_count)
		unhold(b, c, c->held_count - 1, c->held[c->held_count - 1].count);
	if (c->lends)
		lade__broker_end_leases(b, c->serial);
	for (int i = 0; i < b->event_count; i++)
		if (b->events[i].data.ptr == c)
			b->events[i].data.ptr = NULL;
	close_client(b, c->fd);
	free(c->held);
	free(c);
	b->client_count--;
}

bool lade__broker_reply(lade__client *c, lade__packet *p)
{
	c->gone |= lade__wire_send(c->fd, p) != 0;
	return !c->gone;
}

void lade__broker_done(lade__broker *b, lade__client *c, uint64_t request, uint64_t version)
{
	lade__wire_begin(&b->packet, LADE__DONE, request);
	lade__wire_put(&b->packet, version, 8);
	lade__broker_reply(c, &b->packet);
}

static void reply_failed(lade__broker *b, lade__client *c, uint64_t request, const lade_error *err)
{
	b->numbers.refused++;
	lade__wire_failed(&b->packet, request, err);
	lade__broker_reply(c, &b->packet);
}

void lade__broker_not_opened(lade__broker *b, lade__client *c, uint64_t request, uint64_t version,
                             const lade_error *err)
{
	unhold(b, c, held_place(c, version), 1);
	reply_failed(b, c, request, err);
}

/* Those that were marked as gone while others were served. */
static void sweep(lade__broker *b)
{
	lade__client *next;

	for (lade__client *c = b->clients; c; c = next) {
		next = c->next;
		if (c->gone)
			disconnect(b, c);
	}
}

/* ---- the keeper ------------------------------------------------------------------------- */


void lade__broker_pump(lade__broker *b)
{
	int rc = 0;

	if (b->keeper < 0)
		return;
	for (size_t i = 0; i < b->drop_count && !rc; i++) {
		if (b->drops[i].sent)
			continue;
		lade__wire_begin(&b->packet, LADE__DROP, b->drops[i].version | LADE__DROPPING);
		lade__wire_put(&b->packet, b->drops[i].version, 8);
		rc = lade__wire_send(b->keeper, &b->packet);
		b->drops[i].sent = !rc;
	}
	/* The oldest first: who gets an answer from a new keeper knows that it has the rest. */
	size_t at = b->shelf.count;
	for (size_t left = b->unsent; at && left;)
		left -= b->shelf.versions[--at]->state == LADE__KEPT_NEW;
	for (; at < b->shelf.count && !rc && b->unsent; at++) {
		lade__kept *kept = b->shelf.versions[at];
		if (kept->state != LADE__KEPT_NEW)
			continue;
		lade__wire_begin(&b->packet, LADE__KEEP, kept->record.version);
		lade__wire_record(&b->packet, lade__kept_record(kept));
		rc = lade__wire_send(b->keeper, &b->packet);
		if (!rc) {
			kept->state = LADE__KEPT_SENT;
			b->unsent--;
		}
	}
	if (!rc)
		rc = lade__spill_ask(b);
	/* Memory of the system, or its limit of descriptors on their way: no event reports that. */
	b->again = rc == ENOBUFS || rc == ENOMEM || rc == ETOOMANYREFS;
	bool wants = rc == EAGAIN;
	if (wants != b->keeper_wants) {
		struct epoll_event event = {EPOLLIN | (wants ? EPOLLOUT : 0), {.ptr = &b->keeper}};
		b->keeper_wants = wants;
		epoll_ctl(b->epoll, EPOLL_CTL_MOD, b->keeper, &event);
	}
	/* Any other failure shows as the end of the connection. */
}

static void finish_drop(lade__broker *b, size_t at)
{
	lade__dropped drop = b->drops[at];
	lade__client *c = find_client(b, drop.client);

	b->drops[at] = b->drops[--b->drop_count];
	lade__spill_dropped(b, drop.version);
	if (c) {
		c->state = LADE__CLIENT_READY;
		lade__broker_done(b, c, drop.request, drop.version);
	}
}

/* Without memory for it, the keeper is left: the next one never had the version. */
static bool add_drop(lade__broker *b, lade__dropped drop)
{
	if (b->drop_count == b->drop_cap) {
		size_t cap = b->drop_cap ? b->drop_cap * 2 : 64;
		lade__dropped *larger = realloc(b->drops, cap * sizeof *larger);
		if (!larger) {
			lade__client *c = find_client(b, drop.client);
			if (c)
				c->gone = true;
			if (b->keeper >= 0)
				shutdown(b->keeper, SHUT_RDWR);
			return false;
		}
		b->drops = larger;
		b->drop_cap = cap;
	}
	b->drops[b->drop_count++] = drop;
	return true;
}

void lade__broker_drop(lade__broker *b, lade__kept *kept, uint64_t client, uint64_t request)
{
	bool known = kept->state != LADE__KEPT_NEW;
	lade__dropped drop = {kept->record.version, client, request, false};

	if (!known)
		b->unsent--;
	b->spill.dropping = drop.version;
	lade__shelf_drop(&b->shelf, kept);
	b->spill.dropping = 0;
	if (!add_drop(b, drop))
		lade__spill_dropped(b, drop.version);
	else if (!known)
		finish_drop(b, b->drop_count - 1);
}

static void commit(lade__broker *b, lade__kept *kept)
{
	lade__names *names = lade__shelf_name(&b->shelf, kept->record.name);
	lade__client *c = find_client(b, kept->client);

	kept->visible = true;
	kept->client = 0;
	kept->pinned = false;
	lade__kept_hold(&b->shelf, kept, -1);
	b->numbers.published++;
	if (c) {
		c->state = LADE__CLIENT_READY;
		lade__broker_done(b, c, kept->request, kept->record.version);
	}
	lade__broker_notify(b, LADE_SHARE_PUBLISHED, kept->record.version, kept->record.name);
	for (size_t i = names->count; i-- > 0;)
		drop_if_old(b, names->versions[i]);
}

static void refuse(lade__broker *b, lade__kept *kept)
{
	lade__client *c = find_client(b, kept->client);
	uint64_t request = kept->request;
	lade_error err;

	lade__read_failed(&b->in, &err);
	/* What is visible is in the broker, and the next keeper may take it. */
	if (kept->visible)
		return;
	lade__shelf_drop(&b->shelf, kept);
	if (c) {
		c->state = LADE__CLIENT_READY;
		reply_failed(b, c, request, &err);
	}
}

/* What a keeper has that was here before: the rest is new to it, and what it has beyond goes. */
static void compare(lade__broker *b, const lade__shelf *found)
{
	b->unsent = 0;
	for (size_t i = 0; i < b->shelf.count; i++) {
		lade__kept *kept = b->shelf.versions[i];
		if (kept->state == LADE__KEPT_WAITS)
			continue;
		bool there = kept->lender || (lade__shelf_find(found, kept->record.version) &&
		                              kept->visible);
		kept->state = there ? LADE__KEPT_SAFE : LADE__KEPT_NEW;
		b->unsent += !there;
	}
	for (size_t i = 0; i < found->count; i++)
		if (!lade__shelf_find(&b->shelf, found->versions[i]->record.version))
			add_drop(b,
			         (lade__dropped){found->versions[i]->record.version, 0, 0, false});
}

/* Connects to the keeper, or starts one.  The first one brings what an earlier broker had. */
static lade_status start_keeper(lade__broker *b, lade_error *err)
{
	struct epoll_event event = {EPOLLIN, {.ptr = &b->keeper}};
	bool first = !b->numbers.keeper_starts;
	lade__shelf found = {0};
	lade_status status;

	b->keeper_wants = false;
	TRY(lade__keeper_connect(b->keeper_path, &b->keeper, err));
	TRY(lade__keeper_all(b->keeper, &b->in, first ? &b->shelf : &found, &b->numbers.keeper_pid,
	                     err));
	fcntl(b->keeper, F_SETFL, O_NONBLOCK);
	if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->keeper, &event))
		TRY(lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "epoll: %s", strerror(errno)));
	b->numbers.keeper_starts++;
	b->spill.task.asked = false;
	if (!first)
		compare(b, &found);
	lade__broker_pump(b);
out:
	lade__shelf_reset(&found);
	if (status != LADE_OK && b->keeper >= 0) {
		close(b->keeper);
		b->keeper = -1;
	}
	return status;
}

/* The loop starts another. */
static void lose_keeper(lade__broker *b)
{
	close(b->keeper);
	b->keeper = -1;
	while (b->drop_count)
		finish_drop(b, b->drop_count - 1);
}

static void hear_keeper(lade__broker *b)
{
	lade_status status = lade__wire_receive(b->keeper, &b->in, NULL);
	uint64_t request, version;
	lade__kept *kept;

	if (status == LADE_E_STATE)
		return;
	if (status != LADE_OK || !b->in.size) {
		lose_keeper(b);
		return;
	}
	lade__packet_close(&b->in);
	request = lade__packet_request(&b->in);
	version = request & ~LADE__DROPPING;
	if (request & LADE__SWAPPING && !(request & LADE__DROPPING)) {
		lade_error err;
		bool failed = lade__packet_kind(&b->in) == LADE__FAILED;
		if (failed)
			lade__read_failed(&b->in, &err);
		if ((request & ~LADE__SWAPPING) == b->spill.task.serial)
			lade__spill_kept(b, failed ? &err : NULL);
		return;
	}
	if (request & LADE__DROPPING) {
		for (size_t i = 0; i < b->drop_count; i++)
			if (b->drops[i].version == version) {
				finish_drop(b, i);
				break;
			}
		return;
	}
	kept = lade__shelf_find(&b->shelf, version);
	if (!kept || kept->state != LADE__KEPT_SENT)
		return;
	kept->state = LADE__KEPT_SAFE;
	if (lade__packet_kind(&b->in) == LADE__FAILED)
		refuse(b, kept);
	else if (!kept->visible)
		commit(b, kept);
}

/* ---- requests --------------------------------------------------------------------------- */

uint64_t lade__broker_descriptors(const lade__broker *b)
{
	return b->shelf.descriptors + b->client_count + LADE__RESERVED;
}

/* Room for what a message brings. */
static lade_status check_room(const lade__broker *b, const lade__record *r, lade_error *err)
{
	uint64_t used = lade__broker_descriptors(b);

	if (r->block_count && used + r->block_count > b->numbers.descriptor_cap)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "'%s' needs %zu descriptors, and %llu of the broker's %llu are "
		                 "in use or reserved",
		                 r->name, r->block_count, (unsigned long long)used,
		                 (unsigned long long)b->numbers.descriptor_cap);
	if (b->shelf.count >= b->name_cap)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "'%s' is not the broker's: it has %zu versions, at most %u",
		                 r->name, b->shelf.count, b->name_cap);
	return LADE_OK;
}

/* Whether the client has open what it publishes again.  Only brokers set other flags, only keepers
 * know other forms. */
static lade_status check_blocks(const lade__client *c, const lade__record *r, lade_error *err)
{
	if (r->flags & ~(uint32_t)LADE__RECORD_HEAD_BLOCK)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                 "'%s' has flags %u, of which a publisher may set only bit 0",
		                 r->name, r->flags);
	for (size_t i = 0; i < r->block_count; i++) {
		uint64_t version = r->blocks[i].version;
		if (r->blocks[i].kind == LADE__BLOCK_PACKED ||
		    r->blocks[i].kind == LADE__BLOCK_FILE)
			return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                 "block %zu of '%s' is of kind %d", i, r->name,
			                 r->blocks[i].kind);
		size_t at = held_place(c, version);
		if (r->blocks[i].kind == LADE__BLOCK_REF &&
		    (at == c->held_count || c->held[at].version != version))
			return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
			                 "block %zu of '%s' is of version %llu, which the "
			                 "publisher has not open",
			                 i, r->name, (unsigned long long)version);
	}
	return LADE_OK;
}

static lade_status publish(lade__broker *b, lade__client *c, uint64_t request, lade_error *err)
{
	lade__block room[LADE__WIRE_FDS];
	lade__record record;
	lade__kept *kept;
	struct timespec now;
	lade_status status = lade__read_record(&b->in, &record, room, err);
	uint64_t had = b->shelf.bytes;

	if (status != LADE_OK)
		return status;
	uint64_t wait_ms = record.time;
	status = check_room(b, &record, err);
	if (status == LADE_OK)
		status = check_blocks(c, &record, err);
	if (status == LADE_OK)
		status = lade__lock_next(b, &record.version, err);
	if (status != LADE_OK) {
		lade__record_close(&record);
		return status;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	record.time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	record.uid = c->uid;
	record.pid = (uint32_t)c->pid;
	status = lade__shelf_add(&b->shelf, &record, b->bytes_cap, &kept, err);
	if (status != LADE_OK)
		return status;
	kept->client = c->serial;
	kept->request = request;
	kept->pinned = true;
	lade__kept_hold(&b->shelf, kept, 1);
	c->state = LADE__CLIENT_BUSY;
	kept->state = LADE__KEPT_WAITS;
	c->lends |= (kept->record.flags & LADE__RECORD_LEASE) != 0;
	kept->owed = b->shelf.bytes - had;
	kept->until = lade__broker_now() + (wait_ms < UINT32_MAX ? (int64_t)wait_ms : UINT32_MAX);
	b->spill.owed += kept->owed;
	b->spill.waiting++;
	if (lade__spill_fits(b, kept->owed))
		lade__broker_admit(b, kept);
	return LADE_OK;
}

void lade__broker_admit(lade__broker *b, lade__kept *kept)
{
	b->spill.owed -= kept->owed;
	b->spill.waiting--;
	if (kept->record.flags & LADE__RECORD_LEASE) {
		/* The keeper could not keep the memory. */
		kept->lender = kept->client;
		kept->state = LADE__KEPT_SAFE;
		commit(b, kept);
	} else {
		kept->state = LADE__KEPT_NEW;
		b->unsent++;
	}
	lade__broker_pump(b);
}

void lade__broker_refuse(lade__broker *b, lade__kept *kept, const lade_error *err)
{
	lade__client *c = find_client(b, kept->client);
	uint64_t request = kept->request;

	forget_waiting(b, kept);
	if (c) {
		c->state = LADE__CLIENT_READY;
		reply_failed(b, c, request, err);
	}
}

int64_t lade__broker_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static lade_status find_version(const lade__broker *b, uint64_t version, const char *name,
                                lade__kept **out, lade_error *err)
{
	lade__names *names = lade__shelf_name(&b->shelf, name);
	lade__kept *kept = lade__names_latest(names);

	*out = version ? lade__shelf_find(&b->shelf, version) : kept;
	if (!kept)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "there is no '%s'", name);
	if (!*out || !(*out)->visible || strcmp((*out)->record.name, name))
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                 "there is no version %llu of '%s'; the latest is %llu",
		                 (unsigned long long)version, name,
		                 (unsigned long long)kept->record.version);
	return LADE_OK;
}

/* OPEN_COPY wants what is on a device as copies on the host.  Other users get nothing else: nobody
 * can keep them from writing to a device's memory. */
static lade_status open_version(lade__broker *b, lade__client *c, uint64_t request,
                                uint64_t version, const char *name, lade_error *err)
{
	bool copy = lade__packet_kind(&b->in) == LADE__OPEN_COPY;
	lade__kept *kept;
	lade_status status = find_version(b, version, name, &kept, err);

	if (status != LADE_OK)
		return status;
	if (!hold(b, c, kept))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a client");
	c->request = request;
	c->after = kept->record.version;
	c->copy = copy || c->uid != kept->record.uid;
	c->state = LADE__CLIENT_OPENS;
	b->spill.opening++;
	if (!lade__kept_place(kept) && !lade__spill_moves(b, kept))
		lade__broker_opened(b, c, kept);
	return LADE_OK;
}

void lade__broker_opened(lade__broker *b, lade__client *c, lade__kept *kept)
{
	lade_error err;

	b->spill.opening--;
	c->state = LADE__CLIENT_READY;
	if (c->copy && kept->record.flags & LADE__RECORD_DEVICE) {
		if (lade__copies_open(b, c, c->request, kept, &err) != LADE_OK)
			lade__broker_not_opened(b, c, c->request, kept->record.version, &err);
		return;
	}
	b->numbers.opened++;
	lade__wire_begin(&b->packet, LADE__RECORD, c->request);
	lade__wire_record(&b->packet, lade__kept_record(kept));
	lade__broker_reply(c, &b->packet);
}

void lade__broker_open_failed(lade__broker *b, lade__client *c, const lade_error *err)
{
	size_t at = held_place(c, c->after);

	b->spill.opening--;
	c->state = LADE__CLIENT_READY;
	if (at < c->held_count && c->held[at].version == c->after)
		unhold(b, c, at, 1);
	reply_failed(b, c, c->request, err);
}

static lade_status remove_name(lade__broker *b, lade__client *c, uint64_t request, uint64_t version,
                               const char *name, lade_error *err)
{
	lade__kept *kept;
	lade__names *names = lade__shelf_name(&b->shelf, name);
	lade_status status = find_version(b, version, name, &kept, err);
	char copy[LADE__NAME_MAX + 1];

	if (status != LADE_OK)
		return status;
	if (names->uid != c->uid && c->uid != 0 && c->uid != geteuid())
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                 "'%s' is a name of user %u, not of %u", name, names->uid, c->uid);
	snprintf(copy, sizeof copy, "%s", name);
	c->state = LADE__CLIENT_BUSY;
	b->numbers.removed++;
	/* The last one that the keeper drops is the one that answers. */
	for (size_t i = version ? 0 : names->count; i-- > 0;)
		if (names->versions[i]->visible && names->versions[i] != kept)
			lade__broker_drop(b, names->versions[i], 0, 0);
	version = kept->record.version;
	lade__broker_drop(b, kept, c->serial, request);
	if (!lade__names_latest(lade__shelf_name(&b->shelf, copy)))
		lade__broker_notify(b, LADE_SHARE_REMOVED, version, copy);
	lade__broker_pump(b);
	return LADE_OK;
}

static void list(lade__broker *b, lade__client *c, uint64_t request, const char *after)
{
	size_t at = lade__shelf_after(&b->shelf, after, false);
	uint32_t count = 0;

	lade__wire_begin(&b->packet, LADE__ENTRIES, request);
	lade__wire_put(&b->packet, 0, 8);
	for (; at < b->shelf.name_count; at++) {
		const lade__kept *kept = lade__names_latest(b->shelf.names[at]);
		if (!kept)
			continue;
		if (b->packet.size > LADE__WIRE_MAX / 2)
			break;
		lade__wire_entry(&b->packet, &kept->record, lade__kept_place(kept));
		count++;
	}
	b->packet.bytes[LADE__WIRE_HEAD] = at < b->shelf.name_count;
	for (int i = 0; i < 4; i++)
		b->packet.bytes[LADE__WIRE_HEAD + 4 + i] = (uint8_t)(count >> 8 * i);
	lade__broker_reply(c, &b->packet);
}

static void statistics(lade__broker *b, lade__client *c, uint64_t request)
{
	lade__wire_begin(&b->packet, LADE__NUMBERS, request);
	lade__broker_put_numbers(b, &b->packet);
	lade__broker_reply(c, &b->packet);
}

static void wait_for(lade__broker *b, lade__client *c, uint64_t request, uint64_t after,
                     const char *name)
{
	const lade__kept *kept = lade__names_latest(lade__shelf_name(&b->shelf, name));

	if (kept && kept->record.version > after) {
		lade__broker_done(b, c, request, kept->record.version);
		return;
	}
	c->state = LADE__CLIENT_WAITS;
	c->request = request;
	c->after = after;
	snprintf(c->name, sizeof c->name, "%s", name);
}

/* A question without blocks.  'number' and 'name' are what it has. */
static lade_status answer(lade__broker *b, lade__client *c, lade__wire_kind kind, uint64_t request,
                          lade_error *err)
{
	lade__cursor body = lade__packet_body(&b->in);
	bool any = kind == LADE__LIST || kind == LADE__SUBSCRIBE || kind == LADE__STATS;
	uint64_t number = any ? 0 : lade__take(&body, 8);
	char name[LADE__NAME_MAX + 1] = "";

	if (kind == LADE__RELEASE) {
		size_t at = held_place(c, number);
		if (!body.bad && at < c->held_count && c->held[at].version == number)
			unhold(b, c, at, 1);
		lade__broker_pump(b);
		return LADE_OK;
	}
	lade__take_name(&body, name, any);
	if (body.bad)
		return lade_fail(err, LADE_E_CORRUPT, LADE__WIRE_HEAD,
		                 "a message of kind %d and %zu bytes is not valid", (int)kind,
		                 b->in.size);
	switch (kind) {
	case LADE__OPEN:
	case LADE__OPEN_COPY:
		return open_version(b, c, request, number, name, err);
	case LADE__REMOVE:
		return remove_name(b, c, request, number, name, err);
	case LADE__LIST:
		list(b, c, request, name);
		break;
	case LADE__WAIT:
		wait_for(b, c, request, number, name);
		break;
	case LADE__SUBSCRIBE:
		c->state = LADE__CLIENT_SUBSCRIBED;
		snprintf(c->name, sizeof c->name, "%s", name);
		lade__broker_done(b, c, request, 0);
		break;
	case LADE__STATS:
		statistics(b, c, request);
		break;
	default:
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a message of kind %d is not known", (int)kind);
	}
	return LADE_OK;
}

static void hear(lade__broker *b, lade__client *c)
{
	lade_error err;
	lade_status status = lade__wire_receive(c->fd, &b->in, &err);
	uint64_t request = 0;

	if (status == LADE_E_STATE)
		return;
	if (status == LADE_OK && b->in.size) {
		request = lade__packet_request(&b->in);
		/* It has not read the answer yet. */
		c->gone = c->state != LADE__CLIENT_READY;
		if (!c->gone && lade__packet_kind(&b->in) == LADE__PUBLISH)
			status = publish(b, c, request, &err);
		else if (!c->gone)
			status = answer(b, c, lade__packet_kind(&b->in), request, &err);
	} else {
		c->gone = status == LADE_OK || status == LADE_E_IO;
	}
	lade__packet_close(&b->in);
	if (status != LADE_OK && !c->gone) {
		c->state = LADE__CLIENT_READY;
		reply_failed(b, c, request, &err);
	}
}

/* ---- the loop --------------------------------------------------------------------------- */

/* Whether connections are taken: without a descriptor for one it would only be seen again. */
static void listen_to(lade__broker *b, bool on)
{
	struct epoll_event event = {on ? EPOLLIN : 0, {.ptr = &b->listener}};

	b->deaf = !on;
	epoll_ctl(b->epoll, EPOLL_CTL_MOD, b->listener, &event);
}

static void take_client(lade__broker *b)
{
	int fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	lade__client *c = fd < 0 ? NULL : calloc(1, sizeof *c);
	struct epoll_event event = {EPOLLIN, {.ptr = c}};
	uid_t uid = 0;
	pid_t pid = 0;
	lade_error err = {0};

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			listen_to(b, false);
		return;
	}
	lade__socket_room(fd);
	if (lade__socket_peer(fd, &uid, &pid, &err) == LADE_OK) {
		if (!b->group && uid != geteuid() && uid != 0)
			lade_fail(&err, LADE_E_STATE, LADE_NO_OFFSET,
			          "the broker is user %u's, not for %u", (unsigned)geteuid(),
			          (unsigned)uid);
		else if (b->client_count >= b->client_cap)
			lade_fail(&err, LADE_E_LIMIT, LADE_NO_OFFSET,
			          "the broker has %u clients, at most %u", b->client_count,
			          b->client_cap);
		else if (!c || epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &event))
			lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a client");
	}
	if (err.status == LADE_OK &&
	    lade__broker_descriptors(b) >= b->numbers.descriptor_cap)
		lade_fail(&err, LADE_E_LIMIT, LADE_NO_OFFSET,
		          "the broker may have %llu descriptors, and %llu are in use or reserved",
		          (unsigned long long)b->numbers.descriptor_cap,
		          (unsigned long long)lade__broker_descriptors(b));
	if (err.status != LADE_OK) {
		b->numbers.refused++;
		lade__wire_failed(&b->packet, 0, &err);
		lade__wire_send(fd, &b->packet);
		close_client(b, fd);
		free(c);
		return;
	}
	c->fd = fd;
	c->uid = uid;
	c->pid = pid;
	c->serial = ++b->serial;
	c->next = b->clients;
	b->clients = c;
	b->client_count++;
}

static void handle(lade__broker *b, const struct epoll_event *event)
{
	lade__client *c = event->data.ptr;
	bool reads = event->events & ~(uint32_t)EPOLLOUT;

	if (event->data.ptr == &b->listener) {
		take_client(b);
	} else if (event->data.ptr == &b->keeper) {
		if (reads)
			hear_keeper(b);
		lade__broker_pump(b);
	} else if (event->data.ptr == &b->spill.worker) {
		if (b->spill.worker >= 0)
			lade__spill_hear(b);
	} else if (event->data.ptr == &b->copier) {
		if (b->copier >= 0)
			lade__copies_hear(b);
	} else if (c) {
		if (event->events & EPOLLOUT && c->lost)
			lade__broker_send_lost(b, c);
		if (reads)
			hear(b, c);
	}
	/* What only those who go had open goes with them. */
	size_t drops = b->drop_count;
	sweep(b);
	if (b->drop_count > drops)
		lade__broker_pump(b);
}

static void loop(lade__broker *b, const lade_cancel *stop)
{
	lade__spill_work(b); /* what an earlier broker had not done */
	while (!(stop && lade_cancel_is_set(stop))) {
		int wait_ms = b->again || b->deaf || b->spill.task.later   ? AGAIN_MS
		              : stop || b->keeper < 0 || b->spill.waiting ? STOP_MS
		              : b->copier >= 0                            ? COPIER_MS
		                                                          : -1;
		b->event_count = epoll_wait(b->epoll, b->events, EVENTS, wait_ms);
		for (int i = 0; i < b->event_count; i++)
			handle(b, &b->events[i]);
		lade__spill_work(b);
		sweep(b);
		if (b->again || b->drop_count)
			lade__broker_pump(b);
		if (b->deaf && b->event_count <= 0)
			listen_to(b, true);
		lade__copies_rest(b);
		/* Again later if it fails: what is published meanwhile waits. */
		if (b->keeper < 0)
			start_keeper(b, NULL);
	}
}

/* ---- start and end ---------------------------------------------------------------------- */

static lade_status start(lade__broker *b, const lade_share_serve_options *o, lade_error *err)
{
	char path[LADE__PATH_MAX];
	struct epoll_event event = {EPOLLIN, {.ptr = &b->listener}};
	lade_status status;

	TRY(lade__socket_path(o->path, "", true, b->path, err));
	TRY(lade__socket_path(o->path, ".keeper", true, b->keeper_path, err));
	TRY(lade__socket_path(o->path, ".lock", true, path, err));
	TRY(lade__lock_take(b, path, err));
	b->numbers.descriptor_cap = lade__lock_descriptors();
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (b->epoll < 0)
		TRY(lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "epoll: %s", strerror(errno)));
	/* One that is just ending may still answer. */
	for (int i = 0; i < KEEPER_TRIES; i++) {
		status = start_keeper(b, err);
		if (status != LADE_E_IO)
			break;
		lade__shelf_reset(&b->shelf);
		usleep(KEEPER_MS * 1000);
	}
	TRY(status);
	b->spill.file_cap = o->disk_cap;
	TRY(lade__spill_start(b, o->spill, err));
	TRY(lade__lock_read(b, err));
	/* Replaced versions whose readers the old broker knew. */
	for (size_t i = b->shelf.count; i-- > 0;)
		drop_if_old(b, b->shelf.versions[i]);
	lade__broker_pump(b);
	TRY(lade__socket_listen(b->path, o->group, (gid_t)o->gid, &b->listener, err));
	fcntl(b->listener, F_SETFL, O_NONBLOCK);
	if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->listener, &event))
		TRY(lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "epoll: %s", strerror(errno)));
out:
	return status;
}

static void end(lade__broker *b)
{
	while (b->clients)
		disconnect(b, b->clients);
	/* What it has not served is the keeper's. */
	lade__spill_end(b, b->listener >= 0);
	if (b->listener >= 0) {
		unlink(b->path);
		close(b->listener);
		/* Only a broker that has served ends what it holds. */
		lade__wire_begin(&b->packet, LADE__STOP, 0);
		if (b->keeper >= 0) {
			/* Until it has gone: the next broker must not find it. */
			fcntl(b->keeper, F_SETFL, 0);
			lade__socket_timeout(b->keeper, STOP_WAIT_MS);
			if (!lade__wire_send(b->keeper, &b->packet))
				while (lade__wire_receive(b->keeper, &b->in, NULL) == LADE_OK &&
				       b->in.size)
					;
		}
	}
	if (b->keeper >= 0)
		close(b->keeper);
	if (b->copier >= 0)
		close(b->copier);
	if (b->epoll >= 0)
		close(b->epoll);
	if (b->lock >= 0)
		close(b->lock);
	lade__shelf_reset(&b->shelf);
	free(b->drops);
	free(b);
}

lade_status lade_share_serve(const lade_share_serve_options *given, lade_error *err)
{
	lade_share_serve_options o;
	lade__broker *b;
	lade_status status =
		lade__options_read(&o, sizeof o, given, "lade_share_serve_options", err);

	if (status != LADE_OK)
		return status;
	b = calloc(1, sizeof *b);
	if (!b)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a broker");
	b->listener = b->keeper = b->epoll = b->lock = b->spill.folder = b->spill.worker = -1;
	b->copier = -1;
	b->group = o.group;
	b->client_cap = o.client_cap ? o.client_cap : CLIENTS_DEFAULT;
	b->name_cap = o.name_cap ? o.name_cap : NAMES_DEFAULT;
	b->bytes_cap = o.bytes_cap;
	TRY(start(b, &o, err));
	if (o.ready)
		o.ready(o.ready_ctx, b->path);
	loop(b, o.stop);
out:
	end(b);
	return status;
}
