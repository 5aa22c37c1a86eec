/*
 * foreign_snappy.c: reads .sz, the Snappy framing format of 2013-10-25.
 *
 *     | type 1 | size 3 | data | type 1 | size 3 | data | ...
 *
 * type FF: the stream's begin, "sNaPpY"; 00: compressed; 01: stored; FE: padding; 80 to FD: to be
 * skipped; 02 to 7F: not to be skipped.  The data of 00 and 01 begin with the CRC-32C of the
 * decoded bytes, masked; there are at most 65536 of those in a chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <snappy-c.h>

#include "base/try.h"
#include "foreign/foreign.h"

#include <lade/checksum.h>

#include <inttypes.h>
#include <string.h>

#define BLOCK 65536

typedef struct chunks {
	bool any; /* the stream's begin has been seen */
	size_t pos, end;
	uint8_t block[BLOCK]; /* a decoded chunk: bytes [pos, end) are still to be given out */
} chunks;

static lade_status start(lade_foreign_reader *r, lade_error *err)
{
	(void)r;
	(void)err;
	return LADE_OK;
}

static void stop(lade_foreign_reader *r)
{
	(void)r;
}

/* Section 3 of the format: rotated right by 15 bits, plus a constant. */
static uint32_t masked(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* Decodes the 'size' bytes behind a chunk's header into the block. */
static lade_status decode(lade_foreign_reader *r, bool stored, const uint8_t *data, size_t size,
                          lade_error *err)
{
	chunks *s = r->state;
	uint64_t off = r->in.off;
	size_t decoded = BLOCK;

	if (size < 4)
		return lade_fail(err, LADE_E_CORRUPT, off + 1,
		                 "the chunk at byte %" PRIu64
		                 " has %zu bytes, its checksum takes 4",
		                 off, size);
	const uint8_t *payload = data + 4;
	size -= 4;
	if (stored) {
		decoded = size;
	} else if (snappy_uncompressed_length((const char *)payload, size, &decoded) != SNAPPY_OK) {
		return lade_fail(err, LADE_E_CORRUPT, off + 8,
		                 "the chunk at byte %" PRIu64 " does not state its decoded size",
		                 off);
	}
	if (decoded > BLOCK)
		return lade_fail(err, LADE_E_CORRUPT, off + 8,
		                 "the chunk at byte %" PRIu64
		                 " decodes to %zu bytes, %d are allowed",
		                 off, decoded, BLOCK);
	if (stored)
		memcpy(s->block, payload, size);
	else if (snappy_uncompress((const char *)payload, size, (char *)s->block, &decoded) !=
	         SNAPPY_OK)
		return lade_fail(err, LADE_E_CORRUPT, off + 8,
		                 "the chunk at byte %" PRIu64 " is corrupt", off);
	uint32_t want = lade__le32(data);
	uint32_t have = masked((uint32_t)lade_checksum_of(LADE_CRC32C, s->block, decoded));
	if (want != have && !r->ignore_checksum)
		return lade_fail(err, LADE_E_CHECKSUM, off + 4,
		                 "the chunk at byte %" PRIu64 " has the masked CRC-32C %08" PRIX32
		                 ", its bytes give %08" PRIX32,
		                 off, want, have);
	s->pos = 0;
	s->end = decoded;
	return LADE_OK;
}

/* Takes 'size' bytes off the input without keeping them. */
static lade_status skip(lade__in *in, size_t size, lade_error *err)
{
	uint64_t off = in->off;
	size_t left = size;

	while (left) {
		lade_status status = lade__in_want(in, 1, err);
		if (status != LADE_OK)
			return status;
		size_t have = lade__in_have(in);
		if (have == 0)
			return lade_fail(err, LADE_E_TRUNCATED, in->off,
			                 "the chunk at byte %" PRIu64
			                 " ends too early: want %zu bytes, have %zu",
			                 off, size, size - left);
		if (have > left)
			have = left;
		lade__in_take(in, have);
		left -= have;
	}
	return LADE_OK;
}

/* Reads one chunk; '*end' at the end of a complete stream. */
static lade_status next(lade_foreign_reader *r, bool *end, lade_error *err)
{
	chunks *s = r->state;
	lade__in *in = &r->in;
	lade_status status = LADE_OK;

	TRY(lade__in_want(in, 4, err));
	if (lade__in_have(in) == 0 && s->any) {
		*end = true;
		return LADE_OK;
	}
	if (lade__in_have(in) < 4)
		return lade_fail(err, LADE_E_TRUNCATED, in->off + lade__in_have(in),
		                 "a chunk's header: want 4 bytes, have %zu", lade__in_have(in));
	uint8_t type = lade__in_at(in)[0];
	size_t size = lade__le32(lade__in_at(in)) >> 8;
	if (!s->any && type != 0xFF)
		return lade_fail(err, LADE_E_CORRUPT, in->off,
		                 "the stream begins with a chunk of type 0x%02X, want 0xFF", type);
	if (type >= 0x80 && type != 0xFF)
		return skip(in, 4 + size, err);
	if (type >= 0x02 && type < 0x80)
		return lade_fail(err, LADE_E_UNSUPPORTED, in->off,
		                 "a chunk of type 0x%02X, which may not be skipped", type);
	/* Stored bytes plus the checksum, or Snappy's worst case of 32 + n + n / 6 plus it. */
	if (size > 4 + 32 + BLOCK + BLOCK / 6)
		return lade_fail(err, LADE_E_CORRUPT, in->off + 1,
		                 "the chunk at byte %" PRIu64 " has %zu bytes, more than %d bytes "
		                 "ever take",
		                 in->off, size, BLOCK);
	TRY(lade__in_want(in, 4 + size, err));
	if (lade__in_have(in) < 4 + size)
		return lade_fail(err, LADE_E_TRUNCATED, in->off + lade__in_have(in),
		                 "the chunk at byte %" PRIu64
		                 " ends too early: want %zu bytes, have %zu",
		                 in->off, 4 + size, lade__in_have(in));
	const uint8_t *data = lade__in_at(in) + 4;
	if (type == 0xFF) {
		r->frames++;
		if (size != 6 || memcmp(data, "sNaPpY", 6) != 0)
			return lade_fail(err, LADE_E_CORRUPT, in->off + 4,
			                 "the stream identifier is damaged");
		s->any = true;
	} else {
		TRY(decode(r, type == 0x01, data, size, err));
	}
	lade__in_take(in, 4 + size);
out:
	return status;
}

static lade_status read_chunks(lade_foreign_reader *r, uint8_t *dst, size_t cap, size_t *got,
                               lade_error *err)
{
	chunks *s = r->state;
	bool end = false;

	while (s->pos == s->end && !end) {
		lade_status status = next(r, &end, err);
		if (status != LADE_OK)
			return status;
	}
	size_t size = s->end - s->pos;
	if (size > cap)
		size = cap;
	if (size)
		memcpy(dst, s->block + s->pos, size);
	s->pos += size;
	*got = size;
	return LADE_OK;
}

const lade__foreign_decoder lade__snappy_decoder = {
	.state_size = sizeof(chunks),
	.start = start,
	.read = read_chunks,
	.stop = stop,
};
