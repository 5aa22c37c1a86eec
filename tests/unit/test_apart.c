/*
 * test_apart.c: overlaps of a call's destinations with each other and with its sources, against a
 * map that has an entry for each byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/plan.h"
#include "guard.h"

#include <lade/lade.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define ITEMS_MAX 300
#define AREA_MAX 8192

/* One random call, and what the map knows of it. */
typedef struct scene {
	lade_direction direction;
	lade_item items[ITEMS_MAX];
	lade_segment segments[ITEMS_MAX][2];
	lade_item_output outputs[ITEMS_MAX][3];
	lade_layout layouts[ITEMS_MAX][3];
	lade_region dsts[ITEMS_MAX];
	size_t counts[ITEMS_MAX][3], shapes[3 * ITEMS_MAX][3];
	ptrdiff_t strides[ITEMS_MAX][3], steps[3 * ITEMS_MAX][3];
	size_t count, area_size;
	bool regions;
} scene;

static char area[AREA_MAX];

static size_t below(rng *r, size_t n)
{
	return (size_t)rng_below(r, n);
}

/* ---- the map ---------------------------------------------------------------------------- */

static void mark(uint8_t *map, const void *data, size_t size)
{
	if (size)
		memset(map + ((const char *)data - area), 1, size);
}

/* Each element on its own; nothing where the layout is not valid. */
static void mark_layout(const scene *s, uint8_t *map, const lade_layout *layout, const void *data,
                        size_t size)
{
	lade__plan plan;
	size_t index[3] = {0}, total = 1;

	if (!layout) {
		mark(map, data, size);
		return;
	}
	if (lade__plan_make(layout, s->direction, size, &plan, NULL) != LADE_OK)
		return;
	for (size_t i = 0; i < layout->ndim; i++)
		total *= layout->shape[i];
	for (size_t n = 0; n < total; n++) {
		const char *at = (const char *)data + layout->offset;
		for (size_t i = 0, rest = n; i < layout->ndim; rest /= layout->shape[i++]) {
			index[i] = rest % layout->shape[i];
			at += (ptrdiff_t)index[i] * layout->strides[i];
		}
		mark(map, at, layout->elem_size);
	}
}

static void mark_region(uint8_t *map, const lade_region *g, size_t axis, const char *at)
{
	if (axis == g->ndim)
		mark(map, at, g->size);
	for (size_t i = 0; axis < g->ndim && i < g->count[axis]; i++)
		mark_region(map, g, axis + 1, at + (ptrdiff_t)i * g->strides[axis]);
}

static void mark_dst(const scene *s, size_t i, size_t k, uint8_t *map)
{
	const lade_item *item = &s->items[i];

	memset(map, 0, s->area_size);
	if (s->regions && s->dsts[i].data)
		mark_region(map, &s->dsts[i], 0, s->dsts[i].data);
	else if (item->output_count)
		mark_layout(s, map, item->outputs[k].layout, item->outputs[k].dst.data,
		            item->outputs[k].dst.size);
	else
		mark_layout(s, map, s->direction == LADE_DECODE ? item->layout : NULL,
		            item->dst.data, item->dst.size);
}

static size_t dst_count(const scene *s, size_t i)
{
	return s->items[i].output_count ? s->items[i].output_count : 1;
}

static void mark_src(const scene *s, size_t i, uint8_t *map)
{
	const lade_item *item = &s->items[i];

	memset(map, 0, s->area_size);
	for (size_t k = 0; k < item->src_count; k++)
		mark_layout(s, map, s->direction == LADE_ENCODE ? item->layout : NULL,
		            item->src[k].data, item->src[k].size);
}

static bool meet(const scene *s, const uint8_t *a, const uint8_t *b)
{
	for (size_t i = 0; i < s->area_size; i++)
		if (a[i] & b[i])
			return true;
	return false;
}

/* Whether an output of item 'i' meets another one of item 'k'. */
static bool dsts_meet(const scene *s, size_t i, size_t k)
{
	static uint8_t a[AREA_MAX], b[AREA_MAX];

	for (size_t m = 0; m < dst_count(s, i); m++)
		for (size_t n = 0; n < dst_count(s, k); n++) {
			mark_dst(s, i, m, a);
			mark_dst(s, k, n, b);
			if ((i != k || m != n) && meet(s, a, b))
				return true;
		}
	return false;
}

static bool dst_meets_src(const scene *s, size_t dst, size_t src)
{
	static uint8_t a[AREA_MAX], b[AREA_MAX];

	if (dst == src && s->regions && s->dsts[dst].data)
		return false;
	for (size_t m = 0; m < dst_count(s, dst); m++) {
		mark_dst(s, dst, m, a);
		mark_src(s, src, b);
		if (meet(s, a, b))
			return true;
	}
	return false;
}

/* Adds up who has each byte: the quick form of the two above for all items. */
static bool all_apart(const scene *s, bool fixed)
{
	static uint16_t owner[AREA_MAX];
	static uint8_t map[AREA_MAX];

	memset(owner, 0, sizeof owner);
	for (size_t i = 0; i < s->count; i++)
		for (size_t m = 0; m < dst_count(s, i); m++) {
			mark_dst(s, i, m, map);
			for (size_t k = 0; k < s->area_size; k++) {
				if (map[k] && owner[k])
					return false;
				if (map[k])
					owner[k] = (uint16_t)(i + 1);
			}
		}
	for (size_t i = 0; !fixed && i < s->count; i++) {
		mark_src(s, i, map);
		for (size_t k = 0; k < s->area_size; k++)
			if (map[k] && owner[k] && dst_meets_src(s, owner[k] - 1u, i))
				return false;
	}
	return true;
}

/* ---- scenes ----------------------------------------------------------------------------- */

/* A region within the area. */
static void random_region(scene *s, size_t i, rng *r)
{
	lade_region *g = &s->dsts[i];
	size_t extent, low = 0;

	do {
		*g = (lade_region){.size = 1 + below(r, 6), .ndim = below(r, 4),
		                   .count = s->counts[i], .strides = s->strides[i]};
		extent = g->size;
		low = 0;
		for (size_t k = 0; k < g->ndim; k++) {
			s->counts[i][k] = 1 + below(r, 5);
			s->strides[i][k] = (ptrdiff_t)below(r, 60) - 25;
			size_t all = (s->counts[i][k] - 1) * (size_t)labs(s->strides[i][k]);
			extent += all;
			low += s->strides[i][k] < 0 ? all : 0;
		}
	} while (extent > s->area_size);
	g->data = area + below(r, s->area_size - extent + 1) + low;
	if (below(r, 16) == 0 && g->ndim)
		s->counts[i][0] = 0;
}

/* A layout of at most three axes; not all are valid. */
static const lade_layout *random_layout(scene *s, size_t i, size_t k, rng *r)
{
	lade_layout *layout = &s->layouts[i][k];
	size_t *shape = s->shapes[3 * i + k], low = 0;
	ptrdiff_t *strides = s->steps[3 * i + k], step;

	*layout = (lade_layout){.struct_size = sizeof *layout, .elem_size = 1 + below(r, 12),
	                        .ndim = below(r, 4), .shape = shape, .strides = strides};
	step = (ptrdiff_t)(layout->elem_size + below(r, 9));
	for (size_t a = 0; a < layout->ndim; a++) {
		shape[a] = below(r, 5) ? 1 + below(r, 4) : below(r, 2);
		strides[a] = below(r, 4) ? step : -step;
		low += strides[a] < 0 && shape[a] ? (shape[a] - 1) * (size_t)step : 0;
		step = step * (ptrdiff_t)(shape[a] + 1) + (ptrdiff_t)below(r, 2);
	}
	layout->offset = low + below(r, 3);
	return layout;
}

/* 'crowd' is the share of the area that destinations have, about, in percent. */
static void random_scene(scene *s, rng *r, size_t count, bool strided, unsigned crowd)
{
	size_t each = s->area_size * crowd / 100 / count;

	s->count = count;
	s->direction = below(r, 2) ? LADE_DECODE : LADE_ENCODE;
	s->regions = strided && below(r, 2);
	memset(s->dsts, 0, sizeof s->dsts);
	for (size_t i = 0; i < count; i++) {
		lade_item *item = &s->items[i];
		size_t size = below(r, 2 * each + 2);
		*item = (lade_item){.src = s->segments[i], .src_count = 1};
		size = size < s->area_size ? size : s->area_size;
		item->dst = lade_host_span(area + below(r, s->area_size - size + 1), size);
		if (below(r, 4) == 0 && !strided)
			item->src_count = below(r, 3);
		for (size_t k = 0; k < 2; k++) {
			size_t bytes = below(r, 3) ? below(r, each + 2) : 0;
			s->segments[i][k] = (lade_segment){
				.data = area + below(r, s->area_size - bytes + 1), .size = bytes};
		}
		if (strided && below(r, 2))
			item->layout = random_layout(s, i, 0, r);
		if (strided && s->direction == LADE_DECODE && below(r, 4) == 0) {
			item->output_count = 1 + below(r, 3);
			item->outputs = s->outputs[i];
			item->layout = NULL;
			item->dst = lade_host_span(NULL, 0);
		}
		for (size_t k = 0; k < item->output_count; k++) {
			size = below(r, 2 * each + 2);
			size = size < s->area_size ? size : s->area_size;
			s->outputs[i][k] = (lade_item_output){
				lade_host_span(area + below(r, s->area_size - size + 1), size),
				below(r, 2) ? random_layout(s, i, k, r) : NULL};
		}
		if (s->regions && below(r, 2))
			random_region(s, i, r);
	}
}

/* Moves destinations to where nothing is yet, as long as there is room: calls that are fine. */
static void put_in_slots(scene *s, rng *r)
{
	size_t slot = s->area_size / (2 * s->count), order[2 * ITEMS_MAX];
	bool sorted = below(r, 2);

	for (size_t i = 0; i < 2 * s->count; i++) {
		size_t k = sorted ? i : below(r, i + 1);
		order[i] = order[k];
		order[k] = i;
	}
	for (size_t i = 0; i < s->count; i++) {
		lade_item *item = &s->items[i];
		item->dst = lade_host_span(area + order[i] * slot, below(r, slot + 1));
		s->segments[i][0] = (lade_segment){.data = area + order[s->count + i] * slot,
		                                   .size = below(r, slot + 1)};
		item->src_count = 1;
		item->layout = NULL;
		item->output_count = 0;
		s->dsts[i].data = NULL;
	}
}

/* ---- a verdict -------------------------------------------------------------------------- */

/* An allocator that fails from its 'left'-th request on. */
typedef struct meter {
	size_t left, held;
} meter;

static void *meter_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream stream)
{
	meter *m = ctx;
	const lade_allocator *host = lade_allocator_default(LADE_HOST);

	if (!m->left)
		return NULL;
	m->left--;
	m->held += size;
	return host->alloc(host->ctx, size, align, place, stream);
}

static void meter_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                       lade_stream stream)
{
	const lade_allocator *host = lade_allocator_default(LADE_HOST);

	((meter *)ctx)->held -= size;
	host->free(host->ctx, ptr, size, align, place, stream);
}

/* A refusal names two that share a byte. */
static void check_names(const scene *s, const char *message)
{
	size_t a, b;

	if (sscanf(message, "two outputs of item %zu overlap", &a) == 1) {
		assert_true(a < s->count && dsts_meet(s, a, a));
	} else if (sscanf(message, "the destinations of items %zu and %zu overlap", &a, &b) == 2) {
		assert_true(a < b && b < s->count && dsts_meet(s, a, b));
	} else if (sscanf(message, "the destination of item %zu overlaps the source of item %zu",
	                  &a, &b) == 2) {
		assert_true(a != b && a < s->count && b < s->count && dst_meets_src(s, a, b));
	} else if (sscanf(message, "the destination of item %zu overlaps its source", &a) == 1) {
		assert_true(s->count > 1 && a < s->count && dst_meets_src(s, a, a));
	} else {
		assert_string_equal(message, "the destination overlaps the source");
		assert_true(s->count == 1 && dst_meets_src(s, 0, 0));
	}
}

static void check_scene(const scene *s, bool fixed)
{
	bool apart = all_apart(s, fixed);
	meter m = {SIZE_MAX, 0};
	lade_allocator scratch = {&m, meter_alloc, meter_free};
	lade_apart_options options = {.struct_size = sizeof options,
	                              .fixed_sources = fixed,
	                              .dsts = s->regions ? s->dsts : NULL};
	lade_error err = {.status = LADE_OK};
	lade_status status;

	/* A single item's destination may overlap itself. */
	if (s->count == 1 && dst_count(s, 0) == 1)
		apart = fixed || !dst_meets_src(s, 0, 0);
	status = lade_items_apart(s->direction, s->items, s->count, &options, &err);
	assert_int_equal(status, apart ? LADE_OK : LADE_E_ARG);
	if (!apart)
		check_names(s, err.message);
	options.scratch = &scratch;
	for (size_t left = 0; left < 4; left++) {
		m.left = left;
		status = lade_items_apart(s->direction, s->items, s->count, &options, NULL);
		assert_true(status == LADE_E_NOMEM || status == (apart ? LADE_OK : LADE_E_ARG));
		assert_int_equal(m.held, 0);
	}
	assert_true(status != LADE_E_NOMEM);
}

static void test_contiguous(void **state)
{
	(void)state;
	static const size_t counts[] = {1, 2, 3, 10, 100, 300};
	static scene s;
	rng r = {11};
	size_t fine = 0;

	for (int round = 0; round < 3000; round++) {
		s.area_size = 64 + below(&r, AREA_MAX - 64);
		random_scene(&s, &r, counts[round % 6], false, (unsigned)(1 + below(&r, 40)));
		if (round % 3)
			put_in_slots(&s, &r);
		check_scene(&s, round % 5 == 0);
		fine += all_apart(&s, false);
		/* One of many is moved. */
		if (round % 3 == 2) {
			lade_span *dst = &s.items[below(&r, s.count)].dst;
			dst->data = area + below(&r, s.area_size - dst->size + 1);
			check_scene(&s, false);
		}
	}
	assert_in_range(fine, 1000, 2900);
}

static void test_strided(void **state)
{
	(void)state;
	static scene s;
	rng r = {12};
	size_t fine = 0;

	for (int round = 0; round < 20000; round++) {
		s.area_size = 100 + below(&r, 400);
		random_scene(&s, &r, 1 + below(&r, 4), true, (unsigned)(1 + below(&r, 60)));
		check_scene(&s, round % 5 == 0);
		fine += all_apart(&s, false);
	}
	assert_in_range(fine, 3000, 17000);
}

/* The tables of a batch have the verdict of items. */
static void test_tables(void **state)
{
	(void)state;
	static scene s;
	rng r = {13};

	for (int round = 0; round < 300; round++) {
		const void *src[50];
		void *dst[50];
		uint64_t src_size[50], dst_cap[50];
		lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
		                      .src = src,
		                      .src_size = src_size,
		                      .dst = dst,
		                      .dst_cap = dst_cap,
		                      .count = 1 + below(&r, 50)};
		lade_error err = {.status = LADE_OK};
		s.area_size = 2000;
		random_scene(&s, &r, arrays.count, false, 10);
		if (round % 2)
			put_in_slots(&s, &r);
		for (size_t i = 0; i < arrays.count; i++) {
			s.items[i].src_count = 1;
			src[i] = s.segments[i][0].data;
			src_size[i] = s.segments[i][0].size;
			dst[i] = s.items[i].dst.data;
			dst_cap[i] = s.items[i].dst.size;
		}
		bool apart = s.count == 1 ? !dst_meets_src(&s, 0, 0) : all_apart(&s, false);
		assert_int_equal(lade_arrays_apart(&arrays, NULL, &err),
		                 apart ? LADE_OK : LADE_E_ARG);
		if (!apart)
			check_names(&s, err.message);
	}
}

/* Tiles of one array in any order, more than are compared with each other, and one that is moved by
 * a byte. */
static void test_tiles(void **state)
{
	(void)state;
	static scene s;
	rng r = {14};

	s.area_size = 80 * 64;
	s.direction = LADE_DECODE;
	s.regions = false;
	s.count = 0;
	static const size_t shape[2] = {10, 16};
	static const ptrdiff_t strides[2] = {64, 1};
	static const lade_layout tile = {.struct_size = sizeof tile, .elem_size = 1, .ndim = 2,
	                                 .shape = shape, .strides = strides};
	for (size_t y = 0; y < 8; y++)
		for (size_t x = 0; x < 4; x++)
			s.items[s.count++] = (lade_item){
				.src = s.segments[0], .layout = &tile,
				.dst = lade_host_span(area + y * 640 + x * 16, 9 * 64 + 16)};
	for (int round = 0; round < 200; round++) {
		size_t a = below(&r, s.count), b = below(&r, s.count);
		lade_item kept = s.items[a];
		s.items[a] = s.items[b];
		s.items[b] = kept;
		check_scene(&s, false);
		kept = s.items[a];
		char *at = kept.dst.data;
		s.items[a].dst.data = at > area ? at - 1 : at + 1;
		assert_int_equal(lade_items_apart(LADE_DECODE, s.items, s.count, NULL, NULL),
		                 LADE_E_ARG);
		s.items[a] = kept;
	}
}

static void test_arguments(void **state)
{
	(void)state;
	lade_segment segment = {.data = area, .size = 4};
	lade_item items[2] = {{.src = &segment, .src_count = 1,
	                       .dst = lade_host_span(area + 4, 4)},
	                      {.src = &segment, .src_count = 1,
	                       .dst = lade_host_span(area + 8, 4)}};
	size_t counts[LADE_DIMS_MAX + 1] = {2, 2};
	ptrdiff_t strides[LADE_DIMS_MAX + 1] = {PTRDIFF_MAX, PTRDIFF_MAX};
	lade_region regions[2] = {{.data = area, .size = 1, .ndim = 2, .count = counts,
	                           .strides = strides}};
	lade_apart_options options = {.struct_size = sizeof options};
	lade_arrays arrays = {.struct_size = sizeof(lade_arrays), .count = 1};
	lade_error err;

	assert_int_equal(lade_items_apart(LADE_DECODE, NULL, 0, NULL, NULL), LADE_OK);
	assert_int_equal(lade_items_apart(LADE_DECODE, NULL, 2, NULL, NULL), LADE_E_ARG);
	assert_int_equal(lade_items_apart((lade_direction)2, items, 2, NULL, NULL), LADE_E_ARG);
	assert_int_equal(lade_arrays_apart(NULL, NULL, NULL), LADE_E_ARG);
	assert_int_equal(lade_arrays_apart(&arrays, NULL, NULL), LADE_E_ARG);
	assert_int_equal(lade_items_apart(LADE_DECODE, items, 2, &options, &err), LADE_OK);
	options.dsts = regions;
	assert_int_equal(lade_items_apart(LADE_DECODE, items, 2, &options, &err), LADE_E_ARG);
	strides[0] = PTRDIFF_MIN, counts[1] = 1;
	assert_int_equal(lade_items_apart(LADE_DECODE, items, 2, &options, &err), LADE_E_ARG);
	strides[0] = -1, counts[0] = SIZE_MAX;
	assert_int_equal(lade_items_apart(LADE_DECODE, items, 2, &options, &err), LADE_E_ARG);
	counts[0] = 0; /* nothing is touched, wherever it would be */
	assert_int_equal(lade_items_apart(LADE_DECODE, items, 2, &options, &err), LADE_OK);
	regions[0].ndim = LADE_DIMS_MAX + 1;
	assert_int_equal(lade_items_apart(LADE_DECODE, items, 2, &options, &err), LADE_E_ARG);
	regions[0] = (lade_region){.data = area, .size = SIZE_MAX};
	assert_int_equal(lade_items_apart(LADE_DECODE, items, 2, &options, &err), LADE_E_ARG);
	regions[0].data = NULL;
	/* A span that would pass the end of all addresses ends there. */
	items[1].dst.size = SIZE_MAX;
	assert_int_equal(lade_items_apart(LADE_DECODE, items, 2, &options, &err), LADE_OK);
	items[0].dst.data = area + 9;
	assert_int_equal(lade_items_apart(LADE_DECODE, items, 2, &options, &err), LADE_E_ARG);
	assert_string_equal(err.message, "the destinations of items 0 and 1 overlap");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contiguous), cmocka_unit_test(test_strided),
		cmocka_unit_test(test_tables),     cmocka_unit_test(test_tiles),
		cmocka_unit_test(test_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
