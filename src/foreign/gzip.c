/*
 * foreign_gzip.c: reads .gz (RFC 1952; members one after the other) and .zz (RFC 1950).
 *
 * libdeflate decodes a member or stream that is at hand as a whole, about twice as fast as zlib;
 * zlib decodes the others as they come.  After the last member zero bytes are ignored, as gzip(1)
 * does (tapes are padded with them); any other byte there is an error.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <libdeflate.h>
#include <zlib.h>

#include "base/try.h"
#include "foreign/foreign.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* Members that decode to no more than this are tried with libdeflate. */
#define WHOLE_CAP ((size_t)1 << 20)

/* Encoded bytes to have at hand for a try: one such member that does not compress. */
#define WHOLE_WANT (WHOLE_CAP + WHOLE_CAP / 16)

#define GZIP_HEADER_CRC 0x02 /* of the flags, RFC 1952, 2.3.1 */

typedef struct members {
	bool inside; /* a member or stream has begun */
	bool any;
	bool padding; /* zero bytes have been seen: nothing else may follow */
	bool streamed; /* a try with libdeflate has failed, or none is made: the rest is zlib's */
	bool full;
	uint64_t member_off;
	z_stream z;
	bool z_ready;
	struct libdeflate_decompressor *whole;
	uint8_t *block; /* a decoded member: bytes [pos, end) are still to be given out */
	size_t block_pos, block_end;
} members;

static const char *what(const lade_foreign_reader *r)
{
	return r->format == LADE_FORMAT_GZ ? "gzip member" : "zlib stream";
}

static lade_status start(lade_foreign_reader *r, lade_error *err)
{
	members *s = r->state;
	int rc = inflateInit2(&s->z, r->format == LADE_FORMAT_GZ ? 15 + 16 : 15);

	if (rc != Z_OK)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a decoder");
	s->z_ready = true;
	s->streamed = r->strict;
	return LADE_OK;
}

static void stop(lade_foreign_reader *r)
{
	members *s = r->state;

	if (s->z_ready)
		inflateEnd(&s->z);
	libdeflate_free_decompressor(s->whole);
	lade__host_free(r->alloc, s->block, WHOLE_CAP);
}

/*
 * Tries to decode the member that begins here from the bytes at hand.  '*got' stays 0 when that
 * cannot be done; what is wrong with it, if anything, zlib finds out.
 */
static lade_status try_whole(lade_foreign_reader *r, uint8_t *dst, size_t cap, size_t *got,
                             lade_error *err)
{
	members *s = r->state;
	lade__in *in = &r->in;
	bool direct = cap >= WHOLE_CAP;
	size_t used = 0, made = 0;

	lade_status status = lade__in_want(in, WHOLE_WANT, err);
	if (status != LADE_OK)
		return status;
	/* libdeflate passes over a header's own checksum; only zlib verifies it. */
	bool gz = r->format == LADE_FORMAT_GZ;
	if (lade__in_have(in) < 4 || (gz && lade__in_at(in)[3] & GZIP_HEADER_CRC)) {
		s->streamed = true;
		return LADE_OK;
	}
	if (!s->whole)
		s->whole = libdeflate_alloc_decompressor();
	if (!s->block && !direct)
		s->block = lade__host_alloc(r->alloc, WHOLE_CAP);
	if (!s->whole || (!direct && !s->block)) {
		s->streamed = true;
		return LADE_OK;
	}
	enum libdeflate_result rc =
		(gz ? libdeflate_gzip_decompress_ex : libdeflate_zlib_decompress_ex)(
		s->whole, lade__in_at(in), lade__in_have(in), direct ? dst : s->block,
		direct ? cap : WHOLE_CAP, &used, &made);
	if (rc != LIBDEFLATE_SUCCESS) {
		s->streamed = true;
		return LADE_OK;
	}
	lade__in_take(in, used);
	s->inside = false;
	if (direct) {
		*got = made;
	} else {
		s->block_pos = 0;
		s->block_end = made;
	}
	return LADE_OK;
}

static lade_status step(lade_foreign_reader *r, uint8_t *dst, size_t cap, size_t *got,
                        lade_error *err)
{
	members *s = r->state;
	lade__in *in = &r->in;

	if (!s->full) {
		lade_status status = lade__in_want(in, 1, err);
		if (status != LADE_OK)
			return status;
	}
	size_t have = lade__in_have(in) < UINT_MAX ? lade__in_have(in) : UINT_MAX;
	size_t room = cap < UINT_MAX ? cap : UINT_MAX;
	/* zlib does not write through next_in; it is const only with ZLIB_CONST. */
	s->z.next_in = (Bytef *)(uintptr_t)lade__in_at(in);
	s->z.avail_in = (uInt)have;
	s->z.next_out = dst;
	s->z.avail_out = (uInt)room;
	int rc = inflate(&s->z, Z_NO_FLUSH);
	size_t used = have - s->z.avail_in;
	size_t made = room - s->z.avail_out;
	lade__in_take(in, used);
	s->full = made == room;

	switch (rc) {
	case Z_STREAM_END:
		s->inside = false;
		s->full = false;
		break;
	case Z_OK:
	case Z_BUF_ERROR:
		if (used == 0 && made == 0 && in->eof)
			return lade_fail(err, LADE_E_TRUNCATED, in->off,
			                 "the %s that begins at byte %" PRIu64
			                 " ends too early, at byte %" PRIu64,
			                 what(r), s->member_off, in->off);
		break;
	case Z_NEED_DICT: {
		lade_cspan d = r->dict ? lade_dict_data(r->dict) : lade_host_cspan(NULL, 0);
		if (!d.size || d.size > UINT_MAX ||
		    inflateSetDictionary(&s->z, d.data, (uInt)d.size) != Z_OK)
			return lade_fail(err, LADE_E_DICT, s->member_off,
			                 "the stream needs the dictionary with Adler-32 %08lX%s",
			                 s->z.adler, d.size ? "; the given one has another" : "");
		break;
	}
	case Z_MEM_ERROR:
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a decoder");
	default: {
		const char *msg = s->z.msg ? s->z.msg : "bad data";
		bool check = strstr(msg, "data check") || strstr(msg, "crc");
		return lade_fail(err, check ? LADE_E_CHECKSUM : LADE_E_CORRUPT, in->off,
		                 "the %s that begins at byte %" PRIu64 ": %s", what(r),
		                 s->member_off, msg);
	}
	}
	*got = made;
	return LADE_OK;
}

/* Nothing but zero bytes may follow the last member. */
static lade_status skip_padding(lade_foreign_reader *r, lade_error *err)
{
	lade__in *in = &r->in;
	lade_status status = LADE_OK;

	for (;;) {
		TRY(lade__in_want(in, 1, err));
		size_t have = lade__in_have(in);
		if (have == 0)
			return LADE_OK;
		const uint8_t *p = lade__in_at(in);
		for (size_t i = 0; i < have; i++) {
			if (p[i])
				return lade_fail(err, LADE_E_CORRUPT, in->off + i,
				                 "trailing bytes are not a %s, at byte "
				                 "%" PRIu64,
				                 what(r), in->off + i);
		}
		lade__in_take(in, have);
	}
out:
	return status;
}

/* RFC 1950, 2.2: method 8, a window of at most 32 KiB, and a check over both bytes. */
static bool begins(const lade_foreign_reader *r, const uint8_t *p)
{
	if (r->format == LADE_FORMAT_GZ)
		return p[0] == 0x1F && p[1] == 0x8B;
	return (p[0] & 0x0F) == 8 && p[0] >> 4 <= 7 && (p[0] * 256 + p[1]) % 31 == 0;
}

static lade_status begin(lade_foreign_reader *r, bool *end, lade_error *err)
{
	members *s = r->state;
	lade__in *in = &r->in;
	lade_status status = LADE_OK;

	TRY(lade__in_want(in, 2, err));
	size_t have = lade__in_have(in);
	if (have == 0 && !s->any)
		return lade_fail(err, LADE_E_TRUNCATED, in->off, "want a %s, have 0 bytes",
		                 what(r));
	if (have == 1 && !s->any)
		return lade_fail(err, LADE_E_TRUNCATED, in->off + 1, "want a %s, have 1 byte",
		                 what(r));
	if (have < 2 || !begins(r, lade__in_at(in))) {
		if (!s->any)
			return lade_fail(err, LADE_E_CORRUPT, in->off,
			                 "this is not the start of a %s", what(r));
		TRY(skip_padding(r, err));
		*end = true;
		return LADE_OK;
	}
	s->member_off = in->off;
	s->any = s->inside = true;
	r->frames++;
	s->full = false;
	if (inflateReset(&s->z) != Z_OK)
		return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET, "inflateReset failed");
	inflateValidate(&s->z, !r->ignore_checksum);
out:
	return status;
}

static lade_status read_members(lade_foreign_reader *r, uint8_t *dst, size_t cap, size_t *got,
                                lade_error *err)
{
	members *s = r->state;
	lade_status status = LADE_OK;
	bool end = false;

	while (*got == 0 && !end) {
		if (s->block_pos < s->block_end) {
			size_t size = s->block_end - s->block_pos;
			if (size > cap)
				size = cap;
			memcpy(dst, s->block + s->block_pos, size);
			s->block_pos += size;
			*got = size;
			break;
		}
		if (!s->inside) {
			TRY(begin(r, &end, err));
			if (!end && !s->streamed)
				TRY(try_whole(r, dst, cap, got, err));
		} else {
			TRY(step(r, dst, cap, got, err));
		}
	}
out:
	return status;
}

const lade__foreign_decoder lade__gzip_decoder = {
	.state_size = sizeof(members),
	.start = start,
	.read = read_members,
	.stop = stop,
};
