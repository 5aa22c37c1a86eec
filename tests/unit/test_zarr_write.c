/*
 * test_zarr_write.c: writes of random selections into random arrays, against a plain copy of all
 * elements; fill, shards, strings, sources.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "zarr_write_kit.h"

#include <unistd.h>

/* ---- random selections --------------------------------------------------------------------- */

#define LIST_MAX 64

/* What is selected along an axis, and the indices that this means. */
typedef struct chosen {
	lade_zarr_index axis[4];
	int64_t list[4][LIST_MAX], at[4][LIST_MAX];
	uint64_t count[4];
} chosen;

static void choose_axis(chosen *c, size_t a, int64_t size, rng *random)
{
	lade_zarr_index *x = &c->axis[a];
	uint64_t kind = rng_next(random) % 8, n = 0;
	*x = (lade_zarr_index){.kind = LADE_ZARR_ALL};
	if (size == 0 || kind < 3) {
		for (int64_t i = 0; i < size; i++)
			c->at[a][n++] = i;
	} else if (kind < 6) {
		int64_t start = (int64_t)(rng_next(random) % (uint64_t)size);
		int64_t step = 1 + (int64_t)(rng_next(random) % 3);
		*x = (lade_zarr_index){.kind = LADE_ZARR_SLICE, .start = start, .step = step,
		                       .stop = start + (int64_t)(rng_next(random) % 20)};
		if (rng_next(random) % 3 == 0) {
			x->step = -step;
			x->stop = LADE_ZARR_OPEN;
		}
		for (int64_t i = start; i >= 0 && i < size &&
		     (x->step < 0 || i < x->stop); i += x->step)
			c->at[a][n++] = i;
	} else if (kind == 6) {
		x->kind = LADE_ZARR_AT;
		x->start = c->at[a][n++] = (int64_t)(rng_next(random) % (uint64_t)size);
	} else {
		x->kind = LADE_ZARR_LIST;
		x->list = c->list[a];
		for (n = rng_next(random) % 9; x->count < n; x->count++)
			c->list[a][x->count] = c->at[a][x->count] =
				(int64_t)(rng_next(random) % (uint64_t)size);
	}
	c->count[a] = n;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* A source with permuted axes, some reversed, some with gaps, some repeated. */
typedef struct from {
	guard memory;
	size_t offset;
	ptrdiff_t strides[4];
} from;

static from make_source(const lade_zarr_shape *shape, bool plain, rng *random)
{
	from f = {.offset = 0};
	size_t size = shape->count ? shape->elem_size : 0;
	for (size_t i = shape->ndim; i-- > 0;) {
		size_t n = (size_t)shape->shape[i];
		size_t stride = size + (plain ? 0 : rng_next(random) % 3 * shape->elem_size);
		if (!plain && rng_next(random) % 6 == 0) {
			f.strides[i] = 0;
			continue;
		}
		f.strides[i] = (ptrdiff_t)stride;
		size += n ? (n - 1) * stride : 0;
		if (!plain && n && rng_next(random) % 4 == 0) {
			f.offset += (n - 1) * stride;
			f.strides[i] = -f.strides[i];
		}
	}
	f.memory = guard_new(size, 1);
	for (size_t i = 0; i < size; i++)
		f.memory.data[i] = (uint8_t)rng_next(random);
	return f;
}

/* The same on the model: in the order of the lists, so that the last of equal indices counts. */
static void write_model(zarr_kit *k, const chosen *c, const from *f)
{
	uint64_t at[4] = {0};
	for (size_t a = 0; a < k->array->ndim; a++)
		if (c->count[a] == 0)
			return;
	do {
		uint64_t linear = 0;
		const uint8_t *src = f->memory.data + f->offset;
		size_t i = 0;
		for (size_t a = 0; a < k->array->ndim; a++) {
			linear = linear * k->array->axes[a].size + (uint64_t)c->at[a][at[a]];
			if (c->axis[a].kind != LADE_ZARR_AT)
				src += (ptrdiff_t)at[a] * f->strides[i++];
		}
		memcpy(k->model + linear * k->elem, src, k->elem);
	} while (kit_next(at, c->count, k->array->ndim));
}

static void check_all(zarr_kit *k, uint64_t seed)
{
	guard got = guard_new(k->count * k->elem, 1);
	lade_error err = {0};
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(got.data, got.size)};
	lade_status status = lade_zarr_read(k->node, NULL, &target, NULL, NULL, &err);
	if (status != LADE_OK || memcmp(got.data, k->model, got.size) != 0)
		fail_msg("seed %" PRIu64 ": %s: %s", seed,
		         status == LADE_OK ? "the elements differ" : err.message, k->json);
	guard_free(&got);
}

static void write_once(zarr_kit *k, rng *random, uint64_t seed)
{
	chosen c;
	lade_error err = {0};
	lade_zarr_shape shape = {.struct_size = sizeof shape};
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = c.axis,
	                                 .axis_count = k->array->ndim,
	                                 .index_size = sizeof c.axis[0]};
	lade_zarr_write_options options = {.struct_size = sizeof options,
	                                   .threads = 1 + (unsigned)(rng_next(random) % 3),
	                                   .flags = rng_next(random) % 3 == 0
	                                            ? LADE_ZARR_SKIP_FILL : 0};
	lade_zarr_write_report report = {.struct_size = sizeof report};
	bool plain = rng_next(random) % 2;
	for (size_t a = 0; a < k->array->ndim; a++)
		choose_axis(&c, a, (int64_t)k->array->axes[a].size, random);
	KIT_CHECK(lade_zarr_selection_shape(k->node, &selection, &shape, &kit_err));
	from f = make_source(&shape, plain, random);
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(f.memory.data, f.memory.size),
	                           .offset = f.offset, .strides = plain ? NULL : f.strides};
	write_model(k, &c, &f);
	if (lade_zarr_write(k->node, &selection, &source, &options, &report, &err) != LADE_OK)
		fail_msg("seed %" PRIu64 ": %s: %s", seed, err.message, k->json);
	/* Each element once, unless others interfere. */
	assert_int_equal(report.conflict_count, 0);
	if (!(options.flags & LADE_ZARR_SKIP_FILL))
		assert_int_equal(report.source_size, shape.size);
	guard_free(&f.memory);
}

/* Points: of equal ones the last stays. */
static void write_points(zarr_kit *k, rng *random)
{
	int64_t list[4][8];
	lade_zarr_index axes[4];
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = axes,
	                                 .axis_count = k->array->ndim, .mode = LADE_ZARR_POINTS,
	                                 .index_size = sizeof axes[0]};
	if (k->count == 0 || k->array->ndim == 0)
		return;
	guard g = guard_new(8 * k->elem, 1);
	for (size_t i = 0; i < 8 * k->elem; i++)
		g.data[i] = (uint8_t)rng_next(random);
	for (size_t i = 0; i < 8; i++) {
		uint64_t linear = 0;
		for (size_t a = 0; a < k->array->ndim; a++) {
			uint64_t size = k->array->axes[a].size;
			list[a][i] = (int64_t)(rng_next(random) % size);
			linear = linear * size + (uint64_t)list[a][i];
			axes[a] = (lade_zarr_index){.kind = LADE_ZARR_LIST, .list = list[a],
			                            .count = 8};
		}
		memcpy(k->model + linear * k->elem, g.data + i * k->elem, k->elem);
	}
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(g.data, g.size)};
	KIT_CHECK(lade_zarr_write(k->node, &selection, &source, NULL, NULL, &kit_err));
	guard_free(&g);
}

static bool has_array_steps(const lade_zarr_chain *chain)
{
	return chain->shard && (chain->array_step_count || has_array_steps(&chain->shard->chunks));
}

static void random_writes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 600; seed++) {
		rng random = {seed * 104729};
		zarr_kit k;
		kit_make(&k, &random, (int)(seed % 3));
		for (int i = 0; i < 6 && !has_array_steps(&k.array->chain); i++) {
			write_once(&k, &random, seed);
			write_points(&k, &random);
			check_all(&k, seed);
		}
		kit_free(&k);
	}
}

/* ---- arrays that zarr_kit.h does not make ------------------------------------------------- */

/* Both formats, both orders, both byte orders, fields by themselves. */
static void formats(void **state)
{
	(void)state;
	static const char *const types[] = {"<i4", ">i4", "[[\"x\",\"<i2\"],[\"y\",\">i2\"]]"};
	const uint64_t shape[2] = {7, 5}, chunk[2] = {3, 2};
	for (int i = 0; i < 24; i++) {
		lade_store *store = memory();
		lade_zarr_description d = {.ndim = 2, .shape = shape, .chunk_shape = chunk,
		                           .type = types[i % 3], .format = i / 3 % 2 ? 2 : 3,
		                           .fortran = i / 6 % 2, .separator = i / 12 ? '/' : 0};
		lade_zarr *node = create(store, d);
		uint32_t model[35] = {0}, got[35];
		for (int n = 0; n < 35; n++)
			model[n] = 0x01020304u * (uint32_t)(n + 1);
		write_text(node, "", model, sizeof model);
		const uint32_t part[4] = {5, 6, 7, 0xffffffff};
		write_text(node, "[1:6:3, 2:4]", part, sizeof part);
		model[7] = 5, model[8] = 6, model[22] = 7, model[23] = 0xffffffff;
		if (i % 3 == 2) {
			lade_zarr_selection field = {.struct_size = sizeof field, .field = "y"};
			uint16_t ys[35];
			for (int n = 0; n < 35; n++) {
				ys[n] = (uint16_t)(n + 1000);
				model[n] = (model[n] & 0xffff) | (uint32_t)(n + 1000) << 16;
			}
			lade_zarr_source source = {.struct_size = sizeof source,
			                           .span = lade_host_cspan(ys, sizeof ys)};
			KIT_CHECK(lade_zarr_write(node, &field, &source, NULL, NULL, &kit_err));
		}
		read_all(node, got, sizeof got);
		assert_memory_equal(got, model, sizeof got);
		lade_zarr_unref(node);
		lade_store_unref(store);
	}
}

static void edges(void **state)
{
	(void)state;
	const uint64_t shape[2] = {9, 6}, rows[3] = {2, 5, 4}, columns[2] = {4, 2};
	const lade_zarr_edges sizes[2] = {{rows, 3}, {columns, 2}};
	lade_store *store = memory();
	lade_zarr *node = create(store, (lade_zarr_description){
		.ndim = 2, .shape = shape, .edges = sizes, .type = "int16", .fill = "-1"});
	int16_t model[54], got[54], part[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	for (int i = 0; i < 54; i++)
		model[i] = -1;
	write_text(node, "[1:9:2, 3:5]", part, sizeof part);
	for (int i = 0; i < 8; i++)
		model[(1 + i / 2 * 2) * 6 + 3 + i % 2] = part[i];
	read_all(node, got, sizeof got);
	assert_memory_equal(got, model, sizeof got);
	write_text(node, "", got, sizeof got);
	read_all(node, got, sizeof got);
	assert_memory_equal(got, model, sizeof got);
	lade_zarr_unref(node);
	lade_store_unref(store);
}

/* A chunk is count, then size and bytes of each; codecs follow. */
static void strings(void **state)
{
	(void)state;
	const uint64_t shape[1] = {5}, chunk[1] = {2};
	static const char *const types[] = {"string", "bytes"};
	for (int i = 0; i < 4; i++) {
		lade_store *store = memory();
		lade_zarr *node = create(store, (lade_zarr_description){
			.ndim = 1, .shape = shape, .chunk_shape = chunk, .type = types[i % 2],
			.format = i / 2 ? 2 : 3, .codecs = "[]", .fill = i % 2 ? NULL : "\"?\""});
		const int64_t offsets[4] = {1, 1, 3, 7};
		lade_zarr_index axis = {.kind = LADE_ZARR_SLICE, .start = 1, .stop = 4};
		lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
		                                 .axis_count = 1, .index_size = sizeof axis};
		lade_zarr_source source = {.struct_size = sizeof source, .offsets = offsets,
		                           .span = lade_host_cspan("-abcdef", 7)};
		KIT_CHECK(lade_zarr_write(node, &selection, &source, NULL, NULL, &kit_err));
		char got[64], key[LADE_KEY_MAX + 1];
		uint64_t index = 0;
		KIT_CHECK(lade_zarr_chunk_key(node, &index, key, &kit_err));
		lade_range range = {.key = key, .kind = LADE_RANGE_REST,
		                    .dst = lade_host_span(got, sizeof got)};
		KIT_CHECK(lade_store_read(store, &range, 1, NULL, NULL, &kit_err));
		const char *want = i % 2 ? "\2\0\0\0\0\0\0\0\0\0\0" : "\2\0\0\0\1\0\0\0?\0\0\0";
		assert_int_equal(range.size, i % 2 ? 12 : 13);
		assert_memory_equal(got, want, range.size);
		index = 1;
		KIT_CHECK(lade_zarr_chunk_key(node, &index, key, &kit_err));
		KIT_CHECK(lade_store_read(store, &range, 1, NULL, NULL, &kit_err));
		assert_memory_equal(got, "\2\0\0\0\2\0\0\0ab\4\0\0\0cdef", 18);
		/* One of the two stays. */
		axis = (lade_zarr_index){.kind = LADE_ZARR_AT, .start = 2};
		const int64_t one[2] = {0, 1};
		source.offsets = one;
		KIT_CHECK(lade_zarr_write(node, &selection, &source, NULL, NULL, &kit_err));
		KIT_CHECK(lade_store_read(store, &range, 1, NULL, NULL, &kit_err));
		assert_memory_equal(got, "\2\0\0\0\1\0\0\0-\4\0\0\0cdef", 17);
		lade_error err;
		lade_zarr_source broken = {.struct_size = sizeof broken, .offsets = one,
		                           .span = lade_host_cspan("\xff", 1)};
		if (i % 2 == 0) {
			assert_int_equal(lade_zarr_write(node, &selection, &broken, NULL, NULL,
			                                 &err), LADE_E_CORRUPT);
			assert_non_null(strstr(err.message, "element 0 is not UTF-8"));
		}
		const int64_t bad[2] = {3, 9};
		source.offsets = bad;
		assert_int_equal(lade_zarr_write(node, &selection, &source, NULL, NULL, &err),
		                 LADE_E_CORRUPT);
		kit_put(store, key, "\2\0\0\0\xff\xff\xff\xff", 8);
		source.offsets = one;
		assert_int_equal(lade_zarr_write(node, &selection, &source, NULL, NULL, &err),
		                 LADE_E_CORRUPT);
		assert_non_null(strstr(err.message, key));
		lade_zarr_unref(node);
		lade_store_unref(store);
	}
}



/* Chunks of fill are not stored when that is asked; what is there goes away. */
static void fill_left_out(void **state)
{
	(void)state;
	const uint64_t shape[1] = {8}, chunk[1] = {4}, inner[1] = {2};
	lade_zarr_write_options skip = {.struct_size = sizeof skip,
	                                .flags = LADE_ZARR_SKIP_FILL};
	for (int shards = 0; shards < 2; shards++) {
		lade_store *store = memory();
		lade_zarr *node = create(store, (lade_zarr_description){
			.ndim = 1, .shape = shape, .chunk_shape = chunk, .type = "uint8",
			.inner_shape = shards ? inner : NULL, .fill = "7", .codecs = "[]"});
		uint8_t data[8] = {7, 7, 7, 7, 7, 7, 1, 2};
		lade_zarr_source source = {.struct_size = sizeof source,
		                           .span = lade_host_cspan(data, 8)};
		lade_zarr_write_report report = {.struct_size = sizeof report};
		KIT_CHECK(lade_zarr_write(node, NULL, &source, NULL, NULL, &kit_err));
		assert_true(is_there(store, "a/c/0") && is_there(store, "a/c/1"));
		KIT_CHECK(lade_zarr_write(node, NULL, &source, &skip, &report, &kit_err));
		assert_true(!is_there(store, "a/c/0") && is_there(store, "a/c/1"));
		assert_int_equal(report.delete_count, 1);
		assert_int_equal(report.chunk_count, 1);
		uint64_t size;
		KIT_CHECK(lade_store_look(store, "a/c/1", &size, NULL, &kit_err));
		assert_int_equal(size, shards ? 2 + 2 * 16 + 4 : 4);
		lade_zarr_index axis = {.kind = LADE_ZARR_SLICE, .start = 6, .stop = 8};
		lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
		                                 .axis_count = 1, .index_size = sizeof axis};
		KIT_CHECK(lade_zarr_write(node, &selection, &source, &skip, NULL, &kit_err));
		assert_false(is_there(store, "a/c/1"));
		lade_zarr_unref(node);
		lade_store_unref(store);
	}
}

/* In a shard, untouched chunks keep their bytes. */
static void kept_chunks(void **state)
{
	(void)state;
	const uint64_t shape[1] = {4096}, inner[1] = {1024};
	lade_store *store = memory();
	lade_zarr *node = create(store, (lade_zarr_description){
		.ndim = 1, .shape = shape, .type = "uint8", .inner_shape = inner});
	uint8_t data[4096];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * i >> 3);
	write_text(node, "", data, sizeof data);
	lade_zarr_index axis = {.kind = LADE_ZARR_SLICE, .start = 1100, .stop = 1110};
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
	                                 .axis_count = 1, .index_size = sizeof axis};
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan("0123456789", 10)};
	lade_zarr_write_report report = {.struct_size = sizeof report};
	KIT_CHECK(lade_zarr_write(node, &selection, &source, NULL, &report, &kit_err));
	assert_int_equal(report.chunk_count, 1);
	assert_int_equal(report.partial_count, 1);
	assert_int_equal(report.source_size, 10);
	assert_true(report.kept_size > 0 && report.kept_size < report.written_size);
	memcpy(data + 1100, "0123456789", 10);
	uint8_t got[4096];
	read_all(node, got, sizeof got);
	assert_memory_equal(got, data, sizeof got);
	lade_zarr_unref(node);
	lade_store_unref(store);
}

/* Chunks of one byte, their number: the shard begins with its order. */
static void check_order(uint32_t flags, const uint64_t shape[3], const char *want)
{
	const uint64_t inner[3] = {1, 1, 1};
	lade_store *store = memory();
	lade_zarr *node = create(store, (lade_zarr_description){
		.ndim = 3, .shape = shape, .type = "uint8", .inner_shape = inner, .codecs = "[]"});
	size_t count = (size_t)(shape[0] * shape[1] * shape[2]);
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan("ABCDEFGHIJKLMNOPQRSTUVWXYZ", count)};
	lade_zarr_write_options options = {.struct_size = sizeof options, .flags = flags};
	char stored[27] = "", got[27] = "";
	KIT_CHECK(lade_zarr_write(node, NULL, &source, &options, NULL, &kit_err));
	lade_range range = {.key = "a/c/0/0/0", .dst = lade_host_span(stored, count)};
	KIT_CHECK(lade_store_read(store, &range, 1, NULL, NULL, &kit_err));
	assert_string_equal(stored, want);
	read_all(node, got, count);
	assert_memory_equal(got, source.span.data, count);
	lade_zarr_unref(node);
	lade_store_unref(store);
}

/* The orders are those of zarr-python's morton_order_coords(). */
static void morton_order(void **state)
{
	(void)state;
	check_order(0, (const uint64_t[]){1, 3, 5}, "ABCDEFGHIJKLMNO");
	check_order(LADE_ZARR_MORTON, (const uint64_t[]){1, 3, 5}, "AFBGKLCHDIMNEJO");
	check_order(LADE_ZARR_MORTON, (const uint64_t[]){4, 1, 4}, "AEBFIMJNCGDHKOLP");
	check_order(LADE_ZARR_MORTON, (const uint64_t[]){2, 1, 3}, "ADBECF");
	check_order(LADE_ZARR_MORTON, (const uint64_t[]){1, 1, 5}, "ABCDE");
	check_order(LADE_ZARR_MORTON, (const uint64_t[]){1, 1, 1}, "A");
}

/* Indexes that point anywhere. */
static void hostile_shards(void **state)
{
	(void)state;
	const uint64_t shape[1] = {4}, inner[1] = {2};
	lade_store *store = memory();
	lade_zarr *node = create(store, (lade_zarr_description){
		.ndim = 1, .shape = shape, .type = "uint8", .inner_shape = inner, .codecs = "[]",
		.index_codecs = "[{\"name\":\"bytes\",\"configuration\":{"
		                "\"endian\":\"little\"}}]"});
	static const struct {
		uint64_t index[4];
		lade_status want;
	} cases[] = {
		{{0, 2, 1, 2}, LADE_OK}, /* they overlap */
		{{0, 2, UINT64_MAX, UINT64_MAX}, LADE_OK},
		{{0, 2, UINT64_MAX, 2}, LADE_E_CORRUPT},
		{{0, 2, 34, 2}, LADE_E_CORRUPT},
		{{0, 2, 2, UINT64_MAX - 1}, LADE_E_CORRUPT},
		{{0, 34, 0, 34}, LADE_OK}, /* not the touched one: it is kept as it is */
		{{0, 2, 0, 3}, LADE_E_CORRUPT},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t value[34] = {1, 2};
		lade_error err;
		memcpy(value + 2, cases[i].index, 32);
		kit_put(store, "a/c/0", value, sizeof value);
		lade_zarr_index axis = {.kind = LADE_ZARR_SLICE, .start = 3, .stop = 4};
		lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
		                                 .axis_count = 1, .index_size = sizeof axis};
		lade_zarr_source source = {.struct_size = sizeof source,
		                           .span = lade_host_cspan("x", 1)};
		if (i == 5)
			axis = (lade_zarr_index){.kind = LADE_ZARR_SLICE, .start = 2, .stop = 4};
		if (i == 5)
			source.span = lade_host_cspan("xy", 2);
		lade_status status = lade_zarr_write(node, &selection, &source, NULL, NULL, &err);
		if (status != cases[i].want)
			fail_msg("%zu: want %s, have %s: %s", i, lade_status_name(cases[i].want),
			         lade_status_name(status), err.message);
		if (status != LADE_OK)
			assert_non_null(strstr(err.message, "a/c/0"));
	}
	kit_put(store, "a/c/0", "short", 5);
	lade_error err;
	lade_zarr_index axis = {.kind = LADE_ZARR_AT, .start = 0};
	lade_zarr_selection selection = {.struct_size = sizeof selection, .axes = &axis,
	                                 .axis_count = 1, .index_size = sizeof axis};
	lade_zarr_source source = {.struct_size = sizeof source, .span = lade_host_cspan("x", 1)};
	assert_int_equal(lade_zarr_write(node, &selection, &source, NULL, NULL, &err),
	                 LADE_E_TRUNCATED);
	lade_zarr_unref(node);
	lade_store_unref(store);
}

static void bad_sources(void **state)
{
	(void)state;
	const uint64_t shape[2] = {4, 4};
	const ptrdiff_t strides[2] = {-4, 1};
	lade_store *store = memory();
	lade_zarr *node = create(store, (lade_zarr_description){
		.ndim = 2, .shape = shape, .type = "uint8"});
	uint8_t data[16] = {0};
	lade_error err;
	lade_zarr_source source = {.struct_size = sizeof source,
	                           .span = lade_host_cspan(data, 15)};
	assert_int_equal(lade_zarr_write(node, NULL, &source, NULL, NULL, &err), LADE_E_RANGE);
	assert_string_equal(err.message, "source: want 16 bytes, have 15");
	source.span.size = 16;
	source.strides = strides;
	assert_int_equal(lade_zarr_write(node, NULL, &source, NULL, NULL, &err), LADE_E_RANGE);
	source.offset = 12;
	KIT_CHECK(lade_zarr_write(node, NULL, &source, NULL, NULL, &kit_err));
	assert_int_equal(lade_zarr_write(node, NULL, NULL, NULL, NULL, &err), LADE_E_ARG);
	lade_zarr_write_options options = {.struct_size = sizeof options, .flags = 8};
	assert_int_equal(lade_zarr_write(node, NULL, &source, &options, NULL, &err), LADE_E_ARG);
	lade_cancel *cancel;
	KIT_CHECK(lade_cancel_new(NULL, NULL, &cancel, &kit_err));
	lade_cancel_set(cancel);
	options = (lade_zarr_write_options){.struct_size = sizeof options, .cancel = cancel};
	assert_int_equal(lade_zarr_write(node, NULL, &source, &options, NULL, &err),
	                 LADE_E_CANCELLED);
	lade_cancel_free(cancel);
	lade_zarr_unref(node);
	lade_store_unref(store);
}

/* A new zip file cannot be read, but all of an array can be written to it. */
static void zip_files(void **state)
{
	(void)state;
	const uint64_t shape[2] = {5, 7}, chunk[2] = {4, 4}, inner[2] = {2, 2};
	char path[] = "/tmp/lade-zip-XXXXXX", file[64];
	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof file, "%s/a.zip", path);
	lade_store *zip;
	lade_source bytes;
	uint16_t data[35], got[35];
	lade_error err;
	for (int i = 0; i < 35; i++)
		data[i] = (uint16_t)(i * 77);
	KIT_CHECK(lade_store_zip_create(file, NULL, &zip, &kit_err));
	for (int i = 0; i < 3; i++) {
		lade_zarr *node;
		lade_zarr_description d = {.struct_size = sizeof d, .kind = LADE_ZARR_ARRAY,
		                           .ndim = 2, .shape = shape, .chunk_shape = chunk,
		                           .inner_shape = i == 1 ? inner : NULL,
		                           .type = "uint16", .format = i == 2 ? 2 : 3};
		const char *names[] = {"x", "y", "old/z"};
		KIT_CHECK(lade_zarr_create(zip, names[i], &d, NULL, &node, &kit_err));
		write_text(node, "", data, sizeof data);
		lade_zarr_index axis = {.kind = LADE_ZARR_AT, .start = 1};
		lade_zarr_selection part = {.struct_size = sizeof part, .axes = &axis,
		                            .axis_count = 1, .index_size = sizeof axis};
		lade_zarr_source source = {.struct_size = sizeof source,
		                           .span = lade_host_cspan(data, sizeof data)};
		assert_int_equal(lade_zarr_write(node, &part, &source, NULL, NULL, &err),
		                 LADE_E_UNSUPPORTED);
		lade_zarr_unref(node);
	}
	KIT_CHECK(lade_store_zip_finish(zip, NULL, &kit_err));
	lade_store_unref(zip);
	KIT_CHECK(lade_source_file_open(file, NULL, &bytes, &kit_err));
	KIT_CHECK(lade_store_zip_open(bytes, NULL, &zip, &kit_err));
	const char *names[] = {"x", "y", "old/z"};
	for (int i = 0; i < 3; i++) {
		lade_zarr *node;
		KIT_CHECK(lade_zarr_open(zip, names[i], NULL, &node, &kit_err));
		read_all(node, got, sizeof got);
		assert_memory_equal(got, data, sizeof data);
		lade_zarr_unref(node);
	}
	lade_store_unref(zip);
	assert_int_equal(unlink(file) | rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_writes), cmocka_unit_test(formats),
		cmocka_unit_test(edges), cmocka_unit_test(strings),
		cmocka_unit_test(fill_left_out), cmocka_unit_test(kept_chunks),
		cmocka_unit_test(morton_order),
		cmocka_unit_test(hostile_shards), cmocka_unit_test(bad_sources),
		cmocka_unit_test(zip_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
