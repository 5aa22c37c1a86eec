/*
 * zstd_frame.cuh: headers of Zstandard frames and blocks (RFC 8878, 3.1.1), read by one thread.
 *
 *     | magic 4 | descriptor 1 | window 0..1 | dictionary 0..4 | content size 0..8 |
 *     | block header 3 | content | .. | checksum 0..4 |
 *
 * Bounds: each read is of bytes below 'n', the source's size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CUDA_ZSTD_FRAME_CUH
#define LADE_CUDA_ZSTD_FRAME_CUH

#include "codec/zstd/args.h"
#include "gpu/kernels/batch.cuh"

#define LADE_ZSTD_MAGIC 0xFD2FB528u
#define LADE_ZSTD_SKIPPABLE 0x184D2A50u /* and 15 more */
#define LADE_GPU_UNSUPPORTED ((uint32_t)LADE_E_UNSUPPORTED)
#define LADE_GPU_DICT ((uint32_t)LADE_E_DICT)
#define LADE_GPU_UNKNOWN_SIZE ((uint32_t)LADE_E_UNKNOWN_SIZE)

enum { LADE_ZSTD_RAW, LADE_ZSTD_RLE, LADE_ZSTD_CODED, LADE_ZSTD_REPEAT };

/* A frame. */
struct lade_zstd_frame {
	uint64_t content;   /* ~0: not stated */
	uint32_t block_max; /* bytes that a block may have, encoded or decoded */
	uint32_t id;        /* of its dictionary; 0: it names none */
	bool checksum, there; /* 'there': it is one */
};

/* A block, and its sections where it is of the kind LADE_ZSTD_CODED. */
struct lade_zstd_block {
	uint32_t kind, at, size; /* its content; LADE_ZSTD_RLE: 'size' decoded bytes */
	bool last;
	/* Literals: of 'kind' LADE_ZSTD_RAW, _RLE, _CODED, or _REPEAT, which is coded by the table
	 * before; at 'lit_at', 'lit_coded' bytes that become 'lit_size' bytes. */
	uint32_t lit_kind, lit_at, lit_coded, lit_size, streams;
	uint32_t seq_at, seq_count,
		modes; /* tables of sequences, and then their bits, to the end */
};

static __device__ __forceinline__ uint32_t lade_zstd_le(const uint8_t *src, uint32_t at,
                                                        uint32_t bytes)
{
	uint32_t value = 0;
	for (uint32_t k = 0; k < bytes; k++)
		value |= (uint32_t)src[at + k] << (8 * k);
	return value;
}

/*
 * Reads the header of the frame at '*at', behind any skippable frames; '*at' is then its first
 * block.  Where no frame is left f->there is false.
 */
static __device__ __noinline__ uint32_t lade_zstd_frame_read(const uint8_t *src, uint32_t n,
                                                             uint32_t *at, lade_zstd_frame *f)
{
	uint32_t p = *at;
	for (;;) {
		f->there = p != n;
		if (p == n)
			return LADE_GPU_OK;
		if (n - p < 5)
			return LADE_GPU_TRUNCATED;
		uint32_t magic = lade_zstd_le(src, p, 4);
		if (magic == LADE_ZSTD_MAGIC)
			break;
		if ((magic & ~15u) != LADE_ZSTD_SKIPPABLE)
			return LADE_GPU_CORRUPT;
		if (n - p < 8)
			return LADE_GPU_TRUNCATED;
		uint32_t size = lade_zstd_le(src, p + 4, 4);
		p += 8;
		if (size > n - p)
			return LADE_GPU_TRUNCATED;
		p += size;
	}
	uint32_t descriptor = src[p + 4];
	bool single = descriptor >> 5 & 1;
	uint32_t stated = descriptor >> 6, id = (1u << (descriptor & 3)) >> 1;
	uint32_t wide = stated || single ? 1u << stated : 0; /* bytes of the content size */
	p += 5;
	if (n - p < !single + id + wide)
		return LADE_GPU_TRUNCATED;
	if (descriptor & 8)
		return LADE_GPU_UNSUPPORTED;
	uint64_t window = 0;
	if (!single) {
		uint32_t b = src[p++], log = 10 + (b >> 3);
		if (log > 31)
			return LADE_GPU_LIMIT;
		window = (uint64_t)1 << log;
		window += window / 8 * (b & 7);
	}
	f->id = lade_zstd_le(src, p, id);
	p += id;
	f->content = ~(uint64_t)0;
	if (wide) {
		f->content = lade_zstd_le(src, p, wide < 4 ? wide : 4);
		if (wide == 8)
			f->content |= (uint64_t)lade_zstd_le(src, p + 4, 4) << 32;
		if (wide == 2)
			f->content += 256;
		if (single)
			window = f->content;
	}
	f->block_max = window < LADE_ZSTD_BLOCK_MAX ? (uint32_t)window : LADE_ZSTD_BLOCK_MAX;
	f->checksum = descriptor >> 2 & 1;
	*at = p + wide;
	return LADE_GPU_OK;
}

/* Reads the header of a block's literals, at b->at.  'end' is behind the block's content. */
static __device__ __forceinline__ uint32_t lade_zstd_literals_read(const uint8_t *src,
                                                                   uint32_t end, uint32_t most,
                                                                   lade_zstd_block *b)
{
	uint32_t p = b->at, left = end - p;
	if (left < 2)
		return LADE_GPU_CORRUPT;
	uint32_t first = src[p], form = first >> 2 & 3;
	b->lit_kind = first & 3;
	b->streams = 1;
	if (b->lit_kind < LADE_ZSTD_CODED) {
		uint32_t bytes = form == 1 ? 2 : form == 3 ? 3 : 1;
		if (left < bytes)
			return LADE_GPU_CORRUPT;
		b->lit_size = lade_zstd_le(src, p, bytes) >> (bytes == 1 ? 3 : 4);
		b->lit_coded = b->lit_kind == LADE_ZSTD_RLE ? 1 : b->lit_size;
		b->lit_at = p + bytes;
		left -= bytes;
	} else {
		uint32_t bytes = form < 2 ? 3 : form + 2, bits = form < 2    ? 10
		                                                 : form == 2 ? 14
		                                                             : 18;
		if (left < bytes)
			return LADE_GPU_CORRUPT;
		uint64_t v = lade_zstd_le(src, p, bytes < 4 ? bytes : 4);
		if (bytes == 5)
			v |= (uint64_t)src[p + 4] << 32;
		b->lit_size = (uint32_t)(v >> 4) & ((1u << bits) - 1);
		b->lit_coded = (uint32_t)(v >> (4 + bits)) & ((1u << bits) - 1);
		b->lit_at = p + bytes;
		b->streams = form ? 4 : 1;
		left -= bytes;
		if (b->lit_size < (form ? 6 : 1))
			return LADE_GPU_CORRUPT;
	}
	if (b->lit_coded > left || b->lit_size > most)
		return LADE_GPU_CORRUPT;
	b->seq_at = b->lit_at + b->lit_coded;
	return LADE_GPU_OK;
}

/* Reads how many sequences there are, at b->seq_at, and the modes of their tables. */
static __device__ __forceinline__ uint32_t lade_zstd_sequences_read(const uint8_t *src,
                                                                    uint32_t end,
                                                                    lade_zstd_block *b)
{
	uint32_t p = b->seq_at, left = end - p;
	if (left < 1)
		return LADE_GPU_CORRUPT;
	uint32_t first = src[p], bytes = first < 128 ? 1 : first < 255 ? 2 : 3;
	if (left < bytes)
		return LADE_GPU_CORRUPT;
	b->seq_count = bytes == 1   ? first
	               : bytes == 2 ? (first - 128) << 8 | src[p + 1]
	                            : lade_zstd_le(src, p + 1, 2) + 0x7F00;
	b->seq_at = p + bytes;
	left -= bytes;
	if (b->seq_count == 0)
		return left ? LADE_GPU_CORRUPT : LADE_GPU_OK;
	if (left < 1)
		return LADE_GPU_CORRUPT;
	b->modes = src[b->seq_at++];
	return b->modes & 3 ? LADE_GPU_CORRUPT : LADE_GPU_OK;
}

/* Reads the header of the block at '*at', which is then behind its content. */
static __device__ __forceinline__ uint32_t lade_zstd_block_skip(const uint8_t *src, uint32_t n,
                                                                uint32_t *at, lade_zstd_block *b)
{
	uint32_t p = *at;
	if (n - p < 3)
		return LADE_GPU_TRUNCATED;
	uint32_t header = lade_zstd_le(src, p, 3);
	p += 3;
	b->last = header & 1;
	b->kind = header >> 1 & 3;
	b->size = header >> 3;
	b->at = p;
	if (b->kind > LADE_ZSTD_CODED)
		return LADE_GPU_CORRUPT;
	uint32_t bytes = b->kind == LADE_ZSTD_RLE ? 1 : b->size;
	if (n - p < bytes)
		return LADE_GPU_TRUNCATED;
	*at = p + bytes;
	return LADE_GPU_OK;
}

#endif
