/*
 * layout.h: the parts of a .lade frame as bytes (docs/format/frame.md), packed and parsed.
 *
 * Nothing here reads, writes or allocates, but for the list of pages in lade__index.  Parsers
 * are given the part's offset in the frame, for their errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_LAYOUT_H
#define LADE_FRAME_LAYOUT_H

#include "base/support.h"
#include "frame/format.h"

#include <lade/frame.h>

#include <string.h>

enum {
	LADE__FRAME_VERSION = 1,
	LADE__ALIGN = 16,
	LADE__HEADER_MIN = 64,
	LADE__HEADER_MAX = 4096,
	LADE__HEADER_FIXED = 40, /* before the shape */
	LADE__PART_HEADER = LADE_FRAME_HEADER, /* of a chunk, a page and the list */
	LADE__SPEC_MAX = 2048,
	LADE__PAGE_CHUNKS = LADE_FRAME_PAGE,
	LADE__ENTRY_SIZE = 8,
	LADE__PAGE_CAP = LADE__PART_HEADER + LADE__PAGE_CHUNKS * LADE__ENTRY_SIZE,
	LADE__FOOTER_SIZE = LADE_FRAME_FOOTER,
	LADE__BLOCK_MIN = 48, /* a chunk's header and the least payload */
};

_Static_assert(LADE_FRAME_CHUNK_MAX == LADE_CHUNK_MAX, "kernels take each chunk of a frame");

/* Rounded up to 16.  No caller comes near the end of the type: sizes are below 2^31 or
 * bounded by a file's size. */
static inline uint64_t lade__pad(uint64_t size)
{
	return (size + (LADE__ALIGN - 1)) & ~(uint64_t)(LADE__ALIGN - 1);
}

static inline uint64_t lade__div_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* Fails at the first byte of [p, p + size) that is not 0; 'off' is the first one's. */
lade_status lade__check_zero(const uint8_t *p, size_t size, uint64_t off, const char *what,
                             lade_error *err);

/* ---- header --------------------------------------------------------------------------- */

/* What the frame was written with.  'info.size' and 'info.encoded_size' are LADE_SIZE_UNKNOWN where
 * the header does not say. */
typedef struct lade__header {
	lade_frame_info info;
	lade_spec *spec; /* 'info.spec'; the owner unrefs it */
	size_t size;     /* bytes of the header */
	uint64_t check;
} lade__header;

/* The element's size, 1 without a type; 0 for a number that is no type. */
static inline size_t lade__element_size(lade_dtype dtype)
{
	return dtype == LADE_DTYPE_NONE ? 1 : lade_dtype_size(dtype);
}

/* Checks what does not come from a file: the options of a writer.  Fills 'header', its spec's
 * reference not taken. */
lade_status lade__header_make(const lade_frame_options *options, lade__header *header,
                              lade_error *err);

/* Writes 'header->size' bytes and sets 'header->check'. */
void lade__header_pack(lade__header *header, uint8_t *dst);

/* The header's size, from its first 16 bytes ('size' of them are there; fewer are an error). */
lade_status lade__header_size(const uint8_t *src, size_t size, size_t *header_size,
                              lade_error *err);

/* Parses all of it, 'size' being what lade__header_size() said.  On failure nothing is owned. */
lade_status lade__header_parse(const lade_engine *engine, const uint8_t *src, size_t size,
                               lade__header *header, lade_error *err);

/* ---- chunk ------------------------------------------------------------------------------ */

typedef struct lade__chunk {
	uint32_t size; /* of the payload */
	uint32_t decoded_size;
	uint16_t flags;
	uint16_t spec_size;
	uint64_t checksum;
} lade__chunk;

/* Bytes from the chunk's header to its payload, and to its end. */
static inline size_t lade__chunk_payload_off(const lade__chunk *chunk)
{
	return LADE__PART_HEADER + (size_t)lade__pad(chunk->spec_size);
}

static inline uint64_t lade__chunk_block_size(const lade__chunk *chunk)
{
	return lade__chunk_payload_off(chunk) + lade__pad(chunk->size);
}

/* Writes header and spec ('chunk->spec_size' bytes) with its padding. */
void lade__chunk_pack(const lade__chunk *chunk, uint64_t index, const void *spec, uint8_t *dst);

/* The spec's size, unchecked but for its limit, so that the caller can get at header and spec. */
lade_status lade__chunk_peek(const uint8_t src[LADE__PART_HEADER], uint64_t index, uint64_t off,
                             size_t *spec_size, lade_error *err);

/* Where a chunk is, and what is known of it: from the index, all but its checksum. */
typedef struct lade__located {
	uint64_t index, off;
	lade__chunk chunk;
} lade__located;

/* Parses header and spec (LADE__PART_HEADER + spec_size bytes) of a chunk whose decoded size is
 * known, or 0 where only its limit is, the frame's chunk size. */
lade_status lade__chunk_parse(const uint8_t *src, const lade__located *at,
                              const lade_frame_info *info, lade__chunk *out, lade_error *err);

/* Checks the fields that an entry of the index has too.  'off' is the chunk header's or entry's. */
lade_status lade__chunk_check(const lade__chunk *chunk, uint64_t index, uint64_t off,
                              lade_error *err);

/* ---- index ------------------------------------------------------------------------------ */

static inline size_t lade__page_size(uint32_t count)
{
	return (size_t)lade__pad(LADE__PART_HEADER + (uint64_t)count * LADE__ENTRY_SIZE);
}

static inline uint64_t lade__list_size(uint64_t page_count)
{
	return lade__pad(LADE__PART_HEADER + page_count * 8);
}

/*
 * The index as it grows with the chunks: a writer's, and what a pipe's reader compares with.
 * Zero-initialise, then set 'off' to the header's size and 'first_off' too.
 */
typedef struct lade__index {
	uint64_t off;         /* where the next part begins */
	uint64_t first_off;   /* of the first chunk of the page being filled */
	uint64_t chunk_count; /* so far */
	uint64_t total;       /* decoded bytes so far */
	uint32_t count;       /* entries in 'page' */
	uint64_t *pages;      /* offsets of the finished ones */
	size_t page_count, page_cap;
	uint8_t page[LADE__PAGE_CAP];
} lade__index;

void lade__index_reset(lade__index *index);

/* Notes the next chunk, whose header is at 'index->off'.  'count' is below LADE__PAGE_CHUNKS. */
void lade__index_add(lade__index *index, const lade__chunk *chunk);

/* Ends the page: 'index->page' is '*size' bytes that stand at the old 'index->off'. */
lade_status lade__index_page_end(lade__index *index, size_t *size, lade_error *err);

/* The list, lade__list_size() bytes; and the footer that follows it. */
void lade__index_list_pack(const lade__index *index, uint8_t *dst);
void lade__index_footer_pack(const lade__index *index, uint64_t header_check, uint8_t *dst);

/* Where a page is: its number, its entries, its offset and that of its first chunk. */
typedef struct lade__page_place {
	uint64_t number, off, first_off;
	uint32_t count;
} lade__page_place;

/* A page as a reader keeps it. */
typedef struct lade__page {
	uint64_t number;
	struct {
		uint64_t off; /* of the chunk's header */
		uint32_t size;
		uint16_t flags, spec_size;
	} entry[];
} lade__page;

/* 'out' has room for the entries. */
lade_status lade__page_parse(const uint8_t *src, const lade__page_place *at, lade__page *out,
                             lade_error *err);

/* What the footer says, checked against itself and the header. */
typedef struct lade__footer {
	uint64_t total, chunk_count, page_count, list_off;
} lade__footer;

/* 'frame_size' bytes are there, the footer's 64 the last of them. */
lade_status lade__footer_parse(const uint8_t src[LADE__FOOTER_SIZE], const lade__header *header,
                               uint64_t frame_size, lade__footer *out, lade_error *err);

/* The list: checks it and stores the pages' offsets ('footer->page_count' of them). */
lade_status lade__list_parse(const uint8_t *src, const lade__header *header,
                             const lade__footer *footer, uint64_t *pages, lade_error *err);

/* Entries in page 'number' of a frame of 'chunk_count' chunks. */
static inline uint32_t lade__page_entries(uint64_t number, uint64_t chunk_count)
{
	uint64_t left = chunk_count - number * LADE__PAGE_CHUNKS;
	return left < LADE__PAGE_CHUNKS ? (uint32_t)left : LADE__PAGE_CHUNKS;
}

#endif
