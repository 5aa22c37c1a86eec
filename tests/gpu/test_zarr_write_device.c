/*
 * test_zarr_write_device.c: sources of writes on every place, on the emulated device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/device.h"
#include "gpu/emulated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "zarr_kit.h"

enum { PLACES = 5, ROWS = 50, COLUMNS = 40, GAP = 3 };
static const lade_place places[PLACES] = {
	{LADE_HOST, 0}, {LADE_PINNED, 0}, {LADE_MANAGED, 0}, {LADE_DEVICE, 0}, {LADE_DEVICE, 1}};

static void *copy_to(lade_place place, const void *data, size_t size)
{
	const lade_allocator *a = lade_allocator_default(place.kind);
	void *p = a->alloc(a->ctx, size, 256, place, NULL);
	lade__device *d;
	lade_error *err = NULL;
	assert_non_null(p);
	assert_int_equal(lade__device_use(place.device, &d, NULL), LADE_OK);
	assert_int_equal(LADE__CU(d, cuMemcpyAsync, lade__address_of(p), lade__address_of(data),
	                          size, NULL), LADE_OK);
	assert_int_equal(LADE__CU(d, cuStreamSynchronize, NULL), LADE_OK);
	lade__device_leave(d);
	return p;
}

typedef struct form {
	const char *type, *codecs, *selection;
	uint32_t format;
	bool shards, kernels; /* kernels encode it */
} form;

static const form forms[] = {
	{"int32", NULL, "", 3, false, false},
	{"int32", "[{\"name\":\"numcodecs.lz4\",\"configuration\":{}}]", "[:48]", 3, false, true},
	{"int32", "[{\"name\":\"numcodecs.lz4\",\"configuration\":{}}]", "[:48]", 3, true, true},
	{"int32", "[]", "[1:49:3, ::-1]", 3, false, false},
	{"int32", "[\"zstd\",\"crc32c\"]", "", 3, true, false},
	{"int32", "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", "[3:, 2:39]", 3,
	 true, false},
	{">i4", NULL, "", 2, false, false},
	{"int32", NULL, "[[1, 30, 2], ::4]", 3, false, false},
	{"int32", "[]", "[[1, 30, 2], 5]", 3, true, false},
};

/* Writes a selection from a place, with gaps in the source, and reads all. */
static void write_from(const form *f, lade_place place, int32_t *out)
{
	const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {16, 20}, inner[2] = {4, 5};
	lade_zarr_description d = {.struct_size = sizeof d, .kind = LADE_ZARR_ARRAY, .ndim = 2,
	                           .shape = shape, .chunk_shape = chunk, .type = f->type,
	                           .codecs = f->codecs, .format = f->format, .fill = "-9",
	                           .inner_shape = f->shards ? inner : NULL};
	static int32_t memory[ROWS * (COLUMNS + GAP)];
	lade_zarr_selection *selection;
	lade_zarr_shape result = {.struct_size = sizeof result};
	lade_store *store;
	lade_zarr *node;
	for (size_t i = 0; i < ROWS * (COLUMNS + GAP); i++)
		memory[i] = (int32_t)(i / 7 * 1000);
	KIT_CHECK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &kit_err));
	KIT_CHECK(lade_zarr_create(store, "a", &d, NULL, &node, &kit_err));
	KIT_CHECK(lade_zarr_selection_parse(node, f->selection, &selection, &kit_err));
	KIT_CHECK(lade_zarr_selection_shape(node, selection, &result, &kit_err));
	const ptrdiff_t strides[2] = {-4 * (COLUMNS + GAP), 4};
	void *p = copy_to(place, memory, sizeof memory);
	lade_zarr_source source = {
		.struct_size = sizeof source, .span = {p, sizeof memory, place},
		.offset = (size_t)(result.shape[0] - 1) * 4 * (COLUMNS + GAP),
		.strides = strides};
	lade_zarr_write_report report = {.struct_size = sizeof report};
	lade_zarr_write_options options = {.struct_size = sizeof options};
	if (f->kernels && place.kind == LADE_DEVICE)
		options.where = LADE_WHERE_DEVICE;
	KIT_CHECK(lade_zarr_write(node, selection, &source, &options, &report, &kit_err));
	assert_int_equal(report.source_size, result.size);
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(out, ROWS * COLUMNS * 4)};
	KIT_CHECK(lade_zarr_read(node, NULL, &target, NULL, NULL, &kit_err));
	const lade_allocator *a = lade_allocator_default(place.kind);
	a->free(a->ctx, p, sizeof memory, 256, place, NULL);
	lade_zarr_selection_free(selection);
	lade_zarr_unref(node);
	lade_store_unref(store);
}

static void every_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		static int32_t want[ROWS * COLUMNS], got[ROWS * COLUMNS];
		write_from(&forms[i], places[0], want);
		for (size_t k = 1; k < PLACES; k++) {
			write_from(&forms[i], places[k], got);
			if (memcmp(want, got, sizeof got) != 0)
				fail_msg("form %zu from place %zu differs", i, k);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_place)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
