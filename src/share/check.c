/*
 * check.c: each value of an array that leads elsewhere (docs/format/share.md, section 3).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/column.h"

#include "base/support.h"
#include "base/try.h"
#include "share/job.h"

#include <string.h>

static lade_status wrong(const lade__column *c, const char *what, int64_t at, int64_t value,
                         lade_error *err)
{
	return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
	                 "'%.60s' of format '%.30s': %s of value %lld: %lld", c->node->name,
	                 c->node->format, what, (long long)at, (long long)value);
}

static bool is_null(const lade__column *c, int64_t i)
{
	return c->buffers[0].data && !lade__bit(c->buffers[0].data, (uint64_t)(c->off + i));
}

/* ---- UTF-8 ------------------------------------------------------------------------------ */

/* The bytes of the character at 'p', of at most 'left'; 0: it is none. */
static size_t character(const uint8_t *p, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t size = p[0] < 0x80       ? 1
	              : p[0] >> 5 == 6  ? 2
	              : p[0] >> 4 == 14 ? 3
	              : p[0] >> 3 == 30 ? 4
	                                : 0;

	if (size < 2 || size > left)
		return size == 1 ? 1 : 0;
	uint32_t code = p[0] & (0x7Fu >> size);
	for (size_t i = 1; i < size; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		code = code << 6 | (p[i] & 63u);
	}
	return code >= least[size] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF) ? size
	                                                                                   : 0;
}

static bool is_utf8(const uint8_t *p, size_t size)
{
	for (size_t at = 0; at < size;) {
		uint64_t eight;
		if (size - at >= 8 && (memcpy(&eight, p + at, 8), !(eight & 0x8080808080808080u))) {
			at += 8;
			continue;
		}
		size_t one = character(p + at, size - at);
		if (!one)
			return false;
		at += one;
	}
	return true;
}

/* ---- layouts ---------------------------------------------------------------------------- */

static lade_status check_offsets(const lade__column *c, lade_error *err)
{
	size_t width = c->node->type.width;
	const uint8_t *offsets = c->buffers[1].data;
	int64_t before = lade__element(offsets, width, (uint64_t)c->off);
	int64_t limit = lade__element(offsets, width, (uint64_t)(c->off + c->length));

	/* The first is not negative, the last not too large: column.c. */
	for (int64_t i = 0; i < c->length; i++) {
		int64_t next = lade__element(offsets, width, (uint64_t)(c->off + i + 1));
		if (next < before || next > limit)
			return wrong(c, "the end", i, next, err);
		if (c->node->type.utf8 && next > before && !is_null(c, i) &&
		    !is_utf8(c->buffers[2].data + before, (size_t)(next - before)))
			return wrong(c, "not UTF-8: the offset", i, before, err);
		before = next;
	}
	return LADE_OK;
}

static lade_status check_views(const lade__column *c, lade_error *err)
{
	for (int64_t i = 0; i < c->length; i++) {
		const uint8_t *view = c->buffers[1].data + 16 * (c->off + i), *string = view + 4;
		uint32_t size = lade__le32(view), buffer = lade__le32(view + 8);
		uint32_t off = lade__le32(view + 12);
		if (is_null(c, i))
			continue;
		if (size > LADE__VIEW_INLINE) {
			if (size > INT32_MAX || buffer >= c->buffer_count - 3)
				return wrong(c, "the buffer", i, buffer, err);
			/* Of the sizes, which are not larger than the buffers. */
			uint64_t all = (uint64_t)lade__element(c->buffers[c->buffer_count - 1].data,
			                                       8, buffer);
			if (off > all || size > all - off)
				return wrong(c, "the offset", i, off, err);
			string = c->buffers[2 + buffer].data + off;
			if (memcmp(string, view + 4, 4))
				return wrong(c, "the prefix", i, lade__le32(view + 4), err);
		}
		if (c->node->type.utf8 && !is_utf8(string, size))
			return wrong(c, "not UTF-8: the size", i, size, err);
	}
	return LADE_OK;
}

static lade_status check_list_view(const lade__column *c, lade_error *err)
{
	size_t width = c->node->type.width;
	int64_t limit = c->children[0]->length;

	for (int64_t i = 0; i < c->length; i++) {
		uint64_t at = (uint64_t)(c->off + i);
		int64_t off = lade__element(c->buffers[1].data, width, at);
		int64_t size = lade__element(c->buffers[2].data, width, at);
		if (!is_null(c, i) && (off < 0 || size < 0 || off > limit || size > limit - off))
			return wrong(c, "the range", i, off, err);
	}
	return LADE_OK;
}

static lade_status check_union(const lade__column *c, lade_error *err)
{
	bool dense = c->node->type.layout == LADE__AS_DENSE;

	for (int64_t i = c->off; i < c->off + c->length; i++) {
		int8_t id = (int8_t)c->buffers[0].data[i];
		int8_t child = id < 0 ? -1 : c->node->type.child_of[id];
		if (child < 0)
			return wrong(c, "the type id", i, id, err);
		if (!dense)
			continue;
		int64_t off = lade__element(c->buffers[1].data, 4, (uint64_t)i);
		if (off < 0 || off >= c->children[child]->length)
			return wrong(c, "the offset", i, off, err);
	}
	return LADE_OK;
}

static lade_status check_runs(const lade__column *c, lade_error *err)
{
	const lade__column *ends = c->children[0];
	int64_t before = 0;

	for (int64_t i = 0; i < ends->length; i++) {
		int64_t end = lade__element(ends->buffers[1].data, ends->node->type.width,
		                            (uint64_t)(ends->off + i));
		if (end <= before)
			return wrong(c, "the run end", i, end, err);
		before = end;
	}
	return LADE_OK;
}

static uint64_t index_at(const lade__column *c, uint64_t at)
{
	const uint8_t *p = c->buffers[1].data + at * c->node->type.width;

	switch (c->node->type.width) {
	case 1:
		return c->node->type.is_signed ? (uint64_t)(int8_t)*p : *p;
	case 2:
		return c->node->type.is_signed ? (uint64_t)lade__element(p, 2, 0) : lade__le16(p);
	case 4:
		return c->node->type.is_signed ? (uint64_t)lade__element(p, 4, 0) : lade__le32(p);
	default:
		return (uint64_t)lade__element(p, 8, 0);
	}
}

static lade_status check_indices(const lade__column *c, lade_error *err)
{
	for (int64_t i = 0; i < c->length; i++) {
		uint64_t index = index_at(c, (uint64_t)(c->off + i));
		if (!is_null(c, i) && index >= (uint64_t)c->dictionary->length)
			return wrong(c, "the index", i, (int64_t)index, err);
	}
	return lade__column_check(c->dictionary, err);
}

lade_status lade__column_check(const lade__column *c, lade_error *err)
{
	lade__layout l = c->node->type.layout;
	lade_status status = LADE_OK;

	if (l != LADE__AS_NULLS && c->buffer_count && c->null_count >= 0 && l != LADE__AS_SPARSE &&
	    l != LADE__AS_DENSE && c->buffers[0].data) {
		uint64_t nulls = lade__count_nulls(c->buffers[0].data, (uint64_t)c->off,
		                                   (uint64_t)c->length);
		if (nulls != (uint64_t)c->null_count)
			return wrong(c, "the null count, and nulls", (int64_t)nulls, c->null_count,
			             err);
	}
	if (l == LADE__AS_BYTES || l == LADE__AS_LIST)
		TRY(check_offsets(c, err));
	if (l == LADE__AS_VIEWS)
		TRY(check_views(c, err));
	if (l == LADE__AS_LISTVIEW)
		TRY(check_list_view(c, err));
	if (l == LADE__AS_SPARSE || l == LADE__AS_DENSE)
		TRY(check_union(c, err));
	if (l == LADE__AS_RUNS)
		TRY(check_runs(c, err));
	if (c->dictionary)
		TRY(check_indices(c, err));
	for (size_t i = 0; i < c->node->child_count; i++)
		TRY(lade__column_check(c->children[i], err));
out:
	return status;
}
