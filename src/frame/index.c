/*
 * index.c: the index pages, their list and the footer (docs/format/frame.md, sections 3 to 5).
 *
 * All parts tile the frame, so each size and offset has one right value, and every parser asks
 * for just that one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

/* The check of a page or the list: its first 24 bytes, and what follows its header. */
static uint64_t part_hash(const uint8_t *src, size_t body)
{
	return XXH64(src + LADE__PART_HEADER, body, XXH64(src, 24, 0));
}

/* ---- growing ------------------------------------------------------------------------------ */

void lade__index_reset(lade__index *index)
{
	free(index->pages);
	index->pages = NULL;
	index->page_count = index->page_cap = 0;
}

void lade__index_add(lade__index *index, const lade__chunk *chunk)
{
	uint8_t *entry = index->page + LADE__PART_HEADER + index->count * LADE__ENTRY_SIZE;
	lade__le_put(entry, chunk->size, 4);
	lade__le_put(entry + 4, chunk->flags, 2);
	lade__le_put(entry + 6, chunk->spec_size, 2);
	index->count++;
	index->chunk_count++;
	index->total += chunk->decoded_size;
	index->off += lade__chunk_block_size(chunk);
}

lade_status lade__index_page_end(lade__index *index, size_t *size, lade_error *err)
{
	if (index->page_count == index->page_cap) {
		size_t cap = index->page_cap ? index->page_cap * 2 : 16;
		uint64_t *pages = cap > SIZE_MAX / 16 ? NULL :
			realloc(index->pages, cap * sizeof *pages);
		if (!pages)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for the offsets of %zu index pages", cap);
		index->pages = pages;
		index->page_cap = cap;
	}
	uint8_t *page = index->page;
	size_t body = index->count * (size_t)LADE__ENTRY_SIZE;
	lade__le_put(page, LADE_FRAME_PAGE_MARK, 4);
	lade__le_put(page + 4, index->count, 4);
	lade__le_put(page + 8, index->chunk_count - index->count, 8);
	lade__le_put(page + 16, index->first_off, 8);
	lade__le_put(page + 24, part_hash(page, body), 8);
	*size = lade__page_size(index->count);
	memset(page + LADE__PART_HEADER + body, 0, *size - LADE__PART_HEADER - body);
	index->pages[index->page_count++] = index->off;
	index->off += *size;
	index->first_off = index->off;
	index->count = 0;
	return LADE_OK;
}

void lade__index_list_pack(const lade__index *index, uint8_t *dst)
{
	size_t body = index->page_count * 8;
	memset(dst, 0, (size_t)lade__list_size(index->page_count));
	lade__le_put(dst, LADE_FRAME_LIST_MARK, 4);
	lade__le_put(dst + 8, index->page_count, 8);
	lade__le_put(dst + 16, index->chunk_count, 8);
	for (size_t i = 0; i < index->page_count; i++)
		lade__le_put(dst + LADE__PART_HEADER + 8 * i, index->pages[i], 8);
	lade__le_put(dst + 24, part_hash(dst, body), 8);
}

void lade__index_footer_pack(const lade__index *index, uint64_t header_check, uint8_t *dst)
{
	memset(dst, 0, LADE__FOOTER_SIZE);
	lade__le_put(dst, LADE_FRAME_FOOT_MARK, 4);
	lade__le_put(dst + 8, index->total, 8);
	lade__le_put(dst + 16, index->chunk_count, 8);
	uint64_t frame_size = index->off + lade__list_size(index->page_count) + LADE__FOOTER_SIZE;
	lade__le_put(dst + 24, frame_size, 8);
	lade__le_put(dst + 32, header_check, 8);
	lade__le_put(dst + 48, XXH64(dst, 48, 0), 8);
	lade__le_put(dst + 56, LADE_FRAME_END, 8);
}

/* ---- reading ------------------------------------------------------------------------------ */

/* One field that has one right value. */
static lade_status want(uint64_t have, uint64_t right, uint64_t off, const char *part,
                        const char *field, lade_error *err)
{
	if (have == right)
		return LADE_OK;
	return lade_fail(err, LADE_E_CORRUPT, off,
	                 "%s at %" PRIu64 ": %s is %" PRIu64 ", want %" PRIu64, part, off, field,
	                 have, right);
}

/* Mark and XXH64 of a page or the list. */
static lade_status part_check(const uint8_t *src, uint32_t mark, size_t body, uint64_t off,
                              const char *part, lade_error *err)
{
	lade_status status = want(lade__le32(src), mark, off, part, "mark", err);
	if (status != LADE_OK)
		return status;
	uint64_t stored = lade__le64(src + 24), made = part_hash(src, body);
	if (stored != made)
		return lade_fail(err, LADE_E_CHECKSUM, off + 24,
		                 "%s at %" PRIu64 ": XXH64 %016" PRIx64
		                 " is stored, its bytes have %016" PRIx64,
		                 part, off, stored, made);
	return LADE_OK;
}

lade_status lade__page_parse(const uint8_t *src, const lade__page_place *place, lade__page *out,
                             lade_error *err)
{
	static const char part[] = "index page";
	const uint64_t off = place->off, number = place->number;
	const uint32_t count = place->count;
	size_t body = count * (size_t)LADE__ENTRY_SIZE;
	uint64_t first = number * LADE__PAGE_CHUNKS, at = place->first_off;
	lade_status status = part_check(src, LADE_FRAME_PAGE_MARK, body, off, part, err);
	if (status != LADE_OK)
		return status;
	if ((status = want(lade__le32(src + 4), count, off + 4, part, "entries", err)) ||
	    (status = want(lade__le64(src + 8), first, off + 8, part, "first chunk", err)) ||
	    (status = want(lade__le64(src + 16), at, off + 16, part, "first offset", err)))
		return status;
	size_t end = LADE__PART_HEADER + body;
	status = lade__check_zero(src + end, lade__page_size(count) - end, off + end, part, err);
	if (status != LADE_OK)
		return status;
	out->number = number;
	/* At most 4096 times 2^31 + 4096 bytes are added to an offset below 2^63: no overflow. */
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *entry = src + LADE__PART_HEADER + i * (size_t)LADE__ENTRY_SIZE;
		lade__chunk chunk = {.size = lade__le32(entry), .flags = lade__le16(entry + 4),
		                     .spec_size = lade__le16(entry + 6)};
		if (chunk.size == 0 || chunk.size > LADE_FRAME_CHUNK_MAX ||
		    chunk.spec_size > LADE__SPEC_MAX)
			return lade_fail(err, LADE_E_CORRUPT, off + end - body + i * 8u,
			                 "chunk %" PRIu64
			                 ": payload of %u and spec of %u bytes in the index",
			                 first + i, chunk.size, chunk.spec_size);
		out->entry[i].size = chunk.size;
		out->entry[i].flags = chunk.flags;
		out->entry[i].spec_size = chunk.spec_size;
		out->entry[i].off = at;
		at += lade__chunk_block_size(&chunk);
	}
	return want(at, off, off + 16, part, "the end of its chunks", err);
}

lade_status lade__footer_parse(const uint8_t src[LADE__FOOTER_SIZE], const lade__header *header,
                               uint64_t frame_size, lade__footer *out, lade_error *err)
{
	static const char part[] = "footer";
	uint64_t off = frame_size - LADE__FOOTER_SIZE;
	if (lade__le64(src + 56) != LADE_FRAME_END)
		return lade_fail(err, LADE_E_TRUNCATED, frame_size,
		                 "the %" PRIu64
		                 " bytes do not end with a frame's footer: some are missing, "
		                 "or others follow it",
		                 frame_size);
	lade_status status = want(lade__le32(src), LADE_FRAME_FOOT_MARK, off, part, "mark", err);
	if (status != LADE_OK)
		return status;
	uint64_t stored = lade__le64(src + 48), made = XXH64(src, 48, 0);
	if (stored != made)
		return lade_fail(err, LADE_E_CHECKSUM, off + 48,
		                 "footer at %" PRIu64 ": XXH64 %016" PRIx64
		                 " is stored, its bytes have %016" PRIx64,
		                 off, stored, made);
	out->total = lade__le64(src + 8);
	out->chunk_count = lade__le64(src + 16);
	if ((status = lade__check_zero(src + 4, 4, off + 4, part, err)) ||
	    (status = lade__check_zero(src + 40, 8, off + 40, part, err)) ||
	    (status = want(lade__le64(src + 24), frame_size, off + 24, part, "frame size", err)) ||
	    (status = want(lade__le64(src + 32), header->check, off + 32, part, "header's XXH64",
	                   err)))
		return status;
	const lade_frame_info *info = &header->info;
	if (out->total == LADE_SIZE_UNKNOWN)
		return lade_fail(err, LADE_E_CORRUPT, off + 8,
		                 "footer at %" PRIu64 ": no total size", off);
	if (info->size != LADE_SIZE_UNKNOWN &&
	    (status = want(out->total, info->size, off + 8, part, "total size", err)))
		return status;
	status = want(out->chunk_count, lade__div_up(out->total, info->chunk_size), off + 16, part,
	              "chunks", err);
	if (status != LADE_OK)
		return status;
	/* Before anything is multiplied: the chunks claimed fit the frame. */
	if (out->chunk_count > frame_size / LADE__BLOCK_MIN)
		return lade_fail(err, LADE_E_CORRUPT, off + 16,
		                 "footer at %" PRIu64 ": %" PRIu64 " chunks in a frame of %" PRIu64
		                 " bytes",
		                 off, out->chunk_count, frame_size);
	out->page_count = lade__div_up(out->chunk_count, LADE__PAGE_CHUNKS);
	uint64_t list = lade__list_size(out->page_count);
	if (list > frame_size - LADE__FOOTER_SIZE - header->size)
		return lade_fail(err, LADE_E_CORRUPT, off + 16,
		                 "footer at %" PRIu64 ": a list of %" PRIu64
		                 " bytes in a frame of %" PRIu64,
		                 off, list, frame_size);
	out->list_off = off - list;
	return LADE_OK;
}

lade_status lade__list_parse(const uint8_t *src, const lade__header *header,
                             const lade__footer *footer, uint64_t *pages, lade_error *err)
{
	static const char part[] = "list of pages";
	uint64_t off = footer->list_off;
	size_t body = (size_t)footer->page_count * 8, end = LADE__PART_HEADER + body;
	lade_status status = part_check(src, LADE_FRAME_LIST_MARK, body, off, part, err);
	if (status != LADE_OK)
		return status;
	if ((status = lade__check_zero(src + 4, 4, off + 4, part, err)) ||
	    (status =
	             want(lade__le64(src + 8), footer->page_count, off + 8, part, "pages", err)) ||
	    (status = want(lade__le64(src + 16), footer->chunk_count, off + 16, part, "chunks",
	                   err)) ||
	    (status = lade__check_zero(src + end, (size_t)lade__list_size(footer->page_count) - end,
	                               off + end, part, err)))
		return status;
	/* 'at' is where the chunks of page i begin; none of the sums passes list_off by more than
	 * one page. */
	uint64_t at = header->size;
	for (uint64_t i = 0; i < footer->page_count; i++) {
		uint32_t count = lade__page_entries(i, footer->chunk_count);
		uint64_t page = lade__le64(src + LADE__PART_HEADER + 8 * i);
		uint64_t least = at + (uint64_t)count * LADE__BLOCK_MIN;
		if (page % LADE__ALIGN || page < least || page > off)
			return lade_fail(err, LADE_E_CORRUPT, off + LADE__PART_HEADER + 8 * i,
			                 "index page %" PRIu64 ": offset %" PRIu64
			                 " is not a multiple of 16 from %" PRIu64 " to %" PRIu64,
			                 i, page, least, off);
		pages[i] = page;
		at = page + lade__page_size(count);
	}
	return want(off, at, off, part, "its offset", err);
}
