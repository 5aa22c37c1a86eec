/*
 * frame_encode.c: LZ4 frames by liblz4's frame functions, and the codec's description.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz4/frame.h"

/* Contexts with an allocator of ours and dictionaries: functions that lz4frame.h keeps apart, but
 * that the shared library exports. */
#define LZ4F_STATIC_LINKING_ONLY
#include <lz4frame.h>
#include <string.h>

/* The options of a stage, by index. */
enum {
	LEVEL = 0,
	CHECKSUM = 1,
	BLOCK_CHECKSUM = 2,
	BLOCK_SIZE = 3,
	LINKED = 4,
	CONTENT_SIZE = 5,
};

static const char *const block_sizes[] = {"64k", "256k", "1m", "4m", NULL};

static LZ4F_preferences_t preferences_of(const lade_stage *stage, size_t size)
{
	LZ4F_preferences_t p = LZ4F_INIT_PREFERENCES;
	p.compressionLevel = (int)stage->option[LEVEL].i;
	p.frameInfo.contentChecksumFlag = (LZ4F_contentChecksum_t)stage->option[CHECKSUM].i;
	p.frameInfo.blockChecksumFlag = (LZ4F_blockChecksum_t)stage->option[BLOCK_CHECKSUM].i;
	p.frameInfo.blockSizeID = (LZ4F_blockSizeID_t)(LZ4F_max64KB + stage->option[BLOCK_SIZE].i);
	p.frameInfo.blockMode = stage->option[LINKED].i ? LZ4F_blockLinked : LZ4F_blockIndependent;
	/* 0 means "not stored"; an empty content therefore never has its size. */
	p.frameInfo.contentSize = stage->option[CONTENT_SIZE].i ? size : 0;
	return p;
}

/*
 * A block that does not shrink is stored raw, so that a frame is at most: the header (19), 4 bytes
 * and perhaps 4 of checksum a block, the content, the end mark (4) and perhaps a checksum (4);
 * which is what LZ4F_compressFrameBound() adds up.  The library takes a smaller block size for
 * content that fits in one such block, which does not make more blocks.  It counts blocks in 32
 * bits.
 */
static size_t bound(const lade_stage *stage, size_t size)
{
	if (size / (64 * 1024) >= UINT32_MAX)
		return SIZE_MAX;
	LZ4F_preferences_t p = preferences_of(stage, size);
	return LZ4F_compressFrameBound(size, &p);
}

/* In the order of the enum. */
static const lade_option options[] = {
	{
		.name = "level",
		.type = LADE_OPTION_INT,
		.always = true,
		.fallback = {.i = 1},
		.min = LADE__LZ4_LEVEL_MIN,
		.max = LADE__LZ4_LEVEL_MAX,
		.doc = "1 fast, 3 to 12 HC, -1 and below faster and larger",
	},
	{
		.name = "checksum",
		.type = LADE_OPTION_BOOL,
		.doc = "XXH32 of the content behind the frame",
	},
	{
		.name = "block_checksum",
		.type = LADE_OPTION_BOOL,
		.doc = "XXH32 behind each block",
	},
	{
		.name = "block_size",
		.type = LADE_OPTION_ENUM,
		.fallback = {.i = 3},
		.names = block_sizes,
		.doc = "decoded bytes a block, at most",
	},
	{
		.name = "linked",
		.type = LADE_OPTION_BOOL,
		.doc = "blocks refer to earlier ones: smaller",
	},
	{
		.name = "content_size",
		.type = LADE_OPTION_BOOL,
		.fallback = {.i = 1},
		.doc = "stores the decoded size",
	},
};

const lade_algorithm lade__lz4f = {
	.struct_size = sizeof(lade_algorithm),
	.name = "lz4f",
	.id = 9,
	.kind = LADE_STAGE_CODEC,
	.options = options,
	.option_count = sizeof options / sizeof options[0],
	.doc = "LZ4 frames; lz4_Frame_format.md of lz4/lz4",
	.bound = bound,
	.decoded_size = lade__lz4f_decoded_size,
	.ratio_max = 255,
};

/* ---- the encoder ------------------------------------------------------------------------ */

typedef struct encoder {
	const lade_allocator *host;
	LZ4F_cctx *cctx;
} encoder;

static void *lz4f_alloc(void *opaque, size_t size)
{
	return lade__sized_alloc(opaque, size);
}

static void lz4f_free(void *opaque, void *ptr)
{
	lade__sized_free(opaque, ptr);
}

static void *encoder_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	encoder *e = lade__sized_alloc(host, sizeof *e);
	if (!e)
		return NULL;
	/* lz4 only hands the pointer back to the functions. */
	LZ4F_CustomMem memory = {lz4f_alloc, NULL, lz4f_free, (void *)(uintptr_t)host};
	*e = (encoder){host, LZ4F_createCompressionContext_advanced(memory, LZ4F_VERSION)};
	if (!e->cctx) {
		lade__sized_free(host, e);
		return NULL;
	}
	return e;
}

static void encoder_free(void *ctx, void *state)
{
	(void)ctx;
	encoder *e = state;
	LZ4F_freeCompressionContext(e->cctx);
	lade__sized_free(e->host, e);
}

static const char cdict_key;

static void *cdict_prepare(lade_cspan data, int variant)
{
	(void)variant;
	return LZ4F_createCDict(data.data, data.size);
}

static void cdict_release(void *prepared)
{
	LZ4F_freeCDict(prepared);
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	encoder *e = run->state;
	LZ4F_preferences_t p = preferences_of(run->stage, src.size);
	const LZ4F_CDict *cdict = NULL;
	*dst_size = 0;
	size_t want = bound(run->stage, src.size);
	if (want == SIZE_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "lz4f: %zu bytes are more than a frame holds", src.size);
	if (run->dict)
		cdict = lade_dict_prepared(run->dict, &cdict_key, 0, cdict_prepare, cdict_release);
	if (run->dict && !cdict)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "lz4f: no memory for the dictionary");
	/* The library wants room for the worst case; with less, the result is made aside. */
	void *out = dst.data;
	size_t cap = dst.size;
	if (cap < want) {
		out = lade_worker_scratch(run->worker, 0, want);
		cap = want;
		if (!out)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "lz4f: no memory for %zu bytes of scratch", want);
	}
	size_t n = LZ4F_compressFrame_usingCDict(e->cctx, out, cap, lade__bytes(src), src.size,
	                                         cdict, &p);
	if (LZ4F_isError(n)) {
		bool memory = LZ4F_getErrorCode(n) == LZ4F_ERROR_allocation_failed;
		return lade_fail(err, memory ? LADE_E_NOMEM : LADE_E_INTERNAL, LADE_NO_OFFSET,
		                 "lz4f: liblz4 says '%s'", LZ4F_getErrorName(n));
	}
	if (n > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "lz4f: want %zu bytes, have %zu", n, dst.size);
	if (out != dst.data)
		memcpy(dst.data, out, n);
	*dst_size = n;
	return LADE_OK;
}

const lade_implementation lade__lz4f_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "lz4f/liblz4",
	.algorithm = "lz4f",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = lade__lz4_encode_cost,
	.state_new = encoder_new,
	.state_free = encoder_free,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};
