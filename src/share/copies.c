/*
 * copies.c: the broker's copies on the host of versions that are on a device: for clients who want
 * one, and for other users, from whom a device's memory could not be protected.
 *
 *     OPEN_COPY --> COPY   --> copier
 *     RECORD    <-- copies <--
 *
 * The copies of a version are made once, and go when no client has it open.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/broker.h"

#include "base/try.h"
#include "share/copier.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The copier has a context on the device, whose memory it gives back when it has been idle. */
#define IDLE_SECONDS 10

static void send_copies(lade__broker *b, lade__client *c, uint64_t request, lade__kept *kept)
{
	lade__block blocks[LADE__WIRE_FDS];
	lade__record r = *lade__kept_record(kept);

	memcpy(blocks, kept->blocks, r.block_count * sizeof *blocks);
	for (size_t i = 0; i < r.block_count; i++)
		if (kept->copies[i])
			blocks[i] = (lade__block){.kind = LADE__BLOCK_HOST,
			                          .fd = kept->copies[i]->fd,
			                          .size = blocks[i].size};
	r.blocks = blocks;
	r.flags = (r.flags & ~(uint32_t)LADE__RECORD_DEVICE) | LADE__RECORD_COPIED;
	b->numbers.opened++;
	lade__wire_begin(&b->packet, LADE__RECORD, request);
	lade__wire_record(&b->packet, &r);
	lade__broker_reply(c, &b->packet);
}

/* Asks the copier for the blocks that are on a device. */
static lade_status ask(lade__broker *b, lade__kept *kept, lade_error *err)
{
	struct epoll_event event = {EPOLLIN, {.ptr = &b->copier}};
	lade__block blocks[LADE__WIRE_FDS];
	lade__record r = {.blocks = blocks};
	lade_status status = LADE_OK;

	if (b->copier < 0) {
		TRY(lade__copier_start(&b->copier, err));
		if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->copier, &event))
			TRY(lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "epoll: %s",
			              strerror(errno)));
	}
	lade__kept_record(kept);
	for (size_t i = 0; i < kept->record.block_count; i++)
		if (lade__is_far(kept->blocks[i].kind))
			blocks[r.block_count++] = kept->blocks[i];
	strcpy(r.name, kept->record.name);
	lade__wire_begin(&b->packet, LADE__COPY, kept->record.version);
	lade__wire_record(&b->packet, &r);
	int rc = lade__wire_send(b->copier, &b->packet);
	if (rc)
		TRY(lade_fail(err, rc == EAGAIN ? LADE_E_LIMIT : LADE_E_IO, LADE_NO_OFFSET,
		              "asking for a copy of '%s' on the host: %s", r.name, strerror(rc)));
	kept->copying = true;
out:
	return status;
}

lade_status lade__copies_open(lade__broker *b, lade__client *c, uint64_t request, lade__kept *kept,
                              lade_error *err)
{
	lade_status status;

	if (kept->copies) {
		send_copies(b, c, request, kept);
		return LADE_OK;
	}
	status = kept->copying ? LADE_OK : ask(b, kept, err);
	if (status != LADE_OK)
		return status;
	c->state = LADE__CLIENT_COPY;
	c->request = request;
	c->after = kept->record.version;
	return LADE_OK;
}

/* Answers those who wait for a version, which may be gone; 0: for any. */
static void answer(lade__broker *b, uint64_t version, lade__kept *kept, const lade_error *err)
{
	for (lade__client *c = b->clients; c; c = c->next) {
		if (c->state != LADE__CLIENT_COPY || (version && c->after != version))
			continue;
		c->state = LADE__CLIENT_READY;
		if (!err)
			send_copies(b, c, c->request, kept);
		else
			lade__broker_not_opened(b, c, c->request, c->after, err);
	}
}

static void end(lade__broker *b)
{
	lade_error err;

	close(b->copier);
	b->copier = -1;
	for (size_t i = 0; i < b->shelf.count; i++)
		b->shelf.versions[i]->copying = false;
	lade_fail(&err, LADE_E_DEVICE, LADE_NO_OFFSET,
	          "the process that copies from devices has ended");
	answer(b, 0, NULL, &err);
}

void lade__copies_hear(lade__broker *b)
{
	lade__block room[LADE__WIRE_FDS];
	lade__record r = {.block_count = 0};
	lade__kept *kept;
	uint64_t version;
	lade_error err = {0};
	lade_status status = lade__wire_receive(b->copier, &b->in, &err);

	if (status == LADE_E_STATE)
		return;
	if (status != LADE_OK || !b->in.size) {
		end(b);
		return;
	}
	version = lade__packet_request(&b->in);
	kept = lade__shelf_find(&b->shelf, version);
	clock_gettime(CLOCK_MONOTONIC, &b->copied);
	if (lade__packet_kind(&b->in) == LADE__FAILED)
		status = lade__read_failed(&b->in, &err);
	else
		status = lade__read_record(&b->in, &r, room, &err);
	/* Those who wanted it may have gone, and the version with them. */
	if (kept) {
		kept->copying = false;
		if (status == LADE_OK && kept->held)
			status = lade__shelf_copies(&b->shelf, kept, &r, b->bytes_cap, &err);
	} else if (status == LADE_OK) {
		status = lade_fail(&err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                   "version %llu was removed", (unsigned long long)version);
	}
	answer(b, version, kept, status == LADE_OK ? NULL : &err);
	lade__record_close(&r);
	lade__packet_close(&b->in);
}

void lade__copies_rest(lade__broker *b)
{
	struct timespec now;

	if (b->copier < 0)
		return;
	for (const lade__client *c = b->clients; c; c = c->next)
		if (c->state == LADE__CLIENT_COPY)
			return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec - b->copied.tv_sec > IDLE_SECONDS)
		end(b);
}
