/*
 * decode.c: the Blosc1 decoder: blocks, each of one or more streams, each decoded by its library.
 *
 * A block is decoded straight into the destination, or, where it is shuffled, into scratch memory
 * and from there unshuffled into the destination.  Blocks do not depend on one another: a range
 * decodes those that it touches, and several threads share a container.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/blosc.h"
#include "codec/zstd/zstd.h"
#include "filter/shuffle.h"

#include <libdeflate.h>
#include <lz4.h>
#include <snappy-c.h>
#include <string.h>

/* Scratch slots of the worker. */
enum { SCRATCH_SHUFFLED = 0, SCRATCH_RANGE = 1 };

/* Blocks are handed out to threads in parts of about this size; stored bytes in larger ones. */
#define PART_SIZE ((size_t)128 * 1024)
#define STORED_PART_SIZE ((size_t)1024 * 1024)

/* ---- what a worker keeps ------------------------------------------------------------------ */

/* Contexts are made when a container first asks for them. */
typedef struct blosc_state {
	const lade_allocator *host;
	ZSTD_DCtx *zstd;
	struct libdeflate_decompressor *deflate;
} blosc_state;

static void *state_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	blosc_state *state = lade__sized_alloc(host, sizeof *state);
	if (state)
		*state = (blosc_state){.host = host};
	return state;
}

static void state_free(void *ctx, void *opaque)
{
	(void)ctx;
	blosc_state *state = opaque;
	if (!state)
		return;
	ZSTD_freeDCtx(state->zstd);
	libdeflate_free_decompressor(state->deflate);
	lade__sized_free(state->host, state);
}

/* ---- streams ------------------------------------------------------------------------------ */

/* A piece of the container; 'off' is its offset there. */
typedef struct piece {
	const uint8_t *data;
	size_t size, off;
} piece;

static lade_status no_memory(const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "blosc: no memory for %s", what);
}

static lade_status decode_zstd(blosc_state *state, piece in, uint8_t *out, size_t out_size,
                               bool *good, lade_error *err)
{
	if (!state->zstd) {
		state->zstd = ZSTD_createDCtx_advanced(lade__zstd_memory(state->host));
		if (!state->zstd)
			return no_memory("a zstd context", err);
	}
	*good = ZSTD_decompressDCtx(state->zstd, out, out_size, in.data, in.size) == out_size;
	return LADE_OK;
}

static lade_status decode_zlib(blosc_state *state, piece in, uint8_t *out, size_t out_size,
                               bool *good, lade_error *err)
{
	if (!state->deflate) {
		state->deflate = libdeflate_alloc_decompressor();
		if (!state->deflate)
			return no_memory("a deflate context", err);
	}
	*good = libdeflate_zlib_decompress(state->deflate, in.data, in.size, out, out_size, NULL) ==
	        LIBDEFLATE_SUCCESS;
	return LADE_OK;
}

static bool decode_snappy(piece in, uint8_t *out, size_t out_size)
{
	const char *src = (const char *)in.data;
	size_t claimed;
	/* The library trusts the stream's own claim of a size, so it is compared first. */
	if (snappy_uncompressed_length(src, in.size, &claimed) != SNAPPY_OK || claimed != out_size)
		return false;
	return snappy_uncompress(src, in.size, (char *)out, &claimed) == SNAPPY_OK &&
	       claimed == out_size;
}

/* Decodes the first 'want' of the 'out_size' bytes of a stream, or more: liblz4 1.9.4 decodes a
 * part at half the speed. */
static bool decode_lz4(piece in, uint8_t *out, size_t out_size, size_t want)
{
	const char *src = (const char *)in.data;
	if (want > out_size / 8 * 3)
		return LZ4_decompress_safe(src, (char *)out, (int)in.size, (int)out_size) ==
		       (int)out_size;
	return LZ4_decompress_safe_partial(src, (char *)out, (int)in.size, (int)want,
	                                   (int)out_size) >= (int)want;
}

/* Decodes one stream of exactly to.size bytes, of which the first 'want' are needed.  Sizes are at
 * most INT32_MAX (nbytes, cbytes). */
static lade_status decode_stream(const lade__blosc_info *info, blosc_state *state, piece in,
                                 lade_span to, size_t want, lade_error *err)
{
	uint8_t *out = to.data;
	const size_t out_size = to.size;
	static const char *const names[] = {"blosclz", "lz4", "snappy", "zlib", "zstd"};
	lade_status status = LADE_OK;
	bool good = false;
	size_t bad = 0;
	switch (info->codec) {
	case BLOSC_BLOSCLZ_STREAMS:
		good = lade__blosclz_decode(in.data, in.size, out, out_size, &bad);
		break;
	case BLOSC_LZ4_STREAMS:
		good = decode_lz4(in, out, out_size, want);
		break;
	case BLOSC_SNAPPY_STREAMS:
		good = decode_snappy(in, out, out_size);
		break;
	case BLOSC_ZLIB_STREAMS:
		status = decode_zlib(state, in, out, out_size, &good, err);
		break;
	case BLOSC_ZSTD_STREAMS:
		status = decode_zstd(state, in, out, out_size, &good, err);
		break;
	}
	if (status == LADE_OK && !good)
		return lade_fail(err, LADE_E_CORRUPT, in.off + bad,
		                 "blosc: the %s stream of %zu bytes does not give %zu bytes",
		                 names[info->codec], in.size, out_size);
	return status;
}

/* ---- blocks ------------------------------------------------------------------------------- */

typedef enum block_filter { FILTER_NONE, FILTER_BYTES, FILTER_BITS } block_filter;

/* How a block of 'size' bytes was shuffled. */
static block_filter filter_of(const lade__blosc_info *info, size_t size)
{
	size_t elements = size / info->typesize;
	if ((info->flags & BLOSC_FLAG_SHUFFLE) && info->typesize > 1)
		return elements > 0 ? FILTER_BYTES : FILTER_NONE;
	/* Blosc1 leaves a block alone whose number of elements is no multiple of 8. */
	if ((info->flags & BLOSC_FLAG_BITSHUFFLE) && elements > 0 && elements % 8 == 0)
		return FILTER_BITS;
	return FILTER_NONE;
}

static size_t block_size(const lade__blosc_info *info, uint32_t block)
{
	size_t off = (size_t)block * info->blocksize;
	size_t left = info->nbytes - off;
	return left < info->blocksize ? left : info->blocksize;
}

/* Where the streams of a block go. */
typedef struct streams_goal {
	uint8_t *out;
	size_t want;            /* the first bytes of each that are needed; others may come too */
	const uint8_t **planes; /* get the places; stored ones stay.  NULL: all in 'out' */
} streams_goal;

/* Decodes the streams of a block one after the other, | csize 4 | bytes |. */
static lade_status decode_streams(const lade__blosc_info *info, blosc_state *state, uint32_t block,
                                  const streams_goal *goal, lade_error *err)
{
	uint8_t *out = goal->out;
	const uint8_t *src = info->src;
	size_t size = block_size(info, block);
	size_t table_off = BLOSC_HEADER_SIZE + (size_t)block * 4;
	size_t table_end = BLOSC_HEADER_SIZE + (size_t)info->block_count * 4;
	size_t off = lade__le32(src + table_off);
	if (off < table_end || off > info->cbytes)
		return lade_fail(err, LADE_E_CORRUPT, table_off,
		                 "blosc: block %u starts at %zu, want %zu to %u", block, off,
		                 table_end, info->cbytes);
	size_t streams = size == info->blocksize ? info->streams : 1;
	size_t out_size = size / streams;
	size_t want = goal->want < out_size ? goal->want : out_size;
	for (size_t s = 0; s < streams; s++, out += out_size) {
		if (info->cbytes - off < 4)
			return lade_fail(err, LADE_E_CORRUPT, off,
			                 "blosc: block %u: no room for stream %zu of %zu", block, s,
			                 streams);
		uint32_t csize = lade__le32(src + off);
		if (csize > info->cbytes - off - 4)
			return lade_fail(err, LADE_E_CORRUPT, off,
			                 "blosc: block %u: a stream of %u bytes, have %zu", block,
			                 csize, info->cbytes - off - 4);
		piece in = {src + off + 4, csize, off + 4};
		off += 4 + (size_t)csize;
		if (goal->planes)
			goal->planes[s] = csize == out_size ? in.data : out;
		if (csize == out_size) {
			if (!goal->planes)
				memcpy(out, in.data, want);
			continue;
		}
		lade_status status = decode_stream(info, state, in, lade_host_span(out, out_size),
		                                   want, err);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

/* Decodes a block into 'out', which has room for exactly block_size() bytes. */
static lade_status decode_block(const lade_run *run, const lade__blosc_info *info, uint32_t block,
                                uint8_t *out, lade_error *err)
{
	size_t size = block_size(info, block);
	block_filter filter = filter_of(info, size);
	if (filter == FILTER_NONE)
		return decode_streams(info, run->state, block, &(streams_goal){out, SIZE_MAX, NULL},
		                      err);
	uint8_t *shuffled = lade_worker_scratch(run->worker, SCRATCH_SHUFFLED, size);
	if (!shuffled)
		return no_memory("a block", err);
	const streams_goal goal = {shuffled, SIZE_MAX, NULL};
	lade_status status = decode_streams(info, run->state, block, &goal, err);
	if (status != LADE_OK)
		return status;
	if (filter == FILTER_BYTES)
		lade__unshuffle(info->typesize, size, shuffled, out, run->cpu);
	else
		lade__bitunshuffle(info->typesize, size, shuffled, out, run->cpu);
	return LADE_OK;
}

/* Decodes blocks [first, end) to their places in 'out', the whole result. */
static lade_status decode_blocks(const lade_run *run, const lade__blosc_info *info, uint32_t first,
                                 uint32_t end, uint8_t *out, lade_error *err)
{
	for (uint32_t block = first; block < end; block++) {
		uint8_t *to = out + (size_t)block * info->blocksize;
		lade_status status = decode_block(run, info, block, to, err);
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

/* ---- the implementation's functions ------------------------------------------------------- */

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	lade__blosc_info info;
	*dst_size = 0;
	lade_status status = lade__blosc_parse(src.data, src.size, &info, err);
	if (status != LADE_OK)
		return status;
	if (info.nbytes > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "blosc: want room for %u bytes, have %zu", info.nbytes, dst.size);
	if (info.stored && info.nbytes > 0)
		memcpy(dst.data, info.src + BLOSC_HEADER_SIZE, info.nbytes);
	if (!info.stored)
		status = decode_blocks(run, &info, 0, info.block_count, dst.data, err);
	if (status == LADE_OK)
		*dst_size = info.nbytes;
	return status;
}

static lade_status decode_range(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
                                lade_error *err)
{
	lade__blosc_info info;
	lade_status status = lade__blosc_parse(src.data, src.size, &info, err);
	if (status != LADE_OK)
		return status;
	if (off > info.nbytes || dst.size > info.nbytes - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "blosc: want %zu bytes from %llu on, have %u in all", dst.size,
		                 (unsigned long long)off, info.nbytes);
	if (dst.size == 0)
		return LADE_OK;
	uint8_t *out = dst.data;
	size_t at = (size_t)off, end = at + dst.size;
	if (info.stored) {
		memcpy(out, info.src + BLOSC_HEADER_SIZE + at, dst.size);
		return LADE_OK;
	}
	while (at < end) {
		uint32_t block = (uint32_t)(at / info.blocksize);
		size_t block_off = (size_t)block * info.blocksize;
		size_t size = block_size(&info, block);
		size_t take = block_off + size < end ? block_off + size - at : end - at;
		if (take == size) {
			status = decode_block(run, &info, block, out, err);
		} else {
			uint8_t *whole = lade_worker_scratch(run->worker, SCRATCH_RANGE, size);
			if (!whole)
				return no_memory("a block", err);
			status = decode_block(run, &info, block, whole, err);
			if (status == LADE_OK)
				memcpy(out, whole + (at - block_off), take);
		}
		if (status != LADE_OK)
			return status;
		at += take;
		out += take;
	}
	return LADE_OK;
}

/* A byte-shuffled block whose elements [first, end) are wanted. */
typedef struct shuffled_block {
	const uint8_t *planes[16]; /* the first; if 'apart', one for each byte of an element */
	bool apart;
	size_t off, size; /* in the result */
	size_t first, end;
	size_t elem;
} shuffled_block;

/* Elements [first, first + count) of a block. */
static void join(const lade__shuffle_kernels *kernels, const shuffled_block *b, size_t first,
                 size_t count, uint8_t *dst, bool past)
{
	const uint8_t *planes[16];
	for (size_t j = 0; j < (b->apart ? b->elem : 1); j++)
		planes[j] = b->planes[j] + first;
	if (b->apart)
		kernels->join_planes(planes, dst, count, b->elem, past);
	else
		kernels->from_planes(planes[0], dst, count, b->elem, b->size / b->elem);
}

/* Gives each run of bytes straight to its place.  False: a run ends in the middle of an element of
 * Blosc's, which may be others than the layout's. */
static bool place_block(const lade__shuffle_kernels *kernels, const shuffled_block *b,
                        const lade_pieces *to)
{
	size_t elem = b->elem, end = b->end * elem;
	for (size_t at = b->first * elem, n; at < end; at += n) {
		uint8_t *dst = to->place(to->ctx, b->off + at, &n);
		n = n < end - at ? n : end - at;
		if (n % elem)
			return false;
		if (dst)
			join(kernels, b, at / elem, n / elem, dst, to->large);
	}
	return true;
}

/* Decodes what is wanted of a byte-shuffled block.  If each plane is a stream of its own, no more
 * than that is decoded of it. */
static lade_status shuffled_pieces(const lade_run *run, const lade__blosc_info *info,
                                   uint32_t block, const lade_pieces *to, lade_error *err)
{
	const lade__shuffle_kernels *kernels = lade__shuffle_kernels_of(run->cpu);
	size_t off = (size_t)block * info->blocksize, elem = info->typesize;
	shuffled_block b = {.off = off, .size = block_size(info, block), .elem = elem};
	bool split = b.size == info->blocksize && info->streams == elem;
	b.apart = split && (elem == 2 || elem == 4 || elem == 8 || elem == 16);
	b.first = to->first > off ? (to->first - off) / elem : 0;
	b.end = (to->end - off < b.size ? to->end - off + elem - 1 : b.size) / elem;
	uint8_t *planes = lade_worker_scratch(run->worker, SCRATCH_SHUFFLED, b.size);
	if (!planes)
		return no_memory("a block", err);
	b.planes[0] = planes;
	const streams_goal goal = {planes, split ? b.end : SIZE_MAX, b.apart ? b.planes : NULL};
	lade_status status = decode_streams(info, run->state, block, &goal, err);
	if (status != LADE_OK || (to->place && place_block(kernels, &b, to)))
		return status;
	uint8_t *out = lade_worker_scratch(run->worker, SCRATCH_RANGE, (b.end - b.first) * elem);
	if (!out)
		return no_memory("a block", err);
	join(kernels, &b, b.first, b.end - b.first, out, false);
	to->take(to->ctx, off + b.first * elem, out, (b.end - b.first) * elem);
	return LADE_OK;
}

static lade_status decode_pieces(const lade_run *run, lade_cspan src, const lade_pieces *to,
                                 lade_error *err)
{
	lade__blosc_info info;
	lade_status status = lade__blosc_parse(src.data, src.size, &info, err);
	if (status != LADE_OK)
		return status;
	if (info.stored && info.nbytes > 0)
		to->take(to->ctx, 0, info.src + BLOSC_HEADER_SIZE, info.nbytes);
	for (uint32_t block = 0; block < info.block_count && !info.stored; block++) {
		size_t off = (size_t)block * info.blocksize, size = block_size(&info, block);
		if (off + size <= to->first || off >= to->end)
			continue;
		if (filter_of(&info, size) == FILTER_BYTES && size % info.typesize == 0) {
			status = shuffled_pieces(run, &info, block, to, err);
		} else {
			uint8_t *out = lade_worker_scratch(run->worker, SCRATCH_RANGE, size);
			if (!out)
				return no_memory("a block", err);
			status = decode_block(run, &info, block, out, err);
			if (status == LADE_OK)
				to->take(to->ctx, off, out, size);
		}
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

/* How many blocks make a part. */
static uint32_t blocks_a_part(const lade__blosc_info *info)
{
	return info->blocksize < PART_SIZE ? (uint32_t)(PART_SIZE / info->blocksize) : 1;
}

static lade_status parts(const lade_run *run, lade_cspan src, size_t *part_count,
                         size_t *decoded_size, lade_error *err)
{
	(void)run;
	lade__blosc_info info;
	lade_status status = lade__blosc_parse(src.data, src.size, &info, err);
	if (status != LADE_OK)
		return status;
	*decoded_size = info.nbytes;
	if (info.stored) {
		*part_count = (info.nbytes + STORED_PART_SIZE - 1) / STORED_PART_SIZE;
	} else {
		uint32_t each = blocks_a_part(&info);
		*part_count = info.block_count / each + (info.block_count % each != 0);
	}
	return LADE_OK;
}

static lade_status decode_part(const lade_run *run, lade_cspan src, size_t part, lade_span dst,
                               lade_error *err)
{
	lade__blosc_info info;
	lade_status status = lade__blosc_parse(src.data, src.size, &info, err);
	if (status != LADE_OK)
		return status;
	if (info.nbytes > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "blosc: want room for %u bytes, have %zu", info.nbytes, dst.size);
	uint8_t *out = dst.data;
	if (info.stored) {
		size_t off = part * STORED_PART_SIZE;
		size_t left = off < info.nbytes ? info.nbytes - off : 0;
		if (left > 0)
			memcpy(out + off, info.src + BLOSC_HEADER_SIZE + off,
			       left < STORED_PART_SIZE ? left : STORED_PART_SIZE);
		return LADE_OK;
	}
	uint32_t each = blocks_a_part(&info);
	size_t first = part * each;
	size_t end = first + each < info.block_count ? first + each : info.block_count;
	return decode_blocks(run, &info, (uint32_t)first, (uint32_t)end, out, err);
}

static double cost(void *ctx, const lade_workload *work)
{
	(void)ctx;
	/* The largest chunk does not stay alone: its blocks are shared. */
	unsigned threads = work->threads ? work->threads : 1;
	return (double)work->count * 500 + (double)work->total / 2.0 / threads;
}

const lade_implementation lade__blosc_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "blosc/lade",
	.algorithm = "blosc",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.state_new = state_new,
	.state_free = state_free,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops),
	                                 .run = decode,
	                                 .run_range = decode_range,
	                                 .parts = parts,
	                                 .run_part = decode_part,
	                                 .run_pieces = decode_pieces},
};
