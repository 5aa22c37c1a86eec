/*
 * test_zarr_device.c: Zarr reads into memory of devices, beside the same reads into host memory, on
 * the emulated device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/emulated_move.h"

#include <stdatomic.h>

#include "gpu/device.h"
#include "gpu/emulated.h"
#include "zarr_kit.h"

static const lade_place places[] = {
	{LADE_DEVICE, 0}, {LADE_DEVICE, 1}, {LADE_MANAGED, 0}, {LADE_PINNED, 0}};

static lade_span span_new(lade_place place, size_t size)
{
	const lade_allocator *a = lade_allocator_default(place.kind);
	void *p = a->alloc(a->ctx, size + 1, 256, place, NULL);
	assert_non_null(p);
	return (lade_span){p, size, place};
}

static void span_free(lade_span span)
{
	const lade_allocator *a = lade_allocator_default(span.place.kind);
	a->free(a->ctx, span.data, span.size + 1, 256, span.place, NULL);
}

typedef struct choice {
	lade_zarr_index axes[4];
	int64_t list[4][8];
	lade_zarr_selection selection;
} choice;

static void choose(choice *c, const lade_zarr_array *array, rng *random)
{
	bool points = array->ndim && rng_next(random) % 5 == 0;
	for (size_t a = 0; a < array->ndim; a++)
		points = points && array->axes[a].size;
	for (size_t a = 0; a < array->ndim; a++) {
		lade_zarr_index *x = &c->axes[a];
		uint64_t size = array->axes[a].size, kind = rng_next(random) % 6;
		*x = (lade_zarr_index){.kind = LADE_ZARR_ALL};
		if (points || (kind == 5 && size)) {
			x->kind = LADE_ZARR_LIST;
			x->list = c->list[a];
			x->count = size ? 6 : 0;
			for (size_t i = 0; i < x->count; i++)
				c->list[a][i] = (int64_t)(rng_next(random) % size);
		} else if (kind > 2) {
			x->kind = LADE_ZARR_SLICE;
			x->start = (int64_t)rng_below(random, size);
			x->stop = LADE_ZARR_OPEN;
			x->step = kind == 3 ? 1 : kind == 4 && size > 4 ? -2 : 3;
		}
	}
	c->selection = (lade_zarr_selection){.struct_size = sizeof c->selection,
	                                     .axes = c->axes,
	                                     .axis_count = array->ndim,
	                                     .index_size = sizeof c->axes[0],
	                                     .mode = points ? LADE_ZARR_POINTS
	                                                    : LADE_ZARR_ORTHOGONAL};
}

/* Strides with a gap behind each row, of any order of the axes. */
static size_t arrange(const lade_zarr_shape *shape, ptrdiff_t *strides, rng *random)
{
	size_t size = shape->elem_size, first = rng_below(random, shape->ndim);
	for (size_t k = shape->ndim; k-- > 0;) {
		size_t i = (k + first) % shape->ndim;
		strides[i] = (ptrdiff_t)size;
		size *= (size_t)shape->shape[i];
		size += rng_next(random) % 2 * shape->elem_size;
	}
	return shape->count ? size : 0;
}

/* '*done' counts reads that the device had to decode. */
static void read_to(const zarr_kit *k, lade_place place, rng *random, uint64_t seed, unsigned *done)
{
	choice c;
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	ptrdiff_t strides[LADE_DIMS_MAX];
	lade_zarr_report report = {.struct_size = sizeof report};
	lade_zarr_read_options options = {.struct_size = sizeof options,
	                                  .memory = rng_next(random) % 2 * 4000};
	lade_error err = {0};
	options.where = rng_next(random) % 3 ? LADE_WHERE_AUTO : LADE_WHERE_DEVICE;
	choose(&c, k->array, random);
	KIT_CHECK(lade_zarr_selection_shape(k->node, &c.selection, &shape, &kit_err));
	size_t size = arrange(&shape, strides, random);
	uint8_t *want = malloc(size + 1), *have = malloc(size + 1);
	memset(want, 0xA5, size);
	lade_zarr_target target = {.struct_size = sizeof target, .strides = strides,
	                           .span = lade_host_span(want, size)};
	KIT_CHECK(lade_zarr_read(k->node, &c.selection, &target, NULL, NULL, &kit_err));
	lade_span there = span_new(place, size);
	memset(have, 0xA5, size);
	emulated_move(place.device, there.data, have, size);
	target.span = there;
	lade_status status =
		lade_zarr_read(k->node, &c.selection, &target, &options, &report, &err);
	bool refused = status == LADE_E_UNSUPPORTED && options.where == LADE_WHERE_DEVICE;
	if (status != LADE_OK && !refused)
		fail_msg("seed %" PRIu64 ": %s: %s", seed, err.message, k->json);
	emulated_move(place.device, have, there.data, size);
	if (!refused && memcmp(have, want, size) != 0)
		fail_msg("seed %" PRIu64 ", place %d: the elements differ: %s", seed,
		         (int)place.kind, k->json);
	*done += !refused && options.where == LADE_WHERE_DEVICE;
	if (!refused && report.written_size + report.filled_size != shape.size)
		fail_msg("seed %" PRIu64 ": %" PRIu64 " + %" PRIu64 " bytes of %" PRIu64, seed,
		         report.written_size, report.filled_size, shape.size);
	span_free(there);
	free(want);
	free(have);
}

static void reads_to_every_place(void **state)
{
	(void)state;
	unsigned done = 0;
	for (uint64_t seed = 1; seed <= 42; seed++) {
		rng random = {seed * 104729};
		zarr_kit k;
		if (seed % 7 == 0)
			kit_make_plain(&k, &random);
		else
			kit_make(&k, &random, (int)(seed % 3));
		for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
			read_to(&k, places[i], &random, seed, &done);
		kit_free(&k);
	}
	assert_true(done > 10);
}

/* Each chunk gets a span on another place. */
typedef struct spread {
	lade_span spans[64];
	uint64_t start[64];
	atomic_uint count;
} spread;

static lade_status place(void *ctx, const lade_zarr_box *box, lade_zarr_place *out, lade_error *err)
{
	spread *s = ctx;
	unsigned i = atomic_fetch_add(&s->count, 1);
	lade_place on = i % 2 ? places[i / 2 % 3] : LADE_PLACE_HOST;
	(void)err;
	s->spans[i] = span_new(on, (size_t)box->count[0] * 4);
	s->start[i] = box->start[0];
	out->span = s->spans[i];
	return LADE_OK;
}

static void a_place_for_each_chunk(void **state)
{
	(void)state;
	static const char json[] =
		"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[200],"
		"\"data_type\":\"int32\",\"chunk_grid\":{\"name\":\"regular\","
		"\"configuration\":{\"chunk_shape\":[16]}},"
		"\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":-3,\"codecs\":[{"
		"\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]}";
	lade_store *store;
	lade_zarr *node;
	lade_error err = {0};
	uint8_t chunk[64];
	char key[16];
	KIT_CHECK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &kit_err));
	kit_put(store, "zarr.json", json, sizeof json - 1);
	for (uint8_t c = 0; c < 13; c++) {
		for (uint8_t i = 0; i < 16; i++)
			memcpy(chunk + 4 * i, (uint8_t[4]){0, 0, c, i}, 4);
		snprintf(key, sizeof key, "c/%d", c);
		if (c % 3)
			kit_put(store, key, chunk, 64);
	}
	KIT_CHECK(lade_zarr_open(store, "", NULL, &node, &kit_err));
	for (int device = 0; device < 2; device++) {
		spread s = {.count = 0};
		lade_zarr_target target = {.struct_size = sizeof target, .place = place, .ctx = &s};
		if (device)
			target.span.place = places[0];
		if (lade_zarr_read(node, NULL, &target, NULL, NULL, &err) != LADE_OK)
			fail_msg("%s", err.message);
		assert_int_equal(s.count, 13);
		for (unsigned i = 0; i < 13; i++) {
			size_t size = s.spans[i].size;
			int32_t have[16];
			emulated_move(places[0].device, have, s.spans[i].data, size);
			for (size_t k = 0; k < size / 4; k++) {
				int32_t c = (int32_t)(s.start[i] / 16);
				assert_int_equal(have[k], c % 3 ? c * 256 + (int32_t)k : -3);
			}
			span_free(s.spans[i]);
		}
	}
	lade_zarr_unref(node);
	lade_store_unref(store);
}

/* A large missing chunk fills a device piece by piece, and is no such chunk on the host. */
static void large_missing_chunks(void **state)
{
	(void)state;
	static const char json[] =
		"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3,500,401],"
		"\"data_type\":\"int32\",\"chunk_grid\":{\"name\":\"regular\","
		"\"configuration\":{\"chunk_shape\":[3,500,401]}},"
		"\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":-3,\"codecs\":["
		"{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},"
		"{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
		"{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]}";
	enum { COUNT = 3 * 500 * 401 };
	lade_store *store;
	lade_zarr *node;
	lade_zarr_selection *selection;
	lade_zarr_report report = {.struct_size = sizeof report};
	int32_t *have = malloc(COUNT * 4 + 8);
	lade_span there = span_new(places[0], COUNT * 4 + 8);
	/* Elements go in backwards, with one before and one behind. */
	lade_zarr_target target = {.struct_size = sizeof target, .span = there, .offset = 4};
	KIT_CHECK(lade_store_memory_new(LADE_PLACE_HOST, NULL, &store, &kit_err));
	kit_put(store, "zarr.json", json, sizeof json - 1);
	KIT_CHECK(lade_zarr_open(store, "", NULL, &node, &kit_err));
	KIT_CHECK(lade_zarr_selection_parse(node, "::-1, ::-1", &selection, &kit_err));
	memset(have, 0, COUNT * 4 + 8);
	emulated_move(places[0].device, there.data, have, COUNT * 4 + 8);
	KIT_CHECK(lade_zarr_read(node, selection, &target, NULL, &report, &kit_err));
	emulated_move(places[0].device, have, there.data, COUNT * 4 + 8);
	assert_int_equal(report.missing_count, 1);
	assert_int_equal(report.filled_size, COUNT * 4);
	assert_true(have[0] == 0 && have[COUNT + 1] == 0);
	for (size_t i = 1; i <= COUNT; i++)
		if (have[i] != -3)
			fail_msg("element %zu is %d", i, have[i]);
	span_free(there);
	free(have);
	lade_zarr_selection_free(selection);
	lade_zarr_unref(node);
	lade_store_unref(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_to_every_place),
		cmocka_unit_test(a_place_for_each_chunk),
		cmocka_unit_test(large_missing_chunks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
