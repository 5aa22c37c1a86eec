/*
 * parse.c: the header of the ANS format (docs/format/ans.md, section 2).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "codec/ans/ans.h"

static lade_status corrupt(lade_error *err, uint64_t off, const char *what, unsigned long long have,
                           unsigned long long most)
{
	return lade_fail(err, LADE_E_CORRUPT, off, "ans: %s is %llu, want at most %llu", what, have,
	                 most);
}

static lade_status cut(lade_error *err, size_t size, const char *what, uint64_t want)
{
	return lade_fail(err, LADE_E_TRUNCATED, size, "ans: %s needs %llu bytes, have %zu", what,
	                 (unsigned long long)want, size);
}

/* Raw and constant chunks: the whole size is known. */
static lade_status parse_simple(const uint8_t *src, size_t size, const lade__ans_info *info,
                                lade_error *err)
{
	uint64_t value = lade__le64(src + ANS_AT_VALUE);
	uint64_t want = ANS_HEADER;
	if (src[ANS_AT_BLOCK])
		return corrupt(err, ANS_AT_BLOCK, "a reserved byte", src[ANS_AT_BLOCK], 0);
	if (info->kind == ANS_RAW) {
		if (value)
			return corrupt(err, ANS_AT_VALUE, "a reserved number", value, 0);
		want += info->size;
	} else if (info->width < 8 && value >> 8 * info->width) {
		return corrupt(err, ANS_AT_VALUE, "the value", value,
		               ((uint64_t)1 << 8 * info->width) - 1);
	}
	if (size < want)
		return cut(err, size, "the chunk", want);
	if (size > want)
		return lade_fail(err, LADE_E_CORRUPT, want,
		                 "ans: the chunk needs %llu bytes, have %zu",
		                 (unsigned long long)want, size);
	return LADE_OK;
}

/* The modes of the byte positions; adds up the words of the tables. */
static lade_status parse_planes(const uint8_t *src, lade__ans_info *info, uint32_t *words,
                                lade_error *err)
{
	*words = 0;
	for (unsigned p = 0; p < info->width; p++) {
		size_t at = ANS_AT_PLANES + 2 * (size_t)p;
		unsigned mode = src[at], value = src[at + 1];
		info->mode[p] = mode;
		info->value[p] = value;
		if (mode > ANS_PLANE_CODED)
			return corrupt(err, at, "a byte position's mode", mode, ANS_PLANE_CODED);
		if (mode == ANS_PLANE_RAW && value)
			return corrupt(err, at + 1, "a reserved byte", value, 0);
		if (mode == ANS_PLANE_CODED && value > ANS_TABLE_WORDS_MAX)
			return corrupt(err, at + 1, "a table's size in words", value,
			               ANS_TABLE_WORDS_MAX);
		info->raw += mode == ANS_PLANE_RAW;
		info->coded += mode == ANS_PLANE_CODED;
		*words += mode == ANS_PLANE_CODED ? value : 0;
	}
	if (info->coded << info->bits > ANS_ENTRIES_MAX)
		return corrupt(err, ANS_AT_BITS, "the number of tables' entries",
		               info->coded << info->bits, ANS_ENTRIES_MAX);
	return LADE_OK;
}

static lade_status parse_coded(const uint8_t *src, size_t size, lade__ans_info *info,
                               lade_error *err)
{
	lade_status status;
	uint32_t words, unit = info->width * ANS_UNIT;
	unsigned log = src[ANS_AT_BLOCK];
	info->rows = src[ANS_AT_ROWS];
	info->bits = src[ANS_AT_BITS];
	if (log < ANS_BLOCK_LOG_MIN || log > ANS_BLOCK_LOG_MAX)
		return lade_fail(err, LADE_E_CORRUPT, ANS_AT_BLOCK,
		                 "ans: sub-blocks of 2^%u bytes, want 2^%d to 2^%d", log,
		                 ANS_BLOCK_LOG_MIN, ANS_BLOCK_LOG_MAX);
	if (info->bits < ANS_BITS_MIN || info->bits > ANS_BITS_MAX)
		return lade_fail(err, LADE_E_CORRUPT, ANS_AT_BITS,
		                 "ans: tables of 2^%u states, want 2^%d to 2^%d", info->bits,
		                 ANS_BITS_MIN, ANS_BITS_MAX);
	info->block = (uint32_t)1 << log;
	info->tail = info->size % unit;
	if (info->size < unit)
		return lade_fail(err, LADE_E_CORRUPT, ANS_AT_SIZE,
		                 "ans: a coded chunk of %u bytes, want at least %u", info->size,
		                 unit);
	info->block_count = (info->size - info->tail + info->block - 1) / info->block;
	info->directory = (ANS_AT_PLANES + 2 * info->width + 3) / 4 * 4;
	info->tables = info->directory + 4 * (info->block_count + 1);
	if (size < info->tables)
		return cut(err, size, "the directory", info->tables);
	TRY(parse_planes(src, info, &words, err));
	uint32_t most = ANS_ROWS_OF(info->block, info->width, info->coded, info->bits);
	if (info->rows > most)
		return corrupt(err, ANS_AT_ROWS, "the words of a lane", info->rows, most);
	uint32_t first = lade__le32(src + info->directory);
	uint32_t last = lade__le32(src + info->tables - 4);
	uint32_t body = (info->tables + 4 * words + 15) / 16;
	if (size < (size_t)body * 16)
		return cut(err, size, "the tables", (uint64_t)body * 16);
	if ((first & (((uint32_t)1 << ANS_OFF_BITS) - 1)) != body)
		return lade_fail(err, LADE_E_CORRUPT, info->directory,
		                 "ans: sub-block 0 begins at %u times 16 bytes, want %u",
		                 first & (((uint32_t)1 << ANS_OFF_BITS) - 1), body);
	if (!(last >> ANS_OFF_BITS) && (uint64_t)last * 16 + info->tail > size)
		return cut(err, size, "the chunk", (uint64_t)last * 16 + info->tail);
	if (last >> ANS_OFF_BITS || (uint64_t)last * 16 + info->tail < size)
		return lade_fail(err, LADE_E_CORRUPT, info->tables - 4,
		                 "ans: the chunk ends at %llu bytes, have %zu",
		                 (unsigned long long)last * 16 + info->tail, size);
	return LADE_OK;
out:
	return status;
}

lade_status lade__ans_parse(const uint8_t *src, size_t size, lade__ans_info *info, lade_error *err)
{
	*info = (lade__ans_info){0};
	if (size < ANS_HEADER)
		return cut(err, size, "the header", ANS_HEADER);
	if (src[0] != ANS_VERSION)
		return lade_fail(err, LADE_E_CORRUPT, 0, "ans: version %u, want %d", src[0],
		                 ANS_VERSION);
	info->kind = src[ANS_AT_KIND];
	info->size = lade__le32(src + ANS_AT_SIZE);
	if (info->kind > ANS_CODED)
		return corrupt(err, ANS_AT_KIND, "the chunk's kind", info->kind, ANS_CODED);
	unsigned width_log = src[ANS_AT_FORM];
	info->crossed = info->kind == ANS_CODED && width_log == (ANS_CROSSED | 1);
	width_log -= info->crossed ? ANS_CROSSED : 0;
	if (width_log > ANS_WIDTH_LOG_MAX)
		return corrupt(err, ANS_AT_FORM, "the element's width, as a power of two,",
		               width_log, ANS_WIDTH_LOG_MAX);
	if (info->size > ANS_SIZE_MAX)
		return corrupt(err, ANS_AT_SIZE, "the decoded size", info->size, ANS_SIZE_MAX);
	info->width = 1U << width_log;
	if (info->kind == ANS_CODED)
		return parse_coded(src, size, info, err);
	return parse_simple(src, size, info, err);
}
