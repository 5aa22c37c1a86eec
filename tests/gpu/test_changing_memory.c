/*
 * test_changing_memory.c: kernels end, and write nothing outside of destinations, whatever others
 * do to the memory meanwhile: sources, sizes and destinations that change between two looks of a
 * kernel, and destinations that overlap sources.  What the bytes are is nobody's promise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

#include <lade/async.h>

#include <string.h>

static lade_engine *engine;
static uint64_t seed;
static const lade_place near = {LADE_DEVICE, 0};
static int failures;

static const char *const texts[] = {
	"lz4",
	"snappy",
	"shuffle(4)|lz4",
	"shuffle(8)|snappy",
	"bitshuffle(4)|lz4",
	"ans",
	"ans(<f2)",
	"ans(<f4)",
	"ans(<i8)",
	"bitcomp(u1)",
	"bitcomp(<i2)",
	"bitcomp(<i4)",
	"bitcomp(<u8)",
	"bitcomp(<u4,algorithm=sparse)",
	"bitcomp(<f4,mode=lossy_signed,delta=.1)",
	"cascaded(u1)",
	"cascaded(<i2)",
	"cascaded(<i4)",
	"cascaded(<u8)",
	"shuffle(2)",
	"bitshuffle(8)",
	"bitshuffle(2,order=msb,block=8192)",
	"delta(<i4)",
	"delta(<i2)|zigzag(<i2)|split(2)",
	"byteswap(4)|delta(<i4)|zigzag(<i4)|shuffle(4)",
	"delta(<u8)|bitshuffle(8,block=4096)",
	"crc32c",
	"adler32(start)",
	"xxh64",
	"shuffle(4)|ans|crc32c|xxh64(start)",
	"delta(<i4)|bitcomp(<i4)|adler32",
	"lz4|shuffle(2)|cascaded(<i2)",
};
#define TEXTS (sizeof texts / sizeof *texts)
#define MOST 12

static int begin(void **state)
{
	(void)state;
	failures = 0;
	OK(lade_engine_new(NULL, &engine, err));
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_engine_free(engine);
	if (emu)
		emu->change_every = emu->changing_count = 0;
	kit_clean();
	return 0;
}

typedef struct batch {
	size_t count, src_size[MOST], room[MOST];
	chunk chunk[MOST];
	buffer src[MOST], dst[MOST], tables, results;
	uint64_t word[4][MOST];
	lade_arrays arrays;
	lade_async_options options;
} batch;

/* Memory whose end is the block's, where a byte too many is found, or with bytes around it. */
static buffer exact(rng *r, size_t size)
{
	if (rng_below(r, 2) || size == 0)
		return buffer_new(near, size, rng_below(r, 20));
	const lade_allocator *a = lade_allocator_default(LADE_DEVICE);
	buffer b = {.size = size, .block_size = size, .place = near};
	b.block = b.data = a->alloc(a->ctx, size, 64, near, NULL);
	assert_non_null(b.block);
	return b;
}

/* A bad chunk now and then; sizes of several segments, blocks and tiles. */
static void add(batch *b, const lade_spec *spec, lade_direction way, rng *r, size_t size)
{
	size_t i = b->count++;
	b->chunk[i] = chunk_of(engine, spec, NULL, r, size / 8 * 8);
	chunk *c = &b->chunk[i];
	if (rng_below(r, 4) == 0 && c->encoded_size)
		c->encoded[rng_below(r, c->encoded_size)] ^= (uint8_t)rng_next(r);
	b->src_size[i] = way == LADE_ENCODE ? c->plain_size : c->encoded_size;
	b->room[i] = way == LADE_ENCODE ? lade_spec_bound(spec, c->plain_size) : c->plain_size;
}

static void point(batch *b, size_t i, void *src, void *dst)
{
	b->word[0][i] = lade__address_of(src);
	b->word[1][i] = b->src_size[i];
	b->word[2][i] = lade__address_of(dst);
	b->word[3][i] = b->room[i];
	uint64_t plain = b->chunk[i].plain_size;
	b->arrays.largest = plain > b->arrays.largest ? plain : b->arrays.largest;
}

static void finish(batch *b)
{
	b->tables = buffer_new(near, sizeof b->word, 0);
	buffer_put(&b->tables, b->word, sizeof b->word);
	b->results = buffer_new(near, 12 * MOST, 0);
	uint64_t *at = (uint64_t *)(void *)b->tables.data;
	b->arrays.struct_size = sizeof b->arrays;
	b->arrays.src = (const void *const *)(void *)at;
	b->arrays.src_size = at + MOST;
	b->arrays.dst = (void *const *)(void *)(at + 2 * MOST);
	b->arrays.dst_cap = at + 3 * MOST;
	b->arrays.count = b->count;
	b->arrays.largest += !b->arrays.largest;
	b->options = (lade_async_options){
		.struct_size = sizeof b->options,
		.sizes = (uint64_t *)(void *)b->results.data,
		.statuses = (uint32_t *)(void *)(b->results.data + 8 * (size_t)MOST)};
}

static void run(batch *b, const lade_spec *spec, lade_direction way)
{
	lade_result result[MOST];
	if (emu)
		emu->steps = 40000000;
	OK((way == LADE_ENCODE ? lade_encode_arrays_async : lade_decode_arrays_async)(
		engine, spec, &b->arrays, &b->options, err));
	lade_results_get(&b->options, b->count, result, NULL);
	if (emu) {
		if (*emu->message) {
			print_error("%s, %s: %s\n", lade_spec_text(spec),
			            way == LADE_ENCODE ? "encode" : "decode", emu->message);
			failures++;
			emu->recover();
		}
		emu->steps = 0;
	}
	for (size_t i = 0; i < b->count; i++)
		failures += result[i].size > b->room[i];
}

static void batch_free(batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		chunk_free(&b->chunk[i]);
	free(buffer_image(&b->tables));
	free(buffer_image(&b->results));
	buffer_free(&b->tables);
	buffer_free(&b->results);
}

/* ---- memory that others write ------------------------------------------ */

static void changing(const char *text, lade_direction way, rng *r)
{
	emulated_change change[4 * MOST];
	lade_spec *spec = spec_of(engine, text);
	batch b = {0};
	int n = 0;
	size_t count = rng_below(r, 3) ? 1 + rng_below(r, 3) : MOST;
	while (b.count < count)
		add(&b, spec, way, r, rng_below(r, rng_below(r, 3) ? 2000 : 40000));
	for (size_t i = 0; i < count; i++) {
		b.src[i] = exact(r, b.src_size[i]);
		b.dst[i] = exact(r, b.room[i]);
		buffer_put(&b.src[i], way == LADE_ENCODE ? b.chunk[i].plain : b.chunk[i].encoded,
		           b.src_size[i]);
		point(&b, i, b.src[i].data, b.dst[i].data);
		change[n++] = (emulated_change){b.word[0][i], b.src_size[i], NULL};
		if (rng_below(r, 2))
			change[n++] = (emulated_change){b.word[2][i], b.room[i], NULL};
	}
	finish(&b);
	if (rng_below(r, 3) == 0) {
		change[n++] = (emulated_change){lade__address_of(b.arrays.src_size), 8 * count,
		                                b.word[1]};
		change[n++] = (emulated_change){lade__address_of(b.arrays.dst_cap), 8 * count,
		                                b.word[3]};
	}
	if (emu) {
		emu->changing = change;
		emu->changing_count = n;
		emu->change_every = (int)(2 + rng_below(r, 2) * rng_below(r, 300));
	}
	run(&b, spec, way);
	if (emu)
		emu->changing_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (b.src[i].block_size > b.src[i].size)
			free(buffer_image(&b.src[i]));
		if (b.dst[i].block_size > b.dst[i].size)
			free(buffer_image(&b.dst[i]));
		buffer_free(&b.src[i]);
		buffer_free(&b.dst[i]);
	}
	batch_free(&b);
	lade_spec_unref(spec);
}

static void memory_that_changes(void **state)
{
	(void)state;
	if (!emu || !emu->checked)
		skip();
	for (uint64_t round = 0; round < (seed ? 1 : 4); round++)
		for (size_t i = 0; i < TEXTS; i++)
			for (int way = LADE_ENCODE; way <= LADE_DECODE; way++) {
				rng r = {.s = (seed ? seed : 0x9E3779B97F4A7C15u *
				                             (round * TEXTS + i + 1)) | 1};
				kit_round(round + i, r.s);
				changing(texts[i], (lade_direction)way, &r);
			}
	assert_int_equal(failures, 0);
}

/* ---- destinations that overlap sources ------------------------------------------ */

static void overlapping(const char *text, lade_direction way, rng *r, size_t size, int64_t apart)
{
	lade_spec *spec = spec_of(engine, text);
	batch b = {0};
	for (size_t i = 0; i < 2; i++)
		add(&b, spec, way, r, size);
	buffer all[2];
	for (size_t i = 0; i < b.count; i++) {
		size_t off = apart < 0 ? (size_t)-apart : 0, on = apart > 0 ? (size_t)apart : 0;
		size_t ends = off + b.src_size[i] > on + b.room[i] ? off + b.src_size[i]
		                                                   : on + b.room[i];
		all[i] = buffer_new(near, ends, i);
		uint8_t *image = calloc(ends + 1, 1);
		memcpy(image + off, way == LADE_ENCODE ? b.chunk[i].plain : b.chunk[i].encoded,
		       b.src_size[i]);
		buffer_put(&all[i], image, ends);
		free(image);
		point(&b, i, all[i].data + off, all[i].data + on);
	}
	finish(&b);
	run(&b, spec, way);
	for (size_t i = 0; i < b.count; i++) {
		free(buffer_image(&all[i]));
		buffer_free(&all[i]);
	}
	batch_free(&b);
	lade_spec_unref(spec);
}

static void destinations_over_sources(void **state)
{
	static const int64_t apart[] = {0, 1, -1, 4, -64, 300, -1000};
	(void)state;
	for (size_t i = 0; i < TEXTS; i++)
		for (size_t k = 0; k < sizeof apart / sizeof *apart; k++)
			for (int way = LADE_ENCODE; way <= LADE_DECODE; way++) {
				rng r = {.s = 0x9E3779B97F4A7C15u * (i * 8 + k + 1) | 1};
				kit_round(i + k, r.s);
				overlapping(texts[i], (lade_direction)way, &r, k % 2 ? 700 : 9000,
				            apart[k]);
			}
	assert_int_equal(failures, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(destinations_over_sources, begin, end),
		cmocka_unit_test_setup_teardown(memory_that_changes, begin, end),
	};
	int rc;
	seed = seed_of(argc, argv);
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
