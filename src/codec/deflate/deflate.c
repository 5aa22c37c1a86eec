/*
 * deflate.c: raw Deflate streams (RFC 1951) by libdeflate, and what zlib and gzip share with them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/deflate/deflate.h"

/* ---- contexts --------------------------------------------------------------------------- */

void *lade__deflater_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	lade__deflater *state = lade__sized_alloc(host, sizeof *state);
	if (state)
		*state = (lade__deflater){.host = host};
	return state;
}

void lade__deflater_free(void *ctx, void *opaque)
{
	(void)ctx;
	lade__deflater *state = opaque;
	for (int i = 0; i <= LADE__DEFLATE_LEVEL_MAX; i++)
		libdeflate_free_compressor(state->level[i]);
	if (state->z_ready)
		deflateEnd(&state->z);
	lade__sized_free(state->host, state);
}

/* libdeflate takes its memory from malloc(): it has one allocator for the whole process, which
 * is not ours to replace. */
void *lade__inflater_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	lade__inflater *state = lade__sized_alloc(host, sizeof *state);
	if (!state)
		return NULL;
	*state = (lade__inflater){.host = host, .d = libdeflate_alloc_decompressor()};
	if (!state->d) {
		lade__sized_free(host, state);
		return NULL;
	}
	return state;
}

void *lade__inflater_strict_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	lade__inflater *state = lade__sized_alloc(host, sizeof *state);
	if (state)
		*state = (lade__inflater){.host = host};
	return state;
}

void lade__inflater_free(void *ctx, void *opaque)
{
	(void)ctx;
	lade__inflater *state = opaque;
	libdeflate_free_decompressor(state->d);
	if (state->z_ready)
		inflateEnd(&state->z);
	lade__sized_free(state->host, state);
}

struct libdeflate_compressor *lade__deflater_level(lade__deflater *state, int level)
{
	if (!state->level[level])
		state->level[level] = libdeflate_alloc_compressor(level);
	return state->level[level];
}

/* ---- shared parts of the three formats -------------------------------------------------- */

const lade_option lade__deflate_options[1] = {
	{
		.name = "level",
		.type = LADE_OPTION_INT,
		.always = true,
		.fallback = {.i = 6},
		.min = 0,
		.max = LADE__DEFLATE_LEVEL_MAX,
		.doc = "0 stored, 1 fast to 12 small",
	},
};

/*
 * libdeflate promises libdeflate_deflate_compress_bound() for any level: in stored blocks (RFC
 * 1951, 3.2.4) each of its blocks costs 5 bytes more than it holds, and the last few bytes of the
 * room are slack for wide stores.  zlib, which writes the streams with a dictionary, promises
 * (deflateBound(), default memory level) n + n/2^12 + n/2^14 + n/2^25 + 7.  The larger of two
 * non-decreasing bounds is one for both.
 */
size_t lade__deflate_bound(size_t size, size_t extra)
{
	if (size > SIZE_MAX / 2)
		return SIZE_MAX;
	size_t a = libdeflate_deflate_compress_bound(NULL, size);
	size_t b = size + (size >> 12) + (size >> 14) + (size >> 25) + 7;
	return (a > b ? a : b) + extra;
}

double lade__deflate_encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	static const double rates[] = {5.0,  0.25, 0.2,  0.18, 0.16,  0.13, 0.11,
	                               0.08, 0.05, 0.03, 0.02, 0.012, 0.008};
	return lade__codec_cost(workload, 3000, rates[lade__deflate_level(workload->stage)]);
}

double lade__deflate_decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->strict
	               ? -1
	               : lade__codec_cost(workload, 1000, workload->has_dict ? 0.35 : 0.8);
}

double lade__deflate_strict_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->strict ? lade__codec_cost(workload, 1000, 0.35) : -1;
}

lade_status lade__deflate_unknown_size(const lade_stage *stage, const void *src, size_t size,
                                       uint64_t *decoded, lade_error *err)
{
	(void)src;
	(void)size;
	(void)decoded;
	return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
	                 "%s: the format does not store the decoded size", stage->algorithm->name);
}

lade_status lade__deflate_nospace(const lade_run *run, size_t want, size_t have, lade_error *err)
{
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET, "%s: want up to %zu bytes, have %zu",
	                 run->stage->algorithm->name, want, have);
}

lade_status lade__deflate_nomem(const lade_run *run, lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                 "%s: no memory for the context of level %d", run->stage->algorithm->name,
	                 lade__deflate_level(run->stage));
}

lade_status lade__inflate(const lade_run *run, lade__deflated *s, lade_error *err)
{
	lade__inflater *state = run->state;
	const char *name = run->stage->algorithm->name;
	if (s->dict || !state->d)
		return lade__inflate_by_zlib(state, name, s, err);
	enum libdeflate_result result = libdeflate_deflate_decompress_ex(
		state->d, s->src, s->size, s->dst, s->cap, &s->used, &s->written);
	if (result == LIBDEFLATE_SUCCESS)
		return LADE_OK;
	return lade__inflate_diagnose(state, name, s, result == LIBDEFLATE_INSUFFICIENT_SPACE, err);
}

/* ---- raw streams ------------------------------------------------------------------------ */

static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return lade__deflate_bound(size, 0);
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint8_t nothing;
	*dst_size = 0;
	if (run->dict)
		return lade__deflate_with_dict(run, -15, src, dst, dst_size, err);
	struct libdeflate_compressor *c =
		lade__deflater_level(run->state, lade__deflate_level(run->stage));
	if (!c)
		return lade__deflate_nomem(run, err);
	*dst_size = libdeflate_deflate_compress(c, lade__bytes(src), src.size,
	                                        lade__room(dst, &nothing), dst.size);
	if (*dst_size == 0)
		return lade__deflate_nospace(run, bound(run->stage, src.size), dst.size, err);
	return LADE_OK;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint8_t nothing;
	lade__deflated s = {.src = lade__bytes(src), .size = src.size, .dict = run->dict,
	                    .dst = lade__room(dst, &nothing), .cap = dst.size};
	*dst_size = 0;
	lade_status status = lade__inflate(run, &s, err);
	if (status != LADE_OK)
		return status;
	if (s.used < src.size)
		return lade_fail(err, LADE_E_CORRUPT, s.used,
		                 "deflate: the stream ends at %zu, the data at %zu", s.used,
		                 src.size);
	*dst_size = s.written;
	return LADE_OK;
}

static const char *const suggest[] = {"deflate(level=6)", NULL};

const lade_algorithm lade__deflate = {
	.struct_size = sizeof(lade_algorithm),
	.name = "deflate",
	.id = 5,
	.kind = LADE_STAGE_CODEC,
	.options = lade__deflate_options,
	.option_count = 1,
	.doc = "a raw Deflate stream; RFC 1951",
	.bound = bound,
	.decoded_size = lade__deflate_unknown_size,
	.header_size = 1, /* it reads none */
	.ratio_max = 1032,
	.suggest = suggest,
};

LADE__DEFLATE_IMPLEMENTATIONS(deflate)
