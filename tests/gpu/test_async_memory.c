/*
 * test_async_memory.c: what enqueued batches do with memory: pinned memory for their tables, none
 * for destinations without bytes, and a workspace as large as the items, not as the largest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

static lade_engine *engine;
static lade_spec *lz4;
static lade_stream stream;
static const lade_place near = {LADE_DEVICE, 0};

static int (*capture_begin)(void *stream, int mode);
static int (*capture_end)(void *stream, void **graph);
static int (*graph_free)(void *graph);

static int begin(void **state)
{
	(void)state;
	OK(lade_engine_new(NULL, &engine, err));
	lz4 = spec_of(engine, "lz4");
	OK(lade_stream_new(0, &stream, err));
	if (emu)
		emu->seed = EMULATED_LAZY;
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_spec_unref(lz4);
	lade_engine_free(engine);
	lade_stream_free(0, stream);
	kit_clean();
	return 0;
}

/* Tables of many sizes, with nothing waited for: pinned memory for them is taken, and never given
 * back while the engine lives, as the driver would wait for all of the device's work then. */
static int pinned_given;

static void *pinned_alloc(void *ctx, size_t size, size_t align, lade_place place, lade_stream s)
{
	const lade_allocator *a = lade_allocator_default(LADE_PINNED);
	(void)ctx;
	return a->alloc(a->ctx, size, align, place, s);
}

static void pinned_free(void *ctx, void *p, size_t size, size_t align, lade_place place,
                        lade_stream s)
{
	const lade_allocator *a = lade_allocator_default(LADE_PINNED);
	(void)ctx;
	pinned_given++;
	a->free(a->ctx, p, size, align, place, s);
}

static void tables_of_many_sizes(void **state)
{
	(void)state;
	static const lade_allocator counting = {NULL, pinned_alloc, pinned_free};
	static const uint8_t empty = 0; /* an LZ4 block of no bytes */
	enum { COUNT = 3000 };
	lade_engine_options e = {.struct_size = sizeof e};
	lade_engine *own;
	e.allocators[LADE_PINNED] = &counting;
	OK(lade_engine_new(&e, &own, err));
	buffer src = buffer_new(near, 1, 0), dst = buffer_new(near, 1, 0);
	buffer statuses = buffer_new(near, 4 * COUNT, 0);
	buffer_put(&src, &empty, 1);
	lade_segment segment = {src.data, 1, near, 0};
	lade_item *item = calloc(COUNT, sizeof *item);
	lade_result *result = calloc(COUNT, sizeof *result);
	for (size_t i = 0; i < COUNT; i++)
		item[i] = (lade_item){.src = &segment, .src_count = 1, .dst = {dst.data, 0, near}};
	lade_async_options o = {.struct_size = sizeof o,
	                        .stream = stream,
	                        .statuses = (uint32_t *)(void *)statuses.data};
	pinned_given = 0;
	/* The first of them while another stream is captured, which goes on as if nothing were. */
	lade_stream other;
	lade__device *d;
	void *graph;
	OK(lade_stream_new(0, &other, err));
	OK(lade__device_use(0, &d, err));
	assert_int_equal(capture_begin(other, 0), 0);
	OK(lade_decode_async(own, lz4, item, 400, &o, err));
	OK(lade_decode_async(own, lz4, item, 400, &o, err));
	assert_int_equal(capture_end(other, &graph), 0);
	assert_int_equal(graph_free(graph), 0);
	lade__device_leave(d);
	lade_stream_free(0, other);
	for (int turn = 0; turn < 2; turn++) {
		int syncs = emu ? emu->syncs : 0;
		for (size_t i = 0; i < 8; i++)
			OK(lade_decode_async(own, lz4, item, 400 + 900 * i % 2601, &o, err));
		if (emu)
			assert_int_equal(emu->syncs, syncs);
		OK(lade_results_get(&o, 400, result, err));
	}
	assert_int_equal(pinned_given, 0);
	lade_engine_free(own);
	assert_true(pinned_given > 0);
	free(item);
	free(result);
	buffer_free(&src);
	buffer_free(&dst);
	buffer_free(&statuses);
}

/* Destinations without bytes are no pinned memory, wherever they are said to lie. */
static void no_room_in_no_memory(void **state)
{
	(void)state;
	static const uint8_t empty = 0;
	enum { COUNT = 100 };
	buffer src = buffer_new(near, 1, 0), statuses = buffer_new(near, 4 * COUNT, 0);
	buffer_put(&src, &empty, 1);
	lade_segment segment = {src.data, 1, near, 0};
	lade_item item[COUNT];
	lade_result result[COUNT];
	for (size_t i = 0; i < COUNT; i++)
		item[i] = (lade_item){.src = &segment,
		                      .src_count = 1,
		                      .dst = {.place = {i % 2 ? LADE_PINNED : LADE_HOST, 0}}};
	size_t size;
	OK(lade_workspace_size(engine, lz4, LADE_DECODE,
	                       &(lade_arrays){.struct_size = sizeof(lade_arrays), .count = COUNT},
	                       &size, err));
	buffer workspace = buffer_new(near, size, 0);
	lade_async_options o = {.struct_size = sizeof o,
	                        .stream = stream,
	                        .workspace = workspace.data,
	                        .workspace_size = size,
	                        .statuses = (uint32_t *)(void *)statuses.data};
	OK(lade_decode_async(engine, lz4, item, COUNT, &o, err));
	OK(lade_results_get(&o, COUNT, result, err));
	buffer_free(&workspace);
	buffer_free(&src);
	buffer_free(&statuses);
}

/* ---- one large item among many ------------------------------------------ */

enum { SKEWED = 1100, LARGE = 40000 };

static size_t skewed_size(size_t i)
{
	return i == 600 ? LARGE : 4 * (i % 13);
}

/* Decodes arrays of sizes between which 'spec' has room for all of 'told' bytes, and gives how many
 * were done; the others had no room. */
static size_t run_skewed(const lade_spec *spec, size_t workspace_size, uint64_t told)
{
	chunk *chunks = calloc(SKEWED, sizeof *chunks);
	uint64_t *words = calloc(4 * SKEWED, sizeof *words);
	lade_result *result = calloc(SKEWED, sizeof *result);
	size_t in = 0, out = 0, done = 0;
	rng r = {.s = 3};
	for (size_t i = 0; i < SKEWED; i++) {
		chunks[i] = chunk_of(engine, spec, NULL, &r, skewed_size(i));
		in += chunks[i].encoded_size;
		out += skewed_size(i);
	}
	buffer src = buffer_new(near, in, 1), dst = buffer_new(near, out, 1);
	uint8_t *packed = malloc(in), *image = malloc(out);
	in = out = 0;
	for (size_t i = 0; i < SKEWED; i++) {
		memcpy(packed + in, chunks[i].encoded, chunks[i].encoded_size);
		words[i] = lade__address_of(src.data) + in;
		words[SKEWED + i] = chunks[i].encoded_size;
		words[2 * SKEWED + i] = lade__address_of(dst.data) + out;
		words[3 * SKEWED + i] = skewed_size(i);
		in += chunks[i].encoded_size;
		out += skewed_size(i);
	}
	buffer_put(&src, packed, in);
	buffer tables = buffer_new(near, 32 * SKEWED, 0), sizes = buffer_new(near, 8 * SKEWED, 0);
	buffer statuses = buffer_new(near, 4 * SKEWED, 0);
	buffer workspace = buffer_new(near, workspace_size, 0);
	buffer_put(&tables, words, 32 * SKEWED);
	const uint64_t *w = (const uint64_t *)(void *)tables.data;
	lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
	                      .src = (const void *const *)(const void *)w,
	                      .src_size = w + SKEWED,
	                      .dst = (void *const *)(const void *)(w + 2 * SKEWED),
	                      .dst_cap = w + 3 * SKEWED,
	                      .count = SKEWED,
	                      .largest = LARGE,
	                      .total = told};
	lade_async_options o = {.struct_size = sizeof o,
	                        .stream = stream,
	                        .workspace = workspace.data,
	                        .workspace_size = workspace_size,
	                        .sizes = (uint64_t *)(void *)sizes.data,
	                        .statuses = (uint32_t *)(void *)statuses.data};
	OK(lade_decode_arrays_async(engine, spec, &arrays, &o, err));
	lade_results_get(&o, SKEWED, result, NULL);
	buffer_get(&dst, image, out);
	out = 0;
	for (size_t i = 0; i < SKEWED; i++) {
		assert_true(result[i].status == LADE_OK || result[i].status == LADE_E_NOSPACE);
		if (result[i].status == LADE_OK) {
			assert_int_equal(result[i].size, skewed_size(i));
			assert_memory_equal(image + out, chunks[i].plain, skewed_size(i));
			done++;
		}
		out += skewed_size(i);
		chunk_free(&chunks[i]);
	}
	buffer_free(&src);
	buffer_free(&dst);
	buffer_free(&tables);
	buffer_free(&sizes);
	buffer_free(&statuses);
	buffer_free(&workspace);
	free(chunks);
	free(words);
	free(result);
	free(packed);
	free(image);
	return done;
}

static void skewed_sizes_want_little_workspace(void **state)
{
	(void)state;
	static const char *const texts[] = {"bitshuffle(4)|lz4", "crc32c|bitshuffle(2)|snappy"};
	uint64_t total = 0;
	for (size_t i = 0; i < SKEWED; i++)
		total += skewed_size(i);
	for (size_t k = 0; k < 2; k++) {
		lade_spec *spec = spec_of(engine, texts[k]);
		size_t with, without, more;
		OK(lade_workspace_size(engine, spec, LADE_DECODE,
		                       &(lade_arrays){.struct_size = sizeof(lade_arrays),
		                                      .count = SKEWED,
		                                      .largest = LARGE},
		                       &without, err));
		OK(lade_workspace_size(engine, spec, LADE_DECODE,
		                       &(lade_arrays){.struct_size = sizeof(lade_arrays),
		                                      .count = SKEWED,
		                                      .largest = LARGE,
		                                      .total = total},
		                       &with, err));
		OK(lade_workspace_size(engine, spec, LADE_DECODE,
		                       &(lade_arrays){.struct_size = sizeof(lade_arrays),
		                                      .count = SKEWED,
		                                      .largest = 2 * LARGE,
		                                      .total = total},
		                       &more, err));
		assert_true(without > (size_t)SKEWED * LARGE);
		assert_true(with < 4 * (total + SKEWED * 400));
		assert_true(more >= with && more - with < with);
		assert_int_equal(run_skewed(spec, with, total), SKEWED);
		/* The tables have more than was told: what does not fit is not done. */
		OK(lade_workspace_size(engine, spec, LADE_DECODE,
		                       &(lade_arrays){.struct_size = sizeof(lade_arrays),
		                                      .count = SKEWED,
		                                      .largest = LARGE,
		                                      .total = 1000},
		                       &with, err));
		assert_in_range(run_skewed(spec, with, 1000), 700, SKEWED - 1);
		lade_spec_unref(spec);
	}
}

/* Asking about a mark spoils no capture, nor does one mislead it; captured streams have none. */
static void marks_beside_captures(void **state)
{
	(void)state;
	enum { SIZE = 1 << 20 };
	lade__device *d;
	lade_stream other;
	lade_mark *mark, *none;
	void *graph;
	uint8_t *block;
	int asked = 0;
	OK(lade_stream_new(0, &other, err));
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	block = a->alloc(a->ctx, SIZE, 256, near, stream);
	assert_non_null(block);
	OK(lade__device_use(0, &d, err));
	OK(LADE__CU(d, cuMemsetD8Async, lade__address_of(block), 1, SIZE, stream));
	OK(lade_mark_new(0, stream, &mark, err));
	assert_int_equal(capture_begin(other, 0), 0);
	bool passed = lade_mark_passed(mark);
	assert_int_equal(lade_mark_new(0, other, &none, NULL), LADE_E_UNSUPPORTED);
	assert_null(none);
	assert_int_equal(capture_end(other, &graph), 0);
	assert_int_equal(graph_free(graph), 0);
	/* The emulated device goes on with a stream only when it is asked. */
	if (emu)
		assert_false(passed);
	while (!lade_mark_passed(mark))
		assert_true(++asked < 100000000);
	OK(lade_mark_wait(mark, err));
	assert_int_equal(lade_mark_wait(NULL, NULL), LADE_E_ARG);
	assert_int_equal(lade_stream_follow(NULL, NULL, NULL), LADE_E_ARG);
	assert_true(lade_mark_passed(NULL));
	lade_mark_free(mark);
	a->free(a->ctx, block, SIZE, 256, near, stream);
	lade__device_leave(d);
	lade_stream_free(0, other);
}

static void find(void *to, const char *name)
{
	void *symbol = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
	memcpy(to, &symbol, sizeof symbol);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tables_of_many_sizes, begin, end),
		cmocka_unit_test_setup_teardown(no_room_in_no_memory, begin, end),
		cmocka_unit_test_setup_teardown(skewed_sizes_want_little_workspace, begin, end),
		cmocka_unit_test_setup_teardown(marks_beside_captures, begin, end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	find(&capture_begin, "cuStreamBeginCapture_v2");
	find(&capture_end, "cuStreamEndCapture");
	find(&graph_free, "cuGraphDestroy");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
