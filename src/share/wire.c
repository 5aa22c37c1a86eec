/*
 * wire.c: messages between clients, broker and keeper (docs/format/share.md, section 1).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/wire.h"

#include "base/support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A block of a record: | kind 4 | index 4 | number 8 | size 8 | device 8 | */
#define BLOCK_SIZE 32
#define DEVICE_BLOCK_MAX ((uint64_t)1 << 48)

/* ---- writing ---------------------------------------------------------------------------- */

void lade__wire_bytes(lade__packet *p, const void *bytes, size_t size)
{
	if (size > LADE__WIRE_MAX - p->size) {
		p->size = LADE__WIRE_MAX;
		p->fd_count = LADE__WIRE_FDS + 1; /* makes lade__wire_send() refuse it */
		return;
	}
	if (size)
		memcpy(p->bytes + p->size, bytes, size);
	p->size += size;
}

void lade__wire_put(lade__packet *p, uint64_t value, size_t size)
{
	uint8_t bytes[8];

	lade__le_put(bytes, value, size);
	lade__wire_bytes(p, bytes, size);
}

void lade__wire_begin(lade__packet *p, lade__wire_kind kind, uint64_t request)
{
	p->size = p->fd_count = 0;
	lade__wire_put(p, 0, 4); /* lade__wire_send() sets it */
	lade__wire_put(p, (uint64_t)kind, 2);
	lade__wire_put(p, LADE__WIRE_PROTOCOL, 2);
	lade__wire_put(p, request, 8);
}

static bool has_descriptor(const lade__block *b)
{
	return b->kind == LADE__BLOCK_HOST || b->kind == LADE__BLOCK_DEVICE ||
	       b->kind == LADE__BLOCK_PACKED;
}

static void put_fixed(lade__packet *p, const lade__record *r, uint32_t flags, size_t block_count,
                      size_t head_size)
{
	lade__wire_put(p, r->version, 8);
	lade__wire_put(p, r->time, 8);
	lade__wire_put(p, r->rows, 8);
	lade__wire_put(p, r->bytes, 8);
	lade__wire_put(p, r->columns, 4);
	lade__wire_put(p, r->batches, 4);
	lade__wire_put(p, r->uid, 4);
	lade__wire_put(p, r->pid, 4);
	lade__wire_put(p, flags, 4);
	lade__wire_put(p, strlen(r->name), 2);
	lade__wire_put(p, block_count, 2);
	lade__wire_put(p, head_size, 4);
	lade__wire_put(p, 0, 4);
}

void lade__wire_entry(lade__packet *p, const lade__record *r, uint32_t flags)
{
	put_fixed(p, r, flags | (r->flags & (LADE__RECORD_DEVICE | LADE__RECORD_LEASE)), 0, 0);
	lade__wire_bytes(p, r->name, strlen(r->name));
}

void lade__wire_record(lade__packet *p, const lade__record *r)
{
	put_fixed(p, r, r->flags, r->block_count, r->head_size);
	for (size_t i = 0; i < r->block_count; i++) {
		const lade__block *b = &r->blocks[i];
		lade__wire_put(p, b->kind, 4);
		lade__wire_put(p, b->index, 4);
		lade__wire_put(p, lade__is_far(b->kind) ? b->id : b->version, 8);
		lade__wire_put(p, b->size, 8);
		lade__wire_put(p, b->device, 8);
		if (has_descriptor(b) && p->fd_count < LADE__WIRE_FDS)
			p->fds[p->fd_count++] = b->fd;
	}
	for (size_t i = 0; i < r->block_count; i++)
		if (r->blocks[i].kind == LADE__BLOCK_LEASE)
			lade__wire_bytes(p, r->blocks[i].handle, sizeof r->blocks[i].handle);
	lade__wire_bytes(p, r->name, strlen(r->name));
	lade__wire_bytes(p, r->head, r->head_size);
}

void lade__wire_failed(lade__packet *p, uint64_t request, const lade_error *err)
{
	lade__wire_begin(p, LADE__FAILED, request);
	lade__wire_put(p, (uint64_t)err->status, 4);
	lade__wire_bytes(p, err->message, strlen(err->message));
}

int lade__wire_send(int fd, lade__packet *p)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(LADE__WIRE_FDS * sizeof(int))];
	} control;
	struct iovec part = {p->bytes, p->size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	if (p->size < LADE__WIRE_HEAD || p->fd_count > LADE__WIRE_FDS)
		return EMSGSIZE;
	lade__le_put(p->bytes, p->size, 4);
	if (p->fd_count) {
		size_t size = p->fd_count * sizeof(int);
		memset(&control, 0, sizeof control);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(size);
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(size),
		                                .cmsg_level = SOL_SOCKET,
		                                .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), p->fds, size);
	}
	do
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? errno : 0;
}

/* ---- reading ---------------------------------------------------------------------------- */

const uint8_t *lade__take_bytes(lade__cursor *c, size_t size)
{
	const uint8_t *at = c->at;

	if (c->bad || size > c->left) {
		c->bad = true;
		return NULL;
	}
	c->at += size;
	c->left -= size;
	return at;
}

uint64_t lade__take(lade__cursor *c, size_t size)
{
	const uint8_t *at = lade__take_bytes(c, size);
	uint64_t value = 0;

	for (size_t i = 0; at && i < size; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

bool lade__name_valid(const char *name, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)name[i] < 32 || name[i] == 127 || name[i] == '@')
			return false;
	return size > 0 && size <= LADE__NAME_MAX;
}

static void take_name(lade__cursor *c, size_t size, char *name, bool any)
{
	const char *at = (const char *)lade__take_bytes(c, size);

	name[0] = 0;
	if (!at || (size && !lade__name_valid(at, size)) || (!size && !any)) {
		c->bad = true;
		return;
	}
	memcpy(name, at, size);
	name[size] = 0;
}

void lade__take_name(lade__cursor *c, char name[LADE__NAME_MAX + 1], bool any)
{
	take_name(c, c->left, name, any);
}

static void take_fds(struct msghdr *message, lade__packet *p)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (p->fd_count < LADE__WIRE_FDS)
				p->fds[p->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

lade_status lade__wire_receive(int fd, lade__packet *p, lade_error *err)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(LADE__WIRE_FDS * sizeof(int))];
	} control;
	struct iovec part = {p->bytes, LADE__WIRE_MAX};
	struct msghdr message = {.msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = &control,
	                         .msg_controllen = sizeof control};
	ssize_t size;
	bool reset = false;

	p->size = p->fd_count = 0;
	/* A peer that closes before it has read all resets the connection.  That is reported first,
	 * and once: what the peer had sent before, such as why it refuses, comes behind. */
	do {
		size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
		if (size < 0 && errno == ECONNRESET && !reset) {
			reset = true;
			errno = EINTR;
		}
	} while (size < 0 && errno == EINTR);
	if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "no message");
	if (size < 0 && errno == ECONNRESET)
		return LADE_OK;
	if (size < 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "receiving: %s", strerror(errno));
	take_fds(&message, p);
	if (size == 0) {
		lade__packet_close(p);
		return LADE_OK;
	}
	p->size = (size_t)size;
	if (message.msg_flags & MSG_CTRUNC) {
		lade__packet_close(p);
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "a message has more descriptors than this process may have, or "
		                 "than %d",
		                 LADE__WIRE_FDS);
	}
	if (message.msg_flags & MSG_TRUNC || size < LADE__WIRE_HEAD ||
	    lade__le32(p->bytes) != (uint32_t)size) {
		lade__packet_close(p);
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "a message of %zd bytes says it has %u, at least %d, at most %d",
		                 size, size < 4 ? 0u : lade__le32(p->bytes), LADE__WIRE_HEAD,
		                 LADE__WIRE_MAX);
	}
	if (lade__le16(p->bytes + 6) != LADE__WIRE_PROTOCOL) {
		lade__packet_close(p);
		return lade_fail(err, LADE_E_VERSION, 6, "protocol %u, want %d",
		                 lade__le16(p->bytes + 6), LADE__WIRE_PROTOCOL);
	}
	return LADE_OK;
}

lade__wire_kind lade__packet_kind(const lade__packet *p)
{
	return (lade__wire_kind)lade__le16(p->bytes + 4);
}

uint64_t lade__packet_request(const lade__packet *p)
{
	return lade__le64(p->bytes + 8);
}

lade__cursor lade__packet_body(const lade__packet *p)
{
	return (lade__cursor){p->bytes + LADE__WIRE_HEAD, p->size - LADE__WIRE_HEAD, false};
}

void lade__packet_close(lade__packet *p)
{
	for (size_t i = 0; i < p->fd_count && i < LADE__WIRE_FDS; i++)
		if (p->fds[i] >= 0)
			close(p->fds[i]);
	p->fd_count = 0;
}

/* All but the blocks, the name and the head. */
static size_t take_fixed(lade__cursor *c, lade__record *r)
{
	r->version = lade__take(c, 8);
	r->time = lade__take(c, 8);
	r->rows = lade__take(c, 8);
	r->bytes = lade__take(c, 8);
	r->columns = (uint32_t)lade__take(c, 4);
	r->batches = (uint32_t)lade__take(c, 4);
	r->uid = (uint32_t)lade__take(c, 4);
	r->pid = (uint32_t)lade__take(c, 4);
	r->flags = (uint32_t)lade__take(c, 4);
	size_t name_size = (size_t)lade__take(c, 2);
	r->block_count = (size_t)lade__take(c, 2);
	r->head_size = (uint32_t)lade__take(c, 4);
	if (lade__take(c, 4) ||
	    r->flags & ~(uint32_t)(LADE__RECORD_HEAD_BLOCK | LADE__RECORD_DEVICE |
	                           LADE__RECORD_COPIED | LADE__RECORD_LEASE |
	                           LADE__RECORD_PACKED | LADE__RECORD_FILE))
		c->bad = true;
	return name_size;
}

void lade__read_entry(lade__cursor *c, lade__record *out)
{
	size_t name_size = take_fixed(c, out);

	take_name(c, name_size, out->name, false);
	out->head = NULL;
	if (out->block_count || out->head_size)
		c->bad = true;
	out->block_count = 0;
}

lade_status lade__read_record(lade__packet *p, lade__record *out, lade__block room[LADE__WIRE_FDS],
                              lade_error *err)
{
	lade__cursor c = lade__packet_body(p);
	size_t name_size = take_fixed(&c, out), fds = 0;

	out->blocks = room;
	if (out->block_count > LADE__WIRE_FDS || out->block_count > c.left / BLOCK_SIZE) {
		size_t count = out->block_count;
		out->block_count = 0;
		return lade_fail(err, LADE_E_CORRUPT, LADE__WIRE_HEAD,
		                 "a record of %zu blocks in %zu bytes, at most %d", count, p->size,
		                 LADE__WIRE_FDS);
	}
	for (size_t i = 0; i < out->block_count; i++) {
		lade__block *b = &out->blocks[i];
		uint64_t kind = lade__take(&c, 4);
		b->index = (uint32_t)lade__take(&c, 4);
		b->version = lade__take(&c, 8);
		b->size = lade__take(&c, 8);
		b->device = lade__take(&c, 8);
		b->id = 0;
		b->kind = (uint8_t)kind;
		b->fd = -1;
		if (lade__is_far(b->kind)) {
			b->id = b->version;
			b->version = 0;
			c.bad |= b->index || b->size > DEVICE_BLOCK_MAX;
		} else if (b->device || (kind != LADE__BLOCK_REF && b->index) ||
		           (kind != LADE__BLOCK_REF && kind != LADE__BLOCK_FILE && b->version)) {
			c.bad = true;
		}
		c.bad |= kind != LADE__BLOCK_HOST && kind != LADE__BLOCK_REF &&
		         kind != LADE__BLOCK_PACKED && kind != LADE__BLOCK_FILE &&
		         kind != LADE__BLOCK_DEVICE && kind != LADE__BLOCK_LEASE;
		if (has_descriptor(b) && fds < p->fd_count)
			b->fd = p->fds[fds++];
		else
			c.bad |= has_descriptor(b);
	}
	for (size_t i = 0; i < out->block_count; i++) {
		lade__block *b = &out->blocks[i];
		const uint8_t *handle = NULL;
		if (b->kind == LADE__BLOCK_LEASE)
			handle = lade__take_bytes(&c, sizeof b->handle);
		if (handle)
			memcpy(b->handle, handle, sizeof b->handle);
	}
	take_name(&c, name_size, out->name, false);
	out->head = c.at;
	if (c.bad || c.left != out->head_size || fds != p->fd_count ||
	    (out->flags & LADE__RECORD_HEAD_BLOCK &&
	     (!out->block_count || out->head_size ||
	      out->blocks[out->block_count - 1].kind == LADE__BLOCK_REF)) ||
	    out->head_size > LADE__HEAD_SMALL) {
		out->block_count = 0;
		return lade_fail(err, LADE_E_CORRUPT, LADE__WIRE_HEAD,
		                 "a record is not valid: %zu bytes, %zu descriptors", p->size,
		                 p->fd_count);
	}
	p->fd_count = 0;
	return LADE_OK;
}

lade_status lade__read_failed(const lade__packet *p, lade_error *err)
{
	lade__cursor c = lade__packet_body(p);
	uint32_t status = (uint32_t)lade__take(&c, 4);
	char text[LADE_MESSAGE_CAP] = "";

	if (c.bad || status == LADE_OK || status > LADE_E_CANCELLED)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "the broker's answer is not valid: status %u", status);
	snprintf(text, sizeof text, "%.*s", (int)(c.left < 200 ? c.left : 200), (const char *)c.at);
	return lade_fail(err, (lade_status)status, LADE_NO_OFFSET, "%s", text);
}

void lade__record_close(lade__record *r)
{
	for (size_t i = 0; i < r->block_count; i++)
		if (r->blocks[i].fd >= 0)
			close(r->blocks[i].fd);
	r->block_count = 0;
}
