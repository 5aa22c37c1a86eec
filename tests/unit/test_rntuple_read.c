/*
 * test_rntuple_read.c: what ROOT's sample files do not have: attribute sets, strings in two
 * representations, columns that begin inside a cluster, pages that several columns share, and files
 * that contradict themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rntuple_make.h"

#include <lade/rntuple.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { BIT = 0x00, CHAR = 0x02, UINT8 = 0x04, UINT32 = 0x08, UINT64 = 0x0A, REAL32 = 0x0C };
enum { INDEX32 = 0x0E, INDEX64 = 0x0F, SWITCH = 0x10, SPLIT_UINT32 = 0x14, SPLIT_INDEX64 = 0x1B };

static lade_rntuple *open_make(make *m)
{
	lade_error err;
	lade_rntuple *tuple = NULL;
	make_finish(m, "t");
	if (lade_rntuple_open(make_source(m), NULL, &tuple, &err))
		fail_msg("%s", err.message);
	return tuple;
}

static lade_status open_status(make *m, lade_error *err)
{
	lade_rntuple *tuple = NULL;
	make_finish(m, "t");
	lade_status status = lade_rntuple_open(make_source(m), NULL, &tuple, err);
	lade_rntuple_unref(tuple);
	make_free(m);
	return status;
}

static lade_status read_column(lade_rntuple *t, uint64_t column, uint64_t first, uint64_t count,
                               void *to, size_t size, lade_error *err)
{
	lade_rntuple_target target = {column, first, count, lade_host_span(to, size)};
	return lade_rntuple_read(t, &target, 1, NULL, NULL, err);
}

#define READ(t, column, first, count, to) \
	do { \
		lade_error err_; \
		if (read_column(t, column, first, count, to, sizeof(to), &err_)) \
			fail_msg("%s", err_.message); \
	} while (0)

/* The anchors of attribute sets are not looked at: these are beyond the file's end. */
static void test_attribute_sets(void **state)
{
	(void)state;
	uint32_t values[3] = {4, 5, 6}, back[3];
	for (uint32_t sets = 0; sets < 3; sets++) {
		make m = {.fd = -1, .attributes = sets, .big = sets == 2};
		uint32_t field = make_field(&m, "x", "std::uint32_t", MAKE_TOP, 0, 0);
		make_page(&m, make_column(&m, field, UINT32, 32), values, sizeof values, 3);
		make_cluster(&m, 3);
		lade_rntuple *t = open_make(&m);
		assert_int_equal(lade_rntuple_about(t)->field_count, 1);
		READ(t, 0, 0, 3, back);
		assert_memory_equal(back, values, sizeof values);
		lade_rntuple_unref(t);
		make_free(&m);
	}
}

/* Representation 0 is Index64 and Char; 1 is SplitIndex64 and Char.  Clusters take turns. */
static void test_strings_in_two_representations(void **state)
{
	(void)state;
	make m = {.fd = -1};
	uint32_t field = make_field(&m, "s", "std::string", MAKE_TOP, 0, 0), column[4];
	for (unsigned i = 0; i < 4; i++)
		column[i] = make_late_column(
			&m, field, i % 2 ? CHAR : i ? SPLIT_INDEX64 : INDEX64, i % 2 ? 8 : 64,
			i / 2, 0);
	for (unsigned k = 0; k < 4; k++) {
		/* "a", "bc", "": ends 1, 3, 3; as differences, of which byte planes follow. */
		const uint64_t ends[3] = {1, 3, 3};
		uint8_t planes[24] = {1, 2, 0};
		unsigned own = k % 2, other = 1 - own;
		char text[4];
		snprintf(text, sizeof text, "%c%c%c", 'a' + (int)k, 'k' + (int)k, 'z' - (int)k);
		make_page(&m, column[2 * own], own ? (const void *)planes : ends, 24, 3);
		make_page(&m, column[2 * own + 1], text, 3, 3);
		make_none(&m, column[2 * other], 3);
		make_none(&m, column[2 * other + 1], 3);
		make_cluster(&m, 3);
	}
	lade_rntuple *t = open_make(&m);
	int64_t offsets[13];
	char text[13] = "", part[6] = "";
	lade_rntuple_part own;
	lade_error err;
	assert_int_equal(lade_rntuple_about(t)->column_count, 2);
	READ(t, 0, 0, 12, offsets);
	for (int i = 0; i <= 12; i++)
		assert_int_equal(offsets[i], i / 3 * 3 + (i % 3 ? 2 * (i % 3) - 1 : 0));
	READ(t, 1, 0, 12, text);
	assert_string_equal(text, "akzblycmxdnw");
	assert_int_equal(
		lade_rntuple_elements(t, 1, (lade_rntuple_part){1, 3}, NULL, &own, &err), LADE_OK);
	assert_true(own.first == 1 && own.count == 3);
	READ(t, 1, own.first, own.count, part);
	assert_string_equal(part, "kzb");
	lade_rntuple_unref(t);
	make_free(&m);
}

/* A bitset and a vector that begin inside the second cluster, and below an array. */
static void test_late_columns(void **state)
{
	(void)state;
	make m = {.fd = -1};
	uint32_t old = make_field(&m, "old", "std::uint32_t", MAKE_TOP, 0, 0);
	uint32_t bits = make_field(&m, "bits", "std::bitset<3>", MAKE_TOP, 0, 3);
	uint32_t list = make_field(&m, "list", "std::vector<std::uint32_t>", MAKE_TOP, 1, 0);
	uint32_t item = make_field(&m, "_0", "std::uint32_t", list, 0, 0);
	uint32_t columns[4] = {make_column(&m, old, UINT32, 32),
	                       make_late_column(&m, bits, BIT, 1, 0, 3 * 6),
	                       make_late_column(&m, list, INDEX32, 32, 0, 6),
	                       make_column(&m, item, UINT32, 32)};
	const uint32_t values[4] = {0, 1, 2, 3}, ends[2] = {1, 3};
	make_page(&m, columns[0], values, 16, 4);
	make_none(&m, columns[1], 0);
	make_none(&m, columns[2], 0);
	make_cluster(&m, 4);
	make_page(&m, columns[0], values, 16, 4);
	make_page(&m, columns[1], &(uint8_t){0x35}, 1, 6); /* 101 011; garbage behind */
	make_page(&m, columns[2], ends, 8, 2);
	make_page(&m, columns[3], values + 1, 12, 3);
	make_cluster(&m, 4);
	lade_rntuple *t = open_make(&m);
	uint8_t bit[24];
	int64_t offsets[9];
	uint32_t items[3];
	static const int64_t want[9] = {0, 0, 0, 0, 0, 0, 0, 1, 3};
	READ(t, 1, 0, 24, bit);
	for (int i = 0; i < 24; i++)
		assert_int_equal(bit[i], i >= 18 && (0x35 >> (i - 18) & 1));
	READ(t, 2, 0, 8, offsets);
	assert_memory_equal(offsets, want, sizeof want);
	READ(t, 3, 0, 3, items);
	assert_memory_equal(items, values + 1, sizeof items);
	assert_int_equal(lade_rntuple_column_at(t, 1)->first_stored, 18);
	lade_rntuple_unref(t);
	make_free(&m);
}

/* One page for two columns of a type, for a third of another type, and for a part of a column. */
static void test_shared_pages(void **state)
{
	(void)state;
	make m = {.fd = -1};
	static const unsigned types[3] = {UINT32, UINT32, SPLIT_UINT32};
	uint32_t values[4] = {0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C}, columns[3];
	for (unsigned i = 0; i < 3; i++) {
		char name[2] = {(char)('a' + i), 0};
		uint32_t field = make_field(&m, name, "std::uint32_t", MAKE_TOP, 0, 0);
		columns[i] = make_column(&m, field, types[i], 32);
	}
	make_page(&m, columns[0], values, sizeof values, 4);
	for (unsigned i = 1; i < 3; i++) {
		make_page_place same = m.pages[0];
		same.column = columns[i];
		make_place(&m, same);
	}
	make_cluster(&m, 4);
	lade_rntuple *t = open_make(&m);
	uint32_t back[3][4], part[2];
	lade_rntuple_target targets[4] = {{0, 0, 4, lade_host_span(back[0], 16)},
	                                  {1, 0, 4, lade_host_span(back[1], 16)},
	                                  {2, 0, 4, lade_host_span(back[2], 16)},
	                                  {1, 1, 2, lade_host_span(part, 8)}};
	lade_rntuple_report report = {.struct_size = sizeof report};
	lade_error err;
	if (lade_rntuple_read(t, targets, 4, NULL, &report, &err))
		fail_msg("%s", err.message);
	assert_memory_equal(back[0], values, 16);
	assert_memory_equal(back[1], values, 16);
	assert_memory_equal(part, values + 1, 8);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(back[2][i], 0x0C080400 + 0x01010101 * i);
	assert_int_equal(report.page_count, 4);
	assert_int_equal(report.distinct_count, 1);
	assert_int_equal(report.stored_size, 24);
	lade_rntuple_unref(t);
	make_free(&m);
}

/* Raw Deflate, as very old ROOT wrote it, in two blocks of 100 and 156 bytes; no reader but JSROOT
 * has it.  The bytes are of Python's zlib.compressobj(9, zlib.DEFLATED, -15). */
static void test_blocks_of_old_root(void **state)
{
	(void)state;
	static const uint8_t blocks[] = {
		0x43, 0x53, 0x08, 0x08, 0x00, 0x00, 0x64, 0x00, 0x00, 0x63, 0x60, 0xa0,
		0x0c, 0x30, 0x12, 0x81, 0x01, 0x43, 0x53, 0x08, 0x0e, 0x00, 0x00, 0x9c,
		0x00, 0x00, 0x63, 0x64, 0x60, 0x60, 0x60, 0xc4, 0x81, 0x99, 0x28, 0xc4,
		0xcc, 0x14, 0x62, 0x00,
	};
	uint8_t bad[sizeof blocks];
	memcpy(bad, blocks, sizeof bad);
	for (size_t n = 0; n < sizeof bad; n++) {
		make m = {.fd = -1};
		uint32_t field = make_field(&m, "x", "std::uint32_t", MAKE_TOP, 0, 0);
		uint32_t column = make_column(&m, field, UINT32, 32), back[64];
		bad[n] ^= n ? 0xFF : 0;
		make_page(&m, column, bad, sizeof bad, 64);
		bad[n] ^= n ? 0xFF : 0;
		make_cluster(&m, 64);
		lade_rntuple *t = open_make(&m);
		lade_error err = {.message = ""};
		lade_status status = read_column(t, 0, 0, 64, back, sizeof back, &err);
		for (uint32_t i = 0; n == 0 && i < 64; i++)
			assert_int_equal(back[i], i / 16);
		assert_true(status == LADE_OK || n > 0);
		assert_true(status == LADE_OK || err.message[0]);
		lade_rntuple_unref(t);
		make_free(&m);
	}
}

/* Pages that begin at one place, of which only the shorter one has a right checksum: the other is
 * refused, with a source whose bytes are used in place and with one that copies. */
static void test_pages_that_begin_alike(void **state)
{
	(void)state;
	make m = {.fd = -1};
	uint32_t values[4] = {1, 2, 3, 4};
	uint64_t wide[4];
	uint32_t a = make_field(&m, "a", "std::uint32_t", MAKE_TOP, 0, 0);
	uint32_t b = make_field(&m, "b", "std::uint64_t", MAKE_TOP, 0, 0);
	make_page(&m, make_column(&m, a, UINT32, 32), values, sizeof values, 4);
	make_page_place longer = m.pages[0];
	longer.column = make_column(&m, b, UINT64, 64);
	longer.size = sizeof wide;
	make_place(&m, longer);
	make_cluster(&m, 4);
	m.at += 100;
	for (unsigned n = 0; n < 2; n++) {
		lade_rntuple *t;
		lade_error err;
		lade_rntuple_target targets[2] = {{0, 0, 4, lade_host_span(values, sizeof values)},
		                                  {1, 0, 4, lade_host_span(wide, sizeof wide)}};
		uint8_t *flat = NULL;
		if (n == 0) {
			t = open_make(&m);
		} else {
			lade_source source;
			flat = make_flat(&m);
			lade_cspan all = lade_host_cspan(flat, (size_t)m.at);
			assert_int_equal(lade_source_memory_open(all, &source, &err), LADE_OK);
			assert_int_equal(lade_rntuple_open(source, NULL, &t, &err), LADE_OK);
		}
		assert_int_equal(lade_rntuple_read(t, targets, 1, NULL, NULL, &err), LADE_OK);
		assert_int_equal(lade_rntuple_read(t, targets, 2, NULL, NULL, &err),
		                 LADE_E_CHECKSUM);
		lade_rntuple_unref(t);
		free(flat);
	}
	make_free(&m);
}

/* A source that takes its time, as servers do. */
typedef struct slow {
	make *m;
	lade_reading *reading;
	size_t count;
} slow;

static void *answer_later(void *ctx)
{
	slow own = *(slow *)ctx;
	free(ctx);
	usleep(150000);
	make_read(own.m, own.reading, own.count);
	return NULL;
}

static void slow_read(void *ctx, lade_reading *reading, size_t count)
{
	slow *s = make_need(malloc(sizeof *s));
	pthread_t thread;
	*s = (slow){ctx, reading, count};
	assert_int_equal(pthread_create(&thread, NULL, answer_later, s), 0);
	pthread_detach(thread);
}

static pthread_t asker;
static atomic_uint asked, asked_elsewhere;

static bool ask(void *ctx)
{
	(void)ctx;
	atomic_fetch_add(pthread_equal(pthread_self(), asker) ? &asked : &asked_elsewhere, 1);
	return false;
}

/* Waves overlap on threads of the read's; who waits for it is asked on the thread of the call. */
static void test_only_the_callers_thread_is_asked(void **state)
{
	static const lade_source_ops ops = {.struct_size = sizeof ops, .read = slow_read};
	make m = {.fd = -1};
	uint32_t values[16];
	lade_rntuple_read_options options = {.struct_size = sizeof options,
	                                     .threads = 2,
	                                     .memory = 1};
	lade_rntuple *t;
	lade_error err;
	(void)state;
	uint32_t field = make_field(&m, "a", "std::uint32_t", MAKE_TOP, 0, 0);
	uint32_t column = make_column(&m, field, UINT32, 32);
	for (uint32_t i = 0; i < 16; i++) {
		values[i] = i;
		make_page(&m, column, &values[i], 4, 1);
	}
	make_cluster(&m, 16);
	make_finish(&m, "t");
	asker = pthread_self();
	assert_int_equal(lade_cancel_new(ask, NULL, &options.cancel, &err), LADE_OK);
	assert_int_equal(lade_rntuple_open((lade_source){&ops, &m}, NULL, &t, &err), LADE_OK);
	memset(values, 0, sizeof values);
	lade_rntuple_target target = {0, 0, 16, lade_host_span(values, sizeof values)};
	assert_int_equal(lade_rntuple_read(t, &target, 1, &options, NULL, &err), LADE_OK);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(values[i], i);
	assert_int_equal(atomic_load(&asked_elsewhere), 0);
	assert_true(atomic_exchange(&asked, 0) > 0);
	/* And steps that a thread reads ahead. */
	lade_rntuple_steps_options ahead = {
		.struct_size = sizeof ahead, .step = 8, .ahead = 1, .read = &options};
	lade_rntuple_step step = {.struct_size = sizeof step};
	lade_rntuple_steps *steps;
	uint64_t columns[] = {0}, entries = 0;
	assert_int_equal(lade_rntuple_steps_new(t, columns, 1, &ahead, &steps, &err), LADE_OK);
	do {
		assert_int_equal(lade_rntuple_steps_next(steps, &step, &err), LADE_OK);
		entries += step.entries.count;
	} while (step.entries.count);
	assert_int_equal(entries, 16);
	lade_rntuple_steps_free(steps);
	assert_int_equal(atomic_load(&asked_elsewhere), 0);
	assert_true(atomic_load(&asked) > 0);
	lade_rntuple_unref(t);
	lade_cancel_free(options.cancel);
	make_free(&m);
}

/* Offsets that go beyond what they count: of a vector's items, of a record's second member. */
static void test_offsets_beyond_their_items(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 3; n++) {
		make m = {.fd = -1};
		uint32_t list = make_field(&m, "list", "std::vector<P>", MAKE_TOP, 1, 0);
		uint32_t record = make_field(&m, "_0", "P", list, 2, 0);
		uint32_t x = make_field(&m, "x", "std::uint32_t", record, 0, 0);
		uint32_t y = make_field(&m, "y", "std::array<float,2>", record, 0, 2);
		uint32_t y0 = make_field(&m, "_0", "float", y, 0, 0);
		uint32_t columns[3] = {make_column(&m, list, INDEX64, 64),
		                       make_column(&m, x, UINT32, 32),
		                       make_column(&m, y0, REAL32, 32)};
		const uint64_t ends[3] = {1, 1, 4};
		const uint32_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
		make_page(&m, columns[0], ends, 24, 3);
		make_page(&m, columns[1], values, n == 1 ? 12 : 16, n == 1 ? 3 : 4);
		make_page(&m, columns[2], values, n == 2 ? 28 : 32, n == 2 ? 7 : 8);
		make_cluster(&m, 3);
		lade_rntuple *t = open_make(&m);
		int64_t offsets[4];
		lade_error err;
		lade_status status =
			read_column(t, 0, 0, 3, offsets, sizeof offsets, &err);
		assert_int_equal(status, n ? LADE_E_CORRUPT : LADE_OK);
		assert_true(n == 0 || strstr(err.message, "list"));
		/* What is before is right. */
		READ(t, 0, 0, 2, offsets);
		assert_int_equal(offsets[2], 1);
		lade_rntuple_unref(t);
		make_free(&m);
	}
}

/* Variants whose alternatives or elements are not there; 0 is no alternative. */
static void test_switches_beyond_their_alternatives(void **state)
{
	(void)state;
	static const struct {
		uint8_t index, which;
		bool good;
	} cases[] = {{1, 1, true}, {2, 1, false}, {2, 2, true}, {3, 2, false}, {0, 3, false},
	             {9, 0, true}};
	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		make m = {.fd = -1};
		uint32_t v = make_field(&m, "v", "std::variant<A,float>", MAKE_TOP, 3, 0);
		uint32_t a = make_field(&m, "_0", "A", v, 2, 0);
		uint32_t x = make_field(&m, "x", "std::array<float,2>", a, 0, 2);
		uint32_t x0 = make_field(&m, "_0", "float", x, 0, 0);
		uint32_t b = make_field(&m, "_1", "float", v, 0, 0);
		uint32_t columns[3] = {make_column(&m, v, SWITCH, 96),
		                       make_column(&m, x0, REAL32, 32),
		                       make_column(&m, b, REAL32, 32)};
		uint8_t elements[36] = {[8] = 1, [20] = 2, [24] = cases[n].index,
		                        [32] = cases[n].which}, back[36];
		const float values[4] = {1, 2, 3, 4};
		make_page(&m, columns[0], elements, sizeof elements, 3);
		make_page(&m, columns[1], values, 16, 4);
		make_page(&m, columns[2], values, 12, 3);
		make_cluster(&m, 3);
		lade_rntuple *t = open_make(&m);
		lade_error err;
		lade_status status = read_column(t, 0, 0, 3, back, sizeof back, &err);
		assert_int_equal(status, cases[n].good ? LADE_OK : LADE_E_CORRUPT);
		READ(t, 0, 0, 2, back);
		lade_rntuple_unref(t);
		make_free(&m);
	}
}

/* Fields below themselves, or below later ones; columns and types that are not there. */
static void test_schemas_that_contradict_themselves(void **state)
{
	(void)state;
	lade_error err;
	for (unsigned n = 0; n < 5; n++) {
		make m = {.fd = -1};
		uint32_t a = make_field(&m, "a", "A", n == 0 ? 1 : n == 1 ? 7 : MAKE_TOP, 2, 0);
		uint32_t b = make_field(&m, "b", "float", n == 0 ? 0 : a, 0, 0);
		make_column(&m, n == 2 ? 9 : b, REAL32, n == 3 ? 31 : 32);
		assert_int_equal(open_status(&m, &err), n == 4 ? LADE_OK : LADE_E_CORRUPT);
		assert_true(n == 4 || err.message[0]);
	}
}

/* A little file that would take much memory: paths that repeat their parents' names; groups of
 * clusters without entries, which all have the same page list. */
static void test_limits_of_metadata(void **state)
{
	(void)state;
	char name[3001];
	memset(name, 'x', 3000);
	name[3000] = 0;
	for (unsigned n = 0; n < 4; n++) {
		make m = {.fd = -1, .groups = n / 2 ? 50 : 1};
		uint32_t a = make_field(&m, n / 2 ? "a" : name, "A", MAKE_TOP, 2, 0);
		for (unsigned i = 0; i < 50; i++) {
			uint32_t b = make_field(&m, "b", "float", a, 0, 0);
			make_column(&m, b, REAL32, 32);
		}
		make_cluster(&m, 0);
		make_finish(&m, "t");
		lade_rntuple *t = NULL;
		lade_error err;
		lade_rntuple_options options = {.struct_size = sizeof options,
		                                .metadata_max = n % 2 ? 0 : 50000};
		lade_status status = lade_rntuple_open(make_source(&m), &options, &t, &err);
		assert_int_equal(status, n % 2 ? LADE_OK : LADE_E_LIMIT);
		if (n == 3)
			assert_int_equal(lade_rntuple_about(t)->cluster_count, 50);
		lade_rntuple_unref(t);
		make_free(&m);
	}
}

/* How ROOT splits payloads of n bytes over keys of at most 128: published numbers. */
static void test_splits_of_keys(void **state)
{
	(void)state;
	static const struct {
		uint32_t n, parts[3];
	} cases[] = {{132, {120, 12}}, {160, {120, 40}}, {164, {120, 44}}, {247, {120, 127}},
	             {256, {112, 128, 16}}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		make m = {.fd = -1, .key_max = 128};
		uint8_t values[256], back[256];
		uint32_t field = make_field(&m, "x", "std::uint8_t", MAKE_TOP, 0, 0);
		uint32_t column = make_column(&m, field, UINT8, 8), size = cases[i].n - 8;
		for (uint32_t k = 0; k < 256; k++)
			values[k] = (uint8_t)(k * 37);
		make_page(&m, column, values, size, size); /* 8 bytes of checksum follow */
		size_t keys = 2 + (cases[i].parts[2] != 0);
		assert_int_equal(m.piece_count, keys);
		assert_int_equal(m.pieces[keys - 1].bytes.size, 128);
		assert_int_equal(128 - 8 * (keys - 1), cases[i].parts[0]);
		for (size_t k = 1; k < keys; k++)
			assert_int_equal(m.pieces[k - 1].bytes.size, cases[i].parts[k]);
		make_cluster(&m, size);
		lade_rntuple *t = open_make(&m);
		READ(t, 0, 0, size, back);
		assert_memory_equal(back, values, size);
		lade_rntuple_unref(t);
		make_free(&m);
	}
}

/* Payloads in keys that would be larger than the file. */
static void test_keys_larger_than_their_file(void **state)
{
	(void)state;
	make m = {.fd = -1, .key_max = 200};
	static uint32_t values[1000];
	uint32_t field = make_field(&m, "x", "std::uint32_t", MAKE_TOP, 0, 0);
	make_page(&m, make_column(&m, field, UINT32, 32), values, sizeof values, 1000);
	m.pages[0].size = 1u << 30;
	m.pages[0].count = 1u << 28;
	make_cluster(&m, 1u << 28);
	lade_error err;
	assert_int_equal(open_status(&m, &err), LADE_E_CORRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attribute_sets),
		cmocka_unit_test(test_strings_in_two_representations),
		cmocka_unit_test(test_late_columns),
		cmocka_unit_test(test_shared_pages),
		cmocka_unit_test(test_blocks_of_old_root),
		cmocka_unit_test(test_pages_that_begin_alike),
		cmocka_unit_test(test_offsets_beyond_their_items),
		cmocka_unit_test(test_only_the_callers_thread_is_asked),
		cmocka_unit_test(test_switches_beyond_their_alternatives),
		cmocka_unit_test(test_schemas_that_contradict_themselves),
		cmocka_unit_test(test_limits_of_metadata),
		cmocka_unit_test(test_splits_of_keys),
		cmocka_unit_test(test_keys_larger_than_their_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
