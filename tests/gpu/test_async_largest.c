/*
 * test_async_largest.c: of chunks in tables just those above 'largest' get LADE_E_LIMIT, in every
 * pipeline of several stages; a single stage takes them.  Zstd's memory has a bound.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

#include <lade/async.h>

#include <string.h>

static lade_engine *engine;
static uint64_t seed;
static const lade_place near = {LADE_DEVICE, 0};

#define ITEMS 11
#define LARGEST 600

static const char *const fronts[] = {"",
                                     "shuffle(4)|",
                                     "bitshuffle(4)|",
                                     "delta(<i4)|zigzag(<i4)|",
                                     "byteswap(4)|delta(<i4)|shuffle(4)|",
                                     "crc32c|",
                                     "adler32(start)|shuffle(2)|"};
static const char *const codecs[] = {"lz4",      "snappy",       "ans",
                                     "ans(<f4)", "bitcomp(<i4)", "cascaded(<i4)"};
static const char *const ends[] = {"", "|crc32c", "|xxh64(start)|adler32", "|lz4",
                                   "|shuffle(2)|ans"};
/* Filters and checksums alone: those that are done at once have no room between them. */
static const struct {
	const char *text;
	bool limited;
} others[] = {{"crc32c", false},
              {"delta(<i4)", false},
              {"shuffle(4)", false},
              {"delta(<i4)|zigzag(<i4)|shuffle(4)", false},
              {"shuffle(4)|crc32c", true},
              {"crc32c|xxh64(start)", true},
              {"delta(<i4)|bitshuffle(4)|crc32(start)|shuffle(4)", true}};

static int begin(void **state)
{
	(void)state;
	OK(lade_engine_new(NULL, &engine, err));
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

/* Sizes about the largest, and all others; multiples of 4. */
static size_t size_of(rng *r, size_t i)
{
	static const size_t about[] = {LARGEST,       LARGEST + 4, LARGEST - 4, LARGEST + 80,
	                               LARGEST + 256, 0,           4,           5000};
	return i < sizeof about / sizeof *about ? about[i] : rng_below(r, LARGEST / 2) * 4;
}

typedef struct batch {
	size_t size[ITEMS], room[ITEMS]; /* decoded; of the destination */
	chunk chunk[ITEMS];
	buffer src[ITEMS], dst[ITEMS], tables, results;
	lade_arrays arrays;
	lade_async_options options;
} batch;

static void batch_make(batch *b, const lade_spec *spec, lade_direction way, rng *r, bool total,
                       bool workspace)
{
	uint64_t word[4][ITEMS], sum = 0;
	size_t size;
	*b = (batch){.options = {.struct_size = sizeof b->options}};
	for (size_t i = 0; i < ITEMS; i++) {
		b->size[i] = size_of(r, i);
		b->chunk[i] = chunk_of(engine, spec, NULL, r, b->size[i]);
		const chunk *c = &b->chunk[i];
		bool encode = way == LADE_ENCODE;
		size_t from = encode ? c->plain_size : c->encoded_size;
		b->room[i] = encode ? lade_spec_bound(spec, c->plain_size) : c->plain_size;
		b->src[i] = buffer_new(near, from, rng_below(r, 8));
		buffer_put(&b->src[i], encode ? c->plain : c->encoded, from);
		b->dst[i] = buffer_new(near, b->room[i], rng_below(r, 8));
		word[0][i] = lade__address_of(b->src[i].data);
		word[1][i] = from;
		word[2][i] = lade__address_of(b->dst[i].data);
		word[3][i] = b->room[i];
		/* Those above get none of it. */
		sum += b->size[i] > LARGEST ? 0 : b->size[i];
	}
	b->tables = buffer_new(near, sizeof word, 0);
	buffer_put(&b->tables, word, sizeof word);
	b->results = buffer_new(near, 12 * ITEMS, 0);
	b->arrays = (lade_arrays){sizeof(lade_arrays),
	                          (const void *const *)(void *)b->tables.data,
	                          (uint64_t *)(void *)b->tables.data + ITEMS,
	                          (void *const *)(void *)b->tables.data + 2 * ITEMS,
	                          (uint64_t *)(void *)b->tables.data + 3 * ITEMS,
	                          ITEMS,
	                          LARGEST,
	                          total ? sum : 0,
	                          NULL,
	                          NULL};
	b->options.sizes = (uint64_t *)(void *)b->results.data;
	b->options.statuses = (uint32_t *)(void *)(b->results.data + 8 * ITEMS);
	if (!workspace)
		return;
	OK(lade_workspace_size(engine, spec, way,
	                       &(lade_arrays){.struct_size = sizeof(lade_arrays),
	                                      .count = ITEMS,
	                                      .largest = LARGEST,
	                                      .total = b->arrays.total},
	                       &size, err));
	b->options.workspace = buffer_new(near, size, 0).block;
	b->options.workspace_size = size;
}

static void batch_free(batch *b)
{
	buffer workspace = {.block = b->options.workspace,
	                    .size = b->options.workspace_size,
	                    .block_size = b->options.workspace_size + 2 * AROUND,
	                    .place = near};
	buffer_free(&workspace);
	for (size_t i = 0; i < ITEMS; i++) {
		free(buffer_image(&b->src[i]));
		free(buffer_image(&b->dst[i]));
		buffer_free(&b->src[i]);
		buffer_free(&b->dst[i]);
		chunk_free(&b->chunk[i]);
	}
	buffer_free(&b->tables);
	buffer_free(&b->results);
}

static void check(const batch *b, const lade_spec *spec, lade_direction way, bool limited,
                  const lade_result *result)
{
	for (size_t i = 0; i < ITEMS; i++) {
		bool above = limited && b->size[i] > LARGEST;
		lade_status want = above ? LADE_E_LIMIT : LADE_OK;
		if (result[i].status != want)
			print_error("%s, %s: item %zu of %zu bytes: %s\n", lade_spec_text(spec),
			            way == LADE_ENCODE ? "encode" : "decode", i, b->size[i],
			            lade_status_name(result[i].status));
		assert_int_equal(result[i].status, want);
		uint8_t *bytes = malloc(b->room[i] + 1), *plain = malloc(b->size[i] + 1);
		size_t size = result[i].size;
		buffer_get(&b->dst[i], bytes, b->room[i]);
		if (above) {
			assert_int_equal(size, 0);
		} else if (way == LADE_DECODE) {
			assert_int_equal(size, b->size[i]);
			assert_memory_equal(bytes, b->chunk[i].plain, size);
		} else {
			OK(lade_decode(engine, spec, lade_host_cspan(bytes, size),
			               lade_host_span(plain, b->size[i]), &size, err));
			assert_int_equal(size, b->size[i]);
			assert_memory_equal(plain, b->chunk[i].plain, size);
		}
		free(bytes);
		free(plain);
	}
}

static void run(const char *text, bool limited, uint64_t number)
{
	rng r = {.s = (seed ? seed : 0x9E3779B97F4A7C15u * (number + 1)) | 1};
	lade_spec *spec = spec_of(engine, text);
	kit_round(number, r.s);
	for (int way = LADE_ENCODE; way <= LADE_DECODE; way++) {
		lade_result result[ITEMS];
		batch b;
		/* A total of small chunks only says nothing of a single stage's large ones. */
		bool total = limited && (number + (uint64_t)way) % 2;
		batch_make(&b, spec, (lade_direction)way, &r, total, number % 3);
		OK((way == LADE_ENCODE ? lade_encode_arrays_async : lade_decode_arrays_async)(
			engine, spec, &b.arrays, &b.options, err));
		lade_results_get(&b.options, ITEMS, result, NULL);
		check(&b, spec, (lade_direction)way, limited, result);
		batch_free(&b);
	}
	lade_spec_unref(spec);
}

static void just_those_above_the_largest(void **state)
{
	char text[128];
	uint64_t number = 0;
	(void)state;
	for (size_t f = 0; f < sizeof fronts / sizeof *fronts; f++)
		for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++)
			for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
				snprintf(text, sizeof text, "%s%s%s", fronts[f], codecs[c],
				         ends[e]);
				run(text, strchr(text, '|') != NULL, number++);
			}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		run(others[i].text, others[i].limited, number++);
}

/* Of Zstd: twice what is decoded, at most, and 1 GiB, unless one chunk needs more. */
static void workspaces_have_bounds(void **state)
{
	(void)state;
	lade_spec *spec = spec_of(engine, "zstd");
	for (uint64_t largest = 1; largest < (uint64_t)1 << 31; largest *= 4)
		for (size_t count = 1; count <= 1000000; count *= 10) {
			lade_arrays a = {
				.struct_size = sizeof a, .count = count, .largest = largest};
			size_t size, most = (size_t)1 << 30, all = 2 * count * largest;
			most = most > 2 * largest ? most : 2 * largest;
			most = most < all ? most : all;
			OK(lade_workspace_size(engine, spec, LADE_DECODE, &a, &size, err));
			/* Beside these, tables of chunks; memory of 4,096 is in units of 256. */
			size_t chunks = count < 4096 ? count : 4096;
			if (size > most + 4096 + 256 * chunks + 64 * count)
				print_error("%zu chunks of %llu: %zu\n", count,
				            (unsigned long long)largest, size);
			assert_true(size <= most + 4096 + 256 * chunks + 64 * count);
		}
	lade_spec_unref(spec);
}

#define BIG 5

/* Chunks of several blocks, and a small one; one is cut short.  The more they may have, the fewer
 * are decoded at once. */
static void zstd_of_several_blocks(uint64_t largest, size_t workspace_least)
{
	static const size_t sizes[BIG] = {400000, 131073, 300, 262144, 200000};
	lade_spec *spec = spec_of(engine, "zstd(level=1)");
	rng r = {.s = largest};
	uint64_t word[4][BIG];
	chunk chunks[BIG];
	buffer src[BIG], dst[BIG];
	lade_result result[BIG];
	for (size_t i = 0; i < BIG; i++) {
		chunk *c = &chunks[i];
		*c = chunk_of(engine, spec, NULL, &r, sizes[i]);
		src[i] = buffer_new(near, c->encoded_size, rng_below(&r, 8));
		dst[i] = buffer_new(near, sizes[i], rng_below(&r, 8));
		buffer_put(&src[i], c->encoded, c->encoded_size);
		word[0][i] = lade__address_of(src[i].data);
		word[1][i] = c->encoded_size - (i == 3);
		word[2][i] = lade__address_of(dst[i].data);
		word[3][i] = sizes[i];
	}
	buffer tables = buffer_new(near, sizeof word, 0), results = buffer_new(near, 12 * BIG, 0);
	buffer_put(&tables, word, sizeof word);
	const void *const *table = (const void *const *)(void *)tables.data;
	lade_arrays a = {.struct_size = sizeof a,
	                 .src = table,
	                 .src_size = (uint64_t *)(void *)tables.data + BIG,
	                 .dst = (void *const *)(void *)tables.data + 2 * BIG,
	                 .dst_cap = (uint64_t *)(void *)tables.data + 3 * BIG,
	                 .count = BIG,
	                 .largest = largest};
	lade_async_options o = {.struct_size = sizeof o,
	                        .sizes = (uint64_t *)(void *)results.data,
	                        .statuses = (uint32_t *)(void *)(results.data + 8 * BIG)};
	size_t size;
	OK(lade_workspace_size(engine, spec, LADE_DECODE, &a, &size, err));
	assert_true(size >= workspace_least);
	buffer workspace = buffer_new(near, size, 0);
	o.workspace = workspace.block;
	o.workspace_size = size;
	OK(lade_decode_arrays_async(engine, spec, &a, &o, err));
	lade_results_get(&o, BIG, result, NULL);
	for (size_t i = 0; i < BIG; i++) {
		assert_int_equal(result[i].status, i == 3 ? LADE_E_TRUNCATED : LADE_OK);
		uint8_t *bytes = malloc(sizes[i]);
		buffer_get(&dst[i], bytes, sizes[i]);
		if (i != 3)
			assert_memory_equal(bytes, chunks[i].plain, sizes[i]);
		free(bytes);
		buffer_free(&src[i]);
		buffer_free(&dst[i]);
		chunk_free(&chunks[i]);
	}
	buffer_free(&tables);
	buffer_free(&results);
	buffer_free(&workspace);
	lade_spec_unref(spec);
}

static void zstd_in_waves(void **state)
{
	(void)state;
	zstd_of_several_blocks(400000, 2 * 400000);
	zstd_of_several_blocks(200 << 20, 900 << 20); /* three, and two */
	zstd_of_several_blocks(300 << 20, 590 << 20); /* one after the other */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(just_those_above_the_largest, begin, end),
		cmocka_unit_test_setup_teardown(workspaces_have_bounds, begin, end),
		cmocka_unit_test_setup_teardown(zstd_in_waves, begin, end),
	};
	int rc;
	seed = seed_of(argc, argv);
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
