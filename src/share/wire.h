/*
 * wire.h: messages between clients, broker and keeper (docs/format/share.md, section 1).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_WIRE_H
#define LADE_SHARE_WIRE_H

#include <lade/share.h>

#define LADE__WIRE_MAX 131072 /* bytes of a message */
#define LADE__WIRE_FDS 253    /* SCM_MAX_FD of Linux */
#define LADE__WIRE_HEAD 16    /* | size 4 | kind 2 | protocol 2 | request 8 | */
#define LADE__WIRE_PROTOCOL 1
#define LADE__NAME_MAX 255
#define LADE__HEAD_SMALL 65536     /* larger heads are blocks */
#define LADE__HEAD_MAX (64u << 20) /* section 2 */

typedef enum lade__wire_kind {
	LADE__PUBLISH = 1,
	LADE__OPEN,
	LADE__RELEASE,
	LADE__REMOVE,
	LADE__LIST,
	LADE__WAIT,
	LADE__SUBSCRIBE,
	LADE__STATS,
	LADE__OPEN_COPY,
	LADE__DONE = 32,
	LADE__FAILED,
	LADE__RECORD,
	LADE__ENTRIES,
	LADE__EVENT,
	LADE__NUMBERS,
	LADE__KEEP = 48,
	LADE__DROP,
	LADE__ALL,
	LADE__STOP,
	LADE__KEPT,
	LADE__SWAP,
	LADE__COPY,
	LADE__PACK = 64,
	LADE__UNPACK,
	LADE__STORE,
	LADE__NOTE,
	LADE__MADE,
} lade__wire_kind;

/* PACKED: a frame in a memfd.  FILE: a frame in a file, whose number is the block's 'version'. */
enum {
	LADE__BLOCK_HOST = 1,
	LADE__BLOCK_REF = 2,
	LADE__BLOCK_DEVICE = 3,
	LADE__BLOCK_LEASE = 4,
	LADE__BLOCK_PACKED = 8,
	LADE__BLOCK_FILE = 9,
};
/* The last two only in entries: where most of a version is. */
enum {
	LADE__RECORD_HEAD_BLOCK = 1,
	LADE__RECORD_DEVICE = 2,
	LADE__RECORD_COPIED = 4,
	LADE__RECORD_LEASE = 8,
	LADE__RECORD_PACKED = 64,
	LADE__RECORD_FILE = 128,
};
#define LADE__LEASE_SIZE 64 /* of a lease's handle, behind the blocks */

/* A message, as it is sent or was received.  Descriptors that were received are the packet's until
 * someone sets them to -1. */
typedef struct lade__packet {
	size_t size, fd_count;
	int fds[LADE__WIRE_FDS];
	uint8_t bytes[LADE__WIRE_MAX];
} lade__packet;

typedef struct lade__block {
	uint8_t kind;
	int fd;         /* -1: none */
	uint32_t index;      /* of a REF */
	uint64_t version;    /* of a REF */
	uint64_t id, device; /* of a DEVICE, a LEASE: its number, 8 bytes of the device's UUID */
	uint64_t size;
	uint8_t handle[LADE__LEASE_SIZE]; /* of a LEASE */
} lade__block;

static inline bool lade__is_far(uint8_t kind)
{
	return kind == LADE__BLOCK_DEVICE || kind == LADE__BLOCK_LEASE;
}

typedef struct lade__record {
	uint64_t version, time, rows, bytes;
	uint32_t columns, batches, uid, pid, flags;
	char name[LADE__NAME_MAX + 1];
	const uint8_t *head; /* in a packet, or the owner's */
	uint32_t head_size;
	size_t block_count;
	lade__block *blocks; /* likewise */
} lade__record;

/* ---- writing ---------------------------------------------------------------------------- */

/* What does not fit is left out, and lade__wire_send() refuses the packet: check sizes first. */
void lade__wire_begin(lade__packet *p, lade__wire_kind kind, uint64_t request);
void lade__wire_put(lade__packet *p, uint64_t value, size_t size);
void lade__wire_bytes(lade__packet *p, const void *bytes, size_t size);
/* With the blocks' descriptors, which stay the record's. */
void lade__wire_record(lade__packet *p, const lade__record *record);
/* A record of no blocks and no head, and the name.  Its flags are 'flags' and those of devices. */
void lade__wire_entry(lade__packet *p, const lade__record *record, uint32_t flags);
/* FAILED. */
void lade__wire_failed(lade__packet *p, uint64_t request, const lade_error *err);

/* Sends a packet whole.  Returns 0 or an errno; EAGAIN: the other side does not read. */
int lade__wire_send(int fd, lade__packet *p);

/* ---- reading ---------------------------------------------------------------------------- */

/* Reads from a packet on.  A read past the end gives zeros and sets 'bad'. */
typedef struct lade__cursor {
	const uint8_t *at;
	size_t left;
	bool bad;
} lade__cursor;

uint64_t lade__take(lade__cursor *c, size_t size);
/* 'size' bytes in place; NULL if they are not there. */
const uint8_t *lade__take_bytes(lade__cursor *c, size_t size);
/* The rest as a name, which may be "" if 'any'.  Sets 'bad' if it is not valid. */
void lade__take_name(lade__cursor *c, char name[LADE__NAME_MAX + 1], bool any);
/* Whether these bytes may be a name. */
bool lade__name_valid(const char *name, size_t size);

/*
 * Receives one packet.  Returns LADE_OK with size 0 at the end of the connection, LADE_E_STATE if
 * there is nothing yet (a nonblocking socket, or a timeout), LADE_E_CORRUPT for a packet that is no
 * message, and LADE_E_IO.  After a failure the packet has no descriptors.
 */
lade_status lade__wire_receive(int fd, lade__packet *p, lade_error *err);
lade__wire_kind lade__packet_kind(const lade__packet *p);
uint64_t lade__packet_request(const lade__packet *p);
/* Behind the header. */
lade__cursor lade__packet_body(const lade__packet *p);
/* Closes the descriptors that are left. */
void lade__packet_close(lade__packet *p);

/*
 * Reads a record of a packet, its blocks to 'room'.  The blocks' descriptors move to the record;
 * head points into the packet.  Checks all fields, not what the descriptors are.
 * Fails: LADE_E_CORRUPT; then the descriptors stay the packet's
 */
lade_status lade__read_record(lade__packet *p, lade__record *out, lade__block room[LADE__WIRE_FDS],
                              lade_error *err);
/* One entry of ENTRIES: no head, no blocks. */
void lade__read_entry(lade__cursor *c, lade__record *out);
/* The failure that a FAILED packet has. */
lade_status lade__read_failed(const lade__packet *p, lade_error *err);
/* Closes the descriptors of the blocks. */
void lade__record_close(lade__record *record);

#endif
