/*
 * RNTuples that ROOT wrote (tests/golden/rntuple): every element is what it must be; and each file,
 * cut at every length and with every byte changed, gives the same elements or is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "rntuple_kit.h"
#include "rntuple_make.h"

#include <lade/rntuple_write.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER LADE_TESTS_DIR "/golden/rntuple/"

/* ---- SHA-256, FIPS 180-4 ------------------------------------------------------------------- */

static uint32_t turn(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

/* The first 32 bits of the fractional parts of roots of the first primes. */
static uint32_t root_bits(unsigned prime, double power)
{
	long double root = power == 0.5 ? __builtin_sqrtl(prime) : __builtin_cbrtl(prime);
	return (uint32_t)((root - (long double)(uint64_t)root) * 4294967296.0L);
}

static void sha_block(uint32_t h[8], const uint8_t *p, const uint32_t *k)
{
	uint32_t w[64], s[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, h, sizeof s);
	for (int i = 0; i < 64; i++) {
		uint32_t a = s[0], e = s[4];
		uint32_t t = s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
		             ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
		uint32_t u = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
		             ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof *s);
		s[4] += t;
		s[0] = t + u;
	}
	for (int i = 0; i < 8; i++)
		h[i] += s[i];
}

/* The first 8 bytes of the hash, as 16 digits. */
static void sha_text(const uint8_t *data, size_t size, char text[17])
{
	uint32_t k[64], h[8];
	unsigned n = 0;
	for (unsigned p = 2; n < 64; p++) {
		unsigned d = 2;
		while (d * d <= p && p % d)
			d++;
		if (d * d <= p)
			continue;
		k[n] = root_bits(p, 0);
		if (n < 8)
			h[n] = root_bits(p, 0.5);
		n++;
	}
	size_t blocks = (size + 9 + 63) / 64;
	uint8_t *padded = calloc(blocks, 64);
	assert_non_null(padded);
	if (size)
		memcpy(padded, data, size);
	padded[size] = 0x80;
	for (int i = 0; i < 8; i++)
		padded[64 * blocks - 1 - (size_t)i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
	for (size_t i = 0; i < blocks; i++)
		sha_block(h, padded + 64 * i, k);
	free(padded);
	snprintf(text, 17, "%08x%08x", h[0], h[1]);
}

/* ---- reading ------------------------------------------------------------------------------- */

static uint8_t *load(const char *name, size_t *size)
{
	char path[512];
	snprintf(path, sizeof path, FOLDER "%s", name);
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	uint8_t *data = malloc(1 << 16);
	assert_non_null(data);
	*size = fread(data, 1, 1 << 16, f);
	fclose(f);
	return data;
}

/* A source that copies, unlike memory, whose bytes are used in place. */
typedef struct slow {
	const uint8_t *data;
	size_t size, calls;
} slow;

static void slow_read(void *ctx, lade_reading *reading, size_t count)
{
	slow *s = ctx;
	s->calls++;
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_error err = {.status = LADE_OK};
		uint64_t off;
		range->object_size = s->size;
		lade_status status = lade_range_place(range, s->size, &off, &range->size, &err);
		if (status == LADE_OK && range->size)
			memcpy(range->dst.data, s->data + off, range->size);
		lade_reading_done(reading, i, status, &err);
	}
}

static const lade_source_ops slow_ops = {
	.struct_size = sizeof slow_ops, .flags = LADE_SOURCE_LOCAL, .read = slow_read};

static lade_rntuple *open_bytes(const uint8_t *data, size_t size, lade_error *err)
{
	lade_source source;
	lade_rntuple *tuple = NULL;
	assert_int_equal(lade_source_memory_open(lade_host_cspan(data, size), &source, err),
	                 LADE_OK);
	if (lade_rntuple_open(source, NULL, &tuple, err) != LADE_OK)
		lade_source_close(source);
	return tuple;
}

/* ---- what ROOT wrote ------------------------------------------------------------------------ */

/* The elements of a column in a cluster, as golden.txt has them. */
static void check_column(lade_rntuple *tuple, const char *line)
{
	unsigned long long field, position, cluster, off, count;
	lade_rntuple_part part;
	char type[32], want[17], got[17];
	lade_error err = {.status = LADE_OK};
	int fields = sscanf(line, "column %llu %llu %31s %llu %llu %llu %16s", &field, &position,
	                    type, &cluster, &off, &count, want);
	assert_int_equal(fields, 7);
	uint64_t column = lade_rntuple_field_at(tuple, field)->column + position;
	const lade_rntuple_column *c = lade_rntuple_column_at(tuple, column);
	assert_string_equal(c->stored, type);
	assert_int_equal(lade_rntuple_cluster_elements(tuple, column, cluster, &part, &err),
	                 LADE_OK);
	uint64_t first = part.first, have = part.count;
	assert_true(off >= first && off + count == first + have);
	uint8_t *data = malloc((size_t)have * c->elem_size + 1);
	assert_non_null(data);
	lade_rntuple_target target = {.column = column,
	                              .first = first,
	                              .count = have,
	                              .span = lade_host_span(data, (size_t)have * c->elem_size)};
	lade_rntuple_read_options options = {.struct_size = sizeof options,
	                                     .flags = LADE_RNTUPLE_ENDS};
	lade_status status = lade_rntuple_read(tuple, &target, 1, &options, NULL, &err);
	if (status != LADE_OK)
		fail_msg("%s: %s", line, err.message);
	for (size_t i = 0; i < (off - first) * c->elem_size; i++)
		assert_int_equal(data[i], 0);
	sha_text(data + (off - first) * c->elem_size, (size_t)count * c->elem_size, got);
	if (strcmp(got, want) != 0)
		fail_msg("%s: have %s", line, got);
	/* Each of its elements alone. */
	for (uint64_t i = 0; i < have && have < 100; i++) {
		uint8_t one[16];
		lade_rntuple_target alone = {.column = column,
		                             .first = first + i,
		                             .count = 1,
		                             .span = lade_host_span(one, c->elem_size)};
		assert_int_equal(lade_rntuple_read(tuple, &alone, 1, &options, NULL, &err),
		                 LADE_OK);
		assert_memory_equal(one, data + i * c->elem_size, c->elem_size);
	}
	free(data);
}

static void elements_are_those_that_root_wrote(void **state)
{
	(void)state;
	FILE *golden = fopen(FOLDER "golden.txt", "r");
	char line[256], name[128] = "", tuple_name[64];
	lade_rntuple *tuple = NULL;
	uint8_t *data = NULL;
	unsigned long long entries, clusters;
	size_t size, files = 0, columns = 0;
	lade_error err;
	assert_non_null(golden);
	while (fgets(line, sizeof line, golden)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "column", 6) == 0) {
			check_column(tuple, line);
			columns++;
			continue;
		}
		int got = sscanf(line, "file %127s %63s %llu %llu", name, tuple_name, &entries,
		                 &clusters);
		assert_int_equal(got, 4);
		lade_rntuple_unref(tuple);
		free(data);
		data = load(name, &size);
		tuple = open_bytes(data, size, &err);
		if (!tuple)
			fail_msg("%s: %s", name, err.message);
		const lade_rntuple_info *info = lade_rntuple_about(tuple);
		assert_string_equal(info->name, tuple_name);
		assert_int_equal(info->entry_count, entries);
		assert_int_equal(info->cluster_count, clusters);
		files++;
	}
	lade_rntuple_unref(tuple);
	free(data);
	fclose(golden);
	assert_int_equal(files, 8);
	assert_int_equal(columns, 82);
}

/* ---- offsets, entries, representations ---------------------------------------------------- */

/* Entry i + 100 j of this file is the vector [i, i + j]. */
static void vectors_add_up_over_pages_and_clusters(void **state)
{
	(void)state;
	size_t size;
	lade_error err;
	uint8_t *data = load("test_index_multicluster_rntuple_v1-0-0-0.root", &size);
	lade_rntuple *tuple = open_bytes(data, size, &err);
	assert_non_null(tuple);
	for (uint64_t first = 0; first < 200; first += 7)
		for (uint64_t count = 0; count <= 200 - first; count += 23) {
			int64_t offsets[201];
			int16_t values[400];
			lade_rntuple_part part = {first, count}, own;
			if (lade_rntuple_elements(tuple, 1, part, NULL, &own, &err))
				fail_msg("%s", err.message);
			lade_rntuple_target targets[2] = {
				{0, first, count, lade_host_span(offsets, sizeof offsets)},
				{1, own.first, own.count, lade_host_span(values, sizeof values)}};
			if (lade_rntuple_read(tuple, targets, 2, NULL, NULL, &err))
				fail_msg("%s", err.message);
			assert_int_equal(offsets[0], 0);
			assert_int_equal(offsets[count], own.count);
			for (uint64_t i = 0; i < count; i++) {
				int64_t at = offsets[i];
				assert_int_equal(offsets[i + 1] - at, 2);
				assert_int_equal(values[at], (first + i) % 100);
				assert_int_equal(values[at + 1],
				                 (first + i) % 100 + (first + i) / 100);
			}
		}
	lade_rntuple_unref(tuple);
	free(data);
}

static void representations_and_equal_pages_are_one_column(void **state)
{
	(void)state;
	size_t size;
	lade_error err;
	uint8_t *data = load("test_multiple_representations_rntuple_v1-0-0-0.root", &size);
	lade_rntuple *tuple = open_bytes(data, size, &err);
	float real[3] = {0};
	lade_rntuple_target target = {0, 0, 3, lade_host_span(real, sizeof real)};
	assert_non_null(tuple);
	assert_int_equal(lade_rntuple_about(tuple)->column_count, 1);
	assert_int_equal(lade_rntuple_read(tuple, &target, 1, NULL, NULL, &err), LADE_OK);
	assert_true(real[0] == 1 && real[1] == 2 && real[2] == 3);
	lade_rntuple_unref(tuple);
	free(data);
	/* 42 pages of this file are at 18 places. */
	data = load("test_stl_containers_rntuple_v1-0-0-0.root", &size);
	tuple = open_bytes(data, size, &err);
	assert_non_null(tuple);
	lade_rntuple_report report = {.struct_size = sizeof report};
	lade_rntuple_target all[42];
	for (size_t i = 0; i < 42; i++) {
		uint64_t count = lade_rntuple_column_at(tuple, i)->element_count;
		all[i] = (lade_rntuple_target){i, 0, count, {(void *)1, 4096, LADE_PLACE_HOST}};
	}
	assert_int_equal(lade_rntuple_explain(tuple, all, 42, NULL, &report, &err), LADE_OK);
	assert_int_equal(report.page_count, 42);
	assert_int_equal(report.distinct_count, 18);
	lade_rntuple_unref(tuple);
	free(data);
}

/* The pages of all clusters are the column, one behind the other, and the sums are right. */
static void pages_tile_their_column(void **state)
{
	(void)state;
	size_t size;
	lade_error err;
	uint8_t *data = load("test_extension_columns_rntuple_v1-0-0-0.root", &size);
	lade_rntuple *tuple = open_bytes(data, size, &err);
	assert_non_null(tuple);
	const lade_rntuple_info *info = lade_rntuple_about(tuple);
	for (uint64_t i = 0; i < info->column_count; i++) {
		const lade_rntuple_column *c = lade_rntuple_column_at(tuple, i);
		uint64_t next = c->first_stored, stored = 0, decoded = 0, count = 0, field;
		for (uint64_t k = 0; k < info->cluster_count; k++) {
			uint64_t pages = lade_rntuple_page_count(tuple, i, k);
			lade_rntuple_page page = {.struct_size = sizeof page};
			for (uint64_t n = 0; n < pages; n++, count++) {
				assert_int_equal(
					lade_rntuple_page_at(tuple, i, k, n, &page, &err), LADE_OK);
				assert_int_equal(page.first, next);
				assert_string_equal(page.stored, c->stored);
				assert_true(page.off + page.stored_size <= size && page.checksum);
				assert_int_equal(page.setting, 505);
				next += page.count;
				stored += page.stored_size;
				decoded += page.decoded_size;
			}
			assert_int_equal(lade_rntuple_page_at(tuple, i, k, pages, &page, &err),
			                 LADE_E_RANGE);
		}
		assert_int_equal(next, c->element_count);
		assert_int_equal(count, c->page_count);
		assert_true(stored == c->stored_size && decoded == c->decoded_size);
		const char *path = lade_rntuple_field_at(tuple, c->field)->path;
		assert_int_equal(lade_rntuple_find_field(tuple, path, &field, &err), LADE_OK);
		assert_int_equal(field, c->field);
	}
	uint64_t field;
	assert_int_equal(lade_rntuple_find_field(tuple, "none", &field, &err), LADE_E_NOT_FOUND);
	assert_int_equal(lade_rntuple_page_count(tuple, info->column_count, 0), 0);
	lade_rntuple_unref(tuple);
	free(data);
}

/* Steps of any size, read ahead or not, are the whole column; a failure ends them. */
static void steps_are_the_whole(void **state)
{
	(void)state;
	size_t size;
	lade_error err;
	uint8_t *data = load("test_extension_columns_rntuple_v1-0-0-0.root", &size);
	lade_rntuple *tuple = open_bytes(data, size, &err);
	assert_non_null(tuple);
	int64_t offsets[601];
	int32_t values[400];
	lade_rntuple_target all[2] = {{2, 0, 600, lade_host_span(offsets, sizeof offsets)},
	                              {3, 0, 400, lade_host_span(values, sizeof values)}};
	const uint64_t columns[2] = {2, 3};
	assert_int_equal(lade_rntuple_read(tuple, all, 2, NULL, NULL, &err), LADE_OK);
	for (uint64_t n = 0; n < 24; n++) {
		lade_rntuple_steps_options options = {
			.struct_size = sizeof options, .step = n % 6 * 37, .ahead = n / 6};
		lade_rntuple_step step = {.struct_size = sizeof step};
		lade_rntuple_steps *steps;
		uint64_t next = options.entries.first = n * 3, element = (uint64_t)offsets[next];
		assert_int_equal(lade_rntuple_steps_new(tuple, columns, 2, &options, &steps, &err),
		                 LADE_OK);
		while (!lade_rntuple_steps_next(steps, &step, &err) && step.entries.count) {
			const int64_t *o = step.targets[0].span.data;
			assert_true(step.entries.first == next && step.count == 2);
			assert_true(step.entries.count == options.step || !options.step ||
			            next + step.entries.count == 600);
			for (uint64_t i = 0; i <= step.entries.count; i++)
				assert_int_equal(o[i], offsets[next + i] - offsets[next]);
			assert_int_equal(step.targets[1].first, element);
			if (step.targets[1].count)
				assert_memory_equal(step.targets[1].span.data, values + element,
				                    4 * step.targets[1].count);
			next += step.entries.count;
			element += step.targets[1].count;
			if (n == 23)
				break; /* freed while it reads ahead */
		}
		assert_true(n == 23 || (next == 600 && element == 400));
		lade_rntuple_steps_free(steps);
	}
	lade_rntuple_unref(tuple);
	/* One page is bad. */
	data[614] ^= 1;
	for (uint64_t ahead = 0; ahead < 3; ahead++) {
		lade_rntuple_steps_options options = {.struct_size = sizeof options,
		                                      .ahead = ahead};
		lade_rntuple_step step = {.struct_size = sizeof step};
		lade_rntuple_steps *steps;
		lade_status status;
		uint64_t all_columns[4] = {0, 1, 2, 3};
		tuple = open_bytes(data, size, &err);
		assert_non_null(tuple);
		assert_int_equal(
			lade_rntuple_steps_new(tuple, all_columns, 4, &options, &steps, &err),
			LADE_OK);
		lade_rntuple_unref(tuple);
		do
			status = lade_rntuple_steps_next(steps, &step, &err);
		while (status == LADE_OK && step.entries.count);
		assert_int_equal(status, LADE_E_CHECKSUM);
		assert_int_equal(lade_rntuple_steps_next(steps, &step, &err), LADE_OK);
		assert_int_equal(step.entries.count, 0);
		lade_rntuple_steps_free(steps);
	}
	free(data);
}

/* Small waves and a source that copies give what one wave of memory gives. */
static void waves_of_any_size_give_the_same(void **state)
{
	(void)state;
	size_t size;
	lade_error err;
	uint8_t *data = load("test_extension_columns_rntuple_v1-0-0-0.root", &size);
	for (uint64_t memory = 1; memory < 4096; memory *= 3) {
		slow s = {data, size, 0};
		lade_rntuple *tuple = NULL;
		lade_source source = {&slow_ops, &s};
		assert_int_equal(lade_rntuple_open(source, NULL, &tuple, &err), LADE_OK);
		assert_int_equal(s.calls, 1); /* its last bytes are all of it */
		float reals[600];
		int64_t offsets[601];
		lade_rntuple_target targets[2] = {
			{1, 0, 600, lade_host_span(reals, sizeof reals)},
			{2, 0, 600, lade_host_span(offsets, sizeof offsets)}};
		lade_rntuple_read_options options = {.struct_size = sizeof options,
		                                     .memory = memory};
		lade_rntuple_report report = {.struct_size = sizeof report};
		if (lade_rntuple_read(tuple, targets, 2, &options, &report, &err))
			fail_msg("%s", err.message);
		assert_true(memory > 1 || report.wave_count == report.distinct_count);
		assert_true(reals[199] == 0 && reals[200] != 0);
		assert_int_equal(offsets[400], 0);
		assert_int_equal(offsets[600], 400);
		lade_rntuple_unref(tuple);
	}
	free(data);
}

/* Pages 3 GiB apart, payloads in several keys, large locators, every width of seeks. */
static void far_places_and_many_keys(void **state)
{
	static const uint64_t key_max[] = {0, 104, 128, 160, 247, 256, 1 << 20};
	(void)state;
	for (size_t n = 0; n < 14; n++) {
		make m = {.fd = -1, .big = n % 2, .key_max = key_max[n / 2]};
		uint64_t step = m.big ? (uint64_t)3 << 30 : 1 << 20;
		uint32_t values[100], back[600];
		uint32_t field = make_field(&m, "far", "std::uint32_t", MAKE_TOP, 0, 0);
		uint32_t column = make_column(&m, field, 0x08, 32);
		for (uint32_t page = 0; page < 6; page++) {
			for (uint32_t i = 0; i < 100; i++)
				values[i] = 1000 * page + i;
			make_page(&m, column, values, sizeof values, 100);
			m.at += step;
			if (page % 2)
				make_cluster(&m, 200);
		}
		make_finish(&m, "t");
		lade_rntuple *tuple;
		lade_error err;
		lade_rntuple_page page = {.struct_size = sizeof page};
		lade_rntuple_target target = {0, 0, 600, lade_host_span(back, sizeof back)};
		if (lade_rntuple_open(make_source(&m), NULL, &tuple, &err))
			fail_msg("keys of %d: %s", (int)m.key_max, err.message);
		assert_int_equal(lade_rntuple_page_at(tuple, 0, 2, 1, &page, &err), LADE_OK);
		assert_true(page.off >= 5 * step && page.stored_size == sizeof values);
		if (lade_rntuple_read(tuple, &target, 1, NULL, NULL, &err))
			fail_msg("keys of %d: %s", (int)m.key_max, err.message);
		for (uint32_t i = 0; i < 600; i++)
			assert_int_equal(back[i], 1000 * (i / 100) + i % 100);
		lade_rntuple_unref(tuple);
		make_free(&m);
	}
}

/* ---- damage --------------------------------------------------------------------------------- */

static const char *const names[] = {
	"test_int_float_rntuple_v1-0-0-0.root",
	"test_bit_rntuple_v1-0-0-0.root",
	"test_float_types_rntuple_v1-0-0-0.root",
	"test_multiple_representations_rntuple_v1-0-0-0.root",
	"test_index_multicluster_rntuple_v1-0-0-0.root",
	"test_extension_columns_rntuple_v1-0-0-0.root",
	"test_stl_containers_rntuple_v1-0-0-0.root",
	"rntviewer-testfile-uncomp-single-rntuple-v1-0-0-0.root",
};

/* The file is refused, or gives the same. */
static bool refused(const char *name, const uint8_t *data, size_t size, size_t at, uint64_t want)
{
	lade_error err = {.status = LADE_OK};
	lade_rntuple *tuple = open_bytes(data, size, &err);
	uint64_t sum = want;
	lade_status status = tuple ? kit_read_all(tuple, SIZE_MAX / 4, &sum, &err) : err.status;
	lade_rntuple_unref(tuple);
	if (status == LADE_OK && sum != want)
		fail_msg("%s, byte %zu: other elements", name, at);
	if (status != LADE_OK && (status != err.status || !err.message[0]))
		fail_msg("%s, byte %zu: no message", name, at);
	if (status == LADE_E_INTERNAL || status == LADE_E_ARG)
		fail_msg("%s, byte %zu: %s", name, at, err.message);
	return status != LADE_OK;
}

static void damage_is_refused_or_does_not_matter(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
		size_t size, bad = 0;
		lade_error err;
		uint64_t want;
		uint8_t *data = load(names[k], &size);
		lade_rntuple *tuple = open_bytes(data, size, &err);
		assert_non_null(tuple);
		assert_int_equal(kit_read_all(tuple, SIZE_MAX / 4, &want, &err), LADE_OK);
		lade_rntuple_unref(tuple);
		for (size_t i = 0; i < size; i++) {
			static const uint8_t flips[] = {0x01, 0x80, 0xFF};
			data[i] ^= flips[i % 3];
			bad += refused(names[k], data, size, i, want);
			data[i] ^= flips[i % 3];
		}
		/* Most of these small files is keys, free lists and streamer infos. */
		assert_true(bad > size / 4);
		for (size_t i = 0; i < size; i++) {
			uint8_t *cut = malloc(i + 1); /* sanitizers see what is read behind it */
			assert_non_null(cut);
			memcpy(cut, data, i);
			refused(names[k], cut, i, i, want);
			free(cut);
		}
		free(data);
	}
}

/* With the checksums of metadata made right again, parsers meet the damage themselves. */
static void damage_behind_checksums_is_refused_or_read(void **state)
{
	(void)state;
	size_t size, bad = 0;
	const char *name = "rntviewer-testfile-uncomp-single-rntuple-v1-0-0-0.root";
	uint8_t *data = load(name, &size), *own = malloc(size);
	assert_non_null(own);
	for (size_t i = 0; i < 8 * size; i++) {
		lade_error err = {.status = LADE_OK};
		uint64_t sum;
		memcpy(own, data, size);
		own[i / 8] ^= (uint8_t)(1 << i % 8);
		kit_reseal(own, size, kit_anchor(data, size));
		lade_rntuple *tuple = open_bytes(own, size, &err);
		/* Numbers of elements are the file's to say; what they take is the caller's. */
		bool small = tuple && lade_rntuple_about(tuple)->decoded_size < 1 << 20;
		lade_status status = small ? kit_read_all(tuple, SIZE_MAX / 4, &sum, &err)
		                           : err.status;
		if (status != LADE_OK && (status != err.status || !err.message[0]))
			fail_msg("byte %zu: no message", i / 8);
		assert_true(status != LADE_E_INTERNAL && status != LADE_E_ARG);
		bad += status != LADE_OK;
		lade_rntuple_unref(tuple);
	}
	assert_true(bad > size);
	free(own);
	free(data);
}

/* A bit of its checksum and one of where the footer is; of all files but one the footer is
 * compressed. */
static void torn_anchors_are_mended(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
		char path[] = "/tmp/lade-golden-XXXXXX";
		lade_error err;
		size_t size, anchor;
		uint8_t *data = load(names[k], &size), *got = malloc(size);
		int fd = mkstemp(path);
		assert_non_null(got);
		anchor = kit_anchor(data, size);
		data[anchor + 45] ^= 1;
		data[anchor + 77] ^= 1;
		assert_int_equal(pwrite(fd, data, size, 0), size);
		data[anchor + 45] ^= 1;
		data[anchor + 77] ^= 1;
		bool mended = false;
		if (lade_rntuple_repair(path, NULL, &mended, &err) != LADE_OK)
			fail_msg("%s: %s", names[k], err.message);
		assert_true(mended);
		assert_int_equal(pread(fd, got, size, 0), size);
		assert_memory_equal(got, data, size);
		close(fd);
		unlink(path);
		free(got);
		free(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_are_those_that_root_wrote),
		cmocka_unit_test(vectors_add_up_over_pages_and_clusters),
		cmocka_unit_test(representations_and_equal_pages_are_one_column),
		cmocka_unit_test(pages_tile_their_column),
		cmocka_unit_test(steps_are_the_whole),
		cmocka_unit_test(waves_of_any_size_give_the_same),
		cmocka_unit_test(far_places_and_many_keys),
		cmocka_unit_test(damage_is_refused_or_does_not_matter),
		cmocka_unit_test(damage_behind_checksums_is_refused_or_read),
		cmocka_unit_test(torn_anchors_are_mended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
