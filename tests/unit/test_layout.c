/*
 * test_layout.c: layouts alone and in items on the host, against nested indices; what they refuse.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "array/plan.h"
#include "layout_kit.h"

#include <lade/lade.h>

static rng r;
static lade_engine *engines[5];
static size_t top;

#define CASES 2400

static uint8_t *random_bytes(size_t size)
{
	uint8_t *p = malloc(size + 1);
	assert_non_null(p);
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)rng_next(&r);
	return p;
}

static lade_spec *parse(const char *text)
{
	lade_spec *spec;
	lade_error err;
	if (lade_spec_parse(NULL, text, &spec, &err) != LADE_OK)
		fail_msg("%s: %s", text, err.message);
	return spec;
}

static void expect_bytes(const void *got, const void *want, size_t size, const char *what, size_t i)
{
	if (size && memcmp(got, want, size))
		fail_msg("%s: case %zu differs", what, i);
}

/* ---- plans ---------------------------------------------------------------------------------- */

/* One case at one level, whole or in pieces that are in memory of their own. */
static void scatter_case(const layout_case *c, const lade__plan *plan, lade_cpu cpu,
                         const uint8_t *chunk, const uint8_t *want, bool pieces, size_t i)
{
	guard span = guard_new(c->span_size, (int)rng_below(&r, 2));
	for (size_t off = 0; off < c->chunk_size || (off == 0 && !pieces);) {
		size_t n = c->chunk_size - off;
		if (pieces)
			n = 1 + rng_below(&r, n > 3000 ? 3000 : n);
		guard bytes = guard_copy(chunk + off, n, (int)rng_below(&r, 2));
		lade__plan_scatter(plan, cpu, off, bytes.data, n, span.data);
		guard_free(&bytes);
		off += n ? n : 1;
	}
	expect_bytes(span.data, want, c->span_size, "scatter", i);
	guard_free(&span);
}

static void test_scatter(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		layout_case c;
		lade__plan plan;
		lade_error err;
		layout_random(&r, &c, i % 50 ? 3000 : 60000, false);
		if (lade__plan_make(&c.layout, LADE_DECODE, c.span_size, &plan, &err) != LADE_OK)
			fail_msg("case %zu: %s", i, err.message);
		assert_int_equal(plan.chunk_size, c.chunk_size);
		assert_int_equal(plan.size, c.size);
		uint8_t *chunk = random_bytes(c.chunk_size), *want = malloc(c.span_size + 1);
		memset(want, 0xA5, c.span_size);
		layout_reference(&c, chunk, want, false);
		for (size_t level = 1; level <= top; level++) {
			scatter_case(&c, &plan, (lade_cpu)level, chunk, want, false, i);
			if (rng_below(&r, 3) == 0)
				scatter_case(&c, &plan, (lade_cpu)level, chunk, want, true, i);
		}
		free(chunk);
		free(want);
	}
}

static void test_gather(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		layout_case c;
		lade__plan plan;
		lade_error err;
		layout_random(&r, &c, i % 50 ? 3000 : 60000, true);
		if (lade__plan_make(&c.layout, LADE_ENCODE, c.span_size, &plan, &err) != LADE_OK)
			fail_msg("case %zu: %s", i, err.message);
		uint8_t *from = random_bytes(c.span_size), *want = malloc(c.chunk_size + 1);
		guard span = guard_copy(from, c.span_size, (int)rng_below(&r, 2));
		layout_reference(&c, from, want, true);
		for (size_t level = 1; level <= top; level++) {
			guard chunk = guard_new(c.chunk_size, (int)rng_below(&r, 2));
			lade__plan_gather(&plan, (lade_cpu)level, span.data, chunk.data);
			expect_bytes(chunk.data, want, c.chunk_size, "gather", i);
			guard_free(&chunk);
		}
		guard_free(&span);
		free(from);
		free(want);
	}
}

/* Rows of whole lines, enough of them to go past the caches. */
static void test_large_rows(void **state)
{
	(void)state;
	enum { ROWS = 70000, RUN = 256, PITCH = 320 };
	size_t shape[2] = {ROWS, RUN};
	ptrdiff_t strides[2] = {PITCH, 1};
	lade_layout l = {.struct_size = sizeof l, .elem_size = 1, .ndim = 2, .shape = shape,
	                 .strides = strides};
	uint8_t *chunk = random_bytes(ROWS * RUN);
	uint8_t *span = aligned_alloc(64, ROWS * PITCH);
	lade__plan plan;
	assert_non_null(span);
	assert_int_equal(lade__plan_make(&l, LADE_DECODE, ROWS * PITCH, &plan, NULL), LADE_OK);
	for (size_t level = 1; level <= top; level++) {
		memset(span, 0xA5, ROWS * PITCH);
		lade__plan_scatter(&plan, (lade_cpu)level, 0, chunk, ROWS * RUN, span);
		for (size_t i = 0; i < ROWS; i++) {
			assert_memory_equal(span + i * PITCH, chunk + i * RUN, RUN);
			assert_int_equal(span[i * PITCH + RUN], 0xA5);
		}
	}
	free(chunk);
	free(span);
}

/* Whole lines in another order of two axes: by bands of what follows one another in the chunk. */
static void test_large_turn(void **state)
{
	(void)state;
	enum { SIDE = 265, RUN = 256, SIZE = SIDE * SIDE * RUN };
	size_t shape[3] = {SIDE, SIDE, RUN}, order[3] = {1, 0, 2};
	lade_layout l = {.struct_size = sizeof l, .elem_size = 1, .ndim = 3, .shape = shape,
	                 .order = order};
	uint8_t *chunk = random_bytes(SIZE), *span = aligned_alloc(64, SIZE);
	uint8_t *back = aligned_alloc(64, SIZE);
	lade__plan plan;
	assert_non_null(span);
	assert_non_null(back);
	for (size_t level = 1; level <= top; level++) {
		memset(span, 0xA5, SIZE);
		memset(back, 0xA5, SIZE);
		assert_int_equal(lade__plan_make(&l, LADE_DECODE, SIZE, &plan, NULL), LADE_OK);
		lade__plan_scatter(&plan, (lade_cpu)level, 0, chunk, SIZE, span);
		for (size_t i = 0; i < SIDE; i++)
			for (size_t k = 0; k < SIDE; k++)
				assert_memory_equal(span + (k * SIDE + i) * RUN,
				                    chunk + (i * SIDE + k) * RUN, RUN);
		assert_int_equal(lade__plan_make(&l, LADE_ENCODE, SIZE, &plan, NULL), LADE_OK);
		lade__plan_gather(&plan, (lade_cpu)level, span, back);
		assert_memory_equal(back, chunk, SIZE);
	}
	free(chunk);
	free(span);
	free(back);
}

/* A box on its way: the two steps are the whole. */
static void test_two_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES / 4; i++) {
		layout_case c;
		lade__plan to_box, to_span;
		lade_layout half;
		layout_random(&r, &c, 3000, false);
		assert_int_equal(lade__plan_box(&c.layout, c.span_size, &half, &to_span, NULL),
		                 LADE_OK);
		assert_int_equal(lade__plan_make(&half, LADE_DECODE, c.size, &to_box, NULL),
		                 LADE_OK);
		uint8_t *chunk = random_bytes(c.chunk_size), *want = malloc(c.span_size + 1);
		memset(want, 0xA5, c.span_size);
		layout_reference(&c, chunk, want, false);
		guard box = guard_new(c.size, 1), span = guard_new(c.span_size, 1);
		lade__plan_scatter(&to_box, (lade_cpu)top, 0, chunk, c.chunk_size, box.data);
		lade__plan_scatter(&to_span, (lade_cpu)top, 0, box.data, c.size, span.data);
		expect_bytes(span.data, want, c.span_size, "two steps", i);
		guard_free(&box);
		guard_free(&span);
		free(chunk);
		free(want);
	}
}

/* ---- what is refused ------------------------------------------------------------------------ */

static lade_layout plain_2d(const size_t *shape)
{
	return (lade_layout){
		.struct_size = sizeof(lade_layout), .elem_size = 4, .ndim = 2, .shape = shape};
}

static void refuse(const lade_layout *l, size_t span, lade_direction direction, lade_status want,
                   const char *words)
{
	lade__plan plan;
	lade_error err = {0};
	lade_status status = lade__plan_make(l, direction, span, &plan, &err);
	if (status != want || (want != LADE_OK && !strstr(err.message, words)))
		fail_msg("%s: %s %s", words, lade_status_name(status), err.message);
}

static void test_refused_forms(void **state)
{
	(void)state;
	size_t shape[2] = {3, 5}, order[2] = {1, 1}, step[2] = {1, 0}, start[2] = {0, 6};
	size_t count[2] = {3, 6};
	lade_layout l = plain_2d(shape), x;
	refuse(&l, 60, LADE_DECODE, LADE_OK, "");
	refuse(&l, 59, LADE_DECODE, LADE_E_RANGE, "span");
	x = l, x.struct_size = 4;
	refuse(&x, 60, LADE_DECODE, LADE_E_ARG, "struct_size");
	x = l, x.elem_size = 0;
	refuse(&x, 60, LADE_DECODE, LADE_E_ARG, "elem_size");
	x = l, x.ndim = 33;
	refuse(&x, 60, LADE_DECODE, LADE_E_ARG, "33 dimensions");
	x = l, x.shape = NULL;
	refuse(&x, 60, LADE_DECODE, LADE_E_ARG, "shape");
	x = l, x.order = order;
	refuse(&x, 60, LADE_DECODE, LADE_E_ARG, "order");
	order[0] = 2;
	refuse(&x, 60, LADE_DECODE, LADE_E_ARG, "order");
	x = l, x.step = step;
	refuse(&x, 60, LADE_DECODE, LADE_E_ARG, "step");
	x = l, x.start = start;
	refuse(&x, 60, LADE_DECODE, LADE_E_RANGE, "starts at 6");
	x = l, x.count = count;
	refuse(&x, 600, LADE_DECODE, LADE_E_RANGE, "takes 6");
	x = l, x.part_off = 4;
	refuse(&x, 60, LADE_DECODE, LADE_E_RANGE, "part");
	x = l, x.part_off = 1, x.part_size = SIZE_MAX;
	refuse(&x, 60, LADE_DECODE, LADE_E_RANGE, "part");
	x = l, x.swap_size = 3;
	refuse(&x, 60, LADE_DECODE, LADE_E_ARG, "swap_size");
	x = l, x.offset = 1;
	refuse(&x, 60, LADE_DECODE, LADE_E_RANGE, "span");
	x = l, x.offset = SIZE_MAX;
	refuse(&x, SIZE_MAX, LADE_DECODE, LADE_E_RANGE, "span");
	size_t most[2] = {SIZE_MAX, SIZE_MAX};
	x = l, x.shape = most;
	refuse(&x, SIZE_MAX, LADE_DECODE, LADE_E_RANGE, "overflow");
	size_t empty[2] = {SIZE_MAX, 0};
	x = l, x.shape = empty;
	refuse(&x, 0, LADE_DECODE, LADE_OK, "");
}

static void test_refused_places(void **state)
{
	(void)state;
	size_t shape[2] = {3, 5}, count[2] = {3, 4}, one[2] = {1, 5};
	ptrdiff_t s[2] = {20, 4};
	lade_layout l = plain_2d(shape);
	l.strides = s;
	s[0] = -20;
	refuse(&l, 60, LADE_DECODE, LADE_E_RANGE, "below");
	l.offset = 39;
	refuse(&l, 60, LADE_DECODE, LADE_E_RANGE, "below");
	l.offset = 40;
	refuse(&l, 60, LADE_DECODE, LADE_OK, "");
	refuse(&l, 59, LADE_DECODE, LADE_E_RANGE, "behind");
	for (int k = 0; k < 4; k++) {
		static const ptrdiff_t wild[] = {PTRDIFF_MAX, PTRDIFF_MIN, PTRDIFF_MAX / 2,
		                                 PTRDIFF_MIN / 2};
		s[0] = wild[k];
		refuse(&l, SIZE_MAX / 2, LADE_DECODE, LADE_E_RANGE, "source axis 0");
	}
	l.offset = 0;
	s[0] = 0;
	refuse(&l, 60, LADE_DECODE, LADE_E_ARG, "stride of 0");
	refuse(&l, 60, LADE_ENCODE, LADE_OK, "");
	l.shape = one;
	refuse(&l, 60, LADE_DECODE, LADE_OK, "");
	l.shape = shape;
	/* Two indices at one byte. */
	s[0] = 4;
	refuse(&l, 60, LADE_DECODE, LADE_E_ARG, "4 bytes share bytes");
	s[0] = 3;
	refuse(&l, 60, LADE_DECODE, LADE_E_ARG, "by 1 on source axis 0 (stride 3)");
	s[0] = 10, s[1] = 4;
	refuse(&l, 60, LADE_DECODE, LADE_E_ARG, "share bytes");
	s[0] = 18, s[1] = 4;
	refuse(&l, 60, LADE_DECODE, LADE_E_ARG,
	       "-4 on source axis 1 (stride 4), 1 on source axis 0 (stride 18)");
	s[0] = 4, s[1] = 12; /* the columns are the outer ones */
	refuse(&l, 60, LADE_DECODE, LADE_OK, "");
	s[0] = 20, s[1] = -4;
	l.offset = 16;
	refuse(&l, 60, LADE_DECODE, LADE_OK, "");
	s[0] = 8, s[1] = -4;
	refuse(&l, 60, LADE_DECODE, LADE_E_ARG, "share bytes");
	/* Encoding takes whole chunks. */
	l = plain_2d(shape);
	l.count = count;
	refuse(&l, 60, LADE_DECODE, LADE_OK, "");
	refuse(&l, 60, LADE_ENCODE, LADE_E_ARG, "whole chunk");
	l = plain_2d(shape);
	l.part_size = 2;
	refuse(&l, 60, LADE_ENCODE, LADE_E_ARG, "whole elements");
}

typedef struct shared_walk {
	uint8_t *used;
	size_t part;
	uint8_t *meets;
} shared_walk;

static void shared_mark(void *ctx, size_t from, size_t to)
{
	const shared_walk *w = ctx;
	(void)from;
	for (size_t k = 0; k < w->part; k++) {
		*w->meets |= w->used[to + k];
		w->used[to + k] = 1;
	}
}

/* Elements that share bytes are refused, and no others. */
static void test_shared_bytes(void **state)
{
	(void)state;
	enum { SPAN = 4096, MIDDLE = 2048 };
	size_t shared = 0;
	for (size_t i = 0; i < 4 * CASES; i++) {
		layout_case c = {.part_size = 1 + rng_below(&r, 8)};
		size_t ndim = 1 + rng_below(&r, 4);
		uint8_t used[SPAN] = {0}, meets = 0;
		c.layout = (lade_layout){.struct_size = sizeof c.layout, .elem_size = c.part_size,
		                         .ndim = ndim, .shape = c.shape, .strides = c.strides,
		                         .offset = MIDDLE};
		for (size_t a = 0; a < ndim; a++) {
			c.shape[a] = c.count[a] = 1 + rng_below(&r, 6);
			c.strides[a] = (ptrdiff_t)rng_below(&r, 161) - 80;
			c.order[a] = a;
			c.step[a] = 1;
		}
		shared_walk walk = {used, c.part_size, &meets};
		layout_walk(&c, shared_mark, &walk);
		lade_status status = lade_layout_measure(&c.layout, LADE_DECODE, SPAN, NULL, NULL);
		if (status != (meets ? LADE_E_ARG : LADE_OK))
			fail_msg("case %zu: status %d, elements %s", i, (int)status,
			         meets ? "meet" : "lie apart");
		shared += meets;
	}
	assert_in_range(shared, CASES, 3 * CASES);
}

static void test_public(void **state)
{
	(void)state;
	size_t shape[2] = {2, 3}, order[2] = {1, 0};
	const uint8_t chunk[6] = {1, 2, 3, 4, 5, 6};
	uint8_t span[8] = {0}, back[6];
	lade_layout l = {.struct_size = sizeof l, .elem_size = 1, .ndim = 2, .shape = shape,
	                 .order = order, .offset = 1};
	lade_layout_sizes sizes;
	lade_error err;
	assert_int_equal(lade_layout_measure(&l, LADE_DECODE, SIZE_MAX, &sizes, &err), LADE_OK);
	assert_int_equal(sizes.chunk_size, 6);
	assert_int_equal(sizes.size, 6);
	assert_int_equal(sizes.first, 1);
	assert_int_equal(sizes.end, 7);
	assert_int_equal(lade_layout_measure(NULL, LADE_DECODE, 0, &sizes, &err), LADE_E_ARG);
	assert_int_equal(lade_layout_measure(&l, (lade_direction)2, 9, &sizes, &err), LADE_E_ARG);
	/* A row that is repeated, of a span of three bytes. */
	ptrdiff_t repeats[2] = {1, 0};
	lade_layout again = l;
	again.strides = repeats;
	again.offset = 0;
	assert_int_equal(lade_layout_measure(&again, LADE_DECODE, 3, &sizes, &err), LADE_E_ARG);
	assert_non_null(strstr(err.message, "stride of 0"));
	assert_int_equal(lade_layout_measure(&again, LADE_ENCODE, 2, NULL, &err), LADE_E_RANGE);
	assert_int_equal(lade_layout_measure(&again, LADE_ENCODE, 3, &sizes, &err), LADE_OK);
	assert_int_equal(sizes.size, 6);
	assert_int_equal(sizes.end, 3);
	assert_int_equal(lade_layout_gather(&again, lade_host_cspan(chunk, 3), back, 6, &err),
	                 LADE_OK);
	assert_memory_equal(back, ((uint8_t[]){1, 2, 3, 1, 2, 3}), 6);
	assert_int_equal(lade_layout_scatter(&l, chunk, 6, lade_host_span(span, 8), &err), LADE_OK);
	assert_memory_equal(span, ((uint8_t[]){0, 1, 4, 2, 5, 3, 6, 0}), 8);
	assert_int_equal(lade_layout_gather(&l, lade_host_cspan(span, 8), back, 6, &err), LADE_OK);
	assert_memory_equal(back, chunk, 6);
	assert_int_equal(lade_layout_scatter(&l, chunk, 5, lade_host_span(span, 8), &err),
	                 LADE_E_ARG);
	assert_int_equal(lade_layout_scatter(&l, chunk, 6, lade_host_span(span, 6), &err),
	                 LADE_E_RANGE);
	lade_span there = {span, 8, {LADE_DEVICE, 0}};
	assert_int_equal(lade_layout_scatter(&l, chunk, 6, there, &err), LADE_E_NO_DEVICE);
	assert_int_equal(lade_layout_scatter(NULL, chunk, 6, there, &err), LADE_E_ARG);
	l.ndim = 0;
	assert_int_equal(lade_layout_scatter(&l, chunk, 1, lade_host_span(span, 8), &err), LADE_OK);
	assert_int_equal(span[1], 1);
}

/* ---- items ---------------------------------------------------------------------------------- */

static const char *const specs[] = {
	"copy", "lz4", "shuffle(4)|lz4", "delta(i1)|shuffle(4)|zstd(1)", "crc32c", "shuffle(2)",
	"bitshuffle(8)|lz4|crc32c", "ans", "zigzag(i1)|delta(i1)", "copy|crc32c", "bitcomp",
};
#define SPECS (sizeof specs / sizeof *specs)

/* Encodes 'size' bytes in up to 'cap' segments that decode to them one after the other. */
static size_t make_segments(const lade_spec *spec, const uint8_t *bytes, size_t size,
                            lade_segment *segments, uint8_t **blocks, size_t cap)
{
	size_t n = 1 + rng_below(&r, cap), off = 0;
	for (size_t i = 0; i < n; i++) {
		size_t part = i + 1 == n ? size - off : rng_below(&r, size - off + 1);
		size_t room = lade_spec_bound(spec, part), got = 0;
		lade_error err;
		blocks[i] = malloc(room + 1);
		if (lade_encode(engines[top], spec, lade_host_cspan(bytes + off, part),
		                lade_host_span(blocks[i], room), &got, &err))
			fail_msg("%s", err.message);
		segments[i] = (lade_segment){.data = blocks[i], .size = got,
		                             .decoded_size = rng_below(&r, 2) ? part : 0};
		off += part;
	}
	return n;
}

static void test_items_decode(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES / 2; i++) {
		const char *text = specs[rng_below(&r, SPECS)];
		lade_spec *spec = parse(text);
		layout_case c;
		lade_error err;
		lade_segment segments[4];
		uint8_t *blocks[4];
		layout_random(&r, &c, i % 100 ? 4000 : 100000, false);
		uint8_t *chunk = random_bytes(c.chunk_size), *want = malloc(c.span_size + 1);
		if (rng_below(&r, 2))
			for (size_t k = 0; k < c.chunk_size; k++)
				chunk[k] &= 3;
		memset(want, 0xA5, c.span_size);
		layout_reference(&c, chunk, want, false);
		size_t n = make_segments(spec, chunk, c.chunk_size, segments, blocks, 4);
		guard span = guard_new(c.span_size, (int)rng_below(&r, 2));
		lade_item item = {.spec = spec, .src = segments, .src_count = n,
		                  .dst = lade_host_span(span.data, c.span_size),
		                  .layout = &c.layout};
		lade_result result;
		if (lade_decode_into(engines[1 + rng_below(&r, top)], NULL, &item, 1, &result, NULL,
		                     &err) != LADE_OK)
			fail_msg("case %zu, %s: %s", i, text, err.message);
		assert_int_equal(result.size, c.size);
		expect_bytes(span.data, want, c.span_size, text, i);
		for (size_t k = 0; k < n; k++)
			free(blocks[k]);
		guard_free(&span);
		free(chunk);
		free(want);
		lade_spec_unref(spec);
	}
}

static void test_items_encode(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES / 2; i++) {
		const char *text = specs[rng_below(&r, SPECS)];
		lade_spec *spec = parse(text);
		layout_case c;
		lade_error err;
		layout_random(&r, &c, i % 100 ? 4000 : 100000, true);
		uint8_t *from = random_bytes(c.span_size), *want = malloc(c.chunk_size + 1);
		layout_reference(&c, from, want, true);
		guard span = guard_copy(from, c.span_size, (int)rng_below(&r, 2));
		size_t room = lade_spec_bound(spec, c.chunk_size), got = 0;
		guard encoded = guard_new(room, 1), back = guard_new(c.chunk_size, 1);
		lade_segment segment = {.data = span.data, .size = c.span_size};
		lade_item item = {.src = &segment, .src_count = 1, .layout = &c.layout,
		                  .dst = lade_host_span(encoded.data, room)};
		lade_result result;
		if (lade_encode_into(engines[1 + rng_below(&r, top)], spec, &item, 1, &result, NULL,
		                     &err) != LADE_OK)
			fail_msg("case %zu, %s: %s", i, text, err.message);
		if (lade_decode(engines[top], spec, lade_host_cspan(encoded.data, result.size),
		                lade_host_span(back.data, c.chunk_size), &got, &err) != LADE_OK)
			fail_msg("case %zu, %s: %s", i, text, err.message);
		assert_int_equal(got, c.chunk_size);
		expect_bytes(back.data, want, c.chunk_size, text, i);
		guard_free(&span);
		guard_free(&encoded);
		guard_free(&back);
		free(from);
		free(want);
		lade_spec_unref(spec);
	}
}

/* ---- outputs -------------------------------------------------------------------------------- */

/* A layout of the same chunk as '*like', with its own box and place. */
static void layout_of_same(layout_case *c, const layout_case *like)
{
	layout_same(c, like);
	layout_box(&r, c, c->layout.ndim, false);
	layout_shuffle(&r, c->order, c->layout.ndim);
	layout_place(&r, c, c->layout.ndim, false);
	c->size = c->part_size;
	for (size_t a = 0; a < c->layout.ndim; a++)
		c->size *= c->count[a];
}

static void test_outputs(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES / 4; i++) {
		layout_case cases[4];
		lade_item_output outputs[4];
		guard spans[4];
		uint8_t *want[4], *blocks[3];
		lade_segment segments[3];
		lade_error err;
		size_t n = 1 + rng_below(&r, 4), total = 0;
		lade_spec *spec = parse(specs[rng_below(&r, SPECS)]);
		layout_random(&r, &cases[0], 3000, false);
		uint8_t *chunk = random_bytes(cases[0].chunk_size);
		for (size_t k = 0; k < n; k++) {
			layout_case *c = &cases[k];
			bool plain = rng_below(&r, 4) == 0;
			if (k)
				layout_of_same(c, &cases[0]);
			size_t size = plain ? c->chunk_size + rng_below(&r, 3) : c->span_size;
			spans[k] = guard_new(size, (int)rng_below(&r, 2));
			want[k] = malloc(size + 1);
			memset(want[k], 0xA5, size);
			if (plain && c->chunk_size)
				memcpy(want[k], chunk, c->chunk_size);
			else if (!plain)
				layout_reference(c, chunk, want[k], false);
			total += plain ? c->chunk_size : c->size;
			outputs[k] = (lade_item_output){lade_host_span(spans[k].data, size),
			                                plain ? NULL : &c->layout};
		}
		size_t parts = make_segments(spec, chunk, cases[0].chunk_size, segments, blocks, 3);
		lade_item item = {.src = segments, .src_count = parts, .outputs = outputs,
		                  .output_count = n};
		lade_result result;
		if (lade_decode_into(engines[top], spec, &item, 1, &result, NULL, &err) != LADE_OK)
			fail_msg("case %zu: %s", i, err.message);
		assert_int_equal(result.size, total);
		for (size_t k = 0; k < n; k++) {
			/* A destination may be larger than its result, and is unspecified there. */
			size_t size = outputs[k].layout ? spans[k].size : cases[0].chunk_size;
			expect_bytes(spans[k].data, want[k], size, "output", i);
			guard_free(&spans[k]);
			free(want[k]);
		}
		for (size_t k = 0; k < parts; k++)
			free(blocks[k]);
		free(chunk);
		lade_spec_unref(spec);
	}
}

static lade_status decode_one(const lade_item *item, lade_error *err)
{
	lade_spec *spec = parse("copy");
	lade_status status = lade_decode_into(engines[top], spec, item, 1, NULL, NULL, err);
	lade_spec_unref(spec);
	return status;
}

/* What plans a call reads no more of a layout than its struct_size and its tables have. */
static void test_short_layouts(void **state)
{
	(void)state;
	uint8_t from[5] = {1, 2, 3, 4, 5}, to[5] = {0};
	lade_error err;
	/* Of one element: a struct that ends behind elem_size. */
	guard shorter = guard_new(2 * sizeof(size_t), 1);
	memcpy(shorter.data, (size_t[]){2 * sizeof(size_t), 5}, shorter.size);
	lade_segment segment = {.data = from, .size = 5};
	lade_item x = {.src = &segment, .src_count = 1, .dst = lade_host_span(to, 5),
	               .layout = (const lade_layout *)(void *)shorter.data};
	assert_int_equal(decode_one(&x, &err), LADE_OK);
	assert_memory_equal(to, from, 5);
	/* More dimensions than are taken. */
	guard table = guard_copy((size_t[]){5}, sizeof(size_t), 1);
	lade_layout l = {.struct_size = sizeof l, .elem_size = 1, .ndim = LADE_DIMS_MAX + 1,
	                 .shape = (const size_t *)(void *)table.data};
	x.layout = &l;
	assert_int_equal(decode_one(&x, &err), LADE_E_ARG);
	assert_non_null(strstr(err.message, "33 dimensions"));
	guard_free(&shorter);
	guard_free(&table);
}

static void test_item_rules(void **state)
{
	(void)state;
	uint8_t from[12] = {0}, to[12];
	size_t shape[1] = {12}, other[1] = {11}, none[1] = {0};
	lade_error err;
	lade_layout l = {.struct_size = sizeof l, .elem_size = 1, .ndim = 1, .shape = shape};
	lade_layout m = l;
	lade_segment segment[2] = {{.data = from, .size = 12}, {.data = from, .size = 0}};
	lade_item good = {.src = segment, .src_count = 1, .layout = &l,
	                  .dst = lade_host_span(to, 12)}, x = good;
	assert_int_equal(decode_one(&good, &err), LADE_OK);
	x.range_off = 1;
	assert_int_equal(decode_one(&x, &err), LADE_E_ARG);
	x = good, x.range_size = 1;
	assert_int_equal(decode_one(&x, &err), LADE_E_ARG);
	x = good, x.dst.size = 11;
	assert_int_equal(decode_one(&x, &err), LADE_E_RANGE);
	segment[0].size = 11;
	assert_int_equal(decode_one(&good, &err), LADE_E_CORRUPT);
	segment[0].size = 12;
	m.shape = other;
	x = good, x.layout = &m;
	assert_int_equal(decode_one(&x, &err), LADE_E_NOSPACE);
	/* A box of no elements: the source is not looked at. */
	m.shape = shape;
	m.count = none;
	segment[0].size = 1;
	assert_int_equal(decode_one(&x, &err), LADE_OK);
	/* Nor that of a tail; and a layout is checked before the segments are decoded for it. */
	lade_spec *sum = parse("crc32c"), *copy = parse("copy");
	x.spec = sum, x.tail = copy;
	assert_int_equal(decode_one(&x, &err), LADE_OK);
	x.layout = &l, x.dst.size = 11;
	assert_int_equal(decode_one(&x, &err), LADE_E_RANGE);
	x.dst.size = 12;
	assert_int_equal(decode_one(&x, &err), LADE_E_TRUNCATED);
	lade_spec_unref(sum);
	lade_spec_unref(copy);
	segment[0].size = 12;
	/* Without elements there are no strides that are too large. */
	size_t vast[3] = {0, 5, (size_t)1 << 62};
	m = (lade_layout){.struct_size = sizeof m, .elem_size = 4, .ndim = 3, .shape = vast};
	x = good, x.layout = &m;
	assert_int_equal(decode_one(&x, &err), LADE_OK);
	/* A span that no memory has: an address there might come around to other memory. */
	m = l, m.offset = SIZE_MAX - 100;
	x = good, x.layout = &m, x.dst.size = SIZE_MAX;
	assert_int_equal(decode_one(&x, &err), LADE_E_RANGE);
	m = l;
	lade_item_output outputs[2] = {{lade_host_span(to, 12), &l},
	                               {lade_host_span(to, 12), NULL}};
	x = good, x.outputs = outputs, x.output_count = 2;
	assert_int_equal(decode_one(&x, &err), LADE_E_ARG);
	x.layout = NULL;
	assert_int_equal(decode_one(&x, &err), LADE_E_ARG);
	x.dst = (lade_span){0};
	uint8_t more[12];
	outputs[1].dst.data = more;
	assert_int_equal(decode_one(&x, &err), LADE_OK);
	outputs[1].dst.size = 11;
	assert_int_equal(decode_one(&x, &err), LADE_E_NOSPACE);
	outputs[1].dst.size = 12;
	m = l, m.shape = other, outputs[1].layout = &m;
	assert_int_equal(decode_one(&x, &err), LADE_E_ARG);
	x.range_size = 1, outputs[1].layout = NULL;
	assert_int_equal(decode_one(&x, &err), LADE_E_ARG);
	x.range_size = 0, x.outputs = NULL;
	assert_int_equal(decode_one(&x, &err), LADE_E_ARG);
	/* Encoding. */
	lade_spec *spec = parse("copy");
	x = good, x.src_count = 2;
	assert_int_equal(lade_encode_into(engines[top], spec, &x, 1, NULL, NULL, &err), LADE_E_ARG);
	x = good, x.outputs = outputs, x.output_count = 1;
	assert_int_equal(lade_encode_into(engines[top], spec, &x, 1, NULL, NULL, &err), LADE_E_ARG);
	x = good, x.tail = spec;
	assert_int_equal(lade_encode_into(engines[top], spec, &x, 1, NULL, NULL, &err), LADE_E_ARG);
	x = good, x.dst.size = 11;
	assert_int_equal(lade_encode_into(engines[top], spec, &x, 1, NULL, NULL, &err),
	                 LADE_E_NOSPACE);
	lade_spec_unref(spec);
}

/* ---- tails ---------------------------------------------------------------------------------- */

static void test_tail(void **state)
{
	(void)state;
	static const char *const tails[] = {"shuffle(4)", "delta(i1)", "shuffle(8)|crc32c", "lz4",
	                                    "zigzag(i1)|shuffle(2)"};
	static const char *const heads[] = {"zstd(1)", "lz4", "copy", "ans|crc32c", "zlib"};
	for (size_t i = 0; i < CASES / 8; i++) {
		lade_spec *tail = parse(tails[rng_below(&r, 5)]);
		lade_spec *head = parse(heads[rng_below(&r, 5)]);
		layout_case c;
		lade_error err;
		lade_segment segments[4];
		uint8_t *blocks[4];
		layout_random(&r, &c, 3000, false);
		uint8_t *chunk = random_bytes(c.chunk_size), *want = malloc(c.span_size + 1);
		size_t room = lade_spec_bound(tail, c.chunk_size), joined;
		uint8_t *middle = malloc(room + 1);
		if (lade_encode(engines[top], tail, lade_host_cspan(chunk, c.chunk_size),
		                lade_host_span(middle, room), &joined, &err))
			fail_msg("%s", err.message);
		size_t n = make_segments(head, middle, joined, segments, blocks, 4);
		bool placed = rng_below(&r, 3), own = rng_below(&r, 2);
		memset(want, 0xA5, c.span_size);
		layout_reference(&c, chunk, want, false);
		guard span = guard_new(placed ? c.span_size : c.chunk_size, 1);
		lade_item item = {.spec = own ? head : NULL, .src = segments, .src_count = n,
		                  .dst = lade_host_span(span.data, span.size), .tail = tail,
		                  .layout = placed ? &c.layout : NULL};
		lade_result result;
		if (lade_decode_into(engines[top], head, &item, 1, &result, NULL, &err) != LADE_OK)
			fail_msg("case %zu: %s", i, err.message);
		assert_int_equal(result.size, placed ? c.size : c.chunk_size);
		expect_bytes(span.data, placed ? want : chunk, span.size, "tail", i);
		/* A range of the tail's result. */
		if (!placed && c.chunk_size > 1) {
			size_t off = rng_below(&r, c.chunk_size - 1);
			item.range_off = off;
			item.range_size = 1 + rng_below(&r, c.chunk_size - off);
			if (lade_decode_into(engines[top], head, &item, 1, &result, NULL, &err))
				fail_msg("case %zu: %s", i, err.message);
			expect_bytes(span.data, chunk + off, (size_t)item.range_size, "range", i);
		}
		for (size_t k = 0; k < n; k++)
			free(blocks[k]);
		guard_free(&span);
		free(chunk);
		free(want);
		free(middle);
		lade_spec_unref(tail);
		lade_spec_unref(head);
	}
}

/* Many items of all kinds in one call, on several threads. */
static void test_many(void **state)
{
	(void)state;
	enum { ITEMS = 300 };
	static layout_case c[ITEMS];
	static lade_item items[ITEMS];
	static lade_segment segments[ITEMS];
	static guard spans[ITEMS];
	uint8_t *want[ITEMS], *blocks[ITEMS];
	lade_spec *spec = parse("shuffle(4)|lz4");
	lade_error err;
	for (size_t i = 0; i < ITEMS; i++) {
		layout_random(&r, &c[i], 20000, false);
		uint8_t *chunk = random_bytes(c[i].chunk_size);
		want[i] = malloc(c[i].span_size + 1);
		memset(want[i], 0xA5, c[i].span_size);
		layout_reference(&c[i], chunk, want[i], false);
		make_segments(spec, chunk, c[i].chunk_size, &segments[i], &blocks[i], 1);
		spans[i] = guard_new(c[i].span_size, 1);
		items[i] = (lade_item){.src = &segments[i], .src_count = 1, .layout = &c[i].layout,
		                       .dst = lade_host_span(spans[i].data, c[i].span_size)};
		free(chunk);
	}
	if (lade_decode_into(engines[top], spec, items, ITEMS, NULL, NULL, &err) != LADE_OK)
		fail_msg("%s", err.message);
	for (size_t i = 0; i < ITEMS; i++) {
		expect_bytes(spans[i].data, want[i], c[i].span_size, "many", i);
		guard_free(&spans[i]);
		free(want[i]);
		free(blocks[i]);
	}
	lade_spec_unref(spec);
}

int main(void)
{
	const char *seed = getenv("LADE_SEED");
	r.s = seed ? strtoull(seed, NULL, 0) : 14;
	top = (size_t)lade_cpu_detect();
	for (size_t level = 1; level <= top; level++) {
		lade_engine_options options = {
			.struct_size = sizeof options, .threads = 3, .cpu = (lade_cpu)level};
		if (lade_engine_new(&options, &engines[level], NULL) != LADE_OK)
			return 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scatter),      cmocka_unit_test(test_gather),
		cmocka_unit_test(test_large_rows),   cmocka_unit_test(test_large_turn),
		cmocka_unit_test(test_two_steps),        cmocka_unit_test(test_refused_forms),
		cmocka_unit_test(test_refused_places), cmocka_unit_test(test_shared_bytes),
		cmocka_unit_test(test_public),
		cmocka_unit_test(test_items_decode), cmocka_unit_test(test_items_encode),
		cmocka_unit_test(test_outputs),      cmocka_unit_test(test_item_rules),
		cmocka_unit_test(test_short_layouts),
		cmocka_unit_test(test_tail),         cmocka_unit_test(test_many),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t level = 1; level <= top; level++)
		lade_engine_free(engines[level]);
	return failed;
}
