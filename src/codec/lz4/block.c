/*
 * block.c: raw LZ4 blocks (lz4_Block_format.md of the LZ4 sources), by liblz4.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/gpu.h"
#include "codec/lz4/lz4.h"

#include <lz4.h>
#include <lz4hc.h>
#include <string.h>

static int level_of(const lade_stage *stage)
{
	return (int)stage->option[0].i;
}

/*
 * The worst block is one run of literals: a token, one more length byte for each 255 of its bytes
 * beyond 15, and the bytes: n + n/255 + 1.  A match only shortens it: it takes at most 3 bytes and
 * a length byte per 255, and stands for at least 4.  LZ4_COMPRESSBOUND adds 16 for the library's
 * wide stores.
 */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size > LZ4_MAX_INPUT_SIZE ? SIZE_MAX : size + size / 255 + 16;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)stage;
	(void)src;
	(void)size;
	(void)decoded;
	return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
	                 "lz4: a raw block does not state its decoded size");
}

double lade__lz4_encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	static const double hc[] = {0.12,  0.1,   0.085, 0.07,  0.055,
	                            0.045, 0.035, 0.02,  0.015, 0.008};
	int level = level_of(workload->stage);
	if (level < LADE__LZ4_HC_LEVEL)
		return lade__codec_cost(workload, 500, level < 0 ? 1.0 : 0.7);
	return lade__codec_cost(workload, 10000, hc[level - LADE__LZ4_HC_LEVEL]);
}

double lade__lz4_decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 50, 3.0);
}

/* LADE_BATCH_STRICT is for the library's own decoder (strict.c). */
static double decode_cost(void *ctx, const lade_workload *workload)
{
	return workload->strict ? -1 : lade__lz4_decode_cost(ctx, workload);
}

/* ---- encoding --------------------------------------------------------------------------- */

/* The contexts of a worker, made when a level first wants them. */
typedef struct encoder {
	const lade_allocator *host;
	LZ4_stream_t *fast;   /* 16 KiB */
	LZ4_streamHC_t *high; /* 256 KiB */
} encoder;

static void *encoder_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	encoder *e = lade__sized_alloc(host, sizeof *e);
	if (e)
		*e = (encoder){.host = host};
	return e;
}

static void encoder_free(void *ctx, void *state)
{
	(void)ctx;
	encoder *e = state;
	lade__sized_free(e->host, e->fast);
	lade__sized_free(e->host, e->high);
	lade__sized_free(e->host, e);
}

/* The streams with a dictionary loaded; a run begins with a copy, which is cheaper than to hash
 * the dictionary again.  Both only point at its bytes, which live as long. */
static const char fast_key, high_key;

static void *fast_prepare(lade_cspan data, int variant)
{
	(void)variant;
	LZ4_stream_t *stream = LZ4_createStream();
	lade_cspan tail = lade__lz4_tail(data);
	if (stream)
		LZ4_loadDict(stream, tail.data, (int)tail.size);
	return stream;
}

static void fast_release(void *prepared)
{
	LZ4_freeStream(prepared);
}

static void *high_prepare(lade_cspan data, int level)
{
	LZ4_streamHC_t *stream = LZ4_createStreamHC();
	lade_cspan tail = lade__lz4_tail(data);
	if (stream) {
		LZ4_resetStreamHC_fast(stream, level);
		LZ4_loadDictHC(stream, tail.data, (int)tail.size);
	}
	return stream;
}

static void high_release(void *prepared)
{
	LZ4_freeStreamHC(prepared);
}

/*
 * Bytes written; 0: does not fit; -1: out of memory.  Both spans have pointers and at most
 * INT32_MAX bytes.
 */
static int encode_fast(encoder *e, int level, const lade_dict *dict, lade_cspan src, lade_span dst)
{
	int acceleration = lade__lz4_acceleration(level);
	if (!e->fast)
		e->fast = lade__sized_alloc(e->host, sizeof *e->fast);
	if (!e->fast)
		return -1;
	if (!dict)
		return LZ4_compress_fast_extState(e->fast, src.data, dst.data, (int)src.size,
		                                  (int)dst.size, acceleration);
	const void *ready = lade_dict_prepared(dict, &fast_key, 0, fast_prepare, fast_release);
	if (!ready)
		return -1;
	memcpy(e->fast, ready, sizeof *e->fast);
	return LZ4_compress_fast_continue(e->fast, src.data, dst.data, (int)src.size, (int)dst.size,
	                                  acceleration);
}

static int encode_high(encoder *e, int level, const lade_dict *dict, lade_cspan src, lade_span dst)
{
	if (!e->high)
		e->high = lade__sized_alloc(e->host, sizeof *e->high);
	if (!e->high)
		return -1;
	if (!dict)
		return LZ4_compress_HC_extStateHC(e->high, src.data, dst.data, (int)src.size,
		                                  (int)dst.size, level);
	const void *ready = lade_dict_prepared(dict, &high_key, level, high_prepare, high_release);
	if (!ready)
		return -1;
	memcpy(e->high, ready, sizeof *e->high);
	return LZ4_compress_HC_continue(e->high, src.data, dst.data, (int)src.size, (int)dst.size);
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	encoder *e = run->state;
	int level = level_of(run->stage);
	uint8_t nothing;
	*dst_size = 0;
	if (src.size > LZ4_MAX_INPUT_SIZE)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "lz4: %zu bytes, a block holds at most %u", src.size,
		                 (unsigned)LZ4_MAX_INPUT_SIZE);
	lade_cspan in = lade_host_cspan(lade__bytes(src), src.size);
	lade_span out = lade_host_span(lade__room(dst, &nothing),
	                               dst.size < INT32_MAX ? dst.size : INT32_MAX);
	int n = (level < LADE__LZ4_HC_LEVEL ? encode_fast : encode_high)(e, level, run->dict, in,
	                                                                 out);
	if (n < 0)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "lz4: no memory for the context of level %d", level);
	if (n == 0)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "lz4: want up to %zu bytes, have %zu", bound(run->stage, src.size),
		                 dst.size);
	*dst_size = (size_t)n;
	return LADE_OK;
}

/* ---- decoding --------------------------------------------------------------------------- */

/* Reads the bytes that lengthen a length of 15; false where the block ends. */
static bool more(const uint8_t *src, size_t size, size_t *in, uint64_t *length)
{
	uint8_t byte;
	do {
		if (*in == size)
			return false;
		byte = src[(*in)++];
		*length += byte;
	} while (byte == 255);
	return true;
}

static lade_status cut(const lade__lz4_block *block, const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_TRUNCATED, block->off + block->size,
	                 "lz4: the block's %zu bytes end inside a %s", block->size, what);
}

/*
 * Walks a block's sequences (lz4_Block_format.md) without decoding them: the decoded size and
 * where the last sequence begins, or what is wrong.
 */
static lade_status walk(const lade__lz4_block *block, uint64_t *decoded, size_t *last,
                        lade_error *err)
{
	const uint8_t *src = block->src;
	size_t size = block->size, history = block->history;
	uint64_t base = block->off;
	/* Lengths grow by at most 255 for a byte of 'src', so that 'out' cannot overflow. */
	uint64_t out = 0;
	size_t in = 0;
	for (;;) {
		*last = in;
		if (in == size)
			return cut(block, "sequence", err);
		uint8_t token = src[in++];
		uint64_t literals = token >> 4, match = token & 15;
		if (literals == 15 && !more(src, size, &in, &literals))
			return cut(block, "literal length", err);
		if (literals > size - in)
			return lade_fail(err, LADE_E_TRUNCATED, base + size,
			                 "lz4: the literals at %llu need %llu bytes, %zu are left",
			                 (unsigned long long)(base + in),
			                 (unsigned long long)literals, size - in);
		in += (size_t)literals;
		out += literals;
		if (in == size)
			break;
		if (size - in < 2)
			return cut(block, "match offset", err);
		uint32_t back = lade__le16(src + in);
		if (back == 0 || back > out + history)
			return lade_fail(
				err, LADE_E_CORRUPT, base + in,
				"lz4: the match at %llu has offset %u, the output has %llu",
				(unsigned long long)(base + in), back,
				(unsigned long long)(out + history));
		in += 2;
		if (match == 15 && !more(src, size, &in, &match))
			return cut(block, "match length", err);
		out += match + 4;
	}
	*decoded = out;
	return LADE_OK;
}

lade_status lade__lz4_diagnose(const lade__lz4_block *block, size_t cap, size_t done,
                               lade_error *err)
{
	uint64_t out = 0;
	size_t last = 0;
	lade_status status = walk(block, &out, &last, err);
	if (status != LADE_OK)
		return status;
	if (out > cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "lz4: want %llu bytes, have %zu", (unsigned long long)(done + out),
		                 done + cap);
	uint64_t at = block->off + last;
	return lade_fail(err, LADE_E_CORRUPT, at,
	                 "lz4: the sequence at %llu breaks the rules for the end of a block",
	                 (unsigned long long)at);
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint8_t nothing;
	*dst_size = 0;
	if (src.size > INT32_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "lz4: a block of %zu bytes, the largest has %d", src.size,
		                 INT32_MAX);
	int cap = dst.size > INT32_MAX ? INT32_MAX : (int)dst.size;
	char *out = (char *)lade__room(dst, &nothing);
	const char *in = (const char *)lade__bytes(src);
	lade_cspan dict = {0};
	int n;
	if (!run->dict) {
		n = LZ4_decompress_safe(in, out, (int)src.size, cap);
	} else {
		dict = lade__lz4_tail(lade_dict_data(run->dict));
		n = LZ4_decompress_safe_usingDict(in, out, (int)src.size, cap, dict.data,
		                                  (int)dict.size);
	}
	if (n < 0) {
		lade__lz4_block block = {(const uint8_t *)in, src.size, dict.size, 0};
		return lade__lz4_diagnose(&block, (size_t)cap, 0, err);
	}
	*dst_size = (size_t)n;
	return LADE_OK;
}

/*
 * Decodes the block up to the range's end and no further; what is behind it is not read.
 * A range that does not begin at 0 is decoded into scratch memory first.
 */
static lade_status decode_range(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
                                lade_error *err)
{
	/* A byte of a block gives at most 255 bytes, so that no range ends past this. */
	uint64_t limit = src.size > INT32_MAX / 255 ? INT32_MAX : (uint64_t)src.size * 255;
	if (off > limit || dst.size > limit - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "lz4: the range %llu + %zu exceeds what %zu bytes can decode to",
		                 (unsigned long long)off, dst.size, src.size);
	if (dst.size == 0)
		return LADE_OK;
	size_t want = (size_t)off + dst.size;
	char *out = off ? lade_worker_scratch(run->worker, 0, want) : dst.data;
	if (!out)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "lz4: no memory for %zu bytes of scratch", want);
	const char *in = (const char *)lade__bytes(src);
	lade_cspan dict = {0};
	int n;
	if (!run->dict) {
		n = LZ4_decompress_safe_partial(in, out, (int)src.size, (int)want, (int)want);
	} else {
		dict = lade__lz4_tail(lade_dict_data(run->dict));
		n = LZ4_decompress_safe_partial_usingDict(in, out, (int)src.size, (int)want,
		                                          (int)want, dict.data, (int)dict.size);
	}
	lade__lz4_block block = {(const uint8_t *)in, src.size, dict.size, 0};
	if (n < 0)
		return lade__lz4_diagnose(&block, INT32_MAX, 0, err);
	if ((size_t)n < want) {
		uint64_t all = 0;
		size_t last = 0;
		lade_status status = walk(&block, &all, &last, err);
		if (status != LADE_OK)
			return status;
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "lz4: the range %llu + %zu exceeds the size %llu",
		                 (unsigned long long)off, dst.size, (unsigned long long)all);
	}
	if (off)
		memcpy(dst.data, out + off, dst.size);
	return LADE_OK;
}

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
	LADE__ELEM_OPTION,
};

static const char *const suggest[] = {"lz4", "lz4(level=9)", NULL};

const lade_algorithm lade__lz4 = {
	.struct_size = sizeof(lade_algorithm),
	.name = "lz4",
	.id = 2,
	.kind = LADE_STAGE_CODEC,
	.options = options,
	.option_count = 2,
	.check = lade__elem_check,
	.doc = "a raw LZ4 block; lz4_Block_format.md of lz4/lz4",
	.bound = bound,
	.decoded_size = decoded_size,
	.header_size = 1, /* it reads none */
	.ratio_max = 255,
	.size_field = 4,
	.suggest = suggest,
};

const lade_implementation lade__lz4_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "lz4/liblz4",
	.algorithm = "lz4",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = lade__lz4_encode_cost,
	.state_new = encoder_new,
	.state_free = encoder_free,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};

const lade_implementation lade__lz4_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "lz4/liblz4",
	.algorithm = "lz4",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = decode_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops),
	                                 .run = decode,
	                                 .run_range = decode_range},
};
