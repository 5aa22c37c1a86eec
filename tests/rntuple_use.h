/*
 * rntuple_use.h: reads whatever an RNTuple says it has, and checks what must hold for any input:
 * statuses have messages, offsets do not decrease, and no page was read whose checksum is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_RNTUPLE_USE_H
#define LADE_TESTS_RNTUPLE_USE_H

#include "rntuple_kit.h"

#include <lade/rntuple.h>

#include <stdlib.h>

enum { USE_RESULT_MAX = 1 << 22, USE_COLUMNS = 64, USE_PAGES = 1000 };

static inline void use_expect(bool good)
{
	if (!good)
		abort();
}

static inline bool use_good(lade_status status, const lade_error *err)
{
	use_expect(status == LADE_OK || (err->status == status && err->message[0]));
	use_expect(status != LADE_E_INTERNAL);
	return status == LADE_OK;
}

/* Offsets do not decrease, booleans are 0 or 1, and alternatives are there. */
static inline void use_check(const lade_rntuple *t, const lade_rntuple_column *c,
                             const uint8_t *data, uint64_t count)
{
	const lade_rntuple_field *f = lade_rntuple_field_at(t, c->field), *child;
	uint64_t children = 0;
	for (uint64_t i = c->field + 1; (child = lade_rntuple_field_at(t, i)); i++)
		children += child->parent == c->field;
	bool variant = c->kind == LADE_RNTUPLE_SWITCH && f->role == LADE_RNTUPLE_VARIANT;
	for (uint64_t i = 0; variant && !f->projected && i < count; i++)
		use_expect(lade__le32(data + 12 * i + 8) <= children);
	for (uint64_t i = 0; c->kind == LADE_RNTUPLE_OFFSETS && i < count; i++)
		use_expect(lade__le64(data + 8 * i) <= lade__le64(data + 8 * (i + 1)));
	for (uint64_t i = 0; c->dtype == LADE_B1 && i < count; i++)
		use_expect(data[i] <= 1);
}

static inline bool use_part(lade_rntuple *t, uint64_t column, lade_rntuple_part part,
                            uint32_t flags)
{
	const lade_rntuple_column *c = lade_rntuple_column_at(t, column);
	lade_rntuple_read_options options = {
		.struct_size = sizeof options, .flags = flags, .memory = 1000, .threads = 1};
	lade_rntuple_report report = {.struct_size = sizeof report};
	lade_error err = {.status = LADE_OK};
	if (part.count > USE_RESULT_MAX / c->elem_size)
		return false;
	/* No larger than it must be, so that a sanitizer sees what is written behind it. */
	size_t size = (size_t)(part.count + (c->kind == LADE_RNTUPLE_OFFSETS)) * c->elem_size;
	uint8_t *to = malloc(size + !size);
	use_expect(to);
	lade_rntuple_target target = {column, part.first, part.count, lade_host_span(to, size)};
	bool good = use_good(lade_rntuple_read(t, &target, 1, &options, &report, &err), &err);
	if (good)
		use_check(t, c, to, part.count);
	free(to);
	return good;
}

/* Pages of a column that was read: the checksum of each is right.  Those in several keys are not
 * looked at. */
static inline void use_pages(const lade_rntuple *t, uint64_t column, const uint8_t *data,
                             size_t size)
{
	lade_error err = {.status = LADE_OK};
	for (uint64_t k = 0; k < lade_rntuple_about(t)->cluster_count && k < USE_PAGES; k++) {
		uint64_t count = lade_rntuple_page_count(t, column, k);
		for (uint64_t i = 0; i < count && i < USE_PAGES; i++) {
			lade_rntuple_page page = {.struct_size = sizeof page};
			use_expect(lade_rntuple_page_at(t, column, k, i, &page, &err) == LADE_OK);
			if (!page.checksum || page.count == 0 || page.off > size ||
			    page.stored_size + 8 > size - page.off)
				continue;
			const uint8_t *at = data + page.off;
			size_t own = (size_t)page.stored_size;
			use_expect(lade_checksum_of(LADE_XXH3, at, own) == lade__le64(at + own));
		}
	}
}

/* 'keys': payloads may be in several of them. */
static inline void use_tuple(lade_rntuple *t, const uint8_t *data, size_t size, bool keys,
                             uint32_t flags)
{
	const lade_rntuple_info *info = lade_rntuple_about(t);
	lade_error err = {.status = LADE_OK};
	const lade_rntuple_field *f;
	lade_rntuple_read_options options = {
		.struct_size = sizeof options, .flags = flags, .threads = 1};
	for (uint64_t i = 0; (f = lade_rntuple_field_at(t, i)); i++) {
		uint64_t column;
		use_expect(f->parent <= i && strlen(f->path) >= strlen(f->name));
		use_good(lade_rntuple_find(t, f->path, &column, &err), &err);
	}
	for (uint64_t i = 0; i < info->column_count && i < USE_COLUMNS; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(t, i);
		uint64_t n = info->entry_count;
		lade_rntuple_part part = {n / 3, n / 2}, own;
		bool all = use_part(t, i, (lade_rntuple_part){0, c->element_count}, flags);
		if (all && !keys && !(flags & LADE_RNTUPLE_IGNORE_CHECKSUMS))
			use_pages(t, i, data, size);
		if (use_good(lade_rntuple_elements(t, i, part, &options, &own, &err), &err))
			use_part(t, i, own, flags);
	}
}

/* Opens a file's only RNTuple; NULL: it is refused. */
static inline lade_rntuple *use_open(const uint8_t *data, size_t size)
{
	lade_source source;
	lade_rntuple *tuple = NULL;
	lade_error err = {.status = LADE_OK};
	lade_rntuple_options options = {.struct_size = sizeof options, .metadata_max = 1 << 24};
	use_expect(lade_source_memory_open(lade_host_cspan(data, size), &source, &err) == LADE_OK);
	if (!use_good(lade_rntuple_open(source, &options, &tuple, &err), &err))
		lade_source_close(source);
	return tuple;
}

/* Whether an anchor of a file says that large payloads are in several keys. */
static inline bool use_has_keys(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size; at++) {
		at += kit_anchor(data + at, size - at);
		if (at < size && kit_be(data + at + 62, 8) - 1 < size)
			return true;
	}
	return false;
}

#endif
