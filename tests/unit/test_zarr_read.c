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

#include <pthread.h>

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
	lade_zarr_plan *plan;
	lade_zarr_plan_info info = {.struct_size = sizeof info};
	const lade_zarr *from = rng_next(random) % 4 ? k->node : k->far_node;
	options.memory = rng_next(random) % 2 * 3000;
	KIT_CHECK(lade_zarr_plan_new(from, &selection, &target, &options, &plan, &kit_err));
	KIT_CHECK(lade_zarr_plan_get_info(plan, &info, &kit_err));
	lade_status status = lade_zarr_plan_run(plan, &report, &err);
	lade_zarr_plan_free(plan);
	if (status != LADE_OK || memcmp(want, to.memory.data, to.size) != 0) {
		describe(k, &x, seed);
		fail_msg("%s", status == LADE_OK ? "the elements differ" : err.message);
	}
	if (report.written_size + report.filled_size != shape.size) {
		describe(k, &x, seed);
		fail_msg("%" PRIu64 " + %" PRIu64 " bytes for %" PRIu64, report.written_size,
		         report.filled_size, shape.size);
	}
	if (info.chunk_count != report.chunk_count + report.missing_count ||
	    report.direct_count > info.direct_count || info.decoded_size < report.decoded_size) {
		describe(k, &x, seed);
		fail_msg("the plan: %s", info.text);
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

/* Parts of chunks without codecs. */
static void random_parts(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		rng random = {seed * 104729};
		zarr_kit k;
		kit_make_plain(&k, &random);
		for (int i = 0; i < 40; i++) {
			read_once(&k, &random, seed);
			read_points(&k, &random, seed);
		}
		kit_free(&k);
	}
}

/* ---- single cases ------------------------------------------------------------------------- */

static lade_store *memory;

static int setup(void **state)
{
	(void)state;
	return lade_store_memory_new(LADE_PLACE_HOST, NULL, &memory, NULL) != LADE_OK;
}

static int teardown(void **state)
{
	(void)state;
	lade_store_unref(memory);
	return 0;
}

static lade_zarr *open_text(const char *key, const char *text)
{
	lade_zarr *node;
	kit_put(memory, key, text, strlen(text));
	KIT_CHECK(lade_zarr_open(memory, "", NULL, &node, &kit_err));
	return node;
}

/* Reads all of an array, or text's selection, to memory that fits; the status, and the message. */
static lade_status read_text(const lade_zarr *node, const char *text, void *to, size_t size,
                             lade_error *err)
{
	lade_zarr_selection *selection = NULL;
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(to, size)};
	lade_zarr_read_options options = {.struct_size = sizeof options, .threads = 1};
	lade_status status = LADE_OK;
	if (text)
		status = lade_zarr_selection_parse(node, text, &selection, err);
	if (status == LADE_OK)
		status = lade_zarr_read(node, selection, &target, &options, NULL, err);
	lade_zarr_selection_free(selection);
	return status;
}

static void says(lade_status have, lade_status want, const lade_error *err, const char *text)
{
	if (have != want || (want != LADE_OK && !strstr(err->message, text)))
		fail_msg("want %s \"%s\", have %s \"%s\"", lade_status_name(want), text,
		         lade_status_name(have), err->message);
}

static const char twelve[] =
	"{\"zarr_format\":2,\"shape\":[3,4],\"chunks\":[2,3],\"dtype\":\"|u1\",\"order\":\"F\","
	"\"fill_value\":9,\"compressor\":null,\"filters\":null}";

/* An array of 3 x 4 bytes in chunks of 2 x 3, in Fortran's order; chunk 1.0 is missing. */
static lade_zarr *make_twelve(void)
{
	static const uint8_t c00[] = {0, 10, 1, 11, 2, 12}, c01[] = {3, 13, 0, 0, 0, 0},
	                     c11[] = {23, 0, 0, 0, 0, 0};
	lade_zarr *node = open_text(".zarray", twelve);
	kit_put(memory, "0.0", c00, sizeof c00);
	kit_put(memory, "0.1", c01, sizeof c01);
	kit_put(memory, "1.1", c11, sizeof c11);
	return node;
}

static void texts(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint8_t want[12];
		size_t count;
	} good[] = {
		{"", {0, 1, 2, 3, 10, 11, 12, 13, 9, 9, 9, 23}, 12},
		{"...", {0, 1, 2, 3, 10, 11, 12, 13, 9, 9, 9, 23}, 12},
		{"[0]", {0, 1, 2, 3}, 4},
		{"-1, ::-1", {23, 9, 9, 9}, 4},
		{"[..., 3]", {3, 13, 23}, 3},
		{"[[2, 0, -2, 0], 1:4:2]", {9, 23, 1, 3, 11, 13, 1, 3}, 8},
		{" [ 1 : , : 1 ] ", {10, 9}, 2},
		{"1,-2,...", {12}, 1},
		{"5:2", {0}, 0},
	};
	static const struct {
		const char *text, *message;
		lade_status status;
	} bad[] = {
		{"3", "index 3 of an axis with 3", LADE_E_RANGE},
		{"-4", "index -4 of an axis with 3", LADE_E_RANGE},
		{"[[0, 3]]", "index 3", LADE_E_RANGE},
		{"0,0,0", "more axes than the array's 2", LADE_E_ARG},
		{"a", "character 0: want an index", LADE_E_ARG},
		{"::0", "a step that is not 0", LADE_E_ARG},
		{"1 2", "character 2: want ','", LADE_E_ARG},
		{"[[1", "want", LADE_E_ARG},
		{"...,...", "only once", LADE_E_ARG},
		{"99999999999999999999", "an integer of 64 bits", LADE_E_ARG},
		{"1:2:3:4", "want ','", LADE_E_ARG},
	};
	lade_zarr *node = make_twelve();
	lade_error err = {0};
	uint8_t to[12];
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		memset(to, 0xEE, sizeof to);
		says(read_text(node, good[i].text, to, good[i].count, &err), LADE_OK, &err, "");
		if (memcmp(to, good[i].want, good[i].count) != 0)
			fail_msg("'%s' reads other elements", good[i].text);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		says(read_text(node, bad[i].text, to, 12, &err), bad[i].status, &err,
		     bad[i].message);
	says(read_text(node, "", to, 11, &err), LADE_E_RANGE, &err, "want 12 bytes, have 11");
	int32_t devices;
	lade_zarr_target far = {.struct_size = sizeof far, .span = {to, 12, {LADE_DEVICE, 0}}};
	if (lade_device_count(&devices, NULL) == LADE_E_NO_DEVICE)
		says(lade_zarr_read(node, NULL, &far, NULL, NULL, &err), LADE_E_NO_DEVICE, &err,
		     "");
	lade_zarr_unref(node);
}

/* Each chunk goes to memory of its own, or one is refused. */
typedef struct placing {
	uint8_t bytes[2][2][6];
	unsigned count;
	bool refuse;
} placing;

static lade_status place(void *ctx, const lade_zarr_box *box, lade_zarr_place *out, lade_error *err)
{
	placing *p = ctx;
	if (p->refuse && box->start[0])
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET, "no place for %s", box->key);
	uint8_t *to = p->bytes[box->start[0] / 2][box->start[1] / 3];
	out->span = lade_host_span(to, (size_t)(box->count[0] * box->count[1]));
	__atomic_fetch_add(&p->count, 1, __ATOMIC_RELAXED);
	return LADE_OK;
}

static void places(void **state)
{
	(void)state;
	lade_zarr *node = make_twelve();
	placing p = {.count = 0};
	lade_error err = {0};
	lade_zarr_target target = {.struct_size = sizeof target, .place = place, .ctx = &p};
	lade_zarr_report report = {.struct_size = sizeof report};
	static const uint8_t want[2][2][6] = {{{0, 1, 2, 10, 11, 12}, {3, 13}},
	                                      {{9, 9, 9}, {23}}};
	says(lade_zarr_read(node, NULL, &target, NULL, &report, &err), LADE_OK, &err, "");
	assert_memory_equal(p.bytes, want, sizeof want);
	assert_int_equal(p.count, 4);
	assert_int_equal(report.missing_count, 1);
	assert_int_equal(report.filled_size, 3);
	p.refuse = true;
	says(lade_zarr_read(node, NULL, &target, NULL, &report, &err), LADE_E_NOSPACE, &err,
	     "no place for 1.");
	lade_zarr_unref(node);
}

/* Whole chunks that are contiguous in the target are decoded straight into it: each byte is
 * written once. */
static void one_write(void **state)
{
	(void)state;
	lade_zarr_report report = {.struct_size = sizeof report};
	lade_error err = {0};
	uint8_t chunk[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, to[36];
	lade_zarr *node = open_text(
		"zarr.json",
		"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[9,4],"
		"\"data_type\":\"uint8\",\"chunk_grid\":{\"name\":\"regular\","
		"\"configuration\":{\"chunk_shape\":[3,4]}},"
		"\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":1,"
		"\"codecs\":[{\"name\":\"bytes\"}]}");
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(to, sizeof to)};
	kit_put(memory, "c/0/0", chunk, 12);
	kit_put(memory, "c/1/0", chunk, 12);
	kit_put(memory, "c/2/0", chunk, 12);
	says(lade_zarr_read(node, NULL, &target, NULL, &report, &err), LADE_OK, &err, "");
	assert_int_equal(report.chunk_count, 3);
	assert_int_equal(report.direct_count, 3);
	assert_int_equal(report.decoded_size, 36);
	assert_int_equal(report.written_size, 36);
	assert_int_equal(report.copied_size, 0);
	lade_zarr_plan *plan;
	lade_zarr_plan_info info = {.struct_size = sizeof info};
	KIT_CHECK(lade_zarr_plan_new(node, NULL, &target, NULL, &plan, &kit_err));
	KIT_CHECK(lade_zarr_plan_get_info(plan, &info, &kit_err));
	lade_zarr_plan_free(plan);
	assert_int_equal(info.direct_count, 3);
	assert_int_equal(info.chunk_count, 3);
	assert_int_equal(info.range_count, 3);
	assert_int_equal(report.filled_size, 0);
	assert_memory_equal(to + 24, chunk, 12);
	/* A chunk of another size is corrupt, and the message says which. */
	kit_put(memory, "c/1/0", chunk, 11);
	says(read_text(node, NULL, to, sizeof to, &err), LADE_E_CORRUPT, &err,
	     "key 'c/1/0', chunk (1, 0): it decodes to 11 bytes, want 12");
	kit_put(memory, "c/1/0", to, 13);
	says(read_text(node, NULL, to, sizeof to, &err), LADE_E_NOSPACE, &err, "chunk (1, 0)");
	lade_zarr_unref(node);
	lade_write gone = {.key = "zarr.json", .kind = LADE_DELETE_IF_VERSION};
	KIT_CHECK(lade_store_write(memory, &gone, 1, NULL, NULL, &kit_err));
}

/* ---- blocks and uneven chunks ------------------------------------------------------------- */

static void blocks_of_chunks(void **state)
{
	(void)state;
	static const uint8_t want[] = {9, 9, 9, 23};
	lade_zarr_index axes[2] = {{.kind = LADE_ZARR_AT, .start = -1}, {.kind = LADE_ZARR_ALL}};
	lade_zarr_selection selection = {.struct_size = sizeof selection,
	                                 .mode = LADE_ZARR_BLOCKS,
	                                 .axes = axes,
	                                 .axis_count = 2,
	                                 .index_size = sizeof axes[0]};
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	lade_error err = {0};
	uint8_t to[12];
	lade_zarr_target target = {.struct_size = sizeof target, .span = lade_host_span(to, 12)};
	lade_zarr *node = make_twelve();
	KIT_CHECK(lade_zarr_selection_shape(node, &selection, &shape, &kit_err));
	assert_int_equal(shape.ndim, 2);
	assert_int_equal(shape.shape[0], 1);
	assert_int_equal(shape.shape[1], 4);
	says(lade_zarr_read(node, &selection, &target, NULL, NULL, &err), LADE_OK, &err, "");
	assert_memory_equal(to, want, 4);
	axes[0] = (lade_zarr_index){.kind = LADE_ZARR_SLICE, .start = 0, .stop = 1};
	axes[1] = (lade_zarr_index){.kind = LADE_ZARR_AT, .start = 1};
	says(lade_zarr_read(node, &selection, &target, NULL, NULL, &err), LADE_OK, &err, "");
	assert_memory_equal(to, "\3\15", 2);
	axes[1].start = 2;
	says(lade_zarr_read(node, &selection, &target, NULL, NULL, &err), LADE_E_RANGE, &err,
	     "axis 1: index 2 of an axis with 2");
	axes[0].step = 2;
	says(lade_zarr_read(node, &selection, &target, NULL, NULL, &err), LADE_E_ARG, &err,
	     "blocks with a step of 2");
	lade_zarr_unref(node);
}

/* Chunks of 1, 4 and 2 times 3 elements. */
static void uneven_chunks(void **state)
{
	(void)state;
	static const uint8_t sizes[4] = {1, 4, 3, 3};
	lade_error err = {0};
	uint8_t chunk[4], to[10], number = 0;
	char key[8];
	lade_zarr *node = open_text(
		"zarr.json", "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[10],"
		             "\"data_type\":\"uint8\",\"chunk_grid\":{\"name\":\"rectilinear\","
		             "\"configuration\":{\"kind\":\"inline\",\"chunk_shapes\":[[1,4,[3,2]]]"
		             "}},\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":99,"
		             "\"codecs\":[{\"name\":\"bytes\"},{\"name\":\"crc32c\"}]}");
	const lade_zarr_array *array = lade_zarr_as_array(node);
	for (uint8_t i = 0; i < 4; i++) {
		uint8_t packed[16];
		size_t size;
		for (uint8_t k = 0; k < sizes[i]; k++)
			chunk[k] = number++;
		KIT_CHECK(lade_encode(lade_engine_default(), array->chain.steps[0].spec,
		                      lade_host_cspan(chunk, sizes[i]),
		                      lade_host_span(packed, sizeof packed), &size, &kit_err));
		snprintf(key, sizeof key, "c/%d", i);
		if (i != 2)
			kit_put(memory, key, packed, size);
	}
	says(read_text(node, NULL, to, 10, &err), LADE_OK, &err, "");
	assert_memory_equal(to, "\0\1\2\3\4\143\143\143\10\11", 10);
	says(read_text(node, "9::-2", to, 5, &err), LADE_OK, &err, "");
	assert_memory_equal(to, "\11\143\143\3\1", 5);
	says(read_text(node, "[[8, 0, 4, 8]]", to, 4, &err), LADE_OK, &err, "");
	assert_memory_equal(to, "\10\0\4\10", 4);
	lade_zarr_unref(node);
}

/* ---- fields ------------------------------------------------------------------------------- */

static void fields(void **state)
{
	(void)state;
	/* Two records: a big-endian short, a byte, and a little-endian pair of shorts. */
	static const uint8_t chunk[] = {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15, 16, 17};
	static const uint8_t all[] = {2, 1, 3, 5, 4, 6, 7, 12, 11, 13, 15, 14, 16, 17};
	lade_zarr_selection selection = {.struct_size = sizeof selection};
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	lade_error err = {0};
	uint8_t to[16];
	lade_zarr_target target = {.struct_size = sizeof target, .span = lade_host_span(to, 14)};
	lade_zarr *node = open_text(
		".zarray", "{\"zarr_format\":2,\"shape\":[2],\"chunks\":[2],\"order\":\"C\","
		           "\"dtype\":[[\"a\",\">i2\"],[\"b\",\"|u1\"],"
		           "[\"c\",[[\"d\",\">i2\"],[\"e\",\"<i2\"]]]],"
		           "\"fill_value\":null,\"compressor\":null,\"filters\":null}");
	kit_put(memory, "0", chunk, sizeof chunk);
	says(lade_zarr_read(node, NULL, &target, NULL, NULL, &err), LADE_OK, &err, "");
	assert_memory_equal(to, all, 14);
	selection.field = "c.d";
	KIT_CHECK(lade_zarr_selection_shape(node, &selection, &shape, &kit_err));
	assert_int_equal(shape.size, 4);
	says(lade_zarr_read(node, &selection, &target, NULL, NULL, &err), LADE_OK, &err, "");
	assert_memory_equal(to, "\5\4\17\16", 4);
	selection.field = "b";
	says(lade_zarr_read(node, &selection, &target, NULL, NULL, &err), LADE_OK, &err, "");
	assert_memory_equal(to, "\3\15", 2);
	selection.field = "c.x";
	says(lade_zarr_read(node, &selection, &target, NULL, NULL, &err), LADE_E_NOT_FOUND, &err,
	     "no field 'c.x'");
	lade_zarr_unref(node);
}

/* ---- hostile shards ------------------------------------------------------------------------ */

static const char shards[] =
	"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"uint8\","
	"\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"
	"\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":7,\"codecs\":[{\"name\":"
	"\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],\"codecs\":[{\"name\":"
	"\"bytes\"}],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
	"\"little\"}}]}}]}";

static void hostile_shards(void **state)
{
	(void)state;
	static const struct {
		uint64_t index[4];
		lade_status status;
		const char *message;
	} cases[] = {
		{{0, 2, 2, 2}, LADE_OK, ""},
		{{2, 2, 2, 2}, LADE_OK, ""}, /* chunks may share bytes */
		{{0, 2, UINT64_MAX, UINT64_MAX}, LADE_OK, ""},
		{{0, 2, UINT64_MAX, 2}, LADE_E_CORRUPT, "entry 1 of the index: 2 bytes at"},
		{{0, 2, 2, UINT64_MAX}, LADE_E_CORRUPT, "entry 1 of the index"},
		{{0, 2, 36, 1}, LADE_E_CORRUPT, "1 bytes at 36 of 36"},
		{{0, 2, 35, 2}, LADE_E_CORRUPT, "2 bytes at 35 of 36"},
		{{0, 1, 2, 2}, LADE_E_CORRUPT,
		 "key 'c/0', chunk (0), inner chunk (0): it decodes to 1 bytes, want 2"},
		{{0, 3, 2, 2}, LADE_E_NOSPACE, ""},
		{{0, 0, 2, 2}, LADE_E_CORRUPT, "it decodes to 0 bytes, want 2"},
	};
	lade_error err = {0};
	uint8_t to[4], shard[36] = {1, 2, 3, 4};
	lade_zarr *node = open_text("zarr.json", shards);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		memcpy(shard + 4, cases[i].index, 32);
		kit_put(memory, "c/0", shard, sizeof shard);
		says(read_text(node, NULL, to, 4, &err), cases[i].status, &err, cases[i].message);
	}
	/* A chunk that is not read may be anywhere. */
	memcpy(shard + 4, cases[5].index, 32);
	kit_put(memory, "c/0", shard, sizeof shard);
	says(read_text(node, ":2", to, 2, &err), LADE_OK, &err, "");
	kit_put(memory, "c/0", shard, 31);
	says(read_text(node, NULL, to, 4, &err), LADE_E_CORRUPT, &err,
	     "the shard has 31 bytes, its index 32");
	kit_put(memory, "c/0", shard, 0);
	says(read_text(node, NULL, to, 4, &err), LADE_E_CORRUPT, &err, "0 bytes, its index 32");
	lade_zarr_unref(node);
}

/* 64 MiB of zeros in a Zstd frame of 1.5 KB, where a shard of 36 bytes is expected. */
static void a_shard_cannot_grow_without_end(void **state)
{
	(void)state;
	enum { BLOCKS = 512 };
	static const char end[] = "\"little\"}}]}}]}";
	static uint8_t frame[13 + 4 * BLOCKS];
	char text[sizeof shards + 128];
	lade_error err = {0};
	uint8_t to[4];
	snprintf(text, sizeof text, "%.*s%s", (int)(sizeof shards - sizeof end), shards,
	         "\"little\"}}]}},{\"name\":\"zstd\",\"configuration\":"
	         "{\"level\":1,\"checksum\":false}}]}");
	for (int sized = 0; sized < 2; sized++) {
		size_t n = sized ? 13 : 6;
		/* With the content's size in 8 bytes; with a window of 128 KiB and no size. */
		memcpy(frame, sized ? "\x28\xb5\x2f\xfd\xe0\0\0\0\4\0\0\0\0"
		                    : "\x28\xb5\x2f\xfd\0\x38", n);
		for (uint32_t i = 0; i < BLOCKS; i++, n += 4) {
			uint32_t head = 131072U << 3 | 2U | (i == BLOCKS - 1);
			memcpy(frame + n, &head, 3);
			frame[n + 3] = 0;
		}
		lade_zarr *node = open_text("zarr.json", text);
		kit_put(memory, "c/0", frame, n);
		lade_status status = read_text(node, NULL, to, 4, &err);
		says(status, sized ? LADE_E_LIMIT : LADE_E_NOSPACE, &err,
		     sized ? "it says that it decodes to 67108864 bytes, at most 10486" : "");
		lade_zarr_unref(node);
	}
}

/* A store whose value has a new version at each of the first reads. */
typedef struct changing {
	unsigned reads, changes;
} changing;

static void changing_read(void *ctx, lade_reading *reading, size_t count)
{
	changing *c = ctx;
	uint8_t shard[36] = {1, 2, 3, 4};
	static const uint64_t index[4] = {0, 2, 2, 2};
	lade_object_version version = {.size = 1};
	memcpy(shard + 4, index, 32);
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err = {0};
		uint64_t off;
		if (strcmp(range->key, "zarr.json") == 0) {
			range->object_size = sizeof shards - 1;
			lade_status status = lade_range_place(range, sizeof shards - 1, &off,
			                                      &range->size, &err);
			if (status == LADE_OK)
				memcpy(range->dst.data, shards + off, range->size);
			lade_reading_done(reading, i, status, &err);
			continue;
		}
		if (strcmp(range->key, "c/0") != 0) {
			lade_reading_done(reading, i, LADE_E_NOT_FOUND, NULL);
			continue;
		}
		version.bytes[0] = (uint8_t)(c->reads < c->changes ? c->reads : c->changes);
		c->reads++;
		range->object_size = sizeof shard;
		if (range->version)
			*range->version = version;
		lade_status status = LADE_OK;
		if (range->want && !lade_object_version_equal(range->want, &version))
			status = lade_fail(&err, LADE_E_CHANGED, LADE_NO_OFFSET, "changed");
		if (status == LADE_OK)
			status = lade_range_place(range, sizeof shard, &off, &range->size, &err);
		if (status == LADE_OK)
			memcpy(range->dst.data, shard + off, range->size);
		lade_reading_done(reading, i, status, &err);
	}
}

static void changed_shards(void **state)
{
	(void)state;
	const lade_store_ops ops = {.struct_size = sizeof ops, .read = changing_read};
	lade_error err = {0};
	uint8_t to[4];
	for (unsigned changes = 0; changes < 12; changes++) {
		changing c = {.changes = changes};
		lade_store *store;
		lade_zarr *node;
		KIT_CHECK(lade_store_new(&ops, &c, "changing", &store, &kit_err));
		KIT_CHECK(lade_zarr_open(store, "", NULL, &node, &kit_err));
		memset(to, 0, 4);
		lade_status status = read_text(node, NULL, to, 4, &err);
		if (changes < 2)
			says(status, LADE_OK, &err, "");
		else if (changes > 8)
			says(status, LADE_E_CHANGED, &err, "changed twice");
		if (status == LADE_OK)
			assert_memory_equal(to, "\1\2\3\4", 4);
		lade_zarr_unref(node);
		lade_store_unref(store);
	}
}

/* ---- elements of any length ------------------------------------------------------------- */

static size_t put_text(uint8_t *to, size_t at, const char *text)
{
	uint32_t size = (uint32_t)strlen(text);
	memcpy(to + at, &size, 4);
	memcpy(to + at + 4, text, size);
	return at + 4 + size;
}

static void any_length(void **state)
{
	(void)state;
	static const char *const words[4] = {"a", "", "three", "\xe2\x82\xac"};
	lade_error err = {0};
	lade_zarr_plan *plan;
	lade_zarr_selection *selection;
	uint64_t count, size;
	uint8_t chunk[64] = {4}, data[64];
	int64_t offsets[7];
	size_t at = 4;
	lade_zarr *node = open_text(
		"zarr.json", "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[6],"
		             "\"data_type\":\"string\",\"chunk_grid\":{\"name\":\"regular\","
		             "\"configuration\":{\"chunk_shape\":[4]}},\"chunk_key_encoding\":{"
		             "\"name\":\"default\"},\"fill_value\":\"no\",\"codecs\":[{\"name\":"
		             "\"vlen-utf8\"}]}");
	for (size_t i = 0; i < 4; i++)
		at = put_text(chunk, at, words[i]);
	kit_put(memory, "c/0", chunk, at);
	KIT_CHECK(lade_zarr_selection_parse(node, "[[5, 3, 2, 0, 1, 3]]", &selection, &kit_err));
	KIT_CHECK(lade_zarr_plan_new(node, selection, NULL, NULL, &plan, &kit_err));
	says(lade_zarr_plan_texts(plan, &count, &size, &err), LADE_E_STATE, &err, "was not run");
	KIT_CHECK(lade_zarr_plan_run(plan, NULL, &kit_err));
	KIT_CHECK(lade_zarr_plan_texts(plan, &count, &size, &kit_err));
	assert_int_equal(count, 6);
	assert_int_equal(size, 2 + 3 + 5 + 1 + 0 + 3);
	says(lade_zarr_plan_fill(plan, lade_host_span(offsets, 56), lade_host_span(data, 13), &err),
	     LADE_E_NOSPACE, &err, "56 bytes of offsets and 14 of data, have 56 and 13");
	KIT_CHECK(lade_zarr_plan_fill(plan, lade_host_span(offsets, 56), lade_host_span(data, 14),
	                              &kit_err));
	assert_memory_equal(data, "no\xe2\x82\xacthreea\xe2\x82\xac", 14);
	assert_memory_equal(offsets, ((int64_t[7]){0, 2, 5, 10, 11, 11, 14}), 56);
	/* Lengths that pass the end, in a run of the same plan. */
	chunk[at - 7] = 4;
	kit_put(memory, "c/0", chunk, at);
	says(lade_zarr_plan_run(plan, NULL, &err), LADE_E_CORRUPT, &err, "element 3 at byte");
	says(lade_zarr_plan_texts(plan, &count, &size, &err), LADE_E_STATE, &err, "failed");
	chunk[0] = 5;
	kit_put(memory, "c/0", chunk, at);
	says(lade_zarr_plan_run(plan, NULL, &err), LADE_E_CORRUPT, &err,
	     "the chunk has 5 elements, want 4");
	kit_put(memory, "c/0", chunk, 3);
	says(lade_zarr_plan_run(plan, NULL, &err), LADE_E_CORRUPT, &err, "3 bytes");
	chunk[0] = 4;
	chunk[at - 7] = 3;
	chunk[at - 1] = 'x'; /* in the place of a character's last byte */
	kit_put(memory, "c/0", chunk, at);
	says(lade_zarr_plan_run(plan, NULL, &err), LADE_E_CORRUPT, &err,
	     "key 'c/0', chunk (0): element 3 is not UTF-8 at its byte 0 of 3");
	lade_zarr_plan_free(plan);
	lade_zarr_selection_free(selection);
	lade_zarr_unref(node);
}

/* ---- other calls --------------------------------------------------------------------------- */

typedef struct waiting {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	lade_status status;
	uint64_t size;
	bool done;
} waiting;

static void done(void *ctx, lade_status status, const lade_zarr_report *report,
                 const lade_error *err)
{
	waiting *w = ctx;
	(void)err;
	pthread_mutex_lock(&w->mutex);
	w->status = status;
	w->size = report->written_size + report->filled_size;
	w->done = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->mutex);
}

static void started_reads(void **state)
{
	(void)state;
	lade_zarr *node = make_twelve();
	waiting w = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
	uint8_t to[12];
	lade_zarr_target target = {.struct_size = sizeof target, .span = lade_host_span(to, 12)};
	lade_cancel *cancel;
	lade_zarr_plan *plan;
	KIT_CHECK(lade_cancel_new(NULL, NULL, &cancel, &kit_err));
	const lade_zarr_read_options options = {.struct_size = sizeof options, .cancel = cancel};
	KIT_CHECK(lade_zarr_plan_new(node, NULL, &target, &options, &plan, &kit_err));
	for (int i = 0; i < 2; i++) {
		w.done = false;
		memset(to, 0, 12);
		KIT_CHECK(lade_zarr_plan_start(plan, done, &w, &kit_err));
		pthread_mutex_lock(&w.mutex);
		while (!w.done)
			pthread_cond_wait(&w.cond, &w.mutex);
		pthread_mutex_unlock(&w.mutex);
		assert_int_equal(w.status, i ? LADE_E_CANCELLED : LADE_OK);
		assert_int_equal(w.size, i ? 0 : 12);
		assert_int_equal(to[11], i ? 0 : 23);
		lade_cancel_set(cancel);
	}
	lade_zarr_plan_free(plan);
	lade_cancel_free(cancel);
	lade_array *array;
	KIT_CHECK(lade_zarr_read_new(node, NULL, LADE_PLACE_HOST, NULL, &array, &kit_err));
	assert_int_equal(lade_array_span(array).size, 12);
	assert_int_equal(((uint8_t *)lade_array_span(array).data)[11], 23);
	lade_array_unref(array);
	lade_zarr_unref(node);
}

/* A shape of 2^62 in chunks of 1: a few points take memory for themselves only. */
static void points_of_billions(void **state)
{
	(void)state;
	static const int64_t list[3] = {4611686018427387903, 5, -1};
	const lade_zarr_index axis = {.kind = LADE_ZARR_LIST, .list = list, .count = 3};
	const lade_zarr_selection selection = {.struct_size = sizeof selection,
	                                       .mode = LADE_ZARR_POINTS,
	                                       .axes = &axis,
	                                       .axis_count = 1,
	                                       .index_size = sizeof axis};
	lade_error err = {0};
	uint8_t to[3], five = 5;
	lade_zarr_target target = {.struct_size = sizeof target, .span = lade_host_span(to, 3)};
	lade_zarr *node = open_text(
		"zarr.json", "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":["
		             "4611686018427387904],\"data_type\":\"uint8\",\"chunk_grid\":{"
		             "\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[1]}},"
		             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":9,"
		             "\"codecs\":[{\"name\":\"bytes\"}]}");
	kit_put(memory, "c/5", &five, 1);
	says(lade_zarr_read(node, &selection, &target, NULL, NULL, &err), LADE_OK, &err, "");
	assert_memory_equal(to, "\11\5\11", 3);
	says(read_text(node, "4611686018427387901:", to, 3, &err), LADE_OK, &err, "");
	says(read_text(node, "::-1", to, 3, &err), LADE_E_RANGE, &err, "have 3");
	lade_zarr_unref(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_reads),
		cmocka_unit_test(random_parts),
		cmocka_unit_test_setup_teardown(texts, setup, teardown),
		cmocka_unit_test_setup_teardown(places, setup, teardown),
		cmocka_unit_test_setup_teardown(one_write, setup, teardown),
		cmocka_unit_test_setup_teardown(blocks_of_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(uneven_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(fields, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_shards, setup, teardown),
		cmocka_unit_test_setup_teardown(a_shard_cannot_grow_without_end, setup, teardown),
		cmocka_unit_test(changed_shards),
		cmocka_unit_test_setup_teardown(any_length, setup, teardown),
		cmocka_unit_test_setup_teardown(started_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(points_of_billions, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
