/*
 * blocks.c: the encoder of Blosc1 containers of LZ4 and Zstandard streams: c-blosc's blocks and,
 * but for noise, the same bytes, by the shuffles of this library and with contexts that are kept.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/blosc.h"
#include "codec/zstd/zstd.h"
#include "filter/shuffle.h"

#include <lz4.h>
#include <string.h>

enum { SCRATCH_SHUFFLED = 0 };

/* ---- what a worker keeps ------------------------------------------------------------------ */

typedef struct blosc_state {
	const lade_allocator *host;
	LZ4_stream_t lz4;
	ZSTD_CCtx *zstd; /* made when a container first asks for it */
} blosc_state;

void *lade__blosc_blocks_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	blosc_state *state = lade__sized_alloc(host, sizeof *state);
	if (state) {
		state->host = host;
		state->zstd = NULL;
		LZ4_initStream(&state->lz4, sizeof state->lz4);
	}
	return state;
}

void lade__blosc_blocks_free(void *ctx, void *opaque)
{
	(void)ctx;
	blosc_state *state = opaque;
	if (!state)
		return;
	ZSTD_freeCCtx(state->zstd);
	lade__sized_free(state->host, state);
}

/* ---- the plan ----------------------------------------------------------------------------- */

/* What c-blosc 1.21 chooses, by level. */
static const uint16_t lz4_kib[10] = {0, 16, 32, 64, 128, 128, 256, 256, 256, 256};
static const uint16_t zstd_kib[10] = {0, 32, 64, 128, 256, 256, 512, 512, 512, 1024};

/* Smaller sources are one block. */
#define BLOCKS_FROM ((size_t)32 << 10)

/* Of blocks that are split. */
enum { SPLIT_LEAST = 64 << 10, SPLIT_MOST = 1024 << 10 };

typedef struct plan {
	lade__blosc_codec codec;
	int level;
	size_t typesize, blocksize, streams;
	uint8_t flags;
} plan;

static plan plan_of(const lade_value *option, bool zstd, size_t size)
{
	int level = (int)option[BLOSC_OPTION_LEVEL].i;
	int64_t shuffle = option[BLOSC_OPTION_SHUFFLE].i;
	plan p = {.codec = zstd ? BLOSC_ZSTD_STREAMS : BLOSC_LZ4_STREAMS,
	          .level = level,
	          .typesize = (size_t)option[BLOSC_OPTION_TYPESIZE].i,
	          .streams = 1};
	bool may_split = !zstd && p.typesize <= BLOSC_STREAMS_MAX;
	size_t block = (size_t)(zstd ? zstd_kib : lz4_kib)[level] << 10;
	if (may_split) {
		block *= p.typesize;
		block = block < SPLIT_LEAST ? SPLIT_LEAST : block > SPLIT_MOST ? SPLIT_MOST : block;
	}
	if (block > size || size < BLOCKS_FROM)
		block = size;
	if (block > p.typesize)
		block -= block % p.typesize;
	p.blocksize = block;
	p.flags = (uint8_t)((unsigned)p.codec << BLOSC_CODEC_SHIFT);
	p.flags |= shuffle == 1 ? BLOSC_FLAG_SHUFFLE : shuffle == 2 ? BLOSC_FLAG_BITSHUFFLE : 0;
	if (may_split && block / p.typesize >= BLOSC_STREAM_MIN)
		p.streams = p.typesize;
	else
		p.flags |= BLOSC_FLAG_UNSPLIT;
	return p;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/*
 * Whether a stream has much noise: of 32 pieces, six or more whose first 256 bytes have 140
 * values or more.  Of random bytes 162 are expected.
 */
static bool noisy(const uint8_t *src, size_t size)
{
	size_t pieces = 0, step = size / 32;
	for (size_t i = 0; i < 32 && step >= 256; i++) {
		uint64_t seen[4] = {0};
		for (size_t k = i * step; k < i * step + 256; k++)
			seen[src[k] >> 6] |= UINT64_C(1) << (src[k] & 63);
		int values = 0;
		for (size_t k = 0; k < 4; k++)
			values += __builtin_popcountll(seen[k]);
		pieces += values >= 140;
	}
	return pieces >= 6;
}

/*
 * libzstd's level of a stream, as c-blosc chooses it.  But levels 5 to 9 search long in noise,
 * which shuffled bits have much of: level 1 takes a fifth of the time there and gives at most 3 %
 * more bytes (docs/performance/log/blosc-zstd.md).
 */
static int zstd_level(const plan *p, lade_cspan src)
{
	bool middle = p->level >= 3 && p->level <= 5 && (p->flags & BLOSC_FLAG_BITSHUFFLE);
	return middle && noisy(src.data, src.size) ? 1
	       : p->level < 9                      ? 2 * p->level - 1
	                                           : ZSTD_maxCLevel();
}

/* Encodes one stream into 'dst'; '*got' is 0 where it does not fit. */
static lade_status encode_stream(blosc_state *state, const plan *p, lade_cspan src, lade_span dst,
                                 size_t *got, lade_error *err)
{
	*got = 0;
	if (p->codec == BLOSC_LZ4_STREAMS) {
		int n = LZ4_compress_fast_extState(&state->lz4, src.data, dst.data, (int)src.size,
		                                   (int)dst.size, 10 - p->level);
		*got = n > 0 ? (size_t)n : 0;
		return LADE_OK;
	}
	if (!state->zstd)
		state->zstd = ZSTD_createCCtx_advanced(lade__zstd_memory(state->host));
	if (!state->zstd)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "blosc: no memory for a zstd context");
	size_t n = ZSTD_compressCCtx(state->zstd, dst.data, dst.size, src.data, src.size,
	                             zstd_level(p, src));
	*got = ZSTD_isError(n) ? 0 : n;
	return LADE_OK;
}

/* A block as it is encoded: shuffled in scratch memory, or where it is. */
static lade_status shuffled(const lade_run *run, const plan *p, const uint8_t *src, size_t size,
                            const uint8_t **out, lade_error *err)
{
	size_t elements = size / p->typesize;
	bool bytes = (p->flags & BLOSC_FLAG_SHUFFLE) && p->typesize > 1 && elements > 0;
	/* Blosc1 leaves a block alone whose number of elements is no multiple of 8. */
	bool bits = (p->flags & BLOSC_FLAG_BITSHUFFLE) && elements > 0 && elements % 8 == 0;
	*out = src;
	if (!bytes && !bits)
		return LADE_OK;
	uint8_t *to = lade_worker_scratch(run->worker, SCRATCH_SHUFFLED, size);
	if (!to)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "blosc: no memory for a block");
	(bytes ? lade__shuffle : lade__bitshuffle)(p->typesize, size, src, to, run->cpu);
	*out = to;
	return LADE_OK;
}

/* The container as far as it is written. */
typedef struct output {
	uint8_t *dst;
	size_t cap, at;
	bool fits; /* false: 'cap' bytes do not hold the block that was written last */
} output;

/* Writes one block. */
static lade_status encode_block(const lade_run *run, const plan *p, lade_cspan src, output *out,
                                lade_error *err)
{
	const uint8_t *from;
	size_t streams = src.size == p->blocksize ? p->streams : 1, each = src.size / streams;
	lade_status status = shuffled(run, p, src.data, src.size, &from, err);
	for (size_t s = 0; s < streams && status == LADE_OK; s++, from += each) {
		size_t got, room = out->cap - out->at;
		out->fits = room > 4;
		if (!out->fits)
			break;
		room -= 4;
		uint8_t *to = out->dst + out->at + 4;
		status = encode_stream(run->state, p, lade_host_cspan(from, each),
		                       lade_host_span(to, room < each ? room : each), &got, err);
		if (status != LADE_OK)
			break;
		if (got == 0 || got == each) {
			out->fits = room >= each;
			if (!out->fits)
				break;
			memcpy(to, from, each);
			got = each;
		}
		lade__le_put(out->dst + out->at, got, 4);
		out->at += 4 + got;
	}
	return status;
}

static void put_header(const plan *p, uint8_t flags, size_t nbytes, size_t cbytes, uint8_t *dst)
{
	dst[0] = BLOSC_VERSION;
	dst[1] = BLOSC_CODEC_VERSION;
	dst[2] = flags;
	dst[3] = (uint8_t)p->typesize;
	lade__le_put(dst + 4, nbytes, 4);
	lade__le_put(dst + 8, p->blocksize, 4);
	lade__le_put(dst + 12, cbytes, 4);
}

lade_status lade__blosc_blocks(const lade_run *run, bool zstd, lade_cspan src, lade_span dst,
                               size_t *dst_size, lade_error *err)
{
	plan p = plan_of(run->stage->option, zstd, src.size);
	const uint8_t *from = src.data;
	uint8_t *to = dst.data;
	size_t count = (src.size + p.blocksize - 1) / p.blocksize;
	size_t stored = BLOSC_HEADER_SIZE + src.size;
	output out = {.dst = to,
	              .cap = stored < dst.size ? stored : dst.size,
	              .at = BLOSC_HEADER_SIZE + 4 * count};
	out.fits = out.at <= out.cap;
	for (size_t b = 0; b < count && out.fits; b++) {
		size_t off = b * p.blocksize, left = src.size - off;
		lade__le_put(to + BLOSC_HEADER_SIZE + 4 * b, out.at, 4);
		lade_cspan block =
			lade_host_cspan(from + off, left < p.blocksize ? left : p.blocksize);
		lade_status status = encode_block(run, &p, block, &out, err);
		if (status != LADE_OK)
			return status;
	}
	if (out.fits) {
		put_header(&p, p.flags, src.size, out.at, to);
		*dst_size = out.at;
		return LADE_OK;
	}
	if (stored > out.cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "blosc: %zu bytes do not fit into %zu", src.size, dst.size);
	put_header(&p, p.flags | BLOSC_FLAG_STORED, src.size, stored, to);
	memcpy(to + BLOSC_HEADER_SIZE, from, src.size);
	*dst_size = stored;
	return LADE_OK;
}
