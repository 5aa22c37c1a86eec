/*
 * zlib.c: zlib streams (RFC 1950): a Deflate stream with two bytes before it, perhaps a
 * dictionary's checksum, and an Adler-32 behind it.
 *
 *     | CMF 1 | FLG 1 | DICTID 4, if FLG bit 5 | Deflate stream | Adler-32 4, big-endian |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/deflate/deflate.h"

#define HEADER 2
#define TRAILER 4
#define DICT_ID 4

/* The container adds the three fixed parts to the stream. */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return lade__deflate_bound(size, HEADER + DICT_ID + TRAILER);
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint8_t nothing;
	*dst_size = 0;
	if (run->dict)
		return lade__deflate_with_dict(run, 15, src, dst, dst_size, err);
	struct libdeflate_compressor *c =
		lade__deflater_level(run->state, lade__deflate_level(run->stage));
	if (!c)
		return lade__deflate_nomem(run, err);
	*dst_size = libdeflate_zlib_compress(c, lade__bytes(src), src.size,
	                                     lade__room(dst, &nothing), dst.size);
	if (*dst_size == 0)
		return lade__deflate_nospace(run, bound(run->stage, src.size), dst.size, err);
	return LADE_OK;
}

/*
 * Reads the header (RFC 1950, 2.2); gives its length and the dictionary to decode with, NULL where
 * the stream names none.
 */
static lade_status header_read(const lade_run *run, const uint8_t *src, size_t size, size_t *length,
                               const lade_dict **dict, lade_error *err)
{
	if (size < HEADER)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "zlib: want a header of %d bytes, have %zu", HEADER, size);
	unsigned cmf = src[0], flg = src[1];
	if ((cmf << 8 | flg) % 31)
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "zlib: the header 0x%02x%02x is not a multiple of 31", cmf, flg);
	if ((cmf & 15) != 8 || cmf >> 4 > 7)
		return lade_fail(err, LADE_E_UNSUPPORTED, 0,
		                 "zlib: method %u with a window of 2^%u, want 8 with at most 2^15",
		                 cmf & 15, (cmf >> 4) + 8);
	*length = HEADER;
	*dict = NULL;
	if (!(flg & 0x20))
		return LADE_OK;
	if (size < HEADER + DICT_ID)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "zlib: want a header of %d bytes, have %zu", HEADER + DICT_ID,
		                 size);
	uint32_t want = lade__be32(src + HEADER);
	if (!run->dict)
		return lade_fail(err, LADE_E_DICT, HEADER,
		                 "zlib: the stream needs dictionary 0x%08x, none is given", want);
	lade_cspan data = lade_dict_data(run->dict);
	uint32_t have = libdeflate_adler32(1, data.data, data.size);
	if (have != want)
		return lade_fail(err, LADE_E_DICT, HEADER,
		                 "zlib: the stream needs dictionary 0x%08x, 0x%08x is given", want,
		                 have);
	*length = HEADER + DICT_ID;
	*dict = run->dict;
	return LADE_OK;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	const uint8_t *in = lade__bytes(src);
	uint8_t nothing;
	lade__deflated s = {.dst = lade__room(dst, &nothing), .cap = dst.size};
	size_t off = 0;
	*dst_size = 0;
	lade_status status = header_read(run, in, src.size, &off, &s.dict, err);
	s.src = in + off;
	s.size = src.size - off;
	s.off = off;
	if (status == LADE_OK)
		status = lade__inflate(run, &s, err);
	if (status != LADE_OK)
		return status;
	off += s.used;
	if (src.size - off < TRAILER)
		return lade_fail(err, LADE_E_TRUNCATED, src.size,
		                 "zlib: want a checksum of %d bytes, have %zu", TRAILER,
		                 src.size - off);
	if (src.size - off > TRAILER)
		return lade_fail(err, LADE_E_CORRUPT, off + TRAILER,
		                 "zlib: the stream ends at %zu, the data at %zu", off + TRAILER,
		                 src.size);
	uint32_t want = lade__be32(in + off), have = libdeflate_adler32(1, s.dst, s.written);
	if (have != want)
		return lade_fail(err, LADE_E_CHECKSUM, off,
		                 "zlib: the Adler-32 is 0x%08x, stored is 0x%08x", have, want);
	*dst_size = s.written;
	return LADE_OK;
}

const lade_algorithm lade__zlib = {
	.struct_size = sizeof(lade_algorithm),
	.name = "zlib",
	.id = 6,
	.kind = LADE_STAGE_CODEC,
	.options = lade__deflate_options,
	.option_count = 1,
	.doc = "a zlib stream; RFC 1950",
	.bound = bound,
	.decoded_size = lade__deflate_unknown_size,
	.header_size = 1, /* it reads none */
	.ratio_max = 1032,
};

LADE__DEFLATE_IMPLEMENTATIONS(zlib)
