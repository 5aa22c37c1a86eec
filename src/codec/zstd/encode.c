/*
 * encode.c: Zstandard frames (RFC 8878) by libzstd, and the codec's description.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/zstd/zstd.h"

/* ---- the algorithm ---------------------------------------------------------------------- */

/*
 * libzstd promises that ZSTD_compressBound() bytes suffice for one frame: n + n/256, and up to 64
 * more below 128 KiB.  What is stored raw costs 3 bytes a block (RFC 8878, 3.1.1.2), and blocks are
 * as long as the window, at least 1 KiB, or 128 KiB: at most 3n/1024 + 3 of the n/256 = 4n/1024.
 * The frame's header (at most 18 bytes, 3.1.1.1) and the checksum (4) fit in the rest: n/1024 - 3,
 * and for n below 128 KiB 64 - n/2048 more, is at least 61.
 */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	if (size > SIZE_MAX / 2)
		return SIZE_MAX;
	size_t want = ZSTD_compressBound(size);
	return ZSTD_isError(want) || want == 0 ? SIZE_MAX : want;
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	int64_t log = stage->option[LADE__ZSTD_WINDOW_LOG].i;
	if (log != 0 && log < 10)
		return lade_fail(err, LADE_E_SPEC, LADE_NO_OFFSET,
		                 "zstd: window_log %lld is neither 0 nor from 10 to 27",
		                 (long long)log);
	return LADE_OK;
}

/* In the order of the enum. */
static const lade_option options[] = {
	{
		.name = "level",
		.type = LADE_OPTION_INT,
		.always = true,
		.fallback = {.i = 3},
		.min = -131072,
		.max = 22,
		.doc = "1 fast to 22 small; below 0 faster and larger",
	},
	{
		.name = "checksum",
		.type = LADE_OPTION_BOOL,
		.doc = "XXH64 of the content behind each frame",
	},
	{
		.name = "window_log",
		.type = LADE_OPTION_INT,
		.max = 27,
		.doc = "log2 of the window in bytes, 10 to 27; 0: the level's own",
	},
	{
		.name = "long",
		.type = LADE_OPTION_BOOL,
		.doc = "looks for matches far back",
	},
};

static const char *const suggest[] = {"zstd(level=1)", "zstd(level=3)", "zstd(level=9)", NULL};

const lade_algorithm lade__zstd = {
	.struct_size = sizeof(lade_algorithm),
	.name = "zstd",
	.id = 4,
	.kind = LADE_STAGE_CODEC,
	.options = options,
	.option_count = sizeof options / sizeof options[0],
	.doc = "Zstandard frames; RFC 8878",
	.check = check,
	.bound = bound,
	.decoded_size = lade__zstd_decoded_size,
	.ratio_max = 32768, /* 4 bytes of a block give 128 KiB */
	.suggest = suggest,
};

static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	static const double rates[] = {0.45,  0.4,   0.3,   0.2,   0.15,   0.1,   0.08,  0.07,
	                               0.06,  0.05,  0.04,  0.03,  0.025,  0.018, 0.014, 0.01,
	                               0.008, 0.006, 0.004, 0.003, 0.0025, 0.002};
	int64_t level = workload->stage->option[LADE__ZSTD_LEVEL].i;
	double rate = level < 0 ? 0.7 : level == 0 ? rates[2] : rates[level - 1];
	return lade__codec_cost(workload, level < 3 ? 3000 : 8000, rate);
}

/* ---- the encoder ------------------------------------------------------------------------ */

static void *zstd_alloc(void *opaque, size_t size)
{
	return lade__sized_alloc(opaque, size);
}

static void zstd_free(void *opaque, void *ptr)
{
	lade__sized_free(opaque, ptr);
}

ZSTD_customMem lade__zstd_memory(const lade_allocator *host)
{
	/* zstd only hands the pointer back to the two functions. */
	return (ZSTD_customMem){zstd_alloc, zstd_free, (void *)(uintptr_t)host};
}

/* A context and the options that it was last set to. */
typedef struct encoder {
	const lade_allocator *host;
	ZSTD_CCtx *cctx;
	bool set; /* the context has the options below */
	int64_t level, checksum, window_log, far;
	bool has_dict; /* the context refers to some dictionary */
} encoder;

static void *encoder_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	encoder *e = lade__sized_alloc(host, sizeof *e);
	if (!e)
		return NULL;
	*e = (encoder){.host = host, .cctx = ZSTD_createCCtx_advanced(lade__zstd_memory(host))};
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
	ZSTD_freeCCtx(e->cctx);
	lade__sized_free(e->host, e);
}

/* Sets the context to a stage's options; cheap where it has them. */
static size_t encoder_set(encoder *e, const lade_stage *stage)
{
	int64_t level = stage->option[LADE__ZSTD_LEVEL].i;
	int64_t checksum = stage->option[LADE__ZSTD_CHECKSUM].i;
	int64_t window_log = stage->option[LADE__ZSTD_WINDOW_LOG].i;
	int64_t far = stage->option[LADE__ZSTD_LONG].i;
	if (e->set && e->level == level && e->checksum == checksum && e->window_log == window_log &&
	    e->far == far)
		return 0;
	e->set = false;
	e->has_dict = false;
	size_t result = ZSTD_CCtx_reset(e->cctx, ZSTD_reset_session_and_parameters);
	const struct {
		ZSTD_cParameter parameter;
		int64_t value;
	} wanted[] = {
		{ZSTD_c_compressionLevel, level},
		{ZSTD_c_checksumFlag, checksum},
		{ZSTD_c_windowLog, window_log},
		/* 0 is "as the level likes", which turns it on at high ones. */
		{ZSTD_c_enableLongDistanceMatching, far},
	};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && !ZSTD_isError(result); i++)
		result = ZSTD_CCtx_setParameter(e->cctx, wanted[i].parameter, (int)wanted[i].value);
	if (ZSTD_isError(result))
		return result;
	e->set = true;
	e->level = level;
	e->checksum = checksum;
	e->window_log = window_log;
	e->far = far;
	return 0;
}

static const char cdict_key;

static void *cdict_prepare(lade_cspan data, int level)
{
	return ZSTD_createCDict(data.data, data.size, level);
}

static void cdict_release(void *prepared)
{
	ZSTD_freeCDict(prepared);
}

static lade_status encoder_dict(encoder *e, const lade_run *run, lade_error *err)
{
	const ZSTD_CDict *cdict = lade_dict_prepared(run->dict, &cdict_key, (int)e->level,
	                                             cdict_prepare, cdict_release);
	if (!cdict) {
		lade_cspan data = lade_dict_data(run->dict);
		bool formatted = data.size >= 4 && lade__le32(data.data) == ZSTD_MAGIC_DICTIONARY;
		return lade_fail(err, formatted ? LADE_E_DICT : LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "zstd: the dictionary of %zu bytes cannot be prepared%s",
		                 data.size,
		                 formatted ? ": its tables are damaged, or memory is short" : "");
	}
	/* Referred to anew for each chunk: an address may have become another dictionary's. */
	e->has_dict = true;
	ZSTD_CCtx_refCDict(e->cctx, cdict);
	return LADE_OK;
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	encoder *e = run->state;
	uint8_t nothing;
	*dst_size = 0;
	size_t n = encoder_set(e, run->stage);
	if (!ZSTD_isError(n)) {
		if (run->dict) {
			lade_status status = encoder_dict(e, run, err);
			if (status != LADE_OK)
				return status;
		} else if (e->has_dict) {
			e->has_dict = false;
			ZSTD_CCtx_refCDict(e->cctx, NULL);
		}
		n = ZSTD_compress2(e->cctx, lade__room(dst, &nothing), dst.size, lade__bytes(src),
		                   src.size);
	}
	if (!ZSTD_isError(n)) {
		*dst_size = n;
		return LADE_OK;
	}
	/* The session is in pieces: the next chunk sets the context up again. */
	e->set = false;
	switch (ZSTD_getErrorCode(n)) {
	case ZSTD_error_dstSize_tooSmall:
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "zstd: want up to %zu bytes, have %zu",
		                 bound(run->stage, src.size), dst.size);
	case ZSTD_error_memory_allocation:
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "zstd: no memory for the context of level %lld",
		                 (long long)run->stage->option[LADE__ZSTD_LEVEL].i);
	case ZSTD_error_srcSize_wrong:
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "zstd: %zu bytes are more than a frame holds", src.size);
	default:
		return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET, "zstd: libzstd says '%s'",
		                 ZSTD_getErrorName(n));
	}
}

const lade_implementation lade__zstd_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "zstd/libzstd",
	.algorithm = "zstd",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.state_new = encoder_new,
	.state_free = encoder_free,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};
