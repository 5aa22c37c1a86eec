/*
 * foreign_blocks.c: writes .gz and .lz4 files whose parts, of 1 MiB, are encoded on several
 * threads: a gzip member (RFC 1952; a new one when its size would pass 32 bits), since many readers
 * stop after the first; or one LZ4 frame (format 1.6) of independent blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <libdeflate.h>
#include <lz4.h>
#include <lz4hc.h>
#include <xxhash.h>
#include <zlib.h>

#include "base/try.h"
#include "engine/engine.h"
#include "foreign/foreign.h"

#include <stdatomic.h>
#include <string.h>

#define BLOCK ((size_t)1 << 20)
#define LZ4_BLOCK_ID 6 /* of the frame format: at most 1 MiB */
#define BLOCKS_MAX 256u

#define GZIP_LEVEL_DEFAULT 6
#define LZ4_LEVEL_HC_MIN 3 /* as in lz4(1): below is the fast encoder */

/*
 * Proof: for 'n' bytes libdeflate_deflate_compress_bound() promises n + 5 * ceil(n / 5000) + 9
 * bytes, and an empty stored block behind them takes 5 more: below n + n / 200 + 64 for
 * n = 1 MiB.  LZ4_COMPRESSBOUND(n) is n + n / 255 + 16, and a block has 4 bytes before
 * it: below n + n / 200 + 64.
 */
#define PLACE_CAP (BLOCK + BLOCK / 200 + 64)

/* One thread's encoder and one block's encoded bytes. */
typedef struct place {
	struct libdeflate_compressor *gzip;
	uint32_t crc;      /* of the decoded bytes */
	void *lz4; /* LZ4_stream_t or LZ4_streamHC_t */
	uint8_t *out;
	size_t out_size; /* 0: the encoder could not do it */
} place;

typedef struct blocks {
	unsigned count; /* of places */
	int level;
	uint8_t *in; /* count blocks */
	size_t in_size;
	XXH32_state_t *sum;
	bool in_member; /* its header has been written */
	uint32_t member_size, member_crc; /* of its decoded bytes so far */
	const uint8_t *batch; /* what the threads are at work on */
	size_t batch_size;
	place places[BLOCKS_MAX];
} blocks;

/* ---- encoding one block ------------------------------------------------------------------ */

/*
 * A Deflate stream whose last block is not marked as such, so that others may follow; an empty
 * stored block (RFC 1951, 3.2.4) fills its last byte: | 3 zero bits, zeros | 0 2 | 0xFFFF 2 |.
 */
static void encode_gzip(place *p, const uint8_t *data, size_t size)
{
	size_t n = libdeflate_deflate_compress(p->gzip, data, size, p->out, PLACE_CAP - 5);
	size_t begin, end;

	p->out_size = 0;
	if (!n || !lade__deflate_last(p->out, n, &begin, &end))
		return;
	p->out[begin / 8] &= (uint8_t) ~(1u << begin % 8);
	p->out[end / 8] &= (uint8_t)((1u << end % 8) - 1);
	size_t next = (end + 3 + 7) / 8;
	memset(p->out + end / 8 + 1, 0, 3);
	lade__le_put(p->out + next, 0xFFFF0000u, 4);
	p->out_size = next + 4;
	p->crc = libdeflate_crc32(0, data, size);
}

/* | size 4, its highest bit set when stored | block | */
static void encode_lz4(const blocks *s, place *p, const uint8_t *data, size_t size)
{
	char *out = (char *)p->out + 4;
	int cap = (int)(PLACE_CAP - 4);
	int n;

	if (s->level < LZ4_LEVEL_HC_MIN)
		n = LZ4_compress_fast_extState(p->lz4, (const char *)data, out, (int)size, cap, 1);
	else
		n = LZ4_compress_HC_extStateHC(p->lz4, (const char *)data, out, (int)size, cap,
		                               s->level);
	uint32_t stored = 0;
	if (n <= 0 || (size_t)n >= size) {
		memcpy(out, data, size);
		n = (int)size;
		stored = 0x80000000u;
	}
	lade__le_put(p->out, (uint32_t)n | stored, 4);
	p->out_size = 4 + (size_t)n;
}

static void encode_one(void *ctx, size_t index, lade_worker *worker)
{
	lade_foreign_writer *w = ctx;
	blocks *s = w->state;
	const uint8_t *data = s->batch + index * BLOCK;
	size_t size = s->batch_size - index * BLOCK;

	(void)worker;
	if (size > BLOCK)
		size = BLOCK;
	if (w->format == LADE_FORMAT_GZ)
		encode_gzip(&s->places[index], data, size);
	else
		encode_lz4(s, &s->places[index], data, size);
}

/* RFC 1952, 2.3: | 1F 8B 8 0 | no time 4 | extra flags 1 | unknown system 1 | */
static lade_status member_begin(lade_foreign_writer *w, lade_error *err)
{
	blocks *s = w->state;
	uint8_t h[10] = {0x1F, 0x8B, 8, [9] = 255};

	h[8] = s->level >= 8 ? 2 : s->level < 2 ? 4 : 0;
	s->in_member = true;
	s->member_size = s->member_crc = 0;
	return w->output.write(w->output.ctx, h, sizeof h, err);
}

/* | an empty last block 2 | CRC-32 4 | size 4 | */
static lade_status member_end(lade_foreign_writer *w, lade_error *err)
{
	blocks *s = w->state;
	uint8_t h[10] = {3};

	lade__le_put(h + 2, s->member_crc, 4);
	lade__le_put(h + 6, s->member_size, 4);
	s->in_member = false;
	return w->output.write(w->output.ctx, h, sizeof h, err);
}

/* Makes place in a member for a block that decodes to 'size' bytes. */
static lade_status member_add(lade_foreign_writer *w, const place *p, size_t size, lade_error *err)
{
	blocks *s = w->state;
	lade_status status = LADE_OK;

	if (s->in_member && size > UINT32_MAX - s->member_size)
		TRY(member_end(w, err));
	if (!s->in_member)
		TRY(member_begin(w, err));
	s->member_crc = (uint32_t)crc32_combine(s->member_crc, p->crc, (z_off_t)size);
	s->member_size += (uint32_t)size;
out:
	return status;
}

/* Encodes 'size' bytes, at most 'count' blocks of them, and writes them in order. */
static lade_status encode_batch(lade_foreign_writer *w, const uint8_t *data, size_t size,
                                lade_error *err)
{
	blocks *s = w->state;
	size_t count = (size + BLOCK - 1) / BLOCK;
	lade_status status = LADE_OK;

	if (lade__stopped(&w->stop))
		return lade__stop_fail(err);
	s->batch = data;
	s->batch_size = size;
	lade__calls calls = {encode_one, w, .count = count, .grain = 1, .threads = w->threads};
	TRY(lade__engine_parallel(w->engine, &calls, err));
	if (w->format == LADE_FORMAT_LZ4 && w->checksum)
		XXH32_update(s->sum, data, size);
	for (size_t i = 0; i < count; i++) {
		if (!s->places[i].out_size)
			return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET,
			                 "a block could not be encoded");
		size_t left = size - i * BLOCK;
		if (w->format == LADE_FORMAT_GZ)
			TRY(member_add(w, &s->places[i], left < BLOCK ? left : BLOCK, err));
		TRY(w->output.write(w->output.ctx, s->places[i].out, s->places[i].out_size, err));
	}
out:
	return status;
}

/* ---- a writer's life ------------------------------------------------------------------------ */

static lade_status place_make(lade_foreign_writer *w, place *p, lade_error *err)
{
	blocks *s = w->state;

	p->out = lade__host_alloc(w->alloc, PLACE_CAP);
	if (w->format == LADE_FORMAT_GZ) {
		p->gzip = libdeflate_alloc_compressor(s->level);
	} else {
		p->lz4 = s->level < LZ4_LEVEL_HC_MIN ? (void *)LZ4_createStream()
		                                     : (void *)LZ4_createStreamHC();
	}
	if (!p->out || (!p->gzip && !p->lz4))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for an encoder");
	return LADE_OK;
}

/*
 * LZ4 frame format, 3.1:
 * | magic 4 | flags 1 | block size id 1 | content size 8, if known | header checksum 1 |
 */
static lade_status lz4_header(lade_foreign_writer *w, lade_error *err)
{
	uint8_t h[15] = {0x04, 0x22, 0x4D, 0x18};
	size_t size = 6;

	/* Version 01, independent blocks, content size, content checksum. */
	h[4] = (uint8_t)(0x40 | 0x20 | (w->size ? 0x08 : 0) | (w->checksum ? 0x04 : 0));
	h[5] = LZ4_BLOCK_ID << 4;
	if (w->size) {
		lade__le_put(h + size, w->size, 8);
		size += 8;
	}
	h[size] = (uint8_t)(XXH32(h + 4, size - 4, 0) >> 8);
	return w->output.write(w->output.ctx, h, size + 1, err);
}

static lade_status start(lade_foreign_writer *w, lade_error *err)
{
	blocks *s = w->state;
	bool gzip = w->format == LADE_FORMAT_GZ;
	int max = gzip ? 12 : LZ4HC_CLEVEL_MAX;
	lade_status status = LADE_OK;

	s->level = w->level ? w->level : gzip ? GZIP_LEVEL_DEFAULT : 1;
	if (s->level < 1 || s->level > max)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s level %d, want 1 to %d",
		                 gzip ? "gzip" : "lz4", s->level, max);
	s->count = w->threads < BLOCKS_MAX ? w->threads : BLOCKS_MAX;
	s->in = lade__host_alloc(w->alloc, s->count * BLOCK);
	if (!s->in)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %u blocks",
		                 s->count);
	for (unsigned i = 0; i < s->count; i++)
		TRY(place_make(w, &s->places[i], err));
	if (!gzip) {
		if (w->checksum) {
			s->sum = XXH32_createState();
			if (!s->sum)
				return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
				                 "no memory for a checksum");
			XXH32_reset(s->sum, 0);
		}
		TRY(lz4_header(w, err));
	}
out:
	return status;
}

static void stop(lade_foreign_writer *w)
{
	blocks *s = w->state;

	for (unsigned i = 0; i < s->count; i++) {
		place *p = &s->places[i];
		libdeflate_free_compressor(p->gzip);
		if (p->lz4 && s->level < LZ4_LEVEL_HC_MIN)
			LZ4_freeStream(p->lz4);
		else if (p->lz4)
			LZ4_freeStreamHC(p->lz4);
		lade__host_free(w->alloc, p->out, PLACE_CAP);
	}
	XXH32_freeState(s->sum);
	lade__host_free(w->alloc, s->in, s->count * BLOCK);
}

static lade_status write_bytes(lade_foreign_writer *w, const uint8_t *data, size_t size,
                               lade_error *err)
{
	blocks *s = w->state;
	size_t batch = s->count * BLOCK;
	lade_status status = LADE_OK;

	while (size) {
		if (s->in_size == 0 && size >= batch) {
			TRY(encode_batch(w, data, batch, err));
			data += batch;
			size -= batch;
			continue;
		}
		size_t part = batch - s->in_size < size ? batch - s->in_size : size;
		memcpy(s->in + s->in_size, data, part);
		s->in_size += part;
		data += part;
		size -= part;
		if (s->in_size == batch) {
			s->in_size = 0;
			TRY(encode_batch(w, s->in, batch, err));
		}
	}
out:
	return status;
}

static lade_status finish(lade_foreign_writer *w, lade_error *err)
{
	blocks *s = w->state;
	lade_status status = LADE_OK;

	if (s->in_size)
		TRY(encode_batch(w, s->in, s->in_size, err));
	if (w->format == LADE_FORMAT_GZ) {
		/* A file of no bytes is one empty member. */
		if (!s->in_member)
			TRY(member_begin(w, err));
		TRY(member_end(w, err));
	} else {
		/* The end mark, and the checksum of all decoded bytes. */
		uint8_t end[8] = {0};
		if (w->checksum)
			lade__le_put(end + 4, XXH32_digest(s->sum), 4);
		TRY(w->output.write(w->output.ctx, end, w->checksum ? 8 : 4, err));
	}
out:
	return status;
}

const lade__foreign_encoder lade__blocks_encoder = {
	.state_size = sizeof(blocks),
	.start = start,
	.write = write_bytes,
	.finish = finish,
	.stop = stop,
};
