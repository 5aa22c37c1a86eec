/*
 * gzip.c: gzip members (RFC 1952), any number of them one after the other, with zeros behind the
 * last.
 *
 *     | 1f 8b | CM 1 | FLG 1 | MTIME 4 | XFL 1 | OS 1 | fields by FLG | Deflate stream |
 *     | CRC-32 4 | ISIZE 4 |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/deflate/deflate.h"

#include "base/try.h"

#include <string.h>

#define HEADER 10
#define TRAILER 8

/* Bits of FLG. */
enum {
	FLAG_HCRC = 2,
	FLAG_EXTRA = 4,
	FLAG_NAME = 8,
	FLAG_COMMENT = 16,
	FLAG_RESERVED = 0xE0,
};

/* One member with the short header. */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return lade__deflate_bound(size, HEADER + TRAILER);
}

/* gzip knows no dictionaries: one that is given is for other stages. */
static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint8_t nothing;
	*dst_size = 0;
	struct libdeflate_compressor *c =
		lade__deflater_level(run->state, lade__deflate_level(run->stage));
	if (!c)
		return lade__deflate_nomem(run, err);
	*dst_size = libdeflate_gzip_compress(c, lade__bytes(src), src.size,
	                                     lade__room(dst, &nothing), dst.size);
	if (*dst_size == 0)
		return lade__deflate_nospace(run, bound(run->stage, src.size), dst.size, err);
	return LADE_OK;
}

static lade_status cut(uint64_t off, size_t size, const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_TRUNCATED, off + size,
	                 "gzip: the member at %llu ends after %zu bytes, inside its %s",
	                 (unsigned long long)off, size, what);
}

/* Skips a text that ends with a zero byte. */
static bool skip_text(const uint8_t *src, size_t size, size_t *in)
{
	const uint8_t *end = memchr(src + *in, 0, size - *in);
	if (!end)
		return false;
	*in = (size_t)(end - src) + 1;
	return true;
}

/* Reads a member's header (RFC 1952, 2.3.1) and gives its length. */
static lade_status header_read(const uint8_t *src, size_t size, uint64_t off, size_t *length,
                               lade_error *err)
{
	unsigned long long at = off;
	if ((size > 0 && src[0] != 0x1F) || (size > 1 && src[1] != 0x8B))
		return lade_fail(err, LADE_E_CORRUPT, off,
		                 "gzip: 0x%02x at %llu is not the start of a member", src[0], at);
	if (size < HEADER)
		return cut(off, size, "header", err);
	unsigned flags = src[3];
	if (src[2] != 8)
		return lade_fail(err, LADE_E_UNSUPPORTED, off + 2, "gzip: method %u, want 8",
		                 src[2]);
	if (flags & FLAG_RESERVED)
		return lade_fail(err, LADE_E_UNSUPPORTED, off + 3,
		                 "gzip: the flags 0x%02x have reserved bits", flags);
	size_t in = HEADER;
	if (flags & FLAG_EXTRA) {
		if (size - in < 2 || size - in - 2 < lade__le16(src + in))
			return cut(off, size, "extra field", err);
		in += 2 + lade__le16(src + in);
	}
	if ((flags & FLAG_NAME) && !skip_text(src, size, &in))
		return cut(off, size, "name", err);
	if ((flags & FLAG_COMMENT) && !skip_text(src, size, &in))
		return cut(off, size, "comment", err);
	if (flags & FLAG_HCRC) {
		if (size - in < 2)
			return cut(off, size, "header checksum", err);
		uint32_t have = libdeflate_crc32(0, src, in) & 0xFFFF, want = lade__le16(src + in);
		if (have != want)
			return lade_fail(err, LADE_E_CHECKSUM, off + in,
			                 "gzip: the header's CRC-16 is 0x%04x, stored is 0x%04x",
			                 have, want);
		in += 2;
	}
	*length = in;
	return LADE_OK;
}

/* Decodes the member that begins at m->src; m->used counts header and trailer. */
static lade_status member_read(const lade_run *run, lade__deflated *m, lade_error *err)
{
	lade__deflated body = *m;
	size_t in = 0;
	lade_status status;
	TRY(header_read(m->src, m->size, m->off, &in, err));
	body.src += in;
	body.size -= in;
	body.off += in;
	TRY(lade__inflate(run, &body, err));
	in += body.used;
	if (m->size - in < TRAILER)
		return cut(m->off, m->size, "trailer", err);
	const uint8_t *trailer = m->src + in;
	uint32_t have = libdeflate_crc32(0, m->dst, body.written), want = lade__le32(trailer);
	if (have != want)
		return lade_fail(err, LADE_E_CHECKSUM, m->off + in,
		                 "gzip: the CRC-32 is 0x%08x, stored is 0x%08x", have, want);
	want = lade__le32(trailer + 4);
	if ((uint32_t)body.written != want)
		return lade_fail(err, LADE_E_CHECKSUM, m->off + in + 4,
		                 "gzip: the member has %zu bytes, stored is %u (modulo 2^32)",
		                 body.written, want);
	m->used = in + TRAILER;
	m->written = body.written;
out:
	return status;
}

/* True when only zeros are left: tapes and block devices pad with them, and gzip(1) takes that. */
static bool is_padding(const uint8_t *src, size_t size)
{
	return src[0] == 0 && memcmp(src, src + 1, size - 1) == 0;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint8_t nothing;
	lade__deflated m = {.src = lade__bytes(src), .size = src.size,
	                    .dst = lade__room(dst, &nothing), .cap = dst.size};
	lade_status status;
	*dst_size = 0;
	do {
		TRY(member_read(run, &m, err));
		m.src += m.used;
		m.size -= m.used;
		m.off += m.used;
		m.dst += m.written;
		m.cap -= m.written;
		m.done += m.written;
	} while (m.size && !is_padding(m.src, m.size));
	*dst_size = m.done;
out:
	return status;
}

const lade_algorithm lade__gzip = {
	.struct_size = sizeof(lade_algorithm),
	.name = "gzip",
	.id = 7,
	.kind = LADE_STAGE_CODEC,
	.options = lade__deflate_options,
	.option_count = 1,
	.doc = "gzip members; RFC 1952",
	.bound = bound,
	.decoded_size = lade__deflate_unknown_size,
	.header_size = 1, /* it reads none */
	.ratio_max = 1032,
};

LADE__DEFLATE_IMPLEMENTATIONS(gzip)
