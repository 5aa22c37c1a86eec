/*
 * fuzz_rntuple.c: a ROOT file: its schema, its columns whole, and the elements of some entries.
 * The checksums of metadata are made right first; those of pages are verified or not by the size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple_kit.h"

#include <lade/rntuple.h>

#include <stdlib.h>

enum { RESULT_MAX = 1 << 22, COLUMNS = 64 };

static void expect(bool good)
{
	if (!good)
		abort();
}

static bool good(lade_status status, const lade_error *err)
{
	expect(status == LADE_OK || (err->status == status && err->message[0]));
	expect(status != LADE_E_INTERNAL);
	return status == LADE_OK;
}

/* Offsets do not decrease, and booleans are 0 or 1. */
static void check(const lade_rntuple_column *c, const uint8_t *data, uint64_t count)
{
	for (uint64_t i = 0; c->kind == LADE_RNTUPLE_OFFSETS && i < count; i++)
		expect(lade__le64(data + 8 * i) <= lade__le64(data + 8 * (i + 1)));
	for (uint64_t i = 0; c->dtype == LADE_B1 && i < count; i++)
		expect(data[i] <= 1);
}

static void read_part(lade_rntuple *t, uint64_t column, lade_rntuple_part part, uint32_t flags)
{
	const lade_rntuple_column *c = lade_rntuple_column_at(t, column);
	lade_rntuple_read_options options = {
		.struct_size = sizeof options, .flags = flags, .memory = 1000};
	lade_rntuple_report report = {.struct_size = sizeof report};
	lade_error err = {.status = LADE_OK};
	if (part.count > RESULT_MAX / c->elem_size)
		return;
	/* No larger than it must be, so that a sanitizer sees what is written behind it. */
	size_t size = (size_t)(part.count + (c->kind == LADE_RNTUPLE_OFFSETS)) * c->elem_size;
	uint8_t *to = malloc(size + !size);
	expect(to);
	lade_rntuple_target target = {column, part.first, part.count, lade_host_span(to, size)};
	if (good(lade_rntuple_read(t, &target, 1, &options, &report, &err), &err))
		check(c, to, part.count);
	free(to);
}

static void use(lade_rntuple *t, uint32_t flags)
{
	const lade_rntuple_info *info = lade_rntuple_about(t);
	lade_error err = {.status = LADE_OK};
	const lade_rntuple_field *f;
	for (uint64_t i = 0; (f = lade_rntuple_field_at(t, i)); i++) {
		uint64_t column;
		expect(f->parent <= i && strlen(f->path) >= strlen(f->name));
		good(lade_rntuple_find(t, f->path, &column, &err), &err);
	}
	for (uint64_t i = 0; i < info->column_count && i < COLUMNS; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(t, i);
		uint64_t n = info->entry_count;
		lade_rntuple_part part = {n / 3, n / 2}, own;
		read_part(t, i, (lade_rntuple_part){0, c->element_count}, flags);
		if (good(lade_rntuple_elements(t, i, part, NULL, &own, &err), &err))
			read_part(t, i, own, flags);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	lade_source source;
	lade_rntuple *tuple;
	lade_error err = {.status = LADE_OK};
	lade_rntuple_options options = {.struct_size = sizeof options, .metadata_max = 1 << 24};
	uint8_t *own = malloc(size + !size);
	expect(own);
	if (size)
		memcpy(own, data, size);
	kit_reseal(own, size, kit_anchor(own, size));
	expect(lade_source_memory_open(lade_host_cspan(own, size), &source, &err) == LADE_OK);
	if (good(lade_rntuple_open(source, &options, &tuple, &err), &err)) {
		use(tuple, size % 2 ? LADE_RNTUPLE_IGNORE_CHECKSUMS : 0);
		lade_rntuple_unref(tuple);
	} else {
		lade_source_close(source);
	}
	free(own);
	return 0;
}
