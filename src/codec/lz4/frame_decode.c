/*
 * frame_decode.c: decodes LZ4 frames straight into the destination: the blocks by liblz4, the rest
 * here. Takes concatenated, skippable and legacy frames.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz4/frame.h"

#include "base/try.h"

#include <lz4.h>
#include <string.h>
#include <xxhash.h>

/* What decoding has reached. */
typedef struct cursor {
	const lade_run *run;
	const uint8_t *src;
	uint8_t *dst;
	size_t src_size, dst_cap;
	size_t in, out;             /* of both, so far */
	size_t frame_in, frame_out; /* where the frame began */
} cursor;

/*
 * Decodes a block with both a dictionary and earlier output of less than 64 KiB behind it, which do
 * not adjoin: both are copied into scratch memory, and the block is decoded behind them.
 */
static int decode_aside(const cursor *c, const char *block, size_t size, size_t cap,
                        lade_cspan dict, bool *no_memory)
{
	size_t before = c->out - c->frame_out;
	char *aside = lade_worker_scratch(c->run->worker, 0, dict.size + before + cap);
	*no_memory = !aside;
	if (!aside)
		return -1;
	char *at = aside + dict.size + before;
	memcpy(aside, dict.data, dict.size);
	memcpy(aside + dict.size, c->dst + c->frame_out, before);
	int n = LZ4_decompress_safe_usingDict(block, at, (int)size, (int)cap, aside,
	                                      (int)(dict.size + before));
	if (n > 0)
		memcpy(c->dst + c->out, at, (size_t)n);
	return n;
}

/* Decodes the compressed block 'b' of a frame and gives its decoded size. */
static lade_status decode_block(cursor *c, const lade__lz4f_header *h, const lade__lz4f_block *b,
                                size_t *written, lade_error *err)
{
	const char *block = (const char *)c->src + c->frame_in + b->at;
	size_t room = c->dst_cap - c->out;
	size_t cap = room < h->block_max ? room : h->block_max;
	lade_cspan dict = {0};
	if (c->run->dict && h->kind == LADE__LZ4F_FRAME)
		dict = lade__lz4_tail(lade_dict_data(c->run->dict));
	size_t history = h->linked ? c->out - c->frame_out : 0;
	bool no_memory = false;
	int n;
	if (history > 0 && history < LADE__LZ4_HISTORY && dict.size > 0) {
		n = decode_aside(c, block, b->size, cap, dict, &no_memory);
		history += dict.size;
	} else if (history > 0) {
		history = history < LADE__LZ4_HISTORY ? history : LADE__LZ4_HISTORY;
		n = LZ4_decompress_safe_usingDict(block, (char *)c->dst + c->out, (int)b->size,
		                                  (int)cap, (char *)c->dst + c->out - history,
		                                  (int)history);
	} else if (dict.size > 0) {
		history = dict.size;
		n = LZ4_decompress_safe_usingDict(block, (char *)c->dst + c->out, (int)b->size,
		                                  (int)cap, dict.data, (int)dict.size);
	} else {
		n = LZ4_decompress_safe(block, (char *)c->dst + c->out, (int)b->size, (int)cap);
	}
	if (no_memory)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "lz4f: no memory for scratch");
	if (n >= 0) {
		*written = (size_t)n;
		return LADE_OK;
	}
	lade__lz4_block bad = {(const uint8_t *)block, b->size, history, c->frame_in + b->at};
	lade_status status = lade__lz4_diagnose(&bad, cap, c->out, err);
	if (status == LADE_E_NOSPACE && cap == h->block_max)
		return lade_fail(
			err, LADE_E_CORRUPT, bad.off,
			"lz4f: the block at %llu decodes to more than the %zu bytes allowed",
			(unsigned long long)bad.off, cap);
	return status;
}

/* Handles one block, raw or not, with its checksum. */
static lade_status take_block(cursor *c, const lade__lz4f_header *h, const lade__lz4f_block *b,
                              lade_error *err)
{
	const uint8_t *block = c->src + c->frame_in + b->at;
	size_t written = 0;
	if (h->block_checksum) {
		uint32_t have = XXH32(block, b->size, 0), want = lade__le32(block + b->size);
		if (have != want)
			return lade_fail(err, LADE_E_CHECKSUM, c->frame_in + b->at + b->size,
			                 "lz4f: the block's checksum is 0x%08x, stored is 0x%08x",
			                 have, want);
	}
	if (b->raw) {
		if (b->size > c->dst_cap - c->out)
			return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
			                 "lz4f: want %zu bytes, have %zu", c->out + b->size,
			                 c->dst_cap);
		memcpy(c->dst + c->out, block, b->size);
		written = b->size;
	} else {
		lade_status status = decode_block(c, h, b, &written, err);
		if (status != LADE_OK)
			return status;
	}
	c->out += written;
	return LADE_OK;
}

/* What must hold at a frame's end: its content size and its checksum. */
static lade_status frame_end(cursor *c, const lade__lz4f_header *h, lade_error *err)
{
	uint64_t got = c->out - c->frame_out;
	if (h->has_content_size && got != h->content_size)
		return lade_fail(err, LADE_E_CORRUPT, c->frame_in + 6,
		                 "lz4f: the frame at %zu states %llu bytes and decodes to %llu",
		                 c->frame_in, (unsigned long long)h->content_size,
		                 (unsigned long long)got);
	if (!h->content_checksum)
		return LADE_OK;
	if (c->src_size - c->in < 4)
		return lade_fail(err, LADE_E_TRUNCATED, c->src_size,
		                 "lz4f: want a content checksum of 4 bytes, have %zu",
		                 c->src_size - c->in);
	uint32_t have = XXH32(c->dst + c->frame_out, (size_t)got, 0);
	uint32_t want = lade__le32(c->src + c->in);
	if (have != want)
		return lade_fail(err, LADE_E_CHECKSUM, c->in,
		                 "lz4f: the content's checksum is 0x%08x, stored is 0x%08x", have,
		                 want);
	c->in += 4;
	return LADE_OK;
}

static lade_status take_frame(cursor *c, lade_error *err)
{
	lade__lz4f_header h = {0};
	lade_status status;
	c->frame_in = c->in;
	c->frame_out = c->out;
	TRY(lade__lz4f_header_read(c->src + c->in, c->src_size - c->in, c->in, &h, err));
	lade__lz4f_block b = {.end = h.kind == LADE__LZ4F_SKIPPABLE, .next = h.size};
	if (h.has_dict_id && !c->run->dict)
		return lade_fail(err, LADE_E_DICT, c->in,
		                 "lz4f: the frame at %zu needs dictionary %u, none is given", c->in,
		                 h.dict_id);
	if (h.has_content_size && h.content_size > c->dst_cap - c->out)
		return lade_fail(err, LADE_E_NOSPACE, c->in,
		                 "lz4f: the frame at %zu needs %llu bytes after %zu, has %zu",
		                 c->in, (unsigned long long)h.content_size, c->out, c->dst_cap);
	while (!b.end) {
		TRY(lade__lz4f_block_read(&h, b.next, &b, err));
		if (!b.end)
			TRY(take_block(c, &h, &b, err));
	}
	c->in = c->frame_in + b.next;
	if (h.kind == LADE__LZ4F_FRAME)
		TRY(frame_end(c, &h, err));
out:
	return status;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint8_t nothing;
	cursor c = {
		.run = run,
		.src = lade__bytes(src),
		.dst = lade__room(dst, &nothing),
		.src_size = src.size,
		.dst_cap = dst.size,
	};
	*dst_size = 0;
	do {
		lade_status status = take_frame(&c, err);
		if (status != LADE_OK)
			return status;
	} while (c.in < c.src_size);
	*dst_size = c.out;
	return LADE_OK;
}

const lade_implementation lade__lz4f_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "lz4f/liblz4",
	.algorithm = "lz4f",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = lade__lz4_decode_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = decode},
};
