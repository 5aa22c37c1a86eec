/*
 * frame.c: reads the structure of LZ4 frames; frame.h draws it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz4/frame.h"

#include <xxhash.h>

static lade_status cut(uint64_t off, size_t want, size_t have, const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_TRUNCATED, off + have,
	                 "lz4f: the frame at %llu needs %zu bytes with its %s, %zu are left",
	                 (unsigned long long)off, want, what, have);
}

/* The descriptor of an ordinary frame, behind the magic number. */
static lade_status descriptor_read(lade__lz4f_header *out, lade_error *err)
{
	const uint8_t *src = out->src;
	size_t size = out->left;
	uint64_t off = out->off;
	if (size < 7)
		return cut(off, 7, size, "descriptor", err);
	unsigned flg = src[4], bd = src[5], code = bd >> 4 & 7;
	if (flg >> 6 != 1)
		return lade_fail(err, LADE_E_VERSION, off + 4, "lz4f: frame version %u, want 1",
		                 flg >> 6);
	if ((flg & 2) || (bd & 0x8F))
		return lade_fail(err, LADE_E_UNSUPPORTED, off + 4,
		                 "lz4f: the flags 0x%02x 0x%02x have reserved bits", flg, bd);
	if (code < 4)
		return lade_fail(err, LADE_E_CORRUPT, off + 5, "lz4f: block size %u, want 4 to 7",
		                 code);
	out->linked = !(flg & 0x20);
	out->block_checksum = flg & 0x10;
	out->has_content_size = flg & 8;
	out->content_checksum = flg & 4;
	out->has_dict_id = flg & 1;
	out->block_max = (size_t)1 << (8 + 2 * code);
	size_t in = 6;
	out->size = in + (out->has_content_size ? 8 : 0) + (out->has_dict_id ? 4 : 0) + 1;
	if (size < out->size)
		return cut(off, out->size, size, "descriptor", err);
	if (out->has_content_size) {
		out->content_size = lade__le64(src + in);
		in += 8;
	}
	if (out->has_dict_id) {
		out->dict_id = lade__le32(src + in);
		in += 4;
	}
	unsigned have = XXH32(src + 4, in - 4, 0) >> 8 & 0xFF;
	if (have != src[in])
		return lade_fail(err, LADE_E_CHECKSUM, off + in,
		                 "lz4f: the descriptor's checksum is 0x%02x, stored is 0x%02x",
		                 have, src[in]);
	return LADE_OK;
}

lade_status lade__lz4f_header_read(const uint8_t *src, size_t size, uint64_t off,
                                   lade__lz4f_header *out, lade_error *err)
{
	*out = (lade__lz4f_header){
		.src = src, .left = size, .off = off, .kind = LADE__LZ4F_FRAME};
	if (size < 4)
		return cut(off, 4, size, "magic number", err);
	uint32_t magic = lade__le32(src);
	if (magic == LADE__LZ4F_MAGIC)
		return descriptor_read(out, err);
	if (magic == LADE__LZ4F_LEGACY_MAGIC) {
		out->kind = LADE__LZ4F_LEGACY;
		out->size = 4;
		out->block_max = LADE__LZ4F_LEGACY_BLOCK;
		return LADE_OK;
	}
	if ((magic & ~15u) != LADE__LZ4F_SKIP_MAGIC)
		return lade_fail(err, LADE_E_CORRUPT, off,
		                 "lz4f: 0x%08x at %llu is not the start of a frame", magic,
		                 (unsigned long long)off);
	out->kind = LADE__LZ4F_SKIPPABLE;
	if (size < 8)
		return cut(off, 8, size, "size", err);
	uint32_t length = lade__le32(src + 4);
	if (length > size - 8)
		return lade_fail(err, LADE_E_TRUNCATED, off + size,
		                 "lz4f: the skippable frame at %llu needs %u bytes, %zu are left",
		                 (unsigned long long)off, length, size - 8);
	out->size = 8 + (size_t)length;
	return LADE_OK;
}

static bool is_magic(uint32_t word)
{
	return word == LADE__LZ4F_MAGIC || word == LADE__LZ4F_LEGACY_MAGIC ||
	       (word & ~15u) == LADE__LZ4F_SKIP_MAGIC;
}

lade_status lade__lz4f_block_read(const lade__lz4f_header *header, size_t at, lade__lz4f_block *out,
                                  lade_error *err)
{
	size_t size = header->left;
	uint64_t off = header->off;
	bool legacy = header->kind == LADE__LZ4F_LEGACY;
	size_t tail = header->block_checksum ? 4 : 0;
	*out = (lade__lz4f_block){.next = at};
	if (legacy && at == size) {
		out->end = true;
		return LADE_OK;
	}
	if (size - at < 4)
		return cut(off, at + 4, size, "next block's size", err);
	uint32_t word = lade__le32(header->src + at);
	if (legacy ? is_magic(word) : word == 0) {
		out->end = true;
		out->next = legacy ? at : at + 4;
		return LADE_OK;
	}
	out->raw = !legacy && (word & LADE__LZ4F_RAW);
	out->size = legacy ? word : word & ~LADE__LZ4F_RAW;
	out->at = at + 4;
	/* A legacy block may be longer than what it decodes to, by LZ4's bound. */
	size_t limit = header->block_max + (legacy ? header->block_max / 255 + 16 : 0);
	if (out->size > limit)
		return lade_fail(err, LADE_E_CORRUPT, off + at,
		                 "lz4f: the block at %llu has %zu bytes, at most %zu are allowed",
		                 (unsigned long long)(off + at), out->size, limit);
	if (size - out->at < out->size + tail)
		return lade_fail(err, LADE_E_TRUNCATED, off + size,
		                 "lz4f: the block at %llu needs %zu bytes, %zu are left",
		                 (unsigned long long)(off + at), out->size + tail, size - out->at);
	out->next = out->at + out->size + tail;
	return LADE_OK;
}

lade_status lade__lz4f_decoded_size(const lade_stage *stage, const void *src, size_t size,
                                    uint64_t *decoded, lade_error *err)
{
	(void)stage;
	const uint8_t *in = src;
	uint64_t total = 0;
	if (!in)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
		                 "lz4f: the decoded size is in the data, which was not given");
	size_t off = 0;
	do {
		lade__lz4f_header h = {0};
		lade_status status = lade__lz4f_header_read(in + off, size - off, off, &h, err);
		if (status != LADE_OK)
			return status;
		if (h.kind == LADE__LZ4F_SKIPPABLE) {
			off += h.size;
			continue;
		}
		if (h.content_size > UINT64_MAX - 1 - total)
			return lade_fail(err, LADE_E_CORRUPT, off,
			                 "lz4f: the frames' content sizes overflow 64 bits at %zu",
			                 off);
		total += h.content_size;
		lade__lz4f_block b = {.next = h.size};
		do {
			status = lade__lz4f_block_read(&h, b.next, &b, err);
			if (status != LADE_OK)
				return status;
			/* Without a size, a frame with no block at all is known to be empty. */
			if (!b.end && !h.has_content_size)
				return lade_fail(
					err, LADE_E_UNKNOWN_SIZE, off,
					"lz4f: the frame at %zu does not state its content "
					"size",
					off);
		} while (!b.end);
		size_t tail = h.content_checksum ? 4 : 0;
		if (size - off - b.next < tail)
			return cut(off, b.next + tail, size - off, "content checksum", err);
		off += b.next + tail;
	} while (off < size);
	*decoded = total;
	return LADE_OK;
}
