/*
 * test_layout_captured.c: calls with layouts that are captured in a graph: each replay reads bytes
 * and boxes as they are then, and has the layouts that were there at the capture.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"
#include "layout_kit.h"

static lade_engine *engine;
static lade_stream stream;
/* By sizes in a table; the same, in blocks that the device finds; as many bytes as the chunk has,
 * and 4. */
static lade_spec *told, *blocks, *frames, *fixed;

static int (*capture_begin)(void *stream, int mode);
static int (*capture_end)(void *stream, void **graph);
static int (*graph_make)(void **exec, void *graph, unsigned long long flags);
static int (*graph_launch)(void *exec, void *stream);
static int (*graph_exec_free)(void *exec);
static int (*graph_free)(void *graph);

#define CHUNKS 9
#define TURNS 3

static int begin(void **state)
{
	(void)state;
	OK(lade_engine_new(NULL, &engine, err));
	OK(lade_stream_new(0, &stream, err));
	told = spec_of(engine, "lz4");
	blocks = spec_of(engine, "blosc(cname=snappy,typesize=4)");
	frames = spec_of(engine, "zstd");
	fixed = spec_of(engine, "shuffle(4)|crc32c");
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_spec_unref(told);
	lade_spec_unref(blocks);
	lade_spec_unref(frames);
	lade_spec_unref(fixed);
	lade_stream_free(0, stream);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

/* ---- a batch -------------------------------------------------------------------------------- */

typedef struct batch {
	const lade_spec *spec;
	size_t count, room; /* chunks, bytes of an encoded one at most */
	bool boxes;
	layout_case layout; /* as at the capture */
	layout_case own[CHUNKS]; /* with the boxes of a replay */
	lade_status want[CHUNKS];
	uint8_t *plain[CHUNKS];
	uint64_t size[CHUNKS]; /* encoded */
	buffer src[CHUNKS], dst[CHUNKS], table[4], box, sizes, statuses, workspace;
} batch;

static void batch_init(batch *b, rng *r, const lade_spec *spec, bool boxes)
{
	lade_place there = {LADE_DEVICE, 0};
	*b = (batch){.spec = spec, .count = 1 + rng_below(r, CHUNKS), .boxes = boxes};
	do
		layout_random(r, &b->layout, emu ? 300 : 30000, false);
	while (b->layout.size == 0 || b->layout.layout.ndim == 0);
	b->room = lade_spec_bound(spec, b->layout.chunk_size);
	for (size_t i = 0; i < b->count; i++) {
		b->plain[i] = malloc(b->layout.chunk_size);
		b->src[i] = buffer_new(there, b->room, rng_below(r, 20));
		b->dst[i] = buffer_new(there, b->layout.span_size, rng_below(r, 20));
	}
	for (int k = 0; k < 4; k++)
		b->table[k] = buffer_new(there, 8 * b->count, 0);
	b->box = buffer_new(there, 16 * b->count * b->layout.layout.ndim, 0);
	b->sizes = buffer_new(there, 8 * b->count, 0);
	b->statuses = buffer_new(there, 4 * b->count, 0);
	size_t size = 0;
	OK(lade_workspace_size(engine, spec, LADE_DECODE,
	                       &(lade_arrays){.struct_size = sizeof(lade_arrays),
	                                      .count = b->count,
	                                      .layout = &b->layout.layout},
	                       &size, err));
	b->workspace = buffer_new(there, size, 0);
}

static void batch_reset(batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		free(b->plain[i]);
		buffer_free(&b->src[i]);
		buffer_free(&b->dst[i]);
	}
	for (int k = 0; k < 4; k++)
		buffer_free(&b->table[k]);
	buffer_free(&b->box);
	buffer_free(&b->sizes);
	buffer_free(&b->statuses);
	buffer_free(&b->workspace);
}

static lade_async_options batch_options(const batch *b)
{
	return (lade_async_options){.struct_size = sizeof(lade_async_options),
	                            .stream = stream,
	                            .workspace = b->workspace.data,
	                            .workspace_size = b->workspace.size,
	                            .sizes = (uint64_t *)(void *)b->sizes.data,
	                            .statuses = (uint32_t *)(void *)b->statuses.data};
}

/* Other bytes in the same places, and other boxes; one of them may lie outside of the shape. */
static void batch_change(batch *b, rng *r)
{
	size_t ndim = b->layout.layout.ndim;
	uint64_t box[CHUNKS * 2 * LADE_DIMS_MAX];
	uint8_t *encoded = malloc(b->room);
	for (size_t i = 0; i < b->count; i++) {
		layout_case *c = &b->own[i];
		size_t size;
		fill(r, b->plain[i], b->layout.chunk_size);
		OK(lade_encode(engine, b->spec,
		               lade_host_cspan(b->plain[i], b->layout.chunk_size),
		               lade_host_span(encoded, b->room), &size, err));
		b->size[i] = size;
		buffer_put(&b->src[i], encoded, size);
		layout_same(c, &b->layout);
		for (size_t a = 0; b->boxes && a < ndim; a++) {
			size_t n = c->shape[a], most = c->count[a];
			c->start[a] = rng_below(r, n);
			size_t left = (n - c->start[a] - 1) / c->step[a] + 1;
			c->count[a] = 1 + rng_below(r, left < most ? left : most);
			box[2 * i * ndim + a] = c->start[a];
			box[(2 * i + 1) * ndim + a] = c->count[a];
			c->size = (a ? c->size : c->part_size) * c->count[a];
		}
		b->want[i] = LADE_OK;
		if (b->boxes && rng_below(r, 5) == 0) {
			box[2 * i * ndim] = b->layout.shape[0];
			b->want[i] = LADE_E_RANGE;
		}
	}
	if (b->boxes)
		buffer_put(&b->box, box, 16 * b->count * ndim);
	buffer_put(&b->table[1], b->size, 8 * b->count);
	free(encoded);
}

/* Puts back what is around and between the elements. */
static void batch_clear(batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		uint8_t *bytes = malloc(b->dst[i].size);
		for (size_t k = 0; k < b->dst[i].size; k++)
			bytes[k] = (uint8_t)(k * 7 + i);
		buffer_put(&b->dst[i], bytes, b->dst[i].size);
		free(bytes);
	}
}

static void batch_check(const batch *b)
{
	lade_async_options o = batch_options(b);
	lade_result result[CHUNKS];
	lade_results_get(&o, b->count, result, NULL);
	for (size_t i = 0; i < b->count; i++) {
		size_t size = b->dst[i].size;
		uint8_t *want = malloc(size), *got = malloc(size);
		for (size_t k = 0; k < size; k++)
			want[k] = (uint8_t)(k * 7 + i);
		if (b->want[i] == LADE_OK)
			layout_reference(&b->own[i], b->plain[i], want, false);
		buffer_get(&b->dst[i], got, size);
		assert_int_equal(result[i].status, b->want[i]);
		assert_int_equal(result[i].size, b->want[i] == LADE_OK ? b->own[i].size : 0);
		assert_memory_equal(got, want, size);
		free(want);
		free(got);
	}
}

/* ---- graphs --------------------------------------------------------------------------------- */

static void begin_capture(void)
{
	lade__device *d;
	OK(lade__device_use(0, &d, err));
	assert_int_equal(capture_begin(stream, 0), 0);
	lade__device_leave(d);
}

static void *end_capture(void)
{
	void *graph, *exec;
	lade__device *d;
	OK(lade__device_use(0, &d, err));
	assert_int_equal(capture_end(stream, &graph), 0);
	assert_int_equal(graph_make(&exec, graph, 0), 0);
	assert_int_equal(graph_free(graph), 0);
	lade__device_leave(d);
	return exec;
}

static void replay(batch *b, rng *r, void *exec)
{
	lade__device *d;
	for (int turn = 0; turn < TURNS; turn++) {
		batch_clear(b);
		batch_change(b, r);
		OK(lade__device_use(0, &d, err));
		assert_int_equal(graph_launch(exec, stream), 0);
		lade__device_leave(d);
		batch_check(b);
	}
	OK(lade__device_use(0, &d, err));
	assert_int_equal(graph_exec_free(exec), 0);
	lade__device_leave(d);
}

static void captured_arrays(rng *r, const lade_spec *spec, bool boxes, bool host_tables)
{
	batch b;
	uint64_t table[4][CHUNKS];
	batch_init(&b, r, spec, boxes);
	batch_change(&b, r);
	for (size_t i = 0; i < b.count; i++) {
		table[0][i] = lade__address_of(b.src[i].data);
		table[1][i] = b.size[i];
		table[2][i] = lade__address_of(b.dst[i].data);
		table[3][i] = b.dst[i].size;
	}
	for (int k = 0; k < 4; k++)
		buffer_put(&b.table[k], table[k], 8 * b.count);
	layout_case given;
	layout_same(&given, &b.layout);
	void *at[4];
	for (int k = 0; k < 4; k++)
		at[k] = host_tables ? (void *)table[k] : (void *)b.table[k].data;
	lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
	                      .src = at[0],
	                      .src_size = at[1],
	                      .dst = at[2],
	                      .dst_cap = at[3],
	                      .count = b.count,
	                      .layout = &given.layout,
	                      .boxes = boxes ? (uint64_t *)(void *)b.box.data : NULL};
	lade_async_options o = batch_options(&b);
	o.flags = host_tables ? LADE_ASYNC_HOST_TABLES : 0;
	begin_capture();
	OK(lade_decode_arrays_async(engine, b.spec, &arrays, &o, err));
	void *exec = end_capture();
	memset(&given, 0xEE, sizeof given);
	memset(table, 0xEE, sizeof table);
	memset(&arrays, 0xEE, sizeof arrays);
	replay(&b, r, exec);
	batch_reset(&b);
}

static void arrays_are_replayed(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < (emu ? 16 : 40); i++) {
		rng r = {.s = 0x9E3779B97F4A7C15u * (i + 1)};
		kit_round(i, r.s);
		const lade_spec *spec = i & 4   ? fixed
		                        : i < 8 ? told
		                        : i & 1 ? frames
		                                : blocks;
		captured_arrays(&r, spec, i % 4 > 0, i & 4);
	}
}

/* Each decoder of several launches, or that finds counts on the device. */
static void decoders_are_replayed(void **state)
{
	static const char *const each[] = {
		"deflate",
		"zlib",
		"gzip",
		"zstd",
		"blosc(cname=lz4,typesize=4)",
		"blosc(cname=zlib,typesize=2)",
		"blosc(cname=zstd,shuffle=bitshuffle,typesize=8)",
	};
	(void)state;
	for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
		rng r = {.s = 0xA24BAED4963EE407u * (i + 1)};
		lade_spec *spec = spec_of(engine, each[i]);
		kit_round(i, r.s);
		captured_arrays(&r, spec, i % 2, false);
		lade_spec_unref(spec);
	}
}

static void items_are_replayed(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < (emu ? 8 : 20); i++) {
		rng r = {.s = 0xD1B54A32D192ED03u * (i + 1)};
		kit_round(i, r.s);
		batch b;
		layout_case given;
		lade_segment segment[CHUNKS];
		lade_item item[CHUNKS];
		batch_init(&b, &r, fixed, false);
		batch_change(&b, &r);
		layout_same(&given, &b.layout);
		for (size_t k = 0; k < b.count; k++) {
			segment[k] = (lade_segment){.data = b.src[k].data, .size = b.size[k],
			                            .place = b.src[k].place};
			item[k] = (lade_item){.src = &segment[k], .src_count = 1,
			                      .dst = buffer_span(&b.dst[k]),
			                      .layout = &given.layout};
		}
		lade_async_options o = batch_options(&b);
		begin_capture();
		OK(lade_decode_async(engine, b.spec, item, b.count, &o, err));
		void *exec = end_capture();
		memset(&given, 0xEE, sizeof given);
		memset(segment, 0xEE, sizeof segment);
		memset(item, 0xEE, sizeof item);
		replay(&b, &r, exec);
		batch_reset(&b);
	}
}

static void find(void *to, const char *name)
{
	void *symbol = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
	memcpy(to, &symbol, sizeof symbol);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_are_replayed),
		cmocka_unit_test(decoders_are_replayed),
		cmocka_unit_test(items_are_replayed),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	find(&capture_begin, "cuStreamBeginCapture_v2");
	find(&capture_end, "cuStreamEndCapture");
	find(&graph_make, "cuGraphInstantiateWithFlags");
	find(&graph_launch, "cuGraphLaunch");
	find(&graph_exec_free, "cuGraphExecDestroy");
	find(&graph_free, "cuGraphDestroy");
	return cmocka_run_group_tests(tests, begin, end);
}
