/*
 * test_rntuple_made.c: RNTuples of every type of column, read into memory of devices beside the
 * same reads into host memory: any parts, pages in one block, in several and stored, little memory,
 * bad offsets.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"
#include "rntuple_make.h"

#include <lade/rntuple.h>

enum { TYPES = 0x1E, TOGETHER = 40, BIT = 0, SWITCH = 0x10, TRUNC = 0x1C, QUANT = 0x1D };
enum { INDEX32 = 0x0E, INDEX64 = 0x0F, SPLIT_INDEX32 = 0x1A, SPLIT_INDEX64 = 0x1B };

static lade_engine *engine;
static uint64_t seed;

/* ---- files ------------------------------------------------------------------------------ */

static bool is_index(unsigned type)
{
	return type == INDEX32 || type == INDEX64 || type == SPLIT_INDEX32 || type == SPLIT_INDEX64;
}

static unsigned bits_of(unsigned type, rng *r)
{
	static const uint8_t bits[TYPES] = {1,  8,  8,  8,  8,  16, 16, 32, 32, 64,
	                                    64, 16, 32, 64, 32, 64, 96, 16, 16, 32,
	                                    32, 64, 64, 16, 32, 64, 32, 64, 0,  0};
	return type == TRUNC   ? 10 + (unsigned)rng_below(r, 22)
	       : type == QUANT ? 1 + (unsigned)rng_below(r, 32)
			       : bits[type];
}

/* Adds a block of 'size' plain bytes to a page, as the format wraps it. */
static void add_block(make_bytes *page, const uint8_t *plain, size_t size, unsigned method)
{
	static const char *const specs[] = {"lz4", "zstd", "zlib"};
	static const char magic[][4] = {"L4\1", "ZS\1", "ZL\10"};
	lade_spec *spec = spec_of(engine, specs[method]);
	size_t cap = lade_spec_bound(spec, size), n, sum = method ? 0 : 8;
	uint8_t *to = malloc(cap + 1);
	OK(lade_encode(engine, spec, lade_host_cspan(plain, size), lade_host_span(to, cap), &n,
	               err));
	make_add(page, magic[method], 3);
	make_le(page, n + sum, 3);
	make_le(page, size, 3);
	if (sum)
		make_be(page, lade_checksum_of(LADE_XXH64, to, n), 8);
	make_add(page, to, n);
	free(to);
	lade_spec_unref(spec);
}

/* Puts a page of plain bytes into the file: in one block, in several, or as it is. */
static void put_page(make *m, uint32_t column, const uint8_t *plain, size_t size, uint32_t count,
                     rng *r)
{
	make_bytes page = {0};
	unsigned method = (unsigned)rng_below(r, 3);
	size_t parts = rng_below(r, 6) ? 1 : 2 + rng_below(r, 2);
	for (size_t i = 0, at = 0; i < parts && size; i++) {
		size_t part = i + 1 < parts ? size / parts : size - at;
		if (part)
			add_block(&page, plain + at, part, method);
		at += part;
	}
	if (page.size < size && rng_below(r, 5))
		make_page(m, column, page.data, page.size, count);
	else
		make_page(m, column, plain, size, count);
	free(page.data);
}

/* The stored bytes of ends. */
static void put_ends(make *m, uint32_t column, unsigned type, const uint64_t *ends, uint32_t count,
                     rng *r)
{
	size_t elem = type == INDEX32 || type == SPLIT_INDEX32 ? 4 : 8, size = count * elem, n;
	uint8_t *plain = malloc(size + 1), *page = malloc(size + 1);
	for (size_t i = 0; i < count; i++)
		memcpy(plain + i * elem, &ends[i], elem);
	memcpy(page, plain, size);
	if (type == SPLIT_INDEX32 || type == SPLIT_INDEX64) {
		lade_spec *spec =
			spec_of(engine, elem == 4 ? "delta(<u4)|split(4)" : "delta(<u8)|split(8)");
		OK(lade_encode(engine, spec, lade_host_cspan(plain, size),
		               lade_host_span(page, size), &n, err));
		lade_spec_unref(spec);
	}
	put_page(m, column, page, size, count, r);
	free(plain);
	free(page);
}

/* Pages of 'count' elements. */
static void put_values(make *m, uint32_t column, unsigned bits, size_t count, rng *r)
{
	while (count) {
		size_t n = 1 + rng_below(r, count), size = (n * bits + 7) / 8;
		uint8_t *plain = malloc(size);
		for (size_t i = 0; i < size; i++)
			plain[i] = (uint8_t)(rng_next(r) >> 40 & (i & 32 ? 0xFF : 0x11));
		/* Of variants there are no alternatives. */
		for (size_t i = 8; bits == 96 && i < size; i += 12)
			memset(plain + i, 0, 4);
		put_page(m, column, plain, size, (uint32_t)n, r);
		free(plain);
		count -= n;
	}
}

/* Ends of 'count' collections, and their elements.  'bad': one of them may be anything. */
static void put_collections(make *m, uint32_t column, unsigned type, size_t count, bool bad,
                            rng *r)
{
	uint64_t *ends = calloc(count + 1, sizeof *ends), end = 0;
	for (size_t i = 0; i < count; i++)
		ends[i] = end += rng_below(r, 4);
	if (bad && count)
		ends[rng_below(r, count)] = rng_below(r, 2) ? rng_next(r) : rng_below(r, 3);
	for (size_t at = 0, n; at < count; at += n) {
		n = 1 + rng_below(r, count - at);
		put_ends(m, column, type, ends + at, (uint32_t)n, r);
	}
	put_values(m, column + 1, 8, (size_t)end, r);
	free(ends);
}

/* A column of each type, in a few clusters. */
static void make_all(make *m, bool bad, rng *r)
{
	uint32_t column[TYPES];
	unsigned bits[TYPES];
	for (unsigned t = 0; t < TYPES; t++) {
		char name[8];
		snprintf(name, sizeof name, "c%u", t);
		bits[t] = bits_of(t, r);
		uint32_t role = is_index(t) ? 1 : t == SWITCH ? 3 : 0;
		uint32_t f = make_field(m, name, "x", MAKE_TOP, role, 0);
		column[t] = make_column(m, f, t, bits[t]);
		if (is_index(t))
			make_column(m, make_field(m, "_0", "std::uint8_t", f, 0, 0), 4, 8);
	}
	for (size_t k = 1 + rng_below(r, 4); k-- > 0;) {
		size_t entries = rng_below(r, emu ? 300 : 30000);
		for (unsigned t = 0; t < TYPES; t++) {
			if (is_index(t))
				put_collections(m, column[t], t, entries, bad, r);
			else
				put_values(m, column[t], bits[t], entries, r);
		}
		make_cluster(m, entries);
	}
	make_finish(m, "made");
}

/* ---- reads ------------------------------------------------------------------------------ */

/* Parts of columns, one behind the other; returns their bytes. */
static size_t choose(lade_rntuple *t, lade_rntuple_target *targets, size_t count, rng *r)
{
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t all = lade_rntuple_about(t)->column_count;
		uint64_t column = count < 30 ? rng_below(r, all) : i;
		const lade_rntuple_column *c = lade_rntuple_column_at(t, column);
		uint64_t first = rng_below(r, 2) ? 0 : rng_below(r, c->element_count + 1);
		uint64_t n = rng_below(r, 2) ? c->element_count - first
		                             : rng_below(r, c->element_count - first + 1);
		size_t size = (size_t)(n + (c->kind == LADE_RNTUPLE_OFFSETS)) * c->elem_size;
		targets[i] = (lade_rntuple_target){.column = column, .first = first, .count = n};
		targets[i].span.size = size;
		at += (size + 7) / 8 * 8;
	}
	return at;
}

static lade_status read_to(lade_rntuple *t, const lade_rntuple_target *chosen, size_t count,
                           buffer *b, lade_rntuple_read_options o, lade_rntuple_report *report,
                           lade_error *why)
{
	lade_rntuple_target targets[TOGETHER];
	size_t at = 0;
	memcpy(targets, chosen, count * sizeof *targets);
	for (size_t i = 0; i < count; i++) {
		targets[i].span.data = b->data + at;
		targets[i].span.place = b->place;
		at += (targets[i].span.size + 7) / 8 * 8;
	}
	o.struct_size = sizeof o;
	o.target_size = sizeof *targets;
	o.engine = engine;
	lade_rntuple_report told = {.struct_size = sizeof told};
	OK(lade_rntuple_explain(t, targets, count, &o, &told, err));
	*report = (lade_rntuple_report){.struct_size = sizeof *report};
	lade_status status = lade_rntuple_read(t, targets, count, &o, report, why);
	if (status == LADE_OK) {
		assert_int_equal(told.device_memory, report->device_memory);
		assert_int_equal(told.host_memory, report->host_memory);
	}
	return status;
}

static void check(bool bad, rng *r)
{
	make m = {.fd = -1};
	lade_rntuple *t;
	size_t fine = 0;
	make_all(&m, bad, r);
	OK(lade_rntuple_open(make_source(&m), NULL, &t, err));
	size_t all = (size_t)lade_rntuple_about(t)->column_count;
	for (unsigned round = 0; round < (bad ? 12 : 5); round++) {
		lade_rntuple_target targets[TOGETHER];
		lade_rntuple_report report;
		lade_error want, got;
		size_t count = round ? 1 + rng_below(r, 8) : all;
		size_t size = choose(t, targets, count, r);
		lade_place there = {LADE_DEVICE, (int32_t)rng_below(r, (uint64_t)device_count)};
		buffer host = buffer_new((lade_place){LADE_HOST, 0}, size, 0);
		buffer device = buffer_new(there, size, 0);
		lade_rntuple_read_options o = {.where = LADE_WHERE_HOST};
		lade_status status = read_to(t, targets, count, &host, o, &report, &want);
		o = (lade_rntuple_read_options){.memory = rng_below(r, 2) ? 0 : rng_below(r, 4000)};
		lade_status same = read_to(t, targets, count, &device, o, &report, &got);
		assert_int_equal(status, same);
		if (status == LADE_OK) {
			uint8_t *a = malloc(size + 1), *b = malloc(size + 1);
			buffer_get(&host, a, size);
			buffer_get(&device, b, size);
			for (size_t i = 0, at = 0; i < count; i++) {
				if (memcmp(a + at, b + at, targets[i].span.size))
					fail_msg("column %d, %zu bytes", (int)targets[i].column,
					         targets[i].span.size);
				at += (targets[i].span.size + 7) / 8 * 8;
			}
			free(a);
			free(b);
			fine++;
		} else {
			assert_int_equal(status, LADE_E_CORRUPT);
			assert_string_equal(want.message, got.message);
		}
		buffer_free(&host);
		buffer_free(&device);
	}
	assert_true(bad || fine == 5);
	lade_rntuple_unref(t);
	make_free(&m);
}

/* ---- tests ------------------------------------------------------------------------------ */

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

static void rounds(bool bad)
{
	for (uint64_t round = 0; round < (seed ? 1 : emu ? 6 : 20); round++) {
		rng r = {.s = (seed ? seed : 0x9E3779B97F4A7C15u * (round + 1)) | 1};
		print_message("round %d: --seed %llu\n", (int)round, (unsigned long long)r.s);
		if (emu)
			emu->seed = round;
		check(bad, &r);
	}
}

static void every_type(void **state)
{
	(void)state;
	rounds(false);
}

static void bad_offsets(void **state)
{
	(void)state;
	rounds(true);
}

/* What is done to elements is done to a page of several blocks once, and not to each block. */
static void blocks_and_elements(void **state)
{
	enum { COUNT = 1000 };
	uint32_t values[COUNT], back[COUNT];
	uint8_t plain[4 * COUNT];
	make m = {.fd = -1};
	make_bytes page = {0};
	lade_rntuple *t;
	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		values[i] = i * i;
		for (size_t k = 0; k < 4; k++)
			plain[COUNT * k + i] = (uint8_t)(values[i] >> 8 * k);
	}
	add_block(&page, plain, 1001, 0);
	add_block(&page, plain + 1001, sizeof plain - 1001, 0);
	assert_true(page.size < sizeof plain);
	uint32_t f = make_field(&m, "x", "std::uint32_t", MAKE_TOP, 0, 0);
	make_page(&m, make_column(&m, f, 0x14, 32), page.data, page.size, COUNT);
	make_cluster(&m, COUNT);
	make_finish(&m, "made");
	OK(lade_rntuple_open(make_source(&m), NULL, &t, err));
	for (int k = 0; k < 2; k++) {
		lade_place place = {k ? LADE_DEVICE : LADE_HOST, 0};
		buffer b = buffer_new(place, sizeof back, 0);
		lade_rntuple_target target = {0, 0, COUNT, buffer_span(&b)};
		lade_rntuple_read_options o = {.struct_size = sizeof o, .engine = engine};
		OK(lade_rntuple_read(t, &target, 1, &o, NULL, err));
		buffer_get(&b, back, sizeof back);
		assert_memory_equal(back, values, sizeof back);
		buffer_free(&b);
	}
	lade_rntuple_unref(t);
	make_free(&m);
	free(page.data);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_type, begin, end),
		cmocka_unit_test_setup_teardown(bad_offsets, begin, end),
		cmocka_unit_test_setup_teardown(blocks_and_elements, begin, end),
	};
	int rc;
	seed = seed_of(argc, argv);
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
