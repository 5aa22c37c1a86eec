/*
 * fuzz_layout.c: layouts whose every field is the input's.  One that is taken is copied both ways
 * like nested indices, within its span, at every CPU level and in pieces.  One whose elements share
 * bytes is refused, as far as that is promised, and one is refused for that only where they do.
 *
 * The input's bytes are numbers, small ones mostly: a byte of 0xF8 and above stands for a large
 * one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "array/plan.h"
#include "layout_kit.h"

#include <stdio.h>

#define SPAN 4096
#define CHUNK_MOST ((size_t)1 << 16)

typedef struct input {
	const uint8_t *at, *end;
} input;

static size_t number(input *in)
{
	uint8_t byte = in->at < in->end ? *in->at++ : 0;
	return byte < 0xF8 ? byte : SIZE_MAX >> (8 * (byte - 0xF8));
}

static void read_layout(input *in, layout_case *c)
{
	memset(c, 0, sizeof *c);
	size_t flags = number(in), ndim = number(in) % 40;
	c->layout = (lade_layout){.struct_size = sizeof c->layout, .elem_size = number(in),
	                          .ndim = ndim, .shape = c->shape, .offset = number(in) * 8,
	                          .part_off = flags & 1 ? number(in) : 0,
	                          .part_size = flags & 1 ? number(in) : 0,
	                          .swap_size = flags & 2 ? number(in) : 0};
	c->layout.start = flags & 4 ? c->start : NULL;
	c->layout.step = flags & 4 ? c->step : NULL;
	c->layout.count = flags & 8 ? c->count : NULL;
	c->layout.order = flags & 16 ? c->order : NULL;
	c->layout.strides = flags & 32 ? c->strides : NULL;
	for (size_t a = 0; a < ndim && a < LADE_DIMS_MAX; a++) {
		c->shape[a] = number(in);
		c->start[a] = flags & 4 ? number(in) : 0;
		c->step[a] = flags & 4 ? number(in) : 1;
		c->count[a] = flags & 8 ? number(in) : 0;
		c->order[a] = flags & 16 ? number(in) : a;
		size_t stride = flags & 32 ? number(in) : 0;
		c->strides[a] = stride & 128 ? -(ptrdiff_t)(stride & 127) : (ptrdiff_t)stride;
	}
}

/* The defaults filled in, for the reference; false: too much work. */
static bool complete(layout_case *c)
{
	const lade_layout *l = &c->layout;
	c->part_size = l->part_size ? l->part_size : l->elem_size - l->part_off;
	c->chunk_size = l->elem_size;
	for (size_t a = 0; a < l->ndim; a++) {
		if (!l->count)
			c->count[a] = c->start[a] < c->shape[a]
			                      ? (c->shape[a] - c->start[a] - 1) / c->step[a] + 1
			                      : 0;
		if (__builtin_mul_overflow(c->chunk_size, c->shape[a], &c->chunk_size))
			return false;
	}
	size_t stride = c->part_size;
	for (size_t d = l->ndim; d-- > 0 && !l->strides;) {
		c->strides[d] = (ptrdiff_t)stride;
		stride *= c->count[c->order[d]] ? c->count[c->order[d]] : 1;
	}
	return c->chunk_size <= CHUNK_MOST;
}

static void wrong(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

typedef struct marks {
	uint8_t used[SPAN];
	size_t part;
	bool shared;
} marks;

static void mark(void *ctx, size_t from, size_t to)
{
	marks *m = ctx;
	(void)from;
	for (size_t k = 0; k < m->part; k++) {
		m->shared |= m->used[to + k];
		m->used[to + k] = 1;
	}
}

static bool shares(const layout_case *c)
{
	marks m = {.part = c->part_size};
	layout_walk(c, mark, &m);
	return m.shared;
}

static void expect_same(const void *a, const void *b, size_t size, const char *what)
{
	if (size && memcmp(a, b, size)) {
		fprintf(stderr, "%s: ", what);
		wrong("it differs from nested indices");
	}
}

static void scatter(const layout_case *c, const lade__plan *plan, lade_cpu cpu, size_t piece)
{
	uint8_t *chunk = malloc(c->chunk_size + 1), *want = malloc(SPAN);
	guard span = guard_new(SPAN, piece & 1);
	for (size_t i = 0; i < c->chunk_size; i++)
		chunk[i] = (uint8_t)(i * 2654435761u >> 13);
	memset(want, 0xA5, SPAN);
	layout_reference(c, chunk, want, false);
	for (size_t off = 0; off < c->chunk_size; off += piece) {
		size_t n = c->chunk_size - off < piece ? c->chunk_size - off : piece;
		lade__plan_scatter(plan, cpu, off, chunk + off, n, span.data);
	}
	/* Where elements share bytes that the tries have not found, the last write is any. */
	if (!shares(c))
		expect_same(span.data, want, SPAN, "scatter");
	else if (plan->ndim < 3)
		wrong("elements of two axes share bytes");
	guard_free(&span);
	free(chunk);
	free(want);
}

static void gather(const layout_case *c, const lade__plan *plan, lade_cpu cpu)
{
	uint8_t *from = malloc(SPAN), *want = malloc(c->chunk_size + 1);
	for (size_t i = 0; i < SPAN; i++)
		from[i] = (uint8_t)(i * 2654435761u >> 11);
	guard span = guard_copy(from, SPAN, 1), chunk = guard_new(c->chunk_size, 1);
	layout_reference(c, from, want, true);
	lade__plan_gather(plan, cpu, span.data, chunk.data);
	expect_same(chunk.data, want, c->chunk_size, "gather");
	guard_free(&span);
	guard_free(&chunk);
	free(from);
	free(want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input in = {data, data + size};
	layout_case c;
	lade__plan plan;
	read_layout(&in, &c);
	lade_cpu cpu = (lade_cpu)(1 + number(&in) % (size_t)lade_cpu_detect());
	size_t piece = 1 + number(&in) % 1000;
	lade_error err;
	bool decodes = lade__plan_make(&c.layout, LADE_DECODE, SPAN, &plan, &err) == LADE_OK;
	if (decodes && complete(&c))
		scatter(&c, &plan, cpu, piece);
	if (!decodes && strstr(err.message, "share bytes") && complete(&c) && !shares(&c))
		wrong("no elements share bytes");
	read_layout(&(input){data, data + size}, &c);
	bool encodes = lade__plan_make(&c.layout, LADE_ENCODE, SPAN, &plan, NULL) == LADE_OK;
	if (encodes && complete(&c))
		gather(&c, &plan, cpu);
	return 0;
}
