/*
 * decode.c: Zstandard frames (RFC 8878) by libzstd: any number of them one after the other, with
 * skippable frames between, with or without a content size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/zstd/zstd.h"

#include "base/try.h"

typedef struct frame {
	const uint8_t *src; /* borrowed */
	uint64_t off;     /* in the chunk */
	size_t size;      /* encoded bytes, header and all */
	bool skippable;   /* decodes to nothing */
	uint64_t content; /* ZSTD_CONTENTSIZE_UNKNOWN where the header does not say */
	unsigned dict_id; /* 0: none is named */
} frame;

/*
 * Reads the frame at 'src'; 'off' is its offset in the chunk.  libzstd would also take the
 * frames of versions before 0.8 where it was built so; those are no RFC 8878, and are refused.
 */
static lade_status frame_read(const uint8_t *src, size_t size, uint64_t off, frame *out,
                              lade_error *err)
{
	ZSTD_frameHeader header;
	size_t want = ZSTD_getFrameHeader(&header, src, size);
	unsigned long long at = off;
	if (ZSTD_isError(want)) {
		lade_status status =
			ZSTD_getErrorCode(want) == ZSTD_error_frameParameter_unsupported
				? LADE_E_UNSUPPORTED
				: LADE_E_CORRUPT;
		if (ZSTD_getErrorCode(want) == ZSTD_error_frameParameter_windowTooLarge)
			status = LADE_E_LIMIT;
		if (size >= 4 && ZSTD_getErrorCode(want) == ZSTD_error_prefix_unknown)
			return lade_fail(err, LADE_E_CORRUPT, off,
			                 "zstd: 0x%08x at %llu is not the start of a frame",
			                 lade__le32(src), at);
		return lade_fail(err, status, off, "zstd: the frame header at %llu: %s", at,
		                 ZSTD_getErrorName(want));
	}
	if (want > 0)
		return lade_fail(err, LADE_E_TRUNCATED, off + size,
		                 "zstd: the frame header at %llu needs %zu bytes, %zu are left", at,
		                 want, size);
	out->size = ZSTD_findFrameCompressedSize(src, size);
	if (ZSTD_isError(out->size)) {
		if (ZSTD_getErrorCode(out->size) == ZSTD_error_srcSize_wrong)
			return lade_fail(
				err, LADE_E_TRUNCATED, off + size,
				"zstd: the frame at %llu is longer than the %zu bytes left", at,
				size);
		return lade_fail(err, LADE_E_CORRUPT, off, "zstd: the frame at %llu: %s", at,
		                 ZSTD_getErrorName(out->size));
	}
	out->src = src;
	out->off = off;
	out->skippable = header.frameType == ZSTD_skippableFrame;
	out->content = out->skippable ? 0 : header.frameContentSize;
	out->dict_id = out->skippable ? 0 : header.dictID;
	return LADE_OK;
}

static lade_status no_frame(lade_error *err)
{
	return lade_fail(err, LADE_E_TRUNCATED, 0, "zstd: want a frame, have 0 bytes");
}

lade_status lade__zstd_decoded_size(const lade_stage *stage, const void *src, size_t size,
                                    uint64_t *decoded, lade_error *err)
{
	(void)stage;
	const uint8_t *in = src;
	uint64_t total = 0;
	frame f = {0};
	if (!in)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
		                 "zstd: the decoded size is in the data, which was not given");
	if (size == 0)
		return no_frame(err);
	for (size_t off = 0; off < size; off += f.size) {
		lade_status status = frame_read(in + off, size - off, off, &f, err);
		if (status != LADE_OK)
			return status;
		if (f.content == ZSTD_CONTENTSIZE_UNKNOWN)
			return lade_fail(err, LADE_E_UNKNOWN_SIZE, off,
			                 "zstd: the frame at %zu does not state its content size",
			                 off);
		if (f.content > UINT64_MAX - 1 - total)
			return lade_fail(err, LADE_E_CORRUPT, off,
			                 "zstd: the frames' content sizes overflow 64 bits at %zu",
			                 off);
		total += f.content;
	}
	*decoded = total;
	return LADE_OK;
}

/* ---- the decoder ------------------------------------------------------------------------ */

typedef struct decoder {
	const lade_allocator *host;
	ZSTD_DCtx *dctx;
} decoder;

static void *decoder_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	decoder *d = lade__sized_alloc(host, sizeof *d);
	if (!d)
		return NULL;
	*d = (decoder){.host = host, .dctx = ZSTD_createDCtx_advanced(lade__zstd_memory(host))};
	if (!d->dctx) {
		lade__sized_free(host, d);
		return NULL;
	}
	return d;
}

static void decoder_free(void *ctx, void *state)
{
	(void)ctx;
	decoder *d = state;
	ZSTD_freeDCtx(d->dctx);
	lade__sized_free(d->host, d);
}

static const char ddict_key;

static void *ddict_prepare(lade_cspan data, int variant)
{
	(void)variant;
	return ZSTD_createDDict(data.data, data.size);
}

static void ddict_release(void *prepared)
{
	ZSTD_freeDDict(prepared);
}

/* The caller's dictionary, ready; '*out' is NULL without one. */
static lade_status dict_of(const lade_run *run, const ZSTD_DDict **out, lade_error *err)
{
	*out = NULL;
	if (!run->dict)
		return LADE_OK;
	*out = lade_dict_prepared(run->dict, &ddict_key, 0, ddict_prepare, ddict_release);
	if (*out)
		return LADE_OK;
	lade_cspan data = lade_dict_data(run->dict);
	bool formatted = data.size >= 4 && lade__le32(data.data) == ZSTD_MAGIC_DICTIONARY;
	return lade_fail(err, formatted ? LADE_E_DICT : LADE_E_NOMEM, LADE_NO_OFFSET,
	                 "zstd: the dictionary of %zu bytes cannot be prepared%s", data.size,
	                 formatted ? ": its tables are damaged, or memory is short" : "");
}

/* Whether 'ddict' is the dictionary that a frame names. */
static lade_status dict_check(const frame *f, const ZSTD_DDict *ddict, lade_error *err)
{
	unsigned id = f->dict_id;
	uint64_t off = f->off;
	if (id == 0)
		return LADE_OK;
	if (!ddict)
		return lade_fail(err, LADE_E_DICT, off,
		                 "zstd: the frame at %llu needs dictionary %u, none is given",
		                 (unsigned long long)off, id);
	unsigned have = ZSTD_getDictID_fromDDict(ddict);
	if (have != id)
		return lade_fail(err, LADE_E_DICT, off,
		                 "zstd: the frame at %llu needs dictionary %u, %u is given",
		                 (unsigned long long)off, id, have);
	return LADE_OK;
}

/* What libzstd's error says about a frame for which 'cap' bytes were left. */
static lade_status translate(size_t result, const frame *f, size_t cap, lade_error *err)
{
	uint64_t off = f->off;
	unsigned long long at = off;
	switch (ZSTD_getErrorCode(result)) {
	case ZSTD_error_dstSize_tooSmall:
		if (f->content != ZSTD_CONTENTSIZE_UNKNOWN)
			return lade_fail(
				err, LADE_E_CORRUPT, off,
				"zstd: the frame at %llu decodes to more than the %llu bytes "
				"that it states",
				at, (unsigned long long)f->content);
		return lade_fail(err, LADE_E_NOSPACE, off,
		                 "zstd: the frame at %llu, which does not state its size, needs "
		                 "more than the %zu bytes left",
		                 at, cap);
	case ZSTD_error_checksum_wrong:
		return lade_fail(err, LADE_E_CHECKSUM, off + f->size - 4,
		                 "zstd: the checksum of the frame at %llu does not match", at);
	case ZSTD_error_dictionary_wrong:
	case ZSTD_error_dictionary_corrupted:
		return lade_fail(err, LADE_E_DICT, off, "zstd: the frame at %llu: %s", at,
		                 ZSTD_getErrorName(result));
	case ZSTD_error_memory_allocation:
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "zstd: no memory to decode");
	case ZSTD_error_srcSize_wrong:
		return lade_fail(err, LADE_E_TRUNCATED, off + f->size,
		                 "zstd: the frame at %llu ends too early", at);
	default:
		return lade_fail(err, LADE_E_CORRUPT, off, "zstd: the frame at %llu: %s", at,
		                 ZSTD_getErrorName(result));
	}
}

/* Decodes a frame to 'dst' from '*done' on, and adds its bytes to that. */
static lade_status decode_frame(decoder *d, const ZSTD_DDict *ddict, const frame *f, lade_span dst,
                                size_t *done, lade_error *err)
{
	size_t cap = dst.size - *done;
	lade_status status = dict_check(f, ddict, err);
	if (status != LADE_OK)
		return status;
	if (f->content != ZSTD_CONTENTSIZE_UNKNOWN && f->content > cap)
		return lade_fail(err, LADE_E_NOSPACE, f->off,
		                 "zstd: the frame at %llu needs %llu bytes after %zu, has %zu",
		                 (unsigned long long)f->off, (unsigned long long)f->content, *done,
		                 dst.size);
	/* A frame that names its size may use no more, so that the size it states can differ from
	 * what the destination has. */
	size_t room = f->content < cap ? (size_t)f->content : cap;
	uint8_t *to = (uint8_t *)dst.data + *done;
	size_t n = ddict ? ZSTD_decompress_usingDDict(d->dctx, to, room, f->src, f->size, ddict)
	                 : ZSTD_decompressDCtx(d->dctx, to, room, f->src, f->size);
	if (ZSTD_isError(n))
		return translate(n, f, cap, err);
	*done += n;
	return LADE_OK;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	const uint8_t *in = lade__bytes(src);
	uint8_t nothing;
	size_t done = 0;
	const ZSTD_DDict *ddict;
	frame f = {0};
	*dst_size = 0;
	dst.data = lade__room(dst, &nothing);
	lade_status status = src.size ? LADE_OK : no_frame(err);
	TRY(status);
	TRY(dict_of(run, &ddict, err));
	for (size_t off = 0; off < src.size; off += f.size) {
		TRY(frame_read(in + off, src.size - off, off, &f, err));
		if (!f.skippable)
			TRY(decode_frame(run->state, ddict, &f, dst, &done, err));
	}
	*dst_size = done;
out:
	return status;
}

static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 1500, 1.0);
}

const lade_implementation lade__zstd_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "zstd/libzstd",
	.algorithm = "zstd",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.state_new = decoder_new,
	.state_free = decoder_free,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = decode},
};
