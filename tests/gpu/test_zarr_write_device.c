/*
 * test_zarr_write_device.c: whatever place elements are written from, and whatever place they are
 * read to, they are the same, on the emulated device; so are the documents and the values.
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

#include "gpu/emulated_move.h"

#include "zarr_kit.h"

enum { PLACES = 5, ROWS = 50, COLUMNS = 40, GAP = 3 };
static const lade_place places[PLACES] = {
	{LADE_HOST, 0}, {LADE_PINNED, 0}, {LADE_MANAGED, 0}, {LADE_DEVICE, 0}, {LADE_DEVICE, 1}};

static void *new_memory(lade_place place, size_t size)
{
	const lade_allocator *a = lade_allocator_default(place.kind);
	void *p = a->alloc(a->ctx, size, 256, place, NULL);
	assert_non_null(p);
	return p;
}

static void free_memory(lade_place place, void *p, size_t size)
{
	const lade_allocator *a = lade_allocator_default(place.kind);
	a->free(a->ctx, p, size, 256, place, NULL);
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

/* Makes an array in a store whose values are at one place, and writes a selection from another,
 * with gaps in the source. */
static lade_zarr *write_from(const form *f, lade_store *store, lade_place place)
{
	const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {16, 20}, inner[2] = {4, 5};
	lade_zarr_description d = {.struct_size = sizeof d, .kind = LADE_ZARR_ARRAY, .ndim = 2,
	                           .shape = shape, .chunk_shape = chunk, .type = f->type,
	                           .codecs = f->codecs, .format = f->format, .fill = "-9",
	                           .inner_shape = f->shards ? inner : NULL};
	static int32_t memory[ROWS * (COLUMNS + GAP)];
	lade_zarr_selection *selection;
	lade_zarr_shape result = {.struct_size = sizeof result};
	lade_zarr *node;
	for (size_t i = 0; i < ROWS * (COLUMNS + GAP); i++)
		memory[i] = (int32_t)(i / 7 * 1000);
	KIT_CHECK(lade_zarr_create(store, "a", &d, NULL, &node, &kit_err));
	KIT_CHECK(lade_zarr_selection_parse(node, f->selection, &selection, &kit_err));
	KIT_CHECK(lade_zarr_selection_shape(node, selection, &result, &kit_err));
	const ptrdiff_t strides[2] = {-4 * (COLUMNS + GAP), 4};
	void *p = new_memory(place, sizeof memory);
	emulated_move(place.device, p, memory, sizeof memory);
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
	free_memory(place, p, sizeof memory);
	lade_zarr_selection_free(selection);
	return node;
}

static void read_to(lade_zarr *node, lade_place place, int32_t *out)
{
	const size_t size = ROWS * COLUMNS * 4;
	void *p = new_memory(place, size);
	lade_zarr_target target = {.struct_size = sizeof target, .span = {p, size, place}};
	KIT_CHECK(lade_zarr_read(node, NULL, &target, NULL, NULL, &kit_err));
	emulated_move(place.device, out, p, size);
	free_memory(place, p, size);
}

/* A value of both stores: the same bytes, or for chunks that kernels encode, the same key. */
typedef struct comparison {
	lade_store *a, *b;
	bool documents_only;
	size_t count;
} comparison;

static lade_status compare_value(void *ctx, const lade_store_entry *entry)
{
	comparison *c = ctx;
	static uint8_t bytes[2][1 << 16];
	lade_range range[2];
	c->count++;
	for (int i = 0; i < 2; i++) {
		range[i] = (lade_range){.key = entry->key, .kind = LADE_RANGE_REST,
		                        .dst = lade_host_span(bytes[i], sizeof bytes[i])};
		KIT_CHECK(lade_store_read(i ? c->b : c->a, &range[i], 1, NULL, NULL, &kit_err));
	}
	bool document = strstr(entry->key, "zarr.json") || strstr(entry->key, "/.z");
	if ((document || !c->documents_only) &&
	    (range[0].size != range[1].size || memcmp(bytes[0], bytes[1], range[0].size) != 0))
		fail_msg("'%s' differs", entry->key);
	return LADE_OK;
}

static size_t compare_stores(lade_store *a, lade_store *b, bool documents_only)
{
	comparison c = {a, b, documents_only, 0};
	lade_store_listing listing = {
		.struct_size = sizeof listing, .visit = compare_value, .ctx = &c};
	KIT_CHECK(lade_store_list(a, &listing, &kit_err));
	return c.count;
}

static void every_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		static int32_t want[ROWS * COLUMNS], got[ROWS * COLUMNS];
		lade_store *first = NULL;
		for (size_t k = 0; k < PLACES; k++) {
			lade_store *store;
			KIT_CHECK(lade_store_memory_new(places[(i + k) % PLACES], NULL, &store,
			                                &kit_err));
			lade_zarr *node = write_from(&forms[i], store, places[k]);
			if (k == 0)
				read_to(node, LADE_PLACE_HOST, want);
			for (size_t n = 0; n < PLACES; n++) {
				read_to(node, places[n], got);
				if (memcmp(want, got, sizeof got) != 0)
					fail_msg("form %zu from place %zu to %zu differs", i, k, n);
			}
			first = first ? first : lade_store_ref(store);
			bool kernels = forms[i].kernels && places[k].kind == LADE_DEVICE;
			assert_int_equal(compare_stores(first, store, kernels),
			                 compare_stores(store, first, kernels));
			lade_zarr_unref(node);
			lade_store_unref(store);
		}
		lade_store_unref(first);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_place)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
