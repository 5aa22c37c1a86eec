/*
 * test_zarr_read.c: reads of random arrays by random selections, against what numpy's rules give
 * of a plain copy of all elements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "zarr_kit.h"

/* ---- numpy's rules, plainly --------------------------------------------------------------- */

/* The indices that an axis of 'size' gives, as Python's range(*slice.indices(size)). */
static size_t indices(const lade_zarr_index *index, int64_t size, int64_t *out)
{
	size_t n = 0;
	if (index->kind == LADE_ZARR_AT) {
		out[n++] = index->start < 0 ? index->start + size : index->start;
	} else if (index->kind == LADE_ZARR_LIST) {
		for (; n < index->count; n++)
			out[n] = index->list[n] < 0 ? index->list[n] + size : index->list[n];
	} else if (index->kind == LADE_ZARR_MASK) {
		for (int64_t i = 0; i < size; i++)
			if (index->mask[i])
				out[n++] = i;
	} else {
		int64_t step = index->kind == LADE_ZARR_ALL || !index->step ? 1 : index->step;
		int64_t start = index->kind == LADE_ZARR_ALL ? LADE_ZARR_OPEN : index->start;
		int64_t stop = index->kind == LADE_ZARR_ALL ? LADE_ZARR_OPEN : index->stop;
		int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
		start = start == LADE_ZARR_OPEN ? (step > 0 ? low : high)
		                                : start + (start < 0 ? size : 0);
		stop = stop == LADE_ZARR_OPEN ? (step > 0 ? high : low)
		                              : stop + (stop < 0 ? size : 0);
		start = start < low ? low : start > high ? high : start;
		stop = stop < low ? low : stop > high ? high : stop;
		for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
			out[n++] = i;
	}
	return n;
}

#define LIST_MAX 64
typedef struct random_axes {
	lade_zarr_index axis[4];
	int64_t list[4][LIST_MAX];
	uint8_t mask[4][LIST_MAX];
	int64_t at[4][LIST_MAX];
	size_t count[4];
} random_axes;

static int64_t some(rng *random, int64_t low, int64_t high)
{
	return low + (int64_t)(rng_next(random) % (uint64_t)(high - low + 1));
}

/* 'plain': no lists and masks. */
static void random_axis(random_axes *x, size_t a, int64_t size, bool plain, rng *random)
{
	lade_zarr_index *index = &x->axis[a];
	uint64_t kind = rng_next(random) % (plain ? 8 : 12);
	*index = (lade_zarr_index){.kind = LADE_ZARR_ALL};
	if (kind >= 2 && kind < 7) {
		index->kind = LADE_ZARR_SLICE;
		index->start = kind == 2 ? LADE_ZARR_OPEN : some(random, -size - 2, size + 2);
		index->stop = kind == 3 ? LADE_ZARR_OPEN : some(random, -size - 2, size + 2);
		index->step = some(random, -4, 5);
	} else if (kind == 7 && size) {
		index->kind = LADE_ZARR_AT;
		index->start = some(random, -size, size - 1);
	} else if (kind >= 8 && kind < 10 && size) {
		index->kind = LADE_ZARR_LIST;
		index->list = x->list[a];
		index->count = rng_next(random) % 12;
		for (size_t i = 0; i < index->count; i++)
			x->list[a][i] = some(random, -size, size - 1);
	} else if (kind >= 10) {
		index->kind = LADE_ZARR_MASK;
		index->mask = x->mask[a];
		index->count = (size_t)size;
		for (int64_t i = 0; i < size; i++)
			x->mask[a][i] = rng_next(random) % 3 == 0;
	}
	x->count[a] = indices(index, size, x->at[a]);
}

/* ---- targets -------------------------------------------------------------------------------- */

/* A buffer with a random arrangement of the result's axes: permuted, reversed, with gaps. */
typedef struct arrangement {
	guard memory;
	size_t offset, size;
	ptrdiff_t strides[4];
} arrangement;

static arrangement arrange(const lade_zarr_shape *shape, bool plain, rng *random)
{
	arrangement out = {.size = shape->elem_size};
	size_t order[4] = {0, 1, 2, 3};
	if (shape->count == 0)
		out.size = 0;
	for (size_t i = shape->ndim; i-- > 1 && !plain;) {
		size_t other = rng_next(random) % (i + 1), kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	for (size_t k = shape->ndim; k-- > 0;) {
		size_t i = order[k], n = (size_t)shape->shape[i];
		size_t stride = out.size + (plain ? 0 : rng_next(random) % 3 * shape->elem_size);
		out.strides[i] = (ptrdiff_t)stride;
		out.size += n ? (n - 1) * stride : 0;
		if (!plain && n && rng_next(random) % 4 == 0) {
			out.offset += (n - 1) * stride;
			out.strides[i] = -out.strides[i];
		}
	}
	out.memory = guard_new(out.size, 1);
	return out;
}

/* ---- the test ----------------------------------------------------------------------------- */

static void describe(const zarr_kit *k, const random_axes *x, uint64_t seed)
{
	print_error("seed %" PRIu64 ": %s\n", seed, k->json);
	for (size_t a = 0; a < k->array->ndim; a++)
		print_error("axis %zu: kind %d, %lld:%lld:%lld, %zu indices\n", a,
		            (int)x->axis[a].kind, (long long)x->axis[a].start,
		            (long long)x->axis[a].stop, (long long)x->axis[a].step, x->count[a]);
}

/* What the buffer must be: the elements at their places, and what was there between them. */
static void expect(const zarr_kit *k, const random_axes *x, const arrangement *to, uint8_t *want)
{
	uint64_t at[4] = {0}, counts[4];
	for (size_t a = 0; a < k->array->ndim; a++) {
		counts[a] = x->count[a];
		if (counts[a] == 0)
			return;
	}
	do {
		uint64_t linear = 0;
		uint8_t *dst = want + to->offset;
		size_t i = 0;
		for (size_t a = 0; a < k->array->ndim; a++) {
			linear = linear * k->array->axes[a].size + (uint64_t)x->at[a][at[a]];
			if (x->axis[a].kind != LADE_ZARR_AT)
				dst += (ptrdiff_t)at[a] * to->strides[i++];
		}
		memcpy(dst, k->model + linear * k->elem, k->elem);
	} while (kit_next(at, counts, k->array->ndim));
}

static void read_once(zarr_kit *k, rng *random, uint64_t seed)
{
	random_axes x;
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = x.axis,
	                                 .axis_count = k->array->ndim,
	                                 .index_size = sizeof x.axis[0]};
	lade_zarr_report report = {.struct_size = sizeof report};
	lade_zarr_read_options options = {.struct_size = sizeof options,
	                                  .threads = 1 + (unsigned)(rng_next(random) % 3)};
	lade_error err = {0};
	bool lists = rng_next(random) % 3 == 0, plain = rng_next(random) % 2;
	for (size_t a = 0; a < k->array->ndim; a++)
		random_axis(&x, a, (int64_t)k->array->axes[a].size, !lists, random);
	KIT_CHECK(lade_zarr_selection_shape(k->node, &selection, &shape, &kit_err));
	arrangement to = arrange(&shape, plain, random);
	uint8_t *want = malloc(to.size + 1);
	memset(want, 0xA5, to.size);
	expect(k, &x, &to, want);
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(to.memory.data, to.size),
	                           .offset = to.offset,
	                           .strides = plain ? NULL : to.strides};
	lade_status status = lade_zarr_read(k->node, &selection, &target, &options, &report, &err);
	if (status != LADE_OK || memcmp(want, to.memory.data, to.size) != 0) {
		describe(k, &x, seed);
		fail_msg("%s", status == LADE_OK ? "the elements differ" : err.message);
	}
	if (report.written_size + report.filled_size != shape.size) {
		describe(k, &x, seed);
		fail_msg("%" PRIu64 " + %" PRIu64 " bytes for %" PRIu64, report.written_size,
		         report.filled_size, shape.size);
	}
	guard_free(&to.memory);
	free(want);
}

/* ---- points --------------------------------------------------------------------------------- */

/* Points as lists of a shape, some broadcast; or a mask of the whole array. */
static void read_points(zarr_kit *k, rng *random, uint64_t seed)
{
	size_t ndim = k->array->ndim, rows = 1 + rng_next(random) % 4, n = rng_next(random) % 9;
	uint64_t wide[2] = {rows, n}, row[1] = {n}, column[2] = {rows, 1};
	int64_t lists[4][64];
	uint8_t *mask = calloc(1, k->count + 1);
	lade_zarr_index axes[4];
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = axes,
	                                 .index_size = sizeof axes[0]};
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	bool where = rng_next(random) % 3 == 0 || ndim == 0;
	size_t count = where ? 0 : rows * n;
	for (size_t i = 0; where && i < k->count; i++)
		count += mask[i] = rng_next(random) % 5 == 0;
	for (size_t a = 0; a < ndim && !where; a++) {
		const uint64_t *shapes[3] = {wide, row, column};
		/* One list has all of the shape. */
		uint64_t form = a ? rng_next(random) % 4 : 0;
		int64_t size = (int64_t)k->array->axes[a].size;
		axes[a] = (lade_zarr_index){.kind = form == 3 ? LADE_ZARR_AT : LADE_ZARR_LIST,
		                            .start = size ? some(random, -size, size - 1) : 0,
		                            .list = lists[a],
		                            .shape_ndim = form == 1 ? 1 : 2,
		                            .shape = shapes[form % 3],
		                            .count = form == 0   ? rows * n
		                                     : form == 1 ? n
		                                                 : rows};
		for (size_t i = 0; i < axes[a].count && size; i++)
			lists[a][i] = some(random, -size, size - 1);
		if (size == 0)
			goto out;
	}
	selection.mode = where ? LADE_ZARR_WHERE : LADE_ZARR_POINTS;
	selection.axis_count = where ? 0 : ndim;
	selection.mask = mask;
	selection.mask_size = where ? k->count : 0;
	KIT_CHECK(lade_zarr_selection_shape(k->node, &selection, &shape, &kit_err));
	assert_int_equal(shape.count, count);
	assert_int_equal(shape.ndim, where ? 1 : 2);
	guard got = guard_new(count * k->elem, 1);
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(got.data, got.size)};
	lade_error err = {0};
	lade_status status = lade_zarr_read(k->node, &selection, &target, NULL, NULL, &err);
	if (status != LADE_OK)
		fail_msg("seed %" PRIu64 ": %s: %s", seed, err.message, k->json);
	for (size_t i = 0, at = 0; i < count; i++, at++) {
		uint64_t linear = 0;
		while (where && !mask[at])
			at++;
		for (size_t a = 0; a < ndim && !where; a++) {
			const lade_zarr_index *x = &axes[a];
			int64_t size = (int64_t)k->array->axes[a].size;
			int64_t v = x->kind == LADE_ZARR_AT ? x->start
			            : x->count == rows * n && x->shape == wide ? lists[a][i]
			            : x->shape == row ? lists[a][i % n] : lists[a][i / n];
			linear = linear * (uint64_t)size + (uint64_t)(v < 0 ? v + size : v);
		}
		linear = where ? at : linear;
		if (memcmp(got.data + i * k->elem, k->model + linear * k->elem, k->elem) != 0)
			fail_msg("seed %" PRIu64 ", point %zu: %s", seed, i, k->json);
	}
	guard_free(&got);
out:
	free(mask);
}

static void random_reads(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 1500; seed++) {
		rng random = {seed * 7919};
		zarr_kit k;
		kit_make(&k, &random, (int)(seed % 3));
		for (int i = 0; i < 8; i++) {
			read_once(&k, &random, seed);
			read_points(&k, &random, seed);
		}
		kit_free(&k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_reads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
