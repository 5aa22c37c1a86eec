/*
 * bare.c: encoded bytes without a container (docs/format/bare.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/layout.h"

#include "base/try.h"

#include <inttypes.h>

/* Bytes of the size field, and from the first byte to RAW. */
static lade_status bare_sizes(const lade_spec *spec, lade_bare kind, size_t *field, size_t *head,
                              lade_error *err)
{
	*field = *head = 0;
	if (!spec)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "spec is NULL");
	const lade_stage *last = lade_spec_stage(spec, lade_spec_count(spec) - 1);
	*field = strcmp(last->algorithm->name, "lz4") == 0 ? 4 : 8;
	switch (kind) {
	case LADE_BARE_RAW:
		*field = *head = 0;
		return LADE_OK;
	case LADE_BARE_WITH_SIZE:
		*head = *field;
		return LADE_OK;
	case LADE_BARE_WITH_SIZE_16:
		*head = 16;
		return LADE_OK;
	}
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "bare kind %d is unknown", (int)kind);
}

static lade_status check_span(const void *data, size_t size, lade_place place, const char *what,
                              lade_error *err)
{
	if (!data && size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL and has %zu bytes",
		                 what, size);
	return lade__place_check(place, what, err);
}

lade_status lade_bare_encode(lade_engine *engine, const lade_spec *spec, lade_bare kind,
                             lade_cspan src, lade_span dst, size_t *dst_size, lade_error *err)
{
	size_t field, head;
	lade_status status;
	if (!engine || !dst_size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 engine ? "dst_size" : "engine");
	*dst_size = 0;
	TRY(bare_sizes(spec, kind, &field, &head, err));
	TRY(check_span(src.data, src.size, src.place, "src", err));
	TRY(check_span(dst.data, dst.size, dst.place, "dst", err));
	if (dst.size < head)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "%zu bytes of head, the destination has %zu", head, dst.size);
	if (field == 4 && src.size > UINT32_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%zu bytes, a size field of 4 bytes holds %" PRIu32, src.size,
		                 UINT32_MAX);
	uint8_t *to = dst.data;
	if (head) {
		memset(to, 0, head);
		lade__le_put(to, src.size, field);
		to += head;
	}
	TRY(lade_encode(engine, spec, src.data, src.size, to, dst.size - head, dst_size, err));
	*dst_size += head;
out:
	return status;
}

/* Checks what stands before RAW; '*size' is LADE_SIZE_UNKNOWN for kind RAW. */
static lade_status read_head(const lade_spec *spec, lade_bare kind, lade_cspan src, size_t *head,
                             uint64_t *size, lade_error *err)
{
	size_t field;
	lade_status status;
	TRY(bare_sizes(spec, kind, &field, head, err));
	TRY(check_span(src.data, src.size, src.place, "src", err));
	if (src.size < *head)
		return lade_fail(err, LADE_E_TRUNCATED, src.size,
		                 "the size field ends at %zu, the bytes at %zu", *head, src.size);
	*size = LADE_SIZE_UNKNOWN;
	if (*head) {
		const uint8_t *p = src.data;
		*size = field == 4 ? lade__le32(p) : lade__le64(p);
		status = lade__check_zero(p + field, *head - field, field, "behind the size", err);
	}
out:
	return status;
}

lade_status lade_bare_decode(lade_engine *engine, const lade_spec *spec, lade_bare kind,
                             lade_cspan src, lade_span dst, size_t *dst_size, lade_error *err)
{
	size_t head;
	uint64_t size;
	lade_status status;
	if (!engine || !dst_size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 engine ? "dst_size" : "engine");
	*dst_size = 0;
	TRY(read_head(spec, kind, src, &head, &size, err));
	TRY(check_span(dst.data, dst.size, dst.place, "dst", err));
	if (head && size > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, 0,
		                 "%" PRIu64 " bytes are claimed, the destination has %zu", size,
		                 dst.size);
	size_t cap = head ? (size_t)size : dst.size, got = 0;
	const uint8_t *raw = head ? (const uint8_t *)src.data + head : src.data;
	status = lade_decode(engine, spec, raw, src.size - head, dst.data, cap, &got, err);
	if (status == LADE_OK && head && got != size)
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "%" PRIu64 " bytes are claimed, the data has %zu", size, got);
	if (status == LADE_E_NOSPACE && head)
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "%" PRIu64 " bytes are claimed, the data has more", size);
	if (status != LADE_OK && err && err->offset != LADE_NO_OFFSET)
		err->offset += head;
	if (status == LADE_OK)
		*dst_size = got;
out:
	return status;
}

lade_status lade_bare_decoded_size(lade_engine *engine, const lade_spec *spec, lade_bare kind,
                                   lade_cspan src, uint64_t *size, lade_error *err)
{
	size_t head;
	if (!engine || !size)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 engine ? "size" : "engine");
	lade_status status = read_head(spec, kind, src, &head, size, err);
	if (status != LADE_OK || head)
		return status;
	lade_segment segment = {.data = src.data, .size = src.size};
	lade_item item = {.src = &segment, .src_count = 1};
	return lade_decoded_sizes(engine, spec, &item, 1, size, NULL, err);
}
