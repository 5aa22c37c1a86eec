/*
 * test_batch_filters.c: filters on devices, alone and in front of codecs: what devices encode is
 * what the host does (filters) and decodes on the host (pipelines), and the other way round.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/gpu/gpu.h"
#include "gpu/batch_kit.h"

#include <lade/async.h>

#include <string.h>

static lade_engine *engine;
static uint64_t seed;

/* 'exact': there is one encoding only. */
static const struct {
	const char *text;
	bool exact;
} forms[] = {
	{"bitshuffle(1)", true},
	{"bitshuffle(2,order=msb)", true},
	{"bitshuffle(8)", true},
	{"bitshuffle(4,block=96)", true},
	{"bitshuffle(2,order=msb,block=8192)", true},
	{"bitshuffle(4)|bitshuffle(1,order=msb)|bitshuffle(2)", true},
	{"shuffle(2)", true},
	{"shuffle(3)", true},
	{"shuffle(4)", true},
	{"shuffle(5)", true},
	{"shuffle(8)", true},
	{"shuffle(16)|shuffle(12)|shuffle(6)", true},
	{"split(1)", true},
	{"zigzag(<i4)|shuffle(4)", true},
	{"byteswap(8)", true},
	{"delta(<i8)|zigzag(<i8)", true},
	{"delta(<u4)", true},
	{"delta(<i2)|zigzag(<i2)|split(2)", true},
	{"delta(u1)", true},
	{"byteswap(4)|delta(<i4)|zigzag(<i4)|shuffle(4)", true},
	{"delta(<u8)|bitshuffle(8,block=4096)|crc32c", true},
	{"delta(<i2)|bitshuffle(2,block=96)", true},
	{"shuffle(4)|delta(<i4)|zigzag(<i4)|delta(<i4)|delta(<i4)", true},
	{"byteswap(2)|zigzag(<i2)|bitshuffle(2)|zigzag(<i4)|split(4)", true},
	{"delta(u1)|shuffle(1)", true},
	{"shuffle(8)|lz4", false},
	{"shuffle(4)|lz4|crc32", false},
	{"shuffle(2)|snappy", false},
	{"crc32c|split(1)|xxh64|shuffle(4)|snappy", false},
	{"zigzag(<i4)|shuffle(2)|lz4", false},
	{"lz4|shuffle(4)|lz4", false},
	{"delta(<i4)|bitshuffle(4)|lz4|crc32c", false},
	{"bitshuffle(1,order=msb,block=8192)|lz4", false},
	{"bitshuffle(4,order=lsb,block=8192)|lz4", false},
	{"bitshuffle(4)|lz4", false},
	{"bitshuffle(8,block=4096)|snappy", false},
	{"ans", false},
	{"ans(<f4,block=8192)", false},
	{"crc32c", true},
	{"adler32(start)|xxh64", true},
	{"bitshuffle(2)|crc32(start)|bitshuffle(4)|xxh64|crc32-bzip2", true},
	{"crc32|lz4|crc32c(start)|adler32", false},
	{"bitshuffle(4)|snappy|xxh64(start)", false},
	{"cascaded", true},
	{"cascaded(<i4)", true},
	{"bitshuffle(2)|cascaded(<i2,block=4096)", true},
	{"bitcomp(<i4)", false},
	{"bitshuffle(2)|bitcomp", false},
	{"bitcomp(<u8,algorithm=sparse)", false},
};
#define FORMS (sizeof forms / sizeof *forms)
#define ITEMS 5

static int begin(void **state)
{
	(void)state;
	lade_engine_options o = {.struct_size = sizeof o, .threads = 2};
	OK(lade_engine_new(&o, &engine, err));
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

/* Runs chunks on the device, from and to memory of its own; 'size' has what came out. */
static void on_device(lade_direction direction, const lade_spec *spec, rng *r,
                      uint8_t *const *from, const size_t *from_size, uint8_t *const *to,
                      const size_t *cap, size_t *size)
{
	lade_item items[ITEMS];
	lade_segment segments[ITEMS];
	lade_result results[ITEMS];
	buffer src[ITEMS], dst[ITEMS];
	lade_place place = {LADE_DEVICE, (int32_t)rng_below(r, (uint64_t)device_count)};
	for (size_t i = 0; i < ITEMS; i++) {
		src[i] = buffer_new(place, from_size[i], rng_below(r, 2) * rng_below(r, 64));
		dst[i] = buffer_new(place, cap[i], rng_below(r, 2) * rng_below(r, 64));
		buffer_put(&src[i], from[i], from_size[i]);
		segments[i] = (lade_segment){.data = src[i].data, .size = from_size[i],
		                             .place = place};
		items[i] = (lade_item){.src = &segments[i], .src_count = 1,
		                       .dst = buffer_span(&dst[i])};
	}
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	if (direction == LADE_ENCODE)
		OK(lade_encode_into(engine, spec, items, ITEMS, results, &o, err));
	else
		OK(lade_decode_into(engine, spec, items, ITEMS, results, &o, err));
	for (size_t i = 0; i < ITEMS; i++) {
		size[i] = results[i].size;
		buffer_get(&dst[i], to[i], size[i]);
		free(buffer_image(&src[i]));
		buffer_free(&src[i]);
		buffer_free(&dst[i]);
	}
}

static void check_form(size_t form, rng *r)
{
	const char *text = forms[form].text;
	lade_spec *spec = spec_of(engine, text);
	/* These take whole elements only. */
	size_t whole =
		strstr(text, "delta") || strstr(text, "zigzag") || strstr(text, "byteswap") ? 8 : 1;
	chunk c[ITEMS];
	uint8_t *plain[ITEMS], *encoded[ITEMS], *there[ITEMS], *back[ITEMS];
	size_t size[ITEMS], stored[ITEMS], bound[ITEMS], got[ITEMS];
	for (size_t i = 0; i < ITEMS; i++) {
		size_t most = i == 0 ? 20 : !emu ? 200000 : i == 1 ? 20000 : 4000;
		size_t n = rng_below(r, most);
		n -= n % whole;
		c[i] = chunk_of(engine, spec, NULL, r, n);
		plain[i] = c[i].plain;
		encoded[i] = c[i].encoded;
		size[i] = c[i].plain_size;
		stored[i] = c[i].encoded_size;
		bound[i] = lade_spec_bound(spec, size[i]);
		there[i] = malloc(bound[i] + 1);
		back[i] = malloc(size[i] + 1);
	}
	on_device(LADE_DECODE, spec, r, encoded, stored, back, size, got);
	for (size_t i = 0; i < ITEMS; i++) {
		assert_int_equal(got[i], size[i]);
		assert_true(!size[i] || !memcmp(back[i], plain[i], size[i]));
	}
	on_device(LADE_ENCODE, spec, r, plain, size, there, bound, got);
	for (size_t i = 0; i < ITEMS; i++) {
		size_t n;
		if (forms[form].exact) {
			assert_int_equal(got[i], stored[i]);
			assert_true(!got[i] || !memcmp(there[i], encoded[i], got[i]));
		}
		memset(back[i], 0xEE, size[i]);
		OK(lade_decode(engine, spec, lade_host_cspan(there[i], got[i]),
		               lade_host_span(back[i], size[i]), &n, err));
		assert_int_equal(n, size[i]);
		assert_true(!n || !memcmp(back[i], plain[i], n));
		chunk_free(&c[i]);
		free(there[i]);
		free(back[i]);
	}
	lade_spec_unref(spec);
}

static void both_ways(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < (seed ? 1 : emu ? 4 : 40); round++) {
		rng r = {.s = (seed ? seed : 0x9E3779B97F4A7C15u * (round + 1)) | 1};
		print_message("round %d: --seed %llu\n", (int)round, (unsigned long long)r.s);
		if (emu)
			emu->seed = round % 4 == 0 ? EMULATED_LAZY : round % 4 == 1 ? EMULATED_EAGER
			                                                            : r.s;
		for (size_t form = 0; form < FORMS; form++)
			check_form(form, &r);
	}
}

/* Any bytes, as filters that only decode on devices take them, alone and behind a codec. */
static void check_decoder(const char *filters, size_t elem, bool packed, rng *r)
{
	char text[256];
	uint8_t *from[ITEMS], *back[ITEMS], *want[ITEMS];
	size_t stored[ITEMS], size[ITEMS], got[ITEMS];
	snprintf(text, sizeof text, "%s%s", filters, packed ? "|lz4" : "");
	lade_spec *spec = spec_of(engine, text), *inner = spec_of(engine, filters);
	lade_spec *lz4 = spec_of(engine, "lz4");
	for (size_t i = 0; i < ITEMS; i++) {
		size[i] = elem * rng_below(r, i == 0 ? 5 : !emu ? 50000 : 1200);
		size_t n = lade_spec_bound(inner, size[i]), cap = lade_spec_bound(lz4, n);
		uint8_t *plain = malloc(n + 1);
		from[i] = malloc(cap + 1);
		back[i] = malloc(size[i] + 1);
		want[i] = malloc(size[i] + 1);
		for (size_t k = 0; k < n; k++)
			plain[k] = (uint8_t)(rng_next(r) >> 40 & (k & 64 ? 0xFF : 0x40));
		stored[i] = n;
		memcpy(from[i], plain, n);
		if (packed)
			OK(lade_encode(engine, lz4, lade_host_cspan(plain, n),
			               lade_host_span(from[i], cap), &stored[i], err));
		free(plain);
		OK(lade_decode(engine, spec, lade_host_cspan(from[i], stored[i]),
		               lade_host_span(want[i], size[i]), &got[i], err));
		assert_int_equal(got[i], size[i]);
	}
	on_device(LADE_DECODE, spec, r, from, stored, back, size, got);
	for (size_t i = 0; i < ITEMS; i++) {
		assert_int_equal(got[i], size[i]);
		if (size[i] && memcmp(back[i], want[i], size[i]))
			fail_msg("%s: %zu bytes", text, size[i]);
		free(from[i]);
		free(back[i]);
		free(want[i]);
	}
	lade_spec_unref(spec);
	lade_spec_unref(inner);
	lade_spec_unref(lz4);
}

static void decoders(void **state)
{
	(void)state;
	static const struct {
		const char *filters;
		size_t elem;
	} cases[] = {{"packints(|b1)", 1},
	             {"packints(<f4,first=13)", 4},
	             {"packints(<i2,first=2,last=12)", 2},
	             {"packints(<i8,last=40)", 8},
	             {"levels(bits=9,min=-1,max=3)|packints(<u4,last=8)", 4},
	             {"levels(bits=32,min=0.1,max=0.7)", 4},
	             {"cast(<i8,astype=<u4)", 8},
	             {"cast(<i8,astype=<u4)|delta(<u4)|split(4)", 8},
	             {"cast(<i4,astype=<i2)|zigzag(<i2)|split(2)", 4},
	             {"cast(<f8,astype=<f4)|split(4)", 8},
	             {"cast(<f8,astype=<f2)", 8},
	             {"cast(<f8,astype=<f4)|packints(<f4,first=22)", 8},
	             {"cast(<f8,astype=<f4)|levels(bits=3,min=-5,max=5)|packints(<u4,last=2)", 8}};
	for (uint64_t round = 0; round < (emu ? 4 : 40); round++) {
		rng r = {.s = (seed ? seed : 0x9E3779B97F4A7C15u * (round + 1)) | 1};
		if (emu)
			emu->seed = round;
		for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++)
			check_decoder(cases[i / 2].filters, cases[i / 2].elem, i % 2, &r);
	}
}

/* Few chunks of bytes are cut into smaller pieces by ans than many, so that these keep the device
 * busy when they are decoded. */
static void few_are_cut_small(void **state)
{
	(void)state;
	enum { SIZE = 65536 };
	const lade_device_info *info;
	OK(lade_device_get_info(0, &info, err));
	size_t few = 2 * (size_t)info->multiprocessors, cap = SIZE + 64;
	lade_spec *spec = spec_of(engine, "ans");
	lade_place place = {LADE_DEVICE, 0};
	uint8_t *plain = malloc(SIZE), *back = malloc(SIZE), *image = malloc((few + 1) * cap);
	uint64_t *size = calloc(few + 1, sizeof *size);
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (uint8_t)(i % 7 * (i % 3));
	buffer src = buffer_new(place, SIZE, 0), dst = buffer_new(place, (few + 1) * cap, 0);
	buffer sizes = buffer_new(place, (few + 1) * sizeof *size, 0);
	buffer_put(&src, plain, SIZE);
	lade_async_options o = {.struct_size = sizeof o, .sizes = (uint64_t *)(void *)sizes.data};
	lade_segment segment = {.data = src.data, .size = SIZE, .place = place};
	lade_item *items = calloc(few + 1, sizeof *items);
	for (size_t i = 0; i <= few; i++)
		items[i] = (lade_item){.src = &segment, .src_count = 1,
		                       .dst = {dst.data + i * cap, cap, place}};
	for (size_t count = few; count <= few + 1; count++) {
		OK(lade_encode_async(engine, spec, items, count, &o, err));
		buffer_get(&dst, image, dst.size);
		buffer_get(&sizes, (uint8_t *)size, sizes.size);
		uint8_t *last = image + (count - 1) * cap;
		size_t n;
		assert_int_equal(last[3], count > few ? 13 : 12); /* log2 of the pieces' bytes */
		OK(lade_decode(engine, spec, lade_host_cspan(last, size[count - 1]),
		               lade_host_span(back, SIZE), &n, err));
		assert_true(n == SIZE && !memcmp(back, plain, SIZE));
	}
	free(items);
	free(size);
	free(image);
	free(plain);
	free(back);
	buffer_free(&src);
	buffer_free(&dst);
	buffer_free(&sizes);
	lade_spec_unref(spec);
}

/* What the kernels cannot do is refused there, and a destination that is too small is told. */
static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t cap;
		lade_status want;
	} cases[] = {{"bitshuffle(3)", 96, LADE_E_UNSUPPORTED},
	             {"bitshuffle(16)", 96, LADE_E_UNSUPPORTED},
	             {"bitshuffle(2)", 95, LADE_E_NOSPACE},
	             {"delta(<f4)", 96, LADE_E_UNSUPPORTED},
	             {"delta(<i4,astype=<i2)", 96, LADE_E_UNSUPPORTED},
	             {"zigzag(<i4)", 95, LADE_E_NOSPACE},
	             {"split(5)", 96, LADE_E_DTYPE},
	             {"shuffle(5)", 96, LADE_OK},
	             {"bitshuffle(2)", 96, LADE_OK}};
	lade_place place = {LADE_DEVICE, 0};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		lade_spec *spec = spec_of(engine, cases[i].text);
		buffer src = buffer_new(place, 96, 0), dst = buffer_new(place, cases[i].cap, 0);
		lade_segment s = {.data = src.data, .size = 96, .place = place};
		lade_item item = {.src = &s, .src_count = 1, .dst = buffer_span(&dst)};
		lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
		lade_result result;
		assert_int_equal(lade_encode_into(engine, spec, &item, 1, &result, &o, NULL),
		                 cases[i].want);
		free(buffer_image(&dst));
		buffer_free(&src);
		buffer_free(&dst);
		lade_spec_unref(spec);
	}
}

/* Filters that are done at once have nothing between them; others have the chunks. */
static void one_pass(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool joined;
	} cases[] = {{"byteswap(4)|delta(<i4)|zigzag(<i4)|shuffle(4)", true},
	             {"delta(<i8)|bitshuffle(8,block=8192)", true},
	             {"zigzag(<i2)|bitshuffle(2,block=16)", true},
	             {"delta(<i2)|bitshuffle(2,block=16)", false},
	             {"zigzag(<i4)|shuffle(2)", false},
	             {"shuffle(4)|zigzag(<i4)", false},
	             {"zigzag(<i4)|delta(<i4)", false}};
	for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
		lade_spec *spec = spec_of(engine, cases[i / 2].text);
		lade_direction direction = i % 2 ? LADE_ENCODE : LADE_DECODE;
		size_t size;
		OK(lade_workspace_size(engine, spec, direction,
		                       &(lade_arrays){.struct_size = sizeof(lade_arrays),
		                                      .count = 100,
		                                      .largest = 65536,
		                                      .total = 6553600},
		                       &size, err));
		if ((size < 6553600) != cases[i / 2].joined)
			fail_msg("%s: a workspace of %zu bytes", cases[i / 2].text, size);
		lade_spec_unref(spec);
	}
}

/*
 * Some chunks of a frame may be stored: then the workspace for all has to do for those that are
 * not.  Where it does not, nothing is enqueued.
 */
static void workspaces_do_for_fewer(void **state)
{
	(void)state;
	static const size_t counts[] = {1, 2, 64, 512, 1025, 4096, 4097, 8191, 8193, 10000};
	static const uint64_t sizes[] = {1, 4096, 16384, 16385, 16640, 32760, 65536, 1 << 20};
	enum { COUNTS = sizeof counts / sizeof *counts, SIZES = sizeof sizes / sizeof *sizes };
	for (size_t i = 0; i < 2 * COUNTS * (sizeof forms / sizeof *forms); i++) {
		size_t n = counts[i / 2 % COUNTS];
		lade_spec *spec = spec_of(engine, forms[i / 2 / COUNTS].text);
		lade_direction direction = i % 2 ? LADE_ENCODE : LADE_DECODE;
		lade_place near = {LADE_DEVICE, 0};
		lade_workload w = {.count = n, .threads = 1, .src = near, .dst = near};
		lade__route route = lade__route_of(spec, direction, LADE_DEVICE);
		OK(lade__route_make(engine, &w, &route, NULL, err));
		for (size_t k = 0; k < SIZES; k++) {
			uint64_t each = sizes[k], total = n * each;
			lade__gpu_tables t = {.count = n, .largest = each, .total = total};
			size_t all = lade__gpu_pipe_workspace(engine, &route, n, each, total);
			t.workspace = 256;
			t.workspace_size = all - 1;
			for (size_t fewer = n > 3 ? n - 3 : 1; fewer < n; fewer++)
				assert_true(lade__gpu_pipe_workspace(engine, &route, fewer, each,
				                                     total) <= all);
			if (all)
				FAILS(LADE_E_NOSPACE, "need a workspace of",
				      lade__gpu_pipe_enqueue(engine, &route, NULL, NULL, &t, err));
		}
		lade_spec_unref(spec);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_ways, begin, end),
		cmocka_unit_test_setup_teardown(decoders, begin, end),
		cmocka_unit_test_setup_teardown(few_are_cut_small, begin, end),
		cmocka_unit_test_setup_teardown(refused, begin, end),
		cmocka_unit_test_setup_teardown(one_pass, begin, end),
		cmocka_unit_test_setup_teardown(workspaces_do_for_fewer, begin, end),
	};
	int rc;
	seed = seed_of(argc, argv);
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
