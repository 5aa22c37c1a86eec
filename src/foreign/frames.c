/*
 * foreign_frames.c: reads .zst (RFC 8878) and .lz4 (LZ4 frame format 1.6, legacy frames too):
 * frames one after the other, skippable ones between them.
 *
 * The two share their skippable frames, so that a file which begins with one can be either; both
 * kinds of frame are taken in both files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define LZ4F_STATIC_LINKING_ONLY /* the dictionary call and the error numbers */
#include <lz4.h>
#include <lz4frame.h>

#include "base/try.h"
#include "codec/zstd/zstd.h"
#include "foreign/foreign.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define MAGIC_ZSTD 0xFD2FB528u
#define MAGIC_LZ4 0x184D2204u
#define MAGIC_LEGACY 0x184C2102u
#define MAGIC_SKIP 0x184D2A50u /* the low four bits are free */

/* Of a zstd frame: 4 magic, 1 descriptor, 1 window, 4 dictionary, 8 content size. */
#define ZSTD_HEADER_MAX 18

#define LEGACY_BLOCK ((size_t)8 << 20)

#define UNTOLD UINT64_MAX

typedef enum place { BETWEEN = 0, IN_ZSTD, IN_LZ4, IN_LEGACY } place;

typedef struct frames {
	place at;
	bool any;  /* a frame has begun */
	bool full; /* the last call filled the destination; more may be waiting inside */
	uint64_t frame_off;
	uint64_t content, produced; /* of a zstd frame: what it says (or UNTOLD) and what came */
	ZSTD_DCtx *zstd;
	LZ4F_dctx *lz4;
	uint8_t *block; /* a decoded legacy block: bytes [pos, end) are still to be given out */
	size_t block_pos, block_end;
} frames;

static lade_status start(lade_foreign_reader *r, lade_error *err)
{
	(void)r;
	(void)err;
	return LADE_OK;
}

static void stop(lade_foreign_reader *r)
{
	frames *s = r->state;

	ZSTD_freeDCtx(s->zstd);
	LZ4F_freeDecompressionContext(s->lz4);
	lade__host_free(r->alloc, s->block, LEGACY_BLOCK);
}

static lade_status truncated(const frames *s, const lade__in *in, const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_TRUNCATED, in->off + lade__in_have(in),
	                 "the %s that begins at byte %" PRIu64 " ends too early, at byte %" PRIu64,
	                 what, s->frame_off, in->off + lade__in_have(in));
}

/* ---- zstd ------------------------------------------------------------------------------- */

/*
 * Looks at a zstd frame's header for what libzstd would refuse without telling the numbers: a
 * window larger than allowed, and a dictionary that is not there.  Bad headers are left to it.
 */
static lade_status zstd_check_header(lade_foreign_reader *r, lade_error *err)
{
	frames *s = r->state;
	static const uint8_t dict_sizes[] = {0, 1, 2, 4}, content_sizes[] = {0, 2, 4, 8};
	lade_status status = lade__in_want(&r->in, ZSTD_HEADER_MAX, err);
	const uint8_t *p = lade__in_at(&r->in);
	size_t have = lade__in_have(&r->in);

	s->content = UNTOLD;
	s->produced = 0;
	if (status != LADE_OK || have < 5)
		return status;
	unsigned descriptor = p[4];
	bool single = descriptor >> 5 & 1;
	size_t dict_size = dict_sizes[descriptor & 3];
	size_t content_size = content_sizes[descriptor >> 6];
	if (single && content_size == 0)
		content_size = 1;
	size_t dict_at = 5 + (single ? 0 : 1);
	if (have < dict_at + dict_size + content_size)
		return LADE_OK;

	uint64_t content = content_size == 2 ? 256 : 0;
	for (size_t i = 0; i < content_size; i++)
		content += (uint64_t)p[dict_at + dict_size + i] << (8 * i);
	if (content_size)
		s->content = content;
	uint64_t window = content;
	if (!single) {
		uint64_t base = (uint64_t)1 << (10 + (p[5] >> 3));
		window = base + base / 8 * (p[5] & 7);
	}
	if (window > r->max_window)
		return lade_fail(err, LADE_E_LIMIT, r->in.off,
		                 "the frame needs a window of %" PRIu64 " bytes, %" PRIu64
		                 " are allowed",
		                 window, r->max_window);
	uint32_t id = 0;
	for (size_t i = 0; i < dict_size; i++)
		id |= (uint32_t)p[dict_at + i] << (8 * i);
	if (id && !r->dict)
		return lade_fail(err, LADE_E_DICT, r->in.off,
		                 "the frame needs the dictionary with the number %" PRIu32, id);
	return LADE_OK;
}

static lade_status zstd_begin(lade_foreign_reader *r, lade_error *err)
{
	frames *s = r->state;
	lade_status status = zstd_check_header(r, err);

	if (status != LADE_OK)
		return status;
	if (!s->zstd) {
		s->zstd = ZSTD_createDCtx_advanced(lade__zstd_memory(r->alloc));
		if (!s->zstd)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for a zstd decoder");
		/* Windows have been checked above: let libzstd take any. */
		ZSTD_bounds bounds = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
		ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, bounds.upperBound);
		if (r->dict) {
			lade_cspan d = lade_dict_data(r->dict);
			size_t rc = ZSTD_DCtx_loadDictionary(s->zstd, d.data, d.size);
			if (ZSTD_isError(rc))
				return lade_fail(err, LADE_E_DICT, LADE_NO_OFFSET,
				                 "the dictionary was refused: %s",
				                 ZSTD_getErrorName(rc));
		}
	}
	/* libzstd 1.5.4 has no public parameter for it; ZSTD_d_experimentalParam3 is
	 * ZSTD_d_forceIgnoreChecksum. */
	if (r->ignore_checksum)
		ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_experimentalParam3, 1);
	return LADE_OK;
}

static lade_status zstd_failed(const frames *s, const lade__in *in, size_t rc, lade_error *err)
{
	lade_status status = LADE_E_CORRUPT;

	switch (ZSTD_getErrorCode(rc)) {
	case ZSTD_error_checksum_wrong:
		status = LADE_E_CHECKSUM;
		break;
	case ZSTD_error_dictionary_wrong:
	case ZSTD_error_dictionary_corrupted:
		status = LADE_E_DICT;
		break;
	case ZSTD_error_frameParameter_windowTooLarge:
		status = LADE_E_LIMIT;
		break;
	case ZSTD_error_memory_allocation:
		status = LADE_E_NOMEM;
		break;
	default:
		break;
	}
	return lade_fail(err, status, in->off, "the zstd frame that begins at byte %" PRIu64 ": %s",
	                 s->frame_off, ZSTD_getErrorName(rc));
}

static lade_status zstd_step(lade_foreign_reader *r, uint8_t *dst, size_t cap, size_t *got,
                             lade_error *err)
{
	frames *s = r->state;
	lade__in *in = &r->in;

	if (!s->full) {
		lade_status status = lade__in_want(in, 1, err);
		if (status != LADE_OK)
			return status;
	}
	ZSTD_inBuffer from = {lade__in_at(in), lade__in_have(in), 0};
	ZSTD_outBuffer to = {dst, cap, 0};
	size_t rc = ZSTD_decompressStream(s->zstd, &to, &from);
	if (ZSTD_isError(rc))
		return zstd_failed(s, in, rc, err);
	lade__in_take(in, from.pos);
	*got = to.pos;
	s->full = to.pos == cap;
	s->produced += to.pos;
	/* libzstd 1.5.4 does not look where a frame that comes in parts ends in an empty block. */
	if (rc == 0 && s->content != UNTOLD && s->produced != s->content)
		return lade_fail(err, LADE_E_CORRUPT, in->off,
		                 "the zstd frame that begins at byte %" PRIu64
		                 " says that it holds %" PRIu64 " bytes, and holds %" PRIu64,
		                 s->frame_off, s->content, s->produced);
	if (rc == 0)
		s->at = BETWEEN;
	else if (from.pos == 0 && to.pos == 0 && in->eof)
		return truncated(s, in, "zstd frame", err);
	return LADE_OK;
}

/* ---- LZ4 frames --------------------------------------------------------------------------- */

static lade_status lz4_begin(lade_foreign_reader *r, lade_error *err)
{
	frames *s = r->state;
	lade_status status = lade__in_want(&r->in, LZ4F_HEADER_SIZE_MAX, err);
	const uint8_t *p = lade__in_at(&r->in);

	if (status != LADE_OK)
		return status;
	if (lade__in_have(&r->in) > 4 && (p[4] & 1) && !r->dict)
		return lade_fail(err, LADE_E_DICT, r->in.off, "the frame needs a dictionary");
	if (!s->lz4 && LZ4F_isError(LZ4F_createDecompressionContext(&s->lz4, LZ4F_VERSION)))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an LZ4 decoder");
	return LADE_OK;
}

static lade_status lz4_failed(const frames *s, const lade__in *in, size_t rc, lade_error *err)
{
	lade_status status = LADE_E_CORRUPT;

	switch (LZ4F_getErrorCode(rc)) {
	case LZ4F_ERROR_blockChecksum_invalid:
	case LZ4F_ERROR_contentChecksum_invalid:
	case LZ4F_ERROR_headerChecksum_invalid:
		status = LADE_E_CHECKSUM;
		break;
	case LZ4F_ERROR_headerVersion_wrong:
		status = LADE_E_VERSION;
		break;
	case LZ4F_ERROR_allocation_failed:
		status = LADE_E_NOMEM;
		break;
	default:
		break;
	}
	return lade_fail(err, status, in->off, "the LZ4 frame that begins at byte %" PRIu64 ": %s",
	                 s->frame_off, LZ4F_getErrorName(rc));
}

static lade_status lz4_step(lade_foreign_reader *r, uint8_t *dst, size_t cap, size_t *got,
                            lade_error *err)
{
	frames *s = r->state;
	lade__in *in = &r->in;
	LZ4F_decompressOptions_t options = {.skipChecksums = r->ignore_checksum};

	if (!s->full) {
		lade_status status = lade__in_want(in, 1, err);
		if (status != LADE_OK)
			return status;
	}
	lade_cspan d = r->dict ? lade_dict_data(r->dict) : lade_host_cspan(NULL, 0);
	size_t from = lade__in_have(in), to = cap;
	size_t rc = LZ4F_decompress_usingDict(s->lz4, dst, &to, lade__in_at(in), &from, d.data,
	                                      d.size, &options);
	if (LZ4F_isError(rc))
		return lz4_failed(s, in, rc, err);
	lade__in_take(in, from);
	*got = to;
	s->full = to == cap;
	if (rc == 0)
		s->at = BETWEEN;
	else if (from == 0 && to == 0 && in->eof)
		return truncated(s, in, "LZ4 frame", err);
	return LADE_OK;
}

/* ---- legacy LZ4 frames ---------------------------------------------------------------------- */

/*
 * | block size 4 | block | block size 4 | block | ... up to the end of the file, or up to four
 * bytes that are too large for a block's size: those begin the next frame.  A block decodes to at
 * most 8 MiB.
 */
static lade_status legacy_block(lade_foreign_reader *r, lade_error *err)
{
	frames *s = r->state;
	lade__in *in = &r->in;
	lade_status status = LADE_OK;

	TRY(lade__in_want(in, 4, err));
	if (lade__in_have(in) == 0 && in->eof) {
		s->at = BETWEEN;
		return LADE_OK;
	}
	if (lade__in_have(in) < 4)
		return truncated(s, in, "legacy LZ4 frame", err);
	uint32_t size = lade__le32(lade__in_at(in));
	if (size > LZ4_COMPRESSBOUND(LEGACY_BLOCK)) {
		s->at = BETWEEN;
		return LADE_OK;
	}
	if (!s->block) {
		s->block = lade__host_alloc(r->alloc, LEGACY_BLOCK);
		if (!s->block)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for a block of %zu bytes", LEGACY_BLOCK);
	}
	TRY(lade__in_want(in, 4 + (size_t)size, err));
	if (lade__in_have(in) < 4 + (size_t)size)
		return truncated(s, in, "legacy LZ4 frame", err);
	int n = LZ4_decompress_safe((const char *)lade__in_at(in) + 4, (char *)s->block, (int)size,
	                            (int)LEGACY_BLOCK);
	if (n < 0)
		return lade_fail(err, LADE_E_CORRUPT, in->off + 4,
		                 "a damaged block of %" PRIu32 " bytes", size);
	lade__in_take(in, 4 + (size_t)size);
	s->block_pos = 0;
	s->block_end = (size_t)n;
out:
	return status;
}

static lade_status legacy_step(lade_foreign_reader *r, uint8_t *dst, size_t cap, size_t *got,
                               lade_error *err)
{
	frames *s = r->state;

	if (s->block_pos == s->block_end)
		return legacy_block(r, err);
	size_t size = s->block_end - s->block_pos;
	if (size > cap)
		size = cap;
	memcpy(dst, s->block + s->block_pos, size);
	s->block_pos += size;
	*got = size;
	return LADE_OK;
}

/* ---- between frames ----------------------------------------------------------------- */

/* | magic 4 | size 4 | size bytes to skip | */
static lade_status skip(lade_foreign_reader *r, lade_error *err)
{
	lade__in *in = &r->in;
	lade_status status = LADE_OK;

	TRY(lade__in_want(in, 8, err));
	if (lade__in_have(in) < 8)
		return truncated(r->state, in, "skippable frame", err);
	uint64_t left = lade__le32(lade__in_at(in) + 4);
	lade__in_take(in, 8);
	while (left) {
		TRY(lade__in_want(in, 1, err));
		size_t have = lade__in_have(in);
		if (have == 0)
			return truncated(r->state, in, "skippable frame", err);
		if (have > left)
			have = (size_t)left;
		lade__in_take(in, have);
		left -= have;
	}
out:
	return status;
}

/* Begins the next frame; '*end' at the end of a complete file. */
static lade_status begin(lade_foreign_reader *r, bool *end, lade_error *err)
{
	frames *s = r->state;
	lade__in *in = &r->in;
	lade_status status = LADE_OK;

	s->full = false;
	TRY(lade__in_want(in, 4, err));
	size_t have = lade__in_have(in);
	s->frame_off = in->off;
	if (have == 0 && s->any) {
		*end = true;
		return LADE_OK;
	}
	if (have == 0)
		return lade_fail(err, LADE_E_TRUNCATED, in->off, "want a frame, have 0 bytes");
	if (have < 4)
		return truncated(s, in, "frame", err);
	uint32_t magic = lade__le32(lade__in_at(in));
	if ((magic & ~0xFu) == MAGIC_SKIP) {
		TRY(skip(r, err));
	} else if (magic == MAGIC_ZSTD) {
		TRY(zstd_begin(r, err));
		s->at = IN_ZSTD;
	} else if (magic == MAGIC_LZ4) {
		TRY(lz4_begin(r, err));
		s->at = IN_LZ4;
	} else if (magic == MAGIC_LEGACY) {
		lade__in_take(in, 4);
		s->at = IN_LEGACY;
	} else {
		return lade_fail(err, LADE_E_CORRUPT, in->off,
		                 "no frame begins with 0x%08" PRIX32
		                 " (zstd's do with 0x%08X, LZ4's "
		                 "with 0x%08X)",
		                 magic, MAGIC_ZSTD, MAGIC_LZ4);
	}
	s->any = true;
	r->frames += s->at != BETWEEN;
out:
	return status;
}

static lade_status read_frames(lade_foreign_reader *r, uint8_t *dst, size_t cap, size_t *got,
                               lade_error *err)
{
	frames *s = r->state;
	lade_status status = LADE_OK;
	bool end = false;

	while (*got == 0 && !end) {
		switch (s->at) {
		case BETWEEN:
			TRY(begin(r, &end, err));
			break;
		case IN_ZSTD:
			TRY(zstd_step(r, dst, cap, got, err));
			break;
		case IN_LZ4:
			TRY(lz4_step(r, dst, cap, got, err));
			break;
		case IN_LEGACY:
			TRY(legacy_step(r, dst, cap, got, err));
			break;
		}
	}
out:
	return status;
}

const lade__foreign_decoder lade__frames_decoder = {
	.state_size = sizeof(frames),
	.start = start,
	.read = read_frames,
	.stop = stop,
};
