/*
 * header.c: the checked header of a Blosc1 container (docs/format/blosc.md, "Header").
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/blosc.h"

static lade_status check_version(const uint8_t *p, lade_error *err)
{
	if (p[0] == BLOSC_VERSION)
		return LADE_OK;
	if (p[0] > BLOSC_VERSION && p[0] <= 6)
		return lade_fail(
			err, LADE_E_UNSUPPORTED, 0,
			"blosc: a Blosc2 chunk (version %u); only Blosc1 (version 2) is read",
			p[0]);
	return lade_fail(err, LADE_E_VERSION, 0, "blosc: want version 2, have %u", p[0]);
}

/* The sizes of a container whose 'nbytes' is not 0. */
static lade_status check_blocks(lade__blosc_info *info, lade_error *err)
{
	if (info->blocksize == 0 || info->blocksize > info->nbytes ||
	    info->blocksize > BLOSC_BLOCK_MAX)
		return lade_fail(err, LADE_E_CORRUPT, 8,
		                 "blosc: blocks of %u bytes in a total of %u", info->blocksize,
		                 info->nbytes);
	if (info->typesize == 0)
		return lade_fail(err, LADE_E_CORRUPT, 3, "blosc: elements of 0 bytes");
	if (info->stored) {
		if (info->cbytes != info->nbytes + BLOSC_HEADER_SIZE)
			return lade_fail(err, LADE_E_CORRUPT, 12,
			                 "blosc: stored, want a size of %u bytes, have %u",
			                 info->nbytes + BLOSC_HEADER_SIZE, info->cbytes);
		return LADE_OK;
	}
	info->block_count = info->nbytes / info->blocksize + (info->nbytes % info->blocksize != 0);
	if (info->block_count > (info->cbytes - BLOSC_HEADER_SIZE) / 4)
		return lade_fail(err, LADE_E_CORRUPT, BLOSC_HEADER_SIZE,
		                 "blosc: a table of %u blocks does not fit into %u bytes",
		                 info->block_count, info->cbytes);
	if (!(info->flags & BLOSC_FLAG_UNSPLIT) && info->typesize <= BLOSC_STREAMS_MAX &&
	    info->blocksize / info->typesize >= BLOSC_STREAM_MIN) {
		if (info->blocksize % info->typesize)
			return lade_fail(
				err, LADE_E_CORRUPT, 8,
				"blosc: blocks of %u bytes cannot be split into %u streams",
				info->blocksize, info->typesize);
		info->streams = info->typesize;
	}
	return LADE_OK;
}

lade_status lade__blosc_parse(const void *src, size_t size, lade__blosc_info *info, lade_error *err)
{
	const uint8_t *p = src;
	if (size == 0)
		return lade_fail(err, LADE_E_TRUNCATED, 0,
		                 "blosc: want a header of 16 bytes, have 0");
	lade_status status = check_version(p, err);
	if (status != LADE_OK)
		return status;
	if (size < BLOSC_HEADER_SIZE)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "blosc: want a header of 16 bytes, have %zu", size);
	*info = (lade__blosc_info){
		.src = p,
		.flags = p[2],
		.typesize = p[3],
		.codec = (lade__blosc_codec)(p[2] >> BLOSC_CODEC_SHIFT),
		.stored = p[2] & BLOSC_FLAG_STORED,
		.nbytes = lade__le32(p + 4),
		.blocksize = lade__le32(p + 8),
		.cbytes = lade__le32(p + 12),
		.streams = 1,
	};
	if (info->flags & BLOSC_FLAG_RESERVED)
		return lade_fail(err, LADE_E_UNSUPPORTED, 2, "blosc: unknown flag in 0x%02x",
		                 info->flags);
	if (info->nbytes > BLOSC_NBYTES_MAX)
		return lade_fail(err, LADE_E_CORRUPT, 4,
		                 "blosc: a total of %u bytes, want at most %zu", info->nbytes,
		                 BLOSC_NBYTES_MAX);
	if (info->cbytes < BLOSC_HEADER_SIZE)
		return lade_fail(err, LADE_E_CORRUPT, 12,
		                 "blosc: a size of %u bytes, want at least 16", info->cbytes);
	if (info->cbytes > size)
		return lade_fail(err, LADE_E_TRUNCATED, size, "blosc: want %u bytes, have %zu",
		                 info->cbytes, size);
	if (info->cbytes < size)
		return lade_fail(err, LADE_E_CORRUPT, info->cbytes,
		                 "blosc: want %u bytes, have %zu", info->cbytes, size);
	if (info->nbytes == 0) {
		/* Nothing follows the header of nothing; c-blosc looks at no other field then. */
		if (info->cbytes != BLOSC_HEADER_SIZE)
			return lade_fail(err, LADE_E_CORRUPT, 12,
			                 "blosc: empty, want 16 bytes, have %u", info->cbytes);
		info->stored = true;
		return LADE_OK;
	}
	if (!info->stored && info->codec > BLOSC_ZSTD_STREAMS)
		return lade_fail(err, LADE_E_UNSUPPORTED, 2, "blosc: unknown codec %u",
		                 info->codec);
	if (!info->stored && p[1] != BLOSC_CODEC_VERSION)
		return lade_fail(err, LADE_E_VERSION, 1,
		                 "blosc: want version 1 of codec %u, have %u", info->codec, p[1]);
	return check_blocks(info, err);
}
